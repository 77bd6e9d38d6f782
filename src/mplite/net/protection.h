// How much of a connection's stream is protected on its way (LITE_ENCRYPT), as both ends agree on
// it in the handshake. Used by handshake.h, record.h and the table of knobs.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mplite {

enum class Protection : std::uint8_t {
  kOff = 0,
  kAuth = 1,  // each record has a tag: what was changed, repeated or left out is found out
  kOn = 2,    // and its content cannot be read
};

// A byte of the handshake: the Protection, and whether the processor has instructions for
// AES-256-GCM. The kinds have to be equal on both sides; AES is used where both have it, ChaCha20
// and Poly1305 otherwise.
inline constexpr std::uint8_t kProtectionKind = 3, kProtectionAes = 4;
inline Protection protection_of(std::uint8_t offer) {
  return static_cast<Protection>(offer & kProtectionKind);
}

// Of one connection: what was agreed on, and a key for each direction, which no other connection
// has.
inline constexpr std::size_t kStreamKeyBytes = 32;
struct StreamKeys {
  std::uint8_t agreed = 0;
  std::uint8_t send[kStreamKeyBytes];
  std::uint8_t receive[kStreamKeyBytes];
};

}  // namespace mplite
