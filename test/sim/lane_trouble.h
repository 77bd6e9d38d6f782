// Lanes that break, of simulated ranks, while their peers' first connections stay.
#pragma once
#include <vector>

#include "fake_net.h"
#include "mplite/engine/engine.h"
#include "random.h"

namespace sim {

inline void draw_many_lanes(Random& random, mplite::EngineOptions& options) {
  options.lanes = static_cast<int>(random.between(2, 7));
  options.long_bytes = random.below(3'000);
}

// One of the connections between two ranks that are both connected, but not the one that each
// counts as its first.
inline void break_a_lane(Random& random, FakeWorld& world, int a, int b,
                         const mplite::Engine& engine_of_a, const mplite::Engine& engine_of_b) {
  const int first_of_a = engine_of_a.first_stream(b), first_of_b = engine_of_b.first_stream(a);
  if (a == b || first_of_a < 0 || first_of_b < 0) return;
  std::vector<int> lanes;
  for (const int fd : world.connected(a, b))
    if (fd != first_of_a && world.far_end(fd) != first_of_b) lanes.push_back(fd);
  if (!lanes.empty()) world.reset(lanes[random.below(lanes.size())]);
}

}  // namespace sim
