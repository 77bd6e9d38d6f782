// Size classes, stock and bound of the memory for unexpected data.
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "ch_lite/blocks.h"
#include "ch_lite/packet.h"
#include "run_tests.h"

using namespace ch_lite;

START_TEST(footprint_is_the_smallest_class_that_fits) {
  ck_assert_uint_eq(Blocks::footprint(0), 0);
  ck_assert_uint_eq(Blocks::footprint(1), 64);
  ck_assert_uint_eq(Blocks::footprint(64), 64);
  ck_assert_uint_eq(Blocks::footprint(65), 128);
  ck_assert_uint_eq(Blocks::footprint(128), 128);
  ck_assert_uint_eq(Blocks::footprint(129), 256);
  ck_assert_uint_eq(Blocks::footprint(Blocks::kLargest), Blocks::kLargest);
  ck_assert_uint_ge(Blocks::footprint(Blocks::kLargest + 1), Blocks::kLargest + 1);
}
END_TEST

START_TEST(nothing_is_ready_before_the_first_refill) {
  Blocks b(1 << 20);
  ck_assert(!b.ready(1));
  ck_assert_ptr_null(b.take(1).data);
  ck_assert(b.refill());
  ck_assert(b.ready(1));
  ck_assert(b.ready(kPacketDataMax));
}
END_TEST

START_TEST(take_without_stock_of_the_class_uses_a_larger_block) {
  Blocks b(1 << 20);
  ck_assert(b.refill());
  std::vector<Block> taken;
  while (true) {
    const Block block = b.take(64);
    ck_assert_ptr_nonnull(block.data);
    std::memset(block.data, 0xab, 64);
    taken.push_back(block);
    if (block.size_class != 0) break;
  }
  for (Block block : taken) b.give(block);
  ck_assert_uint_eq(b.bytes_in_use(), 0);
}
END_TEST

START_TEST(take_never_allocates_and_refill_restocks) {
  Blocks b(1 << 20);
  ck_assert(b.refill());
  const std::uint64_t total = b.bytes_total();
  std::vector<Block> taken;
  for (Block block = b.take(kPacketDataMax); block.data != nullptr; block = b.take(kPacketDataMax)) taken.push_back(block);
  ck_assert_uint_eq(b.bytes_total(), total);
  ck_assert(!b.ready(kPacketDataMax));
  ck_assert(b.refill());
  ck_assert(b.ready(kPacketDataMax));
  for (Block block : taken) b.give(block);
}
END_TEST

START_TEST(large_blocks_are_made_to_measure_and_freed_by_refill_only) {
  Blocks b(64u << 20);
  ck_assert(b.refill());
  const std::uint64_t stock = b.bytes_total();
  ck_assert(!b.ready(Blocks::kLargest + 1));
  const Block block = b.take_or_allocate(10000000);
  ck_assert_ptr_nonnull(block.data);
  ck_assert_uint_eq(reinterpret_cast<std::uintptr_t>(block.data) % 16, 0);
  std::memset(block.data, 1, 10000000);
  ck_assert_uint_eq(b.bytes_in_use(), Blocks::footprint(10000000));
  b.give(block);
  ck_assert_uint_eq(b.bytes_in_use(), 0);
  ck_assert_uint_gt(b.bytes_total(), stock);  // give may run in the handler
  ck_assert(b.refill());
  ck_assert_uint_eq(b.bytes_total(), stock);
}
END_TEST

START_TEST(bound_holds_and_given_up_stock_comes_back) {
  constexpr std::uint64_t kMax = 1 << 20;
  Blocks b(kMax);
  ck_assert(b.refill());
  const std::uint64_t bound = kMax + b.bytes_total();
  std::vector<Block> taken;
  for (;;) {
    const Block block = b.take_or_allocate(10000);
    if (block.data == nullptr) break;
    taken.push_back(block);
    ck_assert_uint_le(b.bytes_total(), bound);
  }
  ck_assert_uint_ge(b.bytes_in_use(), kMax);
  const Block own = b.take_or_allocate(10000, true);
  ck_assert_ptr_nonnull(own.data);
  b.give(own);
  for (Block block : taken) b.give(block);
  ck_assert(b.refill());
  ck_assert(b.ready(64) && b.ready(kPacketDataMax));
  ck_assert_uint_le(b.bytes_total(), bound);
}
END_TEST

START_TEST(surplus_goes_back_to_the_heap) {
  Blocks b(256u << 20);
  ck_assert(b.refill());
  const std::uint64_t stock = b.bytes_total();
  std::vector<Block> taken;
  for (int i = 0; i < 20000; ++i) taken.push_back(b.take_or_allocate(1000));
  for (Block block : taken) b.give(block);
  ck_assert(b.refill());
  ck_assert_uint_le(b.bytes_total(), 2 * stock);
}
END_TEST

START_TEST(blocks_in_use_never_overlap) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    std::mt19937 random(seed);
    Blocks b(8 << 20);
    struct Used {
      Block block;
      std::uint64_t bytes;
      unsigned char mark;
    };
    std::vector<Used> used;
    for (int step = 0; step < 3000; ++step) {
      const unsigned what = random() % 8;
      if (what < 4) {
        const std::uint64_t bytes = 1 + random() % (what == 0 ? 300000 : 2000);
        const Block block = what % 2 != 0 ? b.take(bytes) : b.take_or_allocate(bytes);
        if (block.data == nullptr) continue;
        const auto mark = static_cast<unsigned char>(random());
        std::memset(block.data, mark, bytes);
        used.push_back({block, bytes, mark});
      } else if (what < 7 && !used.empty()) {
        const std::size_t at = random() % used.size();
        const auto* p = static_cast<const unsigned char*>(used[at].block.data);
        const bool whole = p[0] == used[at].mark && std::memcmp(p, p + 1, used[at].bytes - 1) == 0;
        ck_assert_msg(whole, "seed %u step %d", seed, step);
        b.give(used[at].block);
        used[at] = used.back();
        used.pop_back();
      } else {
        b.refill();
      }
    }
    for (const Used& u : used) b.give(u.block);
    ck_assert_uint_eq(b.bytes_in_use(), 0);
  }
}
END_TEST

int main() {
  return run_tests("blocks",
                   {footprint_is_the_smallest_class_that_fits, nothing_is_ready_before_the_first_refill,
                    take_without_stock_of_the_class_uses_a_larger_block, take_never_allocates_and_refill_restocks,
                    large_blocks_are_made_to_measure_and_freed_by_refill_only,
                    bound_holds_and_given_up_stock_comes_back, surplus_goes_back_to_the_heap,
                    blocks_in_use_never_overlap}, 60);
}
