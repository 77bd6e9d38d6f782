// streak.h: which sends may wait for company.
#include "mplite/tuning/streak.h"

#include "run_tests.h"

using mplite::Streak;

namespace {

// `count` sends with nothing else between them, after something else. Returns how many of them may
// be gathered.
int burst(Streak& streak, int count, int peer = 1, std::uint64_t late = 0) {
  int may = 0;
  for (int i = 0; i < count; ++i) may += streak.send(peer, i > 0, late) ? 1 : 0;
  return may;
}

START_TEST(sends_with_anything_else_between_them_leave_by_themselves) {
  Streak streak;
  for (int i = 0; i < 100'000; ++i) ck_assert_int_eq(burst(streak, 1), 0);
}
END_TEST

START_TEST(a_few_sends_leave_by_themselves) {
  Streak streak;
  for (int i = 0; i < 100'000; ++i)
    ck_assert_int_eq(burst(streak, static_cast<int>(Streak::kAlone)), 0);
}
END_TEST

START_TEST(many_sends_are_gathered_and_after_such_a_streak_from_the_second_on) {
  Streak streak;
  ck_assert_int_eq(burst(streak, 64), 64 - static_cast<int>(Streak::kAlone));
  for (int i = 0; i < 100; ++i)
    ck_assert_int_eq(burst(streak, 64), 64 - static_cast<int>(Streak::kAloneAgain));
  burst(streak, 1);
  ck_assert_int_eq(burst(streak, 3), 0);
}
END_TEST

START_TEST(sends_to_peers_in_turn_are_not_gathered) {
  Streak streak;
  for (int i = 0; i < 1000; ++i) ck_assert(!streak.send(i % 2, i > 0, 0));
}
END_TEST

START_TEST(late_messages_make_it_dear_and_time_forgives) {
  Streak streak;
  // one message late in every second streak, as of an application that sends a burst and computes
  int may = 0;
  std::uint64_t late = 0;
  for (int i = 0; i < 20; ++i) {
    may += burst(streak, 60, 1, late);
    if (i % 2 == 0) ++late;
  }
  ck_assert_int_le(may, 3 * 60);
  ck_assert_int_eq(burst(streak, 100, 1, late), 0);
  burst(streak, static_cast<int>(Streak::kForgiven), 1, late);
  ck_assert_int_gt(burst(streak, 64, 1, late), 64 - 5);
}
END_TEST

START_TEST(who_is_always_late_gathers_next_to_nothing) {
  // computes 10 us and sends, for ever: whatever is gathered is late
  Streak streak;
  int may = 0;
  std::uint64_t late = 0;
  constexpr int kSends = 1'000'000;
  for (int i = 0; i < kSends; ++i)
    if (streak.send(1, true, late)) {
      ++may;
      ++late;
    }
  ck_assert_int_lt(may, kSends / 500);
}
END_TEST

START_TEST(company_that_the_application_has_told_of_is_believed_at_once) {
  Streak streak;
  for (int i = 0; i < 1'000; ++i) ck_assert(streak.with_company(0));
  // once in a while the system takes the processor away
  std::uint64_t late = 0;
  int may = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (i % (2 * Streak::kBelieved) == 0) ++late;
    may += streak.with_company(late) ? 1 : 0;
  }
  ck_assert_int_eq(may, 10'000);
}
END_TEST

START_TEST(late_company_makes_no_streak_dear) {
  Streak streak;
  burst(streak, 64);
  ck_assert(streak.with_company(0));
  for (std::uint64_t late = 1; late < 100; ++late) streak.with_company(late);
  ck_assert_int_eq(burst(streak, 64, 1, 99), 64 - static_cast<int>(Streak::kAloneAgain));
}
END_TEST

START_TEST(company_that_never_comes_in_time_is_seldom_waited_for) {
  Streak streak;
  std::uint64_t late = 0;
  int may = 0;
  constexpr int kSends = 100'000;
  for (int i = 0; i < kSends; ++i)
    if (streak.with_company(late)) {
      ++may;
      ++late;
    }
  ck_assert_int_le(may, kSends / (Streak::kBelieved / 2));
}
END_TEST

}  // namespace

int main() { return run_tests("streak"); }
