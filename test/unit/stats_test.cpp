// stats.h: one line that has every counter once, the important ones first.
#include "mplite/observe/stats.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::size_t kCounters = sizeof(Counters) / sizeof(std::uint64_t);

// Counter i has the value first + i * step, in the order of the struct.
Counters numbered(std::uint64_t first, std::uint64_t step) {
  Counters c;
  std::uint64_t words[kCounters];
  for (std::size_t i = 0; i < kCounters; ++i) words[i] = first + i * step;
  std::memcpy(static_cast<void*>(&c), words, sizeof c);
  return c;
}

START_TEST(line_begins_with_what_users_are_promised) {
  Counters c;
  c.short_msgs = 1, c.short_bytes = 2, c.eager_msgs = 3, c.eager_bytes = 4, c.rndv_msgs = 5,
  c.rndv_bytes = 6, c.am_msgs = 7, c.am_bytes = 8;
  c.self_msgs = 9, c.unexpected = 10, c.unexpected_bytes = 11, c.signals = 12, c.reads = 13,
  c.connections = 14, c.credit_stalls = 15;
  char text[kStatsBytes];
  const char start[] =
      "lite-stats rank=3 ranks=5 job=10.0.0.2:4711 controller=sigio short_msgs=1 short_bytes=2 "
      "eager_msgs=3 eager_bytes=4 "
      "rndv_msgs=5 rndv_bytes=6 am_msgs=7 am_bytes=8 "
      "self_msgs=9 unexpected=10 unexpected_bytes=11 signals=12 syscalls=13 connections=14 "
      "credit_stalls=15 ";
  const std::size_t length = format_stats(c, {3, 5, "10.0.0.2:4711", "sigio", ""}, text);
  ck_assert_msg(std::strncmp(text, start, std::strlen(start)) == 0, "%s", text);
  ck_assert_uint_eq(length, std::strlen(text));
  const char end[] = "=0 LITE_CREDITS=1M LITE_GRACE=off\n";
  const std::size_t longer =
      format_stats(c, {3, 5, "10.0.0.2:4711", "sigio", "LITE_CREDITS=1M LITE_GRACE=off"}, text);
  ck_assert_uint_eq(longer, length + std::strlen(end) - 3);
  ck_assert_str_eq(text + longer - std::strlen(end), end);
}
END_TEST

START_TEST(every_counter_appears_exactly_once) {
  char text[kStatsBytes];
  format_stats(numbered(1001, 1), {0, 1, "job", "sync", ""}, text);
  for (std::size_t i = 0; i < kCounters; ++i) {
    char value[32];
    std::snprintf(value, sizeof value, "=%zu", 1001 + i);
    const char* at = std::strstr(text, value);
    ck_assert_msg(at != nullptr, "counter %zu is missing: %s", i, text);
    ck_assert_msg(std::strstr(at + 1, value) == nullptr, "counter %zu twice: %s", i, text);
  }
}
END_TEST

START_TEST(it_is_one_line_also_with_the_largest_numbers) {
  char text[kStatsBytes];
  const std::string name(500, 'x'), settings(5000, 'y');
  const std::size_t length = format_stats(numbered(UINT64_MAX, 0),
                                          {2147483647, 2147483647, name.c_str(),
                                           "a controller with a very long name", settings.c_str()},
                                          text);
  ck_assert_uint_lt(length, sizeof text);
  ck_assert_uint_eq(length, std::strlen(text));
  ck_assert_ptr_eq(std::strchr(text, '\n'), text + length - 1);
  ck_assert_ptr_nonnull(std::strstr(text, "short_msgs=18446744073709551615 "));
}
END_TEST

START_TEST(every_counter_has_a_group_a_unit_and_a_sentence_that_can_be_read_alone) {
  bool used[kCounterGroups] = {};
  for (std::size_t i = 0; i < counter_count(); ++i) {
    const CounterInfo& info = counter_info(i);
    ck_assert_msg(static_cast<std::size_t>(info.group) < kCounterGroups, "%s", info.name);
    used[static_cast<std::size_t>(info.group)] = true;
    const std::size_t unit = std::strlen(info.unit), meaning = std::strlen(info.meaning);
    ck_assert_msg(unit > 2 && info.unit[unit - 1] == 's', "%s counts \"%s\"", info.name, info.unit);
    ck_assert_msg(meaning > 20 && info.meaning[meaning - 1] == '.', "%s: %s", info.name,
                  info.meaning);
    for (const char* pointing : {"Their ", "Those ", "The same"})
      ck_assert_msg(std::strncmp(info.meaning, pointing, std::strlen(pointing)) != 0, "%s: %s",
                    info.name, info.meaning);
    // what its name says, its unit says
    ck_assert_msg(
        (std::strstr(info.name, "bytes") != nullptr) == (std::strcmp(info.unit, "bytes") == 0),
        "%s counts %s", info.name, info.unit);
  }
  for (std::size_t i = 0; i < kCounterGroups; ++i) {
    const CounterGroupInfo& group = counter_group(static_cast<CounterGroup>(i));
    ck_assert_msg(used[i], "%s has no counter", group.title);
    const std::size_t meaning = std::strlen(group.meaning);
    ck_assert_msg(meaning > 20 && group.meaning[meaning - 1] == '.', "%s", group.title);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("stats"); }
