// The table of knobs for people: help, docs/variables.md, man page, and what a misspelt name was
// meant to be.
#include "mplite/config/knob_text.h"

#include <cstring>

#include "mplite/config/values.h"

namespace mplite {
namespace {

// Levenshtein distance of two short names.
int distance(const char* a, const char* b) {
  constexpr std::size_t kMax = 64;
  const std::size_t n = std::strlen(b);
  if (n >= kMax) return INT32_MAX;
  int row[kMax + 1];
  for (std::size_t j = 0; j <= n; ++j) row[j] = static_cast<int>(j);
  for (int i = 1; *a != '\0'; ++a, ++i) {
    int diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= n; ++j) {
      const int above = row[j];
      int best = diagonal + (*a == b[j - 1] ? 0 : 1);
      if (above + 1 < best) best = above + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = above;
      row[j] = best;
    }
  }
  return row[n];
}

// In roff a line must not begin with a dot or a quote, and a minus that is meant literally is
// written \-. A typographic ellipsis stays: man reads UTF-8.
void print_roff(std::FILE* out, const char* text) {
  if (*text == '.' || *text == '\'') std::fputs("\\&", out);
  for (; *text != '\0'; ++text) {
    if (*text == '\\')
      std::fputs("\\e", out);
    else if (*text == '-')
      std::fputs("\\-", out);
    else
      std::fputc(*text, out);
  }
}

}  // namespace

std::size_t nearest_knob(const char* name, int& nearest_distance) {
  std::size_t nearest = 0;
  nearest_distance = INT32_MAX;
  for (std::size_t i = 0; i < knob_count(); ++i) {
    const int d = distance(name, knob_info(i).name);
    if (d < nearest_distance) {
      nearest_distance = d;
      nearest = i;
    }
  }
  return nearest;
}

int unknown_knobs(const char* const* environment, char* text, std::size_t size) {
  int unknown = 0;
  std::size_t used = 0;
  if (size > 0) text[0] = '\0';
  for (; *environment != nullptr; ++environment) {
    const char* equals = std::strchr(*environment, '=');
    if (std::strncmp(*environment, "LITE_", 5) != 0 || equals == nullptr) continue;
    char name[64];
    std::snprintf(name, sizeof name, "%.*s", static_cast<int>(equals - *environment), *environment);
    make_printable(name);
    int nearest_distance = 0;
    const KnobInfo& nearest = knob_info(nearest_knob(name, nearest_distance));
    if (nearest_distance == 0) continue;
    ++unknown;
    if (used >= size) continue;
    const int n = std::snprintf(text + used, size - used,
                                "%s is set but is no variable of ch_lite; did you mean %s?\n", name,
                                nearest.name);
    if (n < 0 || static_cast<std::size_t>(n) >= size - used) {
      text[used] = '\0';  // whole lines only
      used = size;
    } else {
      used += static_cast<std::size_t>(n);
    }
  }
  return unknown;
}

const char* format_changed_knobs(const Knobs& knobs, char* text, std::size_t size) {
  std::size_t used = 0;
  if (size > 0) text[0] = '\0';
  for (std::size_t i = 0; i < knob_count(); ++i) {
    char value[1536];
    const KnobInfo& info = knob_info(i);
    format_knob(i, knobs, value, sizeof value);
    if (std::strcmp(value, info.default_value) == 0 || std::strpbrk(value, " \t\n") != nullptr ||
        std::strstr(info.type, "path") != nullptr || std::strcmp(info.name, "LITE_STATS") == 0)
      continue;
    const std::size_t length = std::strlen(info.name) + std::strlen(value) + (used > 0 ? 2 : 1);
    if (used + length >= size) continue;
    std::snprintf(text + used, size - used, "%s%s=%s", used > 0 ? " " : "", info.name, value);
    used += length;
  }
  return text;
}

void print_knobs(std::FILE* out, const Knobs& current) {
  for (std::size_t i = 0; i < knob_count(); ++i) {
    char value[1536];
    const KnobInfo& info = knob_info(i);
    std::fprintf(out, "%s=%s  (%s; default %s)\n    %s\n    Allowed: %s.\n", info.name,
                 format_knob(i, current, value, sizeof value), info.type, info.default_value,
                 info.doc, info.allowed);
  }
}

void print_knobs_markdown(std::FILE* out) {
  std::fputs("| variable | default | allowed | meaning |\n|---|---|---|---|\n", out);
  for (std::size_t i = 0; i < knob_count(); ++i) {
    const KnobInfo& info = knob_info(i);
    std::fprintf(out, "| `%s` | `%s` | %s | %s |\n", info.name, info.default_value, info.allowed,
                 info.doc);
  }
}

void print_knobs_man(std::FILE* out) {
  for (std::size_t i = 0; i < knob_count(); ++i) {
    const KnobInfo& info = knob_info(i);
    std::fprintf(out, ".TP\n.BR %s \" (%s, default %s)\"\n", info.name, info.type,
                 info.default_value);
    print_roff(out, info.doc);
    std::fputs("\nAllowed: ", out);
    print_roff(out, info.allowed);
    std::fputs(".\n", out);
  }
}

}  // namespace mplite
