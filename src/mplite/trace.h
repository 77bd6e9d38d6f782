// The trace of LITE_TRACE: the last events of this process, kept in memory, written as text at finalize.
// trace() is called from everywhere, the handler and the helper thread included; off, it costs a load and a branch.
#pragma once
#include <cstddef>
#include <cstdint>

#include "signal_safe.h"

namespace mplite {

// a and b mean what the comment says; printed as signed numbers.
enum class TraceEvent : std::uint16_t {
  kSignal,        // handler entered; a: 1 it got the gate, 0 turned away
  kDrain,         // the gate's holder does a turned-away handler's work
  kWake,          // helper thread woke; a: events
  kArm,           // signals unblocked
  kDisarm,        // signals blocked; a: 1 a pending one was consumed
  kYield,         // a: ns waited
  kSleep,         // a: timeout ns
  kConnectionState,  // a: old, b: new
  kPeerState,     // a: old, b: new
  kPeerLost,      // a: errno
  kRead,          // a: bytes or -errno, b: offered
  kWrite,         // a: bytes or -errno, b: offered
  kFrameIn,       // a: kind, b: length
  kFrameOut,      // a: kind, b: length
  kPark,          // a: kind
  kUnpark,
  kSendDone,      // a: bytes, b: errno
  kShort,         // sent; a: tag, b: bytes (likewise below)
  kEager,
  kRts,
  kCts,
  kTransferDone,  // a: id, b: bytes
  kActiveMessage, // a: handler, b: bytes
  kSelf,
  kPost,          // receive posted
  kMatch,         // a: tag, b: bytes
  kUnexpected,    // a: tag, b: bytes
  kComplete,      // a: 1 send, 0 receive; b: bytes
  kCredit,        // a: returned bytes
  kCreditStall,   // a: bytes wanted
  kCancel,
  kCount_
};

extern bool g_trace_on;

void trace_record(TraceEvent event, int peer, std::uint64_t a, std::uint64_t b) MPLITE_SIGNAL_SAFE;

inline void trace(TraceEvent event, int peer = -1, std::uint64_t a = 0, std::uint64_t b = 0) MPLITE_SIGNAL_SAFE {
  if (g_trace_on) [[unlikely]]
    trace_record(event, peer, a, b);
}

inline constexpr std::uint32_t kTraceRecords = 1u << 16;  // the last ones are kept; 40 bytes each

// Ordinary context, before the controller starts. False: no memory; tracing stays off.
bool trace_start(int rank);
// Ordinary context, after the controller stopped: writes the records, oldest first, to PREFIX.RANK (prefix empty: stderr) and frees them.
// Returns 0 or -errno.
int trace_finish(const char* prefix);

}  // namespace mplite
