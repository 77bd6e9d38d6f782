// One lane's credit between this process and one peer.
#include "credits.h"

#include <algorithm>

#include "blocks.h"
#include "check.h"

namespace ch_lite {

std::uint64_t message_charge(std::uint64_t bytes) { return kMessageOverheadBytes + Blocks::footprint(bytes); }

std::uint64_t credit_window(std::uint64_t credits_bytes, std::uint64_t unexpected_max_bytes, int size) {
  const std::uint64_t lanes = 2 * static_cast<std::uint64_t>(std::max(size, 1));
  return std::max(std::min(credits_bytes, unexpected_max_bytes / lanes), kWindowFloorBytes);
}

bool Credits::spend(std::uint64_t charge) {
  if (charge > left_) return false;
  left_ -= charge;
  return true;
}

bool Credits::refund(std::uint64_t bytes) {
  if (bytes > window_ - left_) return false;
  left_ += bytes;
  return true;
}

bool Credits::accept(std::uint64_t charge) {
  if (charge > window_ - held_ - owed_) return false;
  held_ += charge;
  return true;
}

void Credits::release(std::uint64_t charge) {
  CHLITE_CHECK(charge <= held_);
  held_ -= charge;
  owed_ += charge;
}

std::uint32_t Credits::take_owed() {
  const auto now = static_cast<std::uint32_t>(std::min<std::uint64_t>(owed_, UINT32_MAX));
  owed_ -= now;
  return now;
}

}  // namespace ch_lite
