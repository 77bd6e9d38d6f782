// The channel device of one rank: MPI semantics on top of channel.h.
// Driven by the C API (api.cpp) in ordinary context and by the channel's progress callback, perhaps in the signal handler. Gate held in all
// member functions but deliver_active_messages() and the counts; files: device.cpp (core), short.cpp, eager.cpp, rendezvous.cpp, self.cpp,
// receive.cpp, active_message.cpp, one_sided.cpp.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "../mplite/counters.h"
#include "../mplite/gate.h"
#include "../mplite/growing_table.h"
#include "../mplite/pool.h"
#include "../mplite/signal_safe.h"
#include "blocks.h"
#include "ch_lite.h"
#include "channel.h"
#include "credits.h"
#include "eager_cutoff.h"
#include "matcher.h"
#include "pace.h"
#include "packet.h"
#include "protocol.h"
#include "request.h"
#include "streak.h"

namespace ch_lite {

using mplite::Memory;

// What the device asks of whoever boots it. Each may be null.
struct DeviceHooks {
  // lite_progress found nothing, again: wait a little (yield, sleep). `empty_polls`: how often in a row, from 1. Ordinary context, gate free.
  void (*idle)(void* arg, std::uint32_t empty_polls) = nullptr;
  // The application is in a call again, the first one since lite_host_exit_slow. Ordinary context.
  void (*came_back)(void* arg) = nullptr;
  // An error is about to be returned or reported. peer -1: none. error: an errno or 0. what: a literal or nullptr. Ordinary context.
  void (*report)(void* arg, int code, int peer, int error, const char* what) = nullptr;
  // The peer broke the protocol: drop its connection (the channel's lost callback follows). Signal-safe.
  void (*give_up)(void* arg, int peer, int error) = nullptr;
  // The application leaves with something outstanding (lite_hot.want_arm). Ordinary context, gate free.
  void (*leave)(void* arg) = nullptr;
  // The application leaves by a send and will, as it seems, send again at once: sees to it that gathered messages leave soon even so. False: it cannot. Ordinary context, gate free.
  bool (*guard)(void* arg) = nullptr;
  // Whether polls look at every socket at once: the next look is far away. Ordinary context, gate held.
  void (*look_everywhere)(void* arg, bool on) = nullptr;
  void* arg = nullptr;
};

struct DeviceOptions {
  int rank = 0;
  int size = 1;
  std::uint64_t short_max = 0;            // bytes; 0 turns the protocol off
  std::uint64_t eager_max = 0;            // bytes; 0 off
  bool eager_auto = false;                // eager_max holds only for peers whose round trip is not known yet
  std::uint64_t credits_bytes = 0;        // per peer and lane; see credit_window
  std::uint64_t unexpected_max_bytes = 0;  // of unexpected data, over all peers
  bool thread_multiple = false;
  DeviceHooks hooks{};
};

struct Region;

// A put or get of a peer that moves by transfer, at its target; from the pool, in its region's list until it moves no more.
struct Access {
  Access* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  Device* device = nullptr;
  Region* region = nullptr;
  Access* next = nullptr;  // of the region; then of its peer's answers
  Access* previous = nullptr;
  MPID_TransferId transfer = 0;  // of a put; 0: a get
  MPID_ChannelId channel = 0;
  std::uint64_t bytes = 0;
  std::uint64_t sender = 0;  // the origin's request, for the answer
  int peer = -1;
};

// Memory that peers may read and write; its key is the pool's handle, index and generation.
struct Region {
  Region* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  std::uint8_t* base = nullptr;
  std::uint64_t bytes = 0;
  Access* accesses = nullptr;
};

// Per pair and direction. Small puts keep nothing at the target but what the kernel buffers; other accesses a node each.
inline constexpr std::uint32_t kSmallPutsPerPeer = 256;
inline constexpr std::uint32_t kAccessesPerPeer = 32;

enum Lane { kPointToPoint = 0, kActive = 1 };

// What stands open with one peer. 65,536 of them must be affordable: no buffers in here.
struct Peer {
  Credits credits[2];   // by Lane
  RequestList pending;  // requests that are lost with this peer
  int lost = 0;         // 0, or the errno for which it was given up
  std::uint8_t attention = 0;  // kAttention*
  std::uint8_t in_time = 0;    // messages by rendezvous in a row that found their receive, at most kInTimeEnough
  bool tell_late = false;      // a long one of the peer's did not: said with the next packet
  bool on_attention_list = false;
  bool on_am_list = false;
  bool departed = false;       // lost, which concerns only what is open with just this peer
  // Eager messages of both lanes whose channel receive is not posted, in the order of their envelopes, which is the channel's order.
  Message* deferred_head = nullptr;
  Message* deferred_tail = nullptr;
  // Active messages arrived and not delivered.
  Message* am_head = nullptr;
  Message* am_tail = nullptr;
  Peer* am_next = nullptr;
  // Active messages to send, waiting for credit.
  Request* am_wait_head = nullptr;
  Request* am_wait_tail = nullptr;
  // One-sided, as origin: waiting for their turn; kPut packets not yet acknowledged, in order; how many of these, and of all other accesses under way.
  Request* access_wait_head = nullptr;
  Request* access_wait_tail = nullptr;
  Request* puts_head = nullptr;
  Request* puts_tail = nullptr;
  std::uint32_t puts_out = 0;
  std::uint32_t accesses_out = 0;
  // As target: kPut packets done and not acknowledged; transfers done and not acknowledged; transfers of the peer under way or not acknowledged.
  std::uint32_t puts_done = 0;
  std::uint32_t accesses_in = 0;
  Access* answers = nullptr;
  Peer* attention_next = nullptr;
  const char* broken = nullptr;  // the protocol error, for people
  std::uint32_t eager_max = 0;    // with eager_auto, bytes; 0: not measured yet
  std::uint32_t eager_looks = 0;  // messages until it is measured again

  // Nothing is open, and nothing of it is held here: the number may go to another process.
  bool is_clean() const {
    return pending.head == nullptr && deferred_head == nullptr && am_head == nullptr && am_wait_head == nullptr && access_wait_head == nullptr && puts_head == nullptr && answers == nullptr &&
           accesses_out == 0 && accesses_in == 0 && credits[0].held() == 0 && credits[1].held() == 0 && !on_attention_list && !on_am_list;
  }
};

inline constexpr std::uint8_t kAttentionCredit = 1;    // an explicit CREDIT is due
inline constexpr std::uint8_t kAttentionPump = 2;      // active-message credit came back: send what waits
inline constexpr std::uint8_t kAttentionDeferred = 4;  // channel receives to post
inline constexpr std::uint8_t kAttentionLost = 8;      // fail what is on it
inline constexpr std::uint8_t kAttentionBroken = 16;   // report the protocol error
inline constexpr std::uint8_t kAttentionAnswers = 32;  // puts to acknowledge
inline constexpr std::uint8_t kAttentionAccess = 64;   // puts and gets that waited for their turn

class Device {
 public:
  explicit Device(const DeviceOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Allocates, and installs the channel's callbacks (on what channel_bind() chose). False: no memory. Ordinary context.
  bool start();

  // Opens and closes every piece of work on the device: what nested calls put off (attention, arming) is done when the outermost ends.
  class Scope {
   public:
    explicit Scope(Device& device) : device_(device) { ++device_.depth_; }
    ~Scope() {
      if (device_.depth_ == 1) [[likely]] device_.settle();
      --device_.depth_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Device& device_;
  };

  // Ordinary context, before it ends: the handler may be next, and lives on what is ready.
  void top_up() {
    if (matcher_.wants_growth() || blocks_.wants_refill() || messages_.free_count() < kMessagesReady / 2) refill();
  }
  // The dispatch loop. Perhaps in the handler.
  void progress() MPLITE_SIGNAL_SAFE;
  void peer_lost(int peer, int error) MPLITE_SIGNAL_SAFE;
  // A process of another job becomes peer number `peer`, see MPID_ChannelSetIntroduce. Both sides give each other the lesser of their windows.
  bool introduce(int peer, std::uint32_t window);
  // Peers there are numbers for: the job's ranks, then processes of other jobs.
  int peers() const MPLITE_SIGNAL_SAFE { return static_cast<int>(peer_table_.size()); }
  // The peer sent what no correct peer sends: it is given up. `what`: a literal.
  void protocol_error(int peer, const char* what) MPLITE_SIGNAL_SAFE;

  // ---- ordinary context; results are LITE_* ----
  // Whether a message is done with the call that starts it, when there is credit for it. The gate need not be held.
  bool may_leave_at_once(std::uint64_t bytes, int peer) const { return is_short(bytes, cutoffs_) && peer != options_.rank; }
  // A short contiguous message, where may_leave_at_once(). LITE_PENDING: there is no credit, nothing was sent.
  int send_plain(const void* data, std::uint64_t bytes, int peer, const MatchKey& key);
  // Without `request` (only where may_leave_at_once(), not synchronous): LITE_PENDING, nothing was sent.
  int isend(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, bool synchronous, void* cookie, Request** request);
  int irecv(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, void* cookie, lite_status* status, Request** request);
  int cancel_receive(Request* request);
  int probe(int peer, const MatchKey& key, lite_status* status, Message** message);
  int receive_detached(Message* message, const Memory& memory, std::uint64_t bytes, void* cookie, lite_status* status, Request** request);
  int am_isend(int peer, std::uint32_t handler, const void* header, std::uint32_t header_bytes, const void* data,
               std::uint64_t data_bytes, void* cookie, Request** request);
  // one_sided.cpp
  int expose(void* base, std::uint64_t bytes, std::uint64_t* key);
  int withdraw(std::uint64_t key);
  int put(int peer, std::uint64_t key, std::uint64_t offset, const void* data, std::uint64_t bytes, void* cookie, Request** request);
  int get(int peer, std::uint64_t key, std::uint64_t offset, void* buffer, std::uint64_t bytes, void* cookie, Request** request);
  // Gate NOT held: the callback runs without it. Returns how many were delivered.
  std::uint32_t deliver_active_messages();
  // Who takes completions needs no gate for each: hand_over(), gate held, gives it all there are; what it has freed is what reserve_request() takes first. One thread at a time (the host's lock).
  void hand_over() {
    if (completed_head_ == nullptr) return;
    if (handed_head_ == nullptr) [[likely]]
      handed_head_ = completed_head_;
    else
      handed_tail_->queue_next = completed_head_;
    handed_tail_ = completed_tail_;
    completed_head_ = completed_tail_ = nullptr;
    handed_over_.store(completions(), std::memory_order_relaxed);
    completions_.store(0, std::memory_order_relaxed);
  }
  Request* next_completion() {
    Request* r = handed_head_;
    if (r == nullptr) return nullptr;
    handed_head_ = r->queue_next;
    handed_over_.store(handed_over() - 1, std::memory_order_relaxed);
    r->to(RequestState::kReported);
    return r;
  }
  void free_request(Request* r) {
    r->to(RequestState::kFree);
    r->queue_next = returned_head_;
    returned_head_ = r;
    ++returned_;
  }
  // Leaves the sentence for lite_last_error. Returns `code`.
  MPLITE_ORDINARY int report(int code, int peer, const char* what = nullptr);
  // Active messages that wait for credit, or 0.
  std::uint64_t active_messages_unsent() const { return am_unsent_; }

  void set_tag_ignore_bits(std::uint32_t bits) { matcher_.set_tag_ignore_bits(bits); }
  void set_am_callback(lite_am_callback callback, void* arg) {
    am_callback_ = callback;
    am_callback_arg_ = arg;
  }

  // ---- readable without the gate ----
  std::uint32_t completions() const { return completions_.load(std::memory_order_relaxed) + handed_over(); }
  std::uint32_t handed_over() const { return handed_over_.load(std::memory_order_relaxed); }
  std::uint32_t active_messages() const { return am_waiting_.load(std::memory_order_relaxed); }
  // Goes up with everything that happens: equal values mean an idle poll.
  std::uint64_t events() const { return events_.load(std::memory_order_relaxed); }
  std::uint32_t note_poll(bool empty) { return empty_polls_ = empty ? empty_polls_ + 1 : 0; }

  // As the engine was told last.
  bool is_outstanding() const MPLITE_SIGNAL_SAFE { return told_outstanding_.load(std::memory_order_relaxed); }

  // Calls of lite_progress only.
  Pace& pace() { return pace_; }
  // Calls that the application makes.
  Streak& streak() { return streak_; }
  // Whether small messages may wait for company: somebody has to see to it that they leave when the application does not come back.
  void set_may_gather(bool may) { may_gather_ = may; }
  bool may_gather() const { return may_gather_; }

  const DeviceOptions& options() const { return options_; }
  // The engine's, since start().
  mplite::Gate& gate() const { return *gate_; }
  mplite::Counters& counters() const MPLITE_SIGNAL_SAFE { return *counters_; }
  // For tests and reports.
  const Blocks& blocks() const { return blocks_; }
  std::uint64_t last_eager_cutoff() const { return eager_cutoff_; }
  const Peer& peer(int rank) const { return peers_[rank]; }
  std::uint32_t posted_count() const { return matcher_.posted_count(); }
  std::uint32_t unexpected_count() const { return matcher_.unexpected_count(); }
  std::uint32_t messages_used() const { return messages_.used_count(); }
  std::uint32_t requests_used() const { return requests_.used_count() - returned_; }
  std::uint64_t window() const { return window_; }
  std::uint32_t accesses_used() const { return accesses_.used_count(); }

 private:
  // Free message nodes that ordinary context leaves for the handler: as many messages may arrive unexpected between two MPI calls.
  static constexpr std::uint32_t kMessagesReady = 512;

  // ---- device.cpp: core ----
  // Not inlined: the closure check stops at what is only called outside the handler.
  MPLITE_ORDINARY bool refill();
  // Nodes that ordinary context leaves for the handler while memory is exposed: what all peers may have under way, in a job of up to 128.
  std::uint32_t accesses_ready() const MPLITE_SIGNAL_SAFE {
    return peers() < 128 ? kAccessesPerPeer * static_cast<std::uint32_t>(peers()) : kAccessesPerPeer * 128;
  }
  bool headroom() MPLITE_SIGNAL_SAFE;
  void act_upon(const void* at, std::size_t bytes, int from) MPLITE_SIGNAL_SAFE;
  void dispatch(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void settle() MPLITE_SIGNAL_SAFE {
    if (attention_head_ != nullptr) [[unlikely]] attend_to_all();
    // Whether anything should move while the application computes: pending requests, exposed memory, which peers may access at any time, and what the host counts as sent but the kernel has not
    // taken yet.
    const bool pending = outstanding_ > 0 || regions_.used_count() > 0;
    if (!pending || !is_outstanding()) told_outstanding_.store(MPID_ChannelSetOutstanding(pending ? 1 : 0) != 0, std::memory_order_relaxed);
  }
  void attend_to_all() MPLITE_SIGNAL_SAFE;
  void attend(Peer& peer, std::uint8_t what) MPLITE_SIGNAL_SAFE;
  void fail_peer(int peer) MPLITE_SIGNAL_SAFE;
  void fail_request(Request* request, int lost) MPLITE_SIGNAL_SAFE;
  void fail_list(RequestList& list, int lost) MPLITE_SIGNAL_SAFE;
  void drop_message(Message* message) MPLITE_SIGNAL_SAFE;
  void drop_deferred(Peer& peer, int lost) MPLITE_SIGNAL_SAFE;
  int index_of(const Peer& peer) const MPLITE_SIGNAL_SAFE { return static_cast<int>(&peer - peers_); }
  // Fills in the credit owed and sends. 0 or -errno, after which nothing left.
  int send_control(int peer, PacketHeader* packet, int bytes, const void* data = nullptr, int data_bytes = 0) MPLITE_SIGNAL_SAFE;
  // What every packet says besides is filled in, and taken back if it did not leave (send() < 0).
  template <typename Send>
  int send_packet(int peer, PacketHeader* packet, Send send) MPLITE_SIGNAL_SAFE {
    Peer& p = peers_[peer];
    if (p.lost != 0) [[unlikely]] return -p.lost;
    packet->credit = p.credits[kPointToPoint].take_owed();
    packet->am_credit = p.credits[kActive].take_owed();
    const std::uint8_t flags = packet->flags;
    if (p.tell_late) [[unlikely]] packet->flags |= kPacketLate;
    int result = send();
    if (result == -ENOBUFS && MPID_ChannelInHandler() == 0 && MPID_ChannelRefill() == 0) result = send();
    if (result >= 0) [[likely]] {
      p.tell_late = false;
      return 0;
    }
    packet->flags = flags;
    p.credits[kPointToPoint].put_back(packet->credit);
    p.credits[kActive].put_back(packet->am_credit);
    return result;
  }
  void release_credit(int peer, Lane lane, std::uint64_t charge) MPLITE_SIGNAL_SAFE;

  // Requests: taken in ordinary context, by calls that the host serialises with those that take completions, and completed anywhere. A reserved one has a handle and nothing else; unreserve()
  // takes it back.
  Request* reserve_request();
  void unreserve(Request* request) { requests_.give(request); }
  void start_request(Request* request, RequestKind kind, RequestState state, int peer, const Memory& memory, std::uint64_t bytes,
                     void* cookie);
  void move_to_list(Request* request, RequestList* list) MPLITE_SIGNAL_SAFE;
  void complete(Request* request, int error) MPLITE_SIGNAL_SAFE;
  // Sends: what comes after the channel has taken the buffer, by the operation `id` (0: it has already).
  void watch_send(Request* request, MPID_ChannelId id) MPLITE_SIGNAL_SAFE;
  static void on_sent(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;
  // Pending sends by the handle that a peer echoes; nullptr (and a protocol error) when it is not one of that peer's.
  Request* echoed(std::uint64_t handle, int from) MPLITE_SIGNAL_SAFE;

  Message* new_message(int peer, const Packet& packet, MessageState state, Lane lane, std::uint64_t charge) MPLITE_SIGNAL_SAFE;
  void free_message(Message* message) MPLITE_SIGNAL_SAFE;
  void count_unexpected(Peer& from, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  // For a message of `bytes` to the peer: by the knobs, by what is known of it and, with eager_auto, by its round trip, at which this looks when that is due.
  Cutoffs cutoffs_for(int peer, std::uint64_t bytes);
  // The same as they stand.
  Cutoffs cutoffs_of(const Peer& p) const MPLITE_SIGNAL_SAFE;
  void measure_eager_cutoff(Peer& p, int peer);
  // A block for arriving data: from the heap too when the context allows it.
  Block obtain_block(std::uint64_t bytes) MPLITE_SIGNAL_SAFE;

  // ---- receive.cpp ----
  void matched(Request* receive, const MatchKey& envelope, int peer, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  void finish_receive(Request* receive) MPLITE_SIGNAL_SAFE;
  void fill_status(lite_status* status, const MatchKey& envelope, int peer, std::uint64_t bytes, std::uint64_t room) MPLITE_SIGNAL_SAFE;
  int receive_message(Message* message, const Memory& memory, std::uint64_t bytes, void* cookie, lite_status* status, Request** request);
  void send_ack(int peer, std::uint64_t sender) MPLITE_SIGNAL_SAFE;
  int lost_source(int peer) const;
  Request* match(const MatchKey& envelope) MPLITE_SIGNAL_SAFE { return static_cast<Request*>(matcher_.match_posted(envelope)); }

  // ---- short.cpp ----
  int send_short(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, bool synchronous, void* cookie, Request** request);
  // `result`: -errno of the send, or 0: there was no memory for a request.
  [[gnu::noinline]] int send_short_failed(int peer, std::uint64_t bytes, Request* request, int result);
  // `sender`: 0, or a request that an ack is to complete.
  int send_beside(int peer, const MatchKey& key, std::uint64_t sender, const void* data, std::uint64_t bytes);
  [[gnu::noinline]] int send_packed(int peer, const MatchKey& key, std::uint64_t sender, const Memory& memory, std::uint64_t bytes);
  bool take_awaited(const void* at, std::size_t bytes, int from) MPLITE_SIGNAL_SAFE;
  void handle_short(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void handle_ack(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;

  // ---- eager.cpp ----
  int send_eager(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, bool synchronous, void* cookie, Request** request);
  int send_channel_behind(int peer, PacketHeader* packet, int packet_bytes, const Memory& memory, std::uint64_t bytes,
                          MPID_ChannelId* id) MPLITE_SIGNAL_SAFE;
  void handle_eager(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void arrive_by_channel(Message* message) MPLITE_SIGNAL_SAFE;
  bool post_channel_receive(Request* receive) MPLITE_SIGNAL_SAFE;
  bool post_channel_block(Message* message) MPLITE_SIGNAL_SAFE;
  void defer(Message* message) MPLITE_SIGNAL_SAFE;
  bool serve_deferred(Peer& peer) MPLITE_SIGNAL_SAFE;
  void end_channel_receive(Request* receive, bool arrived) MPLITE_SIGNAL_SAFE;
  void move_arriving(Message* message, Request* receive);
  static void on_channel_received(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;
  static void on_block_received(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;

  // ---- rendezvous.cpp ----
  int send_rendezvous(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, std::uint64_t fragment, void* cookie, Request** request);
  static void on_fragment_sent(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;
  void handle_rts(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void handle_cts(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void accept_offer(Request* receive, std::uint64_t sender, bool again = false) MPLITE_SIGNAL_SAFE;
  bool throw_fragment_away(Message* message) MPLITE_SIGNAL_SAFE;
  // Whether the receive, matched by an RTS, takes more than what comes with that. Not by its status: a loss has put 0 there.
  static bool wants_rest(const Request& r) MPLITE_SIGNAL_SAFE { return r.fragment == 0 || std::min(r.incoming, r.bytes) > r.fragment; }
  void end_fragment(Request* receive, bool arrived) MPLITE_SIGNAL_SAFE;
  void fail_transfer(Request* receive) MPLITE_SIGNAL_SAFE;
  int send_cts(int peer, std::uint64_t sender, MPID_TransferId transfer, std::uint64_t accepted, bool again = false) MPLITE_SIGNAL_SAFE;
  static void on_transfer_received(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;

  // ---- active_message.cpp ----
  struct AmSend {
    std::uint32_t handler;
    std::uint32_t header_bytes;
    const void* header;
    const void* data;
    std::uint64_t data_bytes;
  };
  int am_send_now(int peer, const Choice& choice, const AmSend& message, std::uint64_t sender, MPID_ChannelId* id) MPLITE_SIGNAL_SAFE;
  int am_wait(int peer, const AmSend& message, void* cookie, Request** request);
  bool pump_active_messages(int peer) MPLITE_SIGNAL_SAFE;
  void drop_unsent(Peer& peer, int lost) MPLITE_SIGNAL_SAFE;
  void handle_am(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void am_append(Message* message) MPLITE_SIGNAL_SAFE;
  void am_remove(Message* message) MPLITE_SIGNAL_SAFE;
  bool am_grow_block(Message* message, bool beyond_bound) MPLITE_SIGNAL_SAFE;
  void am_start_transfer(Message* message);
  void am_list(Peer& peer) MPLITE_SIGNAL_SAFE;
  Message* am_next_ready();
  static void on_am_transfer(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;

  // ---- self.cpp ----
  int send_self(const Memory& memory, std::uint64_t bytes, const MatchKey& key, bool synchronous, void* cookie, Request** request);
  int am_send_self(const AmSend& message);

  // ---- one_sided.cpp ----
  int start_access(RequestKind kind, int peer, std::uint64_t key, std::uint64_t offset, const void* buffer, std::uint64_t bytes, void* cookie,
                   Request** request);
  bool small(std::uint64_t bytes) const MPLITE_SIGNAL_SAFE;
  bool room_to_say() MPLITE_SIGNAL_SAFE;
  bool pump_accesses(int peer) MPLITE_SIGNAL_SAFE;
  void issue_access(Request* request) MPLITE_SIGNAL_SAFE;
  void drop_accesses(Peer& peer) MPLITE_SIGNAL_SAFE;
  Region* accessible(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  Access* begin_access(Region* region, const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void leave_region(Access* access) MPLITE_SIGNAL_SAFE;
  void free_access(Access* access) MPLITE_SIGNAL_SAFE;
  bool send_answers(int peer) MPLITE_SIGNAL_SAFE;
  void handle_put(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void handle_put_request(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void handle_get(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void handle_get_transfer(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void handle_put_ack(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void handle_get_data(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  static void on_get_received(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;
  static void on_put_arrived(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;
  static void on_get_sent(void* arg, std::int64_t result) MPLITE_SIGNAL_SAFE;

  void happened() MPLITE_SIGNAL_SAFE {
    events_.store(events_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    LITE_HOT_SET(skip, 0);
  }

  DeviceOptions options_;
  mplite::Gate* gate_ = nullptr;
  mplite::Counters* counters_ = nullptr;
  Cutoffs cutoffs_;
  std::uint64_t copy_ns_per_mb_ = 0;  // with eager_auto; 0: not measured yet
  std::uint64_t eager_cutoff_;        // the one that was measured last, or all peers'
  std::uint64_t window_;
  Matcher matcher_;
  Blocks blocks_;
  mplite::Pool<Request> requests_;
  mplite::Pool<Message> messages_;
  mplite::Pool<Region, 16> regions_;
  mplite::Pool<Access> accesses_;
  Peer* peers_ = nullptr;  // of peer_table_, which does not move
  mplite::GrowingTable<Peer> peer_table_;
  RequestList any_source_;
  Peer* attention_head_ = nullptr;
  Peer* am_peers_head_ = nullptr;  // peers with undelivered active messages, served in turn
  Peer* am_peers_tail_ = nullptr;
  Request* completed_head_ = nullptr;
  Request* completed_tail_ = nullptr;
  // Of who takes completions, without the gate: to be taken; freed, and not back in the pool.
  Request* handed_head_ = nullptr;
  Request* handed_tail_ = nullptr;  // while there is a head
  Request* returned_head_ = nullptr;
  std::uint32_t returned_ = 0;
  lite_am_callback am_callback_ = nullptr;
  void* am_callback_arg_ = nullptr;
  std::atomic<std::uint64_t> events_{0};
  std::atomic<std::uint32_t> completions_{0};  // on the queue of the completed
  std::atomic<std::uint32_t> handed_over_{0};
  std::atomic<std::uint32_t> am_waiting_{0};
  std::uint64_t outstanding_ = 0;  // pending requests: what should move while the application computes
  std::uint64_t am_unsent_ = 0;
  std::uint32_t am_peers_ = 0;  // on that list
  std::uint32_t empty_polls_ = 0;
  int lost_peers_ = 0;
  int depth_ = 0;
  std::atomic<bool> told_outstanding_{false};
  Pace pace_;
  Streak streak_;
  bool may_gather_ = false;
  bool progressing_ = false;
  bool dispatching_ = false;  // another packet may follow at once: acks wait to go together
  bool delivering_ = false;
  // Not on the stack: the handler's may be small.
  alignas(16) std::uint8_t packet_[MPID_CONTROL_BYTES_MAX];  // being dispatched, if it is not where it was read
  alignas(16) std::uint8_t am_packet_[sizeof(AmPacket) + LITE_AM_HEADER_MAX];  // being sent
};

// The device that the C API works on; beside channel_bind(). The simulation switches between its ranks with it.
extern Device* device_current;
void device_bind(Device* device);

// What the host sets before there is a device, taken over by Device::start().
struct HostSettings {
  std::uint32_t tag_ignore_bits = 0;
  lite_am_callback am_callback = nullptr;
  void* am_callback_arg = nullptr;
};
extern HostSettings host_settings;

}  // namespace ch_lite
