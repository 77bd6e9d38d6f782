// LITE_EAGER_MAX=auto.
#include "mplite/tuning/eager_cutoff.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace mplite {
namespace {

constexpr std::size_t kSample =
    256 * 1024;            // as long as what is copied: in the second cache, not in the first
constexpr int kTries = 5;  // the first ones bring the pages
// What a rendezvous costs beside the kernel's round trip: two control packets made, sent, read and
// acted upon. scripts/tune shows 4 to 10 us more than eager on a link without delay.
constexpr std::uint64_t kHandshakeNs = 8'000;
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

std::uint64_t eager_cutoff(std::int64_t round_trip_ns, std::uint64_t copy_ns_per_mb,
                           std::uint64_t window) {
  constexpr std::uint64_t kStep = 4096, kMega = 1024 * 1024;
  const auto round_trip =
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(round_trip_ns, 0, 1'000'000'000));
  const std::uint64_t even = (round_trip + kHandshakeNs) * kMega / copy_ns_per_mb / kStep * kStep;
  return std::min(std::clamp(even, kEagerCutoffMin, kEagerCutoffMax), window / 2);
}

std::uint64_t eager_cutoff_in_time(std::uint64_t window) {
  return std::min(kEagerCutoffInTime, window / 2);
}

}  // namespace mplite
