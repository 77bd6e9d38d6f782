// Many simulated ranks, each an Engine and its channel, under random traffic and random trouble,
// from one seed. Checks: order and content of everything, nothing lost or doubled, all drains, a
// lost peer completes everything on it, no allocation in the handler. Runs: engine_sim [--seed S]
// [--runs N] [--seconds T] [--profile NAME] [--verbose]; a failure prints the line that repeats it.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "alloc_trap.h"
#include "connection_trouble.h"
#include "content.h"
#include "drawn_sockets.h"
#include "drawn_tuning.h"
#include "engine_sim.h"

namespace engine_sim {

using sim::fail;
using sim::fill;
using sim::g_verbose;
using sim::kUntouched;
using sim::right_bytes;

// Of what the message number `number` of one meeting consists.
static std::uint64_t key_of(int kind, int from, int to, std::uint64_t number, std::size_t meeting) {
  return sim::key_of(kind, from, to, number + (std::uint64_t{meeting} << 32));
}

static sim::Faults choose_faults(Random& random, Profile profile) {
  sim::Faults f;
  static const int shorts[] = {0, 100, 300, 700};
  f.short_io = shorts[random.below(4)];
  f.would_block = static_cast<int>(random.below(3)) * 80;
  f.empty_wait = static_cast<int>(random.below(3)) * 60;
  f.hidden_event = static_cast<int>(random.below(3)) * 60;
  static const std::uint64_t pipes[] = {sim::kFreshBytes, 300, 5'000, 60'000, 2'000'000};
  f.pipe_min = sim::kFreshBytes;
  f.pipe_max = pipes[random.below(5)];
  static const std::int64_t delays[] = {0, 500, 20'000, 300'000};
  f.delay_max_ns = delays[random.below(4)];
  switch (profile) {
    case Profile::kReset: f.reset = 8; break;
    case Profile::kResume: f.reset = random.chance(512) ? 4 : 0; break;
    case Profile::kConnect:
      f.refuse = 100;
      f.unanswered = 100;
      f.no_descriptor = 100;
      f.reset = 1;
      break;
    case Profile::kCorrupt: f.corrupt = 4; break;
    case Profile::kStrangers: f.no_descriptor = random.chance(300) ? 60 : 0; break;
    case Profile::kJobs:
      if (random.chance(400)) f.reset = 4;
      if (random.chance(300)) f.no_descriptor = 40;
      // A connection that has broken could not be made again.
      if (f.reset == 0 && f.no_descriptor > 0) f.refuse = f.unanswered = 40;
      break;
    default: break;
  }
  return f;
}

Sim::Sim(std::uint64_t seed) : random(seed) {
  faults = choose_faults(random, g_profile);
  const int size =
      g_profile == Profile::kJobs
          ? kProcessesMax
          : static_cast<int>(random.between(2, g_profile == Profile::kCorrupt ? 3 : 5));
  world = std::make_unique<FakeWorld>(random.next(), size, faults);
  loss_allowed = g_profile == Profile::kReset || g_profile == Profile::kKill ||
                 g_profile == Profile::kConnect || g_profile == Profile::kCorrupt ||
                 g_profile == Profile::kMute ||
                 (g_profile == Profile::kStrangers && faults.no_descriptor > 0);
  protection = sim::drawn_protection(seed);
  check_content = g_profile != Profile::kCorrupt || protection != 0;
  length_max = std::min<std::uint64_t>(faults.pipe_max * 20, 400'000);
  if (faults.short_io > 300) length_max = std::min<std::uint64_t>(length_max, 20'000);
  control_max = std::min<std::uint64_t>(length_max, MPID_CONTROL_BYTES_MAX - sizeof(Talk));
  actions = random.between(50, 1500);
  if (g_profile == Profile::kJobs) actions *= 2;  // a part of them are not traffic
  world->misuse = [](const char* what) {
    fail("the engine calls %s with a descriptor that is closed or not its own", what);
  };
  world->boundary = [this](int host) {
    Rank& r = ranks[static_cast<std::size_t>(host)];
    if (!r.alive || r.in_handler || r.engine == nullptr) return;
    if (world->signal_pending(host, sim::kCallerSignal) && random.chance(300))
      return run_handler(r, sim::kCallerSignal);
    if (!r.armed) return;
    if (world->signal_pending(host) ? random.chance(300) : random.chance(4)) run_handler(r);
  };
  world->asleep = [this](int host) {
    Rank& sleeper = ranks[static_cast<std::size_t>(host)];
    if (sleeper.engine->gate().held()) fail("rank %d sleeps with its gate closed", host);
    for (Rank& r : ranks)
      if (&r != &sleeper && r.alive && !r.blocked && random.chance(700)) step_ordinary(r);
    bind(sleeper);
    // Where nothing comes any more but the end of a time limit.
    std::uint64_t now_moved = 0;
    for (const Rank& r : ranks)
      if (r.alive) now_moved += r.engine->counters().bytes_in;
    vain_sleeps = now_moved == moved ? vain_sleeps + 1 : 0;
    moved = now_moved;
    if (vain_sleeps > 200) world->skip(1'000'000);
  };
  ranks.resize(static_cast<std::size_t>(size));
  // Processes of other jobs know the first address only.
  roads.draw(
      seed, *world, size,
      g_profile == Profile::kHandlerOnly ? sim::BrokenRoads::kFail : sim::BrokenRoads::kSilent,
      g_profile == Profile::kJobs);
  for (int i = 0; i < size; ++i) {
    ranks[static_cast<std::size_t>(i)].sim = this;
    ranks[static_cast<std::size_t>(i)].id = i;
  }
  if (g_profile == Profile::kJobs)
    draw_jobs();
  else
    new_job(0, size);
}

// From now on these ranks are alive.
void Sim::new_job(int first, int size) {
  for (int i = first; i < first + size; ++i) {
    Rank& r = ranks[static_cast<std::size_t>(i)];
    r.job = first;
    r.job_size = size;
    r.alive = true;
    std::uint8_t secret[mplite::kKeyBytes] = {};
    for (auto& byte : secret)
      if (g_profile == Profile::kJobs) byte = static_cast<std::uint8_t>(random.next());
    r.keys = mplite::make_key_pair(secret);
  }
  for (int i = first; i < first + size; ++i) boot(ranks[static_cast<std::size_t>(i)]);
}

void Sim::boot(Rank& r) {
  const int size = r.job_size;
  r.peers = std::make_unique<PeerAddress[]>(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    PeerAddress& peer = r.peers[static_cast<std::size_t>(i)];
    const int host = r.job + i;
    roads.publish(host, peer);
    std::snprintf(peer.host, sizeof peer.host, "host%d", host);
    std::memcpy(peer.name_key, ranks[static_cast<std::size_t>(host)].keys.open,
                sizeof peer.name_key);
  }
  EngineOptions o;
  o.rank = r.id - r.job;
  o.size = size;
  o.peers = r.peers.get();
  roads.listen(r.id, *world, o);
  std::memset(o.secret, 7, sizeof o.secret);
  o.connect_timeout_ns = roads.are_broken() ? 30'000'000'000 : 2'000'000'000;
  static const std::uint32_t frames[] = {1, 100, 4'096, 65'536, 262'144};
  o.frame_bytes = frames[random.below(5)];
  if (o.frame_bytes < 100 && length_max > 3'000) o.frame_bytes = 100;
  o.send_copy_max = random.chance(512) ? 20'000 : 64u << 20;
  sim::draw_reads_and_writes(random, o);
  o.tuning = sim::drawn_tuning(sim::g_seed, r.id);
  sim::draw_lanes(sim::g_seed, r.id, o);
  // Nothing signals an acknowledgement, by which a send is complete then.
  if (g_profile != Profile::kHandlerOnly) sim::draw_resume(sim::g_seed, r.id, o);
  if (g_profile == Profile::kLanes) sim::draw_many_lanes(random, o);
  if (g_profile == Profile::kResume) sim::always_resume(o);
  if (g_profile == Profile::kMute) {
    o.stream.keepalive_idle_s = 2;
    o.stream.keepalive_interval_s = 1;
  }
  o.protection = protection;
  if (g_profile == Profile::kJobs) prepare_for_jobs(r, o);
  r.engine =
      std::make_unique<Engine>(sim::sockets_of(world->net(r.id), o.protection, r.protected_net), o);
  if (r.engine->start() != 0) fail("rank %d does not start", r.id);
  r.engine->set_window(kWindow);
  r.channel = std::make_unique<ChannelState>(*r.engine);
  r.channel->wait_policy = {0, 1'000, 50'000};
  bind(r);
  r.pairs.resize(ranks.size());
  MPID_ChannelSetProgress(
      [](void* arg) {
        auto* rank = static_cast<Rank*>(arg);
        alloc_trap::Pardon pardon;
        rank->sim->progress(*rank);
      },
      &r);
  MPID_ChannelSetLost(on_lost, &r);
  MPID_ChannelSetIntroduce(on_introduce, &r);
  r.engine->gate().set_drain(
      [](void* arg) {
        auto* rank = static_cast<Rank*>(arg);
        if (rank->in_handler) {
          rank->sim->run_in_handler(*rank);
          return;
        }
        mplite::ProgressScope scope(*rank->engine, mplite::ProgressMode::all_sockets());
        rank->sim->progress(*rank);
      },
      &r);
  r.engine->set_signal_driven(1, sim::kMainSignal);
  if (random.chance(600)) r.engine->hear_callers(sim::kCallerSignal);
  MPID_ChannelSetOutstanding(random.chance(800));
  r.armed = random.chance(700) || g_profile == Profile::kHandlerOnly;
  if (!r.armed) r.engine->set_signals(false);
}

// ---- the handler, as sigio_driver.cpp runs it ----

void Sim::run_handler(Rank& r, int signo) {
  ChannelState* before = mplite::channel_bound();
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
    } else {
      ++r.turned_away;
    }
  }
  r.in_handler = false;
  mplite::channel_bind(before);
}

void Sim::run_in_handler(Rank& r, bool for_callers) {
  {
    const mplite::ProgressMode mode = r.engine->handler_mode();
    mplite::ProgressScope scope(*r.engine, for_callers ? mode.for_callers() : mode);
    progress(r);
  }
  if (r.engine->more_to_do()) r.self_signal = true;
}

void Sim::progress(Rank& r) {
  alloc_trap::Pardon pardon;
  // Held from taking a packet until it has been acted upon: otherwise a handler that was turned
  // away would act on the next one first.
  mplite::Hold gate(r.engine->gate());
  static std::uint8_t packet[MPID_CONTROL_BYTES_MAX];
  for (;;) {
    if (!lib(r, [] { return MPID_ChannelHeadroom(); })) {
      if (!r.in_handler) {
        if (MPID_ChannelRefill() != 0) fail("refill fails");
        continue;
      }
      break;
    }
    int from = -1, length = 0, more = 1;
    const void* at = packet;
    if (!r.in_handler && random.chance(500)) {
      r.engine->set_repolls(static_cast<int>(random.below(4)));
      length = lib(r, [&] { return MPID_NextControl(&at, packet, &from, &more); });
      if (length == 0) break;
    } else {
      if (!lib(r, [] { return MPID_ControlMsgAvail(); })) break;
      length = lib(r, [&] { return MPID_RecvAnyControl(packet, sizeof packet, &from); });
    }
    const auto* bytes = static_cast<const std::uint8_t*>(at);
    std::vector<std::uint8_t> copy(bytes, bytes + std::min<int>(length, sizeof packet));
    if (more == 0 && lib(r, [] { return MPID_ControlMsgMore(); }) != 0)
      fail("rank %d: a control packet behind one that came alone", r.id);
    on_control(r, named_by(r, from), copy.data(), length);
  }
}

void Sim::on_control(Rank& r, int from, const std::uint8_t* bytes, int length) {
  if (from < 0 || from >= static_cast<int>(ranks.size()) || from == r.id)
    fail("rank %d: control packet from rank %d", r.id, from);
  Pair& p = r.pairs[static_cast<std::size_t>(from)];
  if (p.lost != 0) fail("rank %d: control packet from rank %d, which is lost", r.id, from);
  Talk talk;
  if (!check_content) {
    if (length < static_cast<int>(sizeof talk)) return;
    std::memcpy(&talk, bytes, sizeof talk);
    if (talk.say == Say::kEnvelope && talk.a >= sent_by(from, r).channel_lengths.size()) return;
    if (talk.say == Say::kCts && talk.a >= p.sent().transfer_lengths.size()) return;
    if (talk.say == Say::kRts && talk.b > 4 * length_max) return;
    ++p.control_got;
  } else {
    if (length < static_cast<int>(sizeof talk))
      fail("rank %d: control packet of %d bytes from rank %d", r.id, length, from);
    std::memcpy(&talk, bytes, sizeof talk);
    if (p.heard < 0 && talk.meeting > p.heard_before) p.heard = talk.meeting;
    if (talk.meeting != p.heard)
      fail("rank %d: control packet of meeting %d from rank %d in meeting %d (%d before)", r.id,
           talk.meeting, from, p.heard, p.heard_before);
    if (talk.sequence != p.control_got)
      fail("rank %d: control packet %llu from rank %d where %llu is due", r.id,
           static_cast<unsigned long long>(talk.sequence), from,
           static_cast<unsigned long long>(p.control_got));
    if (static_cast<int>(talk.length) != length)
      fail("rank %d: control packet of %d bytes from rank %d, sent with %u", r.id, length, from,
           talk.length);
    const std::uint64_t key =
        key_of(kControlKind, from, r.id, talk.sequence, static_cast<std::size_t>(p.heard));
    const std::size_t right = right_bytes(bytes + sizeof talk, talk.length - sizeof talk, key);
    if (right != talk.length - sizeof talk)
      fail("rank %d: byte %zu of control packet %llu from rank %d is wrong", r.id,
           right + sizeof talk, static_cast<unsigned long long>(talk.sequence), from);
    ++p.control_got;
  }
  switch (talk.say) {
    case Say::kPlain:
      // An answer of any length, also from the handler, where it cannot go to the heap. `a` tells
      // an answer, so that it ends.
      if (talk.a == 0 && !winding_down && random.chance(100))
        say(r, from, Say::kPlain, 1, 0, random.length(control_max));
      break;
    case Say::kEnvelope:
      ++p.channel_announced;
      if (p.channel_posted < p.channel_announced &&
          (random.chance(700) || g_profile == Profile::kHandlerOnly))
        post_channel(r, from);
      break;
    case Say::kRts: {
      auto op = std::make_unique<Op>();
      op->rank = &r;
      op->peer = from;
      op->receive = true;
      op->kind = kTransferKind;
      op->number = talk.a;
      op->room = random.chance(800) ? talk.b : random.below(talk.b * 2 + 1);
      op->by_callback = random.chance(600) || g_profile == Profile::kHandlerOnly;
      op->buffer.assign(op->room + 16, kUntouched);
      const int rc = lib(r, [&] {
        return MPID_CreateRecvTransfer(op->buffer.data(), op->room, number_of(r, from),
                                       &op->transfer);
      });
      if (rc < 0) {
        check_call(r, from, rc, "MPID_CreateRecvTransfer");
        break;
      }
      if (op->transfer == 0) fail("rank %d: transfer id 0", r.id);
      Op* kept = op.get();
      r.ops.push_back(std::move(op));
      const bool now = random.chance(800) || g_profile == Profile::kHandlerOnly;
      if (now) start_transfer_receive(*kept);
      const MPID_TransferId id = kept->transfer;
      say(r, from, Say::kCts, talk.a, id, kInlinePacket - sizeof(Talk));
      break;
    }
    case Say::kCts: send_transfer(r, from, talk.a, talk.b); break;
    default:
      if (check_content) fail("rank %d: unknown packet", r.id);
  }
}

void Sim::check_call(Rank& r, int peer, std::int64_t rc, const char* call) {
  if (rc >= 0) return;
  if (rc == -ENOBUFS && r.in_handler)
    fail("rank %d: %s gives ENOBUFS in the handler after headroom", r.id, call);
  if (number_of(r, peer) < 0)
    fail("rank %d: %s towards rank %d gives %s, and its number is not its own any more", r.id, call,
         peer, strerror(static_cast<int>(-rc)));
  if (!may_lose(r, peer))
    fail("rank %d: %s towards rank %d gives %s", r.id, call, peer, strerror(static_cast<int>(-rc)));
  if (!lib(r, [&] { return MPID_ChannelPeerError(number_of(r, peer)); }) && rc != -ENOBUFS)
    fail("rank %d: %s towards rank %d gives %s, but the peer is not lost", r.id, call, peer,
         strerror(static_cast<int>(-rc)));
}

int Sim::say(Rank& r, int to, Say what, std::uint64_t a, std::uint64_t b, std::uint64_t filler) {
  // As MPID_SendControlInPlace wants it. Until the result is judged: who lets go of the gate
  // drains, and a process of another job that the call has lost may be met again there.
  mplite::Hold gate(r.engine->gate());
  Pair& p = r.pairs[static_cast<std::size_t>(to)];
  const std::size_t meeting = p.meetings.size() - 1;
  const int number = number_of(r, to);
  std::vector<std::uint8_t> packet(sizeof(Talk) + filler);
  Talk talk = {what,
               static_cast<std::uint16_t>(meeting),
               static_cast<std::uint32_t>(packet.size()),
               p.sent().control,
               a,
               b};
  const std::uint64_t key = key_of(kControlKind, r.id, to, talk.sequence, meeting);
  fill(packet.data() + sizeof talk, filler, key);
  std::memcpy(packet.data(), &talk, sizeof talk);
  ++p.sent().control;  // before: the call may run callbacks that say more
  const bool in_place = !r.in_handler && random.chance(300), split = random.chance(300);
  const std::size_t head = split ? sizeof(Talk) + random.below(filler + 1) : packet.size();
  if (in_place) packet.insert(packet.begin(), MPID_CONTROL_HEAD, 0xee);
  const int rc = lib(r, [&] {
    const int rest = in_place ? static_cast<int>(packet.size() - MPID_CONTROL_HEAD - head) : 0;
    return in_place
               ? MPID_SendControlInPlace(packet.data() + MPID_CONTROL_HEAD, static_cast<int>(head),
                                         packet.data() + MPID_CONTROL_HEAD + head, rest, number)
           : split
               ? MPID_SendControlData(packet.data(), static_cast<int>(head), packet.data() + head,
                                      static_cast<int>(packet.size() - head), number)
               : MPID_SendControl(packet.data(), static_cast<int>(packet.size()), number);
  });
  check_call(r, to, rc, "MPID_SendControl");
  return rc;
}

void Sim::finish_op(Op& op, std::int64_t result) {
  Rank& r = *op.rank;
  if (op.done) fail("rank %d: an operation completes twice", r.id);
  if (op.cancelled) fail("rank %d: a cancelled transfer completes", r.id);
  op.done = true;
  Pair& p = r.pairs[static_cast<std::size_t>(op.peer)];
  if (result < 0) {
    // ECANCELED: the engine went away under it
    if (!(may_lose(r, op.peer) || !r.alive))
      fail("rank %d: an operation with rank %d fails: %s", r.id, op.peer,
           strerror(static_cast<int>(-result)));
    if (r.alive && MPID_ChannelPeerError(number_of(r, op.peer)) == 0)
      fail("rank %d: an operation with rank %d fails (%s), but the peer is not lost", r.id, op.peer,
           strerror(static_cast<int>(-result)));
    std::vector<std::uint8_t>().swap(op.buffer);
    return;
  }
  if (op.receive) {
    const Sent& theirs = sent_by(op.peer, r);
    const auto& lengths =
        op.kind == kChannelKind ? theirs.channel_lengths : theirs.transfer_lengths;
    if (op.kind == kChannelKind)
      ++p.channel_got;
    else
      ++p.transfers_got;
    if (check_content) {
      if (op.number >= lengths.size())
        fail("rank %d: message %llu from rank %d was never sent", r.id,
             static_cast<unsigned long long>(op.number), op.peer);
      const std::uint64_t length = lengths[op.number];
      if (static_cast<std::uint64_t>(result) != length)
        fail("rank %d: message of kind %d number %llu from rank %d has %lld bytes, sent with %llu",
             r.id, op.kind, static_cast<unsigned long long>(op.number), op.peer,
             static_cast<long long>(result), static_cast<unsigned long long>(length));
      const std::size_t right =
          right_bytes(op.buffer, std::min(length, op.room),
                      key_of(op.kind, op.peer, r.id, op.number, static_cast<std::size_t>(p.heard)));
      if (right != op.buffer.size())
        fail(
            "rank %d: byte %zu of message kind %d number %llu from rank %d (length %llu, room "
            "%llu) is wrong",
            r.id, right, op.kind, static_cast<unsigned long long>(op.number), op.peer,
            static_cast<unsigned long long>(length), static_cast<unsigned long long>(op.room));
    }
  } else {
    if (!op.buffer.empty())
      std::memset(op.buffer.data(), 0xdd,
                  op.buffer.size());  // a late read by the engine shows as wrong content
  }
  std::vector<std::uint8_t>().swap(op.buffer);
}

void Sim::on_done(void* arg, std::int64_t result) {
  alloc_trap::Pardon pardon;
  auto* op = static_cast<Op*>(arg);
  op->rank->sim->finish_op(*op, result);
}

void Sim::on_lost(void* arg, int number, int error) {
  alloc_trap::Pardon pardon;
  auto* r = static_cast<Rank*>(arg);
  Sim& s = *r->sim;
  const int peer = s.named_by(*r, number);
  if (g_verbose) std::fprintf(stderr, "rank %d loses rank %d: %s\n", r->id, peer, strerror(error));
  if (!s.may_lose(*r, peer)) fail("rank %d loses rank %d: %s", r->id, peer, strerror(error));
  Pair& p = r->pairs[static_cast<std::size_t>(peer)];
  if (p.lost != 0) fail("rank %d is told twice that rank %d is lost", r->id, peer);
  if (error <= 0) fail("rank %d loses rank %d with errno %d", r->id, peer, error);
  p.lost = error;
  if (s.is_foreign(*r, peer)) s.check_foreign_loss(*r, peer, number);
  for (const auto& op : r->ops)
    if (op->peer == peer && op->registered && !op->done && !op->cancelled)
      fail("rank %d: rank %d is lost and an operation on it did not complete", r->id, peer);
}

void Sim::send_channel(Rank& r, int to, bool may_block) {
  Pair& p = r.pairs[static_cast<std::size_t>(to)];
  auto op = std::make_unique<Op>();
  op->rank = &r;
  op->peer = to;
  op->kind = kChannelKind;
  op->number = p.sent().channel_lengths.size();
  const int number = number_of(r, to);
  const std::uint64_t length = random.length(length_max);
  op->buffer.resize(length);
  fill(op->buffer.data(), length,
       key_of(kChannelKind, r.id, to, op->number, p.meetings.size() - 1));
  op->by_callback = random.chance(600) || g_profile == Profile::kHandlerOnly;
  p.sent().channel_lengths.push_back(length);
  // Both leave before anything else can: in real use the gate is held over the two.
  mplite::Hold gate(r.engine->gate());
  const bool held = random.chance(600);
  if (held) MPID_ChannelHold(number);
  int rc = say(r, to, Say::kEnvelope, op->number, length, random.below(64));
  if (rc >= 0) {
    if (may_block && random.chance(300)) {
      if (held) MPID_ChannelRelease(number);
      r.blocked = true;
      r.blocked_by = to;
      r.engine->gate().leave();  // a call that waits is made with the gate open
      rc = MPID_SendChannel(op->buffer.data(), length, number);
      r.engine->gate().enter();
      r.blocked = false;
      r.blocked_by = -1;
      check_call(r, to, rc, "MPID_SendChannel");
      if (length > 0) std::memset(op->buffer.data(), 0xdd, length);
      return;
    }
    Op* kept = op.get();
    r.ops.push_back(std::move(op));
    rc = MPID_ISendChannel(kept->buffer.data(), length, number, &kept->id);
    check_call(r, to, rc, "MPID_ISendChannel");
    if (rc < 0)
      kept->done = true;
    else if (kept->id == 0)
      finish_op(*kept, 0);
    else if (kept->by_callback)
      watch(*kept);
  }
  if (held) MPID_ChannelRelease(number);
}

void Sim::post_channel(Rank& r, int from) {
  Pair& p = r.pairs[static_cast<std::size_t>(from)];
  if (p.lost != 0) return;
  const Sent& theirs = sent_by(from, r);
  auto op = std::make_unique<Op>();
  op->rank = &r;
  op->peer = from;
  op->receive = true;
  op->kind = kChannelKind;
  op->number = p.channel_posted;
  const std::uint64_t known =
      op->number < theirs.channel_lengths.size() ? theirs.channel_lengths[op->number] : length_max;
  op->room = random.chance(800) ? known : random.below(known * 2 + 1);
  op->buffer.assign(op->room + 16, kUntouched);
  op->by_callback = random.chance(600) || g_profile == Profile::kHandlerOnly;
  op->started = true;
  ++p.channel_posted;
  Op* kept = op.get();
  r.ops.push_back(std::move(op));
  const int rc = lib(r, [&] {
    return MPID_IRecvFromChannel(kept->buffer.data(), kept->room, number_of(r, from), &kept->id);
  });
  check_call(r, from, rc, "MPID_IRecvFromChannel");
  if (rc < 0) {
    kept->done = true;
  } else if (kept->by_callback) {
    watch(*kept);
  }
}

void Sim::watch(Op& op) {
  op.registered = true;
  lib(*op.rank, [&] {
    MPID_OnComplete(op.id, on_done, &op);
    return 0;
  });
}

void Sim::start_transfer_receive(Op& op) {
  Rank& r = *op.rank;
  op.started = true;
  // Here and nowhere before is the buffer known: a piece that came early must wait.
  const int rc = lib(r, [&] {
    return MPID_StartNBRecvTransfer(op.buffer.data(), op.room, number_of(r, op.peer), op.transfer,
                                    &op.id);
  });
  check_call(r, op.peer, rc, "MPID_StartNBRecvTransfer");
  if (rc < 0)
    op.done = true;
  else if (op.by_callback)
    watch(op);
}

void Sim::send_transfer(Rank& r, int to, std::uint64_t token, MPID_TransferId id) {
  Pair& p = r.pairs[static_cast<std::size_t>(to)];
  if (token >= p.sent().transfer_lengths.size())
    fail("rank %d: CTS for a transfer that was never offered", r.id);
  auto op = std::make_unique<Op>();
  op->rank = &r;
  op->peer = to;
  op->kind = kTransferKind;
  op->number = token;
  op->buffer.resize(p.sent().transfer_lengths[token]);
  fill(op->buffer.data(), op->buffer.size(),
       key_of(kTransferKind, r.id, to, token, p.meetings.size() - 1));
  op->by_callback = random.chance(600) || g_profile == Profile::kHandlerOnly;
  Op* kept = op.get();
  r.ops.push_back(std::move(op));
  const int rc = lib(r, [&] {
    return MPID_StartNBSendTransfer(kept->buffer.data(), kept->buffer.size(), number_of(r, to), id,
                                    &kept->id);
  });
  check_call(r, to, rc, "MPID_StartNBSendTransfer");
  if (rc < 0)
    kept->done = true;
  else if (kept->id == 0)
    finish_op(*kept, 0);
  else if (kept->by_callback)
    watch(*kept);
}

void Sim::cancel_some(Rank& r) {
  for (std::size_t i = 0; i < r.ops.size(); ++i) {
    Op* op = r.ops[i].get();  // the list may grow under us: a call lets a handler's work in
    if (op->kind != kTransferKind || !op->receive || op->done || op->cancelled ||
        op->transfer == 0 || !random.chance(200))
      continue;
    MPID_CancelRecvTransfer(op->transfer, op->id);
    op->cancelled = true;
    ++r.pairs[static_cast<std::size_t>(op->peer)].transfers_got;
    std::vector<std::uint8_t>().swap(op->buffer);  // late data would land in freed memory
    // Stale ids are harmless.
    if (MPID_TestNBRecvTransfer(op->transfer) != -EINVAL)
      fail("rank %d: the id of a cancelled transfer is still known", r.id);
    MPID_ChannelId again = 0;
    if (MPID_StartNBRecvTransfer(nullptr, 0, number_of(r, op->peer), op->transfer, &again) !=
        -EINVAL)
      fail("rank %d: a cancelled transfer can be started", r.id);
    return;
  }
}

void Sim::test_ops(Rank& r) {
  for (std::size_t i = 0; i < r.ops.size(); ++i) {
    Op& op = *r.ops[i];
    if (op.done || op.cancelled) continue;
    if (op.kind == kTransferKind && op.receive && !op.started) {
      if (winding_down || random.chance(300)) start_transfer_receive(op);
      continue;
    }
    if (op.by_callback || op.id == 0) continue;
    if (!winding_down && random.chance(500)) continue;
    const int rc = !op.receive               ? MPID_TSendChannel(op.id)
                   : op.kind == kChannelKind ? MPID_RecvStatus(op.id)
                                             : MPID_TestNBRecvTransfer(op.id);
    if (rc == 0) continue;
    if (rc < 0) {
      finish_op(op, rc);
      continue;
    }
    std::int64_t result = 0;
    if (op.receive)
      result = op.kind == kChannelKind ? MPID_WRecvFromChannel(op.id)
                                       : MPID_EndNBRecvTransfer(op.transfer, op.id);
    finish_op(op, result);
    const int stale = op.receive ? MPID_RecvStatus(op.id) : MPID_TSendChannel(op.id);
    if (stale != -EINVAL)
      fail("rank %d: the id of an ended operation is still known (%d)", r.id, stale);
  }
  // Finished ones go, now and then, so that callbacks' pointers stay while they may be used.
  if (r.ops.size() > 64)
    std::erase_if(r.ops, [](const std::unique_ptr<Op>& op) { return op->done || op->cancelled; });
}

void Sim::step_ordinary(Rank& r) {
  if (!r.alive) return;
  bind(r);
  if (MPID_ChannelRefill() != 0) fail("refill fails");
  progress(r);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Pair& p = r.pairs[i];
    while (p.lost == 0 && p.channel_posted < p.channel_announced &&
           (winding_down || random.chance(500)))
      post_channel(r, static_cast<int>(i));
  }
  test_ops(r);
}

void Sim::act(Rank& r, bool may_block) {
  bind(r);
  if (g_profile != Profile::kHandlerOnly && random.chance(20))
    sim::switch_signals(r, [&] { progress(r); });
  int to = static_cast<int>(random.below(ranks.size()));
  if (to == r.id) to = (to + 1) % static_cast<int>(ranks.size());
  if (g_profile == Profile::kJobs) {
    if (r.leaving > 0) return step_ordinary(r);
    if (random.chance(150)) return act_between_jobs(r);
    if (!may_talk(r, to)) return step_ordinary(r);
    if (r.pairs[static_cast<std::size_t>(to)].lost != 0 && is_foreign(r, to) && random.chance(300))
      return connect(r, to);
  }
  Pair& p = r.pairs[static_cast<std::size_t>(to)];
  const int number = number_of(r, to);
  // Nobody may be there who takes it.
  if (is_foreign(r, to) && p.heard < 0) may_block = false;
  switch (random.below(12)) {
    case 0:
    case 1:
      if (p.lost == 0) say(r, to, Say::kPlain, 0, 0, random.length(control_max));
      break;
    case 2:
    case 3:
      if (p.lost == 0) send_channel(r, to, may_block);
      break;
    case 4:
    case 5:
      if (p.lost == 0) {
        auto& lengths = p.sent().transfer_lengths;
        lengths.push_back(random.length(length_max));
        say(r, to, Say::kRts, lengths.size() - 1, lengths.back(), random.below(100));
      }
      break;
    case 6:
      if (g_profile != Profile::kHandlerOnly) cancel_some(r);
      break;
    case 7: MPID_ChannelPrefer(number); break;
    case 8:  // receives ahead of their envelopes
      if (p.lost == 0 && p.channel_posted < p.channel_announced + 3) post_channel(r, to);
      break;
    case 9:
      if (random.chance(100)) MPID_ChannelSetOutstanding(random.chance(700));
      MPID_ChannelWait(static_cast<std::int64_t>(random.below(20'000)));
      break;
    case 10:  // several packets in one system call
      if (p.lost == 0) {
        mplite::Hold gate(r.engine->gate());
        MPID_ChannelHold(number);
        for (std::uint64_t n = random.below(12); n > 0 && p.lost == 0; --n)
          say(r, to, Say::kPlain, 0, 0, random.below(std::min<std::uint64_t>(control_max, 400)));
        MPID_ChannelRelease(number);
      }
      break;
    default: step_ordinary(r);
  }
  if (p.lost != 0 && random.chance(50)) {  // a lost peer stays lost and says so
    mplite::Hold gate(r.engine->gate());
    // Or its number has begun anew, where the gate was let go of in between.
    if (number_of(r, to) != number) return;
    Talk talk = {Say::kPlain, 0, sizeof(Talk), 0, 0, 0};
    if (MPID_SendControl(&talk, sizeof talk, number) >= 0)
      fail("rank %d: a lost peer takes a packet", r.id);
    MPID_ChannelId id = 0;
    if (MPID_IRecvFromChannel(&talk, sizeof talk, number, &id) >= 0)
      fail("rank %d: a receive from a lost peer can be posted", r.id);
    if (MPID_SendChannel(&talk, sizeof talk, number) >= 0)
      fail("rank %d: a lost peer takes a channel message", r.id);
  }
}

void Sim::stranger() {
  const int host = static_cast<int>(random.below(ranks.size()));
  std::uint8_t bytes[256];
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random.next());
  if (random.chance(500) && !strangers.empty()) {
    const int fd = strangers[random.below(strangers.size())];
    if (random.chance(300))
      world->stranger_close(fd);
    else
      world->stranger_write(fd, bytes, random.below(100));
    return;
  }
  const int fd = world->stranger_connect(host);
  if (random.chance(500)) {  // looks right for a while
    mplite::Hello hello = {};
    hello.magic = mplite::kHelloMagic;
    hello.version = mplite::kWireVersion;
    hello.kind = random.chance(700) ? mplite::HelloKind::kHello : mplite::HelloKind::kProof;
    hello.from = static_cast<std::uint32_t>(random.below(ranks.size() + 1));
    hello.to = random.chance(900) ? static_cast<std::uint32_t>(host) : 0;
    std::memcpy(bytes, &hello, sizeof hello);
  }
  world->stranger_write(fd, bytes, random.below(200));
  strangers.push_back(fd);
}

void Sim::kill(Rank& r) {
  if (g_verbose) std::fprintf(stderr, "rank %d dies\n", r.id);
  r.alive = false;
  bind(r);
  r.engine.reset();
  r.channel.reset();
  mplite::channel_bind(nullptr);
  world->kill(r.id);
}

void Sim::trouble() {
  switch (g_profile) {
    case Profile::kKill:
      if (random.chance(5)) {
        Rank& r = ranks[random.below(ranks.size())];
        int alive = 0;
        for (const Rank& each : ranks) alive += each.alive ? 1 : 0;
        if (r.alive && !r.blocked && alive > 1) kill(r);
      }
      break;
    case Profile::kStrangers:
      if (random.chance(200)) stranger();
      break;
    case Profile::kMute:
      if (random.chance(3))
        world->mute(static_cast<int>(random.below(ranks.size())),
                    static_cast<int>(random.below(ranks.size())));
      break;
    case Profile::kLanes:
      if (random.chance(30)) {
        Rank& a = ranks[random.below(ranks.size())];
        Rank& b = ranks[random.below(ranks.size())];
        sim::break_a_lane(random, *world, a.id, b.id, *a.engine, *b.engine);
      }
      break;
    case Profile::kResume:
      if (random.chance(20))
        sim::break_some(random, *world, static_cast<int>(random.below(ranks.size())),
                        static_cast<int>(random.below(ranks.size())));
      break;
    case Profile::kReset:
      if (random.chance(3))
        world->cut(static_cast<int>(random.below(ranks.size())),
                   static_cast<int>(random.below(ranks.size())));
      break;
    case Profile::kJobs: jobs_come_and_go(); break;
    default: break;
  }
}

// Everything that was sent has arrived, or its pair is lost; nothing is under way.
bool Sim::quiet(std::string* why) {
  char text[200];
  for (Rank& r : ranks) {
    if (!r.alive) continue;
    bind(r);
    for (Rank& other : ranks) {
      if (&other == &r || other.pairs.empty()) continue;
      if (std::string unknown; g_profile == Profile::kJobs && !knows_all_of(r, other, unknown)) {
        if (why != nullptr) *why = unknown;
        return false;
      }
      const Pair& mine = r.pairs[static_cast<std::size_t>(other.id)];
      const Pair& pair = other.pairs[static_cast<std::size_t>(r.id)];
      const Sent& theirs = pair.sent();
      const bool connected = number_of(r, other.id) >= 0 && number_of(other, r.id) >= 0;
      const bool whole =
          connected && mine.lost == 0 && pair.lost == 0 && other.alive && check_content;
      if (whole && (mine.control_got != theirs.control ||
                    mine.channel_got != theirs.channel_lengths.size() ||
                    mine.transfers_got != theirs.transfer_lengths.size())) {
        std::snprintf(
            text, sizeof text,
            "rank %d has from rank %d %llu of %llu control packets, %llu of %zu channel messages, "
            "%llu of %zu transfers",
            r.id, other.id, static_cast<unsigned long long>(mine.control_got),
            static_cast<unsigned long long>(theirs.control),
            static_cast<unsigned long long>(mine.channel_got), theirs.channel_lengths.size(),
            static_cast<unsigned long long>(mine.transfers_got), theirs.transfer_lengths.size());
        if (why != nullptr) *why = text;
        return false;
      }
    }
    for (const auto& op : r.ops) {
      if (op->done || op->cancelled) continue;
      const Pair& mine = r.pairs[static_cast<std::size_t>(op->peer)];
      const Rank& other = ranks[static_cast<std::size_t>(op->peer)];
      const Pair& theirs = other.pairs[static_cast<std::size_t>(r.id)];
      // A receive posted ahead of a message that nobody sends, or from whom nobody hears any more,
      // stays; a send does not.
      const bool ahead =
          op->receive && mine.lost == 0 &&
          (op->kind == kChannelKind && op->number >= theirs.sent().channel_lengths.size());
      const bool limbo =
          op->receive && mine.lost == 0 &&
          (theirs.lost != 0 || !other.alive || !check_content || number_of(other, r.id) < 0);
      if (ahead || limbo) continue;
      std::snprintf(text, sizeof text,
                    "rank %d: %s of kind %d number %llu with rank %d is not complete (lost here "
                    "%d, there %d)",
                    r.id, op->receive ? "receive" : "send", op->kind,
                    static_cast<unsigned long long>(op->number), op->peer, mine.lost, theirs.lost);
      if (why != nullptr) *why = text;
      return false;
    }
    if (MPID_ChannelQueued() != 0) {
      std::snprintf(text, sizeof text, "rank %d has %llu frames queued", r.id,
                    static_cast<unsigned long long>(MPID_ChannelQueued()));
      if (why != nullptr) *why = text;
      return false;
    }
  }
  return true;
}

void Sim::drain() {
  std::string why;
  winding_down = true;
  world->calm();
  if (g_profile == Profile::kHandlerOnly) {
    // As on the way out of the library: one look at everything, then only signals drive it.
    for (Rank& r : ranks) {
      bind(r);
      mplite::Hold gate(r.engine->gate());
      r.engine->refill();
      mplite::ProgressScope scope(*r.engine, mplite::ProgressMode::all_sockets());
      step_ordinary(r);
    }
    std::uint64_t moved = 0;
    for (int still = 0; still < 5'000;
         ++still) {  // as long as bytes move it may take its time: some pipes are narrow
      std::uint64_t now_moved = 0;
      for (Rank& r : ranks) now_moved += r.engine->counters().bytes_in;
      if (now_moved != moved) still = 0;
      moved = now_moved;
      bool any = false;
      for (Rank& r : ranks) {
        bind(r);
        const bool called = world->signal_pending(r.id, sim::kCallerSignal);
        if (called || world->signal_pending(r.id) || r.self_signal) {
          run_handler(r, called ? sim::kCallerSignal : sim::kMainSignal);
          any = true;
        }
        bind(r);
        if (!MPID_ChannelHeadroom())
          step_ordinary(r);  // out of pool: that waits for ordinary context
      }
      if (!any && quiet(nullptr)) return;
      if (!any) world->skip(50'000'000);
    }
    quiet(&why);
    if (g_verbose) world->dump();
    fail("signals alone do not finish it: %s", why.c_str());
  }
  int quiet_turns = 0;
  // A waiting engine looks for silent peers every 16 x 4096 polls.
  const bool settled = sim::settle(*world, ranks, 100'000, [&](int turn) {
    if (g_profile == Profile::kJobs) answer_all();
    for (Rank& r : ranks) step_ordinary(r);
    if (g_profile == Profile::kCorrupt && turn == 3'000)
      sim::part_all(*world, static_cast<int>(ranks.size()));
    quiet_turns = quiet(nullptr) ? quiet_turns + 1 : 0;
    return quiet_turns > 20;
  });
  if (!settled) {
    quiet(&why);
    if (g_verbose) world->dump();
    fail("does not drain: %s", why.c_str());
  }
}

void Sim::run() {
  for (std::uint64_t i = 0; i < actions; ++i) {
    Rank& r = ranks[random.below(ranks.size())];
    trouble();
    if (r.alive && !r.blocked)
      act(r, check_content);  // a changed stream may keep a call that waits waiting for ever
    if (random.chance(50)) world->skip(100'000);
  }
  drain();
  if (g_profile == Profile::kJobs) hear_goodbyes();
  std::uint64_t signals = 0, away = 0;
  for (Rank& r : ranks) {
    signals += r.handler_runs;
    away += r.turned_away;
    if (!r.alive) continue;
    bind(r);
    // What stands in the pool is what the workload still holds.
    std::uint64_t held = 0;
    for (const auto& op : r.ops)
      if (!op->done && !op->cancelled) ++held;
    if (r.channel->ops.used_count() != held)
      fail("rank %d: %u channel operations in use, %llu known", r.id, r.channel->ops.used_count(),
           static_cast<unsigned long long>(held));
    r.alive = false;
    r.engine.reset();
    if (world->open_sockets(r.id) > 0)
      fail("rank %d leaves %llu sockets open", r.id,
           static_cast<unsigned long long>(world->open_sockets(r.id)));
    r.channel.reset();
  }
  mplite::channel_bind(nullptr);
  if (g_verbose)
    std::fprintf(
        stderr, "seed %llu %s: %zu ranks, %llu actions, %llu handler runs, %llu turned away\n",
        sim::g_seed, sim::g_profile_name, ranks.size(), static_cast<unsigned long long>(actions),
        static_cast<unsigned long long>(signals), static_cast<unsigned long long>(away));
}

}  // namespace engine_sim

int main(int argc, char** argv) {
  using namespace engine_sim;
  return sim::drive(argc, argv, "engine_sim", kProfileNames,
                    [](std::uint64_t seed, std::size_t profile) {
                      g_profile = static_cast<Profile>(profile);
                      Sim one(seed * 16 + profile);
                      one.run();
                    },
                    {{30041010, "jobs"}, {1282, "jobs"}});
}
