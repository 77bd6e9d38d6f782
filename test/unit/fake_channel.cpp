// channel.h without an engine; see fake_channel.h.
#include "fake_channel.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ch_lite/ch_lite.h"

namespace fake {
namespace {

World* g_world = nullptr;

Rank& me() { return *g_world->ranks[static_cast<std::size_t>(g_world->current)]; }
bool sometimes() { return g_world->lazy && g_world->random() % 3 == 0; }

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "fake channel: %s\n", what);
  std::abort();
}

// Must be the last thing done with the operation.
void finish(Rank& r, MPID_ChannelId id, std::int64_t result) {
  auto at = r.ops.find(id);
  if (at == r.ops.end()) return;
  ++g_world->moved;
  at->second.done = true;
  at->second.result = result;
  if (at->second.on_complete == nullptr) return;
  const Op op = at->second;
  r.ops.erase(at);
  op.on_complete(op.arg, result);
}

// Queued bulk leaves: the bytes are read from the sender's buffer only now.
void drain_bulk(Rank& r, int dest) {
  auto& queue = r.bulk_out[dest];
  while (!queue.empty() && !g_world->hold_bulk && !sometimes()) {
    const MPID_ChannelId id = queue.front();
    queue.pop_front();
    const Op& op = r.ops.at(id);
    Frame frame{op.kind, op.transfer, std::vector<std::uint8_t>(op.size), 0};
    copy(frame.data.data(), op.memory, op.size);
    std::fill_n(frame.data.begin(), op.from, std::uint8_t{0xcc});  // not on the wire
    g_world->wire[{g_world->current, dest}].push_back(std::move(frame));
    finish(r, id, 0);
  }
}

// True: the frame at the head is finished with.
bool deliver(Rank& r, int from, Frame& frame) {
  if (frame.kind == Kind::kControl) {
    for (const auto& waiting : r.ready)
      if (waiting.from == from) return false;
    r.ready.push_back({from, std::move(frame.data)});
    ++g_world->moved;
    return true;
  }
  if (frame.op == 0) {
    if (frame.kind == Kind::kChannel) {
      auto& posted = r.posted[from];
      if (posted.empty()) return false;  // parked
      frame.op = posted.front();
      posted.pop_front();
    } else {
      const auto at = r.ops.find(frame.id);
      if (at == r.ops.end()) return true;  // withdrawn
      if (at->second.peer != from) broken("a transfer from somebody else");
      frame.op = frame.id;
    }
    ++g_world->moved;
    if (sometimes()) return false;  // begun, not all there
  }
  const auto at = r.ops.find(frame.op);
  if (at != r.ops.end()) {
    const std::size_t n = std::min<std::size_t>(at->second.size, frame.data.size());
    const std::size_t done = std::min<std::size_t>(at->second.from, n);
    if (at->second.memory.pieces == nullptr) {
      if (n > done)
        std::memcpy(at->second.memory.buffer + done, frame.data.data() + done, n - done);
    } else {
      mplite::IovCursor pieces{at->second.memory.pieces};
      pieces.skip(done);
      pieces.scatter(frame.data.data() + done, n - done);
    }
  }
  const MPID_ChannelId op = frame.op;
  const auto length = static_cast<std::int64_t>(frame.data.size());
  finish(r, op, length);
  return true;
}

void pull(Rank& r, int from) {
  if (r.error.count(from) != 0) return;
  // By handle, not by reference: finishing an operation may call back into the channel.
  const std::pair<int, int> key{from, g_world->current};
  while (!g_world->wire[key].empty() && !sometimes()) {
    Frame frame = std::move(g_world->wire[key].front());
    g_world->wire[key].pop_front();
    if (!deliver(r, from, frame)) {
      g_world->wire[key].push_front(std::move(frame));
      return;
    }
  }
}

void poll() {
  Rank& r = me();
  for (int i = 0; i < g_world->size(); ++i) {
    if (r.holds == 0) drain_bulk(r, i);
    pull(r, i);
  }
}

MPID_ChannelId make(Kind kind, bool receive, int peer, const mplite::Memory& memory,
                    std::size_t size) {
  Rank& r = me();
  const MPID_ChannelId id = r.next_id++ << 8 | static_cast<unsigned>(g_world->current);
  r.ops[id] = Op{kind, receive, peer, memory, size};
  return id;
}

int start_send(Kind kind, const mplite::Memory& memory, std::size_t size, int dest,
               std::uint64_t transfer, MPID_ChannelId* out, std::size_t from = 0) {
  Rank& r = me();
  *out = 0;
  if (r.error.count(dest) != 0) return -r.error[dest];
  const MPID_ChannelId id = make(kind, false, dest, memory, size);
  r.ops[id].transfer = transfer;
  r.ops[id].from = from;
  r.bulk_out[dest].push_back(id);
  if (r.holds == 0) drain_bulk(r, dest);
  const auto at = r.ops.find(id);
  if (at != r.ops.end() && at->second.done) r.ops.erase(at);
  *out = r.ops.count(id) != 0 ? id : 0;
  return 0;
}

int post(const mplite::Memory& memory, std::size_t maxsize, int from, MPID_ChannelId* id) {
  Rank& r = me();
  *id = 0;
  if (r.error.count(from) != 0) return -r.error[from];
  if (r.in_handler && sometimes()) return -ENOBUFS;
  *id = make(Kind::kChannel, true, from, memory, maxsize);
  r.posted[from].push_back(*id);
  if (!sometimes()) pull(r, from);  // unparked: perhaps complete before this returns
  return 0;
}

// Bulk behind its envelope: nothing that was asked to leave together leaves in another order.
int send_control(const void* a, int a_bytes, const void* b, int b_bytes, int dest) {
  me().gathered += me().gather ? 1 : 0;
  Rank& r = me();
  if (dest == g_world->current) broken("a control packet to oneself");
  if (a_bytes + b_bytes < 1 || a_bytes + b_bytes > MPID_CONTROL_BYTES_MAX)
    broken("control packet too long");
  if (r.error.count(dest) != 0) return -r.error[dest];
  Frame frame{Kind::kControl, 0, {}, 0};
  frame.data.assign(static_cast<const std::uint8_t*>(a),
                    static_cast<const std::uint8_t*>(a) + a_bytes);
  frame.data.insert(frame.data.end(), static_cast<const std::uint8_t*>(b),
                    static_cast<const std::uint8_t*>(b) + b_bytes);
  g_world->wire[{g_world->current, dest}].push_back(std::move(frame));
  ++g_world->moved;
  return 0;
}

void report(void*, int code, int peer, int error, const char* what) {
  g_world->reports.push_back({code, peer, error, what});
}
void give_up(void* arg, int peer, int error) {
  if (!g_world->keeps_connections)
    g_world->lose(static_cast<int>(reinterpret_cast<std::intptr_t>(arg)), peer, error);
}

}  // namespace

World& world() { return *g_world; }

World::World(int size, unsigned seed) : random(seed) {
  g_world = this;
  for (int i = 0; i < size; ++i) ranks.push_back(std::make_unique<Rank>());
  devices.resize(static_cast<std::size_t>(size));
}

World::~World() {
  ch_lite::device_bind(nullptr);
  devices.clear();
  g_world = nullptr;
}

void World::as(int rank) {
  current = rank;
  ch_lite::device_bind(devices[static_cast<std::size_t>(rank)].get());
}

void World::make_device(int rank, const ch_lite::DeviceOptions& given, int job) {
  ch_lite::DeviceOptions options = given;
  options.rank = rank;
  options.size = job > 0 ? job : size();
  options.hooks.report = report;
  options.hooks.give_up = give_up;
  options.hooks.arg = reinterpret_cast<void*>(static_cast<std::intptr_t>(rank));
  devices[static_cast<std::size_t>(rank)] = std::make_unique<ch_lite::Device>(options);
  as(rank);
  if (!devices[static_cast<std::size_t>(rank)]->start()) broken("device does not start");
}

void World::handler(int rank) {
  as(rank);
  Rank& r = me();
  r.in_handler = true;
  if (!r.gate.try_enter()) broken("the gate was left closed");
  r.progress(r.progress_arg);
  r.gate.leave();
  r.in_handler = false;
}

void World::settle() {
  for (int quiet = 0; quiet < 20;) {
    const std::uint64_t before = moved;
    for (int i = 0; i < size(); ++i) {
      as(i);
      lite_progress();
    }
    quiet = moved == before ? quiet + 1 : 0;
  }
}

void World::lose(int rank, int peer, int error) {
  Rank& r = *ranks[static_cast<std::size_t>(rank)];
  if (r.error.count(peer) != 0) return;
  r.error[peer] = error;
  const int before = current;
  current = rank;
  r.ready.erase(std::remove_if(r.ready.begin(), r.ready.end(),
                               [&](const Rank::Ready& x) { return x.from == peer; }),
                r.ready.end());
  r.posted[peer].clear();
  r.bulk_out[peer].clear();
  std::vector<MPID_ChannelId> ids;
  for (const auto& [id, op] : r.ops)
    if (op.peer == peer && !op.done) ids.push_back(id);
  r.gate.enter();
  for (const MPID_ChannelId id : ids) finish(r, id, -error);
  if (r.lost != nullptr) r.lost(r.lost_arg, peer, error);
  r.gate.leave();
  current = before;
}

void World::forge(int from, int to, const void* packet, std::size_t bytes) {
  const auto* p = static_cast<const std::uint8_t*>(packet);
  wire[{from, to}].push_back(Frame{Kind::kControl, 0, {p, p + bytes}, 0});
}

}  // namespace fake

using namespace fake;

namespace mplite {
Gate& channel_gate() { return me().gate; }
Counters& channel_counters() { return me().counters; }
}  // namespace mplite

extern "C" {

int MPID_ControlMsgAvail(void) {
  std::fill(me().viewed.begin(), me().viewed.end(),
            0xee);  // who still looks at it shall see something else
  if (me().ready.empty()) poll();
  return !me().ready.empty();
}

int MPID_ControlMsgMore(void) { return MPID_ControlMsgAvail(); }

void MPID_ChannelMove(void) {
  ++me().moves;
  poll();
}

int MPID_NextControl(const void** pkt, void* spare, int* from, int* more) {
  *more = 1;
  return MPID_ControlMsgAvail() != 0 ? MPID_ViewAnyControl(pkt, spare, from) : 0;
}

int MPID_ViewAnyControl(const void** pkt, void*, int* from) {
  Rank& r = me();
  if (r.ready.empty()) broken("ViewAnyControl would wait");
  Rank::Ready packet = std::move(r.ready.front());
  r.ready.pop_front();
  *from = packet.from;
  r.viewed = std::move(packet.data);
  *pkt = r.viewed.data();
  return static_cast<int>(r.viewed.size());
}

int MPID_SendControl(const void* pkt, int size, int dest) {
  return send_control(pkt, size, pkt, 0, dest);
}
int MPID_SendControlData(const void* pkt, int size, const void* data, int bytes, int dest) {
  return send_control(pkt, size, data, bytes, dest);
}
int MPID_SendControlInPlace(void* pkt, int size, const void* data, int bytes, int dest) {
  std::memset(static_cast<std::uint8_t*>(pkt) - MPID_CONTROL_HEAD, 0xee, MPID_CONTROL_HEAD);
  return MPID_SendControlData(pkt, size, data, bytes, dest);
}
int MPID_ISendChannel(const void* buf, size_t size, int dest, MPID_ChannelId* id) {
  return start_send(Kind::kChannel, buf, size, dest, 0, id);
}
// Every other time it is no moment for it.
int MPID_ISendBehind(const void* pkt, int size, const void* buf, size_t bytes, int dest,
                     MPID_ChannelId* id) {
  static bool moment = false;
  moment = !moment;
  if (!moment) return -EAGAIN;
  const int rc = MPID_SendControl(pkt, size, dest);
  return rc < 0 ? rc : MPID_ISendChannel(buf, bytes, dest, id);
}
int MPID_ISendChannelV(const struct iovec* pieces, size_t size, int dest, MPID_ChannelId* id) {
  return start_send(Kind::kChannel, mplite::Memory::in_pieces(pieces), size, dest, 0, id);
}

int MPID_TSendChannel(MPID_ChannelId id) {
  Rank& r = me();
  const auto at = r.ops.find(id);
  if (id == 0) return 1;
  if (at == r.ops.end()) return -EINVAL;
  if (!at->second.done) return 0;
  const auto result = static_cast<int>(at->second.result);
  r.ops.erase(at);
  return result < 0 ? result : 1;
}

int MPID_IRecvFromChannel(void* buf, size_t maxsize, int from, MPID_ChannelId* id) {
  return post(buf, maxsize, from, id);
}
int MPID_IRecvFromChannelV(const struct iovec* pieces, size_t maxsize, int from,
                           MPID_ChannelId* id) {
  return post(mplite::Memory::in_pieces(pieces), maxsize, from, id);
}

// What has arrived of a message is still in its frame here.
int MPID_MoveRecvFromChannel(MPID_ChannelId id, void* buf, const struct iovec* pieces,
                             size_t maxsize) {
  const auto at = me().ops.find(id);
  if (at == me().ops.end() || at->second.done || at->second.kind != Kind::kChannel ||
      !at->second.receive)
    return -EINVAL;
  at->second.memory = pieces != nullptr ? mplite::Memory::in_pieces(pieces) : mplite::Memory(buf);
  at->second.size = maxsize;
  return 0;
}

int MPID_CreateRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId* id) {
  Rank& r = me();
  *id = 0;
  if (r.error.count(partner) != 0) return -r.error[partner];
  *id = make(Kind::kTransfer, true, partner, buf, size);
  return 0;
}

int MPID_StartNBRecvTransfer(void*, size_t, int, MPID_TransferId id, MPID_ChannelId* rid) {
  *rid = id;
  return 0;
}

// Only here, not at its creation, does the transfer learn of pieces.
int MPID_StartNBSendTransfer(const void* buf, size_t size, int partner, MPID_TransferId id,
                             MPID_ChannelId* sid) {
  return start_send(Kind::kTransfer, buf, size, partner, id, sid);
}

int MPID_StartNBSendTransferRest(const void* buf, const struct iovec* pieces, size_t from,
                                 size_t size, int partner, MPID_TransferId id,
                                 MPID_ChannelId* sid) {
  return start_send(Kind::kTransfer,
                    pieces != nullptr ? mplite::Memory::in_pieces(pieces) : mplite::Memory(buf),
                    size, partner, id, sid, from);
}

int MPID_StartNBRecvTransferRest(void* buf, const struct iovec* pieces, size_t from, size_t size,
                                 int, MPID_TransferId id, MPID_ChannelId* rid) {
  Op& op = me().ops.at(id);
  op.memory = pieces != nullptr ? mplite::Memory::in_pieces(pieces) : mplite::Memory(buf);
  op.size = size;
  op.from = from;
  *rid = id;
  return 0;
}

void MPID_CancelRecvTransfer(MPID_TransferId id, MPID_ChannelId) { me().ops.erase(id); }

void MPID_OnComplete(MPID_ChannelId id, void (*done)(void* arg, int64_t result), void* arg) {
  Rank& r = me();
  const auto at = r.ops.find(id);
  if (at == r.ops.end()) return done(arg, -EINVAL);
  at->second.on_complete = done;
  at->second.arg = arg;
  if (at->second.done) finish(r, id, at->second.result);
}

void MPID_ChannelHold(int) { ++me().holds; }
void MPID_ChannelRelease(int dest) {
  if (--me().holds == 0) drain_bulk(me(), dest);
}
void MPID_ChannelPrefer(int) {}
void MPID_ChannelAcknowledge(int) {}
void MPID_ChannelGather(int what) { me().gather = what != MPID_GATHER_NOTHING; }
int MPID_ChannelGathered(void) { return 0; }
void MPID_ChannelFlush(void) {
  me().flushed += me().gathered;
  me().gathered = 0;
}
void MPID_ChannelSetProgress(void (*progress)(void* arg), void* arg) {
  me().progress = progress;
  me().progress_arg = arg;
}
void MPID_ChannelSetLost(void (*lost)(void* arg, int peer, int error), void* arg) {
  me().lost = lost;
  me().lost_arg = arg;
}
void MPID_ChannelSetIntroduce(int (*introduce)(void* arg, int peer, uint32_t window), void* arg) {
  me().introduce = introduce;
  me().introduce_arg = arg;
}
void MPID_ChannelSetAwaited(int (*)(void*, int), void*) {}
int MPID_ChannelDeparted(int peer) { return me().departed.count(peer) != 0; }
int MPID_ChannelSpreads(int peer) { return me().spreads.count(peer) != 0; }
void MPID_ChannelReach(int peer) { me().reached.push_back(peer); }
const char* MPID_ChannelReport(int peer, char* text, size_t size) {
  std::snprintf(text, size, "rank %d on host fake: %s", peer,
                me().bulk_out[peer].empty() ? "connected" : "busy");
  return text;
}
int MPID_ChannelUnderway(int peer) { return me().bulk_out[peer].empty() ? 1 : 2; }
void MPID_ChannelRandom(void* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i)
    static_cast<std::uint8_t*>(bytes)[i] = static_cast<std::uint8_t>(g_world->random());
}
int MPID_ChannelInHandler(void) { return me().in_handler; }
int MPID_ChannelHeadroom(void) { return me().memory && (me().headroom || !me().in_handler); }
void MPID_ChannelStarved(void) {
  if (me().in_handler) me().starved = true;
}
int MPID_ChannelRefill(void) {
  if (me().in_handler) broken("refill in the handler");
  return me().memory ? 0 : -ENOMEM;
}
void MPID_ChannelWait(int64_t) { ++me().waits; }
int MPID_ChannelSetOutstanding(int outstanding) {
  const bool now = outstanding != 0 || MPID_ChannelQueued() != 0;
  me().outstanding_edges += me().outstanding == now ? 0 : 1;
  me().outstanding = now;
  return now ? 1 : 0;
}
uint64_t MPID_ChannelQueued(void) {
  uint64_t n = 0;
  for (const auto& [dest, queue] : me().bulk_out) n += queue.size();
  return n;
}

}  // extern "C"
