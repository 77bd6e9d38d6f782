// The real socket layer under the engine: Linux system calls, nothing kept but the epoll
// descriptor.
#include "mplite/net/net_posix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "mplite/base/descriptor.h"
#include "mplite/base/libc_compat.h"

namespace mplite {
namespace {

constexpr std::uint64_t kReadyToken = std::uint64_t{1} << 63;  // of ready_; no connection has it

constexpr int kTcpRtoMaxMs = 44;  // TCP_RTO_MAX_MS, Linux 6.15; not in Debian 12's headers

ssize_t receive_some(int fd, const iovec* iov, int iovs) {
  if (iovs == 1)
    return recv(fd, iov->iov_base, iov->iov_len,
                0);  // for one piece the kernel has no msghdr and iov to copy in
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(iov);
  message.msg_iovlen = static_cast<std::size_t>(iovs);
  return recvmsg(fd, &message, 0);
}

ssize_t send_some(int fd, const iovec* iov, int iovs) {
  if (iovs == 1) return send(fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL);
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(iov);
  message.msg_iovlen = static_cast<std::size_t>(iovs);
  return sendmsg(fd, &message, MSG_NOSIGNAL);
}

using Move = ssize_t (*)(int fd, const iovec* iov, int iovs);

template <Move move>
inline std::int64_t move_all(int fd, const iovec* iov, int iovs) {
  for (;;) {
    const ssize_t n = move(fd, iov, iovs);
    if (n >= 0) return n;
    if (errno != EINTR) return -errno;
  }
}

// In a frame of its own, so that the copy is on the stack only when it is needed: the handler's may
// be small.
template <Move move>
[[gnu::noinline]] std::int64_t move_clamped(int fd, const iovec* iov, int last,
                                            std::size_t last_bytes) {
  iovec copy[kIovsMax];
  memcpy(copy, iov, static_cast<std::size_t>(last + 1) * sizeof *iov);
  copy[last].iov_len = last_bytes;
  return move_all<move>(fd, copy, last + 1);
}

// As given, or cut to what one call may move. (read and write stop at 0x7ffff000 bytes by
// themselves, sendmsg does too, but neither is promised for every protocol, and a 32-bit sum of an
// iov is EINVAL.)
template <Move move>
std::int64_t move_some(int fd, const iovec* iov, int iovs) {
  if (iovs == 1 && iov->iov_len <= PosixNet::kBytesPerCall) [[likely]]
    return move_all<move>(fd, iov, 1);
  if (iovs > kIovsMax) iovs = kIovsMax;
  std::size_t sum = 0;
  for (int i = 0; i < iovs; ++i) {
    if (iov[i].iov_len > PosixNet::kBytesPerCall - sum)
      return move_clamped<move>(fd, iov, i, PosixNet::kBytesPerCall - sum);
    sum += iov[i].iov_len;
  }
  return move_all<move>(fd, iov, iovs);
}

socklen_t address_length(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::uint32_t epoll_bits(unsigned interest) {
  return ((interest & kReadable) != 0 ? static_cast<std::uint32_t>(EPOLLIN) : 0) |
         ((interest & kWritable) != 0 ? static_cast<std::uint32_t>(EPOLLOUT) : 0);
}

void set_int(int fd, int level, int option, int value) {
  (void)setsockopt(fd, level, option, &value, sizeof value);
}

}  // namespace

PosixNet::~PosixNet() {
  if (epoll_ >= 0) ::close(epoll_);
  if (callers_ >= 0) ::close(callers_);
  if (ready_ >= 0) ::close(ready_);
}

int PosixNet::open() {
  if (epoll_ >= 0) return 0;
  const int fd = above_standard_streams(epoll_create1(EPOLL_CLOEXEC));
  if (fd < 0) return -errno;
  epoll_ = fd;
  return 0;
}

int PosixNet::open_stream(int family) MPLITE_SIGNAL_SAFE {
  const int fd =
      above_standard_streams(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return fd >= 0 ? fd : -errno;
}

int PosixNet::bind_and_listen(int fd, const sockaddr_storage& address) MPLITE_SIGNAL_SAFE {
  // Without it a port of LITE_PORT_RANGE stays unusable for a minute after each job. Two listeners
  // on one port are still refused (by listen).
  set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ss_family == AF_INET6) set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), address_length(address)) != 0)
    return -errno;
  if (listen(fd, SOMAXCONN) != 0) return -errno;
  return 0;
}

int PosixNet::local_address(int fd, sockaddr_storage& address) MPLITE_SIGNAL_SAFE {
  sockaddr_storage found;
  memset(&found, 0, sizeof found);
  socklen_t length = sizeof found;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&found), &length) != 0) return -errno;
  address = found;
  return 0;
}

// UDP's connect() looks for the route, and that is all.
int PosixNet::local_end_towards(const sockaddr_storage& to,
                                sockaddr_storage& end) MPLITE_SIGNAL_SAFE {
  const int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  const int rc = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), address_length(to)) == 0
                     ? local_address(fd, end)
                     : -errno;
  ::close(fd);
  return rc;
}

int PosixNet::connect(int fd, const sockaddr_storage& address) MPLITE_SIGNAL_SAFE {
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), address_length(address)) == 0)
    return 0;
  // An interrupted connect goes on by itself; calling it again would give EALREADY. A non-blocking
  // one is in any case only begun here.
  return errno == EINTR ? -EINPROGRESS : -errno;
}

int PosixNet::connect_result(int fd) MPLITE_SIGNAL_SAFE {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return -errno;
  return -error;
}

int PosixNet::accept(int listener, sockaddr_storage& from) MPLITE_SIGNAL_SAFE {
  for (;;) {
    sockaddr_storage remote;
    memset(&remote, 0, sizeof remote);
    socklen_t length = sizeof remote;
    const int fd = above_standard_streams(accept4(listener, reinterpret_cast<sockaddr*>(&remote),
                                                  &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd >= 0) {
      from = remote;
      return fd;
    }
    // ECONNABORTED: that one went away while it was queued; there may be another behind it.
    if (errno != EINTR && errno != ECONNABORTED) return -errno;
  }
}

std::int64_t PosixNet::read(int fd, const iovec* iov, int iovs) MPLITE_SIGNAL_SAFE {
  return move_some<receive_some>(fd, iov, iovs);
}

std::int64_t PosixNet::write(int fd, const iovec* iov, int iovs) MPLITE_SIGNAL_SAFE {
  return move_some<send_some>(fd, iov, iovs);
}

void PosixNet::close(int fd) MPLITE_SIGNAL_SAFE {
  // Linux frees the descriptor even on EINTR; a second close could hit somebody else's.
  (void)::close(fd);
}

// TCP_USER_TIMEOUT would be the plain way to notice a cut-off peer while data is queued (keepalive
// is silent then). It must not be used: Linux counts time in which the peer's window is closed as
// well, answered probes or not, so a peer that lives and computes without reading for that long
// would be given up with ETIMEDOUT (test: peer_that_does_not_read_is_not_given_up). Instead the
// retransmission interval is bounded: probes and retransmissions to a cut-off peer then run out in
// the kernel after tcp_retries2 (15) tries, 28 s at an interval of 2 s (measured, Linux 6.18),
// while each answer of a living peer starts the count anew. Kernels before 6.15 do not have it;
// is_silent() tells there.
void PosixNet::set_options(int fd, const StreamOptions& options) MPLITE_SIGNAL_SAFE {
  set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (options.socket_buffer_bytes > 0) {
    set_int(fd, SOL_SOCKET, SO_SNDBUF, options.socket_buffer_bytes);
    set_int(fd, SOL_SOCKET, SO_RCVBUF, options.socket_buffer_bytes);
  }
  if (options.keepalive_idle_s > 0) {
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, options.keepalive_idle_s);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, options.keepalive_interval_s);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes);
    const int rto_max_ms =
        options.keepalive_interval_s >= 120 ? 120'000 : options.keepalive_interval_s * 1000;
    set_int(fd, IPPROTO_TCP, kTcpRtoMaxMs, rto_max_ms);
  }
}

int PosixNet::set_signal_driven(int fd, int tid, int signo) MPLITE_SIGNAL_SAFE {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0) return -errno;
  if (tid == 0) return fcntl(fd, F_SETFL, flags & ~O_ASYNC) == 0 ? 0 : -errno;
  // Owner and signal before the flag: otherwise a first SIGIO could go elsewhere.
  f_owner_ex owner = {F_OWNER_TID, tid};
  if (fcntl(fd, F_SETOWN_EX, &owner) != 0) return -errno;
  if (fcntl(fd, F_SETSIG, signo) != 0) return -errno;
  return fcntl(fd, F_SETFL, flags | O_ASYNC) == 0 ? 0 : -errno;
}

// One call: all our sockets are non-blocking, and no other status flag of theirs can be changed.
int PosixNet::set_signals(int fd, bool on) MPLITE_SIGNAL_SAFE {
  return fcntl(fd, F_SETFL, O_NONBLOCK | (on ? O_ASYNC : 0)) == 0 ? 0 : -errno;
}

int PosixNet::set_receive_low_water(int fd, int bytes) MPLITE_SIGNAL_SAFE {
  return setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0 ? 0 : -errno;
}

// 0 is the system's limit, which as a rule is none.
void PosixNet::set_unsent_limit(int fd, int bytes) MPLITE_SIGNAL_SAFE {
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

std::int64_t PosixNet::unacknowledged(int fd) MPLITE_SIGNAL_SAFE {
  int bytes = 0;
  return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : -errno;
}

// By a filter that lets no packet through. A kernel without them: who asks for this finds out by
// the positions (StreamPosition) if something was acknowledged and not read.
void PosixNet::stop_receiving(int fd) MPLITE_SIGNAL_SAFE {
  sock_filter nothing = {BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program = {1, &nothing};
  setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

int PosixNet::watch(int fd, std::uint64_t token, unsigned interest) MPLITE_SIGNAL_SAFE {
  epoll_event event = {};
  event.events = epoll_bits(interest);
  event.data.u64 = token;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

int PosixNet::rewatch(int fd, std::uint64_t token, unsigned interest) MPLITE_SIGNAL_SAFE {
  epoll_event event = {};
  event.events = epoll_bits(interest);
  event.data.u64 = token;
  return epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) == 0 ? 0 : -errno;
}

int PosixNet::unwatch(int fd) MPLITE_SIGNAL_SAFE {
  epoll_event event = {};
  return epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, &event) == 0 ? 0 : -errno;
}

int PosixNet::watch_caller(int fd, std::uint64_t token, bool edge) MPLITE_SIGNAL_SAFE {
  if (callers_ < 0) callers_ = above_standard_streams(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {};
  event.events = EPOLLIN | (edge ? static_cast<std::uint32_t>(EPOLLET) : 0);
  event.data.u64 = token;
  return callers_ >= 0 && epoll_ctl(callers_, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

int PosixNet::unwatch_caller(int fd) MPLITE_SIGNAL_SAFE {
  epoll_event event = {};
  return epoll_ctl(callers_, EPOLL_CTL_DEL, fd, &event) == 0 ? 0 : -errno;
}

int PosixNet::wait_callers(NetEvent* events, int events_max,
                           std::int64_t timeout_ns) MPLITE_SIGNAL_SAFE {
  return wait_on(callers_, events, events_max, timeout_ns);
}

int PosixNet::wait(NetEvent* events, int events_max, std::int64_t timeout_ns) MPLITE_SIGNAL_SAFE {
  return wait_on(epoll_, events, events_max, timeout_ns);
}

int PosixNet::end_waits(bool on) MPLITE_SIGNAL_SAFE {
  if (ready_ < 0) ready_ = above_standard_streams(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  if (ready_ < 0) return -errno;
  return on ? watch(ready_, kReadyToken, kReadable) : unwatch(ready_);
}

int PosixNet::wait_on(int epoll, NetEvent* events, int events_max,
                      std::int64_t timeout_ns) MPLITE_SIGNAL_SAFE {
  epoll_event found[kEventsPerWait];
  if (events_max > kEventsPerWait) events_max = kEventsPerWait;
  int n = -1;
  if (timeout_ns > 0 && !pwait2_missing_.load(std::memory_order_relaxed)) {
    timespec timeout = {};
    timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
    n = epoll_wait_ns(epoll, found, events_max, timeout);
    // ENOSYS before Linux 5.11 or with headers from then; EPERM from container filters that do not
    // know the call.
    if (n < 0 && (errno == ENOSYS || errno == EPERM))
      pwait2_missing_.store(true, std::memory_order_relaxed);
    else if (n < 0)
      return errno == EINTR ? 0 : -errno;
  }
  if (n < 0) {
    std::int64_t ms = timeout_ns <= 0
                          ? timeout_ns
                          : timeout_ns / 1'000'000 + (timeout_ns % 1'000'000 != 0 ? 1 : 0);
    if (ms < 0) ms = -1;
    if (ms > INT_MAX) ms = INT_MAX;
    n = epoll_wait(epoll, found, events_max, static_cast<int>(ms));
    if (n < 0) return errno == EINTR ? 0 : -errno;
  }
  int told = 0;
  for (int i = 0; i < n; ++i) {
    if (found[i].data.u64 == kReadyToken) continue;
    const std::uint32_t bits = found[i].events;
    unsigned ready = 0;
    if ((bits & EPOLLIN) != 0) ready |= kReadable;
    if ((bits & EPOLLOUT) != 0) ready |= kWritable;
    // Both, so that whichever side of the connection is acted upon gets to see the error.
    if ((bits & (EPOLLERR | EPOLLHUP)) != 0) ready |= kReadable | kWritable;
    events[told++] = NetEvent{found[i].data.u64, ready};
  }
  return told;
}

std::int64_t PosixNet::now_ns() MPLITE_SIGNAL_SAFE {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void PosixNet::spin(std::int64_t ns) MPLITE_SIGNAL_SAFE {
  for (const std::int64_t end = PosixNet::now_ns() + ns; PosixNet::now_ns() < end;) {
#ifdef __x86_64__
    __builtin_ia32_pause();  // a processor's other thread has the more of it
#endif
  }
}

void PosixNet::random(void* bytes, std::size_t count) MPLITE_SIGNAL_SAFE {
  auto* at = static_cast<std::uint8_t*>(bytes);
  while (count > 0) {
    // Up to 256 bytes come whole and uninterrupted once the kernel's pool is set up.
    const ssize_t n = getrandom(at, count < 256 ? count : 256, 0);
    if (n > 0) {
      at += n;
      count -= static_cast<std::size_t>(n);
    } else if (n < 0 && errno != EINTR) {
      abort();  // a predictable secret would be worse than no job; getrandom exists since
                // Linux 3.17
    }
  }
}

// An unconnected socket: reads, writes and epoll calls on it fail. Closing alone would leave the
// number to the next file that the child opens.
void PosixNet::disown(int fd) {
  if (fd < 0) {
    if (callers_ >= 0) disown(callers_);
    if (ready_ >= 0) disown(ready_);
    fd = epoll_;
  }
  if (nowhere_ < 0) nowhere_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= 0 && (nowhere_ < 0 || dup3(nowhere_, fd, O_CLOEXEC) < 0)) ::close(fd);
}

bool PosixNet::is_silent(int fd, std::int64_t limit_ms) {
  tcp_info info = {};
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  // A probe of a living peer's closed window is answered within a round trip, so two unanswered
  // ones in a row mean silence.
  const bool waiting = info.tcpi_retransmits > 0 || info.tcpi_probes >= 2;
  return waiting && static_cast<std::int64_t>(info.tcpi_last_ack_recv) >= limit_ms;
}

// Of an older kernel the last members stay 0.
bool PosixNet::report(int fd, StreamReport& report) {
  tcp_info info = {};
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  report.round_trip_us = info.tcpi_rtt;
  report.delivered_per_s = info.tcpi_delivery_rate;
  report.acknowledged = info.tcpi_bytes_acked;
  report.unacknowledged = info.tcpi_unacked;
  report.retransmissions = info.tcpi_total_retrans;
  report.since_last_data_ms = info.tcpi_last_data_recv;
  report.busy_us = static_cast<std::int64_t>(info.tcpi_busy_time);
  report.window_limited_us = static_cast<std::int64_t>(info.tcpi_rwnd_limited);
  return true;
}

bool PosixNet::has_ended(int fd) {
  pollfd asked = {fd, POLLRDHUP, 0};
  while (::poll(&asked, 1, 0) < 0)
    if (errno != EINTR) return false;
  return asked.revents != 0;  // errors and hang-ups are told unasked
}

}  // namespace mplite
