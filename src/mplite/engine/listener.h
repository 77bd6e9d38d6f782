// The listening sockets: when epoll is asked about them, what is done when a caller cannot be
// accepted, and how a rank that computes hears callers. Used by the engine; uses net.h,
// allowance.h.
#pragma once
#include <sys/socket.h>

#include <atomic>
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/net/listening_sockets.h"
#include "mplite/net/net.h"
#include "mplite/observe/counters.h"
#include "mplite/tuning/allowance.h"

namespace mplite {

// Gate held throughout, where nothing else is said.
class Listener {
 public:
  static constexpr std::uint64_t kToken = ~std::uint64_t{0};
  // After an accept for which the process had no descriptor.
  static constexpr std::int64_t kRetryNs = 100'000'000;

  // `spare`: a descriptor of `family` to give up for a connection when the process has none left,
  // or -1. It and the sockets are closed with the listener.
  Listener(Net& net, Counters& counters, const ListeningSockets& sockets, int spare, int family);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  bool is_there() const MPLITE_SIGNAL_SAFE { return count_ > 0; }
  template <typename F>
  void for_each(F each) const MPLITE_SIGNAL_SAFE {
    for (int i = 0; i < count_; ++i) each(sockets_[static_cast<std::size_t>(i)]);
  }
  // Asks epoll about them. 0 or -errno. Ordinary context, once.
  int start();
  // From now on processes of other jobs may call only, which know one address. Not while hearing.
  void keep_first() MPLITE_SIGNAL_SAFE;
  // A caller's socket, or -errno as Net::accept.
  int accept(sockaddr_storage& from) MPLITE_SIGNAL_SAFE;

  // The spare descriptor is closed, for a connection. False: it is in use already.
  bool give_spare() MPLITE_SIGNAL_SAFE;
  // Whether there is one to give up.
  bool spare_is_there() const MPLITE_SIGNAL_SAFE { return spare_ >= 0; }
  // Whether there ever was one.
  bool has_spare() const MPLITE_SIGNAL_SAFE { return has_spare_; }
  // A descriptor was closed: it becomes the spare one, if that is in use.
  void regain_spare() MPLITE_SIGNAL_SAFE;

  // A caller could not be accepted. It stays in the kernel's queue, so that the listener stays
  // readable: epoll is not asked about it until the next try. `counts`: the time until then does,
  // see failed_ns(). Whether that is news.
  bool pause(bool counts) MPLITE_SIGNAL_SAFE;
  bool paused() const MPLITE_SIGNAL_SAFE { return resumes_ns_ != 0; }
  void resume_when_due(std::int64_t now_ns) MPLITE_SIGNAL_SAFE;
  // For how long callers could not be accepted, in a row.
  std::int64_t failed_ns() const MPLITE_SIGNAL_SAFE { return failed_ * kRetryNs; }
  void forget_failures() MPLITE_SIGNAL_SAFE {
    failed_ = 0;
    failing_ = false;
  }

  // Callers are heard apart from connections (Engine::hear_callers). 0 or -errno.
  int hear(int signo);
  void stop_hearing() MPLITE_SIGNAL_SAFE;
  // Gate held or not.
  bool hearing() const MPLITE_SIGNAL_SAFE { return hearing_.load(); }
  // What they raise while they are heard; 0: nothing of their own.
  int signal() const MPLITE_SIGNAL_SAFE { return signal_; }
  // Whether one more step may be taken with a caller now.
  bool may_step() MPLITE_SIGNAL_SAFE { return allowance_.take(net_.now_ns()); }
  void give_back() MPLITE_SIGNAL_SAFE { allowance_.give_back(); }
  // The next socket has its turn: one that is never empty shall not keep the others' callers out.
  void next_turn() MPLITE_SIGNAL_SAFE {
    if (count_ > 1) turn_ = (turn_ + 1) % count_;
  }
  // No caller is looked at for a while: too many, or they cannot be accepted.
  void rest(std::int64_t ns = Allowance::kRestNs) MPLITE_SIGNAL_SAFE;
  bool resting() const MPLITE_SIGNAL_SAFE { return rests_until_ns_ != 0; }
  // How long still. 0: not at all.
  std::int64_t rest_ns() MPLITE_SIGNAL_SAFE;

 private:
  int watch_all(bool as_callers) MPLITE_SIGNAL_SAFE;

  Net& net_;
  Counters& counters_;
  ListeningSockets sockets_;
  int count_ = 0;
  int turn_ = 0;  // the socket that is asked first for a caller
  int spare_;     // -1: in use
  const int family_;
  const bool has_spare_;
  bool failing_ = false;         // the last accept did, for want of a descriptor
  std::int64_t failed_ = 0;      // in a row, those that count
  std::int64_t resumes_ns_ = 0;  // 0: epoll is asked about it
  std::atomic<bool> hearing_{false};
  int signal_ = 0;
  std::int64_t rests_until_ns_ = 0;
  Allowance allowance_;
};

}  // namespace mplite
