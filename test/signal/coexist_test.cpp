// The library in a process that has a life of its own: it forks and executes, takes our signal, has
// threads and little stacks. (MPI programs: test/lab/coexist.sh.) Rank 0 does what is to be shown;
// rank 1 is its partner.
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <functional>
#include <string>
#include <thread>  // before check.h and its macro fail

#include "run_tests.h"
#include "two_ranks.h"

extern char** environ;

using namespace two_ranks;

namespace {

constexpr std::size_t kBulkBytes = 4'000'000;

// Both ranks exchange `bytes`; the data is looked at.
bool exchange(int rank, std::size_t bytes, unsigned salt,
              const std::function<void()>& meanwhile = {}) {
  std::vector<std::uint8_t> out(bytes), in(bytes, 0);
  fill(out, salt + static_cast<unsigned>(rank));
  Done sent, got;
  if (!receive(in.data(), bytes, 1 - rank, 7, got) || !send(out.data(), bytes, 1 - rank, 7, sent))
    return false;
  lite_host_exit();
  if (meanwhile) meanwhile();
  return wait_for(got) && wait_for(sent) && holds(in, salt + static_cast<unsigned>(1 - rank));
}

// Without a call of the library; 5 seconds at the most. Looks at a buffer that the library is
// writing, as no program may: ThreadSanitizer shall not see it.
[[gnu::no_sanitize_thread]] bool fills_while_computing(const std::vector<std::uint8_t>& data,
                                                       const std::vector<std::uint8_t>& wanted) {
  const double end = now_s() + 5;
  const volatile std::uint8_t* seen = data.data();
  bool there = false;
  while (!there && now_s() < end) {
    there = true;
    for (std::size_t i = data.size() - 50; i < data.size(); ++i)
      there = there && seen[i] == wanted[i];
  }
  return there;
}

// Rank 0 posts a receive, leaves the library and computes; whether the message, which is sent only
// then, is there before the next call.
bool arrives_while_computing(Shared& s, int rank, int step) {
  std::vector<std::uint8_t> data(kBulkBytes, 0);
  Done done;
  if (rank == 1) {
    fill(data, 5);
    return barrier(s, step) && send(data.data(), data.size(), 0, 9, done) && wait_for(done);
  }
  if (!receive(data.data(), data.size(), 1, 9, done)) return false;
  lite_host_exit();
  std::vector<std::uint8_t> wanted(kBulkBytes);
  fill(wanted, 5);
  barrier(s, step);
  const bool there = fills_while_computing(data, wanted);
  return wait_for(done) && data == wanted && there;
}

bool is_blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}
// The application stays away after lite_host_exit(): at once, or when the backstop has come, where
// the machine's load has made quick returns of the calls before.
bool gets_armed() {
  const double end = now_s() + 5;
  while (is_blocked(SIGIO) && now_s() < end) {}
  return !is_blocked(SIGIO);
}
bool is_default(int signal) {
  struct sigaction now = {};
  sigaction(signal, nullptr, &now);
  return (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
}
int exit_code_of(pid_t child) {
  int status = -1;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// stderr into a file from here on.
struct Overheard {
  char name[64] = "/tmp/coexist_test.XXXXXX";
  int fd, before;
  Overheard() : fd(mkstemp(name)), before(dup(2)) {
    unlink(name);
    dup2(fd, 2);
  }
  ~Overheard() {
    dup2(before, 2);
    close(before);
    const std::string said = text();
    if (write(2, said.data(), said.size()) < 0) errno = 0;
    close(fd);
  }
  std::string text() const {
    char buffer[8192];
    const ssize_t n = pread(fd, buffer, sizeof buffer, 0);
    return {buffer, n > 0 ? static_cast<std::size_t>(n) : 0};
  }
};
int times(const std::string& text, const char* word) {
  int n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

std::atomic<int> g_own_signals{0};
void own_handler(int) { ++g_own_signals; }

bool thread_does(const std::function<bool()>& what) {
  struct Job {
    const std::function<bool()>* what;
    bool good;
  } job = {&what, false};
  pthread_t thread;
  const auto run = [](void* arg) -> void* {
    auto* j = static_cast<Job*>(arg);
    j->good = (*j->what)();
    return nullptr;
  };
  if (pthread_create(&thread, nullptr, run, &job) != 0) return false;
  pthread_join(thread, nullptr);
  usleep(20'000);  // a thread is joined a moment before the kernel has forgotten it
  return job.good;
}

// ---- fork and exec ----

int inherit(Shared& s, int rank) {
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  for (int armed = 0; armed < 2; ++armed) {
    char word = 0;
    Done got;
    if (rank == 0) {
      if (armed) {
        if (!receive(&word, 1, 1, 8, got)) return __LINE__;
        lite_host_exit();
        if (!gets_armed()) return __LINE__;
      }
      // With nothing outstanding it is blocked, or still open, where the last message came by it.
      const bool blocked = is_blocked(SIGIO);
      const pid_t child = fork();
      if (child == 0)
        _exit(is_blocked(SIGIO) ? 2 : !is_default(SIGIO) ? 3 : LITE_HOT_GET(want_arm) != 0 ? 4 : 0);
      if (exit_code_of(child) != 0) return __LINE__;
      if (is_blocked(SIGIO) != blocked || is_default(SIGIO))
        return __LINE__;  // nothing has changed here
    }
    if (!barrier(s, 20 + armed)) return __LINE__;
    Done sent;
    if (armed && rank == 1 && (!send(&word, 1, 0, 8, sent) || !wait_for(sent))) return __LINE__;
    if (armed && rank == 0 && !wait_for(got)) return __LINE__;
  }
  return exchange(rank, 100'000, 2) && finish(s) ? 0 : __LINE__;
}

void set_blocked(int signal, bool blocked) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &one, nullptr);
}

// The application has blocked the signal itself: before the start, in a thread that never calls, or
// in a child.
int inherit_blocked(Shared& s, int rank) {
  set_blocked(SIGIO, true);
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  char word = 0;
  Done got, sent;
  if (rank == 0) {
    if (!receive(&word, 1, 1, 8, got)) return __LINE__;
    lite_host_exit();
    if (!gets_armed()) return __LINE__;
    const pid_t child = fork();
    if (child == 0) _exit(!is_blocked(SIGIO) ? 2 : !is_default(SIGIO) ? 3 : 0);
    if (exit_code_of(child) != 0) return __LINE__;
  }
  if (!barrier(s, 20)) return __LINE__;
  if (rank == 1 && (!send(&word, 1, 0, 8, sent) || !wait_for(sent))) return __LINE__;
  if (rank == 0 && !wait_for(got)) return __LINE__;
  return finish(s) && is_blocked(SIGIO) ? 0 : __LINE__;
}

int fork_in_blocked_thread(Shared& s, int rank) {
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  if (rank == 0) {
    int code = -1;
    if (!thread_does([&] {
          set_blocked(SIGIO, true);
          const pid_t child = fork();
          if (child == 0) _exit(is_blocked(SIGIO) ? 0 : 2);
          code = exit_code_of(child);
          return true;
        }) ||
        code != 0)
      return __LINE__;
    const pid_t child = fork();
    if (child == 0) {
      set_blocked(SIGIO, true);
      const pid_t grandchild = fork();
      if (grandchild == 0) _exit(is_blocked(SIGIO) ? 0 : 2);
      _exit(exit_code_of(grandchild));
    }
    if (exit_code_of(child) != 0) return __LINE__;
  }
  return exchange(rank, 100'000, 2) && finish(s) ? 0 : __LINE__;
}

int call_in_child(Shared& s, int rank) {
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  for (int i = 0; i < 3 && rank == 0; ++i) {
    Overheard heard;
    const pid_t child = fork();
    if (child == 0) {
      lite_host_exit();
      char word = 0;
      Done done;
      if (i == 0) lite_progress();
      if (i == 1) send(&word, 1, 1, 99, done);
      if (i == 2) lite_flush();
      _exit(0);
    }
    if (exit_code_of(child) != 1) return __LINE__;
    if (times(heard.text(), "child made by fork()") != 1) return __LINE__;
  }
  return exchange(rank, 1'000'000, 2) && arrives_while_computing(s, rank, 20) && finish(s)
             ? 0
             : __LINE__;
}

// Each kind of child that there is, while messages are in flight.
void make_child(int kind) {
  static char* const truth[] = {const_cast<char*>("true"), nullptr};
  pid_t child = -1;
  if (kind == 5) {
    if (posix_spawnp(&child, "true", nullptr, nullptr, truth, environ) != 0) child = -1;
  } else if (kind == 6) {
    if (system("true") != 0) _exit(1);
    return;
  } else {
    child = fork();
  }
  if (child == 0) {
    if (kind == 1) exit(0);
    if (kind == 2) execvp("true", truth), _exit(1);
    if (kind == 3)
      for (int fd = 3; fd < 200; ++fd) close(fd);
    if (kind == 4) {  // what was open is gone, and its numbers are used again
      for (int fd = 3; fd < 200; ++fd) close(fd);
      for (int i = 0; i < 20; ++i)
        if (open("/dev/null", O_RDWR) < 0) _exit(1);
      const double end = now_s() + 0.02;
      while (now_s() < end) raise(SIGURG);
    }
    _exit(0);
  }
  if (exit_code_of(child) != 0) std::fprintf(stderr, "child of kind %d fails\n", kind), _exit(1);
}

int children_in_traffic(Shared& s, int rank) {
  if (!start(s, rank)) return __LINE__;
  for (unsigned i = 0; i < 70; ++i) {
    const std::size_t bytes = i % 3 == 0 ? 2'000'000 : i % 3 == 1 ? 50'000 : 100;
    if (!exchange(rank, bytes, i, [&] {
          if (rank == 0 || i % 4 == 0) make_child(static_cast<int>(i % 7));
        }))
      return __LINE__;
  }
  const bool own = std::getenv("LITE_CONTROLLER") == nullptr ||
                   std::strcmp(std::getenv("LITE_CONTROLLER"), "sync") != 0;
  if (own && !arrives_while_computing(s, rank, 20)) return __LINE__;
  return finish(s) ? 0 : __LINE__;
}

int outlived(Shared& s, int rank) {
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  if (rank == 1) {
    const pid_t child = fork();
    if (child == 0) {
      sleep(25);
      _exit(0);
    }
    s.word[0] = child;
    barrier(s, 20);
    _exit(0);
  }
  char word;
  Done never;
  if (!receive(&word, 1, 1, 8, never) || !barrier(s, 20)) return __LINE__;
  const double end = now_s() + 10;
  while (!never.done && now_s() < end)
    if (!look()) break;
  kill(s.word[0], SIGKILL);
  if (!never.done || never.status.error != LITE_ERR_PEER_LOST) return __LINE__;
  lite_finalize_quiesce();
  lite_finalize_close();
  return 0;
}

// The descriptors above 2 that a program executed from here finds, sockets and such.
int descriptors_of_an_executed_program() {
  FILE* pipe = popen(
      "for f in /proc/$$/fd/*; do [ ${f##*/} -le 2 ] || readlink $f; done | grep -c -e '^socket:' "
      "-e '^anon_inode:'",
      "r");
  int count = -1;
  if (pipe == nullptr) return -1;
  if (fscanf(pipe, "%d", &count) != 1) count = -1;
  pclose(pipe);
  return count;
}

int leak_nothing(Shared& s, int rank) {
  const int before = descriptors_of_an_executed_program();
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  const int after = descriptors_of_an_executed_program();
  if (before < 0 || after != before) return __LINE__;
  return finish(s) ? 0 : __LINE__;
}

// ---- the signal ----

// `taken`: what the application does with it after the start.
int take_signal(Shared& s, int rank, int signal, void (*handler)(int)) {
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  Overheard heard;
  if (rank == 0) {
    struct sigaction action = {};
    action.sa_handler = handler;
    sigaction(signal, &action, nullptr);
  }
  if (!arrives_while_computing(s, rank, 20)) return __LINE__;
  if (!arrives_while_computing(s, rank, 21)) return __LINE__;
  if (rank == 0) {
    // At most what was pending when it changed hands came to the application; from now on exactly
    // its own comes.
    if (g_own_signals > 1) return __LINE__;
    g_own_signals = 0;
    if (handler == own_handler && (raise(signal) != 0 || g_own_signals != 1)) return __LINE__;
  }
  if (!exchange(rank, 1'000'000, 3) || !finish(s)) return __LINE__;
  if (rank == 1) return 0;
  const std::string said = heard.text();
  if (times(said, "taken by the application") != 1 || times(said, "LITE_SIGNAL") != 1 ||
      times(said, "LITE_CONTROLLER=thread") != 1)
    return __LINE__;
  struct sigaction now = {};
  sigaction(signal, nullptr, &now);
  if (now.sa_handler != handler || is_blocked(signal)) return __LINE__;  // it keeps it
  for (int other = SIGRTMIN; other <= SIGRTMAX; ++other)
    if (other != signal && (!is_default(other) || is_blocked(other))) return __LINE__;
  return 0;
}

// Open, and the application does not wait before it leaves again.
int take_open_signal(Shared& s, int rank) {
  char word = 0;
  Done got, sent;
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  if (rank == 0) {
    if (!receive(&word, 1, 1, 8, got)) return __LINE__;
    lite_host_exit();
    if (is_blocked(SIGIO)) return __LINE__;
    signal(SIGIO, own_handler);
  }
  if (!arrives_while_computing(s, rank, 20)) return __LINE__;
  if (rank == 1 && (!send(&word, 1, 0, 8, sent) || !wait_for(sent))) return __LINE__;
  if (rank == 0 && !wait_for(got)) return __LINE__;
  return finish(s) ? 0 : __LINE__;
}

// A departure that is not armed, since others of its kind have proved quick; the mask of that
// moment. Something is outstanding.
bool leave_trusted(sigset_t* mask) {
  const double end = now_s() + 20;
  while (now_s() < end) {
    LITE_HOT_SET(last_call, LITE_CALL_RECEIVE);
    lite_host_exit();
    pthread_sigmask(SIG_BLOCK, nullptr, mask);
    if (sigismember(mask, SIGIO) == 1) return true;
    look();
  }
  return false;
}

// The application saved its mask before the backstop opened the signal, and puts it back after
// that.
int put_old_mask_back(Shared& s, int rank) {
  std::vector<std::uint8_t> data(kBulkBytes), wanted(kBulkBytes);
  Done done;
  fill(wanted, 5);
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  if (rank == 1)
    return barrier(s, 20) && send(wanted.data(), kBulkBytes, 0, 9, done) && wait_for(done) &&
                   finish(s)
               ? 0
               : __LINE__;
  if (!receive(data.data(), kBulkBytes, 1, 9, done)) return __LINE__;
  sigset_t before;
  if (!leave_trusted(&before)) return __LINE__;
  const double end = now_s() + 5;
  while (is_blocked(SIGIO))
    if (now_s() > end) return __LINE__;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!barrier(s, 20)) return __LINE__;
  if (!fills_while_computing(data, wanted)) return __LINE__;
  if (is_blocked(SIGIO)) return __LINE__;
  return wait_for(done) && data == wanted && finish(s) ? 0 : __LINE__;
}

int take_all_signals(Shared& s, int rank) {
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  Overheard heard;
  if (rank == 0) {
    signal(SIGIO, own_handler);
    for (int other = SIGRTMIN; other <= SIGRTMAX; ++other) signal(other, own_handler);
  }
  for (unsigned i = 0; i < 10; ++i)
    if (!exchange(rank, 1'000'000, i, [] { usleep(1000); })) return __LINE__;
  if (!finish(s)) return __LINE__;
  return rank == 1 || times(heard.text(), "inside MPI calls only") == 1 ? 0 : __LINE__;
}

// Rank 0 waits for a message for so long that `signal` is blocked, as nothing is outstanding. Where
// the system gives it no processor until the message is there, again, and for longer.
bool exchange_behind_a_wait(Shared& s, int rank, int signal) {
  for (int i = 0; i < 8; ++i) {
    if (rank == 1) usleep(50'000u << i);
    if (!exchange(rank, 8, 2)) return false;
    if (rank == 0) s.word[15] = is_blocked(signal) ? 1 : 0;
    if (!barrier(s, 40 + i)) return false;
    if (s.word[15] == 1) return true;
  }
  return true;
}

// With a real-time signal the library uses SIGIO for the overflow; the application may take that,
// too.
int take_overflow(Shared& s, int rank) {
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  if (rank == 0) signal(SIGIO, own_handler);
  if (!arrives_while_computing(s, rank, 20) || !barrier(s, 21)) return __LINE__;
  if (!exchange_behind_a_wait(s, rank, SIGRTMIN + 1)) return __LINE__;
  if (rank == 0) {
    if (!is_blocked(SIGRTMIN + 1) || is_blocked(SIGIO))
      return __LINE__;  // ours is, as nothing is outstanding, and theirs is not
    if (g_own_signals != 0 || raise(SIGIO) != 0 || g_own_signals != 1) return __LINE__;
    if (is_default(SIGRTMIN + 1)) return __LINE__;  // nothing to change there
  }
  return finish(s) ? 0 : __LINE__;
}

// It takes that while it is away from the library, `armed` or behind a departure that was trusted,
// and `blocks` it.
int take_overflow_away(Shared& s, int rank, bool armed, bool blocks = false) {
  std::vector<std::uint8_t> data(kBulkBytes), wanted(kBulkBytes);
  Done done;
  sigset_t before;
  fill(wanted, 5);
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  if (rank == 1) {
    if (!barrier(s, 20) || !send(wanted.data(), kBulkBytes, 0, 9, done) || !wait_for(done))
      return __LINE__;
    return exchange_behind_a_wait(s, rank, SIGRTMIN + 1) && finish(s) ? 0 : __LINE__;
  }
  if (!receive(data.data(), kBulkBytes, 1, 9, done) || !leave_trusted(&before)) return __LINE__;
  if (armed && !gets_armed()) return __LINE__;
  signal(SIGIO, own_handler);
  if (blocks) set_blocked(SIGIO, true);
  lite_host_exit();
  if (!barrier(s, 20) || !fills_while_computing(data, wanted)) return __LINE__;
  if (!wait_for(done) || data != wanted || !exchange_behind_a_wait(s, rank, SIGRTMIN + 1))
    return __LINE__;
  if (!is_blocked(SIGRTMIN + 1) || is_blocked(SIGIO) != blocks) return __LINE__;
  if (blocks) return finish(s) && is_blocked(SIGIO) ? 0 : __LINE__;
  if (g_own_signals != 0 || raise(SIGIO) != 0 || g_own_signals != 1) return __LINE__;
  return finish(s) ? 0 : __LINE__;
}

// The application has blocked SIGIO, as who takes it by sigwait does, and has no handler. With a
// real-time signal, by LITE_SIGNAL or as SIGIO is blocked.
int overflow_signal_is_blocked(Shared& s, int rank) {
  set_blocked(SIGIO, true);
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  bool blocked = false;
  if (!exchange(rank, 1'000'000, 2, [&] { blocked = is_blocked(SIGIO); }) || !blocked)
    return __LINE__;
  if (!arrives_while_computing(s, rank, 20)) return __LINE__;
  raise(SIGIO);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGIO);
  const timespec now = {0, 0};
  if (sigtimedwait(&one, nullptr, &now) != SIGIO) return __LINE__;
  return finish(s) && is_blocked(SIGIO) && is_default(SIGIO) ? 0 : __LINE__;
}

// With a real-time signal; the thread that becomes the owner has blocked SIGIO, or has not, where
// the first one did the opposite. `arrives_while_computing` arms it.
int overflow_signal_in_a_new_owner(Shared& s, int rank, bool first_blocked) {
  set_blocked(SIGIO, first_blocked);
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  for (int i = 0; i < 5; ++i)
    if (!look()) return __LINE__;  // disarmed
  char word = 0;
  Done never;
  bool armed_as_wanted = false;
  const bool good = thread_does([&] {
    set_blocked(SIGIO, !first_blocked);
    if (!exchange(rank, 1'000'000, 2) || !receive(&word, 1, 1 - rank, 8, never)) return false;
    lite_host_exit();
    // at once, or by the backstop
    for (const double end = now_s() + 5; is_blocked(SIGRTMIN + 1) && now_s() < end;) usleep(1000);
    armed_as_wanted = !is_blocked(SIGRTMIN + 1) && is_blocked(SIGIO) == !first_blocked;
    return look() && arrives_while_computing(s, rank, 20);
  });
  Done sent;
  if (!send(&word, 1, 1 - rank, 8, sent) || !wait_for(sent) || !wait_for(never)) return __LINE__;
  return good && armed_as_wanted && finish(s) && is_blocked(SIGIO) == first_blocked ? 0 : __LINE__;
}

// The signal that takes over was blocked at the start and is open when it is chosen.
int next_signal_was_blocked(Shared& s, int rank) {
  for (int other = SIGRTMIN; other <= SIGRTMAX; ++other) set_blocked(other, true);
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  for (int other = SIGRTMIN; other <= SIGRTMAX; ++other) set_blocked(other, false);
  if (rank == 0) signal(SIGIO, own_handler);
  if (!arrives_while_computing(s, rank, 20) || !finish(s)) return __LINE__;
  for (int other = SIGRTMIN; other <= SIGRTMAX; ++other)
    if (!is_default(other) || is_blocked(other)) return __LINE__;
  return 0;
}

int small_stack(Shared& s, int rank, bool early) {
  static char stack[8192];
  // AddressSanitizer brings a large one, which is what the library goes by at its start
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  if (!early && (!start(s, rank) || !exchange(rank, 1000, 1))) return __LINE__;
  std::memset(stack, 0x5a, sizeof stack);
  stack_t st = {};
  st.ss_sp = stack;
  st.ss_size = sizeof stack;
  if (sigaltstack(&st, nullptr) != 0) return __LINE__;
  if (early && !start(s, rank)) return __LINE__;
  for (int i = 0; i < 5; ++i)
    if (!arrives_while_computing(s, rank, 20 + i)) return __LINE__;
  for (const char c : stack)
    if (c != 0x5a) return __LINE__;
  return finish(s) ? 0 : __LINE__;
}

bool have_stack(void* memory, std::size_t bytes) {
  stack_t st = {};
  st.ss_sp = memory;
  st.ss_size = bytes;
  return sigaltstack(&st, nullptr) == 0;
}

// Those of crash handlers that are about as large as ours wants it: the kernel's frame is on it,
// too.
int stack_of(Shared& s, int rank, std::size_t bytes) {
  static char stack[64 * 1024];
  if (!have_stack(stack, bytes) || !start(s, rank)) return __LINE__;
  for (int i = 0; i < 5; ++i)
    if (!arrives_while_computing(s, rank, 20 + i)) return __LINE__;
  return finish(s) ? 0 : __LINE__;
}

int large_stack_becomes_small(Shared& s, int rank) {
  static char large[64 * 1024], small[12 * 1024];
  if (!have_stack(large, sizeof large) || !start(s, rank)) return __LINE__;
  if (!arrives_while_computing(s, rank, 20)) return __LINE__;
  if (!have_stack(small, sizeof small)) return __LINE__;
  for (int i = 1; i < 5; ++i)
    if (!arrives_while_computing(s, rank, 20 + i)) return __LINE__;
  return finish(s) ? 0 : __LINE__;
}

// A handler of the application's runs on a small alternate stack, as crash handlers and profilers
// have it, when data comes: ours has no room there. A page below it must not be touched.
volatile int* g_message_is_under_way = nullptr;

void stays_until_data_has_come(int) {
  const double end = now_s() + 5;
  while (*g_message_is_under_way == 0 && now_s() < end) {}
  for (const double more = now_s() + 0.05; now_s() < more;) {}
}

int interrupted_on_a_small_stack(Shared& s, int rank, const char* grace) {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t kStack = 14 * 1024;  // what it puts into frames needs some
#else
  constexpr std::size_t kStack = 8 * 1024;
#endif
  constexpr std::size_t kPage = 4096;
  stack_t st = {};
  st.ss_flags = SS_DISABLE;  // as in small_stack()
  sigaltstack(&st, nullptr);
  setenv("LITE_GRACE", grace, 1);
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  for (int i = 0; i < 5; ++i) {
    std::vector<std::uint8_t> data(kBulkBytes, 0), wanted(kBulkBytes);
    fill(wanted, 5);
    Done done;
    static_assert(sizeof s.word[0] == sizeof(int));
    g_message_is_under_way = reinterpret_cast<volatile int*>(&s.word[i]);
    if (rank == 1) {
      if (!barrier(s, 20 + i) || !send(wanted.data(), kBulkBytes, 0, 9, done)) return __LINE__;
      s.word[i] = 1;
      if (!wait_for(done)) return __LINE__;
      continue;
    }
    auto* memory = static_cast<char*>(
        mmap(nullptr, kPage + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED || mprotect(memory, kPage, PROT_NONE) != 0) return __LINE__;
    st.ss_flags = 0;
    st.ss_sp = memory + kPage;
    st.ss_size = kStack;
    struct sigaction action = {};
    action.sa_handler = stays_until_data_has_come;
    action.sa_flags = SA_ONSTACK;
    if (sigaltstack(&st, nullptr) != 0 || sigaction(SIGUSR1, &action, nullptr) != 0)
      return __LINE__;
    if (!receive(data.data(), kBulkBytes, 1, 9, done)) return __LINE__;
    lite_host_exit();
    if (!barrier(s, 20 + i)) return __LINE__;
    raise(SIGUSR1);
    if (!fills_while_computing(data, wanted)) return __LINE__;
    if (!wait_for(done)) return __LINE__;
    st.ss_flags = SS_DISABLE;
    sigaltstack(&st, nullptr);
    munmap(memory, kPage + kStack);
  }
  return finish(s) ? 0 : __LINE__;
}

// ---- threads ----

std::atomic<bool> g_threads_end{false};
std::atomic<int> g_interrupted{0};

void* sleeper(void*) {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  while (!g_threads_end) {
    const timespec moment = {0, 5'000'000};
    if (nanosleep(&moment, nullptr) != 0) ++g_interrupted;
  }
  return nullptr;
}

int hit_only_the_owner(Shared& s, int rank) {
  pthread_t before, after;
  if (pthread_create(&before, nullptr, sleeper, nullptr) != 0) return __LINE__;
  if (!start(s, rank)) return __LINE__;
  if (pthread_create(&after, nullptr, sleeper, nullptr) != 0) return __LINE__;
  for (unsigned i = 0; i < 10; ++i)
    if (!exchange(rank, 1'000'000, i, [] { usleep(2000); }) ||
        !arrives_while_computing(s, rank, 20 + static_cast<int>(i)))
      return __LINE__;
  g_threads_end = true;
  pthread_join(before, nullptr);
  pthread_join(after, nullptr);
  return g_interrupted == 0 && finish(s) ? 0 : __LINE__;
}

int call_from_others(Shared& s, int rank) {
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  if (!thread_does(
          [&] { return exchange(rank, 1'000'000, 2) && arrives_while_computing(s, rank, 20); }))
    return __LINE__;
  if (!exchange(rank, 1'000'000, 3) || !arrives_while_computing(s, rank, 21)) return __LINE__;
  // In turns: the next one takes what the last one began.
  for (unsigned i = 0; i < 10; ++i) {
    if (!thread_does([&] { return exchange(rank, 300'000, i); }) || !exchange(rank, 300'000, i))
      return __LINE__;
  }
  return finish(s) ? 0 : __LINE__;
}

// Each thread gets its own mask back: one that owned the signal before another did, and did again.
int former_owner_ends(Shared& s, int rank, bool again) {
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  if (!thread_does(
          [&] { return exchange(rank, 1'000'000, 2) && arrives_while_computing(s, rank, 20); }))
    return __LINE__;
  if (again && (!exchange(rank, 1'000'000, 3) || !arrives_while_computing(s, rank, 21)))
    return __LINE__;
  return finish(s) && !is_blocked(SIGIO) && is_default(SIGIO) ? 0 : __LINE__;
}

// The library ends in the thread that started it, while another one owns the signal: with it open,
// as something is outstanding, or not.
int end_beside_owner(Shared& s, int rank, bool blocked, bool armed) {
  struct Worker {
    Shared* shared;
    int rank;
    bool blocked, armed;
    char word;
    Done never;
    std::atomic<int> called{0}, ended{0};
    bool good = false;
  } worker{&s, rank, blocked, armed, 0, {}, {}, {}};
  const auto run = [](void* arg) -> void* {
    auto& w = *static_cast<Worker*>(arg);
    set_blocked(SIGIO, w.blocked);
    w.good = exchange(w.rank, 1'000'000, 2) && arrives_while_computing(*w.shared, w.rank, 20);
    if (w.armed) {
      w.good = w.good && receive(&w.word, 1, 1 - w.rank, 8, w.never);
      lite_host_exit();
      // at once, or by the backstop, which on a loaded machine takes its time
      for (const double end = now_s() + 5; is_blocked(SIGIO) && now_s() < end;) usleep(1000);
      w.good = w.good && !is_blocked(SIGIO);
    } else {
      for (int i = 0; i < 5; ++i) look();  // inside, and so disarmed
      w.good = w.good && is_blocked(SIGIO);
    }
    w.called = 1;
    while (w.ended == 0) usleep(100);
    w.good = w.good && is_blocked(SIGIO) == w.blocked;
    return nullptr;
  };
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  for (int i = 0; i < 5; ++i)
    if (!look()) return __LINE__;  // disarmed for certain: an armed owner would keep the signal
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run, &worker) != 0) return __LINE__;
  while (worker.called == 0) usleep(100);
  const bool good = finish(s) && !is_blocked(SIGIO);
  worker.ended = 1;
  pthread_join(thread, nullptr);
  return good && worker.good ? 0 : __LINE__;
}

// What had come before was announced to the former owner, and is not announced again.
int take_over_late(Shared& s, int rank) {
  std::vector<std::uint8_t> data(1000), wanted(1000);
  Done done;
  fill(wanted, 5);
  if (!start(s, rank) || !exchange(rank, 1000, 1) || !arrives_while_computing(s, rank, 20))
    return __LINE__;
  for (int i = 0; i < 5; ++i)
    if (!look()) return __LINE__;  // inside, and so disarmed
  if (!barrier(s, 21)) return __LINE__;
  if (rank == 1)
    return send(wanted.data(), wanted.size(), 0, 9, done) && wait_for(done) && barrier(s, 22) &&
                   finish(s)
               ? 0
               : __LINE__;
  if (!barrier(s, 22)) return __LINE__;
  usleep(50'000);  // it is in the socket
  if (!is_blocked(SIGIO)) return __LINE__;
  const bool there = thread_does([&] {
    if (!receive(data.data(), data.size(), 1, 9, done) || done.done) return false;
    lite_host_exit();
    return fills_while_computing(data, wanted);
  });
  return there && wait_for(done) && finish(s) ? 0 : __LINE__;
}

int owner_ends(Shared& s, int rank, bool armed, bool multiple) {
  char word = 0;
  Done got, sent;
  if (!thread_does([&] {
        if (!start(s, rank) || !exchange(rank, 1000, 1)) return false;
        if (multiple) lite_set_thread_multiple(1);
        if (armed && !receive(&word, 1, 1 - rank, 8, got)) return false;
        if (armed) lite_host_exit();
        return true;
      }))
    return __LINE__;
  if (!exchange(rank, 1'000'000, 2)) return __LINE__;
  if (armed && (!send(&word, 1, 1 - rank, 8, sent) || !wait_for(got) || !wait_for(sent)))
    return __LINE__;
  // A long wait of somebody else, then somebody else is who computes.
  if (!barrier(s, 19)) return __LINE__;
  if (rank == 1) usleep(200'000);
  if (!exchange(rank, 1'000'000, 3)) return __LINE__;
  return arrives_while_computing(s, rank, 20) && finish(s) ? 0 : __LINE__;
}

// Another thread waits in the library while the armed owner computes, whose handler takes what is
// for both: always before the other thread, if that is one of low priority. How late is the message
// that it waits for? A sleep is up to a tenth of a second. How late such a thread gets a core is
// seen by a short sleep.
int wait_beside_owner(Shared& s, int rank) {
  constexpr int kTimes = 5;
  if (!start(s, rank) || !exchange(rank, 1000, 1)) return __LINE__;
  double late_s[kTimes] = {}, nap_late_s[kTimes] = {};
  for (int i = 0; i < kTimes; ++i) {
    char word = 0;
    double sent_s = 0;
    Done last, first, sent, answered;
    if (rank == 1) {
      if (!receive(&word, 1, 0, 10, answered) || !barrier(s, 20 + i)) return __LINE__;
      usleep(800'000);
      sent_s = now_s();
      if (!send(&sent_s, sizeof sent_s, 0, 9, first) || !wait_for(first) || !wait_for(answered) ||
          !send(&word, 1, 0, 8, last) || !wait_for(last))
        return __LINE__;
      continue;
    }
    if (!receive(&word, 1, 1, 8, last)) return __LINE__;
    lite_host_exit();
    if (!gets_armed() || !barrier(s, 20 + i)) return __LINE__;
    std::atomic<bool> ended{false};
    bool good = false;
    std::thread other([&] {
      setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
      const double began_s = now_s();
      usleep(20'000);
      nap_late_s[i] = now_s() - began_s - 0.02;
      good = receive(&sent_s, sizeof sent_s, 1, 9, first) && wait_for(first);
      late_s[i] = now_s() - sent_s;
      lite_host_exit();
      ended = true;
    });
    while (!ended) {}
    other.join();
    if (!good || !send(&word, 1, 1, 10, sent) || !wait_for(sent) || !wait_for(last))
      return __LINE__;
  }
  std::sort(late_s, late_s + kTimes);
  std::sort(nap_late_s, nap_late_s + kTimes);
  const double late = late_s[kTimes / 2], most = 0.01 + 3 * nap_late_s[kTimes / 2];
  if (rank == 0 && late > most) {
    std::fprintf(stderr, "%.3f s late, not %.3f, the median of %d\n", late, most, kTimes);
    return __LINE__;
  }
  return finish(s) ? 0 : __LINE__;
}

// The next thread leaves the library without having waited in it.
int owner_ends_and_nobody_waits(Shared& s, int rank) {
  char word = 0;
  Done got, sent;
  if (!thread_does([&] {
        if (!start(s, rank) || !exchange(rank, 1000, 1) || !receive(&word, 1, 1 - rank, 8, got))
          return false;
        lite_host_exit();
        return true;
      }))
    return __LINE__;
  if (!arrives_while_computing(s, rank, 20)) return __LINE__;
  return send(&word, 1, 1 - rank, 8, sent) && wait_for(got) && wait_for(sent) && finish(s)
             ? 0
             : __LINE__;
}

// Cancelled (deferred, as threads are by default) while it computes: it ends at a cancellation
// point of its own, not at one in our handler, gate held.
int owner_is_cancelled(Shared& s, int rank) {
  static char data[64 * 1024];
  std::atomic<bool> ready{false}, may_end{false}, ended_by_itself{false};
  Done got, sent;
  pthread_t owner;
  const auto body = [&] {
    ended_by_itself = start(s, rank) && exchange(rank, 1000, 1) &&
                      (rank == 1 || receive(data, sizeof data, 1, 8, got));
    lite_host_exit();
    ready = true;
    while (!may_end) {}
    pthread_testcancel();
    ended_by_itself = false;
  };
  using Body = decltype(body);
  const auto main = [](void* arg) -> void* {
    (*static_cast<Body*>(arg))();
    return nullptr;
  };
  if (pthread_create(&owner, nullptr, main, const_cast<void*>(static_cast<const void*>(&body))) !=
      0)
    return __LINE__;
  while (!ready) {}
  pthread_cancel(owner);
  if (!barrier(s, 19)) return __LINE__;
  if (rank == 1 && (!send(data, sizeof data, 0, 8, sent) || !wait_for(sent))) return __LINE__;
  if (rank == 0) usleep(200'000);  // the handler is at work
  may_end = true;
  void* result = nullptr;
  pthread_join(owner, &result);
  if (result != PTHREAD_CANCELED || !ended_by_itself) return __LINE__;
  return (rank == 1 || wait_for(got)) && exchange(rank, 1000, 3) && finish(s) ? 0 : __LINE__;
}

}  // namespace

START_TEST(child_of_fork_has_the_applications_mask_and_handler) { run_job(inherit); }
END_TEST
START_TEST(child_of_an_armed_thread_has_the_signal_blocked_as_the_application_had_it) {
  setenv("LITE_SIGNAL", "SIGIO", 1);
  run_job(inherit_blocked);
}
END_TEST
START_TEST(child_of_another_thread_and_a_childs_child_keep_their_masks) {
  run_job(fork_in_blocked_thread);
}
END_TEST
START_TEST(child_that_calls_the_library_is_told_and_ends_and_the_job_goes_on) {
  run_job(call_in_child);
}
END_TEST
START_TEST(children_of_every_kind_in_the_middle_of_traffic_change_nothing) {
  run_job(children_in_traffic);
}
END_TEST
START_TEST(children_change_nothing_for_the_helper_thread) {
  setenv("LITE_CONTROLLER", "thread", 1);
  run_job(children_in_traffic);
}
END_TEST
START_TEST(children_change_nothing_without_a_controller) {
  setenv("LITE_CONTROLLER", "sync", 1);
  run_job(children_in_traffic);
}
END_TEST
START_TEST(child_that_outlives_a_rank_does_not_hide_its_death) { run_job(outlived); }
END_TEST
START_TEST(executed_program_inherits_no_descriptor) { run_job(leak_nothing); }
END_TEST
START_TEST(handler_installed_after_the_start_gets_the_signal_and_another_takes_over) {
  run_job([](Shared& s, int rank) { return take_signal(s, rank, SIGIO, own_handler); });
}
END_TEST
START_TEST(signal_set_back_to_its_default_does_not_end_the_process) {
  run_job([](Shared& s, int rank) { return take_signal(s, rank, SIGIO, SIG_DFL); });
}
END_TEST
START_TEST(chosen_signal_may_be_taken_too) {
  setenv("LITE_SIGNAL", "SIGUSR2", 1);
  run_job([](Shared& s, int rank) { return take_signal(s, rank, SIGUSR2, own_handler); });
}
END_TEST
START_TEST(signal_taken_while_it_is_open_is_noticed_at_the_next_departure) {
  run_job(take_open_signal);
}
END_TEST
START_TEST(mask_of_before_put_back_is_noticed_while_computing) { run_job(put_old_mask_back); }
END_TEST
START_TEST(without_a_free_signal_messages_move_in_calls) { run_job(take_all_signals); }
END_TEST
START_TEST(signal_of_the_overflow_may_be_taken) {
  setenv("LITE_SIGNAL", "RTMIN+1", 1);
  run_job(take_overflow);
}
END_TEST
START_TEST(signal_of_the_overflow_may_be_taken_behind_a_trusted_departure) {
  setenv("LITE_SIGNAL", "RTMIN+1", 1);
  run_job([](Shared& s, int rank) { return take_overflow_away(s, rank, false); });
}
END_TEST
START_TEST(signal_of_the_overflow_may_be_taken_while_it_is_open) {
  setenv("LITE_SIGNAL", "RTMIN+1", 1);
  run_job([](Shared& s, int rank) { return take_overflow_away(s, rank, true); });
}
END_TEST
START_TEST(signal_of_the_overflow_that_is_taken_and_blocked_while_open_stays_blocked) {
  setenv("LITE_SIGNAL", "RTMIN+1", 1);
  run_job([](Shared& s, int rank) { return take_overflow_away(s, rank, true, true); });
}
END_TEST
START_TEST(blocked_signal_of_the_overflow_stays_blocked) {
  setenv("LITE_SIGNAL", "RTMIN+1", 1);
  run_job(overflow_signal_is_blocked);
}
END_TEST
START_TEST(signal_that_is_blocked_at_the_start_is_left_to_who_waits_for_it) {
  run_job(overflow_signal_is_blocked);
}
END_TEST
START_TEST(signal_of_the_overflow_is_as_the_present_owner_has_it) {
  setenv("LITE_SIGNAL", "RTMIN+1", 1);
  for (const bool first_blocked : {false, true})
    run_job([=](Shared& s, int rank) {
      return overflow_signal_in_a_new_owner(s, rank, first_blocked);
    });
}
END_TEST
START_TEST(signal_that_takes_over_is_given_back_as_it_was_then) {
  run_job(next_signal_was_blocked);
}
END_TEST
START_TEST(alternate_stack_that_is_too_small_is_not_used) {
  for (const bool early : {false, true})
    run_job([=](Shared& s, int rank) { return small_stack(s, rank, early); });
}
END_TEST
START_TEST(alternate_stack_of_any_size_is_no_hindrance) {
  for (const std::size_t bytes : {16'384, 18'160, 20'480, 24'576, 65'536})
    run_job([=](Shared& s, int rank) { return stack_of(s, rank, bytes); });
}
END_TEST
START_TEST(large_alternate_stack_may_become_a_small_one) { run_job(large_stack_becomes_small); }
END_TEST
START_TEST(handler_that_interrupts_another_on_a_small_stack_comes_later) {
  for (const char* grace : {"off", "auto"})
    run_job([=](Shared& s, int rank) { return interrupted_on_a_small_stack(s, rank, grace); });
  unsetenv("LITE_GRACE");
}
END_TEST
START_TEST(signals_hit_only_the_thread_that_calls) { run_job(hit_only_the_owner); }
END_TEST
START_TEST(thread_that_calls_becomes_the_owner) { run_job(call_from_others); }
END_TEST
START_TEST(former_owner_gets_its_mask_back) {
  run_job([](Shared& s, int rank) { return former_owner_ends(s, rank, false); });
}
END_TEST
START_TEST(owner_of_before_and_again_gets_its_first_mask_back) {
  run_job([](Shared& s, int rank) { return former_owner_ends(s, rank, true); });
}
END_TEST
START_TEST(owner_gets_its_mask_back_when_another_thread_ends_the_library) {
  for (const bool blocked : {false, true})
    for (const bool armed : {false, true})
      run_job([=](Shared& s, int rank) { return end_beside_owner(s, rank, blocked, armed); });
}
END_TEST
START_TEST(new_owner_finds_what_was_announced_to_the_former_one) { run_job(take_over_late); }
END_TEST
START_TEST(thread_that_waits_beside_the_armed_owner_is_told_of_its_message) {
  run_job(wait_beside_owner);
}
END_TEST
START_TEST(owner_that_ends_is_replaced) {
  run_job([](Shared& s, int rank) { return owner_ends(s, rank, false, false); });
}
END_TEST
START_TEST(owner_that_ends_armed_is_replaced) {
  run_job([](Shared& s, int rank) { return owner_ends(s, rank, true, false); });
}
END_TEST
START_TEST(owner_that_ends_armed_is_replaced_by_who_leaves_next) {
  run_job(owner_ends_and_nobody_waits);
}
END_TEST
START_TEST(owner_that_ends_is_replaced_with_several_threads) {
  run_job([](Shared& s, int rank) { return owner_ends(s, rank, true, true); });
}
END_TEST
START_TEST(owner_that_is_cancelled_does_not_end_in_our_handler) { run_job(owner_is_cancelled); }
END_TEST

int main() {
  if (!kSignalsComeAnywhere)
    return run_only("coexist",
                    {children_change_nothing_for_the_helper_thread,
                     children_change_nothing_without_a_controller},
                    60);
  return run_tests("coexist", 60);
}
