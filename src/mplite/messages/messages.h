// Tagged messages over the engine: matches what arrives to what was posted, straight into the
// user's buffer when it can be. Used by mplite.cpp (MP_*). Uses engine.h; knows neither waiting nor
// controllers. Gate held throughout.
#pragma once
#include <cstddef>
#include <cstdint>

#include "mplite/base/pool.h"
#include "mplite/base/signal_safe.h"
#include "mplite/engine/engine.h"

namespace mplite {

inline constexpr int kAnySource = -1;
inline constexpr std::int64_t kAnyTag = -1;
// Tags of the application are 0 … kUserTagMax. The library's own stand above, and no wildcard
// matches them.
inline constexpr std::uint64_t kUserTagMax = 0x7fffffff;
inline constexpr std::uint64_t kSystemTag = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kSystemTagMax = kSystemTag + 0xffff;

enum class Outcome : std::uint8_t {
  kPending,
  kComplete,
  kTruncated,  // the first bytes were delivered
  kPeerLost,   // `peer` and `error` (an errno) say who and why
};

struct ArrivedMessage;

// A send or receive that was started and not yet released. The pool's; its address is stable until
// release().
struct MessageRequest {
  MessageRequest* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  MessageRequest* next = nullptr;  // in the posted queue of its source, or of any source
  MessageRequest* previous = nullptr;
  std::uint8_t* buffer = nullptr;
  std::uint64_t room = 0;
  std::uint64_t sequence = 0;         // of posting
  std::int64_t tag = 0;               // wanted: kAnyTag or a tag
  int source = 0;                     // wanted: kAnySource or a rank; of a send, the destination
  ArrivedMessage* claimed = nullptr;  // matched a message that is still arriving
  SendOp* op = nullptr;               // of a send under way
  // result
  std::uint64_t bytes = 0;  // delivered
  std::uint64_t matched_tag = 0;
  int peer = -1;  // whose message it was, or who was lost
  int error = 0;
  std::uint32_t trace_sequence = 0;  // TraceMessage::sequence of its message
  Outcome outcome = Outcome::kPending;
  bool is_send = false;
  bool posted = false;  // stands in a posted queue
};

// An unexpected message, whole or still arriving.
struct ArrivedMessage {
  static constexpr std::uint32_t kInlineBytes =
      1024;  // so much can be held without allocation, in the handler too
  ArrivedMessage* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  ArrivedMessage *next = nullptr, *previous = nullptr;                // all, in order of arrival
  ArrivedMessage *source_next = nullptr, *source_previous = nullptr;  // of this source
  std::uint8_t* data = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t total = 0;
  std::uint64_t staged =
      0;  // bytes in `data`; what comes behind the claim goes to the receive's buffer directly
  std::uint64_t copied = 0;  // of them, given to the claiming receive
  std::uint64_t charge = 0;  // against the bound
  MessageRequest* claimed = nullptr;
  int source = -1;
  std::uint32_t trace_sequence = 0;  // TraceMessage::sequence
  bool complete = false;
  std::uint8_t inline_bytes[kInlineBytes];
};

// What a probe tells.
struct MessageInfo {
  int source = -1;
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;  // the whole length
};

class Messages {
 public:
  // `unexpected_max_bytes` bounds what is held for receives not yet posted, over all peers (a small
  // message counts for its node).
  Messages(Engine& engine, std::uint64_t unexpected_max_bytes);
  ~Messages();  // after the engine's: its last send operations complete into requests
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // Ordinary context, once, before traffic: pools, sinks. False: out of memory.
  bool start();

  // Ordinary context. 0 and `request` set; request may be complete already. -ENOMEM; of send also
  // the errno of a lost peer. A send to oneself is copied and complete at once.
  int send(const void* buffer, std::uint64_t bytes, int destination, std::uint64_t tag,
           MessageRequest*& request);
  int receive(void* buffer, std::uint64_t room, int source, std::int64_t tag,
              MessageRequest*& request);
  // Gives a request back. A pending receive is withdrawn, its buffer is not touched any more; a
  // pending send may go on reading its buffer unless it was kept.
  void release(MessageRequest* request);
  // Ends a pending send early by copying what is left of it; false when the bound on copies is
  // reached.
  bool keep(MessageRequest* request);
  // Fails a pending receive that nobody can serve any more, because its source, or with kAnySource
  // every other rank, is lost.
  void check_hope(MessageRequest* request);
  // The lost rank because of which nothing can come from `source` any more, or -1.
  int hopeless_source(int source) const;

  // The earliest message that a receive of (source, tag) would take, arrived or held back at the
  // head of its connection.
  bool probe(int source, std::int64_t tag, MessageInfo& info) const;
  // Somebody waits in probe: what stands before messages of `source` (or of all) must not hold them
  // back. False: no memory.
  bool make_room_for(int source);

  // Ordinary context, often: tops up pools, frees what the handler could not, and takes messages
  // that were held back once there is room, or when a posted receive may stand behind them. False:
  // a receive stands behind a message for which there is no memory.
  MPLITE_ORDINARY bool service();

  // Receives posted and not complete.
  std::uint64_t pending_receives() const MPLITE_SIGNAL_SAFE { return pending_receives_; }
  std::uint64_t unexpected_bytes() const { return unexpected_bytes_; }
  // From here on messages of the application that match nothing are dropped: everybody is ending
  // and nobody will ask for them.
  void drop_unmatched();

  // The int that an application holds for a request, and back; nullptr when it is stale or was
  // never given out.
  int id_of(const MessageRequest* request) const;
  MessageRequest* find(int id) const;

  // The last peer of which lost() told, or -1.
  int last_lost_peer() const { return last_lost_peer_; }

 private:
  static constexpr std::uint32_t kRequestBits =
      20;  // a million operations at a time; the other 11 bits of an id are a generation
  static constexpr std::uint32_t kSmallNodes = 64;

  struct Queue {
    MessageRequest* head = nullptr;
    MessageRequest* tail = nullptr;
  };
  // One per rank.
  struct Source {
    Queue posted;
    ArrivedMessage* head = nullptr;  // unexpected, in order of arrival
    ArrivedMessage* tail = nullptr;
    // the message whose frames are coming; FIFO, so there is one at most
    MessageRequest* request = nullptr;
    ArrivedMessage* node = nullptr;
    std::uint64_t tag = 0, total = 0, arrived = 0;
    bool open = false;
    bool into_node = false;  // the frame under way goes to node->data
    // the message that is held back: its connection is parked
    bool parked = false;
    std::uint64_t parked_tag = 0, parked_total = 0;
  };

  static Verdict on_begin(void* self, int peer, const FrameHeader& header,
                          Destination& destination) MPLITE_SIGNAL_SAFE;
  static void on_end(void* self, int peer, const FrameHeader& header) MPLITE_SIGNAL_SAFE;
  static void on_lost(void* self, int peer, int error) MPLITE_SIGNAL_SAFE;
  static void on_sent(void* arg, int error) MPLITE_SIGNAL_SAFE;

  Verdict begin(int peer, const FrameHeader& header, Destination& destination) MPLITE_SIGNAL_SAFE;
  void end(int peer, const FrameHeader& header) MPLITE_SIGNAL_SAFE;
  void lost(int peer, int error) MPLITE_SIGNAL_SAFE;

  MessageRequest* take_request();
  MessageRequest* match(int peer, std::uint64_t tag) MPLITE_SIGNAL_SAFE;
  void post(MessageRequest* r) MPLITE_SIGNAL_SAFE;
  void unpost(MessageRequest* r) MPLITE_SIGNAL_SAFE;
  void trace_left(MessageRequest* r, std::int64_t began_ns = 0);
  void trace_came(int peer, std::uint64_t tag, std::uint64_t total, MessageRequest* r,
                  ArrivedMessage* m) MPLITE_SIGNAL_SAFE;
  void complete(MessageRequest* r, int peer, std::uint64_t tag,
                std::uint64_t total) MPLITE_SIGNAL_SAFE;
  void fail(MessageRequest* r, int peer, int error) MPLITE_SIGNAL_SAFE;
  ArrivedMessage* admit(int peer, std::uint64_t tag, std::uint64_t total,
                        bool beyond_bound) MPLITE_SIGNAL_SAFE;
  ArrivedMessage* find_arrived(int source, std::int64_t tag) const;
  void link(ArrivedMessage* m) MPLITE_SIGNAL_SAFE;
  void unlink(ArrivedMessage* m) MPLITE_SIGNAL_SAFE;
  void discard(ArrivedMessage* m) MPLITE_SIGNAL_SAFE;
  static void hand_over(ArrivedMessage* m, MessageRequest* r) MPLITE_SIGNAL_SAFE;
  bool fits(std::uint64_t total) const MPLITE_SIGNAL_SAFE;
  static std::uint64_t charge_of(std::uint64_t total) MPLITE_SIGNAL_SAFE;
  void unpark(int peer, bool beyond_bound);
  void serve_parked(bool make_room);

  Engine& engine_;
  Source* sources_ = nullptr;
  Queue posted_any_;
  ArrivedMessage* head_ = nullptr;
  ArrivedMessage* tail_ = nullptr;
  ArrivedMessage* stale_ =
      nullptr;  // discarded in the handler; their heap data waits for ordinary context
  Pool<MessageRequest> requests_{1u << kRequestBits};
  MessageRequest** by_index_ = nullptr;  // all nodes that were ever taken from requests_
  std::uint32_t by_index_size_ = 0;
  Pool<ArrivedMessage, kSmallNodes> arrived_;
  std::uint64_t unexpected_max_bytes_;
  std::uint64_t unexpected_bytes_ = 0;
  std::uint64_t pending_receives_ = 0;
  std::uint64_t sequence_ = 0;
  int engine_size_ = 0;  // kept: the destructor runs when the engine is gone
  int parked_count_ = 0;
  int lost_count_ = 0;
  int last_lost_peer_ = -1;
  bool beyond_bound_ = false;  // the message that begins next is taken whatever the bound says
  bool no_memory_ = false;     // … and could not be
  bool dropping_ = false;
};

}  // namespace mplite
