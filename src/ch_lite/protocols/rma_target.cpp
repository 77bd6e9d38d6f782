// Put and get, the target's part.
#include "ch_lite/protocols/rma_target.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "ch_lite/protocols/answers.h"
#include "ch_lite/protocols/transfer.h"

namespace ch_lite {
namespace {

constexpr const char* kNotExposed =
    "access to memory that is not exposed: the key is stale, or the access does not lie inside of "
    "what was exposed";
constexpr const char* kNotForIt = "access to memory that is exposed to others and not to it";
constexpr const char* kTooMany = "more puts and gets at once than it may have under way";
constexpr const char* kWithdrawn = "access to memory that was withdrawn before the access was over";

// `offset` and `bytes` come from a peer: their sum may wrap.
bool inside(const Region& region, std::uint64_t offset, std::uint64_t bytes) {
  return offset <= region.bytes && bytes <= region.bytes - offset;
}

}  // namespace

// A put that is long.
struct RmaTarget::TransferOfPut {
  static constexpr auto kOnComplete = on_put_arrived;

  MPID_TransferId& transfer() const { return access->transfer; }
  MPID_ChannelId& channel() const { return access->channel; }
  void begun() const {}
  void* arg() const { return access; }
  bool is_open() const { return target.accesses_.find(handle) != nullptr; }
  int tell(MPID_TransferId transfer) const {
    return send_cts(target.core_, access->peer, access->sender, transfer, access->bytes);
  }

  RmaTarget& target;
  Access* access;
  std::uint64_t handle;
};

RmaTarget::~RmaTarget() {
  regions_.visit_taken([](Region* r) { std::free(r->peers); });
}

const Region* RmaTarget::find(std::uint64_t key, std::uint64_t offset, std::uint64_t bytes) const {
  const Region* region = region_of(key);
  return region != nullptr && inside(*region, offset, bytes) ? region : nullptr;
}

int RmaTarget::put_here(std::uint64_t key, std::uint64_t offset, const void* data,
                        std::uint64_t bytes) {
  const Region* const region = find(key, offset, bytes);
  if (region == nullptr) return core_.report(LITE_ERR_ARG, core_.self(), kNotExposed);
  if (bytes != 0) std::memmove(region->base + offset, data, bytes);
  return LITE_OK;
}

int RmaTarget::get_here(std::uint64_t key, std::uint64_t offset, void* buffer,
                        std::uint64_t bytes) {
  const Region* const region = find(key, offset, bytes);
  if (region == nullptr) return core_.report(LITE_ERR_ARG, core_.self(), kNotExposed);
  if (bytes != 0) std::memmove(buffer, region->base + offset, bytes);
  return LITE_OK;
}

int RmaTarget::expose(void* base, std::uint64_t bytes, const int* peers, std::size_t peers_count,
                      std::uint64_t* key) {
  if ((regions_.free_count() == 0 && !regions_.reserve(1)) || !accesses_.reserve(nodes_ready()))
    return core_.report(LITE_ERR_NOMEM, -1);
  std::uint8_t* allowed = nullptr;
  std::uint64_t allowed_bytes = 0;
  if (peers != nullptr) {
    for (std::size_t i = 0; i < peers_count; ++i)
      allowed_bytes = std::max(allowed_bytes, static_cast<std::uint64_t>(peers[i]) / 8 + 1);
    allowed = static_cast<std::uint8_t*>(std::calloc(allowed_bytes + 1, 1));
    if (allowed == nullptr) return core_.report(LITE_ERR_NOMEM, -1);
    for (std::size_t i = 0; i < peers_count; ++i)
      allowed[peers[i] / 8] |= static_cast<std::uint8_t>(1u << peers[i] % 8);
  }
  Region* region = regions_.take();
  region->base = static_cast<std::uint8_t*>(base);
  region->bytes = bytes;
  region->peers = allowed;
  region->peers_bytes = allowed_bytes;
  do MPID_ChannelRandom(&region->key, sizeof region->key);
  while (region->key == 0 || region_of(region->key) != nullptr);
  Region*& bin = keys_[region->key % kKeyBins];
  region->key_next = bin;
  bin = region;
  *key = region->key;
  return LITE_OK;
}

Region* RmaTarget::region_of(std::uint64_t key) const {
  Region* region = keys_[key % kKeyBins];
  while (region != nullptr && region->key != key) region = region->key_next;
  return region;
}

bool RmaTarget::may_access(const Region& region, int peer) const {
  if (region.peers == nullptr) return core_.is_own_job(peer);
  const auto byte = static_cast<std::uint64_t>(peer) / 8;
  return byte < region.peers_bytes && (region.peers[byte] >> peer % 8 & 1) != 0;
}

bool RmaTarget::is_accessed(std::uint64_t key) const {
  const Region* const region = region_of(key);
  return region != nullptr && region->accesses != nullptr;
}

// What still moves from or to it (MPI forbids that) must not find it: the peer goes, and the
// transfers with it. The channel completes them before give_up returns.
int RmaTarget::withdraw(std::uint64_t key) {
  Region* region = region_of(key);
  if (region == nullptr) return LITE_ERR_ARG;
  while (Access* a = region->accesses) {
    const int peer = a->peer;
    core_.protocol_error(peer, kWithdrawn);
    if (region->accesses != a) continue;
    core_.give_up(peer, EPROTO);  // lost to us only, until now
    CHLITE_CHECK(region->accesses != a);
  }
  Region** at = &keys_[key % kKeyBins];
  while (*at != region) at = &(*at)->key_next;
  *at = region->key_next;
  std::free(region->peers);
  regions_.give(region);
  return LITE_OK;
}

Region* RmaTarget::accessible(const Packet& packet, int from) {
  Region* region = region_of(packet.region);
  if (region == nullptr || !inside(*region, packet.offset, packet.bytes) ||
      !may_access(*region, from)) [[unlikely]] {
    core_.protocol_error(from,
                         region != nullptr && !may_access(*region, from) ? kNotForIt : kNotExposed);
    return nullptr;
  }
  mplite::Counters& c = core_.counters();
  ++c.served_msgs;
  c.served_bytes += packet.bytes;
  return region;
}

Access* RmaTarget::begin_access(Region* region, const Packet& packet, int from) {
  Peer& p = core_.peers[from];
  if (p.target.accesses_in >= kAccessesHere) {
    core_.protocol_error(from, kTooMany);
    return nullptr;
  }
  Access* a = accesses_.take();
  CHLITE_CHECK(a != nullptr);  // headroom()
  a->target = this;
  a->region = region;
  a->bytes = packet.bytes;
  a->sender = packet.sender;
  a->peer = from;
  a->next = region->accesses;
  if (a->next != nullptr) a->next->previous = a;
  region->accesses = a;
  ++p.target.accesses_in;
  return a;
}

void RmaTarget::leave_region(Access* a) {
  (a->previous != nullptr ? a->previous->next : a->region->accesses) = a->next;
  if (a->next != nullptr) a->next->previous = a->previous;
  a->region = nullptr;
  a->next = a->previous = nullptr;
}

void RmaTarget::free_access(Access* a) {
  if (a->region != nullptr) leave_region(a);
  --core_.peers[a->peer].target.accesses_in;
  accesses_.give(a);
}

void RmaTarget::handle_put(const Packet& packet, int from) {
  Region* region = accessible(packet, from);
  if (region == nullptr) return;
  mplite::copy_bytes(region->base + packet.offset, packet.payload, packet.bytes);
  if (!packet.sync) return;
  ++core_.peers[from].target.puts_done;
  core_.attend(core_.peers[from], kAttentionAnswers);
}

void RmaTarget::handle_put_request(const Packet& packet, int from) {
  Region* region = accessible(packet, from);
  Access* a = region != nullptr ? begin_access(region, packet, from) : nullptr;
  if (a == nullptr) return;
  std::uint8_t* at = region->base + packet.offset;
  const int result =
      receive_by_transfer({at, 0, a->bytes, from}, TransferOfPut{*this, a, a->pool_handle});
  if (result >= 0) return;
  core_.peer_lost(from, -result);
  free_access(a);
}

// Acknowledges what is done. False: not all of it now.
bool RmaTarget::send_answers(int peer) {
  Peer& p = core_.peers[peer];
  while (p.target.puts_done != 0 || p.target.answers != nullptr) {
    if (!core_.room_to_send()) return false;
    AckPacket ack{};
    Access* a = p.target.answers;
    const std::uint32_t puts = p.target.puts_done;
    if (puts != 0) {
      ack.header.type = PacketType::kPutAck;
      ack.sender = puts;
      p.target.puts_done = 0;
    } else {
      ack.header.type = PacketType::kSyncAck;
      ack.sender = a->sender;
      p.target.answers = a->next;
      a->next = nullptr;
      free_access(a);  // before the ack is out: with it the origin may send the next
    }
    if (core_.send_answer(peer, &ack.header, sizeof ack) < 0) return true;
  }
  return true;
}

void RmaTarget::handle_get(const Packet& packet, int from) {
  Region* region = accessible(packet, from);
  if (region == nullptr) return;
  AckPacket answer{};
  answer.header.type = PacketType::kGetData;
  answer.sender = packet.sender;
  core_.send_answer(from, &answer.header, sizeof answer, region->base + packet.offset,
                    static_cast<int>(packet.bytes));
}

void RmaTarget::handle_get_transfer(const Packet& packet, int from) {
  Region* region = accessible(packet, from);
  Access* a = region != nullptr ? begin_access(region, packet, from) : nullptr;
  if (a == nullptr) return;
  const int result = MPID_StartNBSendTransfer(region->base + packet.offset, packet.bytes, from,
                                              packet.transfer, &a->channel);
  if (result < 0) core_.peer_lost(from, -result);
  if (result < 0 || a->channel == 0) return free_access(a);
  MPID_OnComplete(a->channel, on_get_sent, a);  // may free a at once: nothing after it
}

void RmaTarget::on_put_arrived(void* arg, std::int64_t result) {
  auto* a = static_cast<Access*>(arg);
  RmaTarget& target = *a->target;
  Core& core = target.core_;
  Peer& p = core.peers[a->peer];
  if (result >= 0 && static_cast<std::uint64_t>(result) != a->bytes) {
    core.protocol_error(a->peer, "a transfer that is not as long as the put");
    result = -EPROTO;
  }
  core.bump_events();
  if (result < 0 || p.lost != 0) return target.free_access(a);
  target.leave_region(a);
  a->next = p.target.answers;
  p.target.answers = a;
  core.attend(p, kAttentionAnswers);
}

void RmaTarget::on_get_sent(void* arg, std::int64_t) {
  auto* a = static_cast<Access*>(arg);
  a->target->core_.bump_events();
  a->target->free_access(a);
}

void RmaTarget::drop_answers(Peer& p) {
  p.target.puts_done = 0;
  while (Access* a = p.target.answers) {
    p.target.answers = a->next;
    free_access(a);
  }
}

}  // namespace ch_lite
