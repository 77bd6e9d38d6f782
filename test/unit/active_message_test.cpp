// Active messages over a fake channel: every shape, out of credit, beyond the bound, without
// memory, to oneself, and of a lost peer.
#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "device_fixture.h"
#include "more_than_memory.h"

START_TEST(active_messages_of_every_shape_arrive_whole_and_in_order) {
  for (const Cut& cut : kCuts) {
    for (bool lazy : {false, true}) {
      DeviceOptions o = usual();
      o.short_max = cut.short_max;
      o.eager_max = cut.eager_max;
      auto w = make_world(2, o, 5);
      w->lazy = lazy;
      deliver_to_list(*w);
      std::vector<std::vector<std::uint8_t>> headers, datas;
      std::set<lite_request*> pending;
      for (std::size_t header :
           {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{4096}})
        for (std::size_t data : kSizes) {
          headers.push_back(pattern(header, static_cast<unsigned>(headers.size())));
          datas.push_back(pattern(data, static_cast<unsigned>(headers.size())));
        }
      for (std::size_t i = 0; i < headers.size(); ++i) {
        w->as(0);
        lite_request* r = nullptr;
        const int sent =
            lite_am_isend(1, static_cast<std::uint32_t>(i), headers[i].data(), headers[i].size(),
                          datas[i].data(), datas[i].size(), nullptr, &r);
        ck_assert_int_ge(sent, 0);
        if (datas[i].empty()) ck_assert_int_eq(sent, LITE_OK);
        if (sent == LITE_PENDING) pending.insert(r);
        if (i % 3 == 0) w->handler(1);
        ck_assert(g_delivered.empty());  // never in the handler
      }
      w->settle();
      ck_assert_uint_eq(g_delivered.size(), headers.size());
      for (std::size_t i = 0; i < headers.size(); ++i) {
        ck_assert_uint_eq(g_delivered[i].handler, i);
        ck_assert_int_eq(g_delivered[i].peer, 0);
        ck_assert_msg(g_delivered[i].header == headers[i] && g_delivered[i].data == datas[i],
                      "%s, message %zu", cut.name, i);
      }
      w->as(0);
      while (lite_request* r = lite_next_completion()) {
        ck_assert_uint_eq(pending.erase(r), 1);
        lite_request_free(r);
      }
      ck_assert(pending.empty());
      w->settle();
      check_clean(*w);
    }
  }
}
END_TEST

START_TEST(active_messages_out_of_credit_wait_at_the_sender_and_keep_their_order) {
  DeviceOptions o = usual();
  o.credits_bytes = 1;  // the floor
  auto w = make_world(2, o);
  deliver_to_list(*w);
  constexpr int kCount = 1000;
  std::vector<std::vector<std::uint8_t>> datas;
  for (int i = 0; i < kCount; ++i)
    datas.push_back(pattern(i % 5 == 0 ? 3000 : 0, static_cast<unsigned>(i)));
  int pending = 0;
  for (int i = 0; i < kCount; ++i) {
    w->as(0);
    lite_request* r;
    int header = i;  // copied: it changes at once
    const auto& data = datas[static_cast<std::size_t>(i)];
    const int sent =
        lite_am_isend(1, 4, &header, sizeof header, data.data(), data.size(), nullptr, &r);
    header = -1;
    ck_assert_int_ge(sent, 0);
    if (data.empty()) ck_assert_int_eq(sent, LITE_OK);
    pending += sent;
    w->handler(1);
  }
  ck_assert_uint_le(device(*w, 1).blocks().bytes_in_use(), device(*w, 1).window());
  ck_assert_uint_gt(counters(*w, 0).credit_stalls, 0);
  w->settle();
  ck_assert_uint_eq(g_delivered.size(), kCount);
  for (int i = 0; i < kCount; ++i) {
    int header;
    std::memcpy(&header, g_delivered[static_cast<std::size_t>(i)].header.data(), sizeof header);
    ck_assert_int_eq(header, i);
    ck_assert(g_delivered[static_cast<std::size_t>(i)].data == datas[static_cast<std::size_t>(i)]);
  }
  w->as(0);
  while (lite_request* r = lite_next_completion()) {
    --pending;
    lite_request_free(r);
  }
  ck_assert_int_eq(pending, 0);
  w->settle();
  check_clean(*w);
}
END_TEST

START_TEST(small_active_message_does_not_overtake_a_large_one_that_waits_for_credit) {
  DeviceOptions o = usual();
  o.credits_bytes = 1;  // the floor
  auto w = make_world(2, o);
  deliver_to_list(*w);
  const auto large = pattern(LITE_AM_HEADER_MAX, 1);
  lite_request* r;
  w->as(0);
  for (std::uint32_t i = 0; i < 40;
       ++i)  // alternating: there is always room for a small one only, sooner or later
    ck_assert_int_eq(
        lite_am_isend(1, i, large.data(), i % 2 == 0 ? large.size() : 1, nullptr, 0, nullptr, &r),
        LITE_OK);
  w->settle();
  ck_assert_uint_eq(g_delivered.size(), 40);
  for (std::uint32_t i = 0; i < 40; ++i) ck_assert_uint_eq(g_delivered[i].handler, i);
  check_clean(*w);
}
END_TEST

START_TEST(active_message_that_waits_for_credit_is_known_by_its_peer) {
  DeviceOptions o = usual();
  o.credits_bytes = 1;  // the floor
  auto w = make_world(3, o);
  deliver_to_list(*w);
  const auto large = pattern(LITE_AM_HEADER_MAX, 1);
  lite_request* r;
  w->as(0);
  int sent = 0;
  for (; sent < 40 && lite_am_waits(1) == 0; ++sent)
    ck_assert_int_eq(lite_am_isend(1, 1, large.data(), large.size(), nullptr, 0, nullptr, &r),
                     LITE_OK);
  ck_assert_int_gt(sent, 1);
  ck_assert_int_lt(sent, 40);
  ck_assert_int_eq(lite_am_waits(2), 0);
  ck_assert_int_eq(lite_am_waits(7), 0);  // no such peer
  w->settle();
  w->as(0);
  ck_assert_int_eq(lite_am_waits(1), 0);
  ck_assert_uint_eq(g_delivered.size(), sent);
  check_clean(*w);
}
END_TEST

START_TEST(backlog_of_active_messages_does_not_stall_point_to_point) {
  auto w = make_world(2, usual());
  deliver_to_list(*w);
  std::vector<std::uint8_t> data(4000);
  lite_request *r, *receive, *send = nullptr;
  for (int i = 0; i < 2000; ++i) {
    w->as(0);
    lite_am_isend(1, 1, &i, sizeof i, data.data(), data.size(), nullptr, &r);
    w->handler(1);
  }
  const auto message = pattern(kEager, 1);
  std::vector<std::uint8_t> into(kEager);
  lite_status status;
  w->as(1);
  lite_irecv(into.data(), into.size(), 0, &kEnvelope, nullptr, &status, &receive);
  w->as(0);
  lite_isend(message.data(), message.size(), 1, &kEnvelope, 0, nullptr, &send);
  for (int i = 0; i < 10; ++i) w->handler(i % 2);
  ck_assert(g_delivered.empty());
  ck_assert_int_eq(completed(*w, 1, receive).error, LITE_OK);
  ck_assert(into == message);
}
END_TEST

// The block of a long active message is none that a peer could make grow: it must not use up the
// bound of what peers may send unasked.
START_TEST(messages_arrive_beside_an_active_message_longer_than_the_bound) {
  for (const bool in_handler : {false, true}) {
    DeviceOptions o = usual();
    o.unexpected_max_bytes = 1 << 20;
    auto w = make_world(2, o);
    deliver_to_list(*w);
    const auto large = pattern(32 << 20, 3);
    lite_request *am = nullptr, *r = nullptr;
    w->as(0);
    ck_assert_int_eq(lite_am_isend(1, 4, "head", 4, large.data(), large.size(), nullptr, &am),
                     LITE_PENDING);
    w->as(1);
    lite_progress();  // takes the offer: the block is there from now on
    lite_progress();
    ck_assert_uint_gt(device(*w, 1).blocks().bytes_in_use(), large.size());
    constexpr int kCount = 300;
    std::vector<std::vector<std::uint8_t>> data;
    for (int i = 0; i < kCount; ++i) {
      data.push_back(
          pattern(1 + static_cast<std::size_t>(i) * 37 % kShort, static_cast<unsigned>(i)));
      const lite_envelope e = {5, 0, i};
      w->as(0);
      ck_assert_int_ge(lite_isend(data.back().data(), data.back().size(), 1, &e, 0, nullptr, &r),
                       0);
      if (in_handler) w->handler(1);
      w->as(1);
      lite_progress();
    }
    ck_assert_uint_gt(device(*w, 1).unexpected_count(), 200);
    w->settle();
    ck_assert_uint_eq(g_delivered.size(), 1);
    ck_assert(g_delivered[0].data == large);
    for (int i = 0; i < kCount; ++i) {
      std::vector<std::uint8_t> into(data[static_cast<std::size_t>(i)].size());
      lite_status status{};
      const lite_envelope e = {5, 0, i};
      w->as(1);
      if (lite_irecv(into.data(), into.size(), 0, &e, nullptr, &status, &r) == LITE_PENDING) {
        w->settle();
        status = completed(*w, 1, r);
      }
      ck_assert_int_eq(status.error, LITE_OK);
      ck_assert(into == data[static_cast<std::size_t>(i)]);
    }
    w->as(0);
    while (lite_request* done = lite_next_completion()) lite_request_free(done);
    w->settle();
    check_clean(*w);
  }
}
END_TEST

// The least windows of many ranks are more than a small bound: then packets are taken beyond it, by
// credit, and the rest waits.
START_TEST(windows_beyond_the_bound_of_all_are_taken_whole) {
  constexpr int kRanks = 48, kMessages = 30;
  for (const bool in_handler : {false, true}) {
    DeviceOptions o = usual();
    o.unexpected_max_bytes = 64 * 1024;
    auto w = make_world(kRanks, o);
    deliver_to_list(*w);
    lite_am_set_callback(nullptr, nullptr);
    w->as(0);
    lite_am_set_callback(nullptr, nullptr);  // a backlog
    const auto header = pattern(1000, 2);
    const auto data = pattern(1000, 1);
    lite_request* r = nullptr;
    std::vector<int> pending(kRanks);
    for (int rank = 1; rank < kRanks; ++rank) {
      for (int i = 0; i < kMessages; ++i) {
        const lite_envelope e = {5, rank, i};
        w->as(rank);
        const int sent = lite_isend(data.data(), data.size(), 0, &e, 0, nullptr, &r);
        ck_assert_int_ge(sent, 0);
        pending[static_cast<std::size_t>(rank)] += sent;
        ck_assert_int_eq(lite_am_isend(0, 9, header.data(), header.size(), nullptr, 0, nullptr, &r),
                         LITE_OK);
      }
      if (in_handler) w->handler(0);
      w->as(0);
      lite_progress();
    }
    ck_assert_uint_gt(device(*w, 0).blocks().bytes_in_use(), o.unexpected_max_bytes * 8);
    for (int rank = 1; rank < kRanks; ++rank)
      for (int i = 0; i < kMessages; ++i) {
        std::vector<std::uint8_t> into(data.size());
        lite_status status{};
        const lite_envelope e = {5, rank, i};
        w->as(0);
        if (lite_irecv(into.data(), into.size(), rank, &e, nullptr, &status, &r) == LITE_PENDING) {
          w->settle();
          status = completed(*w, 0, r);
        }
        ck_assert_msg(status.error == LITE_OK && into == data, "message %d of rank %d", i, rank);
      }
    w->as(0);
    lite_am_set_callback(collect, nullptr);
    w->settle();
    ck_assert_uint_eq(g_delivered.size(), (kRanks - 1) * kMessages);
    for (int rank = 1; rank < kRanks; ++rank) {
      w->as(rank);
      while (lite_request* done = lite_next_completion()) {
        --pending[static_cast<std::size_t>(rank)];
        lite_request_free(done);
      }
      ck_assert_int_eq(pending[static_cast<std::size_t>(rank)], 0);
    }
    w->settle();
    check_clean(*w);
  }
}
END_TEST

// More than any memory: the peer is given up at once, which the application hears in the next call,
// with the reason; and nobody waits for ever.
START_TEST(active_message_without_memory_for_it_is_an_error_and_gives_its_peer_up) {
  auto w = make_world(3, usual());
  deliver_to_list(*w);
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 50;
  lite_request *r = nullptr, *receive = nullptr;
  int into = 0;
  lite_status status{};
  w->as(1);
  ck_assert_int_eq(lite_irecv(&into, sizeof into, 0, &kEnvelope, nullptr, &status, &receive),
                   LITE_PENDING);
  w->as(0);
  ck_assert_int_eq(lite_am_isend(1, 4, "head", 4, &into, kBytes, nullptr, &r), LITE_PENDING);
  ck_assert_int_eq(lite_am_isend(1, 5, "behind", 6, nullptr, 0, nullptr, &r), LITE_OK);
  w->handler(1);  // where nothing can be had anyway
  w->reports.clear();
  w->as(1);
  ck_assert_int_eq(lite_progress(), LITE_ERR_NOMEM);
  ck_assert_uint_eq(w->reports.size(), 1);
  ck_assert_int_eq(w->reports[0].code, LITE_ERR_NOMEM);
  ck_assert_int_eq(w->reports[0].peer, 0);
  ck_assert_int_eq(w->reports[0].error, ENOMEM);
  ck_assert_ptr_nonnull(std::strstr(w->reports[0].what, "1125899906842624 bytes"));
  ck_assert_int_eq(device(*w, 1).peer(0).lost, ENOMEM);
  ck_assert_int_eq(w->ranks[1]->error[0], ENOMEM);  // the connection too
  ck_assert_int_eq(completed(*w, 1, receive).error, LITE_ERR_PEER_LOST);
  // Told once; the other peer is as ever.
  ck_assert_int_ge(lite_progress(), 0);
  w->as(2);
  ck_assert_int_eq(lite_am_isend(1, 6, "other", 5, nullptr, 0, nullptr, &r), LITE_OK);
  w->as(1);
  ck_assert_int_ge(lite_progress(), 0);
  ck_assert_uint_eq(g_delivered.size(), 1);
  ck_assert_uint_eq(g_delivered[0].handler, 6);
  ck_assert_uint_eq(device(*w, 1).messages_used(), 0);
  ck_assert_uint_eq(device(*w, 1).blocks().bytes_in_use(), 0);
}
END_TEST

// The same where its data was sent unasked: it cannot be left in the stream for ever, with all that
// is behind it. Dispatched in a call, or deferred by the handler, alone or behind another one.
START_TEST(eager_active_message_without_memory_for_it_is_an_error_as_well) {
  for (const bool in_handler : {false, true})
    for (const bool behind : {false, true}) {
      DeviceOptions o = usual();
      o.eager_max = UINT64_MAX;
      o.credits_bytes = std::uint64_t{1} << 52;
      o.unexpected_max_bytes = std::uint64_t{1} << 56;
      auto w = make_world(2, o);
      deliver_to_list(*w);
      w->hold_bulk = true;  // its data will never leave
      const auto data = pattern(kShort + 1, 1);
      lite_request *r = nullptr, *receive = nullptr;
      int into = 0;
      lite_status status{};
      w->as(1);
      ck_assert_int_eq(lite_irecv(&into, sizeof into, 0, &kEnvelope, nullptr, &status, &receive),
                       LITE_PENDING);
      w->as(0);
      if (behind)
        ck_assert_int_ge(lite_am_isend(1, 3, "x", 1, data.data(), data.size(), nullptr, &r), 0);
      ck_assert_int_eq(lite_am_isend(1, 4, "head", 4, &into, std::uint64_t{1} << 50, nullptr, &r),
                       LITE_PENDING);
      if (in_handler) w->handler(1);
      w->reports.clear();
      w->as(1);
      ck_assert_int_eq(lite_progress(), LITE_ERR_NOMEM);
      ck_assert_uint_eq(w->reports.size(), 1);
      ck_assert_int_eq(w->reports[0].peer, 0);
      ck_assert_ptr_nonnull(std::strstr(w->reports[0].what, "1125899906842624 bytes"));
      ck_assert_int_eq(device(*w, 1).peer(0).lost, ENOMEM);
      ck_assert_int_eq(w->ranks[1]->error[0], ENOMEM);
      ck_assert_int_eq(completed(*w, 1, receive).error, LITE_ERR_PEER_LOST);
      ck_assert_int_ge(lite_progress(), 0);
      ck_assert_uint_eq(device(*w, 1).active_messages(), 0);
      ck_assert_uint_eq(device(*w, 1).messages_used(), 0);
      ck_assert_uint_eq(device(*w, 1).blocks().bytes_in_use(), 0);
    }
}
END_TEST

START_TEST(active_message_to_oneself_is_delivered_by_progress_not_by_the_call) {
  auto w = make_world(1, usual());
  deliver_to_list(*w);
  const auto data = pattern(300000, 1);
  lite_request* r;
  w->as(0);
  ck_assert_int_eq(lite_am_isend(0, 3, "abc", 3, data.data(), data.size(), nullptr, &r), LITE_OK);
  ck_assert(g_delivered.empty());
  lite_progress();
  ck_assert_uint_eq(g_delivered.size(), 1);
  ck_assert(g_delivered[0].data == data && g_delivered[0].handler == 3 && g_delivered[0].peer == 0);
  check_clean(*w);
}
END_TEST

START_TEST(active_messages_of_a_lost_peer_fail_or_vanish_and_whole_ones_are_delivered) {
  auto w = make_world(2, usual());
  deliver_to_list(*w);
  std::vector<std::uint8_t> big(kEager + 1), eager(kEager);
  lite_request* r;
  w->hold_bulk = true;
  w->as(1);
  lite_am_isend(0, 1, "a", 1, nullptr, 0, nullptr, &r);
  lite_am_isend(0, 2, "b", 1, eager.data(), eager.size(), nullptr, &r);
  lite_am_isend(0, 3, "c", 1, big.data(), big.size(), nullptr, &r);
  for (int i = 0; i < 4; ++i) w->handler(0);
  // and ours that wait for credit
  w->as(0);
  int pending = 0;
  for (int i = 0; i < 2000; ++i)
    pending += lite_am_isend(1, 1, big.data(), 64, big.data(), 512, nullptr, &r) == LITE_PENDING;
  ck_assert_int_gt(pending, 0);
  w->lose(0, 1, EPIPE);
  w->as(0);
  lite_progress();
  ck_assert_uint_eq(g_delivered.size(), 1);
  ck_assert_uint_eq(g_delivered[0].handler, 1);
  while (lite_request* done = lite_next_completion()) {
    --pending;
    lite_request_free(done);
  }
  ck_assert_int_eq(pending, 0);
  ck_assert_uint_eq(device(*w, 0).messages_used(), 0);
  ck_assert_uint_eq(device(*w, 0).requests_used(), 0);
  ck_assert_uint_eq(device(*w, 0).blocks().bytes_in_use(), 0);
}
END_TEST

// ---- everything at once ----

int main() { return run_tests("active message", 300); }
