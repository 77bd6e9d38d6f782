// What processes of other jobs may say.
#include "ch_lite/protocols/remote_process.h"

#include "ch_lite/protocols/unexpected.h"

namespace ch_lite {
namespace {

constexpr const char* kNoMember =
    "a message in a communicator that it is not in, or in the name of another process there";

MPLITE_ORDINARY Admission ask_host(Core& core, int from, const MatchKey& envelope) {
  const int answer = core.host.member_callback(from, envelope.context, envelope.source);
  if (answer == LITE_NO_COMMUNICATOR) return Admission::kLater;
  if (answer == LITE_MEMBER) {
    core.host.permits.add(from, envelope.context, envelope.source);
    return Admission::kYes;
  }
  core.protocol_error(from, kNoMember);
  return Admission::kNo;
}

// Asks the host about the unverified messages of the peer from `first` on, in the order of arrival.
// Receives that were posted before they came take them now.
MPLITE_ORDINARY void verify(Core& core, int from, Message* first) {
  Peer& p = core.peers[from];
  p.unasked = nullptr;
  for (Message* next = first; next != nullptr && p.lost == 0;) {
    Message* m = next;
    next = m->queue_next;
    if (ask_host(core, from, m->key) != Admission::kYes) continue;
    core.end_unverified(m);
    Request* r = core.match(m->key);
    if (r == nullptr) continue;
    core.matcher.remove_unexpected(m);
    receive_late(core, r, m);
  }
}

}  // namespace

Admission admit_remote(Core& core, int from, const MatchKey& envelope) {
  if (core.host.member_callback == nullptr) return Admission::kYes;
  if (core.host.permits.has(from, envelope.context, envelope.source)) return Admission::kYes;
  if (MPID_ChannelInHandler() != 0) {
    core.attend(core.peers[from], kAttentionVerify);
    return Admission::kLater;
  }
  const Admission answer = ask_host(core, from, envelope);
  if (answer != Admission::kYes) return answer;
  // What came before it goes first. Only now: a process whose messages are early may have sent very
  // many of them.
  Peer& p = core.peers[from];
  if (!p.unverified.empty()) verify(core, from, p.unverified.front());
  return p.lost != 0 ? Admission::kNo : Admission::kYes;
}

// A receive from this very process: the host has said who it is.
void expect_remote(Core& core, int peer, const MatchKey& key) {
  if (core.host.member_callback == nullptr || key.source == LITE_ANY_SOURCE) return;
  verify_unasked(core, peer);  // no later one may overtake them by the permit
  core.host.permits.add(peer, key.context, key.source);
}

void verify_unasked(Core& core, int from) {
  if (Message* first = core.peers[from].unasked) verify(core, from, first);
}

Message* find_verified(Core& core, const MatchKey& key, int peer) {
  for (;;) {
    auto* m = static_cast<Message*>(core.matcher.find_unexpected(key));
    if (m == nullptr || !m->unverified) return m;
    const int from = m->peer;
    verify(core, from, core.peers[from].unverified.front());
    m = static_cast<Message*>(core.matcher.find_unexpected(key));
    if (m == nullptr || !m->unverified) return m;
    if (m->peer != from) continue;
    // The host has no such communicator, and receives in it; or the peer is lost.
    if (from == peer || (peer < 0 && core.host.member_callback(from, m->key.context,
                                                               m->key.source) == LITE_MEMBER)) {
      core.end_unverified(m);
      return m;
    }
    core.matcher.remove_unexpected(m);
    if (m->state == MessageState::kReady || m->state == MessageState::kOffered)
      core.free_message(m);
    core.protocol_error(from, kNoMember);  // an arriving one is dropped by that
  }
}

// The host's word on an active message at the head of its queue. False: not now, or never.
bool may_deliver(Core& core, const Message& m) {
  if (core.is_own_job(m.peer) || core.host.am_check == nullptr) return true;
  const int answer =
      core.host.am_check(m.peer, m.am_handler, m.block.data, m.am_header_bytes, m.bytes);
  if (answer == LITE_NOT_A_MEMBER)
    core.protocol_error(m.peer, "an active message that the host does not take from it");
  return answer == LITE_MEMBER;
}

// Whether a receive from any source in this communicator may have waited for the lost peer: then
// failing is better than hanging. A process of another job is in no communicator that we are not
// told of.
bool concerns(Core& core, int lost, std::uint32_t context) {
  const bool own_job = core.is_own_job(lost);
  if (core.host.member_callback == nullptr) return own_job;
  const int answer = core.host.member_callback(lost, context, LITE_ANY_SOURCE);
  return answer == LITE_MEMBER || (answer == LITE_NO_COMMUNICATOR && own_job);
}

}  // namespace ch_lite
