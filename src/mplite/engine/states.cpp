// The tables of legal changes, and the changes.
#include "mplite/engine/states.h"

#include "mplite/observe/trace.h"

namespace mplite {
namespace {

// old state (row) -> new state (column): kFree, kConnecting, kAwaitChallenge, kAwaitAccept,
// kAwaitHello, kAwaitProof, kUp, kBroken
constexpr bool kLegal[kConnectionStates][kConnectionStates] = {
    /* kFree           */ {false, true, false, false, true, false, false, false},
    /* kConnecting     */ {true, false, true, false, false, false, false, false},
    /* kAwaitChallenge */ {true, false, false, true, false, false, false, false},
    /* kAwaitAccept    */ {true, false, false, false, false, false, true, false},
    /* kAwaitHello     */ {true, false, false, false, false, true, false, false},
    /* kAwaitProof     */ {true, false, false, false, false, false, true, false},
    /* kUp             */ {true, false, false, false, false, false, false, true},
    /* kBroken         */ {true, false, false, false, false, false, false, false},
};
static_assert(static_cast<int>(ConnectionState::kBroken) + 1 == kConnectionStates);
constexpr const char* kConnectionNames[kConnectionStates] = {
    "free",        "connecting", "await challenge", "await accept", "await hello",
    "await proof", "up",         "broken"};

// The same of a peer: kIdle, kMaking, kUp, kGone, kLost. Back to kIdle only numbers of processes of
// other jobs come, for another process.
constexpr bool kLegalOfPeer[kPeerStates][kPeerStates] = {
    /* kIdle   */ {false, true, false, true, true},
    /* kMaking */ {false, false, true, true, true},
    /* kUp     */ {false, true, false, true, true},
    /* kGone   */ {true, false, false, false, false},
    /* kLost   */ {true, false, false, false, false},
};
static_assert(static_cast<int>(PeerState::kLost) + 1 == kPeerStates);
constexpr const char* kPeerNames[kPeerStates] = {"idle", "making", "up", "gone", "lost"};

}  // namespace

bool is_legal(ConnectionState from, ConnectionState to) {
  return kLegal[static_cast<int>(from)][static_cast<int>(to)];
}

bool is_legal(PeerState from, PeerState to) {
  return kLegalOfPeer[static_cast<int>(from)][static_cast<int>(to)];
}

void change_state(ConnectionState& state, ConnectionState to, int peer, int connection) {
  if (!is_legal(state, to)) __builtin_trap();
  if (g_trace_on)
    trace_state(TraceEvent::kConnectionState, peer, kConnectionNames[static_cast<int>(state)],
                kConnectionNames[static_cast<int>(to)], connection, 0);
  state = to;
}

void change_state(PeerState& state, PeerState to, int peer, int error) {
  if (!is_legal(state, to)) __builtin_trap();
  if (g_trace_on)
    trace_state(TraceEvent::kPeerState, peer, kPeerNames[static_cast<int>(state)],
                kPeerNames[static_cast<int>(to)], -1, error);
  state = to;
}

}  // namespace mplite
