// Our attempts, and connections and peers that are lost.
#include "mplite/engine/connector.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mplite/base/address.h"
#include "mplite/net/connect_error.h"
#include "mplite/net/loss.h"

namespace mplite {
namespace {

constexpr std::int64_t kRetryNs = 10'000'000;  // doubled each time
// Of several addresses each has so long to answer before the next one is tried beside it (RFC 8305,
// section 5),
constexpr std::int64_t kBesideNs = 250'000'000;
// and so long until its attempt is given up; doubled each round. Twice the time after which TCP
// sends a SYN again, as that may be lost on the best of networks.
constexpr std::int64_t kAddressNs = 2'000'000'000;

}  // namespace

int Connector::want_connection(int peer) {
  Peer& p = core_.peers[peer];
  switch (p.state) {
    case PeerState::kUp:
    case PeerState::kMaking: return 0;
    case PeerState::kLost: return -p.error;
    case PeerState::kGone: return -EPIPE;
    case PeerState::kIdle: break;
  }
  begin_making(peer);
  begin_connect(peer);
  return p.state == PeerState::kLost ? -p.error : 0;
}

// From now on a connection is made, by us or by the peer.
void Connector::begin_making(int peer) {
  Peer& p = core_.peers[peer];
  const std::int64_t now = core_.net.now_ns();
  if (core_.underway.connecting == 0) deadlines_looked_ns_ = now;
  discount_absence(now);
  core_.set_state(p, PeerState::kMaking);
  ++core_.underway.connecting;
  p.give_up_ns = now + core_.options.connect_timeout_ns;
  p.attempts = 0;
  p.connect_error = 0;
  // The one that was in use comes first.
  const int current = p.connections != 0 ? p.turns.current() : -1;
  p.turns.start(parts_.remote.address_count(peer), current >= 0
                                                       ? static_cast<std::uint8_t>(~(1u << current))
                                                       : dead_addresses_.bits());
}

// A descriptor for an attempt of ours. False: there is none to be had. A stranger's node is freed
// later, as somebody up the stack may hold a connection in handshake.
bool Connector::make_room() {
  Listener& listener = parts_.listener;
  if (listener.give_spare()) return true;
  Connection* stranger = core_.handshaking.first_to_evict(core_.net.now_ns());
  if (stranger == nullptr) return false;
  refuse(*stranger, NoteCode::kNoDescriptor, EMFILE);
  return listener.give_spare() || !listener.has_spare();
}

// Starts our attempt if it can be started now; poll() tries again otherwise.
void Connector::begin_connect(int peer) {
  Peer& p = core_.peers[peer];
  if (p.attempt != nullptr || go_on_with_attempt(peer)) return;
  if (core_.connections.free_count() == 0 &&
      (core_.mode.in_signal_handler || !parts_.up.refill())) {
    core_.note_starved();
    return;  // retried from poll() in ordinary context
  }
  const sockaddr_storage address = parts_.remote.address_of(peer, p.turns.current());
  if (address.ss_family == 0) return lose(peer, EHOSTUNREACH);
  int fd = core_.net.open_stream(address.ss_family);
  ++core_.counters.other_calls;
  while ((fd == -EMFILE || fd == -ENFILE) && make_room())
    fd = core_.net.open_stream(address.ss_family);
  if (fd < 0) {
    if (!may_pass(-fd) && p.turns.count() > 1) return try_next_address(peer, -fd, true);
    if (!may_pass(-fd)) return lose(peer, reason_of(peer, -fd));
    return retry_later(peer, -fd, kRetryNs);
  }
  Connection& c = begin(fd, peer, address);
  if (core_.is_remote(peer)) parts_.remote.prepare(c, peer);
  c.handshake.address = static_cast<std::uint8_t>(p.turns.current());
  p.attempt = &c;
  if (const int count = p.turns.count(); count > 1) {
    const std::int64_t now = core_.net.now_ns();
    const std::int64_t share = core_.options.connect_timeout_ns / (count + 1);
    p.next_address_ns = now + std::min(kBesideNs, share / 2);
    c.handshake.deadline_ns = now + (std::min(kAddressNs, share) << std::min(p.turns.rounds(), 4));
  }
  if (const int rc = call(c); rc < 0) attempt_failed(c, -rc);
}

Connection& Connector::begin(int fd, int peer, const sockaddr_storage& address) {
  Connection* c = core_.connections.take();
  c->fd = fd;
  c->handshake.ours = true;
  c->peer = peer;
  c->remote = address;
  core_.set_state(*c, ConnectionState::kConnecting);
  core_.net.set_options(fd, core_.options.stream);
  return *c;
}

int Connector::call(Connection& c) {
  core_.handshaking.add(c);
  parts_.signals.drive(c.fd);
  core_.counters.other_calls += 3;
  const int rc = core_.net.connect(c.fd, c.remote);
  if (rc < 0 && rc != -EINPROGRESS) return rc;
  c.interest = kReadable | kWritable;
  return core_.net.watch(c.fd, c.pool_handle, c.interest);
}

// An attempt with the address whose turn it is may be under way: it is the newest one again.
bool Connector::go_on_with_attempt(int peer) {
  Peer& p = core_.peers[peer];
  if (p.turns.count() < 2) return false;
  for_each_attempt(peer, nullptr, [&p](Connection& c) {
    if (c.handshake.address == p.turns.current()) p.attempt = &c;
  });
  if (p.attempt == nullptr) return false;
  p.next_address_ns = core_.net.now_ns() + kBesideNs;
  return true;
}

// Bits: the addresses of our attempts.
std::uint8_t Connector::addresses_tried(int peer, const Connection* except) {
  std::uint8_t tried = 0;
  for_each_attempt(peer, except, [&tried](const Connection& c) {
    tried = static_cast<std::uint8_t>(tried | 1u << c.handshake.address);
  });
  return tried;
}

// The newest attempt has had no answer for a while: the next address is tried beside it.
void Connector::try_another_beside(int peer) {
  Peer& p = core_.peers[peer];
  if (p.turns.next_beside(addresses_tried(peer, nullptr))) {
    p.attempt = nullptr;
    p.retry_ns = 0;
    begin_connect(peer);
  } else {
    p.next_address_ns = p.attempt->handshake.deadline_ns;
  }
}

void Connector::answered(Connection& c) {
  Peer& p = core_.peers[c.peer];
  p.attempt = &c;
  if (p.turns.count() > 1) p.turns.answered(c.handshake.address, addresses_tried(c.peer, &c));
}

// The connection has come up: its policies begin.
void Connector::start_tuning(Connection& c) const {
  const Tuning& tuning = core_.options.tuning;
  c.tuning.frames.start(core_.options.frame_bytes, kFrameBytesMax,
                        tuning.has(Heuristic::kFrameGrowth));
  c.tuning.halves.start(core_.options.split_min, core_.options.split_end);
  c.tuning.first_look.set_on(tuning.has(Heuristic::kFirstLook));
  c.tuning.rcvlowat.start(tuning.has(Heuristic::kPollRcvlowat));
  c.tuning.ahead.start(tuning.has(Heuristic::kReadAhead));
}

void Connector::settle(Connection& c, int peer) {
  core_.handshaking.remove(c);
  if (c.handshake.heard_apart) parts_.callers.proved(c);
  c.peer = peer;
  start_tuning(c);
  core_.set_state(c, ConnectionState::kUp);
  c.resent = 0;
}

void Connector::come_up(Connection& c, int peer, std::uint64_t received) {
  Peer& p = core_.peers[peer];
  settle(c, peer);
  if (c.handshake.ours && p.turns.count() > 1) {
    const std::uint8_t overtaken = p.turns.overtaken();
    for (int i = 0; i < p.turns.count(); ++i) {
      const sockaddr_storage address = parts_.remote.address_of(peer, i);
      if ((overtaken >> i & 1) != 0) core_.notes.note(NoteCode::kAddressSlow, peer, 0, &address);
    }
    dead_addresses_.learn(p.turns.current(), p.turns.reached(), overtaken);
  } else if (!c.handshake.ours) {
    p.turns.called_from(parts_.remote.address_count(peer),
                        std::max(parts_.remote.find_address(peer, c.remote), 0));
  }
  Connection* const before = p.connection;
  p.attempt = nullptr;
  p.connection = &c;
  p.called_last = !c.handshake.ours;
  core_.set_state(p, PeerState::kUp);
  --core_.underway.connecting;
  ++core_.counters.connections;
  DeferFree defer(core_);
  if (before != nullptr && !go_on(*before, c, received)) return;
  c.tx.kept.on = core_.options.resume && !core_.is_remote(peer);
  if (parts_.readiness.preferred() == nullptr) parts_.readiness.prefer(c);
  if (core_.is_remote(peer))
    parts_.remote.connected(peer);
  else if (before == nullptr)
    parts_.callers.no_longer_missing();
  if (before != nullptr) return parts_.tx.flush(peer);
  if (p.control.head != nullptr || p.bulk.head != nullptr) parts_.tx.flush(peer);
}

bool Connector::is_lower(int peer) const {
  return core_.is_remote(peer)
             ? std::memcmp(parts_.remote.name_key(peer), core_.options.keys.open, kKeyBytes) < 0
             : peer < core_.options.rank;
}

// Our attempt ended. It is made again, until the deadline, if the peer has closed it in the
// handshake (in a simultaneous open its own connection is coming; a flood of strangers may have
// pushed ours out), or if the reason may pass. A dead peer does not answer then, or refuses.
void Connector::attempt_failed(Connection& c, int error) {
  const int peer = c.peer;
  Peer& p = core_.peers[peer];
  if (p.attempt != &c) return attempt_beside_failed(c, error);
  const bool spoke = is_tcp_up(c);
  const bool proved = c.state == ConnectionState::kAwaitAccept;  // it is the peer that we called
  if (spoke)
    p.give_up_ns +=
        core_.net.now_ns() - c.handshake.tcp_up_ns;  // the deadline is for the time without TCP
  p.attempt = nullptr;
  drop(c);
  // Before we have looked as well: a listener that is not there gives ECONNREFUSED, never these.
  const bool closed = is_closed(error);
  const bool broke = spoke && core_.options.resume && !core_.is_remote(peer);
  const bool final = !closed && (spoke ? !broke || !may_pass(error) : is_for_good(peer, error));
  if (!closed && p.turns.count() > 1 && !is_shortage(error))
    return try_next_address(peer, error, final);
  if (final) return lose(peer, spoke ? error : reason_of(peer, error));
  // Perhaps somebody else has that address.
  if (closed && !proved && p.turns.closed()) p.turns.next();
  retry_later(peer, closed ? 0 : error,
              closed && is_lower(peer) ? kTieNs : kRetryNs << (p.attempts < 6 ? p.attempts : 6));
}

// An attempt that is not the newest one has failed. Its address is tried again in its turn.
void Connector::attempt_beside_failed(Connection& c, int error) {
  const int peer = c.peer;
  Peer& p = core_.peers[peer];
  const int number = c.handshake.address;
  drop(c);
  if (is_closed(error) || is_shortage(error)) return;
  const sockaddr_storage address = parts_.remote.address_of(peer, number);
  p.turns.failed(number, error, is_for_good(peer, error));
  if (p.turns.exhausted()) return lose(peer, reason_of(peer, error));
  if (p.turns.rounds() == 0 && p.connections == 0)
    core_.notes.note(NoteCode::kAddressFailed, peer, error, &address);
}

// The peer has several addresses, and the current one did not lead to it.
void Connector::try_next_address(int peer, int error, bool final) {
  Peer& p = core_.peers[peer];
  const sockaddr_storage address = parts_.remote.address_of(peer, p.turns.current());
  p.turns.failed(p.turns.current(), error, final);
  if (p.turns.exhausted()) return lose(peer, reason_of(peer, error));
  if (p.turns.rounds() == 0 && p.connections == 0)
    core_.notes.note(NoteCode::kAddressFailed, peer, error, &address);
  const bool same_round = p.turns.next();
  retry_later(peer, error, same_round ? 0 : kRetryNs << std::min(p.turns.rounds(), 6));
  if (same_round && p.state == PeerState::kMaking)
    begin_connect(peer);  // comes back here at most once for each address
}

// What a call has failed by. For hosts that cannot meet, the kernel's word for that says too
// little.
int Connector::reason_of(int peer, int error) const {
  const bool no_way = error == ENETUNREACH || error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
  return no_way && !core_.is_remote(peer) && core_.options.peers[peer].apart &&
                 core_.peers[peer].connections == 0
             ? kNoCommonFamily
             : error;
}

// Whether a call that failed by that, without TCP, will do so each time.
bool Connector::is_for_good(int peer, int error) const { return !may_pass(reason_of(peer, error)); }

// `error`: why the last attempt failed before TCP was up; 0: it failed later.
void Connector::retry_later(int peer, int error, std::int64_t delay_ns) {
  Peer& p = core_.peers[peer];
  const std::int64_t now = core_.net.now_ns();
  if (now >= p.give_up_ns) return lose(peer, error != 0 ? error : ETIMEDOUT);
  p.connect_error = error;
  p.retry_ns = now + delay_ns;
  if (p.attempts < UINT8_MAX) ++p.attempts;
}

void Connector::drop(Connection& c) {
  if (c.state == ConnectionState::kFree) return;
  if (!is_stream(c))
    core_.handshaking.remove(c);
  else if (c.state == ConnectionState::kUp)
    count_resent(c);
  if (c.handshake.heard_apart) core_.net.unwatch_caller(c.fd);
  c.handshake.heard_apart = false;
  parts_.rx.forget(c);
  parts_.readiness.forget(c);
  if (c.fd >= 0) core_.net.close(c.fd);
  core_.counters.other_calls += 2;
  c.fd = -1;
  parts_.listener.regain_spare();
  core_.set_state(c, ConnectionState::kFree);
  core_.free_later(c);
}

void Connector::count_resent(Connection& c) {
  StreamReport report;
  ++core_.counters.other_calls;
  if (!core_.net.report(c.fd, report)) return;
  core_.counters.resent += report.retransmissions - c.resent;
  c.resent = report.retransmissions;
}

void Connector::lose(int peer, int error) {
  Peer& p = core_.peers[peer];
  if (p.state == PeerState::kLost || p.state == PeerState::kGone) return;
  if (p.state == PeerState::kMaking) --core_.underway.connecting;
  if (p.connection == nullptr && !core_.is_remote(peer)) parts_.callers.no_longer_missing();
  if (p.connection != nullptr && p.connection->state == ConnectionState::kBroken) {
    --core_.underway.broken;
    if (is_closed(error) || may_pass(error) || error == ECONNREFUSED)
      error = p.broken_by;  // and the peer could not be reached again
  }
  const bool departed = core_.is_remote(peer) && parts_.remote.lost(peer, error);
  core_.set_state(p, core_.quiescing ? PeerState::kGone : PeerState::kLost, error);
  DeferFree defer(core_);
  parts_.tx.fail_sends(peer, error);
  for (Connection** each : {&p.attempt, &p.connection}) {
    Connection* c = *each;
    *each = nullptr;
    if (c != nullptr) drop(*c);
  }
  for_each_attempt(peer, nullptr, [this](Connection& c) { drop(c); });
  for (int i = 1; p.lanes != nullptr && i < kLanesMax; ++i)
    if (p.lanes->lane[i].connection != nullptr) drop(*p.lanes->lane[i].connection);
  core_.forget_lanes(p);
  if (!core_.quiescing && !departed) {
    if (core_.is_remote(peer))
      core_.notes.note(NoteCode::kForeignLost, peer, error, &parts_.remote.address_of(peer));
    else
      core_.notes.note(NoteCode::kPeerLost, peer, error, nullptr, HelloFault::kNone,
                       core_.options.peers[peer].host);
  }
  if (!core_.quiescing && lost_ != nullptr) lost_(lost_self_, peer, error);
}

bool Connector::is_host_of_a_connection(const sockaddr_storage& address) const {
  for (int i = 0; i < core_.peer_count; ++i)
    if ((core_.peers[i].connection != nullptr || core_.peers[i].attempt != nullptr) &&
        parts_.remote.find_address(i, address) >= 0)
      return true;
  return false;
}

// Whether somebody else than `but` is in a handshake who says to be that rank: with several
// addresses a rank may call at two of them, and ends one.
bool Connector::is_calling(int peer, const Connection& but) const {
  for (const Connection* c = core_.handshaking.first(); c != nullptr; c = c->list_next)
    if (c != &but && !c->handshake.ours && c->handshake.realm == HelloRealm::kJob &&
        c->handshake.hello.magic != 0 && static_cast<int>(c->handshake.hello.to) == peer)
      return true;
  return false;
}

bool Connector::is_host_of_a_missing_peer(const sockaddr_storage& address) const {
  for (int i = 0; i < core_.peer_count; ++i) {
    const PeerState state = core_.peers[i].state;
    if (i != core_.options.rank && (state == PeerState::kIdle || state == PeerState::kMaking) &&
        parts_.remote.find_address(i, address) >= 0)
      return true;
  }
  return false;
}

void Connector::refuse(Connection& c, NoteCode why, int error, HelloFault fault) {
  // The other side of a tie that already took our connection closes its own like this
  // (c.handshake.hello is our challenge, to the rank it claims to be). A reset may have swallowed
  // even its hello; then only its address tells.
  const int claimed = c.handshake.realm != HelloRealm::kJob ? c.handshake.claimed
                      : c.handshake.hello.magic != 0        ? static_cast<int>(c.handshake.hello.to)
                                                            : -1;
  const bool tie =
      why == NoteCode::kHandshakeClosed &&
      (claimed >= 0 ? core_.peers[claimed].connection != nullptr ||
                          core_.peers[claimed].attempt != nullptr || is_calling(claimed, c)
                    : error == ECONNRESET && c.handshake.heard_bytes == 0 &&
                          is_host_of_a_connection(c.remote));
  if (tie) {
    ++core_.counters.ties;
  } else {
    ++core_.counters.connections_refused;
    core_.notes.note(why, -1, error, &c.remote, fault);
  }
  drop(c);
}

}  // namespace mplite
