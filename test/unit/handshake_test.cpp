// handshake.h: the four messages, and that nobody without the secret gets through with any of them.
#include "mplite/net/handshake.h"
#include "mplite/net/frame.h"
#include "mplite/net/record.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <cstring>

#include "run_tests.h"

using namespace mplite;

// The trap: while it is set, an allocation or a mutex ends the program. A sanitizer has its own
// allocator, so the trap is only in plain builds.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HAVE_TRAP 1
static volatile bool g_trap = false;
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);
extern "C" void* malloc(std::size_t size) {
  if (g_trap) abort();
  return __libc_malloc(size);
}
extern "C" void* calloc(std::size_t count, std::size_t size) {
  if (g_trap) abort();
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* at, std::size_t size) {
  if (g_trap) abort();
  return __libc_realloc(at, size);
}
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static int (*real)(pthread_mutex_t*) = nullptr;
  if (g_trap) abort();
  if (real == nullptr)
    real = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return real(mutex);
}
#endif

namespace {

const std::uint8_t kSecret[32] = {9, 8, 7, 6, 5};
const std::uint8_t kOtherSecret[32] = {9, 8, 7, 6, 4};
const std::uint8_t kNonceA[kNonceBytes] = {1, 2, 3};
const std::uint8_t kNonceB[kNonceBytes] = {4, 5, 6};
const HelloContext kA = {3, 8, kSecret};
const HelloContext kB = {5, 8, kSecret};

// All messages of a good exchange of A (rank 3) with B (rank 5).
struct Exchange {
  Hello hello, challenge, proof, acceptance;
  Exchange() {
    hello = hello_start(kA, 5, kNonceA);
    ck_assert(hello_answer(kB, hello, kNonceB, challenge) == HelloFault::kNone);
    ck_assert(hello_prove(kA, hello, challenge, proof) == HelloFault::kNone);
    ck_assert(hello_accept(kB, challenge, proof, acceptance) == HelloFault::kNone);
    ck_assert(hello_done(kA, proof, acceptance) == HelloFault::kNone);
  }
};

// The four checks with everything as in a good exchange but the message to be checked.
HelloFault check(const Exchange& good, int step, const Hello& message, const HelloContext& a = kA,
                 const HelloContext& b = kB) {
  Hello out;
  switch (step) {
    case 0: return hello_answer(b, message, kNonceB, out);
    case 1: return hello_prove(a, good.hello, message, out);
    case 2: return hello_accept(b, good.challenge, message, out);
    default: return hello_done(a, good.proof, message);
  }
}

const Hello& message_of(const Exchange& e, int step) {
  return step == 0 ? e.hello : step == 1 ? e.challenge : step == 2 ? e.proof : e.acceptance;
}

START_TEST(both_ends_of_one_job_accept_each_other) {
  const Exchange e;
  ck_assert_uint_eq(e.proof.from, 3);
  ck_assert_uint_eq(e.proof.to, 5);
  ck_assert_uint_eq(e.acceptance.from, 5);
}
END_TEST

START_TEST(any_changed_bit_of_any_message_is_noticed) {
  const Exchange e;
  for (int step = 0; step < 4; ++step) {
    for (std::size_t bit = 0; bit < kHelloBytes * 8; ++bit) {
      std::uint8_t bytes[kHelloBytes];
      Hello changed = message_of(e, step);
      std::memcpy(bytes, &changed, sizeof bytes);
      bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1u << (bit % 8)));
      std::memcpy(&changed, bytes, sizeof bytes);
      const bool refused = check(e, step, changed) != HelloFault::kNone;
      // The first message proves nothing: another rank's claim, another nonce, AES and the unused
      // mac are taken, and the proof then does not fit.
      const bool unproved =
          step == 0 && changed.magic == e.hello.magic && changed.version == e.hello.version &&
          changed.kind == e.hello.kind && changed.realm == HelloRealm::kJob && changed.to == 5 &&
          changed.from < 8 && changed.from != 5 && (changed.protection & ~kProtectionAes) == 0;
      ck_assert_msg(refused != unproved, "message %d, bit %zu", step, bit);
    }
  }
}
END_TEST

START_TEST(proof_for_a_changed_hello_does_not_fit) {
  const Exchange e;
  Hello hello = e.hello, challenge, proof, acceptance;
  hello.nonce[0] = static_cast<std::uint8_t>(hello.nonce[0] + 1);  // somebody on the path
  ck_assert(hello_answer(kB, hello, kNonceB, challenge) == HelloFault::kNone);
  ck_assert(hello_prove(kA, e.hello, challenge, proof) == HelloFault::kMac);
  // Rank 4's claim does not let rank 3's proof pass.
  hello = e.hello;
  hello.from = 4;
  ck_assert(hello_answer(kB, hello, kNonceB, challenge) == HelloFault::kNone);
  ck_assert(hello_accept(kB, challenge, e.proof, acceptance) == HelloFault::kRank);
}
END_TEST

START_TEST(another_jobs_secret_is_refused_by_both_sides) {
  const Exchange e;
  const HelloContext stranger_a = {3, 8, kOtherSecret}, stranger_b = {5, 8, kOtherSecret};
  Hello challenge, proof, acceptance;
  ck_assert(hello_answer(stranger_b, e.hello, kNonceB, challenge) == HelloFault::kNone);
  ck_assert(hello_prove(kA, e.hello, challenge, proof) == HelloFault::kMac);
  ck_assert(hello_prove(stranger_a, e.hello, challenge, proof) == HelloFault::kNone);
  ck_assert(hello_accept(kB, e.challenge, proof, acceptance) == HelloFault::kMac);
  ck_assert(hello_accept(stranger_b, challenge, proof, acceptance) == HelloFault::kNone);
  ck_assert(hello_done(kA, e.proof, acceptance) == HelloFault::kMac);
}
END_TEST

// Rank 6 belongs to the job, but it is not the one that rank 3 wants to speak to (an address table
// gone wrong).
START_TEST(another_rank_of_the_job_is_not_taken_for_the_wanted_one) {
  const Exchange e;
  const HelloContext six = {6, 8, kSecret};
  Hello to_six = e.hello, challenge, proof, acceptance;
  to_six.to = 6;
  ck_assert(hello_answer(six, to_six, kNonceB, challenge) == HelloFault::kNone);
  ck_assert(hello_prove(kA, e.hello, challenge, proof) == HelloFault::kRank);
  ck_assert(hello_prove(kA, to_six, challenge, proof) == HelloFault::kNone);
  ck_assert(hello_accept(six, challenge, proof, acceptance) == HelloFault::kNone);
  ck_assert(hello_done(kA, e.proof, acceptance) == HelloFault::kRank);
}
END_TEST

START_TEST(replay_of_an_earlier_exchange_is_refused) {
  const Exchange old;
  const std::uint8_t fresh_a[kNonceBytes] = {77}, fresh_b[kNonceBytes] = {78};
  Hello challenge, proof, acceptance;
  // The acceptor has a fresh nonce: the recorded proof does not fit it.
  ck_assert(hello_answer(kB, old.hello, fresh_b, challenge) == HelloFault::kNone);
  ck_assert(hello_accept(kB, challenge, old.proof, acceptance) == HelloFault::kMac);
  // The initiator has one: neither recorded answer fits.
  const Hello hello = hello_start(kA, 5, fresh_a);
  ck_assert(hello_prove(kA, hello, old.challenge, proof) == HelloFault::kMac);
  ck_assert(hello_answer(kB, hello, kNonceB, challenge) == HelloFault::kNone);
  ck_assert(hello_prove(kA, hello, challenge, proof) == HelloFault::kNone);
  ck_assert(hello_done(kA, proof, old.acceptance) == HelloFault::kMac);
}
END_TEST

START_TEST(a_message_thrown_back_is_refused) {
  const Exchange e;
  // A connects to itself through a mirror: ranks do not fit.
  Hello out;
  ck_assert(hello_answer(kA, e.hello, kNonceB, out) == HelloFault::kRank);
  ck_assert(hello_prove(kA, e.hello, e.hello, out) == HelloFault::kKind);
  ck_assert(hello_done(kA, e.proof, e.proof) == HelloFault::kKind);
  // The challenge with the words of a proof: the label is under the mac.
  Hello twisted = e.challenge;
  twisted.kind = HelloKind::kAccept;
  ck_assert(hello_done(kA, e.proof, twisted) == HelloFault::kMac);
}
END_TEST

START_TEST(messages_out_of_turn_are_refused) {
  const Exchange e;
  for (int step = 0; step < 4; ++step) {
    for (int other = 0; other < 4; ++other) {
      if (other == step) continue;
      Hello m = message_of(e, other);
      m.from = message_of(e, step).from;
      m.to = message_of(e, step).to;
      ck_assert(check(e, step, m) == HelloFault::kKind);
    }
  }
}
END_TEST

START_TEST(faults_are_told_apart) {
  const Exchange e;
  Hello m = e.hello;
  std::memcpy(&m, "GET / HTTP/1.1\r\n", 16);
  ck_assert(check(e, 0, m) == HelloFault::kMagic);
  m = e.hello;
  m.version = kWireVersion + 1;
  ck_assert(check(e, 0, m) == HelloFault::kVersion);
  m = e.hello;
  m.from = 8;  // the job has ranks 0 to 7
  ck_assert(check(e, 0, m) == HelloFault::kRank);
  m.from = 0xffffffff;
  ck_assert(check(e, 0, m) == HelloFault::kRank);
  m = e.hello;
  m.to = 4;
  ck_assert(check(e, 0, m) == HelloFault::kRank);
  m = e.hello;
  m.from = 5;  // says it is us
  ck_assert(check(e, 0, m) == HelloFault::kRank);
  for (const HelloFault f : {HelloFault::kNone, HelloFault::kMagic, HelloFault::kVersion,
                             HelloFault::kKind, HelloFault::kRank, HelloFault::kMac})
    ck_assert_str_ne(hello_fault_text(f), "unknown fault");
}
END_TEST

START_TEST(outputs_are_set_on_success_only) {
  const Exchange e;
  Hello out, before;
  std::memset(&out, 0x55, sizeof out);
  before = out;
  Hello bad = e.challenge;
  bad.mac[31] = static_cast<std::uint8_t>(bad.mac[31] ^ 1);
  ck_assert(hello_prove(kA, e.hello, bad, out) == HelloFault::kMac);
  ck_assert_mem_eq(&out, &before, sizeof out);
  bad = e.proof;
  bad.mac[0] = static_cast<std::uint8_t>(bad.mac[0] ^ 1);
  ck_assert(hello_accept(kB, e.challenge, bad, out) == HelloFault::kMac);
  ck_assert_mem_eq(&out, &before, sizeof out);
}
END_TEST

// ---- between jobs ----

const std::uint8_t kCaller[32] = {7, 7, 7};
const std::uint8_t kOther[32] = {8, 8, 8};

struct ForeignExchange {
  Hello hello, challenge, proof, acceptance;
  HelloFault fault = HelloFault::kNone;
  ForeignExchange(const HelloContext& a, const HelloContext& b, int port = 5) {
    hello = hello_start(a, port, kNonceA);
    if ((fault = hello_answer(b, hello, kNonceB, challenge)) != HelloFault::kNone) return;
    if ((fault = hello_prove(a, hello, challenge, proof)) != HelloFault::kNone) return;
    if ((fault = hello_accept(b, challenge, proof, acceptance)) != HelloFault::kNone) return;
    fault = hello_done(a, proof, acceptance);
  }
};

START_TEST(processes_of_two_jobs_accept_each_other_by_a_key_of_their_own) {
  for (const HelloRealm realm : {HelloRealm::kPort, HelloRealm::kPair}) {
    const HelloContext a = {65536, 0, kSecret, realm, kCaller},
                       b = {2000000, 0, kSecret, realm, kCaller};
    const ForeignExchange e(a, b);
    ck_assert(e.fault == HelloFault::kNone);
    ck_assert(hello_is_foreign(e.hello) && !hello_is_foreign(e.challenge) &&
              !hello_is_foreign(e.proof));
    ck_assert_mem_eq(e.hello.mac, kCaller, sizeof kCaller);
    ck_assert_uint_eq(e.proof.from, 65536);
    ck_assert_uint_eq(e.challenge.from, 2000000);
    ck_assert_uint_eq(e.proof.to, 5);
  }
}
END_TEST

START_TEST(another_key_another_realm_or_another_caller_does_not_pass) {
  const HelloContext a = {65536, 0, kSecret, HelloRealm::kPort, kCaller};
  const HelloContext wrong_key = {65536, 0, kOtherSecret, HelloRealm::kPort, kCaller},
                     wrong_realm = {65536, 0, kSecret, HelloRealm::kPair, kCaller},
                     wrong_caller = {65536, 0, kSecret, HelloRealm::kPort, kOther},
                     in_job = {1, 8, kSecret};
  ck_assert(ForeignExchange(a, wrong_key).fault == HelloFault::kMac);
  ck_assert(ForeignExchange(wrong_key, a).fault == HelloFault::kMac);
  ck_assert(ForeignExchange(a, wrong_realm).fault == HelloFault::kKind);
  ck_assert(ForeignExchange(a, in_job).fault == HelloFault::kKind);
  ck_assert(ForeignExchange(a, wrong_caller).fault ==
            HelloFault::kMac);  // who is let in is covered by the proof
}
END_TEST

START_TEST(any_changed_bit_of_a_message_between_jobs_is_noticed) {
  const HelloContext a = {65536, 0, kSecret, HelloRealm::kPort, kCaller},
                     b = {2000000, 0, kSecret, HelloRealm::kPort, kCaller};
  const ForeignExchange good(a, b);
  for (int step = 1; step < 4; ++step) {
    for (std::size_t bit = 0; bit < kHelloBytes * 8; ++bit) {
      Hello changed = step == 1 ? good.challenge : step == 2 ? good.proof : good.acceptance, out;
      auto* bytes = reinterpret_cast<std::uint8_t*>(&changed);
      bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1u << (bit % 8)));
      const HelloFault fault = step == 1   ? hello_prove(a, good.hello, changed, out)
                               : step == 2 ? hello_accept(b, good.challenge, changed, out)
                                           : hello_done(a, good.proof, changed);
      ck_assert_msg(fault != HelloFault::kNone, "message %d, bit %zu", step, bit);
    }
  }
}
END_TEST

START_TEST(a_refusal_is_known_by_what_it_answers) {
  const HelloContext a = {65536, 0, kSecret, HelloRealm::kPort, kCaller};
  const Hello hello = hello_start(a, 5, kNonceA);
  Hello refusal = hello_refuse(hello, 0), proof;
  ck_assert(hello_is_refusal(hello, refusal));
  ck_assert(hello_is_refusal(hello, hello_refuse(hello, 2)));  // says what it has
  ck_assert(hello_prove(a, hello, refusal, proof) == HelloFault::kKind);
  refusal.nonce[0] ^= 1;
  ck_assert(!hello_is_refusal(hello, refusal));
}
END_TEST

// A whole exchange of A and B with these offers, in a job. What stopped it, and both sides' keys.
struct ProtectedExchange {
  HelloFault fault;
  StreamKeys of_a, of_b;
  ProtectedExchange(std::uint8_t offer_a, std::uint8_t offer_b,
                    const std::uint8_t (&nonce)[kNonceBytes] = kNonceA,
                    const std::uint8_t* pair = kCaller, const std::uint8_t* secret = kSecret) {
    const HelloContext a = {3, 8, secret, HelloRealm::kJob, nullptr, offer_a},
                       b = {5, 8, secret, HelloRealm::kJob, nullptr, offer_b};
    Hello challenge, proof, acceptance;
    const Hello hello = hello_start(a, 5, nonce);
    fault = hello_answer(b, hello, kNonceB, challenge);
    if (fault == HelloFault::kNone) fault = hello_prove(a, hello, challenge, proof);
    if (fault == HelloFault::kNone) fault = hello_accept(b, challenge, proof, acceptance);
    if (fault == HelloFault::kNone) fault = hello_done(a, proof, acceptance);
    if (fault != HelloFault::kNone) return;
    hello_stream_keys(a, pair, proof, acceptance, of_a);
    hello_stream_keys(b, pair, challenge, proof, of_b);
    ck_assert(std::memcmp(of_a.send, of_b.receive, sizeof of_a.send) == 0);
    ck_assert(std::memcmp(of_a.receive, of_b.send, sizeof of_a.send) == 0);
    ck_assert(std::memcmp(of_a.receive, of_a.send, sizeof of_a.send) != 0);
    ck_assert_uint_eq(of_a.agreed, of_b.agreed);
  }
};

START_TEST(both_sides_agree_on_the_protection_or_part) {
  for (const unsigned kind_a : {0u, 1u, 2u})
    for (const unsigned kind_b : {0u, 1u, 2u})
      for (const unsigned aes : {0u, 1u, 2u, 3u}) {
        const auto offer = [&](unsigned kind, unsigned has) {
          return static_cast<std::uint8_t>(kind | (kind != 0 && has != 0 ? kProtectionAes : 0u));
        };
        const ProtectedExchange e(offer(kind_a, aes & 1), offer(kind_b, aes & 2));
        if (kind_a != kind_b)
          ck_assert(e.fault == HelloFault::kProtection);
        else
          ck_assert(e.fault == HelloFault::kNone && e.of_a.agreed == offer(kind_a, aes == 3));
      }
  ck_assert(ProtectedExchange(8 | 2, 2).fault == HelloFault::kProtection);  // nobody offers that
}
END_TEST

START_TEST(a_streams_keys_are_its_own) {
  const ProtectedExchange all[] = {{2, 2},
                                   {1, 1},
                                   {6, 6},
                                   {2, 2, kNonceB},
                                   {2, 2, kNonceA, kOther},
                                   {2, 2, kNonceA, kCaller, kOtherSecret}};
  for (const ProtectedExchange& a : all)
    for (const ProtectedExchange& b : all)
      for (const std::uint8_t* key : {b.of_a.send, b.of_a.receive})
        ck_assert((std::memcmp(a.of_a.send, key, sizeof a.of_a.send) == 0) == (key == a.of_a.send));
}
END_TEST

START_TEST(no_byte_of_the_secret_appears_in_a_message) {
  const Exchange e;
  for (int step = 0; step < 4; ++step) {
    std::uint8_t bytes[kHelloBytes];
    std::memcpy(bytes, &message_of(e, step), sizeof bytes);
    ck_assert_ptr_null(memmem(bytes, sizeof bytes, kSecret, 5));
  }
}
END_TEST

#ifdef HAVE_TRAP
START_TEST(handshake_neither_allocates_nor_locks) {
  Hello challenge, proof, acceptance;
  static std::uint8_t content[kRecordBytesMax], record[kRecordBytesMax + kRecordExtraBytes];
  const std::uint8_t offers[] = {protection_offer(Protection::kAuth),
                                 protection_offer(Protection::kOn)};
  g_trap = true;
  const Hello hello = hello_start(kA, 5, kNonceA);
  const bool good = hello_answer(kB, hello, kNonceB, challenge) == HelloFault::kNone &&
                    hello_prove(kA, hello, challenge, proof) == HelloFault::kNone &&
                    hello_accept(kB, challenge, proof, acceptance) == HelloFault::kNone &&
                    hello_done(kA, proof, acceptance) == HelloFault::kNone;
  StreamKeys keys;
  hello_stream_keys(kA, kSecret, proof, acceptance, keys);
  bool opened = true;
  for (const std::uint8_t agreed : {std::uint8_t{1}, std::uint8_t{2}, offers[0], offers[1]}) {
    RecordCipher out, in;
    out.start(agreed, keys.send);
    in.start(agreed, keys.send);
    out.seal(content, sizeof content, record);
    opened = opened && in.open(record, sizeof content, content);
    out.forget();
  }
  g_trap = false;
  ck_assert(good && opened);
}
END_TEST

START_DYING_TEST(the_trap_of_this_test_works, SIGABRT) {
  g_trap = true;
  void* volatile block = malloc(1);
  free(block);
}
END_TEST
#endif

}  // namespace

int main() {
  if (!hello_prepare()) return EXIT_FAILURE;
  return run_tests("handshake");
}
