// A process that is not the library, over a fake network: it proves to be a rank of the job (it
// knows the secret), and then says what it likes. Where streams are protected it seals that in
// records, or not.
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

  // A new connection to `host`; `turn` lets that poll. False: it was not let in.
  template <typename Turn>
  bool connect(int host, Turn turn) {
    using namespace mplite;
    const std::uint8_t nonce[kNonceBytes] = {1, 2, 3};
    Hello said = hello_start(own_, host, nonce), heard, next;
    fd_ = world_.stranger_connect(host);
    for (int message = 0; message < 2; ++message) {
      world_.stranger_write(fd_, &said, sizeof said);
      for (int tries = 0; tries < 4; ++tries) turn();
      if (world_.stranger_read(fd_, &heard, sizeof heard) != sizeof heard) return false;
      if (message == 0 && hello_prove(own_, said, heard, next) != HelloFault::kNone) return false;
      if (message == 1 && hello_done(own_, said, heard) != HelloFault::kNone) return false;
      if (message == 0) said = next;
    }
    StreamKeys keys;
    hello_stream_keys(own_, nullptr, said, heard, keys);
    cipher_.start(keys.agreed, keys.send);
    return true;
  }
  void write(const void* bytes, std::size_t count) {
    using namespace mplite;
    if (own_.protection == 0) return write_unsealed(bytes, count);
    const auto* at = static_cast<const std::uint8_t*>(bytes);
    while (count > 0) {
      const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(count, kRecordBytesMax));
      std::vector<std::uint8_t> record(part + kRecordExtraBytes);
      cipher_.seal(at, part, record.data());
      write_unsealed(record.data(), record.size());
      at += part;
      count -= part;
    }
  }
  void write_unsealed(const void* bytes, std::size_t count) {
    world_.stranger_write(fd_, bytes, count);
  }
  // At most so many bytes of what came, sealed: a control packet of the other side, or anything
  // else.
  std::size_t read(void* bytes, std::size_t count) {
    return world_.stranger_read(fd_, bytes, count);
  }
  void close() { world_.stranger_close(fd_); }

 private:
  sim::FakeWorld& world_;
  mplite::HelloContext own_;
  mplite::RecordCipher cipher_;
  int fd_ = -1;
};

}  // namespace fuzz
