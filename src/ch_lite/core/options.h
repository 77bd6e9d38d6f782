// What whoever boots the device says to it: sizes and knobs, and the hooks that it calls.
// Made by boot.cpp and the tests; kept by Core.
#pragma once
#include <cstdint>

#include "mplite/tuning/tuning.h"

namespace ch_lite {

// How much a poll that found nothing may rest (device/patience.h).
enum class Rest : std::uint8_t {
  kNone,
  kYield,  // may give its core to another rank that shares it, once: a neighbour that computes
           // keeps it for a whole time slice
  kSleep,  // may do what a wait does
};

// For what is gathered it is seen to that it leaves: not, or until it has left, with what is added
// to it meanwhile, or what is gathered so far.
enum class Guard : std::uint8_t { kNone, kUntilItLeaves, kSoFar };

// What the device asks of whoever boots it. Each may be null.
struct DeviceHooks {
  // lite_progress found nothing, again: wait a little (yield, sleep), as far as `allowed`. Ordinary
  // context, gate free.
  void (*idle)(void* arg, Rest allowed) = nullptr;
  // A call that may not block has found nothing: give the core away, if it is time to. Ordinary
  // context, gate free.
  void (*give_way)(void* arg) = nullptr;
  // The application is in a call again, the first one since lite_host_exit_slow. Ordinary context.
  void (*came_back)(void* arg) = nullptr;
  // An error is about to be returned or reported. peer -1: none. error: an errno or 0. what: a
  // literal or nullptr. Ordinary context.
  void (*report)(void* arg, int code, int peer, int error, const char* what) = nullptr;
  // The peer broke the protocol: drop its connection (the channel's lost callback follows).
  // Signal-safe.
  void (*give_up)(void* arg, int peer, int error) = nullptr;
  // The application leaves with something outstanding (lite_hot.want_arm). Ordinary context, gate
  // free.
  void (*leave)(void* arg) = nullptr;
  // Whether guard() is there for what this thread sends. Ordinary context. Null: no.
  bool (*may_gather)(void* arg) = nullptr;
  // The application leaves by a send and will, as it seems or as it has said (`company`), send
  // again at once: sees to it that gathered messages leave soon even so. Ordinary context, gate
  // free, a thread that may gather.
  Guard (*guard)(void* arg, bool company) = nullptr;
  // Whether the caller of lite_progress has nobody to return an error to. Ordinary context, gate
  // free. Null: it has.
  bool (*nobody_listens)(void* arg) = nullptr;
  // Whether polls look at every socket at once: the next look is far away. Ordinary context, gate
  // held.
  void (*look_everywhere)(void* arg, bool on) = nullptr;
  // Once in kProgressPerTick calls of progress() in ordinary context: for what is done by the
  // clock. Gate held.
  void (*tick)(void* arg) = nullptr;
  void* arg = nullptr;
};

struct DeviceOptions {
  int rank = 0;
  int size = 1;
  std::uint64_t short_max = 0;             // bytes; 0 turns the protocol off
  std::uint64_t eager_max = 0;             // bytes; 0 off
  bool eager_auto = false;                 // more than eager_max to peers that receive in time
  mplite::Tuning tuning;                   // heuristics that may act
  std::uint64_t credits_bytes = 0;         // per peer and class of traffic; see credit_window
  std::uint64_t unexpected_max_bytes = 0;  // of unexpected data, over all peers
  const std::uint64_t* windows = nullptr;  // `size` entries, read by start(): the credit window
                                           // that each rank gives; null: all as we do
  bool thread_multiple = false;
  bool notes_age = false;  // of each request, when it was begun: for reports
  DeviceHooks hooks{};
};

}  // namespace ch_lite
