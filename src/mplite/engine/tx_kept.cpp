// What was written to a connection is kept until the peer's kernel has it, and sent again over the
// next connection if this one breaks: small packets as copies, other frames by their operations,
// which are complete then, or when they have been copied.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mplite/engine/tx_frames.h"
#include "mplite/engine/tx_queue.h"

namespace mplite {
namespace {

constexpr std::uint32_t kNodesMax = 64;  // before the kernel is asked what may go
// Who waits for the end of an operation looks so often before what is left of it is copied, if that
// is not more than so much.
constexpr std::uint8_t kLooks = 3;
constexpr std::uint64_t kCopyBytes = 256 * 1024;

std::uint32_t room_in(const KeptPart* k) {
  return k != nullptr && k->block != nullptr
             ? KeptBlock::kBytes - static_cast<std::uint32_t>(k->bytes)
             : 0;
}

}  // namespace

void TxQueue::give(KeptPart* k) {
  if (k->block != nullptr) kept_blocks_.give(k->block);
  kept_nodes_.give(k);
}

bool TxQueue::has_room_for(Connection& c, std::uint64_t bytes) {
  const std::uint64_t nodes = bytes / KeptBlock::kBytes + ConnectionTx::kFrames + 1;
  const auto there = [&] {
    return room_in(c.tx.kept.tail) + std::uint64_t{kept_blocks_.free_count()} * KeptBlock::kBytes >=
               bytes &&
           kept_nodes_.free_count() >= nodes;
  };
  return there() || (!c.tx.flushing && trim(c) && there());
}

// What is to be written waits for the next MPI call.
void TxQueue::starve(Connection& c) {
  c.tx.kept.starved = true;
  await(c);
}

// One more block at the end. False: there is no memory for it, and then nothing that was written
// before is of use: it could go again only together with what follows.
bool TxQueue::add_block(Connection& c) {
  KeptStream& kept = c.tx.kept;
  if (kept.head != nullptr && !trim(c)) return false;
  const bool ordinary = !core_.mode.in_signal_handler;
  const bool there = (kept_blocks_.free_count() > 0 ||
                      (ordinary &&
                       std::uint64_t{kept_blocks_.used_count()} * KeptBlock::kBytes <
                           core_.options.send_copy_max &&
                       kept_blocks_.reserve(1))) &&
                     (kept_nodes_.free_count() > 0 || (ordinary && kept_nodes_.reserve(64)));
  if (!there) {
    forget_kept(c);
    return false;
  }
  KeptPart* k = kept_nodes_.take();
  k->block = kept_blocks_.take();
  kept.push(k);
  return true;
}

[[gnu::noinline]] void TxQueue::keep_bytes(Connection& c, const std::uint8_t* from,
                                           std::uint64_t bytes) {
  KeptStream& kept = c.tx.kept;
  while (bytes > 0) {
    if (room_in(kept.tail) == 0 && !add_block(c)) {
      kept.end += bytes;
      return;
    }
    KeptPart* k = kept.tail;
    const auto part = std::min<std::uint64_t>(bytes, room_in(k));
    std::memcpy(k->block->bytes + k->bytes, from, part);
    k->bytes += part;
    kept.bytes += part;
    kept.end += part;
    from += part;
    bytes -= part;
  }
}

// A packet that the kernel has taken whole, straight from the caller's memory.
void TxQueue::keep_packet(Connection& c, const FrameHeader& header, const iovec* parts,
                          int parts_count) {
  KeptStream& kept = c.tx.kept;
  kept.taken += kFrameHeaderBytes + header.length;
  if (!kept.on) {
    kept.end = kept.taken;
    return;
  }
  if (room_in(kept.tail) >= kFrameHeaderBytes + header.length) [[likely]] {
    KeptPart* k = kept.tail;
    flatten(k->block->bytes + k->bytes, header, parts, parts_count);
    k->bytes += kFrameHeaderBytes + header.length;
    kept.bytes += kFrameHeaderBytes + header.length;
    kept.end += kFrameHeaderBytes + header.length;
    return;
  }
  keep_bytes(c, reinterpret_cast<const std::uint8_t*>(&header), sizeof header);
  for (int i = 0; i < parts_count; ++i)
    keep_bytes(c, static_cast<const std::uint8_t*>(parts[i].iov_base), parts[i].iov_len);
}

// The same of two pieces of the stream.
void TxQueue::keep_written(Connection& c, const iovec (&whole)[2]) {
  KeptStream& kept = c.tx.kept;
  kept.taken += whole[0].iov_len + whole[1].iov_len;
  if (!kept.on) {
    kept.end = kept.taken;
    return;
  }
  for (const iovec& part : whole)
    keep_bytes(c, static_cast<const std::uint8_t*>(part.iov_base), part.iov_len);
}

// A frame that the kernel has taken whole: its operation has the payload still. May complete it.
void TxQueue::keep_frame(Connection& c, const OutFrame& f) {
  KeptStream& kept = c.tx.kept;
  SendOp* op = f.op;
  const std::uint64_t bytes = head_bytes(f.header) + f.header.length;
  if (op == gather_op_ && kept.on) {
    keep_bytes(c, f.payload, f.header.length);
    return end_frame(op, 0);
  }
  if (!kept.on) {
    kept.end += op == gather_op_ ? f.header.length : bytes;
    return end_frame(op, 0);
  }
  if (kept_nodes_.free_count() == 0 && (core_.mode.in_signal_handler || !kept_nodes_.reserve(64))) {
    kept.end += bytes;
    forget_kept(c);
    return end_frame(op, 0);
  }
  KeptPart* k = kept_nodes_.take();
  k->op = op;
  k->header = f.header;
  k->bytes = bytes;
  kept.push(k);
  ++op->kept;
  if (!op->released) {
    ++kept.awaited;
    kept.looks = 0;
  }
  if (op->all_committed && op->kept == op->frames && !op->taken) {
    op->taken = true;
    --core_.underway.queued_sends;
  }
}

// The peer has it, or it is of no use any more. May complete its operation.
void TxQueue::end_node(Connection& c, KeptPart* k, int error) {
  SendOp* op = k->op;
  give(k);
  if (op == nullptr) return;
  --op->kept;
  if (!op->released) --c.tx.kept.awaited;
  end_frame(op, error);
}

// There was no memory to keep what follows.
void TxQueue::forget_kept(Connection& c) {
  ++core_.counters.resume_gaps;
  const std::uint64_t handle = c.pool_handle;
  while (c.pool_handle == handle && is_stream(c) && c.tx.kept.head != nullptr &&
         c.tx.kept.head != c.tx.kept.again)
    end_node(c, c.tx.kept.pop(), 0);
}

// What the peer's kernel has need not be kept. False: a completion lost the connection under us.
bool TxQueue::trim(Connection& c) {
  KeptStream& kept = c.tx.kept;
  if (c.state != ConnectionState::kUp) return true;
  const std::int64_t unacknowledged = core_.net.unacknowledged(c.fd);
  ++core_.counters.other_calls;
  if (unacknowledged < 0) return true;
  const std::uint64_t handle = c.pool_handle;
  const std::uint64_t under_way =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(unacknowledged), kept.taken);
  kept.acknowledged = std::max(kept.acknowledged, kept.taken - under_way);
  while (kept.head != nullptr && kept.head != kept.again &&
         kept.end - kept.bytes + kept.head->bytes <= kept.acknowledged) {
    end_node(c, kept.pop(), 0);
    if (c.pool_handle != handle || c.state != ConnectionState::kUp) return false;
  }
  return true;
}

// After a write: what somebody waits for may be there.
void TxQueue::settle(Connection& c) {
  KeptStream& kept = c.tx.kept;
  if (kept.awaited == 0 && kept.nodes < kNodesMax) return;
  if (!trim(c) || kept.awaited == 0) return;
  // Who computes does not look again, and nothing would tell.
  if (core_.mode.background && !copy_awaited(c) && c.state != ConnectionState::kUp) return;
  if (kept.awaited > 0) await(c);
}

void TxQueue::await(Connection& c) {
  KeptStream& kept = c.tx.kept;
  if (core_.mode.in_signal_handler && !kept.told) ask_to_be_told(c);
  if (kept.listed) return;
  kept.listed = true;
  kept.next = nullptr;
  (awaited_last_ != nullptr ? awaited_last_->tx.kept.next : awaited_) = &c;
  awaited_last_ = &c;
  ++core_.underway.unacknowledged;
}

// A socket with a low limit of what it has not sent is writable, which raises a signal, when all is
// out. Then little is left that has not been acknowledged.
void TxQueue::ask_to_be_told(Connection& c) {
  c.tx.kept.told = true;
  core_.net.set_unsent_limit(c.fd, 1);
  readiness_.set_interest(c, c.interest | kWritable);
  if (c.tx.kept.looks++ == 0) core_.gate.ask_drain();  // all may be out already: that is not told
}

void TxQueue::no_longer_told(Connection& c) {
  if (!c.tx.kept.told) return;
  c.tx.kept.told = false;
  if (c.state != ConnectionState::kUp) return;
  core_.net.set_unsent_limit(c.fd, spreads(core_.peers[c.peer]) ? kUnsentBytes : 0);
  if (!c.tx.waits()) readiness_.set_interest(c, c.interest & ~kWritable);
}

void TxQueue::forget_awaited(Connection& c) {
  if (!c.tx.kept.listed) return;
  Connection* before = nullptr;
  for (Connection* i = awaited_; i != &c; i = i->tx.kept.next) before = i;
  (before != nullptr ? before->tx.kept.next : awaited_) = c.tx.kept.next;
  if (awaited_last_ == &c) awaited_last_ = before;
  c.tx.kept.listed = false;
  --core_.underway.unacknowledged;
}

// The operations of which everything has left are complete: what the peer may not have of them is
// copied. False: there is no memory for it, or a completion lost the connection.
bool TxQueue::copy_awaited(Connection& c) {
  KeptStream& kept = c.tx.kept;
  const std::uint64_t handle = c.pool_handle;
  const std::uint64_t blocks = kept.bytes / KeptBlock::kBytes + kept.awaited + 1;
  const bool there = kept_blocks_.free_count() >= blocks && kept_nodes_.free_count() >= blocks;
  if ((kept_blocks_.used_count() + blocks) * KeptBlock::kBytes > core_.options.send_copy_max)
    return false;
  if (core_.mode.in_signal_handler && !there) {
    spare_blocks_ = static_cast<std::uint32_t>(std::max<std::uint64_t>(spare_blocks_, blocks));
    return false;
  }
  if (!kept_blocks_.reserve(static_cast<std::uint32_t>(blocks)) ||
      !kept_nodes_.reserve(static_cast<std::uint32_t>(blocks)))
    return false;
  for (KeptPart** link = &kept.head; *link != nullptr;) {
    KeptPart* const old = *link;
    if (old->op == nullptr || old->op->released || old == kept.again) {
      link = &old->next;
      continue;
    }
    // Its bytes, in blocks in its place. Of the oldest the peer may have a part.
    const std::uint64_t begin = kept.end - kept.bytes;
    std::uint64_t done =
        old == kept.head && kept.acknowledged > begin ? kept.acknowledged - begin : 0;
    OutFrame f = as_written(*old);
    rewind(f, done);
    kept.bytes -= done;
    KeptPart* last = nullptr;
    while (done < old->bytes) {
      KeptPart* const k = kept_nodes_.take();
      k->block = kept_blocks_.take();
      k->bytes = std::min<std::uint64_t>(KeptBlock::kBytes, old->bytes - done);
      copy_frame(f, done, k->block->bytes, k->bytes);
      done += k->bytes;
      (last != nullptr ? last->next : *link) = k;
      last = k;
      ++kept.nodes;
    }
    last->next = old->next;
    if (kept.tail == old) kept.tail = last;
    --kept.nodes;
    link = &last->next;
    end_node(c, old, 0);
    if (c.pool_handle != handle || c.state != ConnectionState::kUp) return false;
  }
  return true;
}

// `bytes` of the frame from `from` on, in order: f.pieces moves along.
void TxQueue::copy_frame(OutFrame& f, std::uint64_t from, std::uint8_t* to, std::uint64_t bytes) {
  while (bytes > 0) {
    std::uint64_t part = 0;
    if (from < kFrameHeaderBytes) {
      part = std::min(bytes, kFrameHeaderBytes - from);
      std::memcpy(to, reinterpret_cast<const std::uint8_t*>(&f.header) + from, part);
    } else if (from < head_bytes(f.header)) {
      part = std::min(bytes, head_bytes(f.header) - from);
      std::memset(to, 0, part);
    } else {
      part = bytes;
      if (f.pieces)
        f.pieces.gather(to, part);
      else
        std::memcpy(to, f.payload + (from - head_bytes(f.header)), part);
    }
    from += part;
    to += part;
    bytes -= part;
  }
}

void TxQueue::look_at_awaited(bool idle) {
  DeferFree defer(core_);
  for (int turns = core_.underway.unacknowledged; turns > 0 && awaited_ != nullptr; --turns) {
    Connection& c = *awaited_;
    forget_awaited(c);
    no_longer_told(c);
    look_at_awaited(c, idle);
  }
}

void TxQueue::look_at_awaited(Connection& c, bool idle) {
  KeptStream& kept = c.tx.kept;
  const auto is_up = [&c] { return c.state == ConnectionState::kUp; };
  if (kept.starved && is_up()) {
    kept.starved = false;
    flush(c);
  }
  if (!is_up() || kept.listed || kept.awaited == 0 || !trim(c) || kept.awaited == 0) return;
  if (kept.looks < kLooks) ++kept.looks;
  if (idle || (kept.looks == kLooks && kept.bytes <= kCopyBytes)) copy_awaited(c);
  if (!is_up() || kept.awaited == 0) return;
  // Who reads nothing at present (RxStream pauses) does not hear of the end otherwise.
  if (idle && core_.net.has_ended(c.fd))
    up_.lose_stream(c, ECONNRESET, StreamFailure::kOfWrite);
  else
    await(c);
}

// The peer is lost, or nobody is there any more.
void TxQueue::fail_kept(Connection& c, int error) {
  forget_awaited(c);
  set_again(c.tx, nullptr, 0);
  c.tx.kept.on = false;
  while (c.tx.kept.head != nullptr) end_node(c, c.tx.kept.pop(), error);
}

}  // namespace mplite
