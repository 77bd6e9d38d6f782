// How progress is made at present: one value, by who makes it. Part of engine_core.h; set by
// ProgressScope (engine.h).
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

struct ProgressMode {
  static constexpr std::uint64_t kNoBudget = ~std::uint64_t{0};
  // Packets of one pass over all sockets, behind which it does not look again: others that answer
  // each of them at once (MPI_Get in a loop) never leave the sockets empty. About a millisecond.
  static constexpr std::uint32_t kPacketsMax = 256;

  bool in_signal_handler = false;    // nothing may be allocated
  bool poll_all_sockets = false;     // every poll looks at all of them
  bool background = false;           // nobody waits for what comes: bulk may be announced seldom
  bool callers_only = false;         // nothing is read from who is connected
  std::uint64_t budget = kNoBudget;  // bytes that may still be read

  // A call of the application: it waits for what comes.
  static constexpr ProgressMode application() MPLITE_SIGNAL_SAFE { return {}; }
  // The same after a sleep, or in place of a handler that was turned away.
  static constexpr ProgressMode all_sockets() MPLITE_SIGNAL_SAFE {
    return {.poll_all_sockets = true};
  }
  static constexpr ProgressMode helper_thread() MPLITE_SIGNAL_SAFE {
    return {.poll_all_sockets = true, .background = true};
  }
  static constexpr ProgressMode signal_handler(std::uint64_t budget) MPLITE_SIGNAL_SAFE {
    return {
        .in_signal_handler = true, .poll_all_sockets = true, .background = true, .budget = budget};
  }
  // The same for callers alone.
  constexpr ProgressMode for_callers() const MPLITE_SIGNAL_SAFE {
    ProgressMode mode = *this;
    mode.callers_only = true;
    return mode;
  }

  constexpr bool has_budget() const MPLITE_SIGNAL_SAFE { return budget != kNoBudget; }
  void spend(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    if (has_budget()) budget -= bytes < budget ? bytes : budget;
  }
};

}  // namespace mplite
