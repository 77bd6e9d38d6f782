// Which ch_lite this is. Used by lite_info.cpp; for `strings libmpi.so`, too.
#pragma once

namespace mplite {

// "ch_lite 0.1.0, wire version N": the package's version and that of the wire (frame.h), which has
// to be the same on all ranks. The text is in every library that this is linked into, whether
// somebody calls for it or not. Static.
const char* version_text();

}  // namespace mplite
