// All LITE_* environment variables: one table, from which parsing and texts (knob_text.h) come.
// Read once at init by the layer that starts an engine; printed by lite_info.cpp; the ch4 glue
// makes MPI_T variables of it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/config/iface_list.h"
#include "mplite/net/protection.h"
#include "mplite/tuning/tuning.h"
#include "mplite/tuning/wait.h"

namespace mplite {

enum class ControllerKind : std::uint8_t { kSigio, kThread, kSync };
enum class Family : std::uint8_t { kAny, kIpv4, kIpv6 };

const char* controller_name(ControllerKind kind);
const char* protection_name(Protection kind);

// The values in force. The defaults of the table are set by default_knobs(), not here: one place
// only.
struct Knobs {
  std::uint64_t short_max = 0;  // bytes; 0: no short protocol
  std::uint64_t eager_max = 0;  // bytes; 0: no eager protocol; kEagerAuto
  ControllerKind controller = ControllerKind::kSigio;
  int signal = 0;            // of the sigio controller; 0: auto
  std::int64_t spin_ns = 0;  // see choose_wait_policy (tuning/wait.h)
  IfaceList iface;
  bool iface_from_mpiexec = false;  // iface is what mpiexec's -iface says
  Family family = Family::kAny;
  std::uint16_t port_lo = 0, port_hi = 0;  // of the listener; 0: the kernel chooses
  std::uint64_t sockbuf = 0;               // bytes; 0: autotuning
  std::uint64_t credits = 0;               // bytes that one peer may have on the way unasked
  std::uint64_t unexpected_max = 0;        // bytes held for receives not yet posted, all peers
  std::int64_t connect_timeout_ns = 0;
  int keepalive_idle_s = 0;  // 0: off
  int keepalive_interval_s = 0;
  int lanes = 0;        // 0: auto
  bool resume = false;  // connections that break are made again
  std::uint32_t frame_bytes = 0;
  std::uint32_t low_water_bytes = 0;         // 0: off
  std::uint64_t mmap_threshold = 0;          // bytes; 0: malloc's own
  bool grace = false;                        // learn when not to arm
  bool host_thread = true;                   // sigio: a thread for the host's work
  Tuning tuning = Tuning::none();            // the heuristics that act
  std::int64_t stall_ns = 0;                 // 0: off
  Protection protection = Protection::kOff;  // of what is sent
  bool stats = false;
  bool trace = false;
  char trace_prefix[232] = {};  // empty: kTracePrefix (trace.h); files PREFIX.RANK.json
  char secret_file[232] = {};   // empty: none
  char profile[232] =
      {};  // "auto", "none" or a path; after read_knobs the path of what was read, or as it was set
  bool system_settings = false;  // by read_knobs: /etc/ch_lite.conf was there
};
inline constexpr std::uint64_t kEagerAuto = UINT64_MAX;

// One row of the table, as text, for help and MPI_T. Texts are static.
struct KnobInfo {
  const char* name;
  const char* type;           // "size", "duration", "choice", …
  const char* default_value;  // in the syntax of the variable
  const char* allowed;        // for people, and in error sentences
  const char* doc;            // one sentence
};
std::size_t knob_count();
const KnobInfo& knob_info(std::size_t index);

using GetEnv = const char* (*)(const char* name);
const char* process_environment(const char* name);  // getenv

Knobs default_knobs();

// Defaults, overridden by what `get` returns (null or empty: not set). False: `error` (`size`
// bytes) holds a sentence that names the variable, its value and what is allowed, and `knobs` is
// unchanged. Ordinary context. Allocates: never.
bool parse_knobs(GetEnv get, Knobs& knobs, char* error, std::size_t size);

// The same, but what `get` does not set stays as it is in `knobs`.
bool override_knobs(GetEnv get, Knobs& knobs, char* error, std::size_t size);

// Sets one variable as parse_knobs would. `index` as in knob_info. In `error`, a control character
// of the value is a question mark.
bool set_knob(std::size_t index, const char* value, Knobs& knobs, char* error, std::size_t size);

// The value in force in the variable's own syntax, canonical ("256K", "30s", "10:2").
const char* format_knob(std::size_t index, const Knobs& knobs, char* text, std::size_t size);

}  // namespace mplite
