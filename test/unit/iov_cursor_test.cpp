// Memory in pieces: the cursor at every byte, copies between every kind of memory, checked byte by
// byte.
#include "mplite/base/iov_cursor.h"

#include <chrono>
#include <cstring>
#include <random>

#include "in_pieces.h"
#include "run_tests.h"

using namespace mplite;

namespace {

std::vector<std::uint8_t> bytes_of(std::size_t n) {
  std::vector<std::uint8_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::uint8_t>(i % 160 + 1);  // never a gap
  return v;
}

const std::vector<std::size_t> kLengths = {0, 1, 5, 0, 0, 17, 2, 64, 0, 1, 1, 30, 0};

std::vector<std::uint8_t> gathered(const iovec* list, int count) {
  std::vector<std::uint8_t> all;
  for (int i = 0; i < count; ++i) {
    ck_assert_uint_gt(list[i].iov_len, 0);
    const auto* p = static_cast<const std::uint8_t*>(list[i].iov_base);
    all.insert(all.end(), p, p + list[i].iov_len);
  }
  return all;
}

}  // namespace

START_TEST(skipping_to_every_byte_lists_the_rest) {
  InPieces memory(kLengths);
  const auto data = bytes_of(memory.bytes());
  memory.fill(data);
  for (std::size_t to = 0; to <= data.size(); ++to)
    for (std::size_t first = 0; first <= to; first += 3) {  // in two steps
      IovCursor c{memory.pieces()};
      c.skip(first);
      c.skip(to - first);
      iovec list[32];
      std::uint64_t listed = 99;
      const int count = c.list(data.size() - to, list, 32, listed);
      ck_assert_uint_eq(listed, data.size() - to);
      ck_assert(
          gathered(list, count) ==
          std::vector<std::uint8_t>(data.begin() + static_cast<std::ptrdiff_t>(to), data.end()));
    }
}
END_TEST

START_TEST(list_stops_at_the_bytes_and_at_the_entries) {
  InPieces memory(kLengths);
  const auto data = bytes_of(memory.bytes());
  memory.fill(data);
  for (std::size_t bytes = 0; bytes <= data.size(); ++bytes)
    for (int entries = 0; entries < 10; ++entries) {
      iovec list[16];
      list[entries].iov_base = nullptr;
      std::uint64_t listed = 99;
      const int count = IovCursor{memory.pieces()}.list(bytes, list, entries, listed);
      ck_assert_int_le(count, entries);
      ck_assert(count == entries || listed == bytes);
      ck_assert_ptr_null(list[entries].iov_base);
      ck_assert(gathered(list, count) ==
                std::vector<std::uint8_t>(data.begin(),
                                          data.begin() + static_cast<std::ptrdiff_t>(listed)));
    }
}
END_TEST

START_TEST(scatter_and_gather_cut_anywhere) {
  for (std::size_t cut = 0;; ++cut) {
    InPieces memory(kLengths);
    const auto data = bytes_of(memory.bytes());
    if (cut > data.size()) break;
    IovCursor in{memory.pieces()};
    in.scatter(data.data(), cut);
    ck_assert(memory.untouched_but(cut));
    in.scatter(data.data() + cut, data.size() - cut);
    ck_assert(memory.packed() == data);
    ck_assert(memory.untouched_but(data.size()));
    std::vector<std::uint8_t> out(data.size());
    IovCursor from{memory.pieces()};
    from.gather(out.data(), cut);
    from.gather(out.data() + cut, data.size() - cut);
    ck_assert(out == data);
  }
}
END_TEST

START_TEST(copy_between_every_kind_of_memory) {
  std::mt19937 engine(5);
  const auto random = [&engine](std::size_t n) { return engine() % n; };
  for (int round = 0; round < 3000; ++round) {
    const std::size_t bytes = random(300);
    const auto data = bytes_of(bytes);
    InPieces from = InPieces::random(bytes + random(20), 1 + random(60), random);
    InPieces to = InPieces::random(bytes + random(20), 1 + random(60), random);
    from.fill(data);
    copy(Memory::in_pieces(to.pieces()), Memory::in_pieces(from.pieces()), bytes);
    auto got = to.packed();
    got.resize(bytes);
    ck_assert(got == data);
    ck_assert(to.untouched_but(bytes));
    std::vector<std::uint8_t> flat(bytes + 1, 0xee);
    copy(flat.data(), Memory::in_pieces(from.pieces()), bytes);
    ck_assert_uint_eq(flat[bytes], 0xee);
    ck_assert(std::equal(data.begin(), data.end(), flat.begin()));
    InPieces again = InPieces::random(bytes, 1 + random(60), random);
    copy(Memory::in_pieces(again.pieces()), flat.data(), bytes);
    ck_assert(again.packed() == data);
    std::vector<std::uint8_t> whole(bytes + 1);
    copy(whole.data(), flat.data(), bytes);
    ck_assert(std::equal(data.begin(), data.end(), whole.begin()));
  }
}
END_TEST

START_TEST(long_copies_are_right_at_every_distance) {
  constexpr std::size_t kMost = 3 * kCopyStep + 7;
  alignas(4096) static std::uint8_t from[4096 + kMost], to[4096 + 2 * 4096 + kMost];
  for (std::size_t i = 0; i < sizeof from; ++i)
    from[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  for (std::size_t behind = 0; behind < 4096; behind += behind < 80 ? 1 : 251)
    for (const std::size_t bytes : {std::size_t{1}, kCopyStep - 1, kCopyStep, kCopyStep + 1,
                                    2 * kCopyStep, 2 * kCopyStep + 1, kMost}) {
      const std::size_t into = 8 + behind;
      std::memset(to, 0xee, sizeof to);
      copy_bytes(to + into, from + 8, bytes);
      ck_assert_int_eq(std::memcmp(to + into, from + 8, bytes), 0);
      ck_assert_uint_eq(to[into - 1], 0xee);
      ck_assert_uint_eq(to[into + bytes], 0xee);
    }
}
END_TEST

// 25 times as long it is with memcpy of glibc 2.36 on AMD's Zen 3 and 4; elsewhere this cannot
// fail.
START_TEST(a_copy_takes_its_time_wherever_it_goes) {
  constexpr std::size_t kBytes = 16 * 1024;
  alignas(4096) static std::uint8_t from[kBytes + 4096], to[kBytes + 4096];
  const auto least_ns = [&](std::size_t behind) {
    std::int64_t least = INT64_MAX;
    for (int i = 0; i < 400; ++i) {
      const auto start = std::chrono::steady_clock::now();
      copy(to + 64 + behind, from + 64, kBytes);
      least = std::min<std::int64_t>(
          least, std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
    }
    return least;
  };
  const std::int64_t same_place = least_ns(0);
  for (const std::size_t behind : {1, 8, 15, 16, 31, 63})
    ck_assert_int_lt(least_ns(behind), 5 * same_place + 1000);
}
END_TEST

int main() { return run_tests("iov_cursor"); }
