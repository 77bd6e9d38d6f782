// poll_rcvlowat.h: the low-water mark follows the length of the messages, slowly.
#include "mplite/tuning/poll_rcvlowat.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::uint64_t kSmall = PollRcvlowat::kMinBytes - 1, kMiddle = PollRcvlowat::kMinBytes,
                        kLong = PollRcvlowat::kMaxBytes + 1;

int after(PollRcvlowat& lowat, std::uint64_t bytes, int times, std::uint64_t whole_end = 0) {
  for (int i = 0; i < times; ++i) lowat.message(bytes, whole_end);
  return lowat.mark();
}

START_TEST(some_messages_of_one_kind_change_the_mark) {
  PollRcvlowat lowat;
  ck_assert_int_eq(after(lowat, kMiddle, PollRcvlowat::kDoubts - 1), 1);
  ck_assert_int_eq(after(lowat, kMiddle, 1), PollRcvlowat::kMark);
  ck_assert_int_eq(after(lowat, kLong, PollRcvlowat::kDoubts - 1), PollRcvlowat::kMark);
  ck_assert_int_eq(after(lowat, kLong, 1), 1);
}
END_TEST

START_TEST(mixed_lengths_change_nothing) {
  PollRcvlowat lowat;
  for (int i = 0; i < 100; ++i) {
    ck_assert_int_eq(after(lowat, kMiddle, PollRcvlowat::kDoubts - 1), 1);
    ck_assert_int_eq(after(lowat, kLong, 1), 1);
  }
}
END_TEST

START_TEST(only_many_small_ones_in_a_row_count) {
  PollRcvlowat lowat;
  after(lowat, kMiddle, PollRcvlowat::kDoubts);
  for (int i = 0; i < 100; ++i) {
    ck_assert_int_eq(after(lowat, kSmall, PollRcvlowat::kSmallOnes - 1), PollRcvlowat::kMark);
    ck_assert(lowat.small());
    ck_assert_int_eq(after(lowat, kMiddle, 1), PollRcvlowat::kMark);  // they were envelopes
    ck_assert(!lowat.small());
  }
  ck_assert_int_eq(after(lowat, kSmall, PollRcvlowat::kSmallOnes), 1);
}
END_TEST

START_TEST(what_comes_in_one_write_is_no_long_message) {
  PollRcvlowat lowat;
  ck_assert_int_eq(after(lowat, kLong, PollRcvlowat::kDoubts, kLong), PollRcvlowat::kMark);
  ck_assert_int_eq(after(lowat, kLong + 1, PollRcvlowat::kDoubts, kLong), 1);
}
END_TEST

START_TEST(off_the_mark_stays) {
  PollRcvlowat lowat;
  lowat.start(false);
  ck_assert_int_eq(after(lowat, kMiddle, 100), 1);
  ck_assert_int_eq(after(lowat, kLong, 100, kLong), 1);
  ck_assert_int_eq(after(lowat, kSmall, 1), 1);
  ck_assert(lowat.small());
}
END_TEST

}  // namespace

int main() { return run_tests("poll_rcvlowat"); }
