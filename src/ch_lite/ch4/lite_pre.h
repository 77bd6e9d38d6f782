/* What the host's own headers must know about the module: the types that it embeds in its objects,
 * and the exit hook. Included by mpidpre.h, that is by every file of libmpi: a change here
 * recompiles all of it. */
#ifndef LITE_PRE_H_INCLUDED
#define LITE_PRE_H_INCLUDED

#include "ch_lite/ch_lite.h"
#include "lite_copy.h"
#include "lite_kernels.h"

/* 5.0: a session without MPI_Init makes the world communicator, too, and its communicators from
 * that: the job's secret is made of what every process of the job has published. */
#define MPID_SESSION_USE_WORLD 1

/* ---- the exit hook ----
 * Asynchronous progress is armed when a thread leaves MPI, and only if something is outstanding
 * then. Every generated binding (src/binding/c) ends in MPIR_FUNC_TERSE_EXIT, and nothing else uses
 * it but one function of ch4 (lite_is_innocent), so that macro is the place: a load and a branch.
 * Before MPI_Init and after MPI_Finalize lite_hot is all zero, so the hook does nothing. mpiimpl.h
 * includes this file before mpir_func.h, hence the include: its guard then keeps our definition. */
#include "mpir_func.h"

#undef MPIR_FUNC_TERSE_EXIT
#ifdef MPIR_FUNC_EXIT_
/* --enable-g=log: say so, then leave */
#define MPIR_FUNC_TERSE_EXIT        \
    do {                            \
        MPIR_FUNC_EXIT_(TERSE);     \
        lite_host_leaves(__func__); \
    } while (0)
#else
#define MPIR_FUNC_TERSE_EXIT lite_host_leaves(__func__)
#endif
/* Calls that neither start nor look at anything. Programs make them in handlers of their own, where
 * the engine must not be entered: MPI does not promise that, but other libraries allow it. And a
 * function inside MPI that uses the macro since 4.1. */
#define lite_is_innocent(function)                                         \
    (lite_is(function, "Wtime") || lite_is(function, "Wtick") ||           \
     lite_is(function, "Initialized") || lite_is(function, "Finalized") || \
     __builtin_strcmp(function, "MPIDI_Comm_create_multi_leaders") == 0)
/* After which the application may say more to the same peer at once. */
#define lite_says_more(function)                                                             \
    (lite_is(function, "Send") || lite_is(function, "Isend") || lite_is(function, "Put") ||  \
     lite_is(function, "Put_c") || lite_is(function, "Get") || lite_is(function, "Get_c") || \
     lite_is(function, "Accumulate") || lite_is(function, "Accumulate_c"))
#define lite_host_leaves(function)                                                  \
    do {                                                                            \
        if (lite_is_innocent(function))                                             \
            break;                                                                  \
        if (lite_may_schedule(function))                                            \
            MPIDI_LITE_schedule_begun(lite_starter_of(function));                   \
        if (lite_kind_of(function) != LITE_MAY_BLOCK)                               \
            lite_host_call_ends();                                                  \
        if (lite_is(function, "Finalize") || lite_is(function, "Session_finalize")) \
            MPIDI_LITE_resume_host_work();                                          \
        if (lite_says_more(function))                                               \
            lite_host_exit_sending();                                               \
        else                                                                        \
            lite_host_exit();                                                       \
        if (lite_takes_turns(function) && unlikely(MPIDI_LITE_calls_counted))       \
            MPIDI_LITE_call_ends(lite_waits_for_nobody(function));                  \
    } while (0)

/* The helper thread may be in the host's progress when the host ends, which takes its locks out of
 * use first of all. MPI_Finalize passes the entry macro before that. The comparison of literals
 * costs no other function anything: the compiler does it. */
#undef MPIR_FUNC_TERSE_ENTER
#ifdef MPIR_FUNC_ENTER_
#define MPIR_FUNC_TERSE_ENTER       \
    do {                            \
        MPIR_FUNC_ENTER_(TERSE);    \
        lite_host_enters(__func__); \
    } while (0)
#else
#define MPIR_FUNC_TERSE_ENTER lite_host_enters(__func__)
#endif
#define lite_host_enters(function)                                                  \
    do {                                                                            \
        if (lite_takes_turns(function) && unlikely(MPIDI_LITE_calls_counted))       \
            MPIDI_LITE_call_begins(lite_waits_for_nobody(function));                \
        if (lite_may_schedule(function))                                            \
            MPIDI_LITE_schedule_begins(lite_starter_of(function));                  \
        if (lite_frees(function))                                                   \
            MPIDI_LITE_object_is_freed();                                           \
        if (lite_has_destructor(function))                                          \
            MPIDI_LITE_destructor_is_made();                                        \
        if (__builtin_strcmp(function, "internalX_Async_start") == 0)               \
            MPIDI_LITE_progress_is_used();                                          \
        if (__builtin_strcmp(function, "internalX_Threadcomm_init") == 0)           \
            MPIDI_LITE_give_up_host_work();                                         \
        if (lite_is_named(function))                                                \
            lite_call.name = function + sizeof("internal_") - 1;                    \
        if (lite_kind_of(function) != LITE_MAY_BLOCK)                               \
            lite_host_call_begins(lite_kind_of(function));                          \
        if (lite_is(function, "Finalize") || lite_is(function, "Session_finalize")) \
            MPIDI_LITE_end_host_work();                                             \
        if (lite_is(function, "Finalize"))                                          \
            MPIDI_LITE_finalize_begins();                                           \
    } while (0)

/* ---- whose turn it is in MPI (lite_call_lock.c) ----
 * Not of calls that change nothing, which programs make in any thread, nor of MPI_Abort, which must
 * not wait, nor of MPI_File_*, which wait for disks: the calls that they make have turns. Functions
 * that any thread may call at any time, whatever MPI_Init_thread has said (MPI 4.1, 11.6.1), wait
 * for the end of a turn of our thread's, but not of another one that is in a call for minutes. */
extern int MPIDI_LITE_calls_counted;
void MPIDI_LITE_call_begins(int waits_for_nobody);
void MPIDI_LITE_call_ends(int waits_for_nobody);
/* The calls that a thread is in when an error handler is called, which may leave them. */
typedef struct {
    int depth, brief_depth, held, held_brief;
    unsigned kinds;
} MPIDI_LITE_left_calls;
MPIDI_LITE_left_calls MPIDI_LITE_error_handler_begins(void);
void MPIDI_LITE_error_handler_returned(MPIDI_LITE_left_calls left);
#define lite_begins(function, with) (__builtin_strncmp(function, with, sizeof(with) - 1) == 0)
#define lite_waits_for_nobody(function)                                                           \
    (lite_begins(function, "internal_T_") || lite_begins(function, "internal_Info_") ||           \
     lite_begins(function, "internal_Errhandler_") || lite_begins(function, "internal_Error_") || \
     lite_begins(function, "internal_Add_error_") ||                                              \
     lite_begins(function, "internal_Remove_error_") || lite_begins(function, "internal_Abi_") || \
     lite_begins(function, "internal_Session_get_") || lite_is(function, "Session_init") ||       \
     lite_is(function, "Session_create_errhandler") ||                                            \
     lite_is(function, "Session_set_errhandler") || lite_is(function, "Session_call_errhandler"))
/* Of the functions for files those for their error handlers do not. */
#define lite_waits_for_disks(function)                            \
    (lite_begins(function, "internal_File_") &&                   \
     !lite_begins(function, "internal_File_create_errhandler") && \
     !lite_begins(function, "internal_File_get_errhandler") &&    \
     !lite_begins(function, "internal_File_set_errhandler") &&    \
     !lite_begins(function, "internal_File_call_errhandler"))
#define lite_takes_turns(function)                                                     \
    (!lite_is_innocent(function) && !lite_is(function, "Abort") &&                     \
     !lite_is(function, "Query_thread") && !lite_is(function, "Is_thread_main") &&     \
     !lite_is(function, "Get_version") && !lite_is(function, "Get_library_version") && \
     !lite_is(function, "Get_hw_resource_info") && !lite_is(function, "Comm_rank") &&  \
     !lite_is(function, "Comm_size") && !lite_begins(function, "internal_Aint_") &&    \
     !lite_waits_for_disks(function) && !lite_begins(function, "internal_Status_"))

/* ---- which calls may block ----
 * The host calls the module's progress in the same way from all of them. These are the bindings
 * that poll and are local or nonblocking by the standard, and those that poll in the middle of a
 * scan (see ch_lite.h); compared as above. Names of later hosts are here as well. A nonblocking
 * call that is not here polls once at most. */
#define lite_is(function, name) (__builtin_strcmp(function, "internal_" name) == 0)
#define lite_may_not_block(function)                                                               \
    (lite_is(function, "Test") || lite_is(function, "Testall") || lite_is(function, "Testany") ||  \
     lite_is(function, "Testsome") || lite_is(function, "Request_get_status") ||                   \
     lite_is(function, "Request_get_status_all") || lite_is(function, "Request_get_status_any") || \
     lite_is(function, "Request_get_status_some") || lite_is(function, "Iprobe") ||                \
     lite_is(function, "Improbe") || lite_is(function, "Parrived") ||                              \
     lite_is(function, "Win_test") || lite_is(function, "Cancel") ||                               \
     lite_is(function, "Request_free") || lite_is(function, "Bsend") ||                            \
     lite_is(function, "Bsend_c") || lite_is(function, "Ibsend") ||                                \
     lite_is(function, "Ibsend_c") || lite_is(function, "Start") || lite_is(function, "Startall"))
#define lite_kind_of(function)                                                            \
    (lite_may_not_block(function)                                    ? LITE_MAY_NOT_BLOCK \
     : lite_is(function, "Waitany") || lite_is(function, "Waitsome") ? LITE_SCANS         \
                                                                     : LITE_MAY_BLOCK)

/* ---- which calls say their names ----
 * For reports of what waits (LITE_STALL): a store, of an address that is known when this is
 * compiled. Not of those that never wait: functions of the application's that a call which waits
 * calls (an operation, an attribute's) make some of them in the middle of it. */
#define lite_is_named(function)                                                                    \
    (lite_begins(function, "internal_") && lite_takes_turns(function) &&                           \
     !lite_waits_for_nobody(function) && !lite_may_not_block(function) &&                          \
     !lite_begins(function, "internal_Type_") && !lite_begins(function, "internal_Op_") &&         \
     !lite_begins(function, "internal_Group_") && !lite_begins(function, "internal_Attr_") &&      \
     !lite_begins(function, "internal_Comm_get_") &&                                               \
     !lite_begins(function, "internal_Comm_set_") &&                                               \
     !lite_begins(function, "internal_Win_get_") && !lite_begins(function, "internal_Win_set_") && \
     !lite_begins(function, "internal_Pack") && !lite_begins(function, "internal_Unpack") &&       \
     !lite_begins(function, "internal_Get_count") &&                                               \
     !lite_begins(function, "internal_Get_elements") && !lite_is(function, "Get_address") &&       \
     !lite_is(function, "Get_processor_name") && !lite_is(function, "Comm_compare") &&             \
     !lite_is(function, "Comm_group") && !lite_begins(function, "internal_Grequest_"))

/* ---- which calls start schedules ----
 * Nonblocking collectives, of which something is left to be done when the call returns, and the
 * start of persistent ones. See lite_host_work.c. */
typedef enum {
    LITE_STARTS_ONE,
    LITE_STARTS_PERSISTENT,
    LITE_STARTS_COMMUNICATOR /* whose schedule waits for others */
} lite_starter;
void MPIDI_LITE_schedule_begins(lite_starter starter);
void MPIDI_LITE_schedule_begun(lite_starter starter);
void MPIDI_LITE_object_is_freed(void);
void MPIDI_LITE_destructor_is_made(void);
void MPIDI_LITE_progress_is_used(void);
void MPIDI_LITE_give_up_host_work(void);
void MPIDI_LITE_end_host_work(void);
void MPIDI_LITE_finalize_begins(void);
void MPIDI_LITE_resume_host_work(void);
#define lite_frees(function)                                             \
    (lite_is(function, "Comm_free") || lite_is(function, "Type_free") || \
     lite_is(function, "Comm_disconnect"))
#define lite_has_destructor(function)                                         \
    (__builtin_strcmp(function, "internalX_Comm_create_errhandler_x") == 0 || \
     __builtin_strcmp(function, "internalX_Win_create_errhandler_x") == 0 ||  \
     __builtin_strcmp(function, "internalX_File_create_errhandler_x") == 0 || \
     __builtin_strcmp(function, "internalX_Session_create_errhandler_x") == 0)
#define lite_starts(function) (lite_is(function, "Start") || lite_is(function, "Startall"))
#define lite_makes_communicator(function) \
    (lite_is(function, "Comm_idup") || lite_is(function, "Comm_idup_with_info"))
#define lite_starter_of(function)                                   \
    (lite_starts(function)               ? LITE_STARTS_PERSISTENT   \
     : lite_makes_communicator(function) ? LITE_STARTS_COMMUNICATOR \
                                         : LITE_STARTS_ONE)
#define lite_is_or_c(function, name) (lite_is(function, name) || lite_is(function, name "_c"))
#define lite_may_schedule(function)                                                                \
    (lite_starts(function) || lite_is(function, "Ibarrier") || lite_is_or_c(function, "Ibcast") || \
     lite_is_or_c(function, "Igather") || lite_is_or_c(function, "Igatherv") ||                    \
     lite_is_or_c(function, "Iscatter") || lite_is_or_c(function, "Iscatterv") ||                  \
     lite_is_or_c(function, "Iallgather") || lite_is_or_c(function, "Iallgatherv") ||              \
     lite_is_or_c(function, "Ialltoall") || lite_is_or_c(function, "Ialltoallv") ||                \
     lite_is_or_c(function, "Ialltoallw") || lite_is_or_c(function, "Ireduce") ||                  \
     lite_is_or_c(function, "Iallreduce") || lite_is_or_c(function, "Ireduce_scatter") ||          \
     lite_is_or_c(function, "Ireduce_scatter_block") || lite_is_or_c(function, "Iscan") ||         \
     lite_is_or_c(function, "Iexscan") || lite_is_or_c(function, "Ineighbor_allgather") ||         \
     lite_is_or_c(function, "Ineighbor_allgatherv") ||                                             \
     lite_is_or_c(function, "Ineighbor_alltoall") ||                                               \
     lite_is_or_c(function, "Ineighbor_alltoallv") ||                                              \
     lite_is_or_c(function, "Ineighbor_alltoallw") || lite_makes_communicator(function))

/* ---- where the host lets go of its lock ----
 * With several threads the host opens its lock between two polls of a wait, and calls this macro
 * before it takes it again (MPIDU_Thread_yield). On Linux it is empty by default, so that the
 * thread that polls has the lock back before those that wait for it are awake. */
#include "mpl.h"

#undef MPL_thread_yield
#define MPL_thread_yield() lite_host_lets_go()

/* With a lock per VCI (--enable-thread-cs=per-vci, the default since 4.1) the waits take and open
 * it inside of each poll, and what yields the one lock for all of MPI does nothing. These loops
 * yield that one only, and hold none when they do. */
#if MPICH_THREAD_GRANULARITY == MPICH_THREAD_GRANULARITY__VCI
#define lite_locks_per_vci 1
#else
#define lite_locks_per_vci 0
#endif
#define lite_yields_GLOBAL lite_locks_per_vci
#define lite_yields_VCI 0
#define lite_yields_POBJ 0
#define lite_holds_no_lock(function)                           \
    (__builtin_strcmp(function, "MPIR_Waitany_state") == 0 ||  \
     __builtin_strcmp(function, "MPIR_Waitsome_state") == 0 || \
     __builtin_strcmp(function, "MPIR_Wait") == 0 ||           \
     __builtin_strcmp(function, "MPID_Probe") == 0 ||          \
     __builtin_strcmp(function, "MPID_Mprobe") == 0 ||         \
     __builtin_strcmp(function, "MPIDIG_wait_am_acc") == 0 ||  \
     __builtin_strcmp(function, "MPIDI_LITE_dynamic_recv") == 0)

/* Every loop of the host that waits lets others have its lock when it has looked at all that it
 * waits for, and polls again then: in Waitany and Waitsome that is the end of a scan. */
#undef MPID_THREAD_CS_YIELD
#define MPID_THREAD_CS_YIELD(name, mutex)                       \
    do {                                                        \
        MPIDU_THREAD_CS_YIELD(name, mutex);                     \
        lite_host_scan_ends();                                  \
        if (lite_yields_##name && lite_holds_no_lock(__func__)) \
            lite_host_lets_go();                                \
    } while (0)

/* The same where it lets go of its lock for good, in the calls that may not block: an application
 * that waits by MPI_Improbe in a loop has the lock back at once, and the thread for which the
 * message is does not get it for a whole time slice. That is the end of the call or, with a lock
 * per VCI, of its poll. Nothing is added to other functions: the compiler compares. */
#undef MPID_THREAD_CS_EXIT
#define lite_opens_GLOBAL(function) (lite_kind_of(function) == LITE_MAY_NOT_BLOCK)
#define lite_opens_VCI(function)                                                     \
    (lite_locks_per_vci && __builtin_strcmp(function, "MPIDI_progress_test") == 0 && \
     (lite_call.kinds & 3) == LITE_MAY_NOT_BLOCK)
#define lite_opens_POBJ(function) 0
#define MPID_THREAD_CS_EXIT(name, mutex)                                                \
    do {                                                                                \
        const int lite_yields = lite_opens_##name(__func__) && lite_host_takes_yield(); \
        MPIDU_THREAD_CS_EXIT(name, mutex);                                              \
        if (lite_yields)                                                                \
            lite_host_lets_go_slow();                                                   \
    } while (0)

/* While the host changes its map of windows (scripts/install-device): messages are looked up in it
 * by whoever handles them. */
void MPIDI_LITE_lock_window_map(void);
void MPIDI_LITE_unlock_window_map(void);

/* ---- where the leader of a group tells the others what went wrong (lite_shared_error.c) ----
 * All of `comm` call it, the leader with its error. On all of them an error if the leader has one:
 * its own there, and on the others one of the same class and with the same cause. */
struct MPIR_Comm;
int MPIDI_LITE_share_error(struct MPIR_Comm *comm, int leader, int error);
/* Where an error with the mark that makes the host end the job, whatever the error handler, ends
 * it: MPI_COMM_WORLD if there are processes of another job in `comm`, which live on. */
struct MPIR_Comm *MPIDI_LITE_comm_to_end(struct MPIR_Comm *comm);
/* The error without the mark that makes the host end the job, whatever the error handler. */
int MPIDI_LITE_recoverable(int error);
/* In place of leaving a collective at an error: notes it, and marks the further messages. */
#define MPIDI_LITE_GO_ON(error, marks, first)                                                   \
    do {                                                                                        \
        if (unlikely(error)) {                                                                  \
            (marks) |= MPIR_ERR_GET_CLASS(error) == MPIX_ERR_PROC_FAILED ? MPIR_ERR_PROC_FAILED \
                                                                         : MPIR_ERR_OTHER;      \
            if ((first) == MPI_SUCCESS)                                                         \
                (first) = (error);                                                              \
        }                                                                                       \
    } while (0)
/* Behind it: the processes that were to be met (lite_spawn.c). */
void MPIDI_LITE_forget_strangers(int size, const uint64_t *gpids);

/* ---- where shared memory moves something ----
 * Counted by the host up to 4.1 (progress_count). Since 4.2 by a line of ours in its progress of
 * shared memory (scripts/install-device); by threads that hold the VCI's lock. The host looks at
 * the network then only if `*made` says that nothing has moved, which it says now and then: a
 * neighbour that sends without end would keep the network out. */
extern unsigned MPIDI_LITE_shared_memory_moves;
static inline void MPIDI_LITE_note_shared_memory(int *made, int before)
{
    enum { TURN = 16 };

    if (*made != before && ++MPIDI_LITE_shared_memory_moves % TURN == 0)
        *made = before;
}

/* By a thread in a collective, which holds no lock: a neighbour's flag that it waited for has come.
 * Of two at once one may be lost; the other is news all the same. */
extern unsigned MPIDI_LITE_flags_come;
#define MPIDI_LITE_FLAG_HAS_COME()                                                  \
    __atomic_store_n(&MPIDI_LITE_flags_come,                                        \
                     __atomic_load_n(&MPIDI_LITE_flags_come, __ATOMIC_RELAXED) + 1, \
                     __ATOMIC_RELAXED)

/* ---- what we keep in the host's objects ---- */

/* A native send or receive. Valid while the request is pending; `message` only from a matched probe
 * to its receive. */
typedef struct {
    lite_request *request; /* to cancel by; NULL once complete */
    lite_message *message;
    void *
        bounce; /* packed data of a derived datatype, or NULL: the data is at the user's address, */
    int in_pieces; /* or, if set, bounce is the list of its pieces there (see lite_pieces.c) */
    MPI_Datatype datatype; /* receive with a bounce buffer or list: as what it is unpacked */
    MPI_Aint count;        /* (we hold a reference to the datatype), */
    void *buffer;          /* and where to; or a link (MPIDI_LITE_complete_later) */
    struct MPIDI_LITE_target *target; /* request-based put or get only */
} MPIDI_LITE_request_t;

/* The host's active-message requests carry nothing of ours: one request may have several active
 * messages under way at once (see MPIDI_LITE_am_send_t), so their state cannot be kept in it. */
typedef struct {
    int unused;
} MPIDI_LITE_am_request_t;

/* A process as we address it. */
typedef struct {
    int peer; /* rank in MPI_COMM_WORLD */
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
    uint64_t key; /* of its exposed memory; 0: none, or ourselves: by active messages */
    MPI_Aint bytes;
    int disp_unit;
    int pending;       /* native operations not complete at the target */
    int pending_local; /* those of them that still need the origin's buffer */
    int unordered;     /* those of them that a message may overtake */
    /* Accumulates under locks that the target does not answer (lite_accumulate.c), and those of
     * them behind which something that it answers was sent, or the end of the epoch. */
    unsigned unanswered, confirmed;
} MPIDI_LITE_target_t;

/* All zero: no native operations. */
typedef struct MPIDI_LITE_win {
    MPIDI_LITE_target_t *targets; /* by rank in the window's communicator */
    uint64_t key;                 /* of our memory */
    bool expects;                 /* active messages: lite_am_expect */
    int pending;                  /* sums over the targets */
    int pending_local;
    int unordered;
    unsigned by_host; /* accumulates that the host has sent */
    bool unconfirmed; /* since the last fence, accumulates that are not answered were sent */
    bool flushed;     /* since the first of the locks that are held */
    bool flushes;     /* the same of the locks before those */
    int *posts;       /* by rank: of MPI_Win_post, for which no MPI_Win_start has waited yet */
} MPIDI_LITE_win_t;

typedef struct {
    int unused;
} MPIDI_LITE_part_t;

#endif /* LITE_PRE_H_INCLUDED */
