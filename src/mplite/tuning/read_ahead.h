// How much is read before its frame is known. Pure decisions; used by rx_stream.cpp.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// What is read ahead costs one copy. Of a message up to 32 KB that is cheaper than a second read,
// and of many small ones it is what one read brings. Behind a long one another is expected, and so
// it is behind one of middle length with more in the socket already (a stream): then only the
// header is read ahead, and all the rest goes straight to its place, by the read that brings the
// next header. One per connection. Gate held throughout.
class ReadAhead {
 public:
  static constexpr std::uint32_t kBytes = 36 * 1024, kHeaderBytes = 512;
  static constexpr std::uint64_t kLongBytes = 35 * 1024, kMiddleBytes = 4 * 1024;

  // Off: always kBytes.
  void start(bool on) MPLITE_SIGNAL_SAFE {
    long_ = on ? kLongBytes : UINT64_MAX;
    middle_ = on ? kMiddleBytes : UINT64_MAX;
  }
  // A frame of a message begins,
  void message(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    header_only_ = bytes > (full_ ? middle_ : long_);
  }
  // or it is a packet.
  void packet() MPLITE_SIGNAL_SAFE { header_only_ = false; }
  // A read was made. `all`: it brought all that it had room for; `direct`: which was not only room
  // for what is read ahead.
  void read(bool all, bool direct) MPLITE_SIGNAL_SAFE { full_ = all && (direct || !header_only_); }

  bool header_only() const MPLITE_SIGNAL_SAFE { return header_only_; }
  std::uint32_t bytes() const MPLITE_SIGNAL_SAFE { return header_only_ ? kHeaderBytes : kBytes; }
  // The last read was full, and that was more than a header: there is more in the socket.
  bool full() const MPLITE_SIGNAL_SAFE { return full_; }

 private:
  std::uint64_t long_ = kLongBytes, middle_ = kMiddleBytes;
  bool header_only_ = false, full_ = false;
};

}  // namespace mplite
