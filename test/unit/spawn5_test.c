/* Dynamic processes under MPICH 5 (lite_spawn5.c and lite_calls.c) without the host: compiled
 * against host/mpidimpl.h as of 5.0.1, with the host's and the device's functions below. Here: data
 * between the two roots and whose it is, what ends a wait, what a process of another job can have
 * kept here, and whom we part from. */
#include <check.h>
#include <pthread.h>
#include <stdarg.h>

#include "ch_lite/ch4/lite_calls.h"

/* ---- the host ---- */

MPIDI_CH4_Global_t MPIDI_global;
MPIR_Process_t MPIR_Process;

/* Every block is followed by bytes that nobody may write. */
enum { GUARD_BYTES = 64 };
static const unsigned char kGuard = 0xa5;
static size_t live_blocks, live_bytes;
static int blocks_left; /* so many more are to be had; -1: any number */
void* host_calloc(size_t count, size_t size) {
  const size_t bytes = count * size;
  if (blocks_left == 0) return NULL;
  if (blocks_left > 0) blocks_left--;
  unsigned char* block = malloc(16 + bytes + GUARD_BYTES);
  memcpy(block, &bytes, sizeof bytes);
  memset(block + 16, 0, bytes);
  memset(block + 16 + bytes, kGuard, GUARD_BYTES);
  live_blocks++;
  live_bytes += bytes;
  return block + 16;
}
static size_t bytes_of(const void* block) {
  size_t bytes;
  memcpy(&bytes, (const char*)block - 16, sizeof bytes);
  return bytes;
}
void host_free(void* block) {
  if (block == NULL) return;
  const unsigned char* end = (unsigned char*)block + bytes_of(block);
  for (size_t i = 0; i < GUARD_BYTES; i++)
    ck_assert_msg(end[i] == kGuard, "byte %zu behind a block of %zu was written", i,
                  bytes_of(block));
  live_blocks--;
  live_bytes -= bytes_of(block);
  free((char*)block - 16);
}
void* host_realloc(void* block, size_t size) {
  void* made = host_calloc(1, size);
  if (made == NULL || block == NULL) return made;
  memcpy(made, block, MPL_MIN(size, bytes_of(block)));
  host_free(block);
  return made;
}

static int lock_opened; /* so often while something was waited for */
void host_enters(const MPID_Thread_mutex_t* mutex) {}
void host_yields(const MPID_Thread_mutex_t* mutex) {
  lock_opened += mutex == &MPIDI_VCI_LOCK(MPIDI_LITE_VCI);
}

static double now_s;
void host_time(MPL_time_t* now) { *now = now_s; }

static char error_text[512]; /* of the last MPI error */
int MPIR_Err_create_code(int last, int fatal, const char* function, int line, int class_,
                         const char* generic, const char* specific, ...) {
  va_list arguments;
  va_start(arguments, specific);
  if (specific != NULL) vsnprintf(error_text, sizeof error_text, specific, arguments);
  va_end(arguments);
  return class_;
}

MPIDI_av_entry_t* MPIDIU_comm_rank_to_av(MPIR_Comm* comm, int rank) {
  ck_assert_int_ge(rank, 0);
  ck_assert_int_lt(rank, comm->remote_size);
  return &comm->remote[rank];
}
/* The small table for roots, and the tables of two jobs. */
enum { ENTRIES = 4 };
static MPIDI_av_entry_t small_table[ENTRIES], world_tables[2][ENTRIES];
static bool is_taken[ENTRIES]; /* in the small table */
static int index_of(MPIR_Lpid lpid) {
  ck_assert((lpid & ~MPIR_LPID_DYNAMIC_MASK) < ENTRIES);
  return (int)(lpid & ~MPIR_LPID_DYNAMIC_MASK);
}
int MPIDIU_free_dynamic_lpid(MPIR_Lpid lpid) {
  ck_assert(lpid & MPIR_LPID_DYNAMIC_MASK);
  ck_assert(is_taken[index_of(lpid)]);
  is_taken[index_of(lpid)] = false;
  return MPI_SUCCESS;
}
MPIDI_av_entry_t* MPIDIU_lpid_to_av_slow(MPIR_Lpid lpid) {
  if (lpid & MPIR_LPID_DYNAMIC_MASK) {
    ck_assert(is_taken[index_of(lpid)]);
    return &small_table[index_of(lpid)];
  }
  ck_assert(lpid >> 32 < 2 && (lpid & 0xffffffff) < ENTRIES);
  return &world_tables[lpid >> 32][lpid & 0xffffffff];
}

/* What happens while something is waited for; the number of this poll, from 1. */
static void (*on_poll)(int poll);
static int polls, progress_error_at;
enum { FOR_EVER = 10000 };
int MPIDI_progress_test_vci(int vci) {
  ck_assert_int_eq(vci, 0);
  polls++;
  ck_assert_msg(polls < FOR_EVER, "this waits for ever");
  if (on_poll != NULL) on_poll(polls);
  return polls == progress_error_at ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* ---- other files of the glue ---- */

MPIDI_LITE_am_send_t* MPIDI_LITE_am_copy_to_send(const void* data, size_t bytes) {
  MPIDI_LITE_am_send_t* send = MPL_calloc(1, sizeof *send, MPL_MEM_OTHER);
  if (send == NULL) return NULL;
  send->packed = MPL_malloc(bytes, MPL_MEM_BUFFER);
  if (send->packed == NULL) {
    MPL_free(send);
    return NULL;
  }
  memcpy(send->packed, data, bytes);
  return send;
}
void MPIDI_LITE_am_send_done(MPIDI_LITE_am_send_t* send) {
  MPL_free(send->packed);
  MPL_free(send);
}
enum { PEERS = 8 };
static bool in_a_communicator[PEERS];
bool MPIDI_LITE_shares_a_communicator(int peer) { return in_a_communicator[peer]; }

/* ---- the device ---- */

__thread lite_call_state lite_call __attribute__((tls_model("initial-exec")));
lite_hot_state lite_hot;
void lite_host_lets_go_slow(void) {}

/* The job has the ranks 0 (this one) and 1. Others are of other jobs. */
enum { NEIGHBOUR = 1, CALLER = 2, OWNER = 3, OTHER = 4, STRANGER = 5 };
enum { PORT = 7, OTHER_PORT = 8 };
static int known_peers;
static bool lost[PEERS], lets_words_wait[PEERS], port_is_open[16];
static int parted[PEERS], parted_count;
static const char* last_error = "no error";
static const char kProof[] = "it has the port's name";

int lite_peers(void) { return known_peers; }
const char* lite_last_error(void) { return last_error; }
void lite_part(int peer) {
  ck_assert_int_ge(peer, 0);
  ck_assert_int_lt(peer, PEERS);
  parted[peer]++;
  parted_count++;
}

static int fails(int code, const char* text) {
  last_error = text;
  return code;
}
/* Names: the peer in the first byte. */
static void make_name(int peer, char* name, int bytes) {
  memset(name, '.', (size_t)bytes);
  name[0] = (char)('0' + peer);
}
int lite_name(int peer, void* name) {
  make_name(peer, name, LITE_NAME_BYTES);
  return LITE_OK;
}
int lite_meet(const void* name) {
  const int peer = *(const char*)name - '0';
  if (peer < 0 || peer >= PEERS) return fails(LITE_ERR_ARG, "no name");
  if (lost[peer]) return fails(LITE_ERR_PEER_LOST, "it was lost");
  return peer;
}
int lite_meet_at_port(const void* port, void* proof) {
  const int peer = lite_meet(port);
  if (peer >= 0) memcpy(proof, kProof, sizeof kProof);
  return peer < 0 ? fails(peer, "that port's owner cannot be met") : peer;
}
int lite_open_port(uint32_t id, void* port) {
  port_is_open[id] = true;
  make_name(0, port, LITE_PORT_BYTES);
  return LITE_OK;
}
void lite_close_port(uint32_t id) {
  ck_assert_int_gt(known_peers, 0); /* there is a device */
  port_is_open[id] = false;
}
int lite_port_is_open(uint32_t id) { return port_is_open[id]; }
int lite_check_caller(uint32_t id, int peer, const void* proof) {
  return id < 16 && port_is_open[id] && memcmp(proof, kProof, sizeof kProof) == 0;
}
int lite_check_peer(int peer) {
  ck_assert_int_ge(peer, 0);
  return lost[peer] ? fails(LITE_ERR_PEER_LOST, "it was lost") : LITE_OK;
}
int lite_has_left(int peer) { return lost[peer]; }
int lite_am_waits(int peer) { return lets_words_wait[peer]; }

/* What has been said. */
typedef struct {
  int peer;
  size_t header_bytes, bytes;
  MPIDI_LITE_first_words words;
  char data[64];
  const void* at; /* where the data is until it has been sent */
  void* cookie;
} Said;
static Said said[64];
static int said_count, am_code;
int lite_am_isend(int peer, uint32_t handler, const void* header, size_t header_bytes,
                  const void* data, size_t data_bytes, void* cookie, lite_request** request) {
  ck_assert_uint_eq(handler, MPIDI_LITE_AM_FIRST_WORDS);
  if (am_code < 0) return fails(am_code, "it cannot be sent");
  ck_assert_int_lt(said_count, 64);
  Said* made = &said[said_count++];
  memset(made, 0, sizeof *made);
  made->peer = peer;
  made->header_bytes = header_bytes;
  ck_assert_uint_le(header_bytes, sizeof made->words);
  memcpy(&made->words, header, header_bytes);
  ck_assert_uint_eq(header_bytes, offsetof(MPIDI_LITE_first_words, data) + made->words.bytes);
  made->bytes = data_bytes;
  if (data_bytes > 0) memcpy(made->data, data, MPL_MIN(data_bytes, sizeof made->data));
  made->at = data;
  made->cookie = cookie;
  return data_bytes > 0 ? am_code : LITE_OK;
}
/* How often it has been said to the peer. */
static int times_said(uint32_t kind, int peer) {
  int times = 0;
  for (int i = 0; i < said_count; i++) times += said[i].peer == peer && said[i].words.kind == kind;
  return times;
}
static const Said* last_said(uint32_t kind, int peer) {
  for (int i = said_count - 1; i >= 0; i--)
    if (said[i].peer == peer && said[i].words.kind == kind) return &said[i];
  ck_abort_msg("nothing of kind %u was said to peer %d", kind, peer);
  return NULL;
}

/* ---- what the other side does ---- */

/* ch4_spawn.c: what a caller says to the port's owner. */
typedef struct {
  int name_bytes;
  char name[4096];
} Header;
enum { HEADER_BYTES = sizeof(int) + LITE_NAME_BYTES };

static void hear(int peer, const MPIDI_LITE_first_words* words, const void* data, size_t bytes) {
  /* from a block of its own size, so that a sanitizer sees what is read behind it */
  const size_t header_bytes = offsetof(MPIDI_LITE_first_words, data) + words->bytes;
  void* header = malloc(header_bytes);
  memcpy(header, words, header_bytes);
  MPIDI_LITE_hear_first_words(peer, header, header_bytes, data, bytes);
  free(header);
}
static MPIDI_LITE_first_words call_words(int peer, uint64_t call) {
  MPIDI_LITE_first_words words = {
      .kind = MPIDI_LITE_CALL, .tag = PORT, .call = call, .bytes = HEADER_BYTES};
  Header header = {.name_bytes = LITE_NAME_BYTES};
  make_name(peer, header.name, LITE_NAME_BYTES);
  memcpy(words.data, &header, HEADER_BYTES);
  memcpy(words.proof, kProof, sizeof kProof);
  return words;
}
static void hear_call(int peer, uint64_t call) {
  const MPIDI_LITE_first_words words = call_words(peer, call);
  hear(peer, &words, NULL, 0);
}
static void hear_of_call(uint32_t kind, int peer, uint64_t call) {
  const MPIDI_LITE_first_words words = {.kind = kind, .tag = PORT, .call = call};
  hear(peer, &words, NULL, 0);
}
static MPIDI_LITE_first_words data_words(uint64_t call, int tag, uint32_t context) {
  MPIDI_LITE_first_words words = {
      .kind = MPIDI_LITE_EXCHANGE, .tag = tag, .call = call, .bytes = sizeof context};
  memcpy(words.data, &context, sizeof context);
  return words;
}
static void hear_data(int peer, uint64_t call, int tag, uint32_t context, const char* text) {
  const MPIDI_LITE_first_words words = data_words(call, tag, context);
  hear(peer, &words, text, strlen(text));
}

/* ---- what the host does, as ch4_spawn.c and ch4_comm.c do it ---- */

static const MPIR_Lpid kCalled = MPIR_LPID_DYNAMIC_MASK | 0, kAccepted = MPIR_LPID_DYNAMIC_MASK | 1;
/* Between roots: without contexts, which they do not know of one another yet. */
static MPIR_Comm roots = {.comm_kind = MPIR_COMM_KIND__INTERCOMM};

/* MPIDIU_insert_dynamic_upid: the result is lost there. */
static void insert_root(MPIR_Lpid lpid, const char* name, int bytes) {
  is_taken[index_of(lpid)] = true;
  MPIDI_LITE_insert_upid(lpid, name, bytes);
}

/* establish_peer_conn */
static int call_port_named(const char* port, int bytes, int timeout_s) {
  Header header = {.name_bytes = LITE_NAME_BYTES};
  insert_root(kCalled, port, bytes);
  make_name(0, header.name, LITE_NAME_BYTES);
  return MPIDI_LITE_dynamic_send(kCalled, PORT, &header, HEADER_BYTES, timeout_s);
}
static int call_port_of(int peer) {
  char port[LITE_PORT_BYTES];
  make_name(peer, port, sizeof port);
  return call_port_named(port, sizeof port, 0);
}
static uint64_t call_of(int peer) { return last_said(MPIDI_LITE_CALL, peer)->words.call; }

static int accept_at(int port, int timeout_s) {
  Header header;
  memset(&header, 0, sizeof header);
  const int code = MPIDI_LITE_dynamic_recv(port, &header, sizeof header, timeout_s);
  if (code == MPI_SUCCESS) insert_root(kAccepted, header.name, header.name_bytes);
  return code;
}

/* Sends "ours", and has `got` after that. */
static char got[64];
static int exchange(MPIR_Lpid lpid, MPIR_Comm* comm, int bytes, int timeout_s) {
  memset(got, 0, sizeof got);
  return MPIDI_LITE_dynamic_sendrecv(lpid, comm, PORT, "ours", 4, got, bytes, timeout_s);
}
static int exchange_with(MPIR_Lpid lpid, int bytes, int timeout_s) {
  return exchange(lpid, &roots, bytes, timeout_s);
}

/* MPID_Intercomm_exchange: a process of the other job by its name, as rank of its job. */
static int insert_member(int peer, int rank) {
  char name[LITE_NAME_BYTES];
  make_name(peer, name, sizeof name);
  return MPIDI_LITE_insert_upid((MPIR_Lpid)MPIR_LPID_FROM(1, rank), name, sizeof name);
}

/* A communicator with that process begins. */
static MPIDI_av_entry_t ranks[PEERS];
static void communicator_with(int peer) {
  MPIDI_LITE_AV(&ranks[0]).peer = 0;
  MPIDI_LITE_AV(&ranks[1]).peer = peer;
  MPIR_Comm comm = {.remote_size = 2, .remote = ranks};
  in_a_communicator[peer] = true;
  MPIDI_LITE_meet_members(&comm);
}

/* One after the other, as if under the lock. */
static void* run_function(void* function) {
  (*(void (**)(void))function)();
  return NULL;
}
static void in_another_thread(void (*function)(void)) {
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, run_function, &function), 0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

static void set_up(void) {
  MPIR_Process = (MPIR_Process_t){.rank = 0, .size = 2, .local_size = 1};
  MPIDI_global.n_vcis = 1;
  known_peers = PEERS;
  blocks_left = -1;
  in_a_communicator[0] = in_a_communicator[NEIGHBOUR] = true;
  port_is_open[PORT] = port_is_open[OTHER_PORT] = true;
  for (int i = 0; i < ENTRIES; i++)
    MPIDI_LITE_AV(&small_table[i]).peer = MPIDI_LITE_AV(&world_tables[1][i]).peer = -1;
  for (int i = 0; i < 2; i++) MPIDI_LITE_AV(&world_tables[0][i]).peer = i;
}
static void tear_down(void) {
  blocks_left = -1;
  MPIDI_LITE_forget_first_words();
  ck_assert_uint_eq(live_blocks, 0);
  ck_assert_int_eq(parted[0] + parted[NEIGHBOUR], 0); /* of our own job */
}

/* ---- names and ports ---- */

START_TEST(names_are_those_of_the_processes_in_order) {
  MPIR_Comm world = {.local_size = 2, .remote_size = 2, .remote = world_tables[0]};
  int* lengths;
  char* names;
  ck_assert_int_eq(MPIDI_LITE_get_local_upids(&world, &lengths, &names), MPI_SUCCESS);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(lengths[i], LITE_NAME_BYTES);
    ck_assert_int_eq(lite_meet(names + i * LITE_NAME_BYTES), i);
  }
  MPL_free(lengths);
  MPL_free(names);
  /* of no communicator: our own */
  ck_assert_int_eq(MPIDI_LITE_get_local_upids(NULL, &lengths, &names), MPI_SUCCESS);
  ck_assert_int_eq(lengths[0], LITE_NAME_BYTES);
  ck_assert_int_eq(lite_meet(names), MPIR_Process.rank);
  MPL_free(lengths);
  MPL_free(names);
}
END_TEST

START_TEST(port_has_a_name_of_its_own_length) {
  int* length;
  char* port;
  port_is_open[PORT] = false;
  ck_assert_int_eq(MPIDI_LITE_open_port(PORT, &length, &port), MPI_SUCCESS);
  ck_assert_int_eq(*length, LITE_PORT_BYTES);
  ck_assert(port_is_open[PORT]);
  MPL_free(length);
  MPL_free(port);
  MPIDI_LITE_close_port(PORT);
  ck_assert(!port_is_open[PORT]);
}
END_TEST

/* No device, no memory; the host frees what it has of a port. */
START_TEST(without_a_device_or_memory_there_is_neither_name_nor_port) {
  MPIR_Comm world = {.local_size = 2, .remote_size = 2, .remote = world_tables[0]};
  int *lengths = NULL, *length = NULL;
  char *names = NULL, *port = NULL;
  if (_i == 0) known_peers = 0;
  port_is_open[PORT] = false;
  if (_i > 0) blocks_left = _i - 1;
  const int class_ = _i == 0 ? MPI_ERR_PORT : MPI_ERR_NO_MEM;
  ck_assert_int_eq(MPIDI_LITE_get_local_upids(&world, &lengths, &names), class_);
  ck_assert_uint_eq(live_blocks, 0);
  if (_i > 0) blocks_left = _i - 1;
  ck_assert_int_eq(MPIDI_LITE_open_port(PORT, &length, &port), class_);
  ck_assert(!port_is_open[PORT]);
  if (_i == 0) {
    ck_assert(strstr(error_text, "before the world communicator exists") != NULL);
    MPIDI_LITE_close_port(PORT);
  }
  MPL_free(length);
  MPL_free(port);
}
END_TEST

/* ---- data of an exchange ---- */

START_TEST(data_that_came_before_the_call_is_taken_without_waiting) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_data(OWNER, call_of(OWNER), PORT, 0, "theirs");
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_SUCCESS);
  ck_assert_str_eq(got, "theirs");
  ck_assert_int_eq(polls, 0);
}
END_TEST

static void data_comes_at_the_fourth(int poll) {
  if (poll == 4) hear_data(OWNER, call_of(OWNER), PORT, 0, "theirs");
}
START_TEST(data_that_comes_while_the_call_waits_is_taken) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  on_poll = data_comes_at_the_fourth;
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_SUCCESS);
  ck_assert_str_eq(got, "theirs");
  ck_assert_int_eq(polls, 4);
  ck_assert_int_ge(lock_opened, 3); /* so that other threads get on */
}
END_TEST

START_TEST(data_is_said_under_the_senders_context_and_the_number_of_the_call) {
  MPIR_Comm comm = {.context_id = 0x1234, .recvcontext_id = 0x5678};
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_data(OWNER, call_of(OWNER), PORT, 0x5678, "theirs");
  ck_assert_int_eq(exchange(kCalled, &comm, 6, 0), MPI_SUCCESS);
  ck_assert_str_eq(got, "theirs");
  const Said* data = last_said(MPIDI_LITE_EXCHANGE, OWNER);
  uint32_t context;
  ck_assert_uint_eq(data->words.bytes, sizeof context);
  memcpy(&context, data->words.data, sizeof context);
  ck_assert_uint_eq(context, 0x1234);
  ck_assert_int_eq(data->words.tag, PORT);
  ck_assert(data->words.call == call_of(OWNER));
  ck_assert_uint_eq(data->bytes, 4);
  ck_assert_mem_eq(data->data, "ours", 4);
}
END_TEST

/* Of each exchange that differs in one thing. */
static void hear_other_data(int which, uint64_t call) {
  switch (which) {
    case 0: hear_data(OTHER, call, PORT, 0x20, "wrong"); break;
    case 1: hear_data(OWNER, call, OTHER_PORT, 0x20, "wrong"); break;
    case 2: hear_data(OWNER, call, PORT, 0x10, "wrong"); break;
    case 3: hear_data(OWNER, call + 1, PORT, 0x20, "wrong"); break;
    default: hear_data(OWNER, 0, PORT, 0x20, "wrong"); break;
  }
}
static void right_data_comes_at_the_second(int poll) {
  if (poll == 2) hear_data(OWNER, call_of(OWNER), PORT, 0x20, "right");
}
START_TEST(data_of_another_peer_tag_context_or_call_is_left) {
  MPIR_Comm comm = {.context_id = 0x10, .recvcontext_id = 0x20};
  communicator_with(OTHER); /* it may send data as well */
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_other_data(_i, call_of(OWNER));
  on_poll = right_data_comes_at_the_second;
  ck_assert_int_eq(exchange(kCalled, &comm, 5, 0), MPI_SUCCESS);
  ck_assert_str_eq(got, "right");
  ck_assert_int_eq(polls, 2);
}
END_TEST

START_TEST(data_of_one_exchange_is_taken_in_order) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_data(OWNER, call_of(OWNER), PORT, 0, "first");
  hear_data(OWNER, call_of(OWNER), PORT, 0, "second");
  ck_assert_int_eq(exchange_with(kCalled, 5, 0), MPI_SUCCESS);
  ck_assert_str_eq(got, "first");
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_SUCCESS);
  ck_assert_str_eq(got, "second");
}
END_TEST

START_TEST(data_of_another_length_is_an_error_and_is_not_copied) {
  static const char* const texts[] = {"short", "longer"};
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_data(OWNER, call_of(OWNER), PORT, 0, texts[_i]);
  ck_assert_int_eq(exchange_with(kCalled, _i == 0 ? 6 : 5, 0), MPI_ERR_PORT);
  ck_assert_str_eq(got, "");
  ck_assert(strstr(error_text, "MPI library is another one") != NULL);
  ck_assert_int_eq(parted[OWNER], 1);
}
END_TEST

START_TEST(exchange_within_the_job_parts_from_nobody) {
  MPIR_Comm world = {.context_id = 0x10, .recvcontext_id = 0x10};
  hear_data(NEIGHBOUR, 0, PORT, 0x10, "theirs");
  ck_assert_int_eq(exchange((MPIR_Lpid)NEIGHBOUR, &world, 6, 0), MPI_SUCCESS);
  ck_assert_str_eq(got, "theirs");
  ck_assert(last_said(MPIDI_LITE_EXCHANGE, NEIGHBOUR)->words.call == 0);
  lost[NEIGHBOUR] = true;
  ck_assert_int_eq(exchange((MPIR_Lpid)NEIGHBOUR, &world, 6, 0), MPI_ERR_PORT);
  ck_assert_int_eq(parted_count, 0);
  ck_assert_int_eq(times_said(MPIDI_LITE_TAKEN_BACK, NEIGHBOUR), 0);
}
END_TEST

START_TEST(exchange_in_a_communicator_between_jobs_fails_without_ending_the_conversation) {
  MPIR_Comm inter = {.context_id = 0x10, .recvcontext_id = 0x20};
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  ck_assert_int_eq(insert_member(OTHER, 2), MPI_SUCCESS);
  communicator_with(OTHER);
  lost[OTHER] = true;
  ck_assert_int_eq(exchange((MPIR_Lpid)MPIR_LPID_FROM(1, 2), &inter, 6, 0), MPI_ERR_PORT);
  hear_data(OWNER, call_of(OWNER), PORT, 0, "theirs");
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_SUCCESS);
  ck_assert_int_eq(parted_count, 0);
}
END_TEST

START_TEST(exchange_in_a_communicator_is_of_no_call) {
  MPIR_Comm inter = {.context_id = 0x10, .recvcontext_id = 0x20};
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  ck_assert_int_eq(insert_member(OWNER, 0), MPI_SUCCESS);
  communicator_with(OWNER);
  hear_data(OWNER, 0, PORT, 0x20, "theirs");
  ck_assert_int_eq(exchange((MPIR_Lpid)MPIR_LPID_FROM(1, 0), &inter, 6, 0), MPI_SUCCESS);
  ck_assert(last_said(MPIDI_LITE_EXCHANGE, OWNER)->words.call == 0);
  ck_assert_int_eq(polls, 0);
}
END_TEST

START_TEST(data_that_is_being_sent_is_a_copy) {
  char ours[] = "ours";
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_data(OWNER, call_of(OWNER), PORT, 0, "theirs");
  am_code = LITE_PENDING;
  ck_assert_int_eq(MPIDI_LITE_dynamic_sendrecv(kCalled, &roots, PORT, ours, 4, got, 6, 0),
                   MPI_SUCCESS);
  memset(ours, '?', 4);
  const Said* data = last_said(MPIDI_LITE_EXCHANGE, OWNER);
  ck_assert_mem_eq(data->at, "ours", 4);
  MPIDI_LITE_am_send_done(MPIDI_LITE_cookie_am(data->cookie));
}
END_TEST

/* ---- what ends a wait ---- */

static void owner_is_lost_at_the_third(int poll) { lost[OWNER] = poll >= 3; }
START_TEST(lost_peer_ends_the_wait) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  on_poll = owner_is_lost_at_the_third;
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_ERR_PORT);
  ck_assert_int_eq(polls, 3);
  ck_assert_str_eq(error_text, "ch_lite: it was lost");
  ck_assert_int_eq(times_said(MPIDI_LITE_TAKEN_BACK, OWNER), 0); /* to whom? */
  ck_assert_int_eq(parted[OWNER], 1);
}
END_TEST

START_TEST(what_a_lost_peer_has_said_counts) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_data(OWNER, call_of(OWNER), PORT, 0, "theirs");
  lost[OWNER] = true;
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_SUCCESS);
}
END_TEST

START_TEST(data_that_cannot_be_sent_fails_at_once) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  am_code = LITE_ERR_PEER_LOST;
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_ERR_PORT);
  ck_assert_str_eq(error_text, "ch_lite: it cannot be sent");
  ck_assert_int_eq(polls, 0);
}
END_TEST

START_TEST(error_of_progress_ends_the_wait) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  progress_error_at = 2;
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_ERR_OTHER);
  ck_assert_int_eq(polls, 2);
  ck_assert_int_eq(times_said(MPIDI_LITE_TAKEN_BACK, OWNER), 1);
  ck_assert_int_eq(parted[OWNER], 1);
}
END_TEST

static void a_second_passes(int poll) { now_s += 1; }
START_TEST(caller_that_has_waited_for_too_long_takes_its_call_back) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  on_poll = a_second_passes;
  ck_assert_int_eq(exchange_with(kCalled, 6, 30), MPI_ERR_PORT);
  ck_assert(now_s >= 30 && now_s <= 31);
  ck_assert_int_eq(times_said(MPIDI_LITE_TAKEN_BACK, OWNER), 1);
  ck_assert(last_said(MPIDI_LITE_TAKEN_BACK, OWNER)->words.call == call_of(OWNER));
  ck_assert_int_eq(last_said(MPIDI_LITE_TAKEN_BACK, OWNER)->words.tag, PORT);
  ck_assert_int_eq(parted[OWNER], 1);
}
END_TEST

START_TEST(acceptor_that_has_waited_for_too_long_fails) {
  hear_call(CALLER, 9);
  ck_assert_int_eq(accept_at(PORT, 30), MPI_SUCCESS);
  on_poll = a_second_passes;
  ck_assert_int_eq(exchange_with(kAccepted, 6, 30), MPI_ERR_PORT);
  ck_assert(now_s >= 30 && now_s <= 31);
  ck_assert_int_eq(times_said(MPIDI_LITE_TAKEN_BACK, CALLER), 0); /* that is a caller's word */
  ck_assert_int_eq(parted[CALLER], 1);
}
END_TEST

static void data_comes_after_a_day(int poll) {
  now_s += 3600;
  if (poll == 24) hear_data(OWNER, call_of(OWNER), PORT, 0, "theirs");
}
START_TEST(without_a_limit_of_time_the_wait_goes_on) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  on_poll = data_comes_after_a_day;
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_SUCCESS);
}
END_TEST

static void is_refused_at_the_third(int poll) {
  if (poll == 3) hear_of_call(MPIDI_LITE_REFUSAL, OWNER, call_of(OWNER));
}
START_TEST(refusal_ends_the_callers_wait) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  on_poll = is_refused_at_the_third;
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_ERR_PORT);
  ck_assert_int_eq(polls, 3);
  ck_assert(strstr(error_text, "the port does not exist any more") != NULL);
  ck_assert_int_eq(parted[OWNER], 1);
}
END_TEST

START_TEST(refusal_of_another_call_or_by_another_process_is_none) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_of_call(MPIDI_LITE_REFUSAL, OWNER, call_of(OWNER));
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_ERR_PORT);
  const uint64_t first = call_of(OWNER);
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  ck_assert(call_of(OWNER) != first);
  hear_of_call(MPIDI_LITE_REFUSAL, OWNER, first);
  hear_of_call(MPIDI_LITE_REFUSAL, STRANGER, call_of(OWNER));
  polls = 0;
  on_poll = data_comes_at_the_fourth;
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_SUCCESS);
  ck_assert_int_eq(polls, 4);
}
END_TEST

static void call_is_taken_back_at_the_third(int poll) {
  if (poll == 2) hear_of_call(MPIDI_LITE_TAKEN_BACK, CALLER, 8); /* another one */
  if (poll == 3) hear_of_call(MPIDI_LITE_TAKEN_BACK, CALLER, 9);
}
START_TEST(acceptor_whose_caller_takes_the_call_back_does_not_wait_for_ever) {
  hear_call(CALLER, 9);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  on_poll = call_is_taken_back_at_the_third;
  ck_assert_int_eq(exchange_with(kAccepted, 6, 0), MPI_ERR_PORT);
  ck_assert_int_eq(polls, 3);
  ck_assert(strstr(error_text, "the caller did not wait any longer") != NULL);
  ck_assert_int_eq(parted[CALLER], 1);
}
END_TEST

START_TEST(acceptor_learns_between_two_exchanges_that_the_call_is_taken_back) {
  hear_call(CALLER, 9);
  hear_data(CALLER, 9, PORT, 0, "size");
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  ck_assert_int_eq(exchange_with(kAccepted, 4, 0), MPI_SUCCESS);
  hear_of_call(MPIDI_LITE_TAKEN_BACK, CALLER, 9);
  ck_assert_int_eq(exchange_with(kAccepted, 6, 0), MPI_ERR_PORT);
}
END_TEST

/* ---- calls ---- */

START_TEST(call_has_the_proof_and_the_hosts_header) {
  Header header;
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  const Said* call = last_said(MPIDI_LITE_CALL, OWNER);
  ck_assert_mem_eq(call->words.proof, kProof, sizeof kProof);
  ck_assert_int_eq(call->words.tag, PORT);
  ck_assert(call->words.call != 0); /* which says that it is of no call */
  ck_assert_uint_eq(call->words.bytes, HEADER_BYTES);
  memcpy(&header, call->words.data, HEADER_BYTES);
  ck_assert_int_eq(header.name_bytes, LITE_NAME_BYTES);
  ck_assert_int_eq(header.name[0], '0');
  ck_assert_uint_eq(call->bytes, 0);
}
END_TEST

START_TEST(call_that_cannot_be_sent_fails) {
  am_code = LITE_ERR_PEER_LOST;
  ck_assert_int_eq(call_port_of(OWNER), MPI_ERR_PORT);
  ck_assert_str_eq(error_text, "ch_lite: it cannot be sent");
  ck_assert_int_eq(parted[OWNER], 1);
}
END_TEST

/* The host frees it at the end of a connection, and when it cannot send it does not. */
START_TEST(entry_of_the_small_table_is_free_again_when_the_call_fails) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  ck_assert(is_taken[index_of(kCalled)]);
  if (_i == 0) lost[OWNER] = true;
  if (_i == 1) am_code = LITE_ERR_PEER_LOST;
  if (_i == 2) ck_assert_int_eq(call_port_named("no port", 7, 0), MPI_ERR_PORT);
  if (_i < 2) ck_assert_int_eq(call_port_of(OWNER), MPI_ERR_PORT);
  ck_assert(!is_taken[index_of(kCalled)]);
}
END_TEST

START_TEST(port_whose_owner_cannot_be_met_fails_in_the_send) {
  lost[OWNER] = true;
  ck_assert_int_eq(call_port_of(OWNER), MPI_ERR_PORT);
  ck_assert_str_eq(error_text, "ch_lite: that port's owner cannot be met");
  ck_assert_int_eq(said_count, 0);
  ck_assert_int_eq(polls, 0);
  ck_assert_int_eq(parted_count, 0);
}
END_TEST

START_TEST(port_that_cannot_be_met_does_not_end_another_connection) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  ck_assert_int_eq(insert_member(OWNER, 0), MPI_SUCCESS);
  lost[OTHER] = true;
  ck_assert_int_eq(call_port_of(OTHER), MPI_ERR_PORT);
  ck_assert_int_eq(parted_count, 0);
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted[OWNER], 0);
}
END_TEST

START_TEST(port_name_of_another_length_fails_in_the_send) {
  static const int lengths[] = {0, 1, LITE_NAME_BYTES, LITE_PORT_BYTES - 1, LITE_PORT_BYTES + 1};
  char port[LITE_PORT_BYTES + 1];
  make_name(OWNER, port, sizeof port);
  ck_assert_int_eq(call_port_named(port, lengths[_i], 0), MPI_ERR_PORT);
  ck_assert_int_eq(said_count, 0);
}
END_TEST

START_TEST(acceptor_takes_the_oldest_call_at_its_port) {
  MPIDI_LITE_first_words elsewhere = call_words(STRANGER, 1);
  elsewhere.tag = OTHER_PORT;
  hear(STRANGER, &elsewhere, NULL, 0);
  hear_call(CALLER, 9);
  hear_call(OTHER, 9);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  ck_assert_int_eq(MPIDI_LITE_AV(&small_table[1]).peer, CALLER);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  ck_assert_int_eq(MPIDI_LITE_AV(&small_table[1]).peer, OTHER);
  ck_assert_int_eq(polls, 0);
}
END_TEST

static void call_comes_at_the_third(int poll) {
  if (poll == 3) hear_call(CALLER, 9);
}
START_TEST(acceptor_waits_for_a_call) {
  on_poll = call_comes_at_the_third;
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  ck_assert_int_eq(polls, 3);
  ck_assert_int_ge(lock_opened, 2);
}
END_TEST

START_TEST(acceptor_does_not_wait_beyond_its_time_or_at_a_closed_port) {
  on_poll = a_second_passes;
  ck_assert_int_eq(accept_at(PORT, 20), MPI_ERR_PORT);
  ck_assert(now_s >= 20 && now_s <= 21);
  polls = 0;
  MPIDI_LITE_close_port(PORT);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_ERR_PORT);
  ck_assert_int_eq(polls, 0);
}
END_TEST

START_TEST(call_that_was_taken_back_or_whose_caller_died_is_not_accepted) {
  hear_call(CALLER, 9);
  hear_of_call(MPIDI_LITE_TAKEN_BACK, CALLER, 9);
  hear_call(OTHER, 9);
  lost[OTHER] = true;
  on_poll = a_second_passes;
  ck_assert_int_eq(accept_at(PORT, 5), MPI_ERR_PORT);
}
END_TEST

START_TEST(taking_back_another_call_leaves_this_one) {
  hear_call(CALLER, 9);
  hear_of_call(MPIDI_LITE_TAKEN_BACK, CALLER, 8);
  hear_of_call(MPIDI_LITE_TAKEN_BACK, STRANGER, 9);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
}
END_TEST

START_TEST(call_without_the_proof_is_refused) {
  MPIDI_LITE_first_words words = call_words(STRANGER, 9);
  words.proof[0] ^= 1;
  hear(STRANGER, &words, NULL, 0);
  ck_assert_int_eq(times_said(MPIDI_LITE_REFUSAL, STRANGER), 1);
  ck_assert(last_said(MPIDI_LITE_REFUSAL, STRANGER)->words.call == 9);
  lets_words_wait[STRANGER] = true;
  hear(STRANGER, &words, NULL, 0);
  ck_assert_int_eq(times_said(MPIDI_LITE_REFUSAL, STRANGER), 1);
  ck_assert_uint_eq(live_blocks, 0);
}
END_TEST

START_TEST(callers_that_wait_are_refused_when_the_port_is_closed) {
  hear_call(CALLER, 9);
  hear_call(OTHER, 5);
  MPIDI_LITE_close_port(PORT);
  ck_assert(last_said(MPIDI_LITE_REFUSAL, CALLER)->words.call == 9);
  ck_assert(last_said(MPIDI_LITE_REFUSAL, OTHER)->words.call == 5);
  ck_assert_uint_eq(live_blocks, 0);
}
END_TEST

START_TEST(caller_that_sends_another_ones_name_is_refused) {
  MPIDI_LITE_first_words words = call_words(_i == 0 ? OTHER : NEIGHBOUR, 9);
  hear(CALLER, &words, NULL, 0);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS); /* the host does not look at the name */
  ck_assert_int_eq(exchange_with(kAccepted, 6, 0), MPI_ERR_PORT);
  ck_assert_int_eq(times_said(MPIDI_LITE_EXCHANGE, OTHER), 0);
  ck_assert_int_eq(times_said(MPIDI_LITE_EXCHANGE, NEIGHBOUR), 0);
  ck_assert_int_eq(times_said(MPIDI_LITE_EXCHANGE, CALLER), 0);
  ck_assert_int_eq(polls, 0);
  ck_assert_int_eq(parted[CALLER], 1);
}
END_TEST

START_TEST(name_of_a_member_that_is_none_is_an_error) {
  char name[LITE_NAME_BYTES];
  const MPIR_Lpid lpid = (MPIR_Lpid)MPIR_LPID_FROM(1, 0);
  make_name(OTHER, name, sizeof name);
  ck_assert_int_eq(MPIDI_LITE_insert_upid(lpid, name, sizeof name - 1), MPI_ERR_PORT);
  name[0] = '!';
  ck_assert_int_eq(MPIDI_LITE_insert_upid(lpid, name, sizeof name), MPI_ERR_PORT);
  ck_assert_int_lt(MPIDI_LITE_AV(&world_tables[1][0]).peer, 0);
}
END_TEST

START_TEST(connection_is_made_from_the_first_word_to_the_communicator) {
  const bool calls = _i == 0;
  const int root = calls ? OWNER : CALLER;
  const MPIR_Lpid lpid = calls ? kCalled : kAccepted;
  uint64_t call = 9;
  if (calls) {
    ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
    call = call_of(OWNER);
  } else {
    hear_call(CALLER, 9);
    hear_data(CALLER, 9, PORT, 0, "size"); /* who calls does not wait for an answer */
    ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  }
  if (calls) hear_data(root, call, PORT, 0, "size");
  ck_assert_int_eq(exchange_with(lpid, 4, 0), MPI_SUCCESS);
  ck_assert(last_said(MPIDI_LITE_EXCHANGE, root)->words.call == call);
  hear_data(root, call, PORT, 0, "data");
  ck_assert_int_eq(exchange_with(lpid, 4, 0), MPI_SUCCESS);
  ck_assert_str_eq(got, "data");
  ck_assert_int_eq(insert_member(root, 0), MPI_SUCCESS);
  ck_assert_int_eq(insert_member(OTHER, 1), MPI_SUCCESS);
  ck_assert_int_eq(MPIDI_LITE_AV(&world_tables[1][0]).peer, root);
  ck_assert_int_eq(MPIDI_LITE_AV(&world_tables[1][1]).peer, OTHER);
  communicator_with(root);
  communicator_with(OTHER);
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted[root] + parted[OTHER], 0);
  ck_assert_int_eq(polls, 0);
}
END_TEST

/* ---- what others can have kept here ---- */

START_TEST(stranger_has_no_data_kept) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  const size_t before = live_blocks;
  for (uint64_t call = 0; call < 3; call++) hear_data(STRANGER, call, PORT, 0, "data");
  hear_of_call(MPIDI_LITE_TAKEN_BACK, STRANGER, 1);
  hear_of_call(MPIDI_LITE_EXCHANGE + 1, STRANGER, 1); /* there is no such word */
  ck_assert_uint_eq(live_blocks, before);
}
END_TEST

START_TEST(words_that_are_no_words_are_dropped) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  const size_t before = live_blocks, fixed = offsetof(MPIDI_LITE_first_words, data);
  MPIDI_LITE_first_words words = data_words(1, PORT, 0);
  for (size_t bytes = 0; bytes <= sizeof words + 64; bytes++) {
    char* header = calloc(1, bytes + 1);
    memcpy(header, &words, MPL_MIN(bytes, sizeof words));
    if (bytes != fixed + sizeof(uint32_t))
      MPIDI_LITE_hear_first_words(OWNER, header, bytes, "data", 4);
    free(header);
  }
  words.bytes = 0; /* no context */
  hear(OWNER, &words, "data", 4);
  words.bytes = 8;
  hear(OWNER, &words, "data", 4);
  words = data_words(1, PORT, 0);
  hear(OWNER, &words, NULL, 0); /* no data */
  ck_assert_uint_eq(live_blocks, before);
}
END_TEST

static void hear_bytes(int peer, uint64_t call, size_t bytes) {
  const MPIDI_LITE_first_words words = data_words(call, PORT, 0);
  char* data = calloc(1, bytes);
  hear(peer, &words, data, bytes);
  free(data);
}
/* Before it is accepted, after that, and in a communicator. */
START_TEST(process_of_another_job_has_so_much_kept_in_all) {
  const size_t max = MPIDI_LITE_EXCHANGE_BYTES_MAX;
  const uint64_t call = _i >= 2 ? 0 : 9;
  hear_call(CALLER, 9);
  if (_i >= 1) ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  if (_i >= 2) communicator_with(CALLER);
  hear_bytes(CALLER, call, max + 1);
  ck_assert_uint_lt(live_bytes, 4096);
  hear_bytes(CALLER, call, max - (max >> 4));
  ck_assert_uint_ge(live_bytes, max - (max >> 4));
  for (size_t bytes = max >> 5; bytes > 0; bytes /= 2) /* until nothing fits any more */
    for (int i = 0; i < 10; i++) hear_bytes(CALLER, call, bytes);
  ck_assert_uint_ge(live_bytes, max - 4096);
  ck_assert_uint_le(live_bytes, max + 4096);
}
END_TEST

START_TEST(what_is_taken_makes_room) {
  hear_call(CALLER, 9);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  hear_bytes(CALLER, 9, 60 << 20);
  char* large = malloc(60 << 20);
  ck_assert_int_eq(
      MPIDI_LITE_dynamic_sendrecv(kAccepted, &roots, PORT, "ours", 4, large, 60 << 20, 0),
      MPI_SUCCESS);
  free(large);
  hear_bytes(CALLER, 9, 60 << 20);
  ck_assert_uint_ge(live_bytes, 60 << 20);
}
END_TEST

START_TEST(so_many_calls_wait_and_the_dead_make_room) {
  for (uint64_t call = 1; call <= 3000; call++) {
    said_count = 0;
    hear_call(CALLER, call);
    if (times_said(MPIDI_LITE_REFUSAL, CALLER) == 1) break;
  }
  ck_assert_int_eq(times_said(MPIDI_LITE_REFUSAL, CALLER), 1);
  hear_call(OTHER, 1);
  ck_assert_int_eq(times_said(MPIDI_LITE_REFUSAL, OTHER), 1);
  lost[CALLER] = true;
  hear_call(OTHER, 2);
  ck_assert_int_eq(times_said(MPIDI_LITE_REFUSAL, OTHER), 1);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  ck_assert_int_eq(MPIDI_LITE_AV(&small_table[1]).peer, OTHER);
}
END_TEST

START_TEST(without_memory_a_connection_fails_and_nothing_else) {
  int blocks = 0, code;
  do {
    blocks_left = blocks++;
    now_s = polls = 0;
    on_poll = a_second_passes;
    hear_call(CALLER, 9);
    hear_data(CALLER, 9, PORT, 0, "theirs");
    code = accept_at(PORT, 5);
    if (code == MPI_SUCCESS) code = exchange_with(kAccepted, 6, 5);
    if (code == MPI_SUCCESS) ck_assert_str_eq(got, "theirs");
    ck_assert(code == MPI_SUCCESS || code == MPI_ERR_PORT);
    blocks_left = -1;
    MPIDI_LITE_forget_first_words();
    ck_assert_uint_eq(live_blocks, 0);
  } while (code != MPI_SUCCESS && blocks < 100);
  ck_assert_int_eq(code, MPI_SUCCESS);
  ck_assert_int_gt(blocks, 4);
}
END_TEST

START_TEST(without_memory_a_call_fails_in_the_send) {
  blocks_left = 0;
  ck_assert_int_eq(call_port_of(OWNER), MPI_ERR_PORT);
  ck_assert_int_eq(said_count, 0);
  ck_assert_int_eq(parted[OWNER], 1);
}
END_TEST

START_TEST(everything_is_forgotten_when_the_device_ends) {
  hear_call(CALLER, 9);
  hear_data(CALLER, 9, PORT, 0, "data");
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_of_call(MPIDI_LITE_REFUSAL, OWNER, call_of(OWNER));
  hear_data(OWNER, call_of(OWNER), PORT, 0, "data");
  for (int peer = 2; peer < PEERS; peer++) insert_member(peer, 1);
  ck_assert_uint_gt(live_blocks, 4);
  MPIDI_LITE_forget_first_words();
  ck_assert_uint_eq(live_blocks, 0);
  for (int peer = 2; peer < PEERS; peer++) {
    ck_assert(!MPIDI_LITE_exchanges_with(peer)); /* of the next device */
    hear_data(peer, 1, PORT, 0, "data");
  }
  ck_assert_uint_eq(live_blocks, 0);
}
END_TEST

/* ---- whom we part from ---- */

START_TEST(processes_that_are_being_met_are_not_parted_from) {
  hear_call(CALLER, 9);
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  ck_assert_int_eq(insert_member(OTHER, 1), MPI_SUCCESS);
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted[CALLER] + parted[OWNER] + parted[OTHER], 0);
  ck_assert_int_eq(parted[STRANGER], 1);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  MPIDI_LITE_part_from_strangers();
  /* the call to the owner is over: its thread does something else */
  ck_assert_int_eq(parted[CALLER] + parted[OTHER], 0);
}
END_TEST

START_TEST(many_processes_can_be_met_at_once) {
  for (int times = 0; times < 50; times++)
    for (int peer = 2; peer < PEERS; peer++)
      ck_assert_int_eq(insert_member(peer, peer % ENTRIES), MPI_SUCCESS);
  ck_assert_uint_eq(live_blocks, 1); /* each once */
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted_count, 0);
  communicator_with(OTHER);
  in_a_communicator[OTHER] = false; /* and it ends */
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted_count, 1);
  ck_assert_int_eq(parted[OTHER], 1);
}
END_TEST

START_TEST(caller_that_has_died_is_parted_from) {
  hear_call(CALLER, 9);
  hear_data(CALLER, 9, PORT, 0, "data");
  lost[CALLER] = true;
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted[CALLER], 1);
  ck_assert_uint_eq(live_blocks, 0);
}
END_TEST

START_TEST(members_are_parted_from_after_their_last_communicator) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  ck_assert_int_eq(insert_member(OWNER, 0), MPI_SUCCESS);
  communicator_with(OWNER);
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted[OWNER], 0);
  hear_data(OWNER, 3, PORT, 0, "never taken");
  in_a_communicator[OWNER] = false;
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted[OWNER], 1);
  ck_assert(!MPIDI_LITE_exchanges_with(OWNER));
  const size_t before = live_blocks;
  hear_data(OWNER, 3, PORT, 0, "of another process");
  ck_assert_uint_eq(live_blocks, before);
}
END_TEST

START_TEST(words_are_dropped_with_the_process_and_its_number_can_be_given_on) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  const uint64_t call = call_of(OWNER);
  const size_t before = live_blocks;
  hear_data(OWNER, call, OTHER_PORT, 0, "old");
  hear_of_call(MPIDI_LITE_REFUSAL, OWNER, call);
  ck_assert_int_eq(exchange_with(kCalled, 3, 0), MPI_ERR_PORT);
  ck_assert_int_eq(parted[OWNER], 1);
  ck_assert_uint_le(live_blocks, before);
  hear_data(OWNER, call, PORT, 0, "old"); /* nobody wants it now */
  ck_assert_uint_le(live_blocks, before);
}
END_TEST

START_TEST(member_of_a_communicator_is_not_parted_from_when_a_conversation_fails) {
  communicator_with(OWNER);
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_of_call(MPIDI_LITE_REFUSAL, OWNER, call_of(OWNER));
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_ERR_PORT);
  ck_assert_int_eq(parted_count, 0);
}
END_TEST

START_TEST(ranks_of_the_job_can_connect_and_are_never_parted_from) {
  ck_assert_int_eq(call_port_of(NEIGHBOUR), MPI_SUCCESS);
  ck_assert_uint_le(live_blocks, 1); /* the conversation */
  in_a_communicator[NEIGHBOUR] = false;
  on_poll = a_second_passes;
  ck_assert_int_eq(exchange_with(kCalled, 6, 3), MPI_ERR_PORT);
  in_a_communicator[NEIGHBOUR] = true;
  ck_assert_int_eq(times_said(MPIDI_LITE_TAKEN_BACK, NEIGHBOUR), 1);
  hear_call(NEIGHBOUR, 9);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  hear_of_call(MPIDI_LITE_TAKEN_BACK, NEIGHBOUR, 9);
  ck_assert_int_eq(exchange_with(kAccepted, 6, 0), MPI_ERR_PORT);
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted[NEIGHBOUR], 0);
}
END_TEST

START_TEST(without_other_jobs_there_is_nobody_to_part_from) {
  known_peers = MPIR_Process.size;
  MPIDI_LITE_part_from_strangers();
  known_peers = 0; /* the device has ended */
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted_count, 0);
}
END_TEST

/* ---- what went wrong once ---- */

/* One that is accepted, and one that is refused with its port. */
START_TEST(data_that_comes_with_a_call_is_freed) {
  const MPIDI_LITE_first_words words = call_words(CALLER, 9);
  hear(CALLER, &words, "a call has no data", 18);
  on_poll = a_second_passes;
  if (_i == 0)
    accept_at(PORT, 5); /* or it is no call */
  else
    MPIDI_LITE_close_port(PORT);
  MPIDI_LITE_forget_first_words();
  ck_assert_uint_eq(live_blocks, 0);
}
END_TEST

/* Any process that can connect may say these words, in any number for a member's last. */
START_TEST(only_an_exchange_has_data) {
  static const uint32_t kinds[] = {MPIDI_LITE_REFUSAL, MPIDI_LITE_ANSWER, MPIDI_LITE_TAKEN_BACK};
  const size_t bytes = 1 << 20;
  char* data = calloc(1, bytes);
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  communicator_with(OTHER);
  const MPIDI_LITE_first_words words = {.kind = kinds[_i], .tag = PORT, .call = call_of(OWNER)};
  const size_t before = live_bytes;
  hear(_i == 2 ? OTHER : STRANGER, &words, data, bytes);
  free(data);
  ck_assert_uint_lt(live_bytes, before + bytes);
}
END_TEST

/* A client that tries again and again while the port is closed, and that has a communicator with
 * us: each call has its first data with it, and is taken back in the end. */
START_TEST(calls_that_come_to_nothing_leave_nothing) {
  communicator_with(CALLER);
  if (_i == 0) MPIDI_LITE_close_port(PORT);
  const size_t before = live_blocks;
  for (uint64_t call = 1; call <= 100; call++) {
    said_count = 0;
    hear_call(CALLER, call);
    hear_data(CALLER, call, PORT, 0, "size");
    hear_of_call(MPIDI_LITE_TAKEN_BACK, CALLER, call);
  }
  ck_assert_uint_le(live_blocks, before + 2);
}
END_TEST

START_TEST(failed_call_leaves_the_owners_own_call_waiting) {
  hear_call(OWNER, 9);
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  hear_of_call(MPIDI_LITE_REFUSAL, OWNER, call_of(OWNER));
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_ERR_PORT);
  ck_assert_int_eq(parted[OWNER], 0); /* it waits at a port of ours */
  on_poll = a_second_passes;
  ck_assert_int_eq(accept_at(PORT, 5), MPI_SUCCESS);
}
END_TEST

static void call_fails_in_this_thread(void) {
  ck_assert_int_eq(call_port_of(CALLER), MPI_SUCCESS);
  hear_of_call(MPIDI_LITE_REFUSAL, CALLER, call_of(CALLER));
  ck_assert_int_eq(exchange_with(kCalled, 6, 0), MPI_ERR_PORT);
}
static void another_thread_calls_in_vain(int poll) {
  if (poll == 1) in_another_thread(call_fails_in_this_thread);
  if (poll == 2) hear_data(CALLER, 9, PORT, 0, "theirs");
  now_s += poll > 2;
}
START_TEST(failed_call_leaves_another_threads_connection_with_the_owner) {
  hear_call(CALLER, 9);
  ck_assert_int_eq(accept_at(PORT, 0), MPI_SUCCESS);
  on_poll = another_thread_calls_in_vain;
  ck_assert_int_eq(exchange_with(kAccepted, 6, 5), MPI_SUCCESS);
  ck_assert_int_eq(parted[CALLER], 0);
}
END_TEST

/* The first connection has ended, and the number of its process is another one's, who calls. */
START_TEST(port_name_without_sense_leaves_the_process_of_an_earlier_connection) {
  ck_assert_int_eq(call_port_of(OWNER), MPI_SUCCESS);
  communicator_with(OWNER);
  in_a_communicator[OWNER] = false;
  MPIDI_LITE_part_from_strangers();
  ck_assert_int_eq(parted[OWNER], 1);
  hear_call(OWNER, 9);
  ck_assert_int_eq(call_port_named("no port", 7, 0), MPI_ERR_PORT);
  ck_assert_int_eq(parted[OWNER], 1);
  ck_assert_int_eq(accept_at(PORT, 5), MPI_SUCCESS);
}
END_TEST

/* The host copies as many bytes from its stack as the header says that the name has, before the
 * module is asked about the name. */
START_TEST(header_without_a_name_is_not_given_to_the_host) {
  static const int lengths[] = {0, LITE_NAME_BYTES + 1, 1 << 30, -1, 0};
  MPIDI_LITE_first_words words = call_words(CALLER, 9);
  memcpy(words.data, &lengths[_i], sizeof(int));
  if (_i == 4) words.bytes = 2; /* not even a length */
  hear(CALLER, &words, NULL, 0);
  Header header;
  on_poll = a_second_passes;
  ck_assert_int_eq(MPIDI_LITE_dynamic_recv(PORT, &header, sizeof header, 5), MPI_ERR_PORT);
}
END_TEST

int main(void) {
  Suite* suite = suite_create("spawn5");
  TCase* tests = tcase_create("spawn5");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_set_timeout(tests, 60); /* under sanitizers, on a busy machine */
  tcase_add_test(tests, names_are_those_of_the_processes_in_order);
  tcase_add_test(tests, port_has_a_name_of_its_own_length);
  tcase_add_loop_test(tests, without_a_device_or_memory_there_is_neither_name_nor_port, 0, 3);
  tcase_add_test(tests, data_that_came_before_the_call_is_taken_without_waiting);
  tcase_add_test(tests, data_that_comes_while_the_call_waits_is_taken);
  tcase_add_test(tests, data_is_said_under_the_senders_context_and_the_number_of_the_call);
  tcase_add_loop_test(tests, data_of_another_peer_tag_context_or_call_is_left, 0, 5);
  tcase_add_test(tests, data_of_one_exchange_is_taken_in_order);
  tcase_add_loop_test(tests, data_of_another_length_is_an_error_and_is_not_copied, 0, 2);
  tcase_add_test(tests, exchange_within_the_job_parts_from_nobody);
  tcase_add_test(tests,
                 exchange_in_a_communicator_between_jobs_fails_without_ending_the_conversation);
  tcase_add_test(tests, exchange_in_a_communicator_is_of_no_call);
  tcase_add_test(tests, data_that_is_being_sent_is_a_copy);
  tcase_add_test(tests, lost_peer_ends_the_wait);
  tcase_add_test(tests, what_a_lost_peer_has_said_counts);
  tcase_add_test(tests, data_that_cannot_be_sent_fails_at_once);
  tcase_add_test(tests, error_of_progress_ends_the_wait);
  tcase_add_test(tests, caller_that_has_waited_for_too_long_takes_its_call_back);
  tcase_add_test(tests, acceptor_that_has_waited_for_too_long_fails);
  tcase_add_test(tests, without_a_limit_of_time_the_wait_goes_on);
  tcase_add_test(tests, refusal_ends_the_callers_wait);
  tcase_add_test(tests, refusal_of_another_call_or_by_another_process_is_none);
  tcase_add_test(tests, acceptor_whose_caller_takes_the_call_back_does_not_wait_for_ever);
  tcase_add_test(tests, acceptor_learns_between_two_exchanges_that_the_call_is_taken_back);
  tcase_add_test(tests, call_has_the_proof_and_the_hosts_header);
  tcase_add_test(tests, call_that_cannot_be_sent_fails);
  tcase_add_loop_test(tests, entry_of_the_small_table_is_free_again_when_the_call_fails, 0, 3);
  tcase_add_test(tests, port_whose_owner_cannot_be_met_fails_in_the_send);
  tcase_add_test(tests, port_that_cannot_be_met_does_not_end_another_connection);
  tcase_add_loop_test(tests, port_name_of_another_length_fails_in_the_send, 0, 5);
  tcase_add_test(tests, acceptor_takes_the_oldest_call_at_its_port);
  tcase_add_test(tests, acceptor_waits_for_a_call);
  tcase_add_test(tests, acceptor_does_not_wait_beyond_its_time_or_at_a_closed_port);
  tcase_add_test(tests, call_that_was_taken_back_or_whose_caller_died_is_not_accepted);
  tcase_add_test(tests, taking_back_another_call_leaves_this_one);
  tcase_add_test(tests, call_without_the_proof_is_refused);
  tcase_add_test(tests, callers_that_wait_are_refused_when_the_port_is_closed);
  tcase_add_loop_test(tests, caller_that_sends_another_ones_name_is_refused, 0, 2);
  tcase_add_test(tests, name_of_a_member_that_is_none_is_an_error);
  tcase_add_loop_test(tests, connection_is_made_from_the_first_word_to_the_communicator, 0, 2);
  tcase_add_test(tests, stranger_has_no_data_kept);
  tcase_add_test(tests, words_that_are_no_words_are_dropped);
  tcase_add_loop_test(tests, process_of_another_job_has_so_much_kept_in_all, 0, 3);
  tcase_add_test(tests, what_is_taken_makes_room);
  tcase_add_test(tests, so_many_calls_wait_and_the_dead_make_room);
  tcase_add_test(tests, without_memory_a_connection_fails_and_nothing_else);
  tcase_add_test(tests, without_memory_a_call_fails_in_the_send);
  tcase_add_test(tests, everything_is_forgotten_when_the_device_ends);
  tcase_add_test(tests, processes_that_are_being_met_are_not_parted_from);
  tcase_add_test(tests, many_processes_can_be_met_at_once);
  tcase_add_test(tests, caller_that_has_died_is_parted_from);
  tcase_add_test(tests, members_are_parted_from_after_their_last_communicator);
  tcase_add_test(tests, words_are_dropped_with_the_process_and_its_number_can_be_given_on);
  tcase_add_test(tests, member_of_a_communicator_is_not_parted_from_when_a_conversation_fails);
  tcase_add_test(tests, ranks_of_the_job_can_connect_and_are_never_parted_from);
  tcase_add_test(tests, without_other_jobs_there_is_nobody_to_part_from);
  tcase_add_loop_test(tests, data_that_comes_with_a_call_is_freed, 0, 2);
  tcase_add_loop_test(tests, only_an_exchange_has_data, 0, 3);
  tcase_add_loop_test(tests, calls_that_come_to_nothing_leave_nothing, 0, 2);
  tcase_add_test(tests, failed_call_leaves_the_owners_own_call_waiting);
  tcase_add_test(tests, failed_call_leaves_another_threads_connection_with_the_owner);
  tcase_add_test(tests, port_name_without_sense_leaves_the_process_of_an_earlier_connection);
  tcase_add_loop_test(tests, header_without_a_name_is_not_given_to_the_host, 0, 5);
  suite_add_tcase(suite, tests);
  SRunner* runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
