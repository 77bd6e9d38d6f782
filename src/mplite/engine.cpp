// Connections: made on first use, accepted, proved, lost; and the polling that drives everything.
// Neighbours: engine_send.cpp (queues to socket), engine_receive.cpp (socket to frames), engine_foreign.cpp (processes of other jobs), handshake.cpp (the proofs).
#include "engine.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <new>

#include "log.h"

namespace mplite {
namespace {

// old state (row) -> new state (column): kFree, kConnecting, kAwaitChallenge, kAwaitAccept, kAwaitHello, kAwaitProof, kUp
constexpr bool kLegal[7][7] = {
    /* kFree           */ {false, true, false, false, true, false, false},
    /* kConnecting     */ {true, false, true, false, false, false, false},
    /* kAwaitChallenge */ {true, false, false, true, false, false, false},
    /* kAwaitAccept    */ {true, false, false, false, false, false, true},
    /* kAwaitHello     */ {true, false, false, false, false, true, false},
    /* kAwaitProof     */ {true, false, false, false, false, false, true},
    /* kUp             */ {true, false, false, false, false, false, false},
};

constexpr std::int64_t kYoungNs = 10'000'000'000;  // a stranger or slow writer has this long to prove itself
constexpr unsigned kDeadlineStride = 64;           // polls between looks at the clock while something has a deadline
constexpr int kEventsMax = 64;
constexpr std::int64_t kTieNs = 500'000'000;   // after a tie the peer's connection has this long before we try again
constexpr std::int64_t kRetryNs = 10'000'000;  // doubled each time
constexpr std::int64_t kSilenceStrideNs = 1'000'000'000;
constexpr unsigned kSilenceStride = 4096;  // polls between looks at the clock for it

}  // namespace

Engine::Engine(Net& net, const EngineOptions& options) : net_(net), options_(options) {
  set_sink(FrameKind::kGoodbye, {this, begin_goodbye, end_goodbye});
}

Engine::~Engine() {
  // First of all nobody can be sent to: the callbacks below may try.
  for (int i = 0; peers_ != nullptr && i < peer_count_; ++i)
    if (peers_[i].state != PeerState::kLost) peers_[i].state = PeerState::kGone;
  for (int i = 0; peers_ != nullptr && i < peer_count_; ++i) {
    Peer& p = peers_[i];
    if (p.connection != nullptr) {
      net_.close(p.connection->fd);
      p.connection->fd = -1;
    }
    fail_sends(i, ECANCELED);
    p.connection = nullptr;
  }
  for (Connection* c = young_head_; c != nullptr; c = c->young_next)
    if (c->fd >= 0) net_.close(c->fd);
  if (options_.listener >= 0) net_.close(options_.listener);
  connections_.visit_taken([this](Connection* c) {
    c->begin = c->end;
    put_staging_away(*c);
  });
  notes_.print(options_.rank, net_.now_ns(), 2, true);
  while (stale_ != nullptr) {
    SendOp* op = stale_;
    stale_ = op->next;
    give(op);
  }
  std::free(ports_);
}

int Engine::start() {
  const auto ranks = static_cast<std::size_t>(options_.size);
  if (!peer_table_.start(ranks, ranks + kForeignMax) || !foreign_.start(0, kForeignMax)) return -ENOMEM;
  peers_ = peer_table_.data();
  peer_count_ = options_.size;
  if (!refill()) return -ENOMEM;
  if (options_.listener >= 0) {
    const int rc = net_.watch(options_.listener, kListenerToken, kReadable);
    ++counters_.other_calls;
    if (rc < 0) return rc;
  }
  return 0;
}

void Engine::set_sink(FrameKind kind, const Sink& sink) { sinks_[static_cast<int>(kind)] = sink; }

bool Engine::refill() {
  if (!notes_.empty()) notes_.print(options_.rank, net_.now_ns());
  while (stale_ != nullptr) {
    SendOp* op = stale_;
    stale_ = op->next;
    give(op);
  }
  // Connections come up seldom; sends must last a handler entry.
  return connections_.reserve(4) && stagings_.refill() && sends_.reserve(128) && control_blocks_.reserve(kSendsPerPacket);
}

void Engine::change_state(Connection& c, ConnectionState to) {
  if (!kLegal[static_cast<int>(c.state)][static_cast<int>(to)]) __builtin_trap();
  c.state = to;
}

// ---- making connections ----

int Engine::want_connection(int peer) {
  Peer& p = peers_[peer];
  switch (p.state) {
    case PeerState::kUp:
    case PeerState::kMaking:
      return 0;
    case PeerState::kLost:
      return -p.error;
    case PeerState::kGone:
      return -EPIPE;
    case PeerState::kIdle:
      break;
  }
  p.state = PeerState::kMaking;
  ++wanting_;
  p.give_up_ns = net_.now_ns() + options_.connect_timeout_ns;
  begin_connect(peer);
  return p.state == PeerState::kLost ? -p.error : 0;
}

// Starts our attempt if it can be started now; poll() tries again otherwise.
void Engine::begin_connect(int peer) {
  Peer& p = peers_[peer];
  if (p.connection != nullptr) return;
  if (connections_.free_count() == 0) {
    if (async_ || !refill()) return;  // retried from poll() in ordinary context
  }
  const sockaddr_storage& address = address_of(peer);
  if (address.ss_family == 0) return lose(peer, EHOSTUNREACH);
  const int fd = net_.open_stream(address.ss_family);
  ++counters_.other_calls;
  if (fd < 0) {
    lose(peer, -fd);
    return;
  }
  Connection* c = connections_.take();
  c->fd = fd;
  c->ours = true;
  c->peer = peer;
  c->remote = address;
  c->deadline_ns = p.give_up_ns;
  if (is_foreign(peer)) prepare_foreign(*c, peer);
  change_state(*c, ConnectionState::kConnecting);
  net_.set_options(fd, options_.stream);
  p.connection = c;
  young_add(*c);
  drive_by_signals(fd);
  const int rc = net_.connect(fd, address);
  counters_.other_calls += 3;
  if (rc < 0 && rc != -EINPROGRESS) {
    attempt_failed(*c, -rc);
    return;
  }
  c->interest = kReadable | kWritable;
  if (int error = net_.watch(fd, c->pool_handle, c->interest); error < 0) attempt_failed(*c, -error);
}

bool Engine::accept_all() {
  bool any = false;
  for (;;) {
    if (connections_.free_count() == 0 && (async_ || !refill())) {
      listener_starved_ = true;  // the listener stays readable: ordinary context takes it
      return any;
    }
    sockaddr_storage from = {};
    const int fd = net_.accept(options_.listener, from);
    ++counters_.other_calls;
    if (fd < 0) {
      if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) notes_.note(NoteCode::kAcceptFailed, -1, -fd);
      return any;
    }
    any = true;
    if (quiescing_) {
      net_.close(fd);
      continue;
    }
    while (young_count_ >= kYoungMax) {  // a flood: the oldest stranger makes room; those of ours have their own deadline
      Connection* oldest = young_head_;
      while (oldest != nullptr && oldest->ours) oldest = oldest->young_next;
      if (oldest == nullptr) break;
      refuse(*oldest, NoteCode::kTooManyStrangers, 0);
    }
    Connection* c = connections_.take();
    c->fd = fd;
    c->remote = from;
    c->deadline_ns = net_.now_ns() + kYoungNs;
    change_state(*c, ConnectionState::kAwaitHello);
    net_.set_options(fd, options_.stream);
    drive_by_signals(fd);
    c->interest = kReadable;
    counters_.other_calls += 2;
    young_add(*c);
    if (const int rc = net_.watch(fd, c->pool_handle, c->interest); rc < 0)
      refuse(*c, NoteCode::kAcceptFailed, -rc);
    else
      step_handshake(*c);  // its hello is often there already
  }
}

// A handshake message is 64 bytes on a fresh socket: if the kernel does not take it whole, something is very wrong with this connection.
bool Engine::say(Connection& c, const Hello& message) {
  const iovec part = {const_cast<Hello*>(&message), sizeof message};
  const std::int64_t n = net_.write(c.fd, &part, 1);
  ++counters_.writes;
  return n == static_cast<std::int64_t>(sizeof message);
}

// Advances a connection that is not up yet as far as it goes.
void Engine::step_handshake(Connection& c) {
  ++depth_;
  while (c.state != ConnectionState::kUp && c.state != ConnectionState::kFree) {
    if (c.stalled) {
      look_beyond(c);
      break;
    }
    if (c.state == ConnectionState::kConnecting) {
      const int rc = net_.connect_result(c.fd);
      ++counters_.other_calls;
      if (rc == -EINPROGRESS || rc == -EAGAIN) break;
      if (rc < 0) {
        attempt_failed(c, -rc);
        break;
      }
      std::uint8_t nonce[kNonceBytes];
      net_.random(nonce, sizeof nonce);
      c.hello = hello_start(hello_context(c), c.realm == HelloRealm::kJob ? c.peer : static_cast<int>(address_foreign(c)), nonce);
      if (!say(c, c.hello)) {
        attempt_failed(c, ECONNABORTED);
        break;
      }
      change_state(c, ConnectionState::kAwaitChallenge);
      set_interest(c, kReadable);
      continue;
    }
    if (c.end < kHelloBytes) {
      // Not one byte more than the message: what follows an accept belongs to the frames.
      const iovec part = {c.heard + c.end, kHelloBytes - c.end};
      const std::int64_t n = net_.read(c.fd, &part, 1);
      ++counters_.reads;
      if (n == -EAGAIN) break;
      if (n <= 0) {
        if (c.ours)
          attempt_failed(c, n == 0 ? ECONNRESET : static_cast<int>(-n));
        else
          refuse(c, NoteCode::kHandshakeClosed, static_cast<int>(-n));
        break;
      }
      c.end += static_cast<std::uint32_t>(n);
      if (c.end < kHelloBytes) continue;
    }
    Hello said;
    std::memcpy(&said, c.heard, sizeof said);
    c.end = 0;
    hear_hello(c, said);
  }
  --depth_;
  bury();
}

void Engine::hear_hello(Connection& c, const Hello& said) {
  switch (c.state) {
    case ConnectionState::kAwaitHello: {
      if (hello_is_foreign(said) && !recognise(c, said)) return;
      std::uint8_t nonce[kNonceBytes];
      net_.random(nonce, sizeof nonce);
      Hello challenge;
      const HelloFault fault = hello_answer(hello_context(c), said, nonce, challenge);
      if (fault != HelloFault::kNone) return refuse(c, NoteCode::kStrangerDropped, 0, fault);
      c.hello = challenge;
      if (!say(c, challenge)) return refuse(c, NoteCode::kHandshakeClosed, EPIPE);
      change_state(c, ConnectionState::kAwaitProof);
      return;
    }
    case ConnectionState::kAwaitProof: {
      if (c.realm == HelloRealm::kPort && async_) return stall(c);
      Hello acceptance;
      const HelloFault fault = hello_accept(hello_context(c), c.hello, said, acceptance);
      if (fault != HelloFault::kNone) return refuse(c, NoteCode::kStrangerDropped, 0, fault);
      if (c.realm == HelloRealm::kPort) c.claimed = admit_caller(c, said);
      const int peer = c.realm == HelloRealm::kJob ? static_cast<int>(said.from) : c.claimed;
      if (peer < 0) return refuse(c, NoteCode::kAcceptFailed, -peer);
      Peer& p = peers_[peer];
      if (p.state == PeerState::kUp || p.state == PeerState::kGone || p.state == PeerState::kLost) {
        ++(p.state == PeerState::kUp ? counters_.ties : counters_.connections_refused);  // it comes too late: the other half of a tie, or a peer that was given up
        return drop(c);
      }
      if (p.connection != nullptr) {
        // Both sides started one: the one that the lower rank began stays. Ours had sent no frame yet, so nothing is lost with it.
        ++counters_.ties;
        if (!is_lower(peer)) return drop(c);
        Connection* own = p.connection;
        p.connection = nullptr;
        give_way(*own);
      }
      if (!say(c, acceptance)) return refuse(c, NoteCode::kHandshakeClosed, EPIPE);
      if (p.state == PeerState::kIdle) {
        p.state = PeerState::kMaking;
        ++wanting_;
      }
      return come_up(c, peer);
    }
    case ConnectionState::kAwaitChallenge: {
      Hello proof;
      const HelloFault fault = hello_prove(hello_context(c), c.hello, said, proof);
      if (fault != HelloFault::kNone && c.realm == HelloRealm::kPort)  // whoever uses the port's name is told, and nobody else is concerned
        return attempt_failed(c, hello_is_refusal(c.hello, said) ? ECONNREFUSED : EKEYREJECTED);
      if (fault != HelloFault::kNone) {
        notes_.note(NoteCode::kStrangerDropped, c.peer, 0, &c.remote, fault);
        return attempt_failed(c, EPROTO);
      }
      c.hello = proof;
      if (!say(c, proof)) return attempt_failed(c, ECONNABORTED);
      change_state(c, ConnectionState::kAwaitAccept);
      return;
    }
    case ConnectionState::kAwaitAccept:
      if (hello_done(hello_context(c), c.hello, said) != HelloFault::kNone) return attempt_failed(c, EPROTO);
      return come_up(c, c.peer);
    default:
      __builtin_trap();
  }
}

// Our attempt ends in favour of the peer's. If the peer's listener has it already, it hears who we are before the end, and so does not take us for
// a stranger that came and went.
void Engine::give_way(Connection& own) {
  if (own.state == ConnectionState::kConnecting && net_.connect_result(own.fd) == 0) {
    std::uint8_t nonce[kNonceBytes];
    net_.random(nonce, sizeof nonce);
    say(own, hello_start(hello_context(own), own.realm == HelloRealm::kJob ? own.peer : static_cast<int>(address_foreign(own)), nonce));
  }
  drop(own);
}

void Engine::come_up(Connection& c, int peer) {
  Peer& p = peers_[peer];
  young_remove(c);
  c.peer = peer;
  c.frame_bytes = options_.frame_bytes;
  change_state(c, ConnectionState::kUp);
  p.connection = &c;
  p.state = PeerState::kUp;
  --wanting_;
  ++counters_.connections;
  if (hot_ == nullptr) hot_ = &c;
  if (is_foreign(peer)) foreign(peer).by_port = false;
  if (p.control.head != nullptr || p.bulk.head != nullptr) flush(peer);
}

// Whether we have a connection with a peer at this address, or are making one. Ports do not matter.
bool Engine::is_host_of_a_connection(const sockaddr_storage& address) const {
  for (int i = 0; i < peer_count_; ++i) {
    const sockaddr_storage& other = address_of(i);
    if (peers_[i].connection == nullptr || other.ss_family != address.ss_family) continue;
    if (address.ss_family == AF_INET6) {
      const auto& a = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
      if (std::memcmp(&a, &reinterpret_cast<const sockaddr_in6&>(other).sin6_addr, sizeof a) == 0) return true;
    } else if (reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == reinterpret_cast<const sockaddr_in&>(other).sin_addr.s_addr) {
      return true;
    }
  }
  return false;
}

// Somebody who did not prove to be of this job: noted, dropped; the job goes on.
void Engine::refuse(Connection& c, NoteCode why, int error, HelloFault fault) {
  // The other side of a tie that already took our connection closes its own like this (c.hello is our challenge, to the rank it claims to be).
  // A reset may have swallowed even its hello; then only its address tells.
  const int claimed = c.realm != HelloRealm::kJob ? c.claimed : c.hello.magic != 0 ? static_cast<int>(c.hello.to) : -1;
  const bool tie = why == NoteCode::kHandshakeClosed && (claimed >= 0 ? peers_[claimed].connection != nullptr
                                                                      : error == ECONNRESET && c.end == 0 && is_host_of_a_connection(c.remote));
  if (tie) {
    ++counters_.ties;
  } else {
    ++counters_.connections_refused;
    notes_.note(why, -1, error, &c.remote, fault);
  }
  drop(c);
}

HelloContext Engine::hello_context(const Connection& c) const {
  if (c.realm == HelloRealm::kJob) return {options_.rank, options_.size, options_.secret};
  return {static_cast<int>(window_), 0, c.key, c.realm, c.initiator};
}

bool Engine::is_lower(int peer) const {
  return is_foreign(peer) ? std::memcmp(foreign(peer).name_key, options_.keys.open, kKeyBytes) < 0 : peer < options_.rank;
}

const sockaddr_storage& Engine::address_of(int peer) const { return is_foreign(peer) ? foreign(peer).address : options_.peers[peer].address; }

// Our own attempt ended. In a tie the other side's connection is coming (they closed ours because of it). It may also be that a flood of
// strangers pushed ours out there; so it is tried again, until the deadline. Somebody who is dead does not answer then, or refuses.
void Engine::attempt_failed(Connection& c, int error) {
  const int peer = c.peer;
  const bool spoke = c.state == ConnectionState::kAwaitChallenge || c.state == ConnectionState::kAwaitAccept;
  peers_[peer].connection = nullptr;
  drop(c);
  if (!spoke || (error != ECONNRESET && error != ECONNABORTED && error != EPIPE)) return lose(peer, error);
  Peer& p = peers_[peer];
  p.retry_ns = net_.now_ns() + (is_lower(peer) ? kTieNs : kRetryNs << (p.attempts < 6 ? p.attempts : 6));
  ++p.attempts;
}

// Closes and frees; what it meant to its peer is the caller's business.
void Engine::drop(Connection& c) {
  if (c.state == ConnectionState::kFree) return;
  if (c.state != ConnectionState::kUp) young_remove(c);
  if (c.in_ready_list) ready_remove(c);
  if (hot_ == &c) {
    hot_ = nullptr;
    hot_reads_ = 0;
  }
  if (settling_ == &c) settling_ = nullptr;
  c.begin = c.end;
  put_staging_away(c);
  if (asked_of_epoll(c) != 0) net_.unwatch(c.fd);
  if (aside_ == &c) aside_ = nullptr;
  net_.close(c.fd);
  counters_.other_calls += 2;
  c.fd = -1;
  change_state(c, ConnectionState::kFree);
  c.dead = true;
  c.young_next = graves_;
  graves_ = &c;
}

// Gives dropped connections back once nobody up the stack can still hold one.
void Engine::empty_graves() {
  while (graves_ != nullptr) {
    Connection* c = graves_;
    graves_ = c->young_next;
    connections_.give(c);
  }
}

// Gives a peer up: everything queued for it completes with `error`, then the layer above is told, once.
void Engine::lose(int peer, int error) {
  Peer& p = peers_[peer];
  if (p.state == PeerState::kLost || p.state == PeerState::kGone) return;
  if (p.state == PeerState::kMaking) --wanting_;
  bool departed = false;
  if (is_foreign(peer)) {
    Foreign& f = foreign(peer);
    departed = f.departed = f.by_port || f.parted || f.goodbye_heard;
    if (departed && !f.by_port) error = kDepartedError;
  }
  p.state = quiescing_ ? PeerState::kGone : PeerState::kLost;
  p.error = error;
  ++depth_;
  fail_sends(peer, error);
  if (p.connection != nullptr) {
    Connection* c = p.connection;
    p.connection = nullptr;
    drop(*c);
  }
  if (!quiescing_ && !departed) notes_.note(is_foreign(peer) ? NoteCode::kForeignLost : NoteCode::kPeerLost, peer, error, is_foreign(peer) ? &foreign(peer).address : nullptr);
  if (!quiescing_ && lost_ != nullptr) lost_(lost_self_, peer, error);
  --depth_;
  bury();
}

// ---- polling ----

void Engine::young_add(Connection& c) {
  c.young_next = nullptr;
  c.young_previous = young_tail_;
  (young_tail_ != nullptr ? young_tail_->young_next : young_head_) = &c;
  young_tail_ = &c;
  ++young_count_;
}

void Engine::young_remove(Connection& c) {
  (c.young_previous != nullptr ? c.young_previous->young_next : young_head_) = c.young_next;
  (c.young_next != nullptr ? c.young_next->young_previous : young_tail_) = c.young_previous;
  c.young_next = c.young_previous = nullptr;
  --young_count_;
}

void Engine::look_at_deadlines() {
  if (!async_) retry_stalled();
  const std::int64_t now = net_.now_ns();
  for (Connection* c = young_head_; c != nullptr;) {
    if (c->ours || now < c->deadline_ns || (c->stalled && async_)) {
      c = c->young_next;
      continue;
    }
    // What it said may lie in the socket unread: the application computed meanwhile.
    step_handshake(*c);
    if (c->state != ConnectionState::kUp && c->state != ConnectionState::kFree) refuse(*c, NoteCode::kHandshakeTimeout, 0);
    c = young_head_;  // a tie may have taken others out; each turn takes one out
  }
  for (int i = 0; wanting_ > 0 && i < peer_count_; ++i) {
    Peer& p = peers_[i];
    if (p.state != PeerState::kMaking) continue;
    if (now >= p.give_up_ns)
      lose(i, ETIMEDOUT);
    else if (p.connection == nullptr && now >= p.retry_ns && !async_)
      begin_connect(i);  // the handler had no node for it, or the attempt before was closed
  }
}

// Once a second: peers that were cut off while data was under way, which keepalive does not see.
void Engine::look_for_silence() {
  const StreamOptions& o = options_.stream;
  const std::int64_t now = net_.now_ns();
  if (o.keepalive_idle_s == 0 || now < silence_look_ns_) return;
  silence_look_ns_ = now + kSilenceStrideNs;
  const std::int64_t limit_ms = 1000 * (o.keepalive_idle_s + std::int64_t{kKeepaliveProbes} * o.keepalive_interval_s);
  for (int i = 0; i < peer_count_; ++i) {
    const Connection* c = peers_[i].connection;
    if (c == nullptr || c->state != ConnectionState::kUp) continue;
    ++counters_.other_calls;
    if (net_.is_silent(c->fd, limit_ms)) lose(i, ETIMEDOUT);
  }
}

std::int64_t Engine::round_trip_ns(int peer) {
  const Connection* c = peers_[peer].connection;
  if (c == nullptr || c->state != ConnectionState::kUp) return 0;
  ++counters_.other_calls;
  return std::int64_t{1000} * net_.round_trip_us(c->fd);
}

// Without a question the descriptor is taken out: epoll reports a hang-up whether it was asked for or not, and again and again.
void Engine::ask_epoll(Connection& c, unsigned asked_before) {
  const unsigned asked = asked_of_epoll(c);
  if (asked == asked_before) return;
  ++counters_.other_calls;
  if (asked == 0) {
    net_.unwatch(c.fd);
    return;
  }
  const int rc = asked_before == 0 ? net_.watch(c.fd, c.pool_handle, asked) : net_.rewatch(c.fd, c.pool_handle, asked);
  if (rc < 0 && c.state == ConnectionState::kUp) lose(c.peer, -rc);  // no memory: nobody would ever hear of it again
}

void Engine::set_interest(Connection& c, unsigned interest) {
  const unsigned before = asked_of_epoll(c);
  c.interest = interest;
  ask_epoll(c, before);
}

// hot_, which is aside already if only its mark is another one now.
void Engine::set_aside() {
  Connection& c = *hot_;
  const unsigned before = asked_of_epoll(c);
  aside_ = &c;
  ask_epoll(c, before);
  if (c.low_water != c.mark) apply_low_water(c, c.mark);
}

// What is there already is announced by this.
void Engine::take_back() {
  Connection& c = *aside_;
  const unsigned before = asked_of_epoll(c);
  aside_ = nullptr;
  hot_reads_ = 0;
  if (c.state != ConnectionState::kUp) return;
  if (c.low_water != 1) apply_low_water(c, 1);
  ask_epoll(c, before);
}

void Engine::handle(const NetEvent& event) {
  if (event.token == kListenerToken) {
    accept_all();
    return;
  }
  Connection* c = connections_.find(event.token);
  if (c == nullptr || c->state == ConnectionState::kFree) return;  // dropped by an earlier event of the same batch
  if (c->state != ConnectionState::kUp) {
    step_handshake(*c);
    if (c->state != ConnectionState::kUp) return;
    if ((event.ready & kReadable) == 0) return;
  }
  const std::uint64_t handle = c->pool_handle;
  if ((event.ready & kWritable) != 0 && c->out_count > 0) flush(c->peer);
  if ((event.ready & kReadable) != 0 && c->pool_handle == handle && c->state == ConnectionState::kUp) pump(*c);
}

int Engine::poll_all() {
  if (gathered_ != 0) flush_gathered();
  if (settling_ != nullptr) settle();
  if (aside_ != nullptr) take_back();
  return look_at_all();
}

// By epoll, which does not tell of what the connection that is set aside has.
int Engine::look_at_all() {
  NetEvent events[kEventsMax];
  int n = 0;
  ++depth_;
  // A handler is not called again for what it leaves: with more ready than fit, all have to have their turn (some of them may stay ready).
  for (int turns = exhaustive_ ? peer_count_ / kEventsMax + 1 : 1; turns > 0; --turns) {
    ++counters_.waits;
    const int found = net_.wait(events, kEventsMax, 0);
    for (int i = 0; i < found; ++i) handle(events[i]);
    if (found > 0) n += found;
    crowded_ = found > 1;
    if (found < kEventsMax) break;
  }
  ++looks_;  // not tick_, which poll() moves too: of two counts by one counter a stride may see only the odd ones
  if ((young_count_ > 0 || wanting_ > 0) && (n > 0 || looks_ % kDeadlineStride == 0)) look_at_deadlines();
  if (looks_ % kSilenceStride == 0) look_for_silence();
  --depth_;
  bury();
  return n;
}

int Engine::poll() {
  if (gathered_ != 0) flush_gathered();
  if (settling_ != nullptr) settle();
  if (exhaustive_) return poll_all();
  const unsigned strides = tick_ / kAllStride;
  ++tick_;
  int moved = 0;
  if (!outstanding_ && queued_sends_ == 0 && young_count_ == 0 && wanting_ == 0 && tick_ % kIdleStride != 0) return 0;
  ++depth_;
  // While several have something, all have their turn: the preferred one alone would be served until it has nothing left.
  const bool all = crowded_;
  if (all && aside_ != nullptr) take_back();
  if (!all && hot_ != nullptr && !hot_->parked && !hot_->in_ready_list) {
    const bool looked = hot_ == aside_ && hot_->staging == nullptr && !hot_->in_frame && looked_for(*hot_);
    if (!looked || !nothing_came(*hot_)) moved = pump(*hot_) ? 1 : 0;
    if (looked && moved != 0) judge_look();
  }
  if (!all && !signals_ && hot_ != nullptr && options_.aside_after > 0 && hot_reads_ == options_.aside_after && (aside_ == nullptr || aside_->low_water != aside_->mark)) set_aside();
  close_looks_ = 0;
  --depth_;
  bury();
  if (hot_ == nullptr || all || queued_sends_ != 0 || young_count_ != 0 || wanting_ != 0 || tick_ / kAllStride != strides) moved += look_at_all();
  return moved;
}

int Engine::wait(std::int64_t timeout_ns) {
  NetEvent events[kEventsMax];
  flush_gathered();
  if (aside_ != nullptr) take_back();
  ++counters_.sleeps;
  gate_.leave();
  const int n = net_.wait(events, kEventsMax, timeout_ns);
  gate_.enter();
  ++depth_;
  for (int i = 0; i < n; ++i) handle(events[i]);
  if (young_count_ > 0 || wanting_ > 0) look_at_deadlines();
  look_for_silence();
  --depth_;
  bury();
  return n > 0 ? n : 0;
}

void Engine::prefer(int peer) {
  Connection* c = peers_[peer].connection;
  if (c != nullptr && c->state == ConnectionState::kUp) make_hot(*c);
}

void Engine::drive_by_signals(int fd) {
  if (signal_tid_ == 0) return;
  net_.set_signal_driven(fd, signal_tid_, signal_number_);
  if (!signals_) net_.set_signals(fd, false);
}

void Engine::set_signal_driven(int tid, int signo) {
  signal_tid_ = tid;
  signal_number_ = signo;
  const auto apply = [&](int fd) {
    if (tid != 0)
      drive_by_signals(fd);
    else
      net_.set_signal_driven(fd, 0, signo);
  };
  if (options_.listener >= 0) apply(options_.listener);
  for (int i = 0; i < peer_count_; ++i)
    if (peers_[i].connection != nullptr) apply(peers_[i].connection->fd);
  for (Connection* c = young_head_; c != nullptr; c = c->young_next) apply(c->fd);
}

void Engine::set_signals(bool on) {
  if (signals_ == on) return;
  signals_ = on;
  if (on && aside_ != nullptr) take_back();
  if (signal_tid_ == 0) return;
  ++counters_.other_calls;
  if (options_.listener >= 0) net_.set_signals(options_.listener, on);
  for (int i = 0; i < peer_count_; ++i) {
    const Connection* c = peers_[i].connection;
    if (c == nullptr || c->state != ConnectionState::kUp) continue;
    net_.set_signals(c->fd, on);
    ++counters_.other_calls;
  }
  for (const Connection* c = young_head_; c != nullptr; c = c->young_next) net_.set_signals(c->fd, on);
}

void Engine::disown() {
  if (options_.listener >= 0) net_.disown(options_.listener);
  for (int i = 0; i < peer_count_; ++i)
    if (peers_[i].connection != nullptr) net_.disown(peers_[i].connection->fd);
  for (const Connection* c = young_head_; c != nullptr; c = c->young_next)
    if (c->fd >= 0) net_.disown(c->fd);
  net_.disown(-1);
}

const char* Engine::describe(int peer, char* text, std::size_t size) const {
  const sockaddr_storage& at = address_of(peer);
  char address[INET6_ADDRSTRLEN] = "?";
  int port = 0;
  if (at.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(at);
    inet_ntop(AF_INET, &in.sin_addr, address, sizeof address);
    port = ntohs(in.sin_port);
  } else if (at.ss_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(at);
    inet_ntop(AF_INET6, &in6.sin6_addr, address, sizeof address);
    port = ntohs(in6.sin6_port);
  }
  if (is_foreign(peer))
    std::snprintf(text, size, "a process of another job (%s port %d)", address, port);
  else
    std::snprintf(text, size, "rank %d on host %s (%s port %d)", peer, options_.peers[peer].host, address, port);
  return text;
}

}  // namespace mplite
