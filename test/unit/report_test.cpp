// report.h: what a rank waits for, word for word, and what is left out of long lists.
#include "ch_lite/device/report.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "device_fixture.h"
#include "mplite/observe/trace.h"

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

DeviceOptions with_ages() {
  DeviceOptions o = usual();
  o.notes_age = true;
  return o;
}

void name_context(std::uint32_t context, char* text, std::size_t size) {
  std::snprintf(text, size, context == 5 ? "MPI_COMM_WORLD" : "a collective of MPI_COMM_WORLD");
}
void name_contexts(World& w, int rank) {
  w.as(rank);
  lite_set_context_name(name_context);
}

// A call that waits for a minute, five seconds of it quietly.
ch_lite::WaitingCall call(const char* name, bool started = false) {
  ch_lite::WaitingCall c;
  c.host = "a";
  c.name = name;
  c.started_newest = started;
  c.now_ns = mplite::trace_now_ns() + 60 * kSecond;
  c.began_ns = c.now_ns - 60 * kSecond;
  c.moved_ns = c.now_ns - 5 * kSecond;
  c.since = "12:00";
  return c;
}

std::string report(World& w, int rank, const ch_lite::WaitingCall& c) {
  w.as(rank);
  std::vector<char> text(ch_lite::kReportBytes);
  mplite::Hold hold(device(w, rank).gate());
  const std::size_t length = device(w, rank).format_report(c, text.data(), text.size());
  ck_assert_uint_eq(length, std::strlen(text.data()));
  ck_assert_int_eq(text[length - 1], '\n');
  return {text.data(), length};
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
// Whether it is there as a whole line, behind rank and host. Numbers of seconds are the test's.
bool has_line(const std::string& text, int rank, const std::string& line) {
  return has("\n" + text,
             ("\nch_lite[rank " + std::to_string(rank) + " on a]: " + line + "\n").c_str());
}
int lines(const std::string& text, const char* part) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

// A receive that nobody sends for, posted by this rank.
lite_request* receive(World& w, int rank, int source, int tag, void* into, std::size_t bytes,
                      std::uint32_t context = 5) {
  w.as(rank);
  lite_request* request = nullptr;
  lite_status status;
  const lite_envelope e = {context, source, tag};
  ck_assert_int_eq(lite_irecv(into, bytes, source, &e, into, &status, &request), LITE_PENDING);
  return request;
}
lite_request* send(World& w, int rank, int to, int tag, const std::vector<std::uint8_t>& data,
                   unsigned flags = 0) {
  w.as(rank);
  lite_request* request = nullptr;
  const lite_envelope e = {5, rank, tag};
  lite_isend(data.data(), data.size(), to, &e, flags, nullptr, &request);
  return request;
}

START_TEST(two_ranks_that_both_receive_say_for_whom_they_wait) {
  auto w = make_world(2, with_ages());
  int into[2];
  for (const int rank : {0, 1}) {
    name_contexts(*w, rank);
    receive(*w, rank, 1 - rank, rank == 0 ? 5 : 7, &into[rank], sizeof into[rank]);
  }
  w->settle();
  const std::string zero = report(*w, 0, call("Recv", true));
  ck_assert_msg(has_line(zero, 0,
                         "waits in MPI_Recv for rank 1, tag 5 in MPI_COMM_WORLD: nothing sent or "
                         "received for 5.0 s, in this call since 12:00 (60.0 s)"),
                "%s", zero.c_str());
  ck_assert(has_line(zero, 0,
                     "  open: 1 receives, 0 sends, 0 active messages, 0 one-sided; here and not "
                     "received: 0 messages, 0 active messages; 0 bytes held"));
  ck_assert(has_line(zero, 0,
                     "  receive from rank 1, tag 5 in MPI_COMM_WORLD, room for 4 bytes, begun 60.0 "
                     "s ago: no message has come"));
  ck_assert(has_line(zero, 0,
                     "  connection to rank 1 on host fake: connected; credit for 1048576 of "
                     "1048576 bytes"));
  ck_assert_int_eq(lines(zero, "\n"), 4);
  const std::string one = report(*w, 1, call("Recv", true));
  ck_assert(has(one, "[rank 1 on a]: waits in MPI_Recv for rank 0, tag 7 in MPI_COMM_WORLD: "));
}
END_TEST

START_TEST(call_that_waits_for_older_requests_does_not_name_the_newest) {
  auto w = make_world(3, with_ages());
  int into[2];
  receive(*w, 0, 1, 5, &into[0], 4);
  receive(*w, 0, 2, 6, &into[1], 4);
  const std::string waitall = report(*w, 0, call("Waitall"));
  ck_assert(has(waitall, "]: waits in MPI_Waitall for requests of 2: nothing"));
  // newest first
  ck_assert_uint_lt(waitall.find("receive from rank 2, tag 6"),
                    waitall.find("receive from rank 1, tag 5"));
  ck_assert(has(report(*w, 0, call("Recv", true)), "]: waits in MPI_Recv for rank 2, tag 6 in"));
  ck_assert(has(report(*w, 0, call(nullptr)), "]: waits in MPI for requests of 2: nothing"));
}
END_TEST

START_TEST(wildcards_and_ranks_of_communicators_are_named) {
  auto w = make_world(3, with_ages());
  int into[2];
  w->as(0);
  lite_request* request = nullptr;
  lite_status status;
  const lite_envelope any = {9, LITE_ANY_SOURCE, LITE_ANY_TAG}, other = {9, 0, 4};
  lite_irecv(&into[0], 4, -1, &any, nullptr, &status, &request);
  const std::string wild = report(*w, 0, call("Recv", true));
  ck_assert(has(wild, "waits in MPI_Recv for any rank, any tag in context 9: "));
  // whoever is connected might send
  ck_assert(has(wild, "connection to rank 1 on host fake"));
  ck_assert(has(wild, "connection to rank 2 on host fake"));
  lite_irecv(&into[1], 4, 2, &other, nullptr, &status, &request);
  ck_assert(has(report(*w, 0, call("Recv", true)),
                "waits in MPI_Recv for rank 2, tag 4 in context 9 (source 0 there): "));
}
END_TEST

START_TEST(calls_that_do_not_wait_are_told_without_times) {
  auto w = make_world(2, usual());
  int word = 0;
  receive(*w, 0, 1, 5, &word, sizeof word);
  ch_lite::WaitingCall c = call(nullptr);
  c.polls = true;
  const std::string text = report(*w, 0, c);
  ck_assert_msg(has_line(text, 0,
                         "polls in calls that do not wait (MPI_Test, MPI_Iprobe) for rank 1, tag 5 "
                         "in context 5"),
                "%s", text.c_str());
  ck_assert(has(text, "]:   receive from rank 1, tag 5 in context 5, room for 4 bytes"));
}
END_TEST

START_TEST(probe_says_what_it_looks_for) {
  auto w = make_world(2, with_ages());
  w->as(0);
  lite_status status;
  const lite_envelope e = {5, 1, 11};
  ck_assert_int_eq(lite_iprobe(1, &e, &status), 0);
  name_contexts(*w, 0);
  const std::string text = report(*w, 0, call("Probe"));
  ck_assert(has(text, "waits in MPI_Probe for rank 1, tag 11 in MPI_COMM_WORLD: "));
  ck_assert(has(text, "connection to rank 1"));
}
END_TEST

START_TEST(nothing_open_is_told_as_such) {
  auto w = make_world(2, with_ages());
  const std::string text = report(*w, 0, call("Win_lock"));
  ck_assert(has(text, "waits in MPI_Win_lock: nothing sent"));
  ck_assert(has(text, "open: 0 receives, 0 sends"));
}
END_TEST

START_TEST(sends_say_what_they_wait_for) {
  auto w = make_world(2, with_ages());
  const auto small = pattern(100, 1), eager = pattern(kEager, 2), large = pattern(300000, 3);
  w->hold_bulk = true;
  send(*w, 0, 1, 1, small, LITE_SEND_SYNC);
  send(*w, 0, 1, 2, eager);
  send(*w, 0, 1, 3, large);
  send(*w, 0, 0, 4, large);
  const std::string text = report(*w, 0, call("Send", true));
  ck_assert_msg(has(text, "waits in MPI_Send for rank 0 to receive, tag 4 in context 5: "), "%s",
                text.c_str());
  ck_assert(has(text,
                "  send to rank 1, tag 1 in context 5, 100 bytes, begun 60.0 s ago: "
                "synchronous, sent, waits to be received there\n"));
  ck_assert(has(text,
                "  send to rank 1, tag 2 in context 5, 65536 bytes, begun 60.0 s ago: "
                "eager, its data is being sent\n"));
  ck_assert(has(text,
                "  send to rank 1, tag 3 in context 5, 300000 bytes, begun 60.0 s ago: by "
                "rendezvous, waits to be received there (clear to send)\n"));
  ck_assert(has(text,
                "  send to rank 0, tag 4 in context 5, 300000 bytes, begun 60.0 s ago: to "
                "itself, waits to be received\n"));
  ck_assert(has(text, "open: 0 receives, 4 sends, "));
  ck_assert(has(text, "rank 1 on host fake: busy; "));
}
END_TEST

START_TEST(messages_that_nobody_receives_are_listed) {
  auto w = make_world(2, usual());
  const auto small = pattern(100, 1), large = pattern(300000, 3);
  send(*w, 1, 0, 1, small);
  send(*w, 1, 0, 3, large);
  w->settle();
  const std::string text = report(*w, 0, call("Barrier"));
  ck_assert_msg(has(text, "  not received: from rank 1, tag 1 in context 5, 100 bytes: is here\n"),
                "%s", text.c_str());
  ck_assert(has(text,
                "  not received: from rank 1, tag 3 in context 5, 300000 bytes: a part is "
                "here, the rest is at its sender\n"));
  ck_assert(has(text, "here and not received: 2 messages, 0 active messages; "));
  ck_assert(!has(text, "; 0 bytes held"));
}
END_TEST

START_TEST(without_ages_none_is_told) {
  auto w = make_world(2, usual());
  int into = 0;
  receive(*w, 0, 1, 5, &into, sizeof into);
  const std::string text = report(*w, 0, call("Recv", true));
  ck_assert(has(text, "room for 4 bytes: no message has come"));
  ck_assert(!has(text, "begun"));
}
END_TEST

START_TEST(long_lists_are_cut_and_the_rest_is_counted) {
  constexpr int kMany = 1000;
  auto w = make_world(60, with_ages());
  std::vector<int> into(kMany);
  const auto small = pattern(10, 1);
  for (int i = 0; i < kMany; ++i)
    receive(*w, 0, 1 + i % 59, i, &into[static_cast<std::size_t>(i)], 4);
  for (int i = 0; i < 100; ++i) send(*w, 1, 0, kMany + i, small);
  w->settle();
  const std::string text = report(*w, 0, call("Waitall"));
  ck_assert_int_eq(lines(text, "]:   receive from "), ch_lite::kReportLines);
  ck_assert(has_line(text, 0, "  and 968 more requests"));
  ck_assert(has(text, "tag 999 in context 5, room"));  // the newest
  ck_assert_int_eq(lines(text, "]:   not received: "), ch_lite::kReportLines);
  ck_assert(has_line(text, 0, "  and 68 more messages not received"));
  ck_assert_int_eq(lines(text, "]:   connection to "), ch_lite::kReportLines);
  ck_assert(has_line(text, 0, "  and 27 more connections"));
  ck_assert(has(text, "open: 1000 receives"));
}
END_TEST

}  // namespace

int main() { return run_tests("report"); }
