// A message and its signal arrive at every single instruction of what the application calls, one
// instruction per run: nothing is lost, doubled or spoilt. step_test [--all] [--seconds T] (2):
// each call is stepped at instructions spread over it for T seconds; with --all, at every one.
//
// The processor's trap flag makes SIGTRAP follow every instruction of the call. At the chosen one
// its handler asks the other rank for a message and waits until the kernel has made SIGIO pending;
// back from the trap, the library's handler runs between that instruction and the next.
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "alloc_trap.h"
#include "run_tests.h"
#include "trap_flag.h"
#include "two_ranks.h"

using two_ranks::Shared;

namespace {

#if defined(HAS_TRAP_FLAG)

bool g_all = false;
double g_seconds = 2;

constexpr int kTagMessage = 7;  // rank 1 to rank 0, arriving in the middle of something
constexpr int kTagSend = 50;    // rank 0 to rank 1
constexpr int kTagIdle =
    99;  // never sent: something is outstanding always, so that the signal stays armed
constexpr std::size_t kLengths[] = {
    0, 500, 20'000, 40'000};  // nothing, short, eager, rendezvous (LITE_EAGER_MAX below)
constexpr std::size_t kLongest = 40'000;
constexpr long kRunsMin = 30;  // of each call, however slow the machine

// Words of the shared memory.
enum { kAsked, kLength, kSent, kGot, kEnd, kWrong };

struct Ticket {
  int completions = 0;
  lite_status status = {};
};

std::uint8_t byte_of(int number, std::size_t i) {
  return static_cast<std::uint8_t>(static_cast<std::size_t>(number) * 31 + i * 7 + i / 251);
}

void fill(std::uint8_t* data, std::size_t bytes, int number) {
  for (std::size_t i = 0; i < bytes; ++i) data[i] = byte_of(number, i);
}
bool holds(const std::uint8_t* data, std::size_t bytes, int number) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (data[i] != byte_of(number, i)) return false;
  return true;
}

bool look() {
  if (lite_progress() < 0) return false;
  while (lite_request* request = lite_next_completion()) {
    auto* ticket = static_cast<Ticket*>(lite_request_cookie(request));
    lite_request_status(request, &ticket->status);
    ++ticket->completions;
    lite_request_free(request);
  }
  return true;
}

int post(std::uint8_t* data, std::size_t bytes, int peer, int tag, Ticket& ticket,
         lite_request** request) {
  const lite_envelope e = {1, peer, tag};
  *request = nullptr;
  const int rc = lite_irecv(data, bytes, peer, &e, &ticket, &ticket.status, request);
  if (rc == LITE_OK) ++ticket.completions;
  return rc;
}

// ---- rank 1: sends when asked, receives and checks all the time ----

// A word of shared memory that became wrong says which line found it.
int serve(Shared& s) {
  static std::uint8_t out[2][kLongest], in[kLongest];
  Ticket sent[2], got;
  lite_request* request = nullptr;
  int answered = 0, received = 0;
  bool posted = false;
  while (s.word[kEnd] == 0) {
    if (!posted) {
      got = {};
      if (post(in, sizeof in, 0, kTagSend, got, &request) < 0) return __LINE__;
      posted = true;
    }
    if (s.word[kAsked] > answered) {
      const int number = ++answered;
      const auto bytes = static_cast<std::size_t>(s.word[kLength]);
      std::uint8_t* data = out[number % 2];
      fill(data, bytes, number);
      sent[number % 2] = {};
      const lite_envelope e = {1, 1, kTagMessage};
      lite_request* send_request = nullptr;
      if (lite_isend(data, bytes, 0, &e, 0, &sent[number % 2], &send_request) < 0) return __LINE__;
      s.word[kSent] = number;
    }
    if (!look()) return __LINE__;
    lite_host_exit();  // who comes from outside each time never sleeps
    if (got.completions > 0) {
      if (got.completions != 1 || got.status.error != LITE_OK ||
          !holds(in, got.status.bytes, received + 1))
        return __LINE__;
      s.word[kGot] = ++received;
      posted = false;
    }
    usleep(20);  // a busy machine gives those who sleep their turn sooner
  }
  return !posted || lite_cancel_recv(request) == 1 ? 0 : __LINE__;
}

// ---- rank 0: stepped ----

struct Step {
  Shared* shared = nullptr;
  long steps = 0;
  long at[2] = {-1, -1};  // steps after which a message arrives; -1: none
  int length[2] = {0, 0};
  int arrivals = 0;
  bool stepping = true;
  long at_every_one = 0;  // the signal without a message, after each of so many steps
};
volatile bool g_silent = false;  // a message did not come
Step g_step;

void ask(Shared& s, int length) {
  s.word[kLength] = length;
  const int number = ++s.word[kAsked];
  const double end = two_ranks::now_s() + 20;
  while (s.word[kSent] < number) {
    if (two_ranks::now_s() > end) {
      g_silent = true;
      return;
    }
    usleep(20);
  }
}

void on_trap(int, siginfo_t*, void* context) {
  const int saved_errno = errno;
  Step& step = g_step;
  const long here = step.steps++;
  if (step.at_every_one > 0) {
    // Not without end: who leaves the gate works as long as signals are turned away.
    if (--step.at_every_one == 0) stop_tracing(context);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGIO);
  } else if (step.arrivals < 2 && here == step.at[step.arrivals]) {
    ask(*step.shared, step.length[step.arrivals++]);
    // Loopback: in our socket when the sender's call is over, and the signal with it; SIGTRAP's
    // mask keeps it back until we return.
    if (step.arrivals == 2 || step.at[1] < 0) stop_tracing(context);
  }
  errno = saved_errno;
}

enum class Call {
  kPost,
  kSendNothing,
  kSendShort,
  kSendEager,
  kSendRendezvous,
  kCancel,
  kProbe,
  kProgress,
  kLeave
};

struct Rank0 {
  Shared& s;
  Ticket idle;
  lite_request* idle_request = nullptr;
  int sends = 0;     // to rank 1
  int received = 0;  // from rank 1: messages come in order
  std::uint8_t out[kLongest];
  std::uint8_t in[3][kLongest];

  explicit Rank0(Shared& shared) : s(shared) {}

  bool wait_until(const Ticket& ticket) {
    const double end = two_ranks::now_s() + 20;
    while (ticket.completions == 0)
      if (!look() || two_ranks::now_s() > end) return false;
    return true;
  }
  // The next message from rank 1, of which `ticket` tells, is in `data`.
  bool right(const Ticket& ticket, const std::uint8_t* data, int length) {
    ++received;
    return ticket.completions == 1 && ticket.status.error == LITE_OK &&
           ticket.status.bytes == static_cast<std::uint64_t>(length) &&
           ticket.status.tag == kTagMessage && ticket.status.peer == 1 &&
           holds(data, ticket.status.bytes, received);
  }

  // One run with the arrivals of g_step; 0, or the line that found it wrong.
  int run(Call call) {
    Ticket mine[3], sent;
    lite_request* request = nullptr;
    lite_request* send_request = nullptr;
    const bool posts_before = call != Call::kPost && call != Call::kProbe;
    if (g_step.length[0] > 0) {
      const auto last = static_cast<std::size_t>(g_step.length[0]) - 1;
      in[0][last] = static_cast<std::uint8_t>(~byte_of(received + 1, last));
    }
    if (posts_before && post(in[0], kLongest, 1, kTagMessage, mine[0], &request) != LITE_PENDING)
      return __LINE__;
    const int send_kind = static_cast<int>(call) - static_cast<int>(Call::kSendNothing);
    const bool sends_one = send_kind >= 0 && send_kind < 4;
    const std::size_t send_bytes = sends_one ? kLengths[send_kind] : 0;
    if (sends_one) fill(out, send_bytes, sends + 1);
    if (call == Call::kLeave) {
      // Disarmed, as a waiting application is: the second poll in a row did it.
      for (int i = 0; i < 3; ++i)
        if (!look()) return __LINE__;
    } else {
      lite_host_exit();
    }

    const lite_envelope to_one = {1, 0, kTagSend};
    const lite_envelope from_one = {1, 1, kTagMessage};
    lite_status probed = {};
    int rc = 0;
    if (g_step.stepping) trace_on();
    switch (call) {
      case Call::kPost:
        rc = lite_irecv(in[0], kLongest, 1, &from_one, &mine[0], &mine[0].status, &request);
        break;
      case Call::kSendNothing:
      case Call::kSendShort:
      case Call::kSendEager:
      case Call::kSendRendezvous:
        rc = lite_isend(out, send_bytes, 1, &to_one, 0, &sent, &send_request);
        break;
      case Call::kCancel: rc = lite_cancel_recv(request); break;
      case Call::kProbe: rc = lite_iprobe(1, &from_one, &probed); break;
      case Call::kProgress: rc = look() ? 0 : -1; break;
      case Call::kLeave: lite_host_exit(); break;
    }
    trace_off();
    if (g_silent) return __LINE__;
    if (rc < 0) return __LINE__;

    // Who goes on to compute gets what came during the call, also where its signal found the gate
    // held: nobody calls the library here.
    const bool received_alone = call != Call::kProbe && !(call == Call::kCancel && rc == 1);
    if (g_step.arrivals > 0 && received_alone) {
      const auto last = static_cast<std::size_t>(g_step.length[0]) - 1;
      const volatile std::uint8_t* there = &in[0][last];
      const double end = two_ranks::now_s() + 10;
      while (*there != byte_of(received + 1, last))
        if (two_ranks::now_s() > end) return __LINE__;
    }

    // What has not arrived during the call arrives now: a receive is posted for it.
    if (g_step.arrivals == 0) {
      g_step.length[0] = static_cast<int>(kLengths[1]);
      ask(s, g_step.length[0]);
      g_step.arrivals = 1;
    }
    if (call == Call::kPost && rc == LITE_OK) ++mine[0].completions;
    if (call == Call::kProbe && rc == 1 &&
        probed.bytes != static_cast<std::uint64_t>(g_step.length[0]))
      return __LINE__;
    const bool withdrawn = call == Call::kCancel && rc == 1;
    if (withdrawn && !look()) return __LINE__;
    if (withdrawn && mine[0].completions != 0) return __LINE__;
    if ((call == Call::kProbe || withdrawn) &&
        post(in[0], kLongest, 1, kTagMessage, mine[0], &request) < 0)
      return __LINE__;
    if (g_step.arrivals == 2 && post(in[1], kLongest, 1, kTagMessage, mine[1], &request) < 0)
      return __LINE__;
    for (int i = 0; i < g_step.arrivals; ++i) {
      if (!wait_until(mine[i])) return __LINE__;
      if (!right(mine[i], in[i], g_step.length[i])) return __LINE__;
    }
    if (sends_one) {
      ++sends;
      if (rc == LITE_OK) ++sent.completions;
      if (!wait_until(sent) || sent.completions != 1) return __LINE__;
      const double end = two_ranks::now_s() + 20;
      while (s.word[kGot] < sends) {
        if (!look() || two_ranks::now_s() > end || s.word[kWrong] != 0) return __LINE__;
        lite_host_exit();
      }
    }
    // Nothing more comes of any of it.
    if (!look() || idle.completions != 0) return __LINE__;
    for (int i = 0; i < g_step.arrivals; ++i)
      if (mine[i].completions != 1) return __LINE__;
    lite_status nothing;
    if (lite_iprobe(1, &from_one, &nothing) != 0) return __LINE__;
    return two_ranks::seen.errno_lost == 0 && s.word[kWrong] == 0 ? 0 : __LINE__;
  }
};

// With `learns`, leaving the library is left to the backstop as soon as the calls have proved quick
// (grace.h), and few of the arrivals find the handler.
void step_through(const char* name, Call call, bool learns = false) {
  setenv("LITE_SHORT_MAX", "4K", 1);
  setenv("LITE_EAGER_MAX", "32K", 1);
  setenv("LITE_CONTROLLER", "sigio", 1);
  setenv("LITE_GRACE", learns ? "auto" : "off", 1);
  Shared* s = two_ranks::make_shared();
  ck_assert_ptr_nonnull(s);
  const pid_t other = fork();
  if (other == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("LITE_CONTROLLER", "sync", 1);  // it polls all the time
    int line = two_ranks::start(*s, 1) ? serve(*s) : __LINE__;
    if (line == 0 && !two_ranks::finish(*s)) line = __LINE__;
    if (line != 0) std::fprintf(stderr, "rank 1: wrong at line %d: %s\n", line, lite_last_error());
    s->word[kWrong] = line;
    _exit(line == 0 ? 0 : 1);
  }
  struct sigaction trap = {};
  trap.sa_sigaction = on_trap;
  trap.sa_flags = SA_SIGINFO;
  sigfillset(&trap.sa_mask);
  ck_assert_int_eq(sigaction(SIGTRAP, &trap, nullptr), 0);
  ck_assert(two_ranks::start(*s, 0));

  auto rank = new Rank0(*s);
  ck_assert_int_eq(post(rank->in[2], kLongest, 1, kTagIdle, rank->idle, &rank->idle_request),
                   LITE_PENDING);
  // Without an arrival: connected and warm, and then how long the call is.
  long length = 0;
  for (int i = 0; i < 20; ++i) {
    g_step = {};
    g_step.shared = s;
    g_step.stepping = i >= 17;
    const int line = rank->run(call);
    ck_assert_msg(line == 0, "%s, without arrivals: wrong at line %d", name, line);
    length = g_step.steps;
  }
  ck_assert_int_gt(length, 3);

  // Steps of the golden section reach every place of the call soon, and every instruction in the
  // end.
  long stride = static_cast<long>(static_cast<double>(length) * 0.6180339887);
  const auto common = [](long a, long b) {
    while (b != 0) {
      const long rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  };
  while (stride < 1 || common(stride, length) != 1) ++stride;
  const double end = two_ranks::now_s() + g_seconds;
  const long entries_before = two_ranks::seen.entries;
  long runs = 0, inside = 0, twice = 0, worked = 0;
  for (long at = 0; runs < length && (g_all || runs < kRunsMin || two_ranks::now_s() < end);
       ++runs, at = (at + stride) % length) {
    g_step = {};
    g_step.shared = s;
    g_step.at[0] = at;
    g_step.length[0] = static_cast<int>(kLengths[1 + runs % 3]);
    g_step.length[1] = static_cast<int>(kLengths[1 + runs / 3 % 3]);
    if (runs % 5 == 4) g_step.at[1] = at + 1 + runs % 37;  // a second one a little later
    if (runs % 50 == 49) g_step = {s, 0, {-1, -1}, {0, 0}, 0, true, 3 * length};
    const long entries = two_ranks::seen.entries;
    const Step planned = g_step;
    const int line = rank->run(call);
    ck_assert_msg(line == 0,
                  "%s, message of %d bytes at instruction %ld of %ld, second (%d bytes) at %ld, "
                  "the signal at each of %ld: wrong at line %d: %s",
                  name, planned.length[0], planned.at[0], length, planned.length[1], planned.at[1],
                  planned.at_every_one, line, lite_last_error());
    inside += planned.at[0] >= 0 && g_step.steps > planned.at[0];
    twice += planned.at[1] >= 0 && g_step.steps > planned.at[1];
    worked += two_ranks::seen.entries > entries;
  }
  std::printf(
      "%s: %ld instructions; signal at %ld of them (%.0f %%), %ld times with a second one; %ld "
      "handler entries in %ld of %ld runs\n",
      name, length, inside, 100.0 * static_cast<double>(inside) / static_cast<double>(length),
      twice, two_ranks::seen.entries - entries_before, worked, runs);
  std::fflush(stdout);
  // Tests nothing otherwise.
  ck_assert_int_gt(inside, kRunsMin / 2);
  // In the first two thirds of leaving, the signal is still blocked and is taken back without a
  // handler (keep_signal and sigtimedwait come before the opening).
  if (!learns) ck_assert_int_gt(worked, inside / 4);

  ck_assert_int_eq(lite_cancel_recv(rank->idle_request), 1);
  s->word[kEnd] = 1;
  ck_assert(two_ranks::finish(*s));
  int status = -1;
  ck_assert_int_eq(waitpid(other, &status, 0), other);
  ck_assert_int_eq(status, 0);
  delete rank;
}

#endif

}  // namespace

#if defined(HAS_TRAP_FLAG)

START_TEST(message_arrives_at_every_instruction_of_posting_its_receive) {
  step_through("post", Call::kPost);
}
END_TEST

START_TEST(message_arrives_at_every_instruction_of_a_short_send) {
  step_through("empty send", Call::kSendNothing);
}
END_TEST

START_TEST(message_arrives_at_every_instruction_of_a_short_send_with_data) {
  step_through("short send", Call::kSendShort);
}
END_TEST

START_TEST(message_arrives_at_every_instruction_of_an_eager_send) {
  step_through("eager send", Call::kSendEager);
}
END_TEST

START_TEST(message_arrives_at_every_instruction_of_a_rendezvous_send) {
  step_through("rendezvous send", Call::kSendRendezvous);
}
END_TEST

START_TEST(message_arrives_at_every_instruction_of_cancelling_its_receive) {
  step_through("cancel", Call::kCancel);
}
END_TEST

START_TEST(message_arrives_at_every_instruction_of_probing_for_it) {
  step_through("probe", Call::kProbe);
}
END_TEST

START_TEST(message_arrives_at_every_instruction_of_progress) {
  step_through("progress", Call::kProgress);
}
END_TEST

START_TEST(message_arrives_at_every_instruction_of_leaving_the_library) {
  step_through("leave", Call::kLeave);
}
END_TEST

START_TEST(message_arrives_at_every_instruction_of_leaving_the_library_unarmed) {
  step_through("leave unarmed", Call::kLeave, true);
}
END_TEST

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--all") == 0) {
      g_all = true;
    } else if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      g_seconds = std::atof(argv[++i]);
    } else {
      std::printf("Usage: step_test [--all] [--seconds T]\n");
      return std::strcmp(argv[i], "--help") == 0 ? 0 : 2;
    }
  }
  alloc_trap::install();
  return run_tests("step", g_all ? 1800 : g_seconds + 60);
}

#else

int main() {
  std::printf("stepping by the trap flag is for x86-64\n");
  return 77;
}

#endif
