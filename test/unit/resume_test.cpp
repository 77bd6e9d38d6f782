// Connections that break and are made again, between engines on the fake network: at every byte, on
// one side only, with a receiver that does not take what has come, and when the stream cannot go
// on.
#include <cerrno>
#include <cstring>
#include <vector>

#include "mplite/engine/kept.h"
#include "mplite/net/frame.h"
#include "mplite/net/hello.h"
#include "sim_ranks.h"

#include "run_tests.h"

using namespace mplite;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::function<void(EngineOptions&)> resuming(std::uint8_t protection = 0) {
  return [protection](EngineOptions& o) {
    o.resume = true;
    o.connect_timeout_ns = 30'000'000'000;
    o.protection = protection;
    o.frame_bytes = 600;
  };
}

// Numbered control packets, a channel message and a transfer in each direction.
struct Traffic {
  static constexpr std::size_t kChannel = 300, kTransfer = 1'500;
  static constexpr std::uint32_t kPackets = 6;
  SimRanks& r;
  Bytes out[2][2], in[2][2];
  MPID_ChannelId channel_in[2] = {}, channel_out[2] = {};
  MPID_TransferId transfer[2] = {};
  MPID_ChannelId transfer_in[2] = {}, transfer_out[2] = {};
  std::uint32_t packets[2] = {};
  std::size_t packet_bytes;

  Traffic(SimRanks& ranks, std::size_t bytes_of_packet) : r(ranks), packet_bytes(bytes_of_packet) {
    for (int to = 0; to < 2; ++to) {
      r.as(to);
      in[to][0].resize(kChannel);
      in[to][1].resize(kTransfer);
      MPID_IRecvFromChannel(in[to][0].data(), kChannel, 1 - to, &channel_in[to]);
      ck_assert_int_eq(MPID_CreateRecvTransfer(in[to][1].data(), kTransfer, 1 - to, &transfer[to]),
                       0);
      ck_assert_int_eq(MPID_StartNBRecvTransfer(in[to][1].data(), kTransfer, 1 - to, transfer[to],
                                                &transfer_in[to]),
                       0);
    }
  }
  void send() {
    for (int from = 0; from < 2; ++from) {
      r.as(from);
      out[from][0] = bytes_of(kChannel, from);
      out[from][1] = bytes_of(kTransfer, 7 + from);
      packet(from, 0);
      MPID_ISendChannel(out[from][0].data(), kChannel, 1 - from, &channel_out[from]);
      packet(from, 1);
      MPID_StartNBSendTransfer(out[from][1].data(), kTransfer, 1 - from, transfer[1 - from],
                               &transfer_out[from]);
      for (std::uint32_t i = 2; i < kPackets; ++i) packet(from, i);
    }
  }
  void packet(int from, std::uint32_t number) {
    Bytes data(packet_bytes, static_cast<std::uint8_t>(number));
    std::memcpy(data.data(), &number, sizeof number);
    ck_assert_int_eq(MPID_SendControl(data.data(), static_cast<int>(data.size()), 1 - from), 0);
  }
  void take_packets() {
    for (int to = 0; to < 2; ++to) {
      r.as(to);
      Hold hold(r.engine(to).gate());
      while (r.engine(to).control_ready()) {
        Bytes data(packet_bytes);
        int from = -1;
        const std::uint32_t length =
            r.engine(to).take_control(data.data(), static_cast<std::uint32_t>(packet_bytes), from);
        std::uint32_t number = 0;
        std::memcpy(&number, data.data(), sizeof number);
        ck_assert_uint_eq(length, packet_bytes);
        ck_assert_uint_eq(number, packets[to]);
        ++packets[to];
      }
    }
  }
  bool over() {
    take_packets();
    bool all = true;
    for (int i = 0; i < 2; ++i) {
      r.as(i);
      all = all && packets[i] == kPackets && test(channel_in[i]) && test(channel_out[i]) &&
            test(transfer_in[i]) && test(transfer_out[i]);
    }
    return all;
  }
  static bool test(MPID_ChannelId& id) {
    if (id == 0) return true;
    const int rc = MPID_TSendChannel(id);
    ck_assert_int_ge(rc, 0);
    if (rc == 1) id = 0;
    return rc == 1;
  }
  void check() {
    for (int to = 0; to < 2; ++to)
      for (int kind = 0; kind < 2; ++kind) ck_assert(in[to][kind] == out[1 - to][kind]);
  }
};

sim::Faults slow(std::int64_t ns) {
  sim::Faults f = SimRanks::no_faults();
  f.delay_max_ns = ns;
  return f;
}

// The whole traffic with one break after byte `at` of what `host` writes, when some of it is still
// on its way. Whether it came to that.
bool breaks_once(int host, std::uint64_t at, std::uint8_t protection, std::size_t packet_bytes) {
  SimRanks r(2, slow(at % 3 == 0 ? 0 : 200'000), resuming(protection), at + 1);
  r.connect(0, 1);
  Traffic traffic(r, packet_bytes);
  std::uint64_t written = 0;
  bool broken = false;
  r.world.write_limit = [&](int who, std::uint64_t could) {
    if (who != host || broken) return could;
    if (written == at) {
      broken = true;
      r.world.cut(0, 1);
      return could;
    }
    const std::uint64_t n = std::min(could, at - written);
    written += n;
    return n;
  };
  traffic.send();
  ck_assert_msg(r.until([&] { return traffic.over(); }, 4'000), "host %d, byte %llu: it hangs",
                host, static_cast<unsigned long long>(at));
  traffic.check();
  r.turn(50);  // who has got everything may not have noticed yet
  for (int i = 0; i < 2; ++i) {
    ck_assert_int_eq(r.engine(i).peer_error(1 - i), 0);
    ck_assert_uint_eq(r.engine(i).queued_sends(), 0);
    ck_assert_uint_eq(r.engine(i).counters().resume_gaps, 0);
    if (broken) ck_assert_uint_eq(r.engine(i).counters().connections_broken, 1);
  }
  return broken;
}

void break_at_bytes(std::uint8_t protection, std::uint64_t stride, std::size_t packet_bytes) {
  for (const int host : {0, 1}) {
    std::uint64_t at = 0;
    while (breaks_once(host, at, protection, packet_bytes)) at += stride;
    ck_assert_uint_gt(at, Traffic::kTransfer);
  }
}

void say_one(SimRanks& r, int from, std::uint8_t value) {
  r.as(from);
  ck_assert_int_eq(MPID_SendControl(&value, 1, 1 - from), 0);
}

bool hears(SimRanks& r, int at, std::uint8_t value) {
  std::uint8_t got = 0;
  int from = -1;
  r.as(at);
  Hold hold(r.engine(at).gate());
  return r.engine(at).control_ready() && r.engine(at).take_control(&got, 1, from) == 1 &&
         got == value;
}

bool comes(SimRanks& r, int at, std::uint8_t value) {
  bool heard = false;
  return r.until([&] { return heard = heard || hears(r, at, value); });
}

int break_of(SimRanks& r) {
  const std::vector<int> all = r.world.connected(0, 1);
  ck_assert_uint_ge(all.size(), 1);
  return all.front();
}

}  // namespace

START_TEST(stream_goes_on_at_every_byte) { break_at_bytes(0, 1, 40); }
END_TEST

START_TEST(stream_goes_on_where_packets_are_longer_than_a_block) { break_at_bytes(0, 397, 20'000); }
END_TEST

START_TEST(protected_stream_goes_on) {
  break_at_bytes(sim::offer_of(0), 37, 40);
  break_at_bytes(sim::offer_of(1), 41, 300);
}
END_TEST

// The other side hears of it by the call.
START_TEST(break_that_only_one_side_has_noticed) {
  for (const int who : {0, 1}) {
    SimRanks r(2, SimRanks::no_faults(), [who](EngineOptions& o) {
      resuming()(o);
      if (o.rank != who) return;
      o.stream.keepalive_idle_s = 2;
      o.stream.keepalive_interval_s = 1;
    });
    r.connect(0, 1);
    r.world.mute(0, 1);
    say_one(r, 0, 5);
    say_one(r, 1, 6);
    r.turn(20);
    ck_assert(!hears(r, 1, 5));
    bool first = false, second = false;
    ck_assert(r.until(
        [&] {
          r.world.pass(10'000'000);
          for (int i = 0; i < 2; ++i) {
            r.as(i);
            MPID_ChannelWait(1'000);
          }
          first = first || hears(r, 1, 5);
          second = second || hears(r, 0, 6);
          return first && second;
        },
        5'000));
    ck_assert_uint_eq(r.engine(0).counters().connections_broken, 1);
    ck_assert_uint_eq(r.engine(1).counters().connections_broken, 1);
  }
}
END_TEST

START_TEST(peer_that_does_not_resume_is_lost_and_nobody_hangs) {
  for (const int without : {0, 1}) {
    SimRanks r(2, SimRanks::no_faults(), [without](EngineOptions& o) {
      resuming()(o);
      o.resume = o.rank != without;
    });
    r.connect(0, 1);
    r.world.reset(break_of(r));
    ck_assert(r.until(
        [&] { return r.engine(0).peer_error(1) != 0 && r.engine(1).peer_error(0) != 0; }, 200));
  }
}
END_TEST

START_TEST(peer_that_has_ended_is_lost_at_once_for_the_first_reason) {
  SimRanks r(2, SimRanks::no_faults(), resuming());
  r.connect(0, 1);
  r.lose_host(1);
  ck_assert(r.until([&] { return r.engine(0).peer_error(1) != 0; }, 20));
  ck_assert_int_ne(r.engine(0).peer_error(1), ECONNREFUSED);
}
END_TEST

// It waits for the others, who may still need what it has sent. Either has the lower number.
START_TEST(peer_that_is_at_its_end_goes_on) {
  for (const int ends : {0, 1}) {
    SimRanks r(2, SimRanks::no_faults(), resuming());
    r.connect(0, 1);
    say_one(r, ends, 5);
    r.engine(ends).quiesce();
    r.world.cut(0, 1);
    say_one(r, 1 - ends, 6);
    bool first = false, second = false;
    ck_assert(r.until([&] {
      first = first || hears(r, 1 - ends, 5);
      second = second || hears(r, ends, 6);
      return first && second;
    }));
    for (int i = 0; i < 2; ++i) ck_assert_int_eq(r.engine(i).peer_error(1 - i), 0);
  }
}
END_TEST

START_TEST(both_call_and_one_connection_is_made) {
  SimRanks r(2, SimRanks::no_faults(), resuming());
  r.connect(0, 1);
  for (int i = 0; i < 20; ++i) {
    r.world.cut(0, 1);
    say_one(r, 0, static_cast<std::uint8_t>(i));
    say_one(r, 1, static_cast<std::uint8_t>(i));
    bool first = false, second = false;
    ck_assert(r.until([&] {
      first = first || hears(r, 1, static_cast<std::uint8_t>(i));
      second = second || hears(r, 0, static_cast<std::uint8_t>(i));
      return first && second;
    }));
    r.turn(20);
    ck_assert_uint_eq(r.world.connected(0, 1).size(), 1);
  }
  ck_assert_uint_eq(r.engine(0).counters().connections, 21);
}
END_TEST

// What has come for receives that are not posted yet waits, and the other direction does not.
START_TEST(data_that_nobody_takes_waits_in_memory) {
  for (const std::uint8_t protection : {std::uint8_t{0}, sim::offer_of(0)}) {
    SimRanks r(2, SimRanks::no_faults(), resuming(protection));
    r.connect(0, 1);
    constexpr std::size_t kBytes = 150'000;
    const Bytes data = bytes_of(kBytes, 1);
    Bytes into[3];
    MPID_ChannelId out[3], in[3];
    r.as(0);
    for (MPID_ChannelId& id : out)
      ck_assert_int_eq(MPID_ISendChannel(data.data(), kBytes, 1, &id), 0);
    r.turn(5);
    r.world.reset(break_of(r));
    say_one(r, 0, 1);
    say_one(r, 1, 2);
    ck_assert(comes(r, 0, 2));
    for (int i = 0; i < 3; ++i) {
      into[i].resize(kBytes);
      r.as(1);
      MPID_IRecvFromChannel(into[i].data(), kBytes, 0, &in[i]);
      ck_assert(r.until([&] {
        r.as(1);
        return Traffic::test(in[i]);
      }));
      ck_assert(into[i] == data);
    }
    ck_assert(comes(r, 1, 1));
    r.as(0);
    for (const MPID_ChannelId id : out) ck_assert_int_eq(MPID_WSendChannel(id), 0);
    r.turn(5);
    ck_assert_uint_eq(r.engine(1).read_ahead_buffers_used(), 0);
  }
}
END_TEST

// There is no memory for what has to be kept: the peer is lost, and gets nothing wrong.
START_TEST(stream_with_a_gap_does_not_go_on) {
  sim::Faults slow = SimRanks::no_faults();
  slow.delay_max_ns = 50'000'000;
  SimRanks r(2, slow, [](EngineOptions& o) {
    resuming()(o);
    o.send_copy_max = 16 * 1024;
  });
  r.connect(0, 1);
  r.as(0);
  const Bytes packet(10'000, 3);
  for (int i = 0; i < 100; ++i) ck_assert_int_eq(MPID_SendControl(packet.data(), 10'000, 1), 0);
  ck_assert_uint_gt(r.engine(0).counters().resume_gaps, 0);
  r.world.cut(0, 1);
  ck_assert(r.until([&] { return r.engine(0).peer_error(1) != 0; }, 5'000));
  ck_assert(r.until([&] { return r.engine(1).peer_error(0) != 0; }, 5'000));
}
END_TEST

START_TEST(long_send_is_complete_when_it_is_acknowledged) {
  sim::Faults slow = SimRanks::no_faults();
  slow.delay_max_ns = 0;
  SimRanks r(2, slow, [](EngineOptions& o) {
    resuming()(o);
    o.send_copy_max = 0;  // nothing is copied
  });
  r.connect(0, 1);
  const Bytes data = bytes_of(100'000, 1);
  r.world.mute(0, 1);
  r.as(0);
  MPID_ChannelId id = 0;
  ck_assert_int_eq(MPID_ISendChannel(data.data(), data.size(), 1, &id), 0);
  for (int i = 0; i < 50; ++i) ck_assert_int_eq(MPID_TSendChannel(id), 0);
  ck_assert_uint_eq(r.engine(0).queued_sends(), 0);  // the kernel has all of it
  r.world.cut(0, 1);
  r.turn(20);
  Bytes into(data.size());
  r.as(1);
  ck_assert_int_eq(static_cast<int>(MPID_RecvFromChannel(into.data(), into.size(), 0)),
                   static_cast<int>(into.size()));
  ck_assert(into == data);
  r.as(0);
  ck_assert_int_eq(MPID_WSendChannel(id), 0);
}
END_TEST

// Rank 0 gives its connection up, and reads all that has come. What comes between that and the end
// of the descriptor is not acknowledged: rank 1 would take it for received.
START_TEST(nothing_is_acknowledged_that_nobody_reads) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) {
    resuming()(o);
    if (o.rank == 1) o.send_copy_max = 0;  // it waits for the acknowledgement
    if (o.rank != 0) return;
    o.stream.keepalive_idle_s = 2;
    o.stream.keepalive_interval_s = 1;
  });
  r.connect(0, 1);
  const int first = break_of(r);
  r.world.mute(0, 1);
  const Bytes data = bytes_of(3'000, 1);
  Bytes into(data.size());
  MPID_ChannelId out = 0, in = 0;
  r.as(0);
  MPID_IRecvFromChannel(into.data(), into.size(), 1, &in);
  say_one(r, 0, 1);
  r.as(1);
  ck_assert_int_eq(MPID_ISendChannel(data.data(), data.size(), 0, &out), 0);
  r.world.hold_back(first);
  std::uint64_t empty = 0;
  bool has_come = false;
  r.world.boundary = [&](int host) {
    const Counters& counters = r.engine(0).counters();
    if (host != 0 || counters.connections_broken == 0) {
      empty = counters.reads_empty;
    } else if (counters.reads_empty != empty && !has_come) {
      has_come = true;
      r.world.let_come(first);
    }
  };
  ck_assert(r.until(
      [&] {
        r.world.pass(10'000'000);
        r.as(0);
        MPID_ChannelWait(1'000);
        return Traffic::test(in);
      },
      3'000));
  ck_assert(into == data);
  ck_assert(r.until([&] {
    r.as(1);
    return Traffic::test(out);
  }));
  r.world.boundary = nullptr;  // the engines go first
}
END_TEST

START_TEST(job_that_breaks_the_protocol_is_lost_as_before) {
  SimRanks r(2, SimRanks::no_faults(), resuming());
  r.connect(0, 1);
  r.world.tamper = [](int host, Bytes& bytes) {
    if (host == 0) bytes[0] ^= 0x40;
  };
  say_one(r, 0, 1);
  ck_assert(r.until([&] { return r.engine(1).peer_error(0) != 0; }, 50));
  ck_assert_int_eq(r.engine(1).peer_error(0), EPROTO);
  r.world.tamper = nullptr;
  // It is told when it calls.
  ck_assert(r.until([&] { return r.engine(0).peer_error(1) != 0; }, 500));
}
END_TEST

// ---- what a review found ----

namespace {

// Rank 1, from rank 0.
void receive_transfer(SimRanks& r, Bytes& into, MPID_TransferId& id, MPID_ChannelId& rid) {
  r.as(1);
  MPID_CreateRecvTransfer(into.data(), into.size(), 0, &id);
  MPID_StartNBRecvTransfer(into.data(), into.size(), 0, id, &rid);
}

// Sends a packet when it is complete.
struct Follower {
  SimRanks& r;
  int times = 0, most = 1;
  static void on_done(void* self, int error) {
    auto& f = *static_cast<Follower*>(self);
    if (error != 0 || ++f.times > f.most) return;
    const std::uint8_t value = 50;
    const iovec part = {const_cast<std::uint8_t*>(&value), 1};
    f.r.engine(0).send_control(1, &part, 1);
  }
};

void send_packet(SimRanks& r, std::size_t bytes, std::uint8_t value) {
  const Bytes data(bytes, value);
  const iovec part = {const_cast<std::uint8_t*>(data.data()), data.size()};
  ck_assert_int_eq(r.engine(0).send_control(1, &part, 1), 0);
}

// The first bytes of the packets that come at rank 1, in order.
Bytes packets_at_1(SimRanks& r, std::size_t count) {
  Bytes heard;
  r.until(
      [&] {
        r.as(1);
        Hold hold(r.engine(1).gate());
        Bytes data(40'000);
        int from = -1;
        while (r.engine(1).control_ready()) {
          r.engine(1).take_control(data.data(), 40'000, from);
          heard.push_back(data[0]);
        }
        return heard.size() >= count;
      },
      3'000);
  return heard;
}

// A transfer to rank 1 that has arrived, and is not known to have; a packet that does not arrive;
// then a break. What the completion of the transfer sends comes last.
void follow(std::size_t before) {
  SimRanks r(2, slow(1'000'000), resuming());
  r.connect(0, 1);
  r.turn(50);
  Bytes into(1'000);
  MPID_TransferId id = 0;
  MPID_ChannelId rid = 0;
  receive_transfer(r, into, id, rid);
  const Bytes data = bytes_of(into.size(), 3);
  Follower follower{r};
  r.as(0);
  std::size_t count = 2;
  {
    Hold hold(r.engine(0).gate());
    SendOp* op = nullptr;
    ck_assert_int_eq(r.engine(0).send(1, FrameKind::kTransfer, id, data.data(), data.size(), op),
                     0);
    ck_assert_ptr_nonnull(op);
    r.engine(0).on_done(op, Follower::on_done, &follower);
    if (before > 0) {
      send_packet(r, before, 1);
      ++count;
    }
    r.world.pass(2'000'000);
    r.world.mute(0, 1);
    send_packet(r, 100, 7);
  }
  r.world.cut(0, 1);
  const Bytes heard = packets_at_1(r, count);
  ck_assert_uint_eq(heard.size(), count);
  ck_assert_uint_eq(heard[count - 2], 7);
  ck_assert_uint_eq(heard[count - 1], 50);
  ck_assert(into == data);
  ck_assert_int_eq(r.engine(1).peer_error(0), 0);
}

}  // namespace

START_TEST(what_a_completion_sends_comes_behind_what_goes_again) { follow(0); }
END_TEST

// The packet that does not arrive begins in one block of what is kept, and ends in the next.
START_TEST(what_a_completion_sends_is_kept_behind_what_was_written_before) {
  follow(KeptBlock::kBytes - kFrameHeaderBytes - 60);
}
END_TEST

// What a rank has sent that computes is neither copied nor waited for by signals: it is complete
// with its next call. Unless somebody goes on with what follows meanwhile.
START_TEST(handler_completes_what_the_peer_may_not_have_only_for_who_waits) {
  for (const bool waits : {false, true}) {
    SimRanks r(2, SimRanks::no_faults(), resuming());
    r.connect(0, 1);
    const Bytes data = bytes_of(100'000, 1);
    r.world.mute(0, 1);
    bool done = false;
    r.as(0);
    {
      Hold hold(r.engine(0).gate());
      SendOp* op = nullptr;
      r.engine(0).complete_in_background(waits);
      ProgressScope scope(r.engine(0), r.engine(0).handler_mode());
      ck_assert_int_eq(r.engine(0).send(1, FrameKind::kTransfer, 77, data.data(), data.size(), op),
                       0);
      if (op != nullptr)
        r.engine(0).on_done(
            op, [](void* there, int) { *static_cast<bool*>(there) = true; }, &done);
      else
        done = true;
      for (int i = 0; i < 10; ++i) r.engine(0).poll_all();
    }
    ck_assert_uint_eq(r.engine(0).queued_sends(), 0);
    ck_assert_int_eq(done, waits);
    Hold hold(r.engine(0).gate());
    r.engine(0).complete_in_background(false);  // it leaves a call
    ck_assert(done);
  }
}
END_TEST

// In a call it is looked for some times, whatever goes on in the background.
START_TEST(call_looks_for_acknowledgements_before_it_copies) {
  for (const bool waits : {false, true}) {
    SimRanks r(2, SimRanks::no_faults(), resuming());
    r.connect(0, 1);
    const Bytes data = bytes_of(100'000, 1);
    r.world.mute(0, 1);
    r.as(0);
    Hold hold(r.engine(0).gate());
    r.engine(0).complete_in_background(waits);
    SendOp* op = nullptr;
    ck_assert_int_eq(r.engine(0).send(1, FrameKind::kTransfer, 77, data.data(), data.size(), op),
                     0);
    ck_assert_ptr_nonnull(op);
    bool done = false;
    r.engine(0).on_done(
        op, [](void* there, int) { *static_cast<bool*>(there) = true; }, &done);
    for (int i = 0; i < 2; ++i) r.engine(0).poll();
    ck_assert(!done);
    for (int i = 0; i < 5; ++i) r.engine(0).poll();
    ck_assert(done);
  }
}
END_TEST

START_TEST(completions_that_send_more_while_they_are_copied) {
  SimRanks r(2, slow(50'000'000), resuming());
  r.connect(0, 1);
  r.as(0);
  struct Chain {
    SimRanks& r;
    Bytes data;
    int times = 0;
    static void next(void* self, int error) {
      auto& c = *static_cast<Chain*>(self);
      if (error != 0 || ++c.times > 100) return;
      SendOp* op = nullptr;
      c.r.engine(0).send(1, FrameKind::kTransfer, 77, c.data.data(), c.data.size(), op);
      if (op != nullptr) c.r.engine(0).on_done(op, next, self);
    }
  } chain{r, bytes_of(9'000, 1)};
  Hold hold(r.engine(0).gate());
  Chain::next(&chain, 0);
  for (int i = 0; i < 20; ++i) r.engine(0).complete_in_background(true);
  ck_assert_int_ge(chain.times, 20);
}
END_TEST

// Packets that had to wait in the handler hold nothing there once they have left.
START_TEST(packets_queued_in_the_handler_leave_room_for_others) {
  sim::Faults narrow = SimRanks::no_faults();
  narrow.pipe_min = narrow.pipe_max = 20'000;
  SimRanks r(2, narrow, resuming());
  r.connect(0, 1);
  r.turn(5);
  const auto in_handler = [&](auto f) {
    r.as(0);
    Hold hold(r.engine(0).gate());
    ProgressScope scope(r.engine(0), r.engine(0).handler_mode());
    f();
  };
  std::size_t sent = 0;
  in_handler([&] {
    for (; sent < 30 && r.engine(0).headroom(); ++sent) send_packet(r, 3'000, 1);
  });
  ck_assert_uint_gt(sent, 6);
  std::size_t heard = 0;
  for (int i = 0; i < 200 && heard < sent; ++i) {
    in_handler([&] { r.engine(0).poll_all(); });
    r.poll(1);
    Bytes data(3'000);
    int from = -1;
    Hold hold(r.engine(1).gate());
    while (r.engine(1).control_ready())
      heard += r.engine(1).take_control(data.data(), 3'000, from) != 0;
    r.world.skip(100'000);
  }
  ck_assert_uint_eq(heard, sent);
  in_handler([&] { ck_assert(r.engine(0).headroom()); });
}
END_TEST

namespace {

// The rank's end of its first connection is reset, and nobody else is told. It calls, and has
// proved itself, which the other one has not read yet: its end of the new connection.
int proves_itself(SimRanks& r, int rank) {
  int first = break_of(r);
  if (rank != 0) first = r.world.far_end(first);
  r.world.reset_one_end(first);
  r.world.lose_what_leaves(first);
  for (int i = 0; i < 100; ++i) {
    r.poll(rank);
    const std::vector<int> all = r.world.connected(rank, 1 - rank);
    if (!all.empty() && all.back() != first && r.world.written(all.back()) == 2 * kHelloBytes)
      return all.back();
    r.world.skip(100'000);
    r.poll(1 - rank);
    r.world.skip(100'000);
  }
  ck_abort_msg("rank %d does not prove itself", rank);
}

}  // namespace

// Rank 0 has proved itself, its acceptance is lost with the connection, and only rank 1 hears of
// that: rank 1's call is taken.
START_TEST(acceptance_that_never_arrives) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) {
    resuming()(o);
    if (o.rank != 0) return;
    o.stream.keepalive_idle_s = 20;
    o.stream.keepalive_interval_s = 1;
  });
  r.connect(0, 1);
  const int mine = proves_itself(r, 0);
  r.world.skip(100'000);
  const int theirs = r.world.far_end(mine);
  r.world.lose_what_leaves(theirs);
  r.poll(1);
  ck_assert_uint_eq(r.engine(1).counters().connections, 2);
  r.world.reset_one_end(theirs);
  const std::int64_t began = r.world.now();
  say_one(r, 1, 9);
  ck_assert(comes(r, 0, 9));
  ck_assert_int_lt(r.world.now() - began, 1'000'000'000);
}
END_TEST

// A call that its rank has given up arrives when another one is up, and has carried something.
START_TEST(call_that_comes_late_breaks_nothing) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) {
    resuming()(o);
    if (o.rank != 1) return;
    o.stream.keepalive_idle_s = 2;
    o.stream.keepalive_interval_s = 1;
  });
  r.connect(0, 1);
  const int theirs = proves_itself(r, 1);
  const int mine = r.world.far_end(theirs);
  r.world.hold_back(mine);
  r.world.mute_socket(theirs);
  bool heard = false;
  say_one(r, 1, 3);
  ck_assert(r.until(
      [&] {
        r.world.pass(10'000'000);
        r.as(1);
        MPID_ChannelWait(1'000);
        return heard = heard || hears(r, 0, 3);
      },
      5'000));
  for (int i = 0; i < 60; ++i) {
    r.as(0);
    const Bytes packet(3'000, 9);
    ck_assert_int_eq(MPID_SendControl(packet.data(), 3'000, 1), 0);
    r.turn(2);
    Hold hold(r.engine(1).gate());
    Bytes data(3'000);
    int from = -1;
    while (r.engine(1).control_ready()) r.engine(1).take_control(data.data(), 3'000, from);
  }
  const std::uint64_t broken = r.engine(0).counters().connections_broken;
  r.world.let_come(mine);
  r.turn(200);
  ck_assert_int_eq(r.engine(0).peer_error(1), 0);
  ck_assert_int_eq(r.engine(1).peer_error(0), 0);
  ck_assert_uint_eq(r.engine(0).counters().connections_broken, broken);
}
END_TEST

// ---- what a second review found ----

namespace {

// What a handler of that rank does.
void in_handler(SimRanks& r, int rank, const std::function<void()>& work) {
  r.as(rank);
  Hold hold(r.engine(rank).gate());
  ProgressScope scope(r.engine(rank), r.engine(rank).handler_mode());
  work();
}

void poll_in_handler(SimRanks& r, int rank) {
  in_handler(r, rank, [&] { r.engine(rank).poll_all(); });
}

// Rank 0 loses its connection, of which rank 1 does not hear.
void lose_end_of_0(SimRanks& r) {
  const int end = break_of(r);
  r.world.reset_one_end(end);
  r.world.lose_what_leaves(end);
}

// Of packets of 3,000 bytes, numbered, rank 0 sends so many, or as many as there is room for.
std::size_t send_packets(SimRanks& r, std::size_t count, std::size_t first = 0) {
  std::size_t sent = 0;
  for (; sent < count && r.engine(0).headroom(); ++sent)
    send_packet(r, 3'000, static_cast<std::uint8_t>(first + sent));
  return sent;
}

void check_packets_at_1(SimRanks& r, std::size_t count) {
  const Bytes heard = packets_at_1(r, count);
  ck_assert_uint_eq(heard.size(), count);
  for (std::size_t i = 0; i < count; ++i) ck_assert_uint_eq(heard[i], i % 256);
}

}  // namespace

// The first packet was gathered while the rank slept, and then the connection broke.
START_TEST(gathered_packet_overtakes_nothing_while_the_connection_is_broken) {
  SimRanks r(2, SimRanks::no_faults(), resuming());
  r.connect(0, 1);
  r.turn(5);
  const int first = break_of(r);
  const auto gather = [&](std::uint8_t value) {
    r.engine(0).set_gather(Engine::kGatherPacketMax);
    send_packet(r, 1, value);
    r.engine(0).set_gather(0);
  };
  r.world.asleep = [&](int host) {
    if (host != 0 || r.engine(0).gathered() != 0) return;
    Hold hold(r.engine(0).gate());
    gather(1);
    r.world.reset(first);
  };
  r.as(0);
  MPID_ChannelWait(1'000);
  r.world.asleep = nullptr;
  ck_assert_uint_eq(r.engine(0).counters().connections_broken, 1);
  {
    Hold hold(r.engine(0).gate());
    ck_assert_int_eq(r.engine(0).gathered(), 1);
    send_packet(r, 2'000, 2);
    gather(3);
  }
  const Bytes heard = packets_at_1(r, 3);
  ck_assert(heard == Bytes({1, 2, 3}));
}
END_TEST

START_TEST(rank_that_computes_takes_the_call_of_a_peer_that_has_lost_its_connection) {
  for (const std::uint8_t protection : {std::uint8_t{0}, sim::offer_of(0)}) {
    SimRanks r(2, SimRanks::no_faults(), resuming(protection));
    r.connect(0, 1);
    r.turn(5);
    lose_end_of_0(r);
    for (int i = 0; i < 100; ++i) {
      r.poll(0);
      poll_in_handler(r, 1);
      r.world.skip(100'000);
    }
    ck_assert_uint_eq(r.engine(1).counters().connections, 2);
    ck_assert_uint_eq(r.engine(0).counters().connections, 2);
    say_one(r, 1, 5);
    ck_assert(comes(r, 0, 5));
  }
}
END_TEST

// What has come on the old connection cannot be taken in the handler: it asks for ordinary context,
// and that takes the call at once.
START_TEST(call_that_the_handler_cannot_take_is_taken_by_who_makes_up_for_it) {
  SimRanks r(2, SimRanks::no_faults(), resuming());
  r.connect(0, 1);
  const Bytes data = bytes_of(20'000, 1);
  MPID_ChannelId out = 0;
  r.as(0);
  ck_assert_int_eq(MPID_ISendChannel(data.data(), data.size(), 1, &out), 0);
  r.turn(5);
  lose_end_of_0(r);
  for (int i = 0; i < 100; ++i) {
    r.poll(0);
    poll_in_handler(r, 1);
    r.world.skip(100'000);
  }
  ck_assert_uint_eq(r.engine(1).counters().connections, 1);
  ck_assert(r.engine(1).is_starved());
  r.engine(1).clear_starved();
  r.poll(1);
  ck_assert_uint_eq(r.engine(1).counters().connections, 2);
  ck_assert(!r.engine(1).is_starved());
  r.as(0);
  ck_assert_int_eq(MPID_WSendChannel(out), 0);
}
END_TEST

START_TEST(packets_that_the_handler_could_not_keep_wait) {
  SimRanks r(2, SimRanks::no_faults(), resuming());
  r.connect(0, 1);
  r.turn(5);
  r.world.mute(0, 1);  // nothing is acknowledged
  std::size_t sent = 0;
  in_handler(r, 0, [&] { sent = send_packets(r, 300); });
  ck_assert_uint_ge(sent, TxQueue::kSpareBlocks);
  ck_assert_uint_lt(sent, 300);
  ck_assert_uint_eq(r.engine(0).counters().resume_gaps, 0);
  ck_assert(r.engine(0).is_starved());
  r.world.cut(0, 1);
  check_packets_at_1(r, sent);
  ck_assert_uint_eq(r.engine(0).counters().resume_gaps, 0);
}
END_TEST

// Frames that wait for the kernel need memory, too.
START_TEST(frames_that_the_kernel_has_not_taken_are_counted) {
  SimRanks r(2, SimRanks::no_faults(), resuming());
  r.connect(0, 1);
  r.turn(5);
  r.world.mute(0, 1);
  std::size_t sent = 0;
  in_handler(r, 0, [&] {
    while (sent < TxQueue::kSpareBlocks * 5 / 2) sent += send_packets(r, 1, sent);
    r.world.write_limit = [](int, std::uint64_t) { return 0; };
    for (int i = 0; i < 8; ++i) send_packet(r, 20'000, static_cast<std::uint8_t>(sent++));
    r.world.write_limit = nullptr;
    for (int i = 0; i < 10; ++i) {
      r.world.pass(100'000);
      r.engine(0).poll_all();
    }
  });
  ck_assert_uint_eq(r.engine(0).counters().resume_gaps, 0);
  r.world.cut(0, 1);
  check_packets_at_1(r, sent);
}
END_TEST

START_TEST(ordinary_context_leaves_the_handler_memory_to_keep_packets) {
  SimRanks r(2, SimRanks::no_faults(), resuming());
  r.connect(0, 1);
  r.turn(5);
  r.world.mute(0, 1);
  {
    r.as(0);
    Hold hold(r.engine(0).gate());
    send_packets(r, 300);
  }
  in_handler(r, 0, [&] { send_packets(r, 20, 300); });
  ck_assert_uint_eq(r.engine(0).counters().resume_gaps, 0);
  ck_assert(!r.engine(0).is_starved());
  r.world.cut(0, 1);
  check_packets_at_1(r, 320);
}
END_TEST

// A handler has used up the memory in which packets are kept: nobody gathers what no handler could
// let go.
START_TEST(nothing_is_gathered_that_the_handler_could_not_keep) {
  std::size_t most = 0;  // packets that a handler can keep
  for (const bool counted : {false, true}) {
    SimRanks r(2, SimRanks::no_faults(), resuming());
    r.connect(0, 1);
    r.turn(5);
    r.world.mute(0, 1);
    std::size_t sent = 0;
    in_handler(r, 0, [&] {
      while (!r.engine(0).is_starved() && sent < (counted ? most : 300))
        sent += send_packets(r, 1, sent);
    });
    ck_assert_int_eq(r.engine(0).is_starved(), !counted);
    most = sent - 1;
    if (!counted) continue;
    {
      r.as(0);
      Hold hold(r.engine(0).gate());
      r.engine(0).set_gather(Engine::kGatherPacketMax);
      for (int i = 0; i < 8; ++i) send_packet(r, 900, static_cast<std::uint8_t>(sent++));
    }
    in_handler(r, 0, [&] { r.engine(0).flush_gathered(); });
    ck_assert_int_eq(r.engine(0).gathered(), 0);
    ck_assert_uint_gt(r.engine(0).counters().gathered, 0);
    ck_assert_uint_eq(r.engine(0).counters().resume_gaps, 0);
    r.engine(0).set_gather(0);
    r.world.cut(0, 1);
    check_packets_at_1(r, sent);
  }
}
END_TEST

// A record is changed, and the connection breaks before it is read: where a receive is missing; and
// where the break was noticed by a write.
START_TEST(changed_data_on_a_connection_that_is_broken_is_told) {
  for (const bool paused : {true, false}) {
    SimRanks r(2, SimRanks::no_faults(), resuming(sim::offer_of(0)));
    r.connect(0, 1);
    const Bytes data = bytes_of(20'000, 1);
    MPID_ChannelId out = 0;
    r.as(0);
    if (paused) ck_assert_int_eq(MPID_ISendChannel(data.data(), data.size(), 1, &out), 0);
    r.turn(5);
    r.world.tamper = [](int host, Bytes& bytes) {
      if (host == 0) bytes.back() ^= 1;
    };
    say_one(r, 0, 1);
    r.world.tamper = nullptr;
    r.world.pass(100'000);
    if (paused) {
      r.world.reset(break_of(r));
    } else {
      r.world.reset_one_end(r.world.far_end(break_of(r)));
      say_one(r, 1, 2);
      ck_assert_uint_eq(r.engine(1).counters().connections_broken, 1);
    }
    ck_assert(r.until([&] { return r.engine(1).peer_error(0) != 0; }, 500));
    ck_assert_int_eq(r.engine(1).peer_error(0), EBADMSG);
    ck_assert(r.until([&] { return r.engine(0).peer_error(1) != 0; }, 500));
  }
}
END_TEST

// The first transfer has arrived, which is heard by the call that resumes. What its completion
// sends comes behind the second one, which goes again, and may have arrived before that returns.
START_TEST(what_goes_again_may_be_acknowledged_while_completions_run) {
  SimRanks r(2, slow(1'000'000), resuming());
  r.connect(0, 1);
  r.turn(50);
  Bytes into[2] = {Bytes(1'000), Bytes(1'000)};
  MPID_TransferId id[2] = {};
  MPID_ChannelId rid[2] = {};
  for (int i = 0; i < 2; ++i) receive_transfer(r, into[i], id[i], rid[i]);
  const Bytes data = bytes_of(1'000, 3);
  Follower follower{r};
  {
    r.as(0);
    Hold hold(r.engine(0).gate());
    for (const MPID_TransferId each : id) {
      SendOp* op = nullptr;
      ck_assert_int_eq(
          r.engine(0).send(1, FrameKind::kTransfer, each, data.data(), data.size(), op), 0);
      ck_assert_ptr_nonnull(op);
      r.engine(0).on_done(op, Follower::on_done, &follower);
      r.world.mute(0, 1);
    }
    r.world.pass(2'000'000);
    r.world.cut(0, 1);
    r.world.pass(2'000'000);
    send_packet(r, 100, 7);  // it finds the connection broken
    ck_assert_uint_eq(r.engine(0).counters().connections_broken, 1);
    ck_assert_int_eq(follower.times, 0);
  }
  r.world.boundary = [&](int host) {
    if (host == 0 && r.engine(0).counters().connections == 2) r.world.pass(2'000'000);
  };
  const Bytes heard = packets_at_1(r, 2);
  r.world.boundary = nullptr;
  ck_assert(heard == Bytes({7, 50}));
  ck_assert_int_eq(follower.times, 2);
  for (const Bytes& each : into) ck_assert(each == data);
}
END_TEST

// A call that its rank has given up is taken, as little has come since.
START_TEST(call_that_comes_late_costs_no_stream) {
  SimRanks r(2, SimRanks::no_faults(), [](EngineOptions& o) {
    resuming()(o);
    o.stream.keepalive_idle_s = 2;
    o.stream.keepalive_interval_s = 1;
  });
  r.connect(0, 1);
  const int theirs = proves_itself(r, 1);
  const int mine = r.world.far_end(theirs);
  r.world.hold_back(mine);
  r.world.mute_socket(theirs);
  const auto heard_by = [&](int at, std::uint8_t value) {
    bool heard = false;
    return r.until(
        [&] {
          for (int i = 0; i < 2; ++i) {
            r.as(i);
            MPID_ChannelWait(1'000);
          }
          r.world.pass(10'000'000);
          return heard = heard || hears(r, at, value);
        },
        5'000);
  };
  say_one(r, 1, 3);
  ck_assert(heard_by(0, 3));
  say_one(r, 0, 4);
  ck_assert(heard_by(1, 4));
  ck_assert_uint_eq(r.engine(0).counters().connections, 2);
  // It is reset, in answer to the acceptance, before anything leaves by it.
  r.world.boundary = [&](int host) {
    if (host == 0 && r.engine(0).counters().connections == 3) r.world.reset_one_end(mine);
  };
  r.world.let_come(mine);
  ck_assert(r.until([&] { return r.engine(0).counters().connections == 3; }, 50));
  r.world.boundary = nullptr;
  say_one(r, 0, 5);
  ck_assert(heard_by(1, 5));
  say_one(r, 1, 6);
  ck_assert(heard_by(0, 6));
  for (int i = 0; i < 2; ++i) {
    ck_assert_int_eq(r.engine(i).peer_error(1 - i), 0);
    ck_assert_uint_eq(r.engine(i).counters().resume_gaps, 0);
  }
}
END_TEST

// A handler asks what has been acknowledged before it writes a packet, for want of memory. What
// completes by that sends something of which the kernel takes a part: the packet comes behind it.
START_TEST(packet_of_the_handler_does_not_cut_what_a_completion_sends) {
  int asked = 0;
  for (std::size_t packets = 150; packets < 200; ++packets) {
    SimRanks r(2, slow(1'000'000), resuming());
    r.connect(0, 1);
    r.turn(50);
    Bytes into(500);
    MPID_TransferId id = 0;
    MPID_ChannelId rid = 0;
    receive_transfer(r, into, id, rid);
    const Bytes data = bytes_of(into.size(), 3);
    Follower follower{r};
    {
      r.as(0);
      Hold hold(r.engine(0).gate());
      SendOp* op = nullptr;
      ck_assert_int_eq(r.engine(0).send(1, FrameKind::kTransfer, id, data.data(), data.size(), op),
                       0);
      ck_assert_ptr_nonnull(op);
      r.engine(0).on_done(op, Follower::on_done, &follower);
    }
    std::size_t sent = 0;
    in_handler(r, 0, [&] {
      sent = send_packets(r, packets);
      ck_assert_int_eq(follower.times, 0);
      r.world.pass(2'000'000);
      r.world.write_limit = [](int, std::uint64_t could) { return could > 10 ? 10 : could; };
      send_packet(r, 20'000, 60);
      r.world.write_limit = nullptr;
    });
    asked += follower.times;
    const Bytes heard = packets_at_1(r, sent + 2);
    ck_assert_int_eq(r.engine(1).peer_error(0), 0);
    ck_assert_uint_eq(heard.size(), sent + 2);
  }
  ck_assert_int_gt(asked, 0);
}
END_TEST

// Frames for two peers have their places, and the memory would do for either.
START_TEST(frames_for_several_peers_share_the_memory_of_the_handler) {
  SimRanks r(3, SimRanks::no_faults(), resuming());
  r.connect(0, 1);
  r.connect(0, 2);
  r.turn(5);
  for (const int peer : {1, 2}) r.world.mute(0, peer);
  in_handler(r, 0, [&] {
    std::size_t sent = 0;
    while (sent < TxQueue::kSpareBlocks * 5 / 2) sent += send_packets(r, 1, sent);
    r.world.write_limit = [](int, std::uint64_t) { return 0; };
    const Bytes data(20'000, 9);
    const iovec part = {const_cast<std::uint8_t*>(data.data()), data.size()};
    for (int i = 0; i < 8; ++i) ck_assert_int_eq(r.engine(0).send_control(1 + i % 2, &part, 1), 0);
    r.world.write_limit = nullptr;
    for (int i = 0; i < 10; ++i) {
      r.world.pass(100'000);
      r.engine(0).poll_all();
    }
  });
  ck_assert_uint_eq(r.engine(0).counters().resume_gaps, 0);
  ck_assert_uint_ne(r.engine(0).queued_sends(), 0);
  for (const int peer : {1, 2}) r.world.cut(0, peer);
  ck_assert(r.until([&] { return r.engine(0).queued_sends() == 0; }));
  int heard = 0;
  ck_assert(r.until([&] {
    Bytes data(20'000);
    int from = -1;
    Hold hold(r.engine(2).gate());
    while (r.engine(2).control_ready())
      heard += r.engine(2).take_control(data.data(), 20'000, from) == 20'000;
    return heard == 4;
  }));
  ck_assert_uint_eq(r.engine(0).counters().resume_gaps, 0);
}
END_TEST

int main() { return run_tests("resume"); }
