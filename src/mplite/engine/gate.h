// The progress gate: all engine and device state is touched only inside it.
// Ordinary code enters with Hold; the SIGIO handler and nobody else uses try_enter.
#pragma once
#include <atomic>

#include "mplite/base/signal_safe.h"

namespace mplite {

// How many times this thread has entered. A handler never reads it before it owns the gate: if it
// owns it, the interrupted code did not.
extern __thread int t_gate_depth;  // not thread_local: g++ 10 would look for a constructor

class Gate {
 public:
  // What leave() runs, gate held, when a handler came while it was closed. Must be signal-safe.
  using Drain = void (*)(void* arg);
  // And what it runs after it has let go, where handlers came during that many drains in a row: it
  // sees to it that one comes again. Null: it drains for as long as it takes.
  static constexpr int kDrainsMax = 4;
  void set_drain(Drain drain, void* arg, Drain come_again = nullptr) {
    drain_ = drain;
    drain_arg_ = arg;
    come_again_ = come_again;
  }

  // Ordinary context; re-entrant within a thread; waits (spin, then futex) for another thread or a
  // handler on another thread.
  void enter() MPLITE_SIGNAL_SAFE {
    if (t_gate_depth > 0) [[unlikely]] {
      ++t_gate_depth;
      return;
    }
    int open = 0;
    if (!state_.compare_exchange_strong(open, 1, std::memory_order_acquire)) [[unlikely]]
      enter_slow();
    t_gate_depth = 1;
  }
  // Handler: takes the gate, or records that there is work and returns false; whoever holds the
  // gate then drains before letting go.
  bool try_enter() MPLITE_SIGNAL_SAFE;
  // True: it drained, so that what the caller waits for may have come.
  bool leave() MPLITE_SIGNAL_SAFE {
    if (t_gate_depth > 1) [[unlikely]]
      --t_gate_depth;
    else if (pending_.load() != 0 || !open()) [[unlikely]] {
      drain_and_open();
      return true;
    }
    return false;
  }

  // Where nothing may be allocated, as after a fork in a handler of the application's: what was
  // turned away meanwhile comes again.
  void leave_undrained() MPLITE_SIGNAL_SAFE {
    if (come_again_ == nullptr || t_gate_depth > 1) return static_cast<void>(leave());
    hand_over(false);
  }

  // Ordinary context, before a fork: takes the gate if it can be had in that time. False: not, or
  // this thread is inside it (a handler of the application forks).
  bool enter_within(int patience_ms);
  // In the child of a fork: nobody enters any more. Who tries (MPI is not for such a child), or is
  // inside already and leaves, is told, and that process ends. `taken`: by enter_within.
  void close_in_child(bool taken);

  // Gate held: whoever lets go of it last drains, as if a handler had been turned away.
  void ask_drain() MPLITE_SIGNAL_SAFE { pending_.store(1); }

  bool held() const { return state_.load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr int kChild = 3;
  void enter_slow() MPLITE_SIGNAL_SAFE;
  // False: a handler was turned away meanwhile, and the gate is this thread's again.
  bool open() MPLITE_SIGNAL_SAFE {
    // Depth first: a handler that interrupts between the two lines finds the gate closed and leaves
    // its work to the check below.
    t_gate_depth = 0;
    if (const int state = state_.exchange(0); state != 1) [[unlikely]]
      let_in(state);
    if (pending_.load() == 0) [[likely]]
      return true;
    int open = 0;
    if (!state_.compare_exchange_strong(open, 1)) return true;  // the new holder drains
    t_gate_depth = 1;
    return false;
  }
  void drain_and_open() MPLITE_SIGNAL_SAFE;
  void hand_over(bool comes_again) MPLITE_SIGNAL_SAFE;
  void let_in(int state) MPLITE_SIGNAL_SAFE;
  std::atomic<int> state_{
      0};  // 0 open, 1 held, 2 held and somebody sleeps on it, 3 closed for good
  std::atomic<int> pending_{0};  // a handler was turned away
  Drain drain_ = nullptr, come_again_ = nullptr;
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
