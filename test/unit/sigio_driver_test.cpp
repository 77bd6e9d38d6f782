// sigio_driver.h over two engines in one process and real loopback sockets: the handler comes back
// for what its budget left.
#include "mplite/progress/sigio_driver.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <thread>  // before check.h and its macro fail
#include <vector>

#include "message_ranks.h"
#include "mplite/progress/backstop.h"
#include "run_tests.h"

using namespace mplite;

namespace {

// An engine that is polled by the handler of `signal`, which is blocked at first.
struct Driven {
  ProgressState state;
  HostThread host_thread{state};
  SigioDriver driver{state, host_thread};

  Driven(Engine& engine, int signal) {
    state.engine = &engine;
    state.progress = [](void* arg) { static_cast<Engine*>(arg)->poll_all(); };
    state.arg = &engine;
    char error[256];
    ck_assert_int_eq(driver.start(signal, error, sizeof error), 0);
    Hold hold(engine.gate());
    engine.set_signals(true);
  }
};

constexpr std::size_t kBytes = 200'000;  // less than a socket takes
constexpr std::uint64_t kBudgetBytes = 20'000;

EngineOptions with_budget() {
  EngineOptions options;
  options.handler_budget_bytes = kBudgetBytes;
  return options;
}

double now_s() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// All of a message is in the socket before the handler may come: no arrival raises another signal.
void handler_takes_it_all(int signal, rlim_t pending_max) {
  MessageRanks ranks(1 << 20, AF_INET, with_budget());
  MessageRanks::Side &sender = ranks.side[0], &receiver = ranks.side[1];
  std::vector<std::uint8_t> out(kBytes, 7), in(kBytes, 0);
  std::uint8_t byte[2] = {};
  MessageRequest *first[2], *sent = nullptr, *received = nullptr;
  ck_assert_int_eq(sender.messages->send(&byte[0], 1, 1, 1, first[0]), 0);
  ck_assert_int_eq(receiver.messages->receive(&byte[1], 1, 0, 1, first[1]), 0);
  while (first[0]->outcome == Outcome::kPending || first[1]->outcome == Outcome::kPending) {
    ranks.step(0);
    ranks.step(1);
  }
  ck_assert_int_eq(receiver.messages->receive(in.data(), kBytes, 0, 2, received), 0);

  rlimit before;
  getrlimit(RLIMIT_SIGPENDING, &before);
  const rlimit limit = {std::min(pending_max, before.rlim_cur), before.rlim_max};
  ck_assert_int_eq(setrlimit(RLIMIT_SIGPENDING, &limit), 0);
  Driven driven(*receiver.engine, signal);
  SigioDriver& driver = driven.driver;
  ck_assert_int_eq(sender.messages->send(out.data(), kBytes, 1, 2, sent), 0);
  while (sent->outcome == Outcome::kPending) ranks.step(0);
  const std::uint64_t entries = receiver.engine->counters().signals;
  driver.unblock();
  const volatile Outcome* outcome = &received->outcome;
  for (const double end = now_s() + 10; *outcome == Outcome::kPending && now_s() < end;) {}
  driver.block();
  ck_assert(received->outcome != Outcome::kPending);
  ck_assert(in == out);
  ck_assert_uint_gt(receiver.engine->counters().signals - entries, 1);
  driver.end(driver.withdraw(0));
  setrlimit(RLIMIT_SIGPENDING, &before);  // Check has timers
}

START_TEST(what_the_budget_leaves_is_taken_by_the_next_signal) {
  handler_takes_it_all(SIGIO, RLIM_INFINITY);
}
END_TEST

START_TEST(and_so_it_is_with_a_real_time_signal) {
  handler_takes_it_all(SIGRTMIN + 1, RLIM_INFINITY);
}
END_TEST

// RLIMIT_SIGPENDING: no real-time signal can be queued, neither the kernel's nor our own.
START_TEST(and_where_the_queue_of_real_time_signals_is_full) {
  handler_takes_it_all(SIGRTMIN + 1, 0);
}
END_TEST

// The write that found the socket full was made while sockets raised no signals.
START_TEST(room_in_a_socket_is_announced_by_a_signal_that_is_switched_on_later) {
  constexpr std::size_t kMuch = 64 << 20;  // more than sockets take
  MessageRanks ranks(kMuch, AF_INET, EngineOptions());
  MessageRanks::Side &sender = ranks.side[0], &receiver = ranks.side[1];
  std::vector<std::uint8_t> out(kMuch, 7), in(kMuch, 0);
  MessageRequest *sent = nullptr, *received = nullptr;
  sigset_t io;
  sigemptyset(&io);
  sigaddset(&io, SIGIO);
  pthread_sigmask(SIG_BLOCK, &io, nullptr);
  ck_assert_int_eq(receiver.messages->receive(in.data(), kMuch, 0, 2, received), 0);
  ck_assert_int_eq(sender.messages->send(out.data(), kMuch, 1, 2, sent), 0);
  {
    Hold hold(sender.engine->gate());
    sender.engine->set_signal_driven(this_thread_id(), SIGIO);
    sender.engine->set_signals(false);
  }
  while (sender.engine->counters().writes_full == 0) {
    ranks.step(0);
    if (sender.engine->counters().writes_full == 0) ranks.step(1);
  }
  {
    Hold hold(sender.engine->gate());
    sender.engine->set_signals(true);
  }
  const timespec moment = {0, 0}, second = {1, 0};
  siginfo_t info;
  while (sigtimedwait(&io, &info, &moment) > 0) {}
  for (int i = 0; i < 200; ++i) ranks.step(1);
  bool room = false;
  while (!room && sigtimedwait(&io, &info, &second) > 0) room = (info.si_band & POLLOUT) != 0;
  ck_assert(room);
}
END_TEST

// Somebody is to be left alone: at once, as what came so far has cost so much.
START_TEST(when_the_handler_has_had_its_share_it_asks_for_the_application_to_be_left_alone) {
  MessageRanks ranks(1 << 20, AF_INET, EngineOptions());
  MessageRanks::Side &sender = ranks.side[0], &receiver = ranks.side[1];
  Driven driven(*receiver.engine, SIGIO);
  SigioDriver& driver = driven.driver;
  static std::atomic<int> asked;
  static std::atomic<std::int64_t> asked_ns;
  asked = 0;
  driver.set_leave_alone(
      [](void* self, std::int64_t rest_ns, sigset_t* mask) {
        asked_ns = rest_ns;
        ++asked;
        static_cast<SigioDriver*>(self)->block_in(mask);
      },
      &driver);
  const auto send_one = [&] {
    static std::uint8_t byte[2];  // the last one comes later
    MessageRequest *sent = nullptr, *received = nullptr;
    ck_assert_int_eq(receiver.messages->receive(&byte[1], 1, 0, 1, received), 0);
    ck_assert_int_eq(sender.messages->send(&byte[0], 1, 1, 1, sent), 0);
    const volatile Outcome* outcome = &received->outcome;
    for (const double end = now_s() + 1; *outcome == Outcome::kPending && now_s() < end;)
      ranks.step(0);
    return *outcome != Outcome::kPending;
  };
  driver.unblock();
  ck_assert(send_one());
  ck_assert_int_eq(asked.load(), 0);
  const std::int64_t now_ns = driven.state.now_ns();
  driven.state.share.handled(now_ns, 100 * HandlerShare::kBurstNs, 0);
  ck_assert(send_one());
  ck_assert_int_eq(asked.load(), 1);
  ck_assert_int_gt(asked_ns.load(), 0);
  ck_assert_int_le(asked_ns.load(), HandlerShare::kRestMaxNs);
  ck_assert(!send_one());  // it is blocked
  driver.unblock();
  driver.block();
  driver.end(driver.withdraw(0));
}
END_TEST

double thread_s() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

SigioDriver* g_again = nullptr;
double g_handlers_s = 0, g_end_s = 0;

// A handler that has work for 0.2 ms, whenever it comes, and comes again at once: the kernel runs
// it before the next instruction of what it interrupted.
void work_without_end(void*) {
  const double began = thread_s();
  while (thread_s() < began + 200e-6) {}
  g_handlers_s += thread_s() - began;
  if (thread_s() < g_end_s) g_again->raise();
}

// What the application has of the thread's time.
double applications_share(bool limited) {
  MessageRanks ranks(1 << 20, AF_INET, EngineOptions());
  Driven driven(*ranks.side[0].engine, SIGIO);
  SigioDriver& driver = driven.driver;
  Backstop backstop(driven.state, driver);
  backstop.start(true);
  driver.set_leave_alone(
      [](void* to, std::int64_t rest_ns, sigset_t* mask) {
        static_cast<Backstop*>(to)->leave_alone(rest_ns, mask);
      },
      &backstop);
  driven.state.share.set_on(limited);
  driven.state.progress = work_without_end;
  driven.state.running = true;
  driven.state.set_armed(true);
  g_again = &driver;
  g_handlers_s = 0;
  const double began = thread_s();
  g_end_s = began + 0.4;
  driver.raise();
  driver.unblock();
  while (thread_s() < g_end_s) {}
  driver.block();
  const double share = 1 - g_handlers_s / (thread_s() - began);
  const std::uint64_t rests = ranks.side[0].engine->counters().handler_rests;
  if (limited)
    ck_assert_uint_gt(rests, 10);
  else
    ck_assert_uint_eq(rests, 0);
  driven.state.running = false;
  driver.end(driver.withdraw(0));
  backstop.end();
  return share;
}

START_TEST(application_has_half_of_its_core_beside_work_without_end) {
  ck_assert_double_lt(applications_share(false), 0.2);
  ck_assert_double_gt(applications_share(true), 0.3);
}
END_TEST

// The same packet raises the signal here and wakes the other thread, which comes too late to find
// it in the socket. The signal is blocked there, as in a thread that the owner has made.
START_TEST(a_thread_that_sleeps_is_told_what_the_handler_has_taken) {
  constexpr std::int64_t kLongNs = 20'000'000'000;
  constexpr int kTimes = 20;
  MessageRanks ranks(1 << 20, AF_INET, EngineOptions());
  MessageRanks::Side &sender = ranks.side[0], &receiver = ranks.side[1];
  Driven driven(*receiver.engine, SIGIO);
  SigioDriver& driver = driven.driver;
  std::uint8_t byte[2] = {};
  const double began = now_s();
  for (int i = 0; i < kTimes; ++i) {
    MessageRequest *sent = nullptr, *received = nullptr;
    ck_assert_int_eq(receiver.messages->receive(&byte[1], 1, 0, 1, received), 0);
    const volatile Outcome* outcome = &received->outcome;
    std::atomic<bool> done{false};
    std::thread sleeper([&] {
      Hold hold(receiver.engine->gate());
      while (*outcome == Outcome::kPending) {
        receiver.engine->wait(kLongNs);
        receiver.messages->service();
      }
      done = true;
    });
    usleep(20'000);
    driver.unblock();
    ck_assert_int_eq(sender.messages->send(&byte[0], 1, 1, 1, sent), 0);
    for (const double end = now_s() + 10; !done && now_s() < end;) ranks.step(0);
    driver.block();
    ck_assert(done);
    sleeper.join();
    ck_assert(received->outcome != Outcome::kPending);
  }
  ck_assert_double_lt(now_s() - began, 10);
  ck_assert_uint_gt(receiver.engine->counters().signals, 0);
  driver.end(driver.withdraw(0));
}
END_TEST

// What was gathered cannot leave when its timer goes off: the peer is corked here, in place of a
// connection that is broken. Nothing else is outstanding.
START_TEST(gathered_packet_that_cannot_leave_lets_the_signal_through) {
  MessageRanks ranks(1 << 20, AF_INET, EngineOptions());
  Engine& engine = *ranks.side[0].engine;
  MessageRequest *sent = nullptr, *received = nullptr;
  static std::uint8_t byte[2];
  ck_assert_int_eq(ranks.side[1].messages->receive(&byte[1], 1, 0, 1, received), 0);
  ck_assert_int_eq(ranks.side[0].messages->send(&byte[0], 1, 1, 1, sent), 0);
  while (received->outcome == Outcome::kPending) {
    ranks.step(0);
    ranks.step(1);
  }
  Driven driven(engine, SIGIO);
  SigioDriver& driver = driven.driver;
  Backstop backstop(driven.state, driver);
  backstop.start(true);
  driven.state.running = true;
  for (const bool corked : {false, true}) {
    {
      Hold hold(engine.gate());
      engine.set_gather(Engine::kGatherPacketMax);
      const iovec part = {byte, 1};
      ck_assert_int_eq(engine.send_control(1, &part, 1), 0);
      engine.set_gather(0);
      ck_assert_int_eq(engine.gathered(), 1);
      if (corked) engine.cork(1);
    }
    driven.state.policy.guard(driven.state.now_ns(), ArmingPolicy::kGatherNs);
    backstop.set_timer(ArmingPolicy::kGatherNs);
    const std::uint64_t before = engine.counters().backstops;
    const volatile std::uint64_t* const backstops = &engine.counters().backstops;
    for (const double end = now_s() + 2; *backstops == before && now_s() < end;) {}
    driver.block();
    ck_assert_int_eq(driven.state.armed(), corked);
    ck_assert_int_eq(engine.gathered(), corked);
  }
  Hold hold(engine.gate());
  engine.uncork(1);
  ck_assert_int_eq(engine.gathered(), 0);
  driven.state.running = false;
  driver.end(driver.withdraw(0));
  backstop.end();
}
END_TEST

}  // namespace

int main() { return run_tests("sigio_driver"); }
