// report_socket.h: names, who may ask, and what is left alone.
#include "mplite/runtime/report_socket.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::int64_t kNow = 1'000'000'000'000;

int ask(int pid, int rank, int size) {
  sockaddr_un address;
  const socklen_t length = format_report_socket({pid, rank, size}, address);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
  close(fd);
  return -1;
}

std::string read_all(int fd) {
  std::string text;
  char part[4096];
  for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(n));
  close(fd);
  return text;
}

START_TEST(names_are_read_as_they_are_written) {
  sockaddr_un address;
  const socklen_t length = format_report_socket({4711, 3, 8}, address);
  ck_assert_int_eq(address.sun_path[0], '\0');
  const std::string text(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  ck_assert_str_eq(text.c_str(), "ch_lite/report/4711/3/8");
  ReportSocketName name;
  ck_assert(parse_report_socket(std::string("@").append(text).c_str(), name));
  ck_assert_int_eq(name.pid, 4711);
  ck_assert_int_eq(name.rank, 3);
  ck_assert_int_eq(name.size, 8);
}
END_TEST

START_TEST(other_names_are_refused) {
  ReportSocketName name;
  for (const char* other :
       {"", "@", "/tmp/x", "@ch_lite/report/", "@ch_lite/report/4711/3",
        "@ch_lite/report/4711/3/8x", "@ch_lite/report/4711/8/8", "@ch_lite/report/0/0/1",
        "@ch_lite/report/-1/0/1", "@ch_lite/report/4711/-1/1", "ch_lite/report/4711/3/8",
        "@ch_lite/report/4711/3/8/", "@ch_lite/report/99999999999/0/1"})
    ck_assert_msg(!parse_report_socket(other, name), "%s", other);
}
END_TEST

START_TEST(who_asks_gets_the_report) {
  ReportSocket socket;
  ck_assert(!socket.is_due(kNow));
  socket.open(3, 8);
  ck_assert(socket.is_due(kNow));
  ck_assert_int_eq(socket.accept(kNow), -1);
  // not again at once
  ck_assert(!socket.is_due(kNow + ReportSocket::kPeriodNs - 1));
  ck_assert(socket.is_due(kNow + ReportSocket::kPeriodNs));
  const int fd = ask(getpid(), 3, 8);
  ck_assert_int_ge(fd, 0);
  const int asker = socket.accept(kNow);
  ck_assert_int_gt(asker, STDERR_FILENO);
  const std::string report(70'000, 'x');
  ReportSocket::send_report(asker, report.data(), report.size());
  ck_assert(read_all(fd) == report);
}
END_TEST

START_TEST(an_asker_that_has_gone_or_does_not_read_holds_nobody_up) {
  ReportSocket socket;
  socket.open(0, 1);
  const std::string report(4'000'000, 'x');
  for (int i = 0; i < 5; ++i) close(ask(getpid(), 0, 1));
  const int alive = ask(getpid(), 0, 1);
  int asker = socket.accept(kNow);
  ck_assert_int_ge(asker, 0);
  ReportSocket::send_report(asker, "x", 1);
  const std::string text = read_all(alive);
  ck_assert_str_eq(text.c_str(), "x");
  const int silent = ask(getpid(), 0, 1);
  asker = socket.accept(kNow);
  ck_assert_int_ge(asker, 0);
  ReportSocket::send_report(asker, report.data(), report.size());
  ck_assert_int_eq(fcntl(asker, F_GETFD), -1);
  close(silent);
}
END_TEST

START_TEST(another_users_process_is_sent_away) {
  if (geteuid() != 0) return;
  ReportSocket socket;
  socket.open(0, 1);
  const int pid = getpid();
  // root asks who is not root: answered; the other way round: not
  const pid_t child = fork();
  if (child == 0) {
    if (setresuid(12345, 12345, 12345) != 0) _exit(2);
    const int fd = ask(pid, 0, 1);
    char byte = 0;
    _exit(fd >= 0 && read(fd, &byte, 1) == 0 ? 0 : 1);
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    ck_assert_int_eq(socket.accept(kNow), -1);
    usleep(1000);
  }
  ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(a_taken_name_means_that_nobody_can_ask) {
  ReportSocket first, second;
  first.open(0, 1);
  second.open(0, 1);
  ck_assert(first.is_due(kNow));
  ck_assert(!second.is_due(kNow));
}
END_TEST

// closefrom(3) in the application, and a descriptor of its own that has the number then.
START_TEST(what_is_not_ours_any_more_is_left_alone) {
  const int next = dup(STDERR_FILENO);
  close(next);
  ReportSocket socket;
  socket.open(0, 1);
  int ends[2];
  close(next);
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ck_assert_int_eq(ends[0], next);
  ck_assert_int_eq(socket.accept(kNow), -1);
  ck_assert(!socket.is_due(INT64_MAX - 1));
  socket.close();
  ck_assert_int_ne(fcntl(ends[0], F_GETFD), -1);
  close(ends[0]);
  close(ends[1]);
}
END_TEST

START_TEST(a_child_of_fork_does_not_keep_it) {
  ReportSocket socket;
  socket.open(0, 1);
  int ends[2], runs[2];
  char byte = 0;
  ck_assert_int_eq(pipe(ends), 0);
  ck_assert_int_eq(pipe(runs), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    _exit(socket.is_due(kNow) || write(runs[1], "", 1) != 1 || read(ends[0], &byte, 1) != 0);
  }
  // it may not have got so far yet
  ck_assert_int_eq(read(runs[0], &byte, 1), 1);
  close(ends[0]);
  socket.close();
  ck_assert_int_eq(ask(getpid(), 0, 1), -1);
  socket.open(0, 1);
  ck_assert(socket.is_due(kNow));
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(closed_nobody_can_ask) {
  ReportSocket socket;
  socket.open(0, 1);
  socket.close();
  ck_assert(!socket.is_due(kNow));
  ck_assert_int_eq(ask(getpid(), 0, 1), -1);
}
END_TEST

}  // namespace

int main() { return run_tests("report_socket"); }
