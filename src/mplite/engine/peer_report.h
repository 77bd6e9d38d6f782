// What stands between this process and a peer, as the engine tells those who write it down for
// people. Made by Engine::report.
#pragma once
#include <cstdint>

#include "mplite/engine/states.h"
#include "mplite/net/net.h"

namespace mplite {

struct PeerReport {
  PeerState state = PeerState::kIdle;
  int error = 0;                   // kMaking: of the last attempt, or 0; kLost: why
  std::uint64_t queued_bytes = 0;  // of messages to the peer, that the kernel has not taken
  bool has_stream = false;         // `stream` says what the kernel knows
  StreamReport stream;
};

}  // namespace mplite
