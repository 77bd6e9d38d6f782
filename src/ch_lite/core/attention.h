// What had to be put off to the end of the outermost piece of work on the device: a queue of peers,
// each with a set of reasons.
// Filled by the protocol files, served by Device::attend_to_all, gate held. Knows no peer: a peer
// derives from AttentionNode.
#pragma once
#include <cstdint>
#include <utility>

#include "mplite/base/signal_safe.h"

namespace ch_lite {

inline constexpr std::uint16_t kAttentionCredit = 1;    // an explicit CREDIT is due
inline constexpr std::uint16_t kAttentionPump = 2;      // active-message credit came back
inline constexpr std::uint16_t kAttentionDeferred = 4;  // channel receives to post
inline constexpr std::uint16_t kAttentionLost = 8;      // fail what is on it
inline constexpr std::uint16_t kAttentionBroken = 16;   // report the protocol error
inline constexpr std::uint16_t kAttentionAnswers = 32;  // puts to acknowledge
inline constexpr std::uint16_t kAttentionAccess = 64;   // puts and gets that waited for their turn
// Ask the host which receives from any source its loss concerns.
inline constexpr std::uint16_t kAttentionAnySource = 128;
inline constexpr std::uint16_t kAttentionVerify =
    256;  // ask the host whether it may send what came

// Of these, what only ordinary context can do.
inline constexpr std::uint16_t kAttentionOrdinary =
    kAttentionBroken | kAttentionAnySource | kAttentionVerify;

struct AttentionNode {
  AttentionNode* attention_next = nullptr;
  std::uint16_t attention = 0;  // kAttention*
  bool on_attention_list = false;

  // For gcc 11, which without a constructor leaves the bytes behind the last member unused in what
  // is derived from this (-Wabi=11), and a Peer would be larger.
  constexpr AttentionNode() {}  // NOLINT(modernize-use-equals-default)
};

class AttentionQueue {
 public:
  bool empty() const MPLITE_SIGNAL_SAFE { return head_ == nullptr; }

  void add(AttentionNode& node, std::uint16_t reasons) MPLITE_SIGNAL_SAFE {
    node.attention |= reasons;
    if (node.on_attention_list) return;
    node.on_attention_list = true;
    node.attention_next = head_;
    head_ = &node;
  }

  // Calls serve(node, reasons) for each node, off the queue by then. What cannot be done now, serve
  // adds again. Several passes: serving one reason makes another due (a deferred message returns
  // credit).
  template <typename Serve>
  void serve(Serve serve) MPLITE_SIGNAL_SAFE {
    constexpr int kPasses = 3;
    for (int pass = 0; pass < kPasses && head_ != nullptr; ++pass) {
      AttentionNode* next = std::exchange(head_, nullptr);
      while (next != nullptr) {
        AttentionNode& node = *next;
        next = node.attention_next;
        node.on_attention_list = false;
        serve(node, std::exchange(node.attention, std::uint16_t{0}));
      }
    }
  }

 private:
  AttentionNode* head_ = nullptr;
};

}  // namespace ch_lite
