// reopening.h: how often the timer looks at the mask of an armed signal, and how rests end.
#include "mplite/tuning/reopening.h"

#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(nothing_is_due_before_a_timer_armed_or_a_rest_began) {
  Reopening r;
  ck_assert(!r.is_due());
  r.armed_late();
  ck_assert(r.is_due());
  r.found_unarmed();
  ck_assert(!r.is_due());
  r.begin_rest();
  ck_assert(r.is_due());
  r.disarmed();
  ck_assert(!r.is_due());
}
END_TEST

START_TEST(the_mask_is_looked_at_ever_more_seldom) {
  Reopening r;
  std::int64_t delay_ns = r.armed_late();
  ck_assert_int_eq(delay_ns, Reopening::kMinNs);
  for (int i = 0; i < 12; ++i) {
    const std::int64_t next_ns = r.opened(false);
    ck_assert_int_ge(next_ns, delay_ns);
    delay_ns = next_ns;
  }
  ck_assert_int_eq(delay_ns, Reopening::kMaxNs);
  ck_assert_uint_eq(r.times(), 12);
}
END_TEST

START_TEST(where_somebody_blocks_it_the_mask_is_looked_at_soon) {
  Reopening r;
  r.armed_late();
  ck_assert_int_gt(r.opened(false), Reopening::kMinNs);
  ck_assert_int_eq(r.opened(true), Reopening::kMinNs);
  ck_assert_uint_eq(r.times(), 2);
}
END_TEST

START_TEST(a_rest_lasts_until_the_signal_is_ours_and_opened) {
  Reopening r;
  r.begin_rest();
  ck_assert_int_gt(r.put_off(), 0);  // the application has the signal for a moment
  ck_assert(r.is_resting());
  ck_assert_uint_eq(r.times(), 0);
  ck_assert_int_gt(r.opened(false), 0);
  ck_assert(!r.is_resting());
  ck_assert(r.is_due());  // the mask is looked at again
  r.begin_rest();
  r.armed_late();
  ck_assert(!r.is_resting());
}
END_TEST

}  // namespace

int main() { return run_tests("reopening"); }
