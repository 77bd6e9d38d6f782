// Coroutines. swapcontext() makes a system call for the signal mask each time, which was four
// fifths of the time of a simulation: only the first entry needs one.
#undef _FORTIFY_SOURCE  // its longjmp() takes another stack for a mistake
#include "coroutine.h"

namespace sim {
namespace {

Coroutine* g_entered = nullptr;  // of the first resume()

// AddressSanitizer knows which stack is in use by swapcontext().
#ifdef __SANITIZE_ADDRESS__
constexpr bool kJumps = false;
#else
constexpr bool kJumps = true;
#endif

}  // namespace

void Coroutine::enter() {
  Coroutine& self = *g_entered;
  self.body_();
  self.suspend();
}

void Coroutine::start(void (*body)(), std::size_t stack_bytes) {
  body_ = body;
  stack_ = std::make_unique_for_overwrite<char[]>(stack_bytes);
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = stack_bytes;
  inside_.uc_link = nullptr;
  makecontext(&inside_, enter, 0);
  entered_ = false;
}

void Coroutine::resume() {
  if (!entered_) g_entered = this;
  if (!kJumps) {
    entered_ = true;
    swapcontext(&outside_, &inside_);
  } else if (_setjmp(outside_jump_) == 0) {
    if (entered_) _longjmp(inside_jump_, 1);
    entered_ = true;
    setcontext(&inside_);
  }
}

void Coroutine::suspend() {
  if (!kJumps)
    swapcontext(&inside_, &outside_);
  else if (_setjmp(inside_jump_) == 0)
    _longjmp(outside_jump_, 1);
}

}  // namespace sim
