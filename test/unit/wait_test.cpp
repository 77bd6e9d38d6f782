// wait.h: when a waiting rank polls, yields and sleeps.
#include "mplite/tuning/wait.h"

#include "mplite/config/knobs.h"
#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::int64_t kUs = 1000;

START_TEST(time_before_sleep_is_long_alone_and_grows_with_the_ranks_per_core) {
  const struct {
    int cores, ranks;
    std::int64_t sleep_after_us;
  } table[] = {{2, 1, 2000},   {2, 2, 2000},  {2, 3, 400},        {2, 4, 400}, {2, 8, 800},
               {64, 64, 2000}, {64, 65, 400}, {1, 1000, 200'000}, {0, 0, 2000}};
  for (const auto& row : table)
    ck_assert_int_eq(choose_wait_policy(row.cores, row.ranks, kSpinAuto, false).sleep_after_ns,
                     row.sleep_after_us * kUs);
}
END_TEST

START_TEST(knob_overrules_the_time_before_sleep) {
  ck_assert_int_eq(choose_wait_policy(2, 8, 0, false).sleep_after_ns, 0);
  ck_assert_int_eq(choose_wait_policy(2, 8, 50 * kUs, false).sleep_after_ns, 50 * kUs);
  ck_assert_int_lt(choose_wait_policy(2, 8, kSpinForever, false).sleep_after_ns, 0);
}
END_TEST

START_TEST(core_is_given_away_from_the_first_poll_when_ranks_share_it) {
  ck_assert_int_eq(decide(choose_wait_policy(2, 3, kSpinAuto, false), 0).kind, WaitStep::kYield);
  ck_assert_int_eq(decide(choose_wait_policy(2, 4, kSpinAuto, false), 0).kind, WaitStep::kYield);
}
END_TEST

START_TEST(core_of_its_own_is_polled_on_for_a_moment) {
  for (const int cores : {2, 4}) {
    const WaitPolicy policy = choose_wait_policy(cores, 2, kSpinAuto, false);
    ck_assert_int_eq(decide(policy, 0).kind, WaitStep::kPoll);
    ck_assert_int_eq(decide(policy, 19 * kUs).kind, WaitStep::kPoll);
    ck_assert_int_eq(decide(policy, 20 * kUs).kind, WaitStep::kYield);
  }
}
END_TEST

START_TEST(sleep_begins_at_the_limit_and_grows_to_the_maximum) {
  const WaitPolicy policy = choose_wait_policy(2, 2, kSpinAuto, false);
  ck_assert_int_eq(decide(policy, 2000 * kUs - 1).kind, WaitStep::kYield);
  ck_assert_int_eq(decide(policy, 2000 * kUs).kind, WaitStep::kSleep);
  ck_assert_int_eq(decide(policy, 2000 * kUs).timeout_ns, 250 * kUs);
  ck_assert_int_eq(decide(policy, 8000 * kUs).timeout_ns, 1000 * kUs);
  ck_assert_int_eq(decide(policy, INT64_MAX).timeout_ns, 100'000 * kUs);
  const WaitStep first = decide(choose_wait_policy(2, 4, kSpinAuto, false), 400 * kUs);
  ck_assert_int_eq(first.kind, WaitStep::kSleep);
  ck_assert_int_eq(first.timeout_ns, 50 * kUs);
}
END_TEST

START_TEST(sleeps_beside_shared_memory_begin_late_and_stay_in_proportion) {
  const WaitPolicy policy = choose_wait_policy(2, 2, kSpinAuto, true);
  ck_assert_int_eq(decide(policy, 4000 * kUs - 1).kind, WaitStep::kYield);
  ck_assert_int_eq(decide(policy, 4000 * kUs).kind, WaitStep::kSleep);
  for (std::int64_t waited = 4000 * kUs; waited < 60'000'000 * kUs; waited += waited / 3) {
    const std::int64_t nap = decide(policy, waited).timeout_ns;
    ck_assert_int_ge(nap, 50 * kUs);
    ck_assert_int_le(nap, 8000 * kUs);
    ck_assert_int_le(nap, waited / 30);
  }
  ck_assert_int_eq(decide(policy, INT64_MAX).timeout_ns, 8000 * kUs);
  // where ranks share cores, everybody has to sit out the others' turns first
  ck_assert_int_eq(choose_wait_policy(2, 8, kSpinAuto, true).sleep_after_ns, 16'000 * kUs);
}
END_TEST

START_TEST(knob_decides_beside_shared_memory_too) {
  const WaitPolicy policy = choose_wait_policy(2, 2, 200 * kUs, true);
  ck_assert_int_eq(decide(policy, 200 * kUs).kind, WaitStep::kSleep);
  ck_assert_int_eq(decide(policy, 60'000'000 * kUs).timeout_ns, 8000 * kUs);
  ck_assert_int_eq(decide(choose_wait_policy(2, 2, kSpinForever, true), INT64_MAX).kind,
                   WaitStep::kYield);
}
END_TEST

START_TEST(spin_forever_never_sleeps) {
  const WaitPolicy policy = choose_wait_policy(2, 8, kSpinForever, false);
  ck_assert_int_eq(decide(policy, INT64_MAX).kind, WaitStep::kYield);
}
END_TEST

START_TEST(spin_zero_sleeps_at_once_even_with_spare_cores) {
  const WaitStep step = decide(choose_wait_policy(8, 1, 0, false), 0);
  ck_assert_int_eq(step.kind, WaitStep::kSleep);
  ck_assert_int_gt(step.timeout_ns, 0);
}
END_TEST

START_TEST(off_every_host_is_treated_alike) {
  for (const int ranks : {1, 2, 8}) {
    const WaitPolicy policy = choose_wait_policy(2, ranks, kSpinAuto, false, false);
    ck_assert_int_eq(decide(policy, 0).kind, WaitStep::kYield);
    ck_assert_int_eq(policy.sleep_after_ns, 200 * kUs);
    ck_assert_int_eq(policy.own_core, ranks <= 2);
  }
  ck_assert_int_eq(choose_wait_policy(2, 1, 50 * kUs, false, false).sleep_after_ns, 50 * kUs);
  ck_assert_int_lt(choose_wait_policy(2, 1, kSpinForever, false, false).sleep_after_ns, 0);
}
END_TEST

}  // namespace

int main() { return run_tests("wait"); }
