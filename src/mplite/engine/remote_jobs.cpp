// Processes of other jobs: the table of them, their keys, and how they come and go.
#include "mplite/engine/remote_jobs.h"

#include <netinet/in.h>

#include <cerrno>
#include <cstring>

namespace mplite {
namespace {

constexpr int kDepartedError =
    ESHUTDOWN;  // for what was still open with a process that ended in order

}  // namespace

// ---- names ----

int RemoteJobs::find(const std::uint8_t* name_key) const {
  for (int peer = core_.options.size; peer < core_.peer_count; ++peer)
    if (std::memcmp(process(peer).name_key, name_key, kKeyBytes) == 0) return peer;
  return -ENOENT;
}

int RemoteJobs::find_any(const std::uint8_t (&name_key)[kKeyBytes]) const {
  if (std::memcmp(core_.options.keys.open, name_key, kKeyBytes) == 0) return core_.options.rank;
  for (int i = 0; i < core_.options.size; ++i)
    if (std::memcmp(core_.options.peers[i].name_key, name_key, kKeyBytes) == 0) return i;
  return find(name_key);
}

bool RemoteJobs::name_of(int peer, ProcessName& name) const {
  if (!core_.is_remote(peer)) {
    name = make_process_name(core_.options.peers[peer].address, core_.options.peers[peer].name_key,
                             window_);
    return true;
  }
  const Process& r = process(peer);
  if (r.address.ss_family == 0) return false;
  name = make_process_name(r.address, r.name_key, r.window);
  return true;
}

// ---- adding ----

// The number begins anew for a process: nothing may be left of what was with it.
int RemoteJobs::renew(int peer, std::uint32_t window) {
  if (core_.peers[peer].corks != 0 ||
      (introduce_ != nullptr && !introduce_(introduce_self_, peer, window)))
    return -EBUSY;
  if (core_.peers[peer].state != PeerState::kIdle)
    core_.set_state(core_.peers[peer], PeerState::kIdle);
  core_.peers[peer] = Peer();
  return 0;
}

// A number whose process nobody deals with any more, or the next one, with the layers above ready
// for it.
int RemoteJobs::new_number(std::uint32_t window) {
  for (int peer = core_.options.size; peer < core_.peer_count; ++peer) {
    const Peer& p = core_.peers[peer];
    if (process(peer).disconnected && p.connection == nullptr && p.state != PeerState::kMaking &&
        renew(peer, window) == 0)
      return peer;
  }
  const auto count = static_cast<std::size_t>(core_.peer_count) + 1;
  if (!core_.peer_table.grow(count) ||
      !processes_.grow(count - static_cast<std::size_t>(core_.options.size)))
    return -ENOMEM;
  return introduce_ == nullptr || introduce_(introduce_self_, core_.peer_count, window)
             ? core_.peer_count
             : -ENOMEM;
}

int RemoteJobs::add(const std::uint8_t (&name_key)[kKeyBytes], std::uint32_t window) {
  Process made;
  if (!pair_key(core_.options.keys, name_key, made.pair_key)) return -EINVAL;
  std::memcpy(made.name_key, name_key, kKeyBytes);
  made.window = window;
  const int peer = new_number(window);
  if (peer < 0) return peer;
  process(peer) = made;
  if (peer == core_.peer_count) ++core_.peer_count;  // last: now the handler may see it
  return peer;
}

// A process that was lost, and that we hear of again: from the beginning.
int RemoteJobs::revive(int peer) {
  if (core_.peers[peer].state != PeerState::kLost && core_.peers[peer].state != PeerState::kGone)
    return 0;
  Process& r = process(peer);
  if (const int rc = renew(peer, r.window); rc < 0) return rc;
  r.departed = r.goodbye_said = r.goodbye_heard = false;
  return 0;
}

int RemoteJobs::connect(const ProcessName& name) {
  int peer = find_any(name.key);
  if (peer >= 0 && !core_.is_remote(peer)) return peer;
  if (peer < 0 && (peer = add(name.key, name.window)) < 0) return peer;
  Process& r = process(peer);
  if (r.address.ss_family == 0) {
    const sockaddr_storage& own = core_.options.peers[core_.options.rank].address;
    r.address = listener_of(name, own.ss_family == AF_INET6
                                      ? reinterpret_cast<const sockaddr_in6&>(own).sin6_scope_id
                                      : 0);
  }
  if (const int rc = revive(peer); rc < 0) return rc;
  if (r.goodbye_said && !say(peer, GoodbyeWord::kTakenBack)) {
    if (core_.peers[peer].state == PeerState::kUp) return -ENOMEM;
    if (const int rc = revive(peer); rc < 0) return rc;  // that has found the connection broken
  }
  r.unmet = r.disconnected = r.goodbye_said = false;
  // A port of its that was called in vain has nothing to do with this.
  if (core_.peers[peer].state != PeerState::kMaking) r.by_port = false;
  return peer;
}

void RemoteJobs::use_port(int peer, const PortName& port) {
  Process& r = process(peer);
  r.by_port = true;
  r.port_id = port.id;
  port_secret(port.key, r.pair_key, r.port_key);
}

// ---- handshakes and losses ----

// Ours: by which key.
void RemoteJobs::prepare(Connection& c, int peer) const {
  const Process& r = process(peer);
  c.handshake.realm = r.by_port ? HelloRealm::kPort : HelloRealm::kPair;
  std::memcpy(c.handshake.key, r.by_port ? r.port_key : r.pair_key, kKeyBytes);
  std::memcpy(c.handshake.initiator, core_.options.keys.open, kKeyBytes);
}

std::uint32_t RemoteJobs::port_of(const Connection& c) const {
  return c.handshake.realm == HelloRealm::kPort ? process(c.peer).port_id : 0;
}

// The key by which who comes to a port has to prove itself. False: there is no such port, or what
// it shows is no public key.
bool RemoteJobs::know_caller(const Hello& said, std::uint8_t (&key)[kKeyBytes]) const {
  const std::uint8_t* of_port = ports_.key_of(said.to);
  std::uint8_t port[kKeyBytes], caller[kKeyBytes], pair[kKeyBytes];
  if (of_port == nullptr) return false;
  std::memcpy(port, of_port, kKeyBytes);
  std::memcpy(caller, said.mac, kKeyBytes);
  if (!pair_key(core_.options.keys, caller, pair)) return false;
  port_secret(port, pair, key);
  return true;
}

// Who has proved to know a port's key, as a peer. -errno: cannot be one.
int RemoteJobs::admit_caller(const Connection& c, const Hello& proof) {
  std::uint8_t name_key[kKeyBytes];
  std::memcpy(name_key, c.handshake.initiator, kKeyBytes);
  if (proof.from == 0 || proof.from > INT32_MAX) return -EINVAL;
  const int known = find_any(name_key);
  if (known < 0) {
    const int added = add(name_key, proof.from);
    if (added >= 0) process(added).unmet = true;
    return added;
  }
  if (!core_.is_remote(known)) return -EINVAL;  // a rank of our own has the job's secret for this
  const bool was_lost = core_.peers[known].error != 0;
  if (const int rc = revive(known); rc < 0) return rc;
  Process& r = process(known);
  r.unmet = r.unmet || r.disconnected || was_lost;
  r.disconnected = false;
  return known;
}

bool RemoteJobs::lost(int peer, int& error) {
  Process& r = process(peer);
  r.departed = r.by_port || r.unmet || r.disconnected || r.goodbye_heard;
  if (r.departed && !r.by_port) error = kDepartedError;
  return r.departed;
}

// ---- disconnecting ----

Verdict RemoteJobs::begin_goodbye(void* self, int peer, const FrameHeader& header, Destination&) {
  const bool is_word = header.id <= static_cast<std::uint64_t>(GoodbyeWord::kTakenBack);
  return static_cast<RemoteJobs*>(self)->core_.is_remote(peer) && header.total == 0 && is_word
             ? Verdict::kTake
             : Verdict::kReject;
}

void RemoteJobs::end_goodbye(void* self, int peer, const FrameHeader& header) {
  static_cast<RemoteJobs*>(self)->process(peer).goodbye_heard =
      header.id == static_cast<std::uint64_t>(GoodbyeWord::kGoodbye);
}

// Behind all that was sent to it before. False: no memory, or it is lost now.
bool RemoteJobs::say(int peer, GoodbyeWord word) {
  SendOp* op = nullptr;
  if (tx_.send(peer, FrameKind::kGoodbye, static_cast<std::uint64_t>(word), nullptr, 0, op) < 0)
    return false;
  if (op != nullptr) tx_.release(op);
  return true;
}

void RemoteJobs::disconnect(int peer) {
  if (!core_.is_remote(peer)) return;
  Process& r = process(peer);
  r.disconnected = true;
  if (core_.peers[peer].state == PeerState::kUp && !r.goodbye_said)
    r.goodbye_said = say(peer, GoodbyeWord::kGoodbye);
}

void RemoteJobs::say_goodbye() {
  for (int peer = core_.options.size; peer < core_.peer_count; ++peer) {
    const bool disconnected = process(peer).disconnected;
    disconnect(peer);
    process(peer).disconnected = disconnected;
  }
}

bool RemoteJobs::farewell() const {
  for (int peer = core_.options.size; peer < core_.peer_count; ++peer)
    if (core_.peers[peer].state == PeerState::kUp && !process(peer).goodbye_heard) return false;
  return true;
}

}  // namespace mplite
