// The frame header, which precedes everything that the engine sends once two processes have proved
// who they are. With the version of all that is on the wire. Byte order: little-endian throughout.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace mplite {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the wire is little-endian and this code copies structs as they are");

inline constexpr std::uint8_t kWireVersion = 11;
inline constexpr std::uint8_t kFrameMagic = 0x4d;  // "M"

// What a frame's payload is. Control, channel and transfer have separate id spaces.
enum class FrameKind : std::uint8_t {
  kControl = 1,   // one whole packet for the upper layer; FIFO per pair
  kChannel = 2,   // a piece of a channel message, `id` is 0; FIFO per source
  kTransfer = 3,  // a piece of the transfer `id` at `offset`
  kMessage = 4,   // a piece of a tagged MP_* message, `id` is its tag; FIFO per pair
  kGoodbye = 5,   // empty, between processes of different jobs; `id` is a GoodbyeWord
  kLane = 6,      // empty; `id` says how many frames have come on a lane, see lane_word.h
};
inline constexpr std::uint8_t kFrameKinds = 7;

// What the sender says of itself and the receiver. The last word holds.
enum class GoodbyeWord : std::uint8_t {
  kGoodbye = 0,    // it is done with the receiver: its end from here on is no loss
  kTakenBack = 1,  // it deals with the receiver again
};

// Precedes every payload: `pad` bytes without meaning and `length` bytes follow, so that the sender
// can choose where in the stream a long payload begins. For channel, transfer and message: `offset`
// is where this piece starts in the whole, `total` the length of the whole.
struct FrameHeader {
  std::uint8_t magic;
  std::uint8_t pad;  // 0 in control frames
  std::uint8_t version;
  FrameKind kind;
  std::uint32_t length;
  std::uint64_t id;
  std::uint64_t offset;
  std::uint64_t total;
};
inline constexpr std::size_t kFrameHeaderBytes = 32;
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes &&
              std::is_trivially_copyable_v<FrameHeader>);

inline constexpr std::uint32_t kPayloadAlignment = 64;  // `pad` is less: a line of the cache
inline constexpr std::uint32_t kControlBytesMax =
    33 * 1024;  // of one control packet: 32 KB of data and what goes before them
inline constexpr std::uint32_t kFrameBytesMax = 1u << 30;  // of one frame's payload

// Of a control frame that is consistent in itself, the length of its packet. 0: it is not one.
// `at`: kFrameHeaderBytes.
inline std::uint32_t control_length(const std::uint8_t* at) {
  constexpr std::uint32_t kStart = kFrameMagic | kWireVersion << 16 |
                                   static_cast<std::uint32_t>(FrameKind::kControl)
                                       << 24;  // and no padding
  FrameHeader h;
  std::memcpy(&h, at, sizeof h);
  std::uint32_t start;
  std::memcpy(&start, at, sizeof start);
  return start == kStart && h.offset == 0 && h.length <= h.total && h.length <= kControlBytesMax
             ? h.length
             : 0;
}

// Bounds before anything else: what this takes is consistent in itself (kind known, lengths within
// limits, piece inside the whole). False: it is not.
inline bool decode_frame(std::span<const std::uint8_t> bytes, FrameHeader& h) {
  if (bytes.size() < kFrameHeaderBytes) return false;
  std::memcpy(&h, bytes.data(), sizeof h);
  if (h.magic != kFrameMagic || h.version != kWireVersion || h.length > h.total ||
      h.offset > h.total - h.length)
    return false;
  if (h.kind == FrameKind::kControl) return control_length(bytes.data()) != 0;
  const auto kind = static_cast<std::uint8_t>(h.kind);
  if (kind == 0 || kind >= kFrameKinds || h.pad >= kPayloadAlignment || h.length > kFrameBytesMax)
    return false;
  return h.length != 0 || h.total == 0;  // an empty piece of a non-empty whole would never end
}

}  // namespace mplite
