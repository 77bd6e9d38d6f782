// A first-in first-out queue through a member of its nodes.
// Used for whatever waits in order: by peer (peer.h), and completed requests (request_table.h).
#pragma once
#include "mplite/base/signal_safe.h"

namespace ch_lite {

template <typename T, T* T::*kNext>
class Fifo {
 public:
  bool empty() const MPLITE_SIGNAL_SAFE { return head_ == nullptr; }
  T* front() const MPLITE_SIGNAL_SAFE { return head_; }
  T* back() const MPLITE_SIGNAL_SAFE { return empty() ? nullptr : tail_; }

  void push(T* node) MPLITE_SIGNAL_SAFE {
    node->*kNext = nullptr;
    if (head_ == nullptr) [[likely]]
      head_ = node;
    else
      tail_->*kNext = node;
    tail_ = node;
  }
  // There is one.
  T* pop() MPLITE_SIGNAL_SAFE {
    T* const node = head_;
    head_ = node->*kNext;
    return node;
  }
  // It is in here. Costs a walk.
  void remove(T* node) MPLITE_SIGNAL_SAFE {
    T* before = nullptr;
    for (T* at = head_; at != node; at = at->*kNext) before = at;
    (before != nullptr ? before->*kNext : head_) = node->*kNext;
    if (tail_ == node) tail_ = before;
  }
  void clear() MPLITE_SIGNAL_SAFE { head_ = nullptr; }
  // All of `other`, behind what is here.
  void append(Fifo& other) MPLITE_SIGNAL_SAFE {
    if (other.head_ == nullptr) return;
    if (head_ == nullptr) [[likely]]
      head_ = other.head_;
    else
      tail_->*kNext = other.head_;
    tail_ = other.tail_;
    other.head_ = nullptr;
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;  // while there is a head
};

}  // namespace ch_lite
