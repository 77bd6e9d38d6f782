// A message that came before its receive could take it.
#include "ch_lite/protocols/unexpected.h"

#include <algorithm>

#include "ch_lite/protocols/answers.h"
#include "ch_lite/protocols/deferred.h"
#include "ch_lite/protocols/incoming.h"

namespace ch_lite {
namespace {

// Of a receive with room for `room` that takes message m, of which something has yet to come.
RequestState state_of_receive(const Message& m, std::uint64_t room) {
  const bool rest_wanted = m.fragment != 0 && std::min(m.bytes, room) > m.fragment;
  const bool by_channel = m.state == MessageState::kArriving || m.state == MessageState::kDeferred;
  return by_channel && !rest_wanted ? RequestState::kReceivingChannel
                                    : RequestState::kReceivingTransfer;
}

// r, in that state, takes message m, not all of which is here.
void take_over(Core& core, Request* r, Message* m) {
  core.trace.taken_up(m);
  // The ack goes last: sending it may lose the peer, and that frees a message that is not linked to
  // its receive yet.
  const bool ack_owed = m->synchronous;
  const int peer = m->peer;
  const std::uint64_t sender = m->sender;
  const bool resend_fragment = m->resend_fragment;
  const MessageState found = m->state;
  const bool offer = found == MessageState::kOffered || m->fragment != 0;
  const Memory memory = r->memory;
  matched(core, r, m->key, m->peer, m->bytes);
  r->fragment = m->fragment;
  switch (found) {
    case MessageState::kOffered: core.free_message(m); break;
    case MessageState::kReady:  // a fragment
      copy(memory, m->block.data, m->fragment);
      core.free_message(m);
      break;
    case MessageState::kDeferred:
      r->fragment_pending = m->fragment != 0;
      m->request = r;
      if (!serve_deferred(core, core.peers[peer]))
        core.attend(core.peers[peer], kAttentionDeferred);
      break;
    default:  // arriving
      r->fragment_pending = m->fragment != 0;
      move_arriving(core, m, r);
  }
  if (offer) accept_offer(core, r, sender, resend_fragment);
  if (ack_owed) send_ack(core, peer, sender);
}

}  // namespace

// The receive takes message m, which is in the matcher or detached.
int receive_message(Core& core, Message* m, const Memory& memory, std::uint64_t bytes, void* cookie,
                    lite_status* status, Request** request) {
  Request* r = nullptr;
  const bool rest_wanted = m->fragment != 0 && std::min(m->bytes, bytes) > m->fragment;
  const bool complete_now =
      (m->state == MessageState::kReady && !rest_wanted) || m->state == MessageState::kPinned;
  if (!complete_now && (r = core.requests.reserve()) == nullptr)
    return core.report(LITE_ERR_NOMEM, m->peer);
  if (m->match_queued) core.matcher.remove_unexpected(m);
  m->detached = false;
  if (complete_now) {
    const bool ack_owed = m->synchronous && m->state != MessageState::kPinned;
    const int peer = m->peer;
    const std::uint64_t sender = m->sender;
    fill_status(core, status, m->key, m->peer, m->bytes, bytes);
    const Memory data = m->state == MessageState::kPinned ? m->request->memory : m->block.data;
    copy(memory, data, status->bytes);
    core.trace.received(m, status->error);
    if (m->state == MessageState::kPinned) core.complete(m->request, LITE_OK);
    const bool answer_owed = m->fragment != 0;
    core.free_message(m);
    if (ack_owed) send_ack(core, peer, sender);
    if (answer_owed) send_cts(core, peer, sender, 0, status->bytes);
    return LITE_OK;
  }

  *request = r;
  r->key = m->key;
  core.start_request(r, RequestKind::kReceive, state_of_receive(*m, bytes), m->peer, memory, bytes,
                     cookie);
  take_over(core, r, m);
  return LITE_PENDING;
}

// Message m, which is in the matcher no more, could not be matched when it came: now receive r,
// posted before that and withdrawn, takes it.
void receive_late(Core& core, Request* r, Message* m) {
  core.trace.taken_up(m);
  const bool rest_wanted = m->fragment != 0 && std::min(m->bytes, r->bytes) > m->fragment;
  if (m->state != MessageState::kReady || rest_wanted) {
    r->to(state_of_receive(*m, r->bytes));
    return take_over(core, r, m);
  }
  const int peer = m->peer;
  const std::uint64_t sender = m->sender;
  const bool ack_owed = m->synchronous, answer_owed = m->fragment != 0;
  matched(core, r, m->key, peer, m->bytes);
  copy(r->memory, m->block.data, r->status.bytes);
  const std::uint64_t bytes = r->status.bytes;
  finish_receive(core, r);
  core.free_message(m);
  if (ack_owed) send_ack(core, peer, sender);
  if (answer_owed) send_cts(core, peer, sender, 0, bytes);
}

}  // namespace ch_lite
