// What epoll is asked about each connection; which connection a poll reads first, and whether epoll
// is asked about that one at all. Used by the parts above; uses engine_core.h, upcalls.h.
#pragma once
#include "mplite/base/signal_safe.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/upcalls.h"
#include "mplite/tuning/epoll_detach.h"

namespace mplite {

// Gate held throughout.
class Readiness {
 public:
  Readiness(EngineCore& core, Upcalls& up)
      : core_(core),
        up_(up),
        detach_(core.options.tuning.has(Heuristic::kEpollDetach) ? core.options.detach_after : 0) {}
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // kReadable, kWritable: what is done when the socket is. May lose the peer.
  void set_interest(Connection& c, unsigned interest) MPLITE_SIGNAL_SAFE;
  void set_low_water(Connection& c, int bytes) MPLITE_SIGNAL_SAFE;
  // The kernel raises a signal for room in a socket only if that was asked for while the socket
  // raised signals: by a write that did not fit, or here, for all that wait for room.
  void ask_for_room() MPLITE_SIGNAL_SAFE;
  // The connection is about to be closed.
  void forget(Connection& c) MPLITE_SIGNAL_SAFE;

  // What a poll reads first; null: none.
  Connection* preferred() const MPLITE_SIGNAL_SAFE { return preferred_; }
  void prefer(Connection& c) MPLITE_SIGNAL_SAFE {
    if (preferred_ == &c) return;
    preferred_ = &c;
    detach_.begin_anew();
    if (detached_ != nullptr) reattach();
  }
  // A read of the connection has brought something.
  void has_read(Connection& c) MPLITE_SIGNAL_SAFE {
    if (c.lane != 0) [[unlikely]]
      return;  // epoll tells
    prefer(c);
    detach_.has_read();
  }

  // The preferred connection, or null: epoll is not asked about what comes there, so only who reads
  // it finds what it has.
  Connection* detached() const MPLITE_SIGNAL_SAFE { return detached_; }
  // So many reads in a row were of the preferred one that epoll need not be asked; or it is
  // detached, and its low-water mark should be another one.
  bool should_detach() const MPLITE_SIGNAL_SAFE {
    return preferred_ != nullptr && detach_.is_due() &&
           (detached_ == nullptr || detached_->rx.low_water != detached_->tuning.rcvlowat.mark());
  }
  void detach() MPLITE_SIGNAL_SAFE;
  // What is there already is announced by this. Needs a detached connection.
  void reattach() MPLITE_SIGNAL_SAFE;

 private:
  unsigned asked_of_epoll(const Connection& c) const MPLITE_SIGNAL_SAFE {
    return &c == detached_ ? c.interest & ~kReadable : c.interest;
  }
  void ask_epoll(Connection& c, unsigned asked_before) MPLITE_SIGNAL_SAFE;

  EngineCore& core_;
  Upcalls& up_;
  Connection* preferred_ = nullptr;
  Connection* detached_ = nullptr;
  EpollDetach detach_;  // by reads of the preferred one
};

}  // namespace mplite
