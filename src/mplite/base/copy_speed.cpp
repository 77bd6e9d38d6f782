// How fast this machine copies.
#include "mplite/base/copy_speed.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace mplite {
namespace {

constexpr std::size_t kSample =
    256 * 1024;            // as long as what is copied: in the second cache, not in the first
constexpr int kTries = 5;  // the first ones bring the pages
constexpr std::uint64_t kTypicalNsPerMb = 130'000;

}  // namespace

std::uint64_t measure_copy_ns_per_mb() {
  using Clock = std::chrono::steady_clock;
  auto* memory = static_cast<unsigned char*>(std::malloc(2 * kSample));
  if (memory == nullptr) return kTypicalNsPerMb;
  std::memset(memory, 1, 2 * kSample);
  std::int64_t least = INT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = Clock::now();
    std::memcpy(memory + kSample, memory, kSample);
    const volatile unsigned char* seen = memory + kSample + i;
    (void)*seen;
    least = std::min<std::int64_t>(
        least, std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  }
  std::free(memory);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(least) * (1024 * 1024 / kSample));
}

}  // namespace mplite
