// A random exchange of three ranks over a fake channel, checked byte by byte.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <vector>

#include "device_fixture.h"

namespace {

struct Sent {
  std::vector<std::uint8_t> data;
  lite_request* request = nullptr;
};
struct Received {
  std::vector<std::uint8_t> into;
  std::size_t room = 0;
  lite_request* request = nullptr;
  lite_message* message = nullptr;
  lite_status status{};
  std::uint64_t posted = 0;
  std::uint32_t context = 0;
  bool done = false;
};
using Stream = std::tuple<int, int, std::uint32_t, std::int32_t>;  // from, to, context, tag

struct Soak {
  std::map<Stream, std::vector<std::shared_ptr<Sent>>> sent;
  std::vector<std::vector<std::shared_ptr<Received>>> received;
  std::vector<std::map<std::pair<int, int>, int>> am_next;
  std::map<std::pair<int, int>, int> am_sent;
  std::size_t total = 0;
  int replies = 0;
};
Soak* g_soak = nullptr;

struct SoakHeader {
  int from, to, sequence;
  std::uint32_t bytes;
};

void soak_am(World& w, int from, int to, std::size_t bytes,
             std::vector<std::shared_ptr<Sent>>& kept) {
  const int sequence = g_soak->am_sent[{from, to}]++;
  auto s = std::make_shared<Sent>();
  s->data = pattern(bytes, static_cast<unsigned>(sequence));
  const SoakHeader header{from, to, sequence, static_cast<std::uint32_t>(bytes)};
  w.as(from);
  const int sent =
      lite_am_isend(to, 9, &header, sizeof header, s->data.data(), bytes, nullptr, &s->request);
  ck_assert_int_ge(sent, 0);
  kept.push_back(s);
}

std::vector<std::shared_ptr<Sent>> g_kept;

void soak_callback(int peer, std::uint32_t, const void* header, std::size_t header_bytes,
                   const void* data, std::size_t data_bytes, void*) {
  SoakHeader h;
  ck_assert_uint_eq(header_bytes, sizeof h);
  std::memcpy(&h, header, sizeof h);
  World& w = fake::world();
  ck_assert_int_eq(h.from, peer);
  ck_assert_int_eq(h.to, w.current);
  ck_assert_int_eq(h.sequence, (g_soak->am_next[0][{h.from, h.to}]++));
  ck_assert_uint_eq(data_bytes, h.bytes);
  const auto expected = pattern(data_bytes, static_cast<unsigned>(h.sequence));
  ck_assert(data_bytes == 0 || std::memcmp(data, expected.data(), data_bytes) == 0);
  if (w.random() % 4 == 0 && g_soak->replies > 0) {  // a callback may send
    --g_soak->replies;
    soak_am(w, w.current, peer, w.random() % 2000, g_kept);
  }
}

std::size_t random_size(World& w) {
  switch (w.random() % 8) {
    case 0: return 0;
    case 1: return 20000 + w.random() % 60000;
    case 2: return w.random() % 6000;
    default: return w.random() % 600;
  }
}

void drain_completions(World& w, int rank) {
  w.as(rank);
  while (lite_request* r = lite_next_completion()) {
    if (!lite_request_is_send(r)) {
      auto* receive = static_cast<Received*>(lite_request_cookie(r));
      ck_assert(!receive->done);
      receive->done = true;
      lite_request_status(r, &receive->status);
    } else {
      lite_status status;
      lite_request_status(r, &status);
      ck_assert_int_eq(status.error, LITE_OK);
      // The buffer is the sender's again: whoever still reads it is found out.
      if (auto* s = static_cast<Sent*>(lite_request_cookie(r))) s->request = nullptr;
    }
    lite_request_free(r);
  }
}

void soak(unsigned seed, const DeviceOptions& options) {
  constexpr int kRanks = 3;
  auto w = make_world(kRanks, options, seed);
  w->lazy = seed % 4 != 0;
  Soak s;
  s.received.resize(kRanks);
  s.am_next.resize(1);
  s.replies = 50;
  g_soak = &s;
  g_kept.clear();
  for (int i = 0; i < kRanks; ++i) {
    w->as(i);
    lite_am_set_callback(soak_callback, nullptr);
  }
  std::uint64_t clock = 0;
  std::vector<std::size_t> sent_to(kRanks, 0);

  auto post = [&](int rank, bool all_wild) {
    auto r = std::make_shared<Received>();
    r->room = all_wild ? 100000 : random_size(*w) * 2;
    r->into.assign(r->room, 0xee);
    r->posted = ++clock;
    const int from = static_cast<int>(w->random() % kRanks);
    lite_envelope e = {static_cast<std::uint32_t>(w->random() % 2), from,
                       static_cast<std::int32_t>(w->random() % 3)};
    int peer = from;
    if (all_wild || w->random() % 4 == 0) {
      e.source = LITE_ANY_SOURCE;
      peer = -1;
    }
    if (all_wild || w->random() % 4 == 0) e.tag = LITE_ANY_TAG;
    if (all_wild) e.context = static_cast<std::uint32_t>(w->random() % 2);
    r->context = e.context;
    w->as(rank);
    if (w->random() % 5 == 0 || all_wild) {
      if (lite_improbe(peer, &e, &r->status, &r->message) == 0) return false;
      r->room = r->status.bytes / (all_wild ? 1 : 1 + w->random() % 2);
      r->into.assign(r->room, 0xee);
      w->handler(rank);
      w->as(rank);
      r->done = lite_imrecv(r->message, r->into.data(), r->room, r.get(), &r->status,
                            &r->request) == LITE_OK;
    } else {
      r->done = lite_irecv(r->into.data(), r->room, peer, &e, r.get(), &r->status, &r->request) ==
                LITE_OK;
    }
    s.received[static_cast<std::size_t>(rank)].push_back(r);
    return true;
  };

  for (int step = 0; step < 1500; ++step) {
    const int rank = static_cast<int>(w->random() % kRanks);
    const unsigned what = w->random() % 100;
    if (what < 35) {
      const int to = static_cast<int>(w->random() % kRanks);
      auto m = std::make_shared<Sent>();
      m->data = pattern(random_size(*w), step);
      const lite_envelope e = {static_cast<std::uint32_t>(w->random() % 2), rank,
                               static_cast<std::int32_t>(w->random() % 3)};
      w->as(rank);
      const int sent = lite_isend(m->data.data(), m->data.size(), to, &e,
                                  w->random() % 6 == 0 ? LITE_SEND_SYNC : 0, m.get(), &m->request);
      ck_assert_int_ge(sent, 0);
      s.sent[{rank, to, e.context, e.tag}].push_back(m);
      ++sent_to[static_cast<std::size_t>(to)];
      ++s.total;
    } else if (what < 65) {
      post(rank, false);
    } else if (what < 75) {
      soak_am(*w, rank, static_cast<int>(w->random() % kRanks), random_size(*w), g_kept);
    } else if (what < 78) {
      auto& mine = s.received[static_cast<std::size_t>(rank)];
      if (!mine.empty()) {
        const std::size_t at = w->random() % mine.size();
        w->as(rank);
        drain_completions(*w, rank);
        if (!mine[at]->done && mine[at]->request != nullptr &&
            lite_cancel_recv(mine[at]->request) == 1)
          mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(at));
      }
    } else if (what < 90) {
      w->ranks[static_cast<std::size_t>(rank)]->headroom = w->random() % 4 != 0;
      w->handler(rank);
    } else {
      w->as(rank);
      lite_progress();
      drain_completions(*w, rank);
    }
  }
  for (auto& r : w->ranks) r->headroom = true;

  // The end: what was posted and never matched is withdrawn, what was never received is received.
  w->settle();
  for (int rank = 0; rank < kRanks; ++rank) {
    drain_completions(*w, rank);
    auto& mine = s.received[static_cast<std::size_t>(rank)];
    for (std::size_t i = mine.size(); i-- > 0;)
      if (!mine[i]->done && lite_cancel_recv(mine[i]->request) == 1)
        mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(i));
    ck_assert_uint_le(mine.size(), sent_to[static_cast<std::size_t>(rank)]);
  }
  for (int round = 0; round < 3000; ++round) {
    bool missing = false;
    for (int rank = 0; rank < kRanks; ++rank) {
      if (s.received[static_cast<std::size_t>(rank)].size() <
          sent_to[static_cast<std::size_t>(rank)]) {
        missing = true;
        post(rank, true);
      }
      w->as(rank);
      lite_progress();
      drain_completions(*w, rank);
    }
    if (!missing) break;
  }
  w->settle();
  for (int rank = 0; rank < kRanks; ++rank) drain_completions(*w, rank);

  // Messages of one stream, in the order of sending, belong to its receives in the order of
  // posting.
  std::map<Stream, std::vector<std::shared_ptr<Received>>> got;
  for (int rank = 0; rank < kRanks; ++rank) {
    auto& mine = s.received[static_cast<std::size_t>(rank)];
    ck_assert_msg(mine.size() == sent_to[static_cast<std::size_t>(rank)],
                  "LITE_TEST_SEED=%u: rank %d received %zu of %zu", seed, rank, mine.size(),
                  sent_to[static_cast<std::size_t>(rank)]);
    std::sort(mine.begin(), mine.end(),
              [](const auto& a, const auto& b) { return a->posted < b->posted; });
    for (const auto& r : mine) {
      ck_assert_msg(r->done, "LITE_TEST_SEED=%u: a receive at rank %d never completes", seed, rank);
      ck_assert_int_eq(r->status.peer, r->status.source);
      got[{r->status.source, rank, r->context, r->status.tag}].push_back(r);
    }
  }
  std::size_t checked = 0;
  for (auto& [stream, receives] : got) {
    const auto& [from, to, context, tag] = stream;
    const auto& messages = s.sent[stream];
    ck_assert_msg(receives.size() == messages.size(),
                  "LITE_TEST_SEED=%u: from %d to %d tag %d: %zu of %zu", seed, from, to, tag,
                  receives.size(), messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto& data = messages[i]->data;
      const Received& r = *receives[i];
      const std::size_t n = std::min(data.size(), r.room);
      const bool right = r.status.bytes == n &&
                         (r.status.error == LITE_ERR_TRUNCATE) == (data.size() > r.room) &&
                         (n == 0 || std::memcmp(r.into.data(), data.data(), n) == 0);
      ck_assert_msg(right,
                    "LITE_TEST_SEED=%u: from %d to %d context %u tag %d: message %zu is not what "
                    "receive %zu got",
                    seed, from, to, context, tag, i, i);
      ++checked;
    }
  }
  ck_assert_uint_eq(checked, s.total);
  for (const auto& [pair, count] : s.am_sent)
    ck_assert_msg(s.am_next[0][pair] == count, "LITE_TEST_SEED=%u: active messages are missing",
                  seed);
  check_clean(*w);
  g_kept.clear();
  g_soak = nullptr;
}

}  // namespace

START_TEST(random_exchange_of_three_ranks_delivers_everything_in_order) {
  const char* given = std::getenv("LITE_TEST_SEED");
  const unsigned first = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
  const unsigned last = given != nullptr ? first : 60;
  for (unsigned seed = first; seed <= last; ++seed) {
    DeviceOptions o = usual();
    const Cut& cut = kCuts[seed % 5];
    o.short_max = cut.short_max;
    o.eager_max = cut.eager_max;
    const std::uint64_t credits[] = {1, 100000, 1 << 20};
    o.credits_bytes = credits[seed % 3];
    soak(seed, o);
  }
}
END_TEST

int main() { return run_tests("device soak", 300); }
