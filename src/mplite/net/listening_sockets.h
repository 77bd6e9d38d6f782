// The listening sockets of a process. Opened by interface_choice.h; process.h hands them to the
// engine.
#pragma once
#include <array>

#include "mplite/base/address.h"

namespace mplite {

// One for each address that the process publishes, in their order; -1 ends them.
using ListeningSockets = std::array<int, kAddressesMax>;

inline constexpr ListeningSockets no_listening_sockets() {
  ListeningSockets none = {};
  none.fill(-1);
  return none;
}

}  // namespace mplite
