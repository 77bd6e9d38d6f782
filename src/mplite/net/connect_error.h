// What the errno of a connect or accept means for the next attempt. Used by the engine.
#pragma once
#include <cerrno>

#include "mplite/base/signal_safe.h"

namespace mplite {

// An attempt that ends like this was cut off on its way: nothing is wrong with the address.
inline bool is_closed(int error) MPLITE_SIGNAL_SAFE {
  return error == ECONNRESET || error == ECONNABORTED || error == EPIPE;
}

// The process or the system has no descriptor, no place in epoll, or no memory for one more
// connection.
inline bool is_shortage(int error) MPLITE_SIGNAL_SAFE {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS ||
         error == ENOSPC;
}

// Reasons for which a connect fails now and may succeed a moment later: the network on the way is
// not there at present, or a resource of this host is used up. Not ECONNREFUSED: the peer's
// listener is open before its address is published, so its process has ended.
inline bool may_pass(int error) MPLITE_SIGNAL_SAFE {
  switch (error) {
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case ETIMEDOUT:
    case EADDRNOTAVAIL:
    case EAGAIN: return true;
    default: return is_shortage(error);
  }
}

}  // namespace mplite
