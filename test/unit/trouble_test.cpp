// Trouble: the first is kept until it is forgotten, in a sentence that fits.
#include "ch_lite/core/trouble.h"

#include <cstring>
#include <string>

#include "run_tests.h"

namespace {

using ch_lite::Trouble;

START_TEST(the_first_is_kept_until_it_is_forgotten) {
  Trouble trouble;
  ck_assert_int_eq(trouble.code(), LITE_OK);
  trouble.note(LITE_ERR_NOMEM, 3, "no memory for %d bytes", 17);
  trouble.note(LITE_ERR_SYSTEM, 4, "another");
  ck_assert_int_eq(trouble.code(), LITE_ERR_NOMEM);
  ck_assert_int_eq(trouble.peer(), 3);
  ck_assert_str_eq(trouble.text(), "no memory for 17 bytes");
  trouble.forget();
  ck_assert_int_eq(trouble.code(), LITE_OK);
  trouble.note(LITE_ERR_SYSTEM, -1, "another");
  ck_assert_int_eq(trouble.code(), LITE_ERR_SYSTEM);
  ck_assert_int_eq(trouble.peer(), -1);
  ck_assert_str_eq(trouble.text(), "another");
}
END_TEST

START_TEST(a_long_sentence_is_cut) {
  Trouble trouble;
  const std::string sentence(1000, 'x');
  trouble.note(LITE_ERR_SYSTEM, 0, "%s", sentence.c_str());
  const std::size_t length = std::strlen(trouble.text());
  ck_assert(length > 100 && length < sentence.size());
}
END_TEST

}  // namespace

int main() { return run_tests("trouble"); }
