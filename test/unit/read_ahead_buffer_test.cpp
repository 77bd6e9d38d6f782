// staging.h: buffers are there for the handler, are reused at once, and go back to the heap when
// there are too many.
#include "mplite/engine/staging.h"

#include <vector>

#include "run_tests.h"

using namespace mplite;

START_TEST(last_one_given_is_taken_first) {
  StagingStock stock;
  ck_assert_ptr_null(stock.take());
  ck_assert(stock.refill());
  Staging* a = stock.take();
  Staging* b = stock.take();
  ck_assert_ptr_ne(a, b);
  stock.give(a);
  stock.give(b);
  ck_assert_ptr_eq(stock.take(), b);
  ck_assert_uint_eq(stock.used_count(), 1);
  stock.give(b);
}
END_TEST

START_TEST(stock_stays_between_its_bounds) {
  StagingStock stock;
  std::vector<Staging*> taken;
  for (int i = 0; i < 100; ++i) {
    ck_assert(stock.refill());
    ck_assert_uint_ge(stock.free_count(), StagingStock::kReady);
    taken.push_back(stock.take());
  }
  ck_assert_uint_eq(stock.used_count(), 100);
  for (Staging* staging : taken) stock.give(staging);
  ck_assert_uint_ge(stock.free_count(), 100);
  ck_assert(stock.refill());
  ck_assert_uint_eq(stock.free_count(), StagingStock::kSpare);
  ck_assert_uint_eq(stock.used_count(), 0);
}
END_TEST

int main() { return run_tests("staging"); }
