// The way out over several connections: what a lane carries next, what it has carried and the
// receiver has not acknowledged, and what goes again.
#include "mplite/engine/tx_queue.h"

namespace mplite {

// Of which the connection carries something next. On lane 0 control goes before all, and channel
// messages and transfers take turns.
SendQueue& TxQueue::next_queue(Peer& p, const Connection& c) {
  if (c.lane == 0 && p.control.head != nullptr) return p.control;
  LaneSet* lanes = p.lanes;
  if (lanes == nullptr) return p.bulk;
  if (c.lane != 0) return lanes->transfers;
  const bool transfers =
      p.bulk.head == nullptr || (lanes->transfers_next && lanes->transfers.head != nullptr);
  lanes->transfers_next = !transfers;
  return transfers ? lanes->transfers : p.bulk;
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

// The kernel has taken what it takes on lane 0. The caller keeps dropped connections readable.
[[gnu::noinline]] void TxQueue::flush_lanes(int peer) {
  Peer& p = core_.peers[peer];
  for (int i = 1; i < kLanesMax && p.lanes != nullptr && i < p.lanes->policy.used(); ++i) {
    if (p.lanes->transfers.head == nullptr && p.lanes->again.head() == nullptr) return;
    Connection* c = p.lanes->lane[i].connection;
    if (c != nullptr && c->tx.count == 0) flush(*c);
  }
}

void TxQueue::has_room(Connection& c) {
  const Peer& p = core_.peers[c.peer];
  if (spreads(p) && p.lanes->policy.took(core_.mode.background)) limit_unsent(p);
  flush(c);
}

void TxQueue::limit_unsent(const Peer& p) {
  LaneSet& lanes = *p.lanes;
  for (int i = 0; i < kLanesMax; ++i) {
    const Connection* c = i == 0 ? p.connection : lanes.lane[i].connection;
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
