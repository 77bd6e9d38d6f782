// The command line of lite-mprun.
#include "mplite/launch/mprun_options.h"

#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mprun {
namespace {

void usage(std::FILE* out) {
  std::fputs(
      "usage: lite-mprun -n RANKS [-machinefile FILE] [-x NAME=VALUE]... [--] PROGRAM [ARGUMENTS]\n"
      "Starts RANKS copies of an MP_* program (or an MPICH-1 program with the ch_lite device). "
      "Rank 0 gets the standard input.\n"
      "  -n RANKS        how many (1 to 4096)\n"
      "  -machinefile FILE  where: one HOST or HOST:NUMBER per line, ranks in that order, from the "
      "top again when all are taken; without it: here.\n"
      "                  Other hosts are reached by the command LITE_RSH (ssh) within "
      "LITE_CONNECT_TIMEOUT; this program and PROGRAM have to be there\n"
      "                  under the same path.\n"
      "  -x NAME=VALUE   sets a variable for all ranks (LITE_CONTROLLER=thread; lite-info lists "
      "them)\n"
      "  --help          this text\n"
      "Unless LITE_IFACE is set, ranks that are all on this host talk over the loopback "
      "interface.\n",
      out);
}

int refuse(const char* what, const char* why) {
  std::fprintf(stderr, "lite-mprun: %s%s\n", what, why);
  usage(stderr);
  return 2;
}

}  // namespace

int parse_options(int argc, char** argv, Options& options) {
  static const option kLong[] = {{"np", required_argument, nullptr, 'n'},
                                 {"machinefile", required_argument, nullptr, 'm'},
                                 {"hostfile", required_argument, nullptr, 'm'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {}};
  opterr = 0;
  for (;;) {
    const int at = std::max(optind, 1);
    const int c = getopt_long_only(argc, argv, "+n:x:h", kLong, nullptr);
    if (c == -1) break;
    if (c == 'h') {
      usage(stdout);
      return 0;
    }
    if (c == 'm') {
      options.machine_file = optarg;
    } else if (c == 'n') {
      char* rest = nullptr;
      const long number = std::strtol(optarg, &rest, 10);
      if (rest == optarg || *rest != 0 || number < 1 || number > kRanksMax) {
        std::fprintf(stderr, "lite-mprun: -n %s: a number from 1 to %d is needed\n", optarg,
                     kRanksMax);
        return 2;
      }
      options.ranks = static_cast<int>(number);
    } else if (const char* equals = c == 'x' ? std::strchr(optarg, '=') : nullptr;
               equals != nullptr && equals != optarg) {
      options.settings.emplace_back(optarg);
      const std::string name(optarg, static_cast<std::size_t>(equals - optarg));
      setenv(name.c_str(), equals + 1, 1);
    } else {
      return refuse(argv[at], ": unknown option, or its value is missing");
    }
  }
  options.command = argv + optind;
  if (options.ranks == 0) return refuse("-n RANKS is missing", "");
  if (optind >= argc) return refuse("no program given", "");
  return -1;
}

}  // namespace mprun
