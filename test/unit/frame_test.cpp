// The frame header: what is accepted, and that nothing inconsistent is.
#include <cstdint>
#include <cstring>
#include <random>

#include "mplite/net/frame.h"
#include "run_tests.h"

namespace {
using namespace mplite;

FrameHeader good(FrameKind kind = FrameKind::kTransfer) {
  if (kind == FrameKind::kControl) return {kFrameMagic, 0, kWireVersion, kind, 40, 0, 0, 40};
  return {kFrameMagic, 63, kWireVersion, kind, 100, 0x1234567800000001u, 300, 1000};
}
bool decodes(const FrameHeader& h) {
  std::uint8_t bytes[kFrameHeaderBytes];
  std::memcpy(bytes, &h, sizeof bytes);
  FrameHeader out;
  return decode_frame(bytes, out);
}
}  // namespace

START_TEST(good_headers_come_back_as_they_were) {
  for (const FrameKind kind :
       {FrameKind::kControl, FrameKind::kChannel, FrameKind::kTransfer, FrameKind::kMessage}) {
    const FrameHeader h = good(kind);
    std::uint8_t bytes[kFrameHeaderBytes];
    std::memcpy(bytes, &h, sizeof bytes);
    FrameHeader d;
    ck_assert(decode_frame(bytes, d));
    ck_assert_int_eq(std::memcmp(&d, &h, sizeof h), 0);
  }
}
END_TEST

START_TEST(layout_on_the_wire_is_fixed) {
  const FrameHeader h = {kFrameMagic,         0x3f,
                         kWireVersion,        FrameKind::kTransfer,
                         0x11223344,          0x0102030405060708u,
                         0x2122232425262728u, 0x3132333435363738u};
  const std::uint8_t wanted[] = {0x4d, 0x3f, kWireVersion, 3,    0x44, 0x33, 0x22, 0x11,
                                 0x08, 0x07, 0x06,         0x05, 0x04, 0x03, 0x02, 0x01,
                                 0x28, 0x27, 0x26,         0x25, 0x24, 0x23, 0x22, 0x21,
                                 0x38, 0x37, 0x36,         0x35, 0x34, 0x33, 0x32, 0x31};
  ck_assert_int_eq(std::memcmp(&h, wanted, sizeof wanted), 0);
  ck_assert_uint_eq(kControlBytesMax,
                    33 * 1024);  // more is refused, so a change of it is another version
}
END_TEST

START_TEST(header_short_of_any_number_of_bytes_is_not_decoded) {
  const FrameHeader h = good();
  std::uint8_t bytes[kFrameHeaderBytes];
  std::memcpy(bytes, &h, sizeof bytes);
  for (std::size_t n = 0; n < sizeof bytes; ++n) {
    FrameHeader d;
    ck_assert(!decode_frame({bytes, n}, d));
  }
}
END_TEST

START_TEST(other_magic_version_or_kind_is_refused) {
  FrameHeader h = good();
  h.magic ^= 1;
  ck_assert(!decodes(h));
  h = good();
  h.version = kWireVersion + 1;
  ck_assert(!decodes(h));
  h = good();
  for (int kind = 0; kind < 256; ++kind) {
    h.kind = static_cast<FrameKind>(kind);
    const bool known =
        kind >= 2 && kind < kFrameKinds;  // this one is no control packet: its offset is not 0
    ck_assert_int_eq(decodes(h), known);
  }
}
END_TEST

START_TEST(piece_outside_its_whole_is_refused) {
  FrameHeader h = good();
  h.offset = 1001;
  ck_assert(!decodes(h));
  h = good();
  h.offset = 901;
  ck_assert(!decodes(h));
  h.offset = 900;
  ck_assert(decodes(h));
  h.offset = ~std::uint64_t{0};
  ck_assert(!decodes(h));
  h = good();
  h.length = kFrameBytesMax + 1;
  h.total = ~std::uint64_t{0};
  ck_assert(!decodes(h));
  h.length = kFrameBytesMax;
  ck_assert(decodes(h));
}
END_TEST

START_TEST(control_packets_are_whole_and_bounded) {
  FrameHeader h = good(FrameKind::kControl);
  h.length = 0;
  h.total = 0;
  ck_assert(!decodes(h));
  h.length = kControlBytesMax;
  h.total = kControlBytesMax;
  ck_assert(decodes(h));
  h.length = kControlBytesMax + 1;
  h.total = kControlBytesMax + 1;
  ck_assert(!decodes(h));
  h = good(FrameKind::kControl);
  h.offset = 1;
  h.total = 100;
  ck_assert(!decodes(h));
  h = good(FrameKind::kControl);
  h.pad = 1;
  ck_assert(!decodes(h));
}
END_TEST

// One look, and what decode_frame says: whichever bit is wrong.
START_TEST(control_length_agrees_with_decode_frame) {
  std::mt19937_64 random(3);
  int good_ones = 0;
  for (int i = 0; i < 200'000; ++i) {
    FrameHeader h = good(FrameKind::kControl);
    h.length =
        random() % 8 == 0 ? 0 : static_cast<std::uint32_t>(random() % (2 * kControlBytesMax));
    h.total = random() % 4 == 0 ? random() % (4 * kControlBytesMax) : h.length;
    h.id = random();
    std::uint8_t bytes[kFrameHeaderBytes];
    std::memcpy(bytes, &h, sizeof h);
    if (random() % 2 == 0)
      bytes[random() % sizeof bytes] ^= static_cast<std::uint8_t>(1u << random() % 8);
    FrameHeader got;
    const bool control =
        decode_frame({bytes, sizeof bytes}, got) && got.kind == FrameKind::kControl;
    ck_assert_uint_eq(control_length(bytes), control ? got.length : 0);
    good_ones += control ? 1 : 0;
  }
  ck_assert_int_gt(good_ones, 20'000);
}
END_TEST

START_TEST(padding_is_less_than_a_line) {
  FrameHeader h = good();
  for (int pad = 0; pad < 256; ++pad) {
    h.pad = static_cast<std::uint8_t>(pad);
    ck_assert_int_eq(decodes(h), pad < 64);
  }
}
END_TEST

START_TEST(empty_piece_is_good_only_in_an_empty_whole) {
  FrameHeader h = good();
  h.length = 0;
  ck_assert(!decodes(h));
  h.offset = h.total = 0;
  ck_assert(decodes(h));
}
END_TEST

START_TEST(random_bytes_decode_only_to_consistent_headers) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    std::uint8_t bytes[kFrameHeaderBytes];
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
    FrameHeader h;
    std::memcpy(&h, bytes, sizeof h);
    h.magic = kFrameMagic;
    h.version = kWireVersion;
    h.kind = static_cast<FrameKind>(random() % 6);
    if (i % 2 == 0) h.length %= 70'000, h.offset %= 70'000, h.total %= 140'000;
    std::memcpy(bytes, &h, sizeof h);
    FrameHeader d;
    if (!decode_frame(bytes, d)) continue;
    ck_assert_uint_le(d.length, kFrameBytesMax);
    ck_assert(d.offset <= d.total && d.length <= d.total - d.offset);
    ck_assert(d.kind != FrameKind::kControl || (d.length > 0 && d.length <= kControlBytesMax));
  }
}
END_TEST

int main() { return run_tests("frame"); }
