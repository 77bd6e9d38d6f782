// One process's way to a running engine, and back.
#include "process.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "handshake.h"
#include "profile.h"
#include "trace.h"

extern char** environ;

namespace mplite {
namespace {

// About 5 us in all. On a veth pair of two cores 4 to 8 % of the throughput at 1 MB and above.
constexpr int kFrameTries = 16;
constexpr int kAsideAfter = 8;
constexpr std::uint64_t kSplitMin = 58 * 1024, kSplitEnd = 112 * 1024;

}  // namespace

StartFault Process::listen(void* blob, char* error, std::size_t error_size) {
  if (!read_knobs(process_environment, knobs, error, error_size)) return StartFault::kArgument;
  if (unknown_knobs(environ, error, error_size) > 0 && write(2, error, std::strlen(error)) < 0) errno = 0;  // a hint: nobody may be reading
  if (const int rc = net.open(); rc < 0) {
    std::snprintf(error, error_size, "epoll descriptor: %s (raise the limit on open files: ulimit -n)", strerror(-rc));
    return StartFault::kSystem;
  }
  if (!hello_prepare()) {
    std::snprintf(error, error_size, "libsodium does not work in this process");
    return StartFault::kSystem;
  }
  auto* candidates = new (std::nothrow) Candidate[kCandidatesMax];
  const int count = candidates != nullptr ? list_interfaces(candidates, kCandidatesMax) : -ENOMEM;
  const bool found = count >= 0 && choose_interface(candidates, count, knobs.iface, knobs.family, choice, error, error_size);
  delete[] candidates;
  if (count < 0) {
    std::snprintf(error, error_size, "the network interfaces cannot be listed: %s", strerror(-count));
    return StartFault::kSystem;
  }
  if (!found) return StartFault::kArgument;
  const int fd = open_listener(net, choice, knobs, error, error_size);
  if (fd < 0) return StartFault::kSystem;
  listener = fd;
  AddressBlob made;
  make_blob(net, choice, made);
  std::uint8_t random[kKeyBytes];
  net.random(random, sizeof random);
  keys = make_key_pair(random);
  std::memcpy(made.name_key, keys.open, sizeof made.name_key);
  std::memcpy(blob, &made, sizeof made);
  return StartFault::kNone;
}

StartFault Process::join(int own_rank, int job_size, const void* table, int local_ranks, char* error, std::size_t error_size) {
  rank = own_rank;
  size = job_size;
  peers = new (std::nothrow) PeerAddress[static_cast<std::size_t>(size)];
  if (peers == nullptr) {
    std::snprintf(error, error_size, "out of memory for the addresses of %d ranks", size);
    return StartFault::kMemory;
  }
  EngineOptions options;
  if (!decode_table(table, size, rank, peers, options.secret, error, error_size)) return StartFault::kArgument;
  if (local_ranks == 0)
    for (int i = 0; i < size; ++i) local_ranks += std::strcmp(peers[i].host, peers[rank].host) == 0 ? 1 : 0;
  topology = detect_topology();
  sharing = std::min(local_ranks, ranks_sharing_place(table, size, rank));
  policy = choose_wait_policy(topology.cores, sharing, knobs.spin_ns, false);
  if (knobs.trace) trace_start(rank);
  options.rank = rank;
  options.size = size;
  options.peers = peers;
  options.keys = keys;
  options.listener = listener;
  options.connect_timeout_ns = knobs.connect_timeout_ns;
  options.frame_bytes = knobs.frame_bytes;
  options.low_water_bytes = knobs.low_water_bytes;
  if (policy.yield_after_ns > 0) {  // where ranks share cores, trying again would hold up a neighbour, and halves gain nothing
    options.frame_tries = kFrameTries;
    options.split_min = kSplitMin;
    options.split_end = kSplitEnd;
    options.aside_after = kAsideAfter;
  }
  options.stream.socket_buffer_bytes = static_cast<int>(knobs.sockbuf);
  options.stream.keepalive_idle_s = knobs.keepalive_idle_s;
  options.stream.keepalive_interval_s = knobs.keepalive_interval_s;
  engine = new (std::nothrow) Engine(net, options);
  if (engine == nullptr) {
    std::snprintf(error, error_size, "out of memory for the engine");
    return StartFault::kMemory;
  }
  listener = -1;
  if (const int rc = engine->start(); rc < 0) {
    std::snprintf(error, error_size, "the engine does not start: %s", strerror(-rc));
    return rc == -ENOMEM ? StartFault::kMemory : StartFault::kSystem;
  }
  return StartFault::kNone;
}

void Process::end_engine() {
  delete engine;
  engine = nullptr;
}

Process::~Process() {
  end_engine();
  delete[] peers;
  if (listener >= 0) close(listener);
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
