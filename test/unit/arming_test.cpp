// arming.h: what is decided at a departure, when the timer goes off, and when a wait begins.
#include "mplite/tuning/arming.h"

#include "run_tests.h"

using namespace mplite;

namespace {

using Departure = ArmingPolicy::Departure;
using Alarm = ArmingPolicy::Alarm;

constexpr std::int64_t kUs = 1000;
constexpr int kSend = 1;

// One that trusts kSend: the application has always been straight back.
void make_trusting(ArmingPolicy& policy, std::int64_t* now) {
  for (std::uint32_t i = 0; i < Grace::kQuickNeeded; ++i) {
    ck_assert(policy.leave(kSend, true, *now, true, true) == Departure::kArm);
    *now += 5 * kUs;
    policy.came_back(*now, true);
    *now += kUs;
  }
}

START_TEST(what_the_way_out_is_to_look_at) {
  struct Row {
    bool can, host, always, grace, armed;
    int idle, outstanding;
  };
  constexpr Row kRows[] = {
      {false, true, true, true, false, 0, 0},  // stopped, or sync
      {true, false, false, false, false, 0, 1},
      {true, false, false, false, true, 0, 0},
      {true, false, false, true, true, 0, 1},   // grace may find that it need not be armed
      {true, false, true, false, false, 1, 1},  // several threads: somebody else's may be
                                                // outstanding
      {true, false, true, false, true, 0, 0},
      {true, true, false, false, true, 1, 1},
  };
  for (const Row& row : kRows) {
    ArmingPolicy policy;
    policy.set_grace(row.grace);
    policy.set_always(row.always);
    const ArmingPolicy::Wants wants = policy.wants(row.can, row.host, row.armed);
    ck_assert_int_eq(wants.idle, row.idle);
    ck_assert_int_eq(wants.outstanding, row.outstanding);
  }
}
END_TEST

START_TEST(who_is_trusted_leaves_with_a_timer_and_others_armed) {
  ArmingPolicy policy;
  std::int64_t now = 1;
  make_trusting(policy, &now);
  ck_assert(policy.leave(kSend, true, now, false, true) == Departure::kArm);  // no timer, no grace
  ck_assert(policy.leave(kSend, true, now, true, false) == Departure::kArm);  // owner of just now
  ck_assert(policy.leave(kSend, true, now, true, true) == Departure::kSetTimer);
  ck_assert_int_eq(policy.departure_timer_ns(now), Grace::kBackstopMinNs);
  ArmingPolicy off;
  off.set_grace(false);
  ck_assert(off.leave(kSend, true, now, true, true) == Departure::kArm);
}
END_TEST

START_TEST(several_threads_are_never_trusted) {
  ArmingPolicy policy;
  std::int64_t now = 1;
  make_trusting(policy, &now);
  policy.set_always(true);
  ck_assert(policy.leave(kSend, true, now, true, true) == Departure::kArm);
  ck_assert(policy.needs_progress(false));
  policy.set_always(false);
  ck_assert(policy.leave(kSend, true, now, true, true) == Departure::kSetTimer);
  ck_assert(!policy.needs_progress(false));
}
END_TEST

START_TEST(a_timer_that_is_set_is_kept_until_half_of_its_delay_is_over) {
  struct Row {
    std::int64_t due_in_ns;
    bool guarding;
    Departure departure;
  };
  constexpr std::int64_t kDelay = Grace::kBackstopMinNs;
  constexpr Row kRows[] = {
      {kDelay, false, Departure::kWatched},
      {kDelay / 2 + 1, false, Departure::kWatched},
      {kDelay / 2, false, Departure::kSetTimer},
      {kDelay / 2, true, Departure::kWatched},
      {kDelay + 1, false, Departure::kSetTimer},  // it was to check after an armed signal
      {-ArmingPolicy::kOverdueNs, true, Departure::kSetTimer},
  };
  for (const Row& row : kRows) {
    ArmingPolicy policy;
    std::int64_t now = 1;
    make_trusting(policy, &now);
    policy.timer_set(now + row.due_in_ns);
    if (row.guarding) policy.guard(now, ArmingPolicy::kGatherNs);
    ck_assert(policy.leave(kSend, true, now, true, true) == row.departure);
  }
}
END_TEST

START_TEST(a_timer_for_what_is_gathered_leaves_time_for_more) {
  ArmingPolicy policy;
  ck_assert(!policy.guard(1, ArmingPolicy::kGatherNs));
  policy.timer_set(1 + ArmingPolicy::kGatherNs);
  ck_assert(policy.guard(1, ArmingPolicy::kGatherNs));
  ck_assert(!policy.guard(1 + ArmingPolicy::kGatherNs / 2, ArmingPolicy::kGatherNs));  // too soon
  policy.timer_set(1 + ArmingPolicy::kCompanyNs);
  ck_assert(policy.guard(1, ArmingPolicy::kCompanyNs));
  ck_assert(!policy.guard(1, ArmingPolicy::kGatherNs));  // others do not wait that long
  policy.timer_set(1 + ArmingPolicy::kGatherNs);
  ck_assert(!policy.guard(0, ArmingPolicy::kGatherNs));  // too late
  ck_assert(policy.timer_fired());
  ck_assert(!policy.timer_fired());
  ck_assert(!policy.guard(1, ArmingPolicy::kGatherNs));
}
END_TEST

START_TEST(a_backstop_that_guards_what_is_gathered_is_not_put_off) {
  ArmingPolicy policy;
  std::int64_t now = 1;
  make_trusting(policy, &now);
  policy.timer_set(now + ArmingPolicy::kGatherNs / 2 + 5 * kUs);  // nearly due, as a backstop
  ck_assert(policy.leave(kSend, true, now, true, true) == Departure::kSetTimer);
  policy.came_back(now, true);
  ck_assert(policy.guard(now, ArmingPolicy::kGatherNs));
  ck_assert(policy.leave(kSend, true, now, true, true) == Departure::kWatched);
  ck_assert(policy.timer_fired());
}
END_TEST

START_TEST(the_timer_arms_who_stays_away_and_nobody_else) {
  struct Row {
    bool left, outstanding;
    std::int64_t away_ns;
    Alarm::Kind kind;
  };
  constexpr Row kRows[] = {
      {false, true, Grace::kBackstopMinNs, Alarm::kNothing},
      {true, false, Grace::kBackstopMinNs, Alarm::kNothing},
      {true, true, Grace::kBackstopMinNs - 1, Alarm::kWait},
      {true, true, Grace::kBackstopMinNs, Alarm::kArm},
  };
  for (const Row& row : kRows) {
    ArmingPolicy policy;
    std::int64_t now = 1;
    make_trusting(policy, &now);
    if (row.left) ck_assert(policy.leave(kSend, true, now, true, true) == Departure::kSetTimer);
    policy.timer_set(now + row.away_ns);
    const bool guarded = policy.timer_fired();
    ck_assert(!policy.is_timer_set());
    const Alarm alarm = policy.alarm(now + row.away_ns, guarded, false, row.outstanding);
    ck_assert_int_eq(alarm.kind, row.kind);
    if (row.kind == Alarm::kWait) ck_assert_int_eq(alarm.delay_ns, 1);
  }
}
END_TEST

START_TEST(armed_by_a_timer_the_mask_is_looked_at_again_until_it_is_unarmed) {
  ArmingPolicy policy;
  std::int64_t now = 1;
  ck_assert_int_eq(policy.alarm(now, false, true, true).kind, Alarm::kNothing);  // not by the timer
  make_trusting(policy, &now);
  ck_assert(policy.leave(kSend, true, now, true, true) == Departure::kSetTimer);
  ck_assert_int_eq(policy.armed_late(), Reopening::kMinNs);
  ck_assert_int_eq(policy.alarm(now, false, true, true).kind, Alarm::kOpenAgain);
  now += 200 * kUs;
  ck_assert(policy.leave(kSend, true, now, true, true) == Departure::kArm);  // the trust is lost
  policy.alarm(now, false, false, false);  // unarmed since: nothing to check any more
  ck_assert_int_eq(policy.alarm(now, false, true, true).kind, Alarm::kNothing);
}
END_TEST

START_TEST(a_rest_ends_with_the_timer_and_waits_for_what_is_gathered) {
  ArmingPolicy p;
  ck_assert(p.may_rest());
  p.timer_set(2'000'000);
  p.begin_rest();
  ck_assert(!p.timer_fired());
  ck_assert_int_eq(p.alarm(2'000'000, false, true, true).kind, Alarm::kOpenAgain);
  p.reopening().opened(true);
  // Again and again, where somebody blocks it again and again.
  ck_assert_int_eq(p.alarm(4'000'000, false, true, true).kind, Alarm::kOpenAgain);
  p.guard(5'000'000, ArmingPolicy::kGatherNs);
  p.timer_set(5'000'000 + ArmingPolicy::kGatherNs);
  ck_assert(!p.may_rest());
}
END_TEST

// The timer's signal is the application's at any time.
START_TEST(a_rest_whose_timer_went_to_somebody_else_is_noticed) {
  constexpr std::int64_t kDue = 7'000'000;
  ArmingPolicy p;
  ck_assert(!p.has_overslept(kDue));
  p.timer_set(kDue);
  p.begin_rest();
  ck_assert(!p.has_overslept(kDue));
  ck_assert(p.has_overslept(kDue + ArmingPolicy::kOverdueNs));
  p.timer_gone();
  ck_assert(p.has_overslept(1));
  p.reopening().disarmed();
  ck_assert(!p.has_overslept(1));
}
END_TEST

// It says nothing of how soon the application comes back.
START_TEST(a_timer_that_ends_a_rest_in_vain_is_not_set_later_for_that) {
  ArmingPolicy p;
  std::int64_t now = 1;
  make_trusting(p, &now);
  const std::int64_t before_ns = p.departure_timer_ns(now);
  for (int i = 0; i < 100; ++i) {
    p.timer_set(now + 2'000'000);
    p.begin_rest();
    p.reopening().disarmed();
    p.timer_fired();
    ck_assert_int_eq(p.alarm(now, false, false, false).kind, Alarm::kNothing);
  }
  ck_assert_int_eq(p.departure_timer_ns(now), before_ns);
}
END_TEST

START_TEST(the_helper_is_told_of_the_first_departure_and_watches_on) {
  ArmingPolicy policy;
  std::int64_t now = 1;
  make_trusting(policy, &now);
  Grace::Sleep sleep;
  ck_assert_int_eq(policy.helper_sleep_ns(sleep, now), -1);
  ck_assert(!policy.leave_to_helper(kSend, true, now));
  ck_assert(policy.watch_departure(true));
  ck_assert_int_eq(policy.helper_sleep_ns(sleep, now), Grace::kBackstopMinNs);
  policy.came_back(now + kUs, true);
  ck_assert(!policy.helper_alarm(now + 2 * kUs, true));
  ck_assert(policy.is_timer_set());  // it left since: once more
  ck_assert(!policy.leave_to_helper(kSend, true, now + 3 * kUs));
  ck_assert(!policy.watch_departure(true));
  policy.came_back(now + 4 * kUs, true);
  ck_assert(!policy.helper_alarm(now + 5 * kUs, true));
  ck_assert(!policy.helper_alarm(now + 6 * kUs, true));
  ck_assert(!policy.is_timer_set());  // nobody has left since
  ck_assert(!policy.leave_to_helper(kSend, true, now + 7 * kUs));
  ck_assert(policy.watch_departure(true));
  ck_assert(!policy.helper_alarm(now + 8 * kUs, true));  // not away for long enough
  ck_assert(policy.helper_alarm(now + 7 * kUs + Grace::kBackstopMinNs, true));
  ck_assert(!policy.watch_departure(false));
}
END_TEST

START_TEST(waiting_for_handshakes_has_an_allowance) {
  ArmingPolicy policy;
  policy.waited_for_handshake(ArmingPolicy::kHandshakesNs, false);  // it was made
  ck_assert(policy.outlasts_handshakes());
  for (int i = 0; i < 20; ++i) {
    ck_assert(policy.outlasts_handshakes());
    policy.waited_for_handshake(ArmingPolicy::kHandshakeNs, true);
  }
  ck_assert(!policy.outlasts_handshakes());
}
END_TEST

START_TEST(sockets_raise_no_signals_after_enough_waits_that_were_not_armed) {
  for (const unsigned connections : {1u, ArmingPolicy::kColdAfterWaits, 100u}) {
    ArmingPolicy policy;
    unsigned waits = 1;
    while (!policy.is_cold(connections)) ++waits;
    ck_assert_uint_eq(waits, connections < ArmingPolicy::kColdAfterWaits
                                 ? ArmingPolicy::kColdAfterWaits
                                 : connections);
    policy.armed_on_leaving();
    ck_assert(!policy.is_cold(connections));
  }
}
END_TEST

}  // namespace

int main() { return run_tests("arming"); }
