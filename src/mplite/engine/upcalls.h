// What the lower parts of an engine ask of those above them, which they do not know: defined in
// engine.cpp, where all parts are. Used by readiness.h, tx_queue.h, rx_stream.h and connector.h.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

class Engine;
struct Connection;

enum class StreamFailure : std::uint8_t {
  kOfWrite,  // or the peer is silent: something may still be read
  kOfRead,   // nothing more can be read
  kEnd,      // the same, as the peer has ended it
};

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
  // A connection that is up has failed by `error`, an errno or a fault of loss.h. What was on it
  // goes over another; if there can be none its peer is lost.
  void lose_stream(Connection& c, int error, StreamFailure how) MPLITE_SIGNAL_SAFE;
  // Engine::refill.
  MPLITE_ORDINARY bool refill();

 private:
  Engine& engine_;
};

}  // namespace mplite
