// IPv4 and IPv6 socket addresses: parts, kinds, and their form for people.
#include "mplite/base/address.h"

#include <arpa/inet.h>

#include <cstddef>
#include <cstring>

#include "mplite/base/bounded_text.h"

namespace mplite {

sockaddr_in as_v4(const sockaddr_storage& address) {
  sockaddr_in in;
  std::memcpy(&in, &address, sizeof in);
  return in;
}

sockaddr_in6 as_v6(const sockaddr_storage& address) {
  sockaddr_in6 in6;
  std::memcpy(&in6, &address, sizeof in6);
  return in6;
}

void set_port(sockaddr_storage& address, std::uint16_t port) {
  const std::uint16_t wire = htons(port);  // at the same place in both kinds of address
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memcpy(reinterpret_cast<char*>(&address) + offsetof(sockaddr_in, sin_port), &wire,
              sizeof wire);
}

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? as_v6(address).sin6_port : as_v4(address).sin_port);
}

bool is_same_host(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET6) {
    const auto& one = reinterpret_cast<const sockaddr_in6&>(a).sin6_addr;
    const auto& other = reinterpret_cast<const sockaddr_in6&>(b).sin6_addr;
    return std::memcmp(&one, &other, sizeof one) == 0;
  }
  return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
         reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohl(as_v4(address).sin_addr.s_addr) >> 24 == 127;
  const sockaddr_in6 in6 = as_v6(address);
  return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

bool is_link_local(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohl(as_v4(address).sin_addr.s_addr) >> 16 == 0xa9fe;
  const sockaddr_in6 in6 = as_v6(address);
  return IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr);
}

std::uint8_t kind_of(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return 0;
  if (is_loopback(address)) return 0;
  if (address.ss_family == AF_INET) return is_link_local(address) ? kHasIpv4LinkLocal : kHasIpv4;
  return is_link_local(address) ? kHasIpv6LinkLocal : kHasIpv6;
}

bool may_call(std::uint8_t kinds, const sockaddr_storage& address) {
  if ((kinds & kKindsKnown) == 0) return true;
  switch (kind_of(address)) {
    case kHasIpv4: return (kinds & kHasIpv4) != 0;
    case kHasIpv4LinkLocal: return (kinds & (kHasIpv4 | kHasIpv4LinkLocal)) != 0;
    case kHasIpv6: return (kinds & kHasIpv6) != 0;
    case kHasIpv6LinkLocal: return (kinds & (kHasIpv6 | kHasIpv6LinkLocal)) != 0;
    default: return true;
  }
}

void set_scope(sockaddr_storage& address, std::uint32_t scope) {
  sockaddr_in6 in6 = as_v6(address);
  in6.sin6_scope_id = scope;
  std::memcpy(&address, &in6, sizeof in6);
}

CompactAddress compact(const sockaddr_storage& address) {
  CompactAddress made = {};
  made.port = port_of(address);
  if (address.ss_family == AF_INET) {
    const sockaddr_in in = as_v4(address);
    made.family = 4;
    std::memcpy(made.bytes, &in.sin_addr, sizeof in.sin_addr);
  } else if (address.ss_family == AF_INET6) {
    const sockaddr_in6 in6 = as_v6(address);
    made.family = 6;
    made.scope = in6.sin6_scope_id;
    std::memcpy(made.bytes, &in6.sin6_addr, sizeof in6.sin6_addr);
  }
  return made;
}

sockaddr_storage expanded(const CompactAddress& address) {
  sockaddr_storage made;
  memset(&made, 0, sizeof made);
  if (address.family == 4) {
    auto& in = reinterpret_cast<sockaddr_in&>(made);
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    memcpy(&in.sin_addr, address.bytes, sizeof in.sin_addr);
  } else if (address.family == 6) {
    auto& in6 = reinterpret_cast<sockaddr_in6&>(made);
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(address.port);
    in6.sin6_scope_id = address.scope;
    memcpy(&in6.sin6_addr, address.bytes, sizeof in6.sin6_addr);
  }
  return made;
}

const char* format_address(const sockaddr_storage& address, char* text, std::size_t size) {
  char host[INET6_ADDRSTRLEN] = "";
  BoundedText out(text, size);
  if (address.ss_family == AF_INET) {
    const sockaddr_in in = as_v4(address);
    inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
    out.add("%s", host);
  } else if (address.ss_family == AF_INET6) {
    const sockaddr_in6 in6 = as_v6(address);
    inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof host);
    out.add("%s", host);
    if (in6.sin6_scope_id != 0) out.add("%%%u", in6.sin6_scope_id);
  } else {
    out.add("an unknown address");
    return text;
  }
  if (port_of(address) != 0) out.add(" port %u", port_of(address));
  return text;
}

}  // namespace mplite
