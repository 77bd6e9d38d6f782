// The engine over the fake network: every byte boundary, ties, parking, low water, deadlines,
// losses, and what the handler may do without memory.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "alloc_trap.h"
#include "in_pieces.h"
#include "mplite/net/loss.h"
#include "printed.h"
#include "sim_ranks.h"

#include "run_tests.h"

using namespace mplite;

namespace {

int say(Engine& e, int to, const std::vector<std::uint8_t>& packet) {
  const iovec part = {const_cast<std::uint8_t*>(packet.data()), packet.size()};
  Hold hold(e.gate());
  return e.send_control(to, &part, 1);
}

// The next control packet at `rank`, waiting for it.
std::vector<std::uint8_t> hear(SimRanks& r, int rank, int wanted_from) {
  Engine& e = r.engine(rank);
  ck_assert(r.until([&] { return e.control_ready(); }));
  std::vector<std::uint8_t> packet(kControlBytesMax);
  int from = -1;
  Hold hold(e.gate());
  packet.resize(e.take_control(packet.data(), static_cast<std::uint32_t>(packet.size()), from));
  ck_assert_int_eq(from, wanted_from);
  return packet;
}

// Freed when it is done: `data` has to stay.
void send_off(Engine& e, int to, FrameKind kind, std::uint64_t id,
              const std::vector<std::uint8_t>& data) {
  SendOp* op = nullptr;
  ck_assert_int_eq(e.send(to, kind, id, data.data(), data.size(), op), 0);
  if (op != nullptr) e.release(op);
}

struct Note {
  int calls = 0;
  int error = -1;
};
void on_done(void* arg, int error) {
  auto* n = static_cast<Note*>(arg);
  ++n->calls;
  n->error = error;
}

// A sink that gathers one message of its kind.
struct Taker {
  Taker(Engine& e, FrameKind kind, std::size_t bytes, std::uint8_t filled = 0)
      : buffer(bytes, filled) {
    e.set_sink(kind, {this, begin, end});
  }
  std::vector<std::uint8_t> buffer;
  Verdict verdict = Verdict::kTake;
  int ended = 0;
  std::uint64_t arrived = 0;
  static Verdict begin(void* self, int, const FrameHeader& header, Destination& destination) {
    auto* t = static_cast<Taker*>(self);
    if (t->verdict != Verdict::kTake) return t->verdict;
    if (header.offset < t->buffer.size())
      destination = {t->buffer.data() + header.offset, t->buffer.size() - header.offset};
    return Verdict::kTake;
  }
  static void end(void* self, int, const FrameHeader& header) {
    auto* t = static_cast<Taker*>(self);
    t->arrived += header.length;
    if (t->arrived == header.total) ++t->ended;
  }
};

// The same into pieces; of them, at most `room` bytes are given.
struct PiecesTaker {
  PiecesTaker(Engine& e, FrameKind kind, const std::vector<std::size_t>& lengths)
      : memory(lengths), room(memory.bytes()) {
    e.set_sink(kind, {this, begin, end});
  }
  InPieces memory;
  std::uint64_t room;
  int ended = 0;
  std::uint64_t arrived = 0;
  static Verdict begin(void* self, int, const FrameHeader& header, Destination& destination) {
    auto* t = static_cast<PiecesTaker*>(self);
    if (header.offset >= t->room) return Verdict::kTake;
    destination.pieces.piece = t->memory.pieces();
    destination.pieces.skip(header.offset);
    destination.room = t->room - header.offset;
    return Verdict::kTake;
  }
  static void end(void* self, int, const FrameHeader& header) {
    auto* t = static_cast<PiecesTaker*>(self);
    t->arrived += header.length;
    if (t->arrived == header.total) ++t->ended;
  }
};

// 100 bytes in all.
const std::vector<std::size_t> kSomePieces = {7, 0, 1, 20, 0, 0, 3, 40, 1, 1, 27, 0};
const std::vector<std::size_t> kOtherPieces = {0, 50, 2, 0, 1, 31, 16};

struct Losses {
  int count = 0;
  int peer = -1, error = 0;
  void install(Engine& e) {
    e.set_lost(
        [](void* self, int peer, int error) {
          auto* l = static_cast<Losses*>(self);
          ++l->count;
          l->peer = peer;
          l->error = error;
        },
        this);
  }
};

// The engine as the controller has it while its handler runs.
struct InHandler {
  explicit InHandler(Engine& e) : hold(e.gate()), scope(e, e.handler_mode()) {
    ++alloc_trap::t_armed;
  }
  ~InHandler() { --alloc_trap::t_armed; }
  Hold hold;
  ProgressScope scope;
};

}  // namespace

START_TEST(control_packets_arrive_in_order_and_whole) {
  SimRanks r;
  for (int i = 0; i < 50; ++i)
    ck_assert_int_eq(say(r.engine(0), 1, bytes_of(static_cast<std::size_t>(1 + i * 300), i)), 0);
  for (int i = 0; i < 50; ++i)
    ck_assert(hear(r, 1, 0) == bytes_of(static_cast<std::size_t>(1 + i * 300), i));
  ck_assert(!r.engine(1).control_ready());
}
END_TEST

START_TEST(packets_both_ways_use_one_connection) {
  SimRanks r;
  say(r.engine(0), 1, {1});
  hear(r, 1, 0);
  say(r.engine(1), 0, {2});
  hear(r, 0, 1);
  ck_assert_uint_eq(r.engine(0).counters().connections, 1);
  ck_assert_uint_eq(r.engine(1).counters().connections, 1);
  ck_assert_uint_eq(r.world.open_sockets(0), 2);  // and the listener
}
END_TEST

START_TEST(tie_leaves_one_connection_and_blames_nobody) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    sim::Faults f = SimRanks::no_faults();
    f.delay_max_ns = 200'000;
    SimRanks r(2, f, {}, seed);
    say(r.engine(0), 1, {10});
    say(r.engine(1), 0, {20});
    ck_assert_uint_eq(hear(r, 1, 0)[0], 10);
    ck_assert_uint_eq(hear(r, 0, 1)[0], 20);
    r.turn(50);
    for (int i = 0; i < 2; ++i) {
      ck_assert_uint_eq(r.engine(i).counters().connections, 1);
      ck_assert_uint_eq(r.engine(i).counters().connections_refused, 0);
      ck_assert_uint_eq(r.world.open_sockets(i), 2);
    }
  }
}
END_TEST

START_TEST(partial_header_of_every_length_resumes) {
  // Two packets and a bulk frame; the first read ends after n bytes, the next ones come byte by
  // byte for a while.
  for (std::uint64_t n = 1; n < 220; ++n) {
    SimRanks r;
    Taker taker(r.engine(1), FrameKind::kTransfer, 100);
    r.connect(0, 1);
    int reads = 0;
    r.world.read_limit = [&](int host, std::uint64_t could) -> std::uint64_t {
      if (host != 1 || could == 0) return could;
      return reads++ == 0 ? n : reads < 4 ? 1 : could;
    };
    say(r.engine(0), 1, bytes_of(20, 1));
    const auto data = bytes_of(100, 2);
    send_off(r.engine(0), 1, FrameKind::kTransfer, 5, data);
    say(r.engine(0), 1, bytes_of(10, 3));
    ck_assert(hear(r, 1, 0) == bytes_of(20, 1));
    ck_assert(hear(r, 1, 0) == bytes_of(10, 3));
    ck_assert_int_eq(taker.ended, 1);
    ck_assert(taker.buffer == data);
  }
}
END_TEST

START_TEST(partial_write_of_every_length_resumes) {
  for (std::uint64_t n = 0; n < 220; ++n) {
    SimRanks r;
    Taker taker(r.engine(1), FrameKind::kTransfer, 100);
    r.connect(0, 1);
    int writes = 0;
    r.world.write_limit = [&](int host, std::uint64_t could) -> std::uint64_t {
      if (host != 0) return could;
      return writes++ == 0 ? n : writes < 4 ? 1 : could;
    };
    r.engine(0).cork(1);
    say(r.engine(0), 1, bytes_of(20, 1));
    const auto data = bytes_of(100, 2);
    SendOp* op = nullptr;
    r.engine(0).send(1, FrameKind::kTransfer, 5, data.data(), data.size(), op);
    ck_assert_ptr_nonnull(op);
    Note note;
    r.engine(0).on_done(op, on_done, &note);
    say(r.engine(0), 1, bytes_of(10, 3));
    r.engine(0).uncork(1);
    ck_assert(hear(r, 1, 0) == bytes_of(20, 1));
    ck_assert(hear(r, 1, 0) == bytes_of(10, 3));
    ck_assert(r.until([&] { return taker.ended == 1; }));
    ck_assert(taker.buffer == data);
    ck_assert_int_eq(note.calls, 1);
    ck_assert_int_eq(note.error, 0);
    ck_assert_uint_eq(r.engine(0).queued_sends(), 0);
  }
}
END_TEST

START_TEST(what_is_held_leaves_in_one_system_call) {
  SimRanks r;
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kChannel, 3000);
  const auto data = bytes_of(3000, 1);
  const std::uint64_t before = r.engine(0).counters().writes;
  r.engine(0).cork(1);
  say(r.engine(0), 1, bytes_of(40, 2));
  SendOp* op = nullptr;
  r.engine(0).send(1, FrameKind::kChannel, 0, data.data(), data.size(), op);
  ck_assert_ptr_nonnull(op);
  r.engine(0).uncork(1);
  ck_assert_uint_eq(r.engine(0).counters().writes, before + 1);
  ck_assert(op->done);
  r.engine(0).release(op);
  hear(r, 1, 0);
  ck_assert(r.until([&] { return taker.ended == 1; }));
}
END_TEST

// Packet `number` of a few that are gathered.
std::vector<std::uint8_t> small(int number) {
  return bytes_of(40 + static_cast<std::size_t>(number % 3), number);
}

void gather(Engine& e, int to, int from_number, int count) {
  e.set_gather(Engine::kGatherPacketMax);
  for (int i = 0; i < count; ++i) ck_assert_int_eq(say(e, to, small(from_number + i)), 0);
  e.set_gather(0);
}

START_TEST(gathered_packets_leave_with_the_next_poll_in_one_system_call) {
  SimRanks r;
  r.connect(0, 1);
  const std::uint64_t before = r.engine(0).counters().writes;
  gather(r.engine(0), 1, 0, 20);
  ck_assert_int_eq(r.engine(0).gathered(), 20);
  ck_assert_uint_eq(r.engine(0).counters().writes, before);
  r.engine(0).poll();
  ck_assert_int_eq(r.engine(0).gathered(), 0);
  ck_assert_uint_eq(r.engine(0).counters().writes, before + 1);
  ck_assert_uint_eq(r.engine(0).queued_sends(), 0);
  for (int i = 0; i < 20; ++i) ck_assert(hear(r, 1, 0) == small(i));
}
END_TEST

START_TEST(what_does_not_fit_any_more_sends_off_what_is_gathered) {
  SimRanks r(3);
  r.connect(0, 1);
  r.connect(0, 2);
  constexpr int kMany = 1000;
  const std::uint64_t before = r.engine(0).counters().writes;
  gather(r.engine(0), 1, 0, kMany);
  const std::uint64_t bytes = kMany * (kFrameHeaderBytes + 41);
  ck_assert_uint_ge(r.engine(0).counters().writes - before, bytes / Engine::kGatherBytes);
  ck_assert_uint_le(r.engine(0).counters().writes - before, bytes / Engine::kGatherBytes + 1);
  gather(r.engine(0), 2, 0, 1);  // another peer
  for (int i = 0; i < kMany; ++i) ck_assert(hear(r, 1, 0) == small(i));
  ck_assert(hear(r, 2, 0) == small(0));
}
END_TEST

START_TEST(order_holds_between_gathered_and_other_frames) {
  // Behind what is gathered: a packet that leaves by itself, one too long to be gathered, a channel
  // message, two held together.
  for (int kind = 0; kind < 4; ++kind) {
    SimRanks r;
    r.connect(0, 1);
    Taker taker(r.engine(1), FrameKind::kChannel, 3000);
    gather(r.engine(0), 1, 0, 5);
    const auto data = bytes_of(3000, 9);
    if (kind == 0) say(r.engine(0), 1, bytes_of(10, 9));
    if (kind == 1) {
      r.engine(0).set_gather(Engine::kGatherPacketMax);
      say(r.engine(0), 1, bytes_of(Engine::kGatherPacketMax + 1, 9));
      r.engine(0).set_gather(0);
    }
    if (kind == 3) {
      r.engine(0).cork(1);
      say(r.engine(0), 1, bytes_of(10, 8));
    }
    if (kind >= 2) send_off(r.engine(0), 1, FrameKind::kChannel, 0, data);
    if (kind == 3) r.engine(0).uncork(1);
    ck_assert_int_eq(r.engine(0).gathered(), 0);
    gather(r.engine(0), 1, 5, 5);
    for (int i = 0; i < 5; ++i) ck_assert(hear(r, 1, 0) == small(i));
    if (kind == 0) ck_assert(hear(r, 1, 0) == bytes_of(10, 9));
    if (kind == 1) ck_assert(hear(r, 1, 0) == bytes_of(Engine::kGatherPacketMax + 1, 9));
    if (kind == 3) ck_assert(hear(r, 1, 0) == bytes_of(10, 8));
    for (int i = 5; i < 10; ++i) ck_assert(hear(r, 1, 0) == small(i));
    if (kind >= 2) ck_assert(taker.ended == 1 && taker.buffer == data);
  }
}
END_TEST

START_TEST(partial_write_of_gathered_packets_resumes) {
  for (std::uint64_t n = 0; n < 300; ++n) {
    SimRanks r;
    r.connect(0, 1);
    int writes = 0;
    r.world.write_limit = [&](int host, std::uint64_t could) -> std::uint64_t {
      if (host != 0) return could;
      return writes++ == 0 ? n : writes < 4 ? 1 : could;
    };
    gather(r.engine(0), 1, 0, 4);
    r.engine(0).poll();
    gather(r.engine(0), 1, 4, 4);  // the buffer is not free: these go the ordinary way
    for (int i = 0; i < 8; ++i) ck_assert(hear(r, 1, 0) == small(i));
    ck_assert_uint_eq(r.engine(0).queued_sends(), 0);
    gather(r.engine(0), 1, 8, 4);
    ck_assert_int_eq(r.engine(0).gathered(), 4);
    for (int i = 8; i < 12; ++i) ck_assert(hear(r, 1, 0) == small(i));
  }
}
END_TEST

START_TEST(gathered_packets_of_a_lost_peer_are_gone) {
  SimRanks r(3);
  r.connect(0, 1);
  r.connect(0, 2);
  gather(r.engine(0), 1, 0, 4);
  r.engine(0).give_up(1, ECONNRESET);
  ck_assert_int_eq(r.engine(0).gathered(), 0);
  ck_assert_uint_eq(r.engine(0).queued_sends(), 0);
  gather(r.engine(0), 2, 0, 4);
  ck_assert_int_eq(r.engine(0).gathered(), 4);
  for (int i = 0; i < 4; ++i) ck_assert(hear(r, 2, 0) == small(i));
}
END_TEST

START_TEST(handler_lets_gathered_packets_go_without_memory) {
  SimRanks r;
  r.connect(0, 1);
  r.world.write_limit = [&](int host, std::uint64_t could) {
    return host == 0 ? std::min<std::uint64_t>(could, 50) : could;
  };
  gather(r.engine(0), 1, 0, 4);
  r.engine(0).set_mode(ProgressMode::signal_handler(ProgressMode::kNoBudget));
  {
    alloc_trap::Armed armed;
    r.engine(0).poll();
  }
  r.engine(0).set_mode({});
  ck_assert_int_eq(r.engine(0).gathered(), 0);
  ck_assert_uint_eq(r.engine(0).counters().gathered_late, 1);
  for (int i = 0; i < 4; ++i) ck_assert(hear(r, 1, 0) == small(i));
}
END_TEST

START_TEST(control_packets_pass_bulk_that_is_queued) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_max = f.pipe_min = 10'000;
  SimRanks r(2, f, [](EngineOptions& o) { o.frame_bytes = 4096; });
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kTransfer, 1'000'000);
  const auto data = bytes_of(1'000'000, 4);
  SendOp* op = nullptr;
  r.engine(0).send(1, FrameKind::kTransfer, 1, data.data(), data.size(), op);
  say(r.engine(0), 1, bytes_of(10, 5));
  ck_assert(hear(r, 1, 0) == bytes_of(10, 5));
  ck_assert_uint_lt(taker.arrived, 200'000);
  ck_assert(r.until([&] { return taker.ended == 1; }));
  ck_assert(taker.buffer == data);
  ck_assert(op->done);
  r.engine(0).release(op);
}
END_TEST

START_TEST(transfers_take_turns_and_channel_messages_do_not) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_max = f.pipe_min = 2'000;
  SimRanks r(2, f, [](EngineOptions& o) { o.frame_bytes = 1000; });
  r.connect(0, 1);
  static std::vector<std::uint64_t> order;
  order.clear();
  r.engine(1).set_sink(FrameKind::kTransfer, {nullptr,
                                              [](void*, int, const FrameHeader& h, Destination&) {
                                                order.push_back(h.id);
                                                return Verdict::kTake;
                                              },
                                              nullptr});
  r.engine(1).set_sink(FrameKind::kChannel, {nullptr,
                                             [](void*, int, const FrameHeader& h, Destination&) {
                                               order.push_back(100 + h.total);
                                               return Verdict::kTake;
                                             },
                                             nullptr});
  const auto data = bytes_of(10'000, 1);
  SendOp* ops[4] = {};
  r.engine(0).cork(1);
  r.engine(0).send(1, FrameKind::kTransfer, 1, data.data(), 5'000, ops[0]);
  r.engine(0).send(1, FrameKind::kTransfer, 2, data.data(), 5'000, ops[1]);
  r.engine(0).send(1, FrameKind::kChannel, 0, data.data(), 3'001, ops[2]);
  r.engine(0).send(1, FrameKind::kChannel, 0, data.data(), 3'002, ops[3]);
  r.engine(0).uncork(1);
  ck_assert(r.until([&] { return r.engine(0).queued_sends() == 0; }));
  r.turn(20);
  std::vector<std::uint64_t> channel, transfers;
  for (const std::uint64_t o : order) (o > 100 ? channel : transfers).push_back(o);
  const std::vector<std::uint64_t> wanted = {3101, 3101, 3101, 3101, 3102, 3102, 3102, 3102};
  ck_assert(channel == wanted);
  ck_assert_uint_eq(transfers.size(), 10);
  ck_assert_uint_ne(transfers[0], transfers[1]);  // in turn from the start
  for (SendOp* op : ops) r.engine(0).release(op);
}
END_TEST

START_TEST(frame_without_a_buffer_waits_until_resume_rx) {
  SimRanks r;
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kTransfer, 500);
  taker.verdict = Verdict::kPause;
  const auto data = bytes_of(500, 6);
  send_off(r.engine(0), 1, FrameKind::kTransfer, 9, data);
  say(r.engine(0), 1, {7});
  r.turn(20);
  ck_assert_int_eq(taker.ended, 0);
  ck_assert(!r.engine(1).control_ready());              // behind it in the stream
  ck_assert_uint_eq(r.engine(1).counters().parked, 1);  // and it does not spin on it
  taker.verdict = Verdict::kTake;
  {
    Hold hold(r.engine(1).gate());
    r.engine(1).resume_rx(0);
  }
  ck_assert_uint_eq(hear(r, 1, 0)[0], 7);
  ck_assert_int_eq(taker.ended, 1);
  ck_assert(taker.buffer == data);
}
END_TEST

// Nobody polls afterwards: what lies in the socket was announced while nobody was to read it.
START_TEST(resume_rx_reads_what_came_meanwhile_before_the_gate_is_left) {
  SimRanks r;
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kTransfer, 300'000);
  taker.verdict = Verdict::kPause;
  r.engine(1).gate().set_drain([](void* engine) { static_cast<Engine*>(engine)->poll_all(); },
                               &r.engine(1));
  const auto data = bytes_of(300'000, 6);
  send_off(r.engine(0), 1, FrameKind::kTransfer, 9, data);
  say(r.engine(0), 1, {7});
  r.turn(20);
  ck_assert_uint_eq(r.engine(1).counters().parked, 1);
  taker.verdict = Verdict::kTake;
  {
    Hold hold(r.engine(1).gate());
    r.engine(1).resume_rx(0);
    ck_assert_int_eq(taker.ended, 0);  // resume_rx itself looks only at what has been read
  }
  ck_assert_int_eq(taker.ended, 1);
  ck_assert(r.engine(1).control_ready());
}
END_TEST

// A handler gets no second signal for what its first look did not tell of.
START_TEST(handler_reads_every_socket_when_more_are_ready_than_one_look_tells) {
  constexpr int kSenders = 150;
  SimRanks r(kSenders + 1);
  Taker taker(r.engine(0), FrameKind::kTransfer, 0);
  const auto data = bytes_of(100, 1);
  for (int i = 1; i <= kSenders; ++i) r.connect(i, 0);
  for (int i = 1; i <= kSenders; ++i) {
    send_off(r.engine(i), 0, FrameKind::kTransfer, 1, data);
  }
  r.world.skip(1'000'000);
  {
    InHandler handler(r.engine(0));
    r.engine(0).poll_all();
  }
  ck_assert_uint_eq(taker.arrived, kSenders * data.size());
}
END_TEST

START_TEST(idle_connection_holds_no_buffer) {
  constexpr int kPeers = 40;
  SimRanks r(kPeers + 1);
  for (int i = 1; i <= kPeers; ++i) r.connect(i, 0);
  r.turn(3);
  ck_assert_uint_eq(r.engine(0).read_ahead_buffers_used(), 0);
  ck_assert_uint_le(sizeof(Connection),
                    2048);  // the rest of 4 KB is for what the layers above keep per peer
  // In the middle of a packet it holds one, and afterwards none.
  std::uint64_t allowed = kFrameHeaderBytes + 5;
  r.world.read_limit = [&](int host, std::uint64_t could) -> std::uint64_t {
    const std::uint64_t n = host == 0 ? std::min(could, allowed) : could;
    if (host == 0) allowed -= n;
    return n;
  };
  say(r.engine(7), 0, bytes_of(100, 1));
  r.turn(5);
  ck_assert(!r.engine(0).control_ready());
  ck_assert_uint_eq(r.engine(0).read_ahead_buffers_used(), 1);
  allowed = ~std::uint64_t{0};
  ck_assert(hear(r, 0, 7) == bytes_of(100, 1));
  ck_assert(!r.engine(0).control_ready());
  ck_assert_uint_eq(r.engine(0).read_ahead_buffers_used(), 0);
}
END_TEST

// The handler cannot make buffers: it reads as many connections as it has, acts on their packets,
// and reads the next ones.
START_TEST(handler_hears_more_peers_than_it_has_buffers) {
  constexpr int kSenders = 5 * static_cast<int>(ReadAheadBuffers::kReady);
  SimRanks r(kSenders + 1);
  for (int i = 1; i <= kSenders; ++i) r.connect(i, 0);
  std::vector<std::vector<std::uint8_t>> packets;
  for (int i = 0; i <= kSenders; ++i) packets.push_back(bytes_of(200, i));
  for (int i = 1; i <= kSenders; ++i) say(r.engine(i), 0, packets[static_cast<std::size_t>(i)]);
  r.world.skip(1'000'000);
  int heard = 0, wrong = 0;  // judged outside: Check allocates
  {
    InHandler handler(r.engine(0));
    Engine& e = r.engine(0);
    for (e.poll_all(); e.control_ready();) {
      std::uint8_t packet[200];
      int from = 0;
      const std::uint32_t length = e.take_control(packet, sizeof packet, from);
      wrong += length != 200 ||
               std::memcmp(packet, packets[static_cast<std::size_t>(from)].data(), 200) != 0;
      ++heard;
      if (!e.control_ready()) e.poll_all();
    }
  }
  ck_assert_int_eq(wrong, 0);
  ck_assert_int_eq(heard, kSenders);
  ck_assert_uint_eq(r.engine(0).counters().no_memory_in_handler, 0);
  ck_assert(!r.engine(0).is_starved());
}
END_TEST

// Peers that stop in the middle of a packet can use up the handler's buffers. Ordinary context
// makes more, and nothing is lost.
START_TEST(peers_stuck_in_the_middle_of_packets_do_not_keep_others_out) {
  constexpr int kStuck = 2 * static_cast<int>(ReadAheadBuffers::kSpare);
  SimRanks r(kStuck + 2);
  for (int i = 1; i <= kStuck + 1; ++i) r.connect(i, 0);
  bool stuck = true;
  r.world.write_limit = [&](int host, std::uint64_t could) -> std::uint64_t {
    return stuck && host >= 1 && host <= kStuck ? std::min<std::uint64_t>(could, 40) : could;
  };
  for (int i = 1; i <= kStuck; ++i) say(r.engine(i), 0, bytes_of(200, i));
  r.world.skip(1'000'000);
  {
    InHandler handler(r.engine(0));
    r.engine(0).poll_all();
  }
  ck_assert_uint_gt(r.engine(0).counters().no_memory_in_handler, 0);
  ck_assert(r.engine(0).is_starved());
  say(r.engine(kStuck + 1), 0, {9});
  {
    Hold hold(r.engine(0).gate());
    for (int i = 0; i < 20 && !r.engine(0).control_ready(); ++i) {
      r.engine(0).refill();
      r.engine(0).poll_all();
    }
  }
  ck_assert(hear(r, 0, kStuck + 1) == std::vector<std::uint8_t>{9});
  ck_assert_uint_eq(r.engine(0).read_ahead_buffers_used(), kStuck);
  stuck = false;
  for (int heard = 0; heard < kStuck; ++heard) {
    ck_assert(r.until([&] { return r.engine(0).control_ready(); }));
    std::uint8_t packet[200];
    int from = -1;
    Hold hold(r.engine(0).gate());
    ck_assert_uint_eq(r.engine(0).take_control(packet, sizeof packet, from), 200);
    ck_assert(std::memcmp(packet, bytes_of(200, from).data(), 200) == 0);
  }
  r.turn(2);
  ck_assert_uint_eq(r.engine(0).read_ahead_buffers_used(), 0);
}
END_TEST

START_TEST(longer_than_the_room_is_cut_and_the_stream_goes_on) {
  SimRanks r;
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kTransfer, 10);
  const auto data = bytes_of(100'000, 7);
  send_off(r.engine(0), 1, FrameKind::kTransfer, 9, data);
  say(r.engine(0), 1, {8});
  ck_assert_uint_eq(hear(r, 1, 0)[0], 8);
  ck_assert_uint_eq(taker.arrived, 100'000);
  ck_assert_int_eq(std::memcmp(taker.buffer.data(), data.data(), 10), 0);
}
END_TEST

START_TEST(abandoned_destination_is_not_written_any_more) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_max = f.pipe_min = 1'000;
  SimRanks r(2, f);
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kTransfer, 50'000, 0xee);
  const auto data = bytes_of(50'000, 8);
  SendOp* op = nullptr;
  r.engine(0).send(1, FrameKind::kTransfer, 9, data.data(), data.size(), op);
  ck_assert(r.until([&] { return r.engine(1).counters().bytes_in > 5'000; }));
  {
    Hold hold(r.engine(1).gate());
    r.engine(1).redirect(0, FrameKind::kTransfer, 9, {});
  }
  const auto seen = taker.buffer;
  taker.buffer.shrink_to_fit();
  say(r.engine(0), 1, {9});
  ck_assert_uint_eq(hear(r, 1, 0)[0], 9);
  ck_assert(taker.buffer == seen);
  r.engine(0).release(op);
}
END_TEST

// From pieces into pieces of other lengths: the first write, then the first read, ends after n
// bytes; the next ones come byte by byte for a while.
START_TEST(pieces_cut_at_every_byte_leave_and_arrive_whole) {
  for (const std::uint32_t frame : {1'000u, 33u}) {
    for (int cut_reads = 0; cut_reads < 2; ++cut_reads) {
      for (std::uint64_t n = 1; n < 280; ++n) {
        SimRanks r(2, SimRanks::no_faults(), [frame](EngineOptions& o) { o.frame_bytes = frame; });
        PiecesTaker taker(r.engine(1), FrameKind::kTransfer, kOtherPieces);
        r.connect(0, 1);
        int calls = 0;
        (cut_reads != 0 ? r.world.read_limit : r.world.write_limit) =
            [&](int host, std::uint64_t could) -> std::uint64_t {
          if (host != cut_reads || could == 0) return could;
          return calls++ == 0 ? n : calls < 12 ? 1 : could;
        };
        const auto data = bytes_of(100, 2);
        InPieces from(kSomePieces);
        from.fill(data);
        r.engine(0).cork(1);
        say(r.engine(0), 1, bytes_of(20, 1));
        SendOp* op = nullptr;
        ck_assert_int_eq(r.engine(0).send(1, FrameKind::kTransfer, 5,
                                          Memory::in_pieces(from.pieces()), data.size(), op),
                         0);
        ck_assert_ptr_nonnull(op);
        Note note;
        r.engine(0).on_done(op, on_done, &note);
        say(r.engine(0), 1, bytes_of(10, 3));
        r.engine(0).uncork(1);
        ck_assert(hear(r, 1, 0) == bytes_of(20, 1));
        ck_assert(hear(r, 1, 0) == bytes_of(10, 3));
        ck_assert(r.until([&] { return taker.ended == 1; }));
        ck_assert_msg(taker.memory.packed() == data, "frames of %u, %s cut after %d", frame,
                      cut_reads != 0 ? "reads" : "writes", static_cast<int>(n));
        ck_assert(taker.memory.untouched_but(data.size()));
        ck_assert_int_eq(note.calls, 1);
        ck_assert_int_eq(note.error, 0);
      }
    }
  }
}
END_TEST

START_TEST(pieces_beyond_what_one_system_call_takes_follow_in_the_next) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) { o.frame_bytes = 4'000; });
  r.connect(0, 1);
  int calls[2] = {};
  const std::vector<std::size_t> lengths(1'000, 20);
  PiecesTaker taker(r.engine(1), FrameKind::kTransfer, lengths);
  const auto data = bytes_of(20'000, 4);
  InPieces from(lengths);
  from.fill(data);
  // Largest that one call was offered, by rank.
  std::uint64_t most[2] = {};
  const auto note = [&](int host, std::uint64_t could) {
    ++calls[host];
    most[host] = std::max(most[host], could);
    return could;
  };
  r.world.read_limit = note;
  r.world.write_limit = note;
  SendOp* op = nullptr;
  r.engine(0).send(1, FrameKind::kTransfer, 5, Memory::in_pieces(from.pieces()), data.size(), op);
  say(r.engine(0), 1, {7});
  ck_assert_uint_eq(hear(r, 1, 0)[0], 7);
  ck_assert(r.until([&] { return taker.ended == 1; }));
  ck_assert(taker.memory.packed() == data);
  ck_assert(taker.memory.untouched_but(data.size()));
  // The sender fills its calls whatever the frames are; a read goes as far as its frame.
  ck_assert_uint_le(most[0], kIovsMax * 32);
  ck_assert_int_le(calls[0], 1'010 / kIovsMax + 12);
  if (op != nullptr) r.engine(0).release(op);
}
END_TEST

START_TEST(room_in_pieces_ends_at_every_byte) {
  for (const std::uint32_t frame : {1'000u, 33u}) {
    for (std::uint64_t room = 0; room < 100; ++room) {
      SimRanks r(2, SimRanks::no_faults(), [frame](EngineOptions& o) { o.frame_bytes = frame; });
      r.connect(0, 1);
      PiecesTaker taker(r.engine(1), FrameKind::kTransfer, kSomePieces);
      taker.room = room;
      const auto data = bytes_of(100, 7);
      send_off(r.engine(0), 1, FrameKind::kTransfer, 9, data);
      say(r.engine(0), 1, {8});
      ck_assert_uint_eq(hear(r, 1, 0)[0], 8);
      ck_assert(r.until([&] { return taker.ended == 1; }));
      auto got = taker.memory.packed();
      got.resize(room);
      ck_assert(std::equal(got.begin(), got.end(), data.begin()));
      ck_assert(taker.memory.untouched_but(room));
    }
  }
}
END_TEST

START_TEST(abandoned_pieces_are_not_written_any_more) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_max = f.pipe_min = 1'000;
  SimRanks r(2, f);
  r.connect(0, 1);
  PiecesTaker taker(r.engine(1), FrameKind::kTransfer, std::vector<std::size_t>(500, 100));
  const auto data = bytes_of(50'000, 8);
  SendOp* op = nullptr;
  r.engine(0).send(1, FrameKind::kTransfer, 9, data.data(), data.size(), op);
  ck_assert(r.until([&] { return r.engine(1).counters().bytes_in > 5'000; }));
  {
    Hold hold(r.engine(1).gate());
    r.engine(1).redirect(0, FrameKind::kTransfer, 9, {});
  }
  const auto seen = taker.memory.packed();
  ck_assert_uint_eq(seen[0], data[0]);
  taker.memory = InPieces({});  // a cursor that was kept would point into freed memory
  say(r.engine(0), 1, {9});
  ck_assert_uint_eq(hear(r, 1, 0)[0], 9);
  r.engine(0).release(op);
}
END_TEST

START_TEST(kept_copy_of_pieces_frees_them_at_once) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_max = f.pipe_min = 700;
  SimRanks r(2, f, [](EngineOptions& o) { o.frame_bytes = 300; });
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kChannel, 5'000);
  {
    InPieces from(std::vector<std::size_t>(50, 100));
    from.fill(bytes_of(5'000, 3));
    SendOp* op = nullptr;
    r.engine(0).send(1, FrameKind::kChannel, 0, Memory::in_pieces(from.pieces()), 5'000, op);
    ck_assert_ptr_nonnull(op);
    ck_assert(r.engine(0).keep_copy(op));
    r.engine(0).release(op);
    from.fill(std::vector<std::uint8_t>(5'000));
  }
  ck_assert(r.until([&] { return taker.ended == 1; }));
  ck_assert(taker.buffer == bytes_of(5'000, 3));
}
END_TEST

// By what is asked for: 0: nothing.
std::function<void(EngineOptions&)> protected_by(Protection kind) {
  return [kind](EngineOptions& o) { o.protection = protection_offer(kind); };
}

START_TEST(protected_streams_carry_everything) {
  for (const Protection kind : {Protection::kAuth, Protection::kOn})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SimRanks r(2, sim::Faults(), protected_by(kind), seed);
      Taker taker(r.engine(1), FrameKind::kChannel, 300'000);
      const auto data = bytes_of(300'000, 3);
      SendOp* op = nullptr;
      ck_assert_int_eq(r.engine(0).send(1, FrameKind::kChannel, 0, data.data(), data.size(), op),
                       0);
      ck_assert_int_eq(say(r.engine(0), 1, bytes_of(20'000, 4)), 0);
      ck_assert(hear(r, 1, 0) == bytes_of(20'000, 4));
      ck_assert(r.until([&] { return taker.ended == 1; }));
      ck_assert(taker.buffer == data);
      ck_assert(r.until([&] { return r.engine(0).queued_sends() == 0; }));
      r.engine(0).release(op);
    }
}
END_TEST

// More than there are streams ready for, in one call of each, from both ends.
START_TEST(any_number_of_streams_begins_in_one_call) {
  constexpr int kRanks = 40;
  SimRanks r(kRanks, SimRanks::no_faults(), protected_by(Protection::kOn));
  Losses losses[kRanks];
  for (int i = 0; i < kRanks; ++i) losses[i].install(r.engine(i));
  for (int i = 1; i < kRanks; ++i)
    say(i % 2 == 0 ? r.engine(0) : r.engine(i), i % 2 == 0 ? i : 0, {1});
  for (int turns = 0; turns < 200; ++turns) {
    for (int i = 0; i < kRanks; ++i) {
      Hold hold(r.engine(i).gate());
      r.engine(i).poll_all();  // and no refill
    }
    r.world.skip(100'000);
  }
  for (const Losses& l : losses) ck_assert_int_eq(l.count, 0);
  ck_assert_uint_eq(r.engine(0).counters().connections, kRanks - 1);
}
END_TEST

START_TEST(nothing_of_what_is_sent_can_be_read_on_its_way) {
  for (const Protection kind : {Protection::kOff, Protection::kAuth, Protection::kOn}) {
    SimRanks r(2, SimRanks::no_faults(), protected_by(kind));
    const std::vector<std::uint8_t> word = {'w', 'o', 'r', 'd', '!', '?', 'w', 'o', 'r', 'd'};
    bool seen = false;
    r.world.tamper = [&](int, std::vector<std::uint8_t>& bytes) {
      seen =
          seen || std::search(bytes.begin(), bytes.end(), word.begin(), word.end()) != bytes.end();
    };
    say(r.engine(0), 1, word);
    ck_assert(hear(r, 1, 0) == word);
    ck_assert(seen == (kind != Protection::kOn));
  }
}
END_TEST

START_TEST(data_that_was_changed_on_its_way_loses_the_peer) {
  for (const Protection kind : {Protection::kAuth, Protection::kOn}) {
    SimRanks r(2, SimRanks::no_faults(), protected_by(kind));
    r.connect(0, 1);
    Losses losses;
    losses.install(r.engine(1));
    r.world.tamper = [](int, std::vector<std::uint8_t>& bytes) { bytes[bytes.size() / 2] ^= 1; };
    say(r.engine(0), 1, bytes_of(100, 1));
    ck_assert(r.until([&] { return losses.count == 1; }));
    ck_assert_int_eq(losses.error, EBADMSG);
    ck_assert(!r.engine(1).control_ready());
    ck_assert_ptr_nonnull(std::strstr(loss_text(losses.error), "changed on the way"));
  }
}
END_TEST

START_TEST(ranks_with_another_protection_do_not_talk) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) {
    o.protection = o.rank == 0 ? 0 : protection_offer(Protection::kOn);
  });
  Losses losses;
  losses.install(r.engine(0));
  say(r.engine(0), 1, {1});
  ck_assert(r.until([&] { return losses.count == 1; }, 100'000));
  ck_assert(!r.engine(1).control_ready());
}
END_TEST

START_TEST(frame_of_a_kind_without_a_sink_loses_the_peer) {
  SimRanks r;
  r.connect(0, 1);
  Losses losses;
  losses.install(r.engine(1));
  SendOp* op = nullptr;
  r.engine(0).send(1, FrameKind::kMessage, 1, "x", 1, op);
  ck_assert(r.until([&] { return losses.count == 1; }));
  ck_assert_int_eq(losses.error, EPROTO);
  ck_assert_int_eq(r.engine(1).peer_error(0), EPROTO);
  if (op != nullptr) r.engine(0).release(op);
}
END_TEST

START_TEST(every_changed_bit_of_a_header_is_survived) {
  // The peer is lost, or the change was harmless, or the stream waits for bytes that do not come;
  // then a broken connection still ends it.
  for (unsigned bit = 0; bit < kFrameHeaderBytes * 8; ++bit) {
    SimRanks r;
    r.connect(0, 1);
    Taker taker(r.engine(1), FrameKind::kTransfer, 64);
    Losses losses;
    losses.install(r.engine(1));
    bool once = true;
    r.world.tamper = [&](int host, std::vector<std::uint8_t>& b) {
      if (host == 0 && once && b.size() > bit / 8)
        b[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8), once = false;
    };
    const auto data = bytes_of(64, 1);
    send_off(r.engine(0), 1, FrameKind::kTransfer, 5, data);
    say(r.engine(0), 1, bytes_of(30, 2));
    const auto listen = [&] {  // what is in a packet may be nonsense; it must be takeable
      std::uint8_t packet[64];
      int from = -1;
      for (int i = 0; i < 30; ++i) {
        r.turn(1);
        Hold hold(r.engine(1).gate());
        if (r.engine(1).control_ready()) r.engine(1).take_control(packet, sizeof packet, from);
      }
    };
    listen();
    ck_assert(!once);
    if (bit < 8 || (bit >= 14 && bit < 24))
      ck_assert_int_eq(losses.count, 1);  // magic, more padding than there may be, version
    r.world.cut(0, 1);
    listen();
    say(r.engine(1), 0, {1});  // a connection that is parked (a channel frame, and nobody receives)
                               // is looked at by the next send only
    listen();
    ck_assert_msg(losses.count == 1, "bit %u: %d losses", bit, losses.count);
  }
}
END_TEST

START_TEST(segments_that_tcp_sent_again_are_counted_once) {
  SimRanks r;
  r.connect(0, 1);
  Losses losses;
  losses.install(r.engine(0));
  const auto count = [&] {
    Hold hold(r.engine(0).gate());
    r.engine(0).count_resent();
    return r.engine(0).counters().resent;
  };
  ck_assert_uint_eq(count(), 0);
  r.world.resent = 7;
  ck_assert_uint_eq(count(), 7);
  ck_assert_uint_eq(count(), 7);
  r.world.resent = 9;
  r.lose_host(1);
  ck_assert(r.until([&] { return losses.count == 1; }));
  ck_assert_uint_eq(r.engine(0).counters().resent, 9);
  ck_assert_uint_eq(count(), 9);
}
END_TEST

START_TEST(unreachable_peer_is_lost_with_the_reason_and_its_sends_complete) {
  SimRanks r;
  Losses losses;
  losses.install(r.engine(0));
  r.lose_host(1);
  Note note;
  SendOp* op = nullptr;
  const int rc = r.engine(0).send(1, FrameKind::kChannel, 0, "abc", 3, op);
  if (op != nullptr) r.engine(0).on_done(op, on_done, &note);
  ck_assert(r.until([&] { return losses.count == 1; }));
  ck_assert_int_eq(losses.error, ECONNREFUSED);
  if (op != nullptr) {
    ck_assert_int_eq(note.calls, 1);
    ck_assert_int_eq(note.error, ECONNREFUSED);
  } else {
    ck_assert_int_eq(rc, -ECONNREFUSED);
  }
  ck_assert_int_eq(say(r.engine(0), 1, {1}), -ECONNREFUSED);
}
END_TEST

START_TEST(peer_that_dies_is_lost_and_everything_queued_for_it_completes) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_max = f.pipe_min = 1'000;
  SimRanks r(3, f);
  r.connect(0, 1);
  r.connect(0, 2);
  Losses losses;
  losses.install(r.engine(0));
  Note notes[3];
  const auto data = bytes_of(20'000, 1);
  for (auto& note : notes) {
    SendOp* op = nullptr;
    ck_assert_int_eq(r.engine(0).send(1, FrameKind::kTransfer, 1, data.data(), data.size(), op), 0);
    ck_assert_ptr_nonnull(op);
    r.engine(0).on_done(op, on_done, &note);
  }
  r.lose_host(1);
  ck_assert(r.until([&] { return losses.count == 1; }));
  ck_assert_int_eq(losses.peer, 1);
  for (const auto& note : notes) {
    ck_assert_int_eq(note.calls, 1);
    ck_assert_int_eq(note.error, losses.error);
  }
  say(r.engine(0), 2, {3});  // the others are not concerned
  ck_assert_uint_eq(hear(r, 2, 0)[0], 3);
}
END_TEST

START_TEST(silent_peer_is_given_up_at_the_deadline_by_polling_alone) {
  // With either parity of the polls made before: one counter that two calls moved once hid the
  // deadline from every second count.
  for (int before = 0; before < 2; ++before) {
    sim::Faults f = SimRanks::no_faults();
    f.unanswered = 1024;
    SimRanks r(2, f);
    Losses losses;
    losses.install(r.engine(0));
    for (int i = 0; i < before; ++i) r.engine(0).poll();
    say(r.engine(0), 1, {1});
    for (int i = 0; i < 100'000 && losses.count == 0; ++i) {
      Hold hold(r.engine(0).gate());
      r.engine(0).poll();
      r.world.pass(100'000);
    }
    ck_assert_int_eq(losses.count, 1);
    ck_assert_int_eq(losses.error, ETIMEDOUT);
  }
}
END_TEST

// Time passes in steps of 10 ms, and of all ranks only `rank` polls.
void poll_alone(SimRanks& r, int rank, int seconds) {
  for (int i = 0; i < 100 * seconds; ++i) {
    r.world.pass(10'000'000);
    Hold hold(r.engine(rank).gate());
    r.engine(rank).refill();
    r.engine(rank).poll_all();
  }
}

START_TEST(peer_that_computes_for_minutes_before_it_accepts_is_not_lost) {
  SimRanks r;  // connect_timeout is 1 s
  Losses losses;
  losses.install(r.engine(0));
  say(r.engine(0), 1, {5});
  poll_alone(r, 0, 120);
  ck_assert_int_eq(losses.count, 0);
  ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
  ck_assert_int_eq(losses.count, 0);
}
END_TEST

START_TEST(peer_that_stops_in_the_middle_of_the_handshake_is_not_lost) {
  SimRanks r;
  Losses losses;
  losses.install(r.engine(0));
  say(r.engine(0), 1, {5});
  for (int i = 0; i < 3;
       ++i) {  // hello and challenge have been exchanged, the proof lies at rank 1 unread
    poll_alone(r, 1 - i % 2, 1);
  }
  poll_alone(r, 0, 120);
  ck_assert_int_eq(losses.count, 0);
  ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
}
END_TEST

START_TEST(caller_that_computes_before_it_has_said_hello_is_not_lost_to_it) {
  SimRanks r;  // connect_timeout is 1 s
  Losses losses;
  losses.install(r.engine(0));
  say(r.engine(0), 1, {5});
  poll_alone(r, 1, 15);
  ck_assert_uint_eq(r.engine(1).counters().connections_refused, 0);
  r.world.pass(40'000'000'000);
  ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
  ck_assert_int_eq(losses.count, 0);
}
END_TEST

// LITE_CONTROLLER=sync: whatever the peer does, it takes one look of the caller for each step.
START_TEST(caller_that_looks_every_half_minute_is_let_in) {
  for (const int peer_polls_s : {0, 29}) {
    SimRanks r;  // connect_timeout is 1 s
    Losses losses;
    losses.install(r.engine(0));
    say(r.engine(0), 1, {5});
    int looks = 0;
    for (; r.engine(0).counters().connections == 0 && looks < 10; ++looks) {
      poll_alone(r, 1, peer_polls_s);
      r.world.pass(30'000'000'000 - peer_polls_s * 1'000'000'000LL);
      for (int rank : {1, 0}) {
        Hold hold(r.engine(rank).gate());
        r.engine(rank).poll_all();
      }
    }
    ck_assert_int_le(looks, 4);
    ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
    ck_assert_int_eq(losses.count, 0);
    ck_assert_uint_eq(r.engine(1).counters().connections_refused, 0);
  }
}
END_TEST

START_TEST(peer_cut_off_before_it_accepts_is_lost_by_silence) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) { o.stream = {0, 2, 1}; });
  Losses losses;
  losses.install(r.engine(0));
  say(r.engine(0), 1, {5});
  poll_alone(r, 0, 1);
  r.world.mute(0, 1);
  for (int i = 0; i < 10 && losses.count == 0; ++i) {
    poll_alone(r, 0, 1);
    r.turn(5000);  // it is looked for every few thousand polls
  }
  ck_assert_int_eq(losses.count, 1);
  ck_assert_int_eq(losses.error, ETIMEDOUT);
}
END_TEST

// Everybody but rank 0 polls; rank 0 has its handler only, which may not allocate.
void turn_with_handler(SimRanks& r, int ranks, int turns) {
  for (; turns > 0; --turns) {
    {
      InHandler in(r.engine(0));
      r.engine(0).poll_all();
      std::uint8_t packet[64];
      for (int from; r.engine(0).take_control(packet, sizeof packet, from) != 0;) {}
    }
    for (int i = 1; i < ranks; ++i) {
      Hold hold(r.engine(i).gate());
      r.engine(i).refill();
      r.engine(i).poll_all();
    }
    r.world.skip(100'000);
  }
}

START_TEST(handler_accepts_every_rank_that_calls) {
  constexpr int kRanks = 40;
  SimRanks r(kRanks);
  Losses losses[kRanks];
  for (int i = 0; i < kRanks; ++i) losses[i].install(r.engine(i));
  for (int i = 1; i < kRanks; ++i) say(r.engine(i), 0, {1});
  turn_with_handler(r, kRanks, 200);
  ck_assert_uint_eq(r.engine(0).counters().connections, kRanks - 1);
  ck_assert_uint_eq(r.engine(0).counters().connections_refused, 0);
  for (const Losses& l : losses) ck_assert_int_eq(l.count, 0);
}
END_TEST

// More than there is room for: the others wait in the kernel. Rank 0 has its handler only at first,
// or not.
START_TEST(many_ranks_that_call_at_once_are_all_let_in) {
  constexpr int kRanks = 200;
  for (const bool handler : {false, true}) {
    SimRanks r(kRanks);
    for (int i = 1; i < kRanks; ++i) say(r.engine(i), 0, {1});
    for (int i = 1; i < kRanks; ++i) poll_alone(r, i, 1);  // they have said hello
    r.world.descriptors_left = 1'000;
    r.poll(0);
    ck_assert_int_eq(r.world.descriptors_left, 1'000 - 64);
    if (handler) {
      turn_with_handler(r, kRanks, 50);
      ck_assert(r.engine(0).is_starved());  // of nodes: a thread goes on
    }
    for (int turns = 0; turns < 50; ++turns) {
      for (int i = 0; i < kRanks; ++i) {
        Hold hold(r.engine(i).gate());
        r.engine(i).refill();
        r.engine(i).poll_all();
      }
      r.world.skip(100'000);
    }
    ck_assert_uint_eq(r.engine(0).counters().connections, kRanks - 1);
    ck_assert_uint_eq(r.engine(0).counters().connections_refused, 0);
  }
}
END_TEST

START_TEST(silent_strangers_do_not_keep_ranks_out_of_the_handler) {
  for (const int strangers : {4, 5, 63, 64, 65, 100, 300}) {
    constexpr int kRanks = 7;
    SimRanks r(kRanks);
    Losses losses[kRanks];
    for (int i = 0; i < kRanks; ++i) losses[i].install(r.engine(i));
    for (int i = 0; i < strangers; ++i) r.world.stranger_connect(0);
    turn_with_handler(r, kRanks, 20);
    for (int i = 1; i < kRanks; ++i) say(r.engine(i), 0, {1});
    turn_with_handler(r, kRanks, 2000);
    ck_assert_uint_eq(r.engine(0).counters().connections, kRanks - 1);
    for (const Losses& l : losses) ck_assert_int_eq(l.count, 0);
  }
}
END_TEST

START_TEST(own_attempts_do_not_take_the_room_of_callers) {
  constexpr int kRanks = 70, kCalled = 66;
  SimRanks r(kRanks);
  for (int i = 1; i <= kCalled; ++i) say(r.engine(0), i, {1});
  poll_alone(r, 0, 1);  // their kernels have accepted, and they compute
  for (int i = kCalled + 1; i < kRanks; ++i) say(r.engine(i), 0, {1});
  for (int turns = 0; turns < 20; ++turns) {
    for (int i = 0; i < kRanks; ++i) {
      if (i != 0 && i <= kCalled) continue;
      Hold hold(r.engine(i).gate());
      r.engine(i).refill();
      r.engine(i).poll_all();
    }
    r.world.skip(100'000);
  }
  ck_assert_uint_eq(r.engine(0).counters().connections, kRanks - 1 - kCalled);
  ck_assert_uint_eq(r.engine(0).counters().connections_refused, 0);
}
END_TEST

START_TEST(who_has_said_nothing_makes_room_before_who_has_said_hello) {
  SimRanks r(3);
  say(r.engine(1), 0, {5});
  for (const int rank : {1, 0}) poll_alone(r, rank, 1);  // rank 1 is challenged, and computes
  for (int i = 0; i < 64; ++i) r.world.stranger_connect(0);
  poll_alone(r, 0, 1);
  ck_assert_uint_eq(r.engine(0).counters().connections_refused, 1);
  for (const int rank : {1, 0}) poll_alone(r, rank, 1);
  ck_assert_uint_eq(r.engine(0).counters().connections, 1);
  ck_assert_uint_eq(r.engine(0).counters().connections_refused, 1);
}
END_TEST

// Our own attempts have taken most of the room, and the handler cannot make more.
START_TEST(who_has_said_hello_is_not_pushed_out_for_want_of_room_in_the_handler) {
  constexpr int kRanks = 6;
  SimRanks r(kRanks);
  r.as(0);
  for (int i = 1; i < kRanks; ++i) say(r.engine(0), i, {1});
  for (int i = 1; i < kRanks; ++i) {
    say(r.engine(i), 0, {1});
    poll_alone(r, i, 1);
  }
  turn_with_handler(r, kRanks, 20);
  ck_assert_uint_eq(r.engine(0).counters().connections_refused, 0);
  poll_alone(r, 0, 1);
  turn_with_handler(r, kRanks, 20);
  ck_assert_uint_eq(r.engine(0).counters().connections, kRanks - 1);
}
END_TEST

// The handler has room for three, and what they say has not been read when others call. Which
// socket is looked at first is drawn.
START_TEST(who_is_silent_no_more_when_the_next_one_calls_keeps_its_room) {
  constexpr int kRanks = 8;
  std::uint64_t sent_away = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimRanks r(kRanks, SimRanks::no_faults(), {}, seed);
    Losses losses[kRanks];
    for (int i = 0; i < kRanks; ++i) losses[i].install(r.engine(i));
    r.as(0);
    for (int i = 1; i <= 5; ++i) say(r.engine(0), i, {1});
    for (int i = 1; i <= 3; ++i) say(r.engine(i), 0, {1});
    turn_with_handler(r, 1, 1);  // of rank 0 alone
    r.world.skip(100'000);
    for (int i = 1; i <= 3; ++i) {  // without the time that poll_alone() takes
      Hold hold(r.engine(i).gate());
      for (int polls = 0; polls < 3; ++polls) r.engine(i).poll_all();
    }
    for (int i = 6; i < kRanks; ++i) say(r.engine(i), 0, {1});
    turn_with_handler(r, 1, 1);
    sent_away += r.engine(0).counters().connections_refused;
    r.until([&] { return r.engine(0).counters().connections == kRanks - 1; }, 100'000);
    ck_assert_uint_eq(r.engine(0).counters().connections, kRanks - 1);
    for (const Losses& l : losses) ck_assert_int_eq(l.count, 0);
  }
  ck_assert_uint_gt(sent_away, 0);
}
END_TEST

// Ranks that have called and not spoken yet: the handler has room for a few. The others call again,
// and nobody is told.
START_TEST(want_of_room_in_the_handler_for_ranks_is_no_news) {
  constexpr int kRanks = 20;
  SimRanks r(kRanks);
  r.as(0);
  for (int i = 1; i < kRanks; ++i) say(r.engine(0), i, {1});
  for (int i = 1; i < kRanks; ++i) say(r.engine(i), 0, {1});
  const std::string told = said([&] {
    for (int turn = 0; turn < 20; ++turn) {
      turn_with_handler(r, 1, 1);  // of rank 0 alone
      r.world.skip(100'000);
    }
    ck_assert_uint_gt(r.engine(0).counters().connections_refused, 0);
    r.until([&] { return r.engine(0).counters().connections == kRanks - 1; }, 100'000);
  });
  ck_assert_uint_eq(r.engine(0).counters().connections, kRanks - 1);
  ck_assert_str_eq(told.c_str(), "");
}
END_TEST

START_TEST(strangers_give_their_descriptors_up_for_a_connection_of_ours) {
  SimRanks r;
  Losses losses;
  losses.install(r.engine(0));
  r.world.descriptors_left = 2;
  for (int i = 0; i < 2; ++i) r.world.stranger_connect(0);
  r.turn(20);
  ck_assert_int_eq(r.world.descriptors_left, 0);
  say(r.engine(0), 1, {5});
  ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
  ck_assert_int_eq(losses.count, 0);
}
END_TEST

// Rank 0 has no descriptor for a caller: the listener is not tried at every poll.
START_TEST(caller_waits_until_there_is_a_descriptor_for_it) {
  SimRanks r(2, SimRanks::no_faults(),
             [](EngineOptions& o) { o.connect_timeout_ns = 10'000'000'000; });
  Losses losses[2];
  for (int i = 0; i < 2; ++i) losses[i].install(r.engine(i));
  r.world.descriptors_left = 0;
  say(r.engine(1), 0, {5});
  for (int i = 0; i < 3000; ++i) {
    r.turn();
    r.world.pass(1'000'000);
  }
  ck_assert_int_ge(r.world.accepts_without_descriptor, 10);
  ck_assert_int_le(r.world.accepts_without_descriptor, 40);  // in 3 s and a little
  ck_assert_uint_eq(r.engine(0).counters().connections, 0);
  r.world.descriptors_left = 1;
  r.until([&] {
    r.world.pass(1'000'000);
    return r.engine(0).counters().connections == 1;
  });
  ck_assert_uint_eq(hear(r, 0, 1)[0], 5);
  for (const Losses& l : losses) ck_assert_int_eq(l.count, 0);
}
END_TEST

START_TEST(ranks_that_cannot_be_accepted_are_given_up_with_the_reason) {
  SimRanks r(3);  // connect_timeout is 1 s
  Losses losses;
  losses.install(r.engine(0));
  r.world.descriptors_left = 1;
  say(r.engine(1), 0, {5});
  ck_assert_uint_eq(hear(r, 0, 1)[0], 5);
  say(r.engine(2), 0, {6});
  poll_alone(r, 2, 1);
  poll_alone(r, 0, 4);
  ck_assert_int_eq(losses.count, 1);
  ck_assert_int_eq(losses.peer, 2);
  ck_assert_int_eq(losses.error, EMFILE);
}
END_TEST

// The handler and the helper thread cannot end the shortage, and the application may: the time that
// it computes does not count.
START_TEST(shortage_of_descriptors_while_the_application_computes_gives_nobody_up) {
  for (const bool thread : {false, true}) {
    SimRanks r(3);  // connect_timeout is 1 s
    Losses losses;
    losses.install(r.engine(0));
    r.world.descriptors_left = 0;
    say(r.engine(1), 0, {5});
    for (int tenths = 0; tenths < 50; ++tenths) {
      poll_alone(r, 1, 1);
      if (thread) {
        Hold hold(r.engine(0).gate());
        ProgressScope helper(r.engine(0), ProgressMode::helper_thread());
        r.engine(0).poll_all();
      } else {
        InHandler in(r.engine(0));
        r.engine(0).poll();
      }
      r.world.skip(100'000'000);
    }
    ck_assert_int_ge(r.world.accepts_without_descriptor, 10);
    ck_assert_int_eq(losses.count, 0);
    r.world.descriptors_left = 1;
    ck_assert_uint_eq(hear(r, 0, 1)[0], 5);
    ck_assert_int_eq(losses.count, 0);
  }
}
END_TEST

START_TEST(spare_descriptor_is_for_one_connection_and_comes_back) {
  SimRanks r(3, SimRanks::no_faults(),
             [](EngineOptions& o) { o.connect_timeout_ns = 10'000'000'000; });
  EngineOptions o;
  o.size = 3;
  o.peers = r.peers.data();
  o.connect_timeout_ns = 10'000'000'000;
  r.engines[0].reset();
  o.listeners[0] = r.world.make_listener(0);
  o.spare = r.world.net(0).open_stream(AF_INET);
  ck_assert_int_ge(o.spare, 0);
  r.engines[0] = std::make_unique<Engine>(r.world.net(0), o);
  ck_assert_int_eq(r.engine(0).start(), 0);
  Losses losses;
  losses.install(r.engine(0));
  r.world.descriptors_left = 0;
  const int stranger = r.world.stranger_connect(0);  // it has the spare one until a rank calls
  r.turn(20);
  ck_assert_int_eq(r.world.descriptors_left, 0);
  say(r.engine(1), 0, {5});
  ck_assert_uint_eq(hear(r, 0, 1)[0], 5);
  ck_assert_uint_eq(r.engine(0).counters().connections_refused, 1);
  r.world.stranger_close(stranger);
  r.lose_host(1);
  r.turn(20);
  ck_assert_int_eq(losses.count, 1);
  ck_assert_int_eq(r.world.descriptors_left, 0);  // held again
  say(r.engine(0), 2, {6});                       // and taken by a connection of its own
  ck_assert_uint_eq(hear(r, 2, 0)[0], 6);
  ck_assert_int_eq(losses.count, 1);
}
END_TEST

// Rank 0 computes and nothing is outstanding there: it has the handler of the callers' signal only.
// Everybody else polls.
void look_at_callers(Engine& e) {
  InHandler in(e);
  e.set_mode(e.mode().for_callers());
  e.poll();
}

void turn_with_callers_handler(SimRanks& r, int turns) {
  for (; turns > 0; --turns) {
    if (r.world.take_signal(0, sim::kCallerSignal)) look_at_callers(r.engine(0));
    for (int i = 1; i < static_cast<int>(r.engines.size()); ++i) {
      Hold hold(r.engine(i).gate());
      r.engine(i).refill();
      r.engine(i).poll_all();
    }
    r.world.skip(100'000);
  }
}

// As the sigio controller leaves rank 0 when it has nothing outstanding: the main signal is
// blocked, and not even raised.
void compute(SimRanks& r) {
  Engine& e = r.engine(0);
  Hold hold(e.gate());
  e.set_signal_driven(1, sim::kMainSignal);
  e.set_signals(false);
  ck_assert_int_eq(e.hear_callers(sim::kCallerSignal), 0);
  e.set_outstanding(false);
}

START_TEST(callers_come_in_while_nothing_is_outstanding_and_their_messages_wait) {
  SimRanks r(3);
  compute(r);
  say(r.engine(1), 0, {7});
  turn_with_callers_handler(r, 50);
  ck_assert_uint_eq(r.engine(0).counters().connections, 1);
  ck_assert_uint_eq(r.engine(1).queued_sends(), 0);
  ck_assert(!r.engine(0).control_ready());
  ck_assert_uint_eq(r.engine(0).counters().bytes_in, 0);
  // What comes from who is connected does not interrupt.
  const std::uint64_t waits = r.engine(0).counters().waits;
  for (int i = 0; i < 20; ++i) {
    say(r.engine(1), 0, {8});
    turn_with_callers_handler(r, 5);
  }
  ck_assert_uint_eq(r.engine(0).counters().waits, waits);
  ck_assert_uint_eq(hear(r, 0, 1)[0], 7);
}
END_TEST

START_TEST(whose_message_is_awaited_is_heard_by_the_other_signal_once_it_is_up) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    sim::Faults f = SimRanks::no_faults();
    f.delay_max_ns = 200'000;
    SimRanks r(3, f, {}, seed);
    compute(r);
    {
      Hold hold(r.engine(0).gate());
      r.engine(0).set_outstanding(true);
      r.engine(0).set_signals(true);
    }
    bool drained = false;
    r.engine(0).gate().set_drain([](void* arg) { *static_cast<bool*>(arg) = true; }, &drained);
    say(r.engine(1), 0, {7});
    for (int i = 0; i < 200 && r.engine(0).counters().connections == 0; ++i)
      turn_with_callers_handler(r, 1);
    ck_assert_uint_eq(r.engine(0).counters().connections, 1);
    ck_assert(drained);  // what came before the signal was changed
    turn_with_callers_handler(r, 20);
    r.world.take_signal(0);
    say(r.engine(1), 0, {8});
    turn_with_callers_handler(r, 20);
    ck_assert(r.world.take_signal(0));
  }
}
END_TEST

START_TEST(when_all_ranks_are_connected_the_listener_is_as_ever) {
  for (const bool lost : {false, true}) {
    SimRanks r(4);
    const int listener = 0;  // the first descriptor of all
    compute(r);
    r.world.stranger_connect(0);
    turn_with_callers_handler(r, 5);
    ck_assert_int_eq(r.world.called(0), 2);
    ck_assert_int_eq(r.world.signal_of(listener), sim::kCallerSignal);
    {
      Hold hold(r.engine(0).gate());
      r.engine(0).set_signals(true);
      r.engine(0).set_signals(false);
    }
    ck_assert_int_eq(r.world.signal_of(listener), sim::kCallerSignal);
    for (int i = 1; i < 3; ++i) say(r.engine(i), 0, {1});
    turn_with_callers_handler(r, 50);
    ck_assert(r.engine(0).awaits_callers());
    ck_assert_int_eq(r.world.called(0), 2);
    if (lost) {
      Hold hold(r.engine(0).gate());
      r.engine(0).give_up(3, EPIPE);
    } else {
      say(r.engine(3), 0, {1});
      turn_with_callers_handler(r, 50);
    }
    ck_assert(!r.engine(0).awaits_callers());
    ck_assert_int_eq(r.world.called(0), 0);
    ck_assert_int_eq(r.world.signal_of(listener), 0);
    Hold hold(r.engine(0).gate());
    r.engine(0).set_signals(true);
    ck_assert_int_eq(r.world.signal_of(listener), sim::kMainSignal);
  }
}
END_TEST

START_TEST(silent_strangers_do_not_keep_ranks_out_while_nothing_is_outstanding) {
  for (const int strangers : {4, 63, 64, 65, 100, 300}) {
    constexpr int kRanks = 7;
    SimRanks r(kRanks);
    Losses losses[kRanks];
    for (int i = 0; i < kRanks; ++i) losses[i].install(r.engine(i));
    compute(r);
    for (int i = 0; i < strangers; ++i) r.world.stranger_connect(0);
    turn_with_callers_handler(r, 20);
    for (int i = 1; i < kRanks; ++i) say(r.engine(i), 0, {1});
    turn_with_callers_handler(r, 2000);
    ck_assert_uint_eq(r.engine(0).counters().connections, kRanks - 1);
    for (const Losses& l : losses) ck_assert_int_eq(l.count, 0);
  }
}
END_TEST

START_TEST(strangers_without_end_do_not_keep_the_application_from_computing) {
  SimRanks r(3);
  compute(r);
  for (int i = 0; i < 4 * Allowance::kBurst; ++i) r.world.stranger_connect(0);
  r.world.skip(100'000);
  look_at_callers(r.engine(0));
  ck_assert_uint_le(r.engine(0).counters().connections_refused, Allowance::kBurst);
  ck_assert_int_gt(r.engine(0).callers_rest_ns(), 0);
  const std::uint64_t calls = r.engine(0).counters().system_calls();
  for (int i = 0; i < 100; ++i) look_at_callers(r.engine(0));
  ck_assert_uint_eq(r.engine(0).counters().system_calls(), calls);
  // A rank that calls behind them has its turn all the same.
  say(r.engine(1), 0, {7});
  for (int i = 0; i < 100 && r.engine(0).counters().connections == 0; ++i) {
    r.world.pass(Allowance::kRestNs);
    look_at_callers(r.engine(0));
    Hold hold(r.engine(1).gate());
    r.engine(1).poll_all();
  }
  ck_assert_uint_eq(r.engine(0).counters().connections, 1);
}
END_TEST

// The handler has four nodes here, and is told once of all of them.
START_TEST(strangers_that_hang_up_at_once_do_not_keep_ranks_out) {
  for (const bool outstanding : {false, true}) {
    SimRanks r(3);
    compute(r);
    for (int i = 0; i < 50; ++i) r.world.stranger_close(r.world.stranger_connect(0));
    say(r.engine(1), 0, {7});
    r.world.skip(100'000);
    for (int turn = 0; turn < 20; ++turn) {
      // Twice: when the rank behind the strangers says its hello, and its proof.
      const bool told = r.world.take_signal(0, sim::kCallerSignal) || r.world.take_signal(0);
      if (told && outstanding) {
        InHandler in(r.engine(0));
        r.engine(0).poll_all();
      } else if (told) {
        look_at_callers(r.engine(0));
      }
      Hold hold(r.engine(1).gate());
      r.engine(1).poll_all();
      r.world.skip(100'000);
    }
    ck_assert_uint_eq(r.engine(0).counters().connections, 1);
  }
}
END_TEST

START_TEST(slow_writer_uses_up_the_allowance_too) {
  SimRanks r(3);
  compute(r);
  const std::uint8_t byte = 1;
  int written = 0;
  while (r.engine(0).callers_rest_ns() == 0 && written < 10 * Allowance::kBurst) {
    const int fd = r.world.stranger_connect(0);
    for (int i = 0; i < 60; ++i, ++written) {
      r.world.stranger_write(fd, &byte, 1);
      r.world.skip(10'000);
      turn_with_callers_handler(r, 1);
    }
    r.world.stranger_close(fd);
  }
  ck_assert_int_le(written, 2 * Allowance::kBurst);
}
END_TEST

START_TEST(strangers_time_is_over_while_nothing_is_outstanding_too) {
  SimRanks r(3);
  compute(r);
  r.world.stranger_connect(0);
  turn_with_callers_handler(r, 5);
  ck_assert_uint_eq(r.world.open_sockets(0), 2);
  r.world.pass(11'000'000'000);
  r.world.stranger_connect(0);  // the next event
  turn_with_callers_handler(r, 5);
  ck_assert_uint_eq(r.world.open_sockets(0), 2);
}
END_TEST

START_TEST(callers_that_cannot_be_accepted_are_looked_at_again_later) {
  sim::Faults f = SimRanks::no_faults();
  f.no_descriptor = 1024;
  SimRanks r(3, f);
  compute(r);
  r.world.stranger_connect(0);
  turn_with_callers_handler(r, 5);
  ck_assert_uint_eq(r.world.open_sockets(0), 2);  // the listener, and who waits there
  ck_assert_int_gt(r.engine(0).callers_rest_ns(), 0);
  r.world.calm();
  r.world.pass(Allowance::kRestNs);
  ck_assert_int_eq(r.engine(0).callers_rest_ns(), 0);
  look_at_callers(r.engine(0));
  ck_assert_int_eq(r.world.called(0), 2);
}
END_TEST

START_TEST(connect_error_that_may_pass_is_tried_again_until_the_deadline) {
  for (const int error : {EHOSTUNREACH, ENETUNREACH, ENETDOWN, EADDRNOTAVAIL, EMFILE, ENFILE,
                          ENOBUFS, ENOMEM, ETIMEDOUT}) {
    for (const bool at_open : {false, true}) {
      for (const bool passes : {false, true}) {
        SimRanks r(2, SimRanks::no_faults(),
                   [](EngineOptions& o) { o.connect_timeout_ns = 10'000'000'000; });
        Losses losses;
        losses.install(r.engine(0));
        (at_open ? r.world.fail_open : r.world.fail_connect) = error;
        say(r.engine(0), 1, {5});
        poll_alone(r, 0, 9);
        ck_assert_int_eq(losses.count, 0);
        if (passes) r.world.fail_open = r.world.fail_connect = 0;
        poll_alone(r, 0, 3);
        ck_assert_int_eq(losses.count, passes ? 0 : 1);
        if (passes)
          ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
        else
          ck_assert_int_eq(losses.error, error);  // the reason, and not that time is over
      }
    }
  }
}
END_TEST

START_TEST(connect_error_that_stays_is_no_reason_to_wait) {
  for (const int error : {ECONNREFUSED, EACCES, EAFNOSUPPORT}) {
    SimRanks r(2, SimRanks::no_faults(),
               [](EngineOptions& o) { o.connect_timeout_ns = 10'000'000'000; });
    Losses losses;
    losses.install(r.engine(0));
    r.world.fail_connect = error;
    Hold hold(r.engine(0).gate());
    const std::uint8_t byte = 1;
    const iovec part = {const_cast<std::uint8_t*>(&byte), 1};
    ck_assert_int_eq(r.engine(0).send_control(1, &part, 1), -error);
    ck_assert_int_eq(losses.count, 1);
  }
}
END_TEST

// Of a peer at rank 0.
void ck_assert_described(SimRanks& r, int peer, const char* wanted) {
  char who[Engine::kDescribeBytes];
  ck_assert_str_eq(r.engine(0).describe(peer, who, sizeof who), wanted);
}

SimRanks ranks_of_two_networks(int size) {
  return SimRanks(
      size, SimRanks::no_faults(), [](EngineOptions& o) { o.connect_timeout_ns = 30'000'000'000; },
      1, 0, 2);
}

START_TEST(second_address_is_taken_where_the_first_leads_nowhere_and_first_with_the_next_peer) {
  for (const int error : {-1, EHOSTUNREACH, ETIMEDOUT, ECONNREFUSED, EAFNOSUPPORT}) {
    SimRanks r = ranks_of_two_networks(3);
    Losses losses;
    losses.install(r.engine(0));
    r.world.set_road(1, 0, error);
    r.world.set_road(2, 0, error);
    const std::int64_t start = r.world.now();
    say(r.engine(0), 1, {5});
    for (int i = 0; i < 1000 && !r.engine(1).control_ready(); ++i) {
      r.world.pass(10'000'000);
      r.turn();
    }
    ck_assert_int_eq(losses.count, 0);
    ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
    const std::int64_t first = r.world.now() - start;
    ck_assert_int_le(first, error == -1 ? 350'000'000 : 200'000'000);
    ck_assert_described(r, 1, "rank 1 on host simulated (10.1.0.2 port 20001)");
    if (error == -1) continue;  // no answer so far is no proof
    say(r.engine(0), 2, {6});
    ck_assert(r.until([&] { return r.engine(2).control_ready(); }, 300));
    ck_assert_uint_eq(hear(r, 2, 0)[0], 6);
    ck_assert_int_lt(r.world.now() - start - first, 100'000'000);
  }
}
END_TEST

// Sends a byte from rank 0 to the peer. Returns how long it took it, in units of 10 ms.
int ticks_until_heard(SimRanks& r, int peer) {
  say(r.engine(0), peer, {5});
  int ticks = 0;
  for (; ticks < 1000 && !r.engine(peer).control_ready(); ++ticks) {
    r.world.pass(10'000'000);
    r.turn();
  }
  ck_assert_uint_eq(hear(r, peer, 0)[0], 5);
  return ticks;
}

START_TEST(address_that_two_peers_have_not_answered_at_comes_last_with_the_third) {
  SimRanks r = ranks_of_two_networks(4);
  for (int peer = 1; peer < 4; ++peer) r.world.set_road(peer, 0, -1);
  for (int peer = 1; peer < 3; ++peer) ck_assert_int_ge(ticks_until_heard(r, peer), 25);
  ck_assert_int_lt(ticks_until_heard(r, 3), 10);
}
END_TEST

// Addresses that are tried beside one another: whichever answers first is taken, and the peer sees
// no stranger in the others.
START_TEST(address_that_answers_first_is_taken_whenever_it_was_tried) {
  constexpr int kNever = -1;
  const struct {
    int first_ms, second_ms;  // until an answer
    int ticks;                // until the message is there
    const char* wanted;
  } table[] = {
      {400, kNever, 40, "rank 1 on host simulated (10.0.0.2 port 20001)"},
      {400, 400, 40, "rank 1 on host simulated (10.0.0.2 port 20001)"},
      {400, 100, 35, "rank 1 on host simulated (10.1.0.2 port 20001)"},
      {1900, kNever, 190, "rank 1 on host simulated (10.0.0.2 port 20001)"},
      {kNever, 1900, 215, "rank 1 on host simulated (10.1.0.2 port 20001)"},
      {kNever, 3000, 0, "rank 1 on host simulated (10.1.0.2 port 20001)"},  // in a later round
  };
  for (const auto& row : table) {
    SimRanks r = ranks_of_two_networks(2);
    Losses losses;
    losses.install(r.engine(0));
    for (const auto& [network, ms] : {std::pair{0, row.first_ms}, {1, row.second_ms}}) {
      if (ms == kNever)
        r.world.set_road(1, network, -1);
      else
        r.world.slow_down(1, network, std::int64_t{ms} * 1'000'000);
    }
    const int ticks = ticks_until_heard(r, 1);
    if (row.ticks > 0) {
      ck_assert_int_ge(ticks, row.ticks);
      ck_assert_int_le(ticks, row.ticks + 5);
    }
    ck_assert_described(r, 1, row.wanted);
    r.turn(100);
    ck_assert_int_eq(losses.count, 0);
    ck_assert_uint_eq(r.engine(1).counters().connections_refused, 0);
    ck_assert_uint_eq(r.world.open_sockets(0), 2);  // a listener, and the connection
  }
}
END_TEST

// The second attempt begins 0.25 s after the first; both have their answer before anybody looks.
START_TEST(of_two_attempts_that_answer_at_once_the_other_is_no_stranger) {
  for (int ms = 395; ms < 405; ++ms) {
    SimRanks r = ranks_of_two_networks(2);
    r.world.slow_down(1, 0, 400'000'000);
    r.world.slow_down(1, 1, (ms - 250) * std::int64_t{1'000'000});
    say(r.engine(0), 1, {5});
    poll_alone(r, 0, 1);
    ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
    r.turn(100);
    ck_assert_uint_eq(r.engine(1).counters().connections_refused, 0);
    ck_assert_uint_eq(r.world.open_sockets(0), 2);
  }
}
END_TEST

START_TEST(peer_that_calls_while_two_addresses_are_tried_is_reached) {
  SimRanks r = ranks_of_two_networks(2);
  for (const int network : {0, 1}) r.world.set_road(1, network, -1);
  say(r.engine(0), 1, {5});
  poll_alone(r, 0, 1);
  ck_assert_uint_eq(r.world.open_sockets(0), 4);  // two listeners, and the attempts
  say(r.engine(1), 0, {8});
  ck_assert(r.until([&] { return r.engine(0).control_ready(); }, 200));
  ck_assert_uint_eq(hear(r, 0, 1)[0], 8);
  ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
  ck_assert_uint_eq(r.world.open_sockets(0), 2);
}
END_TEST

START_TEST(second_address_is_tried_within_a_short_time_limit) {
  SimRanks r(
      2, SimRanks::no_faults(), [](EngineOptions& o) { o.connect_timeout_ns = 600'000'000; }, 1, 0,
      2);
  Losses losses;
  losses.install(r.engine(0));
  r.world.set_road(1, 0, -1);
  say(r.engine(0), 1, {5});
  for (int i = 0; i < 50 && !r.engine(1).control_ready(); ++i) {
    r.world.pass(10'000'000);
    r.turn();
  }
  ck_assert_int_eq(losses.count, 0);
  ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
}
END_TEST

// What the process lacks is no fault of the address.
START_TEST(shortage_is_not_booked_against_an_address) {
  SimRanks r = ranks_of_two_networks(2);
  Losses losses;
  losses.install(r.engine(0));
  r.world.fail_connect = ENOBUFS;
  say(r.engine(0), 1, {5});
  poll_alone(r, 0, 1);
  r.world.fail_connect = 0;
  poll_alone(r, 0, 2);
  ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
  ck_assert_described(r, 1, "rank 1 on host simulated (10.0.0.2 port 20001)");
}
END_TEST

START_TEST(first_address_is_taken_again_where_it_leads_to_the_next_peer) {
  SimRanks r = ranks_of_two_networks(4);
  r.world.set_road(1, 0, EHOSTUNREACH);
  r.world.set_road(2, 1, EHOSTUNREACH);
  for (int peer = 1; peer < 4; ++peer) {
    say(r.engine(0), peer, {7});
    ck_assert(r.until([&] { return r.engine(peer).control_ready(); }, 3000));
  }
  ck_assert_described(r, 3, "rank 3 on host simulated (10.0.0.4 port 20003)");
}
END_TEST

START_TEST(peer_that_no_address_leads_to_is_lost_with_the_reason_of_each) {
  SimRanks r = ranks_of_two_networks(2);
  Losses losses;
  losses.install(r.engine(0));
  r.world.set_road(1, 0, -1);
  r.world.set_road(1, 1, EHOSTUNREACH);
  say(r.engine(0), 1, {5});
  poll_alone(r, 0, 29);
  ck_assert_int_eq(losses.count, 0);
  poll_alone(r, 0, 2);
  ck_assert_int_eq(losses.count, 1);
  ck_assert_described(
      r, 1,
      "rank 1 on host simulated (10.0.0.2 port 20001: Connection timed out; 10.1.0.2 "
      "port 20001: No route to host)");
}
END_TEST

START_TEST(peer_that_is_refused_at_every_address_is_lost_at_once) {
  SimRanks r = ranks_of_two_networks(2);
  Losses losses;
  losses.install(r.engine(0));
  r.lose_host(1);
  say(r.engine(0), 1, {5});
  ck_assert(r.until([&] { return losses.count == 1; }, 200));
  ck_assert_int_eq(losses.error, ECONNREFUSED);
}
END_TEST

START_TEST(rank_of_no_common_family_is_lost_at_once_and_only_where_the_kernel_knows_no_way) {
  for (const int networks : {1, 2}) {
    for (const bool apart : {false, true}) {
      for (const int error : {ENETUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT, EHOSTUNREACH, -1, 0}) {
        SimRanks r(
            2, SimRanks::no_faults(),
            [](EngineOptions& o) { o.connect_timeout_ns = 30'000'000'000; }, 1, 0, networks);
        r.peers[1].apart = apart;
        Losses losses;
        losses.install(r.engine(0));
        for (int network = 0; network < networks; ++network) r.world.set_road(1, network, error);
        const std::int64_t start = r.world.now();
        say(r.engine(0), 1, {5});
        r.until([&] { return losses.count == 1 || r.engine(1).control_ready(); }, 1000);
        ck_assert_int_le(r.world.now() - start, 200'000'000);
        const bool no_way = error == ENETUNREACH || error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
        ck_assert_int_eq(losses.count, (apart && no_way) || error == EAFNOSUPPORT ? 1 : 0);
        ck_assert_int_eq(r.engine(1).control_ready(), error == 0);
        if (losses.count == 1)
          ck_assert_int_eq(losses.error, apart ? kNoCommonFamily : EAFNOSUPPORT);
      }
    }
  }
}
END_TEST

// One direction suffices: the other side may call.
START_TEST(peer_that_called_before_is_tried_again_whatever_the_families_say) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) {
    o.connect_timeout_ns = 30'000'000'000;
    o.resume = true;
  });
  r.connect(0, 1);
  r.peers[0].apart = r.peers[1].apart = true;
  Losses losses;
  losses.install(r.engine(0));
  r.world.fail_connect = ENETUNREACH;
  r.world.cut(0, 1);
  say(r.engine(0), 1, {5});
  r.turn(100);
  ck_assert_int_eq(losses.count, 0);
  r.world.fail_connect = 0;
  ck_assert(r.until([&] { return r.engine(1).control_ready(); }, 20'000));
}
END_TEST

START_TEST(peer_that_is_tried_in_vain_is_told_of_after_8_s_once_with_all_that_was_tried) {
  const struct {
    int networks, timeout_s;
    int first, second;  // roads
    const char* line;
  } table[] = {
      {1, 30, -1, 0,
       "ch_lite[rank 0]: no connection to rank 1 on host simulated for 8 s: tried 10.0.0.2 port "
       "20001 from 10.0.0.1 (no answer); it is tried for another 22 s (LITE_CONNECT_TIMEOUT)\n"},
      {1, 30, EHOSTUNREACH, 0,
       "ch_lite[rank 0]: no connection to rank 1 on host simulated for 8 s: tried 10.0.0.2 port "
       "20001 from 10.0.0.1 (No route to host); it is tried for another 22 s "
       "(LITE_CONNECT_TIMEOUT)\n"},
      {2, 100, -1, ENETUNREACH,
       "ch_lite[rank 0]: no connection to rank 1 on host simulated for 8 s: tried 10.0.0.2 port "
       "20001 from 10.0.0.1 (no answer), 10.1.0.2 port 20001 (Network is unreachable); it is tried "
       "for another 92 s (LITE_CONNECT_TIMEOUT)\n"},
      {1, 10, -1, 0, nullptr},
  };
  for (const auto& row : table) {
    SimRanks r(
        2, SimRanks::no_faults(),
        [&row](EngineOptions& o) { o.connect_timeout_ns = row.timeout_s * 1'000'000'000LL; }, 1, 0,
        row.networks);
    r.world.tells_local_ends = true;
    r.world.set_road(1, 0, row.first);
    r.world.set_road(1, 1, row.second);
    const auto seconds = [&r](int count) {
      return said([&] {
        for (int i = 0; i < 100 * count; ++i) {  // as in a wait, with nothing else that refills
          r.world.pass(10'000'000);
          Hold hold(r.engine(0).gate());
          r.engine(0).poll_all();
        }
      });
    };
    say(r.engine(0), 1, {5});
    ck_assert_ptr_null(std::strstr(seconds(7).c_str(), "no connection"));
    const std::string text = seconds(2);
    if (row.line == nullptr)
      ck_assert_str_eq(text.c_str(), "");
    else
      ck_assert_ptr_nonnull(std::strstr(text.c_str(), row.line));
    ck_assert_ptr_null(std::strstr(seconds(row.timeout_s - 10).c_str(), "no connection"));
  }
}
END_TEST

START_TEST(handler_that_finds_a_peer_tried_in_vain_leaves_the_words_to_the_next_call) {
  SimRanks r(2, SimRanks::no_faults(),
             [](EngineOptions& o) { o.connect_timeout_ns = 30'000'000'000; });
  r.world.set_road(1, 0, -1);
  say(r.engine(0), 1, {5});
  const std::string in_handler = said([&] {
    for (int i = 0; i < 900; ++i) {
      r.world.pass(10'000'000);
      const InHandler handler(r.engine(0));
      r.engine(0).poll();
    }
  });
  ck_assert_str_eq(in_handler.c_str(), "");
  ck_assert_ptr_nonnull(std::strstr(said([&] { r.poll(0); }).c_str(), "no connection to rank 1"));
}
END_TEST

START_TEST(peer_that_is_reached_or_whose_process_computes_is_not_told_of) {
  SimRanks r(3, SimRanks::no_faults(),
             [](EngineOptions& o) { o.connect_timeout_ns = 30'000'000'000; });
  r.world.set_road(1, 0, -1);
  say(r.engine(0), 1, {5});
  say(r.engine(0), 2, {5});  // it does not accept
  const std::string text = said([&] {
    poll_alone(r, 0, 7);
    say(r.engine(1), 0, {8});
    for (int i = 0; i < 200; ++i)
      for (const int rank : {0, 1}) {
        r.world.pass(100'000);
        r.poll(rank);
      }
    poll_alone(r, 0, 20);
  });
  ck_assert_uint_eq(hear(r, 0, 1)[0], 8);
  ck_assert_str_eq(text.c_str(), "");
}
END_TEST

START_TEST(own_addresses_that_a_peer_is_called_from_are_told_each_once) {
  SimRanks r = ranks_of_two_networks(2);
  sockaddr_storage ends[kAddressesMax];
  ck_assert_int_eq(r.engine(0).local_ends(1, ends), 0);
  r.world.tells_local_ends = true;
  ck_assert_int_eq(r.engine(0).local_ends(1, ends), 2);
  char text[96];
  ck_assert_str_eq(format_address(ends[0], text, sizeof text), "10.0.0.1");
  ck_assert_str_eq(format_address(ends[1], text, sizeof text), "10.1.0.1");
  r.world.set_road(1, 0, ENETUNREACH);
  ck_assert_int_eq(r.engine(0).local_ends(1, ends), 1);
  ck_assert_str_eq(format_address(ends[0], text, sizeof text), "10.1.0.1");
  r.peers[1].more[0] = compact(r.peers[1].address);
  r.world.set_road(1, 0, 0);
  ck_assert_int_eq(r.engine(0).local_ends(1, ends), 1);
}
END_TEST

// Who knows one address only is a process of another job.
START_TEST(when_all_ranks_are_connected_the_first_address_alone_is_listened_at) {
  SimRanks r = ranks_of_two_networks(3);
  ck_assert_uint_eq(r.world.open_sockets(0), 2);
  r.connect(0, 1);
  ck_assert_uint_eq(r.world.open_sockets(0), 3);
  r.connect(2, 0);
  ck_assert_uint_eq(r.world.open_sockets(0), 3);
  const int caller = r.world.stranger_connect(0);
  ck_assert(r.until([&] { return r.world.open_sockets(0) == 4; }, 100));
  r.world.stranger_close(caller);
  SimRanks alone = ranks_of_two_networks(1);
  ck_assert_uint_eq(alone.world.open_sockets(0), 1);
}
END_TEST

// A peer that computes is not tried at its next address once TCP is up, and one that calls
// meanwhile is taken.
START_TEST(peer_that_computes_keeps_the_connection_that_it_has_not_accepted) {
  SimRanks r = ranks_of_two_networks(2);
  say(r.engine(0), 1, {5});
  poll_alone(r, 0, 100);
  ck_assert_uint_eq(r.world.open_sockets(0), 3);  // two listeners and that one
  ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
  ck_assert_uint_eq(r.engine(1).counters().connections_refused, 0);
}
END_TEST

START_TEST(peer_that_calls_while_its_address_is_tried_in_vain_is_reached) {
  SimRanks r = ranks_of_two_networks(2);
  r.world.set_road(1, 0, -1);
  say(r.engine(0), 1, {5});
  r.turn(3);
  say(r.engine(1), 0, {8});
  ck_assert(r.until([&] { return r.engine(0).control_ready(); }, 200));
  ck_assert_uint_eq(hear(r, 0, 1)[0], 8);
  ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
  ck_assert_described(r, 1, "rank 1 on host simulated (10.0.0.2 port 20001)");
}
END_TEST

// A firewall lets only calls in one direction through, and both have one address.
START_TEST(peer_whose_calls_alone_get_through_is_reached) {
  for (const int caller : {0, 1}) {
    SimRanks r;
    Losses losses;
    losses.install(r.engine(1 - caller));
    r.world.set_road(caller, 0, -1);
    say(r.engine(1 - caller), caller, {5});
    r.turn(3);
    say(r.engine(caller), 1 - caller, {8});
    ck_assert(r.until([&] { return r.engine(1 - caller).control_ready(); }, 200));
    ck_assert_uint_eq(hear(r, 1 - caller, caller)[0], 8);
    ck_assert_uint_eq(hear(r, caller, 1 - caller)[0], 5);
    ck_assert_int_eq(losses.count, 0);
  }
}
END_TEST

START_TEST(time_in_which_the_application_computes_does_not_count_as_connecting) {
  SimRanks r;  // connect_timeout is 1 s
  Losses losses;
  losses.install(r.engine(0));
  r.world.fail_connect = EHOSTUNREACH;
  say(r.engine(0), 1, {5});
  r.world.pass(40'000'000'000);
  r.world.fail_connect = 0;  // the link was back long before anybody could look
  ck_assert_uint_eq(hear(r, 1, 0)[0], 5);
  ck_assert_int_eq(losses.count, 0);
}
END_TEST

START_TEST(program_that_looks_seldom_learns_of_an_unreachable_peer) {
  SimRanks r;
  Losses losses;
  losses.install(r.engine(0));
  r.world.fail_connect = EHOSTUNREACH;
  say(r.engine(0), 1, {5});
  for (int i = 0; i < 6; ++i) {  // as by MPI_Test once in three seconds
    r.world.pass(3'000'000'000);
    Hold hold(r.engine(0).gate());
    r.engine(0).poll();
  }
  ck_assert_int_eq(losses.count, 1);
}
END_TEST

START_TEST(flood_of_strangers_does_not_push_a_peer_out) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    sim::Faults f = SimRanks::no_faults();
    f.delay_max_ns = 100'000;
    SimRanks r(2, f, {}, seed);
    Losses losses[2];
    for (int i = 0; i < 2; ++i) losses[i].install(r.engine(i));
    const int sender = static_cast<int>(seed % 2);
    say(r.engine(sender), 1 - sender, {1});
    for (int i = 0; i < 8; ++i) {
      for (int k = 0; k < 80; ++k) r.world.stranger_connect(1 - sender);
      r.turn(1);
    }
    ck_assert(r.until([&] { return r.engine(1 - sender).control_ready(); }, 20'000));
    ck_assert_uint_eq(hear(r, 1 - sender, sender)[0], 1);
    ck_assert_int_eq(losses[0].count + losses[1].count, 0);
    ck_assert_uint_gt(r.engine(1 - sender).counters().connections_refused, 0);
  }
}
END_TEST

// Or else whoever calls as fast as that could keep the rank there.
START_TEST(a_pass_lets_in_a_bounded_number_of_strangers) {
  constexpr std::uint64_t kStrangers = 300;
  SimRanks r;
  for (std::uint64_t i = 0; i < kStrangers; ++i) r.world.stranger_connect(0);
  r.world.descriptors_left = 1'000;
  const auto let_in = [&] {
    return static_cast<std::uint64_t>(1'000 - r.world.descriptors_left) +
           r.engine(0).counters().connections_refused;
  };
  r.world.skip(1'000'000);
  r.poll(0);
  ck_assert_uint_le(let_in(), 64);
  ck_assert(r.engine(0).more_to_do());
  r.turn(10);
  ck_assert_uint_eq(let_in(), kStrangers);
}
END_TEST

START_TEST(stranger_that_says_nothing_is_dropped_after_its_time) {
  SimRanks r;
  r.world.stranger_connect(0);
  r.turn(5);
  ck_assert_uint_eq(r.world.open_sockets(0), 2);
  r.world.pass(11'000'000'000);
  r.turn(200);
  ck_assert_uint_eq(r.world.open_sockets(0), 1);
}
END_TEST

START_TEST(parked_connection_that_breaks_is_not_reported_again_and_again) {
  SimRanks r;
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kTransfer, 500);
  taker.verdict = Verdict::kPause;
  Losses losses;
  losses.install(r.engine(1));
  const auto data = bytes_of(500, 6);
  send_off(r.engine(0), 1, FrameKind::kTransfer, 9, data);
  r.turn(20);
  ck_assert_uint_eq(r.engine(1).counters().parked, 1);
  r.world.cut(0, 1);
  for (int i = 0; i < 20; ++i) {
    r.world.skip(100'000);
    Hold hold(r.engine(1).gate());
    ck_assert_int_eq(
        r.engine(1).poll_all(),
        0);  // an event would end every sleep at once, and the connection would still not be read
  }
  ck_assert_int_eq(losses.count, 0);
  taker.verdict = Verdict::kTake;
  {
    Hold hold(r.engine(1).gate());
    r.engine(1).resume_rx(0);
  }
  ck_assert(
      r.until([&] { return losses.count == 1; }));  // and when it is read again the loss is seen
}
END_TEST

START_TEST(proof_that_lies_unread_at_the_deadline_is_heard_before_the_refusal) {
  // By hand, as rank 1 would: the proof comes after epoll was asked and before the clock is looked
  // at; another stranger makes the event.
  SimRanks r;
  const EngineOptions options;  // their secret is that of the simulated ranks
  const HelloContext own = {1, 2, options.secret};
  std::uint8_t nonce[kNonceBytes] = {1, 2, 3};
  const Hello hello = hello_start(own, 0, nonce);
  const int fd = r.world.stranger_connect(0);
  r.world.stranger_write(fd, &hello, sizeof hello);
  r.turn(20);
  Hello challenge = {}, proof = {};
  ck_assert_uint_eq(r.world.stranger_read(fd, &challenge, sizeof challenge), sizeof challenge);
  ck_assert(hello_prove(own, hello, challenge, proof) == HelloFault::kNone);
  r.world.pass(11'000'000'000);
  r.world.stranger_connect(0);
  r.world.skip(1'000'000);
  int visits = 0;
  r.world.boundary = [&](int host) {
    if (host == 0 && ++visits == 2)
      r.world.stranger_write(fd, &proof,
                             sizeof proof);  // the end of the first call, which is wait()
  };
  {
    Hold hold(r.engine(0).gate());
    ck_assert_int_eq(r.engine(0).poll_all(), 1);
  }
  r.world.boundary = nullptr;
  ck_assert_uint_eq(r.engine(0).counters().connections, 1);
  ck_assert_uint_eq(r.engine(0).counters().connections_refused, 0);
  Hello acceptance = {};
  ck_assert_uint_eq(r.world.stranger_read(fd, &acceptance, sizeof acceptance), sizeof acceptance);
  ck_assert(hello_done(own, proof, acceptance) == HelloFault::kNone);
}
END_TEST

START_TEST(end_of_file_is_a_dead_peer_until_quiesce_makes_it_ordinary) {
  for (int quiet = 0; quiet < 2; ++quiet) {
    SimRanks r;
    r.connect(0, 1);
    Losses losses;
    losses.install(r.engine(0));
    if (quiet) r.engine(0).quiesce();
    r.lose_host(1);
    r.turn(20);
    ck_assert_int_eq(losses.count, quiet ? 0 : 1);
    ck_assert_int_eq(r.engine(0).peer_error(1) != 0, 1);
  }
}
END_TEST

// Others may work for long while a rank waits for them at its end, and ask for something from it.
START_TEST(who_is_at_its_end_lets_callers_in) {
  SimRanks r;  // connect_timeout is 1 s
  Losses losses;
  losses.install(r.engine(0));
  r.engine(1).quiesce();
  {
    Hold hold(r.engine(0).gate());
    ck_assert_int_eq(r.engine(0).reach(1), 0);
  }
  for (int i = 0; i < 300; ++i) {
    r.world.pass(10'000'000);
    r.turn();
  }
  ck_assert_int_eq(losses.count, 0);
  ck_assert_int_eq(r.engine(0).peer_error(1), 0);
  ck_assert_uint_eq(r.engine(0).counters().connections, 1);
}
END_TEST

START_TEST(kept_copy_frees_the_callers_buffer_at_once) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_max = f.pipe_min = 700;
  SimRanks r(2, f, [](EngineOptions& o) { o.frame_bytes = 300; });
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kChannel, 5'000);
  auto data = bytes_of(5'000, 3);
  SendOp* op = nullptr;
  r.engine(0).send(1, FrameKind::kChannel, 0, data.data(), data.size(), op);
  ck_assert_ptr_nonnull(op);
  ck_assert(r.engine(0).keep_copy(op));
  r.engine(0).release(op);
  std::fill(data.begin(), data.end(), 0);
  ck_assert(r.until([&] { return taker.ended == 1; }));
  ck_assert(taker.buffer == bytes_of(5'000, 3));
}
END_TEST

START_TEST(copies_of_what_the_kernel_did_not_take_are_bounded) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_max = f.pipe_min = 700;
  SimRanks r(2, f, [](EngineOptions& o) { o.send_copy_max = 10'000; });
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kTransfer, 0);
  const auto data = bytes_of(6'000, 3);
  SendOp* a = nullptr;
  SendOp* b = nullptr;
  r.engine(0).send(1, FrameKind::kTransfer, 1, data.data(), data.size(), a);
  r.engine(0).send(1, FrameKind::kTransfer, 2, data.data(), data.size(), b);
  ck_assert(r.engine(0).keep_copy(a));
  ck_assert(!r.engine(0).keep_copy(b));
  r.engine(0).release(a);
  ck_assert(r.until([&] { return r.engine(0).queued_sends() == 0; }));
  r.engine(0).release(b);
  SendOp* c = nullptr;  // what was freed is there again
  r.engine(0).cork(1);
  r.engine(0).send(1, FrameKind::kTransfer, 3, data.data(), data.size(), c);
  ck_assert(r.engine(0).keep_copy(c));
  r.engine(0).release(c);
  r.engine(0).uncork(1);
  r.until([&] { return r.engine(0).queued_sends() == 0; });
}
END_TEST

START_TEST(large_packet_of_the_handler_survives_a_full_socket) {
  for (const std::uint64_t taken : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{31},
                                    std::uint64_t{32}, std::uint64_t{500}}) {
    SimRanks r;
    r.connect(0, 1);
    alloc_trap::install();
    bool first = true;
    r.world.write_limit = [&](int host, std::uint64_t could) -> std::uint64_t {
      if (host != 0 || !first) return could;
      first = false;
      return taken;
    };
    const auto packet = bytes_of(4'000, 1);
    const iovec part = {const_cast<std::uint8_t*>(packet.data()), packet.size()};
    int rc = -1;
    {
      InHandler handler(r.engine(0));
      if (r.engine(0).headroom()) rc = r.engine(0).send_control(1, &part, 1);
    }
    ck_assert_int_eq(rc, 0);
    ck_assert(hear(r, 1, 0) == packet);
  }
}
END_TEST

START_TEST(handler_without_memory_says_so_before_the_first_byte_is_out) {
  SimRanks r;
  r.connect(0, 1);
  bool block = true;
  r.world.write_limit = [&](int host, std::uint64_t could) -> std::uint64_t {
    return host == 0 && block ? 0 : could;
  };
  const auto packet = bytes_of(4'000, 1);
  const iovec part = {const_cast<std::uint8_t*>(packet.data()), packet.size()};
  int sent = 0, rc = 0, broken_promises = 0;
  {
    InHandler handler(r.engine(0));
    for (int i = 0; i < 1'000'000 && rc == 0; ++i) {
      const bool promised = r.engine(0).headroom();
      rc = r.engine(0).send_control(1, &part, 1);
      if (rc == 0) ++sent;
      if (rc != 0 && promised) ++broken_promises;  // with headroom there is memory
    }
  }
  ck_assert_int_eq(rc, -ENOBUFS);
  ck_assert_int_eq(broken_promises, 0);
  ck_assert_int_gt(sent, 0);
  block = false;
  for (int i = 0; i < sent; ++i) ck_assert(hear(r, 1, 0) == packet);
  ck_assert_int_eq(r.engine(0).peer_error(1), 0);
  r.engine(0).refill();
  ck_assert(r.engine(0).headroom());
}
END_TEST

START_TEST(low_water_mark_never_exceeds_what_the_frame_still_owes) {
  SimRanks r;
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kTransfer, 262'144);
  const auto data = bytes_of(262'144, 2);
  std::uint64_t allowed = 30'000;
  r.world.write_limit = [&](int host, std::uint64_t could) -> std::uint64_t {
    if (host != 0) return could;
    const std::uint64_t n = std::min(could, allowed);
    allowed -= n;
    return n;
  };
  // The padding is owed as well.
  const std::uint64_t head =
      kFrameHeaderBytes + (reinterpret_cast<std::uintptr_t>(data.data()) -
                           r.engine(0).counters().bytes_out - kFrameHeaderBytes) %
                              kPayloadAlignment;
  SendOp* op = nullptr;
  r.engine(0).send(1, FrameKind::kTransfer, 1, data.data(), data.size(), op);
  ck_assert_ptr_nonnull(op);
  r.world.skip(1'000'000);
  {
    InHandler handler(r.engine(1));
    r.engine(1).poll_all();
  }
  ck_assert_int_gt(r.world.low_water(1), 100'000);  // few signals from here on
  std::uint64_t there = 30'000;
  while (taker.ended == 0) {
    allowed = 20'000;
    r.as(0);
    {
      Hold hold(r.engine(0).gate());
      r.engine(0).poll_all();
    }
    there += 20'000 - allowed;
    r.world.skip(1'000'000);
    Hold hold(r.engine(1).gate());
    r.engine(1).prefer(0);
    r.engine(1).poll();  // ordinary context looks at the socket itself, below the mark
    const std::uint64_t owed = there < data.size() + head ? data.size() + head - there : 0;
    ck_assert_uint_le(static_cast<std::uint64_t>(r.world.low_water(1)), owed > 1 ? owed : 1);
  }
  ck_assert_int_eq(r.world.low_water(1), 1);
  ck_assert(taker.buffer == data);
  r.until([&] { return op->done; });
  r.engine(0).release(op);
}
END_TEST

// Reads of one poll that finds nothing more, in the middle of a frame or before one.
START_TEST(poll_tries_again_in_the_middle_of_a_frame_only) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) { o.frame_tries = 5; });
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kTransfer, 100'000);
  const auto data = bytes_of(100'000, 2);
  std::uint64_t allowed = 30'000;
  r.world.write_limit = [&](int host, std::uint64_t could) -> std::uint64_t {
    if (host != 0) return could;
    const std::uint64_t n = std::min(could, allowed);
    allowed -= n;
    return n;
  };
  const auto reads_of_a_poll = [&] {
    Hold hold(r.engine(1).gate());
    const std::uint64_t before = r.engine(1).counters().reads;
    r.engine(1).prefer(0);
    r.engine(1).poll();
    return r.engine(1).counters().reads - before;
  };
  r.turn(2);
  ck_assert_uint_eq(reads_of_a_poll(), 1);
  SendOp* op = nullptr;
  r.engine(0).send(1, FrameKind::kTransfer, 1, data.data(), data.size(), op);
  r.world.skip(1'000'000);
  ck_assert_uint_ge(reads_of_a_poll(), 2);  // the first part
  ck_assert_uint_eq(reads_of_a_poll(), 1 + 5);
  const std::uint64_t before = r.engine(1).counters().reads;
  {
    InHandler handler(r.engine(1));
    r.engine(1).poll_all();
  }
  ck_assert_uint_le(r.engine(1).counters().reads - before, 1);
  allowed = UINT64_MAX;
  ck_assert(r.until([&] { return taker.ended == 1 && op->done; }));
  ck_assert(taker.buffer == data);
  ck_assert_uint_eq(reads_of_a_poll(), 1);
  r.engine(0).release(op);
}
END_TEST

// The kernel takes one piece faster than three (0.1 us); a long packet is not worth the copy.
START_TEST(small_control_packet_is_written_in_one_piece) {
  SimRanks r;
  r.connect(0, 1);
  r.turn(2);
  std::vector<std::uint8_t> head = bytes_of(40, 1), data = bytes_of(3000, 2);
  constexpr std::size_t kOnePiece = 2560;
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{100}, kOnePiece - head.size(),
        kOnePiece - head.size() + 1, data.size()}) {
    const iovec parts[] = {{head.data(), head.size()}, {data.data(), length}};
    ck_assert_int_eq(r.engine(0).send_control(1, parts, 2), 0);
    ck_assert_int_eq(r.world.pieces_written, head.size() + length <= kOnePiece ? 1 : 3);
    r.turn(2);
    ck_assert(r.engine(1).control_ready());
    std::vector<std::uint8_t> wanted = head, packet(4000);
    wanted.insert(wanted.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(length));
    int from;
    Hold hold(r.engine(1).gate());
    packet.resize(
        r.engine(1).take_control(packet.data(), static_cast<std::uint32_t>(packet.size()), from));
    ck_assert(packet == wanted);
  }
}
END_TEST

// What is read before its frame is known is copied once more.
START_TEST(
    message_of_middle_length_is_one_read_and_of_what_is_behind_a_long_one_only_the_header_is_read_ahead) {
  SimRanks r;
  r.connect(0, 1);
  r.turn(2);
  Taker taker(r.engine(1), FrameKind::kTransfer, 100'000);
  const auto data = bytes_of(100'000, 2);
  std::vector<std::uint64_t> reads;
  r.world.read_limit = [&](int host, std::uint64_t could) {
    if (host == 1 && could > 0) reads.push_back(could);
    return could;
  };
  const auto transfer = [&](std::size_t bytes, int count) {
    reads.clear();
    taker.arrived = 0;
    std::vector<SendOp*> ops(static_cast<std::size_t>(count));
    for (SendOp*& op : ops) r.engine(0).send(1, FrameKind::kTransfer, 1, data.data(), bytes, op);
    r.turn(4);
    ck_assert_uint_eq(taker.arrived, bytes * static_cast<std::size_t>(count));
    for (SendOp* op : ops)
      if (op != nullptr) r.engine(0).release(op);
  };
  constexpr std::uint64_t kAhead = ReadAhead::kBytes, kHeader = ReadAhead::kHeaderBytes,
                          kSlack = kFrameHeaderBytes + kPayloadAlignment;
  transfer(30'000, 1);
  ck_assert_uint_eq(reads.size(), 1);
  ck_assert_uint_ge(reads[0], 30'000);
  // in a stream of them nothing is copied from the second one on: a read brings one message and the
  // next one's header
  transfer(30'000, 5);
  ck_assert_uint_eq(reads.size(), 5);
  ck_assert_uint_eq(reads[0], kAhead);
  for (std::size_t i = 1; i < 4; ++i) ck_assert(reads[i] > 20'000 && reads[i] <= 30'000 + kHeader);
  // and after it is over
  transfer(30'000, 1);
  transfer(30'000, 1);
  ck_assert_uint_eq(reads.size(), 1);

  transfer(100'000, 1);
  ck_assert_uint_eq(reads.size(), 2);
  ck_assert_uint_eq(reads[0], kAhead);
  transfer(100'000, 3);
  ck_assert_uint_eq(reads.size(), 4);
  ck_assert_uint_eq(reads[0], kHeader);
  for (std::size_t i = 1; i < 3; ++i)
    ck_assert(reads[i] > 99'000 && reads[i] <= 100'000 + kHeader + kSlack);
  // a control packet alone tells of small ones
  std::uint8_t word = 7;
  const iovec small = {&word, 1};
  ck_assert_int_eq(r.engine(0).send_control(1, &small, 1), 0);
  r.turn(2);
  ck_assert(r.engine(1).control_ready());
  char packet[16];
  int from;
  {
    Hold hold(r.engine(1).gate());
    r.engine(1).take_control(packet, sizeof packet, from);
  }
  transfer(100'000, 1);
  ck_assert_uint_eq(reads[0], kAhead);
}
END_TEST

// The kernel's copies are faster that way; see TxQueue::padding.
START_TEST(long_payload_lies_to_the_lines_of_the_cache_as_in_its_buffer) {
  SimRanks r;
  r.connect(0, 1);
  for (const std::size_t size : {16'384, 50'000, 300'000}) {
    for (const std::size_t phase : {0, 1, 16, 63}) {
      Taker taker(r.engine(1), FrameKind::kTransfer, size);
      alignas(kPayloadAlignment) static std::uint8_t storage[300'000 + kPayloadAlignment];
      const auto data = bytes_of(size, static_cast<int>(phase));
      std::memcpy(storage + phase, data.data(), size);
      say(r.engine(0), 1, bytes_of(1 + phase, 1));  // the stream stands anywhere
      int reads = 0;
      r.world.read_limit = [&](int host, std::uint64_t could) {
        return host == 1 ? std::min<std::uint64_t>(could, ++reads < 20 ? 9 : 9'000) : could;
      };
      SendOp* op = nullptr;
      r.engine(0).send(1, FrameKind::kTransfer, 1, storage + phase, size, op);
      r.until([&] { return op == nullptr || op->done; });
      // Whole frames, so the payload ends where the stream does now.
      ck_assert_uint_eq((r.engine(0).counters().bytes_out -
                         reinterpret_cast<std::uintptr_t>(storage + phase + size)) %
                            kPayloadAlignment,
                        0);
      if (op != nullptr) r.engine(0).release(op);
      ck_assert(hear(r, 1, 0).size() == 1 + phase);
      ck_assert(r.until([&] { return taker.ended > 0 && taker.buffer == data; }));
    }
  }
}
END_TEST

START_TEST(peers_that_send_all_the_time_are_served_alike) {
  SimRanks r(4);
  constexpr int kPackets = 200;
  for (int from = 1; from < 4; ++from) r.connect(from, 0);
  for (int from = 1; from < 4; ++from)
    for (int i = 0; i < kPackets; ++i) say(r.engine(from), 0, bytes_of(16'000, i));
  r.world.skip(1'000'000);
  Engine& e = r.engine(0);
  Hold hold(e.gate());
  e.prefer(1);
  int taken[4] = {}, all = 0, last = 0, run = 0, longest = 0;
  const auto look = [&] {
    e.poll();
    while (e.control_ready()) {
      std::uint8_t packet[kControlBytesMax];
      int from = 0;
      e.take_control(packet, sizeof packet, from);
      ++all, ++taken[from];
      run = from == last ? run + 1 : 1;
      last = from;
      longest = std::max(longest, run);
    }
  };
  while (taken[2] == 0 || taken[3] == 0)
    look();  // the preferred one alone until the first look at all
  longest = 0;
  while (taken[1] < kPackets && taken[2] < kPackets && taken[3] < kPackets) look();
  ck_assert_int_le(longest, 3);
  // Once it is one again, that one is asked for itself: no look at all for each packet.
  while (all < 3 * kPackets) look();
  for (int i = 0; i < 16; ++i) e.poll();
  const std::uint64_t looks = e.counters().waits;
  for (int i = 0; i < 160; ++i) e.poll();
  ck_assert_uint_eq(e.counters().waits - looks, 10);
}
END_TEST

// What the kernel takes at once is in front of whatever comes next anyway; what it does not is cut
// as short as the option says.
START_TEST(frames_grow_while_the_kernel_takes_all_at_once) {
  constexpr std::uint32_t kFrame = 1000;
  constexpr std::uint32_t kLongest = 16 * kFrame;
  constexpr std::size_t kLong = 3 * kLongest;
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) { o.frame_bytes = kFrame; });
  r.connect(0, 1);
  r.turn(2);
  Engine& e = r.engine(0);
  struct Lengths {
    std::vector<std::uint32_t> all;
    std::vector<std::uint8_t> buffer = std::vector<std::uint8_t>(kLong);
    std::uint64_t arrived = 0;
  } lengths;
  Sink sink;
  sink.self = &lengths;
  sink.begin = [](void* self, int, const FrameHeader& header, Destination& destination) {
    auto& l = *static_cast<Lengths*>(self);
    l.all.push_back(header.length);
    destination = {l.buffer.data() + header.offset, header.length};
    return Verdict::kTake;
  };
  sink.end = [](void* self, int, const FrameHeader& header) {
    static_cast<Lengths*>(self)->arrived += header.length;
  };
  r.engine(1).set_sink(FrameKind::kTransfer, sink);
  const auto data = bytes_of(kLong, 3);
  const auto frames_of = [&](std::size_t bytes) {
    SendOp* op = nullptr;
    lengths.all.clear();
    lengths.arrived = 0;
    e.send(1, FrameKind::kTransfer, 1, data.data(), bytes, op);
    ck_assert(r.until([&] { return lengths.arrived == bytes; }));
    ck_assert(std::equal(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(bytes),
                         lengths.buffer.begin()));
    if (op != nullptr) e.release(op);
    return lengths.all;
  };
  using Cut = std::vector<std::uint32_t>;
  ck_assert(frames_of(kFrame - 100) == Cut{kFrame - 100});  // shorter than a frame: tells nothing
  ck_assert(frames_of(3 * kFrame) == Cut(3, kFrame));
  ck_assert(frames_of(3 * kFrame) == (Cut{2 * kFrame, kFrame}));
  ck_assert(frames_of(kLong) ==
            (Cut{4 * kFrame, 4 * kFrame, 4 * kFrame, 4 * kFrame, 8 * kFrame, 8 * kFrame,
                 kLongest}));  // no more than the longest are fixed at a time
  ck_assert(frames_of(kLong) == Cut(3, kLongest));
  ck_assert(frames_of(kLong) == Cut(3, kLongest));  // no further
  int writes = 0;
  r.world.write_limit = [&](int host, std::uint64_t could) {
    return host == 0 && writes++ == 0 ? std::min<std::uint64_t>(could, 500) : could;
  };
  Cut cut{kLongest};  // its header is out when the kernel says no, and no other is fixed behind it
  cut.insert(cut.end(), 7, kFrame);      // short again, what fits beside it,
  cut.insert(cut.end(), 8, 2 * kFrame);  // and grown once by what was taken whole
  cut.insert(cut.end(), {4 * kFrame, 4 * kFrame, kFrame});
  ck_assert(frames_of(kLong) == cut);
  ck_assert(frames_of(3 * kFrame) == Cut{3 * kFrame});
}
END_TEST

// Envelope and payload straight from the caller's memory in one write; what the kernel leaves of
// them goes on with the same headers.
START_TEST(packet_and_what_it_announces_leave_in_one_write_and_resume_anywhere) {
  constexpr std::size_t kLong = 20'001;
  SimRanks r(2, SimRanks::no_faults(),
             [](EngineOptions& o) { o.split_min = 10'000, o.split_end = 15'000; });
  r.connect(0, 1);
  r.turn(2);
  Engine& e = r.engine(0);
  Taker taker(r.engine(1), FrameKind::kChannel, kLong);
  const auto packet = bytes_of(40, 1), data = bytes_of(kLong, 2);
  const iovec part = {const_cast<std::uint8_t*>(packet.data()), packet.size()};
  std::uint64_t limit = 0;
  int limited = 0;
  r.world.write_limit = [&](int host, std::uint64_t could) {
    return host == 0 && limited > 0 && limited-- ? std::min(could, limit) : could;
  };
  const auto arrives = [&](std::size_t bytes, SendOp* op) {
    ck_assert(hear(r, 1, 0) == packet);
    ck_assert(r.until([&] { return taker.arrived == bytes; }));
    ck_assert(std::equal(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(bytes),
                         taker.buffer.begin()));
    std::fill(taker.buffer.begin(), taker.buffer.end(), 0);
    taker.arrived = 0;
    if (op != nullptr) e.release(op);
  };
  SendOp* op = nullptr;
  for (unsigned i = 0; i < FasterWay::kTurn; ++i) {  // then it is the turn of halves
    ck_assert_int_eq(e.send_behind(1, part, FrameKind::kChannel, data.data(), 12'000, op), 0);
    ck_assert_ptr_null(op);
    arrives(12'000, op);
    say(r.engine(1), 0, {1});
    ck_assert(hear(r, 0, 1).size() == 1);
  }
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{500}, std::size_t{12'000}, kLong}) {
    const std::uint64_t writes = e.counters().writes, frames = e.counters().frames_out;
    ck_assert_int_eq(e.send_behind(1, part, FrameKind::kChannel, data.data(), bytes, op), 0);
    ck_assert_ptr_null(op);
    ck_assert_uint_eq(e.counters().writes - writes, bytes == 12'000 ? 2 : 1);  // in two halves
    ck_assert_uint_eq(e.counters().frames_out - frames, 2);
    ck_assert_uint_eq(e.queued_sends(), 0);
    arrives(bytes, op);
  }
  for (std::uint64_t cut = 0; cut < 400; ++cut)
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{12'000}, kLong}) {
      limit = cut < 200 ? cut : 97 * (cut - 190);
      limited = 1;
      ck_assert_int_eq(e.send_behind(1, part, FrameKind::kChannel, data.data(), bytes, op), 0);
      ck_assert(op != nullptr || limit >= bytes);
      arrives(bytes, op);
      ck_assert_uint_eq(e.queued_sends(), 0);
    }
  // No moment for it: then nothing has left.
  const auto refused = [&] {
    const std::uint64_t before = e.counters().bytes_out;
    ck_assert_int_eq(e.send_behind(1, part, FrameKind::kChannel, data.data(), kLong, op), -EAGAIN);
    ck_assert_uint_eq(e.counters().bytes_out, before);
  };
  e.cork(1);
  refused();
  e.uncork(1);
  e.set_gather(Engine::kGatherPacketMax);
  refused();
  e.set_gather(0);
  limit = 10;
  limited = 1;
  ck_assert_int_eq(e.send_behind(1, part, FrameKind::kChannel, data.data(), kLong, op), 0);
  SendOp* const first = op;
  refused();
  arrives(kLong, first);
  r.lose_host(1);
  r.until([&] { return e.peer_error(1) != 0; });
  ck_assert_int_eq(e.send_behind(1, part, FrameKind::kChannel, data.data(), kLong, op),
                   -EAGAIN);  // the ordinary way has the error
}
END_TEST

// Ranks 0 and 1 poll, each as it does for itself (turn() would look at all sockets).
static void poll_until_arrived(SimRanks& r, const Taker& taker, std::size_t bytes) {
  for (int i = 0; i < 2000 && taker.arrived < bytes; ++i) {
    for (const int rank : {0, 1}) {
      Hold hold(r.engine(rank).gate());
      r.engine(rank).poll();
    }
    r.world.skip(10'000);
  }
  ck_assert_uint_eq(taker.arrived, bytes);
}

// `times` packets of 40 bytes, found by poll().
static void hear_small(SimRanks& r, int rank, int from, int times) {
  Engine& e = r.engine(rank);
  for (int i = 0; i < times; ++i) {
    say(r.engine(from), rank, bytes_of(40, i));
    ck_assert(r.until([&] {
      Hold hold(e.gate());
      e.poll();
      return e.control_ready();
    }));
    ck_assert_uint_eq(hear(r, rank, from).size(), 40);
  }
  Hold hold(e.gate());
  e.poll();
}

// Rank 0 is told of nothing by signals, so that whom it only polls is set aside.
struct RanksThatPoll : SimRanks {
  static constexpr int kAsideAfter = 4;
  explicit RanksThatPoll(int size = 2)
      : SimRanks(size, no_faults(), [](EngineOptions& o) { o.detach_after = kAsideAfter; }) {
    for (int i = 1; i < size; ++i) connect(0, i);
    turn(2);
    engine(0).set_signals(false);
  }
  void set_first_aside() {
    hear_small(*this, 0, 1, kAsideAfter + 2);
    ck_assert_int_eq(world.unwatched(0), 1);
  }
};

// So high that a message which one write brings is acknowledged by its sender's core; not for
// longer ones nor for single packets, and not for every change of mind.
START_TEST(mark_follows_the_length_of_messages) {
  constexpr std::size_t kMiddle = 50'000, kLong = 300'000;
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) { o.detach_after = 4; });
  r.connect(0, 1);
  r.turn(2);
  Engine& e = r.engine(1);
  e.set_signals(false);
  Taker taker(e, FrameKind::kTransfer, kLong);
  const auto data = bytes_of(kLong, 2);
  const auto mark_after = [&](std::size_t bytes, int times) {
    for (; times > 0; --times) {
      SendOp* op = nullptr;
      taker.arrived = 0;
      r.engine(0).send(1, FrameKind::kTransfer, 1, data.data(), bytes, op);
      poll_until_arrived(r, taker, bytes);
      if (op != nullptr) r.engine(0).release(op);
    }
    Hold hold(e.gate());
    e.poll();
    return r.world.low_water(1);
  };
  static_assert(kMiddle <= PollRcvlowat::kMaxBytes && kLong > PollRcvlowat::kMaxBytes);
  ck_assert_int_eq(mark_after(kLong, 6), 1);
  ck_assert_int_eq(mark_after(kMiddle, PollRcvlowat::kDoubts - 1), 1);
  ck_assert_int_eq(mark_after(kLong, 1), 1);
  ck_assert_int_eq(mark_after(kMiddle, PollRcvlowat::kDoubts - 1), 1);
  ck_assert_int_eq(mark_after(kMiddle, 1), PollRcvlowat::kMark);
  const std::uint64_t calls = e.counters().other_calls;
  for (int i = 0; i < 10; ++i) {
    ck_assert_int_eq(mark_after(kLong, 1), PollRcvlowat::kMark);
    hear_small(r, 1, 0, PollRcvlowat::kSmallOnes - 1);
    ck_assert_int_eq(mark_after(kMiddle, 1), PollRcvlowat::kMark);
  }
  ck_assert_uint_eq(e.counters().other_calls, calls);  // by turns costs no system call
  ck_assert_int_eq(mark_after(kLong, PollRcvlowat::kDoubts), 1);
  for (int i = 0; i < PollRcvlowat::kDoubts; ++i) {
    hear_small(r, 1, 0, 1);  // envelopes are no doubts
    ck_assert_int_eq(mark_after(kMiddle, 1),
                     i == PollRcvlowat::kDoubts - 1 ? PollRcvlowat::kMark : 1);
  }
  hear_small(r, 1, 0, PollRcvlowat::kSmallOnes + 1);
  ck_assert_int_eq(r.world.low_water(1), 1);
}
END_TEST

// Only where nobody sleeps or is told by a signal, and taken back, which announces what is there,
// before anybody does.
START_TEST(connection_that_is_polled_only_is_detached_and_reattached_in_time) {
  const auto aside = [](SimRanks& r) { return r.world.unwatched(0) == 1; };
  const auto exchange = [](SimRanks& r, int from, int times) { hear_small(r, 0, from, times); };
  SimRanks r(3, SimRanks::no_faults(), [](EngineOptions& o) { o.detach_after = 4; });
  r.connect(1, 0);
  r.connect(2, 0);
  Engine& e = r.engine(0);
  exchange(r, 1, 20);
  ck_assert(!aside(r));  // signals are on
  e.set_signals(false);
  exchange(r, 1, 3);
  exchange(r, 2, 3);
  ck_assert(!aside(r));  // never so many from one
  exchange(r, 1, 6);
  ck_assert(aside(r));
  exchange(r, 1, 20);  // what it says is found
  ck_assert(aside(r));
  exchange(r, 2, 1);  // another one is looked at first from now on
  ck_assert(!aside(r));
  exchange(r, 1, 6);
  ck_assert(aside(r));
  {
    Hold hold(e.gate());
    e.prefer(2);
  }
  ck_assert(!aside(r));
  exchange(r, 1, 6);
  ck_assert(aside(r));
  {
    Hold hold(e.gate());
    e.wait(1'000);  // sleeps
  }
  ck_assert(!aside(r));
  exchange(r, 1, 6);
  ck_assert(aside(r));
  say(r.engine(1), 0, bytes_of(40, 1));
  r.world.skip(1'000'000);
  e.set_signals(true);
  ck_assert(!aside(r));
  {
    InHandler handler(e);
    e.poll_all();
  }
  ck_assert(e.control_ready());
  ck_assert(hear(r, 0, 1).size() == 40);
  e.set_signals(false);
  exchange(r, 1, 6);
  ck_assert(aside(r));
  say(r.engine(1), 0, bytes_of(40, 1));
  r.world.skip(1'000'000);
  {
    Hold hold(e.gate());
    e.poll_all();  // by epoll only
  }
  ck_assert(!aside(r));
  ck_assert(e.control_ready());
  ck_assert(hear(r, 0, 1).size() == 40);
  exchange(r, 1, 6);
  ck_assert(aside(r));
  e.set_mode(ProgressMode::all_sockets());
  ck_assert(!aside(r));
  e.set_mode({});
  exchange(r, 1, 6);
  ck_assert(aside(r));
  r.world.cut(0, 1);
  r.turn(5);
  exchange(r, 2, 6);  // the lost one is not looked back at
  ck_assert(aside(r));
}
END_TEST

// Who waits has a small message sooner; a long one is not to be disturbed. The others have their
// look as often as without.
START_TEST(poll_of_who_waits_reads_the_detached_connection_several_times) {
  constexpr int kMore = 3;
  SimRanks r(3, SimRanks::no_faults(), [](EngineOptions& o) { o.detach_after = 4; });
  r.connect(1, 0);
  r.connect(2, 0);
  Engine& e = r.engine(0);
  const auto reads_of_a_poll = [&](bool waits) {
    Hold hold(e.gate());
    e.set_outstanding(true);
    const std::uint64_t before = e.counters().reads;
    if (waits) e.set_repolls(kMore);
    e.poll();
    return e.counters().reads - before;
  };
  hear_small(r, 0, 1, 3);
  ck_assert_uint_eq(reads_of_a_poll(true), 1);  // it is watched
  e.set_signals(false);
  hear_small(r, 0, 1, 6);
  ck_assert(r.world.unwatched(0) == 1);
  ck_assert_uint_eq(reads_of_a_poll(false), 1);
  ck_assert_uint_eq(reads_of_a_poll(true), 1 + kMore);
  ck_assert_uint_eq(reads_of_a_poll(false), 1);  // once only
  const std::uint64_t looks = e.counters().waits;
  for (int i = 0; i < 16; ++i) reads_of_a_poll(true);
  ck_assert_uint_eq(e.counters().waits - looks, 1 + kMore);
  say(r.engine(1), 0, bytes_of(40, 1));
  r.world.skip(1'000'000);
  ck_assert_uint_le(reads_of_a_poll(true), 2);  // what is there ends it
  ck_assert(hear(r, 0, 1).size() == 40);
  say(r.engine(1), 0, bytes_of(5000, 1));
  r.world.skip(1'000'000);
  reads_of_a_poll(true);
  ck_assert(hear(r, 0, 1).size() == 5000);
  ck_assert(r.world.unwatched(0) == 1);
  ck_assert_uint_eq(reads_of_a_poll(true), 1);
  // Behind a small one, in the poll that finds it beginning.
  hear_small(r, 0, 1, 6);
  Taker taker(e, FrameKind::kTransfer, 300'000);
  const auto data = bytes_of(300'000, 2);
  r.world.write_limit = [](int host, std::uint64_t could) -> std::uint64_t {
    return host == 1 ? std::min<std::uint64_t>(could, 10'000) : could;
  };
  SendOp* op = nullptr;
  r.engine(1).send(0, FrameKind::kTransfer, 1, data.data(), data.size(), op);
  r.world.skip(1'000'000);
  ck_assert_uint_le(reads_of_a_poll(true), 2);
  r.world.write_limit = nullptr;
  ck_assert(r.until([&] { return taker.ended == 1 && op->done; }));
  r.engine(1).release(op);
}
END_TEST

// Who waits for the answer to a small packet, and only who waits, leaves the socket alone for most
// of what that takes.
START_TEST(first_look_for_an_answer_is_delayed) {
  RanksThatPoll r;
  Engine& e = r.engine(0);
  r.set_first_aside();
  alignas(FrameHeader) std::uint8_t memory[kFrameHeaderBytes + 40] = {};
  const auto speak = [&] {
    Hold hold(e.gate());
    ck_assert_int_eq(e.send_control_in_place(1, memory + kFrameHeaderBytes, 40, nullptr, 0), 0);
  };
  const auto look = [&](bool waits) {
    const std::uint8_t* packet = nullptr;
    int from = -1;
    bool alone = false;
    Hold hold(e.gate());
    if (waits) e.set_repolls(1);
    return e.next_control(&packet, from, alone);
  };
  const auto take_question = [&] {  // rank 0 does nothing meanwhile
    Engine& other = r.engine(1);
    std::uint8_t packet[40];
    int from = -1;
    Hold hold(other.gate());
    while (!other.control_ready()) other.poll();
    ck_assert_uint_eq(other.take_control(packet, sizeof packet, from), sizeof packet);
  };
  // One question, and its answer of so many bytes, asked for by who waits or who only looks.
  // Returns how long nobody looked.
  const auto ask = [&](std::size_t bytes, bool waits) {
    const std::int64_t before = r.world.spun_ns;
    speak();
    ck_assert_uint_eq(look(false), 0);
    ck_assert_int_eq(r.world.spun_ns, before);  // who looks once has not waited yet
    ck_assert_uint_eq(look(waits), 0);
    const std::int64_t spun = r.world.spun_ns - before;
    r.world.pass(3'000);
    take_question();
    say(r.engine(1), 0, bytes_of(bytes, 1));
    std::uint32_t got = 0;
    while ((got = look(waits)) == 0) r.world.skip(1'000);
    ck_assert_uint_eq(got, bytes);
    ck_assert_int_eq(r.world.spun_ns - before, spun);  // the first look only
    return spun;
  };
  for (unsigned i = 0; i <= FirstLook::kWaits; ++i) {
    ck_assert_int_eq(ask(40, true), 0);
    say(r.engine(1), 0, bytes_of(40, 2));  // what comes behind the answer is not measured
    const int clock_reads = r.world.clock_reads;
    ck_assert_uint_eq(look(true), 40);
    ck_assert_int_eq(r.world.clock_reads, clock_reads);
  }
  unsigned delayed = 0;
  for (unsigned i = 0; i < 2 * FirstLook::kStride; ++i) {
    const std::int64_t spun = ask(40, true);
    ck_assert(spun == 0 || (spun >= 2'000 && spun <= FirstLook::kMaxNs));
    delayed += spun != 0 ? 1 : 0;
  }
  ck_assert_uint_eq(delayed, 2 * (FirstLook::kStride - 1));
  for (unsigned i = 0; i < 10; ++i) ck_assert_int_eq(ask(40, false), 0);
  // Where messages get longer it is not known at first whether the next one comes by one write.
  ask(20'000, true);
  for (int i = 1; i < PollRcvlowat::kDoubts; ++i) {
    const int clock_reads = r.world.clock_reads;
    ck_assert_int_eq(ask(20'000, true), 0);
    ck_assert_int_eq(r.world.clock_reads, clock_reads);
  }
  delayed = 0;
  for (unsigned i = 0; i < 2 * FirstLook::kStride; ++i) delayed += ask(20'000, true) != 0 ? 1 : 0;
  ck_assert_uint_eq(delayed, 2 * (FirstLook::kStride - 1));
  // Nothing was said: no answer is on its way.
  for (unsigned i = 0; i < 10; ++i) ask(40, true);
  const std::int64_t before = r.world.spun_ns;
  for (unsigned i = 0; i < 10; ++i) ck_assert_uint_eq(look(true), 0);
  ck_assert_int_eq(r.world.spun_ns, before);
}
END_TEST

// One read, when it brings one whole packet; whatever else the stream holds arrives as it does by
// poll(): the start of a packet, several, a frame behind one, an end.
START_TEST(next_control_reads_the_detached_connection) {
  RanksThatPoll r(3);
  Engine& e = r.engine(0);
  r.set_first_aside();
  bool alone = false;
  int from = -1;
  const auto next = [&] {
    const std::uint8_t* packet = nullptr;
    alone = false;
    Hold hold(e.gate());
    const std::uint32_t length = e.next_control(&packet, from, alone);
    return std::vector<std::uint8_t>(packet, packet + length);
  };
  const auto arrives = [&](const std::vector<std::uint8_t>& what) {
    for (int i = 0; i < 100; ++i) {
      const auto got = next();
      if (!got.empty()) return got == what;
      r.world.skip(10'000);
    }
    return false;
  };
  int alone_count = 0;
  for (int i = 0; i < 40; ++i) {  // two looks at all among them
    const std::uint64_t reads = e.counters().reads;
    ck_assert(next().empty());
    ck_assert_uint_eq(e.counters().reads, reads + 1);
    if (i % 3 == 0) ck_assert(next().empty());
    say(r.engine(1), 0, bytes_of(40, i));
    ck_assert(arrives(bytes_of(40, i)));
    alone_count += alone ? 1 : 0;
  }
  ck_assert_int_gt(alone_count, 30);
  ck_assert_int_lt(alone_count, 40);
  // Three at once: none is alone.
  for (int i = 0; i < 3; ++i) say(r.engine(1), 0, bytes_of(50, i));
  r.world.skip(1'000'000);
  for (int i = 0; i < 3; ++i) {
    ck_assert(arrives(bytes_of(50, i)));
    ck_assert(!alone);
  }
  // As long as they may be, and more than is read ahead.
  for (int i = 0; i < 3; ++i) say(r.engine(1), 0, bytes_of(kControlBytesMax, i));
  for (int i = 0; i < 3; ++i) ck_assert(arrives(bytes_of(kControlBytesMax, i)));
  // A frame of another kind, straight into its place, and a packet behind it.
  constexpr std::size_t kMiddle = 100'000;
  Taker taker(e, FrameKind::kTransfer, kMiddle);
  const auto data = bytes_of(kMiddle, 9);
  send_off(r.engine(1), 0, FrameKind::kTransfer, 1, data);
  say(r.engine(1), 0, bytes_of(60, 1));
  r.world.skip(1'000'000);
  ck_assert(next() == bytes_of(60, 1));  // by that call, all of it
  ck_assert(taker.ended == 1 && taker.buffer == data);
  hear_small(r, 0, 1, 20);
  ck_assert(next().empty());
  // A header and nothing else, for which there is no packet.
  for (int i = 1; i <= 20; ++i) {
    Taker nothing(e, FrameKind::kTransfer, 0);
    send_off(r.engine(1), 0, FrameKind::kTransfer, 1, {});
    r.world.skip(1'000'000);
    for (int j = 0; j < 3; ++j) ck_assert(next().empty());
    ck_assert_int_eq(nothing.ended, 1);
  }
  Taker again(e, FrameKind::kTransfer, kMiddle);
  // The mark follows.
  constexpr std::size_t kAtOnce = 50'000;
  ck_assert_int_eq(r.world.low_water(0), 1);
  for (int i = 0; i < PollRcvlowat::kDoubts + 1; ++i) {
    again.arrived = 0;
    send_off(r.engine(1), 0, FrameKind::kTransfer, 1, bytes_of(kAtOnce, i));
    for (int j = 0; j < 100 && again.arrived < kAtOnce; ++j) {
      ck_assert(next().empty());
      r.world.skip(10'000);
    }
  }
  ck_assert(next().empty());
  ck_assert_int_eq(r.world.low_water(0), PollRcvlowat::kMark);
  hear_small(r, 0, 1, 20);
  ck_assert(next().empty());
  // Others are heard, too.
  say(r.engine(2), 0, bytes_of(70, 2));
  ck_assert(arrives(bytes_of(70, 2)));
  ck_assert_int_eq(from, 2);
  hear_small(r, 0, 1, 6);
  ck_assert(next().empty());
  // The gathered leave with the look, and a lost peer is lost.
  e.set_gather(Engine::kGatherPacketMax);
  say(e, 1, bytes_of(30, 1));
  e.set_gather(0);
  ck_assert_int_eq(e.gathered(), 1);
  ck_assert(next().empty());
  ck_assert_int_eq(e.gathered(), 0);
  Losses losses;
  losses.install(e);
  r.lose_host(1);
  for (int i = 0; i < 100 && losses.count == 0; ++i) {
    ck_assert(next().empty());
    r.world.skip(10'000);
  }
  ck_assert_int_eq(losses.count, 1);
  ck_assert_uint_eq(e.read_ahead_buffers_used(), 0);
}
END_TEST

// Messages of a few packets, by both ways of polling: under a low-water mark that is longer than
// they are, and with several reads in a poll.
START_TEST(middling_messages_are_read_by_polls) {
  for (const bool by_poll : {false, true}) {
    constexpr std::size_t kMiddle = 10'000;
    RanksThatPoll r;
    Engine& e = r.engine(0);
    std::uint32_t got = 0;
    const auto next = [&] {
      Hold hold(e.gate());
      const std::uint8_t* packet = nullptr;
      int from = -1;
      bool alone = false;
      if (by_poll && !e.control_ready()) e.poll();
      got = by_poll ? e.view_control(&packet, from) : e.next_control(&packet, from, alone);
      return got;
    };
    const auto hear_middle = [&] {
      say(r.engine(1), 0, bytes_of(kMiddle, 1));
      int polls = 1;
      while (next() == 0 && polls++ < 100) r.world.skip(10'000);
      ck_assert_uint_eq(got, kMiddle);
      return polls;
    };
    for (int i = 0; i < PollRcvlowat::kDoubts + 6; ++i) hear_middle();
    ck_assert_uint_eq(next(), 0);
    ck_assert_int_eq(r.world.low_water(0), PollRcvlowat::kMark);
    const Counters before = e.counters();
    for (int i = 0; i < 320; ++i) ck_assert_uint_eq(next(), 0);
    ck_assert_uint_eq(e.counters().reads_empty - before.reads_empty, 320);
    // Several reads in one poll; the look at all is still at every 16th.
    const Counters close = e.counters();
    for (int i = 0; i < 80; ++i) {
      e.set_repolls(3);
      ck_assert_uint_eq(next(), 0);
    }
    if (!by_poll) {  // by poll() there is one
      ck_assert_uint_eq(e.counters().reads_empty - close.reads_empty, 320);
      ck_assert_uint_eq(e.counters().waits - close.waits, 20);
    }
    e.set_repolls(0);
    for (int i = 0; i < 50; ++i) {
      ck_assert_int_le(hear_middle(), 3);
      for (int j = i % 5; j > 0; --j) ck_assert_uint_eq(next(), 0);
    }
    hear_small(r, 0, 1, 20);
    ck_assert_uint_eq(next(), 0);
    for (int i = 0; i < PollRcvlowat::kDoubts + 1; ++i) hear_middle();
    ck_assert_uint_eq(next(), 0);
    Losses losses;
    losses.install(e);
    r.lose_host(1);
    int polls = 0;
    for (; polls < 100 && losses.count == 0; ++polls) {
      ck_assert_uint_eq(next(), 0);
      r.world.skip(10'000);
    }
    ck_assert_int_eq(losses.count, 1);
    ck_assert_int_le(polls, 20);
  }
}
END_TEST

// Whose socket is full is told when it has room again, set aside or not.
START_TEST(detached_connection_is_told_of_room_for_what_it_sends) {
  constexpr std::size_t kLong = 8'000'000;
  RanksThatPoll r;
  Engine& e = r.engine(0);
  r.set_first_aside();
  Taker taker(r.engine(1), FrameKind::kTransfer, kLong);
  const auto data = bytes_of(kLong, 2);
  SendOp* op = nullptr;
  e.send(1, FrameKind::kTransfer, 1, data.data(), kLong, op);
  ck_assert_ptr_nonnull(op);
  ck_assert_uint_gt(e.counters().writes_full, 0);
  ck_assert_int_eq(r.world.unwatched(0), 0);
  poll_until_arrived(r, taker, kLong);
  ck_assert_int_eq(r.world.unwatched(0), 1);  // all is out: nothing to be asked about
  e.release(op);
}
END_TEST

// Nobody would ever hear of it again: an error, no hang.
START_TEST(connection_that_cannot_be_taken_back_is_lost) {
  RanksThatPoll r;
  Engine& e = r.engine(0);
  r.set_first_aside();
  Losses losses;
  losses.install(e);
  r.world.fail_watch = ENOMEM;
  {
    Hold hold(e.gate());
    e.wait(1'000);
  }
  ck_assert_int_eq(losses.count, 1);
  ck_assert_int_eq(losses.error, ENOMEM);
}
END_TEST

START_TEST(write_of_middling_size_is_made_in_two_halves) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) {
    o.split_min = 1'000;
    o.split_end = 5'000;
  });
  r.connect(0, 1);
  const auto writes_of = [&](std::size_t size, bool answer = true) {
    Taker taker(r.engine(1), FrameKind::kTransfer, size);
    const auto data = bytes_of(size, 3);
    const std::uint64_t before = r.engine(0).counters().writes;
    send_off(r.engine(0), 1, FrameKind::kTransfer, 5, data);
    ck_assert(r.until([&] { return taker.ended == 1; }));
    ck_assert(taker.buffer == data);
    const std::uint64_t writes = r.engine(0).counters().writes - before;
    if (answer) {
      say(r.engine(1), 0, {1});
      ck_assert(hear(r, 0, 1).size() == 1);
    }
    return writes;
  };
  for (unsigned i = 0; i < FasterWay::kTurn; ++i)  // then it is the turn of halves
    ck_assert_uint_eq(writes_of(3'000), 1);
  ck_assert_uint_eq(writes_of(1'000 - kFrameHeaderBytes - 1), 1);
  ck_assert_uint_eq(writes_of(1'000 - kFrameHeaderBytes), 2);
  ck_assert_uint_eq(writes_of(5'000 - kFrameHeaderBytes - 1), 2);
  ck_assert_uint_eq(writes_of(5'000 - kFrameHeaderBytes), 1);
  ck_assert_uint_eq(writes_of(3'000, false), 2);
  ck_assert_uint_eq(writes_of(3'000, false), 1);  // a stream of them
  for (int i = 0; i <= Halves::kStream; ++i) ck_assert_uint_eq(writes_of(3'000), 1);
  ck_assert_uint_eq(writes_of(3'000), 2);
  const auto data = bytes_of(3'000, 3);
  const std::uint64_t before = r.engine(0).counters().writes;
  SendOp* op = nullptr;
  {
    InHandler handler(r.engine(0));  // nobody waits for it
    r.engine(0).send(1, FrameKind::kTransfer, 5, data.data(), data.size(), op);
  }
  ck_assert_ptr_null(op);
  ck_assert_uint_eq(r.engine(0).counters().writes - before, 1);
}
END_TEST

// Which is the faster way is a matter of the machine: each connection finds it out, and notices
// when it changes. Of who sends whole what comes is acknowledged at once, too.
START_TEST(message_of_middling_size_leaves_in_halves_or_whole_as_the_answer_is_sooner) {
  constexpr std::size_t kBytes = 70'000;
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) {
    o.split_min = 60'000;
    o.split_end = 100'000;
    o.detach_after = 4;
  });
  r.connect(0, 1);
  r.turn(2);
  r.engine(0).set_signals(false);
  Taker there(r.engine(1), FrameKind::kTransfer, kBytes),
      here(r.engine(0), FrameKind::kTransfer, kBytes);
  const auto data = bytes_of(kBytes, 3);
  std::int64_t cost_ns[2] = {};  // of halves, and of a whole one
  const auto whole_ones = [&](unsigned times) {
    unsigned whole = 0;
    for (unsigned i = 0; i < times; ++i) {
      const std::uint64_t before = r.engine(0).counters().writes;
      send_off(r.engine(0), 1, FrameKind::kTransfer, 5, data);
      const bool one = r.engine(0).counters().writes - before == 1;
      whole += one ? 1 : 0;
      poll_until_arrived(r, there, kBytes);
      r.world.pass(cost_ns[one ? 1 : 0]);
      send_off(r.engine(1), 0, FrameKind::kTransfer, 6, data);
      poll_until_arrived(r, here, kBytes);
      there.arrived = here.arrived = 0;
    }
    return whole;
  };
  const auto mark = [&] {
    Hold hold(r.engine(0).gate());
    r.engine(0).poll();
    return r.world.low_water(0);
  };
  constexpr unsigned kTrial = FasterWay::kTurn * FasterWay::kTurns;
  cost_ns[0] = 900'000;
  cost_ns[1] = 500'000;
  ck_assert_uint_eq(whole_ones(kTrial), kTrial / 2);
  ck_assert_uint_eq(whole_ones(FasterWay::kRest), FasterWay::kRest);
  ck_assert_int_eq(mark(), PollRcvlowat::kMark);
  for (int i = 0; i < Halves::kRecent + PollRcvlowat::kDoubts; ++i) {  // no answers: a stream
    send_off(r.engine(1), 0, FrameKind::kTransfer, 6, data);
    poll_until_arrived(r, here, kBytes);
    here.arrived = 0;
  }
  ck_assert_int_eq(mark(), 1);
  std::swap(cost_ns[0], cost_ns[1]);
  ck_assert_uint_eq(whole_ones(kTrial), kTrial / 2);
  ck_assert_uint_eq(whole_ones(20), 0);
  ck_assert_int_eq(mark(), 1);
}
END_TEST

START_TEST(handler_stops_at_its_budget_and_says_that_there_is_more) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) { o.handler_budget_bytes = 10'000; });
  r.connect(0, 1);
  Taker taker(r.engine(1), FrameKind::kTransfer, 200'000);
  r.world.read_limit = [](int host, std::uint64_t could) {
    return host == 1 ? std::min<std::uint64_t>(could, 4'000) : could;
  };
  const auto data = bytes_of(200'000, 2);
  send_off(r.engine(0), 1, FrameKind::kTransfer, 1, data);
  r.world.skip(1'000'000);
  int entries = 0;
  bool more_seen = false;
  while (taker.ended == 0 && ++entries < 1000) {
    const std::uint64_t before = r.engine(1).counters().bytes_in;
    {
      InHandler handler(r.engine(1));
      while (r.engine(1).poll_all() > 0 && !r.engine(1).more_to_do()) {}
    }
    ck_assert_uint_le(r.engine(1).counters().bytes_in - before, 10'000 + 4'000);
    more_seen = more_seen || r.engine(1).more_to_do();
  }
  ck_assert(more_seen);
  ck_assert_int_gt(entries, 10);
  ck_assert_int_eq(taker.ended, 1);
}
END_TEST

START_TEST(idle_poll_costs_no_system_call_most_times) {
  SimRanks r;
  r.connect(0, 1);
  r.turn(10);
  r.engine(0).set_outstanding(false);
  const std::uint64_t before = r.engine(0).counters().system_calls();
  for (int i = 0; i < 1600; ++i) r.engine(0).poll();
  ck_assert_uint_le(r.engine(0).counters().system_calls() - before, 400);
}
END_TEST

START_TEST(end_of_the_engine_completes_its_sends_and_takes_no_new_ones) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_max = f.pipe_min = 700;
  SimRanks r(2, f);
  r.connect(0, 1);
  struct Last {
    Engine* engine;
    int calls = 0, error = 0, again = 0;
  } last = {&r.engine(0)};
  const auto data = bytes_of(6'000, 3);
  SendOp* op = nullptr;
  r.engine(0).send(1, FrameKind::kTransfer, 1, data.data(), data.size(), op);
  ck_assert_ptr_nonnull(op);
  r.engine(0).on_done(
      op,
      [](void* arg, int error) {
        auto* l = static_cast<Last*>(arg);
        ++l->calls;
        l->error = error;
        const iovec part = {l, 1};
        l->again = l->engine->send_control(1, &part, 1);
      },
      &last);
  r.engines[0].reset();
  ck_assert_int_eq(last.calls, 1);
  ck_assert_int_eq(last.error, ECANCELED);
  ck_assert_int_lt(last.again, 0);
  ck_assert_uint_eq(r.world.open_sockets(0), 0);
}
END_TEST

// In the handler there are keys for a few connections at a time: the others wait.
START_TEST(attempts_that_wait_in_the_handler_are_made_again_when_they_break) {
  constexpr int kPeers = 14;
  SimRanks r(1 + kPeers, SimRanks::no_faults(), [](EngineOptions& o) {
    o.protection = protection_offer(Protection::kAuth);
    o.connect_timeout_ns = 60'000'000'000;
  });
  const char hello = 'h';
  const iovec part = {const_cast<char*>(&hello), 1};
  const auto in_handler = [&] {
    r.as(0);
    Hold hold(r.engine(0).gate());
    ProgressScope scope(r.engine(0), r.engine(0).handler_mode());
    r.engine(0).poll_all();
  };
  const auto others = [&] {
    for (int i = 1; i <= kPeers; ++i) r.poll(i);
    r.world.pass(100'000'000);
  };
  {
    r.as(0);
    Hold hold(r.engine(0).gate());
    ProgressScope scope(r.engine(0), r.engine(0).handler_mode());
    for (int i = 1; i <= kPeers; ++i) ck_assert_int_eq(r.engine(0).send_control(i, &part, 1), 0);
  }
  for (int i = 0; i < 20; ++i) {
    in_handler();
    others();
  }
  ck_assert_uint_lt(r.engine(0).counters().connections, kPeers);
  for (int i = 1; i <= kPeers; ++i)
    if (r.engine(0).first_stream(i) < 0)
      for (const int fd : r.world.connected(0, i)) r.world.reset(fd);
  r.world.pass(1'000'000);
  in_handler();
  r.turn(100);
  for (int i = 0; i < 30; ++i) {
    r.turn(10);
    r.world.pass(100'000'000);
  }
  ck_assert_uint_eq(r.engine(0).counters().connections, kPeers);
  for (int i = 1; i <= kPeers; ++i) ck_assert(r.engine(i).control_ready());
}
END_TEST

int main() { return run_tests("engine"); }
