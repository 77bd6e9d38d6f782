// The attention queue: reasons add up, each node is served once per pass, passes are bounded.
#include <vector>

#include "ch_lite/core/attention.h"
#include "run_tests.h"

using namespace ch_lite;

namespace {

struct Node : AttentionNode {
  int served = 0;
  std::uint16_t reasons = 0;
};

}  // namespace

START_TEST(reasons_of_one_node_are_served_together) {
  AttentionQueue queue;
  Node node;
  ck_assert(queue.empty());
  queue.add(node, kAttentionCredit);
  queue.add(node, kAttentionLost);
  ck_assert(!queue.empty());
  queue.serve([](AttentionNode& n, std::uint16_t reasons) {
    ++static_cast<Node&>(n).served;
    static_cast<Node&>(n).reasons = reasons;
  });
  ck_assert_int_eq(node.served, 1);
  ck_assert_uint_eq(node.reasons, kAttentionCredit | kAttentionLost);
  ck_assert_uint_eq(node.attention, 0);
  ck_assert(!node.on_attention_list && queue.empty());
}
END_TEST

START_TEST(each_node_is_served_once) {
  AttentionQueue queue;
  std::vector<Node> nodes(5);
  for (Node& node : nodes) queue.add(node, kAttentionCredit);
  queue.serve([](AttentionNode& n, std::uint16_t) { ++static_cast<Node&>(n).served; });
  for (const Node& node : nodes) ck_assert_int_eq(node.served, 1);
}
END_TEST

START_TEST(what_serving_makes_due_is_served_in_the_same_call) {
  AttentionQueue queue;
  Node first, second;
  queue.add(first, kAttentionDeferred);
  queue.serve([&](AttentionNode& n, std::uint16_t) {
    ++static_cast<Node&>(n).served;
    if (&n == &first) queue.add(second, kAttentionCredit);
  });
  ck_assert_int_eq(first.served, 1);
  ck_assert_int_eq(second.served, 1);
  ck_assert(queue.empty());
}
END_TEST

START_TEST(what_cannot_be_served_stays_and_ends_the_call) {
  AttentionQueue queue;
  Node node;
  queue.add(node, kAttentionBroken);
  queue.serve([&](AttentionNode& n, std::uint16_t reasons) {
    ++static_cast<Node&>(n).served;
    queue.add(n, reasons);
  });
  ck_assert_int_le(node.served, 3);
  ck_assert(!queue.empty());
  ck_assert_uint_eq(node.attention, kAttentionBroken);
}
END_TEST

int main() { return run_tests("attention"); }
