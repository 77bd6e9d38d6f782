// Active messages that have arrived: in order per peer, and peers take turns.
#include <vector>

#include "ch_lite/core/active_arrivals.h"
#include "run_tests.h"

using namespace ch_lite;

START_TEST(peers_take_turns) {
  ActiveArrivals arrivals;
  Peer a, b;
  std::vector<Message> messages(4);
  arrivals.append(a, &messages[0]);
  arrivals.append(a, &messages[1]);
  arrivals.append(b, &messages[2]);
  ck_assert_uint_eq(arrivals.waiting(), 3);
  ck_assert_uint_eq(arrivals.turns(), 2);
  Peer& first = arrivals.next_turn();
  ck_assert_ptr_eq(&first, &a);
  ck_assert_ptr_eq(first.am_arrived.front(), &messages[0]);
  arrivals.remove(first, &messages[0]);
  arrivals.take_turn(first);
  ck_assert_ptr_eq(&arrivals.next_turn(), &b);
  ck_assert_ptr_eq(&arrivals.next_turn(), &a);
  ck_assert_uint_eq(arrivals.turns(), 0);
  ck_assert_uint_eq(arrivals.waiting(), 2);
}
END_TEST

START_TEST(peer_that_is_out_of_turns_comes_back_with_its_next_message) {
  ActiveArrivals arrivals;
  Peer a;
  std::vector<Message> messages(2);
  arrivals.append(a, &messages[0]);
  ck_assert_ptr_eq(&arrivals.next_turn(), &a);
  ck_assert(!a.on_am_list);
  arrivals.remove(a, &messages[0]);
  arrivals.append(a, &messages[1]);
  ck_assert(a.on_am_list);
  ck_assert_uint_eq(arrivals.turns(), 1);
}
END_TEST

START_TEST(message_is_removed_from_any_place) {
  ActiveArrivals arrivals;
  Peer a;
  std::vector<Message> messages(3);
  for (Message& m : messages) arrivals.append(a, &m);
  arrivals.remove(a, &messages[1]);
  arrivals.remove(a, &messages[2]);
  ck_assert_ptr_eq(a.am_arrived.front(), &messages[0]);
  ck_assert_ptr_eq(a.am_arrived.back(), &messages[0]);
  ck_assert_uint_eq(arrivals.waiting(), 1);
}
END_TEST

int main() { return run_tests("active messages that have arrived"); }
