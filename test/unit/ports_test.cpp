// ports.h: one key per id, any number of ports, and none after its end.
#include "mplite/engine/ports.h"

#include <cstring>

#include "run_tests.h"

using namespace mplite;

namespace {

// A key whose bytes are all the same.
struct Key {
  std::uint8_t bytes[kKeyBytes];
  explicit Key(std::uint32_t n) { std::memset(bytes, static_cast<int>(n & 0xff), sizeof bytes); }
};

bool has(const Ports& ports, std::uint32_t id, std::uint32_t key) {
  const std::uint8_t* found = ports.key_of(id);
  return found != nullptr && std::memcmp(found, Key(key).bytes, kKeyBytes) == 0;
}

START_TEST(ports_have_their_keys_until_they_are_closed) {
  Ports ports;
  constexpr std::uint32_t kMany = 100;
  for (std::uint32_t id = 1; id <= kMany; ++id) ck_assert_int_eq(ports.open(id, Key(id).bytes), 0);
  for (std::uint32_t id = 1; id <= kMany; ++id) ck_assert(has(ports, id, id));
  for (std::uint32_t id = 1; id <= kMany; id += 2) ports.close(id);
  for (std::uint32_t id = 1; id <= kMany; ++id)
    ck_assert(id % 2 == 1 ? ports.key_of(id) == nullptr : has(ports, id, id));
}
END_TEST

START_TEST(port_that_is_opened_again_has_the_new_key_only) {
  Ports ports;
  ck_assert_int_eq(ports.open(7, Key(1).bytes), 0);
  ck_assert_int_eq(ports.open(7, Key(2).bytes), 0);
  ck_assert(has(ports, 7, 2));
  ports.close(7);
  ck_assert_ptr_null(ports.key_of(7));
}
END_TEST

START_TEST(unknown_port_is_no_error_to_close) {
  Ports ports;
  ports.close(3);
  ck_assert_ptr_null(ports.key_of(3));
}
END_TEST

}  // namespace

int main() { return run_tests("ports"); }
