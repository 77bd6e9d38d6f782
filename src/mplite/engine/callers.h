// Ranks of the job that are still missing, and how those who call are heard while the application
// computes. Used by who makes connections; uses listener.h, socket_signals.h.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/listener.h"
#include "mplite/engine/socket_signals.h"

namespace mplite {

// Gate held throughout.
class Callers {
 public:
  Callers(EngineCore& core, Listener& listener, SocketSignals& signals)
      : core_(core), listener_(listener), signals_(signals) {}
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  // `missing` ranks may call.
  void start(int missing);
  // One of them has been connected, or lost.
  void no_longer_missing() MPLITE_SIGNAL_SAFE;
  // Connections that should be free for them: all of them may call at once while the application
  // computes.
  std::uint32_t connections_wanted() const MPLITE_SIGNAL_SAFE;

  // See Engine::hear_callers.
  int hear(int signo);
  void stop_hearing() MPLITE_SIGNAL_SAFE;
  // One that is heard as a caller has proved itself, and is a connection from now on.
  void proved(Connection& c) MPLITE_SIGNAL_SAFE;

 private:
  void leave(Connection& c) MPLITE_SIGNAL_SAFE;

  EngineCore& core_;
  Listener& listener_;
  SocketSignals& signals_;
  int missing_ = 0;  // ranks of the job that were never connected, nor lost
};

}  // namespace mplite
