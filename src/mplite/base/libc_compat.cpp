// Functions of newer C libraries, or what does the same with an older one.
#include "mplite/base/libc_compat.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mplite {

int epoll_wait_ns(int epoll, epoll_event* events, int events_max,
                  const timespec& timeout) MPLITE_SIGNAL_SAFE {
#if defined HAVE_EPOLL_PWAIT2
  return epoll_pwait2(epoll, events, events_max, &timeout, nullptr);
#elif defined __LP64__ && \
    HAVE_DECL_SYS_EPOLL_PWAIT2  // with 32-bit words the call's timespec is another one
  return static_cast<int>(
      syscall(SYS_epoll_pwait2, epoll, events, events_max, &timeout, nullptr, 0));
#else
  static_cast<void>(epoll), static_cast<void>(events), static_cast<void>(events_max),
      static_cast<void>(timeout);
  errno = ENOSYS;
  return -1;
#endif
}

#ifndef HAVE_STRERRORDESC_NP
namespace {
// strerror_r() returns the text, or as POSIX has it an error number.
[[maybe_unused]] const char* text_of(const char* text, const char* /*buffer*/) { return text; }
[[maybe_unused]] const char* text_of(int failed, const char* buffer) {
  return failed == 0 ? buffer : nullptr;
}
}  // namespace
#endif

const char* error_text(int error) {
#ifdef HAVE_STRERRORDESC_NP
  return strerrordesc_np(error);
#else
  static thread_local char buffer[64];
  return text_of(strerror_r(error, buffer, sizeof buffer), buffer);
#endif
}

const char* signal_text(int signal) {
#ifdef HAVE_SIGDESCR_NP
  return sigdescr_np(signal);
#else
  return signal > 0 && signal < SIGRTMIN ? strsignal(signal) : nullptr;
#endif
}

}  // namespace mplite
