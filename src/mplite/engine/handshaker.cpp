// Hello, challenge, proof, acceptance; callers that have to wait for an answer.
#include "mplite/engine/handshaker.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mplite {

// A handshake message is 80 bytes on a fresh socket: if the kernel does not take it whole,
// something is very wrong with this connection.
bool Handshaker::say(Connection& c, const Hello& message) {
  const iovec part = {const_cast<Hello*>(&message), sizeof message};
  const std::int64_t n = core_.net.write(c.fd, &part, 1);
  ++core_.counters.writes;
  return n == static_cast<std::int64_t>(sizeof message);
}

void Handshaker::attempt_failed(Connection& c, int error) {
  if (c.lane != 0)
    lanes_.attempt_failed(c, error);
  else
    connector_.attempt_failed(c, error);
}

bool Handshaker::say_hello(Connection& c) {
  std::uint8_t nonce[kNonceBytes];
  core_.net.random(nonce, sizeof nonce);
  const bool job = c.handshake.realm == HelloRealm::kJob;
  c.handshake.hello =
      hello_start(hello_context(c), job ? c.peer : static_cast<int>(remote_.port_of(c)), nonce);
  return say(c, c.handshake.hello);
}

// Reads the rest of a message. False: it is not here yet, or the connection is gone.
bool Handshaker::hear(Connection& c) {
  while (c.handshake.heard_bytes < kHelloBytes) {
    // Not one byte more than the message: what follows an accept belongs to the frames.
    const iovec part = {c.handshake.heard + c.handshake.heard_bytes,
                        kHelloBytes - c.handshake.heard_bytes};
    const std::int64_t n = core_.net.read(c.fd, &part, 1);
    ++core_.counters.reads;
    if (n == -EAGAIN) return false;
    if (n <= 0) {
      if (c.handshake.ours)
        attempt_failed(c, n == 0 ? ECONNRESET : static_cast<int>(-n));
      else
        connector_.refuse(c, NoteCode::kHandshakeClosed, static_cast<int>(-n));
      return false;
    }
    c.handshake.heard_bytes += static_cast<std::uint32_t>(n);
  }
  return true;
}

void Handshaker::step(Connection& c) {
  DeferFree defer(core_);
  while (is_in_handshake(c)) {
    if (c.handshake.stalled) {
      look_beyond(c);
      break;
    }
    if (c.state == ConnectionState::kConnecting) {
      // Before a failure is judged: nobody has looked for a while.
      connector_.discount_absence(core_.net.now_ns());
      const int rc = core_.net.connect_result(c.fd);
      ++core_.counters.other_calls;
      if (rc == -EINPROGRESS || rc == -EAGAIN) break;
      if (rc < 0) {
        attempt_failed(c, -rc);
        break;
      }
      if (c.lane == 0) {
        connector_.answered(c);
        end_attempts(c.peer, &c);
      }
      if (!say_hello(c)) {
        attempt_failed(c, ECONNABORTED);
        break;
      }
      core_.set_state(c, ConnectionState::kAwaitChallenge);
      c.handshake.tcp_up_ns = core_.net.now_ns();
      readiness_.set_interest(c, kReadable);
      continue;
    }
    if (!hear(c)) break;
    Hello said;
    std::memcpy(&said, c.handshake.heard, sizeof said);
    c.handshake.heard_bytes = 0;
    hear_hello(c, said);
  }
}

// Theirs, first message: by which key it has to prove itself. False: not to be answered now or at
// all.
bool Handshaker::recognise(Connection& c, const Hello& said) {
  if (said.realm == HelloRealm::kPair) {
    c.handshake.claimed = remote_.find(said.mac);
    if (c.handshake.claimed < 0) {
      stall(c);  // its job may be quicker than ours in reading names: until Engine::connect(), or
                 // its deadline
      return false;
    }
    std::memcpy(c.handshake.key, remote_.pair_key_of(c.handshake.claimed), kKeyBytes);
  } else if (core_.mode.in_signal_handler) {
    stall(c);  // who comes by a port may be new, and that takes memory, and the arithmetic of its
               // key time
    return false;
  } else if (!remote_.know_caller(said, c.handshake.key)) {
    ++core_.counters.connections_refused;
    say(c, hello_refuse(said, core_.options.protection));
    connector_.drop(c);
    return false;
  }
  c.handshake.realm = said.realm;
  std::memcpy(c.handshake.initiator, said.mac, kKeyBytes);
  return true;
}

// The message stays where it is until ordinary context, or until its process becomes known, or the
// deadline.
void Handshaker::stall(Connection& c) {
  c.handshake.stalled = true;
  c.handshake.stall_round = stall_round_;
  c.handshake.heard_bytes = kHelloBytes;
}

// The same, where ordinary context has what the handler lacks.
void Handshaker::put_off(Connection& c) {
  stall(c);
  if (!core_.mode.in_signal_handler) return;
  put_off_ = true;
  core_.note_starved();
}

// Whether nothing is behind the message that was heard last: who has gone has said the end.
bool Handshaker::waits(const Connection& c) {
  std::uint8_t beyond;
  const iovec part = {&beyond, 1};
  ++core_.counters.reads;
  return core_.net.read(c.fd, &part, 1) == -EAGAIN;
}

// Behind a message that has not been answered there must be nothing: whoever speaks on, or has
// gone, is dropped.
void Handshaker::look_beyond(Connection& c) {
  if (waits(c)) return;
  if (c.handshake.ours) return attempt_failed(c, ECONNRESET);
  ++core_.counters.connections_refused;
  connector_.drop(c);
}

void Handshaker::retry_stalled() {
  DeferFree defer(core_);
  ++stall_round_;
  if (!core_.mode.in_signal_handler) put_off_ = false;
  for (Connection* c = core_.handshaking.first(); c != nullptr;) {
    if (!c->handshake.stalled || c->handshake.stall_round == stall_round_) {
      c = c->list_next;
      continue;
    }
    c->handshake.stalled = false;
    step(*c);
    c = core_.handshaking.first();  // that may have taken others out
  }
}

// A caller says hello: it is challenged.
void Handshaker::challenge(Connection& c, const Hello& said) {
  if (hello_is_foreign(said) && !recognise(c, said)) return;
  if (const std::uint8_t lane = hello_lane(said); lane != 0)
    c.lane = c.handshake.initiator[0] = lane;
  std::uint8_t nonce[kNonceBytes];
  core_.net.random(nonce, sizeof nonce);
  Hello challenge;
  const HelloFault fault = hello_answer(hello_context(c), said, nonce, challenge);
  if (fault == HelloFault::kProtection && said.realm == HelloRealm::kPort)
    say(c, hello_refuse(said, core_.options.protection));
  if (fault != HelloFault::kNone) return connector_.refuse(c, NoteCode::kStrangerDropped, 0, fault);
  c.handshake.hello = challenge;
  if (!say(c, challenge)) return connector_.refuse(c, NoteCode::kHandshakeClosed, EPIPE);
  core_.set_state(c, ConnectionState::kAwaitProof);
}

// A caller proves itself: it is accepted, unless the peer has another connection.
void Handshaker::check_proof(Connection& c, const Hello& said) {
  if (core_.mode.in_signal_handler && c.handshake.realm == HelloRealm::kPort) return stall(c);
  if (core_.mode.in_signal_handler && !may_protect(c)) return put_off(c);
  Hello acceptance;
  const HelloFault fault = hello_accept(hello_context(c), c.handshake.hello, said, acceptance);
  if (fault != HelloFault::kNone) return connector_.refuse(c, NoteCode::kStrangerDropped, 0, fault);
  if (c.handshake.realm == HelloRealm::kPort) c.handshake.claimed = remote_.admit_caller(c, said);
  // The number that it had when it said hello may stand for another process by now.
  if (c.handshake.realm == HelloRealm::kPair)
    c.handshake.claimed = remote_.find(c.handshake.initiator);
  const int peer =
      c.handshake.realm == HelloRealm::kJob ? static_cast<int>(said.from) : c.handshake.claimed;
  if (peer < 0) return connector_.refuse(c, NoteCode::kAcceptFailed, -peer);
  if (c.lane != 0) return accept_lane(c, peer, said, acceptance);
  if (!hear_of_break(c, peer, said)) return;
  Peer& p = core_.peers[peer];
  if (p.attempt != nullptr) {
    // Both sides started one: the one that the lower rank began stays, where it gets through. Ours
    // had sent no frame yet, so nothing is lost with it.
    ++core_.counters.ties;
    const Connection* own = p.attempt;
    // One that has not been challenged yet may be on its way to an address that leads nowhere, or
    // to somebody else, or a firewall lets only the peer's through. The peer has no proof of it,
    // and so keeps its own.
    const bool in_vain = own->state != ConnectionState::kAwaitAccept;
    if (!connector_.is_lower(peer) && !in_vain) return connector_.drop(c);
  }
  HelloContext context = hello_context(c);
  if (c.handshake.realm == HelloRealm::kJob) {
    if (!connector_.stream_position(peer, context.position)) return put_off(c);
    if (!connector_.can_go_on(peer, said.position)) {
      refuse_to_go_on(c, said);
      return connector_.lose(peer, ECONNRESET);
    }
    context.position.connections =
        std::max(context.position.connections, said.position.connections) + 1;
    hello_accept(context, c.handshake.hello, said, acceptance);
  }
  end_attempts(peer, nullptr);
  p.attempt = nullptr;
  if (!may_protect(c)) return connector_.refuse(c, NoteCode::kAcceptFailed, ENOMEM);
  if (!say(c, acceptance)) return connector_.refuse(c, NoteCode::kHandshakeClosed, EPIPE);
  protect(c, peer, said);
  if (p.state == PeerState::kIdle) {
    core_.set_state(p, PeerState::kMaking);
    ++core_.underway.connecting;
  }
  come_up(c, peer, acceptance.position.connections, said.position.received);
}

void Handshaker::come_up(Connection& c, int peer, std::uint64_t connections,
                         std::uint64_t received) {
  core_.peers[peer].connections = connections;
  connector_.come_up(c, peer, received);
  lanes_.first_came_up(peer);
}

// The stream between the two cannot go on: the peer, which has proved itself, is told.
void Handshaker::refuse_to_go_on(Connection& c, const Hello& proof) {
  HelloContext context = hello_context(c);
  context.position.received = StreamPosition::kNone;
  Hello acceptance;
  hello_accept(context, c.handshake.hello, proof, acceptance);
  say(c, acceptance);
  ++core_.counters.connections_refused;
  connector_.drop(c);
}

// The peer, which has proved itself, calls: for the first time, or as it has lost its connection,
// of which we perhaps have not heard. False: the call has been answered, or comes too late.
bool Handshaker::hear_of_break(Connection& c, int peer, const Hello& proof) {
  Peer& p = core_.peers[peer];
  const bool in_job = c.handshake.realm == HelloRealm::kJob;
  const std::uint64_t connections = proof.position.connections;
  // It counts one that we do not know: our attempt, which it has accepted. What it has sent on it
  // may be there. So may be what it has sent after this call, if that has broken off since then and
  // it is the lower one, whose call we would take in place of ours.
  const bool counts_ours = connections > p.connections;
  bool is_deaf = false;
  if (in_job && (counts_ours || connector_.is_lower(peer)) && p.attempt != nullptr &&
      p.attempt->state == ConnectionState::kAwaitAccept) {
    const bool stops = counts_ours || core_.options.resume;
    if (stops) core_.net.stop_receiving(p.attempt->fd);
    step(*p.attempt);
    // The acceptance, before which nothing comes, is not there, and cannot come any more.
    if (stops && p.attempt != nullptr && p.attempt->state == ConnectionState::kAwaitAccept) {
      connector_.drop(*p.attempt);
      p.attempt = nullptr;
      if (!counts_ours) ++core_.counters.ties;
    }
    is_deaf = stops && p.state == PeerState::kUp;
  }
  if (p.state == PeerState::kLost && in_job && connections > 0) {
    refuse_to_go_on(c, proof);
    return false;
  }
  // The other half of a tie, or an attempt that the peer has given up since then. It may not know
  // the last connection if it has begun that itself.
  const bool is_old = connections < p.connections &&
                      (connections + (p.called_last ? 1 : 0) < p.connections ||
                       !core_.options.resume || !connector_.can_go_on(peer, proof.position));
  const bool is_late = p.connection != nullptr && (!in_job || is_old || !waits(c));
  if (is_late || p.state == PeerState::kGone || p.state == PeerState::kLost) {
    ++(is_late ? core_.counters.ties : core_.counters.connections_refused);
    connector_.drop(c);
    if (is_deaf) connector_.break_off(*p.connection, ECONNRESET, true);
    return false;
  }
  if (p.state != PeerState::kUp) return true;
  if (!core_.options.resume) {
    refuse_to_go_on(c, proof);
    connector_.lose(peer, ECONNRESET);
    return false;
  }
  connector_.break_off(*p.connection, ECONNRESET, true);
  return p.state == PeerState::kMaking;
}

void Handshaker::accept_lane(Connection& c, int peer, const Hello& said, const Hello& acceptance) {
  // Who has gone meanwhile would be told of by the second write only, after the first is lost.
  if (!waits(c) || !lanes_.admit(c, peer)) {
    ++core_.counters.ties;
    return connector_.drop(c);
  }
  if (!may_protect(c)) return connector_.refuse(c, NoteCode::kAcceptFailed, ENOMEM);
  if (!say(c, acceptance)) return connector_.refuse(c, NoteCode::kHandshakeClosed, EPIPE);
  protect(c, peer, said);
  lanes_.come_up(c, peer);
}

// We are challenged: we prove ourselves.
void Handshaker::prove(Connection& c, const Hello& said) {
  // Once we have proved ourselves the peer may send at once.
  if (!may_protect(c)) {
    if (core_.mode.in_signal_handler) return put_off(c);
    return attempt_failed(c, ENOMEM);
  }
  HelloContext context = hello_context(c);
  if (c.lane == 0 && c.handshake.realm == HelloRealm::kJob &&
      !connector_.stream_position(c.peer, context.position))
    return c.state != ConnectionState::kFree ? put_off(c) : static_cast<void>(0);
  Hello proof;
  const HelloFault fault = hello_prove(context, c.handshake.hello, said, proof);
  // Whoever uses a port's name is told, and nobody else is concerned.
  if (fault != HelloFault::kNone && c.handshake.realm == HelloRealm::kPort)
    return attempt_failed(
        c, !hello_is_refusal(c.handshake.hello, said) ? EKEYREJECTED
           : protection_of(said.protection) != protection_of(core_.options.protection)
               ? EPROTONOSUPPORT
               : ECONNREFUSED);
  if (fault != HelloFault::kNone) {
    core_.notes.note(NoteCode::kStrangerDropped, c.peer, 0, &c.remote, fault);
    return attempt_failed(c, EPROTO);
  }
  c.handshake.hello = proof;
  if (!say(c, proof)) return attempt_failed(c, ECONNABORTED);
  core_.set_state(c, ConnectionState::kAwaitAccept);
}

void Handshaker::hear_hello(Connection& c, const Hello& said) {
  switch (c.state) {
    case ConnectionState::kAwaitHello: return challenge(c, said);
    case ConnectionState::kAwaitProof: return check_proof(c, said);
    case ConnectionState::kAwaitChallenge: return prove(c, said);
    case ConnectionState::kAwaitAccept:
      if (hello_done(hello_context(c), c.handshake.hello, said) != HelloFault::kNone)
        return attempt_failed(c, EPROTO);
      if (c.lane == 0 && c.handshake.realm == HelloRealm::kJob &&
          !connector_.can_go_on(c.peer, said.position))
        return connector_.lose(c.peer, ECONNRESET);
      protect(c, c.peer, said);
      if (c.lane != 0) return lanes_.come_up(c, c.peer);
      return come_up(c, c.peer, said.position.connections, said.position.received);
    default: __builtin_trap();
  }
}

// Our attempts but that one end, in favour of it or of the peer's own. If the peer's listener has
// one already, it hears who we are before the end, and so does not take us for a stranger that came
// and went.
void Handshaker::end_attempts(int peer, const Connection* except) {
  connector_.for_each_attempt(peer, except, [this](Connection& own) {
    if (own.state == ConnectionState::kConnecting && core_.net.connect_result(own.fd) == 0)
      say_hello(own);
    connector_.drop(own);
  });
}

HelloContext Handshaker::hello_context(const Connection& c) const {
  const std::uint8_t protection = core_.options.protection;
  if (c.handshake.realm == HelloRealm::kJob)
    return {core_.options.rank,
            core_.options.size,
            core_.options.secret,
            HelloRealm::kJob,
            c.lane != 0 ? c.handshake.initiator : nullptr,
            protection};
  return {static_cast<int>(remote_.window()),
          0,
          c.handshake.key,
          c.handshake.realm,
          c.handshake.initiator,
          protection};
}

// Whether the stream of one more connection can be protected, if it has to be.
bool Handshaker::may_protect(const Connection& c) const {
  return core_.options.protection == 0 || core_.net.may_protect(c.fd) ||
         (!core_.mode.in_signal_handler && core_.net.refill() && core_.net.may_protect(c.fd));
}

// The last Hello has been said; what follows is the stream.
void Handshaker::protect(const Connection& c, int peer, const Hello& heard) {
  if (core_.options.protection == 0) return;
  StreamKeys keys;
  hello_stream_keys(
      hello_context(c),
      c.handshake.realm == HelloRealm::kJob ? core_.options.peers[peer].pair_key : nullptr,
      c.handshake.hello, heard, keys);
  core_.net.protect(c.fd, c.pool_handle, keys);
}

void Handshaker::drop_overdue(std::int64_t now) {
  for (Connection* c = core_.handshaking.first(); c != nullptr;) {
    if (c->handshake.ours || now < c->handshake.deadline_ns ||
        (c->handshake.stalled && core_.mode.in_signal_handler)) {
      c = c->list_next;
      continue;
    }
    // What it said may lie in the socket unread: the application computed meanwhile.
    step(*c);
    if (is_in_handshake(*c)) {
      // A rank computes between its calls for as long as it likes.
      if (connector_.is_host_of_a_missing_peer(c->remote) ||
          (c->lane != 0 && connector_.is_host_of_a_connection(c->remote)))
        c->handshake.deadline_ns = now + HandshakeList::kHandshakeNs;
      else
        connector_.refuse(*c, NoteCode::kHandshakeTimeout, 0);
    }
    c = core_.handshaking
            .first();  // a tie may have taken others out; each turn ends one, or its deadline
  }
}

}  // namespace mplite
