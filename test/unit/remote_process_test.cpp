// Processes of other jobs over a fake channel: peers like any, which say only what they may.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "device_fixture.h"
#include "more_than_memory.h"

// Ranks 0 and 1 are a job; 2 is a process of another one, which gives less credit.
std::unique_ptr<fake::World> two_jobs() {
  auto w = std::make_unique<fake::World>(3, 1);
  DeviceOptions poor = usual();
  poor.credits_bytes = 64 * 1024;
  w->make_device(0, usual(), 2);
  w->make_device(1, usual(), 2);
  w->make_device(2, poor);
  for (int i = 0; i < 2; ++i) {
    w->as(i);
    fake::Rank& r = *w->ranks[static_cast<std::size_t>(i)];
    ck_assert_int_eq(lite_isend("x", 1, 2, &kEnvelope, 0, nullptr, nullptr),
                     LITE_ERR_ARG);  // no such peer yet
    ck_assert_int_eq(r.introduce(r.introduce_arg, 2, 64 * 1024), 1);
  }
  w->reports.clear();
  return w;
}

START_TEST(a_process_of_another_job_is_a_peer_like_any) {
  auto w = two_jobs();
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{8}, std::size_t{kShort} + 1, std::size_t{kEager},
        std::size_t{kEager} + 1, std::size_t{1000000}}) {
    for (const auto& [from, to] : {std::pair{0, 2}, std::pair{2, 0}}) {
      const auto data = pattern(bytes, static_cast<int>(bytes) + from);
      std::vector<std::uint8_t> into(bytes + 1);
      lite_request *send = nullptr, *receive = nullptr;
      lite_status status{};
      w->as(from);
      const lite_envelope envelope = {5, from, 7}, wild = {5, LITE_ANY_SOURCE, 7};
      const int sent = lite_isend(data.data(), bytes, to, &envelope, 0, nullptr, &send);
      ck_assert_int_ge(sent, 0);
      w->as(to);
      const int received = lite_irecv(into.data(), bytes, -1, &wild, nullptr, &status, &receive);
      ck_assert_int_ge(received, 0);
      w->settle();
      w->as(to);
      if (received == LITE_PENDING) {
        lite_request* r = lite_next_completion();
        ck_assert_ptr_eq(r, receive);
        lite_request_status(r, &status);
        lite_request_free(r);
      }
      ck_assert_int_eq(status.error, LITE_OK);
      ck_assert_int_eq(status.peer, from);
      ck_assert_uint_eq(status.bytes, bytes);
      ck_assert(std::equal(data.begin(), data.end(), into.begin()));
      w->as(from);
      if (sent == LITE_PENDING) lite_request_free(lite_next_completion());
    }
  }
}
END_TEST

START_TEST(process_of_another_job_that_is_waited_for_is_connected_to) {
  for (const bool by_probe : {false, true}) {
    auto w = two_jobs();
    std::uint8_t byte = 0;
    lite_request* receive = nullptr;
    lite_status status;
    w->as(0);
    const lite_envelope envelope = {5, 2, 7};
    if (!by_probe)
      ck_assert_int_eq(lite_irecv(&byte, 1, 2, &envelope, nullptr, &status, &receive),
                       LITE_PENDING);
    for (int i = 0; i < 2; ++i) {
      ck_assert(w->ranks[0]->reached.empty());
      if (by_probe) ck_assert_int_eq(lite_iprobe(2, &envelope, &status), 0);
      device(*w, 0).reach_awaited_peers();
    }
    ck_assert(w->ranks[0]->reached == std::vector<int>{2});
    w->lose(0, 2, EHOSTUNREACH);
    for (int i = 0; i < 2; ++i) device(*w, 0).reach_awaited_peers();
    ck_assert_uint_eq(w->ranks[0]->reached.size(), 1);  // a lost one is not
  }
}
END_TEST

// The richer side would push more than the other has counted on.
START_TEST(both_jobs_give_each_other_the_lesser_window) {
  auto w = two_jobs();
  w->as(0);
  std::vector<lite_request*> sends;
  const std::vector<std::uint8_t> data(kShort + 100);
  for (int i = 0; i < 200; ++i) {
    lite_request* send = nullptr;
    if (lite_isend(data.data(), data.size(), 2, &kEnvelope, 0, nullptr, &send) == LITE_PENDING)
      sends.push_back(send);
  }
  ck_assert_uint_lt(w->devices[0]->peer(2).credits[ch_lite::kPointToPoint].left(), 64 * 1024);
  w->settle();
  ck_assert(w->reports.empty());  // nobody has overdrawn
  ck_assert_int_eq(w->devices[2]->peer(0).lost, 0);
  w->as(2);
  std::vector<std::uint8_t> into(kShort + 100);
  for (int i = 0; i < 200; ++i) {
    lite_request* receive = nullptr;
    lite_status status{};
    ck_assert_int_ge(
        lite_irecv(into.data(), into.size(), 0, &kEnvelope, nullptr, &status, &receive), 0);
    w->settle();
    w->as(2);
    while (lite_request* r = lite_next_completion()) lite_request_free(r);
  }
  w->as(0);
  while (lite_request* r = lite_next_completion()) lite_request_free(r);
}
END_TEST

// The gate is for what handlers touch too; each completion on its own would pay for it.
START_TEST(a_departed_process_fails_what_is_open_with_it_and_nothing_else) {
  auto w = two_jobs();
  lite_request *posted, *any, *r;
  lite_status status;
  std::uint8_t into[8];
  const lite_envelope from_two = {5, 2, 1}, wild = {5, LITE_ANY_SOURCE, 3}, from_one = {5, 1, 3};
  w->as(0);
  ck_assert_int_eq(lite_irecv(into, 8, 2, &from_two, nullptr, &status, &posted), LITE_PENDING);
  ck_assert_int_eq(lite_irecv(into, 8, -1, &wild, nullptr, &status, &any), LITE_PENDING);
  w->ranks[0]->departed.insert(2);
  w->lose(0, 2, ESHUTDOWN);
  w->as(0);
  lite_progress();
  ck_assert_ptr_eq(r = lite_next_completion(), posted);
  lite_request_status(r, &status);
  ck_assert_int_eq(status.error, LITE_ERR_PEER_LOST);
  lite_request_free(r);
  ck_assert_ptr_null(lite_next_completion());
  w->as(1);
  ck_assert_int_eq(lite_isend("12345678", 8, 0, &from_one, 0, nullptr, &r), LITE_OK);
  w->settle();
  w->as(0);
  ck_assert_ptr_eq(r = lite_next_completion(), any);
  lite_request_status(r, &status);
  ck_assert_int_eq(status.error, LITE_OK);
  lite_request_free(r);
  ck_assert_int_eq(lite_irecv(into, 8, -1, &wild, nullptr, &status, &any),
                   LITE_PENDING);  // later ones too
  ck_assert_int_eq(lite_isend("1", 1, 2, &kEnvelope, 0, nullptr, &r), LITE_ERR_PEER_LOST);
  ck_assert_int_eq(lite_iprobe(2, &from_two, &status), 0);  // to ask is no error
  // The number goes to another process.
  fake::Rank& rank = *w->ranks[0];
  ck_assert_int_eq(rank.introduce(rank.introduce_arg, 2, 1 << 20), 1);
  ck_assert_int_eq(w->devices[0]->peer(2).lost, 0);
  ck_assert_int_eq(lite_cancel_recv(any), 1);
}
END_TEST

START_TEST(messages_to_other_jobs_are_known_until_they_are_received) {
  auto w = two_jobs();
  const auto data = pattern(kEager + 1, 3);
  std::vector<std::uint8_t> into(data.size());
  lite_request *send[2], *receive, *never;
  lite_status status;
  const lite_envelope from_zero = {5, 0, 1}, from_two = {5, 2, 1};
  const ch_lite::Device& sender = *w->devices[0];
  w->as(0);
  ck_assert_int_eq(lite_irecv(into.data(), 8, 2, &from_two, nullptr, &status, &never),
                   LITE_PENDING);
  ck_assert_int_eq(lite_isend(data.data(), data.size(), 1, &from_zero, 0, nullptr, &send[0]),
                   LITE_PENDING);
  ck_assert(!sender.sends_to_other_jobs());
  ck_assert_int_eq(lite_isend(data.data(), data.size(), 2, &from_zero, 0, nullptr, &send[1]),
                   LITE_PENDING);
  w->settle();
  ck_assert(sender.sends_to_other_jobs());
  w->as(2);
  ck_assert_int_eq(lite_irecv(into.data(), into.size(), 0, &from_zero, nullptr, &status, &receive),
                   LITE_PENDING);
  w->settle();
  ck_assert(!sender.sends_to_other_jobs());
  ck_assert_int_eq(completed(*w, 2, receive).error, LITE_OK);
  w->as(0);
  ck_assert_int_eq(lite_cancel_recv(never), 1);
}
END_TEST

// The host's answer: context 5 is a communicator of the job, in 6 there are rank 0 and the process
// of the other job, 7 is rank 0's own.
int is_member(int peer, std::uint32_t context, std::int32_t) {
  if (context < 5 || context > 7) return LITE_NO_COMMUNICATOR;
  return (context == 5 && peer < 2) || (context == 6 && peer == 2) || peer == 0 ? LITE_MEMBER
                                                                                : LITE_NOT_A_MEMBER;
}

START_TEST(a_loss_fails_receives_from_any_source_in_its_communicators_only) {
  for (const bool in_handler : {false, true}) {
    for (const int lost : {1, 2, 3}) {  // 3: the foreign process, and the host does not answer
      auto w = two_jobs();
      const int peer = lost == 3 ? 2 : lost;
      std::uint8_t into[8];
      lite_request *any[3], *r;
      lite_status status;
      w->as(0);
      if (lost != 3) lite_set_member_callback(is_member);
      for (std::uint32_t i = 0; i < 3; ++i) {
        const lite_envelope wild = {5 + i, LITE_ANY_SOURCE, 3};
        ck_assert_int_eq(lite_irecv(into, 8, -1, &wild, nullptr, &status, &any[i]), LITE_PENDING);
      }
      if (in_handler) w->ranks[0]->in_handler = true;
      w->lose(0, peer, ECONNRESET);
      if (in_handler) {
        w->handler(0);
        ck_assert_uint_eq(w->devices[0]->completions(), 0);  // the host is not asked there
      }
      w->as(0);
      lite_progress();
      const int concerned = lost == 1 ? 0 : lost == 2 ? 1 : -1;
      if (concerned >= 0) {
        ck_assert_ptr_eq(r = lite_next_completion(), any[concerned]);
        lite_request_status(r, &status);
        ck_assert_int_eq(status.error, LITE_ERR_PEER_LOST);
        ck_assert_int_eq(status.peer, peer);
        lite_request_free(r);
      }
      ck_assert_ptr_null(lite_next_completion());
      // Later ones are told the same, and so are probes.
      for (std::uint32_t i = 0; i < 3; ++i) {
        const lite_envelope wild = {5 + i, LITE_ANY_SOURCE, 4};
        const bool fails = static_cast<int>(i) == concerned;
        ck_assert_int_eq(lite_irecv(into, 8, -1, &wild, nullptr, &status, &r),
                         fails ? LITE_ERR_PEER_LOST : LITE_PENDING);
        if (!fails) ck_assert_int_eq(lite_cancel_recv(r), 1);
        ck_assert_int_eq(lite_iprobe(-1, &wild, &status), fails ? LITE_ERR_PEER_LOST : 0);
      }
      // And what goes on gets its message.
      if (lost != 1) {
        const lite_envelope from_one = {5, 1, 3};
        w->as(1);
        ck_assert_int_eq(lite_isend("12345678", 8, 0, &from_one, 0, nullptr, &r), LITE_OK);
        w->settle();
        ck_assert_int_eq(completed(*w, 0, any[0]).error, LITE_OK);
      }
      lite_set_member_callback(nullptr);
    }
  }
}
END_TEST

// ---- what a process of another job may say ----

// In whatever size; synchronous or not. Into 0, by 2.
void say(fake::World& w, const lite_envelope& envelope, std::vector<std::uint8_t> given,
         lite_request** r, bool synchronous = false) {
  static std::vector<std::uint8_t> kept[8];
  static unsigned next = 0;
  std::vector<std::uint8_t>& data = kept[next++ % 8];
  data = std::move(given);
  w.as(2);
  *r = nullptr;
  ck_assert_int_ge(lite_isend(data.data(), data.size(), 0, &envelope,
                              synchronous ? LITE_SEND_SYNC : 0, nullptr, r),
                   0);
}

void finish_foreign(fake::World& w) {
  w.lose(2, 0, ECONNRESET);
  w.as(2);
  lite_progress();
  while (lite_request* done = lite_next_completion()) lite_request_free(done);
  lite_set_member_callback(nullptr);
}

constexpr std::size_t kForeignSizes[] = {0, 8, kShort + 1, kEager + 1, 300'000};

START_TEST(a_foreign_process_that_sends_where_it_is_not_or_as_another_is_given_up) {
  for (const std::size_t bytes : kForeignSizes)
    for (const bool in_handler : {false, true})
      for (const bool posted : {false, true}) {
        auto w = two_jobs();
        std::vector<std::uint8_t> into(400'000, 7);
        lite_request *any = nullptr, *named = nullptr, *theirs;
        lite_status status;
        w->as(0);
        lite_set_member_callback(is_member);
        const lite_envelope wild = {5, LITE_ANY_SOURCE, 3}, from_one = {5, 1, 3};
        if (posted) {
          ck_assert_int_eq(lite_irecv(into.data(), into.size(), -1, &wild, nullptr, &status, &any),
                           LITE_PENDING);
          ck_assert_int_eq(
              lite_irecv(into.data(), into.size(), 1, &from_one, nullptr, &status, &named),
              LITE_PENDING);
        }
        say(*w, from_one, pattern(bytes, 1), &theirs);  // in the name of rank 1
        if (in_handler) {
          w->handler(0);
          ck_assert_uint_eq(w->devices[0]->completions(), 0);
          if (posted) ck_assert_uint_eq(w->devices[0]->posted_count(), 2);
        }
        w->settle();
        w->as(0);
        ck_assert_int_eq(w->devices[0]->peer(2).lost, EPROTO);
        ck_assert(std::strstr(w->devices[0]->peer(2).broken, "not in") != nullptr);
        ck_assert_ptr_null(lite_next_completion());
        ck_assert_int_eq(lite_iprobe(1, &from_one, &status), 0);
        ck_assert_int_eq(lite_iprobe(-1, &wild, &status), 0);
        for (const std::uint8_t byte : into) ck_assert_uint_eq(byte, 7);
        // The job goes on.
        lite_request* r;
        w->as(1);
        ck_assert_int_eq(lite_isend("12345678", 8, 0, &from_one, 0, nullptr, &r), LITE_OK);
        w->settle();
        w->as(0);
        if (posted) {
          ck_assert_int_eq(completed(*w, 0, any).error, LITE_OK);
          ck_assert_int_eq(lite_cancel_recv(named), 1);
        } else {
          ck_assert_int_eq(lite_irecv(into.data(), 8, 1, &from_one, nullptr, &status, &r), LITE_OK);
        }
        ck_assert_uint_eq(w->devices[0]->messages_used(), 0);
        finish_foreign(*w);
      }
}
END_TEST

// What the handler has no answer for waits, and then goes to the receive that was posted first, in
// order.
START_TEST(first_messages_of_a_foreign_process_in_the_handler_are_received_in_order) {
  for (const std::size_t bytes : kForeignSizes)
    for (const bool synchronous : {false, true})
      for (const bool named : {false, true}) {
        auto w = two_jobs();
        std::vector<std::uint8_t> into[3];
        lite_request *receives[3], *sends[3];
        lite_status status;
        w->as(0);
        lite_set_member_callback(is_member);
        const lite_envelope wild = {6, LITE_ANY_SOURCE, LITE_ANY_TAG}, own = {6, 2, 3},
                            wanted = named ? lite_envelope{6, 2, LITE_ANY_TAG} : wild;
        for (int i = 0; i < 2; ++i) {
          into[i].resize(bytes + 1);
          ck_assert_int_eq(lite_irecv(into[i].data(), into[i].size(), named ? 2 : -1, &wanted,
                                      nullptr, &status, &receives[i]),
                           LITE_PENDING);
        }
        for (unsigned i = 0; i < 2; ++i) say(*w, own, pattern(bytes, i), &sends[i], synchronous);
        w->handler(0);
        w->handler(0);
        if (!named) ck_assert_uint_eq(w->devices[0]->posted_count(), 2);
        into[2].resize(bytes + 1);
        w->as(0);
        ck_assert_int_eq(
            lite_irecv(into[2].data(), into[2].size(), -1, &wild, nullptr, &status, &receives[2]),
            LITE_PENDING);
        say(*w, own, pattern(bytes, 2), &sends[2], synchronous);
        for (int i = 0; i < 5; ++i) w->handler(0);
        w->settle();
        w->as(0);
        for (unsigned i = 0; i < 3; ++i) {
          lite_request* r = lite_next_completion();
          ck_assert_ptr_nonnull(r);
          lite_request_status(r, &status);
          ck_assert_int_eq(status.error, LITE_OK);
          ck_assert_uint_eq(status.bytes, bytes);
          lite_request_free(r);
          const auto want = pattern(bytes, i);
          ck_assert(std::equal(want.begin(), want.end(), into[i].begin()));
        }
        ck_assert_ptr_null(lite_next_completion());
        ck_assert_uint_eq(w->devices[0]->posted_count(), 0);
        ck_assert_uint_eq(w->devices[0]->messages_used(), 0);
        ck_assert_int_eq(w->devices[0]->peer(2).lost, 0);
        w->as(2);
        while (lite_request* r = lite_next_completion()) {
          lite_request_status(r, &status);
          ck_assert_int_eq(status.error, LITE_OK);
          lite_request_free(r);
        }
        ck_assert_uint_eq(w->devices[2]->requests_used(), 0);
        lite_set_member_callback(nullptr);
      }
}
END_TEST

// Its side of a communicator may be quicker than ours.
int is_member_later(int peer, std::uint32_t context, std::int32_t source) {
  static bool made = false;
  if (peer == -1) made = source != 0;
  if (context == 6 && !made) return LITE_NO_COMMUNICATOR;
  return is_member(peer, context, source);
}

START_TEST(a_message_that_comes_before_its_communicator_is_kept_and_checked_when_it_is_received) {
  for (const std::size_t bytes : kForeignSizes)
    for (const bool in_handler : {false, true})
      for (const bool allowed : {true, false}) {
        auto w = two_jobs();
        std::vector<std::uint8_t> into(bytes + 1);
        lite_request *receive = nullptr, *r;
        lite_status status;
        is_member_later(-1, 0, 0);
        w->as(0);
        lite_set_member_callback(is_member_later);
        const std::uint32_t context = allowed ? 6 : 9;  // in 9 there will be others only
        const lite_envelope own = {context, 2, 3}, wild = {context, LITE_ANY_SOURCE, 3};
        say(*w, own, pattern(bytes, 1), &r);
        if (in_handler) w->handler(0);
        w->settle();
        ck_assert_int_eq(w->devices[0]->peer(2).lost, 0);
        ck_assert_uint_eq(w->devices[0]->unexpected_count(), 1);
        w->as(0);
        is_member_later(-1, 0, 1);
        const int result =
            lite_irecv(into.data(), into.size(), -1, &wild, nullptr, &status, &receive);
        if (allowed) {
          ck_assert_int_ge(result, 0);
          w->settle();
          if (result == LITE_PENDING) status = completed(*w, 0, receive);
          ck_assert_int_eq(status.error, LITE_OK);
          ck_assert_uint_eq(status.bytes, bytes);
          const auto want = pattern(bytes, 1);
          ck_assert(std::equal(want.begin(), want.end(), into.begin()));
          ck_assert_int_eq(w->devices[0]->peer(2).lost, 0);
        } else {
          ck_assert_int_eq(result, LITE_PENDING);
          ck_assert_int_eq(w->devices[0]->peer(2).lost, EPROTO);
          ck_assert_int_eq(lite_cancel_recv(receive), 1);
          w->settle();
        }
        ck_assert_uint_eq(w->devices[0]->messages_used(), 0);
        finish_foreign(*w);
      }
}
END_TEST

// Each message is a question or two, however many others wait for the same communicator.
START_TEST(the_host_is_asked_about_each_early_message_a_few_times_only) {
  static int questions;
  static bool made;
  constexpr int kMessages = 2000;
  for (const bool in_handler : {false, true}) {
    auto w = two_jobs();
    questions = 0;
    made = false;
    w->as(0);
    lite_set_member_callback([](int peer, std::uint32_t context, std::int32_t source) -> int {
      ++questions;
      if (context == 9) return made ? LITE_MEMBER : LITE_NO_COMMUNICATOR;
      return is_member(peer, context, source);
    });
    lite_request* r;
    lite_status status;
    std::uint8_t into[8];
    for (int i = 0; i < kMessages; ++i) {
      const ch_lite::RtsPacket early{
          {{ch_lite::PacketType::kRts, 0, 0, 0, 0}, 9, 2, i, 1 << 20, 77}, 0};
      w->forge(2, 0, &early, sizeof early);
      if (in_handler) w->handler(0);
      w->as(0);
      lite_progress();
      const lite_envelope elsewhere = {6, 2, 3};
      ck_assert_int_eq(lite_irecv(into, 8, 2, &elsewhere, nullptr, &status, &r), LITE_PENDING);
      ck_assert_int_eq(lite_cancel_recv(r), 1);
    }
    ck_assert_int_le(questions, 2 * kMessages);
    ck_assert_uint_eq(w->devices[0]->unexpected_count(), kMessages);
    made = true;
    const lite_envelope wild = {9, LITE_ANY_SOURCE, LITE_ANY_TAG};
    for (int i = 0; i < kMessages; ++i) {
      ck_assert_int_eq(lite_iprobe(-1, &wild, &status), 1);
      ck_assert_int_eq(status.tag, i);
      ck_assert_int_eq(lite_irecv(into, 8, -1, &wild, nullptr, &status, &r), LITE_PENDING);
    }
    ck_assert_int_le(questions, 4 * kMessages);
    ck_assert_uint_eq(w->devices[0]->unexpected_count(), 0);
    ck_assert_int_eq(w->devices[0]->peer(2).lost, 0);
    lite_set_member_callback(nullptr);
  }
}
END_TEST

START_TEST(what_the_host_said_of_members_ends_with_the_communicator) {
  auto w = two_jobs();
  lite_request* r;
  lite_status status;
  std::uint8_t into[8];
  w->as(0);
  lite_set_member_callback(is_member);
  const lite_envelope own = {6, 2, 3};
  ck_assert_int_eq(lite_irecv(into, 8, 2, &own, nullptr, &status, &r), LITE_PENDING);
  w->as(2);
  ck_assert_int_eq(lite_isend("12345678", 8, 0, &own, 0, nullptr, &r), LITE_OK);
  w->settle();
  w->as(0);
  lite_request_free(lite_next_completion());
  lite_set_member_callback([](int, std::uint32_t, std::int32_t) -> int {
    return LITE_NOT_A_MEMBER;
  });  // the number is another communicator's
  lite_members_changed();
  w->as(2);
  ck_assert_int_eq(lite_isend("12345678", 8, 0, &own, 0, nullptr, &r), LITE_OK);
  w->settle();
  ck_assert_int_eq(w->devices[0]->peer(2).lost, EPROTO);
  finish_foreign(*w);
}
END_TEST

// What the host said is forgotten when any communicator ends. The next message waits for the host
// then, if the handler meets it, and the one behind it must not take its receive.
START_TEST(no_message_overtakes_one_that_the_host_has_to_be_asked_about_again) {
  for (const bool in_handler : {false, true}) {
    auto w = two_jobs();
    lite_request *r, *receive;
    lite_status status;
    std::uint8_t into[8] = {};
    w->as(0);
    lite_set_member_callback(is_member);
    const lite_envelope own = {6, 2, 3};
    ck_assert_int_eq(lite_irecv(into, 8, 2, &own, nullptr, &status, &receive), LITE_PENDING);
    lite_members_changed();
    w->as(2);
    // not of the kind that the sole posted receive is compared with before everything else
    ck_assert_int_eq(lite_isend("11111111", 8, 0, &own, LITE_SEND_SYNC, nullptr, &r), LITE_PENDING);
    w->handler(0);
    ck_assert_uint_eq(w->devices[0]->unexpected_count(), 1);
    w->as(2);
    ck_assert_int_eq(lite_isend("22222222", 8, 0, &own, 0, nullptr, &r), LITE_OK);
    if (in_handler) w->handler(0);
    w->settle();
    w->as(0);
    status = completed(*w, 0, receive);
    ck_assert_int_eq(status.error, LITE_OK);
    ck_assert_int_eq(std::memcmp(into, "11111111", 8), 0);
    ck_assert_int_eq(lite_irecv(into, 8, 2, &own, nullptr, &status, &receive), LITE_OK);
    ck_assert_int_eq(std::memcmp(into, "22222222", 8), 0);
    finish_foreign(*w);
  }
}
END_TEST

START_TEST(offers_of_a_foreign_process_are_bounded_far_above_what_programs_have) {
  auto w = two_jobs();
  w->as(0);
  lite_set_member_callback(is_member);
  ck_assert_uint_gt(ch_lite::kRemoteOffersMax, 400'000);
  const ch_lite::RtsPacket rts{{{ch_lite::PacketType::kRts, 0, 0, 0, 0}, 6, 2, 3, 1 << 20, 77}, 0};
  for (std::uint32_t i = 0; i <= ch_lite::kRemoteOffersMax; ++i) {
    ck_assert_int_eq(w->devices[0]->peer(2).lost, 0);
    w->forge(2, 0, &rts, sizeof rts);
    w->as(0);
    lite_progress();
    if (i == ch_lite::kRemoteOffersMax - 1)
      ck_assert_uint_eq(w->devices[0]->unexpected_count(), ch_lite::kRemoteOffersMax);
  }
  ck_assert_int_eq(w->devices[0]->peer(2).lost, EPROTO);
  ck_assert(std::strstr(w->devices[0]->peer(2).broken, "offered") != nullptr);
  ck_assert_uint_eq(w->devices[0]->messages_used(), 0);
  ck_assert_uint_eq(w->devices[0]->peer(2).offers, 0);
  finish_foreign(*w);
}
END_TEST

START_TEST(
    active_messages_of_a_foreign_process_are_the_hosts_to_judge_before_anything_is_done_for_them) {
  static int answer;
  static std::uint64_t heard;
  for (const std::size_t bytes : kForeignSizes)
    for (const int verdict : {LITE_MEMBER, LITE_NOT_A_MEMBER}) {
      auto w = two_jobs();
      answer = LITE_NO_COMMUNICATOR;
      heard = 0;
      w->as(0);
      lite_am_set_check([](int peer, std::uint32_t handler, const void* header,
                           std::size_t header_bytes, std::uint64_t) {
        ck_assert_int_eq(peer, 2);
        ck_assert_uint_eq(handler, 5);
        ck_assert(header_bytes == 3 && std::memcmp(header, "abc", 3) == 0);
        return answer;
      });
      lite_am_set_callback(
          [](int peer, std::uint32_t, const void*, std::size_t, const void*, std::size_t data_bytes,
             void*) { heard += peer == 2 ? data_bytes + 1 : 0; },
          nullptr);
      const auto data = pattern(bytes, 3);
      lite_request* r;
      w->as(2);
      ck_assert_int_ge(lite_am_isend(0, 5, "abc", 3, data.data(), bytes, nullptr, &r), 0);
      w->settle();
      ck_assert_uint_eq(heard, 0);  // not yet
      ck_assert_uint_eq(w->devices[0]->active_messages(), 1);
      answer = verdict;
      w->settle();
      ck_assert_uint_eq(heard, verdict == LITE_MEMBER ? bytes + 1 : 0);
      ck_assert_int_eq(w->devices[0]->peer(2).lost, verdict == LITE_MEMBER ? 0 : EPROTO);
      w->as(0);
      lite_am_set_check(nullptr);
      lite_am_set_callback(nullptr, nullptr);
      finish_foreign(*w);
    }
}
END_TEST

// What has come in whole does not stay behind for ever, whether the host turns it down or has no
// communicator for it yet when its sender is lost.
START_TEST(active_messages_that_nobody_takes_go_with_their_foreign_sender) {
  static int answer;
  for (const bool lost_first : {false, true}) {
    auto w = two_jobs();
    answer = LITE_NO_COMMUNICATOR;
    w->as(0);
    lite_am_set_check(
        [](int, std::uint32_t, const void*, std::size_t, std::uint64_t) { return answer; });
    lite_am_set_callback([](int, std::uint32_t, const void*, std::size_t, const void*, std::size_t,
                            void*) { ck_abort_msg("an active message that may not be delivered"); },
                         nullptr);
    const auto eager = pattern(kShort + 1, 1), offered = pattern(kEager + 1, 2);
    lite_request* r;
    w->as(2);
    for (const std::size_t bytes : {std::size_t{8}, eager.size(), offered.size(), std::size_t{8}}) {
      const auto& data = bytes <= eager.size() ? eager : offered;
      ck_assert_int_ge(lite_am_isend(0, 5, "abc", 3, data.data(), bytes, nullptr, &r), 0);
    }
    w->settle();
    ck_assert_uint_eq(w->devices[0]->active_messages(), 4);
    if (lost_first)
      w->lose(0, 2, ECONNRESET);
    else
      answer = LITE_NOT_A_MEMBER;
    w->as(0);
    for (int i = 0; i < 3; ++i) lite_progress();
    ck_assert_int_eq(w->devices[0]->peer(2).lost, lost_first ? ECONNRESET : EPROTO);
    ck_assert_uint_eq(w->devices[0]->active_messages(), 0);
    ck_assert_uint_eq(w->devices[0]->messages_used(), 0);
    ck_assert_uint_eq(w->devices[0]->blocks().bytes_in_use(), 0);
    ck_assert(w->devices[0]->peer(2).is_clean());  // its number may go to another process
    lite_am_set_check(nullptr);
    lite_am_set_callback(nullptr, nullptr);
    finish_foreign(*w);
  }
}
END_TEST

START_TEST(more_than_any_memory_asked_for_by_a_foreign_process_is_no_error_of_this_job) {
  auto w = two_jobs();
  w->as(0);
  lite_am_set_check([](int, std::uint32_t, const void*, std::size_t, std::uint64_t) -> int {
    return LITE_MEMBER;
  });
  lite_am_set_callback([](int, std::uint32_t, const void*, std::size_t, const void*, std::size_t,
                          void*) { ck_abort_msg("an active message without its data"); },
                       nullptr);
  int from = 0;
  lite_request* r;
  w->as(2);
  ck_assert_int_eq(lite_am_isend(0, 5, "abc", 3, &from, std::uint64_t{1} << 50, nullptr, &r),
                   LITE_PENDING);
  w->as(0);
  for (int i = 0; i < 3; ++i) ck_assert_int_ge(lite_progress(), 0);
  ck_assert_int_eq(w->devices[0]->peer(2).lost, ENOMEM);
  ck_assert_ptr_nonnull(std::strstr(w->devices[0]->peer(2).broken, "no memory"));
  ck_assert_uint_eq(w->devices[0]->active_messages(), 0);
  lite_am_set_check(nullptr);
  lite_am_set_callback(nullptr, nullptr);
  finish_foreign(*w);
}
END_TEST

START_TEST(a_number_is_not_given_on_while_something_of_its_process_is_left) {
  auto w = two_jobs();
  fake::Rank& rank = *w->ranks[0];
  lite_request* r;
  lite_status status;
  std::uint8_t into[8];
  w->as(2);
  const lite_envelope envelope = {5, 2, 7};
  ck_assert_int_eq(lite_isend("12345678", 8, 0, &envelope, 0, nullptr, &r), LITE_OK);
  w->settle();
  w->as(0);
  w->ranks[0]->departed.insert(2);
  w->lose(0, 2, ESHUTDOWN);
  w->as(0);
  lite_progress();
  ck_assert_int_eq(rank.introduce(rank.introduce_arg, 2, 1 << 20),
                   0);  // its message has not been received
  ck_assert_int_eq(lite_irecv(into, 8, 2, &envelope, nullptr, &status, &r), LITE_OK);
  ck_assert_int_eq(rank.introduce(rank.introduce_arg, 2, 1 << 20), 1);
  ck_assert_int_eq(rank.introduce(rank.introduce_arg, 3, 1000),
                   0);  // less credit than any correct process gives
}
END_TEST

int main() { return run_tests("remote process", 300); }
