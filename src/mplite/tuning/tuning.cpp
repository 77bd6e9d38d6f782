// Names of the heuristics, and LITE_TUNING as text.
#include "mplite/tuning/tuning.h"

#include <cstdio>
#include <cstring>

#include "mplite/base/bounded_text.h"

namespace mplite {
namespace {

const HeuristicInfo kTable[kHeuristics] = {
#define MPLITE_HEURISTIC(id, name, text) {name, text},
    MPLITE_HEURISTICS(MPLITE_HEURISTIC)
#undef MPLITE_HEURISTIC
};

Heuristic at(unsigned index) { return static_cast<Heuristic>(index); }

// The heuristic of that name, or kCount.
Heuristic find(const char* name, std::size_t length) {
  unsigned i = 0;
  while (i < kHeuristics &&
         (std::strlen(kTable[i].name) != length || std::memcmp(kTable[i].name, name, length) != 0))
    ++i;
  return at(i);
}

}  // namespace

const HeuristicInfo& heuristic_info(Heuristic h) { return kTable[static_cast<unsigned>(h)]; }

bool parse_tuning(const char* text, Tuning& tuning, char* why, std::size_t size) {
  Tuning parsed;
  for (const char* entry = text;;) {
    const std::size_t length = std::strcspn(entry, ",");
    const bool sign = *entry == '+' || *entry == '-';
    if (entry == text && length == 3 && std::memcmp(entry, "off", 3) == 0) {
      parsed = Tuning::none();
    } else if (entry != text || length != 4 || std::memcmp(entry, "auto", 4) != 0) {
      const Heuristic h = sign ? find(entry + 1, length - 1) : Heuristic::kCount;
      if (h == Heuristic::kCount) {
        std::snprintf(why, size, "'%.*s' is no %s", length < 64 ? static_cast<int>(length) : 64,
                      entry, sign ? "heuristic" : "+NAME or -NAME");
        return false;
      }
      parsed.set(h, *entry == '+');
    }
    if (entry[length] == '\0') break;
    entry += length + 1;
  }
  tuning = parsed;
  return true;
}

void format_tuning(const Tuning& tuning, char* text, std::size_t size) {
  unsigned on = 0;
  for (unsigned i = 0; i < kHeuristics; ++i) on += tuning.has(at(i)) ? 1 : 0;
  const bool mostly = on > kHeuristics / 2;
  BoundedText out(text, size);
  out.add("%s", mostly ? on == kHeuristics ? "auto" : "" : "off");
  const char* comma = mostly ? "" : ",";
  for (unsigned i = 0; i < kHeuristics; ++i) {
    if (tuning.has(at(i)) == mostly) continue;
    out.add("%s%c%s", comma, mostly ? '-' : '+', kTable[i].name);
    comma = ",";
  }
}

}  // namespace mplite
