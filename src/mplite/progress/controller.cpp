// The three controllers: what happens at a departure from the library and at a return to it.
#include "mplite/progress/controller.h"

#include <cerrno>

#include "mplite/observe/trace.h"
#include "mplite/progress/fork_shield.h"

namespace mplite {
namespace {

// A thread that owns the signal ends: nobody gets its timer's any more. The one controller that has
// an owner, for its end.
pthread_mutex_t g_watched_lock = PTHREAD_MUTEX_INITIALIZER;
Controller* g_watched = nullptr;

struct OwnersEnd {
  ~OwnersEnd() {
    pthread_mutex_lock(&g_watched_lock);
    if (g_watched != nullptr) g_watched->owner_ends();
    pthread_mutex_unlock(&g_watched_lock);
  }
};

// In the owner. Gate held or not: no lock, as owner_ends() takes the gate with the lock held.
void watch_this_thread() {
  static thread_local OwnersEnd end;
  (void)&end;
}

// Gate free. Null: nobody's.
void watch_owner_of(Controller* controller) {
  pthread_mutex_lock(&g_watched_lock);
  g_watched = controller;
  pthread_mutex_unlock(&g_watched_lock);
}

}  // namespace

int Controller::start(Engine& engine, const Options& options, char* error, std::size_t error_size) {
  state_.engine = &engine;
  state_.kind = options.kind;
  state_.progress = options.progress;
  state_.arg = options.arg;
  wants_backstop_ = options.grace;
  engine.gate().set_drain(on_drain, this, come_again);
  int rc = 0;
  if (options.kind == ControllerKind::kSigio) {
    rc = sigio_.start(options.signal, error, error_size);
    signal_started_ = rc == 0;
    if (signal_started_) {
      backstop_.start(wants_backstop_);
      sigio_.set_leave_alone(leave_alone, this);
      watch_this_thread();
      watch_owner_of(this);
    }
  }
  if (options.kind == ControllerKind::kThread) rc = helper_.start(error, error_size);
  if (options.kind == ControllerKind::kSync) {  // nobody is ever told
    Hold hold(engine.gate());
    engine.set_signals(false);
  }
  state_.share.set_on(options.tuning.has(Heuristic::kHandlerShare));
  state_.policy.set_grace(options.grace && options.tuning.has(Heuristic::kArmingGrace));
  state_.policy.set_weighing(options.tuning.has(Heuristic::kArmingByUse));
  state_.running = rc == 0;
  if (options.want_arm != nullptr) state_.want_arm = options.want_arm;
  {
    Hold hold(engine.gate());
    state_.publish();
  }
  if (state_.running) fork_shield_raise(engine, in_child, this);
  // Who called before now, from a rank that was quicker, was not announced. (The helper thread sees
  // that they are there.)
  if (signal_started_) backstop_.look_for_callers();
  return rc;
}

void Controller::stop() {
  if (!state_.running) return;
  state_.running = false;
  {
    Hold hold(state_.engine->gate());
    state_.publish();
  }
  fork_shield_lower(*state_.engine);
  end_host_work();
  enter_wait();
  host_thread_.stop();  // they may raise the signal
  gatherer_.stop();
  if (signal_started_) stop_signal();
  if (kind() == ControllerKind::kThread) helper_.stop();
}

void Controller::stop_signal() {
  signal_started_ = false;
  watch_owner_of(nullptr);
  const bool alone = sigio_.withdraw(backstop_.signal());
  backstop_.end();
  sigio_.end(alone);
}

void Controller::set_always(bool always) {
  Hold hold(state_.engine->gate());
  state_.policy.set_always(always);
  state_.publish();
}

// ---- the host's work ----

int Controller::begin_host_work(const HostWork::Calls& calls) {
  if (kind() == ControllerKind::kSync) return -ENOTSUP;
  if (kind() == ControllerKind::kSigio)
    if (const int error = host_thread_.start(); error != 0) return -error;
  state_.host.begin(calls);
  host_has_work(true);  // a schedule may be under way already
  return 0;
}

void Controller::end_host_work() {
  if (!state_.host.end()) return;
  Hold hold(state_.engine->gate());
  state_.host_watched = false;
  state_.host_waits = false;
  state_.publish();
}

void Controller::host_has_work(bool moves) {
  if (!state_.host.on()) return;
  if (moves) state_.host_fresh = true;
  if (state_.host_watched.exchange(true)) return;  // in order with has_reason_to_arm()
  Hold hold(state_.engine->gate());
  state_.publish();
}

void Controller::host_may_go_on() {
  if (!state_.host.on() || in_own_thread()) return;
  if (kind() == ControllerKind::kThread) {
    if (armed()) helper_.wake();
    return;
  }
  state_.host_fresh = true;  // for the timer, where that arms
  host_thread_.wake_if_due();
}

// ---- on the way out ----

void Controller::leave_library(int call) {
  if (!state_.running || kind() == ControllerKind::kSync) return;
  if (state_.engine->resumes()) [[unlikely]] {
    Hold hold(state_.engine->gate());
    state_.engine->complete_in_background(state_.host_watched.load() && state_.host.pending());
  }
  if (kind() == ControllerKind::kThread) return helper_.leave_library(call);
  poll_if_starved();
  leave_by_signal(call);
  host_thread_.wake_if_due();
}

void Controller::stay_away() {
  if (!state_.running || kind() != ControllerKind::kSigio) return;
  poll_if_starved();
  if (armed() && sigio_.is_owner()) {
    if (is_armed_still()) {
      end_rest_if_overslept();
    } else {
      disarm();
      arm(false, state_.now_ns());
    }
  } else if (!armed() && state_.policy.always() && sigio_.is_owner()) {
    arm(false, state_.now_ns());  // it was another thread's departure that was noted last
  }
  host_thread_.wake_if_due();
}

// sigio: what the handler has left for want of memory. Cheaper here than in the host's thread, and
// there may be no such thread.
void Controller::poll_if_starved() {
  if (!state_.engine->is_starved()) return;
  Hold hold(state_.engine->gate());
  state_.poll_all();
}

// The owner, armed: the application may have taken a signal since.
bool Controller::is_armed_still() {
  if (sigio_.overflow_is_taken()) sigio_.drop_overflow();
  return sigio_.still_ours();
}

void Controller::end_rest_if_overslept() {
  Reopening& reopening = state_.policy.reopening();
  if (!reopening.is_resting() || !state_.policy.has_overslept(state_.now_ns())) return;
  reopening.opened(true);
  sigio_.unblock();
}

void Controller::leave_by_signal(int call) {
  using Departure = ArmingPolicy::Departure;
  ArmingPolicy& policy = state_.policy;
  const bool mine = sigio_.is_owner();
  if (!has_reason_to_arm()) return;
  if (!take_over()) return;  // only the owner can change its own mask
  if (!armed() && state_.engine->connecting() && policy.outlasts_handshakes() &&
      outlast_handshake())
    return;
  const std::int64_t left_ns = state_.now_ns();
  const Departure departure =
      policy.leave(call, is_departure_heavy(), left_ns, backstop_.signal() != 0, mine);
  if (departure != Departure::kArm && armed()) disarm();
  if (departure == Departure::kWatched) return;
  if (departure == Departure::kSetTimer && backstop_.keep()) {
    backstop_.set_timer(policy.departure_timer_ns(left_ns));
    return policy.handled(state_.now_ns() - left_ns);
  }
  if (armed() && is_armed_still()) {
    {
      Hold hold(state_.engine->gate());
      state_.begin_absence();
    }
    return end_rest_if_overslept();
  }
  if (armed()) disarm();
  arm(!mine, left_ns);
}

bool Controller::is_departure_heavy() {
  Hold hold(state_.engine->gate());
  return state_.is_departure_heavy();
}

// The host's work may be over: then departures with nothing outstanding are none of ours again.
// With several threads another one may start some meanwhile, and leave it at that where departures
// ask already (host_has_work()). The word is exchanged on both sides: either it is false there, or
// that work is seen by the second look here.
bool Controller::has_reason_to_arm() {
  if (!state_.host_watched.load(std::memory_order_relaxed)) return true;
  Hold hold(state_.engine->gate());  // the host's thread may be in set_outstanding()
  bool waits = state_.host.pending();
  if (!waits) {
    state_.host_watched.exchange(false);
    waits = state_.host.pending();
    if (waits) state_.host_watched = true;
    state_.publish();
  }
  state_.host_waits = waits;
  if (waits && state_.host.news()) state_.host_fresh = true;
  return state_.needs_progress();
}

// Polls once for what a pending signal may have announced. What comes after that poll is delivered
// when the signal is unblocked.
void Controller::arm(bool fresh_owner, std::int64_t left_ns) {
  Engine& engine = *state_.engine;
  bool changed;
  if (!sigio_.keep(changed)) return;
  bool poll = sigio_.take_announced() || changed || fresh_owner;
  state_.policy.armed_on_leaving();
  if (!engine.signals()) {  // what came until now was not announced
    Hold hold(engine.gate());
    engine.set_signals(true);
    poll = true;
  }
  if (poll) {
    {
      Hold hold(engine.gate());
      state_.poll_all();
    }
    state_.policy.handled(state_.now_ns() - left_ns);
  }
  {
    Hold hold(state_.engine->gate());  // the host's thread may be in set_outstanding()
    if (poll && !state_.needs_progress()) return;
    state_.set_armed(true);
  }
  sigio_.unblock();
}

// MPI_THREAD_SERIALIZED: the thread that makes the calls is the one that is inside or outside, so
// the signal goes over to it, which costs three calls per socket. With MPI_THREAD_MULTIPLE the
// owner keeps it, as it is armed whenever it is outside, and so does one that is armed now; unless
// it has ended. Any thread; true: it is the owner now.
bool Controller::take_over() {
  if (sigio_.is_owner()) return true;
  Hold hold(state_.engine->gate());
  if ((armed() || state_.policy.always()) && !sigio_.owner_is_gone()) return false;
  state_.armed_word.store(0);
  state_.policy.reopening().disarmed();
  state_.publish();
  backstop_.drop_timer();
  sigio_.adopt_this_thread();
  backstop_.start(wants_backstop_);
  watch_this_thread();
  return true;
}

void Controller::owner_ends() {
  if (!state_.running || !sigio_.is_owner() || t_gate_depth > 0) return;
  Hold hold(state_.engine->gate());
  if (!sigio_.is_owner()) return;  // another one has taken over meanwhile
  const bool gathers = may_gather();
  sigio_.owner_ends();
  if (gathers && state_.engine->gathered() != 0) state_.poll_all();
}

// A first message waits for its connection, which is made within a fraction of a millisecond when
// the peer polls: cheaper to wait for than the signals that its steps would raise. Peers that do
// not poll use the allowance up, and then it is left to the signals. True: nothing is outstanding
// any more.
bool Controller::outlast_handshake() {
  Engine& engine = *state_.engine;
  Hold hold(engine.gate());
  const std::int64_t started = state_.now_ns();
  std::int64_t spent = 0;
  while (engine.connecting() && spent < ArmingPolicy::kHandshakeNs) {
    state_.poll_all();
    spent = state_.now_ns() - started;
  }
  state_.policy.waited_for_handshake(spent, engine.connecting());
  return !state_.needs_progress();
}

// A timer that is set is taken, if it gives the next sends time to come: setting it for each system
// call saved would cost as much as that.
bool Controller::guard_gathered(bool company) {
  if (!may_gather()) return false;
  if (gathers_by_thread()) return gatherer_.guard();
  if (backstop_.is_blocked()) return false;
  const std::int64_t delay_ns = company ? ArmingPolicy::kCompanyNs : ArmingPolicy::kGatherNs;
  if (state_.policy.guard(state_.now_ns(), delay_ns)) return true;
  if (!backstop_.keep()) return false;
  backstop_.set_timer(delay_ns);
  return true;
}

// ---- back in the library ----

void Controller::came_back() {
  if (kind() == ControllerKind::kSync || in_helper()) return;
  if (kind() == ControllerKind::kThread) {
    Hold hold(state_.engine->gate());
    state_.policy.came_back(state_.now_ns(), state_.was_useful());
  } else if (sigio_.is_owner()) {
    bool useful = false;
    if (armed()) {
      Hold hold(state_.engine->gate());  // the host's thread may be in poll_all()
      useful = state_.was_useful();
    }
    state_.policy.came_back(state_.now_ns(), useful);
  }
}

void Controller::note_wait() {
  Engine& engine = *state_.engine;
  if (kind() != ControllerKind::kSigio || armed() || !engine.signals() ||
      !state_.policy.is_cold(engine.counters().connections) || !sigio_.is_owner())
    return;
  Hold hold(engine.gate());
  engine.set_signals(false);
}

void Controller::enter_wait() {
  if (!armed() || kind() == ControllerKind::kSync || in_helper()) return;
  if (kind() != ControllerKind::kSigio || sigio_.is_owner()) return disarm();
  // Armed in a thread that has ended since, it would stay so, and nobody would get the signals.
  if (!sigio_.owner_has_ended()) return;
  state_.armed_word.store(0);
  state_.publish();
}

// sigio: the owner.
void Controller::disarm() {
  Reopening& reopening = state_.policy.reopening();
  const unsigned openings = reopening.times();
  if (kind() == ControllerKind::kSigio) sigio_.block();
  {
    Hold hold(state_.engine->gate());  // as in arm()
    state_.set_armed(false);
  }
  if (kind() != ControllerKind::kSigio) return;
  if (reopening.times() != openings) sigio_.block();  // the timer came while it was armed
  reopening.disarmed();
}

// ---- on behalf of others ----

// A handler was turned away while the gate was held; its holder does the work before letting go.
void Controller::on_drain(void* arg) {
  auto* self = static_cast<Controller*>(arg);
  trace(TraceEvent::kDrain);
  if (SigioDriver::in_handler()) return self->sigio_.run_in_handler();
  ProgressState& state = self->state_;
  ProgressScope scope(*state.engine, ProgressMode::all_sockets());
  state.progress(state.arg);
  state.leave_rest();
  if (!HostThread::is_caller()) self->host_thread_.wake_if_due();
}

// While the application is inside the library it polls, and the signal is taken back on the way
// out. Nobody's handler is turned away but sigio's, and the helper sees what is left by itself.
void Controller::come_again(void* arg) {
  auto* self = static_cast<Controller*>(arg);
  if (!self->state_.running || self->kind() != ControllerKind::kSigio) return;
  self->sigio_.raise();
  self->backstop_.look_for_callers();
}

void Controller::leave_alone(void* arg, std::int64_t rest_ns, sigset_t* mask) {
  static_cast<Controller*>(arg)->backstop_.leave_alone(rest_ns, mask);
}

// In the gather thread, gate free. It has polled: what came may be for the host, and what could not
// leave is outstanding, though nothing was when the application left.
void Controller::on_gathered_left(void* arg) {
  auto* self = static_cast<Controller*>(arg);
  if (self->kind() == ControllerKind::kThread) return self->helper_.arm_if_needed();
  self->host_thread_.wake_if_due();
}

// The child of a fork, its only thread; fork_shield.cpp has closed the gate. In a child of that
// child there is nothing left to do.
void Controller::in_child(void* arg) {
  auto* self = static_cast<Controller*>(arg);
  self->state_.running = false;
  self->state_.armed_word.store(0);
  self->state_.host.end_in_child();
  self->host_thread_.end_in_child();
  self->gatherer_.end_in_child();
  self->state_.publish();
  if (!self->signal_started_) return;
  self->signal_started_ = false;
  self->backstop_.disown();
  self->sigio_.end_in_child();
}

}  // namespace mplite
