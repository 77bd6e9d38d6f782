// Why a peer was lost: an errno, or what no errno tells well: faults of this process itself, for
// which "Bad address" would be no help, and hosts that cannot meet. Set by the engine's reads and
// writes; put into words by whoever reports a lost peer.
#pragma once
#include <errno.h>
#include <string.h>

#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// Beyond every errno. The kernel was given memory of the application's that is not there (EFAULT).
inline constexpr int kReceiveMemoryFault = 0x10000 + EFAULT;
inline constexpr int kSendMemoryFault = 0x20000 + EFAULT;
// One host has addresses of IPv4 only, the other one of IPv6 (or of an interface's own network).
inline constexpr int kNoCommonFamily = 0x30000 + EAFNOSUPPORT;

// What a read or write of a connection that failed by `result` (-errno, or 0: the end of the
// stream) means for its peer.
inline int read_loss(std::int64_t result) MPLITE_SIGNAL_SAFE {
  return result == 0         ? ECONNRESET
         : result == -EFAULT ? kReceiveMemoryFault
                             : static_cast<int>(-result);
}
inline int write_loss(std::int64_t result) MPLITE_SIGNAL_SAFE {
  return result == -EFAULT ? kSendMemoryFault : static_cast<int>(-result);
}

// What only this library says of an error, as the rest of a sentence that has named the peer; null:
// the system's words do. Ordinary context.
inline const char* own_loss_text(int error) {
  if (error == kReceiveMemoryFault)
    return "the application's memory for data from it (the buffer of a pending receive, or a "
           "window) is not mapped or not writable: freed or unmapped too early, or a wrong address";
  if (error == kSendMemoryFault)
    return "the application's memory with data for it (the buffer of a pending send, or a window) "
           "is not mapped: freed or unmapped too early, or a wrong address";
  if (error == kNoCommonFamily)
    return "its host and that of this rank have no address family in common (IPv4, IPv6)";
  if (error == EBADMSG)
    return "its data was changed on the way, or does not come from it (LITE_ENCRYPT)";
  if (error == EPROTONOSUPPORT) return "its LITE_ENCRYPT is not that of this process";
  return nullptr;
}
// Of any error.
inline const char* loss_text(int error) {
  const char* const own = own_loss_text(error);
  return own != nullptr ? own : strerror(error);
}

// What helps against an error (errno) of too many descriptors, or of epoll's entries; "" otherwise.
inline const char* descriptor_cure(int error) {
  return error == EMFILE   ? " (raise the limit on open files: ulimit -n)"
         : error == ENFILE ? " (the whole system is at its limit: fs.file-max)"
         : error == ENOSPC ? " (this user's limit for epoll: fs.epoll.max_user_watches)"
                           : "";
}

}  // namespace mplite
