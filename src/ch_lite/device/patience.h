// How much a poll that found nothing may rest: by the kind of call that the application is in. Pure
// decisions on lite_call_state (ch_lite.h); used by lite_progress (api.cpp). When to rest, and how
// long, is decided after that by how long there has been no news (mplite/tuning/wait.h).
#pragma once
#include <cstdint>

#include "ch_lite/ch_lite.h"
#include "ch_lite/core/options.h"

namespace ch_lite {

// Beyond this many idle polls in one scan the next one may sleep as well. A poll costs 0.3 to 1 us,
// a sleep of a long wait lasts 100 ms: a process that waits with an array of a million null
// requests takes about 1 % of its core.
constexpr unsigned kPollsPerSleep = 1024;

// `call` polls and has found nothing. Not for the first poll since the application was outside,
// which never rests unless it follows an operation of the same call.
inline Rest may_rest(lite_call_state& call) {
  const unsigned poll = call.idle_polls++;
  switch (call.kinds & 3) {
    case LITE_MAY_NOT_BLOCK:
      // It does not wait itself: a loop that goes round again is one of a call inside of it, by a
      // callback of the application (MPI_Wait in the poll function of a generalized request).
      if (call.scans >= 2) return Rest::kSleep;
      return poll == 0 ? Rest::kYield : Rest::kNone;
    case LITE_SCANS:
      // The news, if there was any, came in the middle of a scan: the end of that one (scans == 1)
      // says nothing of the requests in front of that place.
      if (call.scans >= 2) return poll % kPollsPerSleep == 0 ? Rest::kSleep : Rest::kNone;
      return call.scans == 1 && poll == 0 ? Rest::kYield : Rest::kNone;
    default: return Rest::kSleep;
  }
}

// MPI_Improbe or MPI_Test in a loop. Who only asks keeps the ranks that share the core from what it
// asks for and, with several application threads, the host's lock from those that wait for it, as
// it has that back before they are awake: for whole time slices. So every so often it gives the
// core away, by which an application that computes between two calls loses next to nothing. Eight
// threads in each of four ranks on two busy cores, 60 messages each: 4.6 to 5.9 s when none yields,
// 0.3 s when every 16th call does, 0.3 to 0.5 s when each does; 0.4 to 0.6 s with MPI_Sendrecv.
constexpr unsigned kFruitlessPerYield = 16;

// `call` has found nothing, and is not going to wait. True: it gives the core away on its way out.
inline bool is_fruitless_too_often(lite_call_state& call) {
  return (call.kinds & 3) == LITE_MAY_NOT_BLOCK && ++call.fruitless % kFruitlessPerYield == 0;
}

// The first poll since the application was outside. What waited inside of a call that may not block
// has ended by that, if anything did.
inline void note_return(lite_call_state& call) {
  if ((call.kinds & 3) == LITE_MAY_NOT_BLOCK) call.scans = 0;
}

// Something has completed or arrived: whoever scans has to look at everything again.
inline void note_news(lite_call_state& call) { call.scans = 0; }

}  // namespace ch_lite
