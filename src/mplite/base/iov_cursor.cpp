// Memory in pieces: listing it for a system call, and copying into and out of it.
#include "mplite/base/iov_cursor.h"

namespace mplite {

void copy_in_steps(void* to, const void* from, std::size_t bytes) {
  auto* there = static_cast<std::uint8_t*>(to);
  const auto* here = static_cast<const std::uint8_t*>(from);
  for (; bytes > kCopyStep; bytes -= kCopyStep, there += kCopyStep, here += kCopyStep)
    std::memcpy(there, here, kCopyStep);
  std::memcpy(there, here, bytes);
}

int IovCursor::list(std::uint64_t bytes, iovec* out, int out_max, std::uint64_t& listed) const {
  int count = 0;
  const iovec* at = piece;
  std::uint64_t behind = into;
  listed = 0;
  while (count < out_max && listed < bytes) {
    const std::uint64_t length = std::min<std::uint64_t>(at->iov_len - behind, bytes - listed);
    if (length > 0) out[count++] = {static_cast<std::uint8_t*>(at->iov_base) + behind, length};
    listed += length;
    ++at;
    behind = 0;
  }
  return count;
}

void IovCursor::scatter(const void* from, std::uint64_t bytes) {
  const auto* at = static_cast<const std::uint8_t*>(from);
  while (bytes > 0) {
    const std::uint64_t length = std::min<std::uint64_t>(piece->iov_len - into, bytes);
    if (length > 0) copy_bytes(static_cast<std::uint8_t*>(piece->iov_base) + into, at, length);
    at += length;
    bytes -= length;
    skip_within(length);
  }
}

void IovCursor::gather(void* to, std::uint64_t bytes) {
  auto* at = static_cast<std::uint8_t*>(to);
  while (bytes > 0) {
    const std::uint64_t length = std::min<std::uint64_t>(piece->iov_len - into, bytes);
    if (length > 0)
      copy_bytes(at, static_cast<const std::uint8_t*>(piece->iov_base) + into, length);
    at += length;
    bytes -= length;
    skip_within(length);
  }
}

void copy(const Memory& to, const Memory& from, std::uint64_t bytes) {
  if (bytes == 0) return;
  if (to.pieces == nullptr && from.pieces == nullptr) {
    copy_bytes(to.buffer, from.buffer, bytes);
    return;
  }
  IovCursor there{to.pieces}, here{from.pieces};
  if (!there) return here.gather(to.buffer, bytes);
  if (!here) return there.scatter(from.buffer, bytes);
  while (bytes > 0) {
    const std::uint64_t length = std::min<std::uint64_t>(here.piece->iov_len - here.into, bytes);
    if (length > 0)
      there.scatter(static_cast<const std::uint8_t*>(here.piece->iov_base) + here.into, length);
    bytes -= length;
    here.skip_within(length);
  }
}

}  // namespace mplite
