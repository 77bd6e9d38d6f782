// Which ranks of an address table can reach each other, and at which of their addresses: what
// decode_table() finds when all cards have been read. Used by wireup.cpp. Ordinary context only.
#pragma once
#include "mplite/runtime/card.h"

namespace mplite {

class BoundedText;
struct PeerAddress;  // engine_options.h

// Each says in `out` what is wrong; `peers` are those of the table.

// Where two ranks that share no network stack have published one address (behind NAT, clones of one
// virtual machine), it leads to neither: they go by their others. A fault where a rank has none.
StartFault leave_out_clashes(const void* table, int size, PeerAddress* peers, BoundedText& out);

// A rank that listens on loopback is reached on its own host only. Every rank sees the same table,
// so either none goes on or all do. Comparing with one such rank is enough: hosts differ from it,
// or all are one.
bool loopback_is_out_of_reach(const PeerAddress* peers, int size, BoundedText& out);

// A scope is a number of an interface of one host: another host's means nothing here, there it is
// our own interface that leads to the peer. False: this rank has none.
bool set_scopes(const void* table, int size, int rank, PeerAddress* peers, BoundedText& out);

// Which ranks can neither be called by this one nor call it, by the families of the addresses:
// PeerAddress::apart.
void find_apart(const void* table, int size, int rank, PeerAddress* peers);

}  // namespace mplite
