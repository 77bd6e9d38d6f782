// Progress by a signal that the sockets raise: its handler, which thread gets it, the thread's
// mask, and what happens when the application takes the signal. When it is armed is for
// controller.cpp and tuning/arming.h to say; the timer that arms late is backstop.h.
#pragma once
#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/progress/host_thread.h"
#include "mplite/progress/progress_state.h"
#include "mplite/progress/signals.h"

namespace mplite {

// One thread owns the signal: the one that makes the calls. The signal is blocked there while it is
// inside the library. Owning thread unless it says otherwise.
class SigioDriver {
 public:
  SigioDriver(ProgressState& state, HostThread& host_thread)
      : state_(state), host_thread_(host_thread) {}

  // The calling thread owns the signal from here on (0: one that nobody uses). Returns 0 or -errno
  // with a sentence in `error`: -EBUSY when the application has a handler for the signal already.
  int start(int signal, char* error, std::size_t error_size);
  // Any thread. The sockets raise the signal no more, and the owner has its mask back, if it can be
  // reached by `backstop_signal` or, armed, by ours. False: this is another thread than the owner,
  // which cannot take the signal from the owner's queue or mask.
  bool withdraw(int backstop_signal);
  // Behind withdraw(). Afterwards no handler runs. `alone`: what that returned; else the handlers
  // stay: they find nobody to work for and do nothing, where the default would end the process.
  void end(bool alone);
  // In the child of a fork, its only thread.
  void end_in_child();

  // ---- the owner ----

  // Any thread.
  bool is_owner() const MPLITE_SIGNAL_SAFE {
    return this_thread_id() == owner_tid_ && !owner_ended_;  // a later thread may have its number
  }
  bool owner_is_gone() const MPLITE_SIGNAL_SAFE;
  // The owner, at its end. The kernel still knows a main thread that has ended before the others.
  void owner_ends() { owner_ended_ = true; }
  // Another thread waits, again: whether the owner has ended, asked of the kernel now and then.
  bool owner_has_ended() MPLITE_SIGNAL_SAFE {
    return foreign_waits_++ % 256 == 0 && owner_is_gone();
  }
  int owner_tid() const MPLITE_SIGNAL_SAFE { return owner_tid_; }
  // Gate held, the new owner: three calls per socket.
  void adopt_this_thread();

  // ---- the signal ----

  int signal() const MPLITE_SIGNAL_SAFE { return handler_.signal(); }
  bool still_ours() const MPLITE_SIGNAL_SAFE;
  // By the application: SIGIO, beside a real-time signal.
  bool overflow_is_taken() const MPLITE_SIGNAL_SAFE;
  void drop_overflow();
  // Before the signal is unblocked, each time: armed, a signal that nobody handles would end the
  // process. One system call, two with a real-time signal. False: there is none any more, and the
  // controller is a sync one.
  bool keep(bool& changed);
  // What came while the signal was blocked is pending, and would cost a delivery for data that is
  // read by now: takes it back. True: there was some.
  bool take_announced();
  void unblock();
  void block() MPLITE_SIGNAL_SAFE;
  // Any thread, gate not held by it while the owner is armed: the handler comes once more.
  void raise() MPLITE_SIGNAL_SAFE { signal_owner(signal()); }
  // Handler: unblocked in the mask that the interrupted code goes on with.
  void unblock_in(sigset_t* mask) MPLITE_SIGNAL_SAFE;

  // ---- in a handler, the owner's ----

  // Whether this thread is in one that has entered the gate, or tries to.
  static bool in_handler() MPLITE_SIGNAL_SAFE;
  // False: turned away, and the gate's holder does the work.
  bool enter_gate() MPLITE_SIGNAL_SAFE;
  // Has the host's thread look at what came.
  void leave_gate() MPLITE_SIGNAL_SAFE;
  void count_turned_away() MPLITE_SIGNAL_SAFE;
  // Gate held, nothing may be allocated, bounded in bytes.
  void run_in_handler(bool for_callers = false) MPLITE_SIGNAL_SAFE;
  // Handler: it comes again when what it has interrupted is over, which goes on with `mask`: this
  // is another handler, with too little stack for ours.
  void put_off(int signal, sigset_t* mask) MPLITE_SIGNAL_SAFE;
  // See withdraw(): the owner's handler is there to give the mask back, and has done so.
  bool gives_back(sigset_t* mask) MPLITE_SIGNAL_SAFE;
  // What the handler does at its end, gate free, when the application is to have the core for
  // `rest_ns`: see leave_alone() of the backstop.
  using LeaveAlone = void (*)(void* arg, std::int64_t rest_ns, sigset_t* mask);
  void set_leave_alone(LeaveAlone leave_alone, void* arg) {
    leave_alone_ = leave_alone;
    leave_alone_arg_ = arg;
  }
  // Handler: not delivered in the mask that the interrupted code goes on with.
  void block_in(sigset_t* mask) MPLITE_SIGNAL_SAFE;

 private:
  static void on_signal(int signal, siginfo_t* info, void* context) MPLITE_SIGNAL_SAFE;
  static int choose_signal();
  void find_room(StackRoom room, int signal, sigset_t* mask) MPLITE_SIGNAL_SAFE;
  void install_overflow();
  void choose_overflow();
  void drop_overflow_in(sigset_t* mask) MPLITE_SIGNAL_SAFE;
  bool change_signal();
  void ask_owner_to_give_back(int signal);
  int signal_owner(int signal) MPLITE_SIGNAL_SAFE;

  ProgressState& state_;
  HostThread& host_thread_;
  int owner_tid_ = 0;
  std::atomic<bool> owner_ended_{false};
  unsigned foreign_waits_ = 0;
  sigset_t set_ = {};  // what is blocked and unblocked
  std::atomic<bool> owner_gives_back_{false};
  LeaveAlone leave_alone_ = nullptr;
  void* leave_alone_arg_ = nullptr;
  InstalledHandler handler_;
  InstalledHandler overflow_;  // of SIGIO beside a real-time signal
};

}  // namespace mplite
