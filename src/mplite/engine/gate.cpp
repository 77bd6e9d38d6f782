// The progress gate: a lock that a signal handler may try, with hand-over of the work that it could
// not do.
#include "mplite/engine/gate.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace mplite {
namespace {

constexpr int kSpins = 200;  // about the length of one short progress call

void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  sched_yield();
#endif
}

long futex(std::atomic<int>* word, int op, int value) {
  return syscall(SYS_futex, reinterpret_cast<int*>(word), op | FUTEX_PRIVATE_FLAG, value, nullptr,
                 nullptr, 0);
}

// The child of a fork has called MPI. An error would go to an error handler that ends the whole
// job, and the parent has done nothing wrong.
[[noreturn]] void end_child() {
  constexpr char kText[] =
      "ch_lite: MPI was called in a child made by fork(), where it must not be; this child ends "
      "here, its parent is not concerned\n";
  if (write(2, kText, sizeof kText - 1) < 0) _exit(1);
  _exit(1);
}

}  // namespace

__thread int t_gate_depth = 0;

void Gate::enter_slow() {
  if (state_.load(std::memory_order_relaxed) == kChild) end_child();
  for (int i = 0; i < kSpins; ++i) {
    int open = 0;
    if (state_.compare_exchange_weak(open, 1, std::memory_order_acquire)) return;
    cpu_relax();
  }
  while (state_.exchange(2, std::memory_order_acquire) != 0) futex(&state_, FUTEX_WAIT, 2);
}

// Sequentially consistent on both words: after `pending` is set the gate is tried once more, so
// either this second try takes it, or the holder's leave() comes later and sees `pending`.
bool Gate::try_enter() {
  int open = 0;
  if (!state_.compare_exchange_strong(open, 1)) {
    pending_.store(1);
    open = 0;
    if (!state_.compare_exchange_strong(open, 1)) return false;
  }
  t_gate_depth = 1;
  return true;
}

void Gate::drain_and_open() {
  int drains = 0;
  do {
    while (pending_.load() != 0) {
      if (drains++ == kDrainsMax && come_again_ != nullptr) return hand_over(true);
      pending_.store(0);
      if (drain_ != nullptr) drain_(drain_arg_);
    }
  } while (!open());
}

// Handlers come without end: the thread that holds the gate has its own affairs. One that comes
// from here on leaves its word behind, or enters.
void Gate::hand_over(bool comes_again) {
  comes_again |= pending_.exchange(0) != 0;
  t_gate_depth = 0;
  if (const int state = state_.exchange(0); state != 1) let_in(state);
  if (comes_again || pending_.load() != 0) come_again_(drain_arg_);
}

void Gate::let_in(int state) {
  if (state == kChild) end_child();
  futex(&state_, FUTEX_WAKE, 1);
}

bool Gate::enter_within(int patience_ms) {
  if (t_gate_depth > 0) return false;
  for (int i = 0; i < patience_ms * 10; ++i) {
    int open = 0;
    if (state_.compare_exchange_strong(open, 1, std::memory_order_acquire)) {
      t_gate_depth = 1;
      return true;
    }
    const timespec moment = {0, 100'000};
    nanosleep(&moment, nullptr);
  }
  return false;
}

void Gate::close_in_child(bool taken) {
  if (taken) t_gate_depth = 0;
  drain_ = come_again_ = nullptr;
  pending_.store(0);
  state_.store(kChild);
}

}  // namespace mplite
