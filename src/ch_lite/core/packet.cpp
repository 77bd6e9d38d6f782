// Decodes control packets: bounds first, then sense.
// Called by Device::act_upon, perhaps in the handler.
#include "ch_lite/core/packet.h"

namespace ch_lite {
namespace {

template <typename T>
bool read(std::span<const std::uint8_t> bytes, T& out) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&out, bytes.data(), sizeof(T));
  return true;
}

bool decode_message(std::span<const std::uint8_t> bytes, Packet& p) {
  MessagePacket m;
  if (!read(bytes, m)) return false;
  // A wildcard in an envelope would match what it must not.
  if (m.source == LITE_ANY_SOURCE || m.tag == LITE_ANY_TAG || m.bytes > kMessageBytesMax)
    return false;
  const std::uint64_t behind = bytes.size() - sizeof m;
  if (p.type == PacketType::kRts) {
    RtsPacket rts;
    if (bytes.size() != sizeof rts || !read(bytes, rts) ||
        (rts.fragment != 0 && rts.fragment >= m.bytes))
      return false;
    p.fragment = rts.fragment;
  } else if (behind != (p.type == PacketType::kShort ? m.bytes : 0) || behind > kShortBytesMax) {
    return false;
  }
  if ((p.sync || p.type == PacketType::kRts) && m.sender == 0) return false;
  p.key = {m.context, m.source, m.tag};
  p.bytes = m.bytes;
  p.sender = m.sender;
  p.payload = bytes.data() + sizeof m;
  return true;
}

bool decode_cts(std::span<const std::uint8_t> bytes, Packet& p) {
  CtsPacket c;
  if (bytes.size() != sizeof c || !read(bytes, c)) return false;
  if (c.sender == 0 || (c.accepted == 0 && c.transfer != 0) || c.resend_fragment > 1 ||
      c.accepted > kMessageBytesMax)
    return false;
  p.sender = c.sender;
  p.transfer = c.transfer;
  p.resend_fragment = c.resend_fragment != 0;
  p.bytes = c.accepted;
  return true;
}

bool decode_ack(std::span<const std::uint8_t> bytes, Packet& p) {
  AckPacket a;
  if (bytes.size() != sizeof a || !read(bytes, a) || a.sender == 0) return false;
  p.sender = a.sender;
  return true;
}

bool decode_am(std::span<const std::uint8_t> bytes, Packet& p) {
  AmPacket a;
  if (!read(bytes, a)) return false;
  if (a.header_bytes > LITE_AM_HEADER_MAX || a.data_bytes > kMessageBytesMax) return false;
  const bool in_packet = p.type == PacketType::kAmShort;
  if (bytes.size() - sizeof a != a.header_bytes + (in_packet ? a.data_bytes : 0)) return false;
  if (in_packet ? padded_header(a.header_bytes) + a.data_bytes > kPacketDataMax : a.data_bytes == 0)
    return false;
  if (p.type == PacketType::kAmRts && a.sender == 0) return false;
  p.handler = a.handler;
  p.header_bytes = a.header_bytes;
  p.bytes = a.data_bytes;
  p.sender = a.sender;
  p.payload = bytes.data() + sizeof a;
  return true;
}

bool decode_access(std::span<const std::uint8_t> bytes, Packet& p) {
  AccessPacket a;
  if (!read(bytes, a)) return false;
  const bool put = p.type == PacketType::kPut;
  if (a.region == 0 || a.bytes == 0 || a.bytes > kMessageBytesMax || (a.id == 0) != put)
    return false;
  if (bytes.size() - sizeof a != (put ? a.bytes : 0)) return false;
  if ((put || p.type == PacketType::kGet) && a.bytes > kAccessShortMax) return false;
  p.region = a.region;
  p.offset = a.offset;
  p.bytes = a.bytes;
  (p.type == PacketType::kGetTransfer ? p.transfer : p.sender) = a.id;
  p.payload = bytes.data() + sizeof a;
  return true;
}

bool decode_get_data(std::span<const std::uint8_t> bytes, Packet& p) {
  AckPacket a;
  if (!read(bytes, a) || a.sender == 0 || bytes.size() == sizeof a) return false;
  p.sender = a.sender;
  p.bytes = bytes.size() - sizeof a;
  p.payload = bytes.data() + sizeof a;
  return true;
}

}  // namespace

bool decode(std::span<const std::uint8_t> bytes, Packet& p) {
  PacketHeader h;
  if (!read(bytes, h) || bytes.size() > MPID_CONTROL_BYTES_MAX) return false;
  p.type = h.type;
  p.sync = (h.flags & kPacketSync) != 0;
  p.late = (h.flags & kPacketLate) != 0;
  p.credit = h.credit;
  p.am_credit = h.am_credit;
  const bool may_sync =
      h.type == PacketType::kShort || h.type == PacketType::kEager || h.type == PacketType::kPut;
  if ((h.flags & ~(kPacketSync | kPacketLate)) != 0 || (p.sync && !may_sync)) return false;

  switch (h.type) {
    case PacketType::kShort:
    case PacketType::kEager:
    case PacketType::kRts: return decode_message(bytes, p);
    case PacketType::kCts: return decode_cts(bytes, p);
    case PacketType::kSyncAck:
    case PacketType::kPutAck: return decode_ack(bytes, p);
    case PacketType::kCredit: return bytes.size() == sizeof(PacketHeader);
    case PacketType::kAmShort:
    case PacketType::kAmEager:
    case PacketType::kAmRts: return decode_am(bytes, p);
    case PacketType::kPut:
    case PacketType::kPutRequest:
    case PacketType::kGet:
    case PacketType::kGetTransfer: return decode_access(bytes, p);
    case PacketType::kGetData: return decode_get_data(bytes, p);
  }
  return false;
}

}  // namespace ch_lite
