// The way out over several connections: what a lane carries next, what it has carried and the
// receiver has not acknowledged, and what goes again.
#include "mplite/engine/tx_queue.h"

#include "mplite/engine/tx_frames.h"

namespace mplite {
namespace {

constexpr int kOpsCounted = 64;  // of transfers that are queued; of more: so many bytes
constexpr std::uint64_t kManyBytes = std::uint64_t{1} << 40;

// What has not got its place on a connection.
std::uint64_t bytes_left(const SendOp* op) {
  std::uint64_t bytes = 0;
  for (int i = 0; op != nullptr; op = op->next, ++i) {
    if (i == kOpsCounted) return kManyBytes;
    bytes += op->total - op->committed;
  }
  return bytes;
}

// It can take a frame at once.
bool is_ready(const Connection* c) {
  return c != nullptr && c->state == ConnectionState::kUp && c->tx.count == 0 && !c->tx.flushing;
}

}  // namespace

// Of which the connection carries something next; null: none. On lane 0 control goes before all,
// and channel messages and transfers take turns.
SendQueue* TxQueue::next_queue(Peer& p, Connection& c) {
  if (c.lane == 0 && p.control.head != nullptr) return &p.control;
  LaneSet* const lanes = p.lanes;
  SendQueue* const bulk = c.lane == 0 && p.bulk.head != nullptr ? &p.bulk : nullptr;
  if (lanes == nullptr) return bulk;
  const bool transfers = (bulk == nullptr || lanes->transfers_next) &&
                         lanes->transfers.head != nullptr && takes_next(p, c);
  if (c.lane == 0) lanes->transfers_next = bulk != nullptr && !transfers;
  return transfers ? &lanes->transfers : bulk;
}

Connection* TxQueue::lane_of(const Peer& p, int number) {
  return number == 0 ? p.connection : p.lanes->lane[number].connection;
}

// Which lane takes the next frame of a transfer; `but`: bits, those that do not. `own` can take
// one: it asks. -1: there is none.
int TxQueue::choose_lane(const Peer& p, unsigned but, const Connection* own) {
  LaneSet& lanes = *p.lanes;
  unsigned ready = 0, busy = 0;
  for (int i = 0; i < lanes.policy.used(); ++i) {
    const Connection* c = lane_of(p, i);
    if (c == nullptr || c->state != ConnectionState::kUp || (but >> i & 1) != 0) continue;
    (c == own || is_ready(c) ? ready : busy) |= 1u << i;
  }
  const SendOp* const op = lanes.transfers.head;
  if (ready == 0 || op == nullptr || !core_.options.tuning.has(Heuristic::kLaneShare) ||
      ((ready | busy) & ((ready | busy) - 1)) == 0)
    return ready == 0 ? -1 : __builtin_ctz(ready);
  for (unsigned left = ready | busy; left != 0; left &= left - 1) {
    const int i = __builtin_ctz(left);
    const Connection& c = *lane_of(p, i);
    const std::int64_t held = core_.net.unacknowledged(c.fd);
    ++core_.counters.other_calls;
    std::uint64_t bytes = held > 0 ? static_cast<std::uint64_t>(held) : 0;
    for (int k = 0; k < c.tx.count; ++k) {
      const OutFrame& f = c.tx.frame(k);
      bytes += f.header.length - payload_sent(f.header, f.sent);
    }
    lanes.share.hold(i, bytes);
  }
  const std::uint64_t frame =
      lanes.policy.frame_bytes(op->total - op->committed, core_.options.frame_bytes);
  return lanes.share.choose(ready, busy, frame, bytes_left(op));
}

// A transfer begins, or all have come, while nothing else is on lanes: from the one to the other it
// is measured how fast they are.
void TxQueue::measure_lanes(const Peer& p, bool begins) {
  LaneSet& lanes = *p.lanes;
  if (lanes.again.head() != nullptr || !core_.options.tuning.has(Heuristic::kLaneShare)) return;
  for (int i = 1; i < lanes.policy.used(); ++i)
    if (lanes.lane[i].out.count() != 0) return;
  if (!begins && !lanes.measuring) return;
  lanes.measuring = begins;
  for (int i = 0; i < lanes.policy.used(); ++i) {
    const Connection* const c = lane_of(p, i);
    StreamReport report;
    if (c == nullptr || c->state != ConnectionState::kUp || !core_.net.report(c->fd, report))
      continue;
    ++core_.counters.other_calls;
    if (begins)
      lanes.share.begin(i, report.acknowledged, report.busy_us);
    else
      lanes.share.end(i, report.acknowledged, report.busy_us);
  }
}

// Whether the next frame of a transfer goes by that connection, which can take it. If not, by
// another one, perhaps later.
bool TxQueue::takes_next(Peer& p, const Connection& c) {
  LaneSet& lanes = *p.lanes;
  if (!lanes.spread || !core_.options.tuning.has(Heuristic::kLaneShare)) return true;
  if (lanes.chosen < 0) lanes.chosen = static_cast<std::int8_t>(choose_lane(p, 0, &c));
  return lanes.chosen == c.lane;
}

// One that was lost with its lane. On lane 0 it is out of danger.
void TxQueue::commit_again(LaneSet& lanes, Connection& c) {
  LaneFrame* f = lanes.again.pop();
  IovCursor pieces{f->op->pieces};
  if (pieces) pieces.skip(f->offset);
  commit(c, f->op, f->offset, f->length, pieces);
  if (c.lane != 0)
    lanes.lane[c.lane].out.push(f);
  else
    lane_frames_.give(f);
}

// What one connection has left to others.
[[gnu::noinline]] void TxQueue::flush_lanes(int peer) {
  Peer& p = core_.peers[peer];
  LaneSet* const lanes = p.lanes;
  if (lanes->sharing || p.corks > 0) return;
  lanes->sharing = true;
  unsigned in_vain = 0;  // they have taken nothing
  while (lanes->transfers.head != nullptr || lanes->again.head() != nullptr) {
    const int asked = lanes->chosen;  // by who has left it to that one
    const bool is_valid = asked >= 0 && (in_vain >> asked & 1) == 0 && is_ready(lane_of(p, asked));
    const int i = is_valid ? asked : choose_lane(p, in_vain, nullptr);
    if (i < 0) break;
    lanes->chosen = static_cast<std::int8_t>(i);
    const std::uint64_t frames = core_.counters.frames_out;
    write_out(*lane_of(p, i));
    if (p.lanes != lanes) return;
    if (core_.counters.frames_out == frames) in_vain |= 1u << i;
  }
  lanes->chosen = -1;
  lanes->sharing = false;
}

void TxQueue::has_room(Connection& c) {
  const Peer& p = core_.peers[c.peer];
  if (spreads(p) && p.lanes->policy.took(core_.mode.background)) limit_unsent(p);
  flush(c);
}

void TxQueue::limit_unsent(const Peer& p) {
  LaneSet& lanes = *p.lanes;
  for (int i = 0; i < kLanesMax; ++i) {
    const Connection* c = lane_of(p, i);
    if (c == nullptr || c->state != ConnectionState::kUp || c->tx.kept.told) continue;
    core_.net.set_unsent_limit(c->fd, lanes.policy.unsent_bytes());
    ++core_.counters.other_calls;
  }
}

void TxQueue::end_oldest(LaneFrames& frames, int error) {
  LaneFrame* f = frames.pop();
  SendOp* op = f->op;
  lane_frames_.give(f);
  end_frame(op, error);
}

bool TxQueue::acknowledge(int peer, int number, std::uint64_t frames) {
  Peer& p = core_.peers[peer];
  LaneSet* const lanes = p.lanes;
  Lane& lane = lanes->lane[number];
  // Those that are still being written, the newest, cannot have come.
  const int writing = lane.connection != nullptr ? lane.connection->tx.count : 0;
  if (frames > lane.out.count() - static_cast<std::uint64_t>(writing)) return false;
  lane.acknowledged += frames;
  for (; frames > 0 && p.lanes == lanes; --frames)  // a completion may lose the peer
    end_oldest(lane.out, 0);
  if (p.lanes == lanes && lanes->transfers.head == nullptr) measure_lanes(p, false);
  return true;
}

void TxQueue::send_again(int peer, int lane) {
  LaneSet& lanes = *core_.peers[peer].lanes;
  while (lanes.lane[lane].out.head() != nullptr) lanes.again.push(lanes.lane[lane].out.pop());
}

void TxQueue::fail_frames(LaneFrames& frames, int error) {
  while (frames.head() != nullptr) end_oldest(frames, error);
}

}  // namespace mplite
