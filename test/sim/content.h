// What messages of the simulations consist of: a byte follows from who sends what, and from where
// it stands. `kUntouched` is what was there before.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace sim {

constexpr std::uint8_t kUntouched = 0xee;

inline std::uint64_t key_of(int kind, int from, int to, std::uint64_t number) {
  return ((static_cast<std::uint64_t>(kind) * 64 + static_cast<std::uint64_t>(from)) * 64 +
          static_cast<std::uint64_t>(to)) *
             0x100000001b3u +
         number * 0xd6e8feb86659fd93u;
}

// The eight bytes from offset 8 * `index` on.
inline std::uint64_t content_word(std::uint64_t key, std::uint64_t index) {
  std::uint64_t x = key + index * 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ x >> 32;
}

inline void fill(std::uint8_t* to, std::size_t count, std::uint64_t key) {
  for (std::size_t at = 0; at < count; at += 8) {
    const std::uint64_t word = content_word(key, at / 8);
    if (count - at >= 8)  // most of the time: without a call
      std::memcpy(to + at, &word, 8);
    else
      std::memcpy(to + at, &word, count - at);
  }
}

// How many bytes from the first on are right.
inline std::size_t right_bytes(const std::uint8_t* is, std::size_t count, std::uint64_t key) {
  for (std::size_t at = 0; at < count; at += 8) {
    const std::uint64_t word = content_word(key, at / 8);
    const std::size_t bytes = std::min<std::size_t>(8, count - at);
    std::uint64_t there = word;
    if (bytes == 8)  // most of the time: without a call
      std::memcpy(&there, is + at, 8);
    else
      std::memcpy(&there, is + at, bytes);
    if (there == word) continue;
    std::uint8_t wanted[8];
    std::memcpy(wanted, &word, 8);
    return static_cast<std::size_t>(std::mismatch(is + at, is + at + bytes, wanted).first - is);
  }
  return count;
}
// The same of a buffer of which only the first `delivered` bytes were written.
inline std::size_t right_bytes(const std::vector<std::uint8_t>& buffer, std::size_t delivered,
                               std::uint64_t key) {
  const std::size_t right = right_bytes(buffer.data(), delivered, key);
  if (right != delivered) return right;
  const auto rest = buffer.begin() + static_cast<std::ptrdiff_t>(delivered);
  const auto wrong = std::find_if(rest, buffer.end(), [](auto byte) { return byte != kUntouched; });
  return static_cast<std::size_t>(wrong - buffer.begin());
}

}  // namespace sim
