// The matcher against a naive list matcher, and its order rules by example.
#include <cstdlib>
#include <list>
#include <random>
#include <vector>

#include "ch_lite/ch_lite.h"
#include "ch_lite/core/matcher.h"
#include "run_tests.h"

using namespace ch_lite;

namespace {

struct Receive : PostedNode {
  int id = 0;
};
struct Arrival : UnexpectedNode {
  int id = 0;
};

bool takes(const MatchKey& receive, const MatchKey& envelope, std::uint32_t ignore) {
  if (receive.context != envelope.context) return false;
  if (receive.source != LITE_ANY_SOURCE && receive.source != envelope.source) return false;
  if (receive.tag == LITE_ANY_TAG) return true;
  return (static_cast<std::uint32_t>(receive.tag) & ~ignore) ==
         (static_cast<std::uint32_t>(envelope.tag) & ~ignore);
}

Receive* post(Matcher& m, std::list<Receive>& store, MatchKey key) {
  Receive& r = store.emplace_back();
  r.key = key;
  r.id = static_cast<int>(store.size());
  m.post(&r);
  return &r;
}

Arrival* arrive(Matcher& m, std::list<Arrival>& store, MatchKey key) {
  Arrival& a = store.emplace_back();
  a.key = key;
  a.id = static_cast<int>(store.size());
  m.add_unexpected(&a);
  return &a;
}

}  // namespace

START_TEST(message_goes_to_earliest_posted_receive_whatever_its_wildcards) {
  Matcher m;
  ck_assert(m.start());
  std::list<Receive> store;
  Receive* any = post(m, store, {1, LITE_ANY_SOURCE, LITE_ANY_TAG});
  Receive* exact = post(m, store, {1, 3, 7});
  Receive* any_tag = post(m, store, {1, 3, LITE_ANY_TAG});
  Receive* any_source = post(m, store, {1, LITE_ANY_SOURCE, 7});
  ck_assert_ptr_eq(m.match_posted({1, 3, 7}), any);
  ck_assert_ptr_eq(m.match_posted({1, 3, 7}), exact);
  ck_assert_ptr_eq(m.match_posted({1, 3, 7}), any_tag);
  ck_assert_ptr_eq(m.match_posted({1, 3, 7}), any_source);
  ck_assert_ptr_null(m.match_posted({1, 3, 7}));
}
END_TEST

START_TEST(any_source_receive_takes_earliest_unexpected_message) {
  Matcher m;
  ck_assert(m.start());
  std::list<Arrival> store;
  arrive(m, store, {2, 9, 7});
  Arrival* second = arrive(m, store, {1, 5, 7});
  Arrival* third = arrive(m, store, {1, 4, 7});
  ck_assert_ptr_eq(m.find_unexpected({1, LITE_ANY_SOURCE, 7}), second);
  m.remove_unexpected(second);
  ck_assert_ptr_eq(m.find_unexpected({1, LITE_ANY_SOURCE, LITE_ANY_TAG}), third);
  ck_assert_ptr_null(m.find_unexpected({1, 5, 7}));
  ck_assert_ptr_null(m.find_unexpected({3, LITE_ANY_SOURCE, LITE_ANY_TAG}));
}
END_TEST

START_TEST(ignored_tag_bits_do_not_match_nor_hide) {
  Matcher m;
  ck_assert(m.start());
  m.set_tag_ignore_bits(1u << 30);
  std::list<Receive> receives;
  std::list<Arrival> arrivals;
  Receive* r = post(m, receives, {1, 0, 5});
  ck_assert_ptr_eq(m.match_posted({1, 0, 5 | 1 << 30}), r);
  Arrival* a = arrive(m, arrivals, {1, 0, 5 | 1 << 30});
  ck_assert_ptr_eq(m.find_unexpected({1, 0, 5}), a);
  ck_assert_ptr_null(m.find_unexpected({1, 0, 6}));
  ck_assert_int_eq(a->key.tag, 5 | 1 << 30);
}
END_TEST

// Not linked anywhere until another is posted, which comes behind it then.
START_TEST(lone_receive_is_the_only_one_and_has_no_wildcards) {
  Matcher m;
  ck_assert(m.start());
  std::list<Receive> store;
  ck_assert_ptr_null(m.sole_posted());
  for (const MatchKey& wild : {MatchKey{1, LITE_ANY_SOURCE, 5}, MatchKey{1, 0, LITE_ANY_TAG}}) {
    Receive* r = post(m, store, wild);
    ck_assert_ptr_null(m.sole_posted());
    ck_assert_ptr_eq(m.match_posted({1, 0, 5}), r);
  }
  Receive* first = post(m, store, {1, 0, 5});
  ck_assert_ptr_eq(m.sole_posted(), first);
  Receive* second = post(m, store, {1, 0, 5});
  ck_assert_ptr_null(m.sole_posted());
  Receive* third = post(m, store, {1, 0, 5});
  ck_assert_ptr_eq(m.match_posted({1, 0, 5}), first);
  m.withdraw(third);
  ck_assert_ptr_null(m.sole_posted());
  ck_assert_ptr_eq(m.match_posted({1, 0, 5}), second);
  Receive* again = post(m, store, {1, 0, 5});
  ck_assert_ptr_eq(m.sole_posted(), again);
  m.withdraw(again);
  ck_assert_ptr_null(m.sole_posted());
  ck_assert_ptr_null(m.match_posted({1, 0, 5}));
  ck_assert_uint_eq(m.posted_count(), 0);
}
END_TEST

START_TEST(withdrawn_receive_is_not_matched) {
  Matcher m;
  ck_assert(m.start());
  std::list<Receive> store;
  Receive* first = post(m, store, {1, 0, 5});
  Receive* second = post(m, store, {1, 0, 5});
  m.withdraw(first);
  ck_assert(!first->match_queued);
  ck_assert_ptr_eq(m.match_posted({1, 0, 5}), second);
  ck_assert_uint_eq(m.posted_count(), 0);
}
END_TEST

START_TEST(visit_sees_every_unexpected_message_once_and_may_remove_it) {
  Matcher m;
  ck_assert(m.start(4));
  std::list<Arrival> store;
  for (int i = 0; i < 100; ++i) arrive(m, store, {static_cast<std::uint32_t>(i % 3), i % 7, i});
  struct Seen {
    Matcher* matcher;
    int count;
  } seen{&m, 0};
  m.visit_unexpected(
      [](void* arg, UnexpectedNode* node) {
        auto* s = static_cast<Seen*>(arg);
        ++s->count;
        if (node->key.tag % 2 == 0) s->matcher->remove_unexpected(node);
      },
      &seen);
  ck_assert_int_eq(seen.count, 100);
  ck_assert_uint_eq(m.unexpected_count(), 50);
  for (const Arrival& a : store) ck_assert(a.match_queued == (a.key.tag % 2 != 0));
}
END_TEST

// Few keys, so that everything collides; growth in between.
START_TEST(agrees_with_a_list_matcher_on_random_sequences) {
  const char* given = std::getenv("LITE_TEST_SEED");
  const unsigned first = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
  const unsigned last = given != nullptr ? first : 40;
  for (unsigned seed = first; seed <= last; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
    const std::uint32_t ignore = below(2) != 0 ? 1u << 4 : 0;
    Matcher m;
    ck_assert(m.start(2));
    m.set_tag_ignore_bits(ignore);
    std::list<Receive> receives;
    std::list<Arrival> arrivals;
    std::vector<Receive*> posted;  // the oracle's lists, in order
    std::vector<Arrival*> unexpected;
    const int spread = 1 + below(12);
    const int bias = below(100);
    for (int step = 0; step < 3000; ++step) {
      const MatchKey envelope{static_cast<std::uint32_t>(below(2)),
                              below(static_cast<unsigned>(spread)),
                              below(4) | (below(2) != 0 ? 16 : 0)};
      const int what = below(100);
      if (what < bias / 2 + 10) {  // arrival
        Receive* expected = nullptr;
        for (std::size_t i = 0; i < posted.size(); ++i)
          if (takes(posted[i]->key, envelope, ignore)) {
            expected = posted[i];
            posted.erase(posted.begin() + static_cast<std::ptrdiff_t>(i));
            break;
          }
        auto* got = static_cast<Receive*>(m.match_posted(envelope));
        ck_assert_msg(got == expected,
                      "LITE_TEST_SEED=%u step %d: arrival matched %d, list says %d", seed, step,
                      got ? got->id : 0, expected ? expected->id : 0);
        if (got == nullptr) unexpected.push_back(arrive(m, arrivals, envelope));
      } else if (what < 90) {  // receive
        MatchKey key = envelope;
        if (below(4) == 0) key.source = LITE_ANY_SOURCE;
        if (below(4) == 0) key.tag = LITE_ANY_TAG;
        Arrival* expected = nullptr;
        std::size_t at = 0;
        for (; at < unexpected.size(); ++at)
          if (takes(key, unexpected[at]->key, ignore)) {
            expected = unexpected[at];
            break;
          }
        auto* got = static_cast<Arrival*>(m.find_unexpected(key));
        ck_assert_msg(got == expected, "LITE_TEST_SEED=%u step %d: receive found %d, list says %d",
                      seed, step, got ? got->id : 0, expected ? expected->id : 0);
        if (got != nullptr) {
          m.remove_unexpected(got);
          unexpected.erase(unexpected.begin() + static_cast<std::ptrdiff_t>(at));
        } else {
          posted.push_back(post(m, receives, key));
        }
      } else if (what < 95 && !posted.empty()) {  // cancel
        const std::size_t at = random() % posted.size();
        m.withdraw(posted[at]);
        posted.erase(posted.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        m.grow();
      }
      ck_assert_uint_eq(m.posted_count(), posted.size());
      ck_assert_uint_eq(m.unexpected_count(), unexpected.size());
    }
  }
}
END_TEST

// Beyond the most bins chains are longer, and nothing is dealt out again and again.
START_TEST(at_the_most_bins_it_does_not_want_to_grow) {
  constexpr int kNodes = 3000;
  Matcher m(1024);
  ck_assert(m.start());
  std::vector<Receive> receives(kNodes);
  std::vector<Arrival> arrivals(kNodes);
  for (int i = 0; i < kNodes; ++i) {
    const auto at = static_cast<std::size_t>(i);
    receives[at].key = {1, 3, i};
    arrivals[at].key = {2, 3, i};
    m.post(&receives[at]);
    m.add_unexpected(&arrivals[at]);
  }
  m.grow();
  ck_assert(!m.wants_growth());
  for (int i = 0; i < kNodes; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ck_assert_ptr_eq(m.match_posted({1, 3, i}), &receives[at]);
    ck_assert_ptr_eq(m.find_unexpected({2, 3, i}), &arrivals[at]);
  }
}
END_TEST

// Compares per message that a matcher with `depth` nodes makes, over all of them. Nothing but the
// number of nodes tells, so a busy machine does not disturb. `spread`: how the keys differ; 0: by
// tag, 1: by source, 2: both, and every eighth receive has a wildcard.
MatchKey key_of(int i, int spread) {
  if (spread == 0) return {1, 3, i};
  if (spread == 1) return {1, i, 5};
  return {static_cast<std::uint32_t>(i % 4), i % 100, i};
}

double posted_looks_per_message(int depth, int spread, bool backwards) {
  Matcher m;
  ck_assert(m.start());
  std::vector<Receive> store(static_cast<std::size_t>(depth));
  for (int i = 0; i < depth; ++i) {
    Receive& r = store[static_cast<std::size_t>(i)];
    r.key = key_of(i, spread);
    if (spread == 2 && i % 8 == 0) r.key.source = LITE_ANY_SOURCE;
    m.post(&r);
    if (m.wants_growth()) m.grow();
  }
  const std::uint64_t before = m.looked_at();
  for (int i = 0; i < depth; ++i) {
    const int k = backwards ? depth - 1 - i : i;
    ck_assert_ptr_eq(m.match_posted(key_of(k, spread)), &store[static_cast<std::size_t>(k)]);
  }
  return static_cast<double>(m.looked_at() - before) / depth;
}

double unexpected_looks_per_receive(int depth, int spread, bool backwards) {
  Matcher m;
  ck_assert(m.start());
  std::vector<Arrival> store(static_cast<std::size_t>(depth));
  for (int i = 0; i < depth; ++i) {
    store[static_cast<std::size_t>(i)].key = key_of(i, spread);
    m.add_unexpected(&store[static_cast<std::size_t>(i)]);
    if (m.wants_growth()) m.grow();
  }
  const std::uint64_t before = m.looked_at();
  for (int i = 0; i < depth; ++i) {
    const int k = backwards ? depth - 1 - i : i;
    MatchKey wanted = key_of(k, spread);
    if (spread == 2 && k % 8 == 0) wanted.source = LITE_ANY_SOURCE;
    UnexpectedNode* found = m.find_unexpected(wanted);
    ck_assert_ptr_eq(found, &store[static_cast<std::size_t>(k)]);
    m.remove_unexpected(found);
  }
  return static_cast<double>(m.looked_at() - before) / depth;
}

START_TEST(cost_of_a_match_does_not_grow_with_the_queues) {
  for (int spread = 0; spread < 3; ++spread) {
    for (const bool backwards : {false, true}) {
      const double few = posted_looks_per_message(10, spread, backwards),
                   many = posted_looks_per_message(10'000, spread, backwards);
      ck_assert_msg(many <= 3 * few,
                    "posted, spread %d, backwards %d: %.2f looks with 10,000, %.2f with 10", spread,
                    backwards, many, few);
      const double few_u = unexpected_looks_per_receive(10, spread, backwards),
                   many_u = unexpected_looks_per_receive(10'000, spread, backwards);
      ck_assert_msg(many_u <= 3 * few_u,
                    "unexpected, spread %d, backwards %d: %.2f looks with 10,000, %.2f with 10",
                    spread, backwards, many_u, few_u);
    }
  }
}
END_TEST

// A receive with wildcards finds the first of many without passing the others.
START_TEST(wildcards_find_the_earliest_of_many_at_the_first_look) {
  Matcher m;
  ck_assert(m.start());
  std::vector<Arrival> store(10'000);
  for (int i = 0; i < 10'000; ++i) {
    store[static_cast<std::size_t>(i)].key = {1, i % 50, i};
    m.add_unexpected(&store[static_cast<std::size_t>(i)]);
    if (m.wants_growth()) m.grow();
  }
  const std::uint64_t before = m.looked_at();
  for (int i = 0; i < 10'000; ++i) {
    UnexpectedNode* found = m.find_unexpected({1, LITE_ANY_SOURCE, LITE_ANY_TAG});
    ck_assert_ptr_eq(found, &store[static_cast<std::size_t>(i)]);
    m.remove_unexpected(found);
  }
  ck_assert_uint_eq(m.looked_at() - before, 10'000);
}
END_TEST

int main() { return run_tests("matcher", 120); }
