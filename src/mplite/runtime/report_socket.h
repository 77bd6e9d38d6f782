// The socket at which a rank is asked what it waits for (lite-info --job), and its name, by which
// the rank is found. Opened and asked about by ch_lite/boot.cpp; launch/job_reports.h is the other
// end.
#pragma once
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mplite {

// Of a rank's socket: an address without a file (unix(7), abstract), which ends with the process.
struct ReportSocketName {
  int pid = 0, rank = 0, size = 0;
};
// Returns its length, for bind(2) and connect(2).
socklen_t format_report_socket(const ReportSocketName& name, sockaddr_un& address);
// `path` as in /proc/net/unix, where '@' stands for the first byte. False: another socket's.
bool parse_report_socket(const char* path, ReportSocketName& name);

// Ordinary context. It is not watched: who waits looks now and then.
class ReportSocket {
 public:
  static constexpr std::int64_t kPeriodNs = 100'000'000;

  ReportSocket() = default;
  ~ReportSocket() { close(); }
  ReportSocket(const ReportSocket&) = delete;
  ReportSocket& operator=(const ReportSocket&) = delete;

  // Where there is no descriptor for it, or the name is taken, nobody can ask, and nothing is said.
  void open(int rank, int size);
  // Only what is still ours: the application may have closed all descriptors. A child of fork()
  // does not have it.
  void close();

  // Whether it is time to look. Any thread.
  bool is_due(std::int64_t now_ns) const {
    return now_ns >= due_ns_.load(std::memory_order_relaxed);
  }
  // Who asks next and still waits: a process of this user or of root. A descriptor for
  // send_report(), or -1. Looks at kLooks callers at most.
  int accept(std::int64_t now_ns);
  static constexpr int kLooks = 16;
  // Closes `fd`. Does not wait: an asker that does not read gets less.
  static void send_report(int fd, const char* text, std::size_t length);

 private:
  bool is_ours() const;
  void watch_forks();
  static void after_fork_in_child();

  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::atomic<std::int64_t> due_ns_{INT64_MAX};
};

}  // namespace mplite
