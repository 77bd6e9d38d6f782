// gather_thread.h over an engine with a peer: what is gathered leaves although nobody calls.
#include "mplite/progress/gather_thread.h"

#include <unistd.h>

#include <memory>
#include <thread>  // before check.h and its macro fail
#include <vector>

#include "message_ranks.h"
#include "run_tests.h"

using namespace mplite;

namespace {

struct Fixture {
  Fixture() {
    state.engine = ranks.side[0].engine.get();
    state.progress = [](void* engine) { static_cast<Engine*>(engine)->poll_all(); };
    state.arg = state.engine;
    gather(1);  // connected from then on
    for (int i = 0; i < 10'000 && (engine().connecting() || engine().queued_sends() != 0); ++i)
      for (auto& side : ranks.side) {
        side.engine->refill();
        side.engine->poll_all();
      }
    ck_assert(!engine().connecting());
    ck_assert_int_eq(gathered(), 0);
  }
  ~Fixture() { thread.stop(); }
  Engine& engine() { return *state.engine; }

  void gather(int packets) {
    Hold hold(engine().gate());
    engine().set_gather(Engine::kGatherPacketMax);
    std::uint32_t packet = 0;
    const iovec part = {&packet, sizeof packet};
    for (int i = 0; i < packets; ++i) ck_assert_int_eq(engine().send_control(1, &part, 1), 0);
    engine().set_gather(0);
  }
  int gathered() {
    Hold hold(engine().gate());
    return engine().gathered();
  }
  std::uint64_t late() {
    Hold hold(engine().gate());
    return engine().counters().gathered_late;
  }
  std::uint64_t wakes() {
    Hold hold(engine().gate());
    return engine().counters().thread_wakes;
  }
  // Within ten seconds.
  bool leaves() {
    for (int i = 0; i < 10'000 && gathered() != 0; ++i) usleep(1000);
    return gathered() == 0;
  }

  MessageRanks ranks{1 << 20, AF_INET, EngineOptions()};
  ProgressState state;
  std::atomic<int> left{0};
  GatherThread thread{state, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &left};
};

START_TEST(what_is_gathered_leaves_late) {
  Fixture f;
  for (std::uint64_t times = 1; times <= 100; ++times) {
    f.gather(3);
    ck_assert_int_eq(f.gathered(), 3);
    ck_assert(f.thread.guard());
    ck_assert(f.leaves());
    ck_assert_uint_eq(f.late(), times);
  }
  for (int i = 0; i < 10'000 && f.left < 100; ++i) usleep(1000);
  ck_assert_int_eq(f.left, 100);
}
END_TEST

START_TEST(what_has_left_already_is_not_late) {
  Fixture f;
  for (int i = 0; i < 100; ++i) {
    f.gather(2);
    ck_assert(f.thread.guard());
    Hold hold(f.engine().gate());
    f.engine().flush_gathered();
  }
  usleep(100'000);
  ck_assert_uint_le(f.late(), 10);  // on a loaded machine
}
END_TEST

// One that sends all the time costs a wake each kMostNs.
START_TEST(it_seldom_looks_where_nothing_is_late) {
  constexpr std::int64_t kLongNs = 500'000'000;
  Fixture f;
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t late = f.late(), before = f.wakes();
    for (const std::int64_t end = f.state.now_ns() + kLongNs; f.state.now_ns() < end;) {
      f.gather(1);
      ck_assert(f.thread.guard());
      Hold hold(f.engine().gate());
      f.engine().flush_gathered();
    }
    ck_assert_uint_le(f.wakes() - before,
                      kLongNs / GatherThread::kMostNs + 10 + 5 * (f.late() - late));
    // as soon as the application stays away
    f.gather(1);
    ck_assert(f.thread.guard());
    ck_assert(f.leaves());
  }
}
END_TEST

START_TEST(any_thread_may_ask_and_end) {
  constexpr int kThreads = 8, kTimes = 50;
  Fixture f;
  std::vector<std::unique_ptr<std::thread>> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.push_back(std::make_unique<std::thread>([&] {
      for (int k = 0; k < kTimes; ++k) {
        {
          Hold hold(f.engine().gate());
          f.gather(1);
        }
        f.thread.guard();  // false while another thread makes it
      }
    }));
  for (auto& thread : threads) thread->join();
  f.gather(1);
  ck_assert(f.thread.guard());
  ck_assert(f.leaves());
}
END_TEST

START_TEST(there_is_none_behind_its_end) {
  Fixture f;
  ck_assert(f.thread.can_guard());
  ck_assert(f.thread.guard());
  f.thread.stop();
  ck_assert(!f.thread.can_guard());
  ck_assert(!f.thread.guard());
  f.thread.stop();
}
END_TEST

}  // namespace

int main() { return run_tests("gather_thread"); }
