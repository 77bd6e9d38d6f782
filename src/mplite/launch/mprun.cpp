// lite-mprun: starts the ranks of a program on this host or on those of a machine file, exchanges
// their addresses, and ends them together. The other end of launched.cpp: each rank inherits one
// end of a socket pair (MPLITE_FD), sends its address blob, gets the table. For a rank on another
// host mprun_remote.cpp does that over there.
//
// Exit status: 0 when all ranks ended with 0; else that of the first that did not (128 + signal
// when it was killed); 2 for a wrong command line, 127 when the program cannot be started.
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
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "mplite/config/profile.h"
#include "mplite/launch/mprun_remote.h"
#include "mplite/runtime/wireup.h"

extern char** environ;

namespace {

constexpr int kRanksMax = 4096;
constexpr std::int64_t kGraceNs = 2'000'000'000;  // between SIGTERM and SIGKILL

// The remote shell of a rank on another host; Rank::fd is its standard input and output.
struct Remote {
  std::string host;
  mprun::Greeting greeting{mprun::kAgentWord};
  std::int64_t give_up_ns = 0;  // 0: no deadline; until the agent's word has come, and for the
                                // shell's end once it has said its last
  mprun::FrameReader reader;
  std::vector<std::uint8_t> out;  // for the agent
  std::size_t written = 0;
  bool table_sent = false;
  int status = -1;  // the rank's own, once it has ended
};

struct Rank {
  pid_t pid = -1;
  int fd = -1;            // our end of the pair; -1 once the table went out or the rank ended
  std::size_t heard = 0;  // bytes of its blob
  std::size_t told = 0;   // bytes of the table
  bool running = false;
  std::unique_ptr<Remote> remote;
};

struct Job {
  std::vector<Rank> ranks;
  std::vector<mplite::AddressBlob> table;
  int running = 0;
  int blobs = 0;   // complete ones
  int status = 0;  // what we shall exit with
  bool ending = false;
  std::int64_t kill_at_ns = 0;
  std::vector<std::string> hosts;       // one per rank; empty: all on this one
  std::vector<std::string> settings;    // of -x
  std::int64_t connect_timeout_ns = 0;  // for a remote shell to start the agent
  std::size_t input_passed = 0;         // to a rank 0 on another host
  bool input_open = true;
};

// Before the table has gone to it: it may not read its input before it has started, and the agent
// has to keep it.
constexpr std::size_t kEarlyInputMax = 64 << 20;
constexpr std::size_t kInputAheadMax = 65536;  // read, and not yet taken by the remote shell

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Only our own children, by their ids; an id stays theirs until we have waited for it.
void signal_all(const Job& job, int signal) {
  for (const Rank& r : job.ranks)
    if (r.running) kill(r.pid, signal);
}

void end_job(Job& job, int status, int signal) {
  if (job.ending) return;
  job.ending = true;
  job.status = status;
  job.kill_at_ns = now_ns() + kGraceNs;
  signal_all(job, signal);
}

void usage(std::FILE* out) {
  std::fputs(
      "usage: lite-mprun -n RANKS [-machinefile FILE] [-x NAME=VALUE]... [--] PROGRAM [ARGUMENTS]\n"
      "Starts RANKS copies of an MP_* program (or an MPICH-1 program with the ch_lite device). "
      "Rank 0 gets the standard input.\n"
      "  -n RANKS        how many (1 to 4096)\n"
      "  -machinefile FILE  where: one HOST or HOST:NUMBER per line, ranks in that order, from the "
      "top again when all are taken; without it: here.\n"
      "                  Other hosts are reached by the command LITE_RSH (ssh) within "
      "LITE_CONNECT_TIMEOUT; this program and PROGRAM have to be there\n"
      "                  under the same path.\n"
      "  -x NAME=VALUE   sets a variable for all ranks (LITE_CONTROLLER=thread; lite-info lists "
      "them)\n"
      "Unless LITE_IFACE is set, ranks that are all on this host talk over the loopback "
      "interface.\n",
      out);
}

[[noreturn]] void run_child(int rank, int size, int fd, pid_t parent, const sigset_t& mask,
                            bool all_here, char** command) {
  // If lite-mprun itself is killed its ranks must not stay behind.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  fcntl(fd, F_SETFD, 0);
  char text[16];
  std::snprintf(text, sizeof text, "%d", rank);
  setenv("MPLITE_RANK", text, 1);
  std::snprintf(text, sizeof text, "%d", size);
  setenv("MPLITE_SIZE", text, 1);
  std::snprintf(text, sizeof text, "%d", fd);
  setenv("MPLITE_FD", text, 1);
  if (all_here) setenv("LITE_IFACE", "lo", 0);
  unsetenv("LITE_RSH");  // ours, and no variable of the library
  if (rank > 0) {
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0 && null != 0) {
      dup2(null, 0);
      close(null);
    }
  }
  execvp(command[0], command);
  std::fprintf(stderr, "lite-mprun: rank %d: %s: %s\n", rank, command[0], strerror(errno));
  _exit(127);
}

// LITE_* of our environment, and what -x has set.
std::vector<std::string> settings_for_others(const Job& job) {
  std::vector<std::string> settings = job.settings;
  for (char** at = environ; *at != nullptr; ++at)
    if (std::strncmp(*at, "LITE_", 5) == 0 && std::strncmp(*at, "LITE_RSH=", 9) != 0)
      settings.emplace_back(*at);
  return settings;
}

bool start_elsewhere(Job& job, int index, int size, char** command) {
  Rank& r = job.ranks[static_cast<std::size_t>(index)];
  r.remote = std::make_unique<Remote>();
  r.remote->host = job.hosts[static_cast<std::size_t>(index)];
  const std::vector<std::uint8_t> order =
      mprun::make_order(index, size, settings_for_others(job), command);
  r.remote->out.assign(mprun::kLauncherWord.begin(), mprun::kLauncherWord.end());
  r.remote->give_up_ns = now_ns() + job.connect_timeout_ns;
  mprun::append_frame(r.remote->out, mprun::FrameType::kStart, order.data(), order.size());
  if (index > 0) mprun::append_frame(r.remote->out, mprun::FrameType::kInput, nullptr, 0);
  r.pid = mprun::start_remote(r.remote->host, r.fd);
  if (r.pid < 0) {
    std::fprintf(stderr, "lite-mprun: rank %d: %s\n", index, strerror(errno));
    return false;
  }
  r.running = true;
  ++job.running;
  return true;
}

bool start(Job& job, int size, const sigset_t& mask, char** command) {
  job.ranks.resize(static_cast<std::size_t>(size));
  job.table.resize(static_cast<std::size_t>(size));
  const pid_t parent = getpid();
  bool all_here = true;
  for (const std::string& host : job.hosts) all_here = all_here && mprun::is_this_host(host);
  for (int i = 0; i < size; ++i) {
    if (!job.hosts.empty() && !mprun::is_this_host(job.hosts[static_cast<std::size_t>(i)])) {
      if (!start_elsewhere(job, i, size, command)) return false;
      continue;
    }
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      std::fprintf(stderr, "lite-mprun: rank %d: socket pair: %s (ulimit -n?)\n", i,
                   strerror(errno));
      return false;
    }
    const pid_t pid = fork();
    if (pid == 0) run_child(i, size, pair[1], parent, mask, all_here, command);
    close(pair[1]);
    if (pid < 0) {
      std::fprintf(stderr, "lite-mprun: rank %d: fork: %s (ulimit -u?)\n", i, strerror(errno));
      close(pair[0]);
      return false;
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    Rank& r = job.ranks[static_cast<std::size_t>(i)];
    r.pid = pid;
    r.fd = pair[0];
    r.running = true;
    ++job.running;
  }
  return true;
}

// The remote shell has not brought us the agent, or not in good order: the job ends.
void fail_remote(Job& job, int index, const char* what) {
  Rank& r = job.ranks[static_cast<std::size_t>(index)];
  const mprun::Greeting& greeting = r.remote->greeting;
  if (!job.ending) {
    std::string said;
    if (greeting.state() != mprun::Greeting::State::kHeard) {
      said = greeting.text("  | ", 4);
      said = said.empty() ? "; it said nothing\n" : "; it said:\n" + said;
    }
    std::fprintf(stderr, "lite-mprun: rank %d: the remote shell to %s (LITE_RSH) %s%s", index,
                 r.remote->host.c_str(), what, said.empty() ? "\n" : said.c_str());
  }
  r.remote->give_up_ns = 0;
  if (r.fd >= 0) close(r.fd);
  r.fd = -1;
  end_job(job, 1, SIGTERM);
}

// A deadline has passed.
void give_up_remote(Job& job, int index) {
  if (job.ranks[static_cast<std::size_t>(index)].fd < 0)
    return fail_remote(job, index, "has closed its output, but goes on");
  char text[96];
  std::snprintf(text, sizeof text,
                "has not started lite-mprun --agent within %.1f s (LITE_CONNECT_TIMEOUT)",
                static_cast<double>(job.connect_timeout_ns) * 1e-9);
  fail_remote(job, index, text);
}

// What comes before the agent's word is somebody's greeting: shown, and no harm. Returns how many
// of the bytes it was, -1 when the word does not come.
ssize_t hear_greeting(Job& job, int index, const std::uint8_t* bytes, std::size_t length) {
  Remote& remote = *job.ranks[static_cast<std::size_t>(index)].remote;
  if (remote.greeting.state() == mprun::Greeting::State::kHeard) return 0;
  const std::size_t taken = remote.greeting.add(bytes, length);
  if (remote.greeting.state() == mprun::Greeting::State::kTooLong) {
    fail_remote(job, index, "says much, and not what lite-mprun --agent begins with");
    return -1;
  }
  if (remote.greeting.state() == mprun::Greeting::State::kHeard) {
    remote.give_up_ns = 0;
    std::fputs(remote.greeting.text("lite-mprun: " + remote.host + " says: ", 20).c_str(), stderr);
  }
  return static_cast<ssize_t>(taken);
}

// This rank's card is complete. One that says why the rank cannot start ends the job: the rank
// itself waits for that.
void take_card(Job& job, int index) {
  ++job.blobs;
  char sentence[512];
  if (job.ending || !mplite::is_failed_blob(&job.table[static_cast<std::size_t>(index)], index,
                                            sentence, sizeof sentence))
    return;
  std::fprintf(stderr, "lite-mprun: %s; ending the others\n", sentence);
  end_job(job, 1, SIGTERM);
}

// From and to the agent on another host.
void serve_remote(Job& job, int index) {
  Rank& r = job.ranks[static_cast<std::size_t>(index)];
  Remote& remote = *r.remote;
  if (remote.written < remote.out.size()) {
    const ssize_t n = send(r.fd, remote.out.data() + remote.written,
                           remote.out.size() - remote.written, MSG_NOSIGNAL);
    if (n > 0) remote.written += static_cast<std::size_t>(n);
    if (remote.written == remote.out.size()) {
      remote.out.clear();
      remote.written = 0;
    }
  }
  std::uint8_t bytes[65536];
  for (;;) {
    const ssize_t n = recv(r.fd, bytes, sizeof bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
      close(r.fd);
      r.fd = -1;
      if (remote.status < 0)
        remote.give_up_ns = now_ns() + kGraceNs;  // its end, which tells more, is near
    }
    if (n <= 0) return;
    const ssize_t greeting = hear_greeting(job, index, bytes, static_cast<std::size_t>(n));
    if (greeting < 0) return;
    remote.reader.add(bytes + greeting, static_cast<std::size_t>(n - greeting));
    mprun::FrameType type;
    const std::uint8_t* payload;
    std::size_t length;
    while (remote.reader.next(type, payload, length)) {
      std::int32_t status;
      if (type == mprun::FrameType::kOutput) {
        mprun::write_all(STDOUT_FILENO, payload, length);
      } else if (type == mprun::FrameType::kBlob && length == sizeof(mplite::AddressBlob) &&
                 r.heard == 0) {
        std::memcpy(&job.table[static_cast<std::size_t>(index)], payload, length);
        r.heard = length;
        take_card(job, index);
      } else if (type == mprun::FrameType::kEnd && length == sizeof status) {
        std::memcpy(&status, payload, sizeof status);
        remote.status = status;
      }
    }
    if (remote.reader.broken())
      return fail_remote(job, index,
                         "mixes something into what the agent says; it must not ask for a "
                         "terminal, nor write to the standard output of the command");
  }
}

// Our standard input, for a rank 0 on another host.
void pass_input(Job& job) {
  Rank& r = job.ranks[0];
  std::uint8_t bytes[16384];
  const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) job.input_open = false;
  mprun::append_frame(r.remote->out, mprun::FrameType::kInput, bytes,
                      n > 0 ? static_cast<std::size_t>(n) : 0);
  job.input_passed += n > 0 ? static_cast<std::size_t>(n) : 0;
}

bool wants_input(const Job& job) {
  const Rank& r = job.ranks[0];
  return job.input_open && r.remote != nullptr && r.fd >= 0 &&
         r.remote->out.size() - r.remote->written < kInputAheadMax &&
         (r.remote->table_sent || job.input_passed < kEarlyInputMax);
}

// Moves what this rank's descriptor allows.
void serve(Job& job, int index) {
  Rank& r = job.ranks[static_cast<std::size_t>(index)];
  if (r.fd < 0) return;  // given up meanwhile
  if (r.remote != nullptr) return serve_remote(job, index);
  auto* blob = reinterpret_cast<std::uint8_t*>(&job.table[static_cast<std::size_t>(index)]);
  const std::size_t table_bytes = job.table.size() * sizeof(mplite::AddressBlob);
  ssize_t n = -1;
  if (r.heard < sizeof(mplite::AddressBlob)) {
    n = recv(r.fd, blob + r.heard, sizeof(mplite::AddressBlob) - r.heard, 0);
    if (n > 0) r.heard += static_cast<std::size_t>(n);
    if (n > 0 && r.heard == sizeof(mplite::AddressBlob)) take_card(job, index);
  } else {
    n = send(r.fd, reinterpret_cast<const std::uint8_t*>(job.table.data()) + r.told,
             table_bytes - r.told, MSG_NOSIGNAL);
    if (n > 0) r.told += static_cast<std::size_t>(n);
  }
  const bool broken = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
  if (broken || r.told == table_bytes) {
    close(r.fd);  // when it broke, the rank's end tells what happened
    r.fd = -1;
  }
}

void reap(Job& job) {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (std::size_t i = 0; i < job.ranks.size(); ++i) {
      Rank& r = job.ranks[i];
      if (r.pid != pid || !r.running) continue;
      r.running = false;
      --job.running;
      if (r.remote != nullptr && r.fd >= 0)
        serve_remote(job, static_cast<int>(i));  // its last words
      if (r.fd >= 0) close(r.fd);
      r.fd = -1;
      if (r.remote != nullptr) {
        if (r.remote->status >= 0) {
          status = r.remote->status;
        } else if (!job.ending) {
          // The remote shell has said more on stderr, or the agent has.
          std::fprintf(stderr,
                       "lite-mprun: rank %zu: the remote shell to %s (LITE_RSH) ended before the "
                       "rank did; ending the others\n",
                       i, r.remote->host.c_str());
          if (r.remote->greeting.state() == mprun::Greeting::State::kAwaited)
            std::fputs(r.remote->greeting.text("  | ", 4).c_str(), stderr);
          const int own = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
          end_job(job, own != 0 ? own : 1, SIGTERM);
        }
      }
      const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (job.ending) continue;
      if (failed) {
        if (WIFSIGNALED(status))
          std::fprintf(
              stderr,
              "lite-mprun: rank %zu (process %d) was killed by signal %d (%s); ending the others\n",
              i, static_cast<int>(pid), WTERMSIG(status), strsignal(WTERMSIG(status)));
        else if (code != 127)  // that one has said why
          std::fprintf(
              stderr, "lite-mprun: rank %zu (process %d) ended with status %d; ending the others\n",
              i, static_cast<int>(pid), code);
        end_job(job, code, SIGTERM);
      } else if (job.blobs > 0 && r.heard < sizeof(mplite::AddressBlob)) {
        // The others wait in MP_Init for an address that never comes.
        std::fprintf(
            stderr,
            "lite-mprun: rank %zu ended without MP_Init, which other ranks called; ending them\n",
            i);
        end_job(job, 1, SIGTERM);
      }
    }
  }
}

// Whether somebody waits in MP_Init while somebody else has ended without: found out when the blob
// comes after the end.
void check_stuck(Job& job) {
  if (job.ending || job.blobs == 0) return;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Rank& r = job.ranks[i];
    if (r.running || r.heard == sizeof(mplite::AddressBlob)) continue;
    std::fprintf(
        stderr,
        "lite-mprun: rank %zu ended without MP_Init, which other ranks called; ending them\n", i);
    end_job(job, 1, SIGTERM);
    return;
  }
}

int run(Job& job, int signals) {
  std::vector<pollfd> polls;
  std::vector<int> owner;
  while (job.running > 0) {
    polls.assign(1, pollfd{signals, POLLIN, 0});
    owner.assign(1, -1);
    const bool all_here = !job.ending && job.blobs == static_cast<int>(job.ranks.size());
    for (std::size_t i = 0; i < job.ranks.size(); ++i) {
      const Rank& r = job.ranks[i];
      if (r.fd < 0) continue;
      if (r.remote != nullptr) {
        if (all_here && !r.remote->table_sent) {
          mprun::append_frame(r.remote->out, mprun::FrameType::kTable, job.table.data(),
                              job.table.size() * sizeof(mplite::AddressBlob));
          r.remote->table_sent = true;
        }
        polls.push_back(
            pollfd{r.fd, static_cast<short>(r.remote->out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
        owner.push_back(static_cast<int>(i));
        continue;
      }
      const bool hears = r.heard < sizeof(mplite::AddressBlob);
      if (!hears && !all_here) continue;
      polls.push_back(pollfd{r.fd, static_cast<short>(hears ? POLLIN : POLLOUT), 0});
      owner.push_back(static_cast<int>(i));
    }
    if (wants_input(job)) {
      polls.push_back(pollfd{STDIN_FILENO, POLLIN, 0});
      owner.push_back(-1);
    }
    std::int64_t wake_ns = job.ending ? job.kill_at_ns : 0;
    for (const Rank& r : job.ranks)
      if (r.running && !job.ending && r.remote != nullptr && r.remote->give_up_ns != 0 &&
          (wake_ns == 0 || r.remote->give_up_ns < wake_ns))
        wake_ns = r.remote->give_up_ns;
    int timeout_ms = -1;
    if (wake_ns != 0) {
      const std::int64_t rest = wake_ns - now_ns();
      timeout_ms =
          rest > 0 ? static_cast<int>(std::min<std::int64_t>(rest / 1'000'000 + 1, INT_MAX)) : 0;
    }
    const int n = poll(polls.data(), polls.size(), timeout_ms);
    if (n == 0 && job.ending) {
      signal_all(job, SIGKILL);
      job.kill_at_ns = now_ns() + kGraceNs;
    }
    if (!job.ending && wake_ns != 0 && now_ns() >= wake_ns)
      for (std::size_t i = 0; i < job.ranks.size(); ++i)
        if (job.ranks[i].running && job.ranks[i].remote != nullptr &&
            job.ranks[i].remote->give_up_ns != 0 && now_ns() >= job.ranks[i].remote->give_up_ns)
          give_up_remote(job, static_cast<int>(i));
    if (n <= 0) continue;
    for (std::size_t k = 1; k < polls.size(); ++k)
      if (polls[k].revents != 0 && owner[k] < 0)
        pass_input(job);
      else if (polls[k].revents != 0)
        serve(job, owner[k]);
    if ((polls[0].revents & POLLIN) != 0) {
      signalfd_siginfo info;
      while (read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        if (info.ssi_signo == SIGCHLD) continue;
        const int signal = static_cast<int>(info.ssi_signo);
        if (job.ending)
          signal_all(job, signal);
        else
          end_job(job, 128 + signal, signal);
      }
      reap(job);
    }
    check_stuck(job);
  }
  return job.status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--agent") == 0) return mprun::run_agent();
  int size = 0;
  int i = 1;
  const char* machine_file = nullptr;
  Job job;
  for (; i < argc && argv[i][0] == '-'; ++i) {
    if (std::strcmp(argv[i], "--") == 0) {
      ++i;
      break;
    }
    if (std::strcmp(argv[i], "--help") == 0 || std::strcmp(argv[i], "-h") == 0) {
      usage(stdout);
      return 0;
    }
    if ((std::strcmp(argv[i], "-n") == 0 || std::strcmp(argv[i], "-np") == 0) && i + 1 < argc) {
      char* rest = nullptr;
      const long number = std::strtol(argv[++i], &rest, 10);
      if (rest == argv[i] || *rest != 0 || number < 1 || number > kRanksMax) {
        std::fprintf(stderr, "lite-mprun: -n %s: a number from 1 to %d is needed\n", argv[i],
                     kRanksMax);
        return 2;
      }
      size = static_cast<int>(number);
      continue;
    }
    if (std::strcmp(argv[i], "-x") == 0 && i + 1 < argc &&
        std::strchr(argv[i + 1], '=') != nullptr && argv[i + 1][0] != '=') {
      char* setting = argv[++i];
      char* equals = std::strchr(setting, '=');
      job.settings.emplace_back(setting);
      *equals = 0;
      setenv(setting, equals + 1, 1);
      continue;
    }
    if ((std::strcmp(argv[i], "-machinefile") == 0 || std::strcmp(argv[i], "-hostfile") == 0) &&
        i + 1 < argc) {
      machine_file = argv[++i];
      continue;
    }
    std::fprintf(stderr, "lite-mprun: %s: unknown option, or its value is missing\n", argv[i]);
    usage(stderr);
    return 2;
  }
  if (size == 0 || i >= argc) {
    std::fprintf(stderr, "lite-mprun: %s\n",
                 size == 0 ? "-n RANKS is missing" : "no program given");
    usage(stderr);
    return 2;
  }

  if (std::string error;
      machine_file != nullptr && !mprun::read_machine_file(machine_file, size, job.hosts, error)) {
    std::fprintf(stderr, "lite-mprun: %s\n", error.c_str());
    return 2;
  }

  bool all_here = true;
  for (const std::string& host : job.hosts) all_here = all_here && mprun::is_this_host(host);
  mplite::Knobs knobs;
  if (char error[2048];
      !all_here && !mplite::read_knobs(mplite::process_environment, knobs, error, sizeof error)) {
    std::fprintf(stderr, "lite-mprun: %s\n", error);
    return 2;
  }
  job.connect_timeout_ns = knobs.connect_timeout_ns;

  // Signals come by descriptor, so that nothing interrupts half-way; children get the mask that we
  // were started with.
  sigset_t set, before;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, &before);
  signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would hide the ends of our children
  const int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) {
    std::fprintf(stderr, "lite-mprun: signalfd: %s\n", strerror(errno));
    return 1;
  }
  if (!start(job, size, before, argv + i)) end_job(job, 1, SIGTERM);
  return run(job, signals);
}
