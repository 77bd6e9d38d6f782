// Polling, waiting, and what is done with what epoll tells.
#include "mplite/engine/poller.h"

#include <algorithm>
#include <cerrno>

#include "mplite/net/loss.h"
#include "mplite/observe/trace.h"

namespace mplite {
namespace {

constexpr std::int64_t kDeadlineStrideNs = 1'000'000;  // between looks at the deadlines
constexpr std::int64_t kAwaitNs = 500'000;     // between looks of a sleeper at acknowledgements
constexpr std::int64_t kUntoldNs = 1'000'000;  // the same at all, where nobody can end its sleep
constexpr unsigned kSilenceStride = 4096;      // looks at all between those at the clock for it
constexpr std::int64_t kSilenceStrideNs = 1'000'000'000;

}  // namespace

Poller::Poller(EngineCore& core, const Parts& parts) : core_(core), parts_(parts) {
  const Tuning& tuning = core.options.tuning;
  if (!tuning.has(Heuristic::kFusedPoll)) unfused_ = 1;
  repoll_.set_on(core.options.tuning.has(Heuristic::kRepoll));
}

void Poller::handle(const NetEvent& event) {
  if (event.token == Listener::kToken) {
    parts_.acceptor.accept_all();
    return;
  }
  Connection* c = core_.connections.find(event.token);
  if (c == nullptr || c->state == ConnectionState::kFree || c->state == ConnectionState::kBroken)
    return;  // dropped, or broken, by an earlier event of the same batch
  if (c->state != ConnectionState::kUp) {
    parts_.handshaker.step(*c);
    if (c->state != ConnectionState::kUp) return;
    if ((event.ready & kReadable) == 0) return;
  }
  const std::uint64_t handle = c->pool_handle;
  if ((event.ready & kWritable) != 0 && c->tx.waits()) parts_.tx.has_room(*c);
  if ((event.ready & kReadable) != 0 && c->pool_handle == handle &&
      c->state == ConnectionState::kUp)
    parts_.rx.pump(*c);
}

int Poller::poll_all() {
  const int moved = look_everywhere();
  tell_sleeper();
  return moved;
}

// What another thread waits for may be done by now: the handler of an armed owner is as a rule
// quicker than a thread that the same packet wakes, and epoll_wait goes on sleeping when it finds
// the socket empty again.
void Poller::tell_sleeper() {
  looker_ = &t_gate_depth;
  if (sleeper_ == nullptr || sleeper_ == looker_ || told_) [[likely]]
    return;
  ++core_.counters.other_calls;
  told_ = core_.net.end_waits(true) == 0;
  cannot_tell_ = !told_;
}

int Poller::look_everywhere() {
  if (core_.mode.callers_only) return parts_.acceptor.poll_callers();
  if (core_.underway.unacknowledged != 0) parts_.tx.look_at_awaited(TxQueue::Look::kPoll);
  if (core_.underway.gathered != 0) parts_.tx.flush_gathered();
  parts_.rx.parse_rest();
  if (parts_.readiness.detached() != nullptr) parts_.readiness.reattach();
  return look_at_all();
}

void Poller::look_at_deadlines() {
  if (!core_.mode.in_signal_handler || core_.underway.broken > 0) parts_.handshaker.retry_stalled();
  const std::int64_t now = core_.net.now_ns();
  parts_.listener.resume_when_due(now);
  parts_.connector.discount_absence(now);
  parts_.handshaker.drop_overdue(now);
  parts_.connector.look_at_attempts(now);
  parts_.lanes.look_at_attempts(now);
}

void Poller::look_for_silence() {
  const std::int64_t now = core_.net.now_ns();
  if (now < silence_look_ns_) return;
  silence_look_ns_ = now + kSilenceStrideNs;
  parts_.connector.look_for_silence();
  parts_.lanes.look_for_silence();
}

// Behind the `found` events, those of input that is not in the sockets any more. Returns how many
// there are then.
int Poller::add_held(NetEvent* events, int found) {
  if (core_.options.protection == 0 || found < 0) return found;
  const int room = kEventsMax - found;
  return found + std::min(core_.net.held_input(events + found, room), room);
}

// By epoll, which does not tell of what the detached connection has.
int Poller::look_at_all() {
  NetEvent events[kEventsMax];
  int n = 0;
  DeferFree defer(core_);
  // A handler is not called again for what it leaves: with more ready than fit, all have to have
  // their turn (some of them may stay ready).
  for (int turns = core_.mode.poll_all_sockets ? core_.peer_count / kEventsMax + 1 : 1; turns > 0;
       --turns) {
    ++core_.counters.waits;
    const int found = add_held(events, core_.net.wait(events, kEventsMax, 0));
    for (int i = 0; i < found; ++i) handle(events[i]);
    if (found > 0) n += found;
    crowded_ = found > 1;
    if (found < kEventsMax) break;
  }
  if (core_.underway.spilled != 0) parts_.rx.read_all_spilled();
  parts_.lanes.serve();
  ++looks_at_all_;
  const bool was_put_off = parts_.handshaker.has_put_off() && !core_.mode.in_signal_handler;
  if ((core_.handshaking.count() > 0 || core_.underway.connecting > 0 ||
       parts_.listener.paused()) &&
      (n > 0 || was_put_off ||
       core_.net.now_ns() - parts_.connector.deadlines_looked_ns() >= kDeadlineStrideNs))
    look_at_deadlines();
  if (looks_at_all_ % kSilenceStride == 0) look_for_silence();
  return n;
}

// The preferred connection is read. Whether something came.
int Poller::poll_preferred() {
  Connection* c = parts_.readiness.preferred();
  if (c == nullptr || c->rx.paused || c->rx.in_ready_list) return 0;
  const int repolls = repoll_.take(c == parts_.readiness.detached() && !core_.mode.background);
  int left = repolls;
  const bool moved = parts_.rx.pump(*c, left);
  polls_ += static_cast<unsigned>(repolls - left);
  parts_.lanes.serve();
  return moved ? 1 : 0;
}

int Poller::poll() {
  if (core_.underway.gathered != 0) parts_.tx.flush_gathered();
  parts_.rx.parse_rest();
  if (core_.mode.poll_all_sockets) return poll_all();
  if (core_.underway.unacknowledged != 0) parts_.tx.look_at_awaited(TxQueue::Look::kPoll);
  const unsigned strides = polls_ / kAllStride;
  ++polls_;
  if (!outstanding_ && !is_anything_underway() && polls_ % kIdleStride != 0) return 0;
  int moved = 0;
  // While several have something, all have their turn: the preferred one alone would be served
  // until it has nothing left.
  const bool all = crowded_;
  {
    DeferFree defer(core_);
    if (all) {
      if (parts_.readiness.detached() != nullptr) parts_.readiness.reattach();
    } else {
      moved = poll_preferred();
      if (!parts_.signals.enabled() && parts_.readiness.should_detach()) parts_.readiness.detach();
    }
    repoll_.take(false);  // of this poll only
  }
  if (parts_.readiness.preferred() == nullptr || all || is_anything_underway() ||
      polls_ / kAllStride != strides)
    moved += look_at_all();
  return moved;
}

bool Poller::may_read_one() const {
  const Connection* c = parts_.readiness.detached();
  return c != nullptr && outstanding_ && !crowded_ && !core_.mode.poll_all_sockets &&
         !core_.mode.background &&
         (core_.underway.gathered | core_.handshaking.count() | core_.underway.connecting |
          core_.underway.unacknowledged | core_.underway.spilled | core_.underway.queued_sends |
          unfused_) == 0 &&
         c->rx.buffer == nullptr && !c->rx.in_frame && !c->rx.paused &&
         !c->tuning.ahead.header_only() && c->rx.low_water == c->tuning.rcvlowat.mark();
}

// As far as the last messages tell.
bool Poller::comes_by_one_write(const Connection& c) {
  return c.tuning.rcvlowat.small() || c.tuning.rcvlowat.mark() != 1;
}

// Somebody waits, for the first time since a packet left.
void Poller::delay_first_look(Connection& c) {
  FirstLook& look = c.tuning.first_look;
  const std::int64_t delay_ns = look.wait(comes_by_one_write(c));
  if (look.timed()) look.began(core_.net.now_ns());
  if (delay_ns != 0) core_.net.spin(delay_ns);
}

std::uint32_t Poller::read_one(const std::uint8_t** packet) {
  EngineCore& core = core_;
  RxStream& rx = parts_.rx;
  Connection& c = *parts_.readiness.detached();
  const unsigned strides = polls_ / kAllStride;
  int repolls = repoll_.take(comes_by_one_write(c));
  if (!rx.have_buffer(c)) return 0;
  const iovec part = {c.rx.buffer->bytes, ReadAhead::kBytes};
  std::int64_t n = -EAGAIN;
  if (repolls > 0 && c.tuning.first_look.is_first()) delay_first_look(c);
  do {
    ++polls_;
    ++core.counters.reads;
    n = core.net.read(c.fd, &part, 1);
    if (n == -EAGAIN) ++core.counters.reads_empty;
  } while (n == -EAGAIN && repolls-- > 0);
  const bool all = polls_ / kAllStride != strides;
  if (n > 0) {
    trace(TraceEvent::kRead, c.peer, static_cast<std::uint64_t>(n), part.iov_len);
    const auto got = static_cast<std::uint32_t>(n);
    rx.note_answer(c);
    c.tuning.ahead.read(got == part.iov_len, true);
    c.rx.end = got;
    c.rx.received += got;
    core.counters.bytes_in += got;
    std::uint32_t length = 0;
    if (got > kFrameHeaderBytes) [[likely]]
      length = control_length(c.rx.buffer->bytes);
    if (length != 0 && kFrameHeaderBytes + length == got && !all) [[likely]] {
      c.rx.begin = got;
      *packet = c.rx.buffer->bytes + kFrameHeaderBytes;
      rx.note_control(c, length);
      return length;
    }
  }
  {
    DeferFree defer(core);
    if (n > 0) rx.parse(c);
    if (n > 0 && (c.tuning.ahead.full() || c.rx.in_frame)) rx.pump(c);
    rx.put_buffer_away(c);
    parts_.lanes.serve();
    if (n <= 0 && n != -EAGAIN)
      parts_.lanes.lose(c, read_loss(n), n == 0 ? StreamFailure::kEnd : StreamFailure::kOfRead);
  }
  if (all) look_at_all();
  return 0;
}

int Poller::wait(std::int64_t timeout_ns) {
  NetEvent events[kEventsMax];
  parts_.tx.flush_gathered();
  if (core_.underway.unacknowledged != 0) parts_.tx.look_at_awaited(TxQueue::Look::kSleep);
  if (core_.underway.spilled != 0 && parts_.rx.read_all_spilled()) timeout_ns = 0;
  // Nothing tells of an acknowledgement.
  if (core_.underway.unacknowledged != 0 && (timeout_ns < 0 || timeout_ns > kAwaitNs))
    timeout_ns = kAwaitNs;
  if (parts_.readiness.detached() != nullptr) parts_.readiness.reattach();
  if (cannot_tell_ && (timeout_ns < 0 || timeout_ns > kUntoldNs)) timeout_ns = kUntoldNs;
  // Another thread has looked, maybe after our last poll.
  if (looker_ != nullptr && looker_ != &t_gate_depth) timeout_ns = 0;
  ++core_.counters.sleeps;
  sleeper_ = &t_gate_depth;
  if (core_.gate.leave()) timeout_ns = 0;
  trace(TraceEvent::kSleep, -1, static_cast<std::uint64_t>(timeout_ns));
  int n = core_.net.wait(events, kEventsMax, timeout_ns);
  trace(TraceEvent::kSleepEnd, -1, static_cast<std::uint64_t>(n));
  core_.gate.enter();
  sleeper_ = nullptr;
  looker_ = &t_gate_depth;
  if (told_) {
    ++core_.counters.other_calls;
    core_.net.end_waits(false);
    told_ = false;
  }
  n = add_held(events, n);
  DeferFree defer(core_);
  for (int i = 0; i < n; ++i) handle(events[i]);
  parts_.lanes.serve();
  if (core_.handshaking.count() > 0 || core_.underway.connecting > 0 || parts_.listener.paused())
    look_at_deadlines();
  look_for_silence();
  return n > 0 ? n : 0;
}

}  // namespace mplite
