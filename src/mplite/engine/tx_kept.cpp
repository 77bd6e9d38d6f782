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
// is not more than so much. Who leaves does not look again: it is copied at once.
constexpr std::uint8_t kLooks = 3;
constexpr std::uint64_t kCopyBytes = 256 * 1024;
constexpr std::uint64_t kAskBytes = 12 * 1024;  // and more: the kernel is asked before a copy
constexpr std::uint32_t kBlocksUnasked = 4;     // of shorter packets

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

// Of frames that the kernel has not taken all of, what will be copied: a frame that is kept by its
// operation ends the block before it.
std::uint64_t TxQueue::bytes_fixed(const ConnectionTx& tx, bool and_more) {
  std::uint64_t bytes = 0;
  bool ends_block = false;
  for (int i = 0; i < tx.count; ++i) {
    const FrameHeader& header = tx.frame(i).header;
    if (!is_copied(header.kind)) {
      ends_block = true;
      continue;
    }
    bytes += head_bytes(header) + header.length + (ends_block ? KeptBlock::kBytes : 0);
    ends_block = false;
  }
  return bytes + (ends_block && and_more ? KeptBlock::kBytes : 0);
}

bool TxQueue::is_room_for(const Connection& c, std::uint64_t bytes) const {
  const std::uint64_t all = bytes_fixed(c.tx, bytes > 0) + bytes;
  return room_in(c.tx.kept.tail) + std::uint64_t{kept_blocks_.free_count()} * KeptBlock::kBytes >=
             all &&
         kept_nodes_.free_count() >= all / KeptBlock::kBytes + ConnectionTx::kFrames + 1;
}

bool TxQueue::has_room_for(Connection& c, std::uint64_t bytes) {
  return is_room_for(c, bytes) ||
         (!c.tx.flushing && trim(c) && is_room_for(c, bytes) && idle(core_.peers[c.peer]));
}

// What is to be written waits for acknowledgements, or the next MPI call.
void TxQueue::starve(Connection& c) {
  c.tx.kept.starved = true;
  core_.note_starved();
  await(c);
}

// Ordinary context leaves the handler something, however much it sends by itself.
void TxQueue::reserve_spares() {
  if (core_.mode.in_signal_handler) return;
  if (kept_nodes_.free_count() < kNodesMax) static_cast<void>(kept_nodes_.reserve(kNodesMax));
  if (kept_blocks_.free_count() < spare_blocks_ / 2 &&
      std::uint64_t{kept_blocks_.used_count()} * KeptBlock::kBytes < core_.options.send_copy_max)
    static_cast<void>(kept_blocks_.reserve(spare_blocks_));
}

// One more block at the end. False: there is no memory for it.
bool TxQueue::add_block(Connection& c) {
  reserve_spares();
  if (kept_blocks_.free_count() == 0 || kept_nodes_.free_count() == 0) return false;
  KeptPart* k = kept_nodes_.take();
  k->block = kept_blocks_.take();
  c.tx.kept.push(k);
  return true;
}

// Bytes of the stream that the kernel has taken, one after the other; the first `known` of them
// need not be kept. Only when all have their place something may be completed: what that sends
// comes behind them.
void TxQueue::keep_parts(Connection& c, const iovec* parts, int parts_count, std::uint64_t known) {
  KeptStream& kept = c.tx.kept;
  std::uint64_t left = 0;
  for (int i = 0; i < parts_count; ++i) left += parts[i].iov_len;
  left -= known;
  kept.end += known;
  bool kept_all = true;
  for (int i = 0; kept_all && i < parts_count; ++i) {
    const std::uint64_t skipped = std::min<std::uint64_t>(known, parts[i].iov_len);
    known -= skipped;
    const auto* from = static_cast<const std::uint8_t*>(parts[i].iov_base) + skipped;
    for (std::uint64_t bytes = parts[i].iov_len - skipped; bytes > 0;) {
      if (room_in(kept.tail) == 0 && !add_block(c)) {
        kept_all = false;
        break;
      }
      KeptPart* k = kept.tail;
      const auto part = std::min<std::uint64_t>(bytes, room_in(k));
      std::memcpy(k->block->bytes + k->bytes, from, part);
      k->bytes += part;
      kept.bytes += part;
      kept.end += part;
      from += part;
      bytes -= part;
      left -= part;
    }
  }
  kept.end += left;
  if (!kept_all) forget_kept(c);
}

// The same of what was written straight from the caller's memory. The peer's kernel may have most
// of it already: asking costs less than to copy it.
void TxQueue::keep_written(Connection& c, const iovec* parts, int parts_count) {
  KeptStream& kept = c.tx.kept;
  if (!kept.on) return;
  std::uint64_t bytes = 0;
  for (int i = 0; i < parts_count; ++i) bytes += parts[i].iov_len;
  const bool asks = bytes >= kAskBytes;
  if (asks) ask_acknowledged(c, bytes);
  std::uint64_t known = 0;
  if (asks && drop_blocks(kept)) known = kept.acknowledged - std::min(kept.acknowledged, kept.end);
  kept.taken += bytes;
  keep_parts(c, parts, parts_count, known);
  if (asks)
    end_acknowledged(c);
  else if (kept.nodes > kBlocksUnasked)
    trim(c);
}

// Blocks that the peer has; nothing is completed. Whether nothing is left.
bool TxQueue::drop_blocks(KeptStream& kept) {
  while (kept.head != nullptr && kept.head != kept.again && kept.head->op == nullptr &&
         kept.end - kept.bytes + kept.head->bytes <= kept.acknowledged)
    give(kept.pop());
  return kept.head == nullptr;
}

// Asks what the peer's kernel has. The last `just_sent` bytes are not counted in `taken` yet.
void TxQueue::ask_acknowledged(Connection& c, std::uint64_t just_sent) {
  KeptStream& kept = c.tx.kept;
  const std::int64_t known = core_.net.unacknowledged(c.fd);
  ++core_.counters.other_calls;
  if (known < 0) return;
  const std::uint64_t taken = kept.taken + just_sent;
  const std::uint64_t under_way = std::min<std::uint64_t>(static_cast<std::uint64_t>(known), taken);
  kept.acknowledged = std::max(kept.acknowledged, taken - under_way);
}

// A packet that the kernel has taken whole.
void TxQueue::keep_packet(Connection& c, const FrameHeader& header, const iovec* parts,
                          int parts_count) {
  KeptStream& kept = c.tx.kept;
  if (!kept.on) [[likely]]
    return;
  const std::uint64_t bytes = kFrameHeaderBytes + header.length;
  if (room_in(kept.tail) >= bytes) {
    KeptPart* k = kept.tail;
    flatten(k->block->bytes + k->bytes, header, parts, parts_count);
    k->bytes += bytes;
    kept.bytes += bytes;
    kept.end += bytes;
    kept.taken += bytes;
    return;
  }
  iovec all[1 + kPartsMax] = {{const_cast<FrameHeader*>(&header), sizeof header}};
  for (int i = 0; i < parts_count; ++i) all[1 + i] = parts[i];
  keep_written(c, all, 1 + parts_count);
}

// A frame that the kernel has taken whole. Packets are copied: their memory is the handler's next.
// Of others the operation has the payload still. May complete it.
void TxQueue::keep_frame(Connection& c, const OutFrame& f) {
  KeptStream& kept = c.tx.kept;
  SendOp* op = f.op;
  if (!kept.on) return end_frame(op, 0);
  const std::uint64_t bytes = head_bytes(f.header) + f.header.length;
  if (is_copied(f.header.kind)) {
    FrameHeader header = f.header;
    const iovec parts[2] = {{&header, op == gather_op_ ? 0 : sizeof header},
                            {const_cast<std::uint8_t*>(f.payload), f.header.length}};
    keep_parts(c, parts, 2, 0);
    return end_frame(op, 0);
  }
  reserve_spares();
  if (kept_nodes_.free_count() == 0) {
    kept.end += bytes;
    end_frame(op, 0);
    return forget_kept(c);
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
  if (c.state != ConnectionState::kUp) return true;
  ask_acknowledged(c, 0);
  return end_acknowledged(c);
}

bool TxQueue::end_acknowledged(Connection& c) {
  KeptStream& kept = c.tx.kept;
  DeferFree defer(core_);
  const std::uint64_t handle = c.pool_handle;
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
  // Who computes does not look again.
  if (core_.mode.background && core_.completes_in_background) copy_awaited(c);
  if (c.state == ConnectionState::kUp && kept.awaited > 0) await(c);
}

void TxQueue::await(Connection& c) {
  KeptStream& kept = c.tx.kept;
  if (core_.mode.in_signal_handler && !kept.told && (kept.starved || core_.completes_in_background))
    ask_to_be_told(c);
  if (kept.listed || c.state != ConnectionState::kUp) return;
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
  const Peer& p = core_.peers[c.peer];
  core_.net.set_unsent_limit(c.fd, spreads(p) ? p.lanes->policy.unsent_bytes() : 0);
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
// copied. In the handler only if there is memory for it.
void TxQueue::copy_awaited(Connection& c) {
  KeptStream& kept = c.tx.kept;
  const auto is_complete = [&kept](const KeptPart& k) {
    return k.op != nullptr && k.op->taken && !k.op->released && &k != kept.again;
  };
  const std::uint64_t unknown = std::min(kept.bytes, kept.end - kept.acknowledged);
  if (!reserve_blocks(unknown / KeptBlock::kBytes + kept.nodes)) return;
  KeptPart* copied = nullptr;
  for (KeptPart** link = &kept.head; *link != nullptr;) {
    KeptPart* const old = *link;
    if (!is_complete(*old)) {
      link = &old->next;
      continue;
    }
    KeptPart* const last = copy_in_place(kept, link);
    link = &last->next;
    old->next = copied;
    copied = old;
  }
  while (copied != nullptr) {  // these may send, or lose the peer
    KeptPart* const old = copied;
    copied = old->next;
    end_node(c, old, 0);
  }
}

bool TxQueue::reserve_blocks(std::uint64_t blocks) {
  if ((kept_blocks_.used_count() + blocks) * KeptBlock::kBytes > core_.options.send_copy_max)
    return false;
  const auto wanted = static_cast<std::uint32_t>(blocks);
  if (!core_.mode.in_signal_handler)
    return kept_blocks_.reserve(wanted) && kept_nodes_.reserve(wanted);
  if (kept_blocks_.free_count() >= wanted && kept_nodes_.free_count() >= wanted) return true;
  spare_blocks_ = std::max(spare_blocks_, wanted);
  return false;
}

// The frame's bytes, in blocks in its place. Of the oldest the peer may have a part. Returns the
// last of them.
KeptPart* TxQueue::copy_in_place(KeptStream& kept, KeptPart** link) {
  KeptPart* const old = *link;
  const std::uint64_t begin = kept.end - kept.bytes;
  std::uint64_t done = old == kept.head && kept.acknowledged > begin
                           ? std::min(kept.acknowledged - begin, old->bytes - 1)
                           : 0;
  OutFrame f = as_written(*old, done);
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
  return last;
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

void TxQueue::look_at_awaited(Look look) {
  DeferFree defer(core_);
  for (int turns = core_.underway.unacknowledged; turns > 0 && awaited_ != nullptr; --turns) {
    Connection& c = *awaited_;
    forget_awaited(c);
    no_longer_told(c);
    look_at_awaited(c, look);
  }
}

void TxQueue::look_at_awaited(Connection& c, Look look) {
  KeptStream& kept = c.tx.kept;
  const auto is_up = [&c] { return c.state == ConnectionState::kUp; };
  if (kept.starved && is_up()) {
    kept.starved = false;
    if (trim(c)) flush(c);
  }
  if (!is_up() || kept.listed || kept.awaited == 0 || !trim(c) || kept.awaited == 0) return;
  if (copies_now(kept, look)) copy_awaited(c);
  if (!is_up() || kept.awaited == 0) return;
  // Who reads nothing at present (RxStream pauses) does not hear of the end otherwise.
  if (look == Look::kSleep && core_.net.has_ended(c.fd))
    up_.lose_stream(c, ECONNRESET, StreamFailure::kOfWrite);
  else
    await(c);
}

// Whether what is left is copied, or waited for.
bool TxQueue::copies_now(KeptStream& kept, Look look) const {
  if (look == Look::kSleep) return true;
  if ((core_.mode.background || look == Look::kLeave) && core_.completes_in_background) return true;
  if (core_.mode.background || kept.end - kept.acknowledged > kCopyBytes) return false;
  if (kept.looks < kLooks) ++kept.looks;
  return kept.looks == kLooks || look == Look::kLeave;
}

// The peer is lost, or nobody is there any more.
void TxQueue::fail_kept(Connection& c, int error) {
  forget_awaited(c);
  set_again(c.tx, nullptr, 0);
  c.tx.kept.on = false;
  while (c.tx.kept.head != nullptr) end_node(c, c.tx.kept.pop(), error);
}

}  // namespace mplite
