// The progress gate: exclusion between threads, and a handler's work is done by whoever turned it
// away.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "../signal/trap_flag.h"
#include "mplite/engine/gate.h"
#include "run_tests.h"

namespace {

using mplite::Gate;
using mplite::Hold;

Gate* g_gate = nullptr;
std::atomic<int> g_drains{0};
bool g_held_in_drain = true;

void count_drain(void*) {
  if (g_gate != nullptr) g_held_in_drain = g_held_in_drain && g_gate->held();
  ++g_drains;
}

void turn_a_handler_away(Gate& gate) {
  Hold hold(gate);
  ck_assert(!gate.try_enter());
}

}  // namespace

START_TEST(hold_nests_within_a_thread) {
  Gate gate;
  ck_assert(!gate.held());
  {
    Hold a(gate);
    {
      Hold b(gate);
      Hold c(gate);
      ck_assert(gate.held());
    }
    ck_assert(gate.held());
  }
  ck_assert(!gate.held());
}
END_TEST

START_TEST(handler_enters_an_open_gate) {
  Gate gate;
  gate.set_drain(count_drain, nullptr);
  ck_assert(gate.try_enter());
  ck_assert(gate.held());
  gate.leave();
  ck_assert(!gate.held());
  ck_assert_int_eq(g_drains.load(), 0);
}
END_TEST

START_TEST(handler_may_hold_again_inside) {
  Gate gate;
  ck_assert(gate.try_enter());
  { Hold again(gate); }
  ck_assert(gate.held());
  gate.leave();
  ck_assert(!gate.held());
}
END_TEST

START_TEST(handler_turned_away_leaves_its_work_to_the_holder) {
  Gate gate;
  g_gate = &gate;
  gate.set_drain(count_drain, nullptr);
  {
    Hold hold(gate);
    ck_assert(!gate.try_enter());
    ck_assert(!gate.try_enter());
    ck_assert_int_eq(g_drains.load(), 0);
  }
  ck_assert_int_eq(g_drains.load(), 1);  // two signals, one look
  ck_assert(g_held_in_drain);
  ck_assert(!gate.held());
  { Hold hold(gate); }
  ck_assert_int_eq(g_drains.load(), 1);
}
END_TEST

START_TEST(only_the_outermost_leave_drains) {
  Gate gate;
  gate.set_drain(count_drain, nullptr);
  gate.enter();
  gate.enter();
  ck_assert(!gate.try_enter());
  gate.leave();
  ck_assert_int_eq(g_drains.load(), 0);
  gate.leave();
  ck_assert_int_eq(g_drains.load(), 1);
}
END_TEST

START_TEST(handler_that_comes_while_draining_is_drained_as_well) {
  Gate gate;
  g_gate = &gate;
  static int left;
  left = 3;
  gate.set_drain(
      [](void*) {
        ++g_drains;
        if (--left > 0) ck_assert(!g_gate->try_enter());
      },
      nullptr);
  turn_a_handler_away(gate);
  ck_assert_int_eq(g_drains.load(), 3);
  ck_assert(!gate.held());
}
END_TEST

namespace {
std::atomic<int> g_comes_again{0};
bool g_open_then = false;
bool g_without_end = false;
void drain_in_vain(void*) {
  ++g_drains;
  if (g_without_end || g_drains < 100) ck_assert(!g_gate->try_enter());
}
void come_again(void*) {
  ++g_comes_again;
  g_open_then = !g_gate->held();
}
}  // namespace

// As with others who answer everything that the drain does.
START_TEST(handlers_that_come_without_end_do_not_keep_the_holder) {
  Gate gate;
  g_gate = &gate;
  g_without_end = true;
  gate.set_drain(drain_in_vain, nullptr, come_again);
  turn_a_handler_away(gate);
  ck_assert_int_eq(g_drains.load(), Gate::kDrainsMax);
  ck_assert_int_eq(g_comes_again.load(), 1);
  ck_assert(g_open_then);
  ck_assert(!gate.held());
  g_without_end = false;
  g_drains = 100;
  ck_assert(gate.try_enter());  // who comes again finds what the last one left
  gate.leave();
  ck_assert_int_eq(g_drains.load(), 100);
}
END_TEST

START_TEST(who_leaves_undrained_has_the_handler_come_again) {
  Gate gate;
  g_gate = &gate;
  gate.set_drain(count_drain, nullptr, come_again);
  gate.enter();
  gate.leave_undrained();
  ck_assert_int_eq(g_comes_again.load(), 0);
  gate.enter();
  ck_assert(!gate.try_enter());
  gate.enter();
  gate.leave_undrained();  // the inner one
  ck_assert(gate.held());
  gate.leave_undrained();
  ck_assert_int_eq(g_drains.load(), 0);
  ck_assert_int_eq(g_comes_again.load(), 1);
  ck_assert(g_open_then);
  gate.set_drain(count_drain, nullptr);  // nobody comes again
  gate.enter();
  ck_assert(!gate.try_enter());
  gate.leave_undrained();
  ck_assert_int_eq(g_drains.load(), 1);
}
END_TEST

// There is no handler that could come again.
START_TEST(without_anybody_to_come_again_the_holder_drains_to_the_end) {
  Gate gate;
  g_gate = &gate;
  gate.set_drain(drain_in_vain, nullptr);
  turn_a_handler_away(gate);
  ck_assert_int_eq(g_drains.load(), 100);
  ck_assert(!gate.held());
}
END_TEST

namespace {
struct Shared {
  Gate gate;
  long plain = 0;  // changed only inside
  int rounds = 0;
};
void* add(void* arg) {
  auto* s = static_cast<Shared*>(arg);
  for (int i = 0; i < s->rounds; ++i) {
    Hold hold(s->gate);
    const long seen = s->plain;
    if (i % 64 == 0) {
      for (int k = 0; k < 2000; ++k) {
        asm volatile("");
      }
    }
    s->plain = seen + 1;
  }
  return nullptr;
}
}  // namespace

START_TEST(threads_exclude_each_other) {
  Shared s;
  s.rounds = 50'000;
  pthread_t threads[4];
  for (auto& t : threads) ck_assert_int_eq(pthread_create(&t, nullptr, add, &s), 0);
  for (auto& t : threads) pthread_join(t, nullptr);
  ck_assert_int_eq(s.plain, 200'000);
  ck_assert(!s.gate.held());
}
END_TEST

namespace {
Shared* g_shared = nullptr;
std::atomic<long> g_handled{0}, g_away{0};
void on_alarm(int) {
  if (g_shared->gate.try_enter()) {
    ++g_shared->plain;
    ++g_handled;
    g_shared->gate.leave();
  } else {
    ++g_away;
  }
}
}  // namespace

#ifdef __SANITIZE_THREAD__
// ThreadSanitizer keeps a signal back until the program makes a call that it knows: none would come
// here.
constexpr bool kSignalsComeAnywhere = false;
#else
constexpr bool kSignalsComeAnywhere = true;
#endif

// Every signal is served at once or by a drain; none meets half-done work.
START_TEST(signals_at_random_points_never_see_the_gate_half_closed) {
  if (!kSignalsComeAnywhere) return;
  Shared s;
  g_shared = &s;
  s.gate.set_drain([](void* arg) { ++static_cast<Shared*>(arg)->plain, ++g_drains; }, &s);
  struct sigaction action = {};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &often, nullptr);
  long mine = 0;
  while (g_handled + g_away < 20'000 && mine < 400'000'000) {
    Hold hold(s.gate);
    const long seen = s.plain;
    s.plain = seen + 1;
    ++mine;
  }
  const itimerval off = {};
  setitimer(ITIMER_REAL, &off, nullptr);
  ck_assert(!s.gate.held());
  ck_assert_int_eq(s.plain, mine + g_handled + g_drains);
  ck_assert_int_le(g_drains, g_away);
  ck_assert_int_gt(g_handled + g_away, 0);
}
END_TEST

namespace {
// A thread that is inside the gate from here to let_go().
class Elsewhere {
 public:
  explicit Elsewhere(Gate& gate) : gate_(gate) {
    ck_assert_int_eq(pthread_create(&thread_, nullptr, stay, this), 0);
    while (!inside_) usleep(100);
  }
  void let_go() { leaves_ = true; }
  void join() { pthread_join(thread_, nullptr); }

 private:
  static void* stay(void* arg) {
    auto* self = static_cast<Elsewhere*>(arg);
    Hold hold(self->gate_);
    self->inside_ = true;
    while (!self->leaves_) usleep(100);
    return nullptr;
  }
  Gate& gate_;
  pthread_t thread_;
  std::atomic<bool> inside_{false}, leaves_{false};
};
}  // namespace

// A handler in one thread, the gate held in another: the other does the work.
START_TEST(holder_in_another_thread_drains) {
  Gate gate;
  g_gate = &gate;
  gate.set_drain(count_drain, nullptr);
  Elsewhere other(gate);
  ck_assert(!gate.try_enter());
  ck_assert_int_eq(g_drains.load(), 0);
  other.let_go();
  other.join();
  ck_assert_int_eq(g_drains.load(), 1);
  ck_assert(!gate.held());
}
END_TEST

START_TEST(work_asked_for_inside_is_done_on_the_way_out) {
  Gate gate;
  g_gate = &gate;
  gate.set_drain(count_drain, nullptr);
  {
    Hold outer(gate);
    {
      Hold inner(gate);
      gate.ask_drain();
    }
    ck_assert_int_eq(g_drains.load(), 0);
  }
  ck_assert_int_eq(g_drains.load(), 1);
  ck_assert(g_held_in_drain);
  { Hold hold(gate); }
  ck_assert_int_eq(g_drains.load(), 1);
}
END_TEST

START_TEST(patience_before_a_fork_ends) {
  Gate gate;
  ck_assert(gate.enter_within(1));
  ck_assert(!gate.enter_within(1));  // inside already: what it guards may be half done
  gate.leave();
  Elsewhere other(gate);
  ck_assert(!gate.enter_within(20));
  other.let_go();
  ck_assert(gate.enter_within(10'000));
  other.join();
  gate.leave();
  ck_assert(!gate.held());
}
END_TEST

// What a forked process finds: nobody gets in, not even who was inside; a handler is turned away
// and nothing else.
START_TEST(gate_of_a_child_stays_closed) {
  for (int inside = 0; inside < 3; ++inside) {
    const pid_t child = fork();
    if (child == 0) {
      close(2);
      Shared s;
      if (inside == 1 && !s.gate.enter_within(1)) _exit(2);
      if (inside == 2) s.gate.enter();
      s.gate.set_drain([](void*) { _exit(3); }, nullptr);
      s.gate.close_in_child(inside == 1);
      if (s.gate.try_enter()) _exit(4);
      if (inside == 2)
        s.gate.leave();
      else
        s.gate.enter();
      _exit(5);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 1);
  }
}
END_TEST

#if defined(HAS_TRAP_FLAG) && !defined(__SANITIZE_THREAD__)
#define CAN_STEP 1
namespace {
struct Stepped {
  Gate gate;
  volatile long plain = 0;  // changed only inside
  volatile long handled = 0, away = 0, drained = 0;
};
Stepped* g_stepped = nullptr;

void enter_in_handler() {
  Stepped& s = *g_stepped;
  if (!s.gate.try_enter()) {
    s.away = s.away + 1;
    return;
  }
  s.plain = s.plain + 1;
  s.handled = s.handled + 1;
  s.gate.leave();
}
}  // namespace

// On the way in and out, a handler at the first instruction in the first run, at the next one in
// the next, until there are no more: it gets in, or its work is done before the way out ends.
START_TEST(handler_comes_at_every_instruction) {
  long instruction = 0;
  for (bool stopped = true; stopped;) {
    Stepped s;
    g_stepped = &s;
    s.gate.set_drain(
        [](void*) {
          g_stepped->plain = g_stepped->plain + 1;
          g_stepped->drained = g_stepped->drained + 1;
        },
        nullptr);
    OneStep::set(++instruction, enter_in_handler);
    trace_on();
    {
      Hold hold(s.gate);
      s.plain = s.plain + 1;
    }
    trace_off();
    stopped = OneStep::was_reached();
    ck_assert_int_eq(s.handled + s.away, stopped);
    ck_assert_int_eq(s.drained, s.away);
    ck_assert_int_eq(s.plain, 1 + s.handled + s.drained);
    ck_assert(!s.gate.held());
  }
  ck_assert_int_gt(instruction, 10);
}
END_TEST
#endif

int main() { return run_tests("gate"); }
