// The trace of LITE_TRACE: the last events of this process, kept in memory, written as text at finalize.
#include "trace.h"

#include <errno.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace mplite {

bool g_trace_on = false;

namespace {

struct Record {
  std::int64_t time_ns;
  std::uint64_t a, b;
  std::int32_t peer;
  TraceEvent event;
  std::uint16_t whole;  // 1 when all of the record is written: a handler may interrupt its making, and a last one may be cut short
};

Record* g_records = nullptr;
std::atomic<std::uint64_t> g_next{0};  // of handlers, the helper thread and ordinary code: each takes its own record
std::int64_t g_start_ns = 0;
int g_rank = 0;

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

const char* name_of(TraceEvent event) {
  switch (event) {
    case TraceEvent::kSignal: return "signal";
    case TraceEvent::kDrain: return "drain";
    case TraceEvent::kWake: return "wake";
    case TraceEvent::kArm: return "arm";
    case TraceEvent::kDisarm: return "disarm";
    case TraceEvent::kYield: return "yield";
    case TraceEvent::kSleep: return "sleep";
    case TraceEvent::kConnectionState: return "connection_state";
    case TraceEvent::kPeerState: return "peer_state";
    case TraceEvent::kPeerLost: return "peer_lost";
    case TraceEvent::kRead: return "read";
    case TraceEvent::kWrite: return "write";
    case TraceEvent::kFrameIn: return "frame_in";
    case TraceEvent::kFrameOut: return "frame_out";
    case TraceEvent::kPark: return "park";
    case TraceEvent::kUnpark: return "unpark";
    case TraceEvent::kSendDone: return "send_done";
    case TraceEvent::kShort: return "short";
    case TraceEvent::kEager: return "eager";
    case TraceEvent::kRts: return "rts";
    case TraceEvent::kCts: return "cts";
    case TraceEvent::kTransferDone: return "transfer_done";
    case TraceEvent::kActiveMessage: return "active_message";
    case TraceEvent::kSelf: return "self";
    case TraceEvent::kPost: return "post";
    case TraceEvent::kMatch: return "match";
    case TraceEvent::kUnexpected: return "unexpected";
    case TraceEvent::kComplete: return "complete";
    case TraceEvent::kCredit: return "credit";
    case TraceEvent::kCreditStall: return "credit_stall";
    case TraceEvent::kCancel: return "cancel";
    case TraceEvent::kCount_: break;
  }
  return "?";
}

}  // namespace

void trace_record(TraceEvent event, int peer, std::uint64_t a, std::uint64_t b) MPLITE_SIGNAL_SAFE {
  Record& r = g_records[g_next.fetch_add(1, std::memory_order_relaxed) % kTraceRecords];
  r.whole = 0;
  r.time_ns = now_ns();
  r.a = a;
  r.b = b;
  r.peer = peer;
  r.event = event;
  r.whole = 1;
}

bool trace_start(int rank) {
  if (g_records == nullptr) g_records = static_cast<Record*>(std::calloc(kTraceRecords, sizeof(Record)));
  if (g_records == nullptr) return false;
  g_next.store(0);
  g_start_ns = now_ns();
  g_rank = rank;
  g_trace_on = true;
  return true;
}

int trace_finish(const char* prefix) {
  if (g_records == nullptr) return 0;
  g_trace_on = false;
  std::FILE* out = stderr;
  int rc = 0;
  if (prefix[0] != '\0') {
    char path[512];
    std::snprintf(path, sizeof path, "%s.%d", prefix, g_rank);
    out = std::fopen(path, "we");
    if (out == nullptr) rc = -errno;
  }
  if (out != nullptr) {
    const std::uint64_t end = g_next.load();
    const std::uint64_t begin = end > kTraceRecords ? end - kTraceRecords : 0;
    std::fprintf(out, "# lite-trace rank=%d events=%llu kept=%llu; columns: microseconds, event, peer, a, b\n", g_rank, static_cast<unsigned long long>(end),
                 static_cast<unsigned long long>(end - begin));
    for (std::uint64_t i = begin; i < end; ++i) {
      const Record& r = g_records[i % kTraceRecords];
      if (r.whole == 0) continue;
      std::fprintf(out, "%.3f %s %d %lld %lld\n", static_cast<double>(r.time_ns - g_start_ns) / 1000.0, name_of(r.event), r.peer,
                   static_cast<long long>(r.a), static_cast<long long>(r.b));
    }
    if (out == stderr) std::fflush(out);
    else if (std::fclose(out) != 0) rc = -errno;
  }
  std::free(g_records);
  g_records = nullptr;
  return rc;
}

}  // namespace mplite
