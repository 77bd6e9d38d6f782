// When progress outside the library is armed: the decisions at a departure and when the timer goes
// off.
#include "mplite/tuning/arming.h"

namespace mplite {

// A timer that is nearly due is put off, unless something gathered waits for it: while the
// application comes and goes it costs a system call then, and not an interrupt in the middle of a
// copy. One that is due much later was to check after an armed signal (reopening.h).
ArmingPolicy::Departure ArmingPolicy::leave(int kind, bool heavy, std::int64_t now_ns, bool timer,
                                            bool owner) {
  if (!timer || grace_.leave(kind, heavy, now_ns) || !owner) return Departure::kArm;
  if (!is_timer_set() || now_ns >= timer_due_ns_ + kOverdueNs) return Departure::kSetTimer;
  const std::int64_t due_in_ns = timer_due_ns_ - now_ns, delay_ns = grace_.backstop_ns();
  if (guarding_ || (due_in_ns > delay_ns / 2 && due_in_ns <= delay_ns)) return Departure::kWatched;
  return Departure::kSetTimer;
}

std::int64_t ArmingPolicy::departure_timer_ns(std::int64_t now_ns) {
  const bool set = is_timer_set() && now_ns < timer_due_ns_ + kOverdueNs;
  if (set && !ends_rest_ && timer_due_ns_ - now_ns <= departure_delay_ns_ / 2) grace_.put_off();
  return departure_delay_ns_ = grace_.backstop_ns();
}

bool ArmingPolicy::guard(std::int64_t now_ns, std::int64_t delay_ns) {
  guarding_ = true;
  const std::int64_t left_ns = timer_due_ns_ - now_ns;
  return is_timer_set() && left_ns > kGatherNs / 2 && left_ns <= delay_ns;
}

bool ArmingPolicy::timer_fired() {
  const bool guarded = guarding_;
  timer_set_.store(false, std::memory_order_relaxed);
  guarding_ = false;
  return guarded;
}

ArmingPolicy::Alarm ArmingPolicy::alarm(std::int64_t now_ns, bool guarded, bool armed,
                                        bool outstanding) {
  if (armed) return {reopening_.is_due() ? Alarm::kOpenAgain : Alarm::kNothing, 0};
  reopening_.found_unarmed();
  if (!grace_.waiting() || !needs_progress(outstanding)) {
    if (!guarded && !ends_rest_) grace_.useless();
    return {Alarm::kNothing, 0};
  }
  if (const std::int64_t left_ns = grace_.until_arm_ns(now_ns); left_ns > 0)
    return {Alarm::kWait, left_ns};
  return {Alarm::kArm, 0};
}

std::int64_t ArmingPolicy::armed_late() {
  grace_.ran_out();
  unarmed_waits_ = 0;
  return reopening_.armed_late();
}

// An application that came and went meanwhile will go again: the helper goes on watching, which is
// cheaper than to be told.
bool ArmingPolicy::helper_alarm(std::int64_t now_ns, bool outstanding) {
  if (!grace_.waiting() || !needs_progress(outstanding)) {
    timer_set_.store(departed_);
    departed_ = false;
    grace_.useless();
    return false;
  }
  if (grace_.until_arm_ns(now_ns) > 0) return false;
  timer_set_.store(false);
  grace_.ran_out();
  return true;
}

}  // namespace mplite
