// eager_cutoff.h: where a copy costs as much as a round trip.
#include "mplite/tuning/eager_cutoff.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::uint64_t kWindow = 2 << 20;

START_TEST(copy_costs_as_much_as_a_round_trip) {
  // 100 us per MB: 2 us and the 8 of the handshake are 102 KB
  ck_assert_uint_eq(eager_cutoff(2'000, 100'000, kWindow), 100 * 1024);
  ck_assert_uint_eq(eager_cutoff(12'000, 100'000, kWindow), 204 * 1024);
  ck_assert_uint_eq(eager_cutoff(12'000, 200'000, kWindow), 100 * 1024);
}
END_TEST

START_TEST(cutoff_has_bounds) {
  ck_assert_uint_eq(eager_cutoff(0, 1'000'000, kWindow), kEagerCutoffMin);
  ck_assert_uint_eq(eager_cutoff(-5, 1'000'000, kWindow), kEagerCutoffMin);
  ck_assert_uint_eq(eager_cutoff(INT64_MAX, 1, kWindow), kEagerCutoffMax);
  ck_assert_uint_eq(eager_cutoff(1'000'000, 100'000, kWindow), kEagerCutoffMax);
  // two such messages fit into the credit
  ck_assert_uint_eq(eager_cutoff(1'000'000, 100'000, 256 * 1024), 128 * 1024);
  ck_assert_uint_eq(eager_cutoff(0, 100'000, 16 * 1024), 8 * 1024);
}
END_TEST

START_TEST(receives_in_time_allow_more_as_far_as_credit_goes) {
  ck_assert_uint_eq(eager_cutoff_in_time(kWindow), kEagerCutoffInTime);
  ck_assert_uint_eq(eager_cutoff_in_time(16 << 20), kEagerCutoffInTime);
  ck_assert_uint_eq(eager_cutoff_in_time(512 * 1024), 256 * 1024);
}
END_TEST

}  // namespace

int main() { return run_tests("eager_cutoff"); }
