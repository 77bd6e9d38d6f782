// LITE_IFACE as a value: which interfaces and networks are wanted and which are not.
// Parsed by knobs.cpp, applied by wireup.cpp. Pure.
#pragma once
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace mplite {

struct IfaceRule {
  bool exclude = false;
  bool network = false;  // a CIDR (family, address, bits), otherwise an interface name
  int family = 0;
  std::uint8_t address[16] = {};
  int bits = 0;
  char name[16] = {};  // IFNAMSIZ
};

struct IfaceList {
  static constexpr int kRules = 32;
  IfaceRule rule[kRules] = {};
  int count = 0;  // 0: choose by the defaults
  bool wants() const {
    return count > 0 && !rule[0].exclude;
  }  // names what is wanted; otherwise only exclusions
};

// "eth0,10.1.0.0/16" (in order of preference) or "^docker0,!192.168.0.0/16"; both: what is wanted
// first, then exclusions. A plain entry behind an excluded one is refused, because people read
// "^a,b" as excluding both. On failure false, and `why` (`size` bytes) says what is wrong.
bool parse_iface_list(const char* text, IfaceList& list, char* why, std::size_t size);

// The rule in its own syntax again ("eth0", "^10.1.0.0/16"). Returns `text`.
const char* format_rule(const IfaceRule& rule, char* text, std::size_t size);

bool rule_matches(const IfaceRule& rule, const char* name, const sockaddr_storage& address);

}  // namespace mplite
