// Sends stderr to nowhere while simulated engines complain by the thousand; reports of the test
// itself and of sanitizers still come through.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" void __sanitizer_set_report_fd(void*);
#endif

namespace quiet_stderr {

inline int saved = -1;

inline void begin() {
  saved = fcntl(2, F_DUPFD_CLOEXEC, 100);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (saved < 0 || nowhere < 0) return;
  dup2(nowhere, 2);
  close(nowhere);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<long>(saved)));
#endif
}

inline void restore() {
  if (saved >= 0) dup2(saved, 2);
}

}  // namespace quiet_stderr
