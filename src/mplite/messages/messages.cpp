// Tagged messages: matching, the unexpected queue and its bound, and what a lost peer means to
// whom.
#include "mplite/messages/messages.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "mplite/observe/trace.h"

namespace mplite {
namespace {

MPLITE_ORDINARY std::uint8_t* new_data(std::uint64_t bytes) {
  return static_cast<std::uint8_t*>(std::malloc(static_cast<std::size_t>(bytes)));
}
MPLITE_ORDINARY void free_data(std::uint8_t* data) { std::free(data); }

bool tag_fits(std::int64_t wanted, std::uint64_t tag) {
  return wanted == kAnyTag ? tag <= kUserTagMax : static_cast<std::uint64_t>(wanted) == tag;
}

TraceMessage traced(std::uint64_t tag, std::uint64_t bytes, std::uint32_t sequence) {
  TraceMessage m;
  m.protocol = TraceProtocol::kMessage;
  m.tag = static_cast<std::int32_t>(tag);
  m.bytes = bytes;
  m.sequence = sequence;
  return m;
}

bool valid_tag(std::uint64_t tag) {
  return tag <= kUserTagMax || (tag >= kSystemTag && tag <= kSystemTagMax);
}

}  // namespace

Messages::Messages(Engine& engine, std::uint64_t unexpected_max_bytes)
    : engine_(engine), unexpected_max_bytes_(unexpected_max_bytes) {}

Messages::~Messages() {
  for (int i = 0; sources_ != nullptr && i < engine_size_; ++i) {
    ArrivedMessage* m = sources_[i].node;
    if (m != nullptr && m->claimed != nullptr)
      std::free(m->data == m->inline_bytes ? nullptr : m->data);  // in no queue any more
  }
  for (ArrivedMessage* m = head_; m != nullptr; m = m->next)
    if (m->data != m->inline_bytes) std::free(m->data);
  for (ArrivedMessage* m = stale_; m != nullptr; m = m->next)
    if (m->data != m->inline_bytes) std::free(m->data);
  std::free(by_index_);
  delete[] sources_;
}

bool Messages::start() {
  engine_size_ = engine_.size();
  sources_ = new (std::nothrow) Source[static_cast<std::size_t>(engine_size_)];
  if (sources_ == nullptr || !arrived_.reserve(kSmallNodes)) return false;
  engine_.set_sink(FrameKind::kMessage, Sink{this, on_begin, on_end});
  engine_.set_lost(on_lost, this);
  return true;
}

// ---- requests ----

MessageRequest* Messages::take_request() {
  if (requests_.free_count() == 0 && !requests_.reserve(1)) return nullptr;
  MessageRequest* r = requests_.take();
  const auto index = static_cast<std::uint32_t>(r->pool_handle);
  if (index >= by_index_size_) {
    const std::uint32_t size = index + 256;
    auto** grown =
        static_cast<MessageRequest**>(std::realloc(by_index_, size * sizeof(MessageRequest*)));
    if (grown == nullptr) {
      requests_.give(r);
      return nullptr;
    }
    std::fill(grown + by_index_size_, grown + size, nullptr);
    by_index_ = grown;
    by_index_size_ = size;
  }
  by_index_[index] = r;
  return r;
}

int Messages::id_of(const MessageRequest* r) const {
  const auto index = static_cast<std::uint32_t>(r->pool_handle);
  const auto generation = static_cast<std::uint32_t>(r->pool_handle >> 32);
  return static_cast<int>((generation << kRequestBits | index) & 0x7fffffff);
}

MessageRequest* Messages::find(int id) const {
  const std::uint32_t index = static_cast<std::uint32_t>(id) & ((1u << kRequestBits) - 1);
  if (id < 0 || index >= by_index_size_ || by_index_[index] == nullptr) return nullptr;
  // A node that was given back has the next generation already, so its old id does not fit.
  return id_of(by_index_[index]) == id ? by_index_[index] : nullptr;
}

void Messages::complete(MessageRequest* r, int peer, std::uint64_t tag, std::uint64_t total) {
  r->peer = peer;
  r->matched_tag = tag;
  r->bytes = std::min(total, r->room);
  r->outcome = total > r->room ? Outcome::kTruncated : Outcome::kComplete;
  if (total > r->room) ++engine_.counters().truncated;
  --pending_receives_;
  if (g_trace_on)
    trace_message(TraceEvent::kReceiveEnd, peer, traced(tag, r->bytes, r->trace_sequence));
}

void Messages::fail(MessageRequest* r, int peer, int error) {
  if (r->posted) unpost(r);
  r->peer = peer;
  r->error = error;
  r->outcome = Outcome::kPeerLost;
  --pending_receives_;
  if (g_trace_on) {
    TraceMessage m = traced(static_cast<std::uint64_t>(r->tag), 0, r->trace_sequence);
    m.error = error;
    trace_message(r->trace_sequence != 0 ? TraceEvent::kReceiveEnd : TraceEvent::kReceiveDropped,
                  peer, m);
  }
}

void Messages::release(MessageRequest* r) {
  if (r->outcome == Outcome::kPending && r->is_send) {
    engine_.on_done(r->op, nullptr, nullptr);
    engine_.release(r->op);
  } else if (r->outcome == Outcome::kPending) {
    if (r->posted) unpost(r);
    for (int i = 0; i < engine_size_; ++i) {
      Source& s = sources_[i];
      const bool direct = s.request == r;
      const bool claimed = s.node != nullptr && s.node == r->claimed;
      if (!direct && !claimed) continue;
      // The rest of this message has no taker any more.
      engine_.redirect(i, FrameKind::kMessage, s.tag, {});
      s.into_node = false;
      s.request = nullptr;
      if (claimed) discard(s.node);
      s.node = nullptr;
    }
    --pending_receives_;
  }
  requests_.give(r);
}

// ---- in the trace ----

// The message of r has left, from began_ns on (0: now).
void Messages::trace_left(MessageRequest* r, std::int64_t began_ns) {
  r->trace_sequence = trace_next_sent(r->peer);
  trace_message(TraceEvent::kSendBegin, r->peer,
                traced(r->matched_tag, r->bytes, r->trace_sequence), began_ns);
}

// A message begins: for r, or kept in m, or of no use to anybody.
void Messages::trace_came(int peer, std::uint64_t tag, std::uint64_t total, MessageRequest* r,
                          ArrivedMessage* m) {
  const std::uint32_t sequence = trace_next_arrived(peer);
  if (r != nullptr) r->trace_sequence = sequence;
  if (m != nullptr) m->trace_sequence = sequence;
  trace_message(r != nullptr ? TraceEvent::kMatched : TraceEvent::kUnexpected, peer,
                traced(tag, total, sequence));
}

// ---- sending ----

void Messages::on_sent(void* arg, int error) {
  auto* r = static_cast<MessageRequest*>(arg);
  r->op = nullptr;
  r->error = error;
  if (g_trace_on) {
    TraceMessage m = traced(r->matched_tag, r->bytes, r->trace_sequence);
    m.error = error;
    trace_message(TraceEvent::kSendEnd, r->peer, m);
  }
  r->outcome = error == 0 ? Outcome::kComplete : Outcome::kPeerLost;
}

int Messages::send(const void* buffer, std::uint64_t bytes, int destination, std::uint64_t tag,
                   MessageRequest*& request) {
  MessageRequest* r = take_request();
  if (r == nullptr) return -ENOMEM;
  Counters& counters = engine_.counters();
  r->is_send = true;
  r->source = r->peer = destination;
  r->matched_tag = tag;
  r->bytes = bytes;
  if (destination == engine_.rank()) {
    if (MessageRequest* receive = match(destination, tag); receive != nullptr) {
      unpost(receive);
      if (g_trace_on) {
        trace_left(r);
        trace_came(destination, tag, bytes, receive, nullptr);
      }
      if (const auto n = static_cast<std::size_t>(std::min(bytes, receive->room)); n > 0)
        std::memmove(receive->buffer, buffer, n);
      complete(receive, destination, tag, bytes);
    } else {
      // Beyond any bound: nobody else can take it, and a blocking send to oneself must return.
      ArrivedMessage* m = admit(destination, tag, bytes, true);
      if (m == nullptr) {
        requests_.give(r);
        return -ENOMEM;
      }
      if (bytes > 0) copy_bytes(m->data, buffer, static_cast<std::size_t>(bytes));
      m->staged = bytes;
      m->complete = true;
      if (g_trace_on) {
        trace_left(r);
        trace_came(destination, tag, bytes, nullptr, m);
      }
    }
    if (g_trace_on)
      trace_message(TraceEvent::kSendEnd, destination, traced(tag, bytes, r->trace_sequence));
    r->outcome = Outcome::kComplete;
    ++counters.self_msgs;
    counters.self_bytes += bytes;
    request = r;
    return 0;
  }
  const std::int64_t began_ns = g_trace_on ? trace_now_ns() : 0;
  const int rc = engine_.send(destination, FrameKind::kMessage, tag, buffer, bytes, r->op);
  if (rc < 0) {
    requests_.give(r);
    return rc == -ENOBUFS ? -ENOMEM : rc;
  }
  ++counters.eager_msgs;
  counters.eager_bytes += bytes;
  if (g_trace_on) trace_left(r, began_ns);
  if (r->op == nullptr)
    on_sent(r, 0);
  else
    engine_.on_done(r->op, on_sent, r);
  request = r;
  return 0;
}

bool Messages::keep(MessageRequest* r) {
  if (!engine_.keep_copy(r->op)) return false;
  engine_.on_done(r->op, nullptr, nullptr);
  engine_.release(r->op);
  on_sent(r, 0);
  return true;
}

// ---- receiving ----

void Messages::post(MessageRequest* r) {
  Queue& q = r->source < 0 ? posted_any_ : sources_[r->source].posted;
  r->sequence = ++sequence_;
  r->next = nullptr;
  r->previous = q.tail;
  (q.tail != nullptr ? q.tail->next : q.head) = r;
  q.tail = r;
  r->posted = true;
  if (g_trace_on)
    trace_message(TraceEvent::kReceivePosted, r->source,
                  traced(static_cast<std::uint64_t>(r->tag), r->room, 0));
}

void Messages::unpost(MessageRequest* r) {
  Queue& q = r->source < 0 ? posted_any_ : sources_[r->source].posted;
  (r->previous != nullptr ? r->previous->next : q.head) = r->next;
  (r->next != nullptr ? r->next->previous : q.tail) = r->previous;
  r->next = r->previous = nullptr;
  r->posted = false;
}

// The receive posted first among those that fit; it stays in its queue.
MessageRequest* Messages::match(int peer, std::uint64_t tag) {
  MessageRequest* named = sources_[peer].posted.head;
  while (named != nullptr && !tag_fits(named->tag, tag)) named = named->next;
  MessageRequest* any = posted_any_.head;
  while (any != nullptr && !tag_fits(any->tag, tag)) any = any->next;
  if (named == nullptr || any == nullptr) return named != nullptr ? named : any;
  return named->sequence < any->sequence ? named : any;
}

ArrivedMessage* Messages::find_arrived(int source, std::int64_t tag) const {
  ArrivedMessage* m = source < 0 ? head_ : sources_[source].head;
  while (m != nullptr && !tag_fits(tag, m->tag)) m = source < 0 ? m->next : m->source_next;
  return m;
}

int Messages::receive(void* buffer, std::uint64_t room, int source, std::int64_t tag,
                      MessageRequest*& request) {
  MessageRequest* r = take_request();
  if (r == nullptr) return -ENOMEM;
  r->buffer = static_cast<std::uint8_t*>(buffer);
  r->room = room;
  r->source = source;
  r->tag = tag;
  ++pending_receives_;
  request = r;
  ArrivedMessage* m = find_arrived(source, tag);
  if (m == nullptr) {
    post(r);
    if (parked_count_ > 0) serve_parked(false);
    return 0;
  }
  unlink(m);
  hand_over(m, r);
  r->trace_sequence = m->trace_sequence;
  if (g_trace_on)
    trace_message(TraceEvent::kMatched, m->source, traced(m->tag, m->total, m->trace_sequence));
  if (m->complete) {
    complete(r, m->source, m->tag, m->total);
    discard(m);
  } else {
    m->claimed = r;
    r->claimed = m;
  }
  return 0;
}

int Messages::hopeless_source(int source) const {
  if (source == engine_.rank()) return -1;
  if (source >= 0) return engine_.peer_error(source) != 0 ? source : -1;
  return engine_size_ > 1 && lost_count_ == engine_size_ - 1 ? last_lost_peer_ : -1;
}

void Messages::check_hope(MessageRequest* r) {
  if (r->is_send || !r->posted) return;
  if (const int lost = hopeless_source(r->source); lost >= 0)
    fail(r, lost, engine_.peer_error(lost));
}

bool Messages::probe(int source, std::int64_t tag, MessageInfo& info) const {
  if (const ArrivedMessage* m = find_arrived(source, tag); m != nullptr) {
    info = {m->source, m->tag, m->total};
    return true;
  }
  // Held back at the head of its connection: whatever else its source sent is older and did not
  // fit.
  for (int i = source < 0 ? 0 : source;
       parked_count_ > 0 && i < (source < 0 ? engine_size_ : source + 1); ++i) {
    const Source& s = sources_[i];
    if (!s.parked || !tag_fits(tag, s.parked_tag)) continue;
    info = {i, s.parked_tag, s.parked_total};
    return true;
  }
  return false;
}

// ---- the unexpected queue ----

std::uint64_t Messages::charge_of(std::uint64_t total) {
  return sizeof(ArrivedMessage) + (total > ArrivedMessage::kInlineBytes ? total : 0);
}

bool Messages::fits(std::uint64_t total) const {
  const std::uint64_t charge = charge_of(total);
  return charge <= unexpected_max_bytes_ && unexpected_bytes_ <= unexpected_max_bytes_ - charge;
}

// A place for a message that nobody asked for yet, or nullptr: out of bound, or this needs an
// allocation and we are in the handler.
ArrivedMessage* Messages::admit(int peer, std::uint64_t tag, std::uint64_t total,
                                bool beyond_bound) {
  if (!beyond_bound && !fits(total)) return nullptr;
  const bool large = total > ArrivedMessage::kInlineBytes;
  const bool async = engine_.async();
  if (async && (large || arrived_.free_count() == 0)) {
    ++engine_.counters().no_memory_in_handler;
    return nullptr;
  }
  if (arrived_.free_count() == 0 && !arrived_.reserve(1)) return nullptr;
  ArrivedMessage* m = arrived_.take();
  m->data = m->inline_bytes;
  if (large) {
    m->data = total <= PTRDIFF_MAX ? new_data(total) : nullptr;
    if (m->data == nullptr) {
      arrived_.give(m);
      return nullptr;
    }
  }
  m->source = peer;
  m->tag = tag;
  m->total = total;
  m->charge = charge_of(total);
  unexpected_bytes_ += m->charge;
  link(m);
  Counters& counters = engine_.counters();
  ++counters.unexpected;
  counters.unexpected_bytes += total;
  counters.unexpected_bytes_peak = std::max(counters.unexpected_bytes_peak, unexpected_bytes_);
  return m;
}

void Messages::link(ArrivedMessage* m) {
  m->previous = tail_;
  (tail_ != nullptr ? tail_->next : head_) = m;
  tail_ = m;
  Source& s = sources_[m->source];
  m->source_previous = s.tail;
  (s.tail != nullptr ? s.tail->source_next : s.head) = m;
  s.tail = m;
}

void Messages::unlink(ArrivedMessage* m) {
  (m->previous != nullptr ? m->previous->next : head_) = m->next;
  (m->next != nullptr ? m->next->previous : tail_) = m->previous;
  Source& s = sources_[m->source];
  (m->source_previous != nullptr ? m->source_previous->source_next : s.head) = m->source_next;
  (m->source_next != nullptr ? m->source_next->source_previous : s.tail) = m->source_previous;
  m->next = m->previous = m->source_next = m->source_previous = nullptr;
}

// Unlinked before.
void Messages::discard(ArrivedMessage* m) {
  unexpected_bytes_ -= m->charge;
  if (m->data != m->inline_bytes) {
    if (engine_.async()) {  // free() is not for the handler
      m->next = stale_;
      stale_ = m;
      return;
    }
    free_data(m->data);
  }
  arrived_.give(m);
}

// Copies what is there and was not given yet.
void Messages::hand_over(ArrivedMessage* m, MessageRequest* r) {
  const std::uint64_t upto = std::min(m->staged, r->room);
  if (upto > m->copied)
    copy_bytes(r->buffer + m->copied, m->data + m->copied,
               static_cast<std::size_t>(upto - m->copied));
  m->copied = m->staged;
}

void Messages::unpark(int peer, bool beyond_bound) {
  sources_[peer].parked = false;
  --parked_count_;
  beyond_bound_ = beyond_bound;
  engine_.resume_rx(peer);
  beyond_bound_ = false;
}

void Messages::serve_parked(bool make_room) {
  for (int i = 0; parked_count_ > 0 && i < engine_size_; ++i) {
    Source& s = sources_[i];
    if (!s.parked) continue;
    // A receive that is posted may wait for what stands behind this one. Without room for it that
    // receive would never end.
    const bool awaited = make_room && (s.posted.head != nullptr || posted_any_.head != nullptr);
    if (awaited || fits(s.parked_total) || dropping_ || match(i, s.parked_tag) != nullptr)
      unpark(i, awaited);
  }
}

bool Messages::make_room_for(int source) {
  no_memory_ = false;
  for (int i = source < 0 ? 0 : source;
       parked_count_ > 0 && i < (source < 0 ? engine_size_ : source + 1); ++i)
    if (sources_[i].parked) unpark(i, true);
  return !no_memory_;
}

bool Messages::service() {
  while (stale_ != nullptr) {
    ArrivedMessage* m = stale_;
    stale_ = m->next;
    std::free(m->data);
    arrived_.give(m);
  }
  if (arrived_.free_count() < kSmallNodes / 2) arrived_.reserve(kSmallNodes);
  no_memory_ = false;
  if (parked_count_ > 0) serve_parked(true);
  return !no_memory_;
}

void Messages::drop_unmatched() {
  dropping_ = true;
  if (parked_count_ > 0) serve_parked(false);
}

// ---- what the engine calls, perhaps in the handler ----

Verdict Messages::on_begin(void* self, int peer, const FrameHeader& header,
                           Destination& destination) {
  return static_cast<Messages*>(self)->begin(peer, header, destination);
}
void Messages::on_end(void* self, int peer, const FrameHeader& header) {
  static_cast<Messages*>(self)->end(peer, header);
}
void Messages::on_lost(void* self, int peer, int error) {
  static_cast<Messages*>(self)->lost(peer, error);
}

Verdict Messages::begin(int peer, const FrameHeader& header, Destination& destination) {
  Source& s = sources_[peer];
  if (!s.open) {
    if (header.offset != 0 || !valid_tag(header.id)) return Verdict::kReject;
    MessageRequest* r = match(peer, header.id);
    ArrivedMessage* m = nullptr;
    if (r == nullptr && !(dropping_ && header.id <= kUserTagMax)) {
      const bool beyond_bound = beyond_bound_;
      beyond_bound_ = false;
      m = admit(peer, header.id, header.total, beyond_bound);
      if (m == nullptr) {
        if (beyond_bound) no_memory_ = true;
        s.parked = true;
        s.parked_tag = header.id;
        s.parked_total = header.total;
        ++parked_count_;
        return Verdict::kPause;
      }
    }
    if (r != nullptr) unpost(r);
    if (g_trace_on) trace_came(peer, header.id, header.total, r, m);
    s.open = true;
    s.request = r;
    s.node = m;
    s.tag = header.id;
    s.total = header.total;
    s.arrived = 0;
  } else if (header.offset != s.arrived || header.id != s.tag || header.total != s.total) {
    return Verdict::kReject;
  }
  MessageRequest* r = s.node != nullptr ? s.node->claimed : s.request;
  s.into_node = s.node != nullptr && r == nullptr;
  if (s.into_node) {
    destination = {s.node->data + header.offset, header.length};
  } else if (r != nullptr && r->room > header.offset) {
    destination = {r->buffer + header.offset, r->room - header.offset};
  }
  return Verdict::kTake;
}

void Messages::end(int peer, const FrameHeader& header) {
  Source& s = sources_[peer];
  s.arrived += header.length;
  if (s.into_node) {
    s.into_node = false;
    s.node->staged = s.arrived;
    if (s.node->claimed != nullptr) hand_over(s.node, s.node->claimed);
  }
  if (s.arrived < s.total) return;
  s.open = false;
  MessageRequest* r = s.request;
  ArrivedMessage* m = s.node;
  s.request = nullptr;
  s.node = nullptr;
  if (m != nullptr && m->claimed != nullptr) {
    r = m->claimed;
    r->claimed = nullptr;
    discard(m);
  } else if (m != nullptr) {
    m->complete = true;
  }
  if (r != nullptr) complete(r, peer, s.tag, s.total);
}

void Messages::lost(int peer, int error) {
  Source& s = sources_[peer];
  ++lost_count_;
  last_lost_peer_ = peer;
  while (s.posted.head != nullptr) fail(s.posted.head, peer, error);
  // Any-source receives cannot know whether it was this one that they wait for: each is told once,
  // and the application decides whether to post again.
  while (posted_any_.head != nullptr) fail(posted_any_.head, peer, error);
  if (s.request != nullptr) fail(s.request, peer, error);
  if (s.node != nullptr) {  // its end will never come
    if (s.node->claimed != nullptr) {
      s.node->claimed->claimed = nullptr;
      fail(s.node->claimed, peer, error);
    } else {
      unlink(s.node);
    }
    discard(s.node);
  }
  s.request = nullptr;
  s.node = nullptr;
  s.open = s.into_node = false;
  if (s.parked) {
    s.parked = false;
    --parked_count_;
  }
}

}  // namespace mplite
