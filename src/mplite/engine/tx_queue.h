// The way out: send operations are queued per peer, cut into frames, and written many frames to a
// system call. Control goes before bulk; bulk transfers take turns; channel messages keep their
// order. Used by the engine and the parts above; uses readiness.h, upcalls.h.
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/base/iov_cursor.h"
#include "mplite/base/pool.h"
#include "mplite/base/signal_safe.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/readiness.h"
#include "mplite/engine/upcalls.h"
#include "mplite/net/frame.h"
#include "mplite/tuning/stream_padding.h"

namespace mplite {

// Where the handler keeps a control packet that is longer than SendOp::kInlineBytes.
struct ControlBlock {
  ControlBlock* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  std::uint8_t bytes[kControlBytesMax];
};

// One message on its way out, in the engine's pool. Owned by the engine until done; `data` belongs
// to the sender unless `block` is set, and so do the pieces that it may have instead.
struct SendOp {
  SendOp* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  SendOp* next = nullptr;
  const std::uint8_t* data = nullptr;
  const iovec* pieces = nullptr;  // in place of data
  IovCursor uncommitted;          // of them: where the next frame begins
  std::uint64_t total = 0;
  std::uint64_t committed = 0;  // cut into frames so far
  std::uint64_t id = 0;
  void (*on_done)(void* arg, int error) = nullptr;
  void* arg = nullptr;
  std::uint8_t* block =
      nullptr;  // heap copy of a large control packet, or of what the kernel did not take
  ControlBlock* control_block = nullptr;  // the same in the handler
  std::uint32_t frames = 0;  // committed and not yet wholly written; on a lane, or kept: not
                             // acknowledged
  std::uint32_t kept = 0;    // of these, those that are kept (kept.h)
  int peer = -1;
  int error = 0;
  FrameKind kind = FrameKind::kControl;
  bool all_committed = false;
  bool done = false;
  bool taken = false;  // the kernel has all of it, and it is complete when that is acknowledged
  bool released = false;
  static constexpr std::size_t kInlineBytes = 160;  // a device packet without data fits
  std::uint8_t inline_bytes[kInlineBytes];

  SendOp() {}  // not `= default`: a pool's value-initialisation would clear inline_bytes, too
};

// Gate held throughout. What each call promises is said in engine.h, which forwards them.
class TxQueue {
 public:
  static constexpr std::uint32_t kSendsPerPacket = 8;
  static constexpr std::uint32_t kFlatBytes = 2560;
  static constexpr std::size_t kBehindPacketMax = 64;
  static constexpr std::uint32_t kGatherBytes = 8 * 1024;
  static constexpr std::uint32_t kGatherPacketMax = 1024;
  static constexpr std::uint32_t kCompanyPacketMax = 4096 + 256;  // a page and a head
  static constexpr int kPartsMax = 3;                // of a packet that is written at once
  static constexpr std::uint32_t kSpareBlocks = 64;  // 512 KB

  TxQueue(EngineCore& core, Upcalls& up, Readiness& readiness);
  TxQueue(const TxQueue&) = delete;
  TxQueue& operator=(const TxQueue&) = delete;

  // Ordinary context: sends must last a handler entry. False: no memory.
  bool refill();
  // Ordinary context: copies of operations that were finished in the handler.
  void free_stale();
  bool headroom() const MPLITE_SIGNAL_SAFE {
    return sends_.free_count() >= kSendsPerPacket &&
           control_blocks_.free_count() >= kSendsPerPacket;
  }

  int send_control(int peer, const iovec* parts, int parts_count) MPLITE_SIGNAL_SAFE;
  int send_control_in_place(int peer, std::uint8_t* packet, std::uint32_t length, const void* data,
                            std::uint32_t bytes);
  int send_behind(int peer, const iovec& packet, FrameKind kind, const void* data,
                  std::uint64_t bytes, SendOp*& op) MPLITE_SIGNAL_SAFE;
  int send(int peer, FrameKind kind, std::uint64_t id, const Memory& data, std::uint64_t bytes,
           SendOp*& op, std::uint64_t from = 0) MPLITE_SIGNAL_SAFE;

  void on_done(SendOp* op, void (*done)(void* arg, int error), void* arg) MPLITE_SIGNAL_SAFE;
  SendOp* find_send(std::uint64_t handle) const MPLITE_SIGNAL_SAFE { return sends_.find(handle); }
  bool keep_copy(SendOp* op);
  void release(SendOp* op) MPLITE_SIGNAL_SAFE;

  void cork(int peer) MPLITE_SIGNAL_SAFE { ++core_.peers[peer].corks; }
  void uncork(int peer) MPLITE_SIGNAL_SAFE {
    if (--core_.peers[peer].corks == 0) flush(peer);
  }
  void set_gather(std::uint32_t packet_max) { gather_max_ = packet_max; }
  void flush_gathered() MPLITE_SIGNAL_SAFE;

  // Writes what the kernel takes: of all that is for the peer; of what is on one connection, and
  // may go there. May lose the peer.
  void flush(int peer) MPLITE_SIGNAL_SAFE;
  void flush(Connection& c) MPLITE_SIGNAL_SAFE;
  // The same of a connection that the kernel takes more of, which had refused.
  void has_room(Connection& c) MPLITE_SIGNAL_SAFE;
  // Of messages to the peer, what the kernel has not taken.
  std::uint64_t queued_bytes(int peer) const;
  // The peer has received the first `frames` of those on its lane that were not acknowledged. May
  // complete them. False: there are not so many.
  bool acknowledge(int peer, int number, std::uint64_t frames) MPLITE_SIGNAL_SAFE;
  // What is on the lane, which is closed, and was not acknowledged goes over another.
  void send_again(int peer, int lane) MPLITE_SIGNAL_SAFE;
  // Of those that are complete when the peer's kernel has them, what has happened since the last
  // look; by who polls, leaves the library, or has nothing to do but to sleep.
  enum class Look : std::uint8_t { kPoll, kLeave, kSleep };
  void look_at_awaited(Look look) MPLITE_SIGNAL_SAFE;
  // Whether the peer, which has received so many bytes of what was sent on the connection and on
  // those before it, can be sent all that follows.
  static bool covers(const Connection& c, std::uint64_t received) MPLITE_SIGNAL_SAFE;
  // What is on its way out leaves over another connection, from that byte on (go_on), or from where
  // the kernel has taken all. False: a completion lost the connection.
  void move(Connection& from, Connection& to) MPLITE_SIGNAL_SAFE;
  bool go_on(Connection& c, std::uint64_t received) MPLITE_SIGNAL_SAFE;
  // Everything queued for the peer completes with `error`.
  void fail_sends(int peer, int error) MPLITE_SIGNAL_SAFE;

 private:
  // 0: frames may be queued for the peer (its connection is up or coming); -errno: it is lost.
  int ensure_connection(int peer) MPLITE_SIGNAL_SAFE {
    return core_.peers[peer].state == PeerState::kUp ? 0 : up_.want_connection(peer);
  }
  // Whether lanes may be of use for so much.
  bool is_long(std::uint64_t bytes) const MPLITE_SIGNAL_SAFE {
    return bytes >= core_.options.long_bytes && core_.options.lanes != 1;
  }
  void enqueue(Peer& p, SendOp* op) MPLITE_SIGNAL_SAFE;
  void write_out(Connection& c) MPLITE_SIGNAL_SAFE;
  void flush_lanes(int peer) MPLITE_SIGNAL_SAFE;
  void limit_unsent(const Peer& p) MPLITE_SIGNAL_SAFE;
  bool begin_flush(Connection& c) MPLITE_SIGNAL_SAFE;
  SendQueue* next_queue(Peer& p, Connection& c) MPLITE_SIGNAL_SAFE;
  int choose_lane(const Peer& p, unsigned but, const Connection* own) MPLITE_SIGNAL_SAFE;
  static Connection* lane_of(const Peer& p, int number) MPLITE_SIGNAL_SAFE;
  void measure_lanes(const Peer& p, bool begins) MPLITE_SIGNAL_SAFE;
  bool takes_next(Peer& p, const Connection& c) MPLITE_SIGNAL_SAFE;
  static bool spreads(const Peer& p) MPLITE_SIGNAL_SAFE {
    return p.lanes != nullptr && p.lanes->spread;
  }
  bool commit_next(Peer& p, Connection& c) MPLITE_SIGNAL_SAFE {
    return commit_next(p, c, spreads(p) ? core_.options.frame_bytes : c.tuning.frames.bytes());
  }
  bool commit_next(Peer& p, Connection& c, std::uint64_t frame_bytes) MPLITE_SIGNAL_SAFE;
  std::uint8_t padding(const Connection& c, const void* payload) const MPLITE_SIGNAL_SAFE;
  static bool has_enough(const Peer& p, const Connection& c) MPLITE_SIGNAL_SAFE;
  std::uint64_t first_write(Connection& c, std::uint64_t offered) MPLITE_SIGNAL_SAFE;
  void note_taken(Connection& c, bool whole, std::uint64_t offered) MPLITE_SIGNAL_SAFE;
  StreamPadding::Writer writer() const MPLITE_SIGNAL_SAFE {
    return core_.mode.background && !core_.mode.in_signal_handler ? StreamPadding::kHelper
                                                                  : StreamPadding::kApplication;
  }
  void count_written(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    core_.counters.bytes_out += bytes;
    padding_.written(writer(), bytes);
  }
  bool idle(const Peer& p) const MPLITE_SIGNAL_SAFE;
  std::int64_t write_control(const Connection& c, const iovec* parts, int parts_count,
                             std::uint32_t length) MPLITE_SIGNAL_SAFE;
  SendOp* queue_behind(int peer, const iovec& packet, FrameKind kind, const void* data,
                       std::uint64_t bytes, std::uint64_t sent) MPLITE_SIGNAL_SAFE;
  int write_behind(Connection& c, const iovec (&whole)[2], std::uint64_t& sent) MPLITE_SIGNAL_SAFE;
  SendOp* unless_done(SendOp* op, int& error) MPLITE_SIGNAL_SAFE;
  int control_written(int peer, const iovec* parts, int parts_count, std::uint64_t length,
                      std::int64_t result) MPLITE_SIGNAL_SAFE;
  int keep_control(int peer, const iovec* parts, int parts_count, std::uint64_t length,
                   std::int64_t sent = -1) MPLITE_SIGNAL_SAFE;
  bool gather(int peer, const FrameHeader& header, const iovec* parts, int parts_count);
  void commit_gathered(Connection& c) MPLITE_SIGNAL_SAFE;
  bool advance(Connection& c, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  void finish(SendOp* op, int error) MPLITE_SIGNAL_SAFE;
  void commit_again(LaneSet& lanes, Connection& c) MPLITE_SIGNAL_SAFE;
  void commit(Connection& c, SendOp* op, std::uint64_t offset, std::uint32_t length,
              const IovCursor& pieces) MPLITE_SIGNAL_SAFE;
  void end_frame(SendOp* op, int error) MPLITE_SIGNAL_SAFE {
    --op->frames;
    if (op->all_committed && op->frames == 0) finish(op, error);
  }
  // tx_kept.cpp. Whether so many bytes, or a frame, can be kept when they have been written: in the
  // handler, where there may be no memory.
  bool can_keep(Connection& c, std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    return !c.tx.kept.on || !core_.mode.in_signal_handler || has_room_for(c, bytes);
  }
  // has_room_for may trim, and so complete operations. False also where these have sent something
  // that has not left, or lost the peer.
  bool is_room_for(const Connection& c, std::uint64_t bytes) const MPLITE_SIGNAL_SAFE;
  bool has_room_for(Connection& c, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  static std::uint64_t bytes_fixed(const ConnectionTx& tx, bool and_more) MPLITE_SIGNAL_SAFE;
  // Whether another frame, of which so many bytes are copied when they have been written, may have
  // its place in the stream; 0: or those that have it may be written. False: the next MPI call goes
  // on.
  bool may_commit(Connection& c, std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    if (can_keep(c, bytes)) [[likely]]
      return true;
    starve(c);
    return false;
  }
  void starve(Connection& c) MPLITE_SIGNAL_SAFE;
  void look_at_awaited(Connection& c, Look look) MPLITE_SIGNAL_SAFE;
  bool copies_now(KeptStream& kept, Look look) const MPLITE_SIGNAL_SAFE;
  void keep_packet(Connection& c, const FrameHeader& header, const iovec* parts,
                   int parts_count) MPLITE_SIGNAL_SAFE;
  void keep_written(Connection& c, const iovec* parts, int parts_count) MPLITE_SIGNAL_SAFE;
  void keep_parts(Connection& c, const iovec* parts, int parts_count,
                  std::uint64_t known) MPLITE_SIGNAL_SAFE;
  bool drop_blocks(KeptStream& kept) MPLITE_SIGNAL_SAFE;
  void ask_acknowledged(Connection& c, std::uint64_t just_sent) MPLITE_SIGNAL_SAFE;
  void keep_frame(Connection& c, const OutFrame& f) MPLITE_SIGNAL_SAFE;
  bool add_block(Connection& c) MPLITE_SIGNAL_SAFE;
  void reserve_spares() MPLITE_SIGNAL_SAFE;
  void forget_kept(Connection& c) MPLITE_SIGNAL_SAFE;
  void fail_kept(Connection& c, int error) MPLITE_SIGNAL_SAFE;
  void end_node(Connection& c, KeptPart* k, int error) MPLITE_SIGNAL_SAFE;
  void give(KeptPart* k) MPLITE_SIGNAL_SAFE;
  bool trim(Connection& c) MPLITE_SIGNAL_SAFE;
  bool end_acknowledged(Connection& c) MPLITE_SIGNAL_SAFE;
  void settle(Connection& c) MPLITE_SIGNAL_SAFE;
  void await(Connection& c) MPLITE_SIGNAL_SAFE;
  void ask_to_be_told(Connection& c) MPLITE_SIGNAL_SAFE;
  void no_longer_told(Connection& c) MPLITE_SIGNAL_SAFE;
  void forget_awaited(Connection& c) MPLITE_SIGNAL_SAFE;
  void copy_awaited(Connection& c) MPLITE_SIGNAL_SAFE;
  bool reserve_blocks(std::uint64_t blocks) MPLITE_SIGNAL_SAFE;
  KeptPart* copy_in_place(KeptStream& kept, KeptPart** link) MPLITE_SIGNAL_SAFE;
  OutFrame as_written(const KeptPart& k, std::uint64_t bytes) const MPLITE_SIGNAL_SAFE;
  static void copy_frame(OutFrame& f, std::uint64_t from, std::uint8_t* to,
                         std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  // tx_again.cpp
  void set_again(ConnectionTx& tx, KeptPart* k, std::uint64_t from) MPLITE_SIGNAL_SAFE;
  void rewind(OutFrame& f, std::uint64_t bytes) const MPLITE_SIGNAL_SAFE;
  bool send_kept_again(Connection& c) MPLITE_SIGNAL_SAFE;
  bool write_again(Connection& c, const iovec* parts, int parts_count,
                   std::uint64_t offered) MPLITE_SIGNAL_SAFE;
  void end_oldest(LaneFrames& frames, int error) MPLITE_SIGNAL_SAFE;
  void fail_frames(LaneFrames& frames, int error) MPLITE_SIGNAL_SAFE;
  void give(SendOp* op) MPLITE_SIGNAL_SAFE;

  EngineCore& core_;
  Upcalls& up_;
  Readiness& readiness_;
  Pool<SendOp> sends_;
  Pool<LaneFrame> lane_frames_;
  Pool<KeptPart> kept_nodes_;
  Pool<KeptBlock, 8> kept_blocks_;
  std::uint32_t spare_blocks_ = kSpareBlocks;  // that the handler should find
  Connection* awaited_ = nullptr;              // those of which somebody waits for acknowledgements
  Connection* awaited_last_ = nullptr;
  Pool<ControlBlock, 8>
      control_blocks_;  // for the handler, where larger control packets cannot go to the heap
  SendOp* stale_ =
      nullptr;  // finished in the handler with a heap copy that only ordinary context may free
  std::uint64_t kept_bytes_ = 0;  // in copies of what the kernel did not take
  StreamPadding padding_;

  // Underway::gathered frames wait to leave together, as they will be on the stream: all of one
  // peer, whose connection is up with nothing queued before them.
  std::uint32_t gather_max_ = 0;  // bytes of a packet; 0: nothing is gathered
  int gathered_peer_ = -1;
  std::uint32_t gathered_bytes_ = 0;
  SendOp* gather_op_ =
      nullptr;  // has the buffer; until the kernel has taken all of it nothing more is gathered
  std::uint8_t gather_buffer_[kGatherBytes];
};

}  // namespace mplite
