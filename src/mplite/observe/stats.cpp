// The counters' table and the counter line of LITE_STATS.
#include "mplite/observe/stats.h"

#include <cstdio>

namespace mplite {
namespace {

// What users are told of first; the rest follows for those who look for a cause. Every counter
// appears once.
constexpr CounterInfo kTable[] = {
    {"short_msgs", "Messages sent by the short protocol: one packet.", &Counters::short_msgs},
    {"short_bytes", "Their bytes of data.", &Counters::short_bytes},
    {"eager_msgs", "Messages sent by the eager protocol: envelope and data at once.",
     &Counters::eager_msgs},
    {"eager_bytes", "Their bytes of data.", &Counters::eager_bytes},
    {"rndv_msgs", "Messages sent by rendezvous: asked for by the receiver.", &Counters::rndv_msgs},
    {"rndv_bytes", "Their bytes of data.", &Counters::rndv_bytes},
    {"am_msgs", "Active messages of the host sent.", &Counters::am_msgs},
    {"am_bytes", "Their bytes of data, headers not counted.", &Counters::am_bytes},
    {"self_msgs", "Messages to oneself.", &Counters::self_msgs},
    {"unexpected", "Messages that arrived before their receive was posted.", &Counters::unexpected},
    {"unexpected_bytes", "Their bytes of data.", &Counters::unexpected_bytes},
    {"signals", "Entries of the signal handler.", &Counters::signals},
    {"syscalls", "System calls of all kinds.", nullptr},
    {"connections", "Connections that came up.", &Counters::connections},
    {"credit_stalls", "Messages that went by rendezvous because credit was out.",
     &Counters::credit_stalls},
    {"put_msgs", "Puts that the device carried, as origin.", &Counters::put_msgs},
    {"put_bytes", "Their bytes.", &Counters::put_bytes},
    {"get_msgs", "Gets that the device carried, as origin.", &Counters::get_msgs},
    {"get_bytes", "Their bytes.", &Counters::get_bytes},
    {"served_msgs", "Puts and gets executed here, as target.", &Counters::served_msgs},
    {"served_bytes", "Their bytes.", &Counters::served_bytes},
    {"self_bytes", "Bytes of messages to oneself.", &Counters::self_bytes},
    {"unexpected_bytes_peak", "The most memory held for unexpected messages so far, in bytes.",
     &Counters::unexpected_bytes_peak, true},
    {"truncated", "Messages longer than their receive.", &Counters::truncated},
    {"signals_turned_away",
     "Signals that came while the library was at work, which then did their work.",
     &Counters::signals_turned_away},
    {"thread_wakes", "Times that the helper thread, or sigio's for the host's work, woke up.",
     &Counters::thread_wakes},
    {"host_passes", "Times that such a thread ran the host's progress.", &Counters::host_passes},
    {"backstops", "Departures from MPI that were not armed and had to be looked at again.",
     &Counters::backstops},
    {"reads", "System calls that receive.", &Counters::reads},
    {"reads_empty", "Those that found nothing.", &Counters::reads_empty},
    {"looks", "Calls that only asked whether something had come.", &Counters::looks},
    {"writes", "System calls that send.", &Counters::writes},
    {"writes_full", "Those that the kernel took less of than was offered.", &Counters::writes_full},
    {"waits", "System calls that ask which sockets are ready, or sleep for one.", &Counters::waits},
    {"mask_calls", "System calls that change the signal mask or take a pending signal.",
     &Counters::mask_calls},
    {"other_calls", "System calls for sockets, options, registration and timers.",
     &Counters::other_calls},
    {"yields", "Times that a wait gave its core away.", &Counters::yields},
    {"sleeps", "Times that a waiting rank slept.", &Counters::sleeps},
    {"connections_refused", "Connections of strangers and failed proofs.",
     &Counters::connections_refused},
    {"ties", "Connections that both sides had begun.", &Counters::ties},
    {"frames_in", "Frames received.", &Counters::frames_in},
    {"frames_out", "Frames sent.", &Counters::frames_out},
    {"bytes_in", "Bytes received, headers included.", &Counters::bytes_in},
    {"bytes_out", "Bytes sent, headers included.", &Counters::bytes_out},
    {"gathered", "Small messages that left together with others.", &Counters::gathered},
    {"gathered_late", "Times that such left only when the timer saw to it.",
     &Counters::gathered_late},
    {"parked", "Frames that had to wait for a buffer.", &Counters::parked},
    {"no_memory_in_handler",
     "Times that work was left to the next MPI call because a pool was empty.",
     &Counters::no_memory_in_handler},
};
constexpr std::size_t kFields = sizeof kTable / sizeof kTable[0];
static_assert(sizeof(Counters) == (kFields - 1) * sizeof(std::uint64_t),
              "a counter is missing here (syscalls is a sum, not a counter)");
static_assert(64 + kFields * (24 + 21) <= kStatsBytes,
              "the line must always fit: names up to 22 characters, values up to 20");

}  // namespace

std::size_t counter_count() { return kFields; }
const CounterInfo& counter_info(std::size_t index) { return kTable[index]; }

std::uint64_t counter_value(std::size_t index, const Counters& counters) {
  const CounterInfo& info = kTable[index];
  return info.member != nullptr ? counters.*info.member : counters.system_calls();
}

std::size_t format_stats(const Counters& counters, int rank, const char* controller,
                         char (&text)[kStatsBytes]) {
  int n = std::snprintf(text, sizeof text, "lite-stats rank=%d controller=%.16s", rank, controller);
  for (std::size_t i = 0; i < kFields; ++i)
    n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), " %s=%llu",
                       kTable[i].name, static_cast<unsigned long long>(counter_value(i, counters)));
  n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), "\n");
  return static_cast<std::size_t>(n);
}

}  // namespace mplite
