// A socket layer on top of another one, which protects the streams that it is told to
// (LITE_ENCRYPT): what the engine writes leaves as records (record.h), and what it reads was opened
// and checked. Everything else is passed on. Made by runtime/process.cpp where protection is asked
// for; without it the engine uses the layer below directly.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "mplite/base/iov_cursor.h"
#include "mplite/base/pool.h"
#include "mplite/base/signal_safe.h"
#include "mplite/net/net.h"
#include "mplite/net/record.h"

namespace mplite {

// Gate held throughout, but for wait(), wait_callers(), now_ns(), spin() and random().
//
// write() takes bytes for written whose records the kernel has not taken all of, but the last one:
// so the engine goes on asking whether the socket is writable, and its next write sends the rest of
// the records first. read() returns -EBADMSG for a record that is not what the other end has
// sealed.
class ProtectedNet final : public Net {
 public:
  explicit ProtectedNet(Net& below) : below_(below) {}
  ~ProtectedNet();
  ProtectedNet(const ProtectedNet&) = delete;
  ProtectedNet& operator=(const ProtectedNet&) = delete;

  // Before anything else. `descriptors_max`: above every descriptor that may be protected; memory
  // is taken for those that are. False: no memory. Ordinary context.
  MPLITE_ORDINARY bool start(int descriptors_max);

  int open_stream(int family) MPLITE_SIGNAL_SAFE override { return below_.open_stream(family); }
  int bind_and_listen(int fd, const sockaddr_storage& address) MPLITE_SIGNAL_SAFE override {
    return below_.bind_and_listen(fd, address);
  }
  int local_address(int fd, sockaddr_storage& address) MPLITE_SIGNAL_SAFE override {
    return below_.local_address(fd, address);
  }
  int local_end_towards(const sockaddr_storage& to,
                        sockaddr_storage& end) MPLITE_SIGNAL_SAFE override {
    return below_.local_end_towards(to, end);
  }
  int connect(int fd, const sockaddr_storage& address) MPLITE_SIGNAL_SAFE override {
    return below_.connect(fd, address);
  }
  int connect_result(int fd) MPLITE_SIGNAL_SAFE override { return below_.connect_result(fd); }
  int accept(int listener, sockaddr_storage& from) MPLITE_SIGNAL_SAFE override {
    return below_.accept(listener, from);
  }
  std::int64_t read(int fd, const iovec* iov, int iovs) MPLITE_SIGNAL_SAFE override;
  std::int64_t write(int fd, const iovec* iov, int iovs) MPLITE_SIGNAL_SAFE override;
  void close(int fd) MPLITE_SIGNAL_SAFE override;
  void set_options(int fd, const StreamOptions& options) MPLITE_SIGNAL_SAFE override {
    below_.set_options(fd, options);
  }
  int set_signal_driven(int fd, int tid, int signo) MPLITE_SIGNAL_SAFE override {
    return below_.set_signal_driven(fd, tid, signo);
  }
  int set_signals(int fd, bool on) MPLITE_SIGNAL_SAFE override {
    return below_.set_signals(fd, on);
  }
  // Of content: part of a record may be here already.
  int set_receive_low_water(int fd, int bytes) MPLITE_SIGNAL_SAFE override;
  void set_unsent_limit(int fd, int bytes) MPLITE_SIGNAL_SAFE override {
    below_.set_unsent_limit(fd, bytes);
  }
  // Of content: a record of which the end is missing is of no use to the peer.
  std::int64_t unacknowledged(int fd) MPLITE_SIGNAL_SAFE override;
  void stop_receiving(int fd) MPLITE_SIGNAL_SAFE override { below_.stop_receiving(fd); }
  int watch(int fd, std::uint64_t token, unsigned interest) MPLITE_SIGNAL_SAFE override;
  int rewatch(int fd, std::uint64_t token, unsigned interest) MPLITE_SIGNAL_SAFE override;
  int unwatch(int fd) MPLITE_SIGNAL_SAFE override;
  int watch_caller(int fd, std::uint64_t token, bool edge) MPLITE_SIGNAL_SAFE override {
    return below_.watch_caller(fd, token, edge);
  }
  int unwatch_caller(int fd) MPLITE_SIGNAL_SAFE override { return below_.unwatch_caller(fd); }
  int wait_callers(NetEvent* events, int events_max,
                   std::int64_t timeout_ns) MPLITE_SIGNAL_SAFE override {
    return below_.wait_callers(events, events_max, timeout_ns);
  }
  // Does not wait while held_input() has something.
  int wait(NetEvent* events, int events_max, std::int64_t timeout_ns) MPLITE_SIGNAL_SAFE override {
    return below_.wait(events, events_max, held_readable_.load() > 0 ? 0 : timeout_ns);
  }
  int end_waits(bool on) MPLITE_SIGNAL_SAFE override { return below_.end_waits(on); }
  std::int64_t now_ns() MPLITE_SIGNAL_SAFE override { return below_.now_ns(); }
  void spin(std::int64_t ns) MPLITE_SIGNAL_SAFE override { below_.spin(ns); }
  bool is_silent(int fd, std::int64_t limit_ms) MPLITE_SIGNAL_SAFE override {
    return below_.is_silent(fd, limit_ms);
  }
  bool report(int fd, StreamReport& report) MPLITE_SIGNAL_SAFE override {
    return below_.report(fd, report);
  }
  bool has_ended(int fd) MPLITE_SIGNAL_SAFE override { return below_.has_ended(fd); }
  void disown(int fd) override { below_.disown(fd); }
  void random(void* bytes, std::size_t count) MPLITE_SIGNAL_SAFE override {
    below_.random(bytes, count);
  }
  bool may_protect(int fd) MPLITE_SIGNAL_SAFE override;
  void protect(int fd, std::uint64_t token, const StreamKeys& keys) MPLITE_SIGNAL_SAFE override;
  // With events_max 0, without the gate, too.
  int held_input(NetEvent* events, int events_max) MPLITE_SIGNAL_SAFE override;
  MPLITE_ORDINARY bool refill() override;

 private:
  // Records on their way, in either direction. A stream has one only while something is in it.
  struct Buffer {
    static constexpr std::uint32_t kBytes = 4 * (kRecordBytesMax + kRecordExtraBytes);
    Buffer* pool_next = nullptr;
    std::uint64_t pool_handle = 0;
    std::uint32_t begin = 0, end = 0;  // of what is in it
    std::uint8_t bytes[kBytes];

    Buffer() {}  // not `= default`: a pool's value-initialisation would clear the bytes, too
  };
  struct Stream {
    Stream* pool_next = nullptr;
    std::uint64_t pool_handle = 0;
    Stream* held_next = nullptr;  // of those with input
    Stream* held_previous = nullptr;
    bool held = false;
    bool begun = false;  // by protect()
    std::uint64_t token = 0;
    unsigned interest = kReadable;
    RecordCipher out, in;
    Buffer* sealed = nullptr;  // records that the kernel has not taken all of; the last byte of
                               // their content has not been reported as written
    Buffer* heard = nullptr;   // [begin, end): not opened; before it may be
    std::uint32_t content_begin = 0, content_end = 0;  // what was opened and not been read
    std::int64_t failed = 0;                           // of a write: what the next one returns
    bool has_ended = false;
    std::int64_t end = 0;  // has_ended: what the layer below has returned, or -EBADMSG
  };

  Stream* stream_of(int fd) const MPLITE_SIGNAL_SAFE {
    Stream* const s = fd >= 0 && fd < descriptors_max_ ? by_fd_[fd] : nullptr;
    return s != nullptr && s->begun ? s : nullptr;
  }
  void note_input(Stream& s) MPLITE_SIGNAL_SAFE;
  void hold(Stream& s, bool held) MPLITE_SIGNAL_SAFE;
  void set_interest(int fd, unsigned interest) MPLITE_SIGNAL_SAFE;
  void count(const Stream& s, int by) MPLITE_SIGNAL_SAFE;
  bool fetch(int fd, Stream& s, bool& drained) MPLITE_SIGNAL_SAFE;
  // What read() and write() work on: a list of pieces, and how much of it is left.
  struct Place {
    IovCursor at;
    std::uint64_t left;
  };
  std::uint64_t take_content(Stream& s, Place& to) MPLITE_SIGNAL_SAFE;
  bool open_next(Stream& s, Place& to, std::uint64_t& read) MPLITE_SIGNAL_SAFE;
  std::uint64_t seal_some(Stream& s, Buffer& buffer, Place& from) MPLITE_SIGNAL_SAFE;
  void give(Buffer*& buffer) MPLITE_SIGNAL_SAFE {
    buffers_.give(buffer);
    buffer = nullptr;
  }

  static constexpr std::uint32_t kSpare = 8;  // streams that begin in one handler entry

  Net& below_;
  Stream** by_fd_ = nullptr;
  int descriptors_max_ = 0;
  Stream* held_ = nullptr;
  std::atomic<int> held_readable_{0};  // of them, those that are asked for kReadable
  Pool<Stream, kSpare> streams_;
  Pool<Buffer, 4> buffers_;
};

}  // namespace mplite
