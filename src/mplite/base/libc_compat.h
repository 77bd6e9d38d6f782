// What newer C libraries have, for older ones too: epoll_pwait2 (glibc 2.35), strerrordesc_np and
// sigdescr_np (glibc 2.32). configure looks for them. And what others call otherwise. Used by
// net_posix.cpp, log.cpp, wireup.cpp and backstop.cpp.
#pragma once
#include <signal.h>
#include <sys/epoll.h>
#include <time.h>

#include "mplite/base/signal_safe.h"

namespace mplite {

// epoll_pwait2() without a signal mask; by the system call itself where only the kernel's headers
// know it. -1 with ENOSYS in errno where they do not either: the caller has epoll_wait(), as for an
// older kernel.
int epoll_wait_ns(int epoll, epoll_event* events, int events_max,
                  const timespec& timeout) MPLITE_SIGNAL_SAFE;

// Of SIGEV_THREAD_ID: the thread. The name of timer_create(2), which glibc does not have.
inline void notify_thread(sigevent& event, int tid) {
#ifdef sigev_notify_thread_id
  event.sigev_notify_thread_id = tid;
#else
  event._sigev_un._tid = tid;
#endif
}

// The description of an errno value. Null for a number that the C library knows to be none. In
// ordinary context; valid until the thread's next call.
const char* error_text(int error);

// The description of a signal; null for a real-time signal. In ordinary context; valid until the
// thread's next call.
const char* signal_text(int signal);

}  // namespace mplite
