// The started process' end of the start-up: what the launcher (mprun.cpp) has put into the environment, and the exchange of addresses with it.
// Used by MP_Init (mplite.cpp) and by hosts without a process manager of their own (ch_lite/channel_host.cpp). Ordinary context only.
#pragma once
#include <cstddef>

#include "wireup.h"

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

// Sends the blob, reads the table (`size` entries) and closes the descriptor. 0 or an errno; EPIPE: the launcher has ended.
int exchange_addresses(const Launched& launched, const AddressBlob& blob, AddressBlob* table);

}  // namespace mplite
