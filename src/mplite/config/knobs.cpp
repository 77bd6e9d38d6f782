// All LITE_* environment variables: one table, from which parsing and texts (knob_text.cpp) come.
#include "mplite/config/knobs.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mplite/config/values.h"
#include "mplite/net/frame.h"
#include "mplite/net/hello.h"

namespace mplite {
namespace {

const char* family_name(Family family) {
  return family == Family::kIpv4 ? "ipv4" : family == Family::kIpv6 ? "ipv6" : "any";
}

void format_iface(const IfaceList& list, char* text, std::size_t size) {
  if (list.count == 0) return copy_text("auto", text, size);
  std::size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < list.count && used < size; ++i) {
    char entry[64];
    format_rule(list.rule[i], entry, sizeof entry);
    const int n = std::snprintf(text + used, size - used, "%s%s", i > 0 ? "," : "", entry);
    used += static_cast<std::size_t>(n);
  }
}

// ---- the table ----

constexpr std::uint64_t kNoLimit = INT64_MAX;  // lengths stay within what off_t and ssize_t can say
constexpr std::uint64_t kShortLimit =
    32 * 1024;  // an envelope and this fit into one control packet
static_assert(kShortLimit + 256 <= kControlBytesMax);

struct Row {
  KnobInfo info;
  // `why` (may stay empty) says more than "not allowed".
  bool (*parse)(const char* text, Knobs& k, char* why, std::size_t size);
  void (*format)(const Knobs& k, char* text, std::size_t size);
};

#define MPLITE_PARSE \
  const char *text, Knobs &k, [[maybe_unused]] char *why, [[maybe_unused]] std::size_t size
#define MPLITE_FORMAT const Knobs &k, char *text, std::size_t size

bool parse_switch(const char* text, bool& on) {
  on = std::strcmp(text, "on") == 0;
  return on || std::strcmp(text, "off") == 0;
}

const Row kTable[] = {
    {{"LITE_SHORT_MAX", "size", "32K",
      "0 to 32K bytes (K: 1024); 0 switches the short protocol off",
      "Messages up to this many bytes go as one packet, envelope and data together."},
     [](MPLITE_PARSE) { return parse_size(text, 0, kShortLimit, k.short_max); },
     [](MPLITE_FORMAT) { format_size(k.short_max, text, size); }},
    {{"LITE_EAGER_MAX", "size", "auto",
      "auto, or 0 or more bytes (K, M, G: powers of 1024); 0 switches the eager protocol off",
      "Messages up to this many bytes are sent without asking the receiver, while credit is left; "
      "longer ones by rendezvous. auto: 256K, and 1M to a peer while its receives are there in "
      "time."},
     [](MPLITE_PARSE) {
       if (std::strcmp(text, "auto") == 0) return k.eager_max = kEagerAuto, true;
       return parse_size(text, 0, kNoLimit, k.eager_max);
     },
     [](MPLITE_FORMAT) {
       if (k.eager_max == kEagerAuto) return copy_text("auto", text, size);
       format_size(k.eager_max, text, size);
     }},
    {{"LITE_CONTROLLER", "choice", "sigio", "sigio, thread or sync",
      "Who moves messages while the application computes: a signal handler, a helper thread, or "
      "nobody (progress in MPI calls only)."},
     [](MPLITE_PARSE) {
       for (const ControllerKind kind :
            {ControllerKind::kSigio, ControllerKind::kThread, ControllerKind::kSync}) {
         if (std::strcmp(text, controller_name(kind)) != 0) continue;
         k.controller = kind;
         return true;
       }
       return false;
     },
     [](MPLITE_FORMAT) { copy_text(controller_name(k.controller), text, size); }},
    {{"LITE_SIGNAL", "signal", "auto",
      "auto, SIGIO, SIGURG, SIGUSR2, SIGWINCH, SIGPWR, SIGSTKFLT, SIGALRM, SIGVTALRM, SIGPROF, "
      "RTMIN+n, or the number of one of these",
      "The signal of the sigio controller: one that the application does not use. auto: SIGIO, or "
      "a free real-time signal where the application handles SIGIO or has it blocked when MPI "
      "starts."},
     [](MPLITE_PARSE) {
       k.signal = 0;
       return std::strcmp(text, "auto") == 0 || parse_signal(text, k.signal);
     },
     [](MPLITE_FORMAT) {
       if (k.signal == 0) return copy_text("auto", text, size);
       format_signal(k.signal, text, size);
     }},
    {{"LITE_SPIN_US", "duration", "auto",
      "auto, forever, or 0 to 60s (a number alone is in microseconds; us, ms, s)",
      "How long a waiting rank polls, yielding its core, before it sleeps; auto decides from the "
      "cores and ranks on the host."},
     [](MPLITE_PARSE) {
       if (std::strcmp(text, "auto") == 0) return k.spin_ns = kSpinAuto, true;
       if (std::strcmp(text, "forever") == 0) return k.spin_ns = kSpinForever, true;
       return parse_duration(text, kMicro, 0, 60 * kSecond, k.spin_ns);
     },
     [](MPLITE_FORMAT) {
       if (k.spin_ns == kSpinAuto) return copy_text("auto", text, size);
       if (k.spin_ns == kSpinForever) return copy_text("forever", text, size);
       format_duration(k.spin_ns, text, size);
     }},
    {{"LITE_IFACE", "list", "auto",
      "auto, or interface names and networks (eth0,10.1.0.0/16), then exclusions "
      "(^docker0,^192.168.0.0/16)",
      "The interfaces to be reached by, the best first: up to four addresses, which peers try in "
      "turn. auto: what mpiexec's -iface names, else all but loopback, bridges of containers and "
      "what is down."},
     [](MPLITE_PARSE) {
       if (std::strcmp(text, "auto") == 0) return k.iface = IfaceList{}, true;
       return parse_iface_list(text, k.iface, why, size);
     },
     [](MPLITE_FORMAT) { format_iface(k.iface, text, size); }},
    {{"LITE_FAMILY", "choice", "any", "any, ipv4 or ipv6",
      "The address family to use; any: both, IPv4 first."},
     [](MPLITE_PARSE) {
       for (const Family family : {Family::kAny, Family::kIpv4, Family::kIpv6}) {
         if (std::strcmp(text, family_name(family)) != 0) continue;
         k.family = family;
         return true;
       }
       return false;
     },
     [](MPLITE_FORMAT) { copy_text(family_name(k.family), text, size); }},
    {{"LITE_PORT_RANGE", "range", "any", "any, or LOW:HIGH, each from 1 to 65535",
      "TCP ports that the listener may use (one per rank on a host), for firewalls."},
     [](MPLITE_PARSE) {
       std::uint64_t low = 0, high = 0;
       if (std::strcmp(text, "any") != 0 && (!parse_pair(text, 1, 65535, low, high) || low > high))
         return false;
       k.port_lo = static_cast<std::uint16_t>(low);
       k.port_hi = static_cast<std::uint16_t>(high);
       return true;
     },
     [](MPLITE_FORMAT) {
       if (k.port_lo == 0) return copy_text("any", text, size);
       std::snprintf(text, size, "%u:%u", k.port_lo, k.port_hi);
     }},
    {{"LITE_SOCKBUF", "size", "0", "0, or 4K to 1G bytes (K, M, G: powers of 1024)",
      "Send and receive buffer of each socket; 0 leaves them to the kernel's autotuning."},
     [](MPLITE_PARSE) {
       return std::strcmp(text, "0") == 0 ? (k.sockbuf = 0, true)
                                          : parse_size(text, 4 * kKilo, kGiga, k.sockbuf);
     },
     [](MPLITE_FORMAT) { format_size(k.sockbuf, text, size); }},
    {{"LITE_CREDITS", "size", "4M", "16K to 1024G bytes (K, M, G: powers of 1024)",
      "Bytes that one peer may send unasked before some are received; beyond it messages go by "
      "rendezvous."},
     [](MPLITE_PARSE) { return parse_size(text, 16 * kKilo, kKilo * kGiga, k.credits); },
     [](MPLITE_FORMAT) { format_size(k.credits, text, size); }},
    {{"LITE_UNEXPECTED_MAX", "size", "1G", "64K to 1048576G bytes (K, M, G: powers of 1024)",
      "Bytes held in all for messages that no receive is posted for; at the limit their senders "
      "are "
      "slowed down."},
     [](MPLITE_PARSE) { return parse_size(text, 64 * kKilo, kMega * kGiga, k.unexpected_max); },
     [](MPLITE_FORMAT) { format_size(k.unexpected_max, text, size); }},
    {{"LITE_CONNECT_TIMEOUT", "duration", "30s",
      "100ms to 86400s (a number alone is in seconds; us, ms, s)",
      "How long a peer's host is tried to be reached before the peer is given up. Once it has "
      "answered, only silence ends the peer (LITE_KEEPALIVE), however long it computes."},
     [](MPLITE_PARSE) {
       return parse_duration(text, kSecond, 100 * kMilli, 86400 * kSecond, k.connect_timeout_ns);
     },
     [](MPLITE_FORMAT) { format_duration(k.connect_timeout_ns, text, size); }},
    {{"LITE_KEEPALIVE", "pair", "10:2", "off, or IDLE:INTERVAL in seconds, each from 1 to 32767",
      "A peer that has been silent for IDLE is probed every INTERVAL; after 5 unanswered probes it "
      "is lost."},
     [](MPLITE_PARSE) {
       std::uint64_t idle = 0, interval = 0;
       if (std::strcmp(text, "off") != 0 && !parse_pair(text, 1, 32767, idle, interval))
         return false;
       k.keepalive_idle_s = static_cast<int>(idle);
       k.keepalive_interval_s = static_cast<int>(interval);
       return true;
     },
     [](MPLITE_FORMAT) {
       if (k.keepalive_idle_s == 0) return copy_text("off", text, size);
       std::snprintf(text, size, "%d:%d", k.keepalive_idle_s, k.keepalive_interval_s);
     }},
    {{"LITE_FRAME", "size", "256K", "4K to 64M bytes (K, M: powers of 1024)",
      "Bulk data is cut into frames of this size, so that other messages get in between; up to "
      "sixteen times as long while the kernel takes all at once."},
     [](MPLITE_PARSE) {
       std::uint64_t bytes = 0;
       if (!parse_size(text, 4 * kKilo, 64 * kMega, bytes)) return false;
       k.frame_bytes = static_cast<std::uint32_t>(bytes);
       return true;
     },
     [](MPLITE_FORMAT) { format_size(k.frame_bytes, text, size); }},
    {{"LITE_LANES", "number", "auto", "auto, or 1 to 16",
      "Connections that long messages to one peer are spread over; auto opens more where the "
      "network bounds what one carries, and keeps them if they carry more."},
     [](MPLITE_PARSE) {
       if (std::strcmp(text, "auto") == 0) return k.lanes = 0, true;
       std::uint64_t lanes = 0;
       if (!parse_size(text, 1, kLanesMax, lanes)) return false;
       k.lanes = static_cast<int>(lanes);
       return true;
     },
     [](MPLITE_FORMAT) {
       if (k.lanes == 0) return copy_text("auto", text, size);
       std::snprintf(text, size, "%d", k.lanes);
     }},
    {{"LITE_RESUME", "choice", "off", "on or off",
      "Whether a connection that breaks (reset by a firewall, a network that is gone) is made "
      "again within LITE_CONNECT_TIMEOUT and the job goes on: what has been sent is kept until it "
      "is acknowledged."},
     [](MPLITE_PARSE) { return parse_switch(text, k.resume); },
     [](MPLITE_FORMAT) { copy_text(k.resume ? "on" : "off", text, size); }},
    {{"LITE_LOW_WATER", "size", "256K", "0, or 64K to 64M bytes (K, M: powers of 1024)",
      "While the application computes, a bulk receive is looked at when this much of a frame has "
      "come; 0: whenever something has."},
     [](MPLITE_PARSE) {
       std::uint64_t bytes = 0;
       if (!parse_size(text, 0, 64 * kMega, bytes) || (bytes != 0 && bytes < 64 * kKilo))
         return false;
       k.low_water_bytes = static_cast<std::uint32_t>(bytes);
       return true;
     },
     [](MPLITE_FORMAT) { format_size(k.low_water_bytes, text, size); }},
    {{"LITE_MMAP_THRESHOLD", "size", "16M", "0, or 128K to 32M bytes (K, M: powers of 1024)",
      "Freed memory of blocks up to this size stays with the process (malloc's dynamic mmap "
      "threshold): temporary buffers of reductions and accumulates are not returned to the kernel "
      "and taken again at each call. 0: malloc as it is."},
     [](MPLITE_PARSE) {
       return parse_size(text, 0, 32 * kMega, k.mmap_threshold) &&
              (k.mmap_threshold == 0 || k.mmap_threshold >= 128 * kKilo);
     },
     [](MPLITE_FORMAT) { format_size(k.mmap_threshold, text, size); }},
    {{"LITE_GRACE", "choice", "auto", "auto or off",
      "Whether to learn that the application comes straight back after a call (Isend, Irecv, "
      "Waitall), and then not to arm on the way out of it, and to let small messages of many sends "
      "in a row leave together."},
     [](MPLITE_PARSE) {
       k.grace = std::strcmp(text, "auto") == 0;
       return k.grace || std::strcmp(text, "off") == 0;
     },
     [](MPLITE_FORMAT) { copy_text(k.grace ? "auto" : "off", text, size); }},
    {{"LITE_HOST_THREAD", "choice", "on", "on or off",
      "With LITE_CONTROLLER=sigio: whether a thread runs what a signal handler must not "
      "(accumulates, locks of windows, nonblocking collectives) while the application computes. It "
      "starts with the first window or nonblocking collective: see docs/guide.md."},
     [](MPLITE_PARSE) { return parse_switch(text, k.host_thread); },
     [](MPLITE_FORMAT) { copy_text(k.host_thread ? "on" : "off", text, size); }},
    {{"LITE_TUNING", "list", "auto", kTuningAllowed,
      "The heuristics that act: see docs/tuning.md. To measure what one of them is worth, or to "
      "rule "
      "it out as the cause of trouble."},
     [](MPLITE_PARSE) { return parse_tuning(text, k.tuning, why, size); },
     [](MPLITE_FORMAT) { format_tuning(k.tuning, text, size); }},
    {{"LITE_STALL", "duration", "off",
      "off, or 1s to 86400s (a number alone is in seconds; us, ms, s)",
      "A rank that has waited in one MPI call for so long, with nothing sent or received, says on "
      "stderr what it waits for: see docs/stall.md."},
     [](MPLITE_PARSE) {
       if (std::strcmp(text, "off") == 0) return k.stall_ns = 0, true;
       return parse_duration(text, kSecond, kSecond, 86400 * kSecond, k.stall_ns);
     },
     [](MPLITE_FORMAT) {
       if (k.stall_ns == 0) return copy_text("off", text, size);
       format_duration(k.stall_ns, text, size);
     }},
    {{"LITE_STATS", "flag", "0", "0 or 1", "Each rank prints a line of counters at MPI_Finalize."},
     [](MPLITE_PARSE) { return parse_flag(text, k.stats); },
     [](MPLITE_FORMAT) { copy_text(k.stats ? "1" : "0", text, size); }},
    {{"LITE_TRACE", "flag or path", "0",
      "0, 1, or the beginning of a file name with a / in it (./run gives ./run.0.json, "
      "./run.1.json, "
      "…)",
      "Each rank writes its last 65,536 events at the end to a file of its own (1: "
      "./lite-trace.RANK.json): see docs/tracing.md."},
     [](MPLITE_PARSE) {
       bool on = true;
       char prefix[sizeof k.trace_prefix] = {};
       if (std::strchr(text, '/') != nullptr ? !keep_path(text, prefix, sizeof prefix, why, size)
                                             : !parse_flag(text, on))
         return false;
       k.trace = on;
       std::memcpy(k.trace_prefix, prefix, sizeof prefix);
       return true;
     },
     [](MPLITE_FORMAT) {
       copy_text(k.trace_prefix[0] != '\0' ? k.trace_prefix : k.trace ? "1" : "0", text, size);
     }},
    {{"LITE_SECRET_FILE", "path", "none", "none, or a path with a / in it",
      "A file of 16 to 4096 bytes, a copy on each host, that keys the job's secret: see "
      "docs/security.md. It "
      "belongs to you or root, and its mode is 0600 or 0400."},
     [](MPLITE_PARSE) {
       if (std::strcmp(text, "none") == 0) return k.secret_file[0] = '\0', true;
       return std::strchr(text, '/') != nullptr &&
              keep_path(text, k.secret_file, sizeof k.secret_file, why, size);
     },
     [](MPLITE_FORMAT) {
       copy_text(k.secret_file[0] != '\0' ? k.secret_file : "none", text, size);
     }},
    {{"LITE_ENCRYPT", "choice", "off", "off, auth or on",
      "How messages are protected on the network: auth gives them tags, by which what was changed, "
      "repeated or left out on its way is found out and ends the connection; on hides their "
      "content as well. The same on all ranks: see docs/security.md."},
     [](MPLITE_PARSE) {
       for (const Protection kind : {Protection::kOff, Protection::kAuth, Protection::kOn}) {
         if (std::strcmp(text, protection_name(kind)) != 0) continue;
         k.protection = kind;
         return true;
       }
       return false;
     },
     [](MPLITE_FORMAT) { copy_text(protection_name(k.protection), text, size); }},
    {{"LITE_PROFILE", "path", "auto", "auto, none, or a path with a / in it",
      "A file with values for the variables that the environment does not set, as scripts/tune "
      "writes it; auto: ch_lite/profile in $XDG_CONFIG_HOME or ~/.config, if there is one. What it "
      "does not set is taken from /etc/ch_lite.conf. none: neither file is read."},
     [](MPLITE_PARSE) {
       const bool path = std::strchr(text, '/') != nullptr;
       if (!path && std::strcmp(text, "auto") != 0 && std::strcmp(text, "none") != 0) return false;
       return keep_path(text, k.profile, sizeof k.profile, why, size);
     },
     [](MPLITE_FORMAT) { copy_text(k.profile, text, size); }},
};
constexpr std::size_t kRows = sizeof kTable / sizeof kTable[0];

#undef MPLITE_PARSE
#undef MPLITE_FORMAT

}  // namespace

const char* controller_name(ControllerKind kind) {
  return kind == ControllerKind::kSigio    ? "sigio"
         : kind == ControllerKind::kThread ? "thread"
                                           : "sync";
}

const char* protection_name(Protection kind) {
  return kind == Protection::kOff ? "off" : kind == Protection::kAuth ? "auth" : "on";
}

std::size_t knob_count() { return kRows; }
const KnobInfo& knob_info(std::size_t index) { return kTable[index].info; }
const char* process_environment(const char* name) { return std::getenv(name); }

Knobs default_knobs() {
  Knobs knobs;
  char why[8];
  for (const Row& row : kTable)
    if (!row.parse(row.info.default_value, knobs, why, sizeof why))
      std::abort();  // the table contradicts itself
  return knobs;
}

bool set_knob(std::size_t index, const char* value, Knobs& knobs, char* error, std::size_t size) {
  const Row& row = kTable[index];
  Knobs changed = knobs;
  char why[256] = "";
  if (row.parse(value, changed, why, sizeof why)) {
    knobs = changed;
    return true;
  }
  std::snprintf(error, size, "%s=\"%.200s\" is not allowed%s%s; allowed: %s", row.info.name, value,
                why[0] != '\0' ? ": " : "", why, row.info.allowed);
  if (size > 0) make_printable(error);
  return false;
}

bool parse_knobs(GetEnv get, Knobs& knobs, char* error, std::size_t size) {
  Knobs parsed = default_knobs();
  if (!override_knobs(get, parsed, error, size)) return false;
  knobs = parsed;
  return true;
}

bool override_knobs(GetEnv get, Knobs& knobs, char* error, std::size_t size) {
  Knobs parsed = knobs;
  for (std::size_t i = 0; i < kRows; ++i) {
    const char* value = get(kTable[i].info.name);
    if (value == nullptr || *value == '\0') continue;
    if (!set_knob(i, value, parsed, error, size)) return false;
  }
  knobs = parsed;
  return true;
}

const char* format_knob(std::size_t index, const Knobs& knobs, char* text, std::size_t size) {
  if (size > 0) text[0] = '\0';
  kTable[index].format(knobs, text, size);
  return text;
}

}  // namespace mplite
