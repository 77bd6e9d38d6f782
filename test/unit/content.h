// What messages of tests consist of.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../sim/random.h"

using Bytes = std::vector<std::uint8_t>;

// Each message has its own content, so that a mixed-up one is seen.
inline Bytes content(std::size_t size, std::uint64_t which) {
  Bytes bytes(size);
  sim::Random random(which + 1);
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(&bytes[i], &word, std::min<std::size_t>(8, size - i));
  }
  return bytes;
}
