// When progress outside the library is armed: at once on the way out, late by a timer (the
// backstop), or not at all; and when the sockets are to raise signals. Pure decisions from stated
// events: no sockets, no signals, time is a parameter. One per controller (mplite/progress); what
// it learns of the application is in grace.h, what a timer does while armed in reopening.h.
#pragma once
#include <atomic>
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/tuning/grace.h"
#include "mplite/tuning/reopening.h"

namespace mplite {

// Thread safety: as Grace. Events of the owning thread and of a handler that interrupts it, or,
// with a helper thread, gate held; is_timer_set() by anybody.
class ArmingPolicy {
 public:
  // What is gathered (small messages that leave together) waits so long at most.
  static constexpr std::int64_t kGatherNs = 80'000;
  // The same where the application has said that it will say more (MPI_Put before
  // MPI_Win_complete): nobody waits for it before that, and the timer is set seldom.
  static constexpr std::int64_t kCompanyNs = 400'000;
  // A timer that is overdue by more went to somebody who took its signal.
  static constexpr std::int64_t kOverdueNs = 10'000'000;
  // Waiting for one handshake, and for all that were waited for in vain.
  static constexpr std::int64_t kHandshakeNs = 1'000'000;
  static constexpr std::int64_t kHandshakesNs = 20 * kHandshakeNs;
  // O_ASYNC costs the kernel a tenth of a microsecond and more per packet, delivered or not: off
  // while nothing was armed in this many waits.
  static constexpr unsigned kColdAfterWaits = 8;

  // ---- settings ----

  // `on`: departures may stay unarmed, with a timer that arms late.
  void set_grace(bool on) {
    may_learn_ = on;
    grace_.set_on(on && !always_);
  }
  // `on`: what progress was good for counts; or else only how long the application was away.
  void set_weighing(bool on) { grace_.set_weighing(on); }
  // Several application threads come and go: what one did tells nothing, and something is always
  // outstanding.
  void set_always(bool always) {
    always_ = always;
    grace_.set_on(may_learn_ && !always);
  }
  bool always() const MPLITE_SIGNAL_SAFE { return always_; }
  // Whether something is to move while the application computes.
  bool needs_progress(bool outstanding) const MPLITE_SIGNAL_SAFE { return outstanding || always_; }

  // ---- on the way out ----

  // Whether leave_library() has something to do, without and with something outstanding. `can`: the
  // controller runs and is not sync; `host`: there is work of the host's, so that a helper that is
  // armed already may have to be told, too.
  struct Wants {
    int idle, outstanding;
  };
  Wants wants(bool can, bool host, bool armed) const MPLITE_SIGNAL_SAFE {
    const bool may_arm = !armed || grace_.on();
    return {can && (host || (always_ && may_arm)) ? 1 : 0, can && (host || may_arm) ? 1 : 0};
  }

  enum class Departure : std::uint8_t {
    kArm,
    kWatched,   // not armed; the timer that is set is right
    kSetTimer,  // not armed; departure_timer_ns() says when the timer is due
  };
  // The application leaves by a call of `kind`, sigio; `heavy`: see Grace. `timer`: there is one;
  // `owner`: this thread had the signal already. An owner of just now has to look for itself: what
  // came before was announced to the former one.
  Departure leave(int kind, bool heavy, std::int64_t now_ns, bool timer,
                  bool owner) MPLITE_SIGNAL_SAFE;
  std::int64_t departure_timer_ns(std::int64_t now_ns) MPLITE_SIGNAL_SAFE;
  // The same with a helper thread. True: arm.
  bool leave_to_helper(int kind, bool heavy, std::int64_t now_ns) {
    return grace_.leave(kind, heavy, now_ns);
  }
  // It was not armed (`watched`), or it was. True: the helper's timer is to be started.
  bool watch_departure(bool watched) {
    departed_ = watched;
    return watched && !timer_set_.exchange(true);
  }
  // The first sign of the application since; idempotent. `useful`: see Grace.
  void came_back(std::int64_t now_ns, bool useful) MPLITE_SIGNAL_SAFE {
    grace_.came_back(now_ns, useful);
  }
  // Our handler, or the poll on the way out, took so long: not the application's own doing.
  void handled(std::int64_t ns) MPLITE_SIGNAL_SAFE { grace_.handled(ns); }
  void armed_on_leaving() { unarmed_waits_ = 0; }

  // ---- the timer ----

  bool is_timer_set() const MPLITE_SIGNAL_SAFE {
    return timer_set_.load(std::memory_order_relaxed);
  }
  void timer_set(std::int64_t due_ns) MPLITE_SIGNAL_SAFE {
    timer_set_.store(true, std::memory_order_relaxed);
    timer_due_ns_ = due_ns;
    ends_rest_ = false;
  }
  void timer_gone() MPLITE_SIGNAL_SAFE { timer_set_.store(false); }

  // Something gathered waits for the timer, for `delay_ns` at most; departures leave it alone from
  // now on. True: the one that is set will do, and gives the next sends time to come; false: set it
  // to that.
  bool guard(std::int64_t now_ns, std::int64_t delay_ns);

  // sigio: the timer has gone off. `signal`: what the timer was set for.
  struct Alarm {
    enum Kind : std::uint8_t {
      kNothing,
      kOpenAgain,  // the signal is to be unblocked: reopening()
      kWait,       // the timer is to be set again, to `delay_ns`
      kArm,
    } kind;
    std::int64_t delay_ns;
  };
  // True: it was set for something gathered. Before alarm().
  bool timer_fired() MPLITE_SIGNAL_SAFE;
  Alarm alarm(std::int64_t now_ns, bool guarded, bool armed, bool outstanding) MPLITE_SIGNAL_SAFE;
  // What became of kArm; returns the next delay of the timer.
  std::int64_t armed_late() MPLITE_SIGNAL_SAFE;
  // What became of kOpenAgain, and whether it rests.
  Reopening& reopening() MPLITE_SIGNAL_SAFE { return reopening_; }
  static constexpr std::int64_t gate_was_closed() { return Grace::kSoonNs; }

  // ---- rests: armed, the signal stays blocked until the timer goes off (kOpenAgain) ----

  // False: the timer is set for something gathered.
  bool may_rest() const MPLITE_SIGNAL_SAFE { return !(guarding_ && is_timer_set()); }
  void begin_rest() MPLITE_SIGNAL_SAFE {
    reopening_.begin_rest();
    ends_rest_ = true;
  }
  // On the way out, armed: the timer that was to end the rest went to somebody who took its signal.
  bool has_overslept(std::int64_t now_ns) const {
    return reopening_.is_resting() && (!is_timer_set() || now_ns >= timer_due_ns_ + kOverdueNs);
  }

  // The application has taken the signal: the next departure finds another.
  void signal_is_gone() MPLITE_SIGNAL_SAFE { grace_.distrust(); }

  // Helper thread: how long its sleep still lasts; < 0: until it is called. Gate held.
  std::int64_t helper_sleep_ns(Grace::Sleep& sleep, std::int64_t now_ns) const {
    return timer_set_.load() ? sleep.left_ns(now_ns, grace_.backstop_ns()) : -1;
  }
  // The sleep is over, unarmed. True: arm.
  bool helper_alarm(std::int64_t now_ns, bool outstanding);

  // ---- handshakes: cheaper to wait for than the signals that their steps would raise ----

  bool outlasts_handshakes() const { return handshakes_ns_ > 0; }
  void waited_for_handshake(std::int64_t spent_ns, bool in_vain) {
    if (in_vain) handshakes_ns_ -= spent_ns;
  }

  // ---- O_ASYNC ----

  // A wait begins unarmed, with the sockets raising signals. True: they need not. Taking O_ASYNC
  // off and setting it again is two system calls per connection, which that many waits earn.
  bool is_cold(std::uint64_t connections) {
    return ++unarmed_waits_ >= kColdAfterWaits && unarmed_waits_ >= connections;
  }

 private:
  Grace grace_;
  Reopening reopening_;
  bool may_learn_ = true;
  bool always_ = false;
  std::atomic<bool> timer_set_{false};
  bool guarding_ = false;   // it was set for what is gathered
  bool ends_rest_ = false;  // the timer that is set, or went off last
  bool departed_ = false;   // helper: unarmed, since a timer found nobody away
  std::int64_t timer_due_ns_ = 0;
  std::int64_t departure_delay_ns_ = 0;         // of the timer that was set for a departure last
  std::int64_t handshakes_ns_ = kHandshakesNs;  // what is left
  unsigned unarmed_waits_ = 0;
};

}  // namespace mplite
