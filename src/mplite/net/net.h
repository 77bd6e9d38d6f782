// The seam under the engine: every socket call, readiness and time.
// net_posix.cpp is the real one; test/sim has a seeded fake. Called by engine.cpp and
// handshake.cpp, gate held.
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/net/protection.h"

namespace mplite {

inline constexpr unsigned kReadable = 1;
inline constexpr unsigned kWritable = 2;

struct NetEvent {
  std::uint64_t token;  // as given to watch()
  unsigned ready;       // kReadable | kWritable; errors and hang-ups are reported as both
};

// Pieces of memory that one read or write moves; it looks at no more. The engine's list of them is
// on the handler's stack: 2 KB.
inline constexpr int kIovsMax = 128;

// Unanswered keepalive probes after which a peer counts as cut off.
inline constexpr int kKeepaliveProbes = 5;

struct StreamOptions {
  int socket_buffer_bytes;  // 0: the kernel's autotuning
  int keepalive_idle_s;     // 0: off
  int keepalive_interval_s;

  // So long nothing may come while something is awaited; 0: for ever.
  std::int64_t silence_ms() const {
    return keepalive_idle_s == 0
               ? 0
               : 1000 * (keepalive_idle_s + std::int64_t{kKeepaliveProbes} * keepalive_interval_s);
  }
};

// What the kernel knows of a connection, for people.
struct StreamReport {
  std::uint32_t round_trip_us = 0;
  std::uint64_t delivered_per_s = 0;     // bytes, when it was measured last; 0: not yet
  std::uint64_t acknowledged = 0;        // bytes of ours, in all
  std::uint32_t unacknowledged = 0;      // packets of ours under way
  std::uint32_t retransmissions = 0;     // of packets, in all
  std::uint32_t since_last_data_ms = 0;  // from the peer
  std::int64_t busy_us = 0;              // with something of ours under way,
  std::int64_t window_limited_us = 0;    // and the peer's window full
};

// All calls return >= 0, or -errno. EINTR is retried inside, EAGAIN is returned. Signal-safe.
// Sockets are non-blocking and close-on-exec. A length beyond what one system call may move is
// clamped inside.
class Net {
 public:
  virtual int open_stream(int family) MPLITE_SIGNAL_SAFE = 0;
  virtual int bind_and_listen(int fd, const sockaddr_storage& address) MPLITE_SIGNAL_SAFE = 0;
  virtual int local_address(int fd, sockaddr_storage& address) MPLITE_SIGNAL_SAFE = 0;
  // The address of ours that a connection to `to` would begin at, by the routes of this moment;
  // with any port. Nothing is sent.
  virtual int local_end_towards(const sockaddr_storage&, sockaddr_storage&) MPLITE_SIGNAL_SAFE {
    return -EOPNOTSUPP;
  }
  virtual int connect(int fd, const sockaddr_storage& address)
      MPLITE_SIGNAL_SAFE = 0;                                 // 0, -EINPROGRESS, -errno
  virtual int connect_result(int fd) MPLITE_SIGNAL_SAFE = 0;  // SO_ERROR as 0 or -errno
  virtual int accept(int listener, sockaddr_storage& from) MPLITE_SIGNAL_SAFE = 0;
  virtual std::int64_t read(int fd, const iovec* iov, int iovs) MPLITE_SIGNAL_SAFE = 0;  // 0: EOF
  virtual std::int64_t write(int fd, const iovec* iov,
                             int iovs) MPLITE_SIGNAL_SAFE = 0;  // never raises SIGPIPE
  virtual void close(int fd) MPLITE_SIGNAL_SAFE = 0;
  virtual void set_options(int fd, const StreamOptions& options) MPLITE_SIGNAL_SAFE = 0;
  // Asks the kernel to raise `signo` in thread `tid` when fd becomes ready (O_ASYNC, F_SETOWN_EX,
  // F_SETSIG).
  virtual int set_signal_driven(int fd, int tid, int signo) MPLITE_SIGNAL_SAFE = 0;
  // Of such a descriptor: O_ASYNC on or off, owner and signal stay.
  virtual int set_signals(int fd, bool on) MPLITE_SIGNAL_SAFE = 0;
  virtual int set_receive_low_water(int fd, int bytes) MPLITE_SIGNAL_SAFE = 0;
  // Of what was written, the kernel holds at most about so much that it has not sent (0: as much as
  // its buffer has room for): a write takes no more.
  virtual void set_unsent_limit(int, int) MPLITE_SIGNAL_SAFE {}
  // Of what was written, the bytes that the peer's kernel has not acknowledged, or more; what it
  // has acknowledged the peer can read, though the connection break. -errno: not known.
  virtual std::int64_t unacknowledged(int) MPLITE_SIGNAL_SAFE { return -EOPNOTSUPP; }
  // What arrives from now on is neither taken nor acknowledged: read() gives the rest.
  virtual void stop_receiving(int) MPLITE_SIGNAL_SAFE {}
  // Readiness, level-triggered. interest == 0 keeps fd registered but silent.
  virtual int watch(int fd, std::uint64_t token,
                    unsigned interest) MPLITE_SIGNAL_SAFE = 0;  // first time
  virtual int rewatch(int fd, std::uint64_t token,
                      unsigned interest) MPLITE_SIGNAL_SAFE = 0;  // change
  virtual int unwatch(int fd) MPLITE_SIGNAL_SAFE = 0;
  // A second set beside it, of those who call: the same descriptors may be in both. Asked for
  // kReadable; `edge`: told once per arrival, and not as long as there is something. wait_callers()
  // is wait() for this set; any thread may call it.
  virtual int watch_caller(int fd, std::uint64_t token, bool edge) MPLITE_SIGNAL_SAFE = 0;
  virtual int unwatch_caller(int fd) MPLITE_SIGNAL_SAFE = 0;
  virtual int wait_callers(NetEvent* events, int events_max,
                           std::int64_t timeout_ns) MPLITE_SIGNAL_SAFE = 0;
  // Waits at most timeout_ns (0: does not wait, < 0: for ever). Returns the number of events; a
  // signal ends the wait with 0.
  virtual int wait(NetEvent* events, int events_max,
                   std::int64_t timeout_ns) MPLITE_SIGNAL_SAFE = 0;
  // `on`: a wait() of any thread ends, with 0 if there is nothing else, and none waits until this
  // is switched off. Once each, in turns. Takes a descriptor when it is first switched on.
  virtual int end_waits(bool) MPLITE_SIGNAL_SAFE { return -EOPNOTSUPP; }
  virtual std::int64_t now_ns() MPLITE_SIGNAL_SAFE = 0;  // monotonic
  virtual void spin(std::int64_t ns)
      MPLITE_SIGNAL_SAFE = 0;  // for at least so long, without a system call
  // Whether the peer has left what we sent unanswered for limit_ms (cut off, or without power),
  // which keepalive does not notice while data is under way.
  virtual bool is_silent(int, std::int64_t) MPLITE_SIGNAL_SAFE { return false; }
  // What TCP knows of a connection. False: the kernel does not tell.
  virtual bool report(int, StreamReport&) MPLITE_SIGNAL_SAFE { return false; }
  // Whether the peer has closed its end, or the connection was reset. Known before what the peer
  // has sent is read.
  virtual bool has_ended(int fd) MPLITE_SIGNAL_SAFE = 0;
  // In the child of a fork: this process's fd leads nowhere from now on, and its number stays
  // taken. fd -1: the descriptors behind wait(), wait_callers() and end_waits().
  virtual void disown(int) {}
  virtual void random(void* bytes, std::size_t count) MPLITE_SIGNAL_SAFE = 0;

  // ---- protected streams: protected_net.h ----

  // Takes what protecting fd needs, until it is closed. False: there is none; in the handler
  // perhaps not before refill().
  virtual bool may_protect(int) MPLITE_SIGNAL_SAFE { return false; }
  // From here on what is read from fd and written to it is protected; after may_protect(). `token`:
  // as given to watch(), which asks for kReadable at present.
  virtual void protect(int, std::uint64_t, const StreamKeys&) MPLITE_SIGNAL_SAFE {}
  // Of the descriptors that are asked for kReadable, those with input that has been taken from the
  // socket and not been read: wait() does not tell of them. Returns how many; up to `events_max`
  // are listed.
  virtual int held_input(NetEvent*, int) MPLITE_SIGNAL_SAFE { return 0; }
  // Ordinary context: memory for what the handler may do. False: there is none.
  virtual bool refill() { return true; }

 protected:
  ~Net() = default;
};

}  // namespace mplite
