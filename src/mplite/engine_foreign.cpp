// Processes of other jobs as peers: found and added by name, let in at ports, told goodbye, parted from.
// They come behind the job's ranks in the peer table; on the way of a message nothing tells them apart. Trust: the job's secret is not involved. The first connection between two jobs is made by
// a port's key, which says that the caller has read the port's name; over it both jobs exchange their processes' public names, and from then on each pair has a key that only the two can compute.
#include <netinet/in.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine.h"

namespace mplite {

// ---- names ----

int Engine::find_foreign(const std::uint8_t* name_key) const {
  for (int peer = options_.size; peer < peer_count_; ++peer)
    if (std::memcmp(foreign(peer).name_key, name_key, kKeyBytes) == 0) return peer;
  return -ENOENT;
}

int Engine::find_process(const std::uint8_t (&name_key)[kKeyBytes]) const {
  if (std::memcmp(options_.keys.open, name_key, kKeyBytes) == 0) return options_.rank;
  for (int i = 0; i < options_.size; ++i)
    if (std::memcmp(options_.peers[i].name_key, name_key, kKeyBytes) == 0) return i;
  return find_foreign(name_key);
}

bool Engine::name_of(int peer, ProcessName& name) const {
  if (!is_foreign(peer)) {
    name = make_process_name(options_.peers[peer].address, options_.peers[peer].name_key, window_);
    return true;
  }
  const Foreign& f = foreign(peer);
  if (f.address.ss_family == 0) return false;
  name = make_process_name(f.address, f.name_key, f.window);
  return true;
}

void Engine::key_of(int peer, std::uint8_t (&key)[kKeyBytes]) const {
  std::memcpy(key, is_foreign(peer) ? foreign(peer).name_key : options_.peers[peer].name_key, sizeof key);
}

// ---- adding ----

// The number begins anew for a process: nothing may be left of what was with it.
int Engine::renew(int peer, std::uint32_t window) {
  if (peers_[peer].holds != 0 || (introduce_ != nullptr && !introduce_(introduce_self_, peer, window))) return -EBUSY;
  peers_[peer] = Peer();
  return 0;
}

// A number whose process nobody deals with any more, or the next one, with the layers above ready for it.
int Engine::new_number(std::uint32_t window) {
  for (int peer = options_.size; peer < peer_count_; ++peer) {
    const Peer& p = peers_[peer];
    if (foreign(peer).parted && p.connection == nullptr && p.state != PeerState::kMaking && renew(peer, window) == 0) return peer;
  }
  const auto count = static_cast<std::size_t>(peer_count_) + 1;
  if (!peer_table_.grow(count) || !foreign_.grow(count - static_cast<std::size_t>(options_.size))) return -ENOMEM;
  return introduce_ == nullptr || introduce_(introduce_self_, peer_count_, window) ? peer_count_ : -ENOMEM;
}

int Engine::add_foreign(const std::uint8_t (&name_key)[kKeyBytes], std::uint32_t window) {
  Foreign made;
  if (!pair_key(options_.keys, name_key, made.pair_key)) return -EINVAL;
  std::memcpy(made.name_key, name_key, kKeyBytes);
  made.window = window;
  const int peer = new_number(window);
  if (peer < 0) return peer;
  foreign(peer) = made;
  if (peer == peer_count_) ++peer_count_;  // last: now the handler may see it
  return peer;
}

// A process that was lost, and that we hear of again: from the beginning.
int Engine::revive(int peer) {
  if (peers_[peer].state != PeerState::kLost && peers_[peer].state != PeerState::kGone) return 0;
  foreign(peer).departed = false;
  return renew(peer, foreign(peer).window);
}

int Engine::meet(const ProcessName& name) {
  int peer = find_process(name.key);
  if (peer >= 0 && !is_foreign(peer)) return peer;
  if (peer < 0 && (peer = add_foreign(name.key, name.window)) < 0) return peer;
  Foreign& f = foreign(peer);
  if (f.address.ss_family == 0) {
    const sockaddr_storage& own = options_.peers[options_.rank].address;
    f.address = listener_of(name, own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_scope_id : 0);
  }
  f.parted = f.goodbye_said = f.goodbye_heard = false;
  if (const int rc = revive(peer); rc < 0) return rc;
  retry_stalled();  // it may have called before we knew it
  return peer;
}

int Engine::meet_at(const PortName& port) {
  const int peer = meet(port.owner);
  if (peer < 0 || !is_foreign(peer) || peers_[peer].state != PeerState::kIdle) return peer;
  Foreign& f = foreign(peer);
  f.by_port = true;
  f.port_id = port.id;
  std::memcpy(f.port_key, port.key, kKeyBytes);
  return peer;
}

// ---- ports ----

int Engine::open_port(std::uint32_t id, const std::uint8_t (&key)[kKeyBytes]) {
  close_port(id);
  if (ports_count_ == ports_room_) {
    const std::uint32_t room = ports_room_ == 0 ? 8 : 2 * ports_room_;
    auto* grown = static_cast<Port*>(std::realloc(ports_, room * sizeof(Port)));  // the handler does not look at ports: recognise() stalls there
    if (grown == nullptr) return -ENOMEM;
    ports_ = grown;
    ports_room_ = room;
  }
  Port& port = ports_[ports_count_++];
  port.id = id;
  std::memcpy(port.key, key, kKeyBytes);
  return 0;
}

void Engine::close_port(std::uint32_t id) {
  for (std::uint32_t i = 0; i < ports_count_; ++i)
    if (ports_[i].id == id) {
      ports_[i] = ports_[--ports_count_];
      return;
    }
}

const std::uint8_t* Engine::port_key(std::uint32_t id) const {
  for (std::uint32_t i = 0; i < ports_count_; ++i)
    if (ports_[i].id == id) return ports_[i].key;
  return nullptr;
}

// ---- handshakes ----

// Ours: by which key.
void Engine::prepare_foreign(Connection& c, int peer) {
  const Foreign& f = foreign(peer);
  c.realm = f.by_port ? HelloRealm::kPort : HelloRealm::kPair;
  std::memcpy(c.key, f.by_port ? f.port_key : f.pair_key, kKeyBytes);
  std::memcpy(c.initiator, options_.keys.open, kKeyBytes);
}

std::uint32_t Engine::address_foreign(const Connection& c) const { return c.realm == HelloRealm::kPort ? foreign(c.peer).port_id : 0; }

// Theirs, first message: by which key it has to prove itself. False: not to be answered now or at all.
bool Engine::recognise(Connection& c, const Hello& said) {
  const std::uint8_t* key = nullptr;
  if (said.realm == HelloRealm::kPair) {
    c.claimed = find_foreign(said.mac);
    if (c.claimed < 0) {
      stall(c);  // its job may be quicker than ours in reading names: until meet(), or its deadline
      return false;
    }
    key = foreign(c.claimed).pair_key;
  } else if (async_) {
    stall(c);  // who comes by a port may be new, and that takes memory
    return false;
  } else if (key = port_key(said.to); key == nullptr) {
    ++counters_.connections_refused;
    say(c, hello_refuse(said));
    drop(c);
    return false;
  }
  c.realm = said.realm;
  std::memcpy(c.key, key, kKeyBytes);
  std::memcpy(c.initiator, said.mac, kKeyBytes);
  return true;
}

// Who has proved to know a port's key, as a peer. -errno: cannot be one.
MPLITE_ORDINARY int Engine::admit_caller(const Connection& c, const Hello& proof) {
  std::uint8_t name_key[kKeyBytes];
  std::memcpy(name_key, c.initiator, kKeyBytes);
  if (proof.from == 0 || proof.from > INT32_MAX) return -EINVAL;
  const int known = find_process(name_key);
  if (known < 0) return add_foreign(name_key, proof.from);
  if (!is_foreign(known)) return -EINVAL;  // a rank of our own has the job's secret for this
  Foreign& f = foreign(known);
  f.parted = f.goodbye_heard = f.goodbye_said = false;
  const int rc = revive(known);
  return rc < 0 ? rc : known;
}

// The message stays where it is until ordinary context, or a meeting, or the deadline.
void Engine::stall(Connection& c) {
  c.stalled = true;
  c.tried = stall_round_;
  c.end = kHelloBytes;
}

// Behind a message that has not been answered there must be nothing: whoever speaks on, or has gone, is dropped.
void Engine::look_beyond(Connection& c) {
  std::uint8_t beyond;
  const iovec part = {&beyond, 1};
  ++counters_.reads;
  if (net_.read(c.fd, &part, 1) == -EAGAIN) return;
  ++counters_.connections_refused;
  drop(c);
}

void Engine::retry_stalled() {
  ++stall_round_;
  for (Connection* c = young_head_; c != nullptr;) {
    if (!c->stalled || c->tried == stall_round_) {
      c = c->young_next;
      continue;
    }
    c->stalled = false;
    ++depth_;
    step_handshake(*c);
    --depth_;
    c = young_head_;  // that may have taken others out
  }
  bury();
}

// ---- parting ----

Verdict Engine::begin_goodbye(void* self, int peer, const FrameHeader& header, Destination&) {
  return static_cast<Engine*>(self)->is_foreign(peer) && header.total == 0 ? Verdict::kTake : Verdict::kReject;
}

void Engine::end_goodbye(void* self, int peer, const FrameHeader&) { static_cast<Engine*>(self)->foreign(peer).goodbye_heard = true; }

void Engine::part(int peer) {
  if (!is_foreign(peer)) return;
  Foreign& f = foreign(peer);
  f.parted = true;
  if (peers_[peer].state != PeerState::kUp || f.goodbye_said) return;
  f.goodbye_said = true;
  SendOp* op = nullptr;
  if (send(peer, FrameKind::kGoodbye, 0, nullptr, 0, op) == 0 && op != nullptr) release(op);
}

void Engine::say_goodbye() {
  for (int peer = options_.size; peer < peer_count_; ++peer) {
    const bool parted = foreign(peer).parted;
    part(peer);
    foreign(peer).parted = parted;
  }
}

bool Engine::farewell() const {
  for (int peer = options_.size; peer < peer_count_; ++peer)
    if (peers_[peer].state == PeerState::kUp && !foreign(peer).goodbye_heard) return false;
  return true;
}

}  // namespace mplite
