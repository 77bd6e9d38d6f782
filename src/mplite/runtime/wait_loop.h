// The wait loop of all hosts: polls, gives the core away or sleeps, as tuning/wait.h decides by the
// time since the last news. Used through job_runtime.h; by itself where there is an engine and no
// job (channel_ops.cpp).
#pragma once
#include <cstdint>

#include "mplite/config/knobs.h"
#include "mplite/engine/engine.h"
#include "mplite/tuning/wait.h"
#include "mplite/tuning/yield_cost.h"

namespace mplite {

// The state of one wait at a time: of the thread that makes the calls. give_core_away(): any
// thread.
class WaitLoop {
 public:
  // Reading the clock is a tenth of a read that finds nothing.
  static constexpr std::uint32_t kPollsPerClock = 4;

  // What one turn of a wait has found.
  struct Turn {
    enum Kind : std::uint8_t {
      kDone,
      kAgain,  // news: the next turn follows at once
      kRest,   // nothing: as the policy says
    } kind;
    std::int64_t now_ns;  // of kRest: the clock behind the poll
  };
  static constexpr Turn done() { return {Turn::kDone, 0}; }
  static constexpr Turn again() { return {Turn::kAgain, 0}; }
  static constexpr Turn rest(std::int64_t now_ns) { return {Turn::kRest, now_ns}; }

  // ---- news: the policy counts from the last ----

  // Just now, by a clock that has not been read since: the next reading counts.
  void news() {
    news_ns_ = kJustNow;
    polls_ = 0;
  }
  void news_at(std::int64_t now_ns) { news_ns_ = now_ns; }
  // `moved` counts whatever is news. Whether it has changed since it was last asked.
  bool has_moved(std::uint64_t moved) {
    if (moved == moved_) return false;
    moved_ = moved;
    return true;
  }
  std::int64_t quiet_ns(std::int64_t now_ns) {
    if (news_ns_ == kJustNow) news_ns_ = now_ns;
    return now_ns - news_ns_;
  }
  // A poll has found nothing. True: the clock is to be read.
  bool clock_is_due() { return ++polls_ % kPollsPerClock == 0; }
  WaitStep next(const WaitPolicy& policy, std::int64_t now_ns) {
    return decide(policy, quiet_ns(now_ns));
  }

  // ---- what is done ----

  // Of a wait whose turns are here: until `turn`, gate held, returns done().
  template <typename TurnFunction>
  void run(Engine& engine, const WaitPolicy& policy, TurnFunction turn) {
    for (;;) {
      const Turn found = turn();
      if (found.kind == Turn::kDone) return;
      if (found.kind == Turn::kRest) rest_by(policy, engine, found.now_ns);
    }
  }
  // Gate held; left while the core is another's.
  void rest_by(const WaitPolicy& policy, Engine& engine, std::int64_t now_ns);

  // A yield, which is counted, or a short sleep in its place. Any thread, gate free.
  void yield(const WaitPolicy& policy, Engine& engine) {
    ++engine.counters().yields;
    give_core_away(policy, engine);
  }
  // Who wants no sleeps (LITE_SPIN_US=forever) gets none.
  void give_core_away(const WaitPolicy& policy, Engine& engine);
  // At start. Without it, and with LITE_TUNING=-yield_cost: yields only.
  void start(const Knobs& knobs);

 private:
  static constexpr std::int64_t kJustNow = -1;

  std::uint64_t moved_ = 0;
  std::int64_t news_ns_ = kJustNow;
  std::uint32_t polls_ = 0;  // since the last news
  bool learns_ = false;
  YieldCost yield_cost_;
};

}  // namespace mplite
