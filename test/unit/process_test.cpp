// process.h: a process comes to a running engine, or says why not.
#include "mplite/process.h"

#include <cstdlib>
#include <cstring>
#include <memory>

#include "run_tests.h"

using namespace mplite;

namespace {

struct Fixture {
  Process process;
  AddressBlob blob = {};
  char error[768] = "";
  Fixture() { setenv("LITE_IFACE", "lo", 1); }
};

START_TEST(job_of_one_rank_listens_joins_and_ends) {
  auto f = std::make_unique<Fixture>();
  ck_assert_msg(f->process.listen(&f->blob, f->error, sizeof f->error) == StartFault::kNone, "%s", f->error);
  ck_assert_uint_ne(f->blob.port, 0);
  ck_assert_int_ge(f->process.listener, 0);
  ck_assert_msg(f->process.join(0, 1, &f->blob, 0, f->error, sizeof f->error) == StartFault::kNone, "%s", f->error);
  ck_assert_ptr_nonnull(f->process.engine);
  ck_assert_int_eq(f->process.listener, -1);  // the engine's now
  ck_assert_int_eq(f->process.sharing, 1);
  ck_assert_int_eq(f->process.engine->size(), 1);
  f->process.end_engine();
  f->process.end_engine();
  ck_assert_ptr_null(f->process.engine);
}
END_TEST

START_TEST(bad_knob_is_an_argument_fault_that_names_it) {
  setenv("LITE_EAGER_MAX", "plenty", 1);
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->blob, f->error, sizeof f->error) == StartFault::kArgument);
  ck_assert_ptr_nonnull(std::strstr(f->error, "LITE_EAGER_MAX"));
  ck_assert_ptr_nonnull(std::strstr(f->error, "plenty"));
  ck_assert_int_eq(f->process.listener, -1);
}
END_TEST

START_TEST(bad_profile_is_an_argument_fault_that_names_it) {
  setenv("LITE_PROFILE", "/nowhere/profile", 1);
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->blob, f->error, sizeof f->error) == StartFault::kArgument);
  ck_assert_ptr_nonnull(std::strstr(f->error, "/nowhere/profile"));
}
END_TEST

START_TEST(interface_that_does_not_exist_is_an_argument_fault) {
  auto f = std::make_unique<Fixture>();
  setenv("LITE_IFACE", "nosuch0", 1);
  ck_assert(f->process.listen(&f->blob, f->error, sizeof f->error) == StartFault::kArgument);
  ck_assert_ptr_nonnull(std::strstr(f->error, "nosuch0"));
}
END_TEST

START_TEST(port_range_that_is_taken_is_a_system_fault) {
  auto first = std::make_unique<Fixture>();
  ck_assert(first->process.listen(&first->blob, first->error, sizeof first->error) == StartFault::kNone);
  char range[32];
  std::snprintf(range, sizeof range, "%d:%d", first->blob.port, first->blob.port);
  setenv("LITE_PORT_RANGE", range, 1);
  auto second = std::make_unique<Fixture>();
  ck_assert(second->process.listen(&second->blob, second->error, sizeof second->error) == StartFault::kSystem);
  ck_assert_str_ne(second->error, "");
}
END_TEST

START_TEST(bad_table_is_an_argument_fault_that_names_the_rank) {
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->blob, f->error, sizeof f->error) == StartFault::kNone);
  AddressBlob table[2] = {f->blob, {}};
  ck_assert(f->process.join(0, 2, table, 0, f->error, sizeof f->error) == StartFault::kArgument);
  ck_assert_ptr_nonnull(std::strstr(f->error, "rank 1"));
}
END_TEST

}  // namespace

int main() {
  return run_tests("process", {job_of_one_rank_listens_joins_and_ends, bad_knob_is_an_argument_fault_that_names_it, bad_profile_is_an_argument_fault_that_names_it,
                               interface_that_does_not_exist_is_an_argument_fault, port_range_that_is_taken_is_a_system_fault,
                               bad_table_is_an_argument_fault_that_names_the_rank});
}
