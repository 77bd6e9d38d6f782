// The credit arithmetic of one lane, from both ends.
#include <cstdlib>
#include <random>

#include "ch_lite/core/blocks.h"
#include "ch_lite/core/credits.h"
#include "run_tests.h"

using namespace ch_lite;

START_TEST(sender_cannot_spend_more_than_it_has) {
  Credits c;
  c.start(1000);
  ck_assert(c.spend(600));
  ck_assert(!c.spend(401));
  ck_assert(c.spend(400));
  ck_assert_uint_eq(c.left(), 0);
}
END_TEST

START_TEST(half_of_the_window_is_not_to_spare) {
  Credits c;
  c.start(1000);
  ck_assert_uint_eq(c.spare(), 500);
  ck_assert(c.spend(300));
  ck_assert_uint_eq(c.spare(), 200);
  ck_assert(c.spend(200));
  ck_assert_uint_eq(c.spare(), 0);
  ck_assert(c.spend(400));
  ck_assert_uint_eq(c.spare(), 0);
  ck_assert(c.refund(900));
  ck_assert_uint_eq(c.spare(), 500);
}
END_TEST

START_TEST(refund_of_what_was_never_spent_is_refused) {
  Credits c;
  c.start(1000);
  ck_assert(c.spend(600));
  ck_assert(!c.refund(601));
  ck_assert(c.refund(600));
  ck_assert(!c.refund(1));
}
END_TEST

START_TEST(receiver_notices_an_overdraft) {
  Credits c;
  c.start(1000);
  ck_assert(c.accept(700));
  c.release(700);
  ck_assert(!c.accept(301));  // owed is not yet the sender's again
  ck_assert_uint_eq(c.take_owed(), 700);
  ck_assert(c.accept(1000));
}
END_TEST

START_TEST(message_that_passes_is_owed_like_one_that_was_kept) {
  Credits c;
  c.start(1000);
  ck_assert(c.accept(300));
  ck_assert(c.takes(700));
  ck_assert(!c.takes(701));
  c.pass(700);
  ck_assert(!c.takes(1));
  ck_assert_uint_eq(c.held(), 300);
  ck_assert_uint_eq(c.take_owed(), 700);
  ck_assert(c.takes(700));
}
END_TEST

START_TEST(explicit_return_is_due_at_half_a_window) {
  Credits c;
  c.start(1000);
  ck_assert(!c.due());
  ck_assert(c.accept(1000));
  c.release(499);
  ck_assert(!c.due());
  c.release(1);
  ck_assert(c.due());
  const std::uint32_t owed = c.take_owed();
  ck_assert(!c.due());
  c.put_back(owed);
  ck_assert(c.due());
}
END_TEST

START_TEST(more_than_a_packet_can_return_stays_owed) {
  Credits c;
  c.start(std::uint64_t{1} << 34);
  ck_assert(c.accept(std::uint64_t{1} << 33));
  c.release(std::uint64_t{1} << 33);
  ck_assert_uint_eq(c.take_owed(), UINT32_MAX);
  ck_assert_uint_eq(c.owed(), (std::uint64_t{1} << 33) - UINT32_MAX);
}
END_TEST

START_TEST(charge_covers_the_memory_that_a_message_takes) {
  for (std::uint64_t bytes :
       {0ull, 1ull, 64ull, 65ull, 1000ull, 16384ull, 262144ull, 262145ull, 1ull << 30}) {
    ck_assert_uint_ge(message_charge(bytes), bytes + kMessageOverheadBytes);
    ck_assert_uint_eq(message_charge(bytes), kMessageOverheadBytes + Blocks::footprint(bytes));
  }
}
END_TEST

START_TEST(windows_of_all_peers_and_lanes_stay_within_the_bound) {
  constexpr std::uint64_t kMax = 256u << 20;
  for (int size : {1, 2, 3, 16, 100, 1000, 8192}) {
    const std::uint64_t window = credit_window(4u << 20, kMax, size);
    ck_assert_uint_le(window, 4u << 20);
    ck_assert_uint_ge(window, kWindowFloorBytes);
    if (window > kWindowFloorBytes)
      ck_assert_uint_le(window * 2 * static_cast<std::uint64_t>(size), kMax);
  }
  ck_assert_uint_eq(credit_window(1u << 20, kMax, 2), 1u << 20);
}
END_TEST

// left + on its way + held + owed + on its way back is the window, whatever happens.
START_TEST(no_credit_is_lost_or_made_over_random_exchanges) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    constexpr std::uint64_t kWindow = 100000;
    Credits sender, receiver;
    sender.start(kWindow);
    receiver.start(kWindow);
    std::uint64_t there = 0, back = 0;
    for (int step = 0; step < 5000; ++step) {
      const std::uint64_t n = random() % 2000;
      switch (random() % 5) {
        case 0:
          if (sender.spend(n)) there += n;
          break;
        case 1:
          if (n <= there) {
            ck_assert(receiver.accept(n));
            there -= n;
          }
          break;
        case 2:
          if (n <= receiver.held()) receiver.release(n);
          break;
        case 3: back += receiver.take_owed(); break;
        default:
          if (n <= back) {
            ck_assert(sender.refund(n));
            back -= n;
          }
      }
      ck_assert_msg(sender.left() + there + receiver.held() + receiver.owed() + back == kWindow,
                    "seed %u step %d", seed, step);
    }
  }
}
END_TEST

int main() { return run_tests("credits"); }
