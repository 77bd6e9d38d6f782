// The address table: what a process publishes of itself (its card), and what it reads of its
// peers'. Used at init by the layer that starts an engine; the table itself travels through PMI (or
// whatever the host has). Ordinary context only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mplite/base/address.h"
#include "mplite/runtime/interface_choice.h"
#include "mplite/runtime/secret_file.h"

namespace mplite {

class Net;
struct PeerAddress;  // engine.h

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
  std::uint8_t reserved[23];               // zero
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

// Fills a card for the listener's address; the share from net.random, the host name from the
// system. The name's key, the credits, the fingerprint and the protection are left zero.
void make_card(Net& net, const InterfaceChoice& choice, Card& card);

// Makes a card (kCardBytes) of the reason, which is cut to what there is room for.
void make_failed_card(const char* reason, void* card);

// Whether this is the card of a process that cannot start; then `sentence` is "rank 1 on host b
// cannot start: REASON". A card may be untrue but not unsound: `card` may hold anything.
bool is_failed_card(const void* card, int rank, char* sentence, std::size_t size);

// The lowest rank of the table whose card says that it cannot start, or -1; `sentence` as above.
int find_failed(const void* table, int size, char* sentence, std::size_t sentence_size);

// How many ranks of the table, oneself included, are on this machine and may run on just the same
// processors: what has to share them. Ranks that are bound to processors of their own do not count.
int ranks_sharing_place(const void* table, int size, int rank);

// Reads `size` cards in rank order, checks them, and computes the job's secret: keyed BLAKE2b over
// all shares; the key is a label, or made of `file`, which all ranks must have the same of (or
// none). A link-local address gets the scope of this rank's own interface. An address that two
// hosts have (behind NAT) leads to neither, and is left out where a rank has another one. On a
// fault: `error` says what is wrong, outputs unchanged but `peers`. kTable: a rank that cannot
// start, cards that contradict one another, both named. `table` needs no alignment. Allocates.
StartFault decode_table(const void* table, int size, int rank, const SecretFile& file,
                        PeerAddress* peers, std::uint8_t (&secret)[kSecretBytes], char* error,
                        std::size_t error_size);

}  // namespace mplite
