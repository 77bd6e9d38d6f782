// Profile jobs of engine_sim: several jobs in one network. Their processes call each other by ports
// and by names, are answered late or never, part and meet again; jobs end in order, processes die,
// and new jobs come, perhaps at the addresses of old ones; connections break. Checks, beside those
// of every profile: a meeting has nothing of the one before; whose end is a loss and whose is not;
// everybody who was connected to a process hears of its end, and at last of everybody's goodbye.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "connection_trouble.h"
#include "engine_sim.h"

namespace engine_sim {

using mplite::PeerState;
using mplite::PortName;
using mplite::ProcessName;
using sim::fail;
using sim::g_verbose;

static ProcessName name_of(const Rank& r) {
  return mplite::make_process_name(FakeWorld::address(r.id), r.keys.open, kWindow);
}

static PeerState state_of(const Rank& r, int number) {
  mplite::Hold gate(r.engine->gate());
  return number < 0 ? PeerState::kIdle : r.engine->report(number).state;
}

static bool is_open(const Op& op) { return !op.done && !op.cancelled; }

void Sim::draw_jobs() {
  resets = faults.reset > 0;
  all_resume = random.chance(512);
  // Where nobody answers a call, it ends when TCP was not up for so long in all.
  long_timeout = (resets && all_resume) || roads.are_broken();
  late_calls_answered = long_timeout || !random.chance(170);
  int first = 0;
  for (int jobs = static_cast<int>(random.between(2, 3)); jobs > 0; --jobs) {
    const int size = static_cast<int>(random.between(1, 2));
    new_job(first, size);
    first += size;
  }
}

void Sim::prepare_for_jobs(Rank& r, EngineOptions& o) {
  if (all_resume) {
    const std::int64_t timeout_ns = o.connect_timeout_ns;
    sim::always_resume(o);
    o.connect_timeout_ns = resets ? 30'000'000'000 : timeout_ns;
  }
  o.stream.keepalive_idle_s = 2;
  o.stream.keepalive_interval_s = 1;
  o.keys = r.keys;
  std::memset(o.secret, 7 + r.job, sizeof o.secret);
}

// ---- who is who ----

const Sent& Sim::sent_by(int from, const Rank& r) const {
  const Pair& theirs = ranks[static_cast<std::size_t>(from)].pairs[static_cast<std::size_t>(r.id)];
  const int heard = r.pairs[static_cast<std::size_t>(from)].heard;
  const bool known = heard >= 0 && heard < static_cast<int>(theirs.meetings.size());
  return known ? theirs.meetings[static_cast<std::size_t>(heard)] : theirs.sent();
}

// Which process that is. For one that it has not been before, a meeting begins.
int Sim::named_by(Rank& r, int number) {
  if (number < r.job_size) return r.job + number;
  std::uint8_t key[mplite::kKeyBytes];
  r.engine->key_of(number, key);
  const auto is_it = [&key](const Rank& other) {
    return other.job_size > 0 && std::memcmp(other.keys.open, key, sizeof key) == 0;
  };
  const auto other = std::find_if(ranks.begin(), ranks.end(), is_it);
  if (other == ranks.end()) fail("rank %d: nobody has the key of peer %d", r.id, number);
  if (!is_foreign(r, other->id))
    fail("rank %d: rank %d of its own job is peer %d, too", r.id, other->id, number);
  if (r.pairs[static_cast<std::size_t>(other->id)].number != number) met(r, other->id, number);
  return other->id;
}

void Sim::met(Rank& r, int other, int number) {
  Pair& p = r.pairs[static_cast<std::size_t>(other)];
  if (p.number >= 0) fail("rank %d: rank %d is peer %d and %d", r.id, other, p.number, number);
  Pair fresh;
  fresh.meetings = std::move(p.meetings);
  fresh.meetings.emplace_back();
  fresh.heard_before = std::max(p.heard, p.heard_before);
  fresh.number = number;
  p = std::move(fresh);
  if (g_verbose) std::fprintf(stderr, "rank %d meets rank %d as peer %d\n", r.id, other, number);
}

// A number begins anew: not while there is something left of the process that had it.
int Sim::on_introduce(void* arg, int number, std::uint32_t window) {
  auto* r = static_cast<Rank*>(arg);
  if (r->in_handler) fail("rank %d: a peer is introduced in the handler", r->id);
  if (number < r->job_size) fail("rank %d: peer %d of its own job is introduced", r->id, number);
  if (window != kWindow) fail("rank %d: peer %d gives %u bytes of credit", r->id, number, window);
  for (std::size_t other = 0; other < r->pairs.size(); ++other) {
    if (r->pairs[other].number != number) continue;
    const int id = static_cast<int>(other);
    const auto is_left = [id](const auto& op) { return op->peer == id && is_open(*op); };
    if (r->blocked_by == id || std::any_of(r->ops.begin(), r->ops.end(), is_left)) return 0;
    r->pairs[other].number = -1;
  }
  return 1;
}

bool Sim::may_lose(const Rank& r, int other) const {
  if (g_profile != Profile::kJobs) return loss_allowed;
  const Rank& o = ranks[static_cast<std::size_t>(other)];
  if (!o.alive) return true;
  const bool unheard = r.pairs[static_cast<std::size_t>(other)].heard < 0;  // perhaps not connected
  if (!is_foreign(r, other)) return (resets && !all_resume) || (faults.refuse > 0 && unheard);
  return resets || unheard;
}

bool Sim::may_talk(const Rank& r, int other) const {
  const Pair& p = r.pairs[static_cast<std::size_t>(other)];
  return !is_foreign(r, other) || (p.number >= 0 && p.dealt);
}

// Whose loss concerns only those who deal with just this process.
void Sim::check_foreign_loss(Rank& r, int from, int number) {
  const Pair& p = r.pairs[static_cast<std::size_t>(from)];
  const Sent& theirs = sent_by(from, r);
  const bool departed = MPID_ChannelDeparted(number) != 0;
  if (g_verbose)
    std::fprintf(stderr, "rank %d: departed %d, dealt %d, heard %d, goodbye %d %d\n", r.id,
                 departed, p.dealt, p.heard, theirs.goodbye_ever, theirs.goodbye_heard);
  if (r.connecting == from) return;  // the library knows already that it is dealt with again
  if (!departed && !p.dealt)
    fail("rank %d: the end of rank %d is a loss, with which it does not deal", r.id, from);
  if (!departed && p.heard >= 0 && theirs.goodbye_heard)
    fail("rank %d: the end of rank %d is a loss, which has said goodbye", r.id, from);
  // Who says goodbye itself takes a loss that it finds so for none.
  if (departed && p.dealt && r.leaving == 0 && p.heard >= 0 && !theirs.goodbye_ever)
    fail("rank %d: the end of rank %d is no loss, which has not said goodbye", r.id, from);
}

// ---- what processes do ----

void Sim::act_between_jobs(Rank& r) {
  const int other = static_cast<int>(random.below(ranks.size()));
  const bool foreign = ranks[static_cast<std::size_t>(other)].job_size > 0 && is_foreign(r, other);
  switch (random.below(8)) {
    case 0: return open_or_close_port(r);
    case 1: return call_port(r);
    case 2:
    case 3:
      if (foreign) connect(r, other);
      return;
    case 4:
    case 5: return answer(r);
    case 6:
      if (foreign) part(r, other);
      return;
    default: return step_ordinary(r);
  }
}

// By the name, which somebody has told. The other one is told, too.
void Sim::connect(Rank& r, int to) {
  Rank& other = ranks[static_cast<std::size_t>(to)];
  const ProcessName name = name_of(other);
  mplite::Hold gate(r.engine->gate());
  r.connecting = to;
  const int number = r.engine->connect(name);
  if (number == -EBUSY) {  // something is left of the time before
    r.connecting = -1;
    return;
  }
  if (number < 0) fail("rank %d cannot connect to rank %d: %s", r.id, to, strerror(-number));
  if (named_by(r, number) != to) fail("rank %d: peer %d is not rank %d", r.id, number, to);
  r.connecting = -1;
  Pair& p = r.pairs[static_cast<std::size_t>(to)];
  p.dealt = true;
  p.sent().goodbye = false;
  if (g_verbose) std::fprintf(stderr, "rank %d connects to rank %d: peer %d\n", r.id, to, number);
  if (other.alive && !other.pairs[static_cast<std::size_t>(r.id)].dealt) other.told.push_back(r.id);
}

void Sim::open_or_close_port(Rank& r) {
  const auto id = static_cast<std::uint32_t>(random.between(1, 3));
  for (Port& port : ports)  // one port per number
    if (port.owner == r.id && port.name.id == id) port.open = false;
  mplite::Hold gate(r.engine->gate());
  if (random.chance(300)) return r.engine->ports().close(id);
  Port port = {r.id, {name_of(r), id, {}}, true};
  for (auto& byte : port.name.key) byte = static_cast<std::uint8_t>(random.next());
  if (r.engine->ports().open(id, port.name.key) != 0) fail("rank %d opens no port", r.id);
  ports.push_back(port);
}

// Mostly one that is open. The owner sees the caller when a connection is up.
void Sim::call_port(Rank& r) {
  if (ports.empty()) return;
  const Port* port = &ports[random.below(ports.size())];
  for (int tries = 0; tries < 3 && !port->open; ++tries) port = &ports[random.below(ports.size())];
  const PortName name = port->name;
  const int owner = port->owner;
  mplite::Hold gate(r.engine->gate());
  r.connecting = owner;
  const int number = r.engine->connect_by_port(name);
  if (number >= 0 && named_by(r, number) != owner)
    fail("rank %d: peer %d is not the owner of a port of rank %d", r.id, number, owner);
  r.connecting = -1;
  if (number < 0 && number != -EBUSY)
    fail("rank %d cannot call a port of rank %d: %s", r.id, owner, strerror(-number));
  if (number < 0 || !is_foreign(r, owner)) return;
  Pair& p = r.pairs[static_cast<std::size_t>(owner)];
  p.dealt = true;
  p.sent().goodbye = false;
  if (g_verbose)
    std::fprintf(stderr, "rank %d calls a port of rank %d: peer %d\n", r.id, owner, number);
}

// Of those who have called: one by its name, or one that came to a port.
void Sim::answer(Rank& r) {
  if (!r.told.empty()) {
    const auto at = r.told.begin() + static_cast<std::ptrdiff_t>(random.below(r.told.size()));
    const int other = *at;
    r.told.erase(at);
    return connect(r, other);
  }
  for (std::size_t i = 0; i < r.pairs.size(); ++i)
    if (r.pairs[i].number >= 0 && !r.pairs[i].dealt && r.pairs[i].heard >= 0)
      return connect(r, static_cast<int>(i));
}

void Sim::part(Rank& r, int from) {
  Pair& p = r.pairs[static_cast<std::size_t>(from)];
  if (p.number < 0 || !p.dealt) return;
  mplite::Hold gate(r.engine->gate());
  const bool up = state_of(r, p.number) == PeerState::kUp;
  // The other one would call in vain, for minutes of the clock.
  const Rank& other = ranks[static_cast<std::size_t>(from)];
  if (!up && other.alive && other.pairs[static_cast<std::size_t>(r.id)].dealt) return;
  if (up) p.sent().goodbye = p.sent().goodbye_ever = true;
  p.dealt = false;
  r.engine->disconnect(p.number);
  if (g_verbose) std::fprintf(stderr, "rank %d parts from rank %d\n", r.id, from);
}

// ---- jobs come and go ----

void Sim::jobs_come_and_go() {
  go_on_leaving();
  Rank& r = ranks[random.below(ranks.size())];
  const auto alive =
      std::count_if(ranks.begin(), ranks.end(), [](auto& each) { return each.alive; });
  if (r.alive && !r.blocked && random.chance(4) && alive > 2) {
    if (random.chance(400)) return kill(r);
    for (Rank& each : ranks) {
      if (each.job != r.job || !each.alive || each.blocked || each.leaving > 0) continue;
      each.leaving = static_cast<int>(random.between(1, 600));
      note_goodbyes(each);
    }
  }
  if (random.chance(4)) come_again();
  if (resets && random.chance(6))
    sim::break_some(random, *world, r.id, static_cast<int>(random.below(ranks.size())));
}

void Sim::note_goodbyes(Rank& r) {
  bind(r);
  if (g_verbose) std::fprintf(stderr, "rank %d says goodbye\n", r.id);
  mplite::Hold gate(r.engine->gate());
  for (int number = r.job_size; number < r.engine->peers(); ++number) {
    if (state_of(r, number) != PeerState::kUp) continue;
    Sent& sent = r.pairs[static_cast<std::size_t>(named_by(r, number))].sent();
    sent.goodbye = sent.goodbye_ever = true;
  }
  r.engine->say_goodbye();
}

void Sim::go_on_leaving() {
  for (Rank& r : ranks) {
    if (!r.alive || r.leaving == 0 || r.blocked) continue;
    bind(r);
    if (--r.leaving == 0 || (r.engine->farewell() && MPID_ChannelQueued() == 0)) end(r);
  }
}

void Sim::end(Rank& r) {
  if (g_verbose) std::fprintf(stderr, "rank %d ends\n", r.id);
  bind(r);
  for (const Rank& other : ranks) {
    Pair& p = r.pairs[static_cast<std::size_t>(other.id)];
    if (!other.alive || p.number < 0 || !p.sent().goodbye) continue;
    mplite::Hold gate(r.engine->gate());
    const Pair& theirs = other.pairs[static_cast<std::size_t>(r.id)];
    p.sent().goodbye_heard = state_of(r, p.number) == PeerState::kUp && MPID_ChannelQueued() == 0 &&
                             theirs.control_got == p.sent().control &&
                             theirs.channel_got == p.sent().channel_lengths.size() &&
                             theirs.transfers_got == p.sent().transfer_lengths.size() &&
                             world->is_all_read(r.id, other.id);
  }
  r.alive = false;
  r.engine.reset();
  r.channel.reset();
  mplite::channel_bind(nullptr);
  if (world->open_sockets(r.id) > 0) fail("rank %d leaves sockets open", r.id);
}

// A new job, where there is room for one. Perhaps it has the address of a process that has ended.
void Sim::come_again() {
  const auto is_new = [](const Rank& each) { return each.job_size == 0; };
  const auto first = std::find_if(ranks.begin(), ranks.end(), is_new);
  if (first == ranks.end()) return;
  const int size = first->id + 1 < static_cast<int>(ranks.size()) && random.chance(512) ? 2 : 1;
  new_job(first->id, size);
  for (const Rank& each : ranks)
    if (each.job_size > 0 && !each.alive && !long_timeout && random.chance(512))
      return world->take_over(each.id, first->id);
}

// ---- the end of all ----

void Sim::answer_all() {
  go_on_leaving();
  for (Rank& r : ranks) {
    if (!r.alive || r.leaving > 0 || r.told.empty() || !late_calls_answered) continue;
    bind(r);
    answer(r);
  }
}

bool Sim::knows_all_of(Rank& r, const Rank& other, std::string& why) {
  const Pair& mine = r.pairs[static_cast<std::size_t>(other.id)];
  const Pair& theirs = other.pairs[static_cast<std::size_t>(r.id)];
  const int number = number_of(r, other.id);
  const PeerState state = state_of(r, number);
  const auto say = [&](const char* what) {
    why = "rank " + std::to_string(r.id) + " " + what + " rank " + std::to_string(other.id);
    return false;
  };
  if (state != PeerState::kUp && state != PeerState::kMaking) return true;
  if (!other.alive) return say("has not noticed the end of");
  if (!is_foreign(r, other.id)) return true;
  if (state == PeerState::kMaking) return say("still calls");
  if (theirs.number < 0) return mine.sent().control == 0 || say("has not been heard by");
  if (theirs.lost != 0) return say("has not noticed that it was given up by");
  return mine.heard < 0 || mine.heard + 1 == static_cast<int>(theirs.meetings.size()) ||
         say("is still in a meeting of the past with");
}

// As at the end of MPI_Finalize.
void Sim::hear_goodbyes() {
  for (Rank& r : ranks)
    if (r.alive) note_goodbyes(r);
  const auto has_heard = [](const Rank& r) { return !r.alive || r.engine->farewell(); };
  // As many turns as in drain(): who called and fell silent before anything came from it is not
  // noticed there, as this rank has not met it yet.
  const bool settled = sim::settle(*world, ranks, 100'000, [&](int) {
    for (Rank& r : ranks) step_ordinary(r);
    return std::all_of(ranks.begin(), ranks.end(), has_heard);
  });
  for (const Rank& r : ranks)
    if (!settled && !has_heard(r)) fail("rank %d does not hear a goodbye", r.id);
}

}  // namespace engine_sim
