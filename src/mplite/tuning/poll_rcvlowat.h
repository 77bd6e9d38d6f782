// SO_RCVLOWAT of a connection that is read by polls, not announced by epoll. Pure decisions; used
// by rx_stream.cpp and readiness.cpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// TCP acknowledges at once, on the sender's core, what finds less than the low-water mark unread,
// and otherwise in the recv that takes it. For a message of several packets that one write of the
// kernel's brings (64 KB) the first is better, by 5 to 19 % of its time from 4 to 56 KB; in the
// middle of longer ones it costs more than it saves (2 to 5 % from 128 KB to 8 MB); one packet goes
// with the answer in both. One per connection. Gate held throughout.
class PollRcvlowat {
 public:
  static constexpr std::uint64_t kMinBytes = 1280, kMaxBytes = 58 * 1024;  // of a message
  static constexpr int kMark = 64 * 1024;
  static constexpr int kDoubts = 4, kSmallOnes = 16;

  // Off: the mark is always 1.
  void start(bool on) MPLITE_SIGNAL_SAFE { on_ = on; }
  // A message begins to come. `whole_end`: up to that length they come in one write, too. What is
  // small may be the envelope of what comes next.
  void message(std::uint64_t bytes, std::uint64_t whole_end) MPLITE_SIGNAL_SAFE {
    small_ = bytes < kMinBytes;
    if (small_) [[likely]] {
      if (mark_ == 1) [[likely]]
        return;
      if (++small_ones_ == kSmallOnes) mark_ = 1;
      return;
    }
    small_ones_ = 0;
    const int mark = bytes <= std::max(kMaxBytes, whole_end) && on_ ? kMark : 1;
    if (mark == mark_) {
      doubts_ = 0;
    } else if (++doubts_ == kDoubts) {
      mark_ = mark;
      doubts_ = 0;
    }
  }
  int mark() const MPLITE_SIGNAL_SAFE { return mark_; }
  // The last message was one of a single packet.
  bool small() const MPLITE_SIGNAL_SAFE { return small_; }

 private:
  int mark_ = 1;
  int doubts_ = 0;      // messages in a row that ask for the other mark,
  int small_ones_ = 0;  // and that ask for none
  bool small_ = false;
  bool on_ = true;
};

}  // namespace mplite
