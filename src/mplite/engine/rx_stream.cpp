// Reading, cutting into frames, and handing control packets up.
#include "mplite/engine/rx_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mplite/net/loss.h"
#include "mplite/observe/trace.h"

namespace mplite {
namespace {

constexpr std::uint64_t kOneReadBytes =
    128 * 1024;  // more does not come by one read, as a rule: the kernel hands over packets of up
                 // to 64 KB as they come

bool is_in_frame(const Connection& c, FrameKind kind, std::uint64_t id) {
  return c.rx.in_frame && c.rx.header.kind == kind && c.rx.header.id == id;
}

}  // namespace

void RxStream::ready_add(Connection& c) {
  c.rx.in_ready_list = true;
  c.rx.ready_next = nullptr;
  (ready_tail_ != nullptr ? ready_tail_->rx.ready_next : ready_head_) = &c;
  ready_tail_ = &c;
}

void RxStream::ready_remove(Connection& c) {
  c.rx.in_ready_list = false;
  Connection* before = nullptr;
  for (Connection* r = ready_head_; r != &c; r = r->rx.ready_next) before = r;
  (before != nullptr ? before->rx.ready_next : ready_head_) = c.rx.ready_next;
  if (ready_tail_ == &c) ready_tail_ = before;
}

// Asks where the payload goes. False: paused or rejected.
bool RxStream::begin_frame(Connection& c, const FrameHeader& header) {
  const Sink& sink = sinks_[static_cast<int>(header.kind)];
  Destination destination;
  const Verdict verdict =
      sink.begin != nullptr ? sink.begin(sink.self, c.peer, header, destination) : Verdict::kReject;
  if (!is_stream(c)) return false;
  if (verdict == Verdict::kPause) {
    c.rx.paused = true;
    ++core_.counters.parked;
    trace(TraceEvent::kReceivePaused, c.peer);
    if (c.state == ConnectionState::kUp) readiness_.set_interest(c, c.interest & ~kReadable);
    return false;
  }
  if (verdict == Verdict::kReject) {
    core_.notes.note(NoteCode::kBadFrame, c.peer, EPROTO, &c.remote);
    up_.lose(c.peer, EPROTO);
    return false;
  }
  c.rx.in_frame = true;
  c.rx.discards = verdict == Verdict::kDiscard;
  c.tuning.ahead.message(header.total);
  c.tuning.rcvlowat.message(header.total, c.tuning.halves.whole_end());
  c.tuning.halves.comes(header.total);
  c.rx.header = header;
  c.rx.owed = header.length;
  set_destination(c, destination);
  return true;
}

void RxStream::end_frame(Connection& c) {
  c.rx.in_frame = false;
  ++core_.counters.frames_in;
  if (c.lane != 0) [[unlikely]] {
    LaneSet& set = *core_.peers[c.peer].lanes;
    ++set.lane[c.lane].received;
    core_.lanes_are_due(set);
  }
  const Sink& sink = sinks_[static_cast<int>(c.rx.header.kind)];
  if (sink.end != nullptr && !c.rx.discards) sink.end(sink.self, c.peer, c.rx.header);
}

// Moves `bytes` of the frame's payload from the read-ahead buffer to where they go.
void RxStream::place_staged(Connection& c, std::uint64_t bytes) {
  const std::uint64_t kept = std::min(bytes, c.rx.room);
  const std::uint8_t* from = c.rx.buffer->bytes + c.rx.begin;
  if (c.rx.pieces) {
    c.rx.pieces.scatter(from, kept);
  } else if (kept > 0) {
    copy_bytes(c.rx.destination, from, kept);
    c.rx.destination += kept;
  }
  c.rx.room -= kept;
  c.rx.owed -= bytes;
  c.rx.begin += static_cast<std::uint32_t>(bytes);
}

// Consumes what is staged until a control packet is ready, the connection pauses, or more bytes are
// needed.
void RxStream::parse(Connection& c) {
  while (is_stream(c) && !c.rx.paused && !c.rx.in_ready_list) {
    const std::uint32_t staged = c.rx.end - c.rx.begin;
    if (c.rx.in_frame) {
      if (staged > 0) place_staged(c, std::min<std::uint64_t>(staged, c.rx.owed));
      if (c.rx.owed > 0) return;
      end_frame(c);
      continue;
    }
    if (staged < kFrameHeaderBytes) return;
    FrameHeader header;
    if (!decode_frame({c.rx.buffer->bytes + c.rx.begin, staged}, header) ||
        (c.lane != 0 && header.kind != FrameKind::kTransfer)) {
      core_.notes.note(NoteCode::kBadFrame, c.peer, EPROTO, &c.remote);
      up_.lose(c.peer, EPROTO);
      return;
    }
    if (header.kind == FrameKind::kControl) {
      if (staged < kFrameHeaderBytes + header.length) return;
      ready_add(c);
      return;
    }
    const std::uint32_t head = static_cast<std::uint32_t>(kFrameHeaderBytes) + header.pad;
    if (staged < head) return;
    if (!begin_frame(c, header)) return;
    c.rx.begin += head;
  }
}

void RxStream::set_low_water(Connection& c, bool drained) {
  if (c.state != ConnectionState::kUp) return;
  const std::uint64_t owed = c.rx.in_frame ? c.rx.owed : 0;
  const int mark = low_water_.next(c.rx.low_water, owed, drained && core_.mode.background);
  if (mark != c.rx.low_water) readiness_.set_low_water(c, mark);
}

// Room for the rest of what is needed next, at the front.
void RxStream::make_room(Connection& c) {
  ConnectionRx& rx = c.rx;
  if (rx.begin == rx.end) {
    rx.begin = rx.end = 0;
  } else if (rx.begin > 0 &&
             ReadAheadBuffer::kBytes - rx.end < kControlBytesMax + kFrameHeaderBytes) {
    std::memmove(rx.buffer->bytes, rx.buffer->bytes + rx.begin, rx.end - rx.begin);
    rx.end -= rx.begin;
    rx.begin = 0;
  }
}

void RxStream::plan_read(Connection& c, Read& read) {
  ConnectionRx& rx = c.rx;
  std::uint64_t ahead = c.tuning.ahead.bytes();
  // Part of a control packet is here: all the rest of it.
  if (!rx.in_frame && rx.end - rx.begin >= kFrameHeaderBytes) {
    FrameHeader header;
    std::memcpy(&header, rx.buffer->bytes + rx.begin, sizeof header);
    if (header.kind == FrameKind::kControl)
      ahead =
          std::max<std::uint64_t>(ahead, kFrameHeaderBytes + header.length - (rx.end - rx.begin));
  }
  if (rx.in_frame && rx.room > 0) {
    if (rx.pieces) {
      read.parts_count = rx.pieces.list(rx.room, read.parts, kIovsMax - 1, read.direct);
    } else {
      read.direct = rx.room;
      read.parts[read.parts_count++] = {rx.destination, rx.room};
    }
    read.offered += read.direct;
  }
  // What is behind the frame is read with its end, where one read may bring that: the kernel takes
  // a single piece faster (0.1 us). Payload that nobody wants goes through the buffer and is
  // dropped by parse().
  if (!rx.in_frame || (rx.owed == read.direct && read.direct <= kOneReadBytes) || rx.room == 0) {
    ahead = std::min<std::uint64_t>(ahead, ReadAheadBuffer::kBytes - rx.end);
    read.parts[read.parts_count++] = {rx.buffer->bytes + rx.end, ahead};
    read.offered += ahead;
  }
}

// Of what was offered, `got` bytes have come.
void RxStream::account(Connection& c, const Read& read, std::uint64_t got) {
  ConnectionRx& rx = c.rx;
  if (c.state == ConnectionState::kUp) [[likely]]
    readiness_.has_read(c);
  note_answer(c);
  core_.counters.bytes_in += got;
  rx.received += got;
  core_.mode.spend(got);
  const std::uint64_t placed = std::min(got, read.direct);
  if (rx.pieces)
    rx.pieces.skip(placed);
  else
    rx.destination += placed;
  rx.room -= placed;
  rx.owed -= placed;
  rx.end += static_cast<std::uint32_t>(got - placed);
  c.tuning.ahead.read(got == read.offered, read.direct > 0);
}

bool RxStream::pump(Connection& c, int& repolls) {
  bool any = false, drained = false;
  int tries = core_.mode.background ? 0 : core_.options.frame_tries;
  DeferFree defer(core_);
  parse(c);
  while (is_stream(c) && (c.fd >= 0 || c.rx.spilled.bytes != 0) && !c.rx.paused &&
         !c.rx.in_ready_list) {
    if (core_.mode.budget == 0) {
      core_.more_to_do = true;
      break;
    }
    if (!have_buffer(c)) {  // its bytes stay in the socket until the packets read before are acted
                            // upon, or ordinary context makes buffers
      if (ready_head_ == nullptr) {
        ++core_.counters.no_memory_in_handler;
        core_.note_starved();
      }
      break;
    }
    make_room(c);
    Read read;
    plan_read(c, read);
    const bool spilled = c.rx.spilled.bytes != 0;
    const std::int64_t n =
        spilled ? read_spilled(c, read) : core_.net.read(c.fd, read.parts, read.parts_count);
    ++core_.counters.reads;
    if (n == -EAGAIN) {
      ++core_.counters.reads_empty;
      if (c.rx.in_frame && tries-- > 0) continue;
      if (c.tuning.rcvlowat.small() && repolls > 0) {
        --repolls;
        continue;
      }
      drained = true;
      break;
    }
    trace(TraceEvent::kRead, c.peer, static_cast<std::uint64_t>(n), read.offered);
    any = true;
    if (n <= 0) {
      up_.lose_stream(c, read_loss(n), n == 0 ? StreamFailure::kEnd : StreamFailure::kOfRead);
      break;
    }
    const auto got = static_cast<std::uint64_t>(n);
    account(c, read, got);
    if (c.rx.in_frame && c.rx.owed == 0) end_frame(c);
    parse(c);
    if (got < read.offered && !spilled && !(c.rx.in_frame && tries-- > 0)) {
      drained = true;  // the socket was empty a moment ago
      break;
    }
  }
  put_buffer_away(c);
  if (readiness_.detached() != &c) set_low_water(c, drained);
  return any;
}

void RxStream::time_answer(Connection& c) {
  const std::int64_t now = core_.net.now_ns();
  c.tuning.halves.heard_at(now);
  c.tuning.first_look.came(now);
}

std::uint32_t RxStream::view_control(const std::uint8_t** packet, int& from) {
  Connection* c = ready_head_;
  if (c == nullptr) return 0;
  FrameHeader header;
  std::memcpy(&header, c->rx.buffer->bytes + c->rx.begin, sizeof header);
  *packet = c->rx.buffer->bytes + c->rx.begin + kFrameHeaderBytes;
  from = c->peer;
  c->rx.begin += static_cast<std::uint32_t>(kFrameHeaderBytes) + header.length;
  ready_head_ = c->rx.ready_next;
  if (ready_head_ == nullptr) ready_tail_ = nullptr;
  c->rx.in_ready_list = false;
  note_control(*c, header.length);
  return header.length;
}

std::uint32_t RxStream::take_control(void* packet, std::uint32_t size, int& from) {
  const std::uint8_t* at = nullptr;
  const std::uint32_t length = view_control(&at, from);
  if (length != 0) std::memcpy(packet, at, std::min(size, length));
  return length;
}

std::uint64_t RxStream::placed(int peer, FrameKind kind, std::uint64_t id) const {
  const Connection* c = core_.peers[peer].connection;
  return c != nullptr && is_in_frame(*c, kind, id) ? c->rx.header.length - c->rx.owed : 0;
}

void RxStream::redirect(int peer, FrameKind kind, std::uint64_t id,
                        const Destination& destination) {
  Connection* c = core_.peers[peer].connection;
  if (c == nullptr || !is_in_frame(*c, kind, id)) return;
  set_destination(*c, destination);
}

void RxStream::discard(int peer, FrameKind kind, std::uint64_t id) {
  for_each_stream(core_.peers[peer], [kind, id](Connection& c) {
    if (!is_in_frame(c, kind, id)) return;
    set_destination(c, {});
    c.rx.discards = true;
  });
}

void RxStream::set_destination(Connection& c, const Destination& destination) {
  c.rx.destination = static_cast<std::uint8_t*>(destination.buffer);
  c.rx.pieces = destination.pieces;
  c.rx.room = destination.buffer != nullptr || destination.pieces
                  ? std::min<std::uint64_t>(destination.room, c.rx.owed)
                  : 0;
}

void RxStream::parse_staged() {
  Connection* c = unparsed_;
  unparsed_ = nullptr;
  DeferFree defer(core_);
  parse(*c);
  put_buffer_away(*c);
}

void RxStream::resume_rx(int peer) {
  Peer& p = core_.peers[peer];
  if (p.connection != nullptr && p.connection->rx.paused) resume(*p.connection);
  if (p.lanes == nullptr) return;
  for_each_stream(p, [this](Connection& c) {
    if (c.rx.paused) resume(c);
  });
}

void RxStream::resume(Connection& c) {
  c.rx.paused = false;
  trace(TraceEvent::kReceiveResumed, c.peer);
  DeferFree defer(core_);
  if (c.state == ConnectionState::kUp) readiness_.set_interest(c, c.interest | kReadable);
  core_.gate.ask_drain();  // what lies in the socket was announced while it was paused, and will
                           // not be again
  parse(c);
  put_buffer_away(c);
}

void RxStream::undo_frame(Connection& c) {
  if (!c.rx.in_frame) return;
  c.rx.in_frame = false;
  const Sink& sink = sinks_[static_cast<int>(c.rx.header.kind)];
  if (!c.rx.discards) sink.undo(sink.self, c.peer, c.rx.header);
}

void RxStream::forget(Connection& c) {
  if (c.rx.in_ready_list) ready_remove(c);
  if (unparsed_ == &c) unparsed_ = nullptr;
  c.rx.begin = c.rx.end;
  put_buffer_away(c);
  if (c.rx.spilled.bytes != 0) --core_.underway.spilled;
  give_spilled(c);
}

}  // namespace mplite
