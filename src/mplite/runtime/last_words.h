// The last thing that a process says before it gives up, waited for until its launcher has read it.
#pragma once

namespace mplite {

// Writes "ch_lite: TEXT" as one line to stderr. Where that is a pipe, waits until its reader has
// taken all that is in it, at most `limit_ms`: a launcher that ends the job at one process' word
// (Hydra at PMI_Abort) does so without reading what its pipes still hold. In a step of Slurm 50 ms
// longer. Ordinary context only.
void say_last_words(const char* text, int limit_ms = 1000);

}  // namespace mplite
