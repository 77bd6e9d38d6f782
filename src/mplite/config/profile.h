// The knobs in force: defaults, the system's settings, a profile (both files of LITE_* variables,
// as scripts/tune writes one), the environment, each overriding what stands before it. Used where
// an engine starts, and by lite_info.cpp.
#pragma once
#include <cstddef>

#include "mplite/config/knobs.h"

namespace mplite {

// What an administrator sets for all users of a host.
inline constexpr char kSystemSettings[] = "/etc/ch_lite.conf";

// Reads the system's settings and the profile that LITE_PROFILE names, as far as they are there,
// and what `get` returns, what mpiexec's -iface sets included. LITE_PROFILE=none: neither file.
// False: `error` (`size` bytes) holds a sentence that names variable or file and line, and `knobs`
// is unchanged. Ordinary context.
bool read_knobs(GetEnv get, Knobs& knobs, char* error, std::size_t size,
                const char* system_settings = kSystemSettings);

// Sets the knobs that `text` has: lines of NAME=VALUE, empty lines, comments that begin with #;
// blanks around name and value do not count. False: as above; `path` is for the sentence.
bool apply_profile(const char* path, const char* text, Knobs& knobs, char* error, std::size_t size);

}  // namespace mplite
