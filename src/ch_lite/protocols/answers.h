// The packets that answer: CTS and ack. Used by every protocol whose sender waits.
#pragma once
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

// The message, or the put, of the peer's request `sender` is done.
void send_ack(Core& core, int peer, std::uint64_t sender) MPLITE_SIGNAL_SAFE;
// The first `accepted` bytes of what the peer's request `sender` offered are to come by `transfer`
// (0: nothing more), those of the fragment again if it was discarded. < 0: that has lost the peer.
int send_cts(Core& core, int peer, std::uint64_t sender, MPID_TransferId transfer,
             std::uint64_t accepted, bool resend_fragment = false) MPLITE_SIGNAL_SAFE;

}  // namespace ch_lite
