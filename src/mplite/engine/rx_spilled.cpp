// What has come on a connection that is broken: read before it is closed, acted upon when that is
// possible, and then what comes on the next one.
#include "mplite/engine/rx_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mplite/net/loss.h"

namespace mplite {

bool RxStream::drain(Connection& c) {
  while (c.fd >= 0) {
    const std::uint64_t before = c.rx.received;
    pump(c);
    if (c.state != ConnectionState::kBroken || c.fd < 0) break;
    if (c.rx.received != before) continue;
    // Nothing came: because there is nothing any more, or because it cannot be taken now.
    if (c.rx.paused || c.rx.in_ready_list || core_.mode.budget == 0 || !have_buffer(c))
      return !core_.mode.in_signal_handler && spill(c);
    put_buffer_away(c);
    core_.net.close(c.fd);
    c.fd = -1;
  }
  return c.state == ConnectionState::kBroken;
}

// All that is left in the socket, which is closed then. False: no memory, or the peer is lost.
bool RxStream::spill(Connection& c) {
  SpilledBytes& spilled = c.rx.spilled;
  for (;;) {
    if (spilled.tail == nullptr || spilled.end == ReadAheadBuffer::kBytes) {
      ReadAheadBuffer* const more = buffers_.refill() ? buffers_.take() : nullptr;
      if (more == nullptr) return false;
      more->next = nullptr;
      (spilled.tail != nullptr ? spilled.tail->next : spilled.head) = more;
      spilled.tail = more;
      spilled.end = 0;
    }
    const iovec part = {spilled.tail->bytes + spilled.end, ReadAheadBuffer::kBytes - spilled.end};
    const std::int64_t n = core_.net.read(c.fd, &part, 1);
    ++core_.counters.reads;
    if (n <= 0) {
      if (n != -EAGAIN)
        up_.lose_stream(c, read_loss(n), n == 0 ? StreamFailure::kEnd : StreamFailure::kOfRead);
      if (c.state != ConnectionState::kBroken) return false;
      break;
    }
    if (spilled.bytes == 0) ++core_.underway.spilled;
    spilled.end += static_cast<std::uint32_t>(n);
    spilled.bytes += static_cast<std::uint64_t>(n);
  }
  if (spilled.bytes == 0) give_spilled(c);
  if (c.fd >= 0) core_.net.close(c.fd);
  c.fd = -1;
  return true;
}

// As Net::read.
std::int64_t RxStream::read_spilled(Connection& c, const Read& read) {
  SpilledBytes& spilled = c.rx.spilled;
  std::uint64_t got = 0;
  for (int i = 0; i < read.parts_count; ++i) {
    auto* to = static_cast<std::uint8_t*>(read.parts[i].iov_base);
    for (std::uint64_t room = read.parts[i].iov_len; room > 0 && spilled.bytes > 0;) {
      const std::uint32_t end =
          spilled.head == spilled.tail ? spilled.end : ReadAheadBuffer::kBytes;
      const auto part =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(room, end - spilled.begin));
      std::memcpy(to, spilled.head->bytes + spilled.begin, part);
      to += part;
      room -= part;
      got += part;
      spilled.begin += part;
      spilled.bytes -= part;
      if (spilled.begin != end || spilled.bytes == 0) continue;
      ReadAheadBuffer* const read_out = spilled.head;
      spilled.head = read_out->next;
      spilled.begin = 0;
      buffers_.give(read_out);
    }
  }
  if (spilled.bytes == 0) {
    give_spilled(c);
    --core_.underway.spilled;
    core_.gate.ask_drain();  // what is in the socket was announced meanwhile
  }
  return static_cast<std::int64_t>(got);
}

void RxStream::give_spilled(Connection& c) {
  while (ReadAheadBuffer* const b = c.rx.spilled.head) {
    c.rx.spilled.head = b->next;
    buffers_.give(b);
  }
  c.rx.spilled = {};
}

bool RxStream::read_all_spilled() {
  const std::uint64_t before = core_.counters.bytes_in;
  for (int i = 0; core_.underway.spilled > 0 && i < core_.peer_count; ++i) {
    Connection* const c = core_.peers[i].connection;
    if (c != nullptr && c->rx.spilled.bytes != 0 && is_stream(*c)) pump(*c);
  }
  return core_.counters.bytes_in != before;
}

void RxStream::move(Connection& from, Connection& to) {
  to.rx = from.rx;
  to.rx.low_water = 1;
  from.rx = {};
  if (unparsed_ == &from) unparsed_ = &to;
  if (!to.rx.in_ready_list) return;
  Connection** link = &ready_head_;
  while (*link != &from) link = &(*link)->rx.ready_next;
  *link = &to;
  if (ready_tail_ == &from) ready_tail_ = &to;
}

}  // namespace mplite
