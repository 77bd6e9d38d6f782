// The device's messages in the trace. Runs only while it is on.
#include "ch_lite/core/device_trace.h"

#include <cstring>

namespace ch_lite {
namespace {

using mplite::trace;
using mplite::trace_message;
using mplite::TraceProtocol;

// Of packets that bring a message, or ask for something: these are numbered. kNone: all others.
TraceProtocol protocol_of(PacketType type) {
  switch (type) {
    case PacketType::kShort: return TraceProtocol::kShort;
    case PacketType::kEager: return TraceProtocol::kEager;
    case PacketType::kRts: return TraceProtocol::kRendezvous;
    case PacketType::kAmShort: return TraceProtocol::kActiveShort;
    case PacketType::kAmEager: return TraceProtocol::kActiveEager;
    case PacketType::kAmRts: return TraceProtocol::kActiveRendezvous;
    case PacketType::kPut: return TraceProtocol::kPut;
    case PacketType::kPutRequest: return TraceProtocol::kPutTransfer;
    case PacketType::kGet: return TraceProtocol::kGet;
    case PacketType::kGetTransfer: return TraceProtocol::kGetTransfer;
    default: return TraceProtocol::kNone;
  }
}

template <typename T>
T read_as(const PacketHeader* packet) {
  T t;
  std::memcpy(static_cast<void*>(&t), packet, sizeof t);
  return t;
}

// Of a packet of ours: tag, bytes and request.
void describe(const PacketHeader* packet, TraceMessage& m) {
  switch (m.protocol) {
    case TraceProtocol::kShort:
    case TraceProtocol::kEager:
    case TraceProtocol::kRendezvous: {
      const auto p = read_as<MessagePacket>(packet);
      m.tag = p.tag;
      m.bytes = p.bytes;
      m.request = p.sender;
      return;
    }
    case TraceProtocol::kActiveShort:
    case TraceProtocol::kActiveEager:
    case TraceProtocol::kActiveRendezvous: {
      const auto p = read_as<AmPacket>(packet);
      m.tag = static_cast<std::int32_t>(p.handler);
      m.bytes = p.header_bytes + p.data_bytes;
      m.request = p.sender;
      return;
    }
    default: {
      const auto p = read_as<AccessPacket>(packet);
      m.bytes = p.bytes;
      m.request = p.id;
    }
  }
}

bool is_active(TraceProtocol protocol) {
  return protocol == TraceProtocol::kActiveShort || protocol == TraceProtocol::kActiveEager ||
         protocol == TraceProtocol::kActiveRendezvous;
}

}  // namespace

TraceMessage MessageTrace::message_of(const Request& r) {
  TraceMessage m;
  m.bytes = r.status.bytes;
  m.request = r.pool_handle;
  m.tag = r.key.tag;
  m.sequence = r.traced.sequence;
  m.protocol = r.traced.protocol;
  return m;
}

TraceMessage MessageTrace::message_of(const Message& kept) {
  TraceMessage m;
  m.bytes = kept.bytes;
  m.tag = kept.active ? static_cast<std::int32_t>(kept.am_handler) : kept.key.tag;
  m.sequence = kept.traced.sequence;
  m.protocol = kept.traced.protocol;
  return m;
}

void MessageTrace::packet_left(const PacketHeader* packet, int peer, std::int64_t time_ns) {
  if ((packet->credit | packet->am_credit) != 0)
    trace(TraceEvent::kCreditGranted, peer, packet->credit, packet->am_credit);
  TraceMessage m;
  m.protocol = protocol_of(packet->type);
  if (m.protocol != TraceProtocol::kNone) {
    describe(packet, m);
    m.sequence = mplite::trace_next_sent(peer);
    trace_message(TraceEvent::kSendBegin, peer, m, time_ns);
    left_ = m;
    if (packet->type == PacketType::kShort && (packet->flags & kPacketSync) == 0)
      last_is_done(peer);
  } else if (packet->type == PacketType::kCts) {
    const auto cts = read_as<CtsPacket>(packet);
    trace(TraceEvent::kCts, peer, cts.accepted, cts.sender);
  } else if (packet->type != PacketType::kCredit) {
    trace(TraceEvent::kAck, peer, 0, read_as<AckPacket>(packet).sender);
  }
}

void MessageTrace::note_packet(const Packet& packet, int from) {
  if ((packet.credit | packet.am_credit) != 0)
    trace(TraceEvent::kCreditReturned, from, packet.credit, packet.am_credit);
  TraceMessage m;
  m.protocol = protocol_of(packet.type);
  if (m.protocol != TraceProtocol::kNone) {
    m.bytes = packet.bytes;
    m.tag = is_active(m.protocol) ? static_cast<std::int32_t>(packet.handler) : packet.key.tag;
    m.sequence = mplite::trace_next_arrived(from);
    came_ = m;
    if (m.protocol >= TraceProtocol::kActiveShort) trace_message(TraceEvent::kPeerRequest, from, m);
  } else if (packet.type == PacketType::kCts) {
    trace(TraceEvent::kCtsArrived, from, packet.bytes, packet.sender);
  } else if (packet.type != PacketType::kCredit) {
    trace(TraceEvent::kAckArrived, from, packet.bytes, packet.sender);
  }
}

void MessageTrace::note_awaited(const MessagePacket& packet, int from, Request* r) {
  if (packet.header.credit != 0)
    trace(TraceEvent::kCreditReturned, from, packet.header.credit, packet.header.am_credit);
  came_ = {};
  came_.protocol = TraceProtocol::kShort;
  came_.bytes = packet.bytes;
  came_.tag = packet.tag;
  came_.sequence = mplite::trace_next_arrived(from);
  note_matched(r, from);
}

void MessageTrace::note_self(int self, const MatchKey& key, std::uint64_t bytes) {
  TraceMessage m;
  m.protocol = TraceProtocol::kSelf;
  m.tag = key.tag;
  m.bytes = bytes;
  m.sequence = mplite::trace_next_sent(self);
  trace_message(TraceEvent::kSendBegin, self, m);
  left_ = came_ = m;
}

void MessageTrace::note_matched(Request* r, int from) const {
  mark(r->traced, came_);
  TraceMessage m = came_;
  m.request = r->pool_handle;
  trace_message(TraceEvent::kMatched, from, m);
}

void MessageTrace::note_received(const Message* kept, int error) const {
  TraceMessage m = message_of(*kept);
  trace_message(TraceEvent::kMatched, kept->peer, m);
  m.error = error;
  trace_message(TraceEvent::kReceiveEnd, kept->peer, m);
}

void MessageTrace::note_started(Request* r) const {
  if (r->kind == RequestKind::kReceive) {
    r->traced = {};
    if (r->state != RequestState::kPosted) return;
    TraceMessage m = message_of(*r);
    m.bytes = r->bytes;
    trace_message(TraceEvent::kReceivePosted, r->peer, m);
  } else if (r->state == RequestState::kWaitingCredit) {
    r->traced = {};
  } else {
    mark(r->traced, left_);
  }
}

void MessageTrace::note_completed(const Request* r) const {
  TraceMessage m = message_of(*r);
  m.error = r->status.error;
  const bool receive = r->kind == RequestKind::kReceive;
  if (!receive) m.bytes = r->bytes;
  const bool dropped = receive && r->traced.protocol == TraceProtocol::kNone;
  trace_message(dropped   ? TraceEvent::kReceiveDropped
                : receive ? TraceEvent::kReceiveEnd
                          : TraceEvent::kSendEnd,
                r->peer, m);
}

}  // namespace ch_lite
