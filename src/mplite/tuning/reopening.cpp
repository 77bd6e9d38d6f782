// While armed, when the timer is to unblock the signal again.
#include "mplite/tuning/reopening.h"

namespace mplite {

std::int64_t Reopening::armed_late() {
  resting_ = false;
  recheck_ns_ = kMinNs;
  return recheck_ns_;
}

std::int64_t Reopening::opened(bool was_closed) {
  ++times_;
  if (was_closed) return armed_late();
  resting_ = false;
  return put_off();
}

std::int64_t Reopening::put_off() {
  if (recheck_ns_ == 0) recheck_ns_ = kMinNs / 4;
  recheck_ns_ = recheck_ns_ < kMaxNs / 4 ? recheck_ns_ * 4 : kMaxNs;
  return recheck_ns_;
}

}  // namespace mplite
