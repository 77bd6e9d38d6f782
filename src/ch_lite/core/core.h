// The core of the device: its parts, and what all protocols share: sending a packet with the credit
// that is owed, completing a request, keeping a message, giving up a peer.
// Each protocol file gets it by reference; Device owns it. It knows no protocol. Gate held in all
// member functions, perhaps in the handler, unless marked.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "ch_lite/ch_lite.h"
#include "ch_lite/channel/channel.h"
#include "ch_lite/core/active_arrivals.h"
#include "ch_lite/core/blocks.h"
#include "ch_lite/core/cutoffs.h"
#include "ch_lite/core/device_trace.h"
#include "ch_lite/core/matcher.h"
#include "ch_lite/core/options.h"
#include "ch_lite/core/packet.h"
#include "ch_lite/core/peer_table.h"
#include "ch_lite/core/permits.h"
#include "ch_lite/core/request.h"
#include "ch_lite/core/request_table.h"
#include "ch_lite/core/trouble.h"
#include "mplite/base/pool.h"
#include "mplite/base/signal_safe.h"
#include "mplite/engine/gate.h"
#include "mplite/observe/counters.h"

// Defined in core.cpp. Used within one library or program only, so no access goes through its
// global offset table.
extern "C" [[gnu::visibility("hidden")]] lite_hot_state lite_hot;

namespace ch_lite {

using mplite::Memory;

// What the host has said about processes of other jobs, and how it is asked.
struct HostKnowledge {
  lite_member_callback member_callback = nullptr;
  lite_am_check am_check = nullptr;
  lite_context_name context_name = nullptr;
  Permits permits;
};

// What a probe has looked for in vain.
struct Sought {
  int peer = -1;
  MatchKey key{};
};

class Core {
 public:
  explicit Core(const DeviceOptions& given);
  // Requests and messages go with their pools; blocks that unreceived messages still hold are given
  // back first.
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Allocates. False: no memory. Ordinary context.
  bool start();
  // Tops up what the handler lives on. False: not even the least is there. Ordinary context.
  bool refill() {
    matcher.grow();
    const bool more_messages = messages.reserve(kMessagesReady);
    const bool more_blocks = blocks.refill();
    return MPID_ChannelRefill() == 0 && (more_messages || messages.free_count() > 0) && more_blocks;
  }
  bool wants_refill() const {
    return matcher.wants_growth() || blocks.wants_refill() ||
           messages.free_count() < kMessagesReady / 2;
  }
  // Whether whatever message comes next can be kept: one node, one block for what a packet can
  // carry, one answer.
  bool headroom() const MPLITE_SIGNAL_SAFE {
    return messages.free_count() > 0 && blocks.ready(kPacketDataMax) &&
           (!blocks.over_bound() || MPID_ChannelInHandler() == 0) && MPID_ChannelHeadroom() != 0;
  }

  // The engine's, since start().
  mplite::Gate& gate() const { return *gate_; }
  mplite::Counters& counters() const MPLITE_SIGNAL_SAFE { return *counters_; }
  // Goes up with everything that happens: equal values mean an idle poll. Readable without the
  // gate.
  std::uint64_t events() const { return events_.load(std::memory_order_relaxed); }
  void bump_events() MPLITE_SIGNAL_SAFE {
    events_.store(events_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    LITE_HOT_SET(skip, 0);
  }
  int self() const MPLITE_SIGNAL_SAFE { return options.rank; }
  bool is_own_job(int peer) const MPLITE_SIGNAL_SAFE { return peer < options.size; }

  // ---- peers ----
  // Put off to the end of the outermost piece of work. reasons: kAttention*.
  void attend(Peer& peer, std::uint16_t reasons) MPLITE_SIGNAL_SAFE {
    attention.add(peer, reasons);
  }
  // The same of what has just been tried in vain, for want of memory or nodes.
  void attend_starved(Peer& peer, std::uint16_t reasons) MPLITE_SIGNAL_SAFE {
    attend(peer, reasons);
    MPID_ChannelStarved();
  }
  void peer_lost(int peer, int error) MPLITE_SIGNAL_SAFE;
  // The peer sent what no correct peer sends: it is given up. `what`: a literal.
  void protocol_error(int peer, const char* what) MPLITE_SIGNAL_SAFE;
  // Has the engine drop its connection, if it has not yet.
  void give_up(int peer, int error) MPLITE_SIGNAL_SAFE {
    if (options.hooks.give_up != nullptr) options.hooks.give_up(options.hooks.arg, peer, error);
  }
  // Leaves the sentence for lite_last_error. Returns `code`.
  MPLITE_ORDINARY int report(int code, int peer, const char* what = nullptr);
  // Reports the trouble and forgets it.
  MPLITE_ORDINARY int take_trouble();

  // ---- packets and credit ----
  // Fills in the credit owed and sends. 0 or -errno, after which nothing left.
  int send_control(int peer, PacketHeader* packet, int bytes, const void* data = nullptr,
                   int data_bytes = 0) MPLITE_SIGNAL_SAFE;
  // What every packet says besides is filled in, and taken back if it did not leave (send() < 0).
  template <typename Send>
  int send_packet(int peer, PacketHeader* packet, Send send) MPLITE_SIGNAL_SAFE;
  // An answer, for which there was headroom: when it cannot be sent, the peer is lost. It must not
  // be forgotten quietly.
  int send_answer(int peer, PacketHeader* packet, int bytes, const void* data = nullptr,
                  int data_bytes = 0) MPLITE_SIGNAL_SAFE;
  // Whether the engine's pools bear one more packet; in ordinary context they are topped up.
  bool room_to_send() MPLITE_SIGNAL_SAFE;
  void release_credit(int peer, TrafficClass traffic, std::uint64_t charge) MPLITE_SIGNAL_SAFE;

  // ---- requests ----
  void start_request(Request* request, RequestKind kind, RequestState state, int peer,
                     const Memory& memory, std::uint64_t bytes, void* cookie);
  void complete(Request* request, int error) MPLITE_SIGNAL_SAFE;
  // Sends: what comes after the channel has taken the buffer, by the operation `id` (0: it has
  // already). May complete the request at once.
  void watch_send(Request* request, MPID_ChannelId id) MPLITE_SIGNAL_SAFE;
  // Pending sends by the handle that a peer echoes; nullptr (and a protocol error) when it is not
  // one of that peer's.
  Request* echoed(std::uint64_t handle, int from) MPLITE_SIGNAL_SAFE;
  // The posted receive for a message, which is withdrawn.
  Request* match(const MatchKey& envelope) MPLITE_SIGNAL_SAFE {
    return static_cast<Request*>(matcher.match_posted(envelope));
  }

  // ---- messages ----
  Message* new_message(int peer, const Packet& packet, MessageState state, TrafficClass traffic,
                       std::uint64_t charge) MPLITE_SIGNAL_SAFE;
  void free_message(Message* message) MPLITE_SIGNAL_SAFE;
  void count_unexpected(Peer& from, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  // Unverified: the host has not been asked yet whether its sender may send it.
  void leave_unverified(Message* message) MPLITE_SIGNAL_SAFE {
    Peer& p = peers[message->peer];
    message->unverified = true;
    p.unverified.push(message);
    if (p.unasked == nullptr && MPID_ChannelInHandler() != 0) p.unasked = message;
  }
  void end_unverified(Message* message) MPLITE_SIGNAL_SAFE {
    Peer& p = peers[message->peer];
    if (p.unasked == message) p.unasked = message->queue_next;
    p.unverified.remove(message);
    message->unverified = false;
  }
  // An offer of a process of another job, until it is freed.
  void count_offer(Message* message) MPLITE_SIGNAL_SAFE {
    message->offer = true;
    ++peers[message->peer].offers;
  }
  // A block for data that can wait, at its sender or (kPacket) in the socket: from the heap too
  // when the context allows it. No data: not now.
  Block obtain_block(std::uint64_t bytes, BlockUse use = BlockUse::kBounded) MPLITE_SIGNAL_SAFE;
  // For what a packet brought that has been taken with headroom(): always there.
  Block obtain_packet_block(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    return MPID_ChannelInHandler() == 0 ? blocks.take_or_allocate(bytes, BlockUse::kPacket)
                                        : blocks.take(bytes);
  }

  // ---- parts ----
 private:
  // Of every message: they share a cache line with what stands first among the requests.
  mplite::Gate* gate_ = nullptr;
  mplite::Counters* counters_ = nullptr;
  std::atomic<std::uint64_t> events_{0};

 public:
  RequestTable requests;
  DeviceOptions options;
  PeerCutoffs cutoffs;
  PeerTable peers;
  AttentionQueue attention;
  Matcher matcher;
  Blocks blocks;
  mplite::Pool<Message> messages;
  ActiveArrivals active_arrivals;
  HostKnowledge host;
  Sought sought;  // by the last such probe
  // Messages of fewer bytes may be taken the short way (take_awaited).
  std::uint64_t sole_posted_end;
  MessageTrace trace;
  Trouble trouble;

 private:
  // Free message nodes that ordinary context leaves for the handler: as many messages may arrive
  // unexpected between two MPI calls.
  static constexpr std::uint32_t kMessagesReady = 512;

  template <typename Send>
  [[gnu::cold, gnu::noinline]] int send_traced(int peer, const PacketHeader* packet,
                                               Send send) MPLITE_SIGNAL_SAFE {
    const std::int64_t time_ns = mplite::trace_now_ns();
    const int result = send();
    if (result >= 0) trace.packet_left(packet, peer, time_ns);
    return result;
  }
  static void on_sent(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;
};

template <typename Send>
int Core::send_packet(int peer, PacketHeader* packet, Send send) {
  Peer& p = peers[peer];
  if (p.lost != 0) [[unlikely]]
    return -p.lost;
  packet->credit = p.credits[kPointToPoint].take_owed();
  packet->am_credit = p.credits[kActive].take_owed();
  const std::uint8_t flags = packet->flags;
  if (p.tell_late) [[unlikely]]
    packet->flags |= kPacketLate;
  int result = MessageTrace::on() ? send_traced(peer, packet, send) : send();
  if (result == -ENOBUFS && MPID_ChannelInHandler() == 0 && MPID_ChannelRefill() == 0)
    result = MessageTrace::on() ? send_traced(peer, packet, send) : send();
  if (result >= 0) [[likely]] {
    p.tell_late = false;
    return 0;
  }
  packet->flags = flags;
  p.credits[kPointToPoint].put_back(packet->credit);
  p.credits[kActive].put_back(packet->am_credit);
  return result;
}

}  // namespace ch_lite
