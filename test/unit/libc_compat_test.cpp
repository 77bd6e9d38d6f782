// libc_compat.h, three times: as configured, with a C library that has none of the functions and
// headers that know the system call (glibc 2.34 but for the texts), and with headers that do not
// know it either (Debian 11). Makefile.am chooses by macros, LACKS_EPOLL_PWAIT2 tells which it is;
// the engine's socket layer above is the same.
#include "mplite/base/libc_compat.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "mplite/net/net_posix.h"
#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(errors_and_signals_have_their_texts) {
  ck_assert_str_eq(error_text(ENOENT), "No such file or directory");
  ck_assert_str_eq(error_text(ECONNREFUSED), "Connection refused");
  ck_assert_str_eq(signal_text(SIGIO), "I/O possible");
  ck_assert_str_eq(signal_text(SIGUSR2), "User defined signal 2");
  ck_assert_ptr_null(signal_text(SIGRTMIN));
  ck_assert_ptr_null(signal_text(SIGRTMAX));
  const char* none = error_text(54321);
  ck_assert(none == nullptr || strstr(none, "54321") != nullptr);
}
END_TEST

START_TEST(wait_counts_nanoseconds_or_says_that_it_cannot) {
  const int epoll = epoll_create1(0);
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = 77;
  ck_assert_int_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event), 0);
  epoll_event found = {};
  const timespec timeout = {0, 300'000};
  timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  const int n = epoll_wait_ns(epoll, &found, 1, timeout);
  clock_gettime(CLOCK_MONOTONIC, &end);
#ifdef LACKS_EPOLL_PWAIT2
  ck_assert_int_eq(n, -1);
  ck_assert_int_eq(errno, ENOSYS);
#else
  if (n < 0 && (errno == ENOSYS || errno == EPERM))
    return;  // this kernel's, or this container's, word
  ck_assert_int_eq(n, 0);
  ck_assert_int_ge((end.tv_sec - begin.tv_sec) * 1'000'000'000 + end.tv_nsec - begin.tv_nsec,
                   300'000);
  ck_assert_int_eq(write(ends[1], "x", 1), 1);
  ck_assert_int_eq(epoll_wait_ns(epoll, &found, 1, timespec{20, 0}), 1);
  ck_assert_int_eq(found.data.u64, 77);
#endif
}
END_TEST

START_TEST(socket_layer_waits_at_least_its_time) {
  PosixNet net;
  ck_assert_int_eq(net.open(), 0);
  NetEvent event;
  for (const std::int64_t timeout_ns : {1, 300'000, 20'000'000}) {
    const std::int64_t begin = net.now_ns();
    ck_assert_int_eq(net.wait(&event, 1, timeout_ns), 0);
    ck_assert_int_ge(net.now_ns() - begin, timeout_ns);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("libc_compat"); }
