// stderr as a launcher has it: a pipe, and a reader that is not always quick.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

// stderr into a pipe while this lives.
struct LaunchersPipe {
  int ends[2] = {-1, -1};
  int before;
  LaunchersPipe() : before(dup(STDERR_FILENO)) {
    if (pipe2(ends, O_CLOEXEC) == 0) dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
  }
  ~LaunchersPipe() {
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[0]);
  }
  // Up to 4 KB of what is there; waits for the first byte.
  std::string read_some() {
    char text[4096];
    const ssize_t n = read(ends[0], text, sizeof text);
    return {text, n > 0 ? static_cast<std::size_t>(n) : 0};
  }
};

// A launcher that is busy with something else for a while, then reads once.
struct SlowReader {
  static constexpr int kBusyMs = 150;
  LaunchersPipe& launcher;
  std::atomic<bool> has_read{false};
  std::string text;
  pthread_t thread;
  explicit SlowReader(LaunchersPipe& l) : launcher(l) {
    pthread_create(
        &thread, nullptr,
        [](void* arg) -> void* {
          auto* reader = static_cast<SlowReader*>(arg);
          pollfd words = {reader->launcher.ends[0], POLLIN, 0};
          while (poll(&words, 1, -1) < 0 && errno == EINTR) {}
          usleep(kBusyMs * 1000);
          reader->has_read = true;
          reader->text = reader->launcher.read_some();
          return nullptr;
        },
        this);
  }
  const std::string& join() {
    pthread_join(thread, nullptr);
    return text;
  }
};
