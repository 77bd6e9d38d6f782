// While armed, when the timer is to unblock the signal: at the end of a rest, and again and again,
// ever more seldom, where somebody may have put an old mask back. Pure decisions; ArmingPolicy
// (arming.h) has one.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// Thread safety: as ArmingPolicy.
class Reopening {
 public:
  // How soon, and how seldom at last, the mask is looked at again.
  static constexpr std::int64_t kMinNs = 2'000'000, kMaxNs = 1'000'000'000;

  // A timer that goes off while armed is for this.
  bool is_due() const MPLITE_SIGNAL_SAFE { return recheck_ns_ != 0 || resting_; }

  // Each returns the next delay of the timer. armed_late(): by a timer. opened(): the timer has
  // unblocked the signal; `was_closed`: somebody had blocked it, and may do so again soon.
  // put_off(): it is not ours now.
  std::int64_t armed_late() MPLITE_SIGNAL_SAFE;
  std::int64_t opened(bool was_closed) MPLITE_SIGNAL_SAFE;
  std::int64_t put_off() MPLITE_SIGNAL_SAFE;
  // The timer has found it unarmed: nothing to look at any more.
  void found_unarmed() MPLITE_SIGNAL_SAFE { recheck_ns_ = 0; }
  // How often opened(), for who blocks the signal meanwhile.
  unsigned times() const { return times_; }

  // ---- rests: the signal stays blocked, although it is armed, until the timer goes off ----

  void begin_rest() MPLITE_SIGNAL_SAFE { resting_ = true; }
  bool is_resting() const MPLITE_SIGNAL_SAFE { return resting_; }
  void disarmed() { resting_ = false; }

 private:
  unsigned times_ = 0;
  bool resting_ = false;
  std::int64_t recheck_ns_ = 0;  // 0: what is armed was not armed by a timer
};

}  // namespace mplite
