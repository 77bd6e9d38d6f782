// Accepting callers, and making room for them.
#include "mplite/engine/acceptor.h"

#include <cerrno>

#include "mplite/net/connect_error.h"

namespace mplite {

// The connection that has not proved itself for the longest time makes room, one without a hello
// before any other: a rank of the job says hello at once, proves itself within a round trip, and
// tries again if it was pushed out. False: there is none.
bool Acceptor::evict_stranger() {
  const std::int64_t now = core_.net.now_ns();
  while (Connection* stranger = core_.handshaking.first_to_evict(now)) {
    const ConnectionHandshake& handshake = stranger->handshake;
    if (!handshake.stalled) {
      const ConnectionState before = stranger->state;
      handshaker_.step(*stranger);  // what it says may lie in the socket unread
      const bool spoke = stranger->state != before || handshake.stalled;
      if (spoke && is_in_handshake(*stranger)) continue;
    }
    // Where the handler has no node left, it may be a rank that has not spoken yet, and tries
    // again: that is no news.
    const bool is_news = core_.handshaking.accepted() >= kHandshakesMax ||
                         !connector_.is_host_of_a_missing_peer(stranger->remote);
    if (is_in_handshake(*stranger) && is_news) {
      connector_.refuse(*stranger, NoteCode::kTooManyStrangers, 0);
    } else if (is_in_handshake(*stranger)) {
      ++core_.counters.connections_refused;
      connector_.drop(*stranger);
    }
    core_.free_now(*stranger);
    return true;
  }
  return false;
}

// The ranks that are missing are given up when no caller could be accepted for
// LITE_CONNECT_TIMEOUT, of which only the time in MPI counts: the application may end the shortage
// while it computes.
void Acceptor::pause_listener(int error) {
  if (listener_.pause(!core_.mode.in_signal_handler && !core_.mode.background &&
                      !core_.mode.callers_only))
    core_.notes.note(NoteCode::kAcceptFailed, -1, error);
  if (listener_.failed_ns() < core_.options.connect_timeout_ns) return;
  listener_.forget_failures();
  for (int i = 0; i < core_.options.size; ++i) {
    const Peer& p = core_.peers[i];
    const bool missing =
        p.state == PeerState::kIdle ||
        (p.state == PeerState::kMaking && (p.attempt == nullptr || !is_tcp_up(*p.attempt)));
    if (i != core_.options.rank && missing) connector_.lose(i, error);
  }
}

// A caller begins its handshake.
void Acceptor::accepted(int fd, const sockaddr_storage& from) {
  Connection* c = core_.connections.take();
  c->fd = fd;
  c->remote = from;
  c->handshake.deadline_ns = core_.net.now_ns() + HandshakeList::kHandshakeNs;
  core_.set_state(*c, ConnectionState::kAwaitHello);
  core_.net.set_options(fd, core_.options.stream);
  signals_.drive(fd, true);
  c->interest = kReadable;
  core_.counters.other_calls += 2;
  core_.handshaking.add(*c);
  int rc = core_.net.watch(fd, c->pool_handle, c->interest);
  if (rc == 0 && listener_.hearing()) {
    rc = core_.net.watch_caller(fd, c->pool_handle, false);
    c->handshake.heard_apart = rc == 0;
    ++core_.counters.other_calls;
  }
  if (rc < 0)
    connector_.refuse(*c, NoteCode::kAcceptFailed, -rc);
  else
    handshaker_.step(*c);  // its hello is often there already
  core_.free_now(*c);
}

// Above accept_all and poll_callers nobody holds a connection in handshake, so the node of one that
// was dropped is free at once: strangers that come and go would use all of them up.
bool Acceptor::accept_all() {
  const bool has_allowance =
      core_.mode.callers_only || (core_.mode.in_signal_handler && listener_.hearing());
  bool any = false;
  for (int left = kAcceptsOfPass;; --left) {
    if (left == 0 && !has_allowance) {
      end_pass();
      return any;
    }
    // Without a node the listener stays readable, and ordinary context accepts, unless one that
    // has not said hello yet can make room: who has would have to begin again.
    if (core_.connections.free_count() == 0 && (core_.mode.in_signal_handler || !up_.refill()) &&
        !core_.handshaking.has_silent()) {
      core_.note_starved();
      listener_.rest();
      return any;
    }
    // Of many ranks that call at once the rest wait in the kernel until these have proved
    // themselves.
    if (core_.handshaking.accepted() >= kHandshakesMax &&
        core_.handshaking.first_to_evict(core_.net.now_ns()) == nullptr) {
      listener_.rest(kFullRestNs);
      return any;
    }
    if (has_allowance && !listener_.may_step()) {
      listener_.rest();
      return any;
    }
    sockaddr_storage from = {};
    const int fd = listener_.accept(from);
    if (is_shortage(-fd)) {
      // The kernel takes a descriptor before it looks at the queue: only at first do we know that
      // there is a caller.
      if (any) return any;
      if (listener_.give_spare() || evict_stranger()) continue;
      listener_.rest();
      pause_listener(-fd);
      return any;
    }
    if (fd < 0) {
      if (fd != -EAGAIN) listener_.rest();
      listener_.regain_spare();
      return any;
    }
    listener_.forget_failures();
    any = true;
    while (
        (core_.handshaking.accepted() >= kHandshakesMax || core_.connections.free_count() == 0) &&
        evict_stranger()) {}
    // Who was silent has spoken since. The caller tries again.
    if (core_.connections.free_count() == 0) {
      core_.net.close(fd);
      ++core_.counters.connections_refused;
      core_.note_starved();
      listener_.rest();
      return any;
    }
    accepted(fd, from);
  }
}

int Acceptor::poll_callers() {
  NetEvent events[kEventsMax];
  int n = 0;
  if (!listener_.hearing()) return 0;
  DeferFree defer(core_);
  // A handler is not called again for what it leaves, and there are kHandshakesMax callers and the
  // listener.
  for (int turns = kHandshakesMax / kEventsMax + 1; turns > 0 && listener_.rest_ns() == 0;
       --turns) {
    ++core_.counters.waits;
    const int found = core_.net.wait_callers(events, kEventsMax, 0);
    // The listener last: whoever it lets in may push others out, who have something to say.
    bool callers_wait = false;
    for (int i = 0; i < found && !listener_.resting(); ++i) {
      if (events[i].token == Listener::kToken) {
        callers_wait = true;
        continue;
      }
      Connection* c = core_.connections.find(events[i].token);
      if (c == nullptr || !c->handshake.heard_apart)
        continue;  // dropped or up by an earlier event of the same batch
      if (!listener_.may_step()) {
        listener_.rest();
        break;
      }
      handshaker_.step(*c);
      core_.free_now(*c);
    }
    if (callers_wait && !listener_.resting()) accept_all();
    if (found > 0) n += found;
    if (found < kEventsMax) break;
  }
  if (n > 0 && core_.handshaking.count() > 0) handshaker_.drop_overdue(core_.net.now_ns());
  return n;
}

}  // namespace mplite
