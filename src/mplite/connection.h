// One stream connection: its states, what has been read ahead, what is being written. Data only; engine_*.cpp act on it.
// Used by engine.h.
#pragma once
#include <cstddef>
#include <cstdint>

#include "faster_way.h"
#include "first_look.h"
#include "net.h"
#include "pieces.h"
#include "process_name.h"
#include "staging.h"
#include "wire.h"

namespace mplite {

// What is true in each state; the table of legal changes is in engine.cpp (change_state).
enum class ConnectionState : std::uint8_t {
  kFree,            // in the pool
  kConnecting,      // ours: connect() is under way
  kAwaitChallenge,  // ours: we said hello
  kAwaitAccept,     // ours: we proved ourselves; nothing but handshake was sent
  kAwaitHello,      // theirs: accepted, nobody known yet; has a deadline
  kAwaitProof,      // theirs: challenged; the rank it claims is not believed yet
  kUp,              // belongs to one peer; frames flow
};

enum class PeerState : std::uint8_t {
  kIdle,   // no connection, none wanted
  kMaking, // somebody wants one: our attempt is under way, or we gave way in a tie and theirs must come before the deadline
  kUp,     // has a connection
  kGone,   // closed in order: everybody is ending
  kLost,   // given up, `error` says why
};

// Where the handler keeps a control packet that is longer than SendOp::kInlineBytes.
struct ControlBlock {
  ControlBlock* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  std::uint8_t bytes[kControlBytesMax];
};

// One message on its way out, in the engine's pool. Owned by the engine until done; `data` belongs to the sender unless `block` is set, and so do
// the pieces that it may have instead.
struct SendOp {
  SendOp* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  SendOp* next = nullptr;
  const std::uint8_t* data = nullptr;
  const iovec* pieces = nullptr;  // in place of data
  PieceCursor uncommitted;        // of them: where the next frame begins
  std::uint64_t total = 0;
  std::uint64_t committed = 0;  // cut into frames so far
  std::uint64_t written = 0;    // taken by the kernel so far
  std::uint64_t id = 0;
  void (*on_done)(void* arg, int error) = nullptr;
  void* arg = nullptr;
  std::uint8_t* block = nullptr;  // heap copy of a large control packet, or of what the kernel did not take
  ControlBlock* control_block = nullptr;  // the same in the handler
  std::uint32_t frames = 0;       // committed and not yet wholly written
  int peer = -1;
  int error = 0;
  FrameKind kind = FrameKind::kControl;
  bool all_committed = false;
  bool done = false;
  bool released = false;
  static constexpr std::size_t kInlineBytes = 160;  // a device packet without data fits
  std::uint8_t inline_bytes[kInlineBytes];

  SendOp() {}  // not `= default`: a pool's value-initialisation would clear inline_bytes, too
};

// A frame whose place in the stream is fixed.
struct OutFrame {
  FrameHeader header;
  SendOp* op;
  const std::uint8_t* payload;
  PieceCursor pieces;  // in place of payload: the next byte to send
  std::uint64_t sent;  // of header and payload together
};

struct Connection {
  // What is read before its frame is known costs one copy. Of a message up to 32 KB that is cheaper than a second read, and of many small ones it is what one read brings. Behind a long one another is expected,
  // and so it is behind one of middle length with more in the socket already (a stream): then only the header is read ahead, and all the rest goes straight to its place, by the read that brings the next header.
  static constexpr std::uint32_t kReadAheadBytes = 36 * 1024, kReadAheadHeaderBytes = 512;
  static constexpr std::uint32_t kReadAheadLongBytes = 35 * 1024, kReadAheadMiddleBytes = 4 * 1024;
  static constexpr int kOutFrames = 8;
  // TCP acknowledges at once, on the sender's core, what finds less than the mark unread, and otherwise in the recv that takes it. For a message of several packets that one write of the kernel's brings (64 KB)
  // the first is better, by 5 to 19 % of its time from 4 to 56 KB; in the middle of longer ones it costs more than it saves (2 to 5 % from 128 KB to 8 MB); one packet goes with the answer in both.
  static constexpr std::uint64_t kAtOnceMinBytes = 1280, kAtOnceBytes = 58 * 1024;
  static constexpr int kMarkAtOnce = 64 * 1024, kMarkDoubts = 4, kMarkSmallOnes = 16;

  Connection* pool_next = nullptr;
  std::uint64_t pool_handle = 0;

  int fd = -1;
  int peer = -1;  // known once kUp, and in our own attempts
  ConnectionState state = ConnectionState::kFree;
  bool ours = false;
  bool parked = false;        // a frame waits for a buffer: nothing is read
  bool in_ready_list = false; // a control packet is staged: nothing is read
  bool stalled = false;       // in handshake: a whole message is staged that cannot be acted upon yet (engine_foreign.cpp); nothing is read
  bool in_frame = false;      // header taken, payload still coming
  bool flushing = false;
  bool answered = true;       // something has come since the last long write
  bool asked = false;         // the time to the answer to it is measured
  bool spoke = false;         // a packet has left since the last wait for an answer began
  bool timed = false;         // that wait is measured, and nothing has come yet
  bool full = false;          // the last read brought all that it had room for, and that was more than a header: there is more in the socket
  bool expect_long = false;   // only the header of the next frame is to be read ahead
  bool dead = false;          // lost while somebody up the stack still uses it; freed at the next safe point
  unsigned interest = 0;      // what epoll is asked about (but Engine::aside_)
  int low_water = 1;
  int mark = 1;               // low_water while set aside (Engine::set_aside)
  bool small = false;         // the last message was one of a single packet
  int mark_doubts = 0;        // frames in a row that ask for the other mark,
  int small_ones = 0;         // and that ask for none

  // receiving: staging[begin, end) has been read and not consumed; no staging while that is nothing
  Staging* staging = nullptr;
  std::uint32_t begin = 0, end = 0;
  FrameHeader header = {};
  std::uint8_t* destination = nullptr;  // where the rest of this payload goes,
  PieceCursor pieces;                   // or this
  std::uint64_t room = 0;               // of it; what comes beyond is thrown away
  std::uint64_t owed = 0;               // payload bytes still to come

  // sending
  std::uint32_t frame_bytes = 0;  // of bulk, as long as frames are now
  OutFrame out[kOutFrames];
  int out_first = 0, out_count = 0;
  FasterWay whole;            // messages of EngineOptions::split_min to split_end in two halves, or (second) whole and acknowledged at once
  std::int64_t asked_ns = 0;  // while `asked`: when the last one of them left,
  std::int64_t heard_ns = 0;  // and when something came last since then, or 0
  FirstLook first_look;       // of who waits for the answer to a small packet
  std::int64_t began_ns = 0;  // while `timed`: when the wait began

  // handshake
  std::int64_t deadline_ns = 0;
  Hello hello = {};  // what we sent last, or the challenge we answered
  std::uint8_t heard[kHelloBytes];  // `end` bytes of what is said to us
  HelloRealm realm = HelloRealm::kJob;
  int claimed = -1;                     // theirs, kPair: the peer that it says it is
  unsigned tried = 0;                   // stalled: the round in which it was looked at last
  std::uint8_t key[kKeyBytes] = {};     // kPort, kPair: the secret that both have to know,
  std::uint8_t initiator[kKeyBytes] = {};  // and the public key of the one who began it
  sockaddr_storage remote = {};

  Connection* ready_next = nullptr;
  Connection* young_next = nullptr;  // all connections in handshake, oldest first
  Connection* young_previous = nullptr;
};

}  // namespace mplite
