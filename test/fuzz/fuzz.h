// What the fuzz targets share: the input as a sequence of choices, a check that ends the run, and
// seeds that a target writes itself (so that they follow the wire format). One target per decoder
// of bytes or text that somebody else made; scripts/fuzz builds and runs them.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fuzz {

// The reason is the name of the failed condition in the stack trace's source line.
inline void check(bool good) {
  if (!good) __builtin_trap();
}

// Reads the input; behind its end everything is 0.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool any() const { return at_ != end_; }
  std::uint8_t byte() { return any() ? *at_++ : std::uint8_t{0}; }
  bool flip() { return (byte() & 1) != 0; }
  std::uint64_t below(std::uint64_t limit) {
    return limit <= 256 ? byte() % limit : number<std::uint32_t>() % limit;
  }
  template <typename T>
  T number() {
    T value = 0;
    const std::span<const std::uint8_t> from = bytes(sizeof value);
    if (!from.empty()) std::memcpy(&value, from.data(), from.size());
    return value;
  }
  std::span<const std::uint8_t> bytes(std::size_t most) {
    const std::size_t n =
        most < static_cast<std::size_t>(end_ - at_) ? most : static_cast<std::size_t>(end_ - at_);
    const std::span<const std::uint8_t> taken(at_, n);
    at_ += n;
    return taken;
  }
  std::string text(std::size_t most) {
    const std::span<const std::uint8_t> from = bytes(most);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  std::span<const std::uint8_t> rest() { return bytes(static_cast<std::size_t>(end_ - at_)); }
  // A length of what is sent or received for real: small, or at one of the library's boundaries.
  std::size_t length() {
    static constexpr std::size_t kNear[] = {256,       1'000,     2'528,      2'560,      4'096,
                                            8'192,     32 * 1024, 33 * 1024,  35 * 1024,  36 * 1024,
                                            64 * 1024, 72 * 1024, 128 * 1024, 256 * 1024, 300'000};
    const std::size_t n = byte();
    if (n < 160) return n;
    return kNear[n % std::size(kNear)] + byte() % 3 - 1;
  }
  // What a length or an offset on the wire may claim.
  std::uint64_t claim() {
    static constexpr std::uint64_t kClaims[] = {std::uint64_t{1} << 30,
                                                (std::uint64_t{1} << 30) + 1,
                                                INT32_MAX,
                                                UINT32_MAX,
                                                std::uint64_t{UINT32_MAX} + 1,
                                                INT64_MAX,
                                                std::uint64_t{1} << 63,
                                                UINT64_MAX,
                                                UINT64_MAX - 31};
    const std::uint8_t n = byte();
    if (n < 128) return n;
    if (n < 160) return length();
    return n < 224 ? kClaims[n % std::size(kClaims)] : number<std::uint64_t>();
  }

 private:
  const std::uint8_t *at_, *end_;
};

// A block of exactly so many bytes, so that the sanitizer sees a byte too much.
class Block {
 public:
  explicit Block(std::size_t bytes) : size_(bytes), bytes_(new std::uint8_t[bytes]) {
    std::memset(bytes_.get(), 0xee, bytes);
  }
  std::uint8_t* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::unique_ptr<std::uint8_t[]> bytes_;
};

// An error sentence ends where its room does and leaves a terminal alone.
inline void check_sentence(const char* text, std::size_t size) {
  const void* end = std::memchr(text, '\0', size);
  check(end != nullptr);
  for (; *text != '\0'; ++text)
    check((static_cast<unsigned char>(*text) >= ' ' || *text == '\n' || *text == '\t') &&
          *text != '\x7f');
}

using Seed = std::vector<std::uint8_t>;
template <typename T>
void put(Seed& seed, const T& value) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(&value);
  seed.insert(seed.end(), at, at + sizeof value);
}
inline void put(Seed& seed, const char* text) {
  seed.insert(seed.end(), text, text + std::strlen(text));
}

}  // namespace fuzz

// Of each target: inputs to begin with. A handful, made with the library's own encoders.
std::vector<fuzz::Seed> fuzz_seeds();

// `TARGET --write-seeds=DIRECTORY` writes them and ends.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static const char kOption[] = "--write-seeds=";
  for (int i = 1; i < *argc; ++i) {
    if (std::strncmp((*argv)[i], kOption, sizeof kOption - 1) != 0) continue;
    const std::string directory = (*argv)[i] + sizeof kOption - 1;
    int number = 0;
    for (const fuzz::Seed& seed : fuzz_seeds()) {
      const std::string path = directory + "/seed-" + std::to_string(number++);
      std::FILE* file = std::fopen(path.c_str(), "wb");
      if (file == nullptr || std::fwrite(seed.data(), 1, seed.size(), file) != seed.size() ||
          std::fclose(file) != 0) {
        std::perror(path.c_str());
        std::exit(1);
      }
    }
    std::exit(0);
  }
  return 0;
}
