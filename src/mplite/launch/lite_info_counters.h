// The options of lite-info that are about counters: --explain and --stats. Used by lite_info.cpp.
#pragma once

namespace mplite {

// -1: the command line has neither. Else what to exit with; all has been said.
int run_counter_options(int argc, char** argv);

}  // namespace mplite
