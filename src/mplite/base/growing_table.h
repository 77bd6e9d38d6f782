// A table that grows in place: address space for the largest one is reserved at the start, memory
// is taken as it grows, and nothing ever moves. So the signal handler may hold an index or a
// pointer into it at any time, and looking something up costs what it costs in an array. Used by
// engine, channel and device for what they keep of each peer. start and grow: ordinary context,
// gate held.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <initializer_list>
#include <new>
#include <type_traits>

namespace mplite {

template <typename T>
class GrowingTable {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  GrowingTable() = default;
  ~GrowingTable() {
    if (base_ != nullptr) munmap(base_, reserved_bytes_);
  }
  GrowingTable(const GrowingTable&) = delete;
  GrowingTable& operator=(const GrowingTable&) = delete;

  // `count` elements now, `most` ever. Where address space is short, `most` may become `count`.
  // Once. False: no memory.
  bool start(std::size_t count, std::size_t most) {
    for (const std::size_t wanted : {most, count}) {
      reserved_bytes_ = whole_pages(wanted * sizeof(T));
      // Without access it counts against no limit on memory, however strict.
      void* place = mmap(nullptr, reserved_bytes_, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (place == MAP_FAILED) continue;
      base_ = static_cast<T*>(place);
      most_ = wanted;
      return grow(count);
    }
    return false;
  }

  // Makes elements up to `count`; those that exist stay as and where they are. False: more than the
  // most, or no memory; nothing has changed then.
  bool grow(std::size_t count) {
    if (count <= size_) return true;
    if (count > most_) return false;
    const std::size_t bytes = whole_pages(count * sizeof(T));
    if (bytes > open_bytes_) {
      if (mprotect(reinterpret_cast<char*>(base_) + open_bytes_, bytes - open_bytes_,
                   PROT_READ | PROT_WRITE) != 0)
        return false;
      open_bytes_ = bytes;
    }
    for (; size_ < count; ++size_) new (base_ + size_) T();
    return true;
  }

  T* data() const { return base_; }
  std::size_t size() const { return size_; }

 private:
  static std::size_t whole_pages(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes == 0 ? page : (bytes + page - 1) / page * page;
  }

  T* base_ = nullptr;
  std::size_t size_ = 0, most_ = 0;
  std::size_t open_bytes_ = 0, reserved_bytes_ = 0;
};

}  // namespace mplite
