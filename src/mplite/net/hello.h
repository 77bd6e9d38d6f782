// The four messages of fixed size that open a connection; handshake.h has their exchange. Byte
// order: little-endian throughout.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mplite {

inline constexpr std::uint32_t kHelloMagic = 0x4c484d31;  // "1MHL"
inline constexpr std::size_t kNonceBytes = 16;
inline constexpr std::size_t kMacBytes = 32;
inline constexpr int kLanesMax = 16;  // connections of a pair of ranks, numbered from 0

enum class HelloKind : std::uint8_t {
  kHello = 1,
  kChallenge = 2,
  kProof = 3,
  kAccept = 4,
  kRefusal = 5 /* in place of a challenge: there is no such port */
};

// Whose secret the two prove to know.
enum class HelloRealm : std::uint8_t {
  kJob = 0,   // that of the job which both belong to
  kPort = 1,  // a port's key and that of the two processes: a process of another job that read the
              // port's name, and is the one that it says
  kPair = 2,  // the key of the two processes, which have been told of each other
};

// Between two ranks: the stream that each sends to the other goes on over the next connection where
// it was when the last one broke.
struct StreamPosition {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t received;     // bytes of the other's stream; kNone: it cannot go on
  std::uint64_t connections;  // that have carried it, the one that is being made included only
                              // in kAccept
};

struct Hello {
  std::uint32_t magic;
  std::uint8_t version;
  HelloKind kind;
  HelloRealm realm;
  std::uint8_t protection;  // see protection.h: what the initiator offers, then what was agreed on
  std::uint32_t
      from;  // rank that says it is speaking; between jobs the credit that it gives, in bytes
  std::uint32_t to;  // rank that it believes it speaks to; between jobs the number of the port, or
                     // what the other one has said in `from`
  std::uint8_t nonce[kNonceBytes];
  std::uint8_t mac[kMacBytes];  // in kHello zero; between jobs there the speaker's public key
  StreamPosition position;      // of the speaker: in kProof and kAccept within a job, else zero
};
inline constexpr std::size_t kHelloBytes = 80;
static_assert(sizeof(Hello) == kHelloBytes && std::is_trivially_copyable_v<Hello>);

}  // namespace mplite
