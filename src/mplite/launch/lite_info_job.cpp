// The option --job of lite-info: what the ranks of this host's jobs wait for.
#include "mplite/launch/lite_info_job.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mplite/launch/job_reports.h"
#include "mplite/launch/json.h"

namespace mplite {
namespace {

constexpr int kLimitMs = 2000;  // a rank that waits looks ten times a second

// Why there is no answer, as far as the kernel knows.
const char* reason(const RankReport& rank) {
  switch (rank.process.state) {
    case 'T':
    case 't': return "it is stopped (SIGSTOP, or a debugger)";
    case 'D': return "it waits for a device (a disk or file server)";
    case 'Z':
    case 'X': return "the process has ended";
    default: break;
  }
  if (!rank.asked) return "it is behind MPI_Finalize, or too many ask";
  return rank.process.state == 'R' ? "it runs, in no MPI call that waits for the network"
                                   : "it sleeps, in no MPI call that waits for the network";
}

void print_text(const std::vector<RankReport>& ranks) {
  int parent = -1;
  for (const RankReport& rank : ranks) {
    if (rank.process.parent != parent) {
      parent = rank.process.parent;
      ProcessState launcher;
      const bool known = read_process_state(parent, launcher);
      std::printf("Ranks started by %s (process %d):\n", known ? launcher.command.c_str() : "?",
                  parent);
    }
    if (rank.text.empty())
      std::printf("rank %d of %d (process %d): no answer: %s\n", rank.who.rank, rank.who.size,
                  rank.who.pid, reason(rank));
    else
      std::fputs(rank.text.c_str(), stdout);
  }
}

void put_lines(const std::string& text) {
  const char* behind = "";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    std::fputs(behind, stdout);
    put_json(stdout, text.substr(begin, end - begin).c_str());
    behind = ", ";
    begin = end + 1;
  }
}

void print_json(const std::vector<RankReport>& ranks) {
  char host[64] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  std::fputs("{\n  ", stdout);
  put_json_member(stdout, "host", host, ",\n  \"ranks\": [");
  const char* behind = "\n    ";
  for (const RankReport& rank : ranks) {
    std::printf("%s{\"rank\": %d, \"size\": %d, \"process\": %d, \"parent\": %d, ", behind,
                rank.who.rank, rank.who.size, rank.who.pid, rank.process.parent);
    put_json_member(stdout, "command", rank.process.command.c_str(), ", ");
    if (rank.text.empty()) put_json_member(stdout, "no_answer", reason(rank), ", ");
    std::fputs("\"report\": [", stdout);
    put_lines(rank.text);
    std::fputs("]}", stdout);
    behind = ",\n    ";
  }
  std::fputs("\n  ]\n}\n", stdout);
}

// None was found: where to look.
int say_none(int process) {
  ProcessState state;
  if (process != 0 && !read_process_state(process, state)) {
    std::fprintf(stderr, "lite-info: there is no process %d on this host\n", process);
    return 1;
  }
  if (process != 0)
    std::fprintf(stderr, "lite-info: process %d (%s) is no rank of ch_lite, and", process,
                 state.command.c_str());
  else
    std::fputs("lite-info: this host has no rank of ch_lite,", stderr);
  std::fputs(process != 0 ? " has started none that runs on this host now;" : "", stderr);
  std::fputs(
      " or it is in another network namespace (a container); ranks of other hosts are asked there, "
      "by ssh; those of MPICH 1 and of MP_* cannot be asked\n",
      stderr);
  return 1;
}

}  // namespace

int run_job_option(int argc, char** argv) {
  bool job = false, json = false;
  int process = 0;
  const char* wrong = nullptr;
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    char* end = nullptr;
    if (std::strcmp(word, "--job") == 0) {
      job = true;
    } else if (std::strcmp(word, "--json") == 0) {
      json = true;
    } else if (const long number = std::strtol(word, &end, 10);
               word[0] >= '0' && word[0] <= '9' && *end == '\0' && process == 0 && number >= 1 &&
               number <= 0x3fffffff) {
      process = static_cast<int>(number);
    } else {
      wrong = word;
    }
  }
  if (!job) return -1;
  if (wrong != nullptr) {
    std::fprintf(stderr, "lite-info: %s: --job takes one process's number (lite-info --help)\n",
                 wrong);
    return 2;
  }
  std::vector<RankReport> ranks = find_ranks(process);
  if (ranks.empty()) return say_none(process);
  ask_ranks(ranks, kLimitMs);
  (json ? print_json : print_text)(ranks);
  return 0;
}

}  // namespace mplite
