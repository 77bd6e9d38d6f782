// What is drawn for a simulated rank.
#pragma once
#include <cstdint>

#include "mplite/engine/engine_options.h"
#include "mplite/tuning/tuning.h"
#include "random.h"

namespace sim {

// Its heuristics: all of them, none, or a random set, by seed and rank. With a generator of its
// own, so that a seed's world stays what it was.
inline mplite::Tuning drawn_tuning(std::uint64_t seed, int rank) {
  Random random(seed ^ (std::uint64_t{0x7475} << 48) ^ (static_cast<std::uint64_t>(rank) << 32));
  switch (random.below(4)) {
    case 0: return mplite::Tuning();
    case 1: return mplite::Tuning::none();
    default: return mplite::Tuning::of(random.next() >> 16);
  }
}

// How many lanes it has, by a generator of its own, too.
inline void draw_lanes(std::uint64_t seed, int rank, mplite::EngineOptions& options) {
  Random random(seed ^ (std::uint64_t{0x6c61} << 48) ^ (static_cast<std::uint64_t>(rank) << 32));
  if (!random.chance(512)) return;
  options.lanes = static_cast<int>(random.below(5));
  options.long_bytes = random.below(20'000);
}

// How an engine reads and writes, drawn from the world's generator.
inline void draw_reads_and_writes(Random& random, mplite::EngineOptions& options) {
  options.handler_budget_bytes = random.chance(512) ? random.between(1, 5'000) : 8u << 20;
  options.frame_tries = static_cast<int>(random.below(3));
  if (random.chance(512)) {
    options.split_min = 100;
    options.split_end = random.between(100, 20'000);
  }
  if (random.chance(512)) options.detach_after = static_cast<int>(random.between(1, 4));
}

// The same, and how long its frames are.
inline void draw_options(Random& random, mplite::EngineOptions& options) {
  static const std::uint32_t frames[] = {100, 4'096, 65'536, 262'144};
  options.frame_bytes = frames[random.below(4)];
  draw_reads_and_writes(random, options);
}

// Whether connections that break are made again: by half of the ranks of a seed's world, or by all
// or none.
inline void draw_resume(std::uint64_t seed, int rank, mplite::EngineOptions& options) {
  Random random(seed ^ std::uint64_t{0x7265} << 48);
  const std::uint64_t who = random.below(4);
  options.resume = who == 0 || (who == 1 && rank % 2 == 0);
}

}  // namespace sim
