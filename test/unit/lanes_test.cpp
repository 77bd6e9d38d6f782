// One transfer over several connections, between engines on the fake network: opened, spread over,
// tied, withdrawn, lost.
#include "mplite/engine/lanes.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "in_pieces.h"
#include "mplite/net/frame.h"
#include "sim_ranks.h"

#include "run_tests.h"

using namespace mplite;

namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::size_t kBytes = 200'000;

sim::Faults narrow(std::uint64_t bytes = 6'000) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_min = f.pipe_max = bytes;
  return f;
}

std::function<void(EngineOptions&)> with_lanes(int lanes) {
  return [lanes](EngineOptions& o) {
    o.lanes = lanes;
    o.long_bytes = 50'000;
    o.frame_bytes = 2'000;
  };
}

struct Transfer {
  Bytes data, into;
  MPID_TransferId id = 0;
  MPID_ChannelId rid = 0, sid = 0;
  int from, to;

  Transfer(int sender, int receiver, std::size_t bytes = kBytes, int salt = 3)
      : data(bytes_of(bytes, salt)), into(bytes, 0), from(sender), to(receiver) {}
  void create(SimRanks& r) {
    r.as(to);
    ck_assert_int_eq(MPID_CreateRecvTransfer(into.data(), into.size(), from, &id), 0);
  }
  void receive(SimRanks& r) {
    r.as(to);
    ck_assert_int_eq(MPID_StartNBRecvTransfer(into.data(), into.size(), from, id, &rid), 0);
  }
  void send(SimRanks& r) {
    r.as(from);
    ck_assert_int_eq(MPID_StartNBSendTransfer(data.data(), data.size(), to, id, &sid), 0);
  }
  void begin(SimRanks& r) {
    create(r);
    receive(r);
    send(r);
  }
  bool sent(SimRanks& r) {
    r.as(from);
    return sid == 0 || MPID_TestNBSendTransfer(sid) != 0;
  }
  bool here(SimRanks& r) {
    r.as(to);
    return MPID_TestNBRecvTransfer(rid) == 1;
  }
  // Both ends are done with it, and it is right.
  void end(SimRanks& r) {
    ck_assert(r.until([&] { return here(r); }, 5'000));
    ck_assert_int_eq(static_cast<int>(MPID_EndNBRecvTransfer(id, rid)),
                     static_cast<int>(data.size()));
    ck_assert(into == data);
    ck_assert(r.until([&] { return sent(r); }));
  }
  void pass(SimRanks& r) {
    begin(r);
    end(r);
  }
};

std::uint64_t lanes_of(SimRanks& r, int rank) { return r.engine(rank).counters().lanes; }

// Time passes, and both poll so often that they look whether anything has fallen silent.
void poll_long(SimRanks& r) {
  r.world.pass(100'000'000);
  for (int k = 0; k < 2; ++k) {
    Hold hold(r.engine(k).gate());
    r.as(k);
    for (int n = 0; n < 5000; ++n) r.engine(k).poll_all();
  }
  r.turn(10);
}

}  // namespace

START_TEST(long_transfer_goes_over_as_many_lanes_as_were_asked_for) {
  for (const int lanes : {2, 4, 16}) {
    SimRanks r(2, narrow(), with_lanes(lanes));
    r.connect(0, 1);
    for (int i = 0; i < 6; ++i) {
      Transfer t(0, 1, kBytes, i);
      t.pass(r);
    }
    ck_assert_uint_eq(lanes_of(r, 0), static_cast<std::uint64_t>(lanes - 1));
    ck_assert_uint_eq(lanes_of(r, 1), static_cast<std::uint64_t>(lanes - 1));
    ck_assert_uint_eq(r.engine(0).counters().connections, 1);
  }
}
END_TEST

// Each of them may carry 6 KB a turn.
START_TEST(more_lanes_carry_more) {
  int turns[2];
  for (const int lanes : {1, 4}) {
    SimRanks r(2, narrow(), with_lanes(lanes));
    r.connect(0, 1);
    Transfer first(0, 1);
    first.pass(r);
    Transfer t(0, 1, 10 * kBytes);
    t.begin(r);
    int& n = turns[lanes == 1 ? 0 : 1];
    for (n = 0; !t.here(r); ++n) r.turn();
    t.end(r);
  }
  ck_assert_int_le(turns[1] * 3, turns[0]);
}
END_TEST

// The kernel takes all of it on any of them.
START_TEST(lanes_that_take_a_whole_transfer_carry_parts_of_it) {
  for (const bool on : {true, false}) {
    sim::Faults wide = narrow(10 * kBytes);
    wide.delay_max_ns = 1'000'000;
    SimRanks r(2, wide, [on](EngineOptions& o) {
      with_lanes(4)(o);
      o.tuning.set(Heuristic::kLaneShare, on);
    });
    r.connect(0, 1);
    while (lanes_of(r, 0) < 3) {
      Transfer first(0, 1);
      first.pass(r);
      r.turn(10);
    }
    const std::vector<int> connections = r.world.connected(0, 1);
    ck_assert_uint_eq(connections.size(), 4);
    std::vector<std::uint64_t> before;
    for (const int fd : connections) before.push_back(r.world.written(fd));
    Transfer t(0, 1);
    t.begin(r);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint64_t bytes = r.world.written(connections[i]) - before[i];
      ck_assert_uint_ge(bytes, on ? kBytes / 8 : i == 0 ? kBytes : 0);
      ck_assert_uint_le(bytes, on ? kBytes / 2 : i == 0 ? 2 * kBytes : 0);
    }
    t.end(r);
  }
}
END_TEST

// The first connection takes frame after frame whole: how fast both are is asked as the transfer
// begins, not for each frame.
START_TEST(lanes_are_measured_once_for_a_transfer) {
  SimRanks r(2, narrow(20 * kBytes), with_lanes(2));
  r.connect(0, 1);
  for (int i = 0; i < 3; ++i) {
    Transfer first(0, 1);
    first.pass(r);
    r.turn(10);
  }
  int reports = 0;
  r.world.reported = [&reports](StreamReport&) { ++reports; };
  Transfer t(0, 1, 10 * kBytes);
  t.pass(r);
  r.turn(10);
  ck_assert_int_eq(reports, 2);
  r.world.reported = nullptr;
}
END_TEST

// TCP says of one network that it is a hundred times as slow: it is left alone while the other one
// will be through with all sooner, though it has room.
START_TEST(slow_lane_waits_for_the_fast_one) {
  for (const bool on : {true, false}) {
    SimRanks r(2, narrow(), [on](EngineOptions& o) {
      with_lanes(2)(o);
      o.tuning.set(Heuristic::kLaneShare, on);
    });
    std::int64_t busy_us[2] = {};
    int reports = 0;
    r.world.reported = [&](StreamReport& report) {
      const int lane = reports++ % 2;
      busy_us[lane] += lane == 0 ? 100'000 : 10'000'000;
      report.busy_us = busy_us[lane];
    };
    r.connect(0, 1);
    for (int i = 0; i < 8; ++i) {
      Transfer first(0, 1);
      first.pass(r);
      r.turn(10);
    }
    const std::vector<int> connections = r.world.connected(0, 1);
    ck_assert_uint_eq(connections.size(), 2);
    const std::uint64_t before = r.world.written(connections[1]);
    Transfer t(0, 1);
    t.pass(r);
    const std::uint64_t bytes = r.world.written(connections[1]) - before;
    ck_assert_uint_ge(bytes, on ? 0 : kBytes / 4);
    ck_assert_uint_le(bytes, on ? kBytes / 20 : kBytes);
    r.world.reported = nullptr;
  }
}
END_TEST

START_TEST(short_transfers_and_one_lane_open_nothing) {
  for (const int lanes : {1, 4}) {
    SimRanks r(2, narrow(), with_lanes(lanes));
    r.connect(0, 1);
    Transfer t(0, 1, lanes == 1 ? kBytes : 49'999);
    t.pass(r);
    ck_assert_uint_eq(lanes_of(r, 0) + lanes_of(r, 1), 0);
  }
}
END_TEST

START_TEST(receiver_takes_part_whatever_its_own_number_is) {
  int rank = 0;
  SimRanks r(2, narrow(), [&rank](EngineOptions& o) { with_lanes(rank++ == 0 ? 4 : 1)(o); });
  r.connect(0, 1);
  Transfer t(0, 1), back(1, 0);
  t.begin(r);
  back.begin(r);
  t.end(r);
  back.end(r);
  ck_assert_uint_eq(lanes_of(r, 1), 3);
}
END_TEST

START_TEST(both_begin_at_once_and_each_number_is_there_once) {
  for (const bool calling_takes_time : {false, true}) {
    sim::Faults f = narrow();
    if (calling_takes_time) f.delay_max_ns = 500'000;
    SimRanks r(2, f, with_lanes(4));
    r.connect(0, 1);
    const std::uint64_t before = r.world.open_sockets(0);
    for (int i = 0; i < 4; ++i) {
      Transfer there(0, 1), back(1, 0);
      there.begin(r);
      back.begin(r);
      there.end(r);
      back.end(r);
    }
    r.turn(200);
    ck_assert_uint_eq(r.world.open_sockets(0), before + 3);
    ck_assert_uint_eq(r.world.open_sockets(1), r.world.open_sockets(0));
  }
}
END_TEST

START_TEST(network_that_does_not_lead_to_the_peer_is_left_out) {
  SimRanks r(2, narrow(), with_lanes(4), 1, 0, 2);
  r.world.set_road(1, 1, ECONNREFUSED);
  r.connect(0, 1);
  Transfer t(0, 1);
  t.pass(r);
  Transfer more(0, 1);
  more.pass(r);
  ck_assert_uint_eq(lanes_of(r, 0), 3);
}
END_TEST

START_TEST(lanes_are_opened_later_where_nothing_leads_to_the_peer_now) {
  SimRanks r(2, narrow(), with_lanes(4));
  r.connect(0, 1);
  r.world.set_road(1, 0, ECONNREFUSED);
  for (int i = 0; i < 5; ++i) {
    Transfer t(0, 1);
    t.pass(r);
    ck_assert_uint_eq(lanes_of(r, 0), 0);
  }
  r.world.set_road(1, 0, 0);
  r.world.pass(2'000'000'000);
  Transfer t(0, 1);
  t.pass(r);
  ck_assert_uint_eq(lanes_of(r, 0), 3);
}
END_TEST

// Of rank 0's connections to rank 1 those over that network.
int connections_over(SimRanks& r, int network) {
  int count = 0;
  for (const int fd : r.world.connected(0, 1)) count += r.world.network_of(fd) == network ? 1 : 0;
  return count;
}

void cut_network(SimRanks& r, int network) {
  for (const int host : {0, 1}) r.world.set_road(host, network, EHOSTUNREACH);
  for (const int fd : r.world.connected(0, 1))
    if (r.world.network_of(fd) == network) r.world.reset(fd);
}

void put_back_network(SimRanks& r, int network) {
  for (const int host : {0, 1}) r.world.set_road(host, network, 0);
}

// Long messages now and then, for so long.
void talk(SimRanks& r, int seconds) {
  for (int i = 0; i < seconds; ++i) {
    Transfer t(i % 2, 1 - i % 2);
    t.pass(r);
    r.world.pass(1'000'000'000);
  }
}

START_TEST(network_that_was_cut_is_used_again_when_it_is_back) {
  SimRanks r(2, narrow(), with_lanes(4), 1, 0, 2);
  r.connect(0, 1);
  talk(r, 2);
  ck_assert_int_eq(connections_over(r, 0), 2);
  ck_assert_int_eq(connections_over(r, 1), 2);
  cut_network(r, 1);
  talk(r, 20);
  ck_assert_int_eq(connections_over(r, 0), 3);  // and one waits
  ck_assert_int_eq(connections_over(r, 1), 0);
  // It is no obstacle for others.
  r.world.reset(r.world.connected(0, 1).back());
  talk(r, 5);
  ck_assert_int_eq(connections_over(r, 0), 3);
  put_back_network(r, 1);
  talk(r, 5);
  ck_assert_int_eq(connections_over(r, 0), 3);
  ck_assert_int_eq(connections_over(r, 1), 1);
}
END_TEST

START_TEST(first_connection_that_goes_on_over_another_network_leaves_its_own_to_lanes) {
  SimRanks r(
      2, narrow(),
      [](EngineOptions& o) {
        with_lanes(4)(o);
        o.resume = true;
        o.connect_timeout_ns = 30'000'000'000;
      },
      1, 0, 2);
  r.connect(0, 1);
  talk(r, 2);
  const int first = r.world.network_of(r.world.connected(0, 1).front());
  cut_network(r, first);
  talk(r, 20);
  ck_assert_int_eq(connections_over(r, first), 0);
  ck_assert_int_ge(connections_over(r, 1 - first), 2);
  put_back_network(r, first);
  talk(r, 5);
  ck_assert_int_ge(connections_over(r, first), 1);
  ck_assert_int_eq(connections_over(r, first) + connections_over(r, 1 - first), 4);
}
END_TEST

// Nobody listens there any more, or somebody else does.
START_TEST(address_where_calls_are_refused_has_no_lane_that_waits) {
  SimRanks r(2, narrow(), with_lanes(4), 1, 0, 2);
  r.connect(0, 1);
  talk(r, 2);
  cut_network(r, 1);
  for (const int host : {0, 1}) r.world.set_road(host, 1, ECONNREFUSED);
  talk(r, 5);
  ck_assert_int_eq(connections_over(r, 0), 4);
}
END_TEST

// TCP_INFO says that together they carry what one did.
START_TEST(lanes_of_a_trial_that_does_not_pay_are_closed) {
  SimRanks r(2, narrow(), with_lanes(0));
  r.connect(0, 1);
  r.world.reported = [&](StreamReport& report) {
    const auto now_us = static_cast<std::uint64_t>(r.world.now() / 1'000);
    report.busy_us = static_cast<std::int64_t>(now_us);
    report.window_limited_us = 0;
    report.acknowledged = 100 * now_us / r.world.connected(0, 1).size();
  };
  for (int i = 0; i < 300; ++i) {
    Transfer t(0, 1);
    t.pass(r);
    r.world.pass(5'000'000);
  }
  const Counters& counters = r.engine(0).counters();
  ck_assert_uint_eq(counters.lane_trials, 1);
  ck_assert_uint_eq(counters.lane_trials_paid, 0);
  ck_assert_uint_eq(counters.lanes, 1);
  ck_assert_uint_eq(r.world.connected(0, 1).size(), 1);
  r.turn(20);
  ck_assert_uint_eq(r.world.connected(1, 0).size(), 1);
  ck_assert_uint_eq(counters.lanes_lost + r.engine(1).counters().lanes_lost, 0);
}
END_TEST

START_TEST(pieces_are_found_at_any_offset) {
  SimRanks r(2, narrow(), with_lanes(4));
  r.connect(0, 1);
  const Bytes data = bytes_of(kBytes, 5);
  for (int i = 0; i < 2; ++i) {
    Bytes into(kBytes, 0);
    std::vector<iovec> from_pieces, to_pieces;
    for (std::size_t at = 0; at < kBytes; at += 500)
      from_pieces.push_back({const_cast<std::uint8_t*>(data.data()) + at, 500});
    for (std::size_t at = 0; at < kBytes; at += 800) to_pieces.push_back({into.data() + at, 800});
    MPID_TransferId id = 0;
    MPID_ChannelId rid = 0, sid = 0;
    r.as(1);
    ck_assert_int_eq(MPID_CreateRecvTransfer(nullptr, kBytes, 0, &id), 0);
    const std::size_t rest = i == 0 ? 0 : 12'345;  // of which is known already what is before
    std::memcpy(into.data(), data.data(), rest);
    ck_assert_int_eq(
        MPID_StartNBRecvTransferRest(nullptr, to_pieces.data(), rest, kBytes, 0, id, &rid), 0);
    r.as(0);
    ck_assert_int_eq(
        MPID_StartNBSendTransferRest(nullptr, from_pieces.data(), rest, kBytes, 1, id, &sid), 0);
    r.as(1);
    ck_assert(r.until([&] { return MPID_TestNBRecvTransfer(rid) == 1; }, 5'000));
    ck_assert_int_eq(static_cast<int>(MPID_EndNBRecvTransfer(id, rid)), kBytes);
    ck_assert(into == data);
    r.as(0);
    ck_assert(r.until([&] { return sid == 0 || MPID_TestNBSendTransfer(sid) != 0; }));
  }
}
END_TEST

START_TEST(data_on_all_lanes_waits_for_its_buffer) {
  SimRanks r(2, narrow(), with_lanes(4));
  r.connect(0, 1);
  Transfer first(0, 1), t(0, 1);
  first.pass(r);
  t.create(r);
  t.send(r);
  r.turn(50);
  ck_assert_uint_ge(r.engine(1).counters().parked, 4);
  t.receive(r);
  t.end(r);
}
END_TEST

START_TEST(withdrawn_transfer_is_thrown_away_on_every_lane) {
  SimRanks r(2, narrow(), with_lanes(4));
  r.connect(0, 1);
  Transfer t(0, 1), next(0, 1, kBytes, 9);
  t.begin(r);
  r.turn(6);
  r.as(1);
  ck_assert_int_eq(MPID_TestNBRecvTransfer(t.rid), 0);
  MPID_CancelRecvTransfer(t.id, t.rid);
  const Bytes then = t.into;
  next.pass(r);
  ck_assert(r.until([&] { return t.sent(r); }));
  ck_assert(t.into == then);
  r.as(1);
  ck_assert_int_eq(MPID_ChannelPeerError(0), 0);
}
END_TEST

// It would be complete with a hole in it, and memory that is still written to.
START_TEST(peer_that_sends_a_part_twice_is_given_up) {
  SimRanks r(2, narrow(), with_lanes(1));
  r.connect(0, 1);
  Transfer t(0, 1, 8'000);
  int frames = 0;
  r.world.tamper = [&frames](int host, Bytes& bytes) {
    if (host != 0) return;
    for (std::size_t at = 0; at + kFrameHeaderBytes <= bytes.size();
         at += 2'000 + kFrameHeaderBytes) {
      FrameHeader h;
      std::memcpy(&h, bytes.data() + at, sizeof h);
      if (h.kind != FrameKind::kTransfer) return;
      if (++frames != 5) h.offset = 0;
      std::memcpy(bytes.data() + at, &h, sizeof h);
    }
  };
  t.begin(r);
  t.sid = 0;
  r.turn(20);
  Transfer more(0, 1, 2'000);
  more.id = t.id;
  r.as(0);
  MPID_StartNBSendTransfer(more.data.data(), more.data.size(), 1, t.id, &more.sid);
  r.turn(20);
  r.as(1);
  ck_assert_int_eq(MPID_ChannelPeerError(0), EPROTO);
}
END_TEST

START_TEST(lost_peer_ends_what_is_on_every_lane) {
  for (const bool host_dies : {true, false}) {
    SimRanks r(2, narrow(), with_lanes(4));
    r.connect(0, 1);
    const std::uint64_t sockets = r.world.open_sockets(0);
    Transfer t(0, 1), back(1, 0);
    t.begin(r);
    back.begin(r);
    r.turn(8);
    ck_assert_uint_eq(lanes_of(r, 0), 3);
    r.as(0);
    ck_assert_int_eq(MPID_TestNBSendTransfer(t.sid), 0);
    if (host_dies)
      r.lose_host(1);
    else
      r.world.cut(0, 1);
    r.turn(20);
    r.as(0);
    ck_assert_int_lt(MPID_TestNBSendTransfer(t.sid), 0);
    ck_assert_int_lt(MPID_TestNBRecvTransfer(back.rid), 0);
    ck_assert_uint_eq(r.world.open_sockets(0), sockets - 1);
    ck_assert_uint_eq(r.engine(0).queued_sends(), 0);
  }
}
END_TEST

// Each of the sockets that the rank's lanes are on.
std::vector<int> lane_sockets(SimRanks& r, int rank) { return r.world.connected(rank, 1 - rank); }

START_TEST(lane_that_breaks_costs_time_only) {
  for (int broken = 1; broken <= 3; ++broken)
    for (int turns = 1; turns < 14; turns += 3) {
      SimRanks r(2, narrow(), with_lanes(4));
      r.connect(0, 1);
      Transfer first(0, 1), t(0, 1), back(1, 0);
      first.pass(r);
      t.begin(r);
      back.begin(r);
      r.turn(turns);
      const std::vector<int> sockets = lane_sockets(r, 0);
      ck_assert_uint_eq(sockets.size(), 4);
      // The first one is lane 0.
      for (int i = 0; i < broken; ++i) r.world.reset(sockets[static_cast<std::size_t>(3 - i)]);
      t.end(r);
      back.end(r);
      r.turn(20);
      r.as(0);
      ck_assert_int_eq(MPID_ChannelPeerError(1), 0);
      ck_assert_uint_eq(r.engine(0).counters().lanes_lost, static_cast<std::uint64_t>(broken));
      ck_assert_uint_eq(r.engine(0).queued_sends() + r.engine(1).queued_sends(), 0);
      // They are opened again.
      r.world.pass(2'000'000'000);
      Transfer last(0, 1, 4 * kBytes, 8);
      last.pass(r);
      ck_assert_uint_eq(lanes_of(r, 0), static_cast<std::uint64_t>(3 + broken));
    }
}
END_TEST

// One lane breaks, and another one while what was on the first is sent again.
START_TEST(lanes_break_one_after_the_other_between_any_two_writes) {
  for (const std::uint64_t pipe : {6'000u, 60'000u})
    for (const int host : {0, 1})
      for (int at = 1; at < 100; ++at) {
        SimRanks r(2, narrow(pipe), with_lanes(3));
        r.connect(0, 1);
        Transfer first(0, 1), t(0, 1), back(1, 0);
        first.pass(r);
        r.turn(20);
        const std::vector<int> sockets = lane_sockets(r, 0);
        ck_assert_uint_eq(sockets.size(), 3);
        t.begin(r);
        back.begin(r);
        r.turn(2);
        r.world.reset(sockets[2]);
        int writes = 0;
        r.world.write_limit = [&](int writer, std::uint64_t could) {
          if (writer == host && ++writes == at) r.world.reset(sockets[1]);
          return could;
        };
        t.end(r);
        back.end(r);
        r.world.write_limit = nullptr;
        ck_assert_int_eq(MPID_ChannelPeerError(0), 0);
        ck_assert_uint_eq(r.engine(0).queued_sends() + r.engine(1).queued_sends(), 0);
      }
}
END_TEST

// Lane 2 breaks, with a frame under way. Its end is heard behind a packet, as the program takes
// that; then the program sends a message of which the kernel takes a part.
START_TEST(message_behind_the_end_of_a_lane_is_not_taken_for_what_was_on_it) {
  SimRanks r(2, narrow(45'000), [](EngineOptions& o) {
    with_lanes(3)(o);
    o.frame_bytes = 40'000;
  });
  r.connect(0, 1);
  Transfer first(0, 1), t(0, 1);
  first.pass(r);
  r.turn(20);
  const std::vector<int> sockets = lane_sockets(r, 0);
  ck_assert_uint_eq(sockets.size(), 3);
  t.begin(r);
  r.poll(0);
  r.world.hold_back(lane_sockets(r, 1)[2]);
  for (int i = 0; i < 20; ++i) {
    r.world.pass(100'000);
    r.poll(1);
    r.world.pass(100'000);
    r.poll(0);
  }
  r.world.reset(sockets[2]);
  r.world.pass(100'000);
  const std::uint8_t said = 9;
  r.as(1);
  ck_assert_int_eq(MPID_SendControl(&said, 1, 0), 0);
  r.poll(1);  // it says that the lane has ended
  r.world.pass(100'000);
  const Bytes data = bytes_of(30'000, 5);
  Bytes into(data.size());
  MPID_ChannelId rid = 0;
  r.as(1);
  ck_assert_int_eq(MPID_IRecvFromChannel(into.data(), into.size(), 0, &rid), 0);
  SendOp* op = nullptr;
  std::uint64_t limit = 1'000;
  {
    Engine& e = r.engine(0);
    r.as(0);
    Hold hold(e.gate());
    e.poll();
    std::uint8_t packet[8];
    int from = -1;
    ck_assert(e.control_ready());
    ck_assert_uint_eq(e.take_control(packet, sizeof packet, from), 1);
    ck_assert(!e.control_ready());  // the word is heard
    r.world.write_limit = [&limit](int host, std::uint64_t could) {
      return host == 0 ? std::min(could, std::exchange(limit, 1'000'000)) : could;
    };
    const iovec part = {packet, 1};
    const int rc = e.send_behind(1, part, FrameKind::kChannel, data.data(), data.size(), op);
    ck_assert(rc == 0 || rc == -EAGAIN);
    if (rc == -EAGAIN)
      ck_assert_int_eq(e.send(1, FrameKind::kChannel, 0, data.data(), data.size(), op), 0);
  }
  ck_assert(r.until([&] {
    r.as(1);
    std::uint8_t packet[8];
    int from = -1;
    while (MPID_ControlMsgAvail()) MPID_RecvAnyControl(packet, sizeof packet, &from);
    return MPID_RecvStatus(rid) != 0 && t.here(r);
  }));
  r.as(1);
  ck_assert_int_eq(MPID_WRecvFromChannel(rid), static_cast<int>(data.size()));
  ck_assert(into == data);
  t.end(r);
  ck_assert_int_eq(r.engine(0).peer_error(1), 0);
  r.world.write_limit = nullptr;
  if (op != nullptr) r.engine(0).release(op);
}
END_TEST

// The peer says that a frame has come which is still being written.
START_TEST(frame_that_has_not_been_written_is_not_acknowledged) {
  SimRanks r(2, narrow(), with_lanes(2));
  r.connect(0, 1);
  Transfer t(0, 1);
  t.begin(r);
  ck_assert(r.until([&] { return lanes_of(r, 0) == 1; }));
  for (int i = 0; i < 20; ++i) r.poll(0);
  constexpr std::uint64_t kHandshake = 2 * kHelloBytes, kFrame = 2'000 + kFrameHeaderBytes;
  const std::uint64_t written = r.world.written(lane_sockets(r, 0)[1]) - kHandshake;
  ck_assert_uint_ne(written % kFrame, 0);
  for (const bool whole : {true, false}) {
    {
      r.as(1);
      Hold hold(r.engine(1).gate());
      SendOp* op = nullptr;
      const LaneWord word = {1, false, written / kFrame + (whole ? 0 : 1)};
      r.engine(1).send(0, FrameKind::kLane, encode_lane_word(word), nullptr, 0, op);
      if (op != nullptr) r.engine(1).release(op);
    }
    r.world.pass(100'000);
    r.poll(0);
    r.as(0);
    ck_assert_int_eq(MPID_ChannelPeerError(1), whole ? 0 : EPROTO);
  }
}
END_TEST

START_TEST(silent_lane_is_noticed_and_its_data_goes_over_another) {
  SimRanks r(2, narrow(), [](EngineOptions& o) {
    with_lanes(4)(o);
    o.stream.keepalive_idle_s = o.stream.keepalive_interval_s = 1;
  });
  r.connect(0, 1);
  Transfer first(0, 1), t(0, 1, 4 * kBytes);
  first.pass(r);
  t.begin(r);
  r.turn(3);
  r.world.mute_socket(lane_sockets(r, 0)[2]);
  for (int i = 0; i < 100 && !t.here(r); ++i) poll_long(r);
  t.end(r);
  ck_assert_uint_eq(r.engine(0).counters().lanes_lost, 1);
}
END_TEST

// Its own rank polls for longer than any deadline, or computes.
START_TEST(peer_that_computes_in_a_handshake_gets_its_lane) {
  for (int steps = 0; steps < 10; ++steps)
    for (const int computing : {0, 1}) {
      SimRanks r(2, narrow(), with_lanes(2), 1, 0, 2);
      r.connect(0, 1);
      Transfer a(0, 1), b(1, 0);
      a.begin(r);
      for (int i = 0; i < steps; ++i) {
        r.poll(i % 2);
        r.world.skip(100'000);
      }
      b.begin(r);
      for (int i = 0; i < 120; ++i) {
        r.poll(1 - computing);
        r.world.pass(100'000'000);
      }
      a.end(r);
      b.end(r);
      r.turn(20);
      ck_assert_uint_ge(lanes_of(r, 0), 1);
      ck_assert_uint_eq(lanes_of(r, 0), lanes_of(r, 1));
      ck_assert_int_eq(MPID_ChannelPeerError(0), 0);
      const std::vector<int> sockets = lane_sockets(r, 0);
      ck_assert_uint_eq(sockets.size(), 2);
      ck_assert_int_ne(r.world.network_of(sockets[0]), r.world.network_of(sockets[1]));
    }
}
END_TEST

START_TEST(many_ranks_open_their_lanes_to_one_without_pushing_each_other_out) {
  constexpr int kCallers = 12;
  SimRanks r(1 + kCallers, narrow(60'000), with_lanes(16));
  std::vector<std::unique_ptr<Transfer>> all;
  for (int i = 1; i <= kCallers; ++i) r.connect(i, 0);
  for (int i = 1; i <= kCallers; ++i) {
    all.push_back(std::make_unique<Transfer>(i, 0));
    all.back()->begin(r);
  }
  for (int k = 0; k < 10; ++k) {  // the one computes
    for (int i = 1; i <= kCallers; ++i) r.poll(i);
    r.world.skip(100'000);
  }
  for (const auto& t : all) t->end(r);
  ck_assert(r.until([&] { return lanes_of(r, 0) == 15 * kCallers; }));
  ck_assert_uint_eq(r.engine(0).counters().connections_refused, 0);
}
END_TEST

// Acknowledgements wait for company while more comes, but not where the channel asks for them: its
// next word to the sender is behind them.
START_TEST(acknowledgement_that_is_asked_for_does_not_wait) {
  int waited = 0;
  for (int i = 0; i < 32; ++i) {
    const bool asked = i % 2 != 0;
    SimRanks r(2, narrow(), with_lanes(3));
    r.connect(0, 1);
    Transfer first(0, 1);
    first.pass(r);
    Transfer t(0, 1, static_cast<std::size_t>(60'000 + i / 2 * 2'000)), large(0, 1, 20 * kBytes);
    t.begin(r);
    large.begin(r);
    static bool here;
    here = false;
    r.as(1);
    MPID_OnComplete(
        t.rid,
        [](void* wanted, std::int64_t) {
          here = true;
          if (wanted != nullptr) MPID_ChannelAcknowledge(0);
        },
        asked ? &here : nullptr);
    for (int k = 0; !here; ++k) {
      ck_assert_int_lt(k, 10'000);
      r.poll(0);
      r.as(1);
      Hold hold(r.engine(1).gate());
      r.engine(1).poll_all();
    }
    const char word = 'w';
    r.as(1);
    ck_assert_int_eq(MPID_SendControl(&word, 1, 0), 0);
    r.as(0);
    {
      Hold hold(r.engine(0).gate());
      for (int k = 0; k < 1000 && !r.engine(0).control_ready(); ++k) r.engine(0).poll_all();
      char got = 0;
      int from = -1;
      ck_assert_uint_eq(r.engine(0).take_control(&got, 1, from), 1);
    }
    ck_assert(t.into == t.data);
    const bool sent = t.sent(r);
    if (asked) ck_assert(sent);
    waited += sent ? 0 : 1;
    large.end(r);
    ck_assert(sent || t.sent(r));
  }
  ck_assert_int_ge(waited, 1);
}
END_TEST

// A rank that many call keeps its descriptors for first connections, and hears of a lane that it
// does not let in ever more seldom.
START_TEST(lanes_of_peers_take_no_descriptor_above_the_bound) {
  int rank = 0;
  SimRanks r(2, narrow(), [&rank](EngineOptions& o) {
    with_lanes(4)(o);
    if (rank++ == 1) o.lane_descriptor_max = -1;
  });
  r.connect(0, 1);
  const std::uint64_t connected = r.world.open_sockets(1);
  for (int i = 0; i < 100; ++i) {
    Transfer t(0, 1, 60'000);
    t.pass(r);
    r.world.pass(1'000'000'000);
  }
  r.turn(20);
  ck_assert_uint_eq(lanes_of(r, 0) + lanes_of(r, 1), 0);
  ck_assert_uint_eq(r.world.open_sockets(1), connected);
  ck_assert_uint_ge(r.engine(1).counters().ties, 1);
  ck_assert_uint_le(r.engine(1).counters().ties, 16);  // two attempts at 0, 1, 3, 7, 15 s …
}
END_TEST

// Rank 0 has no descriptor left but the spare one, and rank 2 may call yet.
START_TEST(lanes_of_peers_take_no_spare_descriptor) {
  SimRanks r(3, narrow(), with_lanes(4));
  EngineOptions o;
  o.size = 3;
  o.peers = r.peers.data();
  o.connect_timeout_ns = 1'000'000'000;
  with_lanes(4)(o);
  r.channels[0].reset();
  r.engines[0].reset();
  o.listeners[0] = r.world.make_listener(0);
  o.spare = r.world.net(0).open_stream(AF_INET);
  r.engines[0] = std::make_unique<Engine>(r.world.net(0), o);
  ck_assert_int_eq(r.engine(0).start(), 0);
  r.channels[0] = std::make_unique<ChannelState>(r.engine(0));
  r.channel(0).wait_policy = {0, 1'000, 50'000};
  r.engine(0).set_outstanding(true);
  r.connect(0, 1);
  r.world.descriptors_left = 0;
  for (int i = 0; i < 30; ++i) {
    Transfer t(1, 0, 60'000);
    t.pass(r);
    r.world.pass(100'000'000);
  }
  ck_assert_uint_eq(lanes_of(r, 0), 0);
  ck_assert_int_eq(r.engine(0).peer_error(2), 0);
  r.connect(2, 0);
}
END_TEST

START_TEST(peer_that_sends_what_was_not_asked_for_is_given_up) {
  const Bytes data = bytes_of(10'000, 1);
  for (const std::size_t total : {1'000u, 10'000u}) {  // less than what was there before; all of it
    SimRanks r(2, SimRanks::no_faults(), with_lanes(1));
    r.connect(0, 1);
    Bytes into(10'000, 0);
    MPID_TransferId id = 0;
    MPID_ChannelId rid = 0, sid = 0;
    r.as(1);
    ck_assert_int_eq(MPID_CreateRecvTransfer(nullptr, 10'000, 0, &id), 0);
    ck_assert_int_eq(MPID_StartNBRecvTransferRest(into.data(), nullptr, 5'000, 10'000, 0, id, &rid),
                     0);
    r.as(0);
    MPID_StartNBSendTransfer(data.data(), total, 1, id, &sid);
    r.turn(20);
    r.as(1);
    ck_assert_int_eq(MPID_ChannelPeerError(0), EPROTO);
  }
}
END_TEST

// Its connection cannot be put back into epoll.
START_TEST(peer_that_is_lost_in_the_middle_of_a_write_leaves_no_lanes_behind) {
  SimRanks r(2, narrow(), [](EngineOptions& o) {
    with_lanes(0)(o);
    o.detach_after = 1;
  });
  r.connect(0, 1);
  Transfer first(0, 1), t(0, 1);
  first.pass(r);
  t.create(r);
  t.receive(r);
  for (int i = 0; i < 4; ++i) {
    const char packet = 'x';
    char got = 0;
    int from = -1;
    r.as(1);
    MPID_SendControl(&packet, 1, 0);
    r.world.skip(100'000);
    r.as(0);
    Hold hold(r.engine(0).gate());
    r.engine(0).set_signals(false);
    for (int k = 0; k < 5; ++k) r.engine(0).poll();
    if (r.engine(0).control_ready()) r.engine(0).take_control(&got, 1, from);
    r.engine(0).poll();
  }
  r.world.fail_watch = ENOSPC;
  r.as(0);
  MPID_StartNBSendTransfer(t.data.data(), t.data.size(), 1, t.id, &t.sid);
  ck_assert_int_eq(MPID_ChannelPeerError(1), ENOSPC);
}
END_TEST

// Lost together with the peer's words about others.
START_TEST(first_connection_that_breaks_is_still_the_end) {
  SimRanks r(2, narrow(), with_lanes(4));
  r.connect(0, 1);
  Transfer first(0, 1), t(0, 1);
  first.pass(r);
  t.begin(r);
  r.turn(3);
  r.world.reset(lane_sockets(r, 0)[0]);
  r.turn(20);
  r.as(0);
  ck_assert_int_lt(MPID_TestNBSendTransfer(t.sid), 0);
  ck_assert_int_ne(MPID_ChannelPeerError(1), 0);
}
END_TEST

START_TEST(words_about_lanes_that_cannot_be_end_the_peer) {
  const LaneWord words[] = {{1, false, 1000}, {1, true, 1}, {9, false, 5}};
  for (const LaneWord& word : words)
    for (const bool has_lanes : {false, true}) {
      SimRanks r(2, narrow(), with_lanes(4));
      r.connect(0, 1);
      Transfer first(0, 1);
      if (has_lanes) {
        first.pass(r);
      }
      r.as(0);
      {
        Hold hold(r.engine(0).gate());
        SendOp* op = nullptr;
        ck_assert_int_eq(
            r.engine(0).send(1, FrameKind::kLane, encode_lane_word(word), nullptr, 0, op), 0);
        if (op != nullptr) r.engine(0).release(op);
      }
      r.turn(20);
      r.as(1);
      ck_assert_int_eq(MPID_ChannelPeerError(0), EPROTO);
    }
}
END_TEST

// A peer that has ended closes all; what it said last is on its first connection.
START_TEST(lane_that_ends_in_order_is_no_loss) {
  SimRanks r(2, narrow(), with_lanes(4));
  r.connect(0, 1);
  Transfer t(0, 1);
  t.pass(r);
  r.as(1);
  const char last = 'l';
  ck_assert_int_eq(MPID_SendControl(&last, 1, 0), 0);
  r.engines[1].reset();
  r.world.skip(1'000'000);
  r.as(0);
  char got = 0;
  int from = -1;
  Hold hold(r.engine(0).gate());
  for (int i = 0; i < 20 && !r.engine(0).control_ready(); ++i) r.engine(0).poll_all();
  ck_assert_uint_eq(r.engine(0).take_control(&got, 1, from), 1);
  ck_assert_int_eq(got, last);
}
END_TEST

// Something idle between the two closes the lane, which is no loss. The next connection is reset
// when the one that was called has it, and the caller does not know that yet: what is said then
// counts what came on that one.
START_TEST(words_are_about_the_connection_that_a_lane_has_now) {
  for (const int sender : {0, 1}) {
    SimRanks r(2, narrow(), with_lanes(2));
    r.connect(0, 1);
    for (int i = 0; i < 2; ++i) {  // the second one goes over both
      Transfer before(sender, 1 - sender, 60'000);
      before.pass(r);
      r.turn(20);
    }
    r.world.end_both(lane_sockets(r, 0)[1]);
    r.turn(5);
    std::vector<std::unique_ptr<Transfer>> later;
    for (int i = 0; lanes_of(r, 1) < 2; ++i) {
      ck_assert_int_lt(i, 200);
      for (const int from : {0, 1}) {
        later.push_back(std::make_unique<Transfer>(from, 1 - from, kBytes, i));
        later.back()->begin(r);
      }
      r.poll(0);
      r.world.skip(100'000);
      r.poll(1);
    }
    ck_assert_uint_eq(lanes_of(r, 0), 1);
    const int called = lane_sockets(r, 1).back(), caller = r.world.far_end(called);
    r.world.hold_back(caller);
    for (int i = 0; i < 3; ++i) r.poll(1);
    r.world.reset_one_end(called);
    for (int i = 0; i < 20; ++i) {
      r.poll(i % 2);
      r.world.skip(100'000);
    }
    r.world.reset_one_end(caller);
    for (const auto& t : later) t->end(r);
    for (const int rank : {0, 1}) {
      r.as(rank);
      ck_assert_int_eq(MPID_ChannelPeerError(1 - rank), 0);
    }
  }
}
END_TEST

// An acknowledgement that could wait for others has nothing to wait for any more.
START_TEST(lane_that_falls_silent_in_a_frame_does_not_keep_what_came_on_others) {
  SimRanks r(2, narrow(), [](EngineOptions& o) {
    with_lanes(3)(o);
    o.stream.keepalive_idle_s = 1000;
  });
  r.connect(0, 1);
  const auto polled_until = [&](const auto& done) {
    for (int i = 0; i < 100 && !done(); ++i) poll_long(r);
    return done();
  };
  Transfer first(0, 1), large(0, 1);
  first.pass(r);
  large.begin(r);
  r.turn(3);
  r.world.mute_socket(lane_sockets(r, 0)[2]);
  r.turn(200);
  for (std::size_t bytes = 52'000; bytes < 64'000; bytes += 2'000) {
    Transfer t(0, 1, bytes);
    t.begin(r);
    ck_assert(polled_until([&] { return t.here(r); }));
    ck_assert(polled_until([&] { return t.sent(r); }));
  }
  ck_assert(!large.here(r));
  ck_assert_uint_eq(r.engine(0).counters().lanes_lost, 0);
  r.world.cut(0, 1);
}
END_TEST

// It has TCP, and no answer: somebody has cut the network since.
START_TEST(attempt_that_nobody_answers_any_more_ends) {
  SimRanks r(2, narrow(), [](EngineOptions& o) {
    with_lanes(2)(o);
    o.stream.keepalive_idle_s = o.stream.keepalive_interval_s = 1;
  });
  r.connect(0, 1);
  std::vector<std::unique_ptr<Transfer>> all;
  const auto begin = [&] {
    all.push_back(std::make_unique<Transfer>(0, 1));
    all.back()->begin(r);
  };
  begin();
  for (int i = 0; lane_sockets(r, 0).size() < 2; ++i) {
    ck_assert_int_lt(i, 100);
    r.poll(0);
    r.world.skip(100'000);
  }
  r.world.mute_socket(lane_sockets(r, 0)[1]);
  for (int i = 0; i < 200 && lanes_of(r, 0) == 0; ++i) {
    if (i % 20 == 0) begin();
    poll_long(r);
  }
  ck_assert_uint_eq(lanes_of(r, 0), 1);
  for (const auto& t : all) t->end(r);
}
END_TEST

// What was on a lane that breaks goes again over the first connection, which keeps of it what it
// can keep, in the handler.
START_TEST(frames_that_go_again_in_the_handler_are_kept_or_wait) {
  sim::Faults slow = SimRanks::no_faults();
  slow.delay_max_ns = 500'000;
  SimRanks r(2, slow, [](EngineOptions& o) {
    with_lanes(2)(o);
    o.frame_bytes = 100;
    o.resume = true;
    o.connect_timeout_ns = 30'000'000'000;
  });
  r.connect(0, 1);
  Transfer first(0, 1, 60'000), t(0, 1, 3'000 * 100);
  first.pass(r);
  r.turn(20);
  const std::vector<int> sockets = lane_sockets(r, 0);
  ck_assert_uint_eq(sockets.size(), 2);
  t.create(r);
  t.receive(r);
  r.world.mute_socket(sockets[1]);
  int writes = 0;
  r.world.write_limit = [&](int host, std::uint64_t could) {
    return host == 0 && ++writes % 40 == 0 ? 0 : could;
  };
  t.send(r);
  for (int i = 0; i < 400 && r.engine(0).queued_sends() != 0; ++i) {
    r.poll(0);
    r.world.pass(1'000'000);
  }
  r.world.write_limit = nullptr;
  r.world.reset(sockets[1]);
  for (int i = 0; i < 3; ++i) {
    r.poll(1);
    r.world.pass(1'000'000);
    r.as(0);
    Hold hold(r.engine(0).gate());
    ProgressScope scope(r.engine(0), r.engine(0).handler_mode());
    r.engine(0).poll_all();
  }
  ck_assert_uint_eq(r.engine(0).counters().lanes_lost, 1);
  ck_assert_uint_eq(r.engine(0).counters().resume_gaps, 0);
  ck_assert(r.engine(0).is_starved());
  t.end(r);
}
END_TEST

int main() { return run_tests("lanes"); }
