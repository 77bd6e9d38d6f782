// Processes of other jobs as peers: found and added by name, let in at ports, told goodbye, let go.
// They come behind the job's ranks in the peer table. Used by the engine and who makes connections;
// uses tx_queue.h, ports.h, process_name.h.
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/base/address.h"
#include "mplite/base/growing_table.h"
#include "mplite/base/signal_safe.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/ports.h"
#include "mplite/engine/rx_stream.h"
#include "mplite/engine/tx_queue.h"
#include "mplite/net/handshake.h"
#include "mplite/net/process_name.h"

namespace mplite {

// Called when a process of another job becomes peer number `peer`, which is the next one or one
// that nobody has dealt with any more. `window`: the credit that it gives. False: the layer above
// has no memory, or something is left of the process that the number stood for. Ordinary context,
// gate held.
using IntroduceCallback = bool (*)(void* self, int peer, std::uint32_t window);

// Trust: the job's secret is not involved. The first connection between two jobs is made by a
// port's key, which says that the caller has read the port's name, together with the key of the two
// processes, which says that both are who they say; over it both jobs exchange their processes'
// public names, and from then on each pair has a key that only the two can compute.
// Ordinary context, gate held, unless marked.
class RemoteJobs {
 public:
  static constexpr std::size_t kProcessesMax = 65536;  // at a time

  RemoteJobs(EngineCore& core, TxQueue& tx) : core_(core), tx_(tx) {}
  RemoteJobs(const RemoteJobs&) = delete;
  RemoteJobs& operator=(const RemoteJobs&) = delete;

  // Once. False: no memory.
  bool start() { return processes_.start(0, kProcessesMax); }
  void set_introduce(IntroduceCallback introduce, void* self) {
    introduce_ = introduce;
    introduce_self_ = self;
  }
  // The credit that the layer above gives to a remote process, bytes: part of our name.
  void set_window(std::uint32_t window) { window_ = window; }
  std::uint32_t window() const MPLITE_SIGNAL_SAFE { return window_; }
  // Who takes the frames by which a remote process says goodbye.
  Sink goodbye_sink() { return {this, begin_goodbye, end_goodbye}; }

  // ---- names ----

  Ports& ports() { return ports_; }
  bool name_of(int peer, ProcessName& name) const;
  // Of any peer.
  const std::uint8_t* name_key(int peer) const MPLITE_SIGNAL_SAFE {
    return core_.is_remote(peer) ? process(peer).name_key : core_.options.peers[peer].name_key;
  }
  const sockaddr_storage& address_of(int peer) const MPLITE_SIGNAL_SAFE {
    return core_.is_remote(peer) ? process(peer).address : core_.options.peers[peer].address;
  }
  // How many addresses it has, and one of them. Address 0 is address_of(); a process of another job
  // has no other.
  int address_count(int peer) const MPLITE_SIGNAL_SAFE {
    return core_.is_remote(peer) ? 1 : core_.options.peers[peer].count();
  }
  sockaddr_storage address_of(int peer, int number) const MPLITE_SIGNAL_SAFE {
    return core_.is_remote(peer) ? process(peer).address : core_.options.peers[peer].at(number);
  }
  // Which of them this is, whatever the ports; -1: none.
  int find_address(int peer, const sockaddr_storage& address) const MPLITE_SIGNAL_SAFE {
    int i = address_count(peer) - 1;
    while (i >= 0 && !is_same_host(address_of(peer, i), address)) --i;
    return i;
  }
  // The number of a remote process, or -ENOENT.
  int find(const std::uint8_t* name_key) const MPLITE_SIGNAL_SAFE;

  // ---- connect, disconnect ----

  // The number for the process of that name. From then on either side may connect. -errno: no
  // memory, or it was lost and something is left of it.
  int connect(const ProcessName& name);
  // The next connection to a remote process, which is idle, is made by the port's key.
  void use_port(int peer, const PortName& port);
  // Nobody above deals with the process any more.
  void disconnect(int peer);
  void say_goodbye();
  bool farewell() const;

  // ---- handshakes and losses ----

  // Of our attempt: by which key.
  void prepare(Connection& c, int peer) const MPLITE_SIGNAL_SAFE;
  // Of our attempt: the port that is called, or 0.
  std::uint32_t port_of(const Connection& c) const MPLITE_SIGNAL_SAFE;
  // The key that only we and that process can compute.
  const std::uint8_t* pair_key_of(int peer) const MPLITE_SIGNAL_SAFE {
    return process(peer).pair_key;
  }
  // The key by which who comes to a port has to prove itself. False: there is no such port, or what
  // it shows is no public key.
  MPLITE_ORDINARY bool know_caller(const Hello& said, std::uint8_t (&key)[kKeyBytes]) const;
  // Who has proved to know a port's key, as a peer. -errno: cannot be one.
  MPLITE_ORDINARY int admit_caller(const Connection& c, const Hello& proof);
  void connected(int peer) MPLITE_SIGNAL_SAFE { process(peer).by_port = false; }
  // The process is lost, with `error`, which may become another one. Whether that is no news: see
  // Engine::departed.
  bool lost(int peer, int& error) MPLITE_SIGNAL_SAFE;
  bool departed(int peer) const MPLITE_SIGNAL_SAFE {
    return core_.is_remote(peer) && process(peer).departed;
  }

 private:
  // What a remote process has besides what each peer has.
  struct Process {
    sockaddr_storage address = {};  // family 0: not known yet
    std::uint8_t name_key[kKeyBytes] = {};
    std::uint8_t pair_key[kKeyBytes] = {};
    std::uint8_t port_key[kKeyBytes] = {};  // by_port: port_secret()
    std::uint32_t port_id = 0;
    std::uint32_t window = 0;
    bool by_port = false;  // the next connection that we make is by port_key
    bool unmet = false;    // came to a port of ours, and was not connected to since: in no
                           // communicator
    bool disconnected = false;
    bool goodbye_said = false;   // the last word on it of ours,
    bool goodbye_heard = false;  // and of the process
    bool departed = false;       // lost, but that is no news
  };

  Process& process(int peer) const MPLITE_SIGNAL_SAFE {
    return processes_.data()[peer - core_.options.size];
  }
  int find_any(const std::uint8_t (&name_key)[kKeyBytes]) const;
  int add(const std::uint8_t (&name_key)[kKeyBytes], std::uint32_t window);
  int new_number(std::uint32_t window);
  int renew(int peer, std::uint32_t window);
  int revive(int peer);
  bool say(int peer, GoodbyeWord word);
  static Verdict begin_goodbye(void* self, int peer, const FrameHeader& header,
                               Destination& destination) MPLITE_SIGNAL_SAFE;
  static void end_goodbye(void* self, int peer, const FrameHeader& header) MPLITE_SIGNAL_SAFE;

  EngineCore& core_;
  TxQueue& tx_;
  GrowingTable<Process> processes_;
  Ports ports_;
  IntroduceCallback introduce_ = nullptr;
  void* introduce_self_ = nullptr;
  std::uint32_t window_ = 1;
};

}  // namespace mplite
