// The lines of LITE_STATS in the output of jobs, read back: ranks by job.
#include "mplite/launch/stats_lines.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "mplite/config/knob_text.h"
#include "mplite/observe/stats.h"

namespace mplite {
namespace {

// What a message repeats of a line: a beginning of it, printable.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string quote = "\"";
  for (const char c : text.substr(0, kMost)) quote += c >= ' ' && c <= '~' ? c : '?';
  return quote + (text.size() > kMost ? "…\"" : "\"");
}

template <typename Number>
bool read_number(std::string_view text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end && !text.empty();
}

// A line on its way into a RankStats: NAME=VALUE by NAME=VALUE.
class Parser {
 public:
  std::string job;
  int rank = -1, ranks = 0;
  RankStats stats;

  explicit Parser(std::string& why) : why_(why) { stats.knobs = default_knobs(); }

  bool take(std::string_view word) {
    if (word == kStatsWord) return fail("two lines have run into each other");
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return fail(quoted(word) + " is not NAME=VALUE");
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "rank" || name == "ranks") return take_rank(name, value);
    if (name == "job") return take_word(name, value, job);
    if (name == "controller") return take_word(name, value, stats.controller);
    if (name.starts_with("LITE_")) return take_setting(name, value);
    return take_counter(name, value);
  }

  bool is_whole() {
    if (rank < 0 || ranks == 0 || job.empty() || stats.controller.empty())
      return fail("rank=, ranks=, job= or controller= is missing: of another version of ch_lite");
    if (rank >= ranks)
      return fail("rank=" + std::to_string(rank) + " of ranks=" + std::to_string(ranks));
    for (std::size_t i = 0; i < counter_count(); ++i)
      if (!there_[i])
        return fail(std::string(counter_info(i).name) +
                    " is missing: the line is cut off, or of another version of ch_lite");
    return true;
  }

 private:
  bool fail(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool twice(std::string_view name) { return fail(std::string(name) + " is there twice"); }

  bool take_rank(std::string_view name, std::string_view value) {
    int& number = name == "rank" ? rank : ranks;
    if (number != (name == "rank" ? -1 : 0)) return twice(name);
    const int least = name == "rank" ? 0 : 1;
    int read = 0;
    if (!read_number(value, read) || read < least || read > kStatsRanksMax)
      return fail(std::string(name) + "=" + quoted(value) + " is no such number");
    number = read;
    return true;
  }

  bool take_word(std::string_view name, std::string_view value, std::string& word) {
    if (!word.empty()) return twice(name);
    if (value.empty()) return fail(std::string(name) + " has no value");
    for (const char c : value) word += c > ' ' && c <= '~' ? c : '?';
    return true;
  }

  bool take_setting(std::string_view name, std::string_view value) {
    int distance = 0;
    char error[512];
    const std::size_t index = nearest_knob(std::string(name).c_str(), distance);
    if (distance != 0)
      return fail(quoted(name) +
                  " is no variable of this version of ch_lite (lite-info lists them)");
    return set_knob(index, std::string(value).c_str(), stats.knobs, error, sizeof error) ||
           fail(error);
  }

  bool take_counter(std::string_view name, std::string_view value) {
    std::size_t index = 0;
    while (index < counter_count() && name != counter_info(index).name) ++index;
    if (index == counter_count())
      return fail(quoted(name) +
                  " is no counter of this version of ch_lite (lite-info --explain lists them)");
    if (there_[index]) return twice(name);
    std::uint64_t number = 0;
    if (!read_number(value, number))
      return fail(std::string(name) + "=" + quoted(value) + " is no number of 64 bits");
    there_[index] = true;
    const CounterInfo& info = counter_info(index);
    if (info.member != nullptr) stats.counters.*info.member = number;
    return true;
  }

  std::string& why_;
  std::vector<bool> there_ = std::vector<bool>(counter_count());
};

}  // namespace

StatsLines::Kind StatsLines::take(std::string_view line, std::string& why) {
  static const std::string kBegin = std::string(kStatsWord) + " rank=";
  const std::size_t begin = line.find(kBegin);
  if (begin == std::string_view::npos) return Kind::kOther;
  line.remove_prefix(begin + std::strlen(kStatsWord));
  Parser parser(why);
  constexpr std::string_view kBetween = " \t\r";
  for (std::size_t at = 0;;) {
    at = line.find_first_not_of(kBetween, at);
    if (at == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(kBetween, at), line.size());
    if (!parser.take(line.substr(at, end - at))) return Kind::kBad;
    at = end;
  }
  if (!parser.is_whole()) return Kind::kBad;
  job_of(parser.job, parser.ranks, parser.rank).seen.emplace(parser.rank, std::move(parser.stats));
  return Kind::kTaken;
}

// The last one of that name, unless it has that rank.
JobStats& StatsLines::job_of(const std::string& name, int ranks, int rank) {
  for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job)
    if (job->name == name && job->ranks == ranks) {
      if (job->seen.contains(rank)) break;
      return *job;
    }
  return jobs_.emplace_back(JobStats{name, ranks, {}});
}

int StatsLines::read(std::FILE* in, const char* name) {
  char* line = nullptr;
  std::size_t room = 0;
  std::uint64_t number = 0;
  errno = 0;
  for (ssize_t length; (length = getline(&line, &room, in)) >= 0; errno = 0) {
    ++number;
    if (length > 0 && line[length - 1] == '\n') --length;
    std::string why;
    if (take({line, static_cast<std::size_t>(length)}, why) == Kind::kBad)
      complaints_.push_back(std::string(name) + ":" + std::to_string(number) + ": " + why);
  }
  const int error = std::feof(in) ? 0 : errno != 0 ? errno : EIO;
  std::free(line);
  return error;
}

}  // namespace mplite
