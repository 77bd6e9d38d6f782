// The address table: what a process publishes of itself (its card), and what it reads of its
// peers'.
#include "mplite/runtime/wireup.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "mplite/base/address.h"
#include "mplite/base/bounded_text.h"
#include "mplite/base/libc_compat.h"
#include "mplite/config/knobs.h"
#include "mplite/engine/engine.h"
#include "mplite/net/net.h"
#include "mplite/runtime/secret_file.h"
#include "mplite/runtime/table_reach.h"

namespace mplite {
namespace {

constexpr std::uint32_t kCardMagic = 0x4244414c;  // "LADB"
constexpr std::uint8_t kCardVersion = 4;

bool host_name_is_sound(const char (&host)[64]) {
  const std::size_t length = strnlen(host, sizeof host);
  if (length == 0 || length == sizeof host) return false;
  for (std::size_t i = 0; i < length; ++i)
    if (host[i] <= ' ' || host[i] > '~') return false;
  return true;
}

sockaddr_storage card_address(const Card& card) {
  CompactAddress address = {};
  std::memcpy(address.bytes, card.address, card.family == 4 ? 4 : sizeof address.bytes);
  address.family = card.family;
  address.port = card.port;
  return expanded(address);
}

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
  const auto* bytes = static_cast<const std::uint8_t*>(table) + offsetof(Card, place);
  const std::uint8_t* own = bytes + static_cast<std::size_t>(rank) * kCardBytes;
  const std::uint8_t unknown[sizeof Card::place] = {};
  if (std::memcmp(own, unknown, sizeof unknown) == 0) return 1;
  int count = 0;
  for (int i = 0; i < size; ++i)
    if (std::memcmp(bytes + static_cast<std::size_t>(i) * kCardBytes, own, sizeof unknown) == 0)
      ++count;
  return count;
}

void make_card(Net& net, const InterfaceChoice& choice, Card& card) {
  Card made = {};
  made.magic = kCardMagic;
  made.version = kCardVersion;
  made.port = port_of(choice.address);
  made.pid = static_cast<std::uint32_t>(getpid());
  const CompactAddress best = compact(choice.address);
  made.family = best.family;
  made.scope = best.scope;
  std::memcpy(made.address, best.bytes, sizeof made.address);
  for (int i = 0; i < choice.more_count; ++i) made.more[i] = compact(choice.more[i].address);
  made.kinds = choice.kinds;
  net.random(made.share, sizeof made.share);
  digest_place(made.place);
  digest_network(made.network);
  take_host_name(made.host);
  card = made;
}

void make_failed_card(const char* reason, void* card) {
  static const char kCut[] = "\xe2\x80\xa6";  // an ellipsis
  FailedCard made = {};
  made.magic = kCardMagic;
  made.version = kCardVersion;
  made.family = kFailedFamily;
  take_host_name(made.host);
  std::snprintf(made.reason, sizeof made.reason, "%s", reason);
  for (char& c : made.reason)
    if (static_cast<unsigned char>(c) < ' ' && c != '\0') c = ' ';
  if (std::strlen(reason) >= sizeof made.reason)
    std::memcpy(made.reason + sizeof made.reason - sizeof kCut, kCut, sizeof kCut);
  std::memcpy(card, &made, sizeof made);
}

bool is_failed_card(const void* card, int rank, char* sentence, std::size_t size) {
  FailedCard failed;
  std::memcpy(&failed, card, sizeof failed);
  if (failed.magic != kCardMagic || failed.version != kCardVersion ||
      failed.family != kFailedFamily)
    return false;
  failed.reason[sizeof failed.reason - 1] = '\0';
  for (char& c : failed.reason)
    if (c != '\0' && (static_cast<unsigned char>(c) < ' ' || c == '\x7f')) c = ' ';
  BoundedText out(sentence, size);
  out.add("rank %d on host %s cannot start: %s", rank,
          host_name_is_sound(failed.host) ? failed.host : "unnamed", failed.reason);
  return true;
}

int find_failed(const void* table, int size, char* sentence, std::size_t sentence_size) {
  for (int i = 0; i < size; ++i)
    if (is_failed_card(static_cast<const char*>(table) + static_cast<std::size_t>(i) * kCardBytes,
                       i, sentence, sentence_size))
      return i;
  return -1;
}

namespace {

// Whether ranks with different files, or some with and some without, have met: every one of them
// sees that.
bool files_differ(const void* table, int size, int rank, const SecretFile& file, BoundedText& out) {
  static const std::uint8_t kNone[kFingerprintBytes] = {};
  for (int i = 0; i < size; ++i) {
    const Card card = card_at(table, i);
    std::uint8_t expected[kFingerprintBytes];
    make_fingerprint(file, card.share, expected);
    if (sodium_memcmp(card.fingerprint, expected, sizeof expected) == 0) continue;
    const Card own = card_at(table, rank);
    const bool other_has = std::memcmp(card.fingerprint, kNone, sizeof kNone) != 0;
    if (file.there && other_has)
      out.add(
          "the files named by LITE_SECRET_FILE differ between rank %d on host %s and rank %d on "
          "host %s",
          rank, own.host, i, card.host);
    else
      out.add("rank %d on host %s has no LITE_SECRET_FILE, and rank %d on host %s has one",
              file.there ? i : rank, file.there ? card.host : own.host, file.there ? rank : i,
              file.there ? own.host : card.host);
    out.add("; give all ranks a copy of one file");
    return true;
  }
  return false;
}

// Whether ranks with another LITE_ENCRYPT have met.
bool protections_differ(const void* table, int size, BoundedText& out) {
  const Card first = card_at(table, 0);
  for (int i = 1; i < size; ++i) {
    const Card card = card_at(table, i);
    if (card.protection == first.protection) continue;
    const auto name = [](const Card& of) {
      return protection_name(static_cast<Protection>(of.protection));
    };
    out.add(
        "rank 0 on host %s has LITE_ENCRYPT=%s, and rank %d on host %s has LITE_ENCRYPT=%s; give "
        "all ranks the same",
        first.host, name(first), i, card.host, name(card));
    return true;
  }
  return false;
}

// What is wrong with a card, or nullptr.
const char* fault_of(const Card& card) {
  if (card.magic != kCardMagic)
    return "is not one of ch_lite (did the rank start with another library?)";
  if (card.version != kCardVersion) return "is of another version of ch_lite";
  if (card.family != 4 && card.family != 6) return "has an unknown address family";
  if (card.port == 0) return "has no port";
  for (const CompactAddress& more : card.more) {
    if (more.family == 0) continue;
    if (more.family != 4 && more.family != 6) return "has an unknown address family";
    if (more.port == 0) return "has no port";
  }
  if (!host_name_is_sound(card.host)) return "has no sound host name";
  if (card.protection > static_cast<std::uint8_t>(Protection::kOn))
    return "has an unknown LITE_ENCRYPT";
  return nullptr;
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
  for (int i = 0; i < size; ++i) {
    const Card card = card_at(table, i);
    if (const char* wrong = fault_of(card); wrong != nullptr) {
      out.add("the address of rank %d %s", i, wrong);
      return StartFault::kTable;
    }
    peers[i].address = card_address(card);
    std::memcpy(peers[i].more, card.more, sizeof peers[i].more);
    for (CompactAddress& more : peers[i].more) more.scope = 0;  // link-local ones are not there
    std::memcpy(peers[i].host, card.host, sizeof peers[i].host);
    std::memcpy(peers[i].name_key, card.name_key, sizeof peers[i].name_key);
    peers[i].credits = card.credits;
    peers[i].unexpected_max = card.unexpected_max;
    crypto_generichash_update(&hash, card.share, sizeof card.share);
  }
  if (files_differ(table, size, rank, file, out)) return StartFault::kTable;
  if (protections_differ(table, size, out)) return StartFault::kTable;
  if (loopback_is_out_of_reach(peers, size, out)) return StartFault::kTable;
  if (!set_scopes(table, size, rank, peers, out)) return StartFault::kArgument;
  if (const StartFault fault = leave_out_clashes(table, size, peers, out);
      fault != StartFault::kNone)
    return fault;
  find_apart(table, size, rank, peers);
  std::uint8_t made[kSecretBytes];
  crypto_generichash_final(&hash, made, sizeof made);
  std::memcpy(secret, made, sizeof made);
  sodium_memzero(made, sizeof made);
  return StartFault::kNone;
}

}  // namespace mplite
