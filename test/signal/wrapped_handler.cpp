// sigaction(), interposed: the library's handler is entered through a wrapper that arms the
// allocation trap and looks at errno and stack.
#include <dlfcn.h>
#include <signal.h>
#include <cerrno>

#include "alloc_trap.h"
#include "two_ranks.h"

namespace two_ranks {
Seen seen;
}

namespace {

using Handler = void (*)(int, siginfo_t*, void*);
Handler g_inner[65] = {};  // by signal: the backstop of a departure has one of its own
constexpr int kOddErrno = 4711;

void wrapper(int signal, siginfo_t* info, void* context) {
  const int interrupted = errno;
  char here;
  auto* alternate = static_cast<char*>(two_ranks::seen.alternate);
  if (alternate != nullptr && &here >= alternate &&
      &here < alternate + two_ranks::seen.alternate_bytes)
    ++two_ranks::seen.on_alternate;
  errno = kOddErrno;
  {
    alloc_trap::Armed armed;
    g_inner[signal](signal, info, context);
  }
  if (errno != kOddErrno) ++two_ranks::seen.errno_lost;
  ++two_ranks::seen.entries;
  errno = interrupted;
}

}  // namespace

extern "C" int sigaction(int signal, const struct sigaction* action,
                         struct sigaction* before) noexcept {
  using Real = int (*)(int, const struct sigaction*, struct sigaction*);
  static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "sigaction"));
  const bool library = action != nullptr &&
                       (signal == SIGIO || signal == SIGURG || signal >= SIGRTMIN) &&
                       (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction != wrapper;
  if (!library) return real(signal, action, before);
  g_inner[signal] = action->sa_sigaction;
  struct sigaction changed = *action;
  changed.sa_sigaction = wrapper;
  return real(signal, &changed, before);
}
