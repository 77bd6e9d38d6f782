// A message that came before its receive gets it: what is here is copied, the rest goes on its way
// into the receive's memory.
// Used by the calls that receive, and by remote_process.cpp. Neighbour: incoming.h.
#pragma once
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

// A new receive takes the message, which is in the matcher or detached.
int receive_message(Core& core, Message* message, const Memory& memory, std::uint64_t bytes,
                    void* cookie, lite_status* status, Request** request) MPLITE_SIGNAL_SAFE;
// The message, which is in the matcher no more, could not be matched when it came: now this
// receive, posted before that and withdrawn, takes it.
void receive_late(Core& core, Request* receive, Message* message) MPLITE_SIGNAL_SAFE;

}  // namespace ch_lite
