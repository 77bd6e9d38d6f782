// Which socket is looked at, and when: the preferred one by a read, all by epoll; the fused poll
// and view of one packet for blocking callers; waiting; deadlines. Used by the engine; uses all
// other parts.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/engine/acceptor.h"
#include "mplite/engine/connector.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/handshaker.h"
#include "mplite/engine/lanes.h"
#include "mplite/engine/listener.h"
#include "mplite/engine/readiness.h"
#include "mplite/engine/rx_stream.h"
#include "mplite/engine/socket_signals.h"
#include "mplite/engine/tx_queue.h"
#include "mplite/tuning/repoll.h"

namespace mplite {

// Gate held throughout, where nothing else is said.
class Poller {
 public:
  // What it needs of the parts below.
  struct Parts {
    Listener& listener;
    Readiness& readiness;
    SocketSignals& signals;
    TxQueue& tx;
    RxStream& rx;
    Connector& connector;
    Lanes& lanes;
    Handshaker& handshaker;
    Acceptor& acceptor;
  };

  Poller(EngineCore& core, const Parts& parts);
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // See Engine, which forwards them.
  int poll() MPLITE_SIGNAL_SAFE;
  int poll_all() MPLITE_SIGNAL_SAFE;
  int wait(std::int64_t timeout_ns);
  void set_outstanding(bool outstanding) MPLITE_SIGNAL_SAFE { outstanding_ = outstanding; }
  bool outstanding() const MPLITE_SIGNAL_SAFE { return outstanding_; }
  // The next poll looks again up to so many times. Gate held or not.
  void set_repolls(int times) { repoll_.allow(times); }

  // Whether a poll would read the connection that is detached from epoll, with nothing of it here
  // yet, and at most look at all besides.
  bool may_read_one() const MPLITE_SIGNAL_SAFE;
  // What poll() and RxStream::pump() come to then, in few lines of code. The length of the packet
  // that came, if it came alone and whole; anything else is where they would leave it.
  std::uint32_t read_one(const std::uint8_t** packet) MPLITE_SIGNAL_SAFE;

 private:
  static constexpr int kEventsMax = 64;  // of one look by epoll
  static constexpr int kIdleStride =
      16;  // polls per look at the sockets when nothing is outstanding
  static constexpr unsigned kAllStride =
      16;  // reads of the preferred socket by polls, per look at all

  int poll_preferred() MPLITE_SIGNAL_SAFE;
  int look_everywhere() MPLITE_SIGNAL_SAFE;
  void tell_sleeper() MPLITE_SIGNAL_SAFE;  // of a look at all, if that is another thread
  int add_held(NetEvent* events, int found) MPLITE_SIGNAL_SAFE;
  int look_at_all() MPLITE_SIGNAL_SAFE;
  void look_at_deadlines() MPLITE_SIGNAL_SAFE;
  void look_for_silence() MPLITE_SIGNAL_SAFE;  // once a second
  void handle(const NetEvent& event) MPLITE_SIGNAL_SAFE;
  // Something may come for which epoll has to be asked, or a deadline.
  bool is_anything_underway() const MPLITE_SIGNAL_SAFE {
    return core_.underway.queued_sends != 0 || core_.handshaking.count() != 0 ||
           core_.underway.connecting != 0 || core_.underway.spilled != 0;
  }
  static bool comes_by_one_write(const Connection& c) MPLITE_SIGNAL_SAFE;
  void delay_first_look(Connection& c) MPLITE_SIGNAL_SAFE;

  EngineCore& core_;
  const Parts parts_;
  unsigned polls_ = 0;         // and repolls
  unsigned looks_at_all_ = 0;  // not polls_, which moves otherwise, too: of two counts by one
                               // counter a stride may see only the odd ones
  std::int64_t silence_look_ns_ = 0;
  Repoll repoll_;
  unsigned unfused_ = 0;  // 1: read_one is not used
  bool crowded_ = false;  // more than one connection had something at the last look at all
  bool outstanding_ = false;
  // Threads, by where each has its t_gate_depth; null: none.
  const int* sleeper_ = nullptr;  // is in wait()
  const int* looker_ = nullptr;   // called poll_all() last, or wait()
  bool told_ = false;             // the sleeper's wait is ended
  bool cannot_tell_ = false;      // there was no descriptor for that, the last time
};

}  // namespace mplite
