// Whether to look for input without the socket's lock before a read. Pure decisions; used by
// poller.cpp.
#pragma once
#include "mplite/base/signal_safe.h"

namespace mplite {

// Who spins on recv holds the socket's lock most of the time. What comes then waits for the end of
// that call and is worked through, and acknowledged, by the receiver; otherwise by the sender's
// core, at once. So for messages of a few packets somebody peeks first who does not take the lock.
// Every kStride-th read is made all the same: one of kStride messages is found by it if peeks tell
// the truth. Who answers in the kernel's place (SMC, a library that is preloaded) may not. One per
// engine. Gate held throughout.
class Peek {
 public:
  static constexpr unsigned kStride = 16;
  static constexpr int kMissed = 8;  // messages in a row that peeks did not see: no more peeks

  // Off: none at all.
  void start(bool on) MPLITE_SIGNAL_SAFE { missed_ = on ? 0 : kMissed; }
  bool trusted() const MPLITE_SIGNAL_SAFE { return missed_ < kMissed; }
  // In the `tick`th poll: the read is made without a peek.
  static bool reads_at(unsigned tick) MPLITE_SIGNAL_SAFE { return tick % kStride == 0; }
  // The `tick`th poll, which peeks, has read something.
  void found(unsigned tick) MPLITE_SIGNAL_SAFE { missed_ = reads_at(tick) ? missed_ + 1 : 0; }

 private:
  int missed_ = 0;
};

}  // namespace mplite
