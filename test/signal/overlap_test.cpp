// 64 MiB move by rendezvous while both ends compute and call nothing: with sigio (any signal) and
// thread they are there before the wait, with sync they are not. And a put arrives behind more
// unexpected messages than the handler has blocks for.
#include <sys/resource.h>

#include <cstring>

#include "ch_lite/ch_lite_host_work.h"
#include "ch_lite/channel/channel.h"
#include "mplite/observe/counters.h"
#include "run_tests.h"
#include "two_ranks.h"

using namespace two_ranks;

namespace {

constexpr std::size_t kBytes = 64u << 20;
constexpr double kNeverSeconds =
    0.5;  // long enough for it to arrive a few times over, if anything moved it
constexpr double kAlwaysSeconds = 25;  // on the busiest machine

// Computes until *flag is `value` or the time is over; calls nothing of the library's. True: errno
// stayed as it was. ThreadSanitizer shall not see that it looks at a buffer which the library is
// writing: no program may, but only so one can tell that something moves.
[[gnu::no_sanitize_thread]] bool compute(const volatile int* flag, int value, double seconds) {
  const double end = now_s() + seconds;
  volatile double sum = 0;
  bool kept = true;
  errno = 4711;
  while (*flag != value && now_s() < end) {
    for (int i = 0; i < 1000; ++i) sum = sum + i * 0.5;
    kept = kept && errno == 4711;
  }
  return kept;
}

[[gnu::no_sanitize_thread]] bool is_there(const volatile int* flag, int value) {
  return *flag == value;
}

// 0, or the line that found it wrong. s.word: 0 the receiver has seen the last byte, 1 it was
// complete before its wait, 2 the sender's was.
int run_rank(Shared& s, int rank, bool moves) {
  const double seconds = moves ? kAlwaysSeconds : kNeverSeconds;
  if (!start(s, rank)) return __LINE__;
  std::vector<std::uint8_t> data(kBytes);
  Done warm[2], done;
  char byte[2] = {5, 6};
  if (!send(&byte[0], 1, 1 - rank, 1, warm[0]) || !receive(&byte[1], 1, 1 - rank, 1, warm[1]))
    return __LINE__;
  if (!wait_for(warm[0]) || !wait_for(warm[1]) || !barrier(s, 10)) return __LINE__;
  if (rank == 0) {
    fill(data, 1);
    if (!send(data.data(), kBytes, 1, 2, done)) return __LINE__;
  } else {
    if (!receive(data.data(), kBytes, 0, 2, done)) return __LINE__;
  }
  if (done.done) return __LINE__;  // no rendezvous
  lite_host_exit();
  bool kept;
  if (rank == 1) {
    // Its last four bytes tell that all of it is here: the pieces come in order.
    std::vector<std::uint8_t> expected(kBytes);
    fill(expected, 1);
    int last;
    std::memcpy(&last, &expected[kBytes - 4], 4);
    const auto* end = reinterpret_cast<const volatile int*>(&data[kBytes - 4]);
    kept = compute(end, last, seconds);
    if (moves && !is_there(end, last)) return __LINE__;
    const int never = 1;
    kept = kept && compute(&never, 0, 0.1);  // the helper thread notes it a moment later
  } else {
    static_assert(sizeof s.word[0] == sizeof(int));
    kept = compute(reinterpret_cast<const volatile int*>(&s.word[0]), 1, seconds);
  }
  // Takes what is complete; moves nothing.
  lite_request* request = lite_next_completion();
  s.word[1 + (1 - rank)] = request != nullptr ? 1 : 0;
  s.word[0] = 1;
  if (request != nullptr) {
    lite_request_status(request, &done.status);
    done.done = true;
    lite_request_free(request);
  }
  if (!kept) return __LINE__;
  if (!wait_for(done)) return __LINE__;
  if (rank == 1 && (done.status.bytes != kBytes || !holds(data, 1))) return __LINE__;
  return finish(s) ? 0 : __LINE__;
}

// Rank 0 sends more short messages than the handler of rank 1 has blocks for, and puts a word
// behind them. Rank 1 has said that it wants its host's work done while it computes
// (`with_thread`), or makes calls that look at nothing, and receives them afterwards. s.word: 0 and
// 1 the key, 2 the handler of rank 1 was short of blocks, 3 the put has come.
int put_behind_unexpected_messages(Shared& s, int rank, bool with_thread) {
  constexpr int kMessages = 20, kPut = 4711;
  constexpr std::size_t kLength = 20'000;
  if (!start(s, rank)) return __LINE__;
  std::vector<std::uint8_t> data(kLength);
  Done warm[2], done[kMessages];
  char byte[2] = {5, 6};
  if (!send(&byte[0], 1, 1 - rank, 1, warm[0]) || !receive(&byte[1], 1, 1 - rank, 1, warm[1]) ||
      !wait_for(warm[0]) || !wait_for(warm[1]))
    return __LINE__;
  std::uint64_t key = 0;
  volatile int word = 0;
  if (rank == 1) {
    if (lite_expose(const_cast<int*>(&word), sizeof word, &key) != LITE_OK) return __LINE__;
    if (with_thread && lite_set_host_work([] { return 1; }, [] { return 0; }) != LITE_OK)
      return __LINE__;
    s.word[0] = static_cast<int>(key >> 32);
    s.word[1] = static_cast<int>(key);
    lite_host_exit();
    ++s.arrived[10];  // as barrier(), which would sleep
    if (with_thread) {
      compute(&word, kPut, kAlwaysSeconds);
    } else {
      for (const double end = now_s() + kAlwaysSeconds; !is_there(&word, kPut) && now_s() < end;)
        lite_host_exit();
    }
    s.word[3] = is_there(&word, kPut) ? 1 : 0;
    s.word[2] = mplite::channel_counters().no_memory_in_handler != 0 ? 1 : 0;
    for (int i = 0; i < kMessages; ++i) {
      Done received;
      if (!receive(data.data(), kLength, 0, 2, received) || !wait_for(received)) return __LINE__;
      if (!holds(data, static_cast<unsigned>(i))) return __LINE__;
    }
    if (!barrier(s, 11) || lite_withdraw(key) != LITE_OK) return __LINE__;
    return finish(s) ? 0 : __LINE__;
  }
  if (!barrier(s, 10)) return __LINE__;
  key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(s.word[0])) << 32 |
        static_cast<std::uint32_t>(s.word[1]);
  for (int i = 0; i < kMessages; ++i) {
    fill(data, static_cast<unsigned>(i));
    if (!send(data.data(), kLength, 1, 2, done[i]) || !done[i].done) return __LINE__;
  }
  Done put;
  lite_request* request = nullptr;
  if (lite_put(1, key, 0, &kPut, sizeof kPut, 0, &put, &request) != LITE_PENDING) return __LINE__;
  if (!wait_for(put, 2 * kAlwaysSeconds) || !barrier(s, 11)) return __LINE__;
  return finish(s) ? 0 : __LINE__;
}

void put_behind_unexpected_messages_arrives(bool with_thread) {
  if (!kSignalsComeAnywhere) return;
  setenv("LITE_CONTROLLER", "sigio", 1);
  setenv("LITE_HOST_THREAD", with_thread ? "on" : "off", 1);
  const Play play = [=](Shared& shared, int rank) {
    return put_behind_unexpected_messages(shared, rank, with_thread);
  };
  const Shared& s = run_job(play);
  ck_assert_int_eq(s.word[2].load(), 1);
  ck_assert_int_eq(s.word[3].load(), 1);
}

void compute_on_both_sides(const char* controller, const char* signal, bool moves,
                           rlim_t pending_max = RLIM_INFINITY) {
  if (!kSignalsComeAnywhere && std::strcmp(controller, "sigio") == 0) return;
  setenv("LITE_CONTROLLER", controller, 1);
  if (signal != nullptr) setenv("LITE_SIGNAL", signal, 1);
  // not inside the call: gcc 14 would take what run_job returns for a part of it
  const Play play = [&](Shared& shared, int rank) {
    const rlimit limit = {pending_max, pending_max};
    if (pending_max != RLIM_INFINITY && setrlimit(RLIMIT_SIGPENDING, &limit) != 0) return __LINE__;
    return run_rank(shared, rank, moves);
  };
  const Shared& s = run_job(play);
  ck_assert_int_eq(s.word[1].load(), moves ? 1 : 0);
  ck_assert_int_eq(s.word[2].load(), moves ? 1 : 0);
}

}  // namespace

START_TEST(rendezvous_completes_while_both_compute_with_sigio) {
  compute_on_both_sides("sigio", nullptr, true);
}
END_TEST

START_TEST(rendezvous_completes_while_both_compute_with_a_real_time_signal) {
  compute_on_both_sides("sigio", "RTMIN+1", true);
}
END_TEST

// No real-time signal can be queued: the kernel falls back to SIGIO, whose default is the end of
// the process.
START_TEST(full_queue_of_real_time_signals_ends_nobody) {
  compute_on_both_sides("sigio", "RTMIN+1", true, 0);
}
END_TEST

START_TEST(rendezvous_completes_while_both_compute_with_the_helper_thread) {
  compute_on_both_sides("thread", nullptr, true);
}
END_TEST

START_TEST(handler_out_of_blocks_is_no_end_of_puts_while_the_target_computes) {
  put_behind_unexpected_messages_arrives(true);
}
END_TEST

START_TEST(handler_out_of_blocks_is_no_end_of_puts_while_calls_look_at_nothing) {
  put_behind_unexpected_messages_arrives(false);
}
END_TEST

START_TEST(rendezvous_waits_for_the_wait_with_sync) {
  compute_on_both_sides("sync", nullptr, false);
}
END_TEST

int main() { return run_tests("overlap", 90); }
