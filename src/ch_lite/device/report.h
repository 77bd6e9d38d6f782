// What a rank waits for, as lines for people and programs: the call, what is open at the device,
// and the connections that this concerns. docs/stall.md lists the lines; they stay as they are.
// Made for a wait that stands still (boot.cpp), by Device::format_report.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ch_lite/core/core.h"

namespace ch_lite {

struct WaitingCall {
  const char* host = "";        // ours
  const char* name = nullptr;   // as MPI has it, without MPI_; null: not known
  bool polls = false;           // calls that do not wait, again and again; the times are not known
  bool started_newest = false;  // the request that was begun last is its own
  std::int64_t now_ns = 0;      // by trace_now_ns(), as the next two
  std::int64_t began_ns = 0;
  std::int64_t moved_ns = 0;  // since when nothing has
  const char* since = "";     // the time of day of began_ns
};

// Of each kind of line; the others are counted.
inline constexpr int kReportLines = 32;
// Suffices for kReportLines lines of each of three kinds, which have less than 704 bytes each, and
// those before and behind them.
inline constexpr std::size_t kReportBytes = std::size_t{72} * 1024;

// Returns the length of the text, which is whole lines. Gate held, ordinary context.
std::size_t format_report(Core& core, const WaitingCall& call, char* text, std::size_t size);

}  // namespace ch_lite
