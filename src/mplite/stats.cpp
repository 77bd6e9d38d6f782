// The counter line of LITE_STATS.
#include "stats.h"

#include <cstdio>

namespace mplite {
namespace {

struct Field {
  const char* name;
  std::uint64_t value;
};

}  // namespace

std::size_t format_stats(const Counters& c, int rank, const char* controller, char (&text)[kStatsBytes]) {
  // What users are told of first; the rest follows for those who look for a cause. Every counter appears once.
  const Field fields[] = {
      {"short_msgs", c.short_msgs},
      {"short_bytes", c.short_bytes},
      {"eager_msgs", c.eager_msgs},
      {"eager_bytes", c.eager_bytes},
      {"rndv_msgs", c.rndv_msgs},
      {"rndv_bytes", c.rndv_bytes},
      {"am_msgs", c.am_msgs},
      {"am_bytes", c.am_bytes},
      {"self_msgs", c.self_msgs},
      {"unexpected", c.unexpected},
      {"unexpected_bytes", c.unexpected_bytes},
      {"signals", c.signals},
      {"syscalls", c.system_calls()},
      {"connections", c.connections},
      {"credit_stalls", c.credit_stalls},
      {"put_msgs", c.put_msgs},
      {"put_bytes", c.put_bytes},
      {"get_msgs", c.get_msgs},
      {"get_bytes", c.get_bytes},
      {"served_msgs", c.served_msgs},
      {"served_bytes", c.served_bytes},
      {"self_bytes", c.self_bytes},
      {"unexpected_bytes_peak", c.unexpected_bytes_peak},
      {"truncated", c.truncated},
      {"signals_turned_away", c.signals_turned_away},
      {"thread_wakes", c.thread_wakes},
      {"host_passes", c.host_passes},
      {"backstops", c.backstops},
      {"reads", c.reads},
      {"reads_empty", c.reads_empty},
      {"writes", c.writes},
      {"writes_full", c.writes_full},
      {"waits", c.waits},
      {"mask_calls", c.mask_calls},
      {"other_calls", c.other_calls},
      {"yields", c.yields},
      {"sleeps", c.sleeps},
      {"connections_refused", c.connections_refused},
      {"ties", c.ties},
      {"frames_in", c.frames_in},
      {"frames_out", c.frames_out},
      {"bytes_in", c.bytes_in},
      {"bytes_out", c.bytes_out},
      {"parked", c.parked},
      {"gathered", c.gathered},
      {"gathered_late", c.gathered_late},
      {"no_memory_in_handler", c.no_memory_in_handler},
  };
  constexpr std::size_t kFields = sizeof fields / sizeof fields[0];
  static_assert(sizeof(Counters) == (kFields - 1) * sizeof(std::uint64_t), "a counter is missing here (syscalls is a sum, not a counter)");
  static_assert(64 + kFields * (24 + 21) <= kStatsBytes, "the line must always fit: names up to 22 characters, values up to 20");
  int n = std::snprintf(text, sizeof text, "lite-stats rank=%d controller=%.16s", rank, controller);
  for (const Field& field : fields)
    n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), " %s=%llu", field.name, static_cast<unsigned long long>(field.value));
  n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), "\n");
  return static_cast<std::size_t>(n);
}

}  // namespace mplite
