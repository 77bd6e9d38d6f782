// Short protocol: envelope and data in one control packet.
#include "ch_lite/protocols/short.h"

#include <cstddef>
#include <cstring>

#include "ch_lite/protocols/answers.h"
#include "ch_lite/protocols/incoming.h"
#include "ch_lite/protocols/remote_process.h"

namespace ch_lite {
namespace {

constexpr std::uint64_t kInPlaceMax = MPID_CONTROL_FLAT - sizeof(MessagePacket);  // of data

MessagePacket short_packet(const MatchKey& key, std::uint64_t sender, std::uint64_t bytes) {
  return {{PacketType::kShort, sender != 0 ? kPacketSync : std::uint8_t{0}, 0, 0, 0},
          key.context,
          key.source,
          key.tag,
          bytes,
          sender};
}

// `result`: -errno of the send, or 0: there was no memory for a request.
[[gnu::noinline]] int send_short_failed(Core& core, int peer, std::uint64_t bytes, Request* r,
                                        int result) {
  if (r != nullptr) core.requests.unreserve(r);
  CHLITE_CHECK(core.peers[peer].credits[kPointToPoint].refund(message_charge(bytes)));
  if (result == 0) return core.report(LITE_ERR_NOMEM, peer);
  core.peer_lost(peer, -result);
  return core.report(LITE_ERR_PEER_LOST, peer);
}

// `sender`: 0, or a request that an ack is to complete.
int send_beside(Core& core, int peer, const MatchKey& key, std::uint64_t sender, const void* data,
                std::uint64_t bytes) {
  MessagePacket packet = short_packet(key, sender, bytes);
  return core.send_control(peer, &packet.header, sizeof packet, data, static_cast<int>(bytes));
}

// In a frame of its own, for the copy's sake.
[[gnu::noinline]] int send_packed(Core& core, int peer, const MatchKey& key, std::uint64_t sender,
                                  const Memory& memory, std::uint64_t bytes) {
  std::uint8_t packed[MPID_CONTROL_BYTES_MAX];
  copy(packed, memory, bytes);
  return send_beside(core, peer, key, sender, packed, bytes);
}

}  // namespace

int send_plain(Core& core, const void* data, std::uint64_t bytes, int peer, const MatchKey& key) {
  Peer& p = core.peers[peer];
  if (p.lost != 0) [[unlikely]]
    return core.report(LITE_ERR_PEER_LOST, peer);
  if (!p.credits[kPointToPoint].spend(message_charge(bytes))) [[unlikely]]
    return LITE_PENDING;
  mplite::Counters& c = core.counters();
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
  if (within != 0) [[likely]]
    mplite::copy_bytes(frame.data, data, within);
  const int result = core.send_packet(peer, &frame.packet.header, [&] {
    return MPID_SendControlInPlace(&frame.packet, static_cast<int>(sizeof frame.packet + within),
                                   data, static_cast<int>(bytes - within), peer);
  });
  if (result < 0) [[unlikely]]
    return send_short_failed(core, peer, bytes, nullptr, result);
  return LITE_OK;
}

// The credit is spent. Data leaves from where it is, or from a copy if it is in pieces.
int send_short(Core& core, const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key,
               bool synchronous, void* cookie, Request** request) {
  mplite::Counters& c = core.counters();
  ++c.short_msgs;
  c.short_bytes += bytes;
  Request* r = nullptr;
  if (synchronous && (r = core.requests.reserve()) == nullptr)
    return send_short_failed(core, peer, bytes, nullptr, 0);
  const std::uint64_t sender = r != nullptr ? r->pool_handle : 0;
  const int result = memory.pieces != nullptr
                         ? send_packed(core, peer, key, sender, memory, bytes)
                         : send_beside(core, peer, key, sender, memory.buffer, bytes);
  if (result < 0) return send_short_failed(core, peer, bytes, r, result);
  if (r == nullptr) return LITE_OK;
  r->key = key;
  core.start_request(r, RequestKind::kSend, RequestState::kAwaitingAck, peer, memory, bytes,
                     cookie);
  *request = r;
  return LITE_PENDING;
}

// What a ping-pong consists of, without the general way's decoding and search: the message for the
// one receive that is posted, short, contiguous, whole, and with nothing else to say. False: it is
// something else, of which nothing has been taken. (The general way would do the same with this
// one: what is checked here is what it checks.)
bool take_awaited(Core& core, const void* at, std::size_t bytes, int from) {
  auto* const r = static_cast<Request*>(core.matcher.sole_posted());
  MessagePacket m;
  if (r == nullptr || r->peer != from || r->memory.pieces != nullptr || bytes < sizeof m)
      [[unlikely]]
    return false;
  std::memcpy(&m, at, sizeof m);
  if (m.header.type != PacketType::kShort || m.header.flags != 0 || m.header.am_credit != 0 ||
      m.context != r->key.context || m.source != r->key.source || m.tag != r->key.tag ||
      m.bytes != bytes - sizeof m || m.bytes > r->bytes || m.bytes >= core.sole_posted_end)
      [[unlikely]]
    return false;
  if (!core.is_own_job(from) && !core.peers[from].unverified.empty()) [[unlikely]]
    return false;  // one that the host has to be asked about came before
  Credits& credits = core.peers[from].credits[kPointToPoint];
  const std::uint64_t charge = message_charge(m.bytes);
  if (!credits.takes(charge) || !credits.refund(m.header.credit)) [[unlikely]]
    return false;
  credits.pass(charge);
  if (credits.due()) [[unlikely]]
    core.attend(core.peers[from], kAttentionCredit);
  core.matcher.withdraw(r);
  r->status = {LITE_OK, m.source, m.tag, from, m.bytes};
  core.trace.awaited_came(m, from, r);
  if (m.bytes != 0) [[likely]]
    mplite::copy_bytes(r->memory.buffer, static_cast<const std::uint8_t*>(at) + sizeof m, m.bytes);
  core.complete(r, LITE_OK);
  return true;
}

void handle_short(Core& core, const Packet& packet, int from) {
  const std::uint64_t charge = message_charge(packet.bytes);
  if (!core.peers[from].credits[kPointToPoint].accept(charge))
    return core.protocol_error(from, "more data than it has credit for");
  const Admission admission = admit(core, from, packet.key);
  if (admission == Admission::kNo) return;
  if (Request* r = admission == Admission::kYes ? core.match(packet.key) : nullptr) {
    matched(core, r, packet.key, from, packet.bytes);
    copy(r->memory, packet.payload, r->status.bytes);
    finish_receive(core, r);
    core.release_credit(from, kPointToPoint, charge);
    if (packet.sync) send_ack(core, from, packet.sender);
    return;
  }
  Message* m = core.new_message(from, packet, MessageState::kReady, kPointToPoint, charge);
  if (packet.bytes != 0) {
    m->block = core.obtain_packet_block(packet.bytes);
    CHLITE_CHECK(m->block.data != nullptr);  // headroom()
    mplite::copy_bytes(m->block.data, packet.payload, packet.bytes);
  }
  core.count_unexpected(core.peers[from], packet.bytes);
  core.matcher.add_unexpected(m);
  if (admission == Admission::kLater) core.leave_unverified(m);
}

void handle_ack(Core& core, const Packet& packet, int from) {
  Request* r = core.echoed(packet.sender, from);
  if (r == nullptr) return;
  if (r->state == RequestState::kAwaitingAck)
    core.complete(r, LITE_OK);
  else if (r->state == RequestState::kSendingAwaitingAck)
    r->to(RequestState::kSending);
  else
    core.protocol_error(from, "an ack to a request that waits for none");
}

}  // namespace ch_lite
