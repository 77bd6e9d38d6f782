// faster_way.h: the second way is taken where it is faster, and found again when it has changed.
#include "mplite/tuning/faster_way.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr unsigned kTrial = FasterWay::kTurn * FasterWay::kTurns;

// `times` times, of which each takes what its way costs. Returns how many went by the second way.
unsigned go(FasterWay& way, unsigned times, std::int64_t first_ns, std::int64_t second_ns) {
  unsigned second = 0;
  for (unsigned i = 0; i < times; ++i) {
    const bool by_second = way.second();
    second += by_second ? 1 : 0;
    if (way.trying())
      way.took(by_second ? second_ns : first_ns);
    else
      way.pass();
  }
  return second;
}

START_TEST(both_ways_have_as_many_turns) {
  FasterWay way;
  for (unsigned i = 0; i < kTrial; ++i) {
    ck_assert(way.trying());
    ck_assert_int_eq(way.second(), i / FasterWay::kTurn % 2);
    way.took(1000);
  }
  ck_assert(!way.trying());
  ck_assert(!way.second());
}
END_TEST

START_TEST(faster_way_is_taken_until_the_next_trial) {
  for (const bool second : {false, true}) {
    FasterWay way;
    const std::int64_t first_ns = second ? 1000 : 900, second_ns = second ? 900 : 1000;
    ck_assert_uint_eq(go(way, kTrial, first_ns, second_ns), kTrial / 2);
    ck_assert_uint_eq(go(way, FasterWay::kRest, first_ns, second_ns),
                      second ? FasterWay::kRest : 0);
    ck_assert(way.trying());
  }
}
END_TEST

START_TEST(change_is_noticed_by_the_next_trial) {
  FasterWay way;
  go(way, kTrial + FasterWay::kRest, 1000, 900);
  go(way, kTrial, 900, 1000);
  ck_assert_uint_eq(go(way, FasterWay::kRest, 900, 1000), 0);
  go(way, kTrial, 1000, 900);
  ck_assert_uint_eq(go(way, FasterWay::kRest, 1000, 900), FasterWay::kRest);
}
END_TEST

// Also when it was more before.
START_TEST(small_gain_is_no_reason_for_the_second_way) {
  FasterWay way;
  go(way, kTrial, 1000, 970);
  ck_assert(!way.second());
  go(way, FasterWay::kRest + kTrial, 1000, 900);
  ck_assert(way.second());
  go(way, FasterWay::kRest + kTrial, 1000, 970);
  ck_assert(!way.second());
}
END_TEST

// The operating system takes the processor away in the middle of most of them.
START_TEST(what_else_happens_meanwhile_does_not_count) {
  FasterWay way;
  for (unsigned i = 0; i < kTrial; ++i) {
    const bool undisturbed = i % FasterWay::kTurn == 7;
    way.took((way.second() ? 900 : 1000) + (undisturbed ? 0 : 50'000 * (1 + i % 3)));
  }
  ck_assert(way.second());
}
END_TEST

}  // namespace

int main() { return run_tests("faster_way"); }
