// net_posix.h over real loopback sockets: results, flags, readiness, signals, and what keepalive
// must not do.
#include "mplite/net/net_posix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "mplite/base/address.h"
#include "run_tests.h"

using namespace mplite;

namespace {

sockaddr_storage loopback(int family, std::uint16_t port = 0) {
  sockaddr_storage address = {};
  if (family == AF_INET) {
    auto* in = reinterpret_cast<sockaddr_in*>(&address);
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in->sin_port = htons(port);
  } else {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&address);
    in6->sin6_family = AF_INET6;
    in6->sin6_addr = in6addr_loopback;
    in6->sin6_port = htons(port);
  }
  return address;
}

// A connected pair: `a` initiated, `b` was accepted.
struct Link {
  PosixNet net;
  int listener = -1, a = -1, b = -1;
  sockaddr_storage at = {}, from = {};
  explicit Link(int family = AF_INET) {
    ck_assert_int_eq(net.open(), 0);
    listener = net.open_stream(family);
    ck_assert_int_ge(listener, 0);
    ck_assert_int_eq(net.bind_and_listen(listener, loopback(family)), 0);
    ck_assert_int_eq(net.local_address(listener, at), 0);
    ck_assert_int_eq(net.accept(listener, from), -EAGAIN);
    a = net.open_stream(family);
    const int rc = net.connect(a, at);
    ck_assert(rc == 0 || rc == -EINPROGRESS);
    ck_assert_int_eq(net.watch(listener, 1, kReadable), 0);
    NetEvent event;
    ck_assert_int_eq(net.wait(&event, 1, 1'000'000'000), 1);
    b = net.accept(listener, from);
    ck_assert_int_ge(b, 0);
    ck_assert_int_eq(net.connect_result(a), 0);
    ck_assert_int_eq(net.unwatch(listener), 0);
  }
  ~Link() {
    for (const int fd : {listener, a, b})
      if (fd >= 0) net.close(fd);
  }
  std::int64_t write(int fd, const void* data, std::size_t bytes) {
    const iovec iov = {const_cast<void*>(data), bytes};
    return net.write(fd, &iov, 1);
  }
  std::int64_t read(int fd, void* data, std::size_t bytes) {
    const iovec iov = {data, bytes};
    return net.read(fd, &iov, 1);
  }
  void fill(int fd) {
    static char block[65536];
    while (write(fd, block, sizeof block) > 0) {}
  }
};

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  ck_assert_int_eq(getsockopt(fd, level, name, &value, &length), 0);
  return value;
}

START_TEST(all_sockets_are_nonblocking_and_close_on_exec) {
  Link link;
  for (const int fd : {link.listener, link.a, link.b}) {
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  }
}
END_TEST

START_TEST(connection_works_over_ipv4_and_ipv6) {
  for (const int family : {AF_INET, AF_INET6}) {
    Link link(family);
    ck_assert_int_eq(link.from.ss_family, family);
    char got[8] = "";
    ck_assert_int_eq(link.write(link.a, "hello", 5), 5);
    ck_assert_int_eq(link.read(link.b, got, sizeof got), 5);
    ck_assert_mem_eq(got, "hello", 5);
  }
}
END_TEST

START_TEST(gathers_and_scatters_in_one_call) {
  Link link;
  char x[3] = {'a', 'b', 'c'}, y[2] = {'d', 'e'}, p[1], q[8] = "";
  const iovec out[] = {{x, 3}, {y, 2}};
  ck_assert_int_eq(link.net.write(link.a, out, 2), 5);
  const iovec in[] = {{p, 1}, {q, 8}};
  ck_assert_int_eq(link.net.read(link.b, in, 2), 5);
  ck_assert_int_eq(p[0], 'a');
  ck_assert_mem_eq(q, "bcde", 4);
}
END_TEST

START_TEST(empty_socket_is_eagain_and_closed_one_is_end_of_file) {
  Link link;
  char got[4];
  ck_assert_int_eq(link.read(link.b, got, 4), -EAGAIN);
  link.net.close(link.a);
  link.a = -1;
  ck_assert_int_eq(link.read(link.b, got, 4), 0);
}
END_TEST

START_TEST(full_socket_is_eagain) {
  Link link;
  link.fill(link.a);
  ck_assert_int_eq(link.write(link.a, "x", 1), -EAGAIN);
}
END_TEST

START_TEST(write_to_a_closed_peer_is_an_error_and_no_sigpipe) {
  signal(SIGPIPE, SIG_DFL);  // would end the test
  Link link;
  char one = 1;
  const iovec two[] = {{&one, 1}, {&one, 1}};
  link.net.close(link.b);
  link.b = -1;
  std::int64_t n = 0;
  for (int i = 0; i < 3 && n >= 0; ++i) n = link.write(link.a, "x", 1);
  ck_assert(n == -EPIPE || n == -ECONNRESET);
  n = link.net.write(link.a, two, 2);
  ck_assert_int_eq(n, -EPIPE);
}
END_TEST

// Lengths whose sum does not fit ssize_t make the kernel refuse the whole call, unless they are
// clamped.
START_TEST(lengths_beyond_one_call_are_clamped) {
  Link link;
  void* room = mmap(nullptr, PosixNet::kBytesPerCall, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ck_assert_ptr_ne(room, MAP_FAILED);
  const std::size_t huge = static_cast<std::size_t>(1) << 62;
  const iovec out[] = {{room, 1000}, {room, huge}, {room, huge}, {room, huge}};
  const std::int64_t sent = link.net.write(link.a, out, 4);
  ck_assert_int_gt(sent, 1000);
  const std::int64_t got = link.net.read(link.b, out, 4);
  ck_assert_int_gt(got, 1000);
  ck_assert_int_gt(link.net.write(link.b, out + 1, 1), 0);
}
END_TEST

START_TEST(second_listener_on_a_port_is_refused) {
  Link link;
  const int other = link.net.open_stream(AF_INET);
  ck_assert_int_eq(link.net.bind_and_listen(other, link.at), -EADDRINUSE);
  link.net.close(other);
}
END_TEST

// The port stays in TIME_WAIT after the side that listened has closed first; without SO_REUSEADDR
// bind fails for a minute.
START_TEST(port_of_an_ended_job_can_be_had_again) {
  Link link;
  char got;
  link.net.close(link.b);
  ck_assert_int_eq(link.read(link.a, &got, 1), 0);
  link.net.close(link.a);
  link.net.close(link.listener);
  link.a = link.b = -1;
  link.listener = link.net.open_stream(AF_INET);
  ck_assert_int_eq(link.net.bind_and_listen(link.listener, link.at), 0);
}
END_TEST

START_TEST(ipv6_listener_leaves_the_ipv4_port_free) {
  PosixNet net;
  sockaddr_storage any = {}, at = {};
  any.ss_family = AF_INET6;
  const int six = net.open_stream(AF_INET6), four = net.open_stream(AF_INET);
  ck_assert_int_eq(net.bind_and_listen(six, any), 0);
  ck_assert_int_eq(net.local_address(six, at), 0);
  ck_assert_int_eq(
      net.bind_and_listen(
          four, loopback(AF_INET, ntohs(reinterpret_cast<sockaddr_in6*>(&at)->sin6_port))),
      0);
  net.close(six);
  net.close(four);
}
END_TEST

START_TEST(local_end_is_the_address_that_a_connection_would_begin_at) {
  PosixNet net;
  const int lowest = dup(0);
  ::close(lowest);
  sockaddr_storage end = {};
  for (const int family : {AF_INET, AF_INET6}) {
    const sockaddr_storage to = loopback(family, 4711);
    const int rc = net.local_end_towards(to, end);
    if (family == AF_INET6 && rc == -EADDRNOTAVAIL) continue;  // this machine has no IPv6
    ck_assert_int_eq(rc, 0);
    ck_assert_uint_eq(end.ss_family, static_cast<unsigned>(family));
    ck_assert(is_same_host(to, end));
  }
  sockaddr_storage unknown = {};
  unknown.ss_family = AF_UNIX + 100;
  ck_assert_int_lt(net.local_end_towards(unknown, end), 0);
  ck_assert_int_eq(dup(0), lowest);  // no descriptor is left open
  ::close(lowest);
}
END_TEST

START_TEST(refused_connection_is_reported) {
  PosixNet net;
  ck_assert_int_eq(net.open(), 0);
  sockaddr_storage at = {};
  const int listener = net.open_stream(AF_INET), fd = net.open_stream(AF_INET);
  ck_assert_int_eq(net.bind_and_listen(listener, loopback(AF_INET)), 0);
  ck_assert_int_eq(net.local_address(listener, at), 0);
  net.close(listener);
  int rc = net.connect(fd, at);
  if (rc == -EINPROGRESS) {
    NetEvent event;
    ck_assert_int_eq(net.watch(fd, 1, kWritable), 0);
    ck_assert_int_eq(net.wait(&event, 1, 1'000'000'000), 1);
    ck_assert_uint_eq(event.ready, kReadable | kWritable);
    rc = net.connect_result(fd);
  }
  ck_assert_int_eq(rc, -ECONNREFUSED);
  net.close(fd);
}
END_TEST

START_TEST(readiness_is_level_triggered_and_carries_the_token) {
  Link link;
  const std::uint64_t token = 0xfedcba9876543210;
  NetEvent events[4];
  ck_assert_int_eq(link.net.watch(link.b, token, kReadable), 0);
  ck_assert_int_eq(link.net.wait(events, 4, 0), 0);
  ck_assert_int_eq(link.write(link.a, "x", 1), 1);
  for (int i = 0; i < 2; ++i) {
    ck_assert_int_eq(link.net.wait(events, 4, 1'000'000'000), 1);
    ck_assert(events[0].token == token);
    ck_assert_uint_eq(events[0].ready, kReadable);
  }
  ck_assert_int_eq(link.net.rewatch(link.b, 7, kWritable), 0);
  ck_assert_int_eq(link.net.wait(events, 4, 1'000'000'000), 1);
  ck_assert(events[0].token == 7);
  ck_assert_uint_eq(events[0].ready, kWritable);
  ck_assert_int_eq(link.net.rewatch(link.b, 7, 0), 0);  // registered, silent
  ck_assert_int_eq(link.net.wait(events, 4, 0), 0);
  ck_assert_int_eq(link.net.unwatch(link.b), 0);
  ck_assert_int_eq(link.net.rewatch(link.b, 7, 0), -ENOENT);
}
END_TEST

// All stay ready; still each has its turn within two calls, whatever the caller has room for.
START_TEST(more_ready_than_one_call_tells_are_told_by_the_next) {
  constexpr int kSockets = 100;
  PosixNet net;
  ck_assert_int_eq(net.open(), 0);
  int pairs[kSockets][2];
  for (int i = 0; i < kSockets; ++i) {
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pairs[i]),
                     0);
    ck_assert_int_eq(write(pairs[i][1], "x", 1), 1);
    ck_assert_int_eq(net.watch(pairs[i][0], static_cast<std::uint64_t>(i), kReadable), 0);
  }
  int told[kSockets] = {};
  for (int call = 0; call < 2; ++call) {
    NetEvent events[kSockets];
    const int found = net.wait(events, kSockets, 0);
    ck_assert_int_eq(found, PosixNet::kEventsPerWait);
    for (int i = 0; i < found; ++i) ++told[events[i].token];
  }
  for (const int times : told) ck_assert_int_ge(times, 1);
  for (const auto& pair : pairs) close(pair[0]), close(pair[1]);
}
END_TEST

START_TEST(callers_are_a_set_of_their_own) {
  Link link;
  NetEvent events[4];
  ck_assert_int_eq(link.net.watch(link.a, 1, kReadable), 0);
  ck_assert_int_eq(link.net.watch(link.b, 2, kReadable), 0);
  ck_assert_int_eq(link.net.watch_caller(link.b, 3, false), 0);
  ck_assert_int_eq(link.write(link.b, "x", 1), 1);
  ck_assert_int_eq(link.net.wait(events, 4, 1'000'000'000), 1);
  ck_assert_int_eq(link.net.wait_callers(events, 4, 0), 0);
  ck_assert_int_eq(link.write(link.a, "x", 1), 1);
  for (int i = 0; i < 2; ++i) {
    ck_assert_int_eq(link.net.wait_callers(events, 4, 1'000'000'000), 1);
    ck_assert(events[0].token == 3);
    ck_assert_uint_eq(events[0].ready, kReadable);
  }
  ck_assert_int_eq(link.net.wait(events, 4, 0), 2);
  ck_assert_int_eq(link.net.unwatch_caller(link.b), 0);
  ck_assert_int_eq(link.net.wait_callers(events, 4, 0), 0);
  ck_assert_int_eq(link.net.wait(events, 4, 0), 2);
  ck_assert_int_eq(link.net.watch_caller(link.b, 4, true), 0);  // told once per arrival
  ck_assert_int_eq(link.net.wait_callers(events, 4, 1'000'000'000), 1);
  ck_assert_int_eq(link.net.wait_callers(events, 4, 0), 0);
  ck_assert_int_eq(link.write(link.a, "x", 1), 1);
  ck_assert_int_eq(link.net.wait_callers(events, 4, 1'000'000'000), 1);
}
END_TEST

START_TEST(reset_shows_as_both_ready) {
  Link link;
  ck_assert_int_eq(link.net.watch(link.b, 3, kReadable), 0);
  const linger now = {1, 0};
  ck_assert_int_eq(setsockopt(link.a, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
  link.net.close(link.a);
  link.a = -1;
  NetEvent event;
  ck_assert_int_eq(link.net.wait(&event, 1, 1'000'000'000), 1);
  ck_assert_uint_eq(event.ready, kReadable | kWritable);
}
END_TEST

START_TEST(spin_lasts_at_least_its_time) {
  PosixNet net;
  for (const std::int64_t ns : {0, 1, 5'000, 2'000'000}) {
    const std::int64_t begin = net.now_ns();
    net.spin(ns);
    const std::int64_t took = net.now_ns() - begin;
    ck_assert_int_ge(took, ns);
    ck_assert_int_lt(took, ns + 2'000'000'000);
  }
}
END_TEST

void wait_lasts_at_least_its_time(PosixNet& net) {
  NetEvent event;
  for (const std::int64_t timeout_ns : {1, 300'000, 1'500'000, 20'000'000}) {
    const std::int64_t begin = net.now_ns();
    ck_assert_int_eq(net.wait(&event, 1, timeout_ns), 0);
    const std::int64_t took = net.now_ns() - begin;
    ck_assert_int_ge(took, timeout_ns);
    ck_assert_int_lt(took, timeout_ns + 2'000'000'000);
  }
}

START_TEST(wait_is_never_shorter_than_asked) {
  PosixNet net;
  ck_assert_int_eq(net.open(), 0);
  wait_lasts_at_least_its_time(net);
}
END_TEST

#ifdef SYS_epoll_pwait2
// As on an older kernel (ENOSYS) and in a container whose filter does not know the call (EPERM).
// Each test runs in a process of its own.
void refuse_epoll_pwait2(int error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof code / sizeof code[0], code};
  ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
  ck_assert_int_eq(syscall(SYS_epoll_pwait2, -1, nullptr, 0, nullptr, nullptr, 0), -1);
  ck_assert_int_eq(errno, error);
}

START_REPEATED_TEST(wait_does_without_epoll_pwait2, 2) {
  refuse_epoll_pwait2(_i == 0 ? ENOSYS : EPERM);
  PosixNet net;
  ck_assert_int_eq(net.open(), 0);
  wait_lasts_at_least_its_time(net);
}
END_TEST
#endif

START_TEST(wait_without_end_ends_with_an_event) {
  Link link;
  NetEvent event;
  ck_assert_int_eq(link.net.watch(link.b, 1, kReadable), 0);
  ck_assert_int_eq(link.write(link.a, "x", 1), 1);
  ck_assert_int_eq(link.net.wait(&event, 1, -1), 1);
}
END_TEST

void nothing(int) {}

START_TEST(signal_ends_a_wait_with_no_events) {
  struct sigaction action = {};
  action.sa_handler = nothing;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  PosixNet net;
  ck_assert_int_eq(net.open(), 0);
  NetEvent event;
  for (const std::int64_t timeout_ns : {std::int64_t{-1}, std::int64_t{20'000'000'000}}) {
    const itimerval soon = {{0, 0}, {0, 20'000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    const std::int64_t begin = net.now_ns();
    ck_assert_int_eq(net.wait(&event, 1, timeout_ns), 0);
    ck_assert_int_lt(net.now_ns() - begin, 10'000'000'000);
  }
}
END_TEST

volatile sig_atomic_t g_signals = 0;
volatile sig_atomic_t g_fd = -1;
volatile sig_atomic_t g_tid = 0;
void count_signal(int, siginfo_t* info, void*) {
  g_signals = g_signals + 1;
  g_fd = info->si_fd;
  g_tid = static_cast<sig_atomic_t>(syscall(SYS_gettid));
}

// Sends one byte and waits up to a second for the signal; returns whether it came.
bool byte_raises(Link& link, int& before) {
  before = g_signals;
  ck_assert_int_eq(link.write(link.a, "x", 1), 1);
  NetEvent event;
  for (int i = 0; i < 100 && g_signals == before; ++i) link.net.wait(&event, 1, 1'000'000);
  return g_signals != before;
}

START_REPEATED_TEST(arriving_data_raises_the_chosen_signal_in_the_chosen_thread, 2) {
  const int signo = _i == 0 ? SIGIO : SIGRTMIN + 3;
  struct sigaction action = {};
  action.sa_sigaction = count_signal;
  action.sa_flags = SA_SIGINFO;
  sigaction(signo, &action, nullptr);
  Link link;
  const int tid = static_cast<int>(syscall(SYS_gettid));
  int before = 0;
  ck_assert_int_eq(link.net.set_signal_driven(link.b, tid, signo), 0);
  f_owner_ex owner = {};
  ck_assert_int_eq(fcntl(link.b, F_GETOWN_EX, &owner), 0);
  ck_assert_int_eq(owner.type, F_OWNER_TID);
  ck_assert(byte_raises(link, before));
  ck_assert_int_eq(g_fd, link.b);
  ck_assert_int_eq(g_tid, tid);
  ck_assert_int_eq(link.net.set_signal_driven(link.b, 0, 0), 0);
  ck_assert(!byte_raises(link, before));
  ck_assert(fcntl(link.b, F_GETFL) & O_NONBLOCK);
}
END_TEST

START_TEST(low_water_mark_holds_readiness_back) {
  Link link;
  NetEvent event;
  ck_assert_int_eq(link.net.watch(link.b, 1, kReadable), 0);
  ck_assert_int_eq(link.net.set_receive_low_water(link.b, 100), 0);
  char block[99] = {};
  ck_assert_int_eq(link.write(link.a, block, 99), 99);
  ck_assert_int_eq(link.net.wait(&event, 1, 20'000'000), 0);
  ck_assert_int_eq(link.write(link.a, block, 1), 1);
  ck_assert_int_eq(link.net.wait(&event, 1, 1'000'000'000), 1);
  ck_assert_int_eq(link.net.set_receive_low_water(link.b, 1), 0);
}
END_TEST

START_TEST(options_reach_the_socket) {
  Link link;
  link.net.set_options(link.a, {100'000, 7, 3});
  ck_assert_int_eq(option(link.a, IPPROTO_TCP, TCP_NODELAY), 1);
  ck_assert_int_eq(option(link.a, SOL_SOCKET, SO_SNDBUF),
                   200'000);  // the kernel doubles it for its own needs
  ck_assert_int_eq(option(link.a, SOL_SOCKET, SO_RCVBUF), 200'000);
  ck_assert_int_eq(option(link.a, SOL_SOCKET, SO_KEEPALIVE), 1);
  ck_assert_int_eq(option(link.a, IPPROTO_TCP, TCP_KEEPIDLE), 7);
  ck_assert_int_eq(option(link.a, IPPROTO_TCP, TCP_KEEPINTVL), 3);
  ck_assert_int_eq(option(link.a, IPPROTO_TCP, TCP_KEEPCNT), kKeepaliveProbes);
  const int autotuned = option(link.b, SOL_SOCKET, SO_SNDBUF);
  link.net.set_options(link.b, {0, 0, 0});
  ck_assert_int_eq(option(link.b, IPPROTO_TCP, TCP_NODELAY), 1);
  ck_assert_int_eq(option(link.b, SOL_SOCKET, SO_KEEPALIVE), 0);
  ck_assert_int_eq(option(link.b, SOL_SOCKET, SO_SNDBUF), autotuned);
}
END_TEST

// A rank that computes for minutes with `sync`, or is stopped in a debugger, closes its window and
// answers probes only. With TCP_USER_TIMEOUT at idle + 5 intervals the kernel gave it up after 6 s
// here.
START_TEST(peer_that_does_not_read_is_not_given_up) {
  Link link;
  for (const int fd : {link.a, link.b}) link.net.set_options(fd, {0, 1, 1});
  link.fill(link.a);
  const std::int64_t begin = link.net.now_ns();
  NetEvent event;
  while (link.net.now_ns() - begin < 8'000'000'000) {
    link.net.wait(&event, 1, 100'000'000);
    link.fill(link.a);
    ck_assert_int_eq(link.net.connect_result(link.a), 0);
    ck_assert_int_eq(link.write(link.a, "x", 1), -EAGAIN);
    ck_assert(!link.net.is_silent(link.a, 6000));
  }
  static char block[65536];
  std::int64_t got = 0, n;
  while ((n = link.read(link.b, block, sizeof block)) > 0) got += n;
  ck_assert_int_gt(got, 0);
}
END_TEST

// Nothing reaches this socket any more: to its peer it is as if the cable were cut.
void cut_off(int fd) {
  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program = {1, &drop_all};
  ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

// With data in flight (_i 0), and while its window is closed (_i 1).
START_REPEATED_TEST(cut_off_peer_is_silent_while_data_waits, 2) {
  Link link;
  NetEvent event;
  for (const int fd : {link.a, link.b}) link.net.set_options(fd, {0, 1, 1});
  if (_i == 1) {
    const std::int64_t begin = link.net.now_ns();
    while (link.net.now_ns() - begin < 1'000'000'000) {  // until the window is closed for good
      link.fill(link.a);
      link.net.wait(&event, 1, 50'000'000);
    }
  }
  StreamReport report;
  ck_assert(link.net.report(link.a, report));
  if (_i == 0) ck_assert_uint_eq(report.retransmissions, 0);
  cut_off(link.b);
  link.write(link.a, "x", 1);
  ck_assert(!link.net.is_silent(link.a, 1000));
  const std::int64_t begin = link.net.now_ns();
  while (!link.net.is_silent(link.a, 1000)) {
    link.net.wait(&event, 1, 50'000'000);
    ck_assert_int_lt(link.net.now_ns() - begin, 10'000'000'000);
  }
  ck_assert_int_ge(link.net.now_ns() - begin, _i == 0 ? 900'000'000 : 0);
  ck_assert(link.net.report(link.a, report));
  if (_i == 0) ck_assert_uint_gt(report.retransmissions, 0);
}
END_TEST

// A peer that has nothing to answer is not silent, however long ago it spoke.
START_TEST(idle_peer_is_not_silent) {
  Link link;
  NetEvent event;
  link.net.wait(&event, 1, 50'000'000);
  ck_assert(!link.net.is_silent(link.a, 1));
}
END_TEST

START_TEST(kernel_tells_what_it_knows_of_a_connection) {
  Link link;
  StreamReport before, after;
  ck_assert(link.net.report(link.a, before));
  char data[1000] = {};
  ck_assert_int_eq(link.write(link.a, data, sizeof data), sizeof data);
  const std::int64_t begin = link.net.now_ns();
  do {  // until they are acknowledged
    ck_assert(link.net.report(link.a, after));
    ck_assert_int_lt(link.net.now_ns() - begin, 10'000'000'000);
  } while (after.acknowledged - before.acknowledged < sizeof data);
  ck_assert_uint_eq(after.acknowledged - before.acknowledged, sizeof data);
  ck_assert_uint_eq(after.unacknowledged, 0);
  ck_assert_uint_gt(after.round_trip_us, 0);
  ck_assert_uint_lt(after.round_trip_us, 1'000'000);
  ck_assert(!link.net.report(-1, after));
}
END_TEST

// Before what it has sent is read (_i 0), and with a reset in place of an end (_i 1).
START_REPEATED_TEST(end_of_the_peer_is_told_before_its_data_is_read, 2) {
  Link link;
  ck_assert_int_eq(link.write(link.b, "x", 1), 1);
  ck_assert(!link.net.has_ended(link.a));
  if (_i == 1) {
    const linger at_once = {1, 0};
    ck_assert_int_eq(setsockopt(link.b, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  }
  link.net.close(link.b);
  link.b = -1;
  const std::int64_t begin = link.net.now_ns();
  while (!link.net.has_ended(link.a)) ck_assert_int_lt(link.net.now_ns() - begin, 10'000'000'000);
  char got = 0;
  if (_i == 0) ck_assert_int_eq(link.read(link.a, &got, 1), 1);
  ck_assert(link.net.has_ended(link.a));
}
END_TEST

START_TEST(waits_end_until_that_is_switched_off) {
  Link link;
  NetEvent events[4];
  ck_assert_int_eq(link.net.watch(link.b, 1, kReadable), 0);
  for (int i = 0; i < 3; ++i) {
    ck_assert_int_eq(link.net.end_waits(true), 0);
    for (int j = 0; j < 3; ++j) ck_assert_int_eq(link.net.wait(events, 4, -1), 0);
    ck_assert_int_eq(link.write(link.a, "x", 1), 1);
    int found = 0;  // loopback takes its time
    while (found == 0) found = link.net.wait(events, 4, -1);
    ck_assert_int_eq(found, 1);
    ck_assert(events[0].token == 1);
    ck_assert_int_eq(link.net.end_waits(false), 0);
    char byte;
    ck_assert_int_eq(link.read(link.b, &byte, 1), 1);
    const std::int64_t began_ns = link.net.now_ns();
    ck_assert_int_eq(link.net.wait(events, 4, 5'000'000), 0);
    ck_assert_int_ge(link.net.now_ns() - began_ns, 5'000'000);
  }
}
END_TEST

START_TEST(random_fills_every_byte_and_no_more) {
  PosixNet net;
  std::uint8_t bytes[1003], sum[1000] = {};
  for (int round = 0; round < 8; ++round) {
    std::memset(bytes, 0, sizeof bytes);
    net.random(bytes, 1000);
    for (int i = 0; i < 1000; ++i) sum[i] = static_cast<std::uint8_t>(sum[i] | bytes[i]);
    ck_assert_int_eq(bytes[1000] | bytes[1001] | bytes[1002], 0);
  }
  for (int i = 0; i < 1000; ++i) ck_assert_uint_ne(sum[i], 0);  // all eight zero: 1000 / 256^8
}
END_TEST

START_TEST(waiting_process_does_not_hand_what_it_waits_by_to_a_child) {
  PosixNet net;
  ck_assert_int_eq(net.open(), 0);
  ck_assert_int_eq(net.open(), 0);  // again is harmless
  int pair[2];
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  ck_assert_int_eq(net.watch_caller(pair[0], 1, false), 0);
  ck_assert_int_eq(net.end_waits(true), 0);
  int found = 0;
  for (int fd = 3; fd < 64; ++fd) {
    char path[64], target[64] = "";
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof target - 1) <= 0 ||
        (std::strstr(target, "eventpoll") == nullptr && std::strstr(target, "eventfd") == nullptr))
      continue;
    ++found;
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  }
  ck_assert_int_eq(found, 3);
}
END_TEST

}  // namespace

int main() { return run_tests("net_posix", 60); }
