// Memory for the data of unexpected messages.
#include "ch_lite/core/blocks.h"

#include <algorithm>
#include <cstdlib>

#include "ch_lite/core/check.h"
#include "ch_lite/core/packet.h"

namespace ch_lite {
namespace {

constexpr std::uint32_t kStockBlocksMax =
    256;  // of one class: what the handler can take between two MPI calls
constexpr std::uint32_t kLeastBlocks = 2;  // of each class that a packet may need
constexpr std::uint32_t kSurplus =
    4;  // times the stock may lie free before it goes back to the heap

}  // namespace

Blocks::Blocks(std::uint64_t bytes_max) : bytes_max_(bytes_max) {
  const std::uint64_t per_class = std::clamp<std::uint64_t>(bytes_max / 64, 16 * 1024, 256 * 1024);
  for (std::uint32_t c = 0; c < kClasses; ++c)
    stock_[c] = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(per_class / class_bytes(c), 0, kStockBlocksMax));
  // One control packet's worth must always be possible (headroom), whatever the bound.
  for (std::uint32_t c = 0; c <= class_of(kPacketDataMax); ++c) {
    least_[c] = kLeastBlocks;
    stock_[c] = std::max(stock_[c], kLeastBlocks);
  }
  std::uint64_t stock_bytes = 0;
  for (std::uint32_t c = 0; c < kClasses; ++c) stock_bytes += stock_[c] * class_bytes(c);
  bytes_max_ += stock_bytes;
}

Blocks::~Blocks() {
  for (std::uint32_t c = 0; c < kClasses; ++c) shrink(c, 0);
  while (dead_ != nullptr) {
    ExactHeader* next = dead_->next;
    std::free(dead_);
    dead_ = next;
  }
}

Block Blocks::take(std::uint64_t bytes) {
  if (bytes == 0) return {};
  for (std::uint32_t c = class_of(bytes); c < kClasses; ++c) {
    Free* block = free_[c];
    if (block == nullptr) continue;
    free_[c] = block->next;
    --free_count_[c];
    in_use_ += class_bytes(c);
    if (free_count_[c] < stock_[c]) wants_refill_ = true;
    return {block, c};
  }
  return {};
}

// Room for `bytes` more below the bound, if need be by giving up stock, but never the least stock,
// and none when that would not do.
bool Blocks::fits(std::uint64_t bytes) {
  if (total_ + bytes <= bytes_max_) return true;
  wants_refill_ = true;
  std::uint64_t spare = 0;
  for (std::uint32_t c = 0; c < kClasses; ++c)
    if (free_count_[c] > least_[c]) spare += (free_count_[c] - least_[c]) * class_bytes(c);
  if (total_ - spare + bytes > bytes_max_) return false;
  for (std::uint32_t c = kClasses; total_ + bytes > bytes_max_ && c-- > 0;) shrink(c, least_[c]);
  return true;
}

// The block has just been taken, and counted.
Block Blocks::mark(Block block, BlockUse use) {
  if (block.data == nullptr || use != BlockUse::kOwn) return block;
  block.beyond_bound = true;
  const std::uint64_t size = block.size_class == kExact
                                 ? (static_cast<ExactHeader*>(block.data) - 1)->bytes
                                 : class_bytes(block.size_class);
  total_ -= size;
  beyond_ += size;
  return block;
}

Block Blocks::take_or_allocate(std::uint64_t bytes, BlockUse use) {
  if (bytes == 0) return {};
  const std::uint32_t c = class_of(bytes);
  const std::uint64_t size = footprint(bytes);
  constexpr Block kNoMemory = {nullptr, 0, false, true};
  if (size < bytes) return kNoMemory;
  const bool bounded = use == BlockUse::kBounded;
  if (c < kClasses && free_[c] != nullptr && (!bounded || !over_bound()))
    return mark(take(bytes), use);
  if (bounded && !fits(size)) return {};
  void* memory = std::malloc(size);
  if (memory == nullptr) return ready(bytes) ? mark(take(bytes), use) : kNoMemory;
  total_ += size;
  in_use_ += size;
  if (c < kClasses) return mark({memory, c}, use);
  auto* header = static_cast<ExactHeader*>(memory);
  header->bytes = size;
  return mark({header + 1, kExact}, use);
}

void Blocks::give(Block block) {
  if (block.data == nullptr) return;
  if (block.size_class == kExact) {
    ExactHeader* header = static_cast<ExactHeader*>(block.data) - 1;
    CHLITE_CHECK(in_use_ >= header->bytes);
    in_use_ -= header->bytes;
    if (block.beyond_bound) {
      beyond_ -= header->bytes;
      header->bytes = 0;
    }
    header->next = dead_;
    dead_ = header;
    wants_refill_ = true;
    return;
  }
  const std::uint32_t c = block.size_class;
  in_use_ -= class_bytes(c);
  if (block.beyond_bound) {  // it is stock now
    beyond_ -= class_bytes(c);
    total_ += class_bytes(c);
  }
  auto* free = static_cast<Free*>(block.data);
  free->next = free_[c];
  free_[c] = free;
  if (++free_count_[c] > kSurplus * stock_[c] || total_ > bytes_max_) wants_refill_ = true;
}

void Blocks::shrink(std::uint32_t c, std::uint32_t keep) {
  while (free_count_[c] > keep) {
    Free* block = free_[c];
    free_[c] = block->next;
    --free_count_[c];
    total_ -= class_bytes(c);
    std::free(block);
  }
  if (keep < stock_[c]) wants_refill_ = true;
}

// Up to `wanted` of a class. False: no memory, or (unless `beyond_bound`) no room below the bound.
bool Blocks::add_to_stock(std::uint32_t c, std::uint32_t wanted, bool beyond_bound) {
  while (free_count_[c] < wanted) {
    if (!beyond_bound && total_ + class_bytes(c) > bytes_max_) return false;
    auto* block = static_cast<Free*>(std::malloc(class_bytes(c)));
    if (block == nullptr) return false;
    total_ += class_bytes(c);
    block->next = free_[c];
    free_[c] = block;
    ++free_count_[c];
  }
  return true;
}

bool Blocks::refill_slow() {
  wants_refill_ = false;
  while (dead_ != nullptr) {
    ExactHeader* next = dead_->next;
    total_ -= dead_->bytes;
    std::free(dead_);
    dead_ = next;
  }
  for (std::uint32_t c = 0; c < kClasses; ++c)
    if (free_count_[c] > kSurplus * stock_[c]) shrink(c, stock_[c]);
  for (std::uint32_t c = kClasses; total_ > bytes_max_ && c-- > 0;) shrink(c, stock_[c]);
  for (std::uint32_t c = kClasses; total_ > bytes_max_ && c-- > 0;) shrink(c, least_[c]);
  // First what no packet can be taken without, whatever the bound; then, small classes first, the
  // rest, which at the bound waits for blocks to come back.
  bool full = true;
  for (std::uint32_t c = 0; c < kClasses; ++c) full &= add_to_stock(c, least_[c], true);
  for (std::uint32_t c = 0; full && c < kClasses; ++c) full = add_to_stock(c, stock_[c], false);
  if (!full) wants_refill_ = true;
  return ready(kPacketDataMax);
}

}  // namespace ch_lite
