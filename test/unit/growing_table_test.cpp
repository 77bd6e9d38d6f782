// A table that grows in place.
#include "mplite/base/growing_table.h"

#include <cstdint>

#include "run_tests.h"

using mplite::GrowingTable;

namespace {
struct Entry {
  std::uint64_t number = 7;
  char filler[120] = {};
};
}  // namespace

START_TEST(what_is_there_does_not_move_when_it_grows) {
  GrowingTable<Entry> table;
  ck_assert(table.start(3, 100000));
  Entry* first = table.data();
  first[2].number = 42;
  for (std::size_t count = 4; count <= 100000; count += count / 2) {
    ck_assert(table.grow(count));
    ck_assert_ptr_eq(table.data(), first);
    ck_assert_uint_eq(table.size(), count);
    ck_assert_uint_eq(first[count - 1].number, 7);  // constructed
    first[count - 1].number = count;
  }
  ck_assert_uint_eq(first[2].number, 42);
}
END_TEST

START_TEST(never_more_than_the_most) {
  GrowingTable<Entry> table;
  ck_assert(table.start(0, 10));
  ck_assert(table.grow(10));
  ck_assert(!table.grow(11));
  ck_assert_uint_eq(table.size(), 10);
  ck_assert(table.grow(5));  // is there already
  ck_assert_uint_eq(table.size(), 10);
}
END_TEST

START_TEST(starts_small_where_address_space_is_short) {
  GrowingTable<Entry> table;
  ck_assert(table.start(8, std::size_t{1} << 56));  // more than any machine gives
  ck_assert_uint_eq(table.size(), 8);
  ck_assert(!table.grow(9));
  GrowingTable<Entry> hopeless;
  ck_assert(!hopeless.start(std::size_t{1} << 54, std::size_t{1} << 54));
}
END_TEST

int main() { return run_tests("growing_table"); }
