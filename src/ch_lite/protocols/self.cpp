// Sends to oneself: through the same matcher, never through the channel.
#include "ch_lite/protocols/self.h"

#include <algorithm>

#include "ch_lite/protocols/incoming.h"

namespace ch_lite {

// Not matched yet: a small message is copied, within a credit window like a peer's; otherwise the
// sender's buffer stays where it is and the request waits, as it would in a rendezvous.
int send_self(Core& core, const Memory& memory, std::uint64_t bytes, const MatchKey& key,
              bool synchronous, void* cookie, Request** request) {
  const int self = core.self();
  mplite::Counters& c = core.counters();
  ++c.self_msgs;
  c.self_bytes += bytes;
  core.trace.to_self(self, key, bytes);
  if (Request* r = core.match(key)) {
    matched(core, r, key, self, bytes);
    copy(r->memory, memory, r->status.bytes);
    finish_receive(core, r);
    core.trace.last_is_done(self);
    return LITE_OK;
  }
  if (core.messages.free_count() == 0 && !core.messages.reserve(1))
    return core.report(LITE_ERR_NOMEM, self);
  Packet packet{};
  packet.key = key;
  packet.bytes = bytes;
  const std::uint64_t charge = message_charge(bytes);
  const bool small =
      bytes == 0 || bytes <= std::max(core.cutoffs.base().short_max, core.cutoffs.base().eager_max);
  Credits& credits = core.peers[self].credits[kPointToPoint];
  Block block{};
  if (!synchronous && small && credits.left() >= charge &&
      (bytes == 0 || (block = core.obtain_block(bytes)).data != nullptr)) {
    copy(block.data, memory, bytes);
    CHLITE_CHECK(credits.spend(charge) && credits.accept(charge));
    Message* m = core.new_message(self, packet, MessageState::kReady, kPointToPoint, charge);
    m->block = block;
    core.count_unexpected(core.peers[core.self()], bytes);
    core.matcher.add_unexpected(m);
    core.trace.last_is_done(self);
    return LITE_OK;
  }
  Request* r = core.requests.reserve();
  if (r == nullptr) return core.report(LITE_ERR_NOMEM, self);
  r->key = key;
  core.start_request(r, RequestKind::kSend, RequestState::kSelfPinned, self, memory, bytes, cookie);
  Message* m = core.new_message(self, packet, MessageState::kPinned, kPointToPoint, 0);
  m->request = r;
  core.count_unexpected(core.peers[core.self()], bytes);
  core.matcher.add_unexpected(m);
  *request = r;
  return LITE_PENDING;
}

}  // namespace ch_lite
