// What a remote shell or an agent sends lite-mprun: a banner, the word, frames; and the file that
// names the hosts. However the bytes are cut, they mean the same.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "fuzz.h"
#include "mplite/launch/mprun_remote.h"

using namespace mprun;
using fuzz::check;

namespace {

struct Heard {
  Greeting::State state = Greeting::State::kAwaited;
  std::size_t used = 0;
  std::string text;
  std::vector<std::pair<FrameType, std::vector<std::uint8_t>>> frames;
  bool broken = false;
  bool operator==(const Heard&) const = default;
};

// In pieces of at most `most` bytes.
Heard hear(std::span<const std::uint8_t> bytes, std::string_view word, std::size_t banner_max,
           std::size_t most) {
  Greeting greeting(word, banner_max);
  FrameReader reader;
  Heard heard;
  while (!bytes.empty() && greeting.state() != Greeting::State::kTooLong && !heard.broken) {
    std::span<const std::uint8_t> piece = bytes.first(std::min(most, bytes.size()));
    bytes = bytes.subspan(piece.size());
    if (greeting.state() == Greeting::State::kAwaited) {
      const std::size_t used = greeting.add(piece.data(), piece.size());
      check(used <= piece.size());
      heard.used += used;
      piece = piece.subspan(used);
    }
    if (greeting.state() != Greeting::State::kHeard) continue;
    reader.add(piece.data(), piece.size());
    FrameType type;
    const std::uint8_t* payload = nullptr;
    std::size_t length = 0;
    while (reader.next(type, payload, length))
      heard.frames.emplace_back(type, std::vector<std::uint8_t>(payload, payload + length));
    heard.broken = reader.broken();
  }
  heard.state = greeting.state();
  heard.text = greeting.text("| ", 4);
  fuzz::check_sentence(heard.text.c_str(), heard.text.size() + 1);
  return heard;
}

void read_hosts(std::span<const std::uint8_t> bytes) {
  const int fd = memfd_create("machines", MFD_CLOEXEC);
  check(fd >= 0 && write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  std::vector<std::string> hosts;
  std::string error;
  const bool good = read_machine_file(path.c_str(), 5, hosts, error);
  close(fd);
  check(good ? hosts.size() == 5 : !error.empty());
  if (good)
    for (const std::string& host : hosts) check(!host.empty() && host[0] != '-');
}

}  // namespace

std::vector<fuzz::Seed> fuzz_seeds() {
  std::vector<fuzz::Seed> seeds;
  for (const std::string_view word : {kAgentWord, kLauncherWord}) {
    fuzz::Seed seed = {static_cast<std::uint8_t>(word == kAgentWord ? 0 : 1), 9};
    fuzz::put(seed, word == kAgentWord ? "Welcome to host b\r\nLast login: never\n" : "");
    seed.insert(seed.end(), word.begin(), word.end());
    const char text[] = "text";
    for (const FrameType type :
         {FrameType::kCard, FrameType::kOutput, FrameType::kInput, FrameType::kEnd})
      append_frame(seed, type, text, type == FrameType::kInput ? 0 : sizeof text);
    seeds.push_back(seed);
  }
  fuzz::Seed hosts = {2, 0};
  fuzz::put(hosts, "# machines\nalpha:2\nbeta # two\n\n10.0.0.1:16\n[fe80::1]:2\n");
  seeds.push_back(hosts);
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Choices input(data, size);
  const int what = input.byte() % 3;
  const std::size_t piece = 1 + input.byte();
  const std::span<const std::uint8_t> bytes = input.rest();
  if (what == 2) {
    read_hosts(bytes);
    return 0;
  }
  const std::string_view word = what == 0 ? kAgentWord : kLauncherWord;
  const std::size_t banner_max = what == 0 ? 200 : 0;
  const Heard whole = hear(bytes, word, banner_max, bytes.size() + 1),
              cut = hear(bytes, word, banner_max, piece);
  check(whole.state == cut.state);
  if (whole.state == Greeting::State::kHeard) check(whole == cut);
  return 0;
}
