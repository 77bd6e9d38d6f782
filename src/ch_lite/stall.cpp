// What a wait says of itself.
#include "ch_lite/stall.h"

#include <unistd.h>

#include <cstring>
#include <ctime>
#include <memory>
#include <new>

#include "mplite/observe/log.h"
#include "mplite/runtime/report_socket.h"

namespace ch_lite {
namespace {

// Of so long ago.
void format_time(std::int64_t ago_ns, char* text, std::size_t size) {
  const std::time_t then = std::time(nullptr) - static_cast<std::time_t>(ago_ns / 1'000'000'000);
  std::tm parts = {};
  if (gmtime_r(&then, &parts) == nullptr ||
      std::strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
    text[0] = '\0';
}

}  // namespace

// As socket_news() in boot.cpp, but each byte counts: a frame may take minutes.
[[gnu::no_sanitize_thread]] std::uint64_t Stall::progress_so_far() const {
  const mplite::Counters& c = engine_->counters();
  return c.bytes_in + c.bytes_out + c.connections + device_->events();
}

// Since this was asked last. What the kernel has taken goes on to leave, and messages move in
// shared memory.
bool Stall::has_moved_unseen(const Wait& wait) {
  bool moved = wait.host_news != nullptr && wait.host_news() != 0;
  std::uint64_t acknowledged = 0;
  mplite::Hold hold(engine_->gate());
  for (int i = 0; i < engine_->peers(); ++i) acknowledged += engine_->report(i).stream.acknowledged;
  if (acknowledged != acknowledged_) moved = true;
  acknowledged_ = acknowledged;
  return moved;
}

void Stall::tell(int fd, const Wait& wait, std::int64_t now_ns, std::int64_t began_ns,
                 std::int64_t moved_ns) const {
  const std::unique_ptr<char[]> text(new (std::nothrow) char[kReportBytes]);
  std::size_t length = 0;
  if (text != nullptr) {
    char since[32];
    format_time(now_ns - began_ns, since, sizeof since);
    WaitingCall call;
    call.host = host_;
    call.polls = wait.polls;
    call.name = wait.polls ? nullptr : lite_call.name;
    // What MPI_Wait starts belongs to a schedule; with threads another call may have begun it.
    call.started_newest = LITE_HOT_GET(started) != 0 && !wait.has_threads && call.name != nullptr &&
                          std::strncmp(call.name, "Wait", 4) != 0;
    call.now_ns = now_ns;
    call.began_ns = began_ns;
    call.moved_ns = moved_ns;
    call.since = since;
    mplite::Hold hold(engine_->gate());
    length = device_->format_report(call, text.get(), kReportBytes);
  }
  if (fd == STDERR_FILENO)
    mplite::write_lines(fd, text.get(), length);
  else
    mplite::ReportSocket::send_report(fd, text.get(), length);
}

void Stall::found_nothing(const Wait& wait, std::int64_t now_ns) {
  using Step = mplite::StallWatch::Step;
  const Step step = watch_.found_nothing(wait.number, progress_so_far(), now_ns);
  if (step == Step::kNothing) return;
  const bool moved = has_moved_unseen(wait);
  if (step == Step::kLook) return;  // from here on
  if (moved)
    watch_.moved(now_ns);
  else
    tell(STDERR_FILENO, wait, now_ns, watch_.began_ns(), now_ns - watch_.quiet_ns(now_ns));
}

}  // namespace ch_lite
