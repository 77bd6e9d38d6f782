// More connections to one peer, which carry long data: when they are opened, how they come up and
// end. Used by handshaker.h and the engine; uses connector.h, lane_set.h.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"
#include "mplite/engine/connector.h"
#include "mplite/engine/engine_core.h"
#include "mplite/engine/listener.h"
#include "mplite/engine/remote_jobs.h"
#include "mplite/engine/rx_stream.h"
#include "mplite/engine/tx_queue.h"
#include "mplite/engine/upcalls.h"
#include "mplite/net/lane_word.h"

namespace mplite {

// Only between ranks of a job. Either rank opens lanes when it has long data to send; both use
// those that are there. Of two attempts at one number that of the lower rank stays. A lane that is
// lost costs time only: what was on it goes over another connection. Gate held throughout.
class Lanes {
 public:
  // An attempt has so long until TCP is up. Then it stays as long as the peer does, which computes
  // perhaps.
  static constexpr std::int64_t kAttemptNs = 10'000'000'000;
  // Attempts with one peer at a time: all ranks may call one, which has 64 places for callers.
  static constexpr int kAttempts = 2;

  Lanes(EngineCore& core, Upcalls& up, TxQueue& tx, RxStream& rx, RemoteJobs& remote,
        Connector& connector, const Listener& listener)
      : core_(core),
        up_(up),
        tx_(tx),
        rx_(rx),
        remote_(remote),
        connector_(connector),
        listener_(listener) {}
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Something long for the peer is about to be queued: a transfer, or a message that might be one.
  void want(int peer) MPLITE_SIGNAL_SAFE;
  // Data for the peer waits for the network: trials begin and end.
  void wait(int peer) MPLITE_SIGNAL_SAFE;
  // Whether the lane that the peer has begun, and proved to be its own, may come up.
  bool admit(const Connection& c, int peer) MPLITE_SIGNAL_SAFE;
  // Its handshake has come to its end.
  void come_up(Connection& c, int peer) MPLITE_SIGNAL_SAFE;
  // Our attempt has come to an end. It is made again later.
  void attempt_failed(Connection& c, int error) MPLITE_SIGNAL_SAFE;
  // Attempts whose time is over.
  void look_at_attempts(std::int64_t now) MPLITE_SIGNAL_SAFE;
  // What has waited for something that does not come: attempts whose peer was cut off when TCP was
  // up, and frames that are not acknowledged as others were under way.
  void look_for_silence() MPLITE_SIGNAL_SAFE;
  // See Upcalls::lose_stream.
  void lose(Connection& c, int error, StreamFailure how) MPLITE_SIGNAL_SAFE;
  // The peer has another first connection than before.
  void first_came_up(int peer) MPLITE_SIGNAL_SAFE;
  // All that has come on the peer's lanes is acknowledged at the end of this poll.
  void acknowledge(int peer) MPLITE_SIGNAL_SAFE;
  // Where no frame is being read: says what is due to be said, and sends again what is to be sent.
  void serve() MPLITE_SIGNAL_SAFE {
    if (core_.due_lanes != nullptr) [[unlikely]]
      serve_due();
  }
  // The frames by which ranks tell each other what has come.
  Sink sink() { return {this, begin_word, end_word, nullptr}; }

 private:
  bool make_set(Peer& p) MPLITE_SIGNAL_SAFE;
  void open_missing(int peer) MPLITE_SIGNAL_SAFE;
  void ask_for_end(LaneSet& set, Lane& lane) MPLITE_SIGNAL_SAFE;
  void open(int peer, int number, int which) MPLITE_SIGNAL_SAFE;
  int address_in_turn(int peer, int number, std::int64_t now) const MPLITE_SIGNAL_SAFE;
  void learn_address(LaneSet& set, const Connection& c) const MPLITE_SIGNAL_SAFE;
  int connections_with(int peer, int which) const MPLITE_SIGNAL_SAFE;
  int address_left(int peer) const MPLITE_SIGNAL_SAFE;
  void move_lane(int peer) MPLITE_SIGNAL_SAFE;
  void note_trial(LaneSet& set, int used, int wanted, unsigned paid) MPLITE_SIGNAL_SAFE;
  void give_back(int peer) MPLITE_SIGNAL_SAFE;
  void spread(Peer& p) MPLITE_SIGNAL_SAFE;
  void end(int peer, int number, bool broken) MPLITE_SIGNAL_SAFE;
  void hear(int peer, const LaneWord& word) MPLITE_SIGNAL_SAFE;
  void serve_due() MPLITE_SIGNAL_SAFE;
  bool serve(LaneSet& set) MPLITE_SIGNAL_SAFE;
  bool say(int peer, int number, bool ended) MPLITE_SIGNAL_SAFE;
  static Verdict begin_word(void* self, int peer, const FrameHeader& header,
                            Destination& destination) MPLITE_SIGNAL_SAFE;
  static void end_word(void* self, int peer, const FrameHeader& header) MPLITE_SIGNAL_SAFE;

  EngineCore& core_;
  Upcalls& up_;
  TxQueue& tx_;
  RxStream& rx_;
  RemoteJobs& remote_;
  Connector& connector_;
  const Listener& listener_;
};

}  // namespace mplite
