// The way out goes on over another connection: what the peer has not received is sent again, and
// then what follows.
#include <algorithm>

#include "mplite/engine/tx_frames.h"
#include "mplite/engine/tx_queue.h"
#include "mplite/net/loss.h"

namespace mplite {

// The frame as it was when so many bytes of it had been written.
OutFrame TxQueue::as_written(const KeptPart& k, std::uint64_t bytes) const {
  OutFrame f = {};
  f.header = k.header;
  f.op = k.op;
  if (k.op->pieces == nullptr) f.payload = k.op->data + k.header.offset;
  rewind(f, bytes);
  return f;
}

// What goes before the first frame. False: not now, or the connection is lost.
bool TxQueue::begin_flush(Connection& c) {
  no_longer_told(c);
  if (c.tx.kept.again != nullptr && !send_kept_again(c)) [[unlikely]]
    return false;
  if (gathered_peer_ != c.peer || c.lane != 0) return true;
  if (!may_commit(c, gathered_bytes_)) return false;
  commit_gathered(c);
  return true;
}

bool TxQueue::covers(const Connection& c, std::uint64_t received) {
  const KeptStream& kept = c.tx.kept;
  return received <= std::max(kept.taken, kept.sent) && received >= kept.end - kept.bytes;
}

void TxQueue::move(Connection& from, Connection& to) {
  forget_awaited(from);
  to.tx = from.tx;
  to.tx.flushing = false;
  from.tx = {};
}

void TxQueue::set_again(ConnectionTx& tx, KeptPart* k, std::uint64_t from) {
  KeptStream& kept = tx.kept;
  if (kept.again == nullptr && k != nullptr) ++core_.underway.queued_sends;
  if (kept.again != nullptr && k == nullptr) --core_.underway.queued_sends;
  kept.again = k;
  kept.again_from = from;
}

bool TxQueue::go_on(Connection& c, std::uint64_t received) {
  ConnectionTx& tx = c.tx;
  KeptStream& kept = tx.kept;
  const std::uint64_t handle = c.pool_handle;
  KeptPart* again = kept.head;
  std::uint64_t begin = kept.end - kept.bytes;
  while (again != nullptr && begin + again->bytes <= received) {
    begin += again->bytes;
    again = again->next;
  }
  set_again(tx, again, received - begin);
  if (tx.count > 0) rewind(tx.frame(0), received > kept.end ? received - kept.end : 0);
  // A call that comes late may say less than the peer has by now.
  kept.sent = std::max(kept.sent, kept.taken);
  kept.taken = kept.acknowledged = received;
  // These may send, or lose the peer; what goes again may leave with that, and be trimmed.
  while (kept.head != nullptr && kept.head != kept.again &&
         kept.end - kept.bytes + kept.head->bytes <= received) {
    end_node(c, kept.pop(), 0);
    if (c.pool_handle != handle || c.state != ConnectionState::kUp) return false;
  }
  if (kept.awaited > 0) await(c);
  return true;
}

// `bytes` of it are out.
void TxQueue::rewind(OutFrame& f, std::uint64_t bytes) const {
  if (f.op == gather_op_) {
    f.sent = kFrameHeaderBytes + bytes;
    return;
  }
  f.sent = bytes;
  if (f.op->pieces == nullptr) return;
  f.pieces = IovCursor{f.op->pieces};
  f.pieces.skip(f.header.offset + payload_sent(f.header, bytes));
}

// False: the kernel has not taken all of it, or the connection is lost.
bool TxQueue::send_kept_again(Connection& c) {
  KeptStream& kept = c.tx.kept;
  while (kept.again != nullptr) {
    KeptPart& k = *kept.again;
    OutFrame f;
    iovec parts[kIovsMax];
    int parts_count = 0;
    std::uint64_t offered = 0;
    if (k.block != nullptr) {
      offered = k.bytes - kept.again_from;
      parts[parts_count++] = {k.block->bytes + kept.again_from, offered};
    } else {
      f = as_written(k, kept.again_from);
      list_frame(f, parts, parts_count, offered);
    }
    if (!write_again(c, parts, parts_count, offered)) return false;
  }
  return true;
}

// Of what has to be sent again. False: the kernel has not taken all, or the connection is lost.
bool TxQueue::write_again(Connection& c, const iovec* parts, int parts_count,
                          std::uint64_t offered) {
  KeptStream& kept = c.tx.kept;
  const std::int64_t n = core_.net.write(c.fd, parts, parts_count);
  ++core_.counters.writes;
  if (n < 0 && n != -EAGAIN) {
    up_.lose_stream(c, write_loss(n), StreamFailure::kOfWrite);
    return false;
  }
  const std::uint64_t taken = n > 0 ? static_cast<std::uint64_t>(n) : 0;
  count_written(taken);
  kept.taken += taken;
  core_.counters.resent_bytes += taken;
  if (kept.again_from + taken == kept.again->bytes)
    set_again(c.tx, kept.again->next, 0);
  else
    kept.again_from += taken;
  if (taken == offered) return true;
  readiness_.set_interest(c, c.interest | kWritable);
  return false;
}

}  // namespace mplite
