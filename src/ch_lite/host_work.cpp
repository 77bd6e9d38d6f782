// The host's work that a thread of ours runs while the application computes: lite_set_host_work and
// what belongs to it. The thread is the controller's (mplite/progress/host_work.h).
#include "ch_lite/ch_lite_host_work.h"

#include <cstdint>

#include "ch_lite/boot.h"

namespace ch_lite {
namespace {

using mplite::Counters;

bool host_message_due() { return g_boot->device->active_messages() != 0; }
bool host_due() { return g_boot->device->completions() != 0 || host_message_due(); }
bool host_pending() { return host_due() || g_boot->host_pending() != 0; }
std::uint64_t host_activity() {
  const Counters& counters = g_boot->engine->counters();
  return g_boot->device->events() + counters.frames_out + counters.self_msgs +
         static_cast<unsigned>(LITE_HOT_GET(calls));
}
bool differs_from_seen(std::uint64_t now) {
  const bool news = now != g_boot->host_activity_seen;
  g_boot->host_activity_seen = now;
  return news;
}
// What the application's own call has finished or started may let a schedule go on, which the
// helper, asleep on the sockets, would not learn.
bool host_news() { return differs_from_seen(host_activity()); }
// sigio: the start of a schedule is told of (lite_host_has_work), and a thread costs more to wake
// than what most calls do.
bool host_events() { return differs_from_seen(g_boot->device->events()); }

// What a completion sets free is started by the next pass, and may be complete at once: passes
// until two in a row change nothing. False: one could not be made.
bool run_host() {
  for (int idle_passes = 0; idle_passes < 2 && g_boot->controller.helping_host();) {
    const std::uint64_t before = host_activity();
    const bool due = g_boot->device->completions() !=
                     0;  // an active message may still be arriving: it comes with an event
    ++g_boot->engine->counters().host_passes;
    if (g_boot->host_progress() == 0) return false;
    idle_passes = !due && host_activity() == before ? idle_passes + 1 : 0;
  }
  return true;
}

}  // namespace
}  // namespace ch_lite

using namespace ch_lite;
using namespace mplite;

int lite_host_work_kind(void) {
  if (g_boot == nullptr || g_boot->device == nullptr) return LITE_HOST_WORK_NEVER;
  switch (g_boot->controller.kind()) {
    case ControllerKind::kThread: return LITE_HOST_WORK_ALWAYS;
    case ControllerKind::kSigio:
      return g_boot->knobs.host_thread ? LITE_HOST_WORK_ON_DEMAND : LITE_HOST_WORK_NEVER;
    case ControllerKind::kSync: break;
  }
  return LITE_HOST_WORK_NEVER;
}

int lite_set_host_work(int (*progress)(void), int (*pending)(void)) {
  if (lite_host_work_kind() == LITE_HOST_WORK_NEVER) return LITE_ERR_ARG;
  HostWork::Calls calls;
  calls.progress = run_host;
  calls.pending = host_pending;
  calls.due = host_due;
  calls.message_due = host_message_due;
  calls.news = lite_host_work_kind() == LITE_HOST_WORK_ALWAYS ? host_news : host_events;
  g_boot->host_progress = progress;
  g_boot->host_pending = pending;
  if (g_boot->controller.begin_host_work(calls) == 0) return LITE_OK;
  g_boot->host_progress = nullptr;
  return LITE_ERR_NOMEM;
}

void lite_host_has_work(int moves) {
  LITE_HOT_SET(away, 0);  // a schedule may have started nothing of the device's, but it is a start
  if (g_boot != nullptr) g_boot->controller.host_has_work(moves != 0);
}

int lite_host_moved(void) {
  return g_boot != nullptr && g_boot->device != nullptr && host_events() ? 1 : 0;
}

int lite_host_message_due(void) {
  return g_boot != nullptr && g_boot->device != nullptr && host_message_due() ? 1 : 0;
}

void lite_host_may_go_on(void) {
  if (g_boot != nullptr) g_boot->controller.host_may_go_on();
}

unsigned lite_requests_used(void) {
  return g_boot != nullptr && g_boot->device != nullptr ? g_boot->device->requests_used() : 0;
}

void lite_am_expect(int change) {
  if (g_boot == nullptr || g_boot->device == nullptr) return;
  Hold hold(g_boot->engine->gate());
  g_boot->device->expect_active_messages(change);
}

void lite_host_ending(void) {
  if (g_boot != nullptr) g_boot->controller.end_host_work();
}

void lite_host_resumes(void) {
  if (g_boot != nullptr && g_boot->host_progress != nullptr)
    lite_set_host_work(g_boot->host_progress, g_boot->host_pending);
}
