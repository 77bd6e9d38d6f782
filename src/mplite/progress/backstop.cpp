// The backstop of sigio. The handler and what it calls are signal-safe; test/signal/closure_check
// starts at on_signal.
#include "mplite/progress/backstop.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

#include "mplite/base/libc_compat.h"

namespace mplite {
namespace {

constexpr std::int64_t kAgainNs = 100'000;  // after another handler has been interrupted

std::atomic<Backstop*> g_backstop{nullptr};  // what the handler works for

}  // namespace

// It needs a signal of its own, as the other one is blocked then. SIGURG, if nobody has it:
// debuggers pass it silently, and by default it is ignored.
int Backstop::choose_signal() const {
  struct sigaction current = {};
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  const bool free = driver_.signal() != SIGURG && sigismember(&blocked, SIGURG) == 0 &&
                    sigaction(SIGURG, nullptr, &current) == 0 && is_default(current);
  return free ? SIGURG : free_signal();
}

void Backstop::start(bool wanted) {
  const bool installed = signal() != 0;
  const int chosen = installed ? signal() : wanted ? choose_signal() : 0;
  if (chosen == 0) return;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = chosen;
  notify_thread(event, driver_.owner_tid());
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) return disown();
  if (!installed) {
    g_backstop.store(this);
    handler_.install(chosen, on_signal);
  } else if (handler_.is_ours()) {
    handler_.reinstall();
  }
  hear_callers();
}

void Backstop::drop_timer() {
  if (signal() == 0) return;
  timer_delete(timer_);
  state_.policy.timer_gone();
}

bool Backstop::is_ours() const {
  ++state_.engine->counters().mask_calls;
  return handler_.is_ours();
}

bool Backstop::keep() {
  if (signal() != 0 && !is_ours()) end();
  return signal() != 0;
}

bool Backstop::is_blocked() const {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  ++state_.engine->counters().mask_calls;
  return sigismember(&blocked, signal()) != 0;
}

// Callers are heard by a signal that is unblocked all the time, and the application may take it and
// give it up again without our noticing: only one whose default is to be ignored.
void Backstop::hear_callers() {
  if (signal() != SIGURG) return;
  Hold hold(state_.engine->gate());
  state_.engine->hear_callers(signal());
}

void Backstop::look_for_callers() const {
  if (state_.engine->awaits_callers()) syscall(SYS_tgkill, getpid(), driver_.owner_tid(), signal());
}

void Backstop::end() {
  if (signal() == 0) return;
  {
    Hold hold(state_.engine->gate());
    state_.engine->stop_hearing();
  }
  timer_delete(timer_);
  sigset_t own, before;
  sigemptyset(&own);
  sigaddset(&own, signal());
  pthread_sigmask(SIG_BLOCK, &own, &before);
  if (handler_.is_ours() || !has_handler(signal())) take_pending(own);  // else it may be theirs
  // Another thread may have an instance of it still to come: the handler does nothing then, the
  // default would end the process.
  if (driver_.is_owner() || driver_.owner_is_gone()) handler_.restore();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  g_backstop.store(nullptr);
  handler_.forget();
  state_.policy.timer_gone();
}

void Backstop::disown() {
  g_backstop.store(nullptr);
  handler_.forget();
}

void Backstop::set_timer(std::int64_t delay_ns) {
  state_.policy.timer_set(state_.now_ns() + delay_ns);
  itimerspec when = {};
  when.it_value = {static_cast<time_t>(delay_ns / 1'000'000'000),
                   static_cast<long>(delay_ns % 1'000'000'000)};
  timer_settime(timer_, 0, &when, nullptr);
  ++state_.engine->counters().other_calls;
}

// ---- the handler ----

// The application left the library a while ago in the hope that it would be back at once. If it is
// still away, the signal is let through from here on: the mask that the interrupted code goes on
// with is the one in `context`. What is pending by then is delivered on the way out of this
// handler.
//
// Or somebody has called, while ranks of the job are missing. Of two instances of a signal that is
// not a real-time one the kernel keeps one: the timer's may stand for a caller's too, a caller's
// never for the timer's, which is queued in any case.
void Backstop::on_signal(int signo, siginfo_t* info, void* context) {
  HandlerScope scope(signo);
  Backstop* self = g_backstop.load();
  if (self == nullptr) return;
  sigset_t* mask = &static_cast<ucontext_t*>(context)->uc_sigmask;
  ProgressState& state = self->state_;
  if (self->driver_.gives_back(mask) || !state.running || !self->driver_.is_owner()) return;
  if (const StackRoom room = stack_room(context); room != StackRoom::kEnough) [[unlikely]] {
    // The timer's own instance has to come again, as it is told from the others by its origin.
    if (info->si_code == SI_TIMER) self->set_timer(kAgainNs);
    if (room == StackRoom::kOfAnother || !self->handler_.leave_alternate_stack())
      return self->driver_.put_off(signo, mask);
    return self->look_for_callers();
  }
  const std::int64_t rest_ns = state.engine->awaits_callers() ? self->let_callers_in() : 0;
  if (info->si_code == SI_TIMER) self->look_after_departure(mask);
  if (rest_ns > 0 && !state.policy.is_timer_set()) self->set_timer(rest_ns);
}

// The signal stays pending, and is let through as after a late arming.
void Backstop::leave_alone(std::int64_t rest_ns, sigset_t* mask) {
  if (signal() == 0 || !state_.running || !driver_.is_owner() || sigismember(mask, signal()) == 1 ||
      !is_ours() || !state_.policy.may_rest())
    return;
  ++state_.engine->counters().handler_rests;
  driver_.block_in(mask);
  set_timer(rest_ns);
  state_.policy.begin_rest();
}

// Turned away, the gate's holder lets it go.
void Backstop::let_gathered_go() {
  if (!driver_.enter_gate()) return;
  if (state_.engine->gathered() != 0) driver_.run_in_handler();
  driver_.leave_gate();
}

// Turned away, the gate's holder polls all sockets. Returns for how long no caller is to be let in;
// who waits then is not announced again.
std::int64_t Backstop::let_callers_in() {
  Engine& engine = *state_.engine;
  ++engine.counters().signals;
  if (!driver_.enter_gate()) {
    driver_.count_turned_away();
    return 0;
  }
  const std::int64_t began_ns = state_.now_ns();
  driver_.run_in_handler(true);
  const std::int64_t rest_ns = engine.callers_rest_ns();
  driver_.leave_gate();
  state_.policy.handled(state_.now_ns() - began_ns);
  return rest_ns;
}

void Backstop::look_after_departure(sigset_t* mask) {
  using Alarm = ArmingPolicy::Alarm;
  Engine& engine = *state_.engine;
  ArmingPolicy& policy = state_.policy;
  const bool guarded = policy.timer_fired();
  if (!policy.reopening().is_resting()) ++engine.counters().backstops;
  if (guarded) let_gathered_go();
  Alarm alarm = policy.alarm(state_.now_ns(), guarded, state_.armed(), state_.is_outstanding());
  // It could not leave, or not whole, and nothing was outstanding when the application left.
  if (guarded && alarm.kind == Alarm::kNothing && !state_.armed() &&
      (engine.queued_sends() != 0 || engine.gathered() != 0))
    alarm.kind = Alarm::kArm;
  switch (alarm.kind) {
    case Alarm::kNothing: return;
    case Alarm::kWait: return set_timer(alarm.delay_ns);
    case Alarm::kOpenAgain:
      // An application that had saved its mask before the timer armed, or one of its handlers that
      // we interrupted, may have put the old one back.
      if (!driver_.still_ours()) return set_timer(policy.reopening().put_off());
      {
        const bool was_closed = sigismember(mask, driver_.signal()) == 1;
        driver_.unblock_in(mask);
        return set_timer(policy.reopening().opened(was_closed));
      }
    case Alarm::kArm: break;
  }
  if (!driver_.still_ours()) return policy.signal_is_gone();
  if (!driver_.enter_gate())  // in a call that does not count as coming back
    return set_timer(ArmingPolicy::gate_was_closed());
  const std::int64_t recheck_ns = policy.armed_late();
  state_.set_armed(true);
  {
    ProgressScope scope(engine, engine.handler_mode());  // it may lose a peer
    engine.set_signals(true);
  }
  driver_.run_in_handler();
  driver_.leave_gate();
  driver_.unblock_in(mask);
  set_timer(recheck_ns);
}

}  // namespace mplite
