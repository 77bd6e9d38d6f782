// Whether a message of a length between is written in two halves. Pure decisions, times are
// parameters; used by tx_queue.cpp.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/tuning/faster_way.h"

namespace mplite {

// The first half is being received while the second is copied to the kernel. Not in a stream of
// such messages, where one write is received while the next one is copied: only if something has
// come from that peer since the last one, and not for kStream more messages behind two without
// (what comes in a stream is credits and clearances). In one write, acknowledged at once by the
// receiver (poll_rcvlowat.h), such a message is as fast on some machines and networks, and takes
// one signal less of a receiver that computes. Which it is, is found by timing both (faster_way.h).
// One per connection. Gate held throughout.
class Halves {
 public:
  static constexpr int kStream = 32, kRecent = 2;

  // Of writes of at least `min` and less than `end` bytes.
  void start(std::uint64_t min, std::uint64_t end) MPLITE_SIGNAL_SAFE {
    min_ = min;
    end_ = end;
  }

  // A write of `offered` bytes is ahead. Whether it is one of those; then next() is called.
  bool chooses(std::uint64_t offered) const MPLITE_SIGNAL_SAFE {
    return offered >= min_ && offered < end_ && answered_ && stream_ == 0;
  }
  // True: the time to its answer is measured: left() is called.
  bool next() MPLITE_SIGNAL_SAFE {
    recent_ = kRecent;
    if (!way_.trying())
      way_.pass();
    else if (asked_ && heard_ns_ != 0)
      way_.took(heard_ns_ - asked_ns_);
    asked_ = way_.trying();
    heard_ns_ = 0;
    return asked_;
  }
  void left(std::int64_t now_ns) MPLITE_SIGNAL_SAFE { asked_ns_ = now_ns; }
  // How much of it goes first.
  std::uint64_t first(std::uint64_t offered) MPLITE_SIGNAL_SAFE {
    halves_left_ = way_.second() ? 2 : 0;
    return way_.second() ? offered / 2 : offered;
  }
  // That many bytes are written at once.
  void wrote(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    if (bytes < min_ / 2 || (halves_left_ != 0 && --halves_left_ == 0)) return;
    if (!answered_)
      stream_ = kStream;
    else if (stream_ != 0)
      --stream_;
    answered_ = false;
  }
  // Something has come from the peer. True: heard_at() is called.
  bool heard() MPLITE_SIGNAL_SAFE {
    answered_ = true;
    return asked_;
  }
  void heard_at(std::int64_t now_ns) MPLITE_SIGNAL_SAFE {
    if (asked_) heard_ns_ = now_ns;
  }
  // A message begins to come.
  void comes(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    if (bytes >= min_ && bytes < end_ && recent_ != 0) --recent_;
  }
  // Up to here messages are written at once, and better acknowledged at once. 0: in halves, or they
  // come in a stream: none of ours was chosen lately.
  std::uint64_t whole_end() const MPLITE_SIGNAL_SAFE {
    return way_.second() || recent_ == 0 ? 0 : end_;
  }

 private:
  FasterWay way_;  // in one write, or (second) in halves
  std::uint64_t min_ = 0, end_ = 0;
  std::int64_t asked_ns_ = 0;  // while asked_: when the last one of them left,
  std::int64_t heard_ns_ = 0;  // and when something came last since then, or 0
  int halves_left_ = 0;        // of the message that is being written, if it is cut
  int stream_ = 0;             // so many more long writes are taken for those of a stream
  int recent_ = 0;             // so many more of the peer's are taken for answers to ours
  bool answered_ = true;       // something has come since the last long write
  bool asked_ = false;         // the time to the answer to it is measured
};

}  // namespace mplite
