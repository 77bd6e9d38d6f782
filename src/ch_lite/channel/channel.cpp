// The channel interface on the engine: channel messages, transfers and their ids, completion.
// Control packets pass through; the engine's sinks for channel and transfer frames are here.
#include "ch_lite/channel/channel.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "ch_lite/channel/channel_state.h"
#include "mplite/engine/engine.h"
#include "mplite/runtime/wait_loop.h"

namespace mplite {
namespace {

ChannelState* g_channel = nullptr;  // see channel_bind

Engine& engine() { return *g_channel->engine; }

// What an id stands for: the operation, if the id is live and of one of these kinds.
ChannelOp* find(MPID_ChannelId id) { return id == 0 ? nullptr : g_channel->ops.find(id); }

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

ChannelOp* make_op(ChannelOpKind kind, int peer, const Memory& memory, std::size_t size) {
  ChannelState& s = *g_channel;
  if (s.ops.free_count() == 0 && (engine().async() || !s.ops.reserve(64))) return nullptr;
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

// Where the message's bytes from `offset` on go; its pieces were moved up to there.
Destination destination_at(const ChannelOp& op, std::uint64_t offset) {
  if (offset >= op.size) return {};
  return {op.buffer != nullptr ? op.buffer + offset : nullptr, op.size - offset, op.pieces};
}

void count_arrived(ChannelOp& op, std::uint64_t bytes) {
  if (op.pieces && op.arrived < op.size) op.pieces.skip(std::min(bytes, op.size - op.arrived));
  op.arrived += bytes;
}

// ---- sinks: called by the engine, gate held, perhaps in the handler ----

Verdict begin_channel(void*, int peer, const FrameHeader& header, Destination& destination) {
  ChannelOp* op = g_channel->peers[peer].fifo_head;
  if (op == nullptr) return header.offset == 0 ? Verdict::kPause : Verdict::kReject;
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

Verdict begin_transfer(void*, int peer, const FrameHeader& header, Destination& destination) {
  ChannelOp* op = find_transfer(header.id);
  if (op == nullptr) return Verdict::kTake;  // withdrawn, or finished: read and thrown away
  if (op->peer == MPID_ANY_PARTNER && op->kind == ChannelOpKind::kRecvTransfer) {
    unlink(op);
    op->peer = peer;
    link(op);
  }
  if (op->kind != ChannelOpKind::kRecvTransfer || op->peer != peer) return Verdict::kReject;
  if (!op->started) return Verdict::kPause;  // created, and its buffer is not known yet
  if (op->done || header.offset != op->arrived)
    return Verdict::kReject;  // it has been here already
  destination = destination_at(*op, header.offset);
  op->arriving = true;
  return Verdict::kTake;
}

// An id is easy to guess: the transfer that it names now may have been created while a frame that
// was thrown away was arriving, and may be another peer's.
void end_transfer(void*, int, const FrameHeader& header) {
  ChannelOp* op = find_transfer(header.id);
  if (op == nullptr || !op->arriving) return;
  op->arriving = false;
  count_arrived(*op, header.length);
  if (op->arrived >= header.total) complete(op, static_cast<std::int64_t>(header.total));
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

void on_sent(void* arg, int error) { complete(static_cast<ChannelOp*>(arg), -error); }

// ---- shared by the calls ----

int start_send(const Memory& memory, std::size_t size, int dest, FrameKind kind, std::uint64_t id,
               MPID_ChannelId* out, std::size_t from = 0) {
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

int start_receive_transfer(const Memory& memory, std::size_t size, int partner, MPID_TransferId id,
                           MPID_ChannelId* rid) {
  *rid = 0;
  ChannelOp* op = find(id);
  if (op == nullptr ||
      (op->kind != ChannelOpKind::kRecvTransfer && op->kind != ChannelOpKind::kOrphan) ||
      (op->peer != partner && partner != MPID_ANY_PARTNER))
    return -EINVAL;
  op->buffer = memory.buffer;
  op->pieces = {memory.pieces};
  op->size = size;
  if (op->pieces) op->pieces.skip(std::min<std::uint64_t>(op->arrived, size));
  op->started = true;
  *rid = id;
  if (op->peer >= 0) engine().resume_rx(op->peer);
  return 0;
}

// 1 done, 0 not yet, -errno failed and gone. `keep`: a well-ended operation stays for the call that
// fetches its length.
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

constexpr std::uint64_t kStashBytesMax = 64u << 20;

// Control packets overtake bulk on the stream, so the piece that a caller waits for may stand
// behind packets that only the caller could take. A caller with a progress function takes them
// there; for one without, they are kept here in order. At the bound the peer is held up.
void stash_control() {
  ChannelState& s = *g_channel;
  while (s.stash_bytes < kStashBytesMax && engine().control_ready()) {
    auto* kept =
        static_cast<StashedControl*>(std::malloc(sizeof(StashedControl) + kControlBytesMax));
    if (kept == nullptr) return;  // it stays where it is
    kept->length = engine().take_control(kept + 1, kControlBytesMax, kept->from);
    if (auto* fitted =
            static_cast<StashedControl*>(std::realloc(kept, sizeof(StashedControl) + kept->length));
        fitted != nullptr)
      kept = fitted;
    kept->next = nullptr;
    (s.stash_tail != nullptr ? s.stash_tail->next : s.stash_head) = kept;
    s.stash_tail = kept;
    s.stash_bytes += kept->length;
  }
}

// Polls, and lets the layer above act on what came (or no peer could get through to us).
void poll_and_serve() {
  ChannelState& s = *g_channel;
  engine().refill();
  if (s.progress != nullptr) return s.progress(s.progress_arg);
  engine().poll();
  stash_control();
}

// Only who waits without a progress function fills the stash, and nobody with a handler does.
MPLITE_ORDINARY int take_stashed(void* packet, int size, int* from) {
  StashedControl* kept = g_channel->stash_head;
  g_channel->stash_head = kept->next;
  if (kept->next == nullptr) g_channel->stash_tail = nullptr;
  g_channel->stash_bytes -= kept->length;
  const std::uint32_t length = kept->length;
  std::memcpy(packet, kept + 1, std::min(length, static_cast<std::uint32_t>(size)));
  *from = kept->from;
  std::free(kept);
  return static_cast<int>(length);
}

// Not by poll_and_serve: the progress function would take the packet that is waited for.
MPLITE_ORDINARY void wait_for_control() {
  WaitLoop waiting;
  waiting.run(engine(), g_channel->wait_policy, [] {
    engine().poll();
    if (engine().control_ready()) return WaitLoop::done();
    engine().refill();
    return WaitLoop::rest(engine().net().now_ns());
  });
}

// False: not yet. Else it is gone, with its result.
bool take_result(MPID_ChannelId id, std::int64_t& result) {
  ChannelOp* op = find(id);
  if (op != nullptr && !op->done) return false;
  result = op == nullptr ? -EINVAL : op->result;
  if (op != nullptr) free_op(op);
  return true;
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

}  // namespace

ChannelState::ChannelState(Engine& e)
    : engine(&e), wait_policy(choose_wait_policy(1, 1, -1, false)) {
  if (peer_table.start(static_cast<std::size_t>(e.size()),
                       static_cast<std::size_t>(e.size()) + Engine::kRemoteMax))
    peers = peer_table.data();
  ops.reserve(64);
  e.set_sink(FrameKind::kChannel, {this, begin_channel, end_channel});
  e.set_sink(FrameKind::kTransfer, {this, begin_transfer, end_transfer});
  e.set_lost(on_lost, this);
  e.set_introduce(on_introduce, this);
}

ChannelState::~ChannelState() {
  while (stash_head != nullptr) {
    StashedControl* next = stash_head->next;
    std::free(stash_head);
    stash_head = next;
  }
}

void channel_bind(ChannelState* state) { g_channel = state; }
ChannelState* channel_bound() { return g_channel; }
Gate& channel_gate() { return engine().gate(); }
Counters& channel_counters() { return engine().counters(); }

}  // namespace mplite

using namespace mplite;

// ---- the five ----

int MPID_ControlMsgAvail(void) {
  Hold hold(engine().gate());
  if (g_channel->stash_head != nullptr || engine().control_ready()) return 1;
  engine().poll();
  return engine().control_ready() ? 1 : 0;
}

int MPID_ControlMsgMore(void) {
  if (engine().exhaustive()) return MPID_ControlMsgAvail();
  return g_channel->stash_head != nullptr || engine().control_ready() ? 1 : 0;
}

int MPID_RecvAnyControl(void* pkt, int size, int* from) {
  Hold hold(engine().gate());
  if (g_channel->stash_head != nullptr) return take_stashed(pkt, size, from);
  if (!engine().control_ready()) wait_for_control();
  return static_cast<int>(engine().take_control(pkt, static_cast<std::uint32_t>(size), *from));
}

int MPID_ViewAnyControl(const void** pkt, void* spare, int* from) {
  if (g_channel->stash_head != nullptr || !engine().control_ready()) {
    *pkt = spare;
    return MPID_RecvAnyControl(spare, MPID_CONTROL_BYTES_MAX, from);
  }
  const std::uint8_t* packet = nullptr;
  const std::uint32_t length = engine().view_control(&packet, *from);
  *pkt = packet;
  return static_cast<int>(length);
}

int MPID_NextControl(const void** pkt, void* spare, int* from, int* more) {
  *more = 1;
  if (g_channel->stash_head != nullptr) [[unlikely]] {
    *pkt = spare;
    return take_stashed(spare, MPID_CONTROL_BYTES_MAX, from);
  }
  const std::uint8_t* packet = nullptr;
  bool alone = false;
  const std::uint32_t length = engine().next_control(&packet, *from, alone);
  *more = alone ? 0 : 1;
  *pkt = packet;
  return static_cast<int>(length);
}

int MPID_SendControl(const void* pkt, int size, int dest) {
  Hold hold(engine().gate());
  const iovec part = {const_cast<void*>(pkt), static_cast<std::size_t>(size)};
  return engine().send_control(dest, &part, 1);
}

int MPID_SendControlData(const void* pkt, int size, const void* data, int bytes, int dest) {
  Hold hold(engine().gate());
  const iovec parts[2] = {{const_cast<void*>(pkt), static_cast<std::size_t>(size)},
                          {const_cast<void*>(data), static_cast<std::size_t>(bytes)}};
  return engine().send_control(dest, parts, bytes > 0 ? 2 : 1);
}

static_assert(MPID_CONTROL_BYTES_MAX == kControlBytesMax &&
              MPID_CONTROL_HEAD == kFrameHeaderBytes && MPID_CONTROL_FLAT == Engine::kFlatBytes);

int MPID_SendControlInPlace(void* pkt, int size, const void* data, int bytes, int dest) {
  return engine().send_control_in_place(dest, static_cast<std::uint8_t*>(pkt),
                                        static_cast<std::uint32_t>(size), data,
                                        static_cast<std::uint32_t>(bytes));
}

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
  ChannelState& s = *g_channel;
  if (s.ops.free_count() == 0 && (engine().async() || !s.ops.reserve(64))) return -EAGAIN;
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

// ---- transfers ----

void MPID_CreateSendTransfer(const void*, size_t, int, MPID_TransferId* id) { *id = 0; }

int MPID_CreateRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId* id) {
  Hold hold(engine().gate());
  *id = 0;
  if (partner != MPID_ANY_PARTNER)
    if (const int error = engine().peer_error(partner); error != 0) return -error;
  ChannelOp* op = make_op(ChannelOpKind::kRecvTransfer, partner, buf, size);
  if (op == nullptr) return -ENOBUFS;
  *id = op->pool_handle;
  return 0;
}

uint32_t MPID_TransferShortName(MPID_TransferId id) { return Pool<ChannelOp>::short_name(id); }

int MPID_StartNBRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId id,
                             MPID_ChannelId* rid) {
  Hold hold(engine().gate());
  return start_receive_transfer(buf, size, partner, id, rid);
}

int MPID_TestNBRecvTransfer(MPID_ChannelId rid) {
  Hold hold(engine().gate());
  return test(rid, true);
}

int64_t MPID_EndNBRecvTransfer(MPID_TransferId id, MPID_ChannelId) {
  Hold hold(engine().gate());
  return wait_for(id);
}

int MPID_StartRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId id,
                           MPID_ChannelId* rid) {
  return MPID_StartNBRecvTransfer(buf, size, partner, id, rid);
}

int MPID_TestRecvTransfer(MPID_ChannelId rid) { return MPID_TestNBRecvTransfer(rid); }

int64_t MPID_EndRecvTransfer(void*, size_t, int, MPID_TransferId id, MPID_ChannelId rid) {
  return MPID_EndNBRecvTransfer(id, rid);
}

int64_t MPID_RecvTransfer(void* buf, size_t size, int partner, MPID_TransferId id) {
  Hold hold(engine().gate());
  MPID_ChannelId rid = 0;
  const int rc = MPID_StartNBRecvTransfer(buf, size, partner, id, &rid);
  return rc < 0 ? rc : wait_for(rid);
}

int MPID_StartNBSendTransfer(const void* buf, size_t size, int partner, MPID_TransferId id,
                             MPID_ChannelId* sid) {
  Hold hold(engine().gate());
  return start_send(buf, size, partner, FrameKind::kTransfer, id, sid);
}

int MPID_StartNBSendTransferRest(const void* buf, const struct iovec* pieces, size_t from,
                                 size_t size, int partner, MPID_TransferId id,
                                 MPID_ChannelId* sid) {
  Hold hold(engine().gate());
  return start_send(pieces != nullptr ? Memory::in_pieces(pieces) : Memory(buf), size, partner,
                    FrameKind::kTransfer, id, sid, from);
}

int MPID_StartNBRecvTransferRest(void* buf, const struct iovec* pieces, size_t from, size_t size,
                                 int partner, MPID_TransferId id, MPID_ChannelId* rid) {
  Hold hold(engine().gate());
  *rid = 0;
  ChannelOp* op = find(id);
  if (op == nullptr || op->arrived != 0) return -EINVAL;
  op->arrived = from;
  return start_receive_transfer(pieces != nullptr ? Memory::in_pieces(pieces) : Memory(buf), size,
                                partner, id, rid);
}

int MPID_TestNBSendTransfer(MPID_ChannelId sid) { return MPID_TSendChannel(sid); }

int MPID_EndNBSendTransfer(MPID_TransferId, MPID_ChannelId sid) { return MPID_WSendChannel(sid); }

int MPID_StartSendTransfer(const void* buf, size_t size, int partner, MPID_TransferId id,
                           MPID_ChannelId* sid) {
  return MPID_StartNBSendTransfer(buf, size, partner, id, sid);
}

int MPID_TestSendTransfer(MPID_ChannelId sid) { return MPID_TSendChannel(sid); }

int MPID_EndSendTransfer(const void*, size_t, int, MPID_TransferId, MPID_ChannelId sid) {
  return MPID_WSendChannel(sid);
}

int MPID_SendTransfer(const void* buf, size_t size, int partner, MPID_TransferId id) {
  Hold hold(engine().gate());
  MPID_ChannelId sid = 0;
  const int rc = MPID_StartNBSendTransfer(buf, size, partner, id, &sid);
  return rc < 0 ? rc : static_cast<int>(wait_for(sid));
}

void MPID_CancelRecvTransfer(MPID_TransferId id, MPID_ChannelId) {
  Hold hold(engine().gate());
  ChannelOp* op = find(id);
  if (op == nullptr ||
      (op->kind != ChannelOpKind::kRecvTransfer && op->kind != ChannelOpKind::kOrphan))
    return;
  const int peer = op->peer;
  const bool parked = op->kind == ChannelOpKind::kRecvTransfer && !op->started;
  if (peer >= 0) {
    engine().redirect(peer, FrameKind::kTransfer, id, {});
    engine().redirect(peer, FrameKind::kTransfer, MPID_TransferShortName(id), {});
  }
  free_op(op);
  if (peer >= 0 && parked) engine().resume_rx(peer);
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

void MPID_ChannelSetProgress(void (*progress)(void* arg), void* arg) {
  g_channel->progress = progress;
  g_channel->progress_arg = arg;
}

void MPID_ChannelGather(int on) { engine().set_gather(on != 0); }

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

int MPID_ChannelDeparted(int peer) { return engine().departed(peer) ? 1 : 0; }

void MPID_ChannelRandom(void* bytes, size_t count) { engine().random(bytes, count); }

int MPID_ChannelInHandler(void) { return engine().async() ? 1 : 0; }

int MPID_ChannelHeadroom(void) {
  return engine().headroom() && g_channel->ops.free_count() >= Engine::kSendsPerPacket ? 1 : 0;
}

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

int64_t MPID_ChannelRoundTrip(int peer) {
  Hold hold(engine().gate());
  return engine().round_trip_ns(peer);
}

void MPID_ChannelReach(int peer) {
  Hold hold(engine().gate());
  engine().reach(peer);  // an error comes by the lost callback
}

int MPID_ChannelPeerError(int peer) { return engine().peer_error(peer); }

const char* MPID_ChannelDescribe(int peer, char* text, size_t size) {
  return engine().describe(peer, text, size);
}

uint64_t MPID_ChannelQueued(void) { return engine().queued_sends(); }
