// Memory for the data of unexpected messages.
#include "blocks.h"

#include <algorithm>
#include <cstdlib>

#include "check.h"
#include "packet.h"

namespace ch_lite {
namespace {

constexpr std::uint32_t kStockBlocksMax = 256;  // of one class: what the handler can take between two MPI calls
constexpr std::uint32_t kStockBlocksMin = 2;
constexpr std::uint32_t kSurplus = 4;  // times the stock may lie free before it goes back to the heap

}  // namespace

Blocks::Blocks(std::uint64_t bytes_max) : bytes_max_(bytes_max) {
  const std::uint64_t per_class = std::clamp<std::uint64_t>(bytes_max / 64, 16 * 1024, 256 * 1024);
  for (std::uint32_t c = 0; c < kClasses; ++c)
    stock_[c] = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(per_class / class_bytes(c), 0, kStockBlocksMax));
  // One control packet's worth must always be possible (headroom), whatever the bound.
  for (std::uint32_t c = 0; c <= class_of(kPacketDataMax); ++c) stock_[c] = std::max(stock_[c], kStockBlocksMin);
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

// Room for `bytes` more below the bound, if need be by giving up stock.
bool Blocks::fits(std::uint64_t bytes) {
  for (std::uint32_t c = kClasses; total_ + bytes > bytes_max_ && c-- > 0;) shrink(c, 0);
  if (total_ + bytes <= bytes_max_) return true;
  wants_refill_ = true;
  return false;
}

Block Blocks::take_or_allocate(std::uint64_t bytes, bool beyond_bound) {
  if (bytes == 0) return {};
  const std::uint32_t c = class_of(bytes);
  if (c < kClasses && free_[c] != nullptr) return take(bytes);
  const std::uint64_t size = footprint(bytes);
  if (size < bytes) return {};
  if (!beyond_bound && !fits(size)) return {};
  void* memory = std::malloc(size);
  if (memory == nullptr) return {};
  total_ += size;
  in_use_ += size;
  if (c < kClasses) return {memory, c};
  auto* header = static_cast<ExactHeader*>(memory);
  header->bytes = size;
  return {header + 1, kExact};
}

void Blocks::give(Block block) {
  if (block.data == nullptr) return;
  if (block.size_class == kExact) {
    ExactHeader* header = static_cast<ExactHeader*>(block.data) - 1;
    CHLITE_CHECK(in_use_ >= header->bytes);
    in_use_ -= header->bytes;
    header->next = dead_;
    dead_ = header;
    wants_refill_ = true;
    return;
  }
  const std::uint32_t c = block.size_class;
  in_use_ -= class_bytes(c);
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

bool Blocks::refill_slow() {
  wants_refill_ = false;
  while (dead_ != nullptr) {
    ExactHeader* next = dead_->next;
    total_ -= dead_->bytes;
    std::free(dead_);
    dead_ = next;
  }
  for (std::uint32_t c = kClasses; total_ > bytes_max_ && c-- > 0;) shrink(c, stock_[c]);
  for (std::uint32_t c = 0; c < kClasses; ++c) {
    if (free_count_[c] > kSurplus * stock_[c]) shrink(c, stock_[c]);
    while (free_count_[c] < stock_[c]) {
      // Small classes first: they are what control packets need. At the bound the rest waits for blocks to come back.
      if (total_ + class_bytes(c) > bytes_max_) {
        wants_refill_ = true;
        return ready(16 * 1024);
      }
      auto* block = static_cast<Free*>(std::malloc(class_bytes(c)));
      if (block == nullptr) {
        wants_refill_ = true;
        return false;
      }
      total_ += class_bytes(c);
      block->next = free_[c];
      free_[c] = block;
      ++free_count_[c];
    }
  }
  return true;
}

}  // namespace ch_lite
