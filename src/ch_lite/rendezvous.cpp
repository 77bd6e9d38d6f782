// Rendezvous: RTS, CTS when matched, data by transfer straight into the user's buffer. Works from the handler at both ends.
#include <algorithm>
#include <cerrno>

#include "device.h"

namespace ch_lite {

int Device::send_rendezvous(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, void* cookie, Request** request) {
  Request* r = reserve_request();
  if (r == nullptr) return report(LITE_ERR_NOMEM, peer);
  MessagePacket packet{{PacketType::kRts, 0, 0, 0, 0}, key.context, key.source, key.tag, bytes, r->pool_handle};
  const int result = send_control(peer, &packet.header, sizeof packet);
  if (result < 0) {
    unreserve(r);
    peer_lost(peer, -result);
    return report(LITE_ERR_PEER_LOST, peer);
  }
  r->key = key;
  start_request(r, RequestKind::kSend, RequestState::kAwaitingCts, peer, memory, bytes, cookie);
  MPID_ChannelPrefer(peer);
  *request = r;
  return LITE_PENDING;
}

void Device::handle_rts(const Packet& packet, int from) {
  if (Request* r = match(packet.key)) {
    matched(r, packet.key, from, packet.bytes);
    r->to(RequestState::kReceivingTransfer);
    return accept_offer(r, packet.sender);
  }
  // Not charged: the node costs less than the request that the sender keeps for it.
  Message* m = new_message(from, packet, MessageState::kOffered, kPointToPoint, 0);
  count_unexpected(packet.bytes);
  matcher_.add_unexpected(m);
}

int Device::send_cts(int peer, std::uint64_t sender, MPID_TransferId transfer, std::uint64_t accepted) {
  CtsPacket cts{};
  cts.header.type = PacketType::kCts;
  cts.sender = sender;
  cts.transfer = transfer;
  cts.accepted = accepted;
  const int result = send_control(peer, &cts.header, sizeof cts);
  if (result < 0) peer_lost(peer, -result);  // headroom was there; a CTS must not be forgotten quietly
  return result;
}

// The receive r (kReceivingTransfer, matched) answers the RTS of `sender`. Only what fits is moved; for nothing there is no transfer.
void Device::accept_offer(Request* r, std::uint64_t sender) {
  r->accepted = r->status.bytes;
  const int peer = r->peer;
  if (r->accepted == 0) {
    if (send_cts(peer, sender, 0, 0) < 0) return complete(r, LITE_ERR_PEER_LOST);
    return finish_receive(r);
  }
  int result = MPID_CreateRecvTransfer(r->memory.buffer, r->accepted, peer, &r->transfer);
  if (result >= 0) {
    result = r->memory.pieces == nullptr ? MPID_StartNBRecvTransfer(r->memory.buffer, r->accepted, peer, r->transfer, &r->channel)
                                         : MPID_StartNBRecvTransferV(r->memory.pieces, r->accepted, peer, r->transfer, &r->channel);
    if (result < 0) MPID_CancelRecvTransfer(r->transfer, 0);
  }
  if (result < 0) {
    r->status.bytes = 0;
    peer_lost(peer, -result);
    return complete(r, LITE_ERR_PEER_LOST);
  }
  // Before the CTS, so that a peer lost while it is sent completes r by the callback.
  MPID_OnComplete(r->channel, on_transfer_received, r);
  if (r->state != RequestState::kReceivingTransfer) return;
  if (send_cts(peer, sender, r->transfer, r->accepted) < 0 && r->state == RequestState::kReceivingTransfer) fail_request(r, peer);
}

void Device::on_transfer_received(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  if (result >= 0 && static_cast<std::uint64_t>(result) != r->accepted) {
    r->device->protocol_error(r->peer, "a transfer that is not as long as was accepted");
    result = -EPROTO;
  }
  if (result >= 0) return r->device->finish_receive(r);
  r->status.bytes = 0;
  r->device->complete(r, LITE_ERR_PEER_LOST);
}

// Of point to point, active messages and puts.
void Device::handle_cts(const Packet& packet, int from) {
  Request* r = echoed(packet.sender, from);
  if (r == nullptr) return;
  const bool put = r->kind == RequestKind::kPut;
  if (r->state != RequestState::kAwaitingCts || packet.bytes > r->bytes || (put && packet.bytes != r->bytes))
    return protocol_error(from, "a CTS that does not fit its RTS");
  r->accepted = packet.bytes;
  MPID_ChannelId id = 0;
  int result = 0;
  if (packet.bytes != 0)
    result = r->memory.pieces == nullptr ? MPID_StartNBSendTransfer(r->memory.buffer, packet.bytes, from, packet.transfer, &id)
                                         : MPID_StartNBSendTransferV(r->memory.pieces, packet.bytes, from, packet.transfer, &id);
  if (result < 0) {
    peer_lost(from, -result);
    return complete(r, LITE_ERR_PEER_LOST);
  }
  r->to(put ? RequestState::kSendingAwaitingAck : RequestState::kSending);
  watch_send(r, id);
}

}  // namespace ch_lite
