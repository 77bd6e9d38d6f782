// Engines of two jobs with different secrets on the fake network: ports, meeting by name, parting,
// and who does not get in.
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "alloc_trap.h"
#include "fake_net.h"
#include "mplite/engine/engine.h"
#include "sim_ranks.h"

#include "run_tests.h"

using namespace mplite;

namespace {

struct Loss {
  int peer, error;
  bool departed;
};

// Job A is hosts 0 and 1, job B hosts 2 and 3, and so on; two ranks each.
struct Jobs {
  // `impostor`: a host that shows the public key of host 0.
  explicit Jobs(int jobs = 2, const sim::Faults& faults = SimRanks::no_faults(),
                std::uint64_t seed = 1, int impostor = -1)
      : world(seed, 2 * jobs, faults), losses(static_cast<std::size_t>(2 * jobs)) {
    hello_prepare();
    for (int i = 0; i < 2 * jobs; ++i) {
      std::uint8_t random[kKeyBytes] = {};
      random[1] =
          static_cast<std::uint8_t>(i + 1);  // not the first byte: X25519 ignores its lowest bits
      random[2] = static_cast<std::uint8_t>(seed);
      keys.push_back(make_key_pair(random));
    }
    if (impostor >= 0)
      std::memcpy(keys[static_cast<std::size_t>(impostor)].open, keys[0].open, kKeyBytes);
    peers.resize(static_cast<std::size_t>(2 * jobs));
    for (int i = 0; i < 2 * jobs; ++i) {
      PeerAddress& p = peers[static_cast<std::size_t>(i)];
      p.address = sim::FakeWorld::address(i);
      std::strcpy(p.host, "simulated");
      std::memcpy(p.name_key, keys[static_cast<std::size_t>(i)].open, kKeyBytes);
    }
    for (int i = 0; i < 2 * jobs; ++i) {
      EngineOptions o;
      o.rank = i % 2;
      o.size = 2;
      o.peers = &peers[static_cast<std::size_t>(i - i % 2)];
      o.keys = keys[static_cast<std::size_t>(i)];
      o.listeners[0] = world.make_listener(i);
      o.secret[0] = static_cast<std::uint8_t>(1 + i / 2);
      o.connect_timeout_ns = 1'000'000'000;
      engines.push_back(std::make_unique<Engine>(world.net(i), o));
      Engine& e = *engines.back();
      if (e.start() != 0) __builtin_trap();
      e.set_outstanding(true);
      e.set_window(65536);
      lost_self.push_back({this, i});
    }
    for (int i = 0; i < 2 * jobs; ++i)
      at(i).set_lost(
          [](void* self, int peer, int error) {
            auto* s = static_cast<Self*>(self);
            s->jobs->losses[static_cast<std::size_t>(s->host)].push_back(
                {peer, error, s->jobs->at(s->host).departed(peer)});
          },
          &lost_self[static_cast<std::size_t>(i)]);
  }
  struct Self {
    Jobs* jobs;
    int host;
  };

  Engine& at(int host) { return *engines[static_cast<std::size_t>(host)]; }
  void turn(int turns = 1) {
    for (; turns > 0; --turns) {
      for (auto& e : engines) {
        if (e == nullptr) continue;
        Hold hold(e->gate());
        e->refill();
        e->poll_all();
      }
      world.skip(100'000);
    }
  }
  bool until(const std::function<bool()>& done, int turns = 3000) {
    while (!done() && turns-- > 0) turn();
    return done();
  }
  ProcessName name(int host) {
    ProcessName n;
    ck_assert(at(host).name_of(host % 2, n));
    return n;
  }
  PortName port(int host, std::uint32_t id, std::uint8_t salt = 1) {
    PortName p = {};
    p.owner = name(host);
    p.id = id;
    p.key[0] = salt;
    ck_assert_int_eq(at(host).ports().open(id, p.key), 0);
    return p;
  }
  int say(int host, int to, char what) {
    const iovec part = {&what, 1};
    Hold hold(at(host).gate());
    return at(host).send_control(to, &part, 1);
  }
  // The next control packet at `host`: who has said what.
  std::pair<int, char> hear(int host) {
    if (!until([&] { return at(host).control_ready(); })) return {-1, 0};
    char what = 0;
    int from = -1;
    Hold hold(at(host).gate());
    at(host).take_control(&what, 1, from);
    return {from, what};
  }
  bool heard(int host, int from, char what) {
    const auto got = hear(host);
    return got.first == from && got.second == what;
  }
  // The first ranks of the first two jobs, by name.
  void meet() {
    ck_assert_int_eq(at(0).connect(name(2)), 2);
    ck_assert_int_eq(at(2).connect(name(0)), 2);
    ck_assert_int_eq(say(0, 2, 'a'), 0);
    ck_assert(heard(2, 2, 'a'));
  }
  // A stranger says by `fd` that it is the process at `host`, and is challenged.
  void claim(int fd, int host, Hello& hello, Hello& challenge) {
    hello.magic = kHelloMagic;
    hello.version = kWireVersion;
    hello.kind = HelloKind::kHello;
    hello.realm = HelloRealm::kPair;
    hello.from = 65536;
    std::memcpy(hello.mac, keys[static_cast<std::size_t>(host)].open, kKeyBytes);
    turn(20);
    world.stranger_write(fd, &hello, sizeof hello);
    turn(20);
    ck_assert_uint_eq(world.stranger_read(fd, &challenge, sizeof challenge), sizeof challenge);
  }
  void end(int host) {
    engines[static_cast<std::size_t>(host)].reset();
    world.kill(host);
  }
  const std::vector<Loss>& lost(int host) const { return losses[static_cast<std::size_t>(host)]; }

  sim::FakeWorld world;
  std::vector<KeyPair> keys;
  std::vector<PeerAddress> peers;
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<Self> lost_self;
  std::vector<std::vector<Loss>> losses;
};

}  // namespace

START_TEST(who_has_a_ports_name_gets_through_and_is_a_peer) {
  Jobs j;
  const PortName port = j.port(2, 5);
  const int owner = j.at(0).connect_by_port(port);
  ck_assert_int_eq(owner, 2);
  ck_assert_int_eq(j.say(0, owner, 'a'), 0);
  ck_assert(j.heard(2, 2, 'a'));
  ck_assert_int_eq(j.at(2).peers(), 3);
  ck_assert_int_eq(j.say(2, 2, 'b'),
                   0);  // by the same connection: it does not even know where the caller listens
  ck_assert(j.heard(0, owner, 'b'));
  ProcessName unknown;
  ck_assert(!j.at(2).name_of(2, unknown));
  // The jobs' own ranks are as before.
  ck_assert_int_eq(j.say(0, 1, 'c'), 0);
  ck_assert(j.heard(1, 0, 'c'));
  ck_assert(j.lost(0).empty() && j.lost(2).empty());
}
END_TEST

START_TEST(a_wrong_key_is_refused_at_once_and_is_no_loss) {
  Jobs j;
  PortName port = j.port(2, 5);
  port.key[31] ^= 0x80;
  const int owner = j.at(0).connect_by_port(port);
  j.say(0, owner, 'a');
  ck_assert(j.until([&] { return !j.lost(0).empty(); }, 100));
  ck_assert_int_eq(j.lost(0)[0].error, EKEYREJECTED);
  ck_assert(j.lost(0)[0].departed);
  j.turn(50);
  ck_assert_int_eq(j.at(2).peers(), 2);
  ck_assert(!j.at(2).control_ready());
}
END_TEST

// It has read the port's name; but the process that it says it is has the other half of that key.
START_TEST(who_shows_the_public_key_of_another_at_a_port_does_not_get_in) {
  for (const bool known : {false, true}) {
    Jobs j(3, SimRanks::no_faults(), 1, 4);
    const PortName port = j.port(2, 5);
    if (known) ck_assert_int_eq(j.at(2).connect(j.name(0)), 2);
    const int owner = j.at(4).connect_by_port(port);
    ck_assert_int_eq(j.say(4, owner, 'x'), 0);
    ck_assert(j.until([&] { return !j.lost(4).empty(); }));
    ck_assert_int_eq(j.lost(4)[0].error, EKEYREJECTED);
    ck_assert_int_eq(j.at(2).peers(), known ? 3 : 2);
    ck_assert(!j.at(2).control_ready());
    ck_assert(j.lost(2).empty());
    // The one that it is gets in.
    ck_assert_int_eq(j.say(0, j.at(0).connect_by_port(port), 'a'), 0);
    ck_assert(j.heard(2, 2, 'a'));
  }
}
END_TEST

START_TEST(a_closed_port_and_an_unknown_one_are_refused_at_once) {
  Jobs j;
  PortName port = j.port(2, 5);
  j.at(2).ports().close(5);
  int owner = j.at(0).connect_by_port(port);
  j.say(0, owner, 'a');
  ck_assert(j.until([&] { return j.lost(0).size() == 1; }, 100));
  ck_assert_int_eq(j.lost(0)[0].error, ECONNREFUSED);
  ck_assert(j.lost(0)[0].departed);
  // The same process by a good name: the refusal was not held against it.
  const PortName good = j.port(2, 6);
  owner = j.at(0).connect_by_port(good);
  ck_assert_int_eq(owner, 2);
  ck_assert_int_eq(j.say(0, owner, 'b'), 0);
  ck_assert(j.heard(2, 2, 'b'));
}
END_TEST

START_TEST(who_was_refused_at_a_port_is_met_by_its_name) {
  Jobs j;
  const PortName port = j.port(2, 5);
  j.at(2).ports().close(5);
  const int owner = j.at(0).connect_by_port(port);
  j.say(0, owner, 'a');
  ck_assert(j.until([&] { return !j.lost(0).empty(); }, 100));
  ck_assert_int_eq(j.at(0).connect(j.name(2)), owner);
  const int caller = j.at(2).connect(j.name(0));
  ck_assert_int_eq(j.say(0, owner, 'b'), 0);
  ck_assert(j.heard(2, caller, 'b'));
  ck_assert_uint_eq(j.lost(0).size(), 1);
}
END_TEST

START_TEST(a_number_used_again_has_another_key) {
  Jobs j;
  const PortName old = j.port(2, 5, 1);
  j.port(2, 5, 2);
  j.say(0, j.at(0).connect_by_port(old), 'a');
  ck_assert(j.until([&] { return !j.lost(0).empty(); }, 100));
  ck_assert_int_eq(j.lost(0)[0].error, EKEYREJECTED);
}
END_TEST

START_TEST(a_port_whose_process_has_ended_is_an_error_in_time) {
  Jobs j;
  const PortName port = j.port(2, 5);
  j.end(2);
  j.say(0, j.at(0).connect_by_port(port), 'a');
  ck_assert(j.until([&] { return !j.lost(0).empty(); }, 20000));
  ck_assert(j.lost(0)[0].departed);
}
END_TEST

START_TEST(processes_told_of_each_other_connect_from_either_side_or_both) {
  for (int who = 0; who < 3; ++who) {
    Jobs j;
    ck_assert_int_eq(j.at(1).connect(j.name(3)), 2);
    ck_assert_int_eq(j.at(3).connect(j.name(1)), 2);
    ck_assert_int_eq(j.at(3).connect(j.name(1)), 2);
    if (who != 1) ck_assert_int_eq(j.say(1, 2, 'a'), 0);
    if (who != 0) ck_assert_int_eq(j.say(3, 2, 'b'), 0);
    if (who != 1) ck_assert(j.heard(3, 2, 'a'));
    if (who != 0) ck_assert(j.heard(1, 2, 'b'));
    j.turn(100);
    ck_assert_uint_eq(j.at(1).counters().connections, 1);
    ck_assert_uint_eq(j.at(3).counters().connections, 1);
    ck_assert(j.lost(1).empty() && j.lost(3).empty());
  }
}
END_TEST

// One job is quicker in reading the names of the other.
START_TEST(who_calls_before_it_is_known_is_answered_when_it_is) {
  Jobs j;
  j.at(1).connect(j.name(3));
  j.say(1, 2, 'a');
  j.turn(200);
  ck_assert(!j.at(3).control_ready());
  ck_assert_int_eq(j.at(3).peers(), 2);
  ck_assert_int_eq(j.at(3).connect(j.name(1)), 2);
  ck_assert(j.heard(3, 2, 'a'));
  ck_assert_uint_eq(j.at(1).counters().connections, 1);
  ck_assert(j.lost(1).empty());
}
END_TEST

START_TEST(who_claims_a_name_without_its_key_does_not_get_in) {
  Jobs j(3);
  j.at(0).connect(j.name(2));
  j.at(2).connect(j.name(0));
  // Host 4 knows all names, which are public, and says that it is host 0.
  const int fd = j.world.stranger_connect(2);
  Hello hello = {}, challenge = {};
  j.claim(fd, 0, hello, challenge);
  std::uint8_t wrong[kKeyBytes];
  ck_assert(pair_key(j.keys[4], j.keys[2].open, wrong));
  const HelloContext context = {65536, 0, wrong, HelloRealm::kPair, j.keys[0].open};
  Hello proof = {};
  ck_assert(hello_prove(context, hello, challenge, proof) == HelloFault::kMac);
  proof = hello;
  proof.kind = HelloKind::kProof;
  j.world.stranger_write(fd, &proof, sizeof proof);
  const std::uint64_t before = j.at(2).counters().connections_refused;
  j.turn(20);
  ck_assert_uint_eq(j.at(2).counters().connections_refused, before + 1);
  ck_assert_uint_eq(j.at(2).counters().connections, 0);
  // The real one is not hindered.
  ck_assert_int_eq(j.say(0, 2, 'a'), 0);
  ck_assert(j.heard(2, 2, 'a'));
}
END_TEST

START_TEST(the_handler_leaves_callers_at_ports_to_ordinary_context) {
  Jobs j;
  const PortName port = j.port(2, 5);
  j.say(0, j.at(0).connect_by_port(port), 'a');
  for (int i = 0; i < 100; ++i) {
    {
      Hold hold(j.at(0).gate());
      j.at(0).poll_all();
    }
    j.at(2).gate().enter();
    j.at(2).set_mode(ProgressMode::signal_handler(ProgressMode::kNoBudget));
    ++alloc_trap::t_armed;
    j.at(2).poll_all();
    --alloc_trap::t_armed;
    j.at(2).set_mode({});
    j.at(2).gate().leave();
    j.world.skip(100'000);
  }
  ck_assert_int_eq(j.at(2).peers(), 2);
  ck_assert(j.heard(2, 2, 'a'));
}
END_TEST

START_TEST(the_end_of_a_process_is_a_loss_unless_it_said_goodbye_or_was_parted_from) {
  for (int how = 0; how < 3; ++how) {
    Jobs j;
    j.say(0, j.at(0).connect_by_port(j.port(2, 5)), 'a');
    ck_assert(j.heard(2, 2, 'a'));
    if (how == 1) j.at(2).say_goodbye();
    if (how == 2) j.at(0).disconnect(2);
    j.turn(50);
    ck_assert(j.lost(0).empty());
    ck_assert(j.at(0).farewell() == (how == 1));
    ck_assert(j.at(2).farewell() == (how == 2));
    j.end(2);
    ck_assert(j.until([&] { return !j.lost(0).empty(); }));
    ck_assert_int_eq(j.lost(0)[0].peer, 2);
    ck_assert(j.lost(0)[0].departed == (how != 0));
  }
}
END_TEST

START_TEST(after_parting_the_two_can_meet_again) {
  Jobs j;
  for (int round = 0; round < 5; ++round) {
    const PortName port = j.port(2, static_cast<std::uint32_t>(round));
    ck_assert_int_eq(j.at(0).connect_by_port(port), 2);
    ck_assert_int_eq(j.say(0, 2, 'a'), 0);
    ck_assert(j.heard(2, 2, 'a'));
    ck_assert_int_eq(j.at(2).connect(j.name(0)), 2);
    ck_assert_int_eq(j.say(2, 2, 'b'), 0);
    ck_assert(j.heard(0, 2, 'b'));
    j.at(0).disconnect(2);
    if (round % 2 == 0) j.turn(20);
    j.at(2).disconnect(2);
    j.turn(20);
    j.at(2).ports().close(static_cast<std::uint32_t>(round));
  }
  ck_assert(j.lost(0).empty() && j.lost(2).empty());
  ck_assert_int_eq(j.at(0).peers(), 3);
}
END_TEST

// Job A goes and comes again before job B goes: what B says then is of the time before.
START_TEST(a_goodbye_of_the_time_before_is_taken_back) {
  Jobs j;
  j.meet();
  j.at(0).disconnect(2);
  j.turn(20);
  j.at(0).connect(j.name(2));
  j.at(2).disconnect(2);
  j.turn(20);
  j.at(2).connect(j.name(0));
  j.turn(20);
  ck_assert(!j.at(0).farewell());
  ck_assert(!j.at(2).farewell());
  j.end(2);
  ck_assert(j.until([&] { return !j.lost(0).empty(); }));
  ck_assert(!j.lost(0)[0].departed);
}
END_TEST

// Job B has read the names first, and is through already.
START_TEST(a_goodbye_that_comes_before_we_know_of_the_meeting_counts) {
  Jobs j;
  j.meet();
  j.at(0).disconnect(2);
  j.at(2).disconnect(2);
  j.turn(20);
  j.at(2).connect(j.name(0));
  j.at(2).disconnect(2);
  j.turn(20);
  j.at(0).connect(j.name(2));
  j.turn(20);
  j.end(2);
  ck_assert(j.until([&] { return !j.lost(0).empty(); }));
  ck_assert(j.lost(0)[0].departed);
}
END_TEST

// It says hello while the number is its own, and proves itself when another process has it.
START_TEST(a_process_that_was_parted_from_does_not_become_the_next_owner_of_its_number) {
  Jobs j(3);
  const int peer = j.at(0).connect(j.name(2));
  j.at(0).disconnect(peer);
  const int fd = j.world.stranger_connect(0);
  Hello hello = {}, challenge = {};
  j.claim(fd, 2, hello, challenge);
  ck_assert_int_eq(j.at(0).connect(j.name(4)), peer);
  std::uint8_t key[kKeyBytes];
  ck_assert(pair_key(j.keys[2], j.keys[0].open, key));
  const HelloContext context = {65536, 0, key, HelloRealm::kPair, j.keys[2].open};
  Hello proof = {};
  ck_assert(hello_prove(context, hello, challenge, proof) == HelloFault::kNone);
  j.world.stranger_write(fd, &proof, sizeof proof);
  j.turn(20);
  ck_assert_uint_eq(j.at(0).counters().connections, 0);
  ck_assert_uint_eq(j.at(0).counters().connections_refused, 1);
  // Whose number it is now is not hindered.
  j.at(4).connect(j.name(0));
  ck_assert_int_eq(j.say(0, peer, 'a'), 0);
  ck_assert(j.heard(4, 2, 'a'));
}
END_TEST

START_TEST(numbers_of_processes_that_have_gone_are_used_again) {
  Jobs j(8);
  const PortName port = j.port(0, 1);
  for (int job = 1; job < 8; ++job) {
    const int client = 2 * job;
    const int owner = j.at(client).connect_by_port(port);
    ck_assert_int_eq(j.say(client, owner, 'c'), 0);
    const auto [from, what] = j.hear(0);
    ck_assert_int_eq(what, 'c');
    ck_assert_int_eq(from, 2);
    j.at(0).disconnect(from);
    j.end(client);
    ck_assert(j.until([&] { return j.lost(0).size() == static_cast<std::size_t>(job); }));
    ck_assert(j.lost(0).back().departed);
  }
  ck_assert_int_eq(j.at(0).peers(), 3);
}
END_TEST

// Between its connect and our accept it is in no communicator.
START_TEST(a_caller_that_dies_before_it_is_met_is_no_loss) {
  for (const bool met : {false, true}) {
    Jobs j;
    ck_assert_int_eq(j.say(2, j.at(2).connect_by_port(j.port(0, 1)), 'c'), 0);
    ck_assert(j.heard(0, 2, 'c'));
    if (met) ck_assert_int_eq(j.at(0).connect(j.name(2)), 2);
    ck_assert_int_eq(j.say(2, 2, 'd'), 0);
    ck_assert(!j.at(0).has_left(2));
    j.end(2);
    j.world.skip(100'000'000);
    ck_assert(j.at(0).has_left(2));  // what it has said is not read yet
    ck_assert(j.lost(0).empty());
    ck_assert(j.heard(0, 2, 'd'));
    ck_assert(j.until([&] { return !j.lost(0).empty(); }));
    ck_assert_int_eq(j.lost(0)[0].peer, 2);
    ck_assert(j.lost(0)[0].departed == !met);
    ck_assert(j.at(0).has_left(2));
  }
}
END_TEST

// What the two had before is lost, and they have nothing new yet.
START_TEST(a_caller_that_was_lost_before_is_no_loss_until_it_is_met_again) {
  for (const bool met : {false, true}) {
    Jobs j;
    const PortName port = j.port(0, 1);
    ck_assert_int_eq(j.say(2, j.at(2).connect_by_port(port), 'c'), 0);
    ck_assert(j.heard(0, 2, 'c'));
    ck_assert_int_eq(j.at(0).connect(j.name(2)), 2);
    j.world.cut(0, 2);
    ck_assert(j.until([&] { return j.lost(0).size() == 1 && j.lost(2).size() == 1; }));
    ck_assert(!j.lost(0)[0].departed);
    ck_assert_int_eq(j.say(2, j.at(2).connect_by_port(port), 'd'), 0);
    ck_assert(j.heard(0, 2, 'd'));
    if (met) ck_assert_int_eq(j.at(0).connect(j.name(2)), 2);
    j.end(2);
    ck_assert(j.until([&] { return j.lost(0).size() == 2; }));
    ck_assert(j.lost(0)[1].departed == !met);
  }
}
END_TEST

START_TEST(a_number_is_not_used_again_while_the_layer_above_holds_something) {
  Jobs j(3);
  struct Above {
    int asked = 0;
    bool clean = false;
  } above;
  j.at(0).set_introduce(
      [](void* self, int peer, std::uint32_t window) {
        auto* a = static_cast<Above*>(self);
        ++a->asked;
        ck_assert_uint_eq(window, 65536);
        return peer != 2 || a->asked == 1 || a->clean;
      },
      &above);
  ck_assert_int_eq(j.at(0).connect(j.name(2)), 2);
  j.at(0).disconnect(2);
  ck_assert_int_eq(j.at(0).connect(j.name(3)), 3);
  j.at(0).disconnect(3);
  above.clean = true;
  ck_assert_int_eq(j.at(0).connect(j.name(4)), 2);
}
END_TEST

START_TEST(our_own_ranks_are_found_by_their_names) {
  Jobs j;
  ck_assert_int_eq(j.at(0).connect(j.name(0)), 0);
  ck_assert_int_eq(j.at(0).connect(j.name(1)), 1);
  ck_assert_int_eq(j.at(0).connect_by_port(j.port(1, 3)), 1);
  ck_assert_int_eq(j.at(0).peers(), 2);
}
END_TEST

START_TEST(the_table_grows_to_thousands_and_connections_stay_what_they_are) {
  Jobs j;
  j.say(0, j.at(0).connect_by_port(j.port(2, 5)), 'a');
  ck_assert(j.heard(2, 2, 'a'));
  ProcessName name = j.name(3);
  for (int i = 0; i < 3000; ++i) {
    std::uint8_t random[kKeyBytes] = {9, static_cast<std::uint8_t>(i),
                                      static_cast<std::uint8_t>(i / 256)};
    std::memcpy(name.key, make_key_pair(random).open, kKeyBytes);
    ck_assert_int_eq(j.at(0).connect(name), 3 + i);
    if (i % 500 != 0) continue;
    ck_assert_int_eq(j.say(0, 2, 'x'), 0);
    ck_assert(j.heard(2, 2, 'x'));
    ck_assert_int_eq(j.say(2, 2, 'y'), 0);
    ck_assert(j.heard(0, 2, 'y'));
  }
  ck_assert(j.lost(0).empty());
}
END_TEST

// Partial reads and writes, EAGAIN, delays, ties: whatever happens, everybody gets through to
// everybody.
START_TEST(three_jobs_get_through_on_a_bad_network) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    sim::Faults faults;
    faults.hidden_event = 100;
    Jobs j(3, faults, seed);
    std::vector<std::vector<int>> number(6, std::vector<int>(6, -1));
    for (int a = 0; a < 6; ++a)
      for (int b = 0; b < 6; ++b) {
        if (a == b) continue;
        // some are told later, when others have called them already
        if (j.world.random().below(3) == 0) j.turn(static_cast<int>(j.world.random().below(30)));
        number[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] =
            j.at(a).connect(j.name(b));
        ck_assert_int_eq(j.say(a, number[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)],
                               static_cast<char>('0' + a)),
                         0);
      }
    for (int b = 0; b < 6; ++b)
      for (int count = 0; count < 5; ++count) {
        const auto [from, what] = j.hear(b);
        ck_assert_msg(from >= 0, "seed %llu: host %d misses somebody",
                      static_cast<unsigned long long>(seed), b);
        ck_assert_int_eq(from,
                         number[static_cast<std::size_t>(b)][static_cast<std::size_t>(what - '0')]);
      }
    for (int a = 0; a < 6; ++a) ck_assert(j.lost(a).empty());
  }
}
END_TEST

int main() {
  alloc_trap::install();
  return run_tests("remote_jobs", 120);
}
