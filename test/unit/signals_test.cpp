// signals.h: handlers that the application may replace, and masks that it gets back.
#include "mplite/progress/signals.h"

#include <cerrno>
#include <initializer_list>

#include "run_tests.h"

using namespace mplite;

namespace {

volatile sig_atomic_t ours = 0;

void on_ours(int signal, siginfo_t*, void*) {
  HandlerScope scope(signal);
  ours = ours + 1;
  errno = EBADF;
}
void on_theirs(int) {}

sigset_t of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

START_TEST(a_handler_keeps_errno_and_is_gone_afterwards) {
  struct sigaction before = {}, after = {};
  InstalledHandler handler;
  ck_assert_int_eq(handler.signal(), 0);
  ck_assert_int_eq(handler.install(SIGUSR1, on_ours), 0);
  ck_assert(handler.is_ours());
  errno = ENOENT;
  raise(SIGUSR1);
  ck_assert_int_eq(errno, ENOENT);
  ck_assert_int_eq(ours, 1);
  handler.reinstall();
  ck_assert(handler.is_ours());
  handler.restore();
  sigaction(SIGUSR1, nullptr, &after);
  ck_assert(after.sa_handler == before.sa_handler);
  wait_for_handlers();
}
END_TEST

START_TEST(what_the_application_has_put_in_its_place_stays) {
  InstalledHandler handler;
  ck_assert_int_eq(handler.install(SIGUSR1, on_ours), 0);
  ::signal(SIGUSR1, on_theirs);
  ck_assert(!handler.is_ours());
  handler.restore();
  struct sigaction now = {};
  sigaction(SIGUSR1, nullptr, &now);
  ck_assert(now.sa_handler == on_theirs);
  ck_assert_int_eq(InstalledHandler().install(SIGKILL, on_ours), -EINVAL);
}
END_TEST

START_TEST(a_free_signal_is_neither_handled_nor_blocked) {
  const int first = free_signal();
  ck_assert_int_gt(first, SIGRTMIN);
  ::signal(first, on_theirs);
  const int second = free_signal();
  ck_assert_int_lt(second, first);
  const sigset_t mask = of({second});
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  // qemu-user 10 keeps no mask of the four highest signals.
  if (sigismember(&now, second) == 1) ck_assert_int_lt(free_signal(), second);
}
END_TEST

START_TEST(a_borrowed_mask_is_given_back_as_it_was_in_our_signals_only) {
  const sigset_t theirs = of({SIGUSR2}), both = of({SIGUSR1, SIGUSR2}), later = of({SIGHUP});
  pthread_sigmask(SIG_BLOCK, &theirs, nullptr);
  BorrowedMask::borrow(both);
  ck_assert(is_blocked(SIGUSR1) && is_blocked(SIGUSR2));
  BorrowedMask::borrow(both);  // once more changes nothing
  pthread_sigmask(SIG_BLOCK, &later, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
  BorrowedMask::give_back();
  ck_assert(!is_blocked(SIGUSR1) && is_blocked(SIGUSR2) && is_blocked(SIGHUP));
}
END_TEST

START_TEST(one_signal_is_given_back_alone) {
  const sigset_t both = of({SIGUSR1, SIGUSR2});
  BorrowedMask::borrow(both);
  BorrowedMask::give_back(SIGUSR1);
  BorrowedMask::give_back(SIGHUP);  // not ours
  ck_assert(!is_blocked(SIGUSR1) && is_blocked(SIGUSR2));
  BorrowedMask::give_back();
  ck_assert(!is_blocked(SIGUSR2));
}
END_TEST

START_TEST(what_is_pending_is_taken_back) {
  const sigset_t both = of({SIGUSR1, SIGRTMIN});
  BorrowedMask::borrow(both);
  ck_assert(!take_pending(both));
  raise(SIGUSR1);
  raise(SIGRTMIN);
  raise(SIGRTMIN);
  ck_assert(take_pending(both));
  ck_assert(!take_pending(both));
  raise(SIGUSR1);  // would end the process
  BorrowedMask::forget_pending();
  BorrowedMask::give_back();
}
END_TEST

}  // namespace

int main() { return run_tests("signals"); }
