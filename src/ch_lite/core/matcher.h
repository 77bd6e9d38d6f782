// Matches arriving envelopes to posted receives and new receives to unexpected messages, in MPI
// order. Called by the protocol files (gate held, perhaps in the handler) and by the receive and
// probe calls.
#pragma once
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace ch_lite {

// In a receive or probe, source and tag may be the wildcards LITE_ANY_SOURCE and LITE_ANY_TAG (-1).
struct MatchKey {
  std::uint32_t context;
  std::int32_t source;
  std::int32_t tag;
};

// Which parts of a receive are wild: 0 none, 1 tag, 2 source, 3 both. A posted receive stands in
// one class; an unexpected message in all four, so that any receive finds the earliest by one look.
inline constexpr int kMatchClasses = 4;

// Intrusive: requests and messages derive from these. The members are the matcher's but `key`.
struct PostedNode {
  PostedNode* match_next = nullptr;
  PostedNode* match_prev = nullptr;
  std::uint64_t match_sequence = 0;
  std::uint32_t match_hash = 0;
  std::uint8_t match_class = 0;
  bool match_queued = false;
  MatchKey key{};
};

struct UnexpectedNode {
  UnexpectedNode* match_next[kMatchClasses] = {};
  UnexpectedNode* match_prev[kMatchClasses] = {};
  std::uint32_t match_hash[kMatchClasses] = {};
  bool match_queued = false;
  MatchKey key{};
};

// Hash bins per class, chains in posting or arrival order. Expected O(1) for distinct envelopes and
// for many equal ones. Nothing in here allocates but start() and grow(). Source: MPI 4.0 3.5
// (order), PRIOR_ART (linear searches of the ancestors).
class Matcher {
 public:
  // More nodes than that make chains longer.
  static constexpr std::uint32_t kBinsMax = 1u << 22;

  explicit Matcher(std::uint32_t bins_max = kBinsMax) : bins_max_(bins_max) {}
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // Ordinary context. False: no memory.
  bool start(std::uint32_t bins = 256);
  // Tag bits that never take part in matching. Before the first message.
  void set_tag_ignore_bits(std::uint32_t bits) { tag_mask_ = ~bits; }

  void post(PostedNode* receive) MPLITE_SIGNAL_SAFE;
  // The earliest posted receive that takes a message with this envelope; it is withdrawn. nullptr:
  // none.
  PostedNode* match_posted(const MatchKey& envelope) MPLITE_SIGNAL_SAFE;
  void withdraw(PostedNode* receive) MPLITE_SIGNAL_SAFE {
    receive->match_queued = false;
    --posted_count_;
    --posted_in_class_[receive->match_class];
    if (receive != sole_posted_) return unlink(receive);
    sole_posted_ = nullptr;
  }
  // The receive that is posted, if there is no other and it has no wildcards: who waits for one
  // message. nullptr: it is not like that, or there were others before it.
  PostedNode* sole_posted() const MPLITE_SIGNAL_SAFE {
    return sole_posted_ != nullptr && sole_posted_->match_class == 0 ? sole_posted_ : nullptr;
  }

  void add_unexpected(UnexpectedNode* message) MPLITE_SIGNAL_SAFE;
  // The earliest unexpected message that a receive with this envelope takes; it stays. nullptr:
  // none.
  UnexpectedNode* find_unexpected(const MatchKey& receive) const MPLITE_SIGNAL_SAFE;
  void remove_unexpected(UnexpectedNode* message) MPLITE_SIGNAL_SAFE;

  // Calls visit(arg, message) for every unexpected message; visit may remove that message. For the
  // rare walk over everything (a lost peer).
  void visit_unexpected(void (*visit)(void* arg, UnexpectedNode* message),
                        void* arg) MPLITE_SIGNAL_SAFE;

  std::uint32_t posted_count() const { return posted_count_; }
  std::uint32_t unexpected_count() const { return unexpected_count_; }

  // Keeps chains short; ordinary context, now and then. No memory: the chains are longer, nothing
  // else.
  bool wants_growth() const {
    return wants(posted_count_, posted_bins_) || wants(unexpected_count_, unexpected_bins_);
  }
  void grow() {
    if (wants(posted_count_, posted_bins_)) grow_posted();
    if (wants(unexpected_count_, unexpected_bins_)) grow_unexpected();
  }
  // For tests: nodes compared with an envelope so far.
  std::uint64_t looked_at() const { return looked_at_; }

 private:
  bool wants(std::uint32_t nodes, std::uint32_t bins) const {
    return nodes > bins && bins < bins_max_;
  }

  struct PostedBin {
    PostedNode* head;
    PostedNode* tail;
  };
  struct UnexpectedBin {
    UnexpectedNode* head;
    UnexpectedNode* tail;
  };

  void grow_posted();
  void grow_unexpected();
  void link(PostedNode* node) MPLITE_SIGNAL_SAFE;
  void unlink(PostedNode* node) MPLITE_SIGNAL_SAFE;
  void append(PostedNode* node) MPLITE_SIGNAL_SAFE;
  void append(UnexpectedNode* node, int cls) MPLITE_SIGNAL_SAFE;
  std::uint32_t hash(const MatchKey& key, int cls) const MPLITE_SIGNAL_SAFE;
  bool same(const MatchKey& a, const MatchKey& b, int cls) const MPLITE_SIGNAL_SAFE;

  std::uint32_t tag_mask_ = ~0u;
  PostedBin* posted_ = nullptr;          // kMatchClasses tables of posted_bins_
  UnexpectedBin* unexpected_ = nullptr;  // the same
  const std::uint32_t bins_max_;
  std::uint32_t posted_bins_ = 0;  // powers of two
  std::uint32_t unexpected_bins_ = 0;
  PostedNode* sole_posted_ = nullptr;  // posted, and not in the tables: it is the only one
  std::uint32_t posted_count_ = 0;
  std::uint32_t posted_in_class_[kMatchClasses] = {};
  std::uint32_t unexpected_count_ = 0;
  std::uint64_t sequence_ = 0;
  mutable std::uint64_t looked_at_ = 0;
};

}  // namespace ch_lite
