// How often one poll of a waiting rank tries the detached connection again. Pure decision; used by
// poller.cpp.
#pragma once
#include "mplite/base/signal_safe.h"

namespace mplite {

// The way from one poll to the next is half of what a read that finds nothing costs. So who waits
// for a packet, and has nothing else to look at, reads again at once a few times. Not for long
// messages, whose bytes come one batch after the other: then what has come is worth looking at. One
// per engine. Gate held throughout, but for allow().
class Repoll {
 public:
  static constexpr int kTimes = 3;

  // Off: never. Before it is asked.
  void set_on(bool on) { most_ = on ? kMost : 0; }
  // The next poll is one of a rank that waits: it may try again up to so many times. Gate held or
  // not.
  void allow(int times) { left_ = times < most_ ? times : most_; }
  // The times of this poll, for a connection whose last message was one write of the kernel's.
  int take(bool one_write) MPLITE_SIGNAL_SAFE {
    const int times = one_write ? left_ : 0;
    left_ = 0;
    return times;
  }

 private:
  static constexpr int kMost = 1 << 20;
  int most_ = kMost;
  int left_ = 0;
};

}  // namespace mplite
