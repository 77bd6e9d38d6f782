// The calls that receive, and what probes find: whatever protocol brings the message.
// Called by Device. Results are LITE_*. Ordinary context.
#pragma once
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

int irecv(Core& core, const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key,
          void* cookie, lite_status* status, Request** request);
int cancel_receive(Core& core, Request* receive);
// `found`: what there is for a probe (remote_process.h find_message), or nullptr. Detached if
// `message` is given.
int take_probed(Core& core, Message* found, int peer, const MatchKey& key, lite_status* status,
                Message** message);
int receive_detached(Core& core, Message* message, const Memory& memory, std::uint64_t bytes,
                     void* cookie, lite_status* status, Request** request);

}  // namespace ch_lite
