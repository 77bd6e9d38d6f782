// One stream connection: its states, what has been read ahead, what is being written. Data only;
// the parts of the engine act on it. Used by engine_core.h.
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/base/iov_cursor.h"
#include "mplite/engine/kept.h"
#include "mplite/engine/read_ahead_buffer.h"
#include "mplite/engine/states.h"
#include "mplite/net/frame.h"
#include "mplite/net/hello.h"
#include "mplite/net/net.h"
#include "mplite/net/process_name.h"
#include "mplite/tuning/first_look.h"
#include "mplite/tuning/frame_growth.h"
#include "mplite/tuning/halves.h"
#include "mplite/tuning/poll_rcvlowat.h"
#include "mplite/tuning/read_ahead.h"

namespace mplite {

struct Connection;
struct SendOp;

// A frame whose place in the stream is fixed.
struct OutFrame {
  FrameHeader header;
  SendOp* op;
  const std::uint8_t* payload;
  IovCursor pieces;    // in place of payload: the next byte to send
  std::uint64_t sent;  // of header and payload together
};

// What the policies have learned of one connection.
struct ConnectionTuning {
  FrameGrowth frames;
  Halves halves;
  FirstLook first_look;   // of who waits for the answer to a small packet
  PollRcvlowat rcvlowat;  // while detached from epoll (Readiness::detach)
  ReadAhead ahead;
};

// The way out: frames whose place in the stream is fixed, oldest first.
struct ConnectionTx {
  static constexpr int kFrames = 8;

  OutFrame frames[kFrames];
  int first = 0, count = 0;
  bool flushing = false;
  KeptStream kept;  // what is before the first frame

  // Something of it is for the kernel next.
  bool waits() const MPLITE_SIGNAL_SAFE { return count > 0 || kept.again != nullptr; }
  OutFrame& frame(int i) MPLITE_SIGNAL_SAFE { return frames[(first + i) % kFrames]; }
  const OutFrame& frame(int i) const MPLITE_SIGNAL_SAFE { return frames[(first + i) % kFrames]; }
  OutFrame& add() MPLITE_SIGNAL_SAFE { return frame(count++); }
  void pop() MPLITE_SIGNAL_SAFE {
    first = (first + 1) % kFrames;
    --count;
  }
};

// What was left in the socket of a connection that is broken, and could not be acted upon then. It
// is read before the socket of the next one.
struct SpilledBytes {
  ReadAheadBuffer* head = nullptr;
  ReadAheadBuffer* tail = nullptr;
  std::uint32_t begin = 0, end = 0;  // of what is in head, and in tail; those between are full
  std::uint64_t bytes = 0;
};

// The way in: buffer[begin, end) has been read and not consumed; no buffer while that is nothing.
struct ConnectionRx {
  bool paused = false;         // a frame waits for a buffer: nothing is read
  bool in_ready_list = false;  // a control packet is staged: nothing is read
  bool in_frame = false;       // header taken, payload still coming
  bool discards = false;       // which nobody wants
  int low_water = 1;           // SO_RCVLOWAT
  std::uint32_t begin = 0, end = 0;
  ReadAheadBuffer* buffer = nullptr;
  SpilledBytes spilled;
  FrameHeader header = {};
  std::uint8_t* destination = nullptr;  // where the rest of this payload goes,
  IovCursor pieces;                     // or this
  std::uint64_t room = 0;               // of it; what comes beyond is thrown away
  std::uint64_t owed = 0;               // payload bytes still to come
  std::uint64_t received = 0;           // bytes of the stream, on all connections
  Connection* ready_next = nullptr;
};

// Until the connection is up.
struct ConnectionHandshake {
  bool ours = false;     // we connect; otherwise we have accepted
  bool stalled = false;  // a whole message is here that cannot be acted upon yet; nothing is read
  bool heard_apart = false;  // theirs: watched as a caller, too (Engine::hear_callers)
  HelloRealm realm = HelloRealm::kJob;
  int claimed = -1;              // theirs, kPair: the peer that it says it is
  unsigned stall_round = 0;      // stalled: the round in which it was looked at last
  std::uint8_t address = 0;      // ours: the number of the peer's address
  std::int64_t deadline_ns = 0;  // theirs; ours, of a peer with several addresses: for TCP
  std::int64_t tcp_up_ns = 0;    // ours: when connect() succeeded
  Hello hello = {};              // what we sent last, or the challenge we answered
  std::uint32_t heard_bytes = 0;
  std::uint8_t heard[kHelloBytes];         // `heard_bytes` of what is said to us
  std::uint8_t key[kKeyBytes] = {};        // kPort, kPair: the secret that both have to know,
  std::uint8_t initiator[kKeyBytes] = {};  // and the public key of the one who began it; of a lane
                                           // its number
};

struct Connection {
  Connection* pool_next = nullptr;
  std::uint64_t pool_handle = 0;

  int fd = -1;
  int peer = -1;          // known once kUp, and in our own attempts
  std::uint8_t lane = 0;  // not 0: one of the peer's lanes (lane_set.h)
  ConnectionState state = ConnectionState::kFree;
  bool dead =
      false;  // lost while somebody up the stack still uses it; freed at the next safe point
  unsigned interest = 0;  // what epoll is asked about (but see Readiness::detached)
  ConnectionTuning tuning;
  ConnectionRx rx;
  ConnectionTx tx;
  ConnectionHandshake handshake;
  sockaddr_storage remote = {};
  std::uint32_t resent = 0;  // segments, as far as they have been counted

  Connection* list_next = nullptr;  // all connections in handshake, oldest first
  Connection* list_previous = nullptr;
};

// Its bytes belong to the peer's stream: it is up, or was.
inline bool is_stream(const Connection& c) MPLITE_SIGNAL_SAFE {
  return c.state == ConnectionState::kUp || c.state == ConnectionState::kBroken;
}

inline bool is_in_handshake(const Connection& c) MPLITE_SIGNAL_SAFE {
  return c.state != ConnectionState::kFree && !is_stream(c);
}

// Ours: the peer's kernel has accepted the connection, its process may not have looked at it yet.
inline bool is_tcp_up(const Connection& c) MPLITE_SIGNAL_SAFE {
  return c.state == ConnectionState::kUp || c.state == ConnectionState::kAwaitChallenge ||
         c.state == ConnectionState::kAwaitAccept;
}

// The connections in handshake, oldest first.
class HandshakeList {
 public:
  // A stranger or slow writer has this long to prove itself; its deadline is set by that.
  static constexpr std::int64_t kHandshakeNs = 10'000'000'000;
  // Who has said hello is let be for so long, whoever else calls: a rank of the job needs a round
  // trip, and a stranger must not keep its place.
  static constexpr std::int64_t kProofNs = 250'000'000;

  Connection* first() const MPLITE_SIGNAL_SAFE { return head_; }
  std::uint32_t count() const MPLITE_SIGNAL_SAFE { return count_; }
  void add(Connection& c) MPLITE_SIGNAL_SAFE {
    c.list_next = nullptr;
    c.list_previous = tail_;
    (tail_ != nullptr ? tail_->list_next : head_) = &c;
    tail_ = &c;
    ++count_;
    if (!c.handshake.ours) ++accepted_;
  }
  void remove(Connection& c) MPLITE_SIGNAL_SAFE {
    (c.list_previous != nullptr ? c.list_previous->list_next : head_) = c.list_next;
    (c.list_next != nullptr ? c.list_next->list_previous : tail_) = c.list_previous;
    c.list_next = c.list_previous = nullptr;
    --count_;
    if (!c.handshake.ours) --accepted_;
  }
  // Of all, those that peers began.
  std::uint32_t accepted() const MPLITE_SIGNAL_SAFE { return accepted_; }
  // Of these, the oldest one that has not said a whole hello; if all have, the oldest that has had
  // kProofNs. Null: there is none.
  Connection* first_to_evict(std::int64_t now_ns) const MPLITE_SIGNAL_SAFE {
    Connection* oldest = nullptr;
    for (Connection* c = head_; c != nullptr; c = c->list_next) {
      if (c->handshake.ours) continue;
      if (is_silent(*c)) return c;
      if (oldest == nullptr && now_ns - (c->handshake.deadline_ns - kHandshakeNs) >= kProofNs)
        oldest = c;
    }
    return oldest;
  }
  // Whether one that has said nothing is among them.
  bool has_silent() const MPLITE_SIGNAL_SAFE {
    for (const Connection* c = head_; c != nullptr; c = c->list_next)
      if (!c->handshake.ours && is_silent(*c)) return true;
    return false;
  }

 private:
  static bool is_silent(const Connection& c) MPLITE_SIGNAL_SAFE {
    return c.state == ConnectionState::kAwaitHello && !c.handshake.stalled;
  }

  Connection* head_ = nullptr;
  Connection* tail_ = nullptr;
  std::uint32_t count_ = 0, accepted_ = 0;
};

}  // namespace mplite
