// Two ranks of the device in two processes on this machine, with a handler wrapped so that every
// entry is checked: no allocation, errno kept, which stack. Used by the tests of this directory and
// by boot_test.
#pragma once
#include <check.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

#include "ch_lite/ch_lite.h"

namespace two_ranks {

#ifdef __SANITIZE_THREAD__
// ThreadSanitizer keeps a signal back until the program makes a call that it knows: a rank that
// computes gets none.
constexpr bool kSignalsComeAnywhere = false;
#else
constexpr bool kSignalsComeAnywhere = true;
#endif

// In memory that all processes of the test share.
struct Shared {
  unsigned char table[2][LITE_ADDRESS_BYTES];
  std::atomic<int> arrived[64];  // barriers, each used once
  std::atomic<int> storm;        // 1: send signals, 2: end
  std::atomic<int> pids[2];
  std::atomic<long> entries[2];  // of the handler
  std::atomic<int> word[16];     // the test's own
};

inline Shared* make_shared() {
  void* p =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : new (p) Shared();
}

inline double now_s() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// False: the others did not come in time.
inline bool barrier(Shared& s, int which, int parties = 2, double seconds = 30) {
  ++s.arrived[which];
  const double end = now_s() + seconds;
  while (s.arrived[which] < parties) {
    if (now_s() > end) return false;
    usleep(100);
  }
  return true;
}

using Play = std::function<int(Shared&, int rank)>;  // 0, or the line that found it wrong

// Each rank plays in a process of its own, and so does who is not a rank (from 2 on). Returns, when
// all went well, what they have left.
inline Shared& run_job(const Play& play, int processes = 2) {
  Shared* s = make_shared();
  ck_assert_ptr_nonnull(s);
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const int line = play(*s, i);
    if (line != 0)
      std::fprintf(stderr, "rank %d: wrong at line %d: %s\n", i, line, lite_last_error());
    _exit(line == 0 ? 0 : 1);
  }
  while (!children.empty()) {
    int status = -1;
    const auto ended = std::find(children.begin(), children.end(), waitpid(-1, &status, 0));
    if (ended == children.end()) continue;  // another child of the test
    children.erase(ended);
    if (status != 0)  // the others would wait for it longer than the test may take
      for (const pid_t child : children) kill(child, SIGKILL);
    ck_assert_int_eq(status, 0);
  }
  return *s;
}

// What the handler's wrapper saw, in this process.
struct Seen {
  std::atomic<long> entries{0};
  std::atomic<long> errno_lost{0};
  std::atomic<long> on_alternate{0};
  void* alternate = nullptr;
  std::size_t alternate_bytes = 0;
};
extern Seen seen;

inline bool start(Shared& s, int rank) {
  setenv("LITE_IFACE", "lo", 1);
  if (lite_init_local(s.table[rank]) != LITE_OK) {
    std::fprintf(stderr, "rank %d: %s\n", rank, lite_last_error());
    return false;
  }
  s.pids[rank] = getpid();
  if (!barrier(s, 0)) return false;
  if (lite_init_world(rank, 2, s.table, 2, 0) != LITE_OK) {
    std::fprintf(stderr, "rank %d: %s\n", rank, lite_last_error());
    return false;
  }
  return barrier(s, 1);
}

inline bool finish(Shared& s) {
  if (lite_flush() != LITE_OK) return false;
  if (!barrier(s, 2)) return false;
  lite_finalize_quiesce();
  if (!barrier(s, 3)) return false;
  lite_finalize_close();
  return true;
}

struct Done {
  bool done = false;
  lite_status status = {};
};

// Moves everything and notes what completed. False: the library reports an error.
inline bool look() {
  if (lite_progress() < 0) return false;
  while (lite_request* request = lite_next_completion()) {
    auto* done = static_cast<Done*>(lite_request_cookie(request));
    lite_request_status(request, &done->status);
    done->done = true;
    lite_request_free(request);
  }
  return true;
}
inline bool wait_for(Done& done, double seconds = 30) {
  const double end = now_s() + seconds;
  while (!done.done)
    if (!look() || now_s() > end) return false;
  return done.status.error == LITE_OK;
}

inline bool send(const void* data, std::size_t bytes, int to, int tag, Done& done,
                 unsigned flags = 0) {
  const lite_envelope e = {1, 1 - to, tag};
  lite_request* request = nullptr;
  const int rc = lite_isend(data, bytes, to, &e, flags, &done, &request);
  if (rc == LITE_OK) done.done = true, done.status.error = LITE_OK;
  return rc >= 0;
}
inline bool receive(void* data, std::size_t bytes, int from, int tag, Done& done) {
  const lite_envelope e = {1, from, tag};
  lite_request* request = nullptr;
  const int rc = lite_irecv(data, bytes, from, &e, &done, &done.status, &request);
  if (rc == LITE_OK) done.done = true;
  return rc >= 0;
}

inline void fill(std::vector<std::uint8_t>& v, unsigned salt) {
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + salt * 31);
}
inline bool holds(const std::vector<std::uint8_t>& v, unsigned salt) {
  for (std::size_t i = 0; i < v.size(); ++i)
    if (v[i] != static_cast<std::uint8_t>(i * 7 + i / 251 + salt * 31)) return false;
  return true;
}

}  // namespace two_ranks
