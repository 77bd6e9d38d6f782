// Proves that both ends of a new connection belong to the job, or may know each other as processes
// of two: four Hello messages (hello.h), checked here. Pure; the engine moves them. Called by
// engine.cpp, gate held or in the handler.
//
//   initiator A                     acceptor B
//   hello      nonceA          ->                      hello_start   -> hello_answer
//                              <-   challenge  nonceB, mac("challenge")       hello_prove
//   proof      nonceA, mac     ->                      hello_accept
//                              <-   accept     nonceB, mac                    hello_done
//
// mac = HMAC-SHA512-256 (libsodium crypto_auth, key: the realm's secret) over label | realm |
// protection | from | to | A's public key (in a job the lane's number) | nonceA | nonceB |
// position. The label and the ranks differ in every message and direction, both nonces are fresh,
// so neither replay nor reflection helps a stranger. Each side needs to remember only the Hello
// that it sent last. Somebody who can change packets on the path afterwards is found out by the
// stream's own tags, where it has them (record.h).
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/net/hello.h"
#include "mplite/net/protection.h"

namespace mplite {

enum class HelloFault : std::uint8_t {
  kNone,
  kMagic,       // not of this program at all: a port scan, another service's client
  kVersion,     // another version of this wire
  kKind,        // out of turn
  kRank,        // a rank that does not exist, is not the expected one, or is not us
  kProtection,  // has another LITE_ENCRYPT
  kMac,  // does not know the job's secret, or answers something else than what we sent (a replay)
};
const char* hello_fault_text(HelloFault fault) MPLITE_SIGNAL_SAFE;

struct HelloContext {
  int rank;                    // our own; between jobs the credit that we give (not negative)
  int size;                    // of the job; not looked at between jobs
  const std::uint8_t* secret;  // 32 bytes: of the realm
  HelloRealm realm = HelloRealm::kJob;
  const std::uint8_t* initiator = nullptr;  // 32 bytes: between jobs A's public key; of a lane its
                                            // number, and zeros
  std::uint8_t protection = 0;              // what we offer
  StreamPosition position = {};             // ours, for hello_prove and hello_accept
};

// Whether this is the first message of a process of another job; then its public key is in `mac`,
// and the realm's secret has to be found by that (kPair) or by `to` (kPort).
bool hello_is_foreign(const Hello& hello) MPLITE_SIGNAL_SAFE;

// The number of the lane that is to be opened by that first message (lane_set.h); 0: none. It is in
// the place of A's public key, and so covered by every mac.
std::uint8_t hello_lane(const Hello& hello) MPLITE_SIGNAL_SAFE;

// B: in place of a challenge, when there is no such port, or `protection`, our own, is of another
// kind. Proves nothing; A gives up at once instead of trying on.
Hello hello_refuse(const Hello& hello, std::uint8_t protection) MPLITE_SIGNAL_SAFE;
// A: whether that was the answer.
bool hello_is_refusal(const Hello& sent, const Hello& answer) MPLITE_SIGNAL_SAFE;

// A: the first message, to rank `to`; between jobs to the port of that number. `nonce` must be
// fresh random bytes.
Hello hello_start(const HelloContext& context, int to,
                  const std::uint8_t (&nonce)[kNonceBytes]) MPLITE_SIGNAL_SAFE;

// B: checks a kHello and makes the challenge. The rank it claims (hello.from) is in range but not
// believed yet. `challenge` is set on kNone only.
HelloFault hello_answer(const HelloContext& context, const Hello& hello,
                        const std::uint8_t (&nonce)[kNonceBytes],
                        Hello& challenge) MPLITE_SIGNAL_SAFE;

// A: checks the challenge against the kHello sent, makes the proof. The acceptor has shown that it
// belongs.
HelloFault hello_prove(const HelloContext& context, const Hello& sent, const Hello& challenge,
                       Hello& proof) MPLITE_SIGNAL_SAFE;

// B: checks the proof against the challenge sent, makes the acceptance. On kNone the peer is rank
// proof.from.
HelloFault hello_accept(const HelloContext& context, const Hello& sent, const Hello& proof,
                        Hello& acceptance) MPLITE_SIGNAL_SAFE;

// A: checks the acceptance against the proof sent.
HelloFault hello_done(const HelloContext& context, const Hello& sent,
                      const Hello& acceptance) MPLITE_SIGNAL_SAFE;

// Both, at the end: the keys of the stream. `sent` and `heard`: the last Hello of each side.
// `pair`: the key that only the two processes can compute, 32 bytes; nullptr where the realm's
// secret is made of it.
void hello_stream_keys(const HelloContext& context, const std::uint8_t* pair, const Hello& sent,
                       const Hello& heard, StreamKeys& keys) MPLITE_SIGNAL_SAFE;

// Ordinary context, once before the first handshake: sets libsodium up and runs a whole exchange,
// so that every symbol that the handler will call is bound. False: the library does not work here.
bool hello_prepare();

}  // namespace mplite
