// Lanes: opened, admitted, spread over, ended.
#include "mplite/engine/lanes.h"

#include <algorithm>
#include <cerrno>

namespace mplite {
namespace {

constexpr std::int64_t kRetryNs = 1'000'000'000;  // doubled each time
constexpr std::int64_t kLookNs = 5'000'000;       // between questions to the policy

bool is_up(const Connection* c) { return c != nullptr && c->state == ConnectionState::kUp; }

}  // namespace

bool Lanes::make_set(Peer& p) {
  if (p.lanes != nullptr) return true;
  if (core_.lane_sets.free_count() == 0 &&
      (core_.mode.in_signal_handler || !core_.lane_sets.reserve(1)))
    return false;
  p.lanes = core_.lane_sets.take();
  p.lanes->policy.start(core_.options.lanes);
  return true;
}

void Lanes::want(int peer) {
  Peer& p = core_.peers[peer];
  if (p.state != PeerState::kUp || core_.is_remote(peer) || !make_set(p)) return;
  open_missing(peer);
}

void Lanes::open_missing(int peer) {
  LaneSet& set = *core_.peers[peer].lanes;
  for (int i = 1; i < set.policy.wanted(); ++i) {
    if (set.lane[i] != nullptr) continue;
    if (set.retry_ns != 0 && core_.net.now_ns() < set.retry_ns) return;
    open(peer, i);
  }
}

// The addresses of the peer take turns, from that of its first connection on.
int Lanes::address_for(const Peer& p, int number, int count) {
  int left = 0;
  for (int i = 0; i < count; ++i) left += (p.lanes->shunned >> i & 1) == 0 ? 1 : 0;
  int turn = number % left;
  int i = p.turns.current() % count;
  for (; (p.lanes->shunned >> i & 1) != 0 || turn-- > 0;) i = (i + 1) % count;
  return i;
}

void Lanes::open(int peer, int number) {
  Peer& p = core_.peers[peer];
  if (core_.connections.free_count() == 0 && (core_.mode.in_signal_handler || !up_.refill()))
    return;
  const int which = address_for(p, number, remote_.address_count(peer));
  const sockaddr_storage address = remote_.address_of(peer, which);
  const int fd = core_.net.open_stream(address.ss_family);
  ++core_.counters.other_calls;
  if (fd < 0) {
    p.lanes->retry_ns = core_.net.now_ns() + kRetryNs;
    return;
  }
  Connection& c = connector_.begin(fd, peer, address);
  c.lane = c.handshake.initiator[0] = static_cast<std::uint8_t>(number);
  c.handshake.address = static_cast<std::uint8_t>(which);
  c.handshake.deadline_ns = core_.net.now_ns() + kAttemptNs;
  p.lanes->lane[number] = &c;
  if (connector_.call(c) < 0) attempt_failed(c);
}

void Lanes::attempt_failed(Connection& c) {
  LaneSet& set = *core_.peers[c.peer].lanes;
  set.lane[c.lane] = nullptr;
  const std::int64_t now = core_.net.now_ns();
  if (now >= set.retry_ns)  // or else it was begun together with one that has failed before
    set.shunned = static_cast<std::uint8_t>(set.shunned | 1u << c.handshake.address);
  if (set.shunned == (1u << remote_.address_count(c.peer)) - 1) {
    set.shunned = 0;
    set.retry_ns = now + (kRetryNs << std::min<int>(set.failures, 6));
    if (set.failures < UINT8_MAX) ++set.failures;
  }
  connector_.drop(c);
}

void Lanes::look_at_attempts(std::int64_t now) {
  for (Connection* c = core_.handshaking.first(); c != nullptr;) {
    const bool over = c->handshake.ours && c->lane != 0 && now >= c->handshake.deadline_ns;
    Connection* const next = c->list_next;
    if (over) attempt_failed(*c);
    c = next;
  }
}

bool Lanes::admit(const Connection& c, int peer) {
  Peer& p = core_.peers[peer];
  if (p.state != PeerState::kUp || !make_set(p)) return false;
  Connection*& place = p.lanes->lane[c.lane];
  if (is_up(place) || (place != nullptr && !connector_.is_lower(peer))) return false;
  if (place != nullptr) connector_.drop(*place);
  place = nullptr;
  return true;
}

void Lanes::come_up(Connection& c, int peer) {
  Peer& p = core_.peers[peer];
  connector_.settle(c, peer);
  p.lanes->lane[c.lane] = &c;
  p.lanes->failures = 0;
  p.lanes->retry_ns = 0;
  ++core_.counters.lanes;
  core_.net.set_unsent_limit(c.fd, kUnsentBytes);
  spread(p);
  tx_.flush(peer);
}

void Lanes::spread(Peer& p) {
  bool several = false;
  for (int i = 1; i < p.lanes->policy.used(); ++i) several |= is_up(p.lanes->lane[i]);
  if (several == p.lanes->spread) return;
  p.lanes->spread = several;
  core_.net.set_unsent_limit(p.connection->fd, several ? kUnsentBytes : 0);
  core_.counters.other_calls += 2;
}

void Lanes::wait(int peer) {
  Peer& p = core_.peers[peer];
  LaneSet& set = *p.lanes;
  const std::int64_t now = core_.net.now_ns();
  if (now < set.looked_ns + kLookNs) return;
  set.looked_ns = now;
  LaneSample samples[kLanesMax] = {};
  int up = 0;
  for (; up < kLanesMax; ++up) {
    const Connection* c = up == 0 ? p.connection : set.lane[up];
    StreamReport report;
    if (!is_up(c) || !core_.net.report(c->fd, report)) break;
    ++core_.counters.other_calls;
    samples[up] = {report.acknowledged, report.busy_us * 1000, report.window_limited_us * 1000};
  }
  set.policy.look(now, samples, up, set.write_ns);
  open_missing(peer);
  spread(p);
  tx_.flush(peer);
}

void Lanes::lose(Connection& c, int error, bool ended) {
  const bool empty =
      ended && c.lane != 0 && !c.rx.in_frame && c.rx.begin == c.rx.end && c.tx.count == 0;
  if (!empty) return connector_.lose(c.peer, error);
  Peer& p = core_.peers[c.peer];
  p.lanes->lane[c.lane] = nullptr;
  connector_.drop(c);
  spread(p);
}

}  // namespace mplite
