// The states of a connection and of a peer, and the only functions that change them. Used by
// connection.h and the engine.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// What is true in each state; the table of legal changes is in states.cpp.
enum class ConnectionState : std::uint8_t {
  kFree,            // in the pool
  kConnecting,      // ours: connect() is under way
  kAwaitChallenge,  // ours: we said hello
  kAwaitAccept,     // ours: we proved ourselves; nothing but handshake was sent
  kAwaitHello,      // theirs: accepted, nobody known yet; has a deadline
  kAwaitProof,      // theirs: challenged; the rank it claims is not believed yet
  kUp,              // belongs to one peer; frames flow
  kBroken,          // was up: nothing is written, what has come is still read; its stream goes on
                    // over the peer's next connection
};
inline constexpr int kConnectionStates = 8;

enum class PeerState : std::uint8_t {
  kIdle,    // no connection, none wanted
  kMaking,  // somebody wants one, or the last one broke: our attempt is under way, or we gave way
            // in a tie and theirs must come before the deadline
  kUp,      // has a connection
  kGone,    // closed in order: everybody is ending
  kLost,    // given up, with the reason
};
inline constexpr int kPeerStates = 5;

bool is_legal(ConnectionState from, ConnectionState to) MPLITE_SIGNAL_SAFE;
bool is_legal(PeerState from, PeerState to) MPLITE_SIGNAL_SAFE;

// Ends the process where the change is not legal; tells the trace. `peer`: -1, not known yet.
// `connection`: its number in the pool, for the trace. `error`: why, an errno or a fault of loss.h.
void change_state(ConnectionState& state, ConnectionState to, int peer,
                  int connection) MPLITE_SIGNAL_SAFE;
void change_state(PeerState& state, PeerState to, int peer, int error) MPLITE_SIGNAL_SAFE;

}  // namespace mplite
