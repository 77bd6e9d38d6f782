// Put and get over a fake channel: every size and way, from the handler alone, bounds and keys,
// windows, withdrawal and loss, and a random exchange checked against oracle memory.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "ch_lite/ch_lite.h"
#include "ch_lite/device/device.h"
#include "fake_channel.h"
#include "run_tests.h"

using ch_lite::AccessPacket;
using ch_lite::DeviceOptions;
using ch_lite::PacketType;
using fake::World;

namespace {

constexpr std::size_t kShort = 1024;

DeviceOptions options(std::uint64_t short_max = kShort) {
  DeviceOptions o;
  o.short_max = short_max;
  o.eager_max = 64 * 1024;
  o.credits_bytes = 1 << 20;
  o.unexpected_max_bytes = 64 << 20;
  return o;
}

std::unique_ptr<World> make_world(int size, std::uint64_t short_max = kShort, unsigned seed = 1) {
  const DeviceOptions o = options(short_max);
  auto w = std::make_unique<World>(size, seed);
  for (int i = 0; i < size; ++i) w->make_device(i, o);
  return w;
}

ch_lite::Device& device(World& w, int rank) { return *w.devices[static_cast<std::size_t>(rank)]; }
mplite::Counters& counters(World& w, int rank) {
  return w.ranks[static_cast<std::size_t>(rank)]->counters;
}

std::vector<std::uint8_t> pattern(std::size_t bytes, unsigned salt) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + salt * 31);
  return data;
}

std::uint64_t expose(World& w, int rank, std::vector<std::uint8_t>& memory) {
  w.as(rank);
  std::uint64_t key = 0;
  ck_assert_int_eq(lite_expose(memory.data(), memory.size(), &key), LITE_OK);
  ck_assert_uint_ne(key, 0);
  return key;
}

// Takes whatever is complete at `rank`, in any order: how many, all with this result.
int take_completed(World& w, int rank, int error = LITE_OK) {
  w.as(rank);
  int n = 0;
  while (lite_request* r = lite_next_completion()) {
    lite_status status;
    lite_request_status(r, &status);
    ck_assert_int_eq(status.error, error);
    lite_request_free(r);
    ++n;
  }
  return n;
}

void check_clean(World& w) {
  for (int i = 0; i < w.size(); ++i) {
    ck_assert_uint_eq(device(w, i).requests_used(), 0);
    ck_assert_uint_eq(device(w, i).accesses_used(), 0);
    ck_assert_uint_eq(device(w, i).messages_used(), 0);
    for (int p = 0; p < w.size(); ++p) {
      const ch_lite::Peer& peer = device(w, i).peer(p);
      ck_assert(peer.origin.is_clean() && peer.target.is_clean());
      ck_assert_uint_eq(peer.origin.puts_out + peer.target.puts_done, 0);
    }
  }
}

void check_given_up(World& w, int rank, int peer, const char* words) {
  ck_assert_int_eq(device(w, rank).peer(peer).lost, EPROTO);
  bool said = false;
  for (const auto& r : w.reports)
    said = said || (r.peer == peer && r.what != nullptr && std::strstr(r.what, words) != nullptr);
  ck_assert_msg(said, "nobody is told \"%s\"", words);
}

const std::size_t kSizes[] = {1, 2, kShort - 1, kShort, kShort + 1, 65536, 300000, 8 << 20};

}  // namespace

// By polls of both sides, and with nothing at the target but its handler.
START_TEST(put_and_get_of_every_size_by_polls_and_by_the_targets_handler) {
  for (std::uint64_t short_max :
       {std::uint64_t{kShort}, std::uint64_t{0}, std::uint64_t{1} << 40}) {
    for (std::size_t bytes : kSizes) {
      for (int variant = 0; variant < 4; ++variant) {
        const bool handler = (variant & 1) != 0;
        auto w = make_world(2, short_max, static_cast<unsigned>(bytes));
        w->lazy = (variant & 2) != 0;
        std::vector<std::uint8_t> memory(bytes + 32, 0xaa);
        const auto data = pattern(bytes, 5);
        const std::uint64_t key = expose(*w, 1, memory);
        auto move = [&] {
          if (!handler) return w->settle();
          for (int i = 0; i < 400; ++i) {
            w->handler(1);
            w->as(0);
            lite_progress();
          }
        };
        lite_request* r = nullptr;
        int cookie = 0;
        w->as(0);
        ck_assert_int_eq(lite_put(1, key, 16, data.data(), bytes, 0, &cookie, &r), LITE_PENDING);
        ck_assert_ptr_eq(lite_request_cookie(r), &cookie);
        ck_assert_ptr_null(lite_next_completion());  // not before the target has it
        move();
        ck_assert_int_eq(take_completed(*w, 0), 1);
        ck_assert(std::memcmp(memory.data() + 16, data.data(), bytes) == 0);
        for (int i = 0; i < 16; ++i)
          ck_assert(memory[static_cast<std::size_t>(i)] == 0xaa &&
                    memory[bytes + 16 + static_cast<std::size_t>(i)] == 0xaa);

        std::vector<std::uint8_t> into(bytes + 1, 0xee);
        w->as(0);
        ck_assert_int_eq(lite_get(1, key, 16, into.data(), bytes, 0, nullptr, &r), LITE_PENDING);
        ck_assert_int_ne(lite_request_holds_buffer(r), 0);
        move();
        ck_assert_int_eq(take_completed(*w, 0), 1);
        ck_assert(std::memcmp(into.data(), data.data(), bytes) == 0);
        ck_assert_uint_eq(into[bytes], 0xee);
        ck_assert_int_eq(take_completed(*w, 1), 0);
        ck_assert_uint_eq(counters(*w, 1).served_msgs, 2);
        w->settle();
        check_clean(*w);
      }
    }
  }
}
END_TEST

START_TEST(small_put_leaves_the_buffer_free_and_a_large_one_does_not) {
  auto w = make_world(2);
  std::vector<std::uint8_t> memory(100000), data = pattern(100000, 1);
  const std::uint64_t key = expose(*w, 1, memory);
  w->as(0);
  lite_request *one = nullptr, *two = nullptr;
  lite_put(1, key, 0, data.data(), kShort, 0, nullptr, &one);
  ck_assert_int_eq(lite_request_holds_buffer(one), 0);
  const auto sent = data[0];
  data[0] = static_cast<std::uint8_t>(~sent);
  lite_put(1, key, kShort, data.data() + kShort, kShort + 1, 0, nullptr, &two);
  ck_assert_int_ne(lite_request_holds_buffer(two), 0);
  w->settle();
  ck_assert_int_eq(take_completed(*w, 0), 2);
  ck_assert_uint_eq(memory[0], sent);
  check_clean(*w);
}
END_TEST

// So the end of an epoch may be told to the target behind the request, and its memory written then.
START_TEST(short_get_has_read_before_what_is_sent_later_and_a_long_one_need_not_have) {
  auto w = make_world(2);
  auto memory = pattern(100000, 1);
  const auto before = memory;
  const std::uint64_t key = expose(*w, 1, memory);
  w->as(0);
  std::vector<std::uint8_t> into(kShort), all(kShort + 1);
  lite_request *one = nullptr, *two = nullptr;
  lite_get(1, key, 0, into.data(), kShort, LITE_MORE_FOLLOWS, nullptr, &one);
  ck_assert_int_eq(lite_request_is_in_order(one), 1);
  ck_assert_int_ne(lite_request_holds_buffer(one), 0);
  lite_am_isend(1, 1, "end", 3, nullptr, 0, nullptr, &two);
  w->handler(1);
  std::fill(memory.begin(), memory.end(), 0);
  w->settle();
  ck_assert_int_eq(take_completed(*w, 0), 1);
  ck_assert(std::memcmp(into.data(), before.data(), kShort) == 0);
  w->as(0);
  lite_get(1, key, 0, all.data(), kShort + 1, LITE_MORE_FOLLOWS, nullptr, &one);
  ck_assert_int_eq(lite_request_is_in_order(one), 0);
  lite_put(1, key, 0, before.data(), kShort + 1, 0, nullptr, &two);
  ck_assert_int_eq(lite_request_is_in_order(two), 0);
  w->settle();
  ck_assert_int_eq(take_completed(*w, 0), 2);
}
END_TEST

// They are copied for that. The handler sends each by itself.
START_TEST(data_of_gets_that_one_call_serves_leave_together_and_with_it) {
  constexpr int kGets = 3;
  for (const bool in_handler : {false, true}) {
    auto w = make_world(2);
    auto memory = pattern(1000, 1);
    std::vector<std::uint8_t> into(1000);
    const std::uint64_t key = expose(*w, 1, memory);
    w->as(0);
    lite_request* r = nullptr;
    for (std::size_t i = 0; i < kGets; ++i)
      ck_assert_int_eq(lite_get(1, key, i, &into[i], 900, 0, nullptr, &r), LITE_PENDING);
    if (in_handler) {
      w->handler(1);
    } else {
      w->as(1);
      while (counters(*w, 1).served_msgs < kGets) lite_progress();
    }
    ck_assert_int_eq(w->ranks[1]->gathered, 0);
    ck_assert_int_eq(w->ranks[1]->flushed, in_handler ? 0 : kGets);
    w->handler(0);
    ck_assert_int_eq(take_completed(*w, 0), kGets);
    ck_assert(std::memcmp(into.data(), memory.data(), 900 + kGets - 1) == 0);
  }
}
END_TEST

// What waits for the window leaves later than what is sent now.
START_TEST(get_that_waits_is_in_no_order) {
  auto w = make_world(2);
  std::vector<std::uint8_t> memory(1000), into(ch_lite::kAccessesPerPeer + 1);
  const std::uint64_t key = expose(*w, 1, memory);
  w->as(0);
  lite_request* r = nullptr;
  for (std::size_t i = 0; i < into.size(); ++i) {
    lite_get(1, key, 0, &into[i], 1, 0, nullptr, &r);
    ck_assert_int_eq(lite_request_is_in_order(r), i < ch_lite::kAccessesPerPeer);
  }
  w->settle();
  ck_assert_int_eq(take_completed(*w, 0), static_cast<int>(into.size()));
}
END_TEST

START_TEST(put_that_asks_for_no_answer_is_complete_when_it_has_left) {
  auto w = make_world(2);
  std::vector<std::uint8_t> memory(100000), data = pattern(100000, 1);
  const std::uint64_t key = expose(*w, 1, memory);
  w->as(0);
  lite_request* r = nullptr;
  for (std::uint64_t i = 0; i < 1000; ++i) {  // more than may be under way with an answer
    ck_assert_int_eq(lite_put(1, key, i, data.data() + i, 1, LITE_PUT_UNANSWERED, nullptr, &r),
                     LITE_PENDING);
    ck_assert_int_eq(lite_request_holds_buffer(r), 0);
    ck_assert_int_eq(take_completed(*w, 0), 1);
  }
  ck_assert_uint_eq(device(*w, 0).peer(1).origin.puts_out, 0);
  // a long one is complete when it is there
  lite_put(1, key, 1000, data.data() + 1000, 90000, LITE_PUT_UNANSWERED, nullptr, &r);
  ck_assert_int_ne(lite_request_holds_buffer(r), 0);
  ck_assert_int_eq(take_completed(*w, 0), 0);
  w->handler(1);
  ck_assert_uint_eq(device(*w, 1).peer(0).target.puts_done, 0);
  w->settle();
  ck_assert_int_eq(take_completed(*w, 0), 1);
  ck_assert(std::memcmp(memory.data(), data.data(), 91000) == 0);
  check_clean(*w);
}
END_TEST

// Else the origin would copy without bound what the network is too slow for.
START_TEST(puts_without_an_answer_ask_for_one_where_something_is_queued) {
  auto w = make_world(2);
  std::vector<std::uint8_t> memory(100000, 0);
  const auto data = pattern(100000, 1);
  const std::uint64_t key = expose(*w, 1, memory);
  w->hold_bulk = true;
  w->as(0);
  const lite_envelope envelope{1, 0, 1};
  lite_request *sent = nullptr, *r = nullptr;
  ck_assert_int_eq(lite_isend(data.data(), 32 * 1024, 1, &envelope, 0, nullptr, &sent),
                   LITE_PENDING);
  int whole = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    lite_put(1, key, i, data.data() + i, 1, LITE_PUT_UNANSWERED, nullptr, &r);
    whole += lite_request_holds_buffer(r) == 0 ? 1 : 0;
  }
  ck_assert_uint_eq(device(*w, 0).peer(1).origin.puts_out, ch_lite::kSmallPutsPerPeer);
  ck_assert_int_eq(whole, ch_lite::kSmallPutsPerPeer);
  ck_assert_int_eq(take_completed(*w, 0), 0);
}
END_TEST

// The put is complete at the origin only when the last byte is in the target's memory.
START_TEST(put_by_transfer_is_not_complete_while_its_data_is_on_the_way) {
  auto w = make_world(2);
  std::vector<std::uint8_t> memory(100000, 0);
  const auto data = pattern(100000, 3);
  const std::uint64_t key = expose(*w, 1, memory);
  w->hold_bulk = true;
  w->as(0);
  lite_request* r = nullptr;
  lite_put(1, key, 0, data.data(), data.size(), 0, nullptr, &r);
  w->settle();
  ck_assert_int_eq(take_completed(*w, 0), 0);
  ck_assert_uint_eq(device(*w, 1).accesses_used(), 1);
  w->hold_bulk = false;
  w->as(0);
  for (int i = 0; i < 10; ++i) lite_progress();  // all of it has left
  ck_assert_int_eq(take_completed(*w, 0), 0);
  ck_assert(memory != data);
  w->settle();
  ck_assert_int_eq(take_completed(*w, 0), 1);
  ck_assert(memory == data);
  check_clean(*w);
}
END_TEST

START_TEST(access_to_oneself_is_a_copy) {
  auto w = make_world(1);
  std::vector<std::uint8_t> memory(100, 0), into(100, 0);
  const auto data = pattern(50, 4);
  const std::uint64_t key = expose(*w, 0, memory);
  lite_request* r = nullptr;
  ck_assert_int_eq(lite_put(0, key, 50, data.data(), 50, 0, nullptr, &r), LITE_OK);
  ck_assert_int_eq(lite_get(0, key, 50, into.data(), 50, 0, nullptr, &r), LITE_OK);
  ck_assert(std::memcmp(into.data(), data.data(), 50) == 0);
  ck_assert_int_eq(lite_put(0, key, 51, data.data(), 50, 0, nullptr, &r), LITE_ERR_ARG);
  ck_assert_int_eq(lite_get(0, key, UINT64_MAX, into.data(), 2, 0, nullptr, &r), LITE_ERR_ARG);
  ck_assert_int_eq(lite_withdraw(key), LITE_OK);
  ck_assert_int_eq(lite_get(0, key, 0, into.data(), 1, 0, nullptr, &r), LITE_ERR_ARG);
  ck_assert_int_eq(lite_withdraw(key), LITE_ERR_ARG);
  ck_assert_ptr_null(r);
  check_clean(*w);
}
END_TEST

START_TEST(nothing_may_be_exposed_and_accessed) {
  auto w = make_world(1);
  std::uint64_t key = 0;
  std::uint8_t byte = 0;
  lite_request* r = nullptr;
  ck_assert_int_eq(lite_expose(nullptr, 0, &key), LITE_OK);
  ck_assert_int_eq(lite_put(0, key, 0, &byte, 0, 0, nullptr, &r), LITE_OK);
  ck_assert_int_eq(lite_get(0, key, 0, &byte, 0, 0, nullptr, &r), LITE_OK);
  ck_assert_int_eq(lite_put(0, key, 0, &byte, 1, 0, nullptr, &r), LITE_ERR_ARG);
  ck_assert_int_eq(lite_withdraw(key), LITE_OK);
  check_clean(*w);
}
END_TEST

START_TEST(access_outside_of_the_exposed_memory_ends_the_peer_and_touches_nothing) {
  struct Case {
    std::uint64_t offset, bytes;
  };
  for (const Case& c : {Case{1, 4096}, Case{4097, 1}, Case{4096, 1}, Case{UINT64_MAX, 2},
                        Case{UINT64_MAX - 4000, 4096}, Case{0, 4097}}) {
    for (bool is_put : {true, false}) {
      for (std::uint64_t short_max : {std::uint64_t{0}, std::uint64_t{8192}}) {
        auto w = make_world(2, short_max);
        std::vector<std::uint8_t> around(3 * 4096, 0x77), data(5000, 0x11);
        w->as(1);
        std::uint64_t key = 0;
        ck_assert_int_eq(lite_expose(around.data() + 4096, 4096, &key), LITE_OK);
        w->as(0);
        lite_request* r = nullptr;
        ck_assert_int_eq(is_put ? lite_put(1, key, c.offset, data.data(), c.bytes, 0, nullptr, &r)
                                : lite_get(1, key, c.offset, data.data(), c.bytes, 0, nullptr, &r),
                         LITE_PENDING);
        w->settle();
        check_given_up(*w, 1, 0, "not exposed");
        ck_assert(
            std::all_of(around.begin(), around.end(), [](std::uint8_t b) { return b == 0x77; }));
        ck_assert(std::all_of(data.begin(), data.end(), [](std::uint8_t b) { return b == 0x11; }));
        w->lose(0, 1, ECONNRESET);
        w->settle();
        ck_assert_int_eq(take_completed(*w, 0, LITE_ERR_PEER_LOST), 1);
        check_clean(*w);
      }
    }
  }
}
END_TEST

START_TEST(stale_and_forged_keys_end_the_peer) {
  for (int variant = 0; variant < 4; ++variant) {
    auto w = make_world(2);
    std::vector<std::uint8_t> memory(1000, 0), other(1000, 0);
    std::uint64_t key = expose(*w, 1, memory);
    if (variant < 2) {
      w->as(1);
      ck_assert_int_eq(lite_withdraw(key), LITE_OK);
      if (variant == 1)
        ck_assert_uint_ne(expose(*w, 1, other), key);  // the same place, another generation
    } else {
      key += variant == 2 ? 1 : std::uint64_t{2} << 32;
    }
    w->as(0);
    lite_request* r = nullptr;
    const std::uint8_t byte = 9;
    ck_assert_int_eq(lite_put(1, key, 0, &byte, 1, 0, nullptr, &r), LITE_PENDING);
    w->settle();
    check_given_up(*w, 1, 0, "not exposed");
    ck_assert_uint_eq(memory[0] | other[0], 0);
    w->lose(0, 1, ECONNRESET);
    w->settle();
    ck_assert_int_eq(take_completed(*w, 0, LITE_ERR_PEER_LOST), 1);
  }
}
END_TEST

// Who was not told the key cannot guess it, and who has it from others may not use it.
START_TEST(keys_are_random_and_for_those_only_whom_the_memory_is_exposed_to) {
  for (int variant = 0; variant < 4; ++variant) {
    auto w = std::make_unique<World>(4, 1);  // 3 is a process of another job
    for (int i = 0; i < 3; ++i) w->make_device(i, options(), 3);
    w->make_device(3, options());
    ck_assert_int_eq(w->ranks[0]->introduce(w->ranks[0]->introduce_arg, 3, 1 << 20), 1);
    std::vector<std::uint8_t> memory(1000, 7), other(1000, 7);
    w->as(0);
    std::uint64_t key = 0, second = 0;
    if (variant < 2) {
      ck_assert_int_eq(lite_expose(memory.data(), memory.size(), &key), LITE_OK);
      ck_assert_int_eq(lite_expose(other.data(), other.size(), &second), LITE_OK);
    } else {
      const int all[] = {0, 1, 3}, none[] = {0};
      ck_assert_int_eq(lite_expose_to(memory.data(), memory.size(), all, 3, &key), LITE_OK);
      ck_assert_int_eq(lite_expose_to(other.data(), other.size(), none, 1, &second), LITE_OK);
    }
    ck_assert_uint_ne(key >> 32 & 0xffff,
                      second >> 32 & 0xffff);  // not a number of a slot, and how often it was used
    const std::uint8_t byte = 9;
    lite_request* r = nullptr;
    const auto put = [&](int from, std::uint64_t to) {
      w->as(from);
      ck_assert_int_eq(lite_put(0, to, 0, &byte, 1, 0, nullptr, &r), LITE_PENDING);
      w->settle();
    };
    if (variant == 0) {  // of another job
      put(3, key);
      check_given_up(*w, 0, 3, "exposed to others");
    } else if (variant == 1) {  // any rank of the job may
      put(2, key);
      ck_assert_int_eq(memory[0], 9);
    } else if (variant == 2) {  // those who are named
      put(3, key);
      ck_assert_int_eq(memory[0], 9);
      put(2, key);
      check_given_up(*w, 0, 2, "exposed to others");
    } else {
      put(3, second);
      check_given_up(*w, 0, 3, "exposed to others");
      ck_assert_int_eq(other[0], 7);
    }
    for (int i = 1; i < 4; ++i) {
      w->lose(i, 0, ECONNRESET);
      w->as(i);
      lite_progress();
      while (lite_request* done = lite_next_completion()) lite_request_free(done);
    }
    if (variant != 1 && variant != 2) ck_assert_int_eq(memory[0], 7);
  }
}
END_TEST

// A thousand of each: the origin lets only a window's worth out, the target's nodes stay bounded,
// all complete.
START_TEST(many_accesses_at_once_wait_for_their_turn) {
  constexpr std::size_t kEach = 1000, kLarge = kShort + 100;
  auto w = make_world(2);
  std::vector<std::uint8_t> memory(kEach * kLarge, 0);
  const auto data = pattern(memory.size(), 6);
  std::vector<std::uint8_t> small_memory(kEach * 8, 0), into(kEach * 8, 0xee);
  const std::uint64_t key = expose(*w, 1, memory), small_key = expose(*w, 1, small_memory);
  w->as(0);
  lite_request* r = nullptr;
  for (std::size_t i = 0; i < kEach; ++i) {
    ck_assert_int_eq(lite_put(1, key, i * kLarge, data.data() + i * kLarge, kLarge, 0, nullptr, &r),
                     LITE_PENDING);
    ck_assert_int_eq(lite_put(1, small_key, i * 8, data.data() + i * 8, 8, 0, nullptr, &r),
                     LITE_PENDING);
    ck_assert_uint_le(device(*w, 0).peer(1).origin.accesses_out, ch_lite::kAccessesPerPeer);
    ck_assert_uint_le(device(*w, 0).peer(1).origin.puts_out, ch_lite::kSmallPutsPerPeer);
  }
  for (int i = 0; i < 2000 && !device(*w, 0).peer(1).origin.waiting.empty(); ++i) {
    w->handler(1);
    ck_assert_uint_le(device(*w, 1).accesses_used(), ch_lite::kAccessesPerPeer);
    w->handler(0);
  }
  w->settle();
  ck_assert_int_eq(take_completed(*w, 0), 2 * kEach);
  ck_assert(memory == data);
  ck_assert(std::memcmp(small_memory.data(), data.data(), small_memory.size()) == 0);
  for (std::size_t i = 0; i < kEach; ++i) {
    w->as(0);
    ck_assert_int_eq(lite_get(1, small_key, i * 8, into.data() + i * 8, 8, 0, nullptr, &r),
                     LITE_PENDING);
  }
  w->settle();
  ck_assert_int_eq(take_completed(*w, 0), kEach);
  ck_assert(into == small_memory);
  check_clean(*w);
}
END_TEST

START_TEST(peer_that_overdraws_its_accesses_is_given_up) {
  auto w = make_world(2);
  std::vector<std::uint8_t> memory(10000, 0);
  const std::uint64_t key = expose(*w, 1, memory);
  for (std::uint32_t i = 0; i <= ch_lite::kAccessesHere; ++i) {
    const AccessPacket p{{PacketType::kPutRequest, 0, 0, 0, 0}, 0, key, 0, 5000, 77};
    w->forge(0, 1, &p, sizeof p);
  }
  for (int i = 0; i < 100; ++i) w->handler(1);
  w->as(1);
  lite_progress();
  check_given_up(*w, 1, 0, "more puts and gets");
  ck_assert_uint_eq(device(*w, 1).accesses_used(), 0);
}
END_TEST

START_TEST(forged_answers_end_the_peer) {
  for (int variant = 0; variant < 4; ++variant) {
    auto w = make_world(2);
    std::vector<std::uint8_t> memory(100000, 0), data(100000, 1);
    const std::uint64_t key = expose(*w, 1, memory);
    w->as(0);
    lite_request* r = nullptr;
    const char* words = "";
    struct {
      ch_lite::AckPacket packet;
      std::uint8_t behind[8];
    } forged{};
    std::size_t bytes = sizeof(ch_lite::AckPacket);
    if (variant == 0) {
      lite_put(1, key, 0, data.data(), 8, 0, nullptr, &r);
      forged.packet = {{PacketType::kPutAck, 0, 0, 0, 0}, 0, 2};
      words = "acks for more puts";
    } else if (variant == 1) {
      lite_get(1, key, 0, data.data(), 16, 0, nullptr, &r);
      forged.packet = {{PacketType::kGetData, 0, 0, 0, 0}, 0, r->pool_handle};
      bytes += 8;
      words = "do not fit";
    } else if (variant == 2) {
      lite_put(1, key, 0, data.data(), 8, 0, nullptr, &r);
      forged.packet = {{PacketType::kGetData, 0, 0, 0, 0}, 0, r->pool_handle};
      bytes += 8;
      words = "do not fit";
    } else {
      lite_put(1, key, 0, data.data(), data.size(), 0, nullptr, &r);
      const ch_lite::CtsPacket cts{{PacketType::kCts, 0, 0, 0, 0}, 0, r->pool_handle, 4711, 5};
      w->forge(1, 0, &cts, sizeof cts);
      words = "does not fit its RTS";
    }
    if (variant != 3) w->forge(1, 0, &forged, bytes);
    w->as(0);
    for (int i = 0; i < 5; ++i) lite_progress();
    check_given_up(*w, 0, 1, words);
    ck_assert_int_eq(take_completed(*w, 0, LITE_ERR_PEER_LOST), 1);
  }
}
END_TEST

// MPI forbids it; the memory must not be touched all the same.
START_TEST(withdrawn_memory_is_not_touched_any_more) {
  for (bool is_put : {true, false}) {
    auto w = make_world(2);
    std::vector<std::uint8_t> memory(100000, 0), data(100000, 1);
    const std::uint64_t key = expose(*w, 1, memory);
    w->hold_bulk = true;
    w->as(0);
    lite_request* r = nullptr;
    if (is_put)
      lite_put(1, key, 0, data.data(), data.size(), 0, nullptr, &r);
    else
      lite_get(1, key, 0, data.data(), data.size(), 0, nullptr, &r);
    w->settle();
    ck_assert_uint_eq(device(*w, 1).accesses_used(), 1);
    w->as(1);
    ck_assert_int_eq(lite_withdraw(key), LITE_OK);
    for (const auto& [id, op] : w->ranks[1]->ops)
      ck_assert_msg(op.done, "the channel still has the memory");
    ck_assert_uint_eq(device(*w, 1).accesses_used(), 0);
    check_given_up(*w, 1, 0, "withdrawn");
    w->hold_bulk = false;
    w->settle();
    ck_assert(std::all_of(memory.begin(), memory.end(), [](std::uint8_t b) { return b == 0; }));
    w->lose(0, 1, ECONNRESET);
    w->settle();
    ck_assert_int_eq(take_completed(*w, 0, LITE_ERR_PEER_LOST), 1);
    check_clean(*w);
  }
}
END_TEST

START_TEST(lost_peer_completes_every_access_in_every_state) {
  for (int stage = 0; stage < 6; ++stage) {
    for (bool in_handler : {false, true}) {
      auto w = make_world(2);
      std::vector<std::uint8_t> memory(200 * (kShort + 1), 0), data(memory.size(), 1),
          back(memory.size(), 0);
      const std::uint64_t key = expose(*w, 1, memory);
      w->hold_bulk = stage >= 2;
      w->as(0);
      lite_request* r = nullptr;
      int started = 0;
      for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t at = i * (kShort + 1);
        started +=
            lite_put(1, key, at, data.data() + at, kShort + 1, 0, nullptr, &r) == LITE_PENDING;
        started +=
            lite_get(1, key, at, back.data() + at, kShort + 1, 0, nullptr, &r) == LITE_PENDING;
        started += lite_put(1, key, at, data.data() + at, 8, 0, nullptr, &r) == LITE_PENDING;
        started += lite_get(1, key, at, back.data() + at, 8, 0, nullptr, &r) == LITE_PENDING;
      }
      for (int i = 0; i < stage * 2; ++i) w->handler(i % 2 == 0 ? 1 : 0);
      if (stage == 5) w->hold_bulk = false, w->handler(0);
      int good = 0, bad = 0;
      w->lose(0, 1, ECONNRESET);
      w->lose(1, 0, ECONNRESET);
      w->wire.clear();
      if (in_handler) w->handler(0), w->handler(1);
      w->settle();
      w->as(0);
      while (lite_request* done = lite_next_completion()) {
        lite_status status;
        lite_request_status(done, &status);
        ck_assert(status.error == LITE_OK || status.error == LITE_ERR_PEER_LOST);
        (status.error == LITE_OK ? good : bad)++;
        lite_request_free(done);
      }
      ck_assert_int_eq(good + bad, started);
      ck_assert_int_gt(bad, 0);
      check_clean(*w);
      ck_assert_int_eq(lite_put(1, key, 0, data.data(), 1, 0, nullptr, &r), LITE_ERR_PEER_LOST);
      w->as(1);
      ck_assert_int_eq(lite_withdraw(key), LITE_OK);
    }
  }
}
END_TEST

START_TEST(exposed_memory_wants_progress_and_nothing_else_does) {
  auto w = make_world(2);
  std::vector<std::uint8_t> memory(100);
  ck_assert(!w->ranks[1]->outstanding);
  const std::uint64_t key = expose(*w, 1, memory);
  ck_assert(w->ranks[1]->outstanding);
  ck_assert(!w->ranks[0]->outstanding);
  w->as(1);
  lite_withdraw(key);
  ck_assert(!w->ranks[1]->outstanding);
}
END_TEST

// Acks of puts that come together go together.
START_TEST(acks_of_small_puts_are_batched) {
  auto w = make_world(2);
  std::vector<std::uint8_t> memory(1000);
  const std::uint64_t key = expose(*w, 1, memory);
  w->as(0);
  lite_request* r = nullptr;
  const std::uint8_t byte = 1;
  for (std::uint64_t i = 0; i < 200; ++i) lite_put(1, key, i, &byte, 1, 0, nullptr, &r);
  w->handler(1);
  const std::size_t acks = w->wire[{1, 0}].size();
  ck_assert_msg(acks >= 1 && acks <= 5, "%zu packets", acks);
  w->settle();
  ck_assert_int_eq(take_completed(*w, 0), 200);
  check_clean(*w);
}
END_TEST

// No headroom in the handler: nothing is lost, the next call goes on.
START_TEST(answers_wait_for_headroom) {
  auto w = make_world(2);
  std::vector<std::uint8_t> memory(100000, 0);
  const auto data = pattern(memory.size(), 2);
  const std::uint64_t key = expose(*w, 1, memory);
  w->hold_bulk = true;
  w->as(0);
  lite_request* r = nullptr;
  lite_put(1, key, 0, data.data(), data.size(), 0, nullptr, &r);
  w->handler(1);
  w->handler(0);
  w->hold_bulk = false;
  w->handler(0);
  w->ranks[1]->headroom = false;
  for (int i = 0; i < 10; ++i) w->handler(1);
  ck_assert(memory == data);
  for (int i = 0; i < 10; ++i) w->handler(0);
  ck_assert_int_eq(take_completed(*w, 0), 0);
  w->ranks[1]->headroom = true;
  w->handler(1);
  w->handler(0);
  ck_assert_int_eq(take_completed(*w, 0), 1);
  w->settle();
  check_clean(*w);
}
END_TEST

// Random accesses of everybody to everybody, no two under way to the same bytes: the oracle is what
// each byte must be then.
START_TEST(random_accesses_agree_with_oracle_memory) {
  constexpr int kRanks = 3;
  constexpr std::size_t kSlot = 6000, kSlots = 40, kRegions = 2;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    auto w = make_world(kRanks, seed % 4 == 0 ? 0 : 700, seed);
    w->lazy = true;
    std::vector<std::uint8_t> memory[kRanks][kRegions], oracle[kRanks][kRegions];
    std::uint64_t key[kRanks][kRegions];
    struct Op {
      int target;
      std::size_t region, slot, offset;
      bool is_put, done = false;
      std::vector<std::uint8_t> data;
    };
    std::vector<std::unique_ptr<Op>> ops;
    bool busy[kRanks][kRegions][kSlots] = {};
    for (int i = 0; i < kRanks; ++i)
      for (std::size_t k = 0; k < kRegions; ++k) {
        memory[i][k] = oracle[i][k] =
            pattern(kSlot * kSlots, static_cast<unsigned>(i) * 2 + static_cast<unsigned>(k));
        key[i][k] = expose(*w, i, memory[i][k]);
      }
    auto& random = w->random;
    auto finished = [&](Op& op) {
      op.done = true;
      busy[op.target][op.region][op.slot] = false;
      const std::size_t at = op.slot * kSlot + op.offset;
      std::uint8_t* truth = oracle[op.target][op.region].data() + at;
      if (op.is_put) {
        std::memcpy(truth, op.data.data(), op.data.size());
        ck_assert_msg(
            std::memcmp(memory[op.target][op.region].data() + at, truth, op.data.size()) == 0,
            "seed %u: a put is complete and not there", seed);
      } else {
        ck_assert_msg(std::memcmp(op.data.data(), truth, op.data.size()) == 0,
                      "seed %u: a get brings something else", seed);
      }
    };
    auto drain = [&](int rank) {
      w->as(rank);
      while (lite_request* r = lite_next_completion()) {
        auto* op = static_cast<Op*>(lite_request_cookie(r));
        lite_request_free(r);
        finished(*op);
      }
    };
    for (int step = 0; step < 3000; ++step) {
      const int rank = static_cast<int>(random() % kRanks);
      if (random() % 3 != 0) {
        auto op = std::make_unique<Op>();
        op->target = static_cast<int>(random() % kRanks);
        op->region = random() % kRegions;
        op->slot = random() % kSlots;
        if (busy[op->target][op->region][op->slot]) continue;
        op->is_put = random() % 2 != 0;
        const std::size_t bytes = 1 + (random() % 2 != 0 ? random() % 1000 : random() % kSlot);
        op->offset = random() % (kSlot - bytes + 1);
        op->data = pattern(bytes, static_cast<unsigned>(random()));
        busy[op->target][op->region][op->slot] = true;
        w->as(rank);
        lite_request* r = nullptr;
        const std::size_t at = op->slot * kSlot + op->offset;
        const int result = op->is_put ? lite_put(op->target, key[op->target][op->region], at,
                                                 op->data.data(), bytes, 0, op.get(), &r)
                                      : lite_get(op->target, key[op->target][op->region], at,
                                                 op->data.data(), bytes, 0, op.get(), &r);
        ck_assert_int_eq(result, op->target == rank ? LITE_OK : LITE_PENDING);
        if (result == LITE_OK) finished(*op);
        ops.push_back(std::move(op));
      } else if (random() % 2 != 0) {
        w->handler(rank);
      } else {
        w->as(rank);
        lite_progress();
        drain(rank);
      }
    }
    for (int turn = 0; turn < 50; ++turn) w->settle();
    for (int i = 0; i < kRanks; ++i) drain(i);
    for (const auto& op : ops) ck_assert_msg(op->done, "seed %u: an access never completes", seed);
    for (int i = 0; i < kRanks; ++i)
      for (std::size_t k = 0; k < kRegions; ++k) ck_assert(memory[i][k] == oracle[i][k]);
    check_clean(*w);
  }
}
END_TEST

int main() { return run_tests("one_sided", 120); }
