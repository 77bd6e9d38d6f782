// channel_report.cpp: the words for a connection in each of its states.
#include <cstring>
#include <string>
#include <vector>

#include "sim_ranks.h"

#include "run_tests.h"

using namespace mplite;

namespace {

const char kWho[] = "rank 1 on host simulated (10.0.0.2 port ";

// Of rank 1 at rank 0, behind who it is.
std::string report(SimRanks& r) {
  r.as(0);
  char text[384];
  Hold hold(r.engine(0).gate());
  ck_assert_ptr_eq(MPID_ChannelReport(1, text, sizeof text), text);
  ck_assert_int_eq(std::strncmp(text, kWho, sizeof kWho - 1), 0);
  return std::strstr(text, "): ") + 3;
}
void ck_assert_report(SimRanks& r, const char* wanted) {
  const std::string found = report(r);
  ck_assert_str_eq(found.c_str(), wanted);
}
int underway(SimRanks& r) {
  r.as(0);
  Hold hold(r.engine(0).gate());
  return MPID_ChannelUnderway(1);
}

START_TEST(peer_that_nobody_has_dealt_with_is_not_connected) {
  SimRanks r;
  ck_assert_report(r, "not connected, 0 bytes to send");
  ck_assert_int_eq(underway(r), 0);
}
END_TEST

START_TEST(connection_that_is_up_has_what_the_kernel_knows) {
  SimRanks r;
  r.world.resent = 2;
  r.connect(0, 1);
  ck_assert_report(r,
                   "connected, 0 bytes to send, round trip 45 us, delivers 1200.0 MB/s, 3 packets "
                   "not acknowledged, 2 sent again, nothing from there for 1.5 s");
  ck_assert_int_eq(underway(r), 1);
}
END_TEST

START_TEST(what_waits_to_be_sent_is_counted_cut_into_frames_or_not) {
  sim::Faults f = SimRanks::no_faults();
  f.pipe_max = f.pipe_min = 1'000;
  SimRanks r(2, f);
  r.connect(0, 1);
  const std::vector<std::uint8_t> data(20'000'000, 1);
  const std::uint64_t before = r.engine(0).counters().bytes_out;
  SendOp* op = nullptr;
  ck_assert_int_eq(r.engine(0).send(1, FrameKind::kTransfer, 1, data.data(), data.size(), op), 0);
  ck_assert_ptr_nonnull(op);
  Hold hold(r.engine(0).gate());
  const std::uint64_t queued = r.engine(0).report(1).queued_bytes;
  const std::uint64_t sent = r.engine(0).counters().bytes_out - before;
  ck_assert_uint_gt(sent, 0);
  ck_assert_uint_lt(sent, 2'000);
  ck_assert_uint_ge(queued, data.size() - sent);
  ck_assert_uint_le(queued, data.size());
  ck_assert_uint_eq(report(r).find("connected, 199"), 0);
  ck_assert_int_eq(underway(r), 2);
  r.engine(0).release(op);
}
END_TEST

START_TEST(peer_that_is_being_connected_has_its_bytes_queued) {
  SimRanks r;
  const std::vector<std::uint8_t> data(1'000, 1);
  SendOp* op = nullptr;
  ck_assert_int_eq(r.engine(0).send(1, FrameKind::kChannel, 0, data.data(), data.size(), op), 0);
  ck_assert_ptr_nonnull(op);
  ck_assert_report(r, "being connected, 1000 bytes to send");
  ck_assert_int_eq(underway(r), 2);
  r.engine(0).release(op);
}
END_TEST

START_TEST(lost_peer_has_the_reason) {
  SimRanks r;
  r.connect(0, 1);
  {
    Hold hold(r.engine(0).gate());
    r.engine(0).give_up(1, ETIMEDOUT);
  }
  ck_assert_report(r, "lost (Connection timed out), 0 bytes to send");
  ck_assert_int_eq(underway(r), 2);
}
END_TEST

}  // namespace

int main() { return run_tests("channel_report"); }
