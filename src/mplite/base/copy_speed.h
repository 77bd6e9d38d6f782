// How fast this machine copies. Used by core/cutoffs.cpp. Ordinary context.
#pragma once
#include <cstdint>

namespace mplite {

// How long it takes to copy 1 MB within this process, ns, measured when it is asked for (0.2 ms).
// Never 0.
std::uint64_t measure_copy_ns_per_mb();

}  // namespace mplite
