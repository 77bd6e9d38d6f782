// Sends to oneself: through the same matcher, never through the channel.
// Called by Device.
#pragma once
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

// Not matched yet: a small message is copied, within a credit window like a peer's; otherwise the
// sender's buffer stays where it is and the request waits, as it would in a rendezvous.
int send_self(Core& core, const Memory& memory, std::uint64_t bytes, const MatchKey& key,
              bool synchronous, void* cookie, Request** request);

}  // namespace ch_lite
