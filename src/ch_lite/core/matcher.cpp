// Matches arriving envelopes to posted receives and new receives to unexpected messages, in MPI
// order.
#include "ch_lite/core/matcher.h"

#include <cstdlib>

#include "ch_lite/ch_lite.h"

namespace ch_lite {
namespace {

constexpr int kWildTag = 1;
constexpr int kWildSource = 2;

int class_of(const MatchKey& receive) {
  return (receive.tag == LITE_ANY_TAG ? kWildTag : 0) |
         (receive.source == LITE_ANY_SOURCE ? kWildSource : 0);
}

// Chains are doubly linked; `next` and `prev` name the links of the class at hand.
template <typename Bin, typename Node>
void link_last(Bin& bin, Node* node, Node*& next, Node*& prev, Node** last_next) {
  next = nullptr;
  prev = bin.tail;
  if (bin.tail != nullptr)
    *last_next = node;
  else
    bin.head = node;
  bin.tail = node;
}

// At once as many as the nodes need: thousands of receives may be posted between two looks.
std::uint32_t bins_for(std::uint32_t nodes, std::uint32_t bins, std::uint32_t most) {
  while (bins < nodes && bins < most) bins *= 2;
  return bins;
}

}  // namespace

Matcher::~Matcher() {
  std::free(posted_);
  std::free(unexpected_);
}

bool Matcher::start(std::uint32_t bins) {
  posted_ =
      static_cast<PostedBin*>(std::calloc(std::size_t{kMatchClasses} * bins, sizeof(PostedBin)));
  unexpected_ = static_cast<UnexpectedBin*>(
      std::calloc(std::size_t{kMatchClasses} * bins, sizeof(UnexpectedBin)));
  posted_bins_ = unexpected_bins_ = bins;
  return posted_ != nullptr && unexpected_ != nullptr;
}

std::uint32_t Matcher::hash(const MatchKey& key, int cls) const {
  std::uint64_t x = key.context * 0x9e3779b97f4a7c15ull;
  if ((cls & kWildSource) == 0)
    x ^= (static_cast<std::uint32_t>(key.source) + 1) * 0xc2b2ae3d27d4eb4full;
  if ((cls & kWildTag) == 0)
    x ^= ((static_cast<std::uint32_t>(key.tag) & tag_mask_) + 1) * 0x165667b19e3779f9ull;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  return static_cast<std::uint32_t>(x >> 32);
}

bool Matcher::same(const MatchKey& a, const MatchKey& b, int cls) const {
  if (a.context != b.context) return false;
  if ((cls & kWildSource) == 0 && a.source != b.source) return false;
  return (cls & kWildTag) != 0 ||
         ((static_cast<std::uint32_t>(a.tag) ^ static_cast<std::uint32_t>(b.tag)) & tag_mask_) == 0;
}

// ---- posted ----

void Matcher::append(PostedNode* node) {
  PostedBin& bin =
      posted_[node->match_class * posted_bins_ + (node->match_hash & (posted_bins_ - 1))];
  link_last(bin, node, node->match_next, node->match_prev,
            bin.tail != nullptr ? &bin.tail->match_next : nullptr);
}

void Matcher::post(PostedNode* receive) {
  const int cls = class_of(receive->key);
  receive->match_class = static_cast<std::uint8_t>(cls);
  receive->match_sequence = ++sequence_;
  receive->match_queued = true;
  ++posted_in_class_[cls];
  if (++posted_count_ == 1) {  // who waits for one message: no hash, no tables
    sole_posted_ = receive;
    return;
  }
  if (sole_posted_ != nullptr) link(sole_posted_);
  sole_posted_ = nullptr;
  link(receive);
}

void Matcher::link(PostedNode* node) {
  node->match_hash = hash(node->key, node->match_class);
  append(node);
}

PostedNode* Matcher::match_posted(const MatchKey& envelope) {
  if (PostedNode* const only = sole_posted_; only != nullptr) {
    ++looked_at_;
    if (!same(only->key, envelope, only->match_class)) return nullptr;
    withdraw(only);
    return only;
  }
  PostedNode* earliest = nullptr;
  for (int cls = 0; cls < kMatchClasses; ++cls) {
    if (posted_in_class_[cls] == 0) continue;
    const std::uint32_t h = hash(envelope, cls);
    for (PostedNode* node = posted_[cls * posted_bins_ + (h & (posted_bins_ - 1))].head;
         node != nullptr; node = node->match_next) {
      ++looked_at_;
      if (earliest != nullptr && node->match_sequence > earliest->match_sequence)
        break;  // the chain only gets later
      if (node->match_hash == h && same(node->key, envelope, cls)) {
        earliest = node;
        break;
      }
    }
  }
  if (earliest != nullptr) withdraw(earliest);
  return earliest;
}

void Matcher::unlink(PostedNode* node) {
  PostedBin& bin =
      posted_[node->match_class * posted_bins_ + (node->match_hash & (posted_bins_ - 1))];
  (node->match_prev != nullptr ? node->match_prev->match_next : bin.head) = node->match_next;
  (node->match_next != nullptr ? node->match_next->match_prev : bin.tail) = node->match_prev;
}

// ---- unexpected ----

void Matcher::append(UnexpectedNode* node, int cls) {
  UnexpectedBin& bin =
      unexpected_[cls * unexpected_bins_ + (node->match_hash[cls] & (unexpected_bins_ - 1))];
  link_last(bin, node, node->match_next[cls], node->match_prev[cls],
            bin.tail != nullptr ? &bin.tail->match_next[cls] : nullptr);
}

void Matcher::add_unexpected(UnexpectedNode* message) {
  for (int cls = 0; cls < kMatchClasses; ++cls) {
    message->match_hash[cls] = hash(message->key, cls);
    append(message, cls);
  }
  message->match_queued = true;
  ++unexpected_count_;
}

UnexpectedNode* Matcher::find_unexpected(const MatchKey& receive) const {
  if (unexpected_count_ == 0) return nullptr;
  const int cls = class_of(receive);
  const std::uint32_t h = hash(receive, cls);
  UnexpectedNode* node = unexpected_[cls * unexpected_bins_ + (h & (unexpected_bins_ - 1))].head;
  for (; node != nullptr; node = node->match_next[cls]) {
    ++looked_at_;
    if (node->match_hash[cls] == h && same(node->key, receive, cls)) break;
  }
  return node;
}

void Matcher::remove_unexpected(UnexpectedNode* node) {
  for (int cls = 0; cls < kMatchClasses; ++cls) {
    UnexpectedBin& bin =
        unexpected_[cls * unexpected_bins_ + (node->match_hash[cls] & (unexpected_bins_ - 1))];
    UnexpectedNode* next = node->match_next[cls];
    UnexpectedNode* prev = node->match_prev[cls];
    (prev != nullptr ? prev->match_next[cls] : bin.head) = next;
    (next != nullptr ? next->match_prev[cls] : bin.tail) = prev;
  }
  node->match_queued = false;
  --unexpected_count_;
}

void Matcher::visit_unexpected(void (*visit)(void*, UnexpectedNode*), void* arg) {
  if (unexpected_ == nullptr) return;
  for (std::uint32_t bin = 0; bin < unexpected_bins_; ++bin) {
    UnexpectedNode* node = unexpected_[bin].head;  // class 0 holds every message once
    while (node != nullptr) {
      UnexpectedNode* next = node->match_next[0];
      visit(arg, node);
      node = next;
    }
  }
}

// ---- growth: a bin's chain is dealt out to several new bins in its order, so order within every
// new bin holds ----

void Matcher::grow_posted() {
  const std::uint32_t bins = bins_for(posted_count_, posted_bins_, bins_max_);
  auto* table =
      static_cast<PostedBin*>(std::calloc(std::size_t{kMatchClasses} * bins, sizeof(PostedBin)));
  if (table == nullptr) return;
  PostedBin* old = posted_;
  const std::uint32_t old_bins = posted_bins_;
  posted_ = table;
  posted_bins_ = bins;
  for (std::uint32_t i = 0; i < kMatchClasses * old_bins; ++i) {
    PostedNode* node = old[i].head;
    while (node != nullptr) {
      PostedNode* next = node->match_next;
      append(node);
      node = next;
    }
  }
  std::free(old);
}

void Matcher::grow_unexpected() {
  const std::uint32_t bins = bins_for(unexpected_count_, unexpected_bins_, bins_max_);
  auto* table = static_cast<UnexpectedBin*>(
      std::calloc(std::size_t{kMatchClasses} * bins, sizeof(UnexpectedBin)));
  if (table == nullptr) return;
  UnexpectedBin* old = unexpected_;
  const std::uint32_t old_bins = unexpected_bins_;
  unexpected_ = table;
  unexpected_bins_ = bins;
  for (std::uint32_t i = 0; i < kMatchClasses * old_bins; ++i) {
    const int cls = static_cast<int>(i / old_bins);
    UnexpectedNode* node = old[i].head;
    while (node != nullptr) {
      UnexpectedNode* next = node->match_next[cls];
      append(node, cls);
      node = next;
    }
  }
  std::free(old);
}

}  // namespace ch_lite
