// The table of requests: lists by peer, completions in order, handles, and what is reused first.
#include "ch_lite/core/request_table.h"
#include "run_tests.h"

using namespace ch_lite;

namespace {

Request* begun(RequestTable& table, RequestList* list) {
  Request* const r = table.reserve();
  ck_assert_ptr_nonnull(r);
  r->to(RequestState::kSending);
  table.begin(r, list);
  return r;
}

void complete(RequestTable& table, Request* r) {
  table.end(r);
  r->to(RequestState::kComplete);
  table.add_completed(r);
}

}  // namespace

START_TEST(pending_requests_are_on_the_list_of_their_peer) {
  RequestTable table;
  RequestList first, second;
  ck_assert(table.start());
  Request* const a = begun(table, &first);
  Request* const b = begun(table, &first);
  ck_assert_ptr_eq(first.head, b);
  ck_assert_ptr_eq(b->list_next, a);
  table.move(b, &second);
  ck_assert_ptr_eq(first.head, a);
  ck_assert_ptr_eq(second.head, b);
  ck_assert_uint_eq(table.pending(), 2);
  complete(table, a);
  ck_assert_ptr_null(first.head);
  ck_assert_uint_eq(table.pending(), 1);
  ck_assert_uint_eq(table.used(), 2);
}
END_TEST

START_TEST(completions_are_handed_over_in_order) {
  RequestTable table;
  RequestList list;
  Request* made[5];
  for (Request*& r : made) r = begun(table, &list);
  ck_assert_ptr_null(table.next_completion());
  for (int i = 0; i < 3; ++i) complete(table, made[i]);
  ck_assert_uint_eq(table.completions(), 3);
  ck_assert_uint_eq(table.handed_over(), 0);
  table.hand_over();
  ck_assert_uint_eq(table.handed_over(), 3);
  ck_assert_ptr_eq(table.next_completion(), made[0]);
  for (int i = 3; i < 5; ++i) complete(table, made[i]);
  table.hand_over();
  ck_assert_uint_eq(table.completions(), 4);
  for (int i = 1; i < 5; ++i) ck_assert_ptr_eq(table.next_completion(), made[i]);
  ck_assert_ptr_null(table.next_completion());
  ck_assert_uint_eq(table.completions(), 0);
  for (Request* r : made) table.free(r);
  ck_assert_uint_eq(table.used(), 0);
}
END_TEST

START_TEST(request_freed_last_is_reserved_first_under_a_new_handle) {
  RequestTable table;
  RequestList list;
  Request* const r = begun(table, &list);
  const std::uint64_t handle = r->pool_handle;
  ck_assert_ptr_eq(table.find(handle), r);
  complete(table, r);
  table.hand_over();
  table.free(table.next_completion());
  ck_assert_ptr_eq(table.reserve(), r);
  ck_assert_ptr_null(table.find(handle));
  ck_assert_uint_ne(r->pool_handle, handle);
  table.unreserve(r);
}
END_TEST

int main() { return run_tests("request table"); }
