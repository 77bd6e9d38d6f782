// Small MPI programs with threads, matched probes and waits that sleep, from one seed: each rank a
// whole device (ch_lite.h) behind a model of the host.
// Oracle: no stand-still; MPI's order; contents; synchronous sends; nothing left. Nobody helps the
// programs to their end, as device_sim does: what is sent is received by the receivers' own calls.
// Runs: probe_sim [--seed S] [--runs N] [--seconds T] [--profile NAME] [--verbose]; a failure
// prints the line that repeats it.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "alloc_trap.h"
#include "ch_lite/ch_lite.h"
#include "ch_lite/channel/channel.h"
#include "ch_lite/channel/channel_state.h"
#include "ch_lite/device/device.h"
#include "content.h"
#include "coroutine.h"
#include "drawn_roads.h"
#include "drawn_sockets.h"
#include "drawn_tuning.h"
#include "driver.h"
#include "fake_net.h"
#include "mplite/engine/engine.h"
#include "random.h"

namespace {

using mplite::ChannelState;
using mplite::Engine;
using mplite::EngineOptions;
using mplite::PeerAddress;
using sim::fail;
using sim::FakeWorld;
using sim::fill;
using sim::g_verbose;
using sim::key_of;
using sim::kUntouched;
using sim::Random;
using sim::right_bytes;

// By controller: who moves the device while the application is outside MPI. Without shared memory,
// and with it (pace.h).
enum class Profile { kSync, kSigio, kThread, kSyncShared, kSigioShared, kThreadShared };
const char* const kProfileNames[] = {"sync",        "sigio",        "thread",
                                     "sync-shared", "sigio-shared", "thread-shared"};
enum class Kind { kSync, kSigio, kThread };
Profile g_profile = Profile::kSync;

// Tag bits that take no part in matching carry the message's number, as in device_sim.
constexpr std::uint32_t kIgnoredBits = 0x7fff0000u;
constexpr int kTags = 3, kMessageKind = 1;
constexpr std::size_t kStackBytes = 512 * 1024;

unsigned long long ull(std::uint64_t number) { return number; }  // for formats
std::size_t at(long index) { return static_cast<std::size_t>(index); }

// How the messages of one communicator are received at one rank. Several threads do it at once, but
// where that is no correct program.
enum class Way {
  kImprobe,    // MPI_Improbe or MPI_Mprobe, and MPI_Mrecv by this thread or another
  kPosted,     // receives from any source with any tag, posted ahead, some of them cancelled
  kBoth,       // all of that at the same time
  kGiven,      // posted receives with given source and tag
  kProbeRecv,  // MPI_Iprobe or MPI_Probe, and MPI_Recv of what that said: one thread only
};
constexpr int kWays = 5;

struct Rank;
struct Caller;

struct Message {
  int from, to;
  std::uint32_t context;
  std::int32_t tag;
  std::uint64_t number;  // from this sender to this receiver, in the order of the sends
  std::uint64_t bytes;
  bool synchronous;
  int receive = -1;       // index of the receive that got it
  bool detached = false;  // by improbe, and not received yet
};

struct Receive {
  std::uint64_t order;  // of posting, or of the matched probe
  std::uint32_t context;
  int source;        // or -1
  std::int32_t tag;  // or LITE_ANY_TAG
  std::vector<std::uint8_t> buffer;
  lite_request* request = nullptr;
  std::uint64_t room = 0;
  bool pending = false;
  bool cancelled = false;
};

struct Send {
  int to;
  std::uint64_t number;
  std::vector<std::uint8_t> buffer;
  bool pending = true;
};

struct Cookie {
  bool is_send;
  std::size_t index;
};

struct Detached {
  lite_message* message;
  std::size_t receive;
  Message* what;
};

// What is yet to be received in one communicator.
struct Lane {
  Way way = Way::kImprobe;
  std::uint64_t free = 0;            // messages that no posted receive and no probe stands for yet
  std::vector<std::uint64_t> given;  // the same by source and tag, kGiven
  Caller* only = nullptr;            // kProbeRecv
};

struct Planned {
  int to;
  std::uint32_t context;
  std::int32_t tag;
  std::uint64_t bytes;
  bool synchronous;
};

struct Rank {
  int id = -1;
  Kind kind = Kind::kSync;
  bool multiple = false;  // MPI_THREAD_MULTIPLE: nobody sleeps
  bool armed = false;     // signals are let through, or the helper thread is awake
  bool in_handler = false, in_helper = false;
  bool signalled = false;  // a handler has run: a sleep ends by that
  bool self_signal = false, guarded = false;
  unsigned unarmed_waits = 0;
  std::uint64_t news_seen = 0, quiet_polls = 0, patience = 0;
  lite_hot_state hot = {0, 0, LITE_CALL_PROGRESS, 0, 0, 0, 0, 0, 0, 0};
  std::unique_ptr<PeerAddress[]> peers;
  std::unique_ptr<mplite::ProtectedNet> protected_net;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ChannelState> channel;
  std::unique_ptr<ch_lite::Device> device;
  std::vector<Lane> lanes;
  std::vector<Planned> plan;  // sent from the front on
  std::size_t planned = 0;
  std::vector<std::deque<Message>> sent;  // by receiver
  std::deque<Send> sends;
  std::deque<Receive> receives;
  std::deque<Cookie> cookies;
  std::vector<Detached> bag;
  std::uint64_t order = 0;
  std::uint64_t sends_pending = 0, window = 0;
  int at_the_end = 0;  // callers
};

// A thread of the application, as a coroutine that the scheduler goes on with.
struct Caller {
  Rank* rank = nullptr;
  int id = 0;
  sim::Coroutine coroutine;
  lite_call_state call = {0, 0, 0, 0, nullptr};
  const char* where = "outside";  // for people
  std::vector<std::size_t> own_sends;
  std::vector<std::size_t> own_receives;  // posted
  bool asleep = false, done = false;
};

struct Sim {
  explicit Sim(std::uint64_t seed);
  void run();

  // the world
  void boot(Rank& r);
  void bind(Rank* r);
  void run_handler(Rank& r);
  void run_in_handler(Rank& r);
  void run_helper(Rank& r);
  void idle(Rank& r, ch_lite::Rest allowed);
  void leave(Rank& r);
  bool can_go_on(const Caller& c) const {
    return !c.done && (!c.asleep || c.rank->signalled || ended || world->has_event(c.rank->id));
  }
  std::uint64_t moved() const;
  void resume(Caller& c);
  void pause();
  [[noreturn]] void stand_still();

  // the host: what MPI calls do with the device
  template <typename Body>
  void call(const char* name, unsigned kind, Body body, bool sending = false);
  void poll();
  template <typename Done>
  void wait_until(Done done);
  void drain();
  void finish(const lite_completion& done);

  // the program
  void live(Caller& c);
  bool step(Caller& c);
  void send(Caller& c);
  void post(Caller& c, std::uint32_t context, int source, std::int32_t tag);
  void improbe(Caller& c, std::uint32_t context, bool blocking);
  void mrecv(Caller& c);
  void probe_recv(Caller& c, std::uint32_t context, bool blocking);
  void test(Caller& c);
  void wait_receive(Caller& c, std::size_t index);
  bool everything_sent(const Rank& r) const { return r.planned == r.plan.size(); }
  bool everything_received(const Rank& r) const;

  // the oracle
  std::size_t new_receive(Rank& r, std::uint32_t context, int source, std::int32_t tag,
                          std::uint64_t room);
  Message& message_of(Rank& r, std::uint32_t context, const lite_status& status);
  void received(Rank& r, std::size_t index, const lite_status& status);
  void sent(Rank& r, std::size_t index, int error);
  bool accepts(const Receive& v, const Message& m) const {
    return v.context == m.context && (v.source < 0 || v.source == m.from) &&
           (v.tag == LITE_ANY_TAG ||
            ((static_cast<std::uint32_t>(v.tag) ^ static_cast<std::uint32_t>(m.tag)) &
             ~kIgnoredBits) == 0);
  }
  void check_order();
  void check_nothing_left();

  Random random;
  sim::Faults faults;
  std::unique_ptr<FakeWorld> world;
  sim::Roads roads;
  std::deque<Rank> ranks;
  std::deque<Caller> callers;
  Caller* current = nullptr;
  Rank* bound = nullptr;
  std::uint32_t contexts = 1;
  std::uint64_t length_max = 0;
  std::uint64_t steps_done = 0;  // of programs: what a stand-still has none of
  // Before everything is sent nobody blocks. Behind that either everybody may, or the sends in
  // flight are bounded: with both, a correct device could stand still.
  bool may_block = false;
  bool ended = false;
  bool shared_memory = false;
  ch_lite::DeviceOptions device_options;
};

Sim* g_sim = nullptr;

// ---- the world ----

Sim::Sim(std::uint64_t seed) : random(seed) {
  g_sim = this;
  static const int shorts[] = {0, 100, 300, 700};
  faults.short_io = shorts[random.below(4)];
  faults.would_block = static_cast<int>(random.below(3)) * 80;
  faults.empty_wait = static_cast<int>(random.below(3)) * 60;
  faults.hidden_event = static_cast<int>(random.below(3)) * 60;
  static const std::uint64_t pipes[] = {300, 5'000, 60'000, 2'000'000};
  faults.pipe_max = pipes[random.below(4)];
  static const std::int64_t delays[] = {0, 500, 20'000, 300'000};
  faults.delay_max_ns = delays[random.below(4)];
  const int size = static_cast<int>(random.between(2, 4));
  world = std::make_unique<FakeWorld>(random.next(), size, faults);
  length_max = std::min<std::uint64_t>(faults.pipe_max * 20, 180'000);
  if (faults.short_io > 300) length_max = std::min<std::uint64_t>(length_max, 20'000);

  static const std::uint64_t cutoffs[] = {0, 64, 1'000, 16'000, 100'000, UINT64_MAX};
  static const std::uint64_t credits[] = {0, 20'000, 100'000, 4u << 20};
  device_options.size = size;
  device_options.short_max = cutoffs[random.below(5)];
  device_options.eager_max = cutoffs[random.below(6)];
  device_options.eager_auto = random.chance(200);
  device_options.credits_bytes = credits[random.below(4)];
  device_options.unexpected_max_bytes = std::uint64_t{64 * 1024} << 5 * random.below(3);
  device_options.hooks.look_everywhere = [](void* arg, bool on) {
    static_cast<Rank*>(arg)->engine->set_mode(on ? mplite::ProgressMode::all_sockets()
                                                 : mplite::ProgressMode::application());
  };
  device_options.hooks.idle = [](void* arg, ch_lite::Rest allowed) {
    g_sim->idle(*static_cast<Rank*>(arg), allowed);
  };
  device_options.hooks.leave = [](void* arg) { g_sim->leave(*static_cast<Rank*>(arg)); };
  device_options.hooks.may_gather = [](void*) { return true; };
  device_options.hooks.guard = [](void* arg, bool) {
    static_cast<Rank*>(arg)->guarded = true;
    return ch_lite::Guard::kUntilItLeaves;
  };
  device_options.hooks.give_up = [](void* arg, int peer, int error) {
    fail("rank %d gives rank %d up: %s", static_cast<Rank*>(arg)->id, peer, std::strerror(error));
  };
  shared_memory = g_profile >= Profile::kSyncShared;
  may_block = random.chance(512);

  world->misuse = [](const char* what) {
    fail("the engine calls %s with a descriptor that is closed or not its own", what);
  };
  world->boundary = [this](int host) {
    Rank& r = ranks[at(host)];
    if (r.kind != Kind::kSigio || !r.armed || r.in_handler || r.device == nullptr) return;
    if (world->signal_pending(host) ? random.chance(300) : random.chance(4)) run_handler(r);
  };
  // The only threads that sleep are those of ranks that have one: it sleeps until its sockets have
  // news or a handler interrupts it, and by no clock.
  world->asleep = [this](int) {
    if (current == nullptr) return;
    current->asleep = true;
    current->rank->signalled = false;
    pause();
    current->asleep = false;
  };
  ch_lite::host_settings.tag_ignore_bits = kIgnoredBits;
  contexts = static_cast<std::uint32_t>(random.between(1, 3));
  static const std::uint64_t windows[] = {1, 4, 24};
  for (int i = 0; i < size; ++i) {
    Rank& r = ranks.emplace_back();
    r.id = i;
    r.kind = static_cast<Kind>(static_cast<int>(g_profile) % 3);
    r.patience = random.below(4);
    r.window = may_block ? UINT64_MAX : windows[random.below(3)];
    r.sent.resize(at(size));
  }
  const bool all_threaded = random.chance(512);
  for (Rank& r : ranks) {
    const std::uint64_t threads = all_threaded ? random.between(2, 4) : random.chance(200) ? 2 : 1;
    r.multiple = threads > 1;
    for (int i = 0; i < static_cast<int>(threads); ++i) {
      Caller& c = callers.emplace_back();
      c.rank = &r;
      c.id = i;
    }
  }
  const std::uint64_t messages = random.between(1, 60);
  for (Rank& r : ranks) {
    for (std::uint32_t context = 0; context < contexts; ++context) {
      Lane& lane = r.lanes.emplace_back();
      lane.way = random.chance(400) ? Way::kImprobe : static_cast<Way>(random.below(kWays));
      lane.given.resize(at(size * kTags));
    }
  }
  for (Rank& r : ranks) {
    for (std::uint64_t i = 0; i < messages; ++i) {
      const Planned p = {static_cast<int>(random.below(ranks.size())),
                         static_cast<std::uint32_t>(random.below(contexts)),
                         static_cast<std::int32_t>(random.below(kTags)), random.length(length_max),
                         random.chance(150)};
      r.plan.push_back(p);
      Lane& lane = ranks[at(p.to)].lanes[p.context];
      ++lane.free;
      ++lane.given[at(r.id * kTags + p.tag)];
    }
  }
  // Who sleeps here does so without a time limit, and would not notice silence.
  roads.draw(seed, *world, size, sim::BrokenRoads::kFail);
  for (Rank& r : ranks) boot(r);
}

void Sim::boot(Rank& r) {
  r.peers = std::make_unique<PeerAddress[]>(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    roads.publish(static_cast<int>(i), r.peers[i]);
    std::snprintf(r.peers[i].host, sizeof r.peers[0].host, "host%zu", i);
  }
  EngineOptions o;
  o.rank = r.id;
  o.size = static_cast<int>(ranks.size());
  o.peers = r.peers.get();
  roads.listen(r.id, *world, o);
  std::memset(o.secret, 7, sizeof o.secret);
  o.connect_timeout_ns = INT64_MAX / 4;
  sim::draw_options(random, o);
  o.tuning = sim::drawn_tuning(sim::g_seed, r.id);
  sim::draw_lanes(sim::g_seed, r.id, o);
  o.protection = sim::drawn_protection(sim::g_seed);
  r.engine =
      std::make_unique<Engine>(sim::sockets_of(world->net(r.id), o.protection, r.protected_net), o);
  if (r.engine->start() != 0) fail("rank %d does not start", r.id);
  r.channel = std::make_unique<ChannelState>(*r.engine);
  mplite::channel_bind(r.channel.get());
  ch_lite::DeviceOptions d = device_options;
  d.tuning = o.tuning;
  d.rank = r.id;
  d.thread_multiple = r.multiple;
  d.hooks.arg = &r;
  r.device = std::make_unique<ch_lite::Device>(d);
  ch_lite::device_bind(r.device.get());
  if (!r.device->start()) fail("device %d does not start", r.id);
  r.device->pace().set_on(shared_memory && o.tuning.has(mplite::Heuristic::kPacing));
  r.device->set_may_gather(r.kind == Kind::kSigio && !r.multiple &&
                           o.tuning.has(mplite::Heuristic::kCoalesce));
  r.engine->gate().set_drain(
      [](void* arg) {
        auto* rank = static_cast<Rank*>(arg);
        if (rank->in_handler) return g_sim->run_in_handler(*rank);
        rank->engine->set_mode(mplite::ProgressMode::all_sockets());
        rank->device->progress();
        rank->engine->set_mode({});
      },
      &r);
  if (r.kind == Kind::kSigio) r.engine->set_signal_driven(1, 29);
  if (r.kind != Kind::kThread) r.engine->set_signals(false);
  r.hot.want_arm = r.kind != Kind::kSync;
}

// lite_hot is a process's.
void Sim::bind(Rank* r) {
  if (bound == r) return;
  if (bound != nullptr) std::memcpy(static_cast<void*>(&bound->hot), &lite_hot, sizeof lite_hot);
  bound = r;
  if (r != nullptr) std::memcpy(static_cast<void*>(&lite_hot), &r->hot, sizeof lite_hot);
  mplite::channel_bind(r != nullptr ? r->channel.get() : nullptr);
  ch_lite::device_bind(r != nullptr ? r->device.get() : nullptr);
}

void Sim::run_handler(Rank& r) {
  Rank* const before = bound;
  bind(&r);
  world->take_signal(r.id);
  r.self_signal = r.guarded = false;
  r.in_handler = r.signalled = true;
  {
    alloc_trap::Armed armed;
    if (r.engine->gate().try_enter()) {
      run_in_handler(r);
      r.engine->gate().leave();
    }
  }
  r.in_handler = false;
  bind(before);
}

void Sim::run_in_handler(Rank& r) {
  r.engine->set_mode(r.engine->handler_mode());
  r.device->progress();
  r.engine->set_mode({});
  if (r.engine->more_to_do()) r.self_signal = true;
}

// As HelperThread::run.
void Sim::run_helper(Rank& r) {
  Rank* const before = bound;
  bind(&r);
  r.in_helper = true;
  {
    mplite::Hold hold(r.engine->gate());
    r.engine->refill();
    r.engine->set_mode(mplite::ProgressMode::helper_thread());
    r.device->progress();
    r.engine->set_mode({});
  }
  r.in_helper = false;
  bind(before);
}

// As Controller::leave_library.
void Sim::leave(Rank& r) {
  if (r.armed || random.chance(300)) return;  // the grace
  r.unarmed_waits = 0;
  if (r.kind == Kind::kSigio && (world->take_signal(r.id) || !r.engine->signals())) {
    mplite::Hold hold(r.engine->gate());
    r.engine->set_signals(true);
    r.engine->set_mode(mplite::ProgressMode::all_sockets());
    r.device->progress();
    r.engine->set_mode({});
  }
  r.armed = true;
}

// As idle() in boot.cpp, with a count of polls for the clock.
void Sim::idle(Rank& r, ch_lite::Rest allowed) {
  if (r.in_helper) return;
  if (r.armed && (!r.multiple || random.chance(512))) r.armed = false;
  if (r.kind == Kind::kSigio && !r.armed && r.engine->signals() && ++r.unarmed_waits >= 8) {
    mplite::Hold hold(r.engine->gate());
    r.engine->set_signals(false);
  }
  if (allowed != ch_lite::Rest::kSleep || r.multiple) return;
  const mplite::Counters& counters = r.engine->counters();
  const std::uint64_t news = counters.frames_in + counters.bytes_out + counters.connections;
  // What has come at the end of the call before, after that had looked, is news here. A sleep
  // behind news ends by itself within 50 us (wait.cpp), so that the caller looks again.
  const bool is_news = news != r.news_seen;
  if (is_news) r.quiet_polls = 0;
  r.news_seen = news;
  r.engine->set_repolls(3);
  if (r.quiet_polls++ < r.patience || is_news) return;
  MPID_ChannelWait(1);
}

void Sim::pause() {
  Caller& c = *current;
  if (c.rank->engine->gate().held()) fail("rank %d waits with its gate closed", c.rank->id);
  c.call = lite_call;
  c.coroutine.suspend();
}

void Sim::resume(Caller& c) {
  current = &c;
  bind(c.rank);
  lite_call = c.call;
  c.coroutine.resume();
  current = nullptr;
}

std::uint64_t Sim::moved() const {
  std::uint64_t sum = steps_done;
  for (const Rank& r : ranks) sum += r.engine->counters().bytes_in;
  return sum;
}

void Sim::stand_still() {
  std::string text;
  char line[300];
  for (Rank& r : ranks) {
    std::snprintf(line, sizeof line,
                  "\n  rank %d: %zu of %zu sent, %llu sends pending, posted %u, unexpected %u, %zu "
                  "detached, %llu frames queued, %s, credit",
                  r.id, r.planned, r.plan.size(), ull(r.sends_pending), r.device->posted_count(),
                  r.device->unexpected_count(), r.bag.size(), ull(r.engine->queued_sends()),
                  r.armed ? "armed" : "not armed");
    text += line;
    for (Rank& other : ranks) {
      const ch_lite::Credits& credits = r.device->peer(other.id).credits[0];
      std::snprintf(line, sizeof line, " %llu/%llu/%llu", ull(credits.left()), ull(credits.held()),
                    ull(credits.owed()));
      text += line;
    }
    for (const Send& s : r.sends) {
      if (!s.pending) continue;
      const Message& m = r.sent[at(s.to)][s.number];
      std::snprintf(line, sizeof line,
                    "\n    send %llu of %llu bytes to %d, context %u, tag %d%s: %s", ull(s.number),
                    ull(m.bytes), s.to, m.context, m.tag & 0xffff,
                    m.synchronous ? ", synchronous" : "",
                    m.receive >= 0 ? "received"
                    : m.detached   ? "detached"
                                   : "not received");
      text += line;
    }
    for (std::uint32_t context = 0; context < contexts; ++context) {
      std::snprintf(line, sizeof line, "\n    context %u, way %d: %llu to come", context,
                    static_cast<int>(r.lanes[context].way), ull(r.lanes[context].free));
      text += line;
    }
    for (const Receive& v : r.receives) {
      if (!v.pending) continue;
      std::snprintf(line, sizeof line,
                    "\n    receive from %d, context %u, tag %d, room %llu: state %d", v.source,
                    v.context, v.tag, ull(v.room), static_cast<int>(v.request->state));
      text += line;
    }
  }
  for (const Caller& c : callers) {
    std::snprintf(line, sizeof line, "\n  rank %d thread %d: %s%s", c.rank->id, c.id,
                  c.done ? "ended" : c.where, c.asleep ? ", asleep" : "");
    text += line;
  }
  if (g_verbose) world->dump();
  fail("a stand-still%s", text.c_str());
}

// ---- the host ----

// An MPI call of the current thread. Behind it, it computes: mostly not at all, and now and then
// for as long as everybody else needs to send what they have.
template <typename Body>
void Sim::call(const char* name, unsigned kind, Body body, bool sending) {
  Caller& c = *current;
  c.where = name;
  if (kind != LITE_MAY_BLOCK) lite_host_call_begins(kind);
  body();
  if (kind != LITE_MAY_BLOCK) lite_host_call_ends();
  if (sending)
    lite_host_exit_sending();
  else
    lite_host_exit();
  c.where = "outside";
  const bool computes = random.chance(100);
  for (std::uint64_t i = random.below(!computes ? 2 : random.chance(100) ? 1000 : 30); i > 0; --i)
    pause();
}

// As MPIDI_LITE_progress.
void Sim::poll() {
  const bool asks = (lite_call.kinds & 3) == LITE_MAY_NOT_BLOCK && lite_call.idle_polls == 0;
  if (!asks && lite_may_skip()) return;
  const int waiting = lite_progress();
  if (waiting < 0) fail("rank %d: lite_progress gives %d", current->rank->id, waiting);
  if (waiting != 0) drain();
}

// As MPIDI_LITE_drain_completions.
void Sim::drain() {
  lite_completion done;
  while (const int waiting = lite_take_completion(&done)) {
    finish(done);
    if (waiting == 1) break;
  }
}

void Sim::finish(const lite_completion& done) {
  const auto* cookie = static_cast<const Cookie*>(done.cookie);
  if ((done.is_send != 0) != cookie->is_send) fail("a send completes as a receive");
  if (cookie->is_send)
    sent(*current->rank, cookie->index, done.status.error);
  else
    received(*current->rank, cookie->index, done.status);
}

// As MPID_Progress_wait: between two polls the host's lock is open, for the other threads of the
// rank.
template <typename Done>
void Sim::wait_until(Done done) {
  while (!done()) {
    poll();
    if (done()) return;
    lite_host_scan_ends();
    pause();
  }
}

// ---- the program ----

bool Sim::everything_received(const Rank& r) const {
  for (const Lane& lane : r.lanes)
    if (lane.free != 0) return false;
  return r.bag.empty();
}

void Sim::live(Caller& c) {
  Rank& r = *c.rank;
  while (step(c)) {}
  while (!c.own_receives.empty()) wait_receive(c, c.own_receives.back());
  call("MPI_Waitall", LITE_MAY_BLOCK, [&] {
    wait_until([&] {
      return std::none_of(c.own_sends.begin(), c.own_sends.end(),
                          [&](std::size_t i) { return r.sends[i].pending; });
    });
  });
  ++r.at_the_end;
  ++steps_done;
  call("the end", LITE_MAY_BLOCK, [&] { wait_until([&] { return ended; }); });
}

// False: nothing is left to be started here.
bool Sim::step(Caller& c) {
  Rank& r = *c.rank;
  if (random.chance(300)) test(c);
  if (!everything_sent(r) && r.sends_pending < r.window && random.chance(600)) send(c);
  if (!r.bag.empty() && random.chance(300)) mrecv(c);
  const bool sending_over = everything_sent(r);
  const auto context = static_cast<std::uint32_t>(random.below(contexts));
  Lane& lane = r.lanes[context];
  const bool blocking = may_block && sending_over && r.bag.empty() && random.chance(300);
  if (lane.free != 0) {
    Way way = lane.way;
    if (way == Way::kBoth) way = random.chance(512) ? Way::kImprobe : Way::kPosted;
    switch (way) {
      case Way::kImprobe: improbe(c, context, blocking); break;
      case Way::kPosted:
        if (c.own_receives.size() < 8 || random.chance(100)) post(c, context, -1, LITE_ANY_TAG);
        break;
      case Way::kGiven: {
        const std::size_t which = random.below(lane.given.size());
        if (lane.given[which] != 0)
          post(c, context, static_cast<int>(which) / kTags,
               static_cast<std::int32_t>(which % kTags));
        break;
      }
      default:
        if (lane.only == nullptr) lane.only = &c;
        if (lane.only == &c) probe_recv(c, context, blocking);
    }
  } else if (blocking && !c.own_receives.empty()) {
    wait_receive(c, c.own_receives[random.below(c.own_receives.size())]);
  }
  if (!sending_over || !everything_received(r)) return true;
  return false;
}

void Sim::send(Caller& c) {
  Rank& r = *c.rank;
  const Planned p = r.plan[r.planned++];
  auto& to_there = r.sent[at(p.to)];
  const std::uint64_t number = to_there.size();
  const auto tag =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(p.tag) | (number & 0x7fff) << 16);
  to_there.push_back({r.id, p.to, p.context, tag, number, p.bytes, p.synchronous});
  const std::size_t index = r.sends.size();
  Send& s = r.sends.emplace_back();
  s.to = p.to;
  s.number = number;
  s.buffer.resize(p.bytes);
  fill(s.buffer.data(), p.bytes, key_of(kMessageKind, r.id, p.to, number));
  r.cookies.push_back({true, index});
  c.own_sends.push_back(index);
  ++r.sends_pending;
  call(
      p.synchronous ? "MPI_Issend" : "MPI_Isend", LITE_MAY_BLOCK,
      [&] {
        const lite_envelope e = {p.context, r.id, tag};
        lite_request* request = nullptr;
        int rc = LITE_PENDING;
        if (!p.synchronous)
          rc = lite_isend(s.buffer.data(), p.bytes, p.to, &e, 0, nullptr, nullptr);
        if (rc == LITE_PENDING)
          rc = lite_isend(s.buffer.data(), p.bytes, p.to, &e, p.synchronous ? LITE_SEND_SYNC : 0,
                          &r.cookies.back(), &request);
        if (rc < 0) fail("rank %d: lite_isend gives %d", r.id, rc);
        if (rc == LITE_OK) sent(r, index, LITE_OK);
      },
      true);
}

void Sim::post(Caller& c, std::uint32_t context, int source, std::int32_t tag) {
  Rank& r = *c.rank;
  Lane& lane = r.lanes[context];
  --lane.free;
  if (source >= 0) --lane.given[at(source * kTags + tag)];
  const std::size_t index = new_receive(r, context, source, tag, length_max);
  Receive& v = r.receives[index];
  c.own_receives.push_back(index);
  call("MPI_Irecv", LITE_MAY_BLOCK, [&] {
    const lite_envelope e = {context, source < 0 ? LITE_ANY_SOURCE : source, tag};
    lite_status status = {};
    v.order = r.order++;
    const int rc =
        lite_irecv(v.buffer.data(), v.room, source, &e, &r.cookies.back(), &status, &v.request);
    if (rc < 0) fail("rank %d: lite_irecv gives %d", r.id, rc);
    v.pending = true;
    if (rc == LITE_OK) received(r, index, status);
  });
}

void Sim::improbe(Caller& c, std::uint32_t context, bool blocking) {
  Rank& r = *c.rank;
  Lane& lane = r.lanes[context];
  // A thread that blocks has to have a message to itself, and takes any. One that asks may ask for
  // what never comes.
  const int source =
      blocking || random.chance(512) ? -1 : static_cast<int>(random.below(ranks.size()));
  const std::int32_t tag = blocking || random.chance(512)
                               ? LITE_ANY_TAG
                               : static_cast<std::int32_t>(random.below(kTags));
  const lite_envelope e = {context, source < 0 ? LITE_ANY_SOURCE : source, tag};
  lite_status status = {};
  lite_message* message = nullptr;
  bool found = false;
  const auto look = [&] {
    const int rc = lite_improbe(source, &e, &status, &message);
    if (rc < 0) fail("rank %d: lite_improbe gives %d", r.id, rc);
    if (rc == 0) return false;
    Message& m = message_of(r, context, status);
    if (m.detached || m.receive >= 0)
      fail("rank %d: improbe finds message %llu from rank %d again", r.id, ull(m.number), m.from);
    m.detached = true;
    r.bag.push_back({message, new_receive(r, context, source, tag, 0), &m});
    ++steps_done;
    return found = true;
  };
  if (blocking) {
    --lane.free;
    call("MPI_Mprobe", LITE_MAY_BLOCK, [&] { wait_until(look); });
  } else {
    call("MPI_Improbe", LITE_MAY_NOT_BLOCK, [&] {
      if (look())
        --lane.free;
      else
        poll();
    });
  }
  if (found && random.chance(600)) mrecv(c);
}

void Sim::mrecv(Caller& c) {
  Rank& r = *c.rank;
  if (r.bag.empty()) return;
  const std::size_t which = random.chance(512) ? r.bag.size() - 1 : random.below(r.bag.size());
  const Detached d = r.bag[which];
  r.bag.erase(r.bag.begin() + static_cast<std::ptrdiff_t>(which));
  const bool wait = random.chance(600);
  Receive& v = r.receives[d.receive];
  v.room = random.chance(900) ? d.what->bytes : random.below(length_max);
  v.buffer.assign(v.room + 8, kUntouched);
  r.cookies.push_back({false, d.receive});
  v.pending = true;
  if (!wait) c.own_receives.push_back(d.receive);
  call(wait ? "MPI_Mrecv" : "MPI_Imrecv", LITE_MAY_BLOCK, [&] {
    lite_status status = {};
    d.what->detached = false;  // a synchronous send may end from here on
    const int rc =
        lite_imrecv(d.message, v.buffer.data(), v.room, &r.cookies.back(), &status, &v.request);
    if (rc < 0) fail("rank %d: lite_imrecv gives %d", r.id, rc);
    if (rc == LITE_OK) received(r, d.receive, status);
    if (wait) wait_until([&] { return !v.pending; });
  });
}

void Sim::probe_recv(Caller& c, std::uint32_t context, bool blocking) {
  Rank& r = *c.rank;
  const lite_envelope any = {context, LITE_ANY_SOURCE, LITE_ANY_TAG};
  lite_status status = {};
  bool found = false;
  const auto look = [&] {
    const int rc = lite_iprobe(-1, &any, &status);
    if (rc < 0) fail("rank %d: lite_iprobe gives %d", r.id, rc);
    return found = rc != 0;
  };
  if (blocking)
    call("MPI_Probe", LITE_MAY_BLOCK, [&] { wait_until(look); });
  else
    call("MPI_Iprobe", LITE_MAY_NOT_BLOCK, [&] {
      if (!look()) poll();
    });
  if (!found) return;
  Message& m = message_of(r, context, status);
  const std::uint64_t bytes = m.bytes;
  post(c, context, m.from, m.tag & 0xffff);
  wait_receive(c, c.own_receives.back());
  if (m.receive < 0 || m.bytes != bytes)
    fail("rank %d: MPI_Recv gets another message than MPI_Probe said", r.id);
}

void Sim::test(Caller& c) {
  Rank& r = *c.rank;
  call("MPI_Test", LITE_MAY_NOT_BLOCK, [&] { poll(); });
  for (std::size_t i = 0; i < c.own_receives.size();) {
    Receive& v = r.receives[c.own_receives[i]];
    const Way way = r.lanes[v.context].way;
    if (v.pending && (way == Way::kPosted || way == Way::kBoth) && random.chance(30)) {
      call("MPI_Cancel", LITE_MAY_NOT_BLOCK, [&] {
        if (!v.pending || lite_cancel_recv(v.request) == 0) return;
        v.pending = false;
        v.cancelled = true;
        std::vector<std::uint8_t>().swap(v.buffer);
        ++r.lanes[v.context].free;
      });
    }
    if (v.pending) {
      ++i;
      continue;
    }
    c.own_receives.erase(c.own_receives.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::erase_if(c.own_sends, [&](std::size_t i) { return !r.sends[i].pending; });
}

void Sim::wait_receive(Caller& c, std::size_t index) {
  call("MPI_Wait", LITE_MAY_BLOCK,
       [&] { wait_until([&] { return !c.rank->receives[index].pending; }); });
  std::erase(c.own_receives, index);
}

// ---- the oracle ----

std::size_t Sim::new_receive(Rank& r, std::uint32_t context, int source, std::int32_t tag,
                             std::uint64_t room) {
  const std::size_t index = r.receives.size();
  Receive& v = r.receives.emplace_back();
  v.order = r.order++;
  v.context = context;
  v.source = source;
  v.tag = tag;
  v.room = room;
  if (room != 0) {  // not of a matched probe
    v.buffer.assign(room + 8, kUntouched);
    r.cookies.push_back({false, index});
  }
  return index;
}

Message& Sim::message_of(Rank& r, std::uint32_t context, const lite_status& status) {
  const int from = status.source;
  if (from < 0 || from >= static_cast<int>(ranks.size()) || status.peer != from)
    fail("rank %d: a status names source %d, peer %d", r.id, status.source, status.peer);
  auto& sent_here = ranks[at(from)].sent[at(r.id)];
  const std::uint64_t number = static_cast<std::uint32_t>(status.tag) >> 16;
  if (number >= sent_here.size() || sent_here[number].tag != status.tag ||
      sent_here[number].context != context)
    fail("rank %d: a message that rank %d never sent", r.id, from);
  return sent_here[number];
}

void Sim::received(Rank& r, std::size_t index, const lite_status& status) {
  Receive& v = r.receives[index];
  if (!v.pending) fail("rank %d: a receive completes twice, or after it was cancelled", r.id);
  v.pending = false;
  ++steps_done;
  Message& m = message_of(r, v.context, status);
  if (!accepts(v, m))
    fail("rank %d: a receive got message %llu from rank %d, which it does not match", r.id,
         ull(m.number), m.from);
  if (m.receive >= 0)
    fail("rank %d: message %llu from rank %d is received twice", r.id, ull(m.number), m.from);
  m.receive = static_cast<int>(index);
  m.detached = false;
  const std::uint64_t delivered = std::min(m.bytes, v.room);
  if (status.error != (m.bytes > v.room ? LITE_ERR_TRUNCATE : LITE_OK) || status.bytes != delivered)
    fail("rank %d: message of %llu bytes into %llu: error %d, %llu bytes", r.id, ull(m.bytes),
         ull(v.room), status.error, ull(status.bytes));
  const std::size_t right =
      right_bytes(v.buffer, delivered, key_of(kMessageKind, m.from, r.id, m.number));
  if (right != v.buffer.size())
    fail("rank %d: byte %zu of message %llu (%llu bytes) from rank %d is wrong", r.id, right,
         ull(m.number), ull(m.bytes), m.from);
  std::vector<std::uint8_t>().swap(v.buffer);
}

void Sim::sent(Rank& r, std::size_t index, int error) {
  Send& s = r.sends[index];
  if (!s.pending || error != LITE_OK)
    fail("rank %d: a send completes twice, or with error %d", r.id, error);
  s.pending = false;
  --r.sends_pending;
  ++steps_done;
  const Message& m = r.sent[at(s.to)][s.number];
  if (m.synchronous) {
    const Rank& receiver = ranks[at(s.to)];
    const bool possible =
        !m.detached && std::any_of(receiver.receives.begin(), receiver.receives.end(),
                                   [&](const Receive& v) { return accepts(v, m); });
    if (!possible)
      fail("rank %d: a synchronous send to rank %d completes before it is received", r.id, s.to);
  }
  std::fill(s.buffer.begin(), s.buffer.end(), 0xdd);
  std::vector<std::uint8_t>().swap(s.buffer);
}

// MPI 4.0 3.5: of two messages from one sender, the earlier goes to the earlier of two receives
// that both take it.
void Sim::check_order() {
  for (const Rank& r : ranks) {
    for (const Rank& other : ranks) {
      const auto& sent_here = other.sent[at(r.id)];
      for (std::size_t later = 0; later < sent_here.size(); ++later) {
        const Receive& v = r.receives[at(sent_here[later].receive)];
        for (std::size_t earlier = 0; earlier < later; ++earlier)
          if (accepts(v, sent_here[earlier]) &&
              r.receives[at(sent_here[earlier].receive)].order > v.order)
            fail("rank %d: message %zu from rank %d overtook message %zu", r.id, later, other.id,
                 earlier);
      }
    }
  }
}

void Sim::check_nothing_left() {
  for (int turn = 0; turn < 100; ++turn) {  // credit on its way back is nobody's
    for (Rank& r : ranks) {
      bind(&r);
      mplite::Hold gate(r.engine->gate());
      r.engine->set_mode(mplite::ProgressMode::all_sockets());
      r.device->progress();
      r.engine->set_mode({});
    }
    world->skip(1'000'000);
  }
  for (Rank& r : ranks) {
    const ch_lite::Device& d = *r.device;
    if (d.unexpected_count() + d.posted_count() + d.messages_used() + d.requests_used() != 0 ||
        d.completions() != 0 || d.blocks().bytes_in_use() != 0)
      fail(
          "rank %d leaves %u unexpected messages, %u posted receives, %u message nodes, %u "
          "requests, %u completions, %llu bytes of blocks",
          r.id, d.unexpected_count(), d.posted_count(), d.messages_used(), d.requests_used(),
          d.completions(), ull(d.blocks().bytes_in_use()));
    if (r.engine->queued_sends() != 0) fail("rank %d leaves frames queued", r.id);
    if (world->unwatched(r.id) != 0 || world->low_water(r.id) > 1)
      fail("rank %d would not hear of what comes next: %d connections unwatched, mark %d", r.id,
           world->unwatched(r.id), world->low_water(r.id));
    for (Rank& other : ranks) {
      const ch_lite::Credits& mine = d.peer(other.id).credits[0];
      const ch_lite::Credits& theirs = other.device->peer(r.id).credits[0];
      if (theirs.held() != 0 || mine.left() + theirs.owed() != mine.window())
        fail("credit of rank %d with rank %d is lost", r.id, other.id);
    }
  }
}

// ---- the scheduler ----

void Sim::run() {
  for (Caller& c : callers)
    c.coroutine.start(
        [] {
          Caller& self = *g_sim->current;
          g_sim->live(self);
          self.done = true;
        },
        kStackBytes);
  // Long for the narrowest pipe and the longest stride of polls without a look, and nothing against
  // ever.
  constexpr std::uint64_t kStill = 300'000;
  std::uint64_t still = 0, before = 0;
  for (std::uint64_t turn = 0;; ++turn) {
    if (std::all_of(ranks.begin(), ranks.end(), [&](const Rank& r) {
          return at(r.at_the_end) ==
                 at(std::count_if(callers.begin(), callers.end(),
                                  [&](const Caller& c) { return c.rank == &r; }));
        }))
      ended = true;
    if (ended &&
        std::all_of(callers.begin(), callers.end(), [](const Caller& c) { return c.done; }))
      break;
    Caller& c = callers[random.below(callers.size())];
    const bool goes_on = can_go_on(c);
    if (goes_on) resume(c);
    Rank& r = ranks[random.below(ranks.size())];
    if (r.kind == Kind::kSigio &&
        ((r.armed && (world->signal_pending(r.id) || r.self_signal)) || r.guarded) &&
        random.chance(300))
      run_handler(r);
    if (r.kind == Kind::kThread && r.armed && world->has_event(r.id) && random.chance(300))
      run_helper(r);
    // Some roads are slow.
    const bool connecting = std::any_of(ranks.begin(), ranks.end(),
                                        [](const Rank& each) { return each.engine->connecting(); });
    if (!goes_on || random.chance(50))
      world->skip(turn % 64 == 0 ? (connecting ? 50'000'000 : 1'000'000) : 20'000);
    const std::uint64_t now = moved();
    still = now != before ? 0 : still + 1;
    before = now;
    if (still == kStill) stand_still();
  }
  check_order();
  check_nothing_left();
  bind(nullptr);
  for (Rank& r : ranks) {
    r.armed = false;
    mplite::channel_bind(r.channel.get());
    ch_lite::device_bind(r.device.get());
    r.engine.reset();
    ch_lite::device_bind(nullptr);
    r.device.reset();
    mplite::channel_bind(nullptr);
    if (world->open_sockets(r.id) > 0) fail("rank %d leaves sockets open", r.id);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return sim::drive(argc, argv, "probe_sim", kProfileNames,
                    [](std::uint64_t seed, std::size_t profile) {
                      g_profile = static_cast<Profile>(profile);
                      Sim one(seed * 16 + profile + 0x9106e);
                      one.run();
                    },
                    {{30239795, "sigio-shared"}});
}
