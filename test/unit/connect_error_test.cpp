// What the errors of a connect mean.
#include "mplite/net/connect_error.h"

#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(shortages_are_told_from_other_errors) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOBUFS, ENOSPC}) ck_assert(is_shortage(error));
  for (const int error : {0, EAGAIN, ECONNABORTED, EINVAL}) ck_assert(!is_shortage(error));
}
END_TEST

START_TEST(what_may_pass_is_tried_again_and_a_dead_listener_is_not) {
  for (const int error : {EHOSTUNREACH, ENETDOWN, ETIMEDOUT, EADDRNOTAVAIL, EAGAIN, EMFILE})
    ck_assert(may_pass(error));
  for (const int error : {0, ECONNREFUSED, ECONNRESET, EACCES, EAFNOSUPPORT})
    ck_assert(!may_pass(error));
}
END_TEST

START_TEST(connection_that_was_cut_off_says_nothing_of_its_address) {
  for (const int error : {ECONNRESET, ECONNABORTED, EPIPE}) ck_assert(is_closed(error));
  for (const int error : {0, ECONNREFUSED, ETIMEDOUT}) ck_assert(!is_closed(error));
}
END_TEST

}  // namespace

int main() { return run_tests("connect_error"); }
