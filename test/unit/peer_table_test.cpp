// The table of peers: windows, losses, processes of other jobs and their numbers; queues by peer.
#include <cerrno>
#include <vector>

#include "ch_lite/core/peer_table.h"
#include "run_tests.h"

using namespace ch_lite;

namespace {

constexpr std::uint64_t kWindow = 1 << 20;

}  // namespace

START_TEST(pair_uses_the_lesser_window) {
  PeerTable peers;
  const std::uint64_t windows[] = {kWindow, kWindow / 4, kWindow * 4};
  ck_assert(peers.start(3, kWindow, windows));
  ck_assert_int_eq(peers.count(), 3);
  ck_assert_uint_eq(peers[0].credits[kPointToPoint].window(), kWindow);
  ck_assert_uint_eq(peers[1].credits[kActive].window(), kWindow / 4);
  ck_assert_uint_eq(peers[2].credits[kPointToPoint].window(), kWindow);
  ck_assert_int_eq(peers.number_of(peers[2]), 2);
}
END_TEST

START_TEST(peer_is_lost_once) {
  PeerTable peers;
  ck_assert(peers.start(3, kWindow, nullptr));
  ck_assert(peers.lose(1, ECONNRESET, false));
  ck_assert(!peers.lose(1, EPROTO, false));
  ck_assert_int_eq(peers[1].lost, ECONNRESET);
  ck_assert_int_eq(peers.lost_count(), 1);
  ck_assert(peers.lose(2, 0, true));  // departed: no loss to those who wait for anybody
  ck_assert_int_eq(peers[2].lost, EPROTO);
  ck_assert_int_eq(peers.lost_count(), 1);
}
END_TEST

START_TEST(process_of_another_job_gets_the_next_number) {
  PeerTable peers;
  ck_assert(peers.start(2, kWindow, nullptr));
  ck_assert(!peers.introduce(2, kWindowFloorBytes - 1));
  ck_assert_int_eq(peers.count(), 2);
  ck_assert(peers.introduce(2, kWindowFloorBytes));
  ck_assert_int_eq(peers.count(), 3);
  ck_assert_int_eq(peers.size(), 2);
  ck_assert_uint_eq(peers[2].credits[kPointToPoint].window(), kWindowFloorBytes);
}
END_TEST

START_TEST(number_is_reused_when_nothing_is_left_of_the_process_before) {
  PeerTable peers;
  ck_assert(peers.start(2, kWindow, nullptr));
  ck_assert(peers.introduce(2, kWindow));
  ck_assert(peers.lose(2, ECONNRESET, false));
  peers[2].offers = 1;
  ck_assert(!peers.introduce(2, kWindow));
  peers[2].offers = 0;
  ck_assert(peers.introduce(2, kWindow));
  ck_assert_int_eq(peers[2].lost, 0);
  ck_assert_int_eq(peers.lost_count(), 0);
}
END_TEST

START_TEST(origin_may_start_what_its_window_allows) {
  RmaOrigin origin;
  std::vector<Request> requests(kSmallPutsPerPeer);
  for (Request& r : requests) {
    ck_assert(origin.may_start(true));
    origin.start_put(&r);
  }
  ck_assert(!origin.may_start(true));
  ck_assert(origin.may_start(false));
  ck_assert_ptr_eq(origin.end_put(), &requests[0]);  // in order
  ck_assert_ptr_eq(origin.end_put(), &requests[1]);
  ck_assert(origin.may_start(true));
  origin.forget_puts();
  ck_assert(origin.is_clean());
  for (std::uint32_t i = 0; i < kAccessesPerPeer; ++i) origin.start_access(&requests[i]);
  ck_assert(!origin.may_start(false));
  origin.end_access(&requests[0]);
  ck_assert(origin.may_start(false));
}
END_TEST

START_TEST(queue_keeps_the_order_when_one_is_removed) {
  MessageQueue queue;
  std::vector<Message> messages(3);
  for (const int removed : {0, 1, 2}) {
    for (Message& m : messages) queue.push(&m);
    queue.remove(&messages[static_cast<std::size_t>(removed)]);
    for (int i = 0; i < 3; ++i) {
      if (i != removed) ck_assert_ptr_eq(queue.pop(), &messages[static_cast<std::size_t>(i)]);
    }
    ck_assert(queue.empty());
  }
}
END_TEST

int main() { return run_tests("peer table"); }
