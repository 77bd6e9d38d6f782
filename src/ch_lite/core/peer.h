// What stands open with one peer: a rank of the job, or a process of another job.
// Entries of the peer table; each part belongs to the protocol that it is named after.
#pragma once
#include <cstdint>

#include "ch_lite/core/attention.h"
#include "ch_lite/core/credits.h"
#include "ch_lite/core/fifo.h"
#include "ch_lite/core/request.h"

namespace ch_lite {

// Per pair and direction. Small puts keep nothing at the target but what the kernel buffers; other
// accesses a node each.
inline constexpr std::uint32_t kSmallPutsPerPeer = 256;
inline constexpr std::uint32_t kAccessesPerPeer = 32;
// The same as the target counts them. It may not know yet that what it has sent for a get is there,
// though the origin has answered that by the next access (LITE_RESUME asks the kernel once a poll).
inline constexpr std::uint32_t kAccessesHere = 2 * kAccessesPerPeer;
// Unexpected RTS of a process of another job: some 140 MB. Of a rank of the job nothing bounds them
// but its own memory.
inline constexpr std::uint32_t kRemoteOffersMax = 512 * 1024;

enum TrafficClass { kPointToPoint = 0, kActive = 1 };

struct Access;
using RequestQueue = Fifo<Request, &Request::queue_next>;
using MessageQueue = Fifo<Message, &Message::queue_next>;
using DeferredQueue = Fifo<Message, &Message::deferred_next>;

// Our puts and gets in a peer's memory.
struct RmaOrigin {
  RequestQueue waiting;            // for their turn
  RequestQueue puts;               // kPut packets not yet acknowledged, in order,
  std::uint32_t puts_out = 0;      // and how many
  std::uint32_t accesses_out = 0;  // all other accesses under way

  bool may_start(bool small_put) const MPLITE_SIGNAL_SAFE {
    return small_put ? puts_out < kSmallPutsPerPeer : accesses_out < kAccessesPerPeer;
  }
  void start_put(Request* r) MPLITE_SIGNAL_SAFE {
    puts.push(r);
    ++puts_out;
  }
  // The oldest is acknowledged. There is one.
  Request* end_put() MPLITE_SIGNAL_SAFE {
    --puts_out;
    return puts.pop();
  }
  // Of any other access; end_access as soon as the request is complete.
  void start_access(Request* r) MPLITE_SIGNAL_SAFE {
    r->counted = true;
    ++accesses_out;
  }
  void end_access(Request* r) MPLITE_SIGNAL_SAFE {
    r->counted = false;
    --accesses_out;
  }
  void forget_puts() MPLITE_SIGNAL_SAFE {
    puts.clear();
    puts_out = 0;
  }
  bool is_clean() const { return waiting.empty() && puts.empty() && accesses_out == 0; }
};

// A peer's puts and gets in our memory.
struct RmaTargetPeer {
  std::uint32_t puts_done = 0;    // kPut packets done and not acknowledged
  std::uint32_t accesses_in = 0;  // transfers under way or not acknowledged
  Access* answers = nullptr;      // transfers done and not acknowledged

  bool is_clean() const { return answers == nullptr && accesses_in == 0; }
};

// 65,536 of them must be affordable: no buffers in here. The small members are where they cost no
// padding, as an index by a power of two is quick.
struct Peer : AttentionNode {
  bool departed = false;   // lost, which concerns only what is open with just this peer
  bool awaited = false;    // something waited for it when reach_awaited_peers() looked last
  bool probed = false;     // a probe for just it has found nothing since then
  bool tell_late = false;  // a long message of the peer's found no receive: said with the next
                           // packet
  // Messages by rendezvous in a row that found their receive there, at most kInTimeEnough. Begins
  // again when a long message of the peer's finds none here.
  std::uint8_t in_time = 0;
  Credits credits[2];        // by TrafficClass
  RequestList pending;       // requests that are lost with this peer
  int lost = 0;              // 0, or the errno for which it was given up
  std::uint32_t offers = 0;  // of another job: offers that cost it no credit
  // Eager messages of both classes whose channel receive is not posted, in the order of their
  // envelopes, which is the channel's order.
  DeferredQueue deferred;
  // Active messages.
  MessageQueue am_arrived;  // and not delivered
  RequestQueue am_waiting;  // to be sent, for credit
  Peer* am_next = nullptr;
  bool on_am_list = false;
  RmaOrigin origin;
  RmaTargetPeer target;
  // Of another job: messages that the host was not asked about, or has no communicator for yet, as
  // they came.
  MessageQueue unverified;
  Message* unasked = nullptr;    // the first of them that the host was not asked about when it came
  const char* broken = nullptr;  // the protocol error, for people
  std::uint8_t free[8] = {};     // up to a power of two

  // Nothing is open, and nothing of it is held here: the number may go to another process.
  bool is_clean() const {
    return pending.head == nullptr && deferred.empty() && am_arrived.empty() &&
           am_waiting.empty() && origin.is_clean() && target.is_clean() && unverified.empty() &&
           offers == 0 && credits[0].held() == 0 && credits[1].held() == 0 && !on_attention_list &&
           !on_am_list;
  }
};
static_assert(sizeof(void*) != 8 || sizeof(Peer) == 256);

}  // namespace ch_lite
