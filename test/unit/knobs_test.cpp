// knobs.h: every LITE_* variable, its syntax, its bounds and the sentence for a value that is not
// allowed.
#include "mplite/config/knobs.h"

#include <signal.h>

#include <cstdio>
#include <cstring>

#include "run_tests.h"

using namespace mplite;

namespace {

// A pretended environment of one variable.
const char* g_name = nullptr;
const char* g_value = nullptr;
const char* pretended(const char* name) {
  return g_name != nullptr && std::strcmp(name, g_name) == 0 ? g_value : nullptr;
}

bool parse_one(const char* name, const char* value, Knobs& knobs, char (&error)[512]) {
  g_name = name;
  g_value = value;
  error[0] = '\0';
  return parse_knobs(pretended, knobs, error, sizeof error);
}

std::size_t index_of(const char* name) {
  for (std::size_t i = 0; i < knob_count(); ++i)
    if (std::strcmp(knob_info(i).name, name) == 0) return i;
  ck_abort_msg("no knob %s", name);
  return 0;
}

struct Pair {
  const char* name;
  const char* value;
  const char* canonical;  // as format_knob gives it
};

const Pair kGood[] = {
    {"LITE_SHORT_MAX", "0", "0"},
    {"LITE_SHORT_MAX", "32768", "32K"},
    {"LITE_SHORT_MAX", "8k", "8K"},
    {"LITE_EAGER_MAX", "0", "0"},
    {"LITE_EAGER_MAX", "1048576", "1M"},
    {"LITE_EAGER_MAX", "3G", "3G"},
    {"LITE_EAGER_MAX", "auto", "auto"},
    {"LITE_EAGER_MAX", "9223372036854775807", "9223372036854775807"},
    {"LITE_CONTROLLER", "sync", "sync"},
    {"LITE_CONTROLLER", "thread", "thread"},
    {"LITE_SIGNAL", "auto", "auto"},
    {"LITE_SIGNAL", "SIGURG", "SIGURG"},
    {"LITE_SIGNAL", "USR2", "SIGUSR2"},
    {"LITE_SIGNAL", "29", "SIGIO"},
    {"LITE_SIGNAL", "RTMIN", "RTMIN+0"},
    {"LITE_SIGNAL", "SIGRTMIN+5", "RTMIN+5"},
    {"LITE_SIGNAL", "40", "RTMIN+6"},
    {"LITE_SPIN_US", "0", "0s"},
    {"LITE_SPIN_US", "200", "200us"},
    {"LITE_SPIN_US", "2ms", "2ms"},
    {"LITE_SPIN_US", "60s", "60s"},
    {"LITE_SPIN_US", "forever", "forever"},
    {"LITE_IFACE", "eth0,10.1.0.0/16,^192.168.0.0/24,!fe80::/10",
     "eth0,10.1.0.0/16,^192.168.0.0/24,^fe80::/10"},
    {"LITE_FAMILY", "ipv6", "ipv6"},
    {"LITE_PORT_RANGE", "5000:5000", "5000:5000"},
    {"LITE_PORT_RANGE", "1:65535", "1:65535"},
    {"LITE_SOCKBUF", "4096", "4K"},
    {"LITE_SOCKBUF", "1G", "1G"},
    {"LITE_CREDITS", "16K", "16K"},
    {"LITE_UNEXPECTED_MAX", "64K", "64K"},
    {"LITE_CONNECT_TIMEOUT", "5", "5s"},
    {"LITE_CONNECT_TIMEOUT", "1500ms", "1500ms"},
    {"LITE_KEEPALIVE", "off", "off"},
    {"LITE_KEEPALIVE", "60:5", "60:5"},
    {"LITE_FRAME", "64M", "64M"},
    {"LITE_MMAP_THRESHOLD", "0", "0"},
    {"LITE_MMAP_THRESHOLD", "128K", "128K"},
    {"LITE_MMAP_THRESHOLD", "32M", "32M"},
    {"LITE_STALL", "off", "off"},
    {"LITE_STALL", "1", "1s"},
    {"LITE_STALL", "1500ms", "1500ms"},
    {"LITE_STALL", "86400s", "86400s"},
    {"LITE_STATS", "1", "1"},
    {"LITE_TRACE", "1", "1"},
    {"LITE_TRACE", "./run/trace", "./run/trace"},
    {"LITE_PROFILE", "none", "none"},
    {"LITE_PROFILE", "/etc/ch_lite", "/etc/ch_lite"},
};

const Pair kBad[] = {
    {"LITE_SHORT_MAX", "32769", nullptr},
    {"LITE_SHORT_MAX", "-1", nullptr},
    {"LITE_SHORT_MAX", "4096x", nullptr},
    {"LITE_SHORT_MAX", " 4096", nullptr},
    {"LITE_SHORT_MAX", "K", nullptr},
    {"LITE_SHORT_MAX", "0x10", nullptr},
    {"LITE_EAGER_MAX", "Auto", nullptr},
    {"LITE_EAGER_MAX", "18446744073709551616", nullptr},
    {"LITE_EAGER_MAX", "18446744073709551615K", nullptr},
    {"LITE_EAGER_MAX", "18014398509481988K", nullptr},  // 4K modulo 2^64
    {"LITE_EAGER_MAX", "9223372036854775808", nullptr},
    {"LITE_PROFILE", "profile", nullptr},
    {"LITE_CONTROLLER", "SIGIO", nullptr},
    {"LITE_CONTROLLER", "threads", nullptr},
    {"LITE_SIGNAL", "SIGKILL", nullptr},
    {"LITE_SIGNAL", "9", nullptr},
    {"LITE_SIGNAL", "SIGSEGV", nullptr},
    {"LITE_SIGNAL", "SIGSTOP", nullptr},
    {"LITE_SIGNAL", "SIGUSR1", nullptr},
    {"LITE_SIGNAL", "10", nullptr},
    {"LITE_SIGNAL", "0", nullptr},
    {"LITE_SIGNAL", "65", nullptr},
    {"LITE_SIGNAL", "32", nullptr},  // the thread library's own
    {"LITE_SIGNAL", "RTMIN+31", nullptr},
    {"LITE_SIGNAL", "RTMIN+", nullptr},
    {"LITE_SIGNAL", "SIG", nullptr},
    {"LITE_SPIN_US", "61s", nullptr},
    {"LITE_SPIN_US", "5m", nullptr},
    {"LITE_SPIN_US", "-2", nullptr},
    {"LITE_IFACE", "eth0,,eth1", nullptr},
    {"LITE_IFACE", "10.0.0.0/33", nullptr},
    {"LITE_IFACE", "^eth0,eth1", nullptr},
    {"LITE_FAMILY", "4", nullptr},
    {"LITE_PORT_RANGE", "6000:5000", nullptr},
    {"LITE_PORT_RANGE", "0:10", nullptr},
    {"LITE_PORT_RANGE", "5000:65536", nullptr},
    {"LITE_PORT_RANGE", "5000", nullptr},
    {"LITE_PORT_RANGE", "5000-6000", nullptr},
    {"LITE_SOCKBUF", "4095", nullptr},
    {"LITE_SOCKBUF", "2G", nullptr},
    {"LITE_CREDITS", "0", nullptr},
    {"LITE_CREDITS", "16383", nullptr},
    {"LITE_UNEXPECTED_MAX", "1", nullptr},
    {"LITE_CONNECT_TIMEOUT", "0", nullptr},
    {"LITE_CONNECT_TIMEOUT", "99ms", nullptr},
    {"LITE_CONNECT_TIMEOUT", "9223372036854775807", nullptr},
    {"LITE_KEEPALIVE", "10", nullptr},
    {"LITE_KEEPALIVE", "0:2", nullptr},
    {"LITE_KEEPALIVE", "10:2:1", nullptr},
    {"LITE_FRAME", "4095", nullptr},
    {"LITE_FRAME", "65M", nullptr},
    {"LITE_MMAP_THRESHOLD", "64K", nullptr},
    {"LITE_MMAP_THRESHOLD", "33M", nullptr},
    {"LITE_STALL", "0", nullptr},
    {"LITE_STALL", "999ms", nullptr},
    {"LITE_STALL", "86401", nullptr},
    {"LITE_STALL", "on", nullptr},
    {"LITE_STATS", "yes", nullptr},
    {"LITE_TRACE", "on", nullptr},
};

START_TEST(defaults_of_the_design_are_in_force_without_variables) {
  Knobs k;
  char error[512];
  ck_assert(parse_one(nullptr, nullptr, k, error));
  ck_assert_uint_eq(k.short_max, 32768);
  ck_assert_uint_eq(k.eager_max, kEagerAuto);
  ck_assert(k.controller == ControllerKind::kSigio);
  ck_assert_int_eq(k.signal, 0);
  ck_assert_int_eq(k.spin_ns, kSpinAuto);
  ck_assert_int_eq(k.iface.count, 0);
  ck_assert(k.family == Family::kAny);
  ck_assert_uint_eq(k.port_lo, 0);
  ck_assert_uint_eq(k.sockbuf, 0);
  ck_assert_uint_eq(k.credits, 4 << 20);
  ck_assert_uint_eq(k.unexpected_max, 1 << 30);
  ck_assert_int_eq(k.connect_timeout_ns, 30'000'000'000);
  ck_assert_int_eq(k.keepalive_idle_s, 10);
  ck_assert_int_eq(k.keepalive_interval_s, 2);
  ck_assert_uint_eq(k.frame_bytes, 256 * 1024);
  ck_assert(!k.stats && !k.trace);
}
END_TEST

START_TEST(good_values_are_taken_and_formatted_in_their_own_syntax) {
  for (const Pair& p : kGood) {
    Knobs k, again;
    char error[512], text[512];
    ck_assert_msg(parse_one(p.name, p.value, k, error), "%s", error);
    const std::size_t i = index_of(p.name);
    ck_assert_str_eq(format_knob(i, k, text, sizeof text), p.canonical);
    ck_assert_msg(parse_one(p.name, text, again, error), "the canonical form is refused: %s",
                  error);
    char second[512];
    ck_assert_str_eq(format_knob(i, again, second, sizeof second), p.canonical);
  }
}
END_TEST

START_TEST(values_reach_their_members) {
  Knobs k;
  char error[512];
  ck_assert(parse_one("LITE_EAGER_MAX", "3G", k, error));
  ck_assert_uint_eq(k.eager_max, 3ull << 30);
  ck_assert(parse_one("LITE_SPIN_US", "200", k, error));
  ck_assert_int_eq(k.spin_ns, 200'000);
  ck_assert(parse_one("LITE_CONNECT_TIMEOUT", "5", k, error));
  ck_assert_int_eq(k.connect_timeout_ns, 5'000'000'000);
  ck_assert(parse_one("LITE_KEEPALIVE", "60:5", k, error));
  ck_assert_int_eq(k.keepalive_idle_s, 60);
  ck_assert_int_eq(k.keepalive_interval_s, 5);
  ck_assert(parse_one("LITE_PORT_RANGE", "5000:5010", k, error));
  ck_assert_uint_eq(k.port_lo, 5000);
  ck_assert_uint_eq(k.port_hi, 5010);
  ck_assert(parse_one("LITE_SIGNAL", "RTMIN+3", k, error));
  ck_assert_int_eq(k.signal, SIGRTMIN + 3);
  ck_assert(parse_one("LITE_TRACE", "/x/y", k, error));
  ck_assert(k.trace);
  ck_assert_str_eq(k.trace_prefix, "/x/y");
  ck_assert(parse_one("LITE_CONTROLLER", "thread", k, error));
  ck_assert(k.controller == ControllerKind::kThread);
}
END_TEST

START_TEST(every_bad_value_is_refused_by_name_value_and_what_is_allowed) {
  for (const Pair& p : kBad) {
    Knobs k = default_knobs();
    k.short_max = 77;  // a trace of the caller's value
    char error[512], start[128];
    ck_assert_msg(!parse_one(p.name, p.value, k, error), "%s=%s was taken", p.name, p.value);
    std::snprintf(start, sizeof start, "%s=\"%s\" is not allowed", p.name, p.value);
    ck_assert_msg(std::strncmp(error, start, std::strlen(start)) == 0, "%s", error);
    ck_assert_msg(std::strstr(error, knob_info(index_of(p.name)).allowed) != nullptr, "%s", error);
    ck_assert_uint_eq(k.short_max, 77);
  }
}
END_TEST

START_TEST(control_characters_of_a_value_do_not_reach_the_terminal) {
  Knobs k;
  char error[512];
  ck_assert(!parse_one("LITE_CREDITS", "\x1b[2J\n\x7f", k, error));
  ck_assert_ptr_nonnull(std::strstr(error, "LITE_CREDITS=\"?[2J??\" is not allowed"));
}
END_TEST

START_TEST(path_longer_than_its_room_is_refused) {
  char value[400];
  std::memset(value, '/', sizeof value);
  value[sizeof value - 1] = '\0';
  Knobs k;
  char error[512];
  ck_assert(!parse_one("LITE_TRACE", value, k, error));
  value[231] = '\0';
  ck_assert(parse_one("LITE_TRACE", value, k, error));
  ck_assert_uint_eq(std::strlen(k.trace_prefix), 231);
}
END_TEST

START_TEST(variables_override_what_is_there) {
  Knobs k = default_knobs();
  k.short_max = 77, k.eager_max = 88;
  g_name = "LITE_EAGER_MAX", g_value = "99";
  char error[512] = "";
  ck_assert(override_knobs(pretended, k, error, sizeof error));
  ck_assert_uint_eq(k.short_max, 77);
  ck_assert_uint_eq(k.eager_max, 99);
  g_value = "many";
  ck_assert(!override_knobs(pretended, k, error, sizeof error));
  ck_assert_uint_eq(k.eager_max, 99);
}
END_TEST

START_TEST(empty_variable_counts_as_not_set) {
  Knobs k;
  char error[512];
  for (std::size_t i = 0; i < knob_count(); ++i)
    ck_assert(parse_one(knob_info(i).name, "", k, error));
}
END_TEST

START_TEST(error_sentence_never_leaves_its_buffer) {
  char small[8 + 4];
  std::memset(small, '#', sizeof small);
  Knobs k = default_knobs();
  ck_assert(!set_knob(index_of("LITE_FAMILY"), "both", k, small, 8));
  ck_assert_str_eq(small, "LITE_FA");
  ck_assert_mem_eq(small + 8, "####", 4);
}
END_TEST

START_TEST(tuning_that_is_no_heuristic_is_told_with_the_names_of_all) {
  Knobs k = default_knobs();
  ck_assert(k.tuning == Tuning());
  char error[1024];
  ck_assert(!set_knob(index_of("LITE_TUNING"), "-halve", k, error, sizeof error));
  ck_assert(std::strstr(error, "LITE_TUNING=\"-halve\" is not allowed: '-halve' is no heuristic") !=
            nullptr);
  for (unsigned i = 0; i < kHeuristics; ++i)
    ck_assert(std::strstr(error, heuristic_info(static_cast<Heuristic>(i)).name) != nullptr);
  ck_assert(set_knob(index_of("LITE_TUNING"), "off,+halves", k, error, sizeof error));
  ck_assert(k.tuning == Tuning::none().set(Heuristic::kHalves, true));
}
END_TEST

}  // namespace

int main() { return run_tests("knobs"); }
