// What the lower parts of an engine ask of those above them, which they do not know: defined in
// engine.cpp, where all parts are. Used by readiness.h, tx_queue.h, rx_stream.h and connector.h.
#pragma once
#include "mplite/base/signal_safe.h"

namespace mplite {

class Engine;
struct Connection;

class Upcalls {
 public:
  explicit Upcalls(Engine& engine) : engine_(engine) {}

  // Gives the peer up. Afterwards its connection is dropped, and its sends are complete.
  void lose(int peer, int error) MPLITE_SIGNAL_SAFE;
  // Of a peer that is not connected. 0: a connection is coming; -errno: the peer is lost.
  int want_connection(int peer) MPLITE_SIGNAL_SAFE;
  // Something long for the peer is about to be queued; data of it waits for the network.
  void want_lanes(int peer) MPLITE_SIGNAL_SAFE;
  void lanes_wait(int peer) MPLITE_SIGNAL_SAFE;
  // A connection that is up has failed by `error`, an errno or a fault of loss.h; `ended`: or has
  // been ended by the peer. Its peer is lost, unless it is a lane without data on it.
  void lose_stream(Connection& c, int error, bool ended) MPLITE_SIGNAL_SAFE;
  // Engine::refill.
  MPLITE_ORDINARY bool refill();

 private:
  Engine& engine_;
};

}  // namespace mplite
