// The options of lite-info that are about counters: --explain.
#include "mplite/launch/lite_info_counters.h"

#include <cstdio>
#include <cstring>

#include "mplite/launch/counter_help.h"

namespace mplite {
namespace {

int refuse(const char* what, const char* why) {
  std::fprintf(stderr, "lite-info: %s%s (lite-info --help)\n", what, why);
  return 2;
}

}  // namespace

int run_counter_options(int argc, char** argv) {
  bool explain = false, json = false;
  const char* wrong = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--explain") == 0)
      explain = true;
    else if (std::strcmp(argv[i], "--json") == 0)
      json = true;
    else
      wrong = argv[i];
  }
  if (!explain) return -1;
  if (wrong != nullptr) return refuse(wrong, " with --explain");
  return (json ? print_counter_help_json : print_counter_help)(stdout), 0;
}

}  // namespace mplite
