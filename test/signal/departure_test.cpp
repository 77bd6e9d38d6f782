// What it costs an application to come and go with something outstanding, and that what comes when
// it stays away after all is received: two real processes, sigio and thread.
#include "two_ranks.h"

#include "ch_lite/channel/channel.h"
#include "mplite/net/net_posix.h"
#include "mplite/observe/counters.h"
#include "mplite/progress/controller.h"
#include "run_tests.h"

using namespace two_ranks;

namespace {

constexpr double kSteadyS = 0.5;
constexpr std::size_t kBytes = 200'000;

// Comes and goes for so long. `absences`: how often the processor was given to others meanwhile,
// which no policy can tell from a computation. False: the library reports an error.
bool come_and_go(double seconds, int* absences = nullptr) {
  constexpr double kAbsentS = 50e-6;
  const double end = now_s() + seconds;
  for (double now = now_s(), before; now < end;) {
    if (!look()) return false;
    LITE_HOT_SET(last_call, LITE_CALL_RECEIVE);
    lite_host_exit();
    before = now;
    now = now_s();
    if (absences != nullptr && now - before > kAbsentS) ++*absences;
  }
  return true;
}

bool meet(int rank) {
  int mine = 1, theirs = 0;
  Done in, out;
  return receive(&theirs, sizeof theirs, 1 - rank, 1, in) &&
         send(&mine, sizeof mine, 1 - rank, 1, out) && wait_for(in) && wait_for(out);
}

// word[0]: backstops in the second half of the time, word[1]: system calls for masks and handlers
// in it, word[2]: 7 when the message came while the application computed, word[3]: absences.
int comes_and_goes_and_stays_away(Shared& s, int rank) {
  if (!start(s, rank)) return __LINE__;
  std::vector<std::uint8_t> data(kBytes, 0);
  Done done;
  if (rank == 1) {
    if (!meet(rank) || !barrier(s, 20)) return __LINE__;
    data.assign(kBytes, 7);
    if (!send(data.data(), kBytes, 0, 2, done) || !wait_for(done)) return __LINE__;
    return finish(s) ? 0 : __LINE__;
  }
  if (!meet(rank) || !receive(data.data(), kBytes, 1, 2, done)) return __LINE__;
  const mplite::Counters& counters = mplite::channel_counters();
  if (!come_and_go(kSteadyS)) return __LINE__;
  const std::uint64_t backstops = counters.backstops, masks = counters.mask_calls;
  int absences = 0;
  if (!come_and_go(kSteadyS, &absences)) return __LINE__;
  s.word[3] = absences;
  s.word[0] = static_cast<int>(counters.backstops - backstops);
  s.word[1] = static_cast<int>(counters.mask_calls - masks);
  if (!barrier(s, 20)) return __LINE__;
  const volatile std::uint8_t* last = &data[kBytes - 1];
  const double end = now_s() + 10;
  while (*last == 0 && now_s() < end) {}
  s.word[2] = *last;
  return wait_for(done) && finish(s) ? 0 : __LINE__;
}

// A long computation, a phase of quick calls, and another computation. word[0]: milliseconds of
// that one until the message that is sent meanwhile was there.
int computes_in_phases(Shared& s, int rank) {
  if (!start(s, rank) || !meet(rank)) return __LINE__;
  std::vector<std::uint8_t> data(kBytes, 0);
  Done done;
  if (rank == 1) {
    data.assign(kBytes, 7);
    if (!barrier(s, 20) || !send(data.data(), kBytes, 0, 2, done) || !wait_for(done))
      return __LINE__;
    return finish(s) ? 0 : __LINE__;
  }
  if (!receive(data.data(), kBytes, 1, 2, done)) return __LINE__;
  const volatile std::uint8_t* last = &data[kBytes - 1];
  if (!come_and_go(kSteadyS)) return __LINE__;
  for (double end = now_s() + kSteadyS; now_s() < end;) {}
  if (!come_and_go(0.03)) return __LINE__;
  ++s.arrived[20];  // as barrier(), which would sleep
  const double from = now_s();
  while (*last == 0 && now_s() < from + 10) {}
  s.word[0] = static_cast<int>(1e3 * (now_s() - from));
  return wait_for(done) && finish(s) ? 0 : __LINE__;
}

// A loop of calls that look at nothing (MPI_Win_sync) behind quick ones that do. word[0]:
// milliseconds of it until the message that is sent meanwhile was there.
int looks_at_nothing(Shared& s, int rank) {
  if (!start(s, rank) || !meet(rank)) return __LINE__;
  std::vector<std::uint8_t> data(kBytes, 0);
  Done done;
  if (rank == 1) {
    data.assign(kBytes, 7);
    if (!barrier(s, 20) || !send(data.data(), kBytes, 0, 2, done) || !wait_for(done))
      return __LINE__;
    return finish(s) ? 0 : __LINE__;
  }
  if (!receive(data.data(), kBytes, 1, 2, done)) return __LINE__;
  const volatile std::uint8_t* last = &data[kBytes - 1];
  if (!come_and_go(kSteadyS)) return __LINE__;
  ++s.arrived[20];  // as barrier(), which would look
  const double from = now_s();
  while (*last == 0 && now_s() < from + 5) lite_host_exit();
  s.word[0] = static_cast<int>(1e3 * (now_s() - from));
  return wait_for(done) && finish(s) ? 0 : __LINE__;
}

constexpr int kExchanges = 2000;
constexpr double kComputedS = 60e-6;

// Short messages both ways, and a computation that is shorter than what moving them meanwhile
// would be worth. word[rank]: handlers and wakes in the second half of the exchanges.
int exchanges_and_computes(Shared& s, int rank) {
  if (!start(s, rank) || !meet(rank)) return __LINE__;
  const mplite::Counters& counters = mplite::channel_counters();
  std::uint64_t before = 0;
  for (int i = 0; i < kExchanges; ++i) {
    if (i == kExchanges / 2) before = counters.signals + counters.thread_wakes;
    char mine[100] = {}, theirs[100];
    Done in, out;
    if (!receive(theirs, sizeof theirs, 1 - rank, 1, in) ||
        !send(mine, sizeof mine, 1 - rank, 1, out))
      return __LINE__;
    LITE_HOT_SET(last_call, LITE_CALL_SEND);
    lite_host_exit();
    for (const double end = now_s() + kComputedS; now_s() < end;) {}
    if (!wait_for(in) || !wait_for(out)) return __LINE__;
  }
  s.word[rank] = static_cast<int>(counters.signals + counters.thread_wakes - before);
  return finish(s) ? 0 : __LINE__;
}

// Without arming_by_use there is one for nearly every exchange.
START_TEST(short_computations_are_left_alone_where_progress_would_be_of_no_use) {
  for (const char* controller : {"sigio", "thread"}) {
    setenv("LITE_CONTROLLER", controller, 1);
    Shared& s = run_job(exchanges_and_computes);
    ck_assert_int_lt(s.word[0], kExchanges / 8);
    ck_assert_int_lt(s.word[1], kExchanges / 8);
  }
}
END_TEST

START_TEST(calls_that_look_at_nothing_are_no_sign_of_the_application) {
  for (const char* controller : {"sigio", "thread"}) {
    setenv("LITE_CONTROLLER", controller, 1);
    Shared& s = run_job(looks_at_nothing);
    if (kSignalsComeAnywhere) ck_assert_int_lt(s.word[0], 1000);
  }
}
END_TEST

START_TEST(second_computation_is_armed_as_soon_as_the_first) {
  for (const char* controller : {"sigio", "thread"}) {
    setenv("LITE_CONTROLLER", controller, 1);
    Shared& s = run_job(computes_in_phases);
    if (kSignalsComeAnywhere) ck_assert_int_lt(s.word[0], 100);
  }
}
END_TEST

void check(const char* controller) {
  setenv("LITE_CONTROLLER", controller, 1);
  Shared& s = run_job(comes_and_goes_and_stays_away);
  // None with sigio, 78 with the helper; with a signal every 1.6 ms, as it once was, 312. A machine
  // that gives the processor to others for milliseconds makes real absences, so the bound is not
  // tight.
  ck_assert_int_lt(s.word[0], 200);
  // Of 100,000 departures and more. After an absence it is armed until quick returns have proved
  // again that they are: beside busy processes, 1,866 were seen.
  ck_assert_int_lt(s.word[1], 1000 + 400 * s.word[3]);
  if (kSignalsComeAnywhere) ck_assert_int_eq(s.word[2], 7);
}

START_TEST(who_comes_straight_back_is_hardly_interrupted_and_receives_when_he_stays_away_sigio) {
  check("sigio");
}
END_TEST

START_TEST(who_comes_straight_back_is_hardly_interrupted_and_receives_when_he_stays_away_thread) {
  check("thread");
}
END_TEST

// Who leaves has nothing to do for a controller that has been stopped, whatever the engine's end
// completes or starts.
START_TEST(only_a_running_controller_is_to_arm) {
  using namespace mplite;
  PosixNet net;
  ck_assert_int_eq(net.open(), 0);
  PeerAddress self = {};
  EngineOptions alone;
  alone.peers = &self;
  Engine engine(net, alone);
  ck_assert_int_eq(engine.start(), 0);
  volatile int want_arm = -1;
  Controller controller;
  Controller::Options options;
  options.progress = [](void*) {};
  options.want_arm = &want_arm;
  char error[256];
  const auto wanted = [&](bool outstanding) {
    Hold hold(engine.gate());
    controller.set_outstanding(outstanding);
    return static_cast<int>(want_arm);
  };
  for (const ControllerKind kind :
       {ControllerKind::kSigio, ControllerKind::kThread, ControllerKind::kSync}) {
    options.kind = kind;
    ck_assert_int_eq(controller.start(engine, options, error, sizeof error), 0);
    ck_assert_int_eq(want_arm, 0);
    ck_assert_int_eq(wanted(true), kind == ControllerKind::kSync ? 0 : 1);
    ck_assert_int_eq(wanted(false), 0);
    ck_assert_int_eq(wanted(true), kind == ControllerKind::kSync ? 0 : 1);
    controller.stop();
    ck_assert_int_eq(want_arm, 0);
    ck_assert_int_eq(wanted(false), 0);
    ck_assert_int_eq(wanted(true), 0);
    wanted(false);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("departure"); }
