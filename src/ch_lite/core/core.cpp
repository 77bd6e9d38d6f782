// The core of the device: packets and credit, requests, messages, lost peers.
#include "ch_lite/core/core.h"

#include <algorithm>

lite_hot_state lite_hot = {0, 0, LITE_CALL_PROGRESS, 0, 0, 0, 0, 0, 0, 0};

namespace ch_lite {

Core::Core(const DeviceOptions& given)
    : options(given),
      cutoffs(given.short_max, given.eager_max, given.eager_auto, given.tuning),
      blocks(given.unexpected_max_bytes),
      sole_posted_end(given.tuning.has(mplite::Heuristic::kSolePosted) ? kShortBytesMax + 1 : 0) {}

Core::~Core() {
  messages.visit_taken([this](Message* m) { blocks.give(m->block); });
  requests.visit_taken([this](Request* r) { blocks.give(r->am_header); });
}

bool Core::start() {
  const std::uint64_t window =
      credit_window(options.credits_bytes, options.unexpected_max_bytes, options.size);
  if (!peers.start(options.size, window, options.windows) || !matcher.start()) return false;
  options.windows = nullptr;
  gate_ = &mplite::channel_gate();
  counters_ = &mplite::channel_counters();
  return requests.start() && refill();
}

void Core::peer_lost(int peer, int error) {
  Peer& p = peers[peer];
  if (p.lost != 0) return;
  peers.lose(peer, error, MPID_ChannelDeparted(peer) != 0);
  bump_events();
  attend(p, kAttentionLost);  // later: the caller may be in the middle of something with it
}

void Core::protocol_error(int peer, const char* what) {
  Peer& p = peers[peer];
  if (p.lost != 0) return;
  p.broken = what;
  peer_lost(peer, EPROTO);
  attend(p, kAttentionBroken);
  give_up(peer, EPROTO);
}

int Core::report(int code, int peer, const char* what) {
  const DeviceHooks& hooks = options.hooks;
  if (hooks.report != nullptr) {
    const bool known = peer >= 0 && peer < peers.count();
    hooks.report(hooks.arg, code, peer, known ? peers[peer].lost : 0,
                 what != nullptr || !known ? what : peers[peer].broken);
  }
  return code;
}

int Core::take_trouble() {
  const int code = trouble.code();
  trouble.forget();
  return report(code, trouble.peer(), trouble.text());
}

int Core::send_control(int peer, PacketHeader* packet, int bytes, const void* data,
                       int data_bytes) {
  return send_packet(peer, packet, [&] {
    return data_bytes == 0 ? MPID_SendControl(packet, bytes, peer)
                           : MPID_SendControlData(packet, bytes, data, data_bytes, peer);
  });
}

int Core::send_answer(int peer, PacketHeader* packet, int bytes, const void* data, int data_bytes) {
  const int result = send_control(peer, packet, bytes, data, data_bytes);
  if (result < 0) peer_lost(peer, -result);
  return result;
}

bool Core::room_to_send() {
  if (MPID_ChannelHeadroom() != 0) return true;
  if (MPID_ChannelInHandler() == 0) return MPID_ChannelRefill() == 0;
  ++counters().no_memory_in_handler;
  return false;
}

void Core::release_credit(int peer, TrafficClass traffic, std::uint64_t charge) {
  Peer& p = peers[peer];
  p.credits[traffic].release(charge);
  if (peer == options.rank) {  // both ends are here
    CHLITE_CHECK(p.credits[traffic].refund(p.credits[traffic].take_owed()));
  } else if (p.credits[traffic].due()) {
    attend(p, kAttentionCredit);
  }
}

void Core::start_request(Request* r, RequestKind kind, RequestState state, int peer,
                         const Memory& memory, std::uint64_t bytes, void* cookie) {
  r->core = this;
  r->kind = kind;
  r->to(state);
  r->peer = peer;
  r->memory = memory;
  r->bytes = bytes;
  r->fragment = 0;
  r->fragment_pending = false;
  r->cookie = cookie;
  if (kind != RequestKind::kReceive) r->status = {LITE_OK, r->key.source, r->key.tag, peer, bytes};
  requests.begin(r, peer >= 0 ? &peers[peer].pending : &requests.any_source());
  if (options.notes_age) [[unlikely]]
    r->begun_ns = mplite::trace_now_ns();
  trace.started(r);
}

void Core::complete(Request* r, int error) {
  requests.end(r);
  bump_events();
  if (r->counted) [[unlikely]] {
    Peer& p = peers[r->peer];
    p.origin.end_access(r);
    if (!p.origin.waiting.empty()) attend(p, kAttentionAccess);
  }
  r->to(RequestState::kComplete);
  r->status.error = error;
  trace.completed(r);
  if (r->owned) [[unlikely]]
    return requests.give(r);
  requests.add_completed(r);
}

void Core::watch_send(Request* r, MPID_ChannelId id) {
  r->channel = id;
  if (id != 0)
    MPID_OnComplete(id, on_sent, r);  // may complete r at once: nothing after it
  else
    on_sent(r, 0);
}

void Core::on_sent(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  if (r->fragment_pending)
    r->channel = 0;  // whose end completes it: over several lanes it may be the later one
  else if (result < 0)
    r->core->complete(r, LITE_ERR_PEER_LOST);
  else if (r->state == RequestState::kSendingAwaitingAck)
    r->to(RequestState::kAwaitingAck);
  else
    r->core->complete(r, LITE_OK);
}

Request* Core::echoed(std::uint64_t handle, int from) {
  Request* r = requests.find(handle);
  if (r != nullptr && r->kind != RequestKind::kReceive && r->state != RequestState::kFree &&
      r->peer == from)
    return r;
  protocol_error(from, "an answer to a request that it was never sent");
  return nullptr;
}

Message* Core::new_message(int peer, const Packet& packet, MessageState state, TrafficClass traffic,
                           std::uint64_t charge) {
  Message* m = messages.take();
  CHLITE_CHECK(m != nullptr);  // headroom(), or a reserve in ordinary context
  m->core = this;
  m->to(state);
  m->key = packet.key;
  m->synchronous = packet.sync;
  m->active = traffic == kActive;
  m->peer = peer;
  m->bytes = packet.bytes;
  m->fragment = packet.fragment;
  m->resend_fragment = false;
  m->unverified = m->offer = false;
  m->sender = packet.sender;
  m->charge = charge;
  m->am_handler = packet.handler;
  m->am_header_bytes = packet.header_bytes;
  trace.kept(m);
  return m;
}

void Core::free_message(Message* m) {
  if (m->unverified) [[unlikely]]
    end_unverified(m);
  if (m->offer) [[unlikely]]
    --peers[m->peer].offers;
  blocks.give(m->block);
  if (m->charge != 0) release_credit(m->peer, m->active ? kActive : kPointToPoint, m->charge);
  m->to(MessageState::kFree);
  messages.give(m);
}

void Core::count_unexpected(Peer& from, std::uint64_t bytes) {
  if (bytes > kLongBytes) {
    // Told so, the peer sends the next ones by rendezvous, and our CTS must not stand behind a long
    // eager message of ours.
    from.tell_late = true;
    from.in_time = 0;
  }
  trace.unexpected(peers.number_of(from));
  mplite::Counters& c = counters();
  ++c.unexpected;
  c.unexpected_bytes += bytes;
  if (blocks.bytes_in_use() > c.unexpected_bytes_peak)
    c.unexpected_bytes_peak = blocks.bytes_in_use();
}

Block Core::obtain_block(std::uint64_t bytes, BlockUse use) {
  if (MPID_ChannelInHandler() == 0) return blocks.take_or_allocate(bytes, use);
  const Block block = blocks.over_bound() ? Block{} : blocks.take(bytes);
  if (block.data == nullptr && bytes != 0) ++counters().no_memory_in_handler;
  return block;
}

}  // namespace ch_lite
