// Up to which length a message to a peer goes short or eager, and how long the fragment is: by the
// knobs, and by whether the peer's receives have been in time. Used by the sending calls, gate
// held. Neighbour: protocol.h, the choice itself.
#pragma once
#include <cstdint>

#include "ch_lite/core/peer.h"
#include "ch_lite/core/protocol.h"
#include "mplite/base/signal_safe.h"
#include "mplite/tuning/tuning.h"

namespace ch_lite {

class PeerCutoffs {
 public:
  // `eager_auto`: eager_max may be exceeded where receives are in time, and a rendezvous would not
  // be spread over several connections.
  PeerCutoffs(std::uint64_t short_max, std::uint64_t eager_max, bool eager_auto,
              const mplite::Tuning& tuning);

  // What the knobs say.
  const Cutoffs& base() const MPLITE_SIGNAL_SAFE { return base_; }
  // For a message to that peer, which has that number.
  Cutoffs of(const Peer& peer, int number) const MPLITE_SIGNAL_SAFE;
  // For one of `bytes`: those of a short one are the same to all peers.
  Cutoffs of(const Peer& peer, int number, std::uint64_t bytes) const MPLITE_SIGNAL_SAFE {
    return bytes <= base_.short_max ? base_ : of(peer, number);
  }

 private:
  Cutoffs base_;
  bool eager_auto_;
  // Peer::in_time from which a peer's receives are taken to be in time.
  std::uint8_t in_time_enough_;
};

}  // namespace ch_lite
