// How progress is made: what each maker of it may do, and the budget.
#include "mplite/engine/progress_mode.h"

#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(the_application_waits_and_may_do_everything) {
  const ProgressMode mode = ProgressMode::application();
  ck_assert(!mode.in_signal_handler && !mode.poll_all_sockets && !mode.background &&
            !mode.callers_only && !mode.has_budget());
}
END_TEST

START_TEST(a_handler_looks_everywhere_in_the_background_within_its_budget) {
  ProgressMode mode = ProgressMode::signal_handler(10);
  ck_assert(mode.in_signal_handler && mode.poll_all_sockets && mode.background);
  ck_assert(!mode.callers_only);
  mode.spend(4);
  ck_assert_uint_eq(mode.budget, 6);
  mode.spend(7);
  ck_assert_uint_eq(mode.budget, 0);
}
END_TEST

START_TEST(a_helper_may_allocate_and_has_no_budget) {
  ProgressMode mode = ProgressMode::helper_thread();
  ck_assert(!mode.in_signal_handler && mode.poll_all_sockets && mode.background);
  mode.spend(1u << 30);
  ck_assert(!mode.has_budget());
}
END_TEST

START_TEST(for_callers_changes_nothing_else) {
  const ProgressMode mode = ProgressMode::helper_thread().for_callers();
  ck_assert(mode.callers_only && mode.poll_all_sockets && mode.background);
  ck_assert(!ProgressMode::helper_thread().callers_only);
}
END_TEST

}  // namespace

int main() { return run_tests("progress_mode"); }
