// read_ahead_buffer.h: buffers are there for the handler, are reused at once, and go back to the
// heap when there are too many.
#include "mplite/engine/read_ahead_buffer.h"

#include <vector>

#include "run_tests.h"

using namespace mplite;

START_TEST(last_one_given_is_taken_first) {
  ReadAheadBuffers stock;
  ck_assert_ptr_null(stock.take());
  ck_assert(stock.refill());
  ReadAheadBuffer* a = stock.take();
  ReadAheadBuffer* b = stock.take();
  ck_assert_ptr_ne(a, b);
  stock.give(a);
  stock.give(b);
  ck_assert_ptr_eq(stock.take(), b);
  ck_assert_uint_eq(stock.used_count(), 1);
  stock.give(b);
}
END_TEST

START_TEST(stock_stays_between_its_bounds) {
  ReadAheadBuffers stock;
  std::vector<ReadAheadBuffer*> taken;
  for (int i = 0; i < 100; ++i) {
    ck_assert(stock.refill());
    ck_assert_uint_ge(stock.free_count(), ReadAheadBuffers::kReady);
    taken.push_back(stock.take());
  }
  ck_assert_uint_eq(stock.used_count(), 100);
  for (ReadAheadBuffer* buffer : taken) stock.give(buffer);
  ck_assert_uint_ge(stock.free_count(), 100);
  ck_assert(stock.refill());
  ck_assert_uint_eq(stock.free_count(), ReadAheadBuffers::kSpare);
  ck_assert_uint_eq(stock.used_count(), 0);
}
END_TEST

int main() { return run_tests("read_ahead_buffer"); }
