// wireup.h: the address table with its secret.
#include "mplite/runtime/wireup.h"

#include <sched.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sodium.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

#include "address_of.h"
#include "mplite/base/address.h"
#include "mplite/engine/engine.h"
#include "mplite/net/net_posix.h"
#include "mplite/runtime/secret_file.h"
#include "run_tests.h"

using namespace mplite;

namespace {

InterfaceChoice loopback_choice() {
  InterfaceChoice choice;
  std::strcpy(choice.name, "lo");
  choice.address = address_of("127.0.0.1");
  return choice;
}

// A table of `size` ranks; rank i on host "hI" at 10.0.0.(i+1) port 1000+i, its share filled with
// i+1.
struct Table {
  static constexpr int kMax = 6;
  Card card[kMax];
  PeerAddress peers[kMax] = {};
  std::uint8_t secret[kSecretBytes] = {};
  char error[512] = "";
  Table() {
    for (int i = 0; i < kMax; ++i) {
      char text[32];
      std::snprintf(text, sizeof text, "10.0.0.%d", i + 1);
      place(i, text);
      std::snprintf(text, sizeof text, "h%d", i);
      std::snprintf(card[i].host, sizeof card[i].host, "%s", text);
      std::memset(card[i].share, i + 1, sizeof card[i].share);
    }
  }
  void place(int rank, const char* address, std::uint32_t scope = 0) {
    PosixNet net;
    InterfaceChoice choice;
    choice.address = address_of(address, scope);
    reinterpret_cast<sockaddr_in*>(&choice.address)->sin_port =
        htons(static_cast<std::uint16_t>(1000 + rank));
    Card made;
    make_card(net, choice, made);
    std::memcpy(made.host, card[rank].host, sizeof made.host);
    std::memcpy(made.share, card[rank].share, sizeof made.share);
    card[rank] = made;
  }
  void also(int rank, std::initializer_list<const char*> addresses) {
    int k = 0;
    for (CompactAddress& more : card[rank].more) more = {};
    for (const char* address : addresses) {
      card[rank].more[k] = compact(address_of(address));
      card[rank].more[k++].port = static_cast<std::uint16_t>(2000 + rank);
    }
  }
  SecretFile file;
  StartFault fault = StartFault::kNone;
  bool decode(int size = 3, int rank = 0) {
    fault = decode_table(card, size, rank, file, peers, secret, error, sizeof error);
    return fault == StartFault::kNone;
  }
};

START_TEST(table_gives_every_ranks_address_and_host) {
  Table t;
  t.place(1, "2001:db8::9");
  ck_assert_msg(t.decode(), "%s", t.error);
  char text[96];
  ck_assert_str_eq(format_address(t.peers[0].address, text, sizeof text), "10.0.0.1 port 1000");
  ck_assert_str_eq(format_address(t.peers[1].address, text, sizeof text), "2001:db8::9 port 1001");
  ck_assert_str_eq(format_address(t.peers[2].address, text, sizeof text), "10.0.0.3 port 1002");
  ck_assert_str_eq(t.peers[2].host, "h2");
}
END_TEST

START_TEST(table_may_lie_at_any_address) {
  Table t;
  ck_assert(t.decode());
  std::uint8_t expected[kSecretBytes];
  std::memcpy(expected, t.secret, sizeof expected);
  static char shifted[3 * kCardBytes + 1];
  std::memcpy(shifted + 1, t.card, 3 * kCardBytes);
  ck_assert(decode_table(shifted + 1, 3, 0, t.file, t.peers, t.secret, t.error, sizeof t.error) ==
            StartFault::kNone);
  ck_assert_mem_eq(t.secret, expected, sizeof expected);
}
END_TEST

START_TEST(secret_is_the_keyed_hash_of_all_shares_in_rank_order) {
  Table t;
  ck_assert(t.decode());
  std::uint8_t shares[3 * 32], expected[32];
  for (int i = 0; i < 3; ++i) std::memset(shares + 32 * i, i + 1, 32);
  const char label[] = "ch_lite job secret, version 1";
  ck_assert_int_eq(crypto_generichash(expected, 32, shares, sizeof shares,
                                      reinterpret_cast<const unsigned char*>(label), sizeof label),
                   0);
  ck_assert_mem_eq(t.secret, expected, 32);
}
END_TEST

START_TEST(secret_is_one_for_all_ranks_and_changes_with_any_share_order_or_size) {
  Table t;
  std::uint8_t first[kSecretBytes];
  ck_assert(t.decode(3, 0));
  std::memcpy(first, t.secret, sizeof first);
  ck_assert(t.decode(3, 2));
  ck_assert_mem_eq(t.secret, first, sizeof first);
  ck_assert(t.decode(4, 0));
  ck_assert_mem_ne(t.secret, first, sizeof first);
  for (int i = 0; i < 3; ++i) {
    Table other;
    other.card[i].share[31] ^= 1;
    ck_assert(other.decode());
    ck_assert_mem_ne(other.secret, first, sizeof first);
  }
  Table swapped;
  std::memset(swapped.card[0].share, 2, 32);
  std::memset(swapped.card[1].share, 1, 32);
  ck_assert(swapped.decode());
  ck_assert_mem_ne(swapped.secret, first, sizeof first);
}
END_TEST

START_TEST(shares_are_random) {
  PosixNet net;
  Card a, b;
  make_card(net, loopback_choice(), a);
  make_card(net, loopback_choice(), b);
  ck_assert_mem_ne(a.share, b.share, sizeof a.share);
  ck_assert_uint_eq(a.pid, static_cast<unsigned>(getpid()));
}
END_TEST

START_TEST(ranks_bound_to_other_processors_share_no_place) {
  PosixNet net;
  Card table[3];
  make_card(net, loopback_choice(), table[0]);
  make_card(net, loopback_choice(), table[1]);
  cpu_set_t before, one;
  ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  if (CPU_EQUAL(&before, &one)) return;  // one processor: nothing to tell apart
  ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
  make_card(net, loopback_choice(), table[2]);
  sched_setaffinity(0, sizeof before, &before);
  ck_assert_int_eq(ranks_sharing_place(table, 3, 0), 2);
  ck_assert_int_eq(ranks_sharing_place(table, 3, 2), 1);
  std::memset(table[2].place, 0, sizeof table[2].place);  // not known there
  ck_assert_int_eq(ranks_sharing_place(table, 3, 2), 1);
}
END_TEST

START_TEST(a_bad_card_is_named_by_rank_and_leaves_the_secret_alone) {
  const struct {
    void (*spoil)(Card& card);
    const char* sentence;
  } table[] = {
      {[](Card& b) { std::memset(&b, 0, sizeof b); },
       "the address of rank 2 is not one of ch_lite (did the rank start with another library?)"},
      {[](Card& b) { b.magic ^= 1; },
       "the address of rank 2 is not one of ch_lite (did the rank start with another library?)"},
      {[](Card& b) { ++b.version; }, "the address of rank 2 is of another version of ch_lite"},
      {[](Card& b) { b.family = 5; }, "the address of rank 2 has an unknown address family"},
      {[](Card& b) { b.port = 0; }, "the address of rank 2 has no port"},
      {[](Card& b) { b.host[0] = '\0'; }, "the address of rank 2 has no sound host name"},
      {[](Card& b) { std::memset(b.host, 'x', sizeof b.host); },
       "the address of rank 2 has no sound host name"},
      {[](Card& b) { b.host[0] = '\n'; }, "the address of rank 2 has no sound host name"},
      {[](Card& b) { b.host[0] = '\x1b'; }, "the address of rank 2 has no sound host name"},
  };
  for (const auto& row : table) {
    Table t;
    row.spoil(t.card[2]);
    std::memset(t.secret, 0x33, sizeof t.secret);
    ck_assert(!t.decode());
    ck_assert_str_eq(t.error, row.sentence);
    for (const std::uint8_t byte : t.secret) ck_assert_uint_eq(byte, 0x33);
  }
}
END_TEST

START_TEST(card_of_a_rank_that_cannot_start_tells_every_rank_who_and_why) {
  Table t;
  make_failed_card("LITE_CREDITS=\"few\" is not allowed;\n16K", &t.card[1]);
  make_failed_card("something else", &t.card[2]);
  char own[64] = "";
  gethostname(own, sizeof own - 1);
  const std::string sentence = std::string("rank 1 on host ") + own +
                               " cannot start: LITE_CREDITS=\"few\" is not allowed; 16K";
  for (const int rank : {0, 2}) {
    ck_assert(!t.decode(3, rank));
    ck_assert(t.fault == StartFault::kTable);
    ck_assert_str_eq(t.error, sentence.c_str());
  }
  char text[512];
  ck_assert_int_eq(find_failed(t.card, 3, text, sizeof text), 1);
  ck_assert_str_eq(text, sentence.c_str());
  ck_assert_int_eq(find_failed(t.card, 1, text, sizeof text), -1);
  ck_assert(!is_failed_card(&t.card[0], 0, text, sizeof text));
  // too long a reason is cut, and shown to be
  make_failed_card(std::string(1000, 'x').c_str(), &t.card[1]);
  ck_assert_int_eq(find_failed(t.card, 3, text, sizeof text), 1);
  ck_assert_ptr_nonnull(std::strstr(text, "xxx\xe2\x80\xa6"));
  // whatever a card holds
  std::memset(reinterpret_cast<char*>(&t.card[1]) + 8, 0xff, sizeof t.card[1] - 8);
  ck_assert_int_eq(find_failed(t.card, 3, text, sizeof text), 1);
  ck_assert_int_eq(std::strncmp(text, "rank 1 on host unnamed cannot start: ", 37), 0);
}
END_TEST

// The file's content is key; wherever fixed bytes are enough.
SecretFile file_of(const char* content) {
  char path[] = "/tmp/lite-secret.XXXXXX";
  const int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, content, std::strlen(content)),
                   static_cast<ssize_t>(std::strlen(content)));
  close(fd);
  SecretFile file;
  char error[512];
  ck_assert_msg(read_secret_file(path, file, error, sizeof error), "%s", error);
  unlink(path);
  return file;
}

START_TEST(secret_needs_the_file_beside_the_cards) {
  Table bare, one, two;
  ck_assert(bare.decode());
  one.file = file_of("sixteen bytes or more");
  two.file = file_of("sixteen bytes or morE");
  for (Table* t : {&one, &two}) {
    for (Card& card : t->card) make_fingerprint(t->file, card.share, card.fingerprint);
    ck_assert_msg(t->decode(), "%s", t->error);
  }
  ck_assert_mem_ne(one.secret, bare.secret, kSecretBytes);
  ck_assert_mem_ne(one.secret, two.secret, kSecretBytes);
  std::uint8_t first[kSecretBytes];
  std::memcpy(first, one.secret, sizeof first);
  ck_assert(one.decode(3, 2));
  ck_assert_mem_eq(one.secret, first, sizeof first);
  // another job's cards show no sign of it being the same file
  ck_assert_mem_ne(one.card[0].fingerprint, one.card[1].fingerprint, kFingerprintBytes);
}
END_TEST

START_TEST(ranks_with_another_encryption_are_told_by_rank_and_host) {
  Table t;
  for (int i = 0; i < 3; ++i) t.card[i].protection = 2;
  ck_assert(t.decode(3, 1));
  t.card[2].protection = 1;
  for (const int rank : {0, 1, 2}) {
    ck_assert(!t.decode(3, rank));
    ck_assert(t.fault == StartFault::kTable);
    ck_assert_str_eq(t.error,
                     "rank 0 on host h0 has LITE_ENCRYPT=on, and rank 2 on host h2 has "
                     "LITE_ENCRYPT=auth; give all ranks the same");
  }
  t.card[2].protection = 3;
  ck_assert(!t.decode(3, 0));
  ck_assert_str_eq(t.error, "the address of rank 2 has an unknown LITE_ENCRYPT");
}
END_TEST

START_TEST(ranks_whose_secret_files_differ_are_told_by_rank_and_host) {
  Table t;
  const SecretFile own = file_of("sixteen bytes or more"), other = file_of("sixteen other bytes");
  for (int i = 0; i < 3; ++i)
    make_fingerprint(i == 1 ? other : own, t.card[i].share, t.card[i].fingerprint);
  t.file = own;
  ck_assert(!t.decode(3, 0));
  ck_assert_str_eq(t.error,
                   "the files named by LITE_SECRET_FILE differ between rank 0 on host h0 and rank "
                   "1 on host h1; give all ranks a copy of one file");
  t.file = other;
  ck_assert(!t.decode(3, 1));
  ck_assert_str_eq(t.error,
                   "the files named by LITE_SECRET_FILE differ between rank 1 on host h1 and rank "
                   "0 on host h0; give all ranks a copy of one file");
  // one with and the others without
  for (int i = 0; i < 3; ++i)
    make_fingerprint(i == 1 ? own : SecretFile(), t.card[i].share, t.card[i].fingerprint);
  t.file = own;
  ck_assert(!t.decode(3, 1));
  ck_assert_str_eq(t.error,
                   "rank 0 on host h0 has no LITE_SECRET_FILE, and rank 1 on host h1 has one; give "
                   "all ranks a copy of one file");
  t.file = SecretFile();
  for (const int rank : {0, 2}) {
    ck_assert(!t.decode(3, rank));
    ck_assert_ptr_nonnull(
        std::strstr(t.error, "has no LITE_SECRET_FILE, and rank 1 on host h1 has one"));
  }
}
END_TEST

START_TEST(one_address_on_two_hosts_is_an_error) {
  Table t;
  t.place(1, "10.0.0.1");  // as rank 0: one network stack, as they are made by one process
  ck_assert_msg(t.decode(), "%s", t.error);
  std::memset(t.card[1].network, 7, sizeof t.card[1].network);
  for (int rank = 0; rank < 3; ++rank) {
    ck_assert(!t.decode(3, rank));
    ck_assert(t.fault == StartFault::kTable);
    ck_assert_str_eq(t.error,
                     "rank 0 on host h0 and rank 1 on host h1 have the same address (10.0.0.1) and "
                     "are not on one host, so that they cannot reach each other; name a network "
                     "interface with an address of its own on each host by LITE_IFACE");
  }
  // Not known where they are: then the host's name tells.
  for (Card& card : t.card) std::memset(card.network, 0, sizeof card.network);
  ck_assert(!t.decode());
  std::strcpy(t.card[1].host, "h0");
  ck_assert_msg(t.decode(), "%s", t.error);
  // a machine that was copied while it ran: even the boot is the same
  t.card[1].port = t.card[0].port;
  ck_assert(!t.decode());
  ck_assert_ptr_nonnull(std::strstr(t.error, "have the same address (10.0.0.1)"));
  // of several pairs the one with the lowest rank
  Table many;
  for (int i = 0; i < 6; ++i) {
    many.place(i, i % 3 == 0 ? "10.0.0.9" : i % 3 == 1 ? "10.0.0.7" : "10.0.0.8");
    std::memset(many.card[i].network, i + 1, sizeof many.card[i].network);
  }
  ck_assert(!many.decode(6, 5));
  ck_assert_ptr_nonnull(std::strstr(
      many.error, "rank 0 on host h0 and rank 3 on host h3 have the same address (10.0.0.9)"));
}
END_TEST

const char* roads_of(const PeerAddress& peer) {
  char text[96];
  static std::string all;
  all = format_address(peer.address, text, sizeof text);
  for (const CompactAddress& more : peer.more)
    if (more.family != 0)
      all += std::string(", ") + format_address(expanded(more), text, sizeof text);
  return all.c_str();
}

START_TEST(table_gives_every_address_of_a_rank_in_its_order) {
  Table t;
  t.also(1, {"192.168.7.1", "2001:db8::1"});
  ck_assert_msg(t.decode(), "%s", t.error);
  ck_assert_str_eq(roads_of(t.peers[0]), "10.0.0.1 port 1000");
  ck_assert_str_eq(roads_of(t.peers[1]),
                   "10.0.0.2 port 1001, 192.168.7.1 port 2001, 2001:db8::1 port 2001");
  t.card[1].more[1].family = 7;
  ck_assert(!t.decode());
  ck_assert_str_eq(t.error, "the address of rank 1 has an unknown address family");
  t.card[1].more[1].family = 4;
  t.card[1].more[1].port = 0;
  ck_assert(!t.decode());
  ck_assert_str_eq(t.error, "the address of rank 1 has no port");
}
END_TEST

// Machines behind NAT each have 10.0.2.15.
START_TEST(address_that_two_hosts_have_is_left_out_where_there_is_another) {
  Table t;
  for (int i = 0; i < 3; ++i) {
    t.place(i, "10.0.2.15");
    std::memset(t.card[i].network, i + 1, sizeof t.card[i].network);
  }
  t.also(0, {"192.168.56.1"});
  t.also(1, {"192.168.56.2", "172.16.0.1"});
  t.also(2, {"172.16.0.1", "192.168.56.3"});
  for (int rank = 0; rank < 3; ++rank) {
    ck_assert_msg(t.decode(3, rank), "%s", t.error);
    ck_assert_str_eq(roads_of(t.peers[0]), "192.168.56.1 port 2000");
    ck_assert_str_eq(roads_of(t.peers[1]), "192.168.56.2 port 2001");
    ck_assert_str_eq(roads_of(t.peers[2]), "192.168.56.3 port 2002");
  }
  // rank 1 has nothing of its own any more
  t.also(1, {"192.168.56.3"});
  for (int rank = 0; rank < 3; ++rank) {
    ck_assert(!t.decode(3, rank));
    ck_assert(t.fault == StartFault::kTable);
    ck_assert_ptr_nonnull(std::strstr(
        t.error, "rank 0 on host h0 and rank 1 on host h1 have the same address (10.0.2.15)"));
  }
}
END_TEST

START_TEST(ranks_of_one_host_keep_the_addresses_that_they_share) {
  Table t;
  for (int i = 0; i < 3; ++i) {
    t.place(i, i < 2 ? "10.0.0.1" : "10.0.0.9");
    t.also(i, {i < 2 ? "192.168.7.1" : "192.168.7.9"});
    std::memset(t.card[i].network, i < 2 ? 1 : 2, sizeof t.card[i].network);
  }
  ck_assert_msg(t.decode(), "%s", t.error);
  ck_assert_str_eq(roads_of(t.peers[0]), "10.0.0.1 port 1000, 192.168.7.1 port 2000");
  ck_assert_str_eq(roads_of(t.peers[1]), "10.0.0.1 port 1001, 192.168.7.1 port 2001");
  // Another host has one of them: it is left out for both.
  t.also(2, {"10.0.0.1"});
  ck_assert_msg(t.decode(), "%s", t.error);
  ck_assert_str_eq(roads_of(t.peers[0]), "192.168.7.1 port 2000");
  ck_assert_str_eq(roads_of(t.peers[1]), "192.168.7.1 port 2001");
  ck_assert_str_eq(roads_of(t.peers[2]), "10.0.0.9 port 1002");
}
END_TEST

// Ports count where the address is the same, and nowhere else.
START_TEST(ranks_of_one_host_may_have_one_port_at_two_addresses) {
  Table t;
  for (int i = 0; i < 2; ++i) {
    t.place(i, i == 0 ? "10.1.0.1" : "10.2.0.1");
    t.card[i].port = 5000;
    t.also(i, {"10.0.0.1"});
    t.card[i].more[0].port = static_cast<std::uint16_t>(5000 + i);
    std::memset(t.card[i].network, 1, sizeof t.card[i].network);
  }
  ck_assert_msg(t.decode(2), "%s", t.error);
  ck_assert_str_eq(roads_of(t.peers[0]), "10.1.0.1 port 5000, 10.0.0.1 port 5000");
  ck_assert_str_eq(roads_of(t.peers[1]), "10.2.0.1 port 5000, 10.0.0.1 port 5001");
  t.card[1].more[0].port = 5000;  // a copy of a machine that has not booted since
  ck_assert_msg(t.decode(2), "%s", t.error);
  ck_assert_str_eq(roads_of(t.peers[1]), "10.2.0.1 port 5000");
}
END_TEST

START_TEST(table_gives_what_each_rank_holds_for_others) {
  Table t;
  t.card[1].credits = 65536;
  t.card[1].unexpected_max = 1 << 20;
  ck_assert(t.decode());
  ck_assert_uint_eq(t.peers[1].credits, 65536);
  ck_assert_uint_eq(t.peers[1].unexpected_max, 1 << 20);
}
END_TEST

START_TEST(loopback_is_fine_on_one_host_and_an_error_between_hosts) {
  Table t;
  for (int i = 0; i < 3; ++i) {
    t.place(i, "127.0.0.1");
    std::strcpy(t.card[i].host, "one");
  }
  ck_assert_msg(t.decode(), "%s", t.error);
  std::strcpy(t.card[2].host, "two");
  for (int rank = 0; rank < 3; ++rank) {
    ck_assert(!t.decode(3, rank));
    ck_assert(t.fault == StartFault::kTable);
    ck_assert_str_eq(t.error,
                     "rank 0 on host one listens on loopback (127.0.0.1 port 1000), where rank 2 "
                     "on host two cannot reach it; name a network interface with "
                     "LITE_IFACE");
  }
  t.place(0, "10.0.0.1");
  t.place(1, "10.0.0.2");
  t.place(2, "::1");
  ck_assert(!t.decode());
  ck_assert_ptr_nonnull(std::strstr(t.error,
                                    "rank 2 on host two listens on loopback (::1 port 1002), where "
                                    "rank 0 on host one cannot reach it"));
}
END_TEST

START_TEST(link_local_address_gets_the_scope_of_the_interface_that_leads_there) {
  Table t;
  t.place(0, "fe80::a", 7);
  t.place(1, "fe80::b", 3);
  t.place(2, "fe80::c", 5);
  std::strcpy(t.card[2].host, "h0");  // on one host with rank 0, over another interface
  ck_assert_msg(t.decode(3, 0), "%s", t.error);
  char text[96];
  ck_assert_str_eq(format_address(t.peers[0].address, text, sizeof text), "fe80::a%7 port 1000");
  ck_assert_str_eq(format_address(t.peers[1].address, text, sizeof text), "fe80::b%7 port 1001");
  ck_assert_str_eq(format_address(t.peers[2].address, text, sizeof text), "fe80::c%5 port 1002");
  t.place(0, "10.0.0.1");
  ck_assert(!t.decode(3, 0));
  ck_assert_str_eq(t.error,
                   "rank 1 on host h1 has a link-local address only (fe80::b port 1001) and rank 0 "
                   "none; name an interface with LITE_IFACE on all hosts");
  // The others do not find that, so it is for this rank to say.
  ck_assert(t.fault == StartFault::kArgument);
  ck_assert_msg(t.decode(3, 1), "%s", t.error);
}
END_TEST

// Rank 0 and rank 1 of a table in which both say what addresses their hosts have.
struct Hosts {
  Table table;
  void set(int rank, std::initializer_list<const char*> published,
           std::initializer_list<const char*> has) {
    table.place(rank, *published.begin());
    table.also(rank, {});
    int k = 0;
    for (auto at = published.begin() + 1; at != published.end(); ++at) {
      CompactAddress& more = table.card[rank].more[k++];
      more = compact(address_of(*at));
      more.port = 2000;
    }
    table.card[rank].kinds = kKindsKnown;
    for (const char* address : has)
      table.card[rank].kinds =
          static_cast<std::uint8_t>(table.card[rank].kinds | kind_of(address_of(address)));
  }
  bool apart() {
    ck_assert_msg(table.decode(3, 0), "%s", table.error);
    ck_assert(!table.peers[0].apart);
    ck_assert(!table.peers[2].apart);  // of which nothing is known
    const bool seen_by_0 = table.peers[1].apart;
    ck_assert_msg(table.decode(3, 1), "%s", table.error);
    ck_assert_int_eq(table.peers[0].apart, seen_by_0);
    return seen_by_0;
  }
};

START_TEST(ranks_are_apart_of_which_neither_can_call_the_other) {
  const struct {
    std::initializer_list<const char*> published, has, published_too, has_too;
    bool apart;
  } table[] = {
      {{"10.0.0.1"}, {"10.0.0.1"}, {"10.0.0.2"}, {"10.0.0.2"}, false},
      {{"10.0.0.1"}, {"10.0.0.1"}, {"fd77::2"}, {"fd77::2"}, true},
      {{"10.0.0.1"}, {"10.0.0.1"}, {"fd77::2"}, {"fd77::2", "10.0.0.2"}, false},  // 1 calls 0
      {{"10.0.0.1"}, {"10.0.0.1", "fd77::1"}, {"fd77::2"}, {"fd77::2"}, false},   // 0 calls 1
      {{"10.0.0.1"}, {"10.0.0.1"}, {"fd77::2", "10.0.0.2"}, {"fd77::2", "10.0.0.2"}, false},
      {{"10.0.0.1"}, {"10.0.0.1", "fe80::1"}, {"fd77::2"}, {"fd77::2", "fe80::2"}, true},
      {{"169.254.1.1"}, {"169.254.1.1"}, {"fd77::2"}, {"fd77::2"}, true},
      {{"10.0.0.1", "10.1.0.1"}, {"10.0.0.1"}, {"fd77::2", "fd78::2"}, {"fd77::2"}, true},
  };
  for (const auto& row : table) {
    Hosts hosts;
    hosts.set(0, row.published, row.has);
    hosts.set(1, row.published_too, row.has_too);
    ck_assert_int_eq(hosts.apart(), row.apart);
    hosts.table.card[1].kinds = 0;
    ck_assert(!hosts.apart());
  }
}
END_TEST

START_TEST(card_says_which_kinds_of_addresses_the_host_has) {
  PosixNet net;
  InterfaceChoice choice = loopback_choice();
  choice.kinds = kKindsKnown | kHasIpv6;
  Card card;
  make_card(net, choice, card);
  ck_assert_uint_eq(card.kinds, kKindsKnown | kHasIpv6);
}
END_TEST

START_TEST(two_processes_find_each_other_through_a_table) {
  PosixNet net;
  Card table[2];
  int listener[2];
  char error[512];
  for (int i = 0; i < 2; ++i) {
    InterfaceChoice choice = loopback_choice();
    listener[i] = open_listener(net, choice, default_knobs(), error, sizeof error);
    ck_assert_int_ge(listener[i], 0);
    make_card(net, choice, table[i]);
  }
  PeerAddress peers[2];
  std::uint8_t secret[kSecretBytes];
  ck_assert_msg(decode_table(table, 2, 0, SecretFile(), peers, secret, error, sizeof error) ==
                    StartFault::kNone,
                "%s", error);
  ck_assert_int_eq(net.open(), 0);
  ck_assert_int_eq(net.watch(listener[1], 1, kReadable), 0);
  const int fd = net.open_stream(peers[1].address.ss_family);
  const int rc = net.connect(fd, peers[1].address);
  ck_assert(rc == 0 || rc == -EINPROGRESS);
  NetEvent event;
  ck_assert_int_eq(net.wait(&event, 1, 1'000'000'000), 1);
  sockaddr_storage from;
  const int accepted = net.accept(listener[1], from);
  ck_assert_int_ge(accepted, 0);
  for (const int each : {fd, accepted, listener[0], listener[1]}) net.close(each);
}
END_TEST

}  // namespace

int main() { return run_tests("wireup"); }
