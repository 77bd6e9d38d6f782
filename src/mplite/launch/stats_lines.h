// The lines of LITE_STATS (stats.h) in the output of jobs, read back: ranks by job. Lines of other
// kinds are passed over; what an mpiexec puts before a line (-l), too. Used by lite-info --stats.
#pragma once
#include <cstdint>
#include <cstdio>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mplite/config/knobs.h"
#include "mplite/observe/counters.h"

namespace mplite {

inline constexpr int kStatsRanksMax = 1 << 24;

struct RankStats {
  std::string controller;
  Counters counters;
  Knobs knobs;  // the settings of the line over the defaults
};

struct JobStats {
  std::string name;  // job= of its lines
  int ranks = 0;
  std::map<int, RankStats> seen;  // by rank, one at least
};

class StatsLines {
 public:
  enum class Kind { kOther, kTaken, kBad };

  // One line without its end. kBad: `why` has a sentence, and nothing has been taken.
  Kind take(std::string_view line, std::string& why);

  // All of `in`. Bad lines are told as "NAME:NUMBER: sentence" in complaints(). Returns 0, or the
  // errno of reading.
  int read(std::FILE* in, const char* name);

  // In the order of their first lines. A rank that a job has already begins another one of that
  // name: the output of a job given twice, or a port used again.
  const std::list<JobStats>& jobs() const { return jobs_; }
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  JobStats& job_of(const std::string& name, int ranks, int rank);

  std::list<JobStats> jobs_;
  std::vector<std::string> complaints_;
};

}  // namespace mplite
