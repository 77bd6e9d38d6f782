// The wait loop of all hosts: giving the core away, and sleeping.
#include "mplite/runtime/wait_loop.h"

#include <sched.h>
#include <time.h>

#include "mplite/observe/trace.h"

namespace mplite {
namespace {

constexpr long kShortSleepNs = 50'000;  // in place of a yield

}  // namespace

void WaitLoop::rest_by(const WaitPolicy& policy, Engine& engine, std::int64_t now_ns) {
  const WaitStep step = next(policy, now_ns);
  if (step.kind == WaitStep::kYield) {
    engine.gate().leave();
    yield(policy, engine);
    engine.gate().enter();
  } else if (step.kind == WaitStep::kSleep) {
    if (engine.wait(step.timeout_ns) > 0) news();
  }
}

void WaitLoop::start(const Knobs& knobs) {
  learns_ = knobs.tuning.has(Heuristic::kYieldCost);
  yield_cost_.set_on(learns_);
}

void WaitLoop::give_core_away(const WaitPolicy& policy, Engine& engine) {
  trace_yield();
  if (!learns_) {
    sched_yield();
    return;
  }
  if (policy.sleep_after_ns >= 0 && yield_cost_.sleep()) {
    const timespec moment = {0, kShortSleepNs};
    nanosleep(&moment, nullptr);
    return;
  }
  const std::int64_t began_ns = engine.net().now_ns();
  sched_yield();
  yield_cost_.took(engine.net().now_ns() - began_ns);
}

}  // namespace mplite
