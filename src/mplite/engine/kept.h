// What the kernel has taken of a connection's stream and the peer's may not have: it is sent again
// if the connection breaks. Data only; the way out acts on it. Used by connection.h.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/net/frame.h"

namespace mplite {

struct Connection;
struct SendOp;

// Copies of what belongs to nobody any more.
struct KeptBlock {
  static constexpr std::uint32_t kBytes = 8 * 1024;
  KeptBlock* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  std::uint8_t bytes[kBytes];

  KeptBlock() {}  // not `= default`: a pool's value-initialisation would clear the bytes, too
};

// A frame whose operation still has its payload; or bytes of the stream in a block.
struct KeptPart {
  KeptPart* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  KeptPart* next = nullptr;
  SendOp* op = nullptr;
  KeptBlock* block = nullptr;  // in place of op
  std::uint64_t bytes = 0;     // of the stream
  FrameHeader header = {};     // of the frame
};

// Frames that are kept as copies: of others the operation has the payload.
inline bool is_copied(FrameKind kind) MPLITE_SIGNAL_SAFE {
  return kind == FrameKind::kControl || kind == FrameKind::kLane;
}

// In the order of the stream; the last one ends where the first frame of ConnectionTx begins.
struct KeptStream {
  bool on = false;         // nothing is kept otherwise
  bool listed = false;     // among those that somebody waits for (TxQueue)
  bool told = false;       // the kernel tells when it has sent all; listed
  bool starved = false;    // nothing was written, for want of memory to keep it; listed
  std::uint8_t looks = 0;  // in vain, for the acknowledgement of what is awaited
  std::uint32_t nodes = 0;
  std::uint32_t awaited = 0;  // frames of operations that somebody waits for
  // Places in the stream, over all connections; while it is on:
  std::uint64_t taken = 0;         // the kernel has what is before,
  std::uint64_t sent = 0;          // had it, on one of the connections before this one,
  std::uint64_t acknowledged = 0;  // the peer's kernel too, when we asked last,
  std::uint64_t end = 0;           // and here the nodes end
  std::uint64_t bytes = 0;         // of all nodes
  KeptPart* head = nullptr;
  KeptPart* tail = nullptr;
  KeptPart* again = nullptr;     // of this node, and of those behind it,
  std::uint64_t again_from = 0;  // what is behind so many bytes has to be sent again before all
  Connection* next = nullptr;    // listed

  void push(KeptPart* k) MPLITE_SIGNAL_SAFE {
    (tail != nullptr ? tail->next : head) = k;
    tail = k;
    bytes += k->bytes;
    end += k->bytes;
    ++nodes;
  }
  KeptPart* pop() MPLITE_SIGNAL_SAFE {
    KeptPart* k = head;
    head = k->next;
    if (head == nullptr) tail = nullptr;
    bytes -= k->bytes;
    --nodes;
    return k;
  }
};

}  // namespace mplite
