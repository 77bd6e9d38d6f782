// The loop that dispatches packets, what was put off until its end, and the calls that need both.
// Neighbour: send.cpp, the choice of protocol for what is sent.
#include "ch_lite/device/device.h"

#include <cerrno>

#include "ch_lite/protocols/deferred.h"
#include "ch_lite/protocols/eager.h"
#include "ch_lite/protocols/loss.h"
#include "ch_lite/protocols/remote_process.h"
#include "ch_lite/protocols/rendezvous.h"
#include "ch_lite/protocols/rma_origin.h"

namespace ch_lite {
namespace {

// Small puts acknowledged by one packet while more keep coming.
constexpr std::uint32_t kAcksTogether = 64;
// Bytes of an active message that may keep the host so long that answers do not wait for it.
constexpr std::uint64_t kLongDelivery = 4096;

void progress_callback(void* self) { static_cast<Device*>(self)->progress(); }
int introduce_callback(void* self, int peer, std::uint32_t window) {
  return static_cast<Device*>(self)->introduce(peer, window) ? 1 : 0;
}
int awaited_callback(void* self, int peer) { return static_cast<Device*>(self)->awaits(peer); }
void lost_callback(void* self, int peer, int error) {
  static_cast<Device*>(self)->peer_lost(peer, error);
}

}  // namespace

Device* device_current = nullptr;
void device_bind(Device* device) { device_current = device; }
HostSettings host_settings;

bool Device::start() {
  if (!core_.start()) return false;
  set_tag_ignore_bits(host_settings.tag_ignore_bits);
  set_member_callback(host_settings.member_callback);
  set_am_check(host_settings.am_check);
  set_context_name(host_settings.context_name);
  set_am_callback(host_settings.am_callback, host_settings.am_callback_arg);
  MPID_ChannelSetProgress(progress_callback, this);
  MPID_ChannelSetLost(lost_callback, this);
  MPID_ChannelSetIntroduce(introduce_callback, this);
  MPID_ChannelSetAwaited(awaited_callback, this);
  return true;
}

// ---- the loop ----

bool Device::refill() {
  const bool core = core_.refill();
  return target_.refill() && core;
}

// Whether whatever packet comes next can be dealt with: one message node, one block for what a
// packet can carry, one answer, one access to exposed memory. The handler takes none at the cost of
// the bound: for want of the fitting block it takes larger ones.
bool Device::headroom() {
  if (has_headroom()) return true;
  if (MPID_ChannelInHandler() == 0) {
    refill();
    if (has_headroom()) return true;
    tell_starved();
  } else {
    ++core_.counters().no_memory_in_handler;
    MPID_ChannelStarved();
  }
  return false;
}

// A packet is here, and there is no memory to act upon it. Each call tries again, as the
// application may free some; but it may also wait for just this packet, so it hears of it: once,
// until something has happened.
void Device::tell_starved() {
  if (core_.trouble.code() != LITE_OK || starved_events_ == events()) return;
  starved_events_ = events();
  core_.trouble.note(LITE_ERR_NOMEM, -1,
                     "no memory to take what other ranks have sent; it waits until there is some");
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
    // A packet that has waited since the handler came before keeps Avail from moving bulk data.
    // That needs no headroom, and may bring some.
    bool polled = false;
    const auto view = [&](int available) {
      if (available == 0) return 0;
      if (!has_headroom()) [[unlikely]] {
        if (handler && !polled) MPID_ChannelMove();
        polled = true;
        if (!headroom()) return 0;
      }
      return MPID_ViewAnyControl(&at, packet_, &from);
    };
    // Avail first: it also moves bulk data. What has just been refilled has headroom.
    int bytes = !handler && refill() ? MPID_NextControl(&at, packet_, &from, &more)
                                     : view(MPID_ControlMsgAvail());
    for (; bytes > 0 && from >= 0 && from < core_.peers.count();
         bytes = more != 0 ? view(MPID_ControlMsgMore()) : 0) {
      core_.bump_events();
      if (core_.peers[from].lost != 0) [[unlikely]]
        continue;  // what a lost peer had still said is void: its requests have failed
      if (!take_awaited(core_, at, static_cast<std::size_t>(bytes), from)) [[unlikely]] {
        used = true;
        act_upon(at, static_cast<std::size_t>(bytes), from);
      }
      if (core_.attention.empty()) [[likely]]
        continue;
      used = true;
      attend_to_all();
      more = 1;  // it may have polled
    }
    dispatching_ = false;
  }
  progressing_ = false;
  if (handler) return;
  if (used) [[unlikely]]
    top_up();
  if (++progress_calls_ % kProgressPerTick == 0) [[unlikely]]
    tick();
}

void Device::tick() {
  if (core_.options.hooks.tick != nullptr) core_.options.hooks.tick(core_.options.hooks.arg);
}

bool Device::sends_to_other_jobs() const {
  for (int i = 0; i < peers(); ++i) {
    if (core_.is_own_job(i)) continue;
    for (const Request* r = core_.peers[i].pending.head; r != nullptr; r = r->list_next)
      if (r->kind == RequestKind::kSend) return true;
  }
  return false;
}

void Device::reach_awaited_peers() {
  Scope scope(*this);
  for (int i = 0; i < peers(); ++i) {
    Peer& p = core_.peers[i];
    const bool awaited =
        i != core_.self() && p.lost == 0 && (p.pending.head != nullptr || p.probed);
    if (awaited && p.awaited) MPID_ChannelReach(i);
    p.awaited = awaited;
    p.probed = false;
  }
}

void Device::act_upon(const void* at, std::size_t bytes, int from) {
  Packet packet;
  if (decode({static_cast<const std::uint8_t*>(at), bytes}, packet))
    dispatch(packet, from);
  else
    core_.protocol_error(from, "a control packet that makes no sense");
}

void Device::dispatch(const Packet& packet, int from) {
  Peer& peer = core_.peers[from];
  if (packet.credit != 0 && !peer.credits[kPointToPoint].refund(packet.credit))
    return core_.protocol_error(from, "more credit returned than was given");
  if (packet.am_credit != 0) {
    if (!peer.credits[kActive].refund(packet.am_credit))
      return core_.protocol_error(from, "more active-message credit returned than was given");
    if (!peer.am_waiting.empty()) core_.attend(peer, kAttentionPump);
  }
  if (packet.late) peer.in_time = 0;
  core_.trace.packet_came(packet, from);
  switch (packet.type) {
    case PacketType::kShort: return handle_short(core_, packet, from);
    case PacketType::kEager: return handle_eager(core_, packet, from);
    case PacketType::kRts: return handle_rts(core_, packet, from);
    case PacketType::kCts: return handle_cts(core_, packet, from);
    case PacketType::kSyncAck: return handle_ack(core_, packet, from);
    case PacketType::kCredit: return;
    case PacketType::kAmShort:
    case PacketType::kAmEager:
    case PacketType::kAmRts: return am_.handle(packet, from);
    case PacketType::kPut: return target_.handle_put(packet, from);
    case PacketType::kPutRequest: return target_.handle_put_request(packet, from);
    case PacketType::kGet: return serve_get(packet, from);
    case PacketType::kGetTransfer: return target_.handle_get_transfer(packet, from);
    case PacketType::kPutAck: return handle_put_ack(core_, packet, from);
    case PacketType::kGetData: return handle_get_data(core_, packet, from);
  }
}

// ---- what had to be put off to the end of the outermost call ----

void Device::attend_to_all() {
  core_.attention.serve([this](AttentionNode& node, std::uint16_t what) {
    attend_to(static_cast<Peer&>(node), what);
  });
}

// What cannot be done now is added again.
void Device::attend_to(Peer& peer, std::uint16_t what) {
  const int index = core_.peers.number_of(peer);
  if ((what & kAttentionLost) != 0) {
    target_.drop_answers(peer);
    fail_requests(core_, index);
    am_.drop_unsent(peer);
    drop_offers(core_, index);
  }
  if (peer.lost != 0) what &= static_cast<std::uint16_t>(~kAttentionVerify);
  if (MPID_ChannelInHandler() == 0) {
    if ((what & kAttentionAnySource) != 0) fail_any_source(core_, index);
    if ((what & kAttentionBroken) != 0) core_.report(LITE_ERR_PEER_LOST, index, peer.broken);
    if ((what & kAttentionVerify) != 0) verify_unasked(core_, index);
  } else if (const auto later = static_cast<std::uint16_t>(what & kAttentionOrdinary); later != 0) {
    core_.attend(peer, later);
  }
  if (peer.lost != 0) return;
  if ((what & kAttentionDeferred) != 0 && !serve_deferred(core_, peer))
    core_.attend_starved(peer, kAttentionDeferred);
  if ((what & kAttentionPump) != 0 && !am_.pump(index)) core_.attend_starved(peer, kAttentionPump);
  if ((what & kAttentionAccess) != 0 && !pump_together(index))
    core_.attend_starved(peer, kAttentionAccess);
  if ((what & kAttentionAnswers) != 0) {
    const bool more_may_come =
        dispatching_ && peer.target.answers == nullptr && peer.target.puts_done < kAcksTogether;
    if (more_may_come || delivery_follows())
      core_.attend(peer, kAttentionAnswers);
    else if (!send_answers(index))
      core_.attend_starved(peer, kAttentionAnswers);
  }
  if ((what & kAttentionCredit) != 0 &&
      (peer.credits[kPointToPoint].due() || peer.credits[kActive].due())) {
    PacketHeader credit{PacketType::kCredit, 0, 0, 0, 0};
    if (MPID_ChannelHeadroom() == 0 ||
        core_.send_control(index, &credit, sizeof credit) == -ENOBUFS)
      core_.attend_starved(peer, kAttentionCredit);
  }
}

// Puts that have waited for others' ends leave together. What has to be kept for that is one
// buffer; in the handler each leaves by itself.
bool Device::pump_together(int peer) {
  if (delivering_ || MPID_ChannelInHandler() != 0) return pump_accesses(core_, peer);
  MPID_ChannelGather(MPID_GATHER_SMALL);
  const bool done = pump_accesses(core_, peer);
  MPID_ChannelGather(MPID_GATHER_NOTHING);
  MPID_ChannelFlush();
  return done;
}

// The host may answer the same peer then.
bool Device::delivery_follows() const {
  return looking_ && !delivering_ && MPID_ChannelInHandler() == 0 && active_messages() != 0 &&
         am_.has_callback();
}

// What is sent to answer active messages leaves together, with the answer to the last one. Ordinary
// context, gate held.
class Device::Gathering {
 public:
  Gathering(const Device& device, bool more_follows)
      : on_(device.delivering_ && more_follows && MPID_ChannelInHandler() == 0) {
    if (on_) MPID_ChannelGather(MPID_GATHER_SMALL);
  }
  ~Gathering() {
    if (on_) MPID_ChannelGather(MPID_GATHER_NOTHING);
  }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

 private:
  bool on_;
};

void Device::look_before_delivery() {
  looking_ = true;
  progress();
  if (data_waits_ && !delivery_follows()) MPID_ChannelFlush();
  looking_ = data_waits_ = false;
}

// In a look, its data leave at the end of that, or with what the host answers then.
void Device::serve_get(const Packet& packet, int from) {
  const bool gathers = looking_ && MPID_ChannelInHandler() == 0;
  if (gathers) MPID_ChannelGather(MPID_GATHER_PAGES);
  target_.handle_get(packet, from);
  if (!gathers) return;
  MPID_ChannelGather(MPID_GATHER_NOTHING);
  data_waits_ = true;
}

bool Device::send_answers(int peer) {
  Gathering gathering(*this, true);
  return target_.send_answers(peer);
}

int Device::am_isend(int peer, std::uint32_t handler, const void* header,
                     std::uint32_t header_bytes, const void* data, std::uint64_t data_bytes,
                     void* cookie, Request** request) {
  Gathering gathering(*this, !delivering_last_);
  return am_.isend(peer, handler, header, header_bytes, data, data_bytes, cookie, request);
}

bool Device::introduce(int peer, std::uint32_t window) {
  const bool again = peer < peers();
  if (!core_.peers.introduce(peer, window)) return false;
  if (again) core_.host.permits.clear();  // they are another process's
  return true;
}

// ---- calls of the application ----

int Device::probe(int peer, const MatchKey& key, lite_status* status, Message** message) {
  Message* m = find_message(core_, key, peer);
  if (m == nullptr) {
    progress();
    m = find_message(core_, key, peer);
  }
  return take_probed(core_, m, peer, key, status, message);
}

int Device::put(int peer, std::uint64_t key, std::uint64_t offset, const void* data,
                std::uint64_t bytes, bool answered, void* cookie, Request** request) {
  if (peer == core_.self()) return target_.put_here(key, offset, data, bytes);
  return ch_lite::put(core_, peer, key, offset, data, bytes, answered, cookie, request);
}

int Device::get(int peer, std::uint64_t key, std::uint64_t offset, void* buffer,
                std::uint64_t bytes, void* cookie, Request** request) {
  if (peer == core_.self()) return target_.get_here(key, offset, buffer, bytes);
  return ch_lite::get(core_, peer, key, offset, buffer, bytes, cookie, request);
}

std::uint32_t Device::deliver_active_messages() {
  if (active_messages() == 0 || !am_.has_callback() || delivering_) return 0;
  std::uint32_t delivered = 0;
  // No more than were there: what the callbacks bring about waits for the next call, so that this
  // one ends.
  const std::uint32_t limit = active_messages();
  gate().enter();
  delivering_ = true;
  while (delivered < limit) {
    Message* m;
    {
      Scope scope(*this);
      m = am_.next_ready();
    }
    if (m == nullptr) break;
    if (m->bytes > kLongDelivery) MPID_ChannelFlush();
    delivering_last_ = delivered + 1 == limit;
    // Outside the gate: the host's handler may run long, and signals must find it open.
    gate().leave();
    am_.deliver(m);
    ++delivered;
    gate().enter();
    Scope scope(*this);
    core_.free_message(m);
    core_.bump_events();
  }
  delivering_ = false;
  MPID_ChannelFlush();
  top_up();
  gate().leave();
  return delivered;
}

}  // namespace ch_lite
