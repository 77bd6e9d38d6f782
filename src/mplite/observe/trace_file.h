// The records of a trace, and their way into a file. Used by trace.cpp only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "mplite/observe/trace_event.h"

namespace mplite {

struct TraceRecord {
  std::int64_t time_ns;
  std::uint64_t a, b;  // of a message: bytes and request; of a state: names
  std::int32_t peer;
  std::int32_t tag;
  std::uint32_t sequence;
  std::int32_t error;
  TraceEvent event;
  TraceProtocol protocol;
  std::uint16_t track;
  std::uint32_t
      stamp;  // its number + 1 once all of it is written: a handler may interrupt its making
};
static_assert(sizeof(TraceRecord) == 48);

// Threads by the order of their first records; those behind the last place share it.
inline constexpr int kTraceThreadsMax = 64;
struct TraceThread {
  int tid;
  bool helper;
};

// What a file is made of.
struct TraceRing {
  const TraceRecord* records;  // kTraceRecords, the `next`th in records[next % kTraceRecords]
  std::uint64_t next;          // records made so far
  const TraceThread* threads;  // kTraceThreadsMax
  int rank, size;
  std::int64_t start_ns, start_wall_ns;  // CLOCK_MONOTONIC and CLOCK_REALTIME of one moment
};

// Writes all of the file. 0 or -errno. Ordinary context. Allocates.
int write_trace(const TraceRing& ring, std::FILE* out);

}  // namespace mplite
