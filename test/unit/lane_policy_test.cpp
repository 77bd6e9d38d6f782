// When more lanes are tried, and when they are kept: a table of networks.
#include "mplite/tuning/lane_policy.h"

#include "run_tests.h"

using mplite::LanePolicy;
using mplite::LaneSample;

namespace {

constexpr std::int64_t kMs = 1'000'000;

// A network that is always busy. Rates in bytes per ms.
struct Network {
  double per_lane;     // what one connection carries at most,
  double all;          // and all of them
  double write_share;  // of the time that the sender spends in writing
  double full_share;   // and for which the receiver's window is full
  bool opens = true;   // lanes come up

  LanePolicy policy{};
  LaneSample lanes[LanePolicy::kMost] = {};
  std::int64_t now = 0;
  double write_ns = 0;
  int most_used = 1, trials = 0;

  void run(std::int64_t for_ns) {
    for (const std::int64_t end = now + for_ns; now < end; now += 5 * kMs) {
      const int used = policy.used();
      most_used = used > most_used ? used : most_used;
      const double each = used * per_lane > all ? all / used : per_lane;
      for (int i = 0; i < used; ++i) {
        lanes[i].acknowledged += static_cast<std::uint64_t>(5 * each);
        lanes[i].busy_ns += 5 * kMs;
        lanes[i].window_ns += static_cast<std::int64_t>(static_cast<double>(5 * kMs) * full_share);
      }
      write_ns += static_cast<double>(5 * kMs) * write_share;
      const int wanted = policy.wanted();
      policy.look(now, lanes, opens ? wanted : used, static_cast<std::int64_t>(write_ns));
      if (policy.wanted() > wanted) ++trials;
    }
  }
};

Network started(Network network, int lanes = 0) {
  network.policy.start(lanes);
  return network;
}

START_TEST(lanes_are_opened_where_the_network_bounds_one_and_only_there) {
  static const struct {
    const char* what;
    Network network;
    int used;  // in the end
    int tried;
  } kTable[] = {
      {"1 Gb/s a connection of 4", {125'000, 500'000, 0.05, 0}, 4, 8},
      {"5 Gb/s a connection of 25", {625'000, 3'125'000, 0.1, 0}, 8, 16},
      {"1 Gb/s a connection, of 40", {125'000, 5'000'000, 0.05, 0}, 16, 16},
      {"a link of 1 Gb/s", {125'000, 125'000, 0.01, 0}, 1, 2},
      {"the sender's processor is the bound", {1'500'000, 3'000'000, 0.9, 0}, 1, 1},
      {"the receiver is the bound", {100'000, 3'000'000, 0.05, 0.9}, 1, 1},
      {"a second lane brings 5 %", {100'000, 105'000, 0.05, 0}, 1, 2},
  };
  for (const auto& row : kTable) {
    Network n = started(row.network);
    n.run(6'000 * kMs);
    ck_assert_msg(n.policy.used() == row.used && n.most_used == row.tried,
                  "%s: %d lanes used, want %d; %d tried, want %d", row.what, n.policy.used(),
                  row.used, n.most_used, row.tried);
    ck_assert_int_eq(n.policy.wanted(), n.policy.used());
  }
}
END_TEST

START_TEST(what_does_not_pay_is_tried_seldom) {
  Network n = started({125'000, 125'000, 0.01, 0});
  n.run(std::int64_t{600'000} * kMs);
  ck_assert_int_eq(n.policy.used(), 1);
  // after 10, 20, 40 ... seconds
  ck_assert_int_ge(n.trials, 5);
  ck_assert_int_le(n.trials, 7);
}
END_TEST

START_TEST(lanes_that_do_not_come_up_are_given_up) {
  Network n = started({125'000, 500'000, 0.05, 0, false});
  n.run(2 * LanePolicy::kOpenNs);
  ck_assert_int_eq(n.policy.used(), 1);
  ck_assert_int_eq(n.policy.wanted(), 1);
  n.opens = true;
  n.run(2 * LanePolicy::kAgainNs);
  ck_assert_int_eq(n.policy.used(), 4);
}
END_TEST

START_TEST(network_that_becomes_wider_is_found) {
  Network n = started({125'000, 125'000, 0.05, 0});
  n.run(6'000 * kMs);
  n.all = 500'000;
  n.run(2 * LanePolicy::kAgainNs);
  ck_assert_int_eq(n.policy.used(), 4);
}
END_TEST

START_TEST(short_bursts_are_measured_by_their_busy_time) {
  Network n = started({125'000, 500'000, 0.05, 0});
  for (int i = 0; i < 800; ++i) {
    n.run(5 * kMs);
    n.now += 100 * kMs;  // the application computes
  }
  ck_assert_int_eq(n.policy.used(), 4);
}
END_TEST

START_TEST(kernel_holds_little_where_the_application_waits_and_goes_on_waiting) {
  LanePolicy policy;
  policy.start(2);
  const auto took = [&](int times, bool background) {
    int changes = 0;
    for (int i = 0; i < times; ++i) changes += policy.took(background);
    return changes;
  };
  ck_assert_int_eq(policy.unsent_bytes(), LanePolicy::kUnsentBackgroundBytes);
  for (int i = 0; i < 10; ++i) {  // it waits for the rest of what moved in the background
    ck_assert_int_eq(took(LanePolicy::kWaited - 1, false), 0);
    ck_assert_int_eq(took(1, true), 0);
  }
  ck_assert_int_eq(took(LanePolicy::kWaited, false), 1);
  ck_assert_int_eq(policy.unsent_bytes(), LanePolicy::kUnsentBytes);
  ck_assert_int_eq(took(1000, false), 0);
  ck_assert_int_eq(took(10, true), 1);
  ck_assert_int_eq(policy.unsent_bytes(), LanePolicy::kUnsentBackgroundBytes);
}
END_TEST

START_TEST(frames_get_shorter_towards_the_end_of_a_transfer) {
  struct {
    int lanes;
    std::uint64_t rest, most, waiting, background;
  } const cases[] = {
      {4, 4 << 20, 256 << 10, 256 << 10, 256 << 10},
      {4, 1 << 20, 256 << 10, 128 << 10, 256 << 10},
      {4, 300 << 10, 256 << 10, 64 << 10, 75 << 10},
      {4, 1 << 10, 256 << 10, 64 << 10, 64 << 10},
      {4, 4 << 20, 16 << 10, 16 << 10, 16 << 10},
      {2, 1 << 20, 256 << 10, 256 << 10, 256 << 10},
      {1, 200 << 10, 256 << 10, 100 << 10, 200 << 10},
  };
  for (const auto& each : cases) {
    LanePolicy policy;
    policy.start(each.lanes);
    ck_assert_uint_eq(policy.frame_bytes(each.rest, each.most), each.background);
    for (int i = 0; i < LanePolicy::kWaited; ++i) policy.took(false);
    ck_assert_uint_eq(policy.frame_bytes(each.rest, each.most), each.waiting);
  }
}
END_TEST

START_TEST(number_that_was_asked_for_is_not_tried) {
  for (const int lanes : {1, 2, 16}) {
    const Network n = started({125'000, 500'000, 0.05, 0}, lanes);
    ck_assert(!n.policy.tries());
    ck_assert_int_eq(n.policy.used(), lanes);
    ck_assert_int_eq(n.policy.wanted(), lanes);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("lane_policy"); }
