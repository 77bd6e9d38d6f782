// The counters by name: for the counter line of LITE_STATS and for tools.
// Called at finalize by the device and messages.cpp, and by ch_lite/tools.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/observe/counters.h"

namespace mplite {

inline constexpr std::size_t kStatsBytes = 3328;  // always enough
inline constexpr std::size_t kStatsSettingsMax = 384;
inline constexpr char kStatsWord[] = "lite-stats";  // what the line begins with

// Whose counters a line has.
struct StatsHead {
  int rank = 0, ranks = 1;
  const char* job = "";         // a word that all ranks of a job, and of this job only, have
  const char* controller = "";  // a word
  const char* settings = "";  // NAME=VALUE, separated by spaces; up to kStatsSettingsMax are taken
};

// One line, ending in a newline: "lite-stats rank=0 ranks=2 job=10.0.0.2:4711 controller=sigio
// short_msgs=… … LITE_CREDITS=1M". Returns its length. Ordinary context. Allocates: never.
std::size_t format_stats(const Counters& counters, const StatsHead& head,
                         char (&text)[kStatsBytes]);

// What a counter is about; in the order in which people read them.
enum class CounterGroup : std::uint8_t {
  kMessages,
  kActive,
  kOneSided,
  kUnexpected,
  kCredit,
  kSignals,
  kThreads,
  kCalls,
  kConnections,
  kStream,
  kTrouble,  // the last one
};
inline constexpr std::size_t kCounterGroups = static_cast<std::size_t>(CounterGroup::kTrouble) + 1;
struct CounterGroupInfo {
  const char* title;
  const char* meaning;  // a sentence
};
const CounterGroupInfo& counter_group(CounterGroup group);

// One counter, in the order of that line. Texts are static.
struct CounterInfo {
  const char* name;
  CounterGroup group;
  const char* unit;                 // in the plural
  const char* meaning;              // a sentence
  std::uint64_t Counters::*member;  // nullptr: the sum of the system calls
  bool is_peak = false;             // the highest of something so far, not a sum
};
std::size_t counter_count();
const CounterInfo& counter_info(std::size_t index);
std::uint64_t counter_value(std::size_t index, const Counters& counters);

}  // namespace mplite
