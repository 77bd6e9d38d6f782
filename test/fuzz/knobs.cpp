// The values of LITE_* variables, and names that are none. What is taken can be written out and
// read again.
#include "mplite/config/knobs.h"
#include "mplite/config/knob_text.h"

#include "fuzz.h"
#include "same_knobs.h"

using namespace mplite;
using fuzz::check;

namespace {

std::string g_value;
std::size_t g_index;
const char* get(const char* name) {
  return std::strcmp(name, knob_info(g_index).name) == 0 ? g_value.c_str() : nullptr;
}

void check_written_as_read(std::size_t index, const Knobs& knobs) {
  char text[2048], again[2048], error[256] = "";
  format_knob(index, knobs, text, sizeof text);
  check(std::memchr(text, '\0', sizeof text) != nullptr);
  if (text[0] == '\0') return;  // not set
  Knobs read = default_knobs();
  check(set_knob(index, text, read, error, sizeof error));
  check(std::strcmp(format_knob(index, read, again, sizeof again), text) == 0);
  char little[8];
  format_knob(index, knobs, little, sizeof little);
  check(std::memchr(little, '\0', sizeof little) != nullptr);
}

}  // namespace

std::vector<fuzz::Seed> fuzz_seeds() {
  static const char* const kValues[] = {"64K",
                                        "auto",
                                        "30s",
                                        "forever",
                                        "10:2",
                                        "SIGRTMIN+3",
                                        "eth0,10.1.0.0/16,^fe80::/10,!docker0",
                                        "20000-20100",
                                        "1",
                                        "thread",
                                        "ipv6",
                                        "/etc/key"};
  std::vector<fuzz::Seed> seeds;
  for (std::size_t i = 0; i < knob_count(); ++i) {
    for (const char* value : {knob_info(i).default_value, kValues[i % std::size(kValues)]}) {
      fuzz::Seed seed = {static_cast<std::uint8_t>(i)};
      fuzz::put(seed, value);
      seeds.push_back(seed);
    }
  }
  fuzz::Seed names = {255};
  fuzz::put(names, "LITE_EAGERMAX=1\nLITE_=2\nLITE_STATS\n=\nPATH=/bin");
  seeds.push_back(names);
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Choices input(data, size);
  const std::size_t which = input.byte();
  g_index = which % knob_count();
  g_value = input.text(4096);
  const Knobs before = default_knobs();
  Knobs knobs = before;
  char error[256] = "";
  if (set_knob(g_index, g_value.c_str(), knobs, error, sizeof error)) {
    check_written_as_read(g_index, knobs);
  } else {
    check(std::memchr(error, '\0', sizeof error) != nullptr && error[0] != '\0');
    check(fuzz::same_knobs(knobs, before));
  }
  Knobs parsed;
  char little[16];
  if (parse_knobs(get, parsed, little, sizeof little)) check_written_as_read(g_index, parsed);
  override_knobs(get, parsed, error, sizeof error);

  IfaceList list;
  if (parse_iface_list(g_value.c_str(), list, error, sizeof error))
    for (int i = 0; i < list.count; ++i) {
      char text[128], again[128];
      IfaceList one;
      format_rule(list.rule[i], text, sizeof text);
      check(parse_iface_list(text, one, error, sizeof error) && one.count == 1);
      check(std::strcmp(format_rule(one.rule[0], again, sizeof again), text) == 0);
    }

  int distance = 0;
  check(nearest_knob(g_value.c_str(), distance) < knob_count() && distance >= 0);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < g_value.size();) {
    const std::size_t end = std::min(g_value.find('\n', at), g_value.size());
    lines.push_back(g_value.substr(at, end - at));
    at = end + 1;
  }
  std::vector<const char*> environment;
  for (const std::string& line : lines) environment.push_back(line.c_str());
  environment.push_back(nullptr);
  char text[300];
  check(unknown_knobs(environment.data(), text, sizeof text) <= static_cast<int>(lines.size()));
  check(std::memchr(text, '\0', sizeof text) != nullptr);
  return 0;
}
