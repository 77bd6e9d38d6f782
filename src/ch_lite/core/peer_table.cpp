// All peers by number.
#include "ch_lite/core/peer_table.h"

#include <algorithm>
#include <cerrno>

namespace ch_lite {
namespace {

// Processes of other jobs at a time; as in the engine.
constexpr std::size_t kRemoteMax = 65536;

}  // namespace

bool PeerTable::start(int size, std::uint64_t window, const std::uint64_t* windows) {
  const auto count = static_cast<std::size_t>(size);
  if (!table_.start(count, count + kRemoteMax)) return false;
  peers_ = table_.data();
  size_ = size;
  window_ = window;
  for (std::size_t i = 0; i < count; ++i)
    for (Credits& credits : peers_[i].credits)
      credits.start(windows != nullptr ? std::min(window, windows[i]) : window);
  return true;
}

bool PeerTable::introduce(int number, std::uint64_t window) {
  // No correct process gives less, and an active message might never fit.
  if (window < kWindowFloorBytes) return false;
  if (number < count()) {
    Peer& p = peers_[number];
    if (!p.is_clean()) return false;
    if (p.lost != 0 && !p.departed) --lost_count_;
    p = Peer();
  } else if (!table_.grow(static_cast<std::size_t>(number) + 1)) {
    return false;
  }
  for (Credits& credits : peers_[number].credits) credits.start(std::min(window_, window));
  return true;
}

bool PeerTable::lose(int number, int error, bool departed) {
  Peer& p = peers_[number];
  if (p.lost != 0) return false;
  p.lost = error != 0 ? error : EPROTO;
  p.departed = departed;
  if (!departed) ++lost_count_;
  return true;
}

}  // namespace ch_lite
