// Records of a protected stream: AES-256-GCM or ChaCha20-Poly1305 (RFC 8439) of libsodium.
//
// libsodium and the handler: these functions work on their arguments and the stack; none allocates,
// locks or waits. Which implementation a processor needs was chosen by sodium_init().
#include "mplite/net/record.h"

#include <cstring>

namespace mplite {
namespace {

static_assert(kStreamKeyBytes == crypto_aead_aes256gcm_KEYBYTES &&
              kStreamKeyBytes == crypto_aead_chacha20poly1305_ietf_KEYBYTES &&
              kRecordTagBytes == crypto_aead_aes256gcm_ABYTES &&
              kRecordTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES &&
              kStreamKeyBytes == crypto_auth_BYTES && kStreamKeyBytes == crypto_auth_KEYBYTES);

constexpr unsigned char kNextKeyLabel[] = "ch_lite next key";

}  // namespace

std::uint8_t protection_offer(Protection kind) {
  if (kind == Protection::kOff) return 0;
  return static_cast<std::uint8_t>(
      static_cast<unsigned>(kind) |
      (crypto_aead_aes256gcm_is_available() != 0 ? kProtectionAes : 0u));
}

void RecordCipher::start(std::uint8_t agreed, const std::uint8_t (&key)[kStreamKeyBytes],
                         std::uint64_t records_of_key) {
  static_assert(kNumberBytes == crypto_aead_aes256gcm_NPUBBYTES &&
                kNumberBytes == crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
  agreed_ = agreed;
  next_ = 0;
  records_of_key_ = records_of_key;
  std::memcpy(key_, key, sizeof key_);
  if ((agreed_ & kProtectionAes) != 0) crypto_aead_aes256gcm_beforenm(&aes_, key_);
}

void RecordCipher::replace_key() {
  std::uint8_t next[kStreamKeyBytes];
  crypto_auth(next, kNextKeyLabel, sizeof kNextKeyLabel - 1, key_);
  start(agreed_, next, records_of_key_);
  sodium_memzero(next, sizeof next);
}

// Each number is used once with a key.
void RecordCipher::take_number(std::uint8_t (&number)[kNumberBytes]) {
  if (next_ == records_of_key_) [[unlikely]]
    replace_key();
  std::memset(number, 0, sizeof number);
  std::memcpy(number, &next_, sizeof next_);
  ++next_;
}

// Without secrecy the content is what is only checked: it lies behind the head, in one piece with
// it.
void RecordCipher::seal(const std::uint8_t* content, std::uint32_t bytes, std::uint8_t* record) {
  std::uint8_t* const body = record + kRecordHeadBytes;
  std::uint8_t* const tag = body + bytes;
  std::memcpy(record, &bytes, kRecordHeadBytes);
  std::uint8_t number[kNumberBytes];
  take_number(number);
  const bool secret = protection_of(agreed_) == Protection::kOn;
  if (!secret && content != body) std::memcpy(body, content, bytes);
  const std::uint8_t* from = secret ? content : nullptr;
  const std::uint32_t hidden = secret ? bytes : 0;
  const std::uint32_t shown = kRecordHeadBytes + (secret ? 0 : bytes);
  if ((agreed_ & kProtectionAes) != 0)
    crypto_aead_aes256gcm_encrypt_detached_afternm(body, tag, nullptr, from, hidden, record, shown,
                                                   nullptr, number, &aes_);
  else
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(body, tag, nullptr, from, hidden, record,
                                                       shown, nullptr, number, key_);
}

std::uint32_t RecordCipher::content_bytes(const std::uint8_t* record) {
  std::uint32_t bytes;
  std::memcpy(&bytes, record, sizeof bytes);
  return bytes <= kRecordBytesMax ? bytes : 0;
}

bool RecordCipher::open(const std::uint8_t* record, std::uint32_t bytes, std::uint8_t* content) {
  const std::uint8_t* const body = record + kRecordHeadBytes;
  const std::uint8_t* const tag = body + bytes;
  std::uint8_t number[kNumberBytes];
  take_number(number);
  const bool secret = protection_of(agreed_) == Protection::kOn;
  const std::uint32_t hidden = secret ? bytes : 0;
  const std::uint32_t shown = kRecordHeadBytes + (secret ? 0 : bytes);
  const int rc = (agreed_ & kProtectionAes) != 0
                     ? crypto_aead_aes256gcm_decrypt_detached_afternm(
                           content, nullptr, body, hidden, tag, record, shown, number, &aes_)
                     : crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                           content, nullptr, body, hidden, tag, record, shown, number, key_);
  if (rc != 0) return false;
  if (!secret && content != body) std::memcpy(content, body, bytes);
  return true;
}

}  // namespace mplite
