// Rendezvous: RTS, CTS when matched, data by transfer straight into the user's buffer. Works from
// the handler at both ends. A fragment of the data goes with the RTS, on the channel as if it were
// an eager message of its own, and is charged as one: the CTS crosses it.
// Called by Device. Neighbour: incoming.h, the receiver's answer.
#pragma once
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

int send_rendezvous(Core& core, const Memory& memory, std::uint64_t bytes, int peer,
                    const MatchKey& key, std::uint64_t fragment, void* cookie, Request** request);
void handle_rts(Core& core, const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
// Of point to point, active messages and puts.
void handle_cts(Core& core, const Packet& packet, int from) MPLITE_SIGNAL_SAFE;

}  // namespace ch_lite
