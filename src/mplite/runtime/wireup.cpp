// From "which interface" to an address table: chooses where to listen, publishes it, reads what the
// peers published.
#include "mplite/runtime/wireup.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>

#include "mplite/base/address.h"
#include "mplite/base/bounded_text.h"
#include "mplite/base/libc_compat.h"
#include "mplite/engine/engine.h"
#include "mplite/net/net.h"
#include "mplite/runtime/secret_file.h"

namespace mplite {
namespace {

constexpr std::uint32_t kBlobMagic = 0x4244414c;  // "LADB"
constexpr std::uint8_t kBlobVersion = 3;

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

AddressBlob blob_at(const void* table, int rank) {
  AddressBlob blob;
  std::memcpy(&blob, static_cast<const char*>(table) + static_cast<std::size_t>(rank) * sizeof blob,
              sizeof blob);
  return blob;
}

}  // namespace

bool choose_interface(const Candidate* list, int count, const IfaceList& wanted, Family family,
                      InterfaceChoice& choice, char* seen, std::size_t size) {
  int best = -1, best_rule = 0;
  for (int i = 0; i < count; ++i) {
    int rule = 0;
    if (why_not(list[i], wanted, family, rule) != nullptr) continue;
    if (best >= 0 &&
        (rule > best_rule || (rule == best_rule && preference(list[i]) >= preference(list[best]))))
      continue;
    best = i;
    best_rule = rule;
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
    else if (why == nullptr && preference(list[i]) == kLoopback)
      why = "loopback, taken only when nothing else is there";
    else if (why == nullptr)
      why = "possible, but not preferred";
    out.add("%s%s %s (%s)", i > 0 ? ", " : "", list[i].name,
            format_address(list[i].address, text, sizeof text), why);
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
    std::memcpy(&c.address, at->ifa_addr,
                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  }
  freeifaddrs(all);
  return count;
}

int open_listener(Net& net, InterfaceChoice& choice, const Knobs& knobs, char* error,
                  std::size_t size) {
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
    net.set_options(fd, options);  // accepted sockets inherit the buffer sizes, which must be known
                                   // before the handshake of TCP
    sockaddr_storage address = choice.address;
    set_port(address, knobs.port_lo == 0
                          ? std::uint16_t{0}
                          : static_cast<std::uint16_t>(knobs.port_lo + (start + i) % span));
    rc = net.bind_and_listen(fd, address);
    if (rc >= 0) rc = net.local_address(fd, address);
    if (rc >= 0) {
      choice.address = address;
      return fd;
    }
    net.close(fd);
    if (rc != -EADDRINUSE && rc != -EACCES)
      break;  // EACCES: a port below 1024, the next one may do
  }
  char text[96];
  BoundedText out(error, size);
  out.add("cannot listen on %s (%s): %s", choice.name,
          format_address(choice.address, text, sizeof text), error_text(-rc));
  if (knobs.port_lo != 0)
    out.add("; no port of LITE_PORT_RANGE=%u:%u can be had", knobs.port_lo, knobs.port_hi);
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
  const bool known = fd >= 0 && read(fd, text.boot, sizeof text.boot) > 0 &&
                     sched_getaffinity(0, sizeof text.mask, &text.mask) == 0;
  if (fd >= 0) close(fd);
  if (known)
    crypto_generichash(place, sizeof place, reinterpret_cast<const unsigned char*>(&text),
                       sizeof text, nullptr, 0);
}

// A digest of this boot of this machine and of the network namespace; zero when either cannot be
// read.
void digest_network(std::uint8_t (&network)[16]) {
  struct {
    char boot[40];
    std::uint64_t device, inode;
  } text = {};
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  const bool known = fd >= 0 && read(fd, text.boot, sizeof text.boot) > 0 &&
                     stat("/proc/self/ns/net", &status) == 0;
  if (fd >= 0) close(fd);
  text.device = status.st_dev;
  text.inode = status.st_ino;
  if (known)
    crypto_generichash(network, sizeof network, reinterpret_cast<const unsigned char*>(&text),
                       sizeof text, nullptr, 0);
}

// decode_table is strict, an odd host name must not end the job.
void take_host_name(char (&host)[64]) {
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') std::memcpy(host, "unnamed", 8);
  for (char& c : host)
    if (c != '\0' && (c <= ' ' || c > '~')) c = '_';
}

}  // namespace

int ranks_sharing_place(const void* table, int size, int rank) {
  const auto* bytes = static_cast<const std::uint8_t*>(table) + offsetof(AddressBlob, place);
  const std::uint8_t* own = bytes + static_cast<std::size_t>(rank) * kAddressBlobBytes;
  const std::uint8_t unknown[sizeof AddressBlob::place] = {};
  if (std::memcmp(own, unknown, sizeof unknown) == 0) return 1;
  int count = 0;
  for (int i = 0; i < size; ++i)
    if (std::memcmp(bytes + static_cast<std::size_t>(i) * kAddressBlobBytes, own, sizeof unknown) ==
        0)
      ++count;
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
  digest_network(made.network);
  take_host_name(made.host);
  blob = made;
}

void make_failed_blob(const char* reason, void* blob) {
  static const char kCut[] = "\xe2\x80\xa6";  // an ellipsis
  FailedBlob made = {};
  made.magic = kBlobMagic;
  made.version = kBlobVersion;
  made.family = kFailedFamily;
  take_host_name(made.host);
  std::snprintf(made.reason, sizeof made.reason, "%s", reason);
  for (char& c : made.reason)
    if (static_cast<unsigned char>(c) < ' ' && c != '\0') c = ' ';
  if (std::strlen(reason) >= sizeof made.reason)
    std::memcpy(made.reason + sizeof made.reason - sizeof kCut, kCut, sizeof kCut);
  std::memcpy(blob, &made, sizeof made);
}

bool is_failed_blob(const void* blob, int rank, char* sentence, std::size_t size) {
  FailedBlob card;
  std::memcpy(&card, blob, sizeof card);
  if (card.magic != kBlobMagic || card.version != kBlobVersion || card.family != kFailedFamily)
    return false;
  card.reason[sizeof card.reason - 1] = '\0';
  for (char& c : card.reason)
    if (c != '\0' && (static_cast<unsigned char>(c) < ' ' || c == '\x7f')) c = ' ';
  BoundedText out(sentence, size);
  out.add("rank %d on host %s cannot start: %s", rank,
          host_name_is_sound(card.host) ? card.host : "unnamed", card.reason);
  return true;
}

int find_failed(const void* table, int size, char* sentence, std::size_t sentence_size) {
  for (int i = 0; i < size; ++i)
    if (is_failed_blob(
            static_cast<const char*>(table) + static_cast<std::size_t>(i) * kAddressBlobBytes, i,
            sentence, sentence_size))
      return i;
  return -1;
}

namespace {

// Whether ranks with different files, or some with and some without, have met: every one of them
// sees that.
bool files_differ(const void* table, int size, int rank, const SecretFile& file, BoundedText& out) {
  static const std::uint8_t kNone[kFingerprintBytes] = {};
  for (int i = 0; i < size; ++i) {
    const AddressBlob blob = blob_at(table, i);
    std::uint8_t expected[kFingerprintBytes];
    make_fingerprint(file, blob.share, expected);
    if (sodium_memcmp(blob.fingerprint, expected, sizeof expected) == 0) continue;
    const AddressBlob own = blob_at(table, rank);
    const bool other_has = std::memcmp(blob.fingerprint, kNone, sizeof kNone) != 0;
    if (file.there && other_has)
      out.add(
          "the files named by LITE_SECRET_FILE differ between rank %d on host %s and rank %d on "
          "host %s",
          rank, own.host, i, blob.host);
    else
      out.add("rank %d on host %s has no LITE_SECRET_FILE, and rank %d on host %s has one",
              file.there ? i : rank, file.there ? blob.host : own.host, file.there ? rank : i,
              file.there ? own.host : blob.host);
    out.add("; give all ranks a copy of one file");
    return true;
  }
  return false;
}

// Whether two ranks that share no network stack have published one address: behind NAT, or clones
// of one virtual machine.
StartFault addresses_clash(const void* table, int size, const PeerAddress* peers,
                           BoundedText& out) {
  struct Place {
    std::uint8_t address[17];  // with the family
    int rank;
  };
  auto* places = new (std::nothrow) Place[static_cast<std::size_t>(size)];
  if (places == nullptr) {
    out.add("out of memory for the addresses of %d ranks", size);
    return StartFault::kMemory;
  }
  for (int i = 0; i < size; ++i) {
    const AddressBlob blob = blob_at(table, i);
    places[i].address[0] = blob.family;
    std::memcpy(places[i].address + 1, blob.address, sizeof blob.address);
    places[i].rank = i;
  }
  std::sort(places, places + size, [](const Place& a, const Place& b) {
    const int order = std::memcmp(a.address, b.address, sizeof a.address);
    return order != 0 ? order < 0 : a.rank < b.rank;
  });
  int first = -1, second = -1;
  for (int i = 1, begin = 0; i < size; ++i) {
    if (std::memcmp(places[i].address, places[begin].address, sizeof places[i].address) != 0) {
      begin = i;
      continue;
    }
    static const std::uint8_t kUnknown[sizeof AddressBlob::network] = {};
    const AddressBlob a = blob_at(table, places[begin].rank), b = blob_at(table, places[i].rank);
    const bool known = std::memcmp(a.network, kUnknown, sizeof kUnknown) != 0 &&
                       std::memcmp(b.network, kUnknown, sizeof kUnknown) != 0;
    // One port cannot be had twice in one network stack: these are copies of a machine that has not
    // booted since.
    const bool same = (known ? std::memcmp(a.network, b.network, sizeof kUnknown) == 0
                             : std::strncmp(a.host, b.host, sizeof a.host) == 0) &&
                      a.port != b.port;
    if (same || (first >= 0 && places[begin].rank >= first)) continue;
    first = places[begin].rank;
    second = places[i].rank;
  }
  delete[] places;
  if (first < 0) return StartFault::kNone;
  char text[96];
  sockaddr_storage address = peers[first].address;
  set_port(address, 0);
  out.add(
      "rank %d on host %s and rank %d on host %s have the same address (%s) and are not on one "
      "host, so that they cannot reach each other; name a network interface with "
      "an address of its own on each host by LITE_IFACE",
      first, peers[first].host, second, peers[second].host,
      format_address(address, text, sizeof text));
  return StartFault::kTable;
}

}  // namespace

StartFault decode_table(const void* table, int size, int rank, const SecretFile& file,
                        PeerAddress* peers, std::uint8_t (&secret)[kSecretBytes], char* error,
                        std::size_t error_size) {
  BoundedText out(error, error_size);
  static const unsigned char kLabel[] =
      "ch_lite job secret, version 1";  // the key: sets this use of the hash apart from all others
  crypto_generichash_state hash;
  if (sodium_init() < 0 || crypto_generichash_init(&hash, file.there ? file.job_key : kLabel,
                                                   file.there ? sizeof file.job_key : sizeof kLabel,
                                                   kSecretBytes) != 0) {
    out.add("libsodium cannot be initialised");
    return StartFault::kSystem;
  }
  if (find_failed(table, size, error, error_size) >= 0) return StartFault::kTable;
  int loopback_rank = -1;  // the first one that can be reached on its own host only
  for (int i = 0; i < size; ++i) {
    const AddressBlob blob = blob_at(table, i);
    const char* wrong = nullptr;
    if (blob.magic != kBlobMagic)
      wrong = "is not one of ch_lite (did the rank start with another library?)";
    else if (blob.version != kBlobVersion)
      wrong = "is of another version of ch_lite";
    else if (blob.family != 4 && blob.family != 6)
      wrong = "has an unknown address family";
    else if (blob.port == 0)
      wrong = "has no port";
    else if (!host_name_is_sound(blob.host))
      wrong = "has no sound host name";
    if (wrong != nullptr) {
      out.add("the address of rank %d %s", i, wrong);
      return StartFault::kTable;
    }
    peers[i].address = blob_address(blob);
    std::memcpy(peers[i].host, blob.host, sizeof peers[i].host);
    std::memcpy(peers[i].name_key, blob.name_key, sizeof peers[i].name_key);
    peers[i].credits = blob.credits;
    peers[i].unexpected_max = blob.unexpected_max;
    crypto_generichash_update(&hash, blob.share, sizeof blob.share);
    if (loopback_rank < 0 && is_loopback(peers[i].address)) loopback_rank = i;
  }
  if (files_differ(table, size, rank, file, out)) return StartFault::kTable;
  const AddressBlob own = blob_at(table, rank);
  for (int i = 0; i < size; ++i) {
    char text[96];
    // Every rank sees the same table, so either none goes on or all do. Comparing with one loopback
    // rank is enough: hosts differ from it, or all are one.
    if (loopback_rank >= 0 &&
        std::strncmp(peers[i].host, peers[loopback_rank].host, sizeof peers[i].host) != 0) {
      out.add(
          "rank %d on host %s listens on loopback (%s), where rank %d on host %s cannot reach it; "
          "name a network interface with LITE_IFACE",
          loopback_rank, peers[loopback_rank].host,
          format_address(peers[loopback_rank].address, text, sizeof text), i, peers[i].host);
      return StartFault::kTable;
    }
    if (peers[i].address.ss_family != AF_INET6 || !is_link_local(peers[i].address)) continue;
    // A scope is a number of an interface of one host: another host's means nothing here, there it
    // is our own interface that leads to the peer.
    const bool same_host = std::strncmp(peers[i].host, peers[rank].host, sizeof peers[i].host) == 0;
    const std::uint32_t scope = same_host ? blob_at(table, i).scope : own.scope;
    if (scope == 0) {
      out.add(
          "rank %d on host %s has a link-local address only (%s) and rank %d none; name an "
          "interface with LITE_IFACE on all hosts",
          i, peers[i].host, format_address(peers[i].address, text, sizeof text), rank);
      return StartFault::kArgument;  // seen by who has none
    }
    set_scope(peers[i].address, scope);
  }
  if (const StartFault fault = addresses_clash(table, size, peers, out); fault != StartFault::kNone)
    return fault;
  std::uint8_t made[kSecretBytes];
  crypto_generichash_final(&hash, made, sizeof made);
  std::memcpy(secret, made, sizeof made);
  sodium_memzero(made, sizeof made);
  return StartFault::kNone;
}

}  // namespace mplite
