// Short protocol: envelope and data in one control packet. And the acks of synchronous short and eager messages.
#include "device.h"

namespace ch_lite {
namespace {

constexpr std::uint64_t kLookForCreditMax = 16 * 1024;
constexpr std::uint64_t kInPlaceMax = 2560 - sizeof(MessagePacket);  // of data: up to here a copy costs less than what the kernel does for a list of pieces

}  // namespace

int Device::isend(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, bool synchronous, void* cookie,
                  Request** request) {
  if (peer == options_.rank) return send_self(memory, bytes, key, synchronous, cookie, request);  // not without `request`
  Peer& p = peers_[peer];
  if (p.lost != 0) return report(LITE_ERR_PEER_LOST, peer);
  mplite::Counters& c = mplite::channel_counters();
  if (is_short(bytes, cutoffs_) && p.credits[kPointToPoint].spend(message_charge(bytes))) {  // the common case
    ++c.short_msgs;
    c.short_bytes += bytes;
    const int result = send_short(memory, bytes, peer, key, synchronous, cookie, request);
    if (result < 0) CHLITE_CHECK(p.credits[kPointToPoint].refund(message_charge(bytes)));
    return result;
  }
  if (request == nullptr) return LITE_PENDING;
  const auto choose = [&] { return choose_protocol(bytes, cutoffs_for(peer, bytes), p.credits[kPointToPoint].left(), p.credits[kPointToPoint].spare()); };
  Choice choice = choose();
  // Credit may be back: a program that starts many sends in a row looks at the sockets here only. A long message is as well off by rendezvous (64 KB: better by 15 % where both sides stream).
  if (choice.out_of_credit && bytes <= kLookForCreditMax) {
    progress();
    if (p.lost != 0) return report(LITE_ERR_PEER_LOST, peer);
    choice = choose();
  }
  if (choice.out_of_credit) ++c.credit_stalls;
  int result;
  if (choice.protocol == Protocol::kShort) {
    ++c.short_msgs;
    c.short_bytes += bytes;
    result = send_short(memory, bytes, peer, key, synchronous, cookie, request);
  } else if (choice.protocol == Protocol::kEager) {
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

// From pieces, in ordinary context: the copy is what the packet is made of.
int Device::send_packed(int peer, MessagePacket* packet, const Memory& memory, int bytes) {
  std::uint8_t packed[MPID_CONTROL_BYTES_MAX];
  copy(packed, memory, static_cast<std::uint64_t>(bytes));
  return send_control(peer, &packet->header, sizeof *packet, packed, bytes);
}

// Header, packet and data in one piece of memory.
int Device::send_in_place(int peer, MessagePacket* packet, const void* data, std::uint64_t bytes) {
  std::uint8_t frame[MPID_CONTROL_HEAD + sizeof *packet + kInPlaceMax];
  std::uint8_t* const at = frame + MPID_CONTROL_HEAD;
  if (bytes != 0) std::memcpy(at + sizeof *packet, data, bytes);
  return send_packet(peer, &packet->header, [&] {
    std::memcpy(at, packet, sizeof *packet);
    return MPID_SendControlInPlace(at, static_cast<int>(sizeof *packet + bytes), peer);
  });
}

int Device::send_short(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, bool synchronous, void* cookie,
                       Request** request) {
  MessagePacket packet{{PacketType::kShort, 0, 0, 0, 0}, key.context, key.source, key.tag, bytes, 0};
  Request* r = nullptr;
  if (synchronous) {
    if ((r = reserve_request()) == nullptr) return report(LITE_ERR_NOMEM, peer);
    packet.header.flags = kPacketSync;
    packet.sender = r->pool_handle;
  }
  int result;
  if (memory.pieces != nullptr)
    result = send_packed(peer, &packet, memory, static_cast<int>(bytes));
  else if (bytes <= kInPlaceMax)
    result = send_in_place(peer, &packet, memory.buffer, bytes);
  else
    result = send_control(peer, &packet.header, sizeof packet, memory.buffer, static_cast<int>(bytes));
  if (result < 0) {
    if (r != nullptr) unreserve(r);
    peer_lost(peer, -result);
    return report(LITE_ERR_PEER_LOST, peer);
  }
  if (r == nullptr) return LITE_OK;
  r->key = key;
  start_request(r, RequestKind::kSend, RequestState::kAwaitingAck, peer, memory, bytes, cookie);
  *request = r;
  return LITE_PENDING;
}

// What a ping-pong consists of, without the general way's decoding and search: the message for the one receive that is posted, short, contiguous, whole, and with nothing else to say. False: it is
// something else, of which nothing has been taken. (The general way would do the same with this one: what is checked here is what it checks.)
bool Device::take_awaited(const void* at, std::size_t bytes, int from) {
  auto* const r = static_cast<Request*>(matcher_.lone());
  MessagePacket m;
  if (r == nullptr || r->peer != from || r->memory.pieces != nullptr || bytes < sizeof m) return false;
  std::memcpy(&m, at, sizeof m);
  if (m.header.type != PacketType::kShort || m.header.flags != 0 || m.header.am_credit != 0 || m.context != r->key.context || m.source != r->key.source || m.tag != r->key.tag ||
      m.bytes != bytes - sizeof m || m.bytes > r->bytes || m.bytes > kShortBytesMax)
    return false;
  Credits& credits = peers_[from].credits[kPointToPoint];
  const std::uint64_t charge = message_charge(m.bytes);
  if (!credits.takes(charge) || !credits.refund(m.header.credit)) return false;
  credits.pass(charge);
  if (credits.due()) attend(peers_[from], kAttentionCredit);
  matcher_.withdraw(r);
  r->status = {LITE_OK, m.source, m.tag, from, m.bytes};
  if (m.bytes != 0) mplite::copy_bytes(r->memory.buffer, static_cast<const std::uint8_t*>(at) + sizeof m, m.bytes);
  finish_receive(r);
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
