// Messages whose data comes on the channel.
#include "ch_lite/protocols/deferred.h"

#include <cerrno>
#include <cstring>

#include "ch_lite/protocols/incoming.h"

namespace ch_lite {
namespace {

void on_block_received(void* arg, std::int64_t result) {
  auto* m = static_cast<Message*>(arg);
  Core& core = *m->core;
  if (result >= 0 && static_cast<std::uint64_t>(result) != m->channel_bytes()) {
    core.protocol_error(m->peer, "channel data that is not as long as its envelope said");
    result = -EPROTO;
  }
  if (result < 0) return drop_message(core, m);
  core.bump_events();
  m->to(MessageState::kReady);
}

// There is no block for the fragment of m (in the handler, or at the bound of memory), which the
// sender still has. In the stream it would hold up all that is behind it. False: no operation,
// either.
bool discard_fragment(Core& core, Message* m) {
  MPID_ChannelId id = 0;
  const int result = MPID_IRecvFromChannel(nullptr, 0, m->peer, &id);
  if (result == -ENOBUFS) return false;
  if (result < 0) {
    drop_message(core, m);
    return true;
  }
  m->to(MessageState::kOffered);
  if (!core.is_own_job(m->peer) && !m->offer) core.count_offer(m);
  m->fragment = 0;
  m->resend_fragment = true;
  const std::uint64_t charge = m->charge;
  m->charge = 0;
  core.release_credit(m->peer, kPointToPoint, charge);
  MPID_OnComplete(
      id, [](void*, std::int64_t) {}, nullptr);
  return true;
}

// A channel receive into the block of m. False: no block, or no operation; or it was an active
// message that no memory could be had for, and its peer is lost.
// A message that a receive may still take waits, even when there is no memory: the receive needs no
// block for it, as its data goes straight to the user's buffer then (serve_deferred), and receives
// and the application may give memory back. What its sender has sent behind it waits too.
bool post_channel_block(Core& core, Message* m) {
  if (m->active) {
    if (!grow_block(core, m, BlockUse::kPacket)) return false;
  } else if (m->block.data == nullptr) {
    const bool is_fragment = m->fragment != 0;
    m->block =
        core.obtain_block(m->channel_bytes(), is_fragment ? BlockUse::kBounded : BlockUse::kPacket);
    if (m->block.data == nullptr) return is_fragment && discard_fragment(core, m);
  }
  std::uint8_t* data = static_cast<std::uint8_t*>(m->block.data) +
                       (m->active ? padded_header(m->am_header_bytes) : 0);
  MPID_ChannelId id = 0;
  const int result = MPID_IRecvFromChannel(data, m->channel_bytes(), m->peer, &id);
  if (result == -ENOBUFS) {
    if (m->active && MPID_ChannelInHandler() == 0) without_memory(core, m);
    return false;
  }
  if (result < 0) {
    drop_message(core, m);
    return true;
  }
  m->to(MessageState::kArriving);
  m->channel = id;
  MPID_OnComplete(id, on_block_received, m);
  return true;
}

}  // namespace

// The data of m comes next on the channel.
void arrive_by_channel(Core& core, Message* m) {
  if (!core.peers[m->peer].deferred.empty() || !post_channel_block(core, m)) defer(core, m);
}

void defer(Core& core, Message* m) {
  Peer& p = core.peers[m->peer];
  p.deferred.push(m);
  core.trace.deferred(m);
  core.attend(p, kAttentionDeferred);
}

// Posts what can be posted, in order. False: some are left.
bool serve_deferred(Core& core, Peer& p) {
  while (!p.deferred.empty()) {
    Message* m = p.deferred.front();
    Request* const r = m->request;
    if (!(r != nullptr ? post_channel_receive(core, r) : post_channel_block(core, m))) return false;
    p.deferred.pop();  // a message that failed is back in its pool, which leaves its link alone
    core.trace.resumed(m);
    if (r != nullptr) core.free_message(m);
  }
  return true;
}

// A block for header and data in place of the header's own. False: none now, or no memory: then the
// peer is lost.
bool grow_block(Core& core, Message* m, BlockUse use) {
  const std::uint64_t whole = padded_header(m->am_header_bytes) + m->bytes;
  const Block block = core.obtain_block(whole, use);
  if (block.data == nullptr) {
    if (block.no_memory) without_memory(core, m);
    return false;
  }
  if (m->am_header_bytes != 0) std::memcpy(block.data, m->block.data, m->am_header_bytes);
  core.blocks.give(m->block);
  m->block = block;
  return true;
}

// Not tried again: the application may wait for just this message, and for ever. The queue is in
// order and the sender waits for an answer that will not come, so both ends have to hear of it: the
// peer is given up. What a process of another job asks for is no error of this job's own calls. The
// message stays where it is until the loss is dealt with.
void without_memory(Core& core, const Message* m) {
  const int peer = m->peer;
  if (core.is_own_job(peer))
    core.trouble.note(LITE_ERR_NOMEM, peer,
                      "no memory for the %llu bytes of an active message (MPI_Accumulate and its "
                      "like); its sender is given up",
                      static_cast<unsigned long long>(m->bytes));
  core.peers[peer].broken = "there was no memory here for the data of its active message";
  core.peer_lost(peer, ENOMEM);
  core.give_up(peer, ENOMEM);
}

// A message of a lost peer whose data will not come. One that the host holds (improbe) stays for
// its imrecv.
void drop_message(Core& core, Message* m) {
  if (m->detached) return m->to(MessageState::kFailed);
  if (m->match_queued) core.matcher.remove_unexpected(m);
  if (m->unverified) core.end_unverified(m);
  if (m->active) {
    // Active messages are in order: what is behind a lost one is lost as well. Those that are not
    // complete come here by themselves.
    for (Message* behind = m->queue_next; behind != nullptr;) {
      Message* next = behind->queue_next;
      if (behind->state == MessageState::kReady) {
        core.active_arrivals.remove(core.peers[behind->peer], behind);
        core.free_message(behind);
      }
      behind = next;
    }
    core.active_arrivals.remove(core.peers[m->peer], m);
  }
  if (m->request != nullptr) end_channel_receive(core, m->request, false);
  core.free_message(m);
}

void drop_deferred(Core& core, Peer& p) {
  while (!p.deferred.empty()) drop_message(core, p.deferred.pop());
}

}  // namespace ch_lite
