// Whether to arm at once on the way out of the library, or to wait and see whether the application
// comes straight back (Isend, Irecv, Waitall). Learned from what followed the last calls of the
// same kind. Pure decisions, time is a parameter; used by arming.h.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// Arming and disarming cost two or three system calls, and whatever arrives in between costs a
// signal. That is for nothing if the application is back within microseconds, and if nothing came
// meanwhile but what could have waited in the kernel (`useful`: something was sent, or much was
// read). What it will do next is not known, so: a kind of call after which that was so kQuickNeeded
// times in a row is trusted; leaving by it is not armed but watched by a timer (the backstop),
// which arms when the application stays away after all. So a wrong guess costs the delay of the
// backstop, and a higher price of trust for that kind, unless such guesses are rare (a departure in
// hundreds: the operating system took the processor away, a burst ended).
//
// Without arming nobody sees what it would be good for. So of the absences that are not soon over
// one in kUnseenMost is armed all the same; and where arming late was for nothing, the next one
// comes later (patience), up to kPatienceMaxNs. Departures with long messages under way, or with
// memory that others access, are trusted apart from others, where they are short, and their
// patience stays what it is.
//
// Thread safety: the thread that leaves the library calls leave() and came_back(); the backstop (a
// signal handler in that thread, or the helper thread under the progress gate, which the former
// then holds too) calls ran_out() and useless(). Not quite soon, but before the backstop would have
// armed, and useful, costs half of what was earned: once in a while the system takes the processor
// away for so long.
class Grace {
 public:
  static constexpr int kKinds = 4;  // of calls: LITE_CALL_*
  static constexpr std::int64_t kSoonNs =
      20'000;  // back within this time: arming would have been for nothing
  static constexpr std::uint32_t kQuickNeeded = 16;      // in a row
  static constexpr std::uint32_t kNeededMax = 1u << 12;  // after many wrong guesses
  static constexpr std::uint32_t kRareAfter =
      512;  // quick ones beyond the price: the next wrong guess costs no trust
  static constexpr std::uint32_t kUnseenMost = 128;
  // Where arming late costs next to nothing, and little is lost by it.
  static constexpr std::int64_t kPatienceMaxNs = 800'000;
  // The timer would have armed an absence that lasts so long.
  static constexpr std::int64_t kUnwatchedNs = 20'000'000;
  static constexpr std::int64_t kBackstopMinNs = 100'000;
  static constexpr std::int64_t kBackstopMaxNs = 6'400'000;
  // A delay doubles when four times as much has gone by with nobody away, and one that was needed
  // takes three quarters of it: who stays away every so often is found after a part of the time
  // between, and where the system takes the processor away that often, few timers are set.
  static constexpr std::uint32_t kHalvesToDouble = 8;

  void set_on(bool on) { on_ = on; }
  bool on() const MPLITE_SIGNAL_SAFE { return on_; }
  // Off: arming counts as useful for all who are not soon back.
  void set_weighing(bool on) { weighs_ = on; }

  // The application leaves by a call of `kind` and something is outstanding, `heavy` if it is more
  // than a few short messages. True: arm now. False: see to it that the backstop runs.
  bool leave(int kind, bool heavy, std::int64_t now_ns) MPLITE_SIGNAL_SAFE;
  // The first sign of the application since; idempotent. `useful`: it was armed, and that was good
  // for something.
  void came_back(std::int64_t now_ns, bool useful) MPLITE_SIGNAL_SAFE;
  // Our signal handler, or the look on the way out, took so long just now: that was not the
  // application's own doing.
  void handled(std::int64_t ns) MPLITE_SIGNAL_SAFE {
    if (left_ns_ != 0) left_ns_ += ns;
  }
  bool waiting() const MPLITE_SIGNAL_SAFE { return waiting_.load(std::memory_order_relaxed); }
  // Backstop: how long the application has been away still has to grow before it may arm; <= 0: arm
  // now.
  std::int64_t until_arm_ns(std::int64_t now_ns) const MPLITE_SIGNAL_SAFE {
    return left_ns_ + trust_->patience_ns - now_ns;
  }
  void ran_out() MPLITE_SIGNAL_SAFE;   // it armed
  void distrust() MPLITE_SIGNAL_SAFE;  // it could not: the next departure is armed
  void useless() MPLITE_SIGNAL_SAFE;   // it found nobody away: it may come less often
  void put_off() MPLITE_SIGNAL_SAFE;   // the same when half of its delay is over
  // Its delay, for the last departure. Departures put it off from half of it on: so it does not go
  // off before the patience is over.
  std::int64_t backstop_ns() const MPLITE_SIGNAL_SAFE {
    const std::int64_t patience_ns = trust_->patience_ns;
    return patience_ns == kBackstopMinNs ? backstop_ns_ : std::max(backstop_ns_, 2 * patience_ns);
  }
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
  struct Trust {
    std::uint32_t quick = 0;  // in a row
    std::uint32_t needed = kQuickNeeded;
    std::uint32_t unseen = 0;  // absences that were not armed and not soon over, in a row
    std::int64_t patience_ns = kBackstopMinNs;
  };

  void was_useless(bool late) MPLITE_SIGNAL_SAFE;
  void was_useful(std::int64_t away_ns, bool late) MPLITE_SIGNAL_SAFE;
  bool lost_trust() MPLITE_SIGNAL_SAFE;
  void go_by(std::uint32_t halves) MPLITE_SIGNAL_SAFE;

  bool on_ = true, weighs_ = true;
  std::atomic<bool> waiting_{false};
  // Of the last departure:
  bool heavy_ = false, armed_ = true, late_ = false;
  std::int64_t left_ns_ = 0;  // 0: it has been accounted for
  std::int64_t backstop_ns_ = kBackstopMinNs;
  std::uint32_t halves_ = 0;  // of this delay that have gone by with nobody away
  Trust kinds_[2][kKinds];    // light and heavy departures
  Trust* trust_ = kinds_[0];
};

}  // namespace mplite
