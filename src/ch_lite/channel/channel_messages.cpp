// The channel interface's channel messages, and what ch2 did not have. Control packets are in
// control.cpp, transfers in transfers.cpp, what an id stands for in channel_ops.cpp.
#include "ch_lite/channel/channel.h"

#include <algorithm>
#include <cerrno>

#include "ch_lite/channel/channel_ops.h"

using namespace mplite;
using namespace mplite::channel;

namespace {

int post_receive(const Memory& memory, std::size_t maxsize, int from, MPID_ChannelId* id) {
  *id = 0;
  if (const int error = engine().peer_error(from); error != 0) return -error;
  ChannelOp* op = make_op(ChannelOpKind::kRecvChannel, from, memory, maxsize);
  if (op == nullptr) return -ENOBUFS;
  ChannelPeer& p = g_channel->peers[from];
  (p.fifo_tail != nullptr ? p.fifo_tail->fifo_next : p.fifo_head) = op;
  p.fifo_tail = op;
  *id = op->pool_handle;
  engine().resume_rx(from);
  return 0;
}

}  // namespace

int64_t MPID_RecvFromChannel(void* buf, size_t maxsize, int from) {
  Hold hold(engine().gate());
  MPID_ChannelId id = 0;
  const int rc = MPID_IRecvFromChannel(buf, maxsize, from, &id);
  return rc < 0 ? rc : wait_for(id);
}

int MPID_SendChannel(const void* buf, size_t size, int dest) {
  Hold hold(engine().gate());
  ChannelOp* waiting = make_op(ChannelOpKind::kSendChannel, dest, nullptr, size);
  if (waiting == nullptr) return -ENOBUFS;
  SendOp* op = nullptr;
  const int rc = engine().send(dest, FrameKind::kChannel, 0, buf, size, op);
  const bool kept = rc == 0 && op != nullptr && engine().keep_copy(op);
  if (kept) engine().release(op);
  if (kept || rc < 0 || op == nullptr) {
    free_op(waiting);
    return rc;
  }
  // The bounded memory for such copies is full: wait for the kernel, acting on what comes in
  // meanwhile.
  engine().on_done(op, on_sent, waiting);
  return static_cast<int>(wait_for(waiting->pool_handle));
}

// ---- non-blocking ----

int MPID_ISendChannel(const void* buf, size_t size, int dest, MPID_ChannelId* id) {
  Hold hold(engine().gate());
  return start_send(buf, size, dest, FrameKind::kChannel, 0, id);
}

int MPID_ISendBehind(const void* pkt, int size, const void* buf, size_t bytes, int dest,
                     MPID_ChannelId* id) {
  Hold hold(engine().gate());
  *id = 0;
  if (!has_op()) return -EAGAIN;
  SendOp* send = nullptr;
  const iovec packet = {const_cast<void*>(pkt), static_cast<std::size_t>(size)};
  const int rc = engine().send_behind(dest, packet, FrameKind::kChannel, buf, bytes, send);
  if (rc < 0 || send == nullptr) return rc;
  ChannelOp* op = make_op(ChannelOpKind::kSendChannel, dest, nullptr, bytes);
  op->send = send;
  *id = op->pool_handle;
  engine().on_done(send, on_sent, op);
  return 0;
}

int MPID_ISendChannelV(const struct iovec* pieces, size_t size, int dest, MPID_ChannelId* id) {
  Hold hold(engine().gate());
  return start_send(Memory::in_pieces(pieces), size, dest, FrameKind::kChannel, 0, id);
}

int MPID_WSendChannel(MPID_ChannelId id) {
  Hold hold(engine().gate());
  return static_cast<int>(wait_for(id));
}

int MPID_TSendChannel(MPID_ChannelId id) {
  Hold hold(engine().gate());
  return test(id, false);
}

int MPID_KeepChannel(MPID_ChannelId id) {
  Hold hold(engine().gate());
  ChannelOp* op = find(id);
  return op == nullptr || op->done || (op->send != nullptr && engine().keep_copy(op->send)) ? 1 : 0;
}

int MPID_IRecvFromChannel(void* buf, size_t maxsize, int from, MPID_ChannelId* id) {
  Hold hold(engine().gate());
  return post_receive(buf, maxsize, from, id);
}

int MPID_IRecvFromChannelV(const struct iovec* pieces, size_t maxsize, int from,
                           MPID_ChannelId* id) {
  Hold hold(engine().gate());
  return post_receive(Memory::in_pieces(pieces), maxsize, from, id);
}

int MPID_MoveRecvFromChannel(MPID_ChannelId id, void* buf, const struct iovec* pieces,
                             size_t maxsize) {
  Hold hold(engine().gate());
  ChannelOp* op = find(id);
  if (op == nullptr || op->kind != ChannelOpKind::kRecvChannel || op->done || op->pieces)
    return -EINVAL;
  const bool under_way = g_channel->peers[op->peer].fifo_head == op;
  const std::uint64_t here =
      op->arrived + (under_way ? engine().placed(op->peer, FrameKind::kChannel, 0) : 0);
  if (here > op->size) return -EINVAL;
  const Memory to = pieces != nullptr ? Memory::in_pieces(pieces) : Memory(buf);
  copy(to, op->buffer, std::min<std::uint64_t>(here, maxsize));
  op->buffer = to.buffer;
  op->pieces = {to.pieces};
  op->size = maxsize;
  if (op->pieces) op->pieces.skip(std::min<std::uint64_t>(op->arrived, maxsize));
  if (!under_way) return 0;
  Destination rest = destination_at(*op, here);
  if (rest.pieces) rest.pieces.skip(here - op->arrived);
  engine().redirect(op->peer, FrameKind::kChannel, 0, rest);
  return 0;
}

int64_t MPID_WRecvFromChannel(MPID_ChannelId id) {
  Hold hold(engine().gate());
  return wait_for(id);
}

int MPID_RecvStatus(MPID_ChannelId id) {
  Hold hold(engine().gate());
  return test(id, true);
}

// ---- extensions ----

void MPID_OnComplete(MPID_ChannelId id, void (*done)(void* arg, int64_t result), void* arg) {
  Hold hold(engine().gate());
  ChannelOp* op = find(id);
  if (op == nullptr) return done(arg, -EINVAL);
  op->on_complete = done;
  op->arg = arg;
  if (op->done) complete(op, op->result);
}

void MPID_ChannelHold(int dest) {
  Hold hold(engine().gate());
  engine().cork(dest);
}

void MPID_ChannelRelease(int dest) {
  Hold hold(engine().gate());
  engine().uncork(dest);
}

void MPID_ChannelPrefer(int peer) {
  Hold hold(engine().gate());
  engine().prefer(peer);
}

void MPID_ChannelAcknowledge(int peer) {
  Hold hold(engine().gate());
  engine().acknowledge(peer);
}

void MPID_ChannelSetProgress(void (*progress)(void* arg), void* arg) {
  g_channel->progress = progress;
  g_channel->progress_arg = arg;
}

void MPID_ChannelGather(int what) {
  engine().set_gather(what == MPID_GATHER_PAGES   ? Engine::kCompanyPacketMax
                      : what == MPID_GATHER_SMALL ? Engine::kGatherPacketMax
                                                  : 0);
}

int MPID_ChannelGathered(void) { return engine().gathered(); }

void MPID_ChannelFlush(void) {
  Hold hold(engine().gate());
  engine().flush_gathered();
}

void MPID_ChannelSetLost(void (*lost)(void* arg, int peer, int error), void* arg) {
  g_channel->lost = lost;
  g_channel->lost_arg = arg;
}

void MPID_ChannelSetIntroduce(int (*introduce)(void* arg, int peer, uint32_t window), void* arg) {
  g_channel->introduce = introduce;
  g_channel->introduce_arg = arg;
}

void MPID_ChannelSetAwaited(int (*awaited)(void* arg, int peer), void* arg) {
  g_channel->awaited = awaited;
  g_channel->awaited_arg = arg;
}

int MPID_ChannelDeparted(int peer) { return engine().departed(peer) ? 1 : 0; }

void MPID_ChannelRandom(void* bytes, size_t count) { engine().random(bytes, count); }

int MPID_ChannelInHandler(void) { return engine().async() ? 1 : 0; }

int MPID_ChannelHeadroom(void) {
  return engine().headroom() && g_channel->ops.free_count() >= Engine::kSendsPerPacket ? 1 : 0;
}

void MPID_ChannelStarved(void) { engine().note_starved(); }

MPLITE_ORDINARY int MPID_ChannelRefill(void) {
  Hold hold(engine().gate());
  return engine().refill() && g_channel->ops.reserve(64) ? 0 : -ENOMEM;
}

void MPID_ChannelWait(int64_t timeout_ns) {
  Hold hold(engine().gate());
  engine().wait(timeout_ns);
}

int MPID_ChannelSetOutstanding(int outstanding) {
  Engine& e = engine();
  const bool now = outstanding != 0 || e.queued_sends() != 0;
  if (now == e.outstanding()) return now ? 1 : 0;
  e.set_outstanding(now);
  if (g_channel->on_outstanding != nullptr) g_channel->on_outstanding(now);
  return now ? 1 : 0;
}

void MPID_ChannelReach(int peer) {
  Hold hold(engine().gate());
  engine().reach(peer);  // an error comes by the lost callback
}

int MPID_ChannelSpreads(int peer) { return engine().spreads(peer) ? 1 : 0; }

int MPID_ChannelPeerError(int peer) { return engine().peer_error(peer); }

const char* MPID_ChannelDescribe(int peer, char* text, size_t size) {
  return engine().describe(peer, text, size);
}

uint64_t MPID_ChannelQueued(void) { return engine().queued_sends(); }
