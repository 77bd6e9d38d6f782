// The backstop of sigio: a timer in the owning thread, with a signal of its own that is never
// blocked. It arms late, when the application was expected back and stays away; it lets go what is
// gathered; and its signal announces callers while ranks of the job are missing. What it decides is
// in tuning/arming.h. (With a helper thread the same is a timed sleep: helper_thread.h.)
#pragma once
#include <signal.h>
#include <time.h>

#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/progress/progress_state.h"
#include "mplite/progress/sigio_driver.h"
#include "mplite/progress/signals.h"

namespace mplite {

// Owning thread throughout.
class Backstop {
 public:
  Backstop(ProgressState& state, SigioDriver& driver) : state_(state), driver_(driver) {}

  // Makes the timer for this thread, and installs the handler if there is none yet. Where no signal
  // is free there is no backstop. `wanted` false: no signal is looked for.
  void start(bool wanted);
  // The former owner's timer; an instance on its way to him does nothing.
  void drop_timer();
  // Before it is used: the application may have taken the signal since. False: there is none any
  // more.
  bool keep();
  // Whether the application has blocked it since, as with all others.
  bool is_blocked() const;
  // Afterwards no handler of it works.
  void end();
  // The handler stays and does nothing. In the child of a fork: timers stay with the parent.
  void disown();

  int signal() const MPLITE_SIGNAL_SAFE { return handler_.signal(); }  // 0: there is no backstop
  void set_timer(std::int64_t delay_ns) MPLITE_SIGNAL_SAFE;
  // Handler of the sockets' signal, gate free: it does not come again before the timer goes off.
  // Nothing is done where the timer waits for something gathered, or its signal may not come.
  void leave_alone(std::int64_t rest_ns, sigset_t* mask) MPLITE_SIGNAL_SAFE;
  // Who called before it was there was not announced.
  void look_for_callers() const;

 private:
  static void on_signal(int signal, siginfo_t* info, void* context) MPLITE_SIGNAL_SAFE;
  int choose_signal() const;
  bool is_ours() const MPLITE_SIGNAL_SAFE;
  void hear_callers();
  void look_after_departure(sigset_t* mask) MPLITE_SIGNAL_SAFE;
  void let_gathered_go() MPLITE_SIGNAL_SAFE;
  std::int64_t let_callers_in() MPLITE_SIGNAL_SAFE;

  ProgressState& state_;
  SigioDriver& driver_;
  InstalledHandler handler_;
  timer_t timer_ = {};
};

}  // namespace mplite
