// The job of lite-mprun: its ranks, and what it hears from and tells them. Used by mprun.cpp.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mplite/launch/mprun_remote.h"
#include "mplite/runtime/wireup.h"

namespace mprun {

// The remote shell of a rank on another host; Rank::fd is its standard input and output.
struct Remote {
  std::string host;
  Greeting greeting{kAgentWord};
  std::int64_t give_up_ns = 0;  // 0: no deadline; until the agent's word has come, and for the
                                // shell's end once it has said its last
  FrameReader reader;
  std::vector<std::uint8_t> out;  // for the agent
  std::size_t written = 0;
  bool table_sent = false;
  int status = -1;  // the rank's own, once it has ended
};

struct Rank {
  pid_t pid = -1;
  int fd = -1;            // our end of the pair; -1 once the table went out or the rank ended
  std::size_t heard = 0;  // bytes of its card
  std::size_t told = 0;   // bytes of the table
  bool running = false;
  std::unique_ptr<Remote> remote;
};

struct Job {
  std::vector<Rank> ranks;
  std::vector<mplite::Card> table;
  int running = 0;
  int cards = 0;   // complete ones
  int status = 0;  // what we shall exit with
  bool ending = false;
  std::int64_t kill_at_ns = 0;
  std::vector<std::string> hosts;       // one per rank; empty: all on this one
  std::vector<std::string> settings;    // of -x
  std::int64_t connect_timeout_ns = 0;  // for a remote shell to start the agent
  std::size_t input_passed = 0;         // to a rank 0 on another host
  bool input_open = true;
};

// Only our own children, by their ids; an id stays theirs until we have waited for it.
void signal_all(const Job& job, int signal);
// The job ends with this status, its ranks by `signal`, unless it is ending already.
void end_job(Job& job, int status, int signal);

// Moves what this rank's descriptor allows; serve_remote: of one on another host.
void serve(Job& job, int index);
void serve_remote(Job& job, int index);
// A deadline of this rank on another host has passed.
void give_up_remote(Job& job, int index);

// Our standard input, for a rank 0 on another host.
bool wants_input(const Job& job);
void pass_input(Job& job);

}  // namespace mprun
