// Small files that the user names, read whole.
#include "mplite/base/regular_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace mplite {
namespace {

int read_all(int fd, void* bytes, std::size_t size, std::size_t& length) {
  auto* at = static_cast<std::uint8_t*>(bytes);
  length = 0;
  for (;;) {
    std::uint8_t more;
    const bool full = length == size;
    const ssize_t n = full ? read(fd, &more, 1) : read(fd, at + length, size - length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : 0;
    if (full) return kTooLong;
    length += static_cast<std::size_t>(n);
  }
}

}  // namespace

int read_regular_file(const char* path, void* bytes, std::size_t size, std::size_t& length,
                      struct stat& status) {
  status = {};
  // Without O_NONBLOCK the open of a named pipe waits for a writer.
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno;
  int rc = fstat(fd, &status) != 0 ? errno : S_ISREG(status.st_mode) ? 0 : kNotRegular;
  if (rc == 0) rc = read_all(fd, bytes, size, length);
  close(fd);
  return rc;
}

const char* regular_file_fault(int rc, const struct stat& status) {
  if (rc == kTooLong) return "it is too long";
  if (rc != kNotRegular) return strerror(rc);
  switch (status.st_mode & S_IFMT) {
    case S_IFIFO: return "it is a named pipe, not a regular file";
    case S_IFDIR: return "it is a directory, not a regular file";
    case S_IFSOCK: return "it is a socket, not a regular file";
    default: return "it is a device, not a regular file";
  }
}

}  // namespace mplite
