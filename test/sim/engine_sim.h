// What engine_sim consists of: the workload of its ranks, and what they know of each other. Used by
// engine_sim.cpp and engine_sim_jobs.cpp.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "alloc_trap.h"
#include "ch_lite/channel/channel.h"
#include "ch_lite/channel/channel_state.h"
#include "drawn_roads.h"
#include "driver.h"
#include "fake_net.h"
#include "mplite/engine/engine.h"
#include "mplite/net/process_name.h"
#include "mplite/net/protected_net.h"
#include "random.h"

namespace engine_sim {

using mplite::ChannelState;
using mplite::Engine;
using mplite::EngineOptions;
using mplite::PeerAddress;
using sim::FakeWorld;
using sim::Random;

enum class Profile {
  kClean,
  kHandlerOnly,
  kReset,
  kKill,
  kConnect,
  kCorrupt,
  kStrangers,
  kMute,
  kLanes,
  kResume,
  kJobs
};
inline const char* const kProfileNames[] = {"clean",   "handler-only", "reset",     "kill",
                                            "connect", "corrupt",      "strangers", "mute",
                                            "lanes",   "resume",       "jobs"};

inline Profile g_profile = Profile::kClean;

constexpr int kProcessesMax = 8;           // profile jobs: of all jobs, one after the other
constexpr std::uint32_t kWindow = 65'536;  // in their names

constexpr int kControlKind = 1, kChannelKind = 2, kTransferKind = 3;

enum class Say : std::uint16_t { kPlain, kEnvelope, kRts, kCts };
struct Talk {
  Say say;
  std::uint16_t meeting;  // of the sender with the receiver, see Sent
  std::uint32_t length;   // of the packet
  std::uint64_t sequence;
  std::uint64_t a, b;
};
constexpr std::uint64_t kInlinePacket =
    150;  // what the handler sends stays below SendOp::kInlineBytes

struct Sim;
struct Rank;

// One non-blocking operation of the workload and its memory.
struct Op {
  Rank* rank = nullptr;
  int peer = -1;
  bool receive = false;
  int kind = 0;
  std::uint64_t number = 0;
  std::uint64_t room = 0;
  std::vector<std::uint8_t> buffer;
  MPID_ChannelId id = 0;
  MPID_TransferId transfer = 0;
  bool started = false;
  bool by_callback = false;
  bool registered = false;  // its callback is known to the channel
  bool done = false;
  bool cancelled = false;
};

// What one rank has sent to another in one meeting. Ranks of a job meet once. A process of another
// job that was lost, or whose number another had meanwhile, is met again, and nothing of the time
// before may come up then.
struct Sent {
  std::uint64_t control = 0;
  std::vector<std::uint64_t> channel_lengths;
  std::vector<std::uint64_t> transfer_lengths;  // offered, by token
  bool goodbye = false;                         // was the last word on it,
  bool goodbye_ever = false;                    // or was said before that was taken back
  bool goodbye_heard = false;                   // the other had read it when this one ended
};

struct Pair {  // what this rank knows of one other
  std::vector<Sent> meetings = std::vector<Sent>(1);
  Sent& sent() { return meetings.back(); }
  const Sent& sent() const { return meetings.back(); }
  std::uint64_t control_got = 0;
  std::uint64_t channel_announced = 0, channel_posted = 0, channel_got = 0;
  std::uint64_t transfers_got = 0;
  int lost = 0;
  int heard = -1;  // the meeting, as the other counts, of which packets come

  // Of a process of another job:
  int number = -1;        // as a peer of this rank; -1: none
  int heard_before = -1;  // as `heard`, in earlier meetings
  bool dealt = false;     // this rank has connected to it, and has not parted from it since
};

struct Rank {
  Sim* sim = nullptr;
  int id = -1;
  int job = 0, job_size = 0;  // the first rank of its job
  mplite::KeyPair keys = {};
  std::vector<int> told;  // processes of other jobs that want to meet it
  int leaving = 0;        // turns left for its goodbyes; 0: it is not leaving
  int connecting = -1;    // to this process, in that call
  bool alive = false;
  bool in_handler = false;
  bool armed = false;  // its handler may run at any boundary
  bool self_signal = false;
  bool blocked = false;  // inside a call that waits,
  int blocked_by = -1;   // for this one
  std::unique_ptr<PeerAddress[]> peers;
  std::unique_ptr<mplite::ProtectedNet> protected_net;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ChannelState> channel;
  std::vector<Pair> pairs;
  std::vector<std::unique_ptr<Op>> ops;
  std::uint64_t handler_runs = 0, turned_away = 0;
};

struct Sim {
  explicit Sim(std::uint64_t seed);
  void run();

  void boot(Rank& r);
  void bind(Rank& r) { mplite::channel_bind(r.channel.get()); }
  void act(Rank& r, bool may_block);
  void progress(Rank& r);
  void on_control(Rank& r, int from, const std::uint8_t* bytes, int length);
  void run_handler(Rank& r, int signo = sim::kMainSignal);
  void run_in_handler(Rank& r, bool for_callers = false);
  void step_ordinary(Rank& r);
  void test_ops(Rank& r);
  void finish_op(Op& op, std::int64_t result);
  int say(Rank& r, int to, Say what, std::uint64_t a, std::uint64_t b, std::uint64_t filler);
  void send_channel(Rank& r, int to, bool may_block);
  void post_channel(Rank& r, int from);
  void watch(Op& op);
  void start_transfer_receive(Op& op);
  void send_transfer(Rank& r, int to, std::uint64_t token, MPID_TransferId id);
  void cancel_some(Rank& r);
  void check_call(Rank& r, int peer, std::int64_t rc, const char* call);
  bool quiet(std::string* why);
  void trouble();
  void stranger();
  void kill(Rank& r);
  void drain();

  // Processes of other jobs (engine_sim_jobs.cpp). Ranks are named by their place in `ranks`; a
  // peer's number is what its engine calls it.
  bool is_foreign(const Rank& r, int other) const {
    return other < r.job || other >= r.job + r.job_size;
  }
  int number_of(const Rank& r, int other) const {
    return is_foreign(r, other) ? r.pairs[static_cast<std::size_t>(other)].number : other - r.job;
  }
  int named_by(Rank& r, int number);
  const Sent& sent_by(int from, const Rank& r) const;
  bool may_lose(const Rank& r, int other) const;
  bool may_talk(const Rank& r, int other) const;
  void draw_jobs();
  void new_job(int first, int size);
  void prepare_for_jobs(Rank& r, EngineOptions& o);
  void act_between_jobs(Rank& r);
  void met(Rank& r, int other, int number);
  void connect(Rank& r, int to);
  void open_or_close_port(Rank& r);
  void call_port(Rank& r);
  void part(Rank& r, int from);
  void answer(Rank& r);
  void jobs_come_and_go();
  void come_again();
  void note_goodbyes(Rank& r);
  void go_on_leaving();
  void end(Rank& r);
  void answer_all();
  bool knows_all_of(Rank& r, const Rank& other, std::string& why);
  void hear_goodbyes();
  void check_foreign_loss(Rank& r, int from, int number);
  static int on_introduce(void* arg, int number, std::uint32_t window);

  static void on_done(void* arg, std::int64_t result);
  static void on_lost(void* arg, int peer, int error);

  // Calls into the library, with the trap set when the handler does it.
  template <typename F>
  auto lib(Rank& r, F f) {
    const int before = alloc_trap::t_armed;
    alloc_trap::t_armed = r.in_handler ? 1 : 0;
    auto result = f();
    alloc_trap::t_armed = before;
    return result;
  }

  Random random;
  sim::Faults faults;
  std::unique_ptr<FakeWorld> world;
  std::vector<Rank> ranks;
  std::uint64_t length_max = 0, control_max = 0;
  std::uint64_t actions = 0;
  bool winding_down = false;
  bool loss_allowed = false;
  std::uint8_t protection = 0;
  bool check_content = true;
  std::vector<int> strangers;
  sim::Roads roads;
  std::uint64_t moved = 0, vain_sleeps = 0;  // bytes in all; sleeps in a row without any

  struct Port {
    int owner;
    mplite::PortName name;
    bool open;
  };
  std::vector<Port> ports;
  bool resets = false, all_resume = false, long_timeout = false, late_calls_answered = true;
};

}  // namespace engine_sim
