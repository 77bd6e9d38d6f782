// Frames on their way out, as bytes. Used by tx_queue.cpp and tx_control.cpp; uses frame headers of
// frame.h.
#pragma once
#include <cstdint>
#include <cstring>

#include "mplite/engine/connection.h"
#include "mplite/net/frame.h"

namespace mplite {

inline FrameHeader make_header(FrameKind kind, std::uint32_t length, std::uint64_t id,
                               std::uint64_t offset, std::uint64_t total) MPLITE_SIGNAL_SAFE {
  return FrameHeader{kFrameMagic, 0, kWireVersion, kind, length, id, offset, total};
}

// Header and payload in one piece.
inline void flatten(std::uint8_t* at, const FrameHeader& header, const iovec* parts,
                    int parts_count) MPLITE_SIGNAL_SAFE {
  std::memcpy(at, &header, sizeof header);
  at += sizeof header;
  for (int i = 0; i < parts_count; ++i) {
    if (parts[i].iov_len > 0) std::memcpy(at, parts[i].iov_base, parts[i].iov_len);
    at += parts[i].iov_len;
  }
}

// What precedes the payload.
inline std::uint64_t head_bytes(const FrameHeader& header) MPLITE_SIGNAL_SAFE {
  return kFrameHeaderBytes + header.pad;
}

// Of a frame's payload, when `sent` bytes of head and payload are out.
inline std::uint64_t payload_sent(const FrameHeader& header,
                                  std::uint64_t sent) MPLITE_SIGNAL_SAFE {
  return sent > head_bytes(header) ? sent - head_bytes(header) : 0;
}

// Adds the rest of the frame to the list. False: it was full before.
bool list_frame(OutFrame& f, iovec (&parts)[kIovsMax], int& parts_count,
                std::uint64_t& offered) MPLITE_SIGNAL_SAFE;

// Copies on the heap.
MPLITE_ORDINARY std::uint8_t* new_copy(std::uint64_t bytes);
MPLITE_ORDINARY void free_copy(std::uint8_t* copy);

}  // namespace mplite
