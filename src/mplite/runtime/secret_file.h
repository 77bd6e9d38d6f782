// LITE_SECRET_FILE: a file that all ranks have a copy of keys the hash that makes the job's secret,
// so that who reads all cards still does not know the secret. Used by process.cpp (reading) and
// wireup.cpp (both uses of the keys). Ordinary context only.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mplite {

inline constexpr std::size_t kSecretBytes =
    32;  // of a job's secret, and of each rank's share in it
inline constexpr std::size_t kFingerprintBytes = 16;
inline constexpr std::size_t kSecretFileMin = 16, kSecretFileMax = 4096;  // bytes

// Keys made of the content, which is not kept.
struct SecretFile {
  bool there = false;
  std::uint8_t job_key[32] = {};    // of the hash that makes the job's secret
  std::uint8_t print_key[32] = {};  // of the fingerprint
  ~SecretFile();                    // wipes them
};

// Reads the file `path`: a regular file of kSecretFileMin to kSecretFileMax bytes that belongs to
// the user or to root, and that nobody else may read or write. False: `error` names the file, what
// is wrong and the cure.
bool read_secret_file(const char* path, SecretFile& file, char* error, std::size_t size);

// What a rank with that share publishes: equal only for equal files. The share makes it another one
// in each job. Zero without a file. Who knows it can try contents that are guessable, so they must
// not be.
void make_fingerprint(const SecretFile& file, const std::uint8_t (&share)[kSecretBytes],
                      std::uint8_t (&fingerprint)[kFingerprintBytes]);

}  // namespace mplite
