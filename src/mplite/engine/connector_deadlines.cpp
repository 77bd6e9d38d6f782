// Our attempts as time passes: those whose time is over, those that are due again, and of whom
// people are told that they are tried in vain.
#include <algorithm>
#include <cerrno>

#include "mplite/engine/connector.h"

namespace mplite {
namespace {

// Of the time between two looks at them no more counts, nor more than this part of the whole.
constexpr std::int64_t kAwayNs = 1'000'000'000, kAwayPart = 4;
// People are told of a peer that is tried in vain for so long, unless it is given up by the second
// limit anyway.
constexpr std::int64_t kOverdueNs = 8'000'000'000, kSaidByNs = 10'000'000'000;

}  // namespace

// Attempts that others have been made beside, and whose time is over.
void Connector::look_at_attempts_beside(std::int64_t now) {
  for (Connection* c = core_.handshaking.first(); c != nullptr;) {
    const bool over = c->handshake.ours && c->lane == 0 &&
                      c->state == ConnectionState::kConnecting &&
                      core_.peers[c->peer].attempt != c && now >= c->handshake.deadline_ns;
    if (over) attempt_failed(*c, ETIMEDOUT);
    c = over ? core_.handshaking.first() : c->list_next;  // that may have taken others out
  }
}

void Connector::look_at_attempts(std::int64_t now) {
  look_at_attempts_beside(now);
  for (int i = 0; core_.underway.connecting > 0 && i < core_.peer_count; ++i) {
    Peer& p = core_.peers[i];
    if (p.state != PeerState::kMaking || (p.attempt != nullptr && is_tcp_up(*p.attempt))) continue;
    note_if_overdue(p, now);
    if (now >= p.give_up_ns) {
      if (p.turns.count() > 1)
        for_each_attempt(i, nullptr, [&p](const Connection& c) {
          p.turns.failed(c.handshake.address, ETIMEDOUT, false);
        });
      lose(i, p.connect_error != 0 ? p.connect_error : ETIMEDOUT);
    } else if (p.attempt != nullptr && p.turns.count() > 1 &&
               now >= p.attempt->handshake.deadline_ns) {
      attempt_failed(*p.attempt, ETIMEDOUT);
    } else if (p.attempt != nullptr && p.turns.count() > 1 && now >= p.next_address_ns) {
      try_another_beside(i);
    } else if (p.attempt == nullptr && now >= p.retry_ns && !core_.mode.in_signal_handler) {
      begin_connect(i);  // the handler had no node for it, or the attempt before failed
    }
  }
  // Who waits may not come to another refill() for long.
  if (core_.underway.overdue && !core_.mode.in_signal_handler) parts_.up.refill();
}

// What there is to say is written in ordinary context (Engine::say_overdue).
void Connector::note_if_overdue(Peer& p, std::int64_t now) {
  const std::int64_t limit = core_.options.connect_timeout_ns;
  if (p.overdue != Overdue::kNot || limit <= kSaidByNs || now - (p.give_up_ns - limit) < kOverdueNs)
    return;
  p.overdue = Overdue::kDue;
  core_.underway.overdue = true;
}

void Connector::discount_absence(std::int64_t now) {
  const std::int64_t counts = std::min(kAwayNs, core_.options.connect_timeout_ns / kAwayPart);
  const std::int64_t away = now - deadlines_looked_ns_ - counts;
  deadlines_looked_ns_ = now;
  if (away <= 0) return;
  for (int i = 0; core_.underway.connecting > 0 && i < core_.peer_count; ++i) {
    Peer& p = core_.peers[i];
    if (p.state != PeerState::kMaking || (p.attempt != nullptr && is_tcp_up(*p.attempt))) continue;
    p.give_up_ns += away;
    p.next_address_ns += away;
    for_each_attempt(i, nullptr, [away](Connection& c) { c.handshake.deadline_ns += away; });
  }
}

}  // namespace mplite
