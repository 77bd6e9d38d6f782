// When who waits for the answer to a packet looks for it first. Pure decisions, times are
// parameters; used by poller.cpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// A look takes the socket's lock, and from the sender's core the lines of the cache that it needs
// to deliver what comes: looks that come too early to find anything make that take longer
// (docs/measurements/arming.md). So the first one waits for most of the shortest of the last waits.
// One wait in kStride is made without such a delay and measured; as all are shorter without it, the
// delay can't grow by its own effect. An odd stride, so that the measured ones are not always the
// long ones of a loop that takes turns. What comes sooner than any of these is late by kMaxNs at
// most. Gate held throughout.
class FirstLook {
 public:
  static constexpr unsigned kStride = 31, kWaits = 4;
  static constexpr std::int64_t kMaxNs = 5'000;

  // Off: no wait is measured, and so none is delayed. Before it is asked.
  void set_on(bool on) MPLITE_SIGNAL_SAFE { on_ = on; }

  // A packet leaves to which an answer is awaited.
  void sent() MPLITE_SIGNAL_SAFE { sent_ = true; }
  bool is_first() const MPLITE_SIGNAL_SAFE { return sent_; }  // the wait is for the answer to it
  // That wait begins; `expected`: for what comes by one write of the kernel's. How long to wait
  // before the first look. A wait that is measured has none: began() is called.
  std::int64_t wait(bool expected) MPLITE_SIGNAL_SAFE {
    sent_ = false;
    timed_ = expected && begin();
    return expected && !timed_ ? delay_ns_ : 0;
  }
  bool timed() const MPLITE_SIGNAL_SAFE { return timed_; }  // it is measured
  void began(std::int64_t now_ns) MPLITE_SIGNAL_SAFE { began_ns_ = now_ns; }
  // Something has come.
  void came(std::int64_t now_ns) MPLITE_SIGNAL_SAFE {
    if (!timed_) return;
    timed_ = false;
    took(now_ns - began_ns_);
  }

  // A wait begins. Whether it is to be measured: no delay, and took() is told how long it was.
  bool begin() MPLITE_SIGNAL_SAFE {
    if (rest_ != 0) {
      --rest_;
      return false;
    }
    if (!on_) return false;
    if (taken_ >= kWaits) rest_ = kStride - 1;
    return true;
  }
  void took(std::int64_t ns) MPLITE_SIGNAL_SAFE {
    waits_ns_[taken_++ % kWaits] = ns;
    if (taken_ >= kWaits)
      delay_ns_ = std::min(*std::min_element(waits_ns_, waits_ns_ + kWaits) * 2 / 3, kMaxNs);
  }
  // Of a wait that is not measured; 0 until kWaits have been.
  std::int64_t delay_ns() const MPLITE_SIGNAL_SAFE { return delay_ns_; }

 private:
  std::int64_t waits_ns_[kWaits] = {};
  std::int64_t delay_ns_ = 0;
  std::int64_t began_ns_ = 0;  // while timed_
  unsigned taken_ = 0, rest_ = 0;
  bool on_ = true;
  bool sent_ = false;   // a packet has left since the last wait for an answer began
  bool timed_ = false;  // that wait is measured, and nothing has come yet
};

}  // namespace mplite
