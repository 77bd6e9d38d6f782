// The way in: bytes are read ahead into a connection's staging or straight into their destination, and cut into frames.
// Control packets wait in staging until the layer above takes them; everything else asks its sink where to go.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine.h"

namespace mplite {
namespace {

constexpr std::uint64_t kBulkBytes = 128 * 1024;     // above this much still owed, signals may come seldom
constexpr std::uint64_t kOneReadBytes = 128 * 1024;  // more does not come by one read, as a rule: the kernel hands over packets of up to 64 KB as they come

}  // namespace

void Engine::ready_add(Connection& c) {
  c.in_ready_list = true;
  c.ready_next = nullptr;
  (ready_tail_ != nullptr ? ready_tail_->ready_next : ready_head_) = &c;
  ready_tail_ = &c;
}

void Engine::ready_remove(Connection& c) {
  c.in_ready_list = false;
  Connection* before = nullptr;
  for (Connection* r = ready_head_; r != &c; r = r->ready_next) before = r;
  (before != nullptr ? before->ready_next : ready_head_) = c.ready_next;
  if (ready_tail_ == &c) ready_tail_ = before;
}

// Asks where the payload goes. False: parked or rejected.
bool Engine::begin_frame(Connection& c, const FrameHeader& header) {
  const Sink& sink = sinks_[static_cast<int>(header.kind)];
  Destination destination;
  const Verdict verdict = sink.begin != nullptr ? sink.begin(sink.self, c.peer, header, destination) : Verdict::kReject;
  if (c.state != ConnectionState::kUp) return false;
  if (verdict == Verdict::kPark) {
    c.parked = true;
    ++counters_.parked;
    set_interest(c, c.interest & ~kReadable);
    return false;
  }
  if (verdict == Verdict::kReject) {
    notes_.note(NoteCode::kBadFrame, c.peer, EPROTO, &c.remote);
    lose(c.peer, EPROTO);
    return false;
  }
  c.in_frame = true;
  c.expect_long = header.total > (c.full ? Connection::kReadAheadMiddleBytes : Connection::kReadAheadLongBytes);
  choose_mark(c, header.total);
  c.header = header;
  c.owed = header.length;
  set_destination(c, destination);
  return true;
}

void Engine::end_frame(Connection& c) {
  c.in_frame = false;
  ++counters_.frames_in;
  const Sink& sink = sinks_[static_cast<int>(c.header.kind)];
  if (sink.end != nullptr) sink.end(sink.self, c.peer, c.header);
}

// Moves `bytes` of the frame's payload from staging to where they go.
void Engine::place_staged(Connection& c, std::uint64_t bytes) {
  const std::uint64_t kept = std::min(bytes, c.room);
  const std::uint8_t* from = c.staging->bytes + c.begin;
  if (c.pieces) {
    c.pieces.scatter(from, kept);
  } else if (kept > 0) {
    copy_bytes(c.destination, from, kept);
    c.destination += kept;
  }
  c.room -= kept;
  c.owed -= bytes;
  c.begin += static_cast<std::uint32_t>(bytes);
}

// Consumes what is staged until a control packet is ready, the connection parks, or more bytes are needed.
void Engine::parse(Connection& c) {
  while (c.state == ConnectionState::kUp && !c.parked && !c.in_ready_list) {
    const std::uint32_t staged = c.end - c.begin;
    if (c.in_frame) {
      if (staged > 0) place_staged(c, std::min<std::uint64_t>(staged, c.owed));
      if (c.owed > 0) return;
      end_frame(c);
      continue;
    }
    if (staged < kFrameHeaderBytes) return;
    FrameHeader header;
    if (!decode_frame({c.staging->bytes + c.begin, staged}, header)) {
      notes_.note(NoteCode::kBadFrame, c.peer, EPROTO, &c.remote);
      lose(c.peer, EPROTO);
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
    c.begin += head;
  }
}

// While nobody waits, the rest of a long frame may be announced by few signals. Never more than the frame still owes: for less than the mark no
// signal and no event would come.
void Engine::set_low_water(Connection& c, bool drained) {
  if (c.state != ConnectionState::kUp) return;
  const std::uint64_t owed = c.in_frame ? c.owed : 0;
  std::uint64_t mark = static_cast<std::uint64_t>(c.low_water);
  if (drained && patient_ && owed >= kBulkBytes) mark = options_.low_water_bytes;
  mark = std::max<std::uint64_t>(std::min(mark, owed), 1);
  if (mark != static_cast<std::uint64_t>(c.low_water)) apply_low_water(c, static_cast<int>(mark));
}

void Engine::apply_low_water(Connection& c, int bytes) {
  c.low_water = bytes;
  net_.set_receive_low_water(c.fd, bytes);
  ++counters_.other_calls;
}

// What is small may be the envelope of what comes next.
void Engine::choose_mark(Connection& c, std::uint64_t message_bytes) const {
  c.small = message_bytes < Connection::kAtOnceMinBytes;
  if (c.small) [[likely]] {
    if (c.mark == 1) [[likely]] return;
    if (++c.small_ones == Connection::kMarkSmallOnes) c.mark = 1;
    return;
  }
  c.small_ones = 0;
  const std::uint64_t at_once = c.whole.second() ? std::max(options_.split_end, Connection::kAtOnceBytes) : Connection::kAtOnceBytes;
  const int mark = message_bytes <= at_once ? Connection::kMarkAtOnce : 1;
  if (mark == c.mark) {
    c.mark_doubts = 0;
  } else if (++c.mark_doubts == Connection::kMarkDoubts) {
    c.mark = mark;
    c.mark_doubts = 0;
  }
}

bool Engine::have_staging(Connection& c) {
  if (c.staging == nullptr) c.staging = stagings_.take();
  return c.staging != nullptr;
}

// Reads what there is, at most the budget. True when something came.
bool Engine::pump(Connection& c) {
  bool any = false, drained = false;
  int tries = patient_ ? 0 : options_.frame_tries;
  int close_looks = patient_ || aside_ != &c ? 0 : close_looks_;
  ++depth_;
  parse(c);
  while (c.state == ConnectionState::kUp && !c.parked && !c.in_ready_list) {
    if (budget_ == 0) {
      more_to_do_ = true;
      break;
    }
    if (!have_staging(c)) {  // its bytes stay in the socket until the packets read before are acted upon, or ordinary context makes buffers
      if (ready_head_ == nullptr) ++counters_.no_memory_in_handler;
      break;
    }
    // Room for the rest of what is needed next, at the front.
    if (c.begin == c.end) {
      c.begin = c.end = 0;
    } else if (c.begin > 0 && Staging::kBytes - c.end < kControlBytesMax + kFrameHeaderBytes) {
      std::memmove(c.staging->bytes, c.staging->bytes + c.begin, c.end - c.begin);
      c.end -= c.begin;
      c.begin = 0;
    }
    std::uint64_t ahead = c.expect_long ? Connection::kReadAheadHeaderBytes : Connection::kReadAheadBytes;
    if (!c.in_frame && c.end - c.begin >= kFrameHeaderBytes) {  // part of a control packet is here: all the rest of it
      FrameHeader header;
      std::memcpy(&header, c.staging->bytes + c.begin, sizeof header);
      if (header.kind == FrameKind::kControl) ahead = std::max<std::uint64_t>(ahead, kFrameHeaderBytes + header.length - (c.end - c.begin));
    }
    iovec parts[kIovsMax];
    int parts_count = 0;
    std::uint64_t direct = 0, offered = 0;
    if (c.in_frame && c.room > 0) {
      if (c.pieces) {
        parts_count = c.pieces.list(c.room, parts, kIovsMax - 1, direct);
      } else {
        direct = c.room;
        parts[parts_count++] = {c.destination, c.room};
      }
      offered += direct;
    }
    // What is behind the frame is read with its end, where one read may bring that: the kernel takes a single piece faster (0.1 us). Payload that nobody wants goes through staging and is dropped by parse().
    if (!c.in_frame || (c.owed == direct && direct <= kOneReadBytes) || c.room == 0) {
      ahead = std::min<std::uint64_t>(ahead, Staging::kBytes - c.end);
      parts[parts_count++] = {c.staging->bytes + c.end, ahead};
      offered += ahead;
    }
    const std::int64_t n = net_.read(c.fd, parts, parts_count);
    ++counters_.reads;
    if (n == -EAGAIN) {
      ++counters_.reads_empty;
      if (c.in_frame && tries-- > 0) continue;
      if (c.small && close_looks-- > 0) {
        ++tick_;
        continue;
      }
      drained = true;
      break;
    }
    if (n <= 0) {
      lose(c.peer, n == 0 ? ECONNRESET : static_cast<int>(-n));  // an EOF without everybody ending is a dead peer
      any = true;
      break;
    }
    any = true;
    make_hot(c);
    note_answer(c);
    if (hot_reads_ < options_.aside_after) ++hot_reads_;
    const auto got = static_cast<std::uint64_t>(n);
    counters_.bytes_in += got;
    if (budget_ != kNoBudget) budget_ -= std::min(budget_, got);
    const std::uint64_t placed = std::min(got, direct);
    if (c.pieces)
      c.pieces.skip(placed);
    else
      c.destination += placed;
    c.room -= placed;
    c.owed -= placed;
    c.end += static_cast<std::uint32_t>(got - placed);
    c.full = got == offered && (direct > 0 || !c.expect_long);
    if (c.in_frame && c.owed == 0) end_frame(c);
    parse(c);
    if (got < offered && !(c.in_frame && tries-- > 0)) {
      drained = true;  // the socket was empty a moment ago
      break;
    }
  }
  put_staging_away(c);
  if (aside_ != &c) set_low_water(c, drained);
  --depth_;
  bury();
  return any;
}

// A packet is handed up, the last bytes before c.begin. What follows is looked at when it has been acted upon: a channel frame right behind its envelope should find its buffer posted.
void Engine::note_control(Connection& c, std::uint32_t length) {
  c.expect_long = false;
  choose_mark(c, length);
  ++counters_.frames_in;
  if (settling_ != nullptr && settling_ != &c) [[unlikely]] settle();
  settling_ = &c;
}

// Whether a poll would read the connection that is set aside, with nothing of it here yet, and at most look at all besides.
bool Engine::may_read_one() const {
  const Connection* c = aside_;
  return c != nullptr && outstanding_ && !crowded_ && !exhaustive_ && !patient_ && (gathered_ | young_count_ | wanting_ | queued_sends_) == 0 && c->staging == nullptr && !c->in_frame && !c->parked && !c->expect_long &&
         c->low_water == c->mark;
}

// Who spins on recv holds the socket's lock most of the time. What comes then waits for the end of that call and is worked through, and acknowledged, by the receiver; otherwise by the sender's core, at once. So for
// messages of a few packets somebody looks first who does not take the lock. Every so often the read is made all the same.
bool Engine::nothing_came(const Connection& c) {
  if (!looked_for(c) || tick_ % kAllStride == 0) return false;
  ++counters_.looks;
  return !net_.has_input(c.fd);
}

void Engine::time_answer(Connection& c) {
  const std::int64_t now = net_.now_ns();
  if (c.asked) c.heard_ns = now;
  if (!c.timed) return;
  c.timed = false;
  c.first_look.took(now - c.began_ns);
}

// Somebody waits, for the first time since a packet left.
void Engine::delay_first_look(Connection& c) {
  c.spoke = false;
  c.timed = c.small && c.first_look.begin();
  if (c.timed)
    c.began_ns = net_.now_ns();
  else if (c.small && c.first_look.delay_ns() != 0)
    net_.spin(c.first_look.delay_ns());
}

// What poll() and pump() come to then, in few lines of code. The length of the packet that came, if it came alone and whole; anything else is where they would leave it.
std::uint32_t Engine::read_one(const std::uint8_t** packet) {
  Connection& c = *aside_;
  const unsigned strides = tick_ / kAllStride;
  int close_looks = c.small || c.mark != 1 ? close_looks_ : 0;
  close_looks_ = 0;
  if (!have_staging(c)) return 0;
  const iovec part = {c.staging->bytes, Connection::kReadAheadBytes};
  std::int64_t n = -EAGAIN;
  if (close_looks > 0 && c.spoke) delay_first_look(c);
  do {
    ++tick_;
    if (nothing_came(c)) continue;
    ++counters_.reads;
    n = net_.read(c.fd, &part, 1);
    if (n == -EAGAIN) ++counters_.reads_empty;
  } while (n == -EAGAIN && close_looks-- > 0);
  const bool all = tick_ / kAllStride != strides;
  if (n > 0) {
    const auto got = static_cast<std::uint32_t>(n);
    if (looked_for(c)) judge_look();
    note_answer(c);
    c.full = got == part.iov_len;
    c.end = got;
    counters_.bytes_in += got;
    std::uint32_t length = 0;
    if (got > kFrameHeaderBytes) [[likely]] length = control_length(c.staging->bytes);
    if (length != 0 && kFrameHeaderBytes + length == got && !all) [[likely]] {
      c.begin = got;
      *packet = c.staging->bytes + kFrameHeaderBytes;
      note_control(c, length);
      return length;
    }
  }
  ++depth_;
  if (n > 0) parse(c);
  if (n > 0 && (c.full || c.in_frame)) pump(c);
  put_staging_away(c);
  if (n <= 0 && n != -EAGAIN) lose(c.peer, n == 0 ? ECONNRESET : static_cast<int>(-n));
  --depth_;
  bury();
  if (all) look_at_all();
  return 0;
}

std::uint32_t Engine::view_control(const std::uint8_t** packet, int& from) {
  Connection* c = ready_head_;
  if (c == nullptr) return 0;
  FrameHeader header;
  std::memcpy(&header, c->staging->bytes + c->begin, sizeof header);
  *packet = c->staging->bytes + c->begin + kFrameHeaderBytes;
  from = c->peer;
  c->begin += static_cast<std::uint32_t>(kFrameHeaderBytes) + header.length;
  ready_head_ = c->ready_next;
  if (ready_head_ == nullptr) ready_tail_ = nullptr;
  c->in_ready_list = false;
  note_control(*c, header.length);
  return header.length;
}

std::uint32_t Engine::take_control(void* packet, std::uint32_t size, int& from) {
  const std::uint8_t* at = nullptr;
  const std::uint32_t length = view_control(&at, from);
  if (length != 0) std::memcpy(packet, at, std::min(size, length));
  return length;
}

std::uint64_t Engine::placed(int peer, FrameKind kind, std::uint64_t id) const {
  const Connection* c = peers_[peer].connection;
  return c != nullptr && c->in_frame && c->header.kind == kind && c->header.id == id ? c->header.length - c->owed : 0;
}

void Engine::redirect(int peer, FrameKind kind, std::uint64_t id, const Destination& destination) {
  Connection* c = peers_[peer].connection;
  if (c == nullptr || !c->in_frame || c->header.kind != kind || c->header.id != id) return;
  set_destination(*c, destination);
}

void Engine::set_destination(Connection& c, const Destination& destination) {
  c.destination = static_cast<std::uint8_t*>(destination.buffer);
  c.pieces = destination.pieces;
  c.room = destination.buffer != nullptr || destination.pieces ? std::min<std::uint64_t>(destination.room, c.owed) : 0;
}

void Engine::settle_staged() {
  Connection* c = settling_;
  settling_ = nullptr;
  ++depth_;
  parse(*c);
  put_staging_away(*c);
  --depth_;
  bury();
}

void Engine::unpark(int peer) {
  Connection* c = peers_[peer].connection;
  if (c == nullptr || !c->parked) return;
  c->parked = false;
  ++depth_;
  set_interest(*c, c->interest | kReadable);
  gate_.ask_drain();  // what lies in the socket was announced while it was parked, and will not be again
  parse(*c);
  put_staging_away(*c);
  --depth_;
  bury();
}


}  // namespace mplite
