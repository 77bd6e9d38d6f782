// What tools see of the device: knobs and counters by number.
#include "ch_lite/tools.h"

#include <pthread.h>

#include <cstdio>
#include <cstring>

#include "ch_lite/ch_lite.h"
#include "ch_lite/device/device.h"
#include "mplite/observe/stats.h"

namespace ch_lite {
namespace {

using namespace mplite;

// What there is at the moment, of the device.
struct Level {
  const char* name;
  const char* unit;
  const char* meaning;
  std::uint64_t (*read)(const Device& device);
};
const Level kLevels[] = {
    {"posted_receives", "receives", "Receives posted and not yet matched.",
     [](const Device& d) -> std::uint64_t { return d.posted_count(); }},
    {"unexpected_messages", "messages",
     "Messages that have arrived, wholly or in part, and wait for their receive.",
     [](const Device& d) -> std::uint64_t { return d.unexpected_count(); }},
    {"unexpected_bytes_held", "bytes",
     "Memory held for messages and active messages not yet received.",
     [](const Device& d) -> std::uint64_t { return d.blocks().bytes_in_use(); }},
    {"unexpected_bytes_ready", "bytes", "Memory kept ready for messages not yet received.",
     [](const Device& d) -> std::uint64_t { return d.blocks().bytes_ready(); }},
    {"requests_pending", "requests",
     "Sends, receives, puts and gets under way, or complete and not yet taken by the host.",
     [](const Device& d) -> std::uint64_t { return d.requests_used(); }},
    {"active_messages_unsent", "messages", "Active messages that wait for credit.",
     [](const Device& d) -> std::uint64_t { return d.active_messages_unsent(); }},
};
constexpr std::size_t kLevelCount = sizeof kLevels / sizeof kLevels[0];

bool have_knobs = false;
Knobs knobs_in_force;
// Whoever reads is done before what is read goes.
pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
struct Reading {
  Reading() { pthread_mutex_lock(&reading); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { pthread_mutex_unlock(&reading); }
};
Gate* gate = nullptr;
const Counters* counters = nullptr;  // null: before the start, or after the end
Counters last_counters;

bool is_counter(int index) { return static_cast<std::size_t>(index) < counter_count(); }
const Level& level(int index) { return kLevels[static_cast<std::size_t>(index) - counter_count()]; }

}  // namespace

void tools_take_knobs(const Knobs& knobs) {
  knobs_in_force = knobs;
  have_knobs = true;
}

void tools_watch(Gate& its_gate, const Counters& its_counters) {
  // The thread that may be reading is not in the child of a fork.
  static const bool kPrepared =
      pthread_atfork(nullptr, nullptr, [] { pthread_mutex_init(&reading, nullptr); }) == 0;
  static_cast<void>(kPrepared);
  const Reading alone;
  gate = &its_gate;
  counters = &its_counters;
}

void tools_leave() {
  const Reading alone;
  if (counters != nullptr) last_counters = *counters;
  counters = nullptr;
  gate = nullptr;
}

}  // namespace ch_lite

using namespace ch_lite;

extern "C" {

int lite_knob_count(void) { return static_cast<int>(mplite::knob_count()); }

void lite_knob_describe(int index, lite_knob* knob) {
  const mplite::KnobInfo& info = mplite::knob_info(static_cast<std::size_t>(index));
  *knob = {info.name, info.doc, info.allowed, info.default_value};
}

const char* lite_knob_value(int index, char* text, size_t size) {
  if (!have_knobs) tools_take_knobs(mplite::default_knobs());
  return mplite::format_knob(static_cast<std::size_t>(index), knobs_in_force, text, size);
}

int lite_counter_count(void) { return static_cast<int>(mplite::counter_count() + kLevelCount); }

void lite_counter_describe(int index, lite_counter* counter) {
  if (!is_counter(index)) {
    *counter = {level(index).name, level(index).meaning, level(index).unit, 1};
    return;
  }
  const mplite::CounterInfo& info = mplite::counter_info(static_cast<std::size_t>(index));
  *counter = {info.name, info.meaning, info.unit, info.is_peak ? 1 : 0};
}

uint64_t lite_counter_read(int index) {
  const Reading alone;
  if (counters == nullptr)
    return is_counter(index) ? mplite::counter_value(static_cast<std::size_t>(index), last_counters)
                             : 0;
  mplite::Hold hold(*gate);
  if (is_counter(index)) return mplite::counter_value(static_cast<std::size_t>(index), *counters);
  return device_current != nullptr ? level(index).read(*device_current) : 0;
}

}  // extern "C"
