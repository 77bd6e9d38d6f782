// The run time of a job: what moves the engine outside the library, from start to end.
#include "mplite/runtime/job_runtime.h"

#include <unistd.h>

#include <cerrno>

#include "mplite/net/loss.h"
#include "mplite/observe/stats.h"
#include "mplite/observe/trace.h"

namespace mplite {

StartFault JobRuntime::start_progress(void (*progress)(void*), volatile int* want_arm, char* error,
                                      std::size_t error_size) {
  Controller::Options options;
  options.kind = knobs.controller;
  options.signal = knobs.signal;
  options.progress = progress;
  options.want_arm = want_arm;
  options.grace = knobs.grace;
  options.tuning = knobs.tuning;
  return controller.start(*engine, options, error, error_size) < 0 ? StartFault::kSystem
                                                                   : StartFault::kNone;
}

void JobRuntime::end_progress() {
  if (engine != nullptr) controller.stop();
  if (engine != nullptr && knobs.stats) {
    char text[kStatsBytes];
    const std::size_t length =
        format_stats(engine->counters(), rank, controller_name(knobs.controller), text);
    if (write(2, text, length) < 0) errno = 0;  // nobody is listening: nothing more to do about it
  }
  if (knobs.trace) trace_finish();
}

int JobRuntime::fail_lost(int code, int peer, int error, const char* what) {
  char who[352] = "", more[384];
  if (peer >= 0) engine->describe(peer, who, sizeof who);
  return fail(code, "rank %d lost %s: %s%s%s%s", rank, who,
              error != 0 ? loss_text(error) : "connection lost", what != nullptr ? "; " : "",
              what != nullptr ? what : "", advice(error, more, sizeof more));
}

}  // namespace mplite
