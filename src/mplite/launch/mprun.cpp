// lite-mprun: starts the ranks of a program on this host or on those of a machine file, exchanges
// their addresses, and ends them together. The other end of launched.cpp: each rank inherits one
// end of a socket pair (MPLITE_FD), sends its card, gets the table. For a rank on another
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
#include <utility>
#include <vector>

#include "mplite/config/profile.h"
#include "mplite/launch/mprun_job.h"
#include "mplite/launch/mprun_options.h"
#include "mplite/launch/mprun_remote.h"

extern char** environ;

using namespace mprun;

namespace {

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
      make_order(index, size, settings_for_others(job), command);
  r.remote->out.assign(kLauncherWord.begin(), kLauncherWord.end());
  r.remote->give_up_ns = now_ns() + job.connect_timeout_ns;
  append_frame(r.remote->out, FrameType::kStart, order.data(), order.size());
  if (index > 0) append_frame(r.remote->out, FrameType::kInput, nullptr, 0);
  r.pid = start_remote(r.remote->host, r.fd);
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
  for (const std::string& host : job.hosts) all_here = all_here && is_this_host(host);
  for (int i = 0; i < size; ++i) {
    if (!job.hosts.empty() && !is_this_host(job.hosts[static_cast<std::size_t>(i)])) {
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
          if (r.remote->greeting.state() == Greeting::State::kAwaited)
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
      } else if (job.cards > 0 && r.heard < sizeof(mplite::Card)) {
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

// Whether somebody waits in MP_Init while somebody else has ended without: found out when the card
// comes after the end.
void check_stuck(Job& job) {
  if (job.ending || job.cards == 0) return;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Rank& r = job.ranks[i];
    if (r.running || r.heard == sizeof(mplite::Card)) continue;
    std::fprintf(
        stderr,
        "lite-mprun: rank %zu ended without MP_Init, which other ranks called; ending them\n", i);
    end_job(job, 1, SIGTERM);
    return;
  }
}

// What there is to wait for, and whose it is: owner -1 is of signals and of our own input.
struct Waited {
  std::vector<pollfd> polls;
  std::vector<int> owner;

  void add(int fd, int events, int rank) {
    polls.push_back(pollfd{fd, static_cast<short>(events), 0});
    owner.push_back(rank);
  }
};

void collect(Job& job, int signals, Waited& waited) {
  waited.polls.clear();
  waited.owner.clear();
  waited.add(signals, POLLIN, -1);
  const bool all_here = !job.ending && job.cards == static_cast<int>(job.ranks.size());
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Rank& r = job.ranks[i];
    if (r.fd < 0) continue;
    const int rank = static_cast<int>(i);
    if (r.remote != nullptr) {
      if (all_here && !r.remote->table_sent) {
        append_frame(r.remote->out, FrameType::kTable, job.table.data(),
                     job.table.size() * sizeof(mplite::Card));
        r.remote->table_sent = true;
      }
      waited.add(r.fd, r.remote->out.empty() ? POLLIN : POLLIN | POLLOUT, rank);
      continue;
    }
    const bool hears = r.heard < sizeof(mplite::Card);
    if (hears || all_here) waited.add(r.fd, hears ? POLLIN : POLLOUT, rank);
  }
  if (wants_input(job)) waited.add(STDIN_FILENO, POLLIN, -1);
}

// When a rank's deadline passes next; 0: there is none.
std::int64_t next_deadline_ns(const Job& job) {
  if (job.ending) return job.kill_at_ns;
  std::int64_t next_ns = 0;
  for (const Rank& r : job.ranks)
    if (r.running && r.remote != nullptr && r.remote->give_up_ns != 0 &&
        (next_ns == 0 || r.remote->give_up_ns < next_ns))
      next_ns = r.remote->give_up_ns;
  return next_ns;
}

int timeout_ms(std::int64_t deadline_ns) {
  if (deadline_ns == 0) return -1;
  const std::int64_t rest = deadline_ns - now_ns();
  return rest > 0 ? static_cast<int>(std::min<std::int64_t>(rest / 1'000'000 + 1, INT_MAX)) : 0;
}

void give_up_late_ones(Job& job) {
  for (std::size_t i = 0; i < job.ranks.size(); ++i)
    if (job.ranks[i].running && job.ranks[i].remote != nullptr &&
        job.ranks[i].remote->give_up_ns != 0 && now_ns() >= job.ranks[i].remote->give_up_ns)
      give_up_remote(job, static_cast<int>(i));
}

void take_signals(Job& job, int signals) {
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

int run(Job& job, int signals) {
  Waited waited;
  while (job.running > 0) {
    collect(job, signals, waited);
    const std::int64_t deadline_ns = next_deadline_ns(job);
    const int n = poll(waited.polls.data(), waited.polls.size(), timeout_ms(deadline_ns));
    if (n == 0 && job.ending) {
      signal_all(job, SIGKILL);
      job.kill_at_ns = now_ns() + kGraceNs;
    }
    if (!job.ending && deadline_ns != 0 && now_ns() >= deadline_ns) give_up_late_ones(job);
    if (n <= 0) continue;
    for (std::size_t k = 1; k < waited.polls.size(); ++k)
      if (waited.polls[k].revents != 0 && waited.owner[k] < 0)
        pass_input(job);
      else if (waited.polls[k].revents != 0)
        serve(job, waited.owner[k]);
    if ((waited.polls[0].revents & POLLIN) != 0) take_signals(job, signals);
    check_stuck(job);
  }
  return job.status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--agent") == 0) return run_agent();
  Options options;
  if (const int status = parse_options(argc, argv, options); status >= 0) return status;
  Job job;
  job.settings = std::move(options.settings);
  if (std::string error;
      options.machine_file != nullptr &&
      !read_machine_file(options.machine_file, options.ranks, job.hosts, error)) {
    std::fprintf(stderr, "lite-mprun: %s\n", error.c_str());
    return 2;
  }

  bool all_here = true;
  for (const std::string& host : job.hosts) all_here = all_here && is_this_host(host);
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
  if (!start(job, options.ranks, before, options.command)) end_job(job, 1, SIGTERM);
  return run(job, signals);
}
