// Whether to arm at once on the way out of the library: learned from what followed the last calls
// of the same kind.
#include "mplite/tuning/grace.h"

#include <utility>

namespace mplite {

bool Grace::leave(int kind, bool heavy, std::int64_t now_ns) {
  came_back(now_ns, true);
  trust_ = &kinds_[heavy ? 1 : 0][kind >= 0 && kind < kKinds ? kind : 0];
  heavy_ = heavy;
  late_ = false;
  left_ns_ = now_ns;
  armed_ = !on_ || trust_->quick < trust_->needed || trust_->unseen >= kUnseenMost;
  waiting_.store(!armed_, std::memory_order_relaxed);
  return armed_;
}

void Grace::came_back(std::int64_t now_ns, bool useful) {
  waiting_.store(false, std::memory_order_relaxed);
  if (left_ns_ == 0) return;
  const std::int64_t away_ns = now_ns - left_ns_;
  const bool late = std::exchange(late_, false);
  left_ns_ = 0;
  if (away_ns < kSoonNs) {
    if (trust_->quick < kNeededMax + kRareAfter) ++trust_->quick;
    return;
  }
  const bool seen = armed_ || late;
  if (!weighs_ || (seen && useful) || (heavy_ && away_ns >= kBackstopMinNs))
    was_useful(away_ns, late);
  else if (seen)
    was_useless(late);
  else if (away_ns >= kUnwatchedNs)
    trust_->quick = 0;  // somebody else has had the timer's signal
  else if (trust_->unseen < kUnseenMost)
    ++trust_->unseen;
}

void Grace::was_useless(bool late) {
  trust_->unseen = 0;
  if (late)
    trust_->patience_ns = std::min(2 * trust_->patience_ns, kPatienceMaxNs);
  else if (trust_->quick < kNeededMax + kRareAfter)
    ++trust_->quick;
}

void Grace::was_useful(std::int64_t away_ns, bool late) {
  trust_->unseen = 0;
  if (late) return distrust();
  if (away_ns >= kBackstopMinNs)
    lost_trust();
  else
    trust_->quick /= 2;
}

// The application stayed away.
bool Grace::lost_trust() {
  const bool lost = trust_->quick < trust_->needed + kRareAfter;
  trust_->quick = lost ? 0 : trust_->needed;
  if (lost) trust_->patience_ns = kBackstopMinNs;
  return lost;
}

void Grace::ran_out() {
  waiting_.store(false, std::memory_order_relaxed);
  late_ = true;
}

void Grace::distrust() {
  if (lost_trust())
    trust_->needed = trust_->needed < kNeededMax / 4 ? trust_->needed * 4 : kNeededMax;
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
