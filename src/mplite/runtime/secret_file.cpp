// LITE_SECRET_FILE: checks, keys, fingerprint.
#include "mplite/runtime/secret_file.h"

#include <sodium.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "mplite/base/regular_file.h"

namespace mplite {
namespace {

// Labels are keys of the hash: they set each use apart from all others.
constexpr unsigned char kJobLabel[] = "ch_lite job secret with a file, version 1";
constexpr unsigned char kPrintLabel[] = "ch_lite fingerprint of a file, version 1";

// What is wrong with it, with its cure; empty: nothing.
void judge(const char* path, int rc, const struct stat& status, std::size_t length, char* why,
           std::size_t size) {
  why[0] = '\0';
  const unsigned mode = static_cast<unsigned>(status.st_mode) & 07777u;
  if (rc == kTooLong || (rc == 0 && length < kSecretFileMin))
    std::snprintf(why, size, "it has %s; 32 are enough: head -c 32 /dev/urandom >%s",
                  rc == kTooLong ? "more than 4096 bytes" : "fewer than 16 bytes", path);
  else if (rc != 0)
    std::snprintf(why, size, "%s", regular_file_fault(rc, status));
  else if (status.st_uid != geteuid() && status.st_uid != 0)
    std::snprintf(why, size, "it belongs to user %u, not to you (%u) or root",
                  static_cast<unsigned>(status.st_uid), static_cast<unsigned>(geteuid()));
  else if ((mode & 077u) != 0)
    std::snprintf(why, size, "its mode is %04o, so others than its owner may use it: chmod 600 %s",
                  mode, path);
}

}  // namespace

SecretFile::~SecretFile() {
  sodium_memzero(job_key, sizeof job_key);
  sodium_memzero(print_key, sizeof print_key);
}

bool read_secret_file(const char* path, SecretFile& file, char* error, std::size_t size) {
  unsigned char content[kSecretFileMax];
  std::size_t length = 0;
  struct stat status;
  const int rc = read_regular_file(path, content, sizeof content, length, status);
  char why[640];
  judge(path, rc, status, length, why, sizeof why);
  if (why[0] == '\0' && sodium_init() < 0)
    std::snprintf(why, sizeof why, "libsodium does not work in this process");
  if (why[0] == '\0') {
    crypto_generichash(file.job_key, sizeof file.job_key, content, length, kJobLabel,
                       sizeof kJobLabel);
    crypto_generichash(file.print_key, sizeof file.print_key, content, length, kPrintLabel,
                       sizeof kPrintLabel);
    file.there = true;
  }
  sodium_memzero(content, sizeof content);
  if (why[0] != '\0')
    std::snprintf(error, size, "LITE_SECRET_FILE=%s cannot be used: %s", path, why);
  return why[0] == '\0';
}

void make_fingerprint(const SecretFile& file, const std::uint8_t (&share)[kSecretBytes],
                      std::uint8_t (&fingerprint)[kFingerprintBytes]) {
  std::memset(fingerprint, 0, sizeof fingerprint);
  if (file.there)
    crypto_generichash(fingerprint, sizeof fingerprint, share, sizeof share, file.print_key,
                       sizeof file.print_key);
}

}  // namespace mplite
