// The options of lite-info that are about counters: --explain and --stats.
#include "mplite/launch/lite_info_counters.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "mplite/launch/counter_help.h"
#include "mplite/launch/stats_lines.h"
#include "mplite/launch/stats_summary.h"

namespace mplite {
namespace {

constexpr char kStandardInput[] = "standard input";

int refuse(const char* what, const char* why) {
  std::fprintf(stderr, "lite-info: %s%s (lite-info --help)\n", what, why);
  return 2;
}

// False: it cannot be read, which has been said.
bool read_file(const char* name, StatsLines& lines) {
  const bool standard_input = std::strcmp(name, "-") == 0;
  std::FILE* in = standard_input ? stdin : std::fopen(name, "re");
  const int error = in != nullptr ? lines.read(in, standard_input ? kStandardInput : name) : errno;
  if (in != nullptr && !standard_input) std::fclose(in);
  if (error != 0) std::fprintf(stderr, "lite-info: %s: %s\n", name, std::strerror(error));
  return error == 0;
}

int summarize(const std::vector<const char*>& files, bool json) {
  StatsLines lines;
  bool good = true;
  for (const char* name : files) good = read_file(name, lines) && good;
  constexpr std::size_t kMost = 10;
  for (std::size_t i = 0; i < lines.complaints().size() && i < kMost; ++i)
    std::fprintf(stderr, "lite-info: %s\n", lines.complaints()[i].c_str());
  if (lines.complaints().size() > kMost)
    std::fprintf(stderr, "lite-info: %zu more lines are damaged\n",
                 lines.complaints().size() - kMost);
  good = good && lines.complaints().empty();
  if (lines.jobs().empty()) {
    if (good)
      std::fputs(
          "lite-info: no line of counters: run the job with LITE_STATS=1, and keep its standard "
          "error (mpiexec … >FILE 2>&1)\n",
          stderr);
    return 1;
  }
  (json ? print_stats_summary_json : print_stats_summary)(stdout, lines);
  return good ? 0 : 1;
}

}  // namespace

int run_counter_options(int argc, char** argv) {
  bool explain = false, stats = false, json = false;
  const char* wrong = nullptr;
  std::vector<const char*> files;
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    if (std::strcmp(word, "--explain") == 0)
      explain = true;
    else if (std::strcmp(word, "--stats") == 0)
      stats = true;
    else if (std::strcmp(word, "--json") == 0)
      json = true;
    else if (word[0] == '-' && word[1] != '\0')
      wrong = word;
    else
      files.push_back(word);
  }
  if (!explain && !stats) return -1;
  if (wrong != nullptr) return refuse(wrong, explain ? " with --explain" : " with --stats");
  if (explain && stats) return refuse("--explain and --stats", ": one of them at a time");
  if (explain && !files.empty()) return refuse(files[0], ": --explain takes no file");
  if (explain) return (json ? print_counter_help_json : print_counter_help)(stdout), 0;
  if (files.empty()) files.push_back("-");
  return summarize(files, json);
}

}  // namespace mplite
