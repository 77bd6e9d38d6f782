// Proves that both ends of a new connection belong to the job, or may know each other: four Hello
// messages, made and checked here.
//
// libsodium and the handler: crypto_auth is SHA-512 in plain C over a state on the stack;
// crypto_auth_verify adds crypto_verify_32 and sodium_memcmp. None of them allocates, locks, or
// looks at global state (libsodium 1.0.18: crypto_auth/hmacsha512256/auth_hmacsha512256.c,
// crypto_auth/hmacsha512/auth_hmacsha512.c, crypto_hash/sha512/cp/hash_sha512_cp.c);
// test/unit/handshake_test.cpp runs them under an allocation trap. What may lock is the dynamic
// linker when it binds a symbol on its first call: hello_prepare() makes those calls in ordinary
// context.
#include "mplite/net/handshake.h"

#include <sodium.h>

#include <cstring>

#include "mplite/net/frame.h"
#include "mplite/net/record.h"

namespace mplite {
namespace {

static_assert(kMacBytes == crypto_auth_BYTES && crypto_auth_KEYBYTES == 32);

// What a mac is over. No padding, so the bytes are the same on both sides.
struct Statement {
  char label[16];
  std::uint32_t realm;  // and protection
  std::uint32_t from, to;
  std::uint8_t initiator[32];
  std::uint8_t nonce_initiator[kNonceBytes];
  std::uint8_t nonce_acceptor[kNonceBytes];
  std::uint32_t unused;
  StreamPosition position;
};
static_assert(sizeof(Statement) == 16 + 12 + 32 + 2 * kNonceBytes + 4 + sizeof(StreamPosition));

// And a stream's key.
struct KeyStatement {
  Statement of_hello;
  std::uint8_t pair[32];
};
static_assert(sizeof(KeyStatement) == sizeof(Statement) + 32 &&
              kStreamKeyBytes == crypto_auth_BYTES);

using Label = char[sizeof Statement::label];
constexpr Label kChallengeLabel = "lite3 challenge", kProofLabel = "lite3 proof",
                kAcceptLabel = "lite3 accept", kFromInitiatorLabel = "lite3 a to b",
                kFromAcceptorLabel = "lite3 b to a";

Statement statement(const HelloContext& context, const Label& label, const Hello& h,
                    const std::uint8_t* nonce_initiator, const std::uint8_t* nonce_acceptor) {
  Statement s = {};
  std::memcpy(s.label, label, sizeof s.label);
  s.realm = static_cast<std::uint32_t>(h.realm) | static_cast<std::uint32_t>(h.protection) << 8;
  s.from = h.from;
  s.to = h.to;
  if (context.initiator != nullptr) std::memcpy(s.initiator, context.initiator, sizeof s.initiator);
  std::memcpy(s.nonce_initiator, nonce_initiator, kNonceBytes);
  std::memcpy(s.nonce_acceptor, nonce_acceptor, kNonceBytes);
  s.position = h.position;
  return s;
}

const Label& label_of(HelloKind kind) {
  return kind == HelloKind::kChallenge ? kChallengeLabel
         : kind == HelloKind::kProof   ? kProofLabel
                                       : kAcceptLabel;
}

Hello blank(HelloRealm realm, HelloKind kind, std::uint8_t protection, std::uint32_t from,
            std::uint32_t to, const std::uint8_t* nonce) {
  Hello h = {};
  h.magic = kHelloMagic;
  h.version = kWireVersion;
  h.kind = kind;
  h.realm = realm;
  h.protection = protection;
  h.from = from;
  h.to = to;
  std::memcpy(h.nonce, nonce, kNonceBytes);
  return h;
}

void sign(const HelloContext& context, Hello& h, const std::uint8_t* nonce_initiator,
          const std::uint8_t* nonce_acceptor) {
  const Statement s = statement(context, label_of(h.kind), h, nonce_initiator, nonce_acceptor);
  crypto_auth(h.mac, reinterpret_cast<const unsigned char*>(&s), sizeof s, context.secret);
}

HelloFault verify(const HelloContext& context, const Hello& h, const std::uint8_t* nonce_initiator,
                  const std::uint8_t* nonce_acceptor) {
  const Statement s = statement(context, label_of(h.kind), h, nonce_initiator, nonce_acceptor);
  const bool good = crypto_auth_verify(h.mac, reinterpret_cast<const unsigned char*>(&s), sizeof s,
                                       context.secret) == 0;
  return good ? HelloFault::kNone : HelloFault::kMac;
}

// What every message must be. The order of the checks is the order of the sentences: a port scanner
// is told apart from an old version.
HelloFault check_form(const HelloContext& context, const Hello& h, HelloKind kind) {
  if (h.magic != kHelloMagic) return HelloFault::kMagic;
  if (h.version != kWireVersion) return HelloFault::kVersion;
  if (h.kind != kind || h.realm != context.realm) return HelloFault::kKind;
  if (protection_of(h.protection) != protection_of(context.protection) ||
      (h.protection & ~(kProtectionKind | kProtectionAes)) != 0)
    return HelloFault::kProtection;
  if (context.realm != HelloRealm::kJob)
    return HelloFault::kNone;  // there are no ranks: who it is shows by the secret
  const auto size = static_cast<std::uint32_t>(context.size);
  if (h.from >= size || h.to != static_cast<std::uint32_t>(context.rank) || h.from == h.to)
    return HelloFault::kRank;
  return HelloFault::kNone;
}

}  // namespace

const char* hello_fault_text(HelloFault fault) MPLITE_SIGNAL_SAFE {
  switch (fault) {
    case HelloFault::kNone: return "no fault";
    case HelloFault::kMagic: return "bad magic";
    case HelloFault::kVersion: return "another wire version";
    case HelloFault::kKind: return "message out of turn";
    case HelloFault::kRank: return "wrong rank";
    case HelloFault::kProtection: return "another LITE_ENCRYPT";
    case HelloFault::kMac: return "bad proof of the job's secret";
  }
  return "unknown fault";
}

bool hello_is_foreign(const Hello& h) MPLITE_SIGNAL_SAFE {
  return h.magic == kHelloMagic && h.version == kWireVersion && h.kind == HelloKind::kHello &&
         (h.realm == HelloRealm::kPort || h.realm == HelloRealm::kPair);
}

std::uint8_t hello_lane(const Hello& h) MPLITE_SIGNAL_SAFE {
  return h.realm == HelloRealm::kJob && h.mac[0] < kLanesMax ? h.mac[0] : 0;
}

Hello hello_refuse(const Hello& hello, std::uint8_t protection) MPLITE_SIGNAL_SAFE {
  return blank(hello.realm, HelloKind::kRefusal, protection, hello.to, hello.from, hello.nonce);
}

bool hello_is_refusal(const Hello& sent, const Hello& answer) MPLITE_SIGNAL_SAFE {
  const Hello refusal = hello_refuse(sent, answer.protection);
  return std::memcmp(&refusal, &answer, sizeof refusal) == 0;
}

Hello hello_start(const HelloContext& context, int to,
                  const std::uint8_t (&nonce)[kNonceBytes]) MPLITE_SIGNAL_SAFE {
  Hello hello =
      blank(context.realm, HelloKind::kHello, context.protection,
            static_cast<std::uint32_t>(context.rank), static_cast<std::uint32_t>(to), nonce);
  if (context.initiator != nullptr) std::memcpy(hello.mac, context.initiator, sizeof hello.mac);
  return hello;
}

HelloFault hello_answer(const HelloContext& context, const Hello& hello,
                        const std::uint8_t (&nonce)[kNonceBytes],
                        Hello& challenge) MPLITE_SIGNAL_SAFE {
  const HelloFault fault = check_form(context, hello, HelloKind::kHello);
  if (fault != HelloFault::kNone) return fault;
  const std::uint32_t own =
      context.realm == HelloRealm::kJob ? hello.to : static_cast<std::uint32_t>(context.rank);
  // The kinds are equal: AES if both offer it.
  const auto agreed = static_cast<std::uint8_t>(hello.protection & context.protection);
  Hello answer = blank(context.realm, HelloKind::kChallenge, agreed, own, hello.from, nonce);
  sign(context, answer, hello.nonce, nonce);
  challenge = answer;
  return HelloFault::kNone;
}

HelloFault hello_prove(const HelloContext& context, const Hello& sent, const Hello& challenge,
                       Hello& proof) MPLITE_SIGNAL_SAFE {
  const bool in_job = context.realm == HelloRealm::kJob;
  HelloFault fault = check_form(context, challenge, HelloKind::kChallenge);
  if (fault == HelloFault::kNone && in_job && challenge.from != sent.to) fault = HelloFault::kRank;
  if (fault == HelloFault::kNone && (challenge.protection & ~sent.protection) != 0)
    fault = HelloFault::kProtection;
  if (fault == HelloFault::kNone) fault = verify(context, challenge, sent.nonce, challenge.nonce);
  if (fault != HelloFault::kNone) return fault;
  Hello answer =
      blank(context.realm, HelloKind::kProof, challenge.protection, sent.from, sent.to, sent.nonce);
  answer.position = context.position;
  sign(context, answer, sent.nonce, challenge.nonce);
  proof = answer;
  return HelloFault::kNone;
}

HelloFault hello_accept(const HelloContext& context, const Hello& sent, const Hello& proof,
                        Hello& acceptance) MPLITE_SIGNAL_SAFE {
  HelloFault fault = check_form(context, proof, HelloKind::kProof);
  if (fault == HelloFault::kNone && proof.from != sent.to) fault = HelloFault::kRank;
  if (fault == HelloFault::kNone && proof.protection != sent.protection)
    fault = HelloFault::kProtection;
  // The initiator's nonce is taken from the proof: only who knows the secret can have signed it
  // together with ours.
  if (fault == HelloFault::kNone) fault = verify(context, proof, proof.nonce, sent.nonce);
  if (fault != HelloFault::kNone) return fault;
  Hello answer =
      blank(context.realm, HelloKind::kAccept, sent.protection, sent.from, sent.to, sent.nonce);
  answer.position = context.position;
  sign(context, answer, proof.nonce, sent.nonce);
  acceptance = answer;
  return HelloFault::kNone;
}

HelloFault hello_done(const HelloContext& context, const Hello& sent,
                      const Hello& acceptance) MPLITE_SIGNAL_SAFE {
  HelloFault fault = check_form(context, acceptance, HelloKind::kAccept);
  if (fault == HelloFault::kNone && context.realm == HelloRealm::kJob && acceptance.from != sent.to)
    fault = HelloFault::kRank;
  if (fault == HelloFault::kNone && acceptance.protection != sent.protection)
    fault = HelloFault::kProtection;
  if (fault == HelloFault::kNone) fault = verify(context, acceptance, sent.nonce, acceptance.nonce);
  return fault;
}

void hello_stream_keys(const HelloContext& context, const std::uint8_t* pair, const Hello& sent,
                       const Hello& heard, StreamKeys& keys) MPLITE_SIGNAL_SAFE {
  const bool initiator = sent.kind == HelloKind::kProof;
  const Hello& proof = initiator ? sent : heard;
  KeyStatement s = {};
  if (pair != nullptr) std::memcpy(s.pair, pair, sizeof s.pair);
  keys.agreed = proof.protection;
  for (const bool from_initiator : {true, false}) {
    s.of_hello = statement(context, from_initiator ? kFromInitiatorLabel : kFromAcceptorLabel,
                           proof, proof.nonce, (initiator ? heard : sent).nonce);
    crypto_auth(from_initiator == initiator ? keys.send : keys.receive,
                reinterpret_cast<const unsigned char*>(&s), sizeof s, context.secret);
  }
  sodium_memzero(&s, sizeof s);
}

// Of those who have shaken hands: that one can open what the other one seals, with every cipher.
static bool both_can_talk(const HelloContext& a, const HelloContext& b, const Hello& challenge,
                          const Hello& proof, const Hello& acceptance) {
  StreamKeys of_a, of_b;
  hello_stream_keys(a, nullptr, proof, acceptance, of_a);
  hello_stream_keys(b, nullptr, challenge, proof, of_b);
  std::uint8_t record[kRecordExtraBytes + 1] = {};
  bool good = true;
  for (const auto agreed : {of_a.agreed, static_cast<std::uint8_t>(Protection::kOn)}) {
    RecordCipher out, in;
    out.start(agreed, of_a.send);
    in.start(agreed, of_b.receive);
    out.seal(record + kRecordHeadBytes, 1, record);
    good = good && in.open(record, 1, record + kRecordHeadBytes);
    out.forget();
    in.forget();
  }
  return good;
}

bool hello_prepare() {
  if (sodium_init() < 0) return false;
  const std::uint8_t secret[32] = {1};
  const std::uint8_t nonce_a[kNonceBytes] = {2}, nonce_b[kNonceBytes] = {3};
  HelloContext a = {0, 2, secret}, b = {1, 2, secret};
  a.protection = b.protection = protection_offer(Protection::kOn);
  const Hello hello = hello_start(a, 1, nonce_a);
  Hello challenge, proof, acceptance;
  return hello_answer(b, hello, nonce_b, challenge) == HelloFault::kNone &&
         hello_prove(a, hello, challenge, proof) == HelloFault::kNone &&
         hello_accept(b, challenge, proof, acceptance) == HelloFault::kNone &&
         hello_done(a, proof, acceptance) == HelloFault::kNone &&
         both_can_talk(a, b, challenge, proof, acceptance);
}

}  // namespace mplite
