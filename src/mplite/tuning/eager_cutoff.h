// LITE_EAGER_MAX=auto: how long a message may be that is sent without asking.
// Used by core/cutoffs.cpp, boot.cpp and, where there is one cutoff for all peers,
// channel_host.cpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// What the handler has a block for (blocks.h): a longer eager message that no receive waits for
// holds up its connection. A late receive of up to this length costs a copy; by rendezvous it would
// cost the transfer (scripts/compare --patterns late).
inline constexpr std::uint64_t kEagerCutoff = 256 * 1024;
// To a peer whose receives are there in time, so that nothing is copied. Above it a rendezvous with
// its fragment is as fast (1.5 and 2 MB: 2 % slower and faster). At most half of the credit window,
// so that a second one can follow.
inline constexpr std::uint64_t kEagerCutoffInTime = 1024 * 1024;
inline std::uint64_t eager_cutoff_in_time(std::uint64_t window) MPLITE_SIGNAL_SAFE {
  return std::min(kEagerCutoffInTime, window / 2);
}

}  // namespace mplite
