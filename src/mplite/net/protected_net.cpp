// Streams of records on top of a socket layer.
#include "mplite/net/protected_net.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mplite {
namespace {

std::uint64_t bytes_of(const iovec* iov, int iovs) {
  std::uint64_t sum = 0;
  for (int i = 0; i < iovs; ++i) sum += iov[i].iov_len;
  return sum;
}

// Whether the next `bytes` are in one piece: it.
std::uint8_t* piece_of(const IovCursor& at, std::uint64_t bytes) {
  return at.piece->iov_len - at.into >= bytes
             ? static_cast<std::uint8_t*>(at.piece->iov_base) + at.into
             : nullptr;
}

}  // namespace

ProtectedNet::~ProtectedNet() { std::free(by_fd_); }

bool ProtectedNet::start(int descriptors_max) {
  by_fd_ = static_cast<Stream**>(
      std::calloc(static_cast<std::size_t>(descriptors_max), sizeof(Stream*)));
  if (by_fd_ == nullptr) return false;
  descriptors_max_ = descriptors_max;
  return refill();
}

// Two for each stream, so that the handler never lacks one.
bool ProtectedNet::refill() {
  const bool streams = streams_.reserve(kSpare);
  const std::uint32_t all = 2 * (streams_.used_count() + streams_.free_count());
  const bool buffers = buffers_.reserve(all - std::min(all, buffers_.used_count()));
  return streams && buffers && below_.refill();
}

bool ProtectedNet::may_protect(int fd) {
  if (fd >= descriptors_max_) return false;
  const std::uint32_t buffers = buffers_.used_count() + buffers_.free_count();
  if (by_fd_[fd] == nullptr && buffers >= 2 * (streams_.used_count() + 1))
    by_fd_[fd] = streams_.take();
  return by_fd_[fd] != nullptr;
}

void ProtectedNet::protect(int fd, std::uint64_t token, const StreamKeys& keys) {
  Stream* const s = by_fd_[fd];
  s->begun = true;
  s->token = token;
  s->out.start(keys.agreed, keys.send);
  s->in.start(keys.agreed, keys.receive);
}

void ProtectedNet::close(int fd) {
  if (Stream* const s = fd < descriptors_max_ ? by_fd_[fd] : nullptr; s != nullptr) {
    hold(*s, false);
    if (s->sealed != nullptr) give(s->sealed);
    if (s->heard != nullptr) give(s->heard);
    s->out.forget();
    s->in.forget();
    streams_.give(s);
    by_fd_[fd] = nullptr;
  }
  below_.close(fd);
}

// ---- readiness ----

void ProtectedNet::count(const Stream& s, int by) {
  if ((s.interest & kReadable) != 0) held_readable_.fetch_add(by);
}

void ProtectedNet::hold(Stream& s, bool held) {
  if (s.held == held) return;
  s.held = held;
  count(s, held ? 1 : -1);
  if (held) {
    s.held_previous = nullptr;
    s.held_next = held_;
    if (held_ != nullptr) held_->held_previous = &s;
    held_ = &s;
  } else {
    (s.held_previous != nullptr ? s.held_previous->held_next : held_) = s.held_next;
    if (s.held_next != nullptr) s.held_next->held_previous = s.held_previous;
  }
}

// After a read: whether the next one would give something without the socket.
void ProtectedNet::note_input(Stream& s) {
  bool held = s.content_begin != s.content_end || s.has_ended;
  if (!held && s.heard != nullptr) {
    const std::uint32_t there = s.heard->end - s.heard->begin;
    if (there >= kRecordHeadBytes) {
      const std::uint32_t bytes = RecordCipher::content_bytes(s.heard->bytes + s.heard->begin);
      held = bytes == 0 || there >= bytes + kRecordExtraBytes;
    }
    if (there == 0) give(s.heard);
  }
  hold(s, held);
}

int ProtectedNet::held_input(NetEvent* events, int events_max) {
  int listed = 0;
  for (const Stream* s = events_max > 0 ? held_ : nullptr; s != nullptr && listed < events_max;
       s = s->held_next)
    if ((s->interest & kReadable) != 0) events[listed++] = {s->token, kReadable};
  return held_readable_.load();
}

void ProtectedNet::set_interest(int fd, unsigned interest) {
  Stream* const s = stream_of(fd);
  if (s == nullptr) return;
  if (s->held) count(*s, -1);
  s->interest = interest;
  if (s->held) count(*s, 1);
}

int ProtectedNet::watch(int fd, std::uint64_t token, unsigned interest) {
  set_interest(fd, interest);
  return below_.watch(fd, token, interest);
}

int ProtectedNet::rewatch(int fd, std::uint64_t token, unsigned interest) {
  set_interest(fd, interest);
  return below_.rewatch(fd, token, interest);
}

int ProtectedNet::unwatch(int fd) {
  set_interest(fd, 0);
  return below_.unwatch(fd);
}

// What is asked for has yet to come, but for less than a record of it.
int ProtectedNet::set_receive_low_water(int fd, int bytes) {
  constexpr int kHere = kRecordBytesMax;
  if (stream_of(fd) != nullptr) bytes = bytes > kHere ? bytes - kHere : 1;
  return below_.set_receive_low_water(fd, bytes);
}

std::int64_t ProtectedNet::unacknowledged(int fd) {
  const Stream* const s = stream_of(fd);
  const std::int64_t below = below_.unacknowledged(fd);
  if (s == nullptr || below < 0) return below;
  const std::int64_t left = s->sealed != nullptr ? s->sealed->end - s->sealed->begin : 0;
  return below + left == 0 ? 0 : below + left + kRecordBytesMax;
}

// ---- the way in ----

// Content that was opened before.
std::uint64_t ProtectedNet::take_content(Stream& s, Place& to) {
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(s.content_end - s.content_begin, to.left));
  if (bytes == 0) return 0;
  to.at.scatter(s.heard->bytes + s.content_begin, bytes);
  to.left -= bytes;
  s.content_begin += bytes;
  return bytes;
}

// Opens the next record, straight to where it is read to if it fits there. False: it is not here
// yet, or is none.
bool ProtectedNet::open_next(Stream& s, Place& to, std::uint64_t& read) {
  Buffer& heard = *s.heard;
  const std::uint32_t there = heard.end - heard.begin;
  if (there < kRecordHeadBytes) return false;
  std::uint8_t* const record = heard.bytes + heard.begin;
  const std::uint32_t bytes = RecordCipher::content_bytes(record);
  if (bytes != 0 && there < bytes + kRecordExtraBytes) return false;
  std::uint8_t* const whole = bytes <= to.left ? piece_of(to.at, bytes) : nullptr;
  if (bytes == 0 ||
      !s.in.open(record, bytes, whole != nullptr ? whole : record + kRecordHeadBytes)) {
    s.has_ended = true;
    s.end = -EBADMSG;
    return false;
  }
  if (whole != nullptr) {
    to.at.skip(bytes);
    to.left -= bytes;
    read += bytes;
  } else {
    s.content_begin = heard.begin + kRecordHeadBytes;
    s.content_end = s.content_begin + bytes;
  }
  heard.begin += bytes + kRecordExtraBytes;
  return true;
}

// More records from the socket. False: nothing came.
bool ProtectedNet::fetch(int fd, Stream& s, bool& drained) {
  Buffer& heard = *s.heard;
  if (heard.begin == heard.end) {
    heard.begin = heard.end = 0;
  } else if (heard.begin > 0) {
    std::memmove(heard.bytes, heard.bytes + heard.begin, heard.end - heard.begin);
    heard.end -= heard.begin;
    heard.begin = 0;
  }
  const iovec part = {heard.bytes + heard.end, Buffer::kBytes - heard.end};
  const std::int64_t n = below_.read(fd, &part, 1);
  drained = n < static_cast<std::int64_t>(part.iov_len);
  if (n == -EAGAIN) return false;
  if (n <= 0) {
    s.has_ended = true;
    s.end = n;
    return false;
  }
  heard.end += static_cast<std::uint32_t>(n);
  return true;
}

std::int64_t ProtectedNet::read(int fd, const iovec* iov, int iovs) {
  Stream* const s = stream_of(fd);
  if (s == nullptr) return below_.read(fd, iov, iovs);
  if (s->has_ended && s->content_begin == s->content_end) return s->end;
  if (s->heard == nullptr && (s->heard = buffers_.take()) == nullptr)
    return -EAGAIN;  // in the handler: it stays in the socket, of which epoll tells
  Place to = {{iov, 0}, bytes_of(iov, iovs)};
  std::uint64_t read = take_content(*s, to);
  bool drained = false;
  while (to.left > 0 && !s->has_ended) {
    if (open_next(*s, to, read))
      read += take_content(*s, to);
    else if (s->has_ended || drained || !fetch(fd, *s, drained))
      break;
  }
  note_input(*s);
  if (read > 0) return static_cast<std::int64_t>(read);
  return s->has_ended ? s->end : -EAGAIN;
}

// ---- the way out ----

// Records of what is next, as many as there is room for. Returns the length of their content.
std::uint64_t ProtectedNet::seal_some(Stream& s, Buffer& buffer, Place& from) {
  std::uint64_t sealed = 0;
  buffer.begin = buffer.end = 0;
  while (from.left > 0 && Buffer::kBytes - buffer.end > kRecordExtraBytes) {
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        {from.left, kRecordBytesMax, Buffer::kBytes - buffer.end - kRecordExtraBytes}));
    std::uint8_t* const record = buffer.bytes + buffer.end;
    const std::uint8_t* content = piece_of(from.at, bytes);
    if (content != nullptr) {
      s.out.seal(content, bytes, record);
      from.at.skip(bytes);
    } else {
      from.at.gather(record + kRecordHeadBytes, bytes);
      s.out.seal(record + kRecordHeadBytes, bytes, record);
    }
    from.left -= bytes;
    sealed += bytes;
    buffer.end += bytes + kRecordExtraBytes;
  }
  return sealed;
}

std::int64_t ProtectedNet::write(int fd, const iovec* iov, int iovs) {
  Stream* const s = stream_of(fd);
  if (s == nullptr) return below_.write(fd, iov, iovs);
  if (s->failed != 0) return s->failed;
  Place from = {{iov, 0}, bytes_of(iov, iovs)};
  std::uint64_t written = 0;
  while (from.left > 0) {
    std::uint64_t content = 1;  // of records that were sealed before, what has not been reported
    if (s->sealed != nullptr) {
      from.at.skip(1);
      --from.left;
    } else {
      if ((s->sealed = buffers_.take()) == nullptr) break;  // in the handler
      content = seal_some(*s, *s->sealed, from);
    }
    Buffer& sealed = *s->sealed;
    const iovec part = {sealed.bytes + sealed.begin, sealed.end - sealed.begin};
    const std::int64_t n = below_.write(fd, &part, 1);
    if (n < 0 && n != -EAGAIN) {
      s->failed = n;
      if (written > 0) break;  // that counts
      return n;
    }
    sealed.begin += n > 0 ? static_cast<std::uint32_t>(n) : 0;
    if (sealed.begin != sealed.end) {
      written += content - 1;
      break;
    }
    give(s->sealed);
    written += content;
  }
  return written > 0 ? static_cast<std::int64_t>(written) : -EAGAIN;
}

}  // namespace mplite
