// Short protocol: envelope and data in one control packet. And the acks of synchronous short and
// eager messages.
// Called by Device: its sends, dispatch and the loop.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

// A short contiguous message without request. LITE_PENDING: there is no credit, nothing was sent.
int send_plain(Core& core, const void* data, std::uint64_t bytes, int peer, const MatchKey& key);
// The credit is spent. Data leaves from where it is, or from a copy if it is in pieces.
int send_short(Core& core, const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key,
               bool synchronous, void* cookie, Request** request);
bool take_awaited(Core& core, const void* at, std::size_t bytes, int from) MPLITE_SIGNAL_SAFE;
void handle_short(Core& core, const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
void handle_ack(Core& core, const Packet& packet, int from) MPLITE_SIGNAL_SAFE;

}  // namespace ch_lite
