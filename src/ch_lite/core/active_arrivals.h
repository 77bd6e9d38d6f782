// Active messages that have arrived and are not delivered: in order per peer, peers take turns.
// Used by the active-message protocol; a member of Core, as a lost peer drops messages of it.
#pragma once
#include <atomic>
#include <cstdint>

#include "ch_lite/core/fifo.h"
#include "ch_lite/core/peer.h"
#include "mplite/base/signal_safe.h"

namespace ch_lite {

class ActiveArrivals {
 public:
  // From peer `p`, behind those that it sent before.
  void append(Peer& p, Message* m) MPLITE_SIGNAL_SAFE {
    p.am_arrived.push(m);
    count(1);
    if (!p.on_am_list) take_turn(p);
  }
  void remove(Peer& p, Message* m) MPLITE_SIGNAL_SAFE {
    p.am_arrived.remove(m);
    count(-1);
  }

  // Peers that take turns; one may be there whose messages have all gone.
  std::uint32_t turns() const { return turns_; }
  // The peer whose turn it is. There is one. It takes part again with take_turn().
  Peer& next_turn() {
    Peer& p = *peers_.pop();
    --turns_;
    p.on_am_list = false;
    return p;
  }
  void take_turn(Peer& p) MPLITE_SIGNAL_SAFE {
    p.on_am_list = true;
    peers_.push(&p);
    ++turns_;
  }

  // Not delivered. Readable without the gate.
  std::uint32_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  void count(int change) MPLITE_SIGNAL_SAFE {
    waiting_.store(waiting() + static_cast<std::uint32_t>(change), std::memory_order_relaxed);
  }

  Fifo<Peer, &Peer::am_next> peers_;
  std::uint32_t turns_ = 0;
  std::atomic<std::uint32_t> waiting_{0};
};

}  // namespace ch_lite
