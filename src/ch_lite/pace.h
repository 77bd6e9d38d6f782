// How often a host that polls shared memory as well as the device makes the device look at its sockets. Pure decisions; used by lite_progress (api.cpp).
#pragma once
#include <cstdint>

namespace ch_lite {

// A look costs a system call, shared memory answers in a fraction of that: a host that spins for a message in shared memory must not pay for the sockets each time. Which of the
// two it waits for, nobody tells us; but the last waits do. While they ended without anything having happened here, the sockets are looked at only now and then; the first
// thing that happens here ends that.
// Ordinary context, serialised as the calls of ch_lite.h are.
class Pace {
 public:
  static constexpr unsigned kWaitsNeeded = 4;    // in a row, ended by shared memory
  static constexpr unsigned kQuietStride = 128;  // polls per look while nothing is outstanding here: what comes is unasked
  static constexpr unsigned kBusyStride = 16;    // while something is
  // Calls that polled once and left, in a row: MPI_Test in a loop, whose only progress is this. With something outstanding, and without.
  static constexpr unsigned kTestsBusy = 4;
  static constexpr unsigned kTestsQuiet = 64;

  // Off: every call looks. On: the host has shared memory.
  void set_on(bool on) { on_ = on; }

  // The host polls, for the `poll`th time (from 1) since the application was outside; `events` as Device::events(). True: look at the sockets.
  bool look(int poll, std::uint64_t events, bool outstanding) {
    if (poll == 1) begin();
    polls_ = poll;
    if (events != events_) {
      events_ = events;
      elsewhere_ = 0;
      here_ = true;
    }
    if (!seldom() || once_ >= (outstanding ? kTestsBusy : kTestsQuiet)) return true;
    if (++skipped_ < (outstanding ? kBusyStride : kQuietStride)) return false;
    skipped_ = 0;
    return true;
  }
  // A look of now has to be at everything: the next one is far away.
  bool seldom() const { return on_ && elsewhere_ >= kWaitsNeeded; }
  // Counts the application's visits that polled.
  unsigned waits() const { return waits_; }

 private:
  void begin() {
    ++waits_;
    if (polls_ > 1) {
      once_ = 0;
      elsewhere_ = here_ ? 0 : elsewhere_ < kWaitsNeeded ? elsewhere_ + 1 : elsewhere_;
    } else if (once_ < kTestsQuiet) {
      ++once_;
    }
    here_ = false;
  }

  std::uint64_t events_ = 0;
  int polls_ = 0;           // of the visit under way, or the last one
  unsigned waits_ = 0;
  unsigned elsewhere_ = 0;  // waits in a row that ended without us
  unsigned once_ = 0;       // visits in a row of one poll
  unsigned skipped_ = 0;
  bool here_ = false;       // something has happened here since the visit began
  bool on_ = false;
};

}  // namespace ch_lite
