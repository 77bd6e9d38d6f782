// The table of knobs for people: help, docs/variables.md, man page, and what a misspelt name was
// meant to be. Used by lite_info.cpp, profile.cpp and process.cpp. Ordinary context.
#pragma once
#include <cstddef>
#include <cstdio>

#include "mplite/config/knobs.h"

namespace mplite {

// The knob of that name, or else (distance > 0, of Levenshtein) the one whose name is nearest.
std::size_t nearest_knob(const char* name, int& distance);

// LITE_* names in `environment` (as environ) that are no knob, most likely typing errors: one line
// for each, with the nearest knob. Returns how many there were; `text` holds as many lines as fit.
int unknown_knobs(const char* const* environment, char* text, std::size_t size);

// "LITE_CREDITS=1M LITE_GRACE=off": what differs from its default, in the order of the table. Only
// what is one word, names no file, and is not LITE_STATS itself; as many whole ones as fit. Returns
// `text`.
const char* format_changed_knobs(const Knobs& knobs, char* text, std::size_t size);

// The help and Markdown forms of the table, and the section ENVIRONMENT of ch_lite(7).
void print_knobs(std::FILE* out, const Knobs& current);
void print_knobs_markdown(std::FILE* out);
void print_knobs_man(std::FILE* out);

}  // namespace mplite
