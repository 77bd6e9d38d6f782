// figures.h: numbers as people read them.
#include "mplite/launch/figures.h"

#include "run_tests.h"

using namespace mplite;

namespace {

void same(const std::string& made, const char* wanted) {
  ck_assert_msg(made == wanted, "%s, not %s", made.c_str(), wanted);
}

START_TEST(thousands_are_separated) {
  const struct {
    std::uint64_t value;
    const char* text;
  } rows[] = {{0, "0"},           {999, "999"},         {1000, "1,000"},
              {12'345, "12,345"}, {999'999, "999,999"}, {UINT64_MAX, "18,446,744,073,709,551,615"}};
  for (const auto& row : rows) same(grouped(row.value), row.text);
}
END_TEST

START_TEST(bytes_are_in_the_units_of_the_knobs) {
  const struct {
    std::uint64_t value;
    const char* text;
  } rows[] = {
      {0, "0"},           {1023, "1023"},          {1024, "1K"},    {1536, "1.5K"},
      {10 * 1024, "10K"}, {1024 * 1024 - 1, "1M"}, {4 << 20, "4M"}, {std::uint64_t{5} << 30, "5G"},
      {UINT64_MAX, "16E"}};
  for (const auto& row : rows) same(byte_text(row.value), row.text);
}
END_TEST

START_TEST(shares_are_rounded_down_and_little_is_not_nothing) {
  same(share(0, 10), "0 %");
  same(share(0, 0), "0 %");
  same(share(1, 101), "<1 %");
  same(share(1, 100), "1 %");
  same(share(999, 1000), "99 %");
  same(share(5, 5), "100 %");
  same(share(UINT64_MAX / 2, UINT64_MAX), "50 %");
}
END_TEST

}  // namespace

int main() { return run_tests("figures"); }
