// knob_text.h: what people read of the table of knobs, and what a misspelt name was meant to be.
#include "mplite/config/knob_text.h"

#include <cstdio>
#include <cstring>

#include "printed.h"
#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(unknown_variable_is_told_with_the_nearest_one) {
  const char* environment[] = {"PATH=/bin", "LITE_EAGERMAX=1", "LITE_STATS=1", "LITE_IFACES=eth0",
                               "ELITE_X=1", "LITE_STATSX",     nullptr};
  char text[512];
  ck_assert_int_eq(unknown_knobs(environment, text, sizeof text), 2);
  ck_assert_str_eq(
      text,
      "LITE_EAGERMAX is set but is no variable of ch_lite; did you mean LITE_EAGER_MAX?\n"
      "LITE_IFACES is set but is no variable of ch_lite; did you mean LITE_IFACE?\n");
  char small[100];
  ck_assert_int_eq(unknown_knobs(environment, small, sizeof small), 2);
  ck_assert_str_eq(
      small, "LITE_EAGERMAX is set but is no variable of ch_lite; did you mean LITE_EAGER_MAX?\n");
}
END_TEST

START_TEST(nearest_knob_is_found_by_distance) {
  int distance = -1;
  ck_assert_str_eq(knob_info(nearest_knob("LITE_STATS", distance)).name, "LITE_STATS");
  ck_assert_int_eq(distance, 0);
  ck_assert_str_eq(knob_info(nearest_knob("LITE_STTAS", distance)).name, "LITE_STATS");
  ck_assert_int_eq(distance, 2);
}
END_TEST

START_TEST(changed_knobs_are_words_without_paths_and_whole) {
  Knobs knobs = default_knobs();
  char text[384], error[256];
  ck_assert_str_eq(format_changed_knobs(knobs, text, sizeof text), "");
  const auto set = [&](const char* name, const char* value) {
    int distance = 0;
    ck_assert(set_knob(nearest_knob(name, distance), value, knobs, error, sizeof error));
  };
  set("LITE_STATS", "1");
  set("LITE_SECRET_FILE", "/etc/key");
  set("LITE_PROFILE", "none");
  set("LITE_CREDITS", "1M");
  set("LITE_GRACE", "off");
  ck_assert_str_eq(format_changed_knobs(knobs, text, sizeof text),
                   "LITE_CREDITS=1M LITE_GRACE=off");
  char small[sizeof "LITE_CREDITS=1M LITE_GRACE=off" - 1];
  ck_assert_str_eq(format_changed_knobs(knobs, small, sizeof small), "LITE_CREDITS=1M");
  char smaller[sizeof "LITE_CREDITS=1M" - 1];
  ck_assert_str_eq(format_changed_knobs(knobs, smaller, sizeof smaller), "LITE_GRACE=off");
}
END_TEST

START_TEST(help_forms_name_every_variable_with_its_default) {
  const std::string help = printed([](std::FILE* out) { print_knobs(out, default_knobs()); });
  const std::string markdown = printed(print_knobs_markdown);
  const std::string man = printed(print_knobs_man);
  for (std::size_t i = 0; i < knob_count(); ++i) {
    const KnobInfo& info = knob_info(i);
    char wanted[128];
    std::snprintf(wanted, sizeof wanted, "%s=%s  (%s; default %s)", info.name, info.default_value,
                  info.type, info.default_value);
    ck_assert_msg(help.find(wanted) != std::string::npos, "%s not in help", wanted);
    std::snprintf(wanted, sizeof wanted, "| `%s` | `%s` | ", info.name, info.default_value);
    ck_assert_msg(markdown.find(wanted) != std::string::npos, "%s not in markdown", wanted);
    std::snprintf(wanted, sizeof wanted, ".BR %s \" (%s, default %s)\"", info.name, info.type,
                  info.default_value);
    ck_assert_msg(man.find(wanted) != std::string::npos, "%s not in man", wanted);
    ck_assert_msg(
        std::strchr(info.allowed, '|') == nullptr && std::strchr(info.doc, '|') == nullptr,
        "%s would break the markdown table", info.name);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("knob_text"); }
