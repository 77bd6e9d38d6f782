// Whether two sets of knobs say the same; their bytes may differ where nothing is.
#pragma once
#include <cstring>

#include "mplite/config/knobs.h"

namespace fuzz {

inline bool same_knobs(const mplite::Knobs& a, const mplite::Knobs& b) {
  for (std::size_t i = 0; i < mplite::knob_count(); ++i) {
    char of_a[2048], of_b[2048];
    if (std::strcmp(mplite::format_knob(i, a, of_a, sizeof of_a),
                    mplite::format_knob(i, b, of_b, sizeof of_b)) != 0)
      return false;
  }
  return true;
}

}  // namespace fuzz
