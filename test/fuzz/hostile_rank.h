// A process that is not the library, over a fake network: it proves to be a rank of the job (it
// knows the secret), and then says what it likes, on its first connection and on lanes. Where
// streams are protected it seals that in records, or not. It may listen, and let the other side in.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "fake_net.h"
#include "mplite/net/handshake.h"
#include "mplite/net/record.h"

namespace fuzz {

class HostileRank {
 public:
  // `protection`: what it offers. Of a job in which no two processes have a key for themselves.
  HostileRank(sim::FakeWorld& world, int rank, int size, const std::uint8_t (&secret)[32],
              std::uint8_t protection = 0)
      : world_(world), own_{rank, size, secret, mplite::HelloRealm::kJob, nullptr, protection} {}

  // From now on calls wait for answer(), or are refused.
  void listen() { listener_ = world_.make_listener(own_.rank); }

  // A new connection to `host`; `turn` lets that poll. `position`: what it says of the stream.
  // False: it was not let in.
  template <typename Turn>
  bool connect(int host, Turn turn, int lane = 0, const mplite::StreamPosition& position = {}) {
    using namespace mplite;
    const HelloContext context = context_of(lane, position);
    const std::uint8_t nonce[kNonceBytes] = {1, 2, 3};
    Hello said = hello_start(context, host, nonce), heard, next;
    Stream s = {world_.stranger_connect(host), false, {}};
    for (int message = 0; message < 2; ++message) {
      send(s, &said, sizeof said);
      for (int tries = 0; tries < 4; ++tries) turn();
      const bool good = receive(s, &heard, sizeof heard) == sizeof heard &&
                        (message == 0 ? hello_prove(context, said, heard, next) == HelloFault::kNone
                                      : hello_done(context, said, heard) == HelloFault::kNone);
      if (!good) {
        drop(s);
        return false;
      }
      if (message == 0) said = next;
    }
    come_up(lane, s, context, said, heard);
    return true;
  }

  // Lets in who called first: the lane, 0: a first connection. -1: nobody, or it went wrong.
  template <typename Turn>
  int answer(Turn turn, const mplite::StreamPosition& position = {}) {
    using namespace mplite;
    sockaddr_storage from;
    const int fd = listener_ < 0 ? -1 : world_.net(own_.rank).accept(listener_, from);
    if (fd < 0) return -1;
    Stream s = {fd, true, {}};
    Hello heard, challenge, acceptance;
    for (int tries = 0; tries < 4; ++tries) turn();
    const std::uint8_t nonce[kNonceBytes] = {4, 5, 6};
    int lane = -1;
    if (receive(s, &heard, sizeof heard) == sizeof heard) lane = hello_lane(heard);
    const HelloContext context = context_of(std::max(lane, 0), position);
    if (lane < 0 || hello_answer(context, heard, nonce, challenge) != HelloFault::kNone) {
      drop(s);
      return -1;
    }
    send(s, &challenge, sizeof challenge);
    for (int tries = 0; tries < 4; ++tries) turn();
    if (receive(s, &heard, sizeof heard) != sizeof heard ||
        hello_accept(context, challenge, heard, acceptance) != HelloFault::kNone) {
      drop(s);
      return -1;
    }
    send(s, &acceptance, sizeof acceptance);
    come_up(lane, s, context, acceptance, heard);
    return lane;
  }

  bool is_up(int lane) const { return at(lane).fd >= 0; }
  int fd(int lane) const { return at(lane).fd; }
  // What the other side said of the stream when the first connection came up last, and how many
  // bytes of it have been read here (sealed ones where they are in records).
  const mplite::StreamPosition& heard_position() const { return heard_; }
  std::uint64_t received() const { return received_; }
  // Says once more what it has said on first connections, from that byte of all on.
  void say_again(std::uint64_t from) {
    if (from >= said_.size()) return;
    const std::vector<std::uint8_t> rest(said_.begin() + static_cast<std::ptrdiff_t>(from),
                                         said_.end());
    said_.resize(from);
    write(rest.data(), rest.size());
  }

  void write(const void* bytes, std::size_t count, int lane = 0) {
    using namespace mplite;
    if (!is_up(lane)) return;
    const auto* at_byte = static_cast<const std::uint8_t*>(bytes);
    if (lane == 0 && said_.size() < kSaidMax) said_.insert(said_.end(), at_byte, at_byte + count);
    if (own_.protection == 0) return write_unsealed(bytes, count, lane);
    while (count > 0) {
      const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(count, kRecordBytesMax));
      std::vector<std::uint8_t> record(part + kRecordExtraBytes);
      at(lane).cipher.seal(at_byte, part, record.data());
      write_unsealed(record.data(), record.size(), lane);
      at_byte += part;
      count -= part;
    }
  }
  void write_unsealed(const void* bytes, std::size_t count, int lane = 0) {
    if (is_up(lane)) send(at(lane), bytes, count);
  }
  // At most so many bytes of what came, sealed: a control packet of the other side, or anything
  // else.
  std::size_t read(void* bytes, std::size_t count, int lane = 0) {
    if (!is_up(lane)) return 0;
    const std::size_t got = receive(at(lane), bytes, count);
    if (lane == 0) received_ += got;
    return got;
  }
  void close(int lane = 0) { drop(at(lane)); }

 private:
  static constexpr std::size_t kSaidMax = 2u << 20;
  struct Stream {
    int fd = -1;
    bool was_called = false;  // by the other side, and so the socket is this host's
    mplite::RecordCipher cipher;
  };
  Stream& at(int lane) { return streams_[lane % mplite::kLanesMax]; }
  const Stream& at(int lane) const { return streams_[lane % mplite::kLanesMax]; }

  mplite::HelloContext context_of(int lane, const mplite::StreamPosition& position) {
    initiator_[0] = static_cast<std::uint8_t>(lane);
    mplite::HelloContext context = own_;
    context.initiator = lane != 0 ? initiator_ : nullptr;
    context.position = lane == 0 ? position : mplite::StreamPosition{};
    return context;
  }
  void come_up(int lane, Stream& s, const mplite::HelloContext& context, const mplite::Hello& said,
               const mplite::Hello& heard) {
    mplite::StreamKeys keys;
    hello_stream_keys(context, nullptr, said, heard, keys);
    s.cipher.start(keys.agreed, keys.send);
    drop(at(lane));
    at(lane) = s;
    if (lane == 0) heard_ = heard.position;
  }
  void send(const Stream& s, const void* bytes, std::size_t count) {
    const iovec part = {const_cast<void*>(bytes), count};
    if (s.was_called)
      world_.net(own_.rank).write(s.fd, &part, 1);
    else
      world_.stranger_write(s.fd, bytes, count);
  }
  std::size_t receive(const Stream& s, void* bytes, std::size_t count) {
    if (!s.was_called) return world_.stranger_read(s.fd, bytes, count);
    const iovec part = {bytes, count};
    const std::int64_t n = world_.net(own_.rank).read(s.fd, &part, 1);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  void drop(Stream& s) {
    if (s.fd >= 0 && s.was_called) world_.net(own_.rank).close(s.fd);
    if (s.fd >= 0 && !s.was_called) world_.stranger_close(s.fd);
    s.fd = -1;
  }

  sim::FakeWorld& world_;
  mplite::HelloContext own_;
  std::uint8_t initiator_[mplite::kMacBytes] = {};
  Stream streams_[mplite::kLanesMax];
  int listener_ = -1;
  mplite::StreamPosition heard_ = {};
  std::uint64_t received_ = 0;
  std::vector<std::uint8_t> said_;
};

}  // namespace fuzz
