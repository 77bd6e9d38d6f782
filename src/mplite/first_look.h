// When who waits for the answer to a small packet looks for it first. Pure decisions, times are parameters; used by engine_receive.cpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "signal_safe.h"

namespace mplite {

// A look takes the socket's lock, and from the sender's core the lines of the cache that it needs to deliver what comes: looks that come too early to find anything make that take longer (docs/arming.md). So
// the first one waits for most of the shortest of the last waits. One wait in kStride is made without such a delay and measured; as all are shorter without it, the delay can't grow by its own effect. An odd
// stride, so that the measured ones are not always the long ones of a loop that takes turns. What comes sooner than any of these is late by kMaxNs at most. Gate held throughout.
class FirstLook {
 public:
  static constexpr unsigned kStride = 31, kWaits = 4;
  static constexpr std::int64_t kMaxNs = 5'000;

  // A wait begins. Whether it is to be measured: no delay, and took() is told how long it was.
  bool begin() MPLITE_SIGNAL_SAFE {
    if (rest_ != 0) {
      --rest_;
      return false;
    }
    if (taken_ >= kWaits) rest_ = kStride - 1;
    return true;
  }
  void took(std::int64_t ns) MPLITE_SIGNAL_SAFE {
    waits_ns_[taken_++ % kWaits] = ns;
    if (taken_ >= kWaits) delay_ns_ = std::min(*std::min_element(waits_ns_, waits_ns_ + kWaits) * 2 / 3, kMaxNs);
  }
  // Of a wait that is not measured; 0 until kWaits have been.
  std::int64_t delay_ns() const MPLITE_SIGNAL_SAFE { return delay_ns_; }

 private:
  std::int64_t waits_ns_[kWaits] = {};
  std::int64_t delay_ns_ = 0;
  unsigned taken_ = 0, rest_ = 0;
};

}  // namespace mplite
