// pace.h: how often the sockets are looked at while the host polls shared memory too.
#include "ch_lite/pace.h"

#include "run_tests.h"

using ch_lite::Pace;

namespace {

// `waits` visits of `polls` polls each, during which nothing happens here. Returns how many of the polls looked.
int wait_elsewhere(Pace& pace, int waits, int polls, bool outstanding, std::uint64_t events = 0) {
  int looks = 0;
  for (int i = 0; i < waits; ++i)
    for (int poll = 1; poll <= polls; ++poll) looks += pace.look(poll, events, outstanding) ? 1 : 0;
  return looks;
}

Pace with_shared_memory() {
  Pace pace;
  pace.set_on(true);
  return pace;
}

START_TEST(without_shared_memory_every_poll_looks) {
  Pace pace;
  ck_assert_int_eq(wait_elsewhere(pace, 100, 10, false), 1000);
  ck_assert(!pace.seldom());
}
END_TEST

START_TEST(waits_that_end_elsewhere_make_looks_seldom) {
  for (const bool outstanding : {false, true}) {
    Pace pace = with_shared_memory();
    // the fifth wait begins after four have ended
    ck_assert_int_eq(wait_elsewhere(pace, Pace::kWaitsNeeded, 10, outstanding), Pace::kWaitsNeeded * 10);
    const int stride = outstanding ? Pace::kBusyStride : Pace::kQuietStride;
    ck_assert_int_eq(wait_elsewhere(pace, 100, stride, outstanding), 100);
    ck_assert(pace.seldom());
  }
}
END_TEST

START_TEST(what_happens_here_makes_every_poll_look_again) {
  Pace pace = with_shared_memory();
  wait_elsewhere(pace, 100, 10, true);
  ck_assert(pace.look(2, 1, true));
  ck_assert(!pace.seldom());
  ck_assert_int_eq(wait_elsewhere(pace, 1, 1000, true, 1), 1000);
}
END_TEST

START_TEST(waits_that_end_here_now_and_then_keep_every_poll_looking) {
  Pace pace = with_shared_memory();
  std::uint64_t events = 0;
  for (int i = 0; i < 100; ++i) {
    ck_assert_int_eq(wait_elsewhere(pace, Pace::kWaitsNeeded - 1, 10, true, events), (static_cast<int>(Pace::kWaitsNeeded) - 1) * 10);
    ck_assert(pace.look(1, events, true));
    ck_assert(pace.look(2, ++events, true));
  }
}
END_TEST

START_TEST(event_of_the_last_poll_counts_for_that_wait_although_the_next_one_finds_it) {
  Pace pace = with_shared_memory();
  std::uint64_t events = 0;
  for (int i = 0; i < 100; ++i, ++events) ck_assert_int_eq(wait_elsewhere(pace, 1, 10, true, events), 10);
}
END_TEST

START_TEST(single_polls_with_something_outstanding_look_each_time) {
  Pace pace = with_shared_memory();
  wait_elsewhere(pace, 100, 10, true);
  wait_elsewhere(pace, Pace::kTestsBusy, 1, true);
  ck_assert_int_eq(wait_elsewhere(pace, 1000, 1, true), 1000);
}
END_TEST

START_TEST(single_polls_look_each_time_after_a_while_with_nothing_outstanding) {
  Pace pace = with_shared_memory();
  wait_elsewhere(pace, 100, 10, false);
  wait_elsewhere(pace, Pace::kTestsQuiet, 1, false);
  ck_assert_int_eq(wait_elsewhere(pace, 1000, 1, false), 1000);
}
END_TEST

START_TEST(visits_are_counted_by_their_first_poll) {
  Pace pace;
  wait_elsewhere(pace, 7, 3, false);
  ck_assert_uint_eq(pace.waits(), 7);
}
END_TEST

}  // namespace

int main() {
  return run_tests("pace", {without_shared_memory_every_poll_looks, waits_that_end_elsewhere_make_looks_seldom, what_happens_here_makes_every_poll_look_again,
                            waits_that_end_here_now_and_then_keep_every_poll_looking,
                            event_of_the_last_poll_counts_for_that_wait_although_the_next_one_finds_it,
                            single_polls_with_something_outstanding_look_each_time,
                            single_polls_look_each_time_after_a_while_with_nothing_outstanding, visits_are_counted_by_their_first_poll});
}
