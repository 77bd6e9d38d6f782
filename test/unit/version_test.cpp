// version.h: which ch_lite this is.
#include "mplite/net/version.h"

#include <cstdio>

#include "mplite/net/frame.h"
#include "run_tests.h"

namespace {

START_TEST(version_text_has_both_versions) {
  char wanted[64];
  std::snprintf(wanted, sizeof wanted, "ch_lite %s, wire version %d", PACKAGE_VERSION,
                int{mplite::kWireVersion});
  ck_assert_str_eq(mplite::version_text(), wanted);
}
END_TEST

}  // namespace

int main() { return run_tests("version"); }
