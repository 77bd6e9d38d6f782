// log.h: what is noted comes out as whole lines, few of them, and what was left out is counted.
#include "mplite/observe/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "mplite/net/loss.h"
#include "run_tests.h"

using namespace mplite;

namespace {

sockaddr_storage stranger() {
  sockaddr_storage address = {};
  auto* in = reinterpret_cast<sockaddr_in*>(&address);
  in->sin_family = AF_INET;
  in->sin_port = htons(4444);
  inet_pton(AF_INET, "10.0.0.9", &in->sin_addr);
  return address;
}

constexpr std::int64_t kT0 = 50'000'000'000;

// A log that prints into memory.
struct Printed {
  NoteLog log;
  int pipe_[2];
  char text[16384] = "";
  Printed() { ck_assert_int_eq(pipe2(pipe_, O_NONBLOCK | O_CLOEXEC), 0); }
  ~Printed() {
    close(pipe_[0]);
    close(pipe_[1]);
  }
  int print(std::int64_t now_ns, bool final = false) {
    const int lines = log.print(1, now_ns, pipe_[1], final);
    const ssize_t n = read(pipe_[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    int found = 0;
    for (const char* at = text; (at = std::strchr(at, '\n')) != nullptr; ++at) ++found;
    ck_assert_int_eq(found, lines);
    return lines;
  }
};

START_TEST(a_note_becomes_one_sentence_on_one_line) {
  const sockaddr_storage from = stranger();
  const struct {
    NoteCode code;
    int peer, error;
    HelloFault detail;
    const char* line;
  } table[] = {
      {NoteCode::kStrangerDropped, -1, 0, HelloFault::kMagic,
       "dropped a connection from 10.0.0.9 port 4444: not of this job (bad magic)"},
      {NoteCode::kStrangerDropped, 3, 0, HelloFault::kMac,
       "dropped the connection to rank 3 at 10.0.0.9 port 4444: not of this job (bad proof of the "
       "job's secret)"},
      {NoteCode::kHandshakeTimeout, -1, 0, HelloFault::kNone,
       "dropped a connection from 10.0.0.9 port 4444: it did not prove in time that it belongs to "
       "this job"},
      {NoteCode::kHandshakeClosed, -1, 0, HelloFault::kNone,
       "a connection from 10.0.0.9 port 4444 ended before it had proved that it belongs to this "
       "job (closed by the other side)"},
      {NoteCode::kHandshakeClosed, -1, ECONNRESET, HelloFault::kNone,
       "a connection from 10.0.0.9 port 4444 ended before it had proved that it belongs to this "
       "job (Connection reset by peer)"},
      {NoteCode::kTooManyStrangers, -1, 0, HelloFault::kNone,
       "dropped a connection from 10.0.0.9 port 4444: too many connections that have not proved "
       "that they belong to this job"},
      {NoteCode::kNoDescriptor, -1, EMFILE, HelloFault::kNone,
       "dropped a connection from 10.0.0.9 port 4444, before it had proved that it belongs to this "
       "job, for one of ours: Too many open files (raise the limit on open files: ulimit -n)"},
      {NoteCode::kAcceptFailed, -1, EMFILE, HelloFault::kNone,
       "cannot accept a connection: Too many open files (raise the limit on open files: ulimit "
       "-n)"},
      {NoteCode::kAddressSlow, 2, 0, HelloFault::kNone,
       "rank 2 does not answer at 10.0.0.9 port 4444: another of its addresses does"},
      {NoteCode::kAddressFailed, 2, EHOSTUNREACH, HelloFault::kNone,
       "rank 2 does not answer at 10.0.0.9 port 4444 (No route to host): its next address is "
       "tried"},
      {NoteCode::kPeerLost, 2, ETIMEDOUT, HelloFault::kNone,
       "lost rank 2 on host h2: Connection timed out"},
      {NoteCode::kPeerLost, 2, read_loss(-EFAULT), HelloFault::kNone,
       "lost rank 2 on host h2: the application's memory for data from it (the buffer of a pending "
       "receive, "
       "or a window) is not mapped or not writable: freed or unmapped too early, or a wrong "
       "address"},
      {NoteCode::kPeerLost, 2, write_loss(-EFAULT), HelloFault::kNone,
       "lost rank 2 on host h2: the application's memory with data for it (the buffer of a pending "
       "send, or a "
       "window) is not mapped: freed or unmapped too early, or a wrong address"},
      {NoteCode::kPeerLost, 2, read_loss(0), HelloFault::kNone,
       "lost rank 2 on host h2: Connection reset by peer"},
      {NoteCode::kPeerLost, 2, write_loss(-EPIPE), HelloFault::kNone,
       "lost rank 2 on host h2: Broken pipe"},
      {NoteCode::kBadFrame, 2, EPROTO, HelloFault::kNone,
       "rank 2 at 10.0.0.9 port 4444 sent what is no frame; its connection is closed"},
  };
  for (const auto& row : table) {
    Printed p;
    p.log.note(row.code, row.peer, row.error, &from, row.detail, "h2");
    ck_assert_int_eq(p.print(kT0), 1);
    char line[256];
    std::snprintf(line, sizeof line, "ch_lite[rank 1]: %s\n", row.line);
    ck_assert_str_eq(p.text, line);
    ck_assert(p.log.empty());
  }
}
END_TEST

START_TEST(nothing_noted_prints_nothing) {
  Printed p;
  ck_assert(p.log.empty());
  ck_assert_int_eq(p.print(kT0), 0);
  ck_assert_int_eq(p.print(kT0, true), 0);
}
END_TEST

START_TEST(notes_come_out_in_order) {
  Printed p;
  for (int i = 0; i < 3; ++i) p.log.note(NoteCode::kPeerLost, i, ECONNRESET);
  ck_assert_int_eq(p.print(kT0), 3);
  ck_assert_ptr_nonnull(std::strstr(p.text, "rank 0"));
  ck_assert(std::strstr(p.text, "lost rank 0") < std::strstr(p.text, "lost rank 1"));
  ck_assert(std::strstr(p.text, "lost rank 1") < std::strstr(p.text, "lost rank 2"));
}
END_TEST

START_TEST(a_flood_is_limited_and_its_rest_counted_when_the_period_is_over) {
  Printed p;
  const sockaddr_storage from = stranger();
  for (int i = 0; i < 20; ++i)
    p.log.note(NoteCode::kStrangerDropped, -1, 0, &from, HelloFault::kMagic);
  ck_assert_int_eq(p.print(kT0), NoteLog::kLinesPerPeriod);
  ck_assert(!p.log.empty());
  for (int i = 0; i < 20; ++i)
    p.log.note(NoteCode::kStrangerDropped, -1, 0, &from, HelloFault::kMagic);
  ck_assert_int_eq(p.print(kT0 + NoteLog::kPeriodNs - 1), 0);
  ck_assert_int_eq(p.print(kT0 + NoteLog::kPeriodNs), 1);
  ck_assert_str_eq(p.text, "ch_lite[rank 1]: 32 more notes like these were not printed\n");
  ck_assert(p.log.empty());
}
END_TEST

START_TEST(the_end_tells_what_was_left_out_at_once) {
  Printed p;
  for (int i = 0; i < 9; ++i) p.log.note(NoteCode::kPeerLost, i, ECONNRESET);
  ck_assert_int_eq(p.print(kT0, true), NoteLog::kLinesPerPeriod + 1);
  ck_assert_ptr_nonnull(std::strstr(p.text, "rank 1]: 1 more notes like these were not printed\n"));
}
END_TEST

START_TEST(what_the_ring_cannot_hold_is_counted) {
  Printed p;
  for (std::uint32_t i = 0; i < 3 * NoteLog::kNotes; ++i)
    p.log.note(NoteCode::kPeerLost, static_cast<int>(i), ECONNRESET);
  ck_assert_int_eq(p.print(kT0, true), NoteLog::kLinesPerPeriod + 1);
  ck_assert_ptr_nonnull(std::strstr(p.text, ": 184 more notes"));  // 3 * 64 - 8
  // The ring goes round.
  for (int round = 1; round < 5; ++round) {
    p.log.note(NoteCode::kPeerLost, 1000 + round, ECONNRESET);
    ck_assert_int_eq(p.print(kT0 + round * NoteLog::kPeriodNs), 1);
    char line[64];
    std::snprintf(line, sizeof line, "lost rank %d on host unnamed:", 1000 + round);
    ck_assert_ptr_nonnull(std::strstr(p.text, line));
  }
}
END_TEST

START_TEST(printing_to_nowhere_does_no_harm_and_keeps_errno) {
  NoteLog log;
  log.note(NoteCode::kPeerLost, 1, 99999);
  errno = 4711;
  ck_assert_int_eq(log.print(0, kT0, -1), 1);
  ck_assert_int_eq(errno, 4711);
  ck_assert(log.empty());
}
END_TEST

// A pipe keeps PIPE_BUF bytes together.
START_TEST(lines_are_written_whole_and_as_many_at_once_as_a_pipe_keeps_together) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += "line " + std::to_string(i) + std::string(static_cast<std::size_t>(i), '.') + "\n";
  int ends[2];
  ck_assert_int_eq(pipe2(ends, O_DIRECT | O_CLOEXEC), 0);  // a read takes what one write wrote
  errno = 4711;
  write_lines(ends[1], text.data(), text.size());
  ck_assert_int_eq(errno, 4711);
  close(ends[1]);
  std::string got;
  char part[2 * PIPE_BUF];
  int writes = 0;
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0; ++writes) {
    ck_assert_int_le(n, PIPE_BUF);
    ck_assert_int_eq(part[n - 1], '\n');
    got.append(part, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  ck_assert_str_eq(got.c_str(), text.c_str());
  ck_assert_int_eq(writes, static_cast<int>(text.size() / PIPE_BUF) + 1);
  write_lines(-1, text.data(), text.size());  // to nowhere
  ck_assert_int_eq(errno, 4711);
}
END_TEST

}  // namespace

int main() { return run_tests("log"); }
