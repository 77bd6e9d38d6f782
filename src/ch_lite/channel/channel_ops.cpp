// The operations of the channel interface: what an id stands for, the engine's sinks for channel
// and transfer frames, completion, waiting for it.
#include "ch_lite/channel/channel_ops.h"

#include <algorithm>
#include <cerrno>

#include "mplite/runtime/wait_loop.h"

namespace mplite {
namespace channel {
namespace {

// The same for an id that came over the wire: whole, or its short name.
ChannelOp* find_transfer(std::uint64_t id) {
  return id >> 32 != 0 ? find(id) : g_channel->ops.find_short(static_cast<std::uint32_t>(id));
}

ChannelPeer& receives_of(int peer) {
  return peer >= 0 ? g_channel->peers[peer] : g_channel->unbound;
}

bool is_receive(const ChannelOp& op) {
  return op.kind == ChannelOpKind::kRecvChannel || op.kind == ChannelOpKind::kRecvTransfer;
}

void link(ChannelOp* op) {
  ChannelPeer& p = receives_of(op->peer);
  op->previous = nullptr;
  op->next = p.receives;
  if (op->next != nullptr) op->next->previous = op;
  p.receives = op;
}

void unlink(ChannelOp* op) {
  (op->previous != nullptr ? op->previous->next : receives_of(op->peer).receives) = op->next;
  if (op->next != nullptr) op->next->previous = op->previous;
}

void count_arrived(ChannelOp& op, std::uint64_t bytes) {
  if (op.pieces && op.arrived < op.size) op.pieces.skip(std::min(bytes, op.size - op.arrived));
  op.arrived += bytes;
}

}  // namespace

// Ordinary context leaves the handler what it needs for a packet (MPID_ChannelHeadroom).
bool has_op() {
  Pool<ChannelOp>& ops = g_channel->ops;
  if (!engine().async() && ops.free_count() <= Engine::kSendsPerPacket)
    static_cast<void>(ops.reserve(64));
  return ops.free_count() > 0;
}

ChannelOp* make_op(ChannelOpKind kind, int peer, const Memory& memory, std::size_t size) {
  ChannelState& s = *g_channel;
  if (!has_op()) return nullptr;
  ChannelOp* op = s.ops.take();
  op->kind = kind;
  op->peer = peer;
  op->buffer = memory.buffer;
  op->pieces.piece = memory.pieces;
  op->size = size;
  if (is_receive(*op)) link(op);
  return op;
}

void free_op(ChannelOp* op) {
  if (is_receive(*op)) unlink(op);
  g_channel->ops.give(op);
}

void complete(ChannelOp* op, std::int64_t result) {
  op->done = true;
  op->result = result;
  if (op->on_complete == nullptr) return;
  auto* on_complete = op->on_complete;
  void* arg = op->arg;
  free_op(op);
  on_complete(arg, result);
}

Destination destination_at(const ChannelOp& op, std::uint64_t offset) {
  if (offset >= op.size) return {};
  return {op.buffer != nullptr ? op.buffer + offset : nullptr, op.size - offset, op.pieces};
}

namespace {

// ---- sinks: called by the engine, gate held, perhaps in the handler ----

// A connection that waits for a receive is not read, so that the peer's end is not noticed, either.
Verdict begin_channel(void*, int peer, const FrameHeader& header, Destination& destination) {
  const ChannelState& s = *g_channel;
  ChannelOp* op = s.peers[peer].fifo_head;
  if (header.id != 0) return Verdict::kReject;  // its rest would not be found by the engine
  if (op == nullptr) {
    const bool awaited = s.awaited == nullptr || s.awaited(s.awaited_arg, peer) != 0;
    return header.offset == 0 && awaited ? Verdict::kPause : Verdict::kReject;
  }
  if (header.offset != op->arrived) return Verdict::kReject;  // pieces of one message come in order
  destination = destination_at(*op, header.offset);
  return Verdict::kTake;
}

void end_channel(void*, int peer, const FrameHeader& header) {
  ChannelPeer& p = g_channel->peers[peer];
  ChannelOp* op = p.fifo_head;
  count_arrived(*op, header.length);
  if (op->arrived < header.total) return;
  p.fifo_head = op->fifo_next;
  if (p.fifo_head == nullptr) p.fifo_tail = nullptr;
  complete(op, static_cast<std::int64_t>(header.total));
}

// Where the transfer's bytes from `offset` on go.
Destination transfer_destination(ChannelOp& op, std::uint64_t offset) {
  if (op.pieces && offset < op.size) {
    if (offset < op.at) {
      op.pieces = {op.list};
      op.at = 0;
    }
    op.pieces.skip(offset - op.at);
    op.at = offset;
  }
  return destination_at(op, offset);
}

Verdict begin_transfer(void*, int peer, const FrameHeader& header, Destination& destination) {
  ChannelOp* op = find_transfer(header.id);
  if (op == nullptr) return Verdict::kDiscard;  // withdrawn, or finished
  if (op->peer == MPID_ANY_PARTNER && op->kind == ChannelOpKind::kRecvTransfer) {
    unlink(op);
    op->peer = peer;
    link(op);
  }
  if (op->kind != ChannelOpKind::kRecvTransfer || op->peer != peer) return Verdict::kReject;
  if (!op->started) return Verdict::kPause;  // created, and its buffer is not known yet
  if (op->total == 0 && header.total >= op->from) op->total = header.total;
  if (op->done || header.offset < op->from || header.total != op->total ||
      header.length > op->total - op->begun)
    return Verdict::kReject;  // some of it has been here already
  op->begun += header.length;
  destination = transfer_destination(*op, header.offset);
  return Verdict::kTake;
}

// It has been taken by begin_transfer(), and the transfer was not withdrawn. With the last byte no
// other frame is on its way into its memory.
void end_transfer(void*, int, const FrameHeader& header) {
  ChannelOp* op = find_transfer(header.id);
  op->arrived += header.length;
  if (op->arrived == op->total) complete(op, static_cast<std::int64_t>(header.total));
}

// It comes again, over another connection.
void undo_transfer(void*, int, const FrameHeader& header) {
  find_transfer(header.id)->begun -= header.length;
}

void fail_receives(ChannelPeer& p, int error) {
  while (p.receives != nullptr) {
    ChannelOp* op = p.receives;
    // Without a callback the operation stays for its owner to find; off the list, so that this loop
    // ends. One that was complete before is still good.
    p.receives = op->next;
    if (op->next != nullptr) op->next->previous = nullptr;
    op->next = op->previous = nullptr;
    op->kind = ChannelOpKind::kOrphan;
    if (!op->done) complete(op, -error);
  }
}

void on_lost(void*, int peer, int error) {
  ChannelState& s = *g_channel;
  ChannelPeer& p = s.peers[peer];
  p.fifo_head = p.fifo_tail = nullptr;
  fail_receives(p, error);
  if (!s.engine->departed(peer))
    fail_receives(s.unbound,
                  error);  // whose partner may be this one: an error is better than a hang
  if (s.lost != nullptr) s.lost(s.lost_arg, peer, error);
}

// Ordinary context.
bool on_introduce(void* self, int peer, std::uint32_t window) {
  ChannelState& s = *static_cast<ChannelState*>(self);
  if (!s.peer_table.grow(static_cast<std::size_t>(peer) + 1) || s.peers[peer].receives != nullptr)
    return false;
  return s.introduce == nullptr || s.introduce(s.introduce_arg, peer, window) != 0;
}

// False: not yet. Else it is gone, with its result.
bool take_result(MPID_ChannelId id, std::int64_t& result) {
  ChannelOp* op = find(id);
  if (op != nullptr && !op->done) return false;
  result = op == nullptr ? -EINVAL : op->result;
  if (op != nullptr) free_op(op);
  return true;
}

}  // namespace

void on_sent(void* arg, int error) { complete(static_cast<ChannelOp*>(arg), -error); }

int start_send(const Memory& memory, std::size_t size, int dest, FrameKind kind, std::uint64_t id,
               MPID_ChannelId* out, std::size_t from) {
  *out = 0;
  // First of all: callbacks of other operations, which the send may run, take from the same pool.
  ChannelOp* op = make_op(
      kind == FrameKind::kChannel ? ChannelOpKind::kSendChannel : ChannelOpKind::kSendTransfer,
      dest, nullptr, size);
  if (op == nullptr) return -ENOBUFS;
  SendOp* send = nullptr;
  const int rc = engine().send(dest, kind, id, memory, size, send, from);
  if (rc < 0 || send == nullptr) {
    free_op(op);
    return rc;
  }
  op->send = send;
  engine().on_done(send, on_sent, op);
  *out = op->pool_handle;
  return 0;
}

int test(MPID_ChannelId id, bool keep) {
  if (id == 0) return 1;
  ChannelOp* op = find(id);
  if (op == nullptr) return -EINVAL;
  if (!op->done) {
    engine().poll();
    op = find(id);
    if (op == nullptr) return -EINVAL;
    if (!op->done) return 0;
  }
  const std::int64_t result = op->result;
  if (result < 0 || !keep) free_op(op);
  return result < 0 ? static_cast<int>(result) : 1;
}

std::int64_t wait_for(MPID_ChannelId id) {
  std::int64_t result = 0;
  if (id == 0 || take_result(id, result)) return result;
  WaitLoop waiting;
  waiting.run(engine(), g_channel->wait_policy, [id, &result] {
    poll_and_serve();
    return take_result(id, result) ? WaitLoop::done() : WaitLoop::rest(engine().net().now_ns());
  });
  return result;
}

}  // namespace channel

ChannelState::ChannelState(Engine& e)
    : engine(&e), wait_policy(choose_wait_policy(1, 1, -1, false)) {
  if (peer_table.start(static_cast<std::size_t>(e.size()),
                       static_cast<std::size_t>(e.size()) + Engine::kRemoteMax))
    peers = peer_table.data();
  ops.reserve(64);
  e.set_sink(FrameKind::kChannel, {this, channel::begin_channel, channel::end_channel});
  e.set_sink(FrameKind::kTransfer,
             {this, channel::begin_transfer, channel::end_transfer, channel::undo_transfer});
  e.set_lost(channel::on_lost, this);
  e.set_introduce(channel::on_introduce, this);
}

ChannelState::~ChannelState() { channel::drop_stash(*this); }

}  // namespace mplite
