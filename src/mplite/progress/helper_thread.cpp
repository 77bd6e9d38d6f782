// Progress by a helper thread.
#include "mplite/progress/helper_thread.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "mplite/base/descriptor.h"
#include "mplite/net/loss.h"

namespace mplite {
namespace {

thread_local bool t_helper = false;  // this is the helper thread

constexpr std::uint64_t kWakeToken = std::uint64_t{1}
                                     << 62;  // no connection has it: the engine ignores the event

long futex(std::atomic<int>* word, int op, int value, const timespec* timeout = nullptr) {
  return syscall(SYS_futex, reinterpret_cast<int*>(word), op | FUTEX_PRIVATE_FLAG, value, timeout,
                 nullptr, 0);
}

timespec to_timespec(std::int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

bool HelperThread::is_this_thread() { return t_helper; }

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
  // Started with all signals blocked: the application's handlers stay in the application's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int rc = pthread_create(&thread_, nullptr, thread_main, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  if (t_helper) return;  // an MPI call in a callback that the host's progress made
  const bool host = state_.host_on.load(std::memory_order_relaxed) && host_.pending() &&
                    (!state_.armed() || host_.news());
  {
    Hold hold(state_.engine->gate());  // the helper may be in set_outstanding()
    if (!state_.needs_progress() && !host) return;
    const bool now = state_.policy.leave_to_helper(call, state_.now_ns()) || host;
    if (now && state_.armed() && !host) return;
    if (now != state_.armed()) {
      ++state_.engine->counters().mask_calls;
      state_.set_armed(now);
    }
    const bool told = !state_.policy.watch_departure(!now);
    if (!now && told) return;
  }
  // In epoll_wait it sees by itself that it is armed, with the next event; but the host's work
  // needs none.
  if (!give_order() && host) wake();
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
  if (rest == kOnOrders) futex(&orders_, FUTEX_WAKE, 1);
  const std::uint64_t one = 1;
  if (rest == kOnCallers && write(rest_fd_, &one, sizeof one) < 0) errno = 0;
  return rest != kAwake;
}

// ---- in the helper ----

void* HelperThread::thread_main(void* arg) {
  static_cast<HelperThread*>(arg)->run();
  return nullptr;
}

void HelperThread::run() {
  t_helper = true;
  NetEvent event;
  bool fresh =
      true;  // just armed: what was done inside the library may have left something for the host
  while (!stopping_.load()) {
    if (state_.armed_word.load() == 0) {
      rest();
      fresh = true;
      continue;
    }
    if (fresh) host_pass();
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
    if (state_.host_on.load() && host_.due()) host_pass();
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
    const std::int64_t rest_ns = state_.policy.helper_sleep_ns(sleep, state_.now_ns());
    if (rest_ns == 0) break;
    if (rest_ns < 0 && rest_fd_ >= 0 && state_.engine->awaits_callers()) {
      sleep_until_called(seen);
      continue;
    }
    const timespec delay = to_timespec(rest_ns < 0 ? 0 : rest_ns);
    futex(&orders_, FUTEX_WAIT, seen, rest_ns < 0 ? nullptr : &delay);
  }
  resting_.store(kAwake);
  if (state_.armed_word.load() == 0 && !stopping_.load()) rest_is_over();
}

// The timed sleep has ended: the backstop.
void HelperThread::rest_is_over() {
  Hold hold(state_.engine->gate());
  if (state_.armed()) return;
  ++state_.engine->counters().backstops;
  const bool host = state_.host_on.load() && host_.pending();
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
    futex(&orders_, FUTEX_WAIT, seen, &delay);
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

// ---- what the host does above the engine ----

void HelperThread::set_host_work(const HostWork& work) {
  host_ = work;
  state_.host_on.store(true);
  Hold hold(state_.engine->gate());
  state_.publish();
}

// Sequentially consistent on both words: either the helper sees that it is off, or it is seen to be
// busy here.
void HelperThread::end_host_work() {
  if (!state_.host_on.exchange(false)) return;
  while (host_busy_.load()) sched_yield();
  Hold hold(state_.engine->gate());
  state_.publish();
}

void HelperThread::end_in_child() {
  state_.host_on.store(false);
  host_busy_.store(false);
}

void HelperThread::host_pass() {
  host_busy_.store(true);
  if (state_.host_on.load() && state_.armed_word.load() != 0) host_.progress();
  host_busy_.store(false);
}

}  // namespace mplite
