// The simulation's randomness: one seed, one sequence, the same on every machine.
// Used by fake_net.cpp and the simulated workloads.
#pragma once
#include <cstdint>

namespace sim {

// xorshift64*; good enough to choose faults, and nothing else depends on it.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {
    if (state_ == 0) state_ = 1;
    for (int i = 0; i < 4; ++i) next();
  }
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }
  // 0 … bound-1; bound 0 gives 0.
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  // True with probability of `per_1024` in 1024.
  bool chance(int per_1024) { return per_1024 > 0 && static_cast<int>(next() >> 54) < per_1024; }
  // Mostly small, sometimes large, edges more often than luck would have it: what lengths look like
  // that break code.
  std::uint64_t length(std::uint64_t max) {
    switch (below(8)) {
      case 0: return 0;
      case 1: return max;
      case 2: return below(max + 1);
      case 3: return below(max / 8 + 1);
      default: {
        std::uint64_t scale = 1;
        while (scale < max && chance(800)) scale *= 2;
        const std::uint64_t n = scale + below(3) - 1;
        return n > max ? max : n;
      }
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace sim
