// Rendezvous: RTS, CTS when matched, data by transfer straight into the user's buffer. Works from the handler at both ends.
// A fragment of the data goes with the RTS, on the channel as if it were an eager message of its own, and is charged as one: the CTS crosses it. On the stream it is before the
// transfer, so a request with both ends with the transfer; only a loss, or a receive that has room for no more, makes the fragment's end the request's.
#include <algorithm>
#include <cerrno>

#include "device.h"

namespace ch_lite {

int Device::send_rendezvous(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, std::uint64_t fragment, void* cookie, Request** request) {
  Request* r = reserve_request();
  if (r == nullptr) return report(LITE_ERR_NOMEM, peer);
  RtsPacket packet{{{PacketType::kRts, 0, 0, 0, 0}, key.context, key.source, key.tag, bytes, r->pool_handle}, fragment};
  MPID_ChannelId id = 0;
  const int result = fragment == 0 ? send_control(peer, &packet.message.header, sizeof packet) : send_channel_behind(peer, &packet.message.header, sizeof packet, memory, fragment, &id);
  if (result < 0) {
    unreserve(r);
    peer_lost(peer, -result);
    return report(LITE_ERR_PEER_LOST, peer);
  }
  r->key = key;
  start_request(r, RequestKind::kSend, RequestState::kAwaitingCts, peer, memory, bytes, cookie);
  r->fragment = fragment;
  MPID_ChannelPrefer(peer);
  *request = r;
  if (id != 0) {
    r->fragment_open = true;
    MPID_OnComplete(id, on_fragment_sent, r);
  }
  return LITE_PENDING;
}

void Device::on_fragment_sent(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  r->fragment_open = false;
  // The CTS, or the transfer, or the loss of the peer ends it; or else they have been here, and there was nothing left to do.
  if (r->state != RequestState::kSending || r->channel != 0) return;
  const bool lost = result < 0 || r->device->peers_[r->peer].lost != 0;
  r->device->complete(r, lost ? LITE_ERR_PEER_LOST : LITE_OK);
}

void Device::handle_rts(const Packet& packet, int from) {
  Peer& p = peers_[from];
  // An RTS without data is not charged: the node costs less than the request that the sender keeps for it.
  const std::uint64_t charge = packet.fragment != 0 ? message_charge(packet.fragment) : 0;
  if (charge != 0 && !p.credits[kPointToPoint].accept(charge))
    return protocol_error(from, "more data than it has credit for (is LITE_CREDITS the same on every rank?)");
  Request* r = match(packet.key);
  if (r == nullptr) {
    Message* m = new_message(from, packet, charge == 0 ? MessageState::kOffered : MessageState::kDeferred, kPointToPoint, charge);
    count_unexpected(peers_[from], packet.bytes);
    matcher_.add_unexpected(m);
    if (charge != 0) arrive_by_channel(m);
    return;
  }
  matched(r, packet.key, from, packet.bytes);
  r->fragment = packet.fragment;
  r->to(wants_rest(*r) ? RequestState::kReceivingTransfer : RequestState::kReceivingChannel);
  if (charge == 0) return accept_offer(r, packet.sender);
  // Nothing of r is looked at behind the answer: a peer lost by that has completed it.
  r->fragment_open = true;
  if (p.deferred_head == nullptr && post_channel_receive(r)) {
    release_credit(from, kPointToPoint, charge);
  } else {
    Message* m = new_message(from, packet, MessageState::kDeferred, kPointToPoint, charge);
    m->request = r;
    defer(m);
  }
  accept_offer(r, packet.sender);
}

// There is no block for the fragment of m (in the handler, or at the bound of memory). An eager message would wait in the stream and hold up all that is behind it; this one the sender
// still has. False: no operation, either.
bool Device::throw_fragment_away(Message* m) {
  MPID_ChannelId id = 0;
  const int result = MPID_IRecvFromChannel(nullptr, 0, m->peer, &id);
  if (result == -ENOBUFS) return false;
  if (result < 0) {
    drop_message(m);
    return true;
  }
  m->to(MessageState::kOffered);
  m->fragment = 0;
  m->again = true;
  const std::uint64_t charge = m->charge;
  m->charge = 0;
  release_credit(m->peer, kPointToPoint, charge);
  MPID_OnComplete(id, [](void*, std::int64_t) {}, nullptr);
  return true;
}

// The fragment of r is here, or never will be.
void Device::end_fragment(Request* r, bool arrived) {
  r->fragment_open = false;
  if (r->state == RequestState::kReceivingTransfer) return;  // whose end is r's, well or badly
  if (arrived && peers_[r->peer].lost == 0) return finish_receive(r);
  r->status.bytes = 0;
  complete(r, LITE_ERR_PEER_LOST);
}

int Device::send_cts(int peer, std::uint64_t sender, MPID_TransferId transfer, std::uint64_t accepted, bool again) {
  CtsPacket cts{};
  cts.header.type = PacketType::kCts;
  cts.sender = sender;
  cts.transfer = transfer;
  cts.accepted = accepted;
  cts.again = again ? 1 : 0;
  const int result = send_control(peer, &cts.header, sizeof cts);
  if (result < 0) peer_lost(peer, -result);  // headroom was there; a CTS must not be forgotten quietly
  return result;
}

// The receive r (matched; kReceivingTransfer if it wants the rest) answers the RTS of `sender`. Only what fits is moved; for nothing there is no transfer. `again`: the
// fragment was thrown away.
void Device::accept_offer(Request* r, std::uint64_t sender, bool again) {
  const std::uint64_t accepted = std::min(r->incoming, r->bytes);  // not the status: that of a lost one may say 0
  const int peer = r->peer;
  if (accepted <= r->fragment) {
    const bool all = r->fragment == 0;
    const int result = send_cts(peer, sender, 0, accepted);
    if (!all) return;  // the fragment's end is r's
    if (result < 0) return complete(r, LITE_ERR_PEER_LOST);
    return finish_receive(r);
  }
  r->accepted = accepted;
  int result = MPID_CreateRecvTransfer(r->memory.buffer, accepted, peer, &r->transfer);
  if (result >= 0) {
    result = MPID_StartNBRecvTransferRest(r->memory.buffer, r->memory.pieces, r->fragment, accepted, peer, r->transfer, &r->channel);
    if (result < 0) MPID_CancelRecvTransfer(r->transfer, 0);
  }
  if (result < 0) {
    peer_lost(peer, -result);
    return fail_transfer(r);
  }
  // Before the CTS, so that a peer lost while it is sent completes r by the callback.
  MPID_OnComplete(r->channel, on_transfer_received, r);
  if (r->state != RequestState::kReceivingTransfer) return;
  if (send_cts(peer, sender, r->transfer, r->accepted, again) < 0 && r->state == RequestState::kReceivingTransfer) fail_request(r, peer);
}

void Device::on_transfer_received(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  const bool good = result >= 0 && static_cast<std::uint64_t>(result) == r->accepted && !r->fragment_open;
  if (good) return r->device->finish_receive(r);
  Device& device = *r->device;
  const int peer = r->peer;
  device.fail_transfer(r);
  if (result >= 0) device.protocol_error(peer, "a transfer that is not as long as was accepted, or before what goes ahead of it");
}

// There will be no transfer for r any more.
void Device::fail_transfer(Request* r) {
  r->status.bytes = 0;
  if (r->fragment_open) return r->to(RequestState::kReceivingChannel);  // the fragment's end completes it
  complete(r, LITE_ERR_PEER_LOST);
}

// Of point to point, active messages and puts.
void Device::handle_cts(const Packet& packet, int from) {
  Request* r = echoed(packet.sender, from);
  if (r == nullptr) return;
  const bool put = r->kind == RequestKind::kPut;
  const std::uint64_t done = packet.again ? 0 : r->fragment;
  const bool rest = packet.bytes > done;
  if (r->state != RequestState::kAwaitingCts || packet.bytes > r->bytes || (put && packet.bytes != r->bytes) || rest != (packet.transfer != 0))
    return protocol_error(from, "a CTS that does not fit its RTS");
  r->accepted = packet.bytes;
  Peer& p = peers_[from];
  if (r->kind == RequestKind::kSend && !packet.late && p.in_time < kInTimeEnough) ++p.in_time;
  if (!rest && r->fragment_open) {
    r->channel = 0;
    return r->to(RequestState::kSending);  // on_fragment_sent completes it
  }
  MPID_ChannelId id = 0;
  int result = 0;
  if (rest) result = MPID_StartNBSendTransferRest(r->memory.buffer, r->memory.pieces, done, packet.bytes, from, packet.transfer, &id);
  if (result < 0) return peer_lost(from, -result);  // and r with it
  r->to(put ? RequestState::kSendingAwaitingAck : RequestState::kSending);
  watch_send(r, id);
}

}  // namespace ch_lite
