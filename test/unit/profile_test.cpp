// profile.h: where a profile is looked for, what it may say, and who overrides whom.
#include "mplite/config/profile.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "run_tests.h"

using namespace mplite;

namespace {

// A pretended environment, and a directory for files.
std::map<std::string, std::string> g_environment;
const char* pretended(const char* name) {
  const auto at = g_environment.find(name);
  return at != g_environment.end() ? at->second.c_str() : nullptr;
}

struct Fixture {
  std::string directory;
  Knobs knobs = default_knobs();
  char error[1024] = "";
  Fixture() {
    char made[] = "/tmp/lite-profile.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(made));
    directory = made;
    g_environment.clear();
  }
  ~Fixture() {
    const std::string command = "rm -rf " + directory;
    ck_assert_int_eq(std::system(command.c_str()), 0);
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = directory + "/" + name;
    for (std::size_t slash = directory.size();
         (slash = path.find('/', slash + 1)) != std::string::npos;)
      mkdir(path.substr(0, slash).c_str(), 0700);
    std::FILE* file = std::fopen(path.c_str(), "w");
    ck_assert_ptr_nonnull(file);
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
    return path;
  }
  // The machine's own settings are none of a test's business.
  bool read() {
    return read_knobs(pretended, knobs, error, sizeof error, (directory + "/system").c_str());
  }
};

START_TEST(without_a_profile_the_defaults_and_the_environment_count) {
  Fixture f;
  g_environment = {{"HOME", f.directory}, {"LITE_SHORT_MAX", "100"}};
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_uint_eq(f.knobs.short_max, 100);
  ck_assert_uint_eq(f.knobs.eager_max, default_knobs().eager_max);
  ck_assert_str_eq(f.knobs.profile, "auto");
  g_environment.erase("HOME");
  ck_assert_msg(f.read(), "%s", f.error);
}
END_TEST

START_TEST(own_profile_is_found_and_the_environment_overrides_it) {
  Fixture f;
  const std::string path =
      f.write(".config/ch_lite/profile",
              "# tuned\n\n  LITE_SHORT_MAX = 2K\t\r\nLITE_EAGER_MAX=1M\nLITE_CREDITS=\n   # end");
  g_environment = {{"HOME", f.directory}, {"LITE_SHORT_MAX", "100"}};
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_uint_eq(f.knobs.short_max, 100);
  ck_assert_uint_eq(f.knobs.eager_max, 1 << 20);
  ck_assert_uint_eq(f.knobs.credits, default_knobs().credits);
  ck_assert_str_eq(f.knobs.profile, path.c_str());
  g_environment.erase("LITE_SHORT_MAX");
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_uint_eq(f.knobs.short_max, 2048);
  // the directory for configuration goes before
  f.write("config/ch_lite/profile", "LITE_SHORT_MAX=7");
  g_environment["XDG_CONFIG_HOME"] = f.directory + "/config";
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_uint_eq(f.knobs.short_max, 7);
  ck_assert_uint_eq(f.knobs.eager_max, default_knobs().eager_max);
  g_environment["LITE_PROFILE"] = "none";
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_uint_eq(f.knobs.short_max, default_knobs().short_max);
}
END_TEST

START_TEST(settings_of_the_system_are_below_the_profile) {
  Fixture f;
  const std::string profile = f.write("mine", "LITE_EAGER_MAX=2M\n");
  f.write("system", "# for all\nLITE_SHORT_MAX=1K\nLITE_EAGER_MAX=1M\nLITE_CREDITS=1M\n");
  g_environment = {{"LITE_CREDITS", "2M"}};
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert(f.knobs.system_settings);
  ck_assert_str_eq(f.knobs.profile, "auto");
  ck_assert_uint_eq(f.knobs.short_max, 1024);
  ck_assert_uint_eq(f.knobs.eager_max, 1 << 20);
  ck_assert_uint_eq(f.knobs.credits, 2 << 20);
  g_environment["LITE_PROFILE"] = profile;
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_uint_eq(f.knobs.short_max, 1024);
  ck_assert_uint_eq(f.knobs.eager_max, 2 << 20);
  g_environment = {{"LITE_PROFILE", "none"}};
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert(!f.knobs.system_settings);
  ck_assert_uint_eq(f.knobs.short_max, default_knobs().short_max);
  f.write("system", "LITE_SHORT_MAX=much\n");
  g_environment.clear();
  ck_assert(!f.read());
  ck_assert_ptr_nonnull(std::strstr(f.error, "/system, line 1: LITE_SHORT_MAX=\"much\""));
}
END_TEST

START_TEST(named_profile_has_to_be_there) {
  Fixture f;
  const std::string path = f.write("mine", "LITE_EAGER_MAX=auto\n");
  g_environment = {{"LITE_PROFILE", path}};
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_uint_eq(f.knobs.eager_max, kEagerAuto);
  g_environment["LITE_PROFILE"] = f.directory + "/other";
  ck_assert(!f.read());
  ck_assert_ptr_nonnull(std::strstr(f.error, "other"));
  ck_assert_ptr_nonnull(std::strstr(f.error, "No such file"));
  ck_assert_ptr_nonnull(std::strstr(f.error, "LITE_PROFILE=none"));
  g_environment["LITE_PROFILE"] = f.directory + "/";
  ck_assert(!f.read());
  ck_assert_uint_eq(f.knobs.eager_max, kEagerAuto);  // as it was
}
END_TEST

START_TEST(bad_line_is_told_by_file_and_number) {
  const struct {
    const char* text;
    const char* told;
  } bad[] = {{"LITE_SHORT_MAX=1\nLITE_EGER_MAX=1\n",
              "line 2: LITE_EGER_MAX is no variable of ch_lite; did you mean LITE_EAGER_MAX?"},
             {"\n\nLITE_EAGER_MAX=lots", "line 3: LITE_EAGER_MAX=\"lots\" is not allowed"},
             {"LITE_EAGER_MAX", "line 1: want NAME=VALUE"},
             {"# x\nexport LITE_STATS=1\n", "line 2: export LITE_STATS is no variable"},
             {"LITE_PROFILE=/a/b\n", "line 1: LITE_PROFILE cannot be set by a profile"}};
  for (const auto& b : bad) {
    Fixture f;
    f.knobs.short_max = 5;
    ck_assert(!apply_profile("a/profile", b.text, f.knobs, f.error, sizeof f.error));
    ck_assert_msg(std::strstr(f.error, b.told) != nullptr, "%s", f.error);
    ck_assert_int_eq(std::strncmp(f.error, "profile a/profile, ", 19), 0);
    ck_assert_uint_eq(f.knobs.short_max, 5);
  }
  Fixture f;
  const std::string longest = "LITE_STATS=" + std::string(2000, ' ') + std::string(2000, '1');
  ck_assert(!apply_profile("a/profile", longest.c_str(), f.knobs, f.error, sizeof f.error));
  ck_assert_ptr_nonnull(std::strstr(f.error, "too long"));
}
END_TEST

START_TEST(profile_without_end_is_refused) {
  Fixture f;
  g_environment = {{"LITE_PROFILE", f.write("long", std::string(16 * 1024, '#'))}};
  ck_assert(!f.read());
  ck_assert_ptr_nonnull(std::strstr(f.error, "longer than 16 KB"));
  g_environment = {{"LITE_PROFILE", f.write("long", std::string(16 * 1024 - 1, '#'))}};
  ck_assert_msg(f.read(), "%s", f.error);
}
END_TEST

// Opening a named pipe waits for a writer, reading a device may never end.
START_TEST(what_is_no_regular_file_is_refused_at_once) {
  Fixture f;
  const std::string pipe = f.directory + "/pipe";
  ck_assert_int_eq(mkfifo(pipe.c_str(), 0600), 0);
  mkdir((f.directory + "/directory").c_str(), 0700);
  const struct {
    std::string path;
    const char* told;
  } wrong[] = {
      {pipe,
       "cannot be read: it is a named pipe, not a regular file; LITE_PROFILE=none does without"},
      {f.directory + "/directory", "it is a directory, not a regular file"},
      {"/dev/zero", "it is a device, not a regular file"}};
  alarm(5);
  for (const auto& w : wrong) {
    g_environment = {{"LITE_PROFILE", w.path}};
    ck_assert(!f.read());
    ck_assert_msg(std::strstr(f.error, w.told) != nullptr, "%s", f.error);
    ck_assert_ptr_nonnull(std::strstr(f.error, w.path.c_str()));
  }
  // the user's own, found by its place
  mkdir((f.directory + "/.config").c_str(), 0700);
  mkdir((f.directory + "/.config/ch_lite").c_str(), 0700);
  ck_assert_int_eq(mkfifo((f.directory + "/.config/ch_lite/profile").c_str(), 0600), 0);
  g_environment = {{"HOME", f.directory}};
  ck_assert(!f.read());
  ck_assert_ptr_nonnull(std::strstr(f.error, "it is a named pipe"));
  alarm(0);
}
END_TEST

START_TEST(interface_of_mpiexec_is_the_default) {
  Fixture f;
  g_environment = {{"MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE", "ib0"}};
  for (const char* own : {"", "auto"}) {
    g_environment["LITE_IFACE"] = own;
    ck_assert_msg(f.read(), "%s", f.error);
    ck_assert_int_eq(f.knobs.iface.count, 1);
    ck_assert_str_eq(f.knobs.iface.rule[0].name, "ib0");
    ck_assert(f.knobs.iface_from_mpiexec);
  }
  g_environment["LITE_IFACE"] = "eth0";
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_str_eq(f.knobs.iface.rule[0].name, "eth0");
  ck_assert(!f.knobs.iface_from_mpiexec);
  // it goes before the settings of the system, and the user's profile before it
  g_environment.erase("LITE_IFACE");
  f.write("system", "LITE_IFACE=eth7\n");
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_str_eq(f.knobs.iface.rule[0].name, "ib0");
  g_environment["LITE_PROFILE"] = f.write("mine", "LITE_IFACE=eth8\n");
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_str_eq(f.knobs.iface.rule[0].name, "eth8");
  g_environment.clear();
  ck_assert_msg(f.read(), "%s", f.error);
  ck_assert_str_eq(f.knobs.iface.rule[0].name, "eth7");
  g_environment = {{"MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE", "10.0.0.0/99"}};
  ck_assert(!f.read());
  ck_assert_ptr_nonnull(std::strstr(f.error, "mpiexec -iface"));
  ck_assert_ptr_nonnull(std::strstr(f.error, "LITE_IFACE overrides it"));
}
END_TEST

}  // namespace

int main() { return run_tests("profile"); }
