// What an engine is made from: addresses, secrets, limits. Used by engine_core.h and by whoever
// makes an engine (runtime).
#pragma once
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "mplite/base/address.h"
#include "mplite/net/handshake.h"
#include "mplite/net/listening_sockets.h"
#include "mplite/net/net.h"
#include "mplite/net/process_name.h"
#include "mplite/tuning/tuning.h"

namespace mplite {

// One rank's addresses and names, as wireup.h decodes them from the table.
struct PeerAddress {
  sockaddr_storage address;                // the best
  CompactAddress more[kAddressesMax - 1];  // what may lead there too, in order; family 0 ends them
  int count() const MPLITE_SIGNAL_SAFE {
    int count = 1;
    while (count < kAddressesMax && more[count - 1].family != 0) ++count;
    return count;
  }
  sockaddr_storage at(int number) const MPLITE_SIGNAL_SAFE {
    return number == 0 ? address : expanded(more[number - 1]);
  }
  char host[64];
  // Neither its host nor ours has an address from which it could call the other, as far as they
  // know: if the kernel finds no way there either, it is of no use to try again.
  bool apart;
  std::uint8_t name_key[kKeyBytes];  // see process_name.h
  std::uint8_t pair_key[kKeyBytes];  // the same; where streams are protected
  std::uint64_t credits,
      unexpected_max;  // its LITE_CREDITS and LITE_UNEXPECTED_MAX; for the layer above
};

struct EngineOptions {
  int rank = 0;
  int size = 1;
  const PeerAddress* peers = nullptr;  // `size` entries, kept by the caller for the engine's life
  ListeningSockets listeners = no_listening_sockets();  // the engine closes them
  int spare = -1;  // a descriptor to give up for a connection when the process has none left; the
                   // engine closes it
  std::uint8_t secret[32] = {};
  KeyPair keys = {};            // ours, for processes of other jobs
  std::uint8_t protection = 0;  // of streams, as protection_offer() gives it; the engine's Net is a
                                // ProtectedNet if it is not 0
  StreamOptions stream = {};
  std::int64_t connect_timeout_ns = 0;
  // Bulk is cut into frames of this payload, so that control packets interleave. What the kernel
  // takes at once is before them in any case: up to sixteen times as long while it takes all that
  // it is offered.
  std::uint32_t frame_bytes = 256 * 1024;
  std::uint64_t send_copy_max =
      64u << 20;  // bytes of copies of what the kernel did not take (keep_copy)
  std::uint32_t low_water_bytes = 256 * 1024;     // SO_RCVLOWAT during bulk receives, 0: never
  std::uint64_t handler_budget_bytes = 8u << 20;  // read per handler entry before it steps back
  // In the middle of a frame the next bytes are on their way: how often a poll in ordinary context
  // tries the socket again at once (about 0.3 us each) before it looks elsewhere. A receiver that
  // is in recv when packets come takes TCP's work for them over from the sender's core, which
  // bounds a fast link.
  int frame_tries = 0;
  // A write in ordinary context of at least split_min and less than split_end bytes is made in two
  // halves: the first is being received while the second is copied to the kernel. Not in a stream
  // of them, where one write is received while the next one is copied: only if something has come
  // from that peer since the last one, and only where that is faster, which is found per connection
  // (halves.h). 0: none.
  std::uint64_t split_min = 0, split_end = 0;
  // After so many reads in a row from one connection that nobody watches but who polls it, it is
  // detached: epoll is not asked about what comes there, which costs the kernel 0.1 us per packet
  // before the reader can have it, and its SO_RCVLOWAT follows the length of its messages
  // (poll_rcvlowat.h). 0: never.
  int detach_after = 0;
  // Connections that long transfers to one peer are spread over, at most kLanesMax; 0: found by
  // trials (lane_policy.h).
  int lanes = 1;
  int lane_descriptor_max = 1 << 30;  // of a lane's socket: the others are the application's
  bool resume = false;  // a connection of the job that breaks is made again, and its stream goes on
  std::uint64_t long_bytes = 512 * 1024;  // a transfer that is worth another lane
  // A heuristic acts where it is in this set and, of those above, where it has a value.
  Tuning tuning;
};

}  // namespace mplite
