// Memory in pieces for tests: pieces of given or random lengths, empty ones among them, with gaps
// between them that must stay untouched, in an order that is not that of their addresses.
#pragma once
#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

class InPieces {
 public:
  static constexpr std::uint8_t kGap = 0xa5;

  // Every piece is preceded and followed by `gap` bytes.
  explicit InPieces(const std::vector<std::size_t>& lengths, std::size_t gap = 3) {
    std::size_t whole = gap;
    for (const std::size_t length : lengths) whole += length + gap;
    memory_.assign(whole, kGap);
    std::size_t at = whole;  // backwards in memory
    for (const std::size_t length : lengths) {
      at -= gap + length;
      pieces_.push_back({memory_.data() + at, length});
      bytes_ += length;
    }
  }
  // `bytes` in all, in pieces of 0 … longest, by random(n) in [0, n).
  template <typename Random>
  static InPieces random(std::size_t bytes, std::size_t longest, Random&& random) {
    std::vector<std::size_t> lengths;
    for (std::size_t left = bytes; left > 0;) {
      lengths.push_back(std::min<std::size_t>(left, random(longest + 1)));
      left -= lengths.back();
    }
    if (random(4) == 0) lengths.push_back(0);
    return InPieces(lengths, random(4));
  }
  InPieces(InPieces&&) = default;
  InPieces& operator=(InPieces&&) = default;

  const iovec* pieces() const { return pieces_.data(); }
  std::size_t count() const { return pieces_.size(); }
  std::size_t bytes() const { return bytes_; }

  void fill(const std::vector<std::uint8_t>& packed) {
    std::size_t i = 0;
    for (const iovec& p : pieces_) {
      const std::size_t n = std::min(p.iov_len, packed.size() - i);
      if (n > 0) std::memcpy(p.iov_base, packed.data() + i, n);
      i += n;
    }
  }
  std::vector<std::uint8_t> packed() const {
    std::vector<std::uint8_t> all;
    for (const iovec& p : pieces_)
      all.insert(all.end(), static_cast<const std::uint8_t*>(p.iov_base),
                 static_cast<const std::uint8_t*>(p.iov_base) + p.iov_len);
    return all;
  }
  // Whether nothing but the first `written` bytes differs from what the constructor left.
  bool untouched_but(std::size_t written) const {
    const std::uint8_t* end = memory_.data() + memory_.size();
    for (const iovec& p : pieces_) {
      const std::size_t n = std::min(p.iov_len, written);
      const auto* const piece = static_cast<const std::uint8_t*>(p.iov_base);
      if (!all_gap(piece + n, end)) return false;
      written -= n;
      end = piece;
    }
    return all_gap(memory_.data(), end);
  }

 private:
  // Each byte is the one before it, and the first is kGap.
  static bool all_gap(const std::uint8_t* from, const std::uint8_t* to) {
    return from == to ||
           (*from == kGap &&
            std::memcmp(from, from + 1, static_cast<std::size_t>(to - from) - 1) == 0);
  }

  std::vector<std::uint8_t> memory_;
  std::vector<iovec> pieces_;
  std::size_t bytes_ = 0;
};
