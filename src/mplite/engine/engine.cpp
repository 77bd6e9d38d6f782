// The engine's life: start, memory, end; and the calls in which several parts have a share. Which
// part does what is in engine.h.
#include "mplite/engine/engine.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mplite/observe/log.h"

namespace mplite {

Engine::Engine(Net& net, const EngineOptions& options)
    : core_(net, options),
      up_(*this),
      listener_(
          net, core_.counters, options.listeners, options.spare,
          options.peers != nullptr ? options.peers[options.rank].address.ss_family : AF_UNSPEC),
      readiness_(core_, up_),
      signals_(core_, listener_),
      tx_(core_, up_, readiness_),
      rx_(core_, up_, readiness_),
      remote_(core_, tx_),
      callers_(core_, listener_, signals_),
      connector_(core_, {up_, listener_, readiness_, signals_, tx_, rx_, remote_, callers_}),
      lanes_(core_, up_, tx_, rx_, remote_, connector_, listener_),
      handshaker_(core_, readiness_, remote_, connector_, lanes_),
      acceptor_(core_, up_, listener_, signals_, connector_, handshaker_),
      poller_(core_, {listener_, readiness_, signals_, tx_, rx_, connector_, lanes_, handshaker_,
                      acceptor_}) {
  set_sink(FrameKind::kGoodbye, remote_.goodbye_sink());
  set_sink(FrameKind::kLane, lanes_.sink());
  const Tuning& tuning = options.tuning;
  if (!tuning.has(Heuristic::kHalves)) core_.options.split_min = core_.options.split_end = 0;
  if (!tuning.has(Heuristic::kFrameTries)) core_.options.frame_tries = 0;
}

Engine::~Engine() {
  // First of all nobody can be sent to: the callbacks below may try.
  for (int i = 0; core_.peers != nullptr && i < core_.peer_count; ++i)
    if (core_.peers[i].state != PeerState::kLost && core_.peers[i].state != PeerState::kGone)
      core_.set_state(core_.peers[i], PeerState::kGone);
  for (int i = 0; core_.peers != nullptr && i < core_.peer_count; ++i) {
    Peer& p = core_.peers[i];
    for_each_stream(p, [this](Connection& c) {
      if (c.fd >= 0) core_.net.close(c.fd);
      c.fd = -1;
    });
    tx_.fail_sends(i, ECANCELED);
    p.connection = nullptr;
  }
  for (Connection* c = core_.handshaking.first(); c != nullptr; c = c->list_next)
    if (c->fd >= 0) core_.net.close(c->fd);
  core_.connections.visit_taken([this](Connection* c) { rx_.forget(*c); });
  core_.notes.print(core_.options.rank, core_.net.now_ns(), 2, true);
  tx_.free_stale();
}

int Engine::start() {
  const auto ranks = static_cast<std::size_t>(core_.options.size);
  if (!core_.peer_table.start(ranks, ranks + kRemoteMax) || !remote_.start()) return -ENOMEM;
  core_.peers = core_.peer_table.data();
  core_.peer_count = core_.options.size;
  if (const int rc = listener_.start(); rc < 0) return rc;
  callers_.start(core_.options.size - 1);
  return refill() ? 0 : -ENOMEM;
}

bool Engine::refill() {
  if (!core_.notes.empty()) core_.notes.print(core_.options.rank, core_.net.now_ns());
  if (core_.underway.overdue) say_overdue();
  // Each, whatever becomes of the others: with read-ahead buffers what is read may free memory.
  const bool connections = core_.connections.reserve(callers_.connections_wanted());
  const bool rx = rx_.refill(), tx = tx_.refill();
  const bool lanes = core_.lane_sets.reserve(1);
  const bool net = core_.options.protection == 0 || core_.net.refill();
  return connections && rx && tx && lanes && net;
}

void Engine::disown() {
  listener_.for_each([this](int fd) { core_.net.disown(fd); });
  for (int i = 0; i < core_.peer_count; ++i)
    for_each_stream(core_.peers[i], [this](Connection& c) {
      if (c.fd >= 0) core_.net.disown(c.fd);
    });
  for (const Connection* c = core_.handshaking.first(); c != nullptr; c = c->list_next)
    if (c->fd >= 0) core_.net.disown(c->fd);
  core_.net.disown(-1);
}

void Upcalls::lose(int peer, int error) { engine_.connector_.lose(peer, error); }
int Upcalls::want_connection(int peer) { return engine_.connector_.want_connection(peer); }
void Upcalls::want_lanes(int peer) { engine_.lanes_.want(peer); }
void Upcalls::lanes_wait(int peer) { engine_.lanes_.wait(peer); }
void Upcalls::lose_stream(Connection& c, int error, StreamFailure how) {
  engine_.lanes_.lose(c, error, how);
}
bool Upcalls::refill() { return engine_.refill(); }

void Engine::prefer(int peer) {
  Connection* c = core_.peers[peer].connection;
  if (c != nullptr && c->state == ConnectionState::kUp) readiness_.prefer(*c);
}

void Engine::set_signal_driven(int tid, int signo) {
  signals_.drive_all(tid, signo);
  if (tid == 0) callers_.stop_hearing();
}

int Engine::connect(const ProcessName& name) {
  const int peer = remote_.connect(name);
  if (peer >= 0 && core_.is_remote(peer))
    handshaker_.retry_stalled();  // it may have called before we knew it
  return peer;
}

int Engine::connect_by_port(const PortName& port) {
  const int peer = connect(port.owner);
  if (peer >= 0 && core_.is_remote(peer) && core_.peers[peer].state == PeerState::kIdle)
    remote_.use_port(peer, port);
  return peer;
}

void Engine::key_of(int peer, std::uint8_t (&key)[kKeyBytes]) const {
  std::memcpy(key, remote_.name_key(peer), sizeof key);
}

void Engine::count_resent() {
  for (int i = 0; i < core_.peer_count; ++i)
    for_each_stream(core_.peers[i], [this](Connection& c) {
      if (c.state == ConnectionState::kUp) connector_.count_resent(c);
    });
}

}  // namespace mplite
