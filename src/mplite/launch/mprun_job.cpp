// The job of lite-mprun: its ranks, and what it hears from and tells them.
#include "mplite/launch/mprun_job.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace mprun {
namespace {

// Before the table has gone to it: it may not read its input before it has started, and the agent
// has to keep it.
constexpr std::size_t kEarlyInputMax = 64 << 20;
constexpr std::size_t kInputAheadMax = 65536;  // read, and not yet taken by the remote shell

}  // namespace

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

namespace {

// The remote shell has not brought us the agent, or not in good order: the job ends.
void fail_remote(Job& job, int index, const char* what) {
  Rank& r = job.ranks[static_cast<std::size_t>(index)];
  const Greeting& greeting = r.remote->greeting;
  if (!job.ending) {
    std::string said;
    if (greeting.state() != Greeting::State::kHeard) {
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

// What comes before the agent's word is somebody's greeting: shown, and no harm. Returns how many
// of the bytes it was, -1 when the word does not come.
ssize_t hear_greeting(Job& job, int index, const std::uint8_t* bytes, std::size_t length) {
  Remote& remote = *job.ranks[static_cast<std::size_t>(index)].remote;
  if (remote.greeting.state() == Greeting::State::kHeard) return 0;
  const std::size_t taken = remote.greeting.add(bytes, length);
  if (remote.greeting.state() == Greeting::State::kTooLong) {
    fail_remote(job, index, "says much, and not what lite-mprun --agent begins with");
    return -1;
  }
  if (remote.greeting.state() == Greeting::State::kHeard) {
    remote.give_up_ns = 0;
    std::fputs(remote.greeting.text("lite-mprun: " + remote.host + " says: ", 20).c_str(), stderr);
  }
  return static_cast<ssize_t>(taken);
}

// This rank's card is complete. One that says why the rank cannot start ends the job: the rank
// itself waits for that.
void take_card(Job& job, int index) {
  ++job.cards;
  char sentence[512];
  if (job.ending || !mplite::is_failed_card(&job.table[static_cast<std::size_t>(index)], index,
                                            sentence, sizeof sentence))
    return;
  std::fprintf(stderr, "lite-mprun: %s; ending the others\n", sentence);
  end_job(job, 1, SIGTERM);
}

}  // namespace

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
    FrameType type;
    const std::uint8_t* payload;
    std::size_t length;
    while (remote.reader.next(type, payload, length)) {
      std::int32_t status;
      if (type == FrameType::kOutput) {
        write_all(STDOUT_FILENO, payload, length);
      } else if (type == FrameType::kCard && length == sizeof(mplite::Card) && r.heard == 0) {
        std::memcpy(&job.table[static_cast<std::size_t>(index)], payload, length);
        r.heard = length;
        take_card(job, index);
      } else if (type == FrameType::kEnd && length == sizeof status) {
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

void give_up_remote(Job& job, int index) {
  if (job.ranks[static_cast<std::size_t>(index)].fd < 0)
    return fail_remote(job, index, "has closed its output, but goes on");
  char text[96];
  std::snprintf(text, sizeof text,
                "has not started lite-mprun --agent within %.1f s (LITE_CONNECT_TIMEOUT)",
                static_cast<double>(job.connect_timeout_ns) * 1e-9);
  fail_remote(job, index, text);
}

void pass_input(Job& job) {
  Rank& r = job.ranks[0];
  std::uint8_t bytes[16384];
  const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) job.input_open = false;
  append_frame(r.remote->out, FrameType::kInput, bytes, n > 0 ? static_cast<std::size_t>(n) : 0);
  job.input_passed += n > 0 ? static_cast<std::size_t>(n) : 0;
}

bool wants_input(const Job& job) {
  const Rank& r = job.ranks[0];
  return job.input_open && r.remote != nullptr && r.fd >= 0 &&
         r.remote->out.size() - r.remote->written < kInputAheadMax &&
         (r.remote->table_sent || job.input_passed < kEarlyInputMax);
}

void serve(Job& job, int index) {
  Rank& r = job.ranks[static_cast<std::size_t>(index)];
  if (r.fd < 0) return;  // given up meanwhile
  if (r.remote != nullptr) return serve_remote(job, index);
  auto* card = reinterpret_cast<std::uint8_t*>(&job.table[static_cast<std::size_t>(index)]);
  const std::size_t table_bytes = job.table.size() * sizeof(mplite::Card);
  ssize_t n = -1;
  if (r.heard < sizeof(mplite::Card)) {
    n = recv(r.fd, card + r.heard, sizeof(mplite::Card) - r.heard, 0);
    if (n > 0) r.heard += static_cast<std::size_t>(n);
    if (n > 0 && r.heard == sizeof(mplite::Card)) take_card(job, index);
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

}  // namespace mprun
