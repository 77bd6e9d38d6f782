// Up to which length a message to a peer goes short or eager, and how long the fragment is: by the
// knobs, by whether its receives have been in time and, with LITE_EAGER_MAX=auto, by its round
// trip. Used by the sending calls, gate held. Neighbour: protocol.h, the choice itself.
#pragma once
#include <cstdint>

#include "ch_lite/core/peer.h"
#include "ch_lite/core/protocol.h"
#include "mplite/base/signal_safe.h"
#include "mplite/tuning/tuning.h"

namespace ch_lite {

class PeerCutoffs {
 public:
  PeerCutoffs(std::uint64_t short_max, std::uint64_t eager_max, bool eager_auto,
              const mplite::Tuning& tuning);

  // What the knobs say.
  const Cutoffs& base() const MPLITE_SIGNAL_SAFE { return base_; }
  // For a message of `bytes` to peer number `number`, whose round trip is looked at when that is
  // due.
  Cutoffs before_send(Peer& peer, int number, std::uint64_t bytes);
  // The same as they stand.
  Cutoffs of(const Peer& peer) const MPLITE_SIGNAL_SAFE;
  // The eager cutoff that was measured last, or all peers'.
  std::uint64_t last_eager() const { return last_eager_; }

 private:
  void measure_eager(Peer& peer, int number);

  Cutoffs base_;
  bool eager_auto_;
  bool measures_eager_;
  // Peer::in_time from which a peer's receives are taken to be in time.
  std::uint8_t in_time_enough_;
  std::uint64_t copy_ns_per_mb_ = 0;  // with eager_auto; 0: not measured yet
  std::uint64_t last_eager_;
};

}  // namespace ch_lite
