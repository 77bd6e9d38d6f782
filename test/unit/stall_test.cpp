// stall.cpp in two real processes: a deadlock is told of, what moves slowly is not; who asks is
// told.
#include <fcntl.h>

#include <string>

#include "../signal/two_ranks.h"
#include "mplite/launch/job_reports.h"
#include "run_tests.h"

using namespace two_ranks;

namespace {

// What this process says on stderr goes to a pipe as long as it exists.
class Listener {
 public:
  Listener() {
    if (pipe2(ends_, O_NONBLOCK | O_CLOEXEC) != 0) __builtin_trap();
    stderr_ = dup(STDERR_FILENO);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~Listener() { dup2(stderr_, STDERR_FILENO); }
  const std::string& heard() {
    char part[4096];
    for (ssize_t n; (n = read(ends_[0], part, sizeof part)) > 0;)
      text_.append(part, static_cast<std::size_t>(n));
    return text_;
  }

 private:
  int ends_[2];
  int stderr_;
  std::string text_;
};

// In a call of that name, which waits until `done` or for so long.
template <typename Condition>
bool wait_in(const char* name, double seconds, Condition done) {
  lite_host_exit();
  lite_call.name = name;
  const double end = now_s() + seconds;
  while (!done() && now_s() < end)
    if (!look()) return false;
  lite_host_exit();
  return true;
}
bool never() { return false; }

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int both_receive(Shared& s, int rank) {
  setenv("LITE_STALL", "1", 1);
  if (!start(s, rank)) return __LINE__;
  Listener listener;
  int word = 0, answer = 0;
  Done done, end;
  lite_host_exit();
  if (!receive(&word, sizeof word, 1 - rank, rank == 0 ? 5 : 7, done)) return __LINE__;
  if (!wait_in("Recv", 4, [&] { return has(listener.heard(), "connection to"); })) return __LINE__;
  const std::string other = std::to_string(1 - rank), tag = rank == 0 ? "5" : "7";
  const std::string text = listener.heard();
  if (!has(text, "ch_lite[rank " + std::to_string(rank) + " on ") ||
      !has(text, "]: waits in MPI_Recv for rank " + other + ", tag " + tag + " in context 1: ") ||
      !has(text, "]:   receive from rank " + other + ", tag " + tag))
    return std::fputs(text.c_str(), stdout), __LINE__;
  if (!barrier(s, 4)) return __LINE__;
  // what waits next waits anew
  Done sent;
  if (!send(&rank, sizeof rank, 1 - rank, rank == 0 ? 7 : 5, sent) || !wait_for(done) ||
      !wait_for(sent) || word != 1 - rank)
    return __LINE__;
  listener.heard();
  const std::size_t before = listener.heard().size();
  if (!receive(&answer, sizeof answer, 1 - rank, 9, end)) return __LINE__;
  if (!wait_in("Recv", 0.7, never) || listener.heard().size() != before) return __LINE__;
  if (!barrier(s, 5)) return __LINE__;
  _exit(0);
}

// A byte now and then, for three times as long as LITE_STALL: by messages that it does not wait
// for.
int slow_but_moving(Shared& s, int rank) {
  setenv("LITE_STALL", "1", 1);
  if (!start(s, rank)) return __LINE__;
  Listener listener;
  char word = 0;
  if (rank == 0) {
    Done last;
    if (!receive(&word, 1, 1, 99, last)) return __LINE__;
    if (!wait_in("Recv", 30, [&] { return last.done; }) || !last.done) return __LINE__;
    if (!listener.heard().empty()) return __LINE__;
    s.word[0] = 1;
  } else {
    Done done[11];
    for (int i = 0; i < 10; ++i)
      if (!wait_in("Recv", 0.3, never) || !send(&word, 1, 0, i, done[i])) return __LINE__;
    if (!send(&word, 1, 0, 99, done[10])) return __LINE__;
    if (!wait_in("Recv", 20, [&] { return s.word[0] != 0; })) return __LINE__;
  }
  if (!barrier(s, 4)) return __LINE__;
  _exit(0);
}

// MPI_Test in a loop: it may do something useful between.
int tests_in_a_loop(Shared& s, int rank) {
  setenv("LITE_STALL", "1", 1);
  if (!start(s, rank)) return __LINE__;
  Listener listener;
  char word = 0;
  Done done;
  if (rank == 0) {
    if (!receive(&word, 1, 1, 1, done)) return __LINE__;
    const double end = now_s() + 2.5;
    while (now_s() < end) {
      lite_host_call_begins(LITE_MAY_NOT_BLOCK);
      if (!look()) return __LINE__;
      lite_host_call_ends();
      lite_host_exit();
      usleep(1000);
    }
    if (!listener.heard().empty()) return __LINE__;
  }
  if (!barrier(s, 4)) return __LINE__;
  _exit(0);
}

int off_by_default(Shared& s, int rank) {
  unsetenv("LITE_STALL");
  if (!start(s, rank)) return __LINE__;
  Listener listener;
  char word = 0;
  Done done;
  if (!receive(&word, 1, 1 - rank, 1, done)) return __LINE__;
  if (!wait_in("Recv", 1.5, never) || !listener.heard().empty()) return __LINE__;
  if (!barrier(s, 4)) return __LINE__;
  _exit(0);
}

// Shared memory moves something all the time.
int g_moves = 0;
int neighbours_move(Shared& s, int rank) {
  setenv("LITE_STALL", "1", 1);
  if (!start(s, rank)) return __LINE__;
  Listener listener;
  char word = 0;
  Done done;
  if (!receive(&word, 1, 1 - rank, 1, done)) return __LINE__;
  lite_set_host_news([] { return ++g_moves % 2; });
  if (!wait_in("Recv", 2.5, never) || !listener.heard().empty()) return __LINE__;
  if (!barrier(s, 4)) return __LINE__;
  _exit(0);
}

// As lite-info --job does it.
std::string ask(int rank) {
  std::vector<mplite::RankReport> ranks = mplite::find_ranks(getppid());
  std::erase_if(ranks, [&](const mplite::RankReport& r) { return r.who.rank != rank; });
  if (ranks.size() != 1) return "not found";
  mplite::ask_ranks(ranks, 20'000);
  return ranks[0].text;
}

int asked_in_a_wait(Shared& s, int rank) {
  unsetenv("LITE_STALL");
  if (!start(s, rank)) return __LINE__;
  char word = 0;
  Done done;
  if (rank == 0) {
    Listener listener;
    if (!receive(&word, 1, 1, 5, done)) return __LINE__;
    if (!wait_in("Recv", 90, [&] { return s.word[0] != 0; })) return __LINE__;
    if (!listener.heard().empty()) return __LINE__;
  } else {
    // the connection, by which bytes come, is made half a second into the wait
    std::string text;
    const double end = now_s() + 60;
    do {
      usleep(100'000);
      text = ask(0);
    } while (now_s() < end && (has(text, "received for 0.0 s") || has(text, "(0.0 s)") ||
                               !has(text, "]:   connection to rank 1 on host ")));
    if (!has(
            text,
            "]: waits in MPI_Recv for rank 1, tag 5 in context 1: nothing sent or received for ") ||
        !has(text, "]:   receive from rank 1, tag 5") || now_s() >= end)
      return std::fputs(text.c_str(), stdout), __LINE__;
    s.word[0] = 1;
  }
  if (!barrier(s, 4, 2, 90)) return __LINE__;
  _exit(0);
}

int asked_in_a_loop_of_tests(Shared& s, int rank) {
  unsetenv("LITE_STALL");
  if (!start(s, rank)) return __LINE__;
  char word = 0;
  Done done;
  if (rank == 0) {
    if (!receive(&word, 1, 1, 5, done)) return __LINE__;
    while (s.word[0] == 0) {
      lite_host_call_begins(LITE_MAY_NOT_BLOCK);
      if (!look()) return __LINE__;
      lite_host_call_ends();
      lite_host_exit();
    }
  } else {
    const std::string text = ask(0);
    if (!has(text,
             "]: polls in calls that do not wait (MPI_Test, MPI_Iprobe) for rank 1, tag 5 "
             "in context 1\n"))
      return std::fputs(text.c_str(), stdout), __LINE__;
    s.word[0] = 1;
  }
  if (!barrier(s, 4, 2, 90)) return __LINE__;
  _exit(0);
}

}  // namespace

START_TEST(two_ranks_that_both_receive_are_told_of) { run_job(both_receive); }
END_TEST
START_TEST(wait_in_which_bytes_come_now_and_then_is_not) { run_job(slow_but_moving); }
END_TEST
START_TEST(loop_of_calls_that_do_not_wait_is_not) { run_job(tests_in_a_loop); }
END_TEST
START_TEST(nobody_is_told_of_unless_that_is_asked_for) { run_job(off_by_default); }
END_TEST
START_TEST(wait_in_which_shared_memory_moves_is_not) { run_job(neighbours_move); }
END_TEST
START_TEST(who_asks_a_waiting_rank_is_told) { run_job(asked_in_a_wait); }
END_TEST
START_TEST(who_asks_a_rank_in_a_loop_of_tests_is_told) { run_job(asked_in_a_loop_of_tests); }
END_TEST

int main() { return run_tests("stall"); }
