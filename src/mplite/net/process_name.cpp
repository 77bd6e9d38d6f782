// What processes of different jobs call each other by, and the keys that they prove themselves
// with.
#include "mplite/net/process_name.h"

#include <sodium.h>

#include <cstring>

#include "mplite/base/address.h"
#include "mplite/net/frame.h"

namespace mplite {
namespace {

constexpr std::uint32_t kNameMagic = 0x314e4c4d;  // "MLN1"
static_assert(crypto_scalarmult_SCALARBYTES == kKeyBytes && crypto_scalarmult_BYTES == kKeyBytes &&
              crypto_auth_BYTES == kKeyBytes);

// What a port's proof is over. No padding.
struct PortStatement {
  char label[28];
  std::uint32_t id;
  std::uint8_t owner[kKeyBytes];
  std::uint8_t caller[kKeyBytes];
};
static_assert(sizeof(PortStatement) == 32 + 2 * kKeyBytes);

PortStatement port_statement(const PortName& port, const std::uint8_t (&caller)[kKeyBytes]) {
  PortStatement s = {};
  constexpr char kLabel[] = "lite port proof, version 1";
  static_assert(sizeof kLabel <= sizeof s.label);
  std::memcpy(s.label, kLabel, sizeof kLabel);
  s.id = port.id;
  std::memcpy(s.owner, port.owner.key, kKeyBytes);
  std::memcpy(s.caller, caller, kKeyBytes);
  return s;
}

}  // namespace

KeyPair make_key_pair(const std::uint8_t (&random)[kKeyBytes]) {
  KeyPair pair;
  std::memcpy(pair.secret, random, kKeyBytes);
  crypto_scalarmult_base(pair.open, pair.secret);
  return pair;
}

bool pair_key(const KeyPair& own, const std::uint8_t (&theirs)[kKeyBytes],
              std::uint8_t (&key)[kKeyBytes]) {
  std::uint8_t shared[kKeyBytes];
  if (crypto_scalarmult(shared, own.secret, theirs) != 0) return false;
  const bool first = std::memcmp(own.open, theirs, kKeyBytes) < 0;
  static const unsigned char kLabel[] =
      "ch_lite pair of processes, v1";  // the key: sets this use of the hash apart from all others
  crypto_generichash_state hash;
  crypto_generichash_init(&hash, kLabel, sizeof kLabel, kKeyBytes);
  crypto_generichash_update(&hash, shared, sizeof shared);
  crypto_generichash_update(&hash, first ? own.open : theirs, kKeyBytes);
  crypto_generichash_update(&hash, first ? theirs : own.open, kKeyBytes);
  crypto_generichash_final(&hash, key, kKeyBytes);
  sodium_memzero(shared, sizeof shared);
  return true;
}

void port_secret(const std::uint8_t (&port_key)[kKeyBytes], const std::uint8_t (&pair)[kKeyBytes],
                 std::uint8_t (&secret)[kKeyBytes]) {
  static const unsigned char kLabel[] = "ch_lite caller at a port, v1";
  crypto_generichash_state hash;
  crypto_generichash_init(&hash, kLabel, sizeof kLabel, kKeyBytes);
  crypto_generichash_update(&hash, port_key, kKeyBytes);
  crypto_generichash_update(&hash, pair, kKeyBytes);
  crypto_generichash_final(&hash, secret, kKeyBytes);
}

ProcessName make_process_name(const sockaddr_storage& listener,
                              const std::uint8_t (&key)[kKeyBytes], std::uint32_t window) {
  ProcessName name = {};
  name.magic = kNameMagic;
  name.version = kWireVersion;
  name.window = window;
  std::memcpy(name.key, key, kKeyBytes);
  // No scope: it means nothing on another host, and a name has to be the same everywhere.
  const CompactAddress address = compact(listener);
  name.family = address.family;
  name.port = address.port;
  std::memcpy(name.address, address.bytes, sizeof name.address);
  return name;
}

std::optional<ProcessName> decode_process_name(std::span<const std::uint8_t> bytes) {
  ProcessName name;
  if (bytes.size() != sizeof name) return std::nullopt;
  std::memcpy(&name, bytes.data(), sizeof name);
  if (name.magic != kNameMagic || name.version != kWireVersion ||
      (name.family != 4 && name.family != 6) || name.port == 0)
    return std::nullopt;
  if (name.window == 0 || name.window > INT32_MAX) return std::nullopt;
  return name;
}

std::optional<PortName> decode_port_name(std::span<const std::uint8_t> bytes) {
  PortName port;
  if (bytes.size() != sizeof port || !decode_process_name(bytes.first(kProcessNameBytes)))
    return std::nullopt;
  std::memcpy(&port, bytes.data(), sizeof port);
  return port;
}

sockaddr_storage listener_of(const ProcessName& name, std::uint32_t own_scope) {
  CompactAddress compacted = {};
  compacted.family = name.family;
  compacted.port = name.port;
  std::memcpy(compacted.bytes, name.address, sizeof compacted.bytes);
  sockaddr_storage address = expanded(compacted);
  if (name.family == 6 && is_link_local(address)) set_scope(address, own_scope);
  return address;
}

void make_port_proof(const PortName& port, const std::uint8_t (&caller)[kKeyBytes],
                     std::uint8_t (&proof)[kKeyBytes]) {
  const PortStatement s = port_statement(port, caller);
  crypto_auth(proof, reinterpret_cast<const unsigned char*>(&s), sizeof s, port.key);
}

bool check_port_proof(const PortName& port, const std::uint8_t (&caller)[kKeyBytes],
                      const std::uint8_t (&proof)[kKeyBytes]) {
  const PortStatement s = port_statement(port, caller);
  return crypto_auth_verify(proof, reinterpret_cast<const unsigned char*>(&s), sizeof s,
                            port.key) == 0;
}

}  // namespace mplite
