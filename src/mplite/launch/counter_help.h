// What the counters of LITE_STATS mean, from their table (stats.h): lite-info --explain.
#pragma once
#include <cstdio>

namespace mplite {

void print_counter_help(std::FILE* out);
void print_counter_help_json(std::FILE* out);

}  // namespace mplite
