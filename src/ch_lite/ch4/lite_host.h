/* What differs between the hosts, MPICH 4.0 to 5.0, in one place: the rest of the glue is written
 * for what these names mean. Included by lite_impl.h, after the host's headers. */
#ifndef LITE_HOST_H_INCLUDED
#define LITE_HOST_H_INCLUDED

#define LITE_HOST(major, minor, revision) ((major) *10000000 + (minor) *100000 + (revision) *1000)
#define LITE_HOST_SINCE(major, minor, revision) \
    (MPICH_NUMVERSION >= LITE_HOST(major, minor, revision))

#define LITE_HOST_BELOW(major, minor, revision) (!LITE_HOST_SINCE(major, minor, revision))

/* A later host may compile and be wrong: names stay, meanings change. Which hosts were tried,
 * scripts/install-device knows, and it refuses the others. */
#if LITE_HOST_BELOW(4, 0, 0)
#error "ch_lite's glue is for MPICH 4.0 and later"
#endif
/* What the host has changed in a function's parameters must not pass as a warning. */
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wimplicit-function-declaration"
#pragma GCC diagnostic error "-Wint-conversion"

/* ---- VCIs: how many the host has made by MPI_Init's start, up to 4.1 ---- */

#if LITE_HOST_SINCE(4, 1, 0)
#define MPIDI_LITE_VCIS() MPIDI_global.n_total_vcis
#else
#define MPIDI_LITE_VCIS() MPIDI_global.n_vcis
#endif

/* ---- MPI_Finalize: since 4.1 the user may ask that it waits for nobody ---- */

#if LITE_HOST_SINCE(4, 1, 0)
#define MPIDI_LITE_FINALIZE_IS_COLLECTIVE (!MPIR_CVAR_NO_COLLECTIVE_FINALIZE)
#else
#define MPIDI_LITE_FINALIZE_IS_COLLECTIVE true
#endif

/* ---- locks ---- */

#if LITE_HOST_SINCE(5, 0, 0)
#define MPIDI_LITE_VCI_LOCK MPIDI_VCI_LOCK(MPIDI_LITE_VCI)
#else
#define MPIDI_LITE_VCI_LOCK MPIDI_VCI(MPIDI_LITE_VCI).lock
#endif
#define MPIDI_LITE_LOCK() MPID_THREAD_CS_ENTER(VCI, MPIDI_LITE_VCI_LOCK)
#define MPIDI_LITE_UNLOCK() MPID_THREAD_CS_EXIT(VCI, MPIDI_LITE_VCI_LOCK)

/* MPIDI_LITE_lock_if_not_held: where the caller may hold it already: the host's functions that let
 * go of a communicator are called from within progress, too. (The host's own macro for that is gone
 * since 4.2.)
 * MPIDI_LITE_may_progress_at_entry: at the entry of a call, with MPI_THREAD_MULTIPLE: whether the
 * host's progress may run. Not where a callback of it has called MPI, or a binding that takes no
 * lock where there is one for all of MPI. */
#ifdef MPICH_IS_THREADED
static inline bool MPIDI_LITE_is_held(const MPID_Thread_mutex_t *mutex)
{
    MPL_thread_id_t self, owner = mutex->owner;
    int held = 0;

    if (!MPIR_ThreadInfo.isThreaded)
        return false;
    MPL_thread_self(&self);
    MPL_thread_same(&self, &owner, &held);
    return held != 0;
}
#if MPICH_THREAD_GRANULARITY == MPICH_THREAD_GRANULARITY__VCI
static inline bool MPIDI_LITE_lock_if_not_held(void)
{
    if (!MPIR_ThreadInfo.isThreaded || MPIDI_LITE_is_held(&MPIDI_LITE_VCI_LOCK))
        return false;
    MPIDI_LITE_LOCK();
    return true;
}
#define MPIDI_LITE_may_progress_at_entry() (!MPIDI_LITE_is_held(&MPIDI_LITE_VCI_LOCK))
#else
#define MPIDI_LITE_may_progress_at_entry() MPIDI_LITE_is_held(&MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX)
#define MPIDI_LITE_lock_if_not_held() false
#endif
#else /* there are no locks */
#define MPIDI_LITE_may_progress_at_entry() false
#define MPIDI_LITE_lock_if_not_held() false
#endif

/* In mpi_irecv with a partner in shared memory. Since 4.1 the host holds the lock then; before, it
 * may, and locks recursively. */
#if LITE_HOST_SINCE(4, 1, 0)
#define MPIDI_LITE_LOCK_RECV(partner) \
    do {                              \
        if ((partner) == NULL)        \
            MPIDI_LITE_LOCK();        \
    } while (0)
#define MPIDI_LITE_UNLOCK_RECV(partner) \
    do {                                \
        if ((partner) == NULL)          \
            MPIDI_LITE_UNLOCK();        \
    } while (0)
#else
#define MPIDI_LITE_LOCK_RECV(partner) MPID_THREAD_CS_ENTER_REC_VCI(MPIDI_LITE_VCI_LOCK)
#define MPIDI_LITE_UNLOCK_RECV(partner) MPIDI_LITE_UNLOCK()
#endif

/* In the hooks that complete one-sided operations: since 4.2 the host holds the lock. */
#if LITE_HOST_SINCE(4, 2, 0)
#define MPIDI_LITE_LOCK_RMA_HOOK() \
    do {                           \
    } while (0)
#define MPIDI_LITE_UNLOCK_RMA_HOOK() \
    do {                             \
    } while (0)
#else
#define MPIDI_LITE_LOCK_RMA_HOOK() MPIDI_LITE_LOCK()
#define MPIDI_LITE_UNLOCK_RMA_HOOK() MPIDI_LITE_UNLOCK()
#endif

/* ---- requests ---- */

#if LITE_HOST_SINCE(4, 0, 3)
#define MPIDI_LITE_COMPLETE(req) MPIDI_Request_complete_fast(req)
#else
#define MPIDI_LITE_COMPLETE(req) MPIDIU_request_complete(req)
#endif

/* The request in shared memory of an any-source receive. */
#if LITE_HOST_SINCE(4, 1, 0)
#define MPIDI_LITE_PARTNER(req) ((req)->dev.anysrc_partner)
#else
#define MPIDI_LITE_PARTNER(req) MPIDI_REQUEST_ANYSOURCE_PARTNER(req)
#endif

/* The request in shared memory of an any-source receive that has its message: MPI_Cancel goes on
 * and would complete it as cancelled. Up to 4.3 a bit in its status stops it. */
#if LITE_HOST_SINCE(5, 0, 0)
#define MPIDI_LITE_KEEP_FROM_CANCEL(request) \
    (MPIDIG_REQUEST(request, req->status) |= MPIDIG_REQ_IN_PROGRESS)
#else
#define MPIDI_LITE_KEEP_FROM_CANCEL(request) ((void) (request))
#endif

/* That a request is not for shared memory: since 4.3 the module says so of what it sends. */
#if LITE_HOST_SINCE(4, 3, 0) && !defined(MPIDI_CH4_DIRECT_NETMOD)
#define MPIDI_LITE_SENT(req) (MPIDI_REQUEST(req, is_local) = 0)
#else
#define MPIDI_LITE_SENT(req) \
    do {                     \
    } while (0)
#endif

/* ---- the word behind the communicator: of sends, receives and probes ----
 * An offset to the context id up to 4.0; since 4.1 bits, of which a send has more. */

#if LITE_HOST_SINCE(4, 1, 0)
#define MPIDI_LITE_CONTEXT_OFFSET(attr) MPIR_PT2PT_ATTR_CONTEXT_OFFSET(attr)
/* The bits, not what the host's macro makes of them, which are other numbers in 5.0. */
#define MPIDI_LITE_ATTR_PROC_FAILED 0x2
#define MPIDI_LITE_ATTR_FAILED 0x4
#else
#define MPIDI_LITE_CONTEXT_OFFSET(attr) (attr)
#endif

/* ---- types of parameters ---- */

/* What MPI_Psend_init sends from. */
#if LITE_HOST_SINCE(4, 0, 1)
typedef const void *MPIDI_LITE_psend_buffer;
#else
typedef void *MPIDI_LITE_psend_buffer;
#endif

#if LITE_HOST_SINCE(4, 0, 3)
#define MPIDI_LITE_CANCEL_RECV_PARAMETERS MPIR_Request *rreq, bool is_blocking
#define MPIDI_LITE_CANCEL_RECV_ARGUMENTS rreq, is_blocking
#else
#define MPIDI_LITE_CANCEL_RECV_PARAMETERS MPIR_Request *rreq
#define MPIDI_LITE_CANCEL_RECV_ARGUMENTS rreq
#endif

#if LITE_HOST_SINCE(4, 1, 0)
typedef MPI_Aint MPIDI_LITE_rma_count;
#else
typedef int MPIDI_LITE_rma_count;
#endif

#if LITE_HOST_SINCE(5, 0, 0)
#define MPIDI_LITE_AM_CAN_DO_TAG_PARAMETERS MPIR_Request *rreq
#define MPIDI_LITE_AM_CAN_DO_TAG_ARGUMENTS rreq
#else
#define MPIDI_LITE_AM_CAN_DO_TAG_PARAMETERS void
#define MPIDI_LITE_AM_CAN_DO_TAG_ARGUMENTS
#endif

/* Progress: since 4.2 it says whether there was any, and is skipped when shared memory has made
 * some. */
#if LITE_HOST_SINCE(4, 2, 0)
#define MPIDI_LITE_PROGRESS_PARAMETERS int vci, int *made_progress
#define MPIDI_LITE_PROGRESS_ARGUMENTS vci, made_progress
#define MPIDI_LITE_MADE_PROGRESS() (*made_progress = 1)
#else
#define MPIDI_LITE_PROGRESS_PARAMETERS int vci, int blocking
#define MPIDI_LITE_PROGRESS_ARGUMENTS vci, blocking
#define MPIDI_LITE_MADE_PROGRESS() \
    do {                           \
    } while (0)
#endif

int MPIDI_LITE_progress(MPIDI_LITE_PROGRESS_PARAMETERS);
/* The VCI lock is held. */
static inline int MPIDI_LITE_progress_of_device(void)
{
    const int vci = MPIDI_LITE_VCI;
#if LITE_HOST_SINCE(4, 2, 0)
    int made = 0, *const made_progress = &made;
#else
    const int blocking = 0;
#endif

    return MPIDI_LITE_progress(MPIDI_LITE_PROGRESS_ARGUMENTS);
}

/* A pass of the host's progress, no lock held. Since 4.2 the usual call does nothing when the world
 * communicator does not exist (any more). */
#if LITE_HOST_SINCE(4, 2, 0)
#define MPIDI_LITE_PROGRESS_TEST() MPIDI_Progress_test(MPIDI_PROGRESS_ALL)
#else
#define MPIDI_LITE_PROGRESS_TEST() MPID_Progress_test(NULL)
#endif

/* ---- collectives: what their messages tell of errors, by a pointer up to 4.1 ---- */

#if LITE_HOST_SINCE(5, 0, 0)
typedef int MPIDI_LITE_coll_attr;
#elif LITE_HOST_SINCE(4, 2, 0)
typedef MPIR_Errflag_t MPIDI_LITE_coll_attr;
#else
typedef MPIR_Errflag_t *MPIDI_LITE_coll_attr;
#endif

#if LITE_HOST_SINCE(4, 2, 0)
#define MPIDI_LITE_COLL_ERRORS(attr) (attr)
#define MPIDI_LITE_COLL_WAIT(request, attr) MPIC_Wait(request)
#define MPIDI_LITE_COLL_WAS_TOLD(attr) false /* waiting fails then */
#else
#define MPIDI_LITE_COLL_ERRORS(attr) (*(attr))
#define MPIDI_LITE_COLL_WAIT(request, attr) MPIC_Wait(request, attr)
#define MPIDI_LITE_COLL_WAS_TOLD(attr) (*(attr) != MPIR_ERR_NONE)
#endif

/* ---- datatypes ---- */

#if LITE_HOST_SINCE(4, 1, 0)
#define MPIDI_LITE_PACK(...) MPIR_Typerep_pack(__VA_ARGS__, MPIR_TYPEREP_FLAG_NONE)
#define MPIDI_LITE_UNPACK(...) MPIR_Typerep_unpack(__VA_ARGS__, MPIR_TYPEREP_FLAG_NONE)
static inline int MPIDI_LITE_IOV_LEN(MPI_Aint count, MPI_Datatype type, MPI_Aint bytes,
                                     MPI_Aint *length)
{
    MPI_Aint covered;
    return MPIR_Typerep_iov_len(count, type, bytes, length, &covered);
}
#else
#define MPIDI_LITE_PACK(...) MPIR_Typerep_pack(__VA_ARGS__)
#define MPIDI_LITE_UNPACK(...) MPIR_Typerep_unpack(__VA_ARGS__)
#define MPIDI_LITE_IOV_LEN MPIR_Typerep_iov_len
#endif

/* Whether a basic type is a pair of two elements of one size: MPI_2INT and, where there is Fortran,
 * MPI_2REAL and the like (MPI_DATATYPE_NULL otherwise, as the basic type of a struct of several
 * types is). */
#if LITE_HOST_SINCE(5, 0, 0)
#define MPIDI_LITE_IS_PAIR_OF_ONE_SIZE(type) \
    (HANDLE_IS_BUILTIN(type) && MPIR_Datatype_is_pairtype(type))
#else
#define MPIDI_LITE_IS_PAIR_OF_ONE_SIZE(type)                                         \
    ((type) != MPI_DATATYPE_NULL && ((type) == MPI_2INT || (type) == MPI_2INTEGER || \
                                     (type) == MPI_2REAL || (type) == MPI_2DOUBLE_PRECISION))
#endif

/* A byte in the host's own calls. 5.0 tells its internal types from those of the application's ABI.
 */
#if LITE_HOST_SINCE(5, 0, 0)
#define MPIDI_LITE_BYTE MPIR_BYTE_INTERNAL
#define MPIDI_LITE_COLL_NO_ERROR MPIR_COLL_ATTR_SYNC
#else
#define MPIDI_LITE_BYTE MPI_BYTE
#define MPIDI_LITE_COLL_NO_ERROR MPIR_ERR_NONE
#endif

/* ---- ch4's own, under other names ---- */

/* The address of a rank of the job. */
#if LITE_HOST_SINCE(5, 0, 0)
#define MPIDI_LITE_WORLD_AV(rank) MPIDIU_lpid_to_av(rank)
#else
#define MPIDI_LITE_WORLD_AV(rank) (&MPIDIU_get_av(0, rank))
#endif

#if LITE_HOST_SINCE(4, 2, 0)
#define MPIDI_LITE_RANK_IS_LOCAL(rank, comm) MPIDIU_av_is_local(MPIDIU_comm_rank_to_av(comm, rank))
#else
#define MPIDI_LITE_RANK_IS_LOCAL(rank, comm) MPIDIU_rank_is_local(rank, comm)
#endif

#if LITE_HOST_SINCE(4, 3, 0)
#define MPIDI_LITE_PRECV_INIT(buf, partitions, count, type, source, tag, comm, info, request) \
    MPIDIG_mpi_precv_init(buf, partitions, count, type, source, tag, comm, info, false, request)
#else
#define MPIDI_LITE_PRECV_INIT MPIDIG_mpi_precv_init
#endif

/* The sender of a partitioned receive. */
#if LITE_HOST_SINCE(4, 3, 0)
#define MPIDI_LITE_PART_SOURCE(req) ((req)->status.MPI_SOURCE)
#else
#define MPIDI_LITE_PART_SOURCE(req) MPIDI_PART_REQUEST(req, u.recv.source)
#endif

/* ---- shared memory's state ---- */

#if LITE_HOST_SINCE(4, 2, 0)
#define MPIDI_LITE_POSIX MPIDI_POSIX_global.per_vci[MPIDI_LITE_VCI]
#define MPIDI_LITE_SHARED_MEMORY_MOVES() MPIDI_LITE_shared_memory_moves
#else
#define MPIDI_LITE_POSIX MPIDI_POSIX_global.per_vsi[MPIDI_LITE_VCI]
#define MPIDI_LITE_SHARED_MEMORY_MOVES() \
    ((unsigned) MPL_atomic_relaxed_load_int(&MPIDI_VCI(MPIDI_LITE_VCI).progress_count))
#endif

#endif /* LITE_HOST_H_INCLUDED */
