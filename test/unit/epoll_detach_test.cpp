// epoll_detach.h: its decisions, as a table of events.
#include "mplite/tuning/epoll_detach.h"

#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(a_connection_is_detached_after_so_many_reads_in_a_row) {
  EpollDetach detach(3);
  for (int i = 0; i < 2; ++i) {
    detach.has_read();
    ck_assert(!detach.is_due());
  }
  detach.has_read();
  ck_assert(detach.is_due());
  detach.has_read();
  ck_assert(detach.is_due());
  detach.begin_anew();
  ck_assert(!detach.is_due());
}
END_TEST

START_TEST(off_it_is_never_detached) {
  EpollDetach detach(0);
  for (int i = 0; i < 100; ++i) detach.has_read();
  ck_assert(!detach.is_due());
}
END_TEST

}  // namespace

int main() { return run_tests("epoll_detach"); }
