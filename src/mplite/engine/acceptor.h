// Callers: accepted, pushed out where there are too many, put off where the process is short of
// descriptors, and looked at apart while the application computes. Used by the poller; uses
// handshaker.h, connector.h, listener.h.
#pragma once
#include "mplite/base/signal_safe.h"
#include "mplite/engine/connector.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/handshaker.h"
#include "mplite/engine/listener.h"
#include "mplite/engine/socket_signals.h"
#include "mplite/engine/upcalls.h"

namespace mplite {

// Gate held throughout.
class Acceptor {
 public:
  Acceptor(EngineCore& core, Upcalls& up, Listener& listener, SocketSignals& signals,
           Connector& connector, Handshaker& handshaker)
      : core_(core),
        up_(up),
        listener_(listener),
        signals_(signals),
        connector_(connector),
        handshaker_(handshaker) {}
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Whether there was any.
  bool accept_all() MPLITE_SIGNAL_SAFE;
  // Callers that are heard apart from connections: accepts, and carries handshakes through. How
  // many had something.
  int poll_callers() MPLITE_SIGNAL_SAFE;

 private:
  static constexpr std::uint32_t kHandshakesMax =
      64;  // accepted ones in handshake; a flood drops the oldest
  // While all of them are about to prove themselves.
  static constexpr std::int64_t kFullRestNs = 2'000'000;
  static constexpr int kEventsMax = 64;  // of one look by epoll
  static constexpr int kAcceptsOfPass = 64;

  void accepted(int fd, const sockaddr_storage& from) MPLITE_SIGNAL_SAFE;
  void pause_listener(int error) MPLITE_SIGNAL_SAFE;
  bool evict_stranger() MPLITE_SIGNAL_SAFE;
  // Who calls still is let in in the next one.
  void end_pass() MPLITE_SIGNAL_SAFE {
    core_.more_to_do = true;
    listener_.next_turn();
  }

  EngineCore& core_;
  Upcalls& up_;
  Listener& listener_;
  SocketSignals& signals_;
  Connector& connector_;
  Handshaker& handshaker_;
};

}  // namespace mplite
