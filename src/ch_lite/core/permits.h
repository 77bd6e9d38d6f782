// What the host has answered about processes of other jobs: who may send under which envelope.
// Asked in ordinary context, looked up by the handler.
// Used by remote_process.cpp, gate held.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "mplite/base/signal_safe.h"

namespace ch_lite {

// A set of (peer, context, source). Forgetting is always right: the host is asked again.
class Permits {
 public:
  Permits() = default;
  ~Permits() { std::free(slots_); }
  Permits(const Permits&) = delete;
  Permits& operator=(const Permits&) = delete;

  bool has(int peer, std::uint32_t context, std::int32_t source) const MPLITE_SIGNAL_SAFE {
    if (slots_ == nullptr) return false;
    for (std::uint32_t i = hash(peer, context, source);; ++i) {
      const Slot& s = slots_[i & (room_ - 1)];
      if (!s.taken) return false;
      if (s.peer == peer && s.context == context && s.source == source) return true;
    }
  }

  // Ordinary context. Without memory nothing is remembered.
  MPLITE_ORDINARY void add(int peer, std::uint32_t context, std::int32_t source) {
    if (has(peer, context, source) || !make_room()) return;
    put({true, peer, context, source});
  }

  void clear() {
    for (std::uint32_t i = 0; i < room_; ++i) slots_[i].taken = false;
    count_ = 0;
  }

 private:
  struct Slot {
    bool taken;
    int peer;
    std::uint32_t context;
    std::int32_t source;
  };
  static constexpr std::uint32_t kRoomMin = 64, kRoomMax = 65536;  // powers of two

  static std::uint32_t hash(int peer, std::uint32_t context,
                            std::int32_t source) MPLITE_SIGNAL_SAFE {
    std::uint64_t h =
        (static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)) << 32 | context) *
        0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ static_cast<std::uint32_t>(source)) * 0xbf58476d1ce4e5b9u;
    return static_cast<std::uint32_t>(h >> 32);
  }
  void put(const Slot& slot) {
    std::uint32_t i = hash(slot.peer, slot.context, slot.source);
    while (slots_[i & (room_ - 1)].taken) ++i;
    slots_[i & (room_ - 1)] = slot;
    ++count_;
  }
  // At least half of the slots stay free.
  bool make_room() {
    if (count_ < room_ / 2) return true;
    if (room_ == kRoomMax) {
      clear();
      return true;
    }
    const std::uint32_t room = room_ == 0 ? kRoomMin : 2 * room_;
    auto* made = static_cast<Slot*>(std::calloc(room, sizeof(Slot)));
    if (made == nullptr) return false;
    Slot* const old = slots_;
    const std::uint32_t old_room = room_;
    slots_ = made;
    room_ = room;
    count_ = 0;
    for (std::uint32_t i = 0; i < old_room; ++i)
      if (old[i].taken) put(old[i]);
    std::free(old);
    return true;
  }

  Slot* slots_ = nullptr;
  std::uint32_t room_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace ch_lite
