/* Messages and one-sided accesses in the glue (lite_send.c, lite_recv.c, lite_probe.c,
 * lite_pieces.c, lite_am.c, lite_rma.c, lite_progress.c) without the host: compiled against
 * host/mpidimpl.h and host/pt2pt.h as of 4.0.2 and, as pt2pt_glue5_test, of 5.0.1, with the host's
 * and the device's functions below. Here: where data comes from and goes to, in memory of the host
 * and of a GPU; any-source receives beside shared memory; what is left behind by what fails. */
#define _GNU_SOURCE /* memfd_create */
#include <check.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "ch_lite/ch4/lite_rma.h"

enum { PAGE = 65536 }; /* a multiple of any system's */

/* ---- the host: memory ---- */

/* Every block is followed by bytes that nobody may write. */
enum { GUARD_BYTES = 64 };
static const unsigned char kGuard = 0xa5;
static size_t live_blocks;
static int blocks_left; /* so many more are to be had; -1: any number */
static int fails_block; /* the so-many-eth from now is not to be had, the ones behind it are; -1 */
void* host_calloc(size_t count, size_t size) {
  const size_t bytes = count * size;
  if (blocks_left == 0 || fails_block-- == 0) return NULL;
  if (blocks_left > 0) blocks_left--;
  unsigned char* block = malloc(16 + bytes + GUARD_BYTES);
  memcpy(block, &bytes, sizeof bytes);
  memset(block + 16, 0, bytes);
  memset(block + 16 + bytes, kGuard, GUARD_BYTES);
  live_blocks++;
  return block + 16;
}
void host_free(void* block) {
  if (block == NULL) return;
  unsigned char* start = block;
  size_t bytes;
  memcpy(&bytes, start - 16, sizeof bytes);
  for (size_t i = 0; i < GUARD_BYTES; i++)
    if (start[bytes + i] != kGuard)
      ck_abort_msg("byte %zu behind a block of %zu was written", i, bytes);
  memset(start, 0xdd, bytes + GUARD_BYTES); /* freed again, or read from now on: seen */
  live_blocks--;
  free(start - 16);
}

/* A page of the host's, one of a GPU's, and one of the host's. The GPU's can be had by the host's
 * datatype functions alone, under another address. */
static char *memory, *gpu, *gpu_seen_by_typerep;
static bool in_gpu(const void* data) {
  return (const char*)data >= gpu && (const char*)data < gpu + PAGE;
}
bool MPIR_GPU_query_pointer_is_dev(const void* data) { return in_gpu(data); }
static void map_memory(void) {
  const int file = memfd_create("memory of a GPU", 0);
  ck_assert_int_ge(file, 0);
  ck_assert_int_eq(ftruncate(file, PAGE), 0);
  memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  gpu = memory + PAGE;
  gpu_seen_by_typerep = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ck_assert(memory != MAP_FAILED && gpu_seen_by_typerep != MAP_FAILED);
  ck_assert(mmap(gpu, PAGE, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0) == gpu);
  close(file);
}
static void unmap_memory(void) {
  munmap(memory, 3 * PAGE);
  munmap(gpu_seen_by_typerep, PAGE);
}
static char* seen(const void* address) {
  return in_gpu(address) ? gpu_seen_by_typerep + ((const char*)address - gpu) : (char*)address;
}

/* ---- the host: datatypes ---- */

enum { BYTES = MPI_BYTE, INTS, SHIFTED, SMALL_PIECES, LARGE_PIECES, NEIGHBOURS, TYPES };
typedef struct {
  bool builtin;
  int pieces;
  MPI_Aint piece, stride, true_lb, extent, element; /* bytes */
  int refs;
} Type;
static const Type kTypes[TYPES] = {[BYTES] = {true, 1, 1, 1, 0, 1, 1, 1},
                                   [INTS] = {true, 1, 4, 4, 0, 4, 4, 1},
                                   [SHIFTED] = {false, 1, 64, 64, 16, 64, 4, 1},
                                   [SMALL_PIECES] = {false, 8, 16, 32, 8, 256, 4, 1},
                                   [LARGE_PIECES] = {false, 2, 2048, 3072, 8, 6144, 4, 1},
                                   [NEIGHBOURS] = {false, 2, 1024, 1024, 0, 4096, 4, 1}};
static Type types[TYPES];
static bool is_contig(const Type* t) { return t->pieces == 1 && t->piece == t->extent; }
MPI_Aint host_type_size(MPI_Datatype type) { return types[type].pieces * types[type].piece; }
void host_type_info(MPI_Aint count, MPI_Datatype type, int* contig, size_t* size,
                    MPI_Aint* true_lb) {
  *contig = is_contig(&types[type]);
  *size = (size_t)(count * host_type_size(type));
  *true_lb = types[type].true_lb;
}
void host_type_add_ref(MPI_Datatype type) {
  if (!types[type].builtin) types[type].refs++;
}
void host_type_release(MPI_Datatype type) {
  ck_assert_int_gt(types[type].refs, 0);
  if (!types[type].builtin) types[type].refs--;
}

static bool no_element_size; /* of a struct of several types */
static bool pairs;           /* the elements are MPI_2INT */
static bool several_types;   /* of one size, in a struct */
MPIR_Datatype* host_datatype(MPI_Datatype type) {
  static MPIR_Datatype found;
  found.basic_type = several_types ? MPI_DATATYPE_NULL : pairs ? MPI_2INT : MPI_BYTE;
  found.builtin_element_size = no_element_size ? 0 : types[type].element;
  return &found;
}

/* The address of byte `at` of the data. */
static char* byte_of(const void* buf, MPI_Datatype type, size_t at) {
  const Type* t = &types[type];
  const size_t size = (size_t)host_type_size(type), in_one = at % size;
  return (char*)buf + (MPI_Aint)(at / size) * t->extent + t->true_lb +
         (MPI_Aint)(in_one / (size_t)t->piece) * t->stride + (MPI_Aint)(in_one % (size_t)t->piece);
}

static int packs, unpacks, typerep_error;
int host_pack(const void* in, MPI_Aint count, MPI_Datatype type, MPI_Aint offset, void* out,
              MPI_Aint room, MPI_Aint* packed) {
  packs++;
  ck_assert_int_eq(offset, 0);
  ck_assert_int_eq(room, count * host_type_size(type));
  ck_assert(!in_gpu(out));
  if (typerep_error != MPI_SUCCESS) return typerep_error;
  for (MPI_Aint i = 0; i < room; i++) ((char*)out)[i] = *seen(byte_of(in, type, (size_t)i));
  *packed = room;
  return MPI_SUCCESS;
}
int host_unpack(const void* in, MPI_Aint bytes, void* out, MPI_Aint count, MPI_Datatype type,
                MPI_Aint offset, MPI_Aint* unpacked) {
  unpacks++;
  ck_assert_int_eq(offset, 0);
  ck_assert_int_gt(types[type].refs, 0); /* it was kept */
  ck_assert_int_le(bytes, count * host_type_size(type));
  ck_assert(!in_gpu(in));
  if (typerep_error != MPI_SUCCESS) return typerep_error;
  *unpacked = bytes - bytes % types[type].element;
  for (MPI_Aint i = 0; i < *unpacked; i++)
    *seen(byte_of(out, type, (size_t)i)) = ((const char*)in)[i];
  return MPI_SUCCESS;
}

static int lists; /* so often a list was asked for */
static int list_error;
static enum { LIST_IS_GOOD, LIST_HAS_TOO_LITTLE, LIST_IS_LONGER } list_is;
static int iov_length(MPI_Aint count, MPI_Datatype type, MPI_Aint* length) {
  lists++;
  *length = count * types[type].pieces;
  return list_error == 1 ? MPI_ERR_OTHER : MPI_SUCCESS;
}
#if HOST_IS_5
int MPIR_Typerep_iov_len(MPI_Aint count, MPI_Datatype type, MPI_Aint bytes, MPI_Aint* length,
                         MPI_Aint* covered) {
  *covered = bytes;
  return iov_length(count, type, length);
}
#else
int MPIR_Typerep_iov_len(MPI_Aint count, MPI_Datatype type, MPI_Aint bytes, MPI_Aint* length) {
  return iov_length(count, type, length);
}
#endif
int MPIR_Typerep_to_iov_offset(const void* buf, MPI_Aint count, MPI_Datatype type, MPI_Aint offset,
                               struct iovec* iov, MPI_Aint room, MPI_Aint* length) {
  const Type* t = &types[type];
  *length = count * t->pieces;
  ck_assert_int_eq(*length, room);
  ck_assert_int_eq(offset, 0);
  for (MPI_Aint i = 0; i < room; i++)
    iov[i] = (struct iovec){.iov_base = byte_of(buf, type, (size_t)(i * t->piece)),
                            .iov_len = (size_t)t->piece};
  if (list_is == LIST_HAS_TOO_LITTLE) iov[room - 1].iov_len--;
  if (list_is == LIST_IS_LONGER) ++*length;
  return list_error == 2 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* The bytes of every message, and what is where none has been written. */
static char byte_at(size_t i) { return (char)(i * 7 + i / 251 + 13); }
static const char kBlank = 0x2e;
static void wipe(void) {
  memset(memory, kBlank, PAGE);
  memset(gpu_seen_by_typerep, kBlank, PAGE);
  memset(memory + 2 * PAGE, kBlank, PAGE);
}
static void fill(void* buf, MPI_Aint count, MPI_Datatype type) {
  for (size_t i = 0; i < (size_t)(count * host_type_size(type)); i++)
    *seen(byte_of(buf, type, i)) = byte_at(i);
}
/* Exactly the first bytes of the message were received there, and nothing elsewhere. */
static void check_received(const void* buf, MPI_Datatype type, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (*seen(byte_of(buf, type, i)) != byte_at(i))
      ck_abort_msg("byte %zu of %zu is wrong", i, bytes);
  for (size_t i = 0; i < bytes; i++) *seen(byte_of(buf, type, i)) = kBlank;
  for (size_t i = 0; i < 3 * PAGE; i++)
    if (*seen(memory + i) != kBlank) ck_abort_msg("a byte was written where none belongs");
}

/* ---- the host: errors, locks, requests ---- */

MPIDI_CH4_Global_t MPIDI_global;
MPIDIG_global_t MPIDIG_global;
MPIR_Process_t MPIR_Process;
MPIDI_POSIX_global_t MPIDI_POSIX_global;

static char error_text[512];
int MPIR_Err_create_code(int last, int fatal, const char* function, int line, int class_,
                         const char* generic, const char* specific, ...) {
  va_list arguments;
  va_start(arguments, specific);
  error_text[0] = '\0';
  if (specific != NULL) vsnprintf(error_text, sizeof error_text, specific, arguments);
  va_end(arguments);
  return class_;
}

static int lock_depth;
void host_enters_again(const MPID_Thread_mutex_t* mutex) {
  ck_assert(mutex == &MPIDI_VCI(MPIDI_LITE_VCI).lock);
  lock_depth++;
}
void host_enters(const MPID_Thread_mutex_t* mutex) {
  ck_assert_int_eq(lock_depth, 0);
  host_enters_again(mutex);
}
void host_leaves(const MPID_Thread_mutex_t* mutex) {
  ck_assert(mutex == &MPIDI_VCI(MPIDI_LITE_VCI).lock);
  ck_assert_int_gt(lock_depth, 0);
  lock_depth--;
}
#if HOST_IS_5
void host_yields(const MPID_Thread_mutex_t* mutex) {}
void host_time(MPL_time_t* now) { *now = 0; }
#endif

enum { REQUESTS = 40 };
static MPIR_Request requests[REQUESTS], completed_send;
static int live_requests;
static bool no_requests;
MPIR_Request* MPIR_Request_create_from_pool(MPIR_Request_kind_t kind, int pool, int ref_count) {
  ck_assert_int_eq(pool, MPIDI_LITE_VCI);
  for (int i = 0; i < REQUESTS && !no_requests; i++) {
    if (requests[i].ref_count > 0) continue;
    memset(&requests[i], 0x5c, sizeof requests[i]);
    requests[i].ref_count = ref_count;
    requests[i].kind = kind;
    requests[i].cc = 1;
    requests[i].cc_ptr = &requests[i].cc;
    requests[i].status.MPI_ERROR = MPI_SUCCESS;
    requests[i].status.cancelled = FALSE;
    requests[i].comm = NULL;
    requests[i].dev.ch4.am.req = NULL;
    MPIDI_LITE_PARTNER(&requests[i]) = NULL;
    live_requests++;
    return &requests[i];
  }
  return NULL;
}
MPIR_Request* MPIR_Request_create_complete(MPIR_Request_kind_t kind) {
  ck_assert_int_eq(kind, MPIR_REQUEST_KIND__SEND);
  return &completed_send;
}
void host_request_free(MPIR_Request* req) {
  if (req == &completed_send) return;
  ck_assert_int_gt(req->ref_count, 0);
  if (--req->ref_count > 0) return;
  live_requests--;
  if (req->comm != NULL) req->comm->ref_count--;
  memset(&req->dev, 0x5c, sizeof req->dev);
}
void host_request_complete(MPIR_Request* req) {
  ck_assert_int_gt(req->ref_count, 0);
  ck_assert_int_gt(*req->cc_ptr, 0);
  ck_assert_int_gt(lock_depth, 0);
  if (--*req->cc_ptr > 0) return;
  free(req->dev.ch4.am.req);
  req->dev.ch4.am.req = NULL;
  host_request_free(req);
}

/* MPI_Wait, of a request that is complete: its status. */
static MPI_Status take(MPIR_Request* req) {
  ck_assert(MPIR_Request_is_complete(req));
  const MPI_Status status = req->status;
  host_request_free(req);
  return status;
}

/* ---- the host: shared memory's half of a receive from any source, as in mpidig_request.h,
 * mpidig_recv.h and ch4_recv.h of both versions ---- */

#if HOST_IS_5
void MPIDI_REQUEST_SET_LOCAL(MPIR_Request* req, bool is_local, MPIR_Request* partner) {
  req->dev.is_local = is_local;
  if (partner != NULL) {
    req->dev.anysrc_partner = partner;
    partner->dev.anysrc_partner = req;
  }
}
#endif

static void cancel_in_shared_memory(MPIR_Request* req, bool is_anysrc_partner) {
  if (MPIR_Request_is_complete(req) || req->status.cancelled ||
      (req->dev.ch4.am.req->status & MPIDIG_REQ_IN_PROGRESS))
    return;
  req->dev.ch4.am.posted = false;
  if (HOST_IS_5 && is_anysrc_partner) {
    MPIDI_LITE_PARTNER(req) = NULL;
  } else {
    req->status.cancelled = TRUE;
    req->status.count = 0;
  }
  host_request_complete(req);
}

static int cancel_here(MPIR_Request* req) {
#if HOST_IS_5
  return MPIDI_LITE_mpi_cancel_recv(req, false);
#else
  return MPIDI_LITE_mpi_cancel_recv(req);
#endif
}

int MPIDI_anysrc_try_cancel_partner(MPIR_Request* rreq, int* is_cancelled) {
  MPIR_Request* partner = MPIDI_LITE_PARTNER(rreq);
  ck_assert_int_gt(lock_depth, 0);
  *is_cancelled = 1;
  if (partner == NULL) return MPI_SUCCESS;
  if (HOST_IS_5 ? MPIDI_LITE_PARTNER(partner) == NULL : partner->status.cancelled)
    return MPI_SUCCESS;
  if (!rreq->dev.is_local) {
    ++*partner->cc_ptr;
    cancel_in_shared_memory(partner, true);
    return MPI_SUCCESS;
  }
  MPIR_Request_add_ref(partner);
  ck_assert_int_eq(cancel_here(partner), MPI_SUCCESS);
  if (!partner->status.cancelled) {
    if (HOST_IS_5)
      MPIDI_LITE_PARTNER(rreq) = NULL;
    else
      rreq->status.cancelled = TRUE;
    *is_cancelled = 0;
  } else {
    MPIDI_LITE_PARTNER(rreq) = MPIDI_LITE_PARTNER(partner) = NULL;
    host_request_free(partner);
  }
  host_request_free(partner);
  return MPI_SUCCESS;
}

void MPIDI_anysrc_free_partner(MPIR_Request* rreq) {
  MPIR_Request* partner = MPIDI_LITE_PARTNER(rreq);
  if (partner == NULL) return;
  ck_assert(!rreq->dev.is_local);
  MPIDI_LITE_PARTNER(rreq) = MPIDI_LITE_PARTNER(partner) = NULL;
  partner->status = rreq->status;
  host_request_complete(partner);
  host_request_free(rreq);
}

/* MPI_Cancel of the user's request, the one in shared memory. */
static void cancel_any_source(MPIR_Request* shared) {
  lock_depth++;
  MPIR_Request* here = MPIDI_LITE_PARTNER(shared);
  if (here != NULL) {
    ck_assert_int_eq(cancel_here(here), MPI_SUCCESS);
    host_request_free(here);
  }
  cancel_in_shared_memory(shared, false);
  lock_depth--;
}

/* ---- the host: communicators and windows ---- */

enum { RANKS = 4, OWN_RANK = 0, OTHER = 1, NEIGHBOUR = 3 }; /* the last one on this node */
static MPIDI_av_entry_t ranks[RANKS];                       /* their peers are others: */
static int peer_of(int rank) { return 10 + rank; }
static MPIR_Comm comm;
MPIDI_av_entry_t* MPIDIU_comm_rank_to_av(MPIR_Comm* of, int rank) {
  ck_assert_int_ge(rank, 0);
  ck_assert_int_lt(rank, of->remote_size);
  return &of->remote[rank];
}
static bool all_local;
bool host_rank_is_local(int rank, const MPIR_Comm* of) {
  return all_local || rank == OWN_RANK || rank == NEIGHBOUR;
}
bool host_av_is_local(const MPIDI_av_entry_t* av) {
  return host_rank_is_local((int)(av - ranks), &comm);
}

/* Every rank's share, given what this one's is: the others have exposed theirs as key 100 + rank,
 * of kWindow bytes, but rank 2, which has none. */
enum { kWindow = 4096, DISP_UNIT = 4 };
typedef struct {
  uint64_t key;
  MPI_Aint bytes;
  int disp_unit;
} Share;
static Share own_share;
static int allgather_error;
int host_allgather(void* buffer, MPI_Aint bytes, MPIR_Comm* of) {
  Share* shares = buffer;
  ck_assert_int_eq(bytes, sizeof *shares);
  ck_assert_int_eq(lock_depth, 0);
  own_share = shares[of->rank];
  for (int i = 0; i < of->local_size; i++)
    if (i != of->rank)
      shares[i] = (Share){.key = i == 2 ? 0 : 100 + (uint64_t)i, kWindow, DISP_UNIT};
  return allgather_error;
}
static int epoch_error;
/* Other threads change what both of these look into. */
int host_check_epoch(int target_rank, const MPIR_Win* win) {
  ck_assert_int_gt(lock_depth, 0);
  return epoch_error;
}
static int windows_freed;
int MPIDIG_mpi_win_free(MPIR_Win** win) {
  windows_freed++;
  return MPIDI_LITE_win_free_hook(*win);
}
static MPIDIG_win_target_t locked_target;
MPIDIG_win_target_t* MPIDIG_win_target_find(MPIR_Win* win, int rank) {
  ck_assert_int_gt(lock_depth, 0);
  return rank == OTHER ? &locked_target : NULL;
}
static int group_ranks[RANKS], started, started_with;
int MPIDIG_fill_ranks_in_win_grp(MPIR_Win* of, MPIR_Group* group, int* out) {
  memcpy(out, group_ranks, (size_t)group->size * sizeof *out);
  return MPI_SUCCESS;
}
int MPIDIG_mpi_win_start(MPIR_Group* group, int assert, MPIR_Win* of) {
  started++;
  started_with = assert;
  return MPI_SUCCESS;
}
/* The host's ends of epochs: the hook, with the lock held where it is, polls, and then the message.
 */
static int polls_at_ends;
static int poll_once(void);
static void (*on_end)(void);
static int at_end(int error) {
  if (on_end != NULL) on_end();
  for (int i = 0; i < polls_at_ends; i++) ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  return error;
}
int MPIDIG_mpi_win_complete(MPIR_Win* win) {
  if (HOST_IS_5) lock_depth++;
  const int error = MPIDI_LITE_rma_win_cmpl_hook(win);
  if (HOST_IS_5) lock_depth--;
  return at_end(error);
}
static bool answers_at_ends;
int MPIDIG_mpi_win_unlock_all(MPIR_Win* win) {
  const int mpi_errno = MPIDIG_mpi_win_complete(win);
  return mpi_errno == MPI_SUCCESS && answers_at_ends ? host_answers_come() : mpi_errno;
}
int MPIDIG_mpi_win_unlock(int rank, MPIR_Win* win) {
  if (HOST_IS_5) lock_depth++;
  const int error = MPIDI_LITE_rma_target_cmpl_hook(rank, win);
  if (HOST_IS_5) lock_depth--;
  return at_end(error);
}
static int by_messages[HOST_ACCESSES];
static int answers;          /* that a request is to wait for; 0: it is complete at once */
static bool another_flushes; /* while this thread asks for an answer, before that is counted */
int host_rma_by_messages(int which, const void* origin, MPI_Aint count, MPI_Datatype type,
                         MPIR_Win* win, MPIR_Request** request) {
  if (which == HOST_FETCH && another_flushes) {
    another_flushes = false;
    ck_assert_int_eq(MPIDI_LITE_confirm_accumulates(OTHER, win), MPI_SUCCESS);
    ck_assert_int_eq(by_messages[HOST_FETCH], 1);
  }
  by_messages[which]++;
  if (request == NULL) return MPI_SUCCESS;
  *request = &completed_send;
  if (answers > 0) {
    *request = MPIR_Request_create_from_pool(MPIR_REQUEST_KIND__RMA, MPIDI_LITE_VCI, 2);
    *(*request)->cc_ptr = answers;
  }
  return MPI_SUCCESS;
}

/* ---- other files of the glue ---- */

int MPIDI_LITE_is_member(int peer, uint32_t context, int32_t source) { return LITE_NOT_A_MEMBER; }
bool MPIDI_LITE_shares_a_communicator(int peer) { return false; }
void MPIDI_LITE_hear_first_words(int peer, const void* header, size_t header_bytes,
                                 const void* data, size_t bytes) {}
bool MPIDI_LITE_may_carry(const void* header, size_t header_bytes, uint64_t data_bytes) {
  return false;
}
MPIR_Object_alloc_t MPIR_Request_mem[MPIR_REQUEST_NUM_POOLS];
static MPIR_Win win;
enum { WINDOW_ID = 9 };
void* MPIDIU_map_lookup(void* map, uint64_t id) {
  return id == WINDOW_ID ? &win : MPIDIU_MAP_NOT_FOUND;
}
bool host_is_builtin(int handle) {
  return handle < TYPES ? types[handle].builtin : handle != HOST_USERS_OP;
}
static struct {
  int times;
  const void *source, *target;
  MPI_Aint count;
  MPI_Datatype type;
  MPI_Op op;
  bool locked;
} accumulated;
static bool memory_is_locked;
int MPIDIG_compute_acc_op(void* source, MPI_Aint count, MPI_Datatype type, void* target,
                          MPI_Aint target_count, MPI_Datatype target_type, MPI_Op op, int kind) {
  ck_assert(count == target_count && type == target_type && kind == MPIDIG_ACC_SRCBUF_PACKED);
  accumulated.times++;
  accumulated.source = source, accumulated.target = target;
  accumulated.count = count, accumulated.type = type, accumulated.op = op;
  accumulated.locked = memory_is_locked;
  return MPI_SUCCESS;
}
void MPIDI_SHM_rma_op_cs_enter_hook(MPIR_Win* of) { memory_is_locked = true; }
void MPIDI_SHM_rma_op_cs_exit_hook(MPIR_Win* of) { memory_is_locked = false; }

/* ---- the device ---- */

__thread lite_call_state lite_call __attribute__((tls_model("initial-exec")));
lite_hot_state lite_hot;
void lite_host_lets_go_slow(void) {}

static bool have_device;
static const char* last_error = "no error";
const char* lite_last_error(void) { return last_error; }

/* What it was called for. */
typedef struct {
  enum { SEND, SEND_AT_ONCE, RECV, IMRECV, AM, PUT, GET } what;
  const void* data;
  const struct iovec* pieces;
  size_t pieces_count, bytes;
  int peer;
  lite_envelope envelope;
  unsigned flags;
  void* cookie;
  bool pending;
  lite_message* message;
  uint32_t handler;
  uint64_t key, offset;
} Call;
static Call calls[REQUESTS];
static int calls_count;

static int at_once;                    /* of what is complete with the call and has no request */
static int code;                       /* of the others */
static size_t message_bytes;           /* what a receive gets */
static char sent[2 * PAGE];            /* what went out last */
static lite_completion done[REQUESTS]; /* and not taken yet */
static int done_count, device_polls, told_shared_memory;

/* Nothing of a GPU's. */
static void check_memory(const void* data, size_t bytes) {
  if (bytes == 0) return;
  ck_assert_msg(!in_gpu(data) && !in_gpu((const char*)data + bytes - 1),
                "the device was given memory of a GPU");
}
static size_t bytes_in(const struct iovec* pieces, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += pieces[i].iov_len;
  return sum;
}
static Call* called(const Call call) {
  ck_assert_msg(have_device, "the device was called, and there is none");
  ck_assert_int_gt(lock_depth, 0);
  ck_assert_int_lt(calls_count, REQUESTS);
  if (call.pieces == NULL) check_memory(call.data, call.bytes);
  for (size_t i = 0; i < call.pieces_count; i++)
    check_memory(call.pieces[i].iov_base, call.pieces[i].iov_len);
  if (call.pieces != NULL) ck_assert_uint_eq(bytes_in(call.pieces, call.pieces_count), call.bytes);
  calls[calls_count] = call;
  return &calls[calls_count++];
}
static Call* last_call(void) {
  ck_assert_int_gt(calls_count, 0);
  return &calls[calls_count - 1];
}
/* Byte `at` of what the call is about. */
static char* byte_of_call(const Call* call, size_t at) {
  if (call->pieces == NULL) return (char*)call->data + at;
  const struct iovec* piece = call->pieces;
  while (at >= piece->iov_len) at -= piece++->iov_len;
  return (char*)piece->iov_base + at;
}
static void note_sent(const Call* call) {
  for (size_t i = 0; i < call->bytes; i++) sent[i] = *byte_of_call(call, i);
}
static void deliver(const Call* call, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) *byte_of_call(call, i) = byte_at(i);
}
enum { SOURCE = 2, TAG = 99 };
/* An error of the glue's own: the device's last sentence is not about it. */
static const int kNoMemory = HOST_TEXT | MPI_ERR_NO_MEM;
static lite_status receive(const Call* call) {
  lite_status status = {.error = message_bytes > call->bytes ? LITE_ERR_TRUNCATE : LITE_OK,
                        .source = SOURCE,
                        .tag = TAG,
                        .peer = peer_of(SOURCE),
                        .bytes = MPL_MIN(message_bytes, call->bytes)};
  deliver(call, (size_t)status.bytes);
  return status;
}
static int answer(Call* call, lite_request** request) {
  if (code < 0) {
    last_error = "it cannot be done";
    return code;
  }
  call->pending = code == LITE_PENDING;
  if (code == LITE_PENDING) *request = (lite_request*)call;
  return code;
}

static int send_any(Call* call, lite_request** request) {
  if (request == NULL) {
    call->what = SEND_AT_ONCE;
    ck_assert(call->cookie == NULL);
    if (at_once == LITE_OK) note_sent(call);
    if (at_once < 0) last_error = "it cannot be done";
    return at_once;
  }
  const int answered = answer(call, request);
  if (answered == LITE_OK) note_sent(call);
  return answered;
}
int lite_isend(const void* buffer, size_t bytes, int peer, const lite_envelope* envelope,
               unsigned flags, void* cookie, lite_request** request) {
  return send_any(called((Call){SEND, .data = buffer, .bytes = bytes, .peer = peer,
                                .envelope = *envelope, .flags = flags, .cookie = cookie}),
                  request);
}
int lite_isendv(const struct iovec* pieces, size_t count, size_t bytes, int peer,
                const lite_envelope* envelope, unsigned flags, void* cookie,
                lite_request** request) {
  return send_any(
      called((Call){SEND, .pieces = pieces, .pieces_count = count, .bytes = bytes, .peer = peer,
                    .envelope = *envelope, .flags = flags, .cookie = cookie}),
      request);
}
static int receive_any(Call* call, lite_status* status, lite_request** request) {
  memset(status, 0x5c, sizeof *status);
  const int answered = answer(call, request);
  if (answered == LITE_OK) *status = receive(call);
  return answered;
}
int lite_irecv(void* buffer, size_t bytes, int peer, const lite_envelope* envelope, void* cookie,
               lite_status* status, lite_request** request) {
  return receive_any(called((Call){RECV, .data = buffer, .bytes = bytes, .peer = peer,
                                   .envelope = *envelope, .cookie = cookie}),
                     status, request);
}
int lite_irecvv(const struct iovec* pieces, size_t count, size_t bytes, int peer,
                const lite_envelope* envelope, void* cookie, lite_status* status,
                lite_request** request) {
  return receive_any(called((Call){RECV, .pieces = pieces, .pieces_count = count, .bytes = bytes,
                                   .peer = peer, .envelope = *envelope, .cookie = cookie}),
                     status, request);
}
static int cancelled_in_device;
static bool is_matched; /* too late */
int lite_cancel_recv(lite_request* request) {
  Call* call = (Call*)request;
  ck_assert(have_device && lock_depth > 0);
  ck_assert(call->what == RECV && call->pending);
  if (is_matched) return 0;
  call->pending = false;
  cancelled_in_device++;
  return 1;
}
static char a_message;
int lite_iprobe(int peer, const lite_envelope* envelope, lite_status* status) { return 0; }
int lite_improbe(int peer, const lite_envelope* envelope, lite_status* status,
                 lite_message** message) {
  ck_assert(have_device && lock_depth > 0);
  *status =
      (lite_status){.source = SOURCE, .tag = TAG, .peer = peer_of(SOURCE), .bytes = message_bytes};
  *message = (lite_message*)&a_message;
  return 1;
}
int lite_imrecv(lite_message* message, void* buffer, size_t bytes, void* cookie,
                lite_status* status, lite_request** request) {
  return receive_any(
      called((Call){IMRECV, .message = message, .data = buffer, .bytes = bytes, .cookie = cookie}),
      status, request);
}
int lite_imrecvv(lite_message* message, const struct iovec* pieces, size_t count, size_t bytes,
                 void* cookie, lite_status* status, lite_request** request) {
  return receive_any(called((Call){IMRECV, .message = message, .pieces = pieces,
                                   .pieces_count = count, .bytes = bytes, .cookie = cookie}),
                     status, request);
}
int lite_am_isend(int peer, uint32_t handler, const void* header, size_t header_bytes,
                  const void* data, size_t data_bytes, void* cookie, lite_request** request) {
  ck_assert_mem_eq(header, "header", header_bytes);
  return send_any(called((Call){AM, .peer = peer, .handler = handler, .data = data,
                                .bytes = data_bytes, .cookie = cookie}),
                  request);
}
static char sent_header[64]; /* of an accumulate of ours */
static size_t sent_header_bytes;
int lite_am_isend_more(int peer, uint32_t handler, const void* header, size_t header_bytes,
                       const void* data, size_t data_bytes, void* cookie, lite_request** request) {
  ck_assert_uint_eq(handler, MPIDI_LITE_AM_ACCUMULATE);
  ck_assert_uint_le(header_bytes, sizeof sent_header);
  memcpy(sent_header, header, header_bytes);
  sent_header_bytes = header_bytes;
  return answer(called((Call){AM, .peer = peer, .handler = handler, .data = data,
                              .bytes = data_bytes, .flags = LITE_MORE_FOLLOWS, .cookie = cookie}),
                request);
}
static uint64_t exposed_key; /* of what is exposed; 0: nothing is */
static int expose_code, exposures;
static void* exposed_base;
static size_t exposed_bytes;
static int host_work_kind = LITE_HOST_WORK_NEVER, expected; /* messages: windows that are there */
int lite_host_work_kind(void) { return host_work_kind; }
void lite_am_expect(int change) {
  ck_assert(host_work_kind != LITE_HOST_WORK_NEVER && (change == 1 || change == -1));
  expected += change;
}
int MPIDI_LITE_take_kept_error(void) { return MPI_SUCCESS; }
void MPIDI_LITE_want_host_thread(void) { ck_assert(host_work_kind != LITE_HOST_WORK_NEVER); }
int lite_expose_to(void* base, size_t bytes, const int* peers, size_t count, uint64_t* key) {
  ck_assert(have_device && lock_depth > 0);
  check_memory(base, bytes);
  ck_assert_uint_eq(count, RANKS);
  for (int i = 0; i < RANKS; i++) ck_assert_int_eq(peers[i], peer_of(i));
  exposures++;
  if (expose_code < 0) return expose_code;
  exposed_base = base;
  exposed_bytes = bytes;
  *key = exposed_key = 77;
  return LITE_OK;
}
static int accessed; /* so often the answer is yes */
int lite_is_accessed(uint64_t key) {
  ck_assert(have_device && lock_depth > 0);
  ck_assert(key != 0 && key == exposed_key);
  if (accessed == 0) return 0;
  accessed--;
  return 1;
}
int lite_withdraw(uint64_t key) {
  ck_assert(have_device && lock_depth > 0);
  ck_assert(key != 0 && key == exposed_key && accessed == 0);
  exposed_key = 0;
  return LITE_OK;
}
static bool left_whole; /* a put's data need not stay */
int lite_put(int peer, uint64_t key, uint64_t offset, const void* data, size_t bytes,
             unsigned flags, void* cookie, lite_request** request) {
  return answer(called((Call){PUT, .peer = peer, .key = key, .offset = offset, .data = data,
                              .bytes = bytes, .flags = flags, .cookie = cookie}),
                request);
}
int lite_get(int peer, uint64_t key, uint64_t offset, void* buffer, size_t bytes, unsigned flags,
             void* cookie, lite_request** request) {
  return answer(called((Call){GET, .peer = peer, .key = key, .offset = offset, .data = buffer,
                              .bytes = bytes, .flags = flags, .cookie = cookie}),
                request);
}
int lite_request_holds_buffer(const lite_request* request) { return !left_whole; }
static bool read_in_order; /* a get's answer need not come before a message is sent */
int lite_request_is_in_order(const lite_request* request) { return left_whole || read_in_order; }

/* With no device these two may be called, as ch_lite.h says. */
int lite_progress(void) {
  ck_assert_int_gt(lock_depth, 0);
  device_polls++;
  return have_device ? done_count : 0;
}
static int lost = -1; /* a rank */
int lite_lost_peers(void) { return lost >= 0; }
int lite_check_lost(int peer) {
  return lost >= 0 && peer == peer_of(lost) ? LITE_ERR_PEER_LOST : LITE_OK;
}
void lite_set_shared_memory(int on) { told_shared_memory++; }
void lite_set_host_news(int (*news)(void)) {}
int lite_take_completion(lite_completion* taken) {
  ck_assert_msg(have_device, "the device was called, and there is none");
  if (done_count == 0) return 0;
  *taken = done[0];
  memmove(done, done + 1, (size_t)--done_count * sizeof *done);
  return done_count + 1;
}

/* A pending one ends, as the next progress will learn. */
static void ends(Call* call, lite_status status) {
  ck_assert(call->pending);
  call->pending = false;
  done[done_count++] = (lite_completion){.cookie = call->cookie,
                                         .status = status,
                                         .is_send = call->what == SEND,
                                         .holds_buffer = !left_whole,
                                         .in_order = left_whole || read_in_order};
}
static void completes(Call* call) {
  if (call->what == RECV || call->what == IMRECV) {
    ends(call, receive(call));
  } else {
    note_sent(call);
    ends(call, (lite_status){.error = LITE_OK, .peer = call->peer});
  }
}
static void fails(Call* call, int error) {
  last_error = "it was lost";
  ends(call,
       (lite_status){
           .error = error, .source = SOURCE, .tag = TAG, .peer = peer_of(SOURCE), .bytes = 0});
}

static int made_progress;
static int poll_once(void) {
  made_progress = 0;
  lock_depth++;
#if HOST_IS_5
  const int mpi_errno = MPIDI_LITE_progress(MPIDI_LITE_VCI, &made_progress);
#else
  const int mpi_errno = MPIDI_LITE_progress(MPIDI_LITE_VCI, 0);
#endif
  lock_depth--;
  return mpi_errno;
}
static void (*on_wait)(void);
static int waits;
int MPIDI_progress_test_vci(int vci) {
  ck_assert_int_gt(lock_depth, 0);
  ck_assert_int_lt(waits++, 100);
  if (on_wait != NULL) on_wait();
  const int depth = lock_depth;
  lock_depth = 0;
  const int mpi_errno = poll_once();
  lock_depth = depth;
  return mpi_errno;
}

/* ---- what the host asks for ---- */

static int start_send(const void* buf, MPI_Aint count, MPI_Datatype type, bool sync,
                      MPIR_Request** req) {
#if HOST_IS_5
  return MPIDI_LITE_mpi_isend(buf, count, type, OTHER, TAG, &comm, sync ? 8 : 0, &ranks[OTHER],
                              req);
#else
  return (sync ? MPIDI_LITE_mpi_issend : MPIDI_LITE_mpi_isend)(buf, count, type, OTHER, TAG, &comm,
                                                               0, &ranks[OTHER], req);
#endif
}
static int start_receive(void* buf, MPI_Aint count, MPI_Datatype type, MPIR_Request** req) {
  *req = NULL;
  return MPIDI_LITE_mpi_irecv(buf, count, type, SOURCE, TAG, &comm, 0, &ranks[SOURCE], req, NULL);
}
static MPIR_Request* probe_matched(void) {
  MPIR_Request* message = NULL;
  MPI_Status status = {.MPI_ERROR = 4711};
  int flag = 0;
  ck_assert_int_eq(
      MPIDI_LITE_mpi_improbe(SOURCE, TAG, &comm, 0, &ranks[SOURCE], &flag, &message, &status),
      MPI_SUCCESS);
  ck_assert(flag && message != NULL);
  ck_assert_int_eq(status.MPI_ERROR, 4711);
  return message;
}
/* MPID_Imrecv */
static int receive_matched(void* buf, MPI_Aint count, MPI_Datatype type, MPIR_Request* message) {
  ck_assert_int_eq(message->kind, MPIR_REQUEST_KIND__MPROBE);
  message->kind = MPIR_REQUEST_KIND__RECV;
  return MPIDI_LITE_mpi_imrecv(buf, count, type, message);
}
/* anysource_irecv: the request that the user has. */
static MPIR_Request* receive_from_any(void* buf, MPI_Aint count, MPI_Datatype type) {
  MPIR_Request *here = NULL, *shared = MPIR_Request_create_from_pool(MPIR_REQUEST_KIND__RECV, 0, 2);
  shared->dev.is_local = true;
  shared->dev.ch4.am.posted = true;
  shared->dev.ch4.am.req = calloc(1, sizeof *shared->dev.ch4.am.req);
  lock_depth++;
  ck_assert_int_eq(
      MPIDI_LITE_mpi_irecv(buf, count, type, MPI_ANY_SOURCE, TAG, &comm, 0, NULL, &here, shared),
      MPI_SUCCESS);
  ck_assert(here != NULL);
  MPIDI_LITE_PARTNER(shared) = here;
  /* 4.0.2 would cancel it then, and forget ours */
  ck_assert(!MPIR_Request_is_complete(here));
  lock_depth--;
  return shared;
}
enum { HANDLER = 5 };
static int origin_calls;
static MPIR_Request* told_origin;
static int on_sent(MPIR_Request* sreq) {
  origin_calls++;
  told_origin = sreq;
  return MPI_SUCCESS;
}
static int send_am(const void* data, MPI_Aint count, MPI_Datatype type, MPIR_Request* sreq) {
  lock_depth++;
  const int mpi_errno =
      MPIDI_LITE_am_isend(OTHER, &comm, HANDLER, "header", 6, data, count, type, 0, 0, sreq);
  lock_depth--;
  return mpi_errno;
}

/* Long enough for a list of pieces. */
static MPI_Aint count_of(MPI_Datatype type) {
  static const MPI_Aint counts[TYPES] = {[BYTES] = 5000,      [INTS] = 1000,      [SHIFTED] = 20,
                                         [SMALL_PIECES] = 16, [LARGE_PIECES] = 4, [NEIGHBOURS] = 4};
  return counts[type];
}
static size_t size_of(MPI_Datatype type) { return (size_t)(count_of(type) * host_type_size(type)); }

static void set_up(void) {
  map_memory();
  memcpy(types, kTypes, sizeof types);
  blocks_left = fails_block = -1;
  for (int i = 0; i < RANKS; i++) MPIDI_LITE_AV(&ranks[i]).peer = peer_of(i);
  comm = (MPIR_Comm){.context_id = 0x40,
                     .recvcontext_id = 0x40,
                     .rank = OWN_RANK,
                     .local_size = RANKS,
                     .remote_size = RANKS,
                     .remote = ranks,
                     .ref_count = 1};
  completed_send = (MPIR_Request){.ref_count = 1, .cc_ptr = &completed_send.cc};
  MPIR_Process = (MPIR_Process_t){.rank = OWN_RANK, .size = RANKS, .local_size = 2};
  MPIDIG_global.origin_cbs[HANDLER] = on_sent;
  have_device = true;
  at_once = code = LITE_OK;
  wipe();
}
/* Nothing is left of anything. */
static void tear_down(void) {
  ck_assert_uint_eq(live_blocks, 0);
  ck_assert_int_eq(live_requests, 0);
  ck_assert_int_eq(lock_depth, 0);
  ck_assert_int_eq(comm.ref_count, 1);
  ck_assert_uint_eq(exposed_key, 0);
  for (int i = 0; i < TYPES; i++) ck_assert_int_eq(types[i].refs, kTypes[i].refs);
  unmap_memory();
}

/* ---- sends ---- */

static void check_sent(MPI_Datatype type) {
  ck_assert_uint_eq(last_call()->bytes, size_of(type));
  for (size_t i = 0; i < size_of(type); i++)
    if (sent[i] != byte_at(i)) ck_abort_msg("byte %zu is wrong", i);
}

/* One whole send, of each combination: `_i` is made of the type, whether it is synchronous, whether
 * the device is done with the call, and whether the host brings the request. */
enum { SENDS = 8 * (TYPES - 1) };
static void send_whole(void* buf, int i, int copies, bool in_pieces) {
  const MPI_Datatype type = 1 + i / 8;
  const bool sync = i & 1, pending = i & 2, own_request = i & 4;
  const bool quick = !sync && !own_request && copies == 0 && !in_pieces;
  MPIR_Request* req =
      own_request ? MPIR_Request_create_from_pool(MPIR_REQUEST_KIND__SEND, 0, 1) : NULL;
  MPIR_Request* const brought = req;
  fill(buf, count_of(type), type);
  code = at_once = pending ? LITE_PENDING : LITE_OK;
  ck_assert_int_eq(start_send(buf, count_of(type), type, sync, &req), MPI_SUCCESS);
  ck_assert(req != NULL && (brought == NULL || req == brought));
  if (HOST_IS_5) ck_assert(!req->dev.is_local);
  ck_assert_int_eq(calls_count, quick && pending ? 2 : 1);
  const Call call = *last_call();
  ck_assert_int_eq(call.what, quick && !pending ? SEND_AT_ONCE : SEND);
  ck_assert_int_eq(call.peer, peer_of(OTHER));
  ck_assert_int_eq(call.envelope.context, comm.context_id);
  ck_assert_int_eq(call.envelope.source, OWN_RANK);
  ck_assert_int_eq(call.envelope.tag, TAG);
  ck_assert_uint_eq(call.flags, sync ? LITE_SEND_SYNC : 0);
  ck_assert_int_eq(packs, copies);
  ck_assert_int_eq(call.pieces != NULL, in_pieces);
  if (copies == 0 && !in_pieces) ck_assert(call.data == (char*)buf + types[type].true_lb);
  ck_assert_int_eq(MPIR_Request_is_complete(req), !pending);
  ck_assert_uint_eq(live_blocks, pending && (copies > 0 || in_pieces) ? 1 : 0);
  if (pending) {
    ck_assert(req->comm == &comm); /* whose error handler an error is for */
    completes(last_call());
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  }
  check_sent(type);
  ck_assert_uint_eq(live_blocks, 0);
  ck_assert_int_eq(take(req).MPI_ERROR, MPI_SUCCESS);
}

START_TEST(what_is_sent_from_a_gpu_is_a_copy_of_the_hosts) {
  send_whole(gpu, _i, 1, false);
  ck_assert_int_eq(lists, 0); /* of addresses that nobody could use */
}
END_TEST

START_TEST(contiguous_data_is_sent_from_where_it_is) { send_whole(memory, _i, 0, false); }
END_TEST

START_TEST(small_pieces_are_sent_packed) {
  send_whole(memory, 8 * (SMALL_PIECES - 1) + _i, 1, false);
}
END_TEST

START_TEST(large_pieces_are_sent_from_where_they_are) {
  send_whole(memory, 8 * (LARGE_PIECES - 1) + _i, 0, true);
  ck_assert_uint_eq(last_call()->pieces_count, 8);
}
END_TEST

START_TEST(pieces_beside_each_other_are_sent_as_one) {
  send_whole(memory, 8 * (NEIGHBOURS - 1) + _i, 0, true);
  ck_assert_uint_eq(last_call()->pieces_count, 4);
}
END_TEST

/* Which address decides: of the data, not of the buffer that the datatype is relative to. */
START_TEST(first_byte_of_the_data_decides_whether_it_is_in_a_gpu) {
  MPIR_Request* req = NULL;
  const MPI_Aint lb = types[SHIFTED].true_lb;
  fill(gpu - lb, 1, SHIFTED);
  ck_assert_int_eq(start_send(gpu - lb, 1, SHIFTED, _i, &req), MPI_SUCCESS);
  ck_assert_int_eq(packs, 1);
  host_request_free(req);
  req = NULL;
  ck_assert_int_eq(start_send(gpu + PAGE - lb, 1, SHIFTED, _i, &req), MPI_SUCCESS);
  ck_assert_int_eq(packs, 1);
  ck_assert(last_call()->data == gpu + PAGE);
  host_request_free(req);
  ck_assert_int_eq(send_am(gpu - lb, 1, SHIFTED, NULL), MPI_SUCCESS);
  ck_assert_int_eq(packs, 2);
  ck_assert_int_eq(send_am(gpu + PAGE - lb, 1, SHIFTED, NULL), MPI_SUCCESS);
  ck_assert_int_eq(packs, 2);
  ck_assert(last_call()->data == gpu + PAGE);
}
END_TEST

START_TEST(first_byte_of_the_room_decides_whether_it_is_in_a_gpu) {
  MPIR_Request* req;
  const MPI_Aint lb = types[SHIFTED].true_lb;
  message_bytes = 64;
  ck_assert_int_eq(start_receive(gpu - lb, 1, SHIFTED, &req), MPI_SUCCESS);
  ck_assert_int_eq(unpacks, 1);
  check_received(gpu - lb, SHIFTED, 64);
  host_request_free(req);
  ck_assert_int_eq(start_receive(gpu + PAGE - lb, 1, SHIFTED, &req), MPI_SUCCESS);
  ck_assert_int_eq(unpacks, 1);
  ck_assert(last_call()->data == gpu + PAGE);
  check_received(gpu + PAGE - lb, SHIFTED, 64);
  host_request_free(req);
}
END_TEST

START_TEST(nothing_is_copied_for_a_message_without_bytes) {
  MPIR_Request* req = NULL;
  code = LITE_PENDING;
  for (int type = 1; type < TYPES; type++) {
    for (int sync = 0; sync < 2; sync++) {
      req = NULL;
      ck_assert_int_eq(start_send(gpu, 0, type, sync, &req), MPI_SUCCESS);
      ck_assert_uint_eq(live_blocks, 0);
      if (req != &completed_send) {
        completes(last_call());
        ck_assert_int_eq(poll_once(), MPI_SUCCESS);
      }
      host_request_free(req);
    }
    ck_assert_int_eq(start_receive(gpu, 0, type, &req), MPI_SUCCESS);
    ck_assert_uint_eq(live_blocks, 0);
    ck_assert_int_eq(types[type].refs, 1);
    completes(last_call());
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
    host_request_free(req);
    req = probe_matched();
    ck_assert_int_eq(receive_matched(gpu, 0, type, req), MPI_SUCCESS);
    ck_assert_uint_eq(live_blocks, 0);
    completes(last_call());
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
    host_request_free(req);
    code = LITE_OK;
    ck_assert_int_eq(send_am(gpu, 0, type, NULL), MPI_SUCCESS);
    code = LITE_PENDING;
    calls_count = 0;
  }
  ck_assert_int_eq(packs + unpacks + lists, 0);
}
END_TEST

/* ---- receives ---- */

/* One whole receive; of `_i`: the type, whether the device has it with the call, by a matched
 * probe, and whether the message fits exactly, is shorter, empty, or too long. */
enum { EXACT, SHORT, EMPTY, TOO_LONG, RECEIVES = 16 * (TYPES - 1) };
static void receive_whole(void* buf, int i, bool copy, bool in_pieces) {
  const MPI_Datatype type = 1 + i / 16;
  const bool pending = i & 1, matched = i & 2, kept = !types[type].builtin && (copy || in_pieces);
  const int length = i / 4 % 4;
  const size_t room = size_of(type);
  message_bytes = length == EXACT   ? room
                  : length == SHORT ? room / 3 / 4 * 4
                  : length == EMPTY ? 0
                                    : room + 8;
  const size_t fits = MPL_MIN(message_bytes, room);
  MPIR_Request* req;
  code = pending ? LITE_PENDING : LITE_OK;
  if (matched) {
    req = probe_matched();
    ck_assert_int_eq(receive_matched(buf, count_of(type), type, req), MPI_SUCCESS);
    ck_assert(last_call()->message == (lite_message*)&a_message);
  } else {
    ck_assert_int_eq(start_receive(buf, count_of(type), type, &req), MPI_SUCCESS);
    ck_assert_int_eq(last_call()->peer, peer_of(SOURCE));
    ck_assert_int_eq(last_call()->envelope.context, comm.recvcontext_id);
    ck_assert_int_eq(last_call()->envelope.source, SOURCE);
    ck_assert_int_eq(last_call()->envelope.tag, TAG);
  }
  const Call call = *last_call();
  ck_assert(call.cookie == req);
  ck_assert_int_eq(calls_count, 1);
  ck_assert_uint_eq(call.bytes, room);
  ck_assert_int_eq(call.pieces != NULL, in_pieces);
  if (!copy && !in_pieces) ck_assert(call.data == (char*)buf + types[type].true_lb);
  ck_assert_int_eq(MPIR_Request_is_complete(req), !pending);
  if (pending) {
    ck_assert_int_eq(unpacks, 0);
    ck_assert_uint_eq(live_blocks, copy || in_pieces ? 1 : 0);
    ck_assert_int_eq(types[type].refs, kept ? 2 : 1);
    ck_assert(req->comm == &comm);
    if (kept) types[type].refs--; /* the user frees it */
    completes(last_call());
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
    if (kept) ck_assert_int_eq(types[type].refs++, 0);
  }
  ck_assert_int_eq(unpacks, copy && message_bytes > 0 ? 1 : 0);
  ck_assert_uint_eq(live_blocks, 0);
  ck_assert_int_eq(types[type].refs, 1);
  const MPI_Status status = take(req);
  ck_assert_int_eq(status.MPI_ERROR, length == TOO_LONG ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
  ck_assert_int_eq(status.count, fits);
  ck_assert_int_eq(status.MPI_SOURCE, SOURCE);
  ck_assert_int_eq(status.MPI_TAG, TAG);
  check_received(buf, type, fits);
}

START_TEST(what_is_received_in_a_gpu_comes_by_a_copy_of_the_hosts) {
  receive_whole(gpu, _i, true, false);
  ck_assert_int_eq(lists, 0);
}
END_TEST

START_TEST(contiguous_data_is_received_where_it_belongs) {
  receive_whole(memory, _i, false, false);
}
END_TEST

START_TEST(small_pieces_are_unpacked) {
  receive_whole(memory, 16 * (SMALL_PIECES - 1) + _i, true, false);
}
END_TEST

START_TEST(large_pieces_are_received_where_they_belong) {
  receive_whole(memory, 16 * (LARGE_PIECES - 1) + _i, false, true);
  ck_assert_uint_eq(last_call()->pieces_count, 8);
  ck_assert_int_eq(unpacks, 0);
}
END_TEST

START_TEST(pieces_beside_each_other_are_received_as_one) {
  receive_whole(memory, 16 * (NEIGHBOURS - 1) + _i, false, true);
  ck_assert_uint_eq(last_call()->pieces_count, 4);
}
END_TEST

/* By a copy, and in pieces. */
START_TEST(message_that_ends_inside_an_element_is_an_error) {
  static const MPI_Datatype kinds[] = {INTS, SMALL_PIECES, LARGE_PIECES, LARGE_PIECES};
  const MPI_Datatype type = kinds[_i / 2];
  char* const buf = _i / 2 == 0 || _i / 2 == 3 ? gpu : memory;
  MPIR_Request* req;
  message_bytes = 402;
  code = _i % 2 ? LITE_PENDING : LITE_OK;
  ck_assert_int_eq(start_receive(buf, count_of(type), type, &req), MPI_SUCCESS);
  ck_assert(req->comm == &comm); /* the user is told when he waits */
  if (_i % 2) {
    completes(last_call());
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  }
  ck_assert_int_eq(take(req).MPI_ERROR, MPI_ERR_TYPE);
}
END_TEST

static int error_of_pieces(size_t bytes) {
  MPIR_Request* req;
  message_bytes = bytes;
  ck_assert_int_eq(start_receive(memory, count_of(LARGE_PIECES), LARGE_PIECES, &req), MPI_SUCCESS);
  return take(req).MPI_ERROR;
}

START_TEST(elements_of_several_sizes_are_not_looked_at) {
  no_element_size = true;
  ck_assert_int_eq(error_of_pieces(402), MPI_SUCCESS);
}
END_TEST

START_TEST(pair_of_one_size_is_two_elements) {
  pairs = true; /* of two bytes each, in elements of four */
  ck_assert_int_eq(error_of_pieces(402), MPI_SUCCESS);
  ck_assert_int_eq(error_of_pieces(401), MPI_ERR_TYPE);
}
END_TEST

/* Where there is no Fortran, MPI_2REAL is MPI_DATATYPE_NULL as well. */
START_TEST(struct_of_several_types_of_one_size_is_no_pair) {
  several_types = true;
  ck_assert_int_eq(error_of_pieces(404), MPI_SUCCESS);
  ck_assert_int_eq(error_of_pieces(402), MPI_ERR_TYPE);
}
END_TEST

START_TEST(error_of_unpacking_is_the_receives) {
  MPIR_Request* req;
  typerep_error = MPI_ERR_OTHER;
  message_bytes = 20;
  ck_assert_int_eq(start_receive(gpu, 5, INTS, &req), MPI_SUCCESS);
  ck_assert_int_eq(take(req).MPI_ERROR, MPI_ERR_OTHER);
  /* what was too long is that, whatever else */
  message_bytes = 24;
  ck_assert_int_eq(start_receive(gpu, 5, INTS, &req), MPI_SUCCESS);
  ck_assert_int_eq(take(req).MPI_ERROR, MPI_ERR_TRUNCATE);
}
END_TEST

/* Pending; contiguous, by a copy, in pieces, into a GPU. */
START_TEST(receive_that_fails_leaves_the_memory_alone) {
  static const MPI_Datatype kinds[] = {BYTES, SMALL_PIECES, LARGE_PIECES, BYTES, LARGE_PIECES};
  char* const buf = _i < 3 ? memory : gpu;
  MPIR_Request* req;
  code = LITE_PENDING;
  ck_assert_int_eq(start_receive(buf, count_of(kinds[_i]), kinds[_i], &req), MPI_SUCCESS);
  fails(last_call(), LITE_ERR_PEER_LOST);
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert_int_eq(unpacks, 0);
  const MPI_Status status = take(req);
  ck_assert_int_eq(status.MPI_ERROR, MPI_ERR_OTHER);
  ck_assert_int_eq(status.count, 0);
  ck_assert_str_eq(error_text, "**comm_fail 12 it was lost");
  check_received(buf, kinds[_i], 0);
}
END_TEST

/* By a copy, and in pieces: the loss is the error, whatever the rest looks like. */
START_TEST(message_that_is_lost_in_the_middle_of_an_element_is_lost) {
  const MPI_Datatype type = _i ? LARGE_PIECES : SMALL_PIECES;
  MPIR_Request* req;
  code = LITE_PENDING;
  ck_assert_int_eq(start_receive(memory, count_of(type), type, &req), MPI_SUCCESS);
  ends(last_call(), (lite_status){.error = LITE_ERR_PEER_LOST, .peer = -1, .bytes = 402});
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert_int_eq(unpacks, 0);
  ck_assert_int_eq(take(req).MPI_ERROR, MPI_ERR_OTHER);
}
END_TEST

/* ---- lists that are not used ---- */

static void send_and_receive_packed(void) {
  send_whole(memory, 8 * (LARGE_PIECES - 1) + 2, 1, false);
  wipe();
  calls_count = 0;
  receive_whole(memory, 16 * (LARGE_PIECES - 1) + 1, true, false);
}
START_TEST(list_that_does_not_hold_every_byte_is_not_used) {
  list_is = LIST_HAS_TOO_LITTLE + _i;
  send_and_receive_packed();
  ck_assert_int_gt(lists, 0);
}
END_TEST

START_TEST(list_that_would_be_too_long_is_not_made) {
  MPIR_Request* req = NULL;
  types[LARGE_PIECES].extent = 0; /* all at one place */
  typerep_error = MPI_ERR_TYPE;   /* it need not be packed to the end */
  ck_assert_int_eq(start_send(memory, MPIDI_LITE_PIECES_MAX / 2 + 1, LARGE_PIECES, false, &req),
                   MPI_ERR_TYPE);
  ck_assert_int_eq(lists, 1);
  ck_assert_int_eq(packs, 1);
}
END_TEST

START_TEST(list_that_the_host_cannot_make_is_not_used) {
  list_error = 1 + _i;
  send_and_receive_packed();
}
END_TEST

START_TEST(without_memory_for_a_list_the_data_is_packed) {
  fails_block = 0;
  send_whole(memory, 8 * (LARGE_PIECES - 1) + 2, 1, false);
  wipe();
  calls_count = 0;
  fails_block = 0;
  receive_whole(memory, 16 * (LARGE_PIECES - 1) + 1, true, false);
}
END_TEST

START_TEST(small_message_is_packed_without_a_look_at_its_pieces) {
  MPIR_Request* req = NULL;
  types[LARGE_PIECES].piece = 511;
  ck_assert_int_eq(start_send(memory, 1, LARGE_PIECES, false, &req), MPI_SUCCESS);
  ck_assert_int_eq(packs, 1);
  ck_assert_int_eq(lists, 0);
  host_request_free(req);
  req = NULL;
  types[LARGE_PIECES].piece = 512;
  ck_assert_int_eq(start_send(memory, 1, LARGE_PIECES, false, &req), MPI_SUCCESS);
  ck_assert_uint_eq(last_call()->pieces_count, 2);
  ck_assert_int_eq(packs, 1);
  host_request_free(req);
}
END_TEST

/* ---- active messages ---- */

/* Of each type; done with the call or later; contiguous memory of the host's goes as it is. */
START_TEST(active_message_from_a_gpu_is_a_copy_of_the_hosts) {
  const MPI_Datatype type = 1 + _i / 4;
  const bool pending = _i & 1, on_gpu = _i & 2;
  const bool copied = on_gpu || !is_contig(&types[type]);
  char* const buf = on_gpu ? gpu : memory;
  MPIR_Request sreq = {.ref_count = 1};
  fill(buf, count_of(type), type);
  code = pending ? LITE_PENDING : LITE_OK;
  ck_assert_int_eq(send_am(buf, count_of(type), type, &sreq), MPI_SUCCESS);
  const Call call = *last_call();
  ck_assert_int_eq(call.what, AM);
  ck_assert_int_eq(call.peer, peer_of(OTHER));
  ck_assert_uint_eq(call.handler, HANDLER);
  ck_assert_int_eq(packs, copied);
  if (!copied) ck_assert(call.data == buf + types[type].true_lb);
  ck_assert_int_eq(origin_calls, !pending);
  if (pending) {
    ck_assert_uint_eq(live_blocks, copied ? 2 : 1);
    completes(last_call());
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  }
  check_sent(type);
  ck_assert_int_eq(origin_calls, 1);
  ck_assert(told_origin == &sreq);
  ck_assert_int_eq(lists + unpacks, 0);
}
END_TEST

START_TEST(active_message_that_fails_fails_the_call_that_polls) {
  MPIR_Request sreq = {.ref_count = 1};
  code = LITE_PENDING;
  ck_assert_int_eq(send_am(gpu, 100, BYTES, &sreq), MPI_SUCCESS);
  fails(last_call(), LITE_ERR_PEER_LOST);
  ck_assert_int_eq(poll_once(), MPI_ERR_OTHER);
  ck_assert_str_eq(error_text, "**comm_fail 12 it was lost");
  ck_assert_int_eq(origin_calls, 1); /* which cannot be told */
}
END_TEST

/* ---- one-sided ---- */

static void make_window(void* base, MPI_Aint bytes) {
  win = (MPIR_Win){.comm_ptr = &comm, .base = base, .size = bytes, .disp_unit = DISP_UNIT};
  ck_assert_int_eq(MPIDI_LITE_win_expose_hook(&win), MPI_SUCCESS);
}
static void end_window(void) {
  MPIR_Win* at = &win;
  ck_assert_int_eq(MPIDI_LITE_mpi_win_free(&at), MPI_SUCCESS);
  ck_assert_int_eq(windows_freed, 1);
}
enum { DISP = 3 };
static MPIR_Request* access_request;
static int access_at(int which, void* origin, MPI_Aint count, MPI_Datatype type, int rank,
                     MPI_Aint disp) {
  MPIDI_av_entry_t* av = &ranks[rank];
  const MPIDI_LITE_rma_count n = (MPIDI_LITE_rma_count)count;
  access_request = NULL;
  switch (which) {
    case HOST_PUT: return MPIDI_LITE_mpi_put(origin, n, type, rank, disp, n, type, &win, av, 0);
    case HOST_GET: return MPIDI_LITE_mpi_get(origin, n, type, rank, disp, n, type, &win, av, 0);
    case HOST_RPUT:
      return MPIDI_LITE_mpi_rput(origin, n, type, rank, disp, n, type, &win, av, 0,
                                 &access_request);
    case HOST_RGET:
      return MPIDI_LITE_mpi_rget(origin, n, type, rank, disp, n, type, &win, av, 0,
                                 &access_request);
    case HOST_ACC:
      return MPIDI_LITE_mpi_accumulate(origin, n, type, rank, disp, n, type, MPI_SUM, &win, av, 0);
    case HOST_RACC:
      return MPIDI_LITE_mpi_raccumulate(origin, n, type, rank, disp, n, type, 0, &win, av, 0,
                                        &access_request);
    default:
      return MPIDI_LITE_mpi_rget_accumulate(origin, n, type, memory, n, type, rank, disp, n, type,
                                            0, &win, av, 0, &access_request);
  }
}
static void check_by_messages(int which, void* origin, MPI_Aint count, MPI_Datatype type,
                              int rank) {
  const int before = by_messages[which];
  ck_assert_int_eq(access_at(which, origin, count, type, rank, DISP), MPI_SUCCESS);
  ck_assert_int_eq(by_messages[which], before + 1);
  ck_assert_int_eq(calls_count, 0);
}

START_TEST(access_with_an_origin_in_a_gpu_goes_by_active_messages) {
  make_window(memory, kWindow);
  check_by_messages(_i, gpu, 8, INTS, OTHER);
  check_by_messages(_i, gpu + 8, 8, INTS, OTHER);
  check_by_messages(_i, gpu - types[SHIFTED].true_lb, 1, SHIFTED, OTHER);
  end_window();
}
END_TEST

START_TEST(window_in_a_gpu_is_not_exposed) {
  make_window(gpu, kWindow);
  ck_assert_int_eq(exposures, 0);
  ck_assert_uint_eq(own_share.key, 0); /* which the others take as below */
  ck_assert_int_eq(own_share.bytes, kWindow);
  ck_assert_int_eq(own_share.disp_unit, DISP_UNIT);
  end_window();
}
END_TEST

START_TEST(window_in_the_hosts_memory_is_exposed_until_it_is_freed) {
  make_window(memory, kWindow);
  ck_assert_int_eq(exposures, 1);
  ck_assert(exposed_base == memory);
  ck_assert_uint_eq(exposed_bytes, kWindow);
  ck_assert_uint_eq(own_share.key, 77);
  end_window();
}
END_TEST

/* To one that could not be exposed, one's own, of pieces, of no bytes, of pieces on one side, and
 * (which ch4 finds) of different sizes. */
START_TEST(other_access_goes_by_active_messages) {
  make_window(memory, kWindow);
  check_by_messages(_i, memory, 8, INTS, 2);
  check_by_messages(_i, memory, 8, INTS, OWN_RANK);
  check_by_messages(_i, memory, 1, SMALL_PIECES, OTHER);
  check_by_messages(_i, memory, 0, INTS, OTHER);
  if (_i == 0) {
    MPIDI_av_entry_t* av = &ranks[OTHER];
    ck_assert_int_eq(
        MPIDI_LITE_mpi_put(memory, 1, SMALL_PIECES, OTHER, DISP, 128, BYTES, &win, av, 0),
        MPI_SUCCESS);
    ck_assert_int_eq(
        MPIDI_LITE_mpi_put(memory, 128, BYTES, OTHER, DISP, 1, SMALL_PIECES, &win, av, 0),
        MPI_SUCCESS);
    ck_assert_int_eq(MPIDI_LITE_mpi_put(memory, 128, BYTES, OTHER, DISP, 64, BYTES, &win, av, 0),
                     MPI_SUCCESS);
    ck_assert_int_eq(calls_count, 0);
    ck_assert_int_eq(by_messages[HOST_PUT], 4 + 3);
  }
  end_window();
}
END_TEST

START_TEST(window_that_nobody_elsewhere_has_is_not_exposed) {
  if (_i == 0)
    all_local = true;
  else
    expose_code = LITE_ERR_NOMEM;
  make_window(memory, kWindow);
  ck_assert_int_eq(exposures, _i);
  ck_assert_uint_eq(own_share.key, 0);
  if (_i == 0) check_by_messages(HOST_PUT, memory, 8, INTS, OTHER);
  end_window();
}
END_TEST

START_TEST(access_with_an_origin_in_the_hosts_memory_goes_straight_to_the_window) {
  const bool with_request = _i >= HOST_RPUT;
  make_window(memory, kWindow);
  code = LITE_PENDING;
  ck_assert_int_eq(access_at(_i, memory + 64, 2, SHIFTED, OTHER, DISP), MPI_SUCCESS);
  const Call call = *last_call();
  ck_assert_int_eq(call.what, _i == HOST_PUT || _i == HOST_RPUT ? PUT : GET);
  ck_assert_int_eq(call.peer, peer_of(OTHER));
  ck_assert_uint_eq(call.key, 100 + OTHER);
  ck_assert_uint_eq(call.offset, DISP * DISP_UNIT + 16);
  ck_assert(call.data == memory + 64 + 16);
  ck_assert_uint_eq(call.bytes, 128);
  ck_assert_int_eq(by_messages[_i], 0);
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending, 1);
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending_local, 1);
  if (with_request) ck_assert(!MPIR_Request_is_complete(access_request));
  completes(last_call());
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending, 0);
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending_local, 0);
  if (with_request) ck_assert_int_eq(take(access_request).MPI_ERROR, MPI_SUCCESS);
  end_window();
}
END_TEST

START_TEST(access_outside_of_the_window_or_of_an_epoch_is_an_error) {
  make_window(memory, kWindow);
  code = LITE_PENDING;
  ck_assert_int_eq(access_at(_i, memory, 8, INTS, OTHER, -1), HOST_TEXT | MPI_ERR_RMA_RANGE);
  ck_assert_int_eq(access_at(_i, memory, 8, INTS, OTHER, kWindow / 4 - 7),
                   HOST_TEXT | MPI_ERR_RMA_RANGE);
  ck_assert_int_eq(access_at(_i, memory, 8, INTS, OTHER, kWindow / 4 + 1),
                   HOST_TEXT | MPI_ERR_RMA_RANGE);
  epoch_error = MPI_ERR_OTHER;
  ck_assert_int_eq(access_at(_i, memory, 8, INTS, OTHER, 0), MPI_ERR_OTHER);
  epoch_error = MPI_SUCCESS;
  ck_assert_int_eq(calls_count + by_messages[_i], 0);
  ck_assert_int_eq(access_at(_i, memory, 8, INTS, OTHER, kWindow / 4 - 8), MPI_SUCCESS);
  completes(last_call());
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  if (access_request != NULL) host_request_free(access_request);
  end_window();
}
END_TEST

START_TEST(access_that_the_device_refuses_is_an_error_and_leaves_nothing) {
  make_window(memory, kWindow);
  code = LITE_ERR_PEER_LOST;
  ck_assert_int_eq(access_at(_i, memory, 8, INTS, OTHER, 0), MPI_ERR_OTHER);
  ck_assert_str_eq(error_text, "**comm_fail 11 it cannot be done");
  ck_assert(access_request == NULL);
  ck_assert_int_eq(live_requests + MPIDI_LITE_WIN(&win).pending, 0);
  no_requests = true;
  code = LITE_PENDING;
  if (_i >= HOST_RPUT) {
    ck_assert_int_eq(access_at(_i, memory, 8, INTS, OTHER, 0), MPIX_ERR_NOREQ);
    ck_assert_int_eq(calls_count, 1);
  }
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending + by_messages[_i], 0);
  end_window();
}
END_TEST

/* Of one with a request: where the user waits. Else the call that polls, such as that of a hook. */
START_TEST(access_that_fails_later_is_an_error_of_who_waits) {
  make_window(memory, kWindow);
  code = LITE_PENDING;
  ck_assert_int_eq(access_at(_i, memory, 8, INTS, OTHER, 0), MPI_SUCCESS);
  fails(last_call(), LITE_ERR_PEER_LOST);
  if (_i >= HOST_RPUT) {
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
    ck_assert_int_eq(take(access_request).MPI_ERROR, MPI_ERR_OTHER);
  } else {
    if (HOST_IS_5) lock_depth++;
    ck_assert_int_eq(MPIDI_LITE_rma_win_cmpl_hook(&win), MPI_ERR_OTHER);
    if (HOST_IS_5) lock_depth--;
  }
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending, 0);
  end_window();
}
END_TEST

static void last_one_fails(void) {
  if (last_call()->pending) fails(last_call(), LITE_ERR_PEER_LOST);
}
static void last_one_completes(void) {
  if (last_call()->pending) completes(last_call());
}
START_TEST(hooks_wait_for_what_is_pending_there) {
  int (*const of_win[])(MPIR_Win*) = {MPIDI_LITE_rma_win_cmpl_hook,
                                      MPIDI_LITE_rma_win_local_cmpl_hook};
  int (*const of_target[])(int, MPIR_Win*) = {MPIDI_LITE_rma_target_cmpl_hook,
                                              MPIDI_LITE_rma_target_local_cmpl_hook};
  make_window(memory, kWindow);
  code = LITE_PENDING;
  on_wait = last_one_completes;
  left_whole = _i / 2;
  ck_assert_int_eq(access_at(HOST_PUT, memory, 8, INTS, OTHER, 0), MPI_SUCCESS);
  if (HOST_IS_5) lock_depth++;
  ck_assert_int_eq(of_target[_i % 2](NEIGHBOUR, &win), MPI_SUCCESS);
  ck_assert_int_eq(waits, 0);
  ck_assert_int_eq(of_target[_i % 2](OTHER, &win), MPI_SUCCESS);
  ck_assert_int_eq(waits, _i == 3 ? 0 : 1); /* locally complete when it left */
  ck_assert_int_eq(of_win[_i % 2](&win), MPI_SUCCESS);
  ck_assert_int_eq(waits, _i == 3 ? 0 : 1);
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending_local, 0);
  if (HOST_IS_5) lock_depth--;
  end_window(); /* which waits for what is left */
  ck_assert_int_eq(waits, 1);
}
END_TEST

static int stays_at; /* so many are pending then */
static void one_ends(void) {
  if (MPIDI_LITE_WIN(&win).pending > stays_at)
    MPIDI_LITE_WIN(&win).pending--;
  else
    usleep(2000);
}
/* The origin waits for targets that are slower, and not for one that makes no progress. */
START_TEST(an_origin_is_held_back_while_its_accesses_end) {
  make_window(memory, kWindow);
  on_wait = one_ends;
  lock_depth++;
  MPIDI_LITE_WIN(&win).pending = 100;
  ck_assert_int_eq(MPIDI_LITE_hold_back(&win, 40), MPI_SUCCESS);
  ck_assert_int_eq(waits, 60);
  stays_at = 30;
  ck_assert_int_eq(MPIDI_LITE_hold_back(&win, 20), MPI_SUCCESS);
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending, 30);
  ck_assert_int_gt(waits, 70);
  MPIDI_LITE_WIN(&win).pending = 0;
  lock_depth--;
  on_wait = NULL;
  end_window();
}
END_TEST

static int start_with(int assert, int size, int first, int second) {
  MPIR_Group group = {.size = size};
  group_ranks[0] = first, group_ranks[1] = second;
  waits = 0;
  return MPIDI_LITE_mpi_win_start(&group, assert, &win);
}
static void posts_come(void) {
  if (waits == 1) {
    MPIDI_LITE_win_posted(&win, OTHER);
    MPIDI_LITE_win_posted(&win, OTHER);
    MPIDI_LITE_win_posted(&win, 2);
  } else {
    MPIDI_LITE_win_posted(&win, NEIGHBOUR);
  }
}
/* The host counts posts of whomever, and hangs if there are more. */
START_TEST(start_waits_for_one_post_of_each_of_its_group) {
  if (_i == 0)
    make_window(memory, kWindow);
  else { /* a dynamic or shared one */
    win = (MPIR_Win){.comm_ptr = &comm};
    ck_assert_int_eq(MPIDI_LITE_win_hook(&win), MPI_SUCCESS);
  }
  on_wait = posts_come;
  ck_assert_int_eq(start_with(0, 2, OTHER, NEIGHBOUR), MPI_SUCCESS);
  ck_assert_int_eq(waits, 2);
  ck_assert_int_eq(started, 1);
  ck_assert_int_eq(started_with, MPI_MODE_NOCHECK); /* it does not wait again */
  /* what came early counts later, once */
  ck_assert_int_eq(start_with(0, 2, OTHER, 2), MPI_SUCCESS);
  ck_assert_int_eq(waits, 0);
  ck_assert_int_eq(start_with(0, 1, 2, 0), MPI_SUCCESS);
  ck_assert_int_eq(waits, 1);
  ck_assert_int_eq(start_with(0, 0, 0, 0), MPI_SUCCESS); /* MPI_GROUP_EMPTY */
  ck_assert_int_eq(waits, 0);
  ck_assert_int_eq(start_with(MPI_MODE_NOCHECK, 1, NEIGHBOUR, 0), MPI_SUCCESS);
  ck_assert_int_eq(waits, 0);
  ck_assert_int_eq(started, 5);
  /* not of the window (MPI_UNDEFINED) */
  ck_assert_int_ne(start_with(0, 2, NEIGHBOUR, -32766), MPI_SUCCESS);
  epoch_error = MPI_ERR_OTHER;
  ck_assert_int_eq(start_with(0, 1, NEIGHBOUR, 0), MPI_ERR_OTHER);
  ck_assert_int_eq(waits, 0);
  ck_assert_int_eq(started, 5);
  ck_assert_int_eq(lock_depth, 0);
  on_wait = NULL;
  end_window();
}
END_TEST

/* Calls that wait for an answer of the host's, which comes when waits == answer_at. */
static int answer_at;
int host_answers_come(void) {
  int mpi_errno = MPI_SUCCESS;
  lock_depth++;
  MPIDIU_PROGRESS_WHILE(waits < answer_at, 0);
fn_exit:
  lock_depth--;
  return mpi_errno;
fn_fail:
  goto fn_exit;
}
enum { WAITING_CALLS = 9, TO_ONE = 2 /* the first ones wait for their target only */ };
static int waiting_call(int which, int rank) {
  waits = 0;
  switch (which) {
    case 0: return MPIDI_LITE_mpi_win_flush(rank, &win, &ranks[rank]);
    case 1: return MPIDI_LITE_mpi_win_flush_local(rank, &win, &ranks[rank]);
    case 2: return MPIDI_LITE_mpi_win_lock(0, rank, 0, &win, &ranks[rank]);
    case 3: return MPIDI_LITE_mpi_win_lock_all(0, &win);
    case 4: return MPIDI_LITE_mpi_win_flush_all(&win);
    case 5: return MPIDI_LITE_mpi_win_flush_local_all(&win);
    case 6: return MPIDI_LITE_mpi_win_wait(&win);
    case 7: return MPIDI_LITE_mpi_win_fence(0, &win);
    default: answers_at_ends = true; return MPIDI_LITE_mpi_win_unlock_all(&win);
  }
}
START_TEST(calls_that_wait_for_a_lost_rank_fail) {
  make_window(memory, kWindow);
  answer_at = 5;
  ck_assert_int_eq(waiting_call(_i, OTHER), MPI_SUCCESS);
  ck_assert_int_eq(waits, 5);
  lost = OTHER;
  ck_assert_int_ne(waiting_call(_i, OTHER), MPI_SUCCESS);
  ck_assert_int_eq(waits, 1);
  ck_assert_int_eq(lock_depth, 0);
  /* of another rank's answer nothing is known, but where that rank is not the only one */
  const int answered = waiting_call(_i, 2);
  ck_assert_int_eq(answered == MPI_SUCCESS, _i < TO_ONE);
  /* whoever does not wait for it goes on */
  lock_depth++;
  ck_assert_int_eq(MPIDI_progress_test_vci(0), MPI_SUCCESS);
  lock_depth--;
  lost = -1;
  answer_at = 0;
  answers_at_ends = false;
  end_window();
}
END_TEST
/* By active messages: the device knows nothing of these requests. */
START_TEST(requests_that_wait_for_a_lost_rank_fail) {
  enum { MANY = 20 };
  MPIR_Request* waiting[MANY];
  make_window(memory, kWindow);
  for (answers = 1; answers <= 2; answers++) {
    for (int i = 0; i < MANY; i++) {
      ck_assert_int_eq(access_at(_i, memory, 1, SMALL_PIECES, i == 1 ? 2 : OTHER, DISP),
                       MPI_SUCCESS);
      waiting[i] = access_request;
    }
    /* one is answered in time */
    lock_depth++;
    for (int part = 0; part < answers; part++) host_request_complete(waiting[0]);
    lock_depth--;
    ck_assert_int_eq(take(waiting[0]).MPI_ERROR, MPI_SUCCESS);
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
    for (int i = 1; i < MANY; i++) ck_assert(!MPIR_Request_is_complete(waiting[i]));
    lost = OTHER;
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
    if (HOST_IS_5) ck_assert_int_eq(made_progress, 1);
    for (int i = 2; i < MANY; i++) ck_assert_int_ne(take(waiting[i]).MPI_ERROR, MPI_SUCCESS);
    /* that of another rank waits on, and is answered */
    ck_assert(!MPIR_Request_is_complete(waiting[1]));
    lock_depth++;
    for (int part = 0; part < answers; part++) host_request_complete(waiting[1]);
    lock_depth--;
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
    ck_assert_int_eq(take(waiting[1]).MPI_ERROR, MPI_SUCCESS);
    ck_assert_int_eq(live_requests, 0);
    lost = -1;
  }
  /* what is complete is not kept longer than its window */
  answers = 1;
  ck_assert_int_eq(access_at(_i, memory, 1, SMALL_PIECES, OTHER, DISP), MPI_SUCCESS);
  lock_depth++;
  host_request_complete(access_request);
  lock_depth--;
  ck_assert_int_eq(take(access_request).MPI_ERROR, MPI_SUCCESS);
  ck_assert_int_eq(live_requests, 1);
  answers = 0;
  end_window();
  ck_assert_int_eq(live_requests, 0);
}
END_TEST
START_TEST(start_fails_where_a_rank_that_has_not_posted_is_lost) {
  make_window(memory, kWindow);
  lost = OTHER;
  ck_assert_int_ne(start_with(0, 1, OTHER, 0), MPI_SUCCESS);
  ck_assert_int_eq(waits, 1);
  ck_assert_int_eq(started, 0);
  ck_assert_int_eq(lock_depth, 0);
  lost = -1;
  end_window();
}
END_TEST

static int end_epoch(int which, int nocheck) {
  locked_target.sync.assert_mode = win.sync.assert_mode = nocheck;
  return which == 0   ? MPIDI_LITE_mpi_win_complete(&win)
         : which == 1 ? MPIDI_LITE_mpi_win_unlock(OTHER, &win, NULL)
                      : MPIDI_LITE_mpi_win_unlock_all(&win);
}
/* The target learns of the end by a message, which a put that has left whole precedes; without a
 * lock there is no message, and a flush sends none either. */
START_TEST(ends_of_epochs_wait_for_what_their_message_may_overtake) {
  const int which = _i / 2;
  for (int nocheck = 0; nocheck <= MPI_MODE_NOCHECK; nocheck += MPI_MODE_NOCHECK) {
    make_window(memory, kWindow);
    code = LITE_PENDING;
    on_wait = last_one_completes;
    waits = 0;
    left_whole = _i % 2;
    ck_assert_int_eq(access_at(HOST_PUT, memory, 8, INTS, OTHER, 0), MPI_SUCCESS);
    ck_assert_int_eq(end_epoch(which, nocheck), MPI_SUCCESS);
    const bool waited = !left_whole || (nocheck != 0 && which != 0);
    ck_assert_int_eq(waits, waited);
    if (HOST_IS_5) lock_depth++;
    ck_assert_int_eq(MPIDI_LITE_rma_target_cmpl_hook(OTHER, &win), MPI_SUCCESS); /* of a flush */
    if (HOST_IS_5) lock_depth--;
    ck_assert_int_eq(waits, 1);
    end_window();
    windows_freed = 0;
  }
}
END_TEST

static int sent_before; /* the message of the epoch's end, in so many waits */
static void notes_the_end(void) { sent_before = waits; }
/* The data of a short get that has left come behind that message. */
START_TEST(ends_of_epochs_wait_for_gets_when_their_message_has_left) {
  for (int in_order = 0; in_order <= 1; in_order++) {
    make_window(memory, kWindow);
    code = LITE_PENDING;
    on_wait = last_one_completes;
    on_end = notes_the_end;
    waits = 0;
    left_whole = false;
    read_in_order = in_order;
    ck_assert_int_eq(access_at(HOST_GET, memory, 8, INTS, OTHER, 0), MPI_SUCCESS);
    ck_assert_int_eq(end_epoch(_i, 0), MPI_SUCCESS);
    ck_assert_int_eq(sent_before, 1 - in_order);
    ck_assert_int_eq(waits, 1);
    ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending, 0);
    ck_assert_int_eq(MPIDI_LITE_WIN(&win).unordered, 0);
    end_window();
    windows_freed = 0;
  }
}
END_TEST
/* It may fail then. */
START_TEST(the_end_of_an_epoch_fails_where_its_get_does) {
  make_window(memory, kWindow);
  code = LITE_PENDING;
  on_wait = last_one_fails;
  read_in_order = true;
  ck_assert_int_eq(access_at(HOST_GET, memory, 8, INTS, OTHER, 0), MPI_SUCCESS);
  ck_assert_int_eq(end_epoch(_i, 0), MPI_ERR_OTHER);
  ck_assert_int_eq(lock_depth, 0);
  on_wait = NULL;
  end_window();
}
END_TEST

static unsigned flags_in(int access, int epoch) {
  win.sync.access_epoch_type = epoch;
  ck_assert_int_eq(access_at(access, memory, 8, INTS, OTHER, 0), MPI_SUCCESS);
  const unsigned flags = last_call()->flags;
  completes(last_call());
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  return flags;
}
static unsigned flags_of_put_in(int epoch) { return flags_in(HOST_PUT, epoch); }
/* Nobody asks for the answers to puts that MPI_Win_complete follows; MPI_Win_unlock asks, but
 * follows as soon. Who flushes between lock and unlock waits for each flush. */
START_TEST(puts_have_company_where_the_end_of_the_epoch_follows) {
  make_window(memory, kWindow);
  code = LITE_PENDING;
  ck_assert_uint_eq(flags_of_put_in(MPIDIG_EPOTYPE_NONE), 0); /* a fence's */
  ck_assert_uint_eq(flags_of_put_in(MPIDIG_EPOTYPE_LOCK_ALL), 0);
  ck_assert_uint_eq(flags_of_put_in(MPIDIG_EPOTYPE_START), LITE_PUT_UNANSWERED | LITE_MORE_FOLLOWS);
  ck_assert_int_eq(MPIDI_LITE_mpi_win_lock(0, OTHER, 0, &win, NULL), MPI_SUCCESS);
  ck_assert_uint_eq(flags_of_put_in(MPIDIG_EPOTYPE_LOCK), LITE_MORE_FOLLOWS);
  ck_assert_uint_eq(flags_in(HOST_GET, MPIDIG_EPOTYPE_LOCK), LITE_MORE_FOLLOWS);
  ck_assert_uint_eq(flags_in(HOST_GET, MPIDIG_EPOTYPE_START), LITE_MORE_FOLLOWS);
  ck_assert_uint_eq(flags_in(HOST_GET, MPIDIG_EPOTYPE_NONE), 0);
  win.sync.lock.count = 1;
  ck_assert_int_eq(MPIDI_LITE_mpi_win_flush(OTHER, &win, NULL), MPI_SUCCESS);
  ck_assert_uint_eq(flags_of_put_in(MPIDIG_EPOTYPE_LOCK), 0);
  ck_assert_int_eq(MPIDI_LITE_mpi_win_lock(0, 2, 0, &win, NULL), MPI_SUCCESS); /* one more */
  ck_assert_uint_eq(flags_of_put_in(MPIDIG_EPOTYPE_LOCK), 0);
  win.sync.lock.count = 0;
  ck_assert_int_eq(MPIDI_LITE_mpi_win_lock(0, OTHER, 0, &win, NULL), MPI_SUCCESS);
  ck_assert_uint_eq(flags_of_put_in(MPIDIG_EPOTYPE_LOCK), 0); /* as the last time */
  ck_assert_int_eq(MPIDI_LITE_mpi_win_lock(0, OTHER, 0, &win, NULL), MPI_SUCCESS);
  ck_assert_uint_eq(flags_of_put_in(MPIDIG_EPOTYPE_LOCK), LITE_MORE_FOLLOWS);
  ck_assert_uint_eq(flags_in(HOST_GET, MPIDIG_EPOTYPE_LOCK), LITE_MORE_FOLLOWS);
  ck_assert_uint_eq(flags_in(HOST_GET, MPIDIG_EPOTYPE_START), LITE_MORE_FOLLOWS);
  ck_assert_uint_eq(flags_in(HOST_GET, MPIDIG_EPOTYPE_NONE), 0);
  end_window();
}
END_TEST

/* ---- accumulates that are not answered ---- */

static void begin_epoch(int type, int assert) {
  make_window(memory, kWindow);
  win.win_id = WINDOW_ID;
  win.sync.access_epoch_type = type;
  locked_target.sync.assert_mode = assert;
  locked_target.remote_acc_cmpl_cnts = 0;
}

/* Of one origin they are done in the order in which they were sent, and before the epoch's end is
 * delivered: so only where a message says that, and the host has none under way that it may put
 * off. */
START_TEST(accumulate_goes_unanswered_where_the_end_of_the_epoch_follows_by_message) {
  static const struct {
    int epoch, assert, rank, of_target, of_window;
    bool flushed, flushes, by_host;
  } cases[] = {
      {.epoch = MPIDIG_EPOTYPE_START, .rank = OTHER},
      {.epoch = MPIDIG_EPOTYPE_LOCK, .rank = OTHER},
      {.epoch = MPIDIG_EPOTYPE_START, .rank = OTHER, .assert = MPI_MODE_NOCHECK},
      {.epoch = MPIDIG_EPOTYPE_LOCK, .rank = OTHER, .assert = MPI_MODE_NOCHECK, .by_host = true},
      {.epoch = MPIDIG_EPOTYPE_LOCK, .rank = OTHER, .flushed = true, .by_host = true},
      {.epoch = MPIDIG_EPOTYPE_LOCK, .rank = OTHER, .flushes = true, .by_host = true},
      {.epoch = MPIDIG_EPOTYPE_LOCK_ALL, .rank = OTHER, .by_host = true},
      {.epoch = MPIDIG_EPOTYPE_NONE, .rank = OTHER, .by_host = true},
      {.epoch = MPIDIG_EPOTYPE_FENCE, .rank = OTHER, .by_host = true}, /* short */
      {.epoch = MPIDIG_EPOTYPE_START, .rank = OTHER, .of_target = 1, .by_host = true},
      {.epoch = MPIDIG_EPOTYPE_START, .rank = OTHER, .of_window = 1, .by_host = true},
      {.epoch = MPIDIG_EPOTYPE_START, .rank = OWN_RANK, .by_host = true},
      {.epoch = MPIDIG_EPOTYPE_START, .rank = NEIGHBOUR, .by_host = true},
      {.epoch = MPIDIG_EPOTYPE_START, .rank = 2, .by_host = true} /* not exposed */
  };
  ck_assert_uint_eq(sizeof cases / sizeof *cases, 14);
  begin_epoch(cases[_i].epoch, cases[_i].assert);
  locked_target.remote_acc_cmpl_cnts = cases[_i].of_target;
  win.remote_acc_cmpl_cnts = cases[_i].of_window;
  MPIDI_LITE_WIN(&win).flushed = cases[_i].flushed;
  MPIDI_LITE_WIN(&win).flushes = cases[_i].flushes;
  code = LITE_OK;
  ck_assert_int_eq(access_at(HOST_ACC, memory, 8, INTS, cases[_i].rank, DISP), MPI_SUCCESS);
  ck_assert_int_eq(by_messages[HOST_ACC], cases[_i].by_host);
  ck_assert_int_eq(calls_count, !cases[_i].by_host);
  if (!cases[_i].by_host) {
    ck_assert(last_call()->data == memory);
    ck_assert_uint_eq(last_call()->bytes, 32);
    ck_assert_int_eq(last_call()->peer, peer_of(OTHER));
  }
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending, 0);
  end_window();
}
END_TEST

START_TEST(accumulate_of_other_types_and_operations_is_the_hosts) {
  MPIDI_av_entry_t* av = &ranks[OTHER];
  begin_epoch(MPIDIG_EPOTYPE_START, 0);
#define ACCUMULATE(origin, count, type, t_count, t_type, op) \
  MPIDI_LITE_mpi_accumulate(origin, count, type, OTHER, DISP, t_count, t_type, op, &win, av, 0)
  ck_assert_int_eq(ACCUMULATE(memory, 8, INTS, 8, INTS, HOST_USERS_OP), MPI_SUCCESS);
  ck_assert_int_eq(ACCUMULATE(memory, 8, INTS, 8, INTS, MPI_NO_OP), MPI_SUCCESS);
  ck_assert_int_eq(ACCUMULATE(memory, 0, INTS, 0, INTS, MPI_SUM), MPI_SUCCESS);
  ck_assert_int_eq(ACCUMULATE(memory, 8, INTS, 4, INTS, MPI_SUM), MPI_SUCCESS);
  ck_assert_int_eq(ACCUMULATE(memory, 8, INTS, 32, BYTES, MPI_SUM), MPI_SUCCESS);
  ck_assert_int_eq(ACCUMULATE(memory, 1, SHIFTED, 1, SHIFTED, MPI_SUM), MPI_SUCCESS);
  ck_assert_int_eq(ACCUMULATE(gpu, 8, INTS, 8, INTS, MPI_SUM), MPI_SUCCESS);
#undef ACCUMULATE
  ck_assert_int_eq(by_messages[HOST_ACC], 7);
  ck_assert_int_eq(calls_count, 0);
  end_window();
}
END_TEST

START_TEST(accumulate_whose_data_has_not_left_is_waited_for) {
  begin_epoch(MPIDIG_EPOTYPE_START, 0);
  code = LITE_PENDING;
  on_wait = last_one_completes;
  ck_assert_int_eq(access_at(HOST_ACC, memory, 8, INTS, OTHER, DISP), MPI_SUCCESS);
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending_local, 1);
  ck_assert_int_eq(end_epoch(0, 0), MPI_SUCCESS);
  ck_assert_int_eq(waits, 1);
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending + MPIDI_LITE_WIN(&win).pending_local, 0);
  end_window();
}
END_TEST

START_TEST(accumulate_that_the_device_refuses_or_that_is_outside_is_an_error) {
  begin_epoch(MPIDIG_EPOTYPE_START, 0);
  ck_assert_int_eq(access_at(HOST_ACC, memory, 8, INTS, OTHER, kWindow / 4 - 7),
                   HOST_TEXT | MPI_ERR_RMA_RANGE);
  ck_assert_int_eq(calls_count, 0);
  code = LITE_ERR_PEER_LOST;
  ck_assert_int_eq(access_at(HOST_ACC, memory, 8, INTS, OTHER, 0), MPI_ERR_OTHER);
  ck_assert_int_eq(MPIDI_LITE_WIN(&win).pending + by_messages[HOST_ACC], 0);
  ck_assert_int_eq(lock_depth, 0);
  end_window();
}
END_TEST

/* A flush is answered, once; behind an unlock there is nothing to ask for. */
START_TEST(flush_asks_behind_accumulates_that_are_not_answered) {
  begin_epoch(MPIDIG_EPOTYPE_LOCK, 0);
  code = LITE_OK;
  ck_assert_int_eq(access_at(HOST_ACC, memory, 8, INTS, OTHER, 0), MPI_SUCCESS);
  ck_assert_int_eq(by_messages[HOST_FETCH], 0);
  for (int again = 0; again < 2; again++) {
    ck_assert_int_eq(
        _i == 0 ? MPIDI_LITE_mpi_win_flush(OTHER, &win, NULL) : MPIDI_LITE_mpi_win_flush_all(&win),
        MPI_SUCCESS);
    ck_assert_int_eq(by_messages[HOST_FETCH], 1);
  }
  MPIDI_LITE_WIN(&win).flushed = false;
  ck_assert_int_eq(access_at(HOST_ACC, memory, 8, INTS, OTHER, 0), MPI_SUCCESS);
  ck_assert_int_eq(end_epoch(1, 0), MPI_SUCCESS);
  ck_assert_int_eq(MPIDI_LITE_mpi_win_flush(OTHER, &win, NULL), MPI_SUCCESS);
  win.sync.access_epoch_type = MPIDIG_EPOTYPE_START;
  ck_assert_int_eq(access_at(HOST_ACC, memory, 8, INTS, OTHER, 0), MPI_SUCCESS);
  ck_assert_int_eq(MPIDI_LITE_mpi_win_flush(OTHER, &win, NULL), MPI_SUCCESS);
  ck_assert_int_eq(by_messages[HOST_FETCH], 1);
  end_window();
}
END_TEST

/* The host's target copies them once more. */
START_TEST(fence_asks_behind_long_accumulates_that_are_not_answered) {
  enum { COUNT = 64 * 1024 };
  make_window(memory, kWindow);
  MPIDI_LITE_WIN(&win).targets[OTHER].bytes = COUNT * sizeof(int);
  win.sync.access_epoch_type = _i == 0 ? MPIDIG_EPOTYPE_FENCE : MPIDIG_EPOTYPE_REFENCE;
  code = LITE_OK;
  ck_assert_int_eq(access_at(HOST_ACC, memory, COUNT - 1, INTS, OTHER, 0), MPI_SUCCESS);
  ck_assert_int_eq(by_messages[HOST_ACC], 1);
  ck_assert_int_eq(access_at(HOST_ACC, memory, COUNT, INTS, OTHER, 0), MPI_SUCCESS);
  ck_assert_int_eq(by_messages[HOST_ACC], 1);
  ck_assert_int_eq(by_messages[HOST_FETCH], 0);
  for (int again = 0; again < 2; again++) {
    ck_assert_int_eq(MPIDI_LITE_mpi_win_fence(0, &win), MPI_SUCCESS);
    ck_assert_int_eq(by_messages[HOST_FETCH], 1);
  }
  end_window();
}
END_TEST

START_TEST(flush_does_not_rely_on_what_another_thread_has_yet_to_ask_for) {
  begin_epoch(MPIDIG_EPOTYPE_LOCK, 0);
  code = LITE_OK;
  ck_assert_int_eq(access_at(HOST_ACC, memory, 8, INTS, OTHER, 0), MPI_SUCCESS);
  another_flushes = true;
  ck_assert_int_eq(MPIDI_LITE_mpi_win_flush(OTHER, &win, NULL), MPI_SUCCESS);
  ck_assert(!another_flushes);
  ck_assert_int_eq(by_messages[HOST_FETCH], 2);
  ck_assert_int_eq(MPIDI_LITE_mpi_win_flush(OTHER, &win, NULL), MPI_SUCCESS);
  ck_assert_int_eq(by_messages[HOST_FETCH], 2);
  end_window();
}
END_TEST

static void deliver_accumulate(size_t data_bytes) {
  MPIDI_LITE_am_deliver(peer_of(OTHER), MPIDI_LITE_AM_ACCUMULATE, sent_header, sent_header_bytes,
                        memory + 4096, data_bytes, NULL);
}
START_TEST(accumulate_is_done_when_it_is_delivered) {
  begin_epoch(MPIDIG_EPOTYPE_START, 0);
  win.dev.winattr = _i == 0 ? 0 : MPIDI_WINATTR_SHM_ALLOCATED;
  code = LITE_OK;
  memset(&accumulated, 0, sizeof accumulated);
  ck_assert_int_eq(access_at(HOST_ACC, memory, 8, INTS, OTHER, DISP), MPI_SUCCESS);
  deliver_accumulate(32);
  ck_assert_int_eq(accumulated.times, 1);
  ck_assert(accumulated.source == memory + 4096);
  ck_assert(accumulated.target == memory + DISP * DISP_UNIT);
  ck_assert(accumulated.count == 8 && accumulated.type == INTS && accumulated.op == MPI_SUM);
  ck_assert_int_eq(accumulated.locked, _i == 1); /* ranks of this node share the memory */
  ck_assert(!memory_is_locked);
  end_window();
}
END_TEST

/* Of another job. What a rank may send goes; the same as another rank, in part, or changed does
 * not. */
START_TEST(accumulate_of_a_stranger_is_looked_at) {
  begin_epoch(MPIDIG_EPOTYPE_START, 0);
  code = LITE_OK;
  ck_assert_int_eq(access_at(HOST_ACC, memory, 8, INTS, OTHER, DISP), MPI_SUCCESS);
  const int self = peer_of(comm.rank); /* as which it is said to come */
  const uint32_t number = MPIDI_LITE_AM_ACCUMULATE;
  ck_assert_int_eq(MPIDI_LITE_am_check(self, number, sent_header, sent_header_bytes, 32),
                   LITE_MEMBER);
  ck_assert_int_eq(MPIDI_LITE_am_check(peer_of(2), number, sent_header, sent_header_bytes, 32),
                   LITE_NOT_A_MEMBER);
  ck_assert_int_eq(MPIDI_LITE_am_check(self, number, sent_header, sent_header_bytes - 1, 32),
                   LITE_NOT_A_MEMBER);
  ck_assert_int_eq(MPIDI_LITE_am_check(self, number, sent_header, sent_header_bytes, 36),
                   LITE_NOT_A_MEMBER);
  ck_assert_int_eq(MPIDI_LITE_am_check(self, number, sent_header, sent_header_bytes, 33),
                   LITE_NOT_A_MEMBER);
  for (size_t i = 0; i < 3 * sizeof(uint64_t); i += sizeof(uint64_t)) { /* window, place, count */
    char changed[sizeof sent_header];
    memcpy(changed, sent_header, sent_header_bytes);
    memset(changed + i, 0xff, sizeof(uint64_t));
    ck_assert_int_eq(MPIDI_LITE_am_check(self, number, changed, sent_header_bytes, 32),
                     LITE_NOT_A_MEMBER);
  }
  win.size = DISP * DISP_UNIT + 31; /* too small by a byte */
  ck_assert_int_eq(MPIDI_LITE_am_check(self, number, sent_header, sent_header_bytes, 32),
                   LITE_NOT_A_MEMBER);
  win.size = kWindow;
  end_window();
}
END_TEST

/* The host adds what is asserted to what was before. */
START_TEST(lock_asserts_what_it_says_and_not_what_an_earlier_one_said) {
  make_window(memory, kWindow);
  locked_target.sync.assert_mode = MPI_MODE_NOCHECK;
  ck_assert_int_eq(MPIDI_LITE_mpi_win_lock(0, OTHER, 0, &win, NULL), MPI_SUCCESS);
  ck_assert_int_eq(locked_target.sync.assert_mode, 0);
  end_window();
}
END_TEST

/* One poll of theirs would send what waits to leave with the message. */
START_TEST(ends_of_epochs_pass_a_poll_where_puts_wait_for_their_message) {
  make_window(memory, kWindow);
  polls_at_ends = 2;
  for (int nocheck = 0; nocheck <= MPI_MODE_NOCHECK; nocheck += MPI_MODE_NOCHECK)
    for (int waiting = 0; waiting < 2; waiting++) {
      lite_hot.gathered = waiting ? LITE_GATHERED_GUARDED : LITE_GATHERED_NONE;
      const int before = device_polls;
      ck_assert_int_eq(end_epoch(_i, nocheck), MPI_SUCCESS);
      const bool passes = waiting && (nocheck == 0 || _i == 0);
      ck_assert_int_eq(device_polls - before, passes ? 1 : 2);
      ck_assert_int_eq(poll_once(), MPI_SUCCESS);
      ck_assert_int_eq(device_polls - before, passes ? 2 : 3);
    }
  lite_hot.gathered = LITE_GATHERED_NONE;
  polls_at_ends = 0;
  end_window();
}
END_TEST

START_TEST(window_that_is_not_made_is_not_exposed_any_more) {
  win = (MPIR_Win){.comm_ptr = &comm, .base = memory, .size = kWindow, .disp_unit = DISP_UNIT};
  allgather_error = MPI_ERR_OTHER;
  ck_assert_int_eq(MPIDI_LITE_win_expose_hook(&win), MPI_ERR_OTHER);
  ck_assert_int_eq(exposures, 1);
  ck_assert_uint_eq(exposed_key, 0);
  ck_assert_uint_eq(live_blocks, 0);
  /* whether the host frees it or not */
  ck_assert_int_eq(MPIDI_LITE_win_free_hook(&win), MPI_SUCCESS);
}
END_TEST

/* What a peer has got of it is acknowledged by another way than that of the barrier. */
START_TEST(window_is_not_withdrawn_while_it_is_accessed) {
  make_window(memory, kWindow);
  accessed = 3;
  const int before = device_polls;
  end_window();
  ck_assert_int_eq(accessed, 0);
  ck_assert_int_ge(device_polls - before, 3);
}
END_TEST

/* A window may bring active messages as long as it lives, if a thread of the device's handles them.
 */
START_TEST(window_expects_messages_while_it_lives) {
  make_window(memory, kWindow);
  ck_assert_int_eq(expected, 0);
  end_window();
  windows_freed = 0;
  host_work_kind = LITE_HOST_WORK_ON_DEMAND;
  make_window(memory, kWindow);
  ck_assert_int_eq(expected, 1);
  end_window();
  ck_assert_int_eq(expected, 0);
  win = (MPIR_Win){.comm_ptr = &comm}; /* a dynamic one */
  ck_assert_int_eq(MPIDI_LITE_win_hook(&win), MPI_SUCCESS);
  ck_assert_int_eq(expected, 1);
  ck_assert_int_eq(MPIDI_LITE_win_free_hook(&win), MPI_SUCCESS);
  ck_assert_int_eq(expected, 0);
  allgather_error = MPI_ERR_OTHER; /* one that is not made */
  win = (MPIR_Win){.comm_ptr = &comm, .base = memory, .size = kWindow, .disp_unit = DISP_UNIT};
  ck_assert_int_eq(MPIDI_LITE_win_expose_hook(&win), MPI_ERR_OTHER);
  ck_assert_int_eq(expected, 0);
  host_work_kind = LITE_HOST_WORK_NEVER;
}
END_TEST

/* ---- any-source receives beside shared memory ---- */

/* Contiguous in the host's memory, a copy, and in a GPU's. */
static const MPI_Datatype kAnyType[] = {BYTES, SMALL_PIECES, INTS};
static MPIR_Request* any_source(int i) {
  message_bytes = size_of(kAnyType[i]);
  return receive_from_any(i == 2 ? gpu : memory, count_of(kAnyType[i]), kAnyType[i]);
}
static void check_any_received(int i, MPIR_Request* shared) {
  const MPI_Status status = take(shared);
  ck_assert_int_eq(status.MPI_ERROR, MPI_SUCCESS);
  ck_assert_int_eq(status.cancelled, FALSE);
  ck_assert_int_eq(status.MPI_SOURCE, SOURCE);
  ck_assert_int_eq(status.MPI_TAG, TAG);
  ck_assert_int_eq(status.count, message_bytes);
  check_received(i == 2 ? gpu : memory, kAnyType[i], message_bytes);
  ck_assert_int_eq(live_requests, 0);
}

START_TEST(receive_that_was_matched_here_completes_the_one_in_shared_memory) {
  code = LITE_PENDING;
  MPIR_Request* shared = any_source(_i);
  ck_assert_int_eq(last_call()->peer, -1);
  ck_assert_int_eq(last_call()->envelope.source, LITE_ANY_SOURCE);
  completes(last_call());
  ck_assert(!MPIR_Request_is_complete(shared));
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  if (HOST_IS_5) ck_assert_int_eq(made_progress, 1);
  ck_assert(!shared->dev.ch4.am.posted);
  check_any_received(_i, shared);
}
END_TEST

START_TEST(receive_that_found_its_message_when_posted_is_completed_by_the_next_progress) {
  lite_hot.skip = 20;
  lite_hot.polls_since_exit = 1;
  MPIR_Request* shared = any_source(_i);
  ck_assert(!MPIR_Request_is_complete(shared));
  ck_assert(shared->dev.ch4.am.posted);
  ck_assert_int_eq(poll_once(), MPI_SUCCESS); /* none is skipped */
  ck_assert_int_eq(device_polls, 0);
  ck_assert(!shared->dev.ch4.am.posted);
  check_any_received(_i, shared);
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert_int_eq(device_polls, 1);
}
END_TEST

START_TEST(receives_that_found_their_messages_when_posted_are_all_completed) {
  MPIR_Request* shared[3];
  for (int i = 0; i < 3; i++) {
    shared[i] = any_source(0);
    check_received(memory, BYTES, message_bytes);
  }
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  for (int i = 0; i < 3; i++) ck_assert_int_eq(take(shared[i]).count, message_bytes);
}
END_TEST

START_TEST(receive_that_fails_fails_in_shared_memory) {
  code = LITE_PENDING;
  MPIR_Request* shared = any_source(_i);
  fails(last_call(), LITE_ERR_PEER_LOST);
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert_int_eq(take(shared).MPI_ERROR, MPI_ERR_OTHER);
}
END_TEST

START_TEST(cancelling_a_receive_that_is_not_matched_withdraws_both) {
  code = LITE_PENDING;
  MPIR_Request* shared = any_source(_i);
  cancel_any_source(shared);
  ck_assert_int_eq(cancelled_in_device, 1);
  ck_assert_int_eq(live_requests, 1);
  ck_assert_uint_eq(live_blocks, 0);
  ck_assert_int_eq(types[kAnyType[_i]].refs, 1);
  const MPI_Status status = take(shared);
  ck_assert_int_eq(status.cancelled, TRUE);
  ck_assert_int_eq(status.count, 0);
  check_received(memory, BYTES, 0);
}
END_TEST

/* MPI_Cancel after the match here: before the device says that the data is there, after that, and
 * when it was there with the call. */
START_TEST(cancelling_a_receive_that_was_matched_here_does_nothing) {
  const int when = _i / 3;
  code = when == 2 ? LITE_OK : LITE_PENDING;
  MPIR_Request* shared = any_source(_i % 3);
  is_matched = true;
  if (when == 1) {
    last_call()->pending = true;
    completes(last_call());
    last_call()->pending = true; /* for lite_cancel_recv: completed, not yet taken */
  }
  cancel_any_source(shared);
  ck_assert(!MPIR_Request_is_complete(shared));
  ck_assert(!shared->dev.ch4.am.posted);
  ck_assert_int_eq(cancelled_in_device, 0);
  if (when == 0) completes(last_call());
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  check_any_received(_i % 3, shared);
}
END_TEST

/* match_posted_rreq: shared memory has taken ours out of its queue for a message there. */
static int shared_memory_asks(MPIR_Request* shared) {
  int may;
  shared->dev.ch4.am.posted = false;
  lock_depth++;
  ck_assert_int_eq(MPIDI_anysrc_try_cancel_partner(shared, &may), MPI_SUCCESS);
  lock_depth--;
  return may;
}
START_TEST(shared_memory_gets_the_receive_when_it_is_not_matched_here) {
  code = LITE_PENDING;
  MPIR_Request* shared = any_source(_i);
  ck_assert_int_eq(shared_memory_asks(shared), 1);
  ck_assert_int_eq(cancelled_in_device, 1);
  ck_assert_int_eq(live_requests, 1);
  ck_assert_uint_eq(live_blocks, 0);
  ck_assert(!MPIR_Request_is_complete(shared));
  ck_assert_int_eq(shared->status.cancelled, FALSE);
  lock_depth++;
  host_request_complete(shared); /* it does its part */
  lock_depth--;
  take(shared);
}
END_TEST

START_TEST(shared_memory_does_not_get_a_receive_that_was_matched_here) {
  const bool with_the_call = _i / 3;
  code = with_the_call ? LITE_OK : LITE_PENDING;
  MPIR_Request* shared = any_source(_i % 3);
  is_matched = true;
  ck_assert_int_eq(shared_memory_asks(shared), 0);
  ck_assert(!MPIR_Request_is_complete(shared));
  if (!with_the_call) completes(last_call());
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  check_any_received(_i % 3, shared);
}
END_TEST

/* A receive from one source has no partner. */
START_TEST(cancelling_a_receive_from_one_source) {
  MPIR_Request* req;
  code = LITE_PENDING;
  message_bytes = size_of(LARGE_PIECES);
  is_matched = _i;
  ck_assert_int_eq(start_receive(memory, count_of(LARGE_PIECES), LARGE_PIECES, &req), MPI_SUCCESS);
  lock_depth++;
  ck_assert_int_eq(cancel_here(req), MPI_SUCCESS);
  lock_depth--;
  ck_assert_int_eq(MPIR_Request_is_complete(req), !is_matched);
  if (is_matched) {
    completes(last_call());
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  }
  lock_depth++;
  ck_assert_int_eq(cancel_here(req), MPI_SUCCESS); /* of a complete one: nothing */
  lock_depth--;
  const MPI_Status status = take(req);
  ck_assert_int_eq(status.cancelled, !is_matched);
  ck_assert_int_eq(status.count, is_matched ? message_bytes : 0);
}
END_TEST

/* ---- progress ---- */

START_TEST(progress_without_a_device_does_nothing) {
  have_device = false;
  for (int i = 0; i < 3; i++) {
    lite_call.kinds = i == 1 ? LITE_MAY_NOT_BLOCK : LITE_MAY_BLOCK;
    ck_assert_int_eq(poll_once(), MPI_SUCCESS);
    ck_assert_int_eq(made_progress, 0);
  }
  ck_assert_int_eq(calls_count, 0);
}
END_TEST

START_TEST(every_new_device_is_told_of_shared_memory) {
  for (int device = 1; device <= 2; device++) {
    MPIDI_LITE_forget_shared_memory();
    for (int i = 0; i < 3; i++) ck_assert_int_eq(poll_once(), MPI_SUCCESS);
    ck_assert_int_eq(told_shared_memory, device);
  }
  MPIR_Process.local_size = 1; /* and when there is none any more */
  for (int i = 0; i < 3; i++) ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert_int_eq(told_shared_memory, 3);
}
END_TEST

START_TEST(poll_that_would_find_nothing_is_skipped_but_for_the_first_of_a_test) {
  lite_hot.skip = 2;
  lite_hot.polls_since_exit = 1;
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert_int_eq(device_polls, 0);
  lite_call.kinds = LITE_MAY_NOT_BLOCK;
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert_int_eq(device_polls, 1);
  lite_call.idle_polls = 1;
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert_int_eq(device_polls, 1);
  ck_assert_int_eq(lite_hot.skip, 0);
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert_int_eq(device_polls, 2);
}
END_TEST

START_TEST(everything_that_is_complete_is_completed_by_one_progress) {
  MPIR_Request *sends[3], *receive;
  code = at_once = LITE_PENDING;
  for (int i = 0; i < 3; i++) {
    sends[i] = NULL;
    ck_assert_int_eq(start_send(memory, 8, BYTES, false, &sends[i]), MPI_SUCCESS);
    completes(last_call());
  }
  message_bytes = 8;
  ck_assert_int_eq(start_receive(memory, 8, BYTES, &receive), MPI_SUCCESS);
  completes(last_call());
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  for (int i = 0; i < 3; i++) take(sends[i]);
  take(receive);
}
END_TEST

START_TEST(error_of_progress_is_the_calls) {
  last_error = "the engine has ended";
  done_count = LITE_ERR_SYSTEM; /* lite_progress says so */
  ck_assert_int_eq(poll_once(), MPI_ERR_OTHER);
  ck_assert_str_eq(error_text, "ch_lite: the engine has ended");
  done_count = 0;
}
END_TEST

/* ---- what fails ---- */

static const struct {
  int code, class_;
  const char* text;
} kErrors[] = {{LITE_ERR_PEER_LOST, MPI_ERR_OTHER, "**comm_fail 11 it cannot be done"},
               {LITE_ERR_NOMEM, MPI_ERR_NO_MEM, "ch_lite: it cannot be done"},
               {LITE_ERR_SYSTEM, MPI_ERR_OTHER, "ch_lite: it cannot be done"},
               {LITE_ERR_ARG, MPI_ERR_OTHER, "ch_lite: it cannot be done"}};
enum { ERRORS = sizeof kErrors / sizeof *kErrors };

/* As it is, by a copy, in pieces, from a GPU; at once or later in the device. */
START_TEST(send_that_the_device_refuses_is_an_error_of_the_call) {
  const int error = _i % ERRORS, how = _i / ERRORS;
  static const MPI_Datatype kinds[] = {BYTES, SMALL_PIECES, LARGE_PIECES, BYTES, BYTES};
  char* const buf = how == 3 ? gpu : memory;
  MPIR_Request* req = NULL;
  at_once = how == 4 ? LITE_PENDING : kErrors[error].code;
  code = kErrors[error].code;
  ck_assert_int_eq(start_send(buf, 4, kinds[how], false, &req), kErrors[error].class_);
  ck_assert(req == NULL);
  ck_assert_int_eq(calls_count, how == 4 ? 2 : 1);
  ck_assert_str_eq(error_text, kErrors[error].text);
  ck_assert_uint_eq(live_blocks, 0);
  /* one of the host's own stays its own */
  req = MPIR_Request_create_from_pool(MPIR_REQUEST_KIND__SEND, 0, 1);
  MPIR_Request* const brought = req;
  ck_assert_int_eq(start_send(buf, 4, kinds[how], true, &req), kErrors[error].class_);
  ck_assert(req == brought && req->ref_count == 1);
  host_request_free(req);
}
END_TEST

START_TEST(send_that_fails_later_is_an_error_of_its_request) {
  MPIR_Request* req = NULL;
  code = at_once = LITE_PENDING;
  ck_assert_int_eq(start_send(_i ? gpu : memory, 64, BYTES, false, &req), MPI_SUCCESS);
  fails(last_call(), LITE_ERR_PEER_LOST);
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert(req->comm == &comm);
  ck_assert_int_eq(take(req).MPI_ERROR, MPI_ERR_OTHER);
}
END_TEST

/* MPI_Irecv takes the handle of the request before it looks at the error. */
START_TEST(receive_that_the_device_refuses_is_an_error_where_the_user_waits) {
  static const MPI_Datatype kinds[] = {BYTES, SMALL_PIECES, LARGE_PIECES, BYTES};
  const int how = _i / 2;
  char* const buf = how == 3 ? gpu : memory;
  MPIR_Request* req;
  code = _i % 2 ? LITE_ERR_NOMEM : LITE_ERR_PEER_LOST;
  ck_assert_int_eq(start_receive(buf, 8, kinds[how], &req), MPI_SUCCESS);
  ck_assert(req->comm == &comm);
  const MPI_Status status = take(req);
  ck_assert_int_eq(status.MPI_ERROR, _i % 2 ? MPI_ERR_NO_MEM : MPI_ERR_OTHER);
  ck_assert_str_eq(error_text,
                   _i % 2 ? "ch_lite: it cannot be done" : "**comm_fail 12 it cannot be done");
  ck_assert_int_eq(status.MPI_SOURCE, SOURCE);
  ck_assert_int_eq(status.count, 0);
  ck_assert_int_eq(unpacks, 0);
  check_received(buf, kinds[how], 0);
}
END_TEST

START_TEST(any_source_receive_that_the_device_refuses_is_an_error_where_the_user_waits) {
  code = LITE_ERR_NOMEM;
  MPIR_Request* shared = any_source(_i);
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  const MPI_Status status = take(shared);
  ck_assert_int_eq(status.MPI_ERROR, MPI_ERR_NO_MEM);
  ck_assert_int_eq(status.MPI_SOURCE, MPI_PROC_NULL);
}
END_TEST

START_TEST(matched_receive_that_the_device_refuses_is_an_error_where_the_user_waits) {
  static const MPI_Datatype kinds[] = {BYTES, SMALL_PIECES, LARGE_PIECES, BYTES};
  MPIR_Request* req = probe_matched();
  code = LITE_ERR_PEER_LOST;
  ck_assert_int_eq(receive_matched(_i == 3 ? gpu : memory, 8, kinds[_i], req), MPI_SUCCESS);
  const MPI_Status status = take(req);
  ck_assert_int_eq(status.MPI_ERROR, MPI_ERR_OTHER);
  ck_assert_str_eq(error_text, "ch_lite: it cannot be done");
  ck_assert_int_eq(status.MPI_SOURCE, SOURCE);
  ck_assert_int_eq(status.MPI_TAG, TAG);
  ck_assert_int_eq(status.count, 0);
}
END_TEST

START_TEST(active_message_that_the_device_refuses_is_an_error_of_the_call) {
  MPIR_Request sreq = {.ref_count = 1};
  code = kErrors[_i].code;
  ck_assert_int_eq(send_am(gpu, 64, BYTES, &sreq), kErrors[_i].class_);
  ck_assert_int_eq(send_am(memory, 64, BYTES, &sreq), kErrors[_i].class_);
  ck_assert_str_eq(error_text, kErrors[_i].text);
  ck_assert_int_eq(origin_calls, 0);
}
END_TEST

START_TEST(without_memory_for_the_copy_a_send_is_an_error_of_the_call) {
  MPIR_Request* req = NULL;
  blocks_left = 0;
  ck_assert_int_eq(start_send(gpu, 64, BYTES, _i, &req), kNoMemory);
  ck_assert_int_eq(start_send(memory, 1, SMALL_PIECES, _i, &req), kNoMemory);
  ck_assert_int_eq(start_send(memory, 1, LARGE_PIECES, _i, &req), kNoMemory);
  ck_assert(req == NULL);
  ck_assert_int_eq(calls_count + packs, 0);
}
END_TEST

START_TEST(error_of_packing_is_an_error_of_the_call) {
  MPIR_Request* req = NULL;
  typerep_error = MPI_ERR_TYPE;
  ck_assert_int_eq(start_send(gpu, 64, BYTES, false, &req), MPI_ERR_TYPE);
  ck_assert(req == NULL);
  ck_assert_int_eq(send_am(gpu, 64, BYTES, NULL), MPI_ERR_TYPE);
  ck_assert_int_eq(calls_count, 0);
}
END_TEST

/* MPI_Irecv would follow a null pointer. */
START_TEST(without_memory_for_the_copy_a_receive_is_an_error_where_the_user_waits) {
  static const MPI_Datatype kinds[] = {BYTES, SMALL_PIECES, LARGE_PIECES};
  char* const buf = _i == 0 ? gpu : memory;
  MPIR_Request* req;
  blocks_left = 0;
  ck_assert_int_eq(start_receive(buf, 8, kinds[_i], &req), MPI_SUCCESS);
  ck_assert(req != NULL);
  ck_assert_int_eq(calls_count, 0);
  ck_assert(req->comm == &comm);
  const MPI_Status status = take(req);
  ck_assert_int_eq(status.MPI_ERROR, kNoMemory);
  ck_assert_int_eq(status.MPI_SOURCE, SOURCE);
  ck_assert_int_eq(status.MPI_TAG, TAG);
  ck_assert_int_eq(status.count, 0);
  check_received(buf, kinds[_i], 0);
}
END_TEST

START_TEST(without_memory_for_the_copy_an_any_source_receive_is_an_error_where_the_user_waits) {
  blocks_left = 0;
  MPIR_Request* shared = any_source(1 + _i);
  ck_assert_int_eq(poll_once(), MPI_SUCCESS);
  ck_assert(!shared->dev.ch4.am.posted);
  ck_assert_int_eq(take(shared).MPI_ERROR, kNoMemory);
  ck_assert_int_eq(calls_count, 0);
}
END_TEST

START_TEST(without_memory_for_the_copy_a_matched_message_can_be_received_again) {
  static const MPI_Datatype kinds[] = {BYTES, SMALL_PIECES, LARGE_PIECES};
  char* const buf = _i == 0 ? gpu : memory;
  MPIR_Request* message = probe_matched();
  message_bytes = (size_t)(8 * host_type_size(kinds[_i]));
  blocks_left = 0;
  ck_assert_int_eq(receive_matched(buf, 8, kinds[_i], message), kNoMemory);
  ck_assert_int_eq(calls_count, 0);
  blocks_left = -1;
  ck_assert_int_eq(receive_matched(buf, 8, kinds[_i], message), MPI_SUCCESS);
  ck_assert(last_call()->message == (lite_message*)&a_message);
  const MPI_Status status = take(message);
  ck_assert_int_eq(status.MPI_ERROR, MPI_SUCCESS);
  check_received(buf, kinds[_i], message_bytes);
}
END_TEST

START_TEST(without_memory_in_the_device_a_matched_message_can_be_received_again) {
  static const MPI_Datatype kinds[] = {BYTES, SMALL_PIECES, LARGE_PIECES};
  MPIR_Request* message = probe_matched();
  message_bytes = (size_t)(8 * host_type_size(kinds[_i]));
  code = LITE_ERR_NOMEM;
  ck_assert_int_ne(receive_matched(memory, 8, kinds[_i], message), MPI_SUCCESS);
  code = LITE_OK;
  ck_assert_int_eq(receive_matched(memory, 8, kinds[_i], message), MPI_SUCCESS);
  ck_assert(last_call()->message == (lite_message*)&a_message);
  ck_assert_int_eq(take(message).MPI_ERROR, MPI_SUCCESS);
  check_received(memory, kinds[_i], message_bytes);
}
END_TEST

/* Of what it is about, and of the copy. */
START_TEST(without_memory_an_active_message_is_an_error_of_the_call) {
  blocks_left = _i;
  ck_assert_int_eq(send_am(gpu, 64, BYTES, NULL), kNoMemory);
  blocks_left = _i;
  ck_assert_int_eq(send_am(memory, 1, SMALL_PIECES, NULL), kNoMemory);
  ck_assert_int_eq(calls_count, 0);
}
END_TEST

START_TEST(without_a_request_there_is_an_error_and_nothing_is_left) {
  MPIR_Request* req = NULL;
  no_requests = true;
  code = LITE_PENDING;
  ck_assert_int_eq(start_send(gpu, 64, BYTES, false, &req), MPIX_ERR_NOREQ);
  ck_assert_int_eq(start_send(memory, 1, LARGE_PIECES, false, &req), MPIX_ERR_NOREQ);
  ck_assert_int_eq(start_receive(gpu, 64, BYTES, &req), MPIX_ERR_NOREQ);
  ck_assert(req == NULL);
  ck_assert_int_eq(calls_count, 0);
}
END_TEST

int main(void) {
  Suite* suite = suite_create(HOST_IS_5 ? "pt2pt_glue5" : "pt2pt_glue");
  TCase* tests = tcase_create("pt2pt_glue");
  enum { CONTIGUOUS_SENDS = 8 * SHIFTED, CONTIGUOUS_RECEIVES = 16 * SHIFTED };
  tcase_add_checked_fixture(tests, set_up, tear_down);
#define ADD(test) tcase_add_test(tests, test)
#define ADD_LOOP(test, count) tcase_add_loop_test(tests, test, 0, count)
  ADD_LOOP(what_is_sent_from_a_gpu_is_a_copy_of_the_hosts, SENDS);
  ADD_LOOP(contiguous_data_is_sent_from_where_it_is, CONTIGUOUS_SENDS);
  ADD_LOOP(small_pieces_are_sent_packed, 8);
  ADD_LOOP(large_pieces_are_sent_from_where_they_are, 8);
  ADD_LOOP(pieces_beside_each_other_are_sent_as_one, 8);
  ADD_LOOP(first_byte_of_the_data_decides_whether_it_is_in_a_gpu, 2);
  ADD(first_byte_of_the_room_decides_whether_it_is_in_a_gpu);
  ADD(nothing_is_copied_for_a_message_without_bytes);
  ADD_LOOP(what_is_received_in_a_gpu_comes_by_a_copy_of_the_hosts, RECEIVES);
  ADD_LOOP(contiguous_data_is_received_where_it_belongs, CONTIGUOUS_RECEIVES);
  ADD_LOOP(small_pieces_are_unpacked, 16);
  ADD_LOOP(large_pieces_are_received_where_they_belong, 16);
  ADD_LOOP(pieces_beside_each_other_are_received_as_one, 16);
  ADD_LOOP(message_that_ends_inside_an_element_is_an_error, 8);
  ADD(elements_of_several_sizes_are_not_looked_at);
  ADD(pair_of_one_size_is_two_elements);
  ADD(struct_of_several_types_of_one_size_is_no_pair);
  ADD(error_of_unpacking_is_the_receives);
  ADD_LOOP(receive_that_fails_leaves_the_memory_alone, 5);
  ADD_LOOP(message_that_is_lost_in_the_middle_of_an_element_is_lost, 2);
  ADD_LOOP(list_that_does_not_hold_every_byte_is_not_used, 2);
  ADD(list_that_would_be_too_long_is_not_made);
  ADD_LOOP(list_that_the_host_cannot_make_is_not_used, 2);
  ADD(without_memory_for_a_list_the_data_is_packed);
  ADD(small_message_is_packed_without_a_look_at_its_pieces);
  ADD_LOOP(active_message_from_a_gpu_is_a_copy_of_the_hosts, 4 * (TYPES - 1));
  ADD(active_message_that_fails_fails_the_call_that_polls);
  ADD_LOOP(access_with_an_origin_in_a_gpu_goes_by_active_messages, 4);
  ADD(window_in_a_gpu_is_not_exposed);
  ADD(window_in_the_hosts_memory_is_exposed_until_it_is_freed);
  ADD_LOOP(other_access_goes_by_active_messages, 4);
  ADD_LOOP(window_that_nobody_elsewhere_has_is_not_exposed, 2);
  ADD_LOOP(access_with_an_origin_in_the_hosts_memory_goes_straight_to_the_window, 4);
  ADD_LOOP(access_outside_of_the_window_or_of_an_epoch_is_an_error, 4);
  ADD_LOOP(access_that_the_device_refuses_is_an_error_and_leaves_nothing, 4);
  ADD_LOOP(access_that_fails_later_is_an_error_of_who_waits, 4);
  ADD_LOOP(hooks_wait_for_what_is_pending_there, 4);
  ADD(an_origin_is_held_back_while_its_accesses_end);
  ADD_LOOP(start_waits_for_one_post_of_each_of_its_group, 2);
  ADD_LOOP(calls_that_wait_for_a_lost_rank_fail, WAITING_CALLS);
  tcase_add_loop_test(tests, requests_that_wait_for_a_lost_rank_fail, HOST_RPUT, HOST_RGET_ACC + 1);
  ADD(start_fails_where_a_rank_that_has_not_posted_is_lost);
  ADD_LOOP(ends_of_epochs_wait_for_what_their_message_may_overtake, 6);
  ADD_LOOP(ends_of_epochs_wait_for_gets_when_their_message_has_left, 3);
  ADD_LOOP(the_end_of_an_epoch_fails_where_its_get_does, 3);
  ADD_LOOP(accumulate_goes_unanswered_where_the_end_of_the_epoch_follows_by_message, 14);
  ADD(accumulate_of_other_types_and_operations_is_the_hosts);
  ADD(accumulate_whose_data_has_not_left_is_waited_for);
  ADD(accumulate_that_the_device_refuses_or_that_is_outside_is_an_error);
  ADD_LOOP(flush_asks_behind_accumulates_that_are_not_answered, 2);
  ADD_LOOP(fence_asks_behind_long_accumulates_that_are_not_answered, 2);
  ADD(flush_does_not_rely_on_what_another_thread_has_yet_to_ask_for);
  ADD_LOOP(accumulate_is_done_when_it_is_delivered, 2);
  ADD(accumulate_of_a_stranger_is_looked_at);
  ADD(lock_asserts_what_it_says_and_not_what_an_earlier_one_said);
  ADD_LOOP(ends_of_epochs_pass_a_poll_where_puts_wait_for_their_message, 3);
  ADD(puts_have_company_where_the_end_of_the_epoch_follows);
  ADD(window_that_is_not_made_is_not_exposed_any_more);
  ADD(window_is_not_withdrawn_while_it_is_accessed);
  ADD(window_expects_messages_while_it_lives);
  ADD_LOOP(receive_that_was_matched_here_completes_the_one_in_shared_memory, 3);
  ADD_LOOP(receive_that_found_its_message_when_posted_is_completed_by_the_next_progress, 3);
  ADD(receives_that_found_their_messages_when_posted_are_all_completed);
  ADD_LOOP(receive_that_fails_fails_in_shared_memory, 3);
  ADD_LOOP(cancelling_a_receive_that_is_not_matched_withdraws_both, 3);
  ADD_LOOP(cancelling_a_receive_that_was_matched_here_does_nothing, 9);
  ADD_LOOP(shared_memory_gets_the_receive_when_it_is_not_matched_here, 3);
  ADD_LOOP(shared_memory_does_not_get_a_receive_that_was_matched_here, 6);
  ADD_LOOP(cancelling_a_receive_from_one_source, 2);
  ADD(progress_without_a_device_does_nothing);
  ADD(every_new_device_is_told_of_shared_memory);
  ADD(poll_that_would_find_nothing_is_skipped_but_for_the_first_of_a_test);
  ADD(everything_that_is_complete_is_completed_by_one_progress);
  ADD(error_of_progress_is_the_calls);
  ADD_LOOP(send_that_the_device_refuses_is_an_error_of_the_call, 5 * ERRORS);
  ADD_LOOP(send_that_fails_later_is_an_error_of_its_request, 2);
  ADD_LOOP(receive_that_the_device_refuses_is_an_error_where_the_user_waits, 8);
  ADD_LOOP(any_source_receive_that_the_device_refuses_is_an_error_where_the_user_waits, 3);
  ADD_LOOP(matched_receive_that_the_device_refuses_is_an_error_where_the_user_waits, 4);
  ADD_LOOP(active_message_that_the_device_refuses_is_an_error_of_the_call, ERRORS);
  ADD_LOOP(without_memory_for_the_copy_a_send_is_an_error_of_the_call, 2);
  ADD(error_of_packing_is_an_error_of_the_call);
  ADD_LOOP(without_memory_for_the_copy_a_receive_is_an_error_where_the_user_waits, 3);
  ADD_LOOP(without_memory_for_the_copy_an_any_source_receive_is_an_error_where_the_user_waits, 2);
  ADD_LOOP(without_memory_for_the_copy_a_matched_message_can_be_received_again, 3);
  ADD_LOOP(without_memory_in_the_device_a_matched_message_can_be_received_again, 3);
  ADD_LOOP(without_memory_an_active_message_is_an_error_of_the_call, 2);
  ADD(without_a_request_there_is_an_error_and_nothing_is_left);
  suite_add_tcase(suite, tests);
  SRunner* runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
