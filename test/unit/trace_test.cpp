// trace.h: the last events come out in order, as JSON, and off means off.
#include "mplite/observe/trace.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "../signal/trap_flag.h"
#include "printed.h"
#include "run_tests.h"

using namespace mplite;

namespace {

// A directory for one test, and what the file trace.RANK.json in it holds.
struct TraceFile {
  char directory[64] = "trace_test.XXXXXX";
  char prefix[96], path[112];
  int rank;
  explicit TraceFile(int owner) : rank(owner) {
    ck_assert_ptr_nonnull(mkdtemp(directory));
    std::snprintf(prefix, sizeof prefix, "./%s/trace", directory);
    std::snprintf(path, sizeof path, "%s.%d.json", prefix, rank);
  }
  ~TraceFile() {
    unlink(path);
    rmdir(directory);
  }
  // Python's json reads it: `t` is all of it, `e` the events, `o` otherData.
  bool holds(const std::string& condition) const {
    const std::string program =
        std::string("import json\nt = json.load(open(\"") + path + "\"))\no = t[\"otherData\"]\n" +
        "e = [x for x in t[\"traceEvents\"] if x[\"ph\"] != \"M\"]\n" +
        "n = [x[\"name\"] for x in e]\na = [x[\"args\"] for x in e]\nassert (" + condition +
        "), (o, e[:9])\n";
    return std::system(("python3 -c '" + program + "'").c_str()) == 0;
  }
};

char g_error[512];
bool started(const TraceFile& t) {
  return trace_start(t.rank, 4, t.prefix, g_error, sizeof g_error);
}

START_TEST(events_come_out_in_order_with_their_arguments) {
  TraceFile t(3);
  ck_assert(started(t));
  TraceMessage m;
  m.protocol = TraceProtocol::kRendezvous;
  m.tag = 42;
  m.bytes = 65536;
  m.sequence = trace_next_sent(2);
  m.request = 7;
  trace_message(TraceEvent::kSendBegin, 2, m);
  trace(TraceEvent::kArmed);
  trace(TraceEvent::kRead, 2, static_cast<std::uint64_t>(-EAGAIN), 8192);
  trace_state(TraceEvent::kPeerState, 1, "up", "lost", -1, ECONNRESET);
  m.error = 5;
  trace_message(TraceEvent::kSendEnd, 2, m);
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert(t.holds(R"((o["rank"], o["size"], o["events"], o["overwritten"]) == (3, 4, 5, 0))"));
  ck_assert(t.holds(R"(n == ["send rendezvous", "armed", "read", "peer", "send rendezvous"])"));
  ck_assert(t.holds(
      R"("".join(x["ph"] for x in e) == "biiie" and all((x["pid"], x["tid"]) == (3, 0) for x in e))"));
  ck_assert(t.holds(
      R"([x["ts"] for x in e] == sorted(x["ts"] for x in e) and o["start_us"] <= e[0]["ts"])"));
  ck_assert(t.holds(
      R"(a[0] == {"peer": 2, "protocol": "rendezvous", "tag": 42, "sequence": 1, "bytes": 65536, "request": 7})"));
  ck_assert(t.holds(R"(e[0]["id2"] == e[4]["id2"] and a[4]["error"] == 5)"));
  ck_assert(t.holds(R"(a[2] == {"peer": 2, "bytes": -11, "room": 8192})"));
  ck_assert(t.holds(
      R"(a[3] == {"peer": 1, "from": "up", "to": "lost", "connection": -1, "error": 104})"));
}
END_TEST

START_TEST(off_records_nothing) {
  ck_assert(!g_trace_on);
  trace(TraceEvent::kArmed);  // would crash: there is no ring
  trace_yield();
  ck_assert_int_eq(trace_finish(), 0);
  TraceFile t(0);
  ck_assert(started(t));
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert(t.holds("e == []"));
  ck_assert(!g_trace_on);
  trace(TraceEvent::kArmed);
}
END_TEST

START_TEST(ring_keeps_the_last_events_and_says_how_many_it_lost) {
  TraceFile t(0);
  ck_assert(started(t));
  for (std::uint64_t i = 0; i < kTraceRecords + 1000; ++i) trace(TraceEvent::kWrite, 0, i, 0);
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert(t.holds(
      R"((o["events"], o["overwritten"]) == (66536, 1000) and [x["bytes"] for x in a] == list(range(1000, 66536)))"));
}
END_TEST

// A slice that ends without having begun would end another one in a viewer.
START_TEST(end_whose_beginning_was_overwritten_is_left_out) {
  TraceFile t(0);
  ck_assert(started(t));
  trace(TraceEvent::kSleep);
  for (std::uint32_t i = 0; i < kTraceRecords - 3; ++i) trace(TraceEvent::kArmed);
  trace(TraceEvent::kSleepEnd);
  trace(TraceEvent::kSleep);
  trace(TraceEvent::kSleepEnd);
  trace(TraceEvent::kSleepEnd);
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert(t.holds(R"("".join(x["ph"] for x in e).replace("i", "") == "BE")"));
}
END_TEST

START_TEST(numbers_of_messages_are_by_rank_and_direction_and_begin_anew_with_the_trace) {
  TraceFile t(0);
  ck_assert(started(t));
  ck_assert_uint_eq(trace_next_sent(1), 1);
  ck_assert_uint_eq(trace_next_sent(1), 2);
  ck_assert_uint_eq(trace_next_sent(3), 1);
  ck_assert_uint_eq(trace_next_arrived(1), 1);
  ck_assert_uint_eq(trace_next_sent(4), 0);  // of another job
  ck_assert_uint_eq(trace_next_arrived(-1), 0);
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert(started(t));
  ck_assert_uint_eq(trace_next_sent(1), 1);
  ck_assert_int_eq(trace_finish(), 0);
}
END_TEST

START_TEST(yields_in_a_row_are_one_event) {
  TraceFile t(0);
  ck_assert(started(t));
  for (int i = 0; i < 100; ++i) trace_yield();
  trace(TraceEvent::kArmed);
  trace_yield();
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert(t.holds(
      R"(n == ["yield", "armed", "yield"] and (a[0]["times"], a[2]["times"]) == (100, 1))"));
  ck_assert(t.holds(
      R"(e[0]["dur"] > 0 and e[0]["ts"] + e[0]["dur"] <= e[1]["ts"] and e[2]["dur"] == 0)"));
}
END_TEST

void handler(int) {
  trace(TraceEvent::kHandler, -1, SIGUSR2);
  trace(TraceEvent::kDrain);
  trace(TraceEvent::kHandlerEnd);
}

void* busy(void*) {
  trace(TraceEvent::kHelper);
  for (int i = 0; i < 10'000; ++i) trace(TraceEvent::kArmed, 1, 0, 0);
  trace(TraceEvent::kHelperEnd);
  return nullptr;
}

START_TEST(handler_and_threads_lose_nothing_and_have_tracks_of_their_own) {
  TraceFile t(0);
  signal(SIGUSR2, handler);
  ck_assert(started(t));
  trace(TraceEvent::kDisarmed);  // of the first thread
  pthread_t other;
  ck_assert_int_eq(pthread_create(&other, nullptr, busy, nullptr), 0);
  for (int i = 0; i < 10'000; ++i) {
    trace(TraceEvent::kDisarmed, 2, 0, 0);
    if (i % 100 == 0) raise(SIGUSR2);
  }
  pthread_join(other, nullptr);
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert(t.holds(
      R"([n.count(x) for x in ("armed", "disarmed", "drain", "signal handler")] == [10000, 10001, 100, 200])"));
  ck_assert(t.holds(
      R"(all(x["tid"] == {"armed": 2, "helper": 2, "disarmed": 0}.get(x["name"], 1) for x in e))"));
  ck_assert(t.holds(
      R"(sorted(x["args"]["name"].rstrip("0123456789") for x in t["traceEvents"] if x["name"] == "thread_name")
    == ["helper thread ", "signal handler in thread ", "thread "])"));
}
END_TEST

// A timer interrupts the making of records at every place: each is whole, and the file's times are
// in order.
void busy_handler(int) {
  trace(TraceEvent::kHandler, -1, SIGALRM);
  trace(TraceEvent::kWrite, 0, 77, 77);
  trace(TraceEvent::kHandlerEnd);
}

START_TEST(records_that_a_handler_interrupts_are_whole) {
  TraceFile t(0);
  signal(SIGALRM, busy_handler);
  ck_assert(started(t));
  const itimerval often = {{0, 50}, {0, 50}}, never = {};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (std::uint64_t i = 0; i < 400'000; ++i) trace(TraceEvent::kRead, 1, i, i);
  setitimer(ITIMER_REAL, &never, nullptr);
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert(t.holds(
      R"(n.count("signal handler") > 2 and [x["ts"] for x in e] == sorted(x["ts"] for x in e))"));
  ck_assert(t.holds(
      R"(all((x["tid"], x["args"]["peer"]) == (0, 1) and x["args"]["bytes"] == x["args"]["room"] for x in e if x["name"] == "read"))"));
  ck_assert(t.holds(
      R"(all((x["tid"], x["args"]["bytes"]) == (1, 77) for x in e if x["name"] == "write"))"));
}
END_TEST

#if defined(HAS_TRAP_FLAG) && !defined(__SANITIZE_THREAD__)
// At the first instruction in the first run, at the next one in the next: a thread has one number.
START_TEST(handler_comes_at_every_instruction_of_a_first_record) {
  long instruction = 0;
  for (bool stopped = true; stopped;) {
    TraceFile t(0);
    ck_assert(started(t));
    OneStep::set(++instruction, [] { handler(SIGTRAP); });
    trace_on();
    trace(TraceEvent::kArmed);
    trace_off();
    stopped = OneStep::was_reached();
    ck_assert_int_eq(trace_finish(), 0);
    std::FILE* file = std::fopen(t.path, "r");
    ck_assert_ptr_nonnull(file);
    char text[4096];
    text[std::fread(text, 1, sizeof text - 1, file)] = '\0';
    std::fclose(file);
    ck_assert_ptr_nonnull(std::strstr(text, "\"tid\":0"));
    ck_assert_int_eq(std::strstr(text, "\"tid\":1") != nullptr, stopped);
    ck_assert_msg(
        std::strstr(text, "\"tid\":2") == nullptr && std::strstr(text, "\"tid\":3") == nullptr,
        "at instruction %ld", instruction);
  }
  ck_assert_int_gt(instruction, 10);
}
END_TEST
#endif

START_TEST(threads_beyond_the_last_place_share_it) {
  TraceFile t(0);
  ck_assert(started(t));
  pthread_barrier_t all_there;  // an ended thread's id may be the next one's
  pthread_barrier_init(&all_there, nullptr, 70);
  const auto record = [](void* barrier) -> void* {
    trace(TraceEvent::kArmed);
    pthread_barrier_wait(static_cast<pthread_barrier_t*>(barrier));
    return nullptr;
  };
  pthread_t threads[70];
  for (pthread_t& thread : threads)
    ck_assert_int_eq(pthread_create(&thread, nullptr, record, &all_there), 0);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert(t.holds(R"(n == ["armed"] * 70 and max(x["tid"] for x in e) == 126)"));
  ck_assert(t.holds(
      R"(all(x["args"]["name"] != "thread 0" for x in t["traceEvents"] if x["name"] == "thread_name"))"));
}
END_TEST

// MPI_Abort, and errors that are fatal, end a process by exit().
START_TEST(process_that_exits_without_finishing_writes_its_trace_and_its_children_do_not) {
  TraceFile t(0);
  const pid_t rank = fork();
  if (rank == 0) {
    if (!started(t)) _exit(1);
    trace(TraceEvent::kArmed);
    if (fork() == 0) exit(0);  // writes nothing
    int status;
    wait(&status);
    trace(TraceEvent::kDisarmed);
    struct stat file;
    if (stat(t.path, &file) != 0 || file.st_size != 0) _exit(2);
    exit(0);
  }
  int status;
  ck_assert_int_eq(waitpid(rank, &status, 0), rank);
  ck_assert_int_eq(status, 0);
  ck_assert(t.holds(R"(n == ["armed", "disarmed"])"));
}
END_TEST

START_TEST(every_event_and_every_protocol_has_a_name) {
  TraceFile t(0);
  ck_assert(started(t));
  trace_state(TraceEvent::kConnectionState, 0, "free", "connecting", 0, 0);
  trace_state(TraceEvent::kPeerState, 0, "idle", "making", -1, 0);
  for (int i = static_cast<int>(TraceEvent::kPeerState) + 1;
       i < static_cast<int>(TraceEvent::kCount_); ++i)
    trace(static_cast<TraceEvent>(i));
  for (int i = 0; i < static_cast<int>(TraceProtocol::kCount_); ++i) {
    TraceMessage m;
    m.protocol = static_cast<TraceProtocol>(i);
    trace_message(TraceEvent::kMatched, 0, m);
  }
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert(t.holds(
      R"(all(len(x["name"]) > 3 and x["cat"] for x in e) and len({x["protocol"] for x in a if "protocol" in x}) == 13)"));
}
END_TEST

START_TEST(without_a_name_the_file_is_lite_trace_in_the_working_directory) {
  ck_assert(trace_start(2, 4, "", g_error, sizeof g_error));
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert_int_eq(unlink("lite-trace.2.json"), 0);
}
END_TEST

// At the start, when the user can still do something about it; and it is said what is wrong.
START_TEST(file_that_cannot_be_made_is_an_error_at_the_start) {
  ck_assert(!trace_start(3, 4, "./no-such-directory/trace", g_error, sizeof g_error));
  ck_assert(!g_trace_on);
  ck_assert_ptr_nonnull(std::strstr(g_error, "LITE_TRACE=./no-such-directory/trace"));
  ck_assert_ptr_nonnull(std::strstr(g_error, "no-such-directory/trace.3.json"));
  ck_assert_ptr_nonnull(std::strstr(g_error, "No such file or directory"));
  ck_assert_int_eq(trace_finish(), 0);
}
END_TEST

START_TEST(full_disk_is_told_at_the_end_with_the_name_of_the_file) {
  TraceFile t(0);
  ck_assert_int_eq(symlink("/dev/full", t.path), 0);
  ck_assert(started(t));
  for (int i = 0; i < 10; ++i) trace(TraceEvent::kArmed);
  const std::string text = said([] { ck_assert_int_eq(trace_finish(), -ENOSPC); });
  for (const char* part : {"LITE_TRACE", static_cast<const char*>(t.path + 2),
                           "No space left on device", "10 events", "lost"})
    ck_assert_msg(text.find(part) != std::string::npos, "%s in %s", part, text.c_str());
  ck_assert(!g_trace_on);
}
END_TEST

START_TEST(directory_that_has_gone_is_told_at_the_end) {
  {
    TraceFile t(0);
    ck_assert(started(t));
    trace(TraceEvent::kArmed);
  }
  const std::string text = said([] { ck_assert_int_eq(trace_finish(), -ENOENT); });
  ck_assert_msg(text.find("trace.0.json failed: No such file") != std::string::npos, "%s",
                text.c_str());
}
END_TEST

START_TEST(trace_is_found_where_the_program_started) {
  TraceFile t(0);
  char before[4096];
  ck_assert_ptr_nonnull(getcwd(before, sizeof before));
  ck_assert(started(t));
  ck_assert_int_eq(chdir("/"), 0);
  trace(TraceEvent::kArmed);
  ck_assert_int_eq(trace_finish(), 0);
  ck_assert_int_eq(chdir(before), 0);
  ck_assert(t.holds("n == [\"armed\"]"));
}
END_TEST

// A name that nobody would choose, but a hang would be worse.
START_TEST(pipe_that_nobody_reads_is_an_error_not_a_hang) {
  TraceFile t(0);
  ck_assert_int_eq(mkfifo(t.path, 0600), 0);
  ck_assert(!started(t));
}
END_TEST

}  // namespace

int main() { return run_tests("trace"); }
