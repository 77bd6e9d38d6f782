// iface_list.h: the syntax of LITE_IFACE and what its rules match.
#include "mplite/config/iface_list.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include "run_tests.h"

using namespace mplite;

namespace {

sockaddr_storage v4(const char* text) {
  sockaddr_storage address = {};
  auto* in = reinterpret_cast<sockaddr_in*>(&address);
  in->sin_family = AF_INET;
  ck_assert_int_eq(inet_pton(AF_INET, text, &in->sin_addr), 1);
  return address;
}

sockaddr_storage v6(const char* text) {
  sockaddr_storage address = {};
  auto* in6 = reinterpret_cast<sockaddr_in6*>(&address);
  in6->sin6_family = AF_INET6;
  ck_assert_int_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
  return address;
}

IfaceList parsed(const char* text) {
  IfaceList list;
  char why[256] = "";
  ck_assert_msg(parse_iface_list(text, list, why, sizeof why), "%s: %s", text, why);
  return list;
}

START_TEST(names_match_exactly) {
  const IfaceList list = parsed("eth0");
  ck_assert(rule_matches(list.rule[0], "eth0", v4("10.0.0.1")));
  ck_assert(rule_matches(list.rule[0], "eth0", v6("fe80::1")));
  ck_assert(!rule_matches(list.rule[0], "eth", v4("10.0.0.1")));
  ck_assert(!rule_matches(list.rule[0], "eth00", v4("10.0.0.1")));
}
END_TEST

START_TEST(networks_match_by_prefix_and_family) {
  const struct {
    const char* rule;
    sockaddr_storage address;
    bool matches;
  } table[] = {
      {"10.1.0.0/16", v4("10.1.255.3"), true},   {"10.1.0.0/16", v4("10.2.0.0"), false},
      {"10.1.2.200/25", v4("10.1.2.128"), true}, {"10.1.2.200/25", v4("10.1.2.127"), false},
      {"10.1.2.3", v4("10.1.2.3"), true},        {"10.1.2.3", v4("10.1.2.2"), false},
      {"0.0.0.0/0", v4("203.0.113.9"), true},    {"0.0.0.0/0", v6("2001:db8::1"), false},
      {"::/0", v6("2001:db8::1"), true},         {"fe80::/10", v6("febf::1"), true},
      {"fe80::/10", v6("fec0::1"), false},       {"2001:db8::7", v6("2001:db8::7"), true},
      {"10.1.2.3/31", v4("10.1.2.2"), true},     {"2001:db8::7", v6("2001:db8::8"), false},
  };
  for (const auto& row : table) {
    const IfaceList list = parsed(row.rule);
    ck_assert_msg(rule_matches(list.rule[0], "any0", row.address) == row.matches, "%s", row.rule);
  }
}
END_TEST

START_TEST(list_keeps_order_and_signs) {
  const IfaceList list = parsed("ib0,10.0.0.0/8,^eth1,!172.16.0.0/12");
  ck_assert_int_eq(list.count, 4);
  ck_assert(!list.rule[0].exclude && !list.rule[1].exclude && list.rule[2].exclude &&
            list.rule[3].exclude);
  ck_assert(!list.rule[0].network && list.rule[1].network && !list.rule[2].network &&
            list.rule[3].network);
  ck_assert(list.wants());
  ck_assert(!parsed("^eth1,^eth2").wants());
}
END_TEST

START_TEST(rules_format_to_their_own_syntax) {
  for (const char* text : {"eth0", "^eth0", "10.1.0.0/16", "^fe80::/10", "192.0.2.7/32"}) {
    char again[64];
    ck_assert_str_eq(format_rule(parsed(text).rule[0], again, sizeof again), text);
  }
}
END_TEST

START_TEST(nonsense_is_refused_with_a_reason) {
  char many[IfaceList::kRules * 2 + 4] = "";
  for (int i = 0; i <= IfaceList::kRules; ++i) std::strcat(many, i == 0 ? "a" : ",a");
  const struct {
    const char* text;
    const char* reason;
  } table[] = {
      {"", "empty"},
      {"eth0,", "empty"},
      {",eth0", "empty"},
      {"^", "empty"},
      {"eth0, eth1", "\" eth1\""},
      {"^^eth0", "no interface name"},
      {"10.0.0.0/33", "from 0 to 32"},
      {"10.0.0.0/", "from 0 to 32"},
      {"10.0.0.0/8x", "from 0 to 32"},
      {"::1/129", "from 0 to 128"},
      {"10.0.0/8", "is no address"},
      {"eth0/24", "is no address"},
      {"abcdefghijklmnop", "too long"},
      {"^eth0,eth1", "\"eth1\" follows an exclusion"},
      {"1234567890123456789012345678901234567890123456789012345678901234", "longer than"},
      {many, "more than 32"},
  };
  for (const auto& row : table) {
    IfaceList list;
    list.count = 7;
    char why[256] = "";
    ck_assert_msg(!parse_iface_list(row.text, list, why, sizeof why), "\"%s\" was taken", row.text);
    ck_assert_msg(std::strstr(why, row.reason) != nullptr, "\"%s\": %s", row.text, why);
    ck_assert_int_eq(list.count, 7);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("iface_list"); }
