// The output of a job, with lines of counters in it or what looks like some: each is taken or told,
// and what has been taken can be summed up.
#include "mplite/launch/stats_lines.h"

#include "mplite/launch/stats_advice.h"
#include "mplite/launch/stats_summary.h"
#include "mplite/observe/stats.h"

#include "fuzz.h"

using namespace mplite;
using fuzz::check;

std::vector<fuzz::Seed> fuzz_seeds() {
  fuzz::Seed job, odd;
  for (int rank = 0; rank < 2; ++rank) {
    Counters counters;
    counters.short_msgs = counters.unexpected = counters.signals = 5000;
    counters.bytes_in = UINT64_MAX;
    char text[kStatsBytes];
    format_stats(counters, {rank, 2, "10.0.0.1:4711", "sigio", "LITE_CREDITS=1M LITE_GRACE=off"},
                 text);
    fuzz::put(job, text);
  }
  fuzz::put(odd,
            "[1] lite-stats rank=0 ranks=1 job=x controller=sync short_msgs=\nlite-stats rank=");
  fuzz::Seed control;
  fuzz::put(control, "lite-stats rank=0 ranks=1 job=x controller=sync LITE_CREDITS=\x01\x7f");
  return {job, odd, control};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  StatsLines lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t jobs = lines.jobs().size();
    std::string why;
    const auto kind = lines.take({text.data() + at, end - at}, why);
    check((kind == StatsLines::Kind::kBad) == !why.empty());
    check(kind == StatsLines::Kind::kTaken || lines.jobs().size() == jobs);
    check(why.size() < 1024);
    for (const char c : why) check(static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
    at = end + 1;
  }
  for (const JobStats& job : lines.jobs()) {
    check(!job.seen.empty() && job.seen.begin()->first >= 0 &&
          job.seen.rbegin()->first < job.ranks);
    const JobTotals totals(job);
    for (std::size_t i = 0; i < advice_rule_count(); ++i)
      if (advice_rule(i).applies(totals)) check(!advice_rule(i).text(totals).empty());
  }
  char* printed = nullptr;
  std::size_t length = 0;
  std::FILE* out = open_memstream(&printed, &length);
  print_stats_summary(out, lines);
  print_stats_summary_json(out, lines);
  std::fclose(out);
  std::free(printed);
  return 0;
}
