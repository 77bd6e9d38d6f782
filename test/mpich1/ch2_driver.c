/* Uses mpich1/channel.h as MPICH-1's ch2 does: short, eager and rendezvous messages with a queue of
 * posted and one of unexpected ones, written from the interface's description (channel.h,
 * channel_host.h, PRIOR_ART of ch2), so that CI shows what ch2 relies on where there is no MPICH-1.
 * Compiled twice: with MPID_LITE_BLOCKING it sends and receives as the blocking form does. Run by
 * test/mpich1/conformance under lite-mprun: ch2_driver CASE      status 0 when all ranks agree; the
 * failing rank says what it saw. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MPI_ERR_TRUNCATE 15

#include "ch_lite/mpich1/channel.h"

enum { SHORT, LONG, REQUEST, OK_TO_SEND };
enum { SHORT_MAX = 1024, EAGER_MAX = 128000, ANY = -1 };

/* As in MPICH-1: the handle of a receive, with the fields that the macros use. */
typedef struct Receive {
  void* buf;
  int len, tag, from;
  int recv_handle;
  int rid[4];
  struct {
    int MPI_ERROR, count;
  } s;
  int is_complete, matched, by_transfer;
  struct Receive* next;
  /* of an unexpected one */
  int mode, bytes;
  void* send_id;
  char* start;
} Receive;

typedef struct {
  const void* start;
  int bytes;
  int sid[4];
  int is_complete, started;
  int recv_handle;
} Send;

typedef struct {
  int mode, tag, len, src;
  void* send_id;
  int recv_handle;
} Head;

typedef struct {
  Head head;
  char buffer[SHORT_MAX];
} Packet;

static int rank, size;
static Receive *posted, *unexpected;
static const char* case_name;

static void failed(const char* what, long a, long b) {
  fprintf(stderr, "ch2_driver %s: rank %d: %s (%ld, %ld)\n", case_name, rank, what, a, b);
  exit(1);
}
#define REQUIRE(condition, a, b) ((condition) ? (void)0 : failed(#condition, (long)(a), (long)(b)))

static int data_behind(const void* pkt) {
  const Head* head = (const Head*)pkt;
  return head->mode == LONG ? head->len : 0;
}

/* ---- queues ---- */

static Receive* take(Receive** list, int from, int tag) {
  Receive** at;
  for (at = list; *at; at = &(*at)->next)
    if (((*at)->from == from || (*at)->from == ANY || from == ANY) && (*at)->tag == tag) {
      Receive* r = *at;
      *at = r->next;
      r->next = NULL;
      return r;
    }
  return NULL;
}

static void put(Receive** list, Receive* r) {
  while (*list) list = &(*list)->next;
  r->next = NULL;
  *list = r;
}

/* ---- receiving ---- */

static void ok_to_send(Receive* rhandle, void* send_id, int to) {
  Packet pkt;
  int rtag;
  MPID_CreateRecvTransfer(0, 0, to, &rtag);
  rhandle->recv_handle = rtag;
  rhandle->by_transfer = 1;
#ifndef MPID_LITE_BLOCKING
  MPID_StartNBRecvTransfer(rhandle->buf, rhandle->len, nowhere_declared, rtag, rhandle,
                           rhandle->rid);
#endif
  memset(&pkt.head, 0, sizeof pkt.head);
  pkt.head.mode = OK_TO_SEND;
  pkt.head.src = rank;
  pkt.head.send_id = send_id;
  pkt.head.recv_handle = rtag;
  MPID_SendControlBlock(&pkt, sizeof pkt.head, to);
  memset(&pkt, 0x5A, sizeof pkt); /* the packet is on the stack, and gone */
}

/* The three protocols' "posted" handlers. */
static void arrive(Receive* rhandle, Head* head, int from, const char* data) {
  int fits = head->len <= rhandle->len ? head->len : rhandle->len;
  rhandle->from = from;
  rhandle->matched = 1;
  rhandle->s.count = fits;
  rhandle->s.MPI_ERROR = fits < head->len ? MPI_ERR_TRUNCATE : 0;
  switch (head->mode) {
    case SHORT:
      memcpy(rhandle->buf, data, fits);
      rhandle->is_complete = 1;
      break;
    case LONG:
      MPID_RecvFromChannel(rhandle->buf, fits, from);
      rhandle->is_complete = 1;
      break;
    case REQUEST: ok_to_send(rhandle, head->send_id, from); break;
  }
}

static void keep_unexpected(Head* head, int from, const char* data) {
  Receive* u = calloc(1, sizeof *u);
  u->from = from;
  u->tag = head->tag;
  u->mode = head->mode;
  u->bytes = head->len;
  u->send_id = head->send_id;
  if (head->mode != REQUEST && head->len > 0) {
    u->start = malloc(head->len);
    if (head->mode == SHORT)
      memcpy(u->start, data, head->len);
    else
      MPID_RecvFromChannel(u->start, head->len, from);
  }
  put(&unexpected, u);
}

static void acknowledge(Head* head, int from) {
  Send* s = (Send*)head->send_id;
  s->recv_handle = head->recv_handle;
  s->started = 1;
#ifdef MPID_LITE_BLOCKING
  MPID_SendTransfer(s->start, s->bytes, from, s->recv_handle);
  s->is_complete = 1;
#else
  MPID_StartNBSendTransfer(s->start, s->bytes, from, s->recv_handle, s->sid);
#endif
}

/* -1: nothing there. */
static int check_incoming(int blocking) {
  Packet pkt;
  int from = -1;
  Receive* r;
  if (!blocking && !MPID_ControlMsgAvail()) return -1;
  MPID_RecvAnyControl(&pkt, sizeof pkt, &from);
  REQUIRE(from == pkt.head.src, from, pkt.head.src);
  if (pkt.head.mode == OK_TO_SEND) {
    acknowledge(&pkt.head, from);
  } else if ((r = take(&posted, from, pkt.head.tag)) != NULL) {
    arrive(r, &pkt.head, from, pkt.buffer);
  } else {
    keep_unexpected(&pkt.head, from, pkt.buffer);
  }
  return 0;
}

static void irecv(Receive* r, void* buf, int len, int from, int tag) {
  Receive* u;
  memset(r, 0, sizeof *r);
  r->buf = buf;
  r->len = len;
  r->tag = tag;
  r->from = from;
  u = take(&unexpected, from, tag);
  if (!u) {
    put(&posted, r);
    return;
  }
  r->from = u->from;
  r->matched = 1;
  if (u->mode == REQUEST) { /* as ch2: the length is not looked at here */
    r->s.count = u->bytes;
    ok_to_send(r, u->send_id, u->from);
  } else {
    int fits = u->bytes <= len ? u->bytes : len;
    if (fits > 0) memcpy(buf, u->start, fits);
    r->s.count = fits;
    r->s.MPI_ERROR = fits < u->bytes ? MPI_ERR_TRUNCATE : 0;
    r->is_complete = 1;
  }
  free(u->start);
  free(u);
}

/* As MPI_Test does. */
static int test_recv(Receive* rhandle) {
  if (rhandle->is_complete) return 1;
  if (!rhandle->by_transfer) {
    check_incoming(0);
    return rhandle->is_complete;
  }
#ifdef MPID_LITE_BLOCKING
  if (MPID_TestRecvTransfer(rhandle)) {
    MPID_RecvTransfer(rhandle->buf, rhandle->s.count, rhandle->from, rhandle->recv_handle);
    rhandle->is_complete = 1;
  }
#else
  if (MPID_TestNBRecvTransfer(rhandle)) /* and nothing after it */
    rhandle->is_complete = 1;
#endif
  return rhandle->is_complete;
}

static void wait_recv(Receive* rhandle) {
  while (!rhandle->is_complete && !rhandle->by_transfer) check_incoming(1);
  if (rhandle->is_complete) return;
#ifdef MPID_LITE_BLOCKING
  while (!MPID_TestRecvTransfer(rhandle)) {
    lite_host_wait_for_news();
    check_incoming(0);
  }
  MPID_RecvTransfer(rhandle->buf, rhandle->s.count, rhandle->from, rhandle->recv_handle);
#else
  while (!MPID_TestNBRecvTransfer(rhandle)) check_incoming(0);
  MPID_EndNBRecvTransfer(rhandle, rhandle->recv_handle, rhandle->rid);
#endif
  rhandle->is_complete = 1;
}

/* ---- sending ---- */

static void isend_as(Send* s, int mode, const void* buf, int len, int to, int tag) {
  Packet pkt;
  memset(s, 0, sizeof *s);
  s->start = buf;
  s->bytes = len;
  memset(&pkt.head, 0, sizeof pkt.head);
  pkt.head.mode = mode;
  pkt.head.tag = tag;
  pkt.head.len = len;
  pkt.head.src = rank;
  pkt.head.send_id = s;
  if (mode == SHORT) {
    if (len > 0) memcpy(pkt.buffer, buf, len);
    MPID_SendControlBlock(&pkt, sizeof pkt.head + len, to);
    s->is_complete = 1;
  } else if (mode == LONG) {
    MPID_SendControl(&pkt, sizeof pkt.head, to);
#ifdef MPID_LITE_BLOCKING
    MPID_SendChannel(buf, len, to);
    s->is_complete = 1;
#else
    MPID_ISendChannel(buf, len, to, s->sid);
    s->started = 1;
#endif
  } else {
    MPID_SendControlBlock(&pkt, sizeof pkt.head, to);
  }
  memset(&pkt, 0xA5, sizeof pkt);
}

static void isend(Send* s, const void* buf, int len, int to, int tag) {
  isend_as(s, len <= SHORT_MAX ? SHORT : len <= EAGER_MAX ? LONG : REQUEST, buf, len, to, tag);
}

static void wait_send(Send* s) {
  while (!s->is_complete && !s->started) check_incoming(1);
#ifndef MPID_LITE_BLOCKING
  if (!s->is_complete) MPID_WSendChannel(s->sid);
#endif
  s->is_complete = 1;
}

static void send_to(const void* buf, int len, int to, int tag) {
  Send s;
  isend(&s, buf, len, to, tag);
  wait_send(&s);
}

static int recv_from(void* buf, int len, int from, int tag) {
  Receive r;
  irecv(&r, buf, len, from, tag);
  wait_recv(&r);
  REQUIRE(r.s.MPI_ERROR == 0, r.s.MPI_ERROR, r.s.count);
  return r.s.count;
}

/* ---- helpers of the cases ---- */

static unsigned char pattern(unsigned seed, int i) {
  return (unsigned char)(seed * 131u + (unsigned)i * 7u + ((unsigned)i >> 8));
}

static void fill(void* buf, int len, unsigned seed) {
  int i;
  for (i = 0; i < len; i++) ((unsigned char*)buf)[i] = pattern(seed, i);
}

static void verify(const void* buf, int len, unsigned seed) {
  int i;
  for (i = 0; i < len; i++)
    if (((const unsigned char*)buf)[i] != pattern(seed, i)) failed("a byte is wrong at", i, seed);
}

static void* room(int len) {
  void* p = malloc(len > 0 ? len : 1);
  REQUIRE(p != NULL, len, 0);
  return p;
}

static void pause_ms(int ms) {
  struct timespec end, now;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += ms % 1000 * 1000000L;
  end.tv_sec += ms / 1000 + end.tv_nsec / 1000000000L;
  end.tv_nsec %= 1000000000L;
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

static void meet(void) {
  char c = 0;
  int i;
  if (rank == 0) {
    for (i = 1; i < size; i++) recv_from(&c, 1, i, 9999);
    for (i = 1; i < size; i++) send_to(&c, 1, i, 9998);
  } else {
    send_to(&c, 1, 0, 9999);
    recv_from(&c, 1, 0, 9998);
  }
}

static unsigned next_random(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static const int sizes[] = {0,     1,         100,           SHORT_MAX, SHORT_MAX + 1, 5000,
                            65536, EAGER_MAX, EAGER_MAX + 1, 300000,    1500000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* ---- the cases ---- */

/* Everybody sends everybody a random sequence of all sizes, with one tag: they arrive in order,
 * whole, expected or not. */
static void fifo_per_pair(void) {
  enum { COUNT = 60 };
  int peer, i;
  Send* sends = room(size * COUNT * sizeof(Send));
  char** bufs = room(size * COUNT * sizeof(char*));
  for (i = 0; i < COUNT; i++)
    for (peer = 0; peer < size; peer++) {
      unsigned state = (unsigned)(rank * 1000 + peer * 100 + i);
      int len = sizes[next_random(&state) % SIZES];
      if (peer == rank) continue;
      bufs[peer * COUNT + i] = room(len);
      fill(bufs[peer * COUNT + i], len, (unsigned)(rank + i));
      isend(&sends[peer * COUNT + i], bufs[peer * COUNT + i], len, peer, 7);
    }
  for (i = 0; i < COUNT; i++)
    for (peer = size - 1; peer >= 0; peer--) {
      unsigned state = (unsigned)(peer * 1000 + rank * 100 + i);
      int len = sizes[next_random(&state) % SIZES], got;
      char* buf;
      if (peer == rank) continue;
      buf = room(1500000);
      got = recv_from(buf, 1500000, peer, 7);
      REQUIRE(got == len, got, len);
      verify(buf, len, (unsigned)(peer + i));
      free(buf);
    }
  for (peer = 0; peer < size; peer++)
    for (i = 0; peer != rank && i < COUNT; i++) {
      wait_send(&sends[peer * COUNT + i]);
      free(bufs[peer * COUNT + i]);
    }
  free(bufs);
  free(sends);
}

/* The data of several eager messages, from several senders, is that of the envelope just taken,
 * whatever moves between the two: a transfer is asked for there. */
static void data_follows_its_envelope(void) {
  int i, peer, from;
  char *buf = room(EAGER_MAX), *large = room(2 * EAGER_MAX);
  if (rank != 0) {
    Send transfer;
    if (rank == 1) isend_as(&transfer, REQUEST, large, 2 * EAGER_MAX, 0, 2);
    for (i = 0; i < 40; i++) {
      fill(buf, 2000 + i * 900, (unsigned)(rank * 50 + i));
      send_to(buf, 2000 + i * 900, 0, 1);
    }
    if (rank == 1) wait_send(&transfer); /* from now on it is not pending any more */
  } else {
    int count[64] = {0};
    Receive transfer;
    irecv(&transfer, large, 2 * EAGER_MAX, 1, 2);
    for (i = 0; i < 40 * (size - 1);) {
      Packet pkt;
      if (i % 2) /* what comes meanwhile is kept by the handler, which makes no room for data */
        pause_ms(2);
      MPID_RecvAnyControl(&pkt, sizeof pkt, &from);
      if (pkt.head.mode == SHORT) { /* of one that is through already */
        keep_unexpected(&pkt.head, from, pkt.buffer);
        continue;
      }
      if (pkt.head.mode == REQUEST) {
        arrive(take(&posted, from, pkt.head.tag), &pkt.head, from, pkt.buffer);
        continue;
      }
      i++;
      if (transfer.by_transfer) {
        pause_ms(i % 3 == 0);
        lite_host_look(transfer.rid);
      }
      REQUIRE(pkt.head.mode == LONG && pkt.head.len == 2000 + count[from] * 900, pkt.head.mode,
              pkt.head.len);
      MPID_RecvFromChannel(buf, pkt.head.len, from);
      verify(buf, pkt.head.len, (unsigned)(from * 50 + count[from]));
      count[from]++;
    }
    for (peer = 1; peer < size; peer++) REQUIRE(count[peer] == 40, count[peer], peer);
    wait_recv(&transfer);
  }
  free(large);
  free(buf);
}

/* 200 eager messages with an answer each: conformance counts what rank 0 writes. */
static void eager_is_one_write(void) {
  int i;
  char *buf = room(5000), c = 0;
  for (i = 0; i < 200 && rank < 2; i++)
    if (rank == 0) {
      send_to(buf, 5000, 1, 1);
      recv_from(&c, 1, 1, 1);
    } else {
      recv_from(buf, 5000, 0, 1);
      send_to(&c, 1, 0, 1);
    }
  free(buf);
}

/* Far more packets than ch2's window of 40, from both sides, before anybody takes one: SendControl
 * returns without the receiver. */
static void send_control_never_deadlocks(void) {
  enum { COUNT = 20000 };
  int i, peer = (rank + 1) % size, from = (rank + size - 1) % size;
  char data[900];
  for (i = 0; i < COUNT; i++) {
    Send s;
    fill(data, (int)sizeof data, (unsigned)i);
    isend(&s, data, (int)sizeof data, peer, 2);
  }
  memset(data, 0, sizeof data);
  for (i = 0; i < COUNT; i++) {
    int got = recv_from(data, (int)sizeof data, from, 2);
    REQUIRE(got == (int)sizeof data, got, i);
    verify(data, got, (unsigned)i);
  }
}

/* Eager data likewise: nobody receives before everybody has sent. */
static void send_channel_never_deadlocks(void) {
  enum { COUNT = 100 };
  int i, peer = (rank + 1) % size, from = (rank + size - 1) % size;
  char* buf = room(EAGER_MAX);
  for (i = 0; i < COUNT; i++) {
    fill(buf, EAGER_MAX, (unsigned)i);
    send_to(buf, EAGER_MAX, peer, 3);
    memset(buf, 0xEE, EAGER_MAX); /* the buffer is the caller's again */
  }
  for (i = 0; i < COUNT; i++) {
    int got = recv_from(buf, EAGER_MAX, from, 3);
    REQUIRE(got == EAGER_MAX, got, i);
    verify(buf, got, (unsigned)i);
  }
  free(buf);
}

/* MPI_Send of an eager message to somebody who computes for long comes back. */
static void send_returns_without_the_receiver(void) {
  enum { COUNT = 150 };
  char* buf = room(EAGER_MAX);
  int i;
  if (rank == 0) {
    struct timespec before, after;
    long ms;
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (i = 0; i < COUNT; i++) {
      fill(buf, EAGER_MAX, (unsigned)i);
      send_to(buf, EAGER_MAX, 1, 4);
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    REQUIRE(ms < 2500, ms, COUNT);
  } else if (rank == 1) {
    pause_ms(3000);
    for (i = 0; i < COUNT; i++) {
      recv_from(buf, EAGER_MAX, 0, 4);
      verify(buf, EAGER_MAX, (unsigned)i);
    }
  }
  free(buf);
}

/* Both send a large message and then receive: each is asked to send while it sends. And the same in
 * a ring. */
static void head_to_head_rendezvous(void) {
  enum { BYTES = 8 << 20 };
  char *out = room(BYTES), *in = room(BYTES);
  int round, distance;
  for (distance = 1; distance < size; distance++)
    for (round = 0; round < 4; round++) {
      int to = (rank + distance) % size, from = (rank + size - distance) % size;
      Receive r;
      Send s;
      fill(out, BYTES, (unsigned)(rank + round));
      memset(in, 0, BYTES);
      if (round % 2) irecv(&r, in, BYTES, from, 5);
      isend(&s, out, BYTES, to, 5);
      if (round % 2 == 0) irecv(&r, in, BYTES, from, 5);
      if (round < 2) {
        wait_send(&s);
        wait_recv(&r);
      } else {
        while (!test_recv(&r)) check_incoming(0);
        wait_send(&s);
      }
      REQUIRE(r.s.count == BYTES && r.s.MPI_ERROR == 0, r.s.count, r.s.MPI_ERROR);
      verify(in, BYTES, (unsigned)(from + round));
    }
  free(out);
  free(in);
}

/* While a large message is sent, many eager ones come in front of what the other's transfer needs.
 */
static void eager_flood_in_a_wait(void) {
  enum { BYTES = 16 << 20, COUNT = 80 };
  char *out = room(BYTES), *in = room(BYTES), *small = room(EAGER_MAX);
  int peer = rank ^ 1, i;
  if (peer < size) {
    Receive r;
    Send s, *many = room(COUNT * sizeof(Send));
    fill(out, BYTES, (unsigned)rank);
    fill(small, EAGER_MAX, 77);
    irecv(&r, in, BYTES, peer, 6);
    isend(&s, out, BYTES, peer, 6);
    for (i = 0; i < COUNT; i++) isend(&many[i], small, EAGER_MAX, peer, 8);
    wait_send(&s);
    wait_recv(&r);
    verify(in, BYTES, (unsigned)peer);
    for (i = 0; i < COUNT; i++) wait_send(&many[i]);
    for (i = 0; i < COUNT; i++) {
      memset(in, 0, EAGER_MAX);
      recv_from(in, EAGER_MAX, peer, 8);
      verify(in, EAGER_MAX, 77);
    }
    free(many);
  }
  free(out);
  free(in);
  free(small);
}

/* Many transfers at once, asked for in another order than they were announced. */
static void transfers_in_any_order(void) {
  enum { COUNT = 50, BYTES = 200000 };
  int i;
  char* bufs[COUNT];
  for (i = 0; i < COUNT; i++) bufs[i] = room(BYTES);
  if (rank == 0) {
    Send sends[COUNT];
    for (i = 0; i < COUNT; i++) {
      fill(bufs[i], BYTES, (unsigned)i);
      isend(&sends[i], bufs[i], BYTES, 1, 100 + i);
    }
    for (i = 0; i < COUNT; i++) wait_send(&sends[i]);
  } else if (rank == 1) {
    Receive receives[COUNT];
    for (i = 0; i < COUNT; i++) {
      int k = (i * 17 + 3) % COUNT;
      irecv(&receives[k], bufs[k], BYTES, 0, 100 + k);
    }
    for (i = COUNT - 1; i >= 0; i--) {
      wait_recv(&receives[i]);
      REQUIRE(receives[i].s.count == BYTES, receives[i].s.count, i);
      verify(bufs[i], BYTES, (unsigned)i);
    }
  }
  for (i = 0; i < COUNT; i++) free(bufs[i]);
}

/* Each protocol, posted and unexpected, waited for and tested for, into less room than is sent:
 * what fits, an error, nothing beyond, and the next message is whole. */
static void truncation(void) {
  static const int lengths[] = {800, 60000, 3000000};
  int which, late, by_test;
  char *buf = room(3000000 + 100), c = 0;
  for (which = 0; which < 3; which++)
    for (late = 0; late < 2; late++)
      for (by_test = 0; by_test < 2; by_test++) {
        int len = lengths[which];
        if (rank == 0) {
          Send s;
          if (!late) recv_from(&c, 1, 1, 11);
          fill(buf, len, (unsigned)which);
          isend(&s, buf, len, 1, 10);
          if (late) send_to(&c, 1, 1, 12);
          wait_send(&s);
          fill(buf, len, 99);
          send_to(buf, len, 1, 13);
        } else if (rank == 1) {
          Receive r;
          int room_for = len / 3, i;
          if (late) recv_from(&c, 1, 0, 12); /* what was sent before it is unexpected now */
          memset(buf, 0xCC, len + 100);
          irecv(&r, buf, room_for, 0, 10);
          if (!late) send_to(&c, 1, 0, 11);
          if (by_test)
            while (!test_recv(&r)) check_incoming(0);
          else
            wait_recv(&r);
          REQUIRE(r.s.MPI_ERROR == MPI_ERR_TRUNCATE, which, late);
          REQUIRE(r.s.count == room_for, r.s.count, room_for);
          verify(buf, room_for, (unsigned)which);
          for (i = room_for; i < len + 100; i++)
            REQUIRE((unsigned char)buf[i] == 0xCC, i, room_for);
          REQUIRE(recv_from(buf, len, 0, 13) == len, len, 0);
          verify(buf, len, 99);
        }
      }
  free(buf);
}

/* Short and eager, to oneself, before and after the receive. */
static void to_oneself(void) {
  int i;
  char *out = room(EAGER_MAX), *in = room(EAGER_MAX);
  for (i = 0; i < 7; i++) {
    int len = sizes[i];
    Send s;
    Receive r;
    fill(out, len, (unsigned)i);
    isend(&s, out, len, rank, 20);
    irecv(&r, in, len, rank, 20);
    wait_send(&s);
    wait_recv(&r);
    REQUIRE(r.s.count == len, r.s.count, len);
    verify(in, len, (unsigned)i);
    irecv(&r, in, len, rank, 21);
    isend(&s, out, len, rank, 21);
    wait_recv(&r);
    wait_send(&s);
    verify(in, len, (unsigned)i);
  }
  free(out);
  free(in);
}

/* What a posted transfer receives arrives while its owner computes and calls nothing. Not with
 * LITE_CONTROLLER=sync. A busy machine takes its time. */
static void arrives_while_computing(void) {
  enum { BYTES = 4 << 20, WAIT_MS = 20000, NAP_MS = 50 };
  char *buf = room(BYTES), c = 0;
  if (rank == 0) {
    Receive r;
    int i = 0, waited = 0;
    memset(buf, 0, BYTES);
    irecv(&r, buf, BYTES, 1, 30);
    while (!r.by_transfer) check_incoming(1);
    for (; i < BYTES && waited < WAIT_MS; waited += NAP_MS) {
      pause_ms(NAP_MS);
      while (i < BYTES && ((volatile unsigned char*)buf)[i] == pattern(5, i)) i += 4093;
    }
    REQUIRE(i >= BYTES, i, BYTES);
    wait_recv(&r);
    verify(buf, BYTES, 5);
    send_to(&c, 1, 1, 31);
  } else if (rank == 1) {
    fill(buf, BYTES, 5);
    send_to(buf, BYTES, 0, 30);
    recv_from(&c, 1, 0, 31);
  }
  free(buf);
}

/* The others are told when a rank is gone, and do not wait for ever. */
static void lost_peer(void) {
  char c = 0;
  if (rank == 1) {
    send_to(&c, 1, 0, 1);
    recv_from(&c, 1, 0, 1);
    _exit(0);
  }
  if (rank == 0) {
    recv_from(&c, 1, 1, 1);
    send_to(&c, 1, 1, 1);
    recv_from(&c, 1, 1, 1);
  }
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"fifo_per_pair", fifo_per_pair},
    {"data_follows_its_envelope", data_follows_its_envelope},
    {"eager_is_one_write", eager_is_one_write},
    {"send_control_never_deadlocks", send_control_never_deadlocks},
    {"send_channel_never_deadlocks", send_channel_never_deadlocks},
    {"send_returns_without_the_receiver", send_returns_without_the_receiver},
    {"head_to_head_rendezvous", head_to_head_rendezvous},
    {"eager_flood_in_a_wait", eager_flood_in_a_wait},
    {"transfers_in_any_order", transfers_in_any_order},
    {"truncation", truncation},
    {"to_oneself", to_oneself},
    {"arrives_while_computing", arrives_while_computing},
    {"lost_peer", lost_peer},
};

int main(int argc, char** argv) {
  LiteHostOptions options;
  LiteHostJob job;
  size_t i;
  if (argc != 2) {
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) puts(cases[i].name);
    return argc == 1 ? 0 : 2;
  }
  case_name = argv[1];
  memset(&options, 0, sizeof options);
  options.data_behind = data_behind;
  alarm(60); /* a deadlock is a failure */
  if (lite_host_start(&options, &job) != 0) {
    fprintf(stderr, "ch2_driver: %s\n", lite_host_error());
    return 1;
  }
  rank = job.rank;
  size = job.size;
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (strcmp(cases[i].name, case_name) == 0) {
      cases[i].run();
      meet();
      lite_host_end();
      return 0;
    }
  fprintf(stderr, "ch2_driver: no case %s\n", case_name);
  return 2;
}
