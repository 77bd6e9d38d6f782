// The credit of one class of traffic between this process and one peer: what we may push unasked,
// and what we owe back. Used by the protocol files; a peer has two (point to point, active
// messages). Plain arithmetic, no action.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ch_lite/core/blocks.h"
#include "ch_lite/core/check.h"
#include "mplite/base/signal_safe.h"

namespace ch_lite {

// Bytes that a message of `bytes` costs at its receiver while it is unexpected: its node and a
// block of the fitting size class. Both sides compute it, from the envelope.
// Credits bound what a peer may push unasked.
inline constexpr std::uint64_t kMessageOverheadBytes = 256;
inline std::uint64_t message_charge(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
  return kMessageOverheadBytes + Blocks::footprint(bytes);
}

// The window that a rank gives to each peer: its `credits_bytes`, but over all peers and both
// classes of traffic not more than its `unexpected_max_bytes`, and at least kWindowFloorBytes,
// which one active-message header of any size and half a window need. A pair uses the lesser of
// both sides'.
std::uint64_t credit_window(std::uint64_t credits_bytes, std::uint64_t unexpected_max_bytes,
                            int size);
inline constexpr std::uint64_t kWindowFloorBytes = 16 * 1024;

// Invariant over both sides: left + on its way + held + owed + on its way back == window.
class Credits {
 public:
  void start(std::uint64_t window) {
    window_ = left_ = window;
    held_ = owed_ = 0;
  }

  std::uint64_t window() const MPLITE_SIGNAL_SAFE { return window_; }

  // As sender.
  std::uint64_t left() const MPLITE_SIGNAL_SAFE { return left_; }
  // What is left above half of the window: for what need not go unasked, so that small messages
  // always can.
  std::uint64_t spare() const MPLITE_SIGNAL_SAFE {
    return left_ > window_ / 2 ? left_ - window_ / 2 : 0;
  }
  bool spend(std::uint64_t charge) MPLITE_SIGNAL_SAFE {
    if (charge > left_) return false;
    left_ -= charge;
    return true;
  }
  // False: more than was ever spent (the peer is broken).
  bool refund(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    if (bytes > window_ - left_) return false;
    left_ += bytes;
    return true;
  }

  // As receiver.
  // Whether a message would be accepted; the same as accept and release, for one that is delivered
  // at once.
  bool takes(std::uint64_t charge) const MPLITE_SIGNAL_SAFE {
    return charge <= window_ - held_ - owed_;
  }
  void pass(std::uint64_t charge) MPLITE_SIGNAL_SAFE { owed_ += charge; }
  // A message arrived. False: the peer overdraws.
  bool accept(std::uint64_t charge) MPLITE_SIGNAL_SAFE {
    if (!takes(charge)) return false;
    held_ += charge;
    return true;
  }
  // It was matched or delivered: now owed.
  void release(std::uint64_t charge) MPLITE_SIGNAL_SAFE {
    CHLITE_CHECK(charge <= held_);
    held_ -= charge;
    owed_ += charge;
  }
  // For the packet at hand; what does not fit stays owed.
  std::uint32_t take_owed() MPLITE_SIGNAL_SAFE {
    const auto now = static_cast<std::uint32_t>(std::min<std::uint64_t>(owed_, UINT32_MAX));
    owed_ -= now;
    return now;
  }
  void put_back(std::uint32_t owed) MPLITE_SIGNAL_SAFE {
    owed_ += owed;
  }  // that packet did not leave
  // So much is owed that a packet of its own is worth it. At less than half, the sender has more
  // than half left: enough for any active-message header, and point to point goes on by rendezvous.
  bool due() const MPLITE_SIGNAL_SAFE { return owed_ >= window_ / 2 && owed_ > 0; }

  std::uint64_t held() const { return held_; }
  std::uint64_t owed() const { return owed_; }

 private:
  std::uint64_t window_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t held_ = 0;
  std::uint64_t owed_ = 0;
};

}  // namespace ch_lite
