// Connections that break: the stream of the peer goes on over the next one, from where it was.
#include <cerrno>

#include "mplite/engine/connector.h"
#include "mplite/net/connect_error.h"

namespace mplite {

// Whether it failed by the network: not by a peer that breaks the protocol, or memory that is not
// there. Also at the end of all: until everybody is there, a peer may still need what we have sent.
bool Connector::may_go_on(const Connection& c, int error) const {
  return core_.options.resume && !core_.is_remote(c.peer) && (is_closed(error) || may_pass(error));
}

void Connector::break_off(Connection& c, int error, bool by_call) {
  const int peer = c.peer;
  Peer& p = core_.peers[peer];
  p.broken_by = error;
  ++core_.counters.connections_broken;
  count_resent(c);
  parts_.readiness.forget(c);
  c.interest = 0;
  core_.set_state(c, ConnectionState::kBroken);
  core_.net.stop_receiving(c.fd);
  ++core_.underway.broken;
  begin_making(peer);
  p.retry_ns = by_call ? core_.net.now_ns() + kTieNs : 0;
  if (!by_call) begin_connect(peer);
}

void Connector::lose_first(Connection& c, int error, StreamFailure how) {
  if (!may_go_on(c, error)) return lose(c.peer, error);
  if (c.state == ConnectionState::kUp) {
    DeferFree defer(core_);
    const std::uint64_t handle = c.pool_handle;
    break_off(c, error, false);
    if (c.pool_handle != handle || c.state != ConnectionState::kBroken) return;
  }
  if (how != StreamFailure::kOfWrite && c.fd >= 0) {
    core_.net.close(c.fd);
    c.fd = -1;
  }
}

bool Connector::stream_position(int peer, StreamPosition& position) {
  Peer& p = core_.peers[peer];
  if (p.connection != nullptr && !parts_.rx.drain(*p.connection)) return false;
  position = {p.connection != nullptr ? RxStream::received(*p.connection) : 0, p.connections};
  return true;
}

bool Connector::can_go_on(int peer, const StreamPosition& theirs) const {
  const Connection* c = core_.peers[peer].connection;
  if (theirs.received == StreamPosition::kNone || theirs.connections >> 63 != 0) return false;
  return c == nullptr ? theirs.received == 0 : TxQueue::covers(*c, theirs.received);
}

// What was under way on the broken connection goes on over the new one, from the byte on that the
// peer has not received. False: a completion lost the peer.
bool Connector::go_on(Connection& before, Connection& c, std::uint64_t received) {
  const int peer = c.peer;
  Peer& p = core_.peers[peer];
  --core_.underway.broken;
  if (!p.break_told)
    core_.notes.note(NoteCode::kConnectionBroken, peer, p.broken_by, &before.remote);
  p.break_told = true;
  parts_.rx.move(before, c);
  parts_.tx.move(before, c);
  drop(before);
  if (c.rx.paused) parts_.readiness.set_interest(c, 0);
  return parts_.tx.go_on(c, received) && c.state == ConnectionState::kUp;
}

void Connector::look_for_silence() {
  const std::int64_t limit_ms = core_.options.stream.silence_ms();
  if (limit_ms == 0) return;
  for (int i = 0; i < core_.peer_count; ++i) {
    for_each_stream(core_.peers[i], [this, limit_ms](Connection& c) {
      if (!is_tcp_up(c)) return;
      ++core_.counters.other_calls;
      if (core_.net.is_silent(c.fd, limit_ms))
        parts_.up.lose_stream(c, ETIMEDOUT, StreamFailure::kOfWrite);
    });
    Connection* const attempt = core_.peers[i].attempt;
    if (attempt == nullptr || !is_tcp_up(*attempt)) continue;
    ++core_.counters.other_calls;
    if (core_.net.is_silent(attempt->fd, limit_ms)) attempt_failed(*attempt, ETIMEDOUT);
  }
}

}  // namespace mplite
