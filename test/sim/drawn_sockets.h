// The socket layer of a simulated rank: the world's, or protected streams on top of it.
#pragma once
#include <cstdint>
#include <memory>

#include "fake_net.h"
#include "mplite/engine/engine_options.h"
#include "mplite/net/protected_net.h"
#include "random.h"

namespace sim {

// One of four, by the low bits: both kinds, with AES (where the processor has it) and without.
inline std::uint8_t offer_of(unsigned which) {
  using mplite::Protection;
  const std::uint8_t offer =
      mplite::protection_offer((which & 1) != 0 ? Protection::kOn : Protection::kAuth);
  return (which & 2) != 0 ? offer : static_cast<std::uint8_t>(offer & ~mplite::kProtectionAes);
}

// Of all ranks of a seed's world, as in EngineOptions: none for every other one. With a generator
// of its own, so that a seed's world stays what it was.
inline std::uint8_t drawn_protection(std::uint64_t seed) {
  Random random(seed ^ std::uint64_t{0x656e} << 48);
  if (random.chance(512)) return 0;
  const unsigned kind = random.chance(512) ? 0 : 1, aes = random.chance(512) ? 2 : 0;
  return offer_of(kind | aes);
}

// `keep`: outlives the engine.
inline mplite::Net& sockets_of(FakeNet& below, std::uint8_t protection,
                               std::unique_ptr<mplite::ProtectedNet>& keep) {
  if (protection == 0) return below;
  keep = std::make_unique<mplite::ProtectedNet>(below);
  if (!keep->start(1 << 20)) __builtin_trap();
  return *keep;
}

}  // namespace sim
