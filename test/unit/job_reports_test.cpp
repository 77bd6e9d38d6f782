// job_reports.h: ranks are found by the process that has started them, and asked all at once.
#include "mplite/launch/job_reports.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "run_tests.h"

using namespace mplite;

namespace {

std::int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

// A process that says so, as a rank, `times` times, after a while; then and otherwise it sleeps.
class Rank {
 public:
  Rank(int rank, int size, int times = 0, const char* text = "", unsigned after_us = 0) {
    int ready[2];
    if (pipe(ready) != 0) __builtin_trap();
    pid_ = fork();
    if (pid_ == 0) {
      ReportSocket socket;
      socket.open(rank, size);
      if (write(ready[1], "", 1) != 1) _exit(1);
      usleep(after_us);
      while (times > 0) {
        const int asker = socket.accept(0);
        if (asker >= 0) ReportSocket::send_report(asker, text, std::string(text).size()), --times;
        usleep(500);
      }
      for (;;) pause();
    }
    char byte = 0;
    if (read(ready[0], &byte, 1) != 1) __builtin_trap();
    close(ready[0]);
    close(ready[1]);
  }
  ~Rank() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

START_TEST(a_process_is_read_whatever_its_name_is) {
  ProcessState state;
  ck_assert(read_process_state(getpid(), state));
  ck_assert_int_eq(state.parent, getppid());
  ck_assert_int_eq(state.state, 'R');
  ck_assert(!state.command.empty());
  ck_assert(!read_process_state(0x3fffffff, state));
}
END_TEST

START_TEST(ranks_are_found_below_a_process_in_order) {
  const Rank two(2, 3), zero(0, 3), one(1, 3);
  const std::vector<RankReport> ranks = find_ranks(getpid());
  ck_assert_uint_eq(ranks.size(), 3);
  for (int i = 0; i < 3; ++i) {
    ck_assert_int_eq(ranks[static_cast<std::size_t>(i)].who.rank, i);
    ck_assert_int_eq(ranks[static_cast<std::size_t>(i)].process.parent, getpid());
  }
  ck_assert_uint_eq(find_ranks(one.pid()).size(), 1);
  ck_assert_uint_ge(find_ranks(0).size(), 3);
  const pid_t other = fork();
  if (other == 0)
    for (;;) pause();
  ck_assert_uint_eq(find_ranks(other).size(), 0);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}
END_TEST

START_TEST(all_are_asked_at_once_and_whoever_is_silent_is_waited_for_once) {
  const Rank zero(0, 3, 1, "rank 0 waits\nfor 1\n"), one(1, 3), two(2, 3, 1, "cut off\nin the mid");
  std::vector<RankReport> ranks = find_ranks(getpid());
  const std::int64_t begin = now_ms();
  ask_ranks(ranks, 600);
  ck_assert_int_ge(now_ms() - begin, 599);
  ck_assert_str_eq(ranks[0].text.c_str(), "rank 0 waits\nfor 1\n");
  ck_assert_str_eq(ranks[1].text.c_str(), "");
  ck_assert_str_eq(ranks[2].text.c_str(), "cut off\n");
  for (const RankReport& rank : ranks) ck_assert(rank.asked);
}
END_TEST

START_TEST(what_would_change_a_terminal_is_not_passed_on) {
  const Rank zero(0, 1, 1, "\x1b[2J\rrank 0\n\tb\x7f\nc");
  std::vector<RankReport> ranks = find_ranks(getpid());
  ask_ranks(ranks, 60'000);
  ck_assert_str_eq(ranks[0].text.c_str(), "?[2J?rank 0\n?b?\n");
}
END_TEST

// More who ask than may wait at a time, all of them gone but the last.
START_TEST(who_asks_late_gets_an_answer) {
  const Rank zero(0, 1, 1, "a\n", 500'000);
  std::vector<RankReport> ranks = find_ranks(getpid());
  for (int i = 0; i < 12; ++i) ask_ranks(ranks, 1);
  ck_assert(ranks[0].text.empty());
  ask_ranks(ranks, 60'000);
  ck_assert_str_eq(ranks[0].text.c_str(), "a\n");
}
END_TEST

START_TEST(another_users_rank_is_not_found) {
  if (geteuid() != 0) return;
  const Rank zero(0, 1);
  const pid_t child = fork();
  if (child == 0) {
    if (setresuid(12345, 12345, 12345) != 0) _exit(2);
    _exit(!find_ranks(zero.pid()).empty());
  }
  int status = 0;
  waitpid(child, &status, 0);
  ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(nobody_waits_longer_than_for_the_last_answer) {
  const Rank zero(0, 2, 1, "a\n"), one(1, 2, 1, "b\n");
  std::vector<RankReport> ranks = find_ranks(getpid());
  const std::int64_t begin = now_ms();
  ask_ranks(ranks, 60'000);
  ck_assert_int_lt(now_ms() - begin, 30'000);
  ck_assert_str_eq(ranks[1].text.c_str(), "b\n");
}
END_TEST

START_TEST(a_rank_that_ends_meanwhile_is_no_answer) {
  std::vector<RankReport> ranks;
  {
    const Rank zero(0, 1);
    ranks = find_ranks(getpid());
    ck_assert_uint_eq(ranks.size(), 1);
  }
  ask_ranks(ranks, 60'000);
  ck_assert_int_eq(ranks[0].process.state, 'X');
  ck_assert(ranks[0].text.empty());
}
END_TEST

// Who has taken the name of a process that is not its own is not believed.
START_TEST(another_process_under_the_name_is_refused) {
  ReportSocketName theirs = {getppid(), 0, 1};
  sockaddr_un address;
  const socklen_t length = format_report_socket(theirs, address);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_eq(bind(fd, reinterpret_cast<const sockaddr*>(&address), length), 0);
  ck_assert_int_eq(listen(fd, 1), 0);
  std::vector<RankReport> ranks = find_ranks(getppid());
  ck_assert_uint_eq(ranks.size(), 1);
  ask_ranks(ranks, 60'000);
  ck_assert(!ranks[0].asked);
  close(fd);
}
END_TEST

}  // namespace

int main() { return run_tests("job_reports"); }
