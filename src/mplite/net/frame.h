// The bytes of the engine's wire: the frame header and the handshake, with their version.
// Used by engine.cpp and handshake.cpp; nothing else knows the layout. Byte order: little-endian
// throughout.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace mplite {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the wire is little-endian and this code copies structs as they are");

inline constexpr std::uint8_t kWireVersion = 7;
inline constexpr std::uint8_t kFrameMagic = 0x4d;  // "M"

// What a frame's payload is. Control, channel and transfer have separate id spaces.
enum class FrameKind : std::uint8_t {
  kControl = 1,   // one whole packet for the upper layer; FIFO per pair
  kChannel = 2,   // a piece of a channel message; FIFO per source
  kTransfer = 3,  // a piece of the transfer `id` at `offset`
  kMessage = 4,   // a piece of a tagged MP_* message, `id` is its tag; FIFO per pair
  kGoodbye = 5,   // empty, between processes of different jobs: the sender is done with the
                  // receiver, its end from here on is no loss
};
inline constexpr std::uint8_t kFrameKinds = 6;

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

// ---- handshake: four messages of fixed size, see handshake.h for the exchange ----
inline constexpr std::uint32_t kHelloMagic = 0x4c484d31;  // "1MHL"
inline constexpr std::size_t kNonceBytes = 16;
inline constexpr std::size_t kMacBytes = 32;

enum class HelloKind : std::uint8_t {
  kHello = 1,
  kChallenge = 2,
  kProof = 3,
  kAccept = 4,
  kRefusal = 5 /* in place of a challenge: there is no such port */
};

// Whose secret the two prove to know.
enum class HelloRealm : std::uint16_t {
  kJob = 0,   // that of the job which both belong to
  kPort = 1,  // a port's key and that of the two processes: a process of another job that read the
              // port's name, and is the one that it says
  kPair = 2,  // the key of the two processes, which have been told of each other
};

struct Hello {
  std::uint32_t magic;
  std::uint8_t version;
  HelloKind kind;
  HelloRealm realm;
  std::uint32_t
      from;  // rank that says it is speaking; between jobs the credit that it gives, in bytes
  std::uint32_t to;  // rank that it believes it speaks to; between jobs the number of the port, or
                     // what the other one has said in `from`
  std::uint8_t nonce[kNonceBytes];
  std::uint8_t mac[kMacBytes];  // in kHello zero; between jobs there the speaker's public key
};
inline constexpr std::size_t kHelloBytes = 64;
static_assert(sizeof(Hello) == kHelloBytes && std::is_trivially_copyable_v<Hello>);

}  // namespace mplite
