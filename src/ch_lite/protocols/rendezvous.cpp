// Rendezvous: RTS, CTS when matched, data by transfer straight into the user's buffer.
#include "ch_lite/protocols/rendezvous.h"

#include "ch_lite/protocols/deferred.h"
#include "ch_lite/protocols/eager.h"
#include "ch_lite/protocols/incoming.h"
#include "ch_lite/protocols/remote_process.h"

namespace ch_lite {
namespace {

void on_fragment_sent(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  r->fragment_pending = false;
  // The CTS, or the transfer, or the loss of the peer ends it; or else they have been here, and
  // there was nothing left to do.
  if (r->state != RequestState::kSending || r->channel != 0) return;
  const bool lost = result < 0 || r->core->peers[r->peer].lost != 0;
  r->core->complete(r, lost ? LITE_ERR_PEER_LOST : LITE_OK);
}

}  // namespace

int send_rendezvous(Core& core, const Memory& memory, std::uint64_t bytes, int peer,
                    const MatchKey& key, std::uint64_t fragment, void* cookie, Request** request) {
  Request* r = core.requests.reserve();
  if (r == nullptr) return core.report(LITE_ERR_NOMEM, peer);
  RtsPacket packet{
      {{PacketType::kRts, 0, 0, 0, 0}, key.context, key.source, key.tag, bytes, r->pool_handle},
      fragment};
  MPID_ChannelId id = 0;
  const int result = fragment == 0 ? core.send_control(peer, &packet.message.header, sizeof packet)
                                   : send_channel_behind(core, peer, &packet.message.header,
                                                         sizeof packet, memory, fragment, &id);
  if (result < 0) {
    core.requests.unreserve(r);
    core.peer_lost(peer, -result);
    return core.report(LITE_ERR_PEER_LOST, peer);
  }
  r->key = key;
  core.start_request(r, RequestKind::kSend, RequestState::kAwaitingCts, peer, memory, bytes,
                     cookie);
  r->fragment = fragment;
  MPID_ChannelPrefer(peer);
  *request = r;
  if (id != 0) {
    r->fragment_pending = true;
    MPID_OnComplete(id, on_fragment_sent, r);
  }
  return LITE_PENDING;
}

void handle_rts(Core& core, const Packet& packet, int from) {
  Peer& p = core.peers[from];
  // An RTS without data is not charged: the node costs less than the request that the sender keeps
  // for it.
  const std::uint64_t charge = packet.fragment != 0 ? message_charge(packet.fragment) : 0;
  if (charge != 0 && !p.credits[kPointToPoint].accept(charge))
    return core.protocol_error(from, "more data than it has credit for");
  const Admission admission = admit(core, from, packet.key);
  if (admission == Admission::kNo) return;
  Request* r = admission == Admission::kYes ? core.match(packet.key) : nullptr;
  if (r == nullptr) {
    if (p.offers >= kRemoteOffersMax)
      return core.protocol_error(
          from, "more messages offered at once than a process of another job may have unreceived");
    Message* m = core.new_message(from, packet,
                                  charge == 0 ? MessageState::kOffered : MessageState::kDeferred,
                                  kPointToPoint, charge);
    core.count_unexpected(core.peers[from], packet.bytes);
    core.matcher.add_unexpected(m);
    if (admission == Admission::kLater) core.leave_unverified(m);
    if (charge == 0 && !core.is_own_job(from)) core.count_offer(m);
    if (charge != 0) arrive_by_channel(core, m);
    return;
  }
  matched(core, r, packet.key, from, packet.bytes);
  r->fragment = packet.fragment;
  r->to(wants_rest(*r) ? RequestState::kReceivingTransfer : RequestState::kReceivingChannel);
  if (charge == 0) return accept_offer(core, r, packet.sender);
  // Nothing of r is looked at behind the answer: a peer lost by that has completed it.
  r->fragment_pending = true;
  if (p.deferred.empty() && post_channel_receive(core, r)) {
    core.release_credit(from, kPointToPoint, charge);
  } else {
    Message* m = core.new_message(from, packet, MessageState::kDeferred, kPointToPoint, charge);
    m->request = r;
    defer(core, m);
  }
  accept_offer(core, r, packet.sender);
}

// Of point to point, active messages and puts.
void handle_cts(Core& core, const Packet& packet, int from) {
  Request* r = core.echoed(packet.sender, from);
  if (r == nullptr) return;
  const bool put = r->kind == RequestKind::kPut;
  const std::uint64_t done = packet.resend_fragment ? 0 : r->fragment;
  const bool rest = packet.bytes > done;
  if (r->state != RequestState::kAwaitingCts || packet.bytes > r->bytes ||
      (put && packet.bytes != r->bytes) || rest != (packet.transfer != 0))
    return core.protocol_error(from, "a CTS that does not fit its RTS");
  r->accepted = packet.bytes;
  Peer& p = core.peers[from];
  if (r->kind == RequestKind::kSend && !packet.late && p.in_time < kInTimeEnough) ++p.in_time;
  if (!rest && r->fragment_pending) {
    r->channel = 0;
    return r->to(RequestState::kSending);  // on_fragment_sent completes it
  }
  MPID_ChannelId id = 0;
  int result = 0;
  if (rest)
    result = MPID_StartNBSendTransferRest(r->memory.buffer, r->memory.pieces, done, packet.bytes,
                                          from, packet.transfer, &id);
  if (result < 0) return core.peer_lost(from, -result);  // and r with it
  r->to(put ? RequestState::kSendingAwaitingAck : RequestState::kSending);
  core.watch_send(r, id);
}

}  // namespace ch_lite
