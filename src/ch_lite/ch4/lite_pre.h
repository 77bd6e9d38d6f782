/* What the host's own headers must know about the module: the types that it embeds in its objects, and the exit hook.
 * Included by mpidpre.h, that is by every file of libmpi: a change here recompiles all of it. */
#ifndef LITE_PRE_H_INCLUDED
#define LITE_PRE_H_INCLUDED

#include "ch_lite/ch_lite.h"

/* ---- the exit hook ----
 * Asynchronous progress is armed when a thread leaves MPI, and only if something is outstanding then. Every generated binding
 * (src/binding/c) ends in MPIR_FUNC_TERSE_EXIT, and nothing else uses it, so that macro is the place: a load and a branch.
 * Before MPI_Init and after MPI_Finalize lite_hot is all zero, so the hook does nothing.
 * mpiimpl.h includes this file before mpir_func.h, hence the include: its guard then keeps our definition. */
#include "mpir_func.h"

#undef MPIR_FUNC_TERSE_EXIT
#ifdef MPIR_FUNC_EXIT_
/* --enable-g=log: say so, then leave */
#define MPIR_FUNC_TERSE_EXIT              do { MPIR_FUNC_EXIT_(TERSE); lite_host_leaves(__func__); } while (0)
#else
#define MPIR_FUNC_TERSE_EXIT              lite_host_leaves(__func__)
#endif
#define lite_host_leaves(function) \
    do { \
        if (__builtin_strcmp(function, "internal_Session_finalize") == 0) \
            lite_host_resumes(); \
        if (__builtin_strcmp(function, "internal_Send") == 0 || \
            __builtin_strcmp(function, "internal_Isend") == 0) \
            lite_host_exit_sending(); \
        else \
            lite_host_exit(); \
    } while (0)

/* The helper thread may be in the host's progress when the host ends, which takes its locks out of use first of all. MPI_Finalize passes the entry macro before
 * that. The comparison of literals costs no other function anything: the compiler does it. */
#undef MPIR_FUNC_TERSE_ENTER
#ifdef MPIR_FUNC_ENTER_
#define MPIR_FUNC_TERSE_ENTER             do { MPIR_FUNC_ENTER_(TERSE); lite_host_ends_in(__func__); } while (0)
#else
#define MPIR_FUNC_TERSE_ENTER             lite_host_ends_in(__func__)
#endif
#define lite_host_ends_in(function) \
    do { \
        if (__builtin_strcmp(function, "internal_Finalize") == 0 || \
            __builtin_strcmp(function, "internal_Session_finalize") == 0) \
            lite_host_ending(); \
    } while (0)

/* ---- where the host lets go of its lock ----
 * With several threads the host opens its one lock between two polls of a wait, and calls this macro before it takes it again (MPIDU_Thread_yield). On Linux it is empty
 * by default, so that the thread that polls has the lock back before those that wait for it are awake. */
#include "mpl.h"

#undef MPL_thread_yield
#define MPL_thread_yield() lite_host_lets_go()

/* ---- what we keep in the host's objects ---- */

/* A native send or receive. Valid while the request is pending; `message` only from a matched probe to its receive. */
typedef struct {
    lite_request *request;      /* to cancel by; NULL once complete */
    lite_message *message;
    void *bounce;               /* packed data of a derived datatype, or NULL: the data is at the user's address, */
    int in_pieces;              /* or, if set, bounce is the list of its pieces there (see lite_pieces.c) */
    MPI_Datatype datatype;      /* receive with a bounce buffer or list: as what it is unpacked */
    MPI_Aint count;             /* (we hold a reference to the datatype), */
    void *buffer;               /* and where to; or a link (MPIDI_LITE_complete_later) */
    struct MPIDI_LITE_target *target;   /* request-based put or get only */
} MPIDI_LITE_request_t;

/* The host's active-message requests carry nothing of ours: one request may have several active messages under way at once
 * (see MPIDI_LITE_am_send_t), so their state cannot be kept in it. */
typedef struct {
    int unused;
} MPIDI_LITE_am_request_t;

/* A process as we address it. */
typedef struct {
    int peer;                   /* rank in MPI_COMM_WORLD */
} MPIDI_LITE_addr_t;

typedef struct {
    int unused;
} MPIDI_LITE_comm_t;

typedef struct {
    int unused;
} MPIDI_LITE_dt_t;

typedef struct {
    int unused;
} MPIDI_LITE_op_t;

struct MPIDI_LITE_win;

/* One target of a window, as this process sees it. */
typedef struct MPIDI_LITE_target {
    struct MPIDI_LITE_win *win;
    uint64_t key;               /* of its exposed memory; 0: none, or ourselves: by active messages */
    MPI_Aint bytes;
    int disp_unit;
    int pending;                /* native operations not complete at the target */
    int pending_local;          /* those of them that still need the origin's buffer */
} MPIDI_LITE_target_t;

/* All zero: no native operations. */
typedef struct MPIDI_LITE_win {
    MPIDI_LITE_target_t *targets;       /* by rank in the window's communicator */
    uint64_t key;               /* of our memory */
    int pending;                /* sums over the targets */
    int pending_local;
} MPIDI_LITE_win_t;

typedef struct {
    int unused;
} MPIDI_LITE_part_t;

#endif /* LITE_PRE_H_INCLUDED */
