// The thread that sends off what the application's threads have gathered.
#include "mplite/progress/gather_thread.h"

#include <algorithm>

#include "mplite/progress/own_thread.h"

namespace mplite {

// False: not yet, or never.
bool GatherThread::start() {
  Life life = Life::kWanted;
  if (!life_.compare_exchange_strong(life, Life::kStarting)) return life == Life::kRuns;
  const bool runs = start_own_thread(&thread_, thread_main, this) == 0;
  life_.store(runs ? Life::kRuns : Life::kNone);
  return runs;
}

void GatherThread::stop() {
  if (life_.exchange(Life::kNone) != Life::kRuns) return;
  stopping_.store(true);
  orders_.fetch_add(1);
  wake_sleeper(orders_);
  pthread_join(thread_, nullptr);
}

// Who finds it watching has gathered before it looks for the last time: that is in the gate.
bool GatherThread::guard() {
  if (life_.load() != Life::kRuns && !start()) return false;
  if (watching_.load() || watching_.exchange(true)) return true;
  orders_.fetch_add(1);
  wake_sleeper(orders_);
  return true;
}

void* GatherThread::thread_main(void* self) {
  enter_own_thread();
  static_cast<GatherThread*>(self)->run();
  return nullptr;
}

void GatherThread::run() {
  while (!stopping_.load()) {
    const int seen = orders_.load();
    if (watching_.load())
      watch();
    else if (!stopping_.load())
      sleep_on(orders_, seen);
  }
}

// Until nothing waits.
void GatherThread::watch() {
  Engine& engine = *state_.engine;
  std::uint64_t gathered;
  {
    Hold hold(engine.gate());
    gathered = engine.counters().gathered;
  }
  const timespec patience = {0, static_cast<long>(patience_ns_)};
  const int seen = orders_.load();
  if (!stopping_.load()) sleep_on(orders_, seen, &patience);
  if (look(gathered)) left_(arg_);
}

// `gathered_before`: how many had been gathered when the sleep began. True: it has sent something.
bool GatherThread::look(std::uint64_t gathered_before) {
  Engine& engine = *state_.engine;
  Hold hold(engine.gate());
  ++engine.counters().thread_wakes;
  const auto waiting = static_cast<std::uint64_t>(engine.gathered());
  const bool late = waiting != 0 && engine.counters().gathered - waiting < gathered_before;
  patience_ns_ = late ? kLeastNs : std::min(2 * patience_ns_, kMostNs);
  if (late) {
    ++engine.counters().gathered_late;
    state_.poll_all();
  }
  watching_.store(engine.gathered() != 0);
  return late;
}

}  // namespace mplite
