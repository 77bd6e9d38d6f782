// What a wait says of itself: by itself when it stands still (LITE_STALL), or when it is asked.
// Part of Boot, which calls it when a wait finds nothing; the decision is tuning/stall_watch.h's,
// the words are device/report.h's.
#pragma once
#include <cstdint>

#include "ch_lite/device/device.h"
#include "mplite/engine/engine.h"
#include "mplite/tuning/stall_watch.h"

namespace ch_lite {

class Stall {
 public:
  // `limit_ns` 0: off. `host`: ours.
  void start(std::int64_t limit_ns, mplite::Engine& engine, Device& device, const char* host) {
    watch_.start(limit_ns);
    engine_ = &engine;
    device_ = &device;
    host_ = host;
  }
  bool on() const { return watch_.on(); }

  // Who waits. `number` is another for each wait.
  struct Wait {
    unsigned number = 0;
    bool has_threads = false;      // other threads of the application's may be in MPI
    int (*host_news)() = nullptr;  // of lite_set_host_news, or null
    bool polls = false;            // not one wait, but calls that do not wait, again and again
  };
  // Where on(). Ordinary context, gate free.
  void found_nothing(const Wait& wait, std::int64_t now_ns);
  // The report, on() or not, to stderr or to who asks (runtime/report_socket.h), whose descriptor
  // it closes. The wait has begun at `began_ns`, and had its last news at `moved_ns`.
  void tell(int fd, const Wait& wait, std::int64_t now_ns, std::int64_t began_ns,
            std::int64_t moved_ns) const;
  // Something has moved that the device does not see.
  void moved(std::int64_t now_ns) { watch_.moved(now_ns); }

 private:
  std::uint64_t progress_so_far() const;
  bool has_moved_unseen(const Wait& wait);

  mplite::StallWatch watch_;
  mplite::Engine* engine_ = nullptr;
  Device* device_ = nullptr;
  const char* host_ = "";
  std::uint64_t acknowledged_ = 0;  // by peers, when that was looked at last
};

}  // namespace ch_lite
