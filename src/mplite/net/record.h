// Records, of which a protected stream consists: a head with the length, the content, and a tag by
// the stream's key and the record's number. Used by protected_net.cpp; pure but for libsodium.
// Signal-safe after hello_prepare().
#pragma once
#include <sodium.h>

#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/net/protection.h"

namespace mplite {

inline constexpr std::uint32_t kRecordBytesMax = 16 * 1024;  // of content
inline constexpr std::uint32_t kRecordHeadBytes = 4;         // the content's length, little-endian
inline constexpr std::uint32_t kRecordTagBytes = 16;
// So many records are made with one key, as RFC 8446 (section 5.5) wants of AES-GCM.
inline constexpr std::uint64_t kRecordsOfKey = 1u << 24;
inline constexpr std::uint32_t kRecordExtraBytes = kRecordHeadBytes + kRecordTagBytes;

// What this process can offer for a kind of protection: AES where the processor has it.
std::uint8_t protection_offer(Protection kind);

// One direction of a stream. Records have numbers, which are not sent: one that was changed,
// repeated, left out or moved has a wrong tag. After kRecordsOfKey of them the key is replaced by
// one that is computed from it, and forgotten.
class RecordCipher {
 public:
  void start(std::uint8_t agreed, const std::uint8_t (&key)[kStreamKeyBytes],
             std::uint64_t records_of_key = kRecordsOfKey) MPLITE_SIGNAL_SAFE;

  // The keys are overwritten.
  void forget() MPLITE_SIGNAL_SAFE { sodium_memzero(this, sizeof *this); }

  // Makes the next record of `bytes` (1 to kRecordBytesMax) at `content`, which may lie at
  // record + kRecordHeadBytes. `record` has room for kRecordExtraBytes more.
  void seal(const std::uint8_t* content, std::uint32_t bytes,
            std::uint8_t* record) MPLITE_SIGNAL_SAFE;

  // The length of the content of the record that begins with these kRecordHeadBytes; 0: it is none.
  static std::uint32_t content_bytes(const std::uint8_t* record) MPLITE_SIGNAL_SAFE;
  // Checks the next record, whose content has `bytes`, and writes that to `content`, which may lie
  // at record + kRecordHeadBytes. False: it is not what the other end has sealed; `content` holds
  // nothing of use then.
  bool open(const std::uint8_t* record, std::uint32_t bytes,
            std::uint8_t* content) MPLITE_SIGNAL_SAFE;

 private:
  static constexpr std::size_t kNumberBytes = 12;
  void take_number(std::uint8_t (&number)[kNumberBytes]) MPLITE_SIGNAL_SAFE;
  void replace_key() MPLITE_SIGNAL_SAFE;

  crypto_aead_aes256gcm_state aes_;  // where AES is used
  std::uint8_t key_[kStreamKeyBytes] = {};
  std::uint8_t agreed_ = 0;
  std::uint64_t next_ = 0;  // with this key
  std::uint64_t records_of_key_ = 0;
};

}  // namespace mplite
