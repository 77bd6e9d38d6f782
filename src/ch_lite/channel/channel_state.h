// What the channel interface remembers between calls: one per engine.
// Used by the files beside it and by whoever makes an engine (boot.cpp, the simulation).
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/base/growing_table.h"
#include "mplite/base/iov_cursor.h"
#include "mplite/base/pool.h"
#include "mplite/tuning/wait.h"

namespace mplite {

class Engine;
struct SendOp;

enum class ChannelOpKind : std::uint8_t {
  kSendChannel,
  kSendTransfer,
  kRecvChannel,
  kRecvTransfer,
  kOrphan,  // a receive whose peer is lost: only its result is left
};

// One non-blocking operation; its pool handle is its MPID_ChannelId (and MPID_TransferId).
struct ChannelOp {
  ChannelOp* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  ChannelOp* next = nullptr;  // receives of one peer, for when it is lost
  ChannelOp* previous = nullptr;
  ChannelOp* fifo_next = nullptr;  // channel receives of one peer, in posting order
  SendOp* send = nullptr;          // of a send that is not complete
  std::uint8_t* buffer = nullptr;
  IovCursor pieces{};  // in place of buffer: where the next byte goes
  std::uint64_t size = 0;
  std::uint64_t arrived = 0;  // of the message, also what did not fit
  // Of a transfer received, whose frames come in any order:
  const iovec* list = nullptr;  // its first piece,
  std::uint64_t at = 0;         // and the offset of `pieces`
  std::uint64_t from = 0;       // what is before that comes another way
  std::uint64_t begun = 0;      // arrived, or on its way in a frame
  std::uint64_t total = 0;      // as its first frame said
  std::int64_t result = 0;
  void (*on_complete)(void* arg, std::int64_t result) = nullptr;
  void* arg = nullptr;
  int peer = -1;
  ChannelOpKind kind = ChannelOpKind::kSendChannel;
  bool started = false;
  bool done = false;
};

struct ChannelPeer {
  ChannelOp* receives = nullptr;
  ChannelOp* fifo_head = nullptr;
  ChannelOp* fifo_tail = nullptr;
};

// A control packet that arrived while somebody without a progress function waited for something
// behind it; its bytes follow.
struct StashedControl {
  StashedControl* next;
  int from;
  std::uint32_t length;
};

struct ChannelState {
  explicit ChannelState(Engine& engine);  // sets the engine's sinks
  ~ChannelState();
  ChannelState(const ChannelState&) = delete;
  ChannelState& operator=(const ChannelState&) = delete;

  Engine* engine;
  Pool<ChannelOp> ops;
  ChannelPeer* peers = nullptr;  // of peer_table; null: no memory
  GrowingTable<ChannelPeer> peer_table;
  ChannelPeer unbound;  // transfers of MPID_ANY_PARTNER of which nothing has come
  WaitPolicy wait_policy;
  StashedControl* stash_head = nullptr;  // before anything the engine has
  StashedControl* stash_tail = nullptr;
  std::uint64_t stash_bytes = 0;
  void (*progress)(void* arg) = nullptr;
  void* progress_arg = nullptr;
  void (*lost)(void* arg, int peer, int error) = nullptr;
  void* lost_arg = nullptr;
  int (*introduce)(void* arg, int peer, std::uint32_t window) = nullptr;
  void* introduce_arg = nullptr;
  int (*awaited)(void* arg, int peer) = nullptr;
  void* awaited_arg = nullptr;
  void (*on_outstanding)(bool outstanding) = nullptr;
};

// The state that the functions of channel.h work on; the simulation switches between its ranks with
// it. Ordinary context.
void channel_bind(ChannelState* state);
ChannelState* channel_bound();
[[gnu::visibility("hidden")]] extern ChannelState* g_channel;  // the same, for channel/ only

}  // namespace mplite
