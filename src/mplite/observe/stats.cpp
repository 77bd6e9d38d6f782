// The counters' table and the counter line of LITE_STATS.
#include "mplite/observe/stats.h"

#include <cstdio>

namespace mplite {
namespace {

// In place of `using enum`, which g++ 10 does not have.
constexpr auto kMessages = CounterGroup::kMessages, kActive = CounterGroup::kActive,
               kOneSided = CounterGroup::kOneSided, kUnexpected = CounterGroup::kUnexpected,
               kCredit = CounterGroup::kCredit, kSignals = CounterGroup::kSignals,
               kThreads = CounterGroup::kThreads, kCalls = CounterGroup::kCalls,
               kConnections = CounterGroup::kConnections, kStream = CounterGroup::kStream,
               kTrouble = CounterGroup::kTrouble;

// What users are told of first; the rest follows for those who look for a cause. Every counter
// appears once. A meaning can be read alone: tools show it without its neighbours.
constexpr CounterInfo kTable[] = {
    {"short_msgs", kMessages, "messages",
     "Messages sent by the short protocol: envelope and data in one packet.",
     &Counters::short_msgs},
    {"short_bytes", kMessages, "bytes", "Data of the messages sent by the short protocol.",
     &Counters::short_bytes},
    {"eager_msgs", kMessages, "messages",
     "Messages sent by the eager protocol: envelope and data at once.", &Counters::eager_msgs},
    {"eager_bytes", kMessages, "bytes", "Data of the messages sent by the eager protocol.",
     &Counters::eager_bytes},
    {"rndv_msgs", kMessages, "messages",
     "Messages sent by rendezvous: the receiver asks for the data.", &Counters::rndv_msgs},
    {"rndv_bytes", kMessages, "bytes", "Data of the messages sent by rendezvous.",
     &Counters::rndv_bytes},
    {"am_msgs", kActive, "messages",
     "Active messages of the host sent: accumulates, locks of windows, data with holes.",
     &Counters::am_msgs},
    {"am_bytes", kActive, "bytes", "Headers and data of the active messages sent.",
     &Counters::am_bytes},
    {"self_msgs", kMessages, "messages", "Messages of the rank to itself.", &Counters::self_msgs},
    {"unexpected", kUnexpected, "messages",
     "Messages that arrived before their receive was posted.", &Counters::unexpected},
    {"unexpected_bytes", kUnexpected, "bytes",
     "Data of the messages that arrived before their receive was posted.",
     &Counters::unexpected_bytes},
    {"signals", kSignals, "signals", "Entries of the signal handler.", &Counters::signals},
    {"syscalls", kCalls, "calls", "System calls of all kinds.", nullptr},
    {"connections", kConnections, "connections",
     "Connections that came up, each counted at both ends.", &Counters::connections},
    {"credit_stalls", kCredit, "messages",
     "Messages sent while credit was out: they went by rendezvous or waited.",
     &Counters::credit_stalls},
    {"put_msgs", kOneSided, "accesses", "Puts that the device carried, as origin.",
     &Counters::put_msgs},
    {"put_bytes", kOneSided, "bytes", "Data of the puts, as origin.", &Counters::put_bytes},
    {"get_msgs", kOneSided, "accesses", "Gets that the device carried, as origin.",
     &Counters::get_msgs},
    {"get_bytes", kOneSided, "bytes", "Data of the gets, as origin.", &Counters::get_bytes},
    {"served_msgs", kOneSided, "accesses", "Puts and gets executed here, as target.",
     &Counters::served_msgs},
    {"served_bytes", kOneSided, "bytes", "Data of the puts and gets executed here, as target.",
     &Counters::served_bytes},
    {"self_bytes", kMessages, "bytes", "Data of the messages of the rank to itself.",
     &Counters::self_bytes},
    {"unexpected_bytes_peak", kUnexpected, "bytes",
     "The most memory held for unexpected messages at a time.", &Counters::unexpected_bytes_peak,
     true},
    {"truncated", kTrouble, "messages", "Messages longer than their receive.",
     &Counters::truncated},
    {"signals_turned_away", kSignals, "signals",
     "Signals that came while the library was at work, which then did their work.",
     &Counters::signals_turned_away},
    {"handler_rests", kSignals, "times",
     "Times that the handler left the core to the program, as others' accesses took more than "
     "half.",
     &Counters::handler_rests},
    {"thread_wakes", kThreads, "wakes",
     "Times that a thread of the library (helper, host's work, gathered messages) woke up.",
     &Counters::thread_wakes},
    {"host_passes", kThreads, "passes", "Times that such a thread ran the host's progress.",
     &Counters::host_passes},
    {"backstops", kSignals, "departures",
     "Departures from MPI that were not armed, and that the timer had to look at again.",
     &Counters::backstops},
    {"reads", kCalls, "calls", "System calls that receive.", &Counters::reads},
    {"reads_empty", kCalls, "calls", "System calls that receive and found nothing.",
     &Counters::reads_empty},
    {"writes", kCalls, "calls", "System calls that send.", &Counters::writes},
    {"writes_full", kCalls, "calls",
     "System calls that send, of which the kernel took less than was offered.",
     &Counters::writes_full},
    {"waits", kCalls, "calls", "System calls that ask which sockets are ready, or sleep for one.",
     &Counters::waits},
    {"mask_calls", kCalls, "calls",
     "System calls that change the signal mask or take a pending signal.", &Counters::mask_calls},
    {"other_calls", kCalls, "calls", "System calls for sockets, options, registration and timers.",
     &Counters::other_calls},
    {"yields", kCalls, "calls", "Times that a waiting rank gave its core away.", &Counters::yields},
    {"sleeps", kCalls, "calls", "Times that a waiting rank slept.", &Counters::sleeps},
    {"connections_refused", kTrouble, "connections",
     "Connections of strangers, failed proofs, and callers that were given up.",
     &Counters::connections_refused},
    {"ties", kConnections, "connections",
     "Connections that both sides had begun, and of which one was kept; additional ones that were "
     "not let in.",
     &Counters::ties},
    {"connections_broken", kTrouble, "connections",
     "Connections that broke; the stream goes on over another one, if the peer can be reached "
     "(LITE_RESUME).",
     &Counters::connections_broken},
    {"resent_bytes", kTrouble, "bytes",
     "What was sent again, as it had been under way on connections that broke.",
     &Counters::resent_bytes},
    {"resume_gaps", kTrouble, "times",
     "There was no memory to keep what had been sent: a connection that broke then could not go "
     "on.",
     &Counters::resume_gaps},
    {"lanes", kConnections, "connections",
     "Connections beside the first one to a peer, for long data (LITE_LANES).", &Counters::lanes},
    {"lanes_lost", kTrouble, "connections",
     "Of these, those that broke; what was on them went over others.", &Counters::lanes_lost},
    {"lane_trials", kConnections, "trials",
     "How often more connections to a peer were tried (LITE_LANES=auto).", &Counters::lane_trials},
    {"lane_trials_paid", kConnections, "trials", "Of these, those that carried a tenth more.",
     &Counters::lane_trials_paid},
    {"frames_in", kStream, "frames", "Frames received from the sockets.", &Counters::frames_in},
    {"frames_out", kStream, "frames", "Frames sent to the sockets.", &Counters::frames_out},
    {"bytes_in", kStream, "bytes", "Bytes received from the sockets, headers included.",
     &Counters::bytes_in},
    {"bytes_out", kStream, "bytes", "Bytes sent to the sockets, headers included.",
     &Counters::bytes_out},
    {"gathered", kStream, "packets", "Small messages that left together with others.",
     &Counters::gathered},
    {"gathered_late", kStream, "times",
     "Times that such messages left only when the timer saw to it.", &Counters::gathered_late},
    {"parked", kStream, "frames",
     "Frames that had to wait for a buffer; their connection was not read meanwhile.",
     &Counters::parked},
    {"resent", kTrouble, "segments",
     "TCP segments that were sent again, counted when a connection ends or the rank does.",
     &Counters::resent},
    {"no_memory_in_handler", kSignals, "times",
     "Times that the handler left work to a thread or the next MPI call because a pool was empty.",
     &Counters::no_memory_in_handler},
};
constexpr std::size_t kFields = sizeof kTable / sizeof kTable[0];
static_assert(sizeof(Counters) == (kFields - 1) * sizeof(std::uint64_t),
              "a counter is missing here (syscalls is a sum, not a counter)");
static_assert(192 + kFields * (24 + 21) + kStatsSettingsMax <= kStatsBytes,
              "the line must always fit: names up to 22 characters, values up to 20");

// In the order of CounterGroup.
constexpr CounterGroupInfo kGroups[] = {
    {"Messages by protocol", "What the rank sent, by the way that it went."},
    {"Active messages", "What the host sends by handlers; they need the host at the receiver."},
    {"One-sided", "Puts and gets that the device itself carries, and executes at the target."},
    {"Unexpected messages",
     "Their data is stored and copied when the receive comes, and their memory is bounded by "
     "LITE_UNEXPECTED_MAX."},
    {"Credit", "What a peer may send unasked is bounded by LITE_CREDITS."},
    {"Signals",
     "With LITE_CONTROLLER=sigio they move messages while the program computes; each interrupts it "
     "for some microseconds."},
    {"Threads", "What the library's own threads did while the program computed."},
    {"System calls", "Those of the library only."},
    {"Connections", "They are made when two ranks first talk to each other."},
    {"Stream", "What went through the sockets."},
    {"Trouble", "0 in most jobs; the library's messages on standard error tell more."},
};
static_assert(sizeof kGroups / sizeof kGroups[0] == kCounterGroups);

}  // namespace

const CounterGroupInfo& counter_group(CounterGroup group) {
  return kGroups[static_cast<std::size_t>(group)];
}
std::size_t counter_count() { return kFields; }
const CounterInfo& counter_info(std::size_t index) { return kTable[index]; }

std::uint64_t counter_value(std::size_t index, const Counters& counters) {
  const CounterInfo& info = kTable[index];
  return info.member != nullptr ? counters.*info.member : counters.system_calls();
}

std::size_t format_stats(const Counters& counters, const StatsHead& head,
                         char (&text)[kStatsBytes]) {
  int n = std::snprintf(text, sizeof text, "%s rank=%d ranks=%d job=%.64s controller=%.16s",
                        kStatsWord, head.rank, head.ranks, head.job, head.controller);
  for (std::size_t i = 0; i < kFields; ++i)
    n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), " %s=%llu",
                       kTable[i].name, static_cast<unsigned long long>(counter_value(i, counters)));
  n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), "%s%.*s\n",
                     head.settings[0] != '\0' ? " " : "", static_cast<int>(kStatsSettingsMax),
                     head.settings);
  return static_cast<std::size_t>(n);
}

}  // namespace mplite
