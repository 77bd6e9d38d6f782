// Put and get, the origin's part: memory that a peer has exposed is written and read without its
// process.
// Called by Device. Neighbours: rma_target.h, the other end; rendezvous.cpp, which brings a put's
// CTS, short.cpp its ack; core/peer.h RmaOrigin, what is under way with a peer.
//
// Small (up to LITE_SHORT_MAX): put with its data in the packet, acknowledged by number, many by
// one packet, or not at all if the origin does not ask; get answered by a packet. Larger: a put
// asks for a transfer into the target's memory, as an RTS does, and is acknowledged when all of it
// is there; a get brings along the id of a transfer that its origin has made. Puts complete when
// the data are in the target's memory (remote completion). There is no order between accesses, nor
// between them and messages: who needs one waits for completion.
//
// A window of accesses per pair, kept by the origin and for transfers checked by the target, bounds
// what the target has to hold.
#pragma once
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

int put(Core& core, int peer, std::uint64_t key, std::uint64_t offset, const void* data,
        std::uint64_t bytes, bool answered, void* cookie, Request** request);
int get(Core& core, int peer, std::uint64_t key, std::uint64_t offset, void* buffer,
        std::uint64_t bytes, void* cookie, Request** request);
// Sends what the window allows. False: more could go, but not now (no headroom).
bool pump_accesses(Core& core, int peer) MPLITE_SIGNAL_SAFE;
void drop_accesses(Core& core, Peer& peer) MPLITE_SIGNAL_SAFE;
void handle_put_ack(Core& core, const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
void handle_get_data(Core& core, const Packet& packet, int from) MPLITE_SIGNAL_SAFE;

}  // namespace ch_lite
