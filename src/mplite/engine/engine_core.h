// What the parts of an engine share: the socket layer, options, gate, counters, the tables of peers
// and connections, and how progress is made at present. Each part has a reference to it. Uses
// peer.h, gate.h; knows none of the parts.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mplite/base/growing_table.h"
#include "mplite/base/pool.h"
#include "mplite/base/signal_safe.h"
#include "mplite/engine/connection.h"
#include "mplite/engine/engine_options.h"
#include "mplite/engine/gate.h"
#include "mplite/engine/peer.h"
#include "mplite/engine/progress_mode.h"
#include "mplite/net/net.h"
#include "mplite/observe/counters.h"
#include "mplite/observe/log.h"

namespace mplite {

// What is under way, by count: while nothing is, a poll has few places to look at.
struct Underway {
  int connecting = 0;              // peers in PeerState::kMaking
  int gathered = 0;                // control packets that wait to leave together
  int unacknowledged = 0;          // connections of which somebody waits for acknowledgements
  int spilled = 0;                 // connections that have SpilledBytes
  int broken = 0;                  // peers whose connection is broken, of those in kMaking
  bool overdue = false;            // peers in Overdue::kDue
  std::uint64_t queued_sends = 0;  // send operations that the kernel has not taken all of
};

struct EngineCore {
  EngineCore(Net& the_net, const EngineOptions& the_options) : net(the_net), options(the_options) {}

  // A process of another job.
  bool is_remote(int peer) const MPLITE_SIGNAL_SAFE { return peer >= options.size; }

  void set_state(Connection& c, ConnectionState to) MPLITE_SIGNAL_SAFE {
    change_state(c.state, to, c.peer, static_cast<int>(static_cast<std::uint32_t>(c.pool_handle)));
  }
  void set_state(Peer& p, PeerState to, int error = 0) MPLITE_SIGNAL_SAFE {
    change_state(p.state, to, static_cast<int>(&p - peers), error);
    p.error = error;
  }

  // A connection that was dropped, and that somebody up the stack may still hold: its node is free
  // once nobody can (DeferFree).
  void free_later(Connection& c) MPLITE_SIGNAL_SAFE {
    c.dead = true;
    c.list_next = deferred;
    deferred = &c;
  }
  // The peer's lanes have been dropped.
  void forget_lanes(Peer& p) MPLITE_SIGNAL_SAFE {
    LaneSet* set = p.lanes;
    if (set == nullptr) return;
    LaneSet** link = &due_lanes;
    while (*link != nullptr && *link != set) link = &(*link)->due_next;
    if (*link == set) *link = set->due_next;
    p.lanes = nullptr;
    lane_sets.give(set);
  }
  // Something is to be said of them, at the next safe point (Lanes::serve).
  void lanes_are_due(LaneSet& set) MPLITE_SIGNAL_SAFE {
    if (set.due) return;
    set.due = true;
    set.due_next = due_lanes;
    due_lanes = &set;
  }
  // At once, if it is the last one dropped: only where nobody up the stack can hold it.
  void free_now(Connection& c) MPLITE_SIGNAL_SAFE {
    if (deferred != &c) return;
    deferred = c.list_next;
    connections.give(&c);
  }
  // See Engine::is_starved. In ordinary context there is no more to be had: nothing is noted.
  void note_starved() MPLITE_SIGNAL_SAFE {
    if (mode.in_signal_handler) starved.store(true, std::memory_order_relaxed);
  }
  void free_deferred() MPLITE_SIGNAL_SAFE {
    while (deferred != nullptr) {
      Connection* c = deferred;
      deferred = c->list_next;
      connections.give(c);
    }
  }

  Net& net;
  EngineOptions options;
  Gate gate;
  Counters counters;
  NoteLog notes;

  Peer* peers = nullptr;  // of peer_table, which does not move
  int peer_count = 0;
  GrowingTable<Peer> peer_table;
  Pool<Connection, 4> connections;
  Pool<LaneSet, 4> lane_sets;
  LaneSet* due_lanes = nullptr;
  HandshakeList handshaking;
  Connection* deferred = nullptr;  // dropped, not yet back in the pool
  int depth = 0;                   // of DeferFree

  ProgressMode mode;
  Underway underway;
  bool more_to_do = false;               // the pass ended at its bound
  std::uint32_t packets = 0;             // that the pass has left
  bool quiescing = false;                // everybody is ending: a peer that is gone is no loss
  bool completes_in_background = false;  // Engine::complete_in_background()
  std::atomic<bool> starved{false};      // Engine::is_starved()
};

// While one exists, connections that are dropped stay readable memory.
class DeferFree {
 public:
  explicit DeferFree(EngineCore& core) MPLITE_SIGNAL_SAFE : core_(core) { ++core_.depth; }
  ~DeferFree() MPLITE_SIGNAL_SAFE {
    if (--core_.depth == 0 && core_.deferred != nullptr) [[unlikely]]
      core_.free_deferred();
  }
  DeferFree(const DeferFree&) = delete;
  DeferFree& operator=(const DeferFree&) = delete;

 private:
  EngineCore& core_;
};

}  // namespace mplite
