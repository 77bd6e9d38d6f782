// The option of lite-info that is about counters: --explain. Used by lite_info.cpp.
#pragma once

namespace mplite {

// -1: the command line does not have it. Else what to exit with; all has been said.
int run_counter_options(int argc, char** argv);

}  // namespace mplite
