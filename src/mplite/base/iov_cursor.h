// Where the bytes of a message are in memory: one buffer, or pieces (an iovec array, as a derived
// datatype makes it), in packed order. Used by the engine, the channel and the device. Owns
// nothing: the array and the memory belong to whoever started the operation.
#pragma once
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mplite/base/signal_safe.h"

namespace mplite {

inline constexpr std::size_t kCopyStep = 2048;
void copy_in_steps(void* to, const void* from, std::size_t bytes) MPLITE_SIGNAL_SAFE;

// memcpy for what may be long. From 2 KB on that is one `rep movsb` in glibc 2.36, which takes
// AMD's Zen 3 and 4 25 times as long if the destination begins some bytes behind the source within
// a page (measured: 8 to 15 bytes 25 times, up to 31 twice; 16 KB, Zen 4). There, and there only,
// the copy is made in steps that are shorter than that.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) MPLITE_SIGNAL_SAFE {
  if (bytes - 8 <= 8) {  // a number or two: less than the call
    std::uint64_t first, last;
    std::memcpy(&first, from, 8);
    std::memcpy(&last, static_cast<const std::uint8_t*>(from) + bytes - 8, 8);
    std::memcpy(to, &first, 8);
    std::memcpy(static_cast<std::uint8_t*>(to) + bytes - 8, &last, 8);
    return;
  }
  const auto behind =
      (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % 4096;
  if (bytes > kCopyStep && behind - 1 < 63) [[unlikely]]
    return copy_in_steps(to, from, bytes);
  std::memcpy(to, from, bytes);
}

// How many bytes it is, stands beside it. `pieces` null: contiguous at `buffer`. Pieces may be
// empty, may overlap in a send, and hold at least that many bytes together (lite_isendv and its kin
// check it); what they hold beyond is not touched.
struct Memory {
  Memory() = default;
  Memory(const void* contiguous)
      : buffer(static_cast<std::uint8_t*>(const_cast<void*>(contiguous))) {
  }  // NOLINT: a buffer is the usual case
  static Memory in_pieces(const iovec* pieces) {
    Memory memory;
    memory.pieces = pieces;
    return memory;
  }

  std::uint8_t* buffer = nullptr;  // a send only reads it
  const iovec* pieces = nullptr;
};

// A place in a list of pieces, moved forward only: each piece is passed once, so a whole message
// costs its number of pieces. The caller knows how many bytes there are; the list's end is not
// looked for.
struct IovCursor {
  const iovec* piece = nullptr;  // null: there are no pieces (contiguous)
  std::uint64_t into = 0;        // bytes of it that lie behind

  explicit operator bool() const MPLITE_SIGNAL_SAFE { return piece != nullptr; }
  void skip(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    while (bytes > 0) {
      const std::uint64_t rest = piece->iov_len - into;
      if (bytes < rest) {
        into += bytes;
        return;
      }
      bytes -= rest;
      ++piece;
      into = 0;
    }
  }
  // `bytes` is not more than what is left of this piece; an empty one is passed.
  void skip_within(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    into += bytes;
    if (into < piece->iov_len) return;
    ++piece;
    into = 0;
  }
  // The next `bytes` as at most `out_max` non-empty iovecs. Returns how many; `listed`: the bytes
  // in them.
  int list(std::uint64_t bytes, iovec* out, int out_max,
           std::uint64_t& listed) const MPLITE_SIGNAL_SAFE;
  // Moves `bytes` into, or out of, the pieces, and the cursor behind them.
  void scatter(const void* from, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  void gather(void* to, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
};

// Copies `bytes` between memory of either kind; the two do not overlap. Signal-safe.
void copy(const Memory& to, const Memory& from, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;

}  // namespace mplite
