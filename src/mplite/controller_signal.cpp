// The sigio controller's signal in an application that has a life of its own: which thread gets it, on which stack, and what happens when
// its handler is replaced. Ordinary context, but for the little that says so. The handler itself is in controller.cpp.
#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

#include "controller.h"

namespace mplite {
namespace {

int this_tid() {
  thread_local int t_tid = 0;
  if (t_tid == 0) t_tid = static_cast<int>(syscall(SYS_gettid));
  return t_tid;
}

bool is_default(const struct sigaction& action) { return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL; }

// A real-time signal that nobody handles and nobody waits for (who does blocks it). From the top: programs begin at SIGRTMIN. 0: none.
int free_signal() {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; --signal) {
    struct sigaction current = {};
    if (sigismember(&blocked, signal) == 0 && sigaction(signal, nullptr, &current) == 0 && is_default(current)) return signal;
  }
  return 0;
}

// ONSTACK: where threads have a large alternate stack already, the normal one may be small (Go). But most alternate stacks are there for a crash handler, have
// 8 KB and often come later, and the kernel would not stop us at their end.
bool roomy_stack() {
  stack_t stack = {};
  return sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0 && stack.ss_size >= Controller::kHandlerStackBytes;
}

}  // namespace

bool Controller::is_owner() const { return this_tid() == owner_tid_; }

int Controller::install(int signal, struct sigaction* before) {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | (roomy_stack() ? SA_ONSTACK : 0);
  sigfillset(&action.sa_mask);  // no other handler of the application interrupts ours half-way
  if (sigaction(signal, &action, before) != 0) return -errno;
  struct sigaction current = {};
  sigaction(signal, nullptr, &current);
  installed_ = current.sa_sigaction;  // as it is reported: a tool may stand between
  return 0;
}

// When the queue of real-time signals is full (RLIMIT_SIGPENDING, shared by all of the user's processes), the kernel sends SIGIO instead, which ends a
// process that has no handler for it (fcntl(2), F_SETSIG).
void Controller::install_overflow() {
  struct sigaction current = {};
  sigaction(SIGIO, nullptr, &current);
  overflow_handled_ = options_.signal >= SIGRTMIN && is_default(current);
  if (!overflow_handled_) return;
  sigset_t overflow;
  sigemptyset(&overflow);
  sigaddset(&overflow, SIGIO);
  sigaddset(&set_, SIGIO);
  pthread_sigmask(SIG_BLOCK, &overflow, nullptr);
  install(SIGIO, &overflow_before_);
}

bool Controller::still_ours(int signal) const {
  struct sigaction current = {};
  ++engine_->counters().mask_calls;
  return sigaction(signal, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == installed_;
}

void Controller::restore(int signal, const struct sigaction& before) {
  if (still_ours(signal)) sigaction(signal, &before, nullptr);  // otherwise it is the application's now
}

// Only our own signals: the application may have changed the rest of its mask since.
void Controller::give_mask_back(const sigset_t& ours) {
  sigset_t back;
  sigemptyset(&back);
  for (int signal = 1; signal <= SIGRTMAX; ++signal)
    if (sigismember(&ours, signal) == 1 && sigismember(&mask_before_, signal) == 0) sigaddset(&back, signal);
  pthread_sigmask(SIG_UNBLOCK, &back, nullptr);
}

// The application has put a handler of its own in the place of ours (or SIG_DFL, which for SIGIO ends the process): it may have the signal, and we go on with
// another. Owning thread, signal blocked. A pending instance is left to the application: it may be its own.
bool Controller::change_signal() {
  const int lost = options_.signal;
  const int found = free_signal();
  Hold hold(engine_->gate());
  engine_->note_signal_taken(lost, found);
  if (found == 0) {  // what is still pending stays blocked with it, until stop()
    engine_->set_signal_driven(0, lost);
    options_.kind = ControllerKind::kSync;
    publish();
    return false;
  }
  options_.signal = found;
  sigemptyset(&set_);
  sigaddset(&set_, found);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  if (overflow_handled_) sigaddset(&set_, SIGIO);
  if (install(found, &before_) != 0) return false;
  if (!overflow_handled_ && lost != SIGIO) install_overflow();
  engine_->set_signal_driven(owner_tid_, found);
  sigset_t gone;
  sigemptyset(&gone);
  sigaddset(&gone, lost);
  struct sigaction theirs = {};
  if (sigaction(lost, nullptr, &theirs) == 0 && is_default(theirs)) {  // nobody's: what is pending can only be ours, and would end the process
    const timespec now = {0, 0};
    siginfo_t info;
    while (sigtimedwait(&gone, &info, &now) > 0) {
    }
  }
  give_mask_back(gone);
  return true;
}

// Before the signal is unblocked, each time: armed, a signal that nobody handles would end the process. One system call, two with a real-time signal.
bool Controller::keep_signal(bool& changed) {
  changed = false;
  if (overflow_handled_ && !still_ours(SIGIO)) {
    overflow_handled_ = false;
    sigdelset(&set_, SIGIO);
    sigset_t gone;
    sigemptyset(&gone);
    sigaddset(&gone, SIGIO);
    give_mask_back(gone);
  }
  if (!still_ours(options_.signal)) {
    changed = true;
    if (!change_signal()) return false;
  }
  return true;
}

bool Controller::owner_is_gone() const { return syscall(SYS_tgkill, getpid(), owner_tid_, 0) != 0 && errno == ESRCH; }

// MPI_THREAD_SERIALIZED: the thread that makes the calls is the one that is inside or outside, so the signal goes over to it, which costs three calls per socket.
// With MPI_THREAD_MULTIPLE the owner keeps it, as it is armed whenever it is outside, and so does one that is armed now; unless it has ended.
bool Controller::take_over() {
  if (is_owner()) return true;
  Hold hold(engine_->gate());
  if ((armed() || always_) && !owner_is_gone()) return false;
  armed_.store(0);
  publish();
  pthread_sigmask(SIG_BLOCK, &set_, &mask_before_);
  if (backstop_signal_ != 0) {  // the former owner's; an instance on its way to him does nothing
    timer_delete(backstop_timer_);
    backstop_running_.store(false);
  }
  owner_tid_ = this_tid();
  if (still_ours(options_.signal)) install(options_.signal, nullptr);  // it may be another kind of thread
  engine_->set_signal_driven(owner_tid_, options_.signal);
  prepare_backstop();
  return true;
}

// The backstop needs a signal of its own, as the other one is blocked then. SIGURG, if nobody has it: debuggers pass it silently, and by default it is ignored.
int Controller::backstop_signal() const {
  struct sigaction current = {};
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  const bool free = options_.signal != SIGURG && sigismember(&blocked, SIGURG) == 0 && sigaction(SIGURG, nullptr, &current) == 0 && is_default(current);
  return free ? SIGURG : free_signal();
}

void Controller::prepare_backstop() {
  const int signal = backstop_signal_ != 0 ? backstop_signal_ : options_.grace ? backstop_signal() : 0;
  const bool installed = backstop_signal_ != 0;
  backstop_signal_ = 0;
  if (signal == 0) return;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event._sigev_un._tid = owner_tid_;
  if (timer_create(CLOCK_MONOTONIC, &event, &backstop_timer_) != 0) return;
  backstop_signal_ = signal;
  if (installed) return;
  struct sigaction action = {};
  action.sa_sigaction = on_backstop;
  action.sa_flags = SA_SIGINFO | SA_RESTART | (roomy_stack() ? SA_ONSTACK : 0);
  sigfillset(&action.sa_mask);
  sigaction(signal, &action, &backstop_before_);
  sigaction(signal, nullptr, &action);
  backstop_installed_ = action.sa_sigaction;
}

bool Controller::backstop_is_ours() const {
  struct sigaction current = {};
  ++engine_->counters().mask_calls;
  return sigaction(backstop_signal_, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == backstop_installed_;
}

// Before it is used: the application may have taken the signal since.
bool Controller::keep_backstop() {
  if (!backstop_is_ours()) end_backstop();
  return backstop_signal_ != 0;
}

// Afterwards no handler of it runs.
void Controller::end_backstop() {
  if (backstop_signal_ == 0) return;
  timer_delete(backstop_timer_);
  sigset_t own, before;
  sigemptyset(&own);
  sigaddset(&own, backstop_signal_);
  pthread_sigmask(SIG_BLOCK, &own, &before);
  const timespec now = {0, 0};
  siginfo_t info;
  while (sigtimedwait(&own, &info, &now) > 0) {
  }
  // Another thread may have an instance of it still to come: the handler does nothing then, the default would end the process.
  if (is_owner() && backstop_is_ours()) sigaction(backstop_signal_, &backstop_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  backstop_signal_ = 0;
  backstop_running_.store(false);
}

// The child of a fork, its only thread; fork_shield.cpp has closed the gate.
void Controller::in_child(void* arg) {
  auto* self = static_cast<Controller*>(arg);
  self->running_ = false;
  self->armed_.store(0);
  self->host_on_.store(false);
  self->host_busy_.store(false);  // the helper thread is not here
  self->publish();
  if (!self->signal_started_) return;
  self->forget();
  self->restore(self->options_.signal, self->before_);
  self->backstop_signal_ = 0;  // timers stay with the parent, and its handler does nothing here
  if (self->overflow_handled_) self->restore(SIGIO, self->overflow_before_);
  self->give_mask_back(self->set_);
}

}  // namespace mplite
