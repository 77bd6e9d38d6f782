// How much of a core the signal handler may take from the application that it interrupts. Pure
// decisions, times are parameters; used by sigio_driver.cpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// Other ranks may access exposed memory without end (MPI_Get or MPI_Compare_and_swap in a loop,
// until a value changes that only the target changes), and the target has no say in it. So beyond a
// burst the handler gets as much time as the application has had, half of the core. What moves data
// is not counted: that is the application's own affair, and is over with its messages. Owning
// thread throughout.
class HandlerShare {
 public:
  // What the handler may take at once.
  static constexpr std::int64_t kBurstNs = 50'000'000;
  // What the application gets at a time then: what it is owed, within these. Others' accesses wait
  // for so long.
  static constexpr std::int64_t kRestMinNs = 2'000'000, kRestMaxNs = 50'000'000;
  // So much of the time is for each byte: a core that enciphers moves one in half of that.
  static constexpr std::int64_t kNsPerByte = 2;

  void set_on(bool on) { on_ = on; }

  // A handler ends, which took `spent_ns` and moved `bytes`. Returns for how long it is not to come
  // again; 0: it may. A handler that was stopped (SIGSTOP) took no more than kRestMaxNs.
  std::int64_t handled(std::int64_t now_ns, std::int64_t spent_ns,
                       std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    const std::int64_t apart_ns = std::max<std::int64_t>(now_ns - spent_ns - before_ns_, 0);
    const std::int64_t counts_ns =
        std::max<std::int64_t>(spent_ns - kNsPerByte * static_cast<std::int64_t>(bytes), 0);
    before_ns_ = now_ns;
    owed_ns_ =
        std::min(std::max<std::int64_t>(owed_ns_ - apart_ns, 0) + counts_ns, kBurstNs + kRestMaxNs);
    return on_ && owed_ns_ > kBurstNs ? std::max(owed_ns_ - kBurstNs, kRestMinNs) : 0;
  }

 private:
  bool on_ = true;
  std::int64_t before_ns_ = 0;  // when the last one ended
  std::int64_t owed_ns_ = 0;    // to the application
};

}  // namespace mplite
