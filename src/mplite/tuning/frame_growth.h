// How long the frames of bulk data are. Pure decisions; used by tx_queue.cpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// Frames let other messages in between. What the kernel takes at once is before those in any case,
// so frames double, up to kFactor times their usual length, while it takes all that it is offered.
// One per connection. Gate held throughout.
class FrameGrowth {
 public:
  static constexpr std::uint32_t kFactor = 16;

  // `usual` and at most `most` bytes. Off: always the usual length.
  void start(std::uint32_t usual, std::uint32_t most, bool on) MPLITE_SIGNAL_SAFE {
    bytes_ = usual_ = usual;
    most_ = on ? static_cast<std::uint32_t>(std::min<std::uint64_t>(limit(), most)) : usual;
  }
  // The kernel took all of `offered` bytes, or not.
  void taken(bool all, std::uint64_t offered) MPLITE_SIGNAL_SAFE {
    if (!all)
      bytes_ = usual_;
    else if (offered >= bytes_ && bytes_ < most_)
      bytes_ = std::min(2 * bytes_, most_);
  }
  // Of the next frame.
  std::uint32_t bytes() const MPLITE_SIGNAL_SAFE { return bytes_; }
  bool grown() const MPLITE_SIGNAL_SAFE { return bytes_ > usual_; }
  // Frames of `fixed` bytes have their place in the stream. Whether one more has to wait: what is
  // fixed and not taken is in front of whatever comes next.
  bool enough(std::uint64_t fixed) const MPLITE_SIGNAL_SAFE {
    return grown() && fixed != 0 && fixed + bytes_ > limit();
  }

 private:
  std::uint64_t limit() const MPLITE_SIGNAL_SAFE { return std::uint64_t{kFactor} * usual_; }

  std::uint32_t usual_ = 0, most_ = 0, bytes_ = 0;
};

}  // namespace mplite
