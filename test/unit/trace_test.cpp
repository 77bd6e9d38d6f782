// trace.h: the last events come out in order, as text, and off means off.
#include "mplite/trace.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "run_tests.h"

using namespace mplite;

namespace {

// A directory for one test; its file trace.RANK is read back line by line.
struct TraceFile {
  char directory[64] = "trace_test.XXXXXX";
  char prefix[96], path[112];
  std::FILE* file = nullptr;
  char line[256];
  explicit TraceFile(int rank) {
    ck_assert_ptr_nonnull(mkdtemp(directory));
    std::snprintf(prefix, sizeof prefix, "./%s/trace", directory);
    std::snprintf(path, sizeof path, "%s.%d", prefix, rank);
  }
  ~TraceFile() {
    if (file != nullptr) std::fclose(file);
    unlink(path);
    rmdir(directory);
  }
  const char* next() {
    if (file == nullptr) file = std::fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    return std::fgets(line, sizeof line, file);
  }
};

START_TEST(events_come_out_in_order_with_their_numbers) {
  TraceFile t(7);
  ck_assert(trace_start(7));
  trace(TraceEvent::kRts, 3, 42, 65536);
  trace(TraceEvent::kArm);
  trace(TraceEvent::kRead, 2, static_cast<std::uint64_t>(-EAGAIN), 8192);
  ck_assert_int_eq(trace_finish(t.prefix), 0);
  ck_assert_str_eq(t.next(), "# lite-trace rank=7 events=3 kept=3; columns: microseconds, event, peer, a, b\n");
  double first = -1, second = -1;
  char rest[64];
  ck_assert_int_eq(std::sscanf(t.next(), "%lf %63[^\n]", &first, rest), 2);
  ck_assert_str_eq(rest, "rts 3 42 65536");
  ck_assert_int_eq(std::sscanf(t.next(), "%lf %63[^\n]", &second, rest), 2);
  ck_assert_str_eq(rest, "arm -1 0 0");
  ck_assert(first >= 0 && second >= first && second < 60e6);
  ck_assert_ptr_nonnull(std::strstr(t.next(), " read 2 -11 8192\n"));
  ck_assert_ptr_null(t.next());
}
END_TEST

START_TEST(off_records_nothing) {
  ck_assert(!g_trace_on);
  trace(TraceEvent::kArm);  // would crash: there is no ring
  TraceFile t(0);
  ck_assert_int_eq(trace_finish(t.prefix), 0);
  ck_assert_int_eq(access(t.path, F_OK), -1);
  ck_assert(trace_start(0));
  ck_assert_int_eq(trace_finish(t.prefix), 0);
  ck_assert(!g_trace_on);
  trace(TraceEvent::kArm);
}
END_TEST

START_TEST(ring_keeps_the_last_events) {
  TraceFile t(0);
  ck_assert(trace_start(0));
  constexpr std::uint64_t kEvents = kTraceRecords + 1000;
  for (std::uint64_t i = 0; i < kEvents; ++i) trace(TraceEvent::kShort, 0, i, 0);
  ck_assert_int_eq(trace_finish(t.prefix), 0);
  ck_assert_str_eq(t.next(), "# lite-trace rank=0 events=66536 kept=65536; columns: microseconds, event, peer, a, b\n");
  std::uint64_t expected = 1000;
  while (t.next() != nullptr) {
    char wanted[64];
    std::snprintf(wanted, sizeof wanted, " short 0 %llu 0\n", static_cast<unsigned long long>(expected));
    ck_assert_msg(std::strstr(t.line, wanted) != nullptr, "%s", t.line);
    ++expected;
  }
  ck_assert_uint_eq(expected, kEvents);
}
END_TEST

void handler(int) { trace(TraceEvent::kSignal, -1, 1, 0); }

void* busy(void*) {
  for (int i = 0; i < 10'000; ++i) trace(TraceEvent::kWake, 1, 0, 0);
  return nullptr;
}

START_TEST(handler_and_threads_lose_nothing) {
  TraceFile t(0);
  signal(SIGUSR2, handler);
  ck_assert(trace_start(0));
  pthread_t other;
  ck_assert_int_eq(pthread_create(&other, nullptr, busy, nullptr), 0);
  for (int i = 0; i < 10'000; ++i) {
    trace(TraceEvent::kYield, 2, 0, 0);
    if (i % 100 == 0) raise(SIGUSR2);
  }
  pthread_join(other, nullptr);
  ck_assert_int_eq(trace_finish(t.prefix), 0);
  int wakes = 0, yields = 0, signals = 0;
  t.next();
  while (t.next() != nullptr) {
    wakes += std::strstr(t.line, " wake 1 ") != nullptr;
    yields += std::strstr(t.line, " yield 2 ") != nullptr;
    signals += std::strstr(t.line, " signal -1 ") != nullptr;
  }
  ck_assert_int_eq(wakes, 10'000);
  ck_assert_int_eq(yields, 10'000);
  ck_assert_int_eq(signals, 100);
}
END_TEST

START_TEST(every_event_has_a_name) {
  TraceFile t(0);
  ck_assert(trace_start(0));
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(TraceEvent::kCount_); ++i) trace(static_cast<TraceEvent>(i));
  ck_assert_int_eq(trace_finish(t.prefix), 0);
  int lines = 0;
  while (t.next() != nullptr) {
    ck_assert_ptr_null(std::strchr(t.line, '?'));
    ++lines;
  }
  ck_assert_int_eq(lines, 1 + static_cast<int>(TraceEvent::kCount_));
}
END_TEST

START_TEST(file_that_cannot_be_made_is_an_error) {
  ck_assert(trace_start(0));
  trace(TraceEvent::kArm);
  ck_assert_int_eq(trace_finish("./no-such-directory/trace"), -ENOENT);
  ck_assert(!g_trace_on);
}
END_TEST

}  // namespace

int main() {
  return run_tests("trace", {events_come_out_in_order_with_their_numbers, off_records_nothing, ring_keeps_the_last_events, handler_and_threads_lose_nothing,
                             every_event_has_a_name, file_that_cannot_be_made_is_an_error});
}
