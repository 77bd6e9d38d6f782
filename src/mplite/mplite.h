/* MP_*: tagged messages between the ranks of a job over TCP, moved while the application computes.
 * Plain C, no MPI needed. Implemented by mplite.cpp over messages.h and engine.h. Ranks are started
 * by lite-mprun, or by any program that brings an address exchange of its own (MP_Init_local,
 * MP_Init_table).
 *
 * Names and argument order are MP_Lite's; every call returns a result (there they were void, and
 * errors ended the process), lengths are 64-bit. One thread at a time may be inside a call. How
 * messages move outside of calls is chosen by LITE_CONTROLLER (sigio, thread, sync); with sigio the
 * calls belong to the thread that called MP_Init. All LITE_* variables are listed by `lite-info`;
 * SHORT_MAX, EAGER_MAX and CREDITS mean nothing here.
 *
 * Matching: a receive takes the earliest message of its source and tag; two messages of one pair
 * that both fit are taken in the order sent. A wildcard is any negative number. Messages for which
 * no receive is posted are held up to LITE_UNEXPECTED_MAX bytes, beyond that the sender is held
 * back by TCP; only when a receive that was posted stands behind them are they taken beyond the
 * bound. Results: MP_OK or a negative MP_ERR_*; MP_Last_Error() has the sentence. */
#ifndef MPLITE_H_INCLUDED
#define MPLITE_H_INCLUDED

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  MP_OK = 0,
  MP_ERR_ARG = -1, /* an argument, an environment variable or the moment of the call is wrong */
  MP_ERR_NOMEM = -2,
  MP_ERR_TRUNCATE =
      -3, /* the message was longer than the receive: its first bytes are there, the rest is gone */
  MP_ERR_PEER_LOST =
      -4, /* the connection broke, the peer died, or it could not be reached in time */
  MP_ERR_SYSTEM = -5
};

#define MP_ANY_SOURCE (-1)
#define MP_ANY_TAG (-1)
#define MP_DONE \
  (-1) /* the id of an operation that is complete and forgotten; waiting for it is allowed */
#define MP_ADDRESS_BYTES 320 /* a card */

/* ---- start and end ---- */

/* Joins the job that lite-mprun started: MPLITE_RANK, MPLITE_SIZE, and MPLITE_FD, a stream
 * descriptor that takes this rank's card and answers with the table of all. The arguments
 * are not changed and may be NULL. */
int MP_Init(int* argc, char*** argv);

/* The same in two steps, for programs with an exchange of their own. Opens the listener and writes
 * MP_ADDRESS_BYTES to `address` (it holds a share of the job's secret: hand it to members of the
 * job only; after an error it tells the others why this process cannot start: hand it out all the
 * same) … */
int MP_Init_local(void* address);
/* … and joins: `table` holds `size` cards in rank order, the same on every rank. Connections are
 * made on first use. */
int MP_Init_table(int rank, int size, const void* table);

/* Ends together: waits until all has been sent and every rank is here. Messages that nobody
 * received are dropped. MP_ERR_PEER_LOST when a peer went without; everything is closed in any
 * case. */
int MP_Finalize(void);

int MP_Nprocs(void); /* 0 before MP_Init */
int MP_Myproc(void); /* -1 before MP_Init */

/* ---- messages; 0 <= dest < MP_Nprocs(), tag >= 0; oneself is a valid partner ---- */

/* Starts a send. `buffer` must stay until the operation was waited for. *id is MP_DONE when it is
 * complete already. */
int MP_ASend(const void* buffer, int64_t nbytes, int dest, int tag, int* id);
/* Starts a receive of at most `nbytes`. */
int MP_ARecv(void* buffer, int64_t nbytes, int src, int tag, int* id);
/* Until the operation is complete; a send: until `buffer` may be used again, which a bounded copy
 * (64 MB) may bring about when the receiver is slow. Sets *id to MP_DONE, also on error (but for
 * MP_ERR_ARG and MP_ERR_NOMEM). */
int MP_Wait(int* id);
/* As MP_Wait, but a send is never copied: the kernel has taken it all. */
int MP_Block(int* id);
/* *flag: whether it is complete; if so as MP_Wait. */
int MP_Test(int* id, int* flag);
/* *flag: whether all `count` are complete; if so all are MP_DONE and the result is the first error;
 * if not, none is changed. */
int MP_Testall(int count, int* ids, int* flag);

int MP_Send(const void* buffer, int64_t nbytes, int dest, int tag);  /* MP_ASend, MP_Wait */
int MP_Recv(void* buffer, int64_t nbytes, int src, int tag);         /* MP_ARecv, MP_Wait */
int MP_SSend(const void* buffer, int64_t nbytes, int dest, int tag); /* MP_ASend, MP_Block */
/* Sends to `dest` and receives from `src`, `nbytes` each, together: a ring of these does not
 * deadlock. */
int MP_SShift(const void* send_buffer, int dest, void* recv_buffer, int src, int64_t nbytes,
              int tag);

/* Whether a message is there that MP_Recv(…, nbytes, src, tag) would take whole; nbytes < 0: of any
 * length. The message need not have arrived in full. When *flag is set, MP_Get_Last_* tell of it.
 */
int MP_AProbe(int64_t nbytes, int src, int tag, int* flag);
/* Waits for such a message. MP_ERR_TRUNCATE when the one that a receive would take is longer. */
int MP_Probe(int64_t nbytes, int src, int tag);

/* Until every rank has called it (dissemination: log2(ranks) messages each). */
int MP_Sync(void);

/* Of the receive last waited for, or the message last probed. The size is what was delivered; for a
 * probe, the whole length. */
int MP_Get_Last_Tag(void);
int MP_Get_Last_Source(void);
int64_t MP_Get_Last_Size(void);

double MP_Time(void);            /* seconds, monotonic, of this host */
const char* MP_Last_Error(void); /* names the thing and the cure; never NULL */

#ifdef __cplusplus
}
#endif
#endif
