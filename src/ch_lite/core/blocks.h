// Memory for the data of unexpected messages: blocks in size classes, a stock of which is ready for
// the handler. Used by the protocol files; filled by Core::refill in ordinary context.
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace ch_lite {

// No data: no bytes were asked for, or none could be had (the caller knows which). Aligned to 16
// bytes.
struct Block {
  void* data = nullptr;
  std::uint32_t size_class = 0;
  bool beyond_bound = false;  // not counted in Blocks::bytes_total() while it is in use
  bool no_memory = false;     // no data, as the heap has none: not because of the bound
};

// What a block from the heap is for, which decides whether the bound may refuse it.
enum class BlockUse : std::uint8_t {
  kBounded,  // data that can wait at its sender
  kPacket,   // what a packet brought that has been taken, or brings on the channel unasked: its
             // sender's credit bounds it, and what is behind it has to be read
  kOwn,  // the caller's own data (a copy that it wants to keep, a buffer of which it has one at a
         // time), which no peer can make grow
};

// Sizes 64 B … 256 KB in powers of two; larger ones are made to measure, in ordinary context only.
// Gate held throughout.
class Blocks {
 public:
  static constexpr std::uint32_t kClasses = 13;
  static constexpr std::uint32_t kExact = kClasses;  // size_class of a block made to measure
  static constexpr std::uint64_t kSmallest = 64;
  static constexpr std::uint64_t kLargest = kSmallest << (kClasses - 1);

  // In use by kBounded and stock together never exceed bytes_max plus the initial stock (at most
  // 1/4 of bytes_max, at least 384 KB) by more than the least stock (131 KB). Blocks for packets
  // are bounded by their senders' credit, those of kOwn by their takers.
  explicit Blocks(std::uint64_t bytes_max);
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  // What `bytes` take up: 0, a class size, or for large ones the bytes and a header.
  static std::uint64_t footprint(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    if (bytes == 0) return 0;
    const std::uint32_t c = class_of(bytes);
    return c == kExact ? bytes + sizeof(ExactHeader) : class_bytes(c);
  }

  // From the stock: the fitting class or a larger one. No data: none there. Signal-safe.
  Block take(std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  // From the stock or the heap. No data: the bound is reached or no memory (Block::no_memory); for
  // kPacket only if ready(bytes) was false. Ordinary context.
  MPLITE_ORDINARY Block take_or_allocate(std::uint64_t bytes, BlockUse use = BlockUse::kBounded);
  // Back to the stock, or onto the list of what refill() frees. Signal-safe.
  void give(Block block) MPLITE_SIGNAL_SAFE;

  // Whether take(bytes) would succeed.
  bool ready(std::uint64_t bytes) const MPLITE_SIGNAL_SAFE {
    for (std::uint32_t c = class_of(bytes); c < kClasses; ++c)
      if (free_[c] != nullptr) return true;
    return bytes == 0;
  }
  // Whether the least stock is there at the cost of the bound: then it is kept for packets that
  // ordinary context takes.
  bool over_bound() const MPLITE_SIGNAL_SAFE { return total_ > bytes_max_; }
  // Tops the stock up, frees what is too much. Ordinary context; costs a branch when there is
  // nothing to do. True: ready(kPacketDataMax), whatever the bound and whatever is in use. False:
  // no memory for that.
  bool refill() { return !wants_refill_ || refill_slow(); }
  bool wants_refill() const MPLITE_SIGNAL_SAFE { return wants_refill_; }

  // In all, beyond the bound too.
  std::uint64_t bytes_in_use() const MPLITE_SIGNAL_SAFE { return in_use_; }
  // Not in use.
  std::uint64_t bytes_ready() const MPLITE_SIGNAL_SAFE { return total_ + beyond_ - in_use_; }
  // What the bound counts: the stock, and what is in use and not beyond the bound.
  std::uint64_t bytes_total() const MPLITE_SIGNAL_SAFE { return total_; }

 private:
  struct Free {  // at the start of a free block
    Free* next;
  };
  struct ExactHeader {    // in front of a block made to measure
    std::uint64_t bytes;  // given back: of those that the bound counts
    ExactHeader* next;
  };
  static std::uint32_t class_of(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    if (bytes <= kSmallest) return 0;
    if (bytes > kLargest) return kExact;
    return static_cast<std::uint32_t>(64 - __builtin_clzll(bytes - 1)) - 6;  // 65…128 -> 1
  }
  static std::uint64_t class_bytes(std::uint32_t size_class) MPLITE_SIGNAL_SAFE {
    return kSmallest << size_class;
  }
  MPLITE_ORDINARY bool refill_slow();
  bool fits(std::uint64_t bytes);
  bool add_to_stock(std::uint32_t size_class, std::uint32_t wanted, bool beyond_bound);
  Block mark(Block block, BlockUse use) MPLITE_SIGNAL_SAFE;
  void shrink(std::uint32_t size_class, std::uint32_t keep);

  Free* free_[kClasses] = {};
  std::uint32_t free_count_[kClasses] = {};
  std::uint32_t stock_[kClasses] = {};  // wanted ready
  std::uint32_t least_[kClasses] = {};  // of it, kept ready whatever the bound: what packets need
  ExactHeader* dead_ = nullptr;         // exact blocks given back, perhaps in the handler
  std::uint64_t bytes_max_;
  std::uint64_t total_ = 0;
  std::uint64_t in_use_ = 0;
  std::uint64_t beyond_ = 0;  // of these, what the bound does not count
  bool wants_refill_ = true;
};

}  // namespace ch_lite
