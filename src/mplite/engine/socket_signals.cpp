// Signals on sockets: set for new ones and for all, switched off and on.
#include "mplite/engine/socket_signals.h"

namespace mplite {

void SocketSignals::drive(int fd, bool caller) {
  if (tid_ == 0) return;
  const bool apart = caller && listener_.signal() != 0;
  core_.net.set_signal_driven(fd, tid_, apart ? listener_.signal() : signo_);
  if (!apart && !enabled_) core_.net.set_signals(fd, false);
}

void SocketSignals::drive_all(int tid, int signo) {
  tid_ = tid;
  signo_ = signo;
  const auto apply = [&](int fd, bool caller) {
    if (tid != 0)
      drive(fd, caller);
    else
      core_.net.set_signal_driven(fd, 0, signo);
  };
  listener_.for_each([&](int fd) { apply(fd, true); });
  for (int i = 0; i < core_.peer_count; ++i)
    for_each_stream(core_.peers[i], [&](const Connection& c) { apply(c.fd, false); });
  for (Connection* c = core_.handshaking.first(); c != nullptr; c = c->list_next)
    apply(c->fd, c->handshake.heard_apart);
}

void SocketSignals::set_enabled(bool on) {
  if (enabled_ == on) return;
  enabled_ = on;
  if (tid_ == 0) return;
  ++core_.counters.other_calls;
  if (listener_.signal() == 0) listener_.for_each([&](int fd) { core_.net.set_signals(fd, on); });
  for (int i = 0; i < core_.peer_count; ++i)
    for_each_stream(core_.peers[i], [&](const Connection& c) {
      if (c.state != ConnectionState::kUp) return;
      core_.net.set_signals(c.fd, on);
      ++core_.counters.other_calls;
    });
  for (const Connection* c = core_.handshaking.first(); c != nullptr; c = c->list_next)
    if (!c->handshake.heard_apart || listener_.signal() == 0) core_.net.set_signals(c->fd, on);
}

}  // namespace mplite
