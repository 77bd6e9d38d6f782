// The engine: moves frames between this process and its peers over one stream connection per pair.
// Used by messages.cpp (MP_*) and by ch_lite/channel.cpp; uses net.h, handshake.h, gate.h, pool.h. Knows no MPI and no matching.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "connection.h"
#include "counters.h"
#include "gate.h"
#include "growing_table.h"
#include "handshake.h"
#include "log.h"
#include "net.h"
#include "pieces.h"
#include "pool.h"
#include "process_name.h"
#include "signal_safe.h"
#include "wire.h"

namespace mplite {

// What the layer above answers when the payload of a frame is about to be read.
enum class Verdict {
  kTake,    // into Destination; what is longer than `room` is read and thrown away
  kPark,    // no buffer now: the connection stops reading (the kernel pushes back) until Engine::unpark(peer)
  kReject,  // the frame makes no sense here: the connection is lost with EPROTO
};

struct Destination {
  void* buffer = nullptr;
  std::uint64_t room = 0;
  PieceCursor pieces{};  // in place of buffer: where the payload's first byte goes
};

// The upper layer's side of one frame kind (channel, transfer, message). Signal-safe, gate held, no allocation.
struct Sink {
  void* self = nullptr;
  Verdict (*begin)(void* self, int peer, const FrameHeader& header, Destination& destination) = nullptr;
  void (*end)(void* self, int peer, const FrameHeader& header) = nullptr;  // the frame's payload is all there
};

// Called once when a peer is given up, gate held, perhaps in the handler. `error` is an errno. Its send operations have been completed with
// that error before.
using LostCallback = void (*)(void* self, int peer, int error);

// Called when a process of another job becomes peer number `peer`, which is the next one or one that nobody has dealt with any more. `window`: the credit that it gives. False: the layer
// above has no memory, or something is left of the process that the number stood for. Ordinary context, gate held.
using IntroduceCallback = bool (*)(void* self, int peer, std::uint32_t window);

// One rank's address and names, as wireup.h decodes them from the table.
struct PeerAddress {
  sockaddr_storage address;
  char host[64];
  std::uint8_t name_key[kKeyBytes];  // see process_name.h
};

struct EngineOptions {
  int rank = 0;
  int size = 1;
  const PeerAddress* peers = nullptr;  // `size` entries, kept by the caller for the engine's life
  int listener = -1;                   // open and listening; the engine closes it
  std::uint8_t secret[32] = {};
  KeyPair keys = {};                   // ours, for processes of other jobs
  StreamOptions stream = {};
  std::int64_t connect_timeout_ns = 0;
  // Bulk is cut into frames of this payload, so that control packets interleave. What the kernel takes at once is before them in any case: up to sixteen times as long while it takes all that it is offered.
  std::uint32_t frame_bytes = 256 * 1024;
  std::uint64_t send_copy_max = 64u << 20;        // bytes of copies of what the kernel did not take (keep_copy)
  std::uint32_t low_water_bytes = 256 * 1024;     // SO_RCVLOWAT during bulk receives, 0: never
  std::uint64_t handler_budget_bytes = 8u << 20;  // read per handler entry before it steps back
  // In the middle of a frame the next bytes are on their way: how often a poll in ordinary context tries the socket again at once (about 0.3 us each) before it looks
  // elsewhere. A receiver that is in recv when packets come takes TCP's work for them over from the sender's core, which bounds a fast link.
  int frame_tries = 0;
  // A write in ordinary context of at least split_min and less than split_end bytes is made in two halves: the first is being received while the second is copied to the kernel. Not in a stream of
  // them, where one write is received while the next one is copied: only if something has come from that peer since the last one. 0: none. Whole, and acknowledged at once by the receiver, such a message
  // is the faster on some machines: which it is, is found per connection (Connection::whole).
  std::uint64_t split_min = 0, split_end = 0;
  // After so many reads in a row from one connection that nobody watches but who polls it, it is set aside: epoll is not asked about what comes there, which costs the kernel 0.1 us
  // per packet before the reader can have it, and its SO_RCVLOWAT follows the length of its messages (Connection::kMarkAtOnce). 0: never.
  int aside_after = 0;
};

class Engine {
 public:
  Engine(Net& net, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Ordinary context, once, before traffic. Returns 0 or -errno.
  int start();
  void set_sink(FrameKind kind, const Sink& sink);
  void set_lost(LostCallback lost, void* self) { lost_ = lost; lost_self_ = self; }
  void set_introduce(IntroduceCallback introduce, void* self) { introduce_ = introduce; introduce_self_ = self; }
  // The credit that the layer above gives to a process of another job, bytes: part of our name.
  void set_window(std::uint32_t window) { window_ = window; }

  Gate& gate() { return gate_; }
  Counters& counters() { return counters_; }
  Net& net() { return net_; }
  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  // Peers there are numbers for: the job's ranks, then processes of other jobs.
  int peers() const { return peer_count_; }

  static constexpr std::size_t kForeignMax = 65536;  // processes of other jobs at a time

  // ---- all below: gate held ----

  // In the handler nothing may be allocated; set by the controller around its entry. The helper thread may allocate.
  void set_async(bool async) MPLITE_SIGNAL_SAFE { async_ = exhaustive_ = patient_ = async; }
  bool async() const MPLITE_SIGNAL_SAFE { return async_; }
  // poll() looks at every socket: for the handler (implied), the helper thread, and after a turned-away handler.
  void set_exhaustive(bool exhaustive) MPLITE_SIGNAL_SAFE {
    exhaustive_ = exhaustive;
    if (exhaustive && aside_ != nullptr) take_back();
  }
  bool exhaustive() const MPLITE_SIGNAL_SAFE { return exhaustive_; }
  // Nobody waits for what comes: bulk may be announced seldom (SO_RCVLOWAT). For the helper thread (implied in the handler).
  void set_patient(bool patient) MPLITE_SIGNAL_SAFE { patient_ = patient; }
  // Whoever polls next waits for what comes: at a connection that is set aside, that poll looks up to `more` times again before it says that there is nothing. Of connections
  // whose last message was a small one, or one that is looked for without a read (nothing_came). Ordinary context, gate held or not: who polls there is one thread at a time.
  void set_close_looks(int more) { close_looks_ = more; }
  // Ordinary context: tops up the pools that the handler lives on, prints what it could only note. False: out of memory.
  MPLITE_ORDINARY bool refill();
  // Whether the pools hold enough for one more control packet to be acted upon (at most kSendsPerPacket sends).
  bool headroom() const MPLITE_SIGNAL_SAFE { return sends_.free_count() >= kSendsPerPacket && control_blocks_.free_count() >= kSendsPerPacket; }
  static constexpr std::uint32_t kSendsPerPacket = 8;

  // Moves what can be moved without waiting: reads, writes, accepts, connects, times out. Returns the number of things that moved.
  int poll() MPLITE_SIGNAL_SAFE;
  // poll() that looks at every socket, for the handler and after a wait.
  int poll_all() MPLITE_SIGNAL_SAFE;
  // Sleeps until a socket is ready or timeout_ns passes; lets go of the gate while it sleeps. Then polls. Ordinary context.
  int wait(std::int64_t timeout_ns);
  // True when the handler stopped for its budget and data it knows of is still unread.
  bool more_to_do() const MPLITE_SIGNAL_SAFE { return more_to_do_; }
  void begin_budget() MPLITE_SIGNAL_SAFE { budget_ = options_.handler_budget_bytes; more_to_do_ = false; }
  void end_budget() MPLITE_SIGNAL_SAFE { budget_ = kNoBudget; }
  // The wait ahead is for this peer: its socket is looked at first.
  void prefer(int peer) MPLITE_SIGNAL_SAFE;

  // What the kernel knows of the round trip to a peer, ns; 0: nothing, as there is no connection yet. A system call. Ordinary context.
  std::int64_t round_trip_ns(int peer);

  // Control packets. control_ready looks at what has been read, without a system call; view_control consumes the packet and returns its length, or 0 when there is none. It stays where it was read, at
  // *packet, until the next call of control_ready, view_control or poll. take_control copies at most `size` bytes of it.
  bool control_ready() MPLITE_SIGNAL_SAFE {
    if (settling_ != nullptr) settle();
    return ready_head_ != nullptr;
  }
  std::uint32_t view_control(const std::uint8_t** packet, int& from) MPLITE_SIGNAL_SAFE;
  // All of that in one, for who waits: control_ready, else poll, then view_control. `alone`: nothing else has been read, and no look at all is due.
  std::uint32_t next_control(const std::uint8_t** packet, int& from, bool& alone) MPLITE_SIGNAL_SAFE {
    if (!control_ready()) {
      if (may_read_one()) {
        if (const std::uint32_t length = read_one(packet); length != 0) {
          from = aside_->peer;
          alone = true;
          return length;
        }
      } else {
        poll();
      }
    }
    return view_control(packet, from);
  }
  std::uint32_t take_control(void* packet, std::uint32_t size, int& from) MPLITE_SIGNAL_SAFE;

  // Sends one control packet made of `parts`; copies what the kernel does not take. 0; -EHOSTUNREACH and kin when the peer is lost;
  // -ENOBUFS when async and a pool is empty (never after headroom()).
  int send_control(int peer, const iovec* parts, int parts_count) MPLITE_SIGNAL_SAFE;
  static constexpr std::uint32_t kFlatBytes = 2560;  // a packet of up to that is made one piece: the copy costs less than what the kernel does for a list of pieces

  // The same for a packet with kFrameHeaderBytes of memory before it that may be written (aligned as a FrameHeader), and `bytes` more of it at `data`: the first part leaves from there in one piece with its header. Ordinary context.
  int send_control_in_place(int peer, std::uint8_t* packet, std::uint32_t length, const void* data, std::uint32_t bytes);

  // A control packet (at most kBehindPacketMax bytes) and, right behind it, a frame of `bytes` from `data`: in one write, straight from the caller's memory. 0, and `op` as by send(); -errno: the
  // peer is lost; -EAGAIN: neither has been sent, and this is no moment for it (something is queued, or no memory).
  static constexpr std::size_t kBehindPacketMax = 64;
  int send_behind(int peer, const iovec& packet, FrameKind kind, const void* data, std::uint64_t bytes, SendOp*& op) MPLITE_SIGNAL_SAFE;

  // Sends what `data` (which stays until done, and so does its list if it is in pieces) has of `bytes` after the first `from`. Complete at once: 0 and `op` null.
  // Otherwise `op` is set, and when on_done(…) was given it is called once with 0 or an errno, after which op is gone; without it op stays until release(op).
  int send(int peer, FrameKind kind, std::uint64_t id, const Memory& data, std::uint64_t bytes, SendOp*& op, std::uint64_t from = 0) MPLITE_SIGNAL_SAFE;
  void on_done(SendOp* op, void (*done)(void* arg, int error), void* arg) MPLITE_SIGNAL_SAFE;
  SendOp* find_send(std::uint64_t handle) const MPLITE_SIGNAL_SAFE { return sends_.find(handle); }
  // Copies what `op` has left, so that its data may be reused. False: the bound on such copies is reached, or no memory. Ordinary context.
  bool keep_copy(SendOp* op);
  void release(SendOp* op) MPLITE_SIGNAL_SAFE;  // done: freed now; not done: freed when done

  // Between hold and let_go nothing is written to `peer`: what is sent then leaves in one system call.
  void hold(int peer) MPLITE_SIGNAL_SAFE;
  void let_go(int peer) MPLITE_SIGNAL_SAFE;

  // From set_gather(true) to set_gather(false) small control packets need not leave at once: those for one peer are gathered, copied, and leave together in one system
  // call: with the first packet that does not fit or other word to that peer, with the next poll, or by flush_gathered(). Order is kept. Whoever gathers sees to it
  // that one of these follows soon. Ordinary context.
  void set_gather(bool on) { gather_ = on; }
  int gathered() const MPLITE_SIGNAL_SAFE { return gathered_; }  // packets that wait
  void flush_gathered() MPLITE_SIGNAL_SAFE;
  static constexpr std::uint32_t kGatherBytes = 8 * 1024;   // frames gathered, all together
  static constexpr std::uint32_t kGatherPacketMax = 1024;  // above, the copy begins to cost what the system call does

  void unpark(int peer) MPLITE_SIGNAL_SAFE;
  // Of the frame of (kind, id) under way: how much of its payload has been put where its sink said, or thrown away. 0: no such frame.
  std::uint64_t placed(int peer, FrameKind kind, std::uint64_t id) const MPLITE_SIGNAL_SAFE;
  // The destination given for that frame, if any, must not be touched any more: the rest goes to another, and is thrown away if that is none.
  void redirect(int peer, FrameKind kind, std::uint64_t id, const Destination& destination) MPLITE_SIGNAL_SAFE;

  // ---- processes of other jobs (engine_foreign.cpp); ordinary context unless marked ----

  // The peer's universal name. False: it is not known (a caller at a port that has not said).
  bool name_of(int peer, ProcessName& name) const;
  // Its public key.
  void key_of(int peer, std::uint8_t (&key)[kKeyBytes]) const;
  // The number for the process of that name: our own, of a rank of the job, or of a process of another job, which is added when it is new. From then on either side may connect, by
  // the key that only the two can compute. -errno: no memory, or it was lost and something is left of it.
  int meet(const ProcessName& name);
  // The same for the owner of a port; if there is no connection yet, the next one is made by the port's key, as the owner does not know us. Such a connection that fails is not a loss: see departed().
  int meet_at(const PortName& port);
  // From now on processes that know `key` may connect and become peers. One port per id; 0 or -ENOMEM.
  int open_port(std::uint32_t id, const std::uint8_t (&key)[kKeyBytes]);
  void close_port(std::uint32_t id);
  // Null: there is no such port.
  const std::uint8_t* port_key(std::uint32_t id) const MPLITE_SIGNAL_SAFE;
  // Nobody above deals with the process any more: its end will be no loss, and its number may be given to another. A connection stays as long as both processes live.
  void part(int peer);
  // Tells all processes of other jobs that are connected that our end is near. Then wait until farewell() holds, or for a while.
  void say_goodbye();
  // Whether no process of another job is connected that has not said goodbye.
  bool farewell() const;
  // Whether the peer's loss concerns nobody but those who deal with just this peer: a process of another job that has ended in order, or was parted from, or whose port could not be reached.
  bool departed(int peer) const MPLITE_SIGNAL_SAFE { return peer >= options_.size && foreign_.data()[peer - options_.size].departed; }

  // Whether a connection that somebody wants is still being made.
  bool connecting() const MPLITE_SIGNAL_SAFE { return wanting_ > 0; }
  // Frames not yet taken by the kernel, over all peers.
  std::uint64_t queued_sends() const MPLITE_SIGNAL_SAFE { return queued_sends_; }
  // The layer above has had enough of this peer: its connection is dropped, and the lost callback follows.
  void give_up(int peer, int error) MPLITE_SIGNAL_SAFE { lose(peer, error); }
  // Sees to it that there is, or will be, a connection: then the death of a peer from whom only a receive waits is noticed.
  int reach(int peer) MPLITE_SIGNAL_SAFE { return ensure_connection(peer); }
  // 0, or the errno for which the peer was given up.
  int peer_error(int peer) const MPLITE_SIGNAL_SAFE { return peers_[peer].error; }
  // For tests and reports: read-ahead buffers that connections hold.
  std::uint32_t stagings_used() const { return stagings_.used_count(); }
  // "rank 3 on host b (10.0.0.2 port 4711)": for messages. Writes at most `size` bytes, returns `text`.
  const char* describe(int peer, char* text, std::size_t size) const;

  // Whether anything is outstanding above: if not, poll() looks at the sockets only now and then.
  void set_outstanding(bool outstanding) MPLITE_SIGNAL_SAFE { outstanding_ = outstanding; }
  bool outstanding() const MPLITE_SIGNAL_SAFE { return outstanding_; }

  // An EOF or reset from a peer is ordinary from here on: everybody is ending.
  void quiesce() { quiescing_ = true; }

  // Sockets to watch for signals (the sigio controller): applied to every socket, present and future. tid 0: off.
  void set_signal_driven(int tid, int signo);
  // Whether they are raised at all, for the present: without, the kernel does nothing for them.
  void set_signals(bool on) MPLITE_SIGNAL_SAFE;
  bool signals() const MPLITE_SIGNAL_SAFE { return signals_; }
  // The application has taken signal `lost`; `found` (0: none) is used instead. Told to people, once per change.
  void note_signal_taken(int lost, int found) { notes_.note(NoteCode::kSignalTaken, found, lost); }
  // In the child of a fork, which was made while the gate was held by its maker: Net::disown for every descriptor.
  void disown();

 private:
  static constexpr std::uint64_t kNoBudget = ~std::uint64_t{0};
  static constexpr std::uint64_t kListenerToken = ~std::uint64_t{0};
  static constexpr std::uint32_t kYoungMax = 64;  // connections in handshake; a flood drops the oldest
  static constexpr int kDepartedError = ESHUTDOWN;   // for what was still open with a process that ended in order
  static constexpr int kIdleStride = 16;          // polls per look at the sockets when nothing is outstanding
  static constexpr int kLooksMissed = 8;          // messages in a row that looks did not see: then nobody looks any more
  static constexpr int kAllStride = 16;           // reads of the preferred socket by polls, per look at all

  struct Queue {
    SendOp* head = nullptr;
    SendOp* tail = nullptr;
  };
  struct Peer {
    Connection* connection = nullptr;
    Queue control, bulk;          // what has not been cut into frames
    std::int64_t give_up_ns = 0;  // while kMaking
    int error = 0;
    int holds = 0;
    PeerState state = PeerState::kIdle;
    std::uint8_t attempts = 0;   // ours that were closed before they were up
    std::int64_t retry_ns = 0;   // no new one before
  };
  // What a peer that is no rank of the job has besides.
  struct Foreign {
    sockaddr_storage address = {};  // family 0: not known yet
    std::uint8_t name_key[kKeyBytes] = {};
    std::uint8_t pair_key[kKeyBytes] = {};
    std::uint8_t port_key[kKeyBytes] = {};  // by_port
    std::uint32_t port_id = 0;
    std::uint32_t window = 0;
    bool by_port = false;        // the next connection that we make is by port_key
    bool parted = false;
    bool goodbye_said = false;
    bool goodbye_heard = false;
    bool departed = false;       // lost, but that is no news
  };
  struct Port {
    std::uint32_t id;
    std::uint8_t key[kKeyBytes];
  };

  // engine.cpp: connections and polling
  void change_state(Connection& c, ConnectionState to) MPLITE_SIGNAL_SAFE;
  // 0: frames may be queued for the peer (its connection is up or coming); -errno: it is lost.
  int ensure_connection(int peer) MPLITE_SIGNAL_SAFE { return peers_[peer].state == PeerState::kUp ? 0 : want_connection(peer); }
  int want_connection(int peer) MPLITE_SIGNAL_SAFE;
  void begin_connect(int peer) MPLITE_SIGNAL_SAFE;
  bool accept_all() MPLITE_SIGNAL_SAFE;
  void hear_hello(Connection& c, const Hello& said) MPLITE_SIGNAL_SAFE;
  bool say(Connection& c, const Hello& message) MPLITE_SIGNAL_SAFE;
  void step_handshake(Connection& c) MPLITE_SIGNAL_SAFE;
  void give_way(Connection& own) MPLITE_SIGNAL_SAFE;
  void come_up(Connection& c, int peer) MPLITE_SIGNAL_SAFE;
  HelloContext hello_context(const Connection& c) const MPLITE_SIGNAL_SAFE;
  // Of two attempts, that of the lower process stays.
  bool is_lower(int peer) const MPLITE_SIGNAL_SAFE;
  const sockaddr_storage& address_of(int peer) const MPLITE_SIGNAL_SAFE;

  // engine_foreign.cpp
  Foreign& foreign(int peer) const MPLITE_SIGNAL_SAFE { return foreign_.data()[peer - options_.size]; }
  bool is_foreign(int peer) const MPLITE_SIGNAL_SAFE { return peer >= options_.size; }
  int find_foreign(const std::uint8_t* name_key) const MPLITE_SIGNAL_SAFE;
  int find_process(const std::uint8_t (&name_key)[kKeyBytes]) const;
  int add_foreign(const std::uint8_t (&name_key)[kKeyBytes], std::uint32_t window);
  int new_number(std::uint32_t window);
  int renew(int peer, std::uint32_t window);
  int revive(int peer);
  MPLITE_ORDINARY int admit_caller(const Connection& c, const Hello& proof);
  void prepare_foreign(Connection& c, int peer) MPLITE_SIGNAL_SAFE;
  std::uint32_t address_foreign(const Connection& c) const MPLITE_SIGNAL_SAFE;
  bool recognise(Connection& c, const Hello& said) MPLITE_SIGNAL_SAFE;
  void stall(Connection& c) MPLITE_SIGNAL_SAFE;
  void look_beyond(Connection& c) MPLITE_SIGNAL_SAFE;
  void retry_stalled() MPLITE_SIGNAL_SAFE;
  static Verdict begin_goodbye(void* self, int peer, const FrameHeader& header, Destination& destination) MPLITE_SIGNAL_SAFE;
  static void end_goodbye(void* self, int peer, const FrameHeader& header) MPLITE_SIGNAL_SAFE;
  void refuse(Connection& c, NoteCode why, int error, HelloFault fault = HelloFault::kNone) MPLITE_SIGNAL_SAFE;
  bool is_host_of_a_connection(const sockaddr_storage& address) const MPLITE_SIGNAL_SAFE;
  void attempt_failed(Connection& c, int error) MPLITE_SIGNAL_SAFE;
  void drop(Connection& c) MPLITE_SIGNAL_SAFE;
  void lose(int peer, int error) MPLITE_SIGNAL_SAFE;
  void look_at_deadlines() MPLITE_SIGNAL_SAFE;
  void look_for_silence() MPLITE_SIGNAL_SAFE;
  unsigned asked_of_epoll(const Connection& c) const MPLITE_SIGNAL_SAFE { return &c == aside_ ? c.interest & ~kReadable : c.interest; }
  void ask_epoll(Connection& c, unsigned asked_before) MPLITE_SIGNAL_SAFE;
  void set_interest(Connection& c, unsigned interest) MPLITE_SIGNAL_SAFE;
  void set_aside() MPLITE_SIGNAL_SAFE;
  void take_back() MPLITE_SIGNAL_SAFE;
  void drive_by_signals(int fd) MPLITE_SIGNAL_SAFE;
  void handle(const NetEvent& event) MPLITE_SIGNAL_SAFE;
  void young_add(Connection& c) MPLITE_SIGNAL_SAFE;
  void young_remove(Connection& c) MPLITE_SIGNAL_SAFE;
  void bury() MPLITE_SIGNAL_SAFE { if (graves_ != nullptr && depth_ == 0) empty_graves(); }
  void empty_graves() MPLITE_SIGNAL_SAFE;

  // engine_send.cpp
  void enqueue(Peer& p, SendOp* op) MPLITE_SIGNAL_SAFE;
  bool commit_next(Peer& p, Connection& c) MPLITE_SIGNAL_SAFE;
  std::uint8_t padding(const Connection& c, const void* payload) const MPLITE_SIGNAL_SAFE;
  bool has_enough(const Connection& c) const MPLITE_SIGNAL_SAFE;
  std::uint64_t first_write(Connection& c, std::uint64_t offered) MPLITE_SIGNAL_SAFE;
  void note_taken(Connection& c, bool whole, std::uint64_t offered) MPLITE_SIGNAL_SAFE;
  // Whose pages of the kernel's are written: 0 the application's thread, 1 the helper thread.
  int writer() const MPLITE_SIGNAL_SAFE { return patient_ && !async_ ? 1 : 0; }
  void count_written(std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    counters_.bytes_out += bytes;
    written_[writer()] += bytes;
  }
  void flush(int peer) MPLITE_SIGNAL_SAFE;
  bool idle(const Peer& p) const MPLITE_SIGNAL_SAFE;
  std::int64_t write_control(const Connection& c, const iovec* parts, int parts_count, std::uint32_t length) MPLITE_SIGNAL_SAFE;
  int control_written(int peer, const iovec* parts, int parts_count, std::uint64_t length, std::int64_t result) MPLITE_SIGNAL_SAFE;
  int keep_control(int peer, const iovec* parts, int parts_count, std::uint64_t length, std::int64_t sent = -1) MPLITE_SIGNAL_SAFE;
  bool gather(int peer, const FrameHeader& header, const iovec* parts, int parts_count);
  void commit_gathered(Connection& c) MPLITE_SIGNAL_SAFE;
  bool advance(Connection& c, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  void finish(SendOp* op, int error) MPLITE_SIGNAL_SAFE;
  void give(SendOp* op) MPLITE_SIGNAL_SAFE;
  void fail_sends(int peer, int error) MPLITE_SIGNAL_SAFE;

  // engine_receive.cpp
  bool pump(Connection& c) MPLITE_SIGNAL_SAFE;
  bool may_read_one() const MPLITE_SIGNAL_SAFE;
  bool nothing_came(const Connection& c) MPLITE_SIGNAL_SAFE;
  bool looked_for(const Connection& c) const MPLITE_SIGNAL_SAFE { return c.mark != 1 && looks_missed_ < kLooksMissed; }
  // Something was read: behind a look, or by the read that is made every so often, which one of 16 is if looks tell the truth. Who answers in the kernel's place (SMC, a library that is preloaded) may not.
  void judge_look() MPLITE_SIGNAL_SAFE { looks_missed_ = tick_ % kAllStride == 0 ? looks_missed_ + 1 : 0; }
  std::uint32_t read_one(const std::uint8_t** packet) MPLITE_SIGNAL_SAFE;
  void delay_first_look(Connection& c) MPLITE_SIGNAL_SAFE;
  void note_control(Connection& c, std::uint32_t length) MPLITE_SIGNAL_SAFE;
  static void set_destination(Connection& c, const Destination& destination) MPLITE_SIGNAL_SAFE;
  void set_low_water(Connection& c, bool drained) MPLITE_SIGNAL_SAFE;
  void apply_low_water(Connection& c, int bytes) MPLITE_SIGNAL_SAFE;
  void make_hot(Connection& c) MPLITE_SIGNAL_SAFE {
    if (hot_ == &c) return;
    hot_ = &c;
    hot_reads_ = 0;
    if (aside_ != nullptr) take_back();
  }
  int look_at_all() MPLITE_SIGNAL_SAFE;
  void choose_mark(Connection& c, std::uint64_t message_bytes) const MPLITE_SIGNAL_SAFE;
  // Something has come.
  void note_answer(Connection& c) MPLITE_SIGNAL_SAFE {
    c.answered = true;
    if (c.asked | c.timed) [[unlikely]] time_answer(c);
  }
  void time_answer(Connection& c) MPLITE_SIGNAL_SAFE;
  void place_staged(Connection& c, std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  void parse(Connection& c) MPLITE_SIGNAL_SAFE;
  bool have_staging(Connection& c) MPLITE_SIGNAL_SAFE;
  void put_staging_away(Connection& c) MPLITE_SIGNAL_SAFE {
    if (c.staging == nullptr || c.begin != c.end) return;
    stagings_.give(c.staging);
    c.staging = nullptr;
    c.begin = c.end = 0;
  }
  bool begin_frame(Connection& c, const FrameHeader& header) MPLITE_SIGNAL_SAFE;
  void end_frame(Connection& c) MPLITE_SIGNAL_SAFE;
  void settle() MPLITE_SIGNAL_SAFE {
    if (settling_->begin != settling_->end || settling_->in_frame) return settle_staged();
    put_staging_away(*settling_);
    settling_ = nullptr;
  }
  void settle_staged() MPLITE_SIGNAL_SAFE;
  void ready_add(Connection& c) MPLITE_SIGNAL_SAFE;
  void ready_remove(Connection& c) MPLITE_SIGNAL_SAFE;

  Net& net_;
  EngineOptions options_;
  Gate gate_;
  Counters counters_;
  NoteLog notes_;
  Sink sinks_[kFrameKinds] = {};
  LostCallback lost_ = nullptr;
  void* lost_self_ = nullptr;
  IntroduceCallback introduce_ = nullptr;
  void* introduce_self_ = nullptr;

  Peer* peers_ = nullptr;  // of peer_table_, which does not move
  int peer_count_ = 0;
  GrowingTable<Peer> peer_table_;
  GrowingTable<Foreign> foreign_;
  Port* ports_ = nullptr;
  std::uint32_t ports_count_ = 0, ports_room_ = 0;
  std::uint32_t window_ = 1;
  unsigned stall_round_ = 0;
  Pool<Connection, 4> connections_;
  StagingStock stagings_;
  Pool<SendOp> sends_;
  Pool<ControlBlock, 8> control_blocks_;  // for the handler, where larger control packets cannot go to the heap
  Connection* hot_ = nullptr;  // looked at first
  bool crowded_ = false;       // more than one connection had something at the last look at all
  int hot_reads_ = 0;          // of it that brought something, since it is hot; up to aside_after
  Connection* aside_ = nullptr;  // hot_, or none: only who reads it finds what it has
  Connection* settling_ = nullptr;  // its control packet was taken; what is staged behind it has not been looked at
  Connection* ready_head_ = nullptr;
  Connection* ready_tail_ = nullptr;
  Connection* young_head_ = nullptr;
  Connection* young_tail_ = nullptr;
  Connection* graves_ = nullptr;  // dropped, not yet back in the pool: somebody up the stack may hold them
  SendOp* stale_ = nullptr;         // finished in the handler with a heap copy that only ordinary context may free
  std::uint32_t young_count_ = 0;
  int wanting_ = 0;  // peers in kMaking
  int depth_ = 0;    // of poll, flush and what follows a control packet: graves are emptied at 0
  std::uint64_t queued_sends_ = 0;
  std::uint64_t kept_bytes_ = 0;  // in copies of what the kernel did not take
  // Frames that wait to leave together, as they will be on the stream: all of one peer, whose connection is up with nothing queued before them.
  int gathered_ = 0;
  int gathered_peer_ = -1;
  std::uint32_t gathered_bytes_ = 0;
  SendOp* gather_op_ = nullptr;  // has the buffer; until the kernel has taken all of it nothing more is gathered
  std::uint64_t budget_ = kNoBudget;
  std::uint64_t written_[2] = {};  // bytes, by writer()
  int close_looks_ = 0;  // see set_close_looks
  int looks_missed_ = 0;
  unsigned tick_ = 0;   // calls of poll(), and the close looks
  unsigned looks_ = 0;  // calls of poll_all()
  std::int64_t silence_look_ns_ = 0;
  int signal_tid_ = 0, signal_number_ = 0;
  bool signals_ = true;
  bool async_ = false;
  bool exhaustive_ = false;
  bool patient_ = false;
  bool outstanding_ = false;
  bool more_to_do_ = false;
  bool quiescing_ = false;
  bool listener_starved_ = false;  // a connection could not be accepted: no node free in the handler
  bool gather_ = false;
  std::uint8_t gather_buffer_[kGatherBytes];
};

}  // namespace mplite
