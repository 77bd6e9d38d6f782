// Whether a core is better given away by a short sleep than by sched_yield. Pure decisions,
// durations are parameters; used by wait_loop.cpp.
#pragma once
#include <atomic>
#include <cstdint>

namespace mplite {

// Where only ranks and threads that wait share a core, a yield is back within microseconds, and
// nothing is quicker. Beside processes that compute in the same cgroup or session it is back when
// each of them has had a whole time slice (measured on Linux 6.18: 2 ms beside one, 11 ms and at
// times a second beside several of a throttled cgroup), then polls once and is gone again: a
// message waits so long at every step. Who has slept is served soon after it wakes. So when yields
// have become dear, all but a few are short sleeps. Gain: 4 threads in each of 4 ranks, 20 messages
// each, in a throttled cgroup with compilers: phases of 2 to 33 s by yields, 0.2 to 2.1 s so.
// (Sleeps only, where yields are cheap: 1.5 times slower.) Thread safety: any thread, at any time;
// what is lost between two of them is one duration.
class YieldCost {
 public:
  static constexpr std::int64_t kDearNs = 1'000'000;  // on average
  static constexpr std::int64_t kAverageOf = 8;
  static constexpr std::int64_t kCountedMaxNs = 16 * kDearNs;  // of one
  static constexpr std::uint32_t kTryEvery =
      32;  // while they are dear: so often one shows what they cost now

  // The core is given away now. True: by a short sleep; false: by a yield, of which took()
  // tells.
  bool sleep() {
    if (average_ns_.load(std::memory_order_relaxed) < dear_ns_) [[likely]]
      return false;
    const std::uint32_t asked = asked_.load(std::memory_order_relaxed) + 1;
    asked_.store(asked, std::memory_order_relaxed);
    return asked % kTryEvery != 0;
  }
  void took(std::int64_t ns) {
    const std::int64_t average = average_ns_.load(std::memory_order_relaxed);
    const std::int64_t counted = ns < kCountedMaxNs ? ns : kCountedMaxNs;
    average_ns_.store(average + (counted - average) / kAverageOf, std::memory_order_relaxed);
  }

  // Off: always a yield. Before it is asked.
  void set_on(bool on) { dear_ns_ = on ? kDearNs : INT64_MAX; }

 private:
  std::int64_t dear_ns_ = kDearNs;
  std::atomic<std::int64_t> average_ns_{0};
  std::atomic<std::uint32_t> asked_{0};
};

}  // namespace mplite
