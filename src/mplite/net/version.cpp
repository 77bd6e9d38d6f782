// Which ch_lite this is.
#include "mplite/net/version.h"

#include <cstddef>
#include <string_view>

#include "mplite/net/frame.h"

namespace mplite {
namespace {

struct VersionText {
  char text[64] = {};
};

// Made by the compiler, so that the library's file has it in one piece.
constexpr VersionText make_version_text() {
  VersionText made;
  std::size_t length = 0;
  for (const char c : std::string_view("ch_lite " PACKAGE_VERSION ", wire version "))
    made.text[length++] = c;
  char digits[3] = {};
  std::size_t count = 0;
  for (unsigned rest = kWireVersion; rest > 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) made.text[length++] = digits[--count];
  return made;
}

[[gnu::used]] constexpr VersionText kVersionText = make_version_text();

}  // namespace

const char* version_text() { return kVersionText.text; }

}  // namespace mplite
