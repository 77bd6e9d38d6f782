// Up to which length a message to a peer goes short or eager.
#include "ch_lite/core/cutoffs.h"

#include <algorithm>

#include "ch_lite/channel/channel.h"
#include "mplite/tuning/eager_cutoff.h"

namespace ch_lite {

PeerCutoffs::PeerCutoffs(std::uint64_t short_max, std::uint64_t eager_max, bool eager_auto,
                         const mplite::Tuning& tuning)
    : base_{short_max, eager_max},
      eager_auto_(eager_auto),
      in_time_enough_(tuning.has(mplite::Heuristic::kEagerInTime) ? kInTimeEnough
                                                                  : kInTimeEnough + 1) {}

Cutoffs PeerCutoffs::of(const Peer& p, int number) const {
  Cutoffs cutoffs = base_;
  if (p.in_time < in_time_enough_) return cutoffs;
  cutoffs.fragment_max = kFragmentBytesInTime;
  if (eager_auto_ && MPID_ChannelSpreads(number) == 0)
    cutoffs.eager_max = std::max(cutoffs.eager_max,
                                 mplite::eager_cutoff_in_time(p.credits[kPointToPoint].window()));
  return cutoffs;
}

}  // namespace ch_lite
