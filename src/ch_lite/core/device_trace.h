// What the device tells the trace (LITE_TRACE): which message is which, from the packets that leave
// and arrive, so that a send and its receive can be found together in the ranks' files. A member of
// Core, called gate held by the protocol files. Off, each call costs a load and a branch.
#pragma once
#include <cstdint>

#include "ch_lite/core/packet.h"
#include "ch_lite/core/request.h"
#include "mplite/observe/trace.h"

namespace ch_lite {

using mplite::TraceEvent;
using mplite::TraceMessage;

class MessageTrace {
 public:
  static bool on() MPLITE_SIGNAL_SAFE { return mplite::g_trace_on; }

  // ---- leaving ----
  // A packet has been sent, which began at `time_ns` (the peer may have had it before the call came
  // back).
  void packet_left(const PacketHeader* packet, int peer, std::int64_t time_ns) MPLITE_SIGNAL_SAFE;
  // The request's message is the one that has just left.
  void is_last(Request* r) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      mark(r->traced, left_);
  }
  // The message that has just left was done with that.
  void last_is_done(int peer) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      mplite::trace_message(TraceEvent::kSendEnd, peer, left_);
  }
  void stalled(int peer, std::uint64_t bytes, std::uint64_t left) const MPLITE_SIGNAL_SAFE {
    mplite::trace(TraceEvent::kCreditStalled, peer, bytes, left);
  }

  // ---- arriving ----
  void packet_came(const Packet& packet, int from) MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      note_packet(packet, from);
  }
  // As packet_came and matched at once (take_awaited).
  void awaited_came(const MessagePacket& packet, int from, Request* r) MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      note_awaited(packet, from, r);
  }
  // To oneself: leaves and arrives.
  void to_self(int self, const MatchKey& key, std::uint64_t bytes) MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      note_self(self, key, bytes);
  }
  // What has just arrived found no receive; m: what keeps it.
  void unexpected(int from) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      mplite::trace_message(TraceEvent::kUnexpected, from, came_);
  }
  void kept(Message* m) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      mark(m->traced, came_);
  }
  // What is matched next is what m keeps.
  void taken_up(const Message* m) MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      came_ = message_of(*m);
  }
  void matched(Request* r, int from) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      note_matched(r, from);
  }
  // m has been received whole, by a receive that needed no request.
  void received(const Message* m, int error) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      note_received(m, error);
  }
  void deferred(const Message* m) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      mplite::trace_message(TraceEvent::kEagerDeferred, m->peer, message_of(*m));
  }
  void resumed(const Message* m) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      mplite::trace_message(TraceEvent::kEagerResumed, m->peer, message_of(*m));
  }
  void active_message_begins(const Message* m) const {
    if (on()) [[unlikely]]
      mplite::trace_message(TraceEvent::kActiveMessage, m->peer, message_of(*m));
  }
  void active_message_ended() const { mplite::trace(TraceEvent::kActiveMessageEnd); }

  // ---- requests ----
  void started(Request* r) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      note_started(r);
  }
  void completed(const Request* r) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      note_completed(r);
  }
  void cancelled(const Request* r) const MPLITE_SIGNAL_SAFE {
    if (on()) [[unlikely]]
      mplite::trace_message(TraceEvent::kReceiveDropped, r->peer, message_of(*r));
  }

 private:
  static void mark(TraceMark& mark, const TraceMessage& message) MPLITE_SIGNAL_SAFE {
    mark = {message.sequence, message.protocol};
  }
  static TraceMessage message_of(const Request& r) MPLITE_SIGNAL_SAFE;
  static TraceMessage message_of(const Message& m) MPLITE_SIGNAL_SAFE;
  [[gnu::cold]] void note_packet(const Packet& packet, int from) MPLITE_SIGNAL_SAFE;
  [[gnu::cold]] void note_awaited(const MessagePacket& packet, int from,
                                  Request* r) MPLITE_SIGNAL_SAFE;
  [[gnu::cold]] void note_self(int self, const MatchKey& key,
                               std::uint64_t bytes) MPLITE_SIGNAL_SAFE;
  [[gnu::cold]] void note_matched(Request* r, int from) const MPLITE_SIGNAL_SAFE;
  [[gnu::cold]] void note_received(const Message* m, int error) const MPLITE_SIGNAL_SAFE;
  [[gnu::cold]] void note_started(Request* r) const MPLITE_SIGNAL_SAFE;
  [[gnu::cold]] void note_completed(const Request* r) const MPLITE_SIGNAL_SAFE;

  TraceMessage left_;  // the message whose packet left last
  TraceMessage came_;  // the message that arrived last, or is taken up
};

}  // namespace ch_lite
