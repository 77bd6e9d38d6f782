// A thread of ours.
#include "mplite/progress/own_thread.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace mplite {
namespace {

thread_local bool t_own = false;

void futex(std::atomic<int>& word, int op, int value, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<int*>(&word), op | FUTEX_PRIVATE_FLAG, value, timeout,
          nullptr, 0);
}

}  // namespace

int start_own_thread(pthread_t* thread, void* (*main)(void* arg), void* arg) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t ordinary;
  pthread_attr_init(&ordinary);
  pthread_attr_setinheritsched(&ordinary, PTHREAD_EXPLICIT_SCHED);
  int rc = pthread_create(thread, &ordinary, main, arg);
  if (rc == EPERM) rc = pthread_create(thread, nullptr, main, arg);
  pthread_attr_destroy(&ordinary);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return rc;
}

void enter_own_thread() { t_own = true; }
bool in_own_thread() { return t_own; }

void sleep_on(std::atomic<int>& word, int value, const timespec* timeout) {
  futex(word, FUTEX_WAIT, value, timeout);
}

void wake_sleeper(std::atomic<int>& word) { futex(word, FUTEX_WAKE, 1, nullptr); }

}  // namespace mplite
