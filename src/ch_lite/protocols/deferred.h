// Messages whose data is the next on the channel: posted into a block, or deferred until that can
// be; and what becomes of messages when their peer is lost.
// The channel is FIFO per source, so channel receives are posted in the order of envelopes: when
// one has to wait for a block, those of the same source behind it wait too, point to point and
// active messages alike. Used by the protocols for what arrives. Neighbour: incoming.h, messages
// that have their receive.
#pragma once
#include "ch_lite/core/core.h"

namespace ch_lite {

// The data of the message comes next on the channel.
void arrive_by_channel(Core& core, Message* message) MPLITE_SIGNAL_SAFE;
void defer(Core& core, Message* message) MPLITE_SIGNAL_SAFE;
// Posts what can be posted, in order. False: some are left.
bool serve_deferred(Core& core, Peer& peer) MPLITE_SIGNAL_SAFE;
// Of an active message: a block for header and data in place of the header's own. False: none now,
// or no memory: then the peer is lost.
bool grow_block(Core& core, Message* message, BlockUse use) MPLITE_SIGNAL_SAFE;
// There is no memory for the data of the active message.
[[gnu::cold]] MPLITE_ORDINARY void without_memory(Core& core, const Message* message);
void drop_message(Core& core, Message* message) MPLITE_SIGNAL_SAFE;
void drop_deferred(Core& core, Peer& peer) MPLITE_SIGNAL_SAFE;

}  // namespace ch_lite
