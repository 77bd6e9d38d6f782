// Many simulated ranks, each a whole device (ch_lite.h) on its own engine, under random MPI-like
// traffic and trouble, from one seed. Oracle: every receive gets a message that it may get by MPI's
// order, with its content; nothing is lost or doubled; all drains; the handler allocates nothing.
// Runs: device_sim [--seed S] [--runs N] [--seconds T] [--profile NAME] [--verbose]; a failure
// prints the line that repeats it.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
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
#include "connection_trouble.h"
#include "content.h"
#include "drawn_roads.h"
#include "drawn_sockets.h"
#include "drawn_tuning.h"
#include "driver.h"
#include "fake_net.h"
#include "in_pieces.h"
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

enum class Profile { kClean, kHandlerOnly, kReset, kKill, kConnect, kCorrupt, kLanes, kResume };
const char* const kProfileNames[] = {"clean",   "handler-only", "reset", "kill",
                                     "connect", "corrupt",      "lanes", "resume"};

Profile g_profile = Profile::kClean;

constexpr int kMessageKind = 1, kHeaderKind = 2, kDataKind = 3, kMemoryKind = 4, kPutKind = 5;
// Tag bits that take no part in matching carry the message's number: the receiver learns which one
// it got, whatever its length.
constexpr std::uint32_t kIgnoredBits = 0x7fff0000u;
constexpr int kContexts = 3;

struct Sim;
struct Rank;

// A message as its sender sees it.
struct Message {
  int from, to;
  std::uint32_t context;
  std::int32_t tag;
  std::uint64_t number;  // from this sender to this receiver
  std::uint64_t bytes;
  bool synchronous;
  int receive = -1;  // index of the receive that got it, at its receiver
};

struct Receive {
  std::uint64_t order;  // of posting, or of the matched probe
  std::uint32_t context;
  int source;        // world rank or -1
  std::int32_t tag;  // or LITE_ANY_TAG
  std::uint64_t room = 0;
  std::vector<std::uint8_t> buffer;
  std::unique_ptr<InPieces> pieces;  // in place of buffer
  void forget_memory() {
    std::vector<std::uint8_t>().swap(buffer);
    pieces.reset();
  }
  lite_request* request = nullptr;
  bool pending = false;  // lite_irecv said LITE_PENDING and nothing came yet
  bool cancelled = false;
  bool failed = false;
  bool probed = false;  // a matched probe: what it got is known
  std::uint64_t probed_bytes = 0;
};

struct Send {
  Rank* rank;
  int kind;
  int to;
  std::uint64_t number;
  std::vector<std::uint8_t> buffer;
  bool pending = true;
  std::unique_ptr<InPieces> pieces;  // in place of buffer
};

// A put or get. Exposed memory is cut into slots; no two accesses to one slot are under way at the
// same time, so what it must hold is known.
struct Access {
  int target;
  std::size_t slot, offset;
  bool is_put;
  std::vector<std::uint8_t> buffer;
  bool pending = true;
  bool unanswered = false;  // a put that may be complete before it is in the target's memory
  bool done = false;        // that is known to be there, or failed
  // The first active message to the target that follows it: when that is delivered, the put is
  // there, and the get has read what it brings.
  std::uint64_t message_behind = UINT64_MAX;
  std::vector<std::uint8_t> has_read = {};
};
constexpr std::size_t kSlots = 24;

// What a request's cookie points to.
struct Cookie {
  Rank* rank;
  bool is_send;
  std::size_t index;
  bool is_access = false;
};

struct Detached {
  lite_message* message;
  std::size_t receive;
};

struct AmSent {
  std::uint64_t header_bytes, data_bytes;
};

struct Pair {
  std::deque<Message> sent;  // point to point, to that rank
  std::deque<AmSent> am_sent;
  std::uint64_t am_got = 0;  // from that rank
};

struct Rank {
  Sim* sim = nullptr;
  int id = -1;
  bool alive = true;
  bool in_handler = false;
  bool armed = false;
  bool self_signal = false;
  bool in_callback = false;
  std::unique_ptr<PeerAddress[]> peers;
  std::unique_ptr<mplite::ProtectedNet> protected_net;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ChannelState> channel;
  std::unique_ptr<ch_lite::Device> device;
  std::vector<Pair> pairs;
  std::deque<Send> sends;
  std::deque<Receive> receives;
  std::deque<Cookie> cookies;
  std::vector<Detached> detached;
  std::deque<Access> accesses;
  std::uint64_t key = 0;
  std::vector<std::uint8_t> memory, oracle;  // exposed; what it must be
  bool slot_busy[kSlots] = {};
  bool slot_unknown[kSlots] = {};  // a put into it failed
  std::uint64_t order = 0;
  std::uint64_t handler_runs = 0;
};

struct Sim {
  explicit Sim(std::uint64_t seed);
  void run();

  void boot(Rank& r);
  void bind(Rank& r) {
    mplite::channel_bind(r.channel.get());
    ch_lite::device_bind(r.device.get());
  }
  void act(Rank& r);
  void run_handler(Rank& r, int signo = sim::kMainSignal);
  void run_in_handler(Rank& r, bool for_callers = false);
  void look(Rank& r);
  void send(Rank& r);
  void send_active(Rank& r, int to);
  void receive(Rank& r);
  std::unique_ptr<InPieces> in_pieces(std::uint64_t bytes);
  void make_room(Receive& v);
  void post(Rank& r, std::uint32_t context, int source, std::int32_t tag, std::uint64_t room);
  void access(Rank& r);
  void access_done(Rank& r, std::size_t index, int error);
  void take_completion(Rank& r, lite_request* request);
  void probe(Rank& r);
  bool take_by_probe(Rank& r, std::uint32_t context, int source, std::int32_t tag);
  void cancel(Rank& r);
  void take_detached(Rank& r);
  void received(Rank& r, std::size_t index, const lite_status& status);
  void send_done(Rank& r, std::size_t index, int error);
  void check_error(Rank& r, int peer, int code, const char* call);
  void check_accesses_before(Rank& r, int peer, std::uint64_t number);
  void access_is_there(Rank& r, std::size_t index);
  void on_active(Rank& r, int peer, std::uint32_t handler, const std::uint8_t* header,
                 std::size_t header_bytes, const std::uint8_t* data, std::size_t data_bytes);
  bool lost(const Rank& r, int peer) const { return r.engine->peer_error(peer) != 0; }
  bool pair_lost(const Rank& r, const Rank& other) const {
    return !other.alive || !r.alive || (&r != &other && (lost(r, other.id) || lost(other, r.id)));
  }
  bool accepts(const Receive& v, const Message& m) const {
    return v.context == m.context && (v.source < 0 || v.source == m.from) &&
           (v.tag == LITE_ANY_TAG ||
            ((static_cast<std::uint32_t>(v.tag) ^ static_cast<std::uint32_t>(m.tag)) &
             ~kIgnoredBits) == 0);
  }
  std::int32_t source_name(std::uint32_t context, int rank) const {
    return context == 2 ? rank + 100 : rank;
  }
  int rank_of_source(std::uint32_t context, std::int32_t source) const {
    return context == 2 ? source - 100 : source;
  }
  bool catch_up(Rank& r);
  bool quiet(std::string* why);
  void poll_all(Rank& r, const mplite::ProgressMode& mode);
  bool serve_absent(Rank& r);
  void drain_by_signals();
  void drain();
  void check_order();
  void check_credits();
  std::string missing_credit();
  void kill(Rank& r);

  Random random;
  sim::Faults faults;
  std::unique_ptr<FakeWorld> world;
  sim::Roads roads;
  std::deque<Rank> ranks;
  std::uint64_t length_max = 0;
  std::size_t slot_bytes = 0;
  std::uint64_t actions = 0;
  bool loss_allowed = false;
  std::uint8_t protection = 0;
  bool check_content = true;
  bool winding_down = false;
  bool only_probes = false;  // every message is received by lite_improbe and lite_imrecv
  bool shared_memory =
      false;  // the host waits for that, too: polls look at the sockets now and then
  ch_lite::DeviceOptions device_options;
  std::vector<std::uint64_t> credits_of, unexpected_max_of, windows;  // per rank
};

Sim* g_sim = nullptr;

Sim::Sim(std::uint64_t seed) : random(seed) {
  g_sim = this;
  static const int shorts[] = {0, 100, 300, 700};
  faults.short_io = shorts[random.below(4)];
  faults.would_block = static_cast<int>(random.below(3)) * 80;
  faults.empty_wait = static_cast<int>(random.below(3)) * 60;
  faults.hidden_event = static_cast<int>(random.below(3)) * 60;
  static const std::uint64_t pipes[] = {sim::kFreshBytes, 300, 5'000, 60'000, 2'000'000};
  faults.pipe_max = pipes[random.below(5)];
  static const std::int64_t delays[] = {0, 500, 20'000, 300'000};
  faults.delay_max_ns = delays[random.below(4)];
  if (g_profile == Profile::kReset) faults.reset = 8;
  if (g_profile == Profile::kResume) faults.reset = random.chance(512) ? 4 : 0;
  if (g_profile == Profile::kConnect)
    faults.refuse = faults.unanswered = faults.no_descriptor = 100;
  if (g_profile == Profile::kCorrupt) faults.corrupt = 4;
  loss_allowed = g_profile != Profile::kClean && g_profile != Profile::kHandlerOnly &&
                 g_profile != Profile::kLanes && g_profile != Profile::kResume;
  protection = sim::drawn_protection(seed);
  check_content = g_profile != Profile::kCorrupt || protection != 0;

  const int size = static_cast<int>(random.between(2, 4));
  world = std::make_unique<FakeWorld>(random.next(), size, faults);
  length_max = std::min<std::uint64_t>(faults.pipe_max * 20, 400'000);
  if (faults.short_io > 300) length_max = std::min<std::uint64_t>(length_max, 20'000);
  actions = random.between(50, 1200);
  slot_bytes = static_cast<std::size_t>(std::max<std::uint64_t>(length_max / 8, 64));

  static const std::uint64_t cutoffs[] = {0, 1, 64, 1'000, 16'000, 100'000, UINT64_MAX};
  device_options.size = size;
  device_options.short_max = cutoffs[random.below(6)];
  device_options.eager_max = cutoffs[random.below(7)];
  device_options.eager_auto = random.chance(200);
  static const std::uint64_t credits[] = {0, 20'000, 100'000, 4u << 20};
  for (int i = 0; i < size; ++i) {
    credits_of.push_back(i > 0 && random.chance(700) ? credits_of[0] : credits[random.below(4)]);
    unexpected_max_of.push_back(i > 0 && random.chance(700) ? unexpected_max_of[0]
                                : random.chance(512)        ? 1u << 20
                                                            : 64u << 20);
    windows.push_back(ch_lite::credit_window(credits_of.back(), unexpected_max_of.back(), size));
  }
  only_probes = random.chance(250);
  shared_memory = random.chance(250);
  device_options.hooks.look_everywhere = [](void* arg, bool on) {
    static_cast<Rank*>(arg)->engine->set_mode(on ? mplite::ProgressMode::all_sockets()
                                                 : mplite::ProgressMode::application());
  };
  device_options.hooks.idle = [](void* arg, ch_lite::Rest) {
    auto* r = static_cast<Rank*>(arg);
    if (r->sim->random.chance(200)) MPID_ChannelWait(20'000);
  };
  device_options.hooks.report = [](void*, int, int, int, const char* what) {
    if (g_verbose && what != nullptr) std::fprintf(stderr, "report: %s\n", what);
  };
  device_options.hooks.give_up = [](void* arg, int peer, int error) {
    static_cast<Rank*>(arg)->engine->give_up(peer, error);
  };

  world->misuse = [](const char* what) {
    fail("the engine calls %s with a descriptor that is closed or not its own", what);
  };
  world->boundary = [this](int host) {
    Rank& r = ranks[static_cast<std::size_t>(host)];
    if (!r.alive || r.in_handler || r.device == nullptr) return;
    if (world->signal_pending(host, sim::kCallerSignal) && random.chance(300))
      return run_handler(r, sim::kCallerSignal);
    if (!r.armed) return;
    if (world->signal_pending(host) ? random.chance(300) : random.chance(4)) run_handler(r);
  };
  world->asleep = [this](int host) {
    if (ranks[static_cast<std::size_t>(host)].engine->gate().held())
      fail("rank %d sleeps with its gate closed", host);
  };
  ch_lite::host_settings.tag_ignore_bits = kIgnoredBits;
  roads.draw(
      seed, *world, size,
      g_profile == Profile::kHandlerOnly ? sim::BrokenRoads::kFail : sim::BrokenRoads::kSilent);
  for (int i = 0; i < size; ++i) {
    ranks.emplace_back();
    ranks.back().sim = this;
    ranks.back().id = i;
  }
  for (Rank& r : ranks) boot(r);
}

void Sim::boot(Rank& r) {
  const int size = static_cast<int>(ranks.size());
  r.peers = std::make_unique<PeerAddress[]>(ranks.size());
  for (int i = 0; i < size; ++i) {
    roads.publish(i, r.peers[static_cast<std::size_t>(i)]);
    std::snprintf(r.peers[static_cast<std::size_t>(i)].host, sizeof r.peers[0].host, "host%d", i);
  }
  EngineOptions o;
  o.rank = r.id;
  o.size = size;
  o.peers = r.peers.get();
  roads.listen(r.id, *world, o);
  std::memset(o.secret, 7, sizeof o.secret);
  o.connect_timeout_ns = roads.are_broken() ? 30'000'000'000 : 2'000'000'000;
  sim::draw_options(random, o);
  o.tuning = sim::drawn_tuning(sim::g_seed, r.id);
  sim::draw_lanes(sim::g_seed, r.id, o);
  // Nothing signals an acknowledgement, by which a send is complete then.
  if (g_profile != Profile::kHandlerOnly) sim::draw_resume(sim::g_seed, r.id, o);
  if (g_profile == Profile::kLanes) sim::draw_many_lanes(random, o);
  if (g_profile == Profile::kResume) sim::always_resume(o);
  o.protection = protection;
  r.engine =
      std::make_unique<Engine>(sim::sockets_of(world->net(r.id), o.protection, r.protected_net), o);
  if (r.engine->start() != 0) fail("rank %d does not start", r.id);
  r.channel = std::make_unique<ChannelState>(*r.engine);
  mplite::channel_bind(r.channel.get());
  ch_lite::DeviceOptions d = device_options;
  d.tuning = o.tuning;
  d.rank = r.id;
  d.credits_bytes = credits_of[static_cast<std::size_t>(r.id)];
  d.unexpected_max_bytes = unexpected_max_of[static_cast<std::size_t>(r.id)];
  d.windows = windows.data();
  d.hooks.arg = &r;
  ch_lite::host_settings.am_callback = [](int peer, std::uint32_t handler, const void* header,
                                          std::size_t header_bytes, const void* data,
                                          std::size_t data_bytes, void* arg) {
    auto* rank = static_cast<Rank*>(arg);
    rank->sim->on_active(*rank, peer, handler, static_cast<const std::uint8_t*>(header),
                         header_bytes, static_cast<const std::uint8_t*>(data), data_bytes);
  };
  ch_lite::host_settings.am_callback_arg = &r;
  r.device = std::make_unique<ch_lite::Device>(d);
  ch_lite::device_bind(r.device.get());
  if (!r.device->start()) fail("device %d does not start", r.id);
  r.device->pace().set_on(shared_memory && o.tuning.has(mplite::Heuristic::kPacing));
  r.pairs.resize(ranks.size());
  r.memory.resize(kSlots * slot_bytes);
  fill(r.memory.data(), r.memory.size(), key_of(kMemoryKind, r.id, r.id, 0));
  r.oracle = r.memory;
  if (lite_expose(r.memory.data(), r.memory.size(), &r.key) != LITE_OK)
    fail("rank %d: lite_expose fails", r.id);
  r.engine->gate().set_drain(
      [](void* arg) {
        auto* rank = static_cast<Rank*>(arg);
        if (rank->in_handler) {
          rank->sim->run_in_handler(*rank);
          return;
        }
        rank->engine->set_mode(mplite::ProgressMode::all_sockets());
        rank->device->progress();
        rank->engine->set_mode({});
      },
      &r);
  r.engine->set_signal_driven(1, sim::kMainSignal);
  if (random.chance(600)) r.engine->hear_callers(sim::kCallerSignal);
  r.armed = random.chance(800) || g_profile == Profile::kHandlerOnly;
  if (!r.armed) r.engine->set_signals(false);
}

void Sim::run_handler(Rank& r, int signo) {
  ChannelState* channel_before = mplite::channel_bound();
  ch_lite::Device* device_before = ch_lite::device_current;
  bind(r);
  world->take_signal(r.id, signo);
  if (signo == sim::kMainSignal) r.self_signal = false;
  r.in_handler = true;
  ++r.handler_runs;
  {
    alloc_trap::Armed armed;
    if (r.engine->gate().try_enter()) {
      run_in_handler(r, signo == sim::kCallerSignal);
      r.engine->gate().leave();
    }
  }
  r.in_handler = false;
  mplite::channel_bind(channel_before);
  ch_lite::device_bind(device_before);
}

void Sim::run_in_handler(Rank& r, bool for_callers) {
  const mplite::ProgressMode mode = r.engine->handler_mode();
  r.engine->set_mode(for_callers ? mode.for_callers() : mode);
  r.device->progress();
  r.engine->set_mode({});
  if (r.engine->more_to_do()) r.self_signal = true;
}

void Sim::check_error(Rank& r, int peer, int code, const char* call) {
  if (!loss_allowed) fail("rank %d: %s with rank %d gives %d", r.id, call, peer, code);
  if (code != LITE_ERR_PEER_LOST) fail("rank %d: %s with rank %d gives %d", r.id, call, peer, code);
  if (peer >= 0 && !lost(r, peer))
    fail("rank %d: %s says that rank %d is lost, the engine does not", r.id, call, peer);
}

// ---- traffic ----

void Sim::send(Rank& r) {
  const int to = static_cast<int>(random.below(ranks.size()));
  Pair& p = r.pairs[static_cast<std::size_t>(to)];
  Message m = {};
  m.from = r.id;
  m.to = to;
  m.context = static_cast<std::uint32_t>(random.below(kContexts));
  m.number = p.sent.size();
  m.tag = static_cast<std::int32_t>(random.below(3) | (m.number & 0x7fff) << 16);
  m.bytes = random.length(length_max);
  m.synchronous = random.chance(150);
  Send s = {&r, kMessageKind, to, m.number, {}, true, nullptr};
  s.buffer.resize(m.bytes);
  fill(s.buffer.data(), m.bytes, key_of(kMessageKind, r.id, to, m.number));
  if (random.chance(400)) {
    s.pieces = in_pieces(m.bytes + random.below(3));
    s.pieces->fill(s.buffer);
    std::vector<std::uint8_t>().swap(s.buffer);
  }
  const lite_envelope e = {m.context, source_name(m.context, r.id), m.tag};
  p.sent.push_back(m);
  r.sends.push_back(std::move(s));
  const std::size_t index = r.sends.size() - 1;
  r.cookies.push_back({&r, true, index});
  lite_request* request = nullptr;
  const unsigned flags = m.synchronous ? LITE_SEND_SYNC : 0;
  const InPieces* pieces = r.sends[index].pieces.get();
  // as in a streak of sends (streak.h); another poll sends it off
  MPID_ChannelGather(random.chance(400)   ? MPID_GATHER_SMALL
                     : random.chance(100) ? MPID_GATHER_PAGES
                                          : MPID_GATHER_NOTHING);
  const int rc = pieces != nullptr ? lite_isendv(pieces->pieces(), pieces->count(), m.bytes, to, &e,
                                                 flags, &r.cookies.back(), &request)
                                   : lite_isend(r.sends[index].buffer.data(), m.bytes, to, &e,
                                                flags, &r.cookies.back(), &request);
  MPID_ChannelGather(MPID_GATHER_NOTHING);
  if (rc < 0) {
    check_error(r, to, rc, "lite_isend");
    send_done(r, index, LITE_ERR_PEER_LOST);
  } else if (rc == LITE_OK) {
    if (request != nullptr) fail("rank %d: lite_isend is done and makes a request", r.id);
    send_done(r, index, LITE_OK);
  } else if (request == nullptr) {
    fail("rank %d: lite_isend is pending without a request", r.id);
  }
}

void Sim::send_done(Rank& r, std::size_t index, int error) {
  Send& s = r.sends[index];
  if (!s.pending) fail("rank %d: a send completes twice", r.id);
  s.pending = false;
  if (error != LITE_OK) check_error(r, s.to, error, "a send's completion");
  if (error == LITE_OK && s.kind == kMessageKind) {
    const Message& m = r.pairs[static_cast<std::size_t>(s.to)].sent[s.number];
    if (m.synchronous && check_content) {
      const Rank& receiver = ranks[static_cast<std::size_t>(s.to)];
      const bool possible = std::any_of(receiver.receives.begin(), receiver.receives.end(),
                                        [&](const Receive& v) { return accepts(v, m); });
      if (!possible)
        fail(
            "rank %d: a synchronous send to rank %d completes before any receive that could match "
            "it",
            r.id, s.to);
    }
  }
  std::fill(s.buffer.begin(), s.buffer.end(), 0xdd);
  std::vector<std::uint8_t>().swap(s.buffer);
  if (s.pieces != nullptr) s.pieces->fill(std::vector<std::uint8_t>(s.pieces->bytes(), 0xdd));
  s.pieces.reset();
}

// Some in a few large pieces, some in many small ones.
std::unique_ptr<InPieces> Sim::in_pieces(std::uint64_t bytes) {
  const std::uint64_t longest = 1 + bytes / random.between(1, 300);
  return std::make_unique<InPieces>(
      InPieces::random(bytes, longest, [this](std::uint64_t n) { return random.below(n); }));
}

void Sim::make_room(Receive& v) {
  if (random.chance(400))
    v.pieces = in_pieces(v.room + random.below(3));
  else
    v.buffer.assign(v.room + 8, kUntouched);
}

void Sim::send_active(Rank& r, int to) {
  Pair& p = r.pairs[static_cast<std::size_t>(to)];
  const AmSent sent = {
      random.chance(800) ? random.below(100) : random.below(LITE_AM_HEADER_MAX + 1),
      random.chance(300) ? 0 : random.length(std::min<std::uint64_t>(length_max, 80'000))};
  const std::uint64_t number = p.am_sent.size();
  std::vector<std::uint8_t> header(sent.header_bytes);
  fill(header.data(), header.size(), key_of(kHeaderKind, r.id, to, number));
  Send s = {&r, kDataKind, to, number, {}, true, nullptr};
  s.buffer.resize(sent.data_bytes);
  fill(s.buffer.data(), s.buffer.size(), key_of(kDataKind, r.id, to, number));
  p.am_sent.push_back(sent);
  r.sends.push_back(std::move(s));
  const std::size_t index = r.sends.size() - 1;
  r.cookies.push_back({&r, true, index});
  lite_request* request = nullptr;
  // as an accumulate before the end of an epoch
  const bool gather = sent.data_bytes <= 4096 && !r.in_callback && random.chance(200);
  if (gather) MPID_ChannelGather(MPID_GATHER_PAGES);
  const int rc =
      lite_am_isend(to, static_cast<std::uint32_t>(number), header.data(), header.size(),
                    r.sends[index].buffer.data(), sent.data_bytes, &r.cookies.back(), &request);
  if (gather) MPID_ChannelGather(MPID_GATHER_NOTHING);
  if (rc < 0) {
    check_error(r, to, rc, "lite_am_isend");
    send_done(r, index, LITE_ERR_PEER_LOST);
  } else if (rc == LITE_OK) {
    send_done(r, index, LITE_OK);
  } else if (sent.data_bytes == 0) {
    fail("rank %d: an active message without data is pending", r.id);
  }
}

// A put is in the target's memory when the active message that follows it is delivered.
void Sim::check_accesses_before(Rank& r, int peer, std::uint64_t number) {
  Rank& origin = ranks[static_cast<std::size_t>(peer)];
  for (std::size_t index = 0; index < origin.accesses.size(); ++index) {
    Access& a = origin.accesses[index];
    if (a.done || a.target != r.id || a.message_behind > number) continue;
    const std::size_t at = a.slot * slot_bytes + a.offset;
    if (!a.is_put) {
      if (!a.has_read.empty()) continue;
      const std::uint8_t* had = r.oracle.data() + at;
      a.has_read.assign(had, had + a.buffer.size());
      r.slot_busy[a.slot] = false;  // the next put may change it
      continue;
    }
    const std::uint8_t* is = r.memory.data() + at;
    const std::size_t right = right_bytes(is, a.buffer.size(), key_of(kPutKind, peer, r.id, index));
    if (right != a.buffer.size())
      fail("rank %d: an active message from rank %d is here before byte %zu of put %zu", r.id, peer,
           right, index);
    if (!a.pending) access_is_there(origin, index);
  }
}

void Sim::on_active(Rank& r, int peer, std::uint32_t handler, const std::uint8_t* header,
                    std::size_t header_bytes, const std::uint8_t* data, std::size_t data_bytes) {
  if (r.in_handler) fail("rank %d: an active message is delivered in the handler", r.id);
  if (r.in_callback) fail("rank %d: an active message is delivered inside another", r.id);
  Pair& p = r.pairs[static_cast<std::size_t>(peer)];
  const Pair& theirs = ranks[static_cast<std::size_t>(peer)].pairs[static_cast<std::size_t>(r.id)];
  const std::uint64_t number = p.am_got++;
  if (check_content) {
    if (handler != number)
      fail("rank %d: active message %u from rank %d where %llu is due", r.id, handler, peer,
           static_cast<unsigned long long>(number));
    if (number >= theirs.am_sent.size())
      fail("rank %d: an active message from rank %d that was never sent", r.id, peer);
    const AmSent& sent = theirs.am_sent[number];
    if (sent.header_bytes != header_bytes || sent.data_bytes != data_bytes)
      fail("rank %d: active message %u from rank %d has the wrong length", r.id, handler, peer);
    if ((reinterpret_cast<std::uintptr_t>(header) & 15) != 0 ||
        (data_bytes != 0 && (reinterpret_cast<std::uintptr_t>(data) & 15) != 0))
      fail("rank %d: an active message's header or data is not aligned", r.id);
    std::size_t right = right_bytes(header, header_bytes, key_of(kHeaderKind, peer, r.id, number));
    if (right != header_bytes)
      fail("rank %d: header byte %zu of active message %u from rank %d is wrong", r.id, right,
           handler, peer);
    right = right_bytes(data, data_bytes, key_of(kDataKind, peer, r.id, number));
    if (right != data_bytes)
      fail("rank %d: data byte %zu of active message %u from rank %d is wrong", r.id, right,
           handler, peer);
    check_accesses_before(r, peer, number);
  }
  if (winding_down) return;
  r.in_callback = true;
  if (random.chance(200) && !lost(r, peer)) send_active(r, peer);
  if (random.chance(100)) send(r);
  if (random.chance(100)) receive(r);
  r.in_callback = false;
}

void Sim::receive(Rank& r) {
  if (only_probes) return probe(r);
  const auto context = static_cast<std::uint32_t>(random.below(kContexts));
  const int source = random.chance(300) ? -1 : static_cast<int>(random.below(ranks.size()));
  const std::int32_t tag =
      random.chance(300) ? LITE_ANY_TAG
                         : static_cast<std::int32_t>(random.below(3) | random.below(0x8000) << 16);
  post(r, context, source, tag, random.chance(850) ? length_max : random.length(length_max));
}

void Sim::post(Rank& r, std::uint32_t context, int source, std::int32_t tag, std::uint64_t room) {
  r.receives.emplace_back();
  const std::size_t index = r.receives.size() - 1;
  Receive& v = r.receives.back();
  v.order = r.order++;
  v.context = context;
  v.source = source;
  v.tag = tag;
  v.room = room;
  make_room(v);
  r.cookies.push_back({&r, false, index});
  const lite_envelope e = {context, source < 0 ? LITE_ANY_SOURCE : source_name(context, source),
                           tag};
  lite_status status = {};
  const int rc =
      v.pieces != nullptr
          ? lite_irecvv(v.pieces->pieces(), v.pieces->count(), room, source, &e, &r.cookies.back(),
                        &status, &v.request)
          : lite_irecv(v.buffer.data(), room, source, &e, &r.cookies.back(), &status, &v.request);
  if (rc < 0) {
    check_error(r, source, rc, "lite_irecv");
    v.failed = true;
    v.forget_memory();
  } else if (rc == LITE_OK) {
    received(r, index, status);
  } else {
    if (v.request == nullptr) fail("rank %d: lite_irecv is pending without a request", r.id);
    v.pending = true;
  }
}

void Sim::received(Rank& r, std::size_t index, const lite_status& status) {
  Receive& v = r.receives[index];
  v.pending = false;
  v.request = nullptr;
  if (status.error == LITE_ERR_PEER_LOST) {
    if (!loss_allowed) fail("rank %d: a receive fails: peer lost", r.id);
    if (v.source >= 0 && !lost(r, v.source))
      fail("rank %d: a receive from rank %d fails, but the engine has not lost it", r.id, v.source);
    v.failed = true;
    v.forget_memory();
    return;
  }
  if (status.error != LITE_OK && status.error != LITE_ERR_TRUNCATE)
    fail("rank %d: a receive ends with error %d", r.id, status.error);
  if (!check_content) {
    v.forget_memory();
    return;
  }
  const int from = rank_of_source(v.context, status.source);
  if (from < 0 || from >= static_cast<int>(ranks.size()) || status.peer != from)
    fail("rank %d: a receive names source %d, peer %d", r.id, status.source, status.peer);
  auto& sent = ranks[static_cast<std::size_t>(from)].pairs[static_cast<std::size_t>(r.id)].sent;
  const std::uint64_t number = static_cast<std::uint32_t>(status.tag) >> 16;
  if (number >= sent.size()) fail("rank %d: a message that rank %d never sent", r.id, from);
  Message& m = sent[number];
  if (m.tag != status.tag || m.context != v.context)
    fail("rank %d: message %llu from rank %d comes with another envelope", r.id,
         static_cast<unsigned long long>(number), from);
  if (!accepts(v, m))
    fail("rank %d: a receive got message %llu from rank %d, which it does not match", r.id,
         static_cast<unsigned long long>(number), from);
  if (m.receive >= 0)
    fail("rank %d: message %llu from rank %d is received twice", r.id,
         static_cast<unsigned long long>(number), from);
  m.receive = static_cast<int>(index);
  const bool truncated = m.bytes > v.room;
  if (truncated != (status.error == LITE_ERR_TRUNCATE))
    fail("rank %d: message of %llu bytes into %llu: error %d", r.id,
         static_cast<unsigned long long>(m.bytes), static_cast<unsigned long long>(v.room),
         status.error);
  const std::uint64_t delivered = std::min(m.bytes, v.room);
  if (status.bytes != delivered)
    fail("rank %d: status says %llu bytes, not %llu", r.id,
         static_cast<unsigned long long>(status.bytes), static_cast<unsigned long long>(delivered));
  if (v.probed && v.probed_bytes != m.bytes)
    fail("rank %d: probe said %llu bytes, the message has %llu", r.id,
         static_cast<unsigned long long>(v.probed_bytes), static_cast<unsigned long long>(m.bytes));
  if (v.pieces != nullptr) {
    if (!v.pieces->untouched_but(delivered))
      fail("rank %d: message %llu from rank %d (%llu bytes, room %llu) goes beside its pieces",
           r.id, static_cast<unsigned long long>(number), from,
           static_cast<unsigned long long>(m.bytes), static_cast<unsigned long long>(v.room));
    v.buffer = v.pieces->packed();
    v.buffer.resize(delivered);
  }
  const std::size_t right =
      right_bytes(v.buffer, delivered, key_of(kMessageKind, from, r.id, number));
  if (right != v.buffer.size())
    fail("rank %d: byte %zu of message %llu (%llu bytes, room %llu) from rank %d is wrong", r.id,
         right, static_cast<unsigned long long>(number), static_cast<unsigned long long>(m.bytes),
         static_cast<unsigned long long>(v.room), from);
  v.forget_memory();
}

void Sim::access(Rank& r) {
  Rank& target = ranks[random.below(ranks.size())];
  Access a = {target.id, random.below(kSlots), 0, random.chance(500), {}};
  if (target.slot_busy[a.slot] || target.slot_unknown[a.slot]) return;
  const std::size_t bytes = static_cast<std::size_t>(
      random.chance(400) ? random.between(1, std::min<std::uint64_t>(slot_bytes, 64))
                         : random.between(1, slot_bytes));
  a.offset = static_cast<std::size_t>(random.below(slot_bytes - bytes + 1));
  a.buffer.assign(bytes, kUntouched);
  if (a.is_put) fill(a.buffer.data(), bytes, key_of(kPutKind, r.id, target.id, r.accesses.size()));
  target.slot_busy[a.slot] = true;
  r.accesses.push_back(std::move(a));
  const std::size_t index = r.accesses.size() - 1;
  Access& made = r.accesses[index];
  r.cookies.push_back({&r, true, index, true});
  lite_request* request = nullptr;
  const std::uint64_t at = made.slot * slot_bytes + made.offset;
  // as before the end of an epoch
  MPID_ChannelGather(random.chance(300) ? MPID_GATHER_PAGES : MPID_GATHER_NOTHING);
  made.unanswered = made.is_put && random.chance(300);
  const unsigned flags = made.unanswered ? LITE_PUT_UNANSWERED : 0;
  const int rc = made.is_put ? lite_put(target.id, target.key, at, made.buffer.data(), bytes, flags,
                                        &r.cookies.back(), &request)
                             : lite_get(target.id, target.key, at, made.buffer.data(), bytes, 0,
                                        &r.cookies.back(), &request);
  MPID_ChannelGather(MPID_GATHER_NOTHING);
  if (rc < 0) {
    check_error(r, target.id, rc, "an access");
    return access_done(r, index, LITE_ERR_PEER_LOST);
  }
  if (rc == LITE_OK) {
    if (target.id != r.id)
      fail("rank %d: an access to rank %d is complete at once", r.id, target.id);
    access_done(r, index, LITE_OK);
    return;
  }
  if (made.is_put && lite_request_holds_buffer(request) == 0)
    std::fill(made.buffer.begin(), made.buffer.end(), 0xdd);  // ours again
  if (lite_request_is_in_order(request) != 0)
    made.message_behind = r.pairs[static_cast<std::size_t>(target.id)].am_sent.size();
}

void Sim::access_done(Rank& r, std::size_t index, int error) {
  Access& a = r.accesses[index];
  if (!a.pending) fail("rank %d: an access completes twice", r.id);
  a.pending = false;
  Rank& target = ranks[static_cast<std::size_t>(a.target)];
  if (error != LITE_OK) {
    a.done = true;
    if (a.has_read.empty()) target.slot_busy[a.slot] = false;
    check_error(r, a.target, error, "an access's completion");
    if (a.is_put)
      target.slot_unknown[a.slot] = true;  // perhaps some of it came, perhaps it is to come
    return;
  }
  // Any other put is complete when it is in the target's memory, not earlier.
  if (!a.unanswered || a.target == r.id) return access_is_there(r, index);
  const std::uint64_t next = r.pairs[static_cast<std::size_t>(a.target)].am_sent.size();
  a.message_behind = std::min(a.message_behind, next);
}

// And so is a get in its buffer.
void Sim::access_is_there(Rank& r, std::size_t index) {
  Access& a = r.accesses[index];
  Rank& target = ranks[static_cast<std::size_t>(a.target)];
  a.done = true;
  if (!a.has_read.empty()) {
    if (check_content && a.has_read != a.buffer)
      fail("rank %d: get %zu of %zu bytes from rank %d has read too late", r.id, index,
           a.buffer.size(), a.target);
    std::vector<std::uint8_t>().swap(a.buffer);
    return;
  }
  target.slot_busy[a.slot] = false;
  const std::size_t at = a.slot * slot_bytes + a.offset;
  if (a.is_put)
    fill(target.oracle.data() + at, a.buffer.size(), key_of(kPutKind, r.id, a.target, index));
  const std::uint8_t* is = a.is_put ? target.memory.data() + at : a.buffer.data();
  if (check_content && std::memcmp(is, target.oracle.data() + at, a.buffer.size()) != 0)
    fail("rank %d: %s %zu of %zu bytes with rank %d is complete, and the data is wrong", r.id,
         a.is_put ? "put" : "get", index, a.buffer.size(), a.target);
  std::vector<std::uint8_t>().swap(a.buffer);
}

void Sim::take_completion(Rank& r, lite_request* request) {
  auto* cookie = static_cast<Cookie*>(lite_request_cookie(request));
  if (cookie == nullptr || cookie->rank != &r) fail("rank %d: a completion of another rank", r.id);
  lite_status status = {};
  lite_request_status(request, &status);
  if ((lite_request_is_send(request) != 0) != cookie->is_send)
    fail("rank %d: a send completes as a receive", r.id);
  lite_request_free(request);
  if (cookie->is_access)
    access_done(r, cookie->index, status.error);
  else if (cookie->is_send)
    send_done(r, cookie->index, status.error);
  else
    received(r, cookie->index, status);
}

void Sim::probe(Rank& r) {
  const auto context = static_cast<std::uint32_t>(random.below(kContexts));
  const int source = random.chance(500) ? -1 : static_cast<int>(random.below(ranks.size()));
  const std::int32_t tag =
      random.chance(500) ? LITE_ANY_TAG : static_cast<std::int32_t>(random.below(3));
  const lite_envelope e = {context, source < 0 ? LITE_ANY_SOURCE : source_name(context, source),
                           tag};
  lite_status status = {};
  if (random.chance(400)) {
    const int rc = lite_iprobe(source, &e, &status);
    if (rc < 0) return check_error(r, source, rc, "lite_iprobe");
    if (rc == 0 || !check_content) return;
    const int from = rank_of_source(context, status.source);
    const auto& sent =
        ranks[static_cast<std::size_t>(from)].pairs[static_cast<std::size_t>(r.id)].sent;
    const std::uint64_t number = static_cast<std::uint32_t>(status.tag) >> 16;
    if (number >= sent.size() || sent[number].bytes != status.bytes || sent[number].receive >= 0)
      fail("rank %d: probe sees what is not there", r.id);
    return;
  }
  if (take_by_probe(r, context, source, tag) && random.chance(500)) take_detached(r);
}

bool Sim::take_by_probe(Rank& r, std::uint32_t context, int source, std::int32_t tag) {
  const lite_envelope e = {context, source < 0 ? LITE_ANY_SOURCE : source_name(context, source),
                           tag};
  lite_status status = {};
  lite_message* message = nullptr;
  const int rc = lite_improbe(source, &e, &status, &message);
  if (rc < 0) check_error(r, source, rc, "lite_improbe");
  if (rc <= 0) return false;
  r.receives.emplace_back();
  Receive& v = r.receives.back();
  v.order = r.order++;
  v.context = context;
  v.source = source;
  v.tag = tag;
  v.probed = true;
  v.probed_bytes = status.bytes;
  r.detached.push_back({message, r.receives.size() - 1});
  return true;
}

void Sim::take_detached(Rank& r) {
  if (r.detached.empty()) return;
  const std::size_t which = random.below(r.detached.size());
  const Detached d = r.detached[which];
  r.detached.erase(r.detached.begin() + static_cast<std::ptrdiff_t>(which));
  Receive& v = r.receives[d.receive];
  v.room = random.chance(800) ? v.probed_bytes : random.below(v.probed_bytes + 10);
  if (v.probed_bytes > 8 * length_max) v.room = length_max;  // a changed length
  make_room(v);
  r.cookies.push_back({&r, false, d.receive});
  lite_status status = {};
  const int rc =
      v.pieces != nullptr
          ? lite_imrecvv(d.message, v.pieces->pieces(), v.pieces->count(), v.room,
                         &r.cookies.back(), &status, &v.request)
          : lite_imrecv(d.message, v.buffer.data(), v.room, &r.cookies.back(), &status, &v.request);
  if (rc < 0) {
    check_error(r, -1, rc, "lite_imrecv");
    v.failed = true;
    v.forget_memory();
  } else if (rc == LITE_OK) {
    received(r, d.receive, status);
  } else {
    v.pending = true;
  }
}

void Sim::cancel(Rank& r) {
  if (r.receives.empty()) return;
  Receive& v = r.receives[random.below(r.receives.size())];
  if (!v.pending) return;
  if (lite_cancel_recv(v.request) == 0) return;
  v.pending = false;
  v.cancelled = true;
  v.forget_memory();  // nothing may arrive there any more
}

// What the host does while it waits or tests.
void Sim::look(Rank& r) {
  bind(r);
  LITE_HOT_SET(polls_since_exit, static_cast<int>(random.below(3)));
  const int rc = lite_progress();
  // a corrupt length of an active message is one that there is no memory for
  if (rc < 0 && !(rc == LITE_ERR_NOMEM && g_profile == Profile::kCorrupt))
    fail("rank %d: lite_progress gives %d", r.id, rc);
  while (lite_request* request = lite_next_completion()) take_completion(r, request);
}

void Sim::act(Rank& r) {
  bind(r);
  if (g_profile != Profile::kHandlerOnly && random.chance(20))
    sim::switch_signals(r, [&] { r.device->progress(); });
  switch (random.below(14)) {
    case 0:
    case 1:
    case 2: send(r); break;
    case 3:
    case 4:
    case 5: receive(r); break;
    case 6: {
      const int to = static_cast<int>(random.below(ranks.size()));
      if (!lost(r, to) || to == r.id) send_active(r, to);
      break;
    }
    case 7: probe(r); break;
    case 8: cancel(r); break;
    case 9: take_detached(r); break;
    case 10:
    case 11: access(r); break;
    default: look(r);
  }
}

void Sim::kill(Rank& r) {
  r.alive = false;
  bind(r);
  r.engine.reset();
  ch_lite::device_bind(nullptr);
  r.device.reset();
  mplite::channel_bind(nullptr);
  r.channel.reset();
  world->kill(r.id);
}

// ---- the end ----

// Posts receives for what is still on its way. True when nothing is missing.
bool Sim::catch_up(Rank& r) {
  bool all = true;
  while (!r.detached.empty()) take_detached(r);
  for (Rank& other : ranks) {
    if (pair_lost(r, other) || !check_content) continue;
    for (std::uint32_t context = 0; context < kContexts; ++context) {
      std::uint64_t missing = 0, pending = 0;
      for (const Message& m : other.pairs[static_cast<std::size_t>(r.id)].sent)
        if (m.context == context && m.receive < 0) ++missing;
      for (const Receive& v : r.receives)
        if (v.pending && v.context == context && (v.source == other.id || v.source < 0)) ++pending;
      if (missing > 0) all = false;
      if (only_probes && missing > 0) {
        while (take_by_probe(r, context, random.chance(500) ? -1 : other.id, LITE_ANY_TAG))
          take_detached(r);
        continue;
      }
      for (; pending < missing; ++pending) post(r, context, other.id, LITE_ANY_TAG, length_max);
    }
  }
  return all;
}

bool Sim::quiet(std::string* why) {
  char text[200];
  const auto no = [&](const char* format, auto... arguments) {
    std::snprintf(text, sizeof text, format, arguments...);
    if (why != nullptr) *why = text;
    return false;
  };
  for (Rank& r : ranks) {
    if (!r.alive) continue;
    bind(r);
    for (const Rank& other : ranks) {
      if (pair_lost(r, other) || !check_content) continue;
      const Pair& theirs = other.pairs[static_cast<std::size_t>(r.id)];
      for (const Message& m : theirs.sent)
        if (m.receive < 0)
          return no(
              "rank %d: message %llu of %llu bytes from rank %d (context %u, tag %x) does not come",
              r.id, static_cast<unsigned long long>(m.number),
              static_cast<unsigned long long>(m.bytes), other.id, m.context, m.tag);
      const std::uint64_t got = r.pairs[static_cast<std::size_t>(other.id)].am_got;
      if (got != theirs.am_sent.size())
        return no("rank %d: %llu of %zu active messages from rank %d came", r.id,
                  static_cast<unsigned long long>(got), theirs.am_sent.size(), other.id);
    }
    for (const Send& s : r.sends) {
      const Rank& other = ranks[static_cast<std::size_t>(s.to)];
      // A send to somebody who has given us up, and whom we have not, may wait for an answer that
      // never comes; so may one into a changed stream.
      const bool limbo = other.alive && (!check_content || (s.to != r.id && lost(other, r.id))) &&
                         !(s.to != r.id && lost(r, s.to));
      if (s.pending && !limbo)
        return no("rank %d: send %llu of kind %d to rank %d is not complete", r.id,
                  static_cast<unsigned long long>(s.number), s.kind, s.to);
    }
    for (const Access& a : r.accesses) {
      const Rank& other = ranks[static_cast<std::size_t>(a.target)];
      const bool limbo = other.alive && (!check_content || lost(other, r.id)) && !lost(r, a.target);
      if (a.pending && !limbo)
        return no("rank %d: a %s of %zu bytes with rank %d is not complete", r.id,
                  a.is_put ? "put" : "get", a.buffer.size(), a.target);
    }
    for (const Receive& v : r.receives)
      if (v.pending && v.source >= 0 && lost(r, v.source))
        return no("rank %d: a receive from rank %d, which is lost, is not complete", r.id,
                  v.source);
    if (MPID_ChannelQueued() != 0 && check_content)
      return no("rank %d: %llu frames are queued", r.id,
                static_cast<unsigned long long>(MPID_ChannelQueued()));
  }
  return true;
}

// As ProgressState::poll_all.
void Sim::poll_all(Rank& r, const mplite::ProgressMode& mode) {
  bind(r);
  mplite::Hold gate(r.engine->gate());
  r.engine->clear_starved();
  r.engine->refill();
  mplite::ProgressScope scope(*r.engine, mode);
  r.device->progress();
  if (r.engine->more_to_do()) r.self_signal = true;
}

// The handler runs if there is a signal for it. Otherwise the host's thread polls if the handler
// has noted that it lacked memory. False: neither.
bool Sim::serve_absent(Rank& r) {
  const bool called = world->signal_pending(r.id, sim::kCallerSignal);
  if (called || world->signal_pending(r.id) || r.self_signal)
    run_handler(r, called ? sim::kCallerSignal : sim::kMainSignal);
  else if (r.engine->is_starved())
    poll_all(r, mplite::ProgressMode::helper_thread());
  else
    return false;
  return true;
}

// The application computes: everything that is posted must complete by signals, and by the host's
// thread where the handler has noted that it lacked memory. Active messages wait for the host.
void Sim::drain_by_signals() {
  for (Rank& r : ranks) poll_all(r, mplite::ProgressMode::all_sockets());
  for (int idle = 0; idle < 200; ++idle) {
    bool any = false;
    for (Rank& r : ranks) any = serve_absent(r) || any;
    if (any)
      idle = 0;
    else
      world->skip(50'000'000);  // some roads are slow
  }
  for (Rank& r : ranks) {
    bind(r);
    while (lite_request* request = lite_next_completion()) take_completion(r, request);
  }
  for (Rank& r : ranks)
    for (const Receive& v : r.receives)
      if (v.pending && v.source >= 0)
        fail("signals alone do not finish it: rank %d waits for a message from rank %d", r.id,
             v.source);
  for (Rank& r : ranks)
    for (const Access& a : r.accesses)
      if (a.pending)
        fail("signals alone do not finish it: rank %d waits for a %s of %zu bytes, rank %d", r.id,
             a.is_put ? "put" : "get", a.buffer.size(), a.target);
}

void Sim::drain() {
  winding_down = true;
  world->calm();
  std::string why;
  for (Rank& r : ranks) {
    if (!r.alive) continue;
    bind(r);
    for (Receive& v : r.receives)
      if (v.pending && lite_cancel_recv(v.request) != 0) {
        v.pending = false;
        v.cancelled = true;
        v.forget_memory();
      }
    catch_up(r);
  }
  if (g_profile == Profile::kHandlerOnly) drain_by_signals();
  int quiet_turns = 0;
  const bool settled = sim::settle(*world, ranks, 60'000, [&](int turn) {
    for (Rank& r : ranks) {
      if (!r.alive) continue;
      look(r);
      if (turn % (only_probes ? 1 : 8) == 0) catch_up(r);
    }
    if (g_profile == Profile::kCorrupt && turn == 2'000)
      sim::part_all(*world, static_cast<int>(ranks.size()));
    if (turn % 4 != 0) return false;
    quiet_turns = quiet(nullptr) ? quiet_turns + 1 : 0;
    return quiet_turns > 5;
  });
  if (!settled) {
    quiet(&why);
    if (g_verbose) world->dump();
    fail("does not drain: %s", why.c_str());
  }
}

// MPI 4.0 3.5: of two messages from one sender, the earlier goes to the earlier of two receives
// that both take it.
void Sim::check_order() {
  if (!check_content) return;
  for (const Rank& r : ranks) {
    if (!r.alive) continue;
    for (const Rank& other : ranks) {
      const auto& sent = other.pairs[static_cast<std::size_t>(r.id)].sent;
      for (std::size_t later = 0; later < sent.size(); ++later) {
        const Message& m2 = sent[later];
        if (m2.receive < 0) continue;
        const Receive& v2 = r.receives[static_cast<std::size_t>(m2.receive)];
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
          const Message& m1 = sent[earlier];
          if (m1.context != m2.context || !accepts(v2, m1)) continue;
          const bool overtaken =
              m1.receive >= 0 && r.receives[static_cast<std::size_t>(m1.receive)].order > v2.order;
          if (overtaken)
            fail("rank %d: message %zu from rank %d overtook message %zu", r.id, later, other.id,
                 earlier);
        }
      }
      for (const Receive& v : r.receives) {
        if (!v.pending) continue;
        // One that has its match may wait for ever for data of a peer that has given us up, while
        // we have not given it up.
        if (loss_allowed && v.request->state != ch_lite::RequestState::kPosted) continue;
        for (const Message& m : sent)
          if (m.receive >= 0 && accepts(v, m) &&
              r.receives[static_cast<std::size_t>(m.receive)].order > v.order)
            fail(
                "rank %d: message %llu from rank %d passed over an earlier receive that still "
                "waits",
                r.id, static_cast<unsigned long long>(m.number), other.id);
      }
    }
  }
}

// Nothing under way: what one side may spend and what the other owes it back make up the whole
// window. Credit on its way back is nobody's; a socket may bring a byte of it at a time.
void Sim::check_credits() {
  if (loss_allowed) return;
  std::string why;
  const bool whole = sim::settle(*world, ranks, 2'000, [&](int turn) {
    for (Rank& r : ranks) look(r);
    if (turn < 100) return false;
    why = missing_credit();
    return why.empty();
  });
  if (!whole) fail("%s", why.c_str());
}

// Empty: none.
std::string Sim::missing_credit() {
  char why[160] = "";
  for (Rank& r : ranks) {
    for (Rank& other : ranks) {
      for (int lane = 0; lane < 2; ++lane) {
        const ch_lite::Credits& mine = r.device->peer(other.id).credits[lane];
        const ch_lite::Credits& theirs = other.device->peer(r.id).credits[lane];
        const std::uint64_t window = std::min(windows[static_cast<std::size_t>(r.id)],
                                              windows[static_cast<std::size_t>(other.id)]);
        if (theirs.held() != 0)
          std::snprintf(why, sizeof why,
                        "rank %d still holds %llu bytes of credit of rank %d in lane %d", other.id,
                        static_cast<unsigned long long>(theirs.held()), r.id, lane);
        else if (mine.left() + theirs.owed() != window)
          std::snprintf(
              why, sizeof why,
              "rank %d has %llu bytes of credit with rank %d left and is owed %llu in lane "
              "%d, of %llu",
              r.id, static_cast<unsigned long long>(mine.left()), other.id,
              static_cast<unsigned long long>(theirs.owed()), lane,
              static_cast<unsigned long long>(window));
      }
    }
  }
  return why;
}

void Sim::run() {
  for (std::uint64_t i = 0; i < actions; ++i) {
    Rank& r = ranks[random.below(ranks.size())];
    if (g_profile == Profile::kKill && r.alive && random.chance(3)) {
      int alive = 0;
      for (const Rank& each : ranks) alive += each.alive ? 1 : 0;
      if (alive > 1) kill(r);
    }
    if (g_profile == Profile::kReset && random.chance(2))
      world->cut(static_cast<int>(random.below(ranks.size())),
                 static_cast<int>(random.below(ranks.size())));
    if (g_profile == Profile::kLanes && random.chance(20)) {
      const Rank& other = ranks[random.below(ranks.size())];
      sim::break_a_lane(random, *world, r.id, other.id, *r.engine, *other.engine);
    }
    if (g_profile == Profile::kResume && random.chance(20))
      sim::break_some(random, *world, r.id, static_cast<int>(random.below(ranks.size())));
    if (r.alive) act(r);
    if (random.chance(50)) world->skip(100'000);
  }
  drain();
  for (Rank& r : ranks)
    for (std::size_t index = 0; index < r.accesses.size(); ++index) {
      const Access& a = r.accesses[index];
      if (a.done || a.pending || !r.alive) continue;
      const Rank& target = ranks[static_cast<std::size_t>(a.target)];
      if (target.alive && !lost(r, a.target) && !lost(target, r.id)) access_is_there(r, index);
    }
  check_order();
  check_credits();
  for (Rank& r : ranks) {
    for (std::size_t slot = 0; slot < kSlots && check_content; ++slot)
      if (!r.slot_unknown[slot] && !r.slot_busy[slot] &&
          std::memcmp(r.memory.data() + slot * slot_bytes, r.oracle.data() + slot * slot_bytes,
                      slot_bytes) != 0)
        fail("rank %d: slot %zu of its memory is not what was put there", r.id, slot);
    if (!r.alive) continue;
    bind(r);
    if (!loss_allowed && r.device->accesses_used() != 0)
      fail("rank %d: %u accesses are left", r.id, r.device->accesses_used());
    if (lite_withdraw(r.key) != LITE_OK) fail("rank %d: lite_withdraw fails", r.id);
    if (r.device->accesses_used() != 0 && !loss_allowed)
      fail("rank %d: accesses outlive their memory", r.id);
  }
  std::uint64_t handler_runs = 0;
  for (Rank& r : ranks) {
    handler_runs += r.handler_runs;
    if (!r.alive) continue;
    bind(r);
    if (!loss_allowed) {
      if (r.device->unexpected_count() != 0)
        fail("rank %d: %u unexpected messages are left", r.id, r.device->unexpected_count());
      if (r.device->messages_used() != 0)
        fail("rank %d: %u message nodes are left", r.id, r.device->messages_used());
      std::uint32_t pending = 0;
      for (const Receive& v : r.receives) pending += v.pending ? 1 : 0;
      if (r.device->requests_used() != pending)
        fail("rank %d: %u requests are left, %u pending", r.id, r.device->requests_used(), pending);
      if (r.device->blocks().bytes_in_use() != 0)
        fail("rank %d: %llu bytes of blocks are left", r.id,
             static_cast<unsigned long long>(r.device->blocks().bytes_in_use()));
    }
    kill(r);
    if (world->open_sockets(r.id) > 0) fail("rank %d leaves sockets open", r.id);
  }
  if (g_verbose)
    std::fprintf(
        stderr, "seed %llu %s: %zu ranks, %llu actions, %llu handler runs, short %llu eager %llu\n",
        sim::g_seed, sim::g_profile_name, ranks.size(), static_cast<unsigned long long>(actions),
        static_cast<unsigned long long>(handler_runs),
        static_cast<unsigned long long>(device_options.short_max),
        static_cast<unsigned long long>(device_options.eager_max));
}

}  // namespace

int main(int argc, char** argv) {
  return sim::drive(argc, argv, "device_sim", kProfileNames,
                    [](std::uint64_t seed, std::size_t profile) {
                      g_profile = static_cast<Profile>(profile);
                      Sim one(seed * 16 + profile + 0x5eed);
                      one.run();
                    },
                    {{30129437, "corrupt"}, {30209277, "handler-only"}, {901568, "resume"}});
}
