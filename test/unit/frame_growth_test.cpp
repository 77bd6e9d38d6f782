// frame_growth.h: frames grow while the kernel takes all, and are short again when it does not.
#include "mplite/tuning/frame_growth.h"

#include "run_tests.h"

using namespace mplite;

namespace {

constexpr std::uint32_t kUsual = 1000, kMost = 1u << 30;

FrameGrowth started(bool on = true, std::uint32_t most = kMost) {
  FrameGrowth frames;
  frames.start(kUsual, most, on);
  return frames;
}

START_TEST(frames_double_while_all_is_taken_up_to_the_factor) {
  FrameGrowth frames = started();
  std::uint32_t wanted = kUsual;
  for (int i = 0; i < 10; ++i) {
    ck_assert_uint_eq(frames.bytes(), wanted);
    frames.taken(true, frames.bytes());
    if (wanted < FrameGrowth::kFactor * kUsual) wanted *= 2;
  }
  ck_assert_uint_eq(frames.bytes(), FrameGrowth::kFactor * kUsual);
}
END_TEST

START_TEST(less_than_a_frame_tells_nothing) {
  FrameGrowth frames = started();
  frames.taken(true, kUsual - 1);
  ck_assert_uint_eq(frames.bytes(), kUsual);
}
END_TEST

START_TEST(what_is_not_taken_makes_them_short_again) {
  FrameGrowth frames = started();
  for (int i = 0; i < 3; ++i) frames.taken(true, frames.bytes());
  frames.taken(false, 1);
  ck_assert_uint_eq(frames.bytes(), kUsual);
  ck_assert(!frames.grown());
}
END_TEST

START_TEST(no_frame_is_longer_than_a_frame_may_be) {
  FrameGrowth frames = started(true, 3 * kUsual);
  for (int i = 0; i < 5; ++i) frames.taken(true, frames.bytes());
  ck_assert_uint_eq(frames.bytes(), 3 * kUsual);
}
END_TEST

START_TEST(long_frames_are_few_ahead) {
  FrameGrowth frames = started();
  ck_assert(!frames.enough(100 * kUsual));  // as many as there are places
  frames.taken(true, kUsual);
  ck_assert(!frames.enough(0));  // one in any case
  ck_assert(!frames.enough(14 * kUsual));
  ck_assert(frames.enough(14 * kUsual + 1));
}
END_TEST

START_TEST(off_they_never_grow) {
  FrameGrowth frames = started(false);
  for (int i = 0; i < 5; ++i) frames.taken(true, 100 * kUsual);
  ck_assert_uint_eq(frames.bytes(), kUsual);
  ck_assert(!frames.enough(100 * kUsual));
}
END_TEST

}  // namespace

int main() { return run_tests("frame_growth"); }
