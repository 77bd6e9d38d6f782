// The data of a message that has its receive.
#include "ch_lite/protocols/incoming.h"

#include <algorithm>
#include <cerrno>

#include "ch_lite/protocols/answers.h"
#include "ch_lite/protocols/transfer.h"

namespace ch_lite {
namespace {

// The fragment of r is here, or never will be.
void end_fragment(Core& core, Request* r, bool arrived) {
  r->fragment_pending = false;
  if (r->state == RequestState::kReceivingTransfer) return;  // whose end is r's, well or badly
  if (arrived && core.peers[r->peer].lost == 0) return finish_receive(core, r);
  r->status.bytes = 0;
  core.complete(r, LITE_ERR_PEER_LOST);
}

void on_channel_received(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  Core& core = *r->core;
  if (result >= 0 &&
      static_cast<std::uint64_t>(result) != (r->fragment_pending ? r->fragment : r->incoming)) {
    core.protocol_error(r->peer, "channel data that is not as long as its envelope said");
    result = -EPROTO;
  }
  end_channel_receive(core, r, result >= 0);
}

void on_transfer_received(void* arg, std::int64_t result) {
  auto* r = static_cast<Request*>(arg);
  Core& core = *r->core;
  const bool good = result >= 0 && static_cast<std::uint64_t>(result) == r->accepted;
  // The fragment's end is r's: over several lanes it may be the later one.
  if (good && r->fragment_pending) return r->to(RequestState::kReceivingChannel);
  if (good) return finish_receive(core, r);
  const int peer = r->peer;
  fail_transfer(core, r);
  if (result >= 0) core.protocol_error(peer, "a transfer that is not as long as was accepted");
}

// A receive that waits for the rest of its message.
struct RestOfReceive {
  static constexpr auto kOnComplete = on_transfer_received;

  MPID_TransferId& transfer() const { return request->transfer; }
  MPID_ChannelId& channel() const { return request->channel; }
  void begun() const {}
  void* arg() const { return request; }
  bool is_open() const { return request->state == RequestState::kReceivingTransfer; }
  int tell(MPID_TransferId transfer) const {
    return send_cts(core, request->peer, sender, transfer, request->accepted, resend_fragment);
  }

  Core& core;
  Request* request;
  std::uint64_t sender;
  bool resend_fragment;
};

}  // namespace

void fill_status(Core& core, lite_status* status, const MatchKey& envelope, int peer,
                 std::uint64_t bytes, std::uint64_t room) {
  status->error = bytes > room ? LITE_ERR_TRUNCATE : LITE_OK;
  status->source = envelope.source;
  status->tag = envelope.tag;
  status->peer = peer;
  status->bytes = std::min(bytes, room);
  if (bytes > room) ++core.counters().truncated;
}

// The receive has its message. It is on that peer's list from here on; what state it is in, the
// protocol says.
void matched(Core& core, Request* r, const MatchKey& envelope, int peer, std::uint64_t bytes) {
  r->peer = peer;
  r->incoming = bytes;
  fill_status(core, &r->status, envelope, peer, bytes, r->bytes);
  core.trace.matched(r, peer);
  core.requests.move(r, &core.peers[peer].pending);
}

void finish_receive(Core& core, Request* r) { core.complete(r, r->status.error); }

// False: not now. A lost peer counts as posted: the request has failed.
bool post_channel_receive(Core& core, Request* r) {
  MPID_ChannelId id = 0;
  const int result = r->memory.pieces == nullptr
                         ? MPID_IRecvFromChannel(r->memory.buffer, r->status.bytes, r->peer, &id)
                         : MPID_IRecvFromChannelV(r->memory.pieces, r->status.bytes, r->peer, &id);
  if (result == -ENOBUFS) return false;
  if (result < 0) {
    end_channel_receive(core, r, false);
    return true;
  }
  MPID_OnComplete(id, on_channel_received, r);
  return true;
}

// What came for r by the channel, all or the fragment, is here, or never will be.
void end_channel_receive(Core& core, Request* r, bool arrived) {
  if (r->fragment_pending) return end_fragment(core, r, arrived);
  if (arrived) return finish_receive(core, r);
  r->status.bytes = 0;
  core.complete(r, LITE_ERR_PEER_LOST);
}

// r has matched m, whose data is arriving in its block: what is there is copied, the rest goes
// straight to the user's buffer.
void move_arriving(Core& core, Message* m, Request* r) {
  CHLITE_CHECK(MPID_MoveRecvFromChannel(m->channel, r->memory.buffer, r->memory.pieces,
                                        r->status.bytes) == 0);
  MPID_OnComplete(m->channel, on_channel_received, r);
  core.free_message(m);
}

// The receive r (matched; kReceivingTransfer if it wants the rest) answers the RTS of `sender`.
// Only what fits is moved; for nothing there is no transfer. `resend_fragment`: it was discarded.
void accept_offer(Core& core, Request* r, std::uint64_t sender, bool resend_fragment) {
  const std::uint64_t accepted =
      std::min(r->incoming, r->bytes);  // not the status: that of a lost one may say 0
  const int peer = r->peer;
  if (accepted <= r->fragment) {
    const bool all = r->fragment == 0;
    const int result = send_cts(core, peer, sender, 0, accepted);
    if (!all) return;  // the fragment's end is r's
    if (result < 0) return core.complete(r, LITE_ERR_PEER_LOST);
    return finish_receive(core, r);
  }
  r->accepted = accepted;
  const int result = receive_by_transfer({r->memory, r->fragment, accepted, peer},
                                         RestOfReceive{core, r, sender, resend_fragment});
  if (result >= 0) return;
  core.peer_lost(peer, -result);
  fail_transfer(core, r);
}

// There will be no transfer for r any more.
void fail_transfer(Core& core, Request* r) {
  r->status.bytes = 0;
  if (r->fragment_pending)
    return r->to(RequestState::kReceivingChannel);  // the fragment's end completes it
  core.complete(r, LITE_ERR_PEER_LOST);
}

void cancel_transfer(Core& core, Request* r) {
  MPID_CancelRecvTransfer(r->transfer, r->channel);
  fail_transfer(core, r);
}

}  // namespace ch_lite
