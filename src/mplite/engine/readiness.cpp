// Epoll's questions, and the connection that is polled by reads alone.
#include "mplite/engine/readiness.h"

namespace mplite {

// Without a question the descriptor is taken out: epoll reports a hang-up whether it was asked for
// or not, and again and again.
void Readiness::ask_epoll(Connection& c, unsigned asked_before) {
  const unsigned asked = asked_of_epoll(c);
  if (asked == asked_before) return;
  ++core_.counters.other_calls;
  if (asked == 0) {
    core_.net.unwatch(c.fd);
    return;
  }
  const int rc = asked_before == 0 ? core_.net.watch(c.fd, c.pool_handle, asked)
                                   : core_.net.rewatch(c.fd, c.pool_handle, asked);
  if (rc < 0 && c.state == ConnectionState::kUp)
    up_.lose(c.peer, -rc);  // no memory: nobody would ever hear of it again
}

void Readiness::set_interest(Connection& c, unsigned interest) {
  const unsigned before = asked_of_epoll(c);
  c.interest = interest;
  ask_epoll(c, before);
}

void Readiness::set_low_water(Connection& c, int bytes) {
  c.rx.low_water = bytes;
  core_.net.set_receive_low_water(c.fd, bytes);
  ++core_.counters.other_calls;
}

void Readiness::ask_for_room() {
  for (int i = 0; i < core_.peer_count; ++i)
    for_each_stream(core_.peers[i], [this](const Connection& c) {
      if (c.state != ConnectionState::kUp || (c.interest & kWritable) == 0) return;
      ++core_.counters.other_calls;
      core_.net.rewatch(c.fd, c.pool_handle, asked_of_epoll(c));
    });
}

void Readiness::forget(Connection& c) {
  if (preferred_ == &c) {
    preferred_ = nullptr;
    detach_.begin_anew();
  }
  if (asked_of_epoll(c) != 0) core_.net.unwatch(c.fd);
  if (detached_ == &c) detached_ = nullptr;
}

void Readiness::detach() {
  Connection& c = *preferred_;
  const unsigned before = asked_of_epoll(c);
  detached_ = &c;
  ask_epoll(c, before);
  if (const int mark = c.tuning.rcvlowat.mark(); c.rx.low_water != mark) set_low_water(c, mark);
}

void Readiness::reattach() {
  Connection& c = *detached_;
  const unsigned before = asked_of_epoll(c);
  detached_ = nullptr;
  detach_.begin_anew();
  if (c.state != ConnectionState::kUp) return;
  if (c.rx.low_water != 1) set_low_water(c, 1);
  ask_epoll(c, before);
}

}  // namespace mplite
