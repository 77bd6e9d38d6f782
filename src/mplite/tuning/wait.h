// How to wait: poll, give the core away, or sleep. A pure decision, from the cores and the ranks on
// this host. Made at init from topology.h and the knobs, and again when the host begins or ends to
// wait for shared memory; asked on every turn of the
// wait loop (runtime/wait_loop.h).
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

struct WaitPolicy {
  std::int64_t yield_after_ns;   // polls only until then
  std::int64_t sleep_after_ns;   // then polls and yields; < 0: never sleeps
  std::int64_t sleep_max_ns;     // of one sleep
  std::int64_t sleep_share = 8;  // one sleep is this part of the time waited: what it adds to the
                                 // delay of news that no socket announces stays in proportion
  bool own_core = false;         // there is one for every rank on the host
};

struct WaitStep {
  enum Kind : std::uint8_t { kPoll, kYield, kSleep } kind;
  std::int64_t timeout_ns;  // of kSleep
};

// LITE_SPIN_US other than a duration.
inline constexpr std::int64_t kSpinAuto = -1;
inline constexpr std::int64_t kSpinForever = -2;

// `cores`: allowed to this process; `ranks`: on this host, oneself included; `spin_ns`: kSpinAuto,
// kSpinForever or how long to poll before sleeping; `shared_memory`: news may come by a way that no
// socket announces (the host's shared memory), so that sleeps begin late and stay short. Whoever
// sleeps then asks first whether news is coming that way (lite_set_host_news).
// `on`: LITE_TUNING's wait_policy; without it a rank polls and yields, and sleeps after the same
// time whatever the host.
WaitPolicy choose_wait_policy(int cores, int ranks, std::int64_t spin_ns, bool shared_memory,
                              bool on = true);

// `waited_ns`: since the last news.
WaitStep decide(const WaitPolicy& policy, std::int64_t waited_ns) MPLITE_SIGNAL_SAFE;

}  // namespace mplite
