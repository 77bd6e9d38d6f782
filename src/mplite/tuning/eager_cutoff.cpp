// LITE_EAGER_MAX=auto.
#include "mplite/tuning/eager_cutoff.h"

#include <algorithm>

namespace mplite {
namespace {

// What a rendezvous costs beside the kernel's round trip: two control packets made, sent, read and
// acted upon. scripts/tune shows 4 to 10 us more than eager on a link without delay.
constexpr std::uint64_t kHandshakeNs = 8'000;

}  // namespace

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
