// A stack of its own for a function that stops in the middle and is gone on with later.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <memory>

namespace sim {

class Coroutine {
 public:
  Coroutine() = default;
  Coroutine(const Coroutine&) = delete;
  Coroutine& operator=(const Coroutine&) = delete;

  // `body` runs in the first resume(), on a stack of so many bytes. It may return, or never.
  void start(void (*body)(), std::size_t stack_bytes);
  // Runs it until it suspends, or returns.
  void resume();
  // From within.
  void suspend();

 private:
  static void enter();

  void (*body_)() = nullptr;
  std::unique_ptr<char[]> stack_;
  ucontext_t inside_ = {}, outside_ = {};
  jmp_buf inside_jump_ = {}, outside_jump_ = {};
  bool entered_ = false;
};

}  // namespace sim
