// Whether the second of two ways is worth it, found by trying both by turns, again and again. Pure
// decisions, time is a parameter; used by tx_queue.cpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// The second way costs more in other respects, so it is taken only where it is faster by
// kGainPercent. Where neither the processor nor the place of the two sides on it is known, nor
// stays what it is (virtual machines move), a constant is wrong half of the time. Tries take turns
// of several samples, as what either side does may follow the other's with a delay, and the least
// time of a turn counts: whatever else the machine does only adds to it. Two sides that take turns
// with each other begin, try and rest at the same messages, so that both try the same way at the
// same time.
// Gate held throughout.
class FasterWay {
 public:
  static constexpr unsigned kTurn = 12;  // samples in a row by one way
  static constexpr unsigned kTurns = 8;  // of the two ways by turns, before it is decided
  static constexpr unsigned kRest =
      4096;  // times by the way that was chosen, before they are tried again
  static constexpr std::int64_t kGainPercent = 4;  // of the time, that the second way has to gain

  // The way of the next time; at first it is the first one.
  bool second() const MPLITE_SIGNAL_SAFE { return trying() ? turn_ % 2 != 0 : chosen_; }
  // Whether the next time is to be measured.
  bool trying() const MPLITE_SIGNAL_SAFE { return rest_ == 0; }
  // One time by second() that was not measured.
  void pass() MPLITE_SIGNAL_SAFE {
    if (rest_ > 0) --rest_;
  }
  // One that was: it took so long.
  void took(std::int64_t ns) MPLITE_SIGNAL_SAFE {
    if (!trying()) return pass();
    least_ns_ = count_ == 0 ? ns : std::min(least_ns_, ns);
    if (++count_ < kTurn) return;
    sum_ns_[turn_ % 2] += least_ns_;
    count_ = 0;
    if (++turn_ == kTurns) decide();
  }

 private:
  void decide() MPLITE_SIGNAL_SAFE {
    chosen_ = sum_ns_[1] * 100 <= sum_ns_[0] * (100 - kGainPercent);
    sum_ns_[0] = sum_ns_[1] = 0;
    turn_ = 0;
    rest_ = kRest;
  }

  std::int64_t sum_ns_[2] = {};
  std::int64_t least_ns_ = 0;
  unsigned count_ = 0, turn_ = 0, rest_ = 0;
  bool chosen_ = false;  // the second
};

}  // namespace mplite
