// What processes of different jobs call each other by, and the keys that they prove themselves
// with: universal names, ports, key pairs. A name is public: it may be printed, and travels in
// clear. A port's name is a secret of those who are meant to connect to it. Used by
// remote_jobs.cpp; pure but for libsodium; ordinary context only, as the arithmetic takes some
// 50 us.
#pragma once
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace mplite {

inline constexpr std::size_t kKeyBytes = 32;

// X25519. One pair per process and MPI_Init: the public half is the process's identity, nobody else
// can prove to be it.
struct KeyPair {
  std::uint8_t open[kKeyBytes];
  std::uint8_t secret[kKeyBytes];
};

// `random`: fresh random bytes.
KeyPair make_key_pair(const std::uint8_t (&random)[kKeyBytes]);

// The key that the owner of `own` and the owner of `theirs` share and nobody else can know; both
// compute the same. False: `theirs` is no public key.
bool pair_key(const KeyPair& own, const std::uint8_t (&theirs)[kKeyBytes],
              std::uint8_t (&key)[kKeyBytes]);

// What a caller at a port proves to know: the port's key, and by the key of the two processes that
// it has the secret half of the public key that it shows.
void port_secret(const std::uint8_t (&port_key)[kKeyBytes], const std::uint8_t (&pair)[kKeyBytes],
                 std::uint8_t (&secret)[kKeyBytes]);

// A process, universally. Little-endian; the address in network order as in a sockaddr.
struct ProcessName {
  std::uint32_t magic;
  std::uint8_t version;  // of the wire: who speaks another one cannot be spoken to
  std::uint8_t family;   // 4 or 6
  std::uint16_t port;    // of its listener
  std::uint32_t scope;   // of a link-local address: an interface of its host
  std::uint32_t window;  // credit that it gives to a process of another job, bytes
  std::uint8_t address[16];
  std::uint8_t key[kKeyBytes];
};
inline constexpr std::size_t kProcessNameBytes = 64;
static_assert(sizeof(ProcessName) == kProcessNameBytes &&
              std::is_trivially_copyable_v<ProcessName>);

// What MPI_Open_port publishes.
struct PortName {
  ProcessName owner;
  std::uint32_t id;             // the owner's number for the port
  std::uint8_t key[kKeyBytes];  // fresh random bytes: who has it may connect
};
inline constexpr std::size_t kPortNameBytes = 100;
static_assert(sizeof(PortName) == kPortNameBytes && std::is_trivially_copyable_v<PortName>);

ProcessName make_process_name(const sockaddr_storage& listener,
                              const std::uint8_t (&key)[kKeyBytes], std::uint32_t window);

// Checks before anything else: what this returns has a sound address and window. No alignment
// needed.
std::optional<ProcessName> decode_process_name(std::span<const std::uint8_t> bytes);
std::optional<PortName> decode_port_name(std::span<const std::uint8_t> bytes);

// Where the process listens. A link-local address leads through our own interface `own_scope`.
sockaddr_storage listener_of(const ProcessName& name, std::uint32_t own_scope);

// What a caller says to the owner of a port over a connection that has proved who both are: that it
// knows the port's key.
void make_port_proof(const PortName& port, const std::uint8_t (&caller)[kKeyBytes],
                     std::uint8_t (&proof)[kKeyBytes]);
bool check_port_proof(const PortName& port, const std::uint8_t (&caller)[kKeyBytes],
                      const std::uint8_t (&proof)[kKeyBytes]);

}  // namespace mplite
