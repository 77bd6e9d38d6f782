// All requests: the pool, what is pending by peer, what is complete and not yet taken by the host.
// Requests are taken in ordinary context, by calls that the host serialises with those that take
// completions; they are completed anywhere, gate held. Neighbours: request.h, the request and its
// states; Core::complete, which says what else a completion brings about.
#pragma once
#include <atomic>
#include <cstdint>

#include "ch_lite/core/fifo.h"
#include "ch_lite/core/request.h"
#include "mplite/base/pool.h"
#include "mplite/base/signal_safe.h"

namespace ch_lite {

class RequestTable {
 public:
  // Ordinary context. False: no memory.
  bool start() { return pool_.reserve(1); }

  // A reserved one has a handle and nothing else; unreserve() takes it back. nullptr: no memory.
  Request* reserve();
  void unreserve(Request* r) { pool_.give(r); }
  // It is pending from here on, on that list.
  void begin(Request* r, RequestList* list) MPLITE_SIGNAL_SAFE {
    ++pending_;
    pending_long_ += is_long(r);
    move(r, list);
  }
  void move(Request* r, RequestList* list) MPLITE_SIGNAL_SAFE;
  // It is pending no more: complete, or cancelled.
  void end(Request* r) MPLITE_SIGNAL_SAFE {
    move(r, nullptr);
    --pending_;
    pending_long_ -= is_long(r);
  }
  // Ended and never reported.
  void give(Request* r) MPLITE_SIGNAL_SAFE {
    r->to(RequestState::kFree);
    pool_.give(r);
  }
  // Ended: the host is to take it.
  void add_completed(Request* r) MPLITE_SIGNAL_SAFE {
    completed_.push(r);
    completed_count_.store(completed_count_.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
  }
  // The request of a handle that a peer echoed; nullptr: stale or forged.
  Request* find(std::uint64_t handle) const MPLITE_SIGNAL_SAFE { return pool_.find(handle); }

  // Who takes completions needs no gate for each: hand_over(), gate held, gives it all there are;
  // what it has freed is what reserve() takes first. One thread at a time (the host's lock).
  void hand_over() {
    if (completed_.empty()) return;
    handed_.append(completed_);
    handed_count_.store(completions(), std::memory_order_relaxed);
    completed_count_.store(0, std::memory_order_relaxed);
  }
  Request* next_completion() {
    if (handed_.empty()) return nullptr;
    Request* const r = handed_.pop();
    handed_count_.store(handed_over() - 1, std::memory_order_relaxed);
    r->to(RequestState::kReported);
    return r;
  }
  void free(Request* r) {
    r->to(RequestState::kFree);
    r->queue_next = returned_head_;
    returned_head_ = r;
    ++returned_;
  }

  // Readable without the gate.
  std::uint32_t completions() const {
    return completed_count_.load(std::memory_order_relaxed) + handed_over();
  }
  std::uint32_t handed_over() const { return handed_count_.load(std::memory_order_relaxed); }

  std::uint64_t pending() const MPLITE_SIGNAL_SAFE { return pending_; }
  // Of them those whose data may not fit into a socket's buffer, by length or room.
  std::uint64_t pending_long() const MPLITE_SIGNAL_SAFE { return pending_long_; }
  std::uint32_t used() const { return pool_.used_count() - returned_; }
  // Posted receives from any source.
  RequestList& any_source() MPLITE_SIGNAL_SAFE { return any_source_; }
  template <typename Visit>
  void visit_taken(Visit visit) {
    pool_.visit_taken(visit);
  }

 private:
  using Queue = Fifo<Request, &Request::queue_next>;

  static constexpr std::uint64_t kLong = 64 * 1024;
  static unsigned is_long(const Request* r) MPLITE_SIGNAL_SAFE { return r->bytes > kLong ? 1 : 0; }

  mplite::Pool<Request> pool_;
  RequestList any_source_;
  std::uint64_t pending_ = 0;  // what should move while the application computes
  std::uint64_t pending_long_ = 0;
  Queue completed_;
  // Of who takes completions, without the gate: to be taken; freed, and not back in the pool.
  Queue handed_;
  Request* returned_head_ = nullptr;
  std::uint32_t returned_ = 0;
  std::atomic<std::uint32_t> completed_count_{0};
  std::atomic<std::uint32_t> handed_count_{0};
};

inline void RequestTable::move(Request* r, RequestList* list) {
  if (r->list == list) return;
  if (r->list != nullptr) {
    if (r->list_prev == nullptr) [[likely]]
      r->list->head = r->list_next;
    else
      r->list_prev->list_next = r->list_next;
    if (r->list_next != nullptr) r->list_next->list_prev = r->list_prev;
  }
  r->list = list;
  r->list_prev = nullptr;
  r->list_next = list != nullptr ? list->head : nullptr;
  if (list == nullptr) return;
  if (list->head != nullptr) list->head->list_prev = r;
  list->head = r;
}

inline Request* RequestTable::reserve() {
  if (Request* r = returned_head_;
      r != nullptr) {  // the one given back last: its lines are in the cache
    returned_head_ = r->queue_next;
    --returned_;
    pool_.give(r);
  } else if (pool_.free_count() == 0 && !pool_.reserve(1)) {
    return nullptr;
  }
  return pool_.take();
}

}  // namespace ch_lite
