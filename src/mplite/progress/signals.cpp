// Signals in a process that belongs to the application: dispositions and masks.
#include "mplite/progress/signals.h"

#include <sched.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

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
bool roomy_stack() {
  stack_t stack = {};
  return sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0 &&
         stack.ss_size >= InstalledHandler::kStackBytes;
}

}  // namespace

int this_thread_id() {
  thread_local int t_tid = 0;
  if (t_tid == 0) t_tid = static_cast<int>(syscall(SYS_gettid));
  return t_tid;
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
  action.sa_flags = SA_SIGINFO | SA_RESTART | (roomy_stack() ? SA_ONSTACK : 0);
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

bool is_short_of_stack(const void* context) {
  const stack_t& alternate = static_cast<const ucontext_t*>(context)->uc_stack;
  if ((alternate.ss_flags & SS_DISABLE) != 0) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(alternate.ss_sp);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  // not on it: the difference is greater than its size
  return here - begin < alternate.ss_size && here - begin < InstalledHandler::kStackBytes;
}

void wait_for_handlers() {
  while (g_in_handlers.load() != 0) sched_yield();
}

}  // namespace mplite
