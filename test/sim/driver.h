// What the simulations share: command line and main loop, the report of a failure with the line
// that repeats it, signals off and on. Used by engine_sim.cpp, device_sim.cpp and probe_sim.cpp.
#pragma once
#include <malloc.h>

#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

#include "alloc_trap.h"
#include "fake_net.h"
#include "mplite/base/address.h"
#include "mplite/engine/engine.h"
#include "mplite/net/handshake.h"
#include "quiet_stderr.h"

namespace sim {

inline bool g_verbose = false;
// Of the run that goes on.
inline const char* g_program = "";
inline const char* g_profile_name = "";
inline unsigned long long g_seed = 0;

[[noreturn, gnu::format(printf, 1, 2)]] inline void fail(const char* format, ...) {
  alloc_trap::t_armed = 0;
  quiet_stderr::restore();
  std::fprintf(stderr, "%s: ", g_program);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "\nrepeat with: %s --seed %llu --profile %s --runs 1\n", g_program, g_seed,
               g_profile_name);
  std::fflush(nullptr);
  std::abort();
}

// As the controller does: off for one who only waits, so that a connection may be set aside; on
// again before he computes, when nothing has announced what came until then.
template <typename Rank, typename Progress>
void switch_signals(Rank& r, Progress progress) {
  mplite::Hold gate(r.engine->gate());
  r.armed = !r.armed;
  r.engine->set_signals(r.armed);
  if (!r.armed) return;
  mplite::ProgressScope scope(*r.engine, mplite::ProgressMode::all_sockets());
  progress();
}

// Turns until `turn(number)` says that it is enough, or, false, until no rank has received anything
// for `limit` of them: as long as bytes move it may take its time, as some pipes are narrow. Time
// passes, faster when nothing moves.
template <typename Ranks, typename Turn>
bool settle(FakeWorld& world, const Ranks& ranks, int limit, Turn turn) {
  std::uint64_t moved = 0;
  for (int number = 0, still = 0; still < limit; ++number, ++still) {
    std::uint64_t now_moved = 0;
    for (const auto& r : ranks)
      if (r.alive) now_moved += r.engine->counters().bytes_in;
    if (now_moved != moved) still = 0;
    moved = now_moved;
    if (turn(number)) return true;
    if (number % 16 == 15) world.skip(still < 2'000 ? 1'000'000 : 100'000'000);
  }
  return false;
}

// A stream that was changed under way can wait for ever for bytes that were never sent; what must
// work then is losing the peer. So nobody is let in again.
inline void part_all(FakeWorld& world, int ranks) {
  for (int a = 0; a < ranks; ++a) {
    for (int network = 0; network < mplite::kAddressesMax; ++network)
      world.set_road(a, network, ECONNREFUSED);
    for (int b = 0; b < a; ++b) world.cut(a, b);
  }
}

// A run that failed once.
struct Known {
  std::uint64_t seed;
  const char* profile;
};

// The whole of main: each profile once per seed, from --seed on, for --runs seeds or --seconds. The
// known runs first, where no seed is given. `run` fails by fail().
template <std::size_t kProfiles>
int drive(int argc, char** argv, const char* program, const char* const (&profiles)[kProfiles],
          void (*run)(std::uint64_t seed, std::size_t profile),
          std::initializer_list<Known> known = {}) {
  std::uint64_t seed = 1, runs = 0;
  double seconds = 12;
  std::size_t only = kProfiles;
  bool bounded = false, seeded = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--verbose") {
      g_verbose = true;
      continue;
    }
    if (option == "--seed")
      seed = std::strtoull(value, nullptr, 0), seeded = true;
    else if (option == "--runs")
      runs = std::strtoull(value, nullptr, 0), bounded = true;
    else if (option == "--seconds")
      seconds = std::strtod(value, nullptr);
    else if (option == "--profile") {
      for (std::size_t p = 0; p < kProfiles; ++p)
        if (std::strcmp(profiles[p], value) == 0) only = p;
      if (only == kProfiles) {
        std::fprintf(stderr, "%s: unknown profile %s\n", program, value);
        return 2;
      }
    } else {
      std::fprintf(stderr,
                   "usage: %s [--seed S] [--runs N] [--seconds T] [--profile NAME] [--verbose]\n",
                   program);
      return 2;
    }
    ++i;
  }
  if (!mplite::hello_prepare()) return 2;
  alloc_trap::install();
#ifdef M_TRIM_THRESHOLD
  // Runs take and free much; pages that go back to the kernel cost a tenth of the time.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
  // Lines about lost peers and strangers are expected here by the thousand.
  if (!g_verbose) quiet_stderr::begin();
  g_program = program;
  const auto start = std::chrono::steady_clock::now();
  unsigned long long seeds = 0, cases = 0;
  const auto run_one = [&](std::uint64_t of_seed, std::size_t p) {
    if (only != kProfiles && p != only) return;
    g_seed = of_seed;
    g_profile_name = profiles[p];
    run(of_seed, p);
    ++cases;
  };
  for (const Known& k : known)
    for (std::size_t p = 0; p < kProfiles && !seeded; ++p)
      if (std::strcmp(profiles[p], k.profile) == 0) run_one(k.seed, p);
  for (;; ++seed) {
    for (std::size_t p = 0; p < kProfiles; ++p) run_one(seed, p);
    ++seeds;
    if (bounded && seeds >= runs) break;
    if (!bounded &&
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds)
      break;
  }
  std::printf("100%%: Checks: %llu, Failures: 0, Errors: 0\n", cases);
  return 0;
}

}  // namespace sim
