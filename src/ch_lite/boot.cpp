// Start and end of the device in a real process: knobs, listener, engine, channel, device, controller; waiting; the last error.
// The part of ch_lite.h that knows of sockets and signals; api.cpp has the rest.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>

#include "../mplite/controller.h"
#include "../mplite/last_words.h"
#include "../mplite/process.h"
#include "../mplite/stats.h"
#include "../mplite/trace.h"
#include "ch_lite.h"
#include "ch_lite_jobs.h"
#include "channel.h"
#include "channel_state.h"
#include "device.h"
#include "eager_cutoff.h"
#include "tools.h"

namespace ch_lite {
namespace {

using namespace mplite;

constexpr std::int64_t kJustNow = -1;
constexpr int kCloseLooks = 3;  // the way from one poll to the next is half of what a read that finds nothing costs
constexpr std::uint32_t kPollsPerClock = 4;  // reading the clock is a tenth of a read that finds nothing

// One per process, from lite_init_local to lite_finalize_close.
struct Boot : Process {
  ChannelState* channel = nullptr;
  Device* device = nullptr;
  Controller controller;
  bool thread_multiple = false;
  bool shared_memory = false;  // the host waits for that, too
  int told_peer = -1;  // the lost peer that was told of last
  // waiting
  unsigned wait_seen = 0;
  std::uint64_t news_seen = 0;
  std::int64_t news_ns = 0;  // the clock at the last news, or kJustNow: it has not been read since
  std::uint32_t polls = 0;  // since then
  std::uint64_t host_activity_seen = 0;
};
Boot* g_boot = nullptr;

int start_fault(StartFault fault, const char* error) {
  return fail(fault == StartFault::kArgument ? LITE_ERR_ARG : fault == StartFault::kMemory ? LITE_ERR_NOMEM : LITE_ERR_SYSTEM, "%s", error);
}

void progress(void*) { g_boot->device->progress(); }
void on_outstanding(bool outstanding) { g_boot->controller.set_outstanding(outstanding); }
void give_up(void*, int peer, int error) { g_boot->engine->give_up(peer, error); }

// Told at once: what MPI does next may be an abort.
void tell_of_lost_peer(int peer) {
  if (peer == g_boot->told_peer) return;
  g_boot->told_peer = peer;
  say_last_words(g_last_error);
}

void report(void*, int code, int peer, int error, const char* what) {
  char who[192] = "";
  if (peer >= 0) g_boot->engine->describe(peer, who, sizeof who);
  if (code == LITE_ERR_PEER_LOST && error == ETIMEDOUT)
    fail(code, "rank %d lost %s: no answer in time (%s); check that host and port are reachable (firewall, LITE_IFACE, LITE_PORT_RANGE), or raise LITE_CONNECT_TIMEOUT or LITE_KEEPALIVE",
         g_boot->rank, who, strerror(error));
  else if (code == LITE_ERR_PEER_LOST)
    fail(code, "rank %d lost %s: %s%s%s", g_boot->rank, who, error != 0 ? strerror(error) : "connection lost", what != nullptr ? "; " : "",
         what != nullptr ? what : "");
  else
    fail(code, "%s%s%s%s%s", what != nullptr ? what : "error", who[0] != 0 ? ", " : "", who, error != 0 ? ": " : "",
         error != 0 ? strerror(error) : "");
  if (code == LITE_ERR_PEER_LOST && peer >= 0) tell_of_lost_peer(peer);
}

void look_everywhere(void*, bool on) { g_boot->engine->set_exhaustive(on); }
void came_back(void*) { g_boot->controller.came_back(); }
void leave(void*) {
  g_boot->controller.leave_library(LITE_HOT_GET(last_call));
  if (!g_boot->controller.in_helper()) LITE_HOT_SET(away, 1);
}
bool guard(void*) { return g_boot->controller.guard_gathered(); }

int (*g_host_news)() = nullptr;

// lite_progress found nothing, again. The host is waiting: poll, give the core away, or sleep, by how long there has been no news.
void idle(void*, std::uint32_t) {
  Boot& b = *g_boot;
  if (b.controller.in_helper()) return;
  const bool new_wait = b.device->pace().waits() != b.wait_seen;
  b.wait_seen = b.device->pace().waits();
  if (new_wait) b.controller.note_wait();
  b.controller.enter_wait();
  const Counters& counters = b.engine->counters();
  const std::uint64_t news = counters.frames_in + counters.bytes_out + counters.connections;
  const bool own_core = b.policy.yield_after_ns > 0;
  if (news != b.news_seen || (new_wait && own_core)) {  // a new wait of the host is news too: its first polls are cheap and quick, if it has its core to itself
    b.news_seen = news;
    b.news_ns = kJustNow;
    b.polls = 0;
  }
  if (own_core && !b.shared_memory && !b.thread_multiple) b.engine->set_close_looks(kCloseLooks);
  if (own_core && ++b.polls % kPollsPerClock != 0) return;
  const std::int64_t now = b.net.now_ns();
  if (b.news_ns == kJustNow || new_wait) b.news_ns = now;
  const WaitStep step = decide(b.policy, now - b.news_ns);
  if (step.kind == WaitStep::kPoll) return;
  // With several application threads the host holds its lock around us: sleeping would keep the others out, and so would a yield (lite_host_lets_go). Still due: the host
  // is in a loop that keeps its lock.
  const bool due = LITE_HOT_GET(yield_due) != 0;
  if (b.thread_multiple && !due) {
    LITE_HOT_SET(yield_due, 1);
    return;
  }
  if (step.kind == WaitStep::kYield || b.thread_multiple) {
    ++b.engine->counters().yields;
    sched_yield();
    return;
  }
  if (g_host_news != nullptr && g_host_news() != 0) {
    b.news_ns = now;
    return;
  }
  MPID_ChannelWait(step.timeout_ns);
}

// ---- event-driven mode: the helper thread runs the host's progress ----

void (*g_host_progress)() = nullptr;
int (*g_host_pending)() = nullptr;

bool host_due() { return g_boot->device->completions() != 0 || g_boot->device->active_messages() != 0; }
bool host_pending() { return host_due() || g_host_pending() != 0; }
std::uint64_t host_activity() {
  const Counters& counters = g_boot->engine->counters();
  return g_boot->device->events() + counters.frames_out + counters.self_msgs + static_cast<unsigned>(LITE_HOT_GET(calls));
}
// What the application's own call has finished or started may let a schedule go on, which the helper, asleep on the sockets, would not learn.
bool host_news() {
  const std::uint64_t now = host_activity();
  const bool news = now != g_boot->host_activity_seen;
  g_boot->host_activity_seen = now;
  return news;
}

// What a completion sets free is started by the next pass, and may be complete at once: passes until two in a row change nothing.
void run_host() {
  for (int idle_passes = 0; idle_passes < 2 && g_boot->controller.helping_host();) {
    const std::uint64_t before = host_activity();
    const bool due = g_boot->device->completions() != 0;  // an active message may still be arriving: it comes with an event
    ++g_boot->engine->counters().host_passes;
    g_host_progress();
    idle_passes = !due && host_activity() == before ? idle_passes + 1 : 0;
  }
}

void free_boot() {
  Boot* b = g_boot;
  if (b == nullptr) return;
  g_host_progress = nullptr;
  g_host_news = nullptr;
  tools_leave();
  b->end_engine();  // completes what is left, so before what it calls
  device_bind(nullptr);
  delete b->device;
  channel_bind(nullptr);
  delete b->channel;
  delete b;
  g_boot = nullptr;
}

}  // namespace
}  // namespace ch_lite

using namespace ch_lite;
using namespace mplite;

const char* lite_last_error(void) { return g_last_error; }
void lite_say_last_words(const char* text) { say_last_words(text); }

int lite_init_local(void* address) {
  static_assert(kAddressBlobBytes == LITE_ADDRESS_BYTES);
  if (g_boot != nullptr) return fail(LITE_ERR_ARG, "lite_init_local was called twice");
  Boot* b = g_boot = new (std::nothrow) Boot;
  if (b == nullptr) return fail(LITE_ERR_NOMEM, "out of memory at start");
  char error[768];
  const StartFault fault = b->listen(address, error, sizeof error);
  tools_take_knobs(b->knobs);
  if (fault == StartFault::kNone) return LITE_OK;
  free_boot();
  return start_fault(fault, error);
}

int lite_init_world(int rank, int size, const void* table, int local_ranks, int thread_multiple) {
  Boot* b = g_boot;
  if (b == nullptr || b->engine != nullptr) return fail(LITE_ERR_ARG, "lite_init_world belongs behind lite_init_local, once");
  char error[768];
  if (const StartFault fault = b->join(rank, size, table, local_ranks, error, sizeof error); fault != StartFault::kNone) return start_fault(fault, error);
  if (b->knobs.stats && rank == 0) {
    char text[160];
    std::fprintf(stderr, "lite-topology rank=0 %s; %d ranks on this host, %d of them on these cores; polls %lld us, then yields, sleeps after %lld us\n",
                 format_topology(b->topology, text, sizeof text), local_ranks, b->sharing, static_cast<long long>(b->policy.yield_after_ns / 1000),
                 static_cast<long long>(b->policy.sleep_after_ns < 0 ? -1 : b->policy.sleep_after_ns / 1000));
  }
  tools_watch(b->engine->gate(), b->engine->counters());
  b->channel = new (std::nothrow) ChannelState(*b->engine);
  if (b->channel == nullptr || b->channel->peers == nullptr) return fail(LITE_ERR_NOMEM, "out of memory for the channels of %d ranks", size);
  b->channel->wait_policy = b->policy;
  b->channel->on_outstanding = on_outstanding;
  channel_bind(b->channel);

  DeviceOptions device;
  device.rank = rank;
  device.size = size;
  device.short_max = b->knobs.short_max;
  device.eager_auto = b->knobs.eager_max == kEagerAuto;
  device.eager_max = device.eager_auto ? kEagerCutoffMax : b->knobs.eager_max;  // auto: until something is measured
  device.credits_bytes = b->knobs.credits;
  device.unexpected_max_bytes = b->knobs.unexpected_max;
  device.thread_multiple = thread_multiple != 0;
  device.hooks.idle = idle;
  device.hooks.came_back = came_back;
  device.hooks.leave = leave;
  device.hooks.guard = guard;
  device.hooks.report = report;
  device.hooks.give_up = give_up;
  device.hooks.look_everywhere = look_everywhere;
  b->device = new (std::nothrow) Device(device);
  if (b->device == nullptr) return fail(LITE_ERR_NOMEM, "out of memory for the device");
  device_bind(b->device);
  if (!b->device->start()) return fail(LITE_ERR_NOMEM, "out of memory for the device's queues (%d ranks)", size);
  b->engine->set_window(static_cast<std::uint32_t>(std::min<std::uint64_t>(b->device->window(), INT32_MAX)));

  Controller::Options controller;
  controller.kind = b->knobs.controller;
  controller.signal = b->knobs.signal;
  controller.progress = progress;
  controller.want_arm = &lite_hot.want_arm;
  controller.grace = b->knobs.grace;
  if (b->controller.start(*b->engine, controller, error, sizeof error) < 0) return fail(LITE_ERR_SYSTEM, "%s", error);
  lite_set_thread_multiple(thread_multiple);
  b->device->set_may_gather(b->controller.may_gather());
  return LITE_OK;
}

void lite_set_thread_multiple(int on) {
  if (g_boot == nullptr || g_boot->device == nullptr) return;
  g_boot->thread_multiple = on != 0;
  g_boot->controller.set_always(on != 0);
}

void lite_set_shared_memory(int on) {
  Boot* b = g_boot;
  if (b == nullptr || b->device == nullptr) return;
  b->policy = choose_wait_policy(b->topology.cores, b->sharing, b->knobs.spin_ns, on != 0);
  b->shared_memory = on != 0;
  // Where ranks share cores, each poll has to give the core away.
  b->device->pace().set_on(on != 0 && b->policy.yield_after_ns > 0);
}

void lite_host_lets_go_slow(void) {
  LITE_HOT_SET(yield_due, 0);
  sched_yield();
}

void lite_set_host_news(int (*news)(void)) { g_host_news = news; }

void lite_finalize_quiesce(void) {
  Boot* b = g_boot;
  if (b == nullptr || b->engine == nullptr) return;
  Hold hold(b->engine->gate());
  b->engine->quiesce();
}

void lite_finalize_goodbye(void) {
  constexpr std::int64_t kPatienceNs = 2'000'000'000;
  Boot* b = g_boot;
  if (b == nullptr || b->device == nullptr || b->engine->peers() == b->size) return;
  {
    Hold hold(b->engine->gate());
    b->engine->say_goodbye();
  }
  for (const std::int64_t start = b->net.now_ns(); b->net.now_ns() - start < kPatienceNs;) {
    {
      Hold hold(b->engine->gate());
      b->device->progress();
      if (b->engine->queued_sends() == 0 && b->engine->farewell()) return;
    }
    b->device->deliver_active_messages();
    MPID_ChannelWait(1'000'000);
  }
}

void lite_finalize_close(void) {
  Boot* b = g_boot;
  if (b == nullptr) return;
  if (b->engine != nullptr) b->controller.stop();
  LITE_HOT_SET(want_arm, 0);
  if (b->engine != nullptr && b->knobs.stats) {
    char text[kStatsBytes];
    const std::size_t length = format_stats(b->engine->counters(), b->rank, controller_name(b->knobs.controller), text);
    if (write(2, text, length) < 0) errno = 0;  // nobody is listening: nothing more to do about it
  }
  if (b->knobs.trace) trace_finish(b->knobs.trace_prefix);
  free_boot();
}

int lite_has_helper(void) { return g_boot != nullptr && g_boot->controller.kind() == ControllerKind::kThread ? 1 : 0; }

void lite_set_host_work(void (*progress)(void), int (*pending)(void)) {
  if (lite_has_helper() == 0) return;
  g_host_progress = progress;
  g_host_pending = pending;
  Controller::HostWork work;
  work.progress = run_host;
  work.pending = host_pending;
  work.due = host_due;
  work.news = host_news;
  g_boot->controller.set_host_work(work);
}

void lite_host_ending(void) {
  if (g_boot != nullptr) g_boot->controller.end_host_work();
}

void lite_host_resumes(void) {
  if (g_host_progress != nullptr && g_boot != nullptr && g_boot->device != nullptr) lite_set_host_work(g_host_progress, g_host_pending);
}

// ---- processes of other jobs ----

namespace {

// What is put off is done at the end, as by every call on the device.
struct Work {
  Work() : hold(g_boot->engine->gate()), scope(*g_boot->device) {}
  Hold hold;
  Device::Scope scope;
};

std::span<const std::uint8_t> bytes_at(const void* memory, std::size_t size) { return {static_cast<const std::uint8_t*>(memory), size}; }

int met(int peer) {
  if (peer >= 0) return peer;
  if (peer == -EINVAL) return fail(LITE_ERR_ARG, "the name of a process has no key in it");
  if (peer == -ENOMEM) return fail(LITE_ERR_NOMEM, "out of memory for processes of other jobs (%d are known)", g_boot->engine->peers() - g_boot->size);
  return fail(LITE_ERR_PEER_LOST, "a process of another job was lost, and what was open with it is not completed yet");
}

}  // namespace

int lite_peers(void) { return g_boot != nullptr && g_boot->device != nullptr ? g_boot->device->peers() : 0; }

int lite_name(int peer, void* name) {
  static_assert(kProcessNameBytes == LITE_NAME_BYTES && kPortNameBytes == LITE_PORT_BYTES && kKeyBytes == LITE_PROOF_BYTES);
  Work work;
  ProcessName made;
  if (peer < 0 || peer >= g_boot->engine->peers() || !g_boot->engine->name_of(peer, made)) return fail(LITE_ERR_ARG, "peer %d has no name", peer);
  std::memcpy(name, &made, sizeof made);
  return LITE_OK;
}

int lite_meet(const void* name) {
  const auto known = decode_process_name(bytes_at(name, LITE_NAME_BYTES));
  if (!known) return fail(LITE_ERR_ARG, "not the name of a process of this version of ch_lite");
  Work work;
  return met(g_boot->engine->meet(*known));
}

int lite_open_port(uint32_t id, void* port) {
  Boot& b = *g_boot;
  Work work;
  PortName made = {};
  b.engine->name_of(b.rank, made.owner);
  made.id = id;
  b.net.random(made.key, sizeof made.key);
  if (b.engine->open_port(id, made.key) < 0) return fail(LITE_ERR_NOMEM, "out of memory for a port");
  std::memcpy(port, &made, sizeof made);
  return LITE_OK;
}

void lite_close_port(uint32_t id) {
  Work work;
  g_boot->engine->close_port(id);
}

int lite_port_is_open(uint32_t id) {
  Work work;
  return g_boot->engine->port_key(id) != nullptr ? 1 : 0;
}

int lite_meet_at_port(const void* port, void* proof) {
  const auto known = decode_port_name(bytes_at(port, LITE_PORT_BYTES));
  if (!known) return fail(LITE_ERR_ARG, "not the name of a port of this version of ch_lite");
  Work work;
  std::uint8_t made[kKeyBytes];
  make_port_proof(*known, g_boot->keys.open, made);
  std::memcpy(proof, made, sizeof made);
  return met(g_boot->engine->meet_at(*known));
}

int lite_check_caller(uint32_t id, int peer, const void* proof) {
  Boot& b = *g_boot;
  Work work;
  const std::uint8_t* key = b.engine->port_key(id);
  std::uint8_t caller[kKeyBytes], shown[kKeyBytes];
  if (key == nullptr || peer < 0 || peer >= b.engine->peers()) return 0;
  b.engine->key_of(peer, caller);
  std::memcpy(shown, proof, sizeof shown);
  PortName port = {};
  b.engine->name_of(b.rank, port.owner);
  port.id = id;
  std::memcpy(port.key, key, sizeof port.key);
  return check_port_proof(port, caller, shown) ? 1 : 0;
}

int lite_check_peer(int peer) {
  Boot& b = *g_boot;
  Work work;
  const int error = b.engine->peer_error(peer);
  if (error == 0) return LITE_OK;
  char who[192];
  b.engine->describe(peer, who, sizeof who);
  const char* what = error == ECONNREFUSED ? "there is no such port any more, or its process has ended" : error == EKEYREJECTED ? "the name of the port is not one of that process" : strerror(error);
  return fail(LITE_ERR_PEER_LOST, "%s: %s", who, what);
}

void lite_part(int peer) {
  Work work;
  g_boot->engine->part(peer);
}
