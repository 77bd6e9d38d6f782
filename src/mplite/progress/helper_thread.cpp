// Progress by a helper thread.
#include "mplite/progress/helper_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "mplite/base/descriptor.h"
#include "mplite/net/loss.h"
#include "mplite/progress/own_thread.h"

namespace mplite {
namespace {

constexpr std::uint64_t kWakeToken = std::uint64_t{1}
                                     << 62;  // no connection has it: the engine ignores the event

timespec to_timespec(std::int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

int HelperThread::start(char* error, std::size_t error_size) {
  Engine& engine = *state_.engine;
  wake_fd_ = above_standard_streams(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake_fd_ < 0 || engine.net().watch(wake_fd_, kWakeToken, kReadable) < 0) {
    const int reason = errno;
    std::snprintf(error, error_size, "the helper thread's wake-up descriptor cannot be made: %s%s",
                  strerror(reason), descriptor_cure(reason));
    return -EMFILE;
  }
  // Edge: nobody has to read it. Without it callers wait, as with sync.
  rest_fd_ = above_standard_streams(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (rest_fd_ >= 0) {
    Hold hold(engine.gate());
    if (engine.net().watch_caller(rest_fd_, kWakeToken, true) < 0 || engine.hear_callers(0) < 0) {
      close(rest_fd_);
      rest_fd_ = -1;
    }
  }
  stopping_.store(false);
  const int rc = start_own_thread(&thread_, thread_main, this);
  if (rc != 0) {
    std::snprintf(error, error_size, "the helper thread cannot be started: %s", strerror(rc));
    engine.net().unwatch(wake_fd_);
    close(wake_fd_);
    wake_fd_ = -1;
  }
  return -rc;
}

void HelperThread::stop() {
  stopping_.store(true);
  state_.armed_word.store(1);
  give_order();
  const std::uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof one) < 0)
    return;  // cannot happen on an eventfd that nobody else writes
  pthread_join(thread_, nullptr);
  state_.armed_word.store(0);
  {
    Hold hold(state_.engine->gate());
    state_.engine->stop_hearing();
  }
  if (rest_fd_ >= 0) close(rest_fd_);
  rest_fd_ = -1;
  state_.engine->net().unwatch(wake_fd_);
  close(wake_fd_);
  wake_fd_ = -1;
}

void HelperThread::leave_library(int call) {
  if (in_own_thread()) return;  // an MPI call in a callback that the host's progress made
  const bool host = state_.host.pending() && (!state_.armed() || state_.host.news());
  bool held = false;
  {
    Hold hold(state_.engine->gate());  // the helper may be in set_outstanding()
    if (!state_.needs_progress() && !host) return;
    const bool now =
        state_.policy.leave_to_helper(call, state_.is_departure_heavy(), state_.now_ns()) || host;
    // What has been taken from a socket does not end its epoll_wait.
    held = state_.engine->net().held_input(nullptr, 0) > 0;
    if (state_.armed()) state_.begin_absence();
    if (now && state_.armed() && !host) {
      if (held) wake();
      return;
    }
    if (now != state_.armed()) {
      ++state_.engine->counters().mask_calls;
      state_.set_armed(now);
    }
    const bool told = !state_.policy.watch_departure(!now);
    if (!now && told) return;
  }
  // In epoll_wait it sees by itself that it is armed, with the next event; but the host's work
  // needs none.
  if (!give_order() && (host || held)) wake();
}

void HelperThread::arm_if_needed() {
  {
    Hold hold(state_.engine->gate());
    if (!state_.running || state_.armed() || !state_.needs_progress()) return;
    state_.set_armed(true);
  }
  give_order();
}

void HelperThread::wake() {
  const std::uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof one) < 0)
    errno = 0;  // it counts to 2^64: somebody has told already
}

// False: the helper does not rest.
bool HelperThread::give_order() {
  orders_.fetch_add(1);
  const int rest = resting_.load();
  if (rest == kOnOrders) wake_sleeper(orders_);
  const std::uint64_t one = 1;
  if (rest == kOnCallers && write(rest_fd_, &one, sizeof one) < 0) errno = 0;
  return rest != kAwake;
}

// ---- in the helper ----

void* HelperThread::thread_main(void* arg) {
  enter_own_thread();
  static_cast<HelperThread*>(arg)->run();
  return nullptr;
}

void HelperThread::run() {
  NetEvent event;
  bool fresh =
      true;  // just armed: what was done inside the library may have left something for the host
  while (!stopping_.load()) {
    if (state_.armed_word.load() == 0) {
      rest();
      fresh = true;
      continue;
    }
    if (fresh) state_.host.pass(state_.armed_word);
    fresh = false;
    // Asleep without the gate; level-triggered, so nothing is consumed by looking. The time-out is
    // for deadlines (connecting peers).
    const int events = state_.engine->net().wait(&event, 1, 500'000'000);
    if (events > 0 && event.token == kWakeToken && !stopping_.load()) {
      std::uint64_t told;
      fresh = read(wake_fd_, &told, sizeof told) > 0;
      continue;
    }
    if (stopping_.load() || state_.armed_word.load() == 0) continue;
    {
      Hold hold(state_.engine->gate());
      if (state_.armed_word.load() == 0) continue;
      work();
    }
    if (state_.host.due()) state_.host.pass(state_.armed_word);
  }
}

// Gate held.
void HelperThread::work(const ProgressMode& mode) {
  Engine& engine = *state_.engine;
  ++engine.counters().thread_wakes;
  trace(TraceEvent::kHelper);
  state_.poll_all(mode);
  trace(TraceEvent::kHelperEnd);
}

// Not armed: sleeps until there is an order (armed, or a departure that was not and wants a
// backstop), then until that backstop is due. Sequentially consistent: who gives an order after
// `seen` was read either finds us resting, or we find the word changed.
void HelperThread::rest() {
  Grace::Sleep sleep;
  for (;;) {
    resting_.store(kOnOrders);
    const int seen = orders_.load();
    if (state_.armed_word.load() != 0 || stopping_.load()) break;
    const std::int64_t rest_ns = sleep_left_ns(sleep);
    if (rest_ns == 0) break;
    if (rest_ns < 0 && rest_fd_ >= 0 && state_.engine->awaits_callers()) {
      sleep_until_called(seen);
      continue;
    }
    const timespec delay = to_timespec(rest_ns < 0 ? 0 : rest_ns);
    sleep_on(orders_, seen, rest_ns < 0 ? nullptr : &delay);
  }
  resting_.store(kAwake);
  if (state_.armed_word.load() == 0 && !stopping_.load()) rest_is_over();
}

std::int64_t HelperThread::sleep_left_ns(Grace::Sleep& sleep) {
  Hold hold(state_.engine->gate());
  return state_.policy.helper_sleep_ns(sleep, state_.now_ns());
}

// The timed sleep has ended: the backstop.
void HelperThread::rest_is_over() {
  Hold hold(state_.engine->gate());
  if (state_.armed()) return;
  ++state_.engine->counters().backstops;
  const bool host = state_.host.pending();
  if (state_.policy.helper_alarm(state_.now_ns(), state_.outstanding || host))
    state_.set_armed(true);
}

// The same with callers to let in: nobody else's messages wake it. An order that was given to
// kOnOrders has changed the word.
void HelperThread::sleep_until_called(int seen) {
  Engine& engine = *state_.engine;
  std::int64_t rest_ns;
  {
    Hold hold(engine.gate());
    rest_ns = engine.callers_rest_ns();
  }
  if (rest_ns > 0) {
    const timespec delay = to_timespec(rest_ns);
    sleep_on(orders_, seen, &delay);
    return;
  }
  resting_.store(kOnCallers);
  if (orders_.load() != seen) return;
  NetEvent event;
  const int events = engine.net().wait_callers(&event, 1, -1);
  if (events <= 0 || event.token == kWakeToken) return;
  resting_.store(kAwake);
  Hold hold(engine.gate());
  if (state_.armed() || stopping_.load()) return;
  work(ProgressMode::helper_thread().for_callers());
}

}  // namespace mplite
