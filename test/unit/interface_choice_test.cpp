// interface_choice.h: which interface is taken, and the listener there.
#include "mplite/runtime/interface_choice.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "address_of.h"
#include "mplite/base/address.h"
#include "mplite/net/net_posix.h"
#include "run_tests.h"

using namespace mplite;

namespace {

constexpr unsigned kUp = IFF_UP | IFF_RUNNING;

Candidate candidate(const char* name, const char* address, unsigned flags = kUp,
                    std::uint32_t scope = 0) {
  Candidate c;
  std::snprintf(c.name, sizeof c.name, "%s", name);
  c.flags = flags;
  c.address = address_of(address, scope);
  return c;
}

const Candidate kLo = candidate("lo", "127.0.0.1", kUp | IFF_LOOPBACK);
const Candidate kLo6 = candidate("lo", "::1", kUp | IFF_LOOPBACK);
const Candidate kDocker = candidate("docker0", "172.17.0.1");
const Candidate kEth = candidate("eth0", "10.0.0.2");
const Candidate kEth6 = candidate("eth0", "2001:db8::2");
const Candidate kEthLink = candidate("eth0", "fe80::2", kUp, 2);
const Candidate kIb = candidate("ib0", "10.8.0.2");
const Candidate kVpn = candidate("tun0", "10.99.0.2", kUp | IFF_POINTOPOINT);

// The address taken, as text; "none" when choose_interface fails. `seen` keeps what it said.
char g_seen[4096];
char g_taken[96];
const char* taken(std::initializer_list<Candidate> list, const char* wanted = nullptr,
                  Family family = Family::kAny, InterfaceChoice* made = nullptr) {
  Candidate array[16];
  int count = 0;
  for (const Candidate& c : list) array[count++] = c;
  IfaceList rules;
  char why[256];
  if (wanted != nullptr) ck_assert_msg(parse_iface_list(wanted, rules, why, sizeof why), "%s", why);
  InterfaceChoice choice;
  if (!choose_interface(array, count, rules, family, choice, g_seen, sizeof g_seen)) return "none";
  if (made != nullptr) *made = choice;
  return format_address(choice.address, g_taken, sizeof g_taken);
}

START_TEST(first_real_ipv4_interface_is_taken) {
  ck_assert_str_eq(taken({kLo, kDocker, kEth6, kEth, kIb}), "10.0.0.2");
  ck_assert_str_eq(taken({kLo, kDocker, kIb, kEth}), "10.8.0.2");
}
END_TEST

START_TEST(bridges_of_containers_are_left_out_and_namespace_interfaces_are_not) {
  for (const char* name : {"docker0", "docker_gwbridge", "virbr0", "br-0123456789ab", "lxcbr0",
                           "cni0", "cni-podman1", "flannel.1"})
    ck_assert_msg(std::strcmp(taken({kLo, candidate(name, "172.17.0.1")}), "127.0.0.1") == 0,
                  "%s was taken", name);
  for (const char* name :
       {"veth0", "vethhost12", "br-lan", "br0", "br-0123456789", "eno1", "enp0s3", "ens5"})
    ck_assert_msg(std::strcmp(taken({kLo, candidate(name, "10.0.0.1")}), "10.0.0.1") == 0,
                  "%s was left out: %s", name, g_seen);
}
END_TEST

START_TEST(interfaces_that_are_down_or_have_no_carrier_are_left_out) {
  ck_assert_str_eq(taken({candidate("eth0", "10.0.0.2", 0), kIb}), "10.8.0.2");
  ck_assert_str_eq(taken({candidate("eth0", "10.0.0.2", IFF_UP), kIb}), "10.8.0.2");
  ck_assert_ptr_nonnull(std::strstr(g_seen, "eth0 10.0.0.2 (no carrier)"));
}
END_TEST

START_TEST(preference_is_ipv4_then_tunnel_then_global_ipv6_then_link_local_then_loopback) {
  ck_assert_str_eq(taken({kLo6, kLo, kEthLink, kEth6, kVpn, kEth}), "10.0.0.2");
  ck_assert_str_eq(taken({kLo6, kLo, kEthLink, kEth6, kVpn}), "10.99.0.2");
  ck_assert_str_eq(taken({kLo6, kLo, kEthLink, kEth6}), "2001:db8::2");
  ck_assert_str_eq(taken({kLo6, kLo, kEthLink}), "fe80::2%2");
  ck_assert_str_eq(taken({kLo6, kLo}), "::1");
  ck_assert_str_eq(taken({kLo, kLo6}), "127.0.0.1");
  ck_assert_str_eq(taken({candidate("eth1", "169.254.3.4"), kEth6}), "2001:db8::2");
}
END_TEST

START_TEST(kinds_are_those_of_all_that_might_have_been_chosen_of_any_family) {
  const auto kinds = [](std::initializer_list<Candidate> list, const char* wanted, Family family) {
    InterfaceChoice choice;
    taken(list, wanted, family, &choice);
    return choice.kinds;
  };
  ck_assert_uint_eq(kinds({kLo, kEth}, nullptr, Family::kAny), kKindsKnown | kHasIpv4);
  ck_assert_uint_eq(kinds({kLo, kEth6, kEthLink}, nullptr, Family::kAny),
                    kKindsKnown | kHasIpv6 | kHasIpv6LinkLocal);
  for (const Family family : {Family::kAny, Family::kIpv4, Family::kIpv6})
    ck_assert_uint_eq(kinds({kLo, kEth, kEth6}, nullptr, family),
                      kKindsKnown | kHasIpv4 | kHasIpv6);
  ck_assert_uint_eq(kinds({kLo, kDocker, kEth6}, nullptr, Family::kAny), kKindsKnown | kHasIpv6);
  ck_assert_uint_eq(kinds({kLo, kIb, kEth6}, "eth0", Family::kAny), kKindsKnown | kHasIpv6);
  ck_assert_uint_eq(kinds({kLo, candidate("eth1", "10.0.0.2", 0), kEth6}, nullptr, Family::kAny),
                    kKindsKnown | kHasIpv6);
  ck_assert_uint_eq(kinds({kLo}, nullptr, Family::kAny), kKindsKnown);
}
END_TEST

START_TEST(host_of_many_networks_publishes_an_address_of_either_family) {
  const auto others = [](std::initializer_list<Candidate> list, Family family) {
    InterfaceChoice choice;
    taken(list, nullptr, family, &choice);
    ck_assert_int_eq(choice.more_count, 3);
    static char text[96];
    return format_address(choice.more[2].address, text, sizeof text);
  };
  const Candidate third = candidate("eth2", "10.2.0.2"), fourth = candidate("eth3", "10.3.0.2"),
                  fifth = candidate("eth4", "10.4.0.2");
  ck_assert_str_eq(others({kEth, kIb, third, fourth, fifth, kEth6}, Family::kAny), "2001:db8::2");
  ck_assert_str_eq(others({kEth, kIb, third, fourth, fifth, kEth6}, Family::kIpv4), "10.3.0.2");
  ck_assert_str_eq(others({kEth, kIb, third, fourth, fifth}, Family::kAny), "10.3.0.2");
}
END_TEST

START_TEST(family_is_respected) {
  ck_assert_str_eq(taken({kLo, kEth, kEth6, kLo6}, nullptr, Family::kIpv6), "2001:db8::2");
  ck_assert_str_eq(taken({kLo, kEth6, kEth}, nullptr, Family::kIpv4), "10.0.0.2");
  ck_assert_str_eq(taken({kLo, kEth, kLo6}, nullptr, Family::kIpv6), "::1");
  ck_assert_str_eq(taken({kLo, kEth}, nullptr, Family::kIpv6), "none");
}
END_TEST

START_TEST(what_the_user_names_is_taken_in_the_users_order) {
  ck_assert_str_eq(taken({kLo, kEth, kIb}, "ib0,eth0"), "10.8.0.2");
  ck_assert_str_eq(taken({kLo, kEth, kIb}, "usb7,eth0,ib0"), "10.0.0.2");
  ck_assert_str_eq(taken({kLo, kEth, kIb}, "10.8.0.0/16"), "10.8.0.2");
  ck_assert_str_eq(taken({kLo, kEth, kIb}, "lo"), "127.0.0.1");
  ck_assert_str_eq(taken({kLo, kDocker, kEth}, "docker0"), "172.17.0.1");
  ck_assert_str_eq(taken({kLo, kEth6, kEth}, "eth0"), "10.0.0.2");
  ck_assert_str_eq(taken({kLo, kEth, kEth6}, "2001:db8::/32"), "2001:db8::2");
  ck_assert_str_eq(taken({kLo, kEth, kIb}, "10.0.0.0/8,^eth0"), "10.8.0.2");
  ck_assert_str_eq(taken({kLo, candidate("eth0", "10.0.0.2", IFF_UP)}, "eth0"), "10.0.0.2");
}
END_TEST

START_TEST(exclusions_alone_keep_the_defaults_for_the_rest) {
  ck_assert_str_eq(taken({kLo, kEth, kIb}, "^eth0"), "10.8.0.2");
  ck_assert_str_eq(taken({kLo, kDocker, kEth, kIb}, "^10.0.0.0/16"), "10.8.0.2");
  ck_assert_str_eq(taken({kLo, kEth}, "^lo,^eth0"), "none");
}
END_TEST

START_TEST(failure_tells_what_was_seen_and_why_it_was_left_out) {
  ck_assert_str_eq(taken({kLo, kDocker, kEth}, "ib0", Family::kIpv4), "none");
  ck_assert_str_eq(
      g_seen,
      "no network interface can be used with LITE_IFACE=ib0 and LITE_FAMILY=ipv4; seen: lo "
      "127.0.0.1 (not named by LITE_IFACE), "
      "docker0 172.17.0.1 (not named by LITE_IFACE), eth0 10.0.0.2 (not named by LITE_IFACE)");
  ck_assert_str_eq(taken({}), "none");
  ck_assert_str_eq(g_seen, "no network interface can be used; seen: none");
}
END_TEST

START_TEST(success_tells_every_candidate) {
  ck_assert_str_eq(taken({kLo, kDocker, kEth, kIb}), "10.0.0.2");
  ck_assert_str_eq(g_seen,
                   "lo 127.0.0.1 (loopback, taken only when nothing else is there), docker0 "
                   "172.17.0.1 (a bridge of containers or virtual machines), "
                   "eth0 10.0.0.2 (chosen), ib0 10.8.0.2 (if the first does not lead here)");
}
END_TEST

// All of the choice, "10.0.0.2 10.8.0.2".
const char* roads(std::initializer_list<Candidate> list, const char* wanted = nullptr,
                  Family family = Family::kAny) {
  static char all[400];
  InterfaceChoice choice;
  if (std::strcmp(taken(list, wanted, family, &choice), "none") == 0) return "none";
  int used = std::snprintf(all, sizeof all, "%s", g_taken);
  for (int i = 0; i < choice.more_count; ++i)
    used += std::snprintf(all + used, sizeof all - static_cast<std::size_t>(used), " %s",
                          format_address(choice.more[i].address, g_taken, sizeof g_taken));
  return all;
}

START_TEST(what_else_may_lead_here_follows_in_the_order_of_preference) {
  ck_assert_str_eq(roads({kLo, kEth}), "10.0.0.2");
  ck_assert_str_eq(roads({kLo, kDocker, kEth, kIb}), "10.0.0.2 10.8.0.2");
  ck_assert_str_eq(roads({kVpn, kEth6, kEth}), "10.0.0.2 10.99.0.2 2001:db8::2");
  // of an interface one address of each family
  ck_assert_str_eq(
      roads({kEth, candidate("eth0", "10.0.0.3"), kEth6, candidate("eth0", "2001:db8::3"), kIb}),
      "10.0.0.2 10.8.0.2 2001:db8::2");
  // what means nothing elsewhere is for those who have nothing else
  ck_assert_str_eq(roads({kLo, kLo6, kEthLink, kEth}), "10.0.0.2");
  ck_assert_str_eq(roads({kLo, kLo6, kEthLink, candidate("eth1", "fe80::3", kUp, 3)}), "fe80::2%2");
  ck_assert_str_eq(roads({kLo, kLo6}), "127.0.0.1");
  // four at most
  ck_assert_str_eq(
      roads({candidate("a", "10.0.0.1"), candidate("b", "10.0.0.2"), candidate("c", "10.0.0.3"),
             candidate("d", "10.0.0.4"), candidate("e", "10.0.0.5")}),
      "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4");
}
END_TEST

START_TEST(users_interfaces_are_all_that_leads_here) {
  ck_assert_str_eq(roads({kLo, kEth, kIb, kVpn}, "ib0,eth0"), "10.8.0.2 10.0.0.2");
  ck_assert_str_eq(roads({kLo, kEth, kEth6, kIb}, "eth0"), "10.0.0.2 2001:db8::2");
  ck_assert_str_eq(roads({kLo, kEth, kEth6, kIb}, "eth0", Family::kIpv4), "10.0.0.2");
  ck_assert_str_eq(roads({kLo, kEth, kIb, kVpn}, "^eth0"), "10.8.0.2 10.99.0.2");
  ck_assert_str_eq(roads({kLo, kEth}, "eth0,lo"), "10.0.0.2");
  // the second family of an interface behind the others: lanes take networks in turn
  ck_assert_str_eq(roads({kLo, kEth, kEth6, kIb, candidate("ib0", "2001:db8:8::2")}, "eth0,ib0"),
                   "10.0.0.2 10.8.0.2 2001:db8::2 2001:db8:8::2");
}
END_TEST

START_TEST(long_lists_do_not_leave_the_text) {
  Candidate array[16];
  for (Candidate& c : array) c = candidate("eth0", "2001:db8:1111:2222:3333:4444:5555:6666");
  char text[64 + 8];
  std::memset(text, '#', sizeof text);
  InterfaceChoice choice;
  ck_assert(choose_interface(array, 16, IfaceList{}, Family::kAny, choice, text, 64));
  ck_assert_uint_eq(std::strlen(text), 63);
  ck_assert_mem_eq(text + 64, "########", 8);
}
END_TEST

START_TEST(loopback_of_this_machine_is_listed) {
  static Candidate list[kCandidatesMax];
  const int count = list_interfaces(list, kCandidatesMax);
  ck_assert_int_ge(count, 1);
  bool found = false;
  for (int i = 0; i < count; ++i) {
    char text[96];
    if (std::strcmp(format_address(list[i].address, text, sizeof text), "127.0.0.1") == 0)
      found = (list[i].flags & IFF_LOOPBACK) != 0;
  }
  ck_assert(found);
  ck_assert_int_eq(list_interfaces(list, 1), 1);
}
END_TEST

InterfaceChoice loopback_choice() {
  InterfaceChoice choice;
  std::strcpy(choice.name, "lo");
  choice.address = address_of("127.0.0.1");
  return choice;
}

unsigned port_of(const sockaddr_storage& address) {
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

START_TEST(listener_is_bound_to_the_choice_and_tells_its_port) {
  PosixNet net;
  Knobs knobs = default_knobs();
  InterfaceChoice choice = loopback_choice();
  char error[512] = "";
  const int fd = open_listener(net, choice, knobs, error, sizeof error);
  ck_assert_msg(fd >= 0, "%s", error);
  ck_assert_uint_gt(port_of(choice.address), 0);
  sockaddr_storage bound = {};
  ck_assert_int_eq(net.local_address(fd, bound), 0);
  ck_assert_mem_eq(&bound, &choice.address, sizeof(sockaddr_in));
  net.close(fd);
}
END_TEST

START_TEST(every_address_has_a_listener_or_is_left_out) {
  PosixNet net;
  InterfaceChoice choice = loopback_choice();
  for (const char* address : {"127.0.0.2", "192.0.2.77", "::1"})
    choice.more[choice.more_count++].address = address_of(address);
  char error[512] = "";
  const int first = open_listener(net, choice, default_knobs(), error, sizeof error);
  ck_assert_msg(first >= 0, "%s", error);
  ListeningSockets listeners = no_listening_sockets();
  open_more_listeners(net, choice, default_knobs(), listeners);
  ck_assert_int_ge(choice.more_count, 1);
  ck_assert_int_le(choice.more_count, 2);  // this machine may have no IPv6
  for (int i = 0; i < kAddressesMax - 1; ++i) {
    const int listener = listeners[static_cast<std::size_t>(i) + 1];
    if (i >= choice.more_count) {
      ck_assert_int_eq(listener, -1);
      continue;
    }
    const sockaddr_storage& address = choice.more[i].address;
    ck_assert(!is_same_host(address, address_of("192.0.2.77")));
    const int caller = net.open_stream(address.ss_family);
    const int rc = net.connect(caller, address);
    ck_assert(rc == 0 || rc == -EINPROGRESS);
    sockaddr_storage from = {};
    int accepted = -EAGAIN;
    for (int k = 0; k < 1000 && accepted == -EAGAIN; ++k) {
      accepted = net.accept(listener, from);
      if (accepted == -EAGAIN) usleep(1000);
    }
    ck_assert_int_ge(accepted, 0);
    net.close(accepted);
    net.close(caller);
    net.close(listener);
  }
  net.close(first);
}
END_TEST

START_TEST(port_range_is_used_to_the_last_port_and_then_refused) {
  PosixNet net;
  Knobs knobs = default_knobs();
  // A range of three neighbours that are free now: whoever takes one meanwhile makes the search go
  // on.
  int fds[4];
  for (unsigned low = 20011; low < 30000; low += 3) {
    knobs.port_lo = static_cast<std::uint16_t>(low);
    knobs.port_hi = static_cast<std::uint16_t>(low + 2);
    int opened = 0;
    char error[512] = "";
    unsigned ports = 0;
    while (opened < 4) {
      InterfaceChoice choice = loopback_choice();
      fds[opened] = open_listener(net, choice, knobs, error, sizeof error);
      if (fds[opened] < 0) break;
      ck_assert_uint_ge(port_of(choice.address), low);
      ck_assert_uint_le(port_of(choice.address), low + 2);
      ports |= 1u << (port_of(choice.address) - low);
      ++opened;
    }
    for (int i = 0; i < opened; ++i) net.close(fds[i]);
    if (opened < 3) continue;
    ck_assert_int_eq(opened, 3);
    ck_assert_uint_eq(ports, 7);
    ck_assert_int_eq(fds[3], -EADDRINUSE);
    char sentence[128];
    std::snprintf(sentence, sizeof sentence,
                  "cannot listen on lo (127.0.0.1): Address already in use; no port of "
                  "LITE_PORT_RANGE=%u:%u can be had",
                  low, low + 2);
    ck_assert_str_eq(error, sentence);
    return;
  }
  ck_abort_msg("no three free ports");
}
END_TEST

START_TEST(address_that_is_not_ours_is_an_error_and_no_descriptor_stays) {
  PosixNet net;
  InterfaceChoice choice = loopback_choice();
  choice.address = address_of("192.0.2.77");
  char error[512] = "";
  ck_assert_int_eq(open_listener(net, choice, default_knobs(), error, sizeof error),
                   -EADDRNOTAVAIL);
  ck_assert_str_eq(error, "cannot listen on lo (192.0.2.77): Cannot assign requested address");
  const int next = dup(0);
  close(next);
  ck_assert_int_eq(open_listener(net, choice, default_knobs(), error, sizeof error),
                   -EADDRNOTAVAIL);
  ck_assert_int_eq(dup(0), next);
}
END_TEST

}  // namespace

int main() { return run_tests("interface_choice"); }
