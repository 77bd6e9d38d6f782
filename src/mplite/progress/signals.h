// Signals in a process that belongs to the application: which are free, whose handler is installed,
// and what a thread's mask was before it got signals of ours. Knows no engine. Used by
// sigio_driver.cpp and backstop.cpp.
#pragma once
#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

int this_thread_id() MPLITE_SIGNAL_SAFE;
bool is_default(const struct sigaction& action) MPLITE_SIGNAL_SAFE;
bool has_handler(int signal) MPLITE_SIGNAL_SAFE;
// A real-time signal that nobody handles and nobody waits for (who does blocks it). From the top:
// programs begin at SIGRTMIN. 0: none.
int free_signal();
// Takes back what is pending of `signals`, which are blocked in this thread. True: there was some.
bool take_pending(const sigset_t& signals);

// A handler of ours for one signal, which the application may replace at any time.
class InstalledHandler {
 public:
  using Function = void (*)(int signal, siginfo_t* info, void* context);
  // Of an alternate stack that our handlers are run on: 9.8 KB measured by storm_test.
  static constexpr std::size_t kStackBytes = 16 * 1024;

  // Returns 0 or -errno.
  int install(int signal, Function function);
  // The same handler once more: the thread that gets the signal from now on may have another kind
  // of stack.
  void reinstall();
  // The same handler, on the stack that the thread is on, from the next signal on. False: it is not
  // ours to say.
  bool leave_alternate_stack() MPLITE_SIGNAL_SAFE;
  bool is_ours() const MPLITE_SIGNAL_SAFE;
  // As it was before install(). Only if it is ours: otherwise it is the application's now.
  void restore();
  // From now on it is the application's.
  void forget() MPLITE_SIGNAL_SAFE { signal_ = 0; }

  int signal() const MPLITE_SIGNAL_SAFE { return signal_; }  // 0: none

 private:
  int set(struct sigaction* before);

  int signal_ = 0;
  Function function_ = nullptr;
  Function installed_ = nullptr;  // as it is reported: a tool may stand between
  struct sigaction before_ = {};
};

// What this thread's mask was before it owned signals of ours: the application's own, which it gets
// back. A thread that is the owner no more still has them blocked. Only our own bits are changed:
// the application may have changed the rest of its mask since.
struct BorrowedMask {
  // Blocks `signals`, and keeps what the mask said of those that were not borrowed before.
  static void borrow(const sigset_t& signals);
  // Whether the application has `signal` blocked in this thread, whatever the mask is now.
  static bool is_blocked_by_application(int signal);
  // A pending instance must not reach the application's own disposition.
  static void forget_pending();
  static void give_back();
  static void give_back(int signal);
  // In the mask that an interrupted thread goes on with.
  static void give_back_in(sigset_t* mask) MPLITE_SIGNAL_SAFE;
  static void give_back_in(sigset_t* mask, int signal) MPLITE_SIGNAL_SAFE;
  // What the mask says of it is the application's.
  static void forget(int signal) MPLITE_SIGNAL_SAFE;
};

// From the first to the last line of a handler: keeps errno, is waited for by wait_for_handlers(),
// and a thread that is cancelled (pthread_cancel) does not end in the middle of it.
class HandlerScope {
 public:
  explicit HandlerScope(int signal) MPLITE_SIGNAL_SAFE;
  ~HandlerScope();
  HandlerScope(const HandlerScope&) = delete;
  HandlerScope& operator=(const HandlerScope&) = delete;

 private:
  int saved_errno_;
  int cancel_state_;
};
// Of the `context` that a handler has been given, in it: whether kStackBytes are left of the
// alternate stack that it is on, if it is on one.
enum class StackRoom : std::uint8_t {
  kEnough,
  kOfAnother,  // no: the kernel stayed there, as it interrupted another handler, whatever that one
               // has the stack for
  kTooSmall,   // no, and it has it for itself
};
StackRoom stack_room(const void* context) MPLITE_SIGNAL_SAFE;
// Until no thread is in a handler of ours.
void wait_for_handlers();

}  // namespace mplite
