// The trace of LITE_TRACE: a ring of records. Their way into a file is in trace_file.cpp.
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

#include "mplite/observe/trace_file.h"

namespace mplite {

bool g_trace_on = false;

namespace {

struct Numbers {
  std::uint32_t sent, arrived;
};

TraceRecord* g_records = nullptr;
std::atomic<std::uint64_t> g_next{0};  // of handlers, the helper thread and ordinary code
Numbers* g_numbers = nullptr;          // by rank
int g_rank = 0, g_size = 0;
std::int64_t g_start_ns = 0, g_start_wall_ns = 0;
char g_path[PATH_MAX + 256];
pid_t g_owner = 0;  // a child made by fork() has nothing to write

TraceThread g_threads[kTraceThreadsMax];
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
  for (; thread < kTraceThreadsMax - 1; ++thread) {
    int owner = 0;
    if (__atomic_compare_exchange_n(&g_threads[thread].tid, &owner, tid, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED) ||
        owner == tid)
      break;
  }
  if (thread == kTraceThreadsMax - 1)  // the shared one: who came last
    __atomic_store_n(&g_threads[thread].tid, tid, __ATOMIC_RELAXED);
  s.thread = thread;
  s.handlers = 0;
  s.yield_next = 0;
  std::atomic_signal_fence(std::memory_order_release);
  s.run = g_run;
  return s;
}

// Into the ring, with what is not the caller's to say. time_ns 0: now.
void put(TraceRecord& r) {
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
  TraceRecord& place = g_records[number % kTraceRecords];
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
    rc = write_trace(
        {g_records, g_next.load(), g_threads, g_rank, g_size, g_start_ns, g_start_wall_ns}, out);
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
  TraceRecord r = {};
  r.event = event;
  r.peer = peer;
  r.a = a;
  r.b = b;
  put(r);
}

void trace_state(TraceEvent event, int peer, const char* from, const char* to, int connection,
                 int error) MPLITE_SIGNAL_SAFE {
  TraceRecord r = {};
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
  TraceRecord r = {};
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
  TraceRecord& last = g_records[(s.yield_next - 1) % kTraceRecords];
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
  g_records = static_cast<TraceRecord*>(std::calloc(kTraceRecords, sizeof(TraceRecord)));
  g_numbers = static_cast<Numbers*>(std::calloc(static_cast<std::size_t>(size), sizeof(Numbers)));
  if (g_records == nullptr || g_numbers == nullptr) {
    free_all();
    std::snprintf(error, error_size, "LITE_TRACE: out of memory for the %zu KB of a trace",
                  kTraceRecords * sizeof(TraceRecord) / 1024);
    return false;
  }
  g_next.store(0);
  std::fill(g_threads, g_threads + kTraceThreadsMax, TraceThread());
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
