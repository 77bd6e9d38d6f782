// Signals in a process that belongs to the application: dispositions and masks.
#include "mplite/progress/signals.h"

#include <sched.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "mplite/observe/trace.h"

namespace mplite {
namespace {

std::atomic<int> g_in_handlers{0};  // threads in one of them

// As long as `of_ours` is not empty.
struct OwnMask {
  sigset_t of_ours, before;
};
thread_local OwnMask t_mask = {};

// ONSTACK: where threads have a large alternate stack already, the normal one may be small (Go).
// But most alternate stacks are there for a crash handler, have 8 KB and often come later, and the
// kernel would not stop us at their end.
int flag_of_roomy_stack() {
  constexpr unsigned long kAuxMinSigStack = 51;     // AT_MINSIGSTKSZ, which old headers do not have
  constexpr unsigned long kFrameBytesLeast = 4096;  // AVX-512: 3.6 KB
  const std::size_t frame = std::max(getauxval(kAuxMinSigStack), kFrameBytesLeast);
  stack_t stack = {};
  return sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0 &&
                 stack.ss_size >= InstalledHandler::kStackBytes + frame
             ? SA_ONSTACK
             : 0;
}

// Of what the handler has interrupted. Null: not known for this kind of processor.
std::uintptr_t interrupted_stack(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.sp;
#else
  static_cast<void>(context);
  return 0;
#endif
}

}  // namespace

int this_thread_id() {
  thread_local int t_tid = 0;
  if (t_tid == 0) t_tid = static_cast<int>(syscall(SYS_gettid));
  return t_tid;
}

bool has_handler(int signal) {
  struct sigaction current = {};
  return sigaction(signal, nullptr, &current) == 0 &&
         ((current.sa_flags & SA_SIGINFO) != 0 ||
          (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN));
}

bool is_default(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
}

int free_signal() {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; --signal) {
    struct sigaction current = {};
    if (sigismember(&blocked, signal) == 0 && sigaction(signal, nullptr, &current) == 0 &&
        is_default(current))
      return signal;
  }
  return 0;
}

bool take_pending(const sigset_t& signals) {
  const timespec now = {0, 0};
  siginfo_t info;
  bool taken = false;
  while (sigtimedwait(&signals, &info, &now) > 0) taken = true;
  return taken;
}

// ---- dispositions ----

int InstalledHandler::set(struct sigaction* before) {
  struct sigaction action = {};
  action.sa_sigaction = function_;
  action.sa_flags = SA_SIGINFO | SA_RESTART | flag_of_roomy_stack();
  sigfillset(&action.sa_mask);  // no other handler of the application interrupts ours half-way
  if (sigaction(signal_, &action, before) != 0) return -errno;
  struct sigaction current = {};
  sigaction(signal_, nullptr, &current);
  installed_ = current.sa_sigaction;
  return 0;
}

int InstalledHandler::install(int signal, Function function) {
  signal_ = signal;
  function_ = function;
  return set(&before_);
}

void InstalledHandler::reinstall() { set(nullptr); }

bool InstalledHandler::leave_alternate_stack() {
  struct sigaction ours = {};
  if (!is_ours() || sigaction(signal_, nullptr, &ours) != 0 || (ours.sa_flags & SA_ONSTACK) == 0)
    return false;
  ours.sa_flags &= ~SA_ONSTACK;
  return sigaction(signal_, &ours, nullptr) == 0;
}

bool InstalledHandler::is_ours() const {
  struct sigaction current = {};
  return sigaction(signal_, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) != 0 &&
         current.sa_sigaction == installed_;
}

void InstalledHandler::restore() {
  if (is_ours()) sigaction(signal_, &before_, nullptr);
}

// ---- masks ----

void BorrowedMask::borrow(const sigset_t& signals) {
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&signals, signal) != 1 || sigismember(&t_mask.of_ours, signal) == 1) continue;
    sigaddset(&t_mask.of_ours, signal);
    if (sigismember(&before, signal) == 1)
      sigaddset(&t_mask.before, signal);
    else
      sigdelset(&t_mask.before, signal);
  }
}

bool BorrowedMask::is_blocked_by_application(int signal) {
  if (sigismember(&t_mask.of_ours, signal) == 1) return sigismember(&t_mask.before, signal) == 1;
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

void BorrowedMask::forget_pending() { take_pending(t_mask.of_ours); }

// Both ways: while armed, a signal is unblocked that the application may have blocked.
void BorrowedMask::give_back_in(sigset_t* mask) {
  for (int signal = 1; signal < NSIG; ++signal) give_back_in(mask, signal);
}

void BorrowedMask::give_back_in(sigset_t* mask, int signal) {
  if (sigismember(&t_mask.of_ours, signal) != 1) return;
  if (sigismember(&t_mask.before, signal) == 1)
    sigaddset(mask, signal);
  else
    sigdelset(mask, signal);
  sigdelset(&t_mask.of_ours, signal);
}

void BorrowedMask::forget(int signal) { sigdelset(&t_mask.of_ours, signal); }

void BorrowedMask::give_back() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  give_back_in(&mask);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void BorrowedMask::give_back(int signal) {
  if (sigismember(&t_mask.of_ours, signal) != 1) return;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(sigismember(&t_mask.before, signal) == 1 ? SIG_BLOCK : SIG_UNBLOCK, &one,
                  nullptr);
  sigdelset(&t_mask.of_ours, signal);
}

// ---- handlers that run ----

// System calls on sockets are cancellation points.
HandlerScope::HandlerScope(int signal) : saved_errno_(errno) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  g_in_handlers.fetch_add(1);
  trace(TraceEvent::kHandler, -1, static_cast<std::uint64_t>(signal));
}

HandlerScope::~HandlerScope() {
  trace(TraceEvent::kHandlerEnd);
  g_in_handlers.fetch_sub(1);
  pthread_setcancelstate(cancel_state_, nullptr);
  errno = saved_errno_;
}

StackRoom stack_room(const void* context) {
  const auto& interrupted = *static_cast<const ucontext_t*>(context);
  const stack_t& alternate = interrupted.uc_stack;
  if ((alternate.ss_flags & SS_DISABLE) != 0) return StackRoom::kEnough;
  const auto begin = reinterpret_cast<std::uintptr_t>(alternate.ss_sp);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  // not on it: the difference is greater than its size
  if (here - begin >= alternate.ss_size || here - begin >= InstalledHandler::kStackBytes)
    return StackRoom::kEnough;
  const std::uintptr_t before = interrupted_stack(interrupted);
  return before != 0 && before - begin > alternate.ss_size ? StackRoom::kTooSmall
                                                           : StackRoom::kOfAnother;
}

void wait_for_handlers() {
  while (g_in_handlers.load() != 0) sched_yield();
}

}  // namespace mplite
