// Nodes, generations and bounds of the pools that the handler lives on.
#include <cstdint>
#include <set>
#include <vector>

#include "mplite/base/pool.h"
#include "run_tests.h"

namespace {
struct Node {
  Node* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  int value = 7;
};
using Small = mplite::Pool<Node, 4>;
constexpr std::uint64_t kGeneration = std::uint64_t{1} << 32;
}  // namespace

START_TEST(empty_pool_gives_nothing_and_does_not_allocate) {
  Small pool;
  ck_assert_ptr_null(pool.take());
  ck_assert_uint_eq(pool.free_count(), 0);
  ck_assert_uint_eq(pool.used_count(), 0);
}
END_TEST

START_TEST(reserve_makes_that_many_free) {
  Small pool;
  ck_assert(pool.reserve(9));
  ck_assert_uint_ge(pool.free_count(), 9);
  for (int i = 0; i < 9; ++i) ck_assert_ptr_nonnull(pool.take());
  ck_assert_uint_eq(pool.used_count(), 9);
}
END_TEST

START_TEST(bound_on_nodes_is_kept) {
  Small pool(8);
  ck_assert(!pool.reserve(9));
  ck_assert(pool.reserve(8));
  for (int i = 0; i < 8; ++i) ck_assert_ptr_nonnull(pool.take());
  ck_assert(!pool.reserve(1));
  ck_assert_ptr_null(pool.take());
}
END_TEST

START_TEST(addresses_stay_when_the_pool_grows) {
  Small pool;
  ck_assert(pool.reserve(1));
  Node* first = pool.take();
  first->value = 42;
  const std::uint64_t handle = first->pool_handle;
  ck_assert(pool.reserve(1000));
  ck_assert_ptr_eq(pool.find(handle), first);
  ck_assert_int_eq(first->value, 42);
}
END_TEST

START_TEST(taken_node_is_fresh) {
  Small pool;
  ck_assert(pool.reserve(1));
  Node* node = pool.take();
  node->value = 1;
  pool.give(node);
  ck_assert_int_eq(pool.take()->value, 7);
}
END_TEST

START_TEST(handles_of_live_nodes_are_found_and_distinct) {
  Small pool;
  ck_assert(pool.reserve(20));
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 20; ++i) {
    Node* node = pool.take();
    ck_assert(node->pool_handle != 0);  // 0 means none
    ck_assert_ptr_eq(pool.find(node->pool_handle), node);
    ck_assert(seen.insert(node->pool_handle).second);
  }
}
END_TEST

START_TEST(stale_handle_is_found_out) {
  Small pool;
  ck_assert(pool.reserve(1));
  Node* node = pool.take();
  const std::uint64_t old = node->pool_handle;
  pool.give(node);
  ck_assert_ptr_null(pool.find(old));
  for (int i = 0; i < 8; ++i) {  // whoever has the node now has another handle
    Node* again = pool.take();
    if (again == nullptr) break;
    ck_assert(again->pool_handle != old);
  }
  ck_assert_ptr_null(pool.find(old));
}
END_TEST

START_TEST(forged_handle_never_names_a_free_node) {
  Small pool;
  ck_assert(pool.reserve(4));
  std::vector<Node*> live;
  for (int i = 0; i < 3; ++i) live.push_back(pool.take());
  pool.give(live.back());
  live.pop_back();
  std::set<std::uint64_t> good;
  for (Node* node : live) good.insert(node->pool_handle);
  for (std::uint64_t generation = 0; generation < 16; ++generation)
    for (std::uint64_t index = 0; index < 12; ++index) {
      const std::uint64_t handle = generation * kGeneration + index;
      ck_assert_int_eq(pool.find(handle) != nullptr, good.count(handle) != 0);
    }
}
END_TEST

START_TEST(handle_with_an_index_out_of_range_is_not_found) {
  Small pool;
  ck_assert_ptr_null(pool.find(0));
  ck_assert_ptr_null(pool.find(kGeneration));
  ck_assert(pool.reserve(4));
  ck_assert_ptr_null(pool.find(kGeneration + 4));
  ck_assert_ptr_null(pool.find(~std::uint64_t{0}));
}
END_TEST

int main() { return run_tests("pool"); }
