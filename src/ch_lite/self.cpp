// Sends to oneself: through the same matcher, never through the channel.
#include <algorithm>
#include <cstring>

#include "device.h"

namespace ch_lite {

// Not matched yet: a small message is copied, within a credit window like a peer's; otherwise the sender's buffer stays where it is and the
// request waits, as it would in a rendezvous.
int Device::send_self(const Memory& memory, std::uint64_t bytes, const MatchKey& key, bool synchronous, void* cookie, Request** request) {
  const int self = options_.rank;
  mplite::Counters& c = counters();
  ++c.self_msgs;
  c.self_bytes += bytes;
  if (Request* r = match(key)) {
    matched(r, key, self, bytes);
    copy(r->memory, memory, r->status.bytes);
    finish_receive(r);
    return LITE_OK;
  }
  if (messages_.free_count() == 0 && !messages_.reserve(1)) return report(LITE_ERR_NOMEM, self);
  Packet packet{};
  packet.key = key;
  packet.bytes = bytes;
  const std::uint64_t charge = message_charge(bytes);
  const bool small = bytes == 0 || bytes <= std::max(cutoffs_.short_max, cutoffs_.eager_max);
  Credits& credits = peers_[self].credits[kPointToPoint];
  Block block{};
  if (!synchronous && small && credits.left() >= charge && (bytes == 0 || (block = obtain_block(bytes)).data != nullptr)) {
    copy(block.data, memory, bytes);
    CHLITE_CHECK(credits.spend(charge) && credits.accept(charge));
    Message* m = new_message(self, packet, MessageState::kReady, kPointToPoint, charge);
    m->block = block;
    count_unexpected(peers_[options_.rank], bytes);
    matcher_.add_unexpected(m);
    return LITE_OK;
  }
  Request* r = reserve_request();
  if (r == nullptr) return report(LITE_ERR_NOMEM, self);
  r->key = key;
  start_request(r, RequestKind::kSend, RequestState::kSelfPinned, self, memory, bytes, cookie);
  Message* m = new_message(self, packet, MessageState::kPinned, kPointToPoint, 0);
  m->request = r;
  count_unexpected(peers_[options_.rank], bytes);
  matcher_.add_unexpected(m);
  *request = r;
  return LITE_PENDING;
}

// Copied whole: complete at once. Not bounded, as nobody but the application itself can make it grow.
int Device::am_send_self(const AmSend& message) {
  const int self = options_.rank;
  const std::uint64_t head = padded_header(message.header_bytes);
  if (messages_.free_count() == 0 && !messages_.reserve(1)) return report(LITE_ERR_NOMEM, self);
  const Block block = blocks_.take_or_allocate(head + message.data_bytes, true);
  if (block.data == nullptr && head + message.data_bytes != 0) return report(LITE_ERR_NOMEM, self);
  auto* bytes = static_cast<std::uint8_t*>(block.data);
  if (message.header_bytes != 0) std::memcpy(bytes, message.header, message.header_bytes);
  if (message.data_bytes != 0) std::memcpy(bytes + head, message.data, message.data_bytes);
  Packet packet{};
  packet.bytes = message.data_bytes;
  packet.handler = message.handler;
  packet.header_bytes = message.header_bytes;
  Message* m = new_message(self, packet, MessageState::kReady, kActive, 0);
  m->block = block;
  am_append(m);
  return LITE_OK;
}

}  // namespace ch_lite
