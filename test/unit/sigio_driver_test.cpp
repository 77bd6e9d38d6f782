// sigio_driver.h over two engines in one process and real loopback sockets: the handler comes back
// for what its budget left.
#include "mplite/progress/sigio_driver.h"

#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "message_ranks.h"
#include "run_tests.h"

using namespace mplite;

namespace {

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
  ProgressState state;
  state.engine = receiver.engine.get();
  state.progress = [](void* engine) { static_cast<Engine*>(engine)->poll_all(); };
  state.arg = receiver.engine.get();
  HostThread host_thread(state);
  SigioDriver driver(state, host_thread);
  char error[256];
  ck_assert_int_eq(driver.start(signal, error, sizeof error), 0);
  {
    Hold hold(receiver.engine->gate());
    receiver.engine->set_signals(true);
  }
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

}  // namespace

int main() { return run_tests("sigio_driver"); }
