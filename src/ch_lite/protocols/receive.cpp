// The calls that receive.
#include "ch_lite/protocols/receive.h"

#include "ch_lite/protocols/remote_process.h"
#include "ch_lite/protocols/unexpected.h"

namespace ch_lite {
namespace {

// A lost peer for which a new receive from `peer` (-1: any) cannot be served, or -1. With any
// source every lost peer of the communicator counts: it may have been the only one that would have
// sent, and an error is better than a hang.
int lost_source(Core& core, int peer, std::uint32_t context) {
  if (peer >= 0) return core.peers[peer].lost != 0 ? peer : -1;
  if (core.peers.lost_count() == 0) return -1;
  for (int i = 0; i < core.peers.count(); ++i)
    if (core.peers[i].lost != 0 && !core.peers[i].departed && concerns(core, i, context)) return i;
  return -1;
}

}  // namespace

int irecv(Core& core, const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key,
          void* cookie, lite_status* status, Request** request) {
  if (!core.is_own_job(peer)) [[unlikely]]
    expect_remote(core, peer, key);
  if (Message* m = find_message(core, key, peer))
    return receive_message(core, m, memory, bytes, cookie, status, request);
  const int lost = lost_source(core, peer, key.context);
  if (lost >= 0) {
    *status = {LITE_ERR_PEER_LOST, key.source, key.tag, lost, 0};
    return core.report(LITE_ERR_PEER_LOST, lost);
  }
  Request* r = core.requests.reserve();
  if (r == nullptr) return core.report(LITE_ERR_NOMEM, peer);
  r->key = key;
  core.start_request(r, RequestKind::kReceive, RequestState::kPosted, peer, memory, bytes, cookie);
  core.matcher.post(r);
  if (peer >= 0 && peer != core.self()) MPID_ChannelPrefer(peer);
  *request = r;
  return LITE_PENDING;
}

int cancel_receive(Core& core, Request* r) {
  if (r->state != RequestState::kPosted) return 0;
  core.trace.cancelled(r);
  core.matcher.withdraw(r);
  core.requests.end(r);
  core.requests.give(r);
  return 1;
}

int receive_detached(Core& core, Message* m, const Memory& memory, std::uint64_t bytes,
                     void* cookie, lite_status* status, Request** request) {
  const int peer = m->peer;
  if (m->state == MessageState::kFailed ||
      ((m->state == MessageState::kOffered || m->is_offered_rest()) &&
       core.peers[peer].lost != 0)) {
    *status = {LITE_ERR_PEER_LOST, m->key.source, m->key.tag, peer, 0};
    core.free_message(m);
    return core.report(LITE_ERR_PEER_LOST, peer);
  }
  return receive_message(core, m, memory, bytes, cookie, status, request);
}

int take_probed(Core& core, Message* m, int peer, const MatchKey& key, lite_status* status,
                Message** message) {
  if (m == nullptr) {
    const int lost = lost_source(core, peer, key.context);
    // A process of another job that has ended in order: nothing comes, which is no error to ask.
    if (lost < 0 || core.peers[lost].departed) {
      core.sought = {peer, key};
      if (peer >= 0) core.peers[peer].probed = true;  // MPI_Probe waits without a request
      return 0;
    }
    *status = {LITE_ERR_PEER_LOST, key.source, key.tag, lost, 0};
    return core.report(LITE_ERR_PEER_LOST, lost);
  }
  *status = {LITE_OK, m->key.source, m->key.tag, m->peer, m->bytes};
  if (message == nullptr) return 1;
  core.matcher.remove_unexpected(m);
  m->detached = true;
  *message = m;
  return 1;
}

}  // namespace ch_lite
