// channel.h without an engine: several ranks in one process, frames in memory, delivery in seeded
// pieces. Keeps the engine's habits that the device must bear: one stream per pair that stops at a
// channel frame without a posted buffer (parked) and at a control packet that is not taken;
// completions inside polls and inside posting calls; sends complete late; control overtakes queued
// bulk.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "ch_lite/channel/channel.h"
#include "ch_lite/device/device.h"
#include "mplite/base/iov_cursor.h"
#include "mplite/engine/gate.h"
#include "mplite/observe/counters.h"

namespace fake {

enum class Kind { kControl, kChannel, kTransfer };

struct Frame {
  Kind kind;
  std::uint64_t id = 0;  // of a transfer
  std::vector<std::uint8_t> data;
  MPID_ChannelId op = 0;  // the receive that it is arriving into: begun, not ended
};

struct Op {
  Kind kind;
  bool receive;
  int peer;
  mplite::Memory memory;
  std::uint64_t size;
  std::uint64_t transfer = 0;  // a send's
  std::uint64_t from = 0;      // of a transfer: what is before this goes another way
  bool done = false;
  std::int64_t result = 0;
  void (*on_complete)(void*, std::int64_t) = nullptr;
  void* arg = nullptr;
};

// One rank's channel.
struct Rank {
  mplite::Gate gate;
  mplite::Counters counters;
  std::map<MPID_ChannelId, Op> ops;
  std::uint64_t next_id = 1;
  std::map<int, std::deque<MPID_ChannelId>> posted;    // channel receives by source
  std::map<int, std::deque<MPID_ChannelId>> bulk_out;  // queued bulk by destination
  struct Ready {
    int from;
    std::vector<std::uint8_t> data;
  };
  std::deque<Ready> ready;
  std::vector<std::uint8_t> viewed;  // the packet that was taken last
  std::map<int, int> error;          // peers given up
  std::set<int> departed;            // of them: their loss is no news
  std::set<int> spreads;             // peers that transfers go to over several connections
  void (*progress)(void*) = nullptr;
  void* progress_arg = nullptr;
  void (*lost)(void*, int, int) = nullptr;
  void* lost_arg = nullptr;
  int (*introduce)(void*, int, std::uint32_t) = nullptr;
  void* introduce_arg = nullptr;
  bool in_handler = false;
  bool gather = false;
  int gathered = 0;  // packets that may wait since MPID_ChannelFlush
  int flushed = 0;   // packets that may have waited
  bool headroom = true;
  bool memory = true;    // false: ordinary context has none either
  bool starved = false;  // the handler has left something
  int moves = 0;         // MPID_ChannelMove
  bool outstanding = false;
  int outstanding_edges = 0;
  std::vector<int> reached;  // by MPID_ChannelReach, in order
  int holds = 0;
  int waits = 0;
};

class World {
 public:
  World(int size, unsigned seed);
  ~World();

  // Everything by this rank from here on: the channel's calls and the C API's.
  void as(int rank);
  int size() const { return static_cast<int>(ranks.size()); }
  // `job`: the ranks of its job (0: all); the others are processes of other jobs, to be introduced.
  void make_device(int rank, const ch_lite::DeviceOptions& options, int job = 0);
  // Progress in the signal handler's place: no allocation allowed to the device.
  void handler(int rank);
  // Ordinary progress of all ranks, many times: until nothing moves.
  void settle();
  // rank learns that peer is gone, now.
  void lose(int rank, int peer, int error);
  // Puts a control packet on the wire as if `from` had sent it.
  void forge(int from, int to, const void* packet, std::size_t bytes);

  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<std::unique_ptr<ch_lite::Device>> devices;
  std::map<std::pair<int, int>, std::deque<Frame>> wire;  // (from, to)
  std::mt19937 random;
  bool lazy = false;               // move little per poll, complete sends late, split arrivals
  bool hold_bulk = false;          // queued bulk does not leave
  bool keeps_connections = false;  // the device gives a peer up, and the channel goes on with it
  std::uint64_t moved = 0;
  int current = -1;
  struct Reported {
    int code, peer, error;
    const char* what;
  };
  std::vector<Reported> reports;
};

World& world();

}  // namespace fake
