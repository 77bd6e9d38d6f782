// What a job's counters advise its user to do: a table of rules, each with the counters that show
// it. Used by stats_summary.cpp. Pure: counters and settings go in, sentences come out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "mplite/launch/stats_lines.h"
#include "mplite/observe/stats.h"

namespace mplite {

// One counter of all ranks that a line has come of. The first rank of those that are equal.
struct Spread {
  std::uint64_t total = 0;  // of a peak: the highest
  std::uint64_t min = 0, max = 0;
  int min_rank = 0, max_rank = 0;
  double mean = 0;
};
Spread spread_of(const JobStats& job, std::size_t counter);  // its index, as in stats.h

// A job as rules see it.
struct JobTotals {
  explicit JobTotals(const JobStats& job);
  const JobStats& job;
  Counters counters;  // sums; of a peak the highest

  std::uint64_t messages() const;   // sent, active messages not counted
  std::uint64_t transfers() const;  // these too, and puts and gets
};

struct AdviceRule {
  const char* name;
  // The counters without which it never applies: each of them if that one alone is 0 on all ranks.
  std::uint64_t Counters::*shown_by[2];  // null: one only
  bool (*applies)(const JobTotals& job);
  std::string (*text)(const JobTotals& job);  // sentences: what is so, why that matters, the cure
};
std::size_t advice_rule_count();
const AdviceRule& advice_rule(std::size_t index);

}  // namespace mplite
