/* The C API of the channel device: what a host (MPICH's ch4 glue, the test programs) calls.
 * MPI semantics without MPI types: matching, short, eager and rendezvous protocols, active
 * messages. Implemented by device.cpp; everything below reaches the wire only through channel.h.
 *
 * Threads: calls are serialised by the caller (ch4 holds its VCI lock); the SIGIO handler and the
 * helper thread of the `thread` controller run beside them and are kept out by the engine's
 * progress gate. Unless said otherwise a call is ordinary context only (never from a signal
 * handler) and may allocate. No callback of the host is ever invoked from the handler or the helper
 * thread: the active-message callback and completions run in ordinary context, inside
 * lite_progress() or the call itself. Errors: functions that can fail return a negative LITE_ERR_*;
 * lite_last_error() then has the sentence for people. Source: MPI 4.0 chapter 3 (matching,
 * truncation, synchronous mode, matched probe). */
#ifndef CH_LITE_H_INCLUDED
#define CH_LITE_H_INCLUDED

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  LITE_OK = 0, /* done (see each call) */
  LITE_PENDING =
      1, /* started; *request is set and completes later through lite_next_completion() */
  LITE_ERR_ARG = -1, /* a knob or an argument is bad */
  LITE_ERR_NOMEM = -2,
  LITE_ERR_TRUNCATE =
      -3, /* the message was longer than the receive; the first bytes are delivered */
  LITE_ERR_PEER_LOST =
      -4, /* the connection broke, the peer died, or it could not be reached in time */
  LITE_ERR_SYSTEM = -5,    /* a system call failed: errno is in the text */
  LITE_ERR_CANCELLED = -6, /* the receive was cancelled */
  LITE_ERR_JOB = -7 /* the job cannot start, and every rank sees why: one can speak for all */
};

#define LITE_ADDRESS_BYTES 320 /* a card: fixed size, copied by value through PMI */
#define LITE_ANY_SOURCE (-1)
#define LITE_ANY_TAG (-1)
#define LITE_AM_HEADER_MAX 4096 /* bytes of a host's active-message header */

/* What matching looks at. `source` is the sender's rank in the communicator, as the receiver will
 * report it; it is not a peer. `context` tells communicators apart. Tags are non-negative; `tag`
 * may carry bits that the host ignores when matching (lite_set_tag_ignore_bits) and that come back
 * in lite_status.tag. */
typedef struct lite_envelope {
  uint32_t context;
  int32_t source; /* LITE_ANY_SOURCE in a receive or probe */
  int32_t tag;    /* LITE_ANY_TAG in a receive or probe */
} lite_envelope;

typedef struct lite_status {
  int error;      /* LITE_OK or LITE_ERR_* */
  int32_t source; /* of the message, when one was matched */
  int32_t tag;
  int peer;       /* world rank of the sender or of the lost peer; -1 unknown */
  uint64_t bytes; /* length of the message delivered (truncated: of what fitted) */
} lite_status;

typedef struct lite_request
    lite_request; /* a send or receive under way, or a completed one not yet freed */
typedef struct lite_message lite_message; /* a matched message detached by lite_improbe */

/* ---- start and end ---- */

/* Reads the LITE_* knobs, opens the listener (bound to the chosen interface only) and writes this
 * process's card (LITE_ADDRESS_BYTES, holds host, port and this process's share of the job
 * secret: hand it out through PMI only). LITE_ERR_ARG: a knob does not parse; the text names the
 * variable, its value and what is allowed. After an error, `address` tells the other ranks why this
 * one cannot start: publish it all the same, so that they do not wait for it. */
int lite_init_local(void* address);

/* The lowest rank of the table that cannot start, or -1. Then lite_last_error() says which rank, on
 * which host, and why (shortened). Any time. */
int lite_find_failed(const void* table, int size);

/* Wires up: `table` holds `size` cards of LITE_ADDRESS_BYTES, in rank order; must be the same on
 * every rank. `local_ranks`: ranks on this host, oneself included (how to wait depends on it).
 * `thread_multiple`: MPI_THREAD_MULTIPLE. Starts the controller (LITE_CONTROLLER) owned by the
 * calling thread. No connection is made yet. LITE_ERR_JOB: the table is not sound (a rank cannot
 * start, cards contradict one another). Any other error is seen by this rank, and perhaps by no
 * other. */
int lite_init_world(int rank, int size, const void* table, int local_ranks, int thread_multiple);

/* Call when MPI_THREAD_MULTIPLE is learned later than init_world; idempotent. */
void lite_set_thread_multiple(int on);

/* Whether messages reach the host by a way that no socket tells of (shared memory), so that it
 * polls that and lite_progress in turn. Then a wait sleeps later, and never long, and while the
 * host's waits end without the device, most calls of lite_progress cost a few instructions and no
 * system call. After lite_init_world; without a device nothing happens. */
void lite_set_shared_memory(int on);
/* Asked before each sleep of a wait: whether anything moved that other way since it was asked last,
 * or is in the middle of it. Then nobody sleeps: the next piece is due any moment. Ordinary
 * context, inside lite_progress. NULL: nobody to ask. */
void lite_set_host_news(int (*news)(void));

/* Blocks until everything queued has been taken by the kernel, or its peer is lost. First half of
 * the end: the host then runs its own barrier. Also wherever the host is going to wait for a
 * process without polling. */
int lite_flush(void);
/* Second half: an EOF from a peer is now ordinary (call it after lite_flush and before the host's
 * barrier). */
void lite_finalize_quiesce(void);
/* Last: disarms, stops the controller, closes, prints LITE_STATS if asked, frees all. */
void lite_finalize_close(void);

/* The sentence that belongs to the last LITE_ERR_* (or lost peer): names the thing and the cure.
 * Never NULL. */
const char* lite_last_error(void);

/* For an error that ends the process: "ch_lite: TEXT" on stderr, and a wait of at most a second
 * until a launcher that reads it through a pipe has done so. The host's own report is written just
 * before it asks for the end of the job, which Hydra may do without reading it. */
void lite_say_last_words(const char* text);

/* Tag bits that never take part in matching (MPICH's error bits). Default 0. */
void lite_set_tag_ignore_bits(uint32_t bits);

/* ---- who belongs to which communicator ---- */

enum { LITE_NOT_A_MEMBER = -1, LITE_NO_COMMUNICATOR = 0, LITE_MEMBER = 1 };
/* The host's answer to: is `peer` the process that `source` stands for in the communicator under
 * whose `context` we receive (of an intercommunicator: in its remote group)? LITE_ANY_SOURCE: is it
 * in there at all? LITE_NO_COMMUNICATOR: there is none with that context here, perhaps not yet.
 * Asked in ordinary context only, seldom, with the device's gate held: it must not call the device,
 * nor wait for anybody who may. */
typedef int (*lite_member_callback)(int peer, uint32_t context, int32_t source);
/* A receive from any source then fails only with the loss of a process that is in its communicator
 * (NULL: with the loss of any rank of the job), and a process of another job is given up
 * (LITE_ERR_PEER_LOST) when it sends as somebody else than it is. */
void lite_set_member_callback(lite_member_callback callback);
/* A communicator has ended: what the host has answered so far does not hold any more. */
void lite_members_changed(void);

/* What people call the communicator under whose `context` we receive, for reports of what a rank
 * waits for (LITE_STALL). Asked as a lite_member_callback is. NULL: the context's number is told.
 */
typedef void (*lite_context_name)(uint32_t context, char* text, size_t size);
void lite_set_context_name(lite_context_name name);

/* ---- point to point; `peer` is a world rank; peer == own rank is a self send ---- */

enum { LITE_SEND_SYNC = 1 /* complete only when matched (MPI_Ssend) */ };

/* Sends `bytes` from `buffer`. LITE_OK: complete, the buffer may be reused, *request untouched.
 * LITE_PENDING: *request is set; the buffer must stay. `cookie` comes back by lite_request_cookie.
 * Never blocks. With `request` null, here and in lite_isendv: only what is complete with the call.
 * LITE_PENDING then says that nothing was sent; call again with a request. */
int lite_isend(const void* buffer, size_t bytes, int peer, const lite_envelope* envelope,
               unsigned flags, void* cookie, lite_request** request);

/* Receives at most `bytes` into `buffer`. `peer` is the world rank that `envelope->source` stands
 * for, or -1 for any source (used to poll first and to fail the receive when that peer is lost).
 * LITE_OK: completed at once, *status is filled (its error may be LITE_ERR_TRUNCATE), *request
 * untouched. LITE_PENDING: *request is set. */
int lite_irecv(void* buffer, size_t bytes, int peer, const lite_envelope* envelope, void* cookie,
               lite_status* status, lite_request** request);

/* The same with memory in pieces, for derived datatypes: the first `bytes` bytes of the `count`
 * pieces, in their order, are the message or the room for one. The data goes from and to the pieces
 * without packing, from the signal handler too. The array must stay until complete, as the memory
 * must. Pieces may be empty; those of a send may overlap. LITE_ERR_ARG: the pieces have fewer than
 * `bytes` bytes. */
int lite_isendv(const struct iovec* pieces, size_t count, size_t bytes, int peer,
                const lite_envelope* envelope, unsigned flags, void* cookie,
                lite_request** request);
int lite_irecvv(const struct iovec* pieces, size_t count, size_t bytes, int peer,
                const lite_envelope* envelope, void* cookie, lite_status* status,
                lite_request** request);

/* Cancels a pending receive. 1: it was still unmatched, is withdrawn and freed, and will NOT show
 * up in lite_next_completion; 0: too late, it completes as usual. */
int lite_cancel_recv(lite_request* request);

/* Looks for an unexpected message (one engine poll included). Returns 1 and fills *status (bytes =
 * full length), or 0, or LITE_ERR_*. */
int lite_iprobe(int peer, const lite_envelope* envelope, lite_status* status);
/* As lite_iprobe, and detaches the message: only lite_imrecv can receive it. It may still be
 * arriving. */
int lite_improbe(int peer, const lite_envelope* envelope, lite_status* status,
                 lite_message** message);
/* Receives a detached message; same results as lite_irecv. Consumes `message`. */
int lite_imrecv(lite_message* message, void* buffer, size_t bytes, void* cookie,
                lite_status* status, lite_request** request);
/* Into pieces, as lite_irecvv. After LITE_ERR_ARG the message is still there. */
int lite_imrecvv(lite_message* message, const struct iovec* pieces, size_t count, size_t bytes,
                 void* cookie, lite_status* status, lite_request** request);

/* ---- one-sided: memory that peers read and write without this process; executed by its handler or
 * helper thread ---- */

/* Exposes `bytes` at `base` to every rank of the job until lite_withdraw. *key, 64 random bits and
 * never 0, names it: hand it to the peers. While anything is exposed, progress is armed whenever
 * the application is outside of MPI. */
int lite_expose(void* base, size_t bytes, uint64_t* key);
/* The same, to these peers and nobody else. Who else comes with the key is given up. */
int lite_expose_to(void* base, size_t bytes, const int* peers, size_t count, uint64_t* key);
/* 1: a peer's access to it is under way, as far as this process knows. Data that a peer has got
 * already may still be waiting for its acknowledgement: progress takes that. 0: none is. */
int lite_is_accessed(uint64_t key);
/* Returns when nothing reads or writes the memory any more. An access still under way is an error
 * of its peer, which is given up, as it is for an access that comes later or lies outside:
 * LITE_ERR_PEER_LOST on both sides. LITE_ERR_ARG: not exposed. */
int lite_withdraw(uint64_t key);

enum {
  LITE_PUT_UNANSWERED = 1, /* nobody asks when it is in the target's memory: one that leaves whole
                              is complete then, and the target need not answer */
  LITE_MORE_FOLLOWS = 2    /* the application will soon say more to that peer, and the two may leave
                              together; at the latest when lite_progress looks, or soon after the
                              application has gone by lite_host_exit_sending */
};
/* Copies `bytes` from `data` to `offset` in what `peer` exposed as `key`. LITE_PENDING: completes
 * when the data is in the target's memory. LITE_OK: it is there (peer is oneself). Accesses are in
 * no order with each other or with messages, but for what lite_request_is_in_order says. */
int lite_put(int peer, uint64_t key, uint64_t offset, const void* data, size_t bytes,
             unsigned flags, void* cookie, lite_request** request);
/* The other way; completes when the data is in `buffer`. `flags`: LITE_MORE_FOLLOWS or 0. */
int lite_get(int peer, uint64_t key, uint64_t offset, void* buffer, size_t bytes, unsigned flags,
             void* cookie, lite_request** request);
/* 0: a pending put whose `data` may be reused since lite_put returned. It does not change. */
int lite_request_holds_buffer(const lite_request* request);
/* 1: the access is over at its target (a get has read the memory) before any active message that is
 * sent to that peer later is delivered; so is an active message. Does not change either. */
int lite_request_is_in_order(const lite_request* request);

/* ---- completion ---- */

/* Moves everything that can move, then delivers arrived active messages to the callback. Returns
 * the number of completions waiting (0: none) or LITE_ERR_*. Called again and again while the host
 * waits, it yields and then sleeps by the waiting policy, as far as the kind of call permits it
 * (lite_host_call_begins). Without any: when no lite_host_exit came in between. Before
 * lite_init_world there is nothing to move: 0. */
int lite_progress(void);

/* The same for a host that polls shared memory as well (lite_set_shared_memory): 1 instead of a
 * call that would not even look. Handler and helper may set `skip` to 0 meanwhile; that the
 * subtraction may undo this costs these few polls. */
static inline int lite_may_skip(void);

/* The next completed request, or NULL. The caller reads status and cookie and then frees it.
 * lite_progress, taking and freeing: one thread at a time (the host's lock). */
lite_request* lite_next_completion(void);
void* lite_request_cookie(const lite_request* request);
void lite_request_status(const lite_request* request, lite_status* status);
int lite_request_is_send(const lite_request* request);
void lite_request_free(lite_request* request);

/* The same in one call: *done says all of these, and the request is freed. Returns how many
 * completions there were, this one included; 0: none, and *done is untouched. */
typedef struct lite_completion {
  void* cookie;
  lite_status status;
  int is_send;
  int holds_buffer; /* as lite_request_holds_buffer */
  int in_order;     /* as lite_request_is_in_order */
} lite_completion;
int lite_take_completion(lite_completion* done);

/* ---- active messages of the host: ordered per peer, delivered whole, in ordinary context only
 * ---- */

/* `header` and `data` are valid during the call only, aligned to 16 bytes. The callback may send
 * (p2p and active messages) and post receives, must not call lite_progress. */
typedef void (*lite_am_callback)(int peer, uint32_t handler, const void* header,
                                 size_t header_bytes, const void* data, size_t data_bytes,
                                 void* arg);
void lite_am_set_callback(lite_am_callback callback, void* arg);

/* Asked before the callback, and before memory is had for the data, about each active message of a
 * process of another job, under the conditions of lite_member_callback. LITE_MEMBER: deliver it;
 * LITE_NO_COMMUNICATOR: ask again later (it and what is behind it wait); LITE_NOT_A_MEMBER: no such
 * process sends such a thing, it is given up. NULL: all are delivered. */
typedef int (*lite_am_check)(int peer, uint32_t handler, const void* header, size_t header_bytes,
                             uint64_t data_bytes);
void lite_am_set_check(lite_am_check check);

/* Sends header (copied, at most LITE_AM_HEADER_MAX) and data (must stay until complete). Results as
 * lite_isend; with data_bytes == 0 always LITE_OK or an error. From the callback: it
 * leaves together with other answers, at the latest when the callbacks have been called. */
int lite_am_isend(int peer, uint32_t handler, const void* header, size_t header_bytes,
                  const void* data, size_t data_bytes, void* cookie, lite_request** request);
/* The same, and the application will soon say more to that peer, as with LITE_MORE_FOLLOWS. */
int lite_am_isend_more(int peer, uint32_t handler, const void* header, size_t header_bytes,
                       const void* data, size_t data_bytes, void* cookie, lite_request** request);
/* 1: one to that peer waits here for credit, and the next one will wait behind it. */
int lite_am_waits(int peer);

/* For who waits for an active message, of which the device knows nothing: how many peers are lost
 * (that had not taken their leave), and whether this one is: LITE_OK, or LITE_ERR_PEER_LOST, as a
 * send to it would return, with the text of lite_last_error. */
int lite_lost_peers(void);
int lite_check_lost(int peer);

/* ---- asynchronous progress: when the application is outside MPI ---- */

/* The state that the host's exit hook looks at on every return from MPI: reading it must cost a
 * load and a branch. want_arm != 0: something is outstanding and signals are not armed yet. */
typedef struct lite_hot_state {
  volatile int want_arm;
  volatile int polls_since_exit; /* lite_progress calls since the application was last outside MPI,
                                    at most INT_MAX */
  volatile int last_call;        /* LITE_CALL_*: what the application came for */
  volatile unsigned calls;       /* that started an operation */
  volatile int away; /* the application left with something outstanding, and no call of ours has
                        been made since */
  volatile int skip; /* so many polls, but for the first one since the application was outside,
                        would find nothing */
  volatile int
      yield_due; /* MPI_THREAD_MULTIPLE: give the core away as soon as the host's lock is open */
  volatile int only_sends; /* the application has done nothing but send since it last sent */
  volatile int gathered;   /* LITE_GATHERED_* */
  volatile int started; /* the application has started an operation since it was last outside MPI:
                           when it polls as well, it waits */
} lite_hot_state;
extern lite_hot_state lite_hot;
/* The helper thread, and other threads of the application, look at it and change it at the same
 * time: word by word, in no order. A plain load and store on every processor that we know. */
#define LITE_HOT_GET(field) __atomic_load_n(&lite_hot.field, __ATOMIC_RELAXED)
#define LITE_HOT_SET(field, value) __atomic_store_n(&lite_hot.field, (value), __ATOMIC_RELAXED)
enum { LITE_CALL_PROGRESS, LITE_CALL_SEND, LITE_CALL_RECEIVE, LITE_CALL_OTHER };
/* Small messages that wait to leave together: none; some, and the backstop sees to it that they
 * leave; some, and nobody does, for many sends in a row or by LITE_MORE_FOLLOWS. */
enum {
  LITE_GATHERED_NONE,
  LITE_GATHERED_GUARDED,
  LITE_GATHERED_UNGUARDED,
  LITE_GATHERED_IN_COMPANY
};

/* What lite_progress may do in the application's call when it finds nothing, again. It cannot tell
 * by itself: a host polls many times in one call also where that call must not block, and in the
 * middle of looking at the requests of a call that may. */
enum {
  LITE_MAY_BLOCK,     /* the default: the host looks at everything between two polls (MPI_Wait) */
  LITE_MAY_NOT_BLOCK, /* MPI_Testsome: never sleeps; gives the core away once, where ranks share
                         cores. Unless a loop that waits goes round in it (lite_host_scan_ends):
                         then a callback of the application has made a call that may block */
  LITE_SCANS /* MPI_Waitany: polls while it looks at its requests, one after the other. Sleeps only
              * when a whole scan has followed the last news, so that nothing that has completed is
              * left to be seen */
};
/* Of one thread. Decided on by patience.h. */
typedef struct lite_call_state {
  unsigned kinds; /* two bits each, the innermost call's lowest: a callback of the application may
                     call MPI */
  unsigned
      scans; /* that have ended since the call began or since the last news, whichever came later */
  unsigned idle_polls; /* since then, or since the last scan ended */
  unsigned fruitless;  /* calls that may not block, polled, and found nothing, so far */
  const char* name; /* of the last call that may wait, as MPI has it without MPI_; static. NULL: not
                       known. For reports: a store on the way in */
} lite_call_state;
extern __thread lite_call_state lite_call __attribute__((tls_model("initial-exec")));

/* Around a call that is not LITE_MAY_BLOCK, in the thread that makes it. They nest. */
static inline void lite_host_call_begins(unsigned kind) {
  lite_call.kinds = lite_call.kinds << 2 | kind;
  lite_call.scans = lite_call.idle_polls = 0;
}
static inline void lite_host_call_ends(void) { lite_call.kinds >>= 2; }
/* In a loop that waits: all that it waits for has been looked at, and it goes round again. */
static inline void lite_host_scan_ends(void) {
  ++lite_call.scans;
  lite_call.idle_polls = 0;
}

/* Called by the exit hook when lite_hot.want_arm is set: lets the signal through in the owning
 * thread (sigio), wakes the helper thread (thread), or, where the application is known to come
 * straight back after such a call, leaves that to a timer. */
void lite_host_exit_slow(void); /* and lets go what waits for company */
static inline void lite_host_exit(void) {
  LITE_HOT_SET(polls_since_exit, 0);
  LITE_HOT_SET(only_sends, 0);
  LITE_HOT_SET(started, 0);
  if (__builtin_expect(LITE_HOT_GET(want_arm) | LITE_HOT_GET(gathered), 0)) lite_host_exit_slow();
}

/* On return from calls after which there may be another one that sends (MPI_Isend, MPI_Put): what
 * waits for company goes on waiting for it, but not long (see streak.h). */
void lite_host_exit_sending_slow(void);
static inline void lite_host_exit_sending(void) {
  LITE_HOT_SET(polls_since_exit, 0);
  LITE_HOT_SET(started, 0);
  if (__builtin_expect(LITE_HOT_GET(want_arm) | (LITE_HOT_GET(gathered) >= LITE_GATHERED_UNGUARDED),
                       0))
    lite_host_exit_sending_slow();
}

/* With several application threads lite_progress is called with the host's lock held: a core given
 * away there goes to threads that can only wait for the lock, and who opens it in the next moment
 * takes it again before any of them is awake. So the device asks, and the host calls this where it
 * has let go of its lock between two polls. A load and a branch; any thread. A host that never
 * calls it gets its yields inside lite_progress, one poll late. */
void lite_host_lets_go_slow(void);
static inline void lite_host_lets_go(void) {
  if (__builtin_expect(LITE_HOT_GET(yield_due), 0)) lite_host_lets_go_slow();
}

/* The same at the end of a call that may not block, which opens the lock for good. Taken before
 * that, as the next thread finds it otherwise; then, 1: lite_host_lets_go_slow. */
static inline int lite_host_takes_yield(void) {
  if (__builtin_expect(LITE_HOT_GET(yield_due), 0)) {
    LITE_HOT_SET(yield_due, 0);
    return 1;
  }
  return 0;
}

static inline int lite_may_skip(void) {
  if (LITE_HOT_GET(skip) <= 0 || LITE_HOT_GET(polls_since_exit) == 0) return 0;
  LITE_HOT_SET(skip, LITE_HOT_GET(skip) - 1);
  return 1;
}

/* ---- what tools see: knobs and counters, by number from 0. Texts are static. Any thread, any
 * time, also before the start and after the end ---- */

typedef struct lite_knob {
  const char* name; /* LITE_… */
  const char* meaning;
  const char* allowed;
  const char* default_value;
} lite_knob;
int lite_knob_count(void);
void lite_knob_describe(int index, lite_knob* knob);
/* The value in force since lite_init_local (before: the default) as one would write it: "256K".
 * Returns `text`. */
const char* lite_knob_value(int index, char* text, size_t size);
enum { LITE_KNOB_VALUE_MAX = 1536 }; /* bytes that always suffice */

typedef struct lite_counter {
  const char* name; /* as in the line of LITE_STATS */
  const char* meaning;
  const char* unit; /* in the plural: "bytes" */
  int is_level; /* 0: a sum since the start, which only grows; 1: what there is now, or the highest
                   so far */
} lite_counter;
int lite_counter_count(void);
void lite_counter_describe(int index, lite_counter* counter);
/* After the end: the last value; of a level, 0. */
uint64_t lite_counter_read(int index);

#ifdef __cplusplus
}
#endif
#endif
