// The file of a trace, in the trace-event format. One event per line. pid: rank; tid: 2 * thread, +
// 1 for the signal handler in it; ts: us of CLOCK_MONOTONIC, so that the files of ranks on one host
// fit together as they are.
// Source: "Trace Event Format" of the Catapult project (phases B, E, X, i, b, e, M).
#include "mplite/observe/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace mplite {
namespace {

constexpr int kTracks = 2 * kTraceThreadsMax;

// What the fields of a record are called in the file; null: not written.
struct Kind {
  enum Fields : std::uint8_t { kNumbers, kNames, kMessage };
  const char* name;
  const char* category;
  char phase;  // B, E: of this track; b, e: of the message; i: an instant; X: until b
  Fields fields = kNumbers;
  const char* a = nullptr;
  const char* b = nullptr;
};
constexpr Kind kKinds[] = {
    // in the order of TraceEvent
    {"connection", "connection", 'i', Kind::kNames},
    {"peer", "connection", 'i', Kind::kNames},
    {"read", "socket", 'i', Kind::kNumbers, "bytes", "room"},
    {"write", "socket", 'i', Kind::kNumbers, "bytes", "offered"},
    {"receive paused", "socket", 'i'},
    {"receive resumed", "socket", 'i'},
    {"lanes", "connection", 'i', Kind::kNumbers, "used", "wanted"},
    {"send", "send", 'b', Kind::kMessage},
    {"send", "send", 'e', Kind::kMessage},
    {"posted", "matching", 'i', Kind::kMessage},
    {"unexpected", "matching", 'i', Kind::kMessage},
    {"receive", "receive", 'b', Kind::kMessage},
    {"receive", "receive", 'e', Kind::kMessage},
    {"receive dropped", "matching", 'i', Kind::kMessage},
    {"eager deferred", "matching", 'i', Kind::kMessage},
    {"eager resumed", "matching", 'i', Kind::kMessage},
    {"CTS sent", "rendezvous", 'i', Kind::kNumbers, "bytes", "request"},
    {"CTS arrived", "rendezvous", 'i', Kind::kNumbers, "bytes", "request"},
    {"ack sent", "rendezvous", 'i', Kind::kNumbers, "bytes", "request"},
    {"ack arrived", "rendezvous", 'i', Kind::kNumbers, "bytes", "request"},
    {"peer's request", "matching", 'i', Kind::kMessage},
    {"active message", "progress", 'B', Kind::kMessage},
    {"active message", "progress", 'E'},
    {"credit granted", "credit", 'i', Kind::kNumbers, "bytes", "am_bytes"},
    {"credit returned", "credit", 'i', Kind::kNumbers, "bytes", "am_bytes"},
    {"credit stalled", "credit", 'i', Kind::kNumbers, "bytes", "left"},
    {"signal handler", "progress", 'B', Kind::kNumbers, "signal"},
    {"signal handler", "progress", 'E'},
    {"turned away", "progress", 'i'},
    {"drain", "progress", 'i'},
    {"armed", "progress", 'i'},
    {"disarmed", "progress", 'i'},
    {"helper", "progress", 'B'},
    {"helper", "progress", 'E'},
    {"sleep", "wait", 'B', Kind::kNumbers, "timeout_ns"},
    {"sleep", "wait", 'E', Kind::kNumbers, "ready"},
    {"yield", "wait", 'X', Kind::kNumbers, "times"},
};
static_assert(std::size(kKinds) == static_cast<std::size_t>(TraceEvent::kCount_));

constexpr const char* kProtocols[] = {"",
                                      "short",
                                      "eager",
                                      "rendezvous",
                                      "self",
                                      "message",
                                      "active short",
                                      "active eager",
                                      "active rendezvous",
                                      "put",
                                      "put by transfer",
                                      "get",
                                      "get by transfer"};
static_assert(std::size(kProtocols) == static_cast<std::size_t>(TraceProtocol::kCount_));

// The functions that write return whether the stream has taken it.

// What ranks must have in common for their CLOCK_MONOTONIC to be the same one: a boot of a kernel,
// and a time namespace.
void clock_name(char (&text)[128]) {
  char boot[64] = "unknown", space[48] = "";
  if (const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); fd >= 0) {
    const ssize_t n = read(fd, boot, sizeof boot - 1);
    boot[n > 0 ? n : 0] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    close(fd);
  }
  const ssize_t n = readlink("/proc/self/ns/time", space, sizeof space - 1);
  space[n > 0 ? n : 0] = '\0';
  std::snprintf(text, sizeof text, "%s %s", boot, space);
}

double us(std::int64_t ns) { return static_cast<double>(ns) / 1000.0; }

bool write_head(std::FILE* out, const TraceRing& ring, std::uint64_t events, std::uint64_t kept) {
  char host[256] = "", clock[128];
  gethostname(host, sizeof host - 1);
  for (char* c = host; *c != '\0'; ++c)
    if (*c == '"' || *c == '\\' || static_cast<unsigned char>(*c) < ' ') *c = '?';
  clock_name(clock);
  return std::fprintf(
             out,
             "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"format\":\"lite-trace 1\",\"rank\":%d,"
             "\"size\":%d,\"host\":\"%s\",\"clock\":\"%s\",\"start_us\":%.3f,\"start_wall_us\":%."
             "3f,"
             "\"events\":%llu,\"overwritten\":%llu},\n\"traceEvents\":[\n",
             ring.rank, ring.size, host, clock, us(ring.start_ns), us(ring.start_wall_ns),
             static_cast<unsigned long long>(events),
             static_cast<unsigned long long>(events - kept)) > 0 &&
         std::fprintf(out,
                      "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":"
                      "\"rank %d on %s\"}}",
                      ring.rank, ring.rank, host) > 0;
}

bool write_track(std::FILE* out, const TraceRing& ring, int track) {
  const TraceThread& t = ring.threads[track / 2];
  return std::fprintf(out,
                      ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                      "\"args\":{\"name\":\"%s%s %d\"}}",
                      ring.rank, track, track % 2 != 0 ? "signal handler in " : "",
                      t.helper ? "helper thread" : "thread", t.tid) > 0;
}

bool write_number(std::FILE* out, const char* name, std::uint64_t value) {
  return name == nullptr ||
         std::fprintf(out, ",\"%s\":%lld", name, static_cast<long long>(value)) > 0;
}

bool write_arguments(std::FILE* out, const Kind& kind, const TraceRecord& r) {
  if (std::fprintf(out, ",\"args\":{\"peer\":%d", r.peer) < 0) return false;
  switch (kind.fields) {
    case Kind::kNumbers: return write_number(out, kind.a, r.a) && write_number(out, kind.b, r.b);
    case Kind::kNames:
      return std::fprintf(out, ",\"from\":\"%s\",\"to\":\"%s\",\"connection\":%d,\"error\":%d",
                          reinterpret_cast<const char*>(r.a), reinterpret_cast<const char*>(r.b),
                          r.tag, r.error) > 0;
    case Kind::kMessage:
      return std::fprintf(out, ",\"protocol\":\"%s\",\"tag\":%d,\"sequence\":%u",
                          kProtocols[static_cast<int>(r.protocol)], r.tag, r.sequence) > 0 &&
             write_number(out, "bytes", r.a) && write_number(out, "request", r.b) &&
             (r.error == 0 || std::fprintf(out, ",\"error\":%d", r.error) > 0);
  }
  return false;
}

// The protocol is part of the name, so that viewers give each a colour of its own.
bool write_record(std::FILE* out, int rank, const TraceRecord& r) {
  const Kind& kind = kKinds[static_cast<int>(r.event)];
  const bool named = kind.fields == Kind::kMessage && r.protocol != TraceProtocol::kNone;
  bool good =
      std::fprintf(
          out,
          ",\n{\"name\":\"%s%s%s\",\"cat\":\"%s\",\"ph\":\"%c\",\"ts\":%.3f,\"pid\":%d,\"tid\":%d",
          kind.name, named ? " " : "", named ? kProtocols[static_cast<int>(r.protocol)] : "",
          kind.category, kind.phase, us(r.time_ns), rank, r.track) > 0;
  if (kind.phase == 'i') good = good && std::fputs(",\"s\":\"t\"", out) >= 0;
  if (kind.phase == 'X')
    good = good &&
           std::fprintf(out, ",\"dur\":%.3f", us(static_cast<std::int64_t>(r.b) - r.time_ns)) > 0;
  if (kind.phase == 'b' || kind.phase == 'e')
    good = good && std::fprintf(out, ",\"id2\":{\"local\":\"%s %d.%u\"}", kind.name, r.peer,
                                r.sequence) > 0;
  return good && write_arguments(out, kind, r) && std::fputs("}}", out) >= 0;
}

// The records that are whole, by time: one that a handler has interrupted was numbered before the
// handler's and has a later time.
struct Order {
  const TraceRecord* records = nullptr;
  std::uint64_t begin = 0;
  std::uint32_t* places = nullptr;  // from begin
  std::uint32_t count = 0;

  const TraceRecord& at(std::uint32_t place) const {
    return records[(begin + place) % kTraceRecords];
  }
  const TraceRecord& operator[](std::uint32_t i) const { return at(places[i]); }

  void fill(std::uint64_t end) {
    begin = end > kTraceRecords ? end - kTraceRecords : 0;
    for (std::uint64_t i = begin; i < end; ++i)
      if (records[i % kTraceRecords].stamp == static_cast<std::uint32_t>(i + 1))
        places[count++] = static_cast<std::uint32_t>(i - begin);
    std::sort(places, places + count, [this](std::uint32_t i, std::uint32_t j) {
      return at(i).time_ns != at(j).time_ns ? at(i).time_ns < at(j).time_ns : i < j;
    });
  }
};

}  // namespace

int write_trace(const TraceRing& ring, std::FILE* out) {
  Order order;
  order.records = ring.records;
  order.places = static_cast<std::uint32_t*>(std::malloc(kTraceRecords * sizeof(std::uint32_t)));
  if (order.places == nullptr) return -ENOMEM;
  const std::uint64_t end = ring.next;
  order.fill(end);
  bool good = write_head(out, ring, end, order.count);
  bool used[kTracks] = {};
  for (std::uint32_t i = 0; i < order.count; ++i) used[order[i].track] = true;
  for (int track = 0; track < kTracks; ++track)
    if (used[track]) good = good && write_track(out, ring, track);
  int depth[kTracks] =
      {};  // the beginnings of the first ends may be overwritten: those are left out
  for (std::uint32_t i = 0; i < order.count && good; ++i) {
    const TraceRecord& r = order[i];
    const char phase = kKinds[static_cast<int>(r.event)].phase;
    if (phase == 'E' && depth[r.track] == 0) continue;
    if (phase == 'B') ++depth[r.track];
    if (phase == 'E') --depth[r.track];
    good = write_record(out, ring.rank, r);
  }
  std::free(order.places);
  good = good && std::fputs("\n]}\n", out) >= 0 && std::fflush(out) == 0;
  return good ? 0 : -errno;
}

}  // namespace mplite
