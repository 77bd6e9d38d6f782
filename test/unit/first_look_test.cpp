// first_look.h: the delay follows the shortest of the measured waits, and only of these.
#include "mplite/tuning/first_look.h"

#include "run_tests.h"

using namespace mplite;

namespace {

// The next `waits` waits, each of which takes `ns`. Returns how many were measured.
unsigned go(FirstLook& look, unsigned waits, std::int64_t ns) {
  unsigned measured = 0;
  for (unsigned i = 0; i < waits; ++i) {
    if (!look.begin()) continue;
    ++measured;
    look.took(ns);
  }
  return measured;
}

START_TEST(no_delay_before_it_is_known_how_long_waits_are) {
  FirstLook look;
  for (unsigned i = 0; i < FirstLook::kWaits; ++i) {
    ck_assert_int_eq(look.delay_ns(), 0);
    ck_assert(look.begin());
    look.took(3000);
  }
  ck_assert_int_eq(look.delay_ns(), 2000);
  ck_assert(look.begin());  // the last of the first ones in a row
  ck_assert(!look.begin());
}
END_TEST

START_TEST(one_wait_of_a_stride_is_measured) {
  FirstLook look;
  go(look, FirstLook::kWaits, 3000);
  ck_assert_uint_eq(go(look, 10 * FirstLook::kStride, 3000), 10);
}
END_TEST

// An end that was not seen is no reason to measure no more.
START_TEST(wait_whose_end_is_not_told_is_left_out) {
  FirstLook look;
  for (int i = 0; i < 100; ++i) {
    ck_assert(look.begin());
    ck_assert_int_eq(look.delay_ns(), 0);
  }
}
END_TEST

START_TEST(shortest_of_the_last_ones_counts) {
  FirstLook look;
  go(look, FirstLook::kWaits, 6000);
  ck_assert_int_eq(look.delay_ns(), 4000);
  go(look, FirstLook::kStride, 1500);
  ck_assert_int_eq(look.delay_ns(), 1000);
  go(look, (FirstLook::kWaits - 1) * FirstLook::kStride, 6000);
  ck_assert_int_eq(look.delay_ns(), 1000);
  go(look, FirstLook::kStride, 6000);
  ck_assert_int_eq(look.delay_ns(), 4000);
}
END_TEST

// Each second wait is a long one: it is not these that are measured.
START_TEST(loop_of_long_and_short_waits_has_the_delay_of_the_short_ones) {
  FirstLook look;
  for (unsigned i = 0; i < (FirstLook::kWaits + 1) * FirstLook::kStride; ++i) {
    if (look.begin()) look.took(i % 2 == 0 ? 100'000 : 1500);
  }
  ck_assert_int_eq(look.delay_ns(), 1000);
}
END_TEST

START_TEST(delay_has_a_limit) {
  FirstLook look;
  go(look, FirstLook::kWaits, 1'000'000'000);
  ck_assert_int_eq(look.delay_ns(), FirstLook::kMaxNs);
}
END_TEST

START_TEST(first_wait_after_a_packet_is_timed_or_delayed) {
  FirstLook look;
  for (unsigned i = 0; i < FirstLook::kWaits; ++i) {
    look.sent();
    ck_assert(look.is_first());
    ck_assert_int_eq(look.wait(true), 0);
    ck_assert(!look.is_first() && look.timed());
    look.began(1000);
    look.came(4000);
    look.came(9000);  // the second thing that comes ends no wait
    ck_assert(!look.timed());
  }
  ck_assert_int_eq(look.wait(true), 0);  // one more is measured
  look.began(0);
  look.came(3000);
  ck_assert_int_eq(look.wait(false), 0);
  ck_assert_int_eq(look.wait(true), 2000);
  ck_assert(!look.timed());
}
END_TEST

START_TEST(off_nothing_is_timed_and_nothing_delayed) {
  FirstLook look;
  look.set_on(false);
  for (unsigned i = 0; i < 10 * FirstLook::kStride; ++i) {
    look.sent();
    ck_assert_int_eq(look.wait(true), 0);
    ck_assert(!look.timed());
    look.came(i * 1000);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("first_look"); }
