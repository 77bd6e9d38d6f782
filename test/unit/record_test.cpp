// record.h: what is sealed is opened, and nothing else is.
#include "mplite/net/record.h"
#include "mplite/net/handshake.h"

#include <cstring>
#include <vector>

#include "run_tests.h"

using namespace mplite;

namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::uint8_t kKey[kStreamKeyBytes] = {1, 2, 3}, kOtherKey[kStreamKeyBytes] = {1, 2, 4};

// Both kinds, with AES where the processor has it, and without.
std::vector<std::uint8_t> offers() {
  hello_prepare();
  std::vector<std::uint8_t> all;
  for (const Protection kind : {Protection::kAuth, Protection::kOn}) {
    all.push_back(static_cast<std::uint8_t>(kind));
    if (protection_offer(kind) != all.back()) all.push_back(protection_offer(kind));
  }
  return all;
}

Bytes content(std::uint32_t bytes) {
  Bytes made(bytes);
  for (std::uint32_t i = 0; i < bytes; ++i) made[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  return made;
}

RecordCipher started(std::uint8_t agreed, const std::uint8_t (&key)[kStreamKeyBytes] = kKey) {
  RecordCipher cipher;
  cipher.start(agreed, key);
  return cipher;
}

Bytes sealed(RecordCipher& cipher, const Bytes& of) {
  Bytes record(of.size() + kRecordExtraBytes);
  cipher.seal(of.data(), static_cast<std::uint32_t>(of.size()), record.data());
  return record;
}

// What cipher makes of a record; empty: it is not what was sealed.
Bytes opened(RecordCipher& cipher, const Bytes& record) {
  Bytes found(record.size() - kRecordExtraBytes);
  const std::uint32_t bytes = RecordCipher::content_bytes(record.data());
  if (bytes != found.size() || !cipher.open(record.data(), bytes, found.data())) return {};
  return found;
}

START_TEST(every_length_and_place) {
  for (const std::uint8_t agreed : offers()) {
    RecordCipher out = started(agreed), in = started(agreed);
    for (const std::uint32_t bytes : {1u, 15u, 16u, 17u, 1000u, kRecordBytesMax}) {
      const Bytes all = content(bytes);
      ck_assert(opened(in, sealed(out, all)) == all);
      // In place, on both sides.
      Bytes record(bytes + kRecordExtraBytes);
      std::memcpy(record.data() + kRecordHeadBytes, all.data(), bytes);
      out.seal(record.data() + kRecordHeadBytes, bytes, record.data());
      ck_assert_uint_eq(RecordCipher::content_bytes(record.data()), bytes);
      ck_assert(in.open(record.data(), bytes, record.data() + kRecordHeadBytes));
      ck_assert(std::memcmp(record.data() + kRecordHeadBytes, all.data(), bytes) == 0);
    }
  }
}
END_TEST

START_TEST(no_bit_may_change) {
  const Bytes all = content(100);
  for (const std::uint8_t agreed : offers()) {
    RecordCipher out = started(agreed);
    const Bytes good = sealed(out, all);
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      Bytes bad = good;
      bad[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      RecordCipher in = started(agreed);
      ck_assert_msg(opened(in, bad).empty(), "kind %d, bit %zu", agreed, bit);
    }
  }
}
END_TEST

START_TEST(none_may_be_repeated_left_out_or_moved) {
  for (const std::uint8_t agreed : offers()) {
    RecordCipher out = started(agreed);
    const Bytes first = sealed(out, content(50)), second = sealed(out, content(50));
    RecordCipher repeats = started(agreed), leaves_out = started(agreed);
    ck_assert(!opened(repeats, first).empty());
    ck_assert(opened(repeats, first).empty());
    ck_assert(opened(leaves_out, second).empty());
    ck_assert(first != second);  // the same content
  }
}
END_TEST

START_TEST(key_is_replaced_when_it_has_done_its_records) {
  constexpr std::uint64_t kPeriod = 3;
  const Bytes same = content(50);
  for (const std::uint8_t agreed : offers()) {
    RecordCipher out, in;
    out.start(agreed, kKey, kPeriod);
    in.start(agreed, kKey, kPeriod);
    RecordCipher as_before = started(agreed);
    std::vector<Bytes> all;
    for (std::uint64_t i = 0; i < 3 * kPeriod; ++i) {
      all.push_back(sealed(out, same));
      ck_assert(opened(in, all.back()) == same);
      ck_assert(opened(as_before, all.back()).empty() == (i >= kPeriod));
      for (std::uint64_t k = 0; k < i; ++k) ck_assert(all[k] != all[i]);
    }
  }
}
END_TEST

START_TEST(another_key_kind_or_cipher_opens_nothing) {
  const std::vector<std::uint8_t> all = offers();
  for (const std::uint8_t agreed : all) {
    RecordCipher out = started(agreed);
    const Bytes record = sealed(out, content(50));
    RecordCipher other = started(agreed, kOtherKey);
    ck_assert(opened(other, record).empty());
    for (const std::uint8_t another : all) {
      RecordCipher in = started(another);
      ck_assert(opened(in, record).empty() == (another != agreed));
    }
  }
}
END_TEST

START_TEST(only_one_kind_hides_the_content) {
  const Bytes all = content(64);
  for (const std::uint8_t agreed : offers()) {
    RecordCipher out = started(agreed);
    const Bytes record = sealed(out, all);
    const bool shown = std::memcmp(record.data() + kRecordHeadBytes, all.data(), all.size()) == 0;
    ck_assert(shown == (protection_of(agreed) == Protection::kAuth));
  }
}
END_TEST

START_TEST(lengths_that_no_record_has) {
  for (const std::uint32_t bytes : {0u, kRecordBytesMax + 1, 0x7fffffffu, 0xffffffffu}) {
    std::uint8_t head[kRecordHeadBytes];
    std::memcpy(head, &bytes, sizeof head);
    ck_assert_uint_eq(RecordCipher::content_bytes(head), 0);
  }
}
END_TEST

START_TEST(nothing_is_offered_where_nothing_is_asked_for) {
  hello_prepare();
  ck_assert_uint_eq(protection_offer(Protection::kOff), 0);
  ck_assert(protection_of(protection_offer(Protection::kAuth)) == Protection::kAuth);
  ck_assert(protection_of(protection_offer(Protection::kOn)) == Protection::kOn);
}
END_TEST

START_TEST(keys_are_forgotten) {
  RecordCipher cipher = started(protection_offer(Protection::kOn));
  cipher.forget();
  const std::uint8_t nothing[sizeof cipher] = {};
  ck_assert(std::memcmp(&cipher, nothing, sizeof cipher) == 0);
}
END_TEST

}  // namespace

int main() { return run_tests("record"); }
