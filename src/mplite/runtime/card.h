// The cards of an address table: what a process publishes of itself. Used by wireup.h,
// table_reach.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "mplite/base/address.h"
#include "mplite/runtime/secret_file.h"

namespace mplite {

// Why a process cannot start.
enum class StartFault {
  kNone,
  kArgument,  // a knob, or what only this rank finds in the table
  kTable,     // the cards: every rank finds that in the same table, so one can speak for all
  kMemory,
  kSystem,  // a system call or library
};

// What a process publishes: its card. Little-endian; the address in network order as in a sockaddr.
inline constexpr std::size_t kCardBytes = 320;
inline constexpr std::uint8_t kFailedFamily =
    0xff;  // in place of 4 or 6: the rest is that of a FailedCard
struct Card {
  std::uint32_t magic;
  std::uint8_t version;
  std::uint8_t family;  // 4 or 6
  std::uint16_t port;
  std::uint32_t
      scope;  // of the publisher's interface when link-local; means nothing on another host
  std::uint32_t pid;
  std::uint8_t address[16];
  std::uint8_t share[kSecretBytes];  // random; all shares together make the job's secret
  char host[64];                     // terminated
  std::uint8_t place[16];     // equal on ranks of one machine that may run on the same processors
  std::uint8_t name_key[32];  // public: what processes of other jobs know it by (process_name.h)
  std::uint64_t credits;      // LITE_CREDITS and LITE_UNEXPECTED_MAX: of both sides' windows a pair
                              // takes the lesser
  std::uint64_t unexpected_max;
  std::uint8_t
      fingerprint[kFingerprintBytes];  // of LITE_SECRET_FILE, see secret_file.h; zero: none
  std::uint8_t network[16];            // equal on ranks that share a network stack; zero: not known
  CompactAddress more[kAddressesMax - 1];  // what may lead here too
  std::uint8_t protection;                 // LITE_ENCRYPT, as a Protection
  std::uint8_t kinds;                      // of addresses of its host (address.h); 0: not known
  std::uint8_t reserved[22];               // zero
};
static_assert(sizeof(Card) == kCardBytes && std::is_trivially_copyable_v<Card>);

// What a process publishes that cannot start: the others wait for its card, and shall not wait for
// ever.
struct FailedCard {
  std::uint32_t magic;
  std::uint8_t version;
  std::uint8_t family;  // kFailedFamily
  std::uint16_t zero;
  char host[64];     // terminated
  char reason[248];  // terminated; one line of printable text
};
static_assert(sizeof(FailedCard) == kCardBytes && std::is_trivially_copyable_v<FailedCard>);

// One of a table, which needs no alignment.
inline Card card_at(const void* table, int rank) {
  Card card;
  std::memcpy(&card, static_cast<const char*>(table) + static_cast<std::size_t>(rank) * sizeof card,
              sizeof card);
  return card;
}

}  // namespace mplite
