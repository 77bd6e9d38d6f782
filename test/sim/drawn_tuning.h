// The heuristics of a simulated rank: all of them, none, or a random set, by seed and rank. With a
// generator of its own, so that a seed's world stays what it was.
#pragma once
#include "mplite/tuning/tuning.h"
#include "random.h"

namespace sim {

inline mplite::Tuning drawn_tuning(std::uint64_t seed, int rank) {
  Random random(seed ^ (std::uint64_t{0x7475} << 48) ^ (static_cast<std::uint64_t>(rank) << 32));
  switch (random.below(4)) {
    case 0: return mplite::Tuning();
    case 1: return mplite::Tuning::none();
    default: return mplite::Tuning::of(random.next() >> 16);
  }
}

}  // namespace sim
