// Jobs for the tests of what lite-info --stats says.
#pragma once
#include "mplite/config/knob_text.h"
#include "mplite/config/knobs.h"
#include "mplite/launch/stats_lines.h"
#include "run_tests.h"

// Four ranks whose counters are nothing to talk about: each sends 11,100 messages, 172 MB, and
// receives as much.
inline mplite::JobStats ordinary_job() {
  mplite::JobStats job{"10.0.0.1:4711", 4, {}};
  mplite::RankStats one;
  one.controller = "sigio";
  one.knobs = mplite::default_knobs();
  mplite::Counters& c = one.counters;
  c.short_msgs = 10'000, c.short_bytes = 1'000'000;
  c.eager_msgs = 1000, c.eager_bytes = 1000 * 65'536;
  c.rndv_msgs = 100, c.rndv_bytes = 100 * 1'048'576;
  c.unexpected = 500, c.unexpected_bytes = 50'000, c.unexpected_bytes_peak = 100'000;
  c.signals = 1500, c.signals_turned_away = 10, c.backstops = 20;
  c.reads = 30'000, c.reads_empty = 9000, c.writes = 20'000, c.writes_full = 100;
  c.connections = 3, c.ties = 1;
  c.frames_in = c.frames_out = 25'000;
  c.bytes_in = c.bytes_out = 172'000'000;
  c.gathered = 2500, c.credit_stalls = 20, c.parked = 5, c.no_memory_in_handler = 5;
  for (int rank = 0; rank < job.ranks; ++rank) job.seen.emplace(rank, one);
  return job;
}

inline void set_everywhere(mplite::JobStats& job, const char* variable, const char* value) {
  int distance = 0;
  char error[512];
  const std::size_t index = mplite::nearest_knob(variable, distance);
  for (auto& [rank, stats] : job.seen)
    ck_assert_msg(mplite::set_knob(index, value, stats.knobs, error, sizeof error), "%s", error);
}
