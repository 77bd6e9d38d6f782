// Small messages of many sends in a row leave together, and none stays behind when the application
// goes away: two real processes, each controller.
#include <mutex>
#include <thread>  // before check.h and its macro fail

#include "../signal/two_ranks.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "ch_lite/channel/channel.h"
#include "mplite/observe/counters.h"
#include "run_tests.h"

using namespace two_ranks;

namespace {

constexpr int kMessages = 200;
constexpr double kPatienceS = 20;

#define CHECK_THAT(condition) \
  if (!(condition)) return __LINE__

// As MPI_Isend: what comes next may be another.
bool isend(int number, Done& done) {
  const bool good = send(&number, sizeof number, 1, 5, done);
  lite_host_exit_sending();
  return good;
}

bool outside_until(const std::atomic<int>& word, int value) {
  const double end = now_s() + kPatienceS;
  while (word < value)
    if (now_s() > end) return false;
  return true;
}

bool polls_until(const std::atomic<int>& word, int value) {
  const double end = now_s() + kPatienceS;
  while (word < value)
    if (!look() || now_s() > end) return false;
  lite_host_exit();
  return true;
}

// The first message, and the connection with it, which moves in calls only where the controller is
// `sync`.
bool first_contact(const std::atomic<int>& word) {
  Done done;
  return isend(0, done) && polls_until(word, 1);
}

// Receives message `number`, polling.
bool take(int number) {
  int got = -1;
  Done done;
  if (!receive(&got, sizeof got, 0, 5, done) || (!done.done && !wait_for(done, kPatienceS)))
    return false;
  lite_host_exit();
  return got == number;
}

// word[0]: messages that the receiver has.
bool take_all(Shared& s) {
  for (int i = 0; i < kMessages; ++i) {
    if (!take(i)) return false;
    ++s.word[0];
  }
  return true;
}

int sends_and_goes_away(Shared& s, int rank) {
  CHECK_THAT(start(s, rank));
  if (rank == 0) {
    Done done;
    CHECK_THAT(first_contact(s.word[0]));
    for (int i = 1; i < kMessages; ++i) CHECK_THAT(isend(i, done));
    CHECK_THAT(outside_until(s.word[0], kMessages));  // computes, and calls nothing
    // by itself, as its last message but one was not
    for (int i = kMessages; i < kMessages + 3; ++i)
      CHECK_THAT(isend(i, done) && outside_until(s.word[0], i + 1));
  } else {
    for (int i = 0; i < kMessages + 3; ++i) {
      CHECK_THAT(take(i));
      ++s.word[0];
    }
  }
  CHECK_THAT(finish(s));
  return 0;
}

// The same, where the thread that sends ends at once, and with it the timer.
int thread_sends_and_ends(Shared& s, int rank) {
  bool good = false;
  std::thread([&] {
    good = start(s, rank) && (rank == 1 || first_contact(s.word[0]));
    Done done;
    for (int i = 1; rank == 0 && i < kMessages; ++i) good = good && isend(i, done);
  }).join();
  CHECK_THAT(good);
  if (rank == 0) {
    CHECK_THAT(outside_until(s.word[0], kMessages));
  } else {
    CHECK_THAT(take_all(s));
  }
  CHECK_THAT(finish(s));
  return 0;
}

// The same, with all signals blocked since the start.
int sends_with_all_signals_blocked(Shared& s, int rank) {
  CHECK_THAT(start(s, rank));
  if (rank == 0) {
    Done done;
    CHECK_THAT(first_contact(s.word[0]));
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (int i = 1; i < kMessages; ++i) CHECK_THAT(isend(i, done));
    CHECK_THAT(outside_until(s.word[0], kMessages));
  } else {
    CHECK_THAT(take_all(s));
  }
  CHECK_THAT(finish(s));
  return 0;
}

// word[1]: writes; word[2]: messages gathered; word[3]: times that the timer let them go.
int sends_and_leaves_by_another_call(Shared& s, int rank) {
  CHECK_THAT(start(s, rank));
  if (rank == 0) {
    Done done;
    CHECK_THAT(first_contact(s.word[0]));
    mplite::Counters& counters = mplite::channel_counters();
    const std::uint64_t before = counters.writes;
    for (int i = 1; i < kMessages; ++i) CHECK_THAT(isend(i, done));
    lite_host_exit();  // as MPI_Waitall, which finds everything complete
    CHECK_THAT(MPID_ChannelGathered() == 0);
    s.word[1] = static_cast<int>(counters.writes - before);
    s.word[2] = static_cast<int>(counters.gathered);
    s.word[3] = static_cast<int>(counters.gathered_late);
    CHECK_THAT(outside_until(s.word[0], kMessages));
  } else {
    CHECK_THAT(take_all(s));
  }
  CHECK_THAT(finish(s));
  return 0;
}

// MPI_THREAD_MULTIPLE: a thread sends, and what it has gathered leaves though it makes no other
// call, nor does the owner, which gets no signal either. word[1]: messages gathered.
enum class Then : std::uint8_t { kComputes, kEnds, kBlocksAll };
int other_thread_sends(Shared& s, int rank, Then then) {
  CHECK_THAT(start(s, rank));
  lite_set_thread_multiple(1);
  if (rank == 0) {
    CHECK_THAT(first_contact(s.word[0]));
    bool good = true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    std::thread([&] {
      Done done;
      if (then != Then::kBlocksAll) pthread_sigmask(SIG_SETMASK, &before, nullptr);
      for (int i = 1; i < kMessages; ++i) good = good && isend(i, done);
      if (then != Then::kEnds) good = good && outside_until(s.word[0], kMessages);
    }).join();
    s.word[1] = static_cast<int>(mplite::channel_counters().gathered);
    CHECK_THAT(good);
    CHECK_THAT(outside_until(s.word[0], kMessages));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  } else {
    CHECK_THAT(take_all(s));
  }
  CHECK_THAT(finish(s));
  return 0;
}

// Send and receive in turn. 100 rounds have waits enough for sockets to raise no signals any more
// (ArmingPolicy::is_cold).
bool ping_pong(int rank, int rounds) {
  int number = 0;
  const auto out = [&] {
    Done done;
    const bool good = send(&number, sizeof number, 1 - rank, 7, done);
    lite_host_exit_sending();
    return good && done.done;
  };
  const auto in = [&] {
    Done done;
    const bool good = receive(&number, sizeof number, 1 - rank, 7, done) &&
                      (done.done || wait_for(done, kPatienceS));
    lite_host_exit();
    return good;
  };
  for (int i = 0; i < rounds; ++i)
    if (!(rank == 0 ? out() && in() : in() && out())) return false;
  return true;
}

// The socket takes no more when what is gathered is to leave, and the application computes: the
// rest leaves as soon as it can. word[0]: messages that the receiver has; word[1]: all that were
// sent.
int fills_its_socket_and_computes(Shared& s, int rank) {
  constexpr int kFew = 8, kMost = 20'000;
  static constexpr int kSmallBytes = 32 * 1024;
  static char data[900];
  const auto shrink = [] {
    for (int fd = 3; fd < 200; ++fd) {
      tcp_info info = {};
      socklen_t length = sizeof info;
      if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
          info.tcpi_state != TCP_ESTABLISHED)
        continue;
      for (const int option : {SO_SNDBUF, SO_RCVBUF})
        setsockopt(fd, SOL_SOCKET, option, &kSmallBytes, sizeof kSmallBytes);
      return fd;
    }
    return -1;
  };
  CHECK_THAT(start(s, rank));
  if (rank == 0) {
    CHECK_THAT(first_contact(s.word[0]));
    const int fd = shrink();
    CHECK_THAT(fd >= 0 && outside_until(s.word[2], 1) && ping_pong(rank, 100));
    const auto is_full = [fd] {
      std::uint32_t memory[9] = {};  // SK_MEMINFO_*
      socklen_t length = sizeof memory;
      return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length) == 0 &&
             memory[SK_MEMINFO_WMEM_QUEUED] >= memory[SK_MEMINFO_SNDBUF];
    };
    int sent = 1, after = 0;
    std::vector<Done> done(kMost);
    for (; sent < kMost && after < kFew; ++sent) {
      CHECK_THAT(send(data, sizeof data, 1, 5, done[static_cast<std::size_t>(sent)]));
      lite_host_exit_sending();
      after += is_full() ? 1 : 0;
    }
    s.word[1] = sent;
    CHECK_THAT(outside_until(s.word[0], sent));
  } else {
    CHECK_THAT(take(0));
    ++s.word[0];
    CHECK_THAT(shrink() >= 0);
    ++s.word[2];
    CHECK_THAT(ping_pong(rank, 100));
    while (s.word[1] == 0) {}  // computes
    usleep(20'000);
    for (int i = 1; i < s.word[1]; ++i) {
      Done done;
      CHECK_THAT(receive(data, sizeof data, 0, 5, done) &&
                 (done.done || wait_for(done, kPatienceS)));
      lite_host_exit();
      ++s.word[0];
    }
  }
  CHECK_THAT(finish(s));
  return 0;
}

// MPI_THREAD_MULTIPLE: the messages of each thread are gathered, and nothing overtakes.
// word[1]: writes, word[2]: messages gathered, word[3]: times that the timer let them go, of a
// burst of the owner's by itself; word[4]: gathered of the other thread's; word[5]: messages in
// all.
int two_threads_send(Shared& s, int rank) {
  constexpr int kBursts = 100;
  static std::mutex lock;  // the host's
  static int next = 0;     // lock held
  const auto send_next = [] {
    Done done;
    std::unique_lock held(lock);
    const int number = next++;
    const bool good =
        send(&number, sizeof number, 1, 5, done) && (done.done || wait_for(done, kPatienceS));
    held.unlock();
    lite_host_exit_sending();
    return good;
  };
  CHECK_THAT(start(s, rank));
  lite_set_thread_multiple(1);
  if (rank == 0) {
    CHECK_THAT(first_contact(s.word[0]));
    next = 1;
    mplite::Counters& counters = mplite::channel_counters();
    const std::uint64_t before = counters.writes;
    for (int i = 1; i < kMessages; ++i) CHECK_THAT(send_next());
    lite_host_exit();
    CHECK_THAT(MPID_ChannelGathered() == 0);
    s.word[1] = static_cast<int>(counters.writes - before);
    s.word[2] = static_cast<int>(counters.gathered);
    s.word[3] = static_cast<int>(counters.gathered_late);
    bool good = true;
    std::thread([&] {
      for (int i = 0; i < kMessages; ++i) good = good && send_next();
      lite_host_exit();
    }).join();
    CHECK_THAT(good);
    s.word[4] = static_cast<int>(counters.gathered) - s.word[2];
    std::atomic<bool> over{false};
    std::thread other([&] {  // comes and goes, polls, and sends
      for (int i = 0; !over; ++i) {
        if (i % 3 == 0) {
          good = good && send_next();
        } else {
          const std::lock_guard held(lock);
          good = good && look();
        }
        lite_host_exit();
        usleep(200);
      }
    });
    for (int burst = 0; burst < kBursts; ++burst) {
      for (int i = 0; i < kMessages; ++i) CHECK_THAT(send_next());
      if (burst % 2 == 0) lite_host_exit();
    }
    over = true;
    other.join();
    CHECK_THAT(good);
    s.word[5] = next + kMessages;
    for (int i = 0; i < kMessages; ++i) CHECK_THAT(send_next());
    // computes
    CHECK_THAT(kSignalsComeAnywhere ? outside_until(s.word[0], next)
                                    : polls_until(s.word[0], next));
  } else {
    for (int i = 0; s.word[5] == 0 || i < s.word[5]; ++i) {
      CHECK_THAT(take(i));
      ++s.word[0];
    }
  }
  CHECK_THAT(finish(s));
  return 0;
}

// Each message leaves with its own call.
int plays_ping_pong(Shared& s, int rank) {
  CHECK_THAT(start(s, rank));
  constexpr int kRounds = 2000, kFirst = 100;
  CHECK_THAT(ping_pong(rank, kFirst));
  mplite::Counters& counters = mplite::channel_counters();
  const std::uint64_t writes = counters.writes, masks = counters.mask_calls,
                      backstops = counters.backstops, signals = counters.signals;
  CHECK_THAT(ping_pong(rank, kRounds));
  CHECK_THAT(counters.writes - writes == kRounds);
  CHECK_THAT(counters.gathered == 0 && counters.signals == signals);
  // What is announced: the connection of who calls first, its hello, its proof, and its first
  // message, if that comes before the proof is read.
  CHECK_THAT(signals <= 4);
  CHECK_THAT(counters.mask_calls == masks && counters.backstops == backstops);
  CHECK_THAT(finish(s));
  return 0;
}

double processor_s() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// While a receive is outstanding, and departures have proved quick for so long that their backstop
// comes every few milliseconds. word[0]: messages that the receiver has; word[1]: for how long of
// its processor time the application kept what it had gathered, microseconds, the fourth longest of
// 21: most leave with a packet behind them.
int sends_with_a_trusted_departure(Shared& s, int rank) {
  CHECK_THAT(start(s, rank));
  constexpr int kProbes = 21, kQuick = 3000, kFew = 12;
  constexpr int kAll = 1 + 20 * kQuick + kProbes * (kQuick + kFew);
  int last = 0;
  Done done, received;
  if (rank == 0) {
    CHECK_THAT(receive(&last, sizeof last, 1, 6, received));
    CHECK_THAT(first_contact(s.word[0]));
    std::vector<double> took;
    std::vector<int> numbers(kAll);  // out of credit they go by rendezvous, from here
    std::vector<Done> sent(kAll);
    int number = 1;
    const auto next = [&] {
      const auto n = static_cast<std::size_t>(number);
      numbers[n] = number;
      const bool good = send(&numbers[n], sizeof(int), 1, 5, sent[n]);
      lite_host_exit_sending();
      ++number;
      return good;
    };
    const auto quick = [&] {
      for (int i = 0; i < kQuick; ++i)
        if (!next() || (i % 64 == 0 && !look())) return false;
      while (s.word[0] < number - kFew)  // or credit ends
        if (!look()) return false;
      lite_host_exit();
      return true;
    };
    for (int i = 0; i < 20; ++i) CHECK_THAT(quick());
    for (int i = 0; i < kProbes; ++i) {
      CHECK_THAT(quick());
      CHECK_THAT(outside_until(s.word[0], number));
      for (int k = 0; k < kFew; ++k) CHECK_THAT(next());
      const double from = processor_s();
      while (MPID_ChannelGathered() != 0 && processor_s() < from + kPatienceS) {}
      took.push_back(processor_s() - from);
      CHECK_THAT(outside_until(s.word[0], number));
    }
    CHECK_THAT(number == kAll);
    std::sort(took.begin(), took.end());
    s.word[1] = static_cast<int>(took[kProbes - 4] * 1e6);
    CHECK_THAT(wait_for(received));
    for (std::size_t n = 1; n < sent.size(); ++n) CHECK_THAT(wait_for(sent[n]));
  } else {
    for (int i = 0; i < kAll; ++i) {
      CHECK_THAT(take(i));
      ++s.word[0];
    }
    CHECK_THAT(send(&last, sizeof last, 0, 6, done));
  }
  CHECK_THAT(finish(s));
  return 0;
}

constexpr std::size_t kLong = 64 * 1024;

// A key in two words.
void leave_key(Shared& s, int at, std::uint64_t key) {
  s.word[at] = static_cast<int>(key);
  s.word[at + 1] = static_cast<int>(key >> 32);
}
std::uint64_t key_in(const Shared& s, int at) {
  return static_cast<std::uint32_t>(s.word[at]) |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(s.word[at + 1])) << 32;
}

// Puts into word[2] of the memory that the two share, each with an active message behind it.
// word[0]: messages that the target has; word[3]: its writes; word[4], word[5]: the key; word[6]:
// it has ended; word[8]: active messages; word[9]: the key is there. Of the origin word[1]: writes;
// word[7]: times that the timer let something go; word[12]: writes of pairs of active messages;
// word[13]: of gets, each with an active message behind it.
int puts_before_a_message(Shared& s, int rank) {
  CHECK_THAT(start(s, rank));
  mplite::Counters& counters = mplite::channel_counters();
  if (rank == 0) {
    CHECK_THAT(first_contact(s.word[0]));
    CHECK_THAT(outside_until(s.word[9], 1));
    const std::uint64_t key = key_in(s, 4);
    Done done;
    int value = 0;
    const auto put = [&] {
      ++value;
      lite_request* request = nullptr;
      const bool good =
          lite_put(1, key, 0, &value, sizeof value, LITE_PUT_UNANSWERED | LITE_MORE_FOLLOWS, &done,
                   &request) == LITE_PENDING &&
          lite_request_holds_buffer(request) == 0;
      lite_host_exit_sending();
      return good;
    };
    const std::uint64_t before = counters.writes;
    for (int i = 0; i < kMessages; ++i) {
      CHECK_THAT(put());
      lite_request* request = nullptr;
      CHECK_THAT(lite_am_isend(1, 5, "end", 3, nullptr, 0, nullptr, &request) == LITE_OK);
      CHECK_THAT(MPID_ChannelGathered() == 0);
      done.done = false;
      CHECK_THAT(look() && done.done);
      lite_host_exit();
    }
    s.word[1] = static_cast<int>(counters.writes - before);
    // an active message that has company waits for it, too
    lite_request* request = nullptr;
    const std::uint64_t writes = counters.writes;
    for (int i = 0; i < kMessages; ++i) {
      CHECK_THAT(lite_am_isend_more(1, 5, "more", 4, "data", 4, &done, &request) == LITE_OK);
      lite_host_exit_sending();
      CHECK_THAT(lite_am_isend(1, 5, "end", 3, nullptr, 0, nullptr, &request) == LITE_OK);
      CHECK_THAT(MPID_ChannelGathered() == 0);
      lite_host_exit();
    }
    s.word[12] = static_cast<int>(counters.writes - writes);
    // so does a get
    const std::uint64_t writes_of_gets = counters.writes;
    for (int i = 0; i < kMessages; ++i) {
      int got = 0;
      done.done = false;
      CHECK_THAT(lite_get(1, key, 0, &got, sizeof got, LITE_MORE_FOLLOWS, &done, &request) ==
                 LITE_PENDING);
      lite_host_exit_sending();
      CHECK_THAT(lite_am_isend(1, 5, "end", 3, nullptr, 0, nullptr, &request) == LITE_OK);
      CHECK_THAT(MPID_ChannelGathered() == 0);
      CHECK_THAT(wait_for(done, kPatienceS));
      CHECK_THAT(got == kMessages);
      lite_host_exit();
    }
    s.word[13] = static_cast<int>(counters.writes - writes_of_gets);
    s.word[7] = static_cast<int>(counters.gathered_late);
    // without a message behind it, by the timer, and the application calls nothing
    CHECK_THAT(put());
    CHECK_THAT(outside_until(s.word[2], kMessages + 1));
    CHECK_THAT(look());
    // a long one does not wait, as its data moves meanwhile
    static const char data[kLong] = {};
    done.done = false;
    if (lite_am_isend_more(1, 5, "more", 4, data, kLong, &done, &request) == LITE_PENDING) {
      CHECK_THAT(MPID_ChannelGathered() == 0);
      CHECK_THAT(wait_for(done, kPatienceS));
    }
    CHECK_THAT(MPID_ChannelGathered() == 0);
    done.done = false;
    CHECK_THAT(lite_put(1, key_in(s, 10), 0, data, kLong, LITE_PUT_UNANSWERED | LITE_MORE_FOLLOWS,
                        &done, &request) == LITE_PENDING);
    CHECK_THAT(MPID_ChannelGathered() == 0);
    CHECK_THAT(wait_for(done, kPatienceS));
    s.word[6] = 1;
  } else {
    lite_am_set_callback([](int, std::uint32_t, const void*, std::size_t, const void*,
                            std::uint64_t, void* count) { ++*static_cast<int*>(count); },
                         &s.word[8]);
    CHECK_THAT(take(0));
    ++s.word[0];
    std::uint64_t key = 0, long_key = 0;
    static char memory[kLong];
    CHECK_THAT(lite_expose(&s.word[2], sizeof s.word[2], &key) == LITE_OK);
    CHECK_THAT(lite_expose(memory, sizeof memory, &long_key) == LITE_OK);
    leave_key(s, 4, key);
    leave_key(s, 10, long_key);
    s.word[9] = 1;
    const std::uint64_t before = counters.writes;
    const double end = now_s() + kPatienceS;
    while (s.word[6] == 0 || s.word[8] < kMessages) CHECK_THAT(look() && now_s() < end);
    s.word[3] = static_cast<int>(counters.writes - before);
    CHECK_THAT(lite_withdraw(key) == LITE_OK && lite_withdraw(long_key) == LITE_OK);
  }
  CHECK_THAT(finish(s));
  return 0;
}

// One active message at a time, and its answer from the callback. word[0]: messages that the target
// has; word[1]: answers that have come; word[2]: those that waited when they had been sent.
int answers_one_by_one(Shared& s, int rank) {
  constexpr int kTimes = 20;
  static Shared* shared;
  shared = &s;
  CHECK_THAT(start(s, rank));
  const auto callback =
      rank == 0
          ? [](int, std::uint32_t, const void*, std::size_t, const void*, std::uint64_t,
               void*) { ++shared->word[1]; }
          : [](int, std::uint32_t, const void*, std::size_t, const void*, std::uint64_t, void*) {
              lite_request* request = nullptr;
              lite_am_isend(0, 6, "answer", 6, nullptr, 0, nullptr, &request);
              if (MPID_ChannelGathered() != 0) ++shared->word[2];
            };
  lite_am_set_callback(callback, nullptr);
  if (rank == 0) {
    CHECK_THAT(first_contact(s.word[0]));
    for (int i = 1; i <= kTimes; ++i) {
      lite_request* request = nullptr;
      CHECK_THAT(lite_am_isend(1, 5, "ask", 3, nullptr, 0, nullptr, &request) == LITE_OK);
      const double end = now_s() + kPatienceS;
      while (s.word[1] < i) CHECK_THAT(look() && now_s() < end);
    }
    CHECK_THAT(s.word[2] == 0);
  } else {
    CHECK_THAT(take(0));
    ++s.word[0];
    const double end = now_s() + kPatienceS;
    while (s.word[1] < kTimes) CHECK_THAT(look() && now_s() < end);
  }
  CHECK_THAT(finish(s));
  return 0;
}

void as(const char* controller) { setenv("LITE_CONTROLLER", controller, 1); }

// Where the operating system takes the processor away, the timer sends what was gathered, and less
// is gathered from then on. Such a job tells nothing: word[`late`] is not 0. It is tried again
// after a rest, after which a process is left alone for longer. ThreadSanitizer is too slow for it.
void check_undisturbed_job(int (*play)(Shared&, int), int late, void (*check)(Shared&)) {
  constexpr int kTries = 40;
  for (int i = 0; i < kTries; ++i) {
    Shared& s = run_job(play);
    if (!kSignalsComeAnywhere) return;
    if (s.word[late] == 0) return check(s);
    usleep(static_cast<useconds_t>(i) * 10'000);
  }
  ck_abort_msg("in each of %d jobs the timer sent what was gathered", kTries);
}

START_TEST(what_was_gathered_leaves_while_the_application_computes) {
  for (const char* controller : {"sigio", "thread", "sync"}) {
    as(controller);
    run_job(sends_and_goes_away);
    run_job(sends_with_all_signals_blocked);
    run_job(thread_sends_and_ends);
  }
}
END_TEST

START_TEST(what_does_not_fit_into_the_socket_leaves_while_the_application_computes) {
  for (const char* controller : {"sigio", "thread"}) {
    as(controller);
    run_job(fills_its_socket_and_computes);
  }
}
END_TEST

START_TEST(burst_takes_few_system_calls_and_is_gone_when_another_call_returns) {
  for (const char* controller : {"sigio", "thread"}) {
    as(controller);
    check_undisturbed_job(sends_and_leaves_by_another_call, 3, [](Shared& s) {
      ck_assert_int_gt(s.word[2], kMessages / 2);
      ck_assert_int_lt(s.word[1], kMessages / 4);
    });
  }
}
END_TEST

START_TEST(each_of_several_threads_gathers) {
  for (const char* controller : {"sigio", "thread"}) {
    as(controller);
    check_undisturbed_job(two_threads_send, 3, [](Shared& s) {
      ck_assert_int_gt(s.word[2], kMessages / 2);
      ck_assert_int_lt(s.word[1], kMessages / 4);
      ck_assert_int_gt(s.word[4], kMessages / 2);
    });
  }
}
END_TEST

START_TEST(what_another_thread_than_the_owner_gathered_leaves_while_it_computes) {
  for (const char* controller : {"sigio", "thread"})
    for (const Then then : {Then::kComputes, Then::kEnds, Then::kBlocksAll}) {
      as(controller);
      const auto play = [then](Shared& s, int rank) { return other_thread_sends(s, rank, then); };
      ck_assert_int_gt(run_job(play).word[1], kMessages / 2);
    }
}
END_TEST

START_TEST(what_was_gathered_does_not_wait_for_the_backstop_of_a_departure) {
  as("sigio");
  ck_assert_int_lt(run_job(sends_with_a_trusted_departure).word[1], 1500);
}
END_TEST

START_TEST(nothing_is_gathered_where_nobody_would_let_it_go) {
  as("sync");
  ck_assert_int_eq(run_job(sends_and_leaves_by_another_call).word[2], 0);
  setenv("LITE_GRACE", "off", 1);
  for (const char* controller : {"sigio", "thread"}) {
    as(controller);
    ck_assert_int_eq(run_job(sends_and_leaves_by_another_call).word[2], 0);
  }
  unsetenv("LITE_GRACE");
}
END_TEST

START_TEST(put_leaves_with_the_message_that_follows_it_and_is_not_answered) {
  for (const char* controller : {"sigio", "thread"}) {
    as(controller);
    check_undisturbed_job(puts_before_a_message, 7, [](Shared& s) {
      // the target writes the data of gets, and credits; who takes those sends what waits, too
      constexpr int kCredits = kMessages / 8;
      ck_assert_int_le(s.word[3], kMessages + kCredits);
      for (const int writes : {s.word[1].load(), s.word[12].load(), s.word[13].load()}) {
        ck_assert_int_ge(writes, kMessages);
        ck_assert_int_le(writes, kMessages + kCredits);
      }
    });
  }
}
END_TEST

START_TEST(answer_to_the_last_active_message_does_not_wait) {
  as("sigio");
  run_job(answers_one_by_one);
}
END_TEST

START_TEST(put_that_waits_for_no_company_is_right_too) {
  as("sync");
  Shared& s = run_job(puts_before_a_message);
  ck_assert_int_ge(s.word[1], 2 * kMessages);
  ck_assert_int_ge(s.word[12], 2 * kMessages);
  ck_assert_int_ge(s.word[13], 2 * kMessages);
}
END_TEST

START_TEST(ping_pong_takes_one_send_call_per_message_no_signal_and_no_mask_call) {
  as("sigio");
  run_job(plays_ping_pong);
}
END_TEST

}  // namespace

int main() {
  return kSignalsComeAnywhere ? run_tests("gather")
                              : run_only("gather", {each_of_several_threads_gathers});
}
