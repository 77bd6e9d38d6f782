// The core of the device: the dispatch loop, completion, credit and failure handling that all protocols share.
#include "device.h"

#include <algorithm>
#include <cerrno>

namespace ch_lite {
namespace {

// Small puts acknowledged by one packet while more keep coming.
constexpr std::uint32_t kAcksTogether = 64;
// Long messages to a peer between two looks at its round trip: the kernel's least of late needs some samples, and the path may change.
constexpr std::uint32_t kEagerLooks = 64;
// Of other jobs, at a time; as in the engine.
constexpr std::size_t kForeignMax = 65536;

void progress_callback(void* self) { static_cast<Device*>(self)->progress(); }
int introduce_callback(void* self, int peer, std::uint32_t window) { return static_cast<Device*>(self)->introduce(peer, window) ? 1 : 0; }
void lost_callback(void* self, int peer, int error) { static_cast<Device*>(self)->peer_lost(peer, error); }

}  // namespace

Device* device_current = nullptr;
void device_bind(Device* device) { device_current = device; }
HostSettings host_settings;

Device::Device(const DeviceOptions& options)
    : options_(options),
      cutoffs_{options.short_max, options.eager_max},
      eager_cutoff_(options.eager_max),
      window_(credit_window(options.credits_bytes, options.unexpected_max_bytes, options.size)),
      blocks_(options.unexpected_max_bytes) {}

// Requests and messages go with their pools; blocks that unreceived messages still hold are given back first. The channel is gone already.
Device::~Device() {
  if (peers_ == nullptr) return;
  messages_.visit_taken([this](Message* m) { blocks_.give(m->block); });
  requests_.visit_taken([this](Request* r) { blocks_.give(r->am_header); });
}

bool Device::start() {
  const auto size = static_cast<std::size_t>(options_.size);
  if (!peer_table_.start(size, size + kForeignMax) || !matcher_.start()) return false;
  peers_ = peer_table_.data();
  gate_ = &mplite::channel_gate();
  counters_ = &mplite::channel_counters();
  for (std::size_t i = 0; i < size; ++i)
    for (Credits& lane : peers_[i].credits) lane.start(window_);
  set_tag_ignore_bits(host_settings.tag_ignore_bits);
  set_am_callback(host_settings.am_callback, host_settings.am_callback_arg);
  if (!requests_.reserve(1) || !refill()) return false;
  MPID_ChannelSetProgress(progress_callback, this);
  MPID_ChannelSetLost(lost_callback, this);
  MPID_ChannelSetIntroduce(introduce_callback, this);
  return true;
}

// ---- the loop ----

bool Device::refill() {
  matcher_.grow();
  const bool messages = messages_.reserve(kMessagesReady);
  const bool blocks = blocks_.refill();
  const bool accesses = regions_.used_count() == 0 || accesses_.reserve(accesses_ready()) || accesses_.free_count() > 0;
  return MPID_ChannelRefill() == 0 && (messages || messages_.free_count() > 0) && blocks && accesses;
}

// Whether whatever packet comes next can be dealt with: one message node, one block for what a packet can carry, one answer,
// one access to exposed memory.
bool Device::headroom() {
  const auto enough = [this] {
    return messages_.free_count() > 0 && blocks_.ready(kPacketDataMax) && MPID_ChannelHeadroom() != 0 &&
           (regions_.used_count() == 0 || accesses_.free_count() > 0);
  };
  if (enough()) return true;
  if (MPID_ChannelInHandler() == 0) {
    refill();
    if (enough()) return true;
  } else {
    ++counters().no_memory_in_handler;
  }
  return false;
}

void Device::progress() {
  if (progressing_) return;  // a poll below called back: the loop goes on anyway
  progressing_ = true;
  const bool handler = MPID_ChannelInHandler() != 0;
  bool used = false;  // perhaps, of what is kept ready
  {
    Scope scope(*this);
    dispatching_ = true;
    int from = -1, more = 1;
    const void* at = nullptr;
    const auto view = [&](int available) { return available != 0 && headroom() ? MPID_ViewAnyControl(&at, packet_, &from) : 0; };
    // Avail first: it also moves bulk data, which needs no headroom here. What has just been refilled has it.
    int bytes = !handler && refill() ? MPID_NextControl(&at, packet_, &from, &more) : view(MPID_ControlMsgAvail());
    for (; bytes > 0 && from >= 0 && from < peers(); bytes = more != 0 ? view(MPID_ControlMsgMore()) : 0) {
      happened();
      if (peers_[from].lost != 0) [[unlikely]] continue;  // what a lost peer had still said is void: its requests have failed
      if (!take_awaited(at, static_cast<std::size_t>(bytes), from)) [[unlikely]] {
        used = true;
        act_upon(at, static_cast<std::size_t>(bytes), from);
      }
      if (attention_head_ == nullptr) [[likely]] continue;
      used = true;
      attend_to_all();
      more = 1;  // it may have polled
    }
    dispatching_ = false;
  }
  progressing_ = false;
  if (used && !handler) [[unlikely]] top_up();
}

void Device::act_upon(const void* at, std::size_t bytes, int from) {
  Packet packet;
  if (decode({static_cast<const std::uint8_t*>(at), bytes}, packet))
    dispatch(packet, from);
  else
    protocol_error(from, "a control packet that makes no sense");
}

void Device::dispatch(const Packet& packet, int from) {
  Peer& peer = peers_[from];
  if (packet.credit != 0 && !peer.credits[kPointToPoint].refund(packet.credit))
    return protocol_error(from, "more credit returned than was given (is LITE_CREDITS the same on every rank?)");
  if (packet.am_credit != 0) {
    if (!peer.credits[kActive].refund(packet.am_credit))
      return protocol_error(from, "more active-message credit returned than was given (is LITE_CREDITS the same on every rank?)");
    if (peer.am_wait_head != nullptr) attend(peer, kAttentionPump);
  }
  if (packet.late) peer.in_time = 0;
  switch (packet.type) {
    case PacketType::kShort: return handle_short(packet, from);
    case PacketType::kEager: return handle_eager(packet, from);
    case PacketType::kRts: return handle_rts(packet, from);
    case PacketType::kCts: return handle_cts(packet, from);
    case PacketType::kSyncAck: return handle_ack(packet, from);
    case PacketType::kCredit: return;
    case PacketType::kAmShort:
    case PacketType::kAmEager:
    case PacketType::kAmRts: return handle_am(packet, from);
    case PacketType::kPut: return handle_put(packet, from);
    case PacketType::kPutRequest: return handle_put_request(packet, from);
    case PacketType::kGet: return handle_get(packet, from);
    case PacketType::kGetTransfer: return handle_get_transfer(packet, from);
    case PacketType::kPutAck: return handle_put_ack(packet, from);
    case PacketType::kGetData: return handle_get_data(packet, from);
  }
}

// ---- attention: what had to be put off to the end of the outermost call ----

void Device::attend(Peer& peer, std::uint8_t what) {
  peer.attention |= what;
  if (peer.on_attention_list) return;
  peer.on_attention_list = true;
  peer.attention_next = attention_head_;
  attention_head_ = &peer;
}

// What cannot be done now goes back onto the list. Passes: serving one thing makes another due (a deferred message returns credit).
void Device::attend_to_all() {
  constexpr int kPasses = 3;
  const bool handler = MPID_ChannelInHandler() != 0;
  for (int pass = 0; pass < kPasses && attention_head_ != nullptr; ++pass) {
    Peer* next = attention_head_;
    attention_head_ = nullptr;
    while (next != nullptr) {
      Peer& peer = *next;
      next = peer.attention_next;
      peer.on_attention_list = false;
      const std::uint8_t what = peer.attention;
      peer.attention = 0;
      const int index = index_of(peer);
      if ((what & kAttentionLost) != 0) fail_peer(index);
      if ((what & kAttentionBroken) != 0) {
        if (handler)
          attend(peer, kAttentionBroken);
        else
          report(LITE_ERR_PEER_LOST, index, peer.broken);
      }
      if (peer.lost != 0) continue;
      if ((what & kAttentionDeferred) != 0 && !serve_deferred(peer)) attend(peer, kAttentionDeferred);
      if ((what & kAttentionPump) != 0 && !pump_active_messages(index)) attend(peer, kAttentionPump);
      if ((what & kAttentionAccess) != 0 && !pump_accesses(index)) attend(peer, kAttentionAccess);
      if ((what & kAttentionAnswers) != 0) {
        const bool more_may_come = dispatching_ && peer.answers == nullptr && peer.puts_done < kAcksTogether;
        if (more_may_come || !send_answers(index)) attend(peer, kAttentionAnswers);
      }
      if ((what & kAttentionCredit) != 0 && (peer.credits[kPointToPoint].due() || peer.credits[kActive].due())) {
        PacketHeader credit{PacketType::kCredit, 0, 0, 0, 0};
        if (MPID_ChannelHeadroom() == 0 || send_control(index, &credit, sizeof credit) == -ENOBUFS) attend(peer, kAttentionCredit);
      }
    }
  }
}

// ---- sending and credit ----

int Device::send_control(int peer, PacketHeader* packet, int bytes, const void* data, int data_bytes) {
  return send_packet(peer, packet, [&] { return data_bytes == 0 ? MPID_SendControl(packet, bytes, peer) : MPID_SendControlData(packet, bytes, data, data_bytes, peer); });
}

void Device::release_credit(int peer, Lane lane, std::uint64_t charge) {
  Peer& p = peers_[peer];
  p.credits[lane].release(charge);
  if (peer == options_.rank) {  // both ends of the lane are here
    CHLITE_CHECK(p.credits[lane].refund(p.credits[lane].take_owed()));
  } else if (p.credits[lane].due()) {
    attend(p, kAttentionCredit);
  }
}

// ---- requests ----

Request* Device::reserve_request() {
  if (Request* r = returned_head_; r != nullptr) {  // the one given back last: its lines are in the cache
    returned_head_ = r->queue_next;
    --returned_;
    requests_.give(r);
  } else if (requests_.free_count() == 0 && !requests_.reserve(1)) {
    return nullptr;
  }
  return requests_.take();
}

void Device::start_request(Request* r, RequestKind kind, RequestState state, int peer, const Memory& memory, std::uint64_t bytes,
                           void* cookie) {
  r->device = this;
  r->kind = kind;
  r->to(state);
  r->peer = peer;
  r->memory = memory;
  r->bytes = bytes;
  r->fragment = 0;
  r->fragment_open = false;
  r->cookie = cookie;
  if (kind != RequestKind::kReceive) r->status = {LITE_OK, r->key.source, r->key.tag, peer, bytes};
  ++outstanding_;
  move_to_list(r, peer >= 0 ? &peers_[peer].pending : &any_source_);
}

void Device::move_to_list(Request* r, RequestList* list) {
  if (r->list == list) return;
  if (r->list != nullptr) {
    if (r->list_prev == nullptr) [[likely]]
      r->list->head = r->list_next;
    else
      r->list_prev->list_next = r->list_next;
    if (r->list_next != nullptr) r->list_next->list_prev = r->list_prev;
  }
  r->list = list;
  r->list_prev = nullptr;
  r->list_next = list != nullptr ? list->head : nullptr;
  if (list == nullptr) return;
  if (list->head != nullptr) list->head->list_prev = r;
  list->head = r;
}

void Device::complete(Request* r, int error) {
  move_to_list(r, nullptr);
  --outstanding_;
  happened();
  if (r->counted) [[unlikely]] {
    r->counted = false;
    Peer& p = peers_[r->peer];
    --p.accesses_out;
    if (p.access_wait_head != nullptr) attend(p, kAttentionAccess);
  }
  r->to(RequestState::kComplete);
  r->status.error = error;
  if (r->owned) [[unlikely]] {
    r->to(RequestState::kFree);
    requests_.give(r);
    return;
  }
  r->queue_next = nullptr;
  if (completed_tail_ == nullptr) [[likely]]
    completed_head_ = r;
  else
    completed_tail_->queue_next = r;
  completed_tail_ = r;
  completions_.store(completions_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Device::watch_send(Request* r, MPID_ChannelId id) {
  r->channel = id;
  if (id != 0)
    MPID_OnComplete(id, on_sent, r);  // may complete r at once: nothing after it
  else
    on_sent(r, 0);
}

void Device::on_sent(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  CHLITE_CHECK(!r->fragment_open);  // it is before this in the stream
  if (result < 0)
    r->device->complete(r, LITE_ERR_PEER_LOST);
  else if (r->state == RequestState::kSendingAwaitingAck)
    r->to(RequestState::kAwaitingAck);
  else
    r->device->complete(r, LITE_OK);
}

Request* Device::echoed(std::uint64_t handle, int from) {
  Request* r = requests_.find(handle);
  if (r != nullptr && r->kind != RequestKind::kReceive && r->state != RequestState::kFree && r->peer == from) return r;
  protocol_error(from, "an answer to a request that it was never sent");
  return nullptr;
}

// ---- messages ----

Message* Device::new_message(int peer, const Packet& packet, MessageState state, Lane lane, std::uint64_t charge) {
  Message* m = messages_.take();
  CHLITE_CHECK(m != nullptr);  // headroom(), or a reserve in ordinary context
  m->device = this;
  m->to(state);
  m->key = packet.key;
  m->synchronous = packet.sync;
  m->active = lane == kActive;
  m->peer = peer;
  m->bytes = packet.bytes;
  m->fragment = packet.fragment;
  m->again = false;
  m->sender = packet.sender;
  m->charge = charge;
  m->am_handler = packet.handler;
  m->am_header_bytes = packet.header_bytes;
  return m;
}

void Device::free_message(Message* m) {
  blocks_.give(m->block);
  if (m->charge != 0) release_credit(m->peer, m->active ? kActive : kPointToPoint, m->charge);
  m->to(MessageState::kFree);
  messages_.give(m);
}

void Device::count_unexpected(Peer& from, std::uint64_t bytes) {
  if (bytes > kLongBytes) from.tell_late = true;
  mplite::Counters& c = counters();
  ++c.unexpected;
  c.unexpected_bytes += bytes;
  if (blocks_.bytes_in_use() > c.unexpected_bytes_peak) c.unexpected_bytes_peak = blocks_.bytes_in_use();
}

Block Device::obtain_block(std::uint64_t bytes) {
  Block block{};
  const bool handler = MPID_ChannelInHandler() != 0;
  if (!handler) block = blocks_.take_or_allocate(bytes);
  if (block.data == nullptr) block = blocks_.take(bytes);
  if (block.data == nullptr && bytes != 0 && handler) ++counters().no_memory_in_handler;
  return block;
}

// ---- trouble ----

int Device::report(int code, int peer, const char* what) {
  const DeviceHooks& hooks = options_.hooks;
  if (hooks.report != nullptr) {
    const bool known = peer >= 0 && peer < peers();
    hooks.report(hooks.arg, code, peer, known ? peers_[peer].lost : 0, what != nullptr || !known ? what : peers_[peer].broken);
  }
  return code;
}

void Device::peer_lost(int peer, int error) {
  Peer& p = peers_[peer];
  if (p.lost != 0) return;
  p.lost = error != 0 ? error : EPROTO;
  p.departed = MPID_ChannelDeparted(peer) != 0;
  if (!p.departed) ++lost_peers_;
  happened();
  attend(p, kAttentionLost);  // later: the caller may be in the middle of something with it
}

bool Device::introduce(int peer, std::uint32_t window) {
  if (window < kWindowFloorBytes) return false;  // no correct process gives less, and an active message might never fit
  if (peer < peers()) {
    Peer& p = peers_[peer];
    if (!p.is_clean()) return false;
    if (p.lost != 0 && !p.departed) --lost_peers_;
    p = Peer();
  } else if (!peer_table_.grow(static_cast<std::size_t>(peer) + 1)) {
    return false;
  }
  for (Credits& lane : peers_[peer].credits) lane.start(std::min<std::uint64_t>(window_, window));
  return true;
}

Cutoffs Device::cutoffs_for(int peer, std::uint64_t bytes) {
  if (bytes <= cutoffs_.short_max) return cutoffs_;
  Peer& p = peers_[peer];
  if (options_.eager_auto && bytes > kEagerCutoffMin) measure_eager_cutoff(p, peer);
  return cutoffs_of(p);
}

Cutoffs Device::cutoffs_of(const Peer& p) const {
  Cutoffs cutoffs = cutoffs_;
  if (p.eager_max != 0) cutoffs.eager_max = p.eager_max;
  if (p.in_time < kInTimeEnough) return cutoffs;
  cutoffs.fragment_max = kFragmentBytesInTime;
  if (options_.eager_auto) cutoffs.eager_max = std::max(cutoffs.eager_max, eager_cutoff_in_time(window_));
  return cutoffs;
}

void Device::measure_eager_cutoff(Peer& p, int peer) {
  if (p.eager_looks != 0) {
    --p.eager_looks;
    return;
  }
  const std::int64_t round_trip = MPID_ChannelRoundTrip(peer);
  if (round_trip <= 0) return;
  if (copy_ns_per_mb_ == 0) copy_ns_per_mb_ = measure_copy_ns_per_mb();
  eager_cutoff_ = eager_cutoff(round_trip, copy_ns_per_mb_, window_);
  p.eager_max = static_cast<std::uint32_t>(eager_cutoff_);
  p.eager_looks = kEagerLooks;
}

void Device::protocol_error(int peer, const char* what) {
  Peer& p = peers_[peer];
  if (p.lost != 0) return;
  p.broken = what;
  peer_lost(peer, EPROTO);
  attend(p, kAttentionBroken);
  if (options_.hooks.give_up != nullptr) options_.hooks.give_up(options_.hooks.arg, peer, EPROTO);
}

void Device::fail_request(Request* r, int lost) {
  switch (r->state) {
    case RequestState::kPosted:
      matcher_.withdraw(r);
      r->status = {0, r->key.source, r->key.tag, lost, 0};
      break;
    case RequestState::kReceivingTransfer:
      // Only after a protocol error: a peer that the channel lost has completed this by its callback.
      MPID_CancelRecvTransfer(r->transfer, r->channel);
      return fail_transfer(r);
    case RequestState::kAwaitingCts:
      if (!r->fragment_open) break;  // as when the channel has told of the loss: it completed the fragment before
      r->channel = 0;
      return r->to(RequestState::kSending);  // the fragment's end completes it
    case RequestState::kAwaitingAnswer:
    case RequestState::kAwaitingAck: break;
    default: return;  // the channel, a deferred message or the lane has it and completes it
  }
  complete(r, LITE_ERR_PEER_LOST);
}

void Device::fail_list(RequestList& list, int lost) {
  Request* next = list.head;
  while (next != nullptr) {
    Request* r = next;
    next = r->list_next;
    fail_request(r, lost);
  }
}

// A message of a lost peer whose data will not come. One that the host holds (improbe) stays for its imrecv.
void Device::drop_message(Message* m) {
  if (m->detached) return m->to(MessageState::kFailed);
  if (m->match_queued) matcher_.remove_unexpected(m);
  if (m->active) {
    // Active messages are in order: what is behind a lost one is lost as well. Those that are not complete come here by themselves.
    for (Message* behind = m->am_next; behind != nullptr;) {
      Message* next = behind->am_next;
      if (behind->state == MessageState::kReady) {
        am_remove(behind);
        free_message(behind);
      }
      behind = next;
    }
    am_remove(m);
  }
  if (m->request != nullptr) end_channel_receive(m->request, false);
  free_message(m);
}

void Device::drop_deferred(Peer& p, int) {
  while (p.deferred_head != nullptr) {
    Message* m = p.deferred_head;
    p.deferred_head = m->deferred_next;
    drop_message(m);
  }
  p.deferred_tail = nullptr;
}

// Everything that hangs on the peer, in one place. Messages that have all their data stay receivable.
void Device::fail_peer(int peer) {
  Peer& p = peers_[peer];
  drop_accesses(p);
  fail_list(p.pending, peer);
  if (!p.departed) fail_list(any_source_, peer);  // it may have been the one: failing is better than hanging
  drop_deferred(p, peer);
  drop_unsent(p, peer);

  struct Visit {
    Device* device;
    int peer;
  } visit{this, peer};
  matcher_.visit_unexpected(
      [](void* arg, UnexpectedNode* node) {
        auto* v = static_cast<Visit*>(arg);
        auto* m = static_cast<Message*>(node);
        if (m->peer == v->peer && (m->state == MessageState::kOffered || m->is_offered_rest())) v->device->drop_message(m);
      },
      &visit);

  // kArriving and kTransfer: their callbacks have come or will come with the error. From the front each time, as a drop takes along what is behind.
  const auto offered = [&p] {
    Message* m = p.am_head;
    while (m != nullptr && m->state != MessageState::kOffered) m = m->am_next;
    return m;
  };
  while (Message* m = offered()) drop_message(m);
}

}  // namespace ch_lite
