// Small files that the user names, read whole: never a pipe, a device or a directory, which could
// keep a process waiting for ever. Used by profile.cpp and secret_file.cpp. Ordinary context only.
#pragma once
#include <sys/stat.h>

#include <cstddef>

namespace mplite {

// kNotRegular and kTooLong are no errno.
inline constexpr int kNotRegular = -1;
inline constexpr int kTooLong = -2;

// Reads the file, at most `size` bytes; `status` is that of the open file. 0, an errno,
// kNotRegular, or kTooLong: it has more. Opening does not block.
int read_regular_file(const char* path, void* bytes, std::size_t size, std::size_t& length,
                      struct stat& status);

// "No such file or directory", "it is a named pipe, not a regular file". `rc` as returned by
// read_regular_file, with its `status`.
const char* regular_file_fault(int rc, const struct stat& status);

}  // namespace mplite
