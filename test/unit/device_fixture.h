// What the tests of the device over a fake channel share: options, worlds, patterns, and what has
// to be left when all is done.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ch_lite/ch_lite.h"
#include "ch_lite/device/device.h"
#include "fake_channel.h"
#include "run_tests.h"

using ch_lite::DeviceOptions;
using fake::World;

namespace fixture {

inline constexpr std::size_t kShort = 1024;
inline constexpr std::size_t kEager = 64 * 1024;

inline DeviceOptions usual() {
  DeviceOptions o;
  o.short_max = kShort;
  o.eager_max = kEager;
  o.credits_bytes = 1 << 20;
  o.unexpected_max_bytes = 64 << 20;
  return o;
}

struct Cut {
  const char* name;
  std::uint64_t short_max, eager_max;
};
inline const Cut kCuts[] = {{"all", kShort, kEager},
                            {"no short", 0, kEager},
                            {"no eager", kShort, 0},
                            {"rendezvous only", 0, 0},
                            {"eager only", 0, UINT64_MAX}};
inline const std::size_t kSizes[] = {0, 1, kShort, kShort + 1, kEager, kEager + 1, 300000};

inline std::unique_ptr<World> make_world(int size, const DeviceOptions& options,
                                         unsigned seed = 1) {
  auto w = std::make_unique<World>(size, seed);
  for (int i = 0; i < size; ++i) w->make_device(i, options);
  return w;
}

inline std::vector<std::uint8_t> pattern(std::size_t bytes, unsigned salt) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + salt * 31);
  return data;
}

inline ch_lite::Device& device(World& w, int rank) {
  return *w.devices[static_cast<std::size_t>(rank)];
}
inline mplite::Counters& counters(World& w, int rank) {
  return w.ranks[static_cast<std::size_t>(rank)]->counters;
}

// Takes the one completion that there is to be at `rank`.
inline lite_status completed(World& w, int rank, const lite_request* expected) {
  w.as(rank);
  lite_request* r = lite_next_completion();
  ck_assert_ptr_eq(r, expected);
  lite_status status;
  lite_request_status(r, &status);
  lite_request_free(r);
  return status;
}

inline bool none_completed(World& w, int rank) {
  w.as(rank);
  return lite_next_completion() == nullptr;
}

// Nothing is left anywhere: pools empty, credit back or owed.
inline void check_clean(World& w) {
  for (int i = 0; i < w.size(); ++i) {
    ck_assert_uint_eq(device(w, i).messages_used(), 0);
    ck_assert_uint_eq(device(w, i).requests_used(), 0);
    ck_assert_uint_eq(device(w, i).blocks().bytes_in_use(), 0);
    ck_assert(!w.ranks[static_cast<std::size_t>(i)]->outstanding);
    for (int p = 0; p < w.size(); ++p)
      for (const auto& lane : device(w, i).peer(p).credits) {
        ck_assert_uint_eq(lane.held(), 0);
        ck_assert(!lane.due() || i == p);
      }
  }
}

// All messages between ranks 0 and 1 are where they belong, and nothing is left of them. `into` may
// have room for more.
void check_arrived(World& w, const std::vector<std::vector<std::uint8_t>>& data,
                   std::vector<std::vector<std::uint8_t>>& into) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    into[i].resize(data[i].size());
    ck_assert_msg(into[i] == data[i], "message %zu", i);
  }
  for (const int rank : {0, 1}) {
    w.as(rank);
    while (lite_request* r = lite_next_completion()) lite_request_free(r);
  }
  w.settle();
  check_clean(w);
}

inline const lite_envelope kEnvelope = {5, 0, 7};

struct Delivered {
  int peer;
  std::uint32_t handler;
  std::vector<std::uint8_t> header, data;
};
inline std::vector<Delivered> g_delivered;

inline void collect(int peer, std::uint32_t handler, const void* header, std::size_t header_bytes,
                    const void* data, std::size_t data_bytes, void*) {
  ck_assert_uint_eq(reinterpret_cast<std::uintptr_t>(header) % 16, 0);
  ck_assert_uint_eq(reinterpret_cast<std::uintptr_t>(data) % 16, 0);
  ck_assert_msg(!mplite::channel_gate().held(),
                "an active message is delivered with the gate closed");
  const auto* h = static_cast<const std::uint8_t*>(header);
  const auto* d = static_cast<const std::uint8_t*>(data);
  g_delivered.push_back({peer, handler, {h, h + header_bytes}, {d, d + data_bytes}});
}

inline void deliver_to_list(World& w) {
  g_delivered.clear();
  for (int i = 0; i < w.size(); ++i) {
    w.as(i);
    lite_am_set_callback(collect, nullptr);
  }
}

}  // namespace fixture

using namespace fixture;
