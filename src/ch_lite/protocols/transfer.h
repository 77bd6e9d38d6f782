// The one way of data that the receiver has asked for: a transfer is made at the receiver, its
// memory posted, and only then the sender is told.
// Used by rendezvous, active messages and one-sided accesses, each with an owner type of its own.
#pragma once
#include <cstdint>

#include "ch_lite/channel/channel.h"
#include "mplite/base/iov_cursor.h"
#include "mplite/base/signal_safe.h"

namespace ch_lite {

// Where the data of a transfer goes: behind the first `done` of `bytes`, which come otherwise.
struct TransferRoom {
  mplite::Memory memory;
  std::uint64_t done;
  std::uint64_t bytes;
  int peer;
};

// Makes the transfer, posts its memory and has the sender told. Owner, whose request, message or
// access waits for it:
//   transfer(), channel()  where its ids are kept
//   begun()                they are there: the state follows
//   kOnComplete, arg()     the callback for MPID_OnComplete
//   is_open()              it still waits; false when the callback has been called
//   tell(transfer)         sends the packet; < 0: that has lost the peer, and the transfer is to go
//                          now, not with what is open with the peer
// 0: under way, or over and the callback was called. -errno: there is no such transfer, the
// callback will not be called, and the owner is as it was or, after begun(), still open.
template <typename Owner>
int receive_by_transfer(const TransferRoom& room, Owner owner) MPLITE_SIGNAL_SAFE {
  const auto& memory = room.memory;
  MPID_TransferId transfer = 0;
  MPID_ChannelId channel = 0;
  int result = MPID_CreateRecvTransfer(memory.buffer, room.bytes, room.peer, &transfer);
  if (result < 0) return result;
  result = MPID_StartNBRecvTransferRest(memory.buffer, memory.pieces, room.done, room.bytes,
                                        room.peer, transfer, &channel);
  if (result < 0) {
    MPID_CancelRecvTransfer(transfer, 0);
    return result;
  }
  owner.transfer() = transfer;
  owner.channel() = channel;
  owner.begun();
  // Before the sender is told, so that a peer lost by that ends the owner by the callback.
  MPID_OnComplete(channel, Owner::kOnComplete, owner.arg());
  if (!owner.is_open()) return 0;
  result = owner.tell(transfer);
  if (result >= 0 || !owner.is_open()) return 0;
  MPID_CancelRecvTransfer(transfer, channel);
  return result;
}

}  // namespace ch_lite
