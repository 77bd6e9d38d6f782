/* The channel for a host that brings protocols of its own (MPICH-1's ch2): what such a host needs
 * around channel.h. Plain C. Implemented by channel_host.cpp; used by mpich1/channel.h (the macros)
 * and mpich1/litepriv.c, and by test/mpich1/ch2_driver.c.
 *
 * What channel.h leaves to the device is done here: start and end, waiting, arming, messages to
 * oneself, and that no wait is a deadlock: packets and eager data that come while the host waits
 * for something else are kept, in order, until it asks for them. So the host may wait inside of a
 * packet's handling. The host's one duty: the channel data that belongs to a packet (`data_behind`)
 * is received before the next packet is taken. What ch2's packets have room for: ids of operations
 * are four ints, the name of a transfer is one. A peer that is lost, or no memory: `fatal` is
 * called, and does not return; ch2 knows no errors here. All functions: ordinary context, one
 * thread. */
#ifndef CH_LITE_CHANNEL_HOST_H_INCLUDED
#define CH_LITE_CHANNEL_HOST_H_INCLUDED

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int (*data_behind)(
      const void* pkt); /* how many bytes of channel data follow this packet; 0: none */
  void (*fatal)(const char* sentence); /* may be null: the sentence is printed and the process ends
                                          with status 1 */
} LiteHostOptions;

typedef struct {
  int rank, size;
  uint64_t short_max, eager_max; /* LITE_SHORT_MAX, LITE_EAGER_MAX */
} LiteHostJob;

/* From the launcher's environment (lite-mprun); without a launcher this process is a job of one. 0,
 * or -1 with the reason in lite_host_error(). */
int lite_host_start(const LiteHostOptions* options, LiteHostJob* job);
const char* lite_host_error(void);
/* Everybody calls it; returns when everybody has, everything sent has arrived, and the connections
 * are closed. */
void lite_host_end(void);

/* ---- control packets ---- */
int lite_host_control_avail(void);
void lite_host_recv_control(void* pkt, int size, int* from);
/* The packet is copied where the kernel does not take it. When data follows it, the next call is
 * lite_host_send or lite_host_isend of that: both leave in one system call (a packet of up to 64
 * bytes). */
void lite_host_send_control(const void* pkt, int size, int dest);
/* Returns when something has come: a packet can be taken, or an operation is complete that was not
 * at the last lite_host_look or lite_host_test. */
void lite_host_wait_for_news(void);

/* ---- channel ---- */
void lite_host_send(const void* buf, int64_t size, int dest);
void lite_host_isend(const void* buf, int64_t size, int dest, int* id);
/* A message longer than maxsize: its first bytes, the rest is thrown away. */
void lite_host_recv(void* buf, int64_t maxsize, int from);

/* ---- transfers ---- */
/* A place for data that some peer will send; its name goes to that peer in a control packet. Data
 * goes there from now on, without the host's help. */
void lite_host_create_transfer(void* buf, int64_t size, int* name, int* id);
void lite_host_send_transfer(const void* buf, int64_t size, int dest, int name);
void lite_host_isend_transfer(const void* buf, int64_t size, int dest, int name, int* id);

/* ---- completion, of isend, isend_transfer and create_transfer ---- */
/* 1: complete; the id is given back and is then complete for ever. */
int lite_host_test(int* id);
/* 1: complete, and the id remains, for lite_host_wait. */
int lite_host_look(const int* id);
/* Waits, gives the id back. The length of what was received (perhaps more than there was room for),
 * or 0 when that was asked for before. */
int64_t lite_host_wait(int* id);
/* The length of the last receive that lite_host_test or lite_host_wait gave back. */
int64_t lite_host_received(void);

#ifdef __cplusplus
}
#endif
#endif
