// A network of simulated hosts in one process: sockets, readiness, signals and time, all from one
// seed. Each simulated rank gets a FakeNet (mplite/net/net.h) on the shared FakeWorld. Used by
// engine_sim.cpp, device_sim.cpp and probe_sim.cpp.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "mplite/net/net.h"
#include "random.h"

namespace sim {

// The numbers that the harnesses give to Engine::set_signal_driven and hear_callers.
inline constexpr int kMainSignal = 29, kCallerSignal = 23;

// A fresh socket takes that much at once: real ones take kilobytes, and the engine's handshake (80
// bytes, answered one by one) counts on it.
inline constexpr std::uint64_t kFreshBytes = 192;

// Probabilities are of 1024.
struct Faults {
  int short_io = 200;     // a read or write moves fewer bytes than it could, often one
  int would_block = 60;   // EAGAIN though it need not be
  int empty_wait = 60;    // wait() ends early with nothing, as a signal would make it
  int hidden_event = 60;  // wait() does not tell of a ready socket this time
  int reset = 0;          // per read or write: the connection breaks
  int refuse = 0;         // per connect
  int unanswered = 0;     // per connect: no answer ever
  int no_descriptor = 0;  // per open_stream or accept
  int corrupt = 0;        // per write: one byte of it arrives changed
  std::uint64_t pipe_min = kFreshBytes,
                pipe_max = 300'000;  // bytes that a connection's kernel buffers hold
  std::int64_t delay_max_ns = 50'000;
};

class FakeNet;

class FakeWorld {
 public:
  FakeWorld(std::uint64_t seed, int hosts, const Faults& faults);
  ~FakeWorld();

  FakeNet& net(int host) { return *nets_[static_cast<std::size_t>(host)]; }
  // On one of several networks. The far end of a caller's socket is told as that of the network
  // that it came by.
  static sockaddr_storage address(int host, int network = 0);
  int make_listener(int host, int network = 0);
  // Calls to the address of a host that has ended come to another one from now on.
  void take_over(int ended, int host) { listeners_[{ended, 0}] = listeners_.at({host, 0}); }

  std::int64_t now() const { return now_; }
  // Moves the clock on and does what is due: arrivals, signals.
  void pass(std::int64_t ns);
  // To the next thing that will happen by itself, if it is nearer than `most_ns`; otherwise by
  // most_ns.
  void skip(std::int64_t most_ns);

  // Whether a signal-driven socket of this host has had news since the last call.
  bool take_signal(int host, int signo = kMainSignal);
  bool signal_pending(int host, int signo = kMainSignal) const {
    return signals_of(signo)[static_cast<std::size_t>(host)];
  }

  // Called at the start and the end of every net call of `host`: the harness runs that rank's
  // handler from here.
  std::function<void(int host)> boundary;
  // Called by a wait() that would sleep: the harness runs other ranks from here.
  std::function<void(int host)> asleep;
  // Narrower than Faults, for tests that want one certain thing: at most how many bytes the read or
  // write moves (0: EAGAIN), given how many it could.
  std::function<std::uint64_t(int host, std::uint64_t could)> read_limit;
  std::function<std::uint64_t(int host, std::uint64_t could)> write_limit;
  int pieces_written = 0;  // of the last write, by anybody
  // May change what is written on its way, and how much of it there is.
  std::function<void(int host, std::vector<std::uint8_t>& bytes)> tamper;
  // May change what TCP_INFO says of a connection.
  std::function<void(mplite::StreamReport& report)> reported;
  // Called on what no correct engine does: use of a descriptor that it does not own.
  std::function<void(const char* what)> misuse;

  // The host is gone: all its sockets are reset, connects to it are refused.
  void kill(int host);
  // Every connection between the two breaks.
  void cut(int a, int b);
  // Nothing passes between the two any more, in silence.
  void mute(int a, int b);
  // The host's sockets that are connected to another, the oldest first; one of them breaks, or is
  // muted.
  std::vector<int> connected(int host, int other) const;
  void reset(int fd) { reset_pair(fd); }
  int far_end(int fd) const { return sockets_[static_cast<std::size_t>(fd)].other; }
  std::uint64_t written(int fd) const { return sockets_[static_cast<std::size_t>(fd)].written; }
  int network_of(int fd) const { return sockets_[static_cast<std::size_t>(fd)].network; }
  // Nothing that was written by either lies unread on a connection between the two.
  bool is_all_read(int host, int other) const;
  void mute_socket(int fd);
  // What leaves from that end from now on does not arrive. That end is reset, and the other is not
  // told. What is on its way to that end comes later, when let_come() is called.
  void lose_what_leaves(int fd) { sockets_[static_cast<std::size_t>(fd)].muted = true; }
  void reset_one_end(int fd);
  // Both ends read the end of the stream behind what was sent, as of a gateway that closes what is
  // idle. What is written then comes nowhere, and is answered by a reset.
  void end_both(int fd);
  void hold_back(int fd);
  void let_come(int fd);
  // What becomes of calls to that address of the host: -1: no answer ever; an errno; 0: all is
  // well.
  void set_road(int host, int network, int error);
  // Whether hosts can tell from which of their addresses they call: that of the same network,
  // unless the road is ENETUNREACH.
  bool tells_local_ends = false;
  // A call to that address of the host is answered so much later.
  void slow_down(int host, int network, std::int64_t ns);
  // No more faults but short_io and delays: for the drain at the end.
  void calm() { faults_ = calm_; }
  void stop_corruption() { faults_.corrupt = 0; }
  std::uint64_t corruptions() const { return corruptions_; }

  // A stranger's socket, connected to `host`; write and read as with a FakeNet.
  int stranger_connect(int host);
  void stranger_write(int fd, const void* bytes, std::size_t count);
  std::size_t stranger_read(int fd, void* bytes, std::size_t count);
  void stranger_close(int fd);

  void dump() const;  // the state of every open socket, on stderr
  std::uint64_t open_sockets(int host) const;
  int called(int host) const;  // sockets in its set of callers
  int signal_of(int fd) const {
    return sockets_[static_cast<std::size_t>(fd)].signal_driven
               ? sockets_[static_cast<std::size_t>(fd)].signo
               : 0;
  }
  int low_water(int host) const;       // the highest of its connections
  bool has_event(int host) const;      // a wait() of this host would tell of something
  int unwatched(int host) const;       // connections that it does not ask epoll about
  std::int64_t spun_ns = 0;            // by everybody
  std::uint32_t resent = 0;            // what TCP has sent again, on each connection
  int clock_reads = 0;                 // the same
  int fail_watch = 0;                  // errno of every watch() from now on
  int fail_connect = 0;                // the same of connect(),
  int fail_open = 0;                   // and of open_stream()
  int descriptors_left = -1;           // of host 0; -1: any number
  int accepts_without_descriptor = 0;  // by everybody
  Random& random() { return random_; }

 private:
  friend class FakeNet;
  bool take_descriptor(int host);
  static constexpr int kStranger = -1;

  struct Chunk {
    std::int64_t due;
    std::vector<std::uint8_t> bytes;
    std::size_t used = 0;
  };
  enum class Kind : std::uint8_t { kFresh, kListener, kConnecting, kStream, kClosed };
  struct Socket {
    int host = kStranger;
    std::size_t ordinal = 0;  // among all that the host has ever had
    Kind kind = Kind::kFresh;
    int other = -1;  // the far end's index
    int far_host = kStranger;
    int network = 0;
    std::deque<Chunk> in;
    std::uint64_t in_bytes = 0;  // in `in`
    std::uint64_t capacity = 0;  // of `in`
    std::int64_t fin_due = -1;   // the far end has closed; visible from then on
    bool closed_on_the_way = false;
    std::int64_t reset_due = -1;
    std::int64_t answer_due = -1;  // to what was written after the far end had closed
    std::int64_t last_due = 0;     // of what was sent to us: order inside a connection
    bool muted = false;
    std::int64_t muted_since = 0;
    // connecting
    std::int64_t connect_due = -1;  // -1: never
    int connect_error = 0;
    // listener
    std::deque<std::pair<std::int64_t, int>> backlog;  // due, index of the acceptor's end
    // registration
    bool watched = false;
    std::uint64_t token = 0;
    unsigned interest = 0;
    int low_water = 1;
    bool waits = false;  // to be accepted
    bool signal_driven = false;
    int signo = kMainSignal;
    bool called = false;  // in the set of callers
    std::uint64_t called_token = 0;
    bool no_space = false;  // a write was cut short: tell when there is room
    std::uint64_t written = 0;
    std::uint64_t read = 0;        // when closed: and what could have been
    std::int64_t deaf_since = -1;  // nothing that arrives later is taken
  };

  std::vector<bool>& signals_of(int signo) {
    return signo == kCallerSignal ? call_signal_ : signal_;
  }
  const std::vector<bool>& signals_of(int signo) const {
    return signo == kCallerSignal ? call_signal_ : signal_;
  }
  Socket* own(int host, int fd, const char* call);
  int add(Socket socket);
  std::int64_t last_arrival(const Socket& s) const;
  std::uint64_t readable_bytes(const Socket& s, std::uint64_t enough = UINT64_MAX) const;
  unsigned ready(const Socket& s, unsigned wanted = ~0u) const;
  unsigned event(const Socket& s) const;  // of that, what epoll tells
  std::uint64_t room_towards(const Socket& s) const;
  void due_at(std::int64_t when, int index);
  void tell_again(int index);
  void raise(int index);
  void maybe_break(int index);
  void reset_pair(int index);
  std::int64_t write_bytes(int index, const iovec* iov, int iovs, bool faulty);
  std::int64_t read_bytes(int index, const iovec* iov, int iovs, bool faulty);
  void set_closed(int index);
  void close_socket(int index);
  int begin_connect(int index, const sockaddr_storage& to, bool faulty);
  int take_backlog(int listener_index);
  void step(int host);

  Random random_;
  Faults faults_;
  Faults calm_;
  std::int64_t now_ = 1'000'000'000;
  std::deque<Socket>
      sockets_;  // by descriptor; never reused, so that a stale descriptor is found out
  std::vector<std::unique_ptr<FakeNet>> nets_;
  std::vector<bool> signal_, call_signal_;
  std::vector<bool> dead_;
  std::map<std::pair<int, int>, int> roads_;  // host and network: see set_road
  std::map<std::pair<int, int>, std::int64_t> slow_roads_;
  std::map<std::pair<int, int>, int> listeners_;  // of host and network
  std::vector<std::vector<int>> by_host_;         // those that are open, the oldest first
  std::vector<std::size_t> ever_;                 // how many each host has had
  using Due = std::pair<std::int64_t, int>;
  std::priority_queue<Due, std::vector<Due>, std::greater<Due>> due_;
  std::uint64_t corruptions_ = 0;
};

class FakeNet final : public mplite::Net {
 public:
  FakeNet(FakeWorld& world, int host) : world_(world), host_(host) {}

  int open_stream(int family) override;
  int bind_and_listen(int fd, const sockaddr_storage& address) override;
  int local_address(int fd, sockaddr_storage& address) override;
  int local_end_towards(const sockaddr_storage& to, sockaddr_storage& end) override;
  int connect(int fd, const sockaddr_storage& address) override;
  int connect_result(int fd) override;
  int accept(int listener, sockaddr_storage& from) override;
  std::int64_t read(int fd, const iovec* iov, int iovs) override;
  std::int64_t write(int fd, const iovec* iov, int iovs) override;
  std::int64_t unacknowledged(int fd) override;
  void stop_receiving(int fd) override;
  void close(int fd) override;
  void set_options(int fd, const mplite::StreamOptions& options) override;
  int set_signal_driven(int fd, int tid, int signo) override;
  int set_signals(int fd, bool on) override;
  int set_receive_low_water(int fd, int bytes) override;
  int watch(int fd, std::uint64_t token, unsigned interest) override;
  int rewatch(int fd, std::uint64_t token, unsigned interest) override;
  int unwatch(int fd) override;
  int watch_caller(int fd, std::uint64_t token, bool edge) override;
  int unwatch_caller(int fd) override;
  int wait_callers(mplite::NetEvent* events, int events_max, std::int64_t timeout_ns) override;
  int wait(mplite::NetEvent* events, int events_max, std::int64_t timeout_ns) override;
  std::int64_t now_ns() override;
  void spin(std::int64_t ns) override;
  bool is_silent(int fd, std::int64_t limit_ms) override;
  bool has_ended(int fd) override;
  bool report(int fd, mplite::StreamReport& report) override;
  void random(void* bytes, std::size_t count) override;

 private:
  class Call;
  FakeWorld& world_;
  int host_;
};

}  // namespace sim
