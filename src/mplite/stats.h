// The counter line of LITE_STATS.
// Called at finalize by the device and messages.cpp.
#pragma once
#include <cstddef>

#include "counters.h"

namespace mplite {

inline constexpr std::size_t kStatsBytes = 3072;  // always enough

// One line, ending in a newline: "lite-stats rank=0 controller=sigio short_msgs=… …". Returns its length. Ordinary context. Allocates: never.
std::size_t format_stats(const Counters& counters, int rank, const char* controller, char (&text)[kStatsBytes]);

}  // namespace mplite
