// stats_summary.h: what people and programs are told of the counters of jobs.
#include "mplite/launch/stats_summary.h"

#include "mplite/launch/stats_advice.h"
#include "mplite/observe/stats.h"
#include "printed.h"
#include "stats_jobs.h"

using namespace mplite;

namespace {

void add(StatsLines& lines, const JobStats& job, const char* settings = "") {
  for (const auto& [rank, stats] : job.seen) {
    char text[kStatsBytes];
    const std::size_t length =
        format_stats(stats.counters,
                     {rank, job.ranks, job.name.c_str(), stats.controller.c_str(), settings}, text);
    std::string why;
    ck_assert(lines.take({text, length - 1}, why) == StatsLines::Kind::kTaken);
  }
}

std::string summary(const StatsLines& lines) {
  return printed([&](std::FILE* out) { print_stats_summary(out, lines); });
}
std::string json(const StatsLines& lines) {
  return printed([&](std::FILE* out) { print_stats_summary_json(out, lines); });
}

void has(const std::string& text, const char* part) {
  ck_assert_msg(text.find(part) != std::string::npos, "no \"%s\" in\n%s", part, text.c_str());
}
void lacks(const std::string& text, const char* part) {
  ck_assert_msg(text.find(part) == std::string::npos, "\"%s\" in\n%s", part, text.c_str());
}

START_TEST(an_ordinary_job_is_summed_up_without_advice) {
  StatsLines lines;
  add(lines, ordinary_job());
  const std::string text = summary(lines);
  ck_assert_uint_eq(text.find("Job 10.0.0.1:4711: 4 ranks, controller sigio.\n"), 0);
  has(text,
      "44,400 messages with 653.8M of data: 90 % short, 9 % eager, <1 % by rendezvous, 0 % to "
      "oneself.\n");
  has(text,
      "\nMessages by protocol\n  short_msgs                     40,000          10,000      0      "
      "    10,000      0     1.00\n");
  has(text,
      "\n  unexpected_bytes_peak           97.7K           97.7K      0           97.7K      0     "
      "1.00\n");
  has(text, "\nNo advice: ");
  lacks(text, "\nAdvice\n");
  lacks(text, "No line of rank");
  lacks(text, "self_msgs");  // 0 on all ranks
  lacks(text, " jobs, ");
}
END_TEST

START_TEST(uneven_counters_are_marked_and_advice_follows) {
  JobStats job = ordinary_job();
  job.seen.at(3).counters.credit_stalls = 2000;
  StatsLines lines;
  add(lines, job, "LITE_CREDITS=1M");
  const std::string text = summary(lines);
  has(text, "4 ranks, controller sigio; LITE_CREDITS=1M.\n");
  has(text,
      "\n  credit_stalls                   2,060              20      0           2,000      3     "
      "3.88 !\n");
  has(text, "\nAdvice\n- Credit was out 2,060 times (4 % of the messages, 97 % of them on rank 3)");
  has(text, "LITE_CREDITS (now 1M)");
  lacks(text, "No advice");
}
END_TEST

START_TEST(ranks_without_a_line_are_named) {
  JobStats job = ordinary_job();
  job.ranks = 9;
  job.seen.erase(1);
  StatsLines lines;
  add(lines, job);
  has(summary(lines), "\nNo line of rank 1, 4-8: it has not reached MPI_Finalize");
  has(json(lines), "\"ranks\": 9, \"ranks_missing\": [[1, 1], [4, 8]],");
}
END_TEST

START_TEST(ranks_that_differ_in_their_settings_are_told_apart) {
  JobStats job = ordinary_job();
  JobStats other = job;
  job.seen.erase(2), job.seen.erase(3);
  other.seen.erase(0), other.seen.erase(1);
  other.seen.at(3).controller = "sync";
  StatsLines lines;
  add(lines, job);
  add(lines, other, "LITE_GRACE=off");
  has(summary(lines),
      "4 ranks, controller sigio (3 of them, rank 0 first), controller sync (1 of them, rank 3 "
      "first); defaults (2 of them, rank 0 first); LITE_GRACE=off (2 of them, rank 2 first).\n");
  has(json(lines),
      "\"settings\": [{\"value\": \"\", \"ranks\": 2, \"first_rank\": 0}, {\"value\": "
      "\"LITE_GRACE=off\", \"ranks\": 2, \"first_rank\": 2}],");
}
END_TEST

START_TEST(a_job_of_one_has_no_spread) {
  JobStats job = ordinary_job();
  job.ranks = 1;
  while (job.seen.size() > 1) job.seen.erase(std::prev(job.seen.end()));
  StatsLines lines;
  add(lines, job);
  const std::string text = summary(lines);
  has(text, "Job 10.0.0.1:4711: 1 rank, ");
  has(text, "\n  short_msgs                     10,000\n");
  lacks(text, "most/mean");
}
END_TEST

START_TEST(each_job_has_a_part) {
  JobStats job = ordinary_job();
  StatsLines lines;
  add(lines, job);
  job.name = "10.0.0.2:99";
  add(lines, job);
  const std::string text = summary(lines);
  ck_assert_uint_eq(text.find("2 jobs, by the address of rank 0. What MPI_Comm_spawn has started "),
                    0);
  has(text, "\n\nJob 10.0.0.1:4711: ");
  has(text, "\n\nJob 10.0.0.2:99: ");
}
END_TEST

START_TEST(json_has_all_counters_advice_and_complaints) {
  JobStats job = ordinary_job();
  job.seen.at(2).counters.truncated = 3;
  StatsLines lines;
  add(lines, job);
  char bad[] = "lite-stats rank=x\n";
  std::FILE* in = fmemopen(bad, sizeof bad - 1, "r");
  lines.read(in, "f\"ile");
  std::fclose(in);
  const std::string text = json(lines);
  has(text, "{\"job\": \"10.0.0.1:4711\", \"ranks\": 4, \"ranks_missing\": [],");
  has(text,
      "\"truncated\": {\"total\": 3, \"min\": 0, \"min_rank\": 0, \"max\": 3, \"max_rank\": 2, "
      "\"mean\": 0.75}");
  for (std::size_t i = 0; i < counter_count(); ++i)
    has(text, (std::string("        \"") + counter_info(i).name + "\": {\"total\": ").c_str());
  has(text,
      "{\"rule\": \"truncated\", \"counters\": [\"truncated\"], \"text\": \"3 messages, 100 % of "
      "them on rank 2, did");
  has(text, "\"bad_lines\": [\n    \"f\\\"ile:1: rank=\\\"x\\\" is no such number\"\n  ]");
}
END_TEST

}  // namespace

int main() { return run_tests("stats_summary"); }
