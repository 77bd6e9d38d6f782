// Whether to arm at once on the way out of the library, or to wait and see whether the application
// comes straight back (Isend, Irecv, Waitall). Learned from what followed the last calls of the
// same kind. Pure decisions, time is a parameter; used by arming.h.
#pragma once
#include <atomic>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// Arming and disarming cost two or three system calls, and whatever arrives in between costs a
// signal. An application that is back within microseconds has no use for either. What it will do
// next is not known, so: a kind of call after which the application was soon back kQuickNeeded
// times in a row is trusted; leaving by it is not armed but watched by a timer (the backstop),
// which arms when the application stays away after all. So a wrong guess costs the delay of the
// backstop, and a higher price of trust for that kind, unless such guesses are rare (a departure in
// hundreds: the operating system took the processor away, a burst ended). Thread safety: the thread
// that leaves the library calls leave() and came_back(); the backstop (a signal handler in that
// thread, or the helper thread under the progress gate, which the former then holds too) calls
// ran_out() and useless(). Not quite soon, but before the backstop would have armed, costs half of
// what was earned: once in a while the system takes the processor away for so long.
class Grace {
 public:
  static constexpr int kKinds = 4;  // of calls: LITE_CALL_*
  static constexpr std::int64_t kSoonNs =
      20'000;  // back within this time: arming would have been for nothing
  static constexpr std::uint32_t kQuickNeeded = 16;      // in a row
  static constexpr std::uint32_t kNeededMax = 1u << 12;  // after many wrong guesses
  static constexpr std::uint32_t kRareAfter =
      512;  // quick ones beyond the price: the next wrong guess costs no trust
  static constexpr std::int64_t kBackstopMinNs = 100'000;
  static constexpr std::int64_t kBackstopMaxNs = 6'400'000;
  // A delay doubles when four times as much has gone by with nobody away, and one that was needed
  // takes three quarters of it: who stays away every so often is found after a part of the time
  // between, and where the system takes the processor away that often, few timers are set.
  static constexpr std::uint32_t kHalvesToDouble = 8;

  void set_on(bool on) { on_ = on; }
  bool on() const MPLITE_SIGNAL_SAFE { return on_; }

  // The application leaves by a call of `kind` and something is outstanding. True: arm now. False:
  // see to it that the backstop runs.
  bool leave(int kind, std::int64_t now_ns) MPLITE_SIGNAL_SAFE;
  // The first sign of the application since; idempotent.
  void came_back(std::int64_t now_ns) MPLITE_SIGNAL_SAFE;
  // Our signal handler, or the look on the way out, took so long just now: that was not the
  // application's own doing.
  void handled(std::int64_t ns) MPLITE_SIGNAL_SAFE {
    if (left_ns_ != 0) left_ns_ += ns;
  }
  bool waiting() const MPLITE_SIGNAL_SAFE { return waiting_.load(std::memory_order_relaxed); }
  // Backstop: how long the application has been away still has to grow before it may arm; <= 0: arm
  // now.
  std::int64_t until_arm_ns(std::int64_t now_ns) const MPLITE_SIGNAL_SAFE {
    return left_ns_ + kBackstopMinNs - now_ns;
  }
  void ran_out() MPLITE_SIGNAL_SAFE;  // it armed
  void useless() MPLITE_SIGNAL_SAFE;  // it found nobody away: it may come less often
  void put_off() MPLITE_SIGNAL_SAFE;  // the same when half of its delay is over
  std::int64_t backstop_ns() const MPLITE_SIGNAL_SAFE { return backstop_ns_; }
  // A backstop's sleep that other orders may interrupt: how much of it is left. The first call
  // begins it.
  struct Sleep {
    std::int64_t until_ns = 0;
    std::int64_t left_ns(std::int64_t now_ns, std::int64_t whole_ns) {
      if (until_ns == 0) until_ns = now_ns + whole_ns;
      return until_ns > now_ns ? until_ns - now_ns : 0;
    }
  };

 private:
  bool lost_trust() MPLITE_SIGNAL_SAFE;
  void go_by(std::uint32_t halves) MPLITE_SIGNAL_SAFE;

  bool on_ = true;
  std::atomic<bool> waiting_{false};
  int kind_ = 0;
  std::int64_t left_ns_ = 0;  // 0: the last departure has been accounted for
  std::int64_t backstop_ns_ = kBackstopMinNs;
  std::uint32_t halves_ = 0;  // of this delay that have gone by with nobody away
  std::uint32_t quick_[kKinds] = {};
  std::uint32_t needed_[kKinds] = {kQuickNeeded, kQuickNeeded, kQuickNeeded, kQuickNeeded};
};

}  // namespace mplite
