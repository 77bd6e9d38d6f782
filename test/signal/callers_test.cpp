// Callers of a rank that computes with nothing outstanding, while ranks of the job are missing:
// they come in, whatever the application does, and what those say who are in disturbs nobody. Real
// processes, three ranks, of which one is missing until the end.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "two_ranks.h"

#include "ch_lite/channel/channel.h"
#include "mplite/observe/counters.h"
#include "run_tests.h"

using namespace two_ranks;

namespace {

constexpr int kRanks = 3;  // 0 computes, 1 calls, 2 is missing
constexpr std::size_t kEager = 60'000;
constexpr double kSoonS =
    1;  // the machine may be busy; without anybody who lets callers in it is for ever
constexpr double kComputeS = 3;

#define CHECK_THAT(condition)          \
  do {                                 \
    if (!(condition)) return __LINE__; \
  } while (0)

// The tables of all three, which two_ranks.h has not.
struct Table {
  unsigned char of[kRanks][LITE_ADDRESS_BYTES];
};
Table* g_table = nullptr;

bool start_three(Shared& s, int rank) {
  setenv("LITE_IFACE", "lo", 1);
  if (lite_init_local(g_table->of[rank]) != LITE_OK || !barrier(s, 0, kRanks)) return false;
  if (lite_init_world(rank, kRanks, g_table->of, kRanks, 0) != LITE_OK) {
    std::fprintf(stderr, "rank %d: %s\n", rank, lite_last_error());
    return false;
  }
  return barrier(s, 1, kRanks);
}
bool finish_three(Shared& s) {
  if (lite_flush() != LITE_OK || !barrier(s, 2, kRanks)) return false;
  lite_finalize_quiesce();
  if (!barrier(s, 3, kRanks)) return false;
  lite_finalize_close();
  return true;
}

bool send_to(const void* data, std::size_t bytes, int from, int to, Done& done) {
  const lite_envelope e = {1, from, 5};
  lite_request* request = nullptr;
  const int rc = lite_isend(data, bytes, to, &e, 0, &done, &request);
  if (rc == LITE_OK) done.done = true, done.status.error = LITE_OK;
  return rc >= 0;
}
bool receive_from(void* data, std::size_t bytes, int from, Done& done) {
  const lite_envelope e = {1, from, 5};
  lite_request* request = nullptr;
  const int rc = lite_irecv(data, bytes, from, &e, &done, &done.status, &request);
  if (rc == LITE_OK) done.done = true;
  return rc >= 0;
}

// No call of the library, nor one that sleeps.
void compute_for(double seconds) {
  for (const double end = now_s() + seconds; now_s() < end;) {}
}
void compute_until(const std::atomic<int>& word, int value, double seconds) {
  for (const double end = now_s() + seconds; now_s() < end && word < value;) {}
}

// What rank 0 does before and after it computes.
using Step = bool (*)(Shared& s);
Step g_before = nullptr, g_after = nullptr;
enum class Heard { kNo, kYes, kPerhaps };
Heard g_heard = Heard::kYes;  // rank 1 is to be let in at once
int g_strangers = 0;

// Where rank 0 listens: the only listener of this process on loopback.
int own_port() {
  DIR* open = opendir("/proc/self/fd");
  int port = 0;
  for (const dirent* entry; open != nullptr && (entry = readdir(open)) != nullptr;) {
    const int fd = std::atoi(entry->d_name);
    int listens = 0;
    socklen_t length = sizeof listens;
    sockaddr_in in = {};
    socklen_t in_length = sizeof in;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) continue;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&in), &in_length) == 0 &&
        in.sin_family == AF_INET)
      port = ntohs(in.sin_port);
  }
  if (open != nullptr) closedir(open);
  return port;
}

bool call_as_strangers(int port, int count) {
  for (int i = 0; i < count; ++i) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    const int fd = socket(AF_INET, SOCK_STREAM, 0);  // stays until the process ends
    if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return false;
  }
  return true;
}

// word[0]: rank 0's port, word[1]: 1 when rank 1's message has left, word[2]: ms that took.
int calls_who_computes(Shared& s, int rank) {
  CHECK_THAT(start_three(s, rank));
  std::vector<std::uint8_t> data(kEager, 0);
  Done done;
  if (rank == 0) {
    s.word[0] = own_port();
    CHECK_THAT(g_before == nullptr || g_before(s));
    CHECK_THAT(barrier(s, 4, kRanks));
    compute_for(0.05);
    CHECK_THAT(barrier(s, 5, kRanks));
    compute_until(s.word[1], 1, kComputeS);
    const bool heard = s.word[1] == 1;
    CHECK_THAT(g_heard == Heard::kPerhaps || heard == (g_heard == Heard::kYes));
    CHECK_THAT(g_after == nullptr || g_after(s));
    CHECK_THAT(receive_from(data.data(), kEager, 1, done) && wait_for(done) && holds(data, 3));
  } else if (rank == 1) {
    CHECK_THAT(barrier(s, 4, kRanks));
    CHECK_THAT(call_as_strangers(s.word[0], g_strangers));
    CHECK_THAT(barrier(s, 5, kRanks));
    fill(data, 3);
    const double from = now_s();
    CHECK_THAT(send_to(data.data(), kEager, 1, 0, done) && wait_for(done));
    s.word[2] = static_cast<int>(1e3 * (now_s() - from));
    s.word[1] = 1;
    CHECK_THAT(g_heard != Heard::kYes || s.word[2] < 1e3 * kSoonS);
  } else {
    CHECK_THAT(barrier(s, 4, kRanks) && barrier(s, 5, kRanks));
  }
  // Word of the missing one, so that nobody waits for it at the end in vain.
  CHECK_THAT(barrier(s, 6, kRanks));
  int word = 9;
  Done last;
  if (rank == 2) CHECK_THAT(send_to(&word, sizeof word, 2, 0, last) && wait_for(last));
  if (rank == 0)
    CHECK_THAT(receive_from(&word, sizeof word, 2, last) && wait_for(last) && word == 9);
  CHECK_THAT(finish_three(s));
  return 0;
}

void check(const char* controller, Step before = nullptr, Step after = nullptr,
           Heard heard = Heard::kYes, int strangers = 0) {
  if (!kSignalsComeAnywhere && std::strcmp(controller, "sigio") == 0) return;
  setenv("LITE_CONTROLLER", controller, 1);
  g_before = before;
  g_after = after;
  g_heard = heard;
  g_strangers = strangers;
  void* p = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(p, MAP_FAILED);
  g_table = static_cast<Table*>(p);
  run_job(calls_who_computes, kRanks);
}

START_TEST(first_contact_with_a_rank_that_computes_is_made_at_once) {
  for (const char* controller : {"sigio", "thread"}) check(controller);
}
END_TEST

START_TEST(first_contact_behind_200_silent_strangers_is_made_at_once) {
  for (const char* controller : {"sigio", "thread"})
    check(controller, nullptr, nullptr, Heard::kYes, 200);
}
END_TEST

START_TEST(first_contact_without_a_controller_waits_for_the_next_call) {
  check("sync", nullptr, nullptr, Heard::kNo);
}
END_TEST

// After calls with something outstanding, armed and not.
bool come_and_go(Shared&) {
  static char buffer[8];
  static Done done;
  const lite_envelope e = {1, 2, 77};  // nobody sends it
  lite_request* request = nullptr;
  if (lite_irecv(buffer, sizeof buffer, 2, &e, &done, &done.status, &request) < 0) return false;
  for (const double end = now_s() + 0.2; now_s() < end;) {
    if (!look()) return false;
    LITE_HOT_SET(last_call, LITE_CALL_RECEIVE);
    lite_host_exit();
  }
  compute_for(0.05);
  lite_cancel_recv(request);
  return look();
}
START_TEST(first_contact_after_quick_calls_and_a_computation_with_something_outstanding) {
  for (const char* controller : {"sigio", "thread"}) check(controller, come_and_go);
}
END_TEST

// Rank 1 calls before rank 0 has come to its start, and rank 0 computes from its start on. word[1]:
// 1 when the message has left.
int calls_too_early(Shared& s, int rank) {
  setenv("LITE_IFACE", "lo", 1);
  CHECK_THAT(lite_init_local(g_table->of[rank]) == LITE_OK && barrier(s, 0, kRanks));
  if (rank == 0) CHECK_THAT(barrier(s, 4));
  CHECK_THAT(lite_init_world(rank, kRanks, g_table->of, kRanks, 0) == LITE_OK);
  std::vector<std::uint8_t> data(kEager, 0);
  Done done;
  if (rank == 0) {
    compute_until(s.word[1], 1, kComputeS);
    CHECK_THAT(s.word[1] == 1);
    CHECK_THAT(receive_from(data.data(), kEager, 1, done) && wait_for(done) && holds(data, 3));
  } else if (rank == 1) {
    fill(data, 3);
    CHECK_THAT(send_to(data.data(), kEager, 1, 0, done));
    for (const double end = now_s() + 0.1; now_s() < end;) CHECK_THAT(look());
    ++s.arrived[4];
    CHECK_THAT(wait_for(done));
    s.word[1] = 1;
  }
  CHECK_THAT(finish_three(s));
  return 0;
}

START_TEST(who_called_before_the_start_is_let_in) {
  for (const char* controller : {"sigio", "thread"}) {
    if (!kSignalsComeAnywhere && std::strcmp(controller, "sigio") == 0) continue;
    setenv("LITE_CONTROLLER", controller, 1);
    g_table = static_cast<Table*>(
        mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    run_job(calls_too_early, kRanks);
  }
}
END_TEST

// ---- the signal is the application's ----

std::atomic<int> g_own_entries{0};
void own_handler(int) { ++g_own_entries; }

START_TEST(application_that_has_the_signal_is_left_alone) {
  struct sigaction own = {};
  own.sa_handler = own_handler;
  sigaction(SIGURG, &own, nullptr);
  check(
      "sigio", nullptr, [](Shared&) { return g_own_entries == 0; }, Heard::kNo);
}
END_TEST

START_TEST(application_that_takes_the_signal_later_may_have_it) {
  check(
      "sigio",
      [](Shared& s) {
        struct sigaction own = {};
        own.sa_handler = own_handler;
        sigaction(SIGURG, &own, nullptr);
        const bool good = come_and_go(s);  // there it is noticed
        g_own_entries = 0;
        return good;
      },
      [](Shared&) { return g_own_entries == 0; }, Heard::kPerhaps);  // the main signal may be open
}
END_TEST

START_TEST(signal_set_back_to_its_default_ends_nobody) {
  check(
      "sigio", [](Shared&) { return signal(SIGURG, SIG_DFL) != SIG_ERR; }, nullptr, Heard::kNo);
}
END_TEST

START_TEST(with_grace_off_there_is_no_such_signal) {
  setenv("LITE_GRACE", "off", 1);
  check("sigio", nullptr, nullptr, Heard::kNo);
}
END_TEST

// ---- who is in ----

// Rank 1 sends small messages all the time that rank 0 computes: word[4], word[5].
int talks_to_who_computes(Shared& s, int rank) {
  constexpr int kMessages = 500;
  CHECK_THAT(start_three(s, rank));
  int number = -1;
  Done first;
  if (rank == 1) CHECK_THAT(send_to(&number, sizeof number, 1, 0, first) && wait_for(first));
  if (rank == 0) CHECK_THAT(receive_from(&number, sizeof number, 1, first) && wait_for(first));
  CHECK_THAT(barrier(s, 4, kRanks));
  compute_for(0.1);
  const mplite::Counters& counters = mplite::channel_counters();
  const std::uint64_t signals = counters.signals, wakes = counters.thread_wakes;
  if (rank == 1) {
    for (int i = 0; i < kMessages; ++i) {
      Done done;
      CHECK_THAT(send_to(&i, sizeof i, 1, 0, done) && wait_for(done));
      compute_for(0.0002);
    }
    s.word[1] = 1;
  } else if (rank == 0) {
    compute_until(s.word[1], 1, 20);
    s.word[4] = static_cast<int>(counters.signals - signals);
    s.word[5] = static_cast<int>(counters.thread_wakes - wakes);
    for (int i = 0; i < kMessages; ++i) {
      Done done;
      CHECK_THAT(receive_from(&number, sizeof number, 1, done) && wait_for(done) && number == i);
    }
  }
  CHECK_THAT(finish_three(s));
  return 0;
}

START_TEST(messages_of_who_is_connected_interrupt_and_wake_nobody_while_a_rank_is_missing) {
  for (const char* controller : {"sigio", "thread"}) {
    setenv("LITE_CONTROLLER", controller, 1);
    g_table = static_cast<Table*>(
        mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    Shared& s = run_job(talks_to_who_computes, kRanks);
    ck_assert_int_eq(s.word[4], 0);
    ck_assert_int_eq(s.word[5], 0);
  }
}
END_TEST

// Ping-pong of ranks 0 and 1: what it costs beside reads, writes and looks. word[4]: system calls,
// word[5]: handler entries, wakes and backstops.
int plays_beside_a_missing_rank(Shared& s, int rank) {
  constexpr int kRounds = 1100, kWarm = 100;
  CHECK_THAT(start_three(s, rank));
  const mplite::Counters& c = mplite::channel_counters();
  const auto calls = [&] { return c.mask_calls + c.other_calls; };
  const auto entries = [&] { return c.signals + c.thread_wakes + c.backstops; };
  std::uint64_t calls_before = 0, entries_before = 0;
  int number = 0;
  for (int i = 0; rank < 2 && i < kRounds; ++i) {
    if (i == kWarm) {
      calls_before = calls();
      entries_before = entries();
    }
    for (int hop = 0; hop < 2; ++hop) {
      Done done;
      CHECK_THAT(hop == rank ? send_to(&number, sizeof number, rank, 1 - rank, done)
                             : receive_from(&number, sizeof number, 1 - rank, done));
      CHECK_THAT(done.done || wait_for(done));
      lite_host_exit();
    }
  }
  if (rank == 0) {
    s.word[4] = static_cast<int>(calls() - calls_before);
    s.word[5] = static_cast<int>(entries() - entries_before);
  }
  CHECK_THAT(finish_three(s));
  return 0;
}

START_TEST(ping_pong_beside_a_missing_rank_costs_no_call_more) {
  for (const char* controller : {"sync", "sigio", "thread"}) {
    setenv("LITE_CONTROLLER", controller, 1);
    g_table = static_cast<Table*>(
        mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    Shared& s = run_job(plays_beside_a_missing_rank, kRanks);
    ck_assert_int_le(
        s.word[4],
        20);  // of 1,000 round trips: now and then a mark is changed, whatever the controller
    ck_assert_int_eq(s.word[5], 0);
  }
}
END_TEST

// ---- too many ----

// Rank 1 calls as a stranger for as long as rank 0 computes. word[7]: how many rank 0 has let in
// and dropped meanwhile.
int floods_who_computes(Shared& s, int rank) {
  constexpr double kFloodS = 2;
  CHECK_THAT(start_three(s, rank));
  if (rank == 0) s.word[0] = own_port();
  CHECK_THAT(barrier(s, 4, kRanks));
  if (rank == 0) {
    compute_until(s.word[1], 1, kFloodS + 20);
    s.word[7] = static_cast<int>(mplite::channel_counters().connections_refused);
  } else if (rank == 1) {
    for (const double end = now_s() + kFloodS; now_s() < end;) {
      sockaddr_in to = {};
      to.sin_family = AF_INET;
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      to.sin_port = htons(static_cast<std::uint16_t>(s.word[0]));
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      if (fd < 0) continue;
      connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
      close(fd);
    }
    s.word[1] = 1;
    // A rank's call behind all of them.
    int word = 4;
    Done done;
    CHECK_THAT(send_to(&word, sizeof word, 1, 0, done) && wait_for(done));
    s.word[1] = 2;
  }
  if (rank == 0) {
    int word = 0;
    Done done;
    CHECK_THAT(receive_from(&word, sizeof word, 1, done) && wait_for(done) && word == 4);
  }
  CHECK_THAT(finish_three(s));
  return 0;
}

START_TEST(flood_of_strangers_leaves_the_application_its_time) {
  for (const char* controller : {"sigio", "thread"}) {
    if (!kSignalsComeAnywhere && std::strcmp(controller, "sigio") == 0) continue;
    setenv("LITE_CONTROLLER", controller, 1);
    g_table = static_cast<Table*>(
        mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    Shared& s = run_job(floods_who_computes, kRanks);
    ck_assert_int_gt(s.word[7], 100);  // they were there
    ck_assert_int_lt(s.word[7], 1024 + 10 * 1024);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("callers", 120); }
