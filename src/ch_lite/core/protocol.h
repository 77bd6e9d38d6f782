// Which way a message goes. Pure decisions; the actions are in short.cpp, eager.cpp,
// rendezvous.cpp, active_message.cpp.
#pragma once
#include <cstdint>

#include "ch_lite/core/packet.h"
#include "mplite/base/signal_safe.h"

namespace ch_lite {

enum class Protocol : std::uint8_t {
  kShort,       // envelope and data in one control packet
  kEager,       // envelope, data on the channel right behind it
  kRendezvous,  // RTS; data when the receiver says so
  kWait,        // active messages only: not now, when credit is back
};

// With the RTS goes so much of the data that the CTS is on its way back before it is all out: 64 KB
// take 8 us at 70 Gb/s and 52 us at 10. A peer whose receives are there in time gets more, so that
// neither end ever waits (what finds no receive is copied once more). Not more than may go unasked
// anyway (eager_max), and nothing when the credit does not bear it: half of the window is kept for
// messages that are eager or short.
inline constexpr std::uint64_t kFragmentBytes = 64 * 1024, kFragmentBytesInTime = 256 * 1024;

// Bytes; 0 turns the protocol off. What neither takes goes by rendezvous, which cannot be turned
// off but never gets anything when eager_max is unlimited and credit is left.
struct Cutoffs {
  std::uint64_t short_max;
  std::uint64_t eager_max;
  std::uint64_t fragment_max = kFragmentBytes;  // at the front of a message by rendezvous, sent
                                                // with its RTS; not more than eager_max
};

struct Choice {
  Protocol protocol;
  std::uint64_t charge;        // credit to spend
  bool out_of_credit;          // size would have allowed short or eager
  std::uint64_t fragment = 0;  // kRendezvous: bytes to send with the RTS
};

// Of messages longer than this the receiver says when they found no receive.
inline constexpr std::uint64_t kLongBytes = kFragmentBytes;
// So many messages by rendezvous in a row have found their receive: they do.
inline constexpr std::uint8_t kInTimeEnough = 8;

// Whether a message goes short when credit is left.
inline bool is_short(std::uint64_t bytes, const Cutoffs& cutoffs) MPLITE_SIGNAL_SAFE {
  return bytes <= cutoffs.short_max && bytes <= kShortBytesMax && cutoffs.short_max != 0;
}

// `spare`: of the credit, what a fragment may take; one that is longer is cut to kFragmentBytes.
Choice choose_protocol(std::uint64_t bytes, const Cutoffs& cutoffs, std::uint64_t credit_left,
                       std::uint64_t spare) MPLITE_SIGNAL_SAFE;

// The same for an active message. Without data it always fits a control packet, so cutoffs do not
// matter. Everything is charged, RTS included: an active message cannot be matched away, so its
// order allows it to wait at the sender.
Choice choose_am_protocol(std::uint64_t header_bytes, std::uint64_t data_bytes,
                          const Cutoffs& cutoffs, std::uint64_t credit_left) MPLITE_SIGNAL_SAFE;

}  // namespace ch_lite
