// The listening socket and its shortages.
#include "mplite/engine/listener.h"

#include <cerrno>

namespace mplite {

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

Listener::~Listener() {
  if (fd_ >= 0) net_.close(fd_);
  if (spare_ >= 0) net_.close(spare_);
}

int Listener::start() {
  if (fd_ < 0) return 0;
  ++counters_.other_calls;
  return net_.watch(fd_, kToken, kReadable);
}

int Listener::accept(sockaddr_storage& from) {
  ++counters_.other_calls;
  return net_.accept(fd_, from);
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
  net_.unwatch(fd_);
  ++counters_.other_calls;
  resumes_ns_ = net_.now_ns() + kRetryNs;
  if (counts) ++failed_;
  return news;
}

void Listener::resume_when_due(std::int64_t now_ns) {
  if (!paused() || now_ns < resumes_ns_) return;
  resumes_ns_ = net_.watch(fd_, kToken, kReadable) == 0 ? 0 : net_.now_ns() + kRetryNs;
  ++counters_.other_calls;
}

int Listener::hear(int signo) {
  const int rc = net_.watch_caller(fd_, kToken, false);
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

void Listener::rest() {
  if (hearing_) rests_until_ns_ = net_.now_ns() + Allowance::kRestNs;
}

std::int64_t Listener::rest_ns() {
  if (rests_until_ns_ == 0) return 0;
  const std::int64_t rest_ns = rests_until_ns_ - net_.now_ns();
  if (rest_ns > 0) return rest_ns;
  rests_until_ns_ = 0;
  return 0;
}

}  // namespace mplite
