// The trace of LITE_TRACE: a ring of records, and their way into a file in the trace-event format.
// One event per line. pid: rank; tid: 2 * thread, + 1 for the signal handler in it; ts: us of
// CLOCK_MONOTONIC, so that the files of ranks on one host fit together as they are.
// Source: "Trace Event Format" of the Catapult project (phases B, E, X, i, b, e, M).
#include "mplite/observe/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace mplite {

bool g_trace_on = false;

namespace {

struct Record {
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
static_assert(sizeof(Record) == 48);

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

struct Numbers {
  std::uint32_t sent, arrived;
};

Record* g_records = nullptr;
std::atomic<std::uint64_t> g_next{0};  // of handlers, the helper thread and ordinary code
Numbers* g_numbers = nullptr;          // by rank
int g_rank = 0, g_size = 0;
std::int64_t g_start_ns = 0, g_start_wall_ns = 0;
char g_path[PATH_MAX + 256];
pid_t g_owner = 0;  // a child made by fork() has nothing to write

// Threads by the order of their first records; those behind the last place share it.
constexpr int kThreadsMax = 64;
constexpr int kTracks = 2 * kThreadsMax;
struct Thread {
  int tid;
  bool helper;
};
Thread g_threads[kThreadsMax];
unsigned g_run = 0;  // calls of trace_start: a process may start again

struct Self {
  unsigned run;
  int thread;
  int handlers;              // entered and not left
  std::uint64_t yield_next;  // the record behind the last one, if that is of a yield; or 0
};
thread_local Self t_self;

std::int64_t read_clock(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Self& self() {
  Self& s = t_self;
  if (s.run == g_run) [[likely]]
    return s;
  // A handler may interrupt the first record of its thread: it finds the same place.
  const int tid = static_cast<int>(syscall(SYS_gettid));
  int thread = 0;
  for (; thread < kThreadsMax - 1; ++thread) {
    int owner = 0;
    if (__atomic_compare_exchange_n(&g_threads[thread].tid, &owner, tid, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED) ||
        owner == tid)
      break;
  }
  if (thread == kThreadsMax - 1)  // the shared one: who came last
    __atomic_store_n(&g_threads[thread].tid, tid, __ATOMIC_RELAXED);
  s.thread = thread;
  s.handlers = 0;
  s.yield_next = 0;
  std::atomic_signal_fence(std::memory_order_release);
  s.run = g_run;
  return s;
}

// Into the ring, with what is not the caller's to say. time_ns 0: now.
void put(Record& r) {
  Self& s = self();
  if (r.event == TraceEvent::kHandler) ++s.handlers;
  if (r.event == TraceEvent::kHelper) g_threads[s.thread].helper = true;
  r.track = static_cast<std::uint16_t>(2 * s.thread + (s.handlers > 0 ? 1 : 0));
  if (r.event == TraceEvent::kHandlerEnd && s.handlers > 0) --s.handlers;
  const std::uint64_t number = g_next.fetch_add(1, std::memory_order_relaxed);
  s.yield_next = r.event == TraceEvent::kYield ? number + 1 : 0;
  if (r.time_ns == 0) r.time_ns = read_clock(CLOCK_MONOTONIC);
  if (r.event == TraceEvent::kYield) r.b = static_cast<std::uint64_t>(r.time_ns);
  r.stamp = 0;
  Record& place = g_records[number % kTraceRecords];
  place = r;
  __atomic_store_n(&place.stamp, static_cast<std::uint32_t>(number + 1), __ATOMIC_RELEASE);
}

// Never waits, whatever the name turns out to be (a pipe that nobody reads).
int open_file() {
  return open(g_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
}

// The application may change its working directory until the end.
void keep_name(const char* prefix) {
  std::size_t length = 0;
  if (prefix[0] != '/' && getcwd(g_path, PATH_MAX) != nullptr) {
    length = strlen(g_path);
    g_path[length++] = '/';
  }
  std::snprintf(g_path + length, sizeof g_path - length, "%s.%d.json", prefix, g_rank);
}

// ---- the file; the functions that write return whether the stream has taken it ----

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

bool write_head(std::FILE* out, std::uint64_t events, std::uint64_t kept) {
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
             g_rank, g_size, host, clock, us(g_start_ns), us(g_start_wall_ns),
             static_cast<unsigned long long>(events),
             static_cast<unsigned long long>(events - kept)) > 0 &&
         std::fprintf(out,
                      "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":"
                      "\"rank %d on %s\"}}",
                      g_rank, g_rank, host) > 0;
}

bool write_track(std::FILE* out, int track) {
  const Thread& t = g_threads[track / 2];
  return std::fprintf(out,
                      ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                      "\"args\":{\"name\":\"%s%s %d\"}}",
                      g_rank, track, track % 2 != 0 ? "signal handler in " : "",
                      t.helper ? "helper thread" : "thread", t.tid) > 0;
}

bool write_number(std::FILE* out, const char* name, std::uint64_t value) {
  return name == nullptr ||
         std::fprintf(out, ",\"%s\":%lld", name, static_cast<long long>(value)) > 0;
}

bool write_arguments(std::FILE* out, const Kind& kind, const Record& r) {
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
bool write_record(std::FILE* out, const Record& r) {
  const Kind& kind = kKinds[static_cast<int>(r.event)];
  const bool named = kind.fields == Kind::kMessage && r.protocol != TraceProtocol::kNone;
  bool good =
      std::fprintf(
          out,
          ",\n{\"name\":\"%s%s%s\",\"cat\":\"%s\",\"ph\":\"%c\",\"ts\":%.3f,\"pid\":%d,\"tid\":%d",
          kind.name, named ? " " : "", named ? kProtocols[static_cast<int>(r.protocol)] : "",
          kind.category, kind.phase, us(r.time_ns), g_rank, r.track) > 0;
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
  std::uint64_t begin = 0;
  std::uint32_t* places = nullptr;  // from begin
  std::uint32_t count = 0;

  const Record& at(std::uint32_t place) const { return g_records[(begin + place) % kTraceRecords]; }
  const Record& operator[](std::uint32_t i) const { return at(places[i]); }

  void fill(std::uint64_t end) {
    begin = end > kTraceRecords ? end - kTraceRecords : 0;
    for (std::uint64_t i = begin; i < end; ++i)
      if (g_records[i % kTraceRecords].stamp == static_cast<std::uint32_t>(i + 1))
        places[count++] = static_cast<std::uint32_t>(i - begin);
    std::sort(places, places + count, [this](std::uint32_t i, std::uint32_t j) {
      return at(i).time_ns != at(j).time_ns ? at(i).time_ns < at(j).time_ns : i < j;
    });
  }
};

// 0 or -errno.
int write_file(std::FILE* out) {
  Order order;
  order.places = static_cast<std::uint32_t*>(std::malloc(kTraceRecords * sizeof(std::uint32_t)));
  if (order.places == nullptr) return -ENOMEM;
  const std::uint64_t end = g_next.load();
  order.fill(end);
  bool good = write_head(out, end, order.count);
  bool used[kTracks] = {};
  for (std::uint32_t i = 0; i < order.count; ++i) used[order[i].track] = true;
  for (int track = 0; track < kTracks; ++track)
    if (used[track]) good = good && write_track(out, track);
  int depth[kTracks] =
      {};  // the beginnings of the first ends may be overwritten: those are left out
  for (std::uint32_t i = 0; i < order.count && good; ++i) {
    const Record& r = order[i];
    const char phase = kKinds[static_cast<int>(r.event)].phase;
    if (phase == 'E' && depth[r.track] == 0) continue;
    if (phase == 'B') ++depth[r.track];
    if (phase == 'E') --depth[r.track];
    good = write_record(out, r);
  }
  std::free(order.places);
  good = good && std::fputs("\n]}\n", out) >= 0 && std::fflush(out) == 0;
  return good ? 0 : -errno;
}

void free_all() {
  std::free(g_records);
  std::free(g_numbers);
  g_records = nullptr;
  g_numbers = nullptr;
}

int write_out() {
  g_trace_on = false;
  int rc = 0;
  const int fd = open_file();
  std::FILE* out = fd >= 0 ? fdopen(fd, "w") : nullptr;
  if (out == nullptr) {
    rc = -errno;
    if (fd >= 0) close(fd);
  } else {
    rc = write_file(out);
    if (std::fclose(out) != 0 && rc == 0) rc = -errno;
  }
  if (rc != 0)
    std::fprintf(
        stderr,
        "ch_lite[rank %d]: LITE_TRACE: writing %s failed: %s; the %llu events of this rank's trace "
        "are lost, "
        "all or the later ones\n",
        g_rank, g_path, strerror(-rc),
        static_cast<unsigned long long>(std::min<std::uint64_t>(g_next.load(), kTraceRecords)));
  return rc;
}

// The process ends without trace_finish (exit(), an error that is fatal). The ring stays: the
// handler or the helper thread may be in the middle of a record.
void write_at_exit() {
  if (g_trace_on && getpid() == g_owner) write_out();
}

}  // namespace

std::int64_t trace_now_ns() MPLITE_SIGNAL_SAFE { return read_clock(CLOCK_MONOTONIC); }

void trace_record(TraceEvent event, int peer, std::uint64_t a, std::uint64_t b) MPLITE_SIGNAL_SAFE {
  Record r = {};
  r.event = event;
  r.peer = peer;
  r.a = a;
  r.b = b;
  put(r);
}

void trace_state(TraceEvent event, int peer, const char* from, const char* to, int connection,
                 int error) MPLITE_SIGNAL_SAFE {
  Record r = {};
  r.event = event;
  r.peer = peer;
  r.a = reinterpret_cast<std::uintptr_t>(from);
  r.b = reinterpret_cast<std::uintptr_t>(to);
  r.tag = connection;
  r.error = error;
  put(r);
}

void trace_message(TraceEvent event, int peer, const TraceMessage& message,
                   std::int64_t time_ns) MPLITE_SIGNAL_SAFE {
  Record r = {};
  r.time_ns = time_ns;
  r.event = event;
  r.peer = peer;
  r.a = message.bytes;
  r.b = message.request;
  r.tag = message.tag;
  r.sequence = message.sequence;
  r.error = message.error;
  r.protocol = message.protocol;
  put(r);
}

std::uint32_t trace_next_sent(int peer) MPLITE_SIGNAL_SAFE {
  return peer >= 0 && peer < g_size ? ++g_numbers[peer].sent : 0;
}
std::uint32_t trace_next_arrived(int peer) MPLITE_SIGNAL_SAFE {
  return peer >= 0 && peer < g_size ? ++g_numbers[peer].arrived : 0;
}

void trace_yielded() MPLITE_SIGNAL_SAFE {
  const Self& s = self();
  if (s.yield_next == 0 || g_next.load(std::memory_order_relaxed) != s.yield_next)
    return trace_record(TraceEvent::kYield, -1, 1, 0);
  Record& last = g_records[(s.yield_next - 1) % kTraceRecords];
  ++last.a;
  last.b = static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC));
}

bool trace_start(int rank, int size, const char* prefix, char* error, std::size_t error_size) {
  g_rank = rank;
  g_size = size;
  keep_name(prefix[0] != '\0' ? prefix : kTracePrefix);
  const int fd = open_file();
  if (fd < 0) {
    std::snprintf(error, error_size, "LITE_TRACE=%s: the file %s cannot be made: %s",
                  prefix[0] != '\0' ? prefix : "1", g_path, strerror(errno));
    return false;
  }
  close(fd);
  free_all();
  g_records = static_cast<Record*>(std::calloc(kTraceRecords, sizeof(Record)));
  g_numbers = static_cast<Numbers*>(std::calloc(static_cast<std::size_t>(size), sizeof(Numbers)));
  if (g_records == nullptr || g_numbers == nullptr) {
    free_all();
    std::snprintf(error, error_size, "LITE_TRACE: out of memory for the %zu KB of a trace",
                  kTraceRecords * sizeof(Record) / 1024);
    return false;
  }
  g_next.store(0);
  std::fill(g_threads, g_threads + kThreadsMax, Thread());
  ++g_run;
  g_start_ns = read_clock(CLOCK_MONOTONIC);
  g_start_wall_ns = read_clock(CLOCK_REALTIME);
  g_owner = getpid();
  static bool registered = false;
  if (!registered) registered = std::atexit(write_at_exit) == 0;
  g_trace_on = true;
  return true;
}

int trace_finish() {
  if (g_records == nullptr) return 0;
  const int rc = write_out();
  free_all();
  return rc;
}

}  // namespace mplite
