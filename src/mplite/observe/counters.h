// What the engine and the device count; printed at finalize when LITE_STATS is set.
// Plain words, changed gate held; `signals` and `signals_turned_away` by the handler, and `yields`
// by who waits, gate free: with several threads one may be lost.
#pragma once
#include <cstdint>

namespace mplite {

struct Counters {
  // engine
  std::uint64_t reads = 0, reads_empty = 0;  // receive calls, and those of them that found nothing
  std::uint64_t writes = 0,
                writes_full = 0;  // send calls, and those that took less than was offered
  std::uint64_t waits = 0;        // epoll calls
  std::uint64_t mask_calls = 0;   // signal mask changes and consumed pending signals
  std::uint64_t other_calls = 0;  // sockets, options, registration
  std::uint64_t yields = 0, sleeps = 0;
  std::uint64_t signals = 0,
                signals_turned_away =
                    0;  // handler entries; of these, the ones that found the gate closed
  std::uint64_t handler_rests = 0;  // see handler_share.h
  std::uint64_t thread_wakes = 0;   // of the helper thread
  std::uint64_t host_passes = 0;    // of the host's progress in the helper thread
  std::uint64_t backstops =
      0;  // departures that were not armed and had to be looked at again (grace.h)
  std::uint64_t connections = 0, connections_refused = 0, ties = 0;
  std::uint64_t connections_broken = 0;             // and made again, unless their peer was lost
  std::uint64_t resent_bytes = 0, resume_gaps = 0;  // see engine/kept.h
  std::uint64_t lanes = 0, lanes_lost = 0;          // beside the peers' first ones (lane_set.h)
  std::uint64_t lane_trials = 0, lane_trials_paid = 0;  // of more lanes (lane_policy.h)
  std::uint64_t resent = 0;                             // TCP's segments; see Engine::count_resent
  std::uint64_t frames_in = 0, frames_out = 0, bytes_in = 0, bytes_out = 0;
  std::uint64_t parked = 0;                       // a frame had to wait for a buffer
  std::uint64_t gathered = 0, gathered_late = 0;  // packets that left together with others; times
                                                  // that such left only when the handler looked
  // device: messages and bytes sent by protocol
  std::uint64_t short_msgs = 0, short_bytes = 0;
  std::uint64_t eager_msgs = 0, eager_bytes = 0;
  std::uint64_t rndv_msgs = 0, rndv_bytes = 0;
  std::uint64_t self_msgs = 0, self_bytes = 0;
  std::uint64_t am_msgs = 0, am_bytes = 0;
  std::uint64_t put_msgs = 0, put_bytes = 0, get_msgs = 0, get_bytes = 0;  // one-sided, as origin
  std::uint64_t served_msgs = 0, served_bytes = 0;                         // the same, as target
  std::uint64_t unexpected = 0, unexpected_bytes = 0, unexpected_bytes_peak = 0;
  std::uint64_t credit_stalls = 0;  // sends that went by rendezvous because credit was out
  std::uint64_t truncated = 0;
  std::uint64_t no_memory_in_handler = 0;  // work left to ordinary context because a pool was empty

  std::uint64_t bytes_moved() const { return bytes_in + bytes_out; }
  std::uint64_t system_calls() const {
    return reads + writes + waits + mask_calls + other_calls + yields + sleeps;
  }
};

}  // namespace mplite
