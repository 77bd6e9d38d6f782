// The device's control packets, and the channel messages and transfers that they announce, from a
// peer that keeps to no protocol: packets of every type with identifiers that it has really been
// given, and with others. The victim sends, receives, probes, puts and gets meanwhile. Set-up
// decides whether the peer is a rank of the job or a process of another one.
#include <algorithm>
#include <cerrno>
#include <deque>

#include "ch_lite/ch_lite.h"
#include "ch_lite/core/packet.h"
#include "ch_lite/device/device.h"
#include "fake_channel.h"
#include "fuzz.h"

using namespace ch_lite;
using Buffer = fuzz::Block;
using fuzz::check;
using fuzz::Choices;

namespace {

constexpr int kSteps = 120;
constexpr int kHostile = 1;
constexpr std::size_t kRegionBytes = 5'000;

enum Step : std::uint8_t {
  kForge,
  kRaw,
  kChannel,
  kTransfer,
  kProgress,
  kHandler,
  kSend,
  kReceive,
  kProbe,
  kReceiveDetached,
  kCancel,
  kActiveMessage,
  kPutOrGet,
  kExpose,
  kTake,
  kAnswer,
  kHabits,
  kStepCount
};

struct Operation {
  lite_request* request;
  std::unique_ptr<Buffer> memory;
  bool any_source;
};

// The host's view of the communicators, where the peer is of another job.
int is_member(int, std::uint32_t context, std::int32_t source) {
  return context == 3                               ? LITE_NO_COMMUNICATOR
         : context == 2                             ? LITE_NOT_A_MEMBER
         : source == 1 || source == LITE_ANY_SOURCE ? LITE_MEMBER
                                                    : LITE_NOT_A_MEMBER;
}
int judge_active(int, std::uint32_t handler, const void*, std::size_t, std::uint64_t) {
  return handler == 3 ? LITE_NO_COMMUNICATOR : handler == 2 ? LITE_NOT_A_MEMBER : LITE_MEMBER;
}
void deliver_active(int peer, std::uint32_t, const void* header, std::size_t header_bytes,
                    const void* data, std::size_t data_bytes, void*) {
  check(peer == kHostile || peer == 0);
  static volatile std::uint8_t sum;  // all of it is readable
  for (std::size_t i = 0; i < header_bytes; ++i)
    sum = sum + static_cast<const std::uint8_t*>(header)[i];
  for (std::size_t i = 0; i < data_bytes; i += 64)
    sum = sum + static_cast<const std::uint8_t*>(data)[i];
  if (data_bytes > 0) sum = sum + static_cast<const std::uint8_t*>(data)[data_bytes - 1];
}

struct Run {
  explicit Run(Choices& choices) : input(choices), setup(input.byte()), world(2, 7) {}
  void go();
  void step(Step what);
  std::vector<std::uint8_t> forged();
  void answer();
  void hear();
  std::uint64_t some_id();
  lite_envelope envelope(bool wild);
  void keep(int result, lite_request* request, std::unique_ptr<Buffer> memory,
            bool any_source = false);
  void take();
  void send(std::vector<std::uint8_t> packet) {
    world.forge(kHostile, 0, packet.data(), packet.size());
  }
  void push(fake::Kind kind, std::uint64_t id, std::size_t bytes) {
    world.wire[{kHostile, 0}].push_back({kind, id, std::vector<std::uint8_t>(bytes, 0x5a)});
  }
  bool lost() const { return world.ranks[0]->error.count(kHostile) != 0; }
  bool foreign() const { return (setup & 1) != 0; }

  Choices& input;
  std::uint8_t setup;
  std::vector<std::uint8_t> region = std::vector<std::uint8_t>(kRegionBytes);
  std::deque<Operation> operations;
  std::vector<lite_message*> detached;
  fake::World world;
  std::vector<std::uint64_t> ids = {0};         // told by the victim
  std::deque<std::vector<std::uint8_t>> heard;  // its packets, not yet answered
  std::deque<std::uint64_t> keys;               // of its memory
};

// What the victim has sent: identifiers, and questions to be answered.
void Run::hear() {
  auto& wire = world.wire[{0, kHostile}];
  while (!wire.empty()) {
    fake::Frame frame = std::move(wire.front());
    wire.pop_front();
    if (frame.kind != fake::Kind::kControl) continue;
    Packet p;
    check(decode(frame.data, p));  // the victim keeps to the format
    for (const std::uint64_t id : {p.sender, p.transfer})
      if (id != 0) ids.push_back(id);
    if (heard.size() < 64) heard.push_back(std::move(frame.data));
  }
}

std::uint64_t Run::some_id() {
  const std::uint8_t which = input.byte();
  const std::uint64_t id = ids[ids.size() - 1 - which % std::min<std::size_t>(ids.size(), 16)];
  switch (which / 16) {
    case 0: return id + (std::uint64_t{2} << 32);
    case 1: return id + 1;
    case 2: return input.number<std::uint64_t>();
    case 3: return input.byte();
    default: return id;
  }
}

lite_envelope Run::envelope(bool wild) {
  const std::uint8_t b = input.byte();
  lite_envelope e = {static_cast<std::uint32_t>(b % 4), 1, b / 4 % 4};
  if (wild && (b & 64) != 0) e.source = LITE_ANY_SOURCE;
  if (wild && (b & 128) != 0) e.tag = LITE_ANY_TAG;
  return e;
}

template <typename T>
std::vector<std::uint8_t> raw(const T& packet, std::size_t behind = 0) {
  std::vector<std::uint8_t> bytes(sizeof packet + behind, 0x5a);
  std::memcpy(bytes.data(), &packet, sizeof packet);
  return bytes;
}

// A packet that decodes, most of the time.
std::vector<std::uint8_t> Run::forged() {
  const auto type = static_cast<PacketType>(1 + input.byte() % 16);
  const std::uint8_t bits = input.byte();
  PacketHeader header = {type, 0, 0, 0, 0};
  if ((bits & 7) == 7) header.flags = input.byte();
  if ((bits & 8) != 0) header.flags |= kPacketLate;
  if ((bits & 0x70) == 0x70) header.credit = static_cast<std::uint32_t>(input.claim());
  if ((bits & 0x70) == 0x30) header.am_credit = static_cast<std::uint32_t>(input.claim());
  const bool untrue = bits >= 128;
  switch (type) {
    case PacketType::kShort:
    case PacketType::kEager:
    case PacketType::kRts: {
      const lite_envelope e = envelope(untrue);
      if ((bits & 1) != 0 && type != PacketType::kRts) header.flags |= kPacketSync;
      const std::size_t bytes = std::min<std::size_t>(
          input.length(), type == PacketType::kShort ? kShortBytesMax : SIZE_MAX);
      const std::uint64_t told = untrue ? input.claim() : bytes;
      const MessagePacket m = {
          header, e.context, e.source,
          e.tag,  told,      type == PacketType::kRts || (bits & 3) != 0 ? 1 + input.byte() : 0u};
      if (type != PacketType::kRts) return raw(m, type == PacketType::kShort ? bytes : 0);
      return raw(RtsPacket{m, (bits & 2) != 0 ? input.claim() : 0});
    }
    case PacketType::kCts:
      return raw(CtsPacket{header, (bits & 3) == 3 ? 1u : 0, some_id(),
                           (bits & 4) != 0 ? 0 : std::uint64_t{1} + input.byte(), input.claim()});
    case PacketType::kSyncAck: return raw(AckPacket{header, 0, some_id()});
    case PacketType::kPutAck: return raw(AckPacket{header, 0, untrue ? input.claim() : 1});
    case PacketType::kCredit: return raw(header);
    case PacketType::kAmShort:
    case PacketType::kAmEager:
    case PacketType::kAmRts: {
      const auto header_bytes =
          static_cast<std::uint32_t>(input.length() % (LITE_AM_HEADER_MAX + 1));
      const std::size_t data =
          std::min<std::size_t>(input.length(), kPacketDataMax - padded_header(header_bytes));
      const bool in_packet = type == PacketType::kAmShort;
      // Not so much that the test's memory is at an end.
      const std::uint64_t told =
          in_packet || !untrue ? data : std::min<std::uint64_t>(input.claim(), 8 << 20);
      return raw(AmPacket{header, static_cast<std::uint32_t>(bits % 5), header_bytes, 0, told,
                          std::uint64_t{1} + input.byte()},
                 header_bytes + (in_packet ? data : 0));
    }
    case PacketType::kPut:
    case PacketType::kPutRequest:
    case PacketType::kGet:
    case PacketType::kGetTransfer: {
      const std::uint64_t key = keys.empty() || bits % 8 == 6 ? input.number<std::uint64_t>()
                                                              : keys[input.byte() % keys.size()];
      const bool put = type == PacketType::kPut;
      const std::size_t data = std::min<std::size_t>(input.length(), kAccessShortMax);
      const std::uint64_t offset = untrue ? input.claim() : input.byte();
      return raw(AccessPacket{header, 0, key, offset, put || !untrue ? data : input.claim(),
                              put ? 0 : std::uint64_t{1} + input.byte()},
                 put ? data : 0);
    }
    default: return raw(AckPacket{header, 0, some_id()}, input.length() % kAccessShortMax);
  }
}

// The next question of the victim's, as a correct peer would answer it, or nearly so.
void Run::answer() {
  if (heard.empty()) return;
  const std::vector<std::uint8_t> bytes = std::move(heard.front());
  heard.pop_front();
  Packet p;
  check(decode(bytes, p));
  const std::uint8_t how = input.byte();
  const std::uint64_t wrong = how >= 240 ? 1 : 0;
  const PacketHeader header = {PacketType::kSyncAck, 0, 0, 0, 0};
  switch (p.type) {
    case PacketType::kShort:
    case PacketType::kEager:
      if (p.sync) send(raw(AckPacket{header, 0, p.sender}));
      break;
    case PacketType::kRts:
    case PacketType::kAmRts:
    case PacketType::kPutRequest: {
      CtsPacket cts = {header, how % 16 == 15 ? 1u : 0, p.sender, 9, p.bytes + wrong};
      cts.header.type = PacketType::kCts;
      if (how % 8 == 7) cts.accepted = p.fragment, cts.transfer = 0;
      send(raw(cts));
      if (p.type == PacketType::kPutRequest) send(raw(AckPacket{header, 0, p.sender}));
      break;
    }
    case PacketType::kCts:
      if (p.transfer != 0 && world.ranks[0]->ops.count(p.transfer) != 0)
        push(fake::Kind::kTransfer, p.transfer, std::min<std::uint64_t>(p.bytes + wrong, 400'000));
      break;
    case PacketType::kPut: {
      AckPacket ack = {header, 0, 1 + wrong};
      ack.header.type = PacketType::kPutAck;
      send(raw(ack));
      break;
    }
    case PacketType::kGet: {
      AckPacket data = {header, 0, p.sender};
      data.header.type = PacketType::kGetData;
      send(raw(data, p.bytes + wrong));
      break;
    }
    case PacketType::kGetTransfer:
      if (world.ranks[0]->ops.count(p.transfer) != 0)
        push(fake::Kind::kTransfer, p.transfer, p.bytes + wrong);
      break;
    default: break;
  }
}

void Run::keep(int result, lite_request* request, std::unique_ptr<Buffer> memory, bool any_source) {
  if (result == LITE_PENDING) operations.push_back({request, std::move(memory), any_source});
}

void Run::take() {
  while (lite_request* r = lite_next_completion()) {
    const auto at = std::find_if(operations.begin(), operations.end(),
                                 [r](const Operation& o) { return o.request == r; });
    check(at != operations.end());
    lite_status status;
    lite_request_status(r, &status);
    check(status.error != LITE_OK || lite_request_is_send(r) || status.bytes <= at->memory->size());
    lite_request_free(r);
    operations.erase(at);
  }
}

void Run::step(Step what) {
  const std::uint8_t some = input.byte();
  lite_request* r = nullptr;
  lite_status status;
  switch (what) {
    case kForge: send(forged()); break;
    case kRaw: {
      const auto bytes = input.bytes(some);
      if (!bytes.empty()) send({bytes.begin(), bytes.end()});
      break;
    }
    case kChannel: push(fake::Kind::kChannel, 0, input.length()); break;
    case kTransfer: {
      // The engine has looked at the id, as the fake channel does not.
      const std::uint64_t id = some_id();
      const auto at = world.ranks[0]->ops.find(id);
      if (at != world.ranks[0]->ops.end() && at->second.kind == fake::Kind::kTransfer &&
          at->second.receive)
        push(fake::Kind::kTransfer, id, input.length());
      break;
    }
    case kProgress:
      for (int i = 0; i <= some % 3; ++i) check(lite_progress() >= LITE_ERR_CANCELLED);
      break;
    case kHandler: world.handler(0); break;
    case kSend: {
      auto memory = std::make_unique<Buffer>(input.length());
      const lite_envelope e = envelope(false);
      keep(lite_isend(memory->data(), memory->size(), kHostile, &e,
                      some % 4 == 0 ? LITE_SEND_SYNC : 0, nullptr, &r),
           r, std::move(memory));
      break;
    }
    case kReceive: {
      auto memory = std::make_unique<Buffer>(input.length());
      const lite_envelope e = envelope(true);
      const bool any = e.source == LITE_ANY_SOURCE;
      keep(
          lite_irecv(memory->data(), memory->size(), any ? -1 : kHostile, &e, nullptr, &status, &r),
          r, std::move(memory), any);
      break;
    }
    case kProbe: {
      const lite_envelope e = envelope(true);
      const int peer = e.source == LITE_ANY_SOURCE ? -1 : kHostile;
      lite_message* message = nullptr;
      if (some % 2 == 0)
        lite_iprobe(peer, &e, &status);
      else if (lite_improbe(peer, &e, &status, &message) == 1)
        detached.push_back(message);
      break;
    }
    case kReceiveDetached: {
      if (detached.empty()) break;
      auto memory = std::make_unique<Buffer>(input.length());
      lite_message* message = detached.back();
      detached.pop_back();
      keep(lite_imrecv(message, memory->data(), memory->size(), nullptr, &status, &r), r,
           std::move(memory));
      break;
    }
    case kCancel:
      if (!operations.empty()) {
        const auto at = operations.begin() + some % static_cast<std::ptrdiff_t>(operations.size());
        if (!lite_request_is_send(at->request) && at->any_source &&
            lite_cancel_recv(at->request) == 1)
          operations.erase(at);
      }
      break;
    case kActiveMessage: {
      auto memory = std::make_unique<Buffer>(input.length());
      keep(
          lite_am_isend(kHostile, some, memory->data(), std::min<std::size_t>(some, memory->size()),
                        memory->data(), memory->size(), nullptr, &r),
          r, std::move(memory));
      break;
    }
    case kPutOrGet: {
      auto memory = std::make_unique<Buffer>(1 + input.length());
      const int result =
          some % 2 == 0
              ? lite_put(kHostile, 77, some, memory->data(), memory->size(), 0, nullptr, &r)
              : lite_get(kHostile, 77, some, memory->data(), memory->size(), 0, nullptr, &r);
      keep(result, r, std::move(memory));
      break;
    }
    case kExpose:
      if (keys.size() < 4 && some % 4 != 0) {
        std::uint64_t key = 0;
        const int peer = kHostile;
        if (lite_expose_to(region.data(), region.size() - some, &peer, 1, &key) == LITE_OK)
          keys.push_back(key);
      } else if (!keys.empty()) {
        check(lite_withdraw(keys[some % keys.size()]) == LITE_OK);
        keys.erase(keys.begin() + some % static_cast<std::ptrdiff_t>(keys.size()));
      }
      break;
    case kTake: take(); break;
    case kAnswer: answer(); break;
    case kHabits:
      world.lazy = (some & 1) != 0;
      world.hold_bulk = (some & 2) != 0;
      world.ranks[0]->headroom = (some & 4) == 0;
      break;
    default: break;
  }
  hear();
}

void Run::go() {
  DeviceOptions options;
  options.short_max = (setup & 2) != 0 ? 0 : 1024;
  options.eager_max = (setup & 4) != 0 ? 0 : 64 * 1024;
  options.credits_bytes = (setup & 8) != 0 ? 64 * 1024 : 1 << 20;
  options.unexpected_max_bytes = (setup & 16) != 0 ? 100'000 : 64 << 20;
  world.make_device(0, options, foreign() ? 1 : 0);
  if (foreign()) {
    fake::Rank& rank = *world.ranks[0];
    check(rank.introduce(rank.introduce_arg, kHostile, 1 << 20) == 1);
    lite_set_member_callback(is_member);
    lite_am_set_check(judge_active);
  }
  lite_am_set_callback(deliver_active, nullptr);
  for (int i = 0; i < kSteps && input.any() && !lost(); ++i)
    step(static_cast<Step>(input.byte() % kStepCount));
  world.lazy = world.hold_bulk = false;
  world.ranks[0]->headroom = true;
  for (int i = 0; i < 3; ++i) lite_progress();
  world.lose(0, kHostile, ECONNRESET);
  for (const std::uint64_t key : keys) check(lite_withdraw(key) == LITE_OK);
  for (lite_message* message : detached) {
    auto memory = std::make_unique<Buffer>(100);
    lite_request* r = nullptr;
    lite_status status;
    keep(lite_imrecv(message, memory->data(), memory->size(), nullptr, &status, &r), r,
         std::move(memory));
  }
  for (int i = 0; i < 3; ++i) lite_progress();
  take();
  for (auto at = operations.begin(); at != operations.end();) {
    check(at->any_source && lite_cancel_recv(at->request) == 1);  // of the peer's, nothing is left
    at = operations.erase(at);
  }
}

// decode() alone: what it takes lies within the packet.
void decode_only(std::span<const std::uint8_t> bytes) {
  Buffer exact(bytes.size());
  std::copy(bytes.begin(), bytes.end(), exact.data());
  Packet p;
  if (!decode({exact.data(), exact.size()}, p) || p.payload == nullptr) return;
  const auto at = static_cast<std::size_t>(p.payload - exact.data());
  check(at <= exact.size());
  if (p.type == PacketType::kShort || p.type == PacketType::kPut || p.type == PacketType::kGetData)
    check(p.bytes == exact.size() - at);
  if (p.type == PacketType::kAmShort) check(p.header_bytes + p.bytes == exact.size() - at);
}

}  // namespace

std::vector<fuzz::Seed> fuzz_seeds() {
  std::vector<fuzz::Seed> seeds;
  for (std::uint8_t setup = 2; setup < 34; setup = static_cast<std::uint8_t>(setup + 2))
    for (const std::uint8_t progress : {kProgress, kHandler}) {
      const auto where = static_cast<std::uint8_t>(setup | 0x40 | (progress == kHandler ? 1 : 0));
      // The victim's own operations, answered; then one message of each kind for a receive, and for
      // none.
      fuzz::Seed s = {where};
      for (const std::uint8_t length : {20, 161, 170, 175})
        s.insert(s.end(), {kSend, length, length, 5, 1});
      s.insert(s.end(),
               {kPutOrGet, 2,   50, kPutOrGet,      1, 50,  kPutOrGet,      2, 172, 1, kPutOrGet,
                1,         172, 1,  kActiveMessage, 9, 100, kActiveMessage, 9, 175, 1, kExpose,
                1});
      for (int i = 0; i < 12; ++i) s.insert(s.end(), {kAnswer, 0, 0, progress, 0});
      s.insert(s.end(), {kTake, 0});
      for (std::uint8_t type = 0; type < 16; ++type) {
        s.insert(s.end(),
                 {kReceive, 0, 100, 5,        kForge, 0,       type, 0, 5,        50, 9,     9, 9,
                  kChannel, 0, 50,  progress, 0,      kAnswer, 0,    0, progress, 0,  kTake, 0});
      }
      seeds.push_back(s);
      if (seeds.size() % 4 == 0) {
        fuzz::Seed unexpected = {where,    kForge,
                                 0,        1,
                                 0,        5,
                                 50,       9,
                                 kForge,   0,
                                 2,        2,
                                 5,        170,
                                 1,        9,
                                 40,       progress,
                                 0,        kProbe,
                                 1,        5,
                                 kChannel, 0,
                                 50,       kReceiveDetached,
                                 0,        100,
                                 progress, 0};
        seeds.push_back(unexpected);
      }
    }
  for (std::uint8_t type = 1; type < 17; ++type) {
    fuzz::Seed s = {0, type};
    s.resize(62);
    seeds.push_back(s);
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Choices input(data, size);
  if (size > 0 && data[0] < 2) {
    input.byte();
    decode_only(input.rest());
  } else {
    std::make_unique<Run>(input)->go();
  }
  return 0;
}
