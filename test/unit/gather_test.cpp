// Small messages of many sends in a row leave together, and none stays behind when the application goes away: two real processes, each controller.
#include "../signal/two_ranks.h"

#include "ch_lite/channel.h"
#include "mplite/counters.h"
#include "run_tests.h"

using namespace two_ranks;

namespace {

constexpr int kMessages = 200;
constexpr double kPatienceS = 20;

#define CHECK_THAT(condition) \
  if (!(condition)) return __LINE__

// As MPI_Isend: what comes next may be another.
bool isend(int number, Done& done) {
  const bool good = send(&number, sizeof number, 1, 5, done);
  lite_host_exit_sending();
  return good;
}

bool outside_until(const std::atomic<int>& word, int value) {
  const double end = now_s() + kPatienceS;
  while (word < value)
    if (now_s() > end) return false;
  return true;
}

// The first message, and the connection with it, which moves in calls only where the controller is `sync`.
bool first_contact(const std::atomic<int>& word) {
  Done done;
  if (!isend(0, done)) return false;
  const double end = now_s() + kPatienceS;
  while (word < 1)
    if (!look() || now_s() > end) return false;
  lite_host_exit();
  return true;
}

// Receives message `number`, polling.
bool take(int number) {
  int got = -1;
  Done done;
  if (!receive(&got, sizeof got, 0, 5, done) || (!done.done && !wait_for(done, kPatienceS))) return false;
  lite_host_exit();
  return got == number;
}

// word[0]: messages that the receiver has.
int sends_and_goes_away(Shared& s, int rank) {
  CHECK_THAT(start(s, rank));
  if (rank == 0) {
    Done done;
    CHECK_THAT(first_contact(s.word[0]));
    for (int i = 1; i < kMessages; ++i) CHECK_THAT(isend(i, done));
    CHECK_THAT(outside_until(s.word[0], kMessages));  // computes, and calls nothing
    // by itself, as its last message but one was not
    for (int i = kMessages; i < kMessages + 3; ++i) CHECK_THAT(isend(i, done) && outside_until(s.word[0], i + 1));
  } else {
    for (int i = 0; i < kMessages + 3; ++i) {
      CHECK_THAT(take(i));
      ++s.word[0];
    }
  }
  CHECK_THAT(finish(s));
  return 0;
}

int sends_and_leaves_by_another_call(Shared& s, int rank) {
  CHECK_THAT(start(s, rank));
  if (rank == 0) {
    Done done;
    CHECK_THAT(first_contact(s.word[0]));
    mplite::Counters& counters = mplite::channel_counters();
    const std::uint64_t before = counters.writes;
    for (int i = 1; i < kMessages; ++i) CHECK_THAT(isend(i, done));
    lite_host_exit();  // as MPI_Waitall, which finds everything complete
    CHECK_THAT(MPID_ChannelGathered() == 0);
    s.word[1] = static_cast<int>(counters.writes - before);
    s.word[2] = static_cast<int>(counters.gathered);
    CHECK_THAT(outside_until(s.word[0], kMessages));
  } else {
    for (int i = 0; i < kMessages; ++i) {
      CHECK_THAT(take(i));
      ++s.word[0];
    }
  }
  CHECK_THAT(finish(s));
  return 0;
}

// Send and receive in turn: each message leaves with its own call.
int plays_ping_pong(Shared& s, int rank) {
  CHECK_THAT(start(s, rank));
  constexpr int kRounds = 2000;
  int number = 0;
  const auto hop_out = [&] {
    Done done;
    const bool good = send(&number, sizeof number, 1 - rank, 5, done);
    lite_host_exit_sending();
    return good && done.done;
  };
  const auto hop_in = [&] {
    Done done;
    const bool good = receive(&number, sizeof number, 1 - rank, 5, done) && (done.done || wait_for(done, kPatienceS));
    lite_host_exit();
    return good;
  };
  mplite::Counters& counters = mplite::channel_counters();
  std::uint64_t writes = 0, masks = 0, backstops = 0;
  for (int i = 0; i < kRounds; ++i) {
    if (i == 100) {
      writes = counters.writes;
      masks = counters.mask_calls;
      backstops = counters.backstops;
    }
    CHECK_THAT(rank == 0 ? hop_out() && hop_in() : hop_in() && hop_out());
  }
  CHECK_THAT(counters.writes - writes == kRounds - 100);
  CHECK_THAT(counters.gathered == 0 && counters.signals == 0);
  CHECK_THAT(counters.mask_calls == masks && counters.backstops == backstops);
  CHECK_THAT(finish(s));
  return 0;
}

void as(const char* controller) { setenv("LITE_CONTROLLER", controller, 1); }

START_TEST(what_was_gathered_leaves_while_the_application_computes) {
  for (const char* controller : {"sigio", "thread", "sync"}) {
    as(controller);
    run_job(sends_and_goes_away);
  }
}
END_TEST

START_TEST(burst_takes_few_system_calls_and_is_gone_when_another_call_returns) {
  as("sigio");
  Shared& s = run_job(sends_and_leaves_by_another_call);
  ck_assert_int_gt(s.word[2], kMessages / 2);
  ck_assert_int_lt(s.word[1], kMessages / 4);
}
END_TEST

START_TEST(nothing_is_gathered_where_nobody_would_let_it_go) {
  for (const char* controller : {"thread", "sync"}) {
    as(controller);
    ck_assert_int_eq(run_job(sends_and_leaves_by_another_call).word[2], 0);
  }
  as("sigio");
  setenv("LITE_GRACE", "off", 1);
  ck_assert_int_eq(run_job(sends_and_leaves_by_another_call).word[2], 0);
  unsetenv("LITE_GRACE");
}
END_TEST

START_TEST(ping_pong_takes_one_send_call_per_message_no_signal_and_no_mask_call) {
  as("sigio");
  run_job(plays_ping_pong);
}
END_TEST

}  // namespace

int main() {
  return run_tests("gather", {what_was_gathered_leaves_while_the_application_computes, burst_takes_few_system_calls_and_is_gone_when_another_call_returns,
                              nothing_is_gathered_where_nobody_would_let_it_go, ping_pong_takes_one_send_call_per_message_no_signal_and_no_mask_call});
}
