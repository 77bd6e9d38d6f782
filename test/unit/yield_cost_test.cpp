// yield_cost.h: when the core is given away by a sleep.
#include "mplite/tuning/yield_cost.h"

#include "run_tests.h"

using mplite::YieldCost;

namespace {

// How many of the next `count` are sleeps, where a yield takes `yield_ns`.
int sleeps(YieldCost& cost, int count, std::int64_t yield_ns) {
  int found = 0;
  for (int i = 0; i < count; ++i) {
    if (cost.sleep())
      ++found;
    else
      cost.took(yield_ns);
  }
  return found;
}

}  // namespace

START_TEST(cheap_yields_stay_yields) {
  YieldCost cost;
  ck_assert_int_eq(sleeps(cost, 1000, 1'000), 0);
  ck_assert_int_eq(sleeps(cost, 1000, YieldCost::kDearNs / 2), 0);
}
END_TEST

START_TEST(dear_yields_become_sleeps_but_for_one_in_many) {
  YieldCost cost;
  sleeps(cost, 100, 3 * YieldCost::kDearNs);
  const int every = static_cast<int>(YieldCost::kTryEvery);
  ck_assert_int_eq(sleeps(cost, 100 * every, 3 * YieldCost::kDearNs), 100 * (every - 1));
}
END_TEST

START_TEST(one_dear_yield_among_cheap_ones_changes_nothing) {
  YieldCost cost;
  for (int i = 0; i < 100; ++i) {
    ck_assert(!cost.sleep());
    cost.took(4 * YieldCost::kDearNs);
    ck_assert_int_eq(sleeps(cost, 50, 1'000), 0);
  }
}
END_TEST

START_TEST(yields_come_back_when_they_are_cheap_again) {
  YieldCost cost;
  sleeps(cost, 1000, 1'000'000'000);  // a whole second
  ck_assert_int_gt(sleeps(cost, 100, 1'000), 90);
  sleeps(cost, 1000, 1'000);
  ck_assert_int_eq(sleeps(cost, 100, 1'000), 0);
}
END_TEST

// How long `count` waits take that end after the core has been given away once, in ns.
std::int64_t time_of(YieldCost& cost, int count, std::int64_t yield_ns, std::int64_t sleep_ns) {
  const std::int64_t asleep = sleeps(cost, count, yield_ns);
  return asleep * sleep_ns + (count - asleep) * yield_ns;
}

// A program of 3000 messages beside others in a throttled cgroup: five minutes, or not.
START_TEST(many_short_waits_do_not_add_up_to_minutes) {
  constexpr std::int64_t kSecond = 1'000'000'000, kYield = kSecond / 10, kSleep = 1'000'000;
  YieldCost on, off;
  off.set_on(false);
  ck_assert_int_ge(time_of(off, 3000, kYield, kSleep), 300 * kSecond);
  ck_assert_int_le(time_of(on, 3000, kYield, kSleep), 15 * kSecond);
}
END_TEST

START_TEST(off_it_never_sleeps) {
  YieldCost cost;
  cost.set_on(false);
  for (int i = 0; i < 1000; ++i) {
    cost.took(YieldCost::kCountedMaxNs);
    ck_assert(!cost.sleep());
  }
}
END_TEST

int main() { return run_tests("yield_cost"); }
