// How often a host that polls shared memory as well as the device makes the device look at its
// sockets. Pure decisions; used by lite_progress (api.cpp).
#pragma once
#include <cstdint>

namespace mplite {

// A look costs a system call, shared memory answers in a fraction of that: a host that spins for a
// message in shared memory must not pay for the sockets each time. Which of the two it waits for,
// nobody tells us; but the last waits do. While they ended without anything having happened here,
// the sockets are looked at only now and then; the first thing that happens here ends that.
// Ordinary context, serialised as the calls of ch_lite.h are.
class Pace {
 public:
  static constexpr unsigned kWaitsNeeded = 4;  // in a row, ended by shared memory
  // Polls (of 15 ns and more) per look, which costs as much as 50 of them.
  static constexpr unsigned kQuietStride =
      2048;  // while nothing is outstanding here: what comes is unasked
  static constexpr unsigned kBusyStride = 512;  // while something is
  static constexpr unsigned kLongStride = 16;   // once a wait has outlasted that
  // Calls that polled once and left, in a row: MPI_Test in a loop, whose only progress is this.
  // With something outstanding, and without.
  static constexpr unsigned kTestsBusy = 4;
  static constexpr unsigned kTestsQuiet = 64;

  // Off: every call looks. On: the host has shared memory.
  void set_on(bool on) { on_ = on; }

  // The host polls; it is the `call`th call (from 1) since the application was outside. `left`:
  // what is left of skip(); `events` as Device::events(). True: look at the sockets.
  bool look(int call, int left, std::uint64_t events, bool outstanding) {
    const unsigned skipped = left < skip_ ? static_cast<unsigned>(skip_ - left)
                                          : 0;  // all of them in the visit of the last call
    if (skipped > 0) alone_ = false;
    if (call == 1) begin();
    alone_ = call == 1;
    skip_ = 0;
    if (events != events_) {
      events_ = events;
      elsewhere_ = 0;
      here_ = true;
    }
    if (!seldom() || once_ >= (outstanding ? kTestsBusy : kTestsQuiet)) return true;
    const unsigned stride = long_ ? kLongStride : outstanding ? kBusyStride : kQuietStride;
    since_look_ += skipped + 1;
    const bool now = since_look_ >= stride;
    if (now) {
      since_look_ = 0;
      long_ = !alone_;
    }
    skip_ = static_cast<int>((now && long_ ? kLongStride : stride) - since_look_ - 1);
    return now;
  }
  // So many of the next polls need not even call, but for the first one of each visit.
  int skip() const { return skip_; }
  // A look of now has to be at everything: the next one is far away.
  bool seldom() const { return on_ && elsewhere_ >= kWaitsNeeded; }
  // Counts the application's visits that polled.
  unsigned waits() const { return waits_; }

 private:
  void begin() {
    ++waits_;
    if (!alone_) {
      once_ = 0;
      elsewhere_ = here_ ? 0 : elsewhere_ < kWaitsNeeded ? elsewhere_ + 1 : elsewhere_;
    } else if (once_ < kTestsQuiet) {
      ++once_;
    }
    here_ = long_ = false;
  }

  std::uint64_t events_ = 0;
  unsigned waits_ = 0;
  unsigned elsewhere_ = 0;  // waits in a row that ended without us
  unsigned once_ = 0;       // visits in a row of one poll
  unsigned since_look_ = 0;
  int skip_ = 0;
  bool alone_ = true;  // the last call was the only poll of its visit so far
  bool long_ = false;  // there has been a look in this visit
  bool here_ = false;  // something has happened here since the visit began
  bool on_ = false;
};

}  // namespace mplite
