// descriptor.h: ours are none of the standard streams.
#include "mplite/base/descriptor.h"

#include <sys/socket.h>

#include "mplite/net/net_posix.h"
#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(what_has_a_number_of_the_standard_streams_gets_another) {
  close(0);
  const int fd = open("/dev/null", O_RDONLY);
  ck_assert_int_eq(fd, 0);
  const int moved = above_standard_streams(fd);
  ck_assert_int_gt(moved, 2);
  ck_assert_int_eq(fcntl(0, F_GETFD), -1);
  ck_assert_int_eq(fcntl(moved, F_GETFD), FD_CLOEXEC);
  ck_assert_int_eq(above_standard_streams(moved), moved);
}
END_TEST

START_TEST(a_failure_stays_what_it_is) {
  errno = EMFILE;
  ck_assert_int_eq(above_standard_streams(-1), -1);
  ck_assert_int_eq(errno, EMFILE);
}
END_TEST

START_TEST(sockets_and_epoll_are_above_them) {
  close(0);
  PosixNet net;
  ck_assert_int_eq(net.open(), 0);
  const int stream = net.open_stream(AF_INET);
  ck_assert_int_gt(stream, 2);
  ck_assert_int_eq(fcntl(0, F_GETFD), -1);
  ck_assert_int_eq(fcntl(stream, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  net.close(stream);
}
END_TEST

}  // namespace

int main() { return run_tests("descriptor"); }
