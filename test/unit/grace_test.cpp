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
    armed += grace.leave(kind, true, *now) ? 1 : 0;
    *now += away_ns;
    grace.came_back(*now, true);
    *now += kUs;
  }
  return armed;
}

START_TEST(first_departures_are_armed_until_the_application_has_proved_quick) {
  Grace grace;
  std::int64_t now = 1;
  ck_assert_int_eq(leave_and_return(grace, kSend, 100, 5 * kUs, &now), Grace::kQuickNeeded);
  ck_assert(!grace.leave(kSend, true, now));
  ck_assert(grace.waiting());
}
END_TEST

// Armed once, what comes is received in the gap between two calls, and makes that long; it would
// stay armed for ever.
START_TEST(time_in_the_handler_is_not_the_applications_absence) {
  Grace grace;
  std::int64_t now = 1;
  for (std::uint32_t i = 0; i < Grace::kQuickNeeded; ++i) {
    ck_assert(grace.leave(kReceive, true, now));
    now += 301 * kUs;
    grace.handled(200 * kUs);
    grace.handled(100 * kUs);
    grace.came_back(now, true);
    grace.handled(300 * kUs);  // in a call: nothing to do with any absence
    now += kUs;
  }
  ck_assert(!grace.leave(kReceive, true, now));
  now += 401 * kUs;
  grace.handled(300 * kUs);
  grace.came_back(now, true);  // this was too long by itself
  ck_assert(grace.leave(kReceive, true, now));
}
END_TEST

START_TEST(kinds_of_calls_are_trusted_apart) {
  Grace grace;
  std::int64_t now = 1;
  // Irecv is followed at once by Isend, Isend by a long computation: the overlap pattern
  for (int i = 0; i < 100; ++i) {
    ck_assert(i < static_cast<int>(Grace::kQuickNeeded) || !grace.leave(kReceive, true, now));
    if (i < static_cast<int>(Grace::kQuickNeeded)) grace.leave(kReceive, true, now);
    now += kUs;
    ck_assert(grace.leave(kSend, true, now));
    now += 30'000 * kUs;
    grace.came_back(now, true);
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
  grace.set_weighing(false);
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
  ck_assert(!grace.leave(kSend, true, now));
  ck_assert_int_gt(grace.until_arm_ns(now + Grace::kBackstopMinNs - 1), 0);
  ck_assert_int_le(grace.until_arm_ns(now + Grace::kBackstopMinNs), 0);
  grace.ran_out();
  ck_assert(!grace.waiting());
  now += 1000 * kUs;
  grace.came_back(now, true);
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
    ck_assert(!grace.leave(kSend, true, now));
    grace.ran_out();
    now += 1000 * kUs;
    grace.came_back(now, true);
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
      ck_assert(!grace.leave(kSend, true, now));
      if (i >= 10) lost_ns += grace.backstop_ns();
      grace.ran_out();
      now += grace.backstop_ns();
      grace.came_back(now, true);
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
  grace.leave(kSend, true, now);
  grace.put_off();
  ck_assert(grace.waiting());  // it is still away
  grace.useless();
  ck_assert(!grace.waiting());
  for (std::int64_t wanted = Grace::kBackstopMaxNs / 4; wanted >= Grace::kBackstopMinNs;
       wanted /= 4) {
    grace.distrust();
    ck_assert_int_eq(grace.backstop_ns(), wanted);
  }
  grace.distrust();
  ck_assert_int_eq(grace.backstop_ns(), Grace::kBackstopMinNs);
  for (std::uint32_t i = 0; i + 3 < Grace::kHalvesToDouble; ++i) grace.put_off();
  grace.useless();
  ck_assert_int_eq(grace.backstop_ns(), Grace::kBackstopMinNs);
  grace.put_off();
  ck_assert_int_eq(grace.backstop_ns(), 2 * Grace::kBackstopMinNs);
}
END_TEST

// What came while it was away could have waited: a halo exchange that computes for tens of
// microseconds is not armed for that any more.
START_TEST(useless_absences_earn_trust_and_heavy_ones_if_they_are_short) {
  const struct {
    bool heavy, useful, weighs;
    std::int64_t away_us;
    bool trusted;
  } rows[] = {
      {false, false, true, 30, true},   {false, false, true, 50'000, true},
      {false, true, true, 30, false},   {false, true, true, 799, false},
      {true, false, true, 30, true},    {true, false, true, 99, true},
      {true, false, true, 100, false},  {true, true, true, 30, false},
      {false, false, false, 30, false},
  };
  for (const auto& row : rows) {
    Grace grace;
    grace.set_weighing(row.weighs);
    std::int64_t now = 1;
    for (std::uint32_t i = 0; i < Grace::kQuickNeeded; ++i) {
      ck_assert(grace.leave(kSend, row.heavy, now));
      now += row.away_us * kUs;
      grace.came_back(now, row.useful);
    }
    ck_assert_msg(!grace.leave(kSend, row.heavy, now) == row.trusted,
                  "heavy %d, useful %d, away %lld us", row.heavy, row.useful,
                  static_cast<long long>(row.away_us));
  }
}
END_TEST

START_TEST(light_and_heavy_departures_are_trusted_apart) {
  Grace grace;
  std::int64_t now = 1;
  for (int i = 0; i < 100; ++i) {
    ck_assert(grace.leave(kSend, true, now));
    now += 300 * kUs;
    grace.came_back(now, true);
    const bool armed = grace.leave(kSend, false, now);
    ck_assert(armed == (i < static_cast<int>(Grace::kQuickNeeded)));
    now += 30 * kUs;
    grace.came_back(now, false);
  }
}
END_TEST

// Nobody sees without arming what that would be good for.
START_TEST(one_absence_in_many_is_armed_to_see_what_that_is_good_for) {
  Grace grace;
  std::int64_t now = 1;
  const auto go = [&](int times, std::int64_t away_us, bool useful) {
    int armed = 0;
    for (int i = 0; i < times; ++i) {
      const bool now_armed = grace.leave(kSend, false, now);
      armed += now_armed ? 1 : 0;
      now += away_us * kUs;
      grace.came_back(now, now_armed && useful);
    }
    return armed;
  };
  const int most = static_cast<int>(Grace::kUnseenMost);
  go(16, 30, false);
  ck_assert_int_eq(go(10 * (most + 1), 30, false), 10);
  ck_assert_int_eq(go(1000, 1, false), 0);  // soon back: nothing was missed
  // Then it is of use, every time. After so many soon returns the second look takes the trust away.
  ck_assert_int_eq(go(2 * (most + 1), 300, true), 2);
  ck_assert_int_eq(go(100, 300, true), 100);
  // An armed departure that is soon over tells nothing: the next one is armed, too.
  ck_assert_int_eq(go(16, 30, false), 16);
  ck_assert_int_eq(go(most, 30, false), 0);
  ck_assert_int_eq(go(5, 1, false), 5);
  ck_assert_int_eq(go(1, 30, false), 1);
  ck_assert_int_eq(go(1, 30, false), 0);
}
END_TEST

// Armed late for nothing, later the next time; for something, at once.
START_TEST(patience_grows_where_arming_late_was_useless) {
  Grace grace;
  std::int64_t now = 1;
  leave_and_return(grace, kSend, 50, kUs, &now);
  const auto arm_late = [&](bool heavy, bool useful) {
    ck_assert(!grace.leave(kSend, heavy, now));
    const std::int64_t patience_ns = grace.until_arm_ns(now);
    ck_assert(patience_ns == Grace::kBackstopMinNs || grace.backstop_ns() >= 2 * patience_ns);
    now += patience_ns;
    grace.ran_out();
    now += 10 * kUs;
    grace.came_back(now, useful);
    return patience_ns / kUs;
  };
  for (int i = 0; i < 20; ++i) {  // of light departures
    grace.leave(kSend, false, now);
    grace.came_back(now += kUs, false);
  }
  ck_assert_int_eq(arm_late(false, false), 100);
  ck_assert_int_eq(arm_late(false, false), 200);
  ck_assert_int_eq(arm_late(false, false), 400);
  ck_assert_int_eq(arm_late(false, true), 800);
  ck_assert(grace.leave(kSend, false, now));
  for (int i = 0; i < 100; ++i) {
    grace.came_back(now += kUs, false);
    grace.leave(kSend, false, now);
  }
  grace.came_back(now += kUs, false);
  ck_assert_int_eq(arm_late(false, false), 100);
  // Heavy ones have none to learn: away for so long, they are armed at once the next time.
  ck_assert_int_eq(arm_late(true, false), 100);
  ck_assert(grace.leave(kSend, true, now));
}
END_TEST

// The application blocks the timer's signal, or takes what it has raised.
START_TEST(long_absence_that_no_timer_has_seen_takes_the_trust_away) {
  Grace grace;
  std::int64_t now = 1;
  leave_and_return(grace, kSend, 5000, kUs, &now);
  for (int i = 0; i < 20; ++i) {  // of light departures
    grace.leave(kSend, false, now);
    grace.came_back(now += kUs, false);
  }
  ck_assert(!grace.leave(kSend, false, now));
  grace.came_back(now += Grace::kUnwatchedNs - 1, false);
  ck_assert(!grace.leave(kSend, false, now));
  grace.came_back(now += Grace::kUnwatchedNs, false);
  ck_assert(grace.leave(kSend, false, now));
}
END_TEST

// It arms for something gathered, too, when nothing was outstanding.
START_TEST(late_arming_is_of_the_departure_that_it_belongs_to) {
  Grace grace;
  std::int64_t now = 1;
  grace.ran_out();
  for (std::uint32_t i = 0; i < Grace::kQuickNeeded; ++i) {
    ck_assert(grace.leave(kSend, false, now));
    grace.came_back(now += 30 * kUs, i == 0);
  }
  ck_assert(grace.leave(kSend, false, now));
  grace.came_back(now += 30 * kUs, false);
  ck_assert(!grace.leave(kSend, false, now));
  ck_assert_int_eq(grace.until_arm_ns(now), Grace::kBackstopMinNs);
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
