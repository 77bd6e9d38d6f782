// On which addresses a process may be called, and the listeners there.
#include "mplite/runtime/interface_choice.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <tuple>

#include "mplite/base/address.h"
#include "mplite/base/bounded_text.h"
#include "mplite/base/libc_compat.h"
#include "mplite/net/net.h"

namespace mplite {
namespace {

// The host's own end of a container's or virtual machine's network: no other host is behind it.
// Names starting with "veth" are not here, because inside a network namespace that is often the one
// interface.
bool is_bridge_name(const char* name) {
  static const char* const kPrefixes[] = {"docker",  "virbr",   "lxcbr",  "lxdbr",
                                          "cni",     "flannel", "podman", "cali",
                                          "cilium_", "vboxnet", "vmnet"};
  for (const char* prefix : kPrefixes)
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return true;
  // br-<hex>: a network made by docker; br-lan and the like are ordinary.
  return std::strncmp(name, "br-", 3) == 0 && std::strspn(name + 3, "0123456789abcdef") == 12;
}

// Lower is better; among equals the first in the list is taken.
enum Preference { kV4, kV4PointToPoint, kV6, kV6PointToPoint, kLinkLocal, kLoopback };

Preference preference(const Candidate& c) {
  if ((c.flags & IFF_LOOPBACK) != 0 || is_loopback(c.address)) return kLoopback;
  if (is_link_local(c.address)) return kLinkLocal;
  const bool point_to_point =
      (c.flags & IFF_POINTOPOINT) != 0;  // a VPN more often than a network of this job
  if (c.address.ss_family == AF_INET) return point_to_point ? kV4PointToPoint : kV4;
  return point_to_point ? kV6PointToPoint : kV6;
}

// Whether the candidate is one more way here: addresses that mean nothing on other networks are
// taken alone, and of an interface one of each family.
bool adds_to(const InterfaceChoice& choice, const Candidate& c) {
  const auto stands_alone = [](const sockaddr_storage& address) {
    return is_loopback(address) || is_link_local(address);
  };
  if (stands_alone(choice.address) || stands_alone(c.address)) return false;
  const auto repeats = [&c](const char(&name)[16], const sockaddr_storage& address) {
    return is_same_host(address, c.address) || (std::strncmp(name, c.name, sizeof name) == 0 &&
                                                address.ss_family == c.address.ss_family);
  };
  if (repeats(choice.name, choice.address)) return false;
  for (int i = 0; i < choice.more_count; ++i)
    if (repeats(choice.more[i].name, choice.more[i].address)) return false;
  return true;
}

// Why the candidate cannot be chosen, or null. `rule` is the first wanted rule that it fits.
const char* why_not(const Candidate& c, const IfaceList& wanted, Family family, int& rule) {
  rule = 0;
  if ((c.flags & IFF_UP) == 0) return "down";
  if (family == Family::kIpv4 && c.address.ss_family != AF_INET) return "not the wanted family";
  if (family == Family::kIpv6 && c.address.ss_family != AF_INET6) return "not the wanted family";
  for (int i = 0; i < wanted.count; ++i)
    if (wanted.rule[i].exclude && rule_matches(wanted.rule[i], c.name, c.address))
      return "excluded by LITE_IFACE";
  if (wanted.wants()) {
    for (; rule < wanted.count && !wanted.rule[rule].exclude; ++rule)
      if (rule_matches(wanted.rule[rule], c.name, c.address)) return nullptr;
    return "not named by LITE_IFACE";
  }
  if ((c.flags & IFF_RUNNING) == 0) return "no carrier";
  if (is_bridge_name(c.name)) return "a bridge of containers or virtual machines";
  return nullptr;
}

bool has_name(const InterfaceChoice& choice, const char (&name)[16]) {
  bool has = std::strncmp(choice.name, name, sizeof name) == 0;
  for (int i = 0; i < choice.more_count; ++i)
    has |= std::strncmp(choice.more[i].name, name, sizeof name) == 0;
  return has;
}

// Of those that are left, the best; -1: none. Interfaces first that are not among `besides`, so
// that lanes, which take the addresses in turn, take networks in turn. Then lower rules, lower
// preferences, and the order of the list.
int best_of(const Candidate* list, int count, const IfaceList& wanted, Family family,
            const InterfaceChoice* besides) {
  int best = -1;
  std::tuple<bool, int, Preference> best_rank;
  for (int i = 0; i < count; ++i) {
    int rule = 0;
    if (why_not(list[i], wanted, family, rule) != nullptr) continue;
    if (besides != nullptr && !adds_to(*besides, list[i])) continue;
    const std::tuple<bool, int, Preference> rank = {
        besides != nullptr && has_name(*besides, list[i].name), rule, preference(list[i])};
    if (best >= 0 && rank >= best_rank) continue;
    best = i;
    best_rank = rank;
  }
  return best;
}

// What else may lead here, the best first. The last place is for the other family, if all before it
// are of one: other hosts may have that one only.
void add_others(const Candidate* list, int count, const IfaceList& wanted, Family family,
                InterfaceChoice& made) {
  bool mixed = false;
  while (made.more_count < kAddressesMax - 1) {
    int next = -1;
    if (made.more_count == kAddressesMax - 2 && !mixed && family == Family::kAny)
      next = best_of(list, count, wanted,
                     made.address.ss_family == AF_INET ? Family::kIpv6 : Family::kIpv4, &made);
    if (next < 0) next = best_of(list, count, wanted, family, &made);
    if (next < 0) return;
    InterfaceChoice::Other& other = made.more[made.more_count++];
    std::memcpy(other.name, list[next].name, sizeof other.name);
    other.address = list[next].address;
    set_port(other.address, 0);
    mixed = mixed || other.address.ss_family != made.address.ss_family;
  }
}

std::uint8_t kinds_of(const Candidate* list, int count, const IfaceList& wanted) {
  std::uint8_t kinds = kKindsKnown;
  int rule = 0;
  for (int i = 0; i < count; ++i)
    if (why_not(list[i], wanted, Family::kAny, rule) == nullptr)
      kinds = static_cast<std::uint8_t>(kinds | kind_of(list[i].address));
  return kinds;
}

bool is_chosen(const InterfaceChoice& choice, const Candidate& c) {
  for (int i = 0; i < choice.more_count; ++i)
    if (is_same_host(choice.more[i].address, c.address)) return true;
  return false;
}

}  // namespace

bool choose_interface(const Candidate* list, int count, const IfaceList& wanted, Family family,
                      InterfaceChoice& choice, char* seen, std::size_t size) {
  const int best = best_of(list, count, wanted, family, nullptr);
  InterfaceChoice made;
  if (best >= 0) {
    std::memcpy(made.name, list[best].name, sizeof made.name);
    made.address = list[best].address;
    set_port(made.address, 0);
    add_others(list, count, wanted, family, made);
    made.kinds = kinds_of(list, count, wanted);
  }
  BoundedText out(seen, size);
  if (best < 0) {
    out.add("no network interface can be used");
    if (wanted.count > 0) {
      out.add(" with LITE_IFACE=");
      for (int i = 0; i < wanted.count; ++i) {
        char rule[80];
        out.add("%s%s", i > 0 ? "," : "", format_rule(wanted.rule[i], rule, sizeof rule));
      }
    }
    if (family != Family::kAny)
      out.add(" %s LITE_FAMILY=%s", wanted.count > 0 ? "and" : "with",
              family == Family::kIpv4 ? "ipv4" : "ipv6");
    out.add("; seen: %s", count == 0 ? "none" : "");
  }
  for (int i = 0; i < count; ++i) {
    char text[96];
    int rule = 0;
    const char* why = why_not(list[i], wanted, family, rule);
    if (i == best)
      why = "chosen";
    else if (best >= 0 && is_chosen(made, list[i]))
      why = "if the first does not lead here";
    else if (why == nullptr && preference(list[i]) == kLoopback)
      why = "loopback, taken only when nothing else is there";
    else if (why == nullptr)
      why = "possible, but not preferred";
    out.add("%s%s %s (%s)", i > 0 ? ", " : "", list[i].name,
            format_address(list[i].address, text, sizeof text), why);
  }
  if (best < 0) return false;
  choice = made;
  return true;
}

int list_interfaces(Candidate* list, int room) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return -errno;
  int count = 0;
  for (const ifaddrs* at = all; at != nullptr && count < room; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Candidate& c = list[count++];
    c = Candidate{};
    std::snprintf(c.name, sizeof c.name, "%s", at->ifa_name);
    c.flags = at->ifa_flags;
    std::memcpy(&c.address, at->ifa_addr,
                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  }
  freeifaddrs(all);
  return count;
}

void interface_of(const sockaddr_storage& address, char (&name)[16]) {
  name[0] = '\0';
  auto* candidates = new (std::nothrow) Candidate[kCandidatesMax];
  const int count = candidates != nullptr ? list_interfaces(candidates, kCandidatesMax) : 0;
  for (int i = 0; i < count && name[0] == '\0'; ++i)
    if (is_same_host(candidates[i].address, address))
      std::memcpy(name, candidates[i].name, sizeof name);
  delete[] candidates;
}

namespace {

// A listener at the address, whose port it sets. -errno: no port of the range can be had.
int listen_at(Net& net, sockaddr_storage& address, const Knobs& knobs) {
  StreamOptions options = {};
  options.socket_buffer_bytes = static_cast<int>(knobs.sockbuf);
  const int span = knobs.port_lo == 0 ? 1 : knobs.port_hi - knobs.port_lo + 1;
  const int start = static_cast<int>(static_cast<unsigned>(getpid()) % static_cast<unsigned>(span));
  int rc = 0;
  for (int i = 0; i < span; ++i) {
    const int fd = net.open_stream(address.ss_family);
    if (fd < 0) return fd;
    net.set_options(fd, options);  // accepted sockets inherit the buffer sizes, which must be known
                                   // before the handshake of TCP
    sockaddr_storage bound = address;
    set_port(bound, knobs.port_lo == 0
                        ? std::uint16_t{0}
                        : static_cast<std::uint16_t>(knobs.port_lo + (start + i) % span));
    rc = net.bind_and_listen(fd, bound);
    if (rc >= 0) rc = net.local_address(fd, bound);
    if (rc >= 0) {
      address = bound;
      return fd;
    }
    net.close(fd);
    if (rc != -EADDRINUSE && rc != -EACCES)
      break;  // EACCES: a port below 1024, the next one may do
  }
  return rc;
}

}  // namespace

int open_listener(Net& net, InterfaceChoice& choice, const Knobs& knobs, char* error,
                  std::size_t size) {
  const int fd = listen_at(net, choice.address, knobs);
  if (fd >= 0) return fd;
  char text[96];
  BoundedText out(error, size);
  out.add("cannot listen on %s (%s): %s", choice.name,
          format_address(choice.address, text, sizeof text), error_text(-fd));
  if (knobs.port_lo != 0)
    out.add("; no port of LITE_PORT_RANGE=%u:%u can be had", knobs.port_lo, knobs.port_hi);
  return fd;
}

void open_more_listeners(Net& net, InterfaceChoice& choice, const Knobs& knobs,
                         ListeningSockets& listeners) {
  int kept = 0;
  for (int i = 0; i < choice.more_count; ++i) {
    const int fd = listen_at(net, choice.more[i].address, knobs);
    if (fd < 0) continue;
    choice.more[kept++] = choice.more[i];
    listeners[static_cast<std::size_t>(kept)] = fd;
  }
  choice.more_count = kept;
}

}  // namespace mplite
