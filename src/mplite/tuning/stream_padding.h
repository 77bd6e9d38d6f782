// How many bytes of padding precede the payload of a frame. Pure decisions; used by
// tx_queue.cpp.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// The kernel copies to and from pages that the sockets of a thread share, each copy behind the one
// before. A long payload is copied faster (3 to 5 % of a message's time; both copies) if it has the
// same offset to the cache lines there as in the user's buffer. So the writes of each thread are
// counted, and padding gives the payload that offset, as far as can be known here. One per engine.
// Gate held throughout.
class StreamPadding {
 public:
  static constexpr std::uint32_t kAlignment = 64;        // a line of the cache
  static constexpr std::uint64_t kLeast = 16 * 1024;     // below, it makes no difference
  enum Writer : std::uint8_t { kApplication, kHelper };  // threads

  // Off: no frame is padded.
  void start(bool on) MPLITE_SIGNAL_SAFE { least_ = on ? kLeast : UINT64_MAX; }
  void written(Writer writer, std::uint64_t bytes) MPLITE_SIGNAL_SAFE { bytes_[writer] += bytes; }
  // Whether the payload of a frame is to be padded.
  bool pads(std::uint64_t length) const MPLITE_SIGNAL_SAFE { return length >= least_; }
  // Of a payload behind `ahead` bytes that `writer` has yet to write.
  std::uint8_t bytes(Writer writer, std::uint64_t ahead,
                     const void* payload) const MPLITE_SIGNAL_SAFE {
    return static_cast<std::uint8_t>(
        (reinterpret_cast<std::uintptr_t>(payload) - (bytes_[writer] + ahead)) % kAlignment);
  }

 private:
  std::uint64_t bytes_[2] = {};  // by Writer
  std::uint64_t least_ = kLeast;
};

}  // namespace mplite
