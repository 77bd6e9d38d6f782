// handler_share.h: half of the core beyond a burst; what moves data is not counted.
#include "mplite/tuning/handler_share.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// For a second handlers of `handler_ns` come `apart_ns` after each other. Returns what the
// application has of it.
double applications_share(HandlerShare& share, std::int64_t handler_ns, std::int64_t apart_ns,
                          std::uint64_t bytes) {
  const std::int64_t begin = 77 * kSecond;
  std::int64_t now = begin, own = 0;
  while (now < begin + kSecond) {
    own += apart_ns;
    now += apart_ns + handler_ns;
    const std::int64_t rest_ns = share.handled(now, handler_ns, bytes);
    own += rest_ns;
    now += rest_ns;
  }
  return static_cast<double>(own) / kSecond;
}

struct Row {
  std::int64_t handler_ns, apart_ns;
  std::uint64_t bytes;
  double least, most;  // the application's share
};

START_TEST(application_has_half_of_the_core) {
  const Row rows[] = {
      {20'000, 0, 60, 0.45, 0.50},           // spinning origins, next to no data
      {20'000, 10'000, 60, 0.45, 0.50},      //
      {500'000, 0, 3'000, 0.45, 0.50},       // whole passes
      {20'000'000, 0, 3'000, 0.43, 0.50},    // of very many origins
      {20'000, 20'000, 60, 0.49, 0.51},      // half already: nothing to do
      {20'000, 80'000, 60, 0.79, 0.81},      //
      {20'000, 1'000, 65'536, 0.04, 0.06},   // data at 3 GB/s: no rest
      {120'000, 1'000, 65'536, 0.00, 0.02},  // and at 0.6
  };
  for (const Row& row : rows) {
    HandlerShare share;
    const double own = applications_share(share, row.handler_ns, row.apart_ns, row.bytes);
    ck_assert_msg(own >= row.least && own <= row.most,
                  "handlers of %lld ns, %lld ns apart: the application has %.3f",
                  static_cast<long long>(row.handler_ns), static_cast<long long>(row.apart_ns),
                  own);
  }
}
END_TEST

START_TEST(burst_is_served_at_once_and_earned_again_by_time_alone) {
  HandlerShare share;
  std::int64_t now = kSecond;
  for (int burst = 0; burst < 3; ++burst) {
    std::int64_t served = 0;
    do {
      now += 100'000;
      served += 100'000;
    } while (share.handled(now, 100'000, 60) == 0);
    ck_assert_int_ge(served, HandlerShare::kBurstNs);
    ck_assert_int_le(served, HandlerShare::kBurstNs + 200'000);
    now += kSecond;
  }
}
END_TEST

// Or its core was another's for so long.
START_TEST(handler_that_was_stopped_is_not_repented_for_long) {
  HandlerShare share;
  std::int64_t now = 7200 * kSecond, rests = 0;
  rests += share.handled(now, 3600 * kSecond, 60);
  now += rests;
  for (int i = 0; i < 100; ++i) {
    now += 2'000'000;
    const std::int64_t rest_ns = share.handled(now, 10'000, 60);
    rests += rest_ns;
    now += rest_ns;
  }
  ck_assert_int_ge(rests, HandlerShare::kRestMaxNs);
  ck_assert_int_le(rests, HandlerShare::kRestMaxNs + 2 * HandlerShare::kRestMinNs);
}
END_TEST

START_TEST(switched_off_it_never_rests) {
  HandlerShare share;
  share.set_on(false);
  ck_assert_double_lt(applications_share(share, 20'000, 0, 60), 0.01);
}
END_TEST

}  // namespace

int main() { return run_tests("handler_share"); }
