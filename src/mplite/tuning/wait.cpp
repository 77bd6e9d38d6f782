// How to wait: poll, give the core away, or sleep. A pure decision.
#include "mplite/tuning/wait.h"

namespace mplite {
namespace {

constexpr std::int64_t kMicro = 1000;

// Measured on 2 cores: with a rank or two per core, poll-and-yield that sleeps
// after 200 us keeps the full rate (190,000 messages/s in a ring of 4, 152,000-174,000 after 50
// us); a ring of 8 gets 41,000 when it sleeps after 50 us and 167,000 when it never does. A rank of
// n on a core has to sit out the turns of the n-1 others, so the limit grows with n.
constexpr std::int64_t kSleepAfterNs = 200 * kMicro;

// Nobody loses by a rank that polls longer on a core of its own, and what ends a sleep has to wake
// a halted processor first: 40 us, 3 % of 256 KB at 1 Gb/s (scripts/compare --rate 1gbit --patterns
// pingpong).
constexpr std::int64_t kSleepAfterAloneNs = 2000 * kMicro;

// With a core for every rank nobody wants this core, and a yield is a system call for nothing
// (8-byte ping-pong between two pinned ranks: test/lab/latency.sh prints the ratio to raw TCP); but
// a neighbour that we do not know of may want it, so only for a moment.
constexpr std::int64_t kPollOnlyNs = 20 * kMicro;

// A socket ends a sleep at once, so without shared memory the limits only bound how late a deadline
// is noticed. With it, a message in shared memory waits for the end of the sleep: a thirty-second
// of the wait so far, which a program that waited that long does not notice, and never more than 8
// ms. A waking costs 10 to 70 us, so an idle rank takes about 1 % of its core (test/lab/scale.sh).
constexpr std::int64_t kSleepMaxNs = 100'000 * kMicro;
constexpr std::int64_t kSleepMaxSharedNs = 8000 * kMicro;
constexpr std::int64_t kSleepMinNs = 50 * kMicro;
constexpr std::int64_t kSleepShare = 8, kSleepShareShared = 32;
constexpr std::int64_t kSleepAfterSharedNs = 4000 * kMicro;

}  // namespace

WaitPolicy choose_wait_policy(int cores, int ranks, std::int64_t spin_ns, bool shared_memory,
                              bool on) {
  if (cores < 1) cores = 1;
  if (ranks < 1) ranks = 1;
  const std::int64_t per_core = (static_cast<std::int64_t>(ranks) + cores - 1) / cores;
  WaitPolicy policy;
  policy.own_core = ranks <= cores;
  policy.yield_after_ns = policy.own_core && on ? kPollOnlyNs : 0;
  const std::int64_t sleep_after_ns = shared_memory   ? kSleepAfterSharedNs
                                      : per_core == 1 ? kSleepAfterAloneNs
                                                      : kSleepAfterNs;
  policy.sleep_after_ns = spin_ns == kSpinForever ? -1
                          : spin_ns >= 0          ? spin_ns
                          : !on                   ? kSleepAfterNs
                                                  : sleep_after_ns * per_core;
  policy.sleep_max_ns = shared_memory ? kSleepMaxSharedNs : kSleepMaxNs;
  policy.sleep_share = shared_memory ? kSleepShareShared : kSleepShare;
  return policy;
}

WaitStep decide(const WaitPolicy& policy, std::int64_t waited_ns) MPLITE_SIGNAL_SAFE {
  if (policy.sleep_after_ns >= 0 && waited_ns >= policy.sleep_after_ns) {
    std::int64_t timeout_ns = waited_ns / policy.sleep_share;
    if (timeout_ns < kSleepMinNs) timeout_ns = kSleepMinNs;
    if (timeout_ns > policy.sleep_max_ns) timeout_ns = policy.sleep_max_ns;
    return {WaitStep::kSleep, timeout_ns};
  }
  return {waited_ns < policy.yield_after_ns ? WaitStep::kPoll : WaitStep::kYield, 0};
}

}  // namespace mplite
