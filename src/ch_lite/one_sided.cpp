// Put and get: memory that is exposed to the peers, which they read and write without its process; all of the target's part works in the handler.
// Called by the API, by dispatch and by attend_to_all (what had to wait). Neighbours: rendezvous.cpp, which brings a put's CTS, short.cpp its ack.
//
// Small (up to LITE_SHORT_MAX): put with its data in the packet, acknowledged by number, many by one packet; get answered by a packet.
// Larger: a put asks for a transfer into the target's memory, as an RTS does, and is acknowledged when all of it is there; a get brings along the
// id of a transfer that its origin has made. Puts complete when the data are in the target's memory (remote completion). There is no order between
// accesses, nor between them and messages: who needs one waits for completion.
//
// A window of accesses per pair, kept by the origin and for transfers checked by the target, bounds what the target has to hold.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device.h"

namespace ch_lite {
namespace {

constexpr const char* kNotExposed = "access to memory that is not exposed: the key is stale, or the access does not lie inside of what was exposed";
constexpr const char* kTooMany = "more puts and gets at once than it may have under way";
constexpr const char* kWithdrawn = "access to memory that was withdrawn before the access was over";

// `offset` and `bytes` come from a peer: their sum may wrap.
bool inside(const Region& region, std::uint64_t offset, std::uint64_t bytes) { return offset <= region.bytes && bytes <= region.bytes - offset; }

}  // namespace

// ---- exposing ----

int Device::expose(void* base, std::uint64_t bytes, std::uint64_t* key) {
  if ((regions_.free_count() == 0 && !regions_.reserve(1)) || !accesses_.reserve(accesses_ready())) return report(LITE_ERR_NOMEM, -1);
  Region* region = regions_.take();
  region->base = static_cast<std::uint8_t*>(base);
  region->bytes = bytes;
  *key = region->pool_handle;
  return LITE_OK;
}

// What still moves from or to it (MPI forbids that) must not find it: the peer goes, and the transfers with it. The channel completes them before
// give_up returns.
int Device::withdraw(std::uint64_t key) {
  Region* region = regions_.find(key);
  if (region == nullptr) return LITE_ERR_ARG;
  while (Access* a = region->accesses) {
    const int peer = a->peer;
    protocol_error(peer, kWithdrawn);
    if (region->accesses != a) continue;
    if (options_.hooks.give_up != nullptr) options_.hooks.give_up(options_.hooks.arg, peer, EPROTO);  // lost to us only, until now
    CHLITE_CHECK(region->accesses != a);
  }
  regions_.give(region);
  return LITE_OK;
}

// ---- the origin ----

bool Device::small(std::uint64_t bytes) const { return bytes <= std::min(cutoffs_.short_max, kAccessShortMax); }

int Device::put(int peer, std::uint64_t key, std::uint64_t offset, const void* data, std::uint64_t bytes, void* cookie, Request** request) {
  if (peer == options_.rank) {
    Region* region = regions_.find(key);
    if (region == nullptr || !inside(*region, offset, bytes)) return report(LITE_ERR_ARG, peer, kNotExposed);
    if (bytes != 0) std::memmove(region->base + offset, data, bytes);
    return LITE_OK;
  }
  mplite::Counters& c = counters();
  ++c.put_msgs;
  c.put_bytes += bytes;
  return start_access(RequestKind::kPut, peer, key, offset, data, bytes, cookie, request);
}

int Device::get(int peer, std::uint64_t key, std::uint64_t offset, void* buffer, std::uint64_t bytes, void* cookie, Request** request) {
  if (peer == options_.rank) {
    Region* region = regions_.find(key);
    if (region == nullptr || !inside(*region, offset, bytes)) return report(LITE_ERR_ARG, peer, kNotExposed);
    if (bytes != 0) std::memmove(buffer, region->base + offset, bytes);
    return LITE_OK;
  }
  mplite::Counters& c = counters();
  ++c.get_msgs;
  c.get_bytes += bytes;
  return start_access(RequestKind::kGet, peer, key, offset, buffer, bytes, cookie, request);
}

int Device::start_access(RequestKind kind, int peer, std::uint64_t key, std::uint64_t offset, const void* buffer, std::uint64_t bytes,
                         void* cookie, Request** request) {
  Peer& p = peers_[peer];
  if (p.lost != 0) return report(LITE_ERR_PEER_LOST, peer);
  if (bytes == 0) return LITE_OK;
  Request* r = reserve_request();
  if (r == nullptr) return report(LITE_ERR_NOMEM, peer);
  r->region = key;
  r->offset = offset;
  start_request(r, kind, RequestState::kWaitingCredit, peer, buffer, bytes, cookie);
  r->queue_next = nullptr;
  (p.access_wait_tail != nullptr ? p.access_wait_tail->queue_next : p.access_wait_head) = r;
  p.access_wait_tail = r;
  *request = r;
  if (!pump_accesses(peer)) attend(p, kAttentionAccess);
  // Copied by the send: for the host the buffer is free, whenever the ack comes.
  if (kind == RequestKind::kPut && r->state == RequestState::kAwaitingAnswer) r->memory.buffer = nullptr;
  MPID_ChannelPrefer(peer);
  return LITE_PENDING;
}

bool Device::room_to_say() {
  if (MPID_ChannelHeadroom() != 0) return true;
  if (MPID_ChannelInHandler() == 0) return MPID_ChannelRefill() == 0;
  ++counters().no_memory_in_handler;
  return false;
}

// Sends what the window allows. False: more could go, but not now (no headroom).
bool Device::pump_accesses(int peer) {
  Peer& p = peers_[peer];
  while (Request* r = p.access_wait_head) {
    const bool small_put = r->kind == RequestKind::kPut && small(r->bytes);
    if (small_put ? p.puts_out >= kSmallPutsPerPeer : p.accesses_out >= kAccessesPerPeer) return true;
    if (!room_to_say()) return false;
    p.access_wait_head = r->queue_next;
    if (p.access_wait_head == nullptr) p.access_wait_tail = nullptr;
    issue_access(r);
    if (p.lost != 0) return true;
  }
  return true;
}

// May complete r: its peer was lost on the way.
void Device::issue_access(Request* r) {
  const int peer = r->peer;
  Peer& p = peers_[peer];
  AccessPacket packet{{PacketType::kPut, 0, 0, 0, 0}, 0, r->region, r->offset, r->bytes, 0};
  const void* data = nullptr;
  if (r->kind == RequestKind::kPut && small(r->bytes)) {
    data = r->memory.buffer;
    r->to(RequestState::kAwaitingAnswer);
    r->queue_next = nullptr;
    (p.puts_tail != nullptr ? p.puts_tail->queue_next : p.puts_head) = r;
    p.puts_tail = r;
    ++p.puts_out;
  } else {
    r->counted = true;
    ++p.accesses_out;
    packet.id = r->pool_handle;
    if (r->kind == RequestKind::kPut) {
      packet.header.type = PacketType::kPutRequest;
      r->to(RequestState::kAwaitingCts);
    } else if (small(r->bytes)) {
      packet.header.type = PacketType::kGet;
      r->to(RequestState::kAwaitingAnswer);
    } else {
      packet.header.type = PacketType::kGetTransfer;
      r->accepted = r->bytes;
      int result = MPID_CreateRecvTransfer(r->memory.buffer, r->bytes, peer, &r->transfer);
      if (result >= 0) {
        result = MPID_StartNBRecvTransfer(r->memory.buffer, r->bytes, peer, r->transfer, &r->channel);
        if (result < 0) MPID_CancelRecvTransfer(r->transfer, 0);
      }
      if (result < 0) {
        peer_lost(peer, -result);
        return complete(r, LITE_ERR_PEER_LOST);
      }
      packet.id = r->transfer;
      r->to(RequestState::kReceivingTransfer);
      MPID_OnComplete(r->channel, on_get_received, r);  // before the request leaves: a peer lost by that completes r
      if (r->state != RequestState::kReceivingTransfer) return;
    }
  }
  const int result = send_control(peer, &packet.header, sizeof packet, data, data != nullptr ? static_cast<int>(r->bytes) : 0);
  if (result < 0) peer_lost(peer, -result);  // fail_peer follows, and takes r along
}

void Device::on_get_received(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  if (result >= 0 && static_cast<std::uint64_t>(result) != r->bytes) {
    r->device->protocol_error(r->peer, "a transfer that is not as long as the get");
    result = -EPROTO;
  }
  r->device->complete(r, result >= 0 ? LITE_OK : LITE_ERR_PEER_LOST);
}

void Device::handle_get_data(const Packet& packet, int from) {
  Request* r = echoed(packet.sender, from);
  if (r == nullptr) return;
  if (r->kind != RequestKind::kGet || r->state != RequestState::kAwaitingAnswer || packet.bytes != r->bytes)
    return protocol_error(from, "data that do not fit the get");
  mplite::copy_bytes(r->memory.buffer, packet.payload, packet.bytes);
  complete(r, LITE_OK);
}

void Device::handle_put_ack(const Packet& packet, int from) {
  Peer& p = peers_[from];
  if (packet.sender > p.puts_out) return protocol_error(from, "acks for more puts than were sent");
  for (std::uint64_t i = 0; i < packet.sender; ++i) {
    Request* r = p.puts_head;
    p.puts_head = r->queue_next;
    if (p.puts_head == nullptr) p.puts_tail = nullptr;
    --p.puts_out;
    complete(r, LITE_OK);
  }
  if (p.access_wait_head != nullptr) attend(p, kAttentionAccess);
}

// The peer is lost. Requests that were sent are on its list and fail with that.
void Device::drop_accesses(Peer& p) {
  p.puts_head = p.puts_tail = nullptr;
  p.puts_out = p.puts_done = 0;
  while (Request* r = p.access_wait_head) {
    p.access_wait_head = r->queue_next;
    complete(r, LITE_ERR_PEER_LOST);
  }
  p.access_wait_tail = nullptr;
  while (Access* a = p.answers) {
    p.answers = a->next;
    free_access(a);
  }
}

// ---- the target ----

Region* Device::accessible(const Packet& packet, int from) {
  Region* region = regions_.find(packet.region);
  if (region == nullptr || !inside(*region, packet.offset, packet.bytes)) {
    protocol_error(from, kNotExposed);
    return nullptr;
  }
  mplite::Counters& c = counters();
  ++c.served_msgs;
  c.served_bytes += packet.bytes;
  return region;
}

Access* Device::begin_access(Region* region, const Packet& packet, int from) {
  Peer& p = peers_[from];
  if (p.accesses_in >= kAccessesPerPeer) {
    protocol_error(from, kTooMany);
    return nullptr;
  }
  Access* a = accesses_.take();
  CHLITE_CHECK(a != nullptr);  // headroom()
  a->device = this;
  a->region = region;
  a->bytes = packet.bytes;
  a->sender = packet.sender;
  a->peer = from;
  a->next = region->accesses;
  if (a->next != nullptr) a->next->previous = a;
  region->accesses = a;
  ++p.accesses_in;
  return a;
}

void Device::leave_region(Access* a) {
  (a->previous != nullptr ? a->previous->next : a->region->accesses) = a->next;
  if (a->next != nullptr) a->next->previous = a->previous;
  a->region = nullptr;
  a->next = a->previous = nullptr;
}

void Device::free_access(Access* a) {
  if (a->region != nullptr) leave_region(a);
  --peers_[a->peer].accesses_in;
  accesses_.give(a);
}

void Device::handle_put(const Packet& packet, int from) {
  Region* region = accessible(packet, from);
  if (region == nullptr) return;
  mplite::copy_bytes(region->base + packet.offset, packet.payload, packet.bytes);
  ++peers_[from].puts_done;
  attend(peers_[from], kAttentionAnswers);
}

void Device::handle_put_request(const Packet& packet, int from) {
  Region* region = accessible(packet, from);
  Access* a = region != nullptr ? begin_access(region, packet, from) : nullptr;
  if (a == nullptr) return;
  std::uint8_t* at = region->base + packet.offset;
  int result = MPID_CreateRecvTransfer(at, a->bytes, from, &a->transfer);
  if (result >= 0) {
    result = MPID_StartNBRecvTransfer(at, a->bytes, from, a->transfer, &a->channel);
    if (result < 0) MPID_CancelRecvTransfer(a->transfer, 0);
  }
  if (result < 0) {
    peer_lost(from, -result);
    return free_access(a);
  }
  const std::uint64_t handle = a->pool_handle;
  const MPID_TransferId transfer = a->transfer;
  const MPID_ChannelId channel = a->channel;
  MPID_OnComplete(channel, on_put_arrived, a);  // before the CTS: a peer lost by that frees a
  if (accesses_.find(handle) == nullptr || send_cts(from, packet.sender, transfer, packet.bytes) >= 0) return;
  if (accesses_.find(handle) == nullptr) return;
  MPID_CancelRecvTransfer(transfer, channel);
  free_access(a);
}

void Device::on_put_arrived(void* arg, std::int64_t result) {
  auto* a = static_cast<Access*>(arg);
  Device& device = *a->device;
  Peer& p = device.peers_[a->peer];
  if (result >= 0 && static_cast<std::uint64_t>(result) != a->bytes) {
    device.protocol_error(a->peer, "a transfer that is not as long as the put");
    result = -EPROTO;
  }
  device.happened();
  if (result < 0 || p.lost != 0) return device.free_access(a);
  device.leave_region(a);
  a->next = p.answers;
  p.answers = a;
  device.attend(p, kAttentionAnswers);
}

// Acknowledges what is done. False: not all of it now.
bool Device::send_answers(int peer) {
  Peer& p = peers_[peer];
  while (p.puts_done != 0 || p.answers != nullptr) {
    if (!room_to_say()) return false;
    AckPacket ack{};
    Access* a = p.answers;
    const std::uint32_t puts = p.puts_done;
    if (puts != 0) {
      ack.header.type = PacketType::kPutAck;
      ack.sender = puts;
      p.puts_done = 0;
    } else {
      ack.header.type = PacketType::kSyncAck;
      ack.sender = a->sender;
      p.answers = a->next;
      a->next = nullptr;
      free_access(a);  // before the ack is out: with it the origin may send the next
    }
    const int result = send_control(peer, &ack.header, sizeof ack);
    if (result < 0) {
      peer_lost(peer, -result);  // there was room: an ack must not be forgotten quietly
      return true;
    }
  }
  return true;
}

void Device::handle_get(const Packet& packet, int from) {
  Region* region = accessible(packet, from);
  if (region == nullptr) return;
  AckPacket answer{};
  answer.header.type = PacketType::kGetData;
  answer.sender = packet.sender;
  const int result = send_control(from, &answer.header, sizeof answer, region->base + packet.offset, static_cast<int>(packet.bytes));
  if (result < 0) peer_lost(from, -result);
}

void Device::handle_get_transfer(const Packet& packet, int from) {
  Region* region = accessible(packet, from);
  Access* a = region != nullptr ? begin_access(region, packet, from) : nullptr;
  if (a == nullptr) return;
  const int result = MPID_StartNBSendTransfer(region->base + packet.offset, packet.bytes, from, packet.transfer, &a->channel);
  if (result < 0) peer_lost(from, -result);
  if (result < 0 || a->channel == 0) return free_access(a);
  MPID_OnComplete(a->channel, on_get_sent, a);  // may free a at once: nothing after it
}

void Device::on_get_sent(void* arg, std::int64_t) {
  auto* a = static_cast<Access*>(arg);
  a->device->happened();
  a->device->free_access(a);
}

}  // namespace ch_lite
