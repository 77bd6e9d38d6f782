// Protected streams (record.h, protected_net.h), with somebody on the path between the two ends who
// knows no key: what he passes on is changed, cut, put in, repeated, moved or made up. Each end is
// given what the other one has written, up to the first byte that is not in its place, and nothing
// else; then it is told. What he leaves alone arrives.
#include <algorithm>
#include <cerrno>
#include <deque>

#include "alloc_trap.h"
#include "drawn_sockets.h"
#include "fuzz.h"
#include "in_pieces.h"
#include "mplite/net/handshake.h"
#include "sim_ranks.h"

using namespace mplite;
using fuzz::Block;
using fuzz::check;
using fuzz::Choices;

namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr int kSteps = 120;
constexpr std::size_t kLengthMax = 72 * 1024 + 1;  // of a read or write: more than one buffer
constexpr std::size_t kStreamMax = 2u << 20;       // of content, in one direction
constexpr std::size_t kPathMax = 3u << 20;  // of records, likewise: the fake network takes as much
constexpr std::size_t kRemembered = 64;     // records that may be repeated
constexpr std::uint64_t kToken = 9;

enum Step : std::uint8_t {
  kSend,
  kSendRest,
  kCollect,
  kForward,
  kDeliver,
  kAlter,
  kRead,
  kReadHeld,
  kLimits,
  kInterest,
  kLowWater,
  kHangUp,
  kReconnect,
  kStepCount
};

enum Alteration : std::uint8_t {
  kByte,
  kCutOut,
  kPutIn,
  kMadeUp,
  kRepeat,
  kSwap,
  kLeaveOut,
  kTwice,
  kTruncate,
  kOtherHead,
  kAlterationCount
};

std::size_t length(Choices& input) {
  const std::uint8_t which = input.byte();
  if (which < 192) return std::clamp<std::size_t>(input.length(), 1, kLengthMax);
  return kRecordBytesMax * (1 + which % 4) - 1 + input.byte() % 3;
}

// Content: `bytes` of a stream, from `at` on. Each salt has its own.
std::span<const std::uint8_t> content_at(std::uint64_t at, std::size_t bytes, int salt) {
  static constexpr std::size_t kPeriod = 251 * 256;  // of bytes_of()
  static const Bytes all = bytes_of(kPeriod + kStreamMax, 0);
  return {all.data() + (at + static_cast<std::uint64_t>(salt) * 12'345) % kPeriod, bytes};
}

// What a record's head says; 0: it is none. Not by the code under test.
std::uint32_t claimed_by(const std::uint8_t* head) {
  const std::uint32_t bytes = head[0] | std::uint32_t{head[1]} << 8 | std::uint32_t{head[2]} << 16 |
                              std::uint32_t{head[3]} << 24;
  return bytes <= 16 * 1024 ? bytes : 0;
}

// One direction.
struct Way {
  int salt;
  // Content, at the sender: given to write() so far, and reported as written.
  std::uint64_t asked = 0, written = 0;
  // Records on the path: all that the sender's kernel has given, how much of that is whole records
  // (and their content), what has yet to be passed on, and what has been.
  Bytes sent, pending, forwarded;
  std::size_t whole = 0;
  std::uint64_t whole_content = 0;
  bool ended = false;        // nothing more will be forwarded,
  bool may_be_lost = false;  // and what was may be lost with the connection
  // The receiver: up to where `forwarded` is whole records of `sent`, their content, and what it
  // has read of that.
  std::size_t good = 0;
  std::uint64_t good_content = 0, read = 0;
  std::int64_t told = 1;  // the error or end that read() has returned

  void compare();
  bool is_bad() const;
  std::vector<std::pair<std::size_t, std::size_t>> records() const;
};

void Way::compare() {
  while (forwarded.size() - good >= 4 && sent.size() - good >= 4) {
    const std::uint32_t bytes = claimed_by(sent.data() + good);
    const std::size_t record = bytes + kRecordExtraBytes;
    check(bytes != 0);
    if (std::min(forwarded.size(), sent.size()) - good < record ||
        std::memcmp(forwarded.data() + good, sent.data() + good, record) != 0)
      return;
    good += record;
    good_content += bytes;
  }
}

// Behind what is good something has come that looks like a whole record, or like none at all.
bool Way::is_bad() const {
  const std::size_t there = forwarded.size() - good;
  if (there < kRecordHeadBytes) return false;
  const std::uint32_t bytes = claimed_by(forwarded.data() + good);
  return bytes == 0 || there >= bytes + kRecordExtraBytes;
}

// The whole records in `pending`, as the receiver would cut it.
std::vector<std::pair<std::size_t, std::size_t>> Way::records() const {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  if (is_bad()) return found;
  Bytes all(forwarded.begin() + static_cast<std::ptrdiff_t>(good), forwarded.end());
  const std::size_t before = all.size();
  all.insert(all.end(), pending.begin(), pending.end());
  for (std::size_t at = 0; all.size() - at >= kRecordHeadBytes;) {
    const std::uint32_t bytes = claimed_by(all.data() + at);
    const std::size_t end = at + bytes + kRecordExtraBytes;
    if (bytes == 0 || end > all.size()) break;
    if (at >= before) found.emplace_back(at - before, end - before);
    at = end;
  }
  return found;
}

struct End {
  std::unique_ptr<ProtectedNet> net;
  int listener = -1, fd = -1;
  int middle = -1;    // the other end of fd's connection: his
  bool gone = false;  // he has closed it
  unsigned interest = kReadable;
};

struct Run {
  explicit Run(Choices& choices)
      : input(choices), agreed(sim::offer_of(choices.byte())), world(1, 2, SimRanks::no_faults()) {}
  void go();
  void connect();
  void step(Step what);
  void write(int from, std::size_t more);
  void collect(int from, std::size_t most);
  void forward(int from, std::size_t most);
  void alter(Way& way, Alteration how);
  std::int64_t read(int to, std::size_t bytes);
  void read_held(int to);
  void finish(int from);

  Choices& input;
  std::uint8_t agreed;
  sim::FakeWorld world;
  End ends[2];
  Way ways[2] = {};  // from that end to the other one
  int connections = 0;
  std::uint64_t limits[2][2] = {};  // of what one call to the socket reads or writes; 0: none
  std::deque<Bytes> remembered;     // records of all connections, both ways
};

void Run::connect() {
  std::uint8_t keys_of[2][kStreamKeyBytes];
  for (int e = 0; e < 2; ++e) {
    std::memset(keys_of[e], 2 * connections + e, sizeof keys_of[e]);
    ways[e] = {};
    ways[e].salt = 2 * connections + e;
  }
  ++connections;
  for (int e = 0; e < 2; ++e) {
    End& end = ends[e];
    check(end.net->refill());
    end.middle = world.stranger_connect(e);
    end.gone = false;
    end.interest = kReadable;
    sockaddr_storage from;
    while ((end.fd = end.net->accept(end.listener, from)) < 0) world.pass(1'000);
    StreamKeys keys;
    keys.agreed = agreed;
    std::memcpy(keys.send, keys_of[e], sizeof keys.send);
    std::memcpy(keys.receive, keys_of[1 - e], sizeof keys.receive);
    check(end.net->may_protect(end.fd) && end.net->watch(end.fd, kToken, end.interest) == 0);
    end.net->protect(end.fd, kToken, keys);
  }
}

// What was cut short before, and so much more.
void Run::write(int from, std::size_t more) {
  Way& way = ways[from];
  End& end = ends[from];
  if (end.gone) return;
  way.asked = std::max(way.asked, std::min<std::uint64_t>(way.asked + more, kStreamMax));
  const auto bytes = static_cast<std::size_t>(way.asked - way.written);
  if (bytes == 0) return;
  sim::Random random(input.byte());
  const auto next = content_at(way.written, bytes, way.salt);
  const Bytes content(next.begin(), next.end());
  InPieces pieces =
      InPieces::random(bytes, bytes / 3 + 1, [&](std::size_t most) { return random.below(most); });
  pieces.fill(content);
  std::int64_t n;
  {
    alloc_trap::Armed armed;
    n = end.net->write(end.fd, pieces.pieces(), static_cast<int>(pieces.count()));
  }
  check(n == -EAGAIN || (n > 0 && static_cast<std::uint64_t>(n) <= bytes));
  check(pieces.packed() == content);
  if (n > 0) way.written += static_cast<std::uint64_t>(n);
}

// Takes bytes off the sender's side of the path.
void Run::collect(int from, std::size_t most) {
  static std::uint8_t some[kPathMax];
  Way& way = ways[from];
  if (ends[from].gone) return;
  const std::size_t n = world.stranger_read(ends[from].middle, some, std::min(most, sizeof some));
  way.sent.insert(way.sent.end(), some, some + n);
  way.pending.insert(way.pending.end(), some, some + n);
  while (way.sent.size() - way.whole >= kRecordHeadBytes) {
    const std::uint32_t bytes = claimed_by(way.sent.data() + way.whole);
    const std::size_t end = way.whole + bytes + kRecordExtraBytes;
    check(bytes != 0);
    if (end > way.sent.size()) break;
    if (remembered.size() == kRemembered) remembered.pop_front();
    remembered.emplace_back(way.sent.begin() + static_cast<std::ptrdiff_t>(way.whole),
                            way.sent.begin() + static_cast<std::ptrdiff_t>(end));
    way.whole = end;
    way.whole_content += bytes;
  }
}

void Run::forward(int from, std::size_t most) {
  Way& way = ways[from];
  if (way.ended) return;
  const std::size_t n = std::min({most, way.pending.size(), kPathMax - way.forwarded.size()});
  const auto end = way.pending.begin() + static_cast<std::ptrdiff_t>(n);
  world.stranger_write(ends[1 - from].middle, way.pending.data(), n);
  way.forwarded.insert(way.forwarded.end(), way.pending.begin(), end);
  way.pending.erase(way.pending.begin(), end);
  way.compare();
}

void Run::alter(Way& way, Alteration how) {
  Bytes& bytes = way.pending;
  const auto records = way.records();
  const std::size_t which = input.byte();
  const auto [begin, end] =
      records.empty() ? std::pair<std::size_t, std::size_t>{} : records[which % records.size()];
  // Anywhere, or near the beginning of a record.
  const std::uint64_t place = input.byte();
  const std::size_t at = place < 128 ? std::min(bytes.size(), begin + place % 24)
                                     : static_cast<std::size_t>(input.below(bytes.size() + 1));
  const auto where = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto record = bytes.begin() + static_cast<std::ptrdiff_t>(begin),
             behind = bytes.begin() + static_cast<std::ptrdiff_t>(end);
  switch (how) {
    case kByte:
      if (at < bytes.size()) *where ^= input.byte();
      break;
    case kCutOut: {
      const std::size_t count = std::min(bytes.size() - at, 1 + input.length());
      bytes.erase(where, where + static_cast<std::ptrdiff_t>(count));
      break;
    }
    case kPutIn: {
      const auto put_in = input.bytes(input.byte());
      bytes.insert(where, put_in.begin(), put_in.end());
      break;
    }
    case kMadeUp: {
      Bytes made(kRecordExtraBytes + length(input) % (kRecordBytesMax + 1), input.byte());
      const auto claimed = static_cast<std::uint32_t>(
          input.byte() % 4 == 0 ? input.claim() : made.size() - kRecordExtraBytes);
      std::memcpy(made.data(), &claimed, sizeof claimed);
      bytes.insert(record, made.begin(), made.end());
      break;
    }
    case kRepeat:
      if (remembered.empty()) break;
      {
        const Bytes& old = remembered[input.byte() % remembered.size()];
        bytes.insert(record, old.begin(), old.end());
      }
      break;
    case kSwap:
      if (records.size() > which % (records.size() + 1) + 1) {
        const std::size_t i = which % (records.size() + 1);
        std::rotate(bytes.begin() + static_cast<std::ptrdiff_t>(records[i].first),
                    bytes.begin() + static_cast<std::ptrdiff_t>(records[i].second),
                    bytes.begin() + static_cast<std::ptrdiff_t>(records[i + 1].second));
      }
      break;
    case kLeaveOut: bytes.erase(record, behind); break;
    case kTwice: {
      const Bytes again(record, behind);
      bytes.insert(record, again.begin(), again.end());
      break;
    }
    case kTruncate: bytes.resize(at); break;
    case kOtherHead: {
      const auto claimed = static_cast<std::uint32_t>(input.claim());
      if (!records.empty()) std::memcpy(bytes.data() + begin, &claimed, sizeof claimed);
      break;
    }
    default: break;
  }
}

// A read, whose content and result are what they have to be.
std::int64_t Run::read(int to, std::size_t bytes) {
  Way& way = ways[1 - to];
  End& end = ends[to];
  sim::Random random(input.byte());
  InPieces into =
      InPieces::random(bytes, bytes / 3 + 1, [&](std::size_t most) { return random.below(most); });
  std::int64_t n;
  {
    alloc_trap::Armed armed;
    n = end.net->read(end.fd, into.pieces(), static_cast<int>(into.count()));
  }
  check(into.untouched_but(bytes));  // between the pieces
  check(n < 0 || static_cast<std::uint64_t>(n) <= bytes);
  const Bytes found = into.packed();
  const std::size_t got = n > 0 ? static_cast<std::size_t>(n) : 0;
  check(std::memcmp(found.data(), content_at(way.read, got, way.salt).data(), got) == 0);
  // Nothing of what has not proved good. (libsodium clears the place of what it has refused.)
  if (!into.untouched_but(got))
    for (std::size_t i = got; i < bytes; ++i) check(found[i] == InPieces::kGap || found[i] == 0);
  way.read += got;
  check(way.read <= way.good_content);
  if (way.told != 1) {
    check(n == way.told);
  } else if (n == -EAGAIN) {
    // Nothing that it could be told, if the socket has given all.
    check(limits[to][0] != 0 || (way.read == way.good_content && !way.is_bad()));
  } else if (n <= 0) {
    if (n == -EBADMSG)
      check(way.read == way.good_content && way.is_bad());
    else if (n == -ECONNRESET)
      check(way.may_be_lost);
    else
      check(n == 0 && way.ended && way.read == way.good_content && !way.is_bad());
    way.told = n;
  }
  return n;
}

// Of what has been taken from the socket: whether a read gives something without it.
void Run::read_held(int to) {
  End& end = ends[to];
  NetEvent events[4];
  const int held = end.net->held_input(events, 4);
  check(held == 0 || (held == 1 && events[0].token == kToken && events[0].ready == kReadable));
  if (end.interest == 0) return check(held == 0);
  const bool ended = ways[1 - to].ended;  // which the socket tells without a limit
  const std::uint64_t before = limits[to][0];
  limits[to][0] = UINT64_MAX;
  const std::int64_t n = read(to, length(input));
  limits[to][0] = before;
  check(held != 0 ? n != -EAGAIN : n == -EAGAIN || ended);
}

// Without limits all of it arrives, or the receiver is told.
void Run::finish(int from) {
  Way& way = ways[from];
  for (auto& each : limits) each[0] = each[1] = 0;
  for (int tries = 0; way.written < way.asked && !ends[from].gone; ++tries) {
    check(tries < 200);
    write(from, 0);
    collect(from, kPathMax);
  }
  collect(from, kPathMax);
  if (!ends[from].gone) check(way.whole == way.sent.size() && way.whole_content == way.written);
  forward(from, SIZE_MAX);
  std::int64_t n;
  do n = read(1 - from, kLengthMax);
  while (n > 0);
  if (!way.may_be_lost) check((n == -EBADMSG) == way.is_bad());
  // Behind a part of a record the end, or the loss, is told by the next one.
  if (way.ended && n == -EAGAIN) check(read(1 - from, 1) != -EAGAIN);
  if (way.forwarded == way.sent && !way.may_be_lost) check(way.read == way.whole_content);
}

void Run::step(Step what) {
  const std::uint8_t some = input.byte();
  const int e = some & 1;
  End& end = ends[e];
  switch (what) {
    case kSend: write(e, length(input)); break;
    case kSendRest: write(e, 0); break;
    case kCollect: collect(e, (some & 2) != 0 ? kPathMax : length(input)); break;
    case kForward: forward(e, (some & 2) != 0 ? SIZE_MAX : length(input)); break;
    case kDeliver:
      collect(e, kPathMax);
      if (ways[e].written == ways[e].asked && !end.gone)
        check(ways[e].whole == ways[e].sent.size() &&
              ways[e].whole_content == ways[e].written);  // the kernel has all that was reported
      forward(e, SIZE_MAX);
      break;
    case kAlter: alter(ways[e], static_cast<Alteration>(some / 2 % kAlterationCount)); break;
    case kRead: read(e, length(input)); break;
    case kReadHeld: read_held(e); break;
    case kLimits: {
      const std::size_t most = length(input);
      limits[e][some >> 1 & 1] = (some & 4) != 0 ? most : 0;
      break;
    }
    case kInterest:
      end.interest = (some & 2) != 0 ? kReadable : 0;
      check(end.net->rewatch(end.fd, kToken, end.interest) == 0);
      break;
    case kLowWater:
      check(end.net->set_receive_low_water(end.fd, static_cast<int>(length(input))) == 0);
      break;
    case kHangUp:
      if (end.gone) break;
      if ((some & 2) != 0) collect(e, kPathMax);
      world.stranger_close(end.middle);
      end.gone = true;
      ways[1 - e].ended = true;
      ways[1 - e].may_be_lost = (some & 2) == 0;  // a reset, where something was unread
      world.pass(10'000);
      break;
    case kReconnect:
      for (End& each : ends) {
        if (!each.gone) world.stranger_close(each.middle);
        each.net->close(each.fd);
      }
      connect();
      break;
    default: break;
  }
}

void Run::go() {
  for (int e = 0; e < 2; ++e) {
    ends[e].net = std::make_unique<ProtectedNet>(world.net(e));
    check(ends[e].net->start(1'000));
    ends[e].listener = world.make_listener(e);
  }
  world.read_limit = [this](int host, std::uint64_t could) {
    const std::uint64_t most = limits[host][0];
    return most == UINT64_MAX ? 0 : most == 0 ? could : std::min(could, most);
  };
  world.write_limit = [this](int host, std::uint64_t could) {
    const std::uint64_t most = limits[host][1];
    return most == 0 ? could : std::min(could, most);
  };
  connect();
  for (int i = 0; i < kSteps && input.any(); ++i)
    step(static_cast<Step>(input.byte() % kStepCount));
  for (int e = 0; e < 2; ++e) finish(e);
  for (End& end : ends) {
    end.net->close(end.fd);
    check(end.net->held_input(nullptr, 0) == 0);
  }
}

// The cipher alone: records in memory of exactly their size, and what is made of them.
void pure(Choices& input) {
  const std::uint8_t agreed = sim::offer_of(input.byte());
  const std::uint8_t key[kStreamKeyBytes] = {5};
  RecordCipher out, in;
  out.start(agreed, key);
  in.start(agreed, key);
  bool in_step = true;
  for (int i = 0; i < 20 && input.any(); ++i) {
    const auto bytes = static_cast<std::uint32_t>(1 + length(input) % kRecordBytesMax);
    const std::uint8_t how = input.byte();
    Block content(bytes), record(bytes + kRecordExtraBytes);
    std::memcpy(content.data(), content_at(0, bytes, i).data(), bytes);
    std::uint8_t* const body = record.data() + kRecordHeadBytes;
    if ((how & 1) != 0) std::memcpy(body, content.data(), bytes);
    out.seal((how & 1) != 0 ? body : content.data(), bytes, record.data());
    if ((how & 2) != 0 && (how & 0x70) == 0) {  // left out
      in_step = false;
      continue;
    }
    const Bytes sealed(record.data(), record.data() + record.size());
    for (int changes = (how & 2) != 0 ? how >> 4 : 0; changes > 0; --changes)
      record.data()[input.below(record.size())] = input.byte();
    const bool good = in_step && std::memcmp(record.data(), sealed.data(), sealed.size()) == 0;
    const std::uint32_t found = RecordCipher::content_bytes(record.data());
    check(found == claimed_by(record.data()));
    if (found == 0 || found > bytes) {  // nothing to open
      check(!good);
      in_step = false;
      continue;
    }
    Block into(found);
    std::uint8_t* const to = (how & 4) != 0 ? body : into.data();
    check(in.open(record.data(), found, to) == good);
    if (good) check(found == bytes && std::memcmp(to, content.data(), bytes) == 0);
  }
}

void run(Choices& input) {
  static const bool prepared = hello_prepare();
  check(prepared);
  if (input.byte() < 16)
    pure(input);
  else
    std::make_unique<Run>(input)->go();
}

}  // namespace

std::vector<fuzz::Seed> fuzz_seeds() {
  std::vector<fuzz::Seed> seeds;
  for (std::uint8_t offer = 0; offer < 4; ++offer) {
    seeds.push_back(
        {0, offer, 0, 100, 0, 0, 50, 1, 193, 1, 4, 0, 20, 0x12, 3, 1, 0, 30, 2, 0, 9, 0});
    // Both ways, whole and in parts, with limits; then an end.
    seeds.push_back(
        {16,        offer,     kSend, 0,         195,   1,         7,   kSend,      1,
         0,         100,       8,     kDeliver,  0,     kDeliver,  1,   kRead,      1,
         0,         9,         3,     kReadHeld, 1,     0,         50,  4,          kInterest,
         1,         kReadHeld, 1,     kInterest, 3,     kLimits,   4,   0,          31,
         kLimits,   6,         0,     100,       kSend, 0,         193, 1,          9,
         kSendRest, 0,         4,     kCollect,  2,     kForward,  0,   0,          25,
         kRead,     1,         193,   1,         8,     kLowWater, 1,   195,        0,
         kHangUp,   3,         kRead, 1,         193,   1,         8,   kReconnect, 0});
    // A reset behind the first byte of a record.
    seeds.push_back({16, offer, kSend,    0, 0, 60, 3,        kSend, 1,       0,
                     60, 3,     kCollect, 0, 0, 1,  kForward, 2,     kHangUp, 1});
    for (std::uint8_t how = 0; how < kAlterationCount; ++how)
      for (const std::uint8_t place : {0, 6, 200}) {
        fuzz::Seed s = {16, offer};
        for (int i = 0; i < 3; ++i) s.insert(s.end(), {kSend, 0, 0, 60, 3});
        s.insert(s.end(), {kDeliver, 0,        kSend,
                           0,        0,        40,
                           5,        kSend,    0,
                           0,        40,       5,
                           kSend,    0,        193,
                           1,        5,        kCollect,
                           2,        kAlter,   static_cast<std::uint8_t>(2 * how),
                           1,        place,    30,
                           20,       1,        2,
                           3,        4,        kForward,
                           2,        kRead,    1,
                           194,      1,        5,
                           kRead,    1,        194,
                           1,        5,        kSend,
                           1,        0,        70,
                           2,        kDeliver, 1});
        seeds.push_back(s);
      }
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  alloc_trap::install();
  Choices input(data, size);
  run(input);
  return 0;
}
