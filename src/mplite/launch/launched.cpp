// The started process' end of the start-up.
#include "mplite/launch/launched.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace mplite {
namespace {

// A decimal number from the environment. False: the sentence is set.
bool environment_number(const char* name, int low, int high, int& value, char* error,
                        std::size_t error_size) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    std::snprintf(error, error_size,
                  "%s is not set; start the program with lite-mprun -n RANKS PROGRAM", name);
    return false;
  }
  char* rest = nullptr;
  errno = 0;
  const long number = std::strtol(text, &rest, 10);
  if (errno != 0 || rest == text || *rest != 0 || number < low || number > high) {
    std::snprintf(error, error_size, "%s=%s is not a number from %d to %d", name, text, low, high);
    return false;
  }
  value = static_cast<int>(number);
  return true;
}

// Moves all `bytes`. 0 or an errno; an end of the stream is EPIPE.
int move(int fd, void* data, std::size_t bytes, bool out) {
  auto* at = static_cast<std::uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t n = out ? send(fd, at, bytes, MSG_NOSIGNAL) : recv(fd, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? EPIPE : errno;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return 0;
}

// Sends the card, reads the table (`size` entries) and closes the descriptor. 0 or an errno; EPIPE:
// the launcher has ended.
int exchange_addresses(const Launched& launched, const Card& card, Card* table) {
  Card copy = card;
  int error = table == nullptr ? ENOMEM : move(launched.fd, &copy, sizeof copy, true);
  if (error == 0)
    error = move(launched.fd, table, static_cast<std::size_t>(launched.size) * sizeof copy, false);
  close(launched.fd);
  return error;
}

}  // namespace

bool is_launched() { return std::getenv("MPLITE_SIZE") != nullptr; }

bool read_launched(Launched& launched, char* error, std::size_t error_size) {
  return environment_number("MPLITE_SIZE", 1, 1 << 20, launched.size, error, error_size) &&
         environment_number("MPLITE_RANK", 0, launched.size - 1, launched.rank, error,
                            error_size) &&
         environment_number("MPLITE_FD", 3, 1 << 20, launched.fd, error, error_size);
}

void tell_failure(const Launched& launched, const Card& card) {
  constexpr int kPatienceMs = 1000;
  Card copy = card;
  if (copy.magic != 0 && move(launched.fd, &copy, sizeof copy, true) == 0) {
    pollfd word = {launched.fd, POLLIN, 0};
    poll(&word, 1, kPatienceMs);
  }
  close(launched.fd);
}

StartFault start_launched(Process& process, const Launched& launched, char* error,
                          std::size_t error_size) {
  Card card = {};
  StartFault fault = process.listen(&card, error, error_size);
  if (fault != StartFault::kNone) {
    if (launched.fd >= 0) tell_failure(launched, card);
    return fault;
  }
  auto* table = new (std::nothrow) Card[static_cast<std::size_t>(launched.size)];
  int failed = table == nullptr ? ENOMEM : 0;
  if (launched.fd >= 0)
    failed = exchange_addresses(launched, card, table);
  else if (table != nullptr)
    table[0] = card;
  if (failed != 0) {
    std::snprintf(error, error_size,
                  "the address exchange over MPLITE_FD=%d failed: %s (did the launcher end?)",
                  launched.fd, strerror(failed));
    fault = StartFault::kSystem;
  } else {
    fault = process.join(launched.rank, launched.size, table, 0, error, error_size);
  }
  delete[] table;
  return fault;
}

}  // namespace mplite
