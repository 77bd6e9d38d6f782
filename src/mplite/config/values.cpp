// Values of variables as text: sizes, durations, pairs, flags, signals, paths.
#include "mplite/config/values.h"

#include <signal.h>

#include <cstdio>
#include <cstring>

namespace mplite {
namespace {

// Digits at `text`; moves it behind them. False: none, or more than 64 bits.
bool take_number(const char*& text, std::uint64_t& value) {
  if (*text < '0' || *text > '9') return false;
  std::uint64_t n = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    const auto digit = static_cast<std::uint64_t>(*text - '0');
    if (n > (UINT64_MAX - digit) / 10) return false;
    n = n * 10 + digit;
  }
  value = n;
  return true;
}

// Signals that a library may take: not those that report a fault, end or stop a process, or that
// every program has a use for. SIGUSR1 is MPICH's own (ch4 uses it).
struct SignalName {
  const char* name;
  int number;
};
const SignalName kSignals[] = {
    {"SIGIO", SIGIO},         {"SIGPOLL", SIGIO},  {"SIGURG", SIGURG},       {"SIGUSR2", SIGUSR2},
    {"SIGWINCH", SIGWINCH},   {"SIGPWR", SIGPWR},  {"SIGVTALRM", SIGVTALRM}, {"SIGPROF", SIGPROF},
    {"SIGSTKFLT", SIGSTKFLT}, {"SIGALRM", SIGALRM}};

}  // namespace

bool parse_size(const char* text, std::uint64_t min, std::uint64_t max, std::uint64_t& value) {
  std::uint64_t n = 0;
  if (!take_number(text, n)) return false;
  std::uint64_t unit = 1;
  if (*text == 'K' || *text == 'k') unit = kKilo;
  if (*text == 'M' || *text == 'm') unit = kMega;
  if (*text == 'G' || *text == 'g') unit = kGiga;
  if (unit != 1) ++text;
  if (*text != '\0' || n > UINT64_MAX / unit) return false;
  n *= unit;
  if (n < min || n > max) return false;
  value = n;
  return true;
}

bool parse_duration(const char* text, std::int64_t unit, std::int64_t min, std::int64_t max,
                    std::int64_t& value) {
  std::uint64_t n = 0;
  if (!take_number(text, n)) return false;
  if (std::strcmp(text, "us") == 0)
    unit = kMicro;
  else if (std::strcmp(text, "ms") == 0)
    unit = kMilli;
  else if (std::strcmp(text, "s") == 0)
    unit = kSecond;
  else if (*text != '\0')
    return false;
  if (n > static_cast<std::uint64_t>(INT64_MAX / unit)) return false;
  const std::int64_t ns = static_cast<std::int64_t>(n) * unit;
  if (ns < min || ns > max) return false;
  value = ns;
  return true;
}

bool parse_pair(const char* text, std::uint64_t min, std::uint64_t max, std::uint64_t& a,
                std::uint64_t& b) {
  if (!take_number(text, a) || *text != ':') return false;
  ++text;
  return take_number(text, b) && *text == '\0' && a >= min && a <= max && b >= min && b <= max;
}

bool parse_flag(const char* text, bool& value) {
  if (std::strcmp(text, "0") != 0 && std::strcmp(text, "1") != 0) return false;
  value = *text == '1';
  return true;
}

bool parse_signal(const char* text, int& value) {
  const char* bare = std::strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
  std::uint64_t n = 0;
  if (std::strncmp(bare, "RTMIN", 5) == 0) {
    const char* at = bare + 5;
    if (*at == '+') {
      ++at;
      if (!take_number(at, n)) return false;
    }
    if (*at != '\0' || n > static_cast<std::uint64_t>(SIGRTMAX - SIGRTMIN)) return false;
    value = SIGRTMIN + static_cast<int>(n);
    return true;
  }
  const bool number = take_number(text, n) && *text == '\0';
  if (number && n >= static_cast<std::uint64_t>(SIGRTMIN) &&
      n <= static_cast<std::uint64_t>(SIGRTMAX)) {
    value = static_cast<int>(n);
    return true;
  }
  for (const SignalName& s : kSignals) {
    if (number ? n == static_cast<std::uint64_t>(s.number) : std::strcmp(bare, s.name + 3) == 0) {
      value = s.number;
      return true;
    }
  }
  return false;
}

bool keep_path(const char* text, char* path, std::size_t room, char* why, std::size_t size) {
  const std::size_t length = std::strlen(text);
  if (length >= room) {
    std::snprintf(why, size, "longer than %zu characters", room - 1);
    return false;
  }
  std::memcpy(path, text, length + 1);
  return true;
}

void format_size(std::uint64_t value, char* text, std::size_t size) {
  const auto n = static_cast<unsigned long long>(value);
  if (value != 0 && value % kGiga == 0)
    std::snprintf(text, size, "%lluG", n / kGiga);
  else if (value != 0 && value % kMega == 0)
    std::snprintf(text, size, "%lluM", n / kMega);
  else if (value != 0 && value % kKilo == 0)
    std::snprintf(text, size, "%lluK", n / kKilo);
  else
    std::snprintf(text, size, "%llu", n);
}

void format_duration(std::int64_t ns, char* text, std::size_t size) {
  const auto n = static_cast<long long>(ns);
  if (ns % kSecond == 0)
    std::snprintf(text, size, "%llds", n / kSecond);
  else if (ns % kMilli == 0)
    std::snprintf(text, size, "%lldms", n / kMilli);
  else
    std::snprintf(text, size, "%lldus", n / kMicro);
}

void copy_text(const char* from, char* text, std::size_t size) {
  std::snprintf(text, size, "%s", from);
}

void format_signal(int value, char* text, std::size_t size) {
  if (value >= SIGRTMIN) {
    std::snprintf(text, size, "RTMIN+%d", value - SIGRTMIN);
    return;
  }
  for (const SignalName& s : kSignals)
    if (s.number == value) return copy_text(s.name, text, size);
}

void make_printable(char* text) {
  for (; *text != '\0'; ++text) {
    const auto c = static_cast<unsigned char>(*text), next = static_cast<unsigned char>(text[1]);
    if (c < ' ' || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0)) {
      *text = '?';
      if (c == 0xc2) *++text = '?';
    }
  }
}

}  // namespace mplite
