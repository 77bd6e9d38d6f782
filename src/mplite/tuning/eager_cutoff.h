// LITE_EAGER_MAX=auto: how long a message may be that is sent without asking.
// Used by core/cutoffs.cpp, boot.cpp and, where there is one cutoff for all peers,
// channel_host.cpp. Ordinary context, where nothing else is said.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// The cutoff for a peer, bytes. An eager message that no receive waits for is copied once more; a
// message by rendezvous waits for a round trip and for both ends to act on it: up to the length at
// which the two cost the same, eager is the better bet. At most half of the credit window, so that
// a second one can follow, and what the handler has a block for (blocks.h): an eager message
// without one holds up its connection.
std::uint64_t eager_cutoff(std::int64_t round_trip_ns, std::uint64_t copy_ns_per_mb,
                           std::uint64_t window);
// The same for a peer whose receives are there in time, so that nothing is copied. Above it a
// rendezvous with its fragment is as fast (1.5 and 2 MB: 2 % slower and faster).
std::uint64_t eager_cutoff_in_time(std::uint64_t window) MPLITE_SIGNAL_SAFE;
// Below the least one a rendezvous brings nothing with its request (kFragmentBytes).
inline constexpr std::uint64_t kEagerCutoffMin = 64 * 1024, kEagerCutoffMax = 256 * 1024,
                               kEagerCutoffInTime = 1024 * 1024;

}  // namespace mplite
