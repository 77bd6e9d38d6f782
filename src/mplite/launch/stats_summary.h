// What the counters of jobs add up to: totals, the spread over the ranks, advice. Used by lite-info
// --stats. Ordinary context.
#pragma once
#include <cstdio>

#include "mplite/launch/stats_lines.h"

namespace mplite {

// For people, a part per job. Counters that are 0 on all ranks are left out.
void print_stats_summary(std::FILE* out, const StatsLines& lines);

// For programs: all counters, and the complaints as well.
void print_stats_summary_json(std::FILE* out, const StatsLines& lines);

}  // namespace mplite
