// eager_cutoff.h: a second message fits into the credit window.
#include "mplite/tuning/eager_cutoff.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::uint64_t kWindow = 2 << 20;

START_TEST(receives_in_time_allow_more_as_far_as_credit_goes) {
  ck_assert_uint_eq(eager_cutoff_in_time(kWindow), kEagerCutoffInTime);
  ck_assert_uint_eq(eager_cutoff_in_time(16 << 20), kEagerCutoffInTime);
  ck_assert_uint_eq(eager_cutoff_in_time(512 * 1024), 256 * 1024);
}
END_TEST

}  // namespace

int main() { return run_tests("eager_cutoff"); }
