// decode(): what the device sends is understood, everything else is refused.
#include <cstdlib>
#include <optional>
#include <random>
#include <vector>

#include "ch_lite/core/packet.h"
#include "run_tests.h"

using namespace ch_lite;

namespace {

template <typename T>
std::vector<std::uint8_t> bytes_of(const T& packet, std::size_t behind = 0) {
  std::vector<std::uint8_t> bytes(sizeof packet + behind, 0x5a);
  std::memcpy(bytes.data(), &packet, sizeof packet);
  return bytes;
}

MessagePacket message(PacketType type, std::uint64_t bytes, std::uint64_t sender,
                      std::uint8_t flags = 0) {
  return {{type, flags, 0, 11, 22}, 5, 6, 7, bytes, sender};
}

AmPacket active(PacketType type, std::uint32_t header, std::uint64_t data, std::uint64_t sender) {
  return {{type, 0, 0, 0, 0}, 3, header, 0, data, sender};
}

AccessPacket access(PacketType type, std::uint64_t bytes, std::uint64_t id,
                    std::uint64_t region = 1) {
  return {{type, 0, 0, 0, 0}, 0, region, 12, bytes, id};
}

std::optional<Packet> decoded(const std::vector<std::uint8_t>& bytes) {
  Packet packet;
  return decode(bytes, packet) ? std::optional(packet) : std::nullopt;
}

bool accepted(const std::vector<std::uint8_t>& bytes) { return decoded(bytes).has_value(); }

}  // namespace

START_TEST(every_packet_type_comes_back_as_sent) {
  auto bytes = bytes_of(message(PacketType::kShort, 100, 9, kPacketSync), 100);
  auto p = decoded(bytes);
  ck_assert(p && p->type == PacketType::kShort && p->sync && p->bytes == 100 && p->sender == 9);
  ck_assert(p->credit == 11 && p->am_credit == 22 && !p->late);
  ck_assert(p->key.context == 5 && p->key.source == 6 && p->key.tag == 7);
  ck_assert_ptr_eq(p->payload, bytes.data() + sizeof(MessagePacket));
  ck_assert(accepted(bytes_of(message(PacketType::kShort, 0, 0))));
  ck_assert(accepted(bytes_of(message(PacketType::kEager, 1 << 20, 0))));
  ck_assert(accepted(bytes_of(message(PacketType::kEager, 0, 0))));
  p = decoded(bytes_of(RtsPacket{message(PacketType::kRts, std::uint64_t{1} << 40, 1), 77}));
  ck_assert(p && p->sender == 1 && p->bytes == std::uint64_t{1} << 40 && p->fragment == 77);
  ck_assert(accepted(bytes_of(RtsPacket{message(PacketType::kRts, 0, 1), 0})));
  p = decoded(bytes_of(CtsPacket{{PacketType::kCts, 0, 0, 0, 0}, 0, 9, 8, 7}));
  ck_assert(p && p->sender == 9 && p->transfer == 8 && p->bytes == 7 && !p->late);
  p = decoded(bytes_of(CtsPacket{{PacketType::kCts, kPacketLate, 0, 0, 0}, 0, 9, 8, 7}));
  ck_assert(p && p->late && !p->sync);
  p = decoded(bytes_of(PacketHeader{PacketType::kCredit, kPacketLate, 0, 1, 2}));
  ck_assert(p && p->late);
  ck_assert(accepted(bytes_of(CtsPacket{{PacketType::kCts, 0, 0, 0, 0}, 0, 9, 0, 0})));
  ck_assert(accepted(bytes_of(CtsPacket{
      {PacketType::kCts, 0, 0, 0, 0}, 0, 9, 0, 7})));  // all that was accepted came with the RTS
  ck_assert(accepted(bytes_of(AckPacket{{PacketType::kSyncAck, 0, 0, 0, 0}, 0, 9})));
  ck_assert(accepted(bytes_of(PacketHeader{PacketType::kCredit, 0, 0, 1, 2})));
  bytes = bytes_of(active(PacketType::kAmShort, 10, 20, 0), 30);
  p = decoded(bytes);
  ck_assert(p && p->handler == 3 && p->header_bytes == 10 && p->bytes == 20);
  ck_assert(accepted(bytes_of(active(PacketType::kAmEager, 10, 20, 0), 10)));
  ck_assert(accepted(bytes_of(active(PacketType::kAmRts, 0, 20, 4), 0)));
  ck_assert(accepted(
      bytes_of(active(PacketType::kAmShort, LITE_AM_HEADER_MAX, 0, 0), LITE_AM_HEADER_MAX)));
}
END_TEST

START_TEST(accesses_come_back_as_sent_and_nonsense_among_them_is_refused) {
  auto bytes = bytes_of(access(PacketType::kPut, 100, 0), 100);
  auto p = decoded(bytes);
  ck_assert(p && p->type == PacketType::kPut && p->region == 1 && p->offset == 12 &&
            p->bytes == 100 && p->payload == bytes.data() + sizeof(AccessPacket));
  ck_assert(!p->sync);
  bytes[1] = ch_lite::kPacketSync;
  p = decoded(bytes);
  ck_assert(p && p->sync);
  p = decoded(bytes_of(access(PacketType::kPutRequest, 1 << 30, 8)));
  ck_assert(p && p->sender == 8 && p->bytes == 1 << 30);
  p = decoded(bytes_of(access(PacketType::kGet, kAccessShortMax, 8)));
  ck_assert(p && p->sender == 8 && p->transfer == 0);
  p = decoded(bytes_of(access(PacketType::kGetTransfer, 1 << 30, 8)));
  ck_assert(p && p->transfer == 8 && p->sender == 0);
  bytes = bytes_of(AckPacket{{PacketType::kGetData, 0, 0, 0, 0}, 0, 9}, 10);
  p = decoded(bytes);
  ck_assert(p && p->sender == 9 && p->bytes == 10 &&
            p->payload == bytes.data() + sizeof(AckPacket));
  p = decoded(bytes_of(AckPacket{{PacketType::kPutAck, 0, 0, 0, 0}, 0, 64}));
  ck_assert(p && p->sender == 64);

  for (PacketType type :
       {PacketType::kPut, PacketType::kPutRequest, PacketType::kGet, PacketType::kGetTransfer}) {
    const bool put = type == PacketType::kPut;
    ck_assert(!accepted(bytes_of(access(type, 0, put ? 0 : 1))));                    // no bytes
    ck_assert(!accepted(bytes_of(access(type, 10, put ? 0 : 1, 0), put ? 10 : 0)));  // no region
    ck_assert(
        !accepted(bytes_of(access(type, 10, put ? 1 : 0),
                           put ? 10 : 0)));  // an id where none belongs, and none where one does
    ck_assert(!accepted(bytes_of(access(type, 10, put ? 0 : 1), put ? 9 : 1)));  // another length
    ck_assert(!accepted(bytes_of(access(type, UINT64_MAX, put ? 0 : 1), put ? 10 : 0)));
    auto cut = bytes_of(access(type, 10, put ? 0 : 1));
    cut.pop_back();
    ck_assert(!accepted(cut));
  }
  ck_assert(!accepted(
      bytes_of(access(PacketType::kGet, kAccessShortMax + 1, 8))));  // its answer is no packet
  ck_assert(accepted(bytes_of(access(PacketType::kPut, kAccessShortMax, 0), kAccessShortMax)));
  ck_assert(
      !accepted(bytes_of(access(PacketType::kPut, kAccessShortMax + 1, 0), kAccessShortMax + 1)));
  ck_assert(accepted(bytes_of(access(PacketType::kPutRequest, kAccessShortMax + 1, 8))));
  ck_assert(!accepted(bytes_of(AckPacket{{PacketType::kGetData, 0, 0, 0, 0}, 0, 9})));
  ck_assert(!accepted(bytes_of(AckPacket{{PacketType::kGetData, 0, 0, 0, 0}, 0, 0}, 10)));
  ck_assert(!accepted(bytes_of(AckPacket{{PacketType::kPutAck, 0, 0, 0, 0}, 0, 0})));
}
END_TEST

START_TEST(nonsense_is_refused) {
  // lengths
  ck_assert(!accepted({}));
  ck_assert(!accepted(bytes_of(message(PacketType::kShort, 100, 0), 99)));
  ck_assert(!accepted(bytes_of(message(PacketType::kShort, 100, 0), 101)));
  ck_assert(!accepted(bytes_of(message(PacketType::kEager, 100, 0), 1)));
  ck_assert(!accepted(bytes_of(message(PacketType::kRts, UINT64_MAX, 1))));
  ck_assert(!accepted(bytes_of(message(PacketType::kShort, UINT64_MAX - 39, 0))));
  ck_assert(!accepted(bytes_of(PacketHeader{PacketType::kCredit, 0, 0, 1, 2}, 1)));
  ck_assert(!accepted(bytes_of(active(PacketType::kAmShort, LITE_AM_HEADER_MAX + 1, 0, 0),
                               LITE_AM_HEADER_MAX + 1)));
  ck_assert(!accepted(bytes_of(active(PacketType::kAmShort, 10, 20, 0), 29)));
  ck_assert(!accepted(bytes_of(active(PacketType::kAmEager, 10, 20, 0), 30)));
  ck_assert(!accepted(bytes_of(active(PacketType::kAmEager, 10, 0, 0), 10)));
  ck_assert(
      !accepted(bytes_of(message(PacketType::kShort, kShortBytesMax + 1, 0), kShortBytesMax + 1)));
  // more than the block that every packet finds
  ck_assert(accepted(bytes_of(message(PacketType::kShort, kShortBytesMax, 0), kShortBytesMax)));
  ck_assert(accepted(bytes_of(active(PacketType::kAmShort, 17, kPacketDataMax - 32, 0),
                              17 + kPacketDataMax - 32)));
  ck_assert(!accepted(bytes_of(active(PacketType::kAmShort, 17, kPacketDataMax - 31, 0),
                               17 + kPacketDataMax - 31)));
  // missing ids
  ck_assert(!accepted(bytes_of(RtsPacket{message(PacketType::kRts, 100, 0), 0})));
  ck_assert(!accepted(bytes_of(message(PacketType::kShort, 0, 0, kPacketSync))));
  ck_assert(!accepted(bytes_of(CtsPacket{{PacketType::kCts, 0, 0, 0, 0}, 0, 0, 8, 7})));
  // a fragment that is all, or more
  ck_assert(!accepted(bytes_of(RtsPacket{message(PacketType::kRts, 100, 1), 100})));
  ck_assert(!accepted(bytes_of(RtsPacket{message(PacketType::kRts, 100, 1), 101})));
  ck_assert(!accepted(bytes_of(CtsPacket{{PacketType::kCts, 0, 0, 0, 0}, 0, 9, 8, 0})));
  ck_assert(!accepted(bytes_of(AckPacket{{PacketType::kSyncAck, 0, 0, 0, 0}, 0, 0})));
  ck_assert(!accepted(bytes_of(active(PacketType::kAmRts, 0, 20, 0))));
  // types and flags
  ck_assert(!accepted(bytes_of(PacketHeader{static_cast<PacketType>(0), 0, 0, 0, 0})));
  ck_assert(!accepted(bytes_of(PacketHeader{static_cast<PacketType>(10), 0, 0, 0, 0})));
  ck_assert(!accepted(bytes_of(PacketHeader{PacketType::kCredit, kPacketSync, 0, 0, 0})));
  ck_assert(!accepted(bytes_of(message(PacketType::kShort, 0, 1, 4))));
  // wildcards in an envelope
  MessagePacket wild = message(PacketType::kShort, 0, 0);
  wild.source = LITE_ANY_SOURCE;
  ck_assert(!accepted(bytes_of(wild)));
  wild = message(PacketType::kShort, 0, 0);
  wild.tag = LITE_ANY_TAG;
  ck_assert(!accepted(bytes_of(wild)));
}
END_TEST

START_TEST(packet_cut_anywhere_is_refused) {
  const std::vector<std::vector<std::uint8_t>> whole = {
      bytes_of(message(PacketType::kShort, 20, 0), 20),
      bytes_of(RtsPacket{message(PacketType::kRts, 20, 1), 5}),
      bytes_of(CtsPacket{{PacketType::kCts, 0, 0, 0, 0}, 0, 9, 8, 7}),
      bytes_of(AckPacket{{PacketType::kSyncAck, 0, 0, 0, 0}, 0, 9}),
      bytes_of(active(PacketType::kAmShort, 10, 20, 0), 30)};
  for (const auto& bytes : whole) {
    ck_assert(accepted(bytes));
    // An exact-size heap copy, so that ASan sees a read past the end.
    for (std::size_t n = 0; n < bytes.size(); ++n)
      ck_assert(!accepted(std::vector<std::uint8_t>(
          bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n))));
  }
}
END_TEST

START_TEST(random_bytes_never_decode_to_lengths_beyond_the_packet) {
  std::mt19937 random(7);
  int good = 0;
  for (int i = 0; i < 200000; ++i) {
    std::vector<std::uint8_t> bytes(random() % 80);
    for (auto& b : bytes) b = random() % 4 != 0 ? 0 : static_cast<std::uint8_t>(random());
    if (!bytes.empty()) bytes[0] = static_cast<std::uint8_t>(random() % 12);
    const auto p = decoded(bytes);
    if (!p) continue;
    ++good;
    if (p->type == PacketType::kShort)
      ck_assert_uint_eq(p->bytes + sizeof(MessagePacket), bytes.size());
    if (p->type == PacketType::kAmShort)
      ck_assert_uint_eq(p->bytes + p->header_bytes + sizeof(AmPacket), bytes.size());
  }
  ck_assert_int_gt(good, 0);
}
END_TEST

int main() { return run_tests("packet", 60); }
