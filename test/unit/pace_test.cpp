// pace.h: how often the sockets are looked at while the host polls shared memory too.
#include "mplite/tuning/pace.h"

#include "run_tests.h"

using mplite::Pace;

namespace {

// A host: what lite_hot is to lite_progress.
struct Host {
  Pace pace;
  int calls = 0, skip = 0;

  explicit Host(bool shared_memory = true) { pace.set_on(shared_memory); }
  // True: looked.
  bool poll(std::uint64_t events, bool outstanding) {
    if (skip > 0 && calls > 0) {
      --skip;
      return false;
    }
    const bool looked = pace.look(++calls, skip, events, outstanding);
    skip = pace.skip();
    return looked;
  }
  void leave() { calls = 0; }
};

// `waits` visits of `polls` polls each, during which nothing happens here. Returns how many of the
// polls looked.
int wait_elsewhere(Host& host, int waits, int polls, bool outstanding, std::uint64_t events = 0) {
  int looks = 0;
  for (int i = 0; i < waits; ++i) {
    host.leave();
    for (int poll = 0; poll < polls; ++poll) looks += host.poll(events, outstanding) ? 1 : 0;
  }
  return looks;
}

START_TEST(without_shared_memory_every_poll_looks) {
  Host host(false);
  ck_assert_int_eq(wait_elsewhere(host, 100, 10, false), 1000);
  ck_assert(!host.pace.seldom());
}
END_TEST

START_TEST(waits_that_end_elsewhere_make_looks_seldom) {
  for (const bool outstanding : {false, true}) {
    Host host;
    // the fifth wait begins after four have ended
    ck_assert_int_eq(wait_elsewhere(host, Pace::kWaitsNeeded, 10, outstanding),
                     Pace::kWaitsNeeded * 10);
    const int stride = outstanding ? Pace::kBusyStride : Pace::kQuietStride;
    ck_assert_int_eq(wait_elsewhere(host, 100 * stride / 8, 8, outstanding), 100);
    ck_assert(host.pace.seldom());
  }
}
END_TEST

START_TEST(wait_that_outlasts_the_stride_looks_more_often) {
  Host host;
  wait_elsewhere(host, 100, 10, true);
  host.leave();
  int polls = 1;
  while (!host.poll(0, true)) ++polls;
  ck_assert_int_le(polls, Pace::kBusyStride);
  int looks = 0;
  for (int i = 0; i < 100 * static_cast<int>(Pace::kLongStride); ++i)
    looks += host.poll(0, true) ? 1 : 0;
  ck_assert_int_eq(looks, 100);
  // the next one begins anew
  ck_assert_int_le(wait_elsewhere(host, 1, Pace::kBusyStride, true), 1);
}
END_TEST

START_TEST(what_happens_here_makes_every_poll_look_again) {
  Host host;
  wait_elsewhere(host, 100, 10, true);
  host.skip = 0;  // as what happens in a handler does
  ck_assert(host.poll(1, true));
  ck_assert(!host.pace.seldom());
  ck_assert_int_eq(wait_elsewhere(host, 1, 1000, true, 1), 1000);
}
END_TEST

START_TEST(waits_that_end_here_now_and_then_keep_every_poll_looking) {
  Host host;
  std::uint64_t events = 0;
  for (int i = 0; i < 100; ++i) {
    ck_assert_int_eq(wait_elsewhere(host, Pace::kWaitsNeeded - 1, 10, true, events),
                     (static_cast<int>(Pace::kWaitsNeeded) - 1) * 10);
    host.leave();
    ck_assert(host.poll(events, true));
    ck_assert(host.poll(++events, true));
  }
}
END_TEST

START_TEST(event_of_the_last_poll_counts_for_that_wait_although_the_next_one_finds_it) {
  Host host;
  std::uint64_t events = 0;
  for (int i = 0; i < 100; ++i, ++events)
    ck_assert_int_eq(wait_elsewhere(host, 1, 10, true, events), 10);
}
END_TEST

START_TEST(single_polls_with_something_outstanding_look_each_time) {
  Host host;
  wait_elsewhere(host, 100, 10, true);
  wait_elsewhere(host, Pace::kTestsBusy, 1, true);
  ck_assert_int_eq(wait_elsewhere(host, 1000, 1, true), 1000);
}
END_TEST

START_TEST(single_polls_look_each_time_after_a_while_with_nothing_outstanding) {
  Host host;
  wait_elsewhere(host, 100, 10, false);
  wait_elsewhere(host, Pace::kTestsQuiet, 1, false);
  ck_assert_int_eq(wait_elsewhere(host, 1000, 1, false), 1000);
}
END_TEST

START_TEST(visits_are_counted_by_their_first_poll) {
  Host host(false);
  wait_elsewhere(host, 7, 3, false);
  ck_assert_uint_eq(host.pace.waits(), 7);
}
END_TEST

}  // namespace

int main() { return run_tests("pace"); }
