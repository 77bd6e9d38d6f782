// The started process' end of the start-up: what the launcher (mprun.cpp) has put into the
// environment, and the exchange of addresses with it. Used by MP_Init (mplite.cpp) and by hosts
// without a process manager of their own (ch_lite/mpich1/channel_host.cpp). Ordinary context only.
#pragma once
#include <cstddef>

#include "mplite/runtime/process.h"
#include "mplite/runtime/wireup.h"

namespace mplite {

// From MPLITE_RANK, MPLITE_SIZE and MPLITE_FD.
struct Launched {
  int rank = 0;
  int size = 1;
  int fd = -1;
};

// Whether a launcher has started this process: MPLITE_SIZE is set.
bool is_launched();

// False: `error` holds a sentence that names the variable.
bool read_launched(Launched& launched, char* error, std::size_t error_size);

// All of the start: listens, exchanges addresses with the launcher, reads the table, starts the
// engine; without a launcher (fd -1) as a job of one. On a fault `error` holds a sentence, the
// launcher has been told, which ends the job.
StartFault start_launched(Process& process, const Launched& launched, char* error,
                          std::size_t error_size);

// For a process that cannot start: sends its card, if it has made one, and waits at most a second
// for the launcher, which says what is in it and ends the job. Closes the descriptor.
void tell_failure(const Launched& launched, const Card& card);

}  // namespace mplite
