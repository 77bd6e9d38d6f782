// Eager protocol: envelope as control packet, data on the channel right behind it.
#include "ch_lite/protocols/eager.h"

#include <algorithm>
#include <cerrno>

#include "ch_lite/protocols/answers.h"
#include "ch_lite/protocols/deferred.h"
#include "ch_lite/protocols/incoming.h"
#include "ch_lite/protocols/remote_process.h"

namespace ch_lite {

// Packet and data leave in one system call. *id: the send under way, 0 when done. Or -errno: the
// peer is lost.
int send_channel_behind(Core& core, int peer, PacketHeader* packet, int packet_bytes,
                        const Memory& memory, std::uint64_t bytes, MPID_ChannelId* id) {
  *id = 0;
  if (memory.pieces == nullptr && bytes != 0) {
    const int straight = core.send_packet(peer, packet, [&] {
      return MPID_ISendBehind(packet, packet_bytes, memory.buffer, bytes, peer, id);
    });
    if (straight == 0) return 0;
    if (straight != -EAGAIN) {
      core.peer_lost(peer, -straight);
      return straight;
    }
  }
  MPID_ChannelHold(peer);
  int result = core.send_control(peer, packet, packet_bytes);
  const bool announced = result == 0;
  if (announced && bytes != 0)
    result = memory.pieces == nullptr ? MPID_ISendChannel(memory.buffer, bytes, peer, id)
                                      : MPID_ISendChannelV(memory.pieces, bytes, peer, id);
  MPID_ChannelRelease(peer);
  if (result < 0) {
    // An envelope without its data would put everything behind it out of order.
    if (announced) core.give_up(peer, -result);
    core.peer_lost(peer, -result);
    return result;
  }
  if (*id == 0) return 0;
  const int done = MPID_TSendChannel(*id);
  if (done != 0) *id = 0;
  return std::min(done, 0);
}

int send_eager(Core& core, const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key,
               bool synchronous, void* cookie, Request** request) {
  Request* r = core.requests.reserve();
  if (r == nullptr) return core.report(LITE_ERR_NOMEM, peer);
  MessagePacket packet{
      {PacketType::kEager, 0, 0, 0, 0}, key.context, key.source, key.tag, bytes, 0};
  if (synchronous) {
    packet.header.flags = kPacketSync;
    packet.sender = r->pool_handle;
  }
  MPID_ChannelId id;
  if (send_channel_behind(core, peer, &packet.header, sizeof packet, memory, bytes, &id) < 0) {
    core.requests.unreserve(r);
    return core.report(LITE_ERR_PEER_LOST, peer);
  }
  if (id == 0 && !synchronous) {
    core.requests.unreserve(r);
    core.trace.last_is_done(peer);
    return LITE_OK;
  }
  r->key = key;
  RequestState state = RequestState::kSending;
  if (synchronous) state = id == 0 ? RequestState::kAwaitingAck : RequestState::kSendingAwaitingAck;
  core.start_request(r, RequestKind::kSend, state, peer, memory, bytes, cookie);
  *request = r;
  if (id != 0) core.watch_send(r, id);
  return LITE_PENDING;
}

void handle_eager(Core& core, const Packet& packet, int from) {
  Peer& p = core.peers[from];
  const std::uint64_t charge = message_charge(packet.bytes);
  if (!p.credits[kPointToPoint].accept(charge))
    return core.protocol_error(from, "more data than it has credit for");
  const Admission admission = admit(core, from, packet.key);
  if (admission == Admission::kNo) return;
  if (Request* r = admission == Admission::kYes ? core.match(packet.key) : nullptr) {
    matched(core, r, packet.key, from, packet.bytes);
    if (packet.sync) send_ack(core, from, packet.sender);
    if (packet.bytes == 0) {
      core.release_credit(from, kPointToPoint, charge);
      return finish_receive(core, r);
    }
    r->to(RequestState::kReceivingChannel);
    if (p.deferred.empty() && post_channel_receive(core, r))
      return core.release_credit(from, kPointToPoint, charge);
    Message* m = core.new_message(from, packet, MessageState::kDeferred, kPointToPoint, charge);
    m->request = r;
    return defer(core, m);
  }
  core.count_unexpected(core.peers[from], packet.bytes);
  Message* m = core.new_message(from, packet,
                                packet.bytes == 0 ? MessageState::kReady : MessageState::kDeferred,
                                kPointToPoint, charge);
  core.matcher.add_unexpected(m);
  if (admission == Admission::kLater) core.leave_unverified(m);
  if (packet.bytes != 0) arrive_by_channel(core, m);
}

}  // namespace ch_lite
