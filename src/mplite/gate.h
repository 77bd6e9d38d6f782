// The progress gate: all engine and device state is touched only inside it.
// Ordinary code enters with Hold; the SIGIO handler and nobody else uses try_enter.
#pragma once
#include <atomic>

#include "signal_safe.h"

namespace mplite {

class Gate {
 public:
  // What leave() runs, gate held, when a handler came while it was closed. Must be signal-safe.
  using Drain = void (*)(void* arg);
  void set_drain(Drain drain, void* arg) { drain_ = drain; drain_arg_ = arg; }

  // Ordinary context; re-entrant within a thread; waits (spin, then futex) for another thread or a handler on another thread.
  void enter() MPLITE_SIGNAL_SAFE;
  // Handler: takes the gate, or records that there is work and returns false; whoever holds the gate then drains before letting go.
  bool try_enter() MPLITE_SIGNAL_SAFE;
  void leave() MPLITE_SIGNAL_SAFE;

  bool held() const { return state_.load(std::memory_order_relaxed) != 0; }

 private:
  void enter_slow() MPLITE_SIGNAL_SAFE;
  std::atomic<int> state_{0};    // 0 open, 1 held, 2 held and somebody sleeps on it
  std::atomic<int> pending_{0};  // a handler was turned away
  Drain drain_ = nullptr;
  void* drain_arg_ = nullptr;
};

class Hold {
 public:
  explicit Hold(Gate& gate) : gate_(gate) { gate_.enter(); }
  ~Hold() { gate_.leave(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Gate& gate_;
};

}  // namespace mplite
