// An address from its text, for tests.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>

inline sockaddr_storage address_of(const char* text, std::uint32_t scope = 0) {
  sockaddr_storage address = {};
  auto* in = reinterpret_cast<sockaddr_in*>(&address);
  auto* in6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
    in->sin_family = AF_INET;
  } else {
    if (inet_pton(AF_INET6, text, &in6->sin6_addr) != 1)
      std::abort();  // also called before main, where Check cannot report
    in6->sin6_family = AF_INET6;
    in6->sin6_scope_id = scope;
  }
  return address;
}
