// A peer is lost: what is open with it fails. Messages that have all their data stay receivable.
// Called by Device, at the end of the outermost piece of work.
#pragma once
#include "ch_lite/core/core.h"

namespace ch_lite {

// In that order, and between them, as requests complete in it, Device drops the active messages
// that are not sent. The answers of the target of one-sided accesses it drops before.
// Requests, and messages that wait for their channel receive.
void fail_requests(Core& core, int peer) MPLITE_SIGNAL_SAFE;
// Messages that the peer has offered and will not send.
void drop_offers(Core& core, int peer) MPLITE_SIGNAL_SAFE;
// Receives from any source that its loss concerns: the host is asked.
MPLITE_ORDINARY void fail_any_source(Core& core, int lost);

}  // namespace ch_lite
