// tuning.h: LITE_TUNING names each heuristic; a list switches some of them.
#include "mplite/tuning/tuning.h"

#include <cstring>

#include "run_tests.h"

using namespace mplite;

namespace {

Tuning parsed(const char* text) {
  Tuning tuning;
  char why[256] = "";
  ck_assert_msg(parse_tuning(text, tuning, why, sizeof why), "%s: %s", text, why);
  return tuning;
}

START_TEST(auto_is_all_and_off_is_none) {
  for (unsigned i = 0; i < kHeuristics; ++i) {
    const auto h = static_cast<Heuristic>(i);
    ck_assert(Tuning().has(h));
    ck_assert(parsed("auto").has(h));
    ck_assert(!parsed("off").has(h));
  }
}
END_TEST

START_TEST(list_changes_auto_or_off) {
  ck_assert(parsed("-repoll,-halves") ==
            Tuning().set(Heuristic::kRepoll, false).set(Heuristic::kHalves, false));
  ck_assert(parsed("auto,-repoll") == Tuning().set(Heuristic::kRepoll, false));
  ck_assert(parsed("off,+low_water") == Tuning::none().set(Heuristic::kLowWater, true));
  ck_assert(parsed("-repoll,+repoll") == Tuning());  // the last word counts
}
END_TEST

START_TEST(bad_lists_are_refused_and_change_nothing) {
  for (const char* text :
       {"", "on", "repoll", "+", "-", "-repoll,", ",-repoll", "-nothing", "-repoll,off",
        "-repoll,auto", "-repol", "-repolll", "off,low_water", "- repoll", "--repoll"}) {
    Tuning tuning = Tuning::of(5);
    char why[256] = "";
    ck_assert_msg(!parse_tuning(text, tuning, why, sizeof why), "%s", text);
    ck_assert(tuning == Tuning::of(5));
    ck_assert_int_ne(why[0], 0);
  }
}
END_TEST

START_TEST(every_set_is_written_as_what_is_read_as_the_same) {
  std::uint64_t bits = 1;
  for (int i = 0; i < 1000; ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    const Tuning drawn = i == 0 ? Tuning() : i == 1 ? Tuning::none() : Tuning::of(bits >> 20);
    char text[1024];
    format_tuning(drawn, text, sizeof text);
    ck_assert_msg(parsed(text) == drawn, "%s", text);
  }
}
END_TEST

START_TEST(names_differ_and_are_all_in_what_is_allowed) {
  for (unsigned i = 0; i < kHeuristics; ++i) {
    const HeuristicInfo& info = heuristic_info(static_cast<Heuristic>(i));
    ck_assert(std::strstr(kTuningAllowed, info.name) != nullptr);
    ck_assert_int_ne(info.text[0], 0);
    for (unsigned j = 0; j < i; ++j)
      ck_assert_str_ne(info.name, heuristic_info(static_cast<Heuristic>(j)).name);
  }
}
END_TEST

}  // namespace

int main() { return run_tests("tuning"); }
