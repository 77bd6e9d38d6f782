// The socket at which a rank is asked what it waits for.
#include "mplite/runtime/report_socket.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "mplite/base/descriptor.h"

namespace mplite {
namespace {

constexpr char kPrefix[] = "ch_lite/report/";
constexpr int kWaitingMax = 8;  // who asks at a time
constexpr int kBufferBytes = 512 * 1024;

// Whether the process at the other end may know what this one knows.
bool may_ask(int fd) {
  ucred who = {};
  socklen_t size = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
         (who.uid == 0 || who.uid == geteuid());
}

// Who has asked and gone does not.
bool still_waits(int fd) {
  char byte = 0;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

std::atomic<ReportSocket*> g_open{nullptr};

}  // namespace

socklen_t format_report_socket(const ReportSocketName& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s%d/%d/%d",
                                   kPrefix, name.pid, name.rank, name.size);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                static_cast<std::size_t>(length));
}

bool parse_report_socket(const char* path, ReportSocketName& name) {
  char prefix[sizeof kPrefix + 1];
  std::snprintf(prefix, sizeof prefix, "@%s", kPrefix);
  const std::size_t length = std::strlen(prefix);
  if (std::strncmp(path, prefix, length) != 0) return false;
  ReportSocketName found;
  int used = 0;
  if (std::sscanf(path + length, "%9d/%9d/%9d%n", &found.pid, &found.rank, &found.size, &used) !=
          3 ||
      path[length + static_cast<std::size_t>(used)] != '\0')
    return false;
  if (found.pid < 1 || found.rank < 0 || found.rank >= found.size) return false;
  name = found;
  return true;
}

void ReportSocket::open(int rank, int size) {
  sockaddr_un address;
  const socklen_t length = format_report_socket({getpid(), rank, size}, address);
  const int fd =
      above_standard_streams(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd < 0) return;
  struct stat status = {};
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(fd, kWaitingMax) != 0 || fstat(fd, &status) != 0) {
    ::close(fd);
    return;
  }
  watch_forks();
  fd_ = fd;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  due_ns_.store(0);
}

void ReportSocket::watch_forks() {
  static const bool kRegistered = pthread_atfork(nullptr, nullptr, after_fork_in_child) == 0;
  g_open.store(kRegistered ? this : nullptr);
}

// The name would stay taken, and callers unanswered, as long as the child lives.
void ReportSocket::after_fork_in_child() {
  if (ReportSocket* socket = g_open.load(); socket != nullptr) socket->close();
}

void ReportSocket::close() {
  ReportSocket* self = this;
  g_open.compare_exchange_strong(self, nullptr);
  if (is_ours()) ::close(fd_);
  fd_ = -1;
  due_ns_.store(INT64_MAX);
}

bool ReportSocket::is_ours() const {
  struct stat status = {};
  return fd_ >= 0 && fstat(fd_, &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

int ReportSocket::accept(std::int64_t now_ns) {
  due_ns_.store(now_ns + kPeriodNs, std::memory_order_relaxed);
  if (!is_ours()) {
    close();
    return -1;
  }
  for (int i = 0; i < kLooks; ++i) {
    const int fd =
        above_standard_streams(accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd < 0 || (may_ask(fd) && still_waits(fd))) return fd;
    ::close(fd);
  }
  return -1;
}

void ReportSocket::send_report(int fd, const char* text, std::size_t length) {
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
  for (std::size_t sent = 0; sent < length;) {
    const ssize_t n = send(fd, text + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    sent += static_cast<std::size_t>(n);
  }
  ::close(fd);
}

}  // namespace mplite
