// Ranks on other hosts for lite-mprun: one remote shell per rank (LITE_RSH HOST lite-mprun
// --agent), which carries everything over its standard input and output: what to start, the
// addresses with the job's secret in them, the rank's input, output and end. So nothing secret is
// on a command line, in an environment or in a file, no file system need be shared, and nobody has
// to listen: what protects it is the remote shell. Used by mprun.cpp.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mprun {

inline constexpr std::int64_t kGraceNs = 2'000'000'000;  // between SIGTERM and SIGKILL
std::int64_t now_ns();

// One host name per rank. A line of the file is `host` or `host:n`; # begins a comment. Ranks are
// placed in that order, from the top again when all are taken. False: `error` says why.
bool read_machine_file(const char* path, int ranks, std::vector<std::string>& hosts,
                       std::string& error);
// localhost, or this host's name, with or without its domain.
bool is_this_host(const std::string& host);

// Each side begins with its word, so that neither takes for frames what somebody else says: a
// banner, the greeting of a shell's start-up file, another version. Two different ones: a terminal
// in between would send the launcher's back to it. No newline, which a terminal changes.
inline constexpr std::string_view kLauncherWord = "\x1elite-mprun launcher 1\x1e";
inline constexpr std::string_view kAgentWord = "\x1elite-mprun agent 1\x1e";
inline constexpr std::size_t kBannerMax = 65536;

// The beginning of what comes, up to the word and with it.
class Greeting {
 public:
  enum class State : std::uint8_t {
    kAwaited,
    kHeard,
    kTooLong /* more than `banner_max` bytes, and no word */
  };
  explicit Greeting(std::string_view word, std::size_t banner_max = kBannerMax)
      : word_(word), banner_max_(banner_max) {}
  // Takes of the bytes what belongs to it and tells how many: after kHeard the rest are frames.
  // Call it no more then.
  std::size_t add(const void* bytes, std::size_t length);
  State state() const { return state_; }
  // What came in place of the word or before it: up to `lines` lines, each with `prefix`, cut and
  // made printable. Empty: nothing came.
  std::string text(const std::string& prefix, std::size_t lines) const;

 private:
  bool may_still_come() const;

  std::string_view word_;
  std::size_t banner_max_;
  std::string heard_;
  State state_ = State::kAwaited;
};

// The frames of either direction: a letter, the length, the bytes. Byte order of the hosts, which
// have to be of one kind anyway.
enum class FrameType : std::uint8_t {
  kStart = 'S',   // to the agent, first: Order, as text
  kTable = 'T',   // to the agent: all addresses
  kInput = 'I',   // to the agent; empty: the end
  kCard = 'B',    // from the agent: this rank's address
  kOutput = 'O',  // from the agent
  kEnd = 'E',     // from the agent, last: the rank's wait status
};

class FrameReader {
 public:
  void add(const void* bytes, std::size_t length);
  // The next whole frame. False: not there yet. The payload is valid until the next call.
  bool next(FrameType& type, const std::uint8_t*& payload, std::size_t& length);
  // What came next is no frame, and nothing behind it can be understood.
  bool broken() const { return broken_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool broken_ = false;
};
void append_frame(std::vector<std::uint8_t>& out, FrameType type, const void* payload,
                  std::size_t length);

// Strings, each with a terminating 0: rank, size, working directory, number of settings, the
// settings NAME=VALUE, the command.
std::vector<std::uint8_t> make_order(int rank, int size, const std::vector<std::string>& settings,
                                     char** command);

// Starts the remote shell; `fd` (non-blocking) is its standard input and output. -1: errno.
pid_t start_remote(const std::string& host, int& fd);

// All of it, whether the descriptor blocks or not. False: errno.
bool write_all(int fd, const void* data, std::size_t bytes);

// lite-mprun --agent: the other end. Returns the exit status.
int run_agent();

}  // namespace mprun
