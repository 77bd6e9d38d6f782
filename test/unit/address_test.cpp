// address.h and bounded_text.h: parts and kinds of socket addresses, and their form for people.
#include "mplite/base/address.h"

#include <arpa/inet.h>

#include <cstring>

#include "mplite/base/bounded_text.h"
#include "run_tests.h"

using namespace mplite;

namespace {

sockaddr_storage make(const char* text, std::uint16_t port = 0, std::uint32_t scope = 0) {
  sockaddr_storage address = {};
  if (std::strchr(text, ':') == nullptr) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    ck_assert_int_eq(inet_pton(AF_INET, text, &in.sin_addr), 1);
    std::memcpy(&address, &in, sizeof in);
  } else {
    sockaddr_in6 in6 = {};
    in6.sin6_family = AF_INET6;
    ck_assert_int_eq(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
    std::memcpy(&address, &in6, sizeof in6);
    set_scope(address, scope);
  }
  set_port(address, port);
  return address;
}

}  // namespace

START_TEST(format_names_host_scope_and_port) {
  char text[96];
  ck_assert_str_eq(format_address(make("10.0.0.2", 4711), text, sizeof text), "10.0.0.2 port 4711");
  ck_assert_str_eq(format_address(make("fe80::1", 80, 3), text, sizeof text), "fe80::1%3 port 80");
  ck_assert_str_eq(format_address(make("2001:db8::9"), text, sizeof text), "2001:db8::9");
  sockaddr_storage unknown = {};
  ck_assert_str_eq(format_address(unknown, text, sizeof text), "an unknown address");
}
END_TEST

START_TEST(port_is_kept_in_both_families) {
  ck_assert_uint_eq(port_of(make("10.0.0.2", 65535)), 65535);
  ck_assert_uint_eq(port_of(make("::1", 1)), 1);
}
END_TEST

START_TEST(kinds_of_addresses_are_told_apart) {
  ck_assert(is_loopback(make("127.3.2.1")) && is_loopback(make("::1")));
  ck_assert(!is_loopback(make("128.0.0.1")) && !is_loopback(make("::2")));
  ck_assert(is_link_local(make("169.254.9.9")) && is_link_local(make("fe80::1")));
  ck_assert(!is_link_local(make("169.253.9.9")) && !is_link_local(make("2001:db8::1")));
}
END_TEST

START_TEST(host_may_call_addresses_of_kinds_that_it_has) {
  const char* const called[] = {"10.0.0.2", "169.254.1.1", "2001:db8::9", "fe80::1"};
  const struct {
    const char* own;
    bool may[4];
  } table[] = {
      {"10.0.0.1", {true, true, false, false}},
      {"169.254.3.3", {false, true, false, false}},
      {"fd77::1", {false, false, true, true}},
      {"fe80::2", {false, false, false, true}},
  };
  for (const auto& row : table) {
    for (int i = 0; i < 4; ++i) {
      const std::uint8_t kind = kind_of(make(row.own));
      ck_assert_int_eq(may_call(kind | kKindsKnown, make(called[i])), row.may[i]);
      ck_assert(may_call(kind, make(called[i])));  // of whom nothing is known
    }
    ck_assert(may_call(kKindsKnown, make("127.0.0.1")));
    ck_assert(may_call(kKindsKnown, make("::1")));
  }
  ck_assert_uint_eq(kind_of(make("127.0.0.1")) | kind_of(sockaddr_storage()), 0);
}
END_TEST

START_TEST(compact_address_is_the_same_address) {
  char before[96], after[96];
  for (const sockaddr_storage& address : {make("10.0.0.2", 4711), make("255.255.255.255"),
                                          make("fe80::1", 80, 3), make("2001:db8::9", 65535)}) {
    const CompactAddress compacted = compact(address);
    ck_assert_uint_eq(compacted.family, address.ss_family == AF_INET ? 4 : 6);
    const sockaddr_storage again = expanded(compacted);
    ck_assert_mem_eq(&again, &address, sizeof again);
    ck_assert_str_eq(format_address(again, after, sizeof after),
                     format_address(address, before, sizeof before));
  }
  const sockaddr_storage none = {};
  ck_assert_uint_eq(compact(none).family, 0);
  ck_assert_int_eq(expanded(CompactAddress{}).ss_family, AF_UNSPEC);
}
END_TEST

START_TEST(same_host_whatever_the_port) {
  ck_assert(is_same_host(make("10.0.0.2", 1), make("10.0.0.2", 2)));
  ck_assert(is_same_host(make("fe80::1", 1), make("fe80::1", 2)));
  ck_assert(!is_same_host(make("10.0.0.2"), make("10.0.0.3")));
  ck_assert(!is_same_host(make("fe80::1"), make("fe80::2")));
  ck_assert(!is_same_host(make("::a00:2"), make("10.0.0.2")));
}
END_TEST

START_TEST(text_is_cut_at_the_end_of_its_buffer_and_terminated) {
  char text[8];
  std::memset(text, 'x', sizeof text);
  BoundedText out(text, sizeof text);
  ck_assert_str_eq(text, "");
  out.add("%s", "abc");
  out.add("%d", 12345);
  out.add("%s", "more");
  ck_assert_str_eq(text, "abc1234");
}
END_TEST

int main() { return run_tests("address"); }
