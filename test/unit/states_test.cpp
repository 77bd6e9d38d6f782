// states.h: which changes of state are legal, that the others end the process, and that the trace
// hears of each.
#include "mplite/engine/states.h"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include "run_tests.h"

using namespace mplite;

namespace {

// The ways that a connection and a peer go; any state but kFree may end.
constexpr ConnectionState kOurs[] = {
    ConnectionState::kFree,        ConnectionState::kConnecting, ConnectionState::kAwaitChallenge,
    ConnectionState::kAwaitAccept, ConnectionState::kUp,         ConnectionState::kBroken};
constexpr ConnectionState kTheirs[] = {ConnectionState::kFree, ConnectionState::kAwaitHello,
                                       ConnectionState::kAwaitProof, ConnectionState::kUp,
                                       ConnectionState::kBroken};

template <std::size_t N>
bool follows(const ConnectionState (&way)[N], ConnectionState from, ConnectionState to) {
  for (std::size_t i = 0; i + 1 < N; ++i)
    if (way[i] == from && way[i + 1] == to) return true;
  return false;
}

// How the process ended that made the change: 0, or a signal.
template <typename State, typename... Rest>
int end_of(State from, State to, Rest... rest) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGILL, SIG_DFL);
    std::signal(SIGTRAP, SIG_DFL);
    change_state(from, to, rest...);
    _exit(from == to ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

START_TEST(connection_goes_one_of_two_ways_or_ends) {
  int legal = 0;
  for (int i = 0; i < kConnectionStates; ++i)
    for (int j = 0; j < kConnectionStates; ++j) {
      const auto from = static_cast<ConnectionState>(i), to = static_cast<ConnectionState>(j);
      const bool ends = from != ConnectionState::kFree && to == ConnectionState::kFree;
      const bool expected = ends || follows(kOurs, from, to) || follows(kTheirs, from, to);
      ck_assert_msg(is_legal(from, to) == expected, "from %d to %d", i, j);
      legal += expected;
    }
  ck_assert_int_eq(legal, 15);
}
END_TEST

START_TEST(peer_that_is_lost_or_gone_begins_anew_only_as_another_process) {
  for (int i = 0; i < kPeerStates; ++i) {
    const auto state = static_cast<PeerState>(i);
    const bool over = state == PeerState::kLost || state == PeerState::kGone;
    ck_assert_int_eq(is_legal(state, PeerState::kIdle), over);
    ck_assert_int_eq(is_legal(state, PeerState::kLost), !over);
    ck_assert_int_eq(is_legal(state, PeerState::kGone), !over);
    ck_assert_int_eq(is_legal(state, PeerState::kUp), state == PeerState::kMaking);
    ck_assert_int_eq(is_legal(state, PeerState::kMaking),
                     state == PeerState::kIdle || state == PeerState::kUp);
  }
}
END_TEST

START_TEST(legal_change_is_made) {
  ConnectionState c = ConnectionState::kFree;
  for (const ConnectionState to : kTheirs)
    if (to != c) {
      change_state(c, to, -1, 7);
      ck_assert(c == to);
    }
  PeerState p = PeerState::kIdle;
  change_state(p, PeerState::kMaking, 3, 0);
  change_state(p, PeerState::kLost, 3, 5);
  ck_assert(p == PeerState::kLost);
}
END_TEST

START_TEST(change_that_is_not_legal_ends_the_process) {
  ck_assert_int_ne(end_of(ConnectionState::kFree, ConnectionState::kUp, 0, 0), 0);
  ck_assert_int_ne(end_of(ConnectionState::kUp, ConnectionState::kAwaitProof, 0, 0), 0);
  ck_assert_int_eq(end_of(ConnectionState::kUp, ConnectionState::kFree, 0, 0), 0);
  ck_assert_int_ne(end_of(PeerState::kLost, PeerState::kUp, 0, 0), 0);
  ck_assert_int_eq(end_of(PeerState::kUp, PeerState::kLost, 0, 0), 0);
}
END_TEST

}  // namespace

int main() { return run_tests("states"); }
