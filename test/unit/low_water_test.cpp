// low_water.h: the mark of a bulk receive, from its state.
#include "mplite/tuning/low_water.h"

#include "run_tests.h"

using mplite::LowWater;

namespace {

constexpr int kMark = 256 * 1024;
constexpr std::uint64_t kBulk = LowWater::kBulkBytes, kLong = 10 * kBulk;

const struct {
  int now;
  std::uint64_t owed;
  bool quiet;
  int next;
} table[] = {
    {1, 0, true, 1},                            // outside of a frame
    {kMark, 0, false, 1},                       // it has ended
    {1, kLong, false, 1},                       // somebody waits, or there is more to read
    {1, kLong, true, kMark},                    // nobody
    {kMark, kLong, false, kMark},               // stays until the frame ends,
    {kMark, kMark - 1, false, kMark - 1},       // and is never more than what is owed
    {kMark, kMark - 1, true, kMark - 1},        //
    {1, kBulk, true, static_cast<int>(kBulk)},  // the least that counts as bulk
    {1, kBulk - 1, true, 1},                    // less
    {kMark, kBulk - 1, true, int{kBulk} - 1},   // the rest of a long one
    {kMark, 1, true, 1},                        //
};

START_TEST(the_mark_follows_the_table) {
  const LowWater policy(kMark);
  for (const auto& row : table)
    ck_assert_int_eq(policy.next(row.now, row.owed, row.quiet), row.next);
}
END_TEST

START_TEST(off_it_stays_one) {
  const LowWater policy(0);
  for (const auto& row : table) ck_assert_int_eq(policy.next(1, row.owed, row.quiet), 1);
}
END_TEST

}  // namespace

int main() { return run_tests("low_water"); }
