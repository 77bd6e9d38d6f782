// From "which interface" to an address table: chooses where to listen, publishes it, reads what the peers published.
#include "wireup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sodium.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "engine.h"
#include "net.h"

namespace mplite {
namespace {

constexpr std::uint32_t kBlobMagic = 0x4244414c;  // "LADB"
constexpr std::uint8_t kBlobVersion = 2;

// Appends to a bounded text; what does not fit is cut off.
class Text {
 public:
  Text(char* text, std::size_t size) : text_(text), size_(size) {
    if (size_ > 0) text_[0] = '\0';
  }
  void add(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    if (used_ >= size_) return;
    va_list arguments;
    va_start(arguments, format);
    const int n = std::vsnprintf(text_ + used_, size_ - used_, format, arguments);
    va_end(arguments);
    if (n > 0) used_ += static_cast<std::size_t>(n);
  }

 private:
  char* text_;
  std::size_t size_;
  std::size_t used_ = 0;
};

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
  std::memcpy(reinterpret_cast<char*>(&address) + offsetof(sockaddr_in, sin_port), &wire, sizeof wire);
}

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? as_v6(address).sin6_port : as_v4(address).sin_port);
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

// The host's own end of a container's or virtual machine's network: no other host is behind it. Names starting with "veth" are not here, because inside
// a network namespace that is often the one interface.
bool is_bridge_name(const char* name) {
  static const char* const kPrefixes[] = {"docker", "virbr", "lxcbr", "lxdbr", "cni", "flannel", "podman", "cali", "cilium_", "vboxnet", "vmnet"};
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
  const bool point_to_point = (c.flags & IFF_POINTOPOINT) != 0;  // a VPN more often than a network of this job
  if (c.address.ss_family == AF_INET) return point_to_point ? kV4PointToPoint : kV4;
  return point_to_point ? kV6PointToPoint : kV6;
}

// Why the candidate cannot be chosen, or null. `rule` is the first wanted rule that it fits.
const char* why_not(const Candidate& c, const IfaceList& wanted, Family family, int& rule) {
  rule = 0;
  if ((c.flags & IFF_UP) == 0) return "down";
  if (family == Family::kIpv4 && c.address.ss_family != AF_INET) return "not the wanted family";
  if (family == Family::kIpv6 && c.address.ss_family != AF_INET6) return "not the wanted family";
  for (int i = 0; i < wanted.count; ++i)
    if (wanted.rule[i].exclude && rule_matches(wanted.rule[i], c.name, c.address)) return "excluded by LITE_IFACE";
  if (wanted.wants()) {
    for (; rule < wanted.count && !wanted.rule[rule].exclude; ++rule)
      if (rule_matches(wanted.rule[rule], c.name, c.address)) return nullptr;
    return "not named by LITE_IFACE";
  }
  if ((c.flags & IFF_RUNNING) == 0) return "no carrier";
  if (is_bridge_name(c.name)) return "a bridge of containers or virtual machines";
  return nullptr;
}

bool host_name_is_sound(const char (&host)[64]) {
  const std::size_t length = strnlen(host, sizeof host);
  if (length == 0 || length == sizeof host) return false;
  for (std::size_t i = 0; i < length; ++i)
    if (host[i] <= ' ' || host[i] > '~') return false;
  return true;
}

sockaddr_storage blob_address(const AddressBlob& blob) {
  sockaddr_storage address = {};
  if (blob.family == 4) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    std::memcpy(&in.sin_addr, blob.address, sizeof in.sin_addr);
    std::memcpy(&address, &in, sizeof in);
  } else {
    sockaddr_in6 in6 = {};
    in6.sin6_family = AF_INET6;
    std::memcpy(&in6.sin6_addr, blob.address, sizeof in6.sin6_addr);
    std::memcpy(&address, &in6, sizeof in6);
  }
  set_port(address, blob.port);
  return address;
}

void set_scope(sockaddr_storage& address, std::uint32_t scope) {
  sockaddr_in6 in6 = as_v6(address);
  in6.sin6_scope_id = scope;
  std::memcpy(&address, &in6, sizeof in6);
}

AddressBlob blob_at(const void* table, int rank) {
  AddressBlob blob;
  std::memcpy(&blob, static_cast<const char*>(table) + static_cast<std::size_t>(rank) * sizeof blob, sizeof blob);
  return blob;
}

}  // namespace

const char* format_address(const sockaddr_storage& address, char* text, std::size_t size) {
  char host[INET6_ADDRSTRLEN] = "";
  Text out(text, size);
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

bool choose_interface(const Candidate* list, int count, const IfaceList& wanted, Family family, InterfaceChoice& choice, char* seen, std::size_t size) {
  int best = -1, best_rule = 0;
  for (int i = 0; i < count; ++i) {
    int rule = 0;
    if (why_not(list[i], wanted, family, rule) != nullptr) continue;
    if (best >= 0 && (rule > best_rule || (rule == best_rule && preference(list[i]) >= preference(list[best])))) continue;
    best = i;
    best_rule = rule;
  }
  Text out(seen, size);
  if (best < 0) {
    out.add("no network interface can be used");
    if (wanted.count > 0) {
      out.add(" with LITE_IFACE=");
      for (int i = 0; i < wanted.count; ++i) {
        char rule[80];
        out.add("%s%s", i > 0 ? "," : "", format_rule(wanted.rule[i], rule, sizeof rule));
      }
    }
    if (family != Family::kAny) out.add(" %s LITE_FAMILY=%s", wanted.count > 0 ? "and" : "with", family == Family::kIpv4 ? "ipv4" : "ipv6");
    out.add("; seen: %s", count == 0 ? "none" : "");
  }
  for (int i = 0; i < count; ++i) {
    char text[96];
    int rule = 0;
    const char* why = why_not(list[i], wanted, family, rule);
    if (i == best) why = "chosen";
    else if (why == nullptr && preference(list[i]) == kLoopback) why = "loopback, taken only when nothing else is there";
    else if (why == nullptr) why = "possible, but not preferred";
    out.add("%s%s %s (%s)", i > 0 ? ", " : "", list[i].name, format_address(list[i].address, text, sizeof text), why);
  }
  if (best < 0) return false;
  InterfaceChoice made;
  std::memcpy(made.name, list[best].name, sizeof made.name);
  made.address = list[best].address;
  set_port(made.address, 0);
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
    std::memcpy(&c.address, at->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  }
  freeifaddrs(all);
  return count;
}

int open_listener(Net& net, InterfaceChoice& choice, const Knobs& knobs, char* error, std::size_t size) {
  StreamOptions options = {};
  options.socket_buffer_bytes = static_cast<int>(knobs.sockbuf);
  const int span = knobs.port_lo == 0 ? 1 : knobs.port_hi - knobs.port_lo + 1;
  const int start = static_cast<int>(static_cast<unsigned>(getpid()) % static_cast<unsigned>(span));
  int rc = 0;
  for (int i = 0; i < span; ++i) {
    const int fd = net.open_stream(choice.address.ss_family);
    if (fd < 0) {
      rc = fd;
      break;
    }
    net.set_options(fd, options);  // accepted sockets inherit the buffer sizes, which must be known before the handshake of TCP
    sockaddr_storage address = choice.address;
    set_port(address, knobs.port_lo == 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(knobs.port_lo + (start + i) % span));
    rc = net.bind_and_listen(fd, address);
    if (rc >= 0) rc = net.local_address(fd, address);
    if (rc >= 0) {
      choice.address = address;
      return fd;
    }
    net.close(fd);
    if (rc != -EADDRINUSE && rc != -EACCES) break;  // EACCES: a port below 1024, the next one may do
  }
  char text[96];
  Text out(error, size);
  out.add("cannot listen on %s (%s): %s", choice.name, format_address(choice.address, text, sizeof text), strerrordesc_np(-rc));
  if (knobs.port_lo != 0) out.add("; no port of LITE_PORT_RANGE=%u:%u can be had", knobs.port_lo, knobs.port_hi);
  return rc;
}

namespace {

// A digest of this boot of this machine and of the affinity mask; zero when either cannot be read.
void digest_place(std::uint8_t (&place)[16]) {
  struct {
    char boot[40];
    cpu_set_t mask;
  } text = {};
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  const bool known = fd >= 0 && read(fd, text.boot, sizeof text.boot) > 0 && sched_getaffinity(0, sizeof text.mask, &text.mask) == 0;
  if (fd >= 0) close(fd);
  if (known) crypto_generichash(place, sizeof place, reinterpret_cast<const unsigned char*>(&text), sizeof text, nullptr, 0);
}

}  // namespace

int ranks_sharing_place(const void* table, int size, int rank) {
  const auto* bytes = static_cast<const std::uint8_t*>(table) + offsetof(AddressBlob, place);
  const std::uint8_t* own = bytes + static_cast<std::size_t>(rank) * kAddressBlobBytes;
  const std::uint8_t unknown[sizeof AddressBlob::place] = {};
  if (std::memcmp(own, unknown, sizeof unknown) == 0) return 1;
  int count = 0;
  for (int i = 0; i < size; ++i)
    if (std::memcmp(bytes + static_cast<std::size_t>(i) * kAddressBlobBytes, own, sizeof unknown) == 0) ++count;
  return count;
}

void make_blob(Net& net, const InterfaceChoice& choice, AddressBlob& blob) {
  AddressBlob made = {};
  made.magic = kBlobMagic;
  made.version = kBlobVersion;
  made.port = port_of(choice.address);
  made.pid = static_cast<std::uint32_t>(getpid());
  if (choice.address.ss_family == AF_INET) {
    const sockaddr_in in = as_v4(choice.address);
    made.family = 4;
    std::memcpy(made.address, &in.sin_addr, sizeof in.sin_addr);
  } else {
    const sockaddr_in6 in6 = as_v6(choice.address);
    made.family = 6;
    made.scope = in6.sin6_scope_id;
    std::memcpy(made.address, &in6.sin6_addr, sizeof in6.sin6_addr);
  }
  net.random(made.share, sizeof made.share);
  digest_place(made.place);
  if (gethostname(made.host, sizeof made.host - 1) != 0 || made.host[0] == '\0') std::memcpy(made.host, "unnamed", 8);
  for (char& c : made.host)  // decode_table is strict, an odd host name must not end the job
    if (c != '\0' && (c <= ' ' || c > '~')) c = '_';
  blob = made;
}

bool decode_table(const void* table, int size, int rank, PeerAddress* peers, std::uint8_t (&secret)[kSecretBytes], char* error, std::size_t error_size) {
  Text out(error, error_size);
  static const unsigned char kLabel[] = "ch_lite job secret, version 1";  // the key: sets this use of the hash apart from all others
  crypto_generichash_state hash;
  if (sodium_init() < 0 || crypto_generichash_init(&hash, kLabel, sizeof kLabel, kSecretBytes) != 0) {
    out.add("libsodium cannot be initialised");
    return false;
  }
  int loopback_rank = -1;  // the first one that can be reached on its own host only
  for (int i = 0; i < size; ++i) {
    const AddressBlob blob = blob_at(table, i);
    const char* wrong = nullptr;
    if (blob.magic != kBlobMagic) wrong = "is not one of ch_lite (did the rank start with another library?)";
    else if (blob.version != kBlobVersion) wrong = "is of another version of ch_lite";
    else if (blob.family != 4 && blob.family != 6) wrong = "has an unknown address family";
    else if (blob.port == 0) wrong = "has no port";
    else if (!host_name_is_sound(blob.host)) wrong = "has no sound host name";
    if (wrong != nullptr) {
      out.add("the address of rank %d %s", i, wrong);
      return false;
    }
    peers[i].address = blob_address(blob);
    std::memcpy(peers[i].host, blob.host, sizeof peers[i].host);
    std::memcpy(peers[i].name_key, blob.name_key, sizeof peers[i].name_key);
    crypto_generichash_update(&hash, blob.share, sizeof blob.share);
    if (loopback_rank < 0 && is_loopback(peers[i].address)) loopback_rank = i;
  }
  const AddressBlob own = blob_at(table, rank);
  for (int i = 0; i < size; ++i) {
    char text[96];
    // Every rank sees the same table, so either none goes on or all do. Comparing with one loopback rank is enough: hosts differ from it, or all are one.
    if (loopback_rank >= 0 && std::strncmp(peers[i].host, peers[loopback_rank].host, sizeof peers[i].host) != 0) {
      out.add("rank %d on host %s listens on loopback (%s), where rank %d on host %s cannot reach it; name a network interface with LITE_IFACE", loopback_rank,
              peers[loopback_rank].host, format_address(peers[loopback_rank].address, text, sizeof text), i, peers[i].host);
      return false;
    }
    if (peers[i].address.ss_family != AF_INET6 || !is_link_local(peers[i].address)) continue;
    // A scope is a number of an interface of one host: another host's means nothing here, there it is our own interface that leads to the peer.
    const bool same_host = std::strncmp(peers[i].host, peers[rank].host, sizeof peers[i].host) == 0;
    const std::uint32_t scope = same_host ? blob_at(table, i).scope : own.scope;
    if (scope == 0) {
      out.add("rank %d on host %s has a link-local address only (%s) and rank %d none; name an interface with LITE_IFACE on all hosts", i, peers[i].host,
              format_address(peers[i].address, text, sizeof text), rank);
      return false;
    }
    set_scope(peers[i].address, scope);
  }
  std::uint8_t made[kSecretBytes];
  crypto_generichash_final(&hash, made, sizeof made);
  std::memcpy(secret, made, sizeof made);
  sodium_memzero(made, sizeof made);
  return true;
}

}  // namespace mplite
