// Ranks on other hosts for lite-mprun: one remote shell per rank (LITE_RSH HOST lite-mprun --agent), which carries everything over its standard input and output:
// what to start, the addresses with the job's secret in them, the rank's input, output and end. So nothing secret is on a command line, in an environment or in a
// file, no file system need be shared, and nobody has to listen: what protects it is the remote shell. Used by mprun.cpp.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mprun {

// One host name per rank. A line of the file is `host` or `host:n`; # begins a comment. Ranks are placed in that order, from the top again when all are taken.
// False: `error` says why.
bool read_machine_file(const char* path, int ranks, std::vector<std::string>& hosts, std::string& error);
// localhost, or this host's name, with or without its domain.
bool is_this_host(const std::string& host);

// The frames of either direction: a letter, the length, the bytes. Byte order of the hosts, which have to be of one kind anyway.
enum class FrameType : std::uint8_t {
  kStart = 'S',   // to the agent, first: Order, as text
  kTable = 'T',   // to the agent: all addresses
  kInput = 'I',   // to the agent; empty: the end
  kBlob = 'B',    // from the agent: this rank's address
  kOutput = 'O',  // from the agent
  kEnd = 'E',     // from the agent, last: the rank's wait status
};

class FrameReader {
 public:
  void add(const void* bytes, std::size_t length);
  // The next whole frame. False: not there yet. The payload is valid until the next call.
  bool next(FrameType& type, const std::uint8_t*& payload, std::size_t& length);

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;
};
void append_frame(std::vector<std::uint8_t>& out, FrameType type, const void* payload, std::size_t length);

// Strings, each with a terminating 0: rank, size, working directory, number of settings, the settings NAME=VALUE, the command.
std::vector<std::uint8_t> make_order(int rank, int size, const std::vector<std::string>& settings, char** command);

// Starts the remote shell; `fd` (non-blocking) is its standard input and output. -1: errno.
pid_t start_remote(const std::string& host, int& fd);

// All of it, whether the descriptor blocks or not. False: errno.
bool write_all(int fd, const void* data, std::size_t bytes);

// lite-mprun --agent: the other end. Returns the exit status.
int run_agent();

}  // namespace mprun
