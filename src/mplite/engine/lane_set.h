// The lanes of a peer: connections beside its first one, which carry long data only; what is on
// them and not acknowledged. Data only; the way out and lanes.h act on it. Used by peer.h.
#pragma once
#include <cstdint>

#include "mplite/base/address.h"
#include "mplite/base/signal_safe.h"
#include "mplite/engine/connection.h"
#include "mplite/net/hello.h"
#include "mplite/tuning/lane_policy.h"
#include "mplite/tuning/lane_share.h"

namespace mplite {

static_assert(LanePolicy::kMost == kLanesMax && LaneShare::kMost == kLanesMax);

struct SendOp;

struct SendQueue {
  SendOp* head = nullptr;
  SendOp* tail = nullptr;
};

// A frame that was given to a lane: it goes again over another one if that lane is lost before the
// receiver has said that the frame is there.
struct LaneFrame {
  LaneFrame* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  LaneFrame* next = nullptr;
  SendOp* op = nullptr;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
};

class LaneFrames {
 public:
  LaneFrame* head() const MPLITE_SIGNAL_SAFE { return head_; }
  std::uint64_t count() const MPLITE_SIGNAL_SAFE { return count_; }
  void push(LaneFrame* f) MPLITE_SIGNAL_SAFE {
    f->next = nullptr;
    (tail_ != nullptr ? tail_->next : head_) = f;
    tail_ = f;
    ++count_;
  }
  LaneFrame* pop() MPLITE_SIGNAL_SAFE {
    LaneFrame* f = head_;
    head_ = f->next;
    if (head_ == nullptr) tail_ = nullptr;
    --count_;
    return f;
  }

 private:
  LaneFrame* head_ = nullptr;
  LaneFrame* tail_ = nullptr;
  std::uint64_t count_ = 0;
};

// A lane has ended when both sides have said so, each with the number of frames that it has
// received: only then is what was lost with it known, and the number free for another connection.
struct Lane {
  Connection* connection = nullptr;      // an attempt of ours, or up
  LaneFrames out;                        // given to it, and not acknowledged
  std::uint64_t acknowledged = 0;        // frames of ours on this connection
  std::uint64_t received = 0, told = 0;  // frames of the peer's, and those that we acknowledged
  bool ended_here = false, ended_there = false;
  bool end_due = false;   // we have to say so,
  bool end_owed = false;  // or will have to if the peer does
  // Nothing was counted on its last connection.
  bool is_unused() const MPLITE_SIGNAL_SAFE {
    return acknowledged == 0 && received == 0 && out.count() == 0;
  }
  // A connection with this number may be begun. Where the peer has closed the last one without a
  // word (end_owed), and nothing was counted on it, no word about it can be taken for one about the
  // next connection.
  bool is_free() const MPLITE_SIGNAL_SAFE {
    return connection == nullptr && !ended_there && (!ended_here || (end_owed && is_unused()));
  }
};

// Of which of the peer's addresses lanes are opened.
struct LaneAddresses {
  std::uint8_t failures = 0;                   // how often in a row all of them have failed
  std::uint8_t shunned = 0;                    // bits: those that have, since then
  std::uint8_t led = 0;                        // bits: those with which a connection has come up
  std::int64_t closed_ns[kAddressesMax] = {};  // no attempt with one of these before
  std::uint8_t closes[kAddressesMax] = {};     // how often in a row
};

// Of a peer to which something long has been sent, or which has opened a lane. Lane 0 is the peer's
// first connection, and is not listed here.
struct LaneSet {
  LaneSet* pool_next = nullptr;
  std::uint64_t pool_handle = 0;

  int peer = -1;
  Lane lane[kLanesMax] = {};  // by number
  SendQueue transfers;        // what any lane may take,
  LaneFrames again;           // and before those what was lost with one
  LaneAddresses addresses;
  LanePolicy policy;
  LaneShare share;
  std::int64_t write_ns = 0;    // spent in writes of them
  std::int64_t retry_ns = 0;    // no attempt before
  std::int64_t looked_ns = 0;   // when the policy was asked last
  std::uint8_t surplus = 0;     // lanes of trials that did not pay are below this number
  bool spread = false;          // transfers go over more than lane 0
  bool transfers_next = false;  // on lane 0 they have their turn
  std::int8_t chosen = -1;      // takes the next frame of a transfer; -1: not chosen
  bool sharing = false;         // in TxQueue::flush_lanes
  bool measuring = false;       // from the beginning of a transfer
  bool deciding = false;        // in Lanes::wait
  bool due = false;             // something is to be said to the peer, or sent again: in the list
  bool tell_all = false;        // and it shall be all that has come
  LaneSet* due_next = nullptr;
};

}  // namespace mplite
