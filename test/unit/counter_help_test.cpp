// counter_help.h: every counter of the line once, under its group, with unit and meaning.
#include "mplite/launch/counter_help.h"

#include "mplite/observe/stats.h"
#include "printed.h"
#include "run_tests.h"

using namespace mplite;

namespace {

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

START_TEST(every_counter_stands_once_under_its_group) {
  const std::string text = printed(print_counter_help);
  std::size_t counters = 0;
  for (std::size_t g = 0; g < kCounterGroups; ++g) {
    const CounterGroupInfo& group = counter_group(static_cast<CounterGroup>(g));
    const std::size_t begin = text.find(std::string("\n") + group.title + ". " + group.meaning);
    ck_assert_msg(begin != std::string::npos, "%s is missing", group.title);
    const std::string part = text.substr(begin, text.find("\n\n", begin) - begin);
    for (std::size_t i = 0; i < counter_count(); ++i) {
      const CounterInfo& info = counter_info(i);
      char line[512];
      std::snprintf(line, sizeof line, "\n  %-21s  %-11s  %s", info.name, info.unit, info.meaning);
      const std::size_t wanted = static_cast<std::size_t>(info.group) == g ? 1 : 0;
      ck_assert_msg(times(part, line) == wanted, "%s in %s", info.name, part.c_str());
      counters += wanted;
    }
  }
  ck_assert_uint_eq(counters, counter_count());
}
END_TEST

START_TEST(json_has_every_group_and_counter) {
  const std::string text = printed(print_counter_help_json);
  ck_assert_uint_eq(times(text, "{\"title\": "), kCounterGroups);
  ck_assert_uint_eq(times(text, "{\"name\": "), counter_count());
  for (std::size_t i = 0; i < counter_count(); ++i) {
    const CounterInfo& info = counter_info(i);
    const std::string begin = std::string("{\"name\": \"") + info.name + "\", \"group\": \"" +
                              counter_group(info.group).title + "\", \"unit\": \"" + info.unit +
                              "\", \"kind\": \"" + (info.is_peak ? "peak" : "sum") + "\"";
    ck_assert_msg(times(text, begin) == 1, "%s", begin.c_str());
  }
}
END_TEST

}  // namespace

int main() { return run_tests("counter_help"); }
