// mprun_options.h: the command line of lite-mprun.
#include "mplite/launch/mprun_options.h"

#include <getopt.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "run_tests.h"

using namespace mprun;

namespace {

int parse(std::vector<const char*> words, Options& options) {
  static std::vector<std::string> kept;
  static std::vector<char*> argv;
  kept.assign(1, "lite-mprun");
  kept.insert(kept.end(), words.begin(), words.end());
  argv.clear();
  for (std::string& word : kept) argv.push_back(word.data());
  argv.push_back(nullptr);
  optind = 0;  // begin anew
  return parse_options(static_cast<int>(kept.size()), argv.data(), options);
}

START_TEST(program_and_its_own_options_are_left_alone) {
  Options o;
  ck_assert_int_eq(parse({"-n", "4", "program", "-n", "7", "--help"}, o), -1);
  ck_assert_int_eq(o.ranks, 4);
  ck_assert_str_eq(o.command[0], "program");
  ck_assert_str_eq(o.command[1], "-n");
  ck_assert_str_eq(o.command[3], "--help");
  ck_assert_ptr_null(o.command[4]);
  ck_assert_ptr_null(o.machine_file);
}
END_TEST

START_TEST(options_may_be_written_as_for_other_launchers) {
  for (const char* number : {"-n", "-np", "--np"})
    for (const char* file : {"-machinefile", "-hostfile", "--hostfile"}) {
      Options o;
      ck_assert_int_eq(parse({file, "hosts", number, "2", "--", "-program"}, o), -1);
      ck_assert_int_eq(o.ranks, 2);
      ck_assert_str_eq(o.machine_file, "hosts");
      ck_assert_str_eq(o.command[0], "-program");
    }
}
END_TEST

START_TEST(settings_are_kept_and_in_force_here) {
  Options o;
  ck_assert_int_eq(parse({"-x", "LITE_A=1=2", "-x", "LITE_B=", "-n", "1", "p"}, o), -1);
  ck_assert_uint_eq(o.settings.size(), 2);
  ck_assert_str_eq(o.settings[0].c_str(), "LITE_A=1=2");
  ck_assert_str_eq(std::getenv("LITE_A"), "1=2");
  ck_assert_str_eq(std::getenv("LITE_B"), "");
}
END_TEST

START_TEST(wrong_command_line_ends_with_2) {
  const std::vector<const char*> wrong[] = {{},
                                            {"-n"},
                                            {"-n", "0", "p"},
                                            {"-n", "4097", "p"},
                                            {"-n", "3x", "p"},
                                            {"-n", "2"},
                                            {"p"},
                                            {"-x", "A", "-n", "1"},
                                            {"-x", "=1", "-n", "1"},
                                            {"-q", "-n", "1"},
                                            {"-machinefile"}};
  for (const auto& words : wrong) {
    Options o;
    ck_assert_msg(parse(words, o) == 2, "%s", words.empty() ? "nothing" : words[0]);
  }
}
END_TEST

START_TEST(help_ends_with_0) {
  for (const char* word : {"-h", "--help", "-help"}) {
    Options o;
    ck_assert_int_eq(parse({word}, o), 0);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("mprun_options"); }
