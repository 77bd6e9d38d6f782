// Numbers for people: thousands separated, bytes in the units of the knobs, shares. Used by
// lite-info's summary of counters and its advice.
#pragma once
#include <cstdint>
#include <string>

namespace mplite {

std::string grouped(std::uint64_t value);    // "12,345"
std::string byte_text(std::uint64_t bytes);  // "1023", "4K", "1.5M" (powers of 1024)
// "12 %"; of what is less than one in a hundred, but not nothing, "<1 %"; of nothing "0 %".
std::string share(std::uint64_t part, std::uint64_t whole);

}  // namespace mplite
