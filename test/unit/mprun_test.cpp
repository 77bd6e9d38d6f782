// lite-mprun from outside: what it hands to the ranks, what it says of their ends, and that nobody
// stays behind. Runs ./lite-mprun, or what LITE_MPRUN names; with an argument it is itself the
// program that the ranks run.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "mplite/mplite.h"
#include "run_tests.h"

namespace {

double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// lite-mprun with these arguments, its output in a pipe.
struct Run {
  pid_t pid = -1;
  int out = -1;

  explicit Run(std::vector<std::string> arguments) {
    const char* launcher = std::getenv("LITE_MPRUN");
    arguments.insert(arguments.begin(), launcher != nullptr ? launcher : "./lite-mprun");
    int pair[2];
    ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
      dup2(pair[1], 1);
      dup2(pair[1], 2);
      std::vector<char*> argv;
      for (std::string& a : arguments) argv.push_back(a.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(126);
    }
    close(pair[1]);
    out = pair[0];
  }
  ~Run() { close(out); }

  // All output until every writer has gone: the ranks too.
  std::string output(double timeout_s = 20) {
    std::string text;
    const double end = seconds() + timeout_s;
    for (;;) {
      pollfd p = {out, POLLIN, 0};
      const int n = poll(&p, 1, 100);
      if (seconds() > end) {
        kill(pid, SIGKILL);
        ck_abort_msg("still running, said: %s", text.c_str());
      }
      if (n <= 0) continue;
      char buffer[4096];
      const ssize_t got = read(out, buffer, sizeof buffer);
      if (got <= 0) return text;
      text.append(buffer, static_cast<std::size_t>(got));
    }
  }
  int status() {
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
};

std::vector<std::string> shell(const char* ranks, const char* script) {
  return {"-n", ranks, "sh", "-c", script};
}

bool says(const std::string& text, const char* what) {
  return text.find(what) != std::string::npos;
}

START_TEST(ranks_meet_and_talk) {
  char self[4096] = {};
  ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  Run run({"-n", "4", "-x", "LITE_CONTROLLER=thread", "--", self, "ring"});
  const std::string text = run.output();
  ck_assert_msg(run.status() == 0, "%s", text.c_str());
  ck_assert_msg(says(text, "ring of 4 by thread"), "%s", text.c_str());
}
END_TEST

START_TEST(programs_that_never_call_the_library_are_fine) {
  Run run(shell("3", "echo rank $MPLITE_RANK of $MPLITE_SIZE on ${LITE_IFACE}"));
  const std::string text = run.output();
  ck_assert_int_eq(run.status(), 0);
  for (const char* line : {"rank 0 of 3 on lo", "rank 1 of 3 on lo", "rank 2 of 3 on lo"})
    ck_assert_msg(says(text, line), "%s", text.c_str());
}
END_TEST

START_TEST(first_failure_ends_the_others_and_is_the_exit_status) {
  Run run(shell("3", "test $MPLITE_RANK = 1 && exit 7; exec sleep 60"));
  const std::string text = run.output(10);
  ck_assert_int_eq(run.status(), 7);
  ck_assert_msg(says(text, "rank 1") && says(text, "status 7"), "%s", text.c_str());
}
END_TEST

START_TEST(killed_rank_is_told_with_its_signal) {
  Run run(shell("2", "test $MPLITE_RANK = 0 && kill -9 $$; exec sleep 60"));
  const std::string text = run.output(10);
  ck_assert_int_eq(run.status(), 128 + SIGKILL);
  ck_assert_msg(says(text, "rank 0") && says(text, "signal 9"), "%s", text.c_str());
}
END_TEST

START_TEST(rank_that_will_not_end_is_killed) {
  // `:` in the loop and not sleep: a child of the rank is not ours to kill.
  const double start = seconds();
  Run run(shell("2",
                "trap '' TERM; test $MPLITE_RANK = 0 && sleep 0.3 && exit 3; while :; do :; done"));
  run.output(15);
  ck_assert_int_eq(run.status(), 3);
  ck_assert_double_gt(seconds() - start, 2);  // it had its time
}
END_TEST

START_TEST(rank_that_ends_without_init_does_not_leave_the_others_waiting) {
  char self[4096] = {};
  ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  // Before and after the others have asked.
  for (const char* delay : {"0", "1"}) {
    const std::string script = "test $MPLITE_RANK = 0 && sleep " + std::string(delay) +
                               " && exit 0; exec " + self + " ring";
    Run run(shell("2", script.c_str()));
    const std::string text = run.output(15);
    ck_assert_int_eq(run.status(), 1);
    ck_assert_msg(says(text, "rank 0 ended without MP_Init"), "%s", text.c_str());
  }
}
END_TEST

START_TEST(rank_that_cannot_start_is_told_once_and_ends_the_others) {
  char self[4096] = {}, host[64] = {};
  ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  gethostname(host, sizeof host - 1);
  // The others wait in MP_Init, and the program of the one that fails does not end by itself.
  const std::string script =
      "test $MPLITE_RANK = 1 && export LITE_CREDITS=few; exec " + std::string(self) + " stay";
  const double start = seconds();
  Run run(shell("3", script.c_str()));
  const std::string text = run.output(10);
  ck_assert_int_eq(run.status(), 1);
  const std::string expected =
      "lite-mprun: rank 1 on host " + std::string(host) +
      " cannot start: LITE_CREDITS=\"few\" is not allowed; allowed: 16K to 1024G bytes "
      "(K, M, G: powers of 1024); ending the others\n";
  ck_assert_str_eq(text.c_str(), expected.c_str());
  ck_assert_double_lt(seconds() - start, 5);
}
END_TEST

START_TEST(program_that_does_not_exist_is_told) {
  Run run({"-n", "2", "./no-such-program"});
  const std::string text = run.output();
  ck_assert_int_eq(run.status(), 127);
  ck_assert_msg(says(text, "./no-such-program: No such file"), "%s", text.c_str());
}
END_TEST

START_TEST(wrong_command_lines_are_refused) {
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"-n"},
                                                       {"-n", "0", "true"},
                                                       {"-n", "x", "true"},
                                                       {"-n", "2x", "true"},
                                                       {"-n", "4097", "true"},
                                                       {"true"},
                                                       {"-n", "2"},
                                                       {"-q", "-n", "2", "true"},
                                                       {"-x", "NOVALUE", "-n", "2", "true"},
                                                       {"-x", "=1", "-n", "2", "true"}};
  for (const auto& arguments : wrong) {
    Run run(arguments);
    const std::string text = run.output();
    ck_assert_int_eq(run.status(), 2);
    ck_assert_msg(says(text, "lite-mprun: "), "%s", text.c_str());
  }
}
END_TEST

START_TEST(ended_launcher_ends_its_ranks) {
  for (const int signal : {SIGTERM, SIGINT, SIGKILL}) {
    Run run(shell("2", "echo up; exec sleep 60"));
    char byte;
    ck_assert_int_eq(read(run.out, &byte, 1), 1);
    ck_assert_int_eq(kill(run.pid, signal), 0);
    run.output(10);  // ends when the last rank has closed it
    ck_assert_int_eq(run.status(), signal == SIGKILL ? 1000 + SIGKILL : 128 + signal);
  }
}
END_TEST

START_TEST(standard_input_goes_to_rank_0_only) {
  int pair[2];
  ck_assert_int_eq(pipe(pair), 0);
  ck_assert_int_eq(write(pair[1], "hello\n", 6), 6);
  close(pair[1]);
  dup2(pair[0], 0);
  close(pair[0]);
  Run run(shell("2", "read line; echo $MPLITE_RANK:$line"));
  const std::string text = run.output();
  ck_assert_int_eq(run.status(), 0);
  ck_assert_msg(says(text, "0:hello\n") && says(text, "1:\n"), "%s", text.c_str());
}
END_TEST

int ring() {
  if (MP_Init(nullptr, nullptr) != MP_OK) {
    std::fprintf(stderr, "%s\n", MP_Last_Error());
    return 1;
  }
  const int me = MP_Myproc(), size = MP_Nprocs();
  int sum = 0, value = me, next = 0;
  for (int i = 0; i < size; ++i) {
    sum += value;
    if (MP_SShift(&value, (me + 1) % size, &next, (me + size - 1) % size, sizeof value, i) != MP_OK)
      return 1;
    value = next;
  }
  if (sum != size * (size - 1) / 2) return 1;
  const char* controller = std::getenv("LITE_CONTROLLER");
  if (me == 0)
    std::printf("ring of %d by %s\n", size, controller != nullptr ? controller : "default");
  return MP_Finalize() == MP_OK ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "ring") == 0) return ring();
  if (argc > 1 && std::strcmp(argv[1], "stay") == 0)
    return MP_Init(nullptr, nullptr) == MP_OK ? 0 : pause();
  return run_tests("mprun", 60);
}
