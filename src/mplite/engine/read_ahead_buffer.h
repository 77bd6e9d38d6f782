// Read-ahead buffers: a connection has one only while it holds bytes that are not consumed yet, so
// that an idle one costs no buffer. Used by rx_stream.h. Gate held throughout.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "mplite/base/signal_safe.h"
#include "mplite/net/frame.h"

namespace mplite {

// Not zeroed, and the last one given back is taken first: it is in the cache still.
struct ReadAheadBuffer {
  static constexpr std::uint32_t kBytes =
      2 * kControlBytesMax;  // a whole control packet and what follows it
  ReadAheadBuffer* next;
  std::uint8_t bytes[kBytes];
};

class ReadAheadBuffers {
 public:
  // So many connections can be left in the middle of something by one handler entry; beyond that,
  // data stays in the sockets until ordinary context looks.
  static constexpr std::uint32_t kReady = 8;
  static constexpr std::uint32_t kSpare = 2 * kReady;  // more than that go back to the heap

  ReadAheadBuffers() = default;
  ~ReadAheadBuffers() { shrink(0); }
  ReadAheadBuffers(const ReadAheadBuffers&) = delete;
  ReadAheadBuffers& operator=(const ReadAheadBuffers&) = delete;

  // nullptr: none is free.
  ReadAheadBuffer* take() MPLITE_SIGNAL_SAFE {
    ReadAheadBuffer* buffer = free_;
    if (buffer == nullptr) return nullptr;
    free_ = buffer->next;
    --free_count_;
    ++used_count_;
    return buffer;
  }
  void give(ReadAheadBuffer* buffer) MPLITE_SIGNAL_SAFE {
    buffer->next = free_;
    free_ = buffer;
    ++free_count_;
    --used_count_;
  }

  // Ordinary context: kReady to kSpare are free. False: no memory, and fewer are.
  bool refill() { return (free_count_ >= kReady && free_count_ <= kSpare) || refill_slow(); }

  std::uint32_t free_count() const MPLITE_SIGNAL_SAFE { return free_count_; }
  std::uint32_t used_count() const MPLITE_SIGNAL_SAFE { return used_count_; }

 private:
  MPLITE_ORDINARY bool refill_slow() {
    shrink(kSpare);
    while (free_count_ < kReady) {
      auto* buffer = static_cast<ReadAheadBuffer*>(std::malloc(sizeof(ReadAheadBuffer)));
      if (buffer == nullptr) return false;
      ++used_count_;
      give(buffer);
    }
    return true;
  }
  void shrink(std::uint32_t keep) {
    while (free_count_ > keep) {
      ReadAheadBuffer* buffer = take();
      --used_count_;
      std::free(buffer);
    }
  }

  ReadAheadBuffer* free_ = nullptr;
  std::uint32_t free_count_ = 0;
  std::uint32_t used_count_ = 0;
};

}  // namespace mplite
