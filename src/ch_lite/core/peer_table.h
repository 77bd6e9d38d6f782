// All peers by number: the job's ranks, then processes of other jobs.
// Used by the protocol files, gate held. Neighbour: peer.h.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ch_lite/core/peer.h"
#include "mplite/base/growing_table.h"
#include "mplite/base/signal_safe.h"

namespace ch_lite {

class PeerTable {
 public:
  // `window`: the credit that we give each peer. `windows`: what each rank gives us; null: the
  // same. A pair uses the lesser of both sides', as they need not have the same knobs; each is at
  // least kWindowFloorBytes. False: no memory. Ordinary context.
  bool start(int size, std::uint64_t window, const std::uint64_t* windows);
  // A process of another job becomes peer `number`: the next one, or one that is clean. False: it
  // cannot. Ordinary context.
  bool introduce(int number, std::uint64_t window);

  Peer& operator[](int number) const MPLITE_SIGNAL_SAFE { return peers_[number]; }
  int number_of(const Peer& peer) const MPLITE_SIGNAL_SAFE {
    return static_cast<int>(&peer - peers_);
  }
  int count() const MPLITE_SIGNAL_SAFE { return static_cast<int>(table_.size()); }
  // Of the job.
  int size() const MPLITE_SIGNAL_SAFE { return size_; }
  std::uint64_t window() const { return window_; }

  // `departed`: it concerns only what is open with just this peer. False: it was lost before.
  bool lose(int number, int error, bool departed) MPLITE_SIGNAL_SAFE;
  // Lost, those that departed not among them.
  int lost_count() const MPLITE_SIGNAL_SAFE { return lost_count_; }

 private:
  Peer* peers_ = nullptr;  // of table_, which does not move
  mplite::GrowingTable<Peer> table_;
  int size_ = 0;
  int lost_count_ = 0;
  std::uint64_t window_ = 0;
};

}  // namespace ch_lite
