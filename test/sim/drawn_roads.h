// The addresses that simulated ranks have, each on a network of its own, of which some lead nowhere
// and some take their time.
#pragma once
#include <cerrno>
#include <cstdint>
#include <vector>

#include "fake_net.h"
#include "mplite/base/address.h"
#include "mplite/engine/engine_options.h"
#include "random.h"

namespace sim {

enum class BrokenRoads {
  kFail,    // by an error
  kSilent,  // or never answer: that takes who polls and looks at the clock
};

class Roads {
 public:
  // By a generator of their own, so that a seed's world stays what it was. One address of each rank
  // leads to it; `first`: that is the first one.
  void draw(std::uint64_t seed, FakeWorld& world, int ranks, BrokenRoads broken,
            bool first = false) {
    Random random(seed * 2 + 1);
    for (int i = 0; i < ranks; ++i) {
      const int count = static_cast<int>(random.chance(512) ? 1 : random.between(2, 4));
      counts_.push_back(count);
      const auto lot =
          static_cast<int>(first ? 0 : random.below(static_cast<std::uint64_t>(count)));
      for (int k = 0; k < count; ++k) {
        if (random.chance(256))
          world.slow_down(i, k, static_cast<std::int64_t>(random.below(1'000'000'000)));
        if (k == lot || random.chance(512)) continue;
        static constexpr int kErrors[] = {EHOSTUNREACH, ECONNREFUSED, -1};
        world.set_road(i, k, kErrors[random.below(broken == BrokenRoads::kFail ? 2 : 3)]);
        are_broken_ = true;
      }
    }
  }
  // Of at least one rank.
  bool are_broken() const { return are_broken_; }

  void publish(int rank, mplite::PeerAddress& peer) const {
    peer.address = FakeWorld::address(rank);
    for (int k = 1; k < count(rank); ++k)
      peer.more[k - 1] = mplite::compact(FakeWorld::address(rank, k));
  }
  void listen(int rank, FakeWorld& world, mplite::EngineOptions& options) const {
    for (int k = 0; k < count(rank); ++k)
      options.listeners[static_cast<std::size_t>(k)] = world.make_listener(rank, k);
  }

 private:
  int count(int rank) const { return counts_[static_cast<std::size_t>(rank)]; }
  std::vector<int> counts_;
  bool are_broken_ = false;
};

}  // namespace sim
