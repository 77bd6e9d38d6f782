// Up to which length a message to a peer goes short or eager.
#include "ch_lite/core/cutoffs.h"

#include <algorithm>

#include "ch_lite/channel/channel.h"
#include "mplite/base/copy_speed.h"
#include "mplite/tuning/eager_cutoff.h"

namespace ch_lite {
namespace {

// Long messages to a peer between two looks at its round trip: the kernel's minimum of late needs
// some samples, and the path may change.
constexpr std::uint32_t kEagerLooks = 64;

}  // namespace

PeerCutoffs::PeerCutoffs(std::uint64_t short_max, std::uint64_t eager_max, bool eager_auto,
                         const mplite::Tuning& tuning)
    : base_{short_max, eager_max},
      eager_auto_(eager_auto),
      measures_eager_(eager_auto && tuning.has(mplite::Heuristic::kEagerAuto)),
      in_time_enough_(tuning.has(mplite::Heuristic::kEagerInTime) ? kInTimeEnough
                                                                  : kInTimeEnough + 1),
      last_eager_(eager_max) {}

Cutoffs PeerCutoffs::before_send(Peer& p, int number, std::uint64_t bytes) {
  if (bytes <= base_.short_max) return base_;
  if (measures_eager_ && bytes > mplite::kEagerCutoffMin) measure_eager(p, number);
  return of(p);
}

Cutoffs PeerCutoffs::of(const Peer& p) const {
  Cutoffs cutoffs = base_;
  if (p.eager_max != 0) cutoffs.eager_max = p.eager_max;
  if (p.in_time < in_time_enough_) return cutoffs;
  cutoffs.fragment_max = kFragmentBytesInTime;
  if (eager_auto_)
    cutoffs.eager_max = std::max(cutoffs.eager_max,
                                 mplite::eager_cutoff_in_time(p.credits[kPointToPoint].window()));
  return cutoffs;
}

void PeerCutoffs::measure_eager(Peer& p, int number) {
  if (p.eager_looks != 0) {
    --p.eager_looks;
    return;
  }
  const std::int64_t round_trip = MPID_ChannelRoundTrip(number);
  if (round_trip <= 0) return;
  if (copy_ns_per_mb_ == 0) copy_ns_per_mb_ = mplite::measure_copy_ns_per_mb();
  last_eager_ =
      mplite::eager_cutoff(round_trip, copy_ns_per_mb_, p.credits[kPointToPoint].window());
  p.eager_max = static_cast<std::uint32_t>(last_eager_);
  p.eager_looks = kEagerLooks;
}

}  // namespace ch_lite
