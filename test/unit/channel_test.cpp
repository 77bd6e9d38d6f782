// Every function of channel.h and every guarantee that it gives, between engines on the fake
// network; the blocking calls also between two processes over real sockets.
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "in_pieces.h"
#include "mplite/net/net_posix.h"
#include "sim_ranks.h"

#include "run_tests.h"

using namespace mplite;

namespace {

using Bytes = std::vector<std::uint8_t>;

// A narrow pipe, so that sends stay under way.
sim::Faults narrow(std::uint64_t bytes = 1'000) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_min = f.pipe_max = bytes;
  return f;
}

struct Result {
  int calls = 0;
  std::int64_t value = 0;
};
void on_complete(void* arg, std::int64_t result) {
  auto* r = static_cast<Result*>(arg);
  ++r->calls;
  r->value = result;
}

int take_control(SimRanks& r, int rank, void* packet, int size, int* from) {
  r.as(rank);
  if (!r.until([] { return MPID_ControlMsgAvail() != 0; })) return -1;
  return MPID_RecvAnyControl(packet, size, from);
}

// While a call of `rank` waits, the others go on.
void others_run(SimRanks& r, int rank) {
  r.world.asleep = [&r, rank](int) {
    ChannelState* before = channel_bound();
    for (std::size_t i = 0; i < r.engines.size(); ++i) {
      if (static_cast<int>(i) == rank || r.engines[i] == nullptr) continue;
      r.poll(static_cast<int>(i));
    }
    channel_bind(before);
  };
}

}  // namespace

// ---- control ----

START_TEST(control_packets_are_fifo_per_pair) {
  SimRanks r(3);
  for (int i = 0; i < 100; ++i)
    for (int from = 1; from < 3; ++from) {
      r.as(from);
      const int packet[2] = {from, i};
      ck_assert_int_eq(MPID_SendControl(packet, sizeof packet, 0), 0);
    }
  int next[3] = {};
  for (int i = 0; i < 200; ++i) {
    int packet[2] = {}, from = -1;
    ck_assert_int_eq(take_control(r, 0, packet, sizeof packet, &from), sizeof packet);
    ck_assert_int_eq(packet[0], from);
    ck_assert_int_eq(packet[1], next[from]++);
  }
  ck_assert_int_eq(MPID_ControlMsgAvail(), 0);
}
END_TEST

START_TEST(control_packet_may_be_on_the_callers_stack) {
  SimRanks r(2, narrow(200));
  r.connect(0, 1);
  for (int i = 0; i < 20; ++i) {
    Bytes packet = bytes_of(400, i);
    ck_assert_int_eq(MPID_SendControl(packet.data(), 400, 1), 0);
    std::fill(packet.begin(), packet.end(), 0);
  }
  for (int i = 0; i < 20; ++i) {
    Bytes got(400);
    int from = -1;
    ck_assert_int_eq(take_control(r, 1, got.data(), 400, &from), 400);
    ck_assert(got == bytes_of(400, i));
  }
}
END_TEST

START_TEST(control_packets_of_1_byte_to_the_most_are_taken_and_no_others) {
  SimRanks r;
  Bytes big = bytes_of(MPID_CONTROL_BYTES_MAX + 1, 1);
  ck_assert_int_lt(MPID_SendControl(big.data(), 0, 1), 0);
  ck_assert_int_lt(MPID_SendControl(big.data(), MPID_CONTROL_BYTES_MAX + 1, 1), 0);
  for (const int size : {1, 2, MPID_CONTROL_BYTES_MAX - 1, MPID_CONTROL_BYTES_MAX}) {
    r.as(0);
    ck_assert_int_eq(MPID_SendControl(big.data(), size, 1), 0);
    Bytes got(MPID_CONTROL_BYTES_MAX);
    int from = -1;
    ck_assert_int_eq(take_control(r, 1, got.data(), MPID_CONTROL_BYTES_MAX, &from), size);
    ck_assert_int_eq(std::memcmp(got.data(), big.data(), static_cast<std::size_t>(size)), 0);
  }
}
END_TEST

START_TEST(control_packet_is_looked_at_where_it_was_read) {
  SimRanks r(3);
  const int sizes[] = {1, 100, MPID_CONTROL_BYTES_MAX};
  for (const int size : sizes)
    for (int from = 1; from < 3; ++from) {
      r.as(from);
      ck_assert_int_eq(MPID_SendControl(bytes_of(MPID_CONTROL_BYTES_MAX, from).data(), size, 0), 0);
    }
  r.as(0);
  int seen[3] = {};
  for (int i = 0; i < 6; ++i) {
    ck_assert(r.until([] { return MPID_ControlMsgAvail() != 0; }));
    Bytes spare(MPID_CONTROL_BYTES_MAX, 0xee);
    const void* packet = nullptr;
    int from = -1;
    Hold hold(channel_gate());
    const int size = MPID_ViewAnyControl(&packet, spare.data(), &from);
    ck_assert(packet != spare.data() && from > 0 && seen[from] < 3);
    ck_assert_int_eq(size, sizes[seen[from]++]);
    MPID_SendControl("it stays", 8, from);
    ck_assert_int_eq(std::memcmp(packet, bytes_of(MPID_CONTROL_BYTES_MAX, from).data(),
                                 static_cast<std::size_t>(size)),
                     0);
    ck_assert(std::count(spare.begin(), spare.end(), 0xee) == MPID_CONTROL_BYTES_MAX);
  }
}
END_TEST

START_TEST(control_receive_that_is_too_short_gets_the_first_bytes) {
  SimRanks r;
  const Bytes packet = bytes_of(100, 1);
  MPID_SendControl(packet.data(), 100, 1);
  MPID_SendControl("next", 4, 1);
  Bytes got(101, 0xee);
  int from = -1;
  ck_assert_int_eq(take_control(r, 1, got.data(), 10, &from), 100);
  ck_assert_int_eq(std::memcmp(got.data(), packet.data(), 10), 0);
  ck_assert_uint_eq(got[10], 0xee);
  ck_assert_int_eq(take_control(r, 1, got.data(), 100, &from), 4);
}
END_TEST

START_TEST(data_behind_a_control_packet_arrives_as_one_packet) {
  SimRanks r;
  const Bytes head = bytes_of(40, 1), data = bytes_of(3'000, 2);
  ck_assert_int_eq(MPID_SendControlData(head.data(), 40, data.data(), 3'000, 1), 0);
  ck_assert_int_eq(MPID_SendControlData(head.data(), 40, nullptr, 0, 1), 0);
  Bytes got(4'000);
  int from = -1;
  ck_assert_int_eq(take_control(r, 1, got.data(), 4'000, &from), 3'040);
  ck_assert_int_eq(std::memcmp(got.data(), head.data(), 40), 0);
  ck_assert_int_eq(std::memcmp(got.data() + 40, data.data(), 3'000), 0);
  ck_assert_int_eq(take_control(r, 1, got.data(), 4'000, &from), 40);
}
END_TEST

// Directly, not before it may leave, behind what has been gathered or is queued, and of any length;
// what is before the packet is the engine's.
START_TEST(control_packet_leaves_from_where_it_is) {
  SimRanks r;
  r.connect(0, 1);
  std::vector<int> sizes = {1, 40, 4'000, MPID_CONTROL_BYTES_MAX};
  enum class Before { kNothing, kHold, kGathered, kQueued };
  for (const Before before :
       {Before::kNothing, Before::kHold, Before::kGathered, Before::kQueued}) {
    r.as(0);
    const bool held = before == Before::kHold;
    if (held) MPID_ChannelHold(1);
    const Bytes first = bytes_of(7, 7);
    if (before == Before::kGathered) {
      MPID_ChannelGather(MPID_GATHER_SMALL);
      ck_assert_int_eq(MPID_SendControl(first.data(), 7, 1), 0);
      MPID_ChannelGather(MPID_GATHER_NOTHING);
      ck_assert_int_eq(MPID_ChannelGathered(), 1);
    }
    if (before == Before::kQueued) {
      r.world.write_limit = [](int, std::uint64_t) { return std::uint64_t{0}; };
      ck_assert_int_eq(MPID_SendControl(first.data(), 7, 1), 0);
      r.world.write_limit = nullptr;
      ck_assert_uint_eq(MPID_ChannelQueued(), 1);
    }
    const std::uint64_t writes = channel_counters().writes;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Bytes memory(MPID_CONTROL_HEAD, 0xee);
      const Bytes packet = bytes_of(static_cast<std::size_t>(sizes[i]), static_cast<int>(i));
      memory.insert(memory.end(), packet.begin(), packet.end());
      Hold hold(channel_gate());
      const int behind =
          sizes[i] / 2 * (static_cast<int>(i) % 2);  // in one piece, and with the rest elsewhere
      const Bytes rest(memory.end() - behind, memory.end());
      ck_assert_int_eq(MPID_SendControlInPlace(memory.data() + MPID_CONTROL_HEAD, sizes[i] - behind,
                                               rest.data(), behind, 1),
                       0);
      ck_assert(std::equal(packet.begin(), packet.end(), memory.begin() + MPID_CONTROL_HEAD));
      std::fill(memory.begin(), memory.end(), std::uint8_t{0xdd});
    }
    if (held) ck_assert_uint_eq(channel_counters().writes, writes);
    if (held) MPID_ChannelRelease(1);
    if (before == Before::kGathered || before == Before::kQueued) {
      Bytes got(MPID_CONTROL_BYTES_MAX);
      int from = -1;
      ck_assert_int_eq(take_control(r, 1, got.data(), MPID_CONTROL_BYTES_MAX, &from), 7);
      ck_assert_int_eq(std::memcmp(got.data(), first.data(), 7), 0);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Bytes got(MPID_CONTROL_BYTES_MAX);
      int from = -1;
      ck_assert_int_eq(take_control(r, 1, got.data(), MPID_CONTROL_BYTES_MAX, &from), sizes[i]);
      ck_assert_int_eq(
          std::memcmp(got.data(),
                      bytes_of(static_cast<std::size_t>(sizes[i]), static_cast<int>(i)).data(),
                      static_cast<std::size_t>(sizes[i])),
          0);
    }
  }
  r.as(0);
  Bytes memory(MPID_CONTROL_HEAD + MPID_CONTROL_BYTES_MAX + 1);
  Hold hold(channel_gate());
  ck_assert_int_eq(MPID_SendControlInPlace(memory.data() + MPID_CONTROL_HEAD, 0, nullptr, 0, 1),
                   -EMSGSIZE);
  ck_assert_int_eq(MPID_SendControlInPlace(memory.data() + MPID_CONTROL_HEAD,
                                           MPID_CONTROL_BYTES_MAX, memory.data(), 1, 1),
                   -EMSGSIZE);
}
END_TEST

// Whether there may be more behind it is not said of what was read together with others.
START_TEST(next_control_looks_polls_and_views_in_one) {
  SimRanks r;
  r.connect(0, 1);
  r.as(0);
  const Bytes packet = bytes_of(100, 1);
  for (int i = 0; i < 2; ++i) ck_assert_int_eq(MPID_SendControl(packet.data(), 100 - i, 1), 0);
  r.as(1);
  Hold hold(channel_gate());
  Bytes spare(MPID_CONTROL_BYTES_MAX);
  int got = 0;
  for (int i = 0; i < 100 && got < 2; ++i, r.world.skip(100'000)) {
    const void* at = nullptr;
    int from = -1, more = -1;
    const int length = MPID_NextControl(&at, spare.data(), &from, &more);
    if (length == 0) continue;
    ck_assert(length == 100 - got && from == 0 && more == 1);
    ck_assert_int_eq(std::memcmp(at, packet.data(), static_cast<std::size_t>(length)), 0);
    ++got;
  }
  ck_assert_int_eq(got, 2);
}
END_TEST

// Of one that came alone it is said that there is none.
START_TEST(next_control_tells_when_nothing_is_behind_it) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) { o.detach_after = 4; });
  r.connect(0, 1);
  r.engine(1).set_signals(false);
  const Bytes packet = bytes_of(100, 1);
  Bytes spare(MPID_CONTROL_BYTES_MAX);
  int alone = 0;
  for (int i = 0; i < 40; ++i) {
    r.as(0);
    ck_assert_int_eq(MPID_SendControl(packet.data(), 100, 1), 0);
    r.as(1);
    Hold hold(channel_gate());
    const void* at = nullptr;
    int from = -1, more = -1, length = 0;
    for (int j = 0; j < 100 && length == 0; ++j, r.world.skip(10'000))
      length = MPID_NextControl(&at, spare.data(), &from, &more);
    ck_assert_int_eq(length, 100);
    if (more == 0) {
      ++alone;
      ck_assert_int_eq(MPID_ControlMsgMore(), 0);
    }
  }
  ck_assert_int_gt(alone, 20);
}
END_TEST

// A peer that answers each packet at once, as one does that waits for what it has asked for.
START_TEST(pass_over_all_sockets_ends_while_peers_go_on) {
  SimRanks r;
  r.connect(0, 1);
  const auto say = [&] {
    const char packet = 'p';
    r.as(0);
    ck_assert_int_eq(MPID_SendControl(&packet, 1, 1), 0);
    r.world.skip(10'000);
    r.as(1);
  };
  const auto pass = [&] {
    Hold hold(channel_gate());
    ProgressScope scope(r.engine(1), r.engine(1).handler_mode());
    int taken = 0;
    for (int more = MPID_ControlMsgAvail(); more != 0 && taken < 10'000;
         more = MPID_ControlMsgMore()) {
      char got = 0;
      int from = -1;
      ck_assert_int_eq(MPID_RecvAnyControl(&got, 1, &from), 1);
      ++taken;
      say();
    }
    return taken;
  };
  say();
  for (int i = 0; i < 3; ++i) {
    ck_assert_int_eq(pass(), ProgressMode::kPacketsMax);
    ck_assert(r.engine(1).more_to_do());
  }
  Hold hold(channel_gate());
  ProgressScope scope(r.engine(1), r.engine(1).handler_mode());
  ck_assert_int_eq(MPID_ControlMsgAvail(), 1);
  char got = 0;
  int from = -1;
  MPID_RecvAnyControl(&got, 1, &from);
  ck_assert_int_eq(MPID_ControlMsgMore(), 0);
  ck_assert(!r.engine(1).more_to_do());
}
END_TEST

START_TEST(recv_any_control_waits_for_a_packet) {
  SimRanks r;
  r.connect(0, 1);
  int naps = 0;
  r.world.asleep = [&](int) {
    if (++naps != 5) return;
    ChannelState* before = channel_bound();
    r.as(1);
    MPID_SendControlBlock("late", 4, 0);
    channel_bind(before);
  };
  r.as(0);
  char got[4];
  int from = -1;
  ck_assert_int_eq(MPID_RecvAnyControl(got, 4, &from), 4);
  ck_assert_int_eq(from, 1);
  ck_assert_int_ge(naps, 5);
}
END_TEST

START_TEST(sends_return_without_the_receivers_help) {
  SimRanks r(2, narrow());
  r.connect(0, 1);
  // Both sides send much more than the network holds, and nobody receives.
  for (int round = 0; round < 50; ++round)
    for (int rank = 0; rank < 2; ++rank) {
      r.as(rank);
      const Bytes packet = bytes_of(500, round), message = bytes_of(5'000, round);
      ck_assert_int_eq(MPID_SendControl(packet.data(), 500, 1 - rank), 0);
      ck_assert_int_eq(MPID_SendChannel(message.data(), 5'000, 1 - rank), 0);
    }
  for (int rank = 0; rank < 2; ++rank)
    for (int round = 0; round < 50; ++round) {
      Bytes got(5'000);
      int from = -1;
      ck_assert_int_eq(take_control(r, rank, got.data(), 5'000, &from), 500);
      MPID_ChannelId id = 0;
      ck_assert_int_eq(MPID_IRecvFromChannel(got.data(), 5'000, 1 - rank, &id), 0);
      // What waits for the channel may stand behind control packets: those are kept.
      others_run(r, rank);
      ck_assert_int_eq(MPID_WRecvFromChannel(id), 5'000);
      ck_assert(got == bytes_of(5'000, round));
      r.world.asleep = {};
    }
}
END_TEST

// ---- channel ----

START_TEST(channel_messages_are_fifo_per_source) {
  SimRanks r(3, narrow(3'000));
  for (int i = 0; i < 30; ++i)
    for (int from = 1; from < 3; ++from) {
      r.as(from);
      const Bytes message = bytes_of(static_cast<std::size_t>(i * 177), from * 100 + i);
      ck_assert_int_eq(MPID_SendChannel(message.data(), message.size(), 0), 0);
    }
  r.as(0);
  others_run(r, 0);
  for (int from = 2; from >= 1; --from)  // sources do not wait for each other
    for (int i = 0; i < 30; ++i) {
      Bytes got(6'000);
      ck_assert_int_eq(MPID_RecvFromChannel(got.data(), got.size(), from), i * 177);
      got.resize(static_cast<std::size_t>(i * 177));
      ck_assert(got == bytes_of(got.size(), from * 100 + i));
    }
}
END_TEST

START_TEST(channel_message_that_nothing_has_announced_ends_its_sender) {
  SimRanks r(3);
  r.connect(0, 2);
  r.connect(1, 2);
  r.as(2);
  const int expected = 0;
  MPID_ChannelSetAwaited(
      [](void* arg, int peer) { return peer == *static_cast<const int*>(arg) ? 1 : 0; },
      const_cast<int*>(&expected));
  const Bytes message = bytes_of(100, 1);
  for (int from = 0; from < 2; ++from) {
    r.as(from);
    ck_assert_int_eq(MPID_SendChannel(message.data(), message.size(), 2), 0);
  }
  r.turn(10);
  r.as(2);
  ck_assert_int_eq(MPID_ChannelPeerError(1), EPROTO);
  ck_assert_int_eq(MPID_ChannelPeerError(0), 0);
  Bytes got(100);
  ck_assert_int_eq(MPID_RecvFromChannel(got.data(), got.size(), 0), 100);
  ck_assert(got == message);
}
END_TEST

// The engine finds what is left of a frame by its id (MPID_MoveRecvFromChannel): with another one
// the rest went to the old buffer, whoever had it by then.
START_TEST(channel_message_with_an_id_ends_its_sender) {
  SimRanks r(2, narrow(20'000));
  r.connect(0, 1);
  const Bytes data = bytes_of(5'000, 1);
  Bytes block(data.size(), 0xbb), to(data.size(), 0xbb);
  r.as(1);
  MPID_ChannelId rid = 0;
  ck_assert_int_eq(MPID_IRecvFromChannel(block.data(), block.size(), 0, &rid), 0);
  SendOp* op = nullptr;
  ck_assert_int_eq(
      r.engine(0).send(1, FrameKind::kChannel, 1ull << 49, data.data(), data.size(), op), 0);
  r.turn(20);
  r.as(1);
  ck_assert_int_eq(MPID_ChannelPeerError(0), EPROTO);
  ck_assert_int_eq(MPID_WRecvFromChannel(rid), -EPROTO);
  ck_assert(std::all_of(block.begin(), block.end(), [](std::uint8_t b) { return b == 0xbb; }));
  if (op != nullptr) r.engine(0).release(op);
}
END_TEST

START_TEST(receives_posted_ahead_are_filled_in_posting_order) {
  SimRanks r;
  r.connect(0, 1);
  r.as(1);
  Bytes got[5];
  MPID_ChannelId ids[5];
  for (int i = 0; i < 5; ++i) {
    got[i].resize(100);
    ck_assert_int_eq(MPID_IRecvFromChannel(got[i].data(), 100, 0, &ids[i]), 0);
    ck_assert(ids[i] != 0);
    ck_assert_int_eq(MPID_RecvStatus(ids[i]), 0);
  }
  r.as(0);
  for (int i = 0; i < 5; ++i)
    MPID_SendChannel(bytes_of(static_cast<std::size_t>(10 + i), i).data(),
                     static_cast<std::size_t>(10 + i), 1);
  r.turn(20);
  r.as(1);
  for (int i = 4; i >= 0; --i) {
    ck_assert_int_eq(MPID_RecvStatus(ids[i]), 1);
    ck_assert_int_eq(MPID_WRecvFromChannel(ids[i]), 10 + i);
    got[i].resize(static_cast<std::size_t>(10 + i));
    ck_assert(got[i] == bytes_of(got[i].size(), i));
    ck_assert_int_eq(MPID_RecvStatus(ids[i]), -EINVAL);  // gone
  }
}
END_TEST

START_TEST(channel_receive_that_is_too_short_gets_the_first_bytes_and_the_whole_length) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) { o.frame_bytes = 100; });
  const Bytes message = bytes_of(1'000, 1);
  MPID_SendChannel(message.data(), 1'000, 1);
  MPID_SendChannel("next", 4, 1);
  r.as(1);
  others_run(r, 1);
  Bytes got(1'001, 0xee);
  ck_assert_int_eq(MPID_RecvFromChannel(got.data(), 150, 0), 1'000);
  ck_assert_int_eq(std::memcmp(got.data(), message.data(), 150), 0);
  for (std::size_t i = 150; i < got.size(); ++i) ck_assert_uint_eq(got[i], 0xee);
  ck_assert_int_eq(MPID_RecvFromChannel(got.data(), 1'000, 0), 4);
}
END_TEST

// Whether a receive with so much room into `to`, or `flat` if that is null (0xee before), has
// written what it should have of `data`, and nothing else.
bool holds(const InPieces* to, const Bytes& flat, const Bytes& data, std::size_t room) {
  const std::size_t wanted = std::min(data.size(), room);
  const Bytes got = to != nullptr ? to->packed() : flat;
  if (!std::equal(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(wanted), got.begin()))
    return false;
  return to != nullptr ? to->untouched_but(wanted)
                       : std::all_of(got.begin() + static_cast<std::ptrdiff_t>(wanted), got.end(),
                                     [](std::uint8_t b) { return b == 0xee; });
}

// Channel messages and transfers from and into pieces and buffers, whole and too long for the
// receive, the receive posted before and after.
START_TEST(pieces_and_buffers_mix_at_both_ends) {
  std::mt19937 engine(11);
  const auto random = [&engine](std::size_t n) { return engine() % n; };
  for (int round = 0; round < 400; ++round) {
    SimRanks r(2, narrow(500 + random(3'000)), [&](EngineOptions& o) {
      o.frame_bytes = static_cast<std::uint32_t>(20 + random(900));
    });
    r.connect(0, 1);
    const std::size_t bytes = random(4'000);
    const std::size_t room = random(3) == 0 ? random(bytes + 1) : bytes + random(3);
    const bool transfer = random(2) != 0, from_pieces = random(2) != 0, to_pieces = random(4) != 0,
               early = random(2) != 0;
    const Bytes data = bytes_of(bytes, round);
    InPieces from = InPieces::random(bytes + 1, 1 + random(300), random);
    from.fill(data);
    InPieces to = InPieces::random(room + random(2), 1 + random(300), random);
    Bytes flat(room + 1, 0xee);
    MPID_TransferId id = 0;
    MPID_ChannelId rid = 0, sid = 0;
    r.as(1);
    if (transfer) ck_assert_int_eq(MPID_CreateRecvTransfer(nullptr, 0, 0, &id), 0);
    const auto receive = [&] {
      r.as(1);
      int rc = 0;
      if (transfer)
        rc = to_pieces ? MPID_StartNBRecvTransferRest(nullptr, to.pieces(), 0, room, 0, id, &rid)
                       : MPID_StartNBRecvTransfer(flat.data(), room, 0, id, &rid);
      else
        rc = to_pieces ? MPID_IRecvFromChannelV(to.pieces(), room, 0, &rid)
                       : MPID_IRecvFromChannel(flat.data(), room, 0, &rid);
      ck_assert_int_eq(rc, 0);
    };
    if (early) receive();
    r.as(0);
    int rc = 0;
    if (transfer)
      rc = from_pieces ? MPID_StartNBSendTransferRest(nullptr, from.pieces(), 0, bytes, 1, id, &sid)
                       : MPID_StartNBSendTransfer(data.data(), bytes, 1, id, &sid);
    else
      rc = from_pieces ? MPID_ISendChannelV(from.pieces(), bytes, 1, &sid)
                       : MPID_ISendChannel(data.data(), bytes, 1, &sid);
    ck_assert_int_eq(rc, 0);
    r.turn(2);
    if (!early) receive();
    r.as(1);
    int done = 0;
    ck_assert(r.until([&] {
      r.as(1);
      return (done = MPID_RecvStatus(rid)) != 0;
    }));
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(MPID_WRecvFromChannel(rid), static_cast<std::int64_t>(bytes));
    ck_assert_msg(holds(to_pieces ? &to : nullptr, flat, data, room), "round %d", round);
    r.as(0);
    if (sid != 0) ck_assert_int_eq(MPID_WSendChannel(sid), 0);
  }
}
END_TEST

// At any point of its arrival, the second of two as well, to a buffer or pieces, with room for all
// of it or not.
START_TEST(receive_moves_to_other_memory_with_what_has_arrived) {
  std::mt19937 engine(12);
  const auto random = [&engine](std::size_t n) { return engine() % n; };
  int moved = 0;
  for (int round = 0; round < 600; ++round) {
    SimRanks r(2, narrow(500 + random(3'000)), [&](EngineOptions& o) {
      o.frame_bytes = static_cast<std::uint32_t>(20 + random(900));
    });
    r.connect(0, 1);
    const std::size_t bytes = 1 + random(6'000);
    const std::size_t room = random(3) == 0 ? random(bytes + 1) : bytes + random(3);
    const bool to_pieces = random(2) != 0, second = random(2) != 0;
    const Bytes before = bytes_of(300, 1000 + round), data = bytes_of(bytes, round);
    MPID_ChannelId sid = 0, first_sid = 0, rid = 0, first_rid = 0;
    r.as(0);
    if (second) ck_assert_int_eq(MPID_ISendChannel(before.data(), before.size(), 1, &first_sid), 0);
    ck_assert_int_eq(MPID_ISendChannel(data.data(), bytes, 1, &sid), 0);
    Bytes block(bytes, 0xbb), first(before.size()), flat(room + 1, 0xee);
    InPieces to = InPieces::random(room + random(2), 1 + random(300), random);
    r.as(1);
    if (second)
      ck_assert_int_eq(MPID_IRecvFromChannel(first.data(), first.size(), 0, &first_rid), 0);
    ck_assert_int_eq(MPID_IRecvFromChannel(block.data(), bytes, 0, &rid), 0);
    r.turn(static_cast<int>(random(4)));
    r.as(1);
    const int rc = MPID_MoveRecvFromChannel(rid, to_pieces ? nullptr : flat.data(),
                                            to_pieces ? to.pieces() : nullptr, room);
    if (rc == 0) {
      ++moved;
      std::fill(block.begin(), block.end(), 0xdd);
    } else {
      ck_assert_int_eq(rc, -EINVAL);
      ck_assert_int_eq(MPID_RecvStatus(rid), 1);  // it was complete
    }
    int done = 0;
    ck_assert(r.until([&] {
      r.as(1);
      return (done = MPID_RecvStatus(rid)) != 0;
    }));
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(MPID_WRecvFromChannel(rid), static_cast<std::int64_t>(bytes));
    if (second) {
      ck_assert_int_eq(MPID_WRecvFromChannel(first_rid), 300);
      ck_assert(first == before);
    }
    if (rc == 0) {
      ck_assert_msg(holds(to_pieces ? &to : nullptr, flat, data, room), "round %d", round);
      ck_assert(std::all_of(block.begin(), block.end(), [](std::uint8_t b) { return b == 0xdd; }));
    } else {
      ck_assert(block == data);
    }
    r.as(0);
    if (first_sid != 0) ck_assert_int_eq(MPID_WSendChannel(first_sid), 0);
    if (sid != 0) ck_assert_int_eq(MPID_WSendChannel(sid), 0);
  }
  ck_assert_int_gt(moved, 300);
}
END_TEST

START_TEST(receive_that_has_no_room_for_what_has_arrived_does_not_move) {
  SimRanks r(2, narrow(1'000));
  r.connect(0, 1);
  const Bytes data = bytes_of(5'000, 1);
  MPID_ChannelId sid = 0, rid = 0;
  Bytes little(10), much(5'000);
  r.as(1);
  ck_assert_int_eq(MPID_MoveRecvFromChannel(0, much.data(), nullptr, much.size()), -EINVAL);
  ck_assert_int_eq(MPID_IRecvFromChannel(little.data(), little.size(), 0, &rid), 0);
  r.as(0);
  ck_assert_int_eq(MPID_ISendChannel(data.data(), data.size(), 1, &sid), 0);
  ck_assert_int_eq(MPID_MoveRecvFromChannel(sid, much.data(), nullptr, much.size()), -EINVAL);
  r.turn(2);
  r.as(1);
  ck_assert_int_eq(MPID_RecvStatus(rid), 0);
  ck_assert_int_eq(MPID_MoveRecvFromChannel(rid, much.data(), nullptr, much.size()), -EINVAL);
  ck_assert(r.until([&] {
    r.as(1);
    return MPID_RecvStatus(rid) == 1;
  }));
  ck_assert_int_eq(MPID_WRecvFromChannel(rid), 5'000);
  ck_assert(std::equal(little.begin(), little.end(), data.begin()));
}
END_TEST

START_TEST(isend_keeps_the_buffer_until_test_or_wait_says_so) {
  SimRanks r(2, narrow());
  r.connect(0, 1);
  Bytes a = bytes_of(20'000, 1), b = bytes_of(20'000, 2);
  MPID_ChannelId ia = 0, ib = 0;
  ck_assert_int_eq(MPID_ISendChannel(a.data(), a.size(), 1, &ia), 0);
  ck_assert_int_eq(MPID_ISendChannel(b.data(), b.size(), 1, &ib), 0);
  ck_assert(ia != 0 && ib != 0 && ia != ib);
  ck_assert_int_eq(MPID_TSendChannel(ia), 0);
  r.as(1);
  Bytes ga(20'000), gb(20'000);
  MPID_ChannelId ra = 0, rb = 0;
  MPID_IRecvFromChannel(ga.data(), ga.size(), 0, &ra);
  MPID_IRecvFromChannel(gb.data(), gb.size(), 0, &rb);
  r.as(0);
  int tested = 0;
  ck_assert(r.until([&] { return tested != 0 || (tested = MPID_TSendChannel(ia)) != 0; }));
  ck_assert_int_eq(tested, 1);
  std::fill(a.begin(), a.end(), 0);
  ck_assert_int_eq(MPID_TSendChannel(ia), -EINVAL);
  others_run(r, 0);
  ck_assert_int_eq(MPID_WSendChannel(ib), 0);
  std::fill(b.begin(), b.end(), 0);
  r.turn(50);
  r.as(1);
  ck_assert_int_eq(MPID_WRecvFromChannel(ra), 20'000);
  ck_assert_int_eq(MPID_WRecvFromChannel(rb), 20'000);
  ck_assert(ga == bytes_of(20'000, 1));
  ck_assert(gb == bytes_of(20'000, 2));
}
END_TEST

// A handler that comes behind the call can act upon a packet, whatever the call has started.
START_TEST(calls_leave_the_handler_what_a_packet_needs) {
  SimRanks r(2, narrow());
  r.connect(0, 1);
  const Bytes data(100);
  Bytes into(100);
  std::vector<MPID_TransferId> transfers(600);
  for (MPID_TransferId& id : transfers) {
    ck_assert_int_eq(MPID_CreateRecvTransfer(into.data(), into.size(), 1, &id), 0);
    ck_assert_int_ne(MPID_ChannelHeadroom(), 0);
  }
  for (int i = 0; i < 600; ++i) {
    MPID_ChannelId id = 0;
    ck_assert_int_eq(MPID_ISendChannel(data.data(), data.size(), 1, &id), 0);
    ck_assert_int_ne(MPID_ChannelHeadroom(), 0);
  }
}
END_TEST

// Somebody who has no memory for the packet that waits.
START_TEST(what_can_be_moved_is_moved_although_a_packet_waits) {
  SimRanks r(2, narrow());
  r.connect(0, 1);
  Bytes a = bytes_of(20'000, 1), got(20'000);
  MPID_ChannelId sent = 0, received = 0;
  ck_assert_int_eq(MPID_ISendChannel(a.data(), a.size(), 1, &sent), 0);
  r.as(1);
  ck_assert_int_eq(MPID_SendControl("x", 1, 0), 0);
  MPID_IRecvFromChannel(got.data(), got.size(), 0, &received);
  Result arrived;
  MPID_OnComplete(received, on_complete, &arrived);
  r.as(0);
  ck_assert(r.until([] { return MPID_ControlMsgAvail() != 0; }));
  for (int turns = 0; turns < 3000 && arrived.calls == 0; ++turns) {
    r.poll(1);
    r.world.skip(100'000);
    r.as(0);
    ck_assert_int_ne(MPID_ControlMsgAvail(), 0);
    {
      Hold hold(r.engine(0).gate());
      MPID_ChannelMove();
    }
  }
  ck_assert_int_eq(arrived.calls, 1);
  ck_assert(got == a);
}
END_TEST

START_TEST(isend_that_is_complete_at_once_has_no_id) {
  SimRanks r;
  r.connect(0, 1);
  MPID_ChannelId id = 77;
  ck_assert_int_eq(MPID_ISendChannel("abc", 3, 1, &id), 0);
  ck_assert(id == 0);
  ck_assert_int_eq(MPID_TSendChannel(0), 1);
  ck_assert_int_eq(MPID_WSendChannel(0), 0);
}
END_TEST

START_TEST(send_channel_waits_only_when_copies_reach_their_bound) {
  SimRanks r(2, narrow(), [](EngineOptions& o) { o.send_copy_max = 10'000; });
  r.connect(0, 1);
  bool slept = false;
  r.world.asleep = [&](int) { slept = true; };
  const Bytes message = bytes_of(6'000, 1);
  ck_assert_int_eq(MPID_SendChannel(message.data(), message.size(), 1), 0);
  ck_assert(!slept);
  Bytes got[2] = {Bytes(6'000), Bytes(6'000)};
  MPID_ChannelId ids[2] = {};
  r.as(1);
  for (int i = 0; i < 2; ++i) MPID_IRecvFromChannel(got[i].data(), 6'000, 0, &ids[i]);
  r.as(0);
  others_run(r, 0);
  Bytes second = bytes_of(6'000, 2);
  ck_assert_int_eq(MPID_SendChannel(second.data(), second.size(), 1), 0);
  std::fill(second.begin(), second.end(), 0);
  r.turn(200);
  r.as(1);
  for (int i = 0; i < 2; ++i) {
    ck_assert_int_eq(MPID_WRecvFromChannel(ids[i]), 6'000);
    ck_assert(got[i] == bytes_of(6'000, i + 1));
  }
}
END_TEST

START_TEST(waiting_for_the_channel_keeps_control_packets_in_order) {
  SimRanks r(2, narrow(), [](EngineOptions& o) { o.frame_bytes = 500; });
  r.connect(0, 1);
  Bytes message = bytes_of(30'000, 1);
  MPID_ChannelId id = 0;
  // Those of any length; the longest ones are taken either way below.
  const auto packet_of = [](int i) {
    return bytes_of(i == 7 || i == 8 ? MPID_CONTROL_BYTES_MAX : static_cast<std::size_t>(i + 1), i);
  };
  const auto say = [&](int i) {
    const Bytes packet = packet_of(i);
    ck_assert_int_eq(MPID_SendControl(packet.data(), static_cast<int>(packet.size()), 1), 0);
  };
  MPID_ISendChannel(message.data(), message.size(), 1, &id);
  for (int i = 0; i < 40; ++i) say(i);  // they overtake it, or stand between its frames
  r.as(1);
  others_run(r, 1);
  Bytes got(30'000);
  ck_assert_int_eq(MPID_RecvFromChannel(got.data(), got.size(), 0), 30'000);
  ck_assert(got == message);
  r.as(0);
  for (int i = 40; i < 60; ++i) say(i);
  r.turn(2);  // these are read already when the kept ones are taken
  r.as(1);
  for (int i = 0; i < 60; ++i) {
    const Bytes wanted = packet_of(i);
    Bytes room(MPID_CONTROL_BYTES_MAX);
    const void* packet = room.data();
    int length = 0, from = -1;
    if (i % 2 == 0) {
      length = take_control(r, 1, room.data(), MPID_CONTROL_BYTES_MAX, &from);
    } else {  // the same by a look at it
      ck_assert(r.until([] { return MPID_ControlMsgAvail() != 0; }));
      Hold hold(channel_gate());
      length = MPID_ViewAnyControl(&packet, room.data(), &from);
    }
    ck_assert_uint_eq(static_cast<std::size_t>(length), wanted.size());
    ck_assert_int_eq(std::memcmp(packet, wanted.data(), wanted.size()), 0);
  }
  r.as(0);
  ck_assert_int_eq(MPID_WSendChannel(id), 0);
}
END_TEST

// ---- transfers ----

START_TEST(transfers_are_matched_by_id_whatever_their_order) {
  SimRanks r(2, narrow(5'000), [](EngineOptions& o) { o.frame_bytes = 700; });
  r.connect(0, 1);
  r.as(1);
  constexpr int kCount = 10;
  Bytes got[kCount];
  MPID_TransferId ids[kCount];
  MPID_ChannelId rids[kCount];
  std::set<MPID_TransferId> distinct;
  for (int i = 0; i < kCount; ++i) {
    got[i].resize(static_cast<std::size_t>(i) * 1'000);
    ck_assert_int_eq(MPID_CreateRecvTransfer(got[i].data(), got[i].size(), 0, &ids[i]), 0);
    ck_assert(ids[i] != 0);
    distinct.insert(ids[i]);
    ck_assert_int_eq(MPID_StartNBRecvTransfer(got[i].data(), got[i].size(), 0, ids[i], &rids[i]),
                     0);
  }
  ck_assert_uint_eq(distinct.size(), kCount);
  r.as(0);
  Bytes data[kCount];
  MPID_ChannelId sids[kCount];
  for (int i = kCount - 1; i >= 0; --i) {
    data[i] = bytes_of(static_cast<std::size_t>(i) * 1'000, i);
    MPID_TransferId mine = 1;
    MPID_CreateSendTransfer(data[i].data(), data[i].size(), 1, &mine);
    ck_assert(mine == 0);
    ck_assert_int_eq(MPID_StartNBSendTransfer(data[i].data(), data[i].size(), 1, ids[i], &sids[i]),
                     0);
  }
  r.until([&] { return MPID_ChannelQueued() == 0; });
  for (int i = 0; i < kCount; ++i)
    if (sids[i] != 0) ck_assert_int_eq(MPID_TestNBSendTransfer(sids[i]), 1);
  r.turn(20);
  r.as(1);
  for (int i = 0; i < kCount; ++i) {
    ck_assert_int_eq(MPID_TestNBRecvTransfer(rids[i]), 1);
    ck_assert_int_eq(MPID_EndNBRecvTransfer(ids[i], rids[i]), i * 1'000);
    ck_assert(got[i] == bytes_of(static_cast<std::size_t>(i) * 1'000, i));
    ck_assert_int_eq(MPID_TestNBRecvTransfer(rids[i]), -EINVAL);
  }
}
END_TEST

START_TEST(blocking_transfers_wait_for_each_other) {
  SimRanks r(2, narrow());
  r.connect(0, 1);
  Bytes got(9'000);
  MPID_TransferId id = 0;
  r.as(1);
  MPID_CreateRecvTransfer(got.data(), got.size(), 0, &id);
  MPID_ChannelId rid = 0;
  ck_assert_int_eq(MPID_StartRecvTransfer(got.data(), got.size(), 0, id, &rid), 0);
  ck_assert_int_eq(MPID_TestRecvTransfer(rid), 0);
  r.as(0);
  others_run(r, 0);
  const Bytes data = bytes_of(9'000, 1);
  ck_assert_int_eq(MPID_SendTransfer(data.data(), data.size(), 1, id), 0);
  r.as(1);
  others_run(r, 1);
  ck_assert_int_eq(MPID_EndRecvTransfer(got.data(), got.size(), 0, id, rid), 9'000);
  ck_assert(got == data);

  MPID_CreateRecvTransfer(got.data(), got.size(), 0, &id);
  r.as(0);
  MPID_ChannelId sid = 0;
  const Bytes more = bytes_of(9'000, 2);
  ck_assert_int_eq(MPID_StartSendTransfer(more.data(), more.size(), 1, id, &sid), 0);
  ck_assert_int_eq(MPID_TestSendTransfer(sid), 0);
  r.as(1);
  ck_assert_int_eq(MPID_RecvTransfer(got.data(), got.size(), 0, id), 9'000);
  ck_assert(got == more);
  r.as(0);
  others_run(r, 0);
  ck_assert_int_eq(MPID_EndSendTransfer(more.data(), more.size(), 1, id, sid), 0);
}
END_TEST

START_TEST(data_for_a_transfer_that_is_not_started_waits_for_its_buffer) {
  SimRanks r;
  r.connect(0, 1);
  r.as(1);
  MPID_TransferId id = 0;
  MPID_CreateRecvTransfer(nullptr, 0, 0, &id);
  r.as(0);
  const Bytes data = bytes_of(2'000, 1);
  MPID_ChannelId sid = 0;
  MPID_StartNBSendTransfer(data.data(), data.size(), 1, id, &sid);
  r.turn(20);
  r.as(1);
  Bytes got(2'000);
  MPID_ChannelId rid = 0;
  ck_assert_int_eq(MPID_StartNBRecvTransfer(got.data(), got.size(), 0, id, &rid), 0);
  r.turn(20);
  ck_assert_int_eq(MPID_EndNBRecvTransfer(id, rid), 2'000);
  ck_assert(got == data);
}
END_TEST

START_TEST(transfer_longer_than_the_buffer_gives_the_first_bytes) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) { o.frame_bytes = 64; });
  r.connect(0, 1);
  r.as(1);
  Bytes got(101, 0xee);
  MPID_TransferId id = 0;
  MPID_ChannelId rid = 0;
  MPID_CreateRecvTransfer(got.data(), 100, 0, &id);
  MPID_StartNBRecvTransfer(got.data(), 100, 0, id, &rid);
  r.as(0);
  const Bytes data = bytes_of(5'000, 1);
  MPID_ChannelId sid = 0;
  MPID_StartNBSendTransfer(data.data(), data.size(), 1, id, &sid);
  r.turn(50);
  r.as(1);
  ck_assert_int_eq(MPID_EndNBRecvTransfer(id, rid), 5'000);
  ck_assert_int_eq(std::memcmp(got.data(), data.data(), 100), 0);
  ck_assert_uint_eq(got[100], 0xee);
}
END_TEST

START_TEST(cancelled_transfer_is_gone_and_late_data_is_thrown_away) {
  SimRanks r(2, narrow(), [](EngineOptions& o) { o.frame_bytes = 3'000; });
  r.connect(0, 1);
  for (int when = 0; when < 3; ++when) {  // before any data, in the middle, not even started
    r.as(1);
    Bytes got(10'000, 0xee);
    MPID_TransferId id = 0;
    MPID_ChannelId rid = 0;
    MPID_CreateRecvTransfer(got.data(), got.size(), 0, &id);
    if (when < 2) MPID_StartNBRecvTransfer(got.data(), got.size(), 0, id, &rid);
    if (when == 0) MPID_CancelRecvTransfer(id, rid);
    r.as(0);
    const Bytes data = bytes_of(10'000, 1);
    MPID_ChannelId sid = 0;
    MPID_StartNBSendTransfer(data.data(), data.size(), 1, id, &sid);
    r.turn(4);
    r.as(1);
    if (when != 0) MPID_CancelRecvTransfer(id, rid);
    const Bytes seen = got;
    if (when == 1) ck_assert_uint_eq(got[0], data[0]);  // it had begun
    ck_assert_int_eq(MPID_TestNBRecvTransfer(id), -EINVAL);
    ck_assert_int_eq(MPID_StartNBRecvTransfer(got.data(), got.size(), 0, id, &rid), -EINVAL);
    r.as(0);
    int tested = sid == 0;
    ck_assert(r.until([&] { return tested != 0 || (tested = MPID_TSendChannel(sid)) != 0; }));
    ck_assert_int_eq(tested, 1);
    MPID_SendControl("after", 5, 1);
    char after[5];
    int from = -1;
    ck_assert_int_eq(take_control(r, 1, after, 5, &from), 5);
    ck_assert(got == seen);
  }
}
END_TEST

START_TEST(stale_and_forged_ids_are_harmless) {
  SimRanks r(3);
  r.connect(0, 1);
  r.connect(2, 1);
  r.as(1);
  Bytes got(100, 0xee);
  MPID_TransferId id = 0;
  MPID_ChannelId rid = 0;
  MPID_CreateRecvTransfer(got.data(), 100, 0, &id);
  MPID_StartNBRecvTransfer(got.data(), 100, 0, id, &rid);
  for (const MPID_ChannelId bad : {MPID_ChannelId{1}, id + 1, id + (MPID_ChannelId{1} << 32),
                                   id + (MPID_ChannelId{2} << 32), ~MPID_ChannelId{0}}) {
    ck_assert_int_eq(MPID_RecvStatus(bad), -EINVAL);
    ck_assert_int_eq(MPID_TSendChannel(bad), -EINVAL);
    ck_assert_int_eq(MPID_WRecvFromChannel(bad), -EINVAL);
    Result result;
    MPID_OnComplete(bad, on_complete, &result);
    ck_assert_int_eq(result.calls, 1);
    ck_assert_int_eq(result.value, -EINVAL);
    MPID_CancelRecvTransfer(bad, bad);
    r.as(0);
    MPID_ChannelId sid = 0;
    MPID_StartNBSendTransfer("evil", 4, 1, bad, &sid);
    r.turn(10);
    r.as(1);
    ck_assert_int_eq(MPID_ChannelPeerError(0), 0);
  }
  // Somebody else's transfer is a broken protocol, not a way into the buffer.
  r.as(2);
  MPID_ChannelId sid = 0;
  MPID_StartNBSendTransfer("evil", 4, 1, id, &sid);
  r.turn(10);
  r.as(1);
  ck_assert_int_eq(MPID_ChannelPeerError(2), EPROTO);
  ck_assert_int_eq(MPID_RecvStatus(rid), 0);
  for (const std::uint8_t b : got) ck_assert_uint_eq(b, 0xee);
}
END_TEST

START_TEST(second_message_for_a_finished_transfer_does_not_touch_the_buffer) {
  SimRanks r;
  r.connect(0, 1);
  r.as(1);
  Bytes got(4);
  MPID_TransferId id = 0;
  MPID_ChannelId rid = 0;
  MPID_CreateRecvTransfer(got.data(), 4, 0, &id);
  MPID_StartNBRecvTransfer(got.data(), 4, 0, id, &rid);
  r.as(0);
  MPID_ChannelId sid = 0;
  MPID_StartNBSendTransfer("good", 4, 1, id, &sid);
  MPID_StartNBSendTransfer("evil", 4, 1, id, &sid);
  r.turn(20);
  r.as(1);
  ck_assert_int_eq(MPID_EndNBRecvTransfer(id, rid), 4);
  ck_assert_int_eq(std::memcmp(got.data(), "good", 4), 0);
}
END_TEST

START_TEST(frame_that_began_before_its_transfer_was_created_does_not_complete_it) {
  constexpr std::size_t kBytes = 20'000;
  for (const int partner :
       {1, 2}) {  // whose transfer it is: that of who guessed its id, and another peer's
    SimRanks r(3);
    r.connect(1, 0);
    r.connect(2, 0);
    std::vector<std::uint8_t> into(kBytes, 0);
    const auto guess = bytes_of(kBytes, 4), data = bytes_of(kBytes, 5);
    MPID_TransferId id = 0;
    MPID_ChannelId rid = 0, sid = 0;
    r.as(0);
    ck_assert_int_eq(MPID_CreateRecvTransfer(into.data(), kBytes, partner, &id), 0);
    MPID_CancelRecvTransfer(id, 0);
    const MPID_TransferId guessed = id + (std::uint64_t{2} << 32);
    std::uint64_t allowed = 1'000;
    r.world.write_limit = [&](int host, std::uint64_t could) -> std::uint64_t {
      if (host != 1) return could;
      const std::uint64_t now = std::min(could, allowed);
      allowed -= now;
      return now;
    };
    r.as(1);
    ck_assert_int_eq(MPID_StartNBSendTransfer(guess.data(), kBytes, 0, guessed, &sid), 0);
    r.turn(10);
    r.as(0);
    ck_assert_int_eq(MPID_CreateRecvTransfer(into.data(), kBytes, partner, &id), 0);
    ck_assert_uint_eq(id, guessed);
    ck_assert_int_eq(MPID_StartNBRecvTransfer(into.data(), kBytes, partner, id, &rid), 0);
    r.world.write_limit = nullptr;
    r.turn(50);
    r.as(0);
    ck_assert_int_eq(MPID_TestNBRecvTransfer(rid), 0);
    ck_assert_int_eq(MPID_ChannelPeerError(partner), 0);
    r.as(partner);
    ck_assert_int_eq(MPID_StartNBSendTransfer(data.data(), kBytes, 0, id, &sid), 0);
    r.turn(50);
    r.as(0);
    ck_assert_int_eq(static_cast<int>(MPID_EndNBRecvTransfer(id, rid)), kBytes);
    ck_assert(into == data);
  }
}
END_TEST

START_TEST(control_channel_and_transfer_ids_do_not_collide) {
  SimRanks r;
  r.connect(0, 1);
  r.as(1);
  Bytes transfer(8), channel(8);
  MPID_TransferId id = 0;
  MPID_ChannelId rid = 0, cid = 0;
  MPID_CreateRecvTransfer(transfer.data(), 8, 0, &id);
  MPID_StartNBRecvTransfer(transfer.data(), 8, 0, id, &rid);
  MPID_IRecvFromChannel(channel.data(), 8, 0, &cid);
  ck_assert(cid != rid);
  r.as(0);
  MPID_ChannelId sid = 0;
  MPID_StartNBSendTransfer("transfer", 8, 1, id, &sid);
  MPID_ISendChannel("channel!", 8, 1, &sid);
  // A transfer whose id is the channel receive's is refused: it is no transfer.
  r.turn(20);
  r.as(1);
  ck_assert_int_eq(MPID_WRecvFromChannel(cid), 8);
  ck_assert_int_eq(MPID_EndNBRecvTransfer(id, rid), 8);
  ck_assert_int_eq(std::memcmp(transfer.data(), "transfer", 8), 0);
  ck_assert_int_eq(std::memcmp(channel.data(), "channel!", 8), 0);
  MPID_IRecvFromChannel(channel.data(), 8, 0, &cid);
  r.as(0);
  MPID_StartNBSendTransfer("evil", 4, 1, cid, &sid);
  r.turn(20);
  r.as(1);
  ck_assert_int_eq(MPID_ChannelPeerError(0), EPROTO);
}
END_TEST

// ---- loss ----

START_TEST(lost_peer_completes_every_operation_on_it_with_an_error) {
  SimRanks r(3, narrow());
  r.connect(0, 1);
  r.connect(0, 2);
  struct Lost {
    int calls = 0, peer = -1, error = 0;
    const Result* before = nullptr;
    bool in_order = false;
  } lost;
  Bytes data(20'000), a(100), b(100), c(100), other(4);
  MPID_ChannelId send1 = 0, send2 = 0, recv1 = 0, recv2 = 0, nb = 0, other_id = 0;
  MPID_TransferId id = 0, idle = 0;
  Result send_result, recv_result, transfer_result;
  lost.before = &recv_result;
  MPID_ChannelSetLost(
      [](void* arg, int peer, int error) {
        auto* l = static_cast<Lost*>(arg);
        ++l->calls;
        l->peer = peer;
        l->error = error;
        l->in_order = l->before->calls == 1;
      },
      &lost);
  MPID_ISendChannel(data.data(), data.size(), 1, &send1);
  MPID_ISendChannel(data.data(), data.size(), 1, &send2);
  MPID_OnComplete(send2, on_complete, &send_result);
  MPID_IRecvFromChannel(a.data(), 100, 1, &recv1);
  MPID_IRecvFromChannel(b.data(), 100, 1, &recv2);
  MPID_OnComplete(recv2, on_complete, &recv_result);
  MPID_CreateRecvTransfer(c.data(), 100, 1, &id);
  MPID_StartNBRecvTransfer(c.data(), 100, 1, id, &nb);
  MPID_OnComplete(nb, on_complete, &transfer_result);
  MPID_CreateRecvTransfer(c.data(), 100, 1, &idle);
  MPID_IRecvFromChannel(other.data(), 4, 2, &other_id);
  r.lose_host(1);
  ck_assert(r.until([&] { return lost.calls == 1; }));
  ck_assert_int_eq(lost.peer, 1);
  ck_assert_int_gt(lost.error, 0);
  ck_assert(lost.in_order);
  ck_assert_int_eq(MPID_ChannelPeerError(1), lost.error);
  ck_assert_int_eq(send_result.calls, 1);
  ck_assert_int_eq(send_result.value, -lost.error);
  ck_assert_int_eq(recv_result.value, -lost.error);
  ck_assert_int_eq(transfer_result.value, -lost.error);
  ck_assert_int_eq(MPID_TSendChannel(send1), -lost.error);
  ck_assert_int_eq(MPID_TSendChannel(send1), -EINVAL);
  ck_assert_int_eq(MPID_RecvStatus(recv1), -lost.error);
  ck_assert_int_eq(MPID_EndNBRecvTransfer(idle, idle), -lost.error);
  // Nothing new is started with it, and nothing waits.
  MPID_ChannelId none = 5;
  ck_assert_int_lt(MPID_SendControl("x", 1, 1), 0);
  ck_assert_int_lt(MPID_SendChannel("x", 1, 1), 0);
  ck_assert_int_lt(MPID_ISendChannel("x", 1, 1, &none), 0);
  ck_assert_int_lt(MPID_IRecvFromChannel(a.data(), 1, 1, &none), 0);
  ck_assert_int_lt(MPID_CreateRecvTransfer(a.data(), 1, 1, &id), 0);
  ck_assert_int_lt(MPID_RecvFromChannel(a.data(), 1, 1), 0);
  ck_assert_int_lt(MPID_SendTransfer("x", 1, 1, 5), 0);
  // The others are not concerned.
  ck_assert_int_eq(MPID_RecvStatus(other_id), 0);
  r.as(2);
  MPID_SendChannel("fine", 4, 0);
  r.turn(20);
  r.as(0);
  ck_assert_int_eq(MPID_WRecvFromChannel(other_id), 4);
  ck_assert_uint_eq(r.channel(0).ops.used_count(), 0);
}
END_TEST

START_TEST(receive_that_was_complete_before_the_loss_stays_good) {
  SimRanks r;
  r.connect(0, 1);
  r.as(1);
  Bytes got(4);
  MPID_ChannelId id = 0;
  MPID_IRecvFromChannel(got.data(), 4, 0, &id);
  r.as(0);
  MPID_SendChannel("good", 4, 1);
  r.turn(20);
  r.as(1);
  r.lose_host(0);
  r.turn(20);
  ck_assert_int_ne(MPID_ChannelPeerError(0), 0);
  ck_assert_int_eq(MPID_RecvStatus(id), 1);
  ck_assert_int_eq(MPID_WRecvFromChannel(id), 4);
  ck_assert_int_eq(std::memcmp(got.data(), "good", 4), 0);
}
END_TEST

START_TEST(waiting_for_a_peer_that_dies_ends_with_an_error) {
  SimRanks r;
  r.connect(0, 1);
  int naps = 0;
  r.world.asleep = [&](int) {
    if (++naps == 5) r.lose_host(1);
    r.as(0);
  };
  char got[4];
  r.as(0);
  ck_assert_int_lt(MPID_RecvFromChannel(got, 4, 1), 0);
  ck_assert_int_ge(naps, 5);
}
END_TEST

// ---- extensions ----

START_TEST(on_complete_of_a_finished_operation_is_called_at_once_and_frees_it) {
  SimRanks r;
  r.connect(0, 1);
  r.as(1);
  char got[4];
  MPID_ChannelId id = 0;
  MPID_IRecvFromChannel(got, 4, 0, &id);
  r.as(0);
  MPID_SendChannel("abc", 3, 1);
  r.turn(20);
  r.as(1);
  Result result;
  MPID_OnComplete(id, on_complete, &result);
  ck_assert_int_eq(result.calls, 1);
  ck_assert_int_eq(result.value, 3);
  ck_assert_int_eq(MPID_RecvStatus(id), -EINVAL);
  ck_assert_uint_eq(r.channel(1).ops.used_count(), 0);
}
END_TEST

START_TEST(on_complete_may_start_new_operations) {
  SimRanks r(2, narrow());
  r.connect(0, 1);
  struct Chain {
    Bytes buffer = Bytes(3'000);
    int got = 0;
    static void next(void* arg, std::int64_t result) {
      auto* c = static_cast<Chain*>(arg);
      if (result == 3'000) ++c->got;
      if (c->got == 10) return;
      MPID_ChannelId id = 0;
      if (MPID_IRecvFromChannel(c->buffer.data(), 3'000, 0, &id) == 0) MPID_OnComplete(id, next, c);
    }
  } chain;
  r.as(1);
  Chain::next(&chain, 0);
  r.as(0);
  const Bytes data = bytes_of(3'000, 1);
  MPID_ChannelId ids[10];
  for (auto& id : ids) MPID_ISendChannel(data.data(), data.size(), 1, &id);
  // Each engine's callbacks work on its own channel: switch as the poll does.
  for (int i = 0; i < 2'000 && chain.got < 10; ++i)
    for (int rank = 0; rank < 2; ++rank) {
      r.as(rank);
      MPID_ControlMsgAvail();
      r.world.skip(10'000);
    }
  ck_assert_int_eq(chain.got, 10);
}
END_TEST

START_TEST(between_hold_and_release_everything_leaves_in_one_system_call) {
  SimRanks r;
  r.connect(0, 1);
  const std::uint64_t before = channel_counters().writes;
  MPID_ChannelHold(1);
  MPID_ChannelHold(1);
  MPID_SendControl("envelope", 8, 1);
  MPID_ChannelId id = 0;
  MPID_ISendChannel("data", 4, 1, &id);
  MPID_ChannelRelease(1);
  ck_assert_uint_eq(channel_counters().writes, before);
  MPID_ChannelRelease(1);
  ck_assert_uint_eq(channel_counters().writes, before + 1);
  ck_assert_uint_eq(MPID_ChannelQueued(), 0);
  ck_assert_int_eq(MPID_TSendChannel(id), 1);
}
END_TEST

START_TEST(envelope_may_post_the_buffer_for_the_data_right_behind_it) {
  SimRanks r;
  r.connect(0, 1);
  static Bytes got;
  static Result result;
  got.assign(8'000, 0);
  result = {};
  r.as(1);
  MPID_ChannelSetProgress(
      [](void*) {
        while (MPID_ControlMsgAvail()) {
          char packet[16];
          int from = -1;
          MPID_RecvAnyControl(packet, sizeof packet, &from);
          MPID_ChannelId id = 0;
          MPID_IRecvFromChannel(got.data(), got.size(), from, &id);
          MPID_OnComplete(id, on_complete, &result);
        }
      },
      nullptr);
  r.as(0);
  const Bytes data = bytes_of(8'000, 1);
  MPID_ChannelHold(1);
  MPID_SendControl("envelope", 8, 1);
  MPID_ChannelId id = 0;
  MPID_ISendChannel(data.data(), data.size(), 1, &id);
  MPID_ChannelRelease(1);
  r.as(1);
  for (int i = 0; i < 20 && result.calls == 0; ++i) {
    Hold hold(channel_gate());
    r.channel(1).progress(nullptr);
    r.world.skip(1'000'000);
  }
  ck_assert_int_eq(result.calls, 1);
  ck_assert(got == data);
  ck_assert_uint_eq(channel_counters().parked, 0);  // the buffer was there in time
}
END_TEST

START_TEST(waiting_calls_let_the_progress_function_act) {
  SimRanks r;
  r.connect(0, 1);
  static int seen;
  seen = 0;
  r.as(0);
  MPID_ChannelSetProgress(
      [](void*) {
        while (MPID_ControlMsgAvail()) {
          char packet[16];
          int from = -1;
          MPID_RecvAnyControl(packet, sizeof packet, &from);
          ++seen;
        }
      },
      nullptr);
  r.as(1);
  MPID_SendControl("a", 1, 0);
  MPID_SendControl("b", 1, 0);
  MPID_SendChannel("data", 4, 0);
  r.as(0);
  others_run(r, 0);
  char got[4];
  ck_assert_int_eq(MPID_RecvFromChannel(got, 4, 1), 4);
  ck_assert_int_eq(seen, 2);
}
END_TEST

START_TEST(small_extensions_do_what_they_say) {
  SimRanks r;
  r.connect(0, 1);
  ck_assert_int_eq(MPID_ChannelInHandler(), 0);
  r.engine(0).set_mode(ProgressMode::signal_handler(ProgressMode::kNoBudget));
  ck_assert_int_eq(MPID_ChannelInHandler(), 1);
  r.engine(0).set_mode({});
  ck_assert_int_eq(MPID_ChannelRefill(), 0);
  ck_assert_int_eq(MPID_ChannelHeadroom(), 1);
  ck_assert_int_eq(MPID_ChannelPeerError(1), 0);
  char text[200];
  ck_assert_str_eq(MPID_ChannelDescribe(1, text, sizeof text), text);
  ck_assert_ptr_nonnull(std::strstr(text, "rank 1"));
  ck_assert_ptr_nonnull(std::strstr(text, "simulated"));
  ck_assert_ptr_nonnull(std::strstr(text, "10.0.0.2"));
  static int outstanding;
  outstanding = -1;
  r.channel(0).on_outstanding = [](bool on) { outstanding = on; };
  ck_assert_int_eq(MPID_ChannelSetOutstanding(0), 0);
  ck_assert_int_eq(outstanding, 0);
  outstanding = -1;
  ck_assert_int_eq(MPID_ChannelSetOutstanding(0), 0);
  ck_assert_int_eq(outstanding, -1);  // no news
  ck_assert_int_eq(MPID_ChannelSetOutstanding(1), 1);
  ck_assert_int_eq(outstanding, 1);
  {
    r.world.write_limit = [](int, std::uint64_t) { return std::uint64_t{0}; };
    const Bytes data(100, 1);
    MPID_ChannelId id = 0;
    ck_assert_int_eq(MPID_ISendChannel(data.data(), data.size(), 1, &id), 0);
    ck_assert_int_eq(MPID_ChannelSetOutstanding(0), 1);  // what is queued is outstanding
    ck_assert_int_eq(outstanding, 1);
    r.world.write_limit = nullptr;
    ck_assert_int_eq(MPID_WSendChannel(id), 0);
    ck_assert_int_eq(MPID_ChannelSetOutstanding(0), 0);
    ck_assert_int_eq(outstanding, 0);
  }
  MPID_ChannelPrefer(1);
  const std::int64_t before = r.world.now();
  bool open = false;
  r.world.asleep = [&](int) { open = !channel_gate().held(); };
  MPID_ChannelWait(5'000'000);
  ck_assert(open);  // the gate is open while it sleeps
  ck_assert_int_ge(r.world.now() - before, 5'000'000);
  ck_assert(&channel_gate() == &r.engine(0).gate());
  ck_assert(&channel_counters() == &r.engine(0).counters());
}
END_TEST

START_TEST(in_the_handler_an_empty_pool_is_an_answer_and_not_an_allocation) {
  SimRanks r;
  r.connect(0, 1);
  r.engine(0).gate().enter();
  r.engine(0).set_mode(ProgressMode::signal_handler(ProgressMode::kNoBudget));
  MPID_ChannelId id = 0;
  char byte;
  int rc = 0, made = 0;
  while (rc == 0 && made < 1'000'000) {
    const bool headroom = MPID_ChannelHeadroom() != 0;
    rc = MPID_IRecvFromChannel(&byte, 1, 1, &id);
    if (rc == 0)
      ++made;
    else if (headroom)
      made = -1'000'000;
  }
  const int transfer = MPID_CreateRecvTransfer(&byte, 1, 1, &id);
  const int headroom = MPID_ChannelHeadroom();
  r.engine(0).set_mode({});
  r.engine(0).gate().leave();
  ck_assert_int_eq(rc, -ENOBUFS);
  ck_assert_int_gt(made, 0);
  ck_assert_int_eq(transfer, -ENOBUFS);
  ck_assert_int_eq(headroom, 0);
  ck_assert_int_eq(MPID_ChannelRefill(), 0);
  ck_assert_int_eq(MPID_ChannelHeadroom(), 1);
}
END_TEST

// ---- two processes, real sockets ----

namespace {

struct RealRank {
  PosixNet net;
  PeerAddress peers[2] = {};
  Engine* engine = nullptr;
  ChannelState* channel = nullptr;
  int start(int rank, const sockaddr_storage (&addresses)[2], int listener) {
    if (net.open() != 0 || !hello_prepare()) return -1;
    EngineOptions o;
    o.rank = rank;
    o.size = 2;
    for (int i = 0; i < 2; ++i) {
      peers[i].address = addresses[i];
      std::strcpy(peers[i].host, "localhost");
    }
    o.peers = peers;
    o.listeners[0] = listener;
    o.connect_timeout_ns = 10'000'000'000;
    engine = new Engine(net, o);
    if (engine->start() != 0) return -1;
    engine->set_outstanding(true);
    channel = new ChannelState(*engine);
    channel_bind(channel);
    return 0;
  }
};

int open_listener_on_loopback(sockaddr_storage& address) {
  PosixNet net;
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::memcpy(&address, &in, sizeof in);
  const int fd = net.open_stream(AF_INET);
  if (fd < 0 || net.bind_and_listen(fd, address) != 0 || net.local_address(fd, address) != 0)
    return -1;
  return fd;
}

// One side of the exchange; 0 when all was right, otherwise the line.
int exchange(int rank) {
  const int other = 1 - rank;
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = static_cast<std::size_t>(round) * 977 % 60'000;
    const Bytes mine = bytes_of(n, round * 2 + rank), theirs = bytes_of(n, round * 2 + other);
    if (MPID_SendControl(&round, sizeof round, other) != 0) return __LINE__;
    if (MPID_SendChannel(mine.data(), mine.size(), other) != 0) return __LINE__;
    int got_round = -1, from = -1;
    if (MPID_RecvAnyControl(&got_round, sizeof got_round, &from) != sizeof got_round ||
        got_round != round || from != other)
      return __LINE__;
    Bytes got(n);
    if (MPID_RecvFromChannel(got.data(), got.size(), other) != static_cast<std::int64_t>(n) ||
        got != theirs)
      return __LINE__;
  }
  // Transfers both ways at once, longer than the kernel's buffers.
  Bytes got(8u << 20);
  MPID_TransferId id = 0, theirs = 0;
  if (MPID_CreateRecvTransfer(got.data(), got.size(), other, &id) != 0) return __LINE__;
  if (MPID_SendControl(&id, sizeof id, other) != 0) return __LINE__;
  int from = -1;
  if (MPID_RecvAnyControl(&theirs, sizeof theirs, &from) != sizeof theirs) return __LINE__;
  MPID_ChannelId rid = 0;
  if (MPID_StartNBRecvTransfer(got.data(), got.size(), other, id, &rid) != 0) return __LINE__;
  const Bytes data = bytes_of(8u << 20, rank);
  if (MPID_SendTransfer(data.data(), data.size(), other, theirs) != 0) return __LINE__;
  if (MPID_EndNBRecvTransfer(id, rid) != static_cast<std::int64_t>(got.size()) ||
      got != bytes_of(8u << 20, other))
    return __LINE__;
  if (MPID_SendControl("bye", 3, other) != 0) return __LINE__;
  char bye[3];
  if (MPID_RecvAnyControl(bye, 3, &from) != 3) return __LINE__;
  return 0;
}

}  // namespace

START_TEST(two_processes_exchange_over_real_sockets) {
  sockaddr_storage addresses[2];
  const int listeners[2] = {open_listener_on_loopback(addresses[0]),
                            open_listener_on_loopback(addresses[1])};
  ck_assert_int_ge(listeners[0], 0);
  ck_assert_int_ge(listeners[1], 0);
  const pid_t child = fork();
  const int rank = child == 0 ? 1 : 0;
  close(listeners[1 - rank]);
  RealRank self;
  int line = self.start(rank, addresses, listeners[rank]) == 0 ? exchange(rank) : __LINE__;
  if (child == 0) _exit(line == 0 ? 0 : 1);
  int status = -1;
  ck_assert_int_eq(line, 0);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  // Now it is gone: the next receive says so.
  char byte;
  ck_assert_int_lt(MPID_RecvFromChannel(&byte, 1, 1), 0);
  delete self.engine;
  channel_bind(nullptr);
  delete self.channel;
}
END_TEST

int main() { return run_tests("channel"); }
