// Two ranks with MP_* messages in one process, over real loopback sockets. Nothing moves but by
// step(). Used by messages_test and sigio_driver_test.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "mplite/messages/messages.h"
#include "mplite/net/net_posix.h"
#include "run_tests.h"

struct MessageRanks {
  struct Side {
    mplite::PosixNet net;
    std::unique_ptr<mplite::Messages> messages;  // freed after the engine
    std::unique_ptr<mplite::Engine> engine;
    mplite::Messages& m() { return *messages; }
  };
  mplite::PeerAddress peers[2] = {};
  Side side[2];
  mplite::Messages& m(int rank) { return side[rank].m(); }

  // `options`: but for what makes the two a job.
  MessageRanks(std::uint64_t unexpected_max, int family, mplite::EngineOptions options) {
    int listener[2];
    for (int i = 0; i < 2; ++i) {
      ck_assert_int_eq(side[i].net.open(), 0);
      sockaddr_storage at = {};
      at.ss_family = static_cast<sa_family_t>(family);
      if (family == AF_INET)
        reinterpret_cast<sockaddr_in&>(at).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      else
        reinterpret_cast<sockaddr_in6&>(at).sin6_addr = in6addr_loopback;
      listener[i] = side[i].net.open_stream(family);
      ck_assert_int_ge(listener[i], 0);
      ck_assert_int_eq(side[i].net.bind_and_listen(listener[i], at), 0);
      ck_assert_int_eq(side[i].net.local_address(listener[i], peers[i].address), 0);
      std::snprintf(peers[i].host, sizeof peers[i].host, "host%d", i);
    }
    for (int i = 0; i < 2; ++i) {
      options.rank = i;
      options.size = 2;
      options.peers = peers;
      options.listeners[0] = listener[i];
      options.connect_timeout_ns = 60'000'000'000;
      std::memset(options.secret, 5, sizeof options.secret);
      side[i].engine = std::make_unique<mplite::Engine>(side[i].net, options);
      ck_assert_int_eq(side[i].engine->start(), 0);
      side[i].messages = std::make_unique<mplite::Messages>(*side[i].engine, unexpected_max);
      ck_assert(side[i].messages->start());
    }
  }

  void step(int rank) {
    if (side[rank].engine == nullptr) return;
    side[rank].engine->refill();
    side[rank].engine->poll_all();
    ck_assert(side[rank].m().service());
  }
};
