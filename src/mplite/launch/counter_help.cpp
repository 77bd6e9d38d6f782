// What the counters of LITE_STATS mean, from their table (stats.h).
#include "mplite/launch/counter_help.h"

#include "mplite/launch/json.h"
#include "mplite/observe/stats.h"

namespace mplite {

void print_counter_help(std::FILE* out) {
  std::fprintf(
      out,
      "With LITE_STATS=1 each rank prints a line at MPI_Finalize, on standard error:\n\n"
      "  %s rank=RANK ranks=RANKS job=JOB controller=CONTROLLER COUNTER=VALUE… LITE_NAME=VALUE…\n\n"
      "JOB is the address that rank 0 listens on: all ranks of a job have the same, and another "
      "job has another.\n"
      "The LITE_* variables are those that differ from their defaults, paths left out.\n"
      "Messages that MPICH carries through shared memory, inside a host, are not counted.\n"
      "MPI_T has each counter as the performance variable lite_COUNTER, with its value so far.\n"
      "lite-info --stats adds up the lines of a job and says what stands out.\n",
      kStatsWord);
  for (std::size_t g = 0; g < kCounterGroups; ++g) {
    const CounterGroupInfo& group = counter_group(static_cast<CounterGroup>(g));
    std::fprintf(out, "\n%s. %s\n", group.title, group.meaning);
    for (std::size_t i = 0; i < counter_count(); ++i) {
      const CounterInfo& info = counter_info(i);
      if (static_cast<std::size_t>(info.group) == g)
        std::fprintf(out, "  %-21s  %-11s  %s\n", info.name, info.unit, info.meaning);
    }
  }
}

void print_counter_help_json(std::FILE* out) {
  std::fputs("{\n  \"groups\": [\n", out);
  for (std::size_t g = 0; g < kCounterGroups; ++g) {
    const CounterGroupInfo& group = counter_group(static_cast<CounterGroup>(g));
    std::fputs("    {", out);
    put_json_member(out, "title", group.title, ", ");
    put_json_member(out, "meaning", group.meaning, g + 1 < kCounterGroups ? "},\n" : "}\n");
  }
  std::fputs("  ],\n  \"counters\": [\n", out);
  for (std::size_t i = 0; i < counter_count(); ++i) {
    const CounterInfo& info = counter_info(i);
    std::fputs("    {", out);
    put_json_member(out, "name", info.name, ", ");
    put_json_member(out, "group", counter_group(info.group).title, ", ");
    put_json_member(out, "unit", info.unit, ", ");
    put_json_member(out, "kind", info.is_peak ? "peak" : "sum", ", ");
    put_json_member(out, "meaning", info.meaning, i + 1 < counter_count() ? "},\n" : "}\n");
  }
  std::fputs("  ]\n}\n", out);
}

}  // namespace mplite
