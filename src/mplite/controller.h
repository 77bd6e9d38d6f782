// The three ways in which the engine moves while the application computes: sigio, thread, sync.
// Made by boot.cpp (device) and mplite.cpp; the only file that installs a signal handler or starts a thread.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstddef>

#include "engine.h"
#include "grace.h"
#include "knobs.h"
#include "signal_safe.h"

namespace mplite {

// sigio:  every socket raises the signal in the thread that called start(); its handler does all the work. The signal is blocked in that thread while it is inside the
//         library, and unblocked by leave_library() when something is outstanding.
// thread: a helper thread does the same work; it sleeps on a futex while the application is inside the library or nothing is outstanding,
//         and in epoll_wait otherwise.
// sync:   nothing moves outside the library.
class Controller {
 public:
  // `progress(arg)` moves everything and acts on it; it is called gate held, with Engine::async() telling whether it may allocate.
  // `want_arm` is set, gate held or in the owning thread: 1 when leave_library() has something to do, else 0. Kept by the caller for the controller's life.
  struct Options {
    ControllerKind kind = ControllerKind::kSigio;
    int signal = SIGIO;
    void (*progress)(void* arg) = nullptr;
    void* arg = nullptr;
    volatile int* want_arm = nullptr;
    bool grace = true;  // learn when not to arm (grace.h)
  };
  // Event-driven mode of `thread`: what the host does above the engine (schedules of collectives, active messages) moves too. `progress` is called by the helper thread,
  // gate free, when it starts to work and whenever `events()` has changed; `pending()`: whether the host has work that nothing outstanding in the engine tells of.
  struct HostWork {
    void (*progress)() = nullptr;
    bool (*pending)() = nullptr;
    bool (*due)() = nullptr;   // the engine's work has left something for the host
    bool (*news)() = nullptr;  // the call that is being left has done something since it was last asked
  };

  // Ordinary context, in the thread that will own the signal. Returns 0 or -errno with a sentence in `error`: -EBUSY when the application has a
  // handler for the signal already. One controller that is not `sync` per process.
  int start(Engine& engine, const Options& options, char* error, std::size_t error_size);
  // Ordinary context, same thread. Afterwards no handler runs; the signal's disposition and mask are as before start().
  void stop();

  // Gate held. Whether something should move while the application computes. Twice per message of a ping-pong: that is why publish() leaves the answers ready.
  void set_outstanding(bool outstanding) MPLITE_SIGNAL_SAFE {
    outstanding_ = outstanding;
    tell();
  }
  // With several application threads the owner cannot know what the others start: it arms whenever it leaves.
  void set_always(bool always);

  // Ordinary context, after start(), kind() == kThread.
  void set_host_work(const HostWork& work);
  // Ordinary context, gate free: when it returns the helper thread is not in the host's progress, and never will be.
  void end_host_work();
  // Whether the caller is the helper thread: it has no application to wait for.
  bool in_helper() const;
  // Whether the helper thread, in the host's progress, is to go on.
  bool helping_host() const { return armed() && host_on_.load(); }

  // Owning thread, gate not held, on the way out of the library. `call`: kind of call, below Grace::kKinds.
  void leave_library(int call = 0);
  // Owning thread, gate free, on the way out: what the engine has gathered will leave within kGatherNs, whatever the application does. False: it will not.
  bool guard_gathered();
  bool may_gather() const { return running_ && options_.kind == ControllerKind::kSigio && backstop_signal_ != 0 && grace_.on(); }
  static constexpr std::int64_t kGatherNs = 80'000;
  // The first sign of the application since leave_library(). Gate held or not.
  void came_back();
  // A wait of the application's begins to find nothing. Owning thread, gate held or not.
  void note_wait();
  // Gate held or not: the caller polls from now on.
  void enter_wait() MPLITE_SIGNAL_SAFE;

  static constexpr std::size_t kHandlerStackBytes = 16 * 1024;  // 9.8 KB measured by storm_test

  bool armed() const { return armed_.load(std::memory_order_relaxed) != 0; }
  ControllerKind kind() const { return options_.kind; }

 private:
  static void on_signal(int signal, siginfo_t* info, void* context) MPLITE_SIGNAL_SAFE;
  static void on_backstop(int signal, siginfo_t* info, void* context) MPLITE_SIGNAL_SAFE;
  static void on_drain(void* self) MPLITE_SIGNAL_SAFE;
  static void* thread_main(void* self);
  void look_after_departure(sigset_t* mask) MPLITE_SIGNAL_SAFE;
  void let_gathered_go() MPLITE_SIGNAL_SAFE;
  void open_in(sigset_t* mask) const MPLITE_SIGNAL_SAFE;
  void run_in_handler() MPLITE_SIGNAL_SAFE;
  void stop_signal();
  void run_in_thread();
  void rest();
  void host_pass();
  void leave_to_helper(int call);
  void disarm() MPLITE_SIGNAL_SAFE;
  void start_backstop(std::int64_t delay_ns) MPLITE_SIGNAL_SAFE;
  bool outlast_handshake();
  // Whatever want_arm depends on, but for outstanding_, has changed.
  void publish() MPLITE_SIGNAL_SAFE;
  void tell() MPLITE_SIGNAL_SAFE { __atomic_store_n(want_arm_, wants_[outstanding_ ? 1 : 0], __ATOMIC_RELAXED); }
  int start_signal(char* error, std::size_t error_size);
  static void forget();
  int start_thread(char* error, std::size_t error_size);

  // controller_signal.cpp: owning thread unless it says otherwise
  bool is_owner() const MPLITE_SIGNAL_SAFE;
  int install(int signal, struct sigaction* before);
  void install_overflow();
  bool still_ours(int signal) const MPLITE_SIGNAL_SAFE;
  void restore(int signal, const struct sigaction& before);
  void give_mask_back(const sigset_t& ours);
  bool change_signal();
  bool keep_signal(bool& changed);  // false: there is none any more
  bool owner_is_gone() const MPLITE_SIGNAL_SAFE;
  bool take_over();  // any thread; true: it is the owner now
  int backstop_signal() const;
  void prepare_backstop();
  bool backstop_is_ours() const;
  bool keep_backstop();  // false: there is none any more
  void end_backstop();
  static void in_child(void* self);

  Engine* engine_ = nullptr;
  Options options_;
  bool running_ = false;
  bool outstanding_ = false;
  bool always_ = false;
  int wants_[2] = {};  // want_arm without and with something outstanding
  volatile int unheard_ = 0;
  volatile int* want_arm_ = &unheard_;
  static constexpr std::int64_t kHandshakeGraceNs = 1'000'000;
  std::int64_t grace_ns_ = 20 * kHandshakeGraceNs;  // of waiting in vain
  std::atomic<int> armed_{0};
  Grace grace_;
  std::atomic<bool> backstop_running_{false};
  bool departed_ = false;  // thread: unarmed, since a backstop found nobody away; gate held
  // sigio
  int owner_tid_ = 0;
  // O_ASYNC costs the kernel a tenth of a microsecond and more per packet, delivered or not: off while nothing was armed in this many waits.
  static constexpr unsigned kColdAfterWaits = 8;
  unsigned unarmed_waits_ = 0;
  unsigned foreign_waits_ = 0;
  sigset_t set_ = {};
  sigset_t mask_before_ = {};
  struct sigaction before_ = {};
  void (*installed_)(int, siginfo_t*, void*) = nullptr;
  bool overflow_handled_ = false;  // SIGIO beside a real-time signal
  struct sigaction overflow_before_ = {};
  int backstop_signal_ = 0;  // 0: none was free, and so there is no grace
  timer_t backstop_timer_ = {};
  static constexpr std::int64_t kOverdueNs = 10'000'000;
  static constexpr std::int64_t kRecheckMinNs = 2'000'000, kRecheckMaxNs = 1'000'000'000;
  std::int64_t backstop_due_ns_ = 0;
  bool guarding_ = false;  // it was started for what is gathered
  std::int64_t recheck_ns_ = 0;  // 0: what is armed was not armed by a backstop
  bool signal_started_ = false;
  void (*backstop_installed_)(int, siginfo_t*, void*) = nullptr;
  struct sigaction backstop_before_ = {};
  // thread
  pthread_t helper_ = {};
  int wake_fd_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<int> orders_{0};         // counts what the helper, asleep on it, has to look at
  std::atomic<bool> resting_{false};
  HostWork host_;
  std::atomic<bool> host_on_{false}, host_busy_{false};
};

}  // namespace mplite
