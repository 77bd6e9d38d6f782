// Progress by a signal that the sockets raise. The handler and what it calls are signal-safe;
// test/signal/closure_check starts at on_signal.
#include "mplite/progress/sigio_driver.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace mplite {
namespace {

std::atomic<SigioDriver*> g_driver{nullptr};  // what the handler works for
thread_local bool t_in_handler = false;       // tells a drain whose context it runs in

}  // namespace

// SIGIO, unless the application has a handler for it, or blocks it, as who waits for it does.
int SigioDriver::choose_signal() {
  const int other =
      has_handler(SIGIO) || BorrowedMask::is_blocked_by_application(SIGIO) ? free_signal() : 0;
  return other != 0 ? other : SIGIO;
}

int SigioDriver::start(int signal, char* error, std::size_t error_size) {
  if (signal == 0) signal = choose_signal();
  if (has_handler(signal)) {
    std::snprintf(error, error_size,
                  "signal %d (%s) has a handler of the application already: choose another with "
                  "LITE_SIGNAL=RTMIN+1, or LITE_CONTROLLER=thread",
                  signal, strsignal(signal));
    return -EBUSY;
  }
  owner_tid_ = static_cast<int>(syscall(SYS_gettid));
  owner_ended_ = false;
  owner_gives_back_.store(false);
  sigemptyset(&set_);
  sigaddset(&set_, signal);
  BorrowedMask::borrow(set_);
  g_driver = this;
  if (const int rc = handler_.install(signal, on_signal); rc < 0) {
    std::snprintf(error, error_size, "cannot install a handler for signal %d: %s", signal,
                  strerror(-rc));
    g_driver = nullptr;
    BorrowedMask::give_back();
    return rc;
  }
  install_overflow();
  Hold hold(state_.engine->gate());
  state_.engine->set_signal_driven(owner_tid_, signal);
  state_.engine->set_signals(false);
  return 0;
}

bool SigioDriver::withdraw(int backstop_signal) {
  {
    Hold hold(state_.engine->gate());
    state_.engine->set_signal_driven(0, signal());
  }
  const bool alone = is_owner() || owner_is_gone();
  if (!alone) ask_owner_to_give_back(state_.armed() ? signal() : backstop_signal);
  BorrowedMask::forget_pending();
  return alone;
}

void SigioDriver::end(bool alone) {
  if (alone) {
    handler_.restore();
    if (overflow_.signal() != 0) overflow_.restore();
  }
  BorrowedMask::give_back();  // a former owner's, too
  g_driver.store(nullptr);
  wait_for_handlers();
}

void SigioDriver::end_in_child() {
  g_driver.store(nullptr);
  handler_.restore();
  if (overflow_.signal() != 0) overflow_.restore();
  BorrowedMask::give_back();
}

// The library ends in another thread than the owner, whose mask nobody else can change but a
// handler that interrupts it. It may have blocked whatever could reach it: then it keeps the mask.
void SigioDriver::ask_owner_to_give_back(int signal) {
  constexpr int kPatienceMs = 2000;  // on a loaded machine a thread may wait for a core for more
                                     // than 100 ms (coexist_test, 30 at a time)
  if (signal == 0) return;
  owner_gives_back_.store(true);
  if (signal_owner(signal) != 0) return;
  for (int i = 0; i < kPatienceMs && owner_gives_back_.load(); ++i) {
    const timespec moment = {0, 1'000'000};
    nanosleep(&moment, nullptr);
  }
}

// ---- the owner ----

// As the sockets do it: where the queue of real-time signals is full, by SIGIO. Returns 0, or not 0
// when neither could be sent.
int SigioDriver::signal_owner(int signal) {
  const auto send = [this](int signo) {
    return static_cast<int>(syscall(SYS_tgkill, getpid(), owner_tid_, signo));
  };
  const int rc = send(signal);
  return rc != 0 && overflow_.signal() != 0 ? send(overflow_.signal()) : rc;
}

bool SigioDriver::owner_is_gone() const {
  return owner_ended_ || (syscall(SYS_tgkill, getpid(), owner_tid_, 0) != 0 && errno == ESRCH);
}

void SigioDriver::adopt_this_thread() {
  choose_overflow();
  BorrowedMask::borrow(set_);
  owner_tid_ = this_thread_id();
  owner_ended_ = false;
  if (still_ours()) handler_.reinstall();
  state_.engine->set_signal_driven(owner_tid_, signal());
}

// ---- the signal ----

// When the queue of real-time signals is full (RLIMIT_SIGPENDING, shared by all of the user's
// processes), the kernel sends SIGIO instead, which ends a process that has no handler for it
// (fcntl(2), F_SETSIG).
void SigioDriver::install_overflow() {
  struct sigaction current = {};
  sigaction(SIGIO, nullptr, &current);
  overflow_.forget();
  if (signal() < SIGRTMIN || !is_default(current)) return;
  overflow_.install(SIGIO, on_signal);
  choose_overflow();
  BorrowedMask::borrow(set_);
}

// In the owner. The application may have it blocked: it waits for it in its own way, or wants none.
// An overflow is noticed in the next call then.
void SigioDriver::choose_overflow() {
  if (overflow_.signal() == 0) return;
  if (BorrowedMask::is_blocked_by_application(SIGIO))
    sigdelset(&set_, SIGIO);
  else
    sigaddset(&set_, SIGIO);
}

bool SigioDriver::overflow_is_taken() const {
  if (overflow_.signal() == 0) return false;
  ++state_.engine->counters().mask_calls;
  return !overflow_.is_ours();
}

// The application has it from now on. In the mask of a thread: where ours is open, that is the
// application's own, which may have blocked SIGIO.
void SigioDriver::drop_overflow_in(sigset_t* mask) {
  overflow_.forget();
  sigdelset(&set_, SIGIO);
  if (sigismember(mask, signal()) == 1)
    BorrowedMask::give_back_in(mask, SIGIO);
  else
    BorrowedMask::forget(SIGIO);
}

void SigioDriver::drop_overflow() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  drop_overflow_in(&mask);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

bool SigioDriver::still_ours() const {
  ++state_.engine->counters().mask_calls;
  return handler_.is_ours();
}

bool SigioDriver::keep(bool& changed) {
  changed = false;
  if (overflow_is_taken()) drop_overflow();
  if (still_ours()) return true;
  changed = true;
  return change_signal();
}

// The application has put a handler of its own in the place of ours (or SIG_DFL, which for SIGIO
// ends the process): it may have the signal, and we go on with another. The signal is blocked. A
// pending instance is left to the application: it may be its own.
bool SigioDriver::change_signal() {
  const int lost = signal();
  const int found = free_signal();
  Hold hold(state_.engine->gate());
  state_.engine->note_signal_taken(lost, found);
  if (found == 0) {  // what is still pending stays blocked with it, until the end
    state_.engine->set_signal_driven(0, lost);
    state_.kind = ControllerKind::kSync;
    state_.publish();
    return false;
  }
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, found);
  sigdelset(&set_, lost);
  sigaddset(&set_, found);
  BorrowedMask::borrow(one);
  if (handler_.install(found, on_signal) != 0) return false;
  if (overflow_.signal() == 0 && lost != SIGIO) install_overflow();
  state_.engine->set_signal_driven(owner_tid_, found);
  sigset_t gone;
  sigemptyset(&gone);
  sigaddset(&gone, lost);
  struct sigaction theirs = {};
  // Nobody's: what is pending can only be ours, and would end the process.
  if (sigaction(lost, nullptr, &theirs) == 0 && is_default(theirs)) take_pending(gone);
  BorrowedMask::give_back(lost);
  return true;
}

bool SigioDriver::take_announced() {
  const timespec now = {0, 0};
  siginfo_t info;
  ++state_.engine->counters().mask_calls;
  const bool taken = sigtimedwait(&set_, &info, &now) > 0;
  // Real-time signals queue: each would be a handler entry.
  if (taken && signal() >= SIGRTMIN) take_pending(set_);
  return taken;
}

void SigioDriver::unblock() {
  ++state_.engine->counters().mask_calls;
  pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
}

void SigioDriver::block() {
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  ++state_.engine->counters().mask_calls;
}

void SigioDriver::unblock_in(sigset_t* mask) {
  if (overflow_is_taken()) drop_overflow_in(mask);
  sigdelset(mask, signal());
  if (sigismember(&set_, SIGIO) == 1) sigdelset(mask, SIGIO);
}

void SigioDriver::block_in(sigset_t* mask) {
  sigaddset(mask, signal());
  if (sigismember(&set_, SIGIO) == 1) sigaddset(mask, SIGIO);
}

// ---- the handler ----

void SigioDriver::on_signal(int signo, siginfo_t*, void* context) {
  HandlerScope scope(signo);
  SigioDriver* self = g_driver.load();
  sigset_t* mask = &static_cast<ucontext_t*>(context)->uc_sigmask;
  if (self == nullptr || self->gives_back(mask)) return;
  if (const StackRoom room = stack_room(context); room != StackRoom::kEnough) [[unlikely]]
    return self->find_room(room, signo, mask);
  ++self->state_.engine->counters().signals;
  if (!self->enter_gate()) return self->count_turned_away();
  ProgressState& state = self->state_;
  const std::int64_t began_ns = state.now_ns();
  const std::uint64_t before = state.engine->counters().bytes_moved();
  self->run_in_handler();
  const std::uint64_t bytes = state.engine->counters().bytes_moved() - before;
  self->leave_gate();
  const std::int64_t now_ns = state.now_ns(), spent_ns = now_ns - began_ns;
  state.policy.handled(spent_ns);
  const std::int64_t rest_ns = state.share.handled(now_ns, spent_ns, bytes);
  if (rest_ns > 0 && self->leave_alone_ != nullptr) [[unlikely]]
    self->leave_alone_(self->leave_alone_arg_, rest_ns, mask);
}

bool SigioDriver::in_handler() { return t_in_handler; }

bool SigioDriver::enter_gate() {
  t_in_handler = true;
  if (state_.engine->gate().try_enter()) return true;
  t_in_handler = false;
  return false;
}

void SigioDriver::leave_gate() {
  state_.engine->gate().leave();
  t_in_handler = false;
  host_thread_.wake_if_due();
}

// Pending and blocked until the other handler returns, which restores the mask of before it.
void SigioDriver::put_off(int signal, sigset_t* mask) {
  sigaddset(mask, signal);
  signal_owner(signal);
  count_turned_away();
}

void SigioDriver::find_room(StackRoom room, int signal, sigset_t* mask) {
  InstalledHandler& entered = signal == overflow_.signal() ? overflow_ : handler_;
  if (room == StackRoom::kOfAnother || signal != entered.signal() ||
      !entered.leave_alternate_stack())
    return put_off(signal, mask);
  signal_owner(signal);
  count_turned_away();
}

void SigioDriver::count_turned_away() {
  ++state_.engine->counters().signals_turned_away;
  trace(TraceEvent::kTurnedAway);
}

// What is left at the bound is continued by a signal to ourselves: none comes for data that is in
// the socket already.
void SigioDriver::run_in_handler(bool for_callers) {
  Engine& engine = *state_.engine;
  {
    const ProgressMode mode = engine.handler_mode();
    ProgressScope scope(engine, for_callers ? mode.for_callers() : mode);
    state_.progress(state_.arg);
  }
  if (engine.more_to_do() && !for_callers) raise();
}

bool SigioDriver::gives_back(sigset_t* mask) {
  if (!owner_gives_back_.load(std::memory_order_relaxed)) return false;
  if (!is_owner()) return true;
  BorrowedMask::give_back_in(mask);
  owner_gives_back_.store(false);
  return true;
}

}  // namespace mplite
