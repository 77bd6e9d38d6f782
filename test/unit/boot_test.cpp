// boot.cpp in a real process: what it tells before the host hears of a loss, where it gives the core away when the host has threads. (Its start and end are exercised by test/signal.)
#include <dlfcn.h>
#include <sys/ioctl.h>

#include <string>

#include "../signal/two_ranks.h"
#include "launchers_pipe.h"
#include "run_tests.h"

using namespace two_ranks;

namespace {

bool g_in_progress = false;    // the test is in lite_progress
int g_yields_in_progress = 0;
int g_yields_outside = 0;

}  // namespace

// Interposed: the library under test is linked statically, so its calls come here.
extern "C" int sched_yield(void) noexcept {
  static const auto real = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "sched_yield"));
  ++(g_in_progress ? g_yields_in_progress : g_yields_outside);
  return real();
}

namespace {

// 0, or the line that found it wrong.
int meet_a_loss(Shared& s, int rank) {
  if (!start(s, rank)) return __LINE__;
  char word = 'w';
  Done done, answer;
  if (rank == 1) {
    if (!send(&word, 1, 0, 1, done) || !receive(&word, 1, 0, 1, answer) || !wait_for(answer) || !barrier(s, 4)) return __LINE__;
    _exit(0);
  }
  if (!receive(&word, 1, 1, 1, done) || !wait_for(done) || !send(&word, 1, 1, 1, answer)) return __LINE__;
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
  if (reader.join().find(std::string("ch_lite: ") + lite_last_error() + "\n") == std::string::npos) return __LINE__;
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

// Waits for nothing, as a host does that opens its lock between two polls or, if not `opens`, one that does not, until `count` yields have been seen.
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

int wait_with_threads(Shared& s, int rank) {
  if (!start(s, rank)) return __LINE__;
  if (rank == 0) {
    char word = 0;
    Done never;
    if (!receive(&word, 1, 1, 1, never)) return __LINE__;
    lite_set_thread_multiple(1);
    g_yields_in_progress = g_yields_outside = 0;
    if (!poll_in_vain(true, g_yields_outside, 100)) return __LINE__;
    if (g_yields_in_progress != 0) return __LINE__;
    // a loop of the host's that keeps its lock all the time still gives the core away
    if (!poll_in_vain(false, g_yields_in_progress, 100)) return __LINE__;
  }
  if (!barrier(s, 4)) return __LINE__;
  _exit(0);
}

}  // namespace

START_TEST(lost_peer_is_told_and_its_message_read_before_the_host_hears_of_it) { run_job(meet_a_loss); }
END_TEST

START_TEST(with_threads_the_core_is_given_away_where_the_host_has_opened_its_lock) { run_job(wait_with_threads); }
END_TEST

int main() {
  return run_tests("boot", {lost_peer_is_told_and_its_message_read_before_the_host_hears_of_it, with_threads_the_core_is_given_away_where_the_host_has_opened_its_lock});
}
