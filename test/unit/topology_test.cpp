// topology.h: the counts follow the affinity mask, with hwloc and without.
#include "mplite/config/topology.h"

#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "run_tests.h"

using namespace mplite;

namespace {

int allowed() {
  cpu_set_t set;
  ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

void bind_to_one() {
  cpu_set_t set, one;
  ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
  int cpu = CPU_SETSIZE - 1;
  while (!CPU_ISSET(cpu, &set)) --cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

START_TEST(all_that_is_allowed_is_counted) {
  const Topology t = detect_topology();
  ck_assert(t.from_hwloc);
  ck_assert_int_eq(t.pus, allowed());
  ck_assert_int_ge(t.cores, 1);
  ck_assert_int_le(t.cores, t.pus);
  ck_assert_int_ge(t.packages, 1);
  ck_assert_int_le(t.packages, t.cores);
  ck_assert_int_ge(t.numa_nodes, 1);
}
END_TEST

START_TEST(affinity_mask_is_respected) {
  bind_to_one();
  const Topology t = detect_topology();
  ck_assert_int_eq(t.pus, 1);
  ck_assert_int_eq(t.cores, 1);
  ck_assert_int_eq(t.packages, 1);
}
END_TEST

// HWLOC_XMLFILE naming nothing makes the load fail, as a broken /sys would.
START_TEST(affinity_mask_serves_when_hwloc_fails) {
  setenv("HWLOC_XMLFILE", "/nonexistent/topology.xml", 1);
  setenv("HWLOC_HIDE_ERRORS", "2", 1);
  setenv("HWLOC_COMPONENTS", "xml,stop", 1);
  Topology t = detect_topology();
  ck_assert(!t.from_hwloc);
  ck_assert_int_eq(t.pus, allowed());
  ck_assert_int_eq(t.cores, t.pus);
  bind_to_one();
  t = detect_topology();
  ck_assert_int_eq(t.cores, 1);
}
END_TEST

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kSlowdown = 5;
#else
constexpr std::int64_t kSlowdown = 1;
#endif

// Processor time, and the best of five: the machine may be busy.
std::int64_t cost_of(void (*what)()) {
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    what();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    const std::int64_t took = (b.tv_sec - a.tv_sec) * 1'000'000'000ll + (b.tv_nsec - a.tv_nsec);
    if (took < best) best = took;
  }
  return best;
}

START_TEST(detection_is_cheap) {
  // A file of the kernel, as hwloc reads hundreds: 2 us, and 6 in some virtual machines.
  const std::int64_t file = cost_of([] {
    char text[64];
    const int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text) < 0) std::abort();
    close(fd);
  });
  const std::int64_t usual = allowed() <= 8 ? 10'000'000 : 200'000'000;
  ck_assert_int_lt(cost_of([] { detect_topology(); }), kSlowdown * std::max(usual, 5000 * file));
}
END_TEST

START_TEST(text_is_one_line_with_right_plurals) {
  char text[128];
  Topology t{2, 4, 1, 1, true};
  ck_assert_str_eq(format_topology(t, text, sizeof text),
                   "2 cores, 4 PUs allowed, 1 package, 1 NUMA node");
  t = Topology{1, 1, 2, 2, false};
  ck_assert_str_eq(format_topology(t, text, sizeof text),
                   "1 core, 1 PU allowed, 2 packages, 2 NUMA nodes (affinity mask only, no hwloc)");
}
END_TEST

}  // namespace

int main() { return run_tests("topology"); }
