// A job of one rank that was meant to be one rank of several: its launcher speaks another protocol
// than this MPI, so that every process is a job of its own. Told by what launchers put into the
// environment. Asked by ch_lite/boot.cpp at the start of such a job.
#pragma once
#include <cstddef>

namespace mplite {

// `environment`: as getenv(3). Null, or a sentence with the cure in `text`: only in one of the
// processes that were started together, so that it is said once.
const char* doubt_lone_rank(const char* (*environment)(const char* name), char* text,
                            std::size_t size);

}  // namespace mplite
