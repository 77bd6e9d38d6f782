// Active messages of the host.
#include "ch_lite/protocols/active_message.h"

#include <cerrno>
#include <cstring>

#include "ch_lite/protocols/answers.h"
#include "ch_lite/protocols/deferred.h"
#include "ch_lite/protocols/eager.h"
#include "ch_lite/protocols/remote_process.h"
#include "ch_lite/protocols/transfer.h"

namespace ch_lite {
namespace {

void on_am_transfer(void* arg, std::int64_t result) {
  auto* m = static_cast<Message*>(arg);
  Core& core = *m->core;
  if (result >= 0 && static_cast<std::uint64_t>(result) != m->bytes) {
    core.protocol_error(m->peer, "a transfer that is not as long as was accepted");
    result = -EPROTO;
  }
  if (result < 0) return drop_message(core, m);
  core.bump_events();
  m->to(MessageState::kReady);
}

// An active message that its sender has offered.
struct TransferOfMessage {
  static constexpr auto kOnComplete = on_am_transfer;

  MPID_TransferId& transfer() const { return message->transfer; }
  MPID_ChannelId& channel() const { return message->channel; }
  void begun() const { message->to(MessageState::kTransfer); }
  void* arg() const { return message; }
  bool is_open() const { return message->state == MessageState::kTransfer; }
  int tell(MPID_TransferId transfer) const {
    return send_cts(core, message->peer, message->sender, transfer, message->bytes);
  }

  Core& core;
  Message* message;
};

}  // namespace

int ActiveMessages::isend(int peer, std::uint32_t handler, const void* header,
                          std::uint32_t header_bytes, const void* data, std::uint64_t data_bytes,
                          void* cookie, Request** request) {
  const Outgoing message{handler, header_bytes, header, data, data_bytes};
  mplite::Counters& c = core_.counters();
  ++c.am_msgs;
  c.am_bytes += header_bytes + data_bytes;
  if (peer == core_.self()) return send_self(message);
  Peer& p = core_.peers[peer];
  if (p.lost != 0) return core_.report(LITE_ERR_PEER_LOST, peer);
  const Choice choice = choose_am_protocol(
      header_bytes, data_bytes, core_.cutoffs.of(p, peer, data_bytes), p.credits[kActive].left());
  if (choice.out_of_credit) {
    ++c.credit_stalls;
    core_.trace.stalled(peer, header_bytes + data_bytes, p.credits[kActive].left());
  }
  if (choice.protocol == Protocol::kWait || !p.am_waiting.empty())
    return wait(peer, message, cookie, request);

  Request* r = nullptr;
  if (choice.protocol != Protocol::kShort && (r = core_.requests.reserve()) == nullptr)
    return core_.report(LITE_ERR_NOMEM, peer);
  MPID_ChannelId id = 0;
  if (send_now(peer, choice, message, r != nullptr ? r->pool_handle : 0, &id) < 0) {
    if (r != nullptr) core_.requests.unreserve(r);
    return core_.report(LITE_ERR_PEER_LOST, peer);
  }
  if (choice.protocol != Protocol::kRendezvous && id == 0) {
    if (r != nullptr) core_.requests.unreserve(r);
    core_.trace.last_is_done(peer);
    return LITE_OK;
  }
  const bool offered = choice.protocol == Protocol::kRendezvous;
  core_.start_request(r, RequestKind::kAmSend,
                      offered ? RequestState::kAwaitingCts : RequestState::kSending, peer, data,
                      data_bytes, cookie);
  *request = r;
  if (!offered) core_.watch_send(r, id);
  return LITE_PENDING;
}

// Copied whole: complete at once. Not bounded, as nobody but the application itself can make it
// grow.
int ActiveMessages::send_self(const Outgoing& message) {
  const int self = core_.self();
  const std::uint64_t head = padded_header(message.header_bytes);
  if (core_.messages.free_count() == 0 && !core_.messages.reserve(1))
    return core_.report(LITE_ERR_NOMEM, self);
  const Block block = core_.blocks.take_or_allocate(head + message.data_bytes, BlockUse::kOwn);
  if (block.data == nullptr && head + message.data_bytes != 0)
    return core_.report(LITE_ERR_NOMEM, self);
  auto* bytes = static_cast<std::uint8_t*>(block.data);
  if (message.header_bytes != 0) std::memcpy(bytes, message.header, message.header_bytes);
  if (message.data_bytes != 0) std::memcpy(bytes + head, message.data, message.data_bytes);
  Packet packet{};
  packet.bytes = message.data_bytes;
  packet.handler = message.handler;
  packet.header_bytes = message.header_bytes;
  Message* m = core_.new_message(self, packet, MessageState::kReady, kActive, 0);
  m->block = block;
  core_.active_arrivals.append(core_.peers[m->peer], m);
  return LITE_OK;
}

// Sends as chosen and spends the credit. Or -errno: the peer is lost.
int ActiveMessages::send_now(int peer, const Choice& choice, const Outgoing& message,
                             std::uint64_t sender, MPID_ChannelId* id) {
  AmPacket packet{{PacketType::kAmShort, 0, 0, 0, 0},
                  message.handler,
                  message.header_bytes,
                  0,
                  message.data_bytes,
                  0};
  if (choice.protocol == Protocol::kEager) packet.header.type = PacketType::kAmEager;
  if (choice.protocol == Protocol::kRendezvous) {
    packet.header.type = PacketType::kAmRts;
    packet.sender = sender;
  }
  std::memcpy(packet_, &packet, sizeof packet);
  if (message.header_bytes != 0)
    std::memcpy(packet_ + sizeof packet, message.header, message.header_bytes);
  auto* whole = reinterpret_cast<PacketHeader*>(packet_);
  const int bytes = static_cast<int>(sizeof packet + message.header_bytes);
  int result;
  if (choice.protocol == Protocol::kEager) {
    result = send_channel_behind(core_, peer, whole, bytes, message.data, message.data_bytes, id);
  } else {
    const bool in_packet = choice.protocol == Protocol::kShort;
    result = core_.send_control(peer, whole, bytes, message.data,
                                in_packet ? static_cast<int>(message.data_bytes) : 0);
    if (result < 0 && result != -ENOBUFS) core_.peer_lost(peer, -result);
  }
  if (result >= 0) CHLITE_CHECK(core_.peers[peer].credits[kActive].spend(choice.charge));
  return result;
}

// Behind the others that wait. Without data the caller is done: header copied, the request is the
// device's own.
int ActiveMessages::wait(int peer, const Outgoing& message, void* cookie, Request** request) {
  Request* r = core_.requests.reserve();
  if (r == nullptr) return core_.report(LITE_ERR_NOMEM, peer);
  r->am_header = core_.blocks.take_or_allocate(message.header_bytes, BlockUse::kOwn);
  if (r->am_header.data == nullptr && message.header_bytes != 0) {
    core_.requests.unreserve(r);
    return core_.report(LITE_ERR_NOMEM, peer);
  }
  if (message.header_bytes != 0)
    std::memcpy(r->am_header.data, message.header, message.header_bytes);
  r->am_header_bytes = message.header_bytes;
  r->am_handler = message.handler;
  r->owned = message.data_bytes == 0;
  core_.start_request(r, RequestKind::kAmSend, RequestState::kWaitingCredit, peer, message.data,
                      message.data_bytes, cookie);
  core_.peers[peer].am_waiting.push(r);
  ++unsent_;
  if (r->owned) return LITE_OK;
  *request = r;
  return LITE_PENDING;
}

// Credit is back. False: more could go, but not now (no headroom).
bool ActiveMessages::pump(int peer) {
  Peer& p = core_.peers[peer];
  // The handler's headroom is one packet: an offer instead of packet and data.
  Cutoffs cutoffs = core_.cutoffs.of(p, peer);
  if (MPID_ChannelInHandler() != 0) cutoffs.eager_max = 0;
  while (!p.am_waiting.empty()) {
    Request* const r = p.am_waiting.front();
    const Choice choice =
        choose_am_protocol(r->am_header_bytes, r->bytes, cutoffs, p.credits[kActive].left());
    if (choice.protocol == Protocol::kWait) return true;
    if (MPID_ChannelHeadroom() == 0) return false;
    const Outgoing message{r->am_handler, r->am_header_bytes, r->am_header.data, r->memory.buffer,
                           r->bytes};
    MPID_ChannelId id = 0;
    const int result = send_now(peer, choice, message, r->pool_handle, &id);
    if (result == -ENOBUFS) return false;
    if (result < 0) return true;  // the peer is lost: drop_unsent() follows
    p.am_waiting.pop();
    --unsent_;
    core_.blocks.give(r->am_header);
    r->am_header = {};
    core_.trace.is_last(r);
    if (choice.protocol == Protocol::kRendezvous) {
      r->to(RequestState::kAwaitingCts);
    } else {
      r->to(RequestState::kSending);
      core_.watch_send(r, id);
    }
  }
  return true;
}

void ActiveMessages::drop_unsent(Peer& p) {
  while (!p.am_waiting.empty()) {
    Request* const r = p.am_waiting.pop();
    --unsent_;
    core_.blocks.give(r->am_header);
    r->am_header = {};
    core_.complete(r, LITE_ERR_PEER_LOST);
  }
}

void ActiveMessages::handle(const Packet& packet, int from) {
  const std::uint64_t head = padded_header(packet.header_bytes);
  const bool is_short = packet.type == PacketType::kAmShort;
  const bool is_offer = packet.type == PacketType::kAmRts;
  const std::uint64_t charge = message_charge(head + (is_offer ? 0 : packet.bytes));
  if (!core_.peers[from].credits[kActive].accept(charge))
    return core_.protocol_error(from, "more active-message data than it has credit for");
  const MessageState state = is_short   ? MessageState::kReady
                             : is_offer ? MessageState::kOffered
                                        : MessageState::kDeferred;
  Message* m = core_.new_message(from, packet, state, kActive, charge);
  // An offer's and, until there is a block for all, an eager message's header gets a block of its
  // own.
  const std::uint64_t wanted = head + (is_short ? packet.bytes : 0);
  if (wanted != 0) {
    m->block = core_.obtain_packet_block(wanted);
    CHLITE_CHECK(m->block.data != nullptr);  // headroom()
    auto* bytes = static_cast<std::uint8_t*>(m->block.data);
    if (packet.header_bytes != 0) std::memcpy(bytes, packet.payload, packet.header_bytes);
    if (is_short && packet.bytes != 0)
      mplite::copy_bytes(bytes + head, packet.payload + packet.header_bytes, packet.bytes);
  }
  core_.active_arrivals.append(core_.peers[m->peer], m);
  if (state == MessageState::kDeferred) arrive_by_channel(core_, m);
}

// Of a lost peer, when nobody will take them. Those of which something is missing end with the peer
// (drop_offers, and by their callbacks).
void ActiveMessages::drop_whole(Peer& p) {
  for (Message* next = p.am_arrived.front(); next != nullptr;) {
    Message* m = next;
    next = m->queue_next;
    if (m->state != MessageState::kReady) continue;
    core_.active_arrivals.remove(p, m);
    core_.free_message(m);
  }
}

// The buffer is had in ordinary context only, one message per peer at a time: that bounds them.
void ActiveMessages::start_transfer(Message* m) {
  if (core_.peers[m->peer].lost != 0) return;
  if (!grow_block(core_, m, BlockUse::kOwn)) return;
  auto* data = static_cast<std::uint8_t*>(m->block.data) + padded_header(m->am_header_bytes);
  const int peer = m->peer;
  const int result = receive_by_transfer({data, 0, m->bytes, peer}, TransferOfMessage{core_, m});
  if (result >= 0) return;
  if (m->state != MessageState::kTransfer && (result == -ENOMEM || result == -ENOBUFS))
    return without_memory(core_, m);
  core_.peer_lost(peer, -result);
  if (m->state == MessageState::kTransfer) drop_message(core_, m);
}

// The next message that can be delivered, taken off its queue; peers take turns. nullptr: none now.
Message* ActiveMessages::next_ready() {
  for (std::uint32_t looks = core_.active_arrivals.turns(); looks > 0; --looks) {
    Peer& p = core_.active_arrivals.next_turn();
    Message* m = p.am_arrived.front();
    if (m == nullptr) continue;
    if (!may_deliver(core_, *m)) {
      if (p.lost != 0)
        drop_whole(p);
      else if (!p.am_arrived.empty() && !p.on_am_list)
        core_.active_arrivals.take_turn(p);
      continue;
    }
    if (m->state == MessageState::kOffered) start_transfer(m);
    m = p.am_arrived.front();
    const bool ready = m != nullptr && m->state == MessageState::kReady;
    if (ready) core_.active_arrivals.remove(core_.peers[m->peer], m);
    if (!p.am_arrived.empty()) core_.active_arrivals.take_turn(p);
    if (ready) return m;
  }
  return nullptr;
}

void ActiveMessages::deliver(const Message* m) const {
  auto* header = static_cast<const std::uint8_t*>(m->block.data);
  core_.trace.active_message_begins(m);
  callback_(m->peer, m->am_handler, header, m->am_header_bytes,
            header + padded_header(m->am_header_bytes), m->bytes, callback_arg_);
  core_.trace.active_message_ended();
}

}  // namespace ch_lite
