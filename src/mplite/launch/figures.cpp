// Numbers for people: thousands separated, bytes in the units of the knobs, shares.
#include "mplite/launch/figures.h"

#include <cstdio>

namespace mplite {

std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string byte_text(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes);
  static constexpr char kUnits[] = "KMGTPE";
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = kUnits;
  for (; value >= 1023.95 && unit[1] != '\0'; ++unit) value /= 1024;  // rounded it would be 1024.0
  char text[32];
  int length = std::snprintf(text, sizeof text, "%.1f", value);
  if (length > 2 && text[length - 1] == '0') text[length -= 2] = '\0';
  return std::string(text) + *unit;
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  if (part == 0 || whole == 0) return "0 %";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (percent < 1) return "<1 %";
  return std::to_string(static_cast<std::uint64_t>(percent)) + " %";
}

}  // namespace mplite
