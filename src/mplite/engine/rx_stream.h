// The way in: bytes are read ahead into a connection's buffer or straight into their destination,
// and cut into frames. Control packets wait in the buffer until the layer above takes them;
// everything else asks its sink where to go. Used by the engine and the parts above; uses
// readiness.h, upcalls.h.
#pragma once
#include <cstdint>

#include "mplite/base/iov_cursor.h"
#include "mplite/base/signal_safe.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/read_ahead_buffer.h"
#include "mplite/engine/readiness.h"
#include "mplite/engine/upcalls.h"
#include "mplite/net/frame.h"
#include "mplite/tuning/low_water.h"

namespace mplite {

// What the layer above answers when the payload of a frame is about to be read.
enum class Verdict {
  kTake,     // into Destination; what is longer than `room` is read and thrown away
  kDiscard,  // nobody wants it: read and thrown away, and its end is not told
  kPause,    // no buffer now: the connection stops reading (the kernel pushes back) until
             // Engine::resume_rx(peer)
  kReject,   // the frame makes no sense here: the connection is lost with EPROTO
};

struct Destination {
  void* buffer = nullptr;
  std::uint64_t room = 0;
  IovCursor pieces{};  // in place of buffer: where the payload's first byte goes
};

// The upper layer's side of one frame kind (channel, transfer, message). Signal-safe, gate held, no
// allocation.
struct Sink {
  void* self = nullptr;
  Verdict (*begin)(void* self, int peer, const FrameHeader& header,
                   Destination& destination) = nullptr;
  void (*end)(void* self, int peer,
              const FrameHeader& header) = nullptr;  // the frame's payload is all there
  void (*undo)(void* self, int peer,
               const FrameHeader& header) = nullptr;  // or else it never will be: of transfers
                                                      // only, whose connection may be lost alone
};

// Gate held throughout. What the calls that the engine forwards promise is said in engine.h.
class RxStream {
 public:
  RxStream(EngineCore& core, Upcalls& up, Readiness& readiness)
      : core_(core),
        up_(up),
        readiness_(readiness),
        low_water_(core.options.tuning.has(Heuristic::kLowWater) ? core.options.low_water_bytes
                                                                 : 0) {}
  RxStream(const RxStream&) = delete;
  RxStream& operator=(const RxStream&) = delete;

  void set_sink(FrameKind kind, const Sink& sink) { sinks_[static_cast<int>(kind)] = sink; }
  // Ordinary context. False: no memory.
  bool refill() { return buffers_.refill(); }
  std::uint32_t read_ahead_buffers_used() const { return buffers_.used_count(); }

  // Reads what there is, at most the budget. `repolls`: how often a socket that has nothing is
  // tried again, if its last message was a small one; what is left of them. True when something
  // came. May lose the peer.
  bool pump(Connection& c, int& repolls) MPLITE_SIGNAL_SAFE;
  bool pump(Connection& c) MPLITE_SIGNAL_SAFE {
    int none = 0;
    return pump(c, none);
  }

  // Control packets that are here, in the order in which they came.
  void parse_rest() MPLITE_SIGNAL_SAFE {
    if (unparsed_ != nullptr) parse_rest_now();
  }
  bool has_control() const MPLITE_SIGNAL_SAFE { return ready_head_ != nullptr; }
  std::uint32_t view_control(const std::uint8_t** packet, int& from) MPLITE_SIGNAL_SAFE;
  std::uint32_t take_control(void* packet, std::uint32_t size, int& from) MPLITE_SIGNAL_SAFE;

  void resume_rx(int peer) MPLITE_SIGNAL_SAFE;
  std::uint64_t placed(int peer, FrameKind kind, std::uint64_t id) const MPLITE_SIGNAL_SAFE;
  void redirect(int peer, FrameKind kind, std::uint64_t id,
                const Destination& destination) MPLITE_SIGNAL_SAFE;
  void discard(int peer, FrameKind kind, std::uint64_t id) MPLITE_SIGNAL_SAFE;

  // The lane is about to be closed, and its peer stays: the frame on it comes again.
  void undo_frame(Connection& c) MPLITE_SIGNAL_SAFE;
  // Of a connection that is broken: takes what has come, and closes the descriptor. False: some of
  // that cannot be taken in the handler, or the peer is lost.
  bool drain(Connection& c) MPLITE_SIGNAL_SAFE;
  // Bytes of the stream that have been taken from the sockets.
  static std::uint64_t received(const Connection& c) MPLITE_SIGNAL_SAFE {
    return c.rx.received + c.rx.spilled.bytes;
  }
  // Reads on where something was left when a connection broke, and can be taken now. Whether
  // anything could.
  bool read_all_spilled() MPLITE_SIGNAL_SAFE;
  // The stream goes on over another connection. What was read of it has its place there.
  void move(Connection& from, Connection& to) MPLITE_SIGNAL_SAFE;
  // The connection is about to be closed: what was read ahead goes.
  void forget(Connection& c) MPLITE_SIGNAL_SAFE;

  // For who reads one packet itself (the fused poll): a buffer to read into, false: none is free;
  // consume what was read; a packet is handed up, the last `length` bytes before c.rx.begin.
  bool have_buffer(Connection& c) MPLITE_SIGNAL_SAFE {
    if (c.rx.buffer == nullptr) c.rx.buffer = buffers_.take();
    return c.rx.buffer != nullptr;
  }
  void put_buffer_away(Connection& c) MPLITE_SIGNAL_SAFE {
    if (c.rx.buffer == nullptr || c.rx.begin != c.rx.end) return;
    buffers_.give(c.rx.buffer);
    c.rx.buffer = nullptr;
    c.rx.begin = c.rx.end = 0;
  }
  void parse(Connection& c) MPLITE_SIGNAL_SAFE;
  // What follows is looked at when the packet has been acted upon: a channel frame right behind its
  // envelope should find its buffer posted.
  void note_control(Connection& c, std::uint32_t length) MPLITE_SIGNAL_SAFE {
    c.tuning.ahead.packet();
    c.tuning.rcvlowat.message(length, c.tuning.halves.whole_end());
    ++core_.counters.frames_in;
    if (unparsed_ != nullptr && unparsed_ != &c) [[unlikely]]
      parse_rest_now();
    unparsed_ = &c;
  }
  // Something has come.
  void note_answer(Connection& c) MPLITE_SIGNAL_SAFE {
    // One branch for both.
    if ((int{c.tuning.halves.heard()} | int{c.tuning.first_look.timed()}) != 0) [[unlikely]]
      time_answer(c);
  }

 private:
  // Where the next read goes: straight to the destination of the frame, and into the read-ahead
  // buffer.
  struct Read {
    iovec parts[kIovsMax];
    int parts_count = 0;
    std::uint64_t direct = 0;   // bytes of it that go to the destination
    std::uint64_t offered = 0;  // all
  };
  MPLITE_ORDINARY bool spill(Connection& c);
  std::int64_t read_spilled(Connection& c, const Read& read) MPLITE_SIGNAL_SAFE;
  void give_spilled(Connection& c) MPLITE_SIGNAL_SAFE;
  void make_room(Connection& c) MPLITE_SIGNAL_SAFE;
  void plan_read(Connection& c, Read& read) MPLITE_SIGNAL_SAFE;
  void account(Connection& c, const Read& read, std::uint64_t got) MPLITE_SIGNAL_SAFE;
  static void set_destination(Connection& c, const Destination& destination) MPLITE_SIGNAL_SAFE;
  void set_low_water(Connection& c, bool drained) MPLITE_SIGNAL_SAFE;
  void time_answer(Connection& c) MPLITE_SIGNAL_SAFE;
  void place_staged(Connection& c, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  bool begin_frame(Connection& c, const FrameHeader& header) MPLITE_SIGNAL_SAFE;
  void end_frame(Connection& c) MPLITE_SIGNAL_SAFE;
  void parse_rest_now() MPLITE_SIGNAL_SAFE {
    if (unparsed_->rx.begin != unparsed_->rx.end || unparsed_->rx.in_frame) return parse_staged();
    put_buffer_away(*unparsed_);
    unparsed_ = nullptr;
  }
  void parse_staged() MPLITE_SIGNAL_SAFE;
  void resume(Connection& c) MPLITE_SIGNAL_SAFE;
  void ready_add(Connection& c) MPLITE_SIGNAL_SAFE;
  void ready_remove(Connection& c) MPLITE_SIGNAL_SAFE;

  EngineCore& core_;
  Upcalls& up_;
  Readiness& readiness_;
  const LowWater low_water_;
  Sink sinks_[kFrameKinds] = {};
  ReadAheadBuffers buffers_;
  Connection* unparsed_ =
      nullptr;  // its control packet was taken; what is staged behind it has not been looked at
  Connection* ready_head_ = nullptr;
  Connection* ready_tail_ = nullptr;
};

}  // namespace mplite
