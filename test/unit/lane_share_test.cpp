// Which lane takes the next frame: by what the kernel holds of each, and by how fast it was.
#include "mplite/tuning/lane_share.h"

#include "run_tests.h"

using mplite::LaneShare;

namespace {

constexpr std::uint64_t kFrame = 256 * 1024, kMany = std::uint64_t{1} << 40;

// Networks, each with a queue that takes whole messages. Rates in bytes per us.
struct Networks {
  double rate[2];
  LaneShare share{};
  double sent[2] = {}, acknowledged[2] = {}, busy_us[2] = {};

  void run(double us) {
    for (int i = 0; i < 2; ++i) {
      const double left = (sent[i] - acknowledged[i]) / rate[i];
      const double busy = left < us ? left : us;
      acknowledged[i] += rate[i] * busy;
      busy_us[i] += busy;
    }
  }
  bool is_busy() const { return acknowledged[0] + 1 < sent[0] || acknowledged[1] + 1 < sent[1]; }
  // A packet that is acknowledged late.
  void packet(int lane) {
    sent[lane] += 100;
    acknowledged[lane] = sent[lane];
    busy_us[lane] += 40'000;
  }
  // A message of so many frames, and all of it has come. How many went over the first lane.
  int message(int frames) {
    int first = 0;
    for (int i = 0; i < 2; ++i)
      share.begin(i, static_cast<std::uint64_t>(acknowledged[i]),
                  static_cast<std::int64_t>(busy_us[i]));
    for (int k = 0; k < frames; ++k) {
      for (int i = 0; i < 2; ++i)
        share.hold(i, static_cast<std::uint64_t>(sent[i] - acknowledged[i]));
      const int lane = share.choose(3, 0, kFrame, kMany);
      first += lane == 0 ? 1 : 0;
      sent[lane] += static_cast<double>(kFrame);
      run(50);
    }
    while (is_busy()) run(50);
    for (int i = 0; i < 2; ++i)
      share.end(i, static_cast<std::uint64_t>(acknowledged[i]),
                static_cast<std::int64_t>(busy_us[i]));
    return first;
  }
};

START_TEST(frames_of_a_message_are_shared_by_the_rates) {
  static const struct {
    const char* what;
    double rate[2];
    int first;  // of ten frames
  } kTable[] = {
      {"equal ones", {125, 125}, 5},
      {"1 and 0.25 Gb/s", {125, 31.25}, 8},
      {"0.25 and 1 Gb/s", {31.25, 125}, 2},
      {"1 and 0.1 Gb/s", {125, 12.5}, 9},
  };
  for (const auto& row : kTable) {
    Networks n{{row.rate[0], row.rate[1]}};
    for (int i = 0; i < 100; ++i) n.message(10);  // it learns
    const int first = n.message(10);
    ck_assert_msg(first >= row.first - 1 && first <= row.first + 1, "%s: %d of ten over the first",
                  row.what, first);
  }
}
END_TEST

START_TEST(one_that_has_not_been_measured_is_taken_for_as_fast_as_the_fastest) {
  LaneShare share;
  ck_assert_int_eq(share.choose(3, 0, kFrame, kMany), 0);
  share.end(0, 10 * kFrame, LaneShare::kMeasureUs);
  ck_assert_int_eq(share.choose(3, 0, kFrame, kMany), 0);
  share.hold(0, 1);
  ck_assert_int_eq(share.choose(3, 0, kFrame, kMany), 1);
  share.hold(1, 2);
  ck_assert_int_eq(share.choose(3, 0, kFrame, kMany), 0);
  share.end(1, 1000, 10 * LaneShare::kMeasureUs);  // packets are no measurement
  share.hold(1, 0);
  ck_assert_int_eq(share.choose(3, 0, kFrame, kMany), 1);
}
END_TEST

START_TEST(packets_between_messages_are_not_measured) {
  Networks n{{125, 125}};
  for (int i = 0; i < 100; ++i) {
    n.message(10);
    n.packet(0);
  }
  ck_assert_int_eq(n.message(10), 5);
}
END_TEST

START_TEST(rate_that_changes_is_noticed) {
  Networks n{{125, 125}};
  for (int i = 0; i < 100; ++i) n.message(10);
  n.rate[1] = 12.5;
  for (int i = 0; i < 100; ++i) n.message(10);
  ck_assert_int_ge(n.message(10), 8);
  n.rate[1] = 125;
  for (int i = 0; i < 500; ++i) n.message(10);
  ck_assert_int_le(n.message(10), 6);
}
END_TEST

START_TEST(another_connection_has_not_been_measured) {
  Networks n{{125, 12.5}};
  for (int i = 0; i < 100; ++i) n.message(10);
  n.share.forget(1);
  n.rate[1] = 125;
  n.sent[1] = n.acknowledged[1] = n.busy_us[1] = 0;
  ck_assert_int_eq(n.message(10), 5);
}
END_TEST

START_TEST(slow_one_takes_nothing_that_others_have_out_sooner) {
  LaneShare share;
  const auto choose = [&share](std::uint64_t rest) { return share.choose(2, 1, kFrame, rest); };
  share.hold(0, 4 * kFrame);
  ck_assert_int_eq(choose(kFrame), 1);  // not measured
  share.end(0, 100 * kFrame, LaneShare::kMeasureUs);
  ck_assert_int_eq(choose(kFrame), 1);
  share.end(1, 10 * kFrame, LaneShare::kMeasureUs);
  ck_assert_int_eq(choose(kFrame), -1);  // ten frames' time here, five there
  ck_assert_int_eq(choose(5 * kFrame), -1);
  ck_assert_int_eq(choose(7 * kFrame), 1);
  ck_assert_int_eq(choose(kMany), 1);
  share.hold(1, kFrame);
  ck_assert_int_eq(choose(7 * kFrame), -1);
  ck_assert_int_eq(choose(17 * kFrame), 1);
  ck_assert_int_eq(share.choose(3, 0, kFrame, kFrame), 0);  // nobody to wait for
  ck_assert_int_eq(share.choose(2, 0, kFrame, kFrame), 1);
}
END_TEST

START_TEST(only_one_that_is_ready_is_chosen) {
  LaneShare share;
  ck_assert_int_eq(share.choose(0, 0, kFrame, kMany), -1);
  ck_assert_int_eq(share.choose(1u << 15, 0, kFrame, kMany), 15);
  ck_assert_int_eq(share.choose(6, 0, kFrame, kMany), 1);
}
END_TEST

}  // namespace

int main() { return run_tests("lane_share"); }
