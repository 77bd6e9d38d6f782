// The address table: what a process publishes of itself (its card), and what it reads of its
// peers'. Used at init by the layer that starts an engine; the table itself travels through PMI (or
// whatever the host has). Ordinary context only.
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/base/address.h"
#include "mplite/runtime/card.h"
#include "mplite/runtime/interface_choice.h"
#include "mplite/runtime/secret_file.h"

namespace mplite {

class Net;
struct PeerAddress;  // engine.h

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
// hosts have (behind NAT) leads to neither, and is left out where a rank has another one. Finds out
// which ranks have no family in common with this one (PeerAddress::apart). On a
// fault: `error` says what is wrong, outputs unchanged but `peers`. kTable: a rank that cannot
// start, cards that contradict one another, both named. `table` needs no alignment. Allocates.
StartFault decode_table(const void* table, int size, int rank, const SecretFile& file,
                        PeerAddress* peers, std::uint8_t (&secret)[kSecretBytes], char* error,
                        std::size_t error_size);

}  // namespace mplite
