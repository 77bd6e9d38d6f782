// The command line of lite-mprun. Used by mprun.cpp.
#pragma once
#include <string>
#include <vector>

namespace mprun {

inline constexpr int kRanksMax = 4096;

struct Options {
  int ranks = 0;
  const char* machine_file = nullptr;  // null: all ranks on this host
  std::vector<std::string> settings;   // of -x, NAME=VALUE each; set in our environment already
  char** command = nullptr;            // the program and its arguments, as for execvp
};

// -1: `options` has been filled. Else what to exit with; what is wrong has been said on stderr, or
// the help that was asked for on stdout.
int parse_options(int argc, char** argv, Options& options);

}  // namespace mprun
