// The handshake of a connection, step by step, on both sides, and what is decided when both sides
// have begun one. Used by acceptor.h and the poller; uses connector.h, remote_jobs.h; the proofs
// are in net/handshake.cpp.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/engine/connector.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/lanes.h"
#include "mplite/engine/readiness.h"
#include "mplite/engine/remote_jobs.h"
#include "mplite/net/handshake.h"

namespace mplite {

// Gate held throughout.
class Handshaker {
 public:
  Handshaker(EngineCore& core, Readiness& readiness, RemoteJobs& remote, Connector& connector,
             Lanes& lanes)
      : core_(core), readiness_(readiness), remote_(remote), connector_(connector), lanes_(lanes) {}
  Handshaker(const Handshaker&) = delete;
  Handshaker& operator=(const Handshaker&) = delete;

  // Advances a connection that is not up yet as far as it goes.
  void step(Connection& c) MPLITE_SIGNAL_SAFE;
  // Looks again at messages that could not be acted upon: in ordinary context, or when a process of
  // another job has become known.
  void retry_stalled() MPLITE_SIGNAL_SAFE;
  // The handler has left a message of a peer to ordinary context, which has not looked since.
  bool has_put_off() const MPLITE_SIGNAL_SAFE { return put_off_; }
  // Strangers whose time is over. A caller on the host of a rank that has not connected yet may be
  // that rank, which computes: it has no such time, and makes room only for others.
  void drop_overdue(std::int64_t now) MPLITE_SIGNAL_SAFE;

 private:
  void hear_hello(Connection& c, const Hello& said) MPLITE_SIGNAL_SAFE;
  void challenge(Connection& c, const Hello& said) MPLITE_SIGNAL_SAFE;
  bool recognise(Connection& c, const Hello& said) MPLITE_SIGNAL_SAFE;
  void check_proof(Connection& c, const Hello& said) MPLITE_SIGNAL_SAFE;
  bool hear_of_break(Connection& c, int peer, const Hello& proof) MPLITE_SIGNAL_SAFE;
  void refuse_to_go_on(Connection& c, const Hello& proof) MPLITE_SIGNAL_SAFE;
  void come_up(Connection& c, int peer, std::uint64_t connections,
               std::uint64_t received) MPLITE_SIGNAL_SAFE;
  void accept_lane(Connection& c, int peer, const Hello& said,
                   const Hello& acceptance) MPLITE_SIGNAL_SAFE;
  void attempt_failed(Connection& c, int error) MPLITE_SIGNAL_SAFE;
  void prove(Connection& c, const Hello& said) MPLITE_SIGNAL_SAFE;
  bool say(Connection& c, const Hello& message) MPLITE_SIGNAL_SAFE;
  bool say_hello(Connection& c) MPLITE_SIGNAL_SAFE;
  bool hear(Connection& c) MPLITE_SIGNAL_SAFE;
  void end_attempts(int peer, const Connection* except) MPLITE_SIGNAL_SAFE;
  bool may_protect(const Connection& c) const MPLITE_SIGNAL_SAFE;
  void protect(const Connection& c, int peer, const Hello& heard) MPLITE_SIGNAL_SAFE;
  HelloContext hello_context(const Connection& c) const MPLITE_SIGNAL_SAFE;
  void stall(Connection& c) MPLITE_SIGNAL_SAFE;
  void put_off(Connection& c) MPLITE_SIGNAL_SAFE;
  bool waits(const Connection& c) MPLITE_SIGNAL_SAFE;
  void look_beyond(Connection& c) MPLITE_SIGNAL_SAFE;

  EngineCore& core_;
  Readiness& readiness_;
  RemoteJobs& remote_;
  Connector& connector_;
  Lanes& lanes_;
  unsigned stall_round_ = 0;
  bool put_off_ = false;
};

}  // namespace mplite
