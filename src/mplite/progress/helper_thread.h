// Progress by a helper thread: it sleeps on a futex while the application is inside the library or
// nothing is outstanding, and in epoll_wait otherwise. Its backstop is a timed sleep. In
// event-driven mode it also runs what the host does above the engine. Whether it is to work is for
// controller.cpp and tuning/arming.h to say.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstddef>

#include "mplite/progress/progress_state.h"

namespace mplite {

// Event-driven mode of `thread`: what the host does above the engine (schedules of collectives,
// active messages) moves too. `progress` is called by the helper thread, gate free, when it
// starts to work and whenever `events()` has changed; `pending()`: whether the host has work that
// nothing outstanding in the engine tells of.
struct HostWork {
  void (*progress)() = nullptr;
  bool (*pending)() = nullptr;
  bool (*due)() = nullptr;  // the engine's work has left something for the host
  bool (*news)() =
      nullptr;  // the call that is being left has done something since it was last asked
};

class HelperThread {
 public:
  explicit HelperThread(ProgressState& state) : state_(state) {}

  // Ordinary context. Returns 0 or -errno with a sentence in `error`.
  int start(char* error, std::size_t error_size);
  void stop();
  // Whether the caller is the helper thread: it has no application to wait for.
  static bool is_this_thread();

  // Owning thread, gate free, on the way out of the library: arms, or has the departure watched.
  void leave_library(int call);

  void set_host_work(const HostWork& work);
  // Gate free: when it returns the helper is not in the host's progress, and never will be.
  void end_host_work();
  // In the child of a fork, where there is no helper.
  void end_in_child();

 private:
  static void* thread_main(void* self);
  void run();
  void work(const ProgressMode& mode = ProgressMode::helper_thread());
  void rest();
  void rest_is_over();
  void sleep_until_called(int seen);
  bool give_order();
  void wake();
  void host_pass();

  ProgressState& state_;
  pthread_t thread_ = {};
  int wake_fd_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<int> orders_{0};  // counts what the helper, asleep on it, has to look at
  enum Rest : int { kAwake, kOnOrders, kOnCallers };
  std::atomic<int> resting_{kAwake};
  int rest_fd_ = -1;  // wakes it on kOnCallers; -1: it never sleeps so
  HostWork host_;
  std::atomic<bool> host_busy_{false};
};

}  // namespace mplite
