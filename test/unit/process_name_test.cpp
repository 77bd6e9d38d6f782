// Names, ports and keys of processes of different jobs.
#include "mplite/net/process_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include "mplite/net/frame.h"
#include "mplite/net/handshake.h"

#include "run_tests.h"

using namespace mplite;

namespace {

KeyPair pair_of(std::uint8_t seed) {
  std::uint8_t random[kKeyBytes];
  std::memset(random, seed, sizeof random);
  return make_key_pair(random);
}

sockaddr_storage v4(const char* text, std::uint16_t port) {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  inet_pton(AF_INET, text, &in.sin_addr);
  sockaddr_storage address = {};
  std::memcpy(&address, &in, sizeof in);
  return address;
}

sockaddr_storage v6(const char* text, std::uint16_t port, std::uint32_t scope) {
  sockaddr_in6 in6 = {};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  in6.sin6_scope_id = scope;
  inet_pton(AF_INET6, text, &in6.sin6_addr);
  sockaddr_storage address = {};
  std::memcpy(&address, &in6, sizeof in6);
  return address;
}

std::span<const std::uint8_t> bytes_of(const void* memory, std::size_t size) {
  return {static_cast<const std::uint8_t*>(memory), size};
}

}  // namespace

START_TEST(two_processes_compute_one_key_and_a_third_another) {
  const KeyPair a = pair_of(1), b = pair_of(2), c = pair_of(3);
  std::uint8_t ab[kKeyBytes], ba[kKeyBytes], ac[kKeyBytes], cb[kKeyBytes];
  ck_assert(pair_key(a, b.open, ab) && pair_key(b, a.open, ba) && pair_key(a, c.open, ac) &&
            pair_key(c, b.open, cb));
  ck_assert_mem_eq(ab, ba, kKeyBytes);
  ck_assert(std::memcmp(ab, ac, kKeyBytes) != 0 && std::memcmp(ab, cb, kKeyBytes) != 0);
  ck_assert(std::memcmp(ab, a.secret, kKeyBytes) != 0);
}
END_TEST

// Those few would make a key that everybody knows.
START_TEST(what_is_no_public_key_is_refused) {
  const std::uint8_t zero[kKeyBytes] = {}, one[kKeyBytes] = {1};
  std::uint8_t key[kKeyBytes];
  ck_assert(!pair_key(pair_of(1), zero, key));
  ck_assert(!pair_key(pair_of(1), one, key));
}
END_TEST

START_TEST(a_name_leads_back_to_its_listener) {
  const KeyPair keys = pair_of(5);
  const sockaddr_storage listeners[] = {v4("10.1.2.3", 4711), v6("2001:db8::17", 65535, 0),
                                        v6("fe80::1234", 1, 9)};
  for (const sockaddr_storage& listener : listeners) {
    const ProcessName name = make_process_name(listener, keys.open, 65536);
    const auto decoded = decode_process_name(bytes_of(&name, sizeof name));
    ck_assert(decoded.has_value());
    ck_assert_mem_eq(decoded->key, keys.open, kKeyBytes);
    ck_assert_uint_eq(decoded->window, 65536);
    const sockaddr_storage found = listener_of(*decoded, 9);
    ck_assert_mem_eq(&found, &listener, sizeof found);
  }
}
END_TEST

// The host compares names byte by byte, wherever they come from.
START_TEST(a_name_does_not_depend_on_who_makes_it) {
  const KeyPair keys = pair_of(5);
  const ProcessName own = make_process_name(v6("fe80::1234", 80, 3), keys.open, 65536),
                    others = make_process_name(listener_of(own, 7), keys.open, 65536);
  ck_assert_mem_eq(&own, &others, sizeof own);
}
END_TEST

START_TEST(what_is_no_name_is_refused) {
  const ProcessName good = make_process_name(v4("10.1.2.3", 4711), pair_of(5).open, 65536);
  const auto refused = [&good](auto change) {
    ProcessName bad = good;
    change(bad);
    return !decode_process_name(bytes_of(&bad, sizeof bad)).has_value();
  };
  ck_assert(!refused([](ProcessName&) {}));
  ck_assert(refused([](ProcessName& n) { ++n.magic; }));
  ck_assert(refused([](ProcessName& n) { ++n.version; }));
  ck_assert(refused([](ProcessName& n) { n.family = 5; }));
  ck_assert(refused([](ProcessName& n) { n.port = 0; }));
  ck_assert(refused([](ProcessName& n) { n.window = 0; }));
  ck_assert(refused([](ProcessName& n) { n.window = 0x80000000u; }));
  ck_assert(!decode_process_name(bytes_of(&good, sizeof good - 1)).has_value());
  PortName port = {good, 3, {1}};
  ck_assert(decode_port_name(bytes_of(&port, sizeof port)).has_value());
  ck_assert(!decode_port_name(bytes_of(&port, sizeof good)).has_value());
  port.owner.family = 7;
  ck_assert(!decode_port_name(bytes_of(&port, sizeof port)).has_value());
}
END_TEST

START_TEST(a_proof_holds_for_one_port_one_owner_and_one_caller) {
  const KeyPair owner = pair_of(1), caller = pair_of(2), other = pair_of(3);
  PortName port = {make_process_name(v4("10.1.2.3", 4711), owner.open, 65536), 3, {9, 9}};
  std::uint8_t proof[kKeyBytes];
  make_port_proof(port, caller.open, proof);
  ck_assert(check_port_proof(port, caller.open, proof));
  ck_assert(!check_port_proof(port, other.open, proof));
  PortName changed = port;
  changed.id = 4;
  ck_assert(!check_port_proof(changed, caller.open, proof));
  changed = port;
  changed.key[5] ^= 1;  // the number is used again, by a port of a new key
  ck_assert(!check_port_proof(changed, caller.open, proof));
  changed = port;
  std::memcpy(changed.owner.key, other.open, kKeyBytes);
  ck_assert(!check_port_proof(changed, caller.open, proof));
}
END_TEST

// MPI_MAX_PORT_NAME is 256; the host writes two digits for each byte, and "tag#NNNNN$connentry#…$"
// around them.
START_TEST(a_port_fits_into_the_hosts_text) { ck_assert_uint_le(2 * kPortNameBytes + 32, 255); }
END_TEST

int main() {
  if (!hello_prepare()) return EXIT_FAILURE;
  return run_tests("process_name");
}
