// Active messages of the host: a class of traffic beside point to point, ordered per peer,
// delivered whole, in ordinary context. All of them are charged to credit of their own, RTS
// included; what finds none waits at the sender, in order.
// A part of Device, which dispatches and delivers. Neighbour: core/active_arrivals.h.
#pragma once
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

class ActiveMessages {
 public:
  explicit ActiveMessages(Core& core) : core_(core) {}

  void set_callback(lite_am_callback callback, void* arg) {
    callback_ = callback;
    callback_arg_ = arg;
  }
  bool has_callback() const { return callback_ != nullptr; }

  // ---- sending ----
  int isend(int peer, std::uint32_t handler, const void* header, std::uint32_t header_bytes,
            const void* data, std::uint64_t data_bytes, void* cookie, Request** request);
  // Credit is back. False: more could go, but not now (no headroom).
  bool pump(int peer) MPLITE_SIGNAL_SAFE;
  void drop_unsent(Peer& peer) MPLITE_SIGNAL_SAFE;
  // Messages that wait for credit, or 0.
  std::uint64_t unsent() const { return unsent_; }

  // ---- arriving ----
  void handle(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;

  // ---- delivery: ordinary context ----
  // The next message that can be delivered, taken off its queue; peers take turns. nullptr: none
  // now.
  Message* next_ready();
  // Gate NOT held: the callback runs without it. The caller frees the message.
  void deliver(const Message* message) const;

 private:
  struct Outgoing {
    std::uint32_t handler;
    std::uint32_t header_bytes;
    const void* header;
    const void* data;
    std::uint64_t data_bytes;
  };
  int send_self(const Outgoing& message);
  int send_now(int peer, const Choice& choice, const Outgoing& message, std::uint64_t sender,
               MPID_ChannelId* id) MPLITE_SIGNAL_SAFE;
  int wait(int peer, const Outgoing& message, void* cookie, Request** request);
  void start_transfer(Message* message);
  void drop_whole(Peer& peer);

  Core& core_;
  lite_am_callback callback_ = nullptr;
  void* callback_arg_ = nullptr;
  std::uint64_t unsent_ = 0;
  // Being sent. Not on the stack: the handler's may be small.
  alignas(16) std::uint8_t packet_[sizeof(AmPacket) + LITE_AM_HEADER_MAX];
};

}  // namespace ch_lite
