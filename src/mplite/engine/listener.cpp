// The listening sockets and their shortages.
#include "mplite/engine/listener.h"

#include <cerrno>

namespace mplite {

Listener::Listener(Net& net, Counters& counters, const ListeningSockets& sockets, int spare,
                   int family)
    : net_(net),
      counters_(counters),
      sockets_(sockets),
      spare_(spare),
      family_(family),
      has_spare_(spare >= 0) {
  while (count_ < kAddressesMax && sockets_[static_cast<std::size_t>(count_)] >= 0) ++count_;
}

Listener::~Listener() {
  for_each([this](int fd) { net_.close(fd); });
  if (spare_ >= 0) net_.close(spare_);
}

// All of them, or none: 0 or -errno.
int Listener::watch_all(bool as_callers) {
  for (int i = 0; i < count_; ++i) {
    ++counters_.other_calls;
    const int fd = sockets_[static_cast<std::size_t>(i)];
    const int rc =
        as_callers ? net_.watch_caller(fd, kToken, false) : net_.watch(fd, kToken, kReadable);
    if (rc >= 0) continue;
    while (--i >= 0) {
      const int watched = sockets_[static_cast<std::size_t>(i)];
      as_callers ? net_.unwatch_caller(watched) : net_.unwatch(watched);
    }
    return rc;
  }
  return 0;
}

int Listener::start() { return watch_all(false); }

void Listener::keep_first() {
  for (; count_ > 1; --count_) {
    const int fd = sockets_[static_cast<std::size_t>(count_ - 1)];
    if (!paused()) net_.unwatch(fd);
    net_.close(fd);
    counters_.other_calls += 2;
  }
  turn_ = 0;
}

int Listener::accept(sockaddr_storage& from) {
  int rc = -EAGAIN;
  for (int tries = count_; rc == -EAGAIN && tries > 0; --tries) {
    ++counters_.other_calls;
    rc = net_.accept(sockets_[static_cast<std::size_t>(turn_)], from);
    if (rc == -EAGAIN) turn_ = (turn_ + 1) % count_;
  }
  return rc;
}

bool Listener::give_spare() {
  if (spare_ < 0) return false;
  net_.close(spare_);
  spare_ = -1;
  return true;
}

void Listener::regain_spare() {
  if (!has_spare_ || spare_ >= 0) return;
  const int fd = net_.open_stream(family_);
  ++counters_.other_calls;
  if (fd >= 0) spare_ = fd;
}

bool Listener::pause(bool counts) {
  const bool news = !failing_;
  failing_ = true;
  for_each([this](int fd) {
    net_.unwatch(fd);
    ++counters_.other_calls;
  });
  resumes_ns_ = net_.now_ns() + kRetryNs;
  if (counts) ++failed_;
  return news;
}

void Listener::resume_when_due(std::int64_t now_ns) {
  if (!paused() || now_ns < resumes_ns_) return;
  resumes_ns_ = watch_all(false) == 0 ? 0 : net_.now_ns() + kRetryNs;
}

int Listener::hear(int signo) {
  const int rc = watch_all(true);
  if (rc < 0) return rc;
  signal_ = signo;
  hearing_ = true;
  rests_until_ns_ = 0;
  return 0;
}

void Listener::stop_hearing() {
  signal_ = 0;
  hearing_ = false;
}

void Listener::rest(std::int64_t ns) {
  next_turn();
  if (hearing_) rests_until_ns_ = net_.now_ns() + ns;
}

std::int64_t Listener::rest_ns() {
  if (rests_until_ns_ == 0) return 0;
  const std::int64_t rest_ns = rests_until_ns_ - net_.now_ns();
  if (rest_ns > 0) return rest_ns;
  rests_until_ns_ = 0;
  return 0;
}

}  // namespace mplite
