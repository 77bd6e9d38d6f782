// Active messages that have arrived: in order per peer, and peers take turns.
#include <vector>

#include "ch_lite/core/am_lane.h"
#include "run_tests.h"

using namespace ch_lite;

START_TEST(peers_take_turns) {
  AmLane lane;
  Peer a, b;
  std::vector<Message> messages(4);
  lane.append(a, &messages[0]);
  lane.append(a, &messages[1]);
  lane.append(b, &messages[2]);
  ck_assert_uint_eq(lane.waiting(), 3);
  ck_assert_uint_eq(lane.turns(), 2);
  Peer& first = lane.next_turn();
  ck_assert_ptr_eq(&first, &a);
  ck_assert_ptr_eq(first.am_arrived.front(), &messages[0]);
  lane.remove(first, &messages[0]);
  lane.take_turn(first);
  ck_assert_ptr_eq(&lane.next_turn(), &b);
  ck_assert_ptr_eq(&lane.next_turn(), &a);
  ck_assert_uint_eq(lane.turns(), 0);
  ck_assert_uint_eq(lane.waiting(), 2);
}
END_TEST

START_TEST(peer_that_is_out_of_turns_comes_back_with_its_next_message) {
  AmLane lane;
  Peer a;
  std::vector<Message> messages(2);
  lane.append(a, &messages[0]);
  ck_assert_ptr_eq(&lane.next_turn(), &a);
  ck_assert(!a.on_am_list);
  lane.remove(a, &messages[0]);
  lane.append(a, &messages[1]);
  ck_assert(a.on_am_list);
  ck_assert_uint_eq(lane.turns(), 1);
}
END_TEST

START_TEST(message_is_removed_from_any_place) {
  AmLane lane;
  Peer a;
  std::vector<Message> messages(3);
  for (Message& m : messages) lane.append(a, &m);
  lane.remove(a, &messages[1]);
  lane.remove(a, &messages[2]);
  ck_assert_ptr_eq(a.am_arrived.front(), &messages[0]);
  ck_assert_ptr_eq(a.am_arrived.back(), &messages[0]);
  ck_assert_uint_eq(lane.waiting(), 1);
}
END_TEST

int main() { return run_tests("active-message lane"); }
