// Which lane of a peer takes the next frame of long data. Pure decisions; used by tx_lanes.cpp.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// The kernel holds what it has sent and is not acknowledged: up to a congestion window, which may
// be a whole message. So a frame goes to the lane that will have it out first: by what the kernel
// holds of each, and by how fast it was so far. One per peer. Gate held throughout.
class LaneShare {
 public:
  static constexpr int kMost = 16;
  // Busy time of a measurement. The kernel counts in ticks of up to 10 ms.
  static constexpr std::int64_t kMeasureUs = 100'000;
  static constexpr std::uint64_t kLeastBytes = 16 * 1024;  // or it has carried packets only
  static constexpr double kForget = 64;                    // messages

  // It is another connection.
  void forget(int lane) MPLITE_SIGNAL_SAFE { lane_[lane] = {}; }

  // What TCP says of the lane before the first frame: bytes of ours that were acknowledged, and the
  // time with something of ours under way, in all.
  void begin(int lane, std::uint64_t acknowledged, std::int64_t busy_us) MPLITE_SIGNAL_SAFE {
    lane_[lane].acknowledged = acknowledged;
    lane_[lane].busy_us = busy_us;
  }
  // The same, as everything has come. What is under way at other times are packets: their time is
  // not that of the network.
  void end(int lane, std::uint64_t acknowledged, std::int64_t busy_us) MPLITE_SIGNAL_SAFE {
    State& s = lane_[lane];
    if (acknowledged < s.acknowledged) return;
    const std::uint64_t carried = acknowledged - s.acknowledged;
    if (carried < kLeastBytes) {
      // It was too slow. Perhaps it is not any more: some time it will be tried.
      if (s.rate != 0) s.rate += (fastest() - s.rate) / kForget;
      return;
    }
    s.bytes += carried;
    s.us += busy_us - s.busy_us;
    if (s.us < kMeasureUs) return;
    const double rate = static_cast<double>(s.bytes) / static_cast<double>(s.us);
    s.rate = s.rate == 0 ? rate : (s.rate + rate) / 2;
    s.bytes = 0;
    s.us = 0;
  }

  // So many bytes of ours have their place on the lane and are not acknowledged.
  void hold(int lane, std::uint64_t bytes) MPLITE_SIGNAL_SAFE { lane_[lane].held = bytes; }
  // Bits: lanes that can take a frame of so many bytes now, and those that will be able to. `rest`:
  // what is to be sent in all. Returns one that is ready; -1: there is none, or those that are busy
  // will be through with all sooner than it with the frame. A lane that has not been measured is
  // taken for as fast as the fastest.
  int choose(unsigned ready, unsigned busy, std::uint64_t bytes,
             std::uint64_t rest) const MPLITE_SIGNAL_SAFE {
    const double most = fastest();
    int best = -1;
    double best_us = 0, busy_rate = 0;
    std::uint64_t busy_bytes = rest;
    for (int i = 0; i < kMost; ++i) {
      if (((ready | busy) >> i & 1) == 0) continue;
      const State& s = lane_[i];
      const double rate = s.rate != 0 ? s.rate : most != 0 ? most : 1;
      if ((ready >> i & 1) == 0) {
        busy_rate += rate;
        busy_bytes += s.held;
        continue;
      }
      const double us = static_cast<double>(s.held + bytes) / rate;
      if (best >= 0 && us >= best_us) continue;
      best = i;
      best_us = us;
    }
    const bool is_late = best_us * busy_rate > static_cast<double>(busy_bytes);
    return busy_rate != 0 && best >= 0 && lane_[best].rate != 0 && is_late ? -1 : best;
  }

 private:
  struct State {
    std::uint64_t acknowledged = 0;  // at begin()
    std::int64_t busy_us = 0;
    std::uint64_t bytes = 0;  // acknowledged in the measurement,
    std::int64_t us = 0;      // that takes so long already
    std::uint64_t held = 0;
    double rate = 0;  // bytes per microsecond. 0: not measured
  };
  double fastest() const MPLITE_SIGNAL_SAFE {
    double most = 0;
    for (const State& s : lane_) most = s.rate > most ? s.rate : most;
    return most;
  }

  State lane_[kMost] = {};
};

}  // namespace mplite
