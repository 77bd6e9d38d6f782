// LITE_SECRET_FILE: any content. Equal contents make equal keys, and one bit changes them.
#include "mplite/runtime/secret_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

using namespace mplite;
using fuzz::check;

namespace {

bool read_content(std::span<const std::uint8_t> bytes, mode_t mode, SecretFile& file) {
  const int fd = memfd_create("secret", MFD_CLOEXEC);
  check(fd >= 0 && write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
        fchmod(fd, mode) == 0);
  char error[512] = "";
  const bool good =
      read_secret_file(("/proc/self/fd/" + std::to_string(fd)).c_str(), file, error, sizeof error);
  close(fd);
  check(good == file.there);
  if (!good) fuzz::check_sentence(error, sizeof error);
  check(good || error[0] != '\0');
  return good;
}

}  // namespace

std::vector<fuzz::Seed> fuzz_seeds() {
  std::vector<fuzz::Seed> seeds;
  for (const std::size_t bytes : {15, 16, 32, 4096, 4097})
    seeds.push_back(fuzz::Seed(2 + bytes, 'x'));
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Choices input(data, size);
  const mode_t mode = input.flip() ? 0600 : input.byte();
  const std::span<const std::uint8_t> content = input.rest();
  SecretFile file, again, other;
  const bool good = read_content(content, mode, file);
  check(good == (content.size() >= kSecretFileMin && content.size() <= kSecretFileMax &&
                 (mode & 077) == 0));
  if (!good) return 0;
  check(read_content(content, mode, again) &&
        std::memcmp(file.job_key, again.job_key, sizeof file.job_key) == 0);
  std::vector<std::uint8_t> changed(content.begin(), content.end());
  changed.back() ^= 1;
  check(read_content(changed, mode, other) &&
        std::memcmp(file.job_key, other.job_key, sizeof file.job_key) != 0);
  return 0;
}
