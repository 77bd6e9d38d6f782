// What tools see of the device: knobs and counters by number, for the tool functions of ch_lite.h.
// boot.cpp says when there is something to see. Ordinary context only.
#pragma once
#include "mplite/config/knobs.h"
#include "mplite/engine/gate.h"
#include "mplite/observe/counters.h"

namespace ch_lite {

// The knobs in force; copied.
void tools_take_knobs(const mplite::Knobs& knobs);
// The counters from now on, read inside the gate. Both must stay until tools_leave().
void tools_watch(mplite::Gate& gate, const mplite::Counters& counters);
// The engine ends: the counters keep their last values, what is held now is nothing.
void tools_leave();

}  // namespace ch_lite
