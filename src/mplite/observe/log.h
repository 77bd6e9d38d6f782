// Notes for people, taken in the handler and printed later in ordinary context: lines on stderr,
// few of them. note() by the engine and controllers; print() by Engine::refill and at finalize.
// Gate held throughout.
#pragma once
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/net/handshake.h"

namespace mplite {

enum class NoteCode : std::uint8_t {
  kStrangerDropped,   // handshake failed; detail: HelloFault
  kHandshakeTimeout,  // an incoming connection said too little until its deadline
  kHandshakeClosed,   // an incoming connection went away before it had proved itself; error
  kTooManyStrangers,  // the limit on unproved connections is reached, the oldest was dropped
  kNoDescriptor,      // none is left: an unproved connection was dropped for one of ours; error
  kAcceptFailed,      // error (EMFILE and kin)
  kAddressFailed,     // peer does not answer at `from`, one of its addresses; error
  kAddressSlow,       // peer was reached at another address before it answered at `from`
  kPeerLost,          // peer, host; error
  kConnectionBroken,  // peer, error, address: its first one, which was made again
  kLaneLost,          // peer, error, address: one of several connections to it
  kForeignLost,       // a process of another job, at `from`; error
  kBadFrame,          // peer; nonsense in the stream of a proved peer
  kSignalTaken,  // error: the signal that the application has taken; peer: the one used instead, 0:
                 // none
};

class NoteLog {
 public:
  static constexpr std::uint32_t kNotes = 64;
  static constexpr int kLinesPerPeriod = 8;
  static constexpr std::int64_t kPeriodNs = 10'000'000'000;
  static constexpr std::size_t kLineBytes = 1024;  // that say() prints at most

  // Never fails: what does not fit is counted. `from` and `host`, the name of the peer's, may be
  // null; `host` outlives the log.
  void note(NoteCode code, int peer, int error, const sockaddr_storage* from = nullptr,
            HelloFault detail = HelloFault::kNone, const char* host = nullptr) MPLITE_SIGNAL_SAFE;

  bool empty() const MPLITE_SIGNAL_SAFE { return count_ == 0 && lost_ == 0; }

  // Writes what was noted to `fd`, one write(2) a line, at most kLinesPerPeriod in kPeriodNs; the
  // rest is counted and told in one line when the period is over or `final` is set. Returns the
  // number of lines.
  int print(int rank, std::int64_t now_ns, int fd = 2, bool final = false);

  // One line of that kind that is made in ordinary context: printed at once, or counted.
  void say(int rank, std::int64_t now_ns, const char* text, int fd = 2);

 private:
  void begin_period(std::int64_t now_ns);
  struct Note {
    NoteCode code;
    HelloFault detail;
    bool has_from;
    int peer;
    int error;
    const char* host;
    sockaddr_storage from;
  };
  Note notes_[kNotes];
  std::uint32_t first_ = 0, count_ = 0;
  std::uint64_t lost_ = 0;  // not printed: ring full, or rate limit
  std::int64_t period_start_ns_ = 0;
  int lines_ = 0;  // in this period
};

// Writes whole lines to `fd`: as many with one write(2) as a pipe keeps together, so that lines of
// several ranks do not mix. `text` ends with a line. Ordinary context, gate free: whoever reads may
// be slow.
void write_lines(int fd, const char* text, std::size_t length);

}  // namespace mplite
