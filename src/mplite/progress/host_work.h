// What the host does above the engine (schedules of nonblocking collectives, handlers of active
// messages), and whether a thread of ours is in it now: helper_thread.h or, with sigio,
// host_thread.h.
#pragma once
#include <sched.h>

#include <atomic>

#include "mplite/base/signal_safe.h"

namespace mplite {

class HostWork {
 public:
  struct Calls {
    // All of it that can be done now; in the thread of ours, gate free. False: the application is
    // in a call, and host_may_go_on() comes when it is not.
    bool (*progress)() = nullptr;
    // Whether the host has work that nothing outstanding in the engine tells of.
    bool (*pending)() = nullptr;
    // The engine's work has left something for the host. Signal-safe.
    bool (*due)() = nullptr;
    // The same, of what nobody but the host can take: an active message. Signal-safe.
    bool (*message_due)() = nullptr;
    // The call that is being left has done something since this was last asked.
    bool (*news)() = nullptr;
  };

  void begin(const Calls& calls) {
    calls_ = calls;
    on_.store(true);
  }
  // When it returns, no thread of ours is in the host's progress, and none will be. False: it was
  // not on. Sequentially consistent on both words: either the thread sees that it is off, or it is
  // seen to be busy here.
  bool end() {
    if (!on_.exchange(false)) return false;
    while (busy_.load()) sched_yield();
    return true;
  }
  // In the child of a fork, where the thread is not.
  void end_in_child() {
    on_.store(false);
    busy_.store(false);
  }

  bool on() const MPLITE_SIGNAL_SAFE { return on_.load(std::memory_order_relaxed); }
  bool pending() const { return on() && calls_.pending(); }
  bool due() const MPLITE_SIGNAL_SAFE { return on() && calls_.due(); }
  bool message_due() const MPLITE_SIGNAL_SAFE { return on() && calls_.message_due(); }
  bool news() const { return calls_.news(); }

  enum class Pass { kDone, kNotArmed, kTurnedAway };
  // The thread of ours, gate free. Nothing while `armed` is 0: the application polls by itself.
  Pass pass(const std::atomic<int>& armed) {
    Pass result = Pass::kNotArmed;
    busy_.store(true);
    if (on_.load() && armed.load() != 0)
      result = calls_.progress() ? Pass::kDone : Pass::kTurnedAway;
    busy_.store(false);
    return result;
  }

 private:
  Calls calls_;
  std::atomic<bool> on_{false};
  std::atomic<bool> busy_{false};
};

}  // namespace mplite
