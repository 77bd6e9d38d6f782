// Put and get, the origin's part.
#include "ch_lite/protocols/rma_origin.h"

#include <algorithm>
#include <cerrno>

#include "ch_lite/protocols/transfer.h"

namespace ch_lite {
namespace {

bool small(Core& core, std::uint64_t bytes) {
  return bytes <= std::min(core.cutoffs.base().short_max, kAccessShortMax);
}

// The target counts what we may have under way, too: it has to know of this one's end before the
// next comes.
void on_get_received(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  if (result >= 0) MPID_ChannelAcknowledge(r->peer);
  if (result >= 0 && static_cast<std::uint64_t>(result) != r->bytes) {
    r->core->protocol_error(r->peer, "a transfer that is not as long as the get");
    result = -EPROTO;
  }
  r->core->complete(r, result >= 0 ? LITE_OK : LITE_ERR_PEER_LOST);
}

// A get that is long.
struct TransferOfGet {
  static constexpr auto kOnComplete = on_get_received;

  MPID_TransferId& transfer() const { return request->transfer; }
  MPID_ChannelId& channel() const { return request->channel; }
  void begun() const { request->to(RequestState::kReceivingTransfer); }
  void* arg() const { return request; }
  bool is_open() const { return request->state == RequestState::kReceivingTransfer; }
  // When the peer is lost by it, the get fails with all else that is open (fail_requests).
  int tell(MPID_TransferId transfer) const {
    packet.id = transfer;
    const int result = core.send_control(request->peer, &packet.header, sizeof packet);
    core.trace.is_last(request);
    if (result < 0) core.peer_lost(request->peer, -result);
    return 0;
  }

  Core& core;
  Request* request;
  AccessPacket& packet;
};

void issue_get(Core& core, Request* r, AccessPacket& packet) {
  packet.header.type = PacketType::kGetTransfer;
  r->accepted = r->bytes;
  const int peer = r->peer;
  const int result =
      receive_by_transfer({r->memory, 0, r->bytes, peer}, TransferOfGet{core, r, packet});
  if (result >= 0) return;
  core.peer_lost(peer, -result);
  core.complete(r, LITE_ERR_PEER_LOST);
}

// May complete r: its peer was lost on the way.
void issue_access(Core& core, Request* r) {
  const int peer = r->peer;
  Peer& p = core.peers[peer];
  AccessPacket packet{{PacketType::kPut, 0, 0, 0, 0}, 0, r->region, r->offset, r->bytes, 0};
  const void* data = nullptr;
  const bool small_put = r->kind == RequestKind::kPut && small(core, r->bytes);
  if (small_put) {
    data = r->memory.buffer;
    // What the kernel does not take is copied. The window bounds that, which answers open.
    if (MPID_ChannelQueued() != 0) r->unanswered = false;
    r->to(RequestState::kAwaitingAnswer);
    if (!r->unanswered) {
      packet.header.flags = kPacketSync;
      p.origin.start_put(r);
    }
  } else {
    p.origin.start_access(r);
    packet.id = r->pool_handle;
    if (r->kind == RequestKind::kPut) {
      packet.header.type = PacketType::kPutRequest;
      r->to(RequestState::kAwaitingCts);
    } else if (small(core, r->bytes)) {
      packet.header.type = PacketType::kGet;
      r->to(RequestState::kAwaitingAnswer);
    } else {
      return issue_get(core, r, packet);
    }
  }
  const int result = core.send_control(peer, &packet.header, sizeof packet, data,
                                       data != nullptr ? static_cast<int>(r->bytes) : 0);
  core.trace.is_last(r);
  // fail_requests follows, and takes r along
  if (result < 0) return core.peer_lost(peer, -result);
  if (small_put && r->unanswered) core.complete(r, LITE_OK);
}

int start_access(Core& core, RequestKind kind, int peer, std::uint64_t key, std::uint64_t offset,
                 const void* buffer, std::uint64_t bytes, bool answered, void* cookie,
                 Request** request) {
  Peer& p = core.peers[peer];
  if (p.lost != 0) return core.report(LITE_ERR_PEER_LOST, peer);
  if (bytes == 0) return LITE_OK;
  Request* r = core.requests.reserve();
  if (r == nullptr) return core.report(LITE_ERR_NOMEM, peer);
  r->region = key;
  r->offset = offset;
  r->unanswered = !answered;
  core.start_request(r, kind, RequestState::kWaitingCredit, peer, buffer, bytes, cookie);
  p.origin.waiting.push(r);
  *request = r;
  if (!pump_accesses(core, peer)) core.attend(p, kAttentionAccess);
  // As one packet; the packet of a get is answered by a copy.
  r->in_order = r->state == RequestState::kAwaitingAnswer || r->state == RequestState::kComplete;
  // Copied by the send: for the host the buffer is free, whenever the ack comes.
  if (kind == RequestKind::kPut && r->in_order) r->memory.buffer = nullptr;
  MPID_ChannelPrefer(peer);
  return LITE_PENDING;
}

}  // namespace

// Sends what the window allows. False: more could go, but not now (no headroom).
bool pump_accesses(Core& core, int peer) {
  Peer& p = core.peers[peer];
  while (!p.origin.waiting.empty()) {
    Request* const r = p.origin.waiting.front();
    const bool small_put = r->kind == RequestKind::kPut && small(core, r->bytes);
    if (!p.origin.may_start(small_put)) return true;
    if (!core.room_to_send()) return false;
    p.origin.waiting.pop();
    issue_access(core, r);
    if (p.lost != 0) return true;
  }
  return true;
}

void handle_get_data(Core& core, const Packet& packet, int from) {
  Request* r = core.echoed(packet.sender, from);
  if (r == nullptr) return;
  if (r->kind != RequestKind::kGet || r->state != RequestState::kAwaitingAnswer ||
      packet.bytes != r->bytes)
    return core.protocol_error(from, "data that do not fit the get");
  mplite::copy_bytes(r->memory.buffer, packet.payload, packet.bytes);
  core.complete(r, LITE_OK);
}

void handle_put_ack(Core& core, const Packet& packet, int from) {
  Peer& p = core.peers[from];
  if (packet.sender > p.origin.puts_out)
    return core.protocol_error(from, "acks for more puts than were sent");
  for (std::uint64_t i = 0; i < packet.sender; ++i) core.complete(p.origin.end_put(), LITE_OK);
  if (!p.origin.waiting.empty()) core.attend(p, kAttentionAccess);
}

int put(Core& core, int peer, std::uint64_t key, std::uint64_t offset, const void* data,
        std::uint64_t bytes, bool answered, void* cookie, Request** request) {
  mplite::Counters& c = core.counters();
  ++c.put_msgs;
  c.put_bytes += bytes;
  return start_access(core, RequestKind::kPut, peer, key, offset, data, bytes, answered, cookie,
                      request);
}

int get(Core& core, int peer, std::uint64_t key, std::uint64_t offset, void* buffer,
        std::uint64_t bytes, void* cookie, Request** request) {
  mplite::Counters& c = core.counters();
  ++c.get_msgs;
  c.get_bytes += bytes;
  return start_access(core, RequestKind::kGet, peer, key, offset, buffer, bytes, true, cookie,
                      request);
}

// Requests that were sent are on the peer's list and fail with that.
void drop_accesses(Core& core, Peer& p) {
  p.origin.forget_puts();
  while (!p.origin.waiting.empty()) core.complete(p.origin.waiting.pop(), LITE_ERR_PEER_LOST);
}

}  // namespace ch_lite
