// boot.cpp in a real process: what it tells before the host hears of a loss, where it gives the
// core away when the host has threads. (Its start and end are exercised by test/signal.)
#include <dlfcn.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "../signal/two_ranks.h"
#include "ch_lite/ch_lite_jobs.h"
#include "launchers_pipe.h"
#include "run_tests.h"

using namespace two_ranks;

namespace {

bool g_in_progress = false;  // the test is in lite_progress
int g_yields_in_progress = 0;
bool g_no_memory = false;
int g_yields_outside = 0;
// What a yield is like: that of the machine, or as if this process were alone on its core or had a
// busy neighbour there, whatever else runs on the machine.
enum class Neighbour { kOfTheMachine, kNone, kBusy };
Neighbour g_neighbour = Neighbour::kOfTheMachine;

}  // namespace

// Interposed: the library under test is linked statically, so its calls come here.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (g_no_memory) return nullptr;
  return operator new(size);
}
extern "C" int sched_yield(void) noexcept {
  static const auto real = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "sched_yield"));
  ++(g_in_progress ? g_yields_in_progress : g_yields_outside);
  const double end = now_s() + 0.003;
  while (g_neighbour == Neighbour::kBusy && now_s() < end) {}
  return g_neighbour == Neighbour::kOfTheMachine ? real() : 0;
}

namespace {

// 0, or the line that found it wrong.
int meet_a_loss(Shared& s, int rank) {
  if (!start(s, rank)) return __LINE__;
  char word = 'w';
  Done done, answer;
  if (rank == 1) {
    if (!send(&word, 1, 0, 1, done) || !receive(&word, 1, 0, 1, answer) || !wait_for(answer) ||
        !barrier(s, 4))
      return __LINE__;
    _exit(0);
  }
  if (!receive(&word, 1, 1, 1, done) || !wait_for(done) || !send(&word, 1, 1, 1, answer))
    return __LINE__;
  Done never;
  LaunchersPipe launcher;
  SlowReader reader(launcher);
  if (!receive(&word, 1, 1, 2, never) || !barrier(s, 4)) return __LINE__;
  const double end = now_s() + 20;
  while (!never.done)
    if (!look() || now_s() > end) return __LINE__;
  // The host knows since a moment ago, and may end the job in the next one.
  if (never.status.error != LITE_ERR_PEER_LOST) return __LINE__;
  if (!reader.has_read) return __LINE__;
  // beside notes of the log
  if (reader.join().find(std::string("ch_lite: ") + lite_last_error() + "\n") == std::string::npos)
    return __LINE__;
  // Told once: a second failure of the same peer is not news.
  lite_request* request = nullptr;
  const lite_envelope e = {1, 0, 3};
  if (lite_isend(&word, 1, 1, &e, 0, nullptr, &request) != LITE_ERR_PEER_LOST) return __LINE__;
  int unread = -1;
  if (ioctl(launcher.ends[0], FIONREAD, &unread) != 0 || unread != 0) return __LINE__;
  lite_finalize_quiesce();
  lite_finalize_close();
  return 0;
}

// The application unmaps what rank 1's message is to be received into, all but its beginning, which
// may come by way of a buffer.
int lose_a_peer_by_our_own_fault(Shared& s, int rank) {
  if (!start(s, rank)) return __LINE__;
  constexpr std::size_t kBytes = 8 << 20, kThere = 1 << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return __LINE__;
  Done done;
  if (rank == 0 ? !receive(memory, kBytes, 1, 1, done) : !send(memory, kBytes, 0, 1, done))
    return __LINE__;
  if (rank == 0) munmap(static_cast<char*>(memory) + kThere, kBytes - kThere);
  const double end = now_s() + 20;
  while (!done.done)
    if (!look() || now_s() > end) return __LINE__;
  if (done.status.error != LITE_ERR_PEER_LOST) return __LINE__;
  if (rank == 0) {
    if (lite_check_peer(1) != LITE_ERR_PEER_LOST) return __LINE__;
    const std::string error = lite_last_error();
    if (error.find("is not mapped") == std::string::npos) return __LINE__;
  }
  if (!barrier(s, 4)) return __LINE__;
  _exit(0);
}

// Waits for nothing, as a host does that opens its lock between two polls or, if not `opens`, one
// that does not, until `count` yields have been seen.
bool poll_in_vain(bool opens, const int& yields, int count) {
  const double end = now_s() + 20;
  while (yields < count) {
    g_in_progress = true;
    const bool good = look();
    g_in_progress = false;
    if (!good || now_s() > end) return false;
    if (opens) lite_host_lets_go();
  }
  return true;
}

// MPI_Improbe in a loop, which finds nothing: polls once in each call, and opens the lock after
// that.
bool probe_in_vain(int calls) {
  const lite_envelope e = {1, 1, 1};
  for (int i = 0; i < calls; ++i) {
    lite_host_call_begins(LITE_MAY_NOT_BLOCK);
    lite_status status;
    g_in_progress = true;
    const bool good = lite_iprobe(1, &e, &status) == 0 && look();
    lite_host_call_ends();
    lite_host_exit();
    const bool yields = lite_host_takes_yield() != 0;
    g_in_progress = false;
    if (!good) return false;
    if (yields) lite_host_lets_go_slow();
  }
  return true;
}

// Yields of a host that waits for nothing and has given the core away so many times.
int yields_of(int times) {
  const double end = now_s() + 20;
  g_yields_outside = 0;
  while (times > 0 && now_s() < end) {
    g_in_progress = true;
    look();
    g_in_progress = false;
    times -= LITE_HOT_GET(yield_due);
    lite_host_lets_go();
  }
  return times > 0 ? -1 : g_yields_outside;
}

int wait_beside_a_busy_neighbour(Shared& s, int rank) {
  if (!start(s, rank)) return __LINE__;
  if (rank == 0) {
    char word = 0;
    Done never;
    if (!receive(&word, 1, 1, 1, never)) return __LINE__;
    lite_set_thread_multiple(1);
    g_neighbour = Neighbour::kBusy;
    const int dear = yields_of(400);
    if (dear < 1 || dear > 100) return __LINE__;
    g_neighbour = Neighbour::kNone;
    if (yields_of(1000) < 0 || yields_of(400) < 200) return __LINE__;
  }
  if (!barrier(s, 4)) return __LINE__;
  _exit(0);
}

int wait_with_threads(Shared& s, int rank) {
  if (!start(s, rank)) return __LINE__;
  if (rank == 0) {
    char word = 0;
    Done never;
    if (!receive(&word, 1, 1, 1, never)) return __LINE__;
    lite_set_thread_multiple(1);
    g_neighbour = Neighbour::kNone;
    g_yields_in_progress = g_yields_outside = 0;
    if (!poll_in_vain(true, g_yields_outside, 100)) return __LINE__;
    if (g_yields_in_progress != 0) return __LINE__;
    // a loop of the host's that keeps its lock all the time still gives the core away
    if (!poll_in_vain(false, g_yields_in_progress, 100)) return __LINE__;
    g_yields_in_progress = g_yields_outside = 0;
    if (!probe_in_vain(100) || g_yields_outside < 100 / 16 || g_yields_outside > 1 + 100 / 16)
      return __LINE__;
    if (g_yields_in_progress != 0) return __LINE__;
  }
  if (!barrier(s, 4)) return __LINE__;
  _exit(0);
}

#ifndef __has_feature
#define __has_feature(name) 0  // clang's
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kOwnMalloc = true;  // the sanitizer's, which gives everything back
#else
constexpr bool kOwnMalloc = false;
#endif

// Two temporary buffers of a reduction, in one call after the other.
int use_temporary_buffers(Shared& s, int rank) {
  constexpr std::size_t kBytes = 1 << 20, kPage = 4096;
  constexpr int kTurns = 50;
  if (!start(s, rank)) return __LINE__;
  rusage before = {}, after = {};
  for (int turn = 0; turn < kTurns; ++turn) {
    if (turn == 1) getrusage(RUSAGE_SELF, &before);
    char* volatile one = static_cast<char*>(std::malloc(kBytes));
    char* volatile other = static_cast<char*>(std::malloc(kBytes));
    std::memset(one, turn, kBytes);
    std::memset(other, turn, kBytes);
    std::free(other);
    std::free(one);
  }
  getrusage(RUSAGE_SELF, &after);
  const long faults = after.ru_minflt - before.ru_minflt;
  if (!kOwnMalloc && faults > static_cast<long>(kTurns * kBytes / kPage / 4)) return __LINE__;
  if (!barrier(s, 4)) return __LINE__;
  _exit(0);
}

}  // namespace

START_TEST(freed_buffers_are_not_taken_from_the_kernel_again) { run_job(use_temporary_buffers); }
END_TEST

START_TEST(lost_peer_is_told_and_its_message_read_before_the_host_hears_of_it) {
  run_job(meet_a_loss);
}
END_TEST

START_TEST(fault_of_our_own_is_told_in_words_where_a_peer_is_asked_about) {
  run_job(lose_a_peer_by_our_own_fault);
}
END_TEST

START_TEST(without_memory_for_the_device_the_card_tells_the_others) {
  unsigned char table[2][LITE_ADDRESS_BYTES] = {};
  g_no_memory = true;
  const int rc = lite_init_local(table[1]);
  g_no_memory = false;
  ck_assert_int_eq(rc, LITE_ERR_NOMEM);
  ck_assert_int_eq(lite_find_failed(table, 2), 1);
  ck_assert_ptr_nonnull(std::strstr(lite_last_error(), "cannot start: out of memory at start"));
}
END_TEST

START_TEST(with_threads_the_core_is_given_away_where_the_host_has_opened_its_lock) {
  run_job(wait_with_threads);
}
END_TEST

START_TEST(beside_a_busy_neighbour_most_yields_are_short_sleeps_and_yields_again_without) {
  run_job(wait_beside_a_busy_neighbour);
}
END_TEST

int main() { return run_tests("boot"); }
