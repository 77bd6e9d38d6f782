// Fixed-size nodes for code that may run in the signal handler: taken and given back without
// allocation, grown in ordinary context. Used by engine.cpp (send operations) and by the device
// (requests, messages). Gate held throughout.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "mplite/base/signal_safe.h"

namespace mplite {

// Nodes have stable addresses and an index; a handle is index and generation, so a peer's stale or
// forged echo is found out. A node must have members `T* pool_next` and `std::uint64_t
// pool_handle`, both the pool's. Bounded by `nodes_max`.
template <typename T, std::uint32_t kSlabNodes = 256>
class Pool {
 public:
  explicit Pool(std::uint32_t nodes_max = 1u << 24) : nodes_max_(nodes_max) {}
  ~Pool() {
    for (std::uint32_t i = 0; i < slabs_; ++i) std::free(slab_[i]);
    std::free(slab_);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::uint32_t free_count() const MPLITE_SIGNAL_SAFE { return free_count_; }
  std::uint32_t used_count() const MPLITE_SIGNAL_SAFE { return slabs_ * kSlabNodes - free_count_; }

  // Makes at least `wanted` nodes free. Ordinary context (allocates). False: no memory, or the
  // bound is reached.
  bool reserve(std::uint32_t wanted) {
    while (free_count_ < wanted)
      if (!add_slab()) return false;
    return true;
  }

  // A node, value-initialised, or nullptr when none is free.
  T* take() MPLITE_SIGNAL_SAFE {
    T* node = free_;
    if (node == nullptr) return nullptr;
    free_ = node->pool_next;
    --free_count_;
    const std::uint64_t handle = node->pool_handle + kGeneration;
    new (node) T();
    node->pool_handle = handle;
    return node;
  }

  void give(T* node) MPLITE_SIGNAL_SAFE {
    node->pool_handle += kGeneration;  // old handles are stale from here on
    node->pool_next = free_;
    free_ = node;
    ++free_count_;
  }

  // The node of a handle, or nullptr when it is stale, forged or out of range.
  T* find(std::uint64_t handle) const MPLITE_SIGNAL_SAFE {
    const std::uint32_t index = static_cast<std::uint32_t>(handle);
    if (index >= slabs_ * kSlabNodes) return nullptr;
    T* node = &slab_[index / kSlabNodes][index % kSlabNodes];
    return node->pool_handle == handle && (handle & kGeneration) != 0 ? node : nullptr;
  }

  // A handle in 31 bits, never 0, for hosts whose packets have an int for it: the index and what
  // there is room for of the generation. 0: the index is too large.
  static std::uint32_t short_name(std::uint64_t handle) MPLITE_SIGNAL_SAFE {
    const std::uint32_t index = static_cast<std::uint32_t>(handle);
    return index >> kShortIndexBits != 0
               ? 0
               : (static_cast<std::uint32_t>(handle >> 32) & kShortGenerations) << kShortIndexBits |
                     index;
  }
  T* find_short(std::uint32_t name) const MPLITE_SIGNAL_SAFE {
    const std::uint32_t index = name & ((1u << kShortIndexBits) - 1);
    if (index >= slabs_ * kSlabNodes) return nullptr;
    T* node = &slab_[index / kSlabNodes][index % kSlabNodes];
    return short_name(node->pool_handle) == name && (node->pool_handle & kGeneration) != 0
               ? node
               : nullptr;
  }

  // Calls visit(node) for every node that is taken. For the end.
  template <typename Visit>
  void visit_taken(Visit visit) {
    for (std::uint32_t i = 0; i < slabs_ * kSlabNodes; ++i) {
      T* node = &slab_[i / kSlabNodes][i % kSlabNodes];
      if ((node->pool_handle & kGeneration) != 0) visit(node);
    }
  }

 private:
  // Odd while the node is taken: a forged handle cannot name a free node, whose next generation is
  // easy to guess.
  static constexpr std::uint64_t kGeneration = std::uint64_t{1} << 32;
  static constexpr std::uint32_t kShortIndexBits = 19, kShortGenerations = 0xFFF;

  MPLITE_ORDINARY bool add_slab() {
    if (std::uint64_t{slabs_ + 1} * kSlabNodes > nodes_max_) return false;
    auto** grown = static_cast<T**>(std::realloc(slab_, (slabs_ + 1) * sizeof(T*)));
    if (grown == nullptr) return false;
    slab_ = grown;
    T* slab = static_cast<T*>(std::aligned_alloc(alignof(T) < 64 ? 64 : alignof(T),
                                                 (kSlabNodes * sizeof(T) + 63) / 64 * 64));
    if (slab == nullptr) return false;
    slab_[slabs_] = slab;
    for (std::uint32_t i = kSlabNodes; i-- > 0;) {
      T* node = new (&slab[i]) T();
      node->pool_handle = slabs_ * kSlabNodes + i;
      node->pool_next = free_;
      free_ = node;
    }
    free_count_ += kSlabNodes;
    ++slabs_;
    return true;
  }

  T* free_ = nullptr;
  std::uint32_t free_count_ = 0;
  T** slab_ = nullptr;
  std::uint32_t slabs_ = 0;
  std::uint32_t nodes_max_;
};

}  // namespace mplite
