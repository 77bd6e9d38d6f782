// Numbers of descriptors. Signal-safe.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "mplite/base/signal_safe.h"

namespace mplite {

// None of ours is 0, 1 or 2: where the application has closed these, what it prints would go into a
// socket. Returns the descriptor to be used, or -1 with errno as it is, or as fcntl(2) sets it.
inline int above_standard_streams(int fd) MPLITE_SIGNAL_SAFE {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int reason = errno;
  close(fd);
  errno = reason;
  return moved;
}

}  // namespace mplite
