// The handshake: callers and callees that know the job's secret, a port's key, both or nothing, say
// true messages, changed ones, parts of them, in any order. Who knows nothing never becomes a peer.
#include <algorithm>

#include "alloc_trap.h"
#include "fuzz.h"
#include "mplite/net/process_name.h"
#include "sim_ranks.h"

using namespace mplite;
using fuzz::check;

namespace {

constexpr std::uint32_t kPort = 3;
constexpr std::uint8_t kPortKey[kKeyBytes] = {4, 4, 4};
constexpr std::uint8_t kJobSecret[32] = {}, kWrongSecret[32] = {1};

KeyPair keys(std::uint8_t number) {
  std::uint8_t random[kKeyBytes] = {number};
  check(hello_prepare());
  return make_key_pair(random);
}

// Of the victim, and of the process of another job that speaks to it; the arithmetic is done once.
struct Secrets {
  KeyPair own = keys(9), theirs = keys(5);
  std::uint8_t pair[kKeyBytes], port[kKeyBytes];
  Secrets() {
    check(pair_key(own, theirs.open, pair));
    port_secret(kPortKey, pair, port);
  }
};
const Secrets& secrets() {
  static const Secrets s;
  return s;
}

struct Caller {
  int fd;
  bool ours;  // we called
  HelloRealm realm;
  Hello said = {}, heard = {};
  int messages = 0;
};

enum Step : std::uint8_t {
  kCall,
  kAnswer,
  kNext,
  kChanged,
  kPart,
  kRaw,
  kClose,
  kPoll,
  kHandler,
  kTime,
  kLocal,
  kSpeak,
  kStepCount
};

struct Run {
  explicit Run(fuzz::Choices& choices)
      : input(choices),
        setup(input.byte()),
        ranks(
            3, SimRanks::no_faults(), [](EngineOptions& o) { o.keys = secrets().own; }, 1, 0b110) {}
  Engine& engine() { return ranks.engine(0); }
  bool knows() const { return (setup & 1) != 0; }
  void poll() {
    ranks.as(0);
    Hold hold(engine().gate());
    check(engine().refill());
    engine().poll_all();
    ranks.world.skip(10'000);
  }
  void handler();
  HelloContext context(const Caller& c) const;
  bool next(Caller& c, Hello& message);
  void local(std::uint8_t what);
  void step(Step what);
  void go();

  fuzz::Choices& input;
  std::uint8_t setup;
  SimRanks ranks;
  int listener = -1;
  std::vector<Caller> callers;
};

void Run::handler() {
  ranks.as(0);
  alloc_trap::Armed armed;
  check(engine().gate().try_enter());
  engine().set_mode(engine().handler_mode());
  engine().poll();
  engine().set_mode({});
  engine().gate().leave();
}

HelloContext Run::context(const Caller& c) const {
  const bool job = c.realm == HelloRealm::kJob;
  const std::uint8_t* secret = !knows()                       ? kWrongSecret
                               : job                          ? kJobSecret
                               : c.realm == HelloRealm::kPort ? secrets().port
                                                              : secrets().pair;
  return {job ? 1 : 1 << 20, 3, secret, c.realm,
          job      ? nullptr
          : c.ours ? secrets().theirs.open
                   : secrets().own.open};
}

// What comes next by the book. False: nothing, or what was heard does not allow it.
bool Run::next(Caller& c, Hello& message) {
  const std::uint8_t nonce[kNonceBytes] = {7, c.said.nonce[0]};
  Hello heard;
  if (ranks.world.stranger_read(c.fd, &heard, sizeof heard) == sizeof heard) c.heard = heard;
  const int number = c.messages++;
  if (c.ours && number == 0) {
    message = hello_start(context(c), c.realm == HelloRealm::kPort ? kPort : 0, nonce);
    return true;
  }
  if (c.ours)
    return number == 1 && hello_prove(context(c), c.said, c.heard, message) == HelloFault::kNone;
  if (number == 0) return hello_answer(context(c), c.heard, nonce, message) == HelloFault::kNone;
  return number == 1 && hello_accept(context(c), c.said, c.heard, message) == HelloFault::kNone;
}

void Run::local(std::uint8_t what) {
  ranks.as(0);
  Hold hold(engine().gate());
  const ProcessName name =
      make_process_name(sim::FakeWorld::address(1), secrets().theirs.open, 1 << 20);
  std::uint8_t key[kKeyBytes];
  std::memcpy(key, kPortKey, sizeof key);
  const iovec word = {key, 5};
  switch (what % 8) {
    case 0: engine().send_control(1, &word, 1); break;
    case 1: engine().ports().open(kPort, key); break;
    case 2: engine().ports().close(kPort); break;
    case 3: engine().connect(name); break;
    case 4: engine().connect_by_port({name, kPort, {4, 4, 4}}); break;
    case 5:
      for (int peer = 3; peer < engine().peers(); ++peer) engine().send_control(peer, &word, 1);
      break;
    case 6:
      for (int peer = 3; peer < engine().peers(); ++peer) engine().disconnect(peer);
      break;
    default: engine().say_goodbye(); break;
  }
}

void Run::step(Step what) {
  const std::uint8_t some = input.byte();
  Caller* c = callers.empty() ? nullptr : &callers[some % callers.size()];
  switch (what) {
    case kCall:
      for (int i = 0; i < (some >= 250 ? 70 : 1) && callers.size() < 200; ++i)
        callers.push_back(
            {ranks.world.stranger_connect(0), true, static_cast<HelloRealm>(some % 3)});
      break;
    case kAnswer: {
      sockaddr_storage from;
      const int fd = ranks.world.net(1).accept(listener, from);
      if (fd >= 0) callers.push_back({fd, false, static_cast<HelloRealm>(some % 3)});
      break;
    }
    case kNext:
    case kChanged:
    case kPart: {
      Hello message = {};
      if (c == nullptr || (!next(*c, message) && what == kNext)) break;
      auto* bytes = reinterpret_cast<std::uint8_t*>(&message);
      std::size_t length = sizeof message;
      if (what == kChanged) bytes[input.byte() % sizeof message] ^= input.byte();
      if (what == kPart) length = input.byte() % 130;  // or more: what is said again behind it
      c->said = message;
      std::uint8_t twice[2 * sizeof message + 2] = {};
      std::memcpy(twice, bytes, sizeof message);
      std::memcpy(twice + sizeof message, bytes, sizeof message);
      ranks.world.stranger_write(c->fd, twice, length);
      break;
    }
    case kRaw: {
      const auto bytes = input.bytes(some % 140);
      if (!callers.empty())
        ranks.world.stranger_write(callers.back().fd, bytes.data(), bytes.size());
      break;
    }
    case kClose:
      if (c != nullptr) ranks.world.stranger_close(c->fd);
      break;
    case kPoll:
      for (int i = 0; i <= some % 4; ++i) poll();
      break;
    case kHandler: handler(); break;
    case kTime: ranks.world.pass(some < 250 ? some * 1'000'000 : 11'000'000'000); break;
    case kLocal: local(some); break;
    case kSpeak: {
      if (c == nullptr) break;
      const FrameHeader goodbye = {kFrameMagic, 0, kWireVersion, FrameKind::kGoodbye, 0, some % 3u,
                                   0,           0},
                        control = {kFrameMagic, 0, kWireVersion, FrameKind::kControl, 5, 0, 0, 5};
      ranks.world.stranger_write(c->fd, some >= 128 ? &goodbye : &control, sizeof goodbye);
      if (some < 128) ranks.world.stranger_write(c->fd, "hello", 5);
      break;
    }
    default: break;
  }
}

void Run::go() {
  listener = ranks.world.make_listener(1);
  engine().set_signal_driven(1, 29);
  for (int i = 0; i < 100 && input.any(); ++i) {
    step(static_cast<Step>(input.byte() % kStepCount));
    ranks.world.skip(1'000);
    std::uint8_t packet[100];
    int from = -1;
    Hold hold(engine().gate());
    while (engine().control_ready()) {
      check(knows());
      engine().take_control(packet, sizeof packet, from);
      check(from > 0 && from < engine().peers());
    }
  }
  for (int i = 0; i < 3; ++i) poll();
  if (!knows()) check(engine().counters().connections == 0);
}

// Each of the four checks, with a message that is not the one it should be.
void pure(fuzz::Choices& input) {
  const auto realm = static_cast<HelloRealm>(input.byte() % 3);
  const bool job = realm == HelloRealm::kJob;
  const std::uint8_t* initiator = job ? nullptr : secrets().theirs.open;
  const std::uint8_t a_nonce[kNonceBytes] = {1}, b_nonce[kNonceBytes] = {2};
  const HelloContext a = {1, 3, kJobSecret, realm, initiator},
                     b = {0, 3, kJobSecret, realm, initiator};
  const Hello hello = hello_start(a, 0, a_nonce);
  Hello challenge, proof, acceptance, out;
  check(hello_answer(b, hello, b_nonce, challenge) == HelloFault::kNone &&
        hello_prove(a, hello, challenge, proof) == HelloFault::kNone);
  check(hello_accept(b, challenge, proof, acceptance) == HelloFault::kNone &&
        hello_done(a, proof, acceptance) == HelloFault::kNone);
  const int which = input.byte() % 4;
  const Hello good = which == 0 ? hello : which == 1 ? challenge : which == 2 ? proof : acceptance;
  Hello said = good;
  auto* bytes = reinterpret_cast<std::uint8_t*>(&said);
  while (input.any()) {
    const std::size_t at = input.byte() % sizeof said;
    bytes[at] = input.byte();
  }
  const bool changed = std::memcmp(&said, &good, sizeof said) != 0;
  hello_is_foreign(said);
  hello_is_refusal(said, hello_refuse(said, 0));
  HelloFault fault = HelloFault::kNone;
  switch (which) {
    case 0: fault = hello_answer(b, said, b_nonce, out); break;
    case 1: fault = hello_prove(a, hello, said, out); break;
    case 2: fault = hello_accept(b, challenge, said, out); break;
    default: fault = hello_done(a, proof, said); break;
  }
  fuzz::check_sentence(hello_fault_text(fault), 100);
  // The first message proves nothing, and its nonce, and between jobs its key, may be any.
  if (which > 0) check((fault == HelloFault::kNone) == !changed);
}

}  // namespace

std::vector<fuzz::Seed> fuzz_seeds() {
  std::vector<fuzz::Seed> seeds;
  for (std::uint8_t knows = 0; knows < 2; ++knows)
    for (std::uint8_t realm = 0; realm < 3; ++realm)
      for (const std::uint8_t poll : {kPoll, kHandler}) {
        const auto setup = static_cast<std::uint8_t>(2 + knows);
        seeds.push_back({setup, kLocal, 1,   kLocal, 3, kCall,  realm, kNext, 0, poll,   3, kPoll,
                         1,     kNext,  0,   poll,   3, kPoll,  1,     kNext, 0, kSpeak, 0, poll,
                         1,     kSpeak, 128, poll,   1, kLocal, 5,     poll,  0});
        seeds.push_back(
            {setup,  kLocal,  static_cast<std::uint8_t>(realm == 0 ? 0 : realm == 1 ? 4 : 3),
             kLocal, 5,       kPoll,
             3,      kAnswer, realm,
             kNext,  0,       poll,
             3,      kNext,   0,
             poll,   3,       kSpeak,
             0,      poll,    1,
             kLocal, 6,       poll,
             1});
        seeds.push_back({setup, kCall,    realm, kPart, 0, 30,   poll, 1,     kRaw, 3,    1, 2,
                         3,     kChanged, 0,     9,     1, poll, 1,    kTime, 255,  poll, 0});
      }
  for (std::uint8_t which = 0; which < 4; ++which) seeds.push_back({0, which, which, 40, 1, 8, 1});
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  alloc_trap::install();
  fuzz::Choices input(data, size);
  if (size > 0 && data[0] < 2) {
    input.byte();
    pure(input);
  } else {
    std::make_unique<Run>(input)->go();
  }
  return 0;
}
