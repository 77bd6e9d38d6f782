// The ports of this process: ids and keys by which processes of other jobs may connect. Used by the
// engine and, for what a port's name says, by the hosts of dynamic processes.
#pragma once
#include <cstdint>

#include "mplite/net/process_name.h"

namespace mplite {

// Ordinary context, gate held: the handler puts callers at ports off (Handshaker::recognise).
class Ports {
 public:
  Ports() = default;
  ~Ports();
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;

  // From now on processes that know `key` may connect. One port per id: an older one is closed. 0
  // or -ENOMEM.
  int open(std::uint32_t id, const std::uint8_t (&key)[kKeyBytes]);
  void close(std::uint32_t id);
  // kKeyBytes, until the next open or close; null: there is no such port.
  const std::uint8_t* key_of(std::uint32_t id) const;

 private:
  struct Port {
    std::uint32_t id;
    std::uint8_t key[kKeyBytes];
  };
  Port* ports_ = nullptr;
  std::uint32_t count_ = 0, room_ = 0;
};

}  // namespace mplite
