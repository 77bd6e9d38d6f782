// Ranks on other hosts for lite-mprun: machine file, frames, remote shell, agent.
#include "mplite/launch/mprun_remote.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include "mplite/runtime/wireup.h"

namespace mprun {

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

bool write_all(int fd, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t n = write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd p = {fd, POLLOUT, 0};
      poll(&p, 1, -1);
      continue;
    }
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

namespace {

constexpr std::size_t kHeaderBytes = 5;
constexpr std::size_t kFrameMax = std::size_t{1} << 30;
constexpr char kFrameTypes[] = "STIBOE";
constexpr std::size_t kLineMax = 160;  // of what is shown of a foreign line
constexpr std::size_t kUnreadMax = 1 << 20;

bool send_frame(FrameType type, const void* payload, std::size_t length) {
  std::vector<std::uint8_t> frame;
  append_frame(frame, type, payload, length);
  return write_all(STDOUT_FILENO, frame.data(), frame.size());
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// ---- the agent ----

struct Agent {
  Greeting greeting{kLauncherWord, 0};  // nothing speaks before the launcher
  FrameReader reader;
  pid_t rank = -1;
  int pair = -1;                     // the rank's MPLITE_FD
  int input = -1;                    // its standard input
  std::vector<std::uint8_t> unread;  // what it has not taken of that
  bool input_ends = false;
  bool has_table = false;
  int output = -1;  // its standard output
  std::uint8_t card[mplite::kCardBytes];
  std::size_t heard = 0;
  bool orphan = false;           // the launcher is gone
  std::int64_t kill_at_ns = -1;  // by now_ns(); -1: never
};

bool start_rank(Agent& a, const std::uint8_t* order, std::size_t length) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < length;) {
    words.emplace_back(reinterpret_cast<const char*>(order + at));
    at += words.back().size() + 1;
  }
  const std::size_t settings =
      words.size() > 3 ? static_cast<std::size_t>(std::atoi(words[3].c_str())) : 0;
  if (words.size() < 5 + settings) {
    std::fprintf(stderr,
                 "lite-mprun --agent: not an order of lite-mprun's (is it the same version on both "
                 "hosts?)\n");
    return false;
  }
  int pair[2], in[2], out[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 || pipe2(in, O_CLOEXEC) != 0 ||
      pipe2(out, O_CLOEXEC) != 0) {
    std::fprintf(stderr, "lite-mprun --agent: rank %s: %s\n", words[0].c_str(), strerror(errno));
    return false;
  }
  const pid_t parent = getpid();
  a.rank = fork();
  if (a.rank == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    dup2(in[0], 0);
    dup2(out[1], 1);
    fcntl(pair[1], F_SETFD, 0);
    setenv("MPLITE_RANK", words[0].c_str(), 1);
    setenv("MPLITE_SIZE", words[1].c_str(), 1);
    setenv("MPLITE_FD", std::to_string(pair[1]).c_str(), 1);
    for (std::size_t i = 0; i < settings; ++i) putenv(words[4 + i].data());
    // Nobody promises that the other host has it.
    if (chdir(words[2].c_str()) != 0)
      std::fprintf(stderr,
                   "lite-mprun: rank %s: the directory %s is not here (%s); it starts in the home "
                   "directory\n",
                   words[0].c_str(), words[2].c_str(), strerror(errno));
    std::vector<char*> command;
    for (std::size_t i = 4 + settings; i < words.size(); ++i) command.push_back(words[i].data());
    command.push_back(nullptr);
    execvp(command[0], command.data());
    std::fprintf(stderr, "lite-mprun: rank %s: %s: %s\n", words[0].c_str(), command[0],
                 strerror(errno));
    _exit(127);
  }
  close(pair[1]);
  close(in[0]);
  close(out[1]);
  a.pair = pair[0];
  a.input = in[1];
  fcntl(a.input, F_SETFL, O_NONBLOCK);
  a.output = out[0];
  return a.rank > 0;
}

void end_rank(Agent& a, int signal) {
  if (a.rank > 0) kill(a.rank, signal);
  a.kill_at_ns = now_ns() + kGraceNs;
}

// For poll(): until the rank is killed, whatever it says meanwhile.
int until_killed_ms(const Agent& a) {
  if (a.kill_at_ns < 0) return -1;
  return static_cast<int>(
      std::max<std::int64_t>((a.kill_at_ns - now_ns() + 999'999) / 1'000'000, 0));
}

// Bytes from the launcher. False: not to be understood.
bool hear_launcher(Agent& a) {
  std::uint8_t bytes[65536];
  const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (n <= 0) {
    a.orphan = true;
    end_rank(a, SIGTERM);
    return true;
  }
  std::size_t of_greeting = 0;
  if (a.greeting.state() != Greeting::State::kHeard)
    of_greeting = a.greeting.add(bytes, static_cast<std::size_t>(n));
  if (a.greeting.state() == Greeting::State::kTooLong) {
    std::fprintf(stderr,
                 "lite-mprun --agent: this is for lite-mprun itself (is it the same version on "
                 "both hosts?); it was told:\n%s",
                 a.greeting.text("  | ", 4).c_str());
    return false;
  }
  a.reader.add(bytes + of_greeting, static_cast<std::size_t>(n) - of_greeting);
  FrameType type;
  const std::uint8_t* payload;
  std::size_t length;
  while (a.reader.next(type, payload, length)) {
    if (type == FrameType::kStart && a.rank < 0) {
      if (!start_rank(a, payload, length)) return false;
    } else if (type == FrameType::kTable && a.pair >= 0) {
      a.has_table = true;
      write_all(a.pair, payload, length);  // when the rank is gone its end says so
      close(a.pair);
      a.pair = -1;
    } else if (type == FrameType::kInput) {
      a.unread.insert(a.unread.end(), payload, payload + length);
      a.input_ends = length == 0;
    }
  }
  if (a.reader.broken())
    std::fprintf(stderr,
                 "lite-mprun --agent: not an order of lite-mprun's (is it the same version on both "
                 "hosts? is a terminal in between? LITE_RSH must not ask for one)\n");
  return !a.reader.broken();
}

void pass_input(Agent& a) {
  const ssize_t n = a.unread.empty() ? 0 : write(a.input, a.unread.data(), a.unread.size());
  if (n > 0) a.unread.erase(a.unread.begin(), a.unread.begin() + n);
  if ((n < 0 && errno != EAGAIN && errno != EINTR) || (a.unread.empty() && a.input_ends)) {
    close(a.input);
    a.input = -1;
  }
}

// What the rank has written. False: that was all.
bool pass_output(Agent& a) {
  std::uint8_t bytes[65536];
  const ssize_t n = read(a.output, bytes, sizeof bytes);
  if (n > 0) send_frame(FrameType::kOutput, bytes, static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

bool read_machine_file(const char* path, int ranks, std::vector<std::string>& hosts,
                       std::string& error) {
  std::ifstream file(path);
  if (!file) {
    error = std::string(path) + ": " + strerror(errno);
    return false;
  }
  std::vector<std::string> places;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string host;
    if (!(words >> host)) continue;
    long count = 1;
    const std::size_t colon = host.rfind(':');
    if (colon != std::string::npos) {
      char* rest = nullptr;
      count = std::strtol(host.c_str() + colon + 1, &rest, 10);
      if (*rest != 0 || rest == host.c_str() + colon + 1 || count < 1 || count > 4096) {
        error = std::string(path) + " line " + std::to_string(number) + ": " + host +
                " is not HOST or HOST:NUMBER";
        return false;
      }
      host.resize(colon);
    }
    // A name that begins with - would be an option of the remote shell's.
    if (host.empty() || host[0] == '-') {
      error = std::string(path) + " line " + std::to_string(number) + ": no host name";
      return false;
    }
    places.insert(places.end(), static_cast<std::size_t>(count), host);
  }
  if (places.empty()) {
    error = std::string(path) + " names no hosts";
    return false;
  }
  for (int i = 0; i < ranks; ++i)
    hosts.push_back(places[static_cast<std::size_t>(i) % places.size()]);
  return true;
}

bool is_this_host(const std::string& host) {
  if (host == "localhost") return true;
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return false;
  const std::string own = name;
  return host == own || host == own.substr(0, own.find('.')) ||
         host.substr(0, host.find('.')) == own;
}

// Whether the word may begin where a banner may end at the latest: it may be here in part.
bool Greeting::may_still_come() const {
  const std::string_view heard = heard_;
  std::size_t at = heard.size() < word_.size() ? 0 : heard.size() - (word_.size() - 1);
  for (; at <= std::min(banner_max_, heard.size()); ++at)
    if (word_.starts_with(heard.substr(at))) return true;
  return false;
}

std::size_t Greeting::add(const void* bytes, std::size_t length) {
  const std::size_t before = heard_.size();
  heard_.append(static_cast<const char*>(bytes), length);
  const std::size_t from =
      before < word_.size() ? 0 : before - (word_.size() - 1);  // it may have come in part
  const std::size_t at = heard_.find(word_, from);
  if (at == std::string::npos || at > banner_max_) {
    if (!may_still_come()) state_ = State::kTooLong;
    return length;
  }
  heard_.resize(at);
  state_ = State::kHeard;
  return at + word_.size() - before;
}

std::string Greeting::text(const std::string& prefix, std::size_t lines) const {
  std::string shown;
  std::size_t at = 0;
  for (; at < heard_.size() && lines > 0; --lines) {
    const std::size_t end = std::min(heard_.find('\n', at), heard_.size());
    shown += prefix;
    for (std::size_t i = at; i < std::min(end, at + kLineMax); ++i) {
      const auto c = static_cast<unsigned char>(heard_[i]);
      if (c != '\r' || i + 1 != end)
        shown += (c >= 0x20 && c < 0x7f) || c == '\t' ? heard_[i] : '?';
    }
    shown += end > at + kLineMax ? " ...\n" : "\n";
    at = end + 1;
  }
  if (at < heard_.size())
    shown += prefix + "... and " + std::to_string(heard_.size() - at) + " bytes more\n";
  return shown;
}

void FrameReader::add(const void* bytes, std::size_t length) {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  bytes_.insert(bytes_.end(), from, from + length);
}

bool FrameReader::next(FrameType& type, const std::uint8_t*& payload, std::size_t& length) {
  if (bytes_.size() - at_ < kHeaderBytes) return false;
  std::uint32_t size;
  std::memcpy(&size, bytes_.data() + at_ + 1, sizeof size);
  if (size > kFrameMax || std::strchr(kFrameTypes, bytes_[at_]) == nullptr || bytes_[at_] == 0)
    broken_ = true;
  if (broken_ || bytes_.size() - at_ < kHeaderBytes + size) return false;
  type = static_cast<FrameType>(bytes_[at_]);
  payload = bytes_.data() + at_ + kHeaderBytes;
  length = size;
  at_ += kHeaderBytes + size;
  return true;
}

void append_frame(std::vector<std::uint8_t>& out, FrameType type, const void* payload,
                  std::size_t length) {
  const auto size = static_cast<std::uint32_t>(length);
  const auto* bytes = static_cast<const std::uint8_t*>(payload);
  const std::size_t at = out.size();
  out.resize(at + kHeaderBytes);
  out[at] = static_cast<std::uint8_t>(type);
  std::memcpy(out.data() + at + 1, &size, sizeof size);
  out.insert(out.end(), bytes, bytes + length);
}

std::vector<std::uint8_t> make_order(int rank, int size, const std::vector<std::string>& settings,
                                     char** command) {
  char directory[PATH_MAX];
  if (getcwd(directory, sizeof directory) == nullptr) std::strcpy(directory, "/");
  std::vector<std::string> words = {std::to_string(rank), std::to_string(size), directory,
                                    std::to_string(settings.size())};
  words.insert(words.end(), settings.begin(), settings.end());
  for (; *command != nullptr; ++command) words.emplace_back(*command);
  std::vector<std::uint8_t> order;
  for (const std::string& word : words)
    order.insert(order.end(), word.c_str(), word.c_str() + word.size() + 1);
  return order;
}

pid_t start_remote(const std::string& host, int& fd) {
  char self[PATH_MAX] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return -1;
  const char* shell = std::getenv("LITE_RSH");
  std::vector<std::string> words;
  std::istringstream text(shell != nullptr && *shell != 0 ? shell : "ssh");
  for (std::string word; text >> word;) words.push_back(word);
  if (words.empty()) words.push_back("ssh");
  words.push_back(host);
  words.push_back("exec " + quoted(self) +
                  " --agent");  // nothing else: a command line can be read by everybody
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return -1;
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(pair[1], 0);
    dup2(pair[1], 1);
    std::vector<char*> command;
    for (std::string& word : words) command.push_back(word.data());
    command.push_back(nullptr);
    execvp(command[0], command.data());
    std::fprintf(
        stderr,
        "lite-mprun: %s: %s (LITE_RSH names the command that starts processes on other hosts)\n",
        command[0], strerror(errno));
    _exit(127);
  }
  close(pair[1]);
  if (pid < 0) {
    close(pair[0]);
    return -1;
  }
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  fd = pair[0];
  return pid;
}

int run_agent() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  const int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) return 1;
  Agent a;
  if (!write_all(STDOUT_FILENO, kAgentWord.data(), kAgentWord.size())) return 1;
  for (;;) {
    // A rank that does not read holds back its own input; the table, which comes by the same way,
    // and the end of the launcher it does not.
    const short listen = a.unread.size() < kUnreadMax || !a.has_table ? POLLIN : 0;
    const bool feed = !a.unread.empty() || a.input_ends;
    pollfd polls[5] = {{signals, POLLIN, 0},
                       {a.orphan ? -1 : STDIN_FILENO, listen, 0},
                       {a.output, POLLIN, 0},
                       {a.pair, POLLIN, 0},
                       {feed ? a.input : -1, POLLOUT, 0}};
    if (a.heard == sizeof a.card) polls[3].fd = -1;
    const int n = poll(polls, 5, until_killed_ms(a));
    if (until_killed_ms(a) == 0) end_rank(a, SIGKILL);
    if (n <= 0) continue;
    if (polls[4].revents != 0) pass_input(a);
    if (polls[2].revents != 0 && !pass_output(a)) {
      close(a.output);
      a.output = -1;
    }
    if (polls[3].revents != 0) {
      const ssize_t got = read(a.pair, a.card + a.heard, sizeof a.card - a.heard);
      if (got > 0) a.heard += static_cast<std::size_t>(got);
      if (a.heard == sizeof a.card && !send_frame(FrameType::kCard, a.card, sizeof a.card))
        end_rank(a, SIGTERM);
      if (got == 0) {
        close(a.pair);
        a.pair = -1;
      }
    }
    if (polls[1].revents != 0 && !hear_launcher(a)) return 1;
    if (a.orphan && a.rank < 0) return 1;
    if (polls[0].revents != 0) {
      signalfd_siginfo info;
      while (read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        if (info.ssi_signo != SIGCHLD) end_rank(a, static_cast<int>(info.ssi_signo));
      int status = 0;
      if (a.rank > 0 && waitpid(a.rank, &status, WNOHANG) == a.rank) {
        if (a.output >= 0) {
          fcntl(a.output, F_SETFL, O_NONBLOCK);
          std::uint8_t bytes[65536];
          for (ssize_t got; (got = read(a.output, bytes, sizeof bytes)) > 0;)
            send_frame(FrameType::kOutput, bytes, static_cast<std::size_t>(got));
        }
        const std::int32_t code = status;
        send_frame(FrameType::kEnd, &code, sizeof code);
        return 0;
      }
    }
  }
}

}  // namespace mprun
