// Put and get, the target's part: memory that is exposed to the peers, which they read and write
// without its process; all of it works in the handler.
// A part of Device, which dispatches. Neighbour: rma_origin.h, the other end and the protocol.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

struct Region;
class RmaTarget;

// A put or get of a peer that moves by transfer, at its target; from the pool, in its region's list
// until it moves no more.
struct Access {
  Access* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  RmaTarget* target = nullptr;
  Region* region = nullptr;
  Access* next = nullptr;  // of the region; then of its peer's answers
  Access* previous = nullptr;
  MPID_TransferId transfer = 0;  // of a put; 0: a get
  MPID_ChannelId channel = 0;
  std::uint64_t bytes = 0;
  std::uint64_t sender = 0;  // the origin's request, for the answer
  int peer = -1;
};

// Memory that peers may read and write. Its key is a random number: whoever has not been told it
// cannot guess it.
struct Region {
  Region* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  std::uint64_t key = 0;
  Region* key_next = nullptr;     // with the same place in the table of keys
  std::uint8_t* peers = nullptr;  // a bit for each of the peers that may access it, in
                                  // `peers_bytes`; null: every rank of the job
  std::uint64_t peers_bytes = 0;
  std::uint8_t* base = nullptr;
  std::uint64_t bytes = 0;
  Access* accesses = nullptr;
};

class RmaTarget {
 public:
  explicit RmaTarget(Core& core) : core_(core) {}
  ~RmaTarget();
  RmaTarget(const RmaTarget&) = delete;
  RmaTarget& operator=(const RmaTarget&) = delete;

  // ---- exposing: ordinary context; results are LITE_* ----
  // peers: who may access it, nullptr: every rank of the job.
  int expose(void* base, std::uint64_t bytes, const int* peers, std::size_t peers_count,
             std::uint64_t* key);
  // What still moves from or to it (MPI forbids that) must not find it: the peer goes, and the
  // transfers with it.
  int withdraw(std::uint64_t key);
  // Somebody's access to it is under way, as far as this process knows: the origin of a get may
  // have its data.
  bool is_accessed(std::uint64_t key) const;
  bool is_exposing() const MPLITE_SIGNAL_SAFE { return regions_.used_count() > 0; }
  // Of this process itself.
  int put_here(std::uint64_t key, std::uint64_t offset, const void* data, std::uint64_t bytes);
  int get_here(std::uint64_t key, std::uint64_t offset, void* buffer, std::uint64_t bytes);

  // Whether one access can be served; ordinary context sees to it with refill(). False: no memory.
  bool headroom() const MPLITE_SIGNAL_SAFE { return !is_exposing() || accesses_.free_count() > 0; }
  bool refill() {
    return !is_exposing() || accesses_.reserve(nodes_ready()) || accesses_.free_count() > 0;
  }

  // ---- peers ----
  void handle_put(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void handle_put_request(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void handle_get(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void handle_get_transfer(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  // Acknowledges what is done. False: not all of it now.
  bool send_answers(int peer) MPLITE_SIGNAL_SAFE;
  // The peer is lost.
  void drop_answers(Peer& peer) MPLITE_SIGNAL_SAFE;
  std::uint32_t accesses_used() const { return accesses_.used_count(); }

 private:
  struct TransferOfPut;
  static constexpr std::size_t kKeyBins = 256;

  // Nodes that ordinary context leaves for the handler while memory is exposed: what all peers may
  // have under way, in a job of up to 128.
  std::uint32_t nodes_ready() const MPLITE_SIGNAL_SAFE {
    const int peers = core_.peers.count();
    return kAccessesHere * static_cast<std::uint32_t>(peers < 128 ? peers : 128);
  }
  Region* region_of(std::uint64_t key) const MPLITE_SIGNAL_SAFE;
  // nullptr: it is not exposed.
  const Region* find(std::uint64_t key, std::uint64_t offset, std::uint64_t bytes) const;
  bool may_access(const Region& region, int peer) const MPLITE_SIGNAL_SAFE;
  Region* accessible(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  Access* begin_access(Region* region, const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void leave_region(Access* access) MPLITE_SIGNAL_SAFE;
  void free_access(Access* access) MPLITE_SIGNAL_SAFE;
  static void on_put_arrived(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;
  static void on_get_sent(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;

  Core& core_;
  mplite::Pool<Region, 16> regions_;
  Region* keys_[kKeyBins] = {};  // by their lowest bits
  mplite::Pool<Access> accesses_;
};

}  // namespace ch_lite
