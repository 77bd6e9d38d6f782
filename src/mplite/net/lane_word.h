// What one rank says to another of a lane, in the id of a frame of kind kLane: how many frames it
// has received there, and whether the lane has ended. Used by lanes.cpp.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/net/hello.h"

namespace mplite {

struct LaneWord {
  int lane = 0;  // 1 to kLanesMax - 1
  bool ended = false;
  std::uint64_t frames = 0;  // less than 2^56, since the lane came up
};

inline std::uint64_t encode_lane_word(const LaneWord& word) MPLITE_SIGNAL_SAFE {
  return static_cast<std::uint64_t>(word.lane) | (word.ended ? 0x80u : 0u) | word.frames << 8;
}
// False: no such lane.
inline bool decode_lane_word(std::uint64_t id, LaneWord& word) MPLITE_SIGNAL_SAFE {
  word = {static_cast<int>(id & 0x7f), (id & 0x80) != 0, id >> 8};
  return word.lane > 0 && word.lane < kLanesMax;
}

}  // namespace mplite
