// The run time of a job: what moves the engine outside the library, from start to end.
#include "mplite/runtime/job_runtime.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "mplite/base/address.h"
#include "mplite/config/knob_text.h"
#include "mplite/net/loss.h"
#include "mplite/observe/stats.h"
#include "mplite/observe/trace.h"

namespace mplite {
namespace {

// What no two jobs have at a time, and all ranks of one know: where rank 0 listens. Without the
// number of its interface, which is each host's own.
const char* name_job(sockaddr_storage first, char* text, std::size_t size) {
  char address[96];
  const std::uint16_t port = port_of(first);
  set_port(first, 0);
  if (first.ss_family == AF_INET6) set_scope(first, 0);
  std::snprintf(text, size, "%s:%u", format_address(first, address, sizeof address), port);
  return text;
}

void print_stats(JobRuntime& job) {
  Hold hold(job.engine->gate());
  job.engine->count_resent();
  char name[64], settings[kStatsSettingsMax], text[kStatsBytes];
  StatsHead head;
  head.rank = job.rank;
  head.ranks = job.size;
  head.job = name_job(job.peers[0].address, name, sizeof name);
  head.controller = controller_name(job.knobs.controller);
  head.settings = format_changed_knobs(job.knobs, settings, sizeof settings);
  const std::size_t length = format_stats(job.engine->counters(), head, text);
  if (write(2, text, length) < 0) errno = 0;  // nobody is listening: nothing more to do about it
}

}  // namespace

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
  if (engine != nullptr && knobs.stats) print_stats(*this);
  if (knobs.trace) trace_finish();
}

int JobRuntime::fail_lost(int code, int peer, int error, const char* what) {
  char who[Engine::kDescribeBytes] = "", more[kAdviceBytes];
  if (peer >= 0) engine->describe(peer, who, sizeof who);
  return fail(code, "rank %d lost %s: %s%s%s%s", rank, who,
              error != 0 ? loss_text(error) : "connection lost", what != nullptr ? "; " : "",
              what != nullptr ? what : "", advice(peer, error, more, sizeof more));
}

}  // namespace mplite
