// The host's memcpy (lite_copy.h) and the device's copy behind it.
#include <cstring>
#include <vector>

#include "test/unit/run_tests.h"

// What the macro calls is counted.
#define lite_copy counted_copy
#include "ch_lite/ch4/lite_copy.h"
#undef lite_copy

extern "C" void* lite_copy(void* to, const void* from, size_t bytes);
static int calls;
extern "C" void* counted_copy(void* to, const void* from, size_t bytes) {
  ++calls;
  return lite_copy(to, from, bytes);
}

namespace {

constexpr std::size_t kPage = 4096;

START_TEST(every_distance_within_a_page_is_copied_whole) {
  std::vector<unsigned char> from(6 * kPage), into(from.size()), wanted(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i * 131 + i / 256);
  for (const std::size_t bytes : {0u, 1u, 15u, 2047u, 2048u, 2049u, 4096u, 10'001u})
    for (std::size_t behind = 0; behind < 130; behind += behind < 70 ? 1 : 13) {
      std::fill(into.begin(), into.end(), static_cast<unsigned char>(7));
      wanted = into;
      std::copy_n(from.begin() + 3, bytes,
                  wanted.begin() + 3 + static_cast<std::ptrdiff_t>(behind));
      unsigned char* const to = into.data() + 3 + behind;
      ck_assert_ptr_eq(memcpy(to, from.data() + 3, bytes), to);
      ck_assert(into == wanted);
    }
}
END_TEST

#ifdef memcpy  // optimized, on x86-64
START_TEST(what_may_be_long_is_the_devices) {
  static char from[3 * kPage], to[3 * kPage];
  volatile std::size_t bytes = MPIDI_LITE_LONG_COPY;
  calls = 0;
  memcpy(to, from, bytes);
  ck_assert_int_eq(calls, 0);
  bytes = MPIDI_LITE_LONG_COPY + 1;
  memcpy(to, from, bytes);
  ck_assert_int_eq(calls, 1);
  memcpy(to, from, sizeof to);  // the compiler knows how long it is
  ck_assert_int_eq(calls, 1);
}
END_TEST
#endif

}  // namespace

int main() { return run_tests("copy"); }
