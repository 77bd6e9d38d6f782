// A few engines with their channels over the fake network, without faults unless a test asks for
// them. Used by engine_test.cpp and channel_test.cpp.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "ch_lite/channel/channel.h"
#include "ch_lite/channel/channel_state.h"
#include "drawn_sockets.h"
#include "fake_net.h"
#include "mplite/engine/engine.h"

// What is sent; each salt has its own.
inline std::vector<std::uint8_t> bytes_of(std::size_t n, int salt) {
  std::vector<std::uint8_t> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + static_cast<std::size_t>(salt) * 31);
  return v;
}

struct SimRanks {
  static sim::Faults no_faults() {
    sim::Faults f;
    f.short_io = f.would_block = f.empty_wait = f.hidden_event = 0;
    f.pipe_min = f.pipe_max = 4u << 20;
    f.delay_max_ns = 0;
    return f;
  }

  // `absent`: a bit for each of the first 32 ranks that has an address and nothing else. Ranks have
  // an address on each of the `networks`.
  explicit SimRanks(int size = 2, const sim::Faults& faults = no_faults(),
                    const std::function<void(mplite::EngineOptions&)>& change = {},
                    std::uint64_t seed = 1, unsigned absent = 0, int networks = 1)
      : world(seed, size, faults), peers(static_cast<std::size_t>(size)) {
    mplite::hello_prepare();
    for (int i = 0; i < size; ++i) {
      peers[static_cast<std::size_t>(i)].address = sim::FakeWorld::address(i);
      for (int k = 1; k < networks; ++k)
        peers[static_cast<std::size_t>(i)].more[k - 1] =
            mplite::compact(sim::FakeWorld::address(i, k));
      std::strcpy(peers[static_cast<std::size_t>(i)].host, "simulated");
    }
    for (int i = 0; i < size; ++i) {
      if (i < 32 && (absent >> i & 1) != 0) {
        engines.push_back(nullptr);
        channels.push_back(nullptr);
        continue;
      }
      mplite::EngineOptions o;
      o.rank = i;
      o.size = size;
      o.peers = peers.data();
      o.listeners[0] = world.make_listener(i);
      for (int k = 1; k < networks; ++k)
        o.listeners[static_cast<std::size_t>(k)] = world.make_listener(i, k);
      o.connect_timeout_ns = 1'000'000'000;
      if (change) change(o);
      protected_nets.emplace_back();
      engines.push_back(std::make_unique<mplite::Engine>(
          sim::sockets_of(world.net(i), o.protection, protected_nets.back()), o));
      if (engines.back()->start() != 0) __builtin_trap();
      channels.push_back(std::make_unique<mplite::ChannelState>(*engines.back()));
      channels.back()->wait_policy = {0, 1'000, 50'000};
      engines.back()->set_outstanding(true);
    }
    as(0);
  }
  ~SimRanks() {
    engines.clear();
    mplite::channel_bind(nullptr);
  }

  mplite::Engine& engine(int rank) { return *engines[static_cast<std::size_t>(rank)]; }
  mplite::ChannelState& channel(int rank) { return *channels[static_cast<std::size_t>(rank)]; }
  void as(int rank) { mplite::channel_bind(channels[static_cast<std::size_t>(rank)].get()); }

  // As a call of that rank, whose turn it is from now on.
  void poll(int rank) {
    as(rank);
    mplite::Hold hold(engine(rank).gate());
    engine(rank).refill();
    engine(rank).poll_all();
  }
  // Everybody polls, time passes.
  void turn(int turns = 1) {
    mplite::ChannelState* before = mplite::channel_bound();
    for (; turns > 0; --turns) {
      for (std::size_t i = 0; i < engines.size(); ++i)
        if (engines[i] != nullptr) poll(static_cast<int>(i));
      world.skip(100'000);
    }
    mplite::channel_bind(before);
  }
  bool until(const std::function<bool()>& done, int turns = 2000) {
    while (!done() && turns-- > 0) turn();
    return done();
  }
  // Both know each other: a connection is up.
  void connect(int a, int b) {
    as(a);
    const char hello = 'h';
    MPID_SendControl(&hello, 1, b);
    as(b);
    if (!until([&] { return engine(b).control_ready(); })) __builtin_trap();
    char got = 0;
    int from = -1;
    MPID_RecvAnyControl(&got, 1, &from);
    as(a);
  }
  void lose_host(int rank) {
    engines[static_cast<std::size_t>(rank)].reset();
    world.kill(rank);
  }

  sim::FakeWorld world;
  std::vector<mplite::PeerAddress> peers;
  std::vector<std::unique_ptr<mplite::ProtectedNet>> protected_nets;
  std::vector<std::unique_ptr<mplite::Engine>> engines;
  std::vector<std::unique_ptr<mplite::ChannelState>> channels;
};
