// What the parts of the controller share: whom they move, whether progress is armed, and the word
// that tells the application's calls to look on their way out. One per Controller, which holds it
// by value beside SigioDriver, Backstop and HelperThread; these refer to it.
#pragma once
#include <atomic>
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/config/knobs.h"
#include "mplite/engine/engine.h"
#include "mplite/observe/trace.h"
#include "mplite/progress/host_work.h"
#include "mplite/tuning/arming.h"
#include "mplite/tuning/handler_share.h"

namespace mplite {

struct ProgressState {
  ProgressState() = default;
  ProgressState(const ProgressState&) = delete;
  ProgressState& operator=(const ProgressState&) = delete;

  Engine* engine = nullptr;
  void (*progress)(void* arg) = nullptr;  // Controller::Options
  void* arg = nullptr;
  ControllerKind kind = ControllerKind::kSigio;
  bool running = false;
  bool outstanding = false;  // gate held
  ArmingPolicy policy;
  HandlerShare share;
  std::atomic<int> armed_word{0};
  HostWork host;
  std::atomic<bool> host_watched{false};  // every departure is to ask for the host's work
  std::atomic<bool> host_waits{false};    // sigio: there was some at the last departure
  std::atomic<bool> host_fresh{false};    // and it may be able to go on without any event
  int wants[2] = {};                      // want_arm without and with something outstanding
  bool (*is_heavy)(void* arg, bool host_waits) = nullptr;  // Controller::ask_for_weight
  // When the application left armed last, or was armed late.
  std::uint64_t writes_then = 0, bytes_in_then = 0;
  volatile int unheard = 0;
  volatile int* want_arm = &unheard;

  bool armed() const MPLITE_SIGNAL_SAFE { return armed_word.load(std::memory_order_relaxed) != 0; }
  bool is_outstanding() const MPLITE_SIGNAL_SAFE {
    return outstanding || host_waits.load(std::memory_order_relaxed);
  }
  bool needs_progress() const MPLITE_SIGNAL_SAFE { return policy.needs_progress(is_outstanding()); }
  // sigio: whether the host's thread has something to do. A message that has completed is the
  // application's own affair, unless the host waits for it.
  bool is_host_due() const MPLITE_SIGNAL_SAFE {
    if (engine->is_starved() && host.on()) return true;
    if (!host_waits.load(std::memory_order_relaxed)) return host.message_due();
    return host_fresh.load() || host.due();  // in order with armed_word: see keep_due()
  }
  // Gate held.
  bool is_departure_heavy() const {
    return is_heavy == nullptr || engine->queued_sends() != 0 || engine->connecting() ||
           is_heavy(arg, host_waits.load(std::memory_order_relaxed));
  }
  std::int64_t now_ns() const MPLITE_SIGNAL_SAFE { return engine->net().now_ns(); }

  void tell() MPLITE_SIGNAL_SAFE {
    __atomic_store_n(want_arm, wants[outstanding ? 1 : 0], __ATOMIC_RELAXED);
  }
  // Whatever want_arm depends on, but for `outstanding`, has changed.
  void publish() MPLITE_SIGNAL_SAFE {
    const auto now = policy.wants(running && kind != ControllerKind::kSync,
                                  host_watched.load(std::memory_order_relaxed), armed());
    wants[0] = now.idle;
    wants[1] = now.outstanding;
    tell();
  }
  void set_armed(bool on) MPLITE_SIGNAL_SAFE {
    armed_word.store(on ? 1 : 0);
    begin_absence();
    trace(on ? TraceEvent::kArmed : TraceEvent::kDisarmed);
    publish();
  }

  // Gate held. What is done from here on while armed is done for an application that is away.
  void begin_absence() MPLITE_SIGNAL_SAFE {
    writes_then = engine->counters().writes;
    bytes_in_then = engine->counters().bytes_in;
  }
  // Gate held. Whether that was of use: somebody waited for what was sent, or for room in our
  // socket's buffer. What else came could have waited there.
  bool was_useful() const MPLITE_SIGNAL_SAFE {
    constexpr std::uint64_t kMuch = 64 * 1024;
    const Counters& counters = engine->counters();
    return armed() &&
           (counters.writes != writes_then || counters.bytes_in - bytes_in_then >= kMuch);
  }

  // Gate held, ordinary context. All sockets, and whatever the layers above do with what came and
  // with what the handler has left. What is left at the bound of a pass is for who lets go of the
  // gate.
  void poll_all(const ProgressMode& mode = ProgressMode::all_sockets()) {
    engine->clear_starved();
    engine->refill();
    {
      ProgressScope scope(*engine, mode);
      progress(arg);
    }
    leave_rest();
  }
  // No signal tells again of what is left. (A helper thread sees it, and with sync nobody is told
  // of anything.)
  void leave_rest() MPLITE_SIGNAL_SAFE {
    if (kind == ControllerKind::kSigio && engine->more_to_do()) engine->gate().ask_drain();
  }
};

}  // namespace mplite
