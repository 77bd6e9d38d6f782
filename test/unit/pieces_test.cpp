// Memory in pieces: the cursor at every byte, copies between every kind of memory, checked byte by byte.
#include "mplite/pieces.h"

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
      PieceCursor c{memory.pieces()};
      c.skip(first);
      c.skip(to - first);
      iovec list[32];
      std::uint64_t listed = 99;
      const int count = c.list(data.size() - to, list, 32, listed);
      ck_assert_uint_eq(listed, data.size() - to);
      ck_assert(gathered(list, count) == std::vector<std::uint8_t>(data.begin() + static_cast<std::ptrdiff_t>(to), data.end()));
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
      const int count = PieceCursor{memory.pieces()}.list(bytes, list, entries, listed);
      ck_assert_int_le(count, entries);
      ck_assert(count == entries || listed == bytes);
      ck_assert_ptr_null(list[entries].iov_base);
      ck_assert(gathered(list, count) == std::vector<std::uint8_t>(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(listed)));
    }
}
END_TEST

START_TEST(scatter_and_gather_cut_anywhere) {
  for (std::size_t cut = 0;; ++cut) {
    InPieces memory(kLengths);
    const auto data = bytes_of(memory.bytes());
    if (cut > data.size()) break;
    PieceCursor in{memory.pieces()};
    in.scatter(data.data(), cut);
    ck_assert(memory.untouched_but(cut));
    in.scatter(data.data() + cut, data.size() - cut);
    ck_assert(memory.packed() == data);
    ck_assert(memory.untouched_but(data.size()));
    std::vector<std::uint8_t> out(data.size());
    PieceCursor from{memory.pieces()};
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

int main() {
  return run_tests("pieces", {skipping_to_every_byte_lists_the_rest, list_stops_at_the_bytes_and_at_the_entries, scatter_and_gather_cut_anywhere,
                              copy_between_every_kind_of_memory});
}
