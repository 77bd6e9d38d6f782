// The three controllers. Everything from on_signal down is signal-safe; test/signal/closure_check starts at on_signal.
#include "controller.h"

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "fork_shield.h"
#include "trace.h"

namespace mplite {
namespace {

std::atomic<Controller*> g_controller{nullptr};  // what the handlers work for
std::atomic<int> in_handlers{0};                 // threads in one of them
thread_local bool t_in_handler = false;  // tells on_drain whose context it runs in
thread_local bool t_helper = false;      // this is the helper thread

constexpr std::uint64_t kWakeToken = std::uint64_t{1} << 62;  // no connection has it: the engine ignores the event

long futex(std::atomic<int>* word, int op, int value, const timespec* timeout = nullptr) {
  return syscall(SYS_futex, reinterpret_cast<int*>(word), op | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

timespec to_timespec(std::int64_t ns) { return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)}; }

}  // namespace

int Controller::start(Engine& engine, const Options& options, char* error, std::size_t error_size) {
  engine_ = &engine;
  options_ = options;
  engine.gate().set_drain(on_drain, this);
  int rc = 0;
  if (options.kind == ControllerKind::kSigio) rc = start_signal(error, error_size);
  if (options.kind == ControllerKind::kThread) rc = start_thread(error, error_size);
  if (options.kind == ControllerKind::kSync) {  // nobody is ever told
    Hold hold(engine.gate());
    engine.set_signals(false);
  }
  grace_.set_on(options.grace);
  running_ = rc == 0;
  if (options.want_arm != nullptr) want_arm_ = options.want_arm;
  {
    Hold hold(engine.gate());
    publish();
  }
  if (running_) fork_shield_raise(engine, in_child, this);
  return rc;
}

void Controller::forget() { g_controller = nullptr; }

int Controller::start_signal(char* error, std::size_t error_size) {
  const int signal = options_.signal;
  struct sigaction current = {};
  sigaction(signal, nullptr, &current);
  const bool taken = (current.sa_flags & SA_SIGINFO) != 0 || (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN);
  if (taken) {
    std::snprintf(error, error_size,
                  "signal %d (%s) has a handler of the application already: choose another with LITE_SIGNAL=RTMIN+1, or LITE_CONTROLLER=thread",
                  signal, strsignal(signal));
    return -EBUSY;
  }
  owner_tid_ = static_cast<int>(syscall(SYS_gettid));
  sigemptyset(&set_);
  sigaddset(&set_, signal);
  pthread_sigmask(SIG_BLOCK, &set_, &mask_before_);
  g_controller = this;
  if (const int rc = install(signal, &before_); rc < 0) {
    std::snprintf(error, error_size, "cannot install a handler for signal %d: %s", signal, strerror(-rc));
    give_mask_back(set_);
    return rc;
  }
  install_overflow();
  prepare_backstop();
  signal_started_ = true;
  Hold hold(engine_->gate());
  engine_->set_signal_driven(owner_tid_, signal);
  engine_->set_signals(false);
  return 0;
}

int Controller::start_thread(char* error, std::size_t error_size) {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0 || engine_->net().watch(wake_fd_, kWakeToken, kReadable) < 0) {
    std::snprintf(error, error_size, "the helper thread's wake-up descriptor cannot be made: %s", strerror(errno));
    return -EMFILE;
  }
  stopping_.store(false);
  // Started with all signals blocked: the application's handlers stay in the application's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int rc = pthread_create(&helper_, nullptr, thread_main, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (rc != 0) {
    std::snprintf(error, error_size, "the helper thread cannot be started: %s", strerror(rc));
    engine_->net().unwatch(wake_fd_);
    close(wake_fd_);
    wake_fd_ = -1;
  }
  return -rc;
}

void Controller::stop() {
  if (!running_) return;
  running_ = false;
  {
    Hold hold(engine_->gate());
    publish();
  }
  fork_shield_lower(*engine_);
  end_host_work();
  enter_wait();
  if (signal_started_) stop_signal();
  if (options_.kind == ControllerKind::kThread) {
    stopping_.store(true);
    armed_.store(1);
    orders_.fetch_add(1);
    futex(&orders_, FUTEX_WAKE, INT_MAX);
    const std::uint64_t one = 1;
    if (write(wake_fd_, &one, sizeof one) < 0) return;  // cannot happen on an eventfd that nobody else writes
    pthread_join(helper_, nullptr);
    armed_.store(0);
    engine_->net().unwatch(wake_fd_);
    close(wake_fd_);
    wake_fd_ = -1;
  }
}

// A thread that is not the owner cannot take the signal from the owner's queue or mask. Then the handlers stay: they find nobody to work for and do nothing, where the
// default would end the process.
void Controller::stop_signal() {
  signal_started_ = false;
  {
    Hold hold(engine_->gate());
    engine_->set_signal_driven(0, options_.signal);
  }
  const bool mine = is_owner();
  if (mine) {
    // A pending instance must not reach the application's own disposition after we are gone.
    const timespec now = {0, 0};
    siginfo_t info;
    while (sigtimedwait(&set_, &info, &now) > 0) {
    }
  }
  end_backstop();
  if (mine || owner_is_gone()) {
    restore(options_.signal, before_);
    if (overflow_handled_) restore(SIGIO, overflow_before_);
  }
  if (mine) give_mask_back(set_);
  g_controller.store(nullptr);
  while (in_handlers.load() != 0) sched_yield();
}

void Controller::publish() {
  // With work of the host's a helper that is armed already may have to be told, too.
  const bool host = host_on_.load(std::memory_order_relaxed), may_arm = !armed() || grace_.on();
  const bool can = running_ && options_.kind != ControllerKind::kSync;
  wants_[0] = can && (host || (always_ && may_arm)) ? 1 : 0;
  wants_[1] = can && (host || may_arm) ? 1 : 0;
  tell();
}

void Controller::set_always(bool always) {
  Hold hold(engine_->gate());
  always_ = always;
  grace_.set_on(options_.grace && !always);  // several threads come and go: what one did tells nothing
  publish();
}

void Controller::leave_library(int call) {
  if (!running_ || options_.kind == ControllerKind::kSync) return;
  if (options_.kind == ControllerKind::kThread) return leave_to_helper(call);
  const bool mine = is_owner();
  if (!take_over()) return;  // only the owner can change its own mask
  if (!armed() && engine_->connecting() && grace_ns_ > 0 && outlast_handshake()) return;
  const std::int64_t left_ns = engine_->net().now_ns();
  // An owner of just now has to look for itself: what came before was announced to the former one.
  if (backstop_signal_ != 0 && !grace_.leave(call, left_ns) && mine) {
    if (armed()) disarm();
    // One that is nearly due is put off, unless something gathered waits for it: while the application comes and goes it costs a system call then, and not an interrupt in the middle of a copy.
    // One that is due much later was to see after an armed signal (look_after_departure). One that is long overdue went to somebody who took the signal.
    const bool running = backstop_running_.load(std::memory_order_relaxed) && left_ns < backstop_due_ns_ + kOverdueNs;
    const std::int64_t due_in_ns = backstop_due_ns_ - left_ns, delay_ns = grace_.backstop_ns();
    if (running && (guarding_ || (due_in_ns > delay_ns / 2 && due_in_ns <= delay_ns))) return;
    if (keep_backstop()) {
      if (running && due_in_ns <= delay_ns / 2) grace_.put_off();
      start_backstop(grace_.backstop_ns());
      return grace_.handled(engine_->net().now_ns() - left_ns);
    }
  }
  if (armed() && still_ours(options_.signal)) return;
  if (armed()) disarm();  // the application has taken the signal since
  // What came while the signal was blocked is pending, and would cost a delivery for data that is read by now: take it back, and look once for what it may have
  // announced. What comes after that look is delivered when the signal is unblocked.
  bool changed;
  if (!keep_signal(changed)) return;
  const timespec now = {0, 0};
  siginfo_t info;
  ++engine_->counters().mask_calls;
  bool taken = sigtimedwait(&set_, &info, &now) > 0 || changed || !mine;
  // Real-time signals queue: each would be a handler entry.
  for (bool more = taken && options_.signal >= SIGRTMIN; more; more = sigtimedwait(&set_, &info, &now) > 0) {
  }
  unarmed_waits_ = 0;
  if (!engine_->signals()) {  // what came until now was not announced
    Hold hold(engine_->gate());
    engine_->set_signals(true);
    taken = true;
  }
  if (taken) {
    Hold hold(engine_->gate());
    engine_->refill();
    engine_->set_exhaustive(true);
    options_.progress(options_.arg);
    engine_->set_exhaustive(false);
    grace_.handled(engine_->net().now_ns() - left_ns);
    if (!outstanding_ && !always_) return;
  }
  armed_.store(1);
  publish();
  trace(TraceEvent::kArm);
  ++engine_->counters().mask_calls;
  pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
}

void Controller::leave_to_helper(int call) {
  if (t_helper) return;  // an MPI call in a callback that the host's progress made
  const bool host = host_on_.load(std::memory_order_relaxed) && host_.pending() && (!armed() || host_.news());
  {
    Hold hold(engine_->gate());  // the helper may be in set_outstanding()
    if (!outstanding_ && !always_ && !host) return;
    const bool now = grace_.leave(call, engine_->net().now_ns()) || host;
    if (now && armed() && !host) return;
    if (now != armed()) {
      armed_.store(now ? 1 : 0);
      trace(now ? TraceEvent::kArm : TraceEvent::kDisarm);
      ++engine_->counters().mask_calls;
      publish();
    }
    departed_ = !now;
    if (!now && backstop_running_.exchange(true)) return;
  }
  // In epoll_wait it sees by itself that it is armed, with the next event; but the host's work needs none.
  orders_.fetch_add(1);
  if (resting_.load()) {
    futex(&orders_, FUTEX_WAKE, 1);
  } else if (host) {
    const std::uint64_t one = 1;
    if (write(wake_fd_, &one, sizeof one) < 0) errno = 0;  // it counts to 2^64: somebody has told already
  }
}

// A first message waits for its connection, which is made within a fraction of a millisecond when the peer looks: cheaper to see to than the signals that
// its steps would raise. Peers that do not look use the allowance up, and then it is left to the signals. True: nothing is outstanding any more.
bool Controller::outlast_handshake() {
  Hold hold(engine_->gate());
  const std::int64_t started = engine_->net().now_ns();
  std::int64_t spent = 0;
  while (engine_->connecting() && spent < kHandshakeGraceNs) {
    engine_->refill();
    engine_->set_exhaustive(true);
    options_.progress(options_.arg);
    engine_->set_exhaustive(false);
    spent = engine_->net().now_ns() - started;
  }
  if (engine_->connecting()) grace_ns_ -= spent;
  return !outstanding_ && !always_;
}

void Controller::start_backstop(std::int64_t delay_ns) {
  backstop_running_.store(true, std::memory_order_relaxed);
  backstop_due_ns_ = engine_->net().now_ns() + delay_ns;
  itimerspec when = {};
  when.it_value = to_timespec(delay_ns);
  timer_settime(backstop_timer_, 0, &when, nullptr);
  ++engine_->counters().other_calls;
}

// A timer that is under way is taken, if it gives the next sends time to come: setting it for each system call saved would cost as much as that.
bool Controller::guard_gathered() {
  if (!may_gather() || !is_owner()) return false;
  const std::int64_t now = engine_->net().now_ns();
  const std::int64_t left_ns = backstop_due_ns_ - now;
  if (backstop_running_.load(std::memory_order_relaxed) && left_ns > kGatherNs / 2 && left_ns <= kGatherNs) return true;
  if (!keep_backstop()) return false;
  guarding_ = true;
  start_backstop(kGatherNs);
  return true;
}

void Controller::came_back() {
  if (options_.kind == ControllerKind::kSync || t_helper) return;
  if (options_.kind == ControllerKind::kThread) {
    Hold hold(engine_->gate());
    grace_.came_back(engine_->net().now_ns());
  } else if (is_owner()) {
    grace_.came_back(engine_->net().now_ns());
  }
}

void Controller::note_wait() {
  if (options_.kind != ControllerKind::kSigio || armed() || !engine_->signals() || ++unarmed_waits_ < kColdAfterWaits) return;
  // Taking O_ASYNC off and setting it again is two system calls per connection, which that many waits earn.
  if (unarmed_waits_ < engine_->counters().connections || !is_owner()) return;
  Hold hold(engine_->gate());
  engine_->set_signals(false);
}

void Controller::enter_wait() {
  if (!armed() || options_.kind == ControllerKind::kSync || t_helper) return;
  if (options_.kind == ControllerKind::kSigio && !is_owner()) {
    // Armed in a thread that has ended since, it would stay so, and nobody would get the signals.
    if (foreign_waits_++ % 256 != 0 || !owner_is_gone()) return;
    armed_.store(0);
    publish();
    return;
  }
  disarm();
}

// sigio: the owner.
void Controller::disarm() {
  if (options_.kind == ControllerKind::kSigio) {
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    ++engine_->counters().mask_calls;
  }
  armed_.store(0);
  trace(TraceEvent::kDisarm);
  publish();
}

// ---- the handler ----

void Controller::on_signal(int, siginfo_t*, void*) {
  const int saved_errno = errno;
  in_handlers.fetch_add(1);
  Controller* self = g_controller.load();
  if (self != nullptr) {
    Counters& counters = self->engine_->counters();
    ++counters.signals;
    t_in_handler = true;
    if (self->engine_->gate().try_enter()) {
      trace(TraceEvent::kSignal, -1, 1);
      const std::int64_t began_ns = self->engine_->net().now_ns();
      self->run_in_handler();
      self->engine_->gate().leave();
      self->grace_.handled(self->engine_->net().now_ns() - began_ns);
    } else {
      ++counters.signals_turned_away;
    }
    t_in_handler = false;
  }
  in_handlers.fetch_sub(1);
  errno = saved_errno;
}

// The application left the library a while ago in the hope that it would be back at once. If it is still away, the signal is let through from here on: the mask that
// the interrupted code goes on with is the one in `context`. What is pending by then is delivered on the way out of this handler.
void Controller::on_backstop(int, siginfo_t*, void* context) {
  const int saved_errno = errno;
  in_handlers.fetch_add(1);
  Controller* self = g_controller.load();
  if (self != nullptr && self->running_ && self->is_owner()) self->look_after_departure(&static_cast<ucontext_t*>(context)->uc_sigmask);
  in_handlers.fetch_sub(1);
  errno = saved_errno;
}

// Turned away, the gate's holder lets it go.
void Controller::let_gathered_go() {
  t_in_handler = true;
  if (engine_->gate().try_enter()) {
    run_in_handler();
    engine_->gate().leave();
  }
  t_in_handler = false;
}

void Controller::look_after_departure(sigset_t* mask) {
  Engine& engine = *engine_;
  const bool guarding = guarding_;
  backstop_running_.store(false, std::memory_order_relaxed);
  guarding_ = false;
  ++engine.counters().backstops;
  if (engine.gathered() != 0) let_gathered_go();
  if (armed()) {
    // Armed by one of these. An application that had saved its mask before that, or one of its handlers that we interrupted, may have put the old one back.
    if (recheck_ns_ == 0 || !still_ours(options_.signal)) return;
    open_in(mask);
    recheck_ns_ = recheck_ns_ < kRecheckMaxNs / 4 ? recheck_ns_ * 4 : kRecheckMaxNs;
    return start_backstop(recheck_ns_);
  }
  recheck_ns_ = 0;
  if (!grace_.waiting() || !(outstanding_ || always_)) {
    if (!guarding) grace_.useless();
    return;
  }
  if (const std::int64_t rest = grace_.until_arm_ns(engine.net().now_ns()); rest > 0) return start_backstop(rest);
  if (!still_ours(options_.signal)) return grace_.ran_out();  // the application has taken it: the next departure finds another
  t_in_handler = true;
  if (engine.gate().try_enter()) {
    grace_.ran_out();
    unarmed_waits_ = 0;
    armed_.store(1);
    trace(TraceEvent::kArm);
    publish();
    engine.set_signals(true);
    run_in_handler();
    engine.gate().leave();
    open_in(mask);
    recheck_ns_ = kRecheckMinNs;
    start_backstop(recheck_ns_);
  } else {
    start_backstop(Grace::kSoonNs);  // in a call that does not count as coming back
  }
  t_in_handler = false;
}

void Controller::open_in(sigset_t* mask) const {
  sigdelset(mask, options_.signal);
  if (overflow_handled_) sigdelset(mask, SIGIO);
}

// Gate held, nothing may be allocated, bounded in bytes. What the budget leaves is continued by a signal to ourselves: none comes for data that is
// in the socket already.
void Controller::run_in_handler() {
  engine_->set_async(true);
  engine_->begin_budget();
  options_.progress(options_.arg);
  engine_->end_budget();
  engine_->set_async(false);
  if (engine_->more_to_do()) syscall(SYS_tgkill, getpid(), owner_tid_, options_.signal);
}

// A handler was turned away while the gate was held; its holder does the work before letting go.
void Controller::on_drain(void* arg) {
  auto* self = static_cast<Controller*>(arg);
  trace(TraceEvent::kDrain);
  if (t_in_handler) {
    self->run_in_handler();
    return;
  }
  self->engine_->set_exhaustive(true);
  self->options_.progress(self->options_.arg);
  self->engine_->set_exhaustive(false);
}

// ---- the helper thread ----

void* Controller::thread_main(void* arg) {
  static_cast<Controller*>(arg)->run_in_thread();
  return nullptr;
}

void Controller::run_in_thread() {
  t_helper = true;
  NetEvent event;
  bool fresh = true;  // just armed: what was done inside the library may have left something for the host
  while (!stopping_.load()) {
    if (armed_.load() == 0) {
      rest();
      fresh = true;
      continue;
    }
    if (fresh) host_pass();
    fresh = false;
    // Asleep without the gate; level-triggered, so nothing is consumed by looking. The time-out is for deadlines (connecting peers).
    const int events = engine_->net().wait(&event, 1, 500'000'000);
    if (events > 0 && event.token == kWakeToken && !stopping_.load()) {
      std::uint64_t told;
      fresh = read(wake_fd_, &told, sizeof told) > 0;
      continue;
    }
    if (stopping_.load() || armed_.load() == 0) continue;
    {
      Hold hold(engine_->gate());
      if (armed_.load() == 0) continue;
      ++engine_->counters().thread_wakes;
      trace(TraceEvent::kWake);
      engine_->refill();
      engine_->set_exhaustive(true);
      engine_->set_patient(true);
      options_.progress(options_.arg);
      engine_->set_patient(false);
      engine_->set_exhaustive(false);
    }
    if (host_on_.load() && host_.due()) host_pass();
  }
}

// Not armed: sleeps until there is an order (armed, or a departure that was not and wants a backstop), then until that backstop is due. Sequentially consistent:
// who gives an order after `seen` was read either finds us resting, or we find the word changed.
void Controller::rest() {
  Grace::Sleep sleep;
  resting_.store(true);
  for (;;) {
    const int seen = orders_.load();
    if (armed_.load() != 0 || stopping_.load()) break;
    const std::int64_t rest_ns = backstop_running_.load() ? sleep.left_ns(engine_->net().now_ns(), grace_.backstop_ns()) : -1;
    if (rest_ns == 0) break;
    const timespec delay = to_timespec(rest_ns < 0 ? 0 : rest_ns);
    futex(&orders_, FUTEX_WAIT, seen, rest_ns < 0 ? nullptr : &delay);
  }
  resting_.store(false);
  if (armed_.load() != 0 || stopping_.load()) return;
  Hold hold(engine_->gate());
  if (armed()) return;
  ++engine_->counters().backstops;
  const bool host = host_on_.load() && host_.pending();
  if (!grace_.waiting() || !(outstanding_ || always_ || host)) {
    backstop_running_.store(departed_);  // who came and went will go again: cheaper than to be told
    departed_ = false;
    grace_.useless();
  } else if (grace_.until_arm_ns(engine_->net().now_ns()) <= 0) {
    backstop_running_.store(false);
    grace_.ran_out();
    armed_.store(1);
    trace(TraceEvent::kArm);
    publish();
  }
}

// ---- what the host does above the engine ----

void Controller::set_host_work(const HostWork& work) {
  host_ = work;
  host_on_.store(true);
  Hold hold(engine_->gate());
  publish();
}

// Sequentially consistent on both words: either the helper sees that it is off, or it is seen to be busy here.
void Controller::end_host_work() {
  if (!host_on_.exchange(false)) return;
  while (host_busy_.load()) sched_yield();
  Hold hold(engine_->gate());
  publish();
}

void Controller::host_pass() {
  host_busy_.store(true);
  if (host_on_.load() && armed_.load() != 0) host_.progress();
  host_busy_.store(false);
}

bool Controller::in_helper() const { return t_helper; }

}  // namespace mplite
