// A peer is lost: what is open with it fails.
#include "ch_lite/protocols/loss.h"

#include "ch_lite/protocols/deferred.h"
#include "ch_lite/protocols/incoming.h"
#include "ch_lite/protocols/remote_process.h"
#include "ch_lite/protocols/rma_origin.h"

namespace ch_lite {

namespace {

void fail_request(Core& core, Request* r, int lost) {
  switch (r->state) {
    case RequestState::kPosted:
      core.matcher.withdraw(r);
      r->status = {0, r->key.source, r->key.tag, lost, 0};
      break;
    case RequestState::kReceivingTransfer:
      // Only after a protocol error: a peer that the channel lost has completed this by its
      // callback.
      return cancel_transfer(core, r);
    case RequestState::kAwaitingCts:
      if (!r->fragment_pending)
        break;  // as when the channel has told of the loss: it completed the fragment before
      r->channel = 0;
      return r->to(RequestState::kSending);  // the fragment's end completes it
    case RequestState::kAwaitingAnswer:
    case RequestState::kAwaitingAck: break;
    default: return;  // the channel, a deferred message or the queue has it and completes it
  }
  core.complete(r, LITE_ERR_PEER_LOST);
}

void fail_list(Core& core, RequestList& list, int lost) {
  Request* next = list.head;
  while (next != nullptr) {
    Request* r = next;
    next = r->list_next;
    fail_request(core, r, lost);
  }
}

}  // namespace

void fail_any_source(Core& core, int lost) {
  std::uint32_t context = 0;
  bool asked = false, fails = false;
  for (Request* next = core.requests.any_source().head; next != nullptr;) {
    Request* r = next;
    next = r->list_next;
    if (!asked || r->key.context != context) fails = concerns(core, lost, context = r->key.context);
    asked = true;
    if (fails) fail_request(core, r, lost);
  }
}

void fail_requests(Core& core, int peer) {
  Peer& p = core.peers[peer];
  drop_accesses(core, p);
  fail_list(core, p.pending, peer);
  if (!p.departed && core.requests.any_source().head != nullptr)
    core.attend(p, kAttentionAnySource);  // the host is asked in ordinary context only
  drop_deferred(core, p);
}

void drop_offers(Core& core, int peer) {
  struct Visit {
    Core& core;
    int peer;
  } visit{core, peer};
  core.matcher.visit_unexpected(
      [](void* arg, UnexpectedNode* node) {
        auto* v = static_cast<Visit*>(arg);
        auto* m = static_cast<Message*>(node);
        if (m->peer == v->peer && (m->state == MessageState::kOffered || m->is_offered_rest()))
          drop_message(v->core, m);
      },
      &visit);

  // kArriving and kTransfer: their callbacks have come or will come with the error. From the front
  // each time, as a drop takes along what is behind.
  const Peer& p = core.peers[peer];
  const auto offered = [&p] {
    Message* m = p.am_arrived.front();
    while (m != nullptr && m->state != MessageState::kOffered) m = m->queue_next;
    return m;
  };
  while (Message* m = offered()) drop_message(core, m);
}

}  // namespace ch_lite
