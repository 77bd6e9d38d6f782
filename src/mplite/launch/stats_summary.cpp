// What the counters of jobs add up to: totals, the spread over the ranks, advice.
#include "mplite/launch/stats_summary.h"

#include <cinttypes>
#include <cstring>
#include <utility>

#include "mplite/config/knob_text.h"
#include "mplite/launch/figures.h"
#include "mplite/launch/json.h"
#include "mplite/launch/stats_advice.h"
#include "mplite/observe/stats.h"

namespace mplite {
namespace {

// A rank that has this many times the mean is marked.
constexpr double kUneven = 2;

// Texts that ranks have, each with the first that has it and how many do; in the order of ranks.
struct Shared {
  std::string text;
  int first;
  std::size_t ranks;
};
template <typename Text>
std::vector<Shared> shared_by(const JobStats& job, Text text_of) {
  std::vector<Shared> all;
  for (const auto& [rank, stats] : job.seen) {
    const std::string text = text_of(stats);
    std::size_t at = 0;
    while (at < all.size() && all[at].text != text) ++at;
    if (at == all.size()) all.push_back({text, rank, 0});
    ++all[at].ranks;
  }
  return all;
}

std::string settings_of(const RankStats& stats) {
  char text[kStatsSettingsMax];
  return format_changed_knobs(stats.knobs, text, sizeof text);
}

// Ranks without a line: first and last of each run.
std::vector<std::pair<int, int>> missing_of(const JobStats& job) {
  std::vector<std::pair<int, int>> runs;
  int next = 0;
  const auto gap = [&](int until) {
    if (next < until) runs.emplace_back(next, until - 1);
  };
  for (const auto& [rank, stats] : job.seen) {
    gap(rank);
    next = rank + 1;
  }
  gap(job.ranks);
  return runs;
}

void print_head(std::FILE* out, const JobStats& job) {
  std::fprintf(out, "Job %s: %d %s", job.name.c_str(), job.ranks,
               job.ranks == 1 ? "rank" : "ranks");
  const auto told = [&](const char* what, const std::vector<Shared>& all) {
    for (const Shared& one : all) {
      if (one.text.empty() && all.size() == 1) continue;
      std::fprintf(out, "%s%s", what, one.text.empty() ? "defaults" : one.text.c_str());
      if (all.size() > 1) std::fprintf(out, " (%zu of them, rank %d first)", one.ranks, one.first);
    }
  };
  told(", controller ", shared_by(job, [](const RankStats& r) { return r.controller; }));
  told("; ", shared_by(job, settings_of));
  std::fputs(".\n", out);
  const auto missing = missing_of(job);
  if (missing.empty()) return;
  std::fputs("No line of rank ", out);
  constexpr std::size_t kMost = 8;
  for (std::size_t i = 0; i < missing.size() && i < kMost; ++i) {
    std::fprintf(out, "%s%d", i > 0 ? ", " : "", missing[i].first);
    if (missing[i].second > missing[i].first) std::fprintf(out, "-%d", missing[i].second);
  }
  std::fprintf(out,
               "%s: it has not reached MPI_Finalize, or its standard error is not in this output. "
               "What follows is of the others, so shares of messages may be off.\n",
               missing.size() > kMost ? " and others" : "");
}

void print_messages(std::FILE* out, const JobTotals& t) {
  const std::uint64_t all = t.messages();
  if (all == 0) return;
  const Counters& c = t.counters;
  std::fprintf(
      out, "%s messages with %s of data: %s short, %s eager, %s by rendezvous, %s to oneself.\n",
      grouped(all).c_str(),
      byte_text(c.short_bytes + c.eager_bytes + c.rndv_bytes + c.self_bytes).c_str(),
      share(c.short_msgs, all).c_str(), share(c.eager_msgs, all).c_str(),
      share(c.rndv_msgs, all).c_str(), share(c.self_msgs, all).c_str());
}

void print_counter(std::FILE* out, const CounterInfo& info, const Spread& spread,
                   std::size_t ranks) {
  const bool bytes = std::strcmp(info.unit, "bytes") == 0;
  const auto text = [&](std::uint64_t value) { return bytes ? byte_text(value) : grouped(value); };
  std::fprintf(out, "  %-21s %15s", info.name, text(spread.total).c_str());
  if (ranks > 1) {
    const double uneven = static_cast<double>(spread.max) / spread.mean;
    std::fprintf(out, " %15s %6d %15s %6d %8.2f%s", text(spread.min).c_str(), spread.min_rank,
                 text(spread.max).c_str(), spread.max_rank, uneven, uneven >= kUneven ? " !" : "");
  }
  std::fputc('\n', out);
}

void print_counters(std::FILE* out, const JobStats& job) {
  std::fprintf(out, "\n  %-21s %15s", "counter", "total");
  if (job.seen.size() > 1)
    std::fprintf(out, " %15s %6s %15s %6s %8s", "least", "rank", "most", "rank", "most/mean");
  std::fputc('\n', out);
  for (std::size_t g = 0; g < kCounterGroups; ++g) {
    const CounterGroup group = static_cast<CounterGroup>(g);
    bool titled = false;
    for (std::size_t i = 0; i < counter_count(); ++i) {
      const CounterInfo& info = counter_info(i);
      const Spread spread = spread_of(job, i);
      if (info.group != group || spread.max == 0) continue;
      if (!titled) std::fprintf(out, "%s\n", counter_group(group).title);
      titled = true;
      print_counter(out, info, spread, job.seen.size());
    }
  }
}

void print_advice(std::FILE* out, const JobTotals& t) {
  bool any = false;
  for (std::size_t i = 0; i < advice_rule_count(); ++i) {
    const AdviceRule& rule = advice_rule(i);
    if (!rule.applies(t)) continue;
    if (!any) std::fputs("\nAdvice\n", out);
    any = true;
    std::fprintf(out, "- %s\n", rule.text(t).c_str());
  }
  if (!any) std::fputs("\nNo advice: no counter is beyond what is usual.\n", out);
}

void put_counter_json(std::FILE* out, const CounterInfo& info, const Spread& spread) {
  std::fputs("        ", out);
  put_json(out, info.name);
  std::fprintf(out,
               ": {\"total\": %" PRIu64 ", \"min\": %" PRIu64
               ", \"min_rank\": %d, \"max\": %" PRIu64 ", \"max_rank\": %d, \"mean\": %.6g}",
               spread.total, spread.min, spread.min_rank, spread.max, spread.max_rank, spread.mean);
}

void put_advice_json(std::FILE* out, const JobTotals& t) {
  const char* between = "\n";
  for (std::size_t i = 0; i < advice_rule_count(); ++i) {
    const AdviceRule& rule = advice_rule(i);
    if (!rule.applies(t)) continue;
    std::fprintf(out, "%s        {", between);
    put_json_member(out, "rule", rule.name, ", \"counters\": [");
    const char* comma = "";
    for (std::size_t c = 0; c < counter_count(); ++c)
      for (const auto member : rule.shown_by)
        if (member != nullptr && counter_info(c).member == member) {
          std::fputs(comma, out);
          put_json(out, counter_info(c).name);
          comma = ", ";
        }
    std::fputs("], ", out);
    put_json_member(out, "text", rule.text(t).c_str(), "}");
    between = ",\n";
  }
}

void put_job_json(std::FILE* out, const JobStats& job) {
  std::fputs("    {", out);
  put_json_member(out, "job", job.name.c_str(), ", ");
  std::fprintf(out, "\"ranks\": %d, \"ranks_missing\": [", job.ranks);
  const char* comma = "";
  for (const auto& [first, last] : missing_of(job)) {
    std::fprintf(out, "%s[%d, %d]", comma, first, last);
    comma = ", ";
  }
  const auto all = [&](const char* name, const std::vector<Shared>& values) {
    std::fprintf(out, "],\n      \"%s\": [", name);
    comma = "";
    for (const Shared& one : values) {
      std::fprintf(out, "%s{", comma);
      put_json_member(out, "value", one.text.c_str(), ", ");
      std::fprintf(out, "\"ranks\": %zu, \"first_rank\": %d}", one.ranks, one.first);
      comma = ", ";
    }
  };
  all("controllers", shared_by(job, [](const RankStats& r) { return r.controller; }));
  all("settings", shared_by(job, settings_of));
  std::fputs("],\n      \"counters\": {\n", out);
  for (std::size_t i = 0; i < counter_count(); ++i) {
    put_counter_json(out, counter_info(i), spread_of(job, i));
    std::fputs(i + 1 < counter_count() ? ",\n" : "\n", out);
  }
  std::fputs("      },\n      \"advice\": [", out);
  put_advice_json(out, JobTotals(job));
  std::fputs("\n      ]}", out);
}

}  // namespace

void print_stats_summary(std::FILE* out, const StatsLines& lines) {
  if (lines.jobs().size() > 1)
    std::fprintf(out,
                 "%zu jobs, by the address of rank 0. What MPI_Comm_spawn has started is a job of "
                 "its own.\n\n",
                 lines.jobs().size());
  bool first = true;
  for (const JobStats& job : lines.jobs()) {
    if (!first) std::fputc('\n', out);
    first = false;
    const JobTotals totals(job);
    print_head(out, job);
    print_messages(out, totals);
    print_counters(out, job);
    print_advice(out, totals);
  }
}

void print_stats_summary_json(std::FILE* out, const StatsLines& lines) {
  std::fputs("{\n  \"jobs\": [", out);
  const char* between = "\n";
  for (const JobStats& job : lines.jobs()) {
    std::fputs(between, out);
    put_job_json(out, job);
    between = ",\n";
  }
  std::fputs("\n  ],\n  \"bad_lines\": [", out);
  between = "\n    ";
  for (const std::string& complaint : lines.complaints()) {
    std::fputs(between, out);
    put_json(out, complaint.c_str());
    between = ",\n    ";
  }
  std::fputs("\n  ]\n}\n", out);
}

}  // namespace mplite
