/* Stands in for MPICH's headers in glue_test, spawn5_test and pt2pt_glue_test: of the types and
 * macros that src/ch_lite/ch4 uses, what the files under test need. The names and members are MPICH
 * 4.0.2's (the glue is compiled against both), or 5.0.1's where a test says so by MPICH_NUMVERSION;
 * the contents are not. With HOST_POINT_TO_POINT there is shared memory beside the module, and what
 * pt2pt.h has: datatypes, requests, windows. */
#ifndef HOST_MPIDIMPL_H_INCLUDED
#define HOST_MPIDIMPL_H_INCLUDED

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int MPI_Datatype;
typedef int MPI_Op;
typedef long MPI_Aint;

#include "ch_lite/ch4/lite_pre.h"

__attribute__((weak)) void* lite_copy(void* to, const void* from, size_t bytes) {
  return __builtin_memcpy(to, from, bytes);
}

#ifndef MPICH_NUMVERSION
#define MPICH_NUMVERSION 40002300
#endif
#define HOST_IS_5 (MPICH_NUMVERSION >= 50000000)
#if HOST_IS_5
#define MPICH_VERSION "5.0.1"
#else
#define MPICH_VERSION "4.0.2"
#endif
#ifndef HOST_POINT_TO_POINT
#define MPIDI_CH4_DIRECT_NETMOD 1
#endif

#define TRUE 1
#define FALSE 0
#define likely(x) (x)
#define unlikely(x) (x)

/* ---- mpi.h ---- */

typedef struct {
  int MPI_SOURCE, MPI_TAG, MPI_ERROR;
  MPI_Aint count;
  int cancelled;
} MPI_Status;
enum {
  MPI_SUCCESS,
  MPI_ERR_TRUNCATE = 14,
  MPI_ERR_OTHER = 15,
  MPI_ERR_NO_MEM = 34,
  MPI_ERR_RMA_RANGE = 55
};
enum { MPI_ERR_GROUP = 8, MPI_ERR_PORT = 38, MPI_THREAD_FUNNELED = 1, MPI_THREAD_MULTIPLE = 3 };
enum { MPI_ANY_SOURCE = -2, MPI_ANY_TAG = -1, MPI_MAX_OBJECT_NAME = 128 };

/* ---- objects ---- */

typedef enum {
  MPIR_REQUEST_KIND__SEND,
  MPIR_REQUEST_KIND__RMA,
  MPIR_REQUEST_KIND__PART_SEND,
  MPIR_REQUEST_KIND__PART_RECV,
  MPIR_REQUEST_KIND__RECV,
  MPIR_REQUEST_KIND__MPROBE
} MPIR_Request_kind_t;
typedef enum { MPIR_COMM_KIND__INTRACOMM, MPIR_COMM_KIND__INTERCOMM } MPIR_Comm_kind_t;
#if HOST_IS_5
typedef int MPIR_Context_id_t;
#else
typedef unsigned short MPIR_Context_id_t;
#endif
typedef int MPIR_Errflag_t;
typedef int MPIDI_winattr_t;
typedef struct MPIR_Info MPIR_Info;
typedef struct MPIR_Datatype MPIR_Datatype;
typedef struct MPIR_Op {
  int ref_count;
} MPIR_Op;

typedef struct {
  struct {
    MPIDI_LITE_addr_t lite;
  } netmod;
} MPIDI_av_entry_t;

typedef struct {
  int ref_count;
  int size;
  MPIDI_av_entry_t table[];
} MPIDI_av_table_t;

typedef struct MPIR_Comm {
  MPIR_Comm_kind_t comm_kind;
  MPIR_Context_id_t context_id, recvcontext_id;
  int rank, local_size, remote_size;
  MPIDI_av_entry_t* remote; /* by rank */
  int ref_count;
  int handle;
  char name[MPI_MAX_OBJECT_NAME];
} MPIR_Comm;

typedef struct MPIR_Group {
  int size;
} MPIR_Group;

typedef struct MPIR_Win {
  MPIR_Comm* comm_ptr;
  void* base;
  MPI_Aint size;
  int disp_unit;
  uint64_t win_id;
  int remote_acc_cmpl_cnts;
  struct {
    int assert_mode;
    int access_epoch_type;
    struct {
      int count;
    } lock;
  } sync;
  struct {
    struct {
      MPIDI_LITE_win_t lite;
    } netmod;
    MPIDI_winattr_t winattr;
  } dev;
} MPIR_Win;

typedef struct MPIR_Request {
  int ref_count;
  MPIR_Request_kind_t kind;
  MPIR_Comm* comm;
  int cc, *cc_ptr;
  MPI_Status status;
  union {
    struct {
      MPIR_Win* win;
    } rma;
  } u;
  struct {
    bool is_local;
#if HOST_IS_5
    struct MPIR_Request* anysrc_partner;
#else
    struct MPIR_Request* anysource_partner_request;
#endif
    struct {
      union {
        MPIDI_LITE_request_t lite;
      } netmod;
      struct {
        struct {
          int status;
        } * req;     /* until it is complete */
        bool posted; /* in the queue of shared memory */
      } am;
      struct {
        struct {
          struct MPIR_Request* peer_req_ptr;
          union {
            struct {
              MPI_Aint sdata_size;
            } recv;
          } u;
        } am;
        union {
          struct {
            int dest;
          } send;
          struct {
            int source;
          } recv;
        } u;
      } part_req;
    } ch4;
  } dev;
} MPIR_Request;
#define MPIDI_PART_REQUEST(req, field) (((req)->dev.ch4.part_req).field)
#define MPIDIG_PART_REQUEST(req, field) (((req)->dev.ch4.part_req).am.field)
#define MPIR_Object_get_ref(object) ((object)->ref_count)

typedef struct {
  int initialized;
  void** indirect;
  int indirect_size;
  int size;
  void* direct;
  int direct_size;
} MPIR_Object_alloc_t;
enum { MPIR_REQUEST_NUM_POOLS = 2, REQUEST_NUM_INDICES = 4 };
extern MPIR_Object_alloc_t MPIR_Request_mem[MPIR_REQUEST_NUM_POOLS];

#define MPIR_CONTEXT_SUBCOMM_SHIFT 1
#define MPIR_CONTEXT_SUBCOMM_MASK 6
#define MPIR_CONTEXT_SUFFIX_MASK 1
#define MPIR_CONTEXT_READ_FIELD(field, id) (((id) >> 1) & 3)

/* ---- active messages: every handler and what its header holds ---- */

enum {
  MPIDIG_SEND,
  MPIDIG_PART_SEND_INIT,
  MPIDIG_PART_CTS,
  MPIDIG_PART_SEND_DATA,
  MPIDIG_PUT_REQ,
  MPIDIG_PUT_ACK,
  MPIDIG_PUT_DT_REQ,
  MPIDIG_PUT_DAT_REQ,
  MPIDIG_PUT_DT_ACK,
  MPIDIG_GET_REQ,
  MPIDIG_GET_ACK,
  MPIDIG_ACC_REQ,
  MPIDIG_ACC_ACK,
  MPIDIG_ACC_DT_REQ,
  MPIDIG_ACC_DAT_REQ,
  MPIDIG_ACC_DT_ACK,
  MPIDIG_GET_ACC_REQ,
  MPIDIG_GET_ACC_ACK,
  MPIDIG_GET_ACC_DT_REQ,
  MPIDIG_GET_ACC_DAT_REQ,
  MPIDIG_GET_ACC_DT_ACK,
  MPIDIG_CSWAP_REQ,
  MPIDIG_CSWAP_ACK,
  MPIDIG_WIN_COMPLETE,
  MPIDIG_WIN_POST,
  MPIDIG_WIN_LOCK,
  MPIDIG_WIN_LOCK_ACK,
  MPIDIG_WIN_UNLOCK,
  MPIDIG_WIN_UNLOCK_ACK,
  MPIDIG_WIN_LOCKALL,
  MPIDIG_WIN_LOCKALL_ACK,
  MPIDIG_WIN_UNLOCKALL,
  MPIDIG_WIN_UNLOCKALL_ACK,
  MPIDIG_COMM_ABORT,
  MPIDIG_HANDLER_STATIC_MAX,
  MPIDI_AM_HANDLERS_MAX = 64
};

typedef struct {
  int src_rank;
  int tag;
  MPIR_Context_id_t context_id;
  MPIR_Request* sreq_ptr;
  MPI_Aint data_sz;
} MPIDIG_part_send_init_msg_t;
typedef struct {
  MPIR_Request *sreq_ptr, *rreq_ptr;
} MPIDIG_part_cts_msg_t;
typedef struct {
  MPIR_Request* rreq_ptr;
} MPIDIG_part_send_data_msg_t;
typedef struct {
  int src_rank;
  uint64_t win_id;
  MPIR_Request* preq_ptr;
  int flattened_sz;
} MPIDIG_put_msg_t;
typedef struct {
  int src_rank;
  uint64_t win_id;
  MPIR_Request* greq_ptr;
  int flattened_sz;
} MPIDIG_get_msg_t;
typedef struct {
  int src_rank;
  uint64_t win_id;
  MPIR_Request* req_ptr;
  int flattened_sz;
} MPIDIG_acc_req_msg_t;
typedef struct {
  int src_rank;
  uint64_t win_id;
  MPIR_Request* req_ptr;
} MPIDIG_cswap_req_msg_t;
typedef struct {
  MPIR_Request* preq_ptr;
} MPIDIG_put_ack_msg_t;
typedef struct {
  MPIR_Request* greq_ptr;
  MPI_Aint target_data_sz;
} MPIDIG_get_ack_msg_t;
typedef struct {
  int src_rank;
  MPIR_Request *target_preq_ptr, *origin_preq_ptr;
} MPIDIG_put_dt_ack_msg_t;
typedef struct {
  uint64_t win_id;
  uint32_t origin_rank;
  int16_t lock_type;
} MPIDIG_win_cntrl_msg_t;

typedef int (*MPIDIG_recv_data_copy_cb)(MPIR_Request* request);
typedef int (*MPIDIG_am_target_msg_cb)(void* am_hdr, void* data, MPI_Aint data_sz, uint32_t attr,
                                       MPIR_Request** req);
typedef int (*MPIDIG_am_origin_cb)(MPIR_Request* req);
typedef struct {
  MPIDIG_am_target_msg_cb target_msg_cbs[MPIDI_AM_HANDLERS_MAX];
  MPIDIG_am_origin_cb origin_cbs[MPIDI_AM_HANDLERS_MAX];
} MPIDIG_global_t;
extern MPIDIG_global_t MPIDIG_global;
#define MPIDIG_AM_ATTR_SET_VCIS(attr, src, dst) ((attr) |= (src) << 8 | (dst) << 16)

/* ---- what there is one of ---- */

typedef int MPL_thread_id_t; /* the test's own thread is 1 */
typedef struct {
  MPL_thread_id_t owner;
} MPID_Thread_mutex_t;
#define MPL_thread_self(id) (*(id) = 1)
#define MPL_thread_same(a, b, same) (*(same) = *(a) == *(b))
typedef struct {
  int my_sigusr1_count;
  int n_vcis;
  struct {
    MPID_Thread_mutex_t lock;
    int progress_count;
  } per_vci[1];
  MPID_Thread_mutex_t m[8];
  void* win_map;
} MPIDI_CH4_Global_t;
extern MPIDI_CH4_Global_t MPIDI_global;
#define MPIDI_VCI(i) MPIDI_global.per_vci[i]
#define MPIDIU_THREAD_DYNPROC_MUTEX MPIDI_global.m[6]

typedef struct {
  int rank, size, local_size, has_parent;
  MPIR_Comm* comm_world;
  int* node_map;
  int (*attr_free)(int handle, void* attributes);
} MPIR_Process_t;
extern MPIR_Process_t MPIR_Process;
#define MPICH_IS_THREADED 1
typedef struct {
  int thread_provided, isThreaded;
} MPIR_ThreadInfo_t;
extern MPIR_ThreadInfo_t MPIR_ThreadInfo;
extern int MPIR_CVAR_DEBUG_SUMMARY, MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE;
enum { MPIR_TAG_BITS_DEFAULT = 31 };

#define MPICH_THREAD_GRANULARITY__GLOBAL 1
#define MPICH_THREAD_GRANULARITY__VCI 2
#define MPICH_THREAD_GRANULARITY MPICH_THREAD_GRANULARITY__GLOBAL

/* ---- locks: the tests see who enters; at most one thread runs at a time ---- */

void host_enters(const MPID_Thread_mutex_t* mutex);
#define MPID_THREAD_CS_ENTER(name, mutex) host_enters(&(mutex))
#ifdef HOST_POINT_TO_POINT
void host_enters_again(const MPID_Thread_mutex_t* mutex);
#define MPID_THREAD_CS_ENTER_REC_VCI(mutex) host_enters_again(&(mutex))
void host_leaves(const MPID_Thread_mutex_t* mutex);
#define MPIDU_THREAD_CS_EXIT(name, mutex) host_leaves(&(mutex))
#else
#define MPID_THREAD_CS_ENTER_REC_VCI(mutex) host_enters(&(mutex))
#define MPIDU_THREAD_CS_EXIT(name, mutex) ((void)(mutex))
#endif
#define MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX MPIDI_global.m[0]
#if HOST_IS_5
void host_yields(const MPID_Thread_mutex_t* mutex);
#define MPIDU_THREAD_CS_YIELD(name, mutex) host_yields(&(mutex))
#else
#define MPIDU_THREAD_CS_YIELD(name, mutex) ((void)(mutex))
#endif

/* ---- memory: the tests check the bytes behind each block when it is freed ---- */

enum { MPL_MEM_ADDRESS, MPL_MEM_BUFFER, MPL_MEM_COMM, MPL_MEM_OTHER, MPL_MEM_RMA };
void* host_calloc(size_t count, size_t size);
void* host_realloc(void* block, size_t size);
void host_free(void* block);
#define MPL_malloc(size, class) host_calloc(1, size)
#define MPL_calloc(count, size, class) host_calloc(count, size)
#define MPL_realloc(block, size, class) host_realloc(block, size)
#define MPL_free(block) host_free(block)

/* ---- errors ---- */

enum { MPIR_ERR_RECOVERABLE, MPIR_ERR_FATAL };
int MPIR_Err_create_code(int last, int fatal, const char* function, int line, int class_,
                         const char* generic, const char* specific, ...);
#define MPIR_ERR_CHKANDJUMP(condition, code, class_, text) \
  do {                                                     \
    if (condition) {                                       \
      (code) = (class_);                                   \
      goto fn_fail;                                        \
    }                                                      \
  } while (0)
#define MPIR_ERR_CHECK(code) \
  do {                       \
    if (code) goto fn_fail;  \
  } while (0)
#define MPIR_Assertp(condition) \
  do {                          \
    if (!(condition)) abort();  \
  } while (0)
#define MPIR_Assert(condition) MPIR_Assertp(condition)
#define MPIR_FUNC_ENTER
#define MPIR_FUNC_EXIT

/* ---- the rest, as far as it is called ---- */

#define MPL_TLS __thread
#define MPL_MIN(a, b) ((a) < (b) ? (a) : (b))
typedef double MPL_time_t;
#if HOST_IS_5
void host_time(MPL_time_t* now);
#define MPL_wtime(time) host_time(time)
#else
#define MPL_wtime(time) ((void)(*(time) = 0))
#endif
#define MPL_wtime_diff(from, to, seconds) ((void)(*(seconds) = *(to) - *(from)))

#define MPIDIU_MAP_NOT_FOUND ((void*)-1)
void* MPIDIU_map_lookup(void* map, uint64_t id);
MPIDI_av_entry_t* MPIDIU_comm_rank_to_av(MPIR_Comm* comm, int rank);
MPIDI_av_table_t* MPIDIU_get_av_table(int avtid);
#define MPIDIU_get_av(avtid, lpid) (MPIDIU_get_av_table(avtid)->table[lpid])
int MPIDIU_get_n_avts(void);
int MPIDIU_new_avt(int size, int* avtid);
int MPIDIU_free_avt(int avtid);
#define MPIDIU_GPID_CREATE(avtid, lpid) ((uint64_t)(avtid) << 32 | (uint32_t)(lpid))
#define MPIDIU_GPID_GET_AVTID(gpid) ((int)((gpid) >> 32))
#define MPIDIU_GPID_GET_LPID(gpid) ((int)(uint32_t)(gpid))
#define MPIDIU_rank_is_local(rank, comm) 0
#define MPIDIU_comm_rank_to_pid(comm, rank, lpid, avtid) ((void)(comm), *(lpid) = (rank))
#define MPIDIU_comm_rank_to_pid_local(comm, rank, lpid, avtid) ((void)(comm), *(lpid) = (rank))

#define MPIR_get_contig_ptr(buffer, lb) ((void*)((uintptr_t)(buffer) + (uintptr_t)(lb)))
#ifdef HOST_POINT_TO_POINT
#include "pt2pt.h"
#else
enum { MPI_BYTE = 1, MPIR_ERR_NONE = 0, ERROR_FATAL_MASK = 0x80 };
int MPIR_Bcast(void* buffer, MPI_Aint count, MPI_Datatype type, int root, MPIR_Comm* comm,
               MPIR_Errflag_t* errflag);
void MPIR_Err_get_string(int code, char* text, int bytes, void* unused);
#define MPIR_Err_is_fatal(code) (((code)&ERROR_FATAL_MASK) != 0)
#define MPIR_ERR_GET_CLASS(code) ((code)&0x7f)
#define MPIDI_Datatype_get_info(count, datatype, contig, size, pointer, lb) \
  ((contig) = 1, (size) = (size_t)(count), (pointer) = NULL, (void)(pointer), (lb) = 0)
static inline bool MPIR_GPU_query_pointer_is_dev(const void* data) { return false; }
#define MPIR_Typerep_pack(in, count, type, offset, out, room, packed) \
  (*(packed) = (MPI_Aint)(room), MPI_SUCCESS)
#endif
#define MPIDIG_mpi_psend_init(...) MPI_SUCCESS
#define MPIDIG_mpi_precv_init(...) MPI_SUCCESS

/* ---- 5.0.1: dynamic processes, and what lite_impl.h declares functions with ---- */

#if HOST_IS_5
typedef int64_t MPIR_Lpid;
#define MPIR_LPID_DYNAMIC_MASK ((MPIR_Lpid)0x1 << 62)
#define MPIR_LPID_FROM(world_idx, world_rank) (((uint64_t)(world_idx) << 32) | (world_rank))
MPIDI_av_entry_t* MPIDIU_lpid_to_av_slow(MPIR_Lpid lpid);
int MPIDIU_free_dynamic_lpid(MPIR_Lpid lpid);
typedef struct {
  int n_vcis, n_total_vcis;
} MPIDI_num_vci_t;
#define MPIDI_VCI_LOCK(i) MPIDI_global.per_vci[i].lock
int MPIDI_progress_test_vci(int vci);
#define MPIR_PT2PT_ATTR_CONTEXT_OFFSET(attr) ((attr)&1)
int MPIR_Typerep_iov_len(MPI_Aint count, MPI_Datatype type, MPI_Aint bytes, MPI_Aint* length,
                         MPI_Aint* covered);
#endif

int MPID_Progress_test(void* state);
int MPIDU_Sched_are_pending(void);
int MPIR_pmi_abort(int code, const char* text);
int MPIR_pmi_barrier(void);
#define MPL_exit exit
int MPIDU_bc_table_create(int rank, int size, int* node_map, void* card, int bytes, int same_length,
                          int roots_only, void** table, int* length);
int MPIDU_bc_table_destroy(void);

#endif
