// What the files of the channel interface share: operations by id, completion, waiting. Gate held,
// signal-safe where not marked. Used by channel_messages.cpp, transfers.cpp and control.cpp only.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ch_lite/channel/channel.h"
#include "ch_lite/channel/channel_state.h"
#include "mplite/engine/engine.h"

namespace mplite {

namespace channel {

inline Engine& engine() { return *g_channel->engine; }

// What an id stands for: the operation, if the id is live and of one of these kinds.
inline ChannelOp* find(MPID_ChannelId id) { return id == 0 ? nullptr : g_channel->ops.find(id); }

// Whether make_op() has one.
bool has_op();
// A new one, listed with its peer if it is a receive. nullptr: no memory, or none in the handler.
ChannelOp* make_op(ChannelOpKind kind, int peer, const Memory& memory, std::size_t size);
void free_op(ChannelOp* op);
// Gives its result: to its callback, and then it is gone, or to who asks.
void complete(ChannelOp* op, std::int64_t result);
void on_sent(void* op, int error);  // the engine's callback of a send: complete()

// Where the message's bytes from `offset` on go; its pieces were moved up to there.
Destination destination_at(const ChannelOp& op, std::uint64_t offset);

// Of the bytes behind the first `from`. *out is 0 when it was complete at once. 0 or -errno.
int start_send(const Memory& memory, std::size_t size, int dest, FrameKind kind, std::uint64_t id,
               MPID_ChannelId* out, std::size_t from = 0);

// 1 done, 0 not yet, -errno failed and gone. `keep`: a well-ended operation stays for the call that
// fetches its length.
int test(MPID_ChannelId id, bool keep);
// Waits, acting on what comes meanwhile. Its result; the operation is gone [ordinary].
std::int64_t wait_for(MPID_ChannelId id);

// Polls, and lets the layer above act on what came, or keeps it, so that no peer is held up
// (control.cpp).
void poll_and_serve();
void drop_stash(ChannelState& state);

}  // namespace channel
}  // namespace mplite
