// The real socket layer under the engine: Linux system calls, nothing kept but the epoll
// descriptor. Implements net.h; made by the layer that starts an engine (runtime/process.cpp).
#pragma once
#include <atomic>

#include "mplite/net/net.h"

namespace mplite {

// Every call is one system call wrapper of libc (or a few), so all are signal-safe: their symbols
// are bound when the program is loaded (-fno-plt). What net.h says of results holds. Sockets are
// IPv4 or IPv6, never both (IPV6_V6ONLY), with SO_REUSEADDR on listeners.
class PosixNet final : public Net {
 public:
  PosixNet() = default;
  ~PosixNet();
  PosixNet(const PosixNet&) = delete;
  PosixNet& operator=(const PosixNet&) = delete;

  // Makes the epoll descriptor. Ordinary context, before watch() and wait(). Returns 0 or -errno.
  int open();

  int open_stream(int family) MPLITE_SIGNAL_SAFE override;
  int bind_and_listen(int fd, const sockaddr_storage& address) MPLITE_SIGNAL_SAFE override;
  int local_address(int fd, sockaddr_storage& address) MPLITE_SIGNAL_SAFE override;
  int local_end_towards(const sockaddr_storage& to,
                        sockaddr_storage& end) MPLITE_SIGNAL_SAFE override;
  int connect(int fd, const sockaddr_storage& address) MPLITE_SIGNAL_SAFE override;
  int connect_result(int fd) MPLITE_SIGNAL_SAFE override;
  int accept(int listener, sockaddr_storage& from) MPLITE_SIGNAL_SAFE override;
  std::int64_t read(int fd, const iovec* iov, int iovs) MPLITE_SIGNAL_SAFE override;
  std::int64_t write(int fd, const iovec* iov, int iovs) MPLITE_SIGNAL_SAFE override;
  void close(int fd) MPLITE_SIGNAL_SAFE override;
  // Best effort: an option that this kernel does not have is left out. TCP_USER_TIMEOUT is not
  // among them on purpose, see the .cpp.
  void set_options(int fd, const StreamOptions& options) MPLITE_SIGNAL_SAFE override;
  // tid 0: off.
  int set_signal_driven(int fd, int tid, int signo) MPLITE_SIGNAL_SAFE override;
  int set_signals(int fd, bool on) MPLITE_SIGNAL_SAFE override;
  int set_receive_low_water(int fd, int bytes) MPLITE_SIGNAL_SAFE override;
  void set_unsent_limit(int fd, int bytes) MPLITE_SIGNAL_SAFE override;
  std::int64_t unacknowledged(int fd) MPLITE_SIGNAL_SAFE override;
  void stop_receiving(int fd) MPLITE_SIGNAL_SAFE override;
  int watch(int fd, std::uint64_t token, unsigned interest) MPLITE_SIGNAL_SAFE override;
  int rewatch(int fd, std::uint64_t token, unsigned interest) MPLITE_SIGNAL_SAFE override;
  int unwatch(int fd) MPLITE_SIGNAL_SAFE override;
  int watch_caller(int fd, std::uint64_t token, bool edge) MPLITE_SIGNAL_SAFE override;
  int unwatch_caller(int fd) MPLITE_SIGNAL_SAFE override;
  int wait_callers(NetEvent* events, int events_max,
                   std::int64_t timeout_ns) MPLITE_SIGNAL_SAFE override;
  // At most kEventsPerWait events a call.
  int wait(NetEvent* events, int events_max, std::int64_t timeout_ns) MPLITE_SIGNAL_SAFE override;
  int end_waits(bool on) MPLITE_SIGNAL_SAFE override;
  std::int64_t now_ns() MPLITE_SIGNAL_SAFE override;
  void spin(std::int64_t ns) MPLITE_SIGNAL_SAFE override;
  bool is_silent(int fd, std::int64_t limit_ms) MPLITE_SIGNAL_SAFE override;
  bool report(int fd, StreamReport& report) MPLITE_SIGNAL_SAFE override;
  bool has_ended(int fd) MPLITE_SIGNAL_SAFE override;
  void disown(int fd) override;
  void random(void* bytes, std::size_t count) MPLITE_SIGNAL_SAFE override;

  static constexpr int kEventsPerWait = 64;
  static constexpr std::size_t kBytesPerCall = std::size_t{1} << 30;

 private:
  int wait_on(int epoll, NetEvent* events, int events_max,
              std::int64_t timeout_ns) MPLITE_SIGNAL_SAFE;

  int epoll_ = -1;
  int callers_ = -1;  // made when it is first used
  int ready_ = -1;    // the same; always readable, watched while waits are to end
  int nowhere_ = -1;  // in a child only
  std::atomic<bool> pwait2_missing_{
      false};  // the helper thread waits outside the gate, hence atomic
};

}  // namespace mplite
