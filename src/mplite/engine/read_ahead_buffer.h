// Read-ahead buffers: a connection has one only while it holds bytes that are not consumed yet, so
// that an idle one costs no buffer. Used by rx_stream.h. Gate held throughout.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "mplite/base/signal_safe.h"
#include "mplite/net/wire.h"

namespace mplite {

// Not zeroed, and the last one given back is taken first: it is in the cache still.
struct Staging {
  static constexpr std::uint32_t kBytes =
      2 * kControlBytesMax;  // a whole control packet and what follows it
  Staging* next;
  std::uint8_t bytes[kBytes];
};

class StagingStock {
 public:
  // So many connections can be left in the middle of something by one handler entry; beyond that,
  // data stays in the sockets until ordinary context looks.
  static constexpr std::uint32_t kReady = 8;
  static constexpr std::uint32_t kSpare = 2 * kReady;  // more than that go back to the heap

  StagingStock() = default;
  ~StagingStock() { shrink(0); }
  StagingStock(const StagingStock&) = delete;
  StagingStock& operator=(const StagingStock&) = delete;

  // nullptr: none is free.
  Staging* take() MPLITE_SIGNAL_SAFE {
    Staging* staging = free_;
    if (staging == nullptr) return nullptr;
    free_ = staging->next;
    --free_count_;
    ++used_count_;
    return staging;
  }
  void give(Staging* staging) MPLITE_SIGNAL_SAFE {
    staging->next = free_;
    free_ = staging;
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
      auto* staging = static_cast<Staging*>(std::malloc(sizeof(Staging)));
      if (staging == nullptr) return false;
      ++used_count_;
      give(staging);
    }
    return true;
  }
  void shrink(std::uint32_t keep) {
    while (free_count_ > keep) {
      Staging* staging = take();
      --used_count_;
      std::free(staging);
    }
  }

  Staging* free_ = nullptr;
  std::uint32_t free_count_ = 0;
  std::uint32_t used_count_ = 0;
};

}  // namespace mplite
