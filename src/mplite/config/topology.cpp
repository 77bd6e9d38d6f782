// What this process may run on: cores, hardware threads, packages, NUMA nodes.
#include "mplite/config/topology.h"

#include <hwloc.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>

namespace mplite {
namespace {

// The affinity mask alone. The set grows until the kernel's fits (sched_setaffinity(2): EINVAL when
// too small).
int allowed_cpus() {
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cpus));
    if (set == nullptr) return 1;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    const int rc = sched_getaffinity(0, bytes, set);
    const int count = rc == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (rc == 0) return count > 0 ? count : 1;
  }
  return 1;
}

// Objects of a type that hold at least one of the allowed PUs.
int count_within(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_cpuset_t allowed) {
  int count = 0;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;)
    if (hwloc_bitmap_intersects(object->cpuset, allowed)) ++count;
  return count;
}

bool ask_hwloc(Topology& found) {
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return false;
  // Caches, devices, distances and memory attributes cost most of the time of a load and are not
  // asked for here.
  for (int type = HWLOC_OBJ_L1CACHE; type <= HWLOC_OBJ_L3ICACHE; ++type)
    hwloc_topology_set_type_filter(topology, static_cast<hwloc_obj_type_t>(type),
                                   HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
#if HWLOC_API_VERSION >= 0x00020800  // MPICH's embedded hwloc is older
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                                         HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                         HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
#endif
  hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
  bool good = allowed != nullptr && hwloc_topology_load(topology) == 0;
  if (good) {
    const hwloc_const_cpuset_t all = hwloc_topology_get_allowed_cpuset(topology);
    // The thread's mask: the process's when nobody bound threads apart, and the one that matters
    // when somebody did.
    if (hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_THREAD) != 0)
      hwloc_bitmap_copy(allowed, all);
    hwloc_bitmap_and(allowed, allowed, all);
    const int pus = hwloc_bitmap_weight(allowed);
    good = pus > 0;
    if (good) {
      found.pus = pus;
      const int cores = count_within(topology, HWLOC_OBJ_CORE, allowed);
      found.cores = cores > 0 ? cores : pus;  // some virtual machines show no cores
      const int packages = count_within(topology, HWLOC_OBJ_PACKAGE, allowed);
      found.packages = packages > 0 ? packages : 1;
      const int nodes = count_within(topology, HWLOC_OBJ_NUMANODE, allowed);
      found.numa_nodes = nodes > 0 ? nodes : 1;
      found.from_hwloc = true;
    }
  }
  hwloc_bitmap_free(allowed);
  hwloc_topology_destroy(topology);
  return good;
}

}  // namespace

Topology detect_topology() {
  Topology found;
  if (!ask_hwloc(found)) {
    found.pus = allowed_cpus();
    found.cores = found.pus;
  }
  return found;
}

const char* format_topology(const Topology& t, char* text, std::size_t size) {
  std::snprintf(text, size, "%d core%s, %d PU%s allowed, %d package%s, %d NUMA node%s%s", t.cores,
                t.cores == 1 ? "" : "s", t.pus, t.pus == 1 ? "" : "s", t.packages,
                t.packages == 1 ? "" : "s", t.numa_nodes, t.numa_nodes == 1 ? "" : "s",
                t.from_hwloc ? "" : " (affinity mask only, no hwloc)");
  return text;
}

}  // namespace mplite
