// json.h: what has a meaning of its own in JSON is escaped.
#include "mplite/launch/json.h"

#include "printed.h"
#include "run_tests.h"

using namespace mplite;

namespace {

START_TEST(strings_are_escaped) {
  const std::string text = printed([](std::FILE* out) { put_json(out, "a\"b\\c\n\x7f\u00e9/"); });
  ck_assert_str_eq(text.c_str(), "\"a\\\"b\\\\c\\u000a\\u007f\u00e9/\"");
}
END_TEST

START_TEST(a_member_has_name_and_value) {
  const std::string text =
      printed([](std::FILE* out) { put_json_member(out, "na\"me", "value", ", "); });
  ck_assert_str_eq(text.c_str(), "\"na\\\"me\": \"value\", ");
}
END_TEST

}  // namespace

int main() { return run_tests("json"); }
