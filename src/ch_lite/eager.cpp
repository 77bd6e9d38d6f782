// Eager protocol: envelope as control packet, data on the channel right behind it.
// The channel is FIFO per source, so channel receives are posted in the order of envelopes: when one has to wait for a block, those of the
// same source behind it wait too (the deferred queue), point to point and active messages alike.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device.h"

namespace ch_lite {

// Packet and data leave in one system call. *id: the send under way, 0 when done. Or -errno: the peer is lost.
int Device::send_channel_behind(int peer, PacketHeader* packet, int packet_bytes, const Memory& memory, std::uint64_t bytes,
                                MPID_ChannelId* id) {
  *id = 0;
  if (memory.pieces == nullptr && bytes != 0) {
    const int straight = send_packet(peer, packet, [&] { return MPID_ISendBehind(packet, packet_bytes, memory.buffer, bytes, peer, id); });
    if (straight == 0) return 0;
    if (straight != -EAGAIN) {
      peer_lost(peer, -straight);
      return straight;
    }
  }
  MPID_ChannelHold(peer);
  int result = send_control(peer, packet, packet_bytes);
  const bool announced = result == 0;
  if (announced && bytes != 0)
    result = memory.pieces == nullptr ? MPID_ISendChannel(memory.buffer, bytes, peer, id) : MPID_ISendChannelV(memory.pieces, bytes, peer, id);
  MPID_ChannelRelease(peer);
  if (result < 0) {
    // An envelope without its data would put everything behind it out of order.
    if (announced && options_.hooks.give_up != nullptr) options_.hooks.give_up(options_.hooks.arg, peer, -result);
    peer_lost(peer, -result);
    return result;
  }
  if (*id == 0) return 0;
  const int done = MPID_TSendChannel(*id);
  if (done != 0) *id = 0;
  return std::min(done, 0);
}

int Device::send_eager(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, bool synchronous, void* cookie,
                       Request** request) {
  Request* r = reserve_request();
  if (r == nullptr) return report(LITE_ERR_NOMEM, peer);
  MessagePacket packet{{PacketType::kEager, 0, 0, 0, 0}, key.context, key.source, key.tag, bytes, 0};
  if (synchronous) {
    packet.header.flags = kPacketSync;
    packet.sender = r->pool_handle;
  }
  MPID_ChannelId id;
  if (send_channel_behind(peer, &packet.header, sizeof packet, memory, bytes, &id) < 0) {
    unreserve(r);
    return report(LITE_ERR_PEER_LOST, peer);
  }
  if (id == 0 && !synchronous) {
    unreserve(r);
    return LITE_OK;
  }
  r->key = key;
  RequestState state = RequestState::kSending;
  if (synchronous) state = id == 0 ? RequestState::kAwaitingAck : RequestState::kSendingAwaitingAck;
  start_request(r, RequestKind::kSend, state, peer, memory, bytes, cookie);
  *request = r;
  if (id != 0) watch_send(r, id);
  return LITE_PENDING;
}

void Device::handle_eager(const Packet& packet, int from) {
  Peer& p = peers_[from];
  const std::uint64_t charge = message_charge(packet.bytes);
  if (!p.credits[kPointToPoint].accept(charge))
    return protocol_error(from, "more data than it has credit for (is LITE_CREDITS the same on every rank?)");
  if (Request* r = match(packet.key)) {
    matched(r, packet.key, from, packet.bytes);
    if (packet.sync) send_ack(from, packet.sender);
    if (packet.bytes == 0) {
      release_credit(from, kPointToPoint, charge);
      return finish_receive(r);
    }
    r->to(RequestState::kReceivingChannel);
    if (p.deferred_head == nullptr && post_channel_receive(r)) return release_credit(from, kPointToPoint, charge);
    Message* m = new_message(from, packet, MessageState::kDeferred, kPointToPoint, charge);
    m->request = r;
    return defer(m);
  }
  count_unexpected(peers_[from], packet.bytes);
  Message* m = new_message(from, packet, packet.bytes == 0 ? MessageState::kReady : MessageState::kDeferred, kPointToPoint, charge);
  matcher_.add_unexpected(m);
  if (packet.bytes != 0) arrive_by_channel(m);
}

// The data of m comes next on the channel.
void Device::arrive_by_channel(Message* m) {
  if (peers_[m->peer].deferred_head != nullptr || !post_channel_block(m)) defer(m);
}

void Device::defer(Message* m) {
  Peer& p = peers_[m->peer];
  m->deferred_next = nullptr;
  (p.deferred_tail != nullptr ? p.deferred_tail->deferred_next : p.deferred_head) = m;
  p.deferred_tail = m;
  attend(p, kAttentionDeferred);
}

// False: not now. A lost peer counts as posted: the request has failed.
bool Device::post_channel_receive(Request* r) {
  MPID_ChannelId id = 0;
  const int result = r->memory.pieces == nullptr ? MPID_IRecvFromChannel(r->memory.buffer, r->status.bytes, r->peer, &id)
                                                 : MPID_IRecvFromChannelV(r->memory.pieces, r->status.bytes, r->peer, &id);
  if (result == -ENOBUFS) return false;
  if (result < 0) {
    end_channel_receive(r, false);
    return true;
  }
  MPID_OnComplete(id, on_channel_received, r);
  return true;
}

// As above, into a block. False: no block, or no operation.
bool Device::post_channel_block(Message* m) {
  if (m->active) {
    if (!am_grow_block(m, false)) return false;
  } else if (m->block.data == nullptr) {
    m->block = obtain_block(m->by_channel());
    if (m->block.data == nullptr) return m->fragment != 0 && throw_fragment_away(m);
  }
  std::uint8_t* data = static_cast<std::uint8_t*>(m->block.data) + (m->active ? padded_header(m->am_header_bytes) : 0);
  MPID_ChannelId id = 0;
  const int result = MPID_IRecvFromChannel(data, m->by_channel(), m->peer, &id);
  if (result == -ENOBUFS) return false;
  if (result < 0) {
    drop_message(m);
    return true;
  }
  m->to(MessageState::kArriving);
  m->channel = id;
  MPID_OnComplete(id, on_block_received, m);
  return true;
}

// Posts what can be posted, in order. False: some are left.
bool Device::serve_deferred(Peer& p) {
  while (p.deferred_head != nullptr) {
    Message* m = p.deferred_head;
    Message* next = m->deferred_next;
    if (Request* r = m->request) {
      if (!post_channel_receive(r)) return false;
      free_message(m);
    } else if (!post_channel_block(m)) {
      return false;
    }
    p.deferred_head = next;
    if (next == nullptr) p.deferred_tail = nullptr;
  }
  return true;
}

void Device::on_channel_received(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  if (result >= 0 && static_cast<std::uint64_t>(result) != (r->fragment_open ? r->fragment : r->incoming)) {
    r->device->protocol_error(r->peer, "channel data that is not as long as its envelope said");
    result = -EPROTO;
  }
  r->device->end_channel_receive(r, result >= 0);
}

// What came for r by the channel, all or the fragment, is here, or never will be.
void Device::end_channel_receive(Request* r, bool arrived) {
  if (r->fragment_open) return end_fragment(r, arrived);
  if (arrived) return finish_receive(r);
  r->status.bytes = 0;
  complete(r, LITE_ERR_PEER_LOST);
}

void Device::on_block_received(void* arg, std::int64_t result) {
  auto* m = static_cast<Message*>(arg);
  Device& device = *m->device;
  if (result >= 0 && static_cast<std::uint64_t>(result) != m->by_channel()) {
    device.protocol_error(m->peer, "channel data that is not as long as its envelope said");
    result = -EPROTO;
  }
  if (result < 0) return device.drop_message(m);
  device.happened();
  m->to(MessageState::kReady);
}

// r has matched m, whose data is arriving in its block: what is there is copied, the rest goes straight to the user's buffer.
void Device::move_arriving(Message* m, Request* r) {
  CHLITE_CHECK(MPID_MoveRecvFromChannel(m->channel, r->memory.buffer, r->memory.pieces, r->status.bytes) == 0);
  MPID_OnComplete(m->channel, on_channel_received, r);
  free_message(m);
}

}  // namespace ch_lite
