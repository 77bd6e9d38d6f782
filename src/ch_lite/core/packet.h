// The device's control packets: the whole wire format above the engine's frames.
// Written by the protocol files, decoded once by Device::act_upon. Byte order little-endian,
// version is the engine's handshake's (mplite/net/frame.h kWireVersion): two ranks that can talk at
// all speak the same packets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "ch_lite/ch_lite.h"
#include "ch_lite/channel/channel.h"
#include "ch_lite/core/matcher.h"

namespace ch_lite {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packets are copied as they are");

enum class PacketType : std::uint8_t {
  kShort = 1,  // MessagePacket, the data behind it
  kEager = 2,  // MessagePacket; the data is the source's next channel message (none for 0 bytes)
  kRts =
      3,  // RtsPacket; its fragment is the source's next channel message, the rest waits for a CTS
  kCts = 4,      // CtsPacket: send the rest of `accepted` bytes as transfer `transfer`
  kSyncAck = 5,  // AckPacket: the synchronous short or eager message was matched
  kCredit = 6,   // PacketHeader only: nothing else to say, but credit to return
  kAmShort = 7,  // AmPacket, host header, data
  kAmEager = 8,  // AmPacket, host header; data on the channel
  kAmRts = 9,    // AmPacket, host header; data waits for a CTS
  // one-sided (rma_origin.cpp, rma_target.cpp)
  kPut = 10,          // AccessPacket, the data behind it; with kPacketSync answered by kPutAck
  kPutRequest = 11,   // AccessPacket, `id` the origin's request; answered by kCts, and by kSyncAck
                      // when the transfer is in the target's memory
  kGet = 12,          // AccessPacket, `id` the origin's request; answered by kGetData
  kGetTransfer = 13,  // AccessPacket, `id` a transfer that the origin has made: the data goes there
  kPutAck = 14,   // AckPacket, `sender` a number: so many of the oldest kPut that ask are in the
                  // target's memory
  kGetData = 15,  // AckPacket, the data behind it
};

inline constexpr std::uint8_t kPacketSync = 1;  // flags: the sender waits for kSyncAck, or kPutAck
inline constexpr std::uint8_t kPacketLate =
    2;  // flags, of any packet: since the last one, a long message of yours (protocol.h kLongBytes)
        // found no receive

// First in every packet. The credits are bytes that its receiver may spend again, piggybacked on
// whatever goes that way.
struct PacketHeader {
  PacketType type;
  std::uint8_t flags;
  std::uint16_t reserved;
  std::uint32_t credit;     // point to point
  std::uint32_t am_credit;  // active messages
};
static_assert(sizeof(PacketHeader) == 12 && std::is_trivially_copyable_v<PacketHeader>);

// `sender` is the sender's request handle (index and generation), echoed by CTS and ack; 0 when no
// answer is expected.
struct MessagePacket {
  PacketHeader header;
  std::uint32_t context;
  std::int32_t source;
  std::int32_t tag;
  std::uint64_t bytes;
  std::uint64_t sender;
};
static_assert(sizeof(MessagePacket) == 40 && std::is_trivially_copyable_v<MessagePacket>);

struct RtsPacket {
  MessagePacket message;
  std::uint64_t fragment;  // bytes at the front that come unasked; less than all
};
static_assert(sizeof(RtsPacket) == 48 && std::is_trivially_copyable_v<RtsPacket>);

struct CtsPacket {
  PacketHeader header;
  std::uint32_t resend_fragment;  // 1: the fragment was discarded, it has to come again
  std::uint64_t sender;
  std::uint64_t transfer;  // 0 when nothing is to follow: what was accepted has come with the RTS
  std::uint64_t accepted;  // at most what the RTS offered
};
static_assert(sizeof(CtsPacket) == 40 && std::is_trivially_copyable_v<CtsPacket>);

struct AckPacket {
  PacketHeader header;
  std::uint32_t reserved;
  std::uint64_t sender;
};
static_assert(sizeof(AckPacket) == 24 && std::is_trivially_copyable_v<AckPacket>);

struct AmPacket {
  PacketHeader header;
  std::uint32_t handler;
  std::uint32_t header_bytes;
  std::uint32_t reserved;
  std::uint64_t data_bytes;
  std::uint64_t sender;
};
static_assert(sizeof(AmPacket) == 40 && std::is_trivially_copyable_v<AmPacket>);
static_assert(sizeof(AmPacket) + LITE_AM_HEADER_MAX <= MPID_CONTROL_BYTES_MAX,
              "every host header fits into a control packet");

// Access to exposed memory: region handle, offset and length, never an address.
struct AccessPacket {
  PacketHeader header;
  std::uint32_t reserved;
  std::uint64_t region;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t id;
};
static_assert(sizeof(AccessPacket) == 48 && std::is_trivially_copyable_v<AccessPacket>);

// Of what a packet brings and a block may have to keep: the data of a message, or a host header
// (padded) and the data behind it. The handler has a block of this size, or takes no packet.
inline constexpr std::uint64_t kPacketDataMax = 32 * 1024;
static_assert(sizeof(MessagePacket) + kPacketDataMax <= MPID_CONTROL_BYTES_MAX &&
              sizeof(AmPacket) + kPacketDataMax <= MPID_CONTROL_BYTES_MAX &&
              sizeof(AccessPacket) + kPacketDataMax <= MPID_CONTROL_BYTES_MAX);
inline constexpr std::uint64_t kAccessShortMax = kPacketDataMax;  // of data in kPut and kGetData
inline constexpr std::uint64_t kShortBytesMax = kPacketDataMax;
// What an active message takes at the receiver: the host's header, padded so that the data behind
// it is aligned.
inline constexpr std::uint64_t padded_header(std::uint64_t header_bytes) {
  return (header_bytes + 15) & ~std::uint64_t{15};
}

inline constexpr std::uint64_t kMessageBytesMax =
    INT64_MAX;  // lengths come back as int64_t from the channel

// A decoded packet: consistent in itself (lengths fit the packet, ids present where the type needs
// them). `payload` points into the packet: data of kShort, kPut, kGetData; host header and then
// data of kAm*.
struct Packet {
  PacketType type;
  bool sync = false;
  bool late = false;             // all
  bool resend_fragment = false;  // kCts
  std::uint32_t credit = 0;
  std::uint32_t am_credit = 0;
  MatchKey key{};  // kShort, kEager, kRts
  std::uint64_t bytes =
      0;  // of data: kShort, kEager, kRts, kAm*, one-sided; accepted bytes of kCts
  std::uint64_t fragment = 0;      // kRts
  std::uint64_t sender = 0;        // all but kCredit, kPut, kGetTransfer; the number in kPutAck
  std::uint64_t transfer = 0;      // kCts, kGetTransfer
  std::uint64_t region = 0;        // kPut, kPutRequest, kGet, kGetTransfer
  std::uint64_t offset = 0;        // the same
  std::uint32_t handler = 0;       // kAm*
  std::uint32_t header_bytes = 0;  // kAm*
  const std::uint8_t* payload = nullptr;
};

// Into `packet`, which is as it was made. False: not a packet that this device could have sent.
// Signal-safe.
bool decode(std::span<const std::uint8_t> bytes, Packet& packet);

}  // namespace ch_lite
