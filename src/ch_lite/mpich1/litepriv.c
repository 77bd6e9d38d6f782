/* The device's own part of MPICH-1: start, end, exit, clock. All else is ch2's code on the macros
 * of channel.h. */
#include "mpid.h"
#include "mpiddev.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int data_behind(const void* pkt) {
  const MPID_PKT_T* packet = (const MPID_PKT_T*)pkt;
  return packet->head.mode == MPID_PKT_LONG ? packet->head.len : 0;
}

static void fatal(const char* sentence) { MPID_Lite_Exit(sentence, 1); }

/* ch2 compares with "less than": a message of exactly the cutoff's length still goes that way. */
static int cutoff(uint64_t bytes) { return bytes < INT_MAX ? (int)bytes + 1 : INT_MAX; }

void MPID_Lite_Init(int* argc, char*** argv, void* device) {
  MPID_Device* dev = (MPID_Device*)device;
  LiteHostOptions options;
  LiteHostJob job;

  options.data_behind = data_behind;
  options.fatal = fatal;
  if (lite_host_start(&options, &job) != 0) MPID_Lite_Exit(lite_host_error(), 1);
  MPID_MyWorldRank = job.rank;
  MPID_MyWorldSize = job.size;
  /* Empty messages are always short: eager ones of no length would have no channel message that ch2
     receives. Eager switched off: rendezvous begins where short ends. */
  if (job.short_max > MPID_PKT_MAX_DATA_SIZE) job.short_max = MPID_PKT_MAX_DATA_SIZE;
  dev->long_len = cutoff(job.short_max);
  dev->vlong_len = cutoff(job.eager_max > job.short_max ? job.eager_max : job.short_max);
}

void MPID_Lite_End(void) { lite_host_end(); }

/* The launcher ends the other ranks when one ends with a status other than 0. */
void MPID_Lite_Exit(const char* message, int code) {
  fflush(stdout);
  if (message && *message) fprintf(stderr, "ch_lite: %s\n", message);
  fflush(stderr);
  _exit(code != 0 ? code : 1);
}

double MPID_Lite_Wtime(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}
