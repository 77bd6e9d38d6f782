// What the engine tells people of its peers. Ordinary context.
#include <algorithm>
#include <cstdio>

#include "mplite/base/address.h"
#include "mplite/base/bounded_text.h"
#include "mplite/base/libc_compat.h"
#include "mplite/engine/engine.h"
#include "mplite/observe/log.h"

namespace mplite {

PeerReport Engine::report(int peer) const {
  const Peer& p = core_.peers[peer];
  PeerReport report;
  report.state = p.state;
  report.error = p.state == PeerState::kMaking ? p.connect_error : p.error;
  report.queued_bytes = tx_.queued_bytes(peer);
  report.has_stream = p.state == PeerState::kUp && p.connection != nullptr &&
                      core_.net.report(p.connection->fd, report.stream);
  return report;
}

const char* Engine::describe(int peer, char* text, std::size_t size) const {
  const AddressTurns& turns = core_.peers[peer].turns;
  char address[96];
  BoundedText out(text, size);
  if (core_.is_remote(peer))
    out.add("a process of another job (");
  else
    out.add("rank %d on host %s (", peer, core_.options.peers[peer].host);
  // Those that led nowhere, with the reason; else the one that is in use.
  int told = 0;
  for (int i = 0; i < turns.count(); ++i)
    if (turns.error_of(i) != 0)
      out.add("%s%s: %s", told++ == 0 ? "" : "; ",
              format_address(remote_.address_of(peer, i), address, sizeof address),
              error_text(turns.error_of(i)));
  if (told == 0)
    out.add("%s",
            format_address(remote_.address_of(peer, turns.current()), address, sizeof address));
  out.add(")");
  return text;
}

int Engine::local_ends(int peer, sockaddr_storage (&ends)[kAddressesMax]) {
  int count = 0;
  for (int i = 0; i < remote_.address_count(peer); ++i) {
    sockaddr_storage& end = ends[count];
    if (core_.net.local_end_towards(remote_.address_of(peer, i), end) < 0) continue;
    set_port(end, 0);
    if (std::none_of(ends, ends + count,
                     [&end](const sockaddr_storage& known) { return is_same_host(known, end); }))
      ++count;
  }
  return count;
}

// "10.0.0.2 port 4711 from 10.0.0.1 (no answer)", of each address.
void Engine::list_attempts(int peer, BoundedText& out) {
  const Peer& p = core_.peers[peer];
  for (int i = 0; i < p.turns.count(); ++i) {
    char text[96];
    const sockaddr_storage to = remote_.address_of(peer, i);
    out.add("%s%s", i == 0 ? "" : ", ", format_address(to, text, sizeof text));
    sockaddr_storage end;
    if (core_.net.local_end_towards(to, end) >= 0) {
      set_port(end, 0);
      out.add(" from %s", format_address(end, text, sizeof text));
    }
    const int error = p.turns.count() > 1 ? p.turns.error_of(i) : p.connect_error;
    out.add(" (%s)", error != 0 && error != ETIMEDOUT ? error_text(error) : "no answer");
  }
}

void Engine::say_overdue() {
  constexpr std::int64_t kSecond = 1'000'000'000;
  core_.underway.overdue = false;
  const std::int64_t now = core_.net.now_ns();
  for (int i = 0; i < core_.peer_count; ++i) {
    Peer& p = core_.peers[i];
    if (p.overdue != Overdue::kDue) continue;
    p.overdue = Overdue::kTold;
    if (p.state != PeerState::kMaking || (p.attempt != nullptr && is_tcp_up(*p.attempt))) continue;
    const std::int64_t left = std::max<std::int64_t>(p.give_up_ns - now, 0);
    char line[NoteLog::kLineBytes];
    BoundedText out(line, sizeof line);
    if (core_.is_remote(i))
      out.add("no connection to a process of another job");
    else
      out.add("no connection to rank %d on host %s", i, core_.options.peers[i].host);
    out.add(" for %lld s: tried ",
            static_cast<long long>((core_.options.connect_timeout_ns - left) / kSecond));
    list_attempts(i, out);
    out.add("; it is tried for another %lld s (LITE_CONNECT_TIMEOUT)",
            static_cast<long long>((left + kSecond / 2) / kSecond));
    core_.notes.say(core_.options.rank, now, line);
  }
}

}  // namespace mplite
