// Lanes: opened, admitted, spread over, ended.
#include "mplite/engine/lanes.h"

#include <algorithm>
#include <cerrno>

#include "mplite/net/connect_error.h"
#include "mplite/observe/trace.h"

namespace mplite {
namespace {

constexpr std::int64_t kRetryNs = 1'000'000'000;  // doubled each time
constexpr std::int64_t kReturnNs = 2'000'000'000;
constexpr int kClosesMost = 60;  // some minutes
constexpr std::int64_t kShortageNs = 10'000'000'000;
constexpr std::int64_t kLookNs = 5'000'000;  // between questions to the policy
// Frames that came on a lane while others come are acknowledged so many together.
constexpr std::uint64_t kTellFrames = 4;

bool is_up(const Connection* c) { return c != nullptr && c->state == ConnectionState::kUp; }

}  // namespace

bool Lanes::make_set(Peer& p) {
  if (p.lanes != nullptr) return true;
  if (core_.lane_sets.free_count() == 0 &&
      (core_.mode.in_signal_handler || !core_.lane_sets.reserve(1)))
    return false;
  p.lanes = core_.lane_sets.take();
  p.lanes->peer = static_cast<int>(&p - core_.peers);
  p.lanes->policy.start(core_.options.lanes);
  learn_address(*p.lanes, *p.connection);
  return true;
}

void Lanes::want(int peer) {
  Peer& p = core_.peers[peer];
  if (p.state != PeerState::kUp || core_.is_remote(peer) || !make_set(p)) return;
  open_missing(peer);
}

void Lanes::open_missing(int peer) {
  LaneSet& set = *core_.peers[peer].lanes;
  if (set.surplus != 0) give_back(peer);
  bool waits = false;  // a lane for the address that was left, until its network is there again
  int attempts = 0;
  for (const Lane& lane : set.lane)
    attempts += lane.connection != nullptr && !is_up(lane.connection) ? 1 : 0;
  for (int i = 1; i < set.policy.wanted() && attempts < kAttempts; ++i) {
    if (!set.lane[i].is_free()) {
      ask_for_end(set, set.lane[i]);
      continue;
    }
    const std::int64_t now = core_.net.now_ns();
    if (set.retry_ns != 0 && now < set.retry_ns) return;
    const int left = i < set.policy.used() && !waits ? address_left(peer) : -1;
    waits |= left >= 0;
    const int which = left >= 0 ? left : address_in_turn(peer, i, now);
    if (which < 0 || now < set.addresses.closed_ns[which]) continue;
    open(peer, i, which);
    ++attempts;
  }
}

// A lane that the peer has closed without a word is wanted again: now both sides say what has come.
void Lanes::ask_for_end(LaneSet& set, Lane& lane) {
  if (lane.connection != nullptr || !lane.end_owed) return;
  lane.end_owed = false;
  lane.end_due = true;
  core_.lanes_are_due(set);
}

// Connections with that address, up or being made.
int Lanes::connections_with(int peer, int which) const {
  const Peer& p = core_.peers[peer];
  const auto has = [&](const Connection* c) {
    return c != nullptr && remote_.find_address(peer, c->remote) == which ? 1 : 0;
  };
  int count = has(p.connection);
  for (const Lane& lane : p.lanes->lane) count += has(lane.connection);
  return count;
}

// Its network was used, and is not any more. -1: of none.
int Lanes::address_left(int peer) const {
  const LaneSet& set = *core_.peers[peer].lanes;
  for (int i = 0; i < remote_.address_count(peer); ++i)
    if ((set.addresses.led >> i & 1) != 0 && connections_with(peer, i) == 0) return i;
  return -1;
}

// The addresses of the peer take turns, from that of its first connection on. -1: none can be tried
// now.
int Lanes::address_in_turn(int peer, int number, std::int64_t now) const {
  const Peer& p = core_.peers[peer];
  const int count = remote_.address_count(peer);
  const auto is_usable = [&](int i) {
    return (p.lanes->addresses.shunned >> i & 1) == 0 && now >= p.lanes->addresses.closed_ns[i];
  };
  int usable = 0;
  for (int i = 0; i < count; ++i) usable += is_usable(i) ? 1 : 0;
  if (usable == 0) return -1;
  int turn = number % usable;
  int i = p.turns.current() % count;
  for (; !is_usable(i) || turn-- > 0;) i = (i + 1) % count;
  return i;
}

void Lanes::learn_address(LaneSet& set, const Connection& c) const {
  const int which = remote_.find_address(set.peer, c.remote);
  if (which < 0) return;
  set.addresses.led = static_cast<std::uint8_t>(set.addresses.led | 1u << which);
  set.addresses.closes[which] = 0;
}

void Lanes::open(int peer, int number, int which) {
  Peer& p = core_.peers[peer];
  if (core_.connections.free_count() == 0 && (core_.mode.in_signal_handler || !up_.refill()))
    return;
  const sockaddr_storage address = remote_.address_of(peer, which);
  const int fd = core_.net.open_stream(address.ss_family);
  ++core_.counters.other_calls;
  if (fd < 0 || fd > core_.options.lane_descriptor_max) {
    if (fd >= 0) core_.net.close(fd);
    p.lanes->retry_ns = core_.net.now_ns() + kShortageNs;
    return;
  }
  Connection& c = connector_.begin(fd, peer, address);
  c.lane = c.handshake.initiator[0] = static_cast<std::uint8_t>(number);
  c.handshake.address = static_cast<std::uint8_t>(which);
  c.handshake.deadline_ns = core_.net.now_ns() + kAttemptNs;
  p.lanes->lane[number].connection = &c;
  if (const int rc = connector_.call(c); rc < 0) attempt_failed(c, -rc);
}

// Only an address that does not answer, or where somebody else does, is left out. One that has led
// to the peer, and whose network has failed, is not: a lane waits for some minutes until that is
// there again.
void Lanes::attempt_failed(Connection& c, int error) {
  LaneSet& set = *core_.peers[c.peer].lanes;
  LaneAddresses& addresses = set.addresses;
  set.lane[c.lane].connection = nullptr;
  const std::int64_t now = core_.net.now_ns();
  const bool address = error == EPROTO || (c.state == ConnectionState::kConnecting &&
                                           !is_closed(error) && !is_shortage(error));
  const int which = c.handshake.address;
  const auto bit = static_cast<std::uint8_t>(1u << which);
  const bool refused = error == EPROTO || error == ECONNREFUSED;
  if (address && (refused || addresses.closes[which] == kClosesMost))
    addresses.led = static_cast<std::uint8_t>(addresses.led & ~bit);
  if (address && (addresses.led & bit) != 0) {
    addresses.closed_ns[which] = now + kReturnNs;
    ++addresses.closes[which];
  } else if (now >= set.retry_ns) {  // or else it was begun together with one that failed before
    if (address) addresses.shunned = static_cast<std::uint8_t>(addresses.shunned | bit);
    const bool all = addresses.shunned == (1u << remote_.address_count(c.peer)) - 1;
    if (all || !address) {
      set.retry_ns = now + (kRetryNs << std::min<int>(addresses.failures, 6));
      if (addresses.failures < UINT8_MAX) ++addresses.failures;
    }
    if (all) addresses.shunned = 0;
  }
  connector_.drop(c);
}

void Lanes::look_at_attempts(std::int64_t now) {
  for (Connection* c = core_.handshaking.first(); c != nullptr;) {
    const bool over = c->handshake.ours && c->lane != 0 &&
                      c->state == ConnectionState::kConnecting && now >= c->handshake.deadline_ns;
    Connection* const next = c->list_next;
    if (over) attempt_failed(*c, ETIMEDOUT);
    c = next;
  }
}

void Lanes::look_for_silence() {
  for (int i = 0; i < core_.options.size; ++i) {
    LaneSet* const set = core_.peers[i].lanes;
    if (set == nullptr) continue;
    for (const Lane& lane : set->lane)
      if (lane.received != lane.told) acknowledge(i);
  }
  const std::int64_t limit_ms = core_.options.stream.silence_ms();
  for (Connection* c = core_.handshaking.first(); c != nullptr && limit_ms != 0;) {
    Connection* const next = c->list_next;
    if (c->handshake.ours && c->lane != 0 && is_tcp_up(*c)) {
      ++core_.counters.other_calls;
      if (core_.net.is_silent(c->fd, limit_ms)) attempt_failed(*c, ETIMEDOUT);
    }
    c = next;
  }
}

bool Lanes::admit(const Connection& c, int peer) {
  Peer& p = core_.peers[peer];
  // The spare descriptor is for ranks that are missing: without it, no other is let in.
  const bool has_room = c.fd <= core_.options.lane_descriptor_max &&
                        (!listener_.has_spare() || listener_.spare_is_there());
  if (p.state != PeerState::kUp || !has_room || !make_set(p)) return false;
  Lane& lane = p.lanes->lane[c.lane];
  if (lane.is_free()) return true;
  ask_for_end(*p.lanes, lane);
  // With an attempt of ours: is_lower() says which of the two stays.
  if (lane.connection == nullptr || is_up(lane.connection) || !connector_.is_lower(peer))
    return false;
  connector_.drop(*lane.connection);
  lane.connection = nullptr;
  return lane.is_free();
}

void Lanes::come_up(Connection& c, int peer) {
  Peer& p = core_.peers[peer];
  connector_.settle(c, peer);
  p.lanes->lane[c.lane] = {};
  p.lanes->lane[c.lane].connection = &c;
  p.lanes->share.forget(c.lane);
  p.lanes->addresses.failures = 0;
  p.lanes->retry_ns = 0;
  learn_address(*p.lanes, c);
  ++core_.counters.lanes;
  core_.net.set_unsent_limit(c.fd, p.lanes->policy.unsent_bytes());
  spread(p);
  if (c.handshake.ours) open_missing(peer);
  tx_.flush(peer);
}

void Lanes::spread(Peer& p) {
  bool several = false;
  for (int i = 1; i < p.lanes->policy.used(); ++i) several |= is_up(p.lanes->lane[i].connection);
  if (several == p.lanes->spread) return;
  p.lanes->spread = several;
  if (is_up(p.connection))
    core_.net.set_unsent_limit(p.connection->fd, several ? p.lanes->policy.unsent_bytes() : 0);
  core_.counters.other_calls += 2;
}

void Lanes::first_came_up(int peer) {
  const Peer& p = core_.peers[peer];
  if (p.state != PeerState::kUp || p.lanes == nullptr) return;
  learn_address(*p.lanes, *p.connection);
  p.lanes->share.forget(0);
  move_lane(peer);
  if (p.lanes->spread) core_.net.set_unsent_limit(p.connection->fd, p.lanes->policy.unsent_bytes());
}

// The first connection has taken another address than before, which a lane has, too: that changes
// to the one that was left, whose network would not be used again otherwise.
void Lanes::move_lane(int peer) {
  const LaneSet& set = *core_.peers[peer].lanes;
  if (address_left(peer) < 0) return;
  for (int i = kLanesMax - 1; i > 0; --i) {
    const Connection* const c = set.lane[i].connection;
    if (is_up(c) && connections_with(peer, remote_.find_address(peer, c->remote)) > 1)
      return end(peer, i, false);
  }
}

void Lanes::wait(int peer) {
  Peer& p = core_.peers[peer];
  LaneSet& set = *p.lanes;
  const std::int64_t now = core_.net.now_ns();
  if (set.deciding || now < set.looked_ns + kLookNs) return;
  set.looked_ns = now;
  LaneSample samples[kLanesMax] = {};
  int up = 0;
  for (; up < kLanesMax; ++up) {
    const Connection* c = up == 0 ? p.connection : set.lane[up].connection;
    StreamReport report;
    if (!is_up(c) || !core_.net.report(c->fd, report)) break;
    ++core_.counters.other_calls;
    samples[up] = {report.acknowledged, report.busy_us * 1000, report.window_limited_us * 1000};
  }
  const int used = set.policy.used(), wanted = set.policy.wanted();
  const unsigned paid = set.policy.paid();
  set.policy.look(now, samples, up, set.write_ns);
  note_trial(set, used, wanted, paid);
  open_missing(peer);
  spread(p);
  if (set.policy.used() <= used) return;
  set.deciding = true;  // the writes that follow ask again
  tx_.flush(peer);
  if (p.lanes == &set) set.deciding = false;
}

// What the policy has decided; the others are what it said before.
void Lanes::note_trial(LaneSet& set, int used, int wanted, unsigned paid) {
  const int used_now = set.policy.used(), wanted_now = set.policy.wanted();
  core_.counters.lane_trials_paid += set.policy.paid() - paid;
  if (used_now == used && wanted_now == wanted) return;
  trace(TraceEvent::kLanes, set.peer, static_cast<std::uint64_t>(used_now),
        static_cast<std::uint64_t>(wanted_now));
  if (wanted_now > wanted) ++core_.counters.lane_trials;
  if (wanted_now < wanted) set.surplus = static_cast<std::uint8_t>(wanted);
}

// Lanes that we have opened for a trial: once nothing of ours is on them, and unless the peer has
// sent on them, for whom they may pay.
void Lanes::give_back(int peer) {
  LaneSet& set = *core_.peers[peer].lanes;
  bool left = false;
  for (int i = set.policy.wanted(); i < set.surplus; ++i) {
    const Lane& lane = set.lane[i];
    if (!is_up(lane.connection) || !lane.connection->handshake.ours || lane.received != 0) continue;
    const bool idle =
        lane.connection->tx.count == 0 && lane.out.count() == 0 && !lane.connection->rx.in_frame;
    if (idle) end(peer, i, false);
    left |= !idle;
  }
  if (!left) set.surplus = 0;
}

void Lanes::lose(Connection& c, int error, StreamFailure how) {
  if (c.lane == 0) return connector_.lose_first(c, error, how);
  const int peer = c.peer, number = c.lane;
  Lane& lane = core_.peers[peer].lanes->lane[number];
  const bool empty = !c.rx.in_frame && c.rx.begin == c.rx.end && lane.out.count() == 0;
  // A peer that has ended closes all; what it has said last comes on lane 0. Nothing is said to it,
  // unless it turns out to be there.
  if (empty && (how == StreamFailure::kEnd || core_.quiescing)) {
    connector_.drop(c);
    lane.connection = nullptr;
    lane.ended_here = lane.end_owed = true;
    return spread(core_.peers[peer]);
  }
  // Not the network, but a peer that breaks the protocol, or memory that is not there.
  if (!is_closed(error) && !may_pass(error)) return connector_.lose(peer, error);
  core_.notes.note(NoteCode::kLaneLost, peer, error, &c.remote);
  end(peer, number, true);
}

// This side's end of the lane: no frame is taken from it any more, and none is given to it.
void Lanes::end(int peer, int number, bool broken) {
  Peer& p = core_.peers[peer];
  Lane& lane = p.lanes->lane[number];
  core_.lanes_are_due(*p.lanes);
  if (lane.ended_here) {
    if (lane.connection != nullptr) connector_.drop(*lane.connection);  // an attempt
    lane.connection = nullptr;
    lane.end_due |= lane.end_owed;
    lane.end_owed = false;
    return;
  }
  if (Connection* c = lane.connection; c != nullptr) {
    c->tx.count = 0;
    if (is_up(c)) {
      rx_.undo_frame(*c);
      core_.counters.lanes_lost += broken ? 1 : 0;
    }
    connector_.drop(*c);
    lane.connection = nullptr;
  }
  lane.ended_here = lane.end_due = true;
  p.lanes->retry_ns = core_.net.now_ns() + kRetryNs;
  spread(p);
}

void Lanes::hear(int peer, const LaneWord& word) {
  LaneSet* const set = core_.peers[peer].lanes;
  if (set == nullptr) return connector_.lose(peer, EPROTO);
  Lane& lane = set->lane[word.lane];
  if (word.frames < lane.acknowledged ||
      !tx_.acknowledge(peer, word.lane, word.frames - lane.acknowledged))
    return connector_.lose(peer, EPROTO);
  if (!word.ended || core_.peers[peer].lanes != set) return;
  lane.ended_there = true;
  end(peer, word.lane, true);
  tx_.send_again(peer, word.lane);
  if (!lane.end_due) lane = {};
}

Verdict Lanes::begin_word(void* self, int peer, const FrameHeader& header, Destination&) {
  LaneWord word;
  return !static_cast<Lanes*>(self)->core_.is_remote(peer) && header.total == 0 &&
                 decode_lane_word(header.id, word)
             ? Verdict::kTake
             : Verdict::kReject;
}

void Lanes::end_word(void* self, int peer, const FrameHeader& header) {
  LaneWord word;
  decode_lane_word(header.id, word);
  static_cast<Lanes*>(self)->hear(peer, word);
}

// False: not now (no memory in the handler), or the peer is lost.
bool Lanes::say(int peer, int number, bool ended) {
  Lane& lane = core_.peers[peer].lanes->lane[number];
  const std::uint64_t received = lane.received;
  SendOp* op = nullptr;
  if (tx_.send(peer, FrameKind::kLane, encode_lane_word({number, ended, received}), nullptr, 0,
               op) < 0)
    return false;
  if (op != nullptr) tx_.release(op);
  if (core_.peers[peer].lanes == nullptr) return false;
  lane.told = received;
  return true;
}

void Lanes::acknowledge(int peer) {
  LaneSet* const set = core_.peers[peer].lanes;
  if (set == nullptr) return;
  set->tell_all = true;
  core_.lanes_are_due(*set);
}

bool Lanes::serve(LaneSet& set) {
  const int peer = set.peer;
  Peer& p = core_.peers[peer];
  bool more_comes = false;
  for (const Lane& lane : set.lane)
    more_comes |= is_up(lane.connection) && lane.connection->rx.in_frame;
  for (int i = 1; i < kLanesMax; ++i) {
    Lane& lane = set.lane[i];
    const std::uint64_t untold = lane.received - lane.told;
    const bool may_wait = more_comes && untold < kTellFrames && !set.tell_all;
    if (!lane.end_due && (untold == 0 || may_wait)) continue;
    const bool ends =
        lane.end_due;  // the writes that follow may end it, too: that is said next time
    if (!say(peer, i, ends)) return p.lanes != &set;
    if (ends) lane.end_due = false;
    if (!lane.end_due && lane.ended_here && lane.ended_there) lane = {};
  }
  set.tell_all = false;
  tx_.flush(peer);
  return true;
}

void Lanes::serve_due() {
  DeferFree defer(core_);
  while (LaneSet* set = core_.due_lanes) {
    core_.due_lanes = set->due_next;
    set->due = false;
    if (serve(*set)) continue;
    core_.lanes_are_due(*set);  // there was no memory in the handler
    core_.note_starved();
    return;
  }
}

}  // namespace mplite
