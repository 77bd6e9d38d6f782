// The trace of a whole job: two ranks of the device in two processes, every protocol, each
// controller. What is in the files is judged by trace_check.py, which test/lab/trace.sh uses for
// MPI programs. TRACE_JOB_DIR=DIR keeps them, as DIR/CONTROLLER.RANK.json.
#include <stdlib.h>

#include <string>

#include "../signal/two_ranks.h"
#include "run_tests.h"

using namespace two_ranks;

namespace {

#define CHECK_THAT(condition) \
  if (!(condition)) return __LINE__

constexpr std::size_t kShort = 1024, kEager = 48 * 1024, kLong = 2 * 1024 * 1024;
constexpr int kEnd = 200;  // tag of the messages that keep the ranks together
int g_active = 0;          // active messages that have come

// Outside of the library.
bool away_until(const std::atomic<int>& word, int value) {
  for (const double end = now_s() + 20; word < value;)
    if (now_s() > end) return false;
  return true;
}

bool send_all(const void* data, std::size_t bytes, int to, int tag, unsigned flags = 0) {
  Done done;
  return send(data, bytes, to, tag, done, flags) && (done.done || wait_for(done));
}
bool receive_all(void* data, std::size_t bytes, int from, int tag) {
  Done done;
  return receive(data, bytes, from, tag, done) && (done.done || wait_for(done));
}
bool meet(int rank) {
  char word = 0;
  return rank == 0 ? send_all(&word, 1, 1, kEnd) && receive_all(&word, 1, 1, kEnd)
                   : receive_all(&word, 1, 0, kEnd) && send_all(&word, 1, 0, kEnd);
}

// Tags as in trace_check.py. word[0]: rank 1's receive of tag 101 is posted; word[1]: it computes,
// until the last byte of the message is there.
int messages(Shared& s, int rank) {
  std::vector<std::uint8_t> data(kLong);
  char answer[kShort] = {};
  if (rank == 0) {
    CHECK_THAT(away_until(s.word[0], 1));
    CHECK_THAT(send_all(data.data(), kShort, 1, 101));
    CHECK_THAT(send_all(data.data(), kEager, 1, 102));
    Done answered;
    fill(data, 3);
    CHECK_THAT(receive(answer, sizeof answer, 1, 104, answered));
    CHECK_THAT(away_until(s.word[1], 1));
    CHECK_THAT(send_all(data.data(), kLong, 1, 103));
    CHECK_THAT(answered.done || wait_for(answered));
    return 0;
  }
  const lite_envelope eager = {1, 0, 102};
  lite_status found;
  Done done, first;
  CHECK_THAT(receive(data.data(), kShort, 0, 101, first));
  s.word[0] = 1;
  CHECK_THAT(first.done || wait_for(first));
  for (const double end = now_s() + 20; lite_iprobe(0, &eager, &found) != 1;)
    CHECK_THAT(now_s() < end);
  CHECK_THAT(receive_all(data.data(), kEager, 0, 102));
  std::vector<std::uint8_t> expected(kLong);
  fill(expected, 3);
  data.back() = static_cast<std::uint8_t>(expected.back() + 1);
  CHECK_THAT(receive(data.data(), kLong, 0, 103, done));
  lite_host_exit();
  s.word[1] = 1;
  const volatile std::uint8_t& last = data.back();
  const bool alone = std::string(getenv("LITE_CONTROLLER")) == "sync";  // nothing comes by itself
  for (const double end = now_s() + (alone ? 0.05 : 20);
       last != expected.back() && now_s() < end;) {}
  CHECK_THAT((last != expected.back()) == alone);
  CHECK_THAT(wait_for(done));
  CHECK_THAT(holds(data, 3));
  CHECK_THAT(send_all(answer, sizeof answer, 0, 104));
  return 0;
}

int others(Shared&, int rank) {
  std::vector<std::uint8_t> data(kLong), window(kLong);
  const int peer = 1 - rank;
  CHECK_THAT(rank == 0 ? send_all(data.data(), kShort, 1, 105, LITE_SEND_SYNC)
                       : receive_all(data.data(), kShort, 0, 105));
  const lite_envelope self = {1, rank, 106}, nobody = {1, peer, 107};
  Done got, sent;
  lite_request* request = nullptr;
  CHECK_THAT(lite_irecv(data.data(), kShort, rank, &self, &got, &got.status, &request) >= 0);
  CHECK_THAT(lite_isend(window.data(), kShort, rank, &self, 0, &sent, &request) == LITE_OK);
  CHECK_THAT(wait_for(got));
  CHECK_THAT(lite_irecv(data.data(), kShort, peer, &nobody, &got, &got.status, &request) ==
             LITE_PENDING);
  CHECK_THAT(lite_cancel_recv(request) == 1);

  std::uint64_t key = 0, theirs = 0;
  CHECK_THAT(lite_expose(window.data(), window.size(), &key) == LITE_OK);
  CHECK_THAT(
      rank == 0
          ? send_all(&key, sizeof key, 1, kEnd) && receive_all(&theirs, sizeof theirs, 1, kEnd)
          : receive_all(&theirs, sizeof theirs, 0, kEnd) && send_all(&key, sizeof key, 0, kEnd));
  for (const std::size_t bytes : {std::size_t{8}, kLong / 2}) {
    Done put, get;
    CHECK_THAT(lite_put(peer, theirs, 0, data.data(), bytes, 0, &put, &request) >= 0 &&
               wait_for(put));
    CHECK_THAT(lite_get(peer, theirs, 0, data.data(), bytes, 0, &get, &request) >= 0 &&
               wait_for(get));
  }
  for (const std::size_t bytes : {std::size_t{8}, kEager, kLong}) {
    Done out;
    const int rc = lite_am_isend(peer, 5, "header", 6, data.data(), bytes, &out, &request);
    CHECK_THAT(rc >= 0);
    CHECK_THAT(rc == LITE_OK || wait_for(out));
  }
  for (const double end = now_s() + 20; g_active < 3;) CHECK_THAT(look() && now_s() < end);
  CHECK_THAT(meet(rank));
  CHECK_THAT(lite_withdraw(key) == LITE_OK);
  return 0;
}

int plays(Shared& s, int rank) {
  lite_am_set_callback(
      [](int, uint32_t, const void*, size_t, const void*, size_t, void*) { ++g_active; }, nullptr);
  CHECK_THAT(start(s, rank));
  CHECK_THAT(meet(rank));
  if (const int line = messages(s, rank); line != 0) return line;
  if (const int line = others(s, rank); line != 0) return line;
  CHECK_THAT(finish(s));
  return 0;
}

void trace_with(const char* controller) {
  char directory[] = "./trace_job_test.XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(directory));
  const char* kept = getenv("TRACE_JOB_DIR");
  const std::string prefix = std::string(kept != nullptr ? kept : directory) + "/" + controller;
  setenv("LITE_TRACE", prefix.c_str(), 1);
  setenv("LITE_CONTROLLER", controller, 1);
  run_job(plays);
  const char* source = getenv("srcdir");
  const std::string judge = std::string(source != nullptr ? source : "../..") +
                            "/test/unit/trace_check.py " + prefix + " " + controller +
                            " --active 'active short,active eager,active rendezvous'";
  ck_assert_int_eq(
      std::system((judge + (" >" + prefix + ".tap || ! cat " + prefix + ".tap")).c_str()), 0);
  ck_assert_int_eq(std::system((std::string("rm -r ") + directory).c_str()), 0);
}

START_TEST(trace_of_every_protocol_with_the_signal_handler) { trace_with("sigio"); }
END_TEST

START_TEST(trace_of_every_protocol_with_the_helper_thread) { trace_with("thread"); }
END_TEST

START_TEST(trace_of_every_protocol_without_asynchronous_progress) { trace_with("sync"); }
END_TEST

}  // namespace

int main() { return run_tests("trace_job"); }
