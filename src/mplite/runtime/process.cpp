// One process's way to a running engine, and back.
#include "mplite/runtime/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "mplite/base/address.h"
#include "mplite/base/bounded_text.h"
#include "mplite/config/knob_text.h"
#include "mplite/config/profile.h"
#include "mplite/net/handshake.h"
#include "mplite/net/loss.h"
#include "mplite/observe/trace.h"

extern char** environ;

namespace mplite {
namespace {

// About 5 us in all. On a veth pair of two cores 4 to 8 % of the throughput at 1 MB and above.
constexpr int kFrameTries = 16;
constexpr int kAsideAfter = 8;
constexpr int kDescriptorsMax = 1 << 20;  // that may be protected
constexpr std::uint64_t kSplitMin = 58 * 1024, kSplitEnd = 112 * 1024;

}  // namespace

StartFault Process::listen(void* card, char* error, std::size_t error_size) {
  Card made;
  const StartFault fault = open_up(made, error, error_size);
  if (fault == StartFault::kNone)
    std::memcpy(card, &made, sizeof made);
  else
    make_failed_card(error, card);
  return fault;
}

StartFault Process::open_up(Card& made, char* error, std::size_t error_size) {
  if (!read_knobs(process_environment, knobs, error, error_size)) return StartFault::kArgument;
  if (unknown_knobs(environ, error, error_size) > 0 && write(2, error, std::strlen(error)) < 0)
    errno = 0;  // a hint: nobody may be reading
  if (knobs.secret_file[0] != '\0' &&
      !read_secret_file(knobs.secret_file, secret_file, error, error_size))
    return StartFault::kArgument;
  if (const int rc = net.open(); rc < 0) {
    std::snprintf(error, error_size, "epoll descriptor: %s%s", strerror(-rc), descriptor_cure(-rc));
    return StartFault::kSystem;
  }
  if (!hello_prepare()) {
    std::snprintf(error, error_size, "libsodium does not work in this process");
    return StartFault::kSystem;
  }
  auto* candidates = new (std::nothrow) Candidate[kCandidatesMax];
  const int count = candidates != nullptr ? list_interfaces(candidates, kCandidatesMax) : -ENOMEM;
  const bool found = count >= 0 && choose_interface(candidates, count, knobs.iface, knobs.family,
                                                    choice, error, error_size);
  delete[] candidates;
  if (count < 0) {
    std::snprintf(error, error_size, "the network interfaces cannot be listed: %s%s",
                  strerror(-count), descriptor_cure(-count));
    return StartFault::kSystem;
  }
  if (!found) {
    if (knobs.iface_from_mpiexec) {
      const std::size_t used = std::strlen(error);
      std::snprintf(error + used, error_size - used,
                    "; it was named by mpiexec -iface (MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE), which "
                    "LITE_IFACE overrides");
    }
    return StartFault::kArgument;
  }
  const int fd = open_listener(net, choice, knobs, error, error_size);
  if (fd < 0) {
    const std::size_t used = std::strlen(error);
    std::snprintf(error + used, error_size - used, "%s", descriptor_cure(-fd));
    return StartFault::kSystem;
  }
  listeners[0] = fd;
  spare = net.open_stream(choice.address.ss_family);
  if (spare < 0) {
    std::snprintf(error, error_size, "no descriptor is left for a connection: %s%s",
                  strerror(-spare), descriptor_cure(-spare));
    return StartFault::kSystem;
  }
  open_more_listeners(net, choice, knobs, listeners);
  make_card(net, choice, made);
  made.credits = knobs.credits;
  made.unexpected_max = knobs.unexpected_max;
  make_fingerprint(secret_file, made.share, made.fingerprint);
  std::uint8_t random[kKeyBytes];
  net.random(random, sizeof random);
  keys = make_key_pair(random);
  std::memcpy(made.name_key, keys.open, sizeof made.name_key);
  made.protection = static_cast<std::uint8_t>(knobs.protection);
  return StartFault::kNone;
}

static void take_knobs(const Knobs& knobs, EngineOptions& options) {
  options.connect_timeout_ns = knobs.connect_timeout_ns;
  options.frame_bytes = knobs.frame_bytes;
  options.low_water_bytes = knobs.low_water_bytes;
  options.lanes = knobs.lanes;
  options.resume = knobs.resume;
  if (rlimit limit = {}; getrlimit(RLIMIT_NOFILE, &limit) == 0)
    options.lane_descriptor_max =
        static_cast<int>(std::min<rlim_t>(limit.rlim_cur / 2, options.lane_descriptor_max));
  options.tuning = knobs.tuning;
  options.stream.socket_buffer_bytes = static_cast<int>(knobs.sockbuf);
  options.stream.keepalive_idle_s = knobs.keepalive_idle_s;
  options.stream.keepalive_interval_s = knobs.keepalive_interval_s;
}

StartFault Process::join(int own_rank, int job_size, const void* table, int local_ranks,
                         char* error, std::size_t error_size) {
  rank = own_rank;
  size = job_size;
  peers = new (std::nothrow) PeerAddress[static_cast<std::size_t>(size)];
  if (peers == nullptr) {
    std::snprintf(error, error_size, "out of memory for the addresses of %d ranks", size);
    return StartFault::kMemory;
  }
  EngineOptions options;
  if (const StartFault fault =
          decode_table(table, size, rank, secret_file, peers, options.secret, error, error_size);
      fault != StartFault::kNone)
    return fault;
  put_first(peers[rank].address);
  if (local_ranks == 0)
    for (int i = 0; i < size; ++i)
      local_ranks += std::strcmp(peers[i].host, peers[rank].host) == 0 ? 1 : 0;
  topology = detect_topology();
  sharing = std::min(local_ranks, ranks_sharing_place(table, size, rank));
  policy = choose_wait_policy(topology.cores, sharing, knobs.spin_ns, false,
                              knobs.tuning.has(Heuristic::kWaitPolicy));
  if (knobs.trace && !trace_start(rank, size, knobs.trace_prefix, error, error_size))
    return StartFault::kSystem;
  options.rank = rank;
  options.size = size;
  options.peers = peers;
  options.keys = keys;
  options.listeners = listeners;
  options.spare = spare;
  take_knobs(knobs, options);
  if (policy.own_core) {  // where ranks share cores, trying again would hold up a neighbour, and
                          // halves gain nothing
    options.frame_tries = kFrameTries;
    options.split_min = kSplitMin;
    options.split_end = kSplitEnd;
    options.detach_after = kAsideAfter;
  }
  if (const StartFault fault = protect(options, error, error_size); fault != StartFault::kNone)
    return fault;
  engine = new (std::nothrow) Engine(sockets_for(options), options);
  if (engine == nullptr) {
    std::snprintf(error, error_size, "out of memory for the engine");
    return StartFault::kMemory;
  }
  listeners = no_listening_sockets();
  spare = -1;
  if (const int rc = engine->start(); rc < 0) {
    std::snprintf(error, error_size, "the engine does not start: %s%s", strerror(-rc),
                  descriptor_cure(-rc));
    return rc == -ENOMEM ? StartFault::kMemory : StartFault::kSystem;
  }
  return StartFault::kNone;
}

// With LITE_ENCRYPT: each pair of ranks has a key that nobody else can compute, also if he learns
// the job's secret later. The arithmetic takes some 50 us per rank.
StartFault Process::protect(EngineOptions& options, char* error, std::size_t error_size) {
  options.protection = protection_offer(knobs.protection);
  if (options.protection == 0) return StartFault::kNone;
  for (int i = 0; i < size; ++i) {
    if (i == rank || pair_key(keys, peers[i].name_key, peers[i].pair_key)) continue;
    std::snprintf(error, error_size, "the address of rank %d has no sound key", i);
    return StartFault::kArgument;
  }
  rlimit limit = {};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < kDescriptorsMax;
  if (protected_net.start(known ? static_cast<int>(limit.rlim_max) : kDescriptorsMax))
    return StartFault::kNone;
  std::snprintf(error, error_size, "out of memory for LITE_ENCRYPT");
  return StartFault::kMemory;
}

// The table may have left addresses out: the best that is left is the one whose listener stays.
void Process::put_first(const sockaddr_storage& address) {
  for (int i = 0; i < choice.more_count; ++i) {
    InterfaceChoice::Other& other = choice.more[i];
    if (!is_same_host(other.address, address) || port_of(other.address) != port_of(address))
      continue;
    std::swap(listeners[0], listeners[static_cast<std::size_t>(i) + 1]);
    std::swap(choice.address, other.address);
    std::swap(choice.name, other.name);
    return;
  }
}

// "tried from interface eth0, 10.0.0.1 and interface eth1, 10.0.1.1": where the peer is called
// from. Where no way leads to it: where we are called.
void Process::list_ends(int peer, BoundedText& out) const {
  sockaddr_storage ends[kAddressesMax];
  int count = engine != nullptr && peer >= 0 ? engine->local_ends(peer, ends) : 0;
  out.add(count > 0 ? "tried from " : "this rank has ");
  if (count == 0) {
    ends[count++] = choice.address;
    for (int i = 0; i < choice.more_count; ++i) ends[count++] = choice.more[i].address;
  }
  for (int i = 0; i < count; ++i) {
    char text[96], name[sizeof choice.name];
    set_port(ends[i], 0);
    interface_of(ends[i], name);
    out.add("%s", i == 0 ? "" : i == count - 1 ? " and " : ", ");
    if (name[0] != '\0') out.add("interface %s, ", name);
    out.add("%s", format_address(ends[i], text, sizeof text));
  }
}

const char* Process::advice(int peer, int error, char* text, std::size_t size) const {
  const char* check = nullptr;
  switch (error) {
    case ETIMEDOUT:
      check =
          "check that each can reach the other's host and port (firewall, LITE_IFACE, "
          "LITE_PORT_RANGE), or raise LITE_CONNECT_TIMEOUT or LITE_KEEPALIVE";
      break;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case EADDRNOTAVAIL:
      check = "check that each can reach the other's address (routes, firewall, LITE_IFACE)";
      break;
    case ECONNREFUSED:
      check =
          "its process has ended, or a firewall or another host answers at that address "
          "(LITE_IFACE chooses another one)";
      break;
    case kNoCommonFamily:
      check =
          "give both hosts addresses of one family, or name interfaces that have them (LITE_IFACE, "
          "LITE_FAMILY)";
      break;
    default: break;
  }
  BoundedText out(text, size);
  out.add("%s", descriptor_cure(error));
  if (check == nullptr) return text;
  out.add("; ");
  list_ends(peer, out);
  out.add(": %s", check);
  return text;
}

void Process::end_engine() {
  delete engine;
  engine = nullptr;
}

Process::~Process() {
  end_engine();
  delete[] peers;
  for (const int listener : listeners)
    if (listener >= 0) close(listener);
  if (spare >= 0) close(spare);
}

char g_last_error[1024] = "no error";

int fail(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(g_last_error, sizeof g_last_error, format, arguments);
  va_end(arguments);
  return code;
}

}  // namespace mplite
