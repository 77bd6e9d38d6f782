// Control packets: written at once from the caller's memory, gathered, or kept; and a frame right
// behind a packet.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "mplite/engine/tx_frames.h"
#include "mplite/engine/tx_queue.h"
#include "mplite/net/loss.h"
#include "mplite/observe/trace.h"

namespace mplite {
namespace {

// A packet and a frame of more than that are not copied, but kept by their operations.
constexpr std::uint64_t kBehindCopyMax = 64 * 1024 + 256;

}  // namespace

// Whether the next frame may go straight to the socket.
bool TxQueue::idle(const Peer& p) const {
  const Connection* c = p.connection;
  return c != nullptr && c->state == ConnectionState::kUp && !c->tx.waits() &&
         p.control.head == nullptr && p.bulk.head == nullptr && p.corks == 0;
}

// Copies the frame behind those that wait. False: it does not fit there, it has to take the
// ordinary way.
bool TxQueue::gather(int peer, const FrameHeader& header, const iovec* parts, int parts_count) {
  const auto bytes = static_cast<std::uint32_t>(kFrameHeaderBytes + header.length);
  if (core_.underway.gathered == 0) {
    const Peer& p = core_.peers[peer];
    if (gather_op_ != nullptr || !idle(p) || sends_.free_count() == 0) return false;
    if (p.connection->tx.kept.on) {  // the handler may have to let them go
      reserve_spares();
      if (!is_room_for(*p.connection, kGatherBytes)) return false;
    }
    gather_op_ = sends_.take();
    gather_op_->peer = peer;
    gather_op_->released = true;
    gathered_peer_ = peer;
    gathered_bytes_ = 0;
  } else if (gathered_peer_ != peer || kGatherBytes - gathered_bytes_ < bytes ||
             core_.peers[peer].control.head != nullptr) {
    return false;  // where the connection is broken: it would overtake what was queued since
  }
  flatten(gather_buffer_ + gathered_bytes_, header, parts, parts_count);
  gathered_bytes_ += bytes;
  ++core_.underway.gathered;
  ++core_.counters.gathered;
  ++core_.counters.frames_out;
  return true;
}

// Gives what was gathered its place in the stream: one more frame, whose header is out already.
void TxQueue::commit_gathered(Connection& c) {
  SendOp* op = gather_op_;
  OutFrame& f = c.tx.add();
  f.header = make_header(FrameKind::kControl, gathered_bytes_, 0, 0, gathered_bytes_);
  f.op = op;
  f.payload = gather_buffer_;
  f.pieces = {};
  f.sent = kFrameHeaderBytes;
  op->total = op->committed = gathered_bytes_;
  op->all_committed = true;
  ++op->frames;
  ++core_.underway.queued_sends;
  core_.underway.gathered = 0;
  gathered_peer_ = -1;
}

void TxQueue::flush_gathered() {
  if (core_.underway.gathered == 0) return;
  if (core_.mode.in_signal_handler) ++core_.counters.gathered_late;
  flush(gathered_peer_);
}

// Header and packet in one write, straight from the caller's memory. As Net::write. In a frame of
// its own, so that the copy is not on the stack under flush(): the handler's may be small.
[[gnu::noinline]] std::int64_t TxQueue::write_control(const Connection& c, const iovec* parts,
                                                      int parts_count, std::uint32_t length) {
  const FrameHeader header = make_header(FrameKind::kControl, length, 0, 0, length);
  ++core_.counters.writes;
  if (length <= kFlatBytes) {
    std::uint8_t flat[kFrameHeaderBytes + kFlatBytes];
    flatten(flat, header, parts, parts_count);
    const iovec all = {flat, kFrameHeaderBytes + length};
    return core_.net.write(c.fd, &all, 1);
  }
  iovec all[1 + kPartsMax];
  all[0] = {const_cast<FrameHeader*>(&header), sizeof header};
  for (int i = 0; i < parts_count; ++i) all[1 + i] = parts[i];
  return core_.net.write(c.fd, all, 1 + parts_count);
}

int TxQueue::send_control(int peer, const iovec* parts, int parts_count) {
  if (const int rc = ensure_connection(peer); rc < 0) return rc;
  Peer& p = core_.peers[peer];
  std::uint64_t length = 0;
  for (int i = 0; i < parts_count; ++i) length += parts[i].iov_len;
  if (length == 0 || length > kControlBytesMax) return -EMSGSIZE;

  // Before the first byte is out: half a packet that cannot be kept would cost the connection.
  const bool large = length > SendOp::kInlineBytes;
  if (core_.mode.in_signal_handler &&
      (sends_.free_count() == 0 || (large && control_blocks_.free_count() == 0)))
    return -ENOBUFS;

  if (gather_max_ != 0 && length <= gather_max_) {
    const FrameHeader header =
        make_header(FrameKind::kControl, static_cast<std::uint32_t>(length), 0, 0, length);
    if (gather(peer, header, parts, parts_count)) return 0;
    flush_gathered();
    if (gather(peer, header, parts, parts_count)) return 0;
    if (const int rc = ensure_connection(peer); rc < 0) return rc;  // lost meanwhile
  }
  if (!idle(p) || gathered_peer_ == peer || parts_count > kPartsMax ||
      !can_keep(*p.connection, kFrameHeaderBytes + length)) {
    if (const int rc = ensure_connection(peer); rc < 0) return rc;  // lost meanwhile
    return keep_control(peer, parts, parts_count, length);
  }
  return control_written(
      peer, parts, parts_count, length,
      write_control(*p.connection, parts, parts_count, static_cast<std::uint32_t>(length)));
}

int TxQueue::send_control_in_place(int peer, std::uint8_t* packet, std::uint32_t length,
                                   const void* data, std::uint32_t bytes) {
  EngineCore& core = core_;
  iovec parts[2] = {{packet, length}, {const_cast<void*>(data), bytes}};
  const int parts_count = bytes != 0 ? 2 : 1;
  const std::uint32_t whole = length + bytes;
  const Peer& p = core.peers[peer];
  Connection* c = p.connection;
  // Nothing is on its way out to anybody: as idle(), in fewer places.
  const bool clear =
      (core.underway.queued_sends | static_cast<unsigned>(core.underway.gathered | p.corks)) == 0 &&
      gather_max_ == 0;
  if (!clear || c == nullptr || c->state != ConnectionState::kUp || whole - 1 >= kControlBytesMax)
      [[unlikely]]
    return send_control(peer, parts, parts_count);
  new (packet - kFrameHeaderBytes) FrameHeader(
      make_header(FrameKind::kControl, whole, 0, 0,
                  whole));  // where it leaves from: a copy would wait for the stores of its parts
  parts[0] = {packet - kFrameHeaderBytes, kFrameHeaderBytes + length};
  ++core.counters.writes;
  const std::int64_t n = core.net.write(c->fd, parts, parts_count);
  c->tuning.first_look.sent();
  parts[0] = {packet, length};
  return control_written(peer, parts, parts_count, whole, n);
}

// What the kernel did not take of header and packet, of which Net::write has given `result`, is
// kept.
int TxQueue::control_written(int peer, const iovec* parts, int parts_count, std::uint64_t length,
                             std::int64_t result) {
  trace(TraceEvent::kWrite, peer, static_cast<std::uint64_t>(result), kFrameHeaderBytes + length);
  if (result < 0 && result != -EAGAIN) {
    up_.lose_stream(*core_.peers[peer].connection, write_loss(result), StreamFailure::kOfWrite);
    return core_.peers[peer].state == PeerState::kMaking
               ? keep_control(peer, parts, parts_count, length)
               : -write_loss(result);
  }
  const std::uint64_t sent = result > 0 ? static_cast<std::uint64_t>(result) : 0;
  count_written(sent);
  if (sent == kFrameHeaderBytes + length) [[likely]] {
    ++core_.counters.frames_out;
    keep_packet(*core_.peers[peer].connection,
                make_header(FrameKind::kControl, static_cast<std::uint32_t>(length), 0, 0, length),
                parts, parts_count);
    return 0;
  }
  ++core_.counters.writes_full;
  return keep_control(peer, parts, parts_count, length, static_cast<std::int64_t>(sent));
}

// Copies the packet and queues it. `sent`: of header and packet, what is out already; -1: it has
// its turn yet.
int TxQueue::keep_control(int peer, const iovec* parts, int parts_count, std::uint64_t length,
                          std::int64_t sent) {
  Peer& p = core_.peers[peer];
  const bool large = length > SendOp::kInlineBytes;
  // Without memory in ordinary context half a packet may be out, and then the connection is.
  SendOp* op = sends_.free_count() > 0 || (!core_.mode.in_signal_handler && sends_.reserve(64))
                   ? sends_.take()
                   : nullptr;
  std::uint8_t* copy = nullptr;
  if (op != nullptr && !large) {
    copy = op->inline_bytes;
  } else if (op != nullptr && core_.mode.in_signal_handler) {
    op->control_block = control_blocks_.take();
    copy = op->control_block->bytes;
  } else if (op != nullptr) {
    copy = op->block = new_copy(length);
    if (copy != nullptr) kept_bytes_ += length;
  }
  if (copy == nullptr) {
    if (op != nullptr) sends_.give(op);
    if (sent > 0) up_.lose(peer, ENOBUFS);
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
  c.tx.frame(0).sent = static_cast<std::uint64_t>(sent);
  c.tx.kept.taken += static_cast<std::uint64_t>(sent);
  readiness_.set_interest(c, c.interest | kWritable);
  return 0;
}

// Of packet and frame `sent` bytes are out: the rest goes the ordinary way, with the same headers.
SendOp* TxQueue::queue_behind(int peer, const iovec& packet, FrameKind kind, const void* data,
                              std::uint64_t bytes, std::uint64_t sent) {
  Peer& p = core_.peers[peer];
  Connection& c = *p.connection;
  SendOp* control = sends_.take();
  std::memcpy(control->inline_bytes, packet.iov_base, packet.iov_len);
  control->data = control->inline_bytes;
  control->total = packet.iov_len;
  control->peer = peer;
  control->released = true;
  enqueue(p, control);
  SendOp* op = sends_.take();
  op->data = static_cast<const std::uint8_t*>(data);
  op->total = bytes;
  op->kind = kind;
  op->peer = peer;
  enqueue(p, op);
  const std::uint64_t all = std::max<std::uint64_t>(bytes, core_.options.frame_bytes);
  commit_next(p, c, all);
  if (p.lanes != nullptr) p.lanes->transfers_next = false;
  commit_next(p, c, all);
  DeferFree defer(core_);
  c.tx.flushing = true;  // what is completed may send
  const bool there = advance(c, sent);
  c.tx.flushing = false;
  if (!there) return op;
  if (c.tx.count > 0 && c.state == ConnectionState::kUp)
    readiness_.set_interest(c, c.interest | kWritable);
  else if (c.state == ConnectionState::kUp)
    settle(c);
  return op;
}

// Is done already, or else the caller's.
SendOp* TxQueue::unless_done(SendOp* op, int& error) {
  if (!op->done) return op;
  error = op->error;
  give(op);
  return nullptr;
}

// Writes the two pieces, perhaps in halves. `sent`: what the kernel has taken. 0, or as
// send_behind().
int TxQueue::write_behind(Connection& c, const iovec (&whole)[2], std::uint64_t& sent) {
  const int peer = c.peer;
  const std::uint64_t ahead = whole[0].iov_len, total = ahead + whole[1].iov_len;
  auto* const head = static_cast<std::uint8_t*>(whole[0].iov_base);
  auto* const data = static_cast<std::uint8_t*>(whole[1].iov_base);
  std::uint64_t offered = 0;
  while (sent == offered && sent < total) {
    const std::uint64_t length = sent == 0 ? first_write(c, total) : total - sent;
    c.tuning.halves.wrote(length);
    const std::uint64_t of_head = std::min(ahead - std::min(sent, ahead), length);
    const iovec parts[2] = {{head + std::min(sent, ahead), of_head},
                            {data + (std::max(sent, ahead) - ahead), length - of_head}};
    const std::int64_t n = of_head == 0 ? core_.net.write(c.fd, parts + 1, 1)
                                        : core_.net.write(c.fd, parts, length > of_head ? 2 : 1);
    trace(TraceEvent::kWrite, peer, static_cast<std::uint64_t>(n), length);
    ++core_.counters.writes;
    if (n < 0 && n != -EAGAIN) {
      up_.lose_stream(c, write_loss(n), StreamFailure::kOfWrite);
      if (core_.peers[peer].state != PeerState::kMaking) return -write_loss(n);
      return sent == 0 ? -EAGAIN : 0;
    }
    offered += length;
    sent += n > 0 ? static_cast<std::uint64_t>(n) : 0;
    note_taken(c, sent == offered, length);
  }
  return 0;
}

int TxQueue::send_behind(int peer, const iovec& packet, FrameKind kind, const void* data,
                         std::uint64_t bytes, SendOp*& out) {
  out = nullptr;
  Peer& p = core_.peers[peer];
  const bool lane_is_lost = p.lanes != nullptr && p.lanes->again.head() != nullptr;
  if (!idle(p) || lane_is_lost || gather_max_ != 0 || gathered_peer_ == peer || bytes == 0 ||
      packet.iov_len > kBehindPacketMax)
    return -EAGAIN;  // what was on the lane goes first
  if (is_long(bytes)) up_.want_lanes(peer);
  Connection* c = p.connection;
  const std::uint64_t all =
      2 * kFrameHeaderBytes + packet.iov_len + kPayloadAlignment + bytes;  // at most
  if (bytes > c->tuning.frames.bytes() || !can_keep(*c, std::min(all, kBehindCopyMax)) ||
      (sends_.free_count() < 2 && (core_.mode.in_signal_handler || !sends_.reserve(64))))
    return -EAGAIN;

  std::uint8_t head[2 * kFrameHeaderBytes + kBehindPacketMax + kPayloadAlignment];
  flatten(head,
          make_header(FrameKind::kControl, static_cast<std::uint32_t>(packet.iov_len), 0, 0,
                      packet.iov_len),
          &packet, 1);
  std::uint64_t ahead = kFrameHeaderBytes + packet.iov_len;
  FrameHeader header = make_header(kind, static_cast<std::uint32_t>(bytes), 0, 0, bytes);
  if (padding_.pads(bytes)) header.pad = padding_.bytes(writer(), ahead + kFrameHeaderBytes, data);
  std::memcpy(head + ahead, &header, sizeof header);
  std::memset(head + ahead + kFrameHeaderBytes, 0, header.pad);
  ahead += head_bytes(header);

  const iovec whole[2] = {{head, ahead}, {const_cast<void*>(data), bytes}};
  std::uint64_t sent = 0;
  if (const int rc = write_behind(*c, whole, sent); rc < 0) return rc;
  if (sent == ahead + bytes && (!c->tx.kept.on || sent <= kBehindCopyMax)) {
    count_written(sent);
    core_.counters.frames_out += 2;
    keep_written(*c, whole, 2);
    return 0;
  }

  int error = 0;
  out = unless_done(queue_behind(peer, packet, kind, data, bytes, sent), error);
  return -error;
}

}  // namespace mplite
