// The program lite-info: the knobs with their values in force, the topology seen, the interface
// that would be chosen; counters by lite_info_counters.h, running jobs by lite_info_job.h. A
// stand-alone main over profile.h, topology.h, wireup.h and wait.h.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "mplite/base/address.h"
#include "mplite/config/knob_text.h"
#include "mplite/config/knobs.h"
#include "mplite/config/profile.h"
#include "mplite/config/topology.h"
#include "mplite/launch/json.h"
#include "mplite/launch/lite_info_counters.h"
#include "mplite/launch/lite_info_job.h"
#include "mplite/net/frame.h"
#include "mplite/net/version.h"
#include "mplite/runtime/wireup.h"
#include "mplite/tuning/wait.h"

namespace {

using namespace mplite;

// What of this machine is shown besides the knobs.
struct Seen {
  Topology topology;
  InterfaceChoice choice;
  bool chosen = false;
  char interfaces[4096] =
      "";  // why each was taken or left out; the error sentence when none was chosen
  char host[64] = "";
};

void look(const Knobs& knobs, Seen& seen) {
  static Candidate candidates[kCandidatesMax];
  seen.topology = detect_topology();
  const int count = list_interfaces(candidates, kCandidatesMax);
  if (count < 0)
    std::snprintf(seen.interfaces, sizeof seen.interfaces, "the interfaces cannot be listed: %s",
                  std::strerror(-count));
  else
    seen.chosen = choose_interface(candidates, count, knobs.iface, knobs.family, seen.choice,
                                   seen.interfaces, sizeof seen.interfaces);
  if (gethostname(seen.host, sizeof seen.host - 1) != 0) seen.host[0] = '\0';
}

void print_json(const Knobs& knobs, const Seen& seen) {
  char text[1536];
  std::fputs("{\n  ", stdout);
  put_json_member(stdout, "version", PACKAGE_VERSION, ",\n");
  std::printf("  \"wire_version\": %d,\n  \"knobs\": [\n", int{kWireVersion});
  for (std::size_t i = 0; i < knob_count(); ++i) {
    const KnobInfo& info = knob_info(i);
    std::fputs("    {", stdout);
    put_json_member(stdout, "name", info.name, ", ");
    put_json_member(stdout, "value", format_knob(i, knobs, text, sizeof text), ", ");
    put_json_member(stdout, "default", info.default_value, ", ");
    put_json_member(stdout, "type", info.type, ", ");
    put_json_member(stdout, "allowed", info.allowed, ", ");
    put_json_member(stdout, "doc", info.doc, i + 1 < knob_count() ? "},\n" : "}\n");
  }
  const Topology& t = seen.topology;
  std::printf(
      "  ],\n  \"topology\": {\"cores\": %d, \"pus\": %d, \"packages\": %d, \"numa_nodes\": %d, "
      "\"from_hwloc\": %s},\n  ",
      t.cores, t.pus, t.packages, t.numa_nodes, t.from_hwloc ? "true" : "false");
  put_json_member(stdout, "host", seen.host, ",\n  ");
  std::printf("\"system_settings\": ");
  if (knobs.system_settings)
    std::printf("\"%s\",\n  ", kSystemSettings);
  else
    std::printf("null,\n  ");
  std::fputs("\"interface\": ", stdout);
  if (seen.chosen) {
    std::fputs("{", stdout);
    put_json_member(stdout, "name", seen.choice.name, ", ");
    put_json_member(stdout, "address", format_address(seen.choice.address, text, sizeof text),
                    "},\n  ");
  } else {
    std::fputs("null,\n  ", stdout);
  }
  put_json_member(stdout, "interfaces_seen", seen.interfaces, "\n}\n");
}

void print_text(const Knobs& knobs, const Seen& seen) {
  char text[128];
  print_knobs(stdout, knobs);
  if (knobs.system_settings) std::printf("\nSettings of the system: %s.\n", kSystemSettings);
  std::printf("\nHost %s: %s.\n", seen.host, format_topology(seen.topology, text, sizeof text));
  const WaitPolicy alone = choose_wait_policy(seen.topology.cores, 1, knobs.spin_ns, false);
  const WaitPolicy full =
      choose_wait_policy(seen.topology.cores, 2 * seen.topology.cores, knobs.spin_ns, false);
  if (alone.sleep_after_ns < 0)
    std::printf("A waiting rank polls and never sleeps.\n");
  else
    std::printf(
        "A waiting rank sleeps after %lld us when it has a core, after %lld us with two ranks per "
        "core.\n",
        static_cast<long long>(alone.sleep_after_ns / 1000),
        static_cast<long long>(full.sleep_after_ns / 1000));
  if (seen.chosen)
    std::printf("Interface %s, address %s.\nSeen: %s.\n", seen.choice.name,
                format_address(seen.choice.address, text, sizeof text), seen.interfaces);
  else
    std::printf("No interface: %s.\n", seen.interfaces);
}

void print_usage(std::FILE* out) {
  std::fputs(
      "usage: lite-info [--json | --markdown | --man | --version | --help]\n"
      "       lite-info --explain [--json]\n"
      "       lite-info --stats [--json] [FILE...]\n"
      "       lite-info --job [--json] [PROCESS]\n"
      "Shows the LITE_* variables of ch_lite with their values in force, the cores seen and the "
      "network interface that would be used.\n"
      "  --json      the same, for programs\n"
      "  --markdown  the table of variables for docs/variables.md\n"
      "  --man       the table of variables as the section ENVIRONMENT of ch_lite(7)\n"
      "  --version   the version of ch_lite, and that of its wire, which has to be the same on all "
      "hosts of a job\n"
      "  --explain   what the counters of LITE_STATS=1 mean\n"
      "  --stats     reads the output of jobs that ran with LITE_STATS=1, from FILE... or standard "
      "input: totals, the spread over the ranks, what to change\n"
      "  --job       what the ranks that run on this host wait for: those that PROCESS has started "
      "(the number of mpiexec's), or all that are yours\n"
      "  --help      this text\n"
      "Exit status: 0; 1 when a variable has a value that is not allowed, no interface fits, "
      "FILE has no or damaged lines of counters, or no rank runs here; 2 for a wrong option.\n",
      out);
}

}  // namespace

int main(int argc, char** argv) {
  if (const int code = run_counter_options(argc, argv); code >= 0) return code;
  if (const int code = run_job_option(argc, argv); code >= 0) return code;
  const char* mode = argc > 1 ? argv[1] : "";
  if (argc > 2) mode = "too many";
  if (std::strcmp(mode, "--help") == 0) return print_usage(stdout), 0;
  if (std::strcmp(mode, "--markdown") == 0) return print_knobs_markdown(stdout), 0;
  if (std::strcmp(mode, "--version") == 0) return std::printf("%s\n", version_text()), 0;
  if (std::strcmp(mode, "--man") == 0) return print_knobs_man(stdout), 0;
  if (*mode != '\0' && std::strcmp(mode, "--json") != 0) return print_usage(stderr), 2;

  char text[2048];
  Knobs knobs;
  if (!read_knobs(process_environment, knobs, text, sizeof text)) {
    std::fprintf(stderr, "lite-info: %s\n", text);
    return 1;
  }
  if (unknown_knobs(environ, text, sizeof text) > 0) std::fprintf(stderr, "%s", text);
  static Seen seen;
  look(knobs, seen);
  if (*mode == '\0')
    print_text(knobs, seen);
  else
    print_json(knobs, seen);
  return seen.chosen ? 0 : 1;
}
