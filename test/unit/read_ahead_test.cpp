// read_ahead.h: behind a long message only a header is read ahead.
#include "mplite/tuning/read_ahead.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::uint64_t kMiddle = ReadAhead::kMiddleBytes + 1, kLong = ReadAhead::kLongBytes + 1;

START_TEST(behind_a_long_message_a_header_until_a_packet_comes) {
  ReadAhead ahead;
  ck_assert_uint_eq(ahead.bytes(), ReadAhead::kBytes);
  ahead.message(kLong - 1);
  ck_assert_uint_eq(ahead.bytes(), ReadAhead::kBytes);
  ahead.message(kLong);
  ck_assert_uint_eq(ahead.bytes(), ReadAhead::kHeaderBytes);
  ahead.packet();
  ck_assert_uint_eq(ahead.bytes(), ReadAhead::kBytes);
}
END_TEST

START_TEST(behind_one_of_middle_length_too_if_there_was_more_in_the_socket) {
  ReadAhead ahead;
  ahead.read(false, true);
  ahead.message(kMiddle);
  ck_assert(!ahead.header_only());
  ahead.read(true, false);
  ahead.message(kMiddle);
  ck_assert(ahead.header_only());
  ahead.read(true, false);  // a full header says nothing
  ck_assert(!ahead.full());
  ahead.read(true, true);
  ck_assert(ahead.full());
  ahead.message(kMiddle - 1);
  ck_assert(!ahead.header_only());
}
END_TEST

START_TEST(off_it_is_always_the_same) {
  ReadAhead ahead;
  ahead.start(false);
  ahead.read(true, true);
  ahead.message(UINT64_MAX);
  ck_assert_uint_eq(ahead.bytes(), ReadAhead::kBytes);
}
END_TEST

}  // namespace

int main() { return run_tests("read_ahead"); }
