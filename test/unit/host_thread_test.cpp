// host_thread.h and host_work.h over an engine without peers: when the thread runs the host's work,
// and when it must not. And what departures of several threads (controller.h) leave for it.
#include "mplite/progress/host_thread.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "message_ranks.h"
#include "mplite/progress/controller.h"
#include "mplite/progress/own_thread.h"
#include "run_tests.h"

using namespace mplite;

namespace {

std::atomic<int> passes{0}, foreign{0};
std::atomic<bool> completed{false}, message{false}, slow{false}, in_pass{false}, turns_away{false};

HostWork::Calls calls() {
  HostWork::Calls c;
  c.progress = [] {
    in_pass.store(true);
    ++passes;
    if (in_own_thread()) ++foreign;
    if (slow.load()) usleep(100'000);
    in_pass.store(false);
    return !turns_away.load();
  };
  c.pending = [] { return false; };
  c.due = [] { return completed.load() || message.load(); };
  c.message_due = [] { return message.load(); };
  c.news = [] { return false; };
  return c;
}

struct Fixture {
  Fixture() {
    passes = foreign = 0;
    completed = message = slow = in_pass = turns_away = false;
    state.engine = ranks.side[0].engine.get();
    state.host.begin(calls());
    ck_assert_int_eq(thread.start(), 0);
    ck_assert_int_eq(thread.start(), 0);  // it runs already
  }
  ~Fixture() { thread.stop(); }
  void armed(bool on) {
    Hold hold(state.engine->gate());
    state.set_armed(on);
  }
  // Within ten seconds.
  static bool comes(int count) {
    for (int i = 0; i < 10'000 && passes.load() < count; ++i) usleep(1000);
    return passes.load() >= count;
  }
  static bool does_not_come(int count) {
    usleep(50'000);
    return passes.load() < count;
  }

  MessageRanks ranks{1 << 20, AF_INET, EngineOptions()};
  ProgressState state;
  HostThread thread{state};
};

START_TEST(a_message_for_the_host_wakes_it_while_the_application_is_away) {
  Fixture f;
  f.armed(true);
  f.thread.wake_if_due();
  ck_assert(f.does_not_come(1));  // there is nothing
  message = true;
  f.thread.wake_if_due();
  ck_assert(f.comes(1));
  ck_assert_int_eq(foreign.load(), passes.load());
  ck_assert(!in_own_thread());
  for (int i = 2; i < 200; ++i) {
    f.thread.wake_if_due();
    ck_assert(f.comes(i));
  }
}
END_TEST

START_TEST(it_leaves_the_application_alone_that_polls_by_itself) {
  Fixture f;
  message = true;
  f.thread.wake_if_due();
  ck_assert(f.does_not_come(1));
}
END_TEST

START_TEST(a_completed_request_is_for_the_host_only_where_that_waits) {
  Fixture f;
  f.armed(true);
  completed = true;
  f.thread.wake_if_due();
  ck_assert(f.does_not_come(1));
  f.state.host_waits = true;
  f.thread.wake_if_due();
  ck_assert(f.comes(1));
}
END_TEST

START_TEST(what_can_go_on_without_an_event_is_looked_at_once) {
  Fixture f;
  f.armed(true);
  f.state.host_waits = true;
  f.state.host_fresh = true;
  f.thread.wake_if_due();
  ck_assert(f.comes(1));
  ck_assert(!f.state.host_fresh.load());
  f.thread.wake_if_due();
  ck_assert(f.does_not_come(2));
}
END_TEST

START_TEST(a_pass_that_is_turned_away_is_due_until_it_has_been_made) {
  Fixture f;
  f.armed(true);
  f.state.host_waits = true;
  f.state.host_fresh = turns_away = true;
  f.thread.wake_if_due();
  ck_assert(f.comes(1));
  ck_assert(f.does_not_come(2));  // it does not try again and again
  ck_assert(f.state.host_fresh.load());
  turns_away = false;
  f.thread.wake_if_due();
  ck_assert(f.comes(2));
  ck_assert(f.does_not_come(3));
  ck_assert(!f.state.host_fresh.load());
}
END_TEST

// The application is in a call when the thread looks, and leaves it while the thread is awake.
START_TEST(what_comes_while_nothing_is_armed_is_not_forgotten) {
  Fixture f;
  f.state.host_waits = true;
  for (int i = 1; i < 300; ++i) {
    f.armed(true);
    f.state.host_fresh = true;
    f.thread.wake_if_due();
    f.armed(false);
    f.armed(true);
    f.thread.wake_if_due();
    ck_assert(f.comes(1));
    for (int j = 0; j < 10'000 && f.state.host_fresh.load(); ++j) usleep(100);
    ck_assert(!f.state.host_fresh.load());
    f.armed(false);
    passes = 0;
  }
}
END_TEST

START_TEST(when_the_work_has_ended_nobody_is_in_it) {
  Fixture f;
  f.armed(true);
  message = slow = true;
  f.thread.wake_if_due();
  ck_assert(f.comes(1));
  ck_assert(f.state.host.end());
  ck_assert(!in_pass.load());
  ck_assert(!f.state.host.end());
  f.thread.wake_if_due();
  ck_assert(f.does_not_come(2));
  f.state.host.begin(calls());
  f.thread.wake_if_due();
  ck_assert(f.comes(2));
}
END_TEST

START_TEST(it_can_be_stopped_and_started_again) {
  Fixture f;
  f.armed(true);
  message = true;
  f.thread.stop();
  f.thread.stop();
  f.thread.wake_if_due();
  ck_assert(f.does_not_come(1));
  ck_assert_int_eq(f.thread.start(), 0);
  f.thread.wake_if_due();
  ck_assert(f.comes(1));
}
END_TEST

// ---- what the handler has left for want of memory ----

std::atomic<int> polls{0}, polls_in_handler{0};
std::atomic<bool> memory{true};

void poll(void* engine) {
  auto& e = *static_cast<Engine*>(engine);
  ++polls;
  if (e.async()) ++polls_in_handler;
  if (!memory) e.note_starved();
}

// As in the handler: gate held.
void starve(Engine& engine) {
  Hold hold(engine.gate());
  ProgressScope scope(engine, engine.handler_mode());
  engine.note_starved();
}

struct StarvedFixture : Fixture {
  StarvedFixture() {
    polls = polls_in_handler = 0;
    memory = true;
    state.progress = poll;
    state.arg = state.engine;
  }
  void starve() { ::starve(*state.engine); }
  static bool polled(int count) {
    for (int i = 0; i < 10'000 && polls.load() < count; ++i) usleep(1000);
    return polls.load() >= count;
  }
};

START_TEST(handler_without_memory_wakes_it_to_poll_in_ordinary_context) {
  StarvedFixture f;
  f.armed(true);
  for (int i = 1; i < 200; ++i) {
    f.starve();
    f.thread.wake_if_due();
    ck_assert(f.polled(i));
  }
  ck_assert_int_eq(polls_in_handler.load(), 0);
  for (int i = 0; i < 10'000 && passes.load() == 0; ++i) usleep(1000);
  ck_assert(!f.state.engine->is_starved());
  usleep(50'000);
  const int before = polls.load();
  f.thread.wake_if_due();
  usleep(50'000);
  ck_assert_int_eq(polls.load(), before);
}
END_TEST

// Each failure would wake it again, and it would never rest.
START_TEST(it_polls_once_where_there_is_no_memory_in_ordinary_context_either) {
  StarvedFixture f;
  f.armed(true);
  memory = false;
  f.starve();
  f.thread.wake_if_due();
  ck_assert(f.polled(1));
  for (int i = 0; i < 50; ++i) {
    f.thread.wake_if_due();
    usleep(1000);
  }
  ck_assert_int_eq(polls.load(), 1);
  f.starve();  // by the next signal
  f.thread.wake_if_due();
  ck_assert(f.polled(2));
}
END_TEST

START_TEST(application_that_polls_by_itself_leaves_what_it_does_not_see_to_its_departure) {
  StarvedFixture f;
  f.starve();
  f.thread.wake_if_due();
  usleep(50'000);
  ck_assert_int_eq(polls.load(), 0);
  f.armed(true);
  f.thread.wake_if_due();
  ck_assert(f.polled(1));
}
END_TEST

START_TEST(handler_without_memory_does_not_wake_it_when_the_hosts_work_has_ended) {
  StarvedFixture f;
  f.armed(true);
  ck_assert(f.state.host.end());
  f.starve();
  f.thread.wake_if_due();
  usleep(50'000);
  ck_assert_int_eq(polls.load(), 0);
}
END_TEST

// The thread has never been needed.
START_TEST(without_it_the_next_call_of_any_kind_polls_for_a_handler_without_memory) {
  MessageRanks ranks(1 << 20, AF_INET, EngineOptions());
  Engine& engine = *ranks.side[0].engine;
  memory = true;
  Controller controller;
  Controller::Options options;
  options.progress = poll;
  options.arg = &engine;
  char error[256];
  ck_assert_int_eq(controller.start(engine, options, error, sizeof error), 0);
  polls = polls_in_handler = 0;  // it has looked for callers
  controller.leave_library();
  controller.stay_away();
  const int before = polls.load();
  starve(engine);
  controller.stay_away();  // MPI_Win_sync
  ck_assert_int_eq(polls.load(), before + 1);
  ck_assert(!engine.is_starved());
  controller.stay_away();
  ck_assert_int_eq(polls.load(), before + 1);
  starve(engine);
  controller.leave_library();
  ck_assert_int_eq(polls.load(), before + 2);
  ck_assert_int_eq(polls_in_handler.load(), 0);
  controller.stop();
}
END_TEST

// ---- several threads ----

std::function<void()> other_thread;  // what it does in the middle of the next look for work
std::atomic<bool> work{false};

bool lets_signals_through() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, SIGIO) == 0;
}

// MPI_THREAD_MULTIPLE: the owner of the signal is in a wait while another thread leaves, and comes
// out of it without another poll.
START_TEST(owner_that_comes_out_of_a_wait_behind_another_thread_is_armed) {
  MessageRanks ranks(1 << 20, AF_INET, EngineOptions());
  Controller controller;
  Controller::Options options;
  options.progress = [](void*) {};
  char error[256];
  ck_assert_int_eq(controller.start(*ranks.side[0].engine, options, error, sizeof error), 0);
  controller.set_always(true);
  controller.leave_library();
  ck_assert(lets_signals_through());
  controller.enter_wait();
  ck_assert(!lets_signals_through());
  std::thread([&] { controller.leave_library(); }).join();
  ck_assert(!lets_signals_through());
  controller.stay_away();
  ck_assert(lets_signals_through());
  controller.stop();
}
END_TEST

// MPI_THREAD_MULTIPLE: one thread leaves, and finds that the host has no work; before it has said
// so another one starts some. What that one sees on its way out is still to make it ask.
START_TEST(work_that_another_thread_starts_while_a_departure_finds_none_is_done) {
  passes = 0;
  completed = message = slow = in_pass = turns_away = work = false;
  MessageRanks ranks(1 << 20, AF_INET, EngineOptions());
  volatile int want_arm = 0;
  Controller controller;
  Controller::Options options;
  options.progress = [](void*) {};
  options.want_arm = &want_arm;
  char error[256];
  ck_assert_int_eq(controller.start(*ranks.side[0].engine, options, error, sizeof error), 0);
  controller.set_always(true);
  HostWork::Calls c = calls();
  c.pending = [] {
    const bool now = work.load();
    if (other_thread) std::thread(std::exchange(other_thread, nullptr)).join();
    return now;
  };
  ck_assert_int_eq(controller.begin_host_work(c), 0);
  controller.leave_library();
  ck_assert_int_eq(want_arm, 0);  // armed, and there is no work
  ck_assert(Fixture::does_not_come(1));
  controller.host_has_work(false);
  ck_assert_int_eq(want_arm, 1);
  other_thread = [&] {
    work = true;
    controller.host_has_work(true);
  };
  controller.leave_library();
  ck_assert_int_eq(want_arm, 1);
  std::thread([&] { controller.leave_library(); }).join();
  ck_assert(Fixture::comes(1));
  controller.stop();
}
END_TEST

}  // namespace

int main() { return run_tests("host_thread"); }
