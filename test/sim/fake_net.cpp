// The simulated network. One thread, one clock: a call takes a little time, bytes arrive later, and
// what is due happens when the clock passes it.
#include "fake_net.h"

#include <netinet/in.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "alloc_trap.h"
#include "mplite/net/frame.h"

namespace sim {
namespace {

constexpr int kFirstPort = 20'000;

std::size_t total(const iovec* iov, int iovs) {
  std::size_t sum = 0;
  for (int i = 0; i < iovs; ++i) sum += iov[i].iov_len;
  return sum;
}

}  // namespace

FakeWorld::FakeWorld(std::uint64_t seed, int hosts, const Faults& faults)
    : random_(seed), faults_(faults), calm_(faults) {
  calm_.reset = calm_.refuse = calm_.unanswered = calm_.no_descriptor = calm_.corrupt = 0;
  const auto count = static_cast<std::size_t>(hosts);
  signal_.resize(count);
  call_signal_.resize(count);
  dead_.resize(count);
  by_host_.resize(count);
  ever_.resize(count);
  for (int i = 0; i < hosts; ++i) nets_.push_back(std::make_unique<FakeNet>(*this, i));
}

FakeWorld::~FakeWorld() = default;

sockaddr_storage FakeWorld::address(int host, int network) {
  sockaddr_storage storage = {};
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(0x0a000001u + (static_cast<std::uint32_t>(network) << 16) +
                             static_cast<std::uint32_t>(host));
  in.sin_port = htons(static_cast<std::uint16_t>(kFirstPort + host));
  std::memcpy(&storage, &in, sizeof in);
  return storage;
}

int FakeWorld::add(Socket socket) {
  sockets_.push_back(std::move(socket));
  const int index = static_cast<int>(sockets_.size()) - 1;
  if (sockets_.back().host < 0) return index;
  const auto host = static_cast<std::size_t>(sockets_.back().host);
  sockets_.back().ordinal = ever_[host]++;
  by_host_[host].push_back(index);
  return index;
}

int FakeWorld::make_listener(int host, int network) {
  Socket s;
  s.host = host;
  s.kind = Kind::kListener;
  s.network = network;
  return listeners_[{host, network}] = add(std::move(s));
}

FakeWorld::Socket* FakeWorld::own(int host, int fd, const char* call) {
  if (fd < 0 || fd >= static_cast<int>(sockets_.size()) ||
      sockets_[static_cast<std::size_t>(fd)].host != host ||
      sockets_[static_cast<std::size_t>(fd)].kind == Kind::kClosed) {
    if (misuse) misuse(call);
    return nullptr;
  }
  return &sockets_[static_cast<std::size_t>(fd)];
}

// What arrives later does not count: the socket was reset, or takes nothing any more.
std::int64_t FakeWorld::last_arrival(const Socket& s) const {
  std::int64_t last = now_;
  if (s.reset_due >= 0) last = std::min(last, s.reset_due);
  if (s.deaf_since >= 0) last = std::min(last, s.deaf_since);
  return last;
}

// Of which there may be more, if they are enough.
std::uint64_t FakeWorld::readable_bytes(const Socket& s, std::uint64_t enough) const {
  std::uint64_t sum = 0;
  const std::int64_t last = last_arrival(s);
  for (const Chunk& c : s.in) {
    if (c.due > last || sum >= enough) break;
    sum += c.bytes.size() - c.used;
  }
  return sum;
}

std::uint64_t FakeWorld::room_towards(const Socket& s) const {
  const Socket& far = sockets_[static_cast<std::size_t>(s.other)];
  return far.capacity > far.in_bytes ? far.capacity - far.in_bytes : 0;
}

// As epoll and O_ASYNC see it: with a low-water mark less than that is silence, and a full send
// buffer is writable again when a third is free.
// Only of what is wanted, unless the socket has failed.
unsigned FakeWorld::ready(const Socket& s, unsigned wanted) const {
  using mplite::kReadable;
  using mplite::kWritable;
  switch (s.kind) {
    case Kind::kListener:
      return !s.backlog.empty() && s.backlog.front().first <= now_ ? kReadable : 0;
    case Kind::kConnecting:
      return s.connect_due >= 0 && s.connect_due <= now_ ? kReadable | kWritable : 0;
    case Kind::kStream: {
      if (s.reset_due >= 0 && s.reset_due <= now_) return kReadable | kWritable;
      unsigned bits = 0;
      const auto mark = static_cast<std::uint64_t>(s.low_water);
      if ((wanted & kReadable) != 0 &&
          (readable_bytes(s, mark) >= mark || (s.fin_due >= 0 && s.fin_due <= now_)))
        bits |= kReadable;
      if ((wanted & kWritable) == 0) return bits;
      const Socket& far = sockets_[static_cast<std::size_t>(s.other)];
      if (far.kind == Kind::kClosed || (room_towards(s) > 0 && room_towards(s) >= far.capacity / 3))
        bits |= kWritable;
      return bits;
    }
    default: return 0;
  }
}

unsigned FakeWorld::event(const Socket& s) const {
  if (!s.watched || s.kind == Kind::kClosed) return 0;
  const bool failed =
      s.reset_due >= 0 && s.reset_due <= now_;  // errors are told whatever the interest
  return failed ? ready(s) : ready(s, s.interest) & s.interest;
}

bool FakeWorld::has_event(int host) const {
  const auto& own = by_host_[static_cast<std::size_t>(host)];
  return std::any_of(own.begin(), own.end(), [this](int index) {
    return event(sockets_[static_cast<std::size_t>(index)]) != 0;
  });
}

void FakeWorld::due_at(std::int64_t when, int index) { due_.push({when, index}); }

// What was kept from the engine is news again a moment later, as if it had only happened then.
void FakeWorld::tell_again(int index) {
  Socket& s = sockets_[static_cast<std::size_t>(index)];
  if (s.kind == Kind::kClosed) return;
  if ((s.interest & mplite::kWritable) != 0) s.no_space = true;
  due_at(now_ + 1000, index);
}

void FakeWorld::raise(int index) {
  const Socket& s = sockets_[static_cast<std::size_t>(index)];
  if (s.host >= 0 && s.signal_driven && s.kind != Kind::kClosed)
    signals_of(s.signo)[static_cast<std::size_t>(s.host)] = true;
}

void FakeWorld::pass(std::int64_t ns) {
  now_ += ns;
  while (!due_.empty() && due_.top().first <= now_) {
    const int index = due_.top().second;
    due_.pop();
    Socket& s = sockets_[static_cast<std::size_t>(index)];
    const unsigned bits = ready(s);
    if ((bits & mplite::kReadable) != 0 || (s.no_space && (bits & mplite::kWritable) != 0)) {
      if ((bits & mplite::kWritable) != 0) s.no_space = false;
      raise(index);
    }
  }
}

void FakeWorld::skip(std::int64_t most_ns) {
  std::int64_t step = most_ns;
  if (!due_.empty()) step = std::min(step, std::max<std::int64_t>(due_.top().first - now_, 0));
  pass(step + 1);
}

bool FakeWorld::take_signal(int host, int signo) {
  auto pending = signals_of(signo).begin() + host;
  const bool was = *pending;
  *pending = false;
  return was;
}

void FakeWorld::reset_pair(int index) {
  Socket& s = sockets_[static_cast<std::size_t>(index)];
  if (s.kind != Kind::kStream) return;
  for (const int each : {index, s.other}) {
    Socket& end = sockets_[static_cast<std::size_t>(each)];
    if (end.kind != Kind::kStream || end.reset_due >= 0) continue;
    end.reset_due = now_ + static_cast<std::int64_t>(
                               random_.below(static_cast<std::uint64_t>(faults_.delay_max_ns) + 1));
    due_at(end.reset_due, each);
  }
}

void FakeWorld::maybe_break(int index) {
  const Socket& s = sockets_[static_cast<std::size_t>(index)];
  if (s.host >= 0 && s.far_host >= 0 && random_.chance(faults_.reset) && random_.below(16) == 0)
    reset_pair(index);
}

void FakeWorld::set_road(int host, int network, int error) { roads_[{host, network}] = error; }
void FakeWorld::slow_down(int host, int network, std::int64_t ns) {
  slow_roads_[{host, network}] = ns;
}

void FakeWorld::kill(int host) {
  dead_[static_cast<std::size_t>(host)] = true;
  const std::vector<int> open = by_host_[static_cast<std::size_t>(host)];
  for (const int index : open) {
    Socket& s = sockets_[static_cast<std::size_t>(index)];
    reset_pair(index);
    for (const auto& [due, waiting] : s.backlog) reset_pair(waiting);
    if (s.kind != Kind::kClosed) close_socket(index);
  }
}

void FakeWorld::cut(int a, int b) {
  for (const int index : by_host_[static_cast<std::size_t>(a)])
    if (sockets_[static_cast<std::size_t>(index)].far_host == b) reset_pair(index);
}

void FakeWorld::mute(int a, int b) {
  for (const int index : by_host_[static_cast<std::size_t>(a)]) {
    Socket& s = sockets_[static_cast<std::size_t>(index)];
    if (s.far_host != b || s.kind != Kind::kStream) continue;
    mute_socket(index);
  }
}

void FakeWorld::mute_socket(int fd) {
  Socket& s = sockets_[static_cast<std::size_t>(fd)];
  for (Socket* end : {&s, &sockets_[static_cast<std::size_t>(s.other)]}) {
    end->muted = true;
    end->muted_since = now_;
  }
}

void FakeWorld::reset_one_end(int fd) {
  sockets_[static_cast<std::size_t>(fd)].reset_due = now_;
  due_at(now_, fd);
}

void FakeWorld::end_both(int fd) {
  for (const int each : {fd, sockets_[static_cast<std::size_t>(fd)].other}) {
    Socket& end = sockets_[static_cast<std::size_t>(each)];
    if (end.kind != Kind::kStream) continue;
    end.closed_on_the_way = true;
    end.fin_due = std::max(end.last_due, now_);
    due_at(end.fin_due, each);
  }
}

void FakeWorld::hold_back(int fd) {
  for (Chunk& c : sockets_[static_cast<std::size_t>(fd)].in) c.due = INT64_MAX / 2;
}

void FakeWorld::let_come(int fd) {
  for (Chunk& c : sockets_[static_cast<std::size_t>(fd)].in) c.due = now_;
  due_at(now_, fd);
}

std::vector<int> FakeWorld::connected(int host, int other) const {
  std::vector<int> all;
  for (const int index : by_host_[static_cast<std::size_t>(host)]) {
    const Socket& s = sockets_[static_cast<std::size_t>(index)];
    if (s.far_host == other && s.kind == Kind::kStream) all.push_back(index);
  }
  return all;
}

bool FakeWorld::is_all_read(int host, int other) const {
  const std::vector<int> all = connected(host, other);
  return std::all_of(all.begin(), all.end(), [this](int fd) {
    const Socket& s = sockets_[static_cast<std::size_t>(fd)];
    return s.in_bytes == 0 && sockets_[static_cast<std::size_t>(s.other)].in_bytes == 0;
  });
}

std::int64_t FakeWorld::write_bytes(int index, const iovec* iov, int iovs, bool faulty) {
  Socket& s = sockets_[static_cast<std::size_t>(index)];
  if (s.kind != Kind::kStream) return -ENOTCONN;
  if (faulty) maybe_break(index);
  if (s.reset_due >= 0 && s.reset_due <= now_) return random_.chance(512) ? -ECONNRESET : -EPIPE;
  Socket& far = sockets_[static_cast<std::size_t>(s.other)];
  const std::size_t wanted = total(iov, iovs);
  if (s.closed_on_the_way) {
    reset_pair(index);
    s.written += wanted;
    return static_cast<std::int64_t>(wanted);
  }
  if (far.kind == Kind::kClosed) {
    // On its way to nobody. The answer is a reset, which the next write may find.
    if (s.fin_due >= 0 && s.fin_due <= now_) {
      if (s.answer_due < 0)
        s.answer_due = now_ + faults_.delay_max_ns / 2;
      else if (s.answer_due <= now_)
        return -EPIPE;
    }
    s.written += wanted;
    return static_cast<std::int64_t>(wanted);
  }
  std::uint64_t room = std::min<std::uint64_t>(room_towards(s), wanted);
  const bool full = room < wanted;
  bool cut_short = false;
  const bool fresh = s.written < kFreshBytes;
  if (faulty && !fresh && random_.chance(faults_.would_block)) room = 0, cut_short = true;
  if (faulty && !fresh && room > 1 && random_.chance(faults_.short_io)) {
    room = random_.chance(512) ? 1 : random_.between(1, room - 1);
    cut_short = true;
  }
  if (faulty && write_limit) {
    const std::uint64_t limited = std::min(room, write_limit(s.host, room));
    cut_short = cut_short || limited < room;
    room = limited;
  }
  if (full || cut_short) s.no_space = true;
  if (cut_short) due_at(now_ + 1000, index);  // the room that was missing turns up
  if (room == 0) return wanted == 0 ? 0 : -EAGAIN;
  Chunk chunk;
  chunk.bytes.reserve(room);
  for (int i = 0; i < iovs && chunk.bytes.size() < room; ++i) {
    const auto* from = static_cast<const std::uint8_t*>(iov[i].iov_base);
    const std::size_t n = std::min<std::size_t>(iov[i].iov_len, room - chunk.bytes.size());
    chunk.bytes.insert(chunk.bytes.end(), from, from + n);
  }
  if (faulty && random_.chance(faults_.corrupt)) {
    chunk.bytes[random_.below(chunk.bytes.size())] ^=
        static_cast<std::uint8_t>(1u << random_.below(8));
    ++corruptions_;
  }
  if (faulty && tamper) tamper(s.host, chunk.bytes);
  far.last_due =
      std::max(far.last_due, now_ + static_cast<std::int64_t>(random_.below(
                                        static_cast<std::uint64_t>(faults_.delay_max_ns) + 1)));
  chunk.due = s.muted ? INT64_MAX : far.last_due;
  far.in_bytes += chunk.bytes.size();
  s.written += room;
  if (!chunk.bytes.empty()) far.in.push_back(std::move(chunk));
  if (!s.muted) due_at(far.last_due, s.other);
  return static_cast<std::int64_t>(room);
}

std::int64_t FakeWorld::read_bytes(int index, const iovec* iov, int iovs, bool faulty) {
  Socket& s = sockets_[static_cast<std::size_t>(index)];
  if (s.kind != Kind::kStream) return -ENOTCONN;
  if (faulty) maybe_break(index);
  const std::uint64_t there = readable_bytes(s);
  if (there == 0 && s.reset_due >= 0 && s.reset_due <= now_) return -ECONNRESET;
  if (there == 0) return s.fin_due >= 0 && s.fin_due <= last_arrival(s) ? 0 : -EAGAIN;
  faulty = faulty && s.deaf_since < 0;
  std::uint64_t n = std::min<std::uint64_t>(there, total(iov, iovs));
  const std::uint64_t could = n;
  if (faulty && random_.chance(faults_.would_block)) n = 0;
  if (faulty && n > 1 && random_.chance(faults_.short_io)) {
    static constexpr std::uint64_t kLikely[] = {
        1, 1, mplite::kFrameHeaderBytes};  // of what comes alone: one byte, and a frame's header
    const std::uint64_t likely = kLikely[random_.below(3)];
    n = random_.chance(700) && likely < n ? likely : random_.between(1, n - 1);
  }
  if (faulty && read_limit) n = std::min(n, read_limit(s.host, n));
  if (n < could) due_at(now_ + 1000, index);  // as if the rest came just afterwards
  if (n == 0) return -EAGAIN;
  std::uint64_t left = n;
  for (int i = 0; i < iovs && left > 0; ++i) {
    auto* to = static_cast<std::uint8_t*>(iov[i].iov_base);
    std::size_t space = iov[i].iov_len;
    while (space > 0 && left > 0) {
      Chunk& chunk = s.in.front();
      const std::size_t piece =
          std::min<std::size_t>({space, left, chunk.bytes.size() - chunk.used});
      std::memcpy(to, chunk.bytes.data() + chunk.used, piece);
      chunk.used += piece;
      to += piece;
      space -= piece;
      left -= piece;
      if (chunk.used == chunk.bytes.size()) s.in.pop_front();
    }
  }
  s.in_bytes -= n;
  s.read += n;
  if (sockets_[static_cast<std::size_t>(s.other)].no_space)
    due_at(now_ + static_cast<std::int64_t>(
                      random_.below(static_cast<std::uint64_t>(faults_.delay_max_ns) + 1)),
           s.other);
  return static_cast<std::int64_t>(n);
}

void FakeWorld::set_closed(int index) {
  Socket& s = sockets_[static_cast<std::size_t>(index)];
  if (s.kind != Kind::kClosed && s.host >= 0)
    std::erase(by_host_[static_cast<std::size_t>(s.host)], index);
  s.kind = Kind::kClosed;
}

void FakeWorld::close_socket(int index) {
  Socket& s = sockets_[static_cast<std::size_t>(index)];
  if (s.kind == Kind::kListener) {
    for (const auto& [due, waiting] : s.backlog) {  // nobody will accept them any more
      reset_pair(waiting);
      close_socket(waiting);
    }
    std::erase_if(listeners_, [index](const auto& each) { return each.second == index; });
  }
  const bool connecting = s.kind == Kind::kConnecting && s.other >= 0;
  if (s.kind == Kind::kStream || connecting) {
    Socket& far = sockets_[static_cast<std::size_t>(s.other)];
    if (far.kind == Kind::kStream && !s.muted) {
      if (connecting && s.connect_due > now_) {  // half a connection is never accepted
        set_closed(s.other);
      } else if (s.in_bytes > 0) {  // unread data makes it a reset
        if (far.reset_due < 0)
          far.reset_due = now_ + static_cast<std::int64_t>(random_.below(
                                     static_cast<std::uint64_t>(faults_.delay_max_ns) + 1));
        due_at(far.reset_due, s.other);
      } else {
        far.fin_due = std::max(far.last_due, now_) + static_cast<std::int64_t>(random_.below(1000));
        due_at(far.fin_due, s.other);
      }
    }
  }
  if (s.kind == Kind::kStream) s.read += readable_bytes(s);
  set_closed(index);
  s.in.clear();
  s.in_bytes = 0;
  s.backlog.clear();
}

int FakeWorld::begin_connect(int index, const sockaddr_storage& to, bool faulty) {
  sockaddr_in in;
  std::memcpy(&in, &to, sizeof in);
  const int host = ntohs(in.sin_port) - kFirstPort;
  Socket& s = sockets_[static_cast<std::size_t>(index)];
  const int network = static_cast<int>(ntohl(in.sin_addr.s_addr) >> 16 & 0xff);
  s.kind = Kind::kConnecting;
  s.far_host = host;
  s.network = network;
  const auto road = roads_.find({host, network});
  const int broken = road != roads_.end() ? road->second : 0;
  if (broken < 0) return -EINPROGRESS;
  if (broken > 0 && random_.chance(512)) return -broken;
  if (faulty && random_.chance(faults_.unanswered)) return -EINPROGRESS;
  s.connect_due = now_ + static_cast<std::int64_t>(
                             random_.below(static_cast<std::uint64_t>(faults_.delay_max_ns) + 1));
  if (const auto slow = slow_roads_.find({host, network}); slow != slow_roads_.end())
    s.connect_due += slow->second;
  due_at(s.connect_due, index);
  if (broken > 0) {
    s.connect_error = broken;
    return -EINPROGRESS;
  }
  const auto listening = listeners_.find({host, network});
  const bool there = listening != listeners_.end();
  if (!there || (faulty && random_.chance(faults_.refuse))) {
    if (faulty && random_.chance(256)) return -ECONNREFUSED;
    s.connect_error = ECONNREFUSED;
    return -EINPROGRESS;
  }
  Socket accepted;
  accepted.host = sockets_[static_cast<std::size_t>(listening->second)].host;
  s.far_host = accepted.host;
  accepted.far_host = s.host;
  accepted.network = network;
  accepted.kind = Kind::kStream;
  accepted.waits = true;
  accepted.other = index;
  accepted.capacity = random_.between(faults_.pipe_min, faults_.pipe_max);
  const std::uint64_t capacity = random_.between(faults_.pipe_min, faults_.pipe_max);
  const int listener = listening->second;
  const int other = add(std::move(accepted));
  Socket& mine = sockets_[static_cast<std::size_t>(index)];
  mine.other = other;
  mine.capacity = capacity;
  const std::int64_t due =
      mine.connect_due + static_cast<std::int64_t>(
                             random_.below(static_cast<std::uint64_t>(faults_.delay_max_ns) + 1));
  auto& backlog = sockets_[static_cast<std::size_t>(listener)].backlog;
  backlog.push_back({std::max(due, backlog.empty() ? due : backlog.back().first), other});
  due_at(backlog.back().first, listener);
  return -EINPROGRESS;
}

int FakeWorld::take_backlog(int listener_index) {
  auto& backlog = sockets_[static_cast<std::size_t>(listener_index)].backlog;
  while (!backlog.empty() && backlog.front().first <= now_) {
    const int index = backlog.front().second;
    backlog.pop_front();
    sockets_[static_cast<std::size_t>(index)].waits = false;
    if (sockets_[static_cast<std::size_t>(index)].kind == Kind::kStream) return index;
  }
  return -EAGAIN;
}

std::uint64_t FakeWorld::open_sockets(int host) const {
  return by_host_[static_cast<std::size_t>(host)].size();
}

int FakeWorld::unwatched(int host) const {
  int count = 0;
  for (const int index : by_host_[static_cast<std::size_t>(host)]) {
    const Socket& s = sockets_[static_cast<std::size_t>(index)];
    if (s.kind == Kind::kStream && !s.watched && !s.waits) ++count;
  }
  return count;
}

int FakeWorld::called(int host) const {
  int count = 0;
  for (const int index : by_host_[static_cast<std::size_t>(host)])
    count += sockets_[static_cast<std::size_t>(index)].called ? 1 : 0;
  return count;
}

int FakeWorld::low_water(int host) const {
  int most = 0;
  for (const int index : by_host_[static_cast<std::size_t>(host)]) {
    const Socket& s = sockets_[static_cast<std::size_t>(index)];
    if (s.kind == Kind::kStream) most = std::max(most, s.low_water);
  }
  return most;
}

void FakeWorld::dump() const {
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const Socket& s = sockets_[i];
    if (s.kind == Kind::kClosed) continue;
    std::fprintf(stderr,
                 "socket %zu of host %d to %d: kind %d, in %llu (readable %llu) of %llu, interest "
                 "%u%s, ready %u, low water %d, reset %d, fin %d, signal %d%s%s\n",
                 i, s.host, s.far_host, static_cast<int>(s.kind),
                 static_cast<unsigned long long>(s.in_bytes),
                 static_cast<unsigned long long>(readable_bytes(s)),
                 static_cast<unsigned long long>(s.capacity), s.interest,
                 s.watched ? "" : " (not watched)", ready(s), s.low_water, s.reset_due >= 0,
                 s.fin_due >= 0, s.signal_driven, s.no_space ? ", no space" : "",
                 s.muted ? ", mute" : "");
  }
}

// ---- strangers ----

int FakeWorld::stranger_connect(int host) {
  const int index = add(Socket{});
  begin_connect(index, address(host), false);
  Socket& s = sockets_[static_cast<std::size_t>(index)];
  if (s.other >= 0) s.kind = Kind::kStream;
  return index;
}

void FakeWorld::stranger_write(int fd, const void* bytes, std::size_t count) {
  const iovec part = {const_cast<void*>(bytes), count};
  write_bytes(fd, &part, 1, false);
}

std::size_t FakeWorld::stranger_read(int fd, void* bytes, std::size_t count) {
  const iovec part = {bytes, count};
  const std::int64_t n = read_bytes(fd, &part, 1, false);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

void FakeWorld::stranger_close(int fd) {
  if (sockets_[static_cast<std::size_t>(fd)].kind != Kind::kClosed) close_socket(fd);
}

// ---- what the engine calls ----

// Around each call: a little time passes, the harness may run the handler before and after, and the
// fake's own memory is not the handler's.
class FakeNet::Call {
 public:
  Call(FakeNet& net, bool boundaries = true) : net_(net), boundaries_(boundaries) { visit(); }
  ~Call() { visit(); }

 private:
  void visit() {
    FakeWorld& w = net_.world_;
    w.pass(static_cast<std::int64_t>(w.random_.below(300)));
    if (boundaries_ && w.boundary) w.boundary(net_.host_);
  }
  alloc_trap::Pardon pardon_;
  FakeNet& net_;
  bool boundaries_;
};

bool FakeWorld::take_descriptor(int host) {
  if (host != 0 || descriptors_left < 0) return true;
  if (descriptors_left == 0) return false;
  --descriptors_left;
  return true;
}

int FakeNet::open_stream(int) {
  Call call(*this);
  if (!world_.take_descriptor(host_)) return -EMFILE;
  if (world_.fail_open != 0) return -world_.fail_open;
  if (world_.random_.chance(world_.faults_.no_descriptor)) return -EMFILE;
  FakeWorld::Socket s;
  s.host = host_;
  return world_.add(std::move(s));
}

int FakeNet::bind_and_listen(int, const sockaddr_storage&) {
  return -EOPNOTSUPP;
}  // make_listener() does it
int FakeNet::local_address(int, sockaddr_storage& address) {
  address = FakeWorld::address(host_);
  return 0;
}

int FakeNet::local_end_towards(const sockaddr_storage& to, sockaddr_storage& end) {
  if (!world_.tells_local_ends) return -EOPNOTSUPP;
  sockaddr_in in;
  std::memcpy(&in, &to, sizeof in);
  const int network = static_cast<int>(ntohl(in.sin_addr.s_addr) >> 16 & 0xff);
  const auto road = world_.roads_.find({ntohs(in.sin_port) - kFirstPort, network});
  if (road != world_.roads_.end() && road->second == ENETUNREACH) return -ENETUNREACH;
  end = FakeWorld::address(host_, network);
  return 0;
}

int FakeNet::connect(int fd, const sockaddr_storage& address) {
  Call call(*this);
  if (world_.own(host_, fd, "connect") == nullptr) return -EBADF;
  if (world_.fail_connect != 0) return -world_.fail_connect;
  return world_.begin_connect(fd, address, true);
}

int FakeNet::connect_result(int fd) {
  Call call(*this);
  FakeWorld::Socket* s = world_.own(host_, fd, "connect_result");
  if (s == nullptr) return -EBADF;
  if (s->kind == FakeWorld::Kind::kStream) return 0;
  if (s->connect_due < 0 || s->connect_due > world_.now_)
    return 0;  // SO_ERROR knows of no error yet
  if (s->connect_error != 0) return -s->connect_error;
  if (s->other < 0) return -ECONNREFUSED;
  if (world_.sockets_[static_cast<std::size_t>(s->other)].kind == FakeWorld::Kind::kClosed)
    return -ECONNRESET;  // it was up
  s->kind = FakeWorld::Kind::kStream;
  return 0;
}

int FakeNet::accept(int listener, sockaddr_storage& from) {
  Call call(*this);
  if (world_.own(host_, listener, "accept") == nullptr) return -EBADF;
  if (world_.random_.chance(world_.faults_.no_descriptor)) {
    world_.due_at(world_.now_ + 1000, listener);
    return -EMFILE;
  }
  if (world_.descriptors_left == 0 && host_ == 0) {
    ++world_.accepts_without_descriptor;
    return -EMFILE;
  }
  const int index = world_.take_backlog(listener);
  if (index >= 0) {
    world_.take_descriptor(host_);
    const auto& socket = world_.sockets_[static_cast<std::size_t>(index)];
    from = FakeWorld::address(socket.far_host >= 0 ? socket.far_host : 999, socket.network);
  }
  return index;
}

std::int64_t FakeNet::read(int fd, const iovec* iov, int iovs) {
  Call call(*this);
  if (world_.own(host_, fd, "read") == nullptr) return -EBADF;
  return world_.read_bytes(fd, iov, iovs, true);
}

std::int64_t FakeNet::write(int fd, const iovec* iov, int iovs) {
  Call call(*this);
  if (world_.own(host_, fd, "write") == nullptr) return -EBADF;
  world_.pieces_written = iovs;
  return world_.write_bytes(fd, iov, iovs, true);
}

// As soon as it is there: an answer on its way would only make it more.
std::int64_t FakeNet::unacknowledged(int fd) {
  Call call(*this);
  const FakeWorld::Socket* s = world_.own(host_, fd, "unacknowledged");
  if (s == nullptr || s->kind != FakeWorld::Kind::kStream) return -EBADF;
  const FakeWorld::Socket& far = world_.sockets_[static_cast<std::size_t>(s->other)];
  return static_cast<std::int64_t>(s->written - far.read - world_.readable_bytes(far));
}

void FakeNet::stop_receiving(int fd) {
  Call call(*this);
  if (FakeWorld::Socket* s = world_.own(host_, fd, "stop_receiving"); s != nullptr)
    s->deaf_since = world_.now_;
}

void FakeNet::close(int fd) {
  Call call(*this);
  if (world_.own(host_, fd, "close") == nullptr) return;
  world_.close_socket(fd);
  if (host_ == 0 && world_.descriptors_left >= 0) ++world_.descriptors_left;
}

void FakeNet::set_options(int fd, const mplite::StreamOptions&) {
  Call call(*this);
  (void)world_.own(host_, fd, "set_options");
}

int FakeNet::set_signal_driven(int fd, int tid, int signo) {
  Call call(*this);
  FakeWorld::Socket* s = world_.own(host_, fd, "set_signal_driven");
  if (s == nullptr) return -EBADF;
  s->signal_driven = tid != 0;
  if (signo != 0) s->signo = signo;
  return 0;
}

int FakeNet::set_signals(int fd, bool on) { return set_signal_driven(fd, on ? 1 : 0, 0); }

// The kernel wakes the reader when the new mark is reached already.
int FakeNet::set_receive_low_water(int fd, int bytes) {
  Call call(*this);
  FakeWorld::Socket* s = world_.own(host_, fd, "set_receive_low_water");
  if (s == nullptr) return -EBADF;
  // Linux does so too (tcp_set_rcvlowat): a mark above what the buffer can hold would never be
  // reached.
  const auto most = static_cast<int>(std::max<std::uint64_t>(s->capacity / 2, 1));
  bytes = std::min(std::max(bytes, 1), most);
  s->low_water = bytes;
  if (world_.readable_bytes(*s) >= static_cast<std::uint64_t>(bytes))
    world_.due_at(world_.now_, fd);
  return 0;
}

int FakeNet::watch(int fd, std::uint64_t token, unsigned interest) {
  Call call(*this);
  FakeWorld::Socket* s = world_.own(host_, fd, "watch");
  if (s == nullptr) return -EBADF;
  if (s->watched) return -EEXIST;
  if (world_.fail_watch != 0) return -world_.fail_watch;
  s->watched = true;
  s->token = token;
  s->interest = interest;
  return 0;
}

int FakeNet::rewatch(int fd, std::uint64_t token, unsigned interest) {
  Call call(*this);
  FakeWorld::Socket* s = world_.own(host_, fd, "rewatch");
  if (s == nullptr || !s->watched) return -ENOENT;
  s->token = token;
  s->interest = interest;
  return 0;
}

int FakeNet::unwatch(int fd) {
  Call call(*this);
  FakeWorld::Socket* s = world_.own(host_, fd, "unwatch");
  if (s == nullptr || !s->watched) return -ENOENT;
  s->watched = false;
  return 0;
}

int FakeNet::watch_caller(int fd, std::uint64_t token, bool) {
  Call call(*this);
  FakeWorld::Socket* s = world_.own(host_, fd, "watch_caller");
  if (s == nullptr) return -EBADF;
  if (s->called) return -EEXIST;
  if (world_.fail_watch != 0) return -world_.fail_watch;
  s->called = true;
  s->called_token = token;
  return 0;
}

int FakeNet::unwatch_caller(int fd) {
  Call call(*this);
  FakeWorld::Socket* s = world_.own(host_, fd, "unwatch_caller");
  if (s == nullptr || !s->called) return -ENOENT;
  s->called = false;
  return 0;
}

// Only by who does not wait.
int FakeNet::wait_callers(mplite::NetEvent* events, int events_max, std::int64_t) {
  Call call(*this);
  int found = 0;
  for (const int index : world_.by_host_[static_cast<std::size_t>(host_)]) {
    const FakeWorld::Socket& s = world_.sockets_[static_cast<std::size_t>(index)];
    if (!s.called || s.kind == FakeWorld::Kind::kClosed ||
        (world_.ready(s) & mplite::kReadable) == 0 || found == events_max)
      continue;
    if (world_.random_.chance(world_.faults_.hidden_event))
      world_.tell_again(index);
    else
      events[found++] = {s.called_token, mplite::kReadable};
  }
  return found;
}

int FakeNet::wait(mplite::NetEvent* events, int events_max, std::int64_t timeout_ns) {
  Call call(*this);
  for (int turn = 0; turn < 2; ++turn) {
    if (world_.random_.chance(world_.faults_.empty_wait)) {
      for (const int index : world_.by_host_[static_cast<std::size_t>(host_)])
        world_.tell_again(index);
      return 0;
    }
    int found = 0;
    auto& own = world_.by_host_[static_cast<std::size_t>(host_)];
    const std::size_t from = world_.random_.below(world_.ever_[static_cast<std::size_t>(host_)]);
    const auto is_before = [this](int index, std::size_t ordinal) {
      return world_.sockets_[static_cast<std::size_t>(index)].ordinal < ordinal;
    };
    const auto first = std::lower_bound(own.begin(), own.end(), from, is_before);
    std::size_t at = first == own.end() ? 0 : static_cast<std::size_t>(first - own.begin());
    for (std::size_t i = 0; i < own.size() && found < events_max; ++i) {
      const int index = own[at];
      if (++at == own.size()) at = 0;
      const FakeWorld::Socket& s = world_.sockets_[static_cast<std::size_t>(index)];
      const unsigned bits = world_.event(s);
      if (bits == 0) continue;
      if (world_.random_.chance(world_.faults_.hidden_event)) {
        world_.tell_again(index);
        continue;
      }
      events[found++] = {s.token, bits};
    }
    if (found > 0 || timeout_ns == 0) return found;
    if (turn == 0) {
      if (world_.asleep) world_.asleep(host_);
      world_.skip(timeout_ns < 0 ? 1'000'000 : timeout_ns);
    }
  }
  return 0;
}

std::int64_t FakeNet::now_ns() {
  Call call(*this);
  ++world_.clock_reads;
  return world_.now_;
}

void FakeNet::spin(std::int64_t ns) {
  Call call(*this);
  world_.spun_ns += ns;
  world_.pass(ns);
}

// Between 5 and 250 us, always the same for a descriptor; sometimes not known yet.

bool FakeNet::is_silent(int fd, std::int64_t limit_ms) {
  Call call(*this);
  const FakeWorld::Socket* s = world_.own(host_, fd, "is_silent");
  // Data under way or not: on an idle connection the kernel's keepalive probes find the same.
  return s != nullptr && s->muted && world_.now_ - s->muted_since >= limit_ms * 1'000'000;
}

bool FakeNet::has_ended(int fd) {
  Call call(*this);
  const FakeWorld::Socket* s = world_.own(host_, fd, "has_ended");
  const auto is_past = [this](std::int64_t due) { return due >= 0 && due <= world_.now_; };
  return s == nullptr || is_past(s->fin_due) || is_past(s->reset_due);
}

bool FakeNet::report(int fd, mplite::StreamReport& report) {
  Call call(*this);
  const FakeWorld::Socket* s = world_.own(host_, fd, "report");
  if (s == nullptr) return false;
  report = {45, 1'200'000'000, 7, 3, world_.resent, 1500};
  if (s->kind == FakeWorld::Kind::kStream && s->other >= 0) {
    const FakeWorld::Socket& far = world_.sockets_[static_cast<std::size_t>(s->other)];
    report.acknowledged = far.read + world_.readable_bytes(far);
    report.busy_us = world_.now_ / 1000;
  }
  if (world_.reported) world_.reported(report);
  return true;
}

void FakeNet::random(void* bytes, std::size_t count) {
  Call call(*this);
  auto* to = static_cast<std::uint8_t*>(bytes);
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(world_.random_.next());
}

}  // namespace sim
