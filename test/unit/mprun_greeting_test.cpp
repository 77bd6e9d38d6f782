// What comes over a remote shell before the frames, and what is no frame (mprun_remote.h).
#include "mplite/launch/mprun_remote.h"

#include <cstring>

#include "run_tests.h"

using namespace mprun;

namespace {

START_TEST(word_is_found_however_it_is_cut) {
  const std::string banner = "Welcome\r\nto the \x1elite-mprun ag\x1e machine\n", frames = "frames";
  const std::string all = banner + std::string(kAgentWord) + frames;
  for (std::size_t piece = 1; piece <= all.size(); ++piece) {
    Greeting greeting(kAgentWord);
    std::size_t taken = 0;
    for (std::size_t at = 0; at < all.size() && greeting.state() == Greeting::State::kAwaited;
         at += piece)
      taken += greeting.add(all.data() + at, std::min(piece, all.size() - at));
    ck_assert_int_eq(static_cast<int>(greeting.state()), static_cast<int>(Greeting::State::kHeard));
    ck_assert_uint_eq(taken, all.size() - frames.size());
    ck_assert(greeting.text("> ", 9) == "> Welcome\n> to the ?lite-mprun ag? machine\n");
  }
}
END_TEST

START_TEST(word_behind_the_longest_banner_is_found_however_it_is_cut) {
  constexpr std::size_t kMax = 100;
  for (std::size_t banner = kMax - 30; banner <= kMax + 1; ++banner) {
    const std::string all = std::string(banner, 'b') + std::string(kAgentWord);
    for (std::size_t piece = 1; piece <= all.size(); ++piece) {
      Greeting greeting(kAgentWord, kMax);
      for (std::size_t at = 0; at < all.size() && greeting.state() == Greeting::State::kAwaited;
           at += piece)
        greeting.add(all.data() + at, std::min(piece, all.size() - at));
      const auto expected = banner <= kMax ? Greeting::State::kHeard : Greeting::State::kTooLong;
      ck_assert_int_eq(static_cast<int>(greeting.state()), static_cast<int>(expected));
    }
  }
}
END_TEST

START_TEST(endless_text_is_given_up) {
  Greeting greeting(kAgentWord);
  const std::string line(1000, 'x');
  std::size_t heard = 0;
  for (; greeting.state() == Greeting::State::kAwaited && heard < 10 * kBannerMax;
       heard += line.size())
    greeting.add(line.data(), line.size());
  ck_assert_int_eq(static_cast<int>(greeting.state()), static_cast<int>(Greeting::State::kTooLong));
  ck_assert_uint_le(heard, kBannerMax + 2 * line.size());
  ck_assert_uint_lt(greeting.text("> ", 4).size(), 1000);
}
END_TEST

START_TEST(who_may_not_greet_has_to_begin_with_the_word) {
  for (std::size_t cut = 1; cut < kLauncherWord.size(); ++cut) {
    Greeting greeting(kLauncherWord, 0);
    greeting.add(kLauncherWord.data(), cut);
    ck_assert_int_eq(static_cast<int>(greeting.state()),
                     static_cast<int>(Greeting::State::kAwaited));
    ck_assert_uint_eq(greeting.add(kLauncherWord.data() + cut, kLauncherWord.size() - cut),
                      kLauncherWord.size() - cut);
    ck_assert_int_eq(static_cast<int>(greeting.state()), static_cast<int>(Greeting::State::kHeard));
  }
  for (const std::string& wrong :
       {std::string("S"), "x" + std::string(kLauncherWord), std::string(kAgentWord)}) {
    Greeting greeting(kLauncherWord, 0);
    greeting.add(wrong.data(), wrong.size());
    ck_assert_int_eq(static_cast<int>(greeting.state()),
                     static_cast<int>(Greeting::State::kTooLong));
  }
}
END_TEST

START_TEST(foreign_text_is_shown_within_bounds_and_printable) {
  Greeting greeting(kAgentWord);
  ck_assert(greeting.text("> ", 4).empty());
  const std::string text = "\x1b[31mred\x07\xff\n" + std::string(500, 'l') + "\n\n4\n5";
  greeting.add(text.data(), text.size());
  ck_assert(greeting.text("> ", 3) ==
            "> ?[31mred??\n> " + std::string(160, 'l') + " ...\n> \n> ... and 3 bytes more\n");
}
END_TEST

START_TEST(what_is_no_frame_is_told) {
  FrameType type;
  const std::uint8_t* payload;
  std::size_t length;
  std::vector<std::uint8_t> good;
  append_frame(good, FrameType::kOutput, "abc", 3);
  for (const char* wrong : {"Last login", "O\xff\xff\xff\x7f more", "\0\0\0\0\0"}) {
    FrameReader reader;
    reader.add(good.data(), good.size());
    reader.add(wrong, 5 + std::strlen(wrong + 5));
    ck_assert(reader.next(type, payload, length) && length == 3 && !reader.broken());
    ck_assert(!reader.next(type, payload, length));
    ck_assert(reader.broken());
  }
}
END_TEST

}  // namespace

int main() { return run_tests("mprun_greeting"); }
