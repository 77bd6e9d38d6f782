// sigio: the thread that runs the host's work while the application computes, which a signal
// handler must not, and goes on where the handler has run out of memory. It sleeps until a handler
// finds some work, or a departure leaves some; there is none before the host first asks for it.
#pragma once
#include <pthread.h>

#include <atomic>

#include "mplite/base/signal_safe.h"
#include "mplite/progress/progress_state.h"

namespace mplite {

class HostThread {
 public:
  explicit HostThread(ProgressState& state) : state_(state) {}

  // Ordinary context. 0, also if it runs already, or an error number.
  int start();
  void stop();
  // In the child of a fork, where it is not.
  void end_in_child() { running_ = false; }

  // Whether it is this thread that calls.
  static bool is_caller() MPLITE_SIGNAL_SAFE;
  // Gate held or not: has it look, if the application is away and there is something for the host.
  void wake_if_due() MPLITE_SIGNAL_SAFE {
    if (state_.armed() && state_.is_host_due()) wake();
  }

 private:
  static void* thread_main(void* self);
  void run();
  void poll_if_starved();
  void keep_due(HostWork::Pass result);
  void wake() MPLITE_SIGNAL_SAFE;

  ProgressState& state_;
  pthread_t thread_ = {};
  bool running_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<int> orders_{0};  // counts what it, asleep on it, has to look at
  std::atomic<bool> asleep_{false};
};

}  // namespace mplite
