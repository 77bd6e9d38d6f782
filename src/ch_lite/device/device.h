// The device of one rank: MPI semantics on top of channel.h. It owns the core and what protocols
// keep, dispatches packets to the protocols, and chooses one for what is sent.
// Driven by the C API (api.cpp) in ordinary context and by the channel's progress callback, perhaps
// in the signal handler. Gate held in all member functions but deliver_active_messages() and the
// counts. Neighbours: core/core.h, what protocols share; protocols/, one file for each.
#pragma once
#include <atomic>
#include <cstdint>

#include "ch_lite/ch_lite.h"
#include "ch_lite/core/core.h"
#include "ch_lite/device/patience.h"
#include "ch_lite/device/report.h"
#include "ch_lite/protocols/active_message.h"
#include "ch_lite/protocols/receive.h"
#include "ch_lite/protocols/rma_target.h"
#include "ch_lite/protocols/short.h"
#include "mplite/tuning/pace.h"
#include "mplite/tuning/streak.h"

namespace ch_lite {

class Device {
 public:
  explicit Device(const DeviceOptions& options) : core_(options), am_(core_), target_(core_) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Allocates, and installs the channel's callbacks (on what channel_bind() chose). False: no
  // memory. Ordinary context.
  bool start();

  // Opens and closes every piece of work on the device: what nested calls put off (attention,
  // arming) is done when the outermost ends.
  class Scope {
   public:
    explicit Scope(Device& device) : device_(device) { ++device_.depth_; }
    ~Scope() {
      if (device_.depth_ == 1) [[likely]]
        device_.settle();
      --device_.depth_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Device& device_;
  };

  // Ordinary context, before it ends: the handler may be next, and lives on what is ready.
  void top_up() {
    if (core_.wants_refill()) refill();
  }
  // The dispatch loop. Perhaps in the handler.
  void progress() MPLITE_SIGNAL_SAFE;
  static constexpr std::uint32_t kProgressPerTick = 256;  // see DeviceHooks::tick
  // Starts connections to the peers for which something was pending, or that were probed for, in
  // this call and the last one: a process that has gone is noticed by its connection only, and
  // neither receives nor probes make one. Ordinary context.
  void reach_awaited_peers();
  void peer_lost(int peer, int error) MPLITE_SIGNAL_SAFE { core_.peer_lost(peer, error); }
  // A process of another job becomes peer number `peer`, see MPID_ChannelSetIntroduce. Both sides
  // give each other the lesser of their windows.
  bool introduce(int peer, std::uint32_t window);
  // Whether the next channel message of the peer has been announced, and has no receive yet.
  bool awaits(int peer) const MPLITE_SIGNAL_SAFE { return !core_.peers[peer].deferred.empty(); }
  // Peers there are numbers for: the job's ranks, then processes of other jobs.
  int peers() const MPLITE_SIGNAL_SAFE { return core_.peers.count(); }
  // Whether a message to a process of another job is not complete. Gate held.
  bool sends_to_other_jobs() const;

  // ---- ordinary context; results are LITE_* ----
  // Whether a message is done with the call that starts it, when there is credit for it. The gate
  // need not be held.
  bool may_leave_at_once(std::uint64_t bytes, int peer) const {
    return is_short(bytes, core_.cutoffs.base()) && peer != core_.self();
  }
  // A short contiguous message, where may_leave_at_once(). LITE_PENDING: there is no credit,
  // nothing was sent.
  int send_plain(const void* data, std::uint64_t bytes, int peer, const MatchKey& key) {
    return ch_lite::send_plain(core_, data, bytes, peer, key);
  }
  // Without `request` (only where may_leave_at_once(), not synchronous): LITE_PENDING, nothing was
  // sent.
  int isend(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key,
            bool synchronous, void* cookie, Request** request);
  int irecv(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key, void* cookie,
            lite_status* status, Request** request) {
    return ch_lite::irecv(core_, memory, bytes, peer, key, cookie, status, request);
  }
  int cancel_receive(Request* request) { return ch_lite::cancel_receive(core_, request); }
  int probe(int peer, const MatchKey& key, lite_status* status, Message** message);
  int receive_detached(Message* message, const Memory& memory, std::uint64_t bytes, void* cookie,
                       lite_status* status, Request** request) {
    return ch_lite::receive_detached(core_, message, memory, bytes, cookie, status, request);
  }
  int am_isend(int peer, std::uint32_t handler, const void* header, std::uint32_t header_bytes,
               const void* data, std::uint64_t data_bytes, void* cookie, Request** request);
  // Of those that had not taken their leave.
  int lost_peers() const { return core_.peers.lost_count(); }
  // LITE_OK, or, of one of those, what a send to it would return, reported as by it.
  int check_lost(int peer) {
    const Peer& p = core_.peers[peer];
    return p.lost != 0 && !p.departed ? core_.report(LITE_ERR_PEER_LOST, peer) : LITE_OK;
  }
  int expose(void* base, std::uint64_t bytes, const int* peers, std::size_t peers_count,
             std::uint64_t* key) {
    return target_.expose(base, bytes, peers, peers_count, key);
  }
  bool is_accessed(std::uint64_t key) const { return target_.is_accessed(key); }
  int withdraw(std::uint64_t key) { return target_.withdraw(key); }
  int put(int peer, std::uint64_t key, std::uint64_t offset, const void* data, std::uint64_t bytes,
          bool answered, void* cookie, Request** request);
  int get(int peer, std::uint64_t key, std::uint64_t offset, void* buffer, std::uint64_t bytes,
          void* cookie, Request** request);
  // Gate held. See lite_am_expect.
  void expect_active_messages(int change) {
    Scope scope(*this);
    messages_expected_ += change;
  }
  // The dispatch loop before deliver_active_messages(), with whose answers those to accesses go.
  void look_before_delivery();
  // Gate NOT held: the callback runs without it. Answers, to accesses too, leave together at the
  // end. Returns how many were delivered.
  std::uint32_t deliver_active_messages();
  // What went wrong, for which no request stands: LITE_ERR_*, to be returned to the application
  // once. LITE_OK: nothing.
  int trouble() const { return core_.trouble.code(); }
  // Reports and forgets it. Gate held.
  int take_trouble() { return core_.take_trouble(); }
  // Active messages that wait for credit, or 0.
  std::uint64_t active_messages_unsent() const { return am_.unsent(); }
  bool active_message_waits(int peer) const { return !core_.peers[peer].am_waiting.empty(); }
  // See RequestTable.
  void hand_over() { core_.requests.hand_over(); }
  Request* next_completion() { return core_.requests.next_completion(); }
  void free_request(Request* r) { core_.requests.free(r); }
  // What the call waits for, see report.h. Gate held, ordinary context.
  std::size_t format_report(const WaitingCall& call, char* text, std::size_t size) {
    return ch_lite::format_report(core_, call, text, size);
  }
  // Leaves the sentence for lite_last_error. Returns `code`.
  int report(int code, int peer, const char* what = nullptr) {
    return core_.report(code, peer, what);
  }

  void set_tag_ignore_bits(std::uint32_t bits) { core_.matcher.set_tag_ignore_bits(bits); }
  void set_member_callback(lite_member_callback callback) { core_.host.member_callback = callback; }
  void set_am_check(lite_am_check check) { core_.host.am_check = check; }
  void set_context_name(lite_context_name name) { core_.host.context_name = name; }
  // What the host has said of members may have changed.
  void forget_permits() { core_.host.permits.clear(); }
  void set_am_callback(lite_am_callback callback, void* arg) { am_.set_callback(callback, arg); }

  // ---- readable without the gate ----
  std::uint32_t completions() const { return core_.requests.completions(); }
  std::uint32_t handed_over() const { return core_.requests.handed_over(); }
  std::uint32_t active_messages() const { return core_.active_arrivals.waiting(); }
  // Goes up with everything that happens: equal values mean an idle poll.
  std::uint64_t events() const { return core_.events(); }

  // As the engine was told last.
  bool is_outstanding() const MPLITE_SIGNAL_SAFE {
    return told_outstanding_.load(std::memory_order_relaxed);
  }

  // Gate held. Whether what is outstanding is more than a few short messages.
  bool is_heavy() const {
    constexpr std::uint64_t kFew = 64;
    return core_.requests.pending_long() > 0 || core_.requests.pending() > kFew ||
           target_.is_exposing() || messages_expected_ > 0;
  }

  // Calls of lite_progress only.
  mplite::Pace& pace() { return pace_; }
  // Calls that the application makes.
  mplite::Streak& streak() { return streak_; }
  // Whether small messages may wait for company: somebody has to see to it that they leave when the
  // application does not come back.
  void set_may_gather(bool may) { may_gather_ = may; }
  bool may_gather() const { return may_gather_; }

  const DeviceOptions& options() const { return core_.options; }
  // The engine's, since start().
  mplite::Gate& gate() const { return core_.gate(); }
  mplite::Counters& counters() const MPLITE_SIGNAL_SAFE { return core_.counters(); }
  // For tests and reports.
  const Blocks& blocks() const { return core_.blocks; }
  const Peer& peer(int rank) const { return core_.peers[rank]; }
  std::uint32_t posted_count() const { return core_.matcher.posted_count(); }
  std::uint32_t unexpected_count() const { return core_.matcher.unexpected_count(); }
  std::uint32_t messages_used() const { return core_.messages.used_count(); }
  std::uint32_t requests_used() const { return core_.requests.used(); }
  std::uint64_t window() const { return core_.peers.window(); }
  std::uint32_t accesses_used() const { return target_.accesses_used(); }

 private:
  // Not inlined: the closure check stops at what is only called outside the handler.
  MPLITE_ORDINARY bool refill();
  MPLITE_ORDINARY void tick();
  bool has_headroom() const MPLITE_SIGNAL_SAFE { return core_.headroom() && target_.headroom(); }
  bool headroom() MPLITE_SIGNAL_SAFE;
  [[gnu::cold]] MPLITE_ORDINARY void tell_starved();
  void act_upon(const void* at, std::size_t bytes, int from) MPLITE_SIGNAL_SAFE;
  void dispatch(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  void settle() MPLITE_SIGNAL_SAFE {
    if (!core_.attention.empty()) [[unlikely]]
      attend_to_all();
    // Whether anything should move while the application computes: pending requests, exposed
    // memory, which peers may access at any time, active messages that may come, and what the host
    // counts as sent but the kernel has not taken yet.
    const bool pending =
        core_.requests.pending() > 0 || target_.is_exposing() || messages_expected_ > 0;
    if (!pending || !is_outstanding())
      told_outstanding_.store(MPID_ChannelSetOutstanding(pending ? 1 : 0) != 0,
                              std::memory_order_relaxed);
  }
  // Not inlined: seldom, and the loop is short without it.
  [[gnu::noinline]] void attend_to_all() MPLITE_SIGNAL_SAFE;
  void attend_to(Peer& peer, std::uint16_t what) MPLITE_SIGNAL_SAFE;
  bool delivery_follows() const MPLITE_SIGNAL_SAFE;
  bool send_answers(int peer) MPLITE_SIGNAL_SAFE;
  void serve_get(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  bool pump_together(int peer) MPLITE_SIGNAL_SAFE;
  class Gathering;

  Core core_;
  // Of every message: before what is large.
  int depth_ = 0;
  std::uint32_t progress_calls_ = 0;           // in ordinary context
  std::uint64_t starved_events_ = UINT64_MAX;  // events() when the application was told of that
  std::atomic<bool> told_outstanding_{false};
  mplite::Pace pace_;
  mplite::Streak streak_;
  bool may_gather_ = false;
  bool progressing_ = false;
  bool dispatching_ = false;      // another packet may follow at once: acks wait to go together
  bool looking_ = false;          // in look_before_delivery()
  bool data_waits_ = false;       // of a get that was served in it
  bool delivering_ = false;       // in deliver_active_messages(): answers are gathered,
  bool delivering_last_ = false;  // but for that to the last one
  int messages_expected_ = 0;
  ActiveMessages am_;
  RmaTarget target_;
  // The packet that is dispatched, if it is not where it was read. Not on the stack: the handler's
  // may be small.
  alignas(16) std::uint8_t packet_[MPID_CONTROL_BYTES_MAX];
};

// The device that the C API works on; beside channel_bind(). The simulation switches between its
// ranks with it.
extern Device* device_current;
void device_bind(Device* device);

// What the host sets before there is a device, taken over by Device::start().
struct HostSettings {
  std::uint32_t tag_ignore_bits = 0;
  lite_member_callback member_callback = nullptr;
  lite_am_check am_check = nullptr;
  lite_context_name context_name = nullptr;
  lite_am_callback am_callback = nullptr;
  void* am_callback_arg = nullptr;
};
extern HostSettings host_settings;

}  // namespace ch_lite
