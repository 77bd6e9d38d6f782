// What processes of other jobs may say: messages of the communicators that they share with us, as
// the rank that they are there. Ranks of the job are not checked.
// Called by the protocol files for what arrives, and by receive.cpp for what is found. Neighbour:
// permits.h, what the host has answered.
//
// Only the host knows who is in which communicator, and it is asked in ordinary context. So a
// message that the handler has no answer for, and one for a communicator that is not made here yet
// (its sender may have been quicker), arrives as any unexpected message does, in its turn and
// within its sender's credit; but nobody receives it until the host has been asked ("unverified").
// As receives are posted in communicators that exist, nothing else has to wait for that.
#pragma once
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

// Whether a message may be matched now; kNo: never, its sender was given up.
enum class Admission : std::uint8_t { kYes, kLater, kNo };
[[gnu::noinline]] Admission admit_remote(Core& core, int from,
                                         const MatchKey& envelope) MPLITE_SIGNAL_SAFE;
inline Admission admit(Core& core, int from, const MatchKey& envelope) MPLITE_SIGNAL_SAFE {
  return core.is_own_job(from) ? Admission::kYes : admit_remote(core, from, envelope);
}
// Asks the host about the unverified messages of the peer about which it has not been asked. The
// others, in a communicator that was not made here then, cannot have been waited for: the first
// receive that is posted in it finds them.
MPLITE_ORDINARY void verify_unasked(Core& core, int from);
// A receive from this very process: the host has said who it is.
[[gnu::noinline]] void expect_remote(Core& core, int peer, const MatchKey& key);
// The earliest message for a receive or probe of `peer` (-1: of any), if it may be received.
[[gnu::noinline]] Message* find_verified(Core& core, const MatchKey& key, int peer);
inline Message* find_message(Core& core, const MatchKey& key, int peer) {
  auto* m = static_cast<Message*>(core.matcher.find_unexpected(key));
  if (m == nullptr || !m->unverified) [[likely]]
    return m;
  return find_verified(core, key, peer);
}
// The host's word on an active message at the head of its queue. False: not now, or never.
bool may_deliver(Core& core, const Message& message);
// Whether a receive from any source in this communicator may have waited for the lost peer: then
// failing is better than hanging. A process of another job is in no communicator that we are not
// told of.
MPLITE_ORDINARY bool concerns(Core& core, int lost, std::uint32_t context);

}  // namespace ch_lite
