// allowance.h: so many callers at once, then a rate; ranks that have proved themselves cost
// nothing.
#include "mplite/tuning/allowance.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// How many are let in at `now`, of no end of them.
std::int64_t all(Allowance& a, std::int64_t now) {
  std::int64_t n = 0;
  while (n < 1'000'000 && a.take(now)) ++n;
  return n;
}

START_TEST(so_many_at_once_and_then_a_rate) {
  Allowance a;
  ck_assert_int_eq(all(a, 77 * kSecond), Allowance::kBurst);
  ck_assert_int_eq(all(a, 77 * kSecond), 0);
  std::int64_t taken = 0;
  for (std::int64_t ns = 0; ns <= 10 * kSecond; ns += 333'333) taken += all(a, 77 * kSecond + ns);
  ck_assert_int_ge(taken, 10 * Allowance::kPerSecond - 1);
  ck_assert_int_le(taken, 10 * Allowance::kPerSecond);
}
END_TEST

START_TEST(after_a_rest_some_can_be_taken) {
  Allowance a;
  all(a, kSecond);
  ck_assert_int_ge(all(a, kSecond + Allowance::kRestNs), Allowance::kPerSecond / 10 - 1);
}
END_TEST

START_TEST(long_silence_earns_no_more_than_the_burst) {
  Allowance a;
  all(a, kSecond);
  ck_assert_int_eq(all(a, 1'000'000 * kSecond), Allowance::kBurst);
}
END_TEST

START_TEST(ranks_that_prove_themselves_cost_nothing) {
  Allowance a;
  for (int rank = 0; rank < 100'000; ++rank) {
    for (std::int64_t step = 0; step < Allowance::kRankSteps; ++step) ck_assert(a.take(kSecond));
    a.give_back();
  }
  ck_assert_int_eq(all(a, kSecond), Allowance::kBurst);
  a.give_back();
  a = Allowance();
  a.give_back();
  ck_assert_int_eq(all(a, kSecond), Allowance::kBurst);
}
END_TEST

}  // namespace

int main() { return run_tests("allowance"); }
