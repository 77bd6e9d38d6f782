// choose_protocol and choose_am_protocol by table.
#include <cstdlib>

#include "ch_lite/core/credits.h"
#include "ch_lite/core/packet.h"
#include "ch_lite/core/protocol.h"
#include "run_tests.h"

using namespace ch_lite;

namespace {

constexpr std::uint64_t kPlenty = UINT64_MAX;

struct Row {
  std::uint64_t bytes;
  Cutoffs cutoffs;
  std::uint64_t credit;
  Protocol protocol;
  bool out_of_credit;
};

}  // namespace

START_TEST(size_and_credit_choose_the_protocol) {
  const Row rows[] = {
      {0, {1024, 65536}, kPlenty, Protocol::kShort, false},
      {1024, {1024, 65536}, kPlenty, Protocol::kShort, false},
      {1025, {1024, 65536}, kPlenty, Protocol::kEager, false},
      {65536, {1024, 65536}, kPlenty, Protocol::kEager, false},
      {65537, {1024, 65536}, kPlenty, Protocol::kRendezvous, false},
      // turned off: short, eager, both
      {0, {0, 65536}, kPlenty, Protocol::kEager, false},
      {8, {0, 65536}, kPlenty, Protocol::kEager, false},
      {1025, {1024, 0}, kPlenty, Protocol::kRendezvous, false},
      {0, {1024, 0}, kPlenty, Protocol::kShort, false},
      {0, {0, 0}, kPlenty, Protocol::kRendezvous, false},
      {8, {0, 0}, kPlenty, Protocol::kRendezvous, false},
      // everything eager
      {std::uint64_t{1} << 40, {1024, UINT64_MAX}, kPlenty, Protocol::kEager, false},
      // a cutoff beyond what a control packet can carry
      {kShortBytesMax, {UINT64_MAX, 0}, kPlenty, Protocol::kShort, false},
      {kShortBytesMax + 1, {UINT64_MAX, 0}, kPlenty, Protocol::kRendezvous, false},
      // out of credit
      {8, {1024, 65536}, message_charge(8) - 1, Protocol::kRendezvous, true},
      {8, {1024, 65536}, message_charge(8), Protocol::kShort, false},
      {65536, {1024, 65536}, message_charge(65536) - 1, Protocol::kRendezvous, true},
      {65537, {1024, 65536}, 0, Protocol::kRendezvous, false},
  };
  for (const Row& row : rows) {
    const Choice got = choose_protocol(row.bytes, row.cutoffs, row.credit, row.credit);
    ck_assert_msg(got.protocol == row.protocol && got.out_of_credit == row.out_of_credit,
                  "%llu bytes, short %llu, eager %llu, credit %llu",
                  static_cast<unsigned long long>(row.bytes),
                  static_cast<unsigned long long>(row.cutoffs.short_max),
                  static_cast<unsigned long long>(row.cutoffs.eager_max),
                  static_cast<unsigned long long>(row.credit));
    const std::uint64_t unasked = got.protocol == Protocol::kRendezvous ? got.fragment : row.bytes;
    ck_assert_uint_eq(got.charge, got.protocol == Protocol::kRendezvous && unasked == 0
                                      ? 0
                                      : message_charge(unasked));
  }
}
END_TEST

START_TEST(rendezvous_takes_along_what_may_go_unasked) {
  constexpr std::uint64_t kBytes = 1u << 20;
  const auto fragment = [](std::uint64_t eager_max, std::uint64_t credit,
                           std::uint64_t most = kFragmentBytes) {
    return choose_protocol(kBytes, {1024, eager_max, most}, kPlenty, credit).fragment;
  };
  ck_assert_uint_eq(fragment(65'536, kPlenty), 65'536);
  ck_assert_uint_eq(fragment(kFragmentBytes, kPlenty), kFragmentBytes);
  ck_assert_uint_eq(fragment(kBytes - 1, kPlenty), kFragmentBytes);
  ck_assert_uint_eq(fragment(0, kPlenty), 0);  // eager is off: nothing goes unasked
  ck_assert_uint_eq(fragment(65'536, message_charge(65'536)), 65'536);
  ck_assert_uint_eq(fragment(65'536, message_charge(65'536) - 1), 0);
  // to a peer that receives in time, as far as the credit goes
  ck_assert_uint_eq(fragment(kBytes - 1, kPlenty, kFragmentBytesInTime), kFragmentBytesInTime);
  ck_assert_uint_eq(fragment(96 * 1024, kPlenty, kFragmentBytesInTime), 96 * 1024);
  ck_assert_uint_eq(
      fragment(kBytes - 1, message_charge(kFragmentBytesInTime) - 1, kFragmentBytesInTime),
      kFragmentBytes);
  ck_assert_uint_eq(fragment(kBytes - 1, message_charge(kFragmentBytes) - 1, kFragmentBytesInTime),
                    0);
  ck_assert_uint_eq(
      choose_protocol(kFragmentBytesInTime, {1024, kFragmentBytesInTime - 1, kFragmentBytesInTime},
                      kPlenty, kPlenty)
          .fragment,
      kFragmentBytesInTime - 1);
  ck_assert_uint_eq(choose_protocol(kBytes, {1024, kBytes, kFragmentBytes}, 0, 0).fragment,
                    0);  // by rendezvous for want of credit
}
END_TEST

START_TEST(active_message_without_data_is_short_or_waits_whatever_the_cutoffs) {
  for (const Cutoffs cutoffs : {Cutoffs{0, 0}, Cutoffs{1024, 65536}}) {
    ck_assert(choose_am_protocol(4096, 0, cutoffs, kPlenty).protocol == Protocol::kShort);
    const Choice out = choose_am_protocol(4096, 0, cutoffs, message_charge(4096) - 1);
    ck_assert(out.protocol == Protocol::kWait && out.out_of_credit);
  }
}
END_TEST

START_TEST(active_message_with_data_falls_back_to_an_offer_then_waits) {
  const Cutoffs cutoffs{1024, 65536};
  ck_assert(choose_am_protocol(64, 1024, cutoffs, kPlenty).protocol == Protocol::kShort);
  ck_assert(choose_am_protocol(64, 1025, cutoffs, kPlenty).protocol == Protocol::kEager);
  ck_assert(choose_am_protocol(64, 65537, cutoffs, kPlenty).protocol == Protocol::kRendezvous);
  ck_assert(choose_am_protocol(64, 8, {0, 0}, kPlenty).protocol == Protocol::kRendezvous);
  // header and data must fit one control packet together, and the block that every packet finds
  ck_assert(choose_am_protocol(17, kPacketDataMax - 32, {UINT64_MAX, 0}, kPlenty).protocol ==
            Protocol::kShort);
  ck_assert(choose_am_protocol(17, kPacketDataMax - 31, {UINT64_MAX, 0}, kPlenty).protocol ==
            Protocol::kRendezvous);
  ck_assert(choose_am_protocol(4096, kShortBytesMax, {UINT64_MAX, 0}, kPlenty).protocol ==
            Protocol::kRendezvous);
  const Choice offer = choose_am_protocol(64, 65536, cutoffs, message_charge(64));
  ck_assert(offer.protocol == Protocol::kRendezvous && offer.out_of_credit);
  ck_assert_uint_eq(offer.charge, message_charge(64));
  ck_assert(choose_am_protocol(64, 65536, cutoffs, message_charge(64) - 1).protocol ==
            Protocol::kWait);
}
END_TEST

// Without this an active message could wait for credit that its receiver does not think worth
// returning.
START_TEST(half_of_the_smallest_window_admits_any_active_message) {
  ck_assert_uint_le(message_charge(LITE_AM_HEADER_MAX), kWindowFloorBytes / 2);
}
END_TEST

int main() { return run_tests("protocol"); }
