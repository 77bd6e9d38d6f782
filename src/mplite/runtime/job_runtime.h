// The run time of a job, for all hosts: ch4 (ch_lite/boot.cpp), MPICH-1 (ch_lite/mpich1/
// channel_host.cpp) and MP_* (mplite/messages/mplite.cpp). Start: knobs, process, engine
// (process.h), then what moves it outside the library; waiting (wait_loop.h); barrier; end: flush,
// barrier, controller, statistics, trace. Ordinary context only.
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/progress/controller.h"
#include "mplite/runtime/process.h"
#include "mplite/runtime/wait_loop.h"

namespace mplite {

// One per process; a host's own state is derived from it.
struct JobRuntime : Process {
  Controller controller;
  WaitLoop waiting;
  bool leaving = false;  // everybody has: an end of stream is ordinary

  // Behind join(). `progress` moves everything, as Controller::Options says; `want_arm` too.
  // kSystem with a sentence in `error`.
  StartFault start_progress(void (*progress)(void*), volatile int* want_arm, char* error,
                            std::size_t error_size);

  // A wait begins to find nothing.
  void begin_wait() {
    controller.note_wait();
    controller.enter_wait();
    waiting.news();
  }
  // Until `turn` returns WaitLoop::done(). Gate held, behind begin_wait().
  template <typename Turn>
  void wait(Turn turn) {
    waiting.run(*engine, policy, turn);
  }

  // Everybody calls it; gate held. `flush` waits until nothing is queued, `barrier` until everybody
  // is there: 0, or an error of the host's, which ends it. Two barriers: after the first everybody
  // has made the connections that a barrier needs and none is refused any more; from then on an end
  // of stream is ordinary, and after the second everybody knows so and closes.
  template <typename Flush, typename Barrier>
  int leave_together(Flush flush, Barrier barrier) {
    int result = flush();
    if (result == 0) result = barrier();
    if (result != 0) return result;
    leaving = true;
    engine->quiesce();
    (void)barrier();
    return 0;
  }
  // Nothing moves outside the library any more; then statistics and trace, where they are wanted.
  // end_engine() is left.
  void end_progress();

  // That `peer` was lost by `error`, in a sentence with what to check (g_last_error); `what`: what
  // else is known. Returns `code`.
  int fail_lost(int code, int peer, int error, const char* what = nullptr);
};

// Dissemination: in round k everybody tells the one 2^k ahead and hears from the one 2^k behind.
// `exchange(round, to, from)`: 0, or an error, which is returned.
template <typename Exchange>
int disseminate(int rank, int size, Exchange exchange) {
  for (int round = 0, ahead = 1; ahead < size; ++round, ahead *= 2)
    if (const int rc = exchange(round, (rank + ahead) % size, (rank + size - ahead) % size);
        rc != 0)
      return rc;
  return 0;
}

}  // namespace mplite
