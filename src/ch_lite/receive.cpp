// Receives, probes and matched probes: what they share, whatever protocol brought the message.
#include <algorithm>
#include <cstring>

#include "device.h"

namespace ch_lite {

void Device::fill_status(lite_status* status, const MatchKey& envelope, int peer, std::uint64_t bytes, std::uint64_t room) {
  status->error = bytes > room ? LITE_ERR_TRUNCATE : LITE_OK;
  status->source = envelope.source;
  status->tag = envelope.tag;
  status->peer = peer;
  status->bytes = std::min(bytes, room);
  if (bytes > room) ++counters().truncated;
}

// The receive has its message. It is on that peer's list from here on; what state it is in, the protocol says.
void Device::matched(Request* r, const MatchKey& envelope, int peer, std::uint64_t bytes) {
  r->peer = peer;
  r->incoming = bytes;
  fill_status(&r->status, envelope, peer, bytes, r->bytes);
  move_to_list(r, &peers_[peer].pending);
}

void Device::finish_receive(Request* r) { complete(r, r->status.error); }

// A lost peer for which a new receive from `peer` (-1: any) cannot be served, or -1. With any source any lost peer counts: it may have been
// the only one that would have sent, and an error is better than a hang.
int Device::lost_source(int peer) const {
  if (peer >= 0) return peers_[peer].lost != 0 ? peer : -1;
  if (lost_peers_ == 0) return -1;
  for (int i = 0; i < peers(); ++i)
    if (peers_[i].lost != 0 && !peers_[i].departed) return i;
  return -1;
}

int Device::irecv(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, void* cookie, lite_status* status, Request** request) {
  if (auto* m = static_cast<Message*>(matcher_.find_unexpected(key)))
    return receive_message(m, memory, bytes, cookie, status, request);
  const int lost = lost_source(peer);
  if (lost >= 0) {
    *status = {LITE_ERR_PEER_LOST, key.source, key.tag, lost, 0};
    return report(LITE_ERR_PEER_LOST, lost);
  }
  Request* r = reserve_request();
  if (r == nullptr) return report(LITE_ERR_NOMEM, peer);
  r->key = key;
  start_request(r, RequestKind::kReceive, RequestState::kPosted, peer, memory, bytes, cookie);
  matcher_.post(r);
  if (peer >= 0 && peer != options_.rank) MPID_ChannelPrefer(peer);
  *request = r;
  return LITE_PENDING;
}

int Device::cancel_receive(Request* r) {
  if (r->state != RequestState::kPosted) return 0;
  matcher_.withdraw(r);
  move_to_list(r, nullptr);
  --outstanding_;
  r->to(RequestState::kFree);
  requests_.give(r);
  return 1;
}

int Device::probe(int peer, const MatchKey& key, lite_status* status, Message** message) {
  auto* m = static_cast<Message*>(matcher_.find_unexpected(key));
  if (m == nullptr) {
    progress();
    m = static_cast<Message*>(matcher_.find_unexpected(key));
  }
  if (m == nullptr) {
    const int lost = lost_source(peer);
    if (lost < 0) return 0;
    *status = {LITE_ERR_PEER_LOST, key.source, key.tag, lost, 0};
    return report(LITE_ERR_PEER_LOST, lost);
  }
  *status = {LITE_OK, m->key.source, m->key.tag, m->peer, m->bytes};
  if (message == nullptr) return 1;
  matcher_.remove_unexpected(m);
  m->detached = true;
  *message = m;
  return 1;
}

int Device::receive_detached(Message* m, const Memory& memory, std::uint64_t bytes, void* cookie, lite_status* status, Request** request) {
  const int peer = m->peer;
  if (m->state == MessageState::kFailed || ((m->state == MessageState::kOffered || m->is_offered_rest()) && peers_[peer].lost != 0)) {
    *status = {LITE_ERR_PEER_LOST, m->key.source, m->key.tag, peer, 0};
    free_message(m);
    return report(LITE_ERR_PEER_LOST, peer);
  }
  return receive_message(m, memory, bytes, cookie, status, request);
}

// The receive takes message m, which is in the matcher or detached.
int Device::receive_message(Message* m, const Memory& memory, std::uint64_t bytes, void* cookie, lite_status* status, Request** request) {
  Request* r = nullptr;
  const bool rest_wanted = m->fragment != 0 && std::min(m->bytes, bytes) > m->fragment;
  const bool complete_now = (m->state == MessageState::kReady && !rest_wanted) || m->state == MessageState::kPinned;
  if (!complete_now && (r = reserve_request()) == nullptr) return report(LITE_ERR_NOMEM, m->peer);
  if (m->match_queued) matcher_.remove_unexpected(m);
  m->detached = false;
  // The ack goes last: sending it may lose the peer, and that frees a message that is not linked to its receive yet.
  const bool ack_owed = m->synchronous && m->state != MessageState::kPinned;
  const int peer = m->peer;
  const std::uint64_t sender = m->sender;
  const bool again = m->again;

  if (complete_now) {
    fill_status(status, m->key, m->peer, m->bytes, bytes);
    const Memory data = m->state == MessageState::kPinned ? m->request->memory : m->block.data;
    copy(memory, data, status->bytes);
    if (m->state == MessageState::kPinned) complete(m->request, LITE_OK);
    const bool answer_owed = m->fragment != 0;
    free_message(m);
    if (ack_owed) send_ack(peer, sender);
    if (answer_owed) send_cts(peer, sender, 0, status->bytes);
    return LITE_OK;
  }

  *request = r;
  r->key = m->key;
  const MessageState found = m->state;
  const bool offer = found == MessageState::kOffered || m->fragment != 0;
  RequestState state = RequestState::kReceivingTransfer;
  if ((found == MessageState::kArriving || found == MessageState::kDeferred) && !rest_wanted) state = RequestState::kReceivingChannel;
  start_request(r, RequestKind::kReceive, state, m->peer, memory, bytes, cookie);
  matched(r, m->key, m->peer, m->bytes);
  r->fragment = m->fragment;
  switch (found) {
    case MessageState::kOffered: free_message(m); break;
    case MessageState::kReady:  // a fragment
      copy(memory, m->block.data, m->fragment);
      free_message(m);
      break;
    case MessageState::kDeferred:
      r->fragment_open = m->fragment != 0;
      m->request = r;
      if (!serve_deferred(peers_[peer])) attend(peers_[peer], kAttentionDeferred);
      break;
    default:  // arriving
      r->fragment_open = m->fragment != 0;
      move_arriving(m, r);
  }
  if (offer) accept_offer(r, sender, again);
  if (ack_owed) send_ack(peer, sender);
  return LITE_PENDING;
}

void Device::send_ack(int peer, std::uint64_t sender) {
  AckPacket ack{};
  ack.header.type = PacketType::kSyncAck;
  ack.sender = sender;
  const int result = send_control(peer, &ack.header, sizeof ack);
  // Headroom was there, so this is a lost peer; an answer that cannot be sent must not be forgotten quietly.
  if (result < 0) peer_lost(peer, -result);
}

}  // namespace ch_lite
