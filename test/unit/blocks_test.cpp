// Size classes, stock and bound of the memory for unexpected data.
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "ch_lite/core/blocks.h"
#include "ch_lite/core/packet.h"
#include "more_than_memory.h"
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
  for (Block block = b.take(kPacketDataMax); block.data != nullptr; block = b.take(kPacketDataMax))
    taken.push_back(block);
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
  const Block own = b.take_or_allocate(10000, BlockUse::kOwn);
  ck_assert_ptr_nonnull(own.data);
  b.give(own);
  for (Block block : taken) b.give(block);
  ck_assert(b.refill());
  ck_assert(b.ready(64) && b.ready(kPacketDataMax));
  ck_assert_uint_le(b.bytes_total(), bound);
}
END_TEST

// One buffer of 32 MB for an active message used to make every block beyond the bound, and the
// stock was given up for nothing.
START_TEST(own_blocks_leave_bound_and_stock_alone) {
  constexpr std::uint64_t kMax = 1 << 20;
  Blocks b(kMax);
  ck_assert(b.refill());
  const std::uint64_t stock = b.bytes_total();
  std::vector<Block> own;
  for (const std::uint64_t bytes :
       {32u << 20, 100u, 5000u, 100000u, 200000u, 200000u, 200000u, 200000u, 200000u, 200000u})
    own.push_back(b.take_or_allocate(bytes, BlockUse::kOwn));
  ck_assert(b.refill());
  ck_assert_uint_eq(b.bytes_total(), stock);
  ck_assert_uint_eq(b.bytes_ready(), stock);
  ck_assert_uint_ge(b.bytes_in_use(), 33u << 20);
  ck_assert(!b.over_bound() && b.ready(kPacketDataMax) && b.ready(Blocks::kLargest / 16));
  std::vector<Block> taken;
  for (int i = 0; i < 900; ++i) {
    taken.push_back(b.take_or_allocate(1000));
    ck_assert_ptr_nonnull(taken.back().data);
  }
  for (Block block : own) b.give(block);
  ck_assert(b.refill());
  ck_assert_uint_le(b.bytes_total(), kMax + stock);
  for (Block block : taken) b.give(block);
  ck_assert_uint_eq(b.bytes_in_use(), 0);
  ck_assert(b.refill());
  ck_assert_uint_le(b.bytes_total(), kMax + stock);
  ck_assert_uint_eq(b.bytes_ready(), b.bytes_total());
}
END_TEST

// Whatever is in use, ordinary context can take the next packet, and its block is of the fitting
// size: what credit bounds stays bounded.
START_TEST(a_packet_finds_its_block_at_the_bound) {
  constexpr std::uint64_t kMax = 64 * 1024;
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{20000}, kPacketDataMax}) {
    Blocks b(kMax);
    ck_assert(b.refill());
    std::vector<Block> taken;
    for (Block block = b.take_or_allocate(3000); block.data != nullptr;
         block = b.take_or_allocate(3000))
      taken.push_back(block);
    for (int i = 0; i < 300; ++i) {
      ck_assert(b.refill());
      ck_assert(b.ready(kPacketDataMax));
      const std::uint64_t before = b.bytes_in_use();
      const Block block = b.take_or_allocate(bytes, BlockUse::kPacket);
      ck_assert_ptr_nonnull(block.data);
      ck_assert_uint_eq(b.bytes_in_use() - before, Blocks::footprint(bytes));
      taken.push_back(block);
    }
    ck_assert(b.refill());
    ck_assert(b.over_bound());
    ck_assert_ptr_null(b.take_or_allocate(64).data);  // data that can wait does
    ck_assert(b.ready(kPacketDataMax));
    for (Block block : taken) b.give(block);
    ck_assert(b.refill());
    ck_assert(!b.over_bound());
    ck_assert_uint_eq(b.bytes_in_use(), 0);
  }
}
END_TEST

// Data waits at the bound, as blocks come back; without memory there is nothing to wait for.
START_TEST(the_bound_is_told_from_want_of_memory) {
  constexpr std::uint64_t kTooMuch = std::uint64_t{1} << 50;  // for any heap
  Blocks b(64 * 1024), wide(kTooMuch << 4);
  for (Blocks* blocks : {&b, &wide}) ck_assert(blocks->refill());
  for (const std::uint64_t bytes : {std::uint64_t{1} << 20, kTooMuch}) {
    const Block refused = b.take_or_allocate(bytes);
    ck_assert(refused.data == nullptr && !refused.no_memory);
  }
  for (const BlockUse use : {BlockUse::kBounded, BlockUse::kOwn}) {
    const Block missing = wide.take_or_allocate(kTooMuch, use);
    ck_assert(missing.data == nullptr && missing.no_memory);
  }
  const Block missing = wide.take_or_allocate(UINT64_MAX);
  ck_assert(missing.data == nullptr && missing.no_memory);
  const Block none = wide.take_or_allocate(0);
  ck_assert(none.data == nullptr && !none.no_memory);
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

int main() { return run_tests("blocks", 60); }
