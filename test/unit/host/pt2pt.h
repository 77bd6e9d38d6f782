/* What mpidimpl.h has of MPICH's headers for pt2pt_glue_test alone: datatypes, requests, windows
 * and shared memory, as far as lite_send.c, lite_recv.c, lite_probe.c, lite_pieces.c, lite_am.c,
 * lite_rma.c, lite_accumulate.c and lite_progress.c use them. */
#ifndef HOST_PT2PT_H_INCLUDED
#define HOST_PT2PT_H_INCLUDED

/* ---- mpi.h ---- */

typedef MPI_Aint MPI_Count;
enum { MPI_ERR_TYPE = 3, MPI_ERR_INTERN = 16, MPIX_ERR_NOREQ = 101 };
enum { MPI_PROC_NULL = -1, MPI_DATATYPE_NULL = 0, MPI_BYTE = 1, MPIR_BYTE_INTERNAL = MPI_BYTE };
#define MPI_STATUS_IGNORE ((MPI_Status*)1)
#define MPI_IN_PLACE ((void*)-1)
enum { MPI_2INT = 300, MPI_2INTEGER, MPI_2REAL = MPI_DATATYPE_NULL, MPI_2DOUBLE_PRECISION = 0 };
struct MPIR_Datatype {
  int basic_type;
  MPI_Aint builtin_element_size;
};
#define MPIR_Datatype_is_pairtype(type) ((type) == MPI_2INT)
MPIR_Datatype* host_datatype(MPI_Datatype type);
#define MPIR_Datatype_get_ptr(type, ptr) ((ptr) = host_datatype(type))
#define MPIR_STATUS_SET_COUNT(status_, bytes) ((status_).count = (bytes))
#define MPIR_STATUS_SET_CANCEL_BIT(status_, on) ((status_).cancelled = (on))
#define MPIR_STATUS_GET_CANCEL_BIT(status_) ((status_).cancelled)

/* ---- errors: those that have a text of the host's catalogue and nothing of the device's are told
 * from the others ---- */

enum { HOST_TEXT = 1 << 8 };
#undef MPIR_ERR_CHKANDJUMP
#define MPIR_ERR_CHKANDJUMP(condition, code, class_, text) \
  do {                                                     \
    if (condition) {                                       \
      (code) = (class_) | HOST_TEXT;                       \
      goto fn_fail;                                        \
    }                                                      \
  } while (0)
#define MPIR_ERR_CHKANDSTMT(condition, code, class_, statement, text) \
  do {                                                                \
    if (condition) {                                                  \
      (code) = (class_);                                              \
      statement;                                                      \
    }                                                                 \
  } while (0)
#define MPIR_ERR_SET(code, class_, text) ((code) = (class_))

/* ---- datatypes ---- */

bool MPIR_GPU_query_pointer_is_dev(const void* data);
void host_type_info(MPI_Aint count, MPI_Datatype type, int* contig, size_t* size,
                    MPI_Aint* true_lb);
#define MPIDI_Datatype_get_info(count, datatype, contig, size, pointer, lb) \
  (host_type_info(count, datatype, &(contig), &(size), &(lb)), (pointer) = NULL, (void)(pointer))
#define MPIDI_Datatype_check_origin_target_contig_size_lb(                            \
    o_type, t_type, o_count, t_count, o_contig, t_contig, o_size, t_size, o_lb, t_lb) \
  (host_type_info(o_count, o_type, &(o_contig), &(o_size), &(o_lb)),                  \
   host_type_info(t_count, t_type, &(t_contig), &(t_size), &(t_lb)))
void host_type_add_ref(MPI_Datatype type);
void host_type_release(MPI_Datatype type);
#define MPIR_Datatype_add_ref_if_not_builtin(type) host_type_add_ref(type)
#define MPIR_Datatype_release_if_not_builtin(type) host_type_release(type)
MPI_Aint host_type_size(MPI_Datatype type);
#define MPIR_Datatype_get_size_macro(type, size) ((size) = host_type_size(type))
int host_pack(const void* in, MPI_Aint count, MPI_Datatype type, MPI_Aint offset, void* out,
              MPI_Aint room, MPI_Aint* packed);
int host_unpack(const void* in, MPI_Aint bytes, void* out, MPI_Aint count, MPI_Datatype type,
                MPI_Aint offset, MPI_Aint* unpacked);
int MPIR_Typerep_to_iov_offset(const void* buf, MPI_Aint count, MPI_Datatype type, MPI_Aint offset,
                               struct iovec* iov, MPI_Aint room, MPI_Aint* length);
#if HOST_IS_5
enum { MPIR_TYPEREP_FLAG_NONE = 0 };
#define MPIR_Typerep_pack(in, count, type, offset, out, room, packed, flags) \
  ((void)(flags), host_pack(in, count, type, offset, out, (MPI_Aint)(room), packed))
#define MPIR_Typerep_unpack(in, bytes, out, count, type, offset, unpacked, flags) \
  ((void)(flags), host_unpack(in, bytes, out, count, type, offset, unpacked))
#else
#define MPIR_Typerep_pack(in, count, type, offset, out, room, packed) \
  host_pack(in, count, type, offset, out, (MPI_Aint)(room), packed)
#define MPIR_Typerep_unpack host_unpack
int MPIR_Typerep_iov_len(MPI_Aint count, MPI_Datatype type, MPI_Aint bytes, MPI_Aint* length);
#endif

/* ---- requests ---- */

MPIR_Request* MPIR_Request_create_from_pool(MPIR_Request_kind_t kind, int pool, int ref_count);
MPIR_Request* MPIR_Request_create_complete(MPIR_Request_kind_t kind);
void host_request_free(MPIR_Request* req);
void host_request_complete(MPIR_Request* req);
#define MPIDI_CH4_REQUEST_FREE(req) host_request_free(req)
#define MPIDIU_request_complete(req) host_request_complete(req)     /* 4.0.2 */
#define MPIDI_Request_complete_fast(req) host_request_complete(req) /* 5.0.1 */
#define MPID_Request_complete(req) host_request_complete(req)
#define MPIR_Request_add_ref(req) ((void)(req)->ref_count++)
#define MPIR_Request_is_complete(req) (*(req)->cc_ptr == 0)
#define MPIR_cc_get(cc) (cc)
#define MPIR_cc_set(cc, value) ((void)(*(cc) = (value)))
#define MPIR_Comm_add_ref(comm_) ((void)(comm_)->ref_count++)

/* ---- what `attr` and tags say of a failure ---- */

#define MPIR_TAG_ERROR_BIT (1 << 30)
#define MPIR_TAG_PROC_FAILURE_BIT (1 << 29)
#define MPIR_TAG_SET_ERROR_BIT(tag) ((tag) |= MPIR_TAG_ERROR_BIT)
#define MPIR_TAG_SET_PROC_FAILURE_BIT(tag) ((tag) |= MPIR_TAG_ERROR_BIT | MPIR_TAG_PROC_FAILURE_BIT)
#define MPIR_PT2PT_ATTR_GET_SYNCFLAG(attr) (((attr)&8) ? 1 : 0)
enum { MPIR_ERR_NONE = 0, MPIR_ERR_PROC_FAILED = 71, MPIR_COLL_ATTR_SYNC = 1 };

/* ---- shared memory, and its half of a receive from any source ---- */

#define MPIDI_REQUEST(req, field) ((req)->dev.field)
enum { MPIDIG_REQ_IN_PROGRESS = 1 };
#define MPIDIG_REQUEST(req, field) (((req)->dev.ch4.am).field)
#if HOST_IS_5
void MPIDI_REQUEST_SET_LOCAL(MPIR_Request* req, bool is_local, MPIR_Request* partner);
#else
#define MPIDI_REQUEST_ANYSOURCE_PARTNER(req) ((req)->dev.anysource_partner_request)
#define MPIDI_REQUEST_SET_LOCAL(req, is_local_, partner_) \
  ((req)->dev.is_local = (is_local_), (req)->dev.anysource_partner_request = (partner_))
#endif
int MPIDI_anysrc_try_cancel_partner(MPIR_Request* rreq, int* is_cancelled);
void MPIDI_anysrc_free_partner(MPIR_Request* rreq);

typedef struct {
  void *postponed_queue, **active_rreq;
} host_posix_vci;
typedef struct {
  host_posix_vci per_vci[1]; /* 5.0.1 */
  host_posix_vci per_vsi[1]; /* 4.0.2 */
} MPIDI_POSIX_global_t;
extern MPIDI_POSIX_global_t MPIDI_POSIX_global;
#define MPL_atomic_relaxed_load_int(address) (*(address))

/* ---- one-sided ---- */

bool host_rank_is_local(int rank, const MPIR_Comm* comm);
#define MPIDI_rank_is_local(rank, comm) host_rank_is_local(rank, comm)
bool host_av_is_local(const MPIDI_av_entry_t* av);
#define MPIDI_av_is_local(av) host_av_is_local(av)
int host_allgather(void* buffer, MPI_Aint bytes, MPIR_Comm* comm);
#define MPIR_Allgather(in, in_count, in_type, buffer, count, type, comm, last) \
  ((void)(last), host_allgather(buffer, count, comm))
int MPIDI_progress_test_vci(int vci);
#define MPIDIU_PROGRESS_WHILE(condition, vci)                       \
  while (condition) {                                               \
    mpi_errno = MPIDI_progress_test_vci(vci);                       \
    MPIR_ERR_CHECK(mpi_errno);                                      \
    MPID_THREAD_CS_YIELD(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX); \
  }
int host_check_epoch(int target_rank, const MPIR_Win* win);
#define MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win)  \
  do {                                              \
    mpi_errno = host_check_epoch(target_rank, win); \
    MPIR_ERR_CHECK(mpi_errno);                      \
  } while (0)
int MPIDIG_mpi_win_free(MPIR_Win** win);
#define MPIDIG_WIN(win, field) ((win)->field)
enum { MPI_MODE_NOCHECK = 1024 };
enum {
  MPIDIG_EPOTYPE_NONE,
  MPIDIG_EPOTYPE_LOCK,
  MPIDIG_EPOTYPE_START,
  MPIDIG_EPOTYPE_LOCK_ALL,
  MPIDIG_EPOTYPE_FENCE,
  MPIDIG_EPOTYPE_REFENCE
};
typedef struct {
  int remote_acc_cmpl_cnts;
  struct {
    int assert_mode;
  } sync;
} MPIDIG_win_target_t;
MPIDIG_win_target_t* MPIDIG_win_target_find(MPIR_Win* win, int rank);
int MPIDIG_mpi_win_start(MPIR_Group* group, int assert, MPIR_Win* win);
int MPIDIG_fill_ranks_in_win_grp(MPIR_Win* win, MPIR_Group* group, int* ranks);
#define MPIDIG_ACCESS_EPOCH_CHECK_NONE(win, mpi_errno, statement) \
  do {                                                            \
    mpi_errno = host_check_epoch(-1, win);                        \
    if (mpi_errno != MPI_SUCCESS) statement;                      \
  } while (0)
int MPIDIG_mpi_win_complete(MPIR_Win* win);
int MPIDIG_mpi_win_unlock(int rank, MPIR_Win* win);
int MPIDIG_mpi_win_unlock_all(MPIR_Win* win);
/* The host's calls that wait for the answers of other ranks: by active messages. */
int host_answers_come(void);
#define MPIDIG_mpi_win_lock(lock_type, rank, assert, win) host_answers_come()
#define MPIDIG_mpi_win_lock_all(assert, win) host_answers_come()
#define MPIDIG_mpi_win_flush(rank, win) host_answers_come()
#define MPIDIG_mpi_win_flush_local(rank, win) host_answers_come()
#define MPIDIG_mpi_win_flush_all(win) host_answers_come()
#define MPIDIG_mpi_win_flush_local_all(win) host_answers_come()
#define MPIDIG_mpi_win_wait(win) host_answers_come()
#define MPIDIG_mpi_win_fence(assert, win) host_answers_come()
/* Operations of accumulates, and what does them at the target. */
enum { MPI_SUM = 100, MPI_NO_OP, HOST_USERS_OP = 200 };
bool host_is_builtin(int handle);
#define HANDLE_IS_BUILTIN(handle) host_is_builtin(handle)
enum { MPIDIG_ACC_SRCBUF_PACKED = 1, MPIDI_WINATTR_SHM_ALLOCATED = 2 };
#define MPIDI_WIN(win, field) ((win)->dev.field)
int MPIDIG_compute_acc_op(void* source, MPI_Aint count, MPI_Datatype type, void* target,
                          MPI_Aint target_count, MPI_Datatype target_type, MPI_Op op, int kind);
void MPIDI_SHM_rma_op_cs_enter_hook(MPIR_Win* win);
void MPIDI_SHM_rma_op_cs_exit_hook(MPIR_Win* win);
#define MPIDIG_rma_set_am_flag() ((void)0)
/* by active messages */
enum {
  HOST_PUT,
  HOST_GET,
  HOST_RPUT,
  HOST_RGET,
  HOST_RACC,
  HOST_RGET_ACC,
  HOST_ACC,
  HOST_FETCH,
  HOST_ACCESSES
};
int host_rma_by_messages(int which, const void* origin, MPI_Aint count, MPI_Datatype type,
                         MPIR_Win* win, MPIR_Request** request);
#define MPIDIG_mpi_put(origin, count, type, rank, disp, t_count, t_type, win) \
  host_rma_by_messages(HOST_PUT, origin, count, type, win, NULL)
#define MPIDIG_mpi_get(origin, count, type, rank, disp, t_count, t_type, win) \
  host_rma_by_messages(HOST_GET, origin, count, type, win, NULL)
#define MPIDIG_mpi_rput(origin, count, type, rank, disp, t_count, t_type, win, request) \
  host_rma_by_messages(HOST_RPUT, origin, count, type, win, request)
#define MPIDIG_mpi_rget(origin, count, type, rank, disp, t_count, t_type, win, request) \
  host_rma_by_messages(HOST_RGET, origin, count, type, win, request)
#define MPIDIG_mpi_accumulate(origin, count, type, rank, disp, t_count, t_type, op, win) \
  host_rma_by_messages(HOST_ACC, origin, count, type, win, NULL)
#define MPIDIG_mpi_fetch_and_op(origin, result, type, rank, disp, op, win) \
  host_rma_by_messages(HOST_FETCH, origin, 1, type, win, NULL)
#define MPIDIG_mpi_raccumulate(origin, count, type, rank, disp, t_count, t_type, op, win, request) \
  host_rma_by_messages(HOST_RACC, origin, count, type, win, request)
#define MPIDIG_mpi_rget_accumulate(origin, count, type, result, r_count, r_type, rank, disp, \
                                   t_count, t_type, op, win, request)                        \
  host_rma_by_messages(HOST_RGET_ACC, origin, count, type, win, request)

#endif
