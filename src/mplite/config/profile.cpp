// The knobs in force: defaults, the system's settings, profile, environment.
#include "mplite/config/profile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "mplite/base/regular_file.h"
#include "mplite/config/knob_text.h"
#include "mplite/config/values.h"
#include "mplite/net/loss.h"

namespace mplite {
namespace {

constexpr std::size_t kProfileMax = 16 * 1024;

const char* skip_blanks(const char* at) {
  while (*at == ' ' || *at == '\t') ++at;
  return at;
}

// Takes what is between blanks at either end of [from, to), where *to is no blank. False: no room.
bool take_trimmed(const char* from, const char* to, char* text, std::size_t size) {
  from = skip_blanks(from);
  while (from < to && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r')) --to;
  const auto length = static_cast<std::size_t>(to - from);
  if (length >= size) return false;
  std::memcpy(text, from, length);
  text[length] = '\0';
  return true;
}

bool apply_line(const char* line, const char* end, Knobs& knobs, char* why, std::size_t size) {
  const auto* equals =
      static_cast<const char*>(std::memchr(line, '=', static_cast<std::size_t>(end - line)));
  char name[64], value[1024];
  if (equals == nullptr) {
    std::snprintf(why, size, "want NAME=VALUE, or a comment that begins with #");
    return false;
  }
  if (!take_trimmed(line, equals, name, sizeof name) ||
      !take_trimmed(equals + 1, end, value, sizeof value)) {
    std::snprintf(why, size, "the line is too long");
    return false;
  }
  int distance = 0;
  const std::size_t index = nearest_knob(name, distance);
  if (distance != 0) {
    std::snprintf(why, size, "%s is no variable of ch_lite; did you mean %s?", name,
                  knob_info(index).name);
    return false;
  }
  if (std::strcmp(name, "LITE_PROFILE") == 0) {
    std::snprintf(why, size, "LITE_PROFILE cannot be set by a profile");
    return false;
  }
  return value[0] == '\0' || set_knob(index, value, knobs, why, size);
}

// Where the user's own profile would be; empty: nowhere.
void own_profile(GetEnv get, char* path, std::size_t size) {
  const char* config = get("XDG_CONFIG_HOME");
  const char* home = get("HOME");
  int n = 0;
  if (config != nullptr && config[0] == '/')
    n = std::snprintf(path, size, "%s/ch_lite/profile", config);
  else if (home != nullptr && home[0] == '/')
    n = std::snprintf(path, size, "%s/.config/ch_lite/profile", home);
  if (n <= 0 || static_cast<std::size_t>(n) >= size) path[0] = '\0';
}

// mpiexec -iface tells the ranks in this way what it tells MPICH's own TCP: the default where
// the user's LITE_IFACE leaves the choice to us.
constexpr char kMpiexecIface[] = "MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE";
// Null: none.
const char* interface_of_mpiexec(GetEnv get) {
  const char* name = get(kMpiexecIface);
  return name != nullptr && *name != '\0' ? name : nullptr;
}
bool obey_mpiexec(GetEnv get, Knobs& knobs, char* error, std::size_t size) {
  const char* name = interface_of_mpiexec(get);
  if (knobs.iface.count != 0 || name == nullptr) return true;
  char why[256] = "";
  if (!parse_iface_list(name, knobs.iface, why, sizeof why)) {
    std::snprintf(
        error, size,
        "%s=\"%.200s\", which mpiexec -iface sets, names no interface: %s; LITE_IFACE overrides it",
        kMpiexecIface, name, why);
    return false;
  }
  knobs.iface_from_mpiexec = true;
  return true;
}

}  // namespace

bool apply_profile(const char* path, const char* text, Knobs& knobs, char* error,
                   std::size_t size) {
  Knobs changed = knobs;
  for (int number = 1; *text != '\0'; ++number) {
    const char* end = std::strchr(text, '\n');
    if (end == nullptr) end = text + std::strlen(text);
    const char* line = skip_blanks(text);
    char why[640];
    if (line < end && *line != '#' && *line != '\r' &&
        !apply_line(line, end, changed, why, sizeof why)) {
      std::snprintf(error, size, "profile %s, line %d: %s; LITE_PROFILE=none does without", path,
                    number, why);
      return false;
    }
    text = *end == '\n' ? end + 1 : end;
  }
  knobs = changed;
  return true;
}

namespace {

// Sets what the file says. A file that `may_be_missing` and is not there says nothing: `read`
// tells.
bool apply_file(const char* path, bool may_be_missing, Knobs& knobs, bool& read, char* error,
                std::size_t size) {
  static char text[kProfileMax];
  std::size_t length = 0;
  struct stat status = {};
  const int rc =
      path[0] != '\0' ? read_regular_file(path, text, sizeof text - 1, length, status) : ENOENT;
  read = rc == 0;
  if (may_be_missing && (rc == ENOENT || rc == ENOTDIR)) return true;
  if (rc != 0) {
    std::snprintf(error, size,
                  "the profile %s cannot be read: %s%s; LITE_PROFILE=none does without", path,
                  rc == kTooLong ? "it is longer than 16 KB" : regular_file_fault(rc, status),
                  descriptor_cure(rc));
    return false;
  }
  text[length] = '\0';
  return apply_profile(path, text, knobs, error, size);
}

// Defaults, the system's settings, profile, environment.
bool read_own_knobs(GetEnv get, const char* system_settings, Knobs& knobs, char* error,
                    std::size_t size) {
  Knobs named;
  if (!parse_knobs(get, named, error, size)) return false;
  if (std::strcmp(named.profile, "none") == 0) {
    knobs = named;
    return true;
  }
  Knobs read = default_knobs();
  if (!apply_file(system_settings, true, read, read.system_settings, error, size)) return false;
  // an option of this very job
  if (interface_of_mpiexec(get) != nullptr) read.iface = default_knobs().iface;
  const bool own = std::strcmp(named.profile, "auto") == 0;
  char path[sizeof named.profile];
  if (own)
    own_profile(get, path, sizeof path);
  else
    std::memcpy(path, named.profile, sizeof path);
  bool there = false;
  if (!apply_file(path, own, read, there, error, size) || !override_knobs(get, read, error, size))
    return false;
  if (there) std::memcpy(read.profile, path, sizeof path);
  knobs = read;
  return true;
}

}  // namespace

bool read_knobs(GetEnv get, Knobs& knobs, char* error, std::size_t size,
                const char* system_settings) {
  Knobs read;
  if (!read_own_knobs(get, system_settings, read, error, size) ||
      !obey_mpiexec(get, read, error, size)) {
    if (size > 0) make_printable(error);
    return false;
  }
  knobs = read;
  return true;
}

}  // namespace mplite
