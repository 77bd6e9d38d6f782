// The three ways in which the engine moves while the application computes: sigio, thread, sync.
// What hosts see of this folder; made by job_runtime.cpp. Passes on to sigio_driver.h, backstop.h
// and helper_thread.h by what tuning/arming.h decides.
#pragma once
#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/config/knobs.h"
#include "mplite/engine/engine.h"
#include "mplite/progress/backstop.h"
#include "mplite/progress/gather_thread.h"
#include "mplite/progress/helper_thread.h"
#include "mplite/progress/host_thread.h"
#include "mplite/progress/own_thread.h"
#include "mplite/progress/progress_state.h"
#include "mplite/progress/sigio_driver.h"
#include "mplite/tuning/arming.h"
#include "mplite/tuning/tuning.h"

namespace mplite {

// sigio:  every socket raises the signal in the thread that called start(); its handler does all
// the work. The signal is blocked in that thread while it is inside the
//         library, and unblocked by leave_library() when something is outstanding.
// thread: a helper thread does the same work; it sleeps on a futex while the application is inside
// the library or nothing is outstanding,
//         and in epoll_wait otherwise.
// sync:   nothing moves outside the library.
// While ranks of the job are missing, sigio and thread let callers in at any time
// (Engine::hear_callers): by the backstop's signal, which is never blocked, and by a sleep of the
// helper that sees callers only.
class Controller {
 public:
  // `progress(arg)` moves everything and acts on it; it is called gate held, with Engine::async()
  // telling whether it may allocate. `want_arm` is set, gate held or in the owning thread: 1 when
  // leave_library() has something to do, else 0. Kept by the caller for the controller's life.
  struct Options {
    ControllerKind kind = ControllerKind::kSigio;
    int signal = SIGIO;
    void (*progress)(void* arg) = nullptr;
    void* arg = nullptr;
    volatile int* want_arm = nullptr;
    bool grace = true;  // a backstop, and learn when not to arm (grace.h)
    Tuning tuning;      // arming_grace: learn, if `grace`
  };

  // Ordinary context, in the thread that will own the signal. Returns 0 or -errno with a sentence
  // in `error`: -EBUSY when the application has a handler for the signal already. One controller
  // that is not `sync` per process.
  int start(Engine& engine, const Options& options, char* error, std::size_t error_size);
  // Ordinary context. Afterwards no handler runs; the signal's disposition and mask are as before
  // start(), in this thread and in the one that owned the signal last, if its mask lets a signal of
  // ours through for a moment.
  void stop();

  // Gate held. Whether something should move while the application computes. Twice per message of a
  // ping-pong: that is why publish() leaves the answers ready.
  void set_outstanding(bool outstanding) MPLITE_SIGNAL_SAFE {
    state_.outstanding = outstanding;
    state_.tell();
  }
  // After start(). Asked on the way out, gate held: whether what is outstanding is more than a few
  // short messages (grace.h). `host_waits`: work of the host's is under way. Without it, it may
  // always be.
  void ask_for_weight(bool (*is_heavy)(void* arg, bool host_waits)) { state_.is_heavy = is_heavy; }
  // With several application threads the owner cannot know what the others start: it arms whenever
  // it leaves.
  void set_always(bool always);

  // Ordinary context, gate free, after start(): a thread of ours runs the host's work while the
  // application computes. thread: the helper. sigio: one that handlers wake, and that departures
  // tell of work which nothing outstanding tells of, once host_has_work() was called. Returns 0 or
  // -errno: there is no thread.
  int begin_host_work(const HostWork::Calls& calls);
  // Ordinary context, gate free: when it returns no thread of ours is in the host's progress, and
  // never will be.
  void end_host_work();
  // Ordinary context, gate free: there may be some from now on. With thread it is always asked for.
  // `moves`: it may be able to go on without any event.
  void host_has_work(bool moves);
  // Ordinary context: a pass could do nothing so far, as the application was in a call.
  void host_may_go_on();
  // Whether the caller is a thread of ours: it has no application to wait for.
  bool in_helper() const { return in_own_thread(); }
  // Whether the thread that is in the host's progress is to go on.
  bool helping_host() const { return armed() && state_.host.on(); }

  // Owning thread, gate not held, on the way out of the library. `call`: kind of call, below
  // Grace::kKinds.
  void leave_library(int call = 0);
  // The same after a call that has neither started nor looked at anything since: what was decided
  // when the application left stays as it is.
  void stay_away();
  // A thread that may_gather(), gate free, on the way out: what the engine has gathered will leave
  // within ArmingPolicy::kGatherNs, or kCompanyNs if the application has told of `company`, or as
  // GatherThread says, whatever the application does. False: it will not.
  bool guard_gathered(bool company);
  // Who lets go what is gathered: the gather thread, or the backstop.
  bool gathers_by_thread() const {
    return kind() == ControllerKind::kThread || state_.policy.always();
  }
  // Any thread: whether this one may call it.
  bool may_gather() const {
    if (!state_.running || kind() == ControllerKind::kSync || !wants_backstop_) return false;
    return gathers_by_thread() ? gatherer_.can_guard() && !in_own_thread()
                               : backstop_.signal() != 0 && sigio_.is_owner();
  }
  // Any thread, at its end: what waits for the owner's timer leaves now, if this is the owner.
  void owner_ends();
  // The first sign of the application since leave_library(). Gate held or not.
  void came_back();
  // A wait of the application's begins to find nothing. Owning thread, gate held or not.
  void note_wait();
  // Gate held or not: the caller polls from now on.
  void enter_wait();

  bool armed() const { return state_.armed(); }
  ControllerKind kind() const { return state_.kind; }

 private:
  static void on_drain(void* self) MPLITE_SIGNAL_SAFE;
  static void come_again(void* self) MPLITE_SIGNAL_SAFE;
  static void leave_alone(void* self, std::int64_t rest_ns, sigset_t* mask) MPLITE_SIGNAL_SAFE;
  static void on_gathered_left(void* self);
  static void in_child(void* self);
  void stop_signal();
  void leave_by_signal(int call);
  void poll_if_starved();
  bool is_armed_still();
  void end_rest_if_overslept();
  bool has_reason_to_arm();
  bool is_departure_heavy();
  void arm(bool fresh_owner, std::int64_t left_ns);
  bool take_over();
  bool outlast_handshake();
  void disarm();

  ProgressState state_;
  HostThread host_thread_{state_};
  SigioDriver sigio_{state_, host_thread_};
  Backstop backstop_{state_, sigio_};
  HelperThread helper_{state_};
  GatherThread gatherer_{state_, on_gathered_left, this};
  bool signal_started_ = false;
  bool wants_backstop_ = true;
};

}  // namespace mplite
