// JSON for programs: strings and members, escaped.
#include "mplite/launch/json.h"

namespace mplite {

void put_json(std::FILE* out, const char* text) {
  std::fputc('"', out);
  for (; *text != '\0'; ++text) {
    const auto c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\')
      std::fprintf(out, "\\%c", c);
    else if (c < 0x20 || c == 0x7f)
      std::fprintf(out, "\\u%04x", c);
    else
      std::fputc(c, out);
  }
  std::fputc('"', out);
}

void put_json_member(std::FILE* out, const char* name, const char* value, const char* behind) {
  put_json(out, name);
  std::fputs(": ", out);
  put_json(out, value);
  std::fputs(behind, out);
}

}  // namespace mplite
