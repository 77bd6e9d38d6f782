// What the engine keeps of each peer. Data only: the queues belong to the way out, the rest to who
// makes connections. Used by engine_core.h.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/engine/address_turns.h"
#include "mplite/engine/connection.h"
#include "mplite/engine/lane_set.h"
#include "mplite/engine/states.h"

namespace mplite {

// Whether people have been told that the peer is tried in vain for long.
enum class Overdue : std::uint8_t { kNot, kDue, kTold };

struct Peer {
  Connection* connection = nullptr;  // the first one, that carries the stream: up or broken
  Connection* attempt = nullptr;     // while kMaking: our newest one
  SendQueue control, bulk;           // what has not been cut into frames
  LaneSet* lanes = nullptr;          // from the first long transfer on
  std::int64_t give_up_ns = 0;       // while kMaking, without TCP
  int connect_error = 0;             // of the last attempt, 0: none, or TCP was up
  int error = 0;
  int broken_by = 0;              // what the connection broke by
  std::uint64_t connections = 0;  // that have carried the stream
  bool called_last = false;       // the last of them was begun by the peer
  bool break_told = false;        // to people, once
  Overdue overdue = Overdue::kNot;
  int corks = 0;
  PeerState state = PeerState::kIdle;
  std::uint8_t attempts = 0;         // ours that were closed before they were up
  AddressTurns turns;                // which of its addresses we try, or are connected to
  std::int64_t retry_ns = 0;         // no new one before
  std::int64_t next_address_ns = 0;  // with several: another one is tried beside it from then on
};

// Calls f(Connection&) with the peer's connection, up or broken, and with its lanes that are up. It
// may lose the peer.
template <typename F>
void for_each_stream(Peer& p, F f) MPLITE_SIGNAL_SAFE {
  if (p.connection != nullptr) f(*p.connection);
  for (int i = 1; i < kLanesMax && p.lanes != nullptr; ++i)
    if (Connection* c = p.lanes->lane[i].connection;
        c != nullptr && c->state == ConnectionState::kUp)
      f(*c);
}

}  // namespace mplite
