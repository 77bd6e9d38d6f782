// The option --job of lite-info: what the ranks of this host's jobs wait for. Used by
// lite_info.cpp.
#pragma once

namespace mplite {

// -1: the command line does not have it. Else what to exit with; all has been said.
int run_job_option(int argc, char** argv);

}  // namespace mplite
