// How much of the application's time callers may take while it computes. Pure decisions, times are
// parameters; used by engine.cpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// While ranks of the job are missing a computing rank is interrupted by whoever calls, and
// strangers can call without end, at some 20 us for one that is accepted and hangs up
// (flood_of_strangers_leaves_the_application_its_time, 25,000 to 75,000 calls a second). So there
// is an amount of steps (a caller accepted, something from one that has not proved itself) that may
// be taken at once, and a rate, which is about 2 % of a core; who comes beyond it waits in the
// kernel's queue. What a rank of the job took is given back when it has proved itself. Gate held
// throughout.
class Allowance {
 public:
  static constexpr std::int64_t kBurst = 1024, kPerSecond = 1024;
  static constexpr std::int64_t kRestNs =
      100'000'000;  // when there is nothing left: then a tenth of a second's is taken at once
  static constexpr std::int64_t kRankSteps = 4;  // of one handshake, at most

  bool take(std::int64_t now_ns) MPLITE_SIGNAL_SAFE {
    constexpr std::int64_t kStepNs = 1'000'000'000 / kPerSecond;
    const std::int64_t earned = (now_ns - since_ns_) / kStepNs;
    left_ = std::min(kBurst, left_ + earned);
    since_ns_ += earned * kStepNs;
    if (left_ == 0) return false;
    --left_;
    return true;
  }
  void give_back() MPLITE_SIGNAL_SAFE { left_ = std::min(kBurst, left_ + kRankSteps); }

 private:
  std::int64_t left_ = kBurst;
  std::int64_t since_ns_ = 0;
};

}  // namespace mplite
