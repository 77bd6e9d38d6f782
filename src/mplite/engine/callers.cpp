// Missing ranks, and hearing those who call.
#include "mplite/engine/callers.h"

#include <algorithm>

namespace mplite {
namespace {

constexpr int kListenNodesMax = 64;  // see connections_wanted
constexpr int kLaneNodesMax = 16;    // the same, for lanes

}  // namespace

std::uint32_t Callers::connections_wanted() const {
  const int lanes = core_.options.lanes == 1 ? 0 : 2 * (core_.options.size - 1);
  return static_cast<std::uint32_t>(std::clamp(missing_, 8, kListenNodesMax) +
                                    std::min(lanes, kLaneNodesMax));
}

void Callers::start(int missing) {
  missing_ = missing;
  if (missing_ == 0) listener_.keep_first();
}

void Callers::no_longer_missing() {
  if (--missing_ != 0) return;
  stop_hearing();
  if (core_.options.lanes == 1 && !core_.options.resume)
    listener_.keep_first();  // or else others may lead lanes here, or a connection that broke
}

int Callers::hear(int signo) {
  if (listener_.hearing() || missing_ == 0 || !listener_.is_there()) return 0;
  if (const int rc = listener_.hear(signo); rc < 0) return rc;
  const auto apply = [&](int fd) {
    ++core_.counters.other_calls;
    if (signo != 0) signals_.drive(fd, true);
  };
  listener_.for_each(apply);
  for (Connection* c = core_.handshaking.first(); c != nullptr; c = c->list_next) {
    if (c->handshake.ours) continue;
    c->handshake.heard_apart = core_.net.watch_caller(c->fd, c->pool_handle, false) == 0;
    if (c->handshake.heard_apart) apply(c->fd);
  }
  return 0;
}

void Callers::stop_hearing() {
  if (!listener_.hearing()) return;
  listener_.for_each([this](int fd) { core_.net.unwatch_caller(fd); });
  for (Connection* c = core_.handshaking.first(); c != nullptr; c = c->list_next)
    if (c->handshake.heard_apart) leave(*c);
  const bool apart = listener_.signal() != 0;
  listener_.stop_hearing();
  if (apart) {
    listener_.for_each([this](int fd) { signals_.drive(fd); });
    if (signals_.enabled()) core_.gate.ask_drain();
  }
  ++core_.counters.other_calls;
}

// From now on it is like a connection. What has come until now was announced by the callers'
// signal, for which nobody reads messages: who is told by the other one looks again.
void Callers::leave(Connection& c) {
  core_.net.unwatch_caller(c.fd);
  ++core_.counters.other_calls;
  c.handshake.heard_apart = false;
  if (listener_.signal() == 0) return;
  signals_.drive(c.fd);
  if (signals_.enabled()) core_.gate.ask_drain();
}

void Callers::proved(Connection& c) {
  listener_.give_back();
  leave(c);
}

}  // namespace mplite
