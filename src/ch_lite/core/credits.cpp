// The window that both sides use.
#include "ch_lite/core/credits.h"

namespace ch_lite {

std::uint64_t credit_window(std::uint64_t credits_bytes, std::uint64_t unexpected_max_bytes,
                            int size) {
  const std::uint64_t windows = 2 * static_cast<std::uint64_t>(std::max(size, 1));
  return std::max(std::min(credits_bytes, unexpected_max_bytes / windows), kWindowFloorBytes);
}

}  // namespace ch_lite
