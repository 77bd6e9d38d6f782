// When a wait stands still and is to be told of (LITE_STALL): by the time since it began, or since
// something moved in it last. Fed by who waits (ch_lite/boot.cpp), with the clock that it has read
// anyway.
#pragma once
#include <cstdint>

namespace mplite {

class StallWatch {
 public:
  enum Step : std::uint8_t {
    kNothing,
    kLook,  // half of the time is over: what is dear to look at is looked at now, and again before
            // the wait is told of; if it has changed: moved()
    kTell,  // the time is over. The next time after twice as long
  };

  // 0: off.
  void start(std::int64_t limit_ns) { limit_ns_ = limit_ns; }
  bool on() const { return limit_ns_ != 0; }

  // A wait has found nothing, once more. `wait` is another value for each wait; `progress` counts
  // what moves.
  Step found_nothing(unsigned wait, std::uint64_t progress, std::int64_t now_ns) {
    if (began_ns_ == kNever || wait != wait_) {
      wait_ = wait;
      began_ns_ = now_ns;
      progress_ = progress;
      moved(now_ns);
    } else if (progress != progress_) {
      progress_ = progress;
      moved(now_ns);
    }
    const std::int64_t quiet = quiet_ns(now_ns);
    if (quiet >= next_ns_) {
      next_ns_ = 2 * quiet;
      return kTell;
    }
    if (looked_ || quiet < limit_ns_ / 2) return kNothing;
    looked_ = true;
    return kLook;
  }
  // Something has, of which `progress` does not tell.
  void moved(std::int64_t now_ns) {
    moved_ns_ = now_ns;
    next_ns_ = limit_ns_;
    looked_ = false;
  }

  // Of the wait that found nothing last.
  std::int64_t began_ns() const { return began_ns_; }
  std::int64_t quiet_ns(std::int64_t now_ns) const { return now_ns - moved_ns_; }

 private:
  static constexpr std::int64_t kNever = INT64_MIN;

  std::int64_t limit_ns_ = 0;
  unsigned wait_ = 0;
  std::uint64_t progress_ = 0;
  std::int64_t began_ns_ = kNever;
  std::int64_t moved_ns_ = 0;
  std::int64_t next_ns_ = 0;
  bool looked_ = false;
};

}  // namespace mplite
