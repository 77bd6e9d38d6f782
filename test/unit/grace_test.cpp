// grace.h: when leaving the library is not armed, and what a wrong guess costs.
#include "mplite/tuning/grace.h"

#include <algorithm>

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::int64_t kUs = 1000;
constexpr int kSend = 1, kReceive = 2;

// `times` departures by `kind` at `*now`, each followed by a return after `away_ns`. Returns how
// many of them were to be armed.
int leave_and_return(Grace& grace, int kind, int times, std::int64_t away_ns, std::int64_t* now) {
  int armed = 0;
  for (int i = 0; i < times; ++i) {
    armed += grace.leave(kind, *now) ? 1 : 0;
    *now += away_ns;
    grace.came_back(*now);
    *now += kUs;
  }
  return armed;
}

START_TEST(first_departures_are_armed_until_the_application_has_proved_quick) {
  Grace grace;
  std::int64_t now = 1;
  ck_assert_int_eq(leave_and_return(grace, kSend, 100, 5 * kUs, &now), Grace::kQuickNeeded);
  ck_assert(!grace.leave(kSend, now));
  ck_assert(grace.waiting());
}
END_TEST

// Armed once, what comes is received in the gap between two calls, and makes that long; it would
// stay armed for ever.
START_TEST(time_in_the_handler_is_not_the_applications_absence) {
  Grace grace;
  std::int64_t now = 1;
  for (std::uint32_t i = 0; i < Grace::kQuickNeeded; ++i) {
    ck_assert(grace.leave(kReceive, now));
    now += 301 * kUs;
    grace.handled(200 * kUs);
    grace.handled(100 * kUs);
    grace.came_back(now);
    grace.handled(300 * kUs);  // in a call: nothing to do with any absence
    now += kUs;
  }
  ck_assert(!grace.leave(kReceive, now));
  now += 321 * kUs;
  grace.handled(300 * kUs);
  grace.came_back(now);  // this was too long by itself
  ck_assert(grace.leave(kReceive, now));
}
END_TEST

START_TEST(kinds_of_calls_are_trusted_apart) {
  Grace grace;
  std::int64_t now = 1;
  // Irecv is followed at once by Isend, Isend by a long computation: the overlap pattern
  for (int i = 0; i < 100; ++i) {
    ck_assert(i < static_cast<int>(Grace::kQuickNeeded) || !grace.leave(kReceive, now));
    if (i < static_cast<int>(Grace::kQuickNeeded)) grace.leave(kReceive, now);
    now += kUs;
    ck_assert(grace.leave(kSend, now));
    now += 30'000 * kUs;
    grace.came_back(now);
    now += kUs;
  }
}
END_TEST

START_TEST(one_long_absence_takes_the_trust_away) {
  Grace grace;
  std::int64_t now = 1;
  leave_and_return(grace, kSend, 50, kUs, &now);
  ck_assert_int_eq(leave_and_return(grace, kSend, 1, Grace::kBackstopMinNs, &now), 0);
  ck_assert_int_eq(leave_and_return(grace, kSend, 50, kUs, &now), Grace::kQuickNeeded);
}
END_TEST

START_TEST(absence_shorter_than_the_backstop_halves_what_was_earned) {
  Grace grace;
  std::int64_t now = 1;
  leave_and_return(grace, kSend, 50, kUs, &now);
  ck_assert_int_eq(leave_and_return(grace, kSend, 1, Grace::kSoonNs, &now), 0);
  ck_assert_int_eq(leave_and_return(grace, kSend, 1, Grace::kBackstopMinNs - 1, &now),
                   0);  // 25 are left, then 12
  ck_assert_int_eq(leave_and_return(grace, kSend, 50, kUs, &now), Grace::kQuickNeeded - 12);
  // Once in a hundred, for ever: it stays trusted.
  for (int i = 0; i < 100; ++i) {
    ck_assert_int_eq(leave_and_return(grace, kSend, 100, kUs, &now), 0);
    ck_assert_int_eq(leave_and_return(grace, kSend, 1, 2 * Grace::kSoonNs, &now), 0);
  }
}
END_TEST

START_TEST(backstop_arms_and_makes_trust_dearer) {
  Grace grace;
  std::int64_t now = 1;
  leave_and_return(grace, kSend, 50, kUs, &now);
  ck_assert(!grace.leave(kSend, now));
  ck_assert_int_gt(grace.until_arm_ns(now + Grace::kBackstopMinNs - 1), 0);
  ck_assert_int_le(grace.until_arm_ns(now + Grace::kBackstopMinNs), 0);
  grace.ran_out();
  ck_assert(!grace.waiting());
  now += 1000 * kUs;
  ck_assert_int_eq(leave_and_return(grace, kSend, 1000, kUs, &now),
                   4 * static_cast<int>(Grace::kQuickNeeded));
}
END_TEST

START_TEST(wrong_guess_in_hundreds_costs_no_trust) {
  Grace grace;
  std::int64_t now = 1;
  const int rare = static_cast<int>(Grace::kQuickNeeded + Grace::kRareAfter);
  leave_and_return(grace, kSend, rare, kUs, &now);
  for (int i = 0; i < 100; ++i) {
    ck_assert(!grace.leave(kSend, now));
    grace.ran_out();
    now += 1000 * kUs;
    ck_assert_int_eq(leave_and_return(grace, kSend, static_cast<int>(Grace::kRareAfter), kUs, &now),
                     0);
  }
  // the second one of two in a row does
  leave_and_return(grace, kSend, 2, Grace::kBackstopMinNs, &now);
  ck_assert_int_eq(leave_and_return(grace, kSend, 1000, kUs, &now),
                   static_cast<int>(Grace::kQuickNeeded));
}
END_TEST

// A wrong guess every so often costs a part of the time between two.
START_TEST(delay_follows_the_time_between_departures_that_last) {
  Grace grace;
  std::int64_t now = 1;
  for (const std::int64_t between_ns : {50'000 * kUs, 2'000 * kUs}) {
    std::int64_t lost_ns = 0;
    for (int i = 0; i < 100; ++i) {
      for (std::int64_t quiet_ns = 0; quiet_ns < between_ns; quiet_ns += grace.backstop_ns() / 2)
        grace.put_off();
      leave_and_return(grace, kSend, 2 * static_cast<int>(Grace::kRareAfter), kUs, &now);
      ck_assert(!grace.leave(kSend, now));
      if (i >= 10) lost_ns += grace.backstop_ns();
      grace.ran_out();
    }
    ck_assert_int_le(lost_ns, 90 * between_ns / 2);
    ck_assert_int_ge(lost_ns, 90 * std::min(between_ns / 20, Grace::kBackstopMaxNs / 4));
  }
}
END_TEST

START_TEST(useless_backstop_comes_less_often_up_to_a_bound) {
  Grace grace;
  ck_assert_int_eq(grace.backstop_ns(), Grace::kBackstopMinNs);
  // Never later than a quarter of the time for which none was needed: each is put off when half of
  // its delay is over.
  std::int64_t quiet_ns = 0;
  for (int i = 0; i < 100; ++i) {
    ck_assert(grace.backstop_ns() == Grace::kBackstopMinNs ||
              grace.backstop_ns() <= quiet_ns / 4 + Grace::kBackstopMinNs);
    quiet_ns += i % 2 == 0 ? grace.backstop_ns() : grace.backstop_ns() / 2;
    i % 2 == 0 ? grace.useless() : grace.put_off();
  }
  ck_assert_int_eq(grace.backstop_ns(), Grace::kBackstopMaxNs);
  std::int64_t now = 1;
  leave_and_return(grace, kSend, 50, kUs, &now);
  grace.leave(kSend, now);
  grace.put_off();
  ck_assert(grace.waiting());  // it is still away
  grace.useless();
  ck_assert(!grace.waiting());
  for (std::int64_t wanted = Grace::kBackstopMaxNs / 4; wanted >= Grace::kBackstopMinNs;
       wanted /= 4) {
    grace.ran_out();
    ck_assert_int_eq(grace.backstop_ns(), wanted);
  }
  grace.ran_out();
  ck_assert_int_eq(grace.backstop_ns(), Grace::kBackstopMinNs);
  for (std::uint32_t i = 0; i + 3 < Grace::kHalvesToDouble; ++i) grace.put_off();
  grace.useless();
  ck_assert_int_eq(grace.backstop_ns(), Grace::kBackstopMinNs);
  grace.put_off();
  ck_assert_int_eq(grace.backstop_ns(), 2 * Grace::kBackstopMinNs);
}
END_TEST

START_TEST(interrupted_sleep_ends_when_it_would_have_ended) {
  Grace::Sleep sleep;
  ck_assert_int_eq(sleep.left_ns(1000 * kUs, 100 * kUs), 100 * kUs);
  ck_assert_int_eq(sleep.left_ns(1060 * kUs, 100 * kUs), 40 * kUs);
  ck_assert_int_eq(sleep.left_ns(1099 * kUs, 1600 * kUs),
                   1 * kUs);  // a longer one is the next sleep's
  ck_assert_int_eq(sleep.left_ns(1100 * kUs, 100 * kUs), 0);
  ck_assert_int_eq(sleep.left_ns(9000 * kUs, 100 * kUs), 0);  // overslept
}
END_TEST

START_TEST(switched_off_it_always_arms) {
  Grace grace;
  grace.set_on(false);
  std::int64_t now = 1;
  ck_assert_int_eq(leave_and_return(grace, kSend, 100, kUs, &now), 100);
}
END_TEST

}  // namespace

int main() { return run_tests("grace"); }
