// address_turns.h: in which order a peer's addresses are tried.
#include "mplite/engine/address_turns.h"

#include <cerrno>
#include <initializer_list>
#include <vector>

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::uint8_t bits(std::initializer_list<int> numbers) {
  std::uint8_t all = 0;
  for (const int i : numbers) all = static_cast<std::uint8_t>(all | 1u << i);
  return all;
}

void expect_round(AddressTurns& turns, std::initializer_list<int> order) {
  int left = static_cast<int>(order.size());
  for (const int number : order) {
    ck_assert_int_eq(turns.current(), number);
    turns.failed(turns.current(), ETIMEDOUT, false);
    ck_assert_int_eq(turns.next(), --left > 0);
  }
}

START_TEST(one_address_is_a_round_of_its_own) {
  AddressTurns turns;
  turns.start(1, 0);
  for (int round = 0; round < 300; ++round) expect_round(turns, {0});
  ck_assert_int_eq(turns.rounds(), 255);
}
END_TEST

START_TEST(addresses_that_led_nowhere_with_others_come_last) {
  const struct {
    int count;
    std::uint8_t last;
    std::initializer_list<int> order;
  } table[] = {
      {4, 0, {0, 1, 2, 3}},
      {4, bits({0}), {1, 2, 3, 0}},
      {4, bits({1, 3}), {0, 2, 1, 3}},
      {4, bits({0, 1, 2, 3}), {0, 1, 2, 3}},
      {2, bits({0}), {1, 0}},
      {2, bits({0, 3}), {1, 0}},  // has no such address
      {1, bits({0}), {0}},
  };
  for (const auto& row : table) {
    AddressTurns turns;
    turns.start(row.count, row.last);
    ck_assert_int_eq(turns.count(), row.count);
    for (int round = 0; round < 3; ++round) {
      ck_assert_int_eq(turns.rounds(), round);
      expect_round(turns, row.order);
    }
  }
}
END_TEST

START_TEST(addresses_of_no_use_are_passed_over_until_none_is_left) {
  AddressTurns turns;
  turns.start(3, bits({0}));
  ck_assert_int_eq(turns.current(), 1);
  turns.failed(turns.current(), ECONNREFUSED, true);
  ck_assert(!turns.exhausted());
  ck_assert(turns.next());
  expect_round(turns, {2, 0});
  expect_round(turns, {2, 0});
  turns.failed(turns.current(), EAFNOSUPPORT, true);
  ck_assert(turns.next());
  expect_round(turns, {0});
  expect_round(turns, {0});
  turns.failed(turns.current(), ECONNREFUSED, true);
  ck_assert(turns.exhausted());
  ck_assert_int_eq(turns.error_of(0), ECONNREFUSED);
  ck_assert_int_eq(turns.error_of(1), ECONNREFUSED);
  ck_assert_int_eq(turns.error_of(2), EAFNOSUPPORT);
}
END_TEST

START_TEST(what_was_tried_in_vain_is_told_once_the_peer_is_reached) {
  AddressTurns turns;
  turns.start(4, 0);
  turns.failed(turns.current(), ETIMEDOUT, false);
  turns.next();
  turns.failed(turns.current(), EHOSTUNREACH, false);
  turns.next();
  ck_assert_int_eq(turns.current(), 2);
  ck_assert_uint_eq(turns.reached(), bits({0, 1}));
  for (int i = 0; i < 4; ++i) ck_assert_int_eq(turns.error_of(i), 0);
  ck_assert_uint_eq(turns.reached(), 0);
  // The one that failed at first leads there now.
  turns.start(2, 0);
  turns.failed(turns.current(), EHOSTUNREACH, false);
  turns.next();
  turns.failed(turns.current(), ETIMEDOUT, false);
  turns.next();
  ck_assert_uint_eq(turns.reached(), bits({1}));
}
END_TEST

START_TEST(address_that_closes_twice_makes_room_for_one_of_which_nothing_is_known) {
  AddressTurns turns;
  turns.start(3, 0);
  ck_assert(!turns.closed());
  ck_assert(turns.closed());
  turns.next();
  ck_assert(!turns.closed());  // another one: it is counted anew
  turns.failed(turns.current(), ETIMEDOUT, false);
  turns.next();
  turns.failed(turns.current(), ETIMEDOUT, false);
  turns.next();
  ck_assert_int_eq(turns.current(), 0);
  turns.closed();
  ck_assert(!turns.closed());  // the others led nowhere
  turns.start(1, 0);
  for (int i = 0; i < 300; ++i) ck_assert(!turns.closed());
}
END_TEST

START_TEST(caller_is_known_by_the_address_that_it_came_from) {
  AddressTurns turns;
  turns.start(3, 0);
  turns.failed(turns.current(), ETIMEDOUT, false);
  turns.called_from(3, 2);
  ck_assert_int_eq(turns.current(), 2);
  ck_assert_int_eq(turns.error_of(0), 0);
}
END_TEST

START_TEST(addresses_beside_one_another_are_those_of_the_round_that_are_of_use_and_not_tried_yet) {
  AddressTurns turns;
  turns.start(4, bits({1}));  // in order 0, 2, 3, 1
  turns.failed(2, ECONNREFUSED, true);
  ck_assert(turns.next_beside(bits({0})));
  ck_assert_int_eq(turns.current(), 3);
  ck_assert(turns.next_beside(bits({0, 3})));
  ck_assert_int_eq(turns.current(), 1);
  ck_assert(!turns.next_beside(bits({0, 3, 1})));
  ck_assert_int_eq(turns.current(), 1);
  turns.failed(1, ETIMEDOUT, false);
  ck_assert(!turns.next());  // the round is over
  ck_assert_int_eq(turns.current(), 0);
  ck_assert(turns.next_beside(bits({0, 3})));
  ck_assert_int_eq(turns.current(), 1);
  turns.start(1, 0);
  ck_assert(!turns.next_beside(bits({0})));
}
END_TEST

START_TEST(address_that_answers_is_the_current_one_and_those_beside_it_were_overtaken) {
  AddressTurns turns;
  turns.start(3, 0);
  ck_assert(turns.next_beside(bits({0})));
  ck_assert(turns.next_beside(bits({0, 1})));
  turns.failed(1, EHOSTUNREACH, false);
  turns.answered(0, bits({2}));
  ck_assert_int_eq(turns.current(), 0);
  ck_assert_uint_eq(turns.overtaken(), bits({2}));
  ck_assert_uint_eq(turns.reached(), bits({1}));
  turns.start(3, 0);
  ck_assert_uint_eq(turns.overtaken(), 0);
}
END_TEST

struct Peer {
  int current;
  std::uint8_t failed, overtaken;
};

START_TEST(address_is_dead_that_failed_once_or_was_overtaken_twice_until_it_leads_to_a_peer) {
  const struct {
    std::vector<Peer> peers;
    std::uint8_t dead;
  } table[] = {
      {{{1, bits({0}), 0}}, bits({0})},
      {{{1, 0, bits({0})}}, 0},
      {{{1, 0, bits({0})}, {1, 0, bits({0})}}, bits({0})},
      {{{1, 0, bits({0})}, {0, 0, 0}, {1, 0, bits({0})}}, 0},  // it led there in between
      {{{1, 0, bits({0})}, {1, 0, bits({0})}, {0, 0, bits({1})}}, 0},
      {{{1, bits({0}), bits({2})}, {1, 0, bits({2})}}, bits({0, 2})},
  };
  for (const auto& row : table) {
    DeadAddresses dead;
    for (const Peer& peer : row.peers) dead.learn(peer.current, peer.failed, peer.overtaken);
    ck_assert_uint_eq(dead.bits(), row.dead);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("address_turns"); }
