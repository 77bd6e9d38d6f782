// The ranks of this host's jobs, and what each says that it waits for: found by the names of their
// sockets (runtime/report_socket.h), asked all at once. Used by lite_info_job.h.
#pragma once
#include <string>
#include <vector>

#include "mplite/runtime/report_socket.h"

namespace mplite {

// A process as /proc tells of it.
struct ProcessState {
  std::string command;  // without control characters
  char state = '?';     // as in proc(5): R, S, D, T ...; R if one of its threads runs
  int parent = 0;
  bool may_be_asked = false;  // it is this user's, or this user is root
};
// False: there is none.
bool read_process_state(int pid, ProcessState& state);

struct RankReport {
  ReportSocketName who;
  ProcessState process;
  bool asked = false;  // it is there, and what its name says
  std::string text;    // whole lines without control characters; empty: it has not answered
};

// Processes of this network namespace that this user may ask: `below` itself and those that it has
// started, directly or not; 0: all. By rank within those that one process has started.
std::vector<RankReport> find_ranks(int below);

// Asks all of them, and waits until each has answered, at most `limit_ms`. `process` is as it is
// then; state X: it has ended.
void ask_ranks(std::vector<RankReport>& ranks, int limit_ms);

}  // namespace mplite
