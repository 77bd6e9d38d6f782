// The ranks of this host's jobs, and what each says that it waits for.
#include "mplite/launch/job_reports.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "mplite/config/values.h"

namespace mplite {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTextMax = std::size_t{1} << 20;  // of one answer
constexpr unsigned kListens = 0x10000;                  // of /proc/net/unix: __SO_ACCEPTCON

// Whether the process that listens there is the one of the name.
bool is_as_named(int fd, const ReportSocketName& who) {
  ucred listener = {};
  socklen_t size = sizeof listener;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &size) == 0 && listener.pid == who.pid;
}

constexpr int kNobody = -1;  // no process, or another one
constexpr int kLater = -2;   // others ask just now

// A descriptor, or one of these.
int ask(const RankReport& rank) {
  sockaddr_un address;
  const socklen_t length = format_report_socket(rank.who, address);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return kLater;
  const bool called = connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0;
  if (called && is_as_named(fd, rank.who)) return fd;
  const bool later = !called && errno == EAGAIN;
  close(fd);
  return later ? kLater : kNobody;
}

// False: nothing more will come.
bool read_more(int fd, std::string& text) {
  char part[16384];
  for (;;) {
    const ssize_t n = recv(fd, part, sizeof part, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0 || text.size() > kTextMax) return false;
    text.append(part, static_cast<std::size_t>(n));
  }
}

// What came goes to a terminal.
void keep_whole_lines(std::string& text) {
  const std::size_t end = text.rfind('\n');
  text.resize(end == std::string::npos ? 0 : end + 1);
  std::replace(text.begin(), text.end(), '\0', '?');
  for (char *line = text.data(), *after; *line != '\0'; line = after + 1) {
    after = std::strchr(line, '\n');
    *after = '\0';
    make_printable(line);
    *after = '\n';
  }
}

std::string folder_of(int pid) { return "/proc/" + std::to_string(pid); }

// The line of proc(5), stat: "pid (command) state parent"; the command may have anything in it.
bool read_stat(const std::string& path, ProcessState& state) {
  char line[1024];
  std::FILE* in = std::fopen(path.c_str(), "re");
  if (in == nullptr) return false;
  const bool read = std::fgets(line, sizeof line, in) != nullptr;
  std::fclose(in);
  char* open = read ? std::strchr(line, '(') : nullptr;
  char* close = read ? std::strrchr(line, ')') : nullptr;
  if (open == nullptr || close == nullptr || close < open) return false;
  *close = '\0';
  make_printable(open + 1);
  state.command = open + 1;
  return std::sscanf(close + 1, " %c %d", &state.state, &state.parent) == 2;
}

// The main thread may sleep, or have ended, while others run.
void look_at_threads(int pid, ProcessState& state) {
  // it may end meanwhile: no exception
  std::error_code error;
  std::filesystem::directory_iterator task(folder_of(pid) + "/task", error);
  for (; !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    ProcessState thread;
    if (!read_stat((task->path() / "stat").string(), thread)) continue;
    if (thread.state == 'R') state.state = 'R';
    if (state.state == 'Z' && thread.state != 'Z') state.state = thread.state;
  }
}

bool is_below(int pid, int ancestor) {
  ProcessState state;
  while (pid > 0 && pid != ancestor) {
    if (!read_stat(folder_of(pid) + "/stat", state)) return false;
    pid = state.parent;
  }
  return pid == ancestor;
}

// At most so many at a time: descriptors are few.
constexpr std::size_t kAtATime = 200;

void ask_some(RankReport* ranks, std::size_t count, int limit_ms) {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(limit_ms);
  std::vector<pollfd> asked(count, {kLater, POLLIN, 0});
  for (;;) {
    bool open = false, later = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (asked[i].fd == kLater) asked[i].fd = ask(ranks[i]);
      ranks[i].asked = asked[i].fd >= 0 || ranks[i].asked;
      open = open || asked[i].fd >= 0;
      later = later || asked[i].fd == kLater;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if ((!open && !later) || left <= 0) break;
    constexpr std::int64_t kRetryMs = 20;
    const std::int64_t rest = later ? std::min<std::int64_t>(left, kRetryMs) : left;
    if (poll(asked.data(), count, static_cast<int>(rest)) < 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < count; ++i) {
      if (asked[i].fd < 0 || asked[i].revents == 0 || read_more(asked[i].fd, ranks[i].text))
        continue;
      close(asked[i].fd);
      asked[i].fd = kNobody;
    }
  }
  for (const pollfd& p : asked)
    if (p.fd >= 0) close(p.fd);
}

}  // namespace

bool read_process_state(int pid, ProcessState& state) {
  const std::string folder = folder_of(pid);
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0 || !read_stat(folder + "/stat", state)) return false;
  look_at_threads(pid, state);
  state.may_be_asked = geteuid() == 0 || status.st_uid == geteuid();
  return true;
}

std::vector<RankReport> find_ranks(int below) {
  std::vector<RankReport> ranks;
  std::FILE* in = std::fopen("/proc/net/unix", "re");
  if (in == nullptr) return ranks;
  char line[512], path[256];
  while (std::fgets(line, sizeof line, in) != nullptr) {
    unsigned flags = 0;
    RankReport rank;
    if (std::sscanf(line, "%*s %*s %*s %x %*s %*s %*s %255s", &flags, path) != 2) continue;
    if ((flags & kListens) == 0 || !parse_report_socket(path, rank.who)) continue;
    if (!read_process_state(rank.who.pid, rank.process) || !rank.process.may_be_asked) continue;
    if (below != 0 && !is_below(rank.who.pid, below)) continue;
    ranks.push_back(rank);
  }
  std::fclose(in);
  std::sort(ranks.begin(), ranks.end(), [](const RankReport& a, const RankReport& b) {
    return std::tie(a.process.parent, a.who.size, a.who.rank, a.who.pid) <
           std::tie(b.process.parent, b.who.size, b.who.rank, b.who.pid);
  });
  return ranks;
}

void ask_ranks(std::vector<RankReport>& ranks, int limit_ms) {
  for (std::size_t i = 0; i < ranks.size(); i += kAtATime)
    ask_some(&ranks[i], std::min(kAtATime, ranks.size() - i), limit_ms);
  for (RankReport& rank : ranks) {
    keep_whole_lines(rank.text);
    if (!read_process_state(rank.who.pid, rank.process)) rank.process.state = 'X';
  }
}

}  // namespace mplite
