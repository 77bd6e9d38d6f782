// Connections on their way up and down: our attempts, when they are made again, and what is done
// with a connection or a peer that is lost. Used by handshaker.h, acceptor.h and the engine; uses
// the queues, remote_jobs.h, callers.h.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/engine/callers.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/listener.h"
#include "mplite/engine/readiness.h"
#include "mplite/engine/remote_jobs.h"
#include "mplite/engine/rx_stream.h"
#include "mplite/engine/socket_signals.h"
#include "mplite/engine/tx_queue.h"
#include "mplite/engine/upcalls.h"
#include "mplite/net/handshake.h"
#include "mplite/observe/log.h"

namespace mplite {

// Called once when a peer is given up, gate held, perhaps in the handler. `error` is an errno, or a
// fault of loss.h. Its send operations have been completed with that error before.
using LostCallback = void (*)(void* self, int peer, int error);

// Gate held throughout.
class Connector {
 public:
  // What it needs of the parts below.
  struct Parts {
    Upcalls& up;
    Listener& listener;
    Readiness& readiness;
    SocketSignals& signals;
    TxQueue& tx;
    RxStream& rx;
    RemoteJobs& remote;
    Callers& callers;
  };

  Connector(EngineCore& core, const Parts& parts) : core_(core), parts_(parts) {}
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  void set_lost(LostCallback lost, void* self) {
    lost_ = lost;
    lost_self_ = self;
  }

  // Of a peer that is not connected. 0: a connection is coming; -errno: it is lost.
  int want_connection(int peer) MPLITE_SIGNAL_SAFE;
  // Of two attempts, that of the lower process stays.
  bool is_lower(int peer) const MPLITE_SIGNAL_SAFE;
  // A connection with the peer over that socket, which is the core's from here on; then it is
  // called. 0 or -errno.
  Connection& begin(int fd, int peer, const sockaddr_storage& address) MPLITE_SIGNAL_SAFE;
  int call(Connection& c) MPLITE_SIGNAL_SAFE;
  // Its handshake has come to its end: it is the peer's, and up.
  void settle(Connection& c, int peer) MPLITE_SIGNAL_SAFE;
  // And is the one: frames may flow. `received`: by the peer, of the stream that was begun on the
  // connections before it.
  void come_up(Connection& c, int peer, std::uint64_t received) MPLITE_SIGNAL_SAFE;
  // TCP is up in one of our attempts: it is the peer's connection from now on. Those with other
  // addresses of that peer are the caller's to end.
  void answered(Connection& c) MPLITE_SIGNAL_SAFE;
  // Calls f(Connection&) with each of our attempts to reach the peer, but `except`. It may drop
  // that one.
  template <typename F>
  void for_each_attempt(int peer, const Connection* except, F f) MPLITE_SIGNAL_SAFE {
    const Peer& p = core_.peers[peer];
    const bool several = p.turns.count() > 1;
    for (Connection* c = several ? core_.handshaking.first() : p.attempt; c != nullptr;) {
      Connection* const next = several ? c->list_next : nullptr;
      if (c->handshake.ours && c->peer == peer && c->lane == 0 && c != except) f(*c);
      c = next;
    }
  }
  // Our attempt has come to an end.
  void attempt_failed(Connection& c, int error) MPLITE_SIGNAL_SAFE;
  // Somebody who did not prove to be of this job: noted, dropped; the job goes on.
  void refuse(Connection& c, NoteCode why, int error,
              HelloFault fault = HelloFault::kNone) MPLITE_SIGNAL_SAFE;
  // Closes and frees; what it meant to its peer is the caller's business.
  void drop(Connection& c) MPLITE_SIGNAL_SAFE;
  // What TCP has sent again on it since the last time, into the counters.
  void count_resent(Connection& c) MPLITE_SIGNAL_SAFE;
  // The peer's first connection has failed by `error`: its stream goes on over another one, or the
  // peer is lost.
  void lose_first(Connection& c, int error, StreamFailure how) MPLITE_SIGNAL_SAFE;
  // The same before it has failed here. `by_call`: for a caller that has lost it.
  void break_off(Connection& c, int error, bool by_call) MPLITE_SIGNAL_SAFE;
  // Where the stream from the peer is, once nothing more comes on its broken connection. False: not
  // yet, or the peer is lost.
  bool stream_position(int peer, StreamPosition& position) MPLITE_SIGNAL_SAFE;
  // Whether what the peer has not received can be sent.
  bool can_go_on(int peer, const StreamPosition& theirs) const MPLITE_SIGNAL_SAFE;
  // Gives a peer up: everything queued for it completes with `error`, then the layer above is told,
  // once.
  void lose(int peer, int error) MPLITE_SIGNAL_SAFE;

  // The deadline for a connect counts time in which attempts are made. While the application
  // computes nobody makes them, so of the time since the last look only a part counts.
  void discount_absence(std::int64_t now) MPLITE_SIGNAL_SAFE;
  // Attempts whose time is over, and those that are due again.
  void look_at_attempts(std::int64_t now) MPLITE_SIGNAL_SAFE;
  std::int64_t deadlines_looked_ns() const MPLITE_SIGNAL_SAFE { return deadlines_looked_ns_; }
  // Whether a peer that is not connected yet is on this host. Ports do not matter.
  bool is_host_of_a_missing_peer(const sockaddr_storage& address) const MPLITE_SIGNAL_SAFE;
  // Whether we have a connection with a peer at this address, or are making one.
  bool is_host_of_a_connection(const sockaddr_storage& address) const MPLITE_SIGNAL_SAFE;
  // Peers that were cut off while data was under way (a hello that nobody has answered yet is such
  // data), which keepalive does not see.
  void look_for_silence() MPLITE_SIGNAL_SAFE;

 private:
  // After a tie the peer's connection has this long before we try again.
  static constexpr std::int64_t kTieNs = 500'000'000;

  void begin_making(int peer) MPLITE_SIGNAL_SAFE;
  void begin_connect(int peer) MPLITE_SIGNAL_SAFE;
  bool may_go_on(const Connection& c, int error) const MPLITE_SIGNAL_SAFE;
  bool go_on(Connection& before, Connection& c, std::uint64_t received) MPLITE_SIGNAL_SAFE;
  void attempt_beside_failed(Connection& c, int error) MPLITE_SIGNAL_SAFE;
  bool go_on_with_attempt(int peer) MPLITE_SIGNAL_SAFE;
  void try_next_address(int peer, int error, bool final) MPLITE_SIGNAL_SAFE;
  void try_another_beside(int peer) MPLITE_SIGNAL_SAFE;
  std::uint8_t addresses_tried(int peer, const Connection* except) MPLITE_SIGNAL_SAFE;
  void look_at_attempts_beside(std::int64_t now) MPLITE_SIGNAL_SAFE;
  bool make_room() MPLITE_SIGNAL_SAFE;
  int reason_of(int peer, int error) const MPLITE_SIGNAL_SAFE;
  bool is_for_good(int peer, int error) const MPLITE_SIGNAL_SAFE;
  void note_if_overdue(Peer& p, std::int64_t now) MPLITE_SIGNAL_SAFE;
  void retry_later(int peer, int error, std::int64_t delay_ns) MPLITE_SIGNAL_SAFE;
  void start_tuning(Connection& c) const MPLITE_SIGNAL_SAFE;
  bool is_calling(int peer, const Connection& but) const MPLITE_SIGNAL_SAFE;

  EngineCore& core_;
  const Parts parts_;
  LostCallback lost_ = nullptr;
  void* lost_self_ = nullptr;
  std::int64_t deadlines_looked_ns_ = 0;
  DeadAddresses dead_addresses_;
};

}  // namespace mplite
