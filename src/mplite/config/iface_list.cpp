// LITE_IFACE as a value: which interfaces and networks are wanted and which are not.
#include "mplite/config/iface_list.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdio>
#include <cstring>

namespace mplite {
namespace {

bool decimal(const char* text, int max, int& value) {
  if (*text == '\0') return false;
  int n = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return false;
    n = n * 10 + (*text - '0');
    if (n > max) return false;
  }
  value = n;
  return true;
}

// One entry without its sign. An address without "/bits" means that one address.
bool parse_rule(char* entry, IfaceRule& rule, char* why, std::size_t size) {
  char* slash = std::strchr(entry, '/');
  if (slash != nullptr) *slash = '\0';
  const bool v4 = inet_pton(AF_INET, entry, rule.address) == 1;
  const bool v6 = !v4 && inet_pton(AF_INET6, entry, rule.address) == 1;
  if (v4 || v6) {
    rule.network = true;
    rule.family = v4 ? AF_INET : AF_INET6;
    const int bits_max = v4 ? 32 : 128;
    rule.bits = bits_max;
    if (slash != nullptr && !decimal(slash + 1, bits_max, rule.bits)) {
      std::snprintf(why, size, "\"%s/%s\" has no prefix length from 0 to %d", entry, slash + 1,
                    bits_max);
      return false;
    }
    return true;
  }
  if (slash != nullptr) {
    std::snprintf(why, size, "\"%s/%s\" is not a network: \"%s\" is no address", entry, slash + 1,
                  entry);
    return false;
  }
  const std::size_t length = std::strlen(entry);
  if (length >= sizeof rule.name) {
    std::snprintf(why, size, "\"%s\" is too long for an interface name", entry);
    return false;
  }
  std::memcpy(rule.name, entry, length + 1);
  return true;
}

}  // namespace

bool parse_iface_list(const char* text, IfaceList& list, char* why, std::size_t size) {
  IfaceList made;
  const char* at = text;
  for (;;) {
    const char* comma = std::strchr(at, ',');
    std::size_t length = comma != nullptr ? static_cast<std::size_t>(comma - at) : std::strlen(at);
    IfaceRule rule;
    if (length > 0 && (*at == '^' || *at == '!')) {
      rule.exclude = true;
      ++at;
      --length;
    }
    char entry[64];
    if (length == 0) {
      std::snprintf(why, size, "an entry is empty");
      return false;
    }
    if (length >= sizeof entry) {
      std::snprintf(why, size, "an entry is longer than %zu characters", sizeof entry - 1);
      return false;
    }
    std::memcpy(entry, at, length);
    entry[length] = '\0';
    if (std::strpbrk(entry, " \t^!") != nullptr) {
      std::snprintf(why, size, "\"%s\" is no interface name and no network", entry);
      return false;
    }
    if (made.count == IfaceList::kRules) {
      std::snprintf(why, size, "more than %d entries", IfaceList::kRules);
      return false;
    }
    if (!parse_rule(entry, rule, why, size)) return false;
    if (!rule.exclude && made.count > 0 && made.rule[made.count - 1].exclude) {
      std::snprintf(why, size,
                    "\"%.*s\" follows an exclusion; put what is wanted first, and ^ before each "
                    "entry that is to be excluded",
                    static_cast<int>(length), at);
      return false;
    }
    made.rule[made.count++] = rule;
    if (comma == nullptr) break;
    at = comma + 1;
  }
  list = made;
  return true;
}

const char* format_rule(const IfaceRule& rule, char* text, std::size_t size) {
  const char* sign = rule.exclude ? "^" : "";
  if (!rule.network) {
    std::snprintf(text, size, "%s%s", sign, rule.name);
    return text;
  }
  char address[INET6_ADDRSTRLEN] = "";
  inet_ntop(rule.family, rule.address, address, sizeof address);
  std::snprintf(text, size, "%s%s/%d", sign, address, rule.bits);
  return text;
}

bool rule_matches(const IfaceRule& rule, const char* name, const sockaddr_storage& address) {
  if (!rule.network) return std::strcmp(rule.name, name) == 0;
  if (address.ss_family != rule.family) return false;
  std::uint8_t bytes[16] = {};
  if (rule.family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address, sizeof in);
    std::memcpy(bytes, &in.sin_addr, 4);
  } else {
    sockaddr_in6 in6;
    std::memcpy(&in6, &address, sizeof in6);
    std::memcpy(bytes, &in6.sin6_addr, 16);
  }
  const int whole = rule.bits / 8, rest = rule.bits % 8;
  if (std::memcmp(bytes, rule.address, static_cast<std::size_t>(whole)) != 0) return false;
  return rest == 0 || ((bytes[whole] ^ rule.address[whole]) >> (8 - rest)) == 0;
}

}  // namespace mplite
