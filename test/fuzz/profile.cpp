// A profile's text: lines of NAME=VALUE. Nothing of a profile that is refused takes effect.
#include "mplite/config/profile.h"

#include "fuzz.h"
#include "same_knobs.h"

using namespace mplite;
using fuzz::check;

std::vector<fuzz::Seed> fuzz_seeds() {
  fuzz::Seed all, odd;
  for (std::size_t i = 0; i < knob_count(); ++i) {
    if (std::strcmp(knob_info(i).name, "LITE_PROFILE") == 0) continue;
    fuzz::put(
        all,
        (std::string(knob_info(i).name) + " = " + knob_info(i).default_value + "\r\n").c_str());
  }
  fuzz::put(odd,
            "# comment\n\n  LITE_EAGER_MAX =\t64K "
            "\nLITE_SPIN_US=\nLITE_IFACE=eth0,^10.0.0.0/8\nLITE_PROFILE=x");
  return {all, odd};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data),
                         size);  // what a file with a zero byte in it comes to, too
  const Knobs before = default_knobs();
  Knobs knobs = before, again = before;
  char error[512] = "", little[16];
  const bool good = apply_profile("/etc/profile", text.c_str(), knobs, error, sizeof error);
  check(good || (error[0] != '\0' && std::memchr(error, '\0', sizeof error) != nullptr &&
                 fuzz::same_knobs(knobs, before)));
  check(apply_profile("p", text.c_str(), again, little, sizeof little) == good &&
        fuzz::same_knobs(again, knobs));
  return 0;
}
