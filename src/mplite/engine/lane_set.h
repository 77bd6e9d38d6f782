// The lanes of a peer: connections beside its first one, which carry long data only. Data only; the
// way out and lanes.h act on it. Used by peer.h.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/engine/connection.h"
#include "mplite/net/hello.h"
#include "mplite/tuning/lane_policy.h"

namespace mplite {

static_assert(LanePolicy::kMost == kLanesMax);

struct SendOp;

struct SendQueue {
  SendOp* head = nullptr;
  SendOp* tail = nullptr;
};

// Of a peer to which something long has been sent, or which has opened a lane. Lane 0 is the peer's
// first connection, and is not listed here.
struct LaneSet {
  LaneSet* pool_next = nullptr;
  std::uint64_t pool_handle = 0;

  Connection* lane[kLanesMax] = {};  // by number; an attempt of ours, or up
  SendQueue transfers;               // what any lane may take
  LanePolicy policy;
  std::int64_t write_ns = 0;    // spent in writes of them
  std::int64_t retry_ns = 0;    // no attempt before
  std::int64_t looked_ns = 0;   // when the policy was asked last
  std::uint8_t failures = 0;    // how often in a row all addresses of the peer have failed
  std::uint8_t shunned = 0;     // bits: the addresses that have, since then
  bool spread = false;          // transfers go over more than lane 0
  bool transfers_next = false;  // on lane 0 they have their turn
};

}  // namespace mplite
