// Eager protocol: envelope as control packet, data on the channel right behind it.
// Called by Device; rendezvous and active messages send what goes ahead by it, too. Neighbour:
// deferred.h, data that arrives so.
#pragma once
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

// Packet and data leave in one system call. *id: the send under way, 0 when done. Or -errno: the
// peer is lost.
int send_channel_behind(Core& core, int peer, PacketHeader* packet, int packet_bytes,
                        const Memory& memory, std::uint64_t bytes,
                        MPID_ChannelId* id) MPLITE_SIGNAL_SAFE;
int send_eager(Core& core, const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key,
               bool synchronous, void* cookie, Request** request);
void handle_eager(Core& core, const Packet& packet, int from) MPLITE_SIGNAL_SAFE;

}  // namespace ch_lite
