// MPI_THREAD_MULTIPLE, and the controller `thread`: the thread that sends off what the
// application's threads have gathered, when they stay away. None of them can be relied on: any may
// block its signals, end, or be in a call that must not be interrupted. It is made when it is first
// needed, and asleep while nothing waits.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "mplite/progress/progress_state.h"

namespace mplite {

// What is gathered leaves with the next call of any thread. So this one is mostly in vain, and
// takes a core from those that send: each time in vain it sleeps twice as long.
class GatherThread {
 public:
  // A message waits so long, twice that at most, and until this thread gets a core.
  static constexpr std::int64_t kLeastNs = ArmingPolicy::kGatherNs, kMostNs = 1'000'000;

  // `left`: called by the thread, gate free, when it has sent something.
  GatherThread(ProgressState& state, void (*left)(void* arg), void* arg)
      : state_(state), left_(left), arg_(arg) {}

  // Any thread of the application's, gate free: what the engine has gathered so far leaves though
  // nobody calls. False: there is no thread to be had.
  bool guard();
  // Whether guard() may succeed.
  bool can_guard() const { return life_.load(std::memory_order_relaxed) != Life::kNone; }

  // Ordinary context, no guard() under way. Afterwards none succeeds.
  void stop();
  // In the child of a fork, where it is not.
  void end_in_child() { life_.store(Life::kNone); }

 private:
  static void* thread_main(void* self);
  void run();
  void watch();
  bool look(std::uint64_t gathered_before);
  bool start();

  enum class Life : std::uint8_t { kWanted, kStarting, kRuns, kNone };

  ProgressState& state_;
  void (*const left_)(void* arg);
  void* const arg_;
  std::atomic<Life> life_{Life::kWanted};
  pthread_t thread_ = {};
  std::int64_t patience_ns_ = kLeastNs;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> watching_{false};
  std::atomic<int> orders_{0};  // counts what it, asleep on it, has to look at
};

}  // namespace mplite
