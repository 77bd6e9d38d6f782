// Active messages of the host: a lane of its own beside point to point, ordered per peer, delivered whole, in ordinary context.
// Everything in the lane is charged to its own credit, RTS included; what finds none waits at the sender, in order.
#include <cerrno>
#include <cstring>

#include "device.h"
#include "../mplite/gate.h"

namespace ch_lite {

// ---- sending ----

int Device::am_isend(int peer, std::uint32_t handler, const void* header, std::uint32_t header_bytes, const void* data,
                     std::uint64_t data_bytes, void* cookie, Request** request) {
  const AmSend message{handler, header_bytes, header, data, data_bytes};
  mplite::Counters& c = counters();
  ++c.am_msgs;
  c.am_bytes += header_bytes + data_bytes;
  if (peer == options_.rank) return am_send_self(message);
  Peer& p = peers_[peer];
  if (p.lost != 0) return report(LITE_ERR_PEER_LOST, peer);
  const Choice choice = choose_am_protocol(header_bytes, data_bytes, cutoffs_for(peer, data_bytes), p.credits[kActive].left());
  if (choice.out_of_credit) ++c.credit_stalls;
  if (choice.protocol == Protocol::kWait || p.am_wait_head != nullptr) return am_wait(peer, message, cookie, request);

  Request* r = nullptr;
  if (choice.protocol != Protocol::kShort && (r = reserve_request()) == nullptr) return report(LITE_ERR_NOMEM, peer);
  MPID_ChannelId id = 0;
  if (am_send_now(peer, choice, message, r != nullptr ? r->pool_handle : 0, &id) < 0) {
    if (r != nullptr) unreserve(r);
    return report(LITE_ERR_PEER_LOST, peer);
  }
  if (choice.protocol != Protocol::kRendezvous && id == 0) {
    if (r != nullptr) unreserve(r);
    return LITE_OK;
  }
  const bool offered = choice.protocol == Protocol::kRendezvous;
  start_request(r, RequestKind::kAmSend, offered ? RequestState::kAwaitingCts : RequestState::kSending, peer, data, data_bytes, cookie);
  *request = r;
  if (!offered) watch_send(r, id);
  return LITE_PENDING;
}

// Sends as chosen and spends the credit. Or -errno: the peer is lost.
int Device::am_send_now(int peer, const Choice& choice, const AmSend& message, std::uint64_t sender, MPID_ChannelId* id) {
  AmPacket packet{{PacketType::kAmShort, 0, 0, 0, 0}, message.handler, message.header_bytes, 0, message.data_bytes, 0};
  if (choice.protocol == Protocol::kEager) packet.header.type = PacketType::kAmEager;
  if (choice.protocol == Protocol::kRendezvous) {
    packet.header.type = PacketType::kAmRts;
    packet.sender = sender;
  }
  std::memcpy(am_packet_, &packet, sizeof packet);
  if (message.header_bytes != 0) std::memcpy(am_packet_ + sizeof packet, message.header, message.header_bytes);
  auto* whole = reinterpret_cast<PacketHeader*>(am_packet_);
  const int bytes = static_cast<int>(sizeof packet + message.header_bytes);
  int result;
  if (choice.protocol == Protocol::kEager) {
    result = send_channel_behind(peer, whole, bytes, message.data, message.data_bytes, id);
  } else {
    const bool in_packet = choice.protocol == Protocol::kShort;
    result = send_control(peer, whole, bytes, message.data, in_packet ? static_cast<int>(message.data_bytes) : 0);
    if (result < 0 && result != -ENOBUFS) peer_lost(peer, -result);
  }
  if (result >= 0) CHLITE_CHECK(peers_[peer].credits[kActive].spend(choice.charge));
  return result;
}

// Behind the others that wait. Without data the caller is done: header copied, the request is the device's own.
int Device::am_wait(int peer, const AmSend& message, void* cookie, Request** request) {
  Request* r = reserve_request();
  if (r == nullptr) return report(LITE_ERR_NOMEM, peer);
  r->am_header = blocks_.take_or_allocate(message.header_bytes, true);
  if (r->am_header.data == nullptr && message.header_bytes != 0) {
    unreserve(r);
    return report(LITE_ERR_NOMEM, peer);
  }
  if (message.header_bytes != 0) std::memcpy(r->am_header.data, message.header, message.header_bytes);
  r->am_header_bytes = message.header_bytes;
  r->am_handler = message.handler;
  r->owned = message.data_bytes == 0;
  start_request(r, RequestKind::kAmSend, RequestState::kWaitingCredit, peer, message.data, message.data_bytes, cookie);
  Peer& p = peers_[peer];
  r->queue_next = nullptr;
  (p.am_wait_tail != nullptr ? p.am_wait_tail->queue_next : p.am_wait_head) = r;
  p.am_wait_tail = r;
  ++am_unsent_;
  if (r->owned) return LITE_OK;
  *request = r;
  return LITE_PENDING;
}

// Credit is back. False: more could go, but not now (no headroom).
bool Device::pump_active_messages(int peer) {
  Peer& p = peers_[peer];
  // The handler's headroom is one packet: an offer instead of packet and data.
  Cutoffs cutoffs = cutoffs_of(p);
  if (MPID_ChannelInHandler() != 0) cutoffs.eager_max = 0;
  while (Request* r = p.am_wait_head) {
    const Choice choice = choose_am_protocol(r->am_header_bytes, r->bytes, cutoffs, p.credits[kActive].left());
    if (choice.protocol == Protocol::kWait) return true;
    if (MPID_ChannelHeadroom() == 0) return false;
    const AmSend message{r->am_handler, r->am_header_bytes, r->am_header.data, r->memory.buffer, r->bytes};
    MPID_ChannelId id = 0;
    const int result = am_send_now(peer, choice, message, r->pool_handle, &id);
    if (result == -ENOBUFS) return false;
    if (result < 0) return true;  // the peer is lost: drop_unsent() follows
    p.am_wait_head = r->queue_next;
    if (p.am_wait_head == nullptr) p.am_wait_tail = nullptr;
    --am_unsent_;
    blocks_.give(r->am_header);
    r->am_header = {};
    if (choice.protocol == Protocol::kRendezvous) {
      r->to(RequestState::kAwaitingCts);
    } else {
      r->to(RequestState::kSending);
      watch_send(r, id);
    }
  }
  return true;
}

void Device::drop_unsent(Peer& p, int) {
  while (Request* r = p.am_wait_head) {
    p.am_wait_head = r->queue_next;
    --am_unsent_;
    blocks_.give(r->am_header);
    r->am_header = {};
    complete(r, LITE_ERR_PEER_LOST);
  }
  p.am_wait_tail = nullptr;
}

// ---- arriving ----

void Device::handle_am(const Packet& packet, int from) {
  const std::uint64_t head = padded_header(packet.header_bytes);
  const bool is_short = packet.type == PacketType::kAmShort;
  const bool is_offer = packet.type == PacketType::kAmRts;
  const std::uint64_t charge = message_charge(head + (is_offer ? 0 : packet.bytes));
  if (!peers_[from].credits[kActive].accept(charge))
    return protocol_error(from, "more active-message data than it has credit for (is LITE_CREDITS the same on every rank?)");
  const MessageState state = is_short ? MessageState::kReady : is_offer ? MessageState::kOffered : MessageState::kDeferred;
  Message* m = new_message(from, packet, state, kActive, charge);
  // An offer's and, until there is a block for all, an eager message's header gets a block of its own.
  const std::uint64_t wanted = head + (is_short ? packet.bytes : 0);
  if (wanted != 0) {
    m->block = obtain_block(wanted);
    CHLITE_CHECK(m->block.data != nullptr);  // headroom()
    auto* bytes = static_cast<std::uint8_t*>(m->block.data);
    if (packet.header_bytes != 0) std::memcpy(bytes, packet.payload, packet.header_bytes);
    if (is_short && packet.bytes != 0) mplite::copy_bytes(bytes + head, packet.payload + packet.header_bytes, packet.bytes);
  }
  am_append(m);
  if (state == MessageState::kDeferred) arrive_by_channel(m);
}

// A block for header and data in place of the header's own. False: none now.
bool Device::am_grow_block(Message* m, bool beyond_bound) {
  const std::uint64_t whole = padded_header(m->am_header_bytes) + m->bytes;
  const Block block = beyond_bound ? blocks_.take_or_allocate(whole, true) : obtain_block(whole);
  if (block.data == nullptr) return false;
  if (m->am_header_bytes != 0) std::memcpy(block.data, m->block.data, m->am_header_bytes);
  blocks_.give(m->block);
  m->block = block;
  return true;
}

void Device::am_append(Message* m) {
  Peer& p = peers_[m->peer];
  m->am_next = nullptr;
  (p.am_tail != nullptr ? p.am_tail->am_next : p.am_head) = m;
  p.am_tail = m;
  am_waiting_.store(active_messages() + 1, std::memory_order_relaxed);
  if (!p.on_am_list) am_list(p);
}

void Device::am_remove(Message* m) {
  Peer& p = peers_[m->peer];
  Message* before = nullptr;
  for (Message* at = p.am_head; at != m; at = at->am_next) before = at;
  (before != nullptr ? before->am_next : p.am_head) = m->am_next;
  if (p.am_tail == m) p.am_tail = before;
  am_waiting_.store(active_messages() - 1, std::memory_order_relaxed);
}

void Device::am_list(Peer& p) {
  p.on_am_list = true;
  p.am_next = nullptr;
  (am_peers_tail_ != nullptr ? am_peers_tail_->am_next : am_peers_head_) = &p;
  am_peers_tail_ = &p;
  ++am_peers_;
}

// ---- delivery ----

// The buffer is had in ordinary context only, one message per peer at a time: that bounds them.
void Device::am_start_transfer(Message* m) {
  if (peers_[m->peer].lost != 0 || !am_grow_block(m, true)) return;  // no memory: tried again by the next call
  auto* data = static_cast<std::uint8_t*>(m->block.data) + padded_header(m->am_header_bytes);
  int result = MPID_CreateRecvTransfer(data, m->bytes, m->peer, &m->transfer);
  if (result >= 0) {
    result = MPID_StartNBRecvTransfer(data, m->bytes, m->peer, m->transfer, &m->channel);
    if (result < 0) MPID_CancelRecvTransfer(m->transfer, 0);
  }
  if (result < 0) return peer_lost(m->peer, -result);
  m->to(MessageState::kTransfer);
  const int peer = m->peer;
  const std::uint64_t sender = m->sender;
  const MPID_TransferId transfer = m->transfer;
  const std::uint64_t bytes = m->bytes;
  MPID_OnComplete(m->channel, on_am_transfer, m);  // a lost peer drops m
  send_cts(peer, sender, transfer, bytes);
}

void Device::on_am_transfer(void* arg, std::int64_t result) {
  auto* m = static_cast<Message*>(arg);
  if (result >= 0 && static_cast<std::uint64_t>(result) != m->bytes) {
    m->device->protocol_error(m->peer, "a transfer that is not as long as was accepted");
    result = -EPROTO;
  }
  if (result < 0) return m->device->drop_message(m);
  m->device->happened();
  m->to(MessageState::kReady);
}

// The next message that can be delivered, taken off its queue; peers take turns. nullptr: none now.
Message* Device::am_next_ready() {
  for (std::uint32_t looks = am_peers_; looks > 0; --looks) {
    Peer& p = *am_peers_head_;
    am_peers_head_ = p.am_next;
    if (am_peers_head_ == nullptr) am_peers_tail_ = nullptr;
    --am_peers_;
    p.on_am_list = false;
    Message* m = p.am_head;
    if (m == nullptr) continue;
    if (m->state == MessageState::kOffered) am_start_transfer(m);
    m = p.am_head;
    const bool ready = m != nullptr && m->state == MessageState::kReady;
    if (ready) am_remove(m);
    if (p.am_head != nullptr) am_list(p);
    if (ready) return m;
  }
  return nullptr;
}

std::uint32_t Device::deliver_active_messages() {
  if (active_messages() == 0 || am_callback_ == nullptr || delivering_) return 0;
  delivering_ = true;
  std::uint32_t delivered = 0;
  // No more than were there: what the callbacks bring about waits for the next call, so that this one ends.
  const std::uint32_t limit = active_messages();
  gate().enter();
  while (delivered < limit) {
    Message* m;
    {
      Scope scope(*this);
      m = am_next_ready();
    }
    if (m == nullptr) break;
    // Outside the gate: the host's handler may run long, and signals must find it open.
    gate().leave();
    auto* header = static_cast<const std::uint8_t*>(m->block.data);
    am_callback_(m->peer, m->am_handler, header, m->am_header_bytes, header + padded_header(m->am_header_bytes), m->bytes, am_callback_arg_);
    ++delivered;
    gate().enter();
    Scope scope(*this);
    free_message(m);
    happened();
  }
  gate().leave();
  delivering_ = false;
  return delivered;
}

}  // namespace ch_lite
