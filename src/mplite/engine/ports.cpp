// A table of a few ports, searched from its beginning.
#include "mplite/engine/ports.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace mplite {

Ports::~Ports() { std::free(ports_); }

int Ports::open(std::uint32_t id, const std::uint8_t (&key)[kKeyBytes]) {
  close(id);
  if (count_ == room_) {
    const std::uint32_t room = room_ == 0 ? 8 : 2 * room_;
    auto* grown = static_cast<Port*>(std::realloc(ports_, room * sizeof(Port)));
    if (grown == nullptr) return -ENOMEM;
    ports_ = grown;
    room_ = room;
  }
  Port& port = ports_[count_++];
  port.id = id;
  std::memcpy(port.key, key, kKeyBytes);
  return 0;
}

void Ports::close(std::uint32_t id) {
  for (std::uint32_t i = 0; i < count_; ++i)
    if (ports_[i].id == id) {
      ports_[i] = ports_[--count_];
      return;
    }
}

const std::uint8_t* Ports::key_of(std::uint32_t id) const {
  for (std::uint32_t i = 0; i < count_; ++i)
    if (ports_[i].id == id) return ports_[i].key;
  return nullptr;
}

}  // namespace mplite
