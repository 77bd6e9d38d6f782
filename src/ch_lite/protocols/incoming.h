// A message that has its receive: one operation, whatever its data comes by. All by the channel (an
// eager message), all by transfer, or a fragment by the channel and the rest by transfer.
// Used by the protocols for what arrives and by unexpected.cpp. Neighbours: transfer.h; deferred.h,
// for what cannot be posted yet.
//
// States of the request: kReceivingChannel, the end of what comes by the channel ends it;
// kReceivingTransfer, the end of the transfer does. The fragment is before the transfer in the
// stream; `fragment_pending` while it is under way. Only a loss, or a receive that has room for no
// more than the fragment, makes the fragment's end the request's.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

void fill_status(Core& core, lite_status* status, const MatchKey& envelope, int peer,
                 std::uint64_t bytes, std::uint64_t room) MPLITE_SIGNAL_SAFE;
// The receive has its message. It is on that peer's list from here on; what state it is in, the
// protocol says.
void matched(Core& core, Request* receive, const MatchKey& envelope, int peer,
             std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
void finish_receive(Core& core, Request* receive) MPLITE_SIGNAL_SAFE;

// ---- what comes by the channel ----
// False: not now. A lost peer counts as posted: the request has failed.
bool post_channel_receive(Core& core, Request* receive) MPLITE_SIGNAL_SAFE;
// All or the fragment is here, or never will be.
void end_channel_receive(Core& core, Request* receive, bool arrived) MPLITE_SIGNAL_SAFE;
// The receive has matched a message whose data is arriving in its block.
void move_arriving(Core& core, Message* message, Request* receive);

// ---- what comes by transfer ----
// Whether the receive, matched by an RTS, takes more than what comes with that. Not by its status:
// a loss has put 0 there.
inline bool wants_rest(const Request& r) MPLITE_SIGNAL_SAFE {
  return r.fragment == 0 || std::min(r.incoming, r.bytes) > r.fragment;
}
// Answers the RTS of the peer's request `sender`.
void accept_offer(Core& core, Request* receive, std::uint64_t sender,
                  bool resend_fragment = false) MPLITE_SIGNAL_SAFE;
// There will be no transfer for the receive any more.
void fail_transfer(Core& core, Request* receive) MPLITE_SIGNAL_SAFE;
// The same of one that the channel still has.
void cancel_transfer(Core& core, Request* receive) MPLITE_SIGNAL_SAFE;

}  // namespace ch_lite
