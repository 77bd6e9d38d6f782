// knob_text.h: what people read of the table of knobs, and what a misspelt name was meant to be.
#include "mplite/config/knob_text.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

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

// Runs one of the printing functions into memory.
char* printed(void (*print)(std::FILE*)) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  print(out);
  std::fclose(out);
  return text;
}

START_TEST(help_forms_name_every_variable_with_its_default) {
  char* help = printed([](std::FILE* out) { print_knobs(out, default_knobs()); });
  char* markdown = printed(print_knobs_markdown);
  char* man = printed(print_knobs_man);
  for (std::size_t i = 0; i < knob_count(); ++i) {
    const KnobInfo& info = knob_info(i);
    char wanted[128];
    std::snprintf(wanted, sizeof wanted, "%s=%s  (%s; default %s)", info.name, info.default_value,
                  info.type, info.default_value);
    ck_assert_msg(std::strstr(help, wanted) != nullptr, "%s not in help", wanted);
    std::snprintf(wanted, sizeof wanted, "| `%s` | `%s` | ", info.name, info.default_value);
    ck_assert_msg(std::strstr(markdown, wanted) != nullptr, "%s not in markdown", wanted);
    std::snprintf(wanted, sizeof wanted, ".BR %s \" (%s, default %s)\"", info.name, info.type,
                  info.default_value);
    ck_assert_msg(std::strstr(man, wanted) != nullptr, "%s not in man", wanted);
    ck_assert_msg(
        std::strchr(info.allowed, '|') == nullptr && std::strchr(info.doc, '|') == nullptr,
        "%s would break the markdown table", info.name);
  }
  std::free(help);
  std::free(markdown);
  std::free(man);
}
END_TEST

}  // namespace

int main() { return run_tests("knob_text"); }
