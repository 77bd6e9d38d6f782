// tools.h and the tool functions of ch_lite.h: every knob and counter by number, before, during and
// after an engine's life.
#include "ch_lite/tools.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "ch_lite/ch_lite.h"
#include "mplite/observe/stats.h"
#include "run_tests.h"

using namespace ch_lite;

namespace {

int counter_named(const char* name) {
  for (int i = 0; i < lite_counter_count(); ++i) {
    lite_counter counter;
    lite_counter_describe(i, &counter);
    if (std::strcmp(counter.name, name) == 0) return i;
  }
  ck_abort_msg("no counter %s", name);
}

int knob_named(const char* name) {
  for (int i = 0; i < lite_knob_count(); ++i) {
    lite_knob knob;
    lite_knob_describe(i, &knob);
    if (std::strcmp(knob.name, name) == 0) return i;
  }
  ck_abort_msg("no knob %s", name);
}

START_TEST(knobs_have_their_defaults_before_the_start_and_then_what_is_in_force) {
  const int index = knob_named("LITE_EAGER_MAX");
  char text[LITE_KNOB_VALUE_MAX];
  ck_assert_str_eq(lite_knob_value(index, text, sizeof text), "auto");
  mplite::Knobs knobs = mplite::default_knobs();
  knobs.eager_max = 12345;
  tools_take_knobs(knobs);
  ck_assert_str_eq(lite_knob_value(index, text, sizeof text), "12345");
}
END_TEST

START_TEST(every_knob_has_texts) {
  ck_assert_uint_eq(lite_knob_count(), mplite::knob_count());
  for (int i = 0; i < lite_knob_count(); ++i) {
    lite_knob knob;
    lite_knob_describe(i, &knob);
    char text[LITE_KNOB_VALUE_MAX];
    ck_assert_uint_eq(std::strncmp(knob.name, "LITE_", 5), 0);
    ck_assert_uint_gt(std::strlen(knob.meaning), 10);
    ck_assert_uint_gt(std::strlen(knob.allowed), 0);
    ck_assert_str_eq(lite_knob_value(i, text, sizeof text), knob.default_value);
  }
}
END_TEST

START_TEST(counters_are_read_live_and_keep_their_last_values) {
  const int index = counter_named("eager_bytes"), calls = counter_named("syscalls"),
            posted = counter_named("posted_receives");
  ck_assert_uint_eq(lite_counter_read(index), 0);
  mplite::Gate gate;
  {
    mplite::Counters counters;
    tools_watch(gate, counters);
    counters.eager_bytes = 77;
    ck_assert_uint_eq(lite_counter_read(index), 77);
    counters.eager_bytes = 78;
    counters.reads = 3, counters.mask_calls = 4;
    ck_assert_uint_eq(lite_counter_read(index), 78);
    ck_assert_uint_eq(lite_counter_read(calls), 7);
    ck_assert_uint_eq(lite_counter_read(posted), 0);  // no device: nothing is held
    ck_assert(!gate.held());
    tools_leave();
    std::memset(static_cast<void*>(&counters), 0xff, sizeof counters);
  }
  ck_assert_uint_eq(lite_counter_read(index), 78);
  ck_assert_uint_eq(lite_counter_read(calls), 7);
  ck_assert_uint_eq(lite_counter_read(posted), 0);
}
END_TEST

// A monitor's thread, with MPI_T.
START_TEST(counters_are_read_while_what_holds_them_goes) {
  const int index = counter_named("eager_bytes");
  mplite::Counters first;
  first.eager_bytes = 77;
  mplite::Gate first_gate;
  tools_watch(first_gate, first);
  std::atomic<bool> over{false};
  std::thread reader([&] {
    while (!over.load()) ck_assert_uint_eq(lite_counter_read(index), 77);
  });
  for (int i = 0; i < 20'000; ++i) {
    auto gate = std::make_unique<mplite::Gate>();
    auto counters = std::make_unique<mplite::Counters>();
    counters->eager_bytes = 77;
    tools_watch(*gate, *counters);
    tools_leave();
    counters->eager_bytes = 0;
  }
  over = true;
  reader.join();
}
END_TEST

START_TEST(every_counter_has_a_name_of_its_own_and_a_meaning_and_a_unit) {
  for (int i = 0; i < lite_counter_count(); ++i) {
    lite_counter counter;
    lite_counter_describe(i, &counter);
    ck_assert_uint_lt(std::strlen(counter.name), 32);
    ck_assert_uint_gt(std::strlen(counter.meaning), 10);
    ck_assert_uint_gt(std::strlen(counter.unit), 2);
    // the glue's buffer (ch4/lite_tools.c)
    ck_assert_uint_lt(std::strlen(counter.meaning) + std::strlen(counter.unit), 230);
    ck_assert_int_eq(counter_named(counter.name), i);
  }
}
END_TEST

START_TEST(what_can_fall_is_a_level) {
  int levels = 0;
  for (int i = 0; i < lite_counter_count(); ++i) {
    lite_counter counter;
    lite_counter_describe(i, &counter);
    levels += counter.is_level;
  }
  ck_assert_int_eq(levels, 7);
  for (const char* name :
       {"posted_receives", "unexpected_messages", "unexpected_bytes_held", "unexpected_bytes_ready",
        "requests_pending", "active_messages_unsent", "unexpected_bytes_peak"}) {
    lite_counter counter;
    lite_counter_describe(counter_named(name), &counter);
    ck_assert_int_eq(counter.is_level, 1);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("tools"); }
