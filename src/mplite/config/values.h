// Values of variables as text: sizes, durations, pairs, flags, signals, paths. Used by the table of
// knobs (knobs.cpp). Ordinary context; nothing allocates.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mplite {

inline constexpr std::uint64_t kKilo = 1024, kMega = kKilo * 1024, kGiga = kMega * 1024;
inline constexpr std::int64_t kMicro = 1000, kMilli = kMicro * 1000, kSecond = kMilli * 1000;

// Each takes all of `text`. False: it is not of that form, or not from `min` to `max`; the value is
// as it was, but for the pair's.

// Bytes: digits, then K, M, G (powers of 1024) or nothing.
bool parse_size(const char* text, std::uint64_t min, std::uint64_t max, std::uint64_t& value);
// ns: digits, then us, ms, s, or nothing: then they are in `unit` (ns).
bool parse_duration(const char* text, std::int64_t unit, std::int64_t min, std::int64_t max,
                    std::int64_t& value);
// "A:B", each from min to max.
bool parse_pair(const char* text, std::uint64_t min, std::uint64_t max, std::uint64_t& a,
                std::uint64_t& b);
bool parse_flag(const char* text, bool& value);  // 0 or 1
// A name, with SIG before it or without, RTMIN+n, or a number; only of signals that a library may
// take.
bool parse_signal(const char* text, int& value);
// Copies it to `path`, which has `room` bytes. False: it is too long, as `why` (`size` bytes) says.
bool keep_path(const char* text, char* path, std::size_t room, char* why, std::size_t size);

// What the functions above take, in its shortest form ("256K", "30s", "SIGIO").
void format_size(std::uint64_t value, char* text, std::size_t size);
void format_duration(std::int64_t ns, char* text, std::size_t size);
void format_signal(int value, char* text, std::size_t size);
void copy_text(const char* from, char* text, std::size_t size);

// Control characters (ASCII's, and C1 in UTF-8) become question marks: a message that repeats what
// somebody wrote goes to a terminal.
void make_printable(char* text);

}  // namespace mplite
