// Which sockets raise a signal when something comes, which one, and in which thread (the SIGIO
// driver's). Used by the engine's parts; uses engine_core.h, listener.h.
#pragma once
#include "mplite/base/signal_safe.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/listener.h"

namespace mplite {

// Gate held throughout.
class SocketSignals {
 public:
  SocketSignals(EngineCore& core, Listener& listener) : core_(core), listener_(listener) {}
  SocketSignals(const SocketSignals&) = delete;
  SocketSignals& operator=(const SocketSignals&) = delete;

  // A new socket. `caller`: the listener, or one that is heard as a caller.
  void drive(int fd, bool caller = false) MPLITE_SIGNAL_SAFE;
  // All sockets, present and future. tid 0: none.
  void drive_all(int tid, int signo);
  // Whether they are raised at all, for the present.
  void set_enabled(bool on) MPLITE_SIGNAL_SAFE;
  bool enabled() const MPLITE_SIGNAL_SAFE { return enabled_; }

 private:
  EngineCore& core_;
  Listener& listener_;
  int tid_ = 0, signo_ = 0;
  bool enabled_ = true;
};

}  // namespace mplite
