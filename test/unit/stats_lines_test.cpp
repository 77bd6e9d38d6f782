// stats_lines.h: lines of counters are read as they were written, and what is wrong with one is
// told.
#include "mplite/launch/stats_lines.h"

#include <cerrno>
#include <cstring>

#include "mplite/observe/stats.h"
#include "stats_jobs.h"

using namespace mplite;

namespace {

std::string line_of(int rank, int ranks, const char* job, const char* settings = "") {
  Counters counters;
  std::uint64_t value = 1000;
  for (std::size_t i = 0; i < counter_count(); ++i)
    if (const auto member = counter_info(i).member; member != nullptr) counters.*member = ++value;
  char text[kStatsBytes];
  const std::size_t length = format_stats(counters, {rank, ranks, job, "sigio", settings}, text);
  return std::string(text, length - 1);  // without its end
}

void refused(const std::string& line, const char* reason) {
  StatsLines lines;
  std::string why;
  ck_assert_msg(lines.take(line, why) == StatsLines::Kind::kBad, "taken: %s", line.c_str());
  ck_assert_msg(why.find(reason) != std::string::npos, "%s; not: %s", why.c_str(), reason);
  ck_assert(lines.jobs().empty());
}

std::string replaced(std::string line, const std::string& from, const std::string& to) {
  const std::size_t at = line.find(from);
  ck_assert_msg(at != std::string::npos, "%s", from.c_str());
  return line.replace(at, from.size(), to);
}

START_TEST(what_was_written_is_read) {
  StatsLines lines;
  std::string why;
  ck_assert(lines.take(line_of(3, 5, "10.0.0.1:4711", "LITE_CREDITS=1M LITE_GRACE=off"), why) ==
            StatsLines::Kind::kTaken);
  ck_assert_uint_eq(lines.jobs().size(), 1);
  const JobStats& job = lines.jobs().front();
  ck_assert_str_eq(job.name.c_str(), "10.0.0.1:4711");
  ck_assert_int_eq(job.ranks, 5);
  ck_assert_uint_eq(job.seen.size(), 1);
  const RankStats& stats = job.seen.at(3);
  ck_assert_str_eq(stats.controller.c_str(), "sigio");
  ck_assert_uint_eq(stats.knobs.credits, 1 << 20);
  ck_assert(!stats.knobs.grace);
  ck_assert_uint_eq(stats.knobs.unexpected_max, default_knobs().unexpected_max);
  std::uint64_t value = 1000;
  for (std::size_t i = 0; i < counter_count(); ++i)
    if (const auto member = counter_info(i).member; member != nullptr)
      ck_assert_uint_eq(stats.counters.*member, ++value);
}
END_TEST

START_TEST(what_stands_before_a_line_and_lines_of_other_kinds_are_passed_over) {
  StatsLines lines;
  std::string why;
  for (const char* other : {"", "hello", "lite-topology rank=0 2 cores", "lite-statsrank=0",
                            "we print lite-stats lines", "rank=0 ranks=1"})
    ck_assert_msg(lines.take(other, why) == StatsLines::Kind::kOther, "%s", other);
  int rank = 0;
  for (const char* before : {"[3] ", "2: ", "result = 3.14", "\x1b[0m"})
    ck_assert(lines.take(before + line_of(rank++, 5, "job"), why) == StatsLines::Kind::kTaken);
  ck_assert(lines.take(line_of(rank, 5, "job") + "\r", why) == StatsLines::Kind::kTaken);
  ck_assert_uint_eq(lines.jobs().front().seen.size(), 5);
}
END_TEST

START_TEST(a_line_that_is_cut_off_is_refused_wherever_that_was) {
  const std::string whole = line_of(0, 1, "job");
  const std::size_t last = whole.rfind('=') + 1;  // a shorter last value cannot be told
  for (std::size_t length = std::strlen("lite-stats rank="); length <= last; ++length) {
    StatsLines lines;
    std::string why;
    ck_assert_msg(lines.take(whole.substr(0, length), why) == StatsLines::Kind::kBad, "%s",
                  whole.substr(0, length).c_str());
    ck_assert(!why.empty());
  }
}
END_TEST

START_TEST(what_is_wrong_with_a_line_is_told) {
  const std::string line = line_of(0, 2, "job");
  refused(replaced(line, "short_msgs=1001", "short_msgs=x1"),
          "short_msgs=\"x1\" is no number of 64 bits");
  refused(replaced(line, "short_msgs=1001", "short_msgs=18446744073709551616"),
          "is no number of 64 bits");
  refused(replaced(line, "short_msgs=1001", "short_msgs=-1"), "is no number of 64 bits");
  refused(replaced(line, "short_msgs=", "long_msgs="),
          "\"long_msgs\" is no counter of this version of ch_lite");
  refused(replaced(line, " eager_msgs=1003", ""), "eager_msgs is missing");
  refused(line + " " + line, "two lines have run into each other");
  refused(line + " reads=1", "reads is there twice");
  refused(line + " job=other", "job is there twice");
  refused(line + line, "is no number of 64 bits");
  refused(line + " LITE_CREDIT=1M", "\"LITE_CREDIT\" is no variable of this version");
  refused(line + " LITE_CREDITS=lots", "LITE_CREDITS=\"lots\"");
  refused(line + " and text", "\"and\" is not NAME=VALUE");
  refused(line + " \x01" + std::string(500, 'x'), "\"?xxxxx");
  refused(replaced(line, "rank=0 ", "rank=2 "), "rank=2 of ranks=2");
  refused(replaced(line, "rank=0 ", "rank=-1 "), "rank=\"-1\" is no such number");
  refused(replaced(line, "ranks=2", "ranks=0"), "ranks=\"0\" is no such number");
  refused(replaced(line, "ranks=2", "ranks=2000000000"), "is no such number");
  refused(replaced(line, " ranks=2 job=job", ""), "of another version of ch_lite");
  refused(replaced(line, "job=job", "job="), "job has no value");
}
END_TEST

START_TEST(ranks_are_put_together_by_job) {
  StatsLines lines;
  std::string why;
  const auto take = [&](int rank, int ranks, const char* job) {
    ck_assert(lines.take(line_of(rank, ranks, job), why) == StatsLines::Kind::kTaken);
  };
  take(1, 2, "a");
  take(0, 3, "b");  // at the same time: spawned, or another mpiexec
  take(0, 2, "a");
  take(1, 3, "b");
  take(0, 4, "a");  // of the same name, and another one
  take(1, 2, "a");  // a rank that is there already
  take(0, 2, "a");
  ck_assert_uint_eq(lines.jobs().size(), 4);
  const std::size_t seen[] = {2, 2, 1, 2};
  const char* const names[] = {"a", "b", "a", "a"};
  std::size_t at = 0;
  for (const JobStats& job : lines.jobs()) {
    ck_assert_str_eq(job.name.c_str(), names[at]);
    ck_assert_uint_eq(job.seen.size(), seen[at]);
    ++at;
  }
}
END_TEST

START_TEST(a_file_is_read_to_its_end_and_bad_lines_are_told_with_their_number) {
  std::string text = "hello\n" + line_of(0, 2, "job") + "\n\nlite-stats rank=1 cut\n" +
                     std::string("\0 binary\n", 9) + line_of(1, 2, "job");
  std::FILE* in = fmemopen(text.data(), text.size(), "r");
  StatsLines lines;
  ck_assert_int_eq(lines.read(in, "out.txt"), 0);
  std::fclose(in);
  ck_assert_uint_eq(lines.complaints().size(), 1);
  ck_assert_str_eq(lines.complaints()[0].c_str(), "out.txt:4: \"cut\" is not NAME=VALUE");
  ck_assert_uint_eq(lines.jobs().size(), 1);
  ck_assert_uint_eq(lines.jobs().front().seen.size(), 2);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_an_error) {
  std::FILE* in = std::fopen("/", "r");
  ck_assert_ptr_nonnull(in);
  StatsLines lines;
  ck_assert_int_eq(lines.read(in, "/"), EISDIR);
  std::fclose(in);
}
END_TEST

}  // namespace

int main() { return run_tests("stats_lines"); }
