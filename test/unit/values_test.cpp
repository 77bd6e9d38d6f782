// values.h: sizes, durations, pairs, flags, signals and paths as text, there and back.
#include "mplite/config/values.h"

#include <signal.h>

#include <cstdint>
#include <cstring>

#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(size_has_digits_and_at_most_one_unit) {
  const struct {
    const char* text;
    bool good;
    std::uint64_t value;
  } table[] = {{"0", true, 0},
               {"17", true, 17},
               {"4k", true, 4096},
               {"4K", true, 4096},
               {"3M", true, 3 * kMega},
               {"2G", true, 2 * kGiga},
               {"18446744073709551615", true, UINT64_MAX},
               {"18446744073709551616", false, 0},
               {"17179869184G", false, 0},
               {"", false, 0},
               {"K", false, 0},
               {"4KB", false, 0},
               {"4 K", false, 0},
               {"-1", false, 0},
               {"0x10", false, 0},
               {"1.5M", false, 0}};
  for (const auto& t : table) {
    std::uint64_t value = 99;
    ck_assert_msg(parse_size(t.text, 0, UINT64_MAX, value) == t.good, "%s", t.text);
    ck_assert_msg(value == (t.good ? t.value : 99), "%s: %llu", t.text,
                  static_cast<unsigned long long>(value));
  }
  std::uint64_t value = 0;
  ck_assert(!parse_size("1023", 1024, 2048, value) && !parse_size("2049", 1024, 2048, value));
  ck_assert(parse_size("1024", 1024, 2048, value) && parse_size("2K", 1024, 2048, value));
}
END_TEST

START_TEST(duration_alone_is_in_the_unit_of_its_variable) {
  const struct {
    const char* text;
    bool good;
    std::int64_t ns;
  } table[] = {{"5", true, 5 * kSecond},
               {"5s", true, 5 * kSecond},
               {"5ms", true, 5 * kMilli},
               {"5us", true, 5 * kMicro},
               {"9223372036", true, 9223372036 * kSecond},
               {"9223372037", false, 0},
               {"5m", false, 0},
               {"ms", false, 0},
               {"", false, 0}};
  for (const auto& t : table) {
    std::int64_t ns = 99;
    ck_assert_msg(parse_duration(t.text, kSecond, 0, INT64_MAX, ns) == t.good, "%s", t.text);
    ck_assert_msg(ns == (t.good ? t.ns : 99), "%s: %lld", t.text, static_cast<long long>(ns));
  }
  std::int64_t ns = 0;
  ck_assert(!parse_duration("99ms", kSecond, 100 * kMilli, kSecond, ns));
  ck_assert(!parse_duration("1001ms", kSecond, 100 * kMilli, kSecond, ns));
}
END_TEST

START_TEST(pair_has_two_numbers_within_the_limits) {
  std::uint64_t a = 0, b = 0;
  ck_assert(parse_pair("10:2", 1, 100, a, b) && a == 10 && b == 2);
  for (const char* text : {"10", "10:", ":2", "10:2:3", "0:2", "10:0", "101:2", "10:101", "10:2 "})
    ck_assert_msg(!parse_pair(text, 1, 100, a, b), "%s", text);
}
END_TEST

START_TEST(flag_is_0_or_1) {
  bool value = false;
  ck_assert(parse_flag("1", value) && value);
  ck_assert(parse_flag("0", value) && !value);
  for (const char* text : {"", "2", "yes", "01"})
    ck_assert_msg(!parse_flag(text, value), "%s", text);
}
END_TEST

START_TEST(signal_is_one_that_a_library_may_take) {
  const struct {
    const char* text;
    int number;  // 0: refused
    const char* canonical;
  } table[] = {{"SIGIO", SIGIO, "SIGIO"},
               {"IO", SIGIO, "SIGIO"},
               {"SIGPOLL", SIGIO, "SIGIO"},
               {"URG", SIGURG, "SIGURG"},
               {"RTMIN", SIGRTMIN, "RTMIN+0"},
               {"SIGRTMIN+3", SIGRTMIN + 3, "RTMIN+3"},
               {"SIGSEGV", 0, ""},
               {"SIGKILL", 0, ""},
               {"SIGUSR1", 0, ""},
               {"9", 0, ""},
               {"RTMIN+", 0, ""},
               {"RTMIN+99", 0, ""},
               {"SIG", 0, ""}};
  for (const auto& t : table) {
    int value = 0;
    ck_assert_msg(parse_signal(t.text, value) == (t.number != 0), "%s", t.text);
    ck_assert_msg(value == t.number, "%s: %d", t.text, value);
    if (t.number == 0) continue;
    char text[32];
    format_signal(value, text, sizeof text);
    ck_assert_str_eq(text, t.canonical);
  }
}
END_TEST

START_TEST(path_that_does_not_fit_is_refused_and_says_why) {
  char path[5] = "old", why[64] = "";
  ck_assert(!keep_path("/tmp/", path, sizeof path, why, sizeof why));
  ck_assert_str_eq(path, "old");
  ck_assert_str_eq(why, "longer than 4 characters");
  ck_assert(keep_path("/tmp", path, sizeof path, why, sizeof why));
  ck_assert_str_eq(path, "/tmp");
}
END_TEST

START_TEST(control_characters_become_question_marks) {
  const char* const pairs[][2] = {{"eth0 \xc3\xa4\xe2\x80\xa6", "eth0 \xc3\xa4\xe2\x80\xa6"},
                                  {"\x1b[2J\n\t\x7f", "?[2J???"},
                                  {"a\xc2\x9b"
                                   "1m\xc2\xa0\xc2",
                                   "a??1m\xc2\xa0\xc2"}};
  for (const auto& pair : pairs) {
    char text[32];
    std::snprintf(text, sizeof text, "%s", pair[0]);
    make_printable(text);
    ck_assert_str_eq(text, pair[1]);
  }
}
END_TEST

START_TEST(formats_are_the_shortest_that_parse_back) {
  char text[32];
  for (const std::uint64_t bytes :
       {0ull, 1ull, 1023ull, 1024ull, 1025ull, 1048576ull, 3221225472ull}) {
    std::uint64_t back = 1;
    format_size(bytes, text, sizeof text);
    ck_assert(parse_size(text, 0, UINT64_MAX, back) && back == bytes);
  }
  format_size(256 * kKilo, text, sizeof text);
  ck_assert_str_eq(text, "256K");
  for (const std::int64_t ns : {0l, 7 * kMicro, 1500 * kMicro, 30 * kSecond, 90 * kMilli}) {
    std::int64_t back = 1;
    format_duration(ns, text, sizeof text);
    ck_assert(parse_duration(text, kSecond, 0, INT64_MAX, back) && back == ns);
  }
  format_duration(1500 * kMilli, text, sizeof text);
  ck_assert_str_eq(text, "1500ms");
}
END_TEST

}  // namespace

int main() { return run_tests("values"); }
