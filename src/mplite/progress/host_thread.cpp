// The thread that runs the host's work with sigio.
#include "mplite/progress/host_thread.h"

#include "mplite/progress/own_thread.h"

namespace mplite {

namespace {
thread_local bool t_host_thread = false;
}

bool HostThread::is_caller() { return t_host_thread; }

int HostThread::start() {
  if (running_) return 0;
  stopping_.store(false);
  const int rc = start_own_thread(&thread_, thread_main, this);
  running_ = rc == 0;
  return rc;
}

void HostThread::stop() {
  if (!running_) return;
  running_ = false;
  stopping_.store(true);
  wake();
  pthread_join(thread_, nullptr);
}

// Sequentially consistent: either it is seen asleep here, or it sees the order.
void HostThread::wake() {
  orders_.fetch_add(1);
  if (asleep_.load()) wake_sleeper(orders_);
}

void* HostThread::thread_main(void* self) {
  enter_own_thread();
  t_host_thread = true;
  static_cast<HostThread*>(self)->run();
  return nullptr;
}

// What could not be done is due as before. A departure that armed in between has found us awake,
// and a call that turned us away tells when it ends.
void HostThread::keep_due(HostWork::Pass result) {
  if (result == HostWork::Pass::kDone) return;
  state_.host_fresh = true;
  if (result == HostWork::Pass::kNotArmed && state_.armed_word.load() != 0 && state_.host.on())
    orders_.fetch_add(1);
}

// What the handler has left for want of memory, while the application is away. One that is back
// polls by itself, and what it leaves is still noted when it departs again.
void HostThread::poll_if_starved() {
  Hold hold(state_.engine->gate());
  if (state_.engine->is_starved() && state_.armed_word.load() != 0 && state_.host.on())
    state_.poll_all(ProgressMode::helper_thread());
}

void HostThread::run() {
  int seen = 0;
  while (!stopping_.load()) {
    const int orders = orders_.load();
    if (orders != seen) {
      seen = orders;
      {
        Hold hold(state_.engine->gate());
        ++state_.engine->counters().thread_wakes;
      }
      poll_if_starved();
      state_.host_fresh = false;
      keep_due(state_.host.pass(state_.armed_word));
      continue;
    }
    asleep_.store(true);
    if (orders_.load() == seen) sleep_on(orders_, seen);
    asleep_.store(false);
  }
}

}  // namespace mplite
