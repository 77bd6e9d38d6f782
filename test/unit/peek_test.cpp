// peek.h: peeks are given up where they miss what reads find.
#include "mplite/tuning/peek.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr unsigned kForced = Peek::kStride, kBehindPeek = Peek::kStride + 1;

START_TEST(every_so_often_the_read_is_made_all_the_same) {
  unsigned reads = 0;
  for (unsigned tick = 0; tick < 10 * Peek::kStride; ++tick) reads += Peek::reads_at(tick) ? 1 : 0;
  ck_assert_uint_eq(reads, 10);
}
END_TEST

START_TEST(peeks_that_miss_messages_are_given_up) {
  Peek peek;
  for (int i = 0; i < Peek::kMissed; ++i) {
    ck_assert(peek.trusted());
    peek.found(kForced);
  }
  ck_assert(!peek.trusted());
}
END_TEST

START_TEST(one_that_was_seen_restores_trust) {
  Peek peek;
  for (int i = 0; i < 100; ++i) {
    for (int j = 1; j < Peek::kMissed; ++j) peek.found(kForced);
    peek.found(kBehindPeek);
    ck_assert(peek.trusted());
  }
}
END_TEST

START_TEST(off_there_is_none) {
  Peek peek;
  peek.start(false);
  ck_assert(!peek.trusted());
}
END_TEST

}  // namespace

int main() { return run_tests("peek"); }
