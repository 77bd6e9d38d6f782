// Whether to arm at once on the way out of the library: learned from what followed the last calls
// of the same kind.
#include "mplite/tuning/grace.h"

namespace mplite {

bool Grace::leave(int kind, std::int64_t now_ns) {
  came_back(now_ns);
  kind_ = kind >= 0 && kind < kKinds ? kind : 0;
  left_ns_ = now_ns;
  const bool trusted = on_ && quick_[kind_] >= needed_[kind_];
  waiting_.store(trusted, std::memory_order_relaxed);
  return !trusted;
}

void Grace::came_back(std::int64_t now_ns) {
  waiting_.store(false, std::memory_order_relaxed);
  if (left_ns_ == 0) return;
  const std::int64_t away_ns = now_ns - left_ns_;
  left_ns_ = 0;
  if (away_ns >= kBackstopMinNs) {
    lost_trust();
  } else if (away_ns >= kSoonNs) {
    quick_[kind_] /= 2;
  } else if (quick_[kind_] < kNeededMax + kRareAfter) {
    ++quick_[kind_];
  }
}

// The application stayed away.
bool Grace::lost_trust() {
  const bool lost = quick_[kind_] < needed_[kind_] + kRareAfter;
  quick_[kind_] = lost ? 0 : needed_[kind_];
  return lost;
}

void Grace::ran_out() {
  waiting_.store(false, std::memory_order_relaxed);
  left_ns_ = 0;
  if (lost_trust())
    needed_[kind_] = needed_[kind_] < kNeededMax / 4 ? needed_[kind_] * 4 : kNeededMax;
  backstop_ns_ = backstop_ns_ > kBackstopMinNs * 4 ? backstop_ns_ / 4 : kBackstopMinNs;
  halves_ = 0;
}

void Grace::useless() {
  waiting_.store(false, std::memory_order_relaxed);
  go_by(2);
}

void Grace::put_off() { go_by(1); }

void Grace::go_by(std::uint32_t halves) {
  halves_ += halves;
  if (halves_ < kHalvesToDouble) return;
  halves_ = 0;
  backstop_ns_ = backstop_ns_ < kBackstopMaxNs / 2 ? backstop_ns_ * 2 : kBackstopMaxNs;
}

}  // namespace mplite
