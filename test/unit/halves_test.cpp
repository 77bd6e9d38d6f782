// halves.h: which messages leave in two halves, and how the faster way is found.
#include "mplite/tuning/halves.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::uint64_t kMin = 1000, kEnd = 2000;

Halves started() {
  Halves halves;
  halves.start(kMin, kEnd);
  return halves;
}

// A message and its answer, which takes `ns`. Returns what went first.
std::uint64_t exchange(Halves& halves, std::int64_t halves_ns, std::int64_t whole_ns) {
  static std::int64_t now = 0;
  now += 1'000'000;
  ck_assert(halves.chooses(kMin));
  if (halves.next()) halves.left(now);
  const std::uint64_t first = halves.first(kMin);
  halves.wrote(first);
  if (halves.heard()) halves.heard_at(now + (first < kMin ? halves_ns : whole_ns));
  return first;
}

START_TEST(lengths_between_are_chosen) {
  Halves halves = started();
  ck_assert(!halves.chooses(kMin - 1));
  ck_assert(halves.chooses(kMin));
  ck_assert(halves.chooses(kEnd - 1));
  ck_assert(!halves.chooses(kEnd));
  ck_assert(!Halves().chooses(0));  // none where there is no range
}
END_TEST

START_TEST(stream_is_not_cut) {
  Halves halves = started();
  halves.wrote(kMin / 2);
  ck_assert(!halves.chooses(kMin));
  halves.heard();
  ck_assert(halves.chooses(kMin));
  halves.wrote(kMin / 2 - 1);  // something short in between
  ck_assert(halves.chooses(kMin));
}
END_TEST

// Two long writes without an answer in between, then an answer to each: credits of a stream.
START_TEST(answers_in_a_stream_do_not_cut_it) {
  Halves halves = started();
  halves.wrote(kMin);
  halves.wrote(kMin);
  for (int i = 0; i < Halves::kStream; ++i) {
    halves.heard();
    ck_assert(!halves.chooses(kMin));
    halves.wrote(kMin);
  }
  halves.heard();
  ck_assert(halves.chooses(kMin));
}
END_TEST

START_TEST(halves_of_one_message_are_no_stream) {
  Halves halves = started();
  int cut = 0;
  for (int i = 0; i < 100; ++i) {
    ck_assert(halves.chooses(kMin));
    if (halves.next()) halves.left(1000 * i);
    const std::uint64_t first = halves.first(kMin);
    halves.wrote(first);
    if (first < kMin) {
      ++cut;
      halves.wrote(kMin - first);
    }
    if (halves.heard()) halves.heard_at(1000 * i + 500);
  }
  ck_assert_int_gt(cut, 0);
}
END_TEST

// SO_RCVLOWAT of the receiver: where messages are answers to each other only.
START_TEST(messages_of_a_stream_are_not_awaited_whole) {
  Halves halves = started();
  ck_assert_uint_eq(halves.whole_end(), 0);
  exchange(halves, 1000, 500);
  ck_assert_uint_eq(halves.whole_end(), kEnd);
  for (int i = 0; i < Halves::kRecent; ++i) {
    ck_assert_uint_eq(halves.whole_end(), kEnd);
    halves.comes(kMin - 1);
    halves.comes(kEnd);
    halves.comes(kMin);
  }
  ck_assert_uint_eq(halves.whole_end(), 0);
}
END_TEST

START_TEST(faster_way_is_found) {
  constexpr unsigned kTrial = FasterWay::kTurn * FasterWay::kTurns;
  for (const bool whole : {false, true}) {
    Halves halves = started();
    for (unsigned i = 0; i <= kTrial; ++i) exchange(halves, 1000, whole ? 500 : 2000);
    for (unsigned i = 0; i < 100; ++i)
      ck_assert_uint_eq(exchange(halves, 1000, 500), whole ? kMin : kMin / 2);
    ck_assert_uint_eq(halves.whole_end(), whole ? kEnd : 0);
  }
}
END_TEST

START_TEST(what_is_not_answered_is_not_counted) {
  Halves halves = started();
  for (unsigned i = 0; i < 10'000; ++i) {
    ck_assert(halves.next());  // still trying
    halves.left(i);
    halves.heard();  // but nobody says when
  }
}
END_TEST

}  // namespace

int main() { return run_tests("halves"); }
