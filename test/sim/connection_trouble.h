// Connections that break, of simulated ranks that are to go on all the same: lanes while their
// peers' first connections stay, or any.
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
  if (lanes.empty()) return;
  const int fd = lanes[random.below(lanes.size())];
  if (random.chance(300))
    world.end_both(fd);
  else
    world.reset(fd);
}

inline void always_resume(mplite::EngineOptions& options) {
  options.resume = true;
  options.send_copy_max = 64u << 20;  // or else there are gaps
  options.connect_timeout_ns = 1'000'000'000'000;
  options.stream.keepalive_idle_s = 2;
  options.stream.keepalive_interval_s = 1;
}

// One of the connections between two ranks, or all, break, or one falls silent.
inline void break_some(Random& random, FakeWorld& world, int a, int b) {
  if (a == b) return;
  if (random.chance(300)) return world.cut(a, b);
  const std::vector<int> all = world.connected(a, b);
  if (all.empty()) return;
  const int fd = all[random.below(all.size())];
  if (random.chance(100))
    world.mute_socket(fd);
  else
    world.reset(fd);
}

}  // namespace sim
