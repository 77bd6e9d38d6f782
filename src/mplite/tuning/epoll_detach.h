// When the one busy connection is taken out of epoll. Pure decision; used by readiness.h.
#pragma once
#include "mplite/base/signal_safe.h"

namespace mplite {

// A connection in epoll costs the kernel 0.1 us per packet before the reader can have it. After so
// many reads in a row from one connection that brought something, who polls reads it without being
// told. One per engine. Gate held throughout.
class EpollDetach {
 public:
  // `after`: so many reads; 0: never.
  explicit EpollDetach(int after) : after_(after) {}

  void has_read() MPLITE_SIGNAL_SAFE {
    if (reads_ < after_) ++reads_;
  }
  // Another connection is read now, or it is back in epoll.
  void begin_anew() MPLITE_SIGNAL_SAFE { reads_ = 0; }
  bool is_due() const MPLITE_SIGNAL_SAFE { return after_ > 0 && reads_ == after_; }

 private:
  int after_;
  int reads_ = 0;  // in a row, up to after_
};

}  // namespace mplite
