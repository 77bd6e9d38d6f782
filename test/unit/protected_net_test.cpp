// protected_net.h: two ends over a network that moves what it likes, and one that lies.
#include "mplite/net/protected_net.h"
#include "mplite/net/handshake.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include "fake_net.h"
#include "run_tests.h"

using namespace mplite;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint8_t byte_of(std::uint64_t i) { return static_cast<std::uint8_t>(i * 13 + i / 253); }

// A connection of the two is made, and protected. False: `from` cannot do that before its next
// refill.
bool begin(sim::FakeWorld& world, int listener, ProtectedNet& from, ProtectedNet& to,
           Protection kind, int& out, int& in) {
  out = from.open_stream(AF_INET);
  from.connect(out, sim::FakeWorld::address(1));
  sockaddr_storage who;
  while ((in = to.accept(listener, who)) < 0) world.pass(10'000);
  while (from.connect_result(out) != 0) world.pass(10'000);
  if (!from.may_protect(out)) return false;
  ck_assert(to.refill() && to.may_protect(in));
  StreamKeys keys;
  keys.agreed = protection_offer(kind);
  std::memset(keys.send, 1, sizeof keys.send);
  std::memset(keys.receive, 2, sizeof keys.receive);
  ck_assert_int_eq(from.watch(out, 7, kReadable), 0);
  ck_assert_int_eq(to.watch(in, 9, kReadable), 0);
  from.protect(out, 7, keys);
  std::swap(keys.send, keys.receive);
  to.protect(in, 9, keys);
  return true;
}

// A stream from host 0 to host 1, and what has gone through it.
struct Stream {
  explicit Stream(std::uint64_t seed, const sim::Faults& faults, Protection kind = Protection::kOn)
      : world(seed, 2, faults), random(seed), from(world.net(0)), to(world.net(1)) {
    hello_prepare();
    if (!from.start(1000) || !to.start(1000)) __builtin_trap();
    ck_assert(begin(world, world.make_listener(1), from, to, kind, out, in));
  }
  ~Stream() {
    from.close(out);
    to.close(in);
  }

  // A write of the next `bytes`, in some pieces. What it returned.
  std::int64_t write(std::uint64_t bytes) {
    Bytes data(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i) data[i] = byte_of(written + i);
    const std::vector<iovec> pieces = cut(data);
    const std::int64_t n = from.write(out, pieces.data(), static_cast<int>(pieces.size()));
    if (n > 0) written += static_cast<std::uint64_t>(n);
    return n;
  }
  // A read of up to `bytes`. What it returned; the content is checked.
  std::int64_t read(std::uint64_t bytes) {
    Bytes data(bytes, 0xee);
    const std::vector<iovec> pieces = cut(data);
    const std::int64_t n = to.read(in, pieces.data(), static_cast<int>(pieces.size()));
    for (std::int64_t i = 0; i < n; ++i)
      ck_assert_msg(
          data[static_cast<std::size_t>(i)] == byte_of(came + static_cast<std::uint64_t>(i)),
          "byte %llu", static_cast<unsigned long long>(came));
    if (n > 0) came += static_cast<std::uint64_t>(n);
    return n;
  }
  // Both by turns, until `bytes` have come or the reader is told that something is wrong: that.
  std::int64_t move(std::uint64_t bytes, std::uint64_t piece_max = 60'000) {
    std::uint64_t left = 0;  // of a write that was cut short: the next one begins with it
    for (int turn = 0; came < bytes; ++turn) {
      ck_assert_int_lt(turn, 1'000'000);
      from.refill(), to.refill();
      if (left == 0 && written < bytes)
        left = std::min(random.between(1, piece_max), bytes - written);
      if (left > 0)
        if (const std::int64_t n = write(left); n > 0) left -= static_cast<std::uint64_t>(n);
      world.pass(1'000);
      const std::int64_t n = read(random.between(1, piece_max));
      if (n < 0 && n != -EAGAIN) return n;
      if (n == 0) return n;
    }
    return 1;
  }

  sim::FakeWorld world;
  sim::Random random;
  ProtectedNet from, to;
  int out = -1, in = -1;
  std::uint64_t written = 0, came = 0;

 private:
  std::vector<iovec> cut(Bytes& data) {
    std::vector<iovec> pieces;
    for (std::size_t at = 0; at < data.size();) {
      const std::size_t n = pieces.size() > 5 ? data.size() - at
                                              : static_cast<std::size_t>(random.between(
                                                    random.chance(100) ? 0 : 1, data.size() - at));
      pieces.push_back({data.data() + at, n});
      at += n;
    }
    return pieces;
  }
};

sim::Faults no_faults() {
  sim::Faults f;
  f.short_io = f.would_block = f.empty_wait = f.hidden_event = 0;
  f.pipe_min = f.pipe_max = 4u << 20;
  f.delay_max_ns = 0;
  return f;
}

START_TEST(what_is_written_is_read_however_it_is_cut) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    for (const Protection kind : {Protection::kAuth, Protection::kOn}) {
      Stream stream(seed, sim::Faults(), kind);
      ck_assert_int_eq(stream.move(200'000), 1);
      ck_assert_uint_eq(stream.written, stream.came);
    }
}
END_TEST

// The last byte is not reported before the kernel has the end of its record.
START_TEST(a_write_is_not_whole_before_the_kernel_has_it) {
  Stream stream(1, no_faults());
  stream.world.write_limit = [](int, std::uint64_t) { return std::uint64_t{100}; };
  ck_assert_int_eq(stream.write(1000), 999);
  while (stream.write(1) == -EAGAIN) {
    ck_assert_int_eq(stream.read(2000), -EAGAIN);
    stream.world.pass(10'000);
  }
  stream.world.pass(10'000);
  ck_assert_int_eq(stream.read(2000), 1000);
}
END_TEST

// What does not fit in what is read into: wait() does not know of it, held_input() does.
START_TEST(input_that_was_taken_from_the_socket_is_told) {
  Stream stream(1, no_faults());
  NetEvent event = {};
  ck_assert_int_eq(stream.write(40'000), 40'000);
  stream.world.pass(10'000);
  ck_assert_int_eq(stream.to.held_input(&event, 1), 0);
  ck_assert_int_eq(stream.read(10), 10);
  ck_assert_int_eq(stream.to.held_input(nullptr, 0), 1);
  ck_assert_int_eq(stream.to.held_input(&event, 1), 1);
  ck_assert_uint_eq(event.token, 9);
  ck_assert_uint_eq(event.ready, kReadable);
  // Somebody would sleep for it: the clock stands still.
  const std::int64_t before = stream.world.now();
  stream.to.wait(&event, 1, 1'000'000'000);
  ck_assert_int_lt(stream.world.now() - before, 1'000'000);
  // Not while nobody wants to hear of it.
  stream.to.rewatch(stream.in, 9, 0);
  ck_assert_int_eq(stream.to.held_input(&event, 1), 0);
  stream.to.rewatch(stream.in, 9, kReadable);
  ck_assert_int_eq(stream.to.held_input(&event, 1), 1);
  ck_assert_int_eq(stream.read(100'000), 39'990);
  ck_assert_int_eq(stream.to.held_input(&event, 1), 0);
}
END_TEST

START_TEST(the_end_is_told_behind_what_came_before_it) {
  Stream stream(1, no_faults());
  ck_assert_int_eq(stream.write(5000), 5000);
  stream.from.close(stream.out);
  stream.out = stream.from.open_stream(AF_INET);
  stream.world.pass(10'000);
  ck_assert_int_eq(stream.read(100), 100);
  ck_assert_int_eq(stream.read(10'000), 4900);
  ck_assert_int_eq(stream.read(100), 0);
  ck_assert_int_eq(stream.read(100), 0);
}
END_TEST

START_TEST(a_mark_of_the_socket_never_waits_for_what_is_here) {
  Stream stream(1, no_faults());
  for (const int mark : {1, 1000, static_cast<int>(kRecordBytesMax)}) {
    stream.to.set_receive_low_water(stream.in, mark);
    ck_assert_int_eq(stream.world.low_water(1), 1);
  }
  stream.to.set_receive_low_water(stream.in, 200'000);
  ck_assert_int_eq(stream.world.low_water(1), 200'000 - static_cast<int>(kRecordBytesMax));
}
END_TEST

// In the handler nobody makes buffers. There are two for every stream.
START_TEST(streams_without_number_do_not_run_out_of_buffers) {
  Stream stream(1, no_faults());
  ck_assert(stream.from.refill());
  ck_assert_int_eq(stream.write(100'000), 100'000);
  // More than can be protected before the next refill.
  int taken = 0;
  while (taken < 100 && stream.from.may_protect(500 + taken)) ++taken;
  ck_assert_int_ge(taken, 8);
  ck_assert_int_lt(taken, 100);
  ck_assert(stream.from.refill());
  ck_assert(stream.from.may_protect(500 + taken));
  ck_assert(!stream.from.may_protect(1000));  // above what start() was told
}
END_TEST

// As many streams as may begin are in the middle of a record in each direction.
START_TEST(every_stream_that_may_begin_has_its_buffers) {
  hello_prepare();
  sim::Faults narrow = no_faults();
  narrow.pipe_min = narrow.pipe_max = 5'000;
  sim::FakeWorld world(1, 2, narrow);
  ProtectedNet from(world.net(0)), to(world.net(1));
  ck_assert(from.start(1000) && to.start(1000));
  const int listener = world.make_listener(1);
  std::vector<std::pair<int, int>> ends(1);
  ck_assert(begin(world, listener, from, to, Protection::kOn, ends[0].first, ends[0].second));
  ck_assert(from.refill());
  for (int out = -1, in = -1; begin(world, listener, from, to, Protection::kOn, out, in);)
    ends.emplace_back(out, in);
  ck_assert_uint_gt(ends.size(), 8);
  Bytes data(10'000);
  const iovec all = {data.data(), data.size()};
  for (const auto& [out, in] : ends) {
    ck_assert_int_gt(to.write(in, &all, 1), 0);
    world.pass(1'000);
    ck_assert_int_eq(from.read(out, &all, 1), -EAGAIN);
  }
  for (const auto& [out, in] : ends) ck_assert_int_gt(from.write(out, &all, 1), 0);
  for (const auto& [out, in] : ends) {
    from.close(out);
    to.close(in);
  }
}
END_TEST

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kTries = 1'000;  // each makes a world, which takes ten times as long there
#else
constexpr int kTries = 10'000;
#endif

// Somebody on the path, kTries times: bytes changed, cut out, put in, repeated. Wrong content would
// fail in read(). The reader is told, or the change makes it wait for what never comes.
START_TEST(nothing_that_was_tampered_with_is_ever_read) {
  int told = 0, waits = 0;
  for (std::uint64_t seed = 1; told + waits < kTries; ++seed) {
    Stream stream(seed, no_faults(), seed % 2 == 0 ? Protection::kOn : Protection::kAuth);
    sim::Random random(seed * 77);
    const std::uint64_t total = random.between(2, 3'000);
    Bytes seen;
    int at = static_cast<int>(random.below(3)), writes = 0;
    bool done = false;
    stream.world.tamper = [&](int, Bytes& bytes) {
      const bool now = writes++ >= at && !done && !bytes.empty();
      const std::size_t place = bytes.empty() ? 0 : random.below(bytes.size());
      const Bytes before = bytes;
      if (now) {
        done = true;
        const auto where = bytes.begin() + static_cast<std::ptrdiff_t>(place);
        const std::size_t count = random.between(1, bytes.size() - place);
        switch (random.below(5)) {
          case 0: bytes[place] ^= static_cast<std::uint8_t>(1u << random.below(8)); break;
          case 1: bytes.erase(where, where + static_cast<std::ptrdiff_t>(count)); break;
          case 2: {
            Bytes made(count);
            for (std::uint8_t& b : made) b = static_cast<std::uint8_t>(random.next());
            bytes.insert(where, made.begin(), made.end());
            break;
          }
          case 3:
            if (seen.empty()) seen = before;
            bytes.insert(bytes.begin(), seen.begin(), seen.end());
            break;
          default:
            for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random.next());
            break;
        }
      }
      seen.insert(seen.end(), before.begin(), before.end());
    };
    std::int64_t n = -EAGAIN;
    for (int turn = 0; turn < 40 && (n == -EAGAIN || n > 0); ++turn) {
      stream.from.refill(), stream.to.refill();
      if (stream.written < total)
        stream.write(std::min(random.between(1, 1'000), total - stream.written));
      stream.world.pass(1'000);
      n = stream.read(random.between(1, 2'000));
    }
    if (!done) continue;
    ck_assert_msg(n == -EBADMSG || n == -EAGAIN, "seed %llu: %lld",
                  static_cast<unsigned long long>(seed), static_cast<long long>(n));
    ++(n == -EBADMSG ? told : waits);
    ck_assert_uint_le(stream.came, total);  // what was put in behind the end changes nothing else
  }
  std::printf("tampered with: %d told, %d wait\n", told, waits);
  ck_assert_int_gt(told, kTries / 2);
}
END_TEST

}  // namespace

int main() { return run_tests("protected_net", 240); }
