// Notes for people, taken in the handler and printed later in ordinary context.
#include "mplite/observe/log.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "mplite/base/address.h"
#include "mplite/base/libc_compat.h"
#include "mplite/net/loss.h"

namespace mplite {
namespace {

// The line's text behind "ch_lite[rank 1]: ".
void describe(NoteCode code, int peer, int error, const char* from, HelloFault detail,
              const char* host, char* text, std::size_t size) {
  const char* reason = own_loss_text(error);
  if (reason == nullptr && error != 0) reason = error_text(error);
  if (reason == nullptr) reason = "no reason given";
  switch (code) {
    case NoteCode::kStrangerDropped:
      if (peer >= 0)
        std::snprintf(text, size, "dropped the connection to rank %d at %s: not of this job (%s)",
                      peer, from, hello_fault_text(detail));
      else
        std::snprintf(text, size, "dropped a connection from %s: not of this job (%s)", from,
                      hello_fault_text(detail));
      return;
    case NoteCode::kHandshakeTimeout:
      std::snprintf(
          text, size,
          "dropped a connection from %s: it did not prove in time that it belongs to this job",
          from);
      return;
    case NoteCode::kHandshakeClosed:
      std::snprintf(
          text, size,
          "a connection from %s ended before it had proved that it belongs to this job (%s)", from,
          error == 0 ? "closed by the other side" : reason);
      return;
    case NoteCode::kTooManyStrangers:
      std::snprintf(text, size,
                    "dropped a connection from %s: too many connections that have not proved that "
                    "they belong to this job",
                    from);
      return;
    case NoteCode::kNoDescriptor:
      std::snprintf(text, size,
                    "dropped a connection from %s, before it had proved that it belongs to this "
                    "job, for one of ours: %s%s",
                    from, reason, descriptor_cure(error));
      return;
    case NoteCode::kAcceptFailed:
      std::snprintf(text, size, "cannot accept a connection: %s%s", reason, descriptor_cure(error));
      return;
    case NoteCode::kAddressFailed:
      std::snprintf(text, size, "rank %d does not answer at %s (%s): its next address is tried",
                    peer, from, reason);
      return;
    case NoteCode::kAddressSlow:
      std::snprintf(text, size, "rank %d does not answer at %s: another of its addresses does",
                    peer, from);
      return;
    case NoteCode::kConnectionBroken:
      std::snprintf(text, size,
                    "the connection to rank %d (%s) broke: %s; the job goes on over another one",
                    peer, from, reason);
      return;
    case NoteCode::kLaneLost:
      std::snprintf(text, size,
                    "one of the connections to rank %d (%s) is lost: %s; the job goes on "
                    "over the others",
                    peer, from, reason);
      return;
    case NoteCode::kPeerLost:
      std::snprintf(text, size, "lost rank %d on host %s: %s", peer, host, reason);
      return;
    case NoteCode::kForeignLost:
      std::snprintf(text, size, "lost a process of another job at %s: %s", from, reason);
      return;
    case NoteCode::kBadFrame:
      std::snprintf(text, size, "rank %d at %s sent what is no frame; its connection is closed",
                    peer, from);
      return;
    case NoteCode::kSignalTaken: {
      const char* name = signal_text(error);
      if (peer > 0)
        std::snprintf(
            text, size,
            "signal %d (%s) was taken by the application after MPI_Init; signal %d (RTMIN+%d) is "
            "used from now on. Choose one with LITE_SIGNAL, or LITE_CONTROLLER=thread",
            error, name != nullptr ? name : "real-time", peer, peer - SIGRTMIN);
      else
        std::snprintf(text, size,
                      "signal %d (%s) was taken by the application after MPI_Init, and no other is "
                      "free; messages move inside MPI calls only. Choose one with LITE_SIGNAL, or "
                      "LITE_CONTROLLER=thread",
                      error, name != nullptr ? name : "real-time");
      return;
    }
  }
}

bool write_all(int fd, const char* text, std::size_t length) {
  while (length > 0) {
    const ssize_t n = ::write(fd, text, length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;  // there is nobody left to tell
    text += n;
    length -= static_cast<std::size_t>(n);
  }
  return true;
}

// One line, one write(2), so that lines of several ranks do not mix.
void write_line(int fd, int rank, const char* text) {
  char line[NoteLog::kLineBytes + 32];
  int n = std::snprintf(line, sizeof line, "ch_lite[rank %d]: %s\n", rank, text);
  if (n >= static_cast<int>(sizeof line)) {
    n = static_cast<int>(sizeof line) - 1;
    line[n - 1] = '\n';
  }
  write_all(fd, line, static_cast<std::size_t>(n));
}

}  // namespace

void NoteLog::note(NoteCode code, int peer, int error, const sockaddr_storage* from,
                   HelloFault detail, const char* host) MPLITE_SIGNAL_SAFE {
  if (count_ == kNotes) {
    ++lost_;
    return;
  }
  Note& n = notes_[(first_ + count_++) % kNotes];
  n.code = code;
  n.detail = detail;
  n.has_from = from != nullptr;
  n.peer = peer;
  n.error = error;
  n.host = host;
  if (from != nullptr) memcpy(&n.from, from, sizeof n.from);
}

void NoteLog::begin_period(std::int64_t now_ns) {
  if (now_ns - period_start_ns_ < kPeriodNs) return;
  period_start_ns_ = now_ns;
  lines_ = 0;
}

void NoteLog::say(int rank, std::int64_t now_ns, const char* text, int fd) {
  const int saved_errno = errno;
  begin_period(now_ns);
  if (lines_ == kLinesPerPeriod) {
    ++lost_;
  } else {
    ++lines_;
    write_line(fd, rank, text);
  }
  errno = saved_errno;
}

int NoteLog::print(int rank, std::int64_t now_ns, int fd, bool final) {
  const int saved_errno = errno;
  int printed = 0;
  begin_period(now_ns);
  while (count_ > 0) {
    const Note n = notes_[first_];
    first_ = (first_ + 1) % kNotes;
    --count_;
    if (lines_ == kLinesPerPeriod) {
      ++lost_;
      continue;
    }
    char from[96] = "an unknown address", text[400];
    if (n.has_from) format_address(n.from, from, sizeof from);
    describe(n.code, n.peer, n.error, from, n.detail, n.host != nullptr ? n.host : "unnamed", text,
             sizeof text);
    write_line(fd, rank, text);
    ++lines_;
    ++printed;
  }
  if (lost_ > 0 && (final || lines_ < kLinesPerPeriod)) {
    char text[96];
    std::snprintf(text, sizeof text, "%llu more notes like these were not printed",
                  static_cast<unsigned long long>(lost_));
    write_line(fd, rank, text);
    lost_ = 0;
    ++lines_;
    ++printed;
  }
  errno = saved_errno;
  return printed;
}

void write_lines(int fd, const char* text, std::size_t length) {
  const int saved_errno = errno;
  while (length > 0) {
    std::size_t part = length;
    if (part > PIPE_BUF) {
      part = PIPE_BUF;
      while (part > 1 && text[part - 1] != '\n') --part;
    }
    if (!write_all(fd, text, part)) break;
    text += part;
    length -= part;
  }
  errno = saved_errno;
}

}  // namespace mplite
