// One process's way to a running engine: knobs, interface, listener, address blob; then table, secret, waiting policy, engine. And back.
// Shared by the device (ch_lite/boot.cpp) and the MP_* library (mplite.cpp). Ordinary context only.
#pragma once
#include <cstddef>

#include "engine.h"
#include "knobs.h"
#include "net_posix.h"
#include "process_name.h"
#include "topology.h"
#include "wait.h"
#include "wireup.h"

namespace mplite {

enum class StartFault {
  kNone,
  kArgument,  // a knob or the table
  kMemory,
  kSystem,    // a system call or library
};

struct Process {
  Knobs knobs;
  PosixNet net;
  InterfaceChoice choice;
  KeyPair keys = {};              // what processes of other jobs know us by
  int listener = -1;              // the engine's once there is one
  PeerAddress* peers = nullptr;   // `size` entries
  Engine* engine = nullptr;
  Topology topology;
  int sharing = 1;                // ranks that have to share our cores, oneself included
  WaitPolicy policy = {};
  int rank = -1;
  int size = 0;

  Process() = default;
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Reads the environment (and warns on stderr of LITE_* names that are none), listens, fills `blob` (kAddressBlobBytes).
  // On a fault `error` holds a sentence with the cure.
  StartFault listen(void* blob, char* error, std::size_t error_size);

  // Reads the table of `size` blobs and starts the engine. `local_ranks`: on this host, oneself included; 0: those with our host name.
  StartFault join(int rank, int size, const void* table, int local_ranks, char* error, std::size_t error_size);

  // Ends the engine (completing what is left with ECANCELED, so while those who are told still exist). Idempotent.
  void end_engine();
};

// What failed last, in a sentence for people: lite_last_error(), MP_Last_Error().
extern char g_last_error[1024];
// Writes it; returns `code`.
[[gnu::format(printf, 2, 3)]] int fail(int code, const char* format, ...);

}  // namespace mplite
