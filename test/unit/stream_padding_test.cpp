// stream_padding.h: padding brings the stream's offset to the payload's.
#include "mplite/tuning/stream_padding.h"

#include "run_tests.h"

using namespace mplite;

namespace {

const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

START_TEST(payload_has_the_offset_in_the_stream_that_it_has_in_memory) {
  std::uint64_t written = 0;
  StreamPadding padding;
  for (std::uint64_t i = 1; i < 1000; ++i) {
    const std::uint64_t ahead = i * 37 % 500;
    const std::uintptr_t address = 4096 + i * 91;
    const std::uint8_t bytes = padding.bytes(StreamPadding::kApplication, ahead, at(address));
    ck_assert_uint_lt(bytes, StreamPadding::kAlignment);
    ck_assert_uint_eq((written + ahead + bytes) % StreamPadding::kAlignment,
                      address % StreamPadding::kAlignment);
    padding.written(StreamPadding::kApplication, i * 13);
    written += i * 13;
  }
}
END_TEST

START_TEST(threads_are_counted_apart) {
  StreamPadding padding;
  padding.written(StreamPadding::kHelper, 10);
  ck_assert_uint_eq(padding.bytes(StreamPadding::kApplication, 0, at(0)), 0);
  ck_assert_uint_eq(padding.bytes(StreamPadding::kHelper, 0, at(0)),
                    StreamPadding::kAlignment - 10);
}
END_TEST

START_TEST(only_long_payloads_are_padded_and_off_none) {
  StreamPadding padding;
  padding.start(true);
  ck_assert(!padding.pads(StreamPadding::kLeast - 1));
  ck_assert(padding.pads(StreamPadding::kLeast));
  padding.start(false);
  ck_assert(!padding.pads(1u << 30));
}
END_TEST

}  // namespace

int main() { return run_tests("stream_padding"); }
