// One process's way to a running engine: knobs, interface, listener, card; then table,
// secret, waiting policy, engine. And back. The base of job_runtime.h, which hosts use. Ordinary
// context only.
#pragma once
#include <cstddef>

#include "mplite/config/knobs.h"
#include "mplite/config/topology.h"
#include "mplite/engine/engine.h"
#include "mplite/net/net_posix.h"
#include "mplite/net/process_name.h"
#include "mplite/net/protected_net.h"
#include "mplite/runtime/secret_file.h"
#include "mplite/runtime/wireup.h"
#include "mplite/tuning/wait.h"

namespace mplite {

class BoundedText;

struct Process {
  Knobs knobs;
  PosixNet net;
  ProtectedNet protected_net{net};  // the engine's with LITE_ENCRYPT
  InterfaceChoice choice;
  SecretFile secret_file;
  KeyPair keys = {};                                    // what processes of other jobs know us by
  ListeningSockets listeners = no_listening_sockets();  // the engine's once there is one
  int spare = -1;                                       // the same: EngineOptions::spare
  PeerAddress* peers = nullptr;                         // `size` entries
  Engine* engine = nullptr;
  Topology topology;
  int sharing = 1;  // ranks that have to share our cores, oneself included
  WaitPolicy policy = {};
  int rank = -1;
  int size = 0;

  Process() = default;
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Reads the environment (and warns on stderr of LITE_* names that are none), listens, fills
  // `card` (kCardBytes). On a fault `error` holds a sentence with the cure, and `card` a
  // card that tells the other ranks: it is to be published as well.
  StartFault listen(void* card, char* error, std::size_t error_size);

  // Reads the table of `size` cards and starts the engine. `local_ranks`: on this host, oneself
  // included; 0: those with our host name.
  StartFault join(int rank, int size, const void* table, int local_ranks, char* error,
                  std::size_t error_size);

  // What to check when a peer was lost by `error`: begins with "; " and names our own side's ways
  // to it, or is empty. Peer -1: nobody in particular. Returns `text`, of which kAdviceBytes
  // suffice.
  static constexpr std::size_t kAdviceBytes = 640;
  const char* advice(int peer, int error, char* text, std::size_t size) const;

  // Ends the engine (completing what is left with ECANCELED, so while those who are told still
  // exist). Idempotent.
  void end_engine();

 private:
  StartFault open_up(Card& card, char* error, std::size_t error_size);
  StartFault protect(EngineOptions& options, char* error, std::size_t error_size);
  Net& sockets_for(const EngineOptions& options) {
    return options.protection != 0 ? static_cast<Net&>(protected_net) : net;
  }
  void list_ends(int peer, BoundedText& out) const;
  void put_first(const sockaddr_storage& address);
};

// What failed last, in a sentence for people: lite_last_error(), MP_Last_Error().
extern char g_last_error[1024];
// Writes it; returns `code`.
[[gnu::format(printf, 2, 3)]] int fail(int code, const char* format, ...);

}  // namespace mplite
