// The engine: moves frames between this process and its peers over stream connections.
// A facade: what callers may ask, and the parts that do it. Used by messages.cpp (MP_*), by
// ch_lite/channel and by progress. Knows no MPI and no matching.
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/engine/acceptor.h"
#include "mplite/engine/callers.h"
#include "mplite/engine/connector.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/handshaker.h"
#include "mplite/engine/lanes.h"
#include "mplite/engine/listener.h"
#include "mplite/engine/peer_report.h"
#include "mplite/engine/poller.h"
#include "mplite/engine/ports.h"
#include "mplite/engine/readiness.h"
#include "mplite/engine/remote_jobs.h"
#include "mplite/engine/rx_stream.h"
#include "mplite/engine/socket_signals.h"
#include "mplite/engine/tx_queue.h"
#include "mplite/engine/upcalls.h"
#include "mplite/net/frame.h"
#include "mplite/net/process_name.h"

namespace mplite {

class BoundedText;

class Engine {
 public:
  Engine(Net& net, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Ordinary context, once, before traffic. Returns 0 or -errno.
  int start();
  void set_sink(FrameKind kind, const Sink& sink) { rx_.set_sink(kind, sink); }
  void set_lost(LostCallback lost, void* self) { connector_.set_lost(lost, self); }
  void set_introduce(IntroduceCallback introduce, void* self) {
    remote_.set_introduce(introduce, self);
  }
  // The credit that the layer above gives to a process of another job, bytes: part of our name.
  void set_window(std::uint32_t window) { remote_.set_window(window); }

  Gate& gate() { return core_.gate; }
  Counters& counters() { return core_.counters; }
  Net& net() { return core_.net; }
  int rank() const { return core_.options.rank; }
  int size() const { return core_.options.size; }
  // Peers there are numbers for: the job's ranks, then processes of other jobs.
  int peers() const { return core_.peer_count; }

  static constexpr std::size_t kRemoteMax =
      RemoteJobs::kProcessesMax;  // processes of other jobs at a time

  // ---- all below: gate held ----

  // How progress is made from now on: ProgressScope sets it for a while. A budget and a pass over
  // all sockets begin anew.
  const ProgressMode& mode() const MPLITE_SIGNAL_SAFE { return core_.mode; }
  void set_mode(const ProgressMode& mode) MPLITE_SIGNAL_SAFE {
    core_.mode = mode;
    core_.packets = ProgressMode::kPacketsMax;
    if (mode.poll_all_sockets && !mode.callers_only) core_.more_to_do = false;
    if (mode.poll_all_sockets && !mode.in_signal_handler) reattach();
  }
  // Of one handler entry.
  ProgressMode handler_mode() const MPLITE_SIGNAL_SAFE {
    return ProgressMode::signal_handler(core_.options.handler_budget_bytes);
  }
  // In the handler nothing may be allocated. The helper thread may allocate.
  bool async() const MPLITE_SIGNAL_SAFE { return core_.mode.in_signal_handler; }
  // Every poll() looks at all sockets.
  bool exhaustive() const MPLITE_SIGNAL_SAFE { return core_.mode.poll_all_sockets; }
  // Another packet of this pass has been dealt with.
  void spend_packet() MPLITE_SIGNAL_SAFE { core_.packets -= core_.packets > 0 ? 1 : 0; }
  // Where all sockets are looked at: whether this pass may look at them once more. False: only what
  // has been read belongs to it.
  bool may_look_again() MPLITE_SIGNAL_SAFE {
    if (core_.packets > 0) return true;
    core_.more_to_do = true;
    return false;
  }
  // True when the last pass over all sockets ended at its bound, so that there may be data of which
  // no signal tells again.
  bool more_to_do() const MPLITE_SIGNAL_SAFE { return core_.more_to_do; }
  void random(void* bytes, std::size_t count) { core_.net.random(bytes, count); }

  // Whoever polls next waits for what comes: at a connection that is detached from epoll, that poll
  // looks up to so many times again before it says that there is nothing. Of connections whose last
  // message was a small one, or one that is looked for without a read (nothing_came). Ordinary
  // context, gate held or not: who polls there is one thread at a time.
  void set_repolls(int times) { poller_.set_repolls(times); }
  // Ordinary context: tops up the pools that the handler lives on, prints what it could only note.
  // False: out of memory.
  MPLITE_ORDINARY bool refill();
  // Whether the pools hold enough for one more control packet to be acted upon (at most
  // kSendsPerPacket sends).
  bool headroom() const MPLITE_SIGNAL_SAFE { return tx_.headroom(); }
  static constexpr std::uint32_t kSendsPerPacket = TxQueue::kSendsPerPacket;
  // The handler has left something in a socket, or put it off, for want of memory or nodes that
  // ordinary context can have. No signal will come for it: whoever sees this clears it and polls
  // all sockets in ordinary context (ProgressState::poll_all). Without memory there, too, nobody
  // tries again before the next signal or call. Gate held, but for is_starved().
  bool is_starved() const MPLITE_SIGNAL_SAFE {
    return core_.starved.load(std::memory_order_relaxed);
  }
  void note_starved() MPLITE_SIGNAL_SAFE { core_.note_starved(); }
  void clear_starved() { core_.starved.store(false, std::memory_order_relaxed); }

  // Moves what can be moved without waiting: reads, writes, accepts, connects, times out. Returns
  // the number of things that moved.
  int poll() MPLITE_SIGNAL_SAFE { return poller_.poll(); }
  // poll() that looks at every socket, for the handler and after a wait.
  int poll_all() MPLITE_SIGNAL_SAFE { return poller_.poll_all(); }
  // Sleeps until a socket is ready or timeout_ns passes; lets go of the gate while it sleeps. Then
  // polls. Ordinary context.
  int wait(std::int64_t timeout_ns) { return poller_.wait(timeout_ns); }
  // The wait ahead is for this peer: its socket is looked at first.
  void prefer(int peer) MPLITE_SIGNAL_SAFE;

  // Control packets. control_ready looks at what has been read, without a system call; view_control
  // consumes the packet and returns its length, or 0 when there is none. It stays where it was
  // read, at *packet, until the next call of control_ready, view_control or poll. take_control
  // copies at most `size` bytes of it.
  bool control_ready() MPLITE_SIGNAL_SAFE {
    rx_.parse_rest();
    return rx_.has_control();
  }
  std::uint32_t view_control(const std::uint8_t** packet, int& from) MPLITE_SIGNAL_SAFE {
    return rx_.view_control(packet, from);
  }
  // All of that in one, for who waits: control_ready, else poll, then view_control. `alone`:
  // nothing else has been read, and no look at all is due.
  std::uint32_t next_control(const std::uint8_t** packet, int& from,
                             bool& alone) MPLITE_SIGNAL_SAFE {
    if (!control_ready()) {
      if (poller_.may_read_one()) {
        if (const std::uint32_t length = poller_.read_one(packet); length != 0) {
          from = readiness_.detached()->peer;
          alone = true;
          return length;
        }
      } else {
        poll();
      }
    }
    return view_control(packet, from);
  }
  std::uint32_t take_control(void* packet, std::uint32_t size, int& from) MPLITE_SIGNAL_SAFE {
    return rx_.take_control(packet, size, from);
  }

  // Sends one control packet made of `parts`; copies what the kernel does not take. 0;
  // -EHOSTUNREACH and kin when the peer is lost; -ENOBUFS when async and a pool is empty (never
  // after headroom()).
  int send_control(int peer, const iovec* parts, int parts_count) MPLITE_SIGNAL_SAFE {
    return tx_.send_control(peer, parts, parts_count);
  }
  static constexpr std::uint32_t kFlatBytes =
      TxQueue::kFlatBytes;  // a packet of up to that is made one piece: the copy costs less than
                            // what the kernel does for a list of pieces

  // The same for a packet with kFrameHeaderBytes of memory before it that may be written (aligned
  // as a FrameHeader), and `bytes` more of it at `data`: the first part leaves from there in one
  // piece with its header. Ordinary context.
  int send_control_in_place(int peer, std::uint8_t* packet, std::uint32_t length, const void* data,
                            std::uint32_t bytes) {
    return tx_.send_control_in_place(peer, packet, length, data, bytes);
  }

  // A control packet (at most kBehindPacketMax bytes) and, right behind it, a frame of `bytes` from
  // `data`: in one write, straight from the caller's memory. 0, and `op` as by send(); -errno: the
  // peer is lost; -EAGAIN: neither has been sent, and this is no moment for it (something is
  // queued, or no memory).
  static constexpr std::size_t kBehindPacketMax = TxQueue::kBehindPacketMax;
  int send_behind(int peer, const iovec& packet, FrameKind kind, const void* data,
                  std::uint64_t bytes, SendOp*& op) MPLITE_SIGNAL_SAFE {
    return tx_.send_behind(peer, packet, kind, data, bytes, op);
  }

  // Sends what `data` (which stays until done, and so does its list if it is in pieces) has of
  // `bytes` after the first `from`. Complete at once: 0 and `op` null. Otherwise `op` is set, and
  // when on_done(…) was given it is called once with 0 or an errno, after which op is gone; without
  // it op stays until release(op).
  int send(int peer, FrameKind kind, std::uint64_t id, const Memory& data, std::uint64_t bytes,
           SendOp*& op, std::uint64_t from = 0) MPLITE_SIGNAL_SAFE {
    return tx_.send(peer, kind, id, data, bytes, op, from);
  }
  void on_done(SendOp* op, void (*done)(void* arg, int error), void* arg) MPLITE_SIGNAL_SAFE {
    tx_.on_done(op, done, arg);
  }
  SendOp* find_send(std::uint64_t handle) const MPLITE_SIGNAL_SAFE { return tx_.find_send(handle); }
  // Copies what `op` has left, so that its data may be reused. False: the bound on such copies is
  // reached, or no memory. Ordinary context.
  bool keep_copy(SendOp* op) { return tx_.keep_copy(op); }
  // Done: freed now; not done: freed when done.
  void release(SendOp* op) MPLITE_SIGNAL_SAFE { tx_.release(op); }

  // Between cork and uncork nothing is written to `peer`: what is sent then leaves in one system
  // call.
  void cork(int peer) MPLITE_SIGNAL_SAFE { tx_.cork(peer); }
  void uncork(int peer) MPLITE_SIGNAL_SAFE { tx_.uncork(peer); }

  // Until set_gather(0) control packets of at most `packet_max` bytes need not leave at once: those
  // for one peer are gathered, copied, and leave together in one system call: with the first packet
  // that does not fit or other word to that peer, with the next poll, or by flush_gathered(). Order
  // is kept. Whoever gathers sees to it that one of these follows soon. Ordinary context.
  void set_gather(std::uint32_t packet_max) { tx_.set_gather(packet_max); }
  int gathered() const MPLITE_SIGNAL_SAFE { return core_.underway.gathered; }  // packets that wait
  void flush_gathered() MPLITE_SIGNAL_SAFE { tx_.flush_gathered(); }
  static constexpr std::uint32_t kGatherBytes =
      TxQueue::kGatherBytes;  // frames gathered, all together
  static constexpr std::uint32_t kGatherPacketMax =
      TxQueue::kGatherPacketMax;  // above, the copy begins to cost what the system call does
  static constexpr std::uint32_t kCompanyPacketMax =
      TxQueue::kCompanyPacketMax;  // the same where the packet saves its own system call for sure

  // A send of which everything has left is complete when the peer's kernel has it (LITE_RESUME):
  // who waits polls for it. On the way out of the library, in ordinary context, what is left of it
  // is copied, and it is complete: if that is not much, or (`on`) somebody goes on with what
  // follows while the application computes.
  void complete_in_background(bool on) {
    core_.completes_in_background = on;
    if (core_.underway.unacknowledged != 0) tx_.look_at_awaited(TxQueue::Look::kLeave);
  }
  // Whether connections that break are made again. Gate held or not.
  bool resumes() const MPLITE_SIGNAL_SAFE { return core_.options.resume; }

  void resume_rx(int peer) MPLITE_SIGNAL_SAFE { rx_.resume_rx(peer); }
  // Of the frame of (kind, id) under way: how much of its payload has been put where its sink said,
  // or thrown away. 0: no such frame.
  std::uint64_t placed(int peer, FrameKind kind, std::uint64_t id) const MPLITE_SIGNAL_SAFE {
    return rx_.placed(peer, kind, id);
  }
  // The destination given for that frame, if any, must not be touched any more: the rest goes to
  // another, and is thrown away if that is none.
  void redirect(int peer, FrameKind kind, std::uint64_t id,
                const Destination& destination) MPLITE_SIGNAL_SAFE {
    rx_.redirect(peer, kind, id, destination);
  }
  // The peer shall know with the end of this poll what has come of its long data: before whatever
  // is sent to it afterwards. Within a Sink's end(), too.
  void acknowledge(int peer) MPLITE_SIGNAL_SAFE { lanes_.acknowledge(peer); }
  // Nobody wants frames of (kind, id) that are under way any more: no end will be told.
  void discard(int peer, FrameKind kind, std::uint64_t id) MPLITE_SIGNAL_SAFE {
    rx_.discard(peer, kind, id);
  }

  // ---- processes of other jobs (remote_jobs.h); ordinary context unless marked ----

  // The peer's universal name. False: it is not known (a caller at a port that has not said).
  bool name_of(int peer, ProcessName& name) const { return remote_.name_of(peer, name); }
  // Its public key.
  void key_of(int peer, std::uint8_t (&key)[kKeyBytes]) const;
  // The number for the process of that name: our own, of a rank of the job, or of a process of
  // another job, which is added when it is new. From then on either side may connect, by the key
  // that only the two can compute. -errno: no memory, or it was lost and something is left of it.
  int connect(const ProcessName& name);
  // The same for the owner of a port; if there is no connection yet, the next one is made by the
  // port's key, as the owner does not know us. Such a connection that fails is not a loss: see
  // departed().
  int connect_by_port(const PortName& port);
  // Those who know a port's key may connect and become peers. Ordinary context.
  Ports& ports() { return remote_.ports(); }
  // Nobody above deals with the process any more: its end will be no loss, and its number may be
  // given to another. A connection stays as long as both processes live.
  void disconnect(int peer) { remote_.disconnect(peer); }
  // Tells all processes of other jobs that are connected that our end is near. Then wait until
  // farewell() holds, or for a while.
  void say_goodbye() { remote_.say_goodbye(); }
  // Whether no process of another job is connected that has not said goodbye.
  bool farewell() const { return remote_.farewell(); }
  // Whether the peer's loss concerns nobody but those who deal with just this peer: a process of
  // another job that has ended in order, or was parted from, or whose port could not be reached.
  bool departed(int peer) const MPLITE_SIGNAL_SAFE { return remote_.departed(peer); }

  // Whether a connection that somebody wants is still being made.
  bool connecting() const MPLITE_SIGNAL_SAFE { return core_.underway.connecting > 0; }
  // Frames not yet taken by the kernel, over all peers.
  std::uint64_t queued_sends() const MPLITE_SIGNAL_SAFE { return core_.underway.queued_sends; }
  // The layer above has had enough of this peer: its connection is dropped, and the lost callback
  // follows.
  void give_up(int peer, int error) MPLITE_SIGNAL_SAFE { connector_.lose(peer, error); }
  // Sees to it that there is, or will be, a connection: then the death of a peer from whom only a
  // receive waits is noticed.
  int reach(int peer) MPLITE_SIGNAL_SAFE {
    return core_.peers[peer].state == PeerState::kUp ? 0 : connector_.want_connection(peer);
  }
  // For tests: the descriptor of the peer's first connection, once it is up; or else -1.
  int first_stream(int peer) const {
    const Peer& p = core_.peers[peer];
    return p.state == PeerState::kUp && p.connection != nullptr ? p.connection->fd : -1;
  }
  // Whether transfers to the peer go over several connections at present.
  bool spreads(int peer) const MPLITE_SIGNAL_SAFE {
    const LaneSet* lanes = core_.peers[peer].lanes;
    return lanes != nullptr && lanes->spread;
  }
  // 0, or the errno for which the peer was given up.
  int peer_error(int peer) const MPLITE_SIGNAL_SAFE { return core_.peers[peer].error; }
  // Whether nothing can be said to the peer any more: it was given up, or its end of the connection
  // is closed, which the kernel tells before what the peer has sent is read.
  bool has_left(int peer) const MPLITE_SIGNAL_SAFE {
    const Peer& p = core_.peers[peer];
    return p.error != 0 || (p.state == PeerState::kUp && core_.net.has_ended(p.connection->fd));
  }
  // Brings Counters::resent up to date, which otherwise counts a connection when it ends. Gate
  // held.
  void count_resent();
  // What stands between this process and the peer. Ordinary context.
  PeerReport report(int peer) const;
  // For tests and reports: read-ahead buffers that connections hold.
  std::uint32_t read_ahead_buffers_used() const { return rx_.read_ahead_buffers_used(); }
  // "rank 3 on host b (10.0.0.2 port 4711)": for messages; while no address has led there, each
  // with its reason. Writes at most `size` bytes, of which kDescribeBytes suffice. Returns `text`.
  static constexpr std::size_t kDescribeBytes = 448;
  const char* describe(int peer, char* text, std::size_t size) const;
  // Our own addresses that the peer is called from, each once, without ports; as the routes are at
  // present. Returns how many. Ordinary context.
  int local_ends(int peer, sockaddr_storage (&ends)[kAddressesMax]);

  // Whether anything is outstanding above: if not, poll() looks at the sockets only now and then.
  void set_outstanding(bool outstanding) MPLITE_SIGNAL_SAFE {
    poller_.set_outstanding(outstanding);
  }
  bool outstanding() const MPLITE_SIGNAL_SAFE { return poller_.outstanding(); }

  // An EOF or reset from a peer is ordinary from here on: everybody is ending.
  void quiesce() { core_.quiescing = true; }

  // Sockets to watch for signals (the sigio controller): applied to every socket, present and
  // future. tid 0: off. Callers that are heard by a signal of their own (hear_callers) have that
  // one, in thread `tid` from now on.
  void set_signal_driven(int tid, int signo);
  // Whether they are raised at all, for the present: without, the kernel does nothing for them.
  void set_signals(bool on) MPLITE_SIGNAL_SAFE {
    if (signals_.enabled() == on) return;
    if (on) reattach();
    signals_.set_enabled(on);
    if (on) readiness_.ask_for_room();
  }
  bool signals() const MPLITE_SIGNAL_SAFE { return signals_.enabled(); }

  // From now on, as long as ranks of the job are missing, those who call can be heard while nothing
  // is outstanding: the listener, and the accepted ones until they have proved themselves, are
  // watched apart from the connections as well (Net::watch_caller). `signo` != 0: and they raise
  // that signal, in the thread of set_signal_driven(), whatever set_signals() says, in place of the
  // other one. 0 or -errno: no descriptor for it. Ordinary context.
  int hear_callers(int signo) { return callers_.hear(signo); }
  void stop_hearing() MPLITE_SIGNAL_SAFE { callers_.stop_hearing(); }
  // Whether they are heard at present. Gate held or not.
  bool awaits_callers() const MPLITE_SIGNAL_SAFE { return listener_.hearing(); }
  // How long no caller is to be looked at that way: there were too many of them (allowance.h), or
  // they cannot be accepted now. Nobody is told again of those who wait meanwhile. 0: not at all.
  std::int64_t callers_rest_ns() MPLITE_SIGNAL_SAFE { return listener_.rest_ns(); }
  // The application has taken signal `lost`; `found` (0: none) is used instead. Told to people,
  // once per change.
  void note_signal_taken(int lost, int found) {
    core_.notes.note(NoteCode::kSignalTaken, found, lost);
  }
  // In the child of a fork, which was made while the gate was held by its maker: Net::disown for
  // every descriptor.
  void disown();

 private:
  friend class Upcalls;
  friend class ProgressScope;

  // Of peers that are tried in vain for long: to people.
  void say_overdue();
  void list_attempts(int peer, BoundedText& out);
  void reattach() MPLITE_SIGNAL_SAFE {
    if (readiness_.detached() != nullptr) readiness_.reattach();
  }

  // From the ground up: each knows those before it only, and of those behind it what Upcalls has.
  EngineCore core_;        // what all share
  Upcalls up_;             // lose a peer, want a connection, refill
  Listener listener_;      // the listening socket
  Readiness readiness_;    // what epoll is asked; the preferred and the detached connection
  SocketSignals signals_;  // which sockets raise signals
  TxQueue tx_;             // queues to socket
  RxStream rx_;            // socket to frames
  RemoteJobs remote_;      // processes of other jobs
  Callers callers_;        // missing ranks, and hearing those who call
  Connector connector_;    // connections made and ended, peers lost
  Lanes lanes_;            // more connections to one peer
  Handshaker handshaker_;  // steps of a handshake, ties
  Acceptor acceptor_;      // callers let in, strangers pushed out
  Poller poller_;          // which socket is looked at, when
};

// Progress is made in that mode while it exists. Gate held.
class ProgressScope {
 public:
  ProgressScope(Engine& engine, const ProgressMode& mode) MPLITE_SIGNAL_SAFE
      : engine_(engine),
        before_(engine.mode()) {
    engine.set_mode(mode);
  }
  ~ProgressScope() MPLITE_SIGNAL_SAFE { engine_.core_.mode = before_; }
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

 private:
  Engine& engine_;
  const ProgressMode before_;
};

}  // namespace mplite
