// The device over a fake channel: every protocol, expected and unexpected, in order and in trouble.
// Neighbours: active_message_test, remote_process_test, one_sided_test, device_soak_test.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "device_fixture.h"
#include "in_pieces.h"
#include "mplite/tuning/eager_cutoff.h"

// ---- point to point ----

// Posted before the message comes or after; polled or all of it in the handler; whole or in pieces.
START_TEST(every_size_arrives_by_every_cutoff_expected_and_unexpected) {
  for (const Cut& cut : kCuts) {
    for (std::size_t bytes : kSizes) {
      for (int variant = 0; variant < 16; ++variant) {
        const bool posted_first = (variant & 1) != 0, in_handler = (variant & 2) != 0,
                   lazy = (variant & 4) != 0, sync = (variant & 8) != 0;
        DeviceOptions o = usual();
        o.short_max = cut.short_max;
        o.eager_max = cut.eager_max;
        auto w = make_world(2, o, static_cast<unsigned>(bytes) + 1);
        w->lazy = lazy;
        const auto data = pattern(bytes, 3);
        std::vector<std::uint8_t> into(bytes + 1, 0xee);
        lite_request *send = nullptr, *receive = nullptr;
        lite_status status{};
        int received = -100;
        auto post = [&] {
          w->as(1);
          received = lite_irecv(into.data(), bytes, 0, &kEnvelope, &into, &status, &receive);
        };
        if (posted_first) post();
        w->as(0);
        const int sent =
            lite_isend(data.data(), bytes, 1, &kEnvelope, sync ? LITE_SEND_SYNC : 0, &send, &send);
        ck_assert_int_ge(sent, 0);
        auto move = [&] {
          if (!in_handler) return w->settle();
          for (int i = 0; i < 60; ++i) w->handler(i % 2);
        };
        if (!posted_first) {
          move();
          if (sync)
            ck_assert_msg(none_completed(*w, 0),
                          "a synchronous send is complete before it is matched");
          post();
        }
        move();
        const char* what = cut.name;
        if (received == LITE_PENDING) {
          if (in_handler) w->settle();  // what the handler had no block for
          status = completed(*w, 1, receive);
        }
        ck_assert_msg(status.error == LITE_OK && status.bytes == bytes && status.source == 0 &&
                          status.tag == 7 && status.peer == 0,
                      "%s, %zu bytes, variant %d", what, bytes, variant);
        ck_assert_msg(bytes == 0 || std::memcmp(into.data(), data.data(), bytes) == 0,
                      "%s, %zu bytes, variant %d", what, bytes, variant);
        ck_assert_uint_eq(into[bytes], 0xee);
        w->settle();
        if (sent == LITE_PENDING) ck_assert_int_eq(completed(*w, 0, send).error, LITE_OK);
        if (sync) ck_assert_int_eq(sent, LITE_PENDING);
        check_clean(*w);
      }
    }
  }
}
END_TEST

// Either side in pieces or both; posted first, unexpected, detached or still arriving; whole and
// cut at every boundary of a piece and beside it.
START_TEST(pieces_arrive_by_every_cutoff_expected_and_unexpected) {
  std::mt19937 engine(3);
  const auto random = [&engine](std::size_t n) { return engine() % n; };
  for (const Cut& cut : kCuts) {
    for (std::size_t bytes :
         {std::size_t{1}, std::size_t{100}, kShort, kShort + 1, kEager, kEager + 1}) {
      for (int variant = 0; variant < 96; ++variant) {
        const bool posted_first = (variant & 1) != 0, in_handler = (variant & 2) != 0,
                   lazy = (variant & 4) != 0, sync = (variant & 8) != 0,
                   by_probe = !posted_first && (variant & 16) != 0;
        const int which = variant / 32;
        const bool from_pieces = which != 1, to_pieces = which != 0;
        DeviceOptions o = usual();
        o.short_max = cut.short_max;
        o.eager_max = cut.eager_max;
        auto w = make_world(2, o, static_cast<unsigned>(bytes) + 1);
        w->lazy = lazy;
        const auto data = pattern(bytes, 3);
        const std::size_t room = random(3) == 0 ? random(bytes + 1) : bytes + random(2);
        InPieces from = InPieces::random(bytes + random(2), 1 + bytes / 7, random),
                 to = InPieces::random(room + random(3), 1 + bytes / 5, random);
        from.fill(data);
        std::vector<std::uint8_t> flat(room + 1, 0xee);
        lite_request *send = nullptr, *receive = nullptr;
        lite_status status{};
        int received = -100;
        auto post = [&] {
          w->as(1);
          lite_message* message = nullptr;
          if (by_probe) {
            for (int i = 0; i < 1000 && message == nullptr; ++i)
              ck_assert_int_ge(lite_improbe(0, &kEnvelope, &status, &message), 0);
            ck_assert_ptr_nonnull(message);
            received =
                to_pieces
                    ? lite_imrecvv(message, to.pieces(), to.count(), room, &from, &status, &receive)
                    : lite_imrecv(message, flat.data(), room, &from, &status, &receive);
          } else {
            received = to_pieces
                           ? lite_irecvv(to.pieces(), to.count(), room, 0, &kEnvelope, &from,
                                         &status, &receive)
                           : lite_irecv(flat.data(), room, 0, &kEnvelope, &from, &status, &receive);
          }
          ck_assert_int_ge(received, 0);
        };
        if (posted_first) post();
        w->as(0);
        const unsigned flags = sync ? LITE_SEND_SYNC : 0;
        const int sent = from_pieces
                             ? lite_isendv(from.pieces(), from.count(), bytes, 1, &kEnvelope, flags,
                                           &send, &send)
                             : lite_isend(data.data(), bytes, 1, &kEnvelope, flags, &send, &send);
        ck_assert_int_ge(sent, 0);
        if (sent == LITE_OK && from_pieces) from = InPieces({});  // reused by its owner
        auto move = [&] {
          if (!in_handler) return w->settle();
          for (int i = 0; i < 60; ++i) w->handler(i % 2);
        };
        if (!posted_first) {
          if (random(3) != 0)
            move();
          else if (random(2) != 0)
            w->handler(1);
          post();
        }
        move();
        w->settle();
        if (received == LITE_PENDING) status = completed(*w, 1, receive);
        const std::size_t wanted = std::min(bytes, room);
        ck_assert_msg(
            status.error == (room < bytes ? LITE_ERR_TRUNCATE : LITE_OK) && status.bytes == wanted,
            "%s, %zu bytes, variant %d: %d, %zu", cut.name, bytes, variant, status.error,
            static_cast<std::size_t>(status.bytes));
        auto got = to_pieces ? to.packed() : flat;
        got.resize(wanted);
        ck_assert_msg(std::equal(got.begin(), got.end(), data.begin()), "%s, %zu bytes, variant %d",
                      cut.name, bytes, variant);
        if (to_pieces)
          ck_assert(to.untouched_but(wanted));
        else
          for (std::size_t i = wanted; i < flat.size(); ++i) ck_assert_uint_eq(flat[i], 0xee);
        if (sent == LITE_PENDING) ck_assert_int_eq(completed(*w, 0, send).error, LITE_OK);
        check_clean(*w);
      }
    }
  }
}
END_TEST

START_TEST(receive_in_pieces_is_truncated_at_every_boundary_by_every_protocol) {
  const std::vector<std::size_t> lengths = {0, 3, 1, 0, 8, 2, 30, 5, 0, 1};
  for (const Cut& cut :
       {Cut{"short", kShort, kEager}, Cut{"eager", 0, kEager}, Cut{"rendezvous", 0, 0}}) {
    for (std::size_t room = 0; room <= 50; ++room) {
      for (bool posted_first : {true, false}) {
        DeviceOptions o = usual();
        o.short_max = cut.short_max;
        o.eager_max = cut.eager_max;
        auto w = make_world(2, o);
        const auto data = pattern(51, 1);
        InPieces to(lengths);
        lite_request *send = nullptr, *receive = nullptr;
        lite_status status{};
        int received = -100;
        auto post = [&] {
          w->as(1);
          received =
              lite_irecvv(to.pieces(), to.count(), room, 0, &kEnvelope, nullptr, &status, &receive);
        };
        if (posted_first) post();
        w->as(0);
        const int sent = lite_isend(data.data(), data.size(), 1, &kEnvelope, 0, nullptr, &send);
        w->settle();
        if (!posted_first) post();
        w->settle();
        if (received == LITE_PENDING) status = completed(*w, 1, receive);
        ck_assert_int_eq(status.error, LITE_ERR_TRUNCATE);
        ck_assert_uint_eq(status.bytes, room);
        auto got = to.packed();
        got.resize(room);
        ck_assert_msg(std::equal(got.begin(), got.end(), data.begin()), "%s, room %zu", cut.name,
                      room);
        ck_assert(to.untouched_but(room));
        if (sent == LITE_PENDING) completed(*w, 0, send);
        check_clean(*w);
      }
    }
  }
}
END_TEST

START_TEST(pieces_to_oneself_and_cancelled) {
  for (std::size_t bytes : kSizes) {
    for (int variant = 0; variant < 12; ++variant) {
      const bool posted_first = (variant & 1) != 0, sync = (variant & 2) != 0,
                 from_pieces = variant / 4 != 1, to_pieces = variant / 4 != 0;
      auto w = make_world(1, usual());
      const auto data = pattern(bytes, 6);
      std::mt19937 engine(static_cast<unsigned>(bytes));
      const auto random = [&engine](std::size_t n) { return engine() % n; };
      InPieces from = InPieces::random(bytes, 1 + bytes / 9, random),
               to = InPieces::random(bytes, 1 + bytes / 8, random);
      from.fill(data);
      std::vector<std::uint8_t> flat(bytes);
      lite_request *send = nullptr, *receive = nullptr;
      lite_status status{};
      w->as(0);
      const auto post = [&] {
        return to_pieces
                   ? lite_irecvv(to.pieces(), to.count(), bytes, 0, &kEnvelope, nullptr, &status,
                                 &receive)
                   : lite_irecv(flat.data(), bytes, 0, &kEnvelope, nullptr, &status, &receive);
      };
      ck_assert_int_eq(post(), LITE_PENDING);
      ck_assert_int_eq(lite_cancel_recv(receive), 1);
      if (posted_first) ck_assert_int_eq(post(), LITE_PENDING);
      const unsigned flags = sync ? LITE_SEND_SYNC : 0;
      const int sent = from_pieces
                           ? lite_isendv(from.pieces(), from.count(), bytes, 0, &kEnvelope, flags,
                                         nullptr, &send)
                           : lite_isend(data.data(), bytes, 0, &kEnvelope, flags, nullptr, &send);
      ck_assert_int_eq(sent, !posted_first && (sync || bytes > kEager) ? LITE_PENDING : LITE_OK);
      if (sent == LITE_OK) from = InPieces({});
      lite_progress();
      if (posted_first)
        status = completed(*w, 0, receive);
      else
        ck_assert_int_eq(post(), LITE_OK);
      ck_assert(status.error == LITE_OK && status.bytes == bytes &&
                (to_pieces ? to.packed() : flat) == data);
      ck_assert(!to_pieces || to.untouched_but(bytes));
      if (sent == LITE_PENDING) completed(*w, 0, send);
      check_clean(*w);
    }
  }
}
END_TEST

START_TEST(pieces_shorter_than_the_message_are_refused) {
  auto w = make_world(2, usual());
  InPieces few({3, 0, 4});
  lite_request* request = nullptr;
  lite_status status{};
  w->as(0);
  ck_assert_int_eq(lite_isendv(few.pieces(), few.count(), 8, 1, &kEnvelope, 0, nullptr, &request),
                   LITE_ERR_ARG);
  ck_assert_int_eq(
      lite_irecvv(few.pieces(), few.count(), 8, 1, &kEnvelope, nullptr, &status, &request),
      LITE_ERR_ARG);
  ck_assert_int_eq(lite_isendv(nullptr, 0, 1, 1, &kEnvelope, 0, nullptr, &request), LITE_ERR_ARG);
  ck_assert_int_eq(lite_isendv(nullptr, 0, 0, 1, &kEnvelope, 0, nullptr, &request), LITE_OK);
  ck_assert_int_eq(lite_isendv(few.pieces(), few.count(), 7, 1, &kEnvelope, 0, nullptr, &request),
                   LITE_OK);
  w->settle();
  w->as(1);
  ck_assert_int_eq(lite_irecvv(nullptr, 0, 0, 0, &kEnvelope, nullptr, &status, &request), LITE_OK);
  lite_message* message = nullptr;
  ck_assert_int_eq(lite_improbe(0, &kEnvelope, &status, &message), 1);
  ck_assert_int_eq(lite_imrecvv(message, few.pieces(), few.count(), 8, nullptr, &status, &request),
                   LITE_ERR_ARG);
  ck_assert_int_eq(lite_imrecvv(message, few.pieces(), few.count(), 7, nullptr, &status, &request),
                   LITE_OK);
  w->settle();
  check_clean(*w);
}
END_TEST

START_TEST(rank_that_a_receive_waits_for_is_connected_to) {
  auto w = make_world(3, usual(), 1);
  w->as(0);
  std::uint8_t byte = 0;
  lite_request *named = nullptr, *any = nullptr;
  lite_status status;
  const lite_envelope from_any = {5, LITE_ANY_SOURCE, 9};
  ck_assert_int_eq(lite_irecv(&byte, 1, 1, &kEnvelope, nullptr, &status, &named), LITE_PENDING);
  ck_assert_int_eq(lite_irecv(&byte, 1, -1, &from_any, nullptr, &status, &any), LITE_PENDING);
  ck_assert(w->ranks[0]->reached.empty());  // a receive by itself makes no connection,
  device(*w, 0).reach_awaited_peers();
  ck_assert(w->ranks[0]->reached.empty());  // nor does one that was posted just now
  device(*w, 0).reach_awaited_peers();
  ck_assert(w->ranks[0]->reached == std::vector<int>{1});
  ck_assert_int_eq(lite_cancel_recv(named), 1);
  device(*w, 0).reach_awaited_peers();
  device(*w, 0).reach_awaited_peers();
  ck_assert_uint_eq(w->ranks[0]->reached.size(), 1);
  ck_assert_int_eq(lite_cancel_recv(any), 1);
}
END_TEST

START_TEST(rank_that_is_probed_for_again_and_again_is_connected_to) {
  auto w = make_world(3, usual(), 1);
  w->as(0);
  lite_status status;
  const lite_envelope from_any = {5, LITE_ANY_SOURCE, 7};
  const auto probe = [&](int peer, const lite_envelope& envelope) {
    ck_assert_int_eq(lite_iprobe(peer, &envelope, &status), 0);
    device(*w, 0).reach_awaited_peers();
  };
  for (int i = 0; i < 3; ++i) probe(-1, from_any);  // of whom?
  for (int i = 0; i < 3; ++i) probe(0, kEnvelope);  // oneself
  probe(1, kEnvelope);
  device(*w, 0).reach_awaited_peers();  // given up
  probe(1, kEnvelope);
  ck_assert(w->ranks[0]->reached.empty());
  probe(1, kEnvelope);
  ck_assert(w->ranks[0]->reached == std::vector<int>{1});
  device(*w, 0).reach_awaited_peers();
  ck_assert_uint_eq(w->ranks[0]->reached.size(), 1);
  w->lose(0, 1, EHOSTUNREACH);
  w->as(0);
  ck_assert_int_eq(lite_iprobe(1, &kEnvelope, &status), LITE_ERR_PEER_LOST);
}
END_TEST

START_TEST(lost_peer_is_known_without_a_request) {
  auto w = make_world(3, usual());
  w->as(0);
  ck_assert_int_eq(lite_lost_peers(), 0);
  ck_assert_int_eq(lite_check_lost(1), LITE_OK);
  ck_assert_int_lt(lite_check_lost(7), 0);  // no such peer
  w->lose(0, 1, EHOSTUNREACH);
  w->as(0);
  w->reports.clear();
  ck_assert_int_eq(lite_lost_peers(), 1);
  ck_assert_int_eq(lite_check_lost(2), LITE_OK);
  ck_assert_uint_eq(w->reports.size(), 0);
  ck_assert_int_eq(lite_check_lost(1), LITE_ERR_PEER_LOST);
  ck_assert_uint_eq(w->reports.size(), 1);
  ck_assert_int_eq(w->reports[0].peer, 1);
  ck_assert_int_eq(w->reports[0].error, EHOSTUNREACH);
}
END_TEST

int g_ticks = 0;
START_TEST(tick_comes_with_progress_in_ordinary_context_only) {
  DeviceOptions o = usual();
  o.hooks.tick = [](void*) { ++g_ticks; };
  auto w = make_world(2, o, 1);
  for (std::uint32_t i = 0; i < 4 * ch_lite::Device::kProgressPerTick; ++i) w->handler(0);
  ck_assert_int_eq(g_ticks, 0);
  w->as(0);
  for (std::uint32_t i = 0; i < 3 * ch_lite::Device::kProgressPerTick; ++i) lite_progress();
  ck_assert_int_eq(g_ticks, 3);
}
END_TEST

START_TEST(cutoffs_choose_what_the_counters_show) {
  auto w = make_world(2, usual());
  std::vector<std::uint8_t> data(kEager + 1), into(kEager + 1);
  for (std::size_t bytes : {std::size_t{8}, kShort, kShort + 1, kEager, kEager + 1}) {
    lite_request *send, *receive;
    lite_status status;
    w->as(1);
    ck_assert_int_eq(lite_irecv(into.data(), bytes, 0, &kEnvelope, nullptr, &status, &receive),
                     LITE_PENDING);
    w->as(0);
    lite_isend(data.data(), bytes, 1, &kEnvelope, 0, nullptr, &send);
    w->settle();
  }
  const mplite::Counters& c = counters(*w, 0);
  ck_assert_uint_eq(c.short_msgs, 2);
  ck_assert_uint_eq(c.short_bytes, 8 + kShort);
  ck_assert_uint_eq(c.eager_msgs, 2);
  ck_assert_uint_eq(c.rndv_msgs, 1);
  ck_assert_uint_eq(c.rndv_bytes, kEager + 1);
  ck_assert_uint_eq(counters(*w, 1).unexpected, 0);
}
END_TEST

// Rank 0 sends, rank 1 has posted its receive or posts it afterwards. What went unasked, bytes.
std::uint64_t unasked(World& w, std::size_t bytes, bool in_time) {
  std::vector<std::uint8_t> data(bytes), into(bytes);
  lite_request *send, *receive;
  lite_status status;
  const auto post = [&] {
    w.as(1);
    lite_irecv(into.data(), bytes, 0, &kEnvelope, nullptr, &status, &receive);
  };
  if (in_time) post();
  w.as(0);
  lite_isend(data.data(), bytes, 1, &kEnvelope, 0, nullptr, &send);
  std::uint64_t channel = 0;
  for (const fake::Frame& frame : w.wire[{0, 1}])
    if (frame.kind == fake::Kind::kChannel) channel += frame.data.size();
  w.settle();
  if (!in_time) post();
  w.settle();
  return channel;
}

START_TEST(peer_that_receives_in_time_is_sent_more_unasked) {
  using ch_lite::kFragmentBytes, ch_lite::kFragmentBytesInTime, ch_lite::kInTimeEnough,
      ch_lite::kLongBytes;
  constexpr std::size_t kLong = 1 << 20;
  DeviceOptions o = usual();
  o.eager_max = kFragmentBytesInTime;
  o.credits_bytes = 4 << 20;
  auto w = make_world(2, o);
  const auto learn = [&] {
    for (int i = 0; i < kInTimeEnough; ++i)
      ck_assert_uint_eq(unasked(*w, kLong, true), kFragmentBytes);
  };
  learn();
  ck_assert_uint_eq(unasked(*w, kLong, true), kFragmentBytesInTime);
  ck_assert_uint_eq(unasked(*w, kLong, true), kFragmentBytesInTime);
  // a late receive of a message by rendezvous is told with its CTS
  ck_assert_uint_eq(unasked(*w, kLong, false), kFragmentBytesInTime);
  learn();
  ck_assert_uint_eq(unasked(*w, kLong, true), kFragmentBytesInTime);
  // that of an eager one with whatever goes back next
  ck_assert_uint_eq(unasked(*w, kLongBytes + 1, false), kLongBytes + 1);
  w->as(1);
  lite_request* back = nullptr;
  lite_isend("x", 1, 0, &kEnvelope, 0, nullptr, &back);
  w->settle();
  learn();
  ck_assert_uint_eq(unasked(*w, kLong, true), kFragmentBytesInTime);
  // small ones cost little when they are late
  ck_assert_uint_eq(unasked(*w, kLongBytes, false), kLongBytes);
  w->as(1);
  lite_isend("x", 1, 0, &kEnvelope, 0, nullptr, &back);
  w->settle();
  ck_assert_uint_eq(unasked(*w, kLong, true), kFragmentBytesInTime);
}
END_TEST

START_TEST(cutoff_of_a_peer_that_receives_in_time_is_higher_until_it_is_late) {
  DeviceOptions o = usual();
  o.eager_auto = true;
  o.eager_max = mplite::kEagerCutoff;
  o.credits_bytes = 4 << 20;
  auto w = make_world(2, o);
  for (int i = 0; i < ch_lite::kInTimeEnough; ++i)
    ck_assert_uint_lt(unasked(*w, mplite::kEagerCutoffInTime, true), mplite::kEagerCutoffInTime);
  ck_assert_uint_eq(unasked(*w, mplite::kEagerCutoffInTime, true), mplite::kEagerCutoffInTime);
  ck_assert_uint_lt(unasked(*w, mplite::kEagerCutoffInTime + 1, true), mplite::kEagerCutoffInTime);
  ck_assert_uint_lt(unasked(*w, mplite::kEagerCutoffInTime + 1, false), mplite::kEagerCutoffInTime);
  ck_assert_uint_lt(unasked(*w, mplite::kEagerCutoffInTime, true), mplite::kEagerCutoffInTime);
}
END_TEST

// Who is late is sent to by rendezvous: its CTS would wait behind a long eager message of its own,
// and an exchange take twice as long.
START_TEST(rank_whose_receives_are_late_sends_by_rendezvous_itself) {
  DeviceOptions o = usual();
  o.eager_auto = true;
  o.eager_max = mplite::kEagerCutoff;
  o.credits_bytes = 4 << 20;
  constexpr std::size_t kLong = mplite::kEagerCutoffInTime;
  for (const bool by_rendezvous : {false, true}) {
    auto w = make_world(2, o);
    const auto learn = [&] {
      for (int i = 0; i < ch_lite::kInTimeEnough; ++i)
        ck_assert_uint_lt(unasked(*w, kLong, true), kLong);
    };
    learn();
    ck_assert_uint_eq(unasked(*w, kLong, true), kLong);
    // from rank 1, and rank 0 is late
    const std::size_t bytes = by_rendezvous ? kLong : ch_lite::kLongBytes + 1;
    std::vector<std::uint8_t> data(bytes), into(bytes);
    lite_request *send, *receive;
    lite_status status;
    w->as(1);
    lite_isend(data.data(), bytes, 0, &kEnvelope, 0, nullptr, &send);
    w->settle();
    w->as(0);
    lite_irecv(into.data(), bytes, 1, &kEnvelope, nullptr, &status, &receive);
    w->settle();
    learn();
    ck_assert_uint_eq(unasked(*w, kLong, true), kLong);
  }
}
END_TEST

START_TEST(message_longer_than_the_receive_is_truncated_by_every_protocol) {
  for (std::size_t bytes : {std::size_t{100}, kShort + 100, kEager + 100}) {
    for (std::size_t room : {std::size_t{0}, std::size_t{1}, bytes - 1}) {
      for (bool posted_first : {true, false}) {
        auto w = make_world(2, usual());
        const auto data = pattern(bytes, 1);
        std::vector<std::uint8_t> into(bytes, 0xee);
        lite_request *send = nullptr, *receive = nullptr;
        lite_status status{};
        int received = 0;
        if (posted_first) {
          w->as(1);
          received = lite_irecv(into.data(), room, 0, &kEnvelope, nullptr, &status, &receive);
        }
        w->as(0);
        const int sent = lite_isend(data.data(), bytes, 1, &kEnvelope, 0, nullptr, &send);
        w->settle();
        if (!posted_first) {
          w->as(1);
          received = lite_irecv(into.data(), room, 0, &kEnvelope, nullptr, &status, &receive);
          w->settle();
        }
        if (received == LITE_PENDING) status = completed(*w, 1, receive);
        ck_assert_int_eq(status.error, LITE_ERR_TRUNCATE);
        ck_assert_uint_eq(status.bytes, room);
        ck_assert(std::memcmp(into.data(), data.data(), room) == 0);
        for (std::size_t i = room; i < bytes; ++i) ck_assert_uint_eq(into[i], 0xee);
        if (sent == LITE_PENDING) ck_assert_int_eq(completed(*w, 0, send).error, LITE_OK);
        ck_assert_uint_eq(counters(*w, 1).truncated, 1);
        check_clean(*w);
      }
    }
  }
}
END_TEST

START_TEST(rendezvous_handshake_needs_only_handlers) {
  auto w = make_world(2, usual());
  const auto data = pattern(5000000, 9);
  std::vector<std::uint8_t> into(data.size());
  lite_request *send, *receive;
  lite_status status;
  const lite_envelope any = {5, LITE_ANY_SOURCE, LITE_ANY_TAG};
  w->as(1);
  ck_assert_int_eq(lite_irecv(into.data(), into.size(), -1, &any, nullptr, &status, &receive),
                   LITE_PENDING);
  w->as(0);
  ck_assert_int_eq(lite_isend(data.data(), data.size(), 1, &kEnvelope, 0, nullptr, &send),
                   LITE_PENDING);
  for (int i = 0; i < 8; ++i) w->handler(1 - i % 2);
  ck_assert(into == data);
  ck_assert_int_eq(completed(*w, 1, receive).error, LITE_OK);
  ck_assert_int_eq(completed(*w, 0, send).error, LITE_OK);
  check_clean(*w);
}
END_TEST

START_TEST(matched_eager_message_goes_straight_into_the_users_buffer) {
  auto w = make_world(2, usual());
  std::vector<std::uint8_t> data(kEager), into(kEager);
  lite_request *send, *receive;
  lite_status status;
  w->as(1);
  lite_irecv(into.data(), into.size(), 0, &kEnvelope, nullptr, &status, &receive);
  w->hold_bulk = true;
  w->as(0);
  ck_assert_int_eq(lite_isend(data.data(), data.size(), 1, &kEnvelope, 0, nullptr, &send),
                   LITE_PENDING);
  w->settle();
  ck_assert_uint_eq(device(*w, 1).blocks().bytes_in_use(), 0);
  bool posted_there = false;
  for (const auto& [id, op] : w->ranks[1]->ops)
    posted_there = posted_there || op.memory.buffer == into.data();
  ck_assert(posted_there);
  w->hold_bulk = false;
  w->settle();
  ck_assert_uint_eq(counters(*w, 1).unexpected, 0);
}
END_TEST

START_TEST(receive_posted_while_an_unexpected_eager_message_arrives_completes_on_arrival) {
  auto w = make_world(2, usual());
  const auto data = pattern(kEager, 2);
  std::vector<std::uint8_t> into(kEager);
  lite_request *send, *receive;
  lite_status status;
  w->hold_bulk = true;
  w->as(0);
  ck_assert_int_eq(lite_isend(data.data(), data.size(), 1, &kEnvelope, 0, nullptr, &send),
                   LITE_PENDING);
  w->settle();
  w->as(1);
  ck_assert_int_eq(lite_irecv(into.data(), into.size(), 0, &kEnvelope, nullptr, &status, &receive),
                   LITE_PENDING);
  w->settle();
  ck_assert(none_completed(*w, 1));
  w->hold_bulk = false;
  w->settle();
  ck_assert_int_eq(completed(*w, 1, receive).error, LITE_OK);
  ck_assert(into == data);
  completed(*w, 0, send);
  check_clean(*w);
}
END_TEST

// All blocks are used up in the handler; the rest of the envelopes waits without buffers, and comes
// out in order all the same.
START_TEST(handler_without_blocks_defers_and_keeps_channel_order) {
  DeviceOptions o = usual();
  o.credits_bytes = 16 << 20;
  auto w = make_world(2, o);
  constexpr int kCount = 60;
  std::vector<std::vector<std::uint8_t>> data, into;
  std::vector<lite_request*> sends;
  w->as(0);
  for (int i = 0; i < kCount; ++i) {
    data.push_back(pattern(kEager - static_cast<std::size_t>(i % 3), static_cast<unsigned>(i)));
    into.emplace_back(kEager);
  }
  for (int i = 0; i < kCount; ++i) {
    lite_request* r = nullptr;
    const lite_envelope e = {5, 0, i};
    if (lite_isend(data[static_cast<std::size_t>(i)].data(),
                   data[static_cast<std::size_t>(i)].size(), 1, &e, 0, nullptr, &r) == LITE_PENDING)
      sends.push_back(r);
  }
  w->handler(1);
  ck_assert_uint_gt(counters(*w, 1).no_memory_in_handler, 0);
  ck_assert(w->ranks[1]->starved);
  ck_assert_ptr_nonnull(device(*w, 1).peer(0).deferred.front());
  // Received in reverse: the last is matched while it is deferred.
  std::vector<lite_request*> receives(kCount, nullptr);
  w->as(1);
  for (int i = kCount - 1; i >= 0; --i) {
    lite_status status{};
    const lite_envelope e = {5, 0, i};
    const auto at = static_cast<std::size_t>(i);
    while (true) {
      lite_status probe;
      const int seen = lite_iprobe(0, &e, &probe);
      ck_assert_int_ge(seen, 0);
      if (seen != 0) break;
    }
    lite_irecv(into[at].data(), kEager, 0, &e, nullptr, &status, &receives[at]);
  }
  w->settle();
  check_arrived(*w, data, into);
}
END_TEST

// Short messages that nobody receives use up the handler's blocks: a put behind them is not seen
// before somebody makes progress in ordinary context, so the handler says that it is needed.
START_TEST(handler_without_blocks_for_packets_asks_for_ordinary_context) {
  constexpr std::size_t kBytes = 20'000;
  DeviceOptions o = usual();
  o.short_max = 32 * 1024;
  auto w = make_world(2, o);
  int word = 0;
  const int put = 7;
  std::uint64_t key = 0;
  w->as(1);
  ck_assert_int_eq(lite_expose(&word, sizeof word, &key), LITE_OK);
  const std::vector<std::uint8_t> data = pattern(kBytes, 1);
  lite_request* request = nullptr;
  for (int sent = 0; sent < 20; ++sent) {
    w->as(0);
    ck_assert_int_eq(lite_isend(data.data(), kBytes, 1, &kEnvelope, 0, nullptr, &request), LITE_OK);
    w->handler(1);
    ck_assert_uint_eq(w->ranks[1]->starved, counters(*w, 1).no_memory_in_handler != 0);
  }
  w->as(0);
  ck_assert_int_ge(lite_put(1, key, 0, &put, sizeof put, 0, nullptr, &request), 0);
  const int moves = w->ranks[1]->moves;
  w->handler(1);
  ck_assert_int_eq(word, 0);
  ck_assert(w->ranks[1]->starved);
  // What waits does not keep it from moving what needs no memory, once each time.
  ck_assert_int_eq(w->ranks[1]->moves, moves + 1);
  w->ranks[1]->starved = false;
  w->as(1);
  lite_progress();
  ck_assert_int_eq(word, put);
  ck_assert(!w->ranks[1]->starved);
  w->handler(1);
  ck_assert(!w->ranks[1]->starved);
}
END_TEST

// What a departure is learned by (mplite/tuning/grace.h).
START_TEST(long_and_many_requests_and_exposed_memory_are_heavy) {
  constexpr std::size_t kLong = 64 * 1024;
  auto w = make_world(2, usual());
  std::vector<std::uint8_t> data(kLong + 1);
  const auto heavy_with = [&](int receives, std::size_t bytes) {
    lite_status status;
    lite_request* receive[65];
    w->as(1);
    for (int i = 0; i < receives; ++i)
      lite_irecv(data.data(), bytes, 0, &kEnvelope, nullptr, &status, &receive[i]);
    const bool heavy = device(*w, 1).is_heavy();
    for (int i = 0; i < receives; ++i) lite_cancel_recv(receive[i]);
    ck_assert(!device(*w, 1).is_heavy());
    return heavy;
  };
  ck_assert(!heavy_with(1, kLong));
  ck_assert(!heavy_with(64, 8));
  ck_assert(heavy_with(65, 8));
  ck_assert(heavy_with(1, kLong + 1));
  std::uint64_t word = 0, key = 0;
  ck_assert_int_eq(lite_expose(&word, sizeof word, &key), LITE_OK);
  ck_assert(device(*w, 1).is_heavy());
  lite_withdraw(key);
  ck_assert(!device(*w, 1).is_heavy());
}
END_TEST

// A host that has one request for all that are complete asks for nothing else.
START_TEST(send_without_a_request_is_done_with_the_call_or_not_begun) {
  DeviceOptions o = usual();
  o.credits_bytes = 32 * 1024;
  auto w = make_world(2, o);
  const std::vector<std::uint8_t> data = pattern(kEager + 1, 3);
  const lite_envelope e = {5, 0, 1};
  int sent = 0;
  w->as(0);
  for (const std::size_t bytes : {kShort + 1, kEager + 1})
    ck_assert_int_eq(lite_isend(data.data(), bytes, 1, &e, 0, nullptr, nullptr), LITE_PENDING);
  ck_assert_int_eq(lite_isend(data.data(), 1, 0, &e, 0, nullptr, nullptr),
                   LITE_PENDING);  // to itself
  ck_assert_int_eq(lite_isend(data.data(), 1, 1, &e, LITE_SEND_SYNC, nullptr, nullptr),
                   LITE_PENDING);
  while (sent < 1000 && lite_isend(data.data(), kShort - static_cast<std::size_t>(sent), 1, &e, 0,
                                   nullptr, nullptr) == LITE_OK)
    ++sent;
  ck_assert_int_gt(sent, 10);
  ck_assert_int_lt(sent, 1000);  // it ends with the credit
  ck_assert_uint_eq(counters(*w, 0).short_msgs, static_cast<std::uint64_t>(sent));
  ck_assert_uint_eq(device(*w, 0).requests_used(), 0);
  w->settle();
  w->as(1);
  for (int i = 0; i < sent; ++i) {
    std::vector<std::uint8_t> into(kShort);
    lite_status status{};
    lite_request* r = nullptr;
    ck_assert_int_eq(lite_irecv(into.data(), into.size(), 0, &e, nullptr, &status, &r), LITE_OK);
    ck_assert_uint_eq(status.bytes, kShort - static_cast<std::size_t>(i));
    ck_assert_int_eq(std::memcmp(into.data(), data.data(), status.bytes), 0);
  }
  w->settle();
  w->as(0);
  ck_assert_int_eq(lite_isend(data.data(), 1, 1, &e, 0, nullptr, nullptr),
                   LITE_OK);  // the credit is back
  w->settle();
  w->as(1);
  std::uint8_t last = 0;
  lite_status status{};
  lite_request* r = nullptr;
  ck_assert_int_eq(lite_irecv(&last, 1, 0, &e, nullptr, &status, &r), LITE_OK);
  ck_assert_uint_eq(last, data[0]);
  w->settle();
  check_clean(*w);
}
END_TEST

// By the few lines for the one message that is waited for, and by the general way, which is taken
// as soon as another receive is posted: both leave the same.
START_TEST(awaited_message_leaves_what_any_other_leaves) {
  struct Left {
    lite_status status;
    std::vector<std::uint8_t> memory;
    std::uint64_t owed, back;
    int sent;
  };
  const auto exchange = [](bool lone, std::size_t bytes, std::size_t room, unsigned flags,
                           std::int32_t tag, bool in_pieces) {
    DeviceOptions o = usual();
    o.short_max = 16 * 1024;
    auto w = make_world(2, o);
    Left left{};
    left.memory.resize(room, 0xee);
    lite_request *posted = nullptr, *other = nullptr, *sent = nullptr;
    std::uint8_t nowhere[8];
    const lite_envelope never = {6, 0, 7}, wanted = {5, 0, tag}, back = {5, 1, 7};
    // What the message brings back besides: credit for one that went the other way.
    w->as(1);
    ck_assert_int_eq(lite_isend("back", 4, 0, &back, 0, nullptr, nullptr), LITE_OK);
    w->settle();
    w->as(0);
    ck_assert_int_eq(lite_irecv(nowhere, 8, 1, &back, nullptr, &left.status, &other), LITE_OK);
    w->as(1);
    const std::uint64_t before = device(*w, 1).peer(0).credits[ch_lite::kPointToPoint].left();
    if (!lone)
      ck_assert_int_eq(lite_irecv(nowhere, 8, 0, &never, nullptr, &left.status, &other),
                       LITE_PENDING);
    const iovec pieces[2] = {{left.memory.data(), room / 2},
                             {left.memory.data() + room / 2, room - room / 2}};
    ck_assert_int_eq(
        in_pieces ? lite_irecvv(pieces, 2, room, 0, &wanted, &left, &left.status, &posted)
                  : lite_irecv(left.memory.data(), room, 0, &wanted, &left, &left.status, &posted),
        LITE_PENDING);
    w->as(0);
    const auto data = pattern(bytes, 3);
    const int code = lite_isend(data.data(), bytes, 1, &kEnvelope, flags, nullptr, &sent);
    ck_assert_int_eq(code, flags != 0 ? LITE_PENDING : LITE_OK);
    w->settle();
    left.status = completed(*w, 1, posted);
    left.owed = device(*w, 1).peer(0).credits[ch_lite::kPointToPoint].owed();
    left.back = device(*w, 1).peer(0).credits[ch_lite::kPointToPoint].left() - before;
    if (!lone) ck_assert_int_eq(lite_cancel_recv(other), 1);
    if (flags != 0) completed(*w, 0, sent);
    check_clean(*w);
    return left;
  };
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{2520},
                                  std::size_t{2521}, std::size_t{ch_lite::kShortBytesMax}})
    for (const std::size_t room : {bytes, bytes + 100, bytes / 2})
      for (const unsigned flags : {0u, unsigned{LITE_SEND_SYNC}})
        for (const std::int32_t tag : {7, LITE_ANY_TAG})
          for (const bool in_pieces : {false, true}) {
            const Left a = exchange(true, bytes, room, flags, tag, in_pieces),
                       b = exchange(false, bytes, room, flags, tag, in_pieces);
            ck_assert_int_eq(a.status.error, bytes > room ? LITE_ERR_TRUNCATE : LITE_OK);
            ck_assert_int_eq(a.status.error, b.status.error);
            ck_assert(a.status.source == 0 && a.status.tag == 7 && a.status.peer == 0 &&
                      a.status.bytes == std::min(bytes, room));
            ck_assert(b.status.source == 0 && b.status.tag == 7 && b.status.peer == 0 &&
                      b.status.bytes == a.status.bytes);
            ck_assert(a.memory == b.memory);
            const auto data = pattern(bytes, 3);
            ck_assert(std::equal(data.begin(),
                                 data.begin() + static_cast<std::ptrdiff_t>(a.status.bytes),
                                 a.memory.begin()));
            ck_assert_uint_eq(a.owed, b.owed);
            ck_assert_uint_eq(a.back, b.back);
            ck_assert_uint_ne(a.back, 0);
          }
}
END_TEST

// What breaks the protocol does so for the awaited one as well: more than there is credit for, and
// more credit than was given.
START_TEST(awaited_message_that_breaks_the_protocol_loses_its_peer) {
  for (const bool overdraft : {true, false}) {
    auto w = make_world(2, usual());
    std::uint8_t into[64];
    lite_request* posted = nullptr;
    lite_status status;
    w->as(1);
    ck_assert_int_eq(lite_irecv(into, sizeof into, 0, &kEnvelope, nullptr, &status, &posted),
                     LITE_PENDING);
    w->as(0);
    const std::uint32_t credit = overdraft ? 0 : 1000;
    ch_lite::MessagePacket packet = {{ch_lite::PacketType::kShort, 0, 0, credit, 0}, 5, 0, 7, 0, 0};
    int sent = 1;
    if (overdraft) sent = static_cast<int>(device(*w, 1).window() / ch_lite::message_charge(0)) + 1;
    const ch_lite::MessagePacket unexpected = {
        {ch_lite::PacketType::kShort, 0, 0, 0, 0}, 6, 0, 7, 0, 0};
    for (; sent > 1; --sent) MPID_SendControl(&unexpected, sizeof unexpected, 1);
    MPID_SendControl(&packet, sizeof packet, 1);
    w->settle();
    ck_assert_int_eq(completed(*w, 1, posted).error, LITE_ERR_PEER_LOST);
    ck_assert_int_ne(device(*w, 1).peer(0).lost, 0);
  }
}
END_TEST

// Credit of the other lane comes back with it, too.
START_TEST(awaited_message_brings_back_credit_for_active_messages) {
  auto w = make_world(2, usual());
  std::uint8_t into[8];
  lite_request *posted = nullptr, *sent = nullptr;
  lite_status status;
  w->as(1);
  const std::uint64_t before = device(*w, 1).peer(0).credits[ch_lite::kActive].left();
  ck_assert_int_eq(lite_am_isend(0, 3, "head", 4, nullptr, 0, nullptr, &sent), LITE_OK);
  const auto spent =
      static_cast<std::uint32_t>(before - device(*w, 1).peer(0).credits[ch_lite::kActive].left());
  ck_assert_uint_ne(spent, 0);
  ck_assert_int_eq(lite_irecv(into, sizeof into, 0, &kEnvelope, nullptr, &status, &posted),
                   LITE_PENDING);
  w->as(0);
  const ch_lite::MessagePacket packet = {
      {ch_lite::PacketType::kShort, 0, 0, 0, spent}, 5, 0, 7, 0, 0};
  MPID_SendControl(&packet, sizeof packet, 1);
  w->as(1);
  lite_progress();
  ck_assert_int_eq(completed(*w, 1, posted).error, LITE_OK);
  ck_assert_uint_eq(device(*w, 1).peer(0).credits[ch_lite::kActive].left(), before);
}
END_TEST

START_TEST(completion_is_told_in_one_call) {
  auto w = make_world(2, usual());
  std::uint8_t into[2][8];
  lite_request *posted[2], *sent = nullptr;
  lite_status status;
  lite_completion done{};
  w->as(1);
  ck_assert_int_eq(lite_take_completion(&done), 0);
  for (int i = 0; i < 2; ++i)
    ck_assert_int_eq(lite_irecv(into[i], 8, 0, &kEnvelope, into[i], &status, &posted[i]),
                     LITE_PENDING);
  w->as(0);
  ck_assert_int_eq(lite_isend("1234", 4, 1, &kEnvelope, 0, nullptr, nullptr), LITE_OK);
  ck_assert_int_eq(lite_isend("12345", 5, 1, &kEnvelope, LITE_SEND_SYNC, &sent, &sent),
                   LITE_PENDING);
  w->settle();
  w->as(1);
  for (int i = 0; i < 2; ++i) {
    ck_assert_int_eq(lite_take_completion(&done), 2 - i);
    ck_assert(done.cookie == into[i] && done.is_send == 0 && done.holds_buffer != 0);
    ck_assert(done.status.error == LITE_OK && done.status.bytes == 4u + static_cast<unsigned>(i) &&
              done.status.tag == 7);
  }
  ck_assert_int_eq(lite_take_completion(&done), 0);
  w->as(0);
  ck_assert_int_eq(lite_take_completion(&done), 1);
  ck_assert(done.cookie == &sent && done.is_send != 0);
  check_clean(*w);
}
END_TEST

// The loss that a send finds takes no credit along.
START_TEST(send_that_fails_gives_its_credit_back) {
  auto w = make_world(2, usual());
  w->as(0);
  const std::uint64_t before = device(*w, 0).peer(1).credits[ch_lite::kPointToPoint].left();
  w->ranks[0]->error[1] = ECONNRESET;
  const lite_envelope e = {5, 0, 1};
  const char data[100] = {};
  lite_request* r = nullptr;
  ck_assert_int_eq(lite_isend(data, sizeof data, 1, &e, 0, nullptr, &r), LITE_ERR_PEER_LOST);
  ck_assert_uint_eq(device(*w, 0).peer(1).credits[ch_lite::kPointToPoint].left(), before);
  auto again = make_world(2, usual());
  again->as(0);
  again->ranks[0]->error[1] = ECONNRESET;
  ck_assert_int_eq(lite_isend(data, sizeof data, 1, &e, 0, nullptr, nullptr), LITE_ERR_PEER_LOST);
  ck_assert_uint_eq(device(*again, 0).peer(1).credits[ch_lite::kPointToPoint].left(), before);
  ck_assert_int_ne(device(*again, 0).peer(1).lost, 0);
}
END_TEST

// A posted receive matches while an older message of the same source still waits for a block: its
// data comes second on the channel all the same. An eager message without a block holds up what is
// behind it in the stream. The fragment of an RTS need not: the sender has it still.
START_TEST(handler_without_blocks_throws_fragments_away_and_goes_on) {
  DeviceOptions o = usual();
  o.credits_bytes = 16 << 20;
  auto w = make_world(2, o);
  constexpr int kCount = 30;
  constexpr std::size_t kBytes = kEager + 5000;
  std::vector<std::vector<std::uint8_t>> data, into;
  lite_request* r = nullptr;
  lite_status status{};
  std::vector<std::uint8_t> last(kBytes), expected(kBytes);
  const lite_envelope behind = {5, 0, 1000};
  w->as(1);
  ck_assert_int_eq(lite_irecv(expected.data(), kBytes, 0, &behind, nullptr, &status, &r),
                   LITE_PENDING);
  w->as(0);
  for (int i = 0; i < kCount; ++i) {
    data.push_back(pattern(kBytes - static_cast<std::size_t>(i), static_cast<unsigned>(i)));
    into.emplace_back(kBytes);
  }
  for (int i = 0; i < kCount; ++i) {
    lite_request* send = nullptr;
    const lite_envelope e = {5, 0, i};
    ck_assert_int_eq(lite_isend(data[static_cast<std::size_t>(i)].data(),
                                data[static_cast<std::size_t>(i)].size(), 1, &e, 0, nullptr, &send),
                     LITE_PENDING);
  }
  last = pattern(kBytes, 77);
  lite_request* send = nullptr;
  ck_assert_int_eq(lite_isend(last.data(), kBytes, 1, &behind, 0, nullptr, &send), LITE_PENDING);
  for (int i = 0; i < 10; ++i) {
    w->handler(1);
    w->handler(0);
  }
  ck_assert_uint_gt(counters(*w, 1).no_memory_in_handler, 0);
  ck_assert_ptr_null(device(*w, 1).peer(0).deferred.front());
  ck_assert_int_eq(completed(*w, 1, r).error, LITE_OK);  // nobody called the library
  ck_assert(expected == last);
  w->as(1);
  for (int i = kCount - 1; i >= 0; --i) {
    const lite_envelope e = {5, 0, i};
    const auto at = static_cast<std::size_t>(i);
    lite_request* receive = nullptr;
    if (i % 3 == 0) {  // less than the fragment, of those that were thrown away as well
      into[at].resize(1000);
      data[at].resize(1000);
    }
    ck_assert_int_ge(
        lite_irecv(into[at].data(), into[at].size(), 0, &e, nullptr, &status, &receive), 0);
  }
  w->settle();
  check_arrived(*w, data, into);
}
END_TEST

// A peer that the device gives up while the channel still has it: the buffers stay in use until the
// fragment is through.
START_TEST(request_with_a_fragment_under_way_ends_with_the_fragment) {
  for (const bool sender : {true, false}) {
    auto w = make_world(2, usual());
    w->keeps_connections = true;
    w->hold_bulk = true;
    std::vector<std::uint8_t> big(kEager + 1), into(kEager + 1);
    lite_request *send = nullptr, *receive = nullptr;
    lite_status status{};
    w->as(1);
    ck_assert_int_eq(
        lite_irecv(into.data(), into.size(), 0, &kEnvelope, nullptr, &status, &receive),
        LITE_PENDING);
    w->as(0);
    ck_assert_int_eq(lite_isend(big.data(), big.size(), 1, &kEnvelope, 0, nullptr, &send),
                     LITE_PENDING);
    if (!sender) {  // matched: the CTS is on its way
      w->as(1);
      lite_progress();
    }
    const int victim = sender ? 0 : 1;
    const std::uint8_t nonsense[3] = {1, 2, 3};
    w->wire[{1 - victim, victim}].clear();
    w->forge(1 - victim, victim, nonsense, sizeof nonsense);
    w->as(victim);
    lite_progress();
    ck_assert_ptr_null(lite_next_completion());
    w->hold_bulk = false;
    for (int i = 0; i < 5; ++i) {
      w->as(0);
      lite_progress();
      w->as(1);
      lite_progress();
    }
    ck_assert_int_eq(completed(*w, victim, sender ? send : receive).error, LITE_ERR_PEER_LOST);
  }
}
END_TEST

// Windows at their least, so that all peers' together are beyond the bound. What is received is
// behind what is not.
START_TEST(messages_behind_eager_ones_that_nobody_receives_arrive_beyond_the_bound) {
  constexpr int kPeers = 120;
  constexpr std::size_t kBytes = 8'000;
  DeviceOptions o = usual();
  o.credits_bytes = 16 * 1024;
  o.unexpected_max_bytes = 64 * 1024;
  auto w = make_world(1 + kPeers, o);
  const auto data = pattern(kBytes, 1);
  std::vector<std::vector<std::uint8_t>> into(kPeers, std::vector<std::uint8_t>(kBytes));
  const lite_envelope wanted = {5, 0, 9};
  for (int i = 1; i <= kPeers; ++i) {
    w->as(i);
    lite_request* r = nullptr;
    ck_assert_int_ge(lite_isend(data.data(), kBytes, 0, &kEnvelope, 0, nullptr, &r), 0);
    ck_assert_int_ge(lite_isend(data.data(), 1, 0, &wanted, 0, nullptr, &r), 0);
    w->settle();
  }
  w->as(0);
  for (int i = 1; i <= kPeers; ++i) {
    std::uint8_t byte = 0;
    lite_status status{};
    lite_request* r = nullptr;
    const int now = lite_irecv(&byte, 1, i, &wanted, nullptr, &status, &r);
    w->settle();
    if (now == LITE_PENDING) status = completed(*w, 0, r);
    ck_assert_int_eq(status.error, LITE_OK);
    ck_assert_uint_eq(byte, data[0]);
    w->as(0);
  }
  for (int i = 1; i <= kPeers; ++i) {
    lite_status status{};
    lite_request* r = nullptr;
    auto& there = into[static_cast<std::size_t>(i - 1)];
    if (lite_irecv(there.data(), kBytes, i, &kEnvelope, nullptr, &status, &r) == LITE_PENDING) {
      w->settle();
      status = completed(*w, 0, r);
    }
    ck_assert_int_eq(status.error, LITE_OK);
    ck_assert(there == data);
    w->as(0);
  }
}
END_TEST

START_TEST(receive_matched_behind_a_deferred_message_gets_its_own_data) {
  for (bool lose : {false, true}) {
    DeviceOptions o = usual();
    o.eager_max = 1 << 20;
    o.credits_bytes = 16 << 20;
    auto w = make_world(2, o);
    const auto first = pattern(500000, 1),
               second = pattern(400000, 2);  // larger than any block in stock
    std::vector<std::uint8_t> into_first(first.size()), into_second(second.size());
    lite_request *a, *b, *receive_first, *receive_second;
    lite_status status;
    const lite_envelope e = {5, 0, 8};
    w->as(1);
    ck_assert_int_eq(lite_irecv(into_second.data(), into_second.size(), 0, &e, nullptr, &status,
                                &receive_second),
                     LITE_PENDING);
    w->hold_bulk = true;
    w->as(0);
    ck_assert_int_eq(lite_isend(first.data(), first.size(), 1, &kEnvelope, 0, nullptr, &a),
                     LITE_PENDING);
    ck_assert_int_eq(lite_isend(second.data(), second.size(), 1, &e, 0, nullptr, &b), LITE_PENDING);
    for (int i = 0; i < 4; ++i) w->handler(1);
    ck_assert_ptr_nonnull(device(*w, 1).peer(0).deferred.front());
    ck_assert_ptr_ne(device(*w, 1).peer(0).deferred.front(), device(*w, 1).peer(0).deferred.back());
    if (lose) {
      w->lose(1, 0, ECONNRESET);
      w->handler(1);
      ck_assert_int_eq(completed(*w, 1, receive_second).error, LITE_ERR_PEER_LOST);
      ck_assert_int_eq(lite_irecv(into_first.data(), into_first.size(), 0, &kEnvelope, nullptr,
                                  &status, &receive_first),
                       LITE_ERR_PEER_LOST);
      ck_assert_uint_eq(device(*w, 1).messages_used(), 0);
      ck_assert_uint_eq(device(*w, 1).requests_used(), 0);
      continue;
    }
    w->as(0);
    w->hold_bulk = false;
    lite_progress();
    // From the handler alone: the first message is matched now, so it needs no block, and the
    // second follows.
    w->as(1);
    const int received = lite_irecv(into_first.data(), into_first.size(), 0, &kEnvelope, nullptr,
                                    &status, &receive_first);
    for (int i = 0; i < 4; ++i) w->handler(1);
    ck_assert_int_eq(received, LITE_PENDING);
    w->as(1);
    for (int i = 0; i < 2; ++i) {
      lite_request* r = lite_next_completion();
      ck_assert_ptr_nonnull(r);
      lite_request_free(r);
    }
    ck_assert(into_first == first);
    ck_assert(into_second == second);
    completed(*w, 0, a);
    completed(*w, 0, b);
    w->settle();
    check_clean(*w);
  }
}
END_TEST

START_TEST(huge_eager_message_in_the_handler_waits_for_ordinary_context) {
  DeviceOptions o = usual();
  o.eager_max = UINT64_MAX;
  o.credits_bytes = 16 << 20;
  auto w = make_world(2, o);
  const auto data = pattern(3000000, 4);
  std::vector<std::uint8_t> into(data.size());
  lite_request *send = nullptr, *receive = nullptr;
  lite_status status{};
  w->as(0);
  const int sent = lite_isend(data.data(), data.size(), 1, &kEnvelope, 0, nullptr, &send);
  for (int i = 0; i < 4; ++i) w->handler(1);
  ck_assert_uint_eq(device(*w, 1).blocks().bytes_in_use(), 0);
  w->settle();
  ck_assert_uint_ge(device(*w, 1).blocks().bytes_in_use(), data.size());
  w->as(1);
  ck_assert_int_eq(lite_irecv(into.data(), into.size(), 0, &kEnvelope, nullptr, &status, &receive),
                   LITE_OK);
  ck_assert(into == data);
  ck_assert_uint_eq(counters(*w, 0).eager_msgs, 1);
  if (sent == LITE_PENDING) completed(*w, 0, send);
  w->settle();
  check_clean(*w);
}
END_TEST

// ---- credit ----

// The application may compute after any call: what the handler lives on is full then.
START_TEST(stock_is_full_whenever_a_call_returns) {
  auto w = make_world(2, usual());
  const auto data = pattern(16000, 1);
  for (int i = 0; i < 20; ++i) {
    lite_request* r = nullptr;
    w->as(0);
    lite_isend(data.data(), data.size(), 1, &kEnvelope, 0, nullptr, &r);
    w->as(1);
    lite_progress();
    ck_assert(!device(*w, 1).blocks().wants_refill());
  }
}
END_TEST

START_TEST(many_sends_in_a_row_see_the_credit_that_comes_back) {
  DeviceOptions o = usual();
  o.credits_bytes = 64 * 1024;
  auto w = make_world(2, o);
  constexpr int kCount = 100;
  constexpr std::size_t kBytes = 5000;
  std::vector<std::vector<std::uint8_t>> data, into;
  for (int i = 0; i < kCount; ++i) {
    data.push_back(pattern(kBytes, static_cast<unsigned>(i)));
    into.emplace_back(kBytes);
  }
  lite_request* r = nullptr;
  lite_status status{};
  w->as(1);
  for (auto& buffer : into) lite_irecv(buffer.data(), kBytes, 0, &kEnvelope, nullptr, &status, &r);
  for (const auto& bytes : data) {
    w->as(0);
    ck_assert_int_ge(lite_isend(bytes.data(), kBytes, 1, &kEnvelope, 0, nullptr, &r), 0);
    w->handler(1);
  }
  ck_assert_uint_eq(counters(*w, 0).eager_msgs, kCount);
  ck_assert_uint_eq(counters(*w, 0).credit_stalls, 0);
  w->settle();
  ck_assert(into == data);
}
END_TEST

// Each rank gives what its own knobs allow, and each pair uses the lesser.
START_TEST(ranks_with_unequal_credits_flood_each_other_unharmed) {
  const std::uint64_t credits[] = {64 << 10, 4 << 20};
  const std::uint64_t unexpected_max[] = {
      64 << 20, 1 << 20};  // the other way round, and neither is decisive alone
  std::uint64_t windows[2];
  for (int i = 0; i < 2; ++i) windows[i] = ch_lite::credit_window(credits[i], unexpected_max[i], 2);
  auto w = std::make_unique<World>(2, 1);
  for (int i = 0; i < 2; ++i) {
    DeviceOptions o = usual();
    o.credits_bytes = credits[i];
    o.unexpected_max_bytes = unexpected_max[i];
    o.windows = windows;
    w->make_device(i, o);
  }
  for (int i = 0; i < 2; ++i)
    for (const ch_lite::Credits& lane : device(*w, i).peer(1 - i).credits)
      ck_assert_uint_eq(lane.window(), 64 << 10);
  ck_assert_uint_eq(device(*w, 1).peer(1).credits[0].window(), windows[1]);
  deliver_to_list(*w);
  constexpr int kCount = 300;
  const auto data = pattern(3000, 5);
  lite_request* r = nullptr;
  for (int i = 0; i < kCount; ++i) {
    for (int from = 0; from < 2; ++from) {
      w->as(from);
      const lite_envelope e = {5, 0, i};
      ck_assert_int_ge(lite_isend(data.data(), data.size(), 1 - from, &e, 0, nullptr, &r), 0);
      ck_assert_int_ge(
          lite_am_isend(1 - from, 3, data.data(), 1000, data.data(), data.size(), nullptr, &r), 0);
      if (i % 3 == 0) w->handler(1 - from);
    }
  }
  w->settle();
  for (int i = 0; i < kCount; ++i) {
    for (int at = 0; at < 2; ++at) {
      w->as(at);
      std::vector<std::uint8_t> into(data.size());
      lite_status status{};
      const lite_envelope e = {5, 0, i};
      const int rc = lite_irecv(into.data(), into.size(), 1 - at, &e, &into, &status, &r);
      ck_assert_int_ge(rc, 0);
      if (rc == LITE_PENDING) w->settle();
      ck_assert(into == data);
    }
  }
  w->settle();
  ck_assert_uint_eq(g_delivered.size(), 2 * kCount);
  for (int i = 0; i < 2; ++i) ck_assert_int_eq(device(*w, i).peer(1 - i).lost, 0);
}
END_TEST

START_TEST(flood_without_receives_is_bounded_by_credit_and_goes_on_by_rendezvous) {
  DeviceOptions o = usual();
  o.credits_bytes = 64 * 1024;
  auto w = make_world(2, o);
  constexpr int kCount = 2000;
  const auto data = pattern(100, 5);
  std::vector<lite_request*> sends;
  for (int i = 0; i < kCount; ++i) {
    w->as(0);
    lite_request* r = nullptr;
    const lite_envelope e = {5, 0, i};
    const int sent = lite_isend(data.data(), data.size(), 1, &e, 0, nullptr, &r);
    ck_assert_int_ge(sent, 0);
    if (sent == LITE_PENDING) sends.push_back(r);
    w->handler(1);
  }
  w->settle();
  ck_assert_uint_le(device(*w, 1).blocks().bytes_in_use(), o.credits_bytes);
  ck_assert_uint_gt(counters(*w, 0).credit_stalls, 0);
  ck_assert_uint_eq(counters(*w, 0).short_msgs + counters(*w, 0).rndv_msgs, kCount);
  for (int i = 0; i < kCount; ++i) {
    w->as(1);
    std::vector<std::uint8_t> into(100);
    lite_status status{};
    lite_request* r = nullptr;
    const lite_envelope e = {5, LITE_ANY_SOURCE, LITE_ANY_TAG};
    if (lite_irecv(into.data(), into.size(), -1, &e, nullptr, &status, &r) == LITE_PENDING) {
      w->settle();
      status = completed(*w, 1, r);
    }
    ck_assert_int_eq(status.tag, i);
    ck_assert(into == data);
  }
  w->as(0);
  std::size_t done = 0;
  while (lite_request* r = lite_next_completion()) {
    ++done;
    lite_request_free(r);
  }
  ck_assert_uint_eq(done, sends.size());
  w->settle();
  check_clean(*w);
}
END_TEST

// The receiver never sends anything of its own: the credit comes back by packets of its own, from
// the handler too.
START_TEST(credit_comes_back_from_a_receiver_that_only_receives) {
  DeviceOptions o = usual();
  o.credits_bytes = 64 * 1024;
  auto w = make_world(2, o);
  std::uint8_t into[64];
  for (int i = 0; i < 3000; ++i) {
    lite_request *send = nullptr, *receive = nullptr;
    lite_status status;
    w->as(1);
    ck_assert_int_eq(lite_irecv(into, sizeof into, 0, &kEnvelope, nullptr, &status, &receive),
                     LITE_PENDING);
    w->as(0);
    ck_assert_int_eq(lite_isend(into, sizeof into, 1, &kEnvelope, 0, nullptr, &send), LITE_OK);
    w->handler(1);
    completed(*w, 1, receive);
    w->handler(0);
  }
  ck_assert_uint_eq(counters(*w, 0).credit_stalls, 0);
}
END_TEST

// ---- probe, matched probe, cancel ----

START_TEST(who_polls_is_known_to_wait_from_the_second_poll_or_when_the_call_started_something) {
  static int idles;
  DeviceOptions o = usual();
  o.hooks.idle = [](void*, ch_lite::Rest) { ++idles; };
  auto w = make_world(2, o);
  w->as(1);
  idles = 0;
  lite_host_exit();
  lite_progress();  // MPI_Test
  ck_assert_int_eq(idles, 0);
  lite_progress();
  ck_assert_int_eq(idles, 1);
  lite_host_exit();
  std::uint8_t byte = 0;
  lite_request* receive;
  lite_status status;
  ck_assert_int_eq(lite_irecv(&byte, 1, 0, &kEnvelope, nullptr, &status, &receive), LITE_PENDING);
  lite_progress();  // MPI_Recv
  ck_assert_int_eq(idles, 2);
  for (const bool sending : {false, true}) {  // after MPI_Irecv, after MPI_Isend
    sending ? lite_host_exit_sending() : lite_host_exit();
    lite_progress();
    ck_assert_int_eq(idles, 2);
    std::uint8_t other = 0;
    lite_request* more;
    ck_assert_int_eq(lite_irecv(&other, 1, 0, &kEnvelope, nullptr, &status, &more), LITE_PENDING);
    lite_cancel_recv(more);
  }
  lite_cancel_recv(receive);
}
END_TEST

// LITE_SPIN_US=forever: 2^31 polls take some 20 minutes.
START_TEST(wait_of_more_polls_than_an_int_counts_is_still_a_wait) {
  static int idles, lone;
  DeviceOptions o = usual();
  o.hooks.idle = [](void*, ch_lite::Rest) { ++idles; };
  o.hooks.give_way = [](void*) { ++lone; };
  auto w = make_world(2, o);
  w->as(1);
  idles = lone = 0;
  lite_host_exit();
  LITE_HOT_SET(polls_since_exit, INT_MAX - 1);
  for (int i = 1; i <= 4; ++i) {
    lite_progress();
    ck_assert_int_eq(idles, i);
    ck_assert_int_eq(LITE_HOT_GET(polls_since_exit), INT_MAX);
  }
  ck_assert_int_eq(lone, 0);
  lite_host_exit();
  lite_progress();
  ck_assert_int_eq(idles, 4);
}
END_TEST

// With 120,000 requests MPI_Testsome polls 15,000 times in one call, and MPI_Waitany as often
// before it looks at the first request again.
START_TEST(polls_of_a_call_that_may_not_block_or_has_yet_to_look_never_sleep) {
  static int sleeps;
  DeviceOptions o = usual();
  o.hooks.idle = [](void*, ch_lite::Rest allowed) {
    sleeps += allowed == ch_lite::Rest::kSleep ? 1 : 0;
  };
  auto w = make_world(2, o);
  std::uint8_t byte = 0;
  lite_request *send, *receive;
  lite_status status;
  w->as(1);
  ck_assert_int_eq(lite_irecv(&byte, 1, 0, &kEnvelope, nullptr, &status, &receive), LITE_PENDING);
  lite_host_exit();
  sleeps = 0;
  lite_host_call_begins(LITE_MAY_NOT_BLOCK);
  for (int i = 0; i < 15'000; ++i) lite_progress();
  lite_host_call_ends();
  lite_host_exit();
  ck_assert_int_eq(sleeps, 0);
  lite_host_call_begins(LITE_SCANS);
  for (int i = 0; i < 2 * 15'000; ++i) {
    if (i == 15'000) lite_host_scan_ends();
    lite_progress();
  }
  ck_assert_int_eq(sleeps, 0);
  lite_host_scan_ends();
  lite_progress();
  ck_assert_int_eq(sleeps, 1);
  w->as(0);
  ck_assert_int_eq(lite_isend(&byte, 1, 1, &kEnvelope, 0, nullptr, &send), LITE_OK);
  w->as(1);
  ck_assert_int_eq(lite_progress(), 1);
  completed(*w, 1, receive);
  for (int i = 0; i < 15'000; ++i) lite_progress();
  lite_host_scan_ends();
  lite_progress();
  ck_assert_int_eq(sleeps, 1);
  lite_host_scan_ends();
  lite_progress();
  ck_assert_int_eq(sleeps, 2);
  lite_host_call_ends();
  lite_host_exit();
}
END_TEST

// MPI_Wait in a callback of MPI_Test: it makes the host go round in a loop.
START_TEST(wait_inside_of_a_call_that_may_not_block_sleeps_and_the_call_does_not) {
  static int sleeps;
  DeviceOptions o = usual();
  o.hooks.idle = [](void*, ch_lite::Rest allowed) {
    sleeps += allowed == ch_lite::Rest::kSleep ? 1 : 0;
  };
  auto w = make_world(2, o);
  w->as(1);
  lite_host_exit();
  sleeps = 0;
  lite_host_call_begins(LITE_MAY_NOT_BLOCK);
  for (int i = 0; i < 10; ++i) {
    lite_progress();
    lite_host_scan_ends();
  }
  ck_assert_int_eq(sleeps, 8);
  lite_host_exit();  // that one's
  for (int i = 0; i < 100; ++i) lite_progress();
  ck_assert_int_eq(sleeps, 8);
  lite_host_call_ends();
  lite_host_exit();
}
END_TEST

START_TEST(probe_reports_without_taking) {
  auto w = make_world(2, usual());
  const auto data = pattern(50000, 1);
  std::vector<std::uint8_t> into(data.size());
  lite_request *send = nullptr, *receive = nullptr;
  lite_status status{};
  w->as(1);
  ck_assert_int_eq(lite_iprobe(0, &kEnvelope, &status), 0);
  w->as(0);
  lite_isend(data.data(), data.size(), 1, &kEnvelope, 0, nullptr, &send);
  w->as(1);
  for (int i = 0; i < 2; ++i) {
    ck_assert_int_eq(lite_iprobe(0, &kEnvelope, &status), 1);
    ck_assert_uint_eq(status.bytes, data.size());
    ck_assert(status.source == 0 && status.tag == 7 && status.error == LITE_OK);
  }
  lite_irecv(into.data(), into.size(), 0, &kEnvelope, nullptr, &status, &receive);
  w->settle();
  ck_assert(into == data);
}
END_TEST

START_TEST(detached_message_is_hidden_and_received_by_imrecv_in_every_state) {
  for (std::size_t bytes : kSizes) {
    for (bool held : {false, true}) {
      auto w = make_world(2, usual());
      const auto data = pattern(bytes, 8);
      std::vector<std::uint8_t> into(bytes);
      lite_request *send = nullptr, *receive = nullptr, *other = nullptr;
      lite_status status{};
      lite_message* message = nullptr;
      w->hold_bulk = held;  // eager: still arriving when detached
      w->as(0);
      const int sent =
          lite_isend(data.data(), bytes, 1, &kEnvelope, LITE_SEND_SYNC, nullptr, &send);
      ck_assert_int_eq(sent, LITE_PENDING);
      w->settle();
      w->as(1);
      ck_assert_int_eq(lite_improbe(0, &kEnvelope, &status, &message), 1);
      ck_assert_uint_eq(status.bytes, bytes);
      ck_assert_int_eq(lite_iprobe(0, &kEnvelope, &status), 0);
      ck_assert_int_eq(lite_irecv(nullptr, 0, 0, &kEnvelope, nullptr, &status, &other),
                       LITE_PENDING);
      ck_assert_int_eq(lite_cancel_recv(other), 1);
      const int received = lite_imrecv(message, into.data(), bytes, nullptr, &status, &receive);
      w->hold_bulk = false;
      w->settle();
      if (received == LITE_PENDING) status = completed(*w, 1, receive);
      ck_assert(status.error == LITE_OK && status.bytes == bytes);
      ck_assert(into == data);
      ck_assert_int_eq(completed(*w, 0, send).error, LITE_OK);
      check_clean(*w);
    }
  }
}
END_TEST

START_TEST(cancelled_receive_is_gone_and_a_matched_one_is_not_cancelled) {
  auto w = make_world(2, usual());
  std::uint8_t a = 0, b = 0;
  const std::uint8_t data = 42;
  lite_request *send = nullptr, *first, *second;
  lite_status status;
  w->as(1);
  lite_irecv(&a, 1, 0, &kEnvelope, nullptr, &status, &first);
  lite_irecv(&b, 1, 0, &kEnvelope, nullptr, &status, &second);
  ck_assert_int_eq(lite_cancel_recv(first), 1);
  w->as(0);
  lite_isend(&data, 1, 1, &kEnvelope, 0, nullptr, &send);
  w->settle();
  w->as(1);
  ck_assert_int_eq(lite_cancel_recv(second), 0);
  completed(*w, 1, second);
  ck_assert(a == 0 && b == 42);
  check_clean(*w);
}
END_TEST

// ---- to oneself ----

START_TEST(self_send_of_every_size_posted_and_unexpected) {
  for (std::size_t bytes : kSizes) {
    for (int variant = 0; variant < 4; ++variant) {
      const bool posted_first = (variant & 1) != 0, sync = (variant & 2) != 0;
      auto w = make_world(1, usual());
      const auto data = pattern(bytes, 6);
      std::vector<std::uint8_t> into(bytes);
      lite_request *send = nullptr, *receive = nullptr;
      lite_status status{};
      w->as(0);
      if (posted_first)
        ck_assert_int_eq(lite_irecv(into.data(), bytes, 0, &kEnvelope, nullptr, &status, &receive),
                         LITE_PENDING);
      const int sent =
          lite_isend(data.data(), bytes, 0, &kEnvelope, sync ? LITE_SEND_SYNC : 0, nullptr, &send);
      ck_assert_int_eq(sent, !posted_first && (sync || bytes > kEager) ? LITE_PENDING : LITE_OK);
      lite_progress();
      if (posted_first) {
        status = completed(*w, 0, receive);
      } else {
        ck_assert_ptr_null(lite_next_completion());
        ck_assert_int_eq(lite_irecv(into.data(), bytes, 0, &kEnvelope, nullptr, &status, &receive),
                         LITE_OK);
      }
      ck_assert(status.error == LITE_OK && status.bytes == bytes && into == data);
      if (sent == LITE_PENDING) completed(*w, 0, send);
      check_clean(*w);
    }
  }
}
END_TEST

START_TEST(self_sends_without_receive_are_bounded_by_pinning) {
  DeviceOptions o = usual();
  o.credits_bytes = 64 * 1024;
  auto w = make_world(1, o);
  const auto data = pattern(1000, 1);
  int pinned = 0;
  w->as(0);
  for (int i = 0; i < 500; ++i) {
    lite_request* r;
    pinned += lite_isend(data.data(), data.size(), 0, &kEnvelope, 0, nullptr, &r) == LITE_PENDING;
  }
  ck_assert_int_gt(pinned, 0);
  ck_assert_uint_le(device(*w, 0).blocks().bytes_in_use(), o.credits_bytes);
  // and credit comes back: nothing is pinned any more
  std::vector<std::uint8_t> into(1000);
  for (int i = 0; i < 500; ++i) {
    lite_status status;
    lite_request* r;
    ck_assert_int_eq(lite_irecv(into.data(), into.size(), 0, &kEnvelope, nullptr, &status, &r),
                     LITE_OK);
  }
  while (lite_request* r = lite_next_completion()) lite_request_free(r);
  lite_request* r;
  ck_assert_int_eq(lite_isend(data.data(), data.size(), 0, &kEnvelope, 0, nullptr, &r), LITE_OK);
}
END_TEST

// ---- trouble ----

START_TEST(lost_peer_fails_everything_on_it_and_nothing_else) {
  auto w = make_world(3, usual());
  std::vector<std::uint8_t> big(kEager + 1), into(kEager + 1), other(8);
  lite_request *await_cts, *await_ack, *posted, *any, *from_other, *transfer;
  lite_status status;
  // An RTS from rank 1 is matched, its data under way.
  w->as(0);
  const lite_envelope one = {5, 1, 1}, two = {5, 2, 2}, wild = {5, LITE_ANY_SOURCE, 3},
                      rts = {5, 1, 9};
  ck_assert_int_eq(lite_irecv(into.data(), into.size(), 1, &rts, nullptr, &status, &transfer),
                   LITE_PENDING);
  w->hold_bulk = true;
  w->as(1);
  lite_request* theirs;
  lite_isend(big.data(), big.size(), 0, &rts, 0, nullptr, &theirs);
  w->settle();
  w->as(0);
  ck_assert_int_eq(lite_isend(big.data(), big.size(), 1, &kEnvelope, 0, nullptr, &await_cts),
                   LITE_PENDING);
  ck_assert_int_eq(lite_isend(big.data(), 8, 1, &kEnvelope, LITE_SEND_SYNC, nullptr, &await_ack),
                   LITE_PENDING);
  ck_assert_int_eq(lite_irecv(other.data(), 8, 1, &one, nullptr, &status, &posted), LITE_PENDING);
  ck_assert_int_eq(lite_irecv(other.data(), 8, -1, &wild, nullptr, &status, &any), LITE_PENDING);
  ck_assert_int_eq(lite_irecv(other.data(), 8, 2, &two, nullptr, &status, &from_other),
                   LITE_PENDING);
  w->lose(0, 1, ECONNRESET);
  w->as(0);
  lite_progress();
  std::set<lite_request*> failed;
  while (lite_request* r = lite_next_completion()) {
    lite_request_status(r, &status);
    ck_assert_int_eq(status.error, LITE_ERR_PEER_LOST);
    ck_assert_int_eq(status.peer, 1);
    ck_assert_int_eq(w->reports.back().peer, 1);
    ck_assert_int_eq(w->reports.back().error, ECONNRESET);
    failed.insert(r);
    lite_request_free(r);
  }
  ck_assert(failed == (std::set<lite_request*>{transfer, await_cts, await_ack, posted, any}));
  // From here on at once.
  lite_request* r;
  ck_assert_int_eq(lite_isend(big.data(), 8, 1, &kEnvelope, 0, nullptr, &r), LITE_ERR_PEER_LOST);
  ck_assert_int_eq(lite_irecv(other.data(), 8, 1, &one, nullptr, &status, &r), LITE_ERR_PEER_LOST);
  ck_assert_int_eq(lite_irecv(other.data(), 8, -1, &wild, nullptr, &status, &r),
                   LITE_ERR_PEER_LOST);
  ck_assert_int_eq(lite_iprobe(1, &one, &status), LITE_ERR_PEER_LOST);
  ck_assert_int_eq(lite_am_isend(1, 1, other.data(), 8, nullptr, 0, nullptr, &r),
                   LITE_ERR_PEER_LOST);
  // The other peer goes on.
  w->hold_bulk = false;
  w->as(2);
  ck_assert_int_eq(lite_isend(big.data(), 8, 0, &two, 0, nullptr, &r), LITE_OK);
  w->settle();
  ck_assert_int_eq(completed(*w, 0, from_other).error, LITE_OK);
  ck_assert_uint_eq(device(*w, 0).requests_used(), 0);
}
END_TEST

START_TEST(
    message_that_has_arrived_is_received_after_its_peer_is_lost_and_an_incomplete_one_is_not) {
  auto w = make_world(2, usual());
  const auto data = pattern(8, 1);
  std::vector<std::uint8_t> big(kEager), into(kEager);
  lite_request* r;
  lite_status status;
  lite_message *arriving, *offered;
  const lite_envelope whole = {5, 1, 1}, partial = {5, 1, 2}, offer = {5, 1, 3},
                      partial_detached = {5, 1, 4}, offer_detached = {5, 1, 5};
  w->hold_bulk = true;
  w->as(1);
  lite_isend(data.data(), 8, 0, &whole, 0, nullptr, &r);
  for (const lite_envelope* e : {&partial, &partial_detached})
    lite_isend(big.data(), big.size(), 0, e, 0, nullptr, &r);
  std::vector<std::uint8_t> huge(kEager + 1);
  for (const lite_envelope* e : {&offer, &offer_detached})
    lite_isend(huge.data(), huge.size(), 0, e, 0, nullptr, &r);
  w->settle();
  w->as(0);
  ck_assert_int_eq(lite_improbe(1, &partial_detached, &status, &arriving), 1);
  ck_assert_int_eq(lite_improbe(1, &offer_detached, &status, &offered), 1);
  w->lose(0, 1, ECONNRESET);
  w->as(0);
  lite_progress();
  ck_assert_int_eq(lite_iprobe(1, &partial, &status), LITE_ERR_PEER_LOST);
  ck_assert_int_eq(lite_irecv(into.data(), into.size(), 1, &offer, nullptr, &status, &r),
                   LITE_ERR_PEER_LOST);
  ck_assert_int_eq(lite_imrecv(arriving, into.data(), into.size(), nullptr, &status, &r),
                   LITE_ERR_PEER_LOST);
  ck_assert_int_eq(lite_imrecv(offered, into.data(), into.size(), nullptr, &status, &r),
                   LITE_ERR_PEER_LOST);
  ck_assert_int_eq(lite_irecv(into.data(), into.size(), 1, &whole, nullptr, &status, &r), LITE_OK);
  ck_assert_int_eq(std::memcmp(into.data(), data.data(), 8), 0);
  ck_assert_uint_eq(device(*w, 0).messages_used(), 0);
  ck_assert_uint_eq(device(*w, 0).blocks().bytes_in_use(), 0);
}
END_TEST

START_TEST(offer_whose_fragment_is_here_is_lost_with_its_peer) {
  auto w = make_world(2, usual());
  std::vector<std::uint8_t> huge(kEager + 1), into(kEager + 1);
  lite_request* r;
  lite_status status;
  lite_message* detached;
  const lite_envelope offer = {5, 1, 3}, offer_detached = {5, 1, 5};
  w->as(1);
  for (const lite_envelope* e : {&offer, &offer_detached})
    lite_isend(huge.data(), huge.size(), 0, e, 0, nullptr, &r);
  w->settle();
  ck_assert_uint_gt(device(*w, 0).blocks().bytes_in_use(), 0);
  w->as(0);
  ck_assert_int_eq(lite_improbe(1, &offer_detached, &status, &detached), 1);
  ck_assert_uint_eq(status.bytes, huge.size());
  w->lose(0, 1, ECONNRESET);
  w->as(0);
  lite_progress();
  ck_assert_uint_eq(device(*w, 0).unexpected_count(), 0);
  ck_assert_int_eq(lite_irecv(into.data(), into.size(), 1, &offer, nullptr, &status, &r),
                   LITE_ERR_PEER_LOST);
  ck_assert_int_eq(lite_imrecv(detached, into.data(), into.size(), nullptr, &status, &r),
                   LITE_ERR_PEER_LOST);
  ck_assert_uint_eq(device(*w, 0).messages_used(), 0);
  ck_assert_uint_eq(device(*w, 0).blocks().bytes_in_use(), 0);
}
END_TEST

START_TEST(broken_packets_give_the_peer_up_and_fail_its_requests) {
  struct Case {
    const char* name;
    std::vector<std::uint8_t> packet;
  };
  auto raw = [](const auto& p) {
    const auto* b = reinterpret_cast<const std::uint8_t*>(&p);
    return std::vector<std::uint8_t>(b, b + sizeof p);
  };
  using ch_lite::PacketType;
  for (int variant = 0; variant < 12; ++variant) {
    auto w = make_world(3, usual());
    std::vector<std::uint8_t> big(kEager + 1);
    lite_request *send, *sync, *receive, *offered;
    lite_status status;
    w->as(0);
    ck_assert_int_eq(lite_isend(big.data(), big.size(), 1, &kEnvelope, 0, nullptr, &offered),
                     LITE_PENDING);
    ck_assert_int_eq(lite_isend(big.data(), big.size(), 2, &kEnvelope, 0, nullptr, &send),
                     LITE_PENDING);  // to somebody else
    ck_assert_int_eq(lite_isend(big.data(), 8, 1, &kEnvelope, LITE_SEND_SYNC, nullptr, &sync),
                     LITE_PENDING);
    ck_assert_int_eq(lite_irecv(big.data(), 8, 1, &kEnvelope, nullptr, &status, &receive),
                     LITE_PENDING);
    const Case cases[] = {
        {"garbage", {1, 2, 3}},
        {"CTS for a request of another peer",
         raw(ch_lite::CtsPacket{{PacketType::kCts, 0, 0, 0, 0}, 0, send->pool_handle, 5, 5})},
        {"CTS of an old generation",
         raw(ch_lite::CtsPacket{
             {PacketType::kCts, 0, 0, 0, 0}, 0, sync->pool_handle - (1ull << 32), 5, 5})},
        {"CTS for what was not offered",
         raw(ch_lite::CtsPacket{{PacketType::kCts, 0, 0, 0, 0}, 0, sync->pool_handle, 5, 5})},
        {"ack for a receive",
         raw(ch_lite::AckPacket{{PacketType::kSyncAck, 0, 0, 0, 0}, 0, receive->pool_handle})},
        {"ack out of range",
         raw(ch_lite::AckPacket{{PacketType::kSyncAck, 0, 0, 0, 0}, 0, 0x1ffffffffull})},
        {"credit that was never given",
         raw(ch_lite::PacketHeader{PacketType::kCredit, 0, 0, 1u << 30, 0})},
        {"CTS for more than was offered",
         raw(ch_lite::CtsPacket{
             {PacketType::kCts, 0, 0, 0, 0}, 0, offered->pool_handle, 5, big.size() + 1})},
        {"CTS without a transfer for more than has come",
         raw(ch_lite::CtsPacket{
             {PacketType::kCts, 0, 0, 0, 0}, 0, offered->pool_handle, 0, big.size()})},
        {"CTS with a transfer for no more than has come",
         raw(ch_lite::CtsPacket{
             {PacketType::kCts, 0, 0, 0, 0}, 0, offered->pool_handle, 5, kEager})},
        {"a fragment beyond its credit",
         raw(ch_lite::RtsPacket{{{PacketType::kRts, 0, 0, 0, 0}, 5, 1, 7, 1u << 30, 1}, 1u << 29})},
        {"more than its credit",
         raw(ch_lite::MessagePacket{{PacketType::kEager, 0, 0, 0, 0}, 5, 1, 7, 1u << 30, 0})},
    };
    const Case& c = cases[variant];
    w->wire.clear();
    w->forge(1, 0, c.packet.data(), c.packet.size());
    w->as(0);
    lite_progress();
    std::set<lite_request*> failed;
    while (lite_request* r = lite_next_completion()) {
      lite_request_status(r, &status);
      ck_assert_int_eq(status.error, LITE_ERR_PEER_LOST);
      failed.insert(r);
    }
    ck_assert_msg(failed == (std::set<lite_request*>{offered, sync, receive}), "%s", c.name);
    ck_assert_msg(w->ranks[0]->error.count(1) == 1, "%s: the peer is not given up", c.name);
    bool said = false;
    for (const auto& report : w->reports)
      said = said || (report.what != nullptr && report.peer == 1);
    ck_assert_msg(said, "%s: nothing is reported", c.name);
  }
}
END_TEST

START_TEST(bad_arguments_are_refused_by_name) {
  auto w = make_world(2, usual());
  lite_request* r;
  lite_status status;
  const lite_envelope wild = {5, LITE_ANY_SOURCE, 7};
  w->as(0);
  ck_assert_int_eq(lite_isend(nullptr, 0, 2, &kEnvelope, 0, nullptr, &r), LITE_ERR_ARG);
  ck_assert_int_eq(lite_isend(nullptr, 0, 1, &wild, 0, nullptr, &r), LITE_ERR_ARG);
  ck_assert_int_eq(lite_irecv(nullptr, 0, 7, &kEnvelope, nullptr, &status, &r), LITE_ERR_ARG);
  ck_assert_int_eq(lite_am_isend(1, 0, nullptr, LITE_AM_HEADER_MAX + 1, nullptr, 0, nullptr, &r),
                   LITE_ERR_ARG);
  for (const auto& report : w->reports) ck_assert_ptr_nonnull(report.what);
  ck_assert_uint_eq(w->reports.size(), 4);
}
END_TEST

// ---- arming ----

START_TEST(outstanding_follows_pending_requests_by_its_edges) {
  auto w = make_world(2, usual());
  fake::Rank& r0 = *w->ranks[0];
  std::vector<std::uint8_t> big(kEager + 1);
  lite_request *send, *a, *b, *r;
  lite_status status;
  w->as(0);
  ck_assert_int_eq(lite_isend(big.data(), 8, 1, &kEnvelope, 0, nullptr, &r), LITE_OK);
  ck_assert(!r0.outstanding);
  ck_assert_int_eq(r0.outstanding_edges, 0);
  lite_irecv(big.data(), 8, 1, &kEnvelope, nullptr, &status, &a);
  ck_assert(r0.outstanding);
  lite_irecv(big.data(), 8, 1, &kEnvelope, nullptr, &status, &b);
  ck_assert_int_eq(r0.outstanding_edges, 1);
  ck_assert_int_eq(lite_cancel_recv(a), 1);
  ck_assert(r0.outstanding);
  ck_assert_int_eq(lite_cancel_recv(b), 1);
  ck_assert(!r0.outstanding);
  ck_assert_int_eq(lite_isend(big.data(), big.size(), 1, &kEnvelope, 0, nullptr, &send),
                   LITE_PENDING);
  ck_assert(r0.outstanding);
}
END_TEST

START_TEST(completions_are_taken_and_freed_without_the_gate) {
  auto w = make_world(2, usual());
  lite_request *r, *posted[3];
  lite_status status;
  std::uint8_t into[3][8];
  w->as(1);
  for (int i = 0; i < 3; ++i)
    ck_assert_int_eq(lite_irecv(into[i], 8, 0, &kEnvelope, nullptr, &status, &posted[i]),
                     LITE_PENDING);
  w->as(0);
  for (int i = 0; i < 2; ++i)
    ck_assert_int_eq(lite_isend("12345678", 8, 1, &kEnvelope, 0, nullptr, &r), LITE_OK);
  w->settle();
  w->as(1);
  ck_assert_int_eq(lite_progress(), 2);
  mplite::Gate& gate = mplite::channel_gate();
  std::atomic<int> step{0};
  std::thread other([&] {
    gate.enter();
    step = 1;
    while (step != 2) std::this_thread::yield();
    gate.leave();
  });
  while (step != 1) std::this_thread::yield();
  for (int i = 0; i < 2; ++i) ck_assert_int_eq(completed(*w, 1, posted[i]).error, LITE_OK);
  ck_assert_uint_eq(device(*w, 1).completions(), 0);
  ck_assert_uint_eq(device(*w, 1).requests_used(), 1);
  step = 2;
  other.join();
  ck_assert_ptr_null(lite_next_completion());
  ck_assert_int_eq(lite_progress(), 0);
  // What is complete and not taken cannot be cancelled, and what comes meanwhile queues behind it.
  w->as(0);
  ck_assert_int_eq(lite_isend("12345678", 8, 1, &kEnvelope, 0, nullptr, &r), LITE_OK);
  w->settle();
  w->as(1);
  ck_assert_int_eq(lite_progress(), 1);
  ck_assert_int_eq(lite_cancel_recv(posted[2]), 0);
  ck_assert_int_eq(lite_irecv(into[0], 8, 0, &kEnvelope, nullptr, &status, &posted[0]),
                   LITE_PENDING);
  w->as(0);
  ck_assert_int_eq(lite_isend("12345678", 8, 1, &kEnvelope, 0, nullptr, &r), LITE_OK);
  w->settle();
  w->as(1);
  ck_assert_int_eq(lite_progress(), 2);
  ck_assert_int_eq(completed(*w, 1, posted[2]).error, LITE_OK);
  ck_assert_int_eq(completed(*w, 1, posted[0]).error, LITE_OK);
  w->settle();
  check_clean(*w);
}
END_TEST

// As ping-pong does: not a second one in turn, with cache lines of its own. And however many were
// given back, all are used before there are new ones.
START_TEST(requests_that_were_given_back_are_taken_first) {
  auto w = make_world(2, usual());
  lite_request *posted[3], *again;
  lite_status status;
  std::uint8_t into[8];
  w->as(1);
  for (lite_request*& r : posted)
    ck_assert_int_eq(lite_irecv(into, 8, 0, &kEnvelope, nullptr, &status, &r), LITE_PENDING);
  const std::uint64_t handle = posted[2]->pool_handle;
  w->as(0);
  for (int i = 0; i < 3; ++i)
    ck_assert_int_eq(lite_isend("12345678", 8, 1, &kEnvelope, 0, nullptr, &again), LITE_OK);
  w->settle();
  w->as(1);
  lite_progress();
  for (lite_request* r : posted) ck_assert_int_eq(completed(*w, 1, r).error, LITE_OK);
  ck_assert_uint_eq(device(*w, 1).requests_used(), 0);
  for (int i = 2; i >= 0; --i) {
    ck_assert_int_eq(lite_irecv(into, 8, 0, &kEnvelope, nullptr, &status, &again), LITE_PENDING);
    ck_assert_ptr_eq(again, posted[i]);
  }
  ck_assert_uint_ne(posted[2]->pool_handle,
                    handle);  // whoever still names the one before finds nothing
  for (lite_request* r : posted) ck_assert_int_eq(lite_cancel_recv(r), 1);
  check_clean(*w);
}
END_TEST

// Told once, as the application may wait for just that; and nothing is lost when there is some
// again.
START_TEST(packet_without_memory_for_it_is_an_error_once_and_waits) {
  auto w = make_world(2, usual());
  lite_request *r = nullptr, *receive = nullptr;
  int into = 0;
  const int sent = 7;
  lite_status status{};
  w->as(1);
  ck_assert_int_eq(lite_irecv(&into, sizeof into, 0, &kEnvelope, nullptr, &status, &receive),
                   LITE_PENDING);
  w->ranks[1]->memory = false;
  w->reports.clear();
  ck_assert_int_eq(lite_progress(), 0);  // nothing wants it
  for (int i = 0; i < 2; ++i) {
    w->as(0);
    ck_assert_int_eq(lite_isend(&sent, sizeof sent, 1, &kEnvelope, 0, nullptr, &r), LITE_OK);
    w->handler(1);
    w->as(1);
    if (i == 0) ck_assert_int_eq(lite_progress(), LITE_ERR_NOMEM);
    for (int again = 0; again < 3; ++again) ck_assert_int_eq(lite_progress(), 0);
  }
  ck_assert_uint_eq(w->reports.size(), 1);
  ck_assert_int_eq(w->reports[0].code, LITE_ERR_NOMEM);
  ck_assert_int_eq(w->reports[0].peer, -1);
  ck_assert_ptr_nonnull(std::strstr(w->reports[0].what, "no memory"));
  w->ranks[1]->memory = true;
  w->settle();
  ck_assert_int_eq(completed(*w, 1, receive).error, LITE_OK);
  ck_assert_int_eq(into, sent);
  w->ranks[1]->memory = false;  // the next time it is news again
  w->as(0);
  ck_assert_int_eq(lite_isend(&sent, sizeof sent, 1, &kEnvelope, 0, nullptr, &r), LITE_OK);
  w->as(1);
  ck_assert_int_eq(lite_progress(), LITE_ERR_NOMEM);
  ck_assert_int_eq(lite_progress(), 0);
  w->ranks[1]->memory = true;
  for (int i = 0; i < 2; ++i) {
    w->settle();
    w->as(1);
    ck_assert_int_eq(lite_irecv(&into, sizeof into, 0, &kEnvelope, nullptr, &status, &receive),
                     LITE_OK);
  }
  w->settle();
  check_clean(*w);
}
END_TEST

int main() { return run_tests("device", 300); }
