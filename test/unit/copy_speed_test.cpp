// copy_speed.h: what is measured is possible.
#include "mplite/base/copy_speed.h"

#include "run_tests.h"

START_TEST(copying_is_measured) {
  const std::uint64_t ns = mplite::measure_copy_ns_per_mb();
  ck_assert_uint_gt(ns, 5'000);        // 200 GB/s
  ck_assert_uint_lt(ns, 100'000'000);  // 10 MB/s, under any sanitizer
}
END_TEST

int main() { return run_tests("copy_speed"); }
