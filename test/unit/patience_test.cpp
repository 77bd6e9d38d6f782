// patience.h: how much a poll that found nothing may rest, by the kind of call.
#include "ch_lite/device/patience.h"

#include <initializer_list>

#include "run_tests.h"

using namespace ch_lite;

// api.cpp has it in the device.
__thread lite_call_state lite_call = {0, 0, 0, 0, nullptr};

namespace {

enum class Step { kIdle, kNews, kScanEnds };
struct Row {
  Step step;
  Rest allowed;  // of kIdle
};
constexpr Row idle(Rest allowed) { return {Step::kIdle, allowed}; }
constexpr Row kNews = {Step::kNews, Rest::kNone}, kScanEnds = {Step::kScanEnds, Rest::kNone};

void follow(std::initializer_list<Row> rows) {
  int number = 0;
  for (const Row& row : rows) {
    ++number;
    if (row.step == Step::kIdle)
      ck_assert_msg(may_rest(lite_call) == row.allowed, "row %d", number);
    if (row.step == Step::kNews) note_news(lite_call);
    if (row.step == Step::kScanEnds) lite_host_scan_ends();
  }
}

// Polls of a scan without news; returns how many of them may sleep.
unsigned sleeps_among(unsigned polls) {
  unsigned sleeps = 0;
  for (unsigned i = 0; i < polls; ++i) sleeps += may_rest(lite_call) == Rest::kSleep ? 1 : 0;
  return sleeps;
}

START_TEST(wait_may_sleep_at_every_poll) {
  follow({idle(Rest::kSleep), idle(Rest::kSleep), kNews, idle(Rest::kSleep), kScanEnds,
          idle(Rest::kSleep)});
}
END_TEST

START_TEST(call_that_may_not_block_yields_once_and_never_sleeps) {
  lite_host_call_begins(LITE_MAY_NOT_BLOCK);
  follow({idle(Rest::kYield), idle(Rest::kNone), kNews, idle(Rest::kNone), idle(Rest::kNone)});
  ck_assert_uint_eq(sleeps_among(1'000'000), 0);
  lite_host_call_ends();
  lite_host_call_begins(LITE_MAY_NOT_BLOCK);
  follow({idle(Rest::kYield), idle(Rest::kNone)});
  lite_host_call_ends();
  follow({idle(Rest::kSleep)});
}
END_TEST

START_TEST(scan_of_few_requests_waits_from_its_second_end_on) {
  lite_host_call_begins(LITE_SCANS);
  follow({idle(Rest::kNone), kScanEnds, idle(Rest::kYield), kScanEnds, idle(Rest::kSleep),
          kScanEnds, idle(Rest::kSleep)});
  lite_host_call_ends();
}
END_TEST

START_TEST(scan_sleeps_only_when_all_has_been_looked_at_since_the_last_news) {
  lite_host_call_begins(LITE_SCANS);
  ck_assert_uint_eq(sleeps_among(100'000), 0);
  follow({kScanEnds, idle(Rest::kYield), idle(Rest::kNone)});
  ck_assert_uint_eq(sleeps_among(100'000), 0);
  follow({kScanEnds, idle(Rest::kSleep), idle(Rest::kNone), kNews, idle(Rest::kNone)});
  ck_assert_uint_eq(sleeps_among(100'000), 0);  // the rest of that scan
  follow({kScanEnds, idle(Rest::kYield)});
  ck_assert_uint_eq(sleeps_among(100'000), 0);
  follow({kScanEnds, idle(Rest::kSleep)});
  lite_host_call_ends();
}
END_TEST

// One request among a million null ones.
START_TEST(long_scan_without_news_sleeps_on_its_way) {
  lite_host_call_begins(LITE_SCANS);
  follow({kScanEnds, kScanEnds});
  ck_assert_uint_eq(sleeps_among(125 * kPollsPerSleep), 125);
  lite_host_call_ends();
}
END_TEST

START_TEST(next_call_begins_its_scan_anew) {
  lite_host_call_begins(LITE_SCANS);
  follow({kScanEnds, kScanEnds, idle(Rest::kSleep)});
  lite_host_call_ends();
  lite_host_call_begins(LITE_SCANS);
  follow({idle(Rest::kNone), kScanEnds, idle(Rest::kYield)});
  lite_host_call_ends();
}
END_TEST

// MPI_Improbe in a loop.
START_TEST(calls_that_find_nothing_give_the_core_away_every_so_often) {
  const auto yields_among = [](unsigned calls, unsigned kind) {
    unsigned yields = 0;
    for (unsigned i = 0; i < calls; ++i) {
      lite_host_call_begins(kind);
      yields += is_fruitless_too_often(lite_call) ? 1 : 0;
      note_news(lite_call);  // it was for another thread of the application
      lite_host_call_ends();
    }
    return yields;
  };
  ck_assert_uint_eq(yields_among(kFruitlessPerYield - 1, LITE_MAY_NOT_BLOCK), 0);
  ck_assert_uint_eq(yields_among(1, LITE_MAY_NOT_BLOCK), 1);
  ck_assert_uint_eq(yields_among(10 * kFruitlessPerYield, LITE_MAY_NOT_BLOCK), 10);
  ck_assert_uint_eq(yields_among(10 * kFruitlessPerYield, LITE_SCANS), 0);
  ck_assert_uint_eq(yields_among(10 * kFruitlessPerYield, LITE_MAY_BLOCK), 0);
}
END_TEST

// A callback of the application, or the host itself, calls MPI inside of an MPI call.
START_TEST(calls_nest) {
  lite_host_call_begins(LITE_SCANS);
  follow({kScanEnds, kScanEnds, idle(Rest::kSleep)});
  lite_host_call_begins(LITE_MAY_NOT_BLOCK);
  follow({idle(Rest::kYield), idle(Rest::kNone)});
  lite_host_call_ends();
  follow({idle(Rest::kNone)});  // what the inner one did may have been news to the outer one
  lite_host_call_ends();
  follow({idle(Rest::kSleep)});
}
END_TEST

// MPI_Wait in a callback that MPI_Test makes: nothing says that it begins, but it goes round in a
// loop, and MPI_Test does not.
START_TEST(wait_inside_of_a_call_that_may_not_block_sleeps) {
  lite_host_call_begins(LITE_MAY_NOT_BLOCK);
  note_return(lite_call);
  follow({idle(Rest::kYield), kScanEnds, idle(Rest::kYield), kScanEnds, idle(Rest::kSleep),
          idle(Rest::kSleep), kScanEnds, idle(Rest::kSleep), kNews, idle(Rest::kNone), kScanEnds,
          kScanEnds, idle(Rest::kSleep)});
  note_return(lite_call);  // it has ended
  follow({idle(Rest::kNone)});
  ck_assert_uint_eq(sleeps_among(1'000'000), 0);
  lite_host_call_ends();
}
END_TEST

}  // namespace

int main() { return run_tests("patience"); }
