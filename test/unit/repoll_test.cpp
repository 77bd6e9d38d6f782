// repoll.h: its decisions, as a table of events.
#include "mplite/tuning/repoll.h"

#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(what_is_allowed_is_for_one_poll) {
  Repoll repoll;
  ck_assert_int_eq(repoll.take(true), 0);
  repoll.allow(Repoll::kTimes);
  ck_assert_int_eq(repoll.take(true), Repoll::kTimes);
  ck_assert_int_eq(repoll.take(true), 0);
}
END_TEST

START_TEST(long_messages_are_not_tried_for_again) {
  Repoll repoll;
  repoll.allow(Repoll::kTimes);
  ck_assert_int_eq(repoll.take(false), 0);
  ck_assert_int_eq(repoll.take(true), 0);  // that poll is over
}
END_TEST

START_TEST(off_nothing_is_allowed) {
  Repoll repoll;
  repoll.set_on(false);
  repoll.allow(Repoll::kTimes);
  ck_assert_int_eq(repoll.take(true), 0);
}
END_TEST

}  // namespace

int main() { return run_tests("repoll"); }
