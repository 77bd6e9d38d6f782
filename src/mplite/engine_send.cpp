// The way out: send operations are queued per peer, cut into frames, and written many frames to a system call.
// Control goes before bulk; bulk transfers take turns; channel messages keep their order.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine.h"

namespace mplite {
namespace {

constexpr std::uint64_t kAlignedMin = 16 * 1024;  // payloads from here on are aligned: below, it makes no difference
constexpr int kControlPartsMax = 3;
constexpr std::uint8_t kPadding[kPayloadAlignment] = {};
constexpr std::uint32_t kFrameGrowth = 16;

FrameHeader make_header(FrameKind kind, std::uint32_t length, std::uint64_t id, std::uint64_t offset, std::uint64_t total) {
  return FrameHeader{kFrameMagic, 0, kWireVersion, kind, length, id, offset, total};
}

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

// Header and payload in one piece.
void flatten(std::uint8_t* at, const FrameHeader& header, const iovec* parts, int parts_count) {
  std::memcpy(at, &header, sizeof header);
  at += sizeof header;
  for (int i = 0; i < parts_count; ++i) {
    if (parts[i].iov_len > 0) std::memcpy(at, parts[i].iov_base, parts[i].iov_len);
    at += parts[i].iov_len;
  }
}

// What precedes the payload.
std::uint64_t head_bytes(const FrameHeader& header) { return kFrameHeaderBytes + header.pad; }

// Of a frame's payload, when `sent` bytes of head and payload are out.
std::uint64_t payload_sent(const FrameHeader& header, std::uint64_t sent) { return sent > head_bytes(header) ? sent - head_bytes(header) : 0; }

// That the payload, behind `before` bytes of the stream, lies to the cache's lines as it does in memory.
std::uint8_t pad_between(std::uint64_t before, const void* payload) {
  return static_cast<std::uint8_t>((reinterpret_cast<std::uintptr_t>(payload) - before) % kPayloadAlignment);
}

MPLITE_ORDINARY std::uint8_t* new_copy(std::uint64_t bytes) { return static_cast<std::uint8_t*>(std::malloc(bytes)); }
MPLITE_ORDINARY void free_copy(std::uint8_t* copy) { std::free(copy); }

}  // namespace

void Engine::enqueue(Peer& p, SendOp* op) {
  Queue& q = op->kind == FrameKind::kControl ? p.control : p.bulk;
  op->next = nullptr;
  (q.tail != nullptr ? q.tail->next : q.head) = op;
  q.tail = op;
  ++queued_sends_;
}

// Where the kernel copies to and from goes on where the last copy ended, in pages of its own that a thread's sockets share: a long payload is copied faster (3 to 5 % of a message's
// time; both copies) if it lies to the cache's lines there as it does in the user's buffer. So many bytes of padding put it there, as far as can be known here.
std::uint8_t Engine::padding(const Connection& c, const void* payload) const {
  std::uint64_t before = written_[writer()] + kFrameHeaderBytes;
  for (int i = 0; i < c.out_count; ++i) {
    const OutFrame& f = c.out[(c.out_first + i) % Connection::kOutFrames];
    before += head_bytes(f.header) + f.header.length - f.sent;
  }
  return pad_between(before, payload);
}

// Fixes the place of one more frame in the stream. False: nothing left to commit.
bool Engine::commit_next(Peer& p, Connection& c) {
  Queue& q = p.control.head != nullptr ? p.control : p.bulk;
  SendOp* op = q.head;
  if (op == nullptr) return false;
  OutFrame& f = c.out[(c.out_first + c.out_count) % Connection::kOutFrames];
  const std::uint64_t rest = op->total - op->committed;
  const bool whole = op->kind == FrameKind::kControl || rest <= c.frame_bytes;
  const auto length = static_cast<std::uint32_t>(whole ? rest : c.frame_bytes);
  f.header = make_header(op->kind, length, op->id, op->committed, op->kind == FrameKind::kControl ? length : op->total);
  f.op = op;
  f.pieces = op->uncommitted;
  if (op->pieces == nullptr)
    f.payload = op->data + op->committed;
  else
    op->uncommitted.skip(length);
  if (op->kind != FrameKind::kControl && length >= kAlignedMin && op->pieces == nullptr) f.header.pad = padding(c, f.payload);
  f.sent = 0;
  op->committed += length;
  ++op->frames;
  ++c.out_count;
  ++counters_.frames_out;
  if (op->committed == op->total) {
    op->all_committed = true;
    q.head = op->next;
    if (q.head == nullptr) q.tail = nullptr;
    op->next = nullptr;
  } else if (op->kind == FrameKind::kTransfer && op->next != nullptr) {
    q.head = op->next;  // the next transfer's turn
    op->next = nullptr;
    q.tail->next = op;
    q.tail = op;
  }
  return true;
}

// The kernel took `bytes` more. False: a completion lost the connection under us.
bool Engine::advance(Connection& c, std::uint64_t bytes) {
  const std::uint64_t handle = c.pool_handle;
  count_written(bytes);
  while (bytes > 0) {
    OutFrame& f = c.out[c.out_first];
    const std::uint64_t rest = head_bytes(f.header) + f.header.length - f.sent;
    if (bytes < rest) {
      if (f.pieces) f.pieces.skip(payload_sent(f.header, f.sent + bytes) - payload_sent(f.header, f.sent));
      f.sent += bytes;
      return true;
    }
    bytes -= rest;
    SendOp* op = f.op;
    op->written += f.header.length;
    --op->frames;
    c.out_first = (c.out_first + 1) % Connection::kOutFrames;
    --c.out_count;
    if (op->all_committed && op->frames == 0) {
      finish(op, 0);
      if (c.pool_handle != handle || c.state != ConnectionState::kUp) return false;
    }
  }
  return true;
}

// Whether the next frame may go straight to the socket.
bool Engine::idle(const Peer& p) const {
  const Connection* c = p.connection;
  return c != nullptr && c->state == ConnectionState::kUp && c->out_count == 0 && p.control.head == nullptr && p.bulk.head == nullptr && p.holds == 0;
}

// Copies the frame behind those that wait. False: it does not fit there, it has to take the ordinary way.
bool Engine::gather(int peer, const FrameHeader& header, const iovec* parts, int parts_count) {
  const auto bytes = static_cast<std::uint32_t>(kFrameHeaderBytes + header.length);
  if (gathered_ == 0) {
    if (gather_op_ != nullptr || !idle(peers_[peer]) || sends_.free_count() == 0) return false;
    gather_op_ = sends_.take();
    gather_op_->peer = peer;
    gather_op_->released = true;
    gathered_peer_ = peer;
    gathered_bytes_ = 0;
  } else if (gathered_peer_ != peer || kGatherBytes - gathered_bytes_ < bytes) {
    return false;
  }
  flatten(gather_buffer_ + gathered_bytes_, header, parts, parts_count);
  gathered_bytes_ += bytes;
  ++gathered_;
  ++counters_.gathered;
  ++counters_.frames_out;
  return true;
}

// Gives what was gathered its place in the stream: one more frame, whose header is out already.
void Engine::commit_gathered(Connection& c) {
  SendOp* op = gather_op_;
  OutFrame& f = c.out[(c.out_first + c.out_count) % Connection::kOutFrames];
  f.header = make_header(FrameKind::kControl, gathered_bytes_, 0, 0, gathered_bytes_);
  f.op = op;
  f.payload = gather_buffer_;
  f.pieces = {};
  f.sent = kFrameHeaderBytes;
  op->total = op->committed = gathered_bytes_;
  op->all_committed = true;
  ++op->frames;
  ++c.out_count;
  ++queued_sends_;
  gathered_ = 0;
  gathered_peer_ = -1;
}

void Engine::flush_gathered() {
  if (gathered_ == 0) return;
  if (async_) ++counters_.gathered_late;
  flush(gathered_peer_);
}

// While frames are long, fewer are fixed ahead: what is fixed and not taken is in front of whatever comes next.
bool Engine::has_enough(const Connection& c) const {
  if (c.frame_bytes <= options_.frame_bytes) return false;
  std::uint64_t fixed = 0;
  for (int i = 0; i < c.out_count; ++i) fixed += c.out[(c.out_first + i) % Connection::kOutFrames].header.length;
  return fixed != 0 && fixed + c.frame_bytes > kFrameGrowth * std::uint64_t{options_.frame_bytes};
}

// Of what is offered, what goes in the first write (EngineOptions::split_min).
std::uint64_t Engine::first_write(Connection& c, std::uint64_t offered) {
  if (offered < options_.split_min || offered >= options_.split_end || !c.answered || patient_) return offered;
  if (!c.whole.trying())
    c.whole.pass();
  else if (c.asked && c.heard_ns != 0)
    c.whole.took(c.heard_ns - c.asked_ns);
  c.asked = c.whole.trying();
  c.heard_ns = 0;
  if (c.asked) c.asked_ns = net_.now_ns();
  return c.whole.second() ? offered : offered / 2;
}

// Of `offered` bytes the kernel took all, or not.
void Engine::note_taken(Connection& c, bool whole, std::uint64_t offered) {
  if (!whole) {
    ++counters_.writes_full;
    c.frame_bytes = options_.frame_bytes;
  } else if (offered >= c.frame_bytes && c.frame_bytes < kFrameGrowth * options_.frame_bytes) {
    c.frame_bytes = std::min({2 * c.frame_bytes, kFrameGrowth * options_.frame_bytes, kFrameBytesMax});
  }
}

void Engine::flush(int peer) {
  Peer& p = peers_[peer];
  Connection* c = p.connection;
  if (c == nullptr || c->state != ConnectionState::kUp || c->flushing || p.holds > 0) return;
  c->flushing = true;
  ++depth_;  // c stays readable memory even if it is lost below
  if (gathered_peer_ == peer) commit_gathered(*c);
  for (;;) {
    while (c->out_count < Connection::kOutFrames && !has_enough(*c) && commit_next(p, *c)) {
    }
    if (c->out_count == 0) {
      set_interest(*c, c->interest & ~kWritable);
      break;
    }
    iovec parts[kIovsMax];
    int parts_count = 0;
    std::uint64_t offered = 0;
    for (int i = 0; i < c->out_count && parts_count < kIovsMax; ++i) {
      OutFrame& f = c->out[(c->out_first + i) % Connection::kOutFrames];
      if (f.sent < kFrameHeaderBytes) {
        parts[parts_count++] = {reinterpret_cast<std::uint8_t*>(&f.header) + f.sent, kFrameHeaderBytes - f.sent};
        offered += kFrameHeaderBytes - f.sent;
      }
      if (f.sent < head_bytes(f.header) && f.header.pad > 0) {
        if (parts_count == kIovsMax) break;
        const std::uint64_t rest = std::min<std::uint64_t>(f.header.pad, head_bytes(f.header) - f.sent);
        parts[parts_count++] = {const_cast<std::uint8_t*>(kPadding), rest};
        offered += rest;
      }
      const std::uint64_t skip = payload_sent(f.header, f.sent);
      const std::uint64_t rest = f.header.length - skip;
      if (rest == 0) continue;
      if (!f.pieces) {
        if (parts_count == kIovsMax) break;
        parts[parts_count++] = {const_cast<std::uint8_t*>(f.payload) + skip, rest};
        offered += rest;
        continue;
      }
      std::uint64_t listed = 0;
      parts_count += f.pieces.list(rest, parts + parts_count, kIovsMax - parts_count, listed);
      offered += listed;  // less than the rest only when the list is full, which ends the loop
    }
    if (const std::uint64_t first = first_write(*c, offered); first < offered) offered = shorten(parts, parts_count, first);
    if (offered >= options_.split_min / 2) c->answered = false;
    const std::int64_t n = net_.write(c->fd, parts, parts_count);
    ++counters_.writes;
    if (n < 0 && n != -EAGAIN) {
      c->flushing = false;
      lose(peer, static_cast<int>(-n));
      break;
    }
    if (n > 0 && !advance(*c, static_cast<std::uint64_t>(n))) break;
    const bool whole = n == static_cast<std::int64_t>(offered);
    note_taken(*c, whole, offered);
    if (!whole) {
      set_interest(*c, c->interest | kWritable);
      break;
    }
  }
  c->flushing = false;
  --depth_;
  bury();
}

void Engine::give(SendOp* op) {
  if (op->block != nullptr) {
    if (async_) {  // free() is not for the handler: refill() does it
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
void Engine::finish(SendOp* op, int error) {
  --queued_sends_;
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

void Engine::fail_sends(int peer, int error) {
  Peer& p = peers_[peer];
  Connection* c = p.connection;
  // Operations in the ring first: some of them stand in the queue as well (partly committed), and are finished there.
  if (c != nullptr) {
    if (gathered_peer_ == peer) commit_gathered(*c);
    while (c->out_count > 0) {
      SendOp* op = c->out[c->out_first].op;
      c->out_first = (c->out_first + 1) % Connection::kOutFrames;
      --c->out_count;
      --op->frames;
      if (op->all_committed && op->frames == 0) finish(op, error);
    }
  }
  for (Queue* q : {&p.control, &p.bulk}) {
    while (q->head != nullptr) {
      SendOp* op = q->head;
      q->head = op->next;
      if (q->head == nullptr) q->tail = nullptr;
      finish(op, error);
    }
  }
}

// Header and packet in one write, straight from the caller's memory. As Net::write. In a frame of its own, so that the copy is not on the stack under flush(): the handler's may be small.
[[gnu::noinline]] std::int64_t Engine::write_control(const Connection& c, const iovec* parts, int parts_count, std::uint32_t length) {
  const FrameHeader header = make_header(FrameKind::kControl, length, 0, 0, length);
  ++counters_.writes;
  if (length <= kFlatBytes) {
    std::uint8_t flat[kFrameHeaderBytes + kFlatBytes];
    flatten(flat, header, parts, parts_count);
    const iovec all = {flat, kFrameHeaderBytes + length};
    return net_.write(c.fd, &all, 1);
  }
  iovec all[1 + kControlPartsMax];
  all[0] = {const_cast<FrameHeader*>(&header), sizeof header};
  for (int i = 0; i < parts_count; ++i) all[1 + i] = parts[i];
  return net_.write(c.fd, all, 1 + parts_count);
}

int Engine::send_control(int peer, const iovec* parts, int parts_count) {
  if (const int rc = ensure_connection(peer); rc < 0) return rc;
  Peer& p = peers_[peer];
  std::uint64_t length = 0;
  for (int i = 0; i < parts_count; ++i) length += parts[i].iov_len;
  if (length == 0 || length > kControlBytesMax) return -EMSGSIZE;

  // Before the first byte is out: half a packet that cannot be kept would cost the connection.
  const bool large = length > SendOp::kInlineBytes;
  if (async_ && (sends_.free_count() == 0 || (large && control_blocks_.free_count() == 0))) return -ENOBUFS;

  if (gather_ && length <= kGatherPacketMax) {
    const FrameHeader header = make_header(FrameKind::kControl, static_cast<std::uint32_t>(length), 0, 0, length);
    if (gather(peer, header, parts, parts_count)) return 0;
    flush_gathered();
    if (gather(peer, header, parts, parts_count)) return 0;
    if (const int rc = ensure_connection(peer); rc < 0) return rc;  // lost meanwhile
  }
  if (!idle(p) || gathered_peer_ == peer || parts_count > kControlPartsMax) return keep_control(peer, parts, parts_count, length);
  return control_written(peer, parts, parts_count, length, write_control(*p.connection, parts, parts_count, static_cast<std::uint32_t>(length)));
}

int Engine::send_control_in_place(int peer, std::uint8_t* packet, std::uint32_t length, const void* data, std::uint32_t bytes) {
  iovec parts[2] = {{packet, length}, {const_cast<void*>(data), bytes}};
  const int parts_count = bytes != 0 ? 2 : 1;
  const std::uint32_t whole = length + bytes;
  const Peer& p = peers_[peer];
  Connection* c = p.connection;
  // Nothing is on its way out to anybody: as idle(), in fewer places.
  const bool clear = (queued_sends_ | static_cast<unsigned>(gathered_ | p.holds)) == 0 && !gather_;
  if (!clear || c == nullptr || c->state != ConnectionState::kUp || whole - 1 >= kControlBytesMax) [[unlikely]] return send_control(peer, parts, parts_count);
  new (packet - kFrameHeaderBytes) FrameHeader(make_header(FrameKind::kControl, whole, 0, 0, whole));  // where it leaves from: a copy would wait for the stores of its parts
  parts[0] = {packet - kFrameHeaderBytes, kFrameHeaderBytes + length};
  ++counters_.writes;
  const std::int64_t n = net_.write(c->fd, parts, parts_count);
  c->spoke = true;
  parts[0] = {packet, length};
  return control_written(peer, parts, parts_count, whole, n);
}

// What the kernel did not take of header and packet, of which Net::write has given `result`, is kept.
int Engine::control_written(int peer, const iovec* parts, int parts_count, std::uint64_t length, std::int64_t result) {
  if (result < 0 && result != -EAGAIN) {
    lose(peer, static_cast<int>(-result));
    return static_cast<int>(result);
  }
  const std::uint64_t sent = result > 0 ? static_cast<std::uint64_t>(result) : 0;
  count_written(sent);
  if (sent == kFrameHeaderBytes + length) [[likely]] {
    ++counters_.frames_out;
    return 0;
  }
  ++counters_.writes_full;
  return keep_control(peer, parts, parts_count, length, static_cast<std::int64_t>(sent));
}

// Copies the packet and queues it. `sent`: of header and packet, what is out already; -1: it has its turn yet.
int Engine::keep_control(int peer, const iovec* parts, int parts_count, std::uint64_t length, std::int64_t sent) {
  Peer& p = peers_[peer];
  const bool large = length > SendOp::kInlineBytes;
  // Without memory in ordinary context half a packet may be out, and then the connection is.
  SendOp* op = sends_.free_count() > 0 || (!async_ && sends_.reserve(64)) ? sends_.take() : nullptr;
  std::uint8_t* copy = nullptr;
  if (op != nullptr && !large) {
    copy = op->inline_bytes;
  } else if (op != nullptr && async_) {
    op->control_block = control_blocks_.take();
    copy = op->control_block->bytes;
  } else if (op != nullptr) {
    copy = op->block = new_copy(length);
    if (copy != nullptr) kept_bytes_ += length;
  }
  if (copy == nullptr) {
    if (op != nullptr) sends_.give(op);
    if (sent > 0) lose(peer, ENOBUFS);
    return -ENOBUFS;
  }
  op->data = copy;
  for (int i = 0; i < parts_count; ++i) {
    if (parts[i].iov_len > 0) std::memcpy(copy, parts[i].iov_base, parts[i].iov_len);
    copy += parts[i].iov_len;
  }
  op->total = length;
  op->peer = peer;
  op->kind = FrameKind::kControl;
  op->released = true;
  enqueue(p, op);
  if (sent < 0) {
    flush(peer);
    return 0;
  }
  Connection& c = *p.connection;
  commit_next(p, c);
  c.out[c.out_first].sent = static_cast<std::uint64_t>(sent);
  set_interest(c, c.interest | kWritable);
  return 0;
}

int Engine::send(int peer, FrameKind kind, std::uint64_t id, const Memory& data, std::uint64_t bytes, SendOp*& out, std::uint64_t from) {
  out = nullptr;
  if (const int rc = ensure_connection(peer); rc < 0) return rc;
  if (sends_.free_count() == 0 && (async_ || !sends_.reserve(64))) return -ENOBUFS;
  SendOp* op = sends_.take();
  op->data = data.buffer;
  op->pieces = data.pieces;
  op->uncommitted.piece = data.pieces;
  if (from > 0 && data.pieces != nullptr) op->uncommitted.skip(from);
  op->total = bytes;
  op->committed = op->written = from;
  op->id = id;
  op->kind = kind;
  op->peer = peer;
  enqueue(peers_[peer], op);
  ++depth_;
  flush(peer);
  --depth_;
  bury();
  if (op->done) {
    const int error = op->error;
    give(op);
    return -error;
  }
  out = op;
  return 0;
}

int Engine::send_behind(int peer, const iovec& packet, FrameKind kind, const void* data, std::uint64_t bytes, SendOp*& out) {
  out = nullptr;
  Peer& p = peers_[peer];
  if (!idle(p) || gather_ || gathered_peer_ == peer || bytes == 0 || packet.iov_len > kBehindPacketMax) return -EAGAIN;
  Connection* c = p.connection;
  if (bytes > c->frame_bytes || (sends_.free_count() < 2 && (async_ || !sends_.reserve(64)))) return -EAGAIN;

  std::uint8_t head[2 * kFrameHeaderBytes + kBehindPacketMax + kPayloadAlignment];
  flatten(head, make_header(FrameKind::kControl, static_cast<std::uint32_t>(packet.iov_len), 0, 0, packet.iov_len), &packet, 1);
  std::uint64_t ahead = kFrameHeaderBytes + packet.iov_len;
  FrameHeader header = make_header(kind, static_cast<std::uint32_t>(bytes), 0, 0, bytes);
  if (bytes >= kAlignedMin) header.pad = pad_between(written_[writer()] + ahead + kFrameHeaderBytes, data);
  std::memcpy(head + ahead, &header, sizeof header);
  std::memset(head + ahead + kFrameHeaderBytes, 0, header.pad);
  ahead += head_bytes(header);

  const auto* from = static_cast<const std::uint8_t*>(data);
  const std::uint64_t total = ahead + bytes;
  std::uint64_t sent = 0, offered = 0;
  while (sent == offered && sent < total) {
    const std::uint64_t length = sent == 0 ? first_write(*c, total) : total - sent;
    if (length >= options_.split_min / 2) c->answered = false;
    const std::uint64_t of_head = std::min(ahead - std::min(sent, ahead), length);
    const iovec parts[2] = {{head + std::min(sent, ahead), of_head}, {const_cast<std::uint8_t*>(from) + (std::max(sent, ahead) - ahead), length - of_head}};
    const std::int64_t n = of_head == 0 ? net_.write(c->fd, parts + 1, 1) : net_.write(c->fd, parts, length > of_head ? 2 : 1);
    ++counters_.writes;
    if (n < 0 && n != -EAGAIN) {
      lose(peer, static_cast<int>(-n));
      return static_cast<int>(n);
    }
    offered += length;
    sent += n > 0 ? static_cast<std::uint64_t>(n) : 0;
    note_taken(*c, sent == offered, length);
  }
  if (sent == total) {
    count_written(total);
    counters_.frames_out += 2;
    return 0;
  }

  // The rest goes the ordinary way, with the same headers.
  SendOp* control = sends_.take();
  std::memcpy(control->inline_bytes, packet.iov_base, packet.iov_len);
  control->data = control->inline_bytes;
  control->total = packet.iov_len;
  control->peer = peer;
  control->released = true;
  enqueue(p, control);
  SendOp* op = sends_.take();
  op->data = from;
  op->total = bytes;
  op->kind = kind;
  op->peer = peer;
  enqueue(p, op);
  c->frame_bytes = static_cast<std::uint32_t>(std::max<std::uint64_t>(bytes, options_.frame_bytes));
  commit_next(p, *c);
  commit_next(p, *c);
  c->frame_bytes = options_.frame_bytes;
  ++depth_;
  if (advance(*c, sent)) set_interest(*c, c->interest | kWritable);
  --depth_;
  bury();
  out = op;
  return 0;
}

void Engine::on_done(SendOp* op, void (*done)(void* arg, int error), void* arg) {
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
bool Engine::keep_copy(SendOp* op) {
  if (op->done || op->total == 0) return true;
  if (kept_bytes_ + op->total > options_.send_copy_max) return false;
  std::uint8_t* block = new_copy(op->total);
  if (block == nullptr) return false;
  copy(block, op->pieces != nullptr ? Memory::in_pieces(op->pieces) : op->data, op->total);
  const Connection* c = peers_[op->peer].connection;
  for (int i = 0; c != nullptr && i < c->out_count; ++i) {
    OutFrame& f = peers_[op->peer].connection->out[(c->out_first + i) % Connection::kOutFrames];
    if (f.op != op) continue;
    f.payload = block + f.header.offset;
    f.pieces = {};
  }
  op->data = op->block = block;
  op->pieces = nullptr;
  op->uncommitted = {};
  kept_bytes_ += op->total;
  return true;
}

void Engine::release(SendOp* op) {
  if (op->done)
    give(op);
  else
    op->released = true;
}

void Engine::hold(int peer) { ++peers_[peer].holds; }

void Engine::let_go(int peer) {
  if (--peers_[peer].holds == 0) flush(peer);
}

}  // namespace mplite
