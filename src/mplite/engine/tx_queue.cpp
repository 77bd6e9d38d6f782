// The queues, the frames on the stream, and the end of send operations. Control packets, and what
// leaves with them, are in tx_control.cpp, lanes in tx_lanes.cpp.
#include "mplite/engine/tx_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "mplite/engine/tx_frames.h"
#include "mplite/net/loss.h"
#include "mplite/observe/trace.h"

namespace mplite {
namespace {

constexpr std::uint8_t kPadding[kPayloadAlignment] = {};
static_assert(StreamPadding::kAlignment == kPayloadAlignment);

// The list ends after `bytes`, which it has. Returns them.
std::uint64_t shorten(iovec* parts, int& parts_count, std::uint64_t bytes) {
  std::uint64_t listed = 0;
  for (int i = 0;; ++i) {
    if (listed + parts[i].iov_len < bytes) {
      listed += parts[i].iov_len;
      continue;
    }
    parts[i].iov_len = bytes - listed;
    parts_count = i + 1;
    return bytes;
  }
}

// The rest of the frames, as far as there is room in the list. Their bytes.
std::uint64_t list_frames(ConnectionTx& tx, iovec (&parts)[kIovsMax], int& parts_count) {
  std::uint64_t offered = 0;
  for (int i = 0; i < tx.count; ++i)
    if (!list_frame(tx.frame(i), parts, parts_count, offered)) break;
  return offered;
}

}  // namespace

bool list_frame(OutFrame& f, iovec (&parts)[kIovsMax], int& parts_count, std::uint64_t& offered) {
  if (parts_count == kIovsMax) return false;
  if (f.sent < kFrameHeaderBytes) {
    parts[parts_count++] = {reinterpret_cast<std::uint8_t*>(&f.header) + f.sent,
                            kFrameHeaderBytes - f.sent};
    offered += kFrameHeaderBytes - f.sent;
  }
  if (f.sent < head_bytes(f.header) && f.header.pad > 0) {
    if (parts_count == kIovsMax) return false;
    const std::uint64_t rest = std::min<std::uint64_t>(f.header.pad, head_bytes(f.header) - f.sent);
    parts[parts_count++] = {const_cast<std::uint8_t*>(kPadding), rest};
    offered += rest;
  }
  const std::uint64_t skip = payload_sent(f.header, f.sent);
  const std::uint64_t rest = f.header.length - skip;
  if (rest == 0) return true;
  if (parts_count == kIovsMax) return false;
  if (!f.pieces) {
    parts[parts_count++] = {const_cast<std::uint8_t*>(f.payload) + skip, rest};
    offered += rest;
    return true;
  }
  std::uint64_t listed = 0;
  parts_count += f.pieces.list(rest, parts + parts_count, kIovsMax - parts_count, listed);
  offered += listed;
  return listed == rest;
}

MPLITE_ORDINARY std::uint8_t* new_copy(std::uint64_t bytes) {
  return static_cast<std::uint8_t*>(std::malloc(bytes));
}
MPLITE_ORDINARY void free_copy(std::uint8_t* copy) { std::free(copy); }

TxQueue::TxQueue(EngineCore& core, Upcalls& up, Readiness& readiness)
    : core_(core), up_(up), readiness_(readiness) {
  padding_.start(core.options.tuning.has(Heuristic::kStreamPadding));
}

void TxQueue::free_stale() {
  while (stale_ != nullptr) {
    SendOp* op = stale_;
    stale_ = op->next;
    give(op);
  }
}

bool TxQueue::refill() {
  free_stale();
  const bool frames = core_.lane_sets.used_count() == 0 || lane_frames_.reserve(64);
  const bool kept = !core_.options.resume || (kept_nodes_.reserve(128 + spare_blocks_) &&
                                              kept_blocks_.reserve(spare_blocks_));
  return sends_.reserve(128) && control_blocks_.reserve(kSendsPerPacket) && frames && kept;
}

void TxQueue::enqueue(Peer& p, SendOp* op) {
  SendQueue& q = op->kind == FrameKind::kControl || op->kind == FrameKind::kLane ? p.control
                 : op->kind == FrameKind::kTransfer && p.lanes != nullptr ? p.lanes->transfers
                                                                          : p.bulk;
  if (op->kind == FrameKind::kTransfer && q.head == nullptr && spreads(p)) measure_lanes(p, true);
  op->next = nullptr;
  (q.tail != nullptr ? q.tail->next : q.head) = op;
  q.tail = op;
  ++core_.underway.queued_sends;
}

// Bytes of padding before the payload of the next frame.
std::uint8_t TxQueue::padding(const Connection& c, const void* payload) const {
  std::uint64_t before = kFrameHeaderBytes;
  for (int i = 0; i < c.tx.count; ++i) {
    const OutFrame& f = c.tx.frame(i);
    before += head_bytes(f.header) + f.header.length - f.sent;
  }
  return padding_.bytes(writer(), before, payload);
}

// The frame's place in the stream is fixed.
void TxQueue::commit(Connection& c, SendOp* op, std::uint64_t offset, std::uint32_t length,
                     const IovCursor& pieces) {
  const bool control = op->kind == FrameKind::kControl;
  OutFrame& f = c.tx.frame(c.tx.count);
  f.header = make_header(op->kind, length, op->id, offset, control ? length : op->total);
  f.op = op;
  f.pieces = pieces;
  if (op->pieces == nullptr) {
    f.payload = op->data + offset;
    if (!control && padding_.pads(length)) f.header.pad = padding(c, f.payload);
  }
  f.sent = 0;
  ++c.tx.count;
  ++core_.counters.frames_out;
}

// Fixes the place of one more frame in the stream. False: nothing left to commit, or no memory to
// keep it, or to note what is on a lane.
bool TxQueue::commit_next(Peer& p, Connection& c, std::uint64_t frame_bytes) {
  LaneSet* lanes = p.lanes;
  if (c.lane != 0 && c.lane >= lanes->policy.used()) return false;
  if (lanes != nullptr && lanes->again.head() != nullptr &&
      (c.lane != 0 || p.control.head == nullptr)) [[unlikely]] {
    if (!may_commit(c, 0)) return false;
    commit_again(*lanes, c);
    return true;
  }
  SendQueue* const q = next_queue(p, c);
  if (q == nullptr) return false;
  SendOp* op = q->head;
  if (c.lane != 0 && lane_frames_.free_count() == 0 &&
      (core_.mode.in_signal_handler || !lane_frames_.reserve(64)))
    return false;
  const std::uint64_t rest = op->total - op->committed;
  if (!may_commit(c, is_copied(op->kind) ? kFrameHeaderBytes + rest : 0)) return false;
  if (op->kind == FrameKind::kTransfer && spreads(p)) [[unlikely]] {
    frame_bytes = lanes->policy.frame_bytes(rest, frame_bytes);
    lanes->chosen = -1;
  }
  const bool whole = op->kind == FrameKind::kControl || rest <= frame_bytes;
  const auto length = static_cast<std::uint32_t>(whole ? rest : frame_bytes);
  commit(c, op, op->committed, length, op->uncommitted);
  if (c.lane != 0) [[unlikely]] {
    LaneFrame* f = lane_frames_.take();
    f->op = op;
    f->offset = op->committed;
    f->length = length;
    lanes->lane[c.lane].out.push(f);
  }
  if (op->pieces != nullptr) op->uncommitted.skip(length);
  op->committed += length;
  ++op->frames;
  if (op->committed == op->total) {
    op->all_committed = true;
    q->head = op->next;
    if (q->head == nullptr) q->tail = nullptr;
    op->next = nullptr;
  } else if (op->kind == FrameKind::kTransfer && op->next != nullptr) {
    q->head = op->next;  // the next transfer's turn
    op->next = nullptr;
    q->tail->next = op;
    q->tail = op;
  }
  return true;
}

// The kernel took `bytes` more. False: a completion lost the connection under us.
bool TxQueue::advance(Connection& c, std::uint64_t bytes) {
  const std::uint64_t handle = c.pool_handle;
  count_written(bytes);
  c.tx.kept.taken += bytes;
  while (bytes > 0) {
    OutFrame& f = c.tx.frame(0);
    const std::uint64_t rest = head_bytes(f.header) + f.header.length - f.sent;
    if (bytes < rest) {
      if (f.pieces)
        f.pieces.skip(payload_sent(f.header, f.sent + bytes) - payload_sent(f.header, f.sent));
      f.sent += bytes;
      return true;
    }
    bytes -= rest;
    c.tx.pop();
    if (c.lane != 0) continue;  // until it is acknowledged
    keep_frame(c, f);
    if (c.pool_handle != handle || !is_stream(c)) return false;
  }
  return true;
}

// What has its place on one lane cannot go by another any more.
bool TxQueue::has_enough(const Peer& p, const Connection& c) {
  if (spreads(p) && c.tx.count > 0 &&
      c.tx.frame(c.tx.count - 1).header.kind == FrameKind::kTransfer)
    return true;
  if (!c.tuning.frames.grown()) return false;
  std::uint64_t fixed = 0;
  for (int i = 0; i < c.tx.count; ++i) fixed += c.tx.frame(i).header.length;
  return c.tuning.frames.enough(fixed);
}

// Of what is offered, what goes in the first write.
std::uint64_t TxQueue::first_write(Connection& c, std::uint64_t offered) {
  Halves& halves = c.tuning.halves;
  if (!halves.chooses(offered) || core_.mode.background) return offered;
  if (halves.next()) halves.left(core_.net.now_ns());
  return halves.first(offered);
}

// Of `offered` bytes the kernel took all, or not.
void TxQueue::note_taken(Connection& c, bool whole, std::uint64_t offered) {
  if (!whole) ++core_.counters.writes_full;
  c.tuning.frames.taken(whole, offered);
}

void TxQueue::flush(int peer) {
  if (Connection* const c = core_.peers[peer].connection; c != nullptr) flush(*c);
}

void TxQueue::flush(Connection& c) {
  const int peer = c.peer;
  const Peer& p = core_.peers[peer];
  write_out(c);
  if (p.lanes != nullptr && p.lanes->spread) [[unlikely]]
    flush_lanes(peer);
}

// What the kernel takes on one connection.
void TxQueue::write_out(Connection& connection) {
  Connection* c = &connection;
  if (c->state != ConnectionState::kUp || c->tx.flushing) return;
  const int peer = c->peer;
  Peer& p = core_.peers[peer];
  if (p.corks > 0) return;
  c->tx.flushing = true;
  DeferFree defer(core_);  // c stays readable memory even if it is lost below
  if (!begin_flush(*c)) {
    c->tx.flushing = false;
    return;
  }
  bool settled = false;
  for (;;) {
    while (c->tx.count < ConnectionTx::kFrames && !has_enough(p, *c) && commit_next(p, *c)) {}
    if (c->tx.count == 0 && !settled) {
      settled = true;
      settle(*c);
      if (c->state != ConnectionState::kUp) break;
      continue;  // what was completed may have sent something
    }
    if (c->tx.count == 0) {
      if (!c->tx.kept.told) readiness_.set_interest(*c, c->interest & ~kWritable);
      break;
    }
    if (!may_commit(*c, 0)) break;  // other peers have what there was when these were committed
    iovec parts[kIovsMax];
    int parts_count = 0;
    std::uint64_t offered = list_frames(c->tx, parts, parts_count);
    if (const std::uint64_t first = first_write(*c, offered); first < offered)
      offered = shorten(parts, parts_count, first);
    c->tuning.halves.wrote(offered);
    const bool timed = p.lanes != nullptr && p.lanes->policy.tries();
    const std::int64_t began = timed ? core_.net.now_ns() : 0;
    const std::int64_t n = core_.net.write(c->fd, parts, parts_count);
    if (timed) p.lanes->write_ns += core_.net.now_ns() - began;
    trace(TraceEvent::kWrite, peer, static_cast<std::uint64_t>(n), offered);
    ++core_.counters.writes;
    if (n < 0 && n != -EAGAIN) {
      c->tx.flushing = false;
      up_.lose_stream(*c, write_loss(n), StreamFailure::kOfWrite);
      break;
    }
    if (n > 0 && !advance(*c, static_cast<std::uint64_t>(n))) break;
    const bool whole = n == static_cast<std::int64_t>(offered);
    note_taken(*c, whole, offered);
    settled = false;
    if (!whole) {
      if (c->tx.kept.awaited > 0) await(*c);
      readiness_.set_interest(*c, c->interest | kWritable);
      if (timed && c->state == ConnectionState::kUp) up_.lanes_wait(peer);
      break;
    }
  }
  c->tx.flushing = false;
}

void TxQueue::give(SendOp* op) {
  if (op->block != nullptr) {
    if (core_.mode.in_signal_handler) {  // free() is not for the handler: refill() does it
      op->next = stale_;
      stale_ = op;
      return;
    }
    free_copy(op->block);
    op->block = nullptr;
    kept_bytes_ -= op->total;
  }
  if (op->control_block != nullptr) control_blocks_.give(op->control_block);
  sends_.give(op);
}

// Done, well or badly. The callback may send, release, or lose the peer.
void TxQueue::finish(SendOp* op, int error) {
  if (!op->taken) --core_.underway.queued_sends;
  if (op == gather_op_) gather_op_ = nullptr;
  op->done = true;
  op->error = error;
  if (op->on_done != nullptr) {
    auto* done = op->on_done;
    void* arg = op->arg;
    give(op);
    done(arg, error);
  } else if (op->released) {
    give(op);
  }
}

std::uint64_t TxQueue::queued_bytes(int peer) const {
  Peer& p = core_.peers[peer];
  std::uint64_t bytes = gathered_peer_ == peer ? gathered_bytes_ : 0;
  for (const SendQueue* q :
       {&p.control, &p.bulk, p.lanes != nullptr ? &p.lanes->transfers : nullptr})
    for (const SendOp* op = q != nullptr ? q->head : nullptr; op != nullptr; op = op->next)
      bytes += op->total - op->committed;
  for_each_stream(p, [&bytes](const Connection& c) {
    for (int i = 0; i < c.tx.count; ++i) {
      const OutFrame& f = c.tx.frame(i);
      bytes += f.header.length - payload_sent(f.header, f.sent);
    }
  });
  return bytes;
}

void TxQueue::fail_sends(int peer, int error) {
  Peer& p = core_.peers[peer];
  // Operations with frames first: some of them stand in the queue as well (partly committed), and
  // are finished there.
  if (Connection* c = p.connection; c != nullptr) {
    fail_kept(*c, error);
    if (gathered_peer_ == peer) commit_gathered(*c);
    while (c->tx.count > 0) {
      SendOp* op = c->tx.frame(0).op;
      c->tx.pop();
      end_frame(op, error);
    }
  }
  for (int i = 1; p.lanes != nullptr && i < kLanesMax; ++i) {
    Lane& lane = p.lanes->lane[i];
    if (lane.connection != nullptr) lane.connection->tx.count = 0;
    fail_frames(lane.out, error);
  }
  if (p.lanes != nullptr) fail_frames(p.lanes->again, error);
  for (SendQueue* q : {&p.control, &p.bulk, p.lanes != nullptr ? &p.lanes->transfers : nullptr}) {
    while (q != nullptr && q->head != nullptr) {
      SendOp* op = q->head;
      q->head = op->next;
      if (q->head == nullptr) q->tail = nullptr;
      finish(op, error);
    }
  }
}

int TxQueue::send(int peer, FrameKind kind, std::uint64_t id, const Memory& data,
                  std::uint64_t bytes, SendOp*& out, std::uint64_t from) {
  out = nullptr;
  if (const int rc = ensure_connection(peer); rc < 0) return rc;
  // Ordinary context leaves the handler what it needs for a packet (headroom()).
  if (!core_.mode.in_signal_handler && sends_.free_count() <= kSendsPerPacket)
    static_cast<void>(sends_.reserve(64));
  if (sends_.free_count() == 0) return -ENOBUFS;
  if (kind != FrameKind::kMessage && is_long(bytes - from)) up_.want_lanes(peer);
  SendOp* op = sends_.take();
  op->data = data.buffer;
  op->pieces = data.pieces;
  op->uncommitted.piece = data.pieces;
  if (from > 0 && data.pieces != nullptr) op->uncommitted.skip(from);
  op->total = bytes;
  op->committed = from;
  op->id = id;
  op->kind = kind;
  op->peer = peer;
  enqueue(core_.peers[peer], op);
  {
    DeferFree defer(core_);
    flush(peer);
  }
  int error = 0;
  out = unless_done(op, error);
  return -error;
}

void TxQueue::on_done(SendOp* op, void (*done)(void* arg, int error), void* arg) {
  if (op->done) {
    const int error = op->error;
    give(op);
    done(arg, error);
    return;
  }
  op->on_done = done;
  op->arg = arg;
}

// Frames that are fixed already point into the data, so they are moved along.
bool TxQueue::keep_copy(SendOp* op) {
  if (op->done || op->total == 0) return true;
  if (kept_bytes_ + op->total > core_.options.send_copy_max) return false;
  std::uint8_t* block = new_copy(op->total);
  if (block == nullptr) return false;
  copy(block, op->pieces != nullptr ? Memory::in_pieces(op->pieces) : op->data, op->total);
  for_each_stream(core_.peers[op->peer], [op, block](Connection& c) {
    for (int i = 0; i < c.tx.count; ++i) {
      OutFrame& f = c.tx.frame(i);
      if (f.op != op) continue;
      f.payload = block + f.header.offset;
      f.pieces = {};
    }
  });
  op->data = op->block = block;
  op->pieces = nullptr;
  op->uncommitted = {};
  kept_bytes_ += op->total;
  return true;
}

void TxQueue::release(SendOp* op) {
  if (op->done) return give(op);
  // In a completion that has lost the peer there is no connection any more.
  Connection* const c = core_.peers[op->peer].connection;
  if (op->kept > 0 && c != nullptr) c->tx.kept.awaited -= op->kept;
  op->released = true;
}

}  // namespace mplite
