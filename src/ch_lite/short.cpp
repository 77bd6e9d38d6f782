// Short protocol: envelope and data in one control packet. And the acks of synchronous short and eager messages.
#include <cstddef>
#include <cstring>

#include "device.h"

namespace ch_lite {
namespace {

constexpr std::uint64_t kLookForCreditMax = 16 * 1024;
constexpr std::uint64_t kInPlaceMax = MPID_CONTROL_FLAT - sizeof(MessagePacket);  // of data

MessagePacket short_packet(const MatchKey& key, std::uint64_t sender, std::uint64_t bytes) {
  return {{PacketType::kShort, sender != 0 ? kPacketSync : std::uint8_t{0}, 0, 0, 0}, key.context, key.source, key.tag, bytes, sender};
}

}  // namespace

int Device::isend(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, bool synchronous, void* cookie,
                  Request** request) {
  if (peer == options_.rank) return send_self(memory, bytes, key, synchronous, cookie, request);  // not without `request`
  Peer& p = peers_[peer];
  if (p.lost != 0) return report(LITE_ERR_PEER_LOST, peer);
  if (is_short(bytes, cutoffs_) && p.credits[kPointToPoint].spend(message_charge(bytes))) return send_short(memory, bytes, peer, key, synchronous, cookie, request);  // the common case
  if (request == nullptr) return LITE_PENDING;
  const auto choose = [&] { return choose_protocol(bytes, cutoffs_for(peer, bytes), p.credits[kPointToPoint].left(), p.credits[kPointToPoint].spare()); };
  Choice choice = choose();
  // Credit may be back: a program that starts many sends in a row looks at the sockets here only. A long message is as well off by rendezvous (64 KB: better by 15 % where both sides stream).
  if (choice.out_of_credit && bytes <= kLookForCreditMax) {
    progress();
    if (p.lost != 0) return report(LITE_ERR_PEER_LOST, peer);
    choice = choose();
  }
  mplite::Counters& c = counters();
  if (choice.out_of_credit) ++c.credit_stalls;
  if (choice.protocol == Protocol::kShort) {
    CHLITE_CHECK(p.credits[kPointToPoint].spend(choice.charge));
    return send_short(memory, bytes, peer, key, synchronous, cookie, request);
  }
  int result;
  if (choice.protocol == Protocol::kEager) {
    ++c.eager_msgs;
    c.eager_bytes += bytes;
    result = send_eager(memory, bytes, peer, key, synchronous, cookie, request);
  } else {
    ++c.rndv_msgs;
    c.rndv_bytes += bytes;
    result = send_rendezvous(memory, bytes, peer, key, choice.fragment, cookie, request);
  }
  if (result >= 0 && choice.charge != 0) CHLITE_CHECK(p.credits[kPointToPoint].spend(choice.charge));
  return result;
}

int Device::send_plain(const void* data, std::uint64_t bytes, int peer, const MatchKey& key) {
  Peer& p = peers_[peer];
  if (p.lost != 0) [[unlikely]] return report(LITE_ERR_PEER_LOST, peer);
  if (!p.credits[kPointToPoint].spend(message_charge(bytes))) [[unlikely]] return LITE_PENDING;
  mplite::Counters& c = counters();
  ++c.short_msgs;
  c.short_bytes += bytes;
  // Header, packet and, if it is little, data in one piece.
  struct {
    alignas(MessagePacket) std::uint8_t head[MPID_CONTROL_HEAD];
    MessagePacket packet;
    std::uint8_t data[kInPlaceMax];
  } frame;
  static_assert(offsetof(decltype(frame), data) == MPID_CONTROL_HEAD + sizeof(MessagePacket));
  frame.packet = short_packet(key, 0, bytes);
  const std::uint64_t within = bytes <= kInPlaceMax ? bytes : 0;
  if (within != 0) [[likely]] mplite::copy_bytes(frame.data, data, within);
  const int result = send_packet(peer, &frame.packet.header, [&] {
    return MPID_SendControlInPlace(&frame.packet, static_cast<int>(sizeof frame.packet + within), data, static_cast<int>(bytes - within), peer);
  });
  if (result < 0) [[unlikely]] return send_short_failed(peer, bytes, nullptr, result);
  return LITE_OK;
}

// The credit is spent. Data leaves from where it is, or from a copy if it is in pieces.
int Device::send_short(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, bool synchronous, void* cookie,
                       Request** request) {
  mplite::Counters& c = counters();
  ++c.short_msgs;
  c.short_bytes += bytes;
  Request* r = nullptr;
  if (synchronous && (r = reserve_request()) == nullptr) return send_short_failed(peer, bytes, nullptr, 0);
  const std::uint64_t sender = r != nullptr ? r->pool_handle : 0;
  const int result = memory.pieces != nullptr ? send_packed(peer, key, sender, memory, bytes) : send_beside(peer, key, sender, memory.buffer, bytes);
  if (result < 0) return send_short_failed(peer, bytes, r, result);
  if (r == nullptr) return LITE_OK;
  r->key = key;
  start_request(r, RequestKind::kSend, RequestState::kAwaitingAck, peer, memory, bytes, cookie);
  *request = r;
  return LITE_PENDING;
}

int Device::send_short_failed(int peer, std::uint64_t bytes, Request* r, int result) {
  if (r != nullptr) unreserve(r);
  CHLITE_CHECK(peers_[peer].credits[kPointToPoint].refund(message_charge(bytes)));
  if (result == 0) return report(LITE_ERR_NOMEM, peer);
  peer_lost(peer, -result);
  return report(LITE_ERR_PEER_LOST, peer);
}

int Device::send_beside(int peer, const MatchKey& key, std::uint64_t sender, const void* data, std::uint64_t bytes) {
  MessagePacket packet = short_packet(key, sender, bytes);
  return send_control(peer, &packet.header, sizeof packet, data, static_cast<int>(bytes));
}

// In a frame of its own, for the copy's sake.
int Device::send_packed(int peer, const MatchKey& key, std::uint64_t sender, const Memory& memory, std::uint64_t bytes) {
  std::uint8_t packed[MPID_CONTROL_BYTES_MAX];
  copy(packed, memory, bytes);
  return send_beside(peer, key, sender, packed, bytes);
}

// What a ping-pong consists of, without the general way's decoding and search: the message for the one receive that is posted, short, contiguous, whole, and with nothing else to say. False: it is
// something else, of which nothing has been taken. (The general way would do the same with this one: what is checked here is what it checks.)
bool Device::take_awaited(const void* at, std::size_t bytes, int from) {
  auto* const r = static_cast<Request*>(matcher_.lone());
  MessagePacket m;
  if (r == nullptr || r->peer != from || r->memory.pieces != nullptr || bytes < sizeof m) [[unlikely]] return false;
  std::memcpy(&m, at, sizeof m);
  if (m.header.type != PacketType::kShort || m.header.flags != 0 || m.header.am_credit != 0 || m.context != r->key.context || m.source != r->key.source || m.tag != r->key.tag ||
      m.bytes != bytes - sizeof m || m.bytes > r->bytes || m.bytes > kShortBytesMax) [[unlikely]]
    return false;
  Credits& credits = peers_[from].credits[kPointToPoint];
  const std::uint64_t charge = message_charge(m.bytes);
  if (!credits.takes(charge) || !credits.refund(m.header.credit)) [[unlikely]] return false;
  credits.pass(charge);
  if (credits.due()) [[unlikely]] attend(peers_[from], kAttentionCredit);
  matcher_.withdraw(r);
  r->status = {LITE_OK, m.source, m.tag, from, m.bytes};
  if (m.bytes != 0) [[likely]] mplite::copy_bytes(r->memory.buffer, static_cast<const std::uint8_t*>(at) + sizeof m, m.bytes);
  complete(r, LITE_OK);
  return true;
}

void Device::handle_short(const Packet& packet, int from) {
  const std::uint64_t charge = message_charge(packet.bytes);
  if (!peers_[from].credits[kPointToPoint].accept(charge))
    return protocol_error(from, "more data than it has credit for (is LITE_CREDITS the same on every rank?)");
  if (Request* r = match(packet.key)) {
    matched(r, packet.key, from, packet.bytes);
    copy(r->memory, packet.payload, r->status.bytes);
    finish_receive(r);
    release_credit(from, kPointToPoint, charge);
    if (packet.sync) send_ack(from, packet.sender);
    return;
  }
  Message* m = new_message(from, packet, MessageState::kReady, kPointToPoint, charge);
  if (packet.bytes != 0) {
    m->block = obtain_block(packet.bytes);
    CHLITE_CHECK(m->block.data != nullptr);  // headroom()
    mplite::copy_bytes(m->block.data, packet.payload, packet.bytes);
  }
  count_unexpected(peers_[from], packet.bytes);
  matcher_.add_unexpected(m);
}

void Device::handle_ack(const Packet& packet, int from) {
  Request* r = echoed(packet.sender, from);
  if (r == nullptr) return;
  if (r->state == RequestState::kAwaitingAck)
    complete(r, LITE_OK);
  else if (r->state == RequestState::kSendingAwaitingAck)
    r->to(RequestState::kSending);
  else
    protocol_error(from, "an ack to a request that waits for none");
}

}  // namespace ch_lite
