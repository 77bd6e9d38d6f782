// connection.h: the frames of a connection on their way out, and the list of connections in
// handshake.
#include "mplite/engine/connection.h"

#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(frames_leave_in_the_order_in_which_they_were_added) {
  ConnectionTx tx;
  std::uint64_t added = 0, left = 0;
  for (int round = 0; round < 5; ++round) {  // round the ring more than once
    while (tx.count < ConnectionTx::kFrames) tx.add().sent = added++;
    for (int i = 0; i < tx.count; ++i) ck_assert_uint_eq(tx.frame(i).sent, left + i);
    for (int i = 0; i < 3; ++i) {
      ck_assert_uint_eq(tx.frame(0).sent, left++);
      tx.pop();
    }
  }
  ck_assert_uint_eq(added - left, static_cast<std::uint64_t>(tx.count));
}
END_TEST

START_TEST(handshakes_are_listed_oldest_first_and_accepted_ones_counted) {
  Connection c[3];
  HandshakeList list;
  c[0].handshake.ours = true;
  for (Connection& one : c) list.add(one);
  ck_assert_ptr_eq(list.first(), &c[0]);
  ck_assert_uint_eq(list.count(), 3);
  ck_assert_uint_eq(list.accepted(), 2);
  list.remove(c[1]);
  list.add(c[1]);
  ck_assert_ptr_eq(c[2].list_next, &c[1]);
  list.remove(c[0]);
  ck_assert_uint_eq(list.count(), 2);
  ck_assert_uint_eq(list.accepted(), 2);
}
END_TEST

START_TEST(the_oldest_caller_without_a_hello_is_evicted_first_then_the_oldest) {
  constexpr std::int64_t kNow = 5'000'000'000;
  Connection c[4];
  HandshakeList list;
  c[0].handshake.ours = true;
  for (Connection& one : c) one.state = ConnectionState::kAwaitHello;
  c[1].state = ConnectionState::kAwaitProof;
  c[2].handshake.heard_bytes = 1;
  for (Connection& one : c) {
    one.handshake.deadline_ns = kNow + HandshakeList::kHandshakeNs;
    list.add(one);
  }
  for (Connection* expected : {&c[2], &c[3]}) {
    ck_assert(list.has_silent());
    ck_assert_ptr_eq(list.first_to_evict(kNow), expected);
    list.remove(*expected);
  }
  ck_assert(!list.has_silent());
  ck_assert_ptr_null(list.first_to_evict(kNow + HandshakeList::kProofNs - 1));
  ck_assert_ptr_eq(list.first_to_evict(kNow + HandshakeList::kProofNs), &c[1]);
  list.remove(c[1]);
  ck_assert_ptr_null(list.first_to_evict(kNow + HandshakeList::kProofNs));
}
END_TEST

START_TEST(tcp_is_up_for_ours_from_the_hello_on) {
  Connection c;
  for (const ConnectionState state : {ConnectionState::kFree, ConnectionState::kConnecting,
                                      ConnectionState::kAwaitHello, ConnectionState::kAwaitProof}) {
    c.state = state;
    ck_assert(!is_tcp_up(c));
  }
  for (const ConnectionState state :
       {ConnectionState::kAwaitChallenge, ConnectionState::kAwaitAccept, ConnectionState::kUp}) {
    c.state = state;
    ck_assert(is_tcp_up(c));
  }
}
END_TEST

}  // namespace

int main() { return run_tests("connection"); }
