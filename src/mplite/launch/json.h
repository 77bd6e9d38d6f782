// JSON for programs: strings and members, escaped. Used by lite-info's files.
#pragma once
#include <cstdio>

namespace mplite {

// A JSON string. Bytes from 0x80 are passed on: values come from a UTF-8 environment, or are the
// user's own.
void put_json(std::FILE* out, const char* text);

// "name": "value", and what is to stand behind it.
void put_json_member(std::FILE* out, const char* name, const char* value, const char* behind);

}  // namespace mplite
