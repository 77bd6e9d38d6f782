// stall_watch.h: its decisions, as a table of events.
#include "mplite/tuning/stall_watch.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000, kT0 = 500 * kSecond;
constexpr std::int64_t kLimit = 10 * kSecond;

StallWatch watch() {
  StallWatch w;
  w.start(kLimit);
  return w;
}

START_TEST(wait_is_looked_at_after_half_of_the_time_and_told_of_after_all_of_it) {
  StallWatch w = watch();
  ck_assert(w.on());
  const struct {
    int second;
    StallWatch::Step step;
  } table[] = {{0, StallWatch::kNothing},  {4, StallWatch::kNothing}, {5, StallWatch::kLook},
               {6, StallWatch::kNothing},  {9, StallWatch::kNothing}, {10, StallWatch::kTell},
               {11, StallWatch::kNothing}, {19, StallWatch::kNothing}};
  for (const auto& row : table)
    ck_assert_int_eq(w.found_nothing(1, 7, kT0 + row.second * kSecond), row.step);
  ck_assert_int_eq(w.began_ns(), kT0);
  ck_assert_int_eq(w.quiet_ns(kT0 + 19 * kSecond), 19 * kSecond);
}
END_TEST

START_TEST(it_is_told_of_again_when_the_time_has_doubled) {
  StallWatch w = watch();
  int told = 0;
  for (int second = 0; second <= 100; ++second)
    told += w.found_nothing(1, 7, kT0 + second * kSecond) == StallWatch::kTell ? 1 : 0;
  ck_assert_int_eq(told, 4);  // 10, 20, 40, 80
}
END_TEST

START_TEST(wait_in_which_something_moves_is_not_told_of) {
  StallWatch w = watch();
  for (int second = 0; second <= 300; ++second)
    ck_assert_int_ne(w.found_nothing(1, static_cast<unsigned>(second) / 9, kT0 + second * kSecond),
                     StallWatch::kTell);
  ck_assert_int_eq(w.began_ns(), kT0);
}
END_TEST

START_TEST(what_moves_unseen_begins_the_time_anew) {
  StallWatch w = watch();
  w.found_nothing(1, 7, kT0);
  ck_assert_int_eq(w.found_nothing(1, 7, kT0 + 10 * kSecond), StallWatch::kTell);
  w.moved(kT0 + 10 * kSecond);
  ck_assert_int_eq(w.found_nothing(1, 7, kT0 + 14 * kSecond), StallWatch::kNothing);
  ck_assert_int_eq(w.found_nothing(1, 7, kT0 + 15 * kSecond), StallWatch::kLook);
  ck_assert_int_eq(w.found_nothing(1, 7, kT0 + 20 * kSecond), StallWatch::kTell);
  ck_assert_int_eq(w.began_ns(), kT0);
}
END_TEST

START_TEST(waits_that_follow_one_another_are_not_one) {
  StallWatch w = watch();
  for (unsigned wait = 0; wait < 100; ++wait) {
    const std::int64_t now = kT0 + static_cast<std::int64_t>(wait) * 100 * kSecond;
    ck_assert_int_eq(w.found_nothing(wait, 7, now), StallWatch::kNothing);
    ck_assert_int_eq(w.found_nothing(wait, 7, now + 4 * kSecond), StallWatch::kNothing);
  }
  ck_assert_int_eq(w.began_ns(), kT0 + 9900 * kSecond);
}
END_TEST

START_TEST(off_it_is_off) {
  StallWatch w;
  ck_assert(!w.on());
  w.start(0);
  ck_assert(!w.on());
}
END_TEST

}  // namespace

int main() { return run_tests("stall_watch"); }
