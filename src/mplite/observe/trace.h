// The trace of LITE_TRACE: the last events of this process, kept in a ring, written at finalize as
// JSON in the trace-event format (chrome://tracing, Perfetto). scripts/trace-merge joins the files
// of a job's ranks. Called from everywhere: ordinary code, the helper thread, the signal handler,
// which may interrupt the others in the middle of a record. Allocates and locks nothing then. Off,
// a call costs a load and a branch (test/bench/path).
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/observe/trace_event.h"

namespace mplite {

// Which message. Envelopes from one rank to another are numbered from 1 in the order in which they
// leave, which is that in which they arrive: both ends count, nothing is said on the wire.
// sequence 0: not known (processes of other jobs).
struct TraceMessage {
  std::uint64_t bytes = 0;
  std::uint64_t request = 0;  // handle at this rank, 0: none
  std::int32_t tag = 0;
  std::uint32_t sequence = 0;
  std::int32_t error = 0;  // of the layer that records it; kSendEnd, kReceiveEnd, kReceiveDropped
  TraceProtocol protocol = TraceProtocol::kNone;
};

extern bool g_trace_on;

[[gnu::cold]] void trace_record(TraceEvent event, int peer, std::uint64_t a,
                                std::uint64_t b) MPLITE_SIGNAL_SAFE;
// from, to: literals.
[[gnu::cold]] void trace_state(TraceEvent event, int peer, const char* from, const char* to,
                               int connection, int error) MPLITE_SIGNAL_SAFE;
// `time_ns`: as trace_now_ns() gave it; 0: now.
[[gnu::cold]] void trace_message(TraceEvent event, int peer, const TraceMessage& message,
                                 std::int64_t time_ns = 0) MPLITE_SIGNAL_SAFE;
[[gnu::cold]] std::int64_t trace_now_ns() MPLITE_SIGNAL_SAFE;
// Numbers of envelopes; only while the trace is on, gate held.
[[gnu::cold]] std::uint32_t trace_next_sent(int peer) MPLITE_SIGNAL_SAFE;
[[gnu::cold]] std::uint32_t trace_next_arrived(int peer) MPLITE_SIGNAL_SAFE;
// Yields that follow one another are one record.
[[gnu::cold]] void trace_yielded() MPLITE_SIGNAL_SAFE;

inline void trace(TraceEvent event, int peer = -1, std::uint64_t a = 0,
                  std::uint64_t b = 0) MPLITE_SIGNAL_SAFE {
  if (g_trace_on) [[unlikely]]
    trace_record(event, peer, a, b);
}
inline void trace_yield() MPLITE_SIGNAL_SAFE {
  if (g_trace_on) [[unlikely]]
    trace_yielded();
}

inline constexpr const char* kTracePrefix = "./lite-trace";

// Ordinary context, before the controller starts. The records will go to PREFIX.RANK.json (prefix
// empty: kTracePrefix); that file is made now, so that one that cannot be made is known at the
// start. `size`: ranks of the job. False: `error` holds a sentence that names LITE_TRACE; tracing
// stays off.
bool trace_start(int rank, int size, const char* prefix, char* error, std::size_t error_size);
// Ordinary context, after the controller stopped: writes the records, oldest first, and frees them.
// Returns 0 or -errno, after saying on stderr what of the trace is lost.
// A process that ends by exit() without it writes them then.
int trace_finish();

}  // namespace mplite
