// Progress by a helper thread: it sleeps on a futex while the application is inside the library or
// nothing is outstanding, and in epoll_wait otherwise. Its backstop is a timed sleep. It also runs
// what the host does above the engine (host_work.h). Whether it is to work is for controller.cpp
// and tuning/arming.h to say.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstddef>

#include "mplite/progress/progress_state.h"

namespace mplite {

class HelperThread {
 public:
  explicit HelperThread(ProgressState& state) : state_(state) {}

  // Ordinary context. Returns 0 or -errno with a sentence in `error`.
  int start(char* error, std::size_t error_size);
  void stop();

  // Owning thread, gate free, on the way out of the library: arms, or has the departure watched.
  void leave_library(int call);
  // The gather thread, gate free: the application is away, and something may be outstanding.
  void arm_if_needed();
  // Has it look at the host's work, if it watches the sockets.
  void wake();

 private:
  static void* thread_main(void* self);
  void run();
  void work(const ProgressMode& mode = ProgressMode::helper_thread());
  void rest();
  std::int64_t sleep_left_ns(Grace::Sleep& sleep);
  void rest_is_over();
  void sleep_until_called(int seen);
  bool give_order();

  ProgressState& state_;
  pthread_t thread_ = {};
  int wake_fd_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<int> orders_{0};  // counts what the helper, asleep on it, has to look at
  enum Rest : int { kAwake, kOnOrders, kOnCallers };
  std::atomic<int> resting_{kAwake};
  int rest_fd_ = -1;  // wakes it on kOnCallers; -1: it never sleeps so
};

}  // namespace mplite
