// The counters by name: for the counter line of LITE_STATS and for tools.
// Called at finalize by the device and messages.cpp, and by ch_lite/tools.cpp.
#pragma once
#include <cstddef>

#include "mplite/observe/counters.h"

namespace mplite {

inline constexpr std::size_t kStatsBytes = 3072;  // always enough

// One line, ending in a newline: "lite-stats rank=0 controller=sigio short_msgs=… …". Returns its
// length. Ordinary context. Allocates: never.
std::size_t format_stats(const Counters& counters, int rank, const char* controller,
                         char (&text)[kStatsBytes]);

// One counter, in the order of that line. Texts are static.
struct CounterInfo {
  const char* name;
  const char* meaning;              // a sentence, with the unit if it is not a number of events
  std::uint64_t Counters::*member;  // nullptr: the sum of the system calls
  bool is_peak = false;             // the highest of something so far, not a sum
};
std::size_t counter_count();
const CounterInfo& counter_info(std::size_t index);
std::uint64_t counter_value(std::size_t index, const Counters& counters);

}  // namespace mplite
