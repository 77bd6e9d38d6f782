// stats_advice.h: each rule by a job just beyond its threshold and one just before it.
#include "mplite/launch/stats_advice.h"

#include <cstring>

#include "stats_jobs.h"

using namespace mplite;

namespace {

struct Row {
  const char* rule;
  void (*beyond)(JobStats& job);  // makes it apply to the ordinary job
  void (*before)(JobStats& job);  // behind `beyond`: makes it not apply
  const char* text;               // a part of what it says of `beyond`
};

Counters& of(JobStats& job, int rank) { return job.seen.at(rank).counters; }

const Row kRows[] = {
    {"unexpected",
     [](JobStats& job) {
       for (auto& [rank, stats] : job.seen) stats.counters.unexpected = 1110;
     },
     [](JobStats& job) { --of(job, 2).unexpected; },
     "10 % of the messages (4,440) were unexpected"},
    {"credit", [](JobStats& job) { of(job, 3).credit_stalls = 444 - 60; },
     [](JobStats& job) { --of(job, 3).credit_stalls; },
     "Credit was out 444 times (1 % of the messages, 86 % of them on rank 3), and the message "
     "waited for its receiver. Raise LITE_CREDITS (now 4M)"},
    {"unexpected_memory", [](JobStats& job) { of(job, 2).unexpected_bytes_peak = 512 << 20; },
     [](JobStats& job) { --of(job, 2).unexpected_bytes_peak; },
     "Rank 2 held 512M of unexpected messages at a time, of the 1G that LITE_UNEXPECTED_MAX "
     "allows"},
    {"memory_in_handler", [](JobStats& job) { of(job, 0).no_memory_in_handler = 444 - 15; },
     [](JobStats& job) { --of(job, 0).no_memory_in_handler; }, "no buffer ready 444 times"},
    {"parked", [](JobStats& job) { of(job, 1).parked = 1000 - 15; },
     [](JobStats& job) { --of(job, 1).parked; },
     "1,000 frames, 98 % of them on rank 1, had to wait"},
    {"no_grace",
     [](JobStats& job) {
       set_everywhere(job, "LITE_GRACE", "off");
       for (auto& [rank, stats] : job.seen) stats.counters.signals = 5550;
     },
     [](JobStats& job) { --of(job, 0).signals; }, "22,200 signals interrupted the program"},
    {"no_low_water",
     [](JobStats& job) {
       set_everywhere(job, "LITE_LOW_WATER", "0");
       for (auto& [rank, stats] : job.seen) stats.counters.signals = 1312;  // 656 MB
     },
     [](JobStats& job) { --of(job, 0).signals; }, "5,248 signals for 656.1M received"},
    {"signals", [](JobStats& job) { of(job, 1).signals = 2 * 44'400 + 8 * 656 + 1 - 4500; },
     [](JobStats& job) { --of(job, 1).signals; },
     "94,049 signals, 95 % of them on rank 1, for 44,400 messages"},
    {"backstops",
     [](JobStats& job) {
       for (auto& [rank, stats] : job.seen) stats.counters.backstops = 1110;
     },
     [](JobStats& job) { --of(job, 0).backstops; }, "stayed away from MPI 4,440 times"},
    {"gathered_late", [](JobStats& job) { of(job, 0).gathered_late = 500; },
     [](JobStats& job) { --of(job, 0).gathered_late; }, "waited for others 500 times"},
    {"connections",
     [](JobStats& job) {
       for (auto& [rank, stats] : job.seen)
         stats.counters.connections = 16, stats.counters.frames_out = 319;
     },
     [](JobStats& job) { of(job, 0).frames_out += 4; },
     "Each end of a connection sent 19 frames on average, over 16 connections per rank"},
    {"eager_max",
     [](JobStats& job) {
       set_everywhere(job, "LITE_EAGER_MAX", "32K");
       for (auto& [rank, stats] : job.seen) {
         Counters& c = stats.counters;
         c.eager_msgs = 0, c.short_msgs = 9880, c.rndv_msgs = 1120, c.rndv_bytes = 1120 * 65'536;
       }
     },
     [](JobStats& job) {
       // these went by rendezvous for want of credit
       for (auto& [rank, stats] : job.seen) stats.counters.credit_stalls = 40;
     },
     "4,480 messages of 64K on average went by rendezvous, which asks the receiver first. With "
     "LITE_EAGER_MAX=auto (now 32K)"},
    {"socket_buffer",
     [](JobStats& job) {
       set_everywhere(job, "LITE_SOCKBUF", "64K");
       for (auto& [rank, stats] : job.seen) stats.counters.writes_full = 2000;
     },
     [](JobStats& job) { --of(job, 0).writes_full; }, "at 10 % of the send calls"},
    {"one_receiver", [](JobStats& job) { of(job, 2).bytes_in *= 3; },
     [](JobStats& job) { --of(job, 2).bytes_in; }, "Rank 2 received 50 % of all bytes"},
    {"one_sender", [](JobStats& job) { of(job, 1).bytes_out *= 3; },
     [](JobStats& job) { --of(job, 1).bytes_out; }, "Rank 1 sent 50 % of all bytes"},
    {"resent", [](JobStats& job) { of(job, 1).resent = 476; },
     [](JobStats& job) { --of(job, 1).resent; },
     "TCP had to send 476 segments again, 100 % of them on rank 1, for 656.1M sent"},
    {"truncated", [](JobStats& job) { of(job, 1).truncated = 1; },
     [](JobStats& job) { of(job, 1).truncated = 0; },
     "1 message, 100 % of them on rank 1, did not fit the receive"},
    {"refused", [](JobStats& job) { of(job, 0).connections_refused = 7; },
     [](JobStats& job) { of(job, 0).connections_refused = 0; }, "LITE_PORT_RANGE (now any)"},
};

const AdviceRule& rule_named(const char* name) {
  for (std::size_t i = 0; i < advice_rule_count(); ++i)
    if (std::strcmp(advice_rule(i).name, name) == 0) return advice_rule(i);
  ck_abort_msg("no rule %s", name);
}

bool applies(const char* name, const JobStats& job) {
  return rule_named(name).applies(JobTotals(job));
}

START_TEST(each_rule_applies_from_its_threshold_on) {
  for (const Row& row : kRows) {
    JobStats job = ordinary_job();
    ck_assert_msg(!applies(row.rule, job), "%s: an ordinary job", row.rule);
    row.beyond(job);
    ck_assert_msg(applies(row.rule, job), "%s: does not apply", row.rule);
    const std::string text = rule_named(row.rule).text(JobTotals(job));
    ck_assert_msg(text.find(row.text) != std::string::npos, "%s: %s", row.rule, text.c_str());
    ck_assert_msg(text.back() == '.', "%s: %s", row.rule, text.c_str());
    row.before(job);
    ck_assert_msg(!applies(row.rule, job), "%s: applies before its threshold", row.rule);
  }
}
END_TEST

START_TEST(every_rule_has_a_row) {
  ck_assert_uint_eq(advice_rule_count(), std::size(kRows));
  for (std::size_t i = 0; i < advice_rule_count(); ++i)
    ck_assert_str_eq(advice_rule(i).name, kRows[i].rule);
}
END_TEST

START_TEST(no_advice_without_a_counter_that_shows_it) {
  for (const Row& row : kRows) {
    ck_assert_msg(rule_named(row.rule).shown_by[0] != nullptr, "%s", row.rule);
    for (const auto member : rule_named(row.rule).shown_by) {
      if (member == nullptr) continue;
      JobStats job = ordinary_job();
      row.beyond(job);
      for (auto& [rank, stats] : job.seen) stats.counters.*member = 0;
      ck_assert_msg(!applies(row.rule, job), "%s", row.rule);
    }
  }
}
END_TEST

START_TEST(a_short_job_and_one_without_messages_get_no_advice_on_shares) {
  JobStats job{"job", 1, {}};
  job.seen[0].knobs = default_knobs();
  for (std::size_t i = 0; i < advice_rule_count(); ++i)
    ck_assert_msg(!advice_rule(i).applies(JobTotals(job)), "%s", advice_rule(i).name);
  of(job, 0).short_msgs = of(job, 0).unexpected = of(job, 0).signals = of(job, 0).backstops = 999;
  of(job, 0).credit_stalls = of(job, 0).parked = of(job, 0).no_memory_in_handler = 99;
  for (std::size_t i = 0; i < advice_rule_count(); ++i)
    ck_assert_msg(!advice_rule(i).applies(JobTotals(job)), "%s", advice_rule(i).name);
}
END_TEST

START_TEST(values_in_force_are_named_where_ranks_differ) {
  JobStats job = ordinary_job();
  of(job, 3).credit_stalls = 10'000;
  char error[256];
  int distance = 0;
  ck_assert(set_knob(nearest_knob("LITE_CREDITS", distance), "1M", job.seen.at(1).knobs, error,
                     sizeof error));
  const std::string text = rule_named("credit").text(JobTotals(job));
  ck_assert_msg(text.find("(now 4M or 1M)") != std::string::npos, "%s", text.c_str());
}
END_TEST

START_TEST(a_spread_names_the_first_of_equal_ranks_and_a_peak_has_no_sum) {
  JobStats job{"job", 4, {}};
  const std::uint64_t values[] = {5, 2, 9, 2};
  for (int rank = 0; rank < 4; ++rank)
    job.seen[rank].counters.signals = job.seen[rank].counters.unexpected_bytes_peak = values[rank];
  for (std::size_t i = 0; i < counter_count(); ++i) {
    const bool is_peak = counter_info(i).member == &Counters::unexpected_bytes_peak;
    if (!is_peak && counter_info(i).member != &Counters::signals) continue;
    const Spread spread = spread_of(job, i);
    ck_assert_uint_eq(spread.total, is_peak ? 9 : 18);
    ck_assert_uint_eq(spread.min, 2);
    ck_assert_int_eq(spread.min_rank, 1);
    ck_assert_uint_eq(spread.max, 9);
    ck_assert_int_eq(spread.max_rank, 2);
    ck_assert_double_eq(spread.mean, 4.5);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("stats_advice"); }
