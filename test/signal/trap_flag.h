// Stepping through our own instructions, x86-64 only: while the processor's trap flag is set,
// SIGTRAP comes behind every one.
#pragma once
#include <signal.h>
#include <ucontext.h>

#if defined(__x86_64__)
#define HAS_TRAP_FLAG 1
constexpr unsigned long long kTrapFlag = 0x100;

// What is traced is between the two, and a few instructions of the test's own. The compiler is told
// that memory changes there.
[[gnu::always_inline]] inline void trace_on() {
  asm volatile("" ::: "memory");
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | kTrapFlag);
}
[[gnu::always_inline]] inline void trace_off() {
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~kTrapFlag);
  asm volatile("" ::: "memory");
}
// In the handler of SIGTRAP: what was interrupted goes on untraced.
inline void stop_tracing(void* context) {
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~static_cast<greg_t>(kTrapFlag);
}

// Runs `action` in a handler, once, behind instruction `at` of what is traced next.
struct OneStep {
  inline static volatile long passed = 0, at = 0;
  inline static void (*action)() = nullptr;

  static void set(long instruction, void (*what)()) {
    passed = 0;
    at = instruction;
    action = what;
    struct sigaction handler = {};
    handler.sa_sigaction = on_trap;
    handler.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &handler, nullptr);
  }
  // False: what was traced has fewer instructions.
  static bool was_reached() { return passed >= at; }

 private:
  static void on_trap(int, siginfo_t*, void* context) {
    passed = passed + 1;
    if (passed != at) return;
    stop_tracing(context);
    action();
  }
};
#endif
