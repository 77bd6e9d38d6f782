/* The glue's own declarations: the functions behind the table in func_table.c, and what they share.
 * The glue is the only code that includes MPICH headers; it knows the device by ch_lite.h alone.
 *
 * Threads: the host serialises by its VCI lock, and there is one VCI. Functions that the host calls
 * from MPI calls take it; progress, completion and active-message handlers run with it held. */
#ifndef LITE_IMPL_H_INCLUDED
#define LITE_IMPL_H_INCLUDED

#include <mpidimpl.h>
#include "ch4_impl.h"
#include "ch_lite/ch_lite.h"
#include "ch_lite/ch_lite_host_work.h"
#include "ch_lite/ch_lite_jobs.h"
#include "mpidch4r.h"

#define MPIDI_LITE_REQUEST(req) ((req)->dev.ch4.netmod.lite)
#define MPIDI_LITE_AV(av) ((av)->netmod.lite)
#define MPIDI_LITE_WIN(win) ((win)->dev.netmod.lite)

/* The one VCI. */
#define MPIDI_LITE_VCI 0

#include "lite_host.h"

/* The largest active message that the host is told to send without its own rendezvous. The device
 * takes any size; this bounds what a peer may push at us unasked. At most
 * MPIR_CVAR_CH4_AM_PACK_BUFFER_SIZE (69632). */
#define MPIDI_LITE_AM_EAGER_BYTES (16 * 1024)

/* Derived datatypes whose pieces have at least this many bytes on average go from and to the user's
 * memory piece by piece; below, a packed copy is cheaper than an iovec per piece in user space and
 * kernel. To be settled by measurement. And no more pieces than this many, for the sake of the
 * list's memory (16 bytes each) and the time to make it inside MPI_Isend. */
#define MPIDI_LITE_PIECE_BYTES_MIN 512
#define MPIDI_LITE_PIECES_MAX 65536

/* ---- datatypes (lite_pieces.c) ---- */

/* Memory of a GPU, which the device must not touch: such data goes through a copy that the host
 * makes, as a derived datatype does. Never true in a host without GPU support, and of no cost
 * there. `data`: the first byte, not the buffer that a datatype is relative to. */
static inline bool MPIDI_LITE_is_gpu_memory(const void *data)
{
    return unlikely(MPIR_GPU_query_pointer_is_dev(data));
}

/* The `bytes` bytes of (buf, count, datatype) as a list for lite_isendv and its kin, to be freed by
 * MPL_free; NULL: pack instead. */
struct iovec *MPIDI_LITE_pieces(const void *buf, MPI_Aint count, MPI_Datatype datatype,
                                size_t bytes, size_t *pieces_count);

/* ---- MPI_T (lite_tools.c) ---- */

/* Knobs and counters become variables of MPI_T. After lite_init_local; once in a process, whatever
 * is called later. */
void MPIDI_LITE_register_tools(void);

/* ---- errors (lite_error.c) ---- */

/* The MPI error for a negative LITE_ERR_*: its class follows the code, its text carries
 * lite_last_error() (of which the host prints about 250 characters). `peer` is the world rank
 * concerned, or -1. */
int MPIDI_LITE_error(int code, int peer, const char *function, int line);

/* An MPI error with a sentence of ours. `fatal`: MPIR_ERR_FATAL or MPIR_ERR_RECOVERABLE. */
int MPIDI_LITE_error_text(int fatal, const char *text, const char *function, int line);

/* The same of class MPI_ERR_PORT. */
int MPIDI_LITE_port_error(const char *text, const char *function, int line);
/* Does not return. */
void MPIDI_LITE_await_kill(int exit_code);

/* As MPIR_ERR_CHECK: leaves by fn_fail when `code_` is a LITE_ERR_*. */
#define MPIDI_LITE_CHECK(code_, peer_)                                          \
    do {                                                                        \
        if (unlikely((code_) < 0)) {                                            \
            mpi_errno = MPIDI_LITE_error((code_), (peer_), __func__, __LINE__); \
            goto fn_fail;                                                       \
        }                                                                       \
    } while (0)

/* ---- what point-to-point shares (lite_recv.c, lite_send.c) ---- */

/* Finishes a matched receive: unpacks a bounce buffer, fills the MPI status, lets go of buffer and
 * datatype. Does not complete `rreq`. */
void MPIDI_LITE_recv_done(MPIR_Request *rreq, const lite_status *status);

/* Completes the request in shared memory of an any-source receive that was matched here: between
 * MPIDI_LITE_recv_done and completion. VCI lock held. */
#ifndef MPIDI_CH4_DIRECT_NETMOD
void MPIDI_LITE_settle_partner(MPIR_Request *rreq);
/* The same for one that found its message when it was posted: the host would complete the partner
 * itself, but leave it a pointer to our request, which MPI_Cancel would follow. So it is completed
 * by the next progress: MPIDI_LITE_complete_now, true if there was any. */
void MPIDI_LITE_complete_later(MPIR_Request *rreq);
bool MPIDI_LITE_complete_now(void);
#else
#define MPIDI_LITE_settle_partner(rreq) \
    do {                                \
    } while (0)
#define MPIDI_LITE_complete_later(rreq) \
    do {                                \
    } while (0)
#define MPIDI_LITE_complete_now() false
#endif

/* Finishes a send: frees the packed copy. Does not complete `sreq`. */
void MPIDI_LITE_send_done(MPIR_Request *sreq, const lite_status *status);

/* The peer that `av` stands for (a world rank, or a process of another job); -1 for MPI_ANY_SOURCE,
 * for which the host passes no address. */
static inline int MPIDI_LITE_peer(const MPIDI_av_entry_t *av)
{
    return av ? MPIDI_LITE_AV(av).peer : -1;
}

/* What a receive or probe asks for, in the device's words. */
static inline lite_envelope MPIDI_LITE_recv_envelope(int source, int tag, const MPIR_Comm *comm,
                                                     int attr)
{
    lite_envelope envelope = {
        .context = (uint32_t) (comm->recvcontext_id + MPIDI_LITE_CONTEXT_OFFSET(attr)),
        .source = source == MPI_ANY_SOURCE ? LITE_ANY_SOURCE : source,
        .tag = tag == MPI_ANY_TAG ? LITE_ANY_TAG : tag};
    return envelope;
}

/* ---- active messages (lite_am.c) ---- */

/* Receives what the device delivers; given to lite_am_set_callback. */
void MPIDI_LITE_am_deliver(int peer, uint32_t handler, const void *header, size_t header_bytes,
                           const void *data, size_t data_bytes, void *arg);

/* Whether a process of another job may send it; given to lite_am_set_check. */
int MPIDI_LITE_am_check(int peer, uint32_t handler, const void *header, size_t header_bytes,
                        uint64_t data_bytes);

/* One active message under way: what is due when the device has sent it. */
typedef struct MPIDI_LITE_am_send {
    MPIR_Request *sreq; /* the host's, or NULL: one of ours */
    int handler;
    void *packed; /* copy of the data where that does not stay, or NULL */
} MPIDI_LITE_am_send_t;

/* Whether that rank of the communicator is the peer. */
bool MPIDI_LITE_is_in(MPIR_Comm *comm, int rank, int peer);

void MPIDI_LITE_am_send_done(MPIDI_LITE_am_send_t *send);

/* For an active message of ours: `packed` is a copy of the data, and when it has been sent nobody
 * is told. NULL: no memory. */
MPIDI_LITE_am_send_t *MPIDI_LITE_am_copy_to_send(const void *data, size_t bytes);

/* A completion's cookie is the MPIR_Request of a native send or receive or, told apart by the two
 * lowest bits, an MPIDI_LITE_am_send_t (1), the target of a put or get (2), or the MPIR_Request of
 * a request-based put or get (3). */
static inline void *MPIDI_LITE_am_cookie(MPIDI_LITE_am_send_t *send)
{
    return (char *) send + 1;
}

static inline MPIDI_LITE_am_send_t *MPIDI_LITE_cookie_am(void *cookie)
{
    return ((uintptr_t) cookie & 3) == 1 ? (MPIDI_LITE_am_send_t *) ((char *) cookie - 1) : NULL;
}

/* ---- communicators (lite_hooks.c) ---- */

/* Given to lite_set_member_callback. */
int MPIDI_LITE_is_member(int peer, uint32_t context, int32_t source);
void MPIDI_LITE_name_context(uint32_t context, char *text, size_t size);
bool MPIDI_LITE_shares_a_communicator(int peer);
void MPIDI_LITE_forget_comms(void);

/* ---- dynamic processes (lite_calls.c, lite_spawn.c, lite_spawn5.c; and see lite_calls.h) ---- */

/* The number of an active message that is ours and not the host's, whose numbers are small. */
#define MPIDI_LITE_AM_FIRST_WORDS 0xffff0001u
/* The data that may come with one from another job. */
#if LITE_HOST_SINCE(5, 0, 0)
#define MPIDI_LITE_EXCHANGE_BYTES_MAX (64 << 20)
#else
#define MPIDI_LITE_EXCHANGE_BYTES_MAX 0
#endif
/* Called by the host's MPID_Open_port and MPID_Close_port, by lines that scripts/install-device
 * puts there: the module has to know when a port begins and ends, and the host's table of functions
 * has nothing for that. `tag`: the host's number for the port. */
int MPIDI_LITE_open_port(int tag, int **upid_size, char **upid);
void MPIDI_LITE_close_port(int tag);
void MPIDI_LITE_hear_first_words(int peer, const void *header, size_t header_bytes,
                                 const void *data, size_t bytes);
/* Whether first words from another job may bring that much data. */
bool MPIDI_LITE_may_carry(const void *header, size_t header_bytes, uint64_t data_bytes);
/* The device ends: what nobody has taken is gone. */
void MPIDI_LITE_forget_first_words(void);
/* Parts from processes of other jobs that are in no communicator any more. */
void MPIDI_LITE_part_from_strangers(void);
/* Before the host ends: its tables of processes that have come into no communicator. */
void MPIDI_LITE_free_unused_tables(void);
/* A communicator begins: its processes of other jobs are in one. */
void MPIDI_LITE_meet_members(MPIR_Comm *comm);

/* ---- the host's work in a thread of the device's (lite_host_work.c) ----
 * What lite_pre.h tells of is declared there. */

/* In post_init: with LITE_CONTROLLER=thread it begins here. */
void MPIDI_LITE_start_host_work(void);
/* In a call that makes a window or has started a schedule: with sigio it begins with the first one.
 * Such a call holds the host's lock for all of MPI, if there is one, and no other. */
void MPIDI_LITE_want_host_thread(void);
/* Does what the thread could not, as the application was in a call. In another one, with the lock
 * of calls; none of the application's functions is called. */
void MPIDI_LITE_pass_in_call(void);
/* With MPI_THREAD_MULTIPLE, in a call that is in no other: what the thread is kept from, as it may
 * call the application's functions. */
void MPIDI_LITE_pass_for_kept_thread(void);
/* What a pass of the thread has failed with, once; MPI_SUCCESS. Any thread. */
int MPIDI_LITE_take_kept_error(void);
/* At the end: operations that the application has never freed. */
void MPIDI_LITE_forget_host_work(void);

/* ---- whose turn it is in MPI (lite_call_lock.c) ---- */

/* In a call: from now on this one and its successors are counted; share: and hold the lock. */
void MPIDI_LITE_count_calls(void);
void MPIDI_LITE_share_calls(void);
/* In a call: the lock is not used any more. */
void MPIDI_LITE_end_shared_calls(void);
/* The thread of the device's: false while the application is in MPI; it is told when it is not any
 * more (lite_host_may_go_on), and where the next call comes first, that makes up for its turn. */
bool MPIDI_LITE_try_turn(void);
void MPIDI_LITE_end_turn(void);

/* ---- the end (lite_barrier.c) ---- */

/* The process manager's barrier of the job, in which the host's progress goes on. No lock held. */
int MPIDI_LITE_last_barrier(void);

/* ---- the tables (func_table.c) ---- */

/* An entry that a host has and this glue does not fill would be a jump to 0. The number of the
 * first one, or -1. */
int MPIDI_LITE_find_empty_entry(void);

/* ---- completion (lite_progress.c) ---- */

/* Completes everything that the device has finished. VCI lock held. Errors of native operations go
 * to their requests; the returned MPI error is that of an active message, a put or a get, which
 * have none. */
int MPIDI_LITE_drain_completions(void);

/* A new device knows nothing of shared memory yet. */
#ifndef MPIDI_CH4_DIRECT_NETMOD
void MPIDI_LITE_forget_shared_memory(void);
#else
#define MPIDI_LITE_forget_shared_memory() \
    do {                                  \
    } while (0)
#endif

/* ---- the table's entries; contracts are those of src/mpid/ch4/ch4_api.txt ---- */

int MPIDI_LITE_init_local(int *tag_bits);
int MPIDI_LITE_init_world(void);
int MPIDI_LITE_post_init(void);
#if LITE_HOST_SINCE(5, 0, 0)
int MPIDI_LITE_comm_set_vcis(MPIR_Comm *comm, int num_implicit, int num_reserved,
                             MPIDI_num_vci_t *all_num_vcis);
#elif LITE_HOST_SINCE(4, 2, 0)
int MPIDI_LITE_init_vcis(int wanted, int *actual);
/* mpi_isend of the table until post_init: returns when the kernel has everything that was sent. */
int MPIDI_LITE_isend_in_init(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank,
                             int tag, MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av,
                             MPIR_Request **request);
#endif
int MPIDI_LITE_mpi_finalize_hook(void);
int MPIDI_LITE_progress(MPIDI_LITE_PROGRESS_PARAMETERS);

int MPIDI_LITE_mpi_isend(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                         MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, MPIR_Request **request);
#if LITE_HOST_BELOW(4, 1, 0)
int MPIDI_LITE_isend_coll(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                          MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, MPIR_Request **request,
                          MPIR_Errflag_t *errflag);
int MPIDI_LITE_mpi_issend(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                          MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, MPIR_Request **request);
#endif
int MPIDI_LITE_mpi_cancel_send(MPIR_Request *sreq);

int MPIDI_LITE_mpi_irecv(void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                         MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, MPIR_Request **request,
                         MPIR_Request *partner);
int MPIDI_LITE_mpi_imrecv(void *buf, MPI_Aint count, MPI_Datatype datatype, MPIR_Request *message);
int MPIDI_LITE_mpi_cancel_recv(MPIDI_LITE_CANCEL_RECV_PARAMETERS);

int MPIDI_LITE_mpi_iprobe(int source, int tag, MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av,
                          int *flag, MPI_Status *status);
int MPIDI_LITE_mpi_improbe(int source, int tag, MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av,
                           int *flag, MPIR_Request **message, MPI_Status *status);

int MPIDI_LITE_am_send_hdr(int rank, MPIR_Comm *comm, int handler_id, const void *am_hdr,
                           MPI_Aint am_hdr_sz, int src_vci, int dst_vci);
int MPIDI_LITE_am_send_hdr_reply(MPIR_Comm *comm, int rank, int handler_id, const void *am_hdr,
                                 MPI_Aint am_hdr_sz, int src_vci, int dst_vci);
int MPIDI_LITE_am_isend(int rank, MPIR_Comm *comm, int handler_id, const void *am_hdr,
                        MPI_Aint am_hdr_sz, const void *data, MPI_Aint count, MPI_Datatype datatype,
                        int src_vci, int dst_vci, MPIR_Request *sreq);
int MPIDI_LITE_am_isend_reply(MPIR_Comm *comm, int rank, int handler_id, const void *am_hdr,
                              MPI_Aint am_hdr_sz, const void *data, MPI_Aint count,
                              MPI_Datatype datatype, int src_vci, int dst_vci, MPIR_Request *sreq);
MPIDIG_recv_data_copy_cb MPIDI_LITE_am_get_data_copy_cb(uint32_t attr);
MPI_Aint MPIDI_LITE_am_hdr_max_sz(void);
MPI_Aint MPIDI_LITE_am_eager_limit(void);
MPI_Aint MPIDI_LITE_am_eager_buf_limit(void);
bool MPIDI_LITE_am_check_eager(MPI_Aint am_hdr_sz, MPI_Aint data_sz, const void *data,
                               MPI_Aint count, MPI_Datatype datatype, MPIR_Request *sreq);
#if LITE_HOST_SINCE(4, 3, 0)
bool MPIDI_LITE_am_can_do_tag(MPIDI_LITE_AM_CAN_DO_TAG_PARAMETERS);
int MPIDI_LITE_am_tag_send(int rank, MPIR_Comm *comm, int handler_id, int tag, const void *buf,
                           MPI_Aint count, MPI_Datatype datatype, int src_vci, int dst_vci,
                           MPIR_Request *sreq);
int MPIDI_LITE_am_tag_recv(int rank, MPIR_Comm *comm, int handler_id, int tag, void *buf,
                           MPI_Aint count, MPI_Datatype datatype, int src_vci, int dst_vci,
                           MPIR_Request *rreq);
#endif
void MPIDI_LITE_am_request_init(MPIR_Request *req);
void MPIDI_LITE_am_request_finalize(MPIR_Request *req);

int MPIDI_LITE_comm_set_hints(MPIR_Comm *comm, MPIR_Info *info);
int MPIDI_LITE_rank_is_local(int rank, MPIR_Comm *comm);
int MPIDI_LITE_get_local_upids(MPIR_Comm *comm, int **local_upid_size, char **local_upids);
#if LITE_HOST_SINCE(5, 0, 0)
int MPIDI_LITE_insert_upid(MPIR_Lpid lpid, const char *upid, int upid_len);
int MPIDI_LITE_dynamic_send(MPIR_Lpid remote_lpid, int tag, const void *buf, int size, int timeout);
int MPIDI_LITE_dynamic_sendrecv(MPIR_Lpid remote_lpid, MPIR_Comm *peer_comm, int tag,
                                const void *send_buf, int send_size, void *recv_buf, int recv_size,
                                int timeout);
#else
int MPIDI_LITE_comm_get_gpid(MPIR_Comm *comm, int idx, uint64_t *gpid, bool is_remote);
int MPIDI_LITE_upids_to_gpids(int size, int *remote_upid_size, char *remote_upids,
                              uint64_t *remote_gpids);
int MPIDI_LITE_dynamic_send(uint64_t remote_gpid, int tag, const void *buf, int size, int timeout);
#endif
int MPIDI_LITE_dynamic_recv(int tag, void *buf, int size, int timeout);

int MPIDI_LITE_comm_pre_hook(MPIR_Comm *comm);
int MPIDI_LITE_comm_post_hook(MPIR_Comm *comm);
int MPIDI_LITE_comm_free_hook(MPIR_Comm *comm);
int MPIDI_LITE_type_hook(MPIR_Datatype *type);
int MPIDI_LITE_op_commit_hook(MPIR_Op *op);
int MPIDI_LITE_op_free_hook(MPIR_Op *op);
int MPIDI_LITE_win_hook(MPIR_Win *win);
int MPIDI_LITE_win_expose_hook(MPIR_Win *win);
int MPIDI_LITE_win_free_hook(MPIR_Win *win);
int MPIDI_LITE_mpi_win_free(MPIR_Win **win_ptr);
void MPIDI_LITE_win_posted(MPIR_Win *win, int origin);
int MPIDI_LITE_mpi_win_start(MPIR_Group *group, int assert, MPIR_Win *win);
int MPIDI_LITE_mpi_win_complete(MPIR_Win *win);
int MPIDI_LITE_mpi_win_lock(int lock_type, int rank, int assert, MPIR_Win *win,
                            MPIDI_av_entry_t *av);
int MPIDI_LITE_mpi_win_lock_all(int assert, MPIR_Win *win);
int MPIDI_LITE_mpi_win_flush(int rank, MPIR_Win *win, MPIDI_av_entry_t *av);
int MPIDI_LITE_mpi_win_flush_local(int rank, MPIR_Win *win, MPIDI_av_entry_t *av);
int MPIDI_LITE_mpi_win_flush_all(MPIR_Win *win);
int MPIDI_LITE_mpi_win_flush_local_all(MPIR_Win *win);
int MPIDI_LITE_mpi_win_wait(MPIR_Win *win);
int MPIDI_LITE_mpi_win_fence(int assert, MPIR_Win *win);
void MPIDI_LITE_await_ranks(const MPIR_Win *win);
void MPIDI_LITE_await_nobody(void);
/* Until nobody accesses the memory of that key. Takes the VCI lock. */
int MPIDI_LITE_await_accesses(uint64_t key);
int MPIDI_LITE_awaited_is_lost(void);
bool MPIDI_LITE_fail_unanswered(void);
void MPIDI_LITE_forget_answered(void);
void MPIDI_LITE_expect_answer(MPIR_Request *request, MPIDI_av_entry_t *av);
int MPIDI_LITE_mpi_accumulate(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                              MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                              MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                              MPI_Op op, MPIR_Win *win, MPIDI_av_entry_t *av,
                              MPIDI_winattr_t winattr);
int MPIDI_LITE_mpi_raccumulate(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                               MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                               MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                               MPI_Op op, MPIR_Win *win, MPIDI_av_entry_t *av,
                               MPIDI_winattr_t winattr, MPIR_Request **request);
int MPIDI_LITE_mpi_rget_accumulate(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                                   MPI_Datatype origin_datatype, void *result_addr,
                                   MPIDI_LITE_rma_count result_count, MPI_Datatype result_datatype,
                                   int target_rank, MPI_Aint target_disp,
                                   MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                                   MPI_Op op, MPIR_Win *win, MPIDI_av_entry_t *av,
                                   MPIDI_winattr_t winattr, MPIR_Request **request);
int MPIDI_LITE_mpi_win_unlock(int rank, MPIR_Win *win, MPIDI_av_entry_t *av);
int MPIDI_LITE_mpi_win_unlock_all(MPIR_Win *win);
int MPIDI_LITE_rma_win_cmpl_hook(MPIR_Win *win);
int MPIDI_LITE_rma_win_local_cmpl_hook(MPIR_Win *win);
int MPIDI_LITE_rma_target_cmpl_hook(int rank, MPIR_Win *win);
int MPIDI_LITE_rma_target_local_cmpl_hook(int rank, MPIR_Win *win);
#define MPIDI_LITE_ALLGATHERV_PIECE (1 << 20) /* bytes */
extern bool MPIDI_LITE_cuts_allgatherv;       /* the user has set no other one */
int MPIDI_LITE_mpi_put(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                       MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                       MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                       MPIR_Win *win, MPIDI_av_entry_t *addr, MPIDI_winattr_t winattr);
int MPIDI_LITE_mpi_get(void *origin_addr, MPIDI_LITE_rma_count origin_count,
                       MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                       MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                       MPIR_Win *win, MPIDI_av_entry_t *addr, MPIDI_winattr_t winattr);
int MPIDI_LITE_mpi_rput(const void *origin_addr, MPIDI_LITE_rma_count origin_count,
                        MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                        MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                        MPIR_Win *win, MPIDI_av_entry_t *addr, MPIDI_winattr_t winattr,
                        MPIR_Request **request);
int MPIDI_LITE_mpi_rget(void *origin_addr, MPIDI_LITE_rma_count origin_count,
                        MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                        MPIDI_LITE_rma_count target_count, MPI_Datatype target_datatype,
                        MPIR_Win *win, MPIDI_av_entry_t *addr, MPIDI_winattr_t winattr,
                        MPIR_Request **request);
int MPIDI_LITE_win_attach_hook(MPIR_Win *win, void *base, MPI_Aint size);
int MPIDI_LITE_win_detach_hook(MPIR_Win *win, const void *base);

int MPIDI_LITE_mpi_psend_init(MPIDI_LITE_psend_buffer buf, int partitions, MPI_Aint count,
                              MPI_Datatype datatype, int dest, int tag, MPIR_Comm *comm,
                              MPIR_Info *info, MPIDI_av_entry_t *av, MPIR_Request **request);
int MPIDI_LITE_mpi_precv_init(void *buf, int partitions, MPI_Aint count, MPI_Datatype datatype,
                              int source, int tag, MPIR_Comm *comm, MPIR_Info *info,
                              MPIDI_av_entry_t *av, MPIR_Request **request);

#endif /* LITE_IMPL_H_INCLUDED */
