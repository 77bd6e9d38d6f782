// The MP_* library of this process: its job and its messages, waiting in a call, the barrier. With
// process.cpp's last error all that it has as state of the process. Used by mplite.cpp.
#pragma once
#include <cstdint>

#include "mplite/messages/messages.h"
#include "mplite/runtime/job_runtime.h"

namespace mplite::library {

// A receive from somebody to whom there is no connection would wait for ever if that one died
// before it made one. So it is made after a while.
inline constexpr std::int64_t kReachAfterNs = 500'000'000;

// One per process, from MP_Init_local to MP_Finalize.
struct Library : JobRuntime {
  Messages* messages = nullptr;
  bool away = false;  // left with something outstanding
  volatile int want_arm = 0;
  // of the last receive waited for, or message probed
  int last_tag = -1;
  int last_source = -1;
  std::int64_t last_size = 0;
};
[[gnu::visibility("hidden")]] extern Library* g_library;

// MP_ERR_*, with a sentence in g_last_error.
int fail_peer(int peer, int error);
int no_memory(const char* what);
int start_fault(StartFault fault, const char* error);

// Behind the start of the library's process: queues, and what moves them. MP_OK or MP_ERR_*.
int start_messages(Library& l);
void free_library();

// Gate held. Whether something is left that should move while the application computes.
void tell_outstanding(Library& l);

// One call of the application: the gate is held from here to its end, and on the way out progress
// outside is arranged.
class Call {
 public:
  explicit Call(Library& library) : library_(library) {
    library_.engine->gate().enter();
    if (library_.away) library_.controller.came_back();
    library_.away = false;
    library_.engine->refill();
  }
  ~Call() {
    Library& l = library_;
    tell_outstanding(l);
    const bool leave = l.want_arm != 0;
    l.away = leave;
    l.engine->gate().leave();
    if (leave) l.controller.leave_library();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Library& library_;
};

// Moves everything until done(ns since anything moved) says so; gate held. `peer`: whose news is
// awaited, or -1. False: a message for which there is no memory stands before what is awaited.
template <typename Done>
bool wait_until(Library& l, int peer, Done done) {
  Engine& engine = *l.engine;
  l.begin_wait();
  engine.set_outstanding(true);
  bool reached = peer < 0 || peer == l.rank, is_done = false;
  l.wait([&] {
    if (peer >= 0) engine.prefer(peer);
    const int moved = engine.poll();
    const bool room = l.messages->service();
    const std::int64_t now = l.net.now_ns();
    if (moved > 0) l.waiting.news_at(now);
    const std::int64_t quiet_ns = l.waiting.quiet_ns(now);
    is_done = done(quiet_ns);
    if (is_done || !room) return WaitLoop::done();
    if (!reached && quiet_ns >= kReachAfterNs) {
      reached = true;
      if (engine.peer_error(peer) == 0) engine.reach(peer);
    }
    return WaitLoop::rest(now);
  });
  return is_done;
}

// Gate held, all of them; MP_OK or MP_ERR_*.
int start_send(Library& l, const void* buffer, std::uint64_t bytes, int dest, std::uint64_t tag,
               MessageRequest*& r);
int start_receive(Library& l, void* buffer, std::uint64_t room, int src, std::int64_t tag,
                  MessageRequest*& r);
// The result of a request that is no longer pending; gives it back.
int finish(Library& l, MessageRequest* r);
// `may_keep`: a send may end by copying.
int wait_for(Library& l, MessageRequest* r, bool may_keep);
int barrier(Library& l);

}  // namespace mplite::library
