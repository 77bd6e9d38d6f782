// IPv4 and IPv6 socket addresses: parts, kinds, and their form for people.
// Used by whoever chooses, publishes or prints one. Ordinary context only, where nothing else is
// said.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// The address as one of its family; the caller has looked at ss_family.
sockaddr_in as_v4(const sockaddr_storage& address);
sockaddr_in6 as_v6(const sockaddr_storage& address);

// Host byte order.
void set_port(sockaddr_storage& address, std::uint16_t port);
std::uint16_t port_of(const sockaddr_storage& address);
// Of a link-local IPv6 address: the number of its interface.
void set_scope(sockaddr_storage& address, std::uint32_t scope);

// Whatever their ports.
bool is_same_host(const sockaddr_storage& a, const sockaddr_storage& b) MPLITE_SIGNAL_SAFE;

bool is_loopback(const sockaddr_storage& address);
bool is_link_local(const sockaddr_storage& address);

// Kinds of addresses that a host has, as bits: which others it can call at all.
inline constexpr std::uint8_t kHasIpv4 = 1, kHasIpv4LinkLocal = 2, kHasIpv6 = 4,
                              kHasIpv6LinkLocal = 8;
inline constexpr std::uint8_t kKindsKnown = 0x80;  // without it nothing is known of the host
// The bit of this one; 0: loopback, or of no family.
std::uint8_t kind_of(const sockaddr_storage& address);
// Whether a host with those may call that address. A link-local one is called from any of its
// family, others not from link-local ones. True as well where nothing can be said: of loopback, and
// of hosts that are not known.
bool may_call(std::uint8_t kinds, const sockaddr_storage& address);

// How many addresses a rank publishes at most.
inline constexpr int kAddressesMax = 4;

// An address of either family in 24 bytes, as cards and tables of peers have it. Host byte order
// but for `bytes`.
struct CompactAddress {
  std::uint8_t bytes[16];  // of IPv4 the first four; the rest is zero
  std::uint32_t scope;     // of a link-local IPv6 address
  std::uint16_t port;
  std::uint8_t family;  // 4, 6, or 0: none
  std::uint8_t zero;
};
static_assert(sizeof(CompactAddress) == 24);
CompactAddress compact(const sockaddr_storage& address);
sockaddr_storage expanded(const CompactAddress& address) MPLITE_SIGNAL_SAFE;

// "10.0.0.2 port 4711", "fe80::1%3 port 80"; without a port when it is 0. Returns `text`.
const char* format_address(const sockaddr_storage& address, char* text, std::size_t size);

}  // namespace mplite
