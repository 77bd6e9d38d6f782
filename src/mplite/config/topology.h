// What this process may run on: cores, hardware threads, packages, NUMA nodes (hwloc, the affinity
// mask respected). Asked once at init, for wait.h and the report.
#pragma once
#include <cstddef>

namespace mplite {

struct Topology {
  int cores = 1;  // with at least one allowed PU
  int pus = 1;    // hardware threads allowed
  int packages = 1;
  int numa_nodes = 1;
  bool from_hwloc = false;  // false: counted from the affinity mask only, a PU taken for a core
};

// Never fails. Ordinary context, allocates; about 2 ms.
Topology detect_topology();

// "2 cores, 2 PUs allowed, 1 package, 1 NUMA node". Returns `text`.
const char* format_topology(const Topology& topology, char* text, std::size_t size);

}  // namespace mplite
