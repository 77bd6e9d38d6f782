// The engine's receive path, with a hostile rank behind a proved handshake: frames with true and
// untrue headers, cut anywhere, between whatever the layer above does (channel messages and
// transfers, or MP_* messages). With LITE_ENCRYPT they come in records. They come on the first
// connection and on lanes, whose frames it acknowledges truly or not; with LITE_RESUME on,
// connections break and are made again, at a place in the stream that it makes up or not. A second
// peer is honest: its messages must arrive whole whatever the first one sends.
#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>

#include "alloc_trap.h"
#include "ch_lite/channel/channel.h"
#include "fuzz.h"
#include "hostile_rank.h"
#include "mplite/messages/messages.h"
#include "mplite/net/lane_word.h"
#include "sim_ranks.h"

using namespace mplite;
using fuzz::Block;
using fuzz::check;
using fuzz::Choices;

namespace {

constexpr int kVictim = 0, kHostile = 1, kHonest = 2;
constexpr std::size_t kWriteMax = 300'000;
constexpr int kSteps = 120;

enum Step : std::uint8_t {
  kFrame,
  kContinue,
  kMutated,
  kRawBytes,
  kPoll,
  kHandler,
  kReceive,
  kTransfer,
  kCancel,
  kMove,
  kPackets,
  kSend,
  kRead,
  kTime,
  kHonestSends,
  kReconnect,
  kTest,
  kOpenLane,
  kUseLane,
  kLaneWord,
  kBreak,
  kResume,
  kAnswer,
  kSendTransfer,
  kStepCount
};

struct Receive {
  MPID_ChannelId id;
  Block memory;
  int peer;
  bool transfer, started;
};

struct Run {
  explicit Run(Choices& choices)
      : input(choices),
        setup(input.byte()),
        more(input.byte()),
        protection((setup & 128) != 0 ? sim::offer_of(input.byte()) : std::uint8_t{0}),
        ranks(
            3, faults(), [this](EngineOptions& o) { change(o); }, 1, 1u << kHostile),
        hostile(ranks.world, kHostile, 3, secret, protection) {}
  // With narrow pipes long data waits for the network, and goes over lanes.
  sim::Faults faults() const {
    sim::Faults f = SimRanks::no_faults();
    if ((more & 64) != 0) f.pipe_min = f.pipe_max = 10'000;
    return f;
  }
  void change(EngineOptions& o) {
    o.protection = protection;
    o.resume = resumes();
    if (o.resume) o.connect_timeout_ns = 30'000'000'000;
    if (o.rank != kVictim) return;
    static constexpr int kLanes[] = {1, 2, kLanesMax, 0};
    o.lanes = kLanes[more % 4];
    if ((more & 8) != 0) o.long_bytes = 200;
    if ((more & 32) != 0) o.frame_bytes = 300;
    o.frame_tries = setup & 1;
    o.detach_after = (setup & 2) != 0 ? 2 : 0;
    o.handler_budget_bytes = (setup & 4) != 0 ? 1'000 : 8u << 20;
  }

  bool resumes() const { return (more & 4) != 0; }
  bool listens() const { return resumes() || (more & 16) != 0; }
  void go();
  void step(Step what);
  void step_connections(Step what, std::size_t some);
  void resume(std::size_t some);
  StreamPosition some_position();
  static std::uint8_t* nowhere() {
    static std::uint8_t bytes[kWriteMax + 1];
    return bytes;
  }
  void poll() {
    ranks.as(kVictim);
    Hold hold(engine().gate());
    check(engine().refill());
    engine().poll_all();
    if (messages) messages->service();
  }
  void handler();
  void take_packets(bool in_handler);
  void write_frame(FrameHeader header, std::size_t payload);
  FrameHeader begin_message();
  std::uint64_t some_id();
  void receive(int peer, std::size_t bytes);
  void test(std::size_t index);
  void exchange_with_honest();
  Engine& engine() { return ranks.engine(kVictim); }

  static constexpr std::uint8_t secret[32] = {};  // as SimRanks has it
  Choices& input;
  std::uint8_t setup, more, protection;
  std::unique_ptr<Messages> messages;  // dies after the engines
  SimRanks ranks;
  fuzz::HostileRank hostile;
  std::deque<Receive> receives;
  std::deque<std::pair<MPID_ChannelId, Block>> sends;
  std::deque<std::pair<MessageRequest*, Block>> requests;
  std::deque<Block> still_read;
  std::uint64_t ids[4] = {};  // of the last transfers
  int ids_count = 0;
  FrameHeader open = {};  // the message of which more may come
  int lane = 0;           // on which the hostile one writes at present
  std::uint64_t turns = 0;
};

// A frame's header, then so much of its payload.
void Run::write_frame(FrameHeader header, std::size_t payload) {
  static const std::vector<std::uint8_t> bytes(kWriteMax + kPayloadAlignment, 0x5a);
  hostile.write(&header, sizeof header, lane);
  hostile.write(bytes.data(), std::min(payload + header.pad, bytes.size()), lane);
}

std::uint64_t Run::some_id() {
  const std::uint8_t which = input.byte();
  const std::uint64_t id = ids[which % 4];
  switch (which / 4 % 8) {
    case 0: return MPID_TransferShortName(id);
    case 1: return id + (std::uint64_t{2} << 32);  // the next operation with this index
    case 2: return id + 1;                         // the next index
    case 3: return input.number<std::uint64_t>();
    case 4: return input.byte() % 4;  // tags
    default: return id;
  }
}

// A message that is in order, and its first frame.
FrameHeader Run::begin_message() {
  static constexpr FrameKind kKinds[] = {FrameKind::kControl, FrameKind::kChannel,
                                         FrameKind::kTransfer, FrameKind::kMessage,
                                         FrameKind::kGoodbye};
  const std::uint8_t kind = input.byte();
  FrameHeader h = {kFrameMagic, 0, kWireVersion, kKinds[kind % 5], 0, 0, 0, 0};
  if (lane != 0 && kind < 240) h.kind = FrameKind::kTransfer;  // others are the end of the peer
  const std::size_t total = input.length();
  h.total = total;
  h.length = static_cast<std::uint32_t>(total);
  if (h.kind == FrameKind::kGoodbye) {
    h.total = h.length = 0;
    h.id = input.byte() % 3;
  }
  if (h.kind == FrameKind::kTransfer || h.kind == FrameKind::kMessage) h.id = some_id();
  if (h.kind != FrameKind::kControl && input.flip()) {
    h.pad = input.byte() % kPayloadAlignment;
    if (total > 1)
      h.length =
          static_cast<std::uint32_t>(1 + input.below(total));  // the rest in frames of its own
  }
  return h;
}

void Run::take_packets(bool in_handler) {
  std::uint8_t packet[MPID_CONTROL_BYTES_MAX];
  for (int i = 0; i < 64; ++i) {
    int from = -1, length = 0, more = 0;
    const void* at = packet;
    if (!in_handler && input.flip()) {
      engine().set_repolls(input.byte() % 4);
      length = MPID_NextControl(&at, packet, &from, &more);
      if (length == 0) return;
    } else {
      if (MPID_ControlMsgAvail() == 0) return;
      length = input.flip() ? MPID_ViewAnyControl(&at, packet, &from)
                            : MPID_RecvAnyControl(packet, sizeof packet, &from);
    }
    check(length > 0 && length <= MPID_CONTROL_BYTES_MAX && (from == kHostile || from == kHonest));
    static volatile std::uint8_t sum;
    for (int b = 0; b < length; ++b)
      sum = sum + static_cast<const std::uint8_t*>(at)[b];  // all of it is readable
  }
}

// As the controller's handler does.
void Run::handler() {
  ranks.as(kVictim);
  alloc_trap::Armed armed;
  check(engine().gate().try_enter());
  engine().set_mode(engine().handler_mode());
  if (messages)
    engine().poll();
  else
    take_packets(true);
  engine().set_mode({});
  engine().gate().leave();
}

void Run::receive(int peer, std::size_t bytes) {
  Receive r = {0, Block(bytes), peer, false, true};
  if (MPID_IRecvFromChannel(r.memory.data(), bytes, peer, &r.id) == 0)
    receives.push_back(std::move(r));
}

void Run::test(std::size_t index) {
  Receive& r = receives[index];
  if (!r.started) return;
  const int rc = MPID_RecvStatus(r.id);
  check(rc == 0 || r.peer != kHonest);  // which has sent nothing for it
  if (rc == 0) return;
  if (rc > 0) check(MPID_WRecvFromChannel(r.id) >= 0);
  receives.erase(receives.begin() + static_cast<std::ptrdiff_t>(index));
}

// What an honest peer sends arrives, whatever stands open with the other.
void Run::exchange_with_honest() {
  static constexpr std::size_t kBytes = 5'000;
  if (messages) return;
  const auto data = bytes_of(kBytes, 3);
  Block into(kBytes);
  MPID_ChannelId id = 0, sent = 0;
  ranks.as(kVictim);
  check(MPID_IRecvFromChannel(into.data(), kBytes, kHonest, &id) == 0);
  ranks.as(kHonest);
  check(MPID_ISendChannel(data.data(), kBytes, kVictim, &sent) == 0);
  int status = 0;
  for (int tries = 0; tries < 400 && status == 0; ++tries) {
    ranks.turn();
    ranks.as(kVictim);
    take_packets(false);
    status = MPID_RecvStatus(id);
  }
  check(status == 1 && MPID_WRecvFromChannel(id) == kBytes &&
        std::memcmp(into.data(), data.data(), kBytes) == 0);
  ranks.as(kHonest);
  if (sent != 0) check(MPID_TSendChannel(sent) == 1);
  ranks.as(kVictim);
}

void Run::step(Step what) {
  ranks.as(kVictim);
  const std::size_t some = input.byte();
  switch (what) {
    case kFrame: {
      open = begin_message();
      const std::size_t sent =
          input.byte() % 4 == 0 ? input.length() : open.length;  // perhaps not all of it, or more
      write_frame(open, sent);
      break;
    }
    case kContinue: {
      open.offset += open.length;
      const std::uint64_t left = open.total > open.offset ? open.total - open.offset : 0;
      open.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, 1 + input.length()));
      write_frame(open, open.length);
      break;
    }
    case kMutated: {
      FrameHeader h = begin_message();
      switch (some % 8) {
        case 0: h.magic = input.byte(); break;
        case 1: h.pad = input.byte(); break;
        case 2: h.version = input.byte(); break;
        case 3: h.kind = static_cast<FrameKind>(input.byte()); break;
        case 4: h.length = static_cast<std::uint32_t>(input.claim()); break;
        case 5: h.id = input.claim(); break;
        case 6: h.offset = input.claim(); break;
        default: h.total = input.claim(); break;
      }
      if (some >= 128) h.total = std::max<std::uint64_t>(h.total, h.length);
      open = h;
      write_frame(h, input.length());
      break;
    }
    case kRawBytes: {
      const auto bytes = input.bytes(some);
      if (some % 2 == 0)
        hostile.write(bytes.data(), bytes.size(), lane);
      else
        hostile.write_unsealed(bytes.data(), bytes.size(), lane);
      break;
    }
    case kPoll:
      for (std::size_t i = 0; i <= some % 4; ++i) poll();
      break;
    case kHandler: handler(); break;
    case kReceive:
      if (messages) {
        MessageRequest* r = nullptr;
        Block memory(input.length());
        Hold hold(engine().gate());
        if (messages->receive(memory.data(), memory.size(), some % 3 == 0 ? kAnySource : kHostile,
                              some % 5 == 0 ? kAnyTag : input.byte() % 4, r) == 0)
          requests.emplace_back(r, std::move(memory));
      } else {
        receive(kHostile, input.length());
      }
      break;
    case kTransfer: {
      if (messages) break;
      Receive r = {0, Block(input.length()),
                   some % 8 == 0   ? MPID_ANY_PARTNER
                   : some % 4 == 1 ? kHonest
                                   : kHostile,
                   true, some >= 32};
      if (MPID_CreateRecvTransfer(r.memory.data(), r.memory.size(), r.peer, &r.id) != 0) break;
      ids[ids_count++ % 4] = r.id;
      MPID_ChannelId rid = 0;
      if (r.started)
        check(MPID_StartNBRecvTransferRest(r.memory.data(), nullptr,
                                           some % 16 == 0 ? r.memory.size() / 2 : 0,
                                           r.memory.size(), r.peer, r.id, &rid) == 0);
      receives.push_back(std::move(r));
      break;
    }
    case kCancel:
      if (messages && !requests.empty()) {
        const auto at = requests.begin() + static_cast<std::ptrdiff_t>(some % requests.size());
        Hold hold(engine().gate());
        // Of a send the data is still read.
        if (at->first->is_send) still_read.push_back(std::move(at->second));
        messages->release(at->first);
        requests.erase(at);
      } else if (!receives.empty() && receives[some % receives.size()].transfer) {
        const auto at = receives.begin() + static_cast<std::ptrdiff_t>(some % receives.size());
        MPID_CancelRecvTransfer(at->id, at->id);
        receives.erase(at);
      }
      break;
    case kMove:
      if (!receives.empty()) {
        Receive& r = receives[some % receives.size()];
        Block to(input.length());
        if (!r.transfer && MPID_MoveRecvFromChannel(r.id, to.data(), nullptr, to.size()) == 0)
          r.memory = std::move(to);
      }
      break;
    case kPackets: {
      if (messages) break;
      Hold hold(engine().gate());
      take_packets(false);
      break;
    }
    case kSend: {
      Block data(input.length());
      if (messages) {
        MessageRequest* r = nullptr;
        Hold hold(engine().gate());
        if (messages->send(data.data(), data.size(), kHostile, some % 4, r) == 0)
          requests.emplace_back(r, std::move(data));
      } else if (some % 2 == 0 && data.size() > 0 && data.size() <= MPID_CONTROL_BYTES_MAX) {
        MPID_SendControl(data.data(), static_cast<int>(data.size()), kHostile);
      } else {
        MPID_ChannelId id = 0;
        if (MPID_ISendChannel(data.data(), data.size(), kHostile, &id) == 0 && id != 0)
          sends.emplace_back(id, std::move(data));
      }
      break;
    }
    case kRead: {
      hostile.read(nowhere(), input.length(), lane);
      break;
    }
    case kTime:
      ranks.world.pass(some < 250 ? static_cast<std::int64_t>(some) * 1'000 : 11'000'000'000);
      break;
    case kHonestSends:
      ranks.as(kHonest);
      if (!messages && some > 0)
        MPID_SendControl(ids, static_cast<int>(1 + some % sizeof ids), kVictim);
      ranks.turn();
      break;
    case kReconnect:
      if (some % 4 == 0) {
        hostile.close();
        hostile.connect(kVictim, [this] { poll(); });
      }
      break;
    case kTest:
      if (!receives.empty()) test(some % receives.size());
      break;
    default: step_connections(what, some);
  }
}

// What the hostile one says of the streams between the two. The truth, as far as it is known; or
// near it; or anything.
StreamPosition Run::some_position() {
  StreamPosition p = {hostile.received(), hostile.heard_position().connections};
  const std::uint8_t how = input.byte();
  switch (how % 8) {
    case 0: p.received -= std::min<std::uint64_t>(p.received, input.byte()); break;
    case 1: p.received += input.byte(); break;
    case 2: p.received = StreamPosition::kNone; break;
    case 3: p.received = input.claim(); break;
    default: break;
  }
  switch (how / 8 % 8) {
    case 0: p.connections = input.claim(); break;
    case 1: p.connections = 0; break;
    case 2: ++p.connections; break;
    default: break;
  }
  return p;
}

// What can be read counts as received: without that the stream has a gap.
void Run::resume(std::size_t some) {
  if (some % 16 < 12) hostile.read(nowhere(), kWriteMax);
  if (hostile.is_up(0) && some % 4 == 0) hostile.close();
  if (!hostile.connect(
          kVictim, [this] { poll(); }, 0, some_position()))
    return;
  if (some % 8 != 7) hostile.say_again(hostile.heard_position().received);
}

void Run::step_connections(Step what, std::size_t some) {
  switch (what) {
    case kOpenLane:  // or one of a number that there is not
      hostile.connect(
          kVictim, [this] { poll(); }, static_cast<int>(1 + some % 17));
      break;
    case kUseLane: {
      const int wanted = static_cast<int>(some % kLanesMax);
      lane = hostile.is_up(wanted) ? wanted : 0;
      break;
    }
    case kLaneWord: {
      const LaneWord word = {static_cast<int>(some % 32), some >= 128,
                             input.flip() ? input.byte() % 8u : input.claim() >> 8};
      const FrameHeader h = {
          kFrameMagic, 0, kWireVersion, FrameKind::kLane, 0, encode_lane_word(word), 0, 0};
      hostile.write(&h, sizeof h);
      break;
    }
    case kBreak: {
      const int which = static_cast<int>(some % kLanesMax);
      if (!hostile.is_up(which)) break;
      const int fd = hostile.fd(which);
      switch (some / kLanesMax % 4) {
        case 0: ranks.world.reset(fd); break;
        case 1: ranks.world.reset_one_end(ranks.world.far_end(fd)); break;
        case 2: ranks.world.end_both(fd); break;
        default: hostile.close(which);
      }
      break;
    }
    case kResume:
      if (resumes()) resume(some);
      break;
    case kAnswer: {
      if (some % 16 < 12) hostile.read(nowhere(), kWriteMax);
      const StreamPosition position = resumes() ? some_position() : StreamPosition{0, 1};
      if (hostile.answer([this] { poll(); }, position) == 0 && some % 8 != 7)
        hostile.say_again(hostile.heard_position().received);
      break;
    }
    case kSendTransfer: {
      Block data(input.length());
      MPID_ChannelId id = 0;
      if (!messages &&
          MPID_StartNBSendTransfer(data.data(), data.size(), kHostile, some % 8 + 1, &id) == 0 &&
          id != 0)
        sends.emplace_back(id, std::move(data));
      break;
    }
    default: break;
  }
}

void Run::go() {
  if ((setup & 8) != 0) {
    messages = std::make_unique<Messages>(engine(), 100'000);
    check(messages->start());
  }
  engine().set_signal_driven(1, 29);
  if ((setup & 16) != 0) engine().set_signals(false);
  if ((setup & 0x60) != 0) {
    const std::uint64_t most = (setup & 0x60) == 0x60 ? 1 : (setup & 0x40) != 0 ? 31 : 700;
    ranks.world.read_limit = [most](int host, std::uint64_t could) {
      return host == kVictim ? std::min(could, most) : could;
    };
  }
  if (listens()) hostile.listen();
  ranks.connect(kHonest, kVictim);
  ranks.as(kVictim);
  check(hostile.connect(kVictim, [this] { poll(); }));
  for (int i = 0; i < kSteps && input.any(); ++i) {
    step(static_cast<Step>(input.byte() % kStepCount));
    ranks.world.skip(1'000);
  }
  ranks.world.read_limit = nullptr;
  for (int i = 0; i < 4; ++i) poll();
  if (!messages) {
    Hold hold(engine().gate());
    take_packets(false);
  }
  exchange_with_honest();
  // A lost peer completes all that stands open with it.
  {
    Hold hold(engine().gate());
    engine().give_up(kHostile, ECONNRESET);
  }
  for (std::size_t i = receives.size(); i-- > 0;) {
    Receive& r = receives[i];
    if (r.peer == kHonest) test(i);
    if (r.peer != kHostile || !r.started) continue;
    const std::size_t before = receives.size();
    test(i);
    check(receives.size() == before - 1);
  }
  for (auto& [id, memory] : sends) check(MPID_TSendChannel(id) != 0);
  for (auto& [request, memory] : requests) {
    Hold hold(engine().gate());
    messages->release(request);
  }
}

// A transfer in pieces over lanes 0 to 2, one of which breaks, with polls or in the handler. Then
// one of the victim's own: a lane with frames of it breaks, others are acknowledged.
void add_lanes(std::vector<fuzz::Seed>& seeds) {
  for (const std::uint8_t lanes : {0, 1, 2, 3})
    for (const std::uint8_t poll : {kPoll, kHandler}) {
      fuzz::Seed s = {0, static_cast<std::uint8_t>(lanes | 8 | 16 | 32 | 64)};
      s.insert(s.end(), {kOpenLane, 0, kOpenLane, 1, kTransfer, 40, 150, kUseLane, 1});
      s.insert(s.end(), {kFrame, 0, 2, 150, 20, 1, 0, 40, 1, poll, 1});
      for (const std::uint8_t lane : {2, 0, 1})
        s.insert(s.end(), {kUseLane, lane, kContinue, 0, 30, poll, 1});
      s.insert(s.end(), {kTest, 0, kBreak, 2, poll, 1, kLaneWord, 130, 1, 0, poll, 1});
      s.insert(s.end(), {kSendTransfer, 2, 175, 1, poll, 3, kAnswer, 8, poll, 3, kRead, 0, 175, 1});
      s.insert(s.end(), {kLaneWord, 1, 1, 1, kLaneWord, 1, 1, 2, poll, 1, kBreak, 1, poll, 1});
      s.insert(s.end(),
               {kLaneWord, 129, 1, 2, poll, 3, kOpenLane, 1, kLaneWord, 3, 1, 1, kTest, 0});
      seeds.push_back(s);
    }
}

// The connection breaks in the middle of a message; the hostile one calls, or is called. It goes on
// at the right place, and then somewhere else.
void add_resumed(std::vector<fuzz::Seed>& seeds) {
  const fuzz::Seed begun[] = {{kFrame, 0, 0, 150, 0, 60},
                              {kFrame, 0, 1, 150, 1, 0, 40, 1},
                              {kFrame, 0, 2, 150, 20, 1, 0, 40, 1}};
  for (const fuzz::Seed& message : begun)
    for (const std::uint8_t how : {0, 16, 32, 48}) {
      fuzz::Seed s = {0, static_cast<std::uint8_t>(4 | 2 | 8)};
      s.insert(s.end(), {kReceive, 1, 150, kTransfer, 40, 150, kSend, 2, 100, kSend, 1, 175, 1});
      s.insert(s.end(), {kRead, 0, 100});
      s.insert(s.end(), message.begin(), message.end());
      s.insert(s.end(), {kPoll, 1, kBreak, how, kTime, 9, kPoll, 1});
      s.insert(s.end(), {how < 32 ? std::uint8_t{kResume} : std::uint8_t{kAnswer}, 1, 31});
      s.insert(s.end(), {kPoll, 1, kContinue, 0, 150, kPoll, 1, kPackets, 0, kTest, 0});
      s.insert(s.end(), {kBreak, 0, kPoll, 1, kResume, 1, 24, 10, kPoll, 1});
      seeds.push_back(s);
    }
}

}  // namespace

std::vector<fuzz::Seed> fuzz_seeds() {
  std::vector<fuzz::Seed> seeds;
  // One per kind: receives stand ready, the message comes in one frame or in several, with polls or
  // in the handler.
  for (std::uint8_t kind = 0; kind < 5; ++kind)
    for (std::uint8_t poll : {kPoll, kHandler}) {
      fuzz::Seed s = {static_cast<std::uint8_t>(kind == 3 ? 8 : 0), 0};
      for (int i = 0; i < 3; ++i) s.insert(s.end(), {kReceive, 1, 100, kTransfer, 40, 150});
      s.insert(s.end(),
               {kFrame, 0,         kind, 100, 20,   0, 1,        poll, 3,         kFrame, 0,  kind,
                150,    20,        1,    0,   40,   1, poll,     0,    kContinue, 0,      20, poll,
                0,      kContinue, 0,    150, poll, 0, kPackets, 0,    kTest,     0});
      s.insert(s.end(), {kMutated, 6, kind, 100, 20, 0, 200, 40, poll, 0,
                         kMutated, 4, kind, 100, 20, 0, 130, 40, poll, 0});
      seeds.push_back(s);
    }
  // Much and long, not all of it wanted, cancelled and moved in the middle.
  seeds.push_back({4,     0,   kReceive,  1,     170, kFrame,  0, 1,     175,       1,  0,
                   4,     165, 0,         kPoll, 0,   kMove,   0, 180,   kContinue, 0,  170,
                   kPoll, 0,   kTransfer, 40,    175, kFrame,  0, 2,     175,       20, 0,
                   4,     170, 0,         kPoll, 1,   kCancel, 0, kPoll, 0});
  // A transfer with an id that comes to life while the frame is on its way.
  seeds.push_back({0, 0,  kTransfer, 42, 100,       kCancel, 0,   kFrame,    0,  2, 100, 4, 0,
                   1, 50, kPoll,     0,  kTransfer, 41,      100, kRawBytes, 50, 1, 2,   3, 4});
  add_lanes(seeds);
  add_resumed(seeds);
  // The same in records.
  for (std::size_t i = 0, plain = seeds.size(); i < plain; ++i) {
    fuzz::Seed s = seeds[i];
    s[0] |= 128;
    s.insert(s.begin() + 2, static_cast<std::uint8_t>(i));
    seeds.push_back(s);
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool prepared = hello_prepare();
  check(prepared);
  alloc_trap::install();
  Choices input(data, size);
  std::make_unique<Run>(input)->go();
  return 0;
}
