// What a trace knows: kinds of events, and protocols.
#pragma once
#include <cstdint>

namespace mplite {

// Each is recorded somewhere in src/ (test/unit/trace_kinds_test.sh). What their arguments are
// called in the file: trace_file.cpp.
enum class TraceEvent : std::uint8_t {
  // connections
  kConnectionState,  // a, b: names of the old and the new state; tag: which connection
  kPeerState,        // a, b: likewise; error: why it was lost
  kRead,   // a: bytes, or -errno; b: bytes that there was room for. One that finds nothing is not
           // recorded: a waiting rank makes one in each poll
  kWrite,  // a: bytes taken, or -errno; b: bytes offered
  kReceivePaused,  // there is no buffer for what comes next from the peer
  kReceiveResumed,
  kLanes,  // a trial begins or ends; a: lanes that data is spread over, b: that are to be up
  // messages; see TraceMessage
  kSendBegin,       // its envelope leaves
  kSendEnd,         // the buffer is the caller's again (synchronous: and the message is matched)
  kReceivePosted,   // bytes: room
  kUnexpected,      // an envelope came for which no receive was posted
  kMatched,         // an envelope and a receive have met
  kReceiveEnd,      // the data is in the user's buffer
  kReceiveDropped,  // ends without a message: cancelled (error 0), or its peer is lost
  kEagerDeferred,   // no buffer for its data, or it waits behind one that has none
  kEagerResumed,
  kCts,         // sent, for the rendezvous of the peer's request b; a: bytes accepted
  kCtsArrived,  // b: our request. A rendezvous ends with the last byte of its transfer: there is
                // no packet for that
  kAck,         // sent: the synchronous send, put or get of the peer's request b is done; of
                // small puts, b of them
  kAckArrived,
  kPeerRequest,    // an active message, a put or a get of the peer has arrived
  kActiveMessage,  // the host's handler of an active message runs
  kActiveMessageEnd,
  // credit, in bytes
  kCreditGranted,   // to the peer; a: point to point, b: active messages
  kCreditReturned,  // by the peer
  kCreditStalled,   // a: bytes of a message that could not be sent unasked; b: credit left
  // progress
  kHandler,  // the signal handler is entered; a: signal
  kHandlerEnd,
  kTurnedAway,  // it found the gate closed: the gate's holder does its work
  kDrain,       // which is now
  kArmed,       // the signal handler or the helper thread is in charge
  kDisarmed,    // the calls of the application are
  kHelper,      // the helper thread works
  kHelperEnd,
  kSleep,     // of a waiting rank; a: time-out, ns
  kSleepEnd,  // a: sockets with something
  kYield,     // a: how many in a row, b: end of the last one
  kCount_
};

enum class TraceProtocol : std::uint8_t {
  kNone,
  kShort,
  kEager,
  kRendezvous,
  kSelf,
  kMessage,  // of the MP_* library
  kActiveShort,
  kActiveEager,
  kActiveRendezvous,
  kPut,
  kPutTransfer,
  kGet,
  kGetTransfer,
  kCount_
};

inline constexpr std::uint32_t kTraceRecords = 1u << 16;  // the last ones are kept; 48 bytes each

}  // namespace mplite
