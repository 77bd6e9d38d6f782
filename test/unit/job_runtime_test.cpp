// job_runtime.h: who talks to whom in a barrier, the order of the end, and a job of one from start
// to end.
#include "mplite/runtime/job_runtime.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mplite/base/address.h"
#include "mplite/observe/stats.h"
#include "run_tests.h"

using namespace mplite;

namespace {

JobRuntime* g_job = nullptr;
int g_polls = 0;

void progress(void*) {
  ++g_polls;
  g_job->engine->poll();
}

// After the rounds everybody has heard of everybody, directly or not.
START_TEST(in_a_barrier_everybody_hears_of_everybody) {
  for (int size = 1; size <= 17; ++size) {
    std::vector<std::vector<bool>> heard(size, std::vector<bool>(size));
    std::vector<std::vector<std::pair<int, int>>> rounds(size);
    for (int rank = 0; rank < size; ++rank) {
      heard[rank][rank] = true;
      ck_assert_int_eq(disseminate(rank, size,
                                   [&](int round, int to, int from) {
                                     ck_assert_int_eq(round, static_cast<int>(rounds[rank].size()));
                                     rounds[rank].emplace_back(to, from);
                                     return 0;
                                   }),
                       0);
    }
    for (std::size_t round = 0; round < rounds[0].size(); ++round) {
      const auto before = heard;
      for (int rank = 0; rank < size; ++rank) {
        const auto [to, from] = rounds[rank][round];
        ck_assert_int_eq(rounds[to][round].second, rank);
        for (int i = 0; i < size; ++i) heard[rank][i] = heard[rank][i] || before[from][i];
      }
    }
    for (const auto& row : heard)
      for (const bool one : row) ck_assert(one);
  }
}
END_TEST

START_TEST(an_exchange_that_fails_ends_the_barrier) {
  int rounds = 0;
  ck_assert_int_eq(disseminate(0, 8, [&](int, int, int) { return ++rounds == 2 ? -EPIPE : 0; }),
                   -EPIPE);
  ck_assert_int_eq(rounds, 2);
}
END_TEST

void start(JobRuntime& job, const char* controller, volatile int* want_arm) {
  setenv("LITE_CONTROLLER", controller, 1);
  setenv("LITE_IFACE", "lo", 1);
  char error[768] = "";
  Card card;
  g_job = &job;
  ck_assert_msg(job.listen(&card, error, sizeof error) == StartFault::kNone, "%s", error);
  ck_assert_msg(job.join(0, 1, &card, 1, error, sizeof error) == StartFault::kNone, "%s", error);
  ck_assert_msg(job.start_progress(progress, want_arm, error, sizeof error) == StartFault::kNone,
                "%s", error);
}

START_TEST(a_job_of_one_starts_and_waits_and_ends_by_every_controller) {
  for (const char* controller : {"sigio", "thread", "sync"}) {
    volatile int want_arm = 0;
    JobRuntime job;
    start(job, controller, &want_arm);
    std::string order;
    {
      Hold hold(job.engine->gate());
      job.controller.set_outstanding(true);
      ck_assert_int_eq(want_arm, std::strcmp(controller, "sync") != 0 ? 1 : 0);
      int turns = 0;
      job.begin_wait();
      job.wait([&] { return ++turns == 3 ? WaitLoop::done() : WaitLoop::rest(job.net.now_ns()); });
      ck_assert_int_eq(turns, 3);
      const auto flush = [&order, &job] {
        order += job.leaving ? 'F' : 'f';
        return 0;
      };
      const auto barrier = [&order, &job] {
        order += job.leaving ? 'B' : 'b';
        return 0;
      };
      ck_assert_int_eq(job.leave_together(flush, barrier), 0);
    }
    ck_assert_str_eq(order.c_str(), "fbB");
    job.end_progress();
    ck_assert_int_eq(want_arm, 0);
    job.end_engine();
  }
}
END_TEST

START_TEST(who_cannot_flush_or_meet_the_others_leaves_no_further) {
  volatile int want_arm = 0;
  JobRuntime job;
  start(job, "sync", &want_arm);
  const auto good = [] { return 0; };
  const auto bad = [] { return 5; };
  Hold hold(job.engine->gate());
  ck_assert_int_eq(job.leave_together(bad, good), 5);
  ck_assert_int_eq(job.leave_together(good, bad), 5);
  ck_assert(!job.leaving);
}
END_TEST

START_TEST(a_lost_peer_is_told_with_the_cure) {
  volatile int want_arm = 0;
  JobRuntime job;
  start(job, "sync", &want_arm);
  ck_assert_int_eq(job.fail_lost(-7, 0, ETIMEDOUT, "in the middle of it"), -7);
  ck_assert_ptr_nonnull(std::strstr(g_last_error, "rank 0 lost rank 0"));
  ck_assert_ptr_nonnull(std::strstr(g_last_error, "; in the middle of it"));
  ck_assert_ptr_nonnull(std::strstr(g_last_error, "LITE_CONNECT_TIMEOUT"));
  job.fail_lost(-7, 0, 0);
  ck_assert_ptr_nonnull(std::strstr(g_last_error, "connection lost"));
}
END_TEST

START_TEST(the_line_of_counters_tells_whose_they_are_and_by_what_settings) {
  char name[] = "/tmp/job_runtime_test.XXXXXX";
  const int file = mkstemp(name);
  ck_assert_int_ge(file, 0);
  unlink(name);
  dup2(file, 2);
  setenv("LITE_STATS", "1", 1);
  setenv("LITE_CREDITS", "1M", 1);
  volatile int want_arm = 0;
  JobRuntime job;
  start(job, "sync", &want_arm);
  char head[160], line[kStatsBytes + 1] = "";
  std::snprintf(head, sizeof head, "lite-stats rank=0 ranks=1 job=127.0.0.1:%u controller=sync ",
                port_of(job.peers[0].address));
  job.end_progress();
  const ssize_t length = pread(file, line, sizeof line - 1, 0);
  ck_assert_int_gt(length, 0);
  ck_assert_msg(std::strncmp(line, head, std::strlen(head)) == 0, "%s", line);
  ck_assert_ptr_nonnull(std::strstr(line, " LITE_CONTROLLER=sync LITE_IFACE=lo LITE_CREDITS=1M\n"));
}
END_TEST

}  // namespace

int main() { return run_tests("job_runtime"); }
