// SO_RCVLOWAT of a bulk receive while the application computes. Pure decision; used by
// rx_stream.cpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// While nobody waits, the rest of a long frame may be announced by few signals.
class LowWater {
 public:
  static constexpr std::uint64_t kBulkBytes = 128 * 1024;

  // `mark`: of bulk data, bytes; 0: off.
  explicit LowWater(std::uint32_t mark) : mark_(mark) {}
  // The mark from now on, where it is `now`. `owed`: what the frame still owes, 0 outside of one;
  // `quiet`: the socket is empty, and nobody waits. Never more than is owed: for less than the mark
  // no signal and no event would come.
  int next(int now, std::uint64_t owed, bool quiet) const MPLITE_SIGNAL_SAFE {
    const std::int64_t wanted = quiet && owed >= kBulkBytes ? mark_ : now;
    return static_cast<int>(
        std::max(std::min(wanted, static_cast<std::int64_t>(owed)), std::int64_t{1}));
  }

 private:
  std::int64_t mark_;
};

}  // namespace mplite
