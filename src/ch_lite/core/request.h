// Requests (sends and receives under way) and messages (arrived, not yet received): their states
// and what legally follows what. Nodes of the core's pools; used by the protocol files, gate held.
#pragma once
#include <cstdint>

#include "ch_lite/ch_lite.h"
#include "ch_lite/channel/channel.h"
#include "ch_lite/core/blocks.h"
#include "ch_lite/core/check.h"
#include "ch_lite/core/matcher.h"
#include "mplite/base/iov_cursor.h"
#include "mplite/base/signal_safe.h"
#include "mplite/observe/trace.h"

namespace ch_lite {

class Core;

// docs/protocols.md has the table with what leads from one to the other.
enum class RequestState : std::uint8_t {
  kFree,  // in the pool
  // receives
  kPosted,             // in the matcher, on the list of its peer or of any source
  kReceivingChannel,   // matched an eager message: its channel receive goes into the user's buffer,
                       // or waits its turn (deferred)
  kReceivingTransfer,  // matched an RTS: CTS sent, the transfer goes into the user's buffer; before
                       // that, its fragment (fragment_pending)
  // sends
  kAwaitingCts,         // RTS sent; its fragment perhaps not yet (fragment_pending)
  kSending,             // the channel reads from the user's buffer
  kSendingAwaitingAck,  // the same, synchronous, not matched yet
  kAwaitingAck,         // synchronous: the buffer is free, not matched yet
  kSelfPinned,          // to oneself: the message in the matcher points into the user's buffer
  kWaitingCredit,       // active message: queued for credit; one-sided: queued for its turn
  // one-sided (a put's way by transfer: kAwaitingCts, kSendingAwaitingAck, kAwaitingAck; a get's:
  // kReceivingTransfer)
  kAwaitingAnswer,  // packet sent: the ack of a put, or the data of a get, comes in a packet
  // all
  kComplete,  // on the completion queue; status is final
  kReported,  // handed to the host, which frees it
};
inline constexpr int kRequestStates = 13;

enum class MessageState : std::uint8_t {
  kFree,      // in the pool
  kReady,     // all data is in the block (or there is none)
  kArriving,  // the channel receive into the block is posted
  kDeferred,  // eager, no channel receive posted: no block yet, or one from the same source is
              // waiting before it
  kOffered,   // RTS: the data waits at the sender
  kPinned,    // from oneself: the data is in the sender's buffer (`request` is the send)
  kTransfer,  // active message: CTS sent, the transfer goes into the block
  kFailed,    // detached by improbe, and the peer was lost before its data was here
};
inline constexpr int kMessageStates = 8;

// By state, a bit for each that may follow.
extern const std::uint16_t kRequestNext[kRequestStates], kMessageNext[kMessageStates];
inline bool legal(RequestState from, RequestState to) MPLITE_SIGNAL_SAFE {
  return (kRequestNext[static_cast<unsigned>(from)] >> static_cast<unsigned>(to) & 1u) != 0;
}
inline bool legal(MessageState from, MessageState to) MPLITE_SIGNAL_SAFE {
  return (kMessageNext[static_cast<unsigned>(from)] >> static_cast<unsigned>(to) & 1u) != 0;
}

enum class RequestKind : std::uint8_t { kReceive, kSend, kAmSend, kPut, kGet };

// Which message of its peer's, or to it, for the trace (device_trace.h).
struct TraceMark {
  std::uint32_t sequence = 0;
  mplite::TraceProtocol protocol = mplite::TraceProtocol::kNone;
};

using Request = ::lite_request;
using Message = ::lite_message;

// Pending requests by peer, so that a lost peer fails all that is on it.
struct RequestList {
  Request* head = nullptr;
};

}  // namespace ch_lite

struct lite_request : ch_lite::PostedNode {
  lite_request* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  ch_lite::Core* core = nullptr;

  // What every receive and send needs, in few lines of the cache.
  ch_lite::RequestState state = ch_lite::RequestState::kFree;
  ch_lite::RequestKind kind = ch_lite::RequestKind::kReceive;
  bool owned = false;  // the device's own (an active message without data that waits for credit):
                       // never reported
  bool synchronous = false;
  bool unanswered = false;  // kPut: complete when it has left as one packet, if nothing is queued
  bool in_order = false;    // kPut, kGet: executed before what is sent to the peer later
  bool counted = false;     // kPut, kGet: among its peer's accesses under way
  bool fragment_pending = false;  // what goes with the RTS has not all left, or come
  int peer = -1;                  // -1: a receive from any source, unmatched
  mplite::Memory memory{};  // the user's buffer or pieces; a send only reads it; null: a put that
                            // left whole with the call
  std::uint64_t bytes = 0;  // length of the send; room of the receive
  void* cookie = nullptr;
  lite_status status{};
  ch_lite::RequestList* list = nullptr;  // where it is linked while pending
  lite_request* list_next = nullptr;
  lite_request* list_prev = nullptr;
  lite_request* queue_next =
      nullptr;  // completion queue, the queue of kWaitingCredit, or puts not yet acknowledged

  std::uint64_t incoming = 0;    // receive: full length of the matched message
  std::uint64_t accepted = 0;    // rendezvous: bytes that will be moved,
  std::uint64_t fragment = 0;    // of which so many go with the RTS
  MPID_TransferId transfer = 0;  // kReceivingTransfer
  MPID_ChannelId channel = 0;

  ch_lite::Block am_header{};  // kWaitingCredit: a copy of the host's header
  std::uint32_t am_handler = 0;
  std::uint32_t am_header_bytes = 0;

  // kPut, kGet: the memory at the target
  std::uint64_t region = 0;
  std::uint64_t offset = 0;

  std::int64_t begun_ns = 0;  // by trace_now_ns(), with DeviceOptions::notes_age
  ch_lite::TraceMark traced{};

  void to(ch_lite::RequestState next) MPLITE_SIGNAL_SAFE {
    CHLITE_CHECK(ch_lite::legal(state, next));
    state = next;
  }
};

struct lite_message : ch_lite::UnexpectedNode {
  lite_message* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  ch_lite::Core* core = nullptr;

  ch_lite::MessageState state = ch_lite::MessageState::kFree;
  bool synchronous = false;  // an ack is owed when matched (`sender`)
  bool active = false;       // an active message: never in the matcher
  bool detached = false;     // by improbe
  bool unverified = false;  // of another job: the host has not said yet that its sender may send it
  bool offer = false;       // counted in its peer's `offers`
  int peer = -1;
  std::uint64_t bytes = 0;       // of data, full length
  bool resend_fragment = false;  // of an RTS: its fragment was thrown away, and has to come again
  std::uint64_t fragment = 0;    // of an RTS: so many of them come by the channel, as if it were an
                                 // eager message, and the rest waits at the sender
  std::uint64_t sender = 0;      // the sender's request handle
  std::uint64_t charge = 0;      // credit to give back with the message
  ch_lite::Block block{};
  ch_lite::Request* request =
      nullptr;  // the receive that matched it while it was not complete; kPinned: the send
  MPID_TransferId transfer = 0;  // kTransfer
  MPID_ChannelId channel = 0;
  lite_message* deferred_next = nullptr;

  lite_message* queue_next = nullptr;  // active messages not delivered, or unverified ones
  std::uint32_t am_handler = 0;
  std::uint32_t am_header_bytes = 0;
  ch_lite::TraceMark traced{};

  // All of the fragment is here, the rest is at the sender.
  bool is_offered_rest() const MPLITE_SIGNAL_SAFE {
    return fragment != 0 && state == ch_lite::MessageState::kReady;
  }
  std::uint64_t channel_bytes() const MPLITE_SIGNAL_SAFE {
    return fragment != 0 ? fragment : bytes;
  }

  void to(ch_lite::MessageState next) MPLITE_SIGNAL_SAFE {
    CHLITE_CHECK(ch_lite::legal(state, next));
    state = next;
  }
};
