// wait_loop.h: what is news in a wait, when the clock is read, and what a turn leads to.
#include "mplite/runtime/wait_loop.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <thread>  // before check.h and its macro fail

#include "mplite/net/net_posix.h"
#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::int64_t kUs = 1000;

// An engine of a job of one, and waiting by a policy.
struct Alone {
  Alone() : engine(open(net), options(self)) { ck_assert_int_eq(engine.start(), 0); }
  static Net& open(PosixNet& net) {
    ck_assert_int_eq(net.open(), 0);
    return net;
  }
  static EngineOptions options(const PeerAddress& self) {
    EngineOptions alone;
    alone.peers = &self;
    return alone;
  }

  PosixNet net;
  PeerAddress self = {};
  Engine engine;
};

START_TEST(the_policy_counts_from_the_last_news) {
  const WaitPolicy policy = choose_wait_policy(2, 2, 1000 * kUs, false);
  WaitLoop waiting;
  waiting.news();
  ck_assert_int_eq(waiting.next(policy, 5000 * kUs).kind, WaitStep::kPoll);  // the first reading
  ck_assert_int_eq(waiting.quiet_ns(5010 * kUs), 10 * kUs);
  ck_assert_int_eq(waiting.next(policy, 5500 * kUs).kind, WaitStep::kYield);
  ck_assert_int_eq(waiting.next(policy, 6000 * kUs).kind, WaitStep::kSleep);
  waiting.news_at(6000 * kUs);
  ck_assert_int_eq(waiting.next(policy, 6001 * kUs).kind, WaitStep::kPoll);
}
END_TEST

START_TEST(what_is_counted_is_news_once) {
  WaitLoop waiting;
  ck_assert(!waiting.has_moved(0));
  ck_assert(waiting.has_moved(7));
  ck_assert(!waiting.has_moved(7));
  ck_assert(waiting.has_moved(8));
}
END_TEST

START_TEST(the_clock_is_read_every_few_polls) {
  WaitLoop waiting;
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 1; i < WaitLoop::kPollsPerClock; ++i) ck_assert(!waiting.clock_is_due());
    ck_assert(waiting.clock_is_due());
  }
  ck_assert(!waiting.clock_is_due());
  waiting.news();  // begins anew
  for (std::uint32_t i = 1; i < WaitLoop::kPollsPerClock; ++i) ck_assert(!waiting.clock_is_due());
  ck_assert(waiting.clock_is_due());
}
END_TEST

START_TEST(a_loop_polls_then_yields_then_sleeps_and_news_begin_it_anew) {
  Alone alone;
  Hold hold(alone.engine.gate());
  const WaitPolicy policy = choose_wait_policy(1, 1, 100 * kUs, false);
  const Counters& counters = alone.engine.counters();
  std::int64_t now = 1;
  int turns = 0;
  WaitLoop waiting;
  waiting.run(alone.engine, policy, [&] {
    switch (++turns) {
      case 1: ck_assert_uint_eq(counters.yields, 0); return WaitLoop::rest(now);
      case 2: ck_assert_uint_eq(counters.yields, 0); return WaitLoop::rest(now += 50 * kUs);
      case 3: ck_assert_uint_eq(counters.yields, 1); return WaitLoop::rest(now += 50 * kUs);
      case 4:
        ck_assert_uint_eq(counters.yields, 1);
        ck_assert_uint_eq(counters.sleeps, 1);
        waiting.news_at(now);
        return WaitLoop::rest(now);
      case 5: ck_assert_uint_eq(counters.sleeps, 1); return WaitLoop::again();
      default: return WaitLoop::done();
    }
  });
  ck_assert_int_eq(turns, 6);
  ck_assert_uint_eq(counters.sleeps, 1);
  ck_assert(alone.engine.gate().held());
}
END_TEST

START_TEST(the_gate_is_left_while_the_core_is_given_away) {
  Alone alone;
  bool drained = false;
  alone.engine.gate().set_drain([](void* arg) { *static_cast<bool*>(arg) = true; }, &drained);
  Hold hold(alone.engine.gate());
  alone.engine.gate().ask_drain();
  WaitLoop waiting;
  waiting.news_at(0);
  waiting.rest_by(choose_wait_policy(1, 2, kSpinForever, false), alone.engine, kUs);
  ck_assert(drained);
  alone.engine.gate().set_drain([](void*) {}, nullptr);
}
END_TEST

START_TEST(what_a_handler_has_left_to_do_keeps_a_rank_from_sleep) {
  constexpr std::int64_t kLongNs = 2'000'000 * kUs;
  Alone alone;
  alone.engine.gate().set_drain([](void*) {}, nullptr);
  Hold hold(alone.engine.gate());
  alone.engine.gate().ask_drain();  // and the drain may bring what is waited for
  const std::int64_t began_ns = alone.net.now_ns();
  alone.engine.wait(kLongNs);
  ck_assert_int_lt(alone.net.now_ns() - began_ns, kLongNs);
}
END_TEST

void look(Engine& engine) {
  Hold hold(engine.gate());
  engine.poll_all();
}

// How long the wait was; if another thread looks at all sockets in the midst of it.
std::int64_t waited_beside_another(Alone& alone, std::int64_t timeout_ns) {
  std::thread another;
  const std::int64_t began_ns = alone.net.now_ns();
  {
    Hold hold(alone.engine.gate());
    another = std::thread([&] {
      usleep(50'000);
      look(alone.engine);
    });
    alone.engine.wait(timeout_ns);
  }
  const std::int64_t waited_ns = alone.net.now_ns() - began_ns;
  another.join();
  return waited_ns;
}
std::int64_t waited(Alone& alone, std::int64_t timeout_ns) {
  const std::int64_t began_ns = alone.net.now_ns();
  Hold hold(alone.engine.gate());
  alone.engine.wait(timeout_ns);
  return alone.net.now_ns() - began_ns;
}

START_TEST(what_another_thread_takes_ends_a_sleep) {
  constexpr std::int64_t kLongNs = 5'000'000 * kUs, kShortNs = 20'000 * kUs;
  Alone alone;
  for (int i = 0; i < 3; ++i) {
    ck_assert_int_lt(waited_beside_another(alone, kLongNs), kLongNs);
    ck_assert_int_ge(waited(alone, kShortNs), kShortNs);  // of the one sleep only
  }
}
END_TEST

// Between the last poll of who waits and its sleep.
START_TEST(nobody_sleeps_over_what_another_thread_has_just_taken) {
  constexpr std::int64_t kLongNs = 5'000'000 * kUs, kShortNs = 20'000 * kUs;
  Alone alone;
  look(alone.engine);
  ck_assert_int_ge(waited(alone, kShortNs), kShortNs);  // its own look is none
  std::thread([&] { look(alone.engine); }).join();
  ck_assert_int_lt(waited(alone, kLongNs), kLongNs);
  ck_assert_int_ge(waited(alone, kShortNs), kShortNs);
}
END_TEST

START_TEST(without_a_descriptor_sleeps_are_short) {
  constexpr std::int64_t kLongNs = 1'000'000 * kUs;
  Alone alone;
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {3, before.rlim_max};
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
  ck_assert_int_ge(waited_beside_another(alone, kLongNs / 5), kLongNs / 5);  // it finds out
  ck_assert_int_lt(waited(alone, kLongNs), kLongNs);
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
  std::atomic<bool> ended{false};
  std::thread another([&] {
    for (int i = 0; i < 50; ++i) {
      usleep(3000);
      look(alone.engine);
    }
    ended = true;
  });
  while (!ended) waited(alone, kLongNs);
  another.join();
  waited(alone, 0);
  ck_assert_int_ge(waited(alone, kLongNs / 5), kLongNs / 5);
}
END_TEST

}  // namespace

int main() { return run_tests("wait_loop"); }
