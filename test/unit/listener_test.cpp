// listener.h: the spare descriptor, pauses after a shortage, and rests from callers, over the fake
// network.
#include "mplite/engine/listener.h"

#include <cerrno>

#include "fake_net.h"
#include "run_tests.h"

using namespace mplite;

namespace {

sim::Faults no_faults() {
  sim::Faults f;
  f.short_io = f.would_block = f.empty_wait = f.hidden_event = 0;
  f.delay_max_ns = 0;
  return f;
}

struct Host {
  sim::FakeWorld world{1, 1, no_faults()};
  Counters counters;
  Net& net = world.net(0);
  Listener listener;

  explicit Host(bool spare = false)
      : listener(net, counters, {world.make_listener(0), -1, -1, -1},
                 spare ? net.open_stream(AF_INET) : -1, AF_INET) {
    ck_assert_int_eq(listener.start(), 0);
  }
  // Whether epoll tells of the caller that waits.
  bool told() {
    NetEvent event = {};
    return net.wait(&event, 1, 0) == 1 && event.token == Listener::kToken;
  }
};

START_TEST(spare_descriptor_is_given_once_and_regained) {
  Host h(true);
  h.world.descriptors_left = 0;
  ck_assert(h.listener.give_spare());
  ck_assert_int_eq(h.world.descriptors_left, 1);
  ck_assert(!h.listener.give_spare());
  h.listener.regain_spare();
  ck_assert_int_eq(h.world.descriptors_left, 0);
  h.listener.regain_spare();  // it is held: no second one
  ck_assert_int_eq(h.world.descriptors_left, 0);
  ck_assert(h.listener.give_spare());
}
END_TEST

START_TEST(without_a_spare_descriptor_there_is_none_to_regain) {
  Host h;
  ck_assert(!h.listener.give_spare());
  const std::uint64_t open = h.world.open_sockets(0);
  h.listener.regain_spare();
  ck_assert_uint_eq(h.world.open_sockets(0), open);
}
END_TEST

START_TEST(paused_listener_is_not_told_of_until_its_time) {
  Host h;
  h.world.stranger_connect(0);
  ck_assert(h.told());
  ck_assert(h.listener.pause(true));    // the first failure is news,
  ck_assert(!h.listener.pause(false));  // and no other one
  ck_assert(h.listener.paused());
  ck_assert(!h.told());
  h.world.pass(Listener::kRetryNs / 2);
  h.listener.resume_when_due(h.world.now());
  ck_assert(h.listener.paused());
  h.world.pass(Listener::kRetryNs);
  h.listener.resume_when_due(h.world.now());
  ck_assert(!h.listener.paused());
  ck_assert(h.told());
}
END_TEST

START_TEST(only_failures_that_count_add_up_until_they_are_forgotten) {
  Host h;
  for (int i = 0; i < 5; ++i) {
    h.listener.pause(true);
    h.listener.pause(false);
  }
  ck_assert_int_eq(h.listener.failed_ns(), 5 * Listener::kRetryNs);
  h.listener.forget_failures();
  ck_assert_int_eq(h.listener.failed_ns(), 0);
  ck_assert(h.listener.pause(true));  // news again
}
END_TEST

START_TEST(listener_that_cannot_be_watched_stays_paused) {
  Host h;
  h.listener.pause(true);
  h.world.fail_watch = ENOMEM;
  h.world.pass(2 * Listener::kRetryNs);
  h.listener.resume_when_due(h.world.now());
  ck_assert(h.listener.paused());
  h.world.fail_watch = 0;
  h.world.pass(2 * Listener::kRetryNs);
  h.listener.resume_when_due(h.world.now());
  ck_assert(!h.listener.paused());
}
END_TEST

START_TEST(rest_from_callers_is_for_who_hears_them_and_ends) {
  Host h;
  h.listener.rest();
  ck_assert(!h.listener.resting());
  ck_assert_int_eq(h.listener.hear(sim::kCallerSignal), 0);
  ck_assert(h.listener.hearing());
  ck_assert_int_eq(h.listener.signal(), sim::kCallerSignal);
  h.listener.rest();
  ck_assert_int_gt(h.listener.rest_ns(), Allowance::kRestNs / 2);
  ck_assert_int_le(h.listener.rest_ns(), Allowance::kRestNs);
  h.world.pass(Allowance::kRestNs);
  ck_assert_int_eq(h.listener.rest_ns(), 0);
  ck_assert(!h.listener.resting());
  h.listener.stop_hearing();
  ck_assert(!h.listener.hearing());
  ck_assert_int_eq(h.listener.signal(), 0);
}
END_TEST

}  // namespace

int main() { return run_tests("listener"); }
