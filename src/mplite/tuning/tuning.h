// LITE_TUNING: the heuristics by name, and a set of them. A value, read once at start and handed
// down to engine, controller and device. docs/tuning.md says what each decides, and where.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mplite {

// X(enumerator, name, what it does). Without any of them every program is correct, and slower.
#define MPLITE_HEURISTICS(X)                                                                       \
  X(kArmingGrace, "arming_grace",                                                                  \
    "leave unarmed after calls that the application soon comes back from; a backstop arms")        \
  X(kArmingByUse, "arming_by_use",                                                                 \
    "unarmed, too, where asynchronous progress was of no use the last times")                      \
  X(kHandlerShare, "handler_share",                                                                \
    "leave the application half of its core, where others' small accesses would take more")        \
  X(kCoalesce, "coalesce", "small messages of many sends in a row to one peer leave in one write") \
  X(kPacing, "pacing", "beside shared memory, poll the sockets seldom while it has all")           \
  X(kWaitPolicy, "wait_policy",                                                                    \
    "choose when to poll, yield and sleep from the cores and ranks of the host")                   \
  X(kYieldCost, "yield_cost", "short sleeps in place of yields that take a time slice")            \
  X(kEpollDetach, "epoll_detach", "take the one busy connection out of epoll")                     \
  X(kPollRcvlowat, "poll_rcvlowat",                                                                \
    "of a detached connection: SO_RCVLOWAT by the length of its messages")                         \
  X(kRepoll, "repoll", "try the detached connection again within one poll")                        \
  X(kFirstLook, "first_look", "delay the first read after a send by the usual wait")               \
  X(kHalves, "halves", "write messages of 58 to 112 KB in two halves, where that is faster")       \
  X(kStreamPadding, "stream_padding",                                                              \
    "pad frames so that kernel memory and user memory have the same cache-line alignment")         \
  X(kFrameGrowth, "frame_growth", "longer frames while the kernel takes all at once")              \
  X(kFrameTries, "frame_tries", "read again at once in the middle of a frame")                     \
  X(kReadAhead, "read_ahead", "behind a long message read ahead only the next header")             \
  X(kLowWater, "low_water", "SO_RCVLOWAT for bulk while the application computes")                 \
  X(kEagerInTime, "eager_in_time", "longer eager messages where receives are posted in time")      \
  X(kSolePosted, "sole_posted", "match against the only posted receive without decoding")          \
  X(kFusedPoll, "fused_poll", "poll and view in one short path for who waits")                     \
  X(kLaneShare, "lane_share", "a frame of long data goes to the lane that will have it out first")

enum class Heuristic : std::uint8_t {
#define MPLITE_HEURISTIC(id, name, text) id,
  MPLITE_HEURISTICS(MPLITE_HEURISTIC)
#undef MPLITE_HEURISTIC
      kCount
};
inline constexpr unsigned kHeuristics = static_cast<unsigned>(Heuristic::kCount);

// All of them by default.
class Tuning {
 public:
  constexpr bool has(Heuristic h) const { return (bits_ >> static_cast<unsigned>(h) & 1) != 0; }
  constexpr Tuning& set(Heuristic h, bool on) {
    const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(h);
    bits_ = on ? bits_ | bit : bits_ & ~bit;
    return *this;
  }
  constexpr bool operator==(const Tuning& other) const { return bits_ == other.bits_; }
  // Of `bits` those that are heuristics: for tests that draw a set.
  static constexpr Tuning of(std::uint64_t bits) {
    Tuning set;
    set.bits_ = static_cast<std::uint32_t>(bits & kAll);
    return set;
  }
  static constexpr Tuning none() { return of(0); }

 private:
  static_assert(kHeuristics < 32);
  static constexpr std::uint32_t kAll = (std::uint32_t{1} << kHeuristics) - 1;
  std::uint32_t bits_ = kAll;
};

struct HeuristicInfo {
  const char* name;
  const char* text;  // one line
};
const HeuristicInfo& heuristic_info(Heuristic h);

// What parse_tuning takes, in a sentence for people, with all names.
#define MPLITE_HEURISTIC(id, name, text) " " name
inline constexpr const char kTuningAllowed[] =
    "auto (all), off (none), or a list of +NAME and -NAME (-repoll,-halves; off,+low_water), NAME "
    "one of" MPLITE_HEURISTICS(MPLITE_HEURISTIC);
#undef MPLITE_HEURISTIC

// "auto" (all), "off" (none), or a list of +NAME and -NAME, which changes `auto`, or `off` if that
// is its first entry. False: it is none of these; `why` says what is wrong, `tuning` stays.
bool parse_tuning(const char* text, Tuning& tuning, char* why, std::size_t size);
// What parse_tuning reads as the same set.
void format_tuning(const Tuning& tuning, char* text, std::size_t size);

}  // namespace mplite
