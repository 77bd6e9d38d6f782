// last_words.h: the line is whole, and its reader has it when the call returns; nobody is waited
// for in vain.
#include "mplite/runtime/last_words.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "launchers_pipe.h"
#include "run_tests.h"

using mplite::say_last_words;

namespace {

std::int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

START_TEST(returns_when_the_launcher_has_read) {
  LaunchersPipe launcher;
  SlowReader reader(launcher);
  say_last_words("no such interface", 20'000);
  ck_assert(reader.has_read);
  const std::string text = reader.join();
  ck_assert_str_eq(text.c_str(), "ch_lite: no such interface\n");
}
END_TEST

START_TEST(slurm_has_time_to_pass_the_line_on) {
  LaunchersPipe launcher;
  SlowReader reader(launcher);
  setenv("SLURM_STEP_ID", "0", 1);
  const std::int64_t begin = now_ms();
  say_last_words("the job ends", 20'000);
  const std::int64_t took = now_ms() - begin;
  unsetenv("SLURM_STEP_ID");
  ck_assert_int_ge(took, SlowReader::kBusyMs + 45);
  ck_assert_str_eq(reader.join().c_str(), "ch_lite: the job ends\n");
}
END_TEST

START_TEST(launcher_that_never_reads_is_waited_for_until_the_limit) {
  LaunchersPipe launcher;
  const std::int64_t begin = now_ms();
  say_last_words("nobody listens", 50);
  const std::int64_t took = now_ms() - begin;
  ck_assert_int_ge(took, 50);
  const std::string text = launcher.read_some();
  ck_assert_str_eq(text.c_str(), "ch_lite: nobody listens\n");
}
END_TEST

START_TEST(launcher_that_has_gone_is_not_waited_for) {
  signal(SIGPIPE, SIG_IGN);
  LaunchersPipe launcher;
  close(launcher.ends[0]);
  launcher.ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const std::int64_t begin = now_ms();
  say_last_words("nobody is there", 20'000);
  ck_assert_int_lt(now_ms() - begin, 10'000);
}
END_TEST

START_TEST(file_is_not_waited_for) {
  std::FILE* file = std::tmpfile();
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  const std::int64_t begin = now_ms();
  say_last_words("into a file", 20'000);
  const std::int64_t took = now_ms() - begin;
  dup2(before, STDERR_FILENO);
  close(before);
  char text[64] = "";
  ck_assert_int_eq(pread(fileno(file), text, sizeof text - 1, 0),
                   static_cast<int>(sizeof "ch_lite: into a file\n" - 1));
  ck_assert_str_eq(text, "ch_lite: into a file\n");
  ck_assert_int_lt(took, 10'000);
  std::fclose(file);
}
END_TEST

}  // namespace

int main() { return run_tests("last_words"); }
