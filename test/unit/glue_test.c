/* The glue (src/ch_lite/ch4) without its host: compiled against host/mpidimpl.h, which stands in
 * for MPICH's headers, with the host's and the device's functions below. Here: what it lets in from
 * a process of another job, whom it parts from, what it says when a job cannot start, and what the
 * leader of a group tells the others. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ch_lite/ch4/lite_rma.h"

/* ---- the host ---- */

MPIR_Object_alloc_t MPIR_Request_mem[MPIR_REQUEST_NUM_POOLS];
MPIDIG_global_t MPIDIG_global;
MPIDI_CH4_Global_t MPIDI_global;
MPIR_Process_t MPIR_Process;
MPIR_ThreadInfo_t MPIR_ThreadInfo;
int MPIR_CVAR_DEBUG_SUMMARY, MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE = 32768;

/* ---- other parts of the glue ---- */

bool MPIDI_LITE_may_accumulate(int peer, const void* header, size_t header_bytes,
                               uint64_t data_bytes) {
  return false; /* pt2pt_glue_test */
}
void MPIDI_LITE_do_accumulate(const void* header, size_t header_bytes, const void* data,
                              size_t data_bytes) {
  ck_abort();
}

void MPIDI_LITE_start_host_work(void) {}
void MPIDI_LITE_forget_host_work(void) {}

/* Every block is followed by bytes that nobody may write. */
enum { GUARD_BYTES = 64 };
static const unsigned char kGuard = 0xa5;
void* host_calloc(size_t count, size_t size) {
  const size_t bytes = count * size;
  unsigned char* block = malloc(16 + bytes + GUARD_BYTES);
  memcpy(block, &bytes, sizeof bytes);
  memset(block + 16, 0, bytes);
  memset(block + 16 + bytes, kGuard, GUARD_BYTES);
  return block + 16;
}
void host_free(void* block) {
  if (block == NULL) return;
  unsigned char* whole = (unsigned char*)block - 16;
  size_t bytes;
  memcpy(&bytes, whole, sizeof bytes);
  for (size_t i = 0; i < GUARD_BYTES; i++)
    ck_assert_msg(whole[16 + bytes + i] == kGuard, "byte %zu of a block of %zu was written",
                  bytes + i, bytes);
  free(whole);
}

static void (*on_dynproc)(void); /* what another thread has done by the time we have that lock */
void host_enters(const MPID_Thread_mutex_t* mutex) {
  if (mutex == &MPIDIU_THREAD_DYNPROC_MUTEX && on_dynproc != NULL) on_dynproc();
}

static char error_text[512]; /* of the last MPI error */
int MPIR_Err_create_code(int last, int fatal, const char* function, int line, int class_,
                         const char* generic, const char* specific, ...) {
  va_list arguments;
  va_start(arguments, specific);
  if (specific != NULL) vsnprintf(error_text, sizeof error_text, specific, arguments);
  va_end(arguments);
  return class_;
}

static const char* error_stack; /* the host's, of any code */
void MPIR_Err_get_string(int code, char* text, int bytes, void* unused) {
  snprintf(text, (size_t)bytes, "%s", error_stack);
}
/* What the root has sent last, and every other rank gets. */
static char broadcast[1024];
static int broadcasts, broadcast_code;
int MPIR_Bcast(void* buffer, MPI_Aint count, MPI_Datatype type, int root, MPIR_Comm* comm,
               MPIR_Errflag_t* errflag) {
  ck_assert_int_eq(type, MPI_BYTE);
  ck_assert_int_le((int)count, (int)sizeof broadcast);
  if (comm->rank == root)
    memcpy(broadcast, buffer, (size_t)count);
  else
    memcpy(buffer, broadcast, (size_t)count);
  broadcasts++;
  return broadcast_code;
}

/* Window number i + 1. */
static MPIR_Win windows[2];
void* MPIDIU_map_lookup(void* map, uint64_t id) {
  return id >= 1 && id <= 2 ? (void*)&windows[id - 1] : MPIDIU_MAP_NOT_FOUND;
}
MPIDI_av_entry_t* MPIDIU_comm_rank_to_av(MPIR_Comm* comm, int rank) {
  ck_assert_int_ge(rank, 0);
  ck_assert_int_lt(rank, comm->remote_size);
  return &comm->remote[rank];
}

enum { TABLES_MAX = 4 };
static MPIDI_av_table_t* tables[TABLES_MAX];
static int tables_count;
static void add_table(int first_peer, int size) {
  MPIDI_av_table_t* made = calloc(1, sizeof *made + (size_t)size * sizeof made->table[0]);
  made->size = size;
  for (int i = 0; i < size; i++) MPIDI_LITE_AV(&made->table[i]).peer = first_peer + i;
  tables[tables_count++] = made;
}
MPIDI_av_table_t* MPIDIU_get_av_table(int avtid) { return tables[avtid]; }
int MPIDIU_get_n_avts(void) { return tables_count; }
int MPIDIU_new_avt(int size, int* avtid) {
  *avtid = tables_count;
  add_table(0, size);
  return MPI_SUCCESS;
}
int MPIDIU_free_avt(int avtid) {
  free(tables[avtid]);
  tables[avtid] = NULL;
  return MPI_SUCCESS;
}

static char abort_text[1024];
static int aborts;
int MPIR_pmi_abort(int code, const char* text) {
  snprintf(abort_text, sizeof abort_text, "%s", text);
  aborts++;
  return MPI_SUCCESS;
}
__thread lite_call_state lite_call __attribute__((tls_model("initial-exec")));
/* The process manager's: somebody is not there yet. */
static volatile int barrier_waits;
int MPIR_pmi_barrier(void) {
  while (barrier_waits) sched_yield();
  return MPI_SUCCESS;
}
int MPID_Progress_test(void* state) { return MPI_SUCCESS; }
int MPIDU_bc_table_create(int rank, int size, int* node_map, void* card, int bytes, int same_length,
                          int roots_only, void** table, int* length) {
  static char cards[8 * 512];
  ck_assert_int_le(size * bytes, (int)sizeof cards);
  for (int i = 0; i < size; i++) memcpy(cards + i * bytes, card, (size_t)bytes);
  *table = cards;
  return MPI_SUCCESS;
}
int MPIDU_bc_table_destroy(void) { return MPI_SUCCESS; }
void MPIDI_LITE_register_tools(void) {}
int MPIDI_LITE_drain_completions(void) { return MPI_SUCCESS; }
int MPIDI_LITE_find_empty_entry(void) { return -1; }

/* Seconds pass with every look at them. */
static time_t coarse_s;
int clock_gettime(clockid_t clock, struct timespec* now) {
  if (clock != CLOCK_MONOTONIC_COARSE) return (int)syscall(SYS_clock_gettime, clock, now);
  *now = (struct timespec){.tv_sec = ++coarse_s};
  if (coarse_s == 100) barrier_waits = 0;
  return 0;
}

/* Nobody here sleeps. */
static double slept_s;
int nanosleep(const struct timespec* time, struct timespec* rest) {
  slept_s += (double)time->tv_sec + 1e-9 * (double)time->tv_nsec;
  return 0;
}

/* ---- the device ---- */

lite_hot_state lite_hot;
void lite_host_lets_go_slow(void) {}

static int known_peers;
static int parted[16], parted_count;
static lite_am_check check_of_device;
static int init_world_code;
static int sent[8];   /* active messages, by peer */
static int credit[8]; /* so many leave at once, the others wait */

int lite_peers(void) { return known_peers; }
void lite_part(int peer) { parted[parted_count++] = peer; }
void lite_am_set_check(lite_am_check check) { check_of_device = check; }
void lite_am_set_callback(lite_am_callback callback, void* arg) {}
void lite_set_member_callback(lite_member_callback callback) {}
static lite_context_name name_of_device;
void lite_set_context_name(lite_context_name name) { name_of_device = name; }
void lite_members_changed(void) {}
int lite_am_isend(int peer, uint32_t handler, const void* header, size_t header_bytes,
                  const void* data, size_t data_bytes, void* cookie, lite_request** request) {
  sent[peer]++;
  return LITE_OK;
}
int lite_am_waits(int peer) { return sent[peer] > credit[peer]; }
static const char* last_error = "no error";
const char* lite_last_error(void) { return last_error; }
void lite_say_last_words(const char* text) {}
int lite_init_local(void* address) {
  memset(address, 'a', LITE_ADDRESS_BYTES);
  return LITE_OK;
}
int lite_find_failed(const void* table, int size) { return -1; }
int lite_init_world(int rank, int size, const void* table, int local_ranks, int thread_multiple) {
  return init_world_code;
}
void lite_set_thread_multiple(int on) {}
void lite_set_tag_ignore_bits(uint32_t bits) {}
int lite_flush(void) { return LITE_OK; }
void lite_finalize_goodbye(void) {}
void lite_finalize_quiesce(void) {}
void lite_finalize_close(void) {}
static int ports_closed;
int lite_name(int peer, void* name) { return LITE_OK; }
int lite_meet(const void* name) { return LITE_ERR_ARG; }
int lite_meet_at_port(const void* port, void* proof) { return LITE_ERR_ARG; }
int lite_open_port(uint32_t id, void* port) { return LITE_OK; }
void lite_close_port(uint32_t id) { ports_closed++; }
int lite_port_is_open(uint32_t id) { return 1; }
int lite_check_caller(uint32_t id, int peer, const void* proof) { return 0; }
int lite_check_peer(int peer) { return LITE_OK; }
static int lost = -1;
int lite_lost_peers(void) { return lost >= 0; }
int lite_check_lost(int peer) { return peer == lost ? LITE_ERR_PEER_LOST : LITE_OK; }
int lite_has_left(int peer) { return 0; }

/* ---- a job of two ranks, of which this is rank 0; peers 2 and 3 are processes of another job that
 * share an intercommunicator with us, peer 4 is one that shares nothing ---- */

enum { WORLD = 0x10, INTER = 0x20 }; /* contexts */
enum { NEIGHBOUR = 1, FRIEND = 2, OTHER_FRIEND = 3, STRANGER = 4 };
static MPIDI_av_entry_t world_table[2], inter_table[2];
static MPIR_Comm world, inter;
static MPIR_Request requests[4], more_requests[REQUEST_NUM_INDICES];
static void* blocks[1] = {more_requests};

static int a_handler(void* header, void* data, MPI_Aint bytes, uint32_t attr, MPIR_Request** req) {
  return MPI_SUCCESS;
}

static void set_up(void) {
  for (int i = 0; i < 2; i++) {
    MPIDI_LITE_AV(&world_table[i]).peer = i;
    MPIDI_LITE_AV(&inter_table[i]).peer = FRIEND + i;
  }
  world = (MPIR_Comm){
      .recvcontext_id = WORLD, .local_size = 2, .remote_size = 2, .remote = world_table};
  inter = (MPIR_Comm){.comm_kind = MPIR_COMM_KIND__INTERCOMM,
                      .recvcontext_id = INTER,
                      .local_size = 2,
                      .remote_size = 2,
                      .remote = inter_table};
  ck_assert_int_eq(MPIDI_LITE_comm_pre_hook(&world), MPI_SUCCESS);
  ck_assert_int_eq(MPIDI_LITE_comm_pre_hook(&inter), MPI_SUCCESS);
  windows[0].comm_ptr = &world;
  windows[1].comm_ptr = &inter;
  MPIR_Request_mem[0] = (MPIR_Object_alloc_t){.initialized = 1,
                                              .indirect = blocks,
                                              .indirect_size = 1,
                                              .size = sizeof requests[0],
                                              .direct = requests,
                                              .direct_size = 4};
  for (int i = 0; i < MPIDIG_HANDLER_STATIC_MAX; i++) MPIDIG_global.target_msg_cbs[i] = a_handler;
  known_peers = 5;
  MPIR_Process = (MPIR_Process_t){.rank = 0, .size = 2, .local_size = 1};
  MPIDI_global.n_vcis = 1;
  add_table(0, 2);
  parted_count = aborts = broadcasts = broadcast_code = 0;
  error_text[0] = '\0';
  memset(sent, 0, sizeof sent);
  slept_s = 0;
}
static void tear_down(void) {
  MPIDI_LITE_forget_first_words();
  MPIDI_LITE_forget_comms();
  while (tables_count > 0) free(tables[--tables_count]);
  on_dynproc = NULL;
}

static int check(int peer, uint32_t handler, const void* header, size_t bytes, uint64_t data) {
  return MPIDI_LITE_am_check(peer, handler, header, bytes, data);
}

/* ---- what a process of another job may send ---- */

START_TEST(device_is_given_the_check_at_the_start) {
  int tag_bits;
  check_of_device = NULL;
  ck_assert_int_eq(MPIDI_LITE_init_local(&tag_bits), MPI_SUCCESS);
  ck_assert(check_of_device == MPIDI_LITE_am_check);
}
END_TEST

START_TEST(communicators_are_named_by_their_contexts) {
  const struct {
    uint32_t context;
    const char* name;
  } table[] = {{WORLD, "MPI_COMM_WORLD"},
               {WORLD + 1, "a collective of MPI_COMM_WORLD"},
               {WORLD + 5, "a collective of MPI_COMM_WORLD"}, /* between its nodes */
               {INTER, "communicator 0x84000001"},
               {INTER + 1, "a collective of communicator 0x84000001"},
               {0x40, "as it was"}}; /* there is none */
  int tag_bits;
  char text[64];
  ck_assert_int_eq(MPIDI_LITE_init_local(&tag_bits), MPI_SUCCESS);
  strcpy(world.name, "MPI_COMM_WORLD");
  inter.handle = (int)0x84000001;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    strcpy(text, "as it was");
    name_of_device(table[i].context, text, sizeof text);
    ck_assert_str_eq(text, table[i].name);
  }
  memset(world.name, 'x', sizeof world.name); /* it does not end */
  name_of_device(WORLD, text, sizeof text);
  ck_assert_uint_eq(strlen(text), sizeof text - 1);
}
END_TEST

START_TEST(garbage_is_of_no_member_whatever_its_handler) {
  _Alignas(16) unsigned char garbage[256];
  for (uint32_t handler = 0; handler < MPIDI_AM_HANDLERS_MAX + 3; handler++)
    for (unsigned filling = 0; filling < 256; filling += 51)
      for (size_t bytes = 0; bytes <= sizeof garbage; bytes += 8)
        for (int peer = FRIEND; peer <= STRANGER; peer++) {
          memset(garbage, (int)filling, sizeof garbage);
          /* the end of the job is announced by a number, and any member may */
          if (handler == MPIDIG_COMM_ABORT && peer != STRANGER && bytes >= sizeof(int)) continue;
          ck_assert_msg(check(peer, handler, garbage, bytes, 0) != LITE_MEMBER,
                        "handler %u, %zu bytes of %u from peer %d", handler, bytes, filling, peer);
        }
}
END_TEST

START_TEST(end_of_the_job_is_heard_from_who_shares_a_communicator) {
  const int code[2] = {1, 1};
  ck_assert_int_eq(check(FRIEND, MPIDIG_COMM_ABORT, code, sizeof code, 0), LITE_MEMBER);
  ck_assert_int_eq(check(STRANGER, MPIDIG_COMM_ABORT, code, sizeof code, 0), LITE_NO_COMMUNICATOR);
}
END_TEST

/* Each kind of message about a window, from the rank that it names in the window that it names. */
static int about_window(uint32_t handler, int peer, uint64_t window, int rank, int flattened,
                        int arrives) {
  union {
    MPIDIG_put_msg_t put;
    MPIDIG_get_msg_t get;
    MPIDIG_acc_req_msg_t acc;
    MPIDIG_cswap_req_msg_t cswap;
    MPIDIG_win_cntrl_msg_t control;
    unsigned char bytes[128];
  } m;
  memset(&m, 0, sizeof m);
  switch (handler) {
    case MPIDIG_PUT_REQ:
      m.put = (MPIDIG_put_msg_t){.src_rank = rank, .win_id = window, .flattened_sz = flattened};
      return check(peer, handler, &m, sizeof m.put + (size_t)arrives, 8);
    case MPIDIG_PUT_DT_REQ:
      m.put = (MPIDIG_put_msg_t){.src_rank = rank, .win_id = window, .flattened_sz = flattened};
      return check(peer, handler, &m, sizeof m.put, (uint64_t)arrives);
    case MPIDIG_GET_REQ:
      m.get = (MPIDIG_get_msg_t){.src_rank = rank, .win_id = window, .flattened_sz = flattened};
      return check(peer, handler, &m, sizeof m.get, (uint64_t)arrives);
    case MPIDIG_ACC_REQ:
    case MPIDIG_GET_ACC_REQ:
      m.acc = (MPIDIG_acc_req_msg_t){.src_rank = rank, .win_id = window, .flattened_sz = flattened};
      return check(peer, handler, &m, sizeof m.acc + (size_t)arrives, 8);
    case MPIDIG_ACC_DT_REQ:
    case MPIDIG_GET_ACC_DT_REQ:
      m.acc = (MPIDIG_acc_req_msg_t){.src_rank = rank, .win_id = window, .flattened_sz = flattened};
      return check(peer, handler, &m, sizeof m.acc, (uint64_t)arrives);
    case MPIDIG_CSWAP_REQ:
      m.cswap = (MPIDIG_cswap_req_msg_t){.src_rank = rank, .win_id = window};
      return check(peer, handler, &m, sizeof m.cswap, 16);
    default:
      m.control = (MPIDIG_win_cntrl_msg_t){.origin_rank = (uint32_t)rank, .win_id = window};
      return check(peer, handler, &m, sizeof m.control, 0);
  }
}

START_TEST(window_is_open_to_the_ranks_of_its_communicator_under_their_own_rank) {
  static const uint32_t handlers[] = {
      MPIDIG_PUT_REQ,       MPIDIG_PUT_DT_REQ,       MPIDIG_GET_REQ,        MPIDIG_ACC_REQ,
      MPIDIG_GET_ACC_REQ,   MPIDIG_ACC_DT_REQ,       MPIDIG_GET_ACC_DT_REQ, MPIDIG_CSWAP_REQ,
      MPIDIG_WIN_COMPLETE,  MPIDIG_WIN_POST,         MPIDIG_WIN_LOCK,       MPIDIG_WIN_LOCK_ACK,
      MPIDIG_WIN_UNLOCK,    MPIDIG_WIN_UNLOCK_ACK,   MPIDIG_WIN_LOCKALL,    MPIDIG_WIN_LOCKALL_ACK,
      MPIDIG_WIN_UNLOCKALL, MPIDIG_WIN_UNLOCKALL_ACK};
  for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
    const uint32_t h = handlers[i];
    ck_assert_int_eq(about_window(h, FRIEND, 2, 0, 0, 0), LITE_MEMBER);
    ck_assert_int_eq(about_window(h, OTHER_FRIEND, 2, 1, 0, 0), LITE_MEMBER);
    ck_assert_int_eq(about_window(h, FRIEND, 2, 1, 0, 0), LITE_NOT_A_MEMBER); /* another's rank */
    ck_assert_int_eq(about_window(h, FRIEND, 2, 2, 0, 0), LITE_NOT_A_MEMBER); /* there is none */
    ck_assert_int_eq(about_window(h, FRIEND, 2, -1, 0, 0), LITE_NOT_A_MEMBER);
    ck_assert_int_eq(about_window(h, FRIEND, 1, 0, 0, 0), LITE_NOT_A_MEMBER); /* of our own job */
    ck_assert_int_eq(about_window(h, FRIEND, 7, 0, 0, 0), LITE_NOT_A_MEMBER); /* no such window */
    ck_assert_int_eq(about_window(h, STRANGER, 2, 0, 0, 0), LITE_NOT_A_MEMBER);
    ck_assert_int_eq(about_window(h, STRANGER, 1, 0, 0, 0), LITE_NOT_A_MEMBER);
  }
  for (int i = 0; i < 7; i++) { /* those with a datatype: as long as they say */
    ck_assert_int_eq(about_window(handlers[i], FRIEND, 2, 0, 16, 16), LITE_MEMBER);
    ck_assert_int_eq(about_window(handlers[i], FRIEND, 2, 0, 17, 16), LITE_NOT_A_MEMBER);
    ck_assert_int_eq(about_window(handlers[i], FRIEND, 2, 0, -1, 16), LITE_NOT_A_MEMBER);
  }
}
END_TEST

static MPIR_Request access_of(MPIR_Win* window) {
  MPIR_Request made = {.ref_count = 1, .kind = MPIR_REQUEST_KIND__RMA};
  made.u.rma.win = window;
  return made;
}

/* An answer that names a request of ours. */
static int about_access(uint32_t handler, int peer, MPIR_Request* request) {
  if (handler == MPIDIG_GET_ACK) {
    const MPIDIG_get_ack_msg_t m = {.greq_ptr = request};
    return check(peer, handler, &m, sizeof m, 0);
  }
  if (handler == MPIDIG_PUT_DT_ACK || handler == MPIDIG_ACC_DT_ACK ||
      handler == MPIDIG_GET_ACC_DT_ACK) {
    const MPIDIG_put_dt_ack_msg_t m = {.origin_preq_ptr = request};
    return check(peer, handler, &m, sizeof m, 0);
  }
  const MPIDIG_put_ack_msg_t m = {.preq_ptr = request};
  return check(peer, handler, &m, sizeof m, 0);
}

START_TEST(answer_to_an_access_names_a_request_that_is_one_in_a_window_with_its_sender) {
  static const uint32_t handlers[] = {
      MPIDIG_PUT_ACK,     MPIDIG_CSWAP_ACK,   MPIDIG_ACC_ACK,         MPIDIG_GET_ACC_ACK,
      MPIDIG_PUT_DAT_REQ, MPIDIG_ACC_DAT_REQ, MPIDIG_GET_ACC_DAT_REQ, MPIDIG_GET_ACK,
      MPIDIG_PUT_DT_ACK,  MPIDIG_ACC_DT_ACK,  MPIDIG_GET_ACC_DT_ACK};
  MPIR_Request *const of_world = &requests[0], *const of_inter = &more_requests[3];
  *of_world = access_of(&windows[0]);
  *of_inter = access_of(&windows[1]);
  requests[1] = requests[2] = requests[3] = access_of(&windows[1]);
  requests[1].ref_count = 0;
  requests[2].kind = MPIR_REQUEST_KIND__SEND;
  requests[3].u.rma.win = NULL;
  for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
    const uint32_t h = handlers[i];
    ck_assert_int_eq(about_access(h, FRIEND, of_inter), LITE_MEMBER);
    ck_assert_int_eq(about_access(h, FRIEND, of_world), LITE_NOT_A_MEMBER);
    ck_assert_int_eq(about_access(h, STRANGER, of_inter), LITE_NOT_A_MEMBER);
    for (int wrong = 1; wrong < 4; wrong++) /* freed, of another kind, in no window */
      ck_assert_int_eq(about_access(h, FRIEND, &requests[wrong]), LITE_NOT_A_MEMBER);
    ck_assert_int_eq(about_access(h, FRIEND, NULL), LITE_NOT_A_MEMBER);
    ck_assert_int_eq(about_access(h, FRIEND, (MPIR_Request*)((char*)of_inter + 8)),
                     LITE_NOT_A_MEMBER);
    ck_assert_int_eq(about_access(h, FRIEND, more_requests + REQUEST_NUM_INDICES),
                     LITE_NOT_A_MEMBER);
  }
}
END_TEST

START_TEST(partitioned_send_is_announced_in_a_common_communicator_by_its_rank) {
  MPIDIG_part_send_init_msg_t m = {.src_rank = 0, .context_id = INTER};
  ck_assert_int_eq(check(FRIEND, MPIDIG_PART_SEND_INIT, &m, sizeof m, 0), LITE_MEMBER);
  ck_assert_int_eq(check(OTHER_FRIEND, MPIDIG_PART_SEND_INIT, &m, sizeof m, 0), LITE_NOT_A_MEMBER);
  ck_assert_int_eq(check(STRANGER, MPIDIG_PART_SEND_INIT, &m, sizeof m, 0), LITE_NOT_A_MEMBER);
  m.context_id = WORLD;
  ck_assert_int_eq(check(FRIEND, MPIDIG_PART_SEND_INIT, &m, sizeof m, 0), LITE_NOT_A_MEMBER);
  m.context_id = 0x40; /* there is none yet: it is asked about again */
  ck_assert_int_eq(check(FRIEND, MPIDIG_PART_SEND_INIT, &m, sizeof m, 0), LITE_NO_COMMUNICATOR);
}
END_TEST

static MPIR_Request partitioned(MPIR_Request_kind_t kind, MPIR_Comm* comm, int rank,
                                MPI_Aint bytes) {
  static MPIR_Request at_the_peer;
  MPIR_Request made = {.ref_count = 1, .kind = kind, .comm = comm};
  if (kind == MPIR_REQUEST_KIND__PART_SEND) {
    MPIDI_PART_REQUEST(&made, u.send.dest) = rank;
  } else {
    MPIDI_PART_REQUEST(&made, u.recv.source) = rank;
    MPIDIG_PART_REQUEST(&made, peer_req_ptr) = &at_the_peer;
    MPIDIG_PART_REQUEST(&made, u.recv).sdata_size = bytes;
  }
  return made;
}

START_TEST(partitioned_send_is_cleared_by_the_rank_that_it_goes_to) {
  MPIDIG_part_cts_msg_t m = {.sreq_ptr = &requests[0]};
  requests[0] = partitioned(MPIR_REQUEST_KIND__PART_SEND, &inter, 0, 0);
  ck_assert_int_eq(check(FRIEND, MPIDIG_PART_CTS, &m, sizeof m, 0), LITE_MEMBER);
  ck_assert_int_eq(check(OTHER_FRIEND, MPIDIG_PART_CTS, &m, sizeof m, 0), LITE_NOT_A_MEMBER);
  ck_assert_int_eq(check(STRANGER, MPIDIG_PART_CTS, &m, sizeof m, 0), LITE_NOT_A_MEMBER);
  requests[0] = partitioned(MPIR_REQUEST_KIND__PART_SEND, &world, 1, 0);
  for (int peer = FRIEND; peer <= STRANGER; peer++)
    ck_assert_int_eq(check(peer, MPIDIG_PART_CTS, &m, sizeof m, 0), LITE_NOT_A_MEMBER);
  requests[0] = partitioned(MPIR_REQUEST_KIND__PART_RECV, &inter, 0, 0);
  ck_assert_int_eq(check(FRIEND, MPIDIG_PART_CTS, &m, sizeof m, 0), LITE_NOT_A_MEMBER);
  requests[0] = partitioned(MPIR_REQUEST_KIND__PART_SEND, NULL, 0, 0);
  ck_assert_int_eq(check(FRIEND, MPIDIG_PART_CTS, &m, sizeof m, 0), LITE_NOT_A_MEMBER);
}
END_TEST

START_TEST(partitioned_receive_takes_the_announced_data_of_the_rank_that_it_is_from) {
  MPIDIG_part_send_data_msg_t m = {.rreq_ptr = &requests[0]};
  requests[0] = partitioned(MPIR_REQUEST_KIND__PART_RECV, &inter, 1, 24);
  ck_assert_int_eq(check(OTHER_FRIEND, MPIDIG_PART_SEND_DATA, &m, sizeof m, 24), LITE_MEMBER);
  ck_assert_int_eq(check(FRIEND, MPIDIG_PART_SEND_DATA, &m, sizeof m, 24), LITE_NOT_A_MEMBER);
  ck_assert_int_eq(check(STRANGER, MPIDIG_PART_SEND_DATA, &m, sizeof m, 24), LITE_NOT_A_MEMBER);
  /* the host would read as much as was announced */
  ck_assert_int_eq(check(OTHER_FRIEND, MPIDIG_PART_SEND_DATA, &m, sizeof m, 8), LITE_NOT_A_MEMBER);
  MPIDIG_PART_REQUEST(&requests[0], peer_req_ptr) = NULL; /* nothing was */
  ck_assert_int_eq(check(OTHER_FRIEND, MPIDIG_PART_SEND_DATA, &m, sizeof m, 24), LITE_NOT_A_MEMBER);
  requests[0] = partitioned(MPIR_REQUEST_KIND__PART_RECV, &world, 1, 24);
  for (int peer = FRIEND; peer <= STRANGER; peer++)
    ck_assert_int_eq(check(peer, MPIDIG_PART_SEND_DATA, &m, sizeof m, 24), LITE_NOT_A_MEMBER);
  /* one that came before its receive has no communicator */
  requests[0] = partitioned(MPIR_REQUEST_KIND__PART_RECV, NULL, 1, 24);
  ck_assert_int_eq(check(OTHER_FRIEND, MPIDIG_PART_SEND_DATA, &m, sizeof m, 24), LITE_NOT_A_MEMBER);
}
END_TEST

/* ---- whom we part from ---- */

static void another_thread_meets_one(void) {
  if (tables_count == 1) add_table(known_peers++, 1);
}

START_TEST(process_that_is_met_meanwhile_is_not_parted_from) {
  on_dynproc = another_thread_meets_one;
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted_count, 3); /* nobody was in a table */
  for (int i = 0; i < 3; i++) ck_assert_int_eq(parted[i], 2 + i);
}
END_TEST

/* ---- whom we answer ---- */

START_TEST(caller_that_takes_no_answer_has_one_waiting) {
  struct {
    uint32_t kind; /* MPIDI_LITE_first_words of lite_calls.h: a call */
    int32_t tag;
    uint64_t call;
    char proof[LITE_PROOF_BYTES];
    uint32_t bytes;
  } words = {0};
  const size_t bytes = offsetof(typeof(words), bytes) + sizeof words.bytes;
  credit[STRANGER] = 3;
  credit[FRIEND] = 2000;
  for (words.call = 1; words.call <= 1000; words.call++)
    for (int peer = FRIEND; peer <= STRANGER; peer += STRANGER - FRIEND)
      MPIDI_LITE_hear_first_words(peer, &words, bytes, NULL, 0); /* its proof is none: refused */
  ck_assert_int_eq(sent[STRANGER], 4);
  ck_assert_int_eq(sent[FRIEND], 1000);
}
END_TEST

/* ---- before the device, and after it ---- */

START_TEST(without_a_device_there_is_neither_name_nor_port) {
  int *lengths = NULL, *length = NULL;
  char *names = NULL, *port = NULL;
  known_peers = 0;
  ck_assert_int_eq(MPIDI_LITE_get_local_upids(NULL, &lengths, &names), MPI_ERR_PORT);
  ck_assert(lengths == NULL && names == NULL);
  ck_assert(strstr(error_text, "before the world communicator exists") != NULL);
  error_text[0] = '\0';
  ck_assert_int_eq(MPIDI_LITE_open_port(7, &length, &port), MPI_ERR_PORT);
  ck_assert(length == NULL && port == NULL);
  ck_assert(strstr(error_text, "before the world communicator exists") != NULL);
  MPIDI_LITE_close_port(7);
  ck_assert_int_eq(ports_closed, 0);
  known_peers = 5;
  MPIDI_LITE_close_port(7);
  ck_assert_int_eq(ports_closed, 1);
}
END_TEST

/* ---- the network beside shared memory ---- */

unsigned MPIDI_LITE_shared_memory_moves;

/* The host polls the network only where shared memory says that nothing has moved there. */
START_TEST(shared_memory_that_moves_all_the_time_lets_the_network_in) {
  int let_in = 0;
  MPIDI_LITE_shared_memory_moves = 0;
  for (int i = 0; i < 160; ++i) {
    int made = 1;
    MPIDI_LITE_note_shared_memory(&made, 0);
    let_in += made == 0;
  }
  ck_assert_int_eq(let_in, 10);
  ck_assert_uint_eq(MPIDI_LITE_shared_memory_moves, 160);
  int made = 1;
  MPIDI_LITE_note_shared_memory(&made, 1); /* by something else before */
  ck_assert_int_eq(made, 1);
  ck_assert_uint_eq(MPIDI_LITE_shared_memory_moves, 160);
}
END_TEST

/* ---- who says that the job cannot start ---- */

static void start_fails(int rank, int code, const char* text) {
  int tag_bits;
  MPIR_Process.rank = rank;
  ck_assert_int_eq(MPIDI_LITE_init_local(&tag_bits), MPI_SUCCESS);
  init_world_code = code;
  last_error = text;
  ck_assert_int_ne(MPIDI_LITE_init_world(), MPI_SUCCESS);
  ck_assert_int_eq(aborts, 1);
}

START_TEST(what_every_rank_sees_is_said_by_rank_0) {
  start_fails(0, LITE_ERR_JOB, "two cards");
  ck_assert_str_eq(abort_text, "two cards");
  ck_assert(slept_s == 0);
}
END_TEST

START_TEST(another_rank_gives_rank_0_time_to_say_it) {
  start_fails(1, LITE_ERR_JOB, "two cards");
  ck_assert(slept_s >= 2);
}
END_TEST

START_TEST(what_a_rank_may_be_the_only_one_to_see_it_says_at_once_with_rank_and_host) {
  static const int codes[] = {LITE_ERR_ARG, LITE_ERR_NOMEM, LITE_ERR_SYSTEM};
  char host[64] = "", want[256];
  gethostname(host, sizeof host - 1);
  start_fails(1, codes[_i], "no scope");
  snprintf(want, sizeof want, "rank 1 on host %s cannot start: no scope", host);
  ck_assert_str_eq(abort_text, want);
  ck_assert(slept_s == 0);
}
END_TEST

/* It does not come: it is dead. One of another job does not matter, nor does one that comes. */
START_TEST(last_barrier_does_not_wait_for_a_lost_rank_for_ever) {
  barrier_waits = 1;
  lost = 1;
  ck_assert_int_ne(MPIDI_LITE_last_barrier(), MPI_SUCCESS);
  ck_assert_int_gt(coarse_s, 10);
  ck_assert_int_lt(coarse_s, 20);
  ck_assert_int_eq(barrier_waits, 1);
}
END_TEST
START_TEST(last_barrier_waits_for_ranks_that_come) {
  barrier_waits = 1;
  lost = 2; /* of another job */
  ck_assert_int_eq(MPIDI_LITE_last_barrier(), MPI_SUCCESS);
  ck_assert_int_ge(coarse_s, 100);
}
END_TEST

/* Table 1 is of processes that have come into no communicator, table 2 of others. */
static void add_met(void) {
  add_table(FRIEND, 2);
  tables[1]->ref_count = 0;
  add_table(STRANGER, 1);
  tables[2]->ref_count = 1;
}

START_TEST(processes_of_an_intercommunicator_that_fails_are_forgotten) {
  const uint64_t gpids[] = {MPIDIU_GPID_CREATE(0, 1), MPIDIU_GPID_CREATE(1, 0),
                            MPIDIU_GPID_CREATE(1, 1), MPIDIU_GPID_CREATE(2, 0)};
  add_met();
  MPIDI_LITE_forget_strangers(4, NULL); /* it failed before it knew them */
  ck_assert_ptr_nonnull(tables[1]);
  MPIDI_LITE_forget_strangers(4, gpids);
  ck_assert_ptr_nonnull(tables[0]);
  ck_assert_ptr_null(tables[1]);
  ck_assert_ptr_nonnull(tables[2]);
  ck_assert_int_eq(parted_count, 2);
  ck_assert_int_eq(parted[0] + parted[1], FRIEND + OTHER_FRIEND);
}
END_TEST

START_TEST(tables_that_nobody_uses_go_before_the_host_ends) {
  add_met();
  MPIDI_LITE_free_unused_tables();
  ck_assert_ptr_nonnull(tables[0]);
  ck_assert_ptr_null(tables[1]);
  ck_assert_ptr_nonnull(tables[2]);
}
END_TEST

/* ---- what the leader of a group tells the others ---- */

enum { LEADER = 2, LINE = 0x700 /* which says more than its class */ };
/* What the leader returns, and another rank then. */
static void share(int error, int* leaders, int* others) {
  MPIR_Comm group = {.rank = LEADER, .local_size = 4};
  *leaders = MPIDI_LITE_share_error(&group, LEADER, error);
  error_text[0] = '\0';
  group.rank = 0;
  *others = MPIDI_LITE_share_error(&group, LEADER, MPI_SUCCESS);
  ck_assert_int_eq(broadcasts, 2);
}

START_TEST(group_hears_that_nothing_is_wrong) {
  int leaders, others;
  share(MPI_SUCCESS, &leaders, &others);
  ck_assert_int_eq(leaders, MPI_SUCCESS);
  ck_assert_int_eq(others, MPI_SUCCESS);
}
END_TEST

START_TEST(group_hears_the_cause_of_its_leaders_error) {
  static const struct {
    const char *stack, *cause;
  } table[] = {
      {"Other MPI error, error stack:\nMPIC_Sendrecv(344): fail\nMPIC_Wait(64)....: lost h3: reset",
       "lost h3: reset"},
      {"Other MPI error", "Other MPI error"},
      {"", ""},
  };
  char want[256];
  int leaders, others;
  error_stack = table[_i].stack;
  share(MPI_ERR_PORT | LINE, &leaders, &others);
  ck_assert_int_eq(leaders, MPI_ERR_PORT | LINE);
  ck_assert_int_eq(others, MPI_ERR_PORT);
  snprintf(want, sizeof want, "ch_lite: rank 2, for all: %s", table[_i].cause);
  ck_assert_str_eq(error_text, want);
}
END_TEST

START_TEST(cause_that_is_too_long_is_cut) {
  static char stack[3000];
  int leaders, others;
  memset(stack, 'x', sizeof stack - 1);
  error_stack = stack;
  share(MPI_ERR_OTHER, &leaders, &others);
  ck_assert_int_eq(others, MPI_ERR_OTHER);
  ck_assert_uint_gt(strlen(error_text), 200);
}
END_TEST

/* An error that ends the job, whatever the error handler, in a communicator with another job. */
START_TEST(job_that_ends_leaves_the_other_one_alone) {
  MPIR_Process.comm_world = &world;
  ck_assert_ptr_eq(MPIDI_LITE_comm_to_end(&inter), &world);
  MPIR_Comm part = world;
  ck_assert_ptr_eq(MPIDI_LITE_comm_to_end(&part), &part);
  ck_assert_ptr_null(MPIDI_LITE_comm_to_end(NULL));
  MPIR_Process.comm_world = NULL; /* a session */
  ck_assert_ptr_eq(MPIDI_LITE_comm_to_end(&inter), &inter);
}
END_TEST

START_TEST(loss_of_another_job_is_not_fatal) {
  int leaders, others;
  error_stack = "a: b";
  share(MPI_ERR_OTHER | ERROR_FATAL_MASK, &leaders, &others);
  ck_assert_int_eq(leaders, MPI_ERR_OTHER);
  ck_assert_int_eq(others, MPI_ERR_OTHER);
}
END_TEST

START_TEST(group_that_cannot_be_told_is_an_error_too) {
  int leaders, others;
  broadcast_code = MPI_ERR_TRUNCATE;
  share(MPI_SUCCESS, &leaders, &others);
  ck_assert_int_eq(leaders, MPI_ERR_TRUNCATE);
  ck_assert_int_eq(others, MPI_ERR_TRUNCATE);
}
END_TEST

int main(void) {
  Suite* suite = suite_create("glue");
  TCase* tests = tcase_create("glue");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, device_is_given_the_check_at_the_start);
  tcase_add_test(tests, communicators_are_named_by_their_contexts);
  tcase_add_test(tests, garbage_is_of_no_member_whatever_its_handler);
  tcase_add_test(tests, end_of_the_job_is_heard_from_who_shares_a_communicator);
  tcase_add_test(tests, window_is_open_to_the_ranks_of_its_communicator_under_their_own_rank);
  tcase_add_test(tests,
                 answer_to_an_access_names_a_request_that_is_one_in_a_window_with_its_sender);
  tcase_add_test(tests, partitioned_send_is_announced_in_a_common_communicator_by_its_rank);
  tcase_add_test(tests, partitioned_send_is_cleared_by_the_rank_that_it_goes_to);
  tcase_add_test(tests, partitioned_receive_takes_the_announced_data_of_the_rank_that_it_is_from);
  tcase_add_test(tests, process_that_is_met_meanwhile_is_not_parted_from);
  tcase_add_test(tests, caller_that_takes_no_answer_has_one_waiting);
  tcase_add_test(tests, without_a_device_there_is_neither_name_nor_port);
  tcase_add_test(tests, shared_memory_that_moves_all_the_time_lets_the_network_in);
  tcase_add_test(tests, what_every_rank_sees_is_said_by_rank_0);
  tcase_add_test(tests, another_rank_gives_rank_0_time_to_say_it);
  tcase_add_test(tests, last_barrier_does_not_wait_for_a_lost_rank_for_ever);
  tcase_add_test(tests, last_barrier_waits_for_ranks_that_come);
  tcase_add_test(tests, processes_of_an_intercommunicator_that_fails_are_forgotten);
  tcase_add_test(tests, tables_that_nobody_uses_go_before_the_host_ends);
  tcase_add_test(tests, group_hears_that_nothing_is_wrong);
  tcase_add_loop_test(tests, group_hears_the_cause_of_its_leaders_error, 0, 3);
  tcase_add_test(tests, cause_that_is_too_long_is_cut);
  tcase_add_test(tests, job_that_ends_leaves_the_other_one_alone);
  tcase_add_test(tests, loss_of_another_job_is_not_fatal);
  tcase_add_test(tests, group_that_cannot_be_told_is_an_error_too);
  tcase_add_loop_test(
      tests, what_a_rank_may_be_the_only_one_to_see_it_says_at_once_with_rank_and_host, 0, 3);
  suite_add_tcase(suite, tests);
  SRunner* runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
