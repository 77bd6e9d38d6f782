// The device of this process, as started. Used by boot.cpp and jobs.cpp only.
#pragma once
#include <cstdint>

#include "ch_lite/channel/channel_state.h"
#include "ch_lite/device/device.h"
#include "ch_lite/stall.h"
#include "mplite/runtime/job_runtime.h"
#include "mplite/runtime/report_socket.h"

namespace ch_lite {

// One per process, from lite_init_local to lite_finalize_close.
struct Boot : mplite::JobRuntime {
  mplite::ChannelState* channel = nullptr;
  Device* device = nullptr;
  bool thread_multiple = false;
  bool shared_memory = false;  // the host waits for that, too
  int told_peer = -1;          // the lost peer that was told of last
  // The last error, which is the loss of that peer, on stderr; of one peer once. At once: what MPI
  // does next may be an abort, or end in a text that MPI_MAX_ERROR_STRING cuts.
  void tell_of_lost_peer(int peer);
  // waiting
  unsigned wait_noted = 0, wait_seen = 0;
  std::int64_t wait_began_ns = 0;  // kNotKnown: it is new, and the clock has not been read since
  std::int64_t wait_moved_ns = 0;  // the last time in it that bytes had come or gone
  std::uint64_t wait_bytes = 0;
  static constexpr std::int64_t kNotKnown = -1;
  Stall stall;
  mplite::ReportSocket reports;
  // A wait has found nothing, by the clock. `bytes`: that came and went so far.
  void note_wait(std::int64_t now_ns, std::uint64_t bytes) {
    if (wait_began_ns == kNotKnown) wait_began_ns = wait_moved_ns = now_ns;
    if (bytes != wait_bytes) wait_moved_ns = now_ns;
    wait_bytes = bytes;
  }
  // the host's work (host_work.cpp)
  int (*host_progress)() = nullptr;
  int (*host_pending)() = nullptr;
  std::uint64_t host_activity_seen = 0;
  std::int64_t reach_ns = 0;  // when peers that are waited for are looked for next
};
[[gnu::visibility("hidden")]] extern Boot* g_boot;

}  // namespace ch_lite
