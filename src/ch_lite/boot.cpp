// Start and end of the device in a real process: knobs, listener, engine, channel, device,
// controller; waiting; the last error. The part of ch_lite.h that knows of sockets and signals;
// api.cpp has the rest.
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "ch_lite/boot.h"
#include "ch_lite/ch_lite.h"
#include "ch_lite/ch_lite_jobs.h"
#include "ch_lite/channel/channel.h"
#include "ch_lite/channel/channel_state.h"
#include "ch_lite/device/device.h"
#include "ch_lite/device/patience.h"
#include "ch_lite/tools.h"
#include "mplite/net/loss.h"
#include "mplite/runtime/last_words.h"
#include "mplite/runtime/lone_rank.h"
#include "mplite/tuning/eager_cutoff.h"
#include "mplite/tuning/repoll.h"

namespace ch_lite {

using namespace mplite;

Boot* g_boot = nullptr;

namespace {

constexpr std::int64_t kReachNs = 500'000'000;  // a peer that is waited for so long is connected to

int start_fault(StartFault fault, const char* error) {
  return fail(fault == StartFault::kArgument ? LITE_ERR_ARG
              : fault == StartFault::kTable  ? LITE_ERR_JOB
              : fault == StartFault::kMemory ? LITE_ERR_NOMEM
                                             : LITE_ERR_SYSTEM,
              "%s", error);
}

void progress(void*) { g_boot->device->progress(); }
// What a schedule of the host's passes on through shared memory is not seen as progress.
bool is_heavy(void*, bool host_waits) {
  return (host_waits && g_boot->shared_memory) || g_boot->device->is_heavy();
}
void on_outstanding(bool outstanding) { g_boot->controller.set_outstanding(outstanding); }
void give_up(void*, int peer, int error) { g_boot->engine->give_up(peer, error); }

void report(void*, int code, int peer, int error, const char* what) {
  if (code == LITE_ERR_PEER_LOST) {
    g_boot->fail_lost(code, peer, error, what);
    if (peer >= 0) g_boot->tell_of_lost_peer(peer);
    return;
  }
  char who[Engine::kDescribeBytes] = "";
  // one that does not exist is in no table
  if (peer >= 0 && peer < g_boot->engine->peers()) g_boot->engine->describe(peer, who, sizeof who);
  fail(code, "%s%s%s%s%s", what != nullptr ? what : "error", who[0] != 0 ? ", " : "", who,
       error != 0 ? ": " : "", error != 0 ? loss_text(error) : "");
}

// Gate held, ordinary context.
void look_for_awaited_peers(std::int64_t now) {
  Boot& b = *g_boot;
  if (now < b.reach_ns) return;
  b.reach_ns = now + kReachNs;
  b.device->reach_awaited_peers();
}
void tick(void*) { look_for_awaited_peers(g_boot->net.now_ns()); }

void look_everywhere(void*, bool on) {
  mplite::ProgressMode mode = g_boot->engine->mode();
  mode.poll_all_sockets = on;
  g_boot->engine->set_mode(mode);
}
void came_back(void*) { g_boot->controller.came_back(); }
// A call that has neither started nor looked at anything (MPI_Win_sync, MPI_Type_size) is no sign
// of the application: taken for one, a loop of such calls would put the timer off for ever.
void leave(void*) {
  if (LITE_HOT_GET(away) != 0) return g_boot->controller.stay_away();
  g_boot->controller.leave_library(LITE_HOT_GET(last_call));
  if (!g_boot->controller.in_helper()) LITE_HOT_SET(away, 1);
}
bool nobody_listens(void*) { return g_boot->controller.in_helper(); }
bool may_gather(void*) { return g_boot->controller.may_gather(); }
Guard guard(void*, bool company) {
  mplite::Controller& controller = g_boot->controller;
  if (!controller.guard_gathered(company)) return Guard::kNone;
  return controller.gathers_by_thread() ? Guard::kSoFar : Guard::kUntilItLeaves;
}

int (*g_host_news)() = nullptr;

// Whoever asks this rank what it waits for (lite-info --job) is told. `polls`: in calls that do not
// wait, one after the other. Gate free.
void answer(Boot& b, std::int64_t now, bool polls) {
  Stall::Wait wait;
  wait.has_threads = b.thread_multiple;
  wait.polls = polls;
  for (int asker; (asker = b.reports.accept(now)) >= 0;)
    b.stall.tell(asker, wait, now, b.wait_began_ns, b.wait_moved_ns);
}

// A call that may not block has found nothing. With several application threads the core is given
// away when the host's lock is open (lite_host_takes_yield): those that wait for it are what it is
// given away for.
void give_way(void*) {
  Boot& b = *g_boot;
  if (b.controller.in_helper() || !is_fruitless_too_often(lite_call)) return;
  if (const std::int64_t now = b.net.now_ns(); b.reports.is_due(now)) answer(b, now, true);
  if (b.thread_multiple) {
    LITE_HOT_SET(yield_due, 1);
  } else if (b.policy.yield_after_ns == 0) {
    b.waiting.yield(b.policy, *b.engine);
  }
}

// The host may not wait, or has to look at something first.
void hurry(Boot& b, Rest allowed) {
  if (allowed != Rest::kYield) return;
  if (b.thread_multiple) {
    give_way(nullptr);
  } else if (b.policy.yield_after_ns == 0) {
    b.waiting.yield(b.policy, *b.engine);
  }
}

// What the sockets have brought and taken so far. Without the gate, beside a helper thread that
// lets a caller in: each word is read whole, and what is missed is seen in the next turn.
[[gnu::no_sanitize_thread]] std::uint64_t socket_news(const Counters& counters) {
  return counters.frames_in + counters.bytes_out + counters.connections;
}

// The same for who is told of it: a frame may take minutes.
[[gnu::no_sanitize_thread]] std::uint64_t bytes_moved(const Counters& counters) {
  return counters.bytes_in + counters.bytes_out;
}

// lite_progress found nothing, again. If the host may wait: poll, give the core away, or sleep, by
// how long there has been no news.
void idle(void*, Rest allowed) {
  Boot& b = *g_boot;
  if (b.controller.in_helper()) return;
  const unsigned waits = b.device->pace().waits();
  if (waits != b.wait_noted) b.controller.note_wait();
  b.wait_noted = waits;
  b.controller.enter_wait();
  if (allowed != Rest::kSleep) return hurry(b, allowed);
  const bool new_wait = waits != b.wait_seen;
  b.wait_seen = waits;
  if (new_wait) b.wait_began_ns = Boot::kNotKnown;
  const bool own_core = b.policy.yield_after_ns > 0;
  const bool moved = b.waiting.has_moved(socket_news(b.engine->counters()));
  // A new wait of the host is news too: its first polls are cheap and quick, if it has its core to
  // itself.
  if (moved || (new_wait && own_core)) b.waiting.news();
  if (b.policy.own_core && !b.shared_memory && !b.thread_multiple)
    b.engine->set_repolls(Repoll::kTimes);
  if (own_core && !b.waiting.clock_is_due()) return;
  const std::int64_t now = b.net.now_ns();
  if (new_wait) b.waiting.news_at(now);
  b.note_wait(now, bytes_moved(b.engine->counters()));
  if (b.reports.is_due(now)) [[unlikely]]
    answer(b, now, false);
  if (b.stall.on()) [[unlikely]]
    b.stall.found_nothing({waits, b.thread_multiple, g_host_news, false}, now);
  const WaitStep step = b.waiting.next(b.policy, now);
  if (step.kind == WaitStep::kPoll) return;
  // With several application threads the host holds its lock around us: sleeping would keep the
  // others out, and so would a yield (lite_host_lets_go). Still due: the host is in a loop that
  // keeps its lock.
  const bool due = LITE_HOT_GET(yield_due) != 0;
  if (b.thread_multiple && !due) {
    LITE_HOT_SET(yield_due, 1);
    return;
  }
  if (step.kind == WaitStep::kYield || b.thread_multiple)
    return b.waiting.yield(b.policy, *b.engine);
  if (g_host_news != nullptr && g_host_news() != 0) {
    note_news(lite_call);
    b.waiting.news_at(now);
    b.stall.moved(now);
    return;
  }
  Hold hold(b.engine->gate());
  look_for_awaited_peers(now);
  b.engine->wait(step.timeout_ns);
}

void tell_topology(const Boot& b, int local_ranks) {
  char text[160];
  std::fprintf(
      stderr,
      "lite-topology rank=0 %s; %d ranks on this host, %d of them on these cores; polls %lld us, "
      "then yields, sleeps after %lld us\n",
      format_topology(b.topology, text, sizeof text), local_ranks, b.sharing,
      static_cast<long long>(b.policy.yield_after_ns / 1000),
      static_cast<long long>(b.policy.sleep_after_ns < 0 ? -1 : b.policy.sleep_after_ns / 1000));
}

void doubt_job_of_one() {
  char text[512];
  if (doubt_lone_rank(process_environment, text, sizeof text) != nullptr)
    std::fprintf(stderr, "ch_lite: %s\n", text);
}

// False: no memory.
bool start_channel(Boot& b) {
  b.channel = new (std::nothrow) ChannelState(*b.engine);
  if (b.channel == nullptr || b.channel->peers == nullptr) return false;
  b.channel->wait_policy = b.policy;
  b.channel->on_outstanding = on_outstanding;
  channel_bind(b.channel);
  return true;
}

DeviceHooks device_hooks() {
  DeviceHooks hooks;
  hooks.idle = idle;
  hooks.give_way = give_way;
  hooks.came_back = came_back;
  hooks.leave = leave;
  hooks.may_gather = may_gather;
  hooks.guard = guard;
  hooks.nobody_listens = nobody_listens;
  hooks.report = report;
  hooks.give_up = give_up;
  hooks.look_everywhere = look_everywhere;
  hooks.tick = tick;
  return hooks;
}

// False: no memory.
bool start_device(Boot& b, bool thread_multiple) {
  DeviceOptions device;
  device.rank = b.rank;
  device.size = b.size;
  device.short_max = b.knobs.short_max;
  device.eager_auto = b.knobs.eager_max == kEagerAuto;
  device.eager_max = device.eager_auto ? kEagerCutoff : b.knobs.eager_max;
  device.tuning = b.knobs.tuning;
  device.credits_bytes = b.knobs.credits;
  device.unexpected_max_bytes = b.knobs.unexpected_max;
  device.thread_multiple = thread_multiple;
  device.notes_age = b.knobs.stall_ns != 0;
  device.hooks = device_hooks();
  auto* windows = new (std::nothrow) std::uint64_t[static_cast<std::size_t>(b.size)];
  if (windows == nullptr) return false;
  for (int i = 0; i < b.size; ++i)
    windows[i] = credit_window(b.peers[i].credits, b.peers[i].unexpected_max, b.size);
  device.windows = windows;
  b.device = new (std::nothrow) Device(device);
  if (b.device != nullptr) device_bind(b.device);
  const bool runs = b.device != nullptr && b.device->start();
  delete[] windows;
  if (!runs) return false;
  b.engine->set_window(
      static_cast<std::uint32_t>(std::min<std::uint64_t>(b.device->window(), INT32_MAX)));
  return true;
}

void free_boot() {
  Boot* b = g_boot;
  if (b == nullptr) return;
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

void Boot::tell_of_lost_peer(int peer) {
  if (peer == told_peer) return;
  told_peer = peer;
  say_last_words(g_last_error);
}

}  // namespace ch_lite

using namespace ch_lite;
using namespace mplite;

const char* lite_last_error(void) { return g_last_error; }
void lite_say_last_words(const char* text) { say_last_words(text); }

namespace {

// glibc raises its dynamic mmap threshold to the size of a block that was mapped and is freed, and
// keeps twice as much at the top of the heap (mallopt(3)). So one block does it that nobody
// touches, and who has set the threshold (mallopt, GLIBC_TUNABLES) keeps his: it is dynamic no more
// then.
void raise_mmap_threshold(std::uint64_t bytes) {
  void* volatile block = bytes != 0 ? std::malloc(bytes) : nullptr;
  std::free(block);
}

}  // namespace

int lite_init_local(void* address) {
  static_assert(kCardBytes == LITE_ADDRESS_BYTES);
  static const char kTwice[] = "lite_init_local was called twice";
  static const char kNoMemory[] = "out of memory at start";
  make_failed_card(g_boot != nullptr ? kTwice : kNoMemory, address);
  if (g_boot != nullptr) return fail(LITE_ERR_ARG, "%s", kTwice);
  Boot* b = g_boot = new (std::nothrow) Boot;
  if (b == nullptr) return fail(LITE_ERR_NOMEM, "%s", kNoMemory);
  char error[768];
  const StartFault fault = b->listen(address, error, sizeof error);
  tools_take_knobs(b->knobs);
  if (fault == StartFault::kNone) raise_mmap_threshold(b->knobs.mmap_threshold);
  if (fault == StartFault::kNone) return LITE_OK;
  free_boot();
  return start_fault(fault, error);
}

int lite_find_failed(const void* table, int size) {
  char sentence[512];
  const int rank = find_failed(table, size, sentence, sizeof sentence);
  if (rank >= 0) fail(LITE_ERR_ARG, "%s", sentence);
  return rank;
}

int lite_init_world(int rank, int size, const void* table, int local_ranks, int thread_multiple) {
  Boot* b = g_boot;
  if (b == nullptr || b->engine != nullptr)
    return fail(LITE_ERR_ARG, "lite_init_world belongs behind lite_init_local, once");
  char error[768];
  if (const StartFault fault = b->join(rank, size, table, local_ranks, error, sizeof error);
      fault != StartFault::kNone)
    return start_fault(fault, error);
  if (size == 1) doubt_job_of_one();
  if (b->knobs.stats && rank == 0) tell_topology(*b, local_ranks);
  tools_watch(b->engine->gate(), b->engine->counters());
  if (!start_channel(*b))
    return fail(LITE_ERR_NOMEM, "out of memory for the channels of %d ranks", size);
  if (!start_device(*b, thread_multiple != 0))
    return fail(LITE_ERR_NOMEM, "out of memory for the device (%d ranks)", size);
  if (const StartFault fault = b->start_progress(progress, &lite_hot.want_arm, error, sizeof error);
      fault != StartFault::kNone)
    return start_fault(fault, error);
  b->controller.ask_for_weight(is_heavy);
  lite_set_thread_multiple(thread_multiple);
  const Tuning& tuning = b->knobs.tuning;
  b->device->set_may_gather(tuning.has(Heuristic::kCoalesce));
  b->waiting.start(b->knobs);
  b->stall.start(b->knobs.stall_ns, *b->engine, *b->device, b->peers[rank].host);
  b->reports.open(rank, size);
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
  const Tuning& tuning = b->knobs.tuning;
  b->policy = choose_wait_policy(b->topology.cores, b->sharing, b->knobs.spin_ns, on != 0,
                                 tuning.has(Heuristic::kWaitPolicy));
  b->shared_memory = on != 0;
  // Where ranks share cores, each poll has to give the core away.
  b->device->pace().set_on(on != 0 && b->policy.own_core && tuning.has(Heuristic::kPacing));
}

void lite_host_lets_go_slow(void) {
  LITE_HOT_SET(yield_due, 0);
  if (g_boot == nullptr || g_boot->engine == nullptr) {
    sched_yield();
    return;
  }
  g_boot->waiting.give_core_away(g_boot->policy, *g_boot->engine);
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
  // A send whose request was freed is complete when it is received, whenever that is.
  for (const std::int64_t start = b->net.now_ns();;) {
    {
      Hold hold(b->engine->gate());
      b->device->progress();
      const bool sends = b->device->sends_to_other_jobs();
      if (!sends && b->engine->queued_sends() == 0 && b->engine->farewell()) return;
      if (!sends && b->net.now_ns() - start >= kPatienceNs) return;
    }
    b->device->deliver_active_messages();
    MPID_ChannelWait(1'000'000);
  }
}

void lite_finalize_close(void) {
  Boot* b = g_boot;
  if (b == nullptr) return;
  b->reports.close();
  b->end_progress();
  LITE_HOT_SET(want_arm, 0);
  free_boot();
}
